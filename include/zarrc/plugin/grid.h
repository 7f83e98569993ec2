/**
 * @file
 * How to make a chunk grid and a chunk key encoding. For extenders: stable for each
 * plug-in ABI number.
 *
 * A chunk grid cuts each dimension of an array on its own, into chunks that are numbered
 * from 0. That covers regular and rectilinear grids. A chunk key encoding turns the
 * coordinates of a chunk in its grid into a key, and back.
 *
 * The library calls the functions from any thread, several at once. `self`, which parse()
 * makes, must not change until free(). Functions that write text do so as snprintf():
 * they write at most `cap` bytes with the NUL, and tell the length without the NUL even
 * if it exceeds the buffer. `text` may be NULL if `cap` is 0. Functions that fail fill
 * `err` with one line of text.
 *
 * Spec: Zarr v3 core, "Chunk grids" and "Chunk key encoding".
 */
#ifndef ZARRC_PLUGIN_GRID_H
#define ZARRC_PLUGIN_GRID_H

#include <zarrc/base.h>
#include <zarrc/error.h>

ZARR_BEGIN_DECLS

/**
 * A chunk grid. Required are `name`, parse(), canonical(), n_chunks(), locate() and
 * extent(). Any other entry may be NULL, which has the meaning that its comment gives.
 * Coordinates and sizes are in elements.
 */
typedef struct zarr_grid_vtable {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    const char *name;            /**< name in metadata, such as "regular" */
    /**
     * Makes in `*self` the grid of an array with `ndim` dimensions of the lengths
     * `shape`. `json` is the JSON text of the member `configuration`. The library has
     * checked `ndim` and nothing else. It calls the function again after a resize. A
     * configuration that is wrong or does not fit the array is INVALID.
     */
    zarr_status (*parse)(void **self, int32_t ndim, const uint64_t *shape,
                         const char *json, zarr_error *err);
    /** Writes the canonical configuration, the JSON text of an object. */
    zarr_status (*canonical)(const void *self, char *text, size_t cap, size_t *text_bytes,
                             zarr_error *err);
    /** Returns the number of chunks along dimension `dim`. */
    uint64_t (*n_chunks)(const void *self, int32_t dim);
    /** Returns the chunk along dimension `dim` that has the coordinate `at`, which is
     * below the length of the dimension. */
    uint64_t (*locate)(const void *self, int32_t dim, uint64_t at);
    /** Tells the first coordinate of a chunk along dimension `dim`, and the size that it
     * is stored with. A chunk may reach beyond the array. */
    void (*extent)(const void *self, int32_t dim, uint64_t chunk, uint64_t *origin,
                   uint64_t *size);
    /** Frees what parse() made; cannot fail. NULL: nothing to free. */
    void (*free)(void *self);
    /** Returns how many chunks from `chunk` on, itself included, have its size, so that
     * the library need not ask for each of them. NULL: it asks for each. */
    uint64_t (*n_equal)(const void *self, int32_t dim, uint64_t chunk);
    /**
     * Writes the canonical configuration for the array with the new lengths `shape`. In
     * an array with shards, a length that grows is rounded up here to a multiple of the
     * chunk's length in the shard. The library refuses the resize if a chunk that exists
     * before and after has another place or size. NULL: the configuration stays.
     */
    zarr_status (*resize)(const void *self, const uint64_t *shape, char *text, size_t cap,
                          size_t *text_bytes, zarr_error *err);
} zarr_grid_vtable;

/** A chunk key encoding. All entries but `free` are required. */
typedef struct zarr_key_encoding_vtable {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    const char *name;            /**< name in metadata, such as "default" or "v2" */
    /** Makes in `*self` an encoding from `json`, the JSON text of the member
     * `configuration`. A wrong configuration is INVALID. */
    zarr_status (*parse)(void **self, const char *json, zarr_error *err);
    /** Writes the canonical configuration, the JSON text of an object. */
    zarr_status (*canonical)(const void *self, char *text, size_t cap, size_t *text_bytes,
                             zarr_error *err);
    /** Writes the key of the chunk with the `ndim` coordinates `chunk`, without the path
     * of the array. Returns the length of the key without the NUL. */
    size_t (*key)(const void *self, int32_t ndim, const uint64_t *chunk, char *text,
                  size_t cap);
    /** The inverse of key(): stores the `ndim` coordinates of a key in `chunk`. Returns
     * 0, or -1 if the text is not a key of this encoding with `ndim` coordinates. */
    int (*chunk)(const void *self, int32_t ndim, const char *text, uint64_t *chunk);
    /** Frees what parse() made; cannot fail. NULL: nothing to free. */
    void (*free)(void *self);
} zarr_key_encoding_vtable;

ZARR_END_DECLS

#endif
