/* interrupt.c - long calls that Ctrl-C stops. Python runs its signal handlers only on the
 * main thread, between bytecodes. So the main thread leaves the work to another thread,
 * or to a request, and looks for signals while it waits. Other threads do the work
 * themselves. */
#include "ext.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_MS = 50 /* how often the main thread looks for signals */
};

bool zx_is_on_main(const zx_state *st)
{
    return PyThread_get_thread_ident() == st->main_thread;
}

/* ---- work on another thread --------------------------------------------------- */

struct errand {
    zx_work work;
    void *arg;
    zarr_cancel *cancel;
    zarr_error err;
    zarr_status status;
    bool is_done;
};

/* The thread that works for the main thread. It starts at the first errand and then waits
 * for the next one, because to start a thread takes longer than many errands. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t begin, end;
    struct errand *next; /* to begin */
    bool is_busy;        /* a signal handler that makes a call finds it so */
    pid_t process;       /* that has the thread: a forked child has none */
} helper;

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
    pthread_mutex_lock(&helper.mutex);
    e->status = status;
    e->is_done = true;
    pthread_cond_broadcast(&helper.end);
    pthread_mutex_unlock(&helper.mutex);
    return NULL;
}

static void *run_errands(void *unused)
{
    (void)unused;
    for (;;) {
        struct errand *e;

        pthread_mutex_lock(&helper.mutex);
        while (!helper.next)
            pthread_cond_wait(&helper.begin, &helper.mutex);
        e = helper.next;
        helper.next = NULL;
        pthread_mutex_unlock(&helper.mutex);
        run_errand(e);
    }
    return NULL;
}

/* Only the main thread calls it. False: no thread can be started. */
static bool start_helper(void)
{
    pthread_condattr_t monotonic; /* a set clock neither shortens nor lengthens a wait */
    pthread_t thread;

    if (helper.process == getpid())
        return true;
    pthread_mutex_init(&helper.mutex, NULL);
    pthread_cond_init(&helper.begin, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&helper.end, &monotonic);
    pthread_condattr_destroy(&monotonic);
    helper.next = NULL;
    helper.is_busy = false;
    if (pthread_create(&thread, NULL, run_errands, NULL) != 0)
        return false;
    pthread_detach(thread);
    helper.process = getpid();
    return true;
}

static bool wait_ms(struct errand *e, long ms)
{
    struct timespec until;
    bool is_done;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&helper.mutex);
    while (!e->is_done && pthread_cond_timedwait(&helper.end, &helper.mutex, &until) == 0)
        ;
    is_done = e->is_done;
    pthread_mutex_unlock(&helper.mutex);
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

/* On the main thread. False: there is no thread for it, and nothing was done. */
static bool run_apart(struct errand *e)
{
    pthread_t thread;

    if (!start_helper())
        return false;
    if (helper.is_busy) {
        if (pthread_create(&thread, NULL, run_errand, e) != 0)
            return false;
        watch(e);
        pthread_join(thread, NULL);
        return true;
    }
    helper.is_busy = true;
    pthread_mutex_lock(&helper.mutex);
    helper.next = e;
    pthread_cond_signal(&helper.begin);
    pthread_mutex_unlock(&helper.mutex);
    watch(e);
    helper.is_busy = false;
    return true;
}

zarr_status zx_call(zx_state *st, zx_work work, void *arg, const zarr_array *array)
{
    struct errand e = {.work = work, .arg = arg};

    e.status = zarr_cancel_create(&e.cancel, &e.err);
    if (e.status == ZARR_OK && !(zx_is_on_main(st) && run_apart(&e))) {
        Py_BEGIN_ALLOW_THREADS e.status = work(arg, e.cancel, &e.err);
        Py_END_ALLOW_THREADS
    }
    zarr_cancel_free(e.cancel);
    if (zx_check(st, e.status, &e.err, array) || PyErr_Occurred())
        return e.status ? e.status : ZARR_ERR_CANCELLED;
    return ZARR_OK;
}

zarr_status zx_call_store(const zx_store *store, zx_work work, void *arg)
{
    zarr_error err;
    zarr_status status;

    if (!store->is_fast)
        return zx_call(store->st, work, arg, NULL);
    Py_BEGIN_ALLOW_THREADS status = work(arg, NULL, &err);
    Py_END_ALLOW_THREADS if (zx_check(store->st, status, &err, NULL)) return status
        ? status
        : ZARR_ERR_CANCELLED;
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
