/*
 * store/emulate.c - emulates what a store cannot do by what it can do. It takes an
 * operation apart in this order: a lock that only this handle knows, a pin that remembers
 * a version, memory the store cannot reach (a bounce through host memory), the range
 * (emulate_range.c). A COPY becomes GET + PUT. STAT becomes an empty GET. Erasing a
 * prefix becomes list + erase (erase_prefix.c).
 *
 * Several requests make one answer only if the value was the same in each. Otherwise the
 * work begins again; after a few tries it fails with CONFLICT. Other files refuse what
 * cannot be emulated (conditions, locks between processes, listing). Blocks its thread;
 * allocates.
 *
 * Thread class: any thread.
 */
#include "store/emulate_int.h"

#include <string.h>

/* ---- what an operation needs ---- */

/* True if the store takes op's memory as it is. A local store gives devices whole values
 * only: their backends know no place in a file. */
static bool emulate_takes_memory(const zarr_store *s, const zarr_store_op *op)
{
    const zarr_memory *mem = &op->mem;

    /* every store that lists nothing takes plain host memory */
    if (mem->bytes == 0 ||
        (s->caps.n_device_types == 0 && mem->device_type == ZARR_DEVICE_CPU))
        return true;
    if (s->native == &zr_local_native &&
        (op->verb == ZARR_STORE_PUT_PART || op->verb == ZARR_STORE_APPEND ||
         (op->flags & ZARR_STORE_OP_IN_PARTS)))
        return zr_device_is_host(s->env.memory, mem->device_type);
    if (!s->native && s->caps.n_device_types == 0) /* and a foreign one no other */
        return false;
    return zr_store_device_direct(s, mem->device_type);
}

bool zr_emulate_takes_range(const zarr_store *s, const zarr_store_op *op)
{
    /* a part of a composite store emulates what it lacks, with its pin */
    if ((op->flags & ZARR_STORE_OP_IN_PARTS) || (s->native && s->native->part))
        return true;
    if (op->offset == ZARR_STORE_SUFFIX)
        return zr_store_can(s, ZARR_STORE_CAP_SUFFIX);
    if (op->offset == 0 && op->length == ZARR_STORE_TO_END)
        return true;
    return zr_store_can(s, ZARR_STORE_CAP_RANGES);
}

static bool emulate_takes_lock(const zarr_store *s, const zarr_store_op *op)
{
    return !(op->flags & ZARR_STORE_OP_LOCKED) || zr_store_can(s, ZARR_STORE_CAP_LOCK);
}

/* True for an ERASE of a key that must not exist: it changes nothing, so a look is
 * enough. */
static bool emulate_looks_instead(const zarr_store *s, const zarr_store_op *op)
{
    return zr_op_erases_nothing(op) &&
           (!s->native || !zr_store_can_key(s, op->key, ZARR_STORE_CAP_ERASE_IF_VERSION));
}

bool zr_op_needs_emulation(const zarr_store *s, const zarr_store_op *op)
{
    switch (op->verb) {
    case ZARR_STORE_GET:
        if ((op->flags & ZR_STORE_OP_PINNED) && !s->native)
            return true;
        return !zr_emulate_takes_range(s, op) || !emulate_takes_memory(s, op);
    case ZARR_STORE_PUT:
    case ZARR_STORE_PUT_PART:
    case ZARR_STORE_APPEND:
        return !emulate_takes_memory(s, op) || !emulate_takes_lock(s, op);
    case ZARR_STORE_COPY:
        return true;
    case ZARR_STORE_ERASE:
        return !emulate_takes_lock(s, op) || emulate_looks_instead(s, op);
    default:
        /* not every foreign store has STAT */
        return !s->native && !atomic_load(&s->has_stat);
    }
}

uint32_t zr_emulate_version_flag(const zarr_store *s)
{
    return zr_store_can(s, ZARR_STORE_CAP_VERSIONS) ? ZARR_STORE_OP_WANT_VERSION : 0;
}

/* ---- pins ---- */

