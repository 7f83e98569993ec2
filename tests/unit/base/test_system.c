/*
 * unit/base/test_system.c - byte order, CPU features, clocks, random numbers, threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include <signal.h>
#include <sys/stat.h>

static void byte_loads(void **state)
{
    const uint8_t b[8] = {1, 2, 3, 4, 5, 6, 7, 0x88};
    uint8_t out[9] = {0};

    (void)state;
    assert_int_equal(zr_load_le32(b), 0x04030201);
    assert_true(zr_load_le64(b) == UINT64_C(0x8807060504030201));
    zr_store_le64(out + 1, UINT64_C(0x8807060504030201));
    assert_memory_equal(out + 1, b, 8);
    zr_store_le32(out, 0xFFEEDDCC);
    assert_int_equal(zr_load_le32(out), 0xFFEEDDCC);
}

/* A file of a pretended tree of control groups. */
static void put_file(const char *root, const char *path, const char *text)
{
    char name[512], *slash;
    FILE *f;

    (void)snprintf(name, sizeof name, "%s/%s", root, path);
    for (slash = name + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(name, 0700);
        *slash = '/';
    }
    f = fopen(name, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void control_groups(void **state)
{
    char root[] = "/tmp/zarrc-cgroup-XXXXXX", groups[64], command[80];
    const struct zr_cgroup_files files = {root, groups};

    (void)state;
    assert_non_null(mkdtemp(root));
    (void)snprintf(groups, sizeof groups, "%s/own", root);
    assert_true(zr_cgroup_cores(&files) == UINT64_MAX); /* no such file */
    put_file(root, "own", "0::/a/b\n");
    assert_true(zr_cgroup_cores(&files) == UINT64_MAX);
    assert_true(zr_cgroup_bytes(&files) == UINT64_MAX);
    put_file(root, "a/b/cpu.max", "max 100000\n");
    put_file(root, "a/b/memory.max", "4000000000\n");
    assert_true(zr_cgroup_cores(&files) == UINT64_MAX);
    put_file(root, "a/cpu.max", "150000 100000\n");
    put_file(root, "a/memory.max", "max\n");
    assert_int_equal(zr_cgroup_cores(&files), 2);
    assert_true(zr_cgroup_bytes(&files) == 4000000000);
    put_file(root, "cpu.max", "100000 100000\n"); /* the root that a container sees */
    assert_int_equal(zr_cgroup_cores(&files), 1);
    put_file(root, "own", "0::/../other\n"); /* a group that it does not see */
    assert_int_equal(zr_cgroup_cores(&files), 1);
    put_file(root, "cpu.max", "0 0\n");
    assert_true(zr_cgroup_cores(&files) == UINT64_MAX);
    put_file(root, "cpu.max", "99999999999999999999 100000");
    assert_true(zr_cgroup_cores(&files) == UINT64_MAX);
    /* version 1, as on older systems */
    put_file(root, "own", "7:memory:/x\n4:cpuacct,cpu:/x\n\n:\n1:name=systemd:/");
    put_file(root, "cpu/x/cpu.cfs_quota_us", "-1\n");
    put_file(root, "cpu/x/cpu.cfs_period_us", "100000\n");
    put_file(root, "memory/x/memory.limit_in_bytes", "1073741824\n");
    assert_true(zr_cgroup_cores(&files) == UINT64_MAX);
    assert_true(zr_cgroup_bytes(&files) == 1073741824);
    put_file(root, "cpu/x/cpu.cfs_quota_us", "250000\n");
    assert_int_equal(zr_cgroup_cores(&files), 3);
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

static void swap_plainly(uint8_t *dst, const uint8_t *src, size_t n, size_t unit)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < unit; k++)
            dst[i * unit + k] = src[i * unit + unit - 1 - k];
}

static void byteswaps(void **state)
{
    static uint8_t src[2048], dst[2048], want[2048];

    (void)state;
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)(i * 31 + i / 256);
    for (uint32_t unit = 1; unit <= 16; unit *= 2) {
        for (size_t n = 0; n < 70; n++) {
            for (size_t shift = 0; shift < 4; shift++) { /* also unaligned */
                memset(dst, 0xEE, sizeof dst);
                memset(want, 0xEE, sizeof want);
                swap_plainly(want + shift, src + 2 * shift, n, unit);
                zr_byteswap(dst + shift, src + 2 * shift, n, unit);
                assert_memory_equal(dst, want, sizeof dst);
                memcpy(dst + shift, src + 2 * shift, n * unit);
                zr_byteswap(dst + shift, dst + shift, n, unit); /* in place */
                assert_memory_equal(dst, want, sizeof dst);
            }
        }
    }
}

