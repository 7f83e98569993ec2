/*
 * grid/grid.c - chunk grids over one array shape. The code of the regular grid is inline
 * in every call, because projection uses it for each chunk. Every other grid is used
 * through its vtable. The regular grid's own vtable is here too, for the registry: its
 * object is the struct of the grid. Other rooms limit chunk bytes (array, which knows the
 * data type) and write whole documents (meta).
 * Thread class: frozen.
 */
#include "grid/config_int.h"
#include "grid/grid_int.h"

enum {
    WALK_MOST = 65536 /* how many chunks are asked for one by one */
};

zarr_status zr_check_shape(int32_t ndim, const uint64_t *shape, zarr_error *err)
{
    if (ndim < 0 || ndim > ZARR_MAX_RANK)
        return zr_fail(err, ZARR_ERR_INVALID, "rank %d, must be 0 to %d", (int)ndim,
                       ZARR_MAX_RANK);
    if (ndim > 0 && !shape)
        return zr_fail(err, ZARR_ERR_INVALID, "no shape was given");
    for (int32_t d = 0; d < ndim; d++)
        if (shape[d] > INT64_MAX)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "dimension %d: length %" PRIu64 ", must be below 2^63", (int)d,
                           shape[d]);
    return ZARR_OK;
}

/* ---- regular -------------------------------------------------------------- */

static zarr_status check_edges(const struct zr_grid *g, const char *member,
                               zarr_error *err)
{
    for (int32_t d = 0; d < g->ndim; d++) {
        uint64_t edge = g->chunk_shape[d];
        if (edge == 0 || edge > INT64_MAX)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "%s[%d] is %" PRIu64 ", must be 1 to 2^63 - 1", member, (int)d,
                           edge);
    }
    return ZARR_OK;
}

static zarr_status init_shape(struct zr_grid *g, int32_t ndim, const uint64_t *shape,
                              zarr_error *err)
{
    zarr_status st = zr_check_shape(ndim, shape, err);

    *g = (struct zr_grid){0};
    if (st != ZARR_OK)
        return st;
    g->ndim = ndim;
    for (int32_t d = 0; d < ndim; d++)
        g->shape[d] = shape[d];
    return ZARR_OK;
}

/* In an empty dimension chunks had length 0 if a writer used the shape as chunk shape
 * (zarr-python 2; 3.0 and 3.1 in v3). */
static uint64_t chunk_length(uint64_t stated, uint64_t length)
{
    return stated == 0 && length == 0 ? 1 : stated;
}

zarr_status zr_grid_init_regular(struct zr_grid *out, int32_t ndim, const uint64_t *shape,
                                 const uint64_t *chunk_shape, const char *member,
                                 zarr_error *err)
{
    ZR_CHECK(init_shape(out, ndim, shape, err));
    out->regular = true;
    for (int32_t d = 0; d < ndim; d++)
        out->chunk_shape[d] = chunk_length(chunk_shape[d], shape[d]);
    return check_edges(out, member, err);
}

zarr_status zr_grid_check_list(const struct zr_json *list, const char *member,
                               int32_t ndim, zarr_error *err)
{
    if (!zr_json_is(list, ZR_JSON_ARRAY))
        return zr_fail(err, ZARR_ERR_INVALID, "%s is a %s, must be an array", member,
                       zr_json_type_text(list));
    if (zr_json_count(list) != (size_t)ndim)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s has %zu numbers, the array %d dimensions", member,
                       zr_json_count(list), (int)ndim);
    return ZARR_OK;
}

