/*
 * import/copy.c - zarrc import: reads the elements of the file box by box and writes them
 * to the array.
 */
#include "import/import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void reverse(int32_t ndim, uint64_t *values)
{
    for (int32_t d = 0; d < ndim / 2; d++) {
        uint64_t v = values[d];

        values[d] = values[ndim - 1 - d];
        values[ndim - 1 - d] = v;
    }
}

/* Turns the box of an array into that of a file in Fortran order, and back. */
static void turn_box(const struct import *im, struct cli_boxes *b)
{
    if (!im->header.fortran)
        return;
    reverse(b->ndim, b->shape);
    reverse(b->ndim, b->start);
    reverse(b->ndim, b->count);
}

/* The size of an element in the file; of a subarray field, of all its values. */
static size_t element_bytes(const struct import *im)
{
    return im->item_bytes * (size_t)im->field.n_values;
}

static int read_at(struct import *im, uint64_t item, void *to, size_t bytes)
{
    const uint64_t at = im->header.data_offset + item * element_bytes(im);
    size_t n = bytes;
    int rc;

    if (im->can_seek && lseek(im->source.fd, (off_t)at, SEEK_SET) < 0)
        return cli_errno(im->cli, errno, "cannot read %s", im->source.name);
    rc = cli_source_read(im->cli, &im->source, to, &n);
    if (!rc && n < bytes)
        rc = cli_error(im->cli, CLI_CORRUPT, NULL,
                       "%s is too short: %" PRIu64 " bytes of elements were expected",
                       im->source.name, cli_import_bytes(im));
    return rc;
}

/* Reads the current box of `b`, whose dimensions are in the file's order. Elements that
 * are contiguous in the file are read at once. */
static int read_box(struct import *im, const struct cli_boxes *b, unsigned char *to)
{
    uint64_t at[ZARR_MAX_RANK] = {0}, n_contiguous = 1, n_done = 0;
    const size_t bytes = element_bytes(im);
    int32_t outer = b->ndim;

    while (outer > 0) { /* innermost dimensions, up to the first that is split */
        outer--;
        n_contiguous *= b->count[outer];
        if (b->count[outer] != b->shape[outer])
            break;
    }
    while (n_done < b->n_items) {
        uint64_t item = 0;
        int32_t d;
        int rc;

        for (d = 0; d < b->ndim; d++)
            item = item * b->shape[d] + b->start[d] + at[d];
        rc = read_at(im, item, to + n_done * bytes, (size_t)n_contiguous * bytes);
        if (rc)
            return rc;
        n_done += n_contiguous;
        for (d = outer - 1; d >= 0; d--) {
            if (++at[d] < b->count[d])
                break;
            at[d] = 0;
        }
    }
    return CLI_OK;
}

/* CLI_OK, or the error of a write. */
static int check_written(const struct import *im, zarr_status st, const zarr_error *err)
{
    return st ? cli_fail_array(im->cli, im->node.array, st, err, "cannot write %s",
                               im->node.shown)
              : CLI_OK;
}

/* Writes a box: of the array, or the next one of the shard that is written in parts. */
static int write_tensor(struct import *im, const zarr_selection *selection,
                        const zarr_tensor *tensor)
{
    zarr_error err = {0};
    const zarr_status st = im->shard ? zarr_shard_writer_write(im->shard, tensor, &err)
                                     : cli_write(im->node.array, selection, tensor,
                                                 &im->field.options, &err);

    return check_written(im, st, &err);
}

/* Converts the n elements of a tensor to the type of the array and writes them. */
static int write_converted(struct import *im, const zarr_selection *selection,
                           const zarr_tensor *from, uint64_t n)
{
    const zarr_dtype *type = im->new_type ? im->new_type : im->field.type;
    const int64_t bytes = (int64_t)zarr_dtype_item_bytes(type);
    struct cli_elements elements = {0};
    int64_t strides[ZARR_MAX_RANK];
    zarr_tensor tensor = *from;
    int rc = cli_elements_convert(im->cli, im->type, from->data, n, im->source.name, type,
                                  &elements);

    for (int32_t d = 0; d < from->ndim && from->strides; d++)
        strides[d] = from->strides[d] / (int64_t)im->item_bytes * bytes;
    if (from->strides)
        tensor.strides = strides;
    tensor.data = elements.data;
    tensor.data_bytes = elements.n * elements.item_bytes;
    tensor.dtype = type;
    tensor.byte_order = 0;
    if (!rc)
        rc = write_tensor(im, selection, &tensor);
    cli_elements_free(&elements);
    return rc;
}

