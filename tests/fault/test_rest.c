/*
 * fault/test_rest.c - a delete, an overwrite, a copy or a move is killed with SIGKILL
 * before each operation of the store. Afterwards a new array, or a copy, is made
 * at the place: it succeeds with its own elements only, or is refused. Elements of the
 * deleted array never appear, and a delete makes the place free again.
 */
#include "mortal.h"

#include "../sanitizers.h"

enum {
    FILL = -1,
    OLD = 1,  /* seed of the array that is deleted */
    OTHER = 2 /* seed of the array that is copied over it; it has fewer chunks */
};

/* ---- what is made and read ------------------------------------------------------- */

static void write_some(struct world *w, const char *path, int kind, int seed, uint64_t n)
{
    zarr_error err;

    world_must(world_make(w, path, kind, &err), &err, path);
    world_must(world_write_rows(w, path, seed, 0, n, &err), &err, path);
}

/* Three copies of the old array, in groups; and another array with a few rows. */
static void fill_store(int kind)
{
    static const char *const groups[] = {"g", "h", "s"};
    struct mortal m = {.lists = true};
    struct world w;
    zarr_error err;

    mortal_empty();
    mortal_open(&w, &m);
    for (size_t i = 0; i < 3; i++) {
        const zarr_group_spec spec = {.struct_size = sizeof spec,
                                      .zarr_format = kind == 2 ? 2 : 3,
                                      .attributes = "{\"was\": 1}"};
        zarr_group *g = NULL;
        char path[8];

        world_must(zarr_group_create(&g, w.store, groups[i], &spec, NULL, &err), &err,
                   groups[i]);
        zarr_group_free(g);
        snprintf(path, sizeof path, "%s/x", groups[i]);
        write_some(&w, path, kind, i == 2 ? OTHER : OLD, i == 2 ? 3 : ROWS);
    }
    world_close(&w);
}

/* Whether the first `rows` rows are of the seed, and the others the fill value. */
static bool shows(struct world *w, const char *path, int seed, uint64_t rows)
{
    int32_t data[CELLS];
    zarr_error err;

    world_must(world_rows_io(w, path, false, 0, ROWS, data, &err), &err, path);
    for (int64_t i = 0; i < CELLS; i++)
        if (data[i] != (i < (int64_t)rows * COLS ? world_cell(seed, i) : FILL))
            return false;
    return true;
}

static bool is_array(struct world *w, const char *path)
{
    uint32_t kind = ZARR_NODE_NONE;
    int32_t format = 0;
    zarr_error err;

    return zarr_node_probe(w->store, path, &kind, &format, NULL, &err) == ZARR_OK &&
           kind == ZARR_NODE_ARRAY;
}

/* An array that exists is the old one, the other one, or a new one, but no mixture. */
static void check_array(struct world *w, const char *path, const char *what)
{
    if (!shows(w, path, OLD, ROWS) && !shows(w, path, OTHER, 3) &&
        !shows(w, path, OLD, 0))
        fail_msg("%s: /%s shows elements of another array", what, path);
}

/* ---- the calls that are killed --------------------------------------------------- */

static int kind_now;

static zarr_status rm_array(zarr_store *s, const void *arg, zarr_error *err)
{
    (void)arg;
    return zarr_node_delete(s, "g/x", err);
}

static zarr_status rm_group(zarr_store *s, const void *arg, zarr_error *err)
{
    (void)arg;
    return zarr_node_delete(s, "g", err);
}

static zarr_status overwrite_array(zarr_store *s, const void *arg, zarr_error *err)
{
    const uint64_t shape[2] = {ROWS, COLS}, chunk[2] = {2, 5};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .flags = ZARR_SPEC_OVERWRITE,
                                  .zarr_format = kind_now == 2 ? 2 : 3,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .data_type = "int32",
                                  .fill_value = "-1"};
    zarr_array *a = NULL;
    const zarr_status st = zarr_array_create(&a, s, "g/x", &spec, NULL, err);

    (void)arg;
    zarr_array_free(a);
    return st;
}

static zarr_status overwrite_group(zarr_store *s, const void *arg, zarr_error *err)
{
    const zarr_group_spec spec = {.struct_size = sizeof spec,
                                  .flags = ZARR_GROUP_OVERWRITE,
                                  .zarr_format = kind_now == 2 ? 2 : 3};
    zarr_group *g = NULL;
    const zarr_status st = zarr_group_create(&g, s, "g", &spec, NULL, err);

    (void)arg;
    zarr_group_free(g);
    return st;
}