static void cpu(void **state)
{
    (void)state;
    assert_int_equal(zr_cpu_features & ~UINT32_C(0x1F), 0);
    assert_in_range(zr_cpu_count(), 1, 65536);
}

static void clocks_and_chance(void **state)
{
    const uint64_t a = zr_now_ns(), r = zr_random_u64();
    int same = 0;

    (void)state;
    for (int i = 0; i < 100; i++)
        same += zr_random_u64() == r;
    assert_int_equal(same, 0);
    assert_true(zr_now_ns() >= a);
    assert_true(zr_wall_seconds() > 1700000000);
}

static void wait_for_a_condition(void **state)
{
    zr_mutex m;
    zr_cond c;
    uint64_t begin;

    (void)state;
    zr_mutex_init(&m);
    zr_cond_init(&c);
    zr_mutex_lock(&m);
    begin = zr_now_ns();
    /* Spurious wake-ups are allowed. */
    while (zr_cond_wait_until(&c, &m, begin + 20000000))
        ;
    assert_true(zr_now_ns() >= begin + 20000000);
    assert_false(zr_cond_wait_until(&c, &m, 0));
    zr_mutex_unlock(&m);
    zr_cond_deinit(&c);
    zr_mutex_deinit(&m);
}

struct meeting {
    zr_mutex mutex;
    zr_cond cond;
    int turn, blocked;
};

static void *other_side(void *arg)
{
    struct meeting *x = arg;
    sigset_t set;

    pthread_sigmask(SIG_SETMASK, NULL, &set);
    zr_mutex_lock(&x->mutex);
    x->blocked = sigismember(&set, SIGINT) && sigismember(&set, SIGCHLD) &&
                 !sigismember(&set, SIGSEGV);
    for (int i = 0; i < 100; i++) {
        while (x->turn % 2 == 0)
            zr_cond_wait(&x->cond, &x->mutex);
        x->turn++;
        zr_cond_broadcast(&x->cond);
    }
    zr_mutex_unlock(&x->mutex);
    return NULL;
}

static void threads_take_turns(void **state)
{
    struct meeting x = {.turn = 0};
    zr_thread t;
    sigset_t before, after;

    (void)state;
    zr_mutex_init(&x.mutex);
    zr_cond_init(&x.cond);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(zr_thread_start(&t, other_side, &x, NULL), ZARR_OK);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
    zr_mutex_lock(&x.mutex);
    for (int i = 0; i < 100; i++) {
        while (x.turn % 2 == 1)
            assert_true(zr_cond_wait_until(&x.cond, &x.mutex, UINT64_MAX));
        x.turn++;
        zr_cond_signal(&x.cond);
    }
    zr_mutex_unlock(&x.mutex);
    zr_thread_join(&t);
    assert_int_equal(x.turn, 200);
    assert_true(x.blocked);
    zr_cond_deinit(&x.cond);
    zr_mutex_deinit(&x.mutex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_loads),         cmocka_unit_test(control_groups),
        cmocka_unit_test(byteswaps),          cmocka_unit_test(cpu),
        cmocka_unit_test(clocks_and_chance),  cmocka_unit_test(wait_for_a_condition),
        cmocka_unit_test(threads_take_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
