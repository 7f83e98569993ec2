/*
 * zip/writers.c - the handles of this process that write archives. Two handles of one
 * archive take turns: a handle that begins to write ends the session of the other.
 * Otherwise a thread that uses both would wait for itself. A handle that is opened or
 * that reads also ends the session, and so finds all values of this process.
 *
 * A thread, the keeper, ends sessions in which nothing was written for a while, so that
 * other programs need not wait for a handle that is idle. When the process exits, it ends
 * those that are left, and waits only for the last of them. What it cannot end stays, and
 * is tried again.
 * Thread class: shared.
 */
#include "zip/zip_int.h"

#include "sched/sched.h"

#include <string.h>

#define KEEPER_NS UINT64_C(100000000) /* how often the keeper looks */
enum {
    EXIT_TRIES = 2
};

static struct {
    zr_mutex mutex;
    zr_cond changed;
    struct zr_zip_store *first;
    atomic_uint n; /* how many there are */
    bool keeper_runs, is_exiting;
    struct zr_service keeper;
    struct zr_fork_hook fork;
} writers;
static zr_once writers_once = ZR_ONCE_INIT;

/* The sessions are the parent's. */
static void writers_in_child(void *arg)
{
    ZR_UNUSED(arg);
    zr_cond_init(&writers.changed);
    writers.first = NULL;
    atomic_store(&writers.n, 0);
    writers.keeper_runs = false;
}

static void writers_make(void)
{
    zr_mutex_init(&writers.mutex);
    zr_cond_init(&writers.changed);
    writers.fork = (struct zr_fork_hook){
        .mutex = &writers.mutex, .child = writers_in_child, .rank = 900};
    zr_fork_hook_add(&writers.fork);
}

static void name_place(void *user, const zarr_store_place *p)
{
    struct zr_str *out = user;
    const char *part[] = {p->scheme, p->endpoint, p->bucket, p->prefix};

    for (size_t i = 0; i < ZR_COUNT(part); i++)
        zr_str_printf(out, "%s|", part[i] ? part[i] : "");
}

/* With the mutex, because several threads that read may need the place. */
static zarr_status make_place_locked(struct zr_zip_store *z, zarr_error *err)
{
    struct zr_str text;
    zarr_status st = ZARR_OK;

    if (z->writer.place)
        return ZARR_OK;
    zr_str_init(&text, z->archive.env.alloc);
    zarr_store_tell_place(z->archive.store, name_place, &text);
    if (text.bytes == 0) /* handles of one store */
        zr_str_printf(&text, "%p|", (void *)z->archive.store);
    zr_str_puts(&text, z->archive.key);
    ZR_TRY(zr_str_status(&text, err));
    z->writer.place = zr_str_take(&text);
    if (!z->writer.place)
        st = zr_fail_memory(err, text.bytes);
out:
    zr_str_deinit(&text);
    return st;
}

/* ---- the keeper ---- */

/* While the process exits: first those that were not tried yet. */
static struct zr_zip_store *find_left_locked(void)
{
    for (unsigned tries = 0; tries < EXIT_TRIES; tries++)
        for (struct zr_zip_store *z = writers.first; z; z = z->writer.next)
            if (z->writer.n_tries == tries)
                return z;
    return NULL;
}

static struct zr_zip_store *find_idle_locked(uint64_t now_ns)
{
    if (writers.is_exiting)
        return find_left_locked();
    for (struct zr_zip_store *z = writers.first; z; z = z->writer.next)
        if (atomic_load(&z->idle_at_ns) <= now_ns)
            return z;
    return NULL;
}

/* n_tries: while the process exits; 0: it does not. Only the last try waits for a thread
 * that is busy. */
static void end_idle(struct zr_zip_store *z, unsigned n_tries)
{
    zarr_status st = ZARR_OK;

    if (n_tries == EXIT_TRIES) {
        (void)zr_zip_busy_begin(z, NULL, NULL);
    } else if (!zr_zip_busy_try(z)) {
        atomic_store(&z->idle_at_ns, zr_now_ns() + KEEPER_NS);
        return;
    }
    if (n_tries > 0 || atomic_load(&z->idle_at_ns) <= zr_now_ns())
        st = zr_zip_session_end(z, NULL);
    if (st != ZARR_OK)
        zr_zip_session_used(z); /* is tried again later */
    zr_zip_busy_end(z);
}

static void keep(void *unused)
{
    struct zr_zip_store *z = NULL;
    unsigned n_tries = 0;

    ZR_UNUSED(unused);
    zr_mutex_lock(&writers.mutex);
    while ((z = find_idle_locked(zr_now_ns())) || !writers.is_exiting) {
        if (z) {
            z->writer.n_visitors++;
            n_tries = writers.is_exiting ? ++z->writer.n_tries : 0;
            zr_mutex_unlock(&writers.mutex);
            end_idle(z, n_tries);
            zr_mutex_lock(&writers.mutex);
            z->writer.n_visitors--;
            zr_cond_broadcast(&writers.changed);
        } else {
            (void)zr_cond_wait_until(&writers.changed, &writers.mutex,
                                     writers.first ? zr_now_ns() + KEEPER_NS
                                                   : UINT64_MAX);
        }
    }
    zr_mutex_unlock(&writers.mutex);
}

