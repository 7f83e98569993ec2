/*
 * select/select_int.h - what the files of this room share: the inside of a selection, the
 * axis (one dimension of a projection) and the bucket (coordinates sorted into chunks).
 * All array coordinates are below 2^63 (zr_check_shape()), so a coordinate fits int64_t
 * and the end of a chunk fits uint64_t.
 */
#ifndef ZR_SELECT_INT_H
#define ZR_SELECT_INT_H

#include "select/select.h"

/* ---- numbers -------------------------------------------------------------- */

/* A reusable array of numbers. */
struct zr_nums {
    uint64_t *ptr;
    size_t cap;
};
/* Makes room for n * per numbers. The content is lost. */
zarr_status zr_nums_need(struct zr_nums *v, const zarr_allocator *alloc, uint64_t n,
                         uint64_t per, zarr_error *err);
void zr_nums_deinit(struct zr_nums *v, const zarr_allocator *alloc);

/* Scratch for sorting: keys in, order out. */
struct zr_sorter {
    const zarr_allocator *alloc;
    bool has_sorted; /* some bucket has memory */
    bool sorted;     /* the keys were in order: `order` is not used */
    struct zr_nums keys, order, scratch, bits;
};
void zr_sorter_deinit(struct zr_sorter *s);
/* Finds a stable order of n keys of `words` numbers each: s->keys, most significant word
 * first. */
zarr_status zr_sorter_sort(struct zr_sorter *s, uint64_t n, size_t words,
                           zarr_error *err);
/* Returns the number of the item that is the i-th in order. */
static inline uint64_t zr_sorter_item(const struct zr_sorter *s, uint64_t i)
{
    return s->sorted ? i : s->order.ptr[i];
}
/* Compares two keys of `words` numbers as tuples: <0, 0, >0. */
int zr_keys_compare(const uint64_t *a, const uint64_t *b, size_t words);

/* ---- selections ----------------------------------------------------------- */

/* Indexes start + i * step for i < n, or the list if there is one. */
struct zr_dim_sel {
    uint64_t n, start;
    int64_t step;       /* 1 when n < 2, never 0 */
    uint64_t *list;     /* owned; NULL: arithmetic */
    int32_t result_dim; /* -1: dropped, then n is 1 */
};

static inline uint64_t zr_dim_sel_at(const struct zr_dim_sel *d, uint64_t i)
{
    /* The sum is in range, so arithmetic modulo 2^64 is right for both signs. */
    return d->list ? d->list[i] : d->start + (uint64_t)d->step * i;
}

struct zarr_selection {
    int32_t ndim, result_ndim;
    bool points;
    uint64_t n_items;  /* saturating */
    uint64_t n_points; /* points only */
    uint64_t *coords;  /* points only: n_points * ndim, owned */
    uint64_t shape[ZARR_MAX_RANK], result_shape[ZARR_MAX_RANK];
    struct zr_dim_sel dim[ZARR_MAX_RANK]; /* unless points */
};

/* Makes an empty selection for this shape; no dim is set yet. */
zarr_status zr_selection_new(zarr_selection **out, int32_t ndim, const uint64_t *shape,
                             zarr_error *err);
/* Makes room for n points; sets n_points and coords. */
zarr_status zr_selection_new_coords(zarr_selection *s, uint64_t n, zarr_error *err);
/* Sets the result of a selection whose dims are complete (result_dim >= 0 or -1). */
void zr_selection_finish(zarr_selection *s);
void zr_dim_sel_arith(struct zr_dim_sel *d, uint64_t n, uint64_t start, int64_t step);
/* Moves a list in. A list with a constant step becomes arithmetic and is freed. */
void zr_dim_sel_list(struct zr_dim_sel *d, uint64_t n, uint64_t *list);
zarr_status zr_dim_sel_alloc_list(uint64_t **list, uint64_t n, zarr_error *err);
/* One index; a negative one counts from the end. False if out of bounds. */
bool zr_fix_index(int64_t index, uint64_t len, uint64_t *out);

/* ---- several projectors as one (merge.c) -------------------------------------- */

