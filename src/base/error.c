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
        "ok",       "not found", "exists",      "invalid", "unsupported", "corrupt",
        "io",       "no memory", "limit",       "device",  "cancelled",   "abi",
        "internal", "conflict",  "memory kind", "denied",
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
    err->operation = ZARR_OPERATION_NONE;
    err->item = 0;
    memset(err->part, 0, sizeof err->part);
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
    ERROR_LIMIT = 80, /* bytes for the name of a limit and its value */
    ERROR_LINE = 5120 /* an address before it is cut: a path and some words */
};

zarr_status zr_fail_limit(zarr_error *err, const char *name, uint64_t value,
                          const char *fmt, ...)
{
    char text[ZARR_ERROR_MESSAGE_BYTES - ERROR_LIMIT], limit[ERROR_LIMIT];
    va_list ap;

    if (!err)
        return ZARR_ERR_LIMIT;
    va_start(ap, fmt);
    zr_text_line(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)snprintf(limit, sizeof limit, " (limit %s is %" PRIu64 ")", name, value);
    zr_fail(err, ZARR_ERR_LIMIT, "%s%s", text, limit);
    zr_error_mark(err, ZARR_ERROR_SETTING, strlen(text) + strlen(" (limit "), name);
    return ZARR_ERR_LIMIT;
}

