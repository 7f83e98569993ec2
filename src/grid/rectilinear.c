/*
 * grid/rectilinear.c - "rectilinear" (zarr-extensions, chunk-grids/rectilinear). Each
 * dimension has its own edges, written as one number that repeats, or as a list of edges
 * and [edge, count] pairs. Equal edges are stored as a run, with the chunk and the
 * coordinate where it begins, so a count of 10^12 costs as much as one edge. Chunks are
 * found by bisection. Lists must reach the array's end and may reach beyond it
 * (zarr-python 3.4). Chunks that are completely beyond the end do not count.
 * Thread class: frozen.
 */
#include "grid/config_int.h"
#include "grid/grid_int.h"

#include <math.h>

struct edge_run {
    uint64_t edge, count;
    uint64_t chunk, origin; /* of its first */
};

struct edges {
    uint64_t step;   /* one number for all chunks; 0: runs */
    uint64_t length; /* of the array */
    uint64_t n_chunks, sum;
    struct edge_run *run; /* neighbours differ */
    size_t n, cap;
};

struct rectilinear {
    const zarr_allocator *alloc;
    int32_t ndim;
    struct edges dim[];
};

static void rectilinear_free(void *self)
{
    struct rectilinear *r = self;

    for (int32_t d = 0; r && d < r->ndim; d++)
        zr_free(r->alloc, r->dim[d].run);
    if (r)
        zr_free(r->alloc, r);
}

/* ---- finding chunks -------------------------------------------------------- */

/* The last run that begins at or before a chunk, or a coordinate. */
static const struct edge_run *find_run(const struct edges *e, bool is_chunk, uint64_t at)
{
    size_t low = 0, high = e->n;

    while (high - low > 1) {
        const size_t mid = low + (high - low) / 2;

        if ((is_chunk ? e->run[mid].chunk : e->run[mid].origin) <= at)
            low = mid;
        else
            high = mid;
    }
    return &e->run[low];
}

static uint64_t edges_locate(const struct edges *e, uint64_t at)
{
    const struct edge_run *r;

    if (e->step)
        return at / e->step;
    r = find_run(e, false, at);
    return r->chunk + (at - r->origin) / r->edge;
}

static uint64_t rectilinear_n_chunks(const void *self, int32_t dim)
{
    const struct rectilinear *r = self;

    return r->dim[dim].n_chunks;
}

static uint64_t rectilinear_locate(const void *self, int32_t dim, uint64_t at)
{
    const struct rectilinear *r = self;

    return edges_locate(&r->dim[dim], at);
}

static void rectilinear_extent(const void *self, int32_t dim, uint64_t chunk,
                               uint64_t *origin, uint64_t *size)
{
    const struct rectilinear *r = self;
    const struct edges *e = &r->dim[dim];

    if (e->step) {
        *origin = chunk * e->step;
        *size = e->step;
    } else {
        const struct edge_run *run = find_run(e, true, chunk);

        *origin = run->origin + (chunk - run->chunk) * run->edge;
        *size = run->edge;
    }
}

static uint64_t rectilinear_n_equal(const void *self, int32_t dim, uint64_t chunk)
{
    const struct rectilinear *r = self;
    const struct edges *e = &r->dim[dim];
    const struct edge_run *run;

    if (e->step)
        return e->n_chunks - chunk;
    run = find_run(e, true, chunk);
    return run->count - (chunk - run->chunk);
}

/* ---- reading --------------------------------------------------------------- */

/* Reads an edge of a list. Old versions of zarr-python also wrote true and 4.0. */
static bool read_edge(const struct zr_json *v, uint64_t *out)
{
    double real = 0;

    if (zr_json_u64(v, out))
        return *out >= 1 && *out <= INT64_MAX;
    *out = 1;
    if (zr_json_is(v, ZR_JSON_TRUE))
        return true;
    if (!zr_json_is(v, ZR_JSON_NUMBER) || !zr_json_f64(v, &real) || !(real >= 1) ||
        !(real < 9007199254740992.0) || floor(real) != real)
        return false;
    *out = (uint64_t)real;
    return true;
}

