/*
 * store/run.c - runs one operation, or several. It refuses what it can refuse without the
 * store: a bad key, a write through a read-only handle, a condition that the store cannot
 * keep. emulate.c does what the store cannot do. If the store has no locks of its own,
 * writes wait for the holder of their key's lock in this handle; for a foreign store that
 * has locks, writes take them. Results of a foreign store are checked before they are
 * used.
 * Thread class: any thread; the caller owns the op.
 */
#include "store/store_int.h"

#include "sched/sched.h"

#include <errno.h>
#include <string.h>

zarr_status zr_op_end(zarr_store_op *op, zarr_status status, int os_code)
{
    op->status = status;
    op->os_code = os_code;
    return status;
}

void zr_op_begin(zarr_store_op *op)
{
    op->done_bytes = 0;
    op->object_bytes = UINT64_MAX;
    op->os_code = 0;
    op->up_bytes = op->down_bytes = 0;
    op->status = ZARR_ERR_INTERNAL; /* until the store sets it */
}

void zr_op_add_copies(zarr_store_op *op, const struct zr_copy_counters *c)
{
    op->up_bytes += c->bytes_up;
    op->down_bytes += c->bytes_down;
}

void zr_op_range(const zarr_store_op *op, uint64_t object_bytes, uint64_t *offset,
                 uint64_t *n)
{
    uint64_t want = op->length;

    if (op->offset == ZARR_STORE_SUFFIX) {
        want = ZR_MIN(want, object_bytes);
        *offset = object_bytes - want;
    } else {
        *offset = ZR_MIN(op->offset, object_bytes);
    }
    *n = ZR_MIN(ZR_MIN(want, op->mem.bytes), object_bytes - *offset);
}

bool zr_store_version_equal(const zarr_store_version *a, const zarr_store_version *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

zarr_status zr_store_check_version(const zarr_store *s, const char *key,
                                   const zarr_store_version *v, zarr_error *err)
{
    if (!zr_store_version_is_none(v))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "%s: the %s store does not tell the version of this value, so it "
                   "cannot be changed safely",
                   key, s->name);
}

void zr_store_version_make(zarr_store_version *out, const uint64_t *number, size_t n)
{
    memset(out, 0, sizeof *out);
    out->bytes[0] = (unsigned char)(n * sizeof *number);
    memcpy(out->bytes + 1, number, n * sizeof *number);
}

uint64_t zr_store_version_number(const zarr_store_version *v, size_t n, size_t i)
{
    uint64_t number = 0;

    if (v->bytes[0] == n * sizeof number)
        memcpy(&number, v->bytes + 1 + i * sizeof number, sizeof number);
    return number;
}

bool zr_op_is_new(const zarr_store_op *op)
{
    return (op->verb == ZARR_STORE_PUT || op->verb == ZARR_STORE_COPY) &&
           (op->flags & ZARR_STORE_OP_IF_VERSION) &&
           zr_store_version_is_none(&op->version);
}

bool zr_op_erases_nothing(const zarr_store_op *op)
{
    return op->verb == ZARR_STORE_ERASE && (op->flags & ZARR_STORE_OP_IF_VERSION) &&
           zr_store_version_is_none(&op->version);
}

/* ---- checks before the store is called ---- */

/* Refuses the condition of an operation if the store cannot keep it. */
static zarr_status run_check_condition(const zarr_store *s, const zarr_store_op *op,
                                       zarr_error *err)
{
    static const struct {
        uint32_t cap;
        const char *verb;
    } needs[] = {
        [ZARR_STORE_GET] = {ZARR_STORE_CAP_VERSIONS, "read"},
        [ZARR_STORE_PUT] = {ZARR_STORE_CAP_PUT_IF_VERSION, "write"},
        [ZARR_STORE_ERASE] = {ZARR_STORE_CAP_ERASE_IF_VERSION, "erase"},
        [ZARR_STORE_COPY] = {ZARR_STORE_CAP_PUT_IF_VERSION, "write"},
        [ZARR_STORE_APPEND] = {ZARR_STORE_CAP_PUT_IF_VERSION, "append"},
    };

    if (zr_store_can_key(s, op->key, needs[op->verb].cap) || zr_op_erases_nothing(op) ||
        (zr_op_is_new(op) && zr_store_can_key(s, op->key, ZARR_STORE_CAP_PUT_NEW)))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "%s: stores of kind %s cannot %s conditionally", op->key, s->name,
                   needs[op->verb].verb);
}

