/*
 * grid/key.c - chunk coordinates as store keys, and back. "default" writes c/3/0, and c
 * for rank 0. "v2" writes 3.0, and 0 for rank 0. Both work with either separator. Parsing
 * is strict (exact rank, no leading zeros, no signs, nothing after the last number). So a
 * chunk has one key, and a foreign file beside the chunks is never taken for a chunk. The
 * object of a built-in encoding is its separator, stored in the pointer itself, so
 * nothing is allocated.
 * Thread class: frozen.
 */
#include "grid/config_int.h"
#include "grid/grid_int.h"

#include <string.h>

/* 20 digits of 2^64 - 1 and a separator for each dimension, "c" and the terminator. */
enum {
    KEY_BYTES = ZARR_MAX_RANK * 21 + 2
};

static zarr_status separator_read(void **self, const char *what,
                                  const struct zr_json *config, char separator,
                                  zarr_error *err)
{
    const struct zr_json *member = zr_json_get(config, "separator");
    char shown[64];

    ZR_CHECK(zr_config_check(config, what, "separator", err));
    if (member && !zr_json_is_text(member, "/") && !zr_json_is_text(member, "."))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: separator must be \"/\" or \".\", not %s", what,
                       zr_json_excerpt(member, shown, sizeof shown));
    if (member)
        separator = zr_json_string(member)[0];
    *self = (void *)(uintptr_t)separator;
    return ZARR_OK;
}

static zarr_status separator_parse(void **self, const char *what, const char *json,
                                   char separator, zarr_error *err)
{
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, NULL);
    ZR_TRY(zr_config_parse(&doc, json ? json : "{}", err));
    st = separator_read(self, what, doc.root, separator, err);
out:
    zr_json_doc_deinit(&doc);
    return st;
}

static char separator_from_self(const void *self)
{
    return (char)(uintptr_t)self;
}

static zarr_status separator_canonical(const void *self, char *text, size_t cap,
                                       size_t *text_bytes, zarr_error *err)
{
    struct zr_str s;
    zarr_status st;

    zr_str_init(&s, NULL);
    zr_str_printf(&s, "{\"separator\":\"%c\"}", separator_from_self(self));
    st = zr_config_give(&s, text, cap, text_bytes, err);
    zr_str_deinit(&s);
    return st;
}

