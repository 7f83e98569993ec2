/*
 * cmd_import.c - zarrc import: elements of a .npy or raw file, or of standard
 * input, into a new array or a region of an existing one. Memory does not grow
 * with the file: it is read box by box. A file that can be sought gives whole
 * write units (chunks or shards), so none is written twice; a pipe gives runs.
 * A file in Fortran order is one in C order with the dimensions reversed, so
 * there is one loop. A new array whose import fails is removed again.
 */
#include "dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct import {
    struct cli *cli;
    struct cli_node node;
    FILE *file;
    const char *name;
    bool is_stdin, can_seek, raw;
    struct cli_npy head; /* of a raw file: made from the options */
    const zarr_dtype *type;
    const zarr_dtype
        *padded;       /* the file's, where it has holes between fields; else NULL */
    size_t item_bytes; /* in the file */
    uint32_t byte_order;
    char *orders; /* of a struct's fields; NULL: all are in byte_order */
    zarr_selection *selection;
    struct cli_elements elements; /* of a text */
    bool text, convert;           /* convert: to elements of variable length */
    bool told;                    /* what cannot be converted */
    bool created;
};

/* ---- what the file holds --------------------------------------------------------------
 */

static int open_input(struct import *im)
{
    struct cli *cli = im->cli;
    struct stat st;

    im->name = cli->args[0];
    im->is_stdin = strcmp(im->name, "-") == 0;
    im->file = im->is_stdin ? stdin : fopen(im->name, "rb");
    if (!im->file)
        return cli_errno(cli, errno, "cannot open %s", im->name);
    if (im->is_stdin)
        im->name = "standard input";
    setvbuf(im->file, NULL, _IONBF,
            0); /* elements are read past it, from its descriptor */
    if (fstat(fileno(im->file), &st) == 0 && S_ISDIR(st.st_mode))
        return cli_errno(cli, EISDIR, "cannot read %s", im->name);
    im->can_seek = !im->is_stdin && S_ISREG(st.st_mode);
    return CLI_OK;
}

static bool is_raw(const struct import *im)
{
    const char *format = cli_text(im->cli, "input");

    if (cli_is_text_format(format))
        return false;
    if (format && strcmp(format, "auto") != 0)
        return strcmp(format, "raw") == 0;
    return cli_text(im->cli, "dtype") != NULL; /* a .npy file says its own */
}

/* Shape and type of a raw file: by options, else those of the region. */
static int describe_raw(struct import *im)
{
    struct cli *cli = im->cli;
    const char *order = cli_text(cli, "order");
    uint64_t offset = 0;
    bool given = false;
    int rc = cli_shape(cli, "shape", im->head.shape, &im->head.ndim, &given);

    if (!rc)
        rc = cli_u64(cli, "offset", &offset);
    if (rc)
        return rc;
    if (!given && im->selection) {
        im->head.ndim = zarr_selection_ndim(im->selection);
        memcpy(im->head.shape, zarr_selection_shape(im->selection),
               (size_t)im->head.ndim * sizeof(uint64_t));
    } else if (!given) {
        return cli_error(cli, CLI_USAGE, NULL,
                         "option --shape is missing: a raw file says none");
    }
    im->head.data_offset = offset;
    im->head.fortran = order && *order == 'F';
    while (!im->can_seek && offset-- > 0)
        if (getc(im->file) == EOF)
            return cli_error(cli, CLI_CORRUPT, NULL, "%s is shorter than --offset",
                             im->name);
    return CLI_OK;
}

/* A .npy of NumPy's align=True: the holes stay behind. */
static int find_padded(struct import *im)
{
    char *whole = NULL, *kept = NULL;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc = CLI_OK;

    if (!cli_fields_padded(im->head.fields))
        return CLI_OK;
    if (!cli_fields_unpad(im->head.fields, &whole, &kept))
        rc = cli_error(im->cli, CLI_UNSUPPORTED, NULL, "%s has a field without a name",
                       im->name);
    if (!rc)
        st = zarr_dtype_find(im->cli->ctx, whole, &im->padded, &err);
    if (!rc && !st)
        st = zarr_dtype_find(im->cli->ctx, kept, &im->type, &err);
    if (st)
        rc = cli_fail(im->cli, st, &err, "data type of %s", im->name);
    free(whole);
    free(kept);
    return rc;
}

