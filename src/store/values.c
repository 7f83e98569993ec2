/*
 * store/values.c - zarr_store_stat(), _read(), _write(), _put_new(), _run() and locks for
 * applications: single operations in memory of any kind, with the version of the value.
 * A value that must be new is written in one step if the store can do so. Otherwise the
 * lock of its key covers a look and the write.
 * Thread class: any thread.
 */
#include "store/store_int.h"

#include "sched/sched.h"

#include <string.h>

zarr_status zr_store_end(const zarr_store *store, const char *key, zarr_status st,
                         zarr_error *err)
{
    if (st == ZARR_OK)
        return st;
    if (err && key && *key && st != ZARR_ERR_INVALID && st != ZARR_ERR_CANCELLED &&
        !strstr(err->message, key))
        zr_prefix_key(err, st, key);
    return zr_prefix(err, st, "%s", store->url);
}

static uint32_t values_flags(const zarr_store *store, const char *key, bool want_version)
{
    uint32_t flags = key ? zr_key_kind(key) : 0;

    if (want_version && key && zr_store_can_key(store, key, ZARR_STORE_CAP_VERSIONS))
        flags |= ZARR_STORE_OP_WANT_VERSION;
    return flags;
}

static void values_give(const zarr_store_op *op, zarr_store_value *out)
{
    zarr_store_value value = {.struct_size = sizeof value,
                              .bytes = op->object_bytes,
                              .done_bytes = op->done_bytes,
                              .up_bytes = op->up_bytes,
                              .down_bytes = op->down_bytes};

    if (!out)
        return;
    if (op->flags & ZARR_STORE_OP_WANT_VERSION) {
        value.has_version = 1;
        value.version = op->version;
    }
    zr_struct_give(out, out->struct_size, &value, sizeof value);
}

zarr_status zarr_store_stat(zarr_store *store, const char *key, zarr_store_value *out,
                            const zarr_cancel *cancel, zarr_error *err)
{
    ZR_NEED(store, err);
    zarr_store_op op = {.verb = ZARR_STORE_STAT,
                        .flags = values_flags(store, key, out != NULL),
                        .key = key,
                        .cancel = cancel};
    const zarr_status st = zr_store_run_one(store, &op, err);

    if (st == ZARR_OK)
        values_give(&op, out);
    return zr_store_end(store, key, st, err);
}

zarr_status zarr_store_read(zarr_store *store, const char *key, uint64_t offset,
                            const zarr_memory *mem, zarr_store_value *out,
                            const zarr_cancel *cancel, zarr_error *err)
{
    ZR_NEED(store, err);
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .flags = values_flags(store, key, out != NULL),
                        .key = key,
                        .offset = offset,
                        .cancel = cancel};
    zarr_status st = ZARR_OK;

    if (!mem)
        return zr_fail(err, ZARR_ERR_INVALID, "no memory to read into");
    op.mem = *mem;
    op.length = mem->bytes;
    st = zr_store_run_one(store, &op, err);
    if (st == ZARR_OK)
        values_give(&op, out);
    return zr_store_end(store, key, st, err);
}

/* ---- writing ---- */

static zarr_status values_exists(const zarr_store_op *op, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_EXISTS, "%s: exists already", op->key);
}

static zarr_status put_new_locked(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    zarr_store_op stat = {.verb = ZARR_STORE_STAT, .key = op->key, .cancel = op->cancel};
    zarr_error e = {0};
    void *lock = NULL;
    zarr_status st = zr_store_lock(s, op->key, op->cancel, &lock, err);

    if (st != ZARR_OK)
        return st;
    op->lock = lock;
    stat.flags = op->flags & ZARR_STORE_OP_KIND;
    op->flags |= ZARR_STORE_OP_LOCKED;
    st = zr_store_run_one(s, &stat, &e);
    if (st == ZARR_OK)
        st = values_exists(op, err);
    else if (st == ZARR_ERR_NOT_FOUND)
        st = zr_store_run_one(s, op, err);
    else
        zr_pass(err, st, &e);
    zr_store_unlock(s, lock);
    return st;
}

/* Does a PUT of a key that does not exist yet. The caller sets the members of op for a
 * plain PUT. */
static zarr_status put_new(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    zarr_status st;

    if (op->key && !zr_store_can_key(s, op->key, ZARR_STORE_CAP_PUT_NEW))
        return put_new_locked(s, op, err);
    op->flags |= ZARR_STORE_OP_IF_VERSION;
    op->version = (zarr_store_version){{0}};
    st = zr_store_run_one(s, op, err);
    return st == ZARR_ERR_CONFLICT ? values_exists(op, err) : st;
}

zarr_status zarr_store_write(zarr_store *store, const char *key, const zarr_memory *mem,
                             const zarr_store_version *expected, zarr_store_value *out,
                             const zarr_cancel *cancel, zarr_error *err)
{
    ZR_NEED(store, err);
    zarr_store_op op = {.verb = ZARR_STORE_PUT,
                        .flags = values_flags(store, key, out != NULL),
                        .key = key,
                        .cancel = cancel};
    zarr_status st = ZARR_OK;

    if (!mem)
        return zr_fail(err, ZARR_ERR_INVALID, "no memory to write from");
    op.mem = *mem;
    op.length = mem->bytes;
    if (expected && zr_store_version_is_none(expected)) {
        st = put_new(store, &op, err);
    } else {
        if (expected) {
            op.flags |= ZARR_STORE_OP_IF_VERSION;
            op.version = *expected;
        }
        st = zr_store_run_one(store, &op, err);
    }
    if (st == ZARR_OK) {
        op.done_bytes = op.object_bytes = mem->bytes; /* a store may leave them */
        values_give(&op, out);
    }
    return zr_store_end(store, key, st, err);
}