static zarr_status copy(zarr_store *s, const char *to, uint32_t flags, zarr_error *err)
{
    const zarr_copy_options opts = {
        .struct_size = sizeof opts, .flags = flags, .max_threads = 1};

    return zarr_node_copy(s, "s", s, to, &opts, err);
}

static zarr_status cp_new(zarr_store *s, const void *arg, zarr_error *err)
{
    (void)arg;
    return copy(s, "new", 0, err);
}

static zarr_status cp_over(zarr_store *s, const void *arg, zarr_error *err)
{
    (void)arg;
    return copy(s, "g", ZARR_COPY_OVERWRITE, err);
}

static zarr_status cp_mirror(zarr_store *s, const void *arg, zarr_error *err)
{
    (void)arg;
    return copy(s, "g", ZARR_COPY_OVERWRITE | ZARR_COPY_SKIP_EQUAL, err);
}

static zarr_status mv(zarr_store *s, const void *arg, zarr_error *err)
{
    (void)arg;
    return zarr_node_move(s, "g", s, "new", NULL, err);
}

static zarr_status reencode_over(zarr_store *s, const void *arg, zarr_error *err)
{
    zarr_reencode_options opts = ZARR_REENCODE_OPTIONS_INIT;

    (void)arg;
    opts.flags = ZARR_REENCODE_OVERWRITE;
    return zarr_node_reencode(s, "s/x", s, "g/x", NULL, &opts, err);
}

struct call {
    const char *name;
    zarr_status (*run)(zarr_store *s, const void *arg, zarr_error *err);
    bool mirrors; /* changes a complete copy in place: mixtures are what it promises */
};

static const struct call calls[] = {
    {"rm array", rm_array, false},
    {"rm group", rm_group, false},
    {"create array", overwrite_array, false},
    {"create group", overwrite_group, false},
    {"cp", cp_new, false},
    {"cp over", cp_over, false},
    {"mirror", cp_mirror, true},
    {"mv", mv, false},
    {"reencode over", reencode_over, false},
};

/* ---- afterwards ------------------------------------------------------------------ */

/* Makes an array, after a delete of what is refused there. */
static void create_at(struct world *w, const char *group, const char *path,
                      const char *what)
{
    zarr_error err;
    zarr_status st = world_make(w, path, kind_now, &err);

    if (st == ZARR_ERR_EXISTS && !is_array(w, path)) {
        if (zarr_node_delete(w->store, path, &err) != ZARR_OK ||
            world_make(w, path, kind_now, &err) != ZARR_OK)
            world_must(zarr_node_delete(w->store, group, &err), &err, what);
        st = is_array(w, path) ? ZARR_OK : world_make(w, path, kind_now, &err);
        world_must(st, &err, what);
    }
    if (st == ZARR_OK && !shows(w, path, OLD, 0))
        fail_msg("%s: the new array /%s shows deleted elements", what, path);
    if (st != ZARR_OK)
        assert_int_equal(st, ZARR_ERR_EXISTS);
}

/* The copy is refused, or it is what the source is. */
static void copy_to(struct world *w, const char *group, uint32_t flags, const char *what)
{
    zarr_error err;
    char path[16];
    zarr_status st = copy(w->store, group, flags, &err);

    snprintf(path, sizeof path, "%s/x", group);
    if (st != ZARR_OK)
        assert_int_equal(st, ZARR_ERR_EXISTS);
    else if (!shows(w, path, OTHER, 3))
        fail_msg("%s: the copy /%s shows other elements than its source", what, group);
    if (is_array(w, path))
        check_array(w, path, what);
}

enum after {
    CREATE,
    COPY,
    CONTINUE,
    N_AFTER
};

static void check_after(const struct call *c, enum after after, const char *what)
{
    static const char *const groups[] = {"g", "new"};
    struct mortal m = {.lists = true};
    struct world w;
    char path[16];

    mortal_open(&w, &m);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/x", groups[i]);
        if (is_array(&w, path) && c->mirrors)
            continue;
        if (is_array(&w, path))
            check_array(&w, path, what);
        if (after == CREATE)
            create_at(&w, groups[i], path, what);
        else
            copy_to(&w, groups[i], after == COPY ? 0 : ZARR_COPY_SKIP_EQUAL, what);
    }
    world_close(&w);
}

