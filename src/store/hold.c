/*
 * store/hold.c - locks (no other writer changes this key), parts of new values, and pins
 * (all reads see one version of it). If a store has its own locks or pins, they are used.
 * On other stores a lock excludes only callers of this handle, and a pin remembers the
 * first version that it saw and fails with CONFLICT on any other. Without versions it
 * remembers the length. Thread class: any thread may give a lock back; pins are frozen
 * between init and deinit, except that the first read sets their version.
 */
#include "store/store_int.h"

#include "sched/sched.h"

#include <errno.h>
#include <string.h>

zarr_store *zr_store_of_key(const zarr_store *s, const char *key)
{
    if (s->native && s->native->part)
        return s->native->part(s->self, key);
    return (zarr_store *)(uintptr_t)s; /* as the caller has it */
}

/* NULL would mean that there is nothing to give back. */
static zarr_status hold_check(const zarr_store *s, const char *key, const void *held,
                              const char *entry, zarr_error *err)
{
    return held ? ZARR_OK
                : zr_fail(err, ZARR_ERR_INTERNAL, "%s: %s() of the %s store gave NULL",
                          key, entry, s->name);
}

/* ---- locks ---- */

static zarr_status hold_lock(zarr_store *s, const char *key, const zarr_cancel *cancel,
                             void **lock, zarr_error *err)
{
    struct zr_foreign call;
    zarr_status st;

    if (!zr_store_can(s, ZARR_STORE_CAP_LOCK))
        return zr_handle_lock_take(&s->keylocks, s->env.alloc, key, cancel, lock, err);
    zr_block_begin(); /* the holder may need a thread of the pool */
    st = s->vt.lock(s->self, key, cancel, lock, zr_store_call_begin(s, &call, err));
    zr_block_end();
    if (st == ZARR_OK)
        return hold_check(s, key, *lock, "lock", err);
    *lock = NULL; /* whatever a foreign store left there */
    return zr_store_call_end(s, &call, st, ZARR_OPERATION_LOCK, err);
}

static zarr_status lock_check(zarr_store *s, const char *key, const zarr_cancel *cancel,
                              zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_ERASE,
                        .key = key}; /* for the checks of a write */
    const zarr_status st = zr_op_check(s, &op, err);

    return st == ZARR_OK ? zr_cancel_check(cancel, err) : st;
}

static void lock_name(const char *key, zarr_error *err)
{
    zr_error_mark(err, ZARR_ERROR_KEY, 0, key);
    zr_error_operation(err, ZARR_OPERATION_LOCK);
}

/* Takes the lock without waiting. A foreign store may look at its cancel object before it
 * looks at the lock, so that it gives none: it is asked again with `cancel`. */
static zarr_status lock_at_once(zarr_store *s, const char *key, const zarr_cancel *cancel,
                                void **lock, zarr_error *err)
{
    const bool foreign = !s->native && zr_store_can(s, ZARR_STORE_CAP_LOCK);
    zarr_status st = hold_lock(s, key, &zr_lock_no_wait, lock, err);

    if (st == ZARR_ERR_CANCELLED && foreign)
        st = hold_lock(s, key, cancel, lock, err);
    return st;
}

/* The cancel object is zr_lock_no_wait if a store over this one tries the lock. */
zarr_status zr_store_lock(zarr_store *s, const char *key, const zarr_cancel *cancel,
                          void **lock, zarr_error *err)
{
    const bool at_once = cancel == &zr_lock_no_wait;
    zarr_status st = lock_check(s, key, at_once ? NULL : cancel, err);

    *lock = NULL;
    if (st != ZARR_OK)
        return st;
    st = at_once ? lock_at_once(s, key, NULL, lock, err)
                 : hold_lock(s, key, cancel, lock, err);
    if (st != ZARR_OK)
        lock_name(key, err);
    return st;
}

zarr_status zr_store_lock_try(zarr_store *s, const char *key, const zarr_cancel *cancel,
                              void **lock, zarr_error *err)
{
    zarr_error why = {0};
    zarr_status st = lock_check(s, key, cancel, &why);

    *lock = NULL;
    if (st != ZARR_OK)
        return zr_pass(err, st, &why);
    st = lock_at_once(s, key, cancel, lock, &why);
    if (st == ZARR_ERR_CANCELLED && zr_cancel_check(cancel, NULL) == ZARR_OK) {
        st = ZARR_ERR_CONFLICT;
        why.os_code = EBUSY; /* the text says it better than strerror() */
    }
    if (st != ZARR_OK)
        lock_name(key, &why);
    return zr_pass(err, st, &why);
}

void zr_store_unlock(zarr_store *s, void *lock)
{
    if (!lock)
        return;
    if (zr_store_can(s, ZARR_STORE_CAP_LOCK))
        s->vt.unlock(s->self, lock);
    else
        zr_handle_lock_give(&s->keylocks, s->env.alloc, lock);
}

