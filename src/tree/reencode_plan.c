/*
 * tree/reencode_plan.c - plans the documents of a re-encoded node, and finds out what is
 * at the destination.
 *
 * The documents of the destination are made in a store in memory, by the calls that
 * create any node, and reach the destination last. Until then there is no node, only
 * chunks and one object, <destination>/.zarrc-job. It contains the source's place and all
 * documents. RESUME goes on only if that text is the same to the byte. At the end, in
 * this order, the chunks are made durable, the documents of nodes below are written, then
 * the node's own document, and the job object is deleted. A kill between any two of these
 * leaves a state that RESUME knows.
 */
#include "tree/reencode_int.h"

#include <string.h>

/* ---- documents --------------------------------------------------------- */

static zarr_status plan_group(struct zr_reencode *r, const struct zr_node_row *node,
                              const char *src_path, const char *dst_path, zarr_error *err)
{
    const int32_t format = r->opts.zarr_format ? r->opts.zarr_format : node->format;
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    zarr_group_spec spec = ZARR_GROUP_SPEC_INIT;
    zarr_group *group = NULL, *made = NULL;
    zarr_status st = ZARR_OK;

    opts.consolidated = ZARR_CONSOLIDATED_NEVER;
    opts.cancel = r->opts.cancel;
    ZR_TRY(zarr_group_open(&group, r->src, src_path, &opts, err));
    spec.zarr_format = format;
    spec.attributes = zarr_group_attributes(group);
    if (!spec.attributes)
        ZR_FAIL_MEMORY(err, 1);
    if (format != node->format)
        ZR_TRY(zr_reencode_ome(r, spec.attributes, src_path, format, err));
    ZR_TRY(zarr_group_create(&made, r->target, dst_path, &spec, NULL, err));
    r->result.n_groups++;
out:
    zarr_group_free(group);
    zarr_group_free(made);
    return st;
}

/* Takes the source's own document, which may have more than a spec can express. */
static zarr_status spec_same(zarr_array *array, zarr_array_spec *spec, zarr_error *err)
{
    spec->zarr_format = zarr_array_zarr_format(array);
    spec->document = zarr_array_metadata(array);
    if (spec->zarr_format == 2)
        spec->attributes = zarr_array_attributes(array);
    return spec->document && (spec->zarr_format == 3 || spec->attributes)
               ? ZARR_OK
               : zr_fail_memory(err, 1);
}

/* Members of `changes` for arrays of another rank are ignored for this array. */
static void spec_apply_changes(const struct zr_reencode *r, zarr_array *array,
                               zarr_array_spec *spec)
{
    *spec = r->changes;
    spec->like = array;
    spec->flags |= ZARR_SPEC_KEEP_FILL; /* reencode_missing.c decides */
    if (r->opts.zarr_format)
        spec->zarr_format = r->opts.zarr_format;
    if (spec->ndim != zarr_array_ndim(array)) {
        spec->chunk_shape = spec->shard_shape = NULL;
        spec->chunk_grid = NULL;
        spec->dimension_names = NULL;
    }
}

static zarr_status plan_like(struct zr_reencode *r, zarr_array *array,
                             const char *dst_path, zarr_error *err)
{
    const bool other =
        r->opts.zarr_format && r->opts.zarr_format != zarr_array_zarr_format(array);
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *made = NULL;
    zarr_status st = ZARR_OK;

    if (r->opts.changes || other)
        spec_apply_changes(r, array, &spec);
    else
        ZR_TRY(spec_same(array, &spec, err));
    st = zarr_array_create(&made, r->target, dst_path, &spec, NULL, err);
out:
    zarr_array_free(made);
    return st;
}

static bool same_elements_as(const zarr_array *a, const zarr_array *b)
{
    const int32_t ndim = zarr_array_ndim(a);

    return (ndim == 0 || memcmp(zarr_array_shape(a), zarr_array_shape(b),
                                (size_t)ndim * sizeof(uint64_t)) == 0) &&
           zarr_dtype_equal(zarr_array_dtype(a), zarr_array_dtype(b));
}

static zarr_status plan_array(struct zr_reencode *r, const char *src_path,
                              const char *dst_path, zarr_error *err)
{
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = r->opts.cancel};
    zarr_array *array = NULL, *made = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zarr_array_open(&array, r->src, src_path, &opts, err));
    if (r->opts.make)
        ZR_TRY(r->opts.make(r->opts.make_user, array, r->target, dst_path, err));
    else
        ZR_TRY(plan_like(r, array, dst_path, err));
    ZR_TRY(zarr_array_open(&made, r->target, dst_path, NULL, err));
    if (zarr_array_ndim(array) != zarr_array_ndim(made) ||
        (!r->opts.read && !same_elements_as(array, made)))
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "/%s: the new array has another shape or data type", src_path);
    if (zarr_dtype_equal(zarr_array_dtype(array), zarr_array_dtype(made)))
        ZR_TRY(zr_reencode_keep_missing(r, array, made, dst_path, err));
    r->result.bytes = zr_add_cap(r->result.bytes, zr_decoded_bytes(made));
    r->result.n_arrays++;
