/*
 * node/group_make.c - making groups: their document's text, then the document
 * itself, with its attributes (v2), its parents before it.
 * Thread class: plain functions.
 */
#include "node/node_int.h"

#include <string.h>

struct zr_meta_env zr_meta_env_of(const zarr_context *ctx, bool stored)
{
    zarr_context *c =
        (zarr_context *)(uintptr_t)ctx; /* types are interned under a lock */

    return (struct zr_meta_env){
        .dtypes = &c->dtypes,
        .codecs = &ctx->codecs,
        .grids = &ctx->grids,
        .limits = &ctx->limits,
        .alloc = ctx->alloc,
        .stored = stored,
    };
}

zarr_status zr_group_text(struct zr_str *out, int32_t format,
                          const struct zr_json *attributes, const zarr_allocator *alloc,
                          zarr_error *err)
{
    const struct zr_group_meta meta = {.format = format, .attributes = attributes};
    struct zr_json *root = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, alloc);
    ZR_TRY(zr_group_meta_write(&meta, &doc, &root, err));
    zr_json_write(root, ZR_META_INDENT, out);
    ZR_TRY(zr_str_status(out, err));
out:
    zr_json_doc_deinit(&doc);
    return st;
}

zarr_status zr_attributes_parse(struct zr_json_doc *doc, const char *text,
                                const zarr_limits *limits, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (!text)
        return ZARR_OK;
    st = zr_json_parse(doc, text, strlen(text), limits, err);
    if (st == ZARR_ERR_CORRUPT)
        st = zr_prefix(err, ZARR_ERR_INVALID, "the JSON text of the attributes");
    else if (st == ZARR_OK && !zr_json_is(doc->root, ZR_JSON_OBJECT))
        st = zr_fail(err, ZARR_ERR_INVALID, "attributes must be a JSON object, not a %s",
                     zr_json_type_text(doc->root));
    return st;
}

zarr_status zr_document_write(zarr_store *store, const char *path, const char *name,
                              const struct zr_str *text, bool replace, zarr_error *err)
{
    struct zr_doc_source src;
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, zr_store_context(store)->alloc);
    zr_path_key(&key, path, name);
    ZR_TRY(zr_str_status(&key, err));
    src = zr_doc_source(store, zr_str_text(&key));
    ZR_TRY(zr_doc_create(&src, zr_str_text(text), text->bytes, replace, err));
out:
    zr_str_deinit(&key);
    return st;
}

struct group_making {
    zarr_store *store;
    const char *path;
    int32_t format;
    uint32_t flags;
    const struct zr_json *attrs;
};

static zarr_status write_group(const struct group_making *m, zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(m->store)->alloc;
    struct zr_new_node node = {.path = m->path,
                               .name = m->format == 3 ? ZR_DOC_V3 : ZR_DOC_GROUP,
                               .format = m->format,
                               .attrs = m->attrs};
    bool is_node = false;
    struct zr_str text;
    zarr_status st = ZARR_OK;

    zr_str_init(&text, alloc);
    ZR_TRY(zr_group_text(&text, m->format, m->attrs, alloc, err));
    if (m->flags & ZARR_GROUP_OVERWRITE) {
        ZR_TRY(zr_node_may_go(m->store, m->path, &is_node, err));
        ZR_TRY(zr_node_erase(m->store, m->path, err));
    }
    if (!(m->flags & ZARR_GROUP_NO_PARENTS))
        ZR_TRY(zr_parents_create(m->store, m->path, m->format, err));
    node.text = &text;
    ZR_TRY(zr_node_write(m->store, &node, err));
out:
    zr_str_deinit(&text);
    return st;
}

static zarr_status create_group(const struct group_making *m, zarr_error *err)
{
    const zarr_context *ctx = zr_store_context(m->store);
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_path_check_new(m->path, m->format, &ctx->limits, err));
    if (!(m->flags & ZARR_GROUP_OVERWRITE))
        st = zr_node_must_be_new(m->store, m->path, &e);
    if (st == ZARR_OK)
        st = write_group(m, &e);
    if (st == ZARR_ERR_EXISTS && m->flags & ZARR_GROUP_IF_MISSING)
        st = ZARR_OK; /* opening it tells whether it is a group */
    if (st != ZARR_OK && err)
        *err = e;
out:
    return st;
}

zarr_status zarr_group_create(zarr_group **out, zarr_store *store, const char *path,
                              int32_t zarr_format, const char *attributes, uint32_t flags,
                              zarr_error *err)
{
    const uint32_t known =
        ZARR_GROUP_OVERWRITE | ZARR_GROUP_NO_PARENTS | ZARR_GROUP_IF_MISSING;
    const zarr_context *ctx = zr_store_context(store);
    struct group_making m = {.store = store, .flags = flags};
    struct zr_json_doc attrs;
    zarr_error no_group = {0};
    char *normal = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    zr_json_doc_init(&attrs, ctx->alloc);
    m.format = zarr_format ? zarr_format : 3;
    if (m.format != 2 && m.format != 3)
        ZR_TRY(zr_fail(err, ZARR_ERR_INVALID,
                       "zarr_format %" PRId32 " is neither 2 nor 3", m.format));
    if (flags & ~known)
        ZR_TRY(
            zr_fail(err, ZARR_ERR_UNSUPPORTED, "group: unknown flags 0x%" PRIx32, flags));
    ZR_TRY(zr_attributes_parse(&attrs, attributes, &ctx->limits, err));
    ZR_TRY(zr_path_normal(&normal, ctx->alloc, path, &ctx->limits, err));
    m.path = normal;
    m.attrs = attrs.root;
    st = create_group(&m, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, normal);
        goto out;
    }
    st = zarr_group_open(out, store, normal, NULL, &no_group);
    if (st == ZARR_ERR_NOT_FOUND && flags & ZARR_GROUP_IF_MISSING)
        st =
            zr_fail(&no_group, ZARR_ERR_EXISTS, "/%s: there is an array already", normal);
    if (st != ZARR_OK && err)
        *err = no_group;
out:
    zr_json_doc_deinit(&attrs);
    zr_free(ctx->alloc, normal);
    return st;
}
