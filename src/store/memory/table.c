/*
 * store/memory/table.c - a hash table from key to value for the memory store. Values are
 * reference-counted and never change. So the mutex is only held for a look-up: copying
 * happens without it, and a reader of a replaced value keeps the old one until it is
 * done. Buckets are chained and doubled when the table is full. A skip list
 * (memory/key_order.c) keeps the nodes sorted by key for listings and renames.
 * Thread class: shared; survives fork (a hook holds the mutex during the fork).
 */
#include "store/memory/memory_int.h"

#include <string.h>

enum {
    TABLE_FIRST_BUCKETS = 64
};

/* ---- values ---- */

zarr_status zr_memory_value_create(struct zr_memory_value **out,
                                   const zarr_allocator *alloc,
                                   const struct zr_backend *backend, int32_t device_id,
                                   uint64_t bytes, zarr_error *err)
{
    struct zr_memory_value *v = zr_calloc(alloc, 1, sizeof *v);
    zarr_status st = ZARR_OK;

    if (!v)
        return zr_fail_memory(err, sizeof *v);
    atomic_init(&v->refs, 1);
    v->alloc = alloc;
    v->backend = backend;
    if (bytes > 0)
        st = backend->vt.alloc(backend->self, device_id, bytes, &v->mem, err);
    if (st != ZARR_OK) {
        zr_free(alloc, v);
        return st;
    }
    v->mem.bytes = bytes;
    *out = v;
    return ZARR_OK;
}

void zr_memory_value_free(struct zr_memory_value *v)
{
    if (!v || atomic_fetch_sub(&v->refs, 1) != 1)
        return;
    if (v->mem.bytes > 0)
        v->backend->vt.free(v->backend->self, &v->mem);
    zr_free(v->alloc, v);
}

/* ---- the table ---- */

zarr_status zr_memory_table_init(struct zr_memory_table *t, const zarr_allocator *alloc,
                                 zarr_error *err)
{
    size_t bytes = TABLE_FIRST_BUCKETS * sizeof(struct zr_memory_node *);

    memset(t, 0, sizeof *t);
    t->alloc = alloc;
    t->locked.bucket = zr_calloc(alloc, TABLE_FIRST_BUCKETS, sizeof *t->locked.bucket);
    if (!t->locked.bucket)
        return zr_fail_memory(err, bytes);
    t->locked.n_buckets = TABLE_FIRST_BUCKETS;
    t->locked.height = 1;
    zr_mutex_init(&t->locked.mutex);
    t->fork = (struct zr_fork_hook){.mutex = &t->locked.mutex};
    zr_fork_hook_add(&t->fork);
    return ZARR_OK;
}

void zr_memory_table_deinit(struct zr_memory_table *t)
{
    struct zr_memory_node *node, *next;

    if (!t->locked.bucket)
        return; /* init failed */
    zr_fork_hook_remove(&t->fork);
    for (size_t i = 0; i < t->locked.n_buckets; i++) {
        for (node = t->locked.bucket[i]; node; node = next) {
            next = node->next;
            zr_memory_value_free(node->value);
            zr_free(t->alloc, node);
        }
    }
    zr_free(t->alloc, t->locked.bucket);
    zr_mutex_deinit(&t->locked.mutex);
}

static uint64_t memory_hash(const char *key)
{
    return zr_map_hash(key, strlen(key));
}

/* Returns the place of the pointer to key's node. If there is none, the place is for a
 * new node. */
static struct zr_memory_node **memory_slot_locked(struct zr_memory_table *t,
                                                  const char *key, uint64_t hash)
{
    struct zr_memory_node **p = &t->locked.bucket[hash & (t->locked.n_buckets - 1)];

    while (*p && ((*p)->hash != hash || strcmp((*p)->key, key) != 0))
        p = &(*p)->next;
    return p;
}

struct zr_memory_value *zr_memory_table_get(struct zr_memory_table *t, const char *key)
{
    uint64_t hash = memory_hash(key);
    struct zr_memory_value *v = NULL;
    struct zr_memory_node *node;

    zr_mutex_lock(&t->locked.mutex);
    node = *memory_slot_locked(t, key, hash);
    if (node) {
        v = node->value;
        atomic_fetch_add(&v->refs, 1);
    }
    zr_mutex_unlock(&t->locked.mutex);
    return v;
}

/* Doubles the buckets if the table is full. Without memory for them the chains get
 * longer. */
static void memory_rehash_locked(struct zr_memory_table *t)
{
    size_t n = t->locked.n_buckets * 2;
    struct zr_memory_node **bucket, *node, *next;

    if (t->locked.n_keys < t->locked.n_buckets)
        return;
    bucket = zr_calloc(t->alloc, n, sizeof *bucket);
    if (!bucket)
        return;
    for (size_t i = 0; i < t->locked.n_buckets; i++) {
        for (node = t->locked.bucket[i]; node; node = next) {
            next = node->next;
            node->next = bucket[node->hash & (n - 1)];
            bucket[node->hash & (n - 1)] = node;
        }
    }
    zr_free(t->alloc, t->locked.bucket);
    t->locked.bucket = bucket;
    t->locked.n_buckets = n;
}