/* The source of a COPY, and its store if the copy's store has the same functions. */
static zarr_status run_check_source(const zarr_store *s, const zarr_store_op *op,
                                    zarr_error *err)
{
    zarr_store_source *from = op->source;
    const zarr_store *t = from && from->store ? from->store : s;

    if (!from || !from->key)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: a copy without a source", op->key);
    from->self =
        t->native == s->native && t->vt.run == s->vt.run && t->vt.submit == s->vt.submit
            ? t->self
            : NULL;
    if (zr_key_validate(from->key, strlen(from->key), err) != ZARR_OK)
        return ZARR_ERR_INVALID;
    if (zr_store_version_is_none(&from->version) ||
        zr_store_can_key(t, from->key, ZARR_STORE_CAP_VERSIONS))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "%s: values in stores of kind %s have no versions", from->key,
                   t->name);
}

static zarr_status run_check_parts(const zarr_store *s, const zarr_store_op *op,
                                   zarr_error *err)
{
    uint64_t end;

    if (op->verb == ZARR_STORE_GET &&
        !zr_store_can_key(s, op->key, ZARR_STORE_CAP_READ_PARTS))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "%s: stores of kind %s read no parts before their commit", op->key,
                       s->name);
    if (!zr_store_can_key(s, op->key, ZARR_STORE_CAP_PARTS))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s: stores of kind %s take no parts",
                       op->key, s->name);
    if (!op->parts)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: parts that were not begun", op->key);
    if ((op->verb == ZARR_STORE_PUT_PART || op->verb == ZARR_STORE_COPY) && op->part == 0)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: part number 0", op->key);
    if (op->verb != ZARR_STORE_PUT &&
        (!zr_add(op->offset, op->mem.bytes, &end) || end > INT64_MAX))
        return zr_fail(err, ZARR_ERR_INVALID, "%s: parts at %" PRIu64, op->key,
                       op->offset);
    if (op->verb == ZARR_STORE_PUT && op->mem.bytes > 0)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: a commit of parts with memory",
                       op->key);
    return ZARR_OK;
}

static zarr_status run_check_write(const zarr_store *s, const zarr_store_op *op,
                                   zarr_error *err)
{
    if (s->read_only)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: the store is open read-only", op->key);
    if (!zr_store_can(s, ZARR_STORE_CAP_WRITE))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s: stores of kind %s cannot write",
                       op->key, s->name);
    if ((op->flags & ZARR_STORE_OP_LOCKED) && !op->lock)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: locked write without a lock", op->key);
    if (op->verb == ZARR_STORE_APPEND &&
        !zr_store_can_key(s, op->key, ZARR_STORE_CAP_APPEND))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "%s: stores of kind %s change no value in place", op->key,
                       s->name);
    if (op->verb == ZARR_STORE_COPY)
        ZR_CHECK(run_check_source(s, op, err));
    if (op->verb == ZARR_STORE_PUT_PART || (op->flags & ZARR_STORE_OP_IN_PARTS))
        ZR_CHECK(run_check_parts(s, op, err));
    return ZARR_OK;
}

/* The flags that an operation may have, besides its kind. */
static uint32_t run_find_flags(const zarr_store *s, const zarr_store_op *op)
{
    enum {
        RUN_WRITE = ZARR_STORE_OP_IF_VERSION | ZARR_STORE_OP_LOCKED
    };
    static const uint32_t known[] = {
        [ZARR_STORE_GET] = ZARR_STORE_OP_IF_VERSION | ZARR_STORE_OP_WANT_VERSION,
        [ZARR_STORE_PUT] = RUN_WRITE | ZR_STORE_OP_SYNCED | ZARR_STORE_OP_WANT_VERSION |
                           ZARR_STORE_OP_IN_PARTS,
        [ZARR_STORE_ERASE] = RUN_WRITE | ZR_STORE_OP_SYNCED | ZR_STORE_OP_GUARDED,
        [ZARR_STORE_COPY] = RUN_WRITE | ZR_STORE_OP_SYNCED | ZARR_STORE_OP_WANT_VERSION |
                            ZR_STORE_OP_BY_STORE,
        [ZARR_STORE_STAT] = ZARR_STORE_OP_WANT_VERSION,
        [ZARR_STORE_PUT_PART] = 0,
        [ZARR_STORE_APPEND] = RUN_WRITE | ZR_STORE_OP_SYNCED | ZARR_STORE_OP_WANT_VERSION,
    };

    if (op->flags & ZARR_STORE_OP_IN_PARTS) {
        if (op->verb == ZARR_STORE_GET)
            return ZARR_STORE_OP_IN_PARTS;
        if (op->verb == ZARR_STORE_COPY)
            return ZARR_STORE_OP_IN_PARTS | ZR_STORE_OP_BY_STORE;
    }
    if ((op->flags & ZR_STORE_OP_PINNED) && op->verb == ZARR_STORE_GET)
        return ZR_STORE_OP_PINNED | ZARR_STORE_OP_WANT_VERSION;
    if ((op->flags & ZR_STORE_OP_TELL) && op->verb == ZARR_STORE_PUT && s->native)
        return known[op->verb] | ZR_STORE_OP_TELL;
    return known[op->verb];
}