zarr_status zarr_store_put_new(zarr_store *store, const char *key, const void *data,
                               uint64_t bytes, const zarr_cancel *cancel, zarr_error *err)
{
    static const zarr_store_version none = {{0}};
    /* a PUT only reads */
    const zarr_memory mem = zr_mem_of_host((void *)(uintptr_t)data, bytes);

    ZR_NEED(store, err);
    return zarr_store_write(store, key, &mem, &none, NULL, cancel, err);
}

/* ---- for stores over stores ---- */

static zarr_status values_check_flags(const zarr_store_op *op, zarr_error *err)
{
    const uint32_t ours = ZR_STORE_OP_PINNED | ZR_STORE_OP_GUARDED | ZR_STORE_OP_SYNCED |
                          ZR_STORE_OP_BY_STORE | ZR_STORE_OP_TELL | ZR_STORE_OP_CREATED;

    if (!(op->flags & ours))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INVALID, "%s: flags %#" PRIx32 " are not known",
                   op->key ? op->key : "", op->flags);
}

zarr_status zarr_store_run(zarr_store *store, zarr_store_op *op, zarr_error *err)
{
    zarr_status st;

    ZR_NEED(store, err);
    st = values_check_flags(op, err);
    if (st != ZARR_OK)
        return zr_op_end(op, st, 0);
    return zr_store_end(store, op->key, zr_store_run_one(store, op, err), err);
}

void zarr_store_submit(zarr_store *store, zarr_store_op **ops, uint64_t n,
                       void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                       void *arg)
{
    zarr_error err;
    zarr_status st = store ? ZARR_OK : zr_fail(&err, ZARR_ERR_INVALID, "no store");

    for (uint64_t i = 0; i < n && st == ZARR_OK; i++)
        st = values_check_flags(ops[i], &err);
    if (st == ZARR_OK && n > 0)
        zr_store_submit(store, ops, n, done, arg);
    for (uint64_t i = 0; i < n && st != ZARR_OK; i++) {
        zr_op_begin(ops[i]);
        zr_op_end(ops[i], st, 0);
        done(arg, ops[i], &err);
    }
}

void zarr_store_cancel(zarr_store *store, void *arg)
{
    if (store)
        zr_store_cancel(store, arg);
}

zarr_status zarr_store_lock(void **lock, zarr_store *store, const char *key,
                            const zarr_cancel *cancel, zarr_error *err)
{
    ZR_NEED(store, err);
    return zr_store_end(store, key, zr_store_lock(store, key, cancel, lock, err), err);
}

void zarr_store_unlock(zarr_store *store, void *lock)
{
    if (!store)
        return;
    zr_store_unlock(store, lock);
}

zarr_status zarr_store_begin_parts(void **parts, zarr_store *store, const char *key,
                                   void *lock, const zarr_cancel *cancel, zarr_error *err)
{
    ZR_NEED(store, err);
    return zr_store_end(store, key,
                        zr_store_begin_parts(store, key, lock, cancel, parts, err), err);
}

void zarr_store_end_parts(zarr_store *store, const char *key, void *parts)
{
    if (store)
        zr_store_end_parts(store, key, parts);
}

void zarr_store_capabilities(const zarr_store *store, zarr_store_caps *out)
{
    if (store)
        zr_struct_give(out, out->struct_size, &store->caps, sizeof store->caps);
}

void zarr_store_read_counters(const zarr_store *store, zarr_store_counters *out)
{
    union {
        zarr_store_counters counters;
        unsigned char room[512]; /* a store that was compiled with a longer struct */
    } u = {.room = {0}};
    const uint32_t out_bytes = out->struct_size;

    u.counters.struct_size = sizeof u.counters;
    if (store && store->vt.count)
        store->vt.count(store->self, &u.counters);
    u.counters.struct_size = sizeof u.counters;
    zr_struct_give(out, out_bytes, &u.counters, sizeof u.counters);
}

struct store_checking {
    zarr_store_check_fn fn;
    void *user;
};

/* The text of a foreign store may be anything. */
static void check_tell(void *user, int is_fault, const char *text)
{
    const struct store_checking *c = user;
    zarr_error line;

    zr_fail(&line, ZARR_ERR_INVALID, "%s", text ? text : "");
    zr_error_distrust(&line);
    c->fn(c->user, is_fault, line.message);
}

zarr_status zr_store_check(zarr_store *s, zarr_store_check_fn fn, void *user,
                           const zarr_cancel *cancel, zarr_error *err)
{
    struct store_checking c = {fn, user};
    struct zr_foreign call;
    zarr_status st;

    if (!s->vt.check)
        return ZARR_OK;
    zr_block_begin();
    st = s->vt.check(s->self, check_tell, &c, cancel, zr_store_call_begin(s, &call, err));
    zr_block_end();
    return st == ZARR_OK ? ZARR_OK
                         : zr_store_call_end(s, &call, st, ZARR_OPERATION_READ, err);
}
