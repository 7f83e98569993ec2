/*
 * unit/array/test_threads.c - several threads and processes on one array: no attribute
 * and no appended row is lost, resizes do not disturb readers, nor does another rank, one
 * of many creators succeeds, and a handle works in a forked child.
 */
#include "../../sanitizers.h"
#include "array_test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    N_THREADS = 4,
    N_TURNS = 25
};

struct job {
    struct world *w;
    zarr_array *a; /* NULL: each thread opens its own handle */
    int id;
    atomic_int *stop;
    int n_created, n_bad;
};

static void run_jobs(void *(*fn)(void *), struct job *jobs)
{
    pthread_t id[N_THREADS];

    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&id[i], NULL, fn, &jobs[i]), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(id[i], NULL);
}

static void *set_attributes(void *arg)
{
    struct job *j = arg;
    zarr_array *a = j->a ? zarr_array_ref(j->a) : NULL;
    zarr_error e;
    char name[32];

    if (!a && zarr_array_open(&a, j->w->store, "x", NULL, &e) != ZARR_OK)
        abort();
    for (int i = 0; i < N_TURNS; i++) {
        snprintf(name, sizeof name, "t%d_%d", j->id, i);
        if (zarr_array_attribute_set(a, name, "1", NULL, &e) != ZARR_OK) {
            fprintf(stderr, "%s\n", e.message);
            abort();
        }
    }
    zarr_array_free(a);
    return NULL;
}

static void test_attributes(void **state)
{
    struct world w;
    zarr_array *a = NULL;
    char text[8], name[32];

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (int kind = 2; kind <= 3; kind++)
            for (int shared = 0; shared < 2; shared++) {
                struct job jobs[N_THREADS] = {{0}};

                world_open(&w, sort);
                a = make_array(&w, "x", kind, 4, 4);
                for (int i = 0; i < N_THREADS; i++)
                    jobs[i] = (struct job){.w = &w, .id = i, .a = shared ? a : NULL};
                run_jobs(set_attributes, jobs);
                assert_ok(zarr_array_refresh(a, NULL, NULL, &terr));
                for (int i = 0; i < N_THREADS; i++)
                    for (int k = 0; k < N_TURNS; k++) {
                        snprintf(name, sizeof name, "t%d_%d", i, k);
                        assert_ok(zarr_array_attribute_get(a, name, text, sizeof text,
                                                           NULL, &terr));
                    }
                zarr_array_free(a);
                world_close(&w);
            }
}

static void *append_rows(void *arg)
{
    const uint64_t shape[2] = {1, 4};
    struct job *j = arg;
    zarr_error e;
    int32_t row[4];
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, row, sizeof row, 2, shape);
    for (int i = 0; i < N_TURNS; i++) {
        for (int k = 0; k < 4; k++)
            row[k] = j->id * 1000 + i;
        if (zarr_array_append(j->a, 0, &t, NULL, NULL, &e) != ZARR_OK) {
            fprintf(stderr, "%s\n", e.message);
            abort();
        }
    }
    return NULL;
}

static void test_appends(void **state)
{
    struct world w;
    struct job jobs[N_THREADS] = {{0}};
    static int32_t rows[N_THREADS * N_TURNS * 4];
    const uint64_t shape[2] = {N_THREADS * N_TURNS, 4};
    int seen[N_THREADS][N_TURNS] = {{0}};
    zarr_array *a = NULL;
    zarr_tensor t;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        zarr_array_free(make_array(&w, "x", 3, 0, 4));
        for (int i = 0; i < N_THREADS; i++) {
            jobs[i] = (struct job){.w = &w, .id = i};
            assert_ok(zarr_array_open(&jobs[i].a, w.store, "x", NULL, &terr));
        }
        run_jobs(append_rows, jobs);
        for (int i = 0; i < N_THREADS; i++)
            zarr_array_free(jobs[i].a);
        assert_ok(zarr_array_open(&a, w.store, "x", NULL, &terr));
        assert_int_equal(zarr_array_shape(a)[0], N_THREADS * N_TURNS);
        zarr_tensor_host(&t, NULL, rows, sizeof rows, 2, shape);
        assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < N_THREADS * N_TURNS; i++) {
            assert_int_equal(rows[i * 4], rows[i * 4 + 3]);
            seen[rows[i * 4] / 1000][rows[i * 4] % 1000]++;
        }
        for (int i = 0; i < N_THREADS * N_TURNS; i++)
            assert_int_equal(seen[i / N_TURNS][i % N_TURNS], 1);
        zarr_array_free(a);
        world_close(&w);
    }
}