static void stop_keeper(void *unused)
{
    ZR_UNUSED(unused);
    zr_mutex_lock(&writers.mutex);
    writers.is_exiting = true;
    zr_cond_broadcast(&writers.changed);
    zr_mutex_unlock(&writers.mutex);
}

/* Without a thread, sessions end with a flush. Called with no lock held. */
static void start_keeper(void)
{
    writers.keeper = (struct zr_service){.serve = keep, .stop = stop_keeper};
    if (zr_service_start(&writers.keeper, NULL) == ZARR_OK)
        return;
    zr_mutex_lock(&writers.mutex);
    writers.keeper_runs = false;
    zr_mutex_unlock(&writers.mutex);
}

/* ---- turns ---- */

static struct zr_zip_store *find_other_locked(const struct zr_zip_store *z)
{
    for (struct zr_zip_store *o = writers.first; o; o = o->writer.next)
        if (o != z && strcmp(o->writer.place, z->writer.place) == 0)
            return o;
    return NULL;
}

static zarr_status end_other(struct zr_zip_store *o, const zarr_cancel *cancel,
                             zarr_error *err)
{
    zarr_status st = zr_zip_busy_begin(o, cancel, err);

    if (st != ZARR_OK)
        return st;
    st = zr_zip_session_end(o, err);
    zr_zip_busy_end(o);
    return st == ZARR_OK ? st
                         : zr_prefix(err, st, "%s: another handle writes this archive",
                                     o->archive.key);
}

/* Ends the sessions of other handles. Called and returns with the mutex locked. */
static zarr_status end_others_locked(struct zr_zip_store *z, const zarr_cancel *cancel,
                                     zarr_error *err)
{
    struct zr_zip_store *o = NULL;
    zarr_status st = ZARR_OK;

    while (st == ZARR_OK && (o = find_other_locked(z))) {
        o->writer.n_visitors++;
        zr_mutex_unlock(&writers.mutex);
        st = end_other(o, cancel, err);
        zr_mutex_lock(&writers.mutex);
        o->writer.n_visitors--;
        zr_cond_broadcast(&writers.changed);
    }
    return st;
}

zarr_status zr_zip_writer_end_others(struct zr_zip_store *z, const zarr_cancel *cancel,
                                     zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (atomic_load_explicit(&writers.n, memory_order_acquire) == 0)
        return ZARR_OK;
    zr_mutex_lock(&writers.mutex);
    st = make_place_locked(z, err);
    if (st == ZARR_OK)
        st = end_others_locked(z, cancel, err);
    zr_mutex_unlock(&writers.mutex);
    return st;
}

zarr_status zr_zip_writer_claim(struct zr_zip_store *z, const zarr_cancel *cancel,
                                zarr_error *err)
{
    bool starts_keeper = false;
    zarr_status st = ZARR_OK;

    zr_call_once(&writers_once, writers_make);
    zr_mutex_lock(&writers.mutex);
    st = make_place_locked(z, err);
    if (st == ZARR_OK)
        st = end_others_locked(z, cancel, err);
    if (st == ZARR_OK) {
        atomic_store(&z->idle_at_ns, UINT64_MAX); /* until it has the lock */
        z->writer.next = writers.first;
        writers.first = z;
        atomic_fetch_add(&writers.n, 1);
        starts_keeper = !writers.keeper_runs;
        writers.keeper_runs = true;
        zr_cond_broadcast(&writers.changed);
    }
    zr_mutex_unlock(&writers.mutex);
    if (starts_keeper)
        start_keeper();
    return st;
}

static void leave_locked(struct zr_zip_store *z)
{
    struct zr_zip_store **p = &writers.first;

    while (*p && *p != z)
        p = &(*p)->writer.next;
    if (*p) {
        *p = z->writer.next;
        atomic_fetch_sub(&writers.n, 1);
    }
}

void zr_zip_writer_release(struct zr_zip_store *z)
{
    zr_mutex_lock(&writers.mutex);
    leave_locked(z);
    zr_mutex_unlock(&writers.mutex);
}

void zr_zip_writer_leave(struct zr_zip_store *z)
{
    if (!z->writer.place) /* it never looked */
        return;
    zr_call_once(&writers_once, writers_make);
    zr_mutex_lock(&writers.mutex);
    leave_locked(z);
    while (z->writer.n_visitors > 0)
        zr_cond_wait(&writers.changed, &writers.mutex);
    zr_mutex_unlock(&writers.mutex);
    zr_free(z->archive.env.alloc, z->writer.place);
}
