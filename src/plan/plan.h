/*
 * plan/plan.h - the door of planning: decides, without I/O and without threads, what a
 * request fetches and decodes and where it puts the elements. It has two nouns.
 *
 * A *layout* is an array prepared for one kind of memory: its levels (the block, inside a
 * shard what it holds, and so on down to the chunk), each with its chain taken apart into
 * permutation, programs and facts of the index. It is made once and then frozen.
 *
 * A *plan* is one read, unrolled lazily over a layout. The caller pulls waves from it:
 * batches of chunks, limited in decoded bytes and in items. When the plan meets shards
 * whose index it does not have, it returns a wave of OPENs. The pipe fetches their
 * indexes, zr_shard_index_make() checks them, and the plan goes on. The items of a wave
 * are grouped in segments: neighbours in one source, which one thread reads with one
 * request. Writes take units directly from the projector (pipe/write/units.c).
 * Thread class: layouts are frozen; plans are solo (the pipeline locks them); shards are
 * frozen and counted.
 */
#ifndef ZR_PLAN_H
#define ZR_PLAN_H

#include "base/base.h"
#include "chain/chain.h"
#include "grid/grid.h"
#include "impl/impl.h"
#include "mem/mem.h"
#include "select/select.h"
#include <zarrc/plan.h>

/* ---- layout ------------------------------------------------------------- */

struct zr_variant;
struct zr_variants;

struct zr_level {
    /* the variant that this level is part of; NULL: the level is the layout's own */
    struct zr_variant *variant;
    /* borrowed from the metadata; or `own`: the elementwise codecs before the shards
     * around this level, followed by the inner chain */
    const struct zr_chain *chain;
    uint32_t n_elementwise; /* number of these elementwise codecs */
    /* codec NULL: none; the specifications belong to the metadata */
    struct zr_chain own;
    /* Fill value of a chunk of this level that is missing in a stored shard: one native
     * element, and the same with the bytes of each unit reversed. They point into the
     * layout or into own_fill. */
    const uint8_t *fill, *fill_swapped;
    uint8_t *own_fill; /* owned; holds both fills; NULL: they are the layout's */
    struct zr_chain_reps reps;
    int32_t ndim;
    /* shape of a chunk of this level, in the order of dimensions that its chain is
     * given */
    uint64_t shape[ZARR_MAX_RANK];
    uint64_t array_shape[ZARR_MAX_RANK]; /* the same in array order of dimensions */
    /* dimension i of the level is dimension to_array[i] of the array */
    uint8_t to_array[ZARR_MAX_RANK];
    bool is_shard;
    /* only the level of chunks */
    struct zr_program *decode, *encode;
    /* only shards, down to bytes_encode */
    const struct zr_shard_spec *shard;
    /* The transposes before the sharding codec: dimension i inside of the shard is
     * dimension order[i] of this level. */
    uint8_t order[ZARR_MAX_RANK];
    bool permuted;
    /* in the order of `order` */
    uint64_t inner_shape[ZARR_MAX_RANK], n_inner[ZARR_MAX_RANK];
    uint64_t n_inner_all, index_bytes;
    /* the index, a level of shape [n_inner..., 2] and type uint64 */
    struct zr_level *index;
    /* programs of the bytes->bytes codecs around the shard, on the host; NULL: none */
    struct zr_program *bytes_decode, *bytes_encode;
    uint64_t decoded_bytes;
    uint64_t encoded_bound; /* unsized: an estimate for the budget */
    uint64_t encoded_most;  /* unsized: the most that limits allow; else encoded_bound */
    bool unsized;           /* as in struct zr_program */
};

