/*
 * array/array_int.h - what the files of this room share. A handle (zarr_array) holds a
 * frozen, counted *state* made from documents. A change makes a new state and swaps it
 * in; a request under way keeps the one that it began with.
 */
#ifndef ZR_ARRAY_INT_H
#define ZR_ARRAY_INT_H

#include "array/array.h"
#include "ctx/ctx.h"
#include "pipe/pipe.h"
#include "plan/plan.h"

/* ---- states ---- */

/* What getters lend to callers. */
struct zr_array_facts {
    struct zr_borrowed link;
    bool lent;                                  /* under the handle's mutex */
    int32_t ndim;                               /* of the shapes and names */
    uint64_t *shape, *block_shape, *leaf_shape; /* NULL: chunks differ in shape */
    const char **name;                          /* names of dimensions; NULL: none */
    void *fill;                                 /* the element of missing chunks */
    bool fill_defined;                          /* false: v2's null */
    bool has_missing;
    uint8_t missing[16]; /* the missing value, if there is one */
};
struct zr_layout_slot;
struct zr_array_state {
    atomic_uint refs;
    struct zr_parsed *parsed, *attrs_parsed; /* counted; attrs_parsed: v2, may be NULL */
    /* root: .zarray or zarr.json; attrs: v2 .zattrs, or NULL */
    const struct zr_json *root, *attrs;
    struct zr_array_meta meta;
    zarr_limits limits; /* chunk_bytes: the limit for chunks of this array */
    uint64_t leaf_shape[ZARR_MAX_RANK]; /* 0: chunks differ in shape */
    bool sharded;                       /* chunks of a shard can be read alone */
    uint32_t n_shard_levels;            /* more than 1: shards inside of shards */
    bool nested; /* v2: keys use '/' although the metadata does not say so */
    _Atomic(struct zr_layout_slot *) layouts; /* a list */
    /* the same chunks as arrays of packed bytes, made when first needed; this state
     * itself: chunks are not packed. NULL: not known */
    _Atomic(struct zr_array_state *) packed;
    /* belongs to the handle once it is lent */
    struct zr_array_facts *facts;
    /* version of the stored document that was last found to describe this array (shape
     * and attributes apart), and its shape. All zero: not known. Under the handle's
     * mutex */
    zarr_store_version seen;
    uint64_t seen_shape[ZARR_MAX_RANK];
    char *document_key; /* made when first needed, under the handle's mutex */
    /* borrowed from the handle, under its mutex */
    const char *document, *attributes, *codecs, *grid;
    const zarr_allocator *alloc;
};
struct zarr_array {
    struct zr_handle h;
    zarr_store *chunk_store;        /* counted */
    struct zr_array_state *state;   /* under h.mutex */
    struct zr_index_cache *indexes; /* NULL: no shards */
    const struct zr_pipeline *pipeline;
    char *codec_preference; /* NULL: the context's */
    uint32_t trust;         /* ZARR_TRUST_*; 0: the context's */
    int32_t device_type, device_id;
    /* the store's or the context's: elements of variable length are in host memory */
    bool device_by_default;
    uint32_t empty_chunks, missing_chunks; /* never DEFAULT */
    bool may_go; /* false: requests need no check of the stored document */
    /* v2: the stored chunks may tell the separator of their keys */
    bool may_probe;
    bool grid_shape;       /* ZARR_OPEN_GRID_SHAPE */
    atomic_bool keys_seen; /* zr_separator_check() found nothing wrong */
    /* the array has a document of its own, not only an entry in consolidated metadata */
    atomic_bool has_document;
};

/* The documents that a state is made from; the state takes references. */
struct zr_array_source {
    int32_t format;
    /* attrs_parsed: NULL unless attributes are in another document */
    struct zr_parsed *parsed, *attrs_parsed;
    const struct zr_json *root, *attrs; /* point into these; attrs: v2, may be NULL */
    bool asked; /* the document is a caller's wish: faults are INVALID, not CORRUPT */
    bool fill_spelled, nczarr; /* see zr_meta_env */
};
/* Makes a source of whole documents. before: an earlier state of the same array, or
 * NULL. */
struct zr_array_source zr_array_source_make(int32_t format, struct zr_parsed *parsed,
                                            struct zr_parsed *attrs_parsed,
                                            const struct zr_array_meta *before);
/* v2: takes the attributes from a state, which may have them from consolidated
 * metadata. */
void zr_array_source_attrs(struct zr_array_source *src, const struct zr_array_state *s);
zarr_status zr_array_state_new(struct zr_array_state **out, const zarr_context *ctx,
                               const struct zr_array_source *src, zarr_error *err);
/* Bytes of the largest chunk of the grid, or UINT64_MAX. */
uint64_t zr_largest_chunk_bytes(const struct zr_grid *grid, const zarr_dtype *dtype);
struct zr_array_state *zr_array_state_ref(struct zr_array_state *s);
void zr_array_state_free(struct zr_array_state *s);
struct zr_array_state *zr_array_state_get(const zarr_array *array); /* counted */
zarr_status zr_array_facts_make(struct zr_array_facts **out,
                                const struct zr_array_state *s, zarr_error *err);
