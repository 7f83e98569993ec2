/*
 * unit/easy/test_open.c - nodes by their location, modes, the default context among
 * threads and after fork(), and members of a group.
 */
#include "easy_test.h"

#include "sanitizers.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    N_RACERS = 8,
    N_RACES = 10,
    CHILD_SECONDS = 60
};

/* ---- the default context: first, while the process has none ---------------- */

struct race {
    pthread_barrier_t start;
    const char *where;
    zarr_context *ctx[N_RACERS];
    atomic_int next;
};

static void *open_in_race(void *arg)
{
    struct race *race = arg;
    const int i = atomic_fetch_add(&race->next, 1);
    zarr_array *a = NULL;

    pthread_barrier_wait(&race->start);
    if (zarr_open_array(&a, NULL, race->where, "r", NULL) == ZARR_OK)
        race->ctx[i] = zarr_array_context(a);
    zarr_array_free(a);
    return NULL;
}

/* Returns 0 if all threads got the same context. */
static int race_for_context(const char *where)
{
    struct race race = {.where = where};
    pthread_t thread[N_RACERS];
    int wrong = 0;

    pthread_barrier_init(&race.start, NULL, N_RACERS);
    for (int i = 0; i < N_RACERS; i++)
        wrong += pthread_create(&thread[i], NULL, open_in_race, &race) != 0;
    for (int i = 0; !wrong && i < N_RACERS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < N_RACERS; i++)
        wrong += !race.ctx[i] || race.ctx[i] != race.ctx[0];
    pthread_barrier_destroy(&race.start);
    return wrong;
}

static void expect_child(pid_t pid)
{
    int status = 0;

    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("child ended with status %#x", (unsigned)status);
}

/* Each child is a process without a default context. */
static void test_races(void **state)
{
    struct world w;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    world_open(&w, WORLD_LOCAL);
    zarr_array_free(make_easy(&w, "a", ZARR_INT8, 0, NULL));
    for (int i = 0; i < N_RACES; i++) {
        const pid_t pid = fork();

        if (pid == 0) {
            alarm(CHILD_SECONDS); /* a deadlock ends with SIGALRM */
            _exit(race_for_context(place(&w, "a")));
        }
        expect_child(pid);
    }
    world_close(&w);
}

static void test_first_use(void **state)
{
    struct world w;
    zarr_context *first;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    zarr_array_free(make_easy(&w, "a", ZARR_INT8, 0, NULL));
    assert_int_equal(race_for_context(place(&w, "a")), 0);
    assert_ok(zarr_open_array(&a, NULL, place(&w, "a"), "r", &terr));
    first = zarr_array_context(a);
    zarr_array_free(a);
    assert_ok(zarr_open_array(&a, NULL, place(&w, "a"), "r", &terr));
    assert_ptr_equal(zarr_array_context(a), first); /* outlives its arrays */
    zarr_array_free(a);
    world_close(&w);
}

static int read_in_child(const char *where, zarr_array *inherited)
{
    int32_t data[1000] = {0}, again[1000] = {0};
    zarr_array *a = NULL;

    alarm(CHILD_SECONDS);
    if (zarr_open_array(&a, NULL, where, "r+", NULL) ||
        zarr_array_context(a) != zarr_array_context(inherited) ||
        zarr_array_read_box(a, NULL, NULL, NULL, data, sizeof data, NULL) ||
        zarr_array_read_box(inherited, NULL, NULL, NULL, again, sizeof again, NULL))
        return 1;
    zarr_array_free(a);
    return data[999] != 999 || memcmp(data, again, sizeof data) != 0;
}

static void test_fork(void **state)
{
    const uint64_t shape[1] = {1000};
    int32_t data[1000];
    struct world w;
    zarr_array *a;
    pid_t pid;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    world_open(&w, WORLD_LOCAL);
    for (int i = 0; i < 1000; i++)
        data[i] = i;
    assert_ok(
        zarr_create_array(&a, NULL, place(&w, "f"), "w-", ZARR_INT32, 1, shape, &terr));
    assert_ok(zarr_array_write_box(a, NULL, NULL, NULL, data, sizeof data, &terr));
    pid = fork();
    if (pid == 0)
        _exit(read_in_child(place(&w, "f"), a));
    expect_child(pid);
    zarr_array_free(a);
    world_close(&w);
}

/* ---- modes ----------------------------------------------------------------- */

