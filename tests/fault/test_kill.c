/*
 * fault/test_kill.c - processes that write through the library are killed with SIGKILL
 * at random moments: while writing whole shards, parts of shards, plain chunks.
 * Afterwards each object can be decoded, each element has a value that some write put
 * there, each inner chunk has the elements of one write only, and cleaning removes what
 * killed processes left. Argument: number of kills.
 */
#include "fault.h"

#include <ftw.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    EDGE = 64,
    INNER = 16
};

static int n_kills = 100;
static char folder[] = "/tmp/zarrc-kill-XXXXXX";

static zarr_store *open_store(zarr_context **ctx)
{
    zarr_context_options opts = ZARR_CONTEXT_OPTIONS_INIT;
    zarr_store *store = NULL;
    zarr_error err;

    opts.max_threads = 2;
    if (zarr_context_create(ctx, &opts, &err) != ZARR_OK ||
        zarr_store_open(&store, *ctx, folder, NULL, &err) != ZARR_OK)
        abort();
    return store;
}

static void make_array(zarr_store *store, const char *path, bool sharded)
{
    const uint64_t shape[2] = {EDGE, EDGE}, chunk[2] = {INNER, INNER},
                   shard[2] = {32, 64};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .shard_shape = sharded ? shard : NULL,
                                  .data_type = "uint32"};
    zarr_array *a = NULL;
    zarr_error err;

    if (zarr_array_create(&a, store, path, &spec, NULL, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    zarr_array_free(a);
}

/* Turn t writes its number to all elements, to one inner chunk, or to a row of inner
 * chunks. */
static zarr_status write_turn(zarr_array *a, uint32_t t)
{
    static uint32_t data[EDGE * EDGE];
    const uint64_t at = (t * 7u) % 4u * INNER;
    const uint64_t start[2] = {t % 3 ? at : 0, t % 3 == 1 ? at : 0};
    const uint64_t count[2] = {t % 3 ? INNER : EDGE, t % 3 == 1 ? INNER : EDGE};
    const uint64_t shape[2] = {(uint64_t)count[0], (uint64_t)count[1]};
    zarr_selection *sel = NULL;
    zarr_tensor tensor;
    zarr_status st;

    for (int i = 0; i < EDGE * EDGE; i++)
        data[i] = t;
    zarr_tensor_host(&tensor, NULL, data, sizeof data, 2, shape);
    st = zarr_selection_box(&sel, 2, zarr_array_shape(a), start, count, NULL);
    if (st == ZARR_OK)
        st = zarr_array_write(a, sel, &tensor, NULL, NULL);
    zarr_selection_free(sel);
    return st;
}

static void write_for_ever(uint32_t first)
{
    zarr_context *ctx = NULL;
    zarr_store *store = open_store(&ctx);
    zarr_array *shards = NULL, *plain = NULL;

    if (zarr_array_open(&shards, store, "shards", NULL, NULL) != ZARR_OK ||
        zarr_array_open(&plain, store, "plain", NULL, NULL) != ZARR_OK)
        _exit(2);
    for (uint32_t t = first;; t++)
        if (write_turn(shards, t) != ZARR_OK || write_turn(plain, t) != ZARR_OK)
            _exit(3);
}

static int tell_fault(void *user, const zarr_verify_item *item)
{
    (void)user;
    fail_msg("%s: %s", item->key, item->message);
    return 1;
}

/* Returns the number of the newest write found. */
static uint32_t check_array(zarr_store *store, const char *path, uint32_t last)
{
    static uint32_t data[EDGE * EDGE];
    const uint64_t shape[2] = {EDGE, EDGE};
    uint32_t newest = 0;
    zarr_array *a = NULL;
    zarr_tensor tensor;
    zarr_error err = {0};

    zarr_tensor_host(&tensor, NULL, data, sizeof data, 2, shape);
    if (zarr_array_open(&a, store, path, NULL, &err) != ZARR_OK ||
        zarr_array_read(a, NULL, &tensor, NULL, &err) != ZARR_OK ||
        zarr_array_verify(a, tell_fault, NULL, NULL, &err) != ZARR_OK)
        fail_msg("%s: %s", path, err.message);
    for (int i = 0; i < EDGE * EDGE; i++) {
        const int row = i / EDGE, col = i % EDGE;
        const uint32_t first = data[row / INNER * INNER * EDGE + col / INNER * INNER];

        if (data[i] != first || data[i] > last)
            fail_msg("%s: cell %d, %d is %u, its chunk's first %u", path, row, col,
                     data[i], first);
        newest = data[i] > newest ? data[i] : newest;
    }
    zarr_array_free(a);
    return newest;
}

static int count_row(void *user, const zarr_store_item *item)
{
    (void)item;
    ++*(int *)user;
    return 0;
}

static void test_kills(void **state)
{
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    uint64_t n_removed = 0;
    int n_debris = 0, n_seen = 0;

    (void)state;
    /* No thread may start before the forks: each child creates its own context. */
    store = open_store(&ctx);
    make_array(store, "shards", true);
    make_array(store, "plain", false);
    for (int i = 0; i < n_kills; i++) {
        int status[2];
        pid_t pid[2];

        for (int p = 0; p < 2; p++) {
            pid[p] = fork();
            if (pid[p] == 0)
                write_for_ever((uint32_t)(i * 100000 + p * 50000 + 1));
            assert_true(pid[p] > 0);
        }
        usleep((useconds_t)(2000 + i * 7919 % 40000));
        for (int p = 0; p < 2; p++) {
            kill(pid[p], SIGKILL);
            assert_int_equal(waitpid(pid[p], &status[p], 0), pid[p]);
        }
        for (int p = 0; p < 2; p++)
            if (!WIFSIGNALED(status[p]))
                fail_msg("writer exits with %d", WEXITSTATUS(status[p]));
        n_seen += check_array(store, "shards", (uint32_t)(i + 1) * 100000) >
                  (uint32_t)i * 100000;
        check_array(store, "plain", (uint32_t)(i + 1) * 100000);
    }
    assert_int_equal(
        zarr_store_list(store, "", ZARR_LIST_DEBRIS, count_row, &n_debris, NULL, NULL),
        ZARR_OK);
    assert_int_equal(zarr_store_clean(store, "", 0, &n_removed, NULL, NULL), ZARR_OK);
    print_message("%d kills, %d of %d rounds wrote before, %d files left\n", 2 * n_kills,
                  n_seen, n_kills, n_debris);
    assert_true(n_seen > n_kills / 4);
    n_debris = 0;
    assert_int_equal(
        zarr_store_list(store, "", ZARR_LIST_DEBRIS, count_row, &n_debris, NULL, NULL),
        ZARR_OK);
    assert_int_equal(n_debris, 0);
    zarr_store_free(store);
    zarr_context_free(ctx);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kills)};
    int rc;

    if (argc > 1)
        n_kills = atoi(argv[1]);
    if (!mkdtemp(folder))
        return 1;
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return rc;
}
