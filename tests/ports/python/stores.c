#include "stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a dictionary ------------------------------------------------------------ */

static unsigned dict_find(const struct dict *d, const char *key)
{
    unsigned i = 0;

    MUST(host_locked());
    while (i < d->n && strcmp(d->key[i], key) != 0)
        i++;
    return i;
}

struct bytes *dict_get(struct dict *d, const char *key)
{
    const unsigned i = dict_find(d, key);

    d->gets++;
    return i < d->n ? d->value[i] : NULL;
}

static void dict_remove(struct dict *d, unsigned i)
{
    free(d->key[i]);
    d->n--;
    d->key[i] = d->key[d->n];
    d->value[i] = d->value[d->n];
}

void dict_set(struct dict *d, const char *key, struct bytes *value)
{
    const unsigned i = dict_find(d, key);

    *(value ? &d->sets : &d->deletes) += 1;
    if (i < d->n)
        bytes_drop(d->value[i]);
    if (!value) {
        if (i < d->n)
            dict_remove(d, i);
        return;
    }
    MUST(i < DICT_KEYS);
    if (i == d->n) {
        d->key[d->n++] = strdup(key);
        MUST(d->key[i]);
    }
    d->value[i] = value;
}

void dict_clear(struct dict *d)
{
    while (d->n > 0) {
        bytes_drop(d->value[0]);
        dict_remove(d, 0);
    }
    d->gets = d->sets = d->deletes = 0;
}

struct loading {
    struct dict *to;
    zarr_store *from;
};

static int load_one(void *user, const zarr_store_item *item)
{
    struct loading *l = user;
    char data[16384];
    uint64_t n = sizeof data;
    zarr_error err;

    MUST(zarr_store_get(l->from, item->key, 0, data, &n, NULL, &err) == ZARR_OK);
    MUST(n < sizeof data);
    host_lock();
    dict_set(l->to, item->key, bytes_new(data, n));
    host_unlock();
    return 0;
}

void dict_load(struct dict *d, zarr_store *from)
{
    struct loading l = {d, from};
    zarr_error err;

    MUST(zarr_store_list(from, "", ZARR_LIST_RECURSIVE, load_one, &l, NULL, &err) ==
         ZARR_OK);
}

/* ---- an asynchronous store ----------------------------------------------------- */

/* The operations of one submit. */
struct task {
    struct async_store *store;
    void (*done)(void *arg, zarr_store_op *op, const zarr_error *err);
    void *arg;
    uint64_t n;
    struct task *next; /* that hangs */
    zarr_store_op *op[];
};

static void do_get(struct async_store *s, zarr_store_op *op)
{
    struct bytes *value = dict_get(&s->values, op->key);
    uint64_t from = op->offset, n = op->length;

    if (!value) {
        op->status = ZARR_ERR_NOT_FOUND;
        return;
    }
    if (from == ZARR_STORE_SUFFIX)
        from = n < value->n ? value->n - n : 0;
    from = from < value->n ? from : value->n;
    n = n < value->n - from ? n : value->n - from;
    n = n < op->mem.bytes ? n : op->mem.bytes;
    if (n > 0)
        memcpy((char *)op->mem.handle + op->mem.offset, value->data + from, (size_t)n);
    op->done_bytes = n;
    op->object_bytes = value->n;
    op->status = ZARR_OK;
}

static void do_op(struct async_store *s, zarr_store_op *op, zarr_error *err)
{
    struct bytes *value;

    if (s->trouble == ASYNC_RAISES &&
        (op->flags & ZARR_STORE_OP_KIND) != ZARR_STORE_OP_DOCUMENT) {
        op->status = err->code = ZARR_ERR_IO;
        op->os_code = err->os_code = ASYNC_EXCEPTION;
        err->os_domain = ZARR_OS_STORE;
        snprintf(err->message, sizeof err->message, "OSError: the bucket is gone");
        return;
    }
    switch (op->verb) {
    case ZARR_STORE_GET:
        do_get(s, op);
        break;
    case ZARR_STORE_PUT:
        dict_set(&s->values, op->key,
                 bytes_new((char *)op->mem.handle + op->mem.offset, op->length));
        op->done_bytes = op->length;
        op->status = ZARR_OK;
        break;
    case ZARR_STORE_ERASE:
        dict_set(&s->values, op->key, NULL);
        op->status = ZARR_OK;
        break;
    case ZARR_STORE_STAT:
        value = dict_get(&s->values, op->key);
        op->status = value ? ZARR_OK : ZARR_ERR_NOT_FOUND;
        op->object_bytes = value ? value->n : UINT64_MAX;
        break;
    default:
        op->status = ZARR_ERR_UNSUPPORTED;
    }
}

/* The library's functions are called without the lock. */
static void task_end(struct task *t, const zarr_error *err)
{
    host_unlock();
    for (uint64_t i = 0; i < t->n; i++)
        t->done(t->arg, t->op[i], t->op[i]->status == ZARR_OK ? NULL : &err[i]);
    host_lock();
    free(t);
}

static void task_run(void *arg)
{
    struct task *t = arg;
    zarr_error *err;

    if (t->store->trouble == ASYNC_HANGS) {
        t->next = t->store->hanging;
        t->store->hanging = t;
        return;
    }
    err = calloc((size_t)t->n, sizeof *err);
    MUST(err);
    for (uint64_t i = 0; i < t->n; i++)
        do_op(t->store, t->op[i], &err[i]);
    task_end(t, err);
    free(err);
}

static void async_submit(void *self, zarr_store_op **ops, uint64_t n,
                         void (*done)(void *, zarr_store_op *, const zarr_error *),
                         void *arg)
{
    struct async_store *s = self;
    struct task *t = malloc(sizeof *t + (size_t)n * sizeof(zarr_store_op *));

    MUST(t && !host_locked());
    *t = (struct task){.store = s, .done = done, .arg = arg, .n = n};
    memcpy(t->op, ops, (size_t)n * sizeof(zarr_store_op *));
    host_lock();
    s->rounds++;
    s->operations += (unsigned)n;
    host_unlock();
    loop_call(task_run, t);
}

/* Ends what hangs. The order of the calls makes sure that a task is there by then. */
static void task_stop_all(void *arg)
{
    struct async_store *s = arg;

    while (s->hanging) {
        struct task *t = s->hanging;
        zarr_error *err = calloc((size_t)t->n, sizeof *err);

        MUST(err);
        s->hanging = t->next;
        for (uint64_t i = 0; i < t->n; i++)
            t->op[i]->status = err[i].code = ZARR_ERR_CANCELLED;
        task_end(t, err);
        free(err);
    }
}

static void async_cancel(void *self, void *arg)
{
    (void)arg;
    loop_call(task_stop_all, self);
}

static void async_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE |
                 ZARR_STORE_CAP_ATOMIC_PUT;
    out->parallel = 64;
}

zarr_status async_store_open(zarr_store **out, zarr_context *ctx,
                             struct async_store *self, zarr_error *err)
{
    static const zarr_store_vtable table = {.struct_size = sizeof table,
                                            .name = "async",
                                            .caps = async_caps,
                                            .submit = async_submit,
                                            .cancel = async_cancel};

    return zarr_store_open_custom(out, ctx, &table, self, NULL, err);
}
