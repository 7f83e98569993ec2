/*
 * node/members.h - a part of the door: what is below a group in the store.
 */
#ifndef ZR_NODE_MEMBERS_H
#define ZR_NODE_MEMBERS_H

#include "node/document.h"

/* ---- names below a group ------------------------------------------------ */

struct zr_names {
    struct zr_arena arena;
    const char **item; /* sorted by bytes, or by zr_path_compare() */
    size_t n, cap;
    uint64_t n_linked;         /* names that a symbolic link leads to */
    const zarr_cancel *cancel; /* ends the listing; NULL: never */
    const zarr_allocator *alloc;
};
void zr_names_init(struct zr_names *names, const zarr_allocator *alloc);
void zr_names_deinit(struct zr_names *names);
/* Collects all keys below path, relative to it, sorted by zr_path_compare(). LIMIT
 * listing_keys. */
zarr_status zr_names_keys(struct zr_names *names, zarr_store *store, const char *path,
                          zarr_error *err);
/* Adds one key to such a collection, until zr_names_sort_keys() sorts it. */
zarr_status zr_names_add(struct zr_names *names, const char *name, uint64_t limit,
                         zarr_error *err);
void zr_names_sort_keys(struct zr_names *names);
/* The place of a key among those, or names->n. */
size_t zr_names_find(const struct zr_names *names, const char *key);

/* ---- children of a group in the store, block by block ------------------- */

struct zr_child {
    const char *name;
    struct zr_str path;
    struct zr_found found;
    zarr_status st;
    zarr_error err;
};
struct zr_children {
    zarr_store *store;
    char *path;            /* path of the group */
    int32_t first;         /* format to try first */
    bool wait_for_writers; /* see zr_find */
    bool go_on;            /* of zr_seen */
    struct zr_names names;
    size_t next; /* index of the next name to look at */
    struct zr_child *block;
    size_t cap, n, at; /* of `block`: room, children in it, next one to return */
    const zarr_allocator *alloc;
};
/* What one walk has seen: the names of all its groups. The numbers are zero before the
 * walk. */
struct zr_seen {
    uint64_t n, n_linked;
    bool go_on;                /* a node that may not be read is broken, not an error */
    bool wait_for_writers;     /* see zr_find */
    const zarr_cancel *cancel; /* ends the walk; NULL: never */
};
/* path: normalised. Fails with LIMIT listing_keys or linked_directories if one group or
 * the walk has more names. */
zarr_status zr_children_open(struct zr_children *k, zarr_store *store, const char *path,
                             int32_t first, struct zr_seen *seen, zarr_error *err);
void zr_children_close(struct zr_children *k); /* accepts zeroed storage */
/* Returns the next node by name (kind NONE: broken), valid until the next call. *out is
 * NULL after the last. */
zarr_status zr_children_next(struct zr_children *k, const struct zr_child **out,
                             zarr_error *err);

/* ---- subtree.c: whole subtrees with their documents ------------------------------ */

/* Every node below a group, with its documents as the store has them. */
struct zr_subtree_node {
    const char *path; /* relative to the group; "": the group itself */
    uint32_t kind;
    struct zr_parsed *parsed, *attrs; /* counted; attrs: v2, may be NULL */
};
struct zr_subtree {
    struct zr_arena arena;
    struct zr_subtree_node *node; /* [0] is the group */
    struct zr_seen seen;
    size_t n, cap;
    int32_t format;
    const zarr_allocator *alloc;
};
/* Leaves out nodes of the other format. A broken node is an error. NOT_FOUND: there is no
 * group at path. format 0: the group's own, v3 first. wait_for_writers: of the documents
 * below the group (see zr_doc_wait_for_writer()). */
zarr_status zr_subtree_read(struct zr_subtree *out, zarr_store *store, const char *path,
                            int32_t format, bool wait_for_writers,
                            const zarr_cancel *cancel, zarr_error *err);
/* Reads the node at path, an array or a group of this format, and all nodes below it if
 * `below`; then it waits for writers of all these documents. out->n is 0 if there is no
 * such node. */
zarr_status zr_subtree_read_node(struct zr_subtree *out, zarr_store *store,
                                 const char *path, int32_t format,
                                 const zarr_cancel *cancel, bool below, zarr_error *err);
void zr_subtree_deinit(struct zr_subtree *g);

#endif
