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
    bool sharded;                       /* inner chunks can be read alone */
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
/* LIMIT if a context with these limits refuses the array's chunks. */
zarr_status zr_array_fits(const struct zr_array_state *s, const zarr_context *ctx,
                          const zarr_limits *limits, zarr_error *err);
/* Warns in the log if a reader with default limits refuses the array or its document. */
void zr_array_warn_readers(const struct zr_array_state *s, const zarr_context *ctx,
                           const struct zr_str *text, const char *path);
struct zr_array_state *zr_array_state_ref(struct zr_array_state *s);
void zr_array_state_free(struct zr_array_state *s);
struct zr_array_state *zr_array_state_get(const zarr_array *array); /* counted */
zarr_status zr_array_facts_make(struct zr_array_facts **out,
                                const struct zr_array_state *s, zarr_error *err);
/* Returns what the array is at this moment. Valid as long as the handle. */
const struct zr_array_facts *zr_array_facts_lend(const zarr_array *array);
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
zarr_status zr_array_adopt(zarr_array *a, struct zr_array_state *s, zarr_error *err);
/* Reads the array's documents. format: 2, 3, or 0 for either. */
zarr_status zr_array_load(struct zr_array_state **out, const zarr_array *a,
                          int32_t format, zarr_error *err);
/* v2 without dimension_separator: finds out which separator the stored chunks use. */
zarr_status zr_separator_probe(const zarr_array *a, struct zr_array_state *s,
                               zarr_error *err);
/* Copies what a probe found earlier to a later state of the same array. */
zarr_status zr_separator_inherit(const zarr_array *a, const struct zr_array_state *from,
                                 struct zr_array_state *to, zarr_error *err);

/* Called if no chunk was found. Fails with CORRUPT if the first stored chunk has a key
 * with the other separator. Lists the store once per handle, up to that key. */
zarr_status zr_separator_check(zarr_array *a, const struct zr_array_state *s,
                               zarr_error *err);

/* Makes the first state of a handle, or a later one. Looks above the array for what its
 * own documents leave open (origin.c). */
zarr_status zr_origin_state(struct zr_array_state **out, const zarr_array *a,
                            const struct zr_array_source *src, zarr_error *err);
/* Logs warnings about metadata that other programs write and that is read by a guess. */
void zr_origin_warn(const zarr_array *a, const struct zr_array_state *s);

/* Fails with INVALID if this handle must not change or read again the array's
 * metadata. */
zarr_status zr_array_may_change(const zarr_array *array, zarr_error *err);

/* Makes the io of a request for the whole array on this state, in memory of the given
 * kind. opts: their preference and trust count; may be NULL. The caller sets view and
 * selection. */
zarr_status zr_array_io(struct zr_io *io, const zarr_array *a, struct zr_array_state *s,
                        int32_t device_type, const zarr_io_options *opts,
                        zarr_error *err);

zarr_status zr_io_options_read(zarr_io_options *o, const zarr_io_options *opts,
                               zarr_error *err);
/* Refuses a stream, for calls that use no memory of a device. */
zarr_status zr_io_no_stream(const zarr_io_options *o, zarr_error *err);
zarr_status zr_io_options_apply(struct zr_io *io, const zarr_array *a,
                                const zarr_io_options *o, zarr_error *err);
/* ---- field.c ---- */
/* Sets io->field, and the data type that the tensor must have. path NULL: whole
 * elements. */
zarr_status zr_io_field(struct zr_io *io, const struct zr_array_state *s,
                        const char *path, const zarr_dtype **dtype, zarr_error *err);
/* Makes the field's fill value. Needs io's layout and view. The caller frees *out when io
 * is done; NULL if there is no field. */
zarr_status zr_io_field_fill(uint8_t **out, struct zr_io *io, zarr_error *err);

/* ---- recheck.c ---- */
/* Finds out whether the stored array is still the one that s describes. Fails with
 * NOT_FOUND if it was moved or deleted, and with CONFLICT if another array, with other
 * chunks, type, codecs or fill value, has taken its place. */
zarr_status zr_array_recheck(zarr_array *a, struct zr_array_state *s, zarr_error *err);
/* The same for a read. Fails with CONFLICT, too, if the stored array is smaller than s
 * and lacks elements that io reads; io NULL: any element of s. */