bool zr_emulate_is_only_pin(const zarr_store *s, const zarr_store_op *op)
{
    return op->verb == ZARR_STORE_GET && (op->flags & ZR_STORE_OP_PINNED) && !s->native &&
           zr_emulate_takes_range(s, op) && emulate_takes_memory(s, op);
}

void zr_emulate_pin_begin(const zarr_store *s, zarr_store_op *op)
{
    op->tag = op->lock;
    op->lock = NULL;
    op->flags &= ~ZR_STORE_OP_PINNED;
    op->flags |= zr_emulate_version_flag(s);
    if (zr_pin_version(op->tag, &op->version))
        op->flags |= ZARR_STORE_OP_IF_VERSION;
}

void zr_emulate_pin_end(zarr_store_op *op, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    op->lock = op->tag;
    op->tag = NULL;
    op->flags |= ZR_STORE_OP_PINNED;
    op->flags &= ~(uint32_t)(ZARR_STORE_OP_WANT_VERSION | ZARR_STORE_OP_IF_VERSION);
    if (op->status == ZARR_OK)
        st = zr_pin_check(op->lock, op, err);
    if (st != ZARR_OK)
        zr_op_end(op, st, 0);
}

/* ---- locks ---- */

static bool emulate_holds_lock(const zarr_store_op *op)
{
    const struct zr_handle_lock *held = op->lock;

    return strcmp(held->key, op->key) == 0;
}

bool zr_emulate_is_only_lock(const zarr_store *s, const zarr_store_op *op)
{
    return (op->verb == ZARR_STORE_PUT || op->verb == ZARR_STORE_ERASE ||
            op->verb == ZARR_STORE_APPEND) &&
           !emulate_takes_lock(s, op) && emulate_holds_lock(op) &&
           !emulate_looks_instead(s, op) &&
           (op->verb == ZARR_STORE_ERASE || emulate_takes_memory(s, op));
}

void zr_emulate_lock_begin(zarr_store_op *op)
{
    op->flags &= ~(uint32_t)ZARR_STORE_OP_LOCKED;
    op->lock = NULL;
}

/* ---- several operations ---- */

bool zr_emulate_is_cancelled(const zarr_store_op *op, zarr_store_op *next,
                             zarr_error *err)
{
    if (!op->cancel || !zr_is_cancelled(op->cancel))
        return false;
    zr_op_end(next, zr_fail(err, ZARR_ERR_CANCELLED, "%s: cancelled", op->key), 0);
    return true;
}

/* ---- STAT ---- */

void zr_emulate_stat(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    zarr_store_op get = {
        .verb = ZARR_STORE_GET, .key = op->key, .length = ZARR_STORE_TO_END};
    zarr_error refusal; /* passed on unless a GET can do it */

    op->object_bytes = UINT64_MAX;
    s->run(s->run_self, op, &refusal);
    if (op->status != ZARR_ERR_UNSUPPORTED) {
        if (!s->native && (op->status == ZARR_OK || op->status == ZARR_ERR_NOT_FOUND))
            atomic_store(&s->has_stat, true);
        if (op->status != ZARR_OK && err)
            *err = refusal;
        return;
    }
    get.mem = zr_mem_of_host(NULL, 0);
    get.flags = op->flags;
    get.object_bytes = UINT64_MAX;
    get.cancel = op->cancel;
    if (!zr_emulate_is_cancelled(op, &get, err))
        s->run(s->run_self, &get, err);
    /* A store must set object_bytes if the value is longer than the memory, which has 0
     * bytes here. It did not, so the value is empty. */
    op->object_bytes = get.object_bytes == UINT64_MAX ? 0 : get.object_bytes;
    op->version = get.version;
    zr_op_end(op, get.status, get.os_code);
}

void zr_emulate_conflict(zarr_store_op *op, zarr_error *err)
{
    zr_op_end(op, zr_fail(err, ZARR_ERR_CONFLICT, "%s: changed meanwhile", op->key), 0);
}

