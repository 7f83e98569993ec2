/*
 * frame/util.c - allocation, growing strings, readable sizes, checked arithmetic. The
 * allocators never return NULL: a program without memory for its few strings can only
 * exit. Buffers for array data are allocated here too; --mem limits their sizes.
 */
#include "frame/frame.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void no_memory(size_t bytes)
{
    fprintf(stderr,
            "zarrc: cannot allocate %zu bytes\n  Try a smaller --mem or region.\n",
            bytes);
    exit(CLI_CORRUPT);
}

void *cli_alloc(size_t bytes)
{
    void *block = calloc(1, bytes ? bytes : 1);

    if (!block)
        no_memory(bytes);
    return block;
}

void *cli_realloc(void *block, size_t bytes)
{
    void *resized = realloc(block, bytes ? bytes : 1);

    if (!resized)
        no_memory(bytes);
    return resized;
}

char *cli_strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = cli_alloc(n);

    memcpy(copy, text, n);
    return copy;
}

uint64_t cli_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void cli_wipe(void *p, size_t n)
{
    volatile char *at = p;

    while (n > 0)
        at[--n] = 0;
}

static void string_grow(struct cli_string *s, size_t cap)
{
    char *text = s->is_secret ? cli_alloc(cap) : cli_realloc(s->text, cap);

    if (s->is_secret && s->text) {
        memcpy(text, s->text, s->n_bytes);
        cli_wipe(s->text, s->n_bytes);
        free(s->text);
    }
    s->text = text;
    s->cap = cap;
}

void cli_string_add(struct cli_string *s, const void *data, size_t bytes)
{
    if (bytes >= s->cap - s->n_bytes) {
        size_t cap = s->cap ? s->cap : 64;

        while (bytes >= cap - s->n_bytes) {
            if (cap > SIZE_MAX / 2)
                no_memory(SIZE_MAX);
            cap *= 2;
        }
        string_grow(s, cap);
    }
    if (bytes)
        memcpy(s->text + s->n_bytes, data, bytes);
    s->n_bytes += bytes;
    s->text[s->n_bytes] = '\0';
}

void cli_string_free(struct cli_string *s)
{
    if (s->is_secret)
        cli_wipe(s->text, s->n_bytes);
    free(s->text);
    *s = (struct cli_string){0};
}

ZARR_PRINTF(2, 0)
void cli_string_vprintf(struct cli_string *s, const char *format, va_list args)
{
    char small[256];
    va_list again;
    int n;

    va_copy(again, args);
    n = vsnprintf(small, sizeof small, format, args);
    if (n >= 0 && (size_t)n < sizeof small) {
        cli_string_add(s, small, (size_t)n);
    } else if (n >= 0) {
        char *large = cli_alloc((size_t)n + 1);

        n = vsnprintf(large, (size_t)n + 1, format, again);
        cli_string_add(s, large, n > 0 ? (size_t)n : 0);
        free(large);
    }
    va_end(again);
}

void cli_string_printf(struct cli_string *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli_string_vprintf(s, format, args);
    va_end(args);
}

ZARR_PRINTF(1, 0)
char *cli_vformat(const char *format, va_list args)
{
    struct cli_string s = {0};

    cli_string_add(&s, "", 0);
    cli_string_vprintf(&s, format, args);
    return s.text;
}

char *cli_format(const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = cli_vformat(format, args);
    va_end(args);
    return text;
}

char *cli_path_join(const char *a, const char *b)
{
    size_t n = strlen(a);

    if (n == 0)
        return cli_strdup(b);
    if (*b == '\0')
        return cli_strdup(a);
    return cli_format("%s%s%s", a, a[n - 1] == '/' ? "" : "/", b);
}

const char *cli_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

const char *cli_bytes_text(uint64_t bytes, char text[16])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    if (unit == 0)
        snprintf(text, 16, "%" PRIu64 " B", bytes);
    else
        snprintf(text, 16, "%.1f %s", value, units[unit]);
    return text;
}

char *cli_shape_text(int32_t ndim, const uint64_t *shape)
{
    struct cli_string s = {0};

    cli_string_add(&s, "(", 1);
    for (int32_t d = 0; d < ndim; d++)
        cli_string_printf(&s, "%s%" PRIu64, d ? ", " : "", shape[d]);
    cli_string_printf(&s, "%s", ndim == 1 ? ",)" : ")");
    return s.text;
}

uint64_t cli_mul(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

uint64_t cli_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t cli_product(int32_t ndim, const uint64_t *shape)
{
    uint64_t n = 1;

    for (int32_t d = 0; d < ndim; d++)
        n = cli_mul(n, shape[d]);
    return n;
}

zarr_status cli_element_print(const zarr_dtype *type, const void *element,
                              struct cli_string *out, zarr_error *err)
{
    char small[128], *large;
    size_t n = 0;
    zarr_status st = zarr_dtype_print(type, element, small, sizeof small, &n, err);

    if (!st && n < sizeof small) {
        cli_string_add(out, small, n);
    } else if (!st) {
        large = cli_alloc(n + 1);
        st = zarr_dtype_print(type, element, large, n + 1, &n, err);
        cli_string_add(out, large, st ? 0 : n);
        free(large);
    }
    return st;
}

char *cli_fill_text(const zarr_dtype *type, const void *fill, zarr_error *err)
{
    struct cli_string text = {0};

    if (fill && cli_element_print(type, fill, &text, err) == ZARR_OK)
        return text.text;
    cli_string_free(&text);
    return NULL;
}

int cli_keys_add(void *user, const zarr_store_item *item)
{
    struct cli_keys *k = user;

    if (item->is_prefix)
        return 0;
    if (k->n_items == k->cap) {
        k->cap = k->cap ? 2 * k->cap : 64;
        k->items = cli_realloc(k->items, k->cap * sizeof *k->items);
    }
    k->items[k->n_items++] = cli_strdup(item->key);
    return 0; /* no stop on SIGINT: the caller would take a partial list for complete */
}

void cli_keys_free(struct cli_keys *k)
{
    for (size_t i = 0; i < k->n_items; i++)
        free(k->items[i]);
    free(k->items);
}
