/*
 * tree/migrate_compare.c - compares a migration with what already exists. A document of
 * the new format must equal the one that the migration makes, or is replaced only on
 * request. Old attributes beside a node that already has the new format must equal its
 * own, or they belong to no node. Documents are compared in the form in which they would
 * be written, where NaN is a string. Thread class: plain functions.
 */
#include "tree/migrate_int.h"

zarr_status zr_migration_is_there(const struct zr_migration *m, const char *path,
                                  const char *name, bool *there, zarr_error *err)
{
    const zarr_status st =
        zr_doc_is_there(m->store, path, name, there, m->opts.cancel, err);

    return st == ZARR_OK ? st : zr_doc_prefix(err, st, path, name);
}

/* *old stays NULL if there is no document or it cannot be parsed. */
static zarr_status read_old(const struct zr_migration *m, const char *path,
                            const char *name, struct zr_parsed **old, bool *there,
                            zarr_error *err)
{
    const struct zr_doc_source src = {.store = m->store,
                                      .path = path,
                                      .name = name,
                                      .large = true,
                                      .cancel = m->opts.cancel};
    zarr_error e = {0};
    struct zr_doc doc;
    zarr_status st = ZARR_OK;

    *there = false;
    zr_doc_init(&doc, m->ctx->alloc);
    st = zr_doc_get(&doc, &src, err);
    *there = st != ZARR_ERR_NOT_FOUND;
    if (st != ZARR_OK) {
        st = *there ? zr_doc_prefix(err, st, path, name) : ZARR_OK;
        goto out;
    }
    st = zr_parsed_read(old, &doc, m->ctx, &e);
    if (st == ZARR_OK)
        zr_json_quote_tokens((*old)->json.root);
    else
        st = st == ZARR_ERR_CORRUPT ? ZARR_OK : zr_pass(err, st, &e);
out:
    zr_doc_deinit(&doc);
    return st;
}

zarr_status zr_migration_judge(const struct zr_migration *m, struct zr_migrated *node,
                               struct zr_new_doc *doc, const char *name, zarr_error *err)
{
    const bool attributes = zr_streq(name, ZR_DOC_ATTRS);
    struct zr_parsed *old = NULL;
    bool there = false, same = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(read_old(m, node->path, name, &old, &there, err));
    zr_json_quote_tokens(doc->root);
    if (old)
        same = attributes ? zr_same_attributes(old->json.root, doc->root)
                          : zr_same_document(old->json.root, doc->root);
    if (old && zr_has_consolidated(old->json.root))
        node->consolidate = true; /* it must not become stale */
    if (!there && attributes && zr_json_count(doc->root) == 0)
        doc->root = NULL; /* no attributes: no document */
    doc->action = !there ? ZARR_MIGRATED_WRITTEN
                  : same ? ZARR_MIGRATED_KEPT
                         : ZARR_MIGRATED_REPLACED;
    if (doc->action == ZARR_MIGRATED_REPLACED &&
        !(m->opts.flags & ZARR_MIGRATE_OVERWRITE))
        ZR_FAIL(err, ZARR_ERR_EXISTS,
                "/%s: there is a %s already, and it says something else than the "
                "v%" PRId32 " metadata",
                node->path, name, m->from);
out:
    zr_parsed_free(old);
    return st;
}

/* The v2 attributes that would belong to this v3 document. For a scalar, accepts the
 * empty list of names or none. Accepts any missing value, which v2 has in two places. */
static struct zr_json *attributes_of_v3(struct zr_json_doc *doc,
                                        const struct zr_json *root,
                                        const struct zr_json *old)
{
    const struct zr_json *shape = zr_json_get(root, "shape");
    const struct zr_json *stored = zr_json_get(old, ZR_DIMENSIONS_ATTRIBUTE);
    const struct zr_json *attributes = zr_json_get(root, "attributes");
    const struct zr_json *names = zr_json_get(root, "dimension_names");
    struct zr_json *out = zr_json_is(attributes, ZR_JSON_OBJECT)
                              ? zr_json_copy(doc, attributes)
                              : zr_json_new(doc, ZR_JSON_OBJECT);

    if (zr_json_is(names, ZR_JSON_ARRAY) && zr_json_count(names) > 0)
        zr_json_set(doc, out, ZR_DIMENSIONS_ATTRIBUTE, zr_json_copy(doc, names));
    else if (zr_json_is(shape, ZR_JSON_ARRAY) && zr_json_count(shape) == 0 &&
             zr_json_is(stored, ZR_JSON_ARRAY) && zr_json_count(stored) == 0)
        zr_json_set(doc, out, ZR_DIMENSIONS_ATTRIBUTE, zr_json_copy(doc, stored));
    if (zr_json_get(root, "shape")) {
        (void)zr_json_remove(out, ZR_MISSING_ATTRIBUTE);
        if (zr_json_get(old, ZR_MISSING_ATTRIBUTE))
            zr_json_set(doc, out, ZR_MISSING_ATTRIBUTE,
                        zr_json_copy(doc, zr_json_get(old, ZR_MISSING_ATTRIBUTE)));
    }
    zr_json_quote_tokens(out);
    return out;
}

zarr_status zr_migration_judge_stray(struct zr_migration *m, struct zr_migrated *node,
                                     const struct zr_json *root, zarr_error *err)
{
    struct zr_parsed *old = NULL;
    struct zr_json *said = NULL;
    struct zr_json_doc doc;
    bool there = false;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, m->ctx->alloc);
    if (m->from != 2 || !(m->opts.flags & ZARR_MIGRATE_REMOVE))
        goto out;
    ZR_TRY(read_old(m, node->path, ZR_DOC_ATTRS, &old, &there, err));
    said = attributes_of_v3(&doc, root, old ? old->json.root : NULL);
    if (!zr_json_is_ok(&doc))
        ZR_FAIL_MEMORY(err, doc.arena.used_bytes);
    node->stray = there && !(old && zr_same_attributes(old->json.root, said));
out:
    zr_json_doc_deinit(&doc);
    zr_parsed_free(old);
    return st;
}

/* In v2 the name of the document tells arrays from groups, so a path can have both. */
zarr_status zr_migration_check_kind(const struct zr_migration *m,
                                    const struct zr_migrated *node, zarr_error *err)
{
    const char *name = node->kind == ZARR_NODE_ARRAY ? ZR_DOC_GROUP : ZR_DOC_ARRAY;
    bool there = false;
    zarr_status st = zr_migration_is_there(m, node->path, name, &there, err);

    if (st == ZARR_OK && there)
        st = zr_fail(err, ZARR_ERR_EXISTS, "/%s is %s, but there is a %s as well",
                     node->path, node->kind == ZARR_NODE_ARRAY ? "an array" : "a group",
                     name);
    return st;
}
