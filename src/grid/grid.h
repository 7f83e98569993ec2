/*
 * grid/grid.h - the door of pure index arithmetic: which chunks a selection
 * touches and which elements of each. Grids and key encodings (registries of
 * vtables, zarrc/plugin/grid.h), selections (zarrc/selection.h), and the
 * projection of one on the other: an iterator whose memory grows with rank
 * and given coordinates, never with the number of chunks. It knows no codec,
 * no store and no data type.
 * Thread class: grids, encodings and finished selections frozen; iterators solo.
 */
#ifndef ZR_GRID_H
#define ZR_GRID_H

#include "base/base.h"
#include "json/json.h"
#include <zarrc/plugin/grid.h>
#include <zarrc/selection.h>

/* ---- grids ---------------------------------------------------------------- */

/*
 * Registries: name -> vtable; the context owns one of each. A name taken once stays taken
 * (EXISTS), so the core's, registered first, cannot be taken over. Grids and encodings
 * point into the registry: it must outlive them.
 */
struct zr_grid_entry {
    struct zr_registered entry;
    zarr_grid_vtable vt;
};
struct zr_key_encoding_entry {
    struct zr_registered entry;
    zarr_key_encoding_vtable vt;
};
struct zr_grid_registry {
    struct zr_registry grids, encodings; /* zr_grid_entry, zr_key_encoding_entry */
    const zarr_allocator *alloc;
};
zarr_status zr_grid_registry_init(struct zr_grid_registry *r, const zarr_allocator *alloc,
                                  zarr_error *err);
void zr_grid_registry_deinit(struct zr_grid_registry *r);
/* Refusals: kinds "chunk grid", "chunk key encoding", "member". */
extern const struct zr_refusal zr_grid_refused[];
/* The table is copied. EXISTS names the owner of a name that is taken. */
zarr_status zr_grid_register(struct zr_grid_registry *r, const zarr_grid_vtable *v,
                             const char *origin, zarr_error *err);
zarr_status zr_key_encoding_register(struct zr_grid_registry *r,
                                     const zarr_key_encoding_vtable *v,
                                     const char *origin, zarr_error *err);
/* The built-ins, registered by ctx/builtin.c through the very calls above. */
extern const zarr_grid_vtable zr_grid_regular, zr_grid_rectilinear, zr_grid_bounded;
extern const zarr_key_encoding_vtable zr_key_default, zr_key_v2, zr_key_default_suffix,
    zr_key_suffix;

/*
 * A grid over one array shape. Grids whose chunks all have one shape are open-coded
 * (regular, chunk_shape set) because they are hot; they have a vtable nevertheless where
 * the metadata calls them otherwise. Lengths and edges are below 2^63 (INVALID).
 */
struct zr_grid {
    int32_t ndim;
    bool regular;
    uint64_t shape[ZARR_MAX_RANK];
    uint64_t chunk_shape[ZARR_MAX_RANK]; /* regular: edge lengths, >= 1 */
    const zarr_grid_vtable *vt;          /* name and object; NULL: "regular" */
    void *self;
};
/*
 * From metadata: name and configuration (may be NULL). INVALID names field and rule;
 * UNSUPPORTED: the name is not registered. Strict: edges are whole numbers >= 1, no
 * unknown members.
 */
zarr_status zr_grid_parse(struct zr_grid *out, const struct zr_grid_registry *r,
                          int32_t ndim, const uint64_t *shape, const char *name,
                          const struct zr_json *config, zarr_error *err);
/* An edge of 0 is read as 1 where the dimension is empty: old v2 arrays have it. Errors
 * name `member`, the field that the edges come from. */
zarr_status zr_grid_init_regular(struct zr_grid *out, int32_t ndim, const uint64_t *shape,
                                 const uint64_t *chunk_shape, const char *member,
                                 zarr_error *err);
void zr_grid_deinit(struct zr_grid *g);
/* Metadata name; appends the canonical configuration as JSON text. */
const char *zr_grid_name(const struct zr_grid *g);
zarr_status zr_grid_canonical(const struct zr_grid *g, struct zr_str *out,
                              zarr_error *err);
uint64_t zr_grid_n_chunks(const struct zr_grid *g, int32_t dim);
/* Chunks of the whole grid, saturating at UINT64_MAX. 0-d: 1. */
uint64_t zr_grid_n_chunks_all(const struct zr_grid *g);
/* Chunk that holds coordinate `at` (< shape[dim]). */
uint64_t zr_grid_locate(const struct zr_grid *g, int32_t dim, uint64_t at);
void zr_grid_extent(const struct zr_grid *g, int32_t dim, uint64_t chunk,
                    uint64_t *origin, uint64_t *size);
