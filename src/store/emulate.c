/*
 * store/emulate.c - emulates what a store cannot do by what it can do. It is the only
 * file that does so. It takes an operation apart in this order: a lock that only this
 * handle knows, a pin that remembers a version, memory the store cannot reach (a bounce
 * through host memory), the range. A COPY becomes GET + PUT. A suffix becomes size +
 * range. A range on a store without ranges becomes a read of the whole value. STAT
 * becomes an empty GET. Erasing a prefix becomes list + erase.
 *
 * Several requests make one answer only if the value was the same in each. Otherwise the
 * work begins again; after a few tries it fails with CONFLICT. Other files refuse what
 * cannot be emulated (conditions, locks between processes, listing). Blocks its thread;
 * allocates.
 *
 * Thread class: any thread.
 */
#include "store/store_int.h"

#include <stdlib.h>
#include <string.h>

enum {
    EMULATE_TRIES = 8
};

/* ---- what an operation needs ---- */

/* True if the store takes operations with this memory as they are. */
static bool emulate_takes_memory(const zarr_store *s, const zarr_memory *mem)
{
    if (mem->bytes == 0)
        return true;
    /* A foreign store that lists nothing knows plain host memory only. */
    if (!s->native && s->caps.n_device_types == 0)
        return mem->device_type == ZARR_DEVICE_CPU;
    return zr_store_device_direct(s, mem->device_type);
}

static bool emulate_takes_range(const zarr_store *s, const zarr_store_op *op)
{
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

/* True for an ERASE of a key that must not exist, on a store without such a condition. */
static bool emulate_looks_instead(const zarr_store *s, const zarr_store_op *op)
{
    return zr_op_erases_nothing(op) &&
           !zr_store_can_key(s, op->key, ZARR_STORE_CAP_ERASE_IF_VERSION);
}

bool zr_op_needs_emulation(const zarr_store *s, const zarr_store_op *op)
{
    switch (op->verb) {
    case ZARR_STORE_GET:
        if ((op->flags & ZR_STORE_OP_PINNED) && !s->native)
            return true;
        return !emulate_takes_range(s, op) || !emulate_takes_memory(s, &op->mem);
    case ZARR_STORE_PUT:
    case ZARR_STORE_PUT_PART:
        return !emulate_takes_memory(s, &op->mem) || !emulate_takes_lock(s, op);
    case ZARR_STORE_COPY:
        return true;
    case ZARR_STORE_ERASE:
        return !emulate_takes_lock(s, op) || emulate_looks_instead(s, op);
    default:
        /* not every foreign store has STAT */
        return !s->native && !atomic_load(&s->has_stat);
    }
}

/* The flag that asks for the version of the value, if the store has versions. */
static uint32_t emulate_version_flag(const zarr_store *s)
{
    return zr_store_can(s, ZARR_STORE_CAP_VERSIONS) ? ZARR_STORE_OP_WANT_VERSION : 0;
}

/* ---- pins ---- */

bool zr_emulate_is_only_pin(const zarr_store *s, const zarr_store_op *op)
{
    return op->verb == ZARR_STORE_GET && (op->flags & ZR_STORE_OP_PINNED) && !s->native &&
           emulate_takes_range(s, op) && emulate_takes_memory(s, &op->mem);
}

void zr_emulate_pin_begin(const zarr_store *s, zarr_store_op *op)
{
    op->tag = op->lock;
    op->lock = NULL;
    op->flags &= ~ZR_STORE_OP_PINNED;
    op->flags |= emulate_version_flag(s);
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
    return (op->verb == ZARR_STORE_PUT || op->verb == ZARR_STORE_ERASE) &&
           !emulate_takes_lock(s, op) && emulate_holds_lock(op) &&
           !emulate_looks_instead(s, op) &&
           (op->verb == ZARR_STORE_ERASE || emulate_takes_memory(s, &op->mem));
}

void zr_emulate_lock_begin(zarr_store_op *op)
{
    op->flags &= ~(uint32_t)ZARR_STORE_OP_LOCKED;
    op->lock = NULL;
}

/* ---- several operations ---- */

/* An operation that is emulated by several ends between two of them. */
static bool emulate_is_cancelled(const zarr_store_op *op, zarr_store_op *next,
                                 zarr_error *err)
{
    if (!op->cancel || !zr_is_cancelled(op->cancel))
        return false;
    zr_op_end(next, zr_fail(err, ZARR_ERR_CANCELLED, "%s: cancelled", op->key), 0);
    return true;
}

/* ---- STAT ---- */

static void emulate_stat(zarr_store *s, zarr_store_op *op, zarr_error *err)
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
    if (!emulate_is_cancelled(op, &get, err))
        s->run(s->run_self, &get, err);
    /* A store must set object_bytes if the value is longer than the memory, which has 0
     * bytes here. It did not, so the value is empty. */
    op->object_bytes = get.object_bytes == UINT64_MAX ? 0 : get.object_bytes;
    op->version = get.version;
    zr_op_end(op, get.status, get.os_code);
}