struct zr_layout_args {
    const struct zr_grid *grid;         /* borrowed: outlives the layout */
    const struct zr_chain *chain;       /* borrowed */
    const struct zr_key_encoding *keys; /* borrowed */
    const zarr_dtype *dtype;
    const void *fill;              /* one native element, borrowed; NULL: zero bytes */
    const zarr_dtype *index_dtype; /* the data type uint64 */
    const struct zr_impl_registry *impls;
    const zarr_limits *limits;
    int32_t device_type; /* memory that elements are read into or written from */
    /* memory kinds that the store itself moves bytes to and from */
    const int32_t *store_devices;
    uint32_t n_store_devices;
    const char *preference;
    const struct zr_log *log; /* NULL: no warnings */
    uint32_t trust;           /* as in struct zr_placement_options */
    atomic_bool *trust_told;
};
struct zr_layout {
    const struct zr_grid *grid;
    const struct zr_key_encoding *keys;
    const zarr_dtype *dtype;
    uint32_t item_bytes, swap_unit;
    bool variable; /* elements begin with a zarr_vlen */
    /* item_bytes, native; variable: points to bytes that args->fill owns */
    uint8_t *fill;
    uint8_t *fill_swapped; /* the same with each unit reversed */
    int32_t device_type;
    uint32_t n_levels;
    /* [0] is the outermost. If chunks differ in shape, it is the level of the largest
     * chunk or, if `smallest`, of the smallest. */
    struct zr_level *level;
    struct zr_variants *variants; /* NULL: level[0] fits every chunk */
    bool smallest;                /* because the largest chunk exceeds a limit */
    const zarr_allocator *alloc;
};
zarr_status zr_layout_make(struct zr_layout **out, const struct zr_layout_args *args,
                           const zarr_allocator *alloc, zarr_error *err);
void zr_layout_free(struct zr_layout *l);
/* The most bytes that a shard has inside of the codecs around it; unsized: an estimate.
 */
uint64_t zr_body_bytes(const struct zr_level *lv);
/* Shape of a chunk in array order of dimensions. If chunks differ in shape, the shape of
 * level[0]. */
const uint64_t *zr_layout_leaf_shape(const struct zr_layout *l);
/* Gives the outermost level for chunks of this stored shape, counted: release it with
 * zr_level_give(). With variants it is made at its first use and kept for later chunks of
 * that shape; the number of shapes kept is bounded. Thread class: shared. */
zarr_status zr_layout_outer(const struct zr_layout *l, const uint64_t *shape,
                            const struct zr_level **out, zarr_error *err);
void zr_level_give(const struct zr_level *lv); /* lv may be NULL */

/* ---- shards --------------------------------------------------------------- */

/* A checked index: n pairs (offset, bytes). Offsets count from the first byte of the
 * shard. A pair of all ones means that the entry is missing. Frozen, counted, may
 * be cached. */
struct zr_shard_index {
    atomic_uint refs;
    bool missing; /* the object is missing, so every entry is */
    uint64_t n;   /* entries: chunks, or shards */
    /* of the object that the index was read from; all zero: unknown */
    unsigned char version[64];
    uint64_t *entry;
    struct zr_shard_pairs bounds; /* of the entries */
    uint64_t begin, end;          /* between these all bytes are of chunks */
    const zarr_allocator *alloc;
};
/* Takes over the pairs, which are of `alloc` and have the bounds of `in`, also if it
 * fails. If they are NULL, makes an index of n missing chunks (missing = true). */
zarr_status zr_shard_index_make(struct zr_shard_index **out, uint64_t *pairs,
                                const struct zr_shard_pairs *in,
                                const zarr_allocator *alloc, zarr_error *err);
/* Whether entry i is not stored. */
static inline bool zr_shard_index_lacks(const struct zr_shard_index *x, uint64_t i)
{
    return x->missing || ZR_PAIR_IS_MISSING(x->entry + 2 * i);
}
/* Checks entry i, which is stored, before it is used. Returns CORRUPT if it is bad. */
static inline zarr_status zr_shard_index_check(const struct zr_shard_index *x, uint64_t i,
                                               zarr_error *err)
{
    const uint64_t *pair = x->entry + 2 * i;

    if (pair[0] >= x->begin && pair[0] < x->end && pair[1] <= x->end - pair[0])
        return ZARR_OK;
    return zr_shard_pair_check(&x->bounds, i, err); /* one without bytes may be good */
}
struct zr_shard_index *zr_shard_index_ref(struct zr_shard_index *x);
void zr_shard_index_free(struct zr_shard_index *x);