out:
    zarr_array_free(made);
    zarr_array_free(array);
    return st;
}

static zarr_status plan_node(struct zr_reencode *r, const struct zr_node_row *node,
                             zarr_error *err)
{
    struct zr_str src, dst;
    zarr_status st = ZARR_OK;

    zr_str_init(&src, r->ctx->alloc);
    zr_str_init(&dst, r->ctx->alloc);
    ZR_TRY(zr_path_key(&src, r->src_path, node->path, err));
    ZR_TRY(zr_path_key(&dst, r->dst_path, node->path, err));
    ZR_TRY(zr_cancel_check(r->opts.cancel, err));
    if (node->kind == ZARR_NODE_GROUP)
        ZR_TRY(plan_group(r, node, zr_str_text(&src), zr_str_text(&dst), err));
    else if (node->kind == ZARR_NODE_ARRAY)
        ZR_TRY(plan_array(r, zr_str_text(&src), zr_str_text(&dst), err));
    else
        ZR_FAIL(err, ZARR_ERR_CORRUPT, "/%s has metadata that cannot be read",
                zr_str_text(&src));
out:
    zr_str_deinit(&src);
    zr_str_deinit(&dst);
    return st;
}

/* Consolidates the groups that are consolidated in the source. */
static zarr_status consolidate_target(struct zr_reencode *r, zarr_error *err)
{
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    zarr_group *group = NULL;
    zarr_status st = ZARR_OK;

    opts.consolidated = ZARR_CONSOLIDATED_NEVER;
    ZR_TRY(zarr_group_open(&group, r->target, r->dst_path, &opts, err));
    ZR_TRY(zarr_group_consolidate(group, NULL, err));
out:
    zarr_group_free(group);
    return st;
}

static zarr_status plan_consolidated(struct zr_reencode *r, zarr_error *err)
{
    const zarr_group_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = r->opts.cancel};
    zarr_group *group = NULL;
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    if (r->nodes.item[0].kind != ZARR_NODE_GROUP)
        return ZARR_OK;
    st = zarr_group_open(&group, r->src, r->src_path, &opts, &why);
    if (st == ZARR_OK && zarr_group_is_consolidated(group))
        st = consolidate_target(r, err);
    else /* broken consolidated metadata is not copied */
        st = st == ZARR_ERR_NO_MEMORY || st == ZARR_ERR_CANCELLED ? zr_pass(err, st, &why)
                                                                  : ZARR_OK;
    zarr_group_free(group);
    return st;
}

/* ---- texts of objects -------------------------------------------------- */

/* Reads a whole object at the destination's path. If NOT_FOUND, err is not set. */
static zarr_status job_text(struct zr_doc *d, const struct zr_reencode *r,
                            zarr_store *store, const char *name, zarr_error *err)
{
    const struct zr_doc_source from = {.store = store,
                                       .path = r->dst_path,
                                       .name = name,
                                       .large = true,
                                       .cancel = r->opts.cancel};

    return zr_doc_get(d, &from, err);
}

/* Lists the keys of the planned documents, in order. */
static zarr_status planned_keys(const struct zr_reencode *r, struct zr_names *keys,
                                zarr_error *err)
{
    zr_names_init(keys, r->ctx->alloc);
    return zr_names_keys(keys, r->target, r->dst_path, err);
}

static void add_string(struct zr_str *out, const char *before, const char *text)
{
    zr_str_puts(out, before);
    zr_json_write_string(out, text, strlen(text));
}

static void add_source(struct zr_reencode *r)
{
    struct zr_str place;

    zr_str_init(&place, r->ctx->alloc);
    zr_store_place(&place, r->src, r->src_path);
    add_string(&r->job, "{\"zarrc_job\": 1, \"source\": ", zr_str_text(&place));
    if (r->opts.read_text)
        add_string(&r->job, ", \"read\": ", r->opts.read_text);
    r->job.failed = r->job.failed || place.failed;
    zr_str_deinit(&place);
}