static void emulate_conflict(zarr_store_op *op, zarr_error *err)
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
        emulate_conflict(op, err);
    else
        zr_op_end(op, stat.status, stat.os_code);
}

/* ---- ranges; the store takes the memory ---- */

/* A GET, without emulation, of `length` bytes at `offset` into mem. */
static void emulate_get(zarr_store *s, zarr_store_op *get, const zarr_store_op *op,
                        uint64_t offset, uint64_t length, zarr_memory mem,
                        zarr_error *err)
{
    const uint32_t passed = ZARR_STORE_OP_KIND | ZARR_STORE_OP_IF_VERSION;

    *get = (zarr_store_op){.verb = ZARR_STORE_GET,
                           .flags = emulate_version_flag(s) | (op->flags & passed),
                           .key = op->key,
                           .version = op->version,
                           .offset = offset,
                           .length = length,
                           .mem = mem,
                           .object_bytes = UINT64_MAX,
                           .cancel = op->cancel};
    if (!emulate_is_cancelled(op, get, err))
        s->run(s->run_self, get, err);
}

static void emulate_take_result(zarr_store_op *op, const zarr_store_op *get)
{
    op->done_bytes = get->done_bytes;
    op->object_bytes = get->object_bytes;
    op->version = get->version;
    op->up_bytes = get->up_bytes;
    op->down_bytes = get->down_bytes;
    zr_op_end(op, get->status, get->os_code);
}

static void emulate_gave_up(zarr_store_op *op, zarr_error *err)
{
    zr_op_end(
        op, zr_fail(err, ZARR_ERR_CONFLICT, "%s: changed each time it was read", op->key),
        0);
}

/* Whether a read found another version than op expects. A store may not have looked. */
static bool emulate_is_other(const zarr_store_op *op, const zarr_store_op *read)
{
    return (op->flags & ZARR_STORE_OP_IF_VERSION) &&
           !zr_store_version_equal(&op->version, &read->version);
}

/* Asks for the size, then for the range that ends there. */
static void emulate_suffix(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    zarr_store_op stat, get, part;
    uint64_t offset, n;

    for (int i = 0; i < EMULATE_TRIES; i++) {
        stat = (zarr_store_op){.verb = ZARR_STORE_STAT,
                               .flags = emulate_version_flag(s) |
                                        (op->flags & ZARR_STORE_OP_KIND),
                               .key = op->key,
                               .cancel = op->cancel};
        emulate_stat(s, &stat, err);
        if (stat.status != ZARR_OK) {
            emulate_take_result(op, &stat);
            return;
        }
        if (emulate_is_other(op, &stat)) {
            emulate_conflict(op, err);
            return;
        }
        zr_op_range(op, stat.object_bytes, &offset, &n);
        if (n == 0) {
            emulate_take_result(op, &stat);
            op->done_bytes = 0;
            return;
        }
        part = *op;
        part.version = stat.version;
        if (!zr_store_version_is_none(&stat.version)) /* not every value has one */
            part.flags |= ZARR_STORE_OP_IF_VERSION;
        emulate_get(s, &get, &part, offset, n, op->mem, err);
        if (get.status == ZARR_ERR_NOT_FOUND || get.status == ZARR_ERR_CONFLICT)
            continue; /* deleted or replaced between the two */
        if (get.status == ZARR_OK &&
            (get.done_bytes != n ||
             (get.object_bytes != UINT64_MAX && get.object_bytes != stat.object_bytes) ||
             emulate_is_other(&part, &get)))
            continue;
        emulate_take_result(op, &get);
        op->object_bytes = stat.object_bytes;
        return;
    }
    emulate_gave_up(op, err);
}

