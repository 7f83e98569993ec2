/*
 * array/stored/stored_int.h - the stored objects of an array: their keys, the store's
 * listing of them, and the chunks of one shard.
 */
#ifndef ZR_ARRAY_STORED_INT_H
#define ZR_ARRAY_STORED_INT_H

#include "array/array_int.h"

/* Keys below an array that are neither chunks nor documents. */
struct zr_foreign_keys {
    uint64_t n;
    char *key; /* owned: one of them; NULL: there are none */
};
/* A chunk of the grid that may not be a value: a file would be a folder of the chunk, or
 * a folder would be the chunk. Some stores have no folders, and a link may lead to one;
 * reading the chunk shows it. Keys are offsets in zr_stored.keys. */
struct zr_suspect {
    size_t chunk;
    bool below_file; /* else: the chunk would be a folder */
    /* the foreign keys that this explains if it is a fault, and one of them */
    uint64_t n[2];
    size_t key[2];
};
/* Stored objects of an array, from the store's listing, sorted by chunk. */
struct zr_stored {
    int32_t ndim;
    /* n rows: ndim coordinates and the object's bytes (UINT64_MAX: unknown) */
    uint64_t *row;
    size_t n, cap;
    /* number of chunks outside of the grid, without a row; coordinates of one of them */
    uint64_t n_outside, outside[ZARR_MAX_RANK];
    struct zr_suspect *suspect;
    size_t n_suspects, cap_suspects;
    struct zr_str keys; /* of suspects, each followed by 0 */
    /* without those of suspects. [1]: those that look like chunks of another key encoding
     * or rank */
    struct zr_foreign_keys foreign[2];
    const zarr_allocator *alloc;
};
/* inside NULL: the chunks of the grid, and what else is below the array. Otherwise all
 * chunks, also outside of the grid, but not those below inside[d] in every dimension. If
 * the listing fails, out has what it told before. asks: if the store cannot list, asks
 * for each block of the grid; LIMIT listing_keys. */
zarr_status zr_stored_find(struct zr_stored *out, const zarr_array *a,
                           const struct zr_array_state *s, const uint64_t *inside,
                           bool asks, const zarr_cancel *cancel, zarr_error *err);
/* The same, and fails if a file hides chunks. */
zarr_status zr_stored_list(struct zr_stored *out, const zarr_array *a,
                           const struct zr_array_state *s, const uint64_t *inside,
                           bool asks, const zarr_cancel *cancel, zarr_error *err);
/* Counts the keys of a suspect that is no fault as foreign. */
zarr_status zr_stored_acquit(struct zr_stored *s, const struct zr_suspect *suspect,
                             zarr_error *err);
void zr_stored_deinit(struct zr_stored *s);
/* Calls fn for each chunk of the grid that is not stored, in C order, until it fails or
 * sets *stop. `chunk` has ZARR_MAX_RANK entries. */
zarr_status zr_stored_each_missing(const struct zr_stored *s, const struct zr_grid *grid,
                                   zarr_status (*fn)(void *arg, const uint64_t *chunk,
                                                     bool *stop, zarr_error *err),
                                   void *arg, zarr_error *err);
static inline const uint64_t *zr_stored_chunk(const struct zr_stored *s, size_t i)
{
    return s->row + i * ((size_t)s->ndim + 1);
}
/* Appends the key of a chunk to out, which keeps a failure. */
void zr_array_key_append(const zarr_array *a, const struct zr_array_state *s,
                         const uint64_t *chunk, struct zr_str *out);
/* Writes the key of a chunk into out, replacing its text. */
zarr_status zr_array_key(const zarr_array *a, const struct zr_array_state *s,
                         const uint64_t *chunk, struct zr_str *out, zarr_error *err);

/* One stored chunk of a shard, at the innermost level. */
struct zr_inner_chunk {
    struct zr_shard *shard; /* the shard whose entry it is */
    uint64_t entry;
    uint64_t origin[ZARR_MAX_RANK]; /* first element, in array coordinates */
    /* in the object; UINT64_MAX: the chunk is inside a compressed shard */
    uint64_t offset;
    uint64_t bytes;
};
/* What is done with each. */
struct zr_inner_use {
    zarr_status (*fn)(void *arg, const struct zr_inner_chunk *inner, zarr_error *err);
    void *arg;
    bool reads; /* fn reads the chunk from its shard */
    /* counts the chunks inside of the array's shape that the shard lacks; may be NULL */
    uint64_t *n_missing;
    /* Gets why the nested shard that begins at `origin` cannot be opened. OK: the walk
     * goes on. NULL: the walk fails. */
    zarr_status (*fault)(void *arg, const uint64_t *origin, zarr_status st,
                         const zarr_error *why, zarr_error *err);
};
/* Calls fn for each stored chunk of the shard `chunk`, in order. Stops when fn
 * fails. */
zarr_status zr_shard_walk(const struct zr_io *io, const struct zr_array_state *s,
                          const uint64_t *chunk, const char *key,
                          const struct zr_inner_use *use, zarr_error *err);

#endif
