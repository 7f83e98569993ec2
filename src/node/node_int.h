/*
 * node/node_int.h - what the files of this room share.
 */
#ifndef ZR_NODE_INT_H
#define ZR_NODE_INT_H

#include "node/node.h"

/* A document's source, with what is worked out from it. */
struct zr_doc_place {
    const struct zr_doc_source *src;
    struct zr_str key;
    uint64_t limit;
    const char *knob; /* of zarr_limits */
};

/* place->key is initialised, also when this fails. */
zarr_status zr_doc_place_open(struct zr_doc_place *place, const struct zr_doc_source *src,
                              zarr_error *err);
/* flags: ZARR_STORE_OP_*. NOT_FOUND leaves err alone. */
zarr_status zr_doc_read_at(struct zr_doc *d, const struct zr_doc_place *place,
                           uint32_t flags, zarr_error *err);
/* "path/name"; fine when it is not there. */
zarr_status zr_doc_erase(zarr_store *store, const char *path, const char *name,
                         zarr_error *err);

/* Prefixes one level below path: what may be a child. LIMIT listing_keys. */
zarr_status zr_names_below(struct zr_names *names, zarr_store *store, const char *path,
                           zarr_error *err);

#endif
