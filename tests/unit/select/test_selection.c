/*
 * unit/select/test_selection.c - constructors of selections: accepted and refused
 * arguments. Tables of text for the parser, and of wrong arguments with their messages.
 * test_model.c checks that selections contain the right elements.
 */
#include "unit/select/select_test.h"

#include <string.h>

/* ---- parse ---------------------------------------------------------------- */

/* Text for an array of shape (10, 20, 30), and the shape and first element of Python's
 * x[text]. */
struct parse_case {
    const char *text;
    int32_t ndim;
    uint64_t shape[3];
    /* Array coordinates of result element 0; not set if the result is empty. */
    uint64_t first[3];
};

static const struct parse_case good[] = {
    {"", 3, {10, 20, 30}, {0, 0, 0}},
    {"  ", 3, {10, 20, 30}, {0, 0, 0}},
    {"...", 3, {10, 20, 30}, {0, 0, 0}},
    {"[...]", 3, {10, 20, 30}, {0, 0, 0}},
    {":", 3, {10, 20, 30}, {0, 0, 0}},
    {"::", 3, {10, 20, 30}, {0, 0, 0}},
    {"[:, :]", 3, {10, 20, 30}, {0, 0, 0}},
    {"3", 2, {20, 30}, {3, 0, 0}},
    {"-1", 2, {20, 30}, {9, 0, 0}},
    {"+3,", 2, {20, 30}, {3, 0, 0}},
    {"1,2,3", 0, {0}, {1, 2, 3}},
    {"1,2,3,...", 0, {0}, {1, 2, 3}},
    {"..., 5", 2, {10, 20}, {0, 0, 5}},
    {"1,...,5", 1, {20}, {1, 0, 5}},
    {"[1,...,5]", 1, {20}, {1, 0, 5}},
    {"2:5", 3, {3, 20, 30}, {2, 0, 0}},
    {"2:5, 3:4 , ::2", 3, {3, 1, 15}, {2, 3, 0}},
    {"::-1", 3, {10, 20, 30}, {9, 0, 0}},
    {"5::-2", 3, {3, 20, 30}, {5, 0, 0}},
    {":5:-2", 3, {2, 20, 30}, {9, 0, 0}},
    {"-3:", 3, {3, 20, 30}, {7, 0, 0}},
    {":-3", 3, {7, 20, 30}, {0, 0, 0}},
    {"8:2", 3, {0, 20, 30}, {0}},
    {"-100:100", 3, {10, 20, 30}, {0, 0, 0}},
    {"100:-100:-1", 3, {10, 20, 30}, {9, 0, 0}},
    {"0:99999999999999999999999", 3, {10, 20, 30}, {0, 0, 0}},
    {"-99999999999999999999999::99999999999999999999", 3, {1, 20, 30}, {0, 0, 0}},
    {"9::-9223372036854775808", 3, {1, 20, 30}, {9, 0, 0}},
    {"[3,5,7]", 3, {3, 20, 30}, {3, 0, 0}},
    {"[3, 5, 7,]", 3, {3, 20, 30}, {3, 0, 0}},
    {"[[3,5,7]]", 3, {3, 20, 30}, {3, 0, 0}},
    {"[-1]", 3, {1, 20, 30}, {9, 0, 0}},
    {"[[-1], 2]", 2, {1, 30}, {9, 2, 0}},
    {"[]", 3, {0, 20, 30}, {0}},
    {"0,[]", 2, {0, 30}, {0}},
    {"[1,2],[3,3,2],[4]", 3, {2, 3, 1}, {1, 3, 4}},
    {"[1,2],...,[4]", 3, {2, 20, 1}, {1, 0, 4}},
    {"\t:,\n0\r", 2, {10, 30}, {0, 0, 0}},
};