struct zr_merge;
/* Makes a merge of n projectors, none of them set. */
zarr_status zr_merge_new(struct zr_merge **out, uint32_t n, const zarr_allocator *alloc,
                         zarr_error *err);
/* Room for projector i, which the merge owns; NULL inside: not opened yet. */
struct zr_projector **zr_merge_slot(struct zr_merge *m, uint32_t i);
uint32_t zr_merge_room(const struct zr_merge *m);
/* Begins again with the first n projectors, which are all opened and rewound. */
void zr_merge_start(struct zr_merge *m, uint32_t n);
bool zr_merge_next(struct zr_merge *m, struct zr_projection *out);
uint64_t zr_merge_count(const struct zr_merge *m);
void zr_merge_rewind(struct zr_merge *m);
void zr_merge_free(struct zr_merge *m);

/* ---- projections ---------------------------------------------------------- */

/*
 * Coordinates of one or more dimensions sorted into chunks, and within a chunk in the
 * order given. Run k has the items start[k] to start[k + 1] and is in chunk[k * rank
 * ...].
 */
struct zr_bucket {
    uint64_t n_runs;
    struct zr_nums c;     /* n * rank coordinates inside the chunk */
    struct zr_nums r;     /* n result positions */
    struct zr_nums start; /* n_runs + 1 */
    struct zr_nums chunk; /* n_runs * rank */
    struct zr_nums whole; /* n_runs booleans */
};

/*
 * One dimension of a projection: its chunks, the selected indexes, and the current piece.
 * Arithmetic selections are ascending (step > 0), and r_step has either sign. Lists are
 * in the bucket.
 */
struct zr_axis {
    const struct zr_grid *grid; /* chunks of grids that are not regular */
    int32_t dim, result_dim;
    uint64_t edge;   /* regular cuts; 0: ask the grid */
    uint64_t extent; /* elements that exist */
    bool listed;
    bool whole; /* the piece covers the existing elements of its chunk, each once */
    uint64_t n, a0, r0, step;
    int64_t r_step;
    uint64_t next; /* first item (arithmetic) or run (list) after the piece */
    uint64_t chunk, origin, size, valid;
    struct zr_piece piece;
    struct zr_bucket list;
};

/* Finds the chunk around coordinate `at`. */
static inline void zr_axis_cut(const struct zr_axis *x, uint64_t at, uint64_t *chunk,
                               uint64_t *origin, uint64_t *size)
{
    if (x->edge) {
        *chunk = at / x->edge;
        *origin = *chunk * x->edge;
        *size = x->edge;
    } else {
        *chunk = zr_grid_locate(x->grid, x->dim, at);
        zr_grid_extent(x->grid, x->dim, *chunk, origin, size);
    }
}
/* The number of elements of a chunk that exist. */
static inline uint64_t zr_axis_valid(const struct zr_axis *x, uint64_t origin,
                                     uint64_t size)
{
    return origin >= x->extent ? 0 : ZR_MIN(size, x->extent - origin);
}

void zr_axis_set_arith(struct zr_axis *x, uint64_t n, uint64_t a0, int64_t step,
                       uint64_t r0, int64_t r_step);
void zr_axis_first(struct zr_axis *x);
bool zr_axis_next(struct zr_axis *x);
/* The number of pieces from first to last. Costs time only for stepped selections of
 * irregular grids. */
uint64_t zr_axis_count(const struct zr_axis *x);

/* The input: n tuples of `rank` coordinates; dimension i of a tuple is at[order[i]].
 */
struct zr_coords {
    uint64_t n;
    int32_t rank;
    const uint64_t *at;
    const uint64_t *result; /* NULL: 0, 1, 2, ... */
    const uint8_t *order;   /* NULL: identity */
};
zarr_status zr_bucket_fill(struct zr_bucket *b, struct zr_sorter *s,
                           const struct zr_axis *axes, const struct zr_coords *in,
                           zarr_error *err);
void zr_bucket_deinit(struct zr_bucket *b, const zarr_allocator *alloc);

#endif