/* ---- values in parts ---- */

/* A handle's own lock means nothing to the store. */
zarr_status zr_store_begin_parts(zarr_store *s, const char *key, void *lock,
                                 const zarr_cancel *cancel, void **parts, zarr_error *err)
{
    struct zr_foreign call;
    zarr_status st = lock_check(s, key, cancel, err);

    *parts = NULL;
    if (st != ZARR_OK)
        return st;
    if (!zr_store_can_key(s, key, ZARR_STORE_CAP_PARTS))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s: stores of kind %s take no parts",
                       key, s->name);
    zr_block_begin();
    st = s->vt.begin_parts(s->self, key,
                           zr_store_can(s, ZARR_STORE_CAP_LOCK) ? lock : NULL, cancel,
                           parts, zr_store_call_begin(s, &call, err));
    zr_block_end();
    if (st == ZARR_OK)
        return hold_check(s, key, *parts, "begin_parts", err);
    *parts = NULL; /* whatever a foreign store left there */
    zr_error_mark(err, ZARR_ERROR_KEY, 0, key);
    return zr_store_call_end(s, &call, st, ZARR_OPERATION_WRITE, err);
}

void zr_store_end_parts(zarr_store *s, const char *key, void *parts)
{
    if (parts)
        s->vt.end_parts(s->self, key, parts);
}

uint64_t zr_store_part_min_bytes(const zarr_store *s, const char *key, uint64_t total)
{
    const zarr_store_caps *caps = &zr_store_of_key(s, key)->caps;
    const uint64_t least = ZR_MAX(caps->part_min_bytes, UINT64_C(1));

    return caps->parts_max == 0 ? least
                                : ZR_MAX(least, zr_ceil_div_u64(total, caps->parts_max));
}

/* ---- pins ---- */

enum {
    PIN_NO_VERSION,
    PIN_SETTLING,
    PIN_HAS_VERSION
};

zarr_status zr_store_pin_init(struct zr_store_pin *p, zarr_store *s, const char *key,
                              zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_STAT, .key = key};
    zarr_status st = zr_op_check(s, &op, err);

    memset(p, 0, sizeof *p);
    p->object_bytes = UINT64_MAX;
    atomic_init(&p->state, PIN_NO_VERSION);
    if (st != ZARR_OK)
        return st;
    p->key = key;
    s = zr_store_of_key(s, key); /* a GET passes the pin on */
    if (s->native)
        st = s->native->pin(s->self, p, err);
    if (st == ZARR_OK) {
        p->store = s;
    } else if (err) {
        zr_error_mark(err, ZARR_ERROR_KEY, 0, key);
        zr_error_operation(err, ZARR_OPERATION_READ);
    }
    return st;
}

bool zr_store_pins(const zarr_store *s, const char *key)
{
    s = zr_store_of_key(s, key);
    return s->native || zr_store_can(s, ZARR_STORE_CAP_VERSIONS) ||
           zr_store_can(s, ZARR_STORE_CAP_IMMUTABLE);
}

void zr_store_pin_deinit(struct zr_store_pin *p)
{
    if (p->store && p->store->native)
        p->store->native->unpin(p->store->self, p);
    p->store = NULL;
}

bool zr_pin_version(const struct zr_store_pin *p, zarr_store_version *out)
{
    if (!zr_store_can(p->store, ZARR_STORE_CAP_VERSIONS) ||
        atomic_load(&p->state) != PIN_HAS_VERSION ||
        zr_store_version_is_none(&p->version))
        return false;
    *out = p->version;
    return true;
}

/* Whether a GET found another length than the first one, of a value without a version. */
static bool pin_is_other_length(const struct zr_store_pin *p, const zarr_store_op *op)
{
    return p->told_bytes != UINT64_MAX && op->object_bytes != UINT64_MAX &&
           p->told_bytes != op->object_bytes;
}

zarr_status zr_pin_check(struct zr_store_pin *p, const zarr_store_op *op, zarr_error *err)
{
    const bool versions = zr_store_can(p->store, ZARR_STORE_CAP_VERSIONS);
    int state = PIN_NO_VERSION;

    if (!versions && op->object_bytes == UINT64_MAX)
        return ZARR_OK; /* the store tells nothing */
    if (atomic_compare_exchange_strong(&p->state, &state, PIN_SETTLING)) {
        if (versions)
            p->version = op->version;
        p->told_bytes = op->object_bytes;
        atomic_store(&p->state, PIN_HAS_VERSION);
        return ZARR_OK;
    }
    while (atomic_load(&p->state) != PIN_HAS_VERSION)
        ; /* the other thread is between two stores */
    if ((!versions || zr_store_version_equal(&p->version, &op->version)) &&
        ((versions && !zr_store_version_is_none(&p->version)) ||
         !pin_is_other_length(p, op)))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_CONFLICT, "%s: was replaced while it was read", op->key);
}
