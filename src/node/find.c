/*
 * node/find.c - finds the node at a path: one GET for a v3 node, at most two more for a
 * v2 node, which are sent together to a store that is far away. v3 wins if a path has
 * both. A document that exists but is broken makes a node
 * that cannot be used, not a missing one. It ends the search with its own error, so that
 * an older document of the other format is not taken for the node.
 * Thread class: plain functions; zr_found is solo.
 */
#include "node/node.h"

#include <string.h>

void zr_found_init(struct zr_found *f, const zarr_allocator *alloc)
{
    f->kind = ZARR_NODE_NONE;
    f->format = 0;
    f->parsed = NULL;
    f->ahead.n = 0;
    f->cancel = NULL;
    zr_doc_init(&f->doc, alloc);
}

void zr_found_deinit(struct zr_found *f)
{
    zr_parsed_free(f->parsed);
    f->parsed = NULL;
    zr_doc_deinit(&f->doc);
    if (f->ahead.n > 0)
        zr_docs_ahead_deinit(&f->ahead);
}

const char *zr_kind_text(uint32_t kind)
{
    return kind == ZARR_NODE_ARRAY   ? "array"
           : kind == ZARR_NODE_GROUP ? "group"
                                     : "broken node";
}

const char *zr_doc_name(uint32_t kind, int32_t format)
{
    return format == 3               ? ZR_DOC_V3
           : kind == ZARR_NODE_ARRAY ? ZR_DOC_ARRAY
                                     : ZR_DOC_GROUP;
}

zarr_status zr_format_check(int32_t format, zarr_error *err)
{
    if (format != 0 && format != 2 && format != 3)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "zarr_format %" PRId32 " is neither 2 nor 3", format);
    return ZARR_OK;
}

/* Reads the kind of node from the document; `meta` checks the rest. */
static zarr_status judge_document(struct zr_found *f, uint32_t kind, const char *name,
                                  zarr_error *err)
{
    const struct zr_json *root = f->parsed->json.root;
    const struct zr_json *type = zr_json_get(root, "node_type");
    uint64_t format = 0;
    char text[64];

    if (!zr_json_u64(zr_json_get(root, "zarr_format"), &format) ||
        format != (uint64_t)f->format) {
        const char *draft = zr_json_string(zr_json_get(root, "zarr_format"));

        if (f->format == 3 && draft && strncmp(draft, "https://purl.org/", 17) == 0)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "%s: zarr_format \"%.80s\": a draft of Zarr v3, with other "
                           "documents at other places (GDAL before 3.8, zarr-python 2 "
                           "as an experiment)",
                           name, draft);
        return zr_fail(
            err, ZARR_ERR_CORRUPT, "%s: zarr_format is %s, expected %" PRId32, name,
            zr_json_excerpt(zr_json_get(root, "zarr_format"), text, sizeof text),
            f->format);
    }
    if (f->format == 2) {
        f->kind = kind;
        return ZARR_OK;
    }
    if (zr_json_is_text(type, "array"))
        f->kind = ZARR_NODE_ARRAY;
    else if (zr_json_is_text(type, "group"))
        f->kind = ZARR_NODE_GROUP;
    else
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "%s: node_type is %s, must be \"array\" or \"group\"", name,
                       zr_json_excerpt(type, text, sizeof text));
    return ZARR_OK;
}

/* kind: for v2, what the name of the document says. err: not NULL. */
static zarr_status try_document(struct zr_found *f, const struct zr_find *where,
                                uint32_t kind, const char *name, zarr_error *err)
{
    const bool v3 = zr_streq(name, ZR_DOC_V3);
    const struct zr_doc_source src = {.store = where->store,
                                      .path = where->path,
                                      .name = name,
                                      .large = v3 && !where->array,
                                      .ahead = &f->ahead,
                                      .cancel = where->cancel};
    zarr_status st = ZARR_OK;

    if (where->wait_for_writers)
        ZR_TRY(
            zr_doc_wait_for_writer(where->store, where->path, name, where->cancel, err));
    st = zr_doc_get(&f->doc, &src, err);
    /* a FIFO with this name is a broken node: it can be deleted and replaced */
    if (st == ZARR_OK || zr_store_has_no_value(st, err))
        f->format = v3 ? 3 : 2;
    ZR_TRY(st);
    st = zr_parsed_read(&f->parsed, &f->doc, zr_store_context(where->store), err);
    if (st != ZARR_OK) {
        zr_prefix(err, st, "%s", name);
        goto out;
    }
    ZR_TRY(judge_document(f, kind, name, err));
out:
    return st;
}