/* Writes the elements of a box of the array, which are in the file's order. */
static int write_box(struct import *im, const struct cli_boxes *b, void *data)
{
    const uint64_t n = b->n_items * im->field.n_values;
    uint64_t shape[ZARR_MAX_RANK];
    int64_t strides[ZARR_MAX_RANK] = {0};
    int64_t stride = (int64_t)zarr_dtype_item_bytes(im->type);
    zarr_tensor tensor;
    zarr_selection *selection = NULL;
    zarr_error err = {0};
    int rc =
        check_written(im, cli_boxes_select(b, im->selection, &selection, &err), &err);

    if (rc)
        return rc;
    cli_boxes_tensor(b, data, b->n_items * element_bytes(im), shape, &tensor);
    cli_field_tensor(&im->field, shape, &tensor);
    for (int32_t d = 0; d < b->ndim && im->header.fortran; d++) {
        strides[d] = stride;
        stride *= (int64_t)shape[d];
    }
    if (im->header.fortran)
        tensor.strides = strides;
    tensor.dtype = im->type;
    tensor.byte_order = im->byte_order;
    if (zarr_dtype_n_fields(im->type) > 0 || im->convert) {
        cli_elements_swap(im->padded_type ? im->padded_type : im->type, im->orders,
                          im->byte_order, data, n);
        if (im->padded_type)
            cli_struct_pack(im->padded_type, im->type, data, n);
        tensor.byte_order = 0;
    }
    if (im->file_type && !cli_npy_fits(im->file_type, im->type, data, n))
        rc =
            cli_error(im->cli, CLI_CORRUPT, NULL, "%s has a value that is not a valid %s",
                      im->source.name, cli_type_name(im->type));
    else if (im->convert)
        rc = write_converted(im, selection, &tensor, n);
    else
        rc = write_tensor(im, selection, &tensor);
    zarr_selection_free(selection);
    return rc;
}

/* Copies a box whose dimensions are in the file's order. */
static int copy_box(struct import *im, struct cli_boxes b)
{
    const uint64_t bytes = b.n_items * element_bytes(im);
    int rc;

    im->buffer = cli_realloc(im->buffer, (size_t)bytes);
    rc = read_box(im, &b, im->buffer);
    turn_box(im, &b);
    if (!rc)
        rc = write_box(im, &b, im->buffer);
    im->copied += bytes;
    cli_progress_update(&im->progress, im->copied, 0);
    return rc;
}

/* ---- shards that are larger than the buffer ---- */

/* The bytes of one block of the new array; 0: there is no regular block. clipped: only
 * those inside of the array's shape. */
static uint64_t block_bytes(const struct import *im, bool clipped)
{
    const uint64_t *unit =
        im->node.region ? NULL : zarr_array_block_shape(im->node.array);
    uint64_t bytes = unit ? element_bytes(im) : 0;

    for (int32_t d = 0; unit && d < im->header.ndim; d++)
        bytes =
            cli_mul(bytes, clipped && unit[d] > im->header.shape[d] ? im->header.shape[d]
                                                                    : unit[d]);
    return bytes;
}

/* Writes a shard in parts. *whole: that is not possible, and nothing is written. */
static int copy_shard(struct import *im, const uint64_t *shard, bool *whole)
{
    struct cli_boxes b = {.ndim = im->header.ndim};
    zarr_io_options io = ZARR_IO_OPTIONS_INIT;
    zarr_error err = {0};
    zarr_status st;
    int rc = CLI_OK;

    io.cancel = cli_cancel;
    st = zarr_shard_writer_open(&im->shard, im->node.array, shard, &io, &err);
    *whole = st == ZARR_ERR_UNSUPPORTED && im->copied == 0;
    if (st)
        return *whole ? CLI_OK : check_written(im, st, &err);
    memcpy(b.shape, im->header.shape, sizeof b.shape);
    while (!rc && zarr_shard_writer_next(im->shard, cli_buffer_bytes(im->cli), b.start,
                                         b.count)) {
        struct cli_boxes of_file = b;

        of_file.n_items = cli_product(b.ndim, b.count);
        turn_box(im, &of_file);
        rc = copy_box(im, of_file);
    }
    zarr_shard_writer_free(im->shard);
    im->shard = NULL;
    return rc;
}