static zarr_status add_edges(struct edges *e, int32_t dim, const struct edge_run *more,
                             const zarr_allocator *alloc, zarr_error *err)
{
    uint64_t all = 0, sum = 0;

    if (!zr_mul(more->edge, more->count, &all) || !zr_add(e->sum, all, &sum) ||
        sum > INT64_MAX)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "chunk_shapes[%d]: the edges sum to 2^63 or more", (int)dim);
    if (e->n > 0 && e->run[e->n - 1].edge == more->edge) {
        e->run[e->n - 1].count += more->count;
    } else {
        const struct edge_run *last = e->n > 0 ? &e->run[e->n - 1] : NULL;
        uint64_t chunk = last ? last->chunk + last->count : 0;

        ZR_CHECK(zr_grow(alloc, &e->run, &e->cap, e->n + 1, sizeof *e->run, err));
        e->run[e->n++] = (struct edge_run){
            .edge = more->edge, .count = more->count, .chunk = chunk, .origin = e->sum};
    }
    e->sum = sum;
    return ZARR_OK;
}

static zarr_status read_item(struct edges *e, int32_t dim, const struct zr_json *v,
                             const zarr_allocator *alloc, zarr_error *err)
{
    struct edge_run more = {.count = 1};
    const struct zr_json *edge = v;
    char text[64];

    if (zr_json_is(v, ZR_JSON_ARRAY)) {
        edge = v->u.children.first;
        if (zr_json_count(v) != 2 || !zr_json_u64(edge->next, &more.count) ||
            more.count == 0)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "chunk_shapes[%d] has %s, must be an edge or a pair of an "
                           "edge and a count >= 1",
                           (int)dim, zr_json_excerpt(v, text, sizeof text));
    }
    if (!read_edge(edge, &more.edge))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "chunk_shapes[%d] has the edge %s, must be 1 to 2^63 - 1",
                       (int)dim, zr_json_excerpt(edge, text, sizeof text));
    return add_edges(e, dim, &more, alloc, err);
}

static zarr_status read_edges(struct edges *e, int32_t dim, const struct zr_json *v,
                              const zarr_allocator *alloc, zarr_error *err)
{
    char text[64];

    if (!zr_json_is(v, ZR_JSON_ARRAY)) {
        if (!zr_json_u64(v, &e->step) || e->step == 0 || e->step > INT64_MAX)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "chunk_shapes[%d] is %s, must be an edge or a list of edges",
                           (int)dim, zr_json_excerpt(v, text, sizeof text));
        e->n_chunks = zr_ceil_div_u64(e->length, e->step);
        return ZARR_OK;
    }
    if (!v->u.children.first)
        return zr_fail(err, ZARR_ERR_INVALID, "chunk_shapes[%d] has no edges", (int)dim);
    for (const struct zr_json *item = v->u.children.first; item; item = item->next)
        ZR_CHECK(read_item(e, dim, item, alloc, err));
    if (e->sum < e->length)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "chunk_shapes[%d]: the edges sum to %" PRIu64
                       ", the dimension has length %" PRIu64,
                       (int)dim, e->sum, e->length);
    e->n_chunks = e->length == 0 ? 0 : edges_locate(e, e->length - 1) + 1;
    return ZARR_OK;
}

/* Gives the only edge of a dimension; false: there are several. */
static bool one_edge(const struct edges *e, uint64_t *out)
{
    *out = e->step ? e->step : e->run[0].edge;
    return e->step || e->run[0].count >= e->n_chunks;
}

static zarr_status read_shapes(struct rectilinear *r, const struct zr_json *config,
                               zarr_error *err)
{
    static const char *const members[] = {"kind", "chunk_shapes", NULL};
    const struct zr_json *kind = zr_json_get(config, "kind");
    const struct zr_json *list = zr_json_get(config, "chunk_shapes");
    const struct zr_json *item;
    int32_t d = 0;
    char text[64];

    ZR_CHECK(zr_config_check_members(config, "chunk grid \"rectilinear\"", members, err));
    if (!zr_json_string(kind))
        return zr_fail(err, ZARR_ERR_INVALID, "kind is a %s, must be \"inline\"",
                       zr_json_type_text(kind));
    if (!zr_json_is_text(kind, "inline"))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "chunk grid \"rectilinear\" of kind %s, only \"inline\" is known",
                       zr_json_excerpt(kind, text, sizeof text));
    ZR_CHECK(zr_grid_check_list(list, "chunk_shapes", r->ndim, err));
    for (item = list->u.children.first; item; item = item->next, d++)
        ZR_CHECK(read_edges(&r->dim[d], d, item, r->alloc, err));
    return ZARR_OK;
}

