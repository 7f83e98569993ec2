/*
 * plan/plan.h - the door of planning: what must be fetched, decoded and put
 * where, worked out without I/O and without threads. Two nouns.
 *
 * A *layout* is an array prepared for one kind of memory: its levels (the
 * chunk, and inside a shard the inner chunk, and so on), each with its chain
 * taken apart: permutation, programs, index facts. Frozen, made once.
 *
 * A *plan* is one read unrolled lazily over a layout. It is pulled for waves
 * (batches of chunks, cut by decoded bytes and items). Where it meets shards whose
 * index it does not have it returns a wave of OPENs; the pipe fetches and
 * zr_shard_parse() checks them; then the plan goes on. A wave's items are
 * grouped in segments: neighbours in one source, read at once, done by one thread.
 * Writes take the projector directly, unit by unit (pipe/units.c).
 * Thread class: layouts frozen; plans solo (the pipeline locks); shards frozen, counted.
 */
#ifndef ZR_PLAN_H
#define ZR_PLAN_H

#include "base/base.h"
#include "chain/chain.h"
#include "grid/grid.h"
#include "impl/impl.h"
#include "mem/mem.h"
#include <zarrc/plan.h>

/* ---- layout ------------------------------------------------------------- */

struct zr_variant;
struct zr_variants;

struct zr_level {
    struct zr_variant *variant; /* who counts it; NULL: the layout's own */
    /* borrowed from the metadata, or own: the elementwise codecs that lie in front of the
     * shards around it, and then the inner chain */
    const struct zr_chain *chain;
    uint32_t n_elementwise; /* how many they are */
    struct zr_chain own;    /* codec NULL: none; specifications are the metadata's */
    /* one native element, and the same with each unit reversed: what a chunk of this
     * level reads as that is missing in a shard which is there; the layout's, or own_fill
     */
    const uint8_t *fill, *fill_swapped;
    uint8_t *own_fill; /* owned, both; NULL: the layout's */
    struct zr_chain_reps reps;
    int32_t ndim;
    /* chunk at this level, in the order of dimensions its chain is given */
    uint64_t shape[ZARR_MAX_RANK];
    uint64_t array_shape[ZARR_MAX_RANK]; /* the same in array order */
    uint8_t to_array[ZARR_MAX_RANK];     /* level dim i is array dim to_array[i] */
    bool is_shard;
    /* leaf */
    struct zr_program *decode, *encode;
    /* shard */
    const struct zr_shard_spec *shard;
    /* transposes in front of the sharding: inner dim i is level dim order[i] */
    uint8_t order[ZARR_MAX_RANK];
    bool permuted;
    uint64_t inner_shape[ZARR_MAX_RANK], n_inner[ZARR_MAX_RANK]; /* permuted order */
    uint64_t n_inner_all, index_bytes;
    /* leaf level of the index array [n_inner..., 2] of uint64 */
    struct zr_level *index;
    /* bytes->bytes codecs around the shard, host; NULL: none */
    struct zr_program *bytes_decode, *bytes_encode;
    uint64_t decoded_bytes;
    uint64_t encoded_bound; /* unsized: a guess, to count with */
    uint64_t encoded_most;  /* unsized: what limits allow; else encoded_bound */
    bool unsized;           /* as in struct zr_program */
};

struct zr_layout_args {
    const struct zr_grid *grid;         /* borrowed: outlives the layout */
    const struct zr_chain *chain;       /* borrowed */
    const struct zr_key_encoding *keys; /* borrowed */
    const zarr_dtype *dtype;
    const void *fill;              /* one native element, borrowed; NULL: zero */
    const zarr_dtype *index_dtype; /* uint64 */
    const struct zr_impl_registry *impls;
    const zarr_limits *limits;
    int32_t device_type;          /* where elements come from or go to */
    const int32_t *store_devices; /* memories the store moves bytes to itself */
    uint32_t n_store_devices;
    const char *preference;
};
struct zr_layout {
    const struct zr_grid *grid;
    const struct zr_key_encoding *keys;
    const zarr_dtype *dtype;
    uint32_t item_bytes, swap_unit;
    bool variable;         /* elements begin with a zarr_vlen */
    uint8_t *fill;         /* item_bytes, native; variable: its bytes are args->fill's */
    uint8_t *fill_swapped; /* the same with each unit reversed */
    int32_t device_type;
    uint32_t n_levels;
    /* [0] outermost; where chunks differ in shape [0] is the largest one's, or the
     * smallest's */
    struct zr_level *level;
    struct zr_variants *variants; /* NULL: level[0] is every chunk's */
    bool smallest;                /* the largest chunk is over a limit */
    const zarr_allocator *alloc;
};
zarr_status zr_layout_make(struct zr_layout **out, const struct zr_layout_args *args,
                           const zarr_allocator *alloc, zarr_error *err);
void zr_layout_free(struct zr_layout *l);
/* The innermost chunk's shape in array order of dimensions; where chunks differ and have
 * no inner ones, level[0]'s. */
