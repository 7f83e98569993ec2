/*
 * reencode/make.c - the metadata of one re-encoded array: those of the source with the
 * options of the command line laid over them.
 */
#include "frame/options.h"
#include "reencode/reencode.h"
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

/* In a group, --chunks and --shards are for arrays of their rank: others do not see them.
 */
static bool fits_rank(const struct reencode *r, const struct cli_value *value,
                      int32_t ndim)
{
    struct cli_string grid = {0};
    uint64_t lengths[ZARR_MAX_RANK];
    int32_t n = 0;

    if (r->src.kind != ZARR_NODE_GROUP || !value->option || !value->text ||
        (strcmp(value->option->name, "chunks") != 0 &&
         strcmp(value->option->name, "shards") != 0) ||
        (!cli_parse_shape(value->text, lengths, &n) &&
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

/* xarray's names in v2 are an attribute; v3 has a place of its own for them. */
static char *without_names(const char *attributes)
{
    struct cli_string out = {0};
    const char *value;
    char *key = NULL;
    size_t bytes = 0;

    cli_string_add(&out, "{", 1);
    for (size_t i = 0; (value = cli_json_member_at(attributes, i, &key, &bytes)); i++) {
        if (strcmp(key, "_ARRAY_DIMENSIONS") != 0) {
            char *quoted = cli_json_quote(key);

            cli_string_printf(&out, "%s%s: %.*s", out.n_bytes > 1 ? ", " : "", quoted,
                              (int)bytes, value);
            free(quoted);
        }
        free(key);
    }
    cli_string_add(&out, "}", 1);
    return out.text;
}

/* As xarray says it of a scalar. */
static bool has_no_names(const char *attributes)
{
    size_t bytes = 0;
    const char *value =
        attributes ? cli_json_member(attributes, "_ARRAY_DIMENSIONS", &bytes) : NULL;

    return value && bytes == 2 && strncmp(value, "[]", 2) == 0;
}

static int make_array(struct reencode *r, zarr_array *source, zarr_store *target,
                      const char *path)
{
    struct cli_spec spec = {.spec = {.struct_size = sizeof spec.spec}};
    zarr_array *made = NULL;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    char *attributes = NULL;
    int rc = cli_spec_like(r->cli, source, &spec);

    if (!rc)
        rc = read_options(r, &spec);
    if (!rc && zarr_array_zarr_format(source) == 2 && spec.spec.zarr_format == 3 &&
        (spec.spec.dimension_names ||
         (spec.spec.ndim == 0 && has_no_names(spec.spec.attributes))) &&
        spec.spec.attributes)
        spec.spec.attributes = attributes = without_names(spec.spec.attributes);
    cli_spec_scalar_names(&spec, source);
    if (!rc)
        st = zarr_array_create(&made, target, path, &spec.spec, NULL, &err);
    if (st)
        rc = cli_fail(r->cli, st, &err, "cannot plan array /%s", path);
    free(attributes);
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
