/*
 * base/text.h - a part of the door: strings, base64, and numbers as text.
 */
#ifndef ZR_BASE_TEXT_H
#define ZR_BASE_TEXT_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zarrc/base.h>
#include <zarrc/context.h>
#include <zarrc/error.h>

/* A growing, always terminated text or byte string. {0} with .alloc set is empty and
 * valid. Errors stick: after a failed append `failed` is set and further appends do
 * nothing. */
struct zr_str {
    char *ptr; /* NULL while empty: use zr_str_text() */
    size_t bytes, cap;
    const zarr_allocator *alloc;
    bool failed;
};
void zr_str_init(struct zr_str *s, const zarr_allocator *alloc);
void zr_str_deinit(struct zr_str *s);
void zr_str_clear(struct zr_str *s);
void zr_str_append(struct zr_str *s, const void *bytes, size_t n);
void zr_str_puts(struct zr_str *s, const char *text);
void zr_str_putc(struct zr_str *s, char c);
void zr_str_printf(struct zr_str *s, const char *fmt, ...) ZARR_PRINTF(2, 3);
void zr_str_u64(struct zr_str *s, uint64_t v);   /* decimal, fast: chunk keys */
const char *zr_str_text(const struct zr_str *s); /* "" when empty */
zarr_status zr_str_status(const struct zr_str *s, zarr_error *err);
char *zr_str_take(struct zr_str *s); /* moved to the caller, who calls zr_free(); NULL
                                        after a failure */
bool zr_streq(const char *a, const char *b);
bool zr_starts_with(const char *s, const char *prefix);
/* Checks a name before it is registered: printable ASCII without blanks, quotes and
 * backslashes, so that it fits lists, lines and JSON. INVALID if it is something else,
 * NULL or "". what: the kind of name for the message, such as "codec". */
zarr_status zr_check_name(const char *what, const char *name, zarr_error *err);
/* True if s is a line of printable ASCII, blanks included; also for "". */
bool zr_is_plain_line(const char *s);
/* Writes "1,2,3", as many numbers as fit. Returns the length. */
size_t zr_coord_text(char *text, size_t cap, const uint64_t *at, int32_t ndim);
bool zr_ends_with(const char *s, const char *suffix);

/* True for well-formed UTF-8 without surrogates. */
bool zr_utf8_is_valid(const char *s, size_t n);
/* Base64, RFC 4648 with padding. decode accepts missing padding, but no other
 * characters. */
void zr_base64_encode(struct zr_str *out, const void *bytes, size_t n);
bool zr_base64_decode(const char *text, size_t n, void *out, size_t cap,
                      size_t *out_bytes);

/* Numbers, independent of the locale. The parsers take the whole text, or return false.
 * Integers: digits, also with leading zeros; i64 also with '-' or '+'. Reals: JSON's
 * grammar, also with a leading '+', correctly rounded. A number that is too large becomes
 * infinity: check isfinite() if that is wrong. */
bool zr_parse_u64(const char *s, size_t n, uint64_t *out);
/* Digits, which K, M, G or T may follow for powers of 1024. */
bool zr_parse_bytes(const char *s, size_t n, uint64_t *out);
bool zr_parse_i64(const char *s, size_t n, int64_t *out);
bool zr_parse_f64(const char *s, size_t n, double *out);
bool zr_parse_f32(const char *s, size_t n, float *out);
/* Writes the shortest text that reads back to the same bits, for finite values, laid out
 * as Python's repr() does: it always has '.' or 'e'. Others give NaN, Infinity,
 * -Infinity. Returns the length; cap >= 40. */
size_t zr_format_f64(char *out, size_t cap, double v);
/* The same for c * 2^q of any binary format, c < 2^53, -1074 <= q <= 971. narrow_below:
 * the next smaller number is half as far away as the next larger one (c is a power of two
 * and its exponent not the least). even: ties are rounded to this number. */
size_t zr_format_binary(char *out, size_t cap, bool minus, uint64_t c, int q,
                        bool narrow_below, bool even);

#endif
