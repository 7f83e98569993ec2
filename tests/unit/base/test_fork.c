/* unit/base/test_fork.c - fork hooks, fork generations and thread numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include <sys/wait.h>
#include <unistd.h>

/* Runs fn in a child process. fn returns 0 on success. */
static void in_child(int (*fn)(void))
{
    const pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(fn());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int child_of_child(void)
{
    return zr_has_forked(2);
}

static int child_generation(void)
{
    int status = 0;
    pid_t pid;

    if (zr_has_forked(1))
        return 1;
    pid = fork();
    if (pid == 0)
        _exit(child_of_child());
    return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

static void generations(void **state)
{
    (void)state;
    assert_int_equal(zr_fork_generation(), 0);
    in_child(child_generation);
    assert_int_equal(zr_fork_generation(), 0);
}

struct guarded {
    zr_mutex mutex;
    struct zr_fork_hook hook;
    atomic_bool stop;
    uint64_t a, b; /* always equal while the lock is free */
    bool was_reset;
};

static struct guarded outer, inner;
static atomic_int n_child_calls;

static void reset_guarded(void *arg)
{
    struct guarded *g = arg;

    g->was_reset = g->a == g->b;
    atomic_fetch_add(&n_child_calls, 1);
}

static void *hold_locks(void *unused)
{
    while (!atomic_load(&outer.stop)) {
        zr_mutex_lock(&outer.mutex);
        outer.a++;
        /* Nested locks: the outer one has the higher rank. */
        zr_mutex_lock(&inner.mutex);
        inner.a++;
        for (int i = 0; i < 100; i++)
            zr_cpu_relax();
        inner.b++;
        zr_mutex_unlock(&inner.mutex);
        outer.b++;
        zr_mutex_unlock(&outer.mutex);
    }
    return unused;
}

static int use_guarded(void)
{
    if (!outer.was_reset || !inner.was_reset || atomic_load(&n_child_calls) != 2)
        return 1;
    zr_mutex_lock(&outer.mutex);
    zr_mutex_lock(&inner.mutex);
    zr_mutex_unlock(&inner.mutex);
    zr_mutex_unlock(&outer.mutex);
    return outer.a != outer.b || inner.a != inner.b;
}

static void hook(struct guarded *g, uint32_t rank)
{
    zr_mutex_init(&g->mutex);
    g->hook = (struct zr_fork_hook){
        .mutex = &g->mutex, .child = reset_guarded, .arg = g, .rank = rank};
    zr_fork_hook_add(&g->hook);
    zr_fork_hook_add(&g->hook); /* registering twice is allowed */
}

static void locks_are_whole_in_a_child(void **state)
{
    zr_thread t[2];

    (void)state;
    hook(&inner, 1);
    hook(&outer, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(zr_thread_start(&t[i], hold_locks, NULL, NULL), ZARR_OK);
    for (int i = 0; i < 100; i++)
        in_child(use_guarded);
    atomic_store(&outer.stop, true);
    for (int i = 0; i < 2; i++)
        zr_thread_join(&t[i]);
    assert_false(outer.was_reset); /* not called in the parent */
    zr_fork_hook_remove(&inner.hook);
    zr_fork_hook_remove(&inner.hook);
    zr_fork_hook_remove(&outer.hook);
    zr_mutex_deinit(&inner.mutex);
    zr_mutex_deinit(&outer.mutex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generations),
        cmocka_unit_test(locks_are_whole_in_a_child),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
