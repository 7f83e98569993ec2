/*
 * reencode/make.c - creates the metadata of a new array: that of the source, changed by
 * the options of the command line.
 */
#include "cf/cf.h"
#include "reencode/reencode.h"
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

/* ---- another data type ---- */

/* Whether a value in an attribute is one of the old type, but none of the new one. */
static bool is_lost(const zarr_dtype *from, const zarr_dtype *to, const char *json,
                    size_t n)
{
    char *text = cli_format("%.*s", (int)n, json);
    unsigned char element[16];
    const bool lost = zarr_dtype_parse(from, text, element, NULL) == ZARR_OK &&
                      zarr_dtype_parse(to, text, element, NULL) != ZARR_OK;

    free(text);
    return lost;
}

/* The names that CF and xarray have for such values. _Unsigned gives them another sign,
 * and in v3 the _FillValue of floats is another text. */
static int check_attributes(const struct reencode *r, const zarr_array *source,
                            const zarr_dtype *to)
{
    static const char *const names[] = {"_Unsigned",   "_FillValue", "missing_value",
                                        "valid_range", "valid_min",  "valid_max",
                                        "flag_values", "flag_masks", NULL};
    const zarr_dtype *from = zarr_array_dtype(source);
    const char *all = zarr_array_attributes(source);
    const bool is_other_fill = zarr_array_zarr_format(source) == 3 &&
                               (zarr_dtype_kind(from) == ZARR_KIND_FLOAT) !=
                                   (zarr_dtype_kind(to) == ZARR_KIND_FLOAT);

    for (int k = 0; names[k]; k++) {
        size_t n = 0;
        const char *value = cli_json_member(all, names[k], &n), *item = value;
        bool lost = value && (k == 0 || (k == 1 && is_other_fill));

        for (size_t i = 0; item && !lost; i++) {
            item = *value == '[' ? cli_json_item(value, i, &n) : i == 0 ? value : NULL;
            lost = item && is_lost(from, to, item, n);
        }
        if (lost)
            return cli_error(r->cli, CLI_USAGE, "--attributes replaces all of them.",
                             "attribute %s of %s has no meaning for %s: %.*s", names[k],
                             r->src.shown, cli_type_name(to), (int)n, item);
    }
    return CLI_OK;
}

/* Filters such as fixedscaleoffset and delta say which type they read. */
static int check_codecs(const struct reencode *r, const zarr_array *source,
                        const zarr_dtype *to)
{
    const char *list = zarr_array_codecs(source), *codec = list;
    size_t n = 0, skipped;

    for (size_t i = 0; codec && (codec = cli_json_item(list, i, &n)); i++) {
        const char *config = cli_json_member(codec, "configuration", &skipped);

        if (config && (cli_json_member(config, "dtype", &skipped) ||
                       cli_json_member(config, "decode_dtype", &skipped)))
            return cli_error(r->cli, CLI_USAGE, "--codec gives other codecs.",
                             "a codec of %s is not for %s: %.*s", r->src.shown,
                             cli_type_name(to), (int)n, codec);
    }
    return CLI_OK;
}

