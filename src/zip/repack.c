/*
 * zip/repack.c - writes an archive anew without the bytes that no value uses. It is a
 * session whose draft begins empty: it gets the members as they are in the archive, with
 * their local headers, and a directory. So other programs find the old archive or the new
 * one, and those that write wait.
 *
 * Nothing is decoded. Each local header must fit its record, and stored values must have
 * the CRC-32 of the record: else the archive stays as it is.
 * Thread class: called by the busy thread.
 */
#include "zip/zip_int.h"

#include "codecs/codecs.h"

#include <stdlib.h>
#include <string.h>

enum {
    REPACK_PIECE_BYTES = 8 << 20, /* of a part of the draft */
    REPACK_WINDOW_BYTES = 1 << 20,
    LOCAL_FIELD_ZIP64 = 0x0001,
    DESCRIPTOR_MOST = 24
};
#define SIG_DESCRIPTOR UINT32_C(0x08074b50)

struct repack_place {
    uint64_t at;
    uint32_t i; /* number of the member */
};

struct zip_repack {
    struct zr_zip_store *z;
    struct zr_zip_archive from; /* the old archive; its reads compare versions */
    struct zr_zip_window window;
    struct zr_str piece;        /* not yet written */
    struct repack_place *place; /* the members that stay, by their place, and the end */
    size_t n;
    uint64_t head;    /* bytes before the members, which stay */
    uint64_t *new_at; /* of each member of the table */
    const zarr_cancel *cancel;
};

static zarr_status fail_repack(const struct zip_repack *r, const struct zr_zip_member *m,
                               const char *what, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CORRUPT,
                   "%s: member of %s: %s: the archive is not repacked",
                   zr_zip_table_name(&r->z->table, m), r->from.key, what);
}

/* ---- what stays, and whether anything has to change ---- */