/* Reads {"chunk_shape": [...]} into a grid that has its shape. */
static zarr_status read_chunk_shape(struct zr_grid *g, const struct zr_json *config,
                                    zarr_error *err)
{
    const struct zr_json *list = zr_json_get(config, "chunk_shape");
    const struct zr_json *item;
    int32_t d = 0;

    ZR_CHECK(zr_config_check(config, "chunk grid \"regular\"", "chunk_shape", err));
    ZR_CHECK(zr_grid_check_list(list, "chunk_shape", g->ndim, err));
    for (item = list->u.children.first; item; item = item->next, d++) {
        if (!zr_json_u64(item, &g->chunk_shape[d]))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "chunk_shape[%d] is not a whole number >= 1", (int)d);
        g->chunk_shape[d] = chunk_length(g->chunk_shape[d], g->shape[d]);
    }
    g->regular = true;
    return check_edges(g, "chunk_shape", err);
}

static void regular_text(const struct zr_grid *g, struct zr_str *out)
{
    zr_str_puts(out, "{\"chunk_shape\":[");
    for (int32_t d = 0; d < g->ndim; d++) {
        if (d > 0)
            zr_str_putc(out, ',');
        zr_str_u64(out, g->chunk_shape[d]);
    }
    zr_str_puts(out, "]}");
}

static zarr_status regular_parse(void **self, int32_t ndim, const uint64_t *shape,
                                 const char *json, zarr_error *err)
{
    struct zr_grid *g = zr_malloc(NULL, sizeof *g);
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, NULL);
    if (!g)
        ZR_FAIL_MEMORY(err, sizeof *g);
    ZR_TRY(init_shape(g, ndim, shape, err));
    ZR_TRY(zr_config_parse(&doc, json, err));
    ZR_TRY(read_chunk_shape(g, doc.root, err));
    *self = g; /* moved */
    g = NULL;
out:
    zr_json_doc_deinit(&doc);
    zr_free(NULL, g);
    return st;
}

static zarr_status regular_canonical(const void *self, char *text, size_t cap,
                                     size_t *text_bytes, zarr_error *err)
{
    struct zr_str s;
    zarr_status st;

    zr_str_init(&s, NULL);
    regular_text(self, &s);
    st = zr_config_give(&s, text, cap, text_bytes, err);
    zr_str_deinit(&s);
    return st;
}

static uint64_t regular_n_chunks(const void *self, int32_t dim)
{
    return zr_grid_n_chunks(self, dim);
}

static uint64_t regular_locate(const void *self, int32_t dim, uint64_t at)
{
    return zr_grid_locate(self, dim, at);
}

static void regular_extent(const void *self, int32_t dim, uint64_t chunk,
                           uint64_t *origin, uint64_t *size)
{
    zr_grid_extent(self, dim, chunk, origin, size);
}

static void regular_free(void *self)
{
    zr_free(NULL, self);
}

const zarr_grid_vtable zr_grid_regular = {
    .struct_size = sizeof(zarr_grid_vtable),
    .name = "regular",
    .parse = regular_parse,
    .canonical = regular_canonical,
    .n_chunks = regular_n_chunks,
    .locate = regular_locate,
    .extent = regular_extent,
    .free = regular_free,
};

/* ---- any grid ------------------------------------------------------------- */

static zarr_status parse_by_vtable(struct zr_grid *g, const zarr_grid_vtable *vt,
                                   const struct zr_json *config,
                                   const zarr_allocator *alloc, zarr_error *err)
{
    struct zr_str text;
    zarr_status st = ZARR_OK;

    zr_str_init(&text, alloc);
    ZR_TRY(zr_config_text(config, &text, err));
    ZR_TRY(vt->parse(&g->self, g->ndim, g->shape, zr_str_text(&text), err));
    g->vt = vt;
out:
    zr_str_deinit(&text);
    return st;
}

