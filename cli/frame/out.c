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
    if (cli_cancelled())
        return CLI_INTERRUPTED;
    errno = 0;
    if (bytes && fwrite(data, 1, bytes, stdout) != bytes)
        return out_error(cli, errno);
    return CLI_OK;
}

void cli_add_clean(struct cli_string *out, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)text[i];
        const unsigned char next = i + 1 < bytes ? (unsigned char)text[i + 1] : 0;

        if (c == 0xc2 && next >= 0x80 && next < 0xa0) { /* U+0080 to U+009F */
            cli_string_printf(out, "\\u%04x", next);
            i++;
        } else if ((c < 0x20 && c != '\n') || c == 0x7f) {
            cli_string_printf(out, "\\u%04x", c);
        } else {
            cli_string_add(out, text + i, 1);
        }
    }
}

int cli_printf(struct cli *cli, const char *format, ...)
{
    struct cli_string text = {0}, clean = {0};
    va_list args;
    int rc;

    va_start(args, format);
    cli_string_vprintf(&text, format, args);
    va_end(args);
    cli_add_clean(&clean, text.text ? text.text : "", text.n_bytes);
    rc = cli_out(cli, clean.text, clean.n_bytes);
    cli_string_free(&text);
    cli_string_free(&clean);
    return rc;
}

int cli_out_finish(struct cli *cli)
{
    int rc = CLI_OK;

    if (cli->json_writer)
        rc = cli_json_done(cli->json_writer);
    cli->json_writer = NULL;
    errno = 0;
    if (!cli->out_failed && (fflush(stdout) != 0 || ferror(stdout)))
        rc = out_error(cli, errno);
    if (close(STDOUT_FILENO) != 0 && errno != EBADF && !cli->out_failed)
        rc = out_error(cli, errno);
    return cli->out_failed ? CLI_IO : rc;
}

/* ---- files ---- */

int cli_file_create(struct cli *cli, const char *path, bool force, struct cli_file *out)
{
    struct stat st;
    int fd;

    *out = (struct cli_file){0};
    if (strcmp(path, "-") == 0) {
        out->file = stdout;
        return CLI_OK;
    }
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        out->file = fopen(path, "wb"); /* a pipe or a device is written directly */
        out->path = cli_strdup(path);
        return out->file ? CLI_OK : cli_errno(cli, errno, "cannot open %s", path);
    }
    if (!force && access(path, F_OK) == 0)
        return cli_error(cli, CLI_EXISTS,
                         "Nothing was changed. Use --force to overwrite it.",
                         "%s already exists", path);
    out->path = cli_strdup(path);
    out->temporary = cli_format("%s.%ld.partial", path, (long)getpid());
    fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
        out->file = fdopen(fd, "wb");
    if (!out->file) {
        int error_number = errno;

        if (fd >= 0) {
            close(fd);
            unlink(out->temporary);
        }
        free(out->temporary);
        out->temporary = NULL;
        return cli_errno(cli, error_number, "cannot create %s", path);
    }
    return CLI_OK;
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
    if (!ok || (file->temporary && rename(file->temporary, file->path) != 0))
        return cli_errno(cli, errno, "cannot write %s", file->path);
    free(file->temporary);
    file->temporary = NULL;
    return CLI_OK;
}

void cli_file_close(struct cli_file *file)
{
    if (file->file && file->path)
        fclose(file->file);
    if (file->temporary)
        unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    *file = (struct cli_file){0};
}