/* Array coordinates of result element 0, from a projection on a single chunk. */
static void first_element(const zarr_selection *s, const uint64_t *shape, uint64_t *first)
{
    struct zr_projector *p = NULL;
    struct zr_projection q;
    struct zr_grid grid;

    assert_int_equal(zr_grid_init_regular(&grid, 3, shape, shape, "chunk_shape", NULL),
                     ZARR_OK);
    assert_int_equal(zr_project_open(&p, NULL, &grid, s, NULL), ZARR_OK);
    assert_true(zr_project_next(p, &q));
    for (int32_t d = 0; d < 3; d++) {
        const struct zr_piece *piece = &q.dim[d];
        for (uint64_t i = 0; i < piece->n; i++) {
            uint64_t r = piece->r_list ? piece->r_list[i]
                                       : piece->r0 + i * (uint64_t)piece->r_step;
            if (r == 0)
                first[d] = piece->c_list ? piece->c_list[i]
                                         : piece->c0 + i * (uint64_t)piece->c_step;
        }
    }
    zr_project_free(p);
}

static void test_parse_as_python_does(void **state)
{
    const uint64_t shape[] = {10, 20, 30};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(good); i++) {
        uint64_t first[3] = {99, 99, 99};
        zarr_selection *s = NULL;
        zarr_error err = {0};
        if (zarr_selection_parse(&s, 3, shape, good[i].text, &err) != ZARR_OK)
            fail_msg("%s", err.message);
        assert_int_equal(zarr_selection_ndim(s), good[i].ndim);
        assert_memory_equal(zarr_selection_shape(s), good[i].shape,
                            (size_t)good[i].ndim * sizeof(uint64_t));
        if (zarr_selection_n_items(s) > 0) {
            first_element(s, shape, first);
            assert_memory_equal(first, good[i].first, sizeof first);
        }
        zarr_selection_free(s);
    }
}

struct parse_error {
    const char *text, *message;
};

static void test_parse_errors(void **state)
{
    static const struct parse_error bad[] = {
        {"1,2,3", "selection \"1,2,3\": too many dimensions, the array has 2"},
        {"...,...", "selection \"...,...\": more than one \"...\""},
        {"10", "selection \"10\": dimension 0: index 10 is out of bounds for length 10"},
        {"0,-21",
         "selection \"0,-21\": dimension 1: index -21 is out of bounds for length 20"},
        {"0,[3,20]",
         "selection \"0,[3,20]\": dimension 1: index 20 is out of bounds for length 20"},
        {"::0", "selection \"::0\": dimension 0: \"::0\" has step 0"},
        {"1:2:3:4",
         "selection \"1:2:3:4\": dimension 0: \"1:2:3:4\" has too many colons"},
        {"0, 1:b", "selection \"0, 1:b\": dimension 1: \"1:b\" is not a slice"},
        {"x",
         "selection \"x\": dimension 0: \"x\" is not an index, slice, list or \"...\""},
        {"1.5", "selection \"1.5\": dimension 0: \"1.5\" is not an index, slice, list or "
                "\"...\""},
        {"- 1", "selection \"- 1\": dimension 0: \"- 1\" is not an index, slice, list or "
                "\"...\""},
        {",",
         "selection \",\": dimension 0: \"\" is not an index, slice, list or \"...\""},
        {"1,,",
         "selection \"1,,\": dimension 1: \"\" is not an index, slice, list or \"...\""},
        {"[1,,2]",
         "selection \"[1,,2]\": dimension 0: \"1,,2\" is not a list of indexes"},
        {"[1:2],0",
         "selection \"[1:2],0\": dimension 0: \"1:2\" is not a list of indexes"},
        {"[1,[2]],0",
         "selection \"[1,[2]],0\": dimension 0: \"1,[2]\" is not a list of indexes"},
        {"[1,2", "selection \"[1,2\": dimension 0: \"[1,2\" is not an index, slice, list "
                 "or \"...\""},
        {"1]",
         "selection \"1]\": dimension 0: \"1]\" is not an index, slice, list or \"...\""},
        {"]",
         "selection \"]\": dimension 0: \"]\" is not an index, slice, list or \"...\""},
        {"[",
         "selection \"[\": dimension 0: \"[\" is not an index, slice, list or \"...\""},
        {"-",
         "selection \"-\": dimension 0: \"-\" is not an index, slice, list or \"...\""},
        {"....", "selection \"....\": dimension 0: \"....\" is not an index, slice, list "
                 "or \"...\""},
    };
    const uint64_t shape[] = {10, 20};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        zarr_selection *s = (zarr_selection *)&bad;
        zarr_error err = {0};
        assert_int_equal(zarr_selection_parse(&s, 2, shape, bad[i].text, &err),
                         ZARR_ERR_INVALID);
        assert_string_equal(err.message, bad[i].message);
        assert_null(s);
        assert_int_equal(zarr_selection_parse(&s, 2, shape, bad[i].text, NULL),
                         ZARR_ERR_INVALID);
    }
}

