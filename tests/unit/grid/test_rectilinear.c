/*
 * unit/grid/test_rectilinear.c - grids of several edges: the examples of the
 * specification, random edge lists against the list written out, counts and
 * lengths far beyond memory, the text both ways, other shapes, and what is
 * refused. The bounded grid likewise, and the tests' own grid, which has no
 * runs, for what works without them.
 *
 * A failing case prints its seed: ZR_SEED=<seed> ZR_CASES=1 runs it alone.
 */
#include "unit/grid/grid_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct zr_grid_registry registry;
static uint64_t running;

static int setup(void **state)
{
    (void)state;
    registry_make(&registry);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    zr_grid_registry_deinit(&registry);
    return 0;
}

static int tell_seed(void **state)
{
    (void)state;
    if (running)
        printf("failed: ZR_SEED=%" PRIu64 " ZR_CASES=1\n", running);
    return 0;
}

static void make(struct zr_grid *g, int32_t ndim, const uint64_t *shape, const char *name,
                 const char *config)
{
    zarr_error err = {0};

    if (grid_make(g, &registry, ndim, shape, name, config, &err) != ZARR_OK)
        fail_msg("%s", err.message);
}

static void check_canonical(const struct zr_grid *g, const char *want)
{
    struct zr_str text;

    zr_str_init(&text, NULL);
    assert_int_equal(zr_grid_canonical(g, &text, NULL), ZARR_OK);
    assert_string_equal(zr_str_text(&text), want);
    zr_str_deinit(&text);
}

/* Checks every chunk, coordinate and run of a dimension against the list of its
 * edges. */
static void check_dim(const struct zr_grid *g, int32_t d, const uint64_t *edge, size_t n)
{
    uint64_t at = 0;
    size_t used = 0;

    for (size_t i = 0; i < n && at < g->shape[d]; i++, used++) {
        uint64_t origin = 0, size = 0, end = at + edge[i];

        zr_grid_extent(g, d, i, &origin, &size);
        assert_int_equal(origin, at);
        assert_int_equal(size, edge[i]);
        for (uint64_t c = at; c < ZR_MIN(end, g->shape[d]); c++)
            assert_int_equal(zr_grid_locate(g, d, c), i);
        at = end;
    }
    assert_int_equal(zr_grid_n_chunks(g, d), used);
    for (size_t i = 0; i < used; i++) {
        uint64_t run = zr_grid_n_equal(g, d, i);

        assert_true(run >= 1 && i + run <= used);
        for (uint64_t k = 0; k < run; k++)
            assert_int_equal(edge[i + k], edge[i]);
        if (i + run < used && (g->regular || g->vt->n_equal))
            assert_int_not_equal(edge[i + run], edge[i]);
    }
}

static void test_examples_of_the_specification(void **state)
{
    const uint64_t shape[] = {20, 7, 18, 9, 19, 6, 6};
    static const uint64_t edges[][9] = {{5, 5, 5, 5},    {2, 3, 2}, {6, 6, 6},
                                        {2, 2, 2, 2, 1}, {8, 8, 3}, {1, 2, 3},
                                        {1, 1, 1, 3}};
    static const size_t n[] = {4, 3, 3, 5, 3, 3, 4};
    uint64_t largest[7];
    struct zr_grid g;

    (void)state;
    make(&g, 7, shape, "rectilinear",
         "{\"kind\":\"inline\",\"chunk_shapes\":[5,[2,3,2],[[6,3]],[[2,4],1],[8,8,3],"
         "[1,[2,1],3],[[1,3],3]]}");
    assert_false(g.regular);
    assert_string_equal(zr_grid_name(&g), "rectilinear");
    for (int32_t d = 0; d < 7; d++)
        check_dim(&g, d, edges[d], n[d]);
    zr_grid_largest(&g, largest);
    assert_int_equal(largest[0], 5);
    assert_int_equal(largest[1], 3);
    assert_int_equal(largest[4], 8);
    assert_int_equal(largest[6], 3);
    check_canonical(&g, "{\"kind\":\"inline\",\"chunk_shapes\":[5,[2,3,2],[[6,3]],"
                        "[[2,4],1],[[8,2],3],[1,2,3],[[1,3],3]]}");
    zr_grid_deinit(&g);
}

/* If all chunks have one shape, the grid is as fast as a regular one. Its name and text
 * are kept. */
