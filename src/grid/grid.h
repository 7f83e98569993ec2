/*
 * grid/grid.h - the door of pure index arithmetic: which chunk has an element, and which
 * key a chunk has. It has chunk grids and key encodings (registries of vtables,
 * zarrc/plugin/grid.h), and walks over arrays that are larger than memory. It knows no
 * selection, no codec, no store and no data type.
 * Thread class: grids and encodings frozen; walks and sets solo.
 */
#ifndef ZR_GRID_H
#define ZR_GRID_H

#include "base/base.h"
#include "json/json.h"
#include <zarrc/plugin/grid.h>

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
/* INVALID unless every block's edges are multiples of these (chunks of a shard). Walks as
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
/* INVALID unless 0 <= ndim <= ZARR_MAX_RANK and every length is below 2^63. */
zarr_status zr_check_shape(int32_t ndim, const uint64_t *shape, zarr_error *err);

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
    /* The shape begins here in the grid; then boxes end where its chunks end, or
     * multiples of `unit` (0: anywhere). For the caller to set. */
    uint64_t base[ZARR_MAX_RANK], unit[ZARR_MAX_RANK];
};
/* unit: boxes are multiples of these lengths if max_items (at least 1) allows it; NULL:
 * single elements. Sets no grid. */
void zr_box_walk_init(struct zr_box_walk *b, int32_t ndim, const uint64_t *shape,
                      const uint64_t *unit, uint64_t max_items);
bool zr_box_walk_next(struct zr_box_walk *b);
/* Makes the box with this number along each dimension the current one. Only without a
 * grid. */
void zr_box_walk_at(struct zr_box_walk *b, const uint64_t *number);

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

#endif