/* Any text gives a selection or INVALID, and no other status. */
static void test_parse_of_noise(void **state)
{
    static const char letters[] = "0123456789::,,[[]]..-+ x";
    const uint64_t shape[] = {5, 0, 7, 9};
    uint64_t seed = test_number("ZR_SEED", 99), n = test_number("ZR_CASES", 50000);
    struct rng r = {seed};

    (void)state;
    for (uint64_t i = 0; i < n; i++) {
        char text[24] = "";
        uint64_t length = rng_below(&r, sizeof text);
        zarr_selection *s = NULL;
        zarr_status st;
        for (uint64_t k = 0; k < length; k++)
            text[k] = letters[rng_below(&r, sizeof letters - 1)];
        st = zarr_selection_parse(&s, (int32_t)rng_below(&r, 5), shape, text, NULL);
        assert_true(st == ZARR_OK || st == ZARR_ERR_INVALID);
        assert_int_equal(st == ZARR_OK, s != NULL);
        zarr_selection_free(s);
    }
}

/* ---- wrong arguments ------------------------------------------------------ */

static void check_refused(zarr_status st, zarr_selection *s, const zarr_error *err,
                          const char *message)
{
    assert_int_equal(st, ZARR_ERR_INVALID);
    assert_null(s);
    assert_string_equal(err->message, message);
}

struct dim_error {
    zarr_dim_selection dim;
    const char *message;
};

static void test_dim_errors(void **state)
{
    static const int64_t list[] = {1, -11};
    static const uint8_t mask[3] = {1};
    static const struct dim_error bad[] = {
        {{.kind = 5}, "dimension 1: no such kind of selection"},
        {{.kind = ZARR_DIM_ALL, .reserved = 1}, "dimension 1: no such kind of selection"},
        {{.kind = ZARR_DIM_INDEX, .start = 10},
         "dimension 1: index 10 is out of bounds for length 10"},
        {{.kind = ZARR_DIM_INDEX, .start = INT64_MIN},
         "dimension 1: index -9223372036854775808 is out of bounds for length 10"},
        {{.kind = ZARR_DIM_LIST, .list = list, .n_list = 2},
         "dimension 1: index -11 is out of bounds for length 10"},
        {{.kind = ZARR_DIM_LIST, .n_list = 2}, "dimension 1: no indexes were given"},
        {{.kind = ZARR_DIM_MASK, .mask = mask, .n_list = 3},
         "dimension 1: mask has 3 bytes for length 10"},
        {{.kind = ZARR_DIM_MASK, .n_list = 10}, "dimension 1: no indexes were given"},
    };
    const uint64_t shape[] = {10, 10};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        zarr_dim_selection dims[2] = {{.kind = ZARR_DIM_ALL}, bad[i].dim};
        zarr_selection *s = NULL;
        zarr_error err = {0};
        zarr_status st = zarr_selection_dims(&s, 2, shape, 2, dims, &err);
        check_refused(st, s, &err, bad[i].message);
    }
}