static void test_open_modes(void **state)
{
    static const char *const bad[] = {"", "w", "a", "rw", "r+b", NULL};
    const int8_t one = 1;
    struct world w;
    zarr_array *a;
    zarr_group *g;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    zarr_array_free(make_easy(&w, "g/a", ZARR_INT8, 0, NULL));
    assert_ok(zarr_open_array(&a, w.ctx, place(&w, "g/a"), "r", &terr));
    assert_status(zarr_array_write_box(a, NULL, NULL, NULL, &one, 1, &terr),
                  ZARR_ERR_INVALID);
    zarr_array_free(a);
    assert_ok(zarr_open_array(&a, w.ctx, place(&w, "g/a"), "r+", &terr));
    assert_ok(zarr_array_write_box(a, NULL, NULL, NULL, &one, 1, &terr));
    zarr_array_free(a);
    assert_ok(zarr_open_group(&g, w.ctx, place(&w, "g"), "r+", &terr));
    zarr_group_free(g);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_status(zarr_open_array(&a, w.ctx, place(&w, "g/a"), bad[i], &terr),
                      ZARR_ERR_INVALID);
        assert_null(a);
        assert_says("must be \"r\" or \"r+\"");
        assert_status(zarr_open_group(&g, w.ctx, place(&w, "g"), bad[i], &terr),
                      ZARR_ERR_INVALID);
    }
    assert_status(zarr_open_array(&a, w.ctx, place(&w, "g"), "r", &terr),
                  ZARR_ERR_NOT_FOUND);
    assert_status(zarr_open_group(&g, w.ctx, place(&w, "g/a"), "r", &terr),
                  ZARR_ERR_NOT_FOUND);
    assert_status(zarr_open_array(&a, w.ctx, place(&w, "g/b"), "r+", &terr),
                  ZARR_ERR_NOT_FOUND);
    assert_status(zarr_open_array(&a, w.ctx, "/nothing/here.zarr/a", "r", &terr),
                  ZARR_ERR_NOT_FOUND);
    assert_status(zarr_open_array(&a, w.ctx, "", "r", &terr), ZARR_ERR_INVALID);
    assert_status(zarr_open_array(&a, w.ctx, NULL, "r", NULL), ZARR_ERR_INVALID);
    assert_status(zarr_open_array(&a, w.ctx, place(&w, "g/a[0]"), "r", &terr),
                  ZARR_ERR_INVALID);
    assert_says("g/a[0]: the location has a selection, [0]");
    world_close(&w);
}

static void test_open_options(void **state)
{
    const zarr_store_options store = {.struct_size = sizeof store,
                                      .flags = ZARR_STORE_READ_ONLY};
    const zarr_array_open_options array = {.struct_size = sizeof array, .zarr_format = 2};
    zarr_open_options opts = ZARR_OPEN_OPTIONS_INIT;
    const int8_t one = 1;
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    zarr_array_free(make_easy(&w, "a", ZARR_INT8, 0, NULL));
    opts.store = &store;
    assert_ok(zarr_open_array_with(&a, w.ctx, place(&w, "a"), "r+", &opts, &terr));
    assert_status(zarr_array_write_box(a, NULL, NULL, NULL, &one, 1, &terr),
                  ZARR_ERR_INVALID);
    zarr_array_free(a);
    opts.array = &array;
    assert_status(zarr_open_array_with(&a, w.ctx, place(&w, "a"), "r", &opts, &terr),
                  ZARR_ERR_NOT_FOUND);
    opts.flags = 1;
    assert_status(zarr_open_array_with(&a, w.ctx, place(&w, "a"), "r", &opts, &terr),
                  ZARR_ERR_UNSUPPORTED);
    opts = (zarr_open_options){0};
    assert_status(zarr_open_array_with(&a, w.ctx, place(&w, "a"), "r", &opts, &terr),
                  ZARR_ERR_ABI);
    world_close(&w);
}

