/* bench/device/store.c - see store.h. */
#include "store.h"

#include "model.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEPT = 128 * 1024, /* bytes at the end of a value */
    ALL = 4096,        /* values */
    WAITING = 65536
};

struct value {
    char key[120];
    uint64_t bytes, kept;
    unsigned char *end;
};
typedef void (*done_fn)(void *arg, zarr_store_op *op, const zarr_error *err);
struct waiting {
    zarr_store_op *op;
    done_fn done;
    void *arg;
    double due;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t more;
    pthread_t thread;
    int running, stop;
    double rate, free_at;
    struct value value[ALL];
    uint32_t n;
    struct waiting queue[WAITING]; /* a ring; due times rise */
    uint32_t first, n_queue;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static struct value *find(const char *key)
{
    for (uint32_t i = 0; i < all.n; i++)
        if (strcmp(all.value[i].key, key) == 0)
            return &all.value[i];
    return NULL;
}

static zarr_status put(const zarr_store_op *op)
{
    const unsigned char *bytes = (const unsigned char *)op->mem.handle + op->mem.offset;
    struct value *v = find(op->key);

    if (!v) {
        if (all.n == ALL || strlen(op->key) >= sizeof v->key)
            return ZARR_ERR_LIMIT;
        v = &all.value[all.n++];
        *v = (struct value){0};
        snprintf(v->key, sizeof v->key, "%s", op->key);
    }
    free(v->end);
    v->bytes = op->mem.bytes;
    v->kept = v->bytes < KEPT ? v->bytes : KEPT;
    v->end = malloc(v->kept + 1);
    if (!v->end)
        return ZARR_ERR_NO_MEMORY;
    if (v->kept > 0)
        memcpy(v->end, bytes + (v->bytes - v->kept), v->kept);
    return ZARR_OK;
}

/* A range of a chunk comes without its bytes, unless it is at the end, where an index
 * is. */
static zarr_status get(zarr_store_op *op)
{
    const struct value *v = find(op->key);
    uint64_t from, n, lost;

    if (!v)
        return ZARR_ERR_NOT_FOUND;
    op->object_bytes = v->bytes;
    from = op->offset;
    n = op->length < op->mem.bytes ? op->length : op->mem.bytes;
    if (from == ZARR_STORE_SUFFIX) {
        n = n < v->bytes ? n : v->bytes;
        from = v->bytes - n;
    }
    if (from > v->bytes)
        from = v->bytes;
    if (n > v->bytes - from)
        n = v->bytes - from;
    op->done_bytes = n;
    lost = v->bytes - v->kept;
    if (from >= lost && n > 0)
        memcpy((unsigned char *)op->mem.handle + op->mem.offset, v->end + (from - lost),
               n);
    return ZARR_OK;
}

static zarr_status carry_out(zarr_store_op *op)
{
    op->done_bytes = 0;
    switch (op->verb) {
    case ZARR_STORE_GET:
        return get(op);
    case ZARR_STORE_PUT:
        op->done_bytes = op->mem.bytes;
        return put(op);
    default:
        return ZARR_ERR_UNSUPPORTED;
    }
}

static void *answer(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&all.mutex);
    for (;;) {
        struct waiting w;
        zarr_error err = ZARR_ERROR_INIT;

        while (all.n_queue == 0 && !all.stop)
            pthread_cond_wait(&all.more, &all.mutex);
        if (all.n_queue == 0)
            break;
        w = all.queue[all.first];
        all.first = (all.first + 1) % WAITING;
        all.n_queue--;
        pthread_mutex_unlock(&all.mutex);
        model_sleep(w.due);
        err.code = w.op->status;
        w.done(w.arg, w.op, &err);
        pthread_mutex_lock(&all.mutex);
    }
    pthread_mutex_unlock(&all.mutex);
    return NULL;
}

/* Whether an operation takes the time of the model. */
static int takes_time(const zarr_store_op *op)
{
    return all.rate > 0 && op->status == ZARR_OK && op->done_bytes > KEPT &&
           all.n_queue < WAITING;
}

static void submit(void *self, zarr_store_op **ops, uint64_t n, done_fn done, void *arg)
{
    (void)self;
    for (uint64_t i = 0; i < n; i++) {
        zarr_store_op *op = ops[i];
        zarr_error err = ZARR_ERROR_INIT;
        int later;

        pthread_mutex_lock(&all.mutex);
        op->status = carry_out(op);
        later = takes_time(op);
        if (later) {
            const double now = model_now();

            all.free_at = (all.free_at > now ? all.free_at : now) +
                          (double)op->done_bytes / (all.rate * 1e9);
            all.queue[(all.first + all.n_queue++) % WAITING] =
                (struct waiting){op, done, arg, all.free_at};
            pthread_cond_signal(&all.more);
        }
        pthread_mutex_unlock(&all.mutex);
        err.code = op->status;
        if (!later)
            done(arg, op, &err);
    }
}

static void caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE;
}

void model_store_rate(double gb_s)
{
    if (!all.running && pthread_create(&all.thread, NULL, answer, NULL) != 0)
        exit(1);
    all.running = 1;
    pthread_mutex_lock(&all.mutex);
    all.rate = gb_s;
    pthread_mutex_unlock(&all.mutex);
}

const zarr_store_vtable *model_store(void)
{
    static const zarr_store_vtable table = {
        .struct_size = sizeof table, .name = "model", .caps = caps, .submit = submit};

    return &table;
}

void model_store_end(void)
{
    if (all.running) {
        pthread_mutex_lock(&all.mutex);
        all.stop = 1;
        pthread_cond_signal(&all.more);
        pthread_mutex_unlock(&all.mutex);
        pthread_join(all.thread, NULL);
    }
    for (uint32_t i = 0; i < all.n; i++)
        free(all.value[i].end);
    all.n = 0;
    all.running = all.stop = 0;
}