/* Converts the fill value as the elements are converted. *fill: owned text. */
static int cast_metadata(struct reencode *r, const zarr_array *source,
                         zarr_array_spec *spec, char **fill)
{
    const zarr_dtype *from = zarr_array_dtype(source), *to = NULL;
    const void *element = spec->fill_value ? NULL : zarr_array_fill_value(source);
    unsigned char one[16] = {0}, value[16];
    zarr_error err = {0};
    uint64_t n = 1;
    zarr_status st = zarr_dtype_find(&to, r->cli->ctx, spec->data_type, &err);
    const struct reencode_types types = {from, to};
    int rc = CLI_OK;

    if (!st && !(cf_is_number(from) && cf_is_number(to)))
        return cli_error(r->cli, CLI_UNSUPPORTED,
                         "Only integers and floats are converted.", "%s cannot become %s",
                         cli_type_name(from), cli_type_name(to));
    if (!st)
        st = zarr_dtype_parse(from, "1", one, &err);
    if (!st)
        st = cli_reencode_convert(r, &types, one, &n, value, &err);
    if (st)
        return cli_fail(r->cli, st, &err, "cannot convert %s", r->src.shown);
    if (element && cli_reencode_convert(r, &types, element, &n, value, &err))
        return cli_error(r->cli, CLI_USAGE, "--fill gives another fill value.",
                         "the fill value of %s has no value in %s", r->src.shown,
                         cli_type_name(to));
    if (element)
        *fill = cli_fill_text(to, value, &err);
    if (!spec->fill_value)
        spec->fill_value = *fill ? *fill : "null";
    if (!spec->codecs && !zarr_dtype_equal(from, to))
        rc = check_codecs(r, source, to);
    return rc || spec->attributes ? rc : check_attributes(r, source, to);
}

/* ---- one array ---- */

/* Whether an option applies to an array of rank ndim. In a group, --chunks and --shards
 * only apply to arrays that have their rank. */
static bool fits_rank(const struct reencode *r, const struct cli_value *value,
                      int32_t ndim)
{
    struct cli_string grid = {0};
    uint64_t lengths[ZARR_MAX_RANK];
    int32_t n = 0;

    if (r->src.kind != ZARR_NODE_GROUP || !value->option || !value->text ||
        (strcmp(value->option->name, "chunks") != 0 &&
         strcmp(value->option->name, "shards") != 0) ||
        (!cli_parse_shape(value->text, false, lengths, &n) &&
         !cli_edges_parse(value->text, &grid, &n))) {
        cli_string_free(&grid);
        return true;
    }
    cli_string_free(&grid);
    return n == ndim || (n == 1 && ndim > 1);
}

static int read_options(struct reencode *r, struct cli_spec *spec)
{
    struct cli_values values = *r->cli->values;
    struct cli cli = *r->cli;
    int rc;

    values.items = cli_alloc((values.n_items + 1) * sizeof *values.items);
    values.n_items = 0;
    for (size_t i = 0; i < r->cli->values->n_items; i++)
        if (fits_rank(r, &r->cli->values->items[i], spec->spec.ndim))
            values.items[values.n_items++] = r->cli->values->items[i];
    cli.values = &values;
    rc = cli_spec_read(&cli, spec);
    free(values.items);
    return rc;
}

static int make_array(struct reencode *r, zarr_array *source, zarr_store *target,
                      const char *path)
{
    const struct reencode_region *region = cli_reencode_region(r, source);
    struct cli_spec spec = {.spec = {.struct_size = sizeof spec.spec}};
    char *fill = NULL;
    zarr_array *made = NULL;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc;

    cli_spec_like(&spec, source);
    rc = read_options(r, &spec);
    spec.spec.flags |= ZARR_SPEC_KEEP_FILL; /* the library keeps the missing value */
    spec.spec.data_type = cli_text(r->cli, "dtype");
    if (region && region->selection)
        spec.spec.shape = zarr_selection_shape(region->selection);
    if (!rc && spec.spec.data_type)
        rc = cast_metadata(r, source, &spec.spec, &fill);
    if (!rc && r->regions && !region)
        st = cli_set_error(&err, ZARR_ERR_CONFLICT, "another writer created the source");
    if (!rc && !st)
        st = zarr_array_create(&made, target, path, &spec.spec, NULL, &err);
    if (st)
        rc = cli_fail(r->cli, st, &err, "cannot plan array /%s", path);
    free(fill);
    cli_spec_free(&spec);
    zarr_array_free(made);
    return rc;
}

zarr_status cli_reencode_make(void *user, zarr_array *source, zarr_store *target,
                              const char *path, zarr_error *err)
{
    struct reencode *r = user;

    (void)err;
    r->rc = make_array(r, source, target, path);
    return r->rc ? ZARR_ERR_INVALID : ZARR_OK;
}