static int find_type(struct import *im)
{
    struct cli *cli = im->cli;
    const char *text = im->raw           ? cli_text(cli, "dtype")
                       : im->head.fields ? im->head.fields
                                         : im->head.type;
    const char *endian = cli_text(cli, "endian");
    zarr_error err = {0};
    zarr_status st;
    int rc;

    im->byte_order = ZARR_ORDER_LITTLE;
    rc = find_padded(im);
    if (rc)
        return rc;
    if (text && !im->padded) {
        st = zarr_dtype_find(cli->ctx, text, &im->type, &err);
        if (st)
            return cli_fail(cli, st, &err, "data type of %s", im->name);
        if (*text == '>')
            im->byte_order = ZARR_ORDER_BIG;
    } else if (!text && im->node.array) {
        im->type = zarr_array_dtype(im->node.array);
    } else if (!text) {
        return cli_error(cli, CLI_USAGE, NULL,
                         "option --dtype is missing: a raw file says none");
    }
    if (text && *text == '[')
        im->orders = cli_struct_orders(text);
    if (endian && im->raw) { /* of all fields */
        free(im->orders);
        im->orders = NULL;
    }
    if (endian && im->raw)
        im->byte_order = strcmp(endian, "big") == 0 ? ZARR_ORDER_BIG : ZARR_ORDER_LITTLE;
    im->item_bytes = (size_t)zarr_dtype_item_bytes(im->padded ? im->padded : im->type);
    if (zarr_dtype_variable(im->type))
        return cli_error(cli, CLI_UNSUPPORTED, NULL,
                         "%s: elements of variable length cannot be read from a file of "
                         "raw elements",
                         im->name);
    return CLI_OK;
}

/* A text: its type by --dtype, else the array's, else text of any length. Lists have a
 * shape; lines take that of --shape or of the region. */
static int read_text(struct import *im)
{
    struct cli *cli = im->cli;
    const char *format = cli_text(cli, "input");
    const char *text = cli_text(cli, "dtype");
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    bool given = false;
    int rc = cli_shape(cli, "shape", im->head.shape, &im->head.ndim, &given);

    if (rc)
        return rc;
    if (im->node.array)
        im->type = zarr_array_dtype(im->node.array);
    else
        st = zarr_dtype_find(cli->ctx, text ? text : "string", &im->type, &err);
    if (st)
        return cli_fail(cli, st, &err, "data type of %s", im->name);
    im->item_bytes = (size_t)zarr_dtype_item_bytes(im->type);
    rc = cli_elements_read(cli, im->file, im->name, format, im->type, &im->elements);
    if (!given && *format != 'j' && im->selection) {
        given = true;
        im->head.ndim = zarr_selection_ndim(im->selection);
        memcpy(im->head.shape, zarr_selection_shape(im->selection),
               (size_t)im->head.ndim * sizeof(uint64_t));
    }
    if (!rc && !given) {
        im->head.ndim = im->elements.ndim;
        memcpy(im->head.shape, im->elements.shape, sizeof im->head.shape);
    } else if (!rc && cli_product(im->head.ndim, im->head.shape) != im->elements.n) {
        rc = cli_error(cli, CLI_USAGE, NULL,
                       "%s holds %" PRIu64 " elements, not %" PRIu64, im->name,
                       im->elements.n, cli_product(im->head.ndim, im->head.shape));
    }
    return rc;
}

/* Elements of a fixed length go into an array of variable length one by one. */
static int check_types(struct import *im)
{
    const zarr_dtype *to = im->node.array ? zarr_array_dtype(im->node.array) : im->type;

    im->convert = zarr_dtype_variable(to) && !zarr_dtype_variable(im->type);
    if (im->convert && im->byte_order != ZARR_ORDER_LITTLE &&
        zarr_dtype_swap_bytes(im->type) > 1)
        return cli_error(im->cli, CLI_UNSUPPORTED, NULL,
                         "%s: big-endian elements cannot become elements of variable "
                         "length",
                         im->name);
    return CLI_OK;
}

static uint64_t data_bytes(const struct import *im)
{
    if (im->text)
        return im->elements.text_bytes;
    return cli_mul(cli_product(im->head.ndim, im->head.shape), im->item_bytes);
}

