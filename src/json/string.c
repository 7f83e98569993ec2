/*
 * json/string.c - the strings of a JSON text: checks them and unescapes them in place. A
 * NUL behind the text stops each loop in time.
 * Thread class: a parse is solo.
 */
#include "json_int.h"

#include <string.h>

/* Bytes of a string that need no further check: printable ASCII without " and \. */
static const uint8_t json_plain[256] = {
    [0x20] = 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* " */
    [0x30] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    [0x40] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    [0x50] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, /* \ */
    [0x60] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    [0x70] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
};

static zarr_status json_bad_string(const struct zr_json_parser *ps, const char *at,
                                   const char *why)
{
    return zr_fail(ps->err, ZARR_ERR_CORRUPT, "byte %" PRIu64 ": %s",
                   zr_json_position(ps, at),
                   at >= ps->end ? "the JSON text ends in a string" : why);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads the four digits of \uXXXX. Returns -1 if there are others. The final NUL stops it
 * in time. */
static int32_t hex_unit(const char *p)
{
    int32_t unit = 0;

    for (int i = 0; i < 4; i++) {
        int d = hex_digit(p[i]);

        if (d < 0)
            return -1;
        unit = unit << 4 | d;
    }
    return unit;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xE0 | c >> 12);
        } else {
            *to++ = (char)(0xF0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 0x3F));
        }
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
    }
    *to++ = (char)(0x80 | (c & 0x3F));
    return to;
}

/* Reads an escape; p is at its 'u'. Writes at *to, which is never after p. */
static zarr_status json_unicode(const struct zr_json_parser *ps, char **p, char **to)
{
    const char *escape = *p - 1;
    int32_t unit = hex_unit(*p + 1), low;

    if (unit < 0)
        return json_bad_string(ps, escape, "\\u needs four hexadecimal digits");
    *p += 5;
    if (unit >= 0xDC00 && unit <= 0xDFFF)
        return json_bad_string(ps, escape, "lone surrogate");
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        low = (*p)[0] == '\\' && (*p)[1] == 'u' ? hex_unit(*p + 2) : -1;
        if (low < 0xDC00 || low > 0xDFFF)
            return json_bad_string(ps, escape, "lone surrogate");
        *p += 6;
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    *to = put_utf8(*to, (uint32_t)unit);
    return ZARR_OK;
}

static zarr_status json_escape(const struct zr_json_parser *ps, char **p, char **to)
{
    static const char from[] = "\"\\/bfnrt";
    static const char into[] = "\"\\/\b\f\n\r\t";
    const char *hit;

    (*p)++;
    if (**p == 'u')
        return json_unicode(ps, p, to);
    hit = **p ? strchr(from, **p) : NULL;
    if (!hit)
        return json_bad_string(ps, *p, "unknown escape in a string");
    *(*to)++ = into[hit - from];
    (*p)++;
    return ZARR_OK;
}

/* The length of the UTF-8 sequence at s; 0: malformed, overlong, a surrogate, or too
 * large. */
static size_t utf8_length(const unsigned char *s)
{
    unsigned char low = 0x80, high = 0xBF;
    size_t n;

    if (s[0] >= 0xC2 && s[0] <= 0xDF)
        n = 2;
    else if (s[0] >= 0xE0 && s[0] <= 0xEF)
        n = 3;
    else if (s[0] >= 0xF0 && s[0] <= 0xF4)
        n = 4;
    else
        return 0;
    if (s[0] == 0xE0)
        low = 0xA0;
    else if (s[0] == 0xED)
        high = 0x9F;
    else if (s[0] == 0xF0)
        low = 0x90;
    else if (s[0] == 0xF4)
        high = 0x8F;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

/* Reads the rest of a string, from the first byte that is not plain to its closing
 * quote. */
static zarr_status json_string_rest(struct zr_json_parser *ps, char *p, char **to_io)
{
    zarr_status st = ZARR_OK;
    char *to = *to_io;

    for (;;) {
        unsigned char c = (unsigned char)*p;

        if (json_plain[c]) {
            *to++ = *p++;
        } else if (c == '"') {
            break;
        } else if (c == '\\') {
            ZR_TRY(json_escape(ps, &p, &to));
        } else if (c < 0x80) {
            st = json_bad_string(ps, p, "control character in a string");
            goto out;
        } else {
            size_t n = utf8_length((const unsigned char *)p);

            if (n == 0) {
                st = json_bad_string(ps, p, "malformed UTF-8");
                goto out;
            }
            memmove(to, p, n);
            to += n;
            p += n;
        }
    }
out:
    ps->p = p;
    *to_io = to;
    return st;
}

zarr_status zr_json_read_string(struct zr_json_parser *ps, const char **text,
                                size_t *bytes)
{
    char *start = ps->p, *p = start, *to;

    while (json_plain[(unsigned char)*p])
        p++;
    to = p;
    ps->p = p;
    if (*p != '"')
        ZR_CHECK(json_string_rest(ps, p, &to));
    *bytes = (size_t)(to - start);
    *text = start;
    if (*bytes > ps->max_string)
        return zr_fail_limit(ps->err, "string_bytes", ps->max_string,
                             "byte %" PRIu64 ": string of %zu bytes",
                             zr_json_position(ps, start) - 1, *bytes);
    *to = '\0';
    ps->p++;
    return ZARR_OK;
}
