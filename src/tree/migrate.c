/*
 * tree/migrate.c - the first half of migrating a hierarchy to the other format: walks the
 * hierarchy, converts each node's documents, and has them compared with what already
 * exists (migrate_compare.c). Nothing is written here. A node that the other format
 * cannot express stops the migration before it begins. Each such node is reported, not
 * only the first. Thread class: plain functions.
 */
#include "array/array.h"
#include "tree/migrate_int.h"

#include <string.h>

zarr_status zr_migration_check_cancel(const struct zr_migration *m, zarr_error *err)
{
    return zr_cancel_check(m->opts.cancel, err);
}

void zr_migration_tell(const struct zr_migration *m, const struct zr_migrated *node,
                       uint32_t action, const char *name, const char *text)
{
    zarr_migrate_item item = {.struct_size = sizeof item,
                              .action = action,
                              .kind = node->kind,
                              .path = node->path,
                              .text = text};
    struct zr_str key;

    if (!m->opts.tell)
        return;
    zr_str_init(&key, m->ctx->alloc);
    if (name)
        (void)zr_path_key(&key, node->path, name, NULL);
    item.key = name && !key.failed ? zr_str_text(&key) : NULL;
    m->opts.tell(m->opts.user, &item);
    zr_str_deinit(&key);
}

/* ---- converting ---------------------------------------------------------- */

static zarr_status convert_array(struct zr_migration *m, struct zr_migrated *node,
                                 zarr_error *err)
{
    zarr_array_open_options opts = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    struct zr_array_meta made = {0};
    zarr_array *array = NULL;
    zarr_status st = ZARR_OK;

    opts.zarr_format = m->from;
    opts.cancel = m->opts.cancel;
    /* the error names the path */
    ZR_TRY(zarr_array_open(&array, m->store, node->path, &opts, err));
    st = zr_array_convert(&made, array, m->to, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, node->path);
        goto out;
    }
    node->document.root = zr_json_copy(&m->made, made.document);
    if (m->to == 2)
        node->attributes.root = made.attributes ? zr_json_copy(&m->made, made.attributes)
                                                : zr_json_new(&m->made, ZR_JSON_OBJECT);
    st = zr_migration_keep_missing(m, node, array, err);
    if (st != ZARR_OK)
        zr_path_prefix(err, st, node->path);
out:
    zr_array_meta_deinit(&made);
    zarr_array_free(array);
    return st;
}

static zarr_status convert_group(struct zr_migration *m, struct zr_migrated *node,
                                 const struct zr_json *root, zarr_error *err)
{
    const struct zr_meta_env env = zr_meta_env_make(m->ctx, true);
    const struct zr_find where = {
        .store = m->store, .path = node->path, .cancel = m->opts.cancel};
    struct zr_parsed *attrs = NULL;
    struct zr_group_meta meta = {0};
    zarr_status st = ZARR_OK;

    if (m->from == 2)
        ZR_TRY(zr_attrs_read(&attrs, &where, NULL, err));
    ZR_TRY(zr_group_meta_parse(&meta, &env, m->from, root,
                               attrs ? attrs->json.root : NULL, err));
    if (m->to == 2)
        node->attributes.root = meta.attributes ? zr_json_copy(&m->made, meta.attributes)
                                                : zr_json_new(&m->made, ZR_JSON_OBJECT);
    if (!m->ome_told) {
        node->lost = zr_ome_warning(meta.attributes, node->path, m->to);
        m->ome_told = node->lost != NULL;
    }
    meta.format = m->to;
    meta.consolidated = meta.document = NULL;
    ZR_TRY(zr_group_meta_write(&meta, &m->made, &node->document.root, err));
    if (m->to == 2)
        zr_meta_carry(&m->made, node->document.root, root, false);
out:
    if (st != ZARR_OK)
        zr_path_prefix(err, st, node->path);
    zr_parsed_free(attrs);
    return st;
}

/* ---- one node ------------------------------------------------------------- */

static zarr_status prepare_node(struct zr_migration *m, struct zr_migrated *node,
                                const struct zr_json *root, zarr_error *err)
{
    node->more =
        m->from == 2 && zr_meta_other_member(root, 2, node->kind == ZARR_NODE_ARRAY);
    ZR_CHECK(node->kind == ZARR_NODE_GROUP ? convert_group(m, node, root, err)
                                           : convert_array(m, node, err));
    if (!zr_json_is_ok(&m->made))
        return zr_fail_memory(err, m->made.arena.used_bytes);
    if (m->to == 2) {
        ZR_CHECK(zr_migration_check_kind(m, node, err));
        ZR_CHECK(zr_migration_judge(m, node, &node->attributes, ZR_DOC_ATTRS, err));
    }
    return zr_migration_judge(m, node, &node->document, zr_doc_name(node->kind, m->to),
                              err);
}

/* Looks in either format: a group that has consolidated metadata keeps it, and it must
 * not become stale. */
static zarr_status find_consolidated(struct zr_migration *m, struct zr_migrated *node,
                                     const struct zr_json *root, zarr_error *err)
{
    bool v2 = false;

    if (node->kind != ZARR_NODE_GROUP)
        return ZARR_OK;
    ZR_CHECK(zr_migration_is_there(m, node->path, ZR_DOC_CONSOLIDATED, &v2, err));
    node->consolidate = v2 || zr_has_consolidated(root);
    return ZARR_OK;
}

/* ---- the walk --------------------------------------------------------------- */

/* Whether the other nodes can still be examined after this failure. */
static bool is_refusal(zarr_status st)
{
    return st == ZARR_ERR_UNSUPPORTED || st == ZARR_ERR_INVALID ||
           st == ZARR_ERR_CORRUPT || st == ZARR_ERR_LIMIT || st == ZARR_ERR_EXISTS;
}