/* The ERASE of a key that must not exist is a look. */
static void emulate_erase_nothing(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    zarr_store_op stat = {.verb = ZARR_STORE_STAT,
                          .flags = op->flags & ZARR_STORE_OP_KIND,
                          .key = op->key,
                          .cancel = op->cancel};

    if (zr_store_run_one(s, &stat, err) == ZARR_OK)
        zr_emulate_conflict(op, err);
    else
        zr_op_end(op, stat.status, stat.os_code);
}

/* ---- memory the store cannot reach ---- */

/* How many bytes the bounce must hold. */
static uint64_t emulate_bounce_bytes(const zarr_store_op *op)
{
    return op->verb == ZARR_STORE_GET ? ZR_MIN(op->mem.bytes, op->length) : op->mem.bytes;
}

static void emulate_by_bounce(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    struct zr_copy_counters counters = {0};
    uint64_t bytes = emulate_bounce_bytes(op);
    zarr_memory device = op->mem, host;
    void *block = NULL;
    zarr_status st = ZARR_OK;
    size_t n;

    if (!zr_fits(bytes, &n) || !(block = zr_malloc(s->env.alloc, n)))
        ZR_FAIL_MEMORY(err, bytes);
    host = zr_mem_of_host(block, bytes);
    if (op->verb != ZARR_STORE_GET)
        ZR_TRY(zr_mem_copy_bytes(s->env.memory, &host, &device, bytes, &counters, err));
    op->mem = host;
    zr_emulate_range(s, op, err);
    op->mem = device;
    st = op->status;
    if (st == ZARR_OK && op->verb == ZARR_STORE_GET)
        st = zr_mem_copy_bytes(s->env.memory, &device, &host, op->done_bytes, &counters,
                               err);
out:
    zr_op_add_copies(op, &counters);
    if (st != op->status)
        zr_op_end(op, st, 0);
    zr_free(s->env.alloc, block);
}

static void emulate_memory(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    zarr_store_op plain = *op;
    zarr_memory mem = op->mem;
    void *host = NULL;
    zarr_status st;

    plain.mem.device_type = ZARR_DEVICE_CPU;
    if (op->verb == ZARR_STORE_ERASE || emulate_takes_memory(s, op)) {
        zr_emulate_range(s, op, err);
    } else if (!emulate_takes_memory(s, &plain)) {
        zr_op_end(op,
                  zr_fail(err, ZARR_ERR_UNSUPPORTED,
                          "%s: the %s store reaches neither this memory nor the host's",
                          op->key, s->name),
                  0);
    } else if (zr_device_is_host(s->env.memory, mem.device_type)) {
        st = zr_mem_host_ptr(s->env.memory, &mem, mem.bytes, &host, err);
        if (st != ZARR_OK) {
            zr_op_end(op, st, 0);
            return;
        }
        op->mem = zr_mem_of_host(host, mem.bytes);
        zr_emulate_range(s, op, err);
        op->mem = mem;
    } else {
        emulate_by_bounce(s, op, err);
    }
}

/* ---- COPY ---- */

/* Reads the whole value of the source into a block, which the caller frees. */
static zarr_status copy_read(zarr_store *s, const zarr_store_op *op, void **out,
                             zarr_memory *mem, zarr_error *err)
{
    const zarr_store_source *from = op->source;
    const uint32_t kind = op->flags & ZARR_STORE_OP_KIND;
    zarr_store *src = from->store ? from->store : s;
    void *block = NULL;
    size_t n = 0;
    zarr_status st = ZARR_OK;

    for (int i = 0; i < EMULATE_TRIES; i++) {
        zarr_store_op stat = {.verb = ZARR_STORE_STAT,
                              .flags = kind,
                              .key = from->key,
                              .cancel = op->cancel};
        zarr_store_op get = {.verb = ZARR_STORE_GET,
                             .flags = kind,
                             .key = from->key,
                             .length = ZARR_STORE_TO_END,
                             .version = from->version,
                             .cancel = op->cancel};

        if (!zr_store_version_is_none(&from->version))
            get.flags |= ZARR_STORE_OP_IF_VERSION;
        ZR_TRY(zr_store_run_one(src, &stat, err));
        ZR_TRY(zr_emulate_check_limit(s, op, stat.object_bytes, err));
        if (!zr_fits(stat.object_bytes, &n) || !(block = zr_malloc(s->env.alloc, n)))
            ZR_FAIL_MEMORY(err, stat.object_bytes);
        *mem = get.mem = zr_mem_of_host(block, n);
        ZR_TRY(zr_store_run_one(src, &get, err));
        if (get.done_bytes == n &&
            (get.object_bytes == UINT64_MAX || get.object_bytes == n)) {
            *out = block;
            return ZARR_OK;
        }
        zr_free(s->env.alloc, block);
        block = NULL;
    }
    st = zr_fail(err, ZARR_ERR_CONFLICT, "%s: changed each time it was read", from->key);
out:
    zr_free(s->env.alloc, block);
    return st;
}