static void test_call(void **state)
{
    static const int kinds[] = {3, 2, 4};
    const struct call *c = *state;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        bool killed = true;
        int64_t k = 1;

        kind_now = kinds[i];
        fill_store(kind_now);
        mortal_keep();
        for (; killed; k += ZR_FAIL_STEP(k))
            for (int after = 0; after < N_AFTER && killed; after++) {
                struct mortal m = {.lists = true, .left = k};
                char what[128];

                mortal_restore();
                killed = mortal_killed(c->run, NULL, &m);
                snprintf(what, sizeof what, "%s, kind %d, k %d, then %d", c->name,
                         kind_now, (int)k, after);
                check_after(c, (enum after)after, what);
            }
        assert_true(k > 4);
    }
}

/* ---- without a kill -------------------------------------------------------------- */

/* A store that cannot list cannot delete what is below a node: nothing changes. */
static void test_no_listing(void **state)
{
    struct mortal m = {.lists = false};
    struct world w;
    zarr_error err;

    (void)state;
    kind_now = 3;
    fill_store(kind_now);
    mortal_open(&w, &m);
    assert_int_equal(zarr_node_delete(w.store, "g/x", &err), ZARR_ERR_UNSUPPORTED);
    assert_int_equal(overwrite_array(w.store, NULL, &err), ZARR_ERR_UNSUPPORTED);
    assert_int_equal(overwrite_group(w.store, NULL, &err), ZARR_ERR_UNSUPPORTED);
    assert_true(shows(&w, "g/x", OLD, ROWS));
    world_close(&w);
}

/* What another program deleted in part: there is no job object. What creating costs does
 * not depend on the number of chunks. */
static void test_without_job(void **state)
{
    struct mortal m = {.lists = true};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *a = NULL, *made = NULL;
    struct world w;
    zarr_error err;
    int64_t n_new, n_rest;

    (void)state;
    kind_now = 3;
    fill_store(kind_now);
    mortal_open(&w, &m);
    m.n_ops = 0;
    world_must(world_make(&w, "g/fresh", 3, &err), &err, "fresh");
    n_new = m.n_ops;
    world_must(zarr_store_erase(w.store, "g/x/zarr.json", NULL, &err), &err, "x");
    m.n_ops = 0;
    assert_int_equal(world_make(&w, "g/x", 3, &err), ZARR_ERR_EXISTS);
    assert_non_null(strstr(err.message, "g/x/c/"));
    n_rest = m.n_ops;
    assert_true(n_rest <= n_new);
    world_must(zarr_array_open(&a, w.store, "g/fresh", NULL, &err), &err, "fresh");
    spec.like = a;
    spec.flags = ZARR_SPEC_KEEP_CHUNKS | ZARR_SPEC_OVERWRITE;
    assert_int_equal(zarr_array_create(&made, w.store, "g/x", &spec, NULL, &err),
                     ZARR_ERR_INVALID);
    spec.flags = ZARR_SPEC_KEEP_CHUNKS;
    world_must(zarr_array_create(&made, w.store, "g/x", &spec, NULL, &err), &err, "keep");
    zarr_array_free(made);
    assert_true(shows(&w, "g/x", OLD, ROWS));
    world_must(zarr_store_erase(w.store, "g/x/zarr.json", NULL, &err), &err, "x");
    spec.flags = ZARR_SPEC_OVERWRITE;
    world_must(zarr_array_create(&made, w.store, "g/x", &spec, NULL, &err), &err, "over");
    zarr_array_free(made);
    assert_true(shows(&w, "g/x", OLD, 0));
    zarr_array_free(a);
    world_close(&w);
}

int main(void)
{
    enum {
        N = sizeof calls / sizeof *calls
    };
    static struct CMUnitTest tests[N + 2];
    int rc;

    mortal_begin("rest");
    for (int i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){calls[i].name, test_call, NULL, NULL,
                                       (void *)(uintptr_t)&calls[i]};
    tests[N] = (struct CMUnitTest)cmocka_unit_test(test_no_listing);
    tests[N + 1] = (struct CMUnitTest)cmocka_unit_test(test_without_job);
    rc = _cmocka_run_group_tests("rest", tests, N + 2, NULL, NULL);
    mortal_end();
    return rc;
}