zarr_status zr_grid_parse(struct zr_grid *out, const struct zr_grid_registry *r,
                          int32_t ndim, const uint64_t *shape, const char *name,
                          const struct zr_json *config, zarr_error *err)
{
    const struct zr_grid_entry *e = (const void *)zr_registry_find(&r->grids, name);
    const zarr_grid_vtable *vt = e ? &e->vt : NULL;

    ZR_CHECK(init_shape(out, ndim, shape, err));
    if (!vt)
        return zr_fail_refused(err, zr_grid_refused, "chunk grid", name);
    /* Plug-ins cannot replace these names. */
    if (zr_streq(vt->name, zr_grid_regular.name))
        ZR_CHECK(read_chunk_shape(out, config, err));
    else if (zr_streq(vt->name, zr_grid_rectilinear.name)) /* too large to go as text */
        ZR_CHECK(zr_rectilinear_make(out, config, r->alloc, err));
    else
        ZR_CHECK(parse_by_vtable(out, vt, config, r->alloc, err));
    return ZARR_OK;
}

void zr_grid_deinit(struct zr_grid *g)
{
    if (g->vt && g->vt->free)
        g->vt->free(g->self);
    *g = (struct zr_grid){0};
}

const char *zr_grid_name(const struct zr_grid *g)
{
    return g->vt ? g->vt->name : zr_grid_regular.name;
}

zarr_status zr_grid_canonical(const struct zr_grid *g, struct zr_str *out,
                              zarr_error *err)
{
    if (g->vt)
        return zr_config_take(g->self, g->vt->canonical, out, err);
    regular_text(g, out);
    return zr_str_status(out, err);
}

uint64_t zr_grid_n_chunks(const struct zr_grid *g, int32_t dim)
{
    if (!g->regular)
        return g->vt->n_chunks(g->self, dim);
    return zr_ceil_div_u64(g->shape[dim], g->chunk_shape[dim]);
}

uint64_t zr_grid_n_chunks_all(const struct zr_grid *g)
{
    uint64_t n[ZARR_MAX_RANK];
    uint64_t all = 0;

    for (int32_t d = 0; d < g->ndim; d++)
        n[d] = zr_grid_n_chunks(g, d);
    return zr_product_u64(n, (size_t)g->ndim, &all) ? all : UINT64_MAX;
}

bool zr_grid_step(uint64_t *at, const uint64_t *begin, const uint64_t *end, int32_t ndim)
{
    for (int32_t d = ndim - 1; d >= 0; d--) {
        if (++at[d] < end[d])
            return true;
        at[d] = begin[d];
    }
    return false;
}

uint64_t zr_grid_locate(const struct zr_grid *g, int32_t dim, uint64_t at)
{
    return g->regular ? at / g->chunk_shape[dim] : g->vt->locate(g->self, dim, at);
}

void zr_grid_extent(const struct zr_grid *g, int32_t dim, uint64_t chunk,
                    uint64_t *origin, uint64_t *size)
{
    if (g->regular) {
        *origin = chunk * g->chunk_shape[dim];
        *size = g->chunk_shape[dim];
    } else {
        g->vt->extent(g->self, dim, chunk, origin, size);
    }
}

uint64_t zr_grid_n_equal(const struct zr_grid *g, int32_t dim, uint64_t chunk)
{
    uint64_t left = zr_grid_n_chunks(g, dim) - chunk, n = 1;

    if (g->regular)
        return left;
    if (g->vt->n_equal)
        n = g->vt->n_equal(g->self, dim, chunk);
    return ZR_MIN(ZR_MAX(n, UINT64_C(1)), left);
}

static void grid_edges(const struct zr_grid *g, bool largest, uint64_t *shape)
{
    for (int32_t d = 0; d < g->ndim; d++) {
        uint64_t n = zr_grid_n_chunks(g, d), asked = 0;

        shape[d] = g->regular ? g->chunk_shape[d] : 1;
        if (g->regular)
            continue;
        for (uint64_t i = 0; i < n && (g->vt->n_equal || asked < WALK_MOST); asked++) {
            uint64_t origin = 0, size = 0;

            zr_grid_extent(g, d, i, &origin, &size);
            if (i == 0 || (size > shape[d]) == largest)
                shape[d] = size;
            i += zr_grid_n_equal(g, d, i);
        }
    }
}

void zr_grid_largest(const struct zr_grid *g, uint64_t *shape)
{
    grid_edges(g, true, shape);
}

