/* interrupt.c - long calls that Ctrl-C stops. Python runs its signal handlers only on the
 * main thread, between bytecodes. So the main thread leaves the work to another thread,
 * or to a request, and looks for signals while it waits. Other threads do the work
 * themselves. */
#include "ext.h"

#include <pthread.h>
#include <time.h>

enum {
    LOOK_MS = 50 /* how often the main thread looks for signals */
};

bool zx_is_on_main(const zx_state *st)
{
    return PyThread_get_thread_ident() == st->main_thread;
}

/* ---- work on a thread of its own -------------------------------------------- */

struct errand {
    zx_work work;
    void *arg;
    zarr_cancel *cancel;
    zarr_error err;
    zarr_status status;
    bool is_done;
    pthread_mutex_t mutex;
    pthread_cond_t end;
};

static _Thread_local const zarr_cancel *cancel_of_thread;

const zarr_cancel *zx_cancel_of_thread(void)
{
    return cancel_of_thread;
}

static void *run_errand(void *arg)
{
    struct errand *e = arg;
    zarr_status status;

    cancel_of_thread = e->cancel;
    status = e->work(e->arg, e->cancel, &e->err);
    pthread_mutex_lock(&e->mutex);
    e->status = status;
    e->is_done = true;
    pthread_cond_signal(&e->end);
    pthread_mutex_unlock(&e->mutex);
    return NULL;
}

static bool wait_ms(struct errand *e, long ms)
{
    struct timespec until;
    bool is_done;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&e->mutex);
    while (!e->is_done && pthread_cond_timedwait(&e->end, &e->mutex, &until) == 0)
        ;
    is_done = e->is_done;
    pthread_mutex_unlock(&e->mutex);
    return is_done;
}

/* Waits with looks at signals; after the first that raises, only for the end. */
static void watch(struct errand *e)
{
    bool is_done = false;

    while (!is_done) {
        Py_BEGIN_ALLOW_THREADS is_done = wait_ms(e, LOOK_MS);
        Py_END_ALLOW_THREADS if (!is_done && !PyErr_Occurred() && PyErr_CheckSignals())
            zarr_cancel_set(e->cancel);
    }
}

zarr_status zx_call(zx_state *st, zx_work work, void *arg, const zarr_array *array)
{
    struct errand e = {.work = work, .arg = arg, .mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_condattr_t monotonic; /* a set clock neither shortens nor lengthens a wait */
    pthread_t thread;
    bool is_apart = false;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&e.end, &monotonic);
    pthread_condattr_destroy(&monotonic);

    e.status = zarr_cancel_create(&e.cancel, &e.err);
    if (e.status == ZARR_OK) {
        is_apart =
            zx_is_on_main(st) && pthread_create(&thread, NULL, run_errand, &e) == 0;
        if (is_apart) {
            watch(&e);
            pthread_join(thread, NULL);
        } else {
            Py_BEGIN_ALLOW_THREADS e.status = work(arg, e.cancel, &e.err);
            Py_END_ALLOW_THREADS
        }
        zarr_cancel_free(e.cancel);
    }
    pthread_cond_destroy(&e.end);
    pthread_mutex_destroy(&e.mutex);
    if (zx_check(st, e.status, &e.err, array) || PyErr_Occurred())
        return e.status ? e.status : ZARR_ERR_CANCELLED;
    return ZARR_OK;
}

/* ---- requests --------------------------------------------------------------- */

static void tell(zarr_request *r, PyObject *progress)
{
    zarr_stats stats = ZARR_STATS_INIT;
    PyObject *done;

    zarr_request_progress(r, &stats);
    done = PyObject_CallFunction(progress, "KK", (unsigned long long)stats.chunks_done,
                                 (unsigned long long)stats.chunks_total);
    Py_XDECREF(done);
}

zarr_status zx_wait(zx_state *st, zarr_request *r, PyObject *progress,
                    const zarr_array *array)
{
    const bool looks = zx_is_on_main(st) || progress;
    zarr_status status = ZARR_OK;
    int is_done = 0;
    zarr_error err;

    while (!is_done) {
        Py_BEGIN_ALLOW_THREADS status = zarr_request_wait(
            r, looks ? LOOK_MS * UINT64_C(1000000) : ZARR_WAIT_FOREVER, &is_done, &err);
        Py_END_ALLOW_THREADS if (PyErr_Occurred()) /* cancelled already: wait for the end
                                                    */
            continue;
        if (progress && (!is_done || status == ZARR_OK))
            tell(r, progress);
        if (PyErr_Occurred() || (!is_done && PyErr_CheckSignals()))
            zarr_request_cancel(r);
    }
    Py_BEGIN_ALLOW_THREADS zarr_request_free(r);
    Py_END_ALLOW_THREADS if (zx_check(st, status, &err, array) ||
                             PyErr_Occurred()) return status
        ? status
        : ZARR_ERR_CANCELLED;
    return ZARR_OK;
}