/* The store's own copy, else a GET and a PUT, of a part if op writes one. */
static void emulate_copy(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    const bool by_store = op->flags & ZR_STORE_OP_BY_STORE;
    /* a store that does not know the flag would replace the value */
    const uint32_t cap = op->flags & ZARR_STORE_OP_IN_PARTS ? ZARR_STORE_CAP_COPY_PARTS
                                                            : ZARR_STORE_CAP_COPY;
    zarr_store_op put = *op;
    void *block = NULL;
    zarr_status st;

    if (op->source->self && zr_store_can_key(s, op->key, cap)) {
        if (!s->native)
            op->flags &= ~ZR_STORE_OP_BY_STORE;
        s->run(s->run_self, op, err);
        if (op->status != ZARR_ERR_UNSUPPORTED)
            return;
    }
    if (by_store)
        st = zr_fail(err, ZARR_ERR_UNSUPPORTED,
                     "%s: stores of kind %s cannot copy this value", op->key, s->name);
    else
        st = copy_read(s, op, &block, &put.mem, err);
    if (st != ZARR_OK) {
        zr_op_end(op, st, 0);
        return;
    }
    put.verb = op->flags & ZARR_STORE_OP_IN_PARTS ? ZARR_STORE_PUT_PART : ZARR_STORE_PUT;
    put.flags &= ~(uint32_t)ZARR_STORE_OP_IN_PARTS;
    put.length = put.mem.bytes;
    put.source = NULL;
    emulate_memory(s, &put, err);
    zr_emulate_take_result(op, &put);
    op->done_bytes = op->object_bytes = put.mem.bytes;
    zr_free(s->env.alloc, block);
}

/* ---- all together ---- */

void zr_emulate_run(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    const uint32_t flags = op->flags;
    void *const lock = op->lock;
    zarr_status st;

    if (op->verb == ZARR_STORE_STAT) {
        zr_emulate_stat(s, op, err);
        return;
    }
    if (emulate_looks_instead(s, op)) {
        emulate_erase_nothing(s, op, err);
        return;
    }
    if (!emulate_takes_lock(s, op)) {
        if (!emulate_holds_lock(op)) {
            zr_op_end(op,
                      zr_fail(err, ZARR_ERR_INVALID, "%s: write with another key's lock",
                              op->key),
                      0);
            return;
        }
        zr_emulate_lock_begin(op);
    }
    if ((flags & ZR_STORE_OP_PINNED) && !s->native) {
        op->flags &= ~ZR_STORE_OP_PINNED;
        op->flags |= zr_emulate_version_flag(s);
        if (zr_pin_version(lock, &op->version))
            op->flags |= ZARR_STORE_OP_IF_VERSION;
        op->lock = NULL;
    }
    (op->verb == ZARR_STORE_COPY ? emulate_copy : emulate_memory)(s, op, err);
    op->flags = flags | (op->flags & ZR_STORE_OP_CREATED);
    op->lock = lock;
    if (op->status == ZARR_OK && (flags & ZR_STORE_OP_PINNED) && !s->native) {
        st = zr_pin_check(lock, op, err);
        if (st != ZARR_OK)
            zr_op_end(op, st, 0);
    }
}