zarr_status zr_op_check(const zarr_store *s, const zarr_store_op *op, zarr_error *err)
{
    const bool reads = op->verb == ZARR_STORE_GET || op->verb == ZARR_STORE_STAT;
    zarr_status st = ZARR_OK;

    if (!op->key)
        return zr_fail(err, ZARR_ERR_INVALID, "no key");
    ZR_TRY(zr_key_validate(op->key, strlen(op->key), err));
    if (op->verb < ZARR_STORE_GET || op->verb > ZARR_STORE_APPEND)
        ZR_FAIL(err, ZARR_ERR_INVALID, "%s: verb %" PRIu32 " is not known", op->key,
                op->verb);
    if (!reads)
        ZR_TRY(run_check_write(s, op, err));
    else if ((op->flags & ZARR_STORE_OP_IN_PARTS) && op->verb == ZARR_STORE_GET)
        ZR_TRY(run_check_parts(s, op, err));
    if (op->mem.bytes > 0 && !op->mem.handle && op->mem.device_type == ZARR_DEVICE_CPU &&
        (op->verb == ZARR_STORE_GET || op->verb == ZARR_STORE_PUT ||
         op->verb == ZARR_STORE_PUT_PART || op->verb == ZARR_STORE_APPEND))
        ZR_FAIL(err, ZARR_ERR_INVALID, "%s: the data of %" PRIu64 " bytes is NULL",
                op->key, op->mem.bytes);
    if (op->flags & ~(run_find_flags(s, op) | ZARR_STORE_OP_KIND))
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "%s: flags %#" PRIx32 " do not fit verb %" PRIu32, op->key,
                     op->flags, op->verb);
    else if (op->flags & ZARR_STORE_OP_IF_VERSION)
        st = run_check_condition(s, op, err);
out:
    return st;
}

/* ---- checks of a foreign store's results ---- */

/* How many bytes of the value a GET must give; 0 if the store does not tell its length.
 */
static uint64_t run_least(const zarr_store_op *op)
{
    uint64_t offset = 0, n = 0;

    if (op->flags & ZARR_STORE_OP_IN_PARTS) /* all of it was written */
        return ZR_MIN(op->mem.bytes, op->length);
    if (op->object_bytes != UINT64_MAX)
        zr_op_range(op, op->object_bytes, &offset, &n);
    return n;
}

/* What is wrong with the result of an operation that succeeded. */
static zarr_status run_check_result(const zarr_store *s, const zarr_store_op *op,
                                    zarr_error *err)
{
    const uint64_t most = ZR_MIN(op->mem.bytes, op->length), least = run_least(op);
    const bool gets = op->verb == ZARR_STORE_GET;

    if (gets && op->done_bytes > most)
        return zr_fail(err, ZARR_ERR_INTERNAL,
                       "%s: the %s store gave more bytes than were asked for", op->key,
                       s->name);
    if (gets && op->done_bytes < least)
        return zr_fail(err, ZARR_ERR_IO,
                       "%s: the %s store gave %" PRIu64 " of %" PRIu64 " bytes", op->key,
                       s->name, op->done_bytes, least);
    if (op->verb == ZARR_STORE_STAT && op->object_bytes == UINT64_MAX)
        return zr_fail(err, ZARR_ERR_IO, "%s: the %s store does not tell the length",
                       op->key, s->name);
    /* A store may leave done_bytes of a write at 0. */
    if (!gets && op->done_bytes != 0 && op->done_bytes < op->mem.bytes)
        return zr_fail(err, ZARR_ERR_IO,
                       "%s: the %s store kept %" PRIu64 " of %" PRIu64 " bytes", op->key,
                       s->name, op->done_bytes, op->mem.bytes);
    if (op->version.bytes[0] >= sizeof op->version.bytes)
        return zr_fail(err, ZARR_ERR_INTERNAL,
                       "%s: the %s store gave a version of %d bytes, at most %zu fit",
                       op->key, s->name, op->version.bytes[0],
                       sizeof op->version.bytes - 1);
    return ZARR_OK;
}

