/*
 * zip/record_writer.c - the bytes of a header, of a record of the directory, and of the
 * end. Members are stored without compression. The fields of zip64 are there only if a
 * number needs them.
 * Thread class: plain functions.
 */
#include "zip/zip_int.h"

#include <string.h>

enum {
    UNIX_HOST = 3 << 8,
    VERSION = 20,
    VERSION_ZIP64 = 45,
    ZIP64_FIELD = 0x0001
};
#define UNIX_FILE_0644 (UINT32_C(0100644) << 16)

static uint8_t *put_u16(uint8_t *p, size_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    return p + 2;
}

static uint8_t *put_u32(uint8_t *p, uint32_t v)
{
    zr_store_le32(p, v);
    return p + 4;
}

static uint8_t *put_u64(uint8_t *p, uint64_t v)
{
    zr_store_le64(p, v);
    return p + 8;
}

static uint8_t *put_raw(uint8_t *p, const void *bytes, size_t n)
{
    memcpy(p, bytes, n);
    return p + n;
}

static bool needs_zip64(uint64_t v)
{
    return v >= UINT32_MAX;
}

static uint32_t low(uint64_t v)
{
    return needs_zip64(v) ? UINT32_MAX : (uint32_t)v;
}

/* What both headers have from the version on, up to the length of the extra fields. */
static uint8_t *put_common(uint8_t *p, const struct zr_zip_record *r, bool zip64,
                           size_t extra)
{
    size_t flags = 0;

    for (size_t i = 0; i < r->name_bytes; i++)
        if ((uint8_t)r->name[i] >= 0x80)
            flags = ZR_ZIP_FLAG_UTF8;
    p = put_u16(p, zip64 ? VERSION_ZIP64 : VERSION);
    p = put_u16(p, flags);
    p = put_u16(p, ZR_ZIP_STORED);
    p = put_u32(p, r->time);
    p = put_u32(p, r->crc);
    p = put_u32(p, low(r->bytes));
    p = put_u32(p, low(r->bytes));
    p = put_u16(p, r->name_bytes);
    return put_u16(p, extra);
}

static uint8_t *put_sizes(uint8_t *p, const struct zr_zip_record *r)
{
    return put_u64(put_u64(p, r->bytes), r->bytes);
}

size_t zr_zip_write_local(uint8_t *p, const struct zr_zip_record *r)
{
    const bool zip64 = needs_zip64(r->bytes);
    uint8_t *at = put_common(put_u32(p, ZR_ZIP_SIG_LOCAL), r, zip64, zip64 ? 20 : 0);

    at = put_raw(at, r->name, r->name_bytes);
    if (zip64)
        at = put_sizes(put_u16(put_u16(at, ZIP64_FIELD), 16), r);
    return (size_t)(at - p);
}

size_t zr_zip_write_central(uint8_t *p, const struct zr_zip_record *r)
{
    const size_t sizes = needs_zip64(r->bytes) ? 16 : 0;
    const size_t extra = sizes + (needs_zip64(r->header_at) ? 8 : 0);
    uint8_t *at = put_u32(p, ZR_ZIP_SIG_CENTRAL);

    at = put_u16(at, UNIX_HOST | (extra > 0 ? VERSION_ZIP64 : VERSION));
    at = put_common(at, r, extra > 0, extra > 0 ? 4 + extra : 0);
    at = put_u16(put_u16(put_u16(at, 0), 0), 0); /* comment, disk, kind of text */
    at = put_u32(at, UNIX_FILE_0644);
    at = put_u32(at, low(r->header_at));
    at = put_raw(at, r->name, r->name_bytes);
    if (extra > 0)
        at = put_u16(put_u16(at, ZIP64_FIELD), extra);
    if (sizes > 0)
        at = put_sizes(at, r);
    if (extra > sizes)
        at = put_u64(at, r->header_at);
    return (size_t)(at - p);
}

/* The extra fields of a record, without that of zip64. Bytes that are no field stay. */
static uint8_t *put_other_fields(uint8_t *p, const struct zr_zip_central *c)
{
    const uint8_t *q = c->extra;
    size_t left = c->extra_bytes;

    while (left >= 4) {
        const size_t n = (size_t)4 + zr_zip_u16(q + 2);

        if (n > left)
            break;
        if (zr_zip_u16(q) != ZIP64_FIELD)
            p = put_raw(p, q, n);
        q += n;
        left -= n;
    }
    return put_raw(p, q, left);
}

