/*
 * store/submit.c - many operations in flight. A store with an event loop gets the
 * operations that it can do itself, in one batch. All others are run by the thread that
 * submits them and by tasks on the thread pool: operations of stores that only have
 * `run`, and those that are emulated, may wait for a lock by key, or take the lock of the
 * store. Each of these threads takes the next operation until none is left. So a batch
 * never waits for a busy pool: many requests that are themselves tasks could fill it and
 * wait for each other's.
 *
 * Each thread starts one more task before it works. If that one has not begun at the end,
 * the thread takes it back, so at most one task waits in the pool without work to do, and
 * no batch waits for it.
 *
 * A batch is one block: counts, the operations, the tasks. It is freed before the last
 * done() is called, so that done() may free everything, also the store. The last
 * completion is held back until no task can use the batch any more.
 *
 * An operation may fork. The child runs no other operation and completes none.
 *
 * Thread class: shared.
 */
#include "store/store_int.h"

#include "sched/sched.h"

struct store_batch {
    zarr_store *store;
    zr_store_done_fn done;
    void *arg;
    struct store_batch *next, *prev; /* under the store's mutex */
    uint64_t generation;             /* of forks */
    /* References: one for each operation if native, else one for each task. A submit and
     * a cancel hold one too. */
    atomic_uint_fast64_t refs;
    atomic_uint_fast64_t next_op, ops_left; /* for tasks */
    atomic_uint_fast32_t tasks_started;
    atomic_bool is_cancelled;
    bool is_native;
    uint64_t n_ops;
    uint32_t n_tasks;
    struct zr_task *task; /* stored after the operations */
    /* native: locks of the writes that would otherwise wait, one for each operation;
     * op->tag points to its own */
    struct zr_keylock *locks;
    zarr_store_op *last_op; /* its done() is held back */
    zarr_error last_err;
    zarr_store_op *op[];
};

/* ---- life of a batch ---- */

static zarr_status batch_create(struct store_batch **out, zarr_store *s, uint64_t n_ops,
                                uint32_t n_tasks, zarr_error *err)
{
    uint64_t ops_bytes = 0, bytes = 0, tasks_bytes = n_tasks * sizeof(struct zr_task);
    struct store_batch *b = NULL;

    if (zr_mul(n_ops, sizeof b->op[0], &ops_bytes) &&
        zr_add(ops_bytes, sizeof *b + tasks_bytes, &bytes))
        b = zr_malloc(s->env.alloc, (size_t)bytes);
    if (!b)
        return zr_fail_memory(err, bytes);
    *b = (struct store_batch){.store = s,
                              .generation = zr_fork_generation(),
                              .n_ops = n_ops,
                              .n_tasks = n_tasks};
    b->task = (struct zr_task *)(void *)&b->op[n_ops];
    *out = b;
    return ZARR_OK;
}

static void batch_link(struct store_batch *b)
{
    zarr_store *s = b->store;

    zr_mutex_lock(&s->locked.mutex);
    b->next = s->locked.batches;
    if (b->next)
        b->next->prev = b;
    s->locked.batches = b;
    zr_mutex_unlock(&s->locked.mutex);
}

static void batch_unlink_locked(struct store_batch *b)
{
    if (b->prev)
        b->prev->next = b->next;
    else if (b->store->locked.batches == b)
        b->store->locked.batches = b->next;
    if (b->next)
        b->next->prev = b->prev;
}

