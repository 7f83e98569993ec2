/*
 * zip/name.c - names of members. A name is UTF-8 if a flag says so, and also if it is
 * valid UTF-8: Info-ZIP stores it so without the flag. Then comes the extra field in
 * which other programs have a name in UTF-8. Any other name is in code page 437. Thread
 * class: plain functions.
 */
#include "zip/zip_int.h"

#include "codecs/codecs.h"

#include <string.h>

enum {
    FIELD_UNICODE = 0x7075,
    UNICODE_HEAD = 5 /* its version, and the CRC-32 of the name in the record */
};

/* The characters 0x80 to 0xff. */
static const uint16_t page_437[128] = {
    0x00c7, 0x00fc, 0x00e9, 0x00e2, 0x00e4, 0x00e0, 0x00e5, 0x00e7, 0x00ea, 0x00eb,
    0x00e8, 0x00ef, 0x00ee, 0x00ec, 0x00c4, 0x00c5, 0x00c9, 0x00e6, 0x00c6, 0x00f4,
    0x00f6, 0x00f2, 0x00fb, 0x00f9, 0x00ff, 0x00d6, 0x00dc, 0x00a2, 0x00a3, 0x00a5,
    0x20a7, 0x0192, 0x00e1, 0x00ed, 0x00f3, 0x00fa, 0x00f1, 0x00d1, 0x00aa, 0x00ba,
    0x00bf, 0x2310, 0x00ac, 0x00bd, 0x00bc, 0x00a1, 0x00ab, 0x00bb, 0x2591, 0x2592,
    0x2593, 0x2502, 0x2524, 0x2561, 0x2562, 0x2556, 0x2555, 0x2563, 0x2551, 0x2557,
    0x255d, 0x255c, 0x255b, 0x2510, 0x2514, 0x2534, 0x252c, 0x251c, 0x2500, 0x253c,
    0x255e, 0x255f, 0x255a, 0x2554, 0x2569, 0x2566, 0x2560, 0x2550, 0x256c, 0x2567,
    0x2568, 0x2564, 0x2565, 0x2559, 0x2558, 0x2552, 0x2553, 0x256b, 0x256a, 0x2518,
    0x250c, 0x2588, 0x2584, 0x258c, 0x2590, 0x2580, 0x03b1, 0x00df, 0x0393, 0x03c0,
    0x03a3, 0x03c3, 0x00b5, 0x03c4, 0x03a6, 0x0398, 0x03a9, 0x03b4, 0x221e, 0x03c6,
    0x03b5, 0x2229, 0x2261, 0x00b1, 0x2265, 0x2264, 0x2320, 0x2321, 0x00f7, 0x2248,
    0x00b0, 0x2219, 0x00b7, 0x221a, 0x207f, 0x00b2, 0x25a0, 0x00a0,
};

static void append_437(struct zr_str *out, const uint8_t *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t c = name[i] < 0x80 ? name[i] : page_437[name[i] - 0x80];

        if (c >= 0x800) {
            zr_str_putc(out, (char)(0xe0 | c >> 12));
            zr_str_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
        } else if (c >= 0x80) {
            zr_str_putc(out, (char)(0xc0 | c >> 6));
        }
        zr_str_putc(out, (char)(c < 0x80 ? c : 0x80 | (c & 0x3f)));
    }
}

/* The name that some programs add in UTF-8. It counts only for the name that it was made
 * from: another program may have changed that. */
static bool append_unicode(struct zr_str *out, const struct zr_zip_central *c)
{
    size_t n = 0;
    const uint8_t *field = zr_zip_central_field(c, FIELD_UNICODE, &n);

    if (!field || n <= UNICODE_HEAD || field[0] != 1 ||
        zr_load_le32(field + 1) != zr_codecs_crc32(0, c->name, c->name_bytes))
        return false;
    zr_str_append(out, field + UNICODE_HEAD, n - UNICODE_HEAD);
    return true;
}

void zr_zip_name(struct zr_str *out, const struct zr_zip_central *c, bool *converted)
{
    *converted = false;
    if ((c->flags & ZR_ZIP_FLAG_UTF8) ||
        zr_utf8_is_valid((const char *)c->name, c->name_bytes)) {
        zr_str_append(out, c->name, c->name_bytes);
        return;
    }
    *converted = true;
    if (!append_unicode(out, c))
        append_437(out, c->name, c->name_bytes);
}

bool zr_zip_name_is_key(const char *name, size_t n)
{
    return zr_key_validate(name, n, NULL) == ZARR_OK && !memchr(name, '\\', n);
}
