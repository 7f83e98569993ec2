/*
 * store/part_list.c - which parts a value has that is not committed yet: by number, with
 * their places. A commit looks here for a part that is missing.
 * Thread class: solo; the store has a mutex.
 */
#include "store/store_int.h"

#include <string.h>

/* The first part whose number, or end, is `from` or more. An archive has a part for each
 * member. */
static size_t find_part(const struct zr_part_list *l, bool by_end, uint64_t from)
{
    size_t low = 0, high = l->n;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const struct zr_value_part *part = &l->part[mid];

        if ((by_end ? part->offset + part->bytes : part->number) < from)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool is_before(const struct zr_value_part *a, const struct zr_value_part *b)
{
    return a->offset <= b->offset && ZR_MAX(a->bytes, a->wanted) <= b->offset - a->offset;
}

zarr_status zr_part_list_put(struct zr_part_list *l, const zarr_allocator *alloc,
                             const struct zr_value_part *part, void **old,
                             zarr_error *err)
{
    const size_t i = find_part(l, false, part->number);
    const bool is_there = i < l->n && l->part[i].number == part->number;

    *old = is_there ? l->part[i].value : NULL;
    if (!is_there) {
        ZR_CHECK(zr_grow(alloc, &l->part, &l->cap, l->n + 1, sizeof *l->part, err));
        memmove(&l->part[i + 1], &l->part[i], (l->n++ - i) * sizeof *l->part);
    }
    l->part[i] = *part;
    if ((i > 0 && !is_before(&l->part[i - 1], part)) ||
        (i + 1 < l->n && !is_before(part, &l->part[i + 1])))
        l->has_overlap = true;
    return ZARR_OK;
}

const struct zr_value_part *zr_part_list_at(const struct zr_part_list *l, uint64_t at)
{
    const size_t i = find_part(l, true, zr_add_cap(at, 1));

    return i < l->n && l->part[i].offset <= at ? &l->part[i] : NULL;
}

bool zr_part_list_covers(const struct zr_part_list *l, uint64_t at, uint64_t bytes)
{
    const struct zr_value_part *part;

    for (uint64_t done = 0; done < bytes; done = part->offset + part->bytes - at) {
        part = zr_part_list_at(l, at + done);
        if (!part)
            return false;
    }
    return true;
}

zarr_status zr_part_list_check(const struct zr_part_list *l, const char *key,
                               uint64_t bytes, zarr_error *err)
{
    uint64_t end = 0;

    if (l->has_overlap)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: a part was at bytes of another part",
                       key);
    for (size_t i = 0; i < l->n; i++) {
        const struct zr_value_part *part = &l->part[i];

        if (part->number != i + 1 || part->offset != end)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "%s: part %zu is missing, or does not begin at byte %" PRIu64,
                           key, i + 1, end);
        end += part->bytes;
    }
    if (end != bytes || l->n == 0)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: %zu parts have %" PRIu64 " bytes, the value has %" PRIu64,
                       key, l->n, end, bytes);
    return ZARR_OK;
}