static void test_shape_errors(void **state)
{
    const uint64_t shape[] = {10, (uint64_t)1 << 63};
    zarr_dim_selection dims[3] = {{0}};
    zarr_selection *s = NULL;
    zarr_error err = {0};

    (void)state;
    check_refused(zarr_selection_dims(&s, 2, shape, 0, NULL, &err), s, &err,
                  "dimension 1: length 9223372036854775808, must be below 2^63");
    check_refused(zarr_selection_dims(&s, 65, shape, 0, NULL, &err), s, &err,
                  "rank 65, must be 0 to 64");
    check_refused(zarr_selection_dims(&s, 1, NULL, 0, NULL, &err), s, &err,
                  "no shape was given");
    check_refused(zarr_selection_dims(&s, 1, shape, 2, dims, &err), s, &err,
                  "selection of 2 dimensions, the array has 1");
    check_refused(zarr_selection_dims(&s, 1, shape, -1, dims, &err), s, &err,
                  "selection of -1 dimensions, the array has 1");
    check_refused(zarr_selection_dims(&s, 1, shape, 1, NULL, &err), s, &err,
                  "no dimensions were given");
}

static void test_box_errors(void **state)
{
    const uint64_t shape[] = {10, 10}, start[] = {2, 5}, count[] = {8, 6};
    const uint64_t far[] = {2, 11}, most[] = {UINT64_MAX, 0};
    zarr_selection *s = NULL;
    zarr_error err = {0};

    (void)state;
    check_refused(zarr_selection_box(&s, 2, shape, start, count, &err), s, &err,
                  "dimension 1: box of 6 from 5 is out of bounds for length 10");
    check_refused(
        zarr_selection_box(&s, 2, shape, start, most, &err), s, &err,
        "dimension 0: box of 18446744073709551615 from 2 is out of bounds for length 10");
    check_refused(zarr_selection_box(&s, 2, shape, far, start, &err), s, &err,
                  "dimension 1: box of 5 from 11 is out of bounds for length 10");
    check_refused(zarr_selection_box(&s, 2, shape, start, NULL, &err), s, &err,
                  "a box needs start and count");
}

static void test_points_errors(void **state)
{
    const uint64_t shape[] = {10, 20}, result[] = {2, 2},
                   endless[] = {INT64_MAX, INT64_MAX};
    const uint64_t zero[] = {INT64_MAX, 0};
    const int64_t coords[] = {0, 0, 9, 19, -10, -21};
    zarr_selection *s = NULL;
    zarr_error err = {0};

    (void)state;
    check_refused(zarr_selection_points(&s, 2, shape, 3, coords, 0, NULL, &err), s, &err,
                  "point 2: dimension 1: index -21 is out of bounds for length 20");
    check_refused(zarr_selection_points(&s, 2, shape, 2, coords, 2, result, &err), s,
                  &err, "result shape has not the 2 elements of the points");
    check_refused(zarr_selection_points(&s, 2, shape, 2, coords, 2, endless, &err), s,
                  &err, "result shape has not the 2 elements of the points");
    check_refused(zarr_selection_points(&s, 2, shape, 2, NULL, 0, NULL, &err), s, &err,
                  "no coordinates were given");
    check_refused(zarr_selection_points(&s, 2, shape, 2, coords, 65, result, &err), s,
                  &err, "rank 65, must be 0 to 64");
    check_refused(zarr_selection_mask(&s, 2, shape, NULL, &err), s, &err,
                  "the mask is missing, or cannot be");
    check_refused(zarr_selection_mask(&s, 2, endless, (const uint8_t *)coords, &err), s,
                  &err, "the mask is missing, or cannot be");
    assert_int_equal(
        zarr_selection_points(&s, 2, shape, INT64_MAX, coords, 0, NULL, &err),
        ZARR_ERR_NO_MEMORY);
    assert_int_equal(zarr_selection_points(&s, 2, shape, 0, NULL, 2, zero, &err),
                     ZARR_OK);
    assert_int_equal(zarr_selection_n_items(s), 0);
    zarr_selection_free(s);
}

