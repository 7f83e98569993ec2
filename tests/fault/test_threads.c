/*
 * fault/test_threads.c - threads read, write and change parts of one sharded array at
 * the same time, in small waves. Also requests cancelled half way, fewer descriptors
 * than shards, and forks with requests in flight. Every inner chunk that is read has the
 * elements of one write only. Also meant for the thread sanitizer.
 */
#include "fault.h"

#include "../sanitizers.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    EDGE = 64,
    INNER = 16,
    N_THREADS = 4,
    N_TURNS = 30
};

struct job {
    zarr_array *array;
    int id;
    int n_wrong;
    char text[600];
};

static zarr_array *make_array(struct world *w)
{
    const uint64_t shape[2] = {EDGE, EDGE}, chunk[2] = {INNER, INNER},
                   shard[2] = {32, 32};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .shard_shape = shard,
                                  .data_type = "uint32"};
    zarr_array *a = NULL;
    zarr_error err;

    world_context(w, 4);
    if (zarr_store_open(&w->store, w->ctx, "memory:", NULL, &err) != ZARR_OK ||
        zarr_array_create(&a, w->store, "x", &spec, NULL, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    return a;
}

static const zarr_io_options small_waves = {.struct_size = sizeof small_waves,
                                            .tuning = TUNING(.wave_bytes = 2048)};

static void work_failed(struct job *j, const char *what, const zarr_error *err)
{
    if (j->n_wrong++ == 0)
        snprintf(j->text, sizeof j->text, "%s: %s", what, err->message);
}

/* Part 0: all elements; 1: a row of inner chunks; 2: one inner chunk, so that shards
 * change in part. */
static void write_part(struct job *j, uint32_t value, int part)
{
    uint32_t data[EDGE * EDGE];
    const uint64_t at = (uint64_t)(value % 4) * INNER;
    const uint64_t start[2] = {part ? at : 0, part == 2 ? at : 0};
    const uint64_t count[2] = {part ? INNER : EDGE, part == 2 ? INNER : EDGE};
    const uint64_t shape[2] = {(uint64_t)count[0], (uint64_t)count[1]};
    zarr_selection *sel = NULL;
    zarr_error err = {0};
    zarr_tensor t;

    for (int i = 0; i < EDGE * EDGE; i++)
        data[i] = value;
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    if (zarr_selection_box(&sel, 2, zarr_array_shape(j->array), start, count, &err) !=
            ZARR_OK ||
        zarr_array_write(j->array, sel, &t, &small_waves, &err) != ZARR_OK)
        work_failed(j, "write", &err);
    zarr_selection_free(sel);
}

static int torn_chunks(const uint32_t *data)
{
    int n = 0;

    for (int i = 0; i < EDGE * EDGE; i++)
        n += data[i] != data[i / EDGE / INNER * INNER * EDGE + i % EDGE / INNER * INNER];
    return n;
}

static void read_all(struct job *j)
{
    uint32_t data[EDGE * EDGE];
    const uint64_t shape[2] = {EDGE, EDGE};
    zarr_error err = {0};
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    if (zarr_array_read(j->array, NULL, &t, &small_waves, &err) != ZARR_OK)
        work_failed(j, "read", &err);
    else if (torn_chunks(data))
        work_failed(j, "torn", &err);
}

static void *mixed_work(void *arg)
{
    struct job *j = arg;

    for (int i = 0; i < N_TURNS; i++) {
        write_part(j, (uint32_t)(1 + j->id * 1000 + i), i % 3);
        read_all(j);
    }
    return NULL;
}

static void run_jobs(zarr_array *a, void *(*fn)(void *))
{
    pthread_t id[N_THREADS];
    struct job jobs[N_THREADS] = {{0}};

    for (int i = 0; i < N_THREADS; i++) {
        jobs[i].array = a;
        jobs[i].id = i;
        assert_int_equal(pthread_create(&id[i], NULL, fn, &jobs[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(id[i], NULL);
    for (int i = 0; i < N_THREADS; i++)
        if (jobs[i].n_wrong)
            fail_msg("%d wrong, first: %s", jobs[i].n_wrong, jobs[i].text);
}

static void test_mixed(void **state)
{
    struct world w;
    zarr_array *a = make_array(&w);

    (void)state;
    run_jobs(a, mixed_work);
    zarr_array_free(a);
    world_close(&w);
}

/* A request that is cancelled returns CANCELLED or OK, and no inner chunk mixes two
 * writes. */
static void *cancelled_work(void *arg)
{
    struct job *j = arg;
    uint32_t data[EDGE * EDGE];
    const uint64_t shape[2] = {EDGE, EDGE};
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    for (int i = 0; i < N_TURNS; i++) {
        zarr_request *rq = NULL;
        zarr_error err = {0};
        zarr_status st;

        for (int k = 0; k < EDGE * EDGE; k++)
            data[k] = (uint32_t)(1 + j->id * 1000 + i);
        st = i % 2 ? zarr_array_read_submit(&rq, j->array, NULL, &t, &small_waves, &err)
                   : zarr_array_write_submit(&rq, j->array, NULL, &t, &small_waves, &err);
        if (st == ZARR_OK) {
            usleep((useconds_t)(i * 37 % 300));
            zarr_request_cancel(rq);
            st = zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &err);
        }
        zarr_request_free(rq);
        if (st != ZARR_OK && st != ZARR_ERR_CANCELLED)
            work_failed(j, "cancelled", &err);
    }
    read_all(j);
    return NULL;
}

static void test_cancel(void **state)
{
    struct world w;
    zarr_array *a = make_array(&w);

    (void)state;
    run_jobs(a, cancelled_work);
    zarr_array_free(a);
    world_close(&w);
}

/* ---- descriptors ---------------------------------------------------------------- */

enum {
    N_CELLS = 1600, /* in 160 shards */
    N_READERS = 12
};

static void *read_shards(void *arg)
{
    struct job *j = arg;
    int32_t data[N_CELLS];
    const uint64_t shape[1] = {N_CELLS};
    zarr_error err = {0};
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, sizeof data, 1, shape);
    for (int i = 0; i < 3; i++) {
        memset(data, 0, sizeof data);
        if (zarr_array_read(j->array, NULL, &t, NULL, &err) != ZARR_OK)
            work_failed(j, "read", &err);
        for (int k = 0; k < N_CELLS; k++)
            if (data[k] != k)
                j->n_wrong++;
    }
    return NULL;
}

static zarr_array *make_shards(struct world *w, const char *dir)
{
    const uint64_t shape[1] = {N_CELLS}, chunk[1] = {5}, shard[1] = {10};
    const uint64_t n[1] = {N_CELLS};
    const zarr_store_options so = {.struct_size = sizeof so,
                                   .flags = ZARR_STORE_CREATE,
                                   .durability = ZARR_DURABILITY_NONE};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .shard_shape = shard,
                                  .data_type = "int32"};
    int32_t data[N_CELLS];
    zarr_array *a = NULL;
    zarr_error err;
    zarr_tensor t;

    for (int i = 0; i < N_CELLS; i++)
        data[i] = i;
    zarr_tensor_host(&t, NULL, data, sizeof data, 1, n);
    world_context(w, 4);
    if (zarr_store_open(&w->store, w->ctx, dir, &so, &err) != ZARR_OK ||
        zarr_array_create(&a, w->store, "x", &spec, NULL, &err) != ZARR_OK ||
        zarr_array_write(a, NULL, &t, NULL, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    return a;
}

static struct rlimit descriptors;

static int note_descriptors(void **state)
{
    (void)state;
    return getrlimit(RLIMIT_NOFILE, &descriptors);
}

static int more_descriptors(void **state)
{
    (void)state;
    return setrlimit(RLIMIT_NOFILE, &descriptors);
}

/* Many more shards are open at once than the process may have descriptors. */
static void test_few_descriptors(void **state)
{
    struct job jobs[N_READERS] = {{0}};
    pthread_t id[N_READERS];
    char dir[] = "/tmp/zarrc-fault-XXXXXX";
    struct rlimit few = descriptors;
    struct world w;
    zarr_array *a;

    (void)state;
    assert_non_null(mkdtemp(dir));
    a = make_shards(&w, dir);
    few.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int n = 1; n <= N_READERS; n += N_READERS - 1) {
        for (int i = 0; i < n; i++) {
            jobs[i].array = a;
            assert_int_equal(pthread_create(&id[i], NULL, read_shards, &jobs[i]), 0);
        }
        for (int i = 0; i < n; i++)
            pthread_join(id[i], NULL);
        for (int i = 0; i < n; i++)
            if (jobs[i].n_wrong)
                fail_msg("%d threads: %d wrong, first: %s", n, jobs[i].n_wrong,
                         jobs[i].text);
    }
    assert_int_equal(more_descriptors(state), 0);
    zarr_array_free(a);
    assert_int_equal(zarr_store_erase_prefix(w.store, "", NULL, NULL), ZARR_OK);
    world_close(&w);
    (void)rmdir(dir);
}

/* In the child the inherited request is CANCELLED, and the array can be used again. */
static int child(zarr_array *a, zarr_request *rq)
{
    struct job j = {.array = a};
    zarr_error err = {0};

    alarm(30);
    if (zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &err) != ZARR_ERR_CANCELLED)
        return 1;
    zarr_request_free(rq);
    write_part(&j, 5, 0);
    read_all(&j);
    zarr_array_free(a);
    return j.n_wrong ? 2 : 0;
}

static void test_fork(void **state)
{
    struct world w;
    static uint32_t data[EDGE * EDGE];
    const uint64_t shape[2] = {EDGE, EDGE};
    zarr_array *a;
    zarr_tensor t;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    a = make_array(&w);
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    for (int i = 0; i < 20; i++) {
        zarr_request *rq = NULL;
        zarr_error err = {0};
        int status = 0;
        pid_t pid;

        assert_int_equal(zarr_array_write_submit(&rq, a, NULL, &t, &small_waves, &err),
                         ZARR_OK);
        pid = fork();
        if (pid == 0)
            _exit(child(a, rq));
        assert_true(pid > 0);
        assert_int_equal(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &err), ZARR_OK);
        zarr_request_free(rq);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status != 0)
            fail_msg("fork %d: child ends with 0x%x", i, (unsigned)status);
    }
    zarr_array_free(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test_setup_teardown(test_few_descriptors, note_descriptors,
                                        more_descriptors),
        cmocka_unit_test(test_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