/* Stored shape of one chunk (edge chunks of regular grids: full size). */
void zr_grid_chunk_shape(const struct zr_grid *g, const uint64_t *chunk, uint64_t *shape);
/* Chunks from this one on (< n_chunks) that have its size, itself included. */
uint64_t zr_grid_n_equal(const struct zr_grid *g, int32_t dim, uint64_t chunk);
/* The largest chunk's shape, 1 along dimensions without chunks; of grids that cannot be
 * walked by runs, the largest of the first 65536 chunks of each dimension. */
void zr_grid_largest(const struct zr_grid *g, uint64_t *shape);
/* The same of the smallest edges. */
void zr_grid_smallest(const struct zr_grid *g, uint64_t *shape);
/* INVALID unless every chunk's edges are multiples of these (inner chunks); walks as
 * above. */
zarr_status zr_grid_check_unit(const struct zr_grid *g, const uint64_t *unit,
                               zarr_error *err);
/* Appends the configuration for another shape. */
zarr_status zr_grid_resized(const struct zr_grid *g, const uint64_t *shape,
                            struct zr_str *out, zarr_error *err);
/* UNSUPPORTED unless chunks that both grids have lie at the same place with the same
 * size: the stored chunks could not be read any more. */
zarr_status zr_grid_keeps(const struct zr_grid *old, const struct zr_grid *now,
                          zarr_error *err);
/* Returns true if chunks that both grids have lie at the same place with the same
 * size. */
bool zr_grid_same_chunks(const struct zr_grid *a, const struct zr_grid *b);
/* As zarr_selection_blocks(), on any grid. */
zarr_status zr_grid_select_blocks(zarr_selection **out, const struct zr_grid *g,
                                  int32_t n_dims, const zarr_dim_selection *dims,
                                  zarr_error *err);

struct zr_key_encoding {
    const zarr_key_encoding_vtable *vt;
    void *self;
};
zarr_status zr_key_encoding_parse(struct zr_key_encoding *out,
                                  const struct zr_grid_registry *r, const char *name,
                                  const struct zr_json *config, zarr_error *err);
void zr_key_encoding_deinit(struct zr_key_encoding *k);
/* Appends the canonical configuration as JSON text. */
zarr_status zr_key_encoding_canonical(const struct zr_key_encoding *k, struct zr_str *out,
                                      zarr_error *err);
/* Appends the chunk's key, e.g. "c/3/0". */
void zr_key_encoding_key(const struct zr_key_encoding *k, int32_t ndim,
                         const uint64_t *chunk, struct zr_str *out);
/* The inverse: false when the text is no chunk key of this encoding and rank. Strict. */
bool zr_key_encoding_chunk(const struct zr_key_encoding *k, int32_t ndim,
                           const char *text, uint64_t *chunk);

/* ---- projections ---------------------------------------------------------- */

/*
 * What one chunk contributes, as a list of dimension pieces in *array* dimension order. A
 * piece pairs positions inside the chunk with positions in the result, both in elements
 * of their dimension: for arithmetic pieces chunk = c0 + i * c_step and result = r0 + i *
 * r_step for i < n, where c_step >= 1 and r_step may be negative, and both are 1 when n
 * is 1, so that no step reaches beyond the chunk. List pieces give both position arrays,
 * in the order of the selection (the steps are 0). result_dim is the result's dimension
 * that this array dimension runs along, -1 when it was dropped (n is 1 then). Points
 * (kind POINTS) pair whole coordinate tuples with flat result positions instead and leave
 * dim[] unset.
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
    bool whole; /* every element of the chunk that lies inside the array, each once */
    bool full;  /* the same, and all of the chunk lies inside: a write needs no old data.
                   Else others may have grown the array: what this shape does not know
                   of a chunk is not ours to fill. */
    bool arithmetic;                /* all pieces are */
    uint64_t n_items;               /* elements taken */
    uint64_t chunk[ZARR_MAX_RANK];  /* grid coordinates */
    uint64_t origin[ZARR_MAX_RANK]; /* first array coordinate of the chunk */
    uint64_t shape[ZARR_MAX_RANK];  /* stored shape of the chunk */
    uint64_t valid[ZARR_MAX_RANK];  /* what of it lies inside the array: the clip of inner
                                       chunks */
    struct zr_piece dim[ZARR_MAX_RANK];
    uint64_t n_points; /* POINTS */
    const uint64_t
        *c_points; /* n_points * ndim coordinates inside the chunk, point-major */
    const uint64_t *r_points; /* n_points flat C-order positions in the result */
};