static int check_length(struct import *im)
{
    struct stat st;
    uint64_t want = data_bytes(im), have;

    if (!im->can_seek || fstat(fileno(im->file), &st) != 0)
        return CLI_OK;
    have = (uint64_t)st.st_size;
    have = have > im->head.data_offset ? have - im->head.data_offset : 0;
    if (have < want || (im->raw && have > want))
        return cli_error(im->cli, im->raw ? CLI_USAGE : CLI_CORRUPT,
                         im->raw ? "Check --shape, --dtype and --offset." : NULL,
                         "%s holds %" PRIu64 " bytes of elements, not %" PRIu64, im->name,
                         have, want);
    return CLI_OK;
}

/* ---- where it goes
 * ---------------------------------------------------------------------- */

static int open_target(struct import *im)
{
    struct cli *cli = im->cli;
    int rc = cli_node_open(cli, cli->args[1], CLI_OPEN_NEW | CLI_OPEN_REGION, &im->node);

    if (rc)
        return rc;
    if (im->node.kind == ZARR_NODE_GROUP)
        return cli_error(cli, CLI_EXISTS, NULL, "%s is a group", im->node.shown);
    if (im->node.kind == ZARR_NODE_NONE && im->node.region)
        return cli_error(cli, CLI_NOT_FOUND, "Without a region a new array is made.",
                         "there is no array %s to write a region of", im->node.shown);
    if (im->node.kind == ZARR_NODE_NONE)
        return CLI_OK;
    if (!im->node.region && !cli_flag(cli, "force"))
        return cli_error(
            cli, CLI_EXISTS,
            "Nothing was changed. --force replaces it; ARRAY[...] writes into it.",
            "%s is there already", im->node.shown);
    if (im->node.region)
        return cli_node_select(cli, &im->node, im->node.array, &im->selection);
    zarr_array_free(im->node.array); /* --force: replaced */
    im->node.array = NULL;
    return CLI_OK;
}

static int create_target(struct import *im)
{
    struct cli_spec spec = {.spec = {.struct_size = sizeof spec.spec}};
    const char *name = zarr_dtype_name(im->type);
    zarr_error err = {0};
    zarr_status st;
    int rc;

    memcpy(spec.shape, im->head.shape, sizeof spec.shape);
    spec.spec.shape = spec.shape;
    spec.spec.ndim = im->head.ndim;
    spec.spec.data_type = name ? name : zarr_dtype_v2(im->type);
    rc = cli_spec_read(im->cli, &spec);
    if (im->raw)
        spec.spec.order = 0; /* --order says how the file is laid out */
    if (cli_flag(im->cli, "force"))
        spec.spec.flags |= ZARR_SPEC_OVERWRITE;
    if (!rc) {
        st = zarr_array_create(&im->node.array, im->node.store, im->node.path, &spec.spec,
                               NULL, &err);
        if (st)
            rc = cli_fail(im->cli, st, &err, "cannot create array %s", im->node.shown);
        else
            im->created = true;
    }
    cli_spec_free(&spec);
    return rc;
}

static int check_shape(struct import *im)
{
    const uint64_t *shape = zarr_selection_shape(im->selection);
    const int32_t ndim = zarr_selection_ndim(im->selection);
    char *have, *want;
    int rc = CLI_OK;

    if (ndim == im->head.ndim &&
        memcmp(shape, im->head.shape, (size_t)ndim * sizeof *shape) == 0)
        return CLI_OK;
    have = cli_shape_text(im->head.ndim, im->head.shape);
    want = cli_shape_text(ndim, shape);
    rc = cli_error(im->cli, CLI_USAGE, NULL, "%s has shape %s, the region has %s",
                   im->name, have, want);
    free(have);
    free(want);
    return rc;
}

/* ---- the loop
 * ----------------------------------------------------------------------------- */

static void reverse(int32_t ndim, uint64_t *values)
{
    for (int32_t d = 0; d < ndim / 2; d++) {
        uint64_t v = values[d];

        values[d] = values[ndim - 1 - d];
        values[ndim - 1 - d] = v;
    }
}