zarr_status zr_array_recheck_read(zarr_array *a, struct zr_array_state *s,
                                  const struct zr_io *io, zarr_error *err);
/* Fails with CONFLICT if the chunks of one array cannot be read as chunks of the
 * other. */
zarr_status zr_array_same_chunks(const struct zr_array_state *a,
                                 const struct zr_array_state *b, zarr_error *err);

zarr_status zr_array_selection_check(const struct zr_array_state *s,
                                     const zarr_selection *sel, zarr_error *err);
/* A change of an array's shape. */
struct zr_shape_change {
    zarr_array *array;
    struct zr_array_state *held; /* the handle's state when the change began */
    const struct zr_array_state *before;
    const uint64_t *shape;
    bool same_base; /* fail with CONFLICT if the stored shape differs from before's */
    /* out, counted: the stored array that was replaced, without a document of its own,
     * which it shares with the new array; may be NULL */
    struct zr_array_state **old;
    /* Called with the stored array before its document is changed. A failure leaves the
     * document as it is. May be NULL. */
    zarr_status (*judge)(void *arg, struct zr_array_state *now, zarr_error *err);
    void *judge_arg;
    const zarr_cancel *cancel; /* ends the wait for the document's lock */
};
/* Makes a state with that shape, which only the caller sees. */
zarr_status zr_shape_derive(struct zr_array_state **out,
                            const struct zr_shape_change *change, zarr_error *err);
/* Changes the stored document and the handle's state. *out: the state that the document
 * now describes, counted; out may be NULL. */
zarr_status zr_shape_publish(struct zr_array_state **out,
                             const struct zr_shape_change *change, zarr_error *err);

/* Waits for the right to change the array's shape, across handles and, if the store can
 * lock, across processes. Release it with zr_store_unlock(). */
zarr_status zr_shape_lock(const zarr_array *array, const zarr_cancel *cancel, void **lock,
                          zarr_error *err);

/* What to trim: the elements of `old` that are outside of `shape`. */
struct zr_trim_job {
    const zarr_array *a;
    struct zr_array_state *old;
    const uint64_t *shape;
    bool everything; /* list the store: also chunks outside of old's grid are erased */
    /* Rewrite a border chunk only if elements outside differ from the fill value. */
    bool look_first;
    bool keep_lossy; /* leave border chunks of lossy codecs alone */
    bool durable;    /* what was done is on the disk when the call returns */
    const zarr_cancel *cancel;
};
/* Erases chunks outside the shape, and resets the parts of chunks outside it. */
zarr_status zr_array_trim(const struct zr_trim_job *job, zarr_error *err);
/* Fails with UNSUPPORTED if the store cannot list and there are too many chunks to try
 * one by one. */
zarr_status zr_trim_check(const struct zr_trim_job *job, zarr_error *err);
/* The elements of s that a chunk has in dimension d: [*low, *high). */
void zr_trim_range(const struct zr_array_state *s, int32_t d, uint64_t chunk,
                   uint64_t *low, uint64_t *high);

/* ---- outside.c: elements that are stored outside of the array's shape ---- */

/* Makes a state of the array with this shape or, if `shape` is NULL, whose shape ends
 * where the last chunks end. */
zarr_status zr_outside_state(struct zr_array_state **out, const zarr_array *a,
                             const struct zr_array_state *s, const uint64_t *shape,
                             zarr_error *err);
/* Fails with EXISTS if there are chunks at the path, as what is left of an array. */
zarr_status zr_chunks_must_not_be(zarr_store *store, const char *path,
                                  const struct zr_array_meta *meta, zarr_error *err);
/* Whether all elements of the chunk that `larger` has and `shape` cuts off are the fill
 * value. */
zarr_status zr_outside_is_fill(const zarr_array *a, struct zr_array_state *larger,
                               const uint64_t *chunk, const uint64_t *shape,
                               const zarr_cancel *cancel, bool *yes, zarr_error *err);
/* Whether the array's codecs may change values. */
zarr_status zr_array_lossy(const zarr_array *a, struct zr_array_state *s, bool *lossy,
                           zarr_error *err);

/* ---- leftover.c: the record of leftovers ---- */

