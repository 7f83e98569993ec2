/*
 * tree/copy_int.h - a copy or move under way, between copy.c (what, in which order) and
 * copy_object.c (one object).
 */
#ifndef ZR_TREE_COPY_INT_H
#define ZR_TREE_COPY_INT_H

#include "tree/tree.h"

struct zr_copy {
    zarr_store *src, *dst;
    char *src_path, *dst_path;
    zarr_copy_options opts;
    bool is_move;
    zarr_context *ctx;              /* of src: memory comes from it */
    struct zr_names keys;           /* relative */
    const char **chunk, **document; /* into keys.item */
    size_t n_chunks, n_documents;
    struct {
        zr_mutex mutex;
        uint64_t objects, bytes;
        bool told, telling; /* told: the caller knows these numbers */
    } locked;
};
/* Copies the object with this relative key, counts it and tells the caller. Several
 * threads may do this. */
zarr_status zr_copy_object(struct zr_copy *c, const char *name, zarr_error *err);

#endif