static void test_create_modes(void **state)
{
    const uint64_t shape[1] = {4}, longer[1] = {5}, square[2] = {2, 2};
    const int16_t data[4] = {1, 2, 3, 4};
    int16_t out[4] = {0};
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    assert_ok(
        zarr_create_array(&a, w.ctx, place(&w, "x/a"), "a", ZARR_INT16, 1, shape, &terr));
    assert_ok(zarr_array_write_box(a, NULL, NULL, NULL, data, sizeof data, &terr));
    assert_ok(zarr_array_append_rows(a, 4, NULL, data, sizeof data, &terr));
    zarr_array_free(a);
    assert_status(
        zarr_create_array(&a, w.ctx, place(&w, "x/a"), "w-", ZARR_INT16, 1, shape, &terr),
        ZARR_ERR_EXISTS);
    assert_null(a);
    assert_ok(zarr_create_array(&a, w.ctx, place(&w, "x/a"), "a", ZARR_INT16, 1, longer,
                                &terr));
    assert_int_equal(zarr_array_shape(a)[0], 8); /* it has grown */
    assert_ok(zarr_array_read_box(a, NULL, shape, NULL, out, sizeof out, &terr));
    assert_memory_equal(out, data, sizeof data);
    zarr_array_free(a);
    assert_status(
        zarr_create_array(&a, w.ctx, place(&w, "x/a"), "a", ZARR_INT32, 1, shape, &terr),
        ZARR_ERR_EXISTS);
    assert_says("x/a: there is an array of int16 already, not of int32");
    assert_null(a);
    assert_status(
        zarr_create_array(&a, w.ctx, place(&w, "x/a"), "a", ZARR_INT16, 2, square, &terr),
        ZARR_ERR_EXISTS);
    assert_says("1 dimensions already, not with 2");
    assert_status(zarr_create_array(&a, w.ctx, place(&w, "x/a"), "a", ZARR_INT16, 1,
                                    (uint64_t[]){9}, &terr),
                  ZARR_ERR_EXISTS);
    assert_says("dimension 0 has length 8, not 9");
    assert_status(
        zarr_create_array(&a, w.ctx, place(&w, "x"), "a", ZARR_INT16, 1, shape, &terr),
        ZARR_ERR_EXISTS); /* a group */
    assert_ok(
        zarr_create_array(&a, w.ctx, place(&w, "x/a"), "w", ZARR_INT16, 1, shape, &terr));
    assert_ok(zarr_array_read_box(a, NULL, NULL, NULL, out, sizeof out, &terr));
    assert_int_equal(out[3], 0);
    zarr_array_free(a);
    world_close(&w);
}

