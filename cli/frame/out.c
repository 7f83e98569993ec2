/*
 * frame/out.c - stdout, and files that are complete before they get their name. stdout
 * has a large buffer. A full disk is printed once, stops the command and gives CLI_IO: a
 * command that loses data must not return 0. A closed pipe does the same in silence, and
 * gives CLI_PIPE: a reader such as head has what it wants. Errors of close() count as
 * well, because some file systems report a failed write only then.
 */
#include "frame/frame_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int out_error(struct cli *cli, int error_number)
{
    if (cli->out_failed)
        return CLI_IO;
    cli->out_failed = true;
    return cli_errno(cli, error_number, "cannot write to stdout");
}

int cli_out(struct cli *cli, const void *data, size_t bytes)
{
    if (cli->out_failed)
        return CLI_IO;
    if (cli_is_cancelled())
        return CLI_INTERRUPTED;
    errno = 0;
    if (bytes && fwrite(data, 1, bytes, stdout) != bytes)
        return out_error(cli, errno);
    return CLI_OK;
}

size_t cli_control(const char *text, size_t bytes, bool terminal, unsigned *code)
{
    const unsigned char *c = (const unsigned char *)text;
    unsigned u = 0;

    *code = *c;
    if (*c < 0x20 || *c == 0x7f)
        return 1;
    if (bytes > 1 && (*c & 0xe0) == 0xc0 && (c[1] & 0xc0) == 0x80) {
        *code = u = (*c & 0x1fu) << 6 | (c[1] & 0x3fu);
        return (u >= 0x80 && u < 0xa0) || (terminal && u == 0x61c) ? 2 : 0;
    }
    if (!terminal || bytes < 3 || *c != 0xe2 || (c[1] & 0xc0) != 0x80 ||
        (c[2] & 0xc0) != 0x80)
        return 0;
    *code = u = 0x2000 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
    return u == 0x200e || u == 0x200f || (u >= 0x2028 && u <= 0x202e) ||
                   (u >= 0x2066 && u <= 0x2069)
               ? 3
               : 0;
}

void cli_add_escaped(struct cli_string *out, const char *text, size_t bytes, int fd,
                     bool line_ends)
{
    const bool terminal = isatty(fd);

    for (size_t i = 0; i < bytes;) {
        unsigned code = 0;
        const size_t n = text[i] == '\n' && !line_ends
                             ? 0
                             : cli_control(text + i, bytes - i, terminal, &code);

        if (n > 0)
            cli_string_printf(
                out, fd == STDERR_FILENO && code < 0x100 ? "\\x%02x" : "\\u%04x", code);
        else
            cli_string_add(out, text + i, 1);
        i += n ? n : 1;
    }
}

void cli_add_clean(struct cli_string *out, const char *text, size_t bytes)
{
    cli_add_escaped(out, text, bytes, STDOUT_FILENO, false);
}

int cli_print(struct cli *cli, bool is_line, const char *format, ...)
{
    const size_t n = strlen(format);
    const bool ends = is_line && n > 0 && format[n - 1] == '\n';
    struct cli_string text = {0}, clean = {0};
    va_list args;
    int rc;

    va_start(args, format);
    cli_string_vprintf(&text, format, args);
    va_end(args);
    if (text.n_bytes > 0)
        cli_add_escaped(&clean, text.text, text.n_bytes - ends, STDOUT_FILENO, is_line);
    if (ends)
        cli_string_add(&clean, "\n", 1);
    rc = cli_out(cli, clean.text, clean.n_bytes);
    cli_string_free(&text);
    cli_string_free(&clean);
    return rc;
}

int cli_out_finish(struct cli *cli)
{
    int rc = CLI_OK;

    if (cli->json_writer)
        rc = cli_json_finish(cli->json_writer);
    cli->json_writer = NULL;
    errno = 0;
    if (!cli->out_failed && (fflush(stdout) != 0 || ferror(stdout)))
        rc = out_error(cli, errno);
    if (close(STDOUT_FILENO) != 0 && errno != EBADF && !cli->out_failed)
        rc = out_error(cli, errno);
    return cli->out_failed ? CLI_IO : rc;
}

/* ---- files ---- */

/* A file that is replaced keeps its mode, and its owner and group where that is
 * permitted. */
