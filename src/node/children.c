/*
 * node/children.c - the children of one group in the store: names from a listing, sorted,
 * then their documents, read in parallel blocks because each document costs a request. A
 * store that is far away is asked for those of a whole block, or for both of a v2 node,
 * together, unless their writers are waited for.
 * Names without a document are skipped: a prefix is not a node. A document that cannot be
 * parsed is reported as a broken node, and so is one that may not be read, if the walk
 * goes on. A store that fails ends the walk. Thread class: solo.
 */
#include "node/node_int.h"

enum {
    CHILDREN_BLOCK = 32,
    CHILDREN_FAR = 128,      /* the same, of a store that is far away */
    CHILDREN_FAST_NS = 10000 /* duration of a local GET */
};

/* Links can make a few folders look like 2^30, so a walk must end at a limit. */
static zarr_status count_names(struct zr_children *k, struct zr_seen *seen,
                               zarr_error *err)
{
    const zarr_limits *limits = &zr_store_context(k->store)->limits;

    if (seen->n > limits->listing_keys || k->names.n > limits->listing_keys - seen->n)
        return zr_fail_limit(err, "listing_keys", limits->listing_keys,
                             "more than %" PRIu64 " names in one walk",
                             limits->listing_keys);
    if (seen->n_linked > limits->linked_directories ||
        k->names.n_linked > limits->linked_directories - seen->n_linked)
        return zr_fail_limit(err, "linked_directories", limits->linked_directories,
                             "more than %" PRIu64
                             " directories behind symbolic links in one walk",
                             limits->linked_directories);
    seen->n += k->names.n;
    seen->n_linked += k->names.n_linked;
    return ZARR_OK;
}

/* Without locks there are no writers to wait for. */
static bool can_ask_ahead(const struct zr_children *k)
{
    return !zr_store_can(k->store, ZARR_STORE_CAP_FAST_GET) &&
           !(k->wait_for_writers && zr_store_can(k->store, ZARR_STORE_CAP_LOCK));
}

zarr_status zr_children_open(struct zr_children *k, zarr_store *store, const char *path,
                             int32_t first, struct zr_seen *seen, zarr_error *err)
{
    *k = (struct zr_children){.store = store,
                              .first = first,
                              .wait_for_writers = seen->wait_for_writers,
                              .go_on = seen->go_on};
    k->alloc = zr_store_context(store)->alloc;
    zr_names_init(&k->names, k->alloc);
    k->path = zr_strdup(k->alloc, path);
    if (!k->path)
        return zr_fail_memory(err, 1);
    ZR_CHECK(zr_cancel_check(seen->cancel, err));
    k->names.cancel = seen->cancel;
    ZR_CHECK(zr_names_below(&k->names, store, path, err));
    ZR_CHECK(count_names(k, seen, err));
    k->cap =
        ZR_MIN(k->names.n, (size_t)(can_ask_ahead(k) ? CHILDREN_FAR : CHILDREN_BLOCK));
    k->block = zr_calloc(k->alloc, ZR_MAX(k->cap, 1), sizeof *k->block);
    if (!k->block)
        return zr_fail_memory(err, k->cap * sizeof *k->block);
    return ZARR_OK;
}

static void block_release(struct zr_children *k)
{
    for (size_t i = 0; i < k->n; i++) {
        zr_found_deinit(&k->block[i].found);
        zr_str_deinit(&k->block[i].path);
    }
    k->n = 0;
}

void zr_children_close(struct zr_children *k)
{
    block_release(k);
    zr_free(k->alloc, k->block);
    zr_free(k->alloc, k->path);
    zr_names_deinit(&k->names);
    *k = (struct zr_children){0};
}

static bool child_is_broken(const struct zr_children *k, const struct zr_child *child)
{
    return child->st == ZARR_ERR_LIMIT ||
           (k->go_on && zr_store_blames_object(child->st, &child->err)) ||
           (child->found.format != 0 && child->st != ZARR_OK &&
            child->st != ZARR_ERR_NO_MEMORY);
}

static zarr_status find_child(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct zr_children *k = arg;
    struct zr_child *child = &k->block[i];
    const bool is_asked_ahead = child->found.ahead.n > 0;
    struct zr_find where = {.store = k->store,
                            .first = k->first,
                            .wait_for_writers = k->wait_for_writers,
                            .v2 = !can_ask_ahead(k) || (k->first == 2 && is_asked_ahead)
                                      ? 0
                                      : ZR_V2_ARRAY | ZR_V2_GROUP,
                            .cancel = k->names.cancel,
                            .path = zr_str_text(&child->path)};

    ZR_UNUSED(worker);
    child->st = zr_str_status(&child->path, &child->err);
    if (child->st == ZARR_OK)
        child->st = zr_node_find(&child->found, &where, &child->err);
    if (child->st != ZARR_OK && child->st != ZARR_ERR_NOT_FOUND)
        zr_path_prefix(&child->err, child->st, where.path);
    if (child->st == ZARR_OK || child->st == ZARR_ERR_NOT_FOUND ||
        child_is_broken(k, child))
        return ZARR_OK;
    return zr_pass(err, child->st, &child->err);
}

/* Asks for the documents that each child of the block needs first. What does not come is
 * asked for again by find_child(). */
static void ask_ahead(struct zr_children *k)
{
    struct zr_ahead_node node[CHILDREN_FAR];
    size_t n = 0;

    for (size_t i = 0; i < k->n; i++)
        if (zr_str_status(&k->block[i].path, NULL) == ZARR_OK)
            node[n++] = (struct zr_ahead_node){&k->block[i].found.ahead,
                                               zr_str_text(&k->block[i].path)};
    zr_docs_ahead_fetch(node, n, k->store,
                        k->first == 2 ? ZR_V2_ARRAY | ZR_V2_GROUP : ZR_V3_NODE,
                        k->names.cancel);
}

static zarr_status block_fill(struct zr_children *k, zarr_error *err)
{
    const struct zr_parallel_options opts = {
        .max_threads = zr_store_context(k->store)->engine.max_threads,
        .item_ns = zr_store_can(k->store, ZARR_STORE_CAP_FAST_GET) ? CHILDREN_FAST_NS : 0,
        .cancel = k->names.cancel,
    };

    block_release(k);
    k->at = 0;
    while (k->n < k->cap && k->next < k->names.n) {
        struct zr_child *child = &k->block[k->n++];

        child->name = k->names.item[k->next++];
        child->st = ZARR_OK;
        zr_found_init(&child->found, k->alloc);
        zr_str_init(&child->path, k->alloc);
        (void)zr_path_key(&child->path, k->path, child->name, NULL);
    }
    if (k->n > 1 && can_ask_ahead(k))
        ask_ahead(k);
    return zr_parallel_run(k->n, &opts, find_child, k, err);
}

zarr_status zr_children_next(struct zr_children *k, const struct zr_child **out,
                             zarr_error *err)
{
    *out = NULL;
    for (;;) {
        if (k->at == k->n) {
            if (k->next == k->names.n)
                return ZARR_OK;
            ZR_CHECK(block_fill(k, err));
        }
        while (k->at < k->n) {
            const struct zr_child *child = &k->block[k->at++];

            if (child->st != ZARR_ERR_NOT_FOUND) {
                *out = child;
                return ZARR_OK;
            }
        }
    }
}
