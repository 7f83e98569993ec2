/* bench/peers/slow_store.c - see slow_store.h. Each of a few threads sleeps until the
 * oldest request is due, then has the inner store carry it out. */
#include "slow_store.h"

#include "worker.h"

#include <zarrc/plugin/store.h>

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
    MOST = 1 << 16, /* requests that wait at once */
    PARALLEL = 128, /* connections that are worth having */
    THREADS = 4     /* that carry requests out: bytes of several arrive at once */
};

typedef void (*done_fn)(void *arg, zarr_store_op *op, const zarr_error *err);

struct waiting {
    zarr_store_op *op;
    done_fn done;
    void *arg;
    double due;
};

struct slow {
    zarr_store *inner;
    double delay;
    pthread_mutex_t mutex;
    pthread_cond_t more;
    pthread_t threads[THREADS];
    int stop;
    uint64_t first, n;
    struct waiting ring[MOST]; /* due times rise */
};

static void sleep_until(double due)
{
    const double rest = due - now();
    struct timespec t = {0, 0};

    if (rest <= 0)
        return;
    t.tv_sec = (time_t)rest;
    t.tv_nsec = (long)((rest - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

static void *answer(void *arg)
{
    struct slow *s = arg;

    pthread_mutex_lock(&s->mutex);
    for (;;) {
        struct waiting w;
        zarr_error err = ZARR_ERROR_INIT;

        while (s->n == 0 && !s->stop)
            pthread_cond_wait(&s->more, &s->mutex);
        if (s->n == 0)
            break;
        w = s->ring[s->first];
        s->first = (s->first + 1) % MOST;
        s->n--;
        pthread_mutex_unlock(&s->mutex);
        sleep_until(w.due);
        zarr_store_run(s->inner, w.op, &err);
        w.done(w.arg, w.op, &err);
        pthread_mutex_lock(&s->mutex);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void submit(void *self, zarr_store_op **ops, uint64_t n, done_fn done, void *arg)
{
    struct slow *s = self;
    const double due = now() + s->delay;

    pthread_mutex_lock(&s->mutex);
    if (n > MOST - s->n)
        fail("too many requests");
    for (uint64_t i = 0; i < n; i++)
        s->ring[(s->first + s->n++) % MOST] = (struct waiting){ops[i], done, arg, due};
    pthread_cond_broadcast(&s->more);
    pthread_mutex_unlock(&s->mutex);
}

static void caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX;
    out->parallel = PARALLEL;
}

static void close_slow(void *self)
{
    struct slow *s = self;

    pthread_mutex_lock(&s->mutex);
    s->stop = 1;
    pthread_cond_broadcast(&s->more);
    pthread_mutex_unlock(&s->mutex);
    for (int i = 0; i < THREADS; i++)
        pthread_join(s->threads[i], NULL);
    zarr_store_free(s->inner);
    free(s);
}

zarr_store *slow_store(zarr_context *context, zarr_store *inner, uint64_t delay_ms)
{
    static const zarr_store_vtable table = {.struct_size = sizeof table,
                                            .name = "slow",
                                            .caps = caps,
                                            .submit = submit,
                                            .close = close_slow};
    struct slow *s = need(calloc(1, sizeof *s));
    zarr_error err = ZARR_ERROR_INIT;
    zarr_store *store = NULL;

    s->inner = inner;
    s->delay = (double)delay_ms * 1e-3;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->more, NULL);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&s->threads[i], NULL, answer, s) != 0)
            fail("no thread");
    if (zarr_store_open_custom(&store, context, &table, s, NULL, &err) != ZARR_OK)
        fail("%s", err.message);
    return store;
}
