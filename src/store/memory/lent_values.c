/*
 * store/memory/lent_values.c - a store of values that the caller has: the encoded chunks
 * of one call. The pipe reads them in place, so nothing is copied before it is decoded.
 * The caller finds the value of a key: a call may lend millions of values, and keys made
 * for a table would cost more than all else here. Thread class: frozen.
 */
#include "store/store_int.h"

#include <string.h>

struct lent_store {
    const zarr_allocator *alloc;
    const struct zr_memory_registry *memory;
    struct zr_lent lent;
    int32_t device_types[ZR_STORE_KINDS];
    uint32_t n_device_types;
};

static const struct zr_lent_value *lent_find(const struct lent_store *l, const char *key)
{
    uint64_t i = 0;

    return l->lent.n > 0 && l->lent.find(l->lent.arg, key, &i) ? &l->lent.value[i] : NULL;
}

/* ---- operations ---- */

static const struct zr_lent_value *lent_op_value(const struct lent_store *l,
                                                 const zarr_store_op *op)
{
    if (op->flags & ZR_STORE_OP_PINNED) {
        const struct zr_store_pin *pin = op->lock;

        return (const struct zr_lent_value *)pin->held;
    }
    return lent_find(l, op->key);
}

static zarr_status lent_check(const struct lent_store *l, const struct zr_lent_value *v,
                              const char *key, zarr_error *err)
{
    if (!v)
        return zr_fail(err, l->lent.absent, "%s: %s", key, l->lent.absent_text);
    if (v->status == ZARR_ERR_NOT_FOUND)
        return zr_fail(err, v->status, "%s: no such key", key);
    if (v->status != ZARR_OK)
        return zr_fail(err, v->status, "%s: the caller could not read it (%s)", key,
                       zarr_status_text(v->status));
    return ZARR_OK;
}

static void lent_run(void *self, zarr_store_op *op, zarr_error *err)
{
    const struct lent_store *l = self;
    const struct zr_lent_value *v = lent_op_value(l, op);
    struct zr_copy_counters counters = {0};
    zarr_status st = lent_check(l, v, op->key, err);
    uint64_t offset, n;
    zarr_memory from;

    if (st == ZARR_OK && (op->verb == ZARR_STORE_PUT || op->verb == ZARR_STORE_ERASE))
        st = zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s: lent values are not written",
                     op->key);
    if (st == ZARR_OK) {
        op->object_bytes = v->mem.bytes;
        zr_op_range(op, v->mem.bytes, &offset, &n);
        if (op->verb == ZARR_STORE_GET && n > 0) {
            st = zr_mem_slice(&v->mem, offset, n, &from)
                     ? zr_mem_copy_bytes(l->memory, &op->mem, &from, n, &counters, err)
                     : zr_internal(err);
            op->done_bytes = st == ZARR_OK ? n : 0;
        }
    }
    zr_op_add_copies(op, &counters);
    zr_op_end(op, st, 0);
}

static bool lent_lend(void *self, zarr_store_op *op)
{
    const struct zr_lent_value *v = lent_op_value(self, op);
    uint64_t offset, n;

    if (!v || v->status != ZARR_OK || v->mem.device_type != op->mem.device_type)
        return false;
    zr_op_begin(op);
    op->object_bytes = v->mem.bytes;
    op->mem.bytes = UINT64_MAX;
    zr_op_range(op, v->mem.bytes, &offset, &n);
    if (!zr_mem_slice(&v->mem, offset, n, &op->mem))
        return false;
    op->done_bytes = n;
    zr_op_end(op, ZARR_OK, 0);
    return true;
}

static zarr_status lent_pin(void *self, struct zr_store_pin *p, zarr_error *err)
{
    const struct lent_store *l = self;
    const struct zr_lent_value *v = lent_find(l, p->key);
    const zarr_status st = lent_check(l, v, p->key, err);

    if (st != ZARR_OK)
        return st;
    p->object_bytes = v->mem.bytes;
    p->held = (intptr_t)v;
    return ZARR_OK;
}

static void lent_unpin(void *self, struct zr_store_pin *p)
{
    ZR_UNUSED(self, p);
}

/* Values do not change while they are lent. */
static zarr_status lent_lock(void *self, const char *key, const zarr_cancel *cancel,
                             void **lock, zarr_error *err)
{
    ZR_UNUSED(key, cancel, err);
    *lock = self;
    return ZARR_OK;
}

static void lent_unlock(void *self, void *lock)
{
    ZR_UNUSED(self, lock);
}

static void lent_caps(void *self, zarr_store_caps *out)
{
    struct lent_store *l = self;

    out->device_types = l->device_types;
    out->n_device_types = l->n_device_types;
    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE |
                 ZARR_STORE_CAP_LOCK | ZARR_STORE_CAP_FAST_GET | ZARR_STORE_CAP_IMMUTABLE;
}

static void lent_close(void *self)
{
    struct lent_store *l = self;

    zr_free(l->alloc, l);
}

static const zarr_store_vtable lent_vtable = {
    .struct_size = sizeof(zarr_store_vtable),
    .name = "lent",
    .caps = lent_caps,
    .run = lent_run,
    .lock = lent_lock,
    .unlock = lent_unlock,
    .close = lent_close,
};
static const struct zr_store_native lent_native = {
    .pin = lent_pin,
    .unpin = lent_unpin,
    .lend = lent_lend,
};

/* The kinds of memory that the bytes are in, and the host. */
static void lent_kinds(struct lent_store *l)
{
    l->device_types[l->n_device_types++] = ZARR_DEVICE_CPU;
    for (uint64_t i = 0; i < l->lent.n; i++) {
        const zarr_memory *m = &l->lent.value[i].mem;
        uint32_t k = 0;

        while (k < l->n_device_types && l->device_types[k] != m->device_type)
            k++;
        if (m->handle && k == l->n_device_types && k < ZR_STORE_KINDS)
            l->device_types[l->n_device_types++] = m->device_type;
    }
}

zarr_status zr_store_open_lent(zarr_store **out, const struct zr_store_env *env,
                               const struct zr_lent *lent, zarr_error *err)
{
    struct lent_store *l = zr_calloc(env->alloc, 1, sizeof *l);
    const struct zr_store_native_make make = {
        .vt = &lent_vtable, .native = &lent_native, .self = l};

    if (!l)
        return zr_fail_memory(err, sizeof *l);
    *l = (struct lent_store){.alloc = env->alloc, .memory = env->memory, .lent = *lent};
    lent_kinds(l);
    return zr_store_make_native(out, env, &make, lent_vtable.name, NULL, err);
}
