/*
 * zip/member.c - reads a member. A stored member is a range of the archive, which goes
 * straight to the caller's memory. A compressed one is decoded whole: to the caller's
 * memory if the caller wants all of it, else to a value that is kept for a while.
 *
 * If the layout does not tell where the data begins, the first read of the member reads
 * its local header, and the data with it if the member is small. A whole value is checked
 * against the CRC-32 of the directory.
 * Thread class: shared.
 */
#include "zip/zip_int.h"

#include "codecs/codecs.h"
#include "mem/mem.h"

#include <string.h>

enum {
    TOGETHER_MOST = 256 << 10, /* data that is read with its header */
    EXTRA_GUESS = 256,         /* extra fields of the header */
    DEFLATE_MOST = 1032        /* deflate makes at most so many bytes of one */
};

struct zip_reading {
    struct zr_zip_store *z;
    struct zr_zip_view *v;
    const struct zr_zip_member *m;
    struct zr_zip_caller caller;
    const char *key;
};

/* ---- errors ---- */

static zarr_status fail_member(const struct zip_reading *r, zarr_status st,
                               zarr_error *err, const char *what)
{
    return zr_fail(err, st, "%s: member of %s: %s", r->key, r->v->archive.key, what);
}

static const char *method_name(uint16_t method)
{
    static const struct {
        uint16_t method;
        const char *name;
    } known[] = {{9, "deflate64"}, {12, "bzip2"}, {14, "LZMA"}, {20, "an old zstd"},
                 {95, "xz"},       {98, "PPMd"},  {99, "AES"}};

    for (size_t i = 0; i < ZR_COUNT(known); i++)
        if (known[i].method == method)
            return known[i].name;
    return "an unknown method";
}

const char *zr_zip_member_fault(const struct zr_zip_member *m)
{
    if (m->flags & ZR_ZIP_IS_BAD)
        return "its record in the directory contradicts itself";
    if (m->flags & ZR_ZIP_IS_OUTSIDE)
        return "its bytes are not between the begin of the archive and the directory";
    if (m->flags & ZR_ZIP_OVERLAPS)
        return "it overlaps with another member";
    return NULL;
}

/* Whether the member can be read at all. */
static zarr_status check_readable(const struct zip_reading *r, zarr_error *err)
{
    const struct zr_zip_member *m = r->m;
    const char *fault = NULL;

    if (m->flags & ZR_ZIP_IS_ENCRYPTED)
        return fail_member(r, ZARR_ERR_UNSUPPORTED, err, "it is encrypted");
    if (m->flags & ZR_ZIP_IS_LINK)
        return fail_member(r, ZARR_ERR_UNSUPPORTED, err, "it is a symbolic link");
    if (m->method != ZR_ZIP_STORED && m->method != ZR_ZIP_DEFLATED &&
        m->method != ZR_ZIP_ZSTD)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "%s: member of %s: it is compressed by %s (method %u); stored, "
                       "deflate and zstd can be read",
                       r->key, r->v->archive.key, method_name(m->method),
                       (unsigned)m->method);
    fault = zr_zip_member_fault(m);
    if (fault)
        return fail_member(r, ZARR_ERR_CORRUPT, err, fault);
    return ZARR_OK;
}

static zarr_status check_sum(const struct zip_reading *r, const void *bytes, size_t n,
                             zarr_error *err)
{
    if (zr_codecs_crc32(0, bytes, n) == r->m->crc)
        return ZARR_OK;
    return fail_member(r, ZARR_ERR_CORRUPT, err,
                       "its CRC-32 is not that of the directory");
}

/* ---- the local header ---- */

