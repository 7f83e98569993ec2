/*
 * cf/coordinate.c - reads coordinate arrays: their values as numbers, and as text again.
 * Times are instants, and text is its index in the coordinate.
 */
#include "cf/cf.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Opens `name` in the group above `path`, or in the next one that has it. */
static int open_coordinate(struct cli *cli, zarr_store *store, const char *path,
                           const char *name, zarr_array **out)
{
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = cli_cancel};
    char *group = cli_strdup(path);
    int rc = CLI_OK;

    for (*out = NULL; !rc && !*out && *group;) {
        char *slash = strrchr(group, '/'), *full;
        zarr_error err = {0};
        zarr_status st;

        (slash ? slash : group)[0] = '\0';
        full = cli_path_join(group, name);
        st = zarr_array_open(out, store, full, &opts, &err);
        if (st != ZARR_OK && st != ZARR_ERR_NOT_FOUND && st != ZARR_ERR_INVALID)
            rc = cli_fail(cli, st, &err, "cannot open coordinate /%s", full);
        free(full);
    }
    free(group);
    return rc;
}

static bool is_time(const struct cf_coordinate *c)
{
    return c->cf.kind == CF_TIME;
}

static bool is_text(const zarr_dtype *type)
{
    const uint32_t kind = zarr_dtype_kind(type);

    return kind == ZARR_KIND_STRING || kind == ZARR_KIND_UTF32 || kind == ZARR_KIND_BYTES;
}

/* The text of one value; owned. */
static char *read_text(const struct cf *cf, const char *element)
{
    char *json, *text = NULL;

    if (zarr_dtype_kind(cf->type) == ZARR_KIND_BYTES)
        return cli_format("%.*s", (int)cf->value_bytes, element);
    json = cli_fill_text(cf->type, element, NULL);
    if (json)
        text = cli_json_unquote(json, strlen(json));
    free(json);
    return text ? text : cli_strdup("");
}

static void decode_values(struct cf_coordinate *c, const char *elements)
{
    if (is_text(c->cf.type))
        c->text = cli_alloc((size_t)c->n * sizeof *c->text + 1);
    for (uint64_t i = 0; i < c->n; i++, elements += c->cf.value_bytes) {
        const int64_t instant = is_time(c) ? cf_time(&c->cf, elements) : 0;

        if (c->text)
            c->text[i] = read_text(&c->cf, elements);
        c->value[i] = c->text                 ? (double)i
                      : instant == CF_NO_TIME ? (double)NAN
                      : is_time(c)            ? (double)instant
                                              : cf_number(&c->cf, elements);
    }
}

static int read_values(struct cli *cli, const char *name, const char *part,
                       struct cf_coordinate *c)
{
    zarr_io_options opts = {.struct_size = sizeof opts, .cancel = cli_cancel};
    const int32_t ndim = zarr_array_ndim(c->array);
    const uint64_t *shape;
    zarr_tensor tensor = {.struct_size = sizeof tensor};
    zarr_selection *selection = NULL;
    zarr_error err = {0};
    zarr_status st;
    uint64_t bytes;
    char *elements;

    st = zarr_selection_parse(&selection, ndim, zarr_array_shape(c->array), part, &err);
    if (st)
        return cli_fail(cli, st, &err, "cannot select [%s] of coordinate %s", part, name);
    shape = zarr_selection_shape(selection);
    c->n = cli_product(ndim - c->cf.joins, shape);
    bytes = cli_mul(c->n, c->cf.value_bytes + 4 * sizeof *c->value);
    if (bytes > (cli->memory_bytes ? cli->memory_bytes : 1u << 30)) {
        zarr_selection_free(selection);
        return cli_error(cli, CLI_CORRUPT, "Raise --mem, or select by index: NAME=INDEX.",
                         "coordinate %s is too large", name);
    }
    bytes = c->n * c->cf.value_bytes;
    elements = cli_alloc((size_t)bytes + 1);
    c->value = cli_alloc((size_t)c->n * sizeof *c->value + 1);
    zarr_tensor_host(&tensor, NULL, elements, bytes, ndim, shape);
    if (zarr_dtype_variable(c->cf.type))
        st = zarr_heap_create(&opts.heap, cli->ctx, 0, &err);
    if (!st)
        st = zarr_array_read(c->array, selection, &tensor, &opts, &err);
    if (!st)
        decode_values(c, elements);
    zarr_selection_free(selection);
    zarr_heap_free(opts.heap);
    free(elements);
    return st ? cli_fail_array(cli, c->array, st, &err, "cannot read coordinate %s", name)
              : CLI_OK;
}

int cf_coordinate_read(struct cli *cli, zarr_store *store, const char *path,
                       const char *name, const char *part, uint64_t length,
                       struct cf_coordinate *out)
{
    const zarr_dtype *type;
    int rc = open_coordinate(cli, store, path, name, &out->array);

    if (rc || !out->array)
        return rc;
    type = zarr_array_dtype(out->array);
    rc = cf_find(cli, out->array, type, name, &out->cf);
    out->is_line = zarr_array_ndim(out->array) == 1 + out->cf.joins;
    if (!rc && (is_time(out) || is_text(type) || cf_is_number(type)) &&
        (!part || (out->is_line && zarr_array_shape(out->array)[0] == length)))
        return read_values(cli, name, part ? part : "...", out);
    cf_coordinate_free(out);
    return rc;
}

void cf_coordinate_free(struct cf_coordinate *c)
{
    for (uint64_t i = 0; i < c->n && c->text; i++)
        free(c->text[i]);
    free(c->text);
    cf_free(&c->cf);
    zarr_array_free(c->array);
    free(c->value);
    *c = (struct cf_coordinate){0};
}

void cf_coordinate_print(const struct cf_coordinate *c, uint64_t i,
                         struct cli_string *out)
{
    const double v = c->value[i];

    if (c->text)
        cli_string_printf(out, "%s", c->text[(uint64_t)v]);
    else if (is_time(c))
        cf_instant_print(c->cf.units.calendar, isnan(v) ? CF_NO_TIME : (int64_t)v, out);
    else
        cli_string_printf(out, "%.*g", zarr_dtype_item_bytes(c->cf.decoded) == 4 ? 7 : 12,
                          v);
}