static void test_blocks_errors(void **state)
{
    const uint64_t shape[] = {10}, edge[] = {3}, none[] = {0};
    const int64_t list[] = {1};
    zarr_dim_selection dim = {.kind = ZARR_DIM_LIST, .list = list, .n_list = 1};
    zarr_selection *s = NULL;
    zarr_error err = {0};

    (void)state;
    check_refused(grid_blocks(&s, 1, shape, edge, 1, &dim, &err), s, &err,
                  "dimension 0: blocks are selected by index or by slice of step 1");
    dim = (zarr_dim_selection){.kind = ZARR_DIM_SLICE, .stop = 4, .step = 2};
    check_refused(grid_blocks(&s, 1, shape, edge, 1, &dim, &err), s, &err,
                  "dimension 0: blocks are selected by index or by slice of step 1");
    dim = (zarr_dim_selection){.kind = ZARR_DIM_INDEX, .start = 4};
    check_refused(grid_blocks(&s, 1, shape, edge, 1, &dim, &err), s, &err,
                  "dimension 0: index 4 is out of bounds for length 4");
    check_refused(grid_blocks(&s, 1, shape, none, 1, &dim, &err), s, &err,
                  "chunk_shape[0] is 0, must be 1 to 2^63 - 1");
    check_refused(grid_blocks(&s, 1, shape, edge, 2, &dim, &err), s, &err,
                  "selection of 2 dimensions, the array has 1");
}

static void test_compose_errors(void **state)
{
    const uint64_t shape[] = {10, 20}, other[] = {10, 21};
    zarr_selection *a = NULL, *b = NULL, *s = NULL;
    struct zr_projector *p = NULL;
    struct zr_grid grid;
    zarr_error err = {0};

    (void)state;
    assert_int_equal(zarr_selection_dims(&a, 2, shape, 0, NULL, NULL), ZARR_OK);
    assert_int_equal(zarr_selection_dims(&b, 2, other, 0, NULL, NULL), ZARR_OK);
    check_refused(
        zarr_selection_compose(&s, a, b, &err), s, &err,
        "inner selection was made for another shape than the outer one's result");
    assert_int_equal(zr_grid_init_regular(&grid, 2, other, shape, "chunk_shape", NULL),
                     ZARR_OK);
    assert_int_equal(zr_project_open(&p, NULL, &grid, a, &err), ZARR_ERR_INVALID);
    assert_null(p);
    assert_string_equal(err.message, "selection was made for an array of other shape");
    zarr_selection_free(a);
    zarr_selection_free(b);
    zarr_selection_free(NULL);
}