static zarr_status rectilinear_new(struct rectilinear **out, int32_t ndim,
                                   const uint64_t *shape, const struct zr_json *config,
                                   const zarr_allocator *alloc, zarr_error *err)
{
    size_t bytes = sizeof(struct rectilinear) + (size_t)ndim * sizeof(struct edges);
    struct rectilinear *r = zr_calloc(alloc, 1, bytes);
    zarr_status st = ZARR_OK;

    if (!r)
        return zr_fail_memory(err, bytes);
    r->alloc = alloc;
    r->ndim = ndim;
    for (int32_t d = 0; d < ndim; d++)
        r->dim[d].length = shape[d];
    ZR_TRY(read_shapes(r, config, err));
    *out = r; /* moved */
    r = NULL;
out:
    rectilinear_free(r);
    return st;
}

zarr_status zr_rectilinear_make(struct zr_grid *g, const struct zr_json *config,
                                const zarr_allocator *alloc, zarr_error *err)
{
    struct rectilinear *r = NULL;
    zarr_status st = rectilinear_new(&r, g->ndim, g->shape, config, alloc, err);

    if (st != ZARR_OK)
        return st;
    g->vt = &zr_grid_rectilinear;
    g->self = r;
    g->regular = true;
    for (int32_t d = 0; d < g->ndim; d++)
        g->regular = one_edge(&r->dim[d], &g->chunk_shape[d]) && g->regular;
    return ZARR_OK;
}

static zarr_status rectilinear_parse(void **self, int32_t ndim, const uint64_t *shape,
                                     const char *json, zarr_error *err)
{
    struct rectilinear *r = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, NULL);
    ZR_TRY(zr_check_shape(ndim, shape, err));
    ZR_TRY(zr_config_parse(&doc, json, err));
    ZR_TRY(rectilinear_new(&r, ndim, shape, doc.root, NULL, err));
    *self = r;
out:
    zr_json_doc_deinit(&doc);
    return st;
}

/* ---- writing --------------------------------------------------------------- */

static void put_run(struct zr_str *out, uint64_t edge, uint64_t count)
{
    if (count > 1)
        zr_str_putc(out, '[');
    zr_str_u64(out, edge);
    if (count > 1) {
        zr_str_putc(out, ',');
        zr_str_u64(out, count);
        zr_str_putc(out, ']');
    }
}

/* Appends the edges, and after them one more of this length unless it is 0. */
static void put_edges(struct zr_str *out, const struct edges *e, uint64_t more)
{
    if (e->step) {
        zr_str_u64(out, e->step);
        return;
    }
    zr_str_putc(out, '[');
    for (size_t i = 0; i < e->n; i++) {
        uint64_t count = e->run[i].count;

        if (i + 1 == e->n && e->run[i].edge == more) {
            count++;
            more = 0;
        }
        if (i > 0)
            zr_str_putc(out, ',');
        put_run(out, e->run[i].edge, count);
    }
    if (more > 0) {
        zr_str_putc(out, ',');
        zr_str_u64(out, more);
    }
    zr_str_putc(out, ']');
}

static zarr_status rectilinear_resize(const void *self, const uint64_t *shape, char *text,
                                      size_t cap, size_t *text_bytes, zarr_error *err)
{
    const struct rectilinear *r = self;
    struct zr_str s;
    zarr_status st;

    zr_str_init(&s, NULL);
    zr_str_puts(&s, "{\"kind\":\"inline\",\"chunk_shapes\":[");
    for (int32_t d = 0; d < r->ndim; d++) {
        const struct edges *e = &r->dim[d];

        if (d > 0)
            zr_str_putc(&s, ',');
        put_edges(&s, e, shape && shape[d] > e->sum ? shape[d] - e->sum : 0);
    }
    zr_str_puts(&s, "]}");
    st = zr_config_give(&s, text, cap, text_bytes, err);
    zr_str_deinit(&s);
    return st;
}

static zarr_status rectilinear_canonical(const void *self, char *text, size_t cap,
                                         size_t *text_bytes, zarr_error *err)
{
    return rectilinear_resize(self, NULL, text, cap, text_bytes, err);
}

const zarr_grid_vtable zr_grid_rectilinear = {
    .struct_size = sizeof(zarr_grid_vtable),
    .name = "rectilinear",
    .parse = rectilinear_parse,
    .canonical = rectilinear_canonical,
    .n_chunks = rectilinear_n_chunks,
    .locate = rectilinear_locate,
    .extent = rectilinear_extent,
    .free = rectilinear_free,
    .n_equal = rectilinear_n_equal,
    .resize = rectilinear_resize,
};