static zarr_status memory_insert_locked(struct zr_memory_table *t,
                                        struct zr_memory_node **slot, const char *key,
                                        uint64_t hash, struct zr_memory_value *value,
                                        zarr_error *err)
{
    size_t key_bytes = strlen(key) + 1;
    struct zr_memory_node *node = zr_memory_node_new(t->alloc, hash, key_bytes, err);

    if (!node)
        return ZARR_ERR_NO_MEMORY;
    node->value = value;
    memcpy(node->key, key, key_bytes);
    *slot = node;
    zr_memory_order_add(t, node);
    t->locked.n_keys++;
    memory_rehash_locked(t);
    return ZARR_OK;
}

zarr_status zr_memory_table_change(struct zr_memory_table *t, struct zr_memory_change *c,
                                   zarr_error *err)
{
    uint64_t hash = memory_hash(c->key);
    struct zr_memory_value *old = NULL;
    struct zr_memory_node **slot, *node;
    zarr_status st = ZARR_OK;

    zr_mutex_lock(&t->locked.mutex);
    slot = memory_slot_locked(t, c->key, hash);
    node = *slot;
    c->found = node != NULL;
    if (c->expected && (node || c->to) &&
        *c->expected != (node ? node->value->version : 0)) {
        st = ZARR_ERR_CONFLICT;
    } else if (!c->to && node) {
        old = node->value;
        *slot = node->next;
        zr_memory_order_remove(t, node);
        zr_free(t->alloc, node);
        t->locked.n_keys--;
    } else if (c->to && node) {
        old = node->value;
        node->value = c->to;
    } else if (c->to) {
        st = memory_insert_locked(t, slot, c->key, hash, c->to, err);
    }
    zr_mutex_unlock(&t->locked.mutex);
    zr_memory_value_free(old);
    return st;
}

/* ---- renaming ---- */

/* Makes nodes for the new keys, which are not in the table yet. The old nodes still own
 * the values. After a failure *out has some of the nodes. */
static zarr_status memory_copies_locked(struct zr_memory_table *t, const char *from,
                                        const char *to, struct zr_memory_node **out,
                                        zarr_error *err)
{
    const size_t cut = strlen(from), add = strlen(to);

    if (zr_memory_order_below(t, to))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "there is something below %s", to);
    for (const struct zr_memory_node *old = zr_memory_order_below(t, from);
         old && zr_key_is_below(old->key, from); old = old->after[0]) {
        const size_t rest = strlen(old->key + cut) + 1;
        struct zr_str key;
        struct zr_memory_node *node = NULL;

        zr_str_init(&key, t->alloc);
        zr_str_append(&key, to, add);
        zr_str_append(&key, old->key + cut, rest);
        if (zr_str_status(&key, err) == ZARR_OK)
            node = zr_memory_node_new(t->alloc, memory_hash(key.ptr), add + rest, err);
        if (node) {
            node->next = *out;
            node->value = old->value;
            memcpy(node->key, key.ptr, add + rest);
            *out = node;
        }
        zr_str_deinit(&key);
        if (!node)
            return ZARR_ERR_NO_MEMORY;
    }
    return ZARR_OK;
}

static void memory_drop_below_locked(struct zr_memory_table *t, const char *prefix)
{
    struct zr_memory_node *node = zr_memory_order_below(t, prefix), *next;

    for (; node && zr_key_is_below(node->key, prefix); node = next) {
        next = node->after[0];
        *memory_slot_locked(t, node->key, node->hash) = node->next;
        zr_memory_order_remove(t, node);
        zr_free(t->alloc, node); /* the new node owns its value */
    }
}

zarr_status zr_memory_table_rename(struct zr_memory_table *t, const char *from,
                                   const char *to, zarr_error *err)
{
    struct zr_memory_node *fresh = NULL, *next;
    zarr_status st = ZARR_OK;

    zr_mutex_lock(&t->locked.mutex);
    ZR_TRY(memory_copies_locked(t, from, to, &fresh, err));
    if (!fresh)
        ZR_FAIL(err, ZARR_ERR_NOT_FOUND, "%s: no keys below", from);
    memory_drop_below_locked(t, from);
    for (; fresh; fresh = next) {
        struct zr_memory_node **slot = memory_slot_locked(t, fresh->key, fresh->hash);

        next = fresh->next;
        fresh->next = NULL;
        *slot = fresh;
        zr_memory_order_add(t, fresh);
    }
out:
    zr_mutex_unlock(&t->locked.mutex);
    for (; fresh; fresh = next) {
        next = fresh->next;
        zr_free(t->alloc, fresh);
    }
    return st;
}