static zarr_status refuse_node(struct zr_migration *m, const struct zr_migrated *node,
                               zarr_status st, const zarr_error *why)
{
    zr_migration_tell(m, node, ZARR_MIGRATED_REFUSED, NULL, why->message);
    if (m->refused == ZARR_OK) {
        m->refused = st;
        m->why = *why;
    }
    return ZARR_OK;
}

static zarr_status migrate_add(struct zr_migration *m, const char *path,
                               const struct zr_found *found, zarr_status found_st,
                               const zarr_error *found_err, zarr_error *err)
{
    struct zr_migrated *node = NULL;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_grow(m->ctx->alloc, &m->node, &m->cap, m->n + 1, sizeof *m->node, err));
    node = &m->node[m->n];
    *node = (struct zr_migrated){.kind = found->kind};
    node->path = zr_arena_strndup(&m->made.arena, path, strlen(path));
    if (!node->path)
        ZR_FAIL_MEMORY(err, strlen(path));
    m->n++;
    e = *found_err;
    st = found_st;
    node->done = found->format == m->to;
    if (st == ZARR_OK)
        st = find_consolidated(m, node, found->parsed->json.root, &e);
    if (st == ZARR_OK)
        st = node->done ? zr_migration_judge_stray(m, node, found->parsed->json.root, &e)
                        : prepare_node(m, node, found->parsed->json.root, &e);
    if (is_refusal(st))
        st = refuse_node(m, node, st, &e);
    else
        zr_pass(err, st, &e);
out:
    return st;
}

static zarr_status add_children(struct zr_migration *m, size_t i, zarr_error *err)
{
    const struct zr_child *child = NULL;
    struct zr_children children = {0};
    struct zr_str path;
    zarr_status st = ZARR_OK;

    zr_str_init(&path, m->ctx->alloc);
    ZR_TRY(
        zr_children_open(&children, m->store, m->node[i].path, m->from, &m->seen, err));
    for (;;) {
        ZR_TRY(zr_migration_check_cancel(m, err));
        ZR_TRY(zr_children_next(&children, &child, err));
        if (!child)
            break;
        ZR_TRY(zr_path_key(&path, m->node[i].path, child->name, err));
        ZR_TRY(migrate_add(m, zr_str_text(&path), &child->found, child->st, &child->err,
                           err));
    }
out:
    zr_children_close(&children);
    zr_str_deinit(&path);
    return st;
}

static zarr_status add_top(struct zr_migration *m, const char *path, zarr_error *err)
{
    const struct zr_find where = {
        .store = m->store, .path = path, .first = m->from, .cancel = m->opts.cancel};
    struct zr_found found;
    zarr_error e = {0};
    zarr_status st;

    zr_found_init(&found, m->ctx->alloc);
    st = zr_node_find(&found, &where, &e);
    if (st == ZARR_ERR_NOT_FOUND)
        zr_fail(&e, st, "there is no array or group");
    if (st != ZARR_OK)
        zr_path_prefix(&e, st, path);
    if (st == ZARR_OK || is_refusal(st))
        st = migrate_add(m, path, &found, st, &e, err);
    else
        zr_pass(err, st, &e);
    zr_found_deinit(&found);
    return st;
}

static zarr_status migration_begin(struct zr_migration *m, const zarr_migrate_options *o,
                                   zarr_error *err)
{
    const uint32_t known = ZARR_MIGRATE_DRY_RUN | ZARR_MIGRATE_OVERWRITE |
                           ZARR_MIGRATE_REMOVE | ZARR_MIGRATE_KEEP_FILL |
                           ZARR_MIGRATE_CONSOLIDATED;

    ZR_CHECK(zr_struct_read(&m->opts, sizeof m->opts, 2 * sizeof(uint32_t), o,
                            ZR_TAIL_REFUSE, "zarr_migrate_options", err));
    ZR_CHECK(zr_flags_check(m->opts.flags, known, "migrate options", err));
    ZR_CHECK(zr_format_check(m->opts.zarr_format, err));
    m->to = m->opts.zarr_format ? m->opts.zarr_format : 3;
    m->from = 5 - m->to;
    if (zr_store_is_read_only(m->store) && !(m->opts.flags & ZARR_MIGRATE_DRY_RUN))
        return zr_fail(err, ZARR_ERR_INVALID, "the store is read-only");
    return ZARR_OK;
}

zarr_status zarr_node_migrate(zarr_store *store, const char *path,
                              const zarr_migrate_options *opts, zarr_error *err)
{
    ZR_NEED(store, err);
    struct zr_migration m = {.store = store, .ctx = zr_store_context(store)};
    struct zr_claim claim = {0};
    char *normal = NULL;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&m.made, m.ctx->alloc);
    ZR_TRY(migration_begin(&m, opts, err));
    ZR_TRY(zr_path_normal(&normal, m.ctx->alloc, path, &m.ctx->limits, err));
    m.seen.cancel = m.opts.cancel;
    if (!(m.opts.flags & ZARR_MIGRATE_DRY_RUN))
        ZR_TRY(zr_claim_node(&claim, store, normal, m.opts.cancel, err));
    ZR_TRY(zr_migration_check_cancel(&m, err));
    ZR_TRY(add_top(&m, normal, err));
    for (size_t i = 0; i < m.n; i++)
        if (m.node[i].kind == ZARR_NODE_GROUP)
            ZR_TRY(add_children(&m, i, err));
    ZR_TRY(zr_pass(err, m.refused, &m.why));
    ZR_TRY(zr_migration_write(&m, err));
out:
    zr_claim_give(&claim);
    zr_free(m.ctx->alloc, m.node);
    zr_free(m.ctx->alloc, normal);
    zr_json_doc_deinit(&m.made);
    return st;
}
