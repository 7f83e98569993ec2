/*
 * base/text.c - UTF-8, simple comparisons, and the one-line formatter that errors and log
 * share. UTF-8 is checked with the table of well-formed byte sequences (Unicode 15, table
 * 3-7): no overlong forms, no surrogates, nothing above U+10FFFF. ASCII, which is nearly
 * all text of metadata, is checked eight bytes a step.
 * Thread class: plain functions.
 */
#include "base/text_int.h"

#include <stdio.h>
#include <string.h>

bool zr_streq(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    return strcmp(a, b) == 0;
}

bool zr_starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

zarr_status zr_check_name(const char *what, const char *name, zarr_error *err)
{
    const char *p = name;

    if (!name || !*name)
        return zr_fail(err, ZARR_ERR_INVALID, "%s without a name", what);
    while (*p > ' ' && *p < 0x7F && *p != '"' && *p != '\\')
        p++;
    if (!*p)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INVALID,
                   "%s \"%.64s\": names are printable ASCII without blanks, \" and \\",
                   what, name);
}

bool zr_is_plain_line(const char *s)
{
    while (*s >= ' ' && *s < 0x7F)
        s++;
    return !*s;
}

bool zr_ends_with(const char *s, const char *suffix)
{
    const size_t n = strlen(s), m = strlen(suffix);

    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

/* Length of the sequence that `lead` opens and the range of its second byte; 0: not a
 * lead. */
static size_t utf8_lead(uint8_t lead, uint8_t *lo, uint8_t *hi)
{
    *lo = 0x80;
    *hi = 0xBF;
    if (lead < 0x80)
        return 1;
    if (lead < 0xC2)
        return 0;
    if (lead < 0xE0)
        return 2;
    if (lead < 0xF0) {
        if (lead == 0xE0)
            *lo = 0xA0; /* else overlong */
        if (lead == 0xED)
            *hi = 0x9F; /* else a surrogate */
        return 3;
    }
    if (lead > 0xF4)
        return 0;
    if (lead == 0xF0)
        *lo = 0x90;
    if (lead == 0xF4)
        *hi = 0x8F; /* else above U+10FFFF */
    return 4;
}

/* The length of the well-formed character at s, within n bytes; 0: there is none. n >
 * 0. */
static size_t utf8_char_bytes(const char *s, size_t n)
{
    const uint8_t *b = (const uint8_t *)s;
    uint8_t lo, hi;
    const size_t len = utf8_lead(b[0], &lo, &hi);

    if (len < 2)
        return len;
    if (len > n || b[1] < lo || b[1] > hi)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((b[i] & 0xC0) != 0x80)
            return 0;
    return len;
}

bool zr_utf8_is_valid(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n) {
        uint64_t word;

        if (n - i >= sizeof word) {
            memcpy(&word, s + i, sizeof word);
            if (!(word & UINT64_C(0x8080808080808080))) {
                i += sizeof word;
                continue;
            }
        }
        const size_t len = utf8_char_bytes(s + i, n - i);
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

size_t zr_coord_text(char *text, size_t cap, const uint64_t *at, int32_t ndim)
{
    size_t n = 0;

    *text = '\0';
    for (int32_t d = 0; d < ndim && n + 24 < cap; d++) {
        const int k = snprintf(text + n, cap - n, "%s%" PRIu64, d ? "," : "", at[d]);

        n += k > 0 ? (size_t)k : 0;
    }
    return n;
}

/* Works in place; drops a last character that the cut split. */
static void text_make_safe(char *s, size_t n, bool cut)
{
    size_t i = 0;

    while (i < n) {
        const uint8_t c = (uint8_t)s[i];
        const size_t len = utf8_char_bytes(s + i, n - i);
        uint8_t lo, hi;

        if (len == 0 && cut && i + utf8_lead(c, &lo, &hi) > n) {
            n = i;
        } else if (len == 0 || c < 0x20 || c == 0x7F) {
            s[i++] = '?';
        } else if (c == 0xC2 && (uint8_t)s[i + 1] < 0xA0) { /* C1 controls */
            s[i++] = '?';
            s[i++] = '?';
        } else {
            i += len;
        }
    }
    s[n] = '\0';
}

void zr_text_line(char *out, size_t cap, const char *fmt, va_list ap)
{
    const int n = vsnprintf(out, cap, fmt, ap);

    if (n < 0) {
        memcpy(out, "?", 2);
        return;
    }
    text_make_safe(out, ZR_MIN((size_t)n, cap - 1), (size_t)n >= cap);
}
