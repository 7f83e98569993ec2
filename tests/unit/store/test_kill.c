/*
 * unit/store/test_kill.c - writers are killed at random moments. They leave the old or
 * the new value, never a mix, and temporary files that cleaning removes. Argument:
 * number of kills.
 */
#include "store_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t n_kills = 60;

enum {
    KEYS = 4,
    MAX_BYTES = 300000
};

/* A value contains its own length and letter, which shows a torn value. */
static void write_for_ever(zarr_store *s, uint64_t seed)
{
    static char value[MAX_BYTES];
    char key[16];

    for (;; seed++) {
        uint64_t n = 1 + seed * 7919 % MAX_BYTES;

        memset(value, (int)('a' + n % 26), n);
        snprintf(key, sizeof key, "c/%d/v", (int)(seed % KEYS));
        if (seed % 13 == 0)
            (void)!zarr_store_erase(s, key, NULL, NULL);
        else if (zarr_store_put(s, key, value, n, NULL, NULL) != ZARR_OK)
            _exit(3);
    }
}

static void check_values(zarr_store *s)
{
    static char value[MAX_BYTES + 1];
    char key[16];
    zarr_error err;

    for (int k = 0; k < KEYS; k++) {
        uint64_t n = sizeof value;
        zarr_status st;

        snprintf(key, sizeof key, "c/%d/v", k);
        st = zarr_store_get(s, key, 0, value, &n, NULL, &err);
        if (st == ZARR_ERR_NOT_FOUND)
            continue;
        assert_status(st, ZARR_OK);
        assert_true(n > 0);
        for (uint64_t i = 0; i < n; i++)
            if (value[i] != (char)('a' + n % 26))
                fail_msg("%s: torn at %" PRIu64 " of %" PRIu64, key, i, n);
    }
}

static int count_rows(void *user, const zarr_store_item *item)
{
    (void)item;
    ++*(int *)user;
    return 0;
}

static void kill_writers(uint32_t locks)
{
    zarr_store_options o = {
        .struct_size = sizeof o, .durability = ZARR_DURABILITY_NONE, .locks = locks};
    struct world w;
    zarr_store *s;
    zarr_error err;
    uint64_t n_removed = 0;
    int n_debris = 0, n_left = 0;

    world_init(&w);
    s = open_local(&w, &o);
    for (uint64_t i = 0; i < n_kills; i++) {
        pid_t pid[2];
        int status, n_writers = locks == ZARR_LOCKS_OS ? 2 : 1;

        for (int p = 0; p < n_writers; p++) {
            pid[p] = fork();
            if (pid[p] == 0)
                write_for_ever(s, i * 1000 + (uint64_t)p * 500);
        }
        usleep((useconds_t)(zr_random_u64() % 8000));
        for (int p = 0; p < n_writers; p++) {
            kill(pid[p], SIGKILL);
            waitpid(pid[p], &status, 0);
            assert_true(WIFSIGNALED(status));
        }
        check_values(s);
    }
    assert_status(
        zarr_store_list(s, "", ZARR_LIST_DEBRIS, count_rows, &n_debris, NULL, &err), 0);
    assert_status(zarr_store_clean(s, "", 0, &n_removed, NULL, &err), ZARR_OK);
    assert_int_equal(n_removed, n_debris);
    assert_status(
        zarr_store_list(s, "", ZARR_LIST_DEBRIS, count_rows, &n_left, NULL, &err), 0);
    assert_int_equal(n_left, 0);
    check_values(s);
    print_message("%d left-over files after %" PRIu64 " kills\n", n_debris, n_kills);
    zarr_store_free(s);
    world_free(&w);
}

static void with_locks(void **state)
{
    (void)state;
    kill_writers(ZARR_LOCKS_OS);
}

static void without_locks(void **state)
{
    (void)state;
    kill_writers(ZARR_LOCKS_NONE);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(with_locks),
                                       cmocka_unit_test(without_locks)};

    if (argc > 1)
        n_kills = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
}