static zarr_status make_job(struct zr_reencode *r, zarr_error *err)
{
    struct zr_names keys;
    struct zr_str key;
    struct zr_doc doc;
    zarr_status st = planned_keys(r, &keys, err);

    zr_str_init(&key, r->ctx->alloc);
    add_source(r);
    zr_str_puts(&r->job, ", \"documents\": {");
    for (size_t i = 0; i < keys.n && st == ZARR_OK; i++) {
        st = zr_path_key(&key, r->dst_path, keys.item[i], err);
        zr_doc_init(&doc, r->ctx->alloc);
        if (st == ZARR_OK)
            st = job_text(&doc, r, r->target, keys.item[i], err);
        if (st == ZARR_OK) {
            add_string(&r->job, i ? ",\n" : "\n", zr_str_text(&key));
            add_string(&r->job, ": ", doc.text);
        }
        zr_doc_deinit(&doc);
    }
    zr_str_puts(&r->job, "}}\n");
    if (st == ZARR_OK)
        st = zr_str_status(&r->job, err);
    zr_str_deinit(&key);
    zr_names_deinit(&keys);
    return st;
}

zarr_status zr_reencode_plan(struct zr_reencode *r, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(zarr_store_open(&r->target, r->ctx, "memory:", NULL, err));
    for (size_t i = 0; i < r->nodes.n; i++)
        ZR_TRY(plan_node(r, &r->nodes.item[i], err));
    ZR_TRY(plan_consolidated(r, err));
    ZR_TRY(make_job(r, err));
out:
    return st;
}

/* ---- what is there ----------------------------------------------------- */

/* Finds out whether all documents exist as planned. */
static zarr_status documents_equal(const struct zr_reencode *r, bool *equal,
                                   zarr_error *err)
{
    struct zr_names keys;
    struct zr_doc doc[2];
    zarr_status st = planned_keys(r, &keys, err);

    *equal = true;
    for (size_t i = 0; i < keys.n && st == ZARR_OK && *equal; i++) {
        for (int k = 0; k < 2; k++)
            zr_doc_init(&doc[k], r->ctx->alloc);
        st = job_text(&doc[0], r, r->target, keys.item[i], err);
        if (st == ZARR_OK)
            st = job_text(&doc[1], r, r->dst, keys.item[i], err);
        *equal = st == ZARR_OK && doc[0].bytes == doc[1].bytes &&
                 memcmp(doc[0].text, doc[1].text, doc[0].bytes) == 0;
        if (st == ZARR_ERR_NOT_FOUND || st == ZARR_ERR_LIMIT)
            st = ZARR_OK;
        for (int k = 0; k < 2; k++)
            zr_doc_deinit(&doc[k]);
    }
    zr_names_deinit(&keys);
    return st;
}

static zarr_status in_the_way(struct zr_reencode *r, uint32_t found, const char *what,
                              zarr_error *err)
{
    r->result.found = found;
    return zr_fail(err, ZARR_ERR_EXISTS, "%s /%s", what, r->dst_path);
}

static int any_key(void *user, const zarr_store_item *item)
{
    ZR_UNUSED(item);
    *(bool *)user = true;
    return 1;
}

static zarr_status must_be_free(struct zr_reencode *r, zarr_error *err)
{
    bool any = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_store_list(r->dst, r->dst_path, ZARR_LIST_RECURSIVE, any_key, &any,
                         r->opts.cancel, err));
    if (any)
        st = in_the_way(r, ZARR_REENCODE_FOUND_FILES, "keys that are not a node are at",
                        err);
out:
    return st;
}

/* What was found at the destination. */
struct reencode_there {
    bool node, job;
    const char *text; /* text of the job object */
};

/* A node that is erased in part must not look like a node with missing chunks. */
static zarr_status begin_overwrite(struct zr_reencode *r, const struct reencode_there *t,
                                   zarr_error *err)
{
    const struct zr_erase_watch watch = {
        .cancel = r->opts.cancel,
        .consolidated = (r->opts.flags & ZARR_REENCODE_CONSOLIDATED) != 0};

    if (!t->node && !t->job)
        return must_be_free(r, err);
    return zr_node_erase_watched(r->dst, r->dst_path, &watch, err);
}

static zarr_status begin_resume(struct zr_reencode *r, const struct reencode_there *t,
                                zarr_error *err)
{
    bool equal = false;
    zarr_status st = ZARR_OK;

    if (t->job && !zr_streq(t->text, zr_str_text(&r->job)))
        return in_the_way(
            r, ZARR_REENCODE_FOUND_OTHER_JOB,
            "an interrupted call with another source or other choices is at", err);
    if (t->node) {
        ZR_TRY(documents_equal(r, &equal, err));
        r->result.state = ZARR_REENCODE_COMPLETE;
        if (!equal)
            st = in_the_way(r, ZARR_REENCODE_FOUND_NODE, "another node is at", err);
        goto out;
    }
    if (t->job)
        r->result.state = ZARR_REENCODE_RESUMED;
    else
        st = must_be_free(r, err);
out:
    return st;
}