size_t zr_zip_write_moved(uint8_t *p, const uint8_t *record, uint64_t header_at)
{
    struct zr_zip_central c;
    size_t zip64, extra;
    uint8_t *fields, *end;

    zr_zip_central_parse(record, &c);
    zip64 = (needs_zip64(c.bytes) ? 8u : 0u) + (needs_zip64(c.stored_bytes) ? 8u : 0u) +
            (needs_zip64(header_at) ? 8u : 0u);
    fields = end = put_raw(p, record, ZR_ZIP_CENTRAL_BYTES + c.name_bytes);
    if (zip64 > 0)
        end = put_u16(put_u16(end, ZIP64_FIELD), zip64);
    if (needs_zip64(c.bytes))
        end = put_u64(end, c.bytes);
    if (needs_zip64(c.stored_bytes))
        end = put_u64(end, c.stored_bytes);
    if (needs_zip64(header_at))
        end = put_u64(end, header_at);
    end = put_other_fields(end, &c);
    extra = (size_t)(end - fields);
    if (extra > UINT16_MAX)
        return 0;
    if (zip64 > 0)
        (void)put_u16(p + 6, ZR_MAX((size_t)zr_zip_u16(p + 6), (size_t)VERSION_ZIP64));
    (void)put_u32(put_u32(p + 20, low(c.stored_bytes)), low(c.bytes));
    (void)put_u16(p + 30, extra);
    (void)put_u16(p + 34, 0); /* number of the file of an archive of several */
    (void)put_u32(p + 42, low(header_at));
    end = put_raw(end, c.extra + c.extra_bytes, zr_zip_u16(record + 32)); /* comment */
    return (size_t)(end - p);
}

size_t zr_zip_write_end(uint8_t *p, uint64_t n, uint64_t at, uint64_t bytes,
                        uint16_t comment_bytes, bool is_zip64)
{
    const bool zip64 =
        is_zip64 || n >= UINT16_MAX || needs_zip64(at) || needs_zip64(bytes);
    const size_t low_n = is_zip64 || n >= UINT16_MAX ? UINT16_MAX : (size_t)n;
    uint8_t *q = p;

    if (zip64) {
        q = put_u64(put_u32(q, ZR_ZIP_SIG_END64), ZR_ZIP_END64_BYTES - 12);
        q = put_u16(put_u16(q, UNIX_HOST | VERSION_ZIP64), VERSION_ZIP64);
        q = put_u64(put_u64(put_u64(q, 0), n), n); /* 0: two numbers of disks */
        q = put_u64(put_u64(q, bytes), at);
        q = put_u64(put_u64(q, ZR_ZIP_SIG_LOCATOR), at + bytes);
        q = put_u32(q, 1);
    }
    q = put_u32(put_u32(q, ZR_ZIP_SIG_END), 0);
    q = put_u16(put_u16(q, low_n), low_n);
    q = put_u16(put_u32(put_u32(q, is_zip64 ? UINT32_MAX : low(bytes)),
                        is_zip64 ? UINT32_MAX : low(at)),
                comment_bytes);
    return (size_t)(q - p);
}

uint32_t zr_zip_time(void)
{
    /* days are counted from March 1st of a year that 400 divides: a leap day is the last
     * of its year */
    const int64_t seconds = ZR_MAX(zr_wall_seconds(), INT64_C(315532800)); /* of 1980 */
    const uint32_t day = (uint32_t)(seconds / 86400) + 719468,
                   s = (uint32_t)(seconds % 86400);
    const uint32_t era = day / 146097, d = day % 146097;
    const uint32_t y = (d - d / 1460 + d / 36524 - d / 146096) / 365;
    const uint32_t yd = d - (365 * y + y / 4 - y / 100), m = (5 * yd + 2) / 153;
    const uint32_t month = m < 10 ? m + 3 : m - 9;
    const uint32_t year = 400 * era + y + (month <= 2) - 1980;

    return ZR_MIN(year, 127u) << 25 | month << 21 | (yd - (153 * m + 2) / 5 + 1) << 16 |
           (s / 3600) << 11 | (s / 60 % 60) << 5 | (s % 60) / 2;
}
