/*
 * data/input.c - an array in a file: .npy or raw bytes, in C or Fortran order. Regular
 * files are mapped, so that a file larger than memory can be appended in one call. Pipes
 * are read in pieces.
 */
#include "data/data.h"
#include "node/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_input_read(struct cli *cli, struct cli_input *in, void *data, uint64_t *bytes)
{
    const size_t n_first = in->has_first && *bytes > 0;
    int64_t n;

    if (n_first)
        *(unsigned char *)data = in->first;
    in->has_first = in->has_first && !n_first;
    n = cli_read_fd(fileno(in->file), (char *)data + n_first, (size_t)*bytes - n_first);
    if (n < 0 && !cli_is_cancelled())
        return cli_errno(cli, errno, "cannot read %s", in->name);
    *bytes = n_first + (n < 0 ? 0 : (uint64_t)n);
    return cli_is_cancelled() ? CLI_INTERRUPTED : CLI_OK;
}

static int read_header(struct cli *cli, struct cli_input *in)
{
    struct cli_npy npy;
    zarr_error err = {0};
    zarr_status st;
    int rc = cli_npy_read(cli, in->file, in->name, &npy);

    if (rc)
        return rc;
    in->fortran = npy.fortran;
    in->byte_order = npy.type[0] == '>' ? ZARR_ORDER_BIG : ZARR_ORDER_LITTLE;
    if (npy.fields && strstr(npy.fields, "\">")) { /* the mapped file is not converted */
        free(npy.fields);
        return cli_error(cli, CLI_UNSUPPORTED,
                         "zarrc import can write it into a region of the array.",
                         "%s has big-endian fields", in->name);
    }
    if (cli_fields_have_padding(npy.fields)) {
        free(npy.fields);
        return cli_error(cli, CLI_UNSUPPORTED,
                         "zarrc import can write it into a region of the array.",
                         "%s has padding between its fields", in->name);
    }
    in->ndim = npy.ndim;
    in->data_at = npy.data_offset;
    memcpy(in->shape, npy.shape, sizeof in->shape);
    st = zarr_dtype_find(&in->dtype, cli->ctx, npy.fields ? npy.fields : npy.type, &err);
    free(npy.fields);
    return st ? cli_fail(cli, st, &err, "data type of %s", in->name) : CLI_OK;
}

static int map_file(struct cli *cli, struct cli_input *in)
{
    const int fd = fileno(in->file);
    struct stat st;

    in->data_bytes = UINT64_MAX;
    if (fstat(fd, &st) != 0)
        return cli_errno(cli, errno, "cannot read %s", in->name);
    if (S_ISDIR(st.st_mode))
        return cli_errno(cli, EISDIR, "cannot read %s", in->name);
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < in->data_at)
        return CLI_OK;
    in->data_bytes = (uint64_t)st.st_size - in->data_at;
    in->map_bytes = (uint64_t)st.st_size;
    if (in->data_bytes == 0)
        return CLI_OK;
    in->map = mmap(NULL, (size_t)in->map_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (in->map == MAP_FAILED) { /* read it as a stream */
        in->map = NULL;
        in->data_bytes = UINT64_MAX;
    }
    return CLI_OK;
}

static int check_length(struct cli *cli, struct cli_input *in)
{
    uint64_t need = cli_product(in->ndim, in->shape);

    need = cli_mul(need, zarr_dtype_item_bytes(in->dtype));
    if (in->data_bytes != UINT64_MAX && in->data_bytes < need)
        return cli_error(cli, CLI_CORRUPT, NULL,
                         "%s is too short: %llu bytes of elements, %llu expected",
                         in->name, (unsigned long long)in->data_bytes,
                         (unsigned long long)need);
    if (in->data_bytes != UINT64_MAX) /* another file may follow in the same stream */
        in->data_bytes = need;
    return CLI_OK;
}

/* Tells npy from raw by the first byte, and keeps the byte: a pipe cannot be rewound. */
static int peek(struct cli *cli, struct cli_input *in)
{
    const int64_t n = cli_read_fd(fileno(in->file), &in->first, 1);

    if (n < 0)
        return cli_is_cancelled() ? CLI_INTERRUPTED
                                  : cli_errno(cli, errno, "cannot read %s", in->name);
    in->is_npy = n == 1 && in->first == 0x93;
    in->has_first = n == 1 && !in->is_npy;
    if (in->is_npy)
        ungetc(in->first, in->file);
    return CLI_OK;
}

int cli_input_open(struct cli *cli, const char *name, const char *format,
                   struct cli_input *in)
{
    const bool is_stdin = strcmp(name, "-") == 0;
    off_t begin;
    int rc = CLI_OK;

    in->name = is_stdin ? "standard input" : name;
    in->byte_order = ZARR_ORDER_LITTLE;
    in->file = is_stdin ? stdin : fopen(name, "rbe");
    if (!in->file)
        return cli_errno(cli, errno, "cannot open %s", name);
    setvbuf(in->file, NULL, _IONBF, 0); /* elements are read from the descriptor */
    begin = lseek(fileno(in->file), 0, SEEK_CUR);
    if (format)
        in->is_npy = *format == 'n';
    else
        rc = peek(cli, in);
    if (!rc && in->is_npy)
        rc = read_header(cli, in);
    in->data_at += begin > 0 ? (uint64_t)begin : 0; /* what is before it was read */
    if (!rc)
        rc = map_file(cli, in);
    if (!rc && in->is_npy)
        rc = check_length(cli, in);
    return rc;
}

void cli_input_close(struct cli_input *in)
{
    if (in->map && in->file == stdin) /* the next program reads on after the elements */
        (void)lseek(fileno(in->file), (off_t)(in->data_at + in->data_bytes), SEEK_SET);
    if (in->map)
        munmap(in->map, (size_t)in->map_bytes);
    if (in->file && in->file != stdin)
        fclose(in->file);
    *in = (struct cli_input){0};
}
