/*
 * store/memory/memory_parts.c - a value of the memory store while it is written in parts.
 * Each part is a block; the commit copies them into one value.
 * Thread class: shared until it is committed.
 */
#include "store/memory/memory_int.h"

#include <string.h>

struct zr_memory_part {
    struct zr_memory_part *next;
    struct zr_memory_value *value; /* owned */
    uint64_t number, offset;
};

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
    struct zr_memory_part *part, *next;

    for (part = p->locked.first; part; part = next) {
        next = part->next;
        zr_memory_value_free(part->value);
        zr_free(p->alloc, part);
    }
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
    struct zr_memory_part **at, *part = zr_malloc(p->alloc, sizeof *part);

    if (!part)
        return zr_fail_memory(err, sizeof *part);
    *part =
        (struct zr_memory_part){.value = value, .number = op->part, .offset = op->offset};
    zr_mutex_lock(&p->locked.mutex);
    for (at = &p->locked.first; *at && (*at)->number < op->part; at = &(*at)->next)
        ;
    part->next = *at;
    *at = part;
    at = &part->next;
    part = *at && (*at)->number == op->part ? *at : NULL; /* sent a second time */
    if (part)
        *at = part->next;
    zr_mutex_unlock(&p->locked.mutex);
    if (part)
        zr_memory_value_free(part->value);
    zr_free(p->alloc, part);
    return ZARR_OK;
}

zarr_status zr_memory_parts_join(struct zr_memory_parts *p,
                                 const struct zr_memory_registry *memory,
                                 const zarr_memory *to, zarr_store_op *op,
                                 zarr_error *err)
{
    const struct zr_memory_part *part = p->locked.first;
    struct zr_copy_counters counters = {0};
    uint64_t at = 0;
    zarr_memory room;
    zarr_status st = ZARR_OK;

    for (; part && part->offset == at; part = part->next) {
        const zarr_memory *from = &part->value->mem;

        if (!zr_mem_slice(to, at, from->bytes, &room))
            break;
        if (from->bytes > 0)
            ZR_TRY(zr_mem_copy_bytes(memory, &room, from, from->bytes, &counters, err));
        at += from->bytes;
    }
    if (part || at != to->bytes)
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "%s: the parts do not make a value of %" PRIu64 " bytes", p->key,
                     to->bytes);
out:
    zr_op_add_copies(op, &counters);
    return st;
}