struct zr_leftover {
    bool found; /* there is a record */
    bool known; /* it can be read, and has the array's rank */
    /* no element outside of this shape is left over */
    uint64_t extent[ZARR_MAX_RANK];
};
zarr_status zr_leftover_read(struct zr_leftover *out, const zarr_array *a, int32_t ndim,
                             zarr_error *err);
/* Whether the record allows elements up to this shape. */
bool zr_leftover_covers(const struct zr_leftover *r, int32_t ndim, const uint64_t *shape);
/* Whether the record allows none outside of this shape. */
bool zr_leftover_is_within(const struct zr_leftover *r, int32_t ndim,
                           const uint64_t *shape);
/* Writes or widens the record, so that it covers the shape. *out: what it says now. */
zarr_status zr_leftover_note(struct zr_leftover *out, const zarr_array *a, int32_t ndim,
                             const uint64_t *shape, zarr_error *err);
/* Clears what the record allows outside of the shape of `now`, the stored array, and
 * removes the record. */
zarr_status zr_leftover_clear(const zarr_array *a, struct zr_array_state *now,
                              const struct zr_leftover *r, const zarr_cancel *cancel,
                              zarr_error *err);
/* Removes a record that is not needed any more. Failures are logged: the record does no
 * harm. */
void zr_leftover_drop(const zarr_array *a);
/* ---- resize.c ---- */

/* A resize: the new shape, and what the stored array needs before it gets that shape. */
struct zr_resizing {
    zarr_array *array;
    const uint64_t *shape;
    bool keep;         /* ZARR_RESIZE_KEEP_CHUNKS */
    bool consolidated; /* ZARR_RESIZE_CONSOLIDATED */
    bool noted;        /* the record is of this call */
    bool clear, note;  /* what is missing */
    const zarr_cancel *cancel;
    struct zr_leftover left; /* the record as it was last read */
    struct zr_array_state
        *now; /* counted: the stored array, while something is missing */
};
/* zr_shape_publish(), after leftovers were cleared that the shape would show, and after
 * the record was written that a smaller shape needs. Uses change->judge. */
zarr_status zr_resize_publish(struct zr_array_state **out, struct zr_resizing *p,
                              struct zr_shape_change *change, zarr_error *err);
/* Clears all that is stored outside of the shape of `now`, with a record or without. */
zarr_status zr_outside_clear(const zarr_array *a, struct zr_array_state *now,
                             const zarr_cancel *cancel, zarr_error *err);

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
 * the listing fails, out has what it told before. */
zarr_status zr_stored_find(struct zr_stored *out, const zarr_array *a,
                           const struct zr_array_state *s, const uint64_t *inside,
                           const zarr_cancel *cancel, zarr_error *err);
/* Counts the keys of a suspect that is no fault as foreign. */
zarr_status zr_stored_acquit(struct zr_stored *s, const struct zr_suspect *suspect,
                             zarr_error *err);
/* Fails if a file hides chunks. */
zarr_status zr_stored_check(const struct zr_stored *s, zarr_store *store,
                            zarr_error *err);
/* zr_stored_find() and zr_stored_check(). */
zarr_status zr_stored_list(struct zr_stored *out, const zarr_array *a,
                           const struct zr_array_state *s, const uint64_t *inside,
                           const zarr_cancel *cancel, zarr_error *err);
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

/* One stored inner chunk of a shard, at the innermost level. */
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
/* Calls fn for each stored inner chunk of the shard `chunk`, in order. Stops when fn
 * fails. */
zarr_status zr_shard_walk(const struct zr_io *io, const struct zr_array_state *s,
                          const uint64_t *chunk, const char *key,
                          const struct zr_inner_use *use, zarr_error *err);

/* ---- packed_state.c ---- */
/* Gives the state that has the same chunks as bytes: items of `item_bytes` opaque bytes
 * that hold `per_item` elements each, in the last dimension. Borrowed from s. *out NULL:
 * the chunks are not packed, or rows of a chunk do not begin at an item. */
zarr_status zr_array_packed_state(struct zr_array_state **out, const zarr_array *a,
                                  struct zr_array_state *s, zarr_error *err);
/* How many elements share an item, the smallest number of whole bytes that they fill.
 * False: elements of this type cannot be packed. */
bool zr_packed_item(const zarr_dtype *dtype, uint32_t *per_item, uint32_t *item_bytes);

#endif
