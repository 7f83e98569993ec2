/*
 * store/emulate_range.c - reads ranges and suffixes of a store that has none, or whose
 * memory takes them: a suffix becomes size + range, a range of a store without ranges a
 * read of the whole value. Several requests make one answer only if the value was the
 * same in each. Thread class: any thread.
 */
#include "store/emulate_int.h"

/* A GET, without emulation, of `length` bytes at `offset` into mem. */
static void emulate_get(zarr_store *s, zarr_store_op *get, const zarr_store_op *op,
                        uint64_t offset, uint64_t length, zarr_memory mem,
                        zarr_error *err)
{
    const uint32_t passed = ZARR_STORE_OP_KIND | ZARR_STORE_OP_IF_VERSION;

    *get = (zarr_store_op){.verb = ZARR_STORE_GET,
                           .flags = zr_emulate_version_flag(s) | (op->flags & passed),
                           .key = op->key,
                           .version = op->version,
                           .offset = offset,
                           .length = length,
                           .mem = mem,
                           .object_bytes = UINT64_MAX,
                           .cancel = op->cancel};
    if (!zr_emulate_is_cancelled(op, get, err))
        s->run(s->run_self, get, err);
}

void zr_emulate_take_result(zarr_store_op *op, const zarr_store_op *get)
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
                               .flags = zr_emulate_version_flag(s) |
                                        (op->flags & ZARR_STORE_OP_KIND),
                               .key = op->key,
                               .cancel = op->cancel};
        zr_emulate_stat(s, &stat, err);
        if (stat.status != ZARR_OK) {
            zr_emulate_take_result(op, &stat);
            return;
        }
        if (emulate_is_other(op, &stat)) {
            zr_emulate_conflict(op, err);
            return;
        }
        zr_op_range(op, stat.object_bytes, &offset, &n);
        if (n == 0) {
            zr_emulate_take_result(op, &stat);
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
        zr_emulate_take_result(op, &get);
        op->object_bytes = stat.object_bytes;
        return;
    }
    emulate_gave_up(op, err);
}

zarr_status zr_emulate_check_limit(const zarr_store *s, const zarr_store_op *op,
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

    zr_emulate_take_result(op, get);
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
    zarr_status st = zr_emulate_check_limit(s, op, *bytes, err);
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
        zr_emulate_take_result(op, &get);
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
        zr_emulate_take_result(op, &get);
        return;
    }
    zr_emulate_stat(s, &stat, err);
    if (stat.status != ZARR_OK) {
        zr_emulate_take_result(op, &stat);
        return;
    }
    bytes = stat.object_bytes;
    for (int i = 0; i < EMULATE_TRIES; i++)
        if (emulate_whole_once(s, op, &bytes, err) &&
            op->status != ZARR_ERR_NOT_FOUND) /* it existed a moment ago: try again */
            return;
    emulate_gave_up(op, err);
}

void zr_emulate_range(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    if (op->verb != ZARR_STORE_GET || zr_emulate_takes_range(s, op))
        s->run(s->run_self, op, err);
    else if (op->offset == ZARR_STORE_SUFFIX && zr_store_can(s, ZARR_STORE_CAP_RANGES))
        emulate_suffix(s, op, err);
    else
        emulate_whole(s, op, err);
}
