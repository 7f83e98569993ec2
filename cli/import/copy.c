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

/* Writes a box: of the array, or the next one of the shard that is written in parts. */
static zarr_status write_tensor(struct import *im, const zarr_selection *selection,
                                const zarr_tensor *tensor, zarr_error *err)
{
    return im->shard
               ? zarr_shard_writer_write(im->shard, tensor, err)
               : cli_write(im->node.array, selection, tensor, &im->field.options, err);
}

/* Converts the n elements of a tensor to the type of the array and writes them. */
static zarr_status write_converted(struct import *im, const zarr_selection *selection,
                                   const zarr_tensor *from, uint64_t n, zarr_error *err)
{
    const zarr_dtype *type = im->new_type ? im->new_type : im->field.type;
    const int64_t bytes = (int64_t)zarr_dtype_item_bytes(type);
    struct cli_elements elements = {0};
    int64_t strides[ZARR_MAX_RANK];
    zarr_tensor tensor = *from;
    zarr_status st = ZARR_ERR_INVALID;

    im->reported = cli_elements_convert(im->cli, im->type, from->data, n, im->source.name,
                                        type, &elements) != CLI_OK;
    for (int32_t d = 0; d < from->ndim && from->strides; d++)
        strides[d] = from->strides[d] / (int64_t)im->item_bytes * bytes;
    if (from->strides)
        tensor.strides = strides;
    tensor.data = elements.data;
    tensor.data_bytes = elements.n * elements.item_bytes;
    tensor.dtype = type;
    tensor.byte_order = 0;
    if (!im->reported)
        st = write_tensor(im, selection, &tensor, err);
    cli_elements_free(&elements);
    return st;
}

