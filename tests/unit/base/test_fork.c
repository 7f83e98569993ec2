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
    return zr_fork_generation() != 2;
}

static int child_generation(void)
{
    int status = 0;
    pid_t pid;

    if (zr_fork_generation() != 1)
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

static void *note_slot(void *arg)
{
    uint32_t *slot = arg;

    *slot = zr_thread_slot();
    return zr_thread_slot() == *slot ? arg : NULL;
}

static void slots_are_dense_and_used_again(void **state)
{
    (void)state;
    assert_int_equal(zr_thread_slot(), 0);
    for (int i = 0; i < 50; i++) {
        uint32_t slot = ZR_THREAD_NO_SLOT;
        zr_thread t;

        assert_int_equal(zr_thread_start(&t, note_slot, &slot, NULL), ZARR_OK);
        zr_thread_join(&t);
        assert_int_equal(slot, 1);
    }
}

struct crowd {
    zr_mutex mutex;
    zr_cond cond;
    uint32_t n, want;
    bool seen[ZR_THREAD_SLOTS];
    uint32_t without;
};

static void *stand_in_crowd(void *arg)
{
    struct crowd *c = arg;
    const uint32_t slot = zr_thread_slot();

    zr_mutex_lock(&c->mutex);
    if (slot == ZR_THREAD_NO_SLOT)
        c->without++;
    else if (c->seen[slot])
        c->want = 0; /* two threads got the same number */
    else
        c->seen[slot] = true;
    c->n++;
    zr_cond_broadcast(&c->cond);
    while (c->n < c->want)
        zr_cond_wait(&c->cond, &c->mutex);
    zr_mutex_unlock(&c->mutex);
    return NULL;
}

static void stand_together(uint32_t n)
{
    struct crowd *c = calloc(1, sizeof *c);
    zr_thread *t = calloc(n, sizeof *t);

    assert_true(c && t);
    zr_mutex_init(&c->mutex);
    zr_cond_init(&c->cond);
    c->want = n;
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(zr_thread_start(&t[i], stand_in_crowd, c, NULL), ZARR_OK);
    for (uint32_t i = 0; i < n; i++)
        zr_thread_join(&t[i]);
    assert_int_equal(c->want, n);
    assert_int_equal(c->without, n >= ZR_THREAD_SLOTS ? n - (ZR_THREAD_SLOTS - 1) : 0);
    for (uint32_t i = 1; i < ZR_MIN(n + 1, (uint32_t)ZR_THREAD_SLOTS); i++)
        assert_true(c->seen[i]);
    zr_cond_deinit(&c->cond);
    zr_mutex_deinit(&c->mutex);
    free(t);
    free(c);
}

static void slots_run_out_politely(void **state)
{
    (void)state;
    stand_together(70);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    stand_together(ZR_THREAD_SLOTS + 10);
#endif
    stand_together(70);
}

static int child_slots(void)
{
    return zr_thread_slot() != 0;
}

static void *fork_here(void *arg)
{
    const uint32_t mine = zr_thread_slot();
    const pid_t pid = fork();
    int status = 1;

    if (pid == 0)
        _exit(zr_thread_slot() != mine);
    if (pid > 0)
        waitpid(pid, &status, 0);
    *(int *)arg = status;
    return NULL;
}

static void slots_in_a_child(void **state)
{
    int status = 1;
    zr_thread t;

    (void)state;
    in_child(child_slots);
    assert_int_equal(zr_thread_start(&t, fork_here, &status, NULL), ZARR_OK);
    zr_thread_join(&t);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generations),
        cmocka_unit_test(locks_are_whole_in_a_child),
        cmocka_unit_test(slots_are_dense_and_used_again),
        cmocka_unit_test(slots_run_out_politely),
        cmocka_unit_test(slots_in_a_child),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