static void keep_owner(int fd, const struct stat *old)
{
    if (fchown(fd, old->st_uid, old->st_gid) != 0)
        (void)!fchown(fd, (uid_t)-1, old->st_gid);
    (void)!fchmod(fd, old->st_mode & 0777);
}

/* The program exits where it finds no memory. Then this file, which is not complete, goes
 * too. NULL: there is none. */
static const char *unfinished;

static void remove_unfinished(void)
{
    if (unfinished)
        unlink(unfinished);
}

static void note_unfinished(const char *name)
{
    static bool is_registered;

    unfinished = name;
    if (!is_registered)
        is_registered = atexit(remove_unfinished) == 0;
}

/* The file that a symbolic link leads to is replaced, and not the link. */
static int open_temporary(struct cli *cli, const char *path, const struct stat *old,
                          struct cli_file *out)
{
    char *real = old ? realpath(path, NULL) : NULL;
    int fd, error_number;

    out->path = cli_strdup(real ? real : path);
    free(real);
    out->temporary = cli_format("%s.%ld.partial", out->path, (long)getpid());
    fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
              old ? old->st_mode & 0777 : 0666);
    if (fd >= 0 && old)
        keep_owner(fd, old);
    if (fd >= 0)
        out->file = fdopen(fd, "wb");
    if (out->file) {
        note_unfinished(out->temporary);
        return CLI_OK;
    }
    error_number = errno;
    if (fd >= 0) {
        close(fd);
        unlink(out->temporary);
    }
    free(out->temporary);
    out->temporary = NULL;
    return cli_errno(cli, error_number, "cannot create %s", path);
}

/* A pipe or a device is written directly. A regular file that took its place meanwhile
 * is not: it may have other names. */
static int open_device(struct cli *cli, const char *path, struct cli_file *out)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    struct stat st;

    out->path = cli_strdup(path);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        if (S_ISREG(st.st_mode))
            errno = EEXIST;
        else
            out->file = fdopen(fd, "wb");
    }
    if (out->file)
        return CLI_OK;
    if (fd >= 0)
        close(fd);
    return cli_errno(cli, errno, "cannot open %s", path);
}

int cli_file_create(struct cli *cli, const char *path, bool force, struct cli_file *out)
{
    struct stat st;
    const bool exists = stat(path, &st) == 0;

    *out = (struct cli_file){.replace = force};
    if (strcmp(path, "-") == 0) {
        out->file = stdout;
        return CLI_OK;
    }
    if (exists && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return open_device(cli, path, out);
    if (!force && exists)
        return cli_error(cli, CLI_EXISTS,
                         "Nothing was changed. Use --force to overwrite it.",
                         "%s already exists", path);
    return open_temporary(cli, path, exists ? &st : NULL, out);
}

/* Without `replace`, fails with EEXIST if another program made the file meanwhile. */
static bool give_name(const struct cli_file *file)
{
    if (!file->replace) {
        if (renameat2(AT_FDCWD, file->temporary, AT_FDCWD, file->path,
                      RENAME_NOREPLACE) == 0)
            return true;
        if (errno != EINVAL && errno != ENOSYS) /* not every file system has the flag */
            return false;
    }
    return rename(file->temporary, file->path) == 0;
}

int cli_file_commit(struct cli *cli, struct cli_file *file)
{
    bool ok;

    if (!file->path) /* stdout: main() closes it */
        return CLI_OK;
    errno = 0;
    ok = fflush(file->file) == 0 && !ferror(file->file);
    if (ok && file->temporary)
        ok = fsync(fileno(file->file)) == 0;
    if (!ok) /* cli_file_close() removes the temporary file */
        return cli_errno(cli, errno, "cannot write %s", file->path);
    ok = fclose(file->file) == 0;
    file->file = NULL;
    if (!ok || (file->temporary && !give_name(file)))
        return cli_errno(cli, errno, "cannot write %s", file->path);
    unfinished = NULL;
    free(file->temporary);
    file->temporary = NULL;
    return CLI_OK;
}

void cli_file_close(struct cli_file *file)
{
    if (file->file && file->path)
        fclose(file->file);
    if (file->temporary) {
        unlink(file->temporary);
        unfinished = NULL;
    }
    free(file->temporary);
    free(file->path);
    *file = (struct cli_file){0};
}
