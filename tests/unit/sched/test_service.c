/* unit/sched/test_service.c - services serve until the process exits, and then stop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../sanitizers.h"
#include "sched/sched.h"
#include <sys/wait.h>
#include <unistd.h>

static struct zr_event stop;
static int pipe_fds[2];

static void serve(void *arg)
{
    (void)zr_event_wait(&stop, UINT64_MAX);
    (void)!write(pipe_fds[1], arg, 1);
}

static void end(void *arg)
{
    (void)arg;
    zr_event_set(&stop);
}

static void at_exit(void)
{
    (void)!write(pipe_fds[1], "b", 1);
}

/* Each service has ended before the exit handlers that were installed first run. */
static void test_exit(void **state)
{
    static char a = 'a';
    static struct zr_service one = {.serve = serve, .stop = end, .arg = &a};
    static struct zr_service two = {.serve = serve, .stop = end, .arg = &a};
    char got[4] = "";
    size_t n = 0;
    ssize_t more;
    int status = -1;
    pid_t child;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    assert_int_equal(pipe(pipe_fds), 0);
    child = fork();
    if (child == 0) {
        (void)atexit(at_exit);
        zr_event_init(&stop);
        if (zr_service_start(&one, NULL) != ZARR_OK ||
            zr_service_start(&two, NULL) != ZARR_OK)
            _exit(1);
        exit(0);
    }
    (void)close(pipe_fds[1]);
    while (n < 3 && (more = read(pipe_fds[0], got + n, 3 - n)) > 0)
        n += (size_t)more;
    (void)close(pipe_fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(got, "aab");
}

static zr_mutex hooked;

static void *fork_once(void *unused)
{
    const pid_t child = fork(); /* waits for `hooked` */

    if (child == 0)
        _exit(0);
    (void)waitpid(child, NULL, 0);
    return unused;
}

/* The first service is started with a lock held for which a fork waits. */
static void test_beside_a_fork(void **state)
{
    static char a = 'a';
    static struct zr_service one = {.serve = serve, .stop = end, .arg = &a};
    static struct zr_fork_hook hook = {.mutex = &hooked, .rank = 1};
    zr_thread forker;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    (void)alarm(20);
    zr_event_init(&stop);
    zr_mutex_init(&hooked);
    zr_fork_hook_add(&hook);
    zr_mutex_lock(&hooked);
    assert_int_equal(zr_thread_start(&forker, fork_once, NULL, NULL), ZARR_OK);
    (void)usleep(100000);
    assert_int_equal(zr_service_start(&one, NULL), ZARR_OK);
    zr_mutex_unlock(&hooked);
    zr_thread_join(&forker);
    zr_fork_hook_remove(&hook);
    (void)alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit),
        cmocka_unit_test(test_beside_a_fork), /* last: it leaves a service */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