const uint64_t *zr_layout_leaf_shape(const struct zr_layout *l);
/* The same layout for outer chunks of this stored shape: made at its first need, counted,
 * kept for the next chunk of that shape; a bounded number of shapes is kept. Only for
 * layouts with variants. Thread class: shared. */
zarr_status zr_variant_take(const struct zr_layout *l, const uint64_t *shape,
                            const struct zr_level **out, zarr_error *err);
void zr_variant_give(const struct zr_level *lv);
/* The outermost level of a chunk of this shape; to be given back. */
static inline zarr_status zr_layout_outer(const struct zr_layout *l,
                                          const uint64_t *shape,
                                          const struct zr_level **out, zarr_error *err)
{
    if (l->variants != NULL)
        return zr_variant_take(l, shape, out, err);
    *out = &l->level[0];
    return ZARR_OK;
}
static inline void zr_level_give(const struct zr_level *lv)
{
    if (lv != NULL && lv->variant != NULL)
        zr_variant_give(lv);
}

/* ---- shards --------------------------------------------------------------- */

/* A checked index: n x (offset, bytes), offsets from the shard's first byte; both all
 * ones: missing. Frozen, counted, cacheable. */
struct zr_shard_index {
    atomic_uint refs;
    bool missing;         /* no such object: every inner chunk is missing */
    uint64_t n;           /* inner chunks */
    uint64_t shard_bytes; /* length of the shard's value; UINT64_MAX: not known */
    uint64_t version[4];  /* of the object it was read from; all zero: not known */
    uint64_t *entry;
    const zarr_allocator *alloc;
};
/* Checks the pairs: zr_shard_pairs_check(). pairs NULL: an index of n missing chunks
 * (missing = true). */
zarr_status zr_shard_index_parse(struct zr_shard_index **out,
                                 const struct zr_shard_pairs *in,
                                 const zarr_allocator *alloc, zarr_error *err);
struct zr_shard_index *zr_shard_index_ref(struct zr_shard_index *x);
void zr_shard_index_free(struct zr_shard_index *x);

/* A shard during one request: its index and where its encoded bytes are: an object of the
 * store held still by the pipe
 * (`held`), a part of it (nested: parent), or a decoded buffer. */
struct zr_shard {
    atomic_uint refs;
    char *key; /* owned; of the object that holds it */
    /* offset of this shard inside the object or the buffer's value */
    uint64_t base;
    struct zr_shard_index *index;
    struct zr_shard *parent; /* counted; NULL: outermost */
    /* host memory that holds the whole value; handle NULL: in the store */
    zarr_mem buffer;
    zarr_mem block; /* the pool's, that buffer lies in; handle NULL: somebody else's */
    void *held;     /* the pipe's; the outermost shard owns it */
    void (*release)(struct zr_shard *s); /* frees held and buffer; may be NULL */
    void *release_arg;
    const zarr_allocator *alloc;
};
struct zr_shard *zr_shard_new(const zarr_allocator *alloc, const char *key);
struct zr_shard *zr_shard_ref(struct zr_shard *s);
void zr_shard_free(struct zr_shard *s);

/* ---- reading plans ---------------------------------------------------------- */

/* A projection packed into a wave's arena: only ndim pieces, lists copied. */
struct zr_target {
    enum zr_projection_kind kind;
    int32_t ndim;
    bool arithmetic;
    uint64_t n_items;
    const uint64_t *chunk;      /* ndim: coordinates in the level's grid */
    const struct zr_piece *dim; /* ndim, in level order of dimensions */
    uint64_t n_points;
    const uint64_t *c_points, *r_points;
};
struct zr_item {
    struct zr_target target;
    /*
     * in the source; bytes UINT64_MAX: the whole object; ZR_ITEM_MISSING: known to be
     * missing
     */
    uint64_t offset, bytes;
    /* position in the request: errors are reported for the lowest */
    uint64_t ordinal;
    uint64_t n_chunks;   /* 1; more where one item stands for a missing shard */
    uint32_t fill_level; /* missing: which level's fill its elements have */
};
#define ZR_ITEM_MISSING (UINT64_MAX - 1)
/* Items that one thread does one after the other, fetched with one request. */
struct zr_segment {
    const struct zr_level *level; /* the leaf that its items are of */
    const char *key;              /* object; NULL: shard->buffer */
    struct zr_shard *shard;       /* NULL: an unsharded chunk */
    uint64_t offset, bytes; /* range that covers the items; UINT64_MAX: whole object */
    struct zr_item **item;  /* sorted by offset */
    uint32_t n_items;
};
/* A shard that must be opened before the plan can go on. The pipe fills `shard`. */
struct zr_open {
    const char *key;
    struct zr_shard *parent; /* nested: the shard it lies in; NULL: an object */
    uint64_t offset, bytes;  /* nested: range in the parent */
    uint32_t level;
    const struct zr_level *lv; /* of this very shard; borrowed from the plan */
    uint64_t ordinal;
    struct zr_shard *shard; /* out, counted */
};
enum zr_wave_kind {
    ZR_WAVE_END,
    ZR_WAVE_OPEN,
    ZR_WAVE_DATA
};
struct zr_wave {
    enum zr_wave_kind kind;
    struct zr_arena arena;
    const struct zr_level *level; /* DATA: the leaf; where chunks differ, the layout's */
    struct zr_segment *segment;
    uint32_t n_segments, n_items;
    struct zr_open *open;
    uint32_t n_opens;
    uint64_t decoded_bytes;
    struct zr_shard **hold; /* shards kept alive by this wave */
    uint32_t n_hold;
};
struct zr_plan_args {
    const struct zr_layout *layout;
    const char *prefix;              /* of keys: the array's path, "" at the root */
    const zarr_selection *selection; /* NULL: all */
    uint64_t wave_bytes;
    uint32_t wave_items;
    uint64_t segment_bytes, segment_gap; /* largest coalesced range, largest hole in it */
    uint32_t threads; /* cut segments so that so many threads have work */
    /* one item a segment, one segment a wave: the serial oracle */
    bool plain;
};
struct zr_plan;
zarr_status zr_plan_open(struct zr_plan **out, const struct zr_plan_args *args,
                         const zarr_allocator *alloc, zarr_error *err);