static void test_one_shape_for_all(void **state)
{
    static const struct {
        uint64_t shape;
        const char *edges;
        bool regular;
        uint64_t n;
    } rows[] = {
        {20, "7", true, 3},        {20, "[[7,3]]", true, 3}, {20, "[7,7,7,9]", true, 3},
        {20, "[7,7,6]", false, 3}, {6, "[7,6]", true, 1},    {0, "[7,6]", true, 0},
        {0, "9", true, 0},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        char config[96];
        struct zr_grid g;

        (void)snprintf(config, sizeof config,
                       "{\"kind\":\"inline\",\"chunk_shapes\":[%s]}", rows[i].edges);
        make(&g, 1, &rows[i].shape, "rectilinear", config);
        assert_int_equal(g.regular, rows[i].regular);
        assert_string_equal(zr_grid_name(&g), "rectilinear");
        assert_int_equal(zr_grid_n_chunks(&g, 0), rows[i].n);
        zr_grid_deinit(&g);
    }
}

static void test_rank_0(void **state)
{
    struct zr_grid g;

    (void)state;
    make(&g, 0, NULL, "rectilinear", "{\"kind\":\"inline\",\"chunk_shapes\":[]}");
    assert_true(g.regular);
    assert_int_equal(zr_grid_n_chunks_all(&g), 1);
    check_canonical(&g, "{\"kind\":\"inline\",\"chunk_shapes\":[]}");
    zr_grid_deinit(&g);
}

/* ---- random lists ----------------------------------------------------------- */

enum {
    MAX_EDGES = 60
};

static void put_item(struct zr_str *text, struct rng *r, uint64_t edge, uint64_t count)
{
    zr_str_puts(text, text->ptr[text->bytes - 1] == '[' ? "" : ",");
    if (count > 1 || rng_chance(r, 30))
        zr_str_printf(text, "[%" PRIu64 ",%" PRIu64 "]", edge, count);
    else
        zr_str_u64(text, edge);
}

/* Random groups of equal edges. Neighbouring groups may have the same edge. */
static size_t random_edges(struct rng *r, uint64_t *edge, struct zr_str *text)
{
    size_t n = 0, want = 1 + (size_t)rng_below(r, MAX_EDGES - 5);

    zr_str_puts(text, "{\"kind\":\"inline\",\"chunk_shapes\":[[");
    while (n < want) {
        uint64_t e = 1 + rng_below(r, rng_chance(r, 50) ? 3 : 20);
        uint64_t count = 1 + rng_below(r, rng_chance(r, 50) ? 1 : 4);

        put_item(text, r, e, count);
        while (count-- > 0)
            edge[n++] = e;
    }
    zr_str_puts(text, "]]}");
    return n;
}

static uint64_t add_edges(const uint64_t *edge, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += edge[i];
    return sum;
}

/* Parsing the text gives the same chunks, and writes the same text again. */
static void check_text(const struct zr_grid *g, const uint64_t *edge, size_t n)
{
    struct zr_str text;
    struct zr_grid again;

    zr_str_init(&text, NULL);
    assert_int_equal(zr_grid_canonical(g, &text, NULL), ZARR_OK);
    make(&again, 1, g->shape, "rectilinear", zr_str_text(&text));
    check_dim(&again, 0, edge, n);
    check_canonical(&again, zr_str_text(&text));
    zr_grid_deinit(&again);
    zr_str_deinit(&text);
}

/* A larger or smaller array: the last edge changes as in zarr-python. */
static void check_resized(const struct zr_grid *g, struct rng *r, uint64_t *edge,
                          size_t n)
{
    uint64_t sum = add_edges(edge, n), shape = rng_below(r, 2 * sum);
    struct zr_str text;
    struct zr_grid now;

    if (shape > sum)
        edge[n++] = shape - sum;
    zr_str_init(&text, NULL);
    assert_int_equal(zr_grid_write_resized(g, &shape, &text, NULL), ZARR_OK);
    make(&now, 1, &shape, "rectilinear", zr_str_text(&text));
    check_dim(&now, 0, edge, n);
    assert_int_equal(zr_grid_keeps(g, &now, NULL), ZARR_OK);
    zr_grid_deinit(&now);
    zr_str_deinit(&text);
}

static void test_random_lists(void **state)
{
    uint64_t seed = test_number("ZR_SEED", 1), cases = test_number("ZR_CASES", 2000);

    (void)state;
    for (uint64_t i = 0; i < cases; i++) {
        struct rng r = {.state = seed + i};
        uint64_t edge[MAX_EDGES + 1], shape = 0;
        struct zr_str text;
        struct zr_grid g;
        size_t n;

        running = seed + i;
        zr_str_init(&text, NULL);
        n = random_edges(&r, edge, &text);
        shape = rng_below(&r, add_edges(edge, n) + 1);
        if (rng_chance(&r, 30))
            shape = add_edges(edge, n);
        make(&g, 1, &shape, "rectilinear", zr_str_text(&text));
        check_dim(&g, 0, edge, n);
        check_text(&g, edge, n);
        check_resized(&g, &r, edge, n);
        zr_grid_deinit(&g);
        zr_str_deinit(&text);
    }
    running = 0;
}