static void test_inner_errors(void **state)
{
    const uint64_t shape[] = {10, 20}, zero[] = {1, 0};
    const uint64_t large[] = {1, (uint64_t)1 << 63}, one[] = {1, 1};
    const uint8_t twice[] = {1, 1}, beyond[] = {0, 2};
    zarr_selection *a = NULL;
    struct zr_projector *p = NULL, *in = NULL;
    struct zr_projection q, flat;
    struct zr_grid grid;
    zarr_error err = {0};

    (void)state;
    assert_int_equal(zarr_selection_dims(&a, 2, shape, 0, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_grid_init_regular(&grid, 2, shape, shape, "chunk_shape", NULL),
                     ZARR_OK);
    assert_int_equal(zr_project_open(&p, NULL, &grid, a, NULL), ZARR_OK);
    assert_true(zr_project_next(p, &q));
    assert_int_equal(zr_project_open_inner(&in, NULL, &q, zero, NULL, NULL, &err),
                     ZARR_ERR_INVALID);
    assert_string_equal(err.message, "dimension 1: chunk edge is 0");
    assert_int_equal(zr_project_open_inner(&in, NULL, &q, large, NULL, NULL, &err),
                     ZARR_ERR_INVALID);
    assert_int_equal(zr_project_open_inner(&in, NULL, &q, one, twice, NULL, &err),
                     ZARR_ERR_INVALID);
    assert_string_equal(err.message, "order is not a permutation of 2 dimensions");
    assert_int_equal(zr_project_open_inner(&in, NULL, &q, one, beyond, NULL, &err),
                     ZARR_ERR_INVALID);
    assert_null(in);
    assert_int_equal(zr_project_reopen_inner(p, &q, NULL, &err), ZARR_ERR_INVALID);
    assert_int_equal(zr_project_open_inner(&in, NULL, &q, one, NULL, NULL, NULL),
                     ZARR_OK);
    flat = q;
    flat.ndim = 1;
    assert_int_equal(zr_project_reopen_inner(in, &flat, NULL, &err), ZARR_ERR_INVALID);
    assert_string_equal(err.message, "chunks of rank 2 cannot cut a shard of rank 1");
    assert_int_equal(zr_project_count(in), 0);
    assert_false(zr_project_next(in, &flat));
    assert_int_equal(zr_project_reopen_inner(in, &q, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_project_count(in), 200);
    zr_project_free(in);
    zr_project_free(p);
    zarr_selection_free(a);
}

/* ---- answers -------------------------------------------------------------- */

/* Lists and masks with even steps become slices, and slices of slices are slices. */
static void test_what_stays_arithmetic(void **state)
{
    static const char *const text[][3] = {
        {"[7,5,3,1]", "::2", "arithmetic"}, {"[1,2,4]", ":", "list"},
        {"[1,2,4]", ":2", "arithmetic"},    {"::-3", "::-2", "arithmetic"},
        {"2:9", "[0,3,1]", "list"},         {"[3,3]", ":", "list"},
    };
    const uint64_t shape[] = {10};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(text); i++) {
        zarr_selection *a = NULL, *b = NULL, *s = NULL;
        struct zr_projector *p = NULL;
        struct zr_projection q;
        struct zr_grid grid;
        assert_int_equal(zarr_selection_parse(&a, 1, shape, text[i][0], NULL), ZARR_OK);
        assert_int_equal(
            zarr_selection_parse(&b, 1, zarr_selection_shape(a), text[i][1], NULL),
            ZARR_OK);
        assert_int_equal(zarr_selection_compose(&s, a, b, NULL), ZARR_OK);
        assert_int_equal(
            zr_grid_init_regular(&grid, 1, shape, shape, "chunk_shape", NULL), ZARR_OK);
        assert_int_equal(zr_project_open(&p, NULL, &grid, s, NULL), ZARR_OK);
        assert_true(zr_project_next(p, &q));
        assert_int_equal(q.arithmetic, zr_streq(text[i][2], "arithmetic"));
        zr_project_free(p);
        zarr_selection_free(a);
        zarr_selection_free(b);
        zarr_selection_free(s);
    }
}

struct box_case {
    const char *text;
    bool box;
};

static void test_boxes(void **state)
{
    static const struct box_case cases[] = {
        {"", true},       {"1:3,4:9", true},   {"[2,3,4],5", true}, {"::2", false},
        {"::-1", false},  {"9::5", true},      {"[1,3,2]", false},  {"[1,3,1]", false},
        {"[2,2]", false}, {"[2,2],[]", false}, {"3:3", true},
    };
    const uint64_t shape[] = {10, 10};
    uint64_t start[2], count[2];

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        zarr_selection *s = NULL;
        assert_int_equal(zarr_selection_parse(&s, 2, shape, cases[i].text, NULL),
                         ZARR_OK);
        assert_int_equal(zr_selection_is_box(s, start, count), cases[i].box);
        assert_true(zr_selection_fits(s, 2, shape));
        assert_false(zr_selection_fits(s, 1, shape));
        zarr_selection_free(s);
    }
}