static int input_error(struct import *im, bool failed)
{
    if (cli_cancel)
        return cli_error(im->cli, CLI_INTERRUPTED, NULL, "interrupted");
    if (failed)
        return cli_errno(im->cli, errno, "cannot read %s", im->name);
    return cli_error(im->cli, CLI_CORRUPT, NULL,
                     "%s ended too soon: %" PRIu64 " bytes of elements were expected",
                     im->name, data_bytes(im));
}

static int read_at(struct import *im, uint64_t item, void *to, size_t bytes)
{
    const int fd = fileno(im->file);
    const uint64_t at = im->head.data_offset + item * im->item_bytes;
    int64_t n;

    if (im->can_seek && lseek(fd, (off_t)at, SEEK_SET) < 0)
        return cli_errno(im->cli, errno, "cannot read %s", im->name);
    n = cli_read_fd(fd, to, bytes);
    return n == (int64_t)bytes ? CLI_OK : input_error(im, n < 0);
}

/* The box of `b` (in the file's order of dimensions), run by run. */
static int read_box(struct import *im, const struct cli_boxes *b, unsigned char *to)
{
    uint64_t at[ZARR_MAX_RANK] = {0}, run = 1, n_done = 0;
    int32_t outer = b->ndim;

    while (outer > 0) { /* dimensions that are one run */
        outer--;
        run *= b->count[outer];
        if (b->count[outer] != b->shape[outer])
            break;
    }
    while (n_done < b->n_items) {
        uint64_t item = 0;
        int32_t d;
        int rc;

        for (d = 0; d < b->ndim; d++)
            item = item * b->shape[d] + b->start[d] + at[d];
        rc =
            read_at(im, item, to + n_done * im->item_bytes, (size_t)run * im->item_bytes);
        if (rc)
            return rc;
        n_done += run;
        for (d = outer - 1; d >= 0; d--) {
            if (++at[d] < b->count[d])
                break;
            at[d] = 0;
        }
    }
    return CLI_OK;
}

/* The same tensor, of items of another length. */
static zarr_status write_converted(struct import *im, const zarr_selection *selection,
                                   const zarr_tensor *from, uint64_t n, zarr_error *err)
{
    const zarr_dtype *type = zarr_array_dtype(im->node.array);
    const int64_t bytes = (int64_t)zarr_dtype_item_bytes(type);
    struct cli_elements elements = {0};
    int64_t strides[ZARR_MAX_RANK];
    zarr_tensor tensor = *from;
    zarr_status st = ZARR_ERR_INVALID;

    im->told = cli_elements_convert(im->cli, im->type, from->data, n, im->name, type,
                                    &elements) != CLI_OK;
    for (int32_t d = 0; d < from->ndim && from->strides; d++)
        strides[d] = from->strides[d] / (int64_t)im->item_bytes * bytes;
    if (from->strides)
        tensor.strides = strides;
    tensor.data = elements.data;
    tensor.data_bytes = elements.n * elements.item_bytes;
    tensor.dtype = type;
    tensor.byte_order = ZARR_ORDER_NATIVE;
    if (!im->told)
        st = cli_write(im->node.array, selection, &tensor, NULL, err);
    cli_elements_free(&elements);
    return st;
}

static zarr_status write_box(struct import *im, const struct cli_boxes *file_box,
                             void *data, uint64_t bytes, zarr_error *err)
{
    struct cli_boxes b = *file_box;
    int64_t shape[ZARR_MAX_RANK], strides[ZARR_MAX_RANK];
    int64_t stride = (int64_t)zarr_dtype_item_bytes(im->type);
    zarr_tensor tensor = {.struct_size = sizeof tensor};
    zarr_selection *selection = NULL;
    zarr_status st;

    if (im->head.fortran) {
        reverse(b.ndim, b.shape);
        reverse(b.ndim, b.start);
        reverse(b.ndim, b.count);
    }
    st = cli_boxes_select(&b, im->selection, &selection, err);
    if (st)
        return st;
    cli_boxes_tensor(&b, data, bytes, shape, &tensor);
    for (int32_t d = 0; d < b.ndim && im->head.fortran; d++) {
        strides[d] = stride;
        stride *= shape[d];
    }
    if (im->head.fortran)
        tensor.strides = strides;
    tensor.byte_order = im->byte_order;
    if (zarr_dtype_n_fields(im->type) > 0) {
        cli_struct_turn(im->padded ? im->padded : im->type, im->orders, im->byte_order,
                        data, b.n_items);
        if (im->padded)
            cli_struct_pack(im->padded, im->type, data, b.n_items);
        tensor.byte_order = ZARR_ORDER_NATIVE;
    }
    tensor.dtype = im->type;
    if (im->convert)
        st = write_converted(im, selection, &tensor, b.n_items, err);
    else
        st = cli_write(im->node.array, selection, &tensor, NULL, err);
    zarr_selection_free(selection);
    return st;
}

