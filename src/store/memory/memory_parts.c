/*
 * store/memory/memory_parts.c - a value of the memory store while it is written in parts.
 * Each part is a block; the commit copies them into one value.
 * Thread class: shared until it is committed.
 */
#include "store/memory/memory_int.h"

#include <string.h>

zarr_status zr_memory_parts_create(struct zr_memory_parts **out,
                                   const zarr_allocator *alloc, const char *key,
                                   zarr_error *err)
{
    const size_t n = strlen(key) + 1;
    struct zr_memory_parts *p = zr_calloc(alloc, 1, sizeof *p + n);

    if (!p)
        return zr_fail_memory(err, sizeof *p + n);
    p->alloc = alloc;
    zr_mutex_init(&p->locked.mutex);
    memcpy(p->key, key, n);
    *out = p;
    return ZARR_OK;
}

void zr_memory_parts_free(struct zr_memory_parts *p)
{
    for (size_t i = 0; i < p->locked.list.n; i++)
        zr_memory_value_free(p->locked.list.part[i].value);
    zr_free(p->alloc, p->locked.list.part);
    zr_mutex_deinit(&p->locked.mutex);
    zr_free(p->alloc, p);
}

zarr_status zr_memory_parts_check(const struct zr_memory_parts *p, const char *key,
                                  zarr_error *err)
{
    if (strcmp(p->key, key) == 0)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INVALID, "%s: write with the parts of another key", key);
}

zarr_status zr_memory_parts_add(struct zr_memory_parts *p, const zarr_store_op *op,
                                struct zr_memory_value *value, zarr_error *err)
{
    const struct zr_value_part part = {.number = op->part,
                                       .offset = op->offset,
                                       .bytes = value->mem.bytes,
                                       .value = value};
    void *old = NULL; /* sent a second time */
    zarr_status st;

    zr_mutex_lock(&p->locked.mutex);
    st = zr_part_list_put(&p->locked.list, p->alloc, &part, &old, err);
    zr_mutex_unlock(&p->locked.mutex);
    zr_memory_value_free(old);
    return st;
}

/* The value of the part that has the byte `at`, counted, and where it begins; or NULL.
 */
static struct zr_memory_value *parts_find(struct zr_memory_parts *p, uint64_t at,
                                          uint64_t *begin)
{
    struct zr_memory_value *found = NULL;
    const struct zr_value_part *part;

    zr_mutex_lock(&p->locked.mutex);
    part = zr_part_list_at(&p->locked.list, at);
    if (part) {
        found = part->value;
        *begin = part->offset;
        atomic_fetch_add(&found->refs, 1);
    }
    zr_mutex_unlock(&p->locked.mutex);
    return found;
}

zarr_status zr_memory_parts_read(struct zr_memory_parts *p,
                                 const struct zr_memory_registry *memory,
                                 zarr_store_op *op, zarr_error *err)
{
    const uint64_t n = ZR_MIN(op->length, op->mem.bytes);
    struct zr_copy_counters counters = {0};
    struct zr_memory_value *v = NULL;
    zarr_memory from, to;
    uint64_t begin = 0;
    zarr_status st = ZARR_OK;

    for (uint64_t done = 0, more; done < n; done += more) {
        v = parts_find(p, op->offset + done, &begin);
        if (!v)
            ZR_FAIL(err, ZARR_ERR_INVALID,
                    "%s: the parts have no %" PRIu64 " bytes at %" PRIu64, p->key, n,
                    op->offset);
        begin = op->offset + done - begin;
        more = ZR_MIN(n - done, v->mem.bytes - begin);
        if (!zr_mem_slice(&v->mem, begin, more, &from) ||
            !zr_mem_slice(&op->mem, done, more, &to))
            ZR_TRY(zr_internal(err));
        ZR_TRY(zr_mem_copy_bytes(memory, &to, &from, more, &counters, err));
        zr_memory_value_free(v);
        v = NULL;
    }
    op->done_bytes = n;
out:
    zr_memory_value_free(v);
    zr_op_add_copies(op, &counters);
    return st;
}

zarr_status zr_memory_parts_join(struct zr_memory_parts *p,
                                 const struct zr_memory_registry *memory,
                                 const zarr_memory *to, zarr_store_op *op,
                                 zarr_error *err)
{
    const struct zr_part_list *list = &p->locked.list;
    struct zr_copy_counters counters = {0};
    zarr_memory room;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_part_list_check(list, p->key, to->bytes, err));
    for (size_t i = 0; i < list->n; i++) {
        const struct zr_value_part *part = &list->part[i];
        const struct zr_memory_value *v = part->value;

        if (part->bytes == 0)
            continue;
        if (!zr_mem_slice(to, part->offset, part->bytes, &room))
            ZR_TRY(zr_internal(err));
        ZR_TRY(zr_mem_copy_bytes(memory, &room, &v->mem, part->bytes, &counters, err));
    }
out:
    zr_op_add_copies(op, &counters);
    return st;
}
