/*
 * zarrc/plugin/grid.h - how to make a chunk grid and a chunk key encoding.
 * FOR EXTENDERS: stable per plug-in ABI number.
 *
 * A grid is separable: each dimension is cut into edges of its own. That covers
 * regular and rectilinear grids and keeps projection a per-dimension matter.
 */
#ifndef ZARRC_PLUGIN_GRID_H
#define ZARRC_PLUGIN_GRID_H

#include <zarrc/base.h>
#include <zarrc/error.h>

ZARR_BEGIN_DECLS

/** Required: name, parse, canonical, n_chunks, locate and extent; every other entry may
 * be NULL, with the default told at it. */
typedef struct zarr_grid_vtable {
    uint32_t struct_size, flags; /**< flags: 0 */
    const char *name;            /**< metadata name, "regular" */
    /**
     * Makes a grid from its configuration (JSON text of the "configuration" object) for
     * an array of this shape; called again after a resize. limits: none but rank has been
     * checked.
     */
    zarr_status (*parse)(void **self, int32_t ndim, const uint64_t *shape,
                         const char *json, zarr_error *err);
    /**
     * Canonical configuration as JSON text; cap and needed length as snprintf has them.
     */
    zarr_status (*canonical)(const void *self, char *text, size_t cap, size_t *text_bytes,
                             zarr_error *err);
    /** Number of chunks along a dimension. */
    uint64_t (*n_chunks)(const void *self, int32_t dim);
    /** Chunk that holds coordinate `at` (< shape[dim]). */
    uint64_t (*locate)(const void *self, int32_t dim, uint64_t at);
    /** First coordinate and stored size of a chunk; edges may reach beyond the array. */
    void (*extent)(const void *self, int32_t dim, uint64_t chunk, uint64_t *origin,
                   uint64_t *size);
    /** Frees what parse() made; cannot fail. NULL: nothing to free. */
    void (*free)(void *self);
    /**
     * How many chunks from `chunk` on, itself included, have its size: grids of few
     * different edges are then walked by runs. NULL: every chunk is asked for.
     */
    uint64_t (*n_equal)(const void *self, int32_t dim, uint64_t chunk);
    /**
     * Canonical configuration for the same array with another shape, out as in
     * canonical(). Chunks that exist before and after must keep place and size, else the
     * resize is refused. NULL: the configuration stays.
     */
    zarr_status (*resize)(const void *self, const uint64_t *shape, char *text, size_t cap,
                          size_t *text_bytes, zarr_error *err);
} zarr_grid_vtable;

/** Required: all but free. */
typedef struct zarr_key_encoding_vtable {
    uint32_t struct_size, flags; /**< flags: 0 */
    const char *name;            /**< "default", "v2" */
    /** Makes an encoding from its configuration, as that of a grid. */
    zarr_status (*parse)(void **self, const char *json, zarr_error *err);
    /** Canonical configuration, as that of a grid. */
    zarr_status (*canonical)(const void *self, char *text, size_t cap, size_t *text_bytes,
                             zarr_error *err);
    /**
     * Writes the key of a chunk relative to its array; returns bytes needed less the
     * terminator.
     */
    size_t (*key)(const void *self, int32_t ndim, const uint64_t *chunk, char *text,
                  size_t cap);
    /**
     * The inverse; returns 0, or -1 when the text is no chunk key of this encoding and
     * rank.
     */
    int (*chunk)(const void *self, int32_t ndim, const char *text, uint64_t *chunk);
    /** Frees what parse() made; cannot fail. NULL: nothing to free. */
    void (*free)(void *self);
} zarr_key_encoding_vtable;

ZARR_END_DECLS

#endif
