/*
 * array/array.h - the door of arrays. A handle (zarr_array) holds a frozen, counted
 * state; a change makes a new state and swaps it in, so that a request under way keeps
 * the one that it began with.
 */
#ifndef ZR_ARRAY_H
#define ZR_ARRAY_H

#include "meta/meta.h"
#include "node/node.h"
#include "plan/plan.h"
#include <zarrc/array.h>

/* ---- arrays ------------------------------------------------------------- */

/* What getters lend. */
struct zr_array_facts {
    struct zr_kept link;
    bool lent;                                  /* under the handle's mutex */
    uint64_t *shape, *write_shape, *leaf_shape; /* NULL: they differ */
    const char **name;                          /* of dimensions; NULL: none */
    void *fill;                                 /* NULL: not defined */
};
struct zr_layout_slot;
struct zr_array_state {
    atomic_uint refs;
    struct zr_parsed *parsed, *attrs_parsed; /* counted; attrs_parsed: v2, may be NULL */
    const struct zr_json *root,
        *attrs; /* of .zarray or zarr.json; v2: of .zattrs or NULL */
    struct zr_array_meta meta;
    uint64_t leaf_shape[ZARR_MAX_RANK]; /* 0: chunks differ */
    bool sharded;                       /* inner chunks can be read alone */
    bool nested; /* v2: '/' although the metadata does not say so */
    _Atomic(struct zr_layout_slot *) layouts;          /* a list */
    struct zr_array_facts *facts;                      /* the handle's once it is lent */
    const char *document, *attributes, *codecs, *grid; /* the handle's, under its mutex */
    const zarr_allocator *alloc;
};
struct zarr_array {
    struct zr_handle h;
    zarr_store *chunk_store;        /* counted */
    struct zr_array_state *state;   /* under h.mutex */
    struct zr_index_cache *indexes; /* NULL: no shards */
    const struct zr_pipeline *pipeline;
    char *codec_preference; /* NULL: the context's */
    int32_t device_type, device_id;
    uint32_t empty_chunks, missing_chunks; /* never DEFAULT */
};

/* What a state is made from; references are taken. */
struct zr_array_source {
    int32_t format;
    struct zr_parsed *parsed,
        *attrs_parsed;                  /* attrs_parsed: NULL unless it is another one */
    const struct zr_json *root, *attrs; /* in them; attrs: v2, may be NULL */
    bool asked; /* the document is a caller's wish: what is wrong is INVALID */
};
/* Whole documents. */
struct zr_array_source zr_array_source_of(int32_t format, struct zr_parsed *parsed,
                                          struct zr_parsed *attrs_parsed);
zarr_status zr_array_state_new(struct zr_array_state **out, const zarr_context *ctx,
                               const struct zr_array_source *src, zarr_error *err);
struct zr_array_state *zr_array_state_ref(struct zr_array_state *s);
void zr_array_state_free(struct zr_array_state *s);
struct zr_array_state *zr_array_state_get(const zarr_array *array); /* counted */
zarr_status zr_array_facts_make(struct zr_array_facts **out,
                                const struct zr_array_state *s, zarr_error *err);
/* What the array is at this moment, good as long as the handle. */
const struct zr_array_facts *zr_array_facts_lend(const zarr_array *array);
/* Which of a state's documents a change has written. v3 has one, both are it. */
enum zr_state_part {
    ZR_STATE_ARRAY,
    ZR_STATE_ATTRS
};
/* Gives the handle the state s of a change that began with `before`, while the lock of
 * the written document is held; s is counted, not moved. What else changed in the handle
 * meanwhile (v2: the other document) stays. */
zarr_status zr_array_state_commit(zarr_array *array, struct zr_array_state *before,
                                  struct zr_array_state *s, enum zr_state_part part,
                                  zarr_error *err);
/* Only while the handle's state still is `before`; s is moved when it returns true. */
bool zr_array_state_exchange(zarr_array *array, const struct zr_array_state *before,
                             struct zr_array_state *s);
/* The layout for this kind of memory, made once; lives as long as the state. */
zarr_status zr_array_layout(const struct zr_layout **out, const zarr_array *a,
                            struct zr_array_state *s, int32_t device_type,
                            zarr_error *err);

zarr_status zr_array_options_read(zarr_array_open_options *o,
                                  const zarr_array_open_options *opts, zarr_error *err);
/* A handle without a state; path is moved, also when this fails. */
zarr_status zr_array_new(zarr_array **out, zarr_store *store, char *path,
                         const zarr_array_open_options *o, zarr_error *err);

/* Gives a handle its first state (moved, also when this fails): v2 separators, index
 * cache. */
zarr_status zr_array_adopt(zarr_array *a, struct zr_array_state *s, zarr_error *err);

#endif
