/*
 * unit/select/test_fault.c - every allocation of grid and select fails once. Selections
 * have no context and so no allocator of their own: malloc, calloc and realloc
 * are wrapped by the linker (--wrap) in this program alone. Each scenario runs
 * with its k-th allocation failing, k = 1, 2, ... until none fails any more. It
 * must say NO_MEMORY and must leave nothing behind.
 */
#include "unit/select/select_test.h"

#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void __real_free(void *p);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void __wrap_free(void *p);

static long countdown; /* 0: no allocation fails; 1: the next one does */
static bool failed;
static long n_live;

static bool fails_now(void)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    failed = true;
    return true;
}

void *__wrap_malloc(size_t bytes)
{
    void *p = fails_now() ? NULL : __real_malloc(bytes);

    n_live += p != NULL;
    return p;
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    void *p = fails_now() ? NULL : __real_calloc(n, bytes);

    n_live += p != NULL;
    return p;
}

void *__wrap_realloc(void *p, size_t bytes)
{
    void *q = fails_now() ? NULL : __real_realloc(p, bytes);

    n_live += !p && q;
    return q;
}

void __wrap_free(void *p)
{
    n_live -= p != NULL;
    __real_free(p);
}

/* ---- scenarios: no assertions; every path frees everything ----------------- */

static const uint64_t shape[] = {12, 9};
static const int64_t list[] = {11, 0, 5, 5, 2, 7};
static const int64_t coords[] = {11, 8, 0, 0, 5, 5, 5, 5, 2, 3, 7, 1};
static const uint8_t mask[12 * 9] = {1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, [100] = 1};
static const zarr_dim_selection orthogonal[] = {
    {.kind = ZARR_DIM_LIST, .list = list, .n_list = 6},
    {.kind = ZARR_DIM_MASK, .mask = mask, .n_list = 9},
};

static zarr_status make_dims(zarr_selection **s, zarr_error *err)
{
    return zarr_selection_dims(s, 2, shape, 2, orthogonal, err);
}

static zarr_status make_points(zarr_selection **s, zarr_error *err)
{
    return zarr_selection_points(s, 2, shape, 6, coords, 0, NULL, err);
}

static zarr_status make_mask(zarr_selection **s, zarr_error *err)
{
    return zarr_selection_mask(s, 2, shape, mask, err);
}

static zarr_status make_box(zarr_selection **s, zarr_error *err)
{
    const uint64_t count[] = {3, 4};

    return zarr_selection_box(s, 2, shape, count, count, err);
}

static zarr_status make_blocks(zarr_selection **s, zarr_error *err)
{
    const uint64_t edge[] = {5, 5};

    return grid_blocks(s, 2, shape, edge, 0, NULL, err);
}

static zarr_status make_parsed(zarr_selection **s, zarr_error *err)
{
    return zarr_selection_parse(s, 2, shape, "[11,0,5,5,2,7,3,4,5,6],[0,2,3,8]", err);
}

typedef zarr_status (*make_fn)(zarr_selection **s, zarr_error *err);
static const make_fn makers[] = {make_dims, make_points, make_mask,
                                 make_box,  make_blocks, make_parsed};

/* Projects a selection, then the inner chunks of each chunk with one projector that is
 * reopened. */
static zarr_status project_all(const zarr_selection *s, zarr_error *err)
{
    const uint64_t edge[] = {5, 4}, inner[] = {2, 3};
    const uint8_t order[] = {1, 0};
    struct zr_projector *p = NULL, *in = NULL;
    struct zr_projection q, qi;
    struct zr_grid grid;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_grid_init_regular(&grid, 2, shape, edge, "chunk_shape", err));
    ZR_TRY(zr_project_open(&p, NULL, &grid, s, err));
    while (zr_project_next(p, &q)) {
        if (in)
            ZR_TRY(zr_project_reopen_inner(in, &q, NULL, err));
        else
            ZR_TRY(zr_project_open_inner(&in, NULL, &q, inner, order, NULL, err));
        while (zr_project_next(in, &qi))
            ;
    }