/* Fills w (initialised with zr_wave_init, reused). After an OPEN wave the caller must
 * hand it back filled with zr_plan_resume before the next call. */
zarr_status zr_plan_next(struct zr_plan *p, struct zr_wave *w, zarr_error *err);
zarr_status zr_plan_resume(struct zr_plan *p, struct zr_wave *w, zarr_error *err);
void zr_plan_free(struct zr_plan *p);
void zr_wave_init(struct zr_wave *w, const zarr_allocator *alloc);
void zr_wave_deinit(struct zr_wave *w);
/* Key of an outer chunk: prefix, '/', key encoding. Replaces what is in out. */
void zr_plan_key(const struct zr_plan_args *args, const uint64_t *chunk,
                 struct zr_str *out);
/* Chunks (leaf) the request touches, as far as known without indexes; saturating. */
uint64_t zr_plan_count(const struct zr_plan *p);

/* Text or JSON of what would happen; executes nothing. */
struct zr_explain_args {
    struct zr_plan_args plan;
    bool write, json;
    uint64_t units; /* a write's: objects at once */
    const char *pipeline, *store_name;
    int32_t tensor_device;
    bool tensor_contiguous;
    bool compared; /* a write's: with the fill value, in memory that is not the host's */
    bool (*index_cached)(void *arg, const char *key);
    void *arg;
};
zarr_status zr_plan_explain(const struct zr_explain_args *args, struct zr_str *out,
                            const zarr_allocator *alloc, zarr_error *err);

/*
 * One field of structs, instead of whole elements: the view has its data type, and the
 * dimensions of its subarray behind the others.
 */
struct zr_field_view {
    bool on;
    uint64_t offset;                /* in the element */
    uint32_t item_bytes, swap_unit; /* of one value */
    int32_t ndim;                   /* of the subarray */
    uint64_t shape[ZARR_MAX_RANK];
    int64_t stride[ZARR_MAX_RANK]; /* bytes in the element */
    uint64_t n_values;
    /* its fill value: n_values in the view's byte order, packed; all_alike: the first
     * stands for all */
    const uint8_t *fill;
    bool all_alike;
};

/* The box of one target between a chunk's stored elements and a view; list dims are
 * walked by the callback form. */
typedef zarr_status (*zr_box_fn)(void *arg, const zarr_box *box, zarr_error *err);
/*
 * Calls fn for each box of elements of a target. The chunk side is a C-order block of
 * program->stored_shape at chunk_mem; to_chunk false: src is the chunk, dst the view;
 * true: the other way.
 */
struct zr_boxes {
    uint32_t item_bytes, swap_unit;    /* of the view's data type */
    const struct zr_field_view *field; /* NULL: whole elements */
    const struct zr_program *program;  /* NULL: fill: no chunk side */
    const struct zr_view *view;
    zarr_mem chunk_mem;
    bool to_chunk;
};
zarr_status zr_target_boxes(const struct zr_boxes *b, const struct zr_target *t,
                            zr_box_fn fn, void *arg, zarr_error *err);
/* *to is a copy of *from already; moves its lists and points into the arena, so that it
 * outlives its projector's next step. */
bool zr_projection_keep(struct zr_projection *to, const struct zr_projection *from,
                        struct zr_arena *arena);
/* A target that lends a projection's pieces instead of copying them: valid as long as
 * the projection. */
void zr_target_borrow(struct zr_target *out, const struct zr_projection *p);
/* The target "all of a block onto a view of the same shape"; pieces: room for ndim of
 * them. */
void zr_target_whole(struct zr_target *out, struct zr_piece *pieces, int32_t ndim,
                     const uint64_t *shape);

#endif
