/*
 * import/file.c - zarrc import: finds out the data type, shape and layout of the file
 * from its header, from the options or from its text.
 */
#include "import/import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_import_open(struct import *im)
{
    struct cli *cli = im->cli;
    struct stat st;
    int rc = cli_source_open(cli, cli->args[0], &im->source);

    im->can_seek = !rc && im->source.fd != STDIN_FILENO &&
                   fstat(im->source.fd, &st) == 0 && S_ISREG(st.st_mode);
    return rc;
}

int32_t cli_import_region(const struct import *im, uint64_t shape[ZARR_MAX_RANK])
{
    const int32_t ndim = zarr_selection_ndim(im->selection);

    memcpy(shape, zarr_selection_shape(im->selection), (size_t)ndim * sizeof *shape);
    memcpy(shape + ndim, im->field.shape, (size_t)im->field.ndim * sizeof *shape);
    return ndim + im->field.ndim;
}

/* The format is that of --format, else of the file's extension, else raw if --dtype is
 * given (a .npy file has its own data type), else npy. */
static int find_format(struct import *im)
{
    const char *given = cli_text(im->cli, "format");
    const char *named =
        im->source.fd == STDIN_FILENO ? NULL : cli_format_of_name(im->source.name);

    if (given && strcmp(given, "auto") != 0)
        im->format = given;
    else if (named)
        im->format = named;
    else
        im->format = cli_text(im->cli, "dtype") ? "raw" : "npy";
    im->raw = strcmp(im->format, "raw") == 0;
    im->text = cli_is_text_format(im->format);
    if (!im->raw && !im->text && strcmp(im->format, "npy") != 0)
        return cli_error(im->cli, CLI_USAGE,
                         "Use --format if the file has another format. zarrc export can "
                         "write json and elements, which import reads.",
                         "%s has the extension of format %s, which import cannot read",
                         im->source.name, im->format);
    return CLI_OK;
}

/* The data type that a new array gets if the file has none: that of --dtype, else of
 * --like. NULL: neither is given. */
static const char *wanted_type(const struct import *im)
{
    const char *given = cli_text(im->cli, "dtype");

    return given || !im->model.array ? given
                                     : cli_type_name(zarr_array_dtype(im->model.array));
}

static int skip_bytes(struct import *im, uint64_t bytes)
{
    char block[4096];

    while (bytes > 0) {
        const size_t n = bytes < sizeof block ? (size_t)bytes : sizeof block;
        size_t got = n;
        const int rc = cli_source_read(im->cli, &im->source, block, &got);

        if (rc)
            return rc;
        if (got < n)
            return cli_error(im->cli, CLI_CORRUPT, NULL, "%s is shorter than --offset",
                             im->source.name);
        bytes -= n;
    }
    return CLI_OK;
}

/* The shape of a raw file: that of the options, else that of the region or of --like. */
static int describe_raw(struct import *im)
{
    struct cli *cli = im->cli;
    uint64_t offset = 0;
    bool given = false;
    int rc = cli_shape(cli, "shape", im->header.shape, &im->header.ndim, &given);

    if (!rc)
        rc = cli_u64(cli, "offset", &offset);
    if (rc)
        return rc;
    if (!given && im->selection) {
        im->header.ndim = cli_import_region(im, im->header.shape);
    } else if (!given && im->model.array) {
        im->header.ndim = zarr_array_ndim(im->model.array);
        memcpy(im->header.shape, zarr_array_shape(im->model.array),
               (size_t)im->header.ndim * sizeof *im->header.shape);
    } else if (!given) {
        return cli_error(cli, CLI_USAGE, NULL,
                         "option --shape is missing: a raw file has no header");
    }
    im->header.data_offset = offset;
    im->header.fortran = cli_choice(cli, "order") == 2; /* C|F */
    return im->can_seek ? CLI_OK : skip_bytes(im, offset);
}

/* A .npy file of an aligned NumPy struct: finds its type with and without padding. */
static int find_padded(struct import *im)
{
    char *named = NULL, *unpadded = NULL;
    int rc = CLI_OK;

    if (!cli_fields_have_padding(im->header.fields))
        return CLI_OK;
    if (!cli_fields_unpad(im->header.fields, &named, &unpadded))
        rc = cli_error(im->cli, CLI_UNSUPPORTED, NULL, "%s has a field without a name",
                       im->source.name);
    if (!rc)
        rc = cli_file_type(im->cli, im->source.name, named, &im->padded_type);
    if (!rc)
        rc = cli_file_type(im->cli, im->source.name, unpadded, &im->type);
    free(named);
    free(unpadded);
    return rc;
}

/* If NumPy lacks a data type, the file's header says opaque bytes, or int8 for int4. The
 * elements then have the type of the array, or that of --dtype. */
static int find_real_type(struct import *im)
{
    const char *given = cli_text(im->cli, "dtype"), *wanted = wanted_type(im);
    const zarr_dtype *type = NULL;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    if (im->node.array)
        type = im->field.type;
    else if (wanted)
        st = zarr_dtype_find(&type, im->cli->ctx, wanted, &err);
    if (st)
        return cli_fail(im->cli, st, &err, "option --dtype");
    if (type && !im->padded_type && cli_npy_represents(im->type, type)) {
        im->file_type = im->type;
        im->type = type;
    }
    if (type && zarr_dtype_variable(type) && !im->node.array)
        im->new_type = type; /* text and bytes of fixed length can be converted */
    else if (given && !im->node.array && !zarr_dtype_equal(type, im->type))
        return cli_error(im->cli, CLI_USAGE,
                         "Without --dtype the array gets the data type of the file.",
                         "--dtype=%s is not the data type of %s", given, im->source.name);
    return CLI_OK;
}