/* Bytes of budgets of the pipe that are taken for a value in memory. */
struct zr_held {
    void *of[2]; /* belong to the pipe; NULL: none */
    uint64_t bytes;
};
/* A shard during one request: its index and the place of its encoded bytes. That is an
 * object of the store, pinned by the pipe (`held`), a range of such an object (nested
 * shards: `parent`), or a decoded buffer. */
struct zr_shard {
    atomic_uint refs;
    /* in the same allocation: the key of the object that contains the shard, and the
     * coordinates of its first element in the array; NULL: they are not known */
    const char *key;
    const uint64_t *origin;
    /* offset of this shard in the object or in the buffer */
    uint64_t base;
    struct zr_shard_index *index;
    struct zr_shard *parent; /* counted; NULL: outermost */
    /* host memory with the whole value; handle NULL: the value is in the store */
    zarr_memory buffer;
    /* the pool block that contains buffer; handle NULL: another owner has it */
    zarr_memory block;
    void *held; /* belongs to the pipe; the outermost shard owns it */
    void (*release)(struct zr_shard *s); /* frees held or block; may be NULL */
    void *release_arg, *budget;          /* belong to the pipe */
    struct zr_held held_bytes;
    uint64_t kept_bytes; /* by the budgets, for the block */
    const zarr_allocator *alloc;
};
/* origin: ndim coordinates, or NULL. */
struct zr_shard *zr_shard_new(const zarr_allocator *alloc, const char *key, int32_t ndim,
                              const uint64_t *origin);
struct zr_shard *zr_shard_ref(struct zr_shard *s);
void zr_shard_free(struct zr_shard *s);

/* ---- reading plans ---------------------------------------------------------- */

/* A projection packed into the arena of a wave: only ndim pieces, with their lists
 * copied. */