/* The document of a state that a change has written. v3 has one document, which is
 * both. */
enum zr_state_part {
    ZR_STATE_ARRAY,
    ZR_STATE_ATTRS
};
/* Gives the handle the state s, made by a change that began with `before`. The lock of
 * the written document must be held. s is counted, not moved. Whatever else changed in
 * the handle meanwhile (v2: the other document) stays. */
zarr_status zr_array_state_commit(zarr_array *array, struct zr_array_state *before,
                                  struct zr_array_state *s, enum zr_state_part part,
                                  zarr_error *err);
/* Replaces the handle's state if it still is `before`. If it returns true, s is moved. */
bool zr_array_state_exchange(zarr_array *array, const struct zr_array_state *before,
                             struct zr_array_state *s);
/* What a layout is for: the kinds of memory of elements, and of encoded chunks which the
 * caller has (0: the chunk store has them). */
struct zr_layout_key {
    int32_t tensor, lent;
    const char *preference; /* for implementations of codecs; NULL: the array's */
    uint32_t trust;         /* ZARR_TRUST_*; 0: the array's */
};
/* The trust of a call that asks for `trust`: never 0. */
uint32_t zr_array_trust(const zarr_array *a, uint32_t trust);
/* Returns the layout. It is made once and lives as long as the state. */
zarr_status zr_array_layout(const struct zr_layout **out, const zarr_array *a,
                            struct zr_array_state *s, const struct zr_layout_key *wanted,
                            zarr_error *err);

/* ---- opening ---- */

/* The memory of tensors that name none, of a handle that is opened with these options. */
void zr_array_default_memory(const zarr_store *chunks, const zarr_array_open_options *o,
                             int32_t *device_type, int32_t *device_id);

/* Makes a handle without a state. path is moved even on failure. */
zarr_status zr_array_new(zarr_array **out, zarr_store *store, char *path,
                         const zarr_array_open_options *o, zarr_error *err);

/* Gives a handle its first state (moved even on failure): finds v2's separator, makes the
 * index cache. */
zarr_status zr_array_adopt(zarr_array *a, struct zr_array_state *s,
                           const zarr_cancel *cancel, zarr_error *err);
/* Reads the array's documents. format: 2, 3, or 0 for either. cancel: may be NULL. */
zarr_status zr_array_load(struct zr_array_state **out, const zarr_array *a,
                          int32_t format, const zarr_cancel *cancel, zarr_error *err);
/* v2 without dimension_separator: finds out which separator the stored chunks use. */
zarr_status zr_separator_probe(const zarr_array *a, struct zr_array_state *s,
                               const zarr_cancel *cancel, zarr_error *err);
/* Copies what a probe found earlier to a later state of the same array. */
zarr_status zr_separator_inherit(const zarr_array *a, const struct zr_array_state *from,
                                 struct zr_array_state *to, zarr_error *err);

/* Called if no chunk was found. Fails with CORRUPT if the first stored chunk has a key
 * with the other separator. Lists the store once per handle, up to that key. */
zarr_status zr_separator_check(zarr_array *a, const struct zr_array_state *s,
                               const zarr_cancel *cancel, zarr_error *err);

/* Makes the first state of a handle, or a later one. Looks above the array for what its
 * own documents leave open (origin.c). */
zarr_status zr_origin_state(struct zr_array_state **out, const zarr_array *a,
                            const struct zr_array_source *src, const zarr_cancel *cancel,
                            zarr_error *err);
/* Logs warnings about metadata that other programs write and that is read by a guess. */
void zr_origin_warn(const zarr_array *a, const struct zr_array_state *s);

/* Fails with INVALID if this handle must not change or read again the array's
 * metadata. */
zarr_status zr_array_may_change(const zarr_array *array, zarr_error *err);

/* ---- recheck.c ---- */
/* Finds out whether the stored array is still the one that s describes. Fails with
 * NOT_FOUND if it was moved or deleted, and with CONFLICT if another array, with other
 * chunks, type, codecs or fill value, has taken its place. */
zarr_status zr_array_recheck(zarr_array *a, struct zr_array_state *s,
                             const zarr_cancel *cancel, zarr_error *err);
/* The same for a read. Fails with CONFLICT, too, if the stored array is smaller than s
 * and lacks elements that io reads; io NULL: any element of s. */
zarr_status zr_array_recheck_read(zarr_array *a, struct zr_array_state *s,
                                  const struct zr_io *io, const zarr_cancel *cancel,
                                  zarr_error *err);
/* Fails with CONFLICT if the chunks of one array cannot be read as chunks of the
 * other. */
zarr_status zr_array_same_chunks(const struct zr_array_state *a,
                                 const struct zr_array_state *b, zarr_error *err);

#endif