static void *read_all_the_time(void *arg)
{
    struct job *j = arg;
    zarr_error e;

    while (!atomic_load(j->stop)) {
        const uint64_t start[2] = {0, 0}, count[2] = {2, 2};
        const uint64_t shape[2] = {2, 2};
        uint64_t rows[2];
        int32_t data[4] = {7, 7, 7, 7};
        zarr_selection *sel = NULL;
        zarr_tensor t;
        zarr_status st;

        rows[1] = 4;
        /* Valid in one of the two shapes; in the other INVALID, not a crash. */
        rows[0] = 4;
        zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
        if (zarr_selection_box(&sel, 2, rows, start, count, &e) != ZARR_OK)
            abort();
        st = zarr_array_read(j->a, sel, &t, NULL, &e);
        if (st != ZARR_OK && st != ZARR_ERR_INVALID)
            abort();
        if (st == ZARR_OK && data[3] != 1001)
            abort();
        zarr_selection_free(sel);
    }
    return NULL;
}

static void test_readers_and_resizes(void **state)
{
    const uint64_t small[2] = {2, 2}, large[2] = {4, 4};
    struct world w;
    struct job jobs[N_THREADS] = {{0}};
    pthread_t id[N_THREADS];
    atomic_int stop = 0;
    zarr_array *a = NULL;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    world_open(&w, WORLD_LOCAL);
    a = make_array(&w, "x", 4, 4, 4);
    fill_array(a);
    for (int i = 0; i < N_THREADS; i++) {
        jobs[i] = (struct job){.w = &w, .a = a, .stop = &stop};
        assert_int_equal(pthread_create(&id[i], NULL, read_all_the_time, &jobs[i]), 0);
    }
    for (int i = 0; i < 30; i++) {
        assert_ok(zarr_array_resize(a, i % 2 ? large : small, NULL, &terr));
        assert_ok(zarr_array_attribute_set(a, "turn", "1", NULL, &terr));
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(id[i], NULL);
    zarr_array_free(a);
    world_close(&w);
}

/* Other words stand where a name of dimension 7 would be if there were one. */
#define A_50 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define TEXTS(shape, names)                                                              \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":" shape                        \
    ",\"data_type\":\"string\",\"fill_value\":\"x\",\"chunk_grid\":{\"name\":"           \
    "\"regular\","                                                                       \
    "\"configuration\":{\"chunk_shape\":" shape "}},\"chunk_key_encoding\":\"default\"," \
    "\"codecs\":[\"vlen-utf8\"],\"dimension_names\":" names "}"

static void *ask_all_the_time(void *arg)
{
    struct job *j = arg;
    zarr_error e;

    while (!atomic_load(j->stop)) {
        zarr_vlen_column c = ZARR_VLEN_COLUMN_INIT;
        const char *name = zarr_array_dimension_name(j->a, 7);
        zarr_status st;

        if ((uintptr_t)name >> 32 == 0x41414141 || (name && strcmp(name, "h") != 0))
            j->n_bad++;
        if (j->id % 2)
            continue;
        st = zarr_array_read_vlen(j->a, NULL, &c, NULL, &e);
        if (st != ZARR_OK && st != ZARR_ERR_INVALID && st != ZARR_ERR_CONFLICT) {
            fprintf(stderr, "%s\n", e.message);
            j->n_bad++;
        }
        zarr_vlen_column_free(&c);
    }
    return NULL;
}

/* Another program replaces the array by one of another rank, and a thread refreshes the
 * handle that the others ask. */
static void test_ranks(void **state)
{
    static const char *const doc[] = {
        TEXTS("[2]", "[\"" A_50 A_50 A_50 A_50 "\"]"),
        TEXTS("[1,1,1,1,1,1,1,2]", "[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\"]")};
    struct world w;
    struct job jobs[N_THREADS] = {{0}};
    pthread_t id[N_THREADS];
    atomic_int stop = 0;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    assert_ok(
        zarr_store_put(w.store, "x/zarr.json", doc[0], strlen(doc[0]), NULL, &terr));
    assert_ok(zarr_array_open(&a, w.store, "x", NULL, &terr));
    for (int i = 0; i < N_THREADS; i++) {
        jobs[i] = (struct job){.w = &w, .a = a, .id = i, .stop = &stop};
        assert_int_equal(pthread_create(&id[i], NULL, ask_all_the_time, &jobs[i]), 0);
    }
    for (int i = 1; i <= 2000; i++) {
        assert_ok(zarr_store_put(w.store, "x/zarr.json", doc[i % 2], strlen(doc[i % 2]),
                                 NULL, &terr));
        assert_ok(zarr_array_refresh(a, NULL, NULL, &terr));
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(id[i], NULL);
        assert_int_equal(jobs[i].n_bad, 0);
    }
    zarr_array_free(a);
    world_close(&w);
}

static void *create_same(void *arg)
{
    const uint64_t shape[1] = {4};
    const zarr_array_spec spec = {
        .struct_size = sizeof spec, .ndim = 1, .shape = shape, .data_type = "int8"};
    struct job *j = arg;
    zarr_error e;
    char path[32];

    for (int i = 0; i < N_TURNS; i++) {
        zarr_array *a = NULL;
        zarr_status st;

        snprintf(path, sizeof path, "deep/er/%d", i);
        st = zarr_array_create(&a, j->w->store, path, &spec, NULL, &e);
        if (st != ZARR_OK && st != ZARR_ERR_EXISTS) {
            fprintf(stderr, "%s\n", e.message);
            abort();
        }
        j->n_created += st == ZARR_OK;
        zarr_array_free(a);
    }
    return NULL;
}

static void test_creators(void **state)
{
    struct world w;
    struct job jobs[N_THREADS] = {{0}};
    int n = 0;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        for (int i = 0; i < N_THREADS; i++)
            jobs[i] = (struct job){.w = &w, .id = i};
        run_jobs(create_same, jobs);
        n = 0;
        for (int i = 0; i < N_THREADS; i++)
            n += jobs[i].n_created;
        assert_int_equal(n, N_TURNS);
        world_close(&w);
    }
}

/* The process forks while other threads use the handle. The child can use it. */
static void test_fork(void **state)
{
    struct world w;
    struct job jobs[N_THREADS] = {{0}};
    pthread_t id[N_THREADS];
    atomic_int stop = 0;
    zarr_array *a = NULL;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    world_open(&w, WORLD_LOCAL);
    a = make_array(&w, "x", 4, 4, 4);
    fill_array(a);
    for (int i = 0; i < N_THREADS; i++) {
        jobs[i] = (struct job){.w = &w, .a = a, .stop = &stop};
        assert_int_equal(pthread_create(&id[i], NULL, read_all_the_time, &jobs[i]), 0);
    }
    for (int i = 0; i < 10; i++) {
        int status = 0;
        pid_t pid = fork();

        if (pid == 0) {
            alarm(20);
            _exit(read_at(a, 3, 3) == 3003 &&
                          zarr_array_attribute_set(a, "child", "1", NULL, NULL) == ZARR_OK
                      ? 0
                      : 1);
        }
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(id[i], NULL);
    zarr_array_free(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_readers_and_resizes),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_creators),
        cmocka_unit_test(test_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
