/*
 * grid/grid.h - the door of pure index arithmetic: which chunks a selection touches, and
 * which elements of each. It has grids and key encodings (registries of vtables,
 * zarrc/plugin/grid.h), selections (zarrc/selection.h), and the projection of a selection
 * on a grid: an iterator whose memory depends on the rank and the coordinates given,
 * never on the number of chunks. It knows no codec, no store and no data type.
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
 * Registries: name -> vtable. The context owns one of each. A name that is taken stays
 * taken (EXISTS). The core's names are registered first, so plug-ins cannot replace them.
 * Grids and encodings point into the registry, which must outlive them.
 */
struct zr_grid_entry {
    struct zr_registered entry;
    zarr_grid_vtable vt;
};
struct zr_key_encoding_entry {
    struct zr_registered entry;
    zarr_key_encoding_vtable vt;
    char separator; /* of "default" or "v2" where metadata names none; 0: another one */
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
/* The built-ins. ctx/builtin.c registers them with the calls above. */
extern const zarr_grid_vtable zr_grid_regular, zr_grid_rectilinear, zr_grid_bounded;
extern const zarr_key_encoding_vtable zr_key_default, zr_key_v2, zr_key_default_suffix,
    zr_key_suffix;

/*
 * A grid over one array shape. If all chunks have one shape, the grid's code is inline
 * (regular, chunk_shape set) because it is hot. Such a grid may still have a vtable, if
 * the metadata has another name for it. Lengths and edges are below 2^63 (INVALID).
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
 * Makes a grid from metadata: name and configuration (may be NULL). INVALID names field
 * and rule. UNSUPPORTED: the name is not registered. Strict: edges are whole numbers >=
 * 1, and there are no unknown members.
 */
zarr_status zr_grid_parse(struct zr_grid *out, const struct zr_grid_registry *r,
                          int32_t ndim, const uint64_t *shape, const char *name,
                          const struct zr_json *config, zarr_error *err);
/* Makes a regular grid. An edge of 0 is read as 1 if the dimension is empty, because old
 * v2 arrays have it. Errors name `member`, the field that the edges come from. */
zarr_status zr_grid_init_regular(struct zr_grid *out, int32_t ndim, const uint64_t *shape,
                                 const uint64_t *chunk_shape, const char *member,
                                 zarr_error *err);
void zr_grid_deinit(struct zr_grid *g);
/* Returns the metadata name; appends the canonical configuration as JSON text. */
const char *zr_grid_name(const struct zr_grid *g);
zarr_status zr_grid_canonical(const struct zr_grid *g, struct zr_str *out,
                              zarr_error *err);
uint64_t zr_grid_n_chunks(const struct zr_grid *g, int32_t dim);
/* The number of chunks of the whole grid; UINT64_MAX if it does not fit. 0-d: 1. */
uint64_t zr_grid_n_chunks_all(const struct zr_grid *g);
/* The chunk that contains coordinate `at` (< shape[dim]). */
uint64_t zr_grid_locate(const struct zr_grid *g, int32_t dim, uint64_t at);
void zr_grid_extent(const struct zr_grid *g, int32_t dim, uint64_t chunk,
                    uint64_t *origin, uint64_t *size);
/* Advances `at` to the next chunk of the box [begin, end) in C order. Returns false after
 * the last. */
bool zr_grid_step(uint64_t *at, const uint64_t *begin, const uint64_t *end, int32_t ndim);
/* Stored shape of one chunk (edge chunks of regular grids: full size). */
void zr_grid_chunk_shape(const struct zr_grid *g, const uint64_t *chunk, uint64_t *shape);
/* How many chunks have the size of this one (< n_chunks), from this one on and itself
 * included. */
uint64_t zr_grid_n_equal(const struct zr_grid *g, int32_t dim, uint64_t chunk);
/* The largest chunk's shape; 1 in dimensions without chunks. If a grid cannot be walked
 * by runs, it is the largest of the first 65536 chunks of each dimension. */
void zr_grid_largest(const struct zr_grid *g, uint64_t *shape);
/* The same for the smallest edges. */
void zr_grid_smallest(const struct zr_grid *g, uint64_t *shape);
/* INVALID unless every chunk's edges are multiples of these (inner chunks). Walks as
 * above. */
zarr_status zr_grid_check_unit(const struct zr_grid *g, const uint64_t *unit,
                               zarr_error *err);
/* Appends the configuration for another shape. */
zarr_status zr_grid_write_resized(const struct zr_grid *g, const uint64_t *shape,
                                  struct zr_str *out, zarr_error *err);
/* UNSUPPORTED unless the chunks that both grids have are at the same place with the same
 * size: otherwise the stored chunks could not be read any more. */
zarr_status zr_grid_keeps(const struct zr_grid *old, const struct zr_grid *now,
                          zarr_error *err);
/* Returns true if the chunks that both grids have are at the same place with the same
 * size. */
bool zr_grid_same_chunks(const struct zr_grid *a, const struct zr_grid *b);
/* See zarr_selection_blocks(); works on any grid. */
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
/* Parses a key. False if the text is no chunk key of this encoding and rank. Strict. */
bool zr_key_encoding_chunk(const struct zr_key_encoding *k, int32_t ndim,
                           const char *text, uint64_t *chunk);

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
        valid[ZARR_MAX_RANK]; /* the part inside the array: the clip of inner chunks */
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
 * zr_project_open_inner() projects one chunk's pieces on the grid of its inner chunks
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
 * inner_shape: edges of the inner chunks, in permuted order. order NULL: identity. clip:
 * the extent of valid elements inside the outer chunk, in unpermuted order. Elements
 * beyond it are outside the array; so `whole` is exact for edge shards. NULL:
 * outer->valid, which has the same meaning. The projection's origin is then relative to
 * the outer chunk (permuted order), and chunk is the inner grid coordinates. The call
 * borrows its arguments only while it runs. The inner projection is a valid `outer` of
 * the next level.
 */
zarr_status zr_project_open_inner(struct zr_projector **out, const zarr_allocator *alloc,
                                  const struct zr_projection *outer,
                                  const uint64_t *inner_shape, const uint8_t *order,
                                  const uint64_t *clip, zarr_error *err);
/* Reuses a projector's memory for another outer chunk with the same inner edges and
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

/* ---- walks over arrays that are larger than memory -------------------------- */

/* Boxes that follow each other in C order and together cover `shape` exactly. */
struct zr_box_walk {
    int32_t ndim;
    const struct zr_grid
        *grid; /* boxes end where its chunks end, if possible; may be NULL */
    uint64_t shape[ZARR_MAX_RANK], step[ZARR_MAX_RANK];
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK]; /* the current box */
    uint64_t n_items;                                    /* elements in it */
    bool begun, done;
};
/* unit: boxes are multiples of these lengths if max_items (at least 1) allows it; NULL:
 * single elements. Sets no grid. */
