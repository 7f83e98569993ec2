/*
 * group/group.h - the door of groups: members by path, and consolidated metadata.
 */
#ifndef ZR_GROUP_H
#define ZR_GROUP_H

#include "node/node.h"
#include <zarrc/group.h>

/* Every node below a group, read from one document. */
struct zr_consolidated {
    atomic_uint refs;
    struct zr_parsed *parsed; /* the document that the entries point into */
    struct zr_arena arena;
    struct zr_entry *entry; /* sorted by zr_path_compare() */
    size_t n;
    const zarr_allocator *alloc;
};
/* metadata: the object inside `parsed` that has the entries. CORRUPT if it is not a list
 * of documents. */
zarr_status zr_consolidated_parse(struct zr_consolidated **out, struct zr_parsed *parsed,
                                  const struct zr_json *metadata, int32_t format,
                                  const zarr_limits *limits, zarr_error *err);
struct zr_consolidated *zr_consolidated_ref(struct zr_consolidated *c);
void zr_consolidated_free(struct zr_consolidated *c);
/* Returns the index of the first entry that is not before path. */
size_t zr_consolidated_seek(const struct zr_consolidated *c, const char *path);
/* Returns NULL if there is none. */
const struct zr_entry *zr_consolidated_find(const struct zr_consolidated *c,
                                            const char *path);

/* The place of a member of a group. */
struct zr_child_path {
    char *path; /* from the store's root; owned */
    /* its entry in cons; NULL: it must be looked up in the store */
    const struct zr_entry *entry;
    struct zr_consolidated *cons; /* counted */
    int32_t first; /* the format of its group, which the look-up tries first */
};
zarr_status zr_child_find(struct zr_child_path *out, const zarr_group *group,
                          const char *path, uint32_t consolidated, zarr_error *err);
void zr_child_release(struct zr_child_path *c, const zarr_allocator *alloc);
zarr_status zr_group_options_read(zarr_group_open_options *o,
                                  const zarr_group_open_options *opts, zarr_error *err);
/* Opens the group that zr_node_find() found at path. o: from zr_group_options_read(). */
zarr_status zr_group_open_found(zarr_group **out, zarr_store *store, const char *path,
                                struct zr_found *found, const zarr_group_open_options *o,
                                zarr_error *err);
/* The documents of a v2 group that a call with these options reads: ZR_V2_*. */
uint32_t zr_group_v2_documents(const zarr_group_open_options *o);
/* v2: the name of the consolidated document that the opener gave; or NULL. */
const char *zr_group_consolidated_key(const zarr_group *group);
/* Returns a counted reference. NULL: the group has none, or its opener did not want
 * it. */
struct zr_consolidated *zr_group_consolidated(const zarr_group *group);

#endif
