/*
 * zip/records.c - takes one header of a directory apart. Every byte may be wrong: a field
 * that does not fit its record is ignored, as other readers do.
 * Thread class: plain functions.
 */
#include "zip/zip_int.h"

enum {
    FIELD_ZIP64 = 0x0001,
    FIELD_TIMES = 0x5455,
    UNIX_IS_LINK = 0xa000,
    UNIX_KIND = 0xf000,
    MADE_BY_UNIX = 3
};
#define SEE_ZIP64 UINT32_MAX

size_t zr_zip_central_bytes(const uint8_t *p)
{
    if (zr_load_le32(p) != ZR_ZIP_SIG_CENTRAL)
        return 0;
    return (size_t)ZR_ZIP_CENTRAL_BYTES + zr_zip_u16(p + 28) + zr_zip_u16(p + 30) +
           zr_zip_u16(p + 32);
}

const uint8_t *zr_zip_central_field(const struct zr_zip_central *c, uint16_t id,
                                    size_t *n)
{
    const uint8_t *p = c->extra;
    size_t left = c->extra_bytes;

    while (left >= 4) {
        *n = zr_zip_u16(p + 2);
        if (*n > left - 4)
            return NULL;
        if (zr_zip_u16(p) == id)
            return p + 4;
        p += 4 + *n;
        left -= 4 + *n;
    }
    return NULL;
}

/* The next number of the zip64 field, if the record does not have it itself. */
static void take_zip64(struct zr_zip_central *c, uint64_t *value, const uint8_t **p,
                       size_t *left)
{
    if (*value != SEE_ZIP64)
        return;
    if (*left < 8) {
        /* A value of 2^32 - 1 may also be meant, but no writer stores it without zip64.
         */
        c->is_bad = true;
        return;
    }
    *value = zr_load_le64(*p);
    *p += 8;
    *left -= 8;
}

void zr_zip_central_parse(const uint8_t *p, struct zr_zip_central *out)
{
    const uint8_t *field;
    size_t left = 0;

    *out = (struct zr_zip_central){.flags = zr_zip_u16(p + 8),
                                   .method = zr_zip_u16(p + 10),
                                   .crc = zr_load_le32(p + 16),
                                   .stored_bytes = zr_load_le32(p + 20),
                                   .bytes = zr_load_le32(p + 24),
                                   .header_at = zr_load_le32(p + 42),
                                   .name = p + ZR_ZIP_CENTRAL_BYTES,
                                   .name_bytes = zr_zip_u16(p + 28),
                                   .extra_bytes = zr_zip_u16(p + 30),
                                   .record_bytes = zr_zip_central_bytes(p)};
    out->extra = out->name + out->name_bytes;
    out->is_link =
        p[5] == MADE_BY_UNIX && (zr_zip_u16(p + 40) & UNIX_KIND) == UNIX_IS_LINK;
    if (out->bytes != SEE_ZIP64 && out->stored_bytes != SEE_ZIP64 &&
        out->header_at != SEE_ZIP64)
        return;
    field = zr_zip_central_field(out, FIELD_ZIP64, &left);
    if (!field)
        left = 0;
    take_zip64(out, &out->bytes, &field, &left);
    take_zip64(out, &out->stored_bytes, &field, &left);
    take_zip64(out, &out->header_at, &field, &left);
}

uint32_t zr_zip_usual_local_bytes(const struct zr_zip_central *c)
{
    uint32_t n = (uint32_t)(ZR_ZIP_LOCAL_BYTES + c->name_bytes + c->extra_bytes);
    size_t bytes = 0;
    const uint8_t *times = zr_zip_central_field(c, FIELD_TIMES, &bytes);

    /* Bits 0, 1 and 2 say which of three times the local header has. */
    if (times && bytes == 5)
        n += 4u * ((times[0] >> 1 & 1u) + (times[0] >> 2 & 1u));
    return n;
}
