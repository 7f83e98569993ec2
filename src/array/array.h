/*
 * array/array.h - the door of arrays, for rooms that open or convert one otherwise than
 * by the public functions.
 */
#ifndef ZR_ARRAY_H
#define ZR_ARRAY_H

#include "meta/meta.h"
#include "node/node.h"
#include <zarrc/array.h>

zarr_status zr_array_options_read(zarr_array_open_options *o,
                                  const zarr_array_open_options *opts, zarr_error *err);
/* Opens an array by an entry that points into parsed, without a request. path: from the
 * store's root, moved, also on failure; o: from zr_array_options_read(). */
zarr_status zr_array_open_entry(zarr_array **out, zarr_store *store, char *path,
                                struct zr_parsed *parsed, const struct zr_entry *entry,
                                const zarr_array_open_options *o, zarr_error *err);
/* The array's metadata in another format. It may point into the array's documents: the
 * array must neither change nor be freed before it. */
zarr_status zr_array_convert(struct zr_array_meta *out, const zarr_array *array,
                             int32_t format, zarr_error *err);

/* The grid of the units of writing; good until the handle is changed or freed. */
const struct zr_grid *zr_array_grid(const zarr_array *array);

/* zarr_array_verify() with a flag that stops it (CANCELLED). */
struct zr_verify_call {
    int (*fn)(void *user, const zarr_verify_item *item);
    void *user;
    const int *cancel; /* may be NULL */
};
zarr_status zr_array_verify(zarr_array *array, const struct zr_verify_call *call,
                            const zarr_io_options *opts, zarr_error *err);

#endif