/* ---- huge ------------------------------------------------------------------- */

static void test_counts_beyond_memory(void **state)
{
    const uint64_t shape = UINT64_C(9000000000000000000);
    uint64_t origin = 0, size = 0, largest = 0;
    struct zr_grid g;

    (void)state;
    make(&g, 1, &shape, "rectilinear",
         "{\"kind\":\"inline\",\"chunk_shapes\":[[[1,1000000000],[3,1000000000000],7,"
         "[5000000000000,1000000],[1,4000000000000000000]]]}");
    assert_true(zr_grid_n_chunks(&g, 0) > UINT64_C(3990000000000000000));
    assert_int_equal(zr_grid_locate(&g, 0, 999999999), 999999999);
    assert_int_equal(zr_grid_locate(&g, 0, 1000000002), 1000000000);
    assert_int_equal(zr_grid_locate(&g, 0, 1000000003), 1000000001);
    zr_grid_extent(&g, 0, UINT64_C(1001000000000), &origin, &size);
    assert_int_equal(origin, UINT64_C(3001000000000));
    assert_int_equal(size, 7);
    zr_grid_extent(&g, 0, UINT64_C(1001000000001) + 999999, &origin, &size);
    assert_int_equal(size, UINT64_C(5000000000000));
    assert_int_equal(zr_grid_locate(&g, 0, origin + size - 1), UINT64_C(1001001000000));
    assert_int_equal(zr_grid_locate(&g, 0, origin + size), UINT64_C(1001001000001));
    zr_grid_largest(&g, &largest); /* uses runs: walking the chunks would never end */
    assert_int_equal(largest, UINT64_C(5000000000000));
    zr_grid_deinit(&g);
}

static void test_a_million_edges(void **state)
{
    enum {
        N = 1000000
    };
    struct rng r = {.state = 5};
    uint64_t *end = calloc(N + 1, sizeof *end);
    struct zr_str text;
    struct zr_grid g;

    (void)state;
    assert_non_null(end);
    zr_str_init(&text, NULL);
    zr_str_puts(&text, "{\"kind\":\"inline\",\"chunk_shapes\":[[");
    for (size_t i = 0; i < N; i++) {
        uint64_t edge = 1 + (i * 7919) % 1000;

        zr_str_puts(&text, i ? "," : "");
        zr_str_u64(&text, edge);
        end[i + 1] = end[i] + edge;
    }
    zr_str_puts(&text, "]]}");
    make(&g, 1, &end[N], "rectilinear", zr_str_text(&text));
    assert_int_equal(zr_grid_n_chunks(&g, 0), N);
    for (size_t i = 0; i < 100000; i++) {
        uint64_t at = rng_below(&r, end[N]), chunk = zr_grid_locate(&g, 0, at);

        assert_true(end[chunk] <= at && at < end[chunk + 1]);
    }
    zr_grid_deinit(&g);
    zr_str_deinit(&text);
    free(end);
}

/* ---- bounded ------------------------------------------------------------- */

static void test_bounded(void **state)
{
    static const uint64_t first[] = {10, 10, 3}, second[] = {4, 4};
    const uint64_t shape[] = {23, 8}, whole[] = {20, 8}, less[] = {22, 8},
                   more[] = {23, 16};
    static const char config[] = "{\"chunk_shape\":[10,4]}";
    uint64_t largest[2];
    struct zr_grid g, now;
    zarr_error err = {0};

    (void)state;
    make(&g, 2, shape, "zarrs.regular_bounded", config);
    check_dim(&g, 0, first, 3);
    check_dim(&g, 1, second, 2);
    check_canonical(&g, config);
    zr_grid_largest(&g, largest);
    assert_int_equal(largest[0], 10);
    make(&now, 2, more, "zarrs.regular_bounded", config);
    assert_int_equal(zr_grid_keeps(&g, &now, NULL), ZARR_OK);
    zr_grid_deinit(&now);
    make(&now, 2, whole, "zarrs.regular_bounded", config);
    assert_int_equal(zr_grid_keeps(&g, &now, NULL), ZARR_OK);
    zr_grid_deinit(&now);
    make(&now, 2, less, "zarrs.regular_bounded", config);
    assert_int_equal(zr_grid_keeps(&g, &now, &err), ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "chunk 2 would have 2 elements instead of 3"));
    zr_grid_deinit(&now);
    zr_grid_deinit(&g);
}

/* ---- without runs -------------------------------------------------------- */