/* p: ZR_ZIP_LOCAL_BYTES and then the name, n bytes in all. Notes where the data is. */
static zarr_status take_header(const struct zip_reading *r, const uint8_t *p,
                               uint32_t *lead, zarr_error *err)
{
    const struct zr_zip_member *m = r->m;
    const size_t n = strlen(r->key); /* the name ends with it */
    uint64_t end = 0;

    if (zr_load_le32(p) != ZR_ZIP_SIG_LOCAL || zr_zip_u16(p + 8) != m->method ||
        (zr_zip_u16(p + 6) & ZR_ZIP_FLAG_ENCRYPTED) ||
        (!(m->flags & ZR_ZIP_IS_CONVERTED) &&
         (zr_zip_u16(p + 26) != m->name_bytes ||
          memcmp(p + ZR_ZIP_LOCAL_BYTES + m->name_bytes - n, r->key, n) != 0)))
        return fail_member(r, ZARR_ERR_CORRUPT, err,
                           "its local header is not that of the directory");
    *lead = (uint32_t)ZR_ZIP_LOCAL_BYTES + zr_zip_u16(p + 26) + zr_zip_u16(p + 28);
    if (!zr_add(m->header_at, *lead, &end) || !zr_add(end, m->stored_bytes, &end) ||
        end > r->v->members_end)
        return fail_member(r, ZARR_ERR_CORRUPT, err,
                           "its local header says that it does not end before the "
                           "directory");
    zr_zip_view_note(r->z, r->v, r->key, *lead);
    return ZARR_OK;
}

/* How many bytes read_header() reads. */
static uint64_t header_bytes(const struct zip_reading *r, uint64_t more)
{
    const uint64_t head = (uint64_t)ZR_ZIP_LOCAL_BYTES + r->m->name_bytes;

    /* settle_member() found that the header is before the directory */
    return ZR_MIN(r->v->members_end - r->m->header_at, head + more);
}

/* Reads the local header, and up to `more` bytes after the shortest header. *got becomes
 * the length of the block. */
static zarr_status read_header(const struct zip_reading *r, uint64_t more, uint32_t *lead,
                               uint8_t **block, size_t *got, zarr_error *err)
{
    const struct zr_zip_archive *a = &r->v->archive;
    const size_t head = (size_t)ZR_ZIP_LOCAL_BYTES + r->m->name_bytes;
    zarr_memory mem = {.device_type = ZARR_DEVICE_CPU};

    *got = (size_t)header_bytes(r, more);
    *block = zr_calloc(a->env.alloc, 1, ZR_MAX(*got, head));
    if (!*block)
        return zr_fail_memory(err, *got);
    mem.handle = *block;
    mem.bytes = *got;
    ZR_CHECK(zr_zip_read(a, r->m->header_at, *got, &mem, &r->caller, err));
    return take_header(r, *block, lead, err);
}

/* Finds where the data begins, counted from the local header. */
static zarr_status find_lead(const struct zip_reading *r, uint32_t *lead, zarr_error *err)
{
    uint8_t *block = NULL;
    size_t got = 0;
    zarr_status st = ZARR_OK;

    *lead = r->m->lead;
    if (*lead == 0)
        st = read_header(r, 0, lead, &block, &got, err);
    zr_free(r->v->archive.env.alloc, block);
    return st;
}

/* Reads n bytes of the stored data at `from` to the beginning of mem. */
static zarr_status read_stored(const struct zip_reading *r, uint64_t from, uint64_t n,
                               const zarr_memory *mem, zarr_error *err)
{
    uint32_t lead = 0;

    ZR_CHECK(find_lead(r, &lead, err));
    return zr_zip_read(&r->v->archive, r->m->header_at + lead + from, n, mem, &r->caller,
                       err);
}

/* Reads all stored bytes to host memory, with the local header if it must be read. */
static zarr_status read_all(const struct zip_reading *r, uint8_t *to, zarr_error *err)
{
    const uint64_t n = r->m->stored_bytes;
    const zarr_memory mem = {.device_type = ZARR_DEVICE_CPU, .handle = to, .bytes = n};
    uint8_t *block = NULL;
    uint32_t lead = 0;
    size_t got = 0;
    zarr_status st = ZARR_OK;

    if (n == 0)
        return ZARR_OK;
    if (n > TOGETHER_MOST || r->m->lead != 0)
        return read_stored(r, 0, n, &mem, err);
    ZR_TRY(read_header(r, n + EXTRA_GUESS, &lead, &block, &got, err));
    if (lead + n <= got)
        memcpy(to, block + lead, (size_t)n);
    else
        st = read_stored(r, 0, n, &mem, err);
out:
    zr_free(r->v->archive.env.alloc, block);
    return st;
}

/* ---- compressed members ---- */