/* Boxes of a pipe are not those of shards, which each box would write anew. */
static int refuse_pipe(struct import *im)
{
    const uint64_t bytes = block_bytes(im, false);
    char need[16], have[16], hint[80];

    snprintf(hint, sizeof hint, "Try: --mem=%" PRIu64 "M, or import a file.",
             (cli_mul(bytes, 8) >> 20) + 1);
    return cli_error(im->cli, CLI_CORRUPT, hint,
                     "one block of %s has %s, but --mem only permits %s of a pipe",
                     im->node.shown, cli_bytes_text(bytes, need),
                     cli_bytes_text(cli_buffer_bytes(im->cli), have));
}

/* Writes each shard in parts. If that is not possible, nothing is written, and *whole is
 * set. */
static int copy_shards(struct import *im, bool *whole)
{
    uint64_t shard[ZARR_MAX_RANK] = {0}, n[ZARR_MAX_RANK];
    int32_t d = 0;
    int rc = CLI_OK;

    *whole = !im->can_seek;
    if (!im->can_seek)
        return im->cli->memory_bytes ? refuse_pipe(im) : CLI_OK;
    zarr_array_block_counts(im->node.array, n);
    while (!*whole && !rc && d >= 0) {
        rc = copy_shard(im, shard, whole);
        for (d = im->header.ndim - 1; d >= 0 && ++shard[d] == n[d]; d--)
            shard[d] = 0;
    }
    return rc;
}

/* ---- boxes ---- */

static void plan_boxes(const struct import *im, struct cli_boxes *boxes)
{
    const uint64_t *unit =
        im->node.region ? NULL : zarr_array_block_shape(im->node.array);
    uint64_t shape[ZARR_MAX_RANK], units[ZARR_MAX_RANK] = {0};
    const int32_t ndim = im->header.ndim - im->field.ndim;

    memcpy(shape, im->header.shape, sizeof shape);
    if (unit)
        memcpy(units, unit, (size_t)ndim * sizeof *unit);
    if (im->header.fortran) {
        reverse(ndim, shape);
        reverse(ndim, units);
    }
    cli_boxes_init(boxes, ndim, shape, unit ? units : NULL,
                   cli_buffer_bytes(im->cli) / element_bytes(im), !im->can_seek || !unit);
}

static int copy_boxes(struct import *im)
{
    struct cli_boxes boxes;
    int rc = CLI_OK;

    plan_boxes(im, &boxes);
    while (!rc && cli_boxes_next(&boxes))
        rc = copy_box(im, boxes);
    return rc;
}

static int write_text(struct import *im)
{
    static uint64_t none;
    struct cli_elements *e = &im->elements;
    zarr_tensor tensor;

    zarr_tensor_host(&tensor, NULL, e->data ? (void *)e->data : &none,
                     e->n * e->item_bytes, im->header.ndim, im->header.shape);
    tensor.dtype = e->type;
    return write_tensor(im, im->selection, &tensor);
}

/* A pipe must end after the last element. */
static int check_end(struct import *im)
{
    int byte = -1, rc = CLI_OK;

    if (!im->can_seek)
        rc = cli_source_peek(im->cli, &im->source, &byte);
    if (rc || byte < 0)
        return rc;
    return cli_error(im->cli, CLI_USAGE, "Check --shape and --dtype.",
                     "%s holds more than %" PRIu64 " bytes of elements", im->source.name,
                     cli_import_bytes(im));
}

int cli_import_copy(struct import *im)
{
    bool whole;
    int rc = CLI_OK;

    if (im->text)
        return write_text(im);
    cli_progress_begin(&im->progress, im->cli, "import", cli_import_bytes(im), 0);
    whole = block_bytes(im, true) <= cli_buffer_bytes(im->cli);
    if (!whole)
        rc = copy_shards(im, &whole);
    if (whole && !rc)
        rc = copy_boxes(im);
    cli_progress_end(&im->progress, !rc);
    free(im->buffer);
    return rc ? rc : check_end(im);
}