/*
 * Iterates over the chunks that a selection touches, each once, in C order of chunk
 * coordinates. Works on any separable grid, and again inside a chunk:
 * zr_project_open_inner() projects one chunk's pieces on the grid of its inner chunks
 * (shards, nested shards), after an optional permutation of dimensions (a transpose codec
 * in front: inner dim i is chunk dim order[i]).
 */
struct zr_projector;
/* The grid is borrowed by the projector, the selection for the call only. INVALID: other
 * shape. */
zarr_status zr_project_open(struct zr_projector **out, const zarr_allocator *alloc,
                            const struct zr_grid *grid, const zarr_selection *selection,
                            zarr_error *err);
/*
 * inner_shape: edges of the inner chunks, in permuted order; order NULL: identity. clip:
 * extent of valid elements inside the outer chunk, in unpermuted order, elements behind
 * it being outside the array; it makes `whole` exact for edge shards. NULL: outer->valid,
 * which is just that. The projection's origin is then relative to the outer chunk
 * (permuted order), chunk = inner grid coordinates. Everything given is borrowed for the
 * call only, and the inner projection is a valid `outer` of the next level.
 */
zarr_status zr_project_open_inner(struct zr_projector **out, const zarr_allocator *alloc,
                                  const struct zr_projection *outer,
                                  const uint64_t *inner_shape, const uint8_t *order,
                                  const uint64_t *clip, zarr_error *err);
/* Reuses a projector's memory for another outer chunk with the same inner edges and
 * order. After a failure it yields nothing and can be reopened. */
zarr_status zr_project_reopen_inner(struct zr_projector *p,
                                    const struct zr_projection *outer,
                                    const uint64_t *clip, zarr_error *err);
/* Number of chunks it will yield from the start, saturating. Costs nothing except in
 * dimensions with steps on irregular grids, whose chunks are walked one dimension at a
 * time. */
uint64_t zr_project_count(const struct zr_projector *p);
/* True and fills *out (its lists valid until the next call), or false at the end. Never
 * allocates. */
bool zr_project_next(struct zr_projector *p, struct zr_projection *out);
void zr_project_rewind(struct zr_projector *p);
void zr_project_free(struct zr_projector *p);

/* ---- walks over arrays that are larger than memory -------------------------- */

/* Boxes that follow each other in C order and together cover `shape` exactly. */
struct zr_box_walk {
    int32_t ndim;
    const struct zr_grid
        *grid; /* boxes end where its chunks do, if they can; may be NULL */
    uint64_t shape[ZARR_MAX_RANK], step[ZARR_MAX_RANK];
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK]; /* the current box */
    uint64_t n_items;                                    /* elements in it */
    bool begun, done;
};
/* unit: lengths that boxes are multiples of, where max_items (at least 1) allows; NULL:
 * single elements. Sets no grid. */
void zr_box_walk_init(struct zr_box_walk *b, int32_t ndim, const uint64_t *shape,
                      const uint64_t *unit, uint64_t max_items);
bool zr_box_walk_next(struct zr_box_walk *b);
/* Makes the box with this number along each dimension the current one; without grid only.
 */
void zr_box_walk_at(struct zr_box_walk *b, const uint64_t *number);
/* Elements of the largest box; 0: there is no box. */
uint64_t zr_box_walk_max_items(const struct zr_box_walk *b);

/* A set of coordinates. */
struct zr_coord_set {
    uint64_t *row; /* n rows: the rank, then the coordinates */
    int32_t ndim;
    size_t n, cap;
    const zarr_allocator *alloc;
};
void zr_coord_set_init(struct zr_coord_set *s, int32_t ndim, const zarr_allocator *alloc);
void zr_coord_set_deinit(struct zr_coord_set *s);
zarr_status zr_coord_set_add(struct zr_coord_set *s, const uint64_t *at, zarr_error *err);
/* C order, each once. Items that are added later are not in order. */
void zr_coord_set_sort(struct zr_coord_set *s);
static inline const uint64_t *zr_coord_set_item(const struct zr_coord_set *s, size_t i)
{
    return s->row + i * ((size_t)s->ndim + 1) + 1;
}

/* True when the selection was made for this shape. */
bool zr_selection_fits(const zarr_selection *s, int32_t ndim, const uint64_t *shape);
/* True when some element is selected twice (then a parallel write must keep order: last
 * wins). Lists and points are sorted for it; true as well when there is no memory for
 * that. */
bool zr_selection_repeats(const zarr_selection *s);
/* True for selections that are start and count per array dimension: arithmetic, step 1.
 * Dropped dimensions count 1. Lists and masks that are such ranges qualify. */
bool zr_selection_is_box(const zarr_selection *s, uint64_t *start, uint64_t *count);

#endif
