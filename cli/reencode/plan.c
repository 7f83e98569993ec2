/*
 * reencode/plan.c - what a re-encoded node shall be, and what is there already.
 *
 * The documents of the destination are made in a store in memory, by the same
 * calls that create any node, and reach the destination last: until then there
 * is no node, only chunks and one object, <destination>/.zarrc-job. It holds
 * the source's place and all documents; --resume goes on only where that text
 * is the same to the byte. Order at the end: chunks are durable, documents of
 * nodes below, the node's own document, the job object goes. A kill between
 * any two of these leaves a state that --resume knows.
 */
#include "frame/options.h"
#include "reencode/reencode.h"

#include <stdlib.h>
#include <string.h>

/* ---- documents ------------------------------------------------------------------ */

static int32_t format_of(const struct reencode *r, const struct cli_tree_item *item)
{
    const char *format = cli_text(r->cli, "format");

    return format ? *format - '0' : item->zarr_format;
}

static int plan_group(struct reencode *r, const struct cli_tree_item *item,
                      const char *src_path, const char *dst_path)
{
    zarr_group_open_options opts = {.struct_size = sizeof opts};
    zarr_group *group = NULL, *made = NULL;
    zarr_error err = {0};
    zarr_status st;

    opts.consolidated = ZARR_CONSOLIDATED_NEVER;
    st = zarr_group_open(&group, r->src.store, src_path, &opts, &err);
    if (!st)
        st = zarr_group_create(&made, r->target, dst_path, format_of(r, item),
                               zarr_group_attributes(group), 0, &err);
    zarr_group_free(group);
    zarr_group_free(made);
    r->n_groups++;
    return st ? cli_fail(r->cli, st, &err, "cannot plan group /%s", dst_path) : CLI_OK;
}

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

static int plan_array(struct reencode *r, const char *src_path, const char *dst_path)
{
    struct cli_spec spec = {.spec = {.struct_size = sizeof spec.spec}};
    zarr_array *array = NULL, *made = NULL;
    zarr_error err = {0};
    zarr_status st = zarr_array_open(&array, r->src.store, src_path, NULL, &err);
    char *attributes = NULL;
    int rc = CLI_OK;

    if (st)
        return cli_fail(r->cli, st, &err, "cannot open array /%s", src_path);
    rc = cli_spec_like(r->cli, array, &spec);
    if (!rc)
        rc = read_options(r, &spec);
    if (!rc && zarr_array_zarr_format(array) == 2 && spec.spec.zarr_format == 3 &&
        (spec.spec.dimension_names ||
         (spec.spec.ndim == 0 && has_no_names(spec.spec.attributes))) &&
        spec.spec.attributes)
        spec.spec.attributes = attributes = without_names(spec.spec.attributes);
    cli_spec_scalar_names(&spec, array);
    if (!rc) {
        st = zarr_array_create(&made, r->target, dst_path, &spec.spec, NULL, &err);
        if (st)
            rc = cli_fail(r->cli, st, &err, "cannot plan array /%s", dst_path);
        r->total_bytes = cli_add(r->total_bytes,
                                 cli_mul(cli_product(spec.spec.ndim, spec.spec.shape),
                                         zarr_dtype_item_bytes(zarr_array_dtype(array))));
        r->n_arrays++;
    }
    free(attributes);
    cli_spec_free(&spec);
    zarr_array_free(made);
    zarr_array_free(array);
    return rc;
}

static int plan_item(struct reencode *r, const struct cli_tree_item *item)
{
    char *src_path = cli_path_join(r->src.path, item->path);
    char *dst_path = cli_path_join(r->dst.path, item->path);
    int rc;

    if (item->kind == ZARR_NODE_GROUP)
        rc = plan_group(r, item, src_path, dst_path);
    else if (item->kind == ZARR_NODE_ARRAY)
        rc = plan_array(r, src_path, dst_path);
    else
        rc = cli_error(r->cli, CLI_CORRUPT, "zarrc verify tells what is wrong with it.",
                       "/%s has metadata that cannot be read", src_path);
    free(src_path);
    free(dst_path);
    return rc;
}