static zarr_status check_sizes(const struct zip_reading *r, zarr_error *err)
{
    const uint64_t most = r->v->archive.env.limits.chunk_bytes;
    const uint64_t larger = ZR_MAX(r->m->bytes, r->m->stored_bytes);

    if (larger > most)
        return zr_fail_limit(err, "chunk_bytes", most,
                             "%s: member of %s: it is compressed, and has %" PRIu64
                             " bytes",
                             r->key, r->v->archive.key, larger);
    if (r->m->method == ZR_ZIP_DEFLATED &&
        r->m->bytes / DEFLATE_MOST > r->m->stored_bytes)
        return fail_member(r, ZARR_ERR_CORRUPT, err,
                           "deflate cannot make so many bytes of so few");
    return ZARR_OK;
}

static zarr_status decode_to(const struct zip_reading *r, uint8_t *to, zarr_error *err)
{
    const zarr_allocator *alloc = r->v->archive.env.alloc;
    const size_t stored = (size_t)r->m->stored_bytes, n = (size_t)r->m->bytes;
    uint8_t *from = zr_malloc(alloc, stored);
    zarr_status st = ZARR_OK;

    if (!from)
        return zr_fail_memory(err, stored);
    ZR_TRY(read_all(r, from, err));
    st = r->m->method == ZR_ZIP_DEFLATED ? zr_codecs_inflate(to, n, from, stored, err)
                                         : zr_codecs_unzstd(to, n, from, stored, err);
    if (st != ZARR_OK)
        ZR_LEAVE(zr_prefix(err, st, "%s: member of %s", r->key, r->v->archive.key));
    st = check_sum(r, to, n, err);
out:
    zr_free(alloc, from);
    return st;
}

static zarr_status make_value(const struct zip_reading *r, struct zr_zip_value **out,
                              zarr_error *err)
{
    const zarr_allocator *alloc = r->v->archive.env.alloc;
    struct zr_zip_value *value = NULL;
    size_t bytes = 0;
    zarr_status st = ZARR_OK;

    if (zr_add(r->m->bytes, sizeof *value, &bytes))
        value = zr_malloc(alloc, bytes);
    if (!value)
        return zr_fail_memory(err, r->m->bytes);
    atomic_init(&value->refs, 1);
    value->bytes = (size_t)r->m->bytes;
    ZR_TRY(decode_to(r, value->data, err));
    *out = value;
    value = NULL;
out:
    zr_zip_value_free(alloc, value);
    return st;
}

/* ---- a GET ---- */

/* A decoded value shows nothing of the archive. Over a network a handle that only reads
 * does not ask: the value is that of the archive which it opened. */
static zarr_status check_value_current(const struct zip_reading *r, zarr_error *err)
{
    const struct zr_zip_archive *a = &r->v->archive;
    bool is_current = false;
    zarr_status st = ZARR_OK;

    if (a->in_session || !(r->z->can_write || a->caps.flags & ZARR_STORE_CAP_FAST_GET))
        return ZARR_OK;
    st = zr_zip_is_current(a, r->caller.cancel, &is_current, err);
    return st == ZARR_OK && !is_current ? zr_zip_fail_changed(a, &r->caller, err) : st;
}

/* to: the memory of the operation, which the host can reach. */
static zarr_status get_decoded(const struct zip_reading *r, uint64_t from, uint64_t n,
                               uint8_t *to, zarr_error *err)
{
    struct zr_zip_value *value = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(check_sizes(r, err));
    if (n == r->m->bytes)
        return decode_to(r, to, err);
    value = zr_zip_values_get(&r->z->values, r->v);
    if (value) {
        st = check_value_current(r, err);
    } else {
        st = make_value(r, &value, err);
        zr_zip_values_put(&r->z->values, r->v, value);
    }
    if (st == ZARR_OK)
        memcpy(to, value->data + from, (size_t)n);
    zr_zip_value_free(r->v->archive.env.alloc, value);
out:
    return st;
}

