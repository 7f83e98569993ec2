#include "host.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- the interpreter's lock ----------------------------------------------- */

static pthread_mutex_t interpreter = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool locked;

void host_lock(void)
{
    MUST(!locked);
    pthread_mutex_lock(&interpreter);
    locked = true;
}

void host_unlock(void)
{
    MUST(locked);
    locked = false;
    pthread_mutex_unlock(&interpreter);
}

bool host_locked(void)
{
    return locked;
}

/* ---- byte strings ---------------------------------------------------------- */

static unsigned alive;

struct bytes *bytes_new(const void *data, uint64_t n)
{
    struct bytes *b = malloc(sizeof *b + (size_t)n);

    MUST(locked && b);
    b->owners = 1;
    b->n = n;
    if (n > 0)
        memcpy(b->data, data, (size_t)n);
    alive++;
    return b;
}

struct bytes *bytes_keep(struct bytes *b)
{
    MUST(locked);
    if (b)
        b->owners++;
    return b;
}

void bytes_drop(struct bytes *b)
{
    MUST(locked);
    if (!b || --b->owners > 0)
        return;
    alive--;
    free(b);
}

unsigned bytes_alive(void)
{
    return alive;
}

/* ---- the event loop ---------------------------------------------------------- */

enum {
    MOST_CALLS = 4096,
    MOST_WATCHES = 16
};

struct call {
    loop_fn fn;
    void *arg;
};

static struct {
    pthread_t thread;
    pthread_mutex_t mutex;
    int wake[2];
    struct call call[MOST_CALLS];
    unsigned n_calls;
    struct call watch[MOST_WATCHES];
    int fd[MOST_WATCHES];
    unsigned n_watches;
    bool ends;
    uint64_t slowest;
} loop = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void loop_run_one(const struct call *c)
{
    uint64_t begin, ns;

    host_lock();
    begin = now_ns();
    c->fn(c->arg);
    ns = now_ns() - begin;
    host_unlock();
    pthread_mutex_lock(&loop.mutex);
    if (ns > loop.slowest)
        loop.slowest = ns;
    pthread_mutex_unlock(&loop.mutex);
}

static void loop_wait(void)
{
    struct pollfd p[MOST_WATCHES + 1] = {{.fd = loop.wake[0], .events = POLLIN}};
    char drained[64];

    for (unsigned i = 0; i < loop.n_watches; i++)
        p[i + 1] = (struct pollfd){.fd = loop.fd[i], .events = POLLIN};
    MUST(poll(p, loop.n_watches + 1, -1) > 0);
    if (p[0].revents)
        MUST(read(loop.wake[0], drained, sizeof drained) > 0);
    for (unsigned i = loop.n_watches; i-- > 0;) {
        const struct call c = loop.watch[i];

        if (!p[i + 1].revents)
            continue;
        loop.n_watches--;
        loop.watch[i] = loop.watch[loop.n_watches];
        loop.fd[i] = loop.fd[loop.n_watches];
        loop_run_one(&c);
    }
}

static bool loop_next(struct call *out)
{
    bool found;

    pthread_mutex_lock(&loop.mutex);
    found = loop.n_calls > 0;
    if (found) {
        *out = loop.call[0];
        memmove(loop.call, loop.call + 1, --loop.n_calls * sizeof loop.call[0]);
    }
    pthread_mutex_unlock(&loop.mutex);
    return found;
}

static void *loop_main(void *unused)
{
    struct call c;

    (void)unused;
    while (!loop.ends) {
        loop_wait();
        while (loop_next(&c))
            loop_run_one(&c);
    }
    return NULL;
}

static void loop_end(void *unused)
{
    (void)unused;
    loop.ends = true;
}

void loop_start(void)
{
    MUST(pipe(loop.wake) == 0);
    loop.ends = false;
    loop.n_calls = loop.n_watches = 0;
    loop.slowest = 0;
    MUST(pthread_create(&loop.thread, NULL, loop_main, NULL) == 0);
}

void loop_stop(void)
{
    loop_call(loop_end, NULL);
    pthread_join(loop.thread, NULL);
    MUST(loop.n_watches == 0);
    close(loop.wake[0]);
    close(loop.wake[1]);
}

void loop_call(loop_fn fn, void *arg)
{
    pthread_mutex_lock(&loop.mutex);
    MUST(loop.n_calls < MOST_CALLS);
    loop.call[loop.n_calls++] = (struct call){fn, arg};
    pthread_mutex_unlock(&loop.mutex);
    MUST(write(loop.wake[1], "", 1) == 1);
}

void loop_watch(int fd, loop_fn fn, void *arg)
{
    MUST(loop_here() && loop.n_watches < MOST_WATCHES);
    loop.fd[loop.n_watches] = fd;
    loop.watch[loop.n_watches++] = (struct call){fn, arg};
}

bool loop_here(void)
{
    return pthread_equal(pthread_self(), loop.thread) != 0;
}

uint64_t loop_slowest(void)
{
    uint64_t ns;

    pthread_mutex_lock(&loop.mutex);
    ns = loop.slowest;
    pthread_mutex_unlock(&loop.mutex);
    return ns;
}