/* As the source has it. */
static int plan_consolidated(struct reencode *r)
{
    zarr_group *group = NULL;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    if (r->src.kind != ZARR_NODE_GROUP ||
        zarr_group_open(&group, r->src.store, r->src.path, NULL, NULL) != ZARR_OK)
        return CLI_OK;
    if (zarr_group_is_consolidated(group))
        st = zarr_group_consolidate(r->target, r->dst.path, NULL, &err);
    zarr_group_free(group);
    return st ? cli_fail(r->cli, st, &err, "cannot consolidate the metadata") : CLI_OK;
}

/* ---- the job -------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A whole object as text; NULL: NOT_FOUND or another status in *st. Owned. */
static char *get_text(zarr_store *store, const char *key, zarr_status *st,
                      zarr_error *err)
{
    uint64_t bytes = 0, total = 0;
    char nothing = 0, *text;

    *st = zarr_store_get(store, key, 0, &nothing, &bytes, &total, err);
    if (*st)
        return NULL;
    if (total > (256u << 20)) { /* what no document of ours is */
        *st = ZARR_ERR_LIMIT;
        return NULL;
    }
    text = cli_alloc((size_t)total + 1);
    bytes = total;
    *st = zarr_store_get(store, key, 0, text, &bytes, NULL, err);
    if (*st) {
        free(text);
        return NULL;
    }
    return text;
}

static void add_quoted(struct cli_string *out, const char *before, const char *text)
{
    char *quoted = cli_json_quote(text);

    cli_string_printf(out, "%s%s", before, quoted);
    free(quoted);
}

static void add_source(struct reencode *r)
{
    const char *url = zarr_store_url(r->src.store);
    char *real = realpath(cli_local_root(&r->src), NULL);
    char *place = cli_format("%s:/%s", real ? real : url, r->src.path);

    add_quoted(&r->job, "{\"zarrc_job\": 1, \"source\": ", place);
    free(place);
    free(real);
}

static int make_job(struct reencode *r)
{
    struct cli_keys keys = {0};
    zarr_error err = {0};
    zarr_status st = zarr_store_list(r->target, r->dst.path, ZARR_LIST_RECURSIVE,
                                     cli_keys_add, &keys, &err);

    if (keys.n_items)
        qsort(keys.items, keys.n_items, sizeof *keys.items, compare_keys);
    add_source(r);
    cli_string_printf(&r->job, ", \"documents\": {");
    for (size_t i = 0; i < keys.n_items && !st; i++) {
        char *text = get_text(r->target, keys.items[i], &st, &err);

        add_quoted(&r->job, i ? ",\n" : "\n", keys.items[i]);
        if (text)
            add_quoted(&r->job, ": ", text);
        free(text);
    }
    cli_string_printf(&r->job, "}}\n");
    cli_keys_free(&keys);
    return st ? cli_fail(r->cli, st, &err, "cannot plan %s", r->dst.shown) : CLI_OK;
}

int cli_reencode_plan(struct reencode *r)
{
    zarr_error err = {0};
    zarr_status st = zarr_store_open(&r->target, r->cli->ctx, "memory:", NULL, &err);
    int rc = st ? cli_fail(r->cli, st, &err, "cannot make a store in memory") : CLI_OK;

    if (!rc)
        rc = cli_tree_list(r->cli, &r->src, &r->tree);
    for (size_t i = 0; i < r->tree.n_items && !rc; i++)
        rc = plan_item(r, &r->tree.items[i]);
    if (!rc)
        rc = plan_consolidated(r);
    return rc ? rc : make_job(r);
}

/* ---- what is there -------------------------------------------------------------- */

/* All documents are there as planned. */
static bool documents_equal(struct reencode *r)
{
    struct cli_keys keys = {0};
    bool equal = zarr_store_list(r->target, r->dst.path, ZARR_LIST_RECURSIVE,
                                 cli_keys_add, &keys, NULL) == ZARR_OK;

    for (size_t i = 0; i < keys.n_items; i++) {
        zarr_status st = ZARR_OK;
        char *a = get_text(r->target, keys.items[i], &st, NULL);
        char *b = get_text(r->dst.store, keys.items[i], &st, NULL);

        equal = equal && a && b && strcmp(a, b) == 0;
        free(a);
        free(b);
    }
    cli_keys_free(&keys);
    return equal;
}

