/*
 * zip/directory.c - finds the directory of an archive and reads it. Its end record is the
 * last thing in the archive, with a comment of up to 65,535 bytes behind it. The place of
 * the directory counts from the end record, not from the beginning, because other bytes
 * may be before the archive.
 *
 * If there is no end record at the end, a program was killed while it appended members,
 * or bytes were added to the archive. Then the last complete directory is searched
 * backwards through the whole archive. An archive can contain archives: there a directory
 * counts only if its numbers are those of the outer archive. If there is an end record
 * and its directory is damaged, nothing is searched: an older directory would hide
 * members, and their chunks would read as fill values.
 * Thread class: plain functions.
 */
#include "zip/zip_int.h"

#include <string.h>

enum {
    COMMENT_MOST = 65535,
    SEARCH_BYTES = 1 << 20,
    WINDOW_NEAR = 256 << 10, /* more than the longest record */
    WINDOW_FAR = 16 << 20,   /* a request to a network costs more than its bytes */
    CANDIDATE_COST = 4096
};

struct zip_finding {
    const struct zr_zip_archive *archive;
    struct zr_zip_table *table;
    struct zr_zip_window window;
    /* How many bytes of directories without success may still be read: a hostile archive
     * has many end records that share one directory. */
    uint64_t budget;
    bool recovers; /* searches backwards */
};

struct zip_end_record {
    uint64_t at, directory_bytes, directory_at, n;
    uint64_t comment_at, end_at;
    bool is_zip64;
};

static zarr_status fail_end(const struct zip_finding *f, const struct zip_end_record *e,
                            const char *what, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CORRUPT, "%s: the end record at byte %" PRIu64 " %s",
                   f->archive->key, e->at, what);
}

/* Reads the zip64 record, of which the locator before the end record tells the place. It
 * is directly before the locator, unless it has parts that no program writes. */
static zarr_status read_end64(struct zip_finding *f, struct zip_end_record *e,
                              zarr_error *err)
{
    const size_t both = ZR_ZIP_END64_BYTES + ZR_ZIP_LOCATOR_BYTES;
    const uint64_t end = e->at;
    uint8_t p[ZR_ZIP_END64_BYTES + ZR_ZIP_LOCATOR_BYTES];

    if (e->at < both)
        return ZARR_OK;
    ZR_CHECK(zr_zip_read_host(f->archive, e->at - both, both, p, err));
    if (zr_load_le32(p + ZR_ZIP_END64_BYTES) != ZR_ZIP_SIG_LOCATOR)
        return ZARR_OK; /* the numbers are as large as they say */
    if (zr_load_le32(p) != ZR_ZIP_SIG_END64) {
        const uint64_t at = zr_load_le64(p + ZR_ZIP_END64_BYTES + 8);

        if (at > end - both)
            return fail_end(f, e, "has no zip64 record", err);
        ZR_CHECK(zr_zip_read_host(f->archive, at, ZR_ZIP_END64_BYTES, p, err));
        e->at = at;
    } else {
        e->at = end - both;
    }
    if (zr_load_le32(p) != ZR_ZIP_SIG_END64)
        return fail_end(f, e, "is no zip64 record", err);
    if (zr_load_le32(p + 16) != 0 || zr_load_le32(p + 20) != 0)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "%s: a part of an archive of several files", f->archive->key);
    e->is_zip64 = true;
    e->n = zr_load_le64(p + 32);
    e->directory_bytes = zr_load_le64(p + 40);
    e->directory_at = zr_load_le64(p + 48);
    return ZARR_OK;
}

/* p: the end record, without its comment. */
static zarr_status read_end(struct zip_finding *f, const uint8_t *p,
                            struct zip_end_record *e, zarr_error *err)
{
    const uint16_t disk = zr_zip_u16(p + 4), start = zr_zip_u16(p + 6);

    e->n = zr_zip_u16(p + 10);
    e->directory_bytes = zr_load_le32(p + 12);
    e->directory_at = zr_load_le32(p + 16);
    if (e->n == UINT16_MAX || e->directory_bytes == UINT32_MAX ||
        e->directory_at == UINT32_MAX || disk == UINT16_MAX)
        ZR_CHECK(read_end64(f, e, err));
    if (!e->is_zip64 && (disk != 0 || start != 0))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "%s: a part of an archive of several files", f->archive->key);
    return ZARR_OK;
}