static zarr_status begin_new(struct zr_reencode *r, const struct reencode_there *t,
                             zarr_error *err)
{
    if (t->job)
        return in_the_way(r, ZARR_REENCODE_FOUND_JOB, "an interrupted call is at", err);
    if (t->node)
        return in_the_way(r, ZARR_REENCODE_FOUND_NODE, "a node is at", err);
    return must_be_free(r, err);
}

/* A node with a broken document counts as a node: nothing may be mixed with it. */
static zarr_status look_at_destination(const struct zr_reencode *r, struct zr_doc *job,
                                       struct reencode_there *out, zarr_error *err)
{
    uint32_t kind = ZARR_NODE_NONE;
    int32_t format = 0;
    zarr_error why = {0};
    zarr_status st =
        zarr_node_probe(r->dst, r->dst_path, &kind, &format, r->opts.cancel, &why);

    out->node = kind != ZARR_NODE_NONE;
    if (st != ZARR_OK && format == 0)
        return zr_pass(err, st, &why);
    st = job_text(job, r, r->dst, ZR_DOC_JOB, err);
    out->job = st == ZARR_OK;
    out->text = job->text;
    return st == ZARR_ERR_NOT_FOUND ? ZARR_OK : st;
}

/* Another call may have begun here, or even ended, since look_at_destination(). */
static zarr_status put_job(struct zr_reencode *r, zarr_error *err)
{
    zarr_error e = {0};
    zarr_status st = zr_job_begin(r->dst, r->dst_path, &r->job, r->opts.cancel, &e);

    if (st == ZARR_ERR_EXISTS)
        return in_the_way(r, ZARR_REENCODE_FOUND_JOB, "another call is at work at", err);
    if (st == ZARR_OK) {
        st = zr_node_must_be_new(r->dst, r->dst_path, r->opts.cancel, &e);
        if (st != ZARR_OK && (st != ZARR_ERR_EXISTS || zr_job_is_exclusive(r->dst)))
            (void)zr_job_erase(r->dst, r->dst_path, r->opts.cancel, NULL);
        if (st == ZARR_ERR_EXISTS)
            return in_the_way(r, ZARR_REENCODE_FOUND_NODE, "a node is at", err);
    }
    return zr_pass(err, st, &e);
}

zarr_status zr_reencode_begin(struct zr_reencode *r, zarr_error *err)
{
    struct reencode_there there = {0};
    struct zr_doc job;
    zarr_status st = ZARR_OK;

    zr_doc_init(&job, r->ctx->alloc);
    /* before hours of work, and before a node that is replaced goes */
    ZR_TRY(zr_parents_check(r->dst, r->dst_path, r->opts.cancel, err));
    ZR_TRY(look_at_destination(r, &job, &there, err));
    r->result.state = ZARR_REENCODE_NEW;
    if (r->opts.flags & ZARR_REENCODE_OVERWRITE)
        ZR_TRY(begin_overwrite(r, &there, err));
    else if (r->opts.flags & ZARR_REENCODE_RESUME)
        ZR_TRY(begin_resume(r, &there, err));
    else
        ZR_TRY(begin_new(r, &there, err));
    if (r->result.state == ZARR_REENCODE_NEW)
        ZR_TRY(put_job(r, err));
out:
    zr_doc_deinit(&job);
    return st;
}

zarr_status zr_reencode_finish(struct zr_reencode *r, zarr_error *err)
{
    zarr_copy_options opts = ZARR_COPY_OPTIONS_INIT;
    struct zr_str key;
    zarr_status st = ZARR_OK;

    opts.flags = ZARR_COPY_SKIP_EQUAL;
    opts.cancel = r->opts.cancel;
    zr_str_init(&key, r->ctx->alloc);
    ZR_TRY(zr_path_key(&key, r->dst_path, ZR_DOC_JOB, err));
    ZR_TRY(zr_store_flush_before(r->dst, r->opts.cancel, err));
    ZR_TRY(zr_node_copy_plain(r->target, r->dst_path, r->dst, r->dst_path, &opts, err));
    ZR_TRY(zr_store_flush_before(r->dst, r->opts.cancel, err));
    st = zarr_store_erase(r->dst, zr_str_text(&key), r->opts.cancel, err);
    if (st == ZARR_ERR_NOT_FOUND) /* no job object: the state was COMPLETE */
        st = ZARR_OK;
    if (st == ZARR_OK)
        st = zr_store_flush(r->dst, r->opts.cancel, err);
out:
    zr_str_deinit(&key);
    return st;
}
