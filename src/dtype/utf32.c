/*
 * dtype/utf32.c - text of a fixed number of characters, each a 32-bit code point in the
 * array's byte order, padded with zeros at the end: v2 U<n>, v3 fixed_length_utf32 with
 * its length in bytes. JSON has the text without the padding. Damaged data may contain
 * code points that are not characters (surrogates, above U+10FFFF). Printing them returns
 * an error. Thread class: frozen.
 */
#include "dtype_int.h"

#include <string.h>

static zarr_status utf32_facts(zarr_dtype_info *info, uint64_t bytes, zarr_error *err)
{
    if (bytes == 0)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "data type %s: elements of zero bytes",
                       info->name);
    if (bytes % 4 != 0)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "data type %s: length_bytes is %" PRIu64
                       ", a multiple of 4 is expected",
                       info->name, bytes);
    info->kind = ZARR_KIND_UTF32;
    info->item_bytes = bytes;
    info->swap_bytes = 4;
    return ZARR_OK;
}

static zarr_status utf32_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                               const char *name, const char *json, zarr_error *err)
{
    uint64_t n = 0;

    ZR_UNUSED(host);
    ZR_CHECK(zr_config_length(info, name, json, &n, err));
    return utf32_facts(info, n, err);
}

static zarr_status utf32_parse_v2(zarr_dtype_info *info, const zarr_dtype_host *host,
                                  const char *v2, zarr_error *err)
{
    uint64_t n = 0, bytes = 0;

    ZR_UNUSED(host);
    if (!zr_parse_u64(v2 + 1, strlen(v2 + 1), &n) || !zr_mul(n, 4, &bytes))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "dtype \"%.64s\": a number of characters is expected", v2);
    return utf32_facts(info, bytes, err);
}

static zarr_status utf32_write(const zarr_dtype_info *info, uint32_t what, char *text,
                               size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const before[] = {
        [ZARR_DTYPE_TEXT_V3] =
            "{\"name\":\"fixed_length_utf32\",\"configuration\":{\"length_bytes\":",
        [ZARR_DTYPE_TEXT_NAME] = "fixed_length_utf32[",
        [ZARR_DTYPE_TEXT_V2] = "U",
    };
    static const char *const behind[] = {[ZARR_DTYPE_TEXT_V3] = "}}",
                                         [ZARR_DTYPE_TEXT_NAME] = "]",
                                         [ZARR_DTYPE_TEXT_V2] = ""};
    struct zr_sink s = {text, cap, 0};

    ZR_UNUSED(err);
    zr_sink_puts(&s, before[what]);
    zr_sink_u64(&s, what == ZARR_DTYPE_TEXT_V2 ? info->item_bytes / 4 : info->item_bytes);
    zr_sink_puts(&s, behind[what]);
    return zr_sink_end(&s, text_bytes);
}

/* ---- fill values ----------------------------------------------------------- */

/* Reads one character of UTF-8, which the JSON parser has checked, and moves *s past
 * it. */
static uint32_t utf8_next(const unsigned char **s)
{
    uint32_t c = *(*s)++;
    int more = c < 0x80 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;

    if (more)
        c &= 0x3Fu >> more;
    for (; more > 0; more--)
        c = c << 6 | (*(*s)++ & 0x3F);
    return c;
}

static zarr_status utf32_from_json(const zarr_dtype_info *info, int format,
                                   const struct zr_json *v, void *element,
                                   zarr_error *err)
{
    uint8_t *to = element, *end = to + info->item_bytes;
    const unsigned char *s, *s_end;
    uint64_t zero = 1;

    memset(element, 0, (size_t)info->item_bytes);
    if (format == 2 && zr_json_u64(v, &zero) && zero == 0) /* old files: 0 for "" */
        return ZARR_OK;
    if (!zr_json_is(v, ZR_JSON_STRING))
        return zr_value_refuse(info, v, "text is expected", err);
    s = (const unsigned char *)v->u.text.ptr;
    s_end = s + v->u.text.bytes;
    while (s < s_end) {
        uint32_t c = utf8_next(&s);

        if (to == end)
            return zr_value_refuse(info, v, "the text is too long", err);
        memcpy(to, &c, 4);
        to += 4;
    }
    return ZARR_OK;
}

ZR_FILL_PARSE(utf32)

static void sink_utf8(struct zr_sink *s, uint32_t c)
{
    if (c >= 0x10000) {
        zr_sink_putc(s, (char)(0xF0 | c >> 18));
        zr_sink_putc(s, (char)(0x80 | (c >> 12 & 0x3F)));
    } else if (c >= 0x800) {
        zr_sink_putc(s, (char)(0xE0 | c >> 12));
    } else {
        zr_sink_putc(s, (char)(0xC0 | c >> 6));
    }
    if (c >= 0x800)
        zr_sink_putc(s, (char)(0x80 | (c >> 6 & 0x3F)));
    zr_sink_putc(s, (char)(0x80 | (c & 0x3F)));
}

static void sink_ascii(struct zr_sink *s, char c)
{
    static const char digits[] = "0123456789abcdef";
    static const char named[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    const char *hit = c ? strchr(named, c) : NULL;

    if (hit) {
        zr_sink_putc(s, '\\');
        zr_sink_putc(s, letters[hit - named]);
    } else if (c < 0x20) {
        zr_sink_puts(s, "\\u00");
        zr_sink_putc(s, digits[c >> 4]);
        zr_sink_putc(s, digits[c & 15]);
    } else {
        zr_sink_putc(s, c);
    }
}

static uint32_t code_point(const uint8_t *element, uint64_t i)
{
    uint32_t c;

    memcpy(&c, element + 4 * i, 4);
    return c;
}

static zarr_status utf32_fill_print(const zarr_dtype_info *info, int format,
                                    const void *element, char *text, size_t cap,
                                    size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};
    uint64_t n = info->item_bytes / 4;

    ZR_UNUSED(format);
    while (n > 0 && code_point(element, n - 1) == 0)
        n--;
    zr_sink_putc(&s, '"');
    for (uint64_t i = 0; i < n; i++) {
        uint32_t c = code_point(element, i);

        if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
            return zr_fail(err, ZARR_ERR_CORRUPT,
                           "character %" PRIu64 " of a text is 0x%" PRIx32
                           ", which is not a Unicode character",
                           i, c);
        if (c < 0x80)
            sink_ascii(&s, (char)c);
        else
            sink_utf8(&s, c);
    }
    zr_sink_putc(&s, '"');
    return zr_sink_end(&s, text_bytes);
}

static int utf32_compare(const zarr_dtype_info *info, const void *a, const void *b)
{
    for (uint64_t i = 0; i < info->item_bytes / 4; i++) {
        const uint32_t x = code_point(a, i), y = code_point(b, i);

        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

const zarr_dtype_vtable zr_dtype_utf32 = {
    .struct_size = sizeof(zarr_dtype_vtable),
    .flags = ZARR_DTYPE_FAMILY,
    .name = "fixed_length_utf32",
    .v2 = "U",
    .parse = utf32_parse,
    .parse_v2 = utf32_parse_v2,
    .write = utf32_write,
    .fill_parse = utf32_fill_parse,
    .fill_print = utf32_fill_print,
    .numpy = "U",
    .compare = utf32_compare,
};