static zarr_status emulate_check_limit(const zarr_store *s, const zarr_store_op *op,
                                       uint64_t bytes, zarr_error *err)
{
    uint64_t limit = s->env.limits.encoded_bytes;

    if (limit == 0 || bytes <= limit)
        return ZARR_OK;
    return zr_fail_limit(err, "encoded_bytes", limit, "%s: %" PRIu64 " bytes", op->key,
                         bytes);
}

/* Copies the range that op wants out of a whole value in host memory. */
static void emulate_cut(zarr_store *s, zarr_store_op *op, const zarr_memory *whole,
                        const zarr_store_op *get, zarr_error *err)
{
    struct zr_copy_counters counters = {0};
    zarr_memory part;
    uint64_t offset, n;
    zarr_status st = ZARR_OK;

    emulate_take_result(op, get);
    op->object_bytes = get->done_bytes;
    zr_op_range(op, get->done_bytes, &offset, &n);
    if (!zr_mem_slice(whole, offset, n, &part))
        st = zr_internal(err);
    else
        st = zr_mem_copy_bytes(s->env.memory, &op->mem, &part, n, &counters, err);
    zr_op_add_copies(op, &counters);
    op->done_bytes = st == ZARR_OK ? n : 0;
    zr_op_end(op, st, 0);
}

/* Reads the whole value into a block of `*bytes`. False if the value is longer; *bytes is
 * then its length. */
static bool emulate_whole_once(zarr_store *s, zarr_store_op *op, uint64_t *bytes,
                               zarr_error *err)
{
    void *block = NULL;
    zarr_store_op get;
    zarr_memory mem;
    zarr_status st = emulate_check_limit(s, op, *bytes, err);
    size_t n;
    bool is_done = true;

    if (st == ZARR_OK && (!zr_fits(*bytes, &n) || !(block = zr_malloc(s->env.alloc, n))))
        st = zr_fail_memory(err, *bytes);
    if (st != ZARR_OK) {
        zr_op_end(op, st, 0);
        return true;
    }
    mem = zr_mem_of_host(block, *bytes);
    emulate_get(s, &get, op, 0, ZARR_STORE_TO_END, mem, err);
    if (get.status != ZARR_OK) {
        emulate_take_result(op, &get);
    } else if (get.object_bytes != UINT64_MAX && get.object_bytes > *bytes) {
        *bytes = get.object_bytes;
        is_done = false;
    } else {
        emulate_cut(s, op, &mem, &get, err);
    }
    zr_free(s->env.alloc, block);
    return is_done;
}

static void emulate_whole(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    zarr_store_op stat = {.verb = ZARR_STORE_STAT,
                          .flags = op->flags & ZARR_STORE_OP_KIND,
                          .key = op->key,
                          .cancel = op->cancel};
    zarr_store_op get;
    zarr_memory mem = op->mem;
    uint64_t bytes;

    if (op->offset == 0) { /* from the beginning: a read with less memory does it */
        mem.bytes = ZR_MIN(mem.bytes, op->length);
        emulate_get(s, &get, op, 0, ZARR_STORE_TO_END, mem, err);
        emulate_take_result(op, &get);
        return;
    }
    emulate_stat(s, &stat, err);
    if (stat.status != ZARR_OK) {
        emulate_take_result(op, &stat);
        return;
    }
    bytes = stat.object_bytes;
    for (int i = 0; i < EMULATE_TRIES; i++)
        if (emulate_whole_once(s, op, &bytes, err) &&
            op->status != ZARR_ERR_NOT_FOUND) /* it existed a moment ago: try again */
            return;
    emulate_gave_up(op, err);
}

