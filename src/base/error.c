/*
 * base/error.c - fills a zarr_error. The lowest room that knows the fact writes the
 * sentence with zr_fail(). Rooms above only put an address in front with zr_prefix().
 * Messages quote names and text from stores, so every message is made safe to print here,
 * once: one line, control characters and malformed UTF-8 become '?', and a text that is
 * too long is cut between characters. If an address leaves no room for the reason after
 * it, the middle of the address is cut out. Texts are formatted in a separate buffer
 * first, so a message may quote the message that it replaces.
 * Thread class: plain functions on the caller's struct; solo.
 */
#include "base/base.h"
#include "base/text_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *zarr_status_text(zarr_status status)
{
    static const char *const names[] = {
        "ok",        "not found", "exists",    "invalid",  "unsupported",
        "corrupt",   "io",        "no memory", "limit",    "device",
        "cancelled", "abi",       "internal",  "conflict", "memory kind",
    };
    const int64_t i = -(int64_t)status;

    if (i < 0 || i >= (int64_t)ZR_COUNT(names))
        return "unknown";
    return names[i];
}

static void error_set(zarr_error *err, zarr_status status, const char *text)
{
    err->code = status;
    err->os_code = 0;
    err->os_domain = ZARR_OS_NONE;
    err->reserved = 0;
    err->item = 0;
    memcpy(err->message, text, strlen(text) + 1);
}

zarr_status zr_fail(zarr_error *err, zarr_status status, const char *fmt, ...)
{
    char text[ZARR_ERROR_MESSAGE_BYTES];
    va_list ap;

    if (!err)
        return status;
    va_start(ap, fmt);
    zr_text_line(text, sizeof text, fmt, ap);
    va_end(ap);
    error_set(err, status, text);
    return status;
}

enum {
    ERROR_ADDRESS =
        160,          /* bytes that an address always gets, even if the reason is long */
    ERROR_LINE = 5120 /* an address before it is cut: a path and some words */
};

static bool inside_char(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Writes "begin...end", in at most `most` bytes. */
static void cut_middle(char *text, size_t most)
{
    const size_t n = strlen(text);
    size_t head = (most - 3) / 2, tail = n - (most - 3 - head);

    if (n <= most)
        return;
    while (head > 0 && inside_char(text[head]))
        head--;
    while (inside_char(text[tail]))
        tail++;
    memmove(text + head + 3, text + tail, n - tail + 1);
    memset(text + head, '.', 3);
}

/* The reason may itself begin with addresses, so its end is the most useful part. */
static void join(zarr_error *err, zarr_status status, char *address, char *reason)
{
    const size_t all = ZARR_ERROR_MESSAGE_BYTES - sizeof ": ", n = strlen(reason);

    cut_middle(address, n + ERROR_ADDRESS < all ? all - n : ERROR_ADDRESS);
    cut_middle(reason, all - strlen(address));
    zr_fail(err, status, "%s: %s", address, reason);
}

/* GNU's strerror_r returns the text, POSIX's fills the buffer and returns a number: these
 * two take either result. */
static inline const char *error_gnu_text(const char *result, const char *buffer)
{
    ZR_UNUSED(buffer);
    return result;
}

static inline const char *error_posix_text(int result, const char *buffer)
{
    return result == 0 ? buffer : "unknown error";
}

#define ZR_STRERROR(code, buffer, bytes)                                                 \
    _Generic(strerror_r((code), (buffer), (bytes)), int                                  \
             : error_posix_text, default                                                 \
             : error_gnu_text)(strerror_r((code), (buffer), (bytes)), (buffer))

zarr_status zr_fail_os(zarr_error *err, zarr_status status, int os_code, const char *fmt,
                       ...)
{
    char text[ERROR_LINE], cause[128] = "", said[128];
    va_list ap;

    if (os_code == ENOMEM)
        status = ZARR_ERR_NO_MEMORY;
    if (!err)
        return status;
    va_start(ap, fmt);
    zr_text_line(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)snprintf(said, sizeof said, "%s", ZR_STRERROR(os_code, cause, sizeof cause));
    join(err, status, text, said);
    err->os_code = os_code;
    err->os_domain = ZARR_OS_ERRNO;
    return status;
}

zarr_status zr_fail_memory(zarr_error *err, uint64_t bytes)
{
    return zr_fail(err, ZARR_ERR_NO_MEMORY, "cannot allocate %" PRIu64 " bytes", bytes);
}

zarr_status zr_prefix(zarr_error *err, zarr_status status, const char *fmt, ...)
{
    char prefix[ERROR_LINE];
    zarr_error old;
    va_list ap;

    if (!err || status == ZARR_OK)
        return status;
    va_start(ap, fmt);
    zr_text_line(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    old = *err;
    old.message[sizeof old.message - 1] = '\0';
    join(err, status, prefix, old.message);
    err->os_code = old.os_code;
    err->os_domain = old.os_domain;
    err->item = old.item;
    return status;
}