void zr_op_distrust(const zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    if (op->status == ZARR_OK)
        op->status = run_check_result(s, op, err);
    if (op->status == ZARR_OK)
        return;
    op->done_bytes = 0;
    if (err->code != op->status)
        zr_fail(err, op->status, "%s: the %s store says: %s", op->key, s->name,
                zarr_status_text(op->status));
}

/* ---- one operation ---- */

#define RUN_CANCEL_NS UINT64_C(20000000) /* how often a waiter looks at `cancel` */

zarr_status zr_op_fail(const zarr_store_op *op, zarr_error *err)
{
    static const uint32_t operations[] = {
        [ZARR_STORE_GET] = ZARR_OPERATION_READ,
        [ZARR_STORE_PUT] = ZARR_OPERATION_WRITE,
        [ZARR_STORE_ERASE] = ZARR_OPERATION_ERASE,
        [ZARR_STORE_STAT] = ZARR_OPERATION_READ,
        [ZARR_STORE_PUT_PART] = ZARR_OPERATION_WRITE,
        [ZARR_STORE_COPY] = ZARR_OPERATION_WRITE,
        [ZARR_STORE_APPEND] = ZARR_OPERATION_WRITE,
    };

    if (!err || op->status == ZARR_ERR_CANCELLED)
        return op->status;
    if (op->key)
        zr_error_mark(err, ZARR_ERROR_KEY, 0, op->key);
    if (op->verb < ZR_COUNT(operations))
        zr_error_operation(err, operations[op->verb]);
    if (err->os_code == 0 && op->os_code != 0) { /* a store that wrote no text */
        err->os_code = op->os_code;
        err->os_domain = ZARR_OS_STORE;
    }
    return op->status;
}

bool zr_store_blames_object(zarr_status st, const zarr_error *err)
{
    static const int codes[] = {ENOENT, ENOTDIR, EISDIR, ELOOP, EXDEV,
                                EINVAL, ENXIO,   EACCES, EPERM, EIO};

    for (size_t i = 0; i < ZR_COUNT(codes); i++)
        if (zr_is_store_failure(st) && err->os_domain == ZARR_OS_ERRNO &&
            err->os_code == codes[i])
            return true;
    return false;
}

bool zr_store_hides(zarr_status st, const zarr_error *err)
{
    return st == ZARR_ERR_DENIED && err->os_domain == ZARR_OS_STORE;
}

bool zr_store_has_no_value(zarr_status st, const zarr_error *err)
{
    return st == ZARR_ERR_IO && err->os_domain == ZARR_OS_ERRNO &&
           (err->os_code == EISDIR || err->os_code == EINVAL);
}

struct run_wait {
    struct zr_event event;
    zarr_error *err;
};

static void run_done(void *arg, zarr_store_op *op, const zarr_error *err)
{
    struct run_wait *w = arg;

    if (op->status != ZARR_OK && err && w->err)
        *w->err = *err;
    zr_event_set(&w->event);
}

static void run_cancel_one(zarr_store *s, void *arg)
{
    if (s->vt.cancel)
        s->vt.cancel(s->self, arg);
}

/* Waits for submitted operations, and calls ask() to end them if they are cancelled.
 * Returns false in a forked child. */
static bool run_wait(zarr_store *s, struct zr_event *event, const zarr_cancel *cancel,
                     void (*ask)(zarr_store *s, void *arg), void *arg)
{
    bool asked = false;

    while (!zr_event_wait(event,
                          cancel && !asked ? zr_now_ns() + RUN_CANCEL_NS : UINT64_MAX)) {
        if (zr_has_forked(event->generation))
            return false;
        asked = zr_is_cancelled(cancel);
        if (asked)
            ask(s, arg);
    }
    return true;
}