static void emulate_range(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    if (op->verb != ZARR_STORE_GET || emulate_takes_range(s, op))
        s->run(s->run_self, op, err);
    else if (op->offset == ZARR_STORE_SUFFIX && zr_store_can(s, ZARR_STORE_CAP_RANGES))
        emulate_suffix(s, op, err);
    else
        emulate_whole(s, op, err);
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
    emulate_range(s, op, err);
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
    zarr_memory plain = zr_mem_of_host(NULL, 0), mem = op->mem;
    void *host = NULL;
    zarr_status st;

    plain.bytes = 1; /* any number: only the memory kind matters */
    if (op->verb == ZARR_STORE_ERASE || emulate_takes_memory(s, &op->mem)) {
        emulate_range(s, op, err);
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
        emulate_range(s, op, err);
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
        ZR_TRY(emulate_check_limit(s, op, stat.object_bytes, err));
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

/* The store's own copy, else a GET and a PUT. */
static void emulate_copy(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    const bool by_store = op->flags & ZR_STORE_OP_BY_STORE;
    zarr_store_op put = *op;
    void *block = NULL;
    zarr_status st;

    if (op->source->self && zr_store_can_key(s, op->key, ZARR_STORE_CAP_COPY)) {
        if (!s->native)
            op->flags &= ~ZR_STORE_OP_BY_STORE;
        s->run(s->run_self, op, err);
        if (op->status != ZARR_ERR_UNSUPPORTED)
            return;
    }
    if (by_store)
        st = zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s: a %s store cannot copy this value",
                     op->key, s->name);
    else
        st = copy_read(s, op, &block, &put.mem, err);
    if (st != ZARR_OK) {
        zr_op_end(op, st, 0);
        return;
    }
    put.verb = ZARR_STORE_PUT;
    put.length = put.mem.bytes;
    put.source = NULL;
    emulate_memory(s, &put, err);
    emulate_take_result(op, &put);
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
        emulate_stat(s, op, err);
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
        op->flags |= emulate_version_flag(s);
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

/* ---- erasing a prefix ---- */

enum {
    EMULATE_PAGE = 4096 /* keys that are listed before they are erased */
};

struct emulate_keys {
    const zarr_allocator *alloc;
    struct zr_str text;
    const char **key;
    zarr_store_op *op;
    size_t n, cap, op_cap;
    size_t seen, skip; /* rows of this listing; how many of them are known to be gone */
    zarr_status status;
    zarr_error *err;
};

static int emulate_collect(void *user, const zarr_store_item *item)
{
    struct emulate_keys *k = user;

    if (item->is_prefix || k->seen++ < k->skip)
        return 0;
    zr_str_append(&k->text, item->key, strlen(item->key) + 1);
    k->n++;
    k->status = zr_str_status(&k->text, k->err);
    return k->status != ZARR_OK || k->n == EMULATE_PAGE;
}

static int emulate_deeper_first(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    int depth = 0;

    for (const char *p = x; *p != '\0'; p++)
        depth -= *p == '/';
    for (const char *p = y; *p != '\0'; p++)
        depth += *p == '/';
    return depth != 0 ? depth : strcmp(x, y);
}

/* Erases the keys of a page. *any: some were there. */
static zarr_status emulate_erase_keys(zarr_store *s, struct emulate_keys *k,
                                      const zarr_cancel *cancel, bool *any,
                                      zarr_error *err)
{
    const char *at = zr_str_text(&k->text);
    zarr_status st = ZARR_OK;

    *any = false;
    ZR_TRY(zr_grow(k->alloc, &k->key, &k->cap, k->n, sizeof *k->key, err));
    ZR_TRY(zr_grow(k->alloc, &k->op, &k->op_cap, k->n, sizeof *k->op, err));
    for (size_t i = 0; i < k->n; i++) {
        k->key[i] = at;
        at += strlen(at) + 1;
    }
    qsort(k->key, k->n, sizeof *k->key, emulate_deeper_first);
    for (size_t i = 0; i < k->n; i++)
        k->op[i] = (zarr_store_op){.verb = ZARR_STORE_ERASE,
                                   .flags = zr_key_kind(k->key[i]),
                                   .key = k->key[i],
                                   .cancel = cancel};
    ZR_TRY(zr_store_run(s, k->op, k->n, err));
    for (size_t i = 0; i < k->n; i++)
        *any = *any || k->op[i].status == ZARR_OK;
out:
    return st;
}

zarr_status zr_emulate_erase_prefix(zarr_store *s, const char *prefix,
                                    const zarr_cancel *cancel, zarr_error *err)
{
    struct emulate_keys k = {.alloc = s->env.alloc, .err = err};
    bool more = true, any = false;
    zarr_status st = ZARR_OK;

    zr_str_init(&k.text, k.alloc);
    while (more) {
        k.n = k.seen = 0;
        zr_str_clear(&k.text);
        ZR_TRY(zr_store_list(s, prefix, ZARR_LIST_RECURSIVE, emulate_collect, &k, cancel,
                             err));
        ZR_TRY(k.status);
        more = k.n == EMULATE_PAGE;
        if (k.n > 0)
            ZR_TRY(emulate_erase_keys(s, &k, cancel, &any, err));
        if (!any) /* a listing may show for long what is gone */
            k.skip += k.n;
    }
out:
    zr_free(k.alloc, k.key);
    zr_free(k.alloc, k.op);
    zr_str_deinit(&k.text);
    return st;
}
