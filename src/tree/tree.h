/*
 * tree/tree.h - the door of whole trees: what needs arrays and groups, or more than one
 * node.
 */
#ifndef ZR_TREE_H
#define ZR_TREE_H

#include "node/node.h"
#include <zarrc/array.h>
#include <zarrc/consolidate.h>
#include <zarrc/create.h>
#include <zarrc/group.h>
#include <zarrc/io.h>
#include <zarrc/node.h>
#include <zarrc/blocks.h>

/* zarr_node_copy() without a job object at the destination, where the caller has one. */
zarr_status zr_node_copy_plain(zarr_store *src, const char *src_path, zarr_store *dst,
                               const char *dst_path, const zarr_copy_options *opts,
                               zarr_error *err);

/* ---- nodes.c ---- */

struct zr_node_row {
    const char *path; /* path below the top node; "": the top node itself */
    uint32_t kind;    /* ZARR_NODE_*; NONE: its metadata cannot be read */
    int32_t format;
};
/* A list of nodes: parents before children, siblings by name. */
struct zr_nodes {
    struct zr_node_row *item;
    size_t n, cap;
    struct zr_arena arena;
    const zarr_allocator *alloc;
};
/* path: normalised. Reads the store; consolidated metadata only if the store cannot list.
 * NOT_FOUND: there is no node, not even a broken one. The caller frees *nodes even on
 * failure. */
zarr_status zr_nodes_find(struct zr_nodes *nodes, zarr_store *store, const char *path,
                          zarr_cancel *cancel, zarr_error *err);
void zr_nodes_free(struct zr_nodes *nodes);
/* zr_names_keys(). If the store cannot list: the documents of the nodes and, unless
 * `documents`, the stored blocks of their grids. */
zarr_status zr_tree_keys(struct zr_names *keys, zarr_store *store, const char *path,
                         bool documents, zarr_cancel *cancel, zarr_error *err);
/* Number of bytes of all elements in memory; saturates at UINT64_MAX. */
uint64_t zr_decoded_bytes(const zarr_array *array);

/* ---- fill.c ---- */

/* Appends an array's fill value as JSON text; for null the value that missing chunks read
 * as. type: its data type, or an equal one. */
zarr_status zr_array_fill_text(struct zr_str *out, const zarr_array *array,
                               const zarr_dtype *type, zarr_error *err);
/* Finds out whether missing chunks of both arrays read as the same elements. */
zarr_status zr_same_fill(const zarr_array *a, const zarr_array *b, bool *same,
                         zarr_error *err);

/* ---- wait.c ---- */

struct zr_waiting {
    /* Called at intervals and at the end with the request's counters; may be NULL. */
    void (*look)(void *arg, const zarr_stats *now, bool done);
    void *arg;
};
/* Waits until the request is done, and frees it. */
zarr_status zr_request_end(zarr_request *request, const struct zr_waiting *w,
                           zarr_error *err);

/* zarr_group_consolidate() for the group of this format, even if v3 hides v2. path:
 * normalised; o is complete. */
zarr_status zr_group_consolidate(zarr_store *store, const char *path,
                                 const zarr_consolidate_options *o, int32_t format,
                                 zarr_error *err);
/* Whether the documents are equal, their own consolidated metadata aside. */
bool zr_same_document(const struct zr_json *a, const struct zr_json *b);
/* Whether the attributes are equal. No attributes equal {}. */
bool zr_same_attributes(const struct zr_json *a, const struct zr_json *b);

#endif