static int start_anew(struct reencode *r, const char *key)
{
    zarr_error err = {0};
    zarr_status st;

    st = zarr_store_put(r->dst.store, key, r->job.text, r->job.n_bytes, &err);
    return st ? cli_fail(r->cli, st, &err, "cannot write to %s", r->dst.shown) : CLI_OK;
}

static int begin_force(struct reencode *r, bool has_job)
{
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    if (r->dst.kind == ZARR_NODE_NONE && !has_job)
        return cli_must_be_free(r->cli, &r->dst);
    st = zarr_store_erase_prefix(r->dst.store, r->dst.path, &err);
    return st ? cli_fail(r->cli, st, &err, "cannot delete %s", r->dst.shown) : CLI_OK;
}

static int begin_resume(struct reencode *r, const char *old)
{
    if (old && strcmp(old, r->job.text) != 0)
        return cli_error(r->cli, CLI_EXISTS,
                         "Use the options of the first run, or --force to begin anew.",
                         "what was begun at %s has another source or other options",
                         r->dst.shown);
    if (r->dst.kind != ZARR_NODE_NONE) {
        if (!documents_equal(r))
            return cli_error(r->cli, CLI_EXISTS,
                             "Nothing was changed. --force deletes it first.",
                             "%s is there already, and is something else", r->dst.shown);
        r->state = REENCODE_COMPLETE;
        return CLI_OK;
    }
    if (old) {
        r->state = REENCODE_GO_ON;
        return CLI_OK;
    }
    return cli_must_be_free(r->cli, &r->dst);
}

static int begin_new(struct reencode *r, bool has_job)
{
    if (has_job)
        return cli_error(r->cli, CLI_EXISTS,
                         "--resume goes on with it, --force begins anew.",
                         "an interrupted reencode is at %s", r->dst.shown);
    if (r->dst.kind != ZARR_NODE_NONE)
        return cli_error(r->cli, CLI_EXISTS,
                         "Nothing was changed. --force deletes it first.",
                         "%s is there already", r->dst.shown);
    return cli_must_be_free(r->cli, &r->dst);
}

int cli_reencode_begin(struct reencode *r)
{
    const bool force = cli_flag(r->cli, "force"), resume = cli_flag(r->cli, "resume");
    char *key = cli_path_join(r->dst.path, CLI_JOB_NAME);
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    char *old = get_text(r->dst.store, key, &st, &err);
    int rc;

    if (st && st != ZARR_ERR_NOT_FOUND) {
        rc = cli_fail(r->cli, st, &err, "cannot look at %s", r->dst.shown);
        goto out;
    }
    r->state = REENCODE_START;
    if (force)
        rc = begin_force(r, old != NULL);
    else
        rc = resume ? begin_resume(r, old) : begin_new(r, old != NULL);
    if (!rc && r->state == REENCODE_START)
        rc = start_anew(r, key);
out:
    free(old);
    free(key);
    return rc;
}

int cli_reencode_finish(struct reencode *r)
{
    zarr_copy_options opts = {.struct_size = sizeof opts, .flags = ZARR_COPY_SKIP_EQUAL};
    char *key = cli_path_join(r->dst.path, CLI_JOB_NAME);
    zarr_error err = {0};
    zarr_status st = zarr_store_flush(r->dst.store, &err);

    if (!st)
        st = zarr_node_copy(r->target, r->dst.path, r->dst.store, r->dst.path, &opts,
                            &err);
    if (!st)
        st = zarr_store_flush(r->dst.store, &err);
    if (!st)
        st = zarr_store_erase(r->dst.store, key, &err);
    if (st == ZARR_ERR_NOT_FOUND) /* nothing was to do */
        st = ZARR_OK;
    if (!st)
        st = zarr_store_flush(r->dst.store, &err);
    free(key);
    return st ? cli_fail(r->cli, st, &err, "cannot finish %s", r->dst.shown) : CLI_OK;
}
