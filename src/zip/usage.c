/*
 * zip/usage.c - counts the bytes of an archive that no value uses: members that a later
 * record replaced, and bytes that no record names, such as erased members, old
 * directories, and what a killed writer appended. No header is read, so up to 32 bytes
 * behind a member count as extra fields of its header.
 * Thread class: the caller has the mutex of the store.
 */
#include "zip/zip_int.h"

#include <stdlib.h>

enum {
    EXTRA_BYTES = 32,     /* which the directory does not show */
    DESCRIPTOR_BYTES = 24 /* at most */
};

struct usage_place {
    uint64_t at;
    const struct zr_zip_member *m;
};

static int by_record_place(const void *a, const void *b)
{
    const struct usage_place *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

static bool is_placed(const struct zr_zip_member *m)
{
    return !(m->flags & (ZR_ZIP_IS_OUTSIDE | ZR_ZIP_IS_BAD));
}

uint64_t zr_zip_dead_behind(const struct zr_zip_member *m, uint64_t next_at)
{
    const bool is_converted = m->flags & ZR_ZIP_IS_CONVERTED;
    const uint64_t slack = EXTRA_BYTES + (is_converted ? m->name_bytes : 0u) +
                           (m->flags & ZR_ZIP_HAS_DESCRIPTOR ? DESCRIPTOR_BYTES : 0u);
    uint64_t end = 0;

    if (m->flags & ZR_ZIP_IS_DEAD)
        return next_at - m->header_at;
    end = m->header_at + ZR_ZIP_LOCAL_BYTES + (is_converted ? 0u : m->name_bytes);
    if (!zr_add(end, m->stored_bytes, &end) || end > next_at || next_at - end <= slack)
        return 0;
    return next_at - end;
}

uint64_t zr_zip_first_at(const struct zr_zip_table *t)
{
    uint64_t first_at = UINT64_MAX;

    for (size_t i = 0; i < t->n_recorded; i++)
        if (is_placed(&t->member[i]))
            first_at = ZR_MIN(first_at, t->member[i].header_at);
    return first_at;
}

bool zr_zip_is_headed(const uint8_t first[4])
{
    const uint32_t sig = zr_load_le32(first);

    return sig != ZR_ZIP_SIG_LOCAL && sig != ZR_ZIP_SIG_END && sig != ZR_ZIP_SIG_END64;
}

void zr_zip_count_dead(const struct zr_zip_table *t, uint64_t archive_bytes,
                       bool is_headed, zarr_store_counters *out)
{
    struct usage_place *place = zr_calloc(t->alloc, t->n_recorded + 1, sizeof *place);
    size_t n = 0;

    if (!place)
        return;
    for (size_t i = 0; i < t->n_recorded; i++)
        if (is_placed(&t->member[i]))
            place[n++] = (struct usage_place){t->member[i].header_at, &t->member[i]};
    qsort(place, n, sizeof *place, by_record_place);
    place[n].at = t->directory_at;
    if (!is_headed || n == 0)
        out->dead_bytes += place[0].at - t->base;
    out->dead_bytes += archive_bytes - t->end_at;
    for (size_t i = 0; i < n; i++) {
        out->dead_bytes += zr_zip_dead_behind(place[i].m, place[i + 1].at);
        out->dead_values += (place[i].m->flags & ZR_ZIP_IS_DEAD) != 0;
    }
    zr_free(t->alloc, place);
}
