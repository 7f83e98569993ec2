/*
 * base/containers.h - a part of the door: maps from text to pointers, and registries.
 */
#ifndef ZR_BASE_CONTAINERS_H
#define ZR_BASE_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zarrc/context.h>
#include <zarrc/error.h>

/* ---- map: text key -> pointer, in order of insertion ------------------------ */

struct zr_map_item {
    char *key; /* owned by the map */
    size_t key_bytes;
    void *value; /* borrowed; freed by free_value if given */
    uint64_t hash;
};
struct zr_map {
    struct zr_map_item *items;
    size_t n, cap;
    uint32_t *slots; /* open addressing, index + 1 */
    size_t n_slots;
    const zarr_allocator *alloc;
    void (*free_value)(const zarr_allocator *alloc, void *value);
};
/* The hash of a map: keyed per process, so strangers cannot choose keys that collide. */
uint64_t zr_map_hash(const char *key, size_t n);
void zr_map_init(struct zr_map *m, const zarr_allocator *alloc,
                 void (*free_value)(const zarr_allocator *, void *));
void zr_map_deinit(struct zr_map *m);
void *zr_map_get(const struct zr_map *m, const char *key);
void *zr_map_get_n(const struct zr_map *m, const char *key, size_t n);
/* Frees the old value of the key. After a failure the caller still owns `value`. */
zarr_status zr_map_put(struct zr_map *m, const char *key, void *value, zarr_error *err);
zarr_status zr_map_put_n(struct zr_map *m, const char *key, size_t n, void *value,
                         zarr_error *err);             /* keys with zero bytes inside */
bool zr_map_remove(struct zr_map *m, const char *key); /* keeps order; O(n) */
/* O(1): the last item takes the place of the removed one. */
bool zr_map_remove_unordered(struct zr_map *m, const char *key);

/* ---- registry: entries in order of registration, found by name -------------- */

/* The first member of every entry. The owner's fields follow, with a copy of the
 * registered table. */
struct zr_registered {
    const char *name;   /* NULL: no name here */
    const char *origin; /* "core", or the name of the plug-in that registered it */
};
struct zr_registry {
    const char *what; /* "codec": for messages; borrowed */
    const zarr_allocator *alloc;
    struct zr_registered **entry; /* owned; entries do not move */
    size_t n, cap;
    struct zr_map names; /* names and aliases -> struct zr_registered */
    void (*close)(struct zr_registered *e); /* frees what an entry owns; or NULL */
};
void zr_registry_init(struct zr_registry *r, const char *what,
                      const zarr_allocator *alloc,
                      void (*close)(struct zr_registered *e));
void zr_registry_deinit(struct zr_registry *r); /* removes the newest entry first */
/* Adds a copy of the `bytes` bytes at `entry`, with its texts. EXISTS names the owner of
 * a name or alias that is taken. aliases: ends with NULL; NULL: none. After a failure the
 * caller still owns what the entry owns. */
zarr_status zr_registry_add(struct zr_registry *r, const struct zr_registered *entry,
                            size_t bytes, const char *const *aliases, zarr_error *err);
/* The same in two steps, for entries that must be complete before they can be found.
 * put() moves the entry if it succeeds. */
struct zr_registered *zr_registry_make(const struct zr_registry *r,
                                       const struct zr_registered *entry, size_t bytes,
                                       zarr_error *err);
zarr_status zr_registry_put(struct zr_registry *r, struct zr_registered *e,
                            const char *const *aliases, zarr_error *err);
void zr_registry_drop(const struct zr_registry *r,
                      struct zr_registered *e); /* closes it */
struct zr_registered *zr_registry_find(const struct zr_registry *r,
                                       const char *name); /* or NULL */
/* OK if `had` is NULL. Otherwise EXISTS, which says that `had` has the name, or the alias
 * (NULL: the name). */
zarr_status zr_registry_refuse_taken(const struct zr_registry *r, const char *name,
                                     const char *alias, const struct zr_registered *had,
                                     zarr_error *err);

#endif
