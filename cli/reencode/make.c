/*
 * reencode/make.c - creates the metadata of one re-encoded array: that of the source,
 * changed by the options of the command line.
 */
#include "reencode/reencode.h"
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

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
    struct cli_spec spec = {.spec = {.struct_size = sizeof spec.spec}};
    zarr_array *made = NULL;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc;

    cli_spec_like(&spec, source);
    rc = read_options(r, &spec);
    spec.spec.flags |= ZARR_SPEC_KEEP_FILL; /* the library keeps the missing value */
    if (!rc)
        st = zarr_array_create(&made, target, path, &spec.spec, NULL, &err);
    if (st)
        rc = cli_fail(r->cli, st, &err, "cannot plan array /%s", path);
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
