/*
 * tree/nodes.c - lists a node and all nodes below it as the store has them, broken ones
 * included, and the keys of their objects. Calls that change or compare whole hierarchies
 * make the list before they begin.
 * Thread class: solo.
 */
#include "tree/tree.h"

#include <string.h>

struct nodes_listing {
    struct zr_nodes *nodes;
    size_t top_bytes;
    zarr_status st;
    zarr_error err;
};

uint64_t zr_decoded_bytes(const zarr_array *array)
{
    return zr_mul_cap(
        zr_product_cap(zarr_array_shape(array), (size_t)zarr_array_ndim(array)),
        zarr_dtype_item_bytes(zarr_array_dtype(array)));
}

static zarr_status nodes_add(struct zr_nodes *nodes, const char *path, uint32_t kind,
                             int32_t format, zarr_error *err)
{
    const size_t bytes = strlen(path);
    char *kept = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_grow(nodes->alloc, &nodes->item, &nodes->cap, nodes->n + 1,
                   sizeof *nodes->item, err));
    kept = zr_arena_strndup(&nodes->arena, path, bytes);
    if (!kept)
        ZR_FAIL_MEMORY(err, bytes + 1);
    nodes->item[nodes->n++] = (struct zr_node_row){kept, kind, format};
out:
    return st;
}

static int nodes_row(void *user, const zarr_node_item *item)
{
    struct nodes_listing *l = user;
    const char *below = item->path + l->top_bytes;

    below += *below == '/';
    if (zr_streq(l->nodes->item[l->nodes->n - 1].path, below)) { /* cannot be listed */
        l->nodes->item[l->nodes->n - 1].kind = item->kind;
        return ZARR_WALK_GO_ON;
    }
    l->st = nodes_add(l->nodes, below, item->kind, item->zarr_format, &l->err);
    return l->st ? ZARR_WALK_STOP : ZARR_WALK_GO_ON;
}

static zarr_status nodes_below(struct zr_nodes *nodes, zarr_store *store,
                               const char *path, zarr_cancel *cancel, zarr_error *err)
{
    zarr_list_options walk = ZARR_LIST_OPTIONS_INIT;
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    struct nodes_listing l = {.nodes = nodes, .top_bytes = strlen(path)};
    zarr_group *group = NULL;
    zarr_status st = ZARR_OK;

    opts.consolidated = ZARR_CONSOLIDATED_NEVER;
    opts.cancel = cancel;
    ZR_TRY(zarr_group_open(&group, store, path, &opts, err));
    walk.flags = ZARR_MEMBERS_GO_ON;
    walk.cancel = cancel;
    ZR_TRY(zarr_group_walk(group, nodes_row, &l, &walk, err));
    st = zr_pass(err, l.st, &l.err);
out:
    zarr_group_free(group);
    return st;
}

zarr_status zr_nodes_find(struct zr_nodes *nodes, zarr_store *store, const char *path,
                          zarr_cancel *cancel, zarr_error *err)
{
    zarr_error why = {0};
    uint32_t kind = ZARR_NODE_NONE;
    int32_t format = 0;
    zarr_status st = zarr_node_probe(store, path, &kind, &format, cancel, &why);

    *nodes = (struct zr_nodes){.alloc = zr_store_context(store)->alloc};
    zr_arena_init(&nodes->arena, nodes->alloc);
    if (format == 0) { /* otherwise a broken document, which is listed as such */
        if (st == ZARR_OK)
            st = zr_path_prefix(
                &why, zr_fail(&why, ZARR_ERR_NOT_FOUND, "there is no array or group"),
                path);
        return zr_pass(err, st, &why);
    }
    if ((zr_is_store_failure(st) && !zr_store_has_no_value(st, &why)) ||
        st == ZARR_ERR_NO_MEMORY)
        return zr_pass(err, st, &why);
    ZR_TRY(nodes_add(nodes, "", kind, format, err));
    if (kind == ZARR_NODE_GROUP)
        ZR_TRY(nodes_below(nodes, store, path, cancel, err));
    st = ZARR_OK;
out:
    return st;
}