static void batch_unref(struct store_batch *b)
{
    zr_store_done_fn done = b->done;
    zarr_store *s = b->store;
    zarr_store_op *op;
    zarr_error err;
    void *arg = b->arg;

    if (atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    zr_mutex_lock(&s->locked.mutex);
    batch_unlink_locked(b);
    zr_mutex_unlock(&s->locked.mutex);
    op = b->last_op;
    if (op && op->status != ZARR_OK)
        err = b->last_err;
    zr_free(s->env.alloc, b->locks);
    zr_free(s->env.alloc, b);
    if (op)
        done(arg, op, op->status != ZARR_OK ? &err : NULL);
}

/* ---- operations that the store does itself ---- */

static void batch_native_finish(void *arg, zarr_store_op *op, const zarr_error *err)
{
    struct store_batch *b = arg;
    zr_store_done_fn done = b->done;
    void *const done_arg = b->arg;
    zarr_error own;

    zr_error_clear(&own);
    if (op->status != ZARR_OK && err) {
        own = *err;
        zr_error_distrust(&own);
    }
    zr_op_distrust(b->store, op, &own);
    if (op->tag && op->verb == ZARR_STORE_GET)
        zr_emulate_pin_end(op, &own);
    else if (op->tag)
        zr_keylocks_give(&b->store->keylocks, op->tag);
    op->tag = NULL;
    if (op->status != ZARR_OK)
        (void)zr_op_fail(op, &own);
    batch_unref(b); /* before done(), which may free what the batch needs */
    done(done_arg, op, op->status != ZARR_OK ? &own : NULL);
}

/* ---- operations on this thread and the pool ---- */

/* Returns false in a forked child. */
static bool batch_run_one(struct store_batch *b, zarr_store_op *op)
{
    zarr_error err;

    if (atomic_load(&b->is_cancelled) || (op->cancel && zr_is_cancelled(op->cancel)))
        zr_op_end(op, zr_fail(&err, ZARR_ERR_CANCELLED, "%s: cancelled", op->key), 0);
    else
        (void)zr_store_run_one(b->store, op, &err);
    if (zr_has_forked(b->generation))
        return false;
    if (atomic_fetch_sub(&b->ops_left, 1) > 1) {
        b->done(b->arg, op, op->status != ZARR_OK ? &err : NULL);
        return !zr_has_forked(b->generation);
    }
    b->last_op = op;
    if (op->status != ZARR_OK)
        b->last_err = err;
    return true;
}

static void batch_task(void *arg);

/* Starts one more task if there is an operation left for it. */
static struct zr_task *batch_start_task(struct store_batch *b)
{
    struct zr_task *t = NULL;
    uint_fast32_t i;

    if (b->n_ops - 1 <= atomic_load(&b->next_op)) /* this thread takes one */
        return NULL;
    i = atomic_fetch_add(&b->tasks_started, 1);
    if (i >= b->n_tasks)
        return NULL;
    t = &b->task[i];
    *t = (struct zr_task){.fn = batch_task, .arg = b};
    atomic_fetch_add(&b->refs, 1);
    if (zr_task_submit(t, NULL) == ZARR_OK)
        return t;
    atomic_fetch_sub(&b->refs, 1); /* there is no thread: this one does it all */
    return NULL;
}

/* Runs operations on this thread, which holds a reference, until none is left to begin.
 * Returns false in a forked child: threads of the parent use the batch. */
static bool batch_work(struct store_batch *b)
{
    struct zr_task *next = batch_start_task(b);
    uint64_t i;

    while ((i = atomic_fetch_add(&b->next_op, 1)) < b->n_ops)
        if (!batch_run_one(b, b->op[i]))
            return false;
    if (next && zr_task_withdraw(next))
        atomic_fetch_sub(&b->refs, 1); /* its own */
    return true;
}

static void batch_task(void *arg)
{
    struct store_batch *b = arg;

    if (batch_work(b))
        batch_unref(b);
}

/* As many threads as operations that should be in flight. */
static uint32_t batch_count_threads(const zarr_store *s, uint64_t n_ops)
{
    uint32_t n = s->caps.parallel != 0 ? s->caps.parallel : zr_cpu_count();

    return (uint32_t)ZR_MIN(n_ops, ZR_MIN(n, ZR_MAX_THREADS));
}

/* ---- submitting ---- */

static void submit_refuse(zarr_store_op *op, const zarr_error *err, zr_store_done_fn done,
                          void *arg)
{
    op->done_bytes = 0;
    zr_op_end(op, err->code, 0);
    done(arg, op, err);
}

/* Starts a filled batch, and works on it. The caller must not touch b afterwards. */
static void submit_start(struct store_batch *b)
{
    zarr_store *s = b->store;
    bool here = true;

    /* This call holds one reference: the array of pointers must last until submit
     * returns. */
    atomic_init(&b->refs, b->is_native ? b->n_ops + 1 : 1);
    atomic_init(&b->ops_left, b->n_ops);
    batch_link(b);
    if (b->is_native)
        s->vt.submit(s->self, b->op, b->n_ops, batch_native_finish, b);
    else
        here = batch_work(b);
    if (here)
        batch_unref(b);
}

enum submit_way {
    SUBMIT_NATIVE,
    SUBMIT_TASKED,
    SUBMIT_REFUSED
};

static enum submit_way choose_submit_way(const zarr_store *s, const zarr_store_op *op)
{
    const enum zr_lock_kind kind = zr_op_lock_kind(s, op);
    zarr_error err;

    if (zr_op_check(s, op, &err) != ZARR_OK)
        return SUBMIT_REFUSED;
    return s->vt.submit &&
                   (kind == ZR_LOCK_NONE || (kind == ZR_LOCK_HANDLE && op->tag)) &&
                   (!zr_op_needs_emulation(s, op) || zr_emulate_is_only_pin(s, op) ||
                    zr_emulate_is_only_lock(s, op))
               ? SUBMIT_NATIVE
               : SUBMIT_TASKED;
}

/* Makes an empty batch for n operations of one way; none if n is 0. */
static zarr_status submit_prepare(struct store_batch **out, zarr_store *s,
                                  enum submit_way way, uint64_t n, zr_store_done_fn done,
                                  void *arg, zarr_error *err)
{
    /* one of the threads is the caller's */
    uint32_t n_tasks = way == SUBMIT_NATIVE || n == 0 ? 0 : batch_count_threads(s, n) - 1;
    zarr_status st = n == 0 ? ZARR_OK : batch_create(out, s, n, n_tasks, err);

    if (st == ZARR_OK && n > 0) {
        (*out)->done = done;
        (*out)->arg = arg;
        (*out)->is_native = way == SUBMIT_NATIVE;
    }
    return st;
}

/* Checks every operation before it starts any: a started operation may be freed at once.
 * done_bytes has the way of each: another thread may find out meanwhile that the store
 * can do more, and a batch has room for the operations that were counted. */
static void submit_fill(zarr_store *s, zarr_store_op **ops, uint64_t n,
                        struct store_batch **batch, zr_store_done_fn done, void *arg)
{
    uint64_t used[2] = {0, 0};
    zarr_error err;

    for (uint64_t i = 0; i < n; i++) {
        zarr_store_op *op = ops[i];
        const enum submit_way way = (enum submit_way)op->done_bytes;

        if (way == SUBMIT_REFUSED) {
            (void)zr_op_check(s, op, &err);
            submit_refuse(op, &err, done, arg);
            continue;
        }
        zr_op_begin(op);
        if (way == SUBMIT_NATIVE && (op->flags & ZR_STORE_OP_PINNED) && !s->native)
            zr_emulate_pin_begin(s, op);
        else if (way == SUBMIT_NATIVE && zr_emulate_is_only_lock(s, op))
            zr_emulate_lock_begin(op);
        batch[way]->op[used[way]++] = op;
    }
}

/* Takes the locks that writes would wait for and that are free, so that the store itself
 * gets these writes. Nothing is waited for. Without memory they run as tasks. */
static struct zr_keylock *submit_lock(zarr_store *s, zarr_store_op **ops, uint64_t n)
{
    struct zr_keylock *locks = NULL;
    bool wanted = false;
    zarr_error err;
    size_t bytes;

    for (uint64_t i = 0; i < n; i++) {
        ops[i]->tag = NULL;
        wanted = wanted || zr_op_lock_kind(s, ops[i]) == ZR_LOCK_HANDLE;
    }
    if (wanted && s->vt.submit && zr_fits(n, &bytes))
        locks = zr_calloc(s->env.alloc, bytes, sizeof *locks);
    for (uint64_t i = 0; locks && i < n; i++)
        if (zr_op_lock_kind(s, ops[i]) == ZR_LOCK_HANDLE &&
            zr_op_check(s, ops[i], &err) == ZARR_OK &&
            !zr_op_needs_emulation(s, ops[i]) &&
            zr_keylocks_try(&s->keylocks, &locks[i], ops[i]->key))
            ops[i]->tag = &locks[i];
    return locks;
}

static void submit_unlock(zarr_store *s, struct zr_keylock *locks, zarr_store_op **ops,
                          uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (ops[i]->tag)
            zr_keylocks_give(&s->keylocks, ops[i]->tag);
    zr_free(s->env.alloc, locks);
}

void zr_store_submit(zarr_store *s, zarr_store_op **ops, uint64_t n,
                     zr_store_done_fn done, void *arg)
{
    struct zr_keylock *locks = NULL;
    struct store_batch *batch[2] = {NULL, NULL};
    uint64_t n_way[3] = {0, 0, 0};
    zarr_error err;
    zarr_status st;

    zarr_store_ref(
        s); /* the last done() may free the caller's reference during this call */
    locks = submit_lock(s, ops, n);
    for (uint64_t i = 0; i < n; i++) {
        ops[i]->done_bytes = choose_submit_way(s, ops[i]);
        n_way[ops[i]->done_bytes]++;
    }
    st = submit_prepare(&batch[SUBMIT_NATIVE], s, SUBMIT_NATIVE, n_way[SUBMIT_NATIVE],
                        done, arg, &err);
    if (st == ZARR_OK)
        st = submit_prepare(&batch[SUBMIT_TASKED], s, SUBMIT_TASKED, n_way[SUBMIT_TASKED],
                            done, arg, &err);
    if (st != ZARR_OK) {
        submit_unlock(s, locks, ops, n);
        zr_free(s->env.alloc, batch[SUBMIT_NATIVE]);
        for (uint64_t i = 0; i < n; i++)
            submit_refuse(ops[i], &err, done, arg);
    } else {
        if (batch[SUBMIT_NATIVE])
            batch[SUBMIT_NATIVE]->locks = locks; /* moved */
        else
            zr_free(s->env.alloc, locks);
        submit_fill(s, ops, n, batch, done, arg);
        for (int way = SUBMIT_NATIVE; way <= SUBMIT_TASKED; way++)
            if (batch[way])
                submit_start(batch[way]);
    }
    zarr_store_free(s);
}

/* Finds a batch of arg that is not cancelled yet, and takes a reference; NULL: none. */
static struct store_batch *cancel_next(zarr_store *s, const void *arg)
{
    struct store_batch *b;
    uint64_t refs;

    zr_mutex_lock(&s->locked.mutex);
    for (b = s->locked.batches; b; b = b->next) {
        if (b->arg != arg || atomic_exchange(&b->is_cancelled, true))
            continue;
        refs = atomic_load(&b->refs);
        while (refs > 0 && !atomic_compare_exchange_weak(&b->refs, &refs, refs + 1))
            ;
        if (refs > 0)
            break; /* otherwise it is just ending */
    }
    zr_mutex_unlock(&s->locked.mutex);
    return b;
}

void zr_store_cancel(zarr_store *s, void *arg)
{
    struct store_batch *b;

    while ((b = cancel_next(s, arg))) {
        if (b->is_native && s->vt.cancel)
            s->vt.cancel(s->self, b);
        batch_unref(b);
    }
}
