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

static int read_header(struct cli *cli, struct cli_input *in)
{
    struct cli_npy npy;
    zarr_error err = {0};
    zarr_status st;
    int rc = cli_npy_read(cli, &in->source, &npy);

    if (rc)
        return rc;
    in->fortran = npy.fortran;
    in->byte_order = npy.type[0] == '>' ? ZARR_ORDER_BIG : ZARR_ORDER_LITTLE;
    if (npy.fields && strstr(npy.fields, "\">")) { /* the mapped file is not converted */
        free(npy.fields);
        return cli_error(cli, CLI_UNSUPPORTED,
                         "zarrc import can write it into a region of the array.",
                         "%s has big-endian fields", in->source.name);
    }
    if (cli_fields_have_padding(npy.fields)) {
        free(npy.fields);
        return cli_error(cli, CLI_UNSUPPORTED,
                         "zarrc import can write it into a region of the array.",
                         "%s has padding between its fields", in->source.name);
    }
    in->ndim = npy.ndim;
    in->data_at = npy.data_offset;
    memcpy(in->shape, npy.shape, sizeof in->shape);
    st = zarr_dtype_find(&in->dtype, cli->ctx, npy.fields ? npy.fields : npy.type, &err);
    free(npy.fields);
    return st ? cli_fail(cli, st, &err, "data type of %s", in->source.name) : CLI_OK;
}

static int map_file(struct cli *cli, struct cli_input *in)
{
    const int fd = in->source.fd;
    struct stat st;

    in->data_bytes = UINT64_MAX;
    if (fstat(fd, &st) != 0)
        return cli_errno(cli, errno, "cannot read %s", in->source.name);
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
                         in->source.name, (unsigned long long)in->data_bytes,
                         (unsigned long long)need);
    if (in->data_bytes != UINT64_MAX) /* another file may follow in the same stream */
        in->data_bytes = need;
    return CLI_OK;
}

/* Tells npy from raw by the first byte. */
static int find_kind(struct cli *cli, struct cli_input *in)
{
    int byte, rc = cli_source_peek(cli, &in->source, &byte);

    in->is_npy = byte == 0x93;
    return rc;
}

int cli_input_open(struct cli *cli, const char *name, const char *format,
                   struct cli_input *in)
{
    off_t begin;
    int rc = cli_source_open(cli, name, &in->source);

    in->byte_order = ZARR_ORDER_LITTLE;
    if (rc)
        return rc;
    begin = lseek(in->source.fd, 0, SEEK_CUR);
    if (format)
        in->is_npy = *format == 'n';
    else
        rc = find_kind(cli, in);
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
    if (in->map && in->source.fd == STDIN_FILENO) /* the next program reads on after it */
        (void)lseek(in->source.fd, (off_t)(in->data_at + in->data_bytes), SEEK_SET);
    if (in->map)
        munmap(in->map, (size_t)in->map_bytes);
    cli_source_close(&in->source);
    *in = (struct cli_input){0};
}