static zarr_status write_box(struct import *im, const struct cli_boxes *file_box,
                             void *data, uint64_t bytes, zarr_error *err)
{
    struct cli_boxes b = *file_box;
    uint64_t shape[ZARR_MAX_RANK];
    int64_t strides[ZARR_MAX_RANK];
    int64_t stride = (int64_t)zarr_dtype_item_bytes(im->type);
    const uint64_t n = b.n_items * im->field.n_values;
    zarr_tensor tensor = {.struct_size = sizeof tensor};
    zarr_selection *selection = NULL;
    zarr_status st;

    if (im->header.fortran) {
        reverse(b.ndim, b.shape);
        reverse(b.ndim, b.start);
        reverse(b.ndim, b.count);
    }
    st = cli_boxes_select(&b, im->selection, &selection, err);
    if (st)
        return st;
    cli_boxes_tensor(&b, data, bytes, shape, &tensor);
    cli_field_tensor(&im->field, shape, &tensor);
    for (int32_t d = 0; d < b.ndim && im->header.fortran; d++) {
        strides[d] = stride;
        stride *= (int64_t)shape[d];
    }
    if (im->header.fortran)
        tensor.strides = strides;
    tensor.byte_order = im->byte_order;
    if (zarr_dtype_n_fields(im->type) > 0 || im->convert) {
        cli_elements_swap(im->padded_type ? im->padded_type : im->type, im->orders,
                          im->byte_order, data, n);
        if (im->padded_type)
            cli_struct_pack(im->padded_type, im->type, data, n);
        tensor.byte_order = 0;
    }
    tensor.dtype = im->type;
    if (im->file_type && !cli_npy_fits(im->file_type, im->type, data, n)) {
        im->reported = true;
        st = ZARR_ERR_INVALID;
        cli_error(im->cli, CLI_CORRUPT, NULL, "%s has a value that is not a valid %s",
                  im->source.name, cli_type_name(im->type));
    } else if (im->convert) {
        st = write_converted(im, selection, &tensor, n, err);
    } else {
        st = write_tensor(im, selection, &tensor, err);
    }
    zarr_selection_free(selection);
    return st;
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

/* The exit code after writes that ended with st. */
static int tell_written(struct import *im, zarr_status st, const zarr_error *err, int rc)
{
    if (im->reported)
        return CLI_CORRUPT;
    return st ? cli_fail_array(im->cli, im->node.array, st, err, "cannot write %s",
                               im->node.shown)
              : rc;
}

/* Copies one box, whose numbers are those of the array. */
static zarr_status copy_part(struct import *im, const uint64_t *start,
                             const uint64_t *count, struct cli_boxes *b,
                             unsigned char **data, int *rc, zarr_error *err)
{
    uint64_t bytes;

    memcpy(b->start, start, sizeof b->start);
    memcpy(b->count, count, sizeof b->count);
    memcpy(b->shape, im->header.shape, sizeof b->shape);
    b->n_items = cli_product(b->ndim, b->count);
    if (im->header.fortran) {
        reverse(b->ndim, b->shape);
        reverse(b->ndim, b->start);
        reverse(b->ndim, b->count);
    }
    bytes = b->n_items * element_bytes(im);
    *data = cli_realloc(*data, (size_t)bytes);
    *rc = read_box(im, b, *data);
    return *rc ? ZARR_OK : write_box(im, b, *data, bytes, err);
}

static zarr_status copy_shard(struct import *im, const uint64_t *shard,
                              struct cli_progress *progress, int *rc, zarr_error *err)
{
    struct cli_boxes b = {.ndim = im->header.ndim};
    uint64_t start[ZARR_MAX_RANK] = {0}, count[ZARR_MAX_RANK] = {0};
    zarr_io_options io = ZARR_IO_OPTIONS_INIT;
    unsigned char *data = NULL;
    zarr_status st;

    io.cancel = cli_cancel;
    st = zarr_shard_writer_open(&im->shard, im->node.array, shard, &io, err);
    while (!st && !*rc &&
           zarr_shard_writer_next(im->shard, cli_buffer_bytes(im->cli), start, count)) {
        st = copy_part(im, start, count, &b, &data, rc, err);
        im->copied += b.n_items * element_bytes(im);
        cli_progress_update(progress, im->copied, 0);
    }
    zarr_shard_writer_free(im->shard);
    im->shard = NULL;
    free(data);
    return st;
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
    struct cli_progress progress;
    zarr_error err = {0};
    zarr_status st = im->can_seek ? ZARR_OK : ZARR_ERR_UNSUPPORTED;
    int32_t d = 0;
    int rc = CLI_OK;

    if (!im->can_seek && im->cli->memory_bytes)
        return refuse_pipe(im);
    zarr_array_block_counts(im->node.array, n);
    cli_progress_begin(&progress, im->cli, "import", cli_import_bytes(im), 0);
    while (!st && !rc && d >= 0) {
        st = copy_shard(im, shard, &progress, &rc, &err);
        for (d = im->header.ndim - 1; d >= 0 && ++shard[d] == n[d]; d--)
            shard[d] = 0;
    }
    cli_progress_end(&progress, !rc && !st);
    *whole = st == ZARR_ERR_UNSUPPORTED && im->copied == 0 && !im->reported;
    return *whole ? CLI_OK : tell_written(im, st, &err, rc);
}

/* ---- boxes ---- */

static void plan_boxes(const struct import *im, struct cli_boxes *boxes)
{
    const uint64_t *unit =
        im->node.region ? NULL : zarr_array_block_shape(im->node.array);
    uint64_t shape[ZARR_MAX_RANK], units[ZARR_MAX_RANK];
    const int32_t ndim = im->header.ndim - im->field.ndim;

    memcpy(shape, im->header.shape, sizeof shape);
    if (unit)
        memcpy(units, unit, (size_t)ndim * sizeof *unit);
    if (im->header.fortran) {
        reverse(ndim, shape);
        if (unit)
            reverse(ndim, units);
    }
    cli_boxes_init(boxes, ndim, shape, unit ? units : NULL,
                   cli_buffer_bytes(im->cli) / element_bytes(im), !im->can_seek || !unit);
}

static int copy_boxes(struct import *im)
{
    struct cli_progress progress;
    struct cli_boxes boxes;
    uint64_t done = 0, bytes;
    unsigned char *data;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc = CLI_OK;

    plan_boxes(im, &boxes);
    bytes = cli_boxes_max_items(&boxes) * element_bytes(im);
    data = cli_alloc((size_t)bytes);
    cli_progress_begin(&progress, im->cli, "import", cli_import_bytes(im), 0);
    while (!rc && !st && cli_boxes_next(&boxes)) {
        rc = read_box(im, &boxes, data);
        if (!rc)
            st = write_box(im, &boxes, data, bytes, &err);
        done += boxes.n_items * element_bytes(im);
        cli_progress_update(&progress, done, 0);
    }
    cli_progress_end(&progress, !rc && !st);
    free(data);
    return tell_written(im, st, &err, rc);
}

static int write_text(struct import *im)
{
    uint64_t shape[ZARR_MAX_RANK];
    zarr_error err = {0};
    zarr_tensor tensor;
    zarr_status st;

    cli_elements_tensor(&im->elements, im->header.ndim, im->header.shape, shape, &tensor);
    st = cli_write(im->node.array, im->selection, &tensor, &im->field.options, &err);
    return tell_written(im, st, &err, CLI_OK);
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
    int rc;

    if (im->text)
        return write_text(im);
    whole = block_bytes(im, true) <= cli_buffer_bytes(im->cli);
    rc = whole ? CLI_OK : copy_shards(im, &whole);
    if (whole)
        rc = copy_boxes(im);
    return rc ? rc : check_end(im);
}
