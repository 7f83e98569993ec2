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

/* What getters lend. */
struct zr_array_facts {
    struct zr_borrowed link;
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
/* v2: takes the attributes from a state; they may be in consolidated metadata. */
void zr_array_source_attrs(struct zr_array_source *src, const struct zr_array_state *s);
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

/* ---- opening ---- */

/* A handle without a state; path is moved, also when this fails. */
zarr_status zr_array_new(zarr_array **out, zarr_store *store, char *path,
                         const zarr_array_open_options *o, zarr_error *err);

/* Gives a handle its first state (moved, also when this fails): v2 separators, index
 * cache. */
zarr_status zr_array_adopt(zarr_array *a, struct zr_array_state *s, zarr_error *err);
/* Reads the array's documents: format 2, 3, or 0 for either. */
zarr_status zr_array_load(struct zr_array_state **out, const zarr_array *a,
                          int32_t format, zarr_error *err);
/* v2 without dimension_separator: looks which one the stored chunks use. */
zarr_status zr_separator_probe(const zarr_array *a, struct zr_array_state *s,
                               zarr_error *err);
/* What a probe found earlier, for a later state of the same array. */
zarr_status zr_separator_inherit(const zarr_array *a, const struct zr_array_state *from,
                                 struct zr_array_state *to, zarr_error *err);

/* The io of a whole-array request on this state, for memory of the given kind; view and
 * selection are the caller's to set. */
zarr_status zr_array_io(struct zr_io *io, const zarr_array *a, struct zr_array_state *s,
                        int32_t device_type, zarr_error *err);

zarr_status zr_io_options_read(zarr_io_options *o, const zarr_io_options *opts,
                               zarr_error *err);
zarr_status zr_io_options_apply(struct zr_io *io, const zarr_array *a,
                                const zarr_io_options *o, zarr_error *err);
/* ---- field.c ---- */
/* io->field, and the data type that the tensor has to have. path NULL: whole elements. */
zarr_status zr_io_field(struct zr_io *io, const struct zr_array_state *s,
                        const char *path, const zarr_dtype **dtype, zarr_error *err);
/* The field's fill value; needs io's layout and view. *out is the caller's to free, once
 * io is done; NULL without a field. */
zarr_status zr_io_field_fill(uint8_t **out, struct zr_io *io, zarr_error *err);

zarr_status zr_array_selection_check(const struct zr_array_state *s,
                                     const zarr_selection *sel, zarr_error *err);
/* zarr_array_write() on a state that need not be the handle's. */
zarr_status zr_array_write_state(zarr_array *array, struct zr_array_state *s,
                                 const zarr_selection *sel, const zarr_tensor *src,
                                 const zarr_io_options *opts, zarr_error *err);

/* Another shape for an array. */
struct zr_shape_change {
    zarr_array *array;
    struct zr_array_state *held; /* the handle's when the change began */
    const struct zr_array_state *before;
    const uint64_t *shape;
    bool same_base; /* CONFLICT when the stored shape is not before's any more */
    /* out, counted: the stored array that was replaced, but for its document, which is
     * shared with the new one; may be NULL */
    struct zr_array_state **old;
};
/* A state with that shape, which nobody else sees. */
zarr_status zr_shape_derive(struct zr_array_state **out,
                            const struct zr_shape_change *change, zarr_error *err);
/* Changes the stored document, and the handle's state with it; *out: the state it
 * describes now, counted; out may be NULL. */
zarr_status zr_shape_publish(struct zr_array_state **out,
                             const struct zr_shape_change *change, zarr_error *err);

/* Removes and resets what lies outside the new shape: chunks, and parts of chunks. */
zarr_status zr_array_trim(const zarr_array *a, struct zr_array_state *old,
                          const uint64_t *new_shape, zarr_error *err);

/* Stored objects of an array, by the store's listing, sorted by chunk. */
struct zr_stored {
    int32_t ndim;
    uint64_t *row; /* n rows of ndim coordinates and the object's bytes (UINT64_MAX: not
                      known) */
    size_t n, cap;
    const zarr_allocator *alloc;
};
/* everything: chunks outside the grid as well. */
zarr_status zr_stored_list(struct zr_stored *out, const zarr_array *a,
                           const struct zr_array_state *s, bool everything,
                           zarr_error *err);
void zr_stored_deinit(struct zr_stored *s);
static inline const uint64_t *zr_stored_chunk(const struct zr_stored *s, size_t i)
{
    return s->row + i * ((size_t)s->ndim + 1);
}
/* Key of a chunk, in place of what out held. */
zarr_status zr_array_key(const zarr_array *a, const struct zr_array_state *s,
                         const uint64_t *chunk, struct zr_str *out, zarr_error *err);

/* One stored inner chunk of a shard, of the innermost level. */
struct zr_inner_chunk {
    struct zr_shard *shard; /* that it is an entry of */
    uint64_t entry;
    uint64_t origin[ZARR_MAX_RANK]; /* in elements of the array */
    uint64_t offset; /* in the object; UINT64_MAX: inside a compressed shard */
    uint64_t bytes;
};
typedef zarr_status (*zr_inner_fn)(void *arg, const struct zr_inner_chunk *inner,
                                   zarr_error *err);
/* Calls fn for each stored inner chunk of the shard `chunk`, in order; stops at its
 * failure. */
zarr_status zr_shard_walk(const struct zr_io *io, const struct zr_array_state *s,
                          const uint64_t *chunk, const char *key, zr_inner_fn fn,
                          void *arg, zarr_error *err);

/* ---- packed.c ---- */
bool zr_tensor_is_packed(const zarr_tensor *tensor);
/* Calls run(arg, tensor with a byte an element), between the packed tensor's elements. */
typedef zarr_status (*zr_packed_fn)(void *arg, const zarr_tensor *tensor,
                                    zarr_error *err);
zarr_status zr_packed_io(zarr_array *array, const zarr_dtype *dtype,
                         const zarr_tensor *tensor, bool write, zr_packed_fn run,
                         void *arg, zarr_error *err);

#endif