out:
    zr_project_free(in);
    zr_project_free(p);
    return st;
}

static zarr_status scenario_select(size_t i, zarr_error *err)
{
    zarr_selection *s = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(makers[i](&s, err));
    ZR_TRY(project_all(s, err));
out:
    zarr_selection_free(s);
    return st;
}

static zarr_status scenario_compose(size_t i, zarr_error *err)
{
    const int64_t pick[] = {0, 3, 2, 2};
    zarr_dim_selection dim = {.kind = ZARR_DIM_LIST, .list = pick, .n_list = 4};
    zarr_selection *outer = NULL, *dims = NULL, *points = NULL, *s = NULL, *t = NULL;
    const int64_t at[] = {0, 1, 2, 0};
    int32_t ndim;
    zarr_status st = ZARR_OK;

    ZR_TRY(makers[i](&outer, err));
    ndim = zarr_selection_ndim(outer);
    if (zarr_selection_shape(outer)[0] < 4)
        dim.n_list = 1;
    ZR_TRY(zarr_selection_dims(&dims, ndim, zarr_selection_shape(outer), 1, &dim, err));
    ZR_TRY(zarr_selection_points(&points, ndim, zarr_selection_shape(outer), 2, at, 0,
                                 NULL, err));
    ZR_TRY(zarr_selection_compose(&s, outer, dims, err));
    ZR_TRY(zarr_selection_compose(&t, outer, points, err));
out:
    zarr_selection_free(outer);
    zarr_selection_free(dims);
    zarr_selection_free(points);
    zarr_selection_free(s);
    zarr_selection_free(t);
    return st;
}

static zarr_status use_registry(const struct zr_grid_registry *r,
                                const struct zr_json *grid, const struct zr_json *rect,
                                zarr_error *err)
{
    const uint64_t chunk[] = {1, 2};
    struct zr_grid g = {0}, h = {0};
    struct zr_key_encoding k = {0};
    struct zr_str text;
    zarr_status st = ZARR_OK;

    zr_str_init(&text, NULL);
    ZR_TRY(zr_grid_parse(&g, r, 2, shape, "regular", grid, err));
    ZR_TRY(zr_grid_parse(&h, r, 2, shape, "test.rect", rect, err));
    ZR_TRY(zr_grid_canonical(&g, &text, err));
    ZR_TRY(zr_grid_canonical(&h, &text, err));
    ZR_TRY(zr_key_encoding_parse(&k, r, "v2", NULL, err));
    ZR_TRY(zr_key_encoding_canonical(&k, &text, err));
    zr_key_encoding_key(&k, 2, chunk, &text);
    ZR_TRY(zr_str_status(&text, err));
out:
    zr_grid_deinit(&g);
    zr_grid_deinit(&h);
    zr_key_encoding_deinit(&k);
    zr_str_deinit(&text);
    return st;
}

static zarr_status parse_text(struct zr_json_doc *doc, const char *text, zarr_error *err)
{
    zarr_limits limits;

    zr_limits_default(&limits);
    return zr_json_parse(doc, text, strlen(text), &limits, err);
}

static zarr_status scenario_registry(size_t i, zarr_error *err)
{
    struct zr_grid_registry r = {0};
    struct zr_json_doc a, b;
    void *self = NULL;
    zarr_status st = ZARR_OK;

    (void)i;
    zr_json_doc_init(&a, NULL);
    zr_json_doc_init(&b, NULL);
    ZR_TRY(zr_grid_registry_init(&r, NULL, err));
    ZR_TRY(zr_grid_register(&r, &zr_grid_regular, "core", err));
    ZR_TRY(zr_grid_register(&r, &rect_grid, "core", err));
    ZR_TRY(zr_key_encoding_register(&r, &zr_key_v2, "core", err));
    ZR_TRY(parse_text(&a, "{\"chunk_shape\":[5,4]}", err));
    ZR_TRY(parse_text(&b, "{\"edges\":[[7,8],[9]]}", err));
    ZR_TRY(use_registry(&r, a.root, b.root, err));
    ZR_TRY(zr_grid_regular.parse(&self, 2, shape, "{\"chunk_shape\":[5,4]}", err));
out:
    if (self)
        zr_grid_regular.free(self);
    zr_grid_registry_deinit(&r);
    zr_json_doc_deinit(&a);
    zr_json_doc_deinit(&b);
    return st;
}