void zr_box_walk_init(struct zr_box_walk *b, int32_t ndim, const uint64_t *shape,
                      const uint64_t *unit, uint64_t max_items);
bool zr_box_walk_next(struct zr_box_walk *b);
/* Makes the box with this number along each dimension the current one. Only without a
 * grid. */
void zr_box_walk_at(struct zr_box_walk *b, const uint64_t *number);
/* The number of elements of the largest box; 0: there is no box. */
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
/* Sorts into C order, each item once. Items that are added later are not in order. */
void zr_coord_set_sort(struct zr_coord_set *s);
static inline const uint64_t *zr_coord_set_item(const struct zr_coord_set *s, size_t i)
{
    return s->row + i * ((size_t)s->ndim + 1) + 1;
}

/* True if the selection was made for this shape. */
bool zr_selection_fits(const zarr_selection *s, int32_t ndim, const uint64_t *shape);
/* True if this shape has every selected element. */
bool zr_selection_is_within(const zarr_selection *s, const uint64_t *shape);
/* True if some element is selected twice. Then a parallel write must keep the order: the
 * last value wins. Lists and points are sorted for it. Also true if there is no memory
 * for that. */
bool zr_selection_repeats(const zarr_selection *s);
/* True for selections that are a start and a count in each array dimension: arithmetic,
 * step 1. The count of dropped dimensions is 1. Lists and masks that are such ranges
 * qualify. */
bool zr_selection_is_box(const zarr_selection *s, uint64_t *start, uint64_t *count);

#endif
