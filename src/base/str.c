/*
 * base/str.c - a growing byte string. Errors stick: the first append that finds no memory
 * sets `failed`, later ones do nothing, and the caller checks once at the end with
 * zr_str_status() or zr_str_take(). So code that builds a text needs no check on every
 * line. The text before the failure stays readable. The text is terminated after every
 * append and may contain zero bytes. Appended bytes must not be part of the string
 * itself.
 * Thread class: solo.
 */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

void zr_str_init(struct zr_str *s, const zarr_allocator *alloc)
{
    *s = (struct zr_str){.alloc = alloc};
}

void zr_str_deinit(struct zr_str *s)
{
    zr_free(s->alloc, s->ptr);
    *s = (struct zr_str){.alloc = s->alloc};
}

void zr_str_clear(struct zr_str *s)
{
    s->bytes = 0;
    s->failed = false;
    if (s->ptr)
        s->ptr[0] = '\0';
}

/* Makes room for n more bytes and the terminator. Returns where to write them, or
 * NULL. */
static char *str_reserve(struct zr_str *s, size_t n)
{
    size_t need;

    if (s->failed)
        return NULL;
    if (!zr_add(s->bytes, n, &need) || !zr_add(need, 1, &need) ||
        zr_grow(s->alloc, &s->ptr, &s->cap, ZR_MAX(need, (size_t)32), 1, NULL) !=
            ZARR_OK) {
        s->failed = true;
        return NULL;
    }
    return s->ptr + s->bytes;
}

void zr_str_append(struct zr_str *s, const void *bytes, size_t n)
{
    char *to = str_reserve(s, n);

    if (!to)
        return;
    if (n)
        memcpy(to, bytes, n);
    to[n] = '\0';
    s->bytes += n;
}

void zr_str_puts(struct zr_str *s, const char *text)
{
    zr_str_append(s, text, strlen(text));
}

void zr_str_putc(struct zr_str *s, char c)
{
    zr_str_append(s, &c, 1);
}

void zr_str_printf(struct zr_str *s, const char *fmt, ...)
{
    const size_t room = s->cap - s->bytes; /* 0 while ptr is NULL */
    va_list ap;
    char *to;
    int n;

    if (s->failed)
        return;
    va_start(ap, fmt);
    n = vsnprintf(room ? s->ptr + s->bytes : NULL, room, fmt, ap);
    va_end(ap);
    if (n < 0) {
        s->failed = true;
    } else if ((size_t)n < room) {
        s->bytes += (size_t)n;
    } else if ((to = str_reserve(s, (size_t)n))) {
        va_start(ap, fmt);
        vsnprintf(to, (size_t)n + 1, fmt, ap);
        va_end(ap);
        s->bytes += (size_t)n;
    }
    if (s->failed && s->ptr)
        s->ptr[s->bytes] = '\0'; /* the first try may have written some bytes */
}

void zr_str_u64(struct zr_str *s, uint64_t v)
{
    char digits[20]; /* 2^64 has 20 */
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    zr_str_append(s, digits + at, sizeof digits - at);
}

const char *zr_str_text(const struct zr_str *s)
{
    return s->ptr ? s->ptr : "";
}

zarr_status zr_str_status(const struct zr_str *s, zarr_error *err)
{
    return s->failed ? zr_fail_memory(err, (uint64_t)s->bytes + 1) : ZARR_OK;
}

char *zr_str_take(struct zr_str *s)
{
    char *text = NULL;

    if (!s->failed)
        text = s->ptr ? s->ptr : zr_strdup(s->alloc, "");
    if (text == s->ptr)
        s->ptr = NULL; /* moved */
    zr_str_deinit(s);
    return text;
}
