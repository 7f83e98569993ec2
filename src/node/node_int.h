/*
 * node/node_int.h - what the files of this room share.
 */
#ifndef ZR_NODE_INT_H
#define ZR_NODE_INT_H

#include "node/node.h"

/* The source of a document, with its key and its limit. */
struct zr_doc_place {
    const struct zr_doc_source *src;
    struct zr_str key;
    const zarr_cancel *cancel; /* ends the operations */
    uint64_t limit;
    const char *limit_name; /* name of the limit, a member of zarr_limits */
};

enum {
    /* room for a document of a store where a second read costs a journey */
    ZR_DOC_FAR = 64 << 10,
    ZR_DOC_FAR_LARGE = 4 << 20
};

/* Initialises place->key even if it fails. */
zarr_status zr_doc_place_open(struct zr_doc_place *place, const struct zr_doc_source *src,
                              zarr_error *err);
/* flags: ZARR_STORE_OP_*. If NOT_FOUND, err is not set. */
zarr_status zr_doc_read_at(struct zr_doc *d, const struct zr_doc_place *place,
                           uint32_t flags, zarr_error *err);

/* Collects the prefixes one level below path, which may be children. LIMIT
 * listing_keys. */
zarr_status zr_names_below(struct zr_names *names, zarr_store *store, const char *path,
                           zarr_error *err);

#endif
