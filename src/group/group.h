/*
 * group/group.h - the door of groups: their members by path, and their consolidated
 * metadata.
 */
#ifndef ZR_GROUP_H
#define ZR_GROUP_H

#include "node/node.h"
#include <zarrc/group.h>

/* Every node below a group, out of one document. */
struct zr_consolidated {
    atomic_uint refs;
    struct zr_parsed *parsed; /* what the entries point into */
    struct zr_arena arena;
    struct zr_entry *entry; /* sorted by zr_path_compare() */
    size_t n;
    const zarr_allocator *alloc;
};
/* metadata: the object of entries inside parsed. CORRUPT for what is no list of
 * documents. */
zarr_status zr_consolidated_parse(struct zr_consolidated **out, struct zr_parsed *parsed,
                                  const struct zr_json *metadata, int32_t format,
                                  const zarr_limits *limits, zarr_error *err);
struct zr_consolidated *zr_consolidated_ref(struct zr_consolidated *c);
void zr_consolidated_free(struct zr_consolidated *c);
/* First entry not before path. */
size_t zr_consolidated_seek(const struct zr_consolidated *c, const char *path);
/* NULL: not there. */
const struct zr_entry *zr_consolidated_find(const struct zr_consolidated *c,
                                            const char *path);

/* Where a member of a group is. */
struct zr_child_path {
    char *path;                   /* from the store's root; owned */
    const struct zr_entry *entry; /* in cons; NULL: to be looked for in the store */
    struct zr_consolidated *cons; /* counted */
};
zarr_status zr_child_find(struct zr_child_path *out, const zarr_group *group,
                          const char *path, uint32_t consolidated, zarr_error *err);
void zr_child_release(struct zr_child_path *c, const zarr_allocator *alloc);
/* Counted; NULL: the group has none, or its opener did not want it. */
struct zr_consolidated *zr_group_consolidated(const zarr_group *group);

#endif
