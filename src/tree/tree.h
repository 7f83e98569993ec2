/*
 * tree/tree.h - the door of whole trees: what needs arrays and groups, or more than one
 * node.
 */
#ifndef ZR_TREE_H
#define ZR_TREE_H

#include "node/node.h"

/* Whether the caller has set its `cancel`, which may be NULL. */
static inline bool zr_is_cancelled(const int *cancel)
{
    return cancel && *(const volatile int *)cancel != 0;
}

/* Every node below a group, with its documents, as the store has them. */
struct zr_gathered_node {
    const char *path; /* relative to the group; "": the group itself */
    uint32_t kind;
    struct zr_parsed *parsed, *attrs; /* counted; attrs: v2, may be NULL */
};
struct zr_gathered {
    struct zr_arena arena;
    struct zr_gathered_node *node; /* [0] is the group */
    uint64_t seen;                 /* names, for the limit */
    size_t n, cap;
    int32_t format;
    const zarr_allocator *alloc;
};
/* Nodes of the other format are left out. A broken node is an error. NOT_FOUND: no group
 * at path. format 0: the group's, v3 first. */
zarr_status zr_gather(struct zr_gathered *out, zarr_store *store, const char *path,
                      int32_t format, zarr_error *err);
void zr_gathered_deinit(struct zr_gathered *g);

/* zarr_group_consolidate() for the group of this format, also where v3 hides v2. path:
 * normalised; key may be NULL. */
zarr_status zr_group_consolidate(zarr_store *store, const char *path, const char *key,
                                 int32_t format, zarr_error *err);
/* Equal but for consolidated metadata of their own. */
bool zr_same_document(const struct zr_json *a, const struct zr_json *b);
/* Equal, where none is as good as {}. */
bool zr_same_attributes(const struct zr_json *a, const struct zr_json *b);

#endif