static bool is_inside_char(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Writes "begin...end", in at most `most` bytes. Parts keep their place in the text; a
 * part that is cut is gone. */
static void cut_middle(char *text, size_t most, zarr_error_part *part)
{
    const size_t n = strlen(text);
    size_t head = (most - 3) / 2, tail = n - (most - 3 - head);

    if (n <= most)
        return;
    while (head > 0 && is_inside_char(text[head]))
        head--;
    while (is_inside_char(text[tail]))
        tail++;
    memmove(text + head + 3, text + tail, n - tail + 1);
    memset(text + head, '.', 3);
    for (size_t i = 0; i < ZARR_ERROR_PARTS; i++) {
        if ((size_t)part[i].offset + part[i].bytes <= head)
            continue;
        if (part[i].offset >= tail)
            part[i].offset = (uint16_t)(part[i].offset - tail + head + 3);
        else
            part[i] = (zarr_error_part){0, 0};
    }
}

/* A text and the parts in it. */
struct error_text {
    char *text;
    zarr_error_part part[ZARR_ERROR_PARTS];
};

/* The reason may itself begin with addresses, so its end is the most useful part. The
 * lowest room knows best: a part of the reason comes before the same part of the
 * address. */
static void join(zarr_error *err, zarr_status status, struct error_text *address,
                 struct error_text *reason)
{
    const size_t all = ZARR_ERROR_MESSAGE_BYTES - sizeof ": ", n = strlen(reason->text);
    size_t shift;

    cut_middle(address->text, n + ERROR_ADDRESS < all ? all - n : ERROR_ADDRESS,
               address->part);
    shift = strlen(address->text) + 2;
    cut_middle(reason->text, all - strlen(address->text), reason->part);
    zr_fail(err, status, "%s: %s", address->text, reason->text);
    for (size_t i = 0; i < ZARR_ERROR_PARTS; i++) {
        err->part[i] = address->part[i];
        if (reason->part[i].bytes)
            err->part[i] = (zarr_error_part){(uint16_t)(reason->part[i].offset + shift),
                                             reason->part[i].bytes};
    }
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
    struct error_text address = {.text = text}, reason = {.text = said};
    va_list ap;

    if (os_code == ENOMEM)
        status = ZARR_ERR_NO_MEMORY;
    if (status == ZARR_ERR_IO && (os_code == EACCES || os_code == EPERM))
        status = ZARR_ERR_DENIED;
    if (!err)
        return status;
    va_start(ap, fmt);
    zr_text_line(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)snprintf(said, sizeof said, "%s",
                   os_code == ZR_ENOTSUPP ? "Operation not supported (ENOTSUPP)"
                                          : ZR_STRERROR(os_code, cause, sizeof cause));
    join(err, status, &address, &reason);
    err->os_code = os_code;
    err->os_domain = ZARR_OS_ERRNO;
    return status;
}

bool zr_is_store_failure(zarr_status st)
{
    return st == ZARR_ERR_IO || st == ZARR_ERR_DENIED;
}

zarr_status zr_fail_memory(zarr_error *err, uint64_t bytes)
{
    return zr_fail(err, ZARR_ERR_NO_MEMORY, "cannot allocate %" PRIu64 " bytes", bytes);
}

/* A store may name the key itself: drops it from the reason if the address ends with it.
 */
static void drop_repeated_key(const struct error_text *address, struct error_text *reason)
{
    const zarr_error_part key = address->part[ZARR_ERROR_KEY];
    const size_t n = (size_t)key.bytes + 2; /* with ": " */

    if (key.bytes == 0 || address->text[key.offset + key.bytes] != '\0' ||
        strncmp(reason->text, address->text + key.offset, key.bytes) != 0 ||
        strncmp(reason->text + key.bytes, ": ", 2) != 0)
        return;
    memmove(reason->text, reason->text + n, strlen(reason->text + n) + 1);
    for (size_t i = 0; i < ZARR_ERROR_PARTS; i++) {
        if (reason->part[i].offset >= n)
            reason->part[i].offset = (uint16_t)(reason->part[i].offset - n);
        else
            reason->part[i] = (zarr_error_part){0, 0};
    }
}

/* Puts the address before the message of err; the facts in err stay. */
static void error_prefix(zarr_error *err, zarr_status status, struct error_text *address)
{
    zarr_error old = *err;
    struct error_text reason = {.text = old.message};

    old.message[sizeof old.message - 1] = '\0';
    memcpy(reason.part, old.part, sizeof reason.part);
    drop_repeated_key(address, &reason);
    join(err, status, address, &reason);
    err->os_code = old.os_code;
    err->os_domain = old.os_domain;
    err->operation = old.operation;
    err->item = old.item;
}

zarr_status zr_prefix(zarr_error *err, zarr_status status, const char *fmt, ...)
{
    char prefix[ERROR_LINE];
    struct error_text address = {.text = prefix};
    va_list ap;

    if (!err || status == ZARR_OK)
        return status;
    va_start(ap, fmt);
    zr_text_line(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    error_prefix(err, status, &address);
    return status;
}

/* True for a part that lies in a text of n bytes. */
static bool error_part_fits(size_t offset, size_t bytes, size_t n)
{
    return offset <= n && bytes <= n - offset;
}

zarr_status zr_prefix_parts(zarr_error *err, zarr_status status,
                            const struct zr_text_part part[ZARR_ERROR_PARTS],
                            const char *fmt, ...)
{
    char prefix[ERROR_LINE];
    struct error_text address = {.text = prefix};
    va_list ap;

    if (!err || status == ZARR_OK)
        return status;
    va_start(ap, fmt);
    zr_text_line(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < ZARR_ERROR_PARTS; i++)
        if (error_part_fits(part[i].offset, part[i].bytes, strlen(prefix)))
            address.part[i] =
                (zarr_error_part){(uint16_t)part[i].offset, (uint16_t)part[i].bytes};
    error_prefix(err, status, &address);
    return status;
}

zarr_status zr_prefix_key(zarr_error *err, zarr_status status, const char *key)
{
    const struct zr_text_part part[ZARR_ERROR_PARTS] = {
        [ZARR_ERROR_KEY] = {0, strlen(key)}};

    return zr_prefix_parts(err, status, part, "%s", key);
}

zarr_status zr_pass(zarr_error *err, zarr_status status, const zarr_error *said)
{
    if (err && status != ZARR_OK)
        *err = *said;
    return status;
}

void zr_error_mark(zarr_error *err, uint32_t which, size_t offset, const char *text)
{
    const size_t n = strlen(text);

    if (!err || err->part[which].bytes ||
        !error_part_fits(offset, n, strlen(err->message)) ||
        memcmp(err->message + offset, text, n) != 0)
        return;
    err->part[which] = (zarr_error_part){(uint16_t)offset, (uint16_t)n};
}

void zr_error_mark_option(zarr_error *err, const char *name)
{
    const char *at = err ? strstr(err->message, "(option ") : NULL;

    for (; at; at = strstr(at + 1, "(option "))
        zr_error_mark(err, ZARR_ERROR_SETTING,
                      (size_t)(at - err->message) + strlen("(option "), name);
}

void zr_error_mark_path(zarr_error *err, const char *path)
{
    const zarr_error_part key = err->part[ZARR_ERROR_KEY];
    const size_t n = strlen(path);

    if (n < key.bytes && memcmp(err->message + key.offset, path, n) == 0 &&
        !err->part[ZARR_ERROR_PATH].bytes)
        err->part[ZARR_ERROR_PATH] = (zarr_error_part){key.offset, (uint16_t)n};
}

void zr_error_operation(zarr_error *err, uint32_t operation)
{
    if (err && err->operation == ZARR_OPERATION_NONE)
        err->operation = operation;
}

void zr_error_clear(zarr_error *err)
{
    error_set(err, ZARR_OK, "");
}

void zr_error_distrust(zarr_error *err)
{
    size_t n;

    err->message[sizeof err->message - 1] = '\0';
    n = strlen(err->message);
    for (size_t i = 0; i < ZARR_ERROR_PARTS; i++)
        if (!error_part_fits(err->part[i].offset, err->part[i].bytes, n))
            err->part[i] = (zarr_error_part){0, 0};
    if (err->operation > ZARR_OPERATION_ENCODE)
        err->operation = ZARR_OPERATION_NONE;
}

/* ---- for callers ---- */

size_t zarr_error_text(const zarr_error *err, uint32_t part, char *text, size_t cap)
{
    const char *from, *slash = "";
    int n;

    if (!text)
        cap = 0;
    if (cap > 0)
        *text = '\0';
    if (part >= ZARR_ERROR_PARTS || err->part[part].bytes == 0 ||
        !error_part_fits(err->part[part].offset, err->part[part].bytes,
                         sizeof err->message))
        return 0;
    from = err->message + err->part[part].offset;
    if (part == ZARR_ERROR_PATH && *from != '/') /* the beginning of a key */
        slash = "/";
    n = snprintf(text, cap, "%s%.*s", slash, (int)err->part[part].bytes, from);
    return n > 0 ? (size_t)n : 0;
}

int32_t zarr_error_chunk(const zarr_error *err, uint64_t *chunk)
{
    char text[ZARR_ERROR_MESSAGE_BYTES];
    const size_t n = zarr_error_text(err, ZARR_ERROR_CHUNK, text, sizeof text);
    int32_t ndim = n > 0;

    if (n == 0)
        return 0;
    chunk[0] = 0;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == ',' && ndim < ZARR_MAX_RANK)
            chunk[ndim++] = 0;
        else if (*p >= '0' && *p <= '9')
            chunk[ndim - 1] = chunk[ndim - 1] * 10 + (uint64_t)(*p - '0');
        else
            return 0;
    }
    return ndim;
}