static zarr_status get_member_range(const struct zip_reading *r, const zarr_store_op *op,
                                    uint64_t from, uint64_t n, zarr_error *err)
{
    zarr_memory mem = {.device_type = ZARR_DEVICE_CPU, .bytes = n};
    void *host = NULL;

    ZR_CHECK(check_readable(r, err));
    if (n == 0)
        return r->m->bytes == 0 ? check_sum(r, "", 0, err) : ZARR_OK;
    ZR_CHECK(zr_mem_host_ptr(r->v->archive.env.memory, &op->mem, n, &host, err));
    if (r->m->method != ZR_ZIP_STORED)
        return get_decoded(r, from, n, host, err);
    mem.handle = host;
    if (n < r->m->bytes)
        return read_stored(r, from, n, &mem, err);
    ZR_CHECK(read_all(r, host, err));
    return check_sum(r, host, (size_t)n, err);
}

static struct zip_reading begin_reading(struct zr_zip_store *z, struct zr_zip_view *v,
                                        const zarr_store_op *op,
                                        const struct zr_zip_ahead *ahead)
{
    return (struct zip_reading){.z = z,
                                .v = v,
                                .m = &v->m,
                                .caller = {.kind = op->flags & ZARR_STORE_OP_KIND,
                                           .cancel = op->cancel,
                                           .ahead = ahead,
                                           .has_changed = &v->has_changed},
                                .key = op->key};
}

/* Which bytes of its value a GET reads. */
static void find_member_range(const struct zr_zip_member *m, const zarr_store_op *op,
                              uint64_t *from, uint64_t *n)
{
    *n = ZR_MIN(op->length, op->mem.bytes);
    if (op->offset == ZARR_STORE_SUFFIX) {
        *from = m->bytes - ZR_MIN(op->length, m->bytes);
        *n = ZR_MIN(*n, m->bytes);
    } else {
        *from = ZR_MIN(op->offset, m->bytes);
        *n = ZR_MIN(*n, m->bytes - *from);
    }
}

zarr_status zr_zip_get(struct zr_zip_store *z, struct zr_zip_view *v, zarr_store_op *op,
                       const struct zr_zip_ahead *ahead, zarr_error *err)
{
    const struct zip_reading r = begin_reading(z, v, op, ahead);
    uint64_t from, n;
    zarr_status st;

    find_member_range(&v->m, op, &from, &n);
    op->object_bytes = v->m.bytes;
    st = get_member_range(&r, op, from, n, err);
    op->done_bytes = st == ZARR_OK ? n : 0;
    return st;
}

/* ---- what is read ahead ---- */

/* A part of a compressed member is left to zr_zip_get(), which keeps the value. So is a
 * value that takes far more bytes than it has. */
static bool is_read_whole(const struct zip_reading *r, uint64_t n)
{
    return n == r->m->bytes && check_sizes(r, NULL) == ZARR_OK &&
           r->m->stored_bytes <= zr_add_cap(zr_mul_cap(n, 2), EXTRA_GUESS);
}

bool zr_zip_get_first(struct zr_zip_store *z, struct zr_zip_view *v,
                      const zarr_store_op *op, bool headers, struct zr_zip_first *out)
{
    const struct zip_reading r = begin_reading(z, v, op, NULL);
    const struct zr_zip_member *m = &v->m;
    const uint32_t lead = m->lead;
    uint64_t from, n;
    bool together;

    find_member_range(&v->m, op, &from, &n);
    if (n == 0 || check_readable(&r, NULL) != ZARR_OK ||
        (m->method != ZR_ZIP_STORED && !is_read_whole(&r, n)))
        return false;
    together = n == m->bytes && m->stored_bytes <= TOGETHER_MOST; /* as read_all() does */
    *out = (struct zr_zip_first){.at = m->header_at};
    if (headers) {
        out->n = header_bytes(&r, 0);
        return lead == 0 && !together;
    }
    if (lead == 0) {
        out->n = header_bytes(&r, m->stored_bytes + EXTRA_GUESS);
        return together;
    }
    out->at += lead;
    out->n = m->stored_bytes;
    if (m->method != ZR_ZIP_STORED)
        return out->n > 0;
    out->at += from;
    out->n = n;
    return zr_mem_host_ptr(z->archive.env.memory, &op->mem, n, &out->to, NULL) == ZARR_OK;
}

void zr_zip_take_header(struct zr_zip_store *z, struct zr_zip_view *v,
                        const zarr_store_op *op, const struct zr_zip_ahead *ahead)
{
    const struct zip_reading r = begin_reading(z, v, op, ahead);
    uint32_t lead;

    (void)find_lead(&r, &lead, NULL);
}
