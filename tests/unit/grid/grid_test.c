/*
 * unit/grid/grid_test.c - see grid_test.h. The rectilinear grid stores the end of each
 * chunk and finds a coordinate by bisection.
 */
#include "unit/grid/grid_test.h"

#include <stdlib.h>
#include <string.h>

/* splitmix64 */
uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    return n ? rng_next(r) % n : 0;
}

bool rng_chance(struct rng *r, unsigned percent)
{
    return rng_below(r, 100) < percent;
}

uint64_t test_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 0) : otherwise;
}

/* ---- the rectilinear grid ------------------------------------------------- */

struct rect {
    int32_t ndim;
    uint64_t n[ZARR_MAX_RANK];
    uint64_t *end[ZARR_MAX_RANK]; /* n + 1 of them, the first is 0 */
};

static void rect_free(void *self)
{
    struct rect *g = self;

    if (!g)
        return;
    for (int32_t d = 0; d < g->ndim; d++)
        free(g->end[d]);
    free(g);
}

static zarr_status rect_read_dim(struct rect *g, int32_t d, uint64_t length,
                                 const struct zr_json *list, zarr_error *err)
{
    size_t n = zr_json_count(list), i = 0;

    g->end[d] = calloc(n + 1, sizeof(uint64_t));
    if (!g->end[d])
        return zr_fail_memory(err, n);
    for (const struct zr_json *e = list->u.children.first; e; e = e->next, i++) {
        uint64_t edge = 0;
        if (!zr_json_u64(e, &edge) || edge == 0)
            return zr_fail(err, ZARR_ERR_INVALID, "edges[%d] is wrong", (int)d);
        g->end[d][i + 1] = g->end[d][i] + edge;
    }
    if (g->end[d][n] < length)
        return zr_fail(err, ZARR_ERR_INVALID, "edges[%d] do not cover", (int)d);
    while (n > 0 && g->end[d][n - 1] >= length) /* chunks outside the array */
        n--;
    g->n[d] = n;
    return ZARR_OK;
}

static zarr_status rect_parse(void **self, int32_t ndim, const uint64_t *shape,
                              const char *json, zarr_error *err)
{
    struct rect *g = calloc(1, sizeof *g);
    const struct zr_json *edges;
    struct zr_json_doc doc;
    zarr_limits limits;
    zarr_status st = ZARR_OK;
    int32_t d = 0;

    zr_limits_default(&limits);
    zr_json_doc_init(&doc, NULL);
    if (!g) {
        st = zr_fail_memory(err, sizeof *g);
        goto out;
    }
    g->ndim = ndim;
    ZR_TRY(zr_json_parse(&doc, json, strlen(json), &limits, err));
    edges = zr_json_get(doc.root, "edges");
    if (zr_json_count(edges) != (size_t)ndim) {
        st = zr_fail(err, ZARR_ERR_INVALID, "edges have the wrong rank");
        goto out;
    }
    for (const struct zr_json *e = ndim ? edges->u.children.first : NULL; e;
         e = e->next, d++)
        ZR_TRY(rect_read_dim(g, d, shape[d], e, err));
    *self = g;
    g = NULL;
out:
    rect_free(g);
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status rect_canonical(const void *self, char *text, size_t cap,
                                  size_t *text_bytes, zarr_error *err)
{
    static const char fixed[] = "{\"edges\":\"test\"}";

    (void)self;
    (void)err;
    if (cap >= sizeof fixed)
        memcpy(text, fixed, sizeof fixed);
    *text_bytes = sizeof fixed - 1;
    return ZARR_OK;
}

static uint64_t rect_n_chunks(const void *self, int32_t dim)
{
    return ((const struct rect *)self)->n[dim];
}

static uint64_t rect_locate(const void *self, int32_t dim, uint64_t at)
{
    const struct rect *g = self;
    uint64_t lo = 0, hi = g->n[dim];

    while (hi - lo > 1) {
        uint64_t mid = (lo + hi) / 2;
        if (g->end[dim][mid] <= at)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static void rect_extent(const void *self, int32_t dim, uint64_t chunk, uint64_t *origin,
                        uint64_t *size)
{
    const struct rect *g = self;

    *origin = g->end[dim][chunk];
    *size = g->end[dim][chunk + 1] - *origin;
}

const zarr_grid_vtable rect_grid = {
    .struct_size = sizeof(zarr_grid_vtable),
    .name = "test.rect",
    .parse = rect_parse,
    .canonical = rect_canonical,
    .n_chunks = rect_n_chunks,
    .locate = rect_locate,
    .extent = rect_extent,
    .free = rect_free,
};

/* ---- makers --------------------------------------------------------------- */

void registry_make(struct zr_grid_registry *r)
{
    assert_int_equal(zr_grid_registry_init(r, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_grid_register(r, &zr_grid_regular, "core", NULL), ZARR_OK);
    assert_int_equal(zr_grid_register(r, &zr_grid_rectilinear, "core", NULL), ZARR_OK);
    assert_int_equal(zr_grid_register(r, &zr_grid_bounded, "core", NULL), ZARR_OK);
    assert_int_equal(zr_grid_register(r, &rect_grid, "core", NULL), ZARR_OK);
    assert_int_equal(zr_key_encoding_register(r, &zr_key_default, "core", NULL), ZARR_OK);
    assert_int_equal(zr_key_encoding_register(r, &zr_key_v2, "core", NULL), ZARR_OK);
    assert_int_equal(zr_key_encoding_register(r, &zr_key_default_suffix, "core", NULL),
                     ZARR_OK);
    assert_int_equal(zr_key_encoding_register(r, &zr_key_suffix, "core", NULL), ZARR_OK);
}

zarr_status grid_make(struct zr_grid *g, const struct zr_grid_registry *r, int32_t ndim,
                      const uint64_t *shape, const char *name, const char *config,
                      zarr_error *err)
{
    struct zr_json_doc doc;
    zarr_limits limits;
    zarr_status st = ZARR_OK;

    zr_limits_default(&limits);
    *g = (struct zr_grid){0};
    zr_json_doc_init(&doc, NULL);
    if (config)
        ZR_TRY(zr_json_parse(&doc, config, strlen(config), &limits, err));
    ZR_TRY(zr_grid_parse(g, r, ndim, shape, name, config ? doc.root : NULL, err));
out:
    zr_json_doc_deinit(&doc);
    return st;
}
