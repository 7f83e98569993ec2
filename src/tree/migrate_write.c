/*
 * tree/migrate_write.c - the second half of migrating a hierarchy: writes the new
 * documents and deletes the old ones. Documents below are written before those above, so
 * a group has the new format only when all nodes below it have it. Attributes come before
 * the document that makes a node. The old documents are deleted last and from above, when
 * every node has its new one. If it stops anywhere, each node is complete in one format,
 * and a repeated call finds equal documents and leaves them. Files stay if no node's
 * document was made from them or if they could not be converted: members of v2 documents
 * that v3 does not know.
 * Thread class: plain functions.
 */
#include "tree/migrate_int.h"

static bool is_dry(const struct zr_migration *m)
{
    return (m->opts.flags & ZARR_MIGRATE_DRY_RUN) != 0;
}

static zarr_status write_doc(const struct zr_migration *m, const struct zr_migrated *node,
                             const struct zr_new_doc *doc, const char *name,
                             zarr_error *err)
{
    struct zr_str text;
    zarr_status st = ZARR_OK;

    if (!doc->root)
        return ZARR_OK;
    zr_str_init(&text, m->ctx->alloc);
    ZR_TRY(zr_migration_check_cancel(m, err));
    if (doc->action == ZARR_MIGRATED_KEPT) {
        zr_migration_tell(m, node, doc->action, name, NULL);
        goto out;
    }
    zr_json_write(doc->root, ZR_META_INDENT, &text);
    ZR_TRY(zr_str_status(&text, err));
    if (!is_dry(m)) {
        st = zr_doc_write(m->store, node->path, name, &text,
                          doc->action == ZARR_MIGRATED_REPLACED, m->opts.cancel, err);
        if (st != ZARR_OK) {
            zr_path_prefix(err, st, node->path);
            goto out;
        }
    }
    zr_migration_tell(m, node, doc->action, name, zr_str_text(&text));
out:
    zr_str_deinit(&text);
    return st;
}

static zarr_status consolidate_again(const struct zr_migration *m,
                                     const struct zr_migrated *node, zarr_error *err)
{
    const zarr_consolidate_options o = {.struct_size = sizeof o,
                                        .cancel = m->opts.cancel};
    const char *name = m->to == 3 ? ZR_DOC_V3 : ZR_DOC_CONSOLIDATED;

    ZR_CHECK(zr_migration_check_cancel(m, err));
    if (!is_dry(m))
        ZR_CHECK(zr_group_consolidate(m->store, node->path, &o, m->to, err));
    zr_migration_tell(m, node, ZARR_MIGRATED_CONSOLIDATED, name, NULL);
    return ZARR_OK;
}

/* text: why the document stays; NULL: it is removed. */
static zarr_status remove_doc(const struct zr_migration *m,
                              const struct zr_migrated *node, const char *name,
                              const char *text, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_STAT,
                        .flags = ZARR_STORE_OP_DOCUMENT,
                        .cancel = m->opts.cancel};
    zarr_error e = {0};
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, m->ctx->alloc);
    ZR_TRY(zr_migration_check_cancel(m, err));
    ZR_TRY(zr_path_key(&key, node->path, name, err));
    op.key = zr_str_text(&key);
    st = zr_store_run_one(m->store, &op, &e);
    if (st == ZARR_OK && !text && !is_dry(m))
        st = zarr_store_erase(m->store, op.key, m->opts.cancel, &e);
    if (st == ZARR_OK)
        zr_migration_tell(m, node, text ? ZARR_MIGRATED_LEFT : ZARR_MIGRATED_REMOVED,
                          name, text);
    else if (st == ZARR_ERR_NOT_FOUND)
        st = ZARR_OK;
    else
        zr_prefix(&e, st, "/%s", op.key);
    zr_pass(err, st, &e);
out:
    zr_str_deinit(&key);
    return st;
}

/* Attributes go after the document that they belong to: without it they belong to no
 * node, and a repeated call finds them. */
static zarr_status remove_old(const struct zr_migration *m,
                              const struct zr_migrated *node, zarr_error *err)
{
    if (m->from == 3)
        return remove_doc(m, node, ZR_DOC_V3, NULL, err);
    if (node->kind == ZARR_NODE_GROUP)
        ZR_CHECK(remove_doc(m, node, ZR_DOC_CONSOLIDATED,
                            node->done ? "the group was no v2 group" : NULL, err));
    if (!node->done)
        ZR_CHECK(remove_doc(
            m, node, zr_doc_name(node->kind, 2),
            node->more ? "it has members that Zarr v3 does not know" : NULL, err));
    return remove_doc(m, node, ZR_DOC_ATTRS,
                      node->stray  ? "zarr.json has other attributes"
                      : node->more ? "they belong to a document that stays"
                                   : NULL,
                      err);
}

zarr_status zr_migration_write(struct zr_migration *m, zarr_error *err)
{
    const bool unlists =
        !is_dry(m) && m->opts.flags & ZARR_MIGRATE_CONSOLIDATED && m->n > 0;
    bool changes = false;
    zarr_status st = ZARR_OK;

    for (size_t i = m->n; i-- > 0;) {
        const struct zr_migrated *node = &m->node[i];

        if (node->done)
            continue;
        changes = true;
        ZR_TRY(write_doc(m, node, &node->attributes, ZR_DOC_ATTRS, err));
        ZR_TRY(write_doc(m, node, &node->document, zr_doc_name(node->kind, m->to), err));
        if (node->lost)
            zr_migration_tell(m, node, ZARR_MIGRATED_WARNED,
                              zr_doc_name(node->kind, m->to), node->lost);
    }
    for (size_t i = m->n; i-- > 0;)
        if (changes && m->node[i].consolidate)
            ZR_TRY(consolidate_again(m, &m->node[i], err));
    if (!(m->opts.flags & ZARR_MIGRATE_REMOVE))
        goto out;
    if (!is_dry(m)) /* make the new documents durable before the old ones go */
        ZR_TRY(zr_store_flush(m->store, m->opts.cancel, err));
    if (unlists)
        ZR_TRY(zr_consolidated_remove(m->store, m->node[0].path, m->opts.cancel, err));
    for (size_t i = 0; i < m->n && st == ZARR_OK; i++)
        st = remove_old(m, &m->node[i], err);
    if (st != ZARR_OK && unlists)
        (void)zr_consolidated_restore(m->store, m->node[0].path, NULL);
out:
    return st;
}