static int find_type(struct import *im)
{
    struct cli *cli = im->cli;
    const char *text = im->raw             ? wanted_type(im)
                       : im->header.fields ? im->header.fields
                                           : im->header.type;
    /* as ZARR_ORDER_*: of all fields of a raw file */
    const uint32_t order = im->raw ? cli_choice(cli, "byte-order") : 0;
    int rc = find_padded(im);

    im->byte_order = order                  ? order
                     : text && *text == '>' ? ZARR_ORDER_BIG
                                            : ZARR_ORDER_LITTLE;
    if (!rc && text && !im->padded_type)
        rc = cli_file_type(cli, im->source.name, text, &im->type);
    if (rc)
        return rc;
    if (!text && im->node.array)
        im->type = im->field.type;
    else if (!text)
        return cli_error(cli, CLI_USAGE, NULL,
                         "option --dtype is missing: a raw file has no header");
    if (text && *text == '[' && !order)
        im->orders = cli_struct_orders(text);
    im->item_bytes =
        (size_t)zarr_dtype_item_bytes(im->padded_type ? im->padded_type : im->type);
    if (zarr_dtype_variable(im->type))
        return cli_error(cli, CLI_UNSUPPORTED, NULL,
                         "%s: elements of variable length cannot be read from a file of "
                         "raw elements",
                         im->source.name);
    return CLI_OK;
}

/* Whether nested lists without elements match a region without elements. The lists end at
 * the dimension of length 0; the region has the lengths of the dimensions after it. */
static bool is_empty_region(const struct import *im)
{
    const struct cli_elements *e = &im->elements;

    return e->n == 0 && im->selection && e->ndim <= zarr_selection_ndim(im->selection) &&
           zarr_selection_n_items(im->selection) == 0 &&
           memcmp(e->shape, zarr_selection_shape(im->selection),
                  (size_t)e->ndim * sizeof *e->shape) == 0;
}

/* Reads a text file. The type is that of the array, else of --dtype or --like, else
 * string. The shape is that of --shape or of nested lists; lines take the shape of the
 * region. */
static int read_text(struct import *im)
{
    struct cli *cli = im->cli;
    const char *format = im->format;
    const char *text = wanted_type(im);
    bool given = false;
    int rc = cli_shape(cli, "shape", im->header.shape, &im->header.ndim, &given);

    if (!rc && im->node.array)
        im->type = im->field.type;
    else if (!rc)
        rc = cli_file_type(cli, im->source.name, text ? text : "string", &im->type);
    if (rc)
        return rc;
    im->item_bytes = (size_t)zarr_dtype_item_bytes(im->type);
    rc = cli_elements_read(cli, &im->source, format, im->type,
                           im->selection
                               ? zarr_selection_ndim(im->selection) + im->field.ndim
                           : given ? im->header.ndim
                                   : -1,
                           &im->elements);
    if (!rc && !given && im->selection && (*format != 'j' || is_empty_region(im))) {
        given = true;
        im->header.ndim = cli_import_region(im, im->header.shape);
    }
    if (!rc && !given) {
        im->header.ndim = im->elements.ndim;
        memcpy(im->header.shape, im->elements.shape, sizeof im->header.shape);
    } else if (!rc && cli_product(im->header.ndim, im->header.shape) != im->elements.n) {
        rc = cli_error(cli, CLI_USAGE, NULL,
                       "%s holds %" PRIu64 " elements, not %" PRIu64, im->source.name,
                       im->elements.n, cli_product(im->header.ndim, im->header.shape));
    }
    return rc;
}

uint64_t cli_import_bytes(const struct import *im)
{
    if (im->text)
        return im->elements.text_bytes;
    return cli_mul(cli_product(im->header.ndim, im->header.shape), im->item_bytes);
}

static int check_length(struct import *im)
{
    struct stat st;
    uint64_t want = cli_import_bytes(im), have;

    if (!im->can_seek || fstat(im->source.fd, &st) != 0)
        return CLI_OK;
    have = (uint64_t)st.st_size;
    have = have > im->header.data_offset ? have - im->header.data_offset : 0;
    if (have < want || (im->raw && have > want))
        return cli_error(im->cli, im->raw ? CLI_USAGE : CLI_CORRUPT,
                         im->raw ? "Check --shape, --dtype and --offset." : NULL,
                         "%s holds %" PRIu64 " bytes of elements, not %" PRIu64,
                         im->source.name, have, want);
    return CLI_OK;
}

int cli_import_describe(struct import *im)
{
    int rc = find_format(im);

    if (rc)
        return rc;
    if (im->text)
        return read_text(im);
    rc = im->raw ? describe_raw(im) : cli_npy_read(im->cli, &im->source, &im->header);
    if (!rc)
        rc = find_type(im);
    if (!rc && !im->raw)
        rc = find_real_type(im);
    if (!rc)
        im->convert =
            !zarr_dtype_variable(im->type) &&
            (im->new_type || (im->node.array && zarr_dtype_variable(im->field.type)));
    if (!rc)
        rc = check_length(im);
    return rc;
}
