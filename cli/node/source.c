/*
 * node/source.c - files and standard input as bytes in their order. No buffer reads
 * ahead, so that a program that shares standard input continues after the last byte. The
 * signal that ends a wait is that of frame/main.c.
 */
#include "node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int report_interrupt(struct cli *cli)
{
    return cli_error(cli, CLI_INTERRUPTED, NULL, "interrupted");
}

int cli_source_open(struct cli *cli, const char *path, struct cli_source *out)
{
    struct stat st;

    *out = (struct cli_source){.fd = STDIN_FILENO, .name = "standard input"};
    if (strcmp(path, "-") != 0) {
        out->name = path;
        do /* a FIFO waits for a writer */
            out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        while (out->fd < 0 && errno == EINTR && !cli_is_cancelled());
    }
    if (out->fd < 0 && errno == EINTR)
        return report_interrupt(cli);
    if (out->fd < 0)
        return cli_errno(cli, errno, "cannot open %s", path);
    if (fstat(out->fd, &st) == 0 && S_ISDIR(st.st_mode))
        return cli_errno(cli, EISDIR, "cannot read %s", out->name);
    return CLI_OK;
}

int cli_source_read(struct cli *cli, struct cli_source *source, void *data, size_t *bytes)
{
    const size_t n = *bytes;
    size_t done = 0;

    if (source->has_peeked && n > 0) {
        *(unsigned char *)data = source->peeked;
        source->has_peeked = false;
        done = 1;
    }
    while (done < n) {
        struct pollfd p = {.fd = source->fd, .events = POLLIN};
        ssize_t got;

        if (cli_is_cancelled())
            return report_interrupt(cli);
        if (poll(&p, 1, -1) < 0 && errno == EINTR) /* read() may be non-blocking */
            continue;
        got = read(source->fd, (char *)data + done, n - done);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return cli_errno(cli, errno, "cannot read %s", source->name);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    *bytes = done;
    return CLI_OK;
}

int cli_source_peek(struct cli *cli, struct cli_source *source, int *byte)
{
    size_t n = 1;
    int rc = cli_source_read(cli, source, &source->peeked, &n);

    source->has_peeked = !rc && n == 1;
    *byte = source->has_peeked ? source->peeked : -1;
    return rc;
}

int cli_source_text(struct cli *cli, struct cli_source *source, struct cli_string *out)
{
    const size_t room = 1 << 16;
    char *piece = cli_alloc(room);
    size_t n = room;
    int rc = CLI_OK;

    cli_string_add(out, "", 0);
    while (!rc && n == room) {
        rc = cli_source_read(cli, source, piece, &n);
        if (!rc)
            cli_string_add(out, piece, n);
    }
    free(piece);
    if (!rc && memchr(out->text, 0, out->n_bytes))
        rc = cli_error(cli, CLI_CORRUPT, NULL, "%s is not text: it contains a NUL byte",
                       source->name);
    return rc;
}

int cli_read_text(struct cli *cli, const char *path, struct cli_string *out)
{
    struct cli_source source;
    int rc = cli_source_open(cli, path, &source);

    if (!rc)
        rc = cli_source_text(cli, &source, out);
    cli_source_close(&source);
    return rc;
}

void cli_source_close(struct cli_source *source)
{
    if (source->fd > STDIN_FILENO)
        close(source->fd);
    *source = (struct cli_source){0};
}