/* ---- keys ---- */

struct keys_call {
    struct zr_names *keys;
    zarr_store *store;
    const char *top;
    struct zr_str path; /* of the current node */
    uint64_t limit;
    zarr_cancel *cancel;
    zarr_status st;
    zarr_error *err;
};

static int add_block(void *user, const zarr_block_info *block)
{
    struct keys_call *c = user;
    const size_t skip = *c->top ? strlen(c->top) + 1 : 0;

    c->st = zr_names_add(c->keys, block->key + skip, c->limit, c->err);
    return c->st != ZARR_OK;
}

static zarr_status add_documents(struct keys_call *c, const char *below, zarr_error *err)
{
    static const char *const names[] = {
        ZR_DOC_V3,  ZR_DOC_ARRAY,        ZR_DOC_GROUP,    ZR_DOC_ATTRS,
        ZR_DOC_JOB, ZR_DOC_CONSOLIDATED, ZR_DOC_LEFTOVERS};
    struct zr_str key;
    bool there = false;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, c->keys->alloc);
    for (size_t i = 0; i < ZR_COUNT(names); i++) {
        ZR_TRY(zr_doc_is_there(c->store, zr_str_text(&c->path), names[i], &there,
                               c->cancel, err));
        if (!there)
            continue;
        ZR_TRY(zr_path_key(&key, below, names[i], err));
        ZR_TRY(zr_names_add(c->keys, zr_str_text(&key), c->limit, err));
    }
out:
    zr_str_deinit(&key);
    return st;
}

static zarr_status add_blocks(struct keys_call *c, zarr_error *err)
{
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = c->cancel};
    const zarr_io_options io = {.struct_size = sizeof io, .cancel = c->cancel};
    zarr_array *array = NULL;
    zarr_status st = ZARR_OK;

    c->err = err;
    ZR_TRY(zarr_array_open(&array, c->store, zr_str_text(&c->path), &opts, err));
    ZR_TRY(zarr_array_list_blocks(array, ZARR_BLOCKS_STORED | ZARR_BLOCKS_ASK, add_block,
                                  c, &io, err));
    st = c->st;
out:
    zarr_array_free(array);
    return st;
}

static zarr_status find_keys(struct keys_call *c, bool documents, zarr_error *err)
{
    struct zr_nodes nodes;
    zarr_status st = zr_nodes_find(&nodes, c->store, c->top, c->cancel, err);

    for (size_t i = 0; st == ZARR_OK && i < nodes.n; i++) {
        ZR_TRY(zr_path_key(&c->path, c->top, nodes.item[i].path, err));
        ZR_TRY(add_documents(c, nodes.item[i].path, err));
        if (!documents && nodes.item[i].kind != ZARR_NODE_GROUP)
            ZR_TRY(add_blocks(c, err));
    }
out:
    zr_nodes_free(&nodes);
    return st;
}

zarr_status zr_tree_keys(struct zr_names *keys, zarr_store *store, const char *path,
                         bool documents, zarr_cancel *cancel, zarr_error *err)
{
    struct keys_call c = {.keys = keys,
                          .store = store,
                          .top = path,
                          .limit = zr_store_context(store)->limits.listing_keys,
                          .cancel = cancel};
    zarr_error why = {0};
    zarr_status st = zr_names_keys(keys, store, path, &why);

    if (st != ZARR_ERR_UNSUPPORTED)
        return zr_pass(err, st, &why);
    zr_str_init(&c.path, keys->alloc);
    st = find_keys(&c, documents, err);
    zr_names_sort_keys(keys);
    zr_str_deinit(&c.path);
    return st;
}

void zr_nodes_free(struct zr_nodes *nodes)
{
    zr_free(nodes->alloc, nodes->item);
    zr_arena_deinit(&nodes->arena);
    *nodes = (struct zr_nodes){0};
}