struct zr_target {
    enum zr_projection_kind kind;
    int32_t ndim;
    bool arithmetic;
    uint64_t n_items;
    const uint64_t *chunk;      /* ndim coordinates in the grid of the level */
    const struct zr_piece *dim; /* ndim pieces, in the level's order of dimensions */
    uint64_t n_points;
    const uint64_t *c_points, *r_points;
    /* Several selections: which of them, and what the next one takes of the same chunk.
     */
    uint32_t part;
    bool many; /* others take a part of the chunk, too */
    const struct zr_target *next;
};
/* Elements of a target and of those after it. */
static inline uint64_t zr_target_items(const struct zr_target *t)
{
    uint64_t n = 0;

    for (; t; t = t->next)
        n += t->n_items;
    return n;
}
struct zr_item {
    struct zr_target target;
    /* Range in the source. bytes = UINT64_MAX: the whole object. bytes = ZR_ITEM_MISSING:
     * the chunk is known to be missing. */
    uint64_t offset, bytes;
    /* Position in the request. A request reports the error of the lowest ordinal that
     * failed. */
    uint64_t ordinal;
    uint64_t n_chunks;   /* 1; more if the item is a whole missing shard */
    uint32_t fill_level; /* missing: the level whose fill value the elements get; 0: the
                            whole unit is missing */
    bool is_bad;         /* missing: its entry in the index, number `offset`, is bad */
    uint64_t unit;       /* number of the block among those of the request */
};
#define ZR_ITEM_MISSING (UINT64_MAX - 1)
/* Items fetched with one request and decoded one after the other by one thread. */
struct zr_segment {
    const struct zr_level *level; /* the level of its items */
    /* key of the object; NULL: the bytes are in shard->buffer */
    const char *key;
    struct zr_shard *shard; /* NULL: chunks without a shard */
    uint64_t offset, bytes; /* range that covers all items; UINT64_MAX: whole object */
    struct zr_item **item;  /* sorted by offset */
    uint32_t n_items;
};
/* A shard that must be opened before the plan can continue. The pipe sets `shard`. */
struct zr_open {
    const char *key;
    const uint64_t *origin;  /* first element in the array; NULL: not known */
    struct zr_shard *parent; /* nested: the shard that contains it; NULL: an object */
    uint64_t entry;          /* nested: its number in the parent's index */
    uint64_t offset, bytes;  /* nested: its range in the parent, if the entry is good */
    uint32_t level;
    const struct zr_level *lv; /* level of this shard; borrowed from the plan */
    uint64_t ordinal;
    const struct zr_projection *proj; /* what is wanted of it; borrowed from the plan */
    struct zr_shard *shard;           /* out, counted */
    struct zr_ahead *ahead; /* belongs to the pipe; NULL: nothing was fetched ahead */
    struct zr_held held;    /* until the shard has them */
};
enum zr_wave_kind {
    ZR_WAVE_END,
    ZR_WAVE_OPEN,
    ZR_WAVE_DATA
};
struct zr_wave {
    enum zr_wave_kind kind;
    struct zr_arena arena;
    /* DATA: the level of chunks; if these differ in shape, the layout's */
    const struct zr_level *level;
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
    /* several selections instead, none of them NULL; NULL: `selection` */
    const zarr_selection *const *selections;
    uint32_t n_selections;
    uint64_t wave_bytes;
    uint32_t wave_items;
    /* at most, while the chunks of a wave are stored in the order in which they
     * come; 0: wave_items. Others would make more and smaller reads in small waves. */
    uint32_t wave_items_in_order;
    uint64_t segment_bytes, segment_gap; /* longest joined range, longest hole in it */
    /* an uncompressed chunk is not joined if at least half of it, and more bytes than
     * these, are not wanted; 0: any */
    uint64_t part_hole;
    uint64_t wave_gaps; /* bytes of all holes of a wave at most; 0: any */
    uint32_t opens;     /* shards opened at once at most, if their indexes fit; 0: 64 */
    /* bytes of values that are open at once at most, of the outermost level that has
     * codecs around its shards; the next one has half as many; one value may have more;
     * 0: any */
    uint64_t held_bytes;
    uint32_t threads; /* cut segments so that this many threads have work */
    bool apart;       /* one item per segment */
    /* also one segment per wave, for the pipeline `serial` */
    bool plain;
};
/* A range of an object, fetched at once. */
struct zr_range {
    uint64_t start, end;
};
/* Extends a range by `bytes` at `offset`, which is not before its start, and takes the
 * hole between them from *gaps. Returns false, without an effect, if the hole or the
 * range would become too large. */
static inline bool zr_range_join(const struct zr_plan_args *a, struct zr_range *r,
                                 uint64_t offset, uint64_t bytes, uint64_t *gaps)
{
    const uint64_t gap = offset > r->end ? offset - r->end : 0;
    const uint64_t end = ZR_MAX(r->end, offset + bytes);

    if (gap > a->segment_gap || gap > *gaps || end - r->start > a->segment_bytes)
        return false;
    *gaps -= gap;
    r->end = end;
    return true;
}
struct zr_plan;
zarr_status zr_plan_open(struct zr_plan **out, const struct zr_plan_args *args,
                         const zarr_allocator *alloc, zarr_error *err);
/* Fills w, which zr_wave_init() initialised and calls may reuse. After an OPEN wave, the
 * caller must set each open's shard and call zr_plan_resume() before the next call. */
zarr_status zr_plan_next(struct zr_plan *p, struct zr_wave *w, zarr_error *err);
zarr_status zr_plan_resume(struct zr_plan *p, struct zr_wave *w, zarr_error *err);
void zr_plan_free(struct zr_plan *p);
void zr_wave_init(struct zr_wave *w, const zarr_allocator *alloc);
/* Gives up the shards of a wave that is done, and leaves it empty. */
void zr_wave_release(struct zr_wave *w);
void zr_wave_deinit(struct zr_wave *w);
/* Writes the key of a block into out, replacing its text: prefix, '/', key
 * encoding. */
void zr_plan_key(const struct zr_plan_args *args, const uint64_t *chunk,
                 struct zr_str *out);
/* Number of chunks that the request touches, as far as it is known without indexes.
 * Saturates at UINT64_MAX. */
