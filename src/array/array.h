/*
 * array/array.h - the door of arrays, for rooms that open or convert arrays in other ways
 * than the public functions.
 */
#ifndef ZR_ARRAY_H
#define ZR_ARRAY_H

#include "meta/meta.h"
#include "node/node.h"
#include <zarrc/array.h>
#include <zarrc/check.h>
#include <zarrc/create.h>
#include <zarrc/io.h>
#include <zarrc/shape.h>
#include <zarrc/blocks.h>

/* flags: the flags that this call knows. */
zarr_status zr_array_options_read(zarr_array_open_options *o,
                                  const zarr_array_open_options *opts, uint32_t flags,
                                  zarr_error *err);
/* Opens an array from an entry that points into `parsed`, without a request. path: from
 * the store's root; moved even on failure. o: from zr_array_options_read(). */
zarr_status zr_array_open_entry(zarr_array **out, zarr_store *store, char *path,
                                struct zr_parsed *parsed, const struct zr_entry *entry,
                                const zarr_array_open_options *o, zarr_error *err);
/* Opens the array that zr_node_find() found at path, which is moved, even on failure. */
zarr_status zr_array_open_found(zarr_array **out, zarr_store *store, char *path,
                                struct zr_found *found, const zarr_array_open_options *o,
                                zarr_error *err);
/* zarr_array_open() that tries a format first, as struct zr_find has it. */
zarr_status zr_array_open_first(zarr_array **out, zarr_store *store, const char *path,
                                int32_t first, const zarr_array_open_options *opts,
                                zarr_error *err);
/* Makes the array's metadata in another format. It may point into the array's documents,
 * so the array must not be changed or freed before it. */
zarr_status zr_array_convert(struct zr_array_meta *out, const zarr_array *array,
                             int32_t format, zarr_error *err);

/* The same with the array for zr_missing_plan() and zr_missing_value(). */
zarr_status zr_array_missing_plan(struct zr_missing_change *out, const zarr_array *array,
                                  int32_t format, struct zr_json_doc *doc,
                                  zarr_error *err);
zarr_status zr_array_missing_value(struct zr_json **out, bool *variable,
                                   const zarr_array *array, struct zr_json_doc *doc,
                                   zarr_error *err);

/* Whether the group at this path, or one above it, also above the store, has the mark by
 * which arrays of netCDF-C are recognised (origin.c). */
zarr_status zr_origin_mark_at(zarr_store *store, const char *path, bool *found,
                              const zarr_cancel *cancel, zarr_error *err);
zarr_status zr_origin_mark_above(zarr_store *store, const char *path, bool *found,
                                 const zarr_cancel *cancel, zarr_error *err);

/* Returns the element that missing elements are. As zarr_array_fill_value(), but never
 * NULL. */
const void *zr_array_fill_element(const zarr_array *array);

/* Returns the grid of blocks. Valid until the handle is changed or
 * freed. */
const struct zr_grid *zr_array_grid(const zarr_array *array);

/* Whether a block is a shard with one index, not with shards inside. */
bool zr_array_has_one_index(const zarr_array *array);

/* Checks the metadata of an open array as that of a new one is checked. INVALID,
 * UNSUPPORTED or LIMIT: it was read although a new array must not have it. */
zarr_status zr_array_strict(const zarr_array *array, zarr_error *err);

/* zarr_array_verify() with a report of what is stored outside of the shape. */
struct zr_verify_call {
    int (*fn)(void *user, const zarr_verify_item *item);
    /* Called at the end, for chunks outside and for elements outside: n of them, and the
     * key of one. May be NULL. */
    void (*outside)(void *user, bool chunks, uint64_t n, const char *key);
    /* Called at the end for keys below the array that are neither chunks nor documents:
     * for those that look like chunks of another key encoding or rank, and for the
     * others. May be NULL. */
    void (*foreign)(void *user, bool like_chunks, uint64_t n, const char *key);
    /* Called at the end for blocks that are not stored: n of them, and the key
     * of the first. If it is set, a shard without some of its chunks is a fault, too. May
     * be NULL. */
    void (*missing)(void *user, uint64_t n, const char *key);
    void *user;
};
zarr_status zr_array_verify(zarr_array *array, const struct zr_verify_call *call,
                            const zarr_io_options *opts, zarr_error *err);

/* LIMIT if one block needs more memory than the context or opts permit. For a
 * call that changes the array before it reads or writes. opts may be NULL; *need as for
 * zr_memory_check(). */
zarr_status zr_array_memory_check(const zarr_array *a, int32_t device_type,
                                  const zarr_io_options *opts, bool write, uint64_t *need,
                                  zarr_error *err);

/* Bytes of the elements of one chunk of the array's largest shard, if its shards
 * can be written in parts (zarr_shard_writer_open()); else 0. */
uint64_t zr_array_part_bytes(const zarr_array *array);

#endif