/* Where the directory begins in the value, and how many bytes are before the archive. */
static zarr_status place_directory(struct zip_finding *f, const struct zip_end_record *e,
                                   zarr_error *err)
{
    struct zr_zip_table *t = f->table;

    if (e->directory_bytes > e->at || e->directory_at > e->at - e->directory_bytes)
        return fail_end(f, e, "names a directory that does not end before it", err);
    t->directory_bytes = e->directory_bytes;
    t->directory_at = e->at - e->directory_bytes;
    t->base = t->directory_at - e->directory_at;
    t->comment_at = e->comment_at;
    t->end_at = e->end_at;
    if (f->recovers && t->base != 0)
        return fail_end(f, e, "is that of an archive inside of this one", err);
    return ZARR_OK;
}

static zarr_status read_members(struct zip_finding *f, const struct zip_end_record *e,
                                zarr_error *err)
{
    const uint64_t end = f->table->directory_at + f->table->directory_bytes;
    struct zr_zip_central c;
    const uint8_t *p = NULL;
    size_t n = 0;

    for (uint64_t at = f->table->directory_at; at < end; at += n) {
        if (end - at >= 4 && end - at < ZR_ZIP_CENTRAL_BYTES) {
            ZR_CHECK(zr_zip_window_get(&f->window, at, 4, end, &p, err));
            n = zr_load_le32(p) == ZR_ZIP_SIG_SIGNED ? (size_t)(end - at) : 0;
        } else {
            n = ZR_ZIP_CENTRAL_BYTES;
        }
        if (n == 0 || end - at < n)
            return fail_end(f, e, "names a directory that is cut off", err);
        if (n < ZR_ZIP_CENTRAL_BYTES)
            break;
        ZR_CHECK(zr_zip_window_get(&f->window, at, n, end, &p, err));
        if (zr_load_le32(p) == ZR_ZIP_SIG_SIGNED)
            break;
        n = zr_zip_central_bytes(p);
        if (n == 0 || n > end - at)
            return zr_fail(err, ZARR_ERR_CORRUPT,
                           "%s: there is no record of the directory at byte %" PRIu64,
                           f->archive->key, at);
        ZR_CHECK(zr_zip_window_get(&f->window, at, n, end, &p, err));
        zr_zip_central_parse(p, &c);
        ZR_CHECK(zr_zip_table_add(f->table, &c, err));
    }
    /* Without zip64, some programs write the last 16 bits of a larger number. */
    if (e->is_zip64 ? f->table->n != e->n : (f->table->n & UINT16_MAX) != e->n)
        return fail_end(f, e, "tells another number of members than there are", err);
    return ZARR_OK;
}

/* Reads the directory of the end record p at `at`. */
static zarr_status try_end(struct zip_finding *f, const uint8_t *p, uint64_t at,
                           zarr_error *err)
{
    const uint64_t comment_at = at + ZR_ZIP_END_BYTES;
    struct zip_end_record e = {
        .at = at,
        .comment_at = comment_at,
        .end_at = ZR_MIN(comment_at + zr_zip_u16(p + 20), f->archive->bytes)};
    uint64_t cost = 0;

    zr_zip_table_clear(f->table);
    ZR_CHECK(read_end(f, p, &e, err));
    cost = ZR_MAX(e.directory_bytes, (uint64_t)CANDIDATE_COST);
    ZR_CHECK(place_directory(f, &e, err));
    if (cost > f->budget)
        return fail_end(f, &e, "is one of too many that are wrong", err);
    f->budget -= cost;
    return read_members(f, &e, err);
}

/* Whether the search may go on after this failure. */
static bool is_wrong_end(zarr_status st)
{
    return st == ZARR_ERR_CORRUPT || st == ZARR_ERR_UNSUPPORTED;
}

/* ---- the search ---- */

static bool is_end(const uint8_t *p)
{
    return p[0] == 'P' && zr_load_le32(p) == ZR_ZIP_SIG_END;
}

/* Looks for an end record whose comment ends with the archive. A comment may contain what
 * looks like one, so the next ones are tried if the last is wrong. */
static zarr_status find_at_end(struct zip_finding *f, bool *found, zarr_error *err)
{
    const uint8_t *tail = f->window.tail;
    const size_t n = f->window.tail_bytes;
    const size_t most = ZR_MIN(n, (size_t)COMMENT_MOST + ZR_ZIP_END_BYTES);
    zarr_status st = ZARR_OK, first = ZARR_OK;
    zarr_error why;

    *found = false;
    for (size_t back = ZR_ZIP_END_BYTES; back <= most; back++) {
        const uint8_t *p = tail + n - back;

        if (!is_end(p) || zr_zip_u16(p + 20) != back - ZR_ZIP_END_BYTES)
            continue;
        st = try_end(f, p, f->archive->bytes - back, &why);
        *found = true;
        if (st == ZARR_OK || !is_wrong_end(st))
            return zr_pass(err, st, &why);
        if (first == ZARR_OK)
            first = zr_pass(err, st, &why);
    }
    return first;
}