/* Irregular grids and suffixes, parsed from a JSON tree and from text, and used. */
static zarr_status scenario_irregular(size_t i, zarr_error *err)
{
    static const char rect[] =
        "{\"kind\":\"inline\",\"chunk_shapes\":[[7,[2,3],1,[1,9]],[4,5]]}";
    const uint64_t larger[] = {40, 9};
    struct zr_grid_registry r = {0};
    struct zr_grid g = {0};
    struct zr_key_encoding k = {0};
    struct zr_json_doc a, b;
    struct zr_str text;
    zarr_selection *blocks = NULL;
    void *self = NULL;
    zarr_status st = ZARR_OK;

    (void)i;
    zr_json_doc_init(&a, NULL);
    zr_json_doc_init(&b, NULL);
    zr_str_init(&text, NULL);
    ZR_TRY(zr_grid_registry_init(&r, NULL, err));
    ZR_TRY(zr_grid_register(&r, &zr_grid_rectilinear, "core", err));
    ZR_TRY(zr_key_encoding_register(&r, &zr_key_suffix, "core", err));
    ZR_TRY(parse_text(&a, rect, err));
    ZR_TRY(parse_text(&b, "{\"suffix\":\".z\",\"base_encoding\":\"v2\"}", err));
    ZR_TRY(zr_grid_parse(&g, &r, 2, shape, "rectilinear", a.root, err));
    ZR_TRY(zr_grid_canonical(&g, &text, err));
    ZR_TRY(zr_grid_write_resized(&g, larger, &text, err));
    ZR_TRY(zr_select_blocks(&blocks, &g, 0, NULL, err));
    ZR_TRY(zr_key_encoding_parse(&k, &r, "suffix", b.root, err));
    ZR_TRY(zr_key_encoding_canonical(&k, &text, err));
    ZR_TRY(zr_grid_rectilinear.parse(&self, 2, shape, rect, err));
out:
    if (self)
        zr_grid_rectilinear.free(self);
    zarr_selection_free(blocks);
    zr_key_encoding_deinit(&k);
    zr_grid_deinit(&g);
    zr_grid_registry_deinit(&r);
    zr_json_doc_deinit(&a);
    zr_json_doc_deinit(&b);
    zr_str_deinit(&text);
    return st;
}

/* ---- the loop ------------------------------------------------------------- */

typedef zarr_status (*scenario_fn)(size_t i, zarr_error *err);

static void fail_each(scenario_fn run, size_t i)
{
    for (long k = 1;; k++) {
        zarr_error err = {0};
        long before = n_live;
        zarr_status st;
        failed = false;
        countdown = k;
        st = run(i, &err);
        countdown = 0;
        assert_int_equal(n_live, before);
        if (!failed) {
            assert_int_equal(st, ZARR_OK);
            assert_true(k > 1);
            return;
        }
        assert_true(st == ZARR_ERR_NO_MEMORY || st == ZARR_OK);
        if (st != ZARR_OK)
            assert_int_equal(err.code, ZARR_ERR_NO_MEMORY);
        assert_true(k < 1000);
    }
}

static void test_selections_and_projections(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(makers); i++)
        fail_each(scenario_select, i);
}

static void test_compositions(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(makers); i++)
        fail_each(scenario_compose, i);
}

static void test_registry(void **state)
{
    (void)state;
    fail_each(scenario_registry, 0);
}

static void test_irregular_grids(void **state)
{
    (void)state;
    fail_each(scenario_irregular, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_selections_and_projections),
        cmocka_unit_test(test_compositions),
        cmocka_unit_test(test_registry),
        cmocka_unit_test(test_irregular_grids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