uint64_t zr_plan_count(const struct zr_plan *p);
/* Whether zr_plan_count() sorts all points of the request once more. */
bool zr_plan_count_sorts(const struct zr_plan *p);

/* What zr_plan_explain() describes. */
struct zr_explain_args {
    struct zr_plan_args plan;
    bool write;
    bool reset_outside; /* writes: elements outside of the shape are not kept */
    bool field;         /* writes: other fields of the elements are kept */
    uint64_t units;     /* writes: objects in work at once */
    const char *pipeline, *store_name;
    int32_t tensor_device;
    bool tensor_contiguous;
    /* writes: elements are compared with the fill value and are not in host memory */
    bool compared;
    bool (*index_cached)(void *arg, const char *key);
    void *arg;
};
/* Fills *out with what the request would do. Its texts and lists are in the arena.
 * Executes nothing. */
zarr_status zr_plan_explain(zarr_explanation *out, const struct zr_explain_args *args,
                            struct zr_arena *arena, zarr_error *err);
/* Appends it as text, or as JSON. */
void zr_explanation_print(const zarr_explanation *e, struct zr_str *out);
zarr_status zr_explanation_json(const zarr_explanation *e, struct zr_str *out,
                                const zarr_allocator *alloc, zarr_error *err);

/* Selects one field of struct elements. The view then has the field's data type, and the
 * dimensions of the field's subarray after its own. */
struct zr_field_view {
    bool on;
    uint64_t offset;                /* in the element */
    uint32_t item_bytes, swap_unit; /* of one value */
    int32_t ndim;                   /* of the subarray */
    uint64_t shape[ZARR_MAX_RANK];
    int64_t stride[ZARR_MAX_RANK]; /* bytes between values in the element */
    uint64_t n_values;
    /* The field's fill value: n_values packed, in the view's byte order. If all_alike,
     * only the first is set and applies to all. */
    const uint8_t *fill;
    bool all_alike;
};

/* Receives one box between the stored elements of a chunk and a view. */
typedef zarr_status (*zr_box_fn)(void *arg, const zarr_box *box, zarr_error *err);
/* Calls fn for each box of elements of a target. The chunk side is a C-order block of
 * program->stored_shape at chunk_mem. If to_chunk is false, src is the chunk and dst the
 * view; if it is true, src is the view. */
struct zr_boxes {
    uint32_t item_bytes, swap_unit;    /* of the view's data type */
    const struct zr_field_view *field; /* NULL: whole elements */
    const struct zr_program *program;  /* NULL: filling, no chunk side */
    const struct zr_view *view;
    zarr_memory chunk_mem;
    bool to_chunk;
};
zarr_status zr_target_boxes(const struct zr_boxes *b, const struct zr_target *t,
                            zr_box_fn fn, void *arg, zarr_error *err);
/* Copies a projection, and into the arena its lists and points and the projections after
 * it, so that it outlives the next step of its projector. */
bool zr_projection_keep(struct zr_projection *to, const struct zr_projection *from,
                        struct zr_arena *arena);
/* Makes a target that borrows the pieces of a projection instead of copying them, without
 * those of the projections after it. Valid as long as the projection. */
void zr_target_borrow(struct zr_target *out, const struct zr_projection *p);
/* Leaves out the elements of a target that others of it, without those of the targets
 * after it, are written over: the last one of each place stays. False: no memory. */
bool zr_target_last(struct zr_target *t, struct zr_arena *arena);
/* Ranks a projection and those after it, so that two which may have a place of the chunk
 * in common have ranks in their order. *ranks: one for each; NULL: there is one only. *n:
 * the highest rank and one. False: no memory. */
bool zr_projection_ranks(const struct zr_projection *p, uint32_t **ranks, uint32_t *n,
                         struct zr_arena *arena);
/* Makes a target for all elements of a block and a view of the same shape. pieces has
 * room for ndim. */
void zr_target_whole(struct zr_target *out, struct zr_piece *pieces, int32_t ndim,
                     const uint64_t *shape);

#endif
