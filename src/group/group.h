/*
 * group/group.h - the door of groups: their members by path, and their consolidated
 * metadata.
 */
#ifndef ZR_GROUP_H
#define ZR_GROUP_H

#include "node/node.h"
#include <zarrc/group.h>

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
