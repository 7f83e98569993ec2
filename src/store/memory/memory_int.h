/*
 * store/memory/memory_int.h - the table of the memory store: from keys to
 * reference-counted values that never change.
 */
#ifndef ZR_MEMORY_STORE_INT_H
#define ZR_MEMORY_STORE_INT_H

#include "store/store_int.h"

/* One value. It never changes after it is in the table. Readers hold a reference, and so
 * does each key that it was copied to. */
struct zr_memory_value {
    atomic_uint refs;
    zarr_memory mem; /* of exactly the value's length, in the memory kind of the store */
    const struct zr_backend *backend;
    const zarr_allocator *alloc;
    uint64_t version; /* unique in this store, never 0 */
};
/* Makes a value of `bytes` bytes with uninitialized contents and one reference. */
zarr_status zr_memory_value_create(struct zr_memory_value **out,
                                   const zarr_allocator *alloc,
                                   const struct zr_backend *backend, int32_t device_id,
                                   uint64_t bytes, zarr_error *err);
void zr_memory_value_free(
    struct zr_memory_value *v); /* drops one reference; NULL is allowed */

/* ---- memory/memory_parts.c: a value that is written in parts ---- */

struct zr_memory_parts {
    const zarr_allocator *alloc;
    bool is_committed;
    zarr_store_version version; /* of the value */
    struct {
        zr_mutex mutex;
        struct zr_part_list list; /* each has a struct zr_memory_value, which it owns */
    } locked;
    char key[];
};
zarr_status zr_memory_parts_create(struct zr_memory_parts **out,
                                   const zarr_allocator *alloc, const char *key,
                                   zarr_error *err);
void zr_memory_parts_free(struct zr_memory_parts *p);
/* INVALID if these are the parts of another key. */
zarr_status zr_memory_parts_check(const struct zr_memory_parts *p, const char *key,
                                  zarr_error *err);
/* Adds the part of a PUT_PART. value: moved on success. */
zarr_status zr_memory_parts_add(struct zr_memory_parts *p, const zarr_store_op *op,
                                struct zr_memory_value *value, zarr_error *err);
/* A GET of the parts. */
zarr_status zr_memory_parts_read(struct zr_memory_parts *p,
                                 const struct zr_memory_registry *memory,
                                 zarr_store_op *op, zarr_error *err);
/* Copies the parts into a value, counted in op. INVALID if they do not make it. */
zarr_status zr_memory_parts_join(struct zr_memory_parts *p,
                                 const struct zr_memory_registry *memory,
                                 const zarr_memory *to, zarr_store_op *op,
                                 zarr_error *err);

enum {
    ZR_MEMORY_HEIGHT = 16 /* levels of the skip list: enough for 4^16 keys */
};
struct zr_memory_node {
    struct zr_memory_node *next;   /* of its bucket */
    struct zr_memory_value *value; /* counted */
    uint64_t hash;
    char *key; /* behind `after` */
    unsigned height;
    struct zr_memory_node *after[]; /* on each level: the next node by key */
};
struct zr_memory_table {
    const zarr_allocator *alloc;
    struct {
        zr_mutex mutex;
        struct zr_memory_node **bucket;
        size_t n_buckets, n_keys;                       /* n_buckets: a power of two */
        struct zr_memory_node *first[ZR_MEMORY_HEIGHT]; /* on each level */
        unsigned height;                                /* levels in use, at least 1 */
    } locked;
    struct zr_fork_hook fork;
};
zarr_status zr_memory_table_init(struct zr_memory_table *t, const zarr_allocator *alloc,
                                 zarr_error *err);
void zr_memory_table_deinit(struct zr_memory_table *t);
/* Returns a reference that the caller must drop; NULL if the key does not exist. */
struct zr_memory_value *zr_memory_table_get(struct zr_memory_table *t, const char *key);

/* One change of a key: sets or erases its value if the old one has the version `expected`
 * (NULL: any). CONFLICT comes without an error text. */
struct zr_memory_change {
    const char *key;
    const uint64_t *expected;   /* a version; 0: no such key */
    struct zr_memory_value *to; /* moved on success; NULL: erases the key */
    bool found;                 /* out: there was a value before */
};
zarr_status zr_memory_table_change(struct zr_memory_table *t, struct zr_memory_change *c,
                                   zarr_error *err);
/* Moves all keys below `from` to below `to` in one step, as the store's rename does. */
zarr_status zr_memory_table_rename(struct zr_memory_table *t, const char *from,
                                   const char *to, zarr_error *err);

/* ---- memory/key_order.c: the keys in order; under the table's mutex ---- */

/* Room for a key of key_bytes bytes, which the caller copies. NULL, with err set: no
 * memory. */
struct zr_memory_node *zr_memory_node_new(const zarr_allocator *alloc, uint64_t hash,
                                          size_t key_bytes, zarr_error *err);
void zr_memory_order_add(struct zr_memory_table *t, struct zr_memory_node *node);
void zr_memory_order_remove(struct zr_memory_table *t, struct zr_memory_node *node);
/* Returns the first node below a prefix, or NULL. */
struct zr_memory_node *zr_memory_order_below(struct zr_memory_table *t,
                                             const char *prefix);

enum {
    ZR_MEMORY_PAGE = 4096 /* keys that are copied at once */
};
/* A copy of some of the keys below a prefix, sorted. */
struct zr_memory_row {
    const char *key;
    uint64_t bytes;
    bool is_prefix; /* all keys below this one */
};
struct zr_memory_list {
    struct zr_str text; /* the keys, each terminated */
    struct zr_memory_row *row;
    size_t n, cap;
    struct zr_str last; /* the last row of the page before this one */
    bool has_last, last_is_prefix;
};
void zr_memory_list_init(struct zr_memory_list *x, const zarr_allocator *alloc);
/* Copies the next ZR_MEMORY_PAGE keys, or those that are left. Not `deep`: one level,
 * with prefixes for what is below. */
zarr_status zr_memory_table_list(struct zr_memory_table *t, const char *prefix, bool deep,
                                 struct zr_memory_list *out, zarr_error *err);
void zr_memory_list_deinit(struct zr_memory_list *x);

#endif