static void run_submit_and_wait(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    struct run_wait w = {.err = err};

    zr_event_init(&w.event);
    s->vt.submit(s->self, &op, 1, run_done, &w);
    if (!run_wait(s, &w.event, op->cancel, run_cancel_one, &w)) /* done never comes */
        zr_op_end(op,
                  zr_fail(err, ZARR_ERR_CANCELLED, "%s: inherited through fork", op->key),
                  0);
    zr_event_deinit(&w.event);
}

void zr_op_run_foreign(void *store, zarr_store_op *op, zarr_error *err)
{
    zarr_store *s = store;
    zarr_error own;

    if (zr_attempt_runs()) { /* the store does not say how long it takes */
        zr_op_end(op, zr_attempt_fail(err), 0);
        return;
    }
    zr_error_clear(&own); /* the code shows whether the store wrote a text */
    zr_block_begin();
    if (s->vt.run)
        s->vt.run(s->self, op, &own);
    else if (s->vt.submit) /* opening checked that one of the two exists */
        run_submit_and_wait(s, op, &own);
    zr_block_end();
    zr_error_distrust(&own);
    zr_op_distrust(s, op, &own);
    if (op->status != ZARR_OK && err)
        *err = own;
}

enum zr_lock_kind zr_op_lock_kind(const zarr_store *s, const zarr_store_op *op)
{
    const uint32_t caps = s->caps.flags;
    const bool is_part = /* until the commit the key has its old value */
        op->verb == ZARR_STORE_COPY && (op->flags & ZARR_STORE_OP_IN_PARTS);

    if ((op->verb != ZARR_STORE_PUT && op->verb != ZARR_STORE_ERASE &&
         op->verb != ZARR_STORE_COPY && op->verb != ZARR_STORE_APPEND) ||
        (op->flags & ZARR_STORE_OP_LOCKED) || is_part)
        return ZR_LOCK_NONE;
    if (!(caps & (ZARR_STORE_CAP_LOCK | ZARR_STORE_CAP_PUT_IF_VERSION)))
        return ZR_LOCK_HANDLE;
    return !s->native && (caps & ZARR_STORE_CAP_LOCK) &&
                   !(caps & ZARR_STORE_CAP_WRITES_WAIT)
               ? ZR_LOCK_STORE
               : ZR_LOCK_NONE;
}

/* The lock of the store that a write without a lock takes, and what its op had. */
struct run_lock {
    void *lock, *callers;
    uint32_t flags;
};

static zarr_status run_lock_begin(zarr_store *s, zarr_store_op *op, struct run_lock *l,
                                  zarr_error *err)
{
    const zarr_status st = zr_store_lock(s, op->key, op->cancel, &l->lock, err);

    if (st != ZARR_OK)
        return zr_op_end(op, st, 0);
    l->callers = op->lock;
    l->flags = op->flags;
    op->lock = l->lock;
    op->flags |= ZARR_STORE_OP_LOCKED;
    return ZARR_OK;
}

static void run_lock_end(zarr_store *s, zarr_store_op *op, const struct run_lock *l)
{
    zr_store_unlock(s, l->lock);
    op->lock = l->callers;
    op->flags = l->flags;
}

/* For those who look for the cause of a failure: what happens to metadata, and what
 * fails. A line for each chunk would hide the rest. */
static void run_log(const zarr_store *s, const zarr_store_op *op)
{
    static const char *const verbs[] = {"?",    "GET",  "PUT",  "ERASE",
                                        "COPY", "STAT", "PART", "APPEND"};

    if ((op->flags & ZARR_STORE_OP_KIND) != ZARR_STORE_OP_DOCUMENT &&
        (op->status == ZARR_OK || op->status == ZARR_ERR_NOT_FOUND))
        return;
    zr_log(&s->env.log, ZARR_LOG_DEBUG, "%s %s: %s",
           verbs[op->verb < ZR_COUNT(verbs) ? op->verb : 0], op->key,
           zarr_status_text(op->status));
}