static void plan_boxes(const struct import *im, struct cli_boxes *boxes)
{
    const uint64_t *unit =
        im->node.region ? NULL : zarr_array_write_shape(im->node.array);
    uint64_t shape[ZARR_MAX_RANK], units[ZARR_MAX_RANK];
    const int32_t ndim = im->head.ndim;

    memcpy(shape, im->head.shape, sizeof shape);
    if (unit)
        memcpy(units, unit, (size_t)ndim * sizeof *unit);
    if (im->head.fortran) {
        reverse(ndim, shape);
        if (unit)
            reverse(ndim, units);
    }
    cli_boxes_init(boxes, ndim, shape, unit ? units : NULL,
                   cli_buffer_bytes(im->cli) / im->item_bytes, !im->can_seek || !unit);
}

static int copy(struct import *im)
{
    struct cli_progress progress;
    struct cli_boxes boxes;
    uint64_t done = 0, bytes;
    unsigned char *data;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc = CLI_OK;

    plan_boxes(im, &boxes);
    bytes = cli_boxes_max_items(&boxes) * im->item_bytes;
    data = cli_alloc((size_t)bytes);
    cli_progress_begin(&progress, im->cli, "import", data_bytes(im), 0);
    while (!rc && !st && cli_boxes_next(&boxes)) {
        rc = read_box(im, &boxes, data);
        if (!rc)
            st = write_box(im, &boxes, data, bytes, &err);
        done += boxes.n_items * im->item_bytes;
        cli_progress_update(&progress, done, 0);
    }
    cli_progress_end(&progress, !rc && !st);
    free(data);
    if (im->told)
        return CLI_CORRUPT;
    return st ? cli_fail(im->cli, st, &err, "cannot write %s", im->node.shown) : rc;
}

static int write_text(struct import *im)
{
    int64_t shape[ZARR_MAX_RANK];
    zarr_error err = {0};
    zarr_tensor tensor;
    zarr_status st;

    cli_elements_tensor(&im->elements, im->head.ndim, im->head.shape, shape, &tensor);
    st = cli_write(im->node.array, im->selection, &tensor, NULL, &err);
    return st ? cli_fail(im->cli, st, &err, "cannot write %s", im->node.shown) : CLI_OK;
}

/* A pipe must end where the elements end. */
static int check_end(struct import *im)
{
    char byte;

    if (im->can_seek || cli_read_fd(fileno(im->file), &byte, 1) == 0)
        return CLI_OK;
    if (cli_cancel)
        return cli_error(im->cli, CLI_INTERRUPTED, NULL, "interrupted");
    return cli_error(im->cli, CLI_USAGE, "Check --shape and --dtype.",
                     "%s holds more than %" PRIu64 " bytes of elements", im->name,
                     data_bytes(im));
}

/* ---- the command
 * ---------------------------------------------------------------------------- */

static int prepare(struct import *im)
{
    int rc = open_input(im);

    if (!rc)
        rc = open_target(im);
    im->raw = is_raw(im);
    im->text = cli_is_text_format(cli_text(im->cli, "input"));
    if (!rc && im->text)
        rc = read_text(im);
    if (!rc && !im->raw && !im->text)
        rc = cli_npy_read(im->cli, im->file, im->name, &im->head);
    if (!rc && im->raw)
        rc = describe_raw(im);
    if (!rc && !im->text)
        rc = find_type(im);
    if (!rc && !im->text)
        rc = check_types(im);
    if (!rc && !im->text)
        rc = check_length(im);
    if (!rc && im->selection)
        rc = check_shape(im);
    if (!rc && !im->selection)
        rc = create_target(im);
    return rc;
}