static void test_a_grid_without_runs(void **state)
{
    static const uint64_t edge[] = {2, 2, 5, 1};
    const uint64_t shape = 9;
    uint64_t largest = 0;
    struct zr_grid g;

    (void)state;
    make(&g, 1, &shape, "test.rect", "{\"edges\":[[2,2,5,1]]}");
    check_dim(&g, 0, edge, 3);
    zr_grid_largest(&g, &largest);
    assert_int_equal(largest, 5);
    zr_grid_deinit(&g);
}

/* ---- refused -------------------------------------------------------------------- */

static void test_refused(void **state)
{
    static const struct {
        const char *config;
        zarr_status st;
        const char *text;
    } bad[] = {
        {"{\"chunk_shapes\":[5]}", ZARR_ERR_INVALID, "kind is a nothing"},
        {"{\"kind\":1,\"chunk_shapes\":[5]}", ZARR_ERR_INVALID, "kind is a number"},
        {"{\"kind\":\"outline\",\"chunk_shapes\":[5]}", ZARR_ERR_UNSUPPORTED,
         "of kind \"outline\""},
        {"{\"kind\":\"inline\"}", ZARR_ERR_INVALID, "chunk_shapes is a nothing"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":5}", ZARR_ERR_INVALID, "a number"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[5,5]}", ZARR_ERR_INVALID, "2 numbers"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[5],\"x\":1}", ZARR_ERR_UNSUPPORTED,
         "unknown member \"x\""},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[0]}", ZARR_ERR_INVALID, "is 0"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[-1]}", ZARR_ERR_INVALID, "is -1"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[\"5\"]}", ZARR_ERR_INVALID, "is \"5\""},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[9223372036854775808]}", ZARR_ERR_INVALID,
         "must be an edge"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[[]]}", ZARR_ERR_INVALID, "has no edges"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[[5,0,5]]}", ZARR_ERR_INVALID, "edge 0"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[[5,4.5,5]]}", ZARR_ERR_INVALID,
         "edge 4.5"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[[5,null,5]]}", ZARR_ERR_INVALID,
         "edge null"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[[[5,0],10]]}", ZARR_ERR_INVALID,
         "has [5,0]"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[[[5,2,1]]]}", ZARR_ERR_INVALID,
         "has [5,2,1]"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[[[5]]]}", ZARR_ERR_INVALID, "has [5]"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[[[]]]}", ZARR_ERR_INVALID, "has []"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[[[[5,1],2]]]}", ZARR_ERR_INVALID,
         "edge [5,1]"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[[5,4]]}", ZARR_ERR_INVALID,
         "sum to 9, the dimension has length 10"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[[[9223372036854775807,1],1]]}",
         ZARR_ERR_INVALID, "sum to 2^63 or more"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[[[4294967296,4294967296]]]}",
         ZARR_ERR_INVALID, "sum to 2^63 or more"},
        {"{\"kind\":\"inline\",\"chunk_shapes\":[[[2,18446744073709551615]]]}",
         ZARR_ERR_INVALID, "sum to 2^63 or more"},
        {"[]", ZARR_ERR_INVALID, "must be an object"},
    };
    const uint64_t shape = 10;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        zarr_error err = {0};
        struct zr_grid g;
        void *self = NULL;

        assert_int_equal(
            grid_make(&g, &registry, 1, &shape, "rectilinear", bad[i].config, &err),
            bad[i].st);
        if (!strstr(err.message, bad[i].text))
            fail_msg("%s: %s", bad[i].config, err.message);
        zr_grid_deinit(&g);
        assert_int_equal(zr_grid_rectilinear.parse(&self, 1, &shape, bad[i].config, NULL),
                         bad[i].st);
    }
}

/* Text that old versions of zarr-python wrote and that it still reads. */
static void test_old_spellings(void **state)
{
    static const uint64_t edge[] = {1, 4, 4, 1};
    const uint64_t shape = 10;
    struct zr_grid g;

    (void)state;
    make(&g, 1, &shape, "rectilinear",
         "{\"kind\":\"inline\",\"chunk_shapes\":[[true,[4.0,2],true]]}");
    check_dim(&g, 0, edge, 4);
    check_canonical(&g, "{\"kind\":\"inline\",\"chunk_shapes\":[[1,[4,2],1]]}");
    zr_grid_deinit(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples_of_the_specification),
        cmocka_unit_test(test_one_shape_for_all),
        cmocka_unit_test(test_rank_0),
        cmocka_unit_test_teardown(test_random_lists, tell_seed),
        cmocka_unit_test(test_counts_beyond_memory),
        cmocka_unit_test(test_a_million_edges),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_a_grid_without_runs),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_old_spellings),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