zarr_status zr_store_run_one(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    zarr_status st = zr_op_check(s, op, err);
    const enum zr_lock_kind kind = zr_op_lock_kind(s, op);
    struct zr_lock_wait wait;
    struct zr_keylock lock;
    struct run_lock own;

    if (st == ZARR_OK)
        st = zr_cancel_check(op->cancel, err);
    if (st != ZARR_OK) {
        zr_op_end(op, st, 0);
        return zr_op_fail(op, err);
    }
    zr_op_begin(op);
    if (!s->native)
        op->flags &= ~ZR_STORE_OP_GUARDED;
    if (kind == ZR_LOCK_HANDLE) {
        wait = (struct zr_lock_wait){.key = op->key, .cancel = op->cancel};
        st = zr_keylocks_take(&s->keylocks, &lock, &wait, err);
        if (st != ZARR_OK) {
            zr_op_end(op, st, st == ZARR_ERR_CANCELLED ? 0 : ETIMEDOUT);
            return zr_op_fail(op, err);
        }
    }
    if (kind == ZR_LOCK_STORE && run_lock_begin(s, op, &own, err) != ZARR_OK)
        return op->status;
    if (zr_op_needs_emulation(s, op))
        zr_emulate_run(s, op, err);
    else
        s->run(s->run_self, op, err);
    if (kind == ZR_LOCK_HANDLE)
        zr_keylocks_give(&s->keylocks, &lock);
    if (kind == ZR_LOCK_STORE)
        run_lock_end(s, op, &own);
    if (s->env.log.level >= ZARR_LOG_DEBUG)
        run_log(s, op);
    return op->status == ZARR_OK ? ZARR_OK : zr_op_fail(op, err);
}

/* ---- several operations ---- */

struct run_many {
    struct zr_event event;
    zr_mutex mutex; /* protects first and *err */
    zarr_store_op *ops;
    atomic_uint_fast64_t left;
    uint64_t first; /* lowest failed item so far */
    zarr_error *err;
};

static void run_many_note(struct run_many *m, const zarr_store_op *op,
                          const zarr_error *err)
{
    uint64_t i = (uint64_t)(op - m->ops);

    if (op->status == ZARR_OK || op->status == ZARR_ERR_NOT_FOUND)
        return;
    zr_mutex_lock(&m->mutex);
    if (i < m->first) {
        m->first = i;
        if (m->err && err)
            *m->err = *err;
    }
    zr_mutex_unlock(&m->mutex);
}

static void run_many_done(void *arg, zarr_store_op *op, const zarr_error *err)
{
    struct run_many *m = arg;

    run_many_note(m, op, err);
    if (atomic_fetch_sub(&m->left, 1) == 1)
        zr_event_set(&m->event);
}

static zarr_status run_many_end(struct run_many *m, uint64_t n, zarr_error *err)
{
    if (m->first >= n)
        return ZARR_OK;
    if (err)
        err->item = m->first;
    return m->ops[m->first].status;
}

/* Hands all operations at once to a store with an event loop. */
static zarr_status run_many_submitted(zarr_store *s, zarr_store_op *ops, uint64_t n,
                                      zarr_error *err)
{
    struct run_many m = {.ops = ops, .first = UINT64_MAX, .err = err};
    zarr_store_op **ptrs = NULL;
    zarr_status st = ZARR_OK;
    uint64_t bytes;

    if (zr_mul(n, sizeof *ptrs, &bytes))
        ptrs = zr_malloc(s->env.alloc, (size_t)bytes);
    if (!ptrs)
        return zr_fail_memory(err, n);
    for (uint64_t i = 0; i < n; i++)
        ptrs[i] = &ops[i];
    atomic_init(&m.left, n);
    zr_mutex_init(&m.mutex);
    zr_event_init(&m.event);
    zr_store_submit(s, ptrs, n, run_many_done, &m);
    if (run_wait(s, &m.event, ops[0].cancel, zr_store_cancel, &m))
        st = run_many_end(&m, n, err);
    else
        st = zr_fail(err, ZARR_ERR_CANCELLED, "inherited through fork");
    zr_event_deinit(&m.event);
    zr_mutex_deinit(&m.mutex);
    zr_free(s->env.alloc, ptrs);
    return st;
}

zarr_status zr_store_run(zarr_store *s, zarr_store_op *ops, uint64_t n, zarr_error *err)
{
    struct run_many m = {.ops = ops, .first = UINT64_MAX, .err = err};
    zarr_error one;

    if (n == 0)
        return ZARR_OK;
    if (n > 1 && !zr_store_can(s, ZARR_STORE_CAP_FAST_GET))
        return run_many_submitted(s, ops, n, err);
    for (uint64_t i = 0; i < n; i++) {
        zarr_status st = zr_store_run_one(s, &ops[i], &one);

        if (st == ZARR_OK || st == ZARR_ERR_NOT_FOUND || m.first < i)
            continue;
        m.first = i;
        if (err)
            *err = one;
    }
    return run_many_end(&m, n, err);
}