static void test_create_refused(void **state)
{
    const uint64_t shape[1] = {4};
    struct world w;
    zarr_array *a;
    zarr_group *g;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    assert_status(
        zarr_create_array(&a, w.ctx, place(&w, "a"), "r", ZARR_INT8, 1, shape, &terr),
        ZARR_ERR_INVALID);
    assert_says("must be \"w-\", \"w\" or \"a\"");
    assert_status(
        zarr_create_array(&a, w.ctx, place(&w, "a"), NULL, ZARR_INT8, 1, shape, &terr),
        ZARR_ERR_INVALID);
    assert_status(
        zarr_create_array(&a, w.ctx, place(&w, "a"), "a", NULL, 1, shape, &terr),
        ZARR_ERR_INVALID);
    assert_status(
        zarr_create_array(&a, w.ctx, place(&w, "a"), "a", ZARR_INT8, 1, NULL, &terr),
        ZARR_ERR_INVALID);
    assert_status(
        zarr_create_array(&a, w.ctx, place(&w, "a"), "a", ZARR_INT8, -1, shape, &terr),
        ZARR_ERR_INVALID);
    assert_status(
        zarr_create_array(&a, w.ctx, place(&w, "a"), "w-", "int33", 1, shape, &terr),
        ZARR_ERR_UNSUPPORTED);
    assert_status(zarr_create_array_with(&a, w.ctx, place(&w, "a"), NULL, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_create_group(&g, w.ctx, place(&w, "g"), "r+", &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_create_group(&g, w.ctx, place(&w, "g[1]"), "a", &terr),
                  ZARR_ERR_INVALID);
    assert_null(g);
    world_close(&w);
}

static void test_create_group(void **state)
{
    const zarr_group_spec v2 = {.struct_size = sizeof v2, .zarr_format = 2};
    struct world w;
    zarr_group *g;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    assert_ok(zarr_create_group(&g, w.ctx, place(&w, "g"), "a", &terr));
    assert_ok(zarr_group_attribute_set_int64(g, "x", 1, &terr));
    zarr_group_free(g);
    assert_ok(zarr_create_group(&g, w.ctx, place(&w, "g"), "a", &terr));
    assert_non_null(strstr(zarr_group_attributes(g), "x"));
    zarr_group_free(g);
    assert_status(zarr_create_group(&g, w.ctx, place(&w, "g"), "w-", &terr),
                  ZARR_ERR_EXISTS);
    assert_ok(zarr_create_group(&g, w.ctx, place(&w, "g"), "w", &terr));
    assert_string_equal(zarr_group_attributes(g), "{}");
    zarr_group_free(g);
    assert_ok(zarr_create_group_with(&g, w.ctx, place(&w, "h"), &v2, NULL, &terr));
    assert_int_equal(zarr_group_zarr_format(g), 2);
    zarr_group_free(g);
    world_close(&w);
}

/* Readers of consolidated metadata do not see the old array with new chunks. */
static void test_overwrite_consolidated(void **state)
{
    const uint64_t old_shape[1] = {4}, new_shape[1] = {8};
    zarr_members *m = NULL;
    struct world w;
    zarr_group *g;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    zarr_array_free(make_easy(&w, "a", ZARR_INT8, 1, old_shape));
    zarr_array_free(make_easy(&w, "b", ZARR_INT8, 1, old_shape));
    assert_ok(zarr_open_group(&g, w.ctx, place(&w, ""), "r+", &terr));
    assert_ok(zarr_group_consolidate(g, NULL, &terr));
    zarr_group_free(g);
    zarr_array_free(make_easy(&w, "a", ZARR_INT8, 1, new_shape)); /* mode "w" */
    assert_ok(zarr_open_group(&g, w.ctx, place(&w, ""), "r", &terr));
    assert_true(zarr_group_is_consolidated(g));
    assert_ok(zarr_group_list_members(&m, g, 0, &terr));
    assert_int_equal(m->n, 1);
    assert_string_equal(m->node[0]->name, "b");
    zarr_members_free(m);
    zarr_group_free(g);
    world_close(&w);
}

/* ---- members --------------------------------------------------------------- */

static void make_tree(struct world *w)
{
    zarr_array_free(make_easy(w, "b/x", ZARR_INT8, 0, NULL));
    zarr_array_free(make_easy(w, "b/y/z", ZARR_INT8, 0, NULL));
    zarr_array_free(make_easy(w, "a", ZARR_INT8, 0, NULL));
    put_text(w, "run.zarr/c/zarr.json", "{");
}

static void test_members(void **state)
{
    static const char *const paths[] = {"a", "b", "b/x", "b/y", "b/y/z", "c"};
    static const uint32_t kinds[] = {ZARR_NODE_ARRAY, ZARR_NODE_GROUP, ZARR_NODE_ARRAY,
                                     ZARR_NODE_GROUP, ZARR_NODE_ARRAY, ZARR_NODE_NONE};
    zarr_members *m = NULL;
    struct world w;
    zarr_group *g = NULL;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    make_tree(&w);
    assert_ok(zarr_open_group(&g, w.ctx, place(&w, ""), "r", &terr));
    assert_ok(zarr_group_list_members(&m, g, 0, &terr));
    zarr_group_free(g);
    assert_int_equal(m->n, 6);
    for (int i = 0; i < 6; i++) { /* the list outlives its group */
        assert_string_equal(m->node[i]->path, paths[i]);
        assert_int_equal(m->node[i]->kind, kinds[i]);
    }
    assert_string_equal(m->node[4]->name, "z");
    assert_int_equal(m->node[4]->depth, 3);
    assert_non_null(strstr(m->node[4]->metadata, "int8"));
    zarr_members_free(m);
    zarr_members_free(NULL);
    assert_ok(zarr_open_group(&g, w.ctx, place(&w, ""), "r", &terr));
    assert_ok(zarr_group_list_members(&m, g, 1, &terr));
    assert_int_equal(m->n, 3);
    zarr_members_free(m);
    assert_ok(zarr_group_list_members(&m, g, 2, &terr));
    assert_int_equal(m->n, 5);
    zarr_members_free(m);
    zarr_group_free(g);
    assert_ok(zarr_open_group(&g, w.ctx, place(&w, "b/y"), "r", &terr));
    assert_ok(zarr_group_list_members(&m, g, 1, &terr));
    assert_int_equal(m->n, 1);
    assert_string_equal(m->node[0]->path, "b/y/z");
    zarr_members_free(m);
    assert_status(zarr_group_list_members(&m, g, -1, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_group_list_members(&m, NULL, 0, &terr), ZARR_ERR_INVALID);
    assert_null(m);
    zarr_group_free(g);
    world_close(&w);
}

static void test_members_fail(void **state)
{
    zarr_cancel *cancel = fresh_cancel();
    const zarr_list_options opts = {.struct_size = sizeof opts, .cancel = cancel};
    zarr_status st = ZARR_ERR_NO_MEMORY;
    zarr_members *m = NULL;
    struct world w;
    zarr_group *g = NULL;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    make_tree(&w);
    assert_ok(zarr_open_group(&g, w.ctx, place(&w, ""), "r", &terr));
    for (int k = 1; st != ZARR_OK; k++) {
        atomic_store(&w.fail_at, k);
        st = zarr_group_list_members(&m, g, 0, &terr);
        atomic_store(&w.fail_at, 0);
        if (st != ZARR_OK && st != ZARR_ERR_NO_MEMORY)
            fail_msg("allocation %d: %s", k, terr.message);
    }
    zarr_members_free(m);
    zarr_cancel_set(cancel);
    assert_status(zarr_group_list_members_with(&m, g, 0, &opts, &terr),
                  ZARR_ERR_CANCELLED);
    assert_null(m);
    zarr_group_free(g);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_first_use),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_open_modes),
        cmocka_unit_test(test_open_options),
        cmocka_unit_test(test_create_modes),
        cmocka_unit_test(test_create_refused),
        cmocka_unit_test(test_create_group),
        cmocka_unit_test(test_overwrite_consolidated),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_members_fail),
    };

    return cmocka_run_group_tests_name("easy_open", tests, NULL, NULL);
}
