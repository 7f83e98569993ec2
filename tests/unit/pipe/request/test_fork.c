/*
 * unit/pipe/request/test_fork.c - a function of the application forks while a request is
 * under way, and the child returns from it: there the request ends as CANCELLED, although
 * the threads that it would wait for do not exist.
 */
#include "unit/pipe/over_store.h"

#include "sanitizers.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHILD_SECONDS = 10,
    TRIES = 100,
    ALONE = 30 /* operations after which the caller's thread has no helper */
};

static struct {
    pthread_t caller;
    bool in_store; /* which function forks */
    atomic_bool armed;
    atomic_int n_others; /* threads inside of the store, without the caller's */
    int n_callers;       /* operations that the caller's thread has begun */
    pid_t child;         /* -1: not yet; 0: this is the child */
} forking;

static void fork_now(void)
{
    atomic_store(&forking.armed, false);
    fflush(NULL);
    forking.child = fork();
    if (forking.child == 0)
        alarm(CHILD_SECONDS);
}

static bool is_callers_turn(void)
{
    return pthread_equal(forking.caller, pthread_self()) && atomic_load(&forking.armed);
}

static void fork_in_progress(void *user, const zarr_stats *so_far)
{
    (void)user;
    (void)so_far;
    if (!forking.in_store && is_callers_turn() && so_far->chunks_done < N * N / 16)
        fork_now();
}

/* Operations on other threads take long, so that some are under way at the fork. */
static void slow_run(void *self, zarr_store_op *op, zarr_error *err)
{
    const bool callers = pthread_equal(forking.caller, pthread_self());
    const struct timespec pause = {.tv_nsec = callers ? 2000000 : 10000000};

    if (atomic_load(&forking.armed)) {
        atomic_fetch_add(&forking.n_others, !callers);
        nanosleep(&pause, NULL);
        forking.n_callers += callers;
        if (forking.in_store && is_callers_turn() &&
            (atomic_load(&forking.n_others) > 0 || forking.n_callers > ALONE))
            fork_now();
        atomic_fetch_sub(&forking.n_others, !callers);
    }
    over_do(self, op, err);
}

static void wait_for_child(void)
{
    int status = 0;

    assert_true(forking.child > 0);
    assert_int_equal(waitpid(forking.child, &status, 0), forking.child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the child ended with status %#x", (unsigned)status);
}

static void fork_during(zarr_array *a, bool write)
{
    const uint64_t dims[2] = {N, N};
    const zarr_tensor t = pw_tensor(write ? data : got, dims, sizeof got);
    zarr_io_options opts = {.struct_size = sizeof opts,
                            .max_threads = 4,
                            .progress = fork_in_progress,
                            .tuning = TUNING(.wave_bytes = 1024)};

    forking.child = -1;
    forking.n_callers = 0;
    for (int i = 0; i < TRIES && forking.child < 0; i++) {
        zarr_status st;

        atomic_store(&forking.armed, true);
        st = write ? zarr_array_write(a, NULL, &t, &opts, &terr)
                   : zarr_array_read(a, NULL, &t, &opts, &terr);
        if (forking.child == 0)
            _exit(st == ZARR_ERR_CANCELLED ? 0 : 1);
        atomic_store(&forking.armed, false);
        assert_ok(st);
        assert_memory_equal(write ? data : got, data, sizeof data);
    }
    wait_for_child();
}

static void fork_in(bool in_store)
{
    static const char *const codecs[] = {"[" BYTES "]",
                                         "[" SHARD("[4,4]", BYTES, "end") "]"};
    static const uint64_t sizes[2][2] = {{4, 4}, {8, 8}};
    zarr_store_vtable vt = over_runs;

    SKIP_WITHOUT_THREADED_FORK();
    forking.caller = pthread_self();
    forking.in_store = in_store;
    make_data(3);
    vt.run = slow_run;
    for (int i = 0; i < 8; i++) {
        const bool shards = i & 1, fast = i & 2, write = i & 4;
        struct over o;
        struct pw w;
        zarr_array *a = NULL;

        pw_open(&w, 4, 0, 0);
        over_open(&w, &o, &vt,
                  ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX |
                      (fast ? ZARR_STORE_CAP_FAST_GET : 0));
        a = pw_array(w.store, "a", codecs[shards], shape, sizes[shards]);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        fork_during(a, write);
        zarr_array_free(a);
        pw_close(&w);
    }
}

static void the_progress_function_forks(void **state)
{
    (void)state;
    fork_in(false);
}

static void the_store_forks(void **state)
{
    (void)state;
    fork_in(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_progress_function_forks),
        cmocka_unit_test(the_store_forks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