/* Writes the digits of v and returns their number. */
static size_t put_digits(char *to, uint64_t v)
{
    char digits[20];
    size_t n = 0;

    do {
        digits[sizeof digits - ++n] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    memcpy(to, digits + sizeof digits - n, n);
    return n;
}

/* Copies a finished key out, as snprintf does. */
static size_t give_key(const char *key, size_t n, char *text, size_t cap)
{
    if (cap > 0) {
        size_t fits = ZR_MIN(n, cap - 1);
        memcpy(text, key, fits);
        text[fits] = '\0';
    }
    return n;
}

/* Reads one number at *text and moves past it. */
static bool take_digits(const char **text, uint64_t *out)
{
    const char *s = *text;
    uint64_t v = 0;

    if (*s < '0' || *s > '9' || (*s == '0' && s[1] >= '0' && s[1] <= '9'))
        return false;
    for (; *s >= '0' && *s <= '9'; s++)
        if (!zr_mul(v, 10, &v) || !zr_add(v, (uint64_t)(*s - '0'), &v))
            return false;
    *text = s;
    *out = v;
    return true;
}

/* ---- default -------------------------------------------------------------- */

static const char default_what[] = "chunk key encoding \"default\"";

static zarr_status default_parse(void **self, const char *json, zarr_error *err)
{
    return separator_parse(self, default_what, json, '/', err);
}

static size_t default_key(const void *self, int32_t ndim, const uint64_t *chunk,
                          char *text, size_t cap)
{
    char key[KEY_BYTES];
    size_t n = 0;

    key[n++] = 'c';
    for (int32_t d = 0; d < ndim; d++) {
        key[n++] = separator_from_self(self);
        n += put_digits(key + n, chunk[d]);
    }
    return give_key(key, n, text, cap);
}

static int default_chunk(const void *self, int32_t ndim, const char *text,
                         uint64_t *chunk)
{
    if (*text++ != 'c')
        return -1;
    for (int32_t d = 0; d < ndim; d++)
        if (*text++ != separator_from_self(self) || !take_digits(&text, &chunk[d]))
            return -1;
    return *text ? -1 : 0;
}

const zarr_key_encoding_vtable zr_key_default = {
    .struct_size = sizeof(zarr_key_encoding_vtable),
    .name = "default",
    .parse = default_parse,
    .canonical = separator_canonical,
    .key = default_key,
    .chunk = default_chunk,
};

/* ---- v2 ------------------------------------------------------------------- */

static const char v2_what[] = "chunk key encoding \"v2\"";

static zarr_status v2_parse(void **self, const char *json, zarr_error *err)
{
    return separator_parse(self, v2_what, json, '.', err);
}

static size_t v2_key(const void *self, int32_t ndim, const uint64_t *chunk, char *text,
                     size_t cap)
{
    char key[KEY_BYTES];
    size_t n = 0;

    for (int32_t d = 0; d < ndim; d++) {
        if (d > 0)
            key[n++] = separator_from_self(self);
        n += put_digits(key + n, chunk[d]);
    }
    if (ndim == 0)
        key[n++] = '0';
    return give_key(key, n, text, cap);
}

static int v2_chunk(const void *self, int32_t ndim, const char *text, uint64_t *chunk)
{
    if (ndim == 0)
        return zr_streq(text, "0") ? 0 : -1;
    for (int32_t d = 0; d < ndim; d++) {
        if (d > 0 && *text++ != separator_from_self(self))
            return -1;
        if (!take_digits(&text, &chunk[d]))
            return -1;
    }
    return *text ? -1 : 0;
}

const zarr_key_encoding_vtable zr_key_v2 = {
    .struct_size = sizeof(zarr_key_encoding_vtable),
    .name = "v2",
    .parse = v2_parse,
    .canonical = separator_canonical,
    .key = v2_key,
    .chunk = v2_chunk,
};

/* ---- any encoding --------------------------------------------------------- */

zarr_status zr_key_encoding_parse(struct zr_key_encoding *out,
                                  const struct zr_grid_registry *r, const char *name,
                                  const struct zr_json *config, zarr_error *err)
{
    const struct zr_key_encoding_entry *e =
        (const void *)zr_registry_find(&r->encodings, name);
    const zarr_key_encoding_vtable *vt = e ? &e->vt : NULL;
    struct zr_str text;
    zarr_status st = ZARR_OK;

    *out = (struct zr_key_encoding){0};
    zr_str_init(&text, r->alloc);
    if (!vt) {
        st = zr_fail_refused(err, zr_grid_refused, "chunk key encoding", name);
        goto out;
    }
    /* The two that nearly all arrays have need no text. */
    if (e->separator)
        ZR_TRY(separator_read(&out->self, e->separator == '/' ? default_what : v2_what,
                              config, e->separator, err));
    else {
        ZR_TRY(zr_config_text(config, &text, err));
        ZR_TRY(vt->parse(&out->self, zr_str_text(&text), err));
    }
    out->vt = vt;
out:
    zr_str_deinit(&text);
    return st;
}

void zr_key_encoding_deinit(struct zr_key_encoding *k)
{
    if (k->vt && k->vt->free)
        k->vt->free(k->self);
    *k = (struct zr_key_encoding){0};
}

zarr_status zr_key_encoding_canonical(const struct zr_key_encoding *k, struct zr_str *out,
                                      zarr_error *err)
{
    return zr_config_take(k->self, k->vt->canonical, out, err);
}

void zr_key_encoding_key(const struct zr_key_encoding *k, int32_t ndim,
                         const uint64_t *chunk, struct zr_str *out)
{
    char text[KEY_BYTES];
    char *more;
    size_t n = k->vt->key(k->self, ndim, chunk, text, sizeof text);

    if (n < sizeof text) {
        zr_str_append(out, text, n);
        return;
    }
    more =
        n < SIZE_MAX ? zr_malloc(out->alloc, n + 1) : NULL; /* a long key of a plug-in */
    if (!more) {
        out->failed = true;
        return;
    }
    k->vt->key(k->self, ndim, chunk, more, n + 1);
    zr_str_append(out, more, n);
    zr_free(out->alloc, more);
}

bool zr_key_encoding_chunk(const struct zr_key_encoding *k, int32_t ndim,
                           const char *text, uint64_t *chunk)
{
    return k->vt->chunk(k->self, ndim, text, chunk) == 0;
}