static bool is_fetch_due(const struct zr_find *where)
{
    return where->v2 && !zr_store_can(where->store, ZARR_STORE_CAP_FAST_GET);
}

static bool is_group_ahead(const struct zr_docs_ahead *ahead)
{
    return zr_docs_ahead_has(ahead, ZR_DOC_GROUP) &&
           !zr_docs_ahead_has(ahead, ZR_DOC_ARRAY);
}

/* A service may refuse access to documents that do not exist. So the search goes on, and
 * fails with the first refusal if it finds no other document. */
zarr_status zr_node_find(struct zr_found *f, const struct zr_find *where, zarr_error *err)
{
    static const struct {
        const char *name;
        uint32_t kind;
    } documents[] = {{ZR_DOC_V3, ZARR_NODE_NONE},
                     {ZR_DOC_ARRAY, ZARR_NODE_ARRAY},
                     {ZR_DOC_GROUP, ZARR_NODE_GROUP},
                     {ZR_DOC_V3, ZARR_NODE_NONE}};
    const int32_t first = where->format ? where->format : where->first ? where->first : 3;
    const size_t begin = first == 3 ? 0 : 1, end = where->format == 3   ? 1
                                                   : where->format == 2 ? 3
                                                   : first == 3         ? 3
                                                                        : 4;
    zarr_status denied = ZARR_OK, st = ZARR_ERR_NOT_FOUND;
    zarr_error refusal, e;

    f->cancel = where->cancel;
    zr_error_clear(&e);
    for (size_t i = begin; i < end; i++) {
        size_t k = i;

        if (i == 1 && is_fetch_due(where))
            zr_docs_ahead_fetch(&(struct zr_ahead_node){&f->ahead, where->path}, 1,
                                where->store, where->v2, where->cancel);
        if ((i == 1 || i == 2) && is_group_ahead(&f->ahead))
            k = 3 - i;
        st = try_document(f, where, documents[k].kind, documents[k].name, &e);
        if (denied == ZARR_OK && zr_store_hides(st, &e)) {
            denied = st;
            refusal = e;
        }
        if (st != ZARR_ERR_NOT_FOUND && !zr_store_hides(st, &e))
            return zr_pass(err, st, &e);
    }
    return denied == ZARR_OK ? st : zr_pass(err, denied, &refusal);
}

zarr_status zr_attrs_read(struct zr_parsed **out, const struct zr_find *where,
                          struct zr_docs_ahead *ahead, zarr_error *err)
{
    const zarr_context *ctx = zr_store_context(where->store);
    const struct zr_doc_source src = {.store = where->store,
                                      .path = where->path,
                                      .name = ZR_DOC_ATTRS,
                                      .ahead = ahead,
                                      .cancel = where->cancel};
    struct zr_doc doc;
    bool there = false;
    zarr_status st = ZARR_OK;

    *out = NULL;
    zr_doc_init(&doc, ctx->alloc);
    st = zr_doc_get_beside(&doc, &src, &there, err);
    if (there)
        st = zr_parsed_read(out, &doc, ctx, err);
    zr_prefix(err, st, ZR_DOC_ATTRS);
    zr_doc_deinit(&doc);
    return st;
}

zarr_status zarr_node_probe(zarr_store *store, const char *path, uint32_t *kind,
                            int32_t *zarr_format, const zarr_cancel *cancel,
                            zarr_error *err)
{
    ZR_NEED(store, err);
    const zarr_context *ctx = zr_store_context(store);
    struct zr_find where = {
        .store = store, .v2 = ZR_V2_ARRAY | ZR_V2_GROUP, .cancel = cancel};
    struct zr_found found;
    char *normal = NULL;
    zarr_status st = ZARR_OK;

    *kind = ZARR_NODE_NONE;
    *zarr_format = 0;
    zr_found_init(&found, ctx->alloc);
    ZR_TRY(zr_path_normal(&normal, ctx->alloc, path, &ctx->limits, err));
    where.path = normal;
    st = zr_node_find(&found, &where, err);
    if (st == ZARR_ERR_NOT_FOUND)
        st = ZARR_OK;
    else if (st != ZARR_OK)
        zr_path_prefix(err, st, normal);
    *kind = found.kind;
    *zarr_format = found.format;
out:
    zr_found_deinit(&found);
    zr_free(ctx->alloc, normal);
    return st;
}
