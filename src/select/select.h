/*
 * select/select.h - the door of selections: which elements a request wants
 * (zarrc/selection.h), and their projection on a grid: which chunks a selection touches,
 * and which elements of each. The memory of a projection depends on the rank and the
 * coordinates given, never on the number of chunks.
 * Thread class: finished selections frozen; projectors solo.
 */
#ifndef ZR_SELECT_H
#define ZR_SELECT_H

#include "grid/grid.h"
#include <zarrc/selection.h>

/* ---- selections ----------------------------------------------------------- */

/* See zarr_array_select_blocks(). */
zarr_status zr_select_blocks(zarr_selection **out, const struct zr_grid *g,
                             int32_t n_dims, const zarr_dim_selection *dims,
                             zarr_error *err);

/* True if the selection was made for this shape. */
bool zr_selection_fits(const zarr_selection *s, int32_t ndim, const uint64_t *shape);
/* True if this shape has every selected element. */
bool zr_selection_is_within(const zarr_selection *s, const uint64_t *shape);
/* True for selections that are a start and a count in each array dimension: arithmetic,
 * step 1. The count of dropped dimensions is 1. Lists and masks that are such ranges
 * qualify. */
bool zr_selection_is_box(const zarr_selection *s, uint64_t *start, uint64_t *count);

/* ---- projections ---------------------------------------------------------- */

/*
 * What one chunk contributes, as a list of dimension pieces in *array* dimension order. A
 * piece pairs positions inside the chunk with positions in the result, both in elements
 * of their dimension. For arithmetic pieces chunk = c0 + i * c_step and result = r0 + i *
 * r_step for i < n. c_step >= 1, and r_step may be negative. Both are 1 if n is 1, so
 * that no step reaches beyond the chunk. List pieces give both position arrays, in the
 * order of the selection (the steps are 0). result_dim is the result's dimension that
 * this array dimension becomes, or -1 if it was dropped (n is then 1). Points (kind
 * POINTS) pair whole coordinate tuples with flat result positions instead, and do not set
 * dim[].
 */
struct zr_piece {
    uint64_t n;
    uint64_t c0, r0;
    int64_t c_step, r_step;
    const uint64_t *c_list, *r_list; /* NULL: arithmetic; borrowed from the iterator */
    int32_t result_dim;
};
enum zr_projection_kind {
    ZR_PROJ_DIMS,
    ZR_PROJ_POINTS
};
struct zr_projection {
    enum zr_projection_kind kind;
    int32_t ndim;
    bool whole; /* every element of the chunk that is inside the array, each once */
    bool full;  /* the same, and the whole chunk is inside: a write needs no old data.
                   Otherwise another handle may have made the array longer, and a write
                   must keep the elements beyond this shape */
    bool arithmetic;                /* all pieces are */
    uint64_t n_items;               /* elements taken */
    uint64_t chunk[ZARR_MAX_RANK];  /* grid coordinates */
    uint64_t origin[ZARR_MAX_RANK]; /* first array coordinate of the chunk */
    uint64_t shape[ZARR_MAX_RANK];  /* stored shape of the chunk */
    uint64_t
        valid[ZARR_MAX_RANK]; /* the part inside the array: the clip of what is inside */
    struct zr_piece dim[ZARR_MAX_RANK];
    uint64_t n_points; /* POINTS */
    const uint64_t
        *c_points; /* n_points * ndim coordinates inside the chunk, point-major */
    const uint64_t *r_points; /* n_points flat C-order positions in the result */
    uint32_t part;            /* several selections: which of them */
    /* Several selections: what the next one takes of the same chunk, in their order;
     * NULL: no more. `whole` and `full` of the first one tell of all together; those of
     * the others are not used. */
    const struct zr_projection *next;
};
/* Elements of a projection and of those after it. */
static inline uint64_t zr_projection_items(const struct zr_projection *p)
{
    uint64_t n = 0;

    for (; p; p = p->next)
        n += p->n_items;
    return n;
}

/*
 * Iterates over the chunks that a selection touches, each once, in C order of chunk
 * coordinates. It works on any separable grid, and also inside a chunk:
 * zr_project_open_inner() projects one chunk's pieces on the grid inside of it
 * (shards, nested shards), after an optional permutation of dimensions (if a transpose
 * codec comes before: inner dim i is chunk dim order[i]).
 */
struct zr_projector;
/* The projector borrows the grid; it uses the selection only during the call. INVALID:
 * the selection is for another shape. */
zarr_status zr_project_open(struct zr_projector **out, const zarr_allocator *alloc,
                            const struct zr_grid *grid, const zarr_selection *selection,
                            zarr_error *err);
/* The same for n selections of one grid: yields each chunk once that any of them touches.
 * The selections are borrowed during the call. */
zarr_status zr_project_open_many(struct zr_projector **out, const zarr_allocator *alloc,
                                 const struct zr_grid *grid,
                                 const zarr_selection *const *selections, uint32_t n,
                                 zarr_error *err);
/*
 * inner_shape: edges of the inner grid, in permuted order. order NULL: identity. clip:
 * the extent of valid elements inside `outer`, in unpermuted order. Elements
 * beyond it are outside the array; so `whole` is exact for edge shards. NULL:
 * outer->valid, which has the same meaning. The projection's origin is then relative to
 * `outer` (permuted order), and chunk is the inner grid coordinates. The call
 * borrows its arguments only while it runs. The inner projection is a valid `outer` of
 * the next level.
 */
zarr_status zr_project_open_inner(struct zr_projector **out, const zarr_allocator *alloc,
                                  const struct zr_projection *outer,
                                  const uint64_t *inner_shape, const uint8_t *order,
                                  const uint64_t *clip, zarr_error *err);
/* Reuses a projector's memory for another `outer` with the same inner edges and
 * order. After a failure it yields nothing and can be opened again. */
zarr_status zr_project_reopen_inner(struct zr_projector *p,
                                    const struct zr_projection *outer,
                                    const uint64_t *clip, zarr_error *err);
/* The number of chunks that it yields from the start; UINT64_MAX if it does not fit.
 * Costs nothing except in dimensions with steps on irregular grids, whose chunks are
 * walked one dimension at a time. A chunk that several selections touch counts for each
 * of them. */
uint64_t zr_project_count(const struct zr_projector *p);
/* The same for a selection without a projector. False: it has points or lists, or is of
 * another shape, and only a projector tells. */
bool zr_project_count_box(uint64_t *n, const struct zr_grid *grid,
                          const zarr_selection *selection);
/* Whether it walks points, which opening it sorted. */
bool zr_project_is_of_points(const struct zr_projector *p);
/* Returns true and fills *out (its lists are valid until the next call), or false at the
 * end. Never allocates. */
bool zr_project_next(struct zr_projector *p, struct zr_projection *out);
void zr_project_rewind(struct zr_projector *p);
void zr_project_free(struct zr_projector *p);

#endif