static void report(const struct import *im)
{
    struct cli_json *j;

    if (!im->cli->json)
        return;
    j = cli_json(im->cli);
    cli_json_object(j);
    cli_json_text(cli_key(j, "node"), im->node.shown);
    cli_json_bool(cli_key(j, "created"), im->created);
    cli_json_shape(cli_key(j, "shape"), im->head.ndim, im->head.shape);
    cli_json_u64(cli_key(j, "bytes"), data_bytes(im));
    cli_json_end(j);
}

static int run_import(struct cli *cli)
{
    struct import im = {.cli = cli};
    int rc = prepare(&im);

    if (!rc)
        rc = im.text ? write_text(&im) : copy(&im);
    if (!rc && !im.text)
        rc = check_end(&im);
    if (!rc)
        rc = cli_node_flush(cli, &im.node);
    if (rc && im.created &&
        zarr_node_delete(im.node.store, im.node.path, NULL) != ZARR_OK)
        cli_warn(cli, "%s is incomplete and could not be removed", im.node.shown);
    if (!rc)
        report(&im);
    zarr_selection_free(im.selection);
    cli_elements_free(&im.elements);
    free(im.orders);
    free(im.head.fields);
    cli_node_close(&im.node);
    if (im.file && !im.is_stdin)
        fclose(im.file);
    return rc;
}

static const struct cli_option import_options[] = {
    {"input", 'i', 0, "FORMAT", "auto|npy|raw|" CLI_TEXT_FORMATS,
     "what FILE is: npy, raw (the default when --dtype is given), a JSON array, elements "
     "(one JSON value a line), or lines (each one text)"},
    {"dtype", 't', 0, "TYPE", NULL,
     "raw, text: data type of the elements, as float32 or >i2 (text of a new array: "
     "string)"},
    {"shape", 0, 0, "SHAPE", NULL, "raw, elements, lines: lengths of the dimensions"},
    {"endian", 0, 0, "ORDER", "little|big",
     "raw: byte order of the file (default: little)"},
    {"offset", 0, 0, "BYTES", NULL, "raw: bytes in front of the elements"},
    CLI_SPEC_OPTIONS,
    {"force", 0, 0, NULL, NULL, "replace an existing array"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example import_examples[] = {
    {"zarrc import temp.npy x.zarr/temp --chunks=1,720,1440 --codec=zstd:5",
     "A NumPy file into a new array."},
    {"zarrc import --dtype=float32 --shape=100,200 data.bin x.zarr/a", "A raw file."},
    {"zarrc import t7.npy 'x.zarr/temp[7]'", "One plane of an array that is there."},
    {"cat data.bin | zarrc import -t '>i2' --shape=1000 - x.zarr/b",
     "From a pipe, big-endian."},
    {"ls | zarrc import --input=lines - x.zarr/names", "An array of text, a line each."},
    {"zarrc import --input=json new.json 'x.zarr/names[2:5]'",
     "A JSON array into a region, as zarrc-cat writes it."},
    {NULL, NULL}};

const struct cli_command cli_cmd_import = {
    .name = "import",
    .summary = "write a .npy, raw or text file into a new array or a region",
    .operands = "FILE ARRAY[REGION]",
    .min_args = 2,
    .max_args = 2,
    .about =
        "Reads a NumPy file (C or Fortran order, any byte order), a raw one, or "
        "elements as text; FILE - is standard "
        "input. Without a region a new array is made, by the options of "
        "zarrc-create(1); with a "
        "region (ARRAY[...] for all of it) the elements go into the existing array, "
        "and shapes "
        "must agree.\n\nMemory does not grow with the file; --mem says how much may "
        "be used. When "
        "the import fails, a new array is removed again; with a region, chunks "
        "written until then "
        "stay. Text is read whole: JSON takes every element as zarrc-cat(1) writes "
        "it, lists are dimensions. Text and bytes of fixed length (npy: U and S) may "
        "go into arrays of variable length.\n\nFor a raw file --order says how the file "
        "is laid out, for others "
        "how elements "
        "are ordered inside chunks.",
    .json = "node; created: true for a new array; shape and bytes: of what was written.",
    .options = import_options,
    .examples = import_examples,
    .see_also = "zarrc-create zarrc-export zarrc-append",
    .run = run_import,
};
