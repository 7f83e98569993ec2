/*
 * import/file.c - what the file of zarrc import holds: its data type, shape and layout,
 * by its head, by the options or by its text.
 */
#include "import/import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what the file holds ---- */

int cli_import_open(struct import *im)
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

int32_t cli_import_region(const struct import *im, uint64_t shape[ZARR_MAX_RANK])
{
    const int32_t ndim = zarr_selection_ndim(im->selection);

    memcpy(shape, zarr_selection_shape(im->selection), (size_t)ndim * sizeof *shape);
    memcpy(shape + ndim, im->field.shape, (size_t)im->field.ndim * sizeof *shape);
    return ndim + im->field.ndim;
}

/* --input, else what the name tells as export has it, else raw where --dtype is given: a
 * .npy file says its own. */
static int find_format(struct import *im)
{
    const char *said = cli_text(im->cli, "input");
    const char *named = im->is_stdin ? NULL : cli_format_of_name(im->name);

    if (said && strcmp(said, "auto") != 0)
        im->format = said;
    else if (named)
        im->format = named;
    else
        im->format = cli_text(im->cli, "dtype") ? "raw" : "npy";
    im->raw = strcmp(im->format, "raw") == 0;
    im->text = cli_is_text_format(im->format);
    if (!im->raw && !im->text && strcmp(im->format, "npy") != 0)
        return cli_error(im->cli, CLI_USAGE,
                         "zarrc export writes json and elements, which come in again; "
                         "--input says what another file is.",
                         "%s is %s by its name, which is not read", im->name, im->format);
    return CLI_OK;
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
        im->head.ndim = cli_import_region(im, im->head.shape);
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

/* NumPy's file of a type that NumPy lacks says opaque bytes, and int8 of int4: they are
 * what --dtype says, or what the array has. */
static int find_meant(struct import *im)
{
    const char *said = cli_text(im->cli, "dtype");
    const zarr_dtype *type = NULL;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    if (im->node.array)
        type = im->field.type;
    else if (said)
        st = zarr_dtype_find(im->cli->ctx, said, &type, &err);
    if (st)
        return cli_fail(im->cli, st, &err, "option --dtype");
    if (type && !im->padded && cli_npy_stands_for(im->type, type)) {
        im->said = im->type;
        im->type = type;
    }
    if (type && zarr_dtype_variable(type) && !im->node.array)
        im->made = type; /* text and bytes of a fixed length can */
    else if (type && !im->node.array && !zarr_dtype_equal(type, im->type))
        return cli_error(im->cli, CLI_USAGE, "Without --dtype they stay what they are.",
                         "elements of %s are no %s", im->name, said);
    return CLI_OK;
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
        im->type = im->field.type;
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

/* Lists end at a dimension of length 0: those behind it are the region's. */
static bool is_empty_region(const struct import *im)
{
    const struct cli_elements *e = &im->elements;

    return e->n == 0 && im->selection && e->ndim <= zarr_selection_ndim(im->selection) &&
           zarr_selection_n_items(im->selection) == 0 &&
           memcmp(e->shape, zarr_selection_shape(im->selection),
                  (size_t)e->ndim * sizeof *e->shape) == 0;
}

/* A text: its type by --dtype, else the array's, else text of any length. Lists have a
 * shape; lines take that of --shape or of the region. */
static int read_text(struct import *im)
{
    struct cli *cli = im->cli;
    const char *format = im->format;
    const char *text = cli_text(cli, "dtype");
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    bool given = false;
    int rc = cli_shape(cli, "shape", im->head.shape, &im->head.ndim, &given);

    if (rc)
        return rc;
    if (im->node.array)
        im->type = im->field.type;
    else
        st = zarr_dtype_find(cli->ctx, text ? text : "string", &im->type, &err);
    if (st)
        return cli_fail(cli, st, &err, "data type of %s", im->name);
    im->item_bytes = (size_t)zarr_dtype_item_bytes(im->type);
    rc = cli_elements_read(cli, im->file, im->name, format, im->type,
                           im->selection
                               ? zarr_selection_ndim(im->selection) + im->field.ndim
                           : given ? im->head.ndim
                                   : -1,
                           &im->elements);
    if (!rc && !given && im->selection && (*format != 'j' || is_empty_region(im))) {
        given = true;
        im->head.ndim = cli_import_region(im, im->head.shape);
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

uint64_t cli_import_bytes(const struct import *im)
{
    if (im->text)
        return im->elements.text_bytes;
    return cli_mul(cli_product(im->head.ndim, im->head.shape), im->item_bytes);
}

static int check_length(struct import *im)
{
    struct stat st;
    uint64_t want = cli_import_bytes(im), have;

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

int cli_import_describe(struct import *im)
{
    int rc = find_format(im);

    if (rc)
        return rc;
    if (im->text)
        return read_text(im);
    rc =
        im->raw ? describe_raw(im) : cli_npy_read(im->cli, im->file, im->name, &im->head);
    if (!rc)
        rc = find_type(im);
    if (!rc && !im->raw)
        rc = find_meant(im);
    if (!rc) /* one by one */
        im->convert =
            !zarr_dtype_variable(im->type) &&
            (im->made || (im->node.array && zarr_dtype_variable(im->field.type)));
    if (!rc)
        rc = check_length(im);
    return rc;
}