void zr_grid_smallest(const struct zr_grid *g, uint64_t *shape)
{
    grid_edges(g, false, shape);
}

zarr_status zr_grid_check_unit(const struct zr_grid *g, const uint64_t *unit,
                               zarr_error *err)
{
    for (int32_t d = 0; d < g->ndim; d++) {
        uint64_t n = unit[d] == 1 ? 0 : zr_grid_n_chunks(g, d), asked = 0;

        for (uint64_t i = 0; i < n && (g->regular || g->vt->n_equal || asked < WALK_MOST);
             asked++) {
            uint64_t origin = 0, size = 0;

            zr_grid_extent(g, d, i, &origin, &size);
            if (size % unit[d] != 0)
                return zr_fail(err, ZARR_ERR_INVALID,
                               "the edge %" PRIu64 " of shard %" PRIu64
                               " in dimension %d is not a multiple of the chunk's "
                               "%" PRIu64,
                               size, i, (int)d, unit[d]);
            i += zr_grid_n_equal(g, d, i);
        }
    }
    return ZARR_OK;
}

/* ---- other shapes ---------------------------------------------------------- */

struct resizing {
    const struct zr_grid *g;
    const uint64_t *shape;
};

static zarr_status resized_text(const void *arg, char *text, size_t cap,
                                size_t *text_bytes, zarr_error *err)
{
    const struct resizing *r = arg;

    return r->g->vt->resize(r->g->self, r->shape, text, cap, text_bytes, err);
}

zarr_status zr_grid_write_resized(const struct zr_grid *g, const uint64_t *shape,
                                  struct zr_str *out, zarr_error *err)
{
    const struct resizing r = {.g = g, .shape = shape};

    if (!g->vt || !g->vt->resize)
        return zr_grid_canonical(g, out, err);
    return zr_config_take(&r, resized_text, out, err);
}

static zarr_status dim_keeps(const struct zr_grid *old, const struct zr_grid *now,
                             int32_t d, zarr_error *err)
{
    uint64_t n = ZR_MIN(zr_grid_n_chunks(old, d), zr_grid_n_chunks(now, d));

    for (uint64_t i = 0; i < n;) {
        uint64_t at = 0, was_at = 0, size = 0, was_size = 0;

        zr_grid_extent(old, d, i, &was_at, &was_size);
        zr_grid_extent(now, d, i, &at, &size);
        if (at != was_at || size != was_size)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "chunk grid \"%s\": with length %" PRIu64
                           " of dimension %d chunk %" PRIu64 " would have %" PRIu64
                           " elements instead of %" PRIu64
                           " along it: a resize would have to rewrite the stored chunks",
                           zr_grid_name(now), now->shape[d], (int)d, i, size, was_size);
        i += ZR_MIN(zr_grid_n_equal(old, d, i), zr_grid_n_equal(now, d, i));
    }
    return ZARR_OK;
}

zarr_status zr_grid_keeps(const struct zr_grid *old, const struct zr_grid *now,
                          zarr_error *err)
{
    if (old->regular && !old->vt && now->regular && !now->vt)
        return ZARR_OK; /* the configuration and the chunks stay the same */
    for (int32_t d = 0; d < now->ndim; d++)
        if (old->shape[d] != now->shape[d])
            ZR_CHECK(dim_keeps(old, now, d, err));
    return ZARR_OK;
}

bool zr_grid_same_chunks(const struct zr_grid *a, const struct zr_grid *b)
{
    bool same = a->ndim == b->ndim;

    for (int32_t d = 0; same && d < a->ndim; d++)
        same = dim_keeps(a, b, d, NULL) == ZARR_OK;
    return same;
}

void zr_grid_chunk_shape(const struct zr_grid *g, const uint64_t *chunk, uint64_t *shape)
{
    for (int32_t d = 0; d < g->ndim; d++) {
        uint64_t origin = 0;
        zr_grid_extent(g, d, chunk[d], &origin, &shape[d]);
    }
}