/* Looks at the end records of bytes[0, n), which are at `at`, from the last one on. */
static zarr_status try_block(struct zip_finding *f, const uint8_t *bytes, size_t n,
                             uint64_t at, bool *found, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zarr_error why;

    for (size_t i = n - ZR_ZIP_END_BYTES + 1; i-- > 0;) {
        if (!is_end(bytes + i))
            continue;
        st = try_end(f, bytes + i, at + i, &why);
        *found = st == ZARR_OK;
        if (*found || !is_wrong_end(st) || f->budget < CANDIDATE_COST)
            return zr_pass(err, st, &why);
    }
    return ZARR_OK;
}

/* Searches the last complete directory in the whole archive. */
static zarr_status recover(struct zip_finding *f, bool *found, zarr_error *err)
{
    const zarr_allocator *alloc = f->archive->env.alloc;
    const size_t room = SEARCH_BYTES + ZR_ZIP_END_BYTES - 1;
    uint8_t *block = zr_malloc(alloc, room);
    uint64_t to = f->archive->bytes;
    zarr_status st = ZARR_OK;

    *found = false;
    if (!block)
        return zr_fail_memory(err, room);
    f->recovers = true;
    while (!*found && to >= ZR_ZIP_END_BYTES) {
        const uint64_t from = to > room ? to - room : 0;
        const size_t n = (size_t)(to - from);

        ZR_TRY(zr_zip_read_host(f->archive, from, n, block, err));
        ZR_TRY(try_block(f, block, n, from, found, err));
        if (from == 0)
            break;
        to = from + ZR_ZIP_END_BYTES - 1; /* one may lie across the border */
    }
out:
    zr_free(alloc, block);
    return st;
}

static bool begins_with_member(struct zip_finding *f)
{
    uint8_t p[4];
    uint32_t sig = 0;

    if (zr_zip_read_host(f->archive, 0, sizeof p, p, NULL) == ZARR_OK)
        sig = zr_load_le32(p);
    return sig == ZR_ZIP_SIG_LOCAL || sig == ZR_ZIP_SIG_END;
}

/* A directory at the end that does not count from the first byte can be that of an
 * archive in a value, which a killed writer appended. Then the outer archive has one
 * before the value. If two archives are joined, the second begins where the first ends.
 */
static zarr_status find_directory(struct zip_finding *f, bool *at_end, bool *found,
                                  zarr_error *err)
{
    const struct zr_zip_table *t = f->table;
    uint64_t base = UINT64_MAX;
    zarr_status st = find_at_end(f, at_end, err);

    if (st != ZARR_OK)
        return st;
    *found = *at_end;
    if (*at_end) {
        base = t->base;
        if (base == 0 || !begins_with_member(f))
            return ZARR_OK;
    }
    st = recover(f, found, err);
    if (!*at_end || (st != ZARR_OK && !is_wrong_end(st)))
        return st;
    *at_end = !*found || t->end_at >= base;
    if (!*at_end)
        return ZARR_OK;
    f->recovers = false;
    f->budget = zr_add_cap(f->archive->bytes, SEARCH_BYTES);
    return find_at_end(f, found, err);
}

static zarr_status fail_no_directory(const struct zip_finding *f, zarr_error *err)
{
    return zr_fail(
        err, ZARR_ERR_CORRUPT,
        "%s: no zip archive, or one that was cut off: there is no directory of "
        "its members",
        f->archive->key);
}

zarr_status zr_zip_directory_read(const struct zr_zip_archive *a, struct zr_zip_table *t,
                                  const uint8_t *tail, size_t tail_bytes, zarr_error *err)
{
    struct zip_finding f = {
        .archive = a,
        .table = t,
        .window = {.archive = a, .tail = tail, .tail_bytes = tail_bytes},
        .budget = zr_add_cap(a->bytes, SEARCH_BYTES)};
    bool at_end = false, found = false;
    zarr_status st = ZARR_OK;

    f.window.most = a->caps.flags & ZARR_STORE_CAP_FAST_GET ? (size_t)WINDOW_NEAR
                                                            : (size_t)WINDOW_FAR;
    ZR_TRY(find_directory(&f, &at_end, &found, err));
    if (!found)
        ZR_LEAVE(fail_no_directory(&f, err));
    st = zr_zip_table_finish(t, err);
out:
    zr_free(a->env.alloc, f.window.bytes);
    return st;
}