static int by_old_place(const void *a, const void *b)
{
    const struct repack_place *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

static zarr_status list_places(struct zip_repack *r, zarr_error *err)
{
    const struct zr_zip_table *t = &r->z->table;

    r->place = zr_calloc(t->alloc, t->n + 1, sizeof *r->place);
    r->new_at = zr_calloc(t->alloc, t->n + 1, sizeof *r->new_at);
    if (!r->place || !r->new_at)
        return zr_fail_memory(err, (t->n + 1) * sizeof *r->place);
    for (size_t i = 0; i < t->n; i++) {
        const struct zr_zip_member *m = &t->member[i];
        const char *fault = zr_zip_member_fault(m);

        if (m->flags & ZR_ZIP_IS_DEAD)
            continue;
        if (fault)
            return fail_repack(r, m, fault, err);
        r->place[r->n++] = (struct repack_place){m->header_at, (uint32_t)i};
    }
    qsort(r->place, r->n, sizeof *r->place, by_old_place);
    r->place[r->n].at = t->directory_at;
    return ZARR_OK;
}

/* Bytes before the archive stay, also if its offsets count them. */
static zarr_status find_head(struct zip_repack *r, zarr_error *err)
{
    const struct zr_zip_table *t = &r->z->table;
    uint64_t first_at = r->place[0].at;
    uint8_t p[4];

    r->head = t->base;
    for (size_t i = 0; i < t->n; i++)
        if (!zr_zip_member_fault(&t->member[i]))
            first_at = ZR_MIN(first_at, t->member[i].header_at);
    if (t->base > 0 || first_at < sizeof p)
        return ZARR_OK;
    ZR_CHECK(zr_zip_read_host(&r->from, 0, sizeof p, p, err));
    if (zr_zip_is_headed(p))
        r->head = first_at;
    return ZARR_OK;
}

/* Whether the members, and the records of the directory, are in the order of levels. */
static bool is_by_level(const struct zip_repack *r)
{
    const struct zr_zip_store *z = r->z;
    unsigned level = 0, of_record = 0;

    for (size_t i = 0; i < r->n; i++) {
        const unsigned next = zr_zip_level(z, &z->table.member[r->place[i].i]);

        if (next < level)
            return false;
        level = next;
    }
    for (size_t i = 0; i < z->table.n; i++) {
        const unsigned next = zr_zip_level(z, &z->table.member[i]);

        if (z->table.member[i].flags & ZR_ZIP_IS_DEAD)
            continue;
        if (next < of_record)
            return false;
        of_record = next;
    }
    return true;
}

/* Counts the bytes behind place[i] that no value uses. If there seem to be some, the
 * local header tells how long it is. */
static zarr_status count_dead(struct zip_repack *r, size_t i, uint64_t *dead,
                              zarr_error *err)
{
    const struct zr_zip_member *m = &r->z->table.member[r->place[i].i];
    const uint64_t next_at = r->place[i + 1].at;
    const uint64_t late = m->flags & ZR_ZIP_HAS_DESCRIPTOR ? DESCRIPTOR_MOST : 0;
    uint64_t used = 0;
    const uint8_t *p = NULL;

    if (zr_zip_dead_behind(m, next_at) == 0)
        return ZARR_OK;
    ZR_CHECK(zr_zip_window_get(&r->window, m->header_at, ZR_ZIP_LOCAL_BYTES, next_at, &p,
                               err));
    used = (uint64_t)ZR_ZIP_LOCAL_BYTES + zr_zip_u16(p + 26) + zr_zip_u16(p + 28) + late;
    if (zr_add(used, m->stored_bytes, &used) && used < next_at - m->header_at)
        *dead += next_at - m->header_at - used;
    return ZARR_OK;
}

static zarr_status look(struct zip_repack *r, zarr_repack_result *out, zarr_error *err)
{
    const struct zr_zip_table *t = &r->z->table;
    uint64_t dead = r->place[0].at - r->head + (r->z->archive.bytes - t->end_at);
    bool is_same = true;

    for (size_t i = 0; i < r->n; i++)
        ZR_CHECK(count_dead(r, i, &dead, err));
    if (r->z->is_ozx)
        ZR_CHECK(zr_zip_ozx_is_same(r->z, &is_same, err));
    out->is_needed = dead > 0 || r->n < t->n || !is_same || !is_by_level(r);
    out->bytes_before = r->z->archive.bytes;
    out->bytes_after = out->bytes_before - ZR_MIN(dead, out->bytes_before);
    return ZARR_OK;
}

/* ---- members ---- */

static zarr_status write_repacked(struct zip_repack *r, zarr_error *err)
{
    zarr_status st = zr_str_status(&r->piece, err);

    if (st == ZARR_OK && r->piece.bytes > 0)
        st = zr_zip_session_write(r->z, r->piece.ptr, r->piece.bytes, r->cancel, err);
    zr_str_clear(&r->piece);
    return st;
}

static zarr_status add_repacked(struct zip_repack *r, const void *bytes, size_t n,
                                zarr_error *err)
{
    zr_str_append(&r->piece, bytes, n);
    return r->piece.failed || r->piece.bytes >= REPACK_PIECE_BYTES
               ? write_repacked(r, err)
               : ZARR_OK;
}

/* Copies n bytes at `at`. Reads ahead up to `end`. */
static zarr_status copy_range(struct zip_repack *r, uint64_t at, uint64_t n, uint64_t end,
                              uint32_t *crc, zarr_error *err)
{
    const uint8_t *p = NULL;

    for (uint64_t done = 0; done < n;) {
        const uint64_t from = at + done, seen = r->window.at + r->window.n;
        const uint64_t most = from >= r->window.at && from < seen
                                  ? seen - from
                                  : (uint64_t)REPACK_WINDOW_BYTES;
        const size_t some = (size_t)ZR_MIN(n - done, most);

        ZR_CHECK(zr_cancel_check(r->cancel, err));
        ZR_CHECK(zr_zip_window_get(&r->window, from, some, end, &p, err));
        *crc = zr_codecs_crc32(*crc, p, some);
        ZR_CHECK(add_repacked(r, p, some, err));
        done += some;
    }
    return ZARR_OK;
}

static uint32_t low_bits(uint64_t v)
{
    return v >= UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* The numbers of a local header, which are 0 if a descriptor follows the data. */
static bool has_numbers(const uint8_t *p, const struct zr_zip_member *m)
{
    const uint32_t stored = zr_load_le32(p + 18), bytes = zr_load_le32(p + 22);

    return zr_load_le32(p + 14) == m->crc &&
           (stored == low_bits(m->stored_bytes) || stored == UINT32_MAX) &&
           (bytes == low_bits(m->bytes) || bytes == UINT32_MAX);
}

struct repack_header {
    uint32_t bytes; /* from it to the data */
    bool has_descriptor, is_zip64;
};

/* Whether it has a field of zip64. */
static zarr_status find_zip64(struct zip_repack *r, const struct zr_zip_member *m,
                              struct repack_header *h, uint64_t end, zarr_error *err)
{
    struct zr_zip_central c = {0};
    const uint8_t *p = NULL;
    size_t n = 0;

    ZR_CHECK(zr_zip_window_get(&r->window, m->header_at, h->bytes, end, &p, err));
    c.extra_bytes = zr_zip_u16(p + 28);
    c.extra = p + h->bytes - c.extra_bytes;
    h->is_zip64 = zr_zip_central_field(&c, LOCAL_FIELD_ZIP64, &n) ||
                  m->bytes >= UINT32_MAX || m->stored_bytes >= UINT32_MAX;
    return ZARR_OK;
}

/* Checks the local header of place[i]. Reads ahead up to `end`. */
static zarr_status check_local(struct zip_repack *r, size_t i, uint64_t end,
                               struct repack_header *h, zarr_error *err)
{
    const struct zr_zip_member *m = &r->z->table.member[r->place[i].i];
    const bool is_encrypted = m->flags & ZR_ZIP_IS_ENCRYPTED;
    const size_t name = m->flags & ZR_ZIP_IS_CONVERTED ? 0 : m->name_bytes;
    const uint64_t room = r->place[i + 1].at - m->header_at;
    const uint8_t *p = NULL;
    uint16_t flags;

    /* settle_member() found that there are so many bytes */
    ZR_CHECK(zr_zip_window_get(&r->window, m->header_at, ZR_ZIP_LOCAL_BYTES + name, end,
                               &p, err));
    flags = zr_zip_u16(p + 6);
    h->bytes = (uint32_t)ZR_ZIP_LOCAL_BYTES + zr_zip_u16(p + 26) + zr_zip_u16(p + 28);
    h->has_descriptor = flags & ZR_ZIP_FLAG_DESCRIPTOR;
    if (zr_load_le32(p) != ZR_ZIP_SIG_LOCAL || zr_zip_u16(p + 8) != m->method ||
        ((flags & ZR_ZIP_FLAG_ENCRYPTED) != 0) != is_encrypted ||
        (name > 0 &&
         (zr_zip_u16(p + 26) != name ||
          memcmp(p + ZR_ZIP_LOCAL_BYTES, zr_zip_table_name(&r->z->table, m), name) != 0)))
        return fail_repack(r, m, "its local header is not that of the directory", err);
    if (!h->has_descriptor && !has_numbers(p, m))
        return fail_repack(r, m, "its local header has other sizes than the directory",
                           err);
    if (room < h->bytes || room - h->bytes < m->stored_bytes)
        return fail_repack(r, m, "its local header says that it overlaps with the next",
                           err);
    if (h->has_descriptor)
        return find_zip64(r, m, h, end, err);
    return ZARR_OK;
}

/* The sizes after the data, in the form that the local header asks for. */
static zarr_status add_descriptor(struct zip_repack *r, const struct zr_zip_member *m,
                                  bool is_zip64, zarr_error *err)
{
    uint8_t p[DESCRIPTOR_MOST];

    zr_store_le32(p, SIG_DESCRIPTOR);
    zr_store_le32(p + 4, m->crc);
    if (is_zip64) {
        zr_store_le64(p + 8, m->stored_bytes);
        zr_store_le64(p + 16, m->bytes);
    } else {
        zr_store_le32(p + 8, (uint32_t)m->stored_bytes);
        zr_store_le32(p + 12, (uint32_t)m->bytes);
    }
    return add_repacked(r, p, is_zip64 ? DESCRIPTOR_MOST : 16, err);
}

/* Reads ahead up to `end`. */
static zarr_status copy_member(struct zip_repack *r, size_t i, uint64_t end,
                               zarr_error *err)
{
    const struct zr_zip_member *m = &r->z->table.member[r->place[i].i];
    struct repack_header h = {0};
    uint32_t crc = 0, of_header = 0;

    r->new_at[r->place[i].i] = r->z->session.end + r->piece.bytes;
    ZR_CHECK(check_local(r, i, end, &h, err));
    ZR_CHECK(copy_range(r, m->header_at, h.bytes, end, &of_header, err));
    ZR_CHECK(copy_range(r, m->header_at + h.bytes, m->stored_bytes, end, &crc, err));
    if (m->method == ZR_ZIP_STORED && !(m->flags & ZR_ZIP_IS_ENCRYPTED) && crc != m->crc)
        return fail_repack(r, m, "its CRC-32 is not that of the directory", err);
    if (h.has_descriptor)
        return add_descriptor(r, m, h.is_zip64, err);
    return ZARR_OK;
}

/* Copies all members, one level after another. Those of the last level are most, and are
 * read in one go. */
static zarr_status copy_members(struct zip_repack *r, zarr_error *err)
{
    const struct zr_zip_table *t = &r->z->table;
    const uint64_t levels = zr_zip_levels(r->z);
    uint32_t crc = 0;

    ZR_CHECK(copy_range(r, 0, r->head, r->head, &crc, err));
    for (unsigned level = 0; level < ZR_ZIP_LEVELS; level++) {
        const bool is_last = levels >> level <= 1;

        for (size_t i = 0; levels >> level & 1 && i < r->n; i++)
            if (zr_zip_level(r->z, &t->member[r->place[i].i]) == level)
                ZR_CHECK(copy_member(r, i, is_last ? t->directory_at : r->place[i + 1].at,
                                     err));
    }
    return write_repacked(r, err);
}

/* ---- the whole ---- */

static void repack_deinit(struct zip_repack *r)
{
    const zarr_allocator *alloc = r->z->table.alloc;

    zr_str_deinit(&r->piece);
    zr_free(alloc, r->window.bytes);
    zr_free(alloc, r->place);
    zr_free(alloc, r->new_at);
}

static void repack_init(struct zip_repack *r, struct zr_zip_store *z,
                        const zarr_cancel *cancel)
{
    *r = (struct zip_repack){.z = z, .from = z->archive, .cancel = cancel};
    r->from.cancel = cancel;
    r->from.in_session = false;
    r->window = (struct zr_zip_window){.archive = &r->from, .most = REPACK_WINDOW_BYTES};
    zr_str_init(&r->piece, z->table.alloc);
}

/* only_look: changes nothing; else in a session, with its table. */
static zarr_status look_and_repack(struct zr_zip_store *z, bool only_look,
                                   zarr_repack_result *out, const zarr_cancel *cancel,
                                   zarr_error *err)
{
    struct zip_repack r;
    zarr_status st = ZARR_OK;

    repack_init(&r, z, cancel);
    ZR_TRY(list_places(&r, err));
    ZR_TRY(find_head(&r, err));
    ZR_TRY(look(&r, out, err));
    if (only_look || !out->is_needed)
        goto out;
    ZR_TRY(zr_zip_session_begin_anew(z, cancel, err));
    ZR_TRY(copy_members(&r, err));
    ZR_TRY(zr_zip_directory_write(z, r.new_at, err));
    out->bytes_after = z->session.end;
out:
    repack_deinit(&r);
    return st;
}

zarr_status zr_zip_repack_busy(struct zr_zip_store *z, zarr_repack_result *out,
                               const zarr_cancel *cancel, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_zip_session_begin(z, cancel, err));
    atomic_store(&z->idle_at_ns, UINT64_MAX); /* the keeper need not wait for this */
    st = look_and_repack(z, false, out, cancel, err);
    if (st == ZARR_OK)
        st = zr_zip_session_end(z, err);
    if (st != ZARR_OK && z->archive.in_session)
        zr_zip_session_drop(z);
out:
    return st;
}

zarr_status zr_zip_repack(void *self, uint32_t flags, zarr_repack_result *out,
                          const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_zip_store *z = self;
    zarr_status st = zr_zip_busy_begin(z, cancel, err);

    if (st != ZARR_OK)
        return st;
    ZR_TRY(zr_zip_session_end(z, err));
    ZR_TRY(zr_zip_refresh_busy(z, true, cancel, err));
    if (z->archive.bytes == 0) /* not written yet */
        goto out;
    st = flags & ZARR_REPACK_LOOK ? look_and_repack(z, true, out, cancel, err)
                                  : zr_zip_repack_busy(z, out, cancel, err);
out:
    zr_zip_busy_end(z);
    return st == ZARR_OK && !(flags & ZARR_REPACK_LOOK)
               ? zarr_store_flush(z->archive.store, cancel, err)
               : st;
}