static void test_blocks_of_several_edges(void **state)
{
    const uint64_t shape[] = {9, 5};
    const zarr_dim_selection dims[] = {
        {.kind = ZARR_DIM_SLICE, .start = 1, .stop = ZARR_SLICE_DEFAULT},
        {.kind = ZARR_DIM_INDEX, .start = -1}};
    uint64_t start[2], count[2];
    zarr_selection *s = NULL;
    struct zr_grid_registry registry;
    struct zr_grid g;

    (void)state;
    registry_make(&registry);
    assert_int_equal(
        grid_make(&g, &registry, 2, shape, "rectilinear",
                  "{\"kind\":\"inline\",\"chunk_shapes\":[[2,3,40],[1,[2,2]]]}", NULL),
        ZARR_OK);
    assert_int_equal(zr_select_blocks(&s, &g, 2, dims, NULL), ZARR_OK);
    assert_int_equal(zarr_selection_ndim(s), 2);
    assert_true(zr_selection_is_box(s, start, count));
    assert_int_equal(start[0], 2);
    assert_int_equal(count[0], 7);
    assert_int_equal(start[1], 3);
    assert_int_equal(count[1], 2);
    zarr_selection_free(s);
    zr_grid_deinit(&g);
    zr_grid_registry_deinit(&registry);
}

/* Rank 0: one chunk with one element, which points may select any number of times. */
static void test_rank_0(void **state)
{
    const uint8_t yes = 1;
    zarr_selection *s = NULL;
    struct zr_projector *p = NULL;
    struct zr_projection q;
    struct zr_grid grid;

    (void)state;
    assert_int_equal(zr_grid_init_regular(&grid, 0, NULL, NULL, "chunk_shape", NULL),
                     ZARR_OK);
    assert_int_equal(zarr_selection_dims(&s, 0, NULL, 0, NULL, NULL), ZARR_OK);
    assert_int_equal(zarr_selection_ndim(s), 0);
    assert_int_equal(zarr_selection_n_items(s), 1);
    assert_int_equal(zr_project_open(&p, NULL, &grid, s, NULL), ZARR_OK);
    assert_int_equal(zr_project_count(p), 1);
    assert_true(zr_project_next(p, &q));
    assert_true(q.whole && q.arithmetic && q.n_items == 1 && q.ndim == 0);
    assert_false(zr_project_next(p, &q));
    zr_project_free(p);
    zarr_selection_free(s);
    assert_int_equal(zarr_selection_mask(&s, 0, NULL, &yes, NULL), ZARR_OK);
    assert_int_equal(zr_project_open(&p, NULL, &grid, s, NULL), ZARR_OK);
    assert_true(zr_project_next(p, &q));
    assert_true(q.whole && q.n_points == 1 && q.r_points[0] == 0);
    zr_project_free(p);
    zarr_selection_free(s);
    assert_int_equal(zarr_selection_points(&s, 0, NULL, 2, NULL, 0, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_project_open(&p, NULL, &grid, s, NULL), ZARR_OK);
    assert_true(zr_project_next(p, &q));
    assert_true(!q.whole && q.n_points == 2 && q.r_points[1] == 1);
    zr_project_free(p);
    zarr_selection_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_as_python_does),
        cmocka_unit_test(test_parse_errors),
        cmocka_unit_test(test_parse_of_noise),
        cmocka_unit_test(test_dim_errors),
        cmocka_unit_test(test_shape_errors),
        cmocka_unit_test(test_box_errors),
        cmocka_unit_test(test_points_errors),
        cmocka_unit_test(test_blocks_errors),
        cmocka_unit_test(test_compose_errors),
        cmocka_unit_test(test_inner_errors),
        cmocka_unit_test(test_what_stays_arithmetic),
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_blocks_of_several_edges),
        cmocka_unit_test(test_rank_0),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
