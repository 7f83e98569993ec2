/*
 * grid/suffix.c - chunk keys with a suffix, such as ".tiff": "zarrs.default_suffix" (an
 * extension of the zarrs crate: separator and suffix) and "suffix" (proposed to
 * zarr-extensions, chunk-key-encodings/suffix: suffix and base encoding, here one of the
 * core's). Parsing removes the suffix and gives the rest to the base.
 * Thread class: frozen.
 */
#include "grid/config_int.h"
#include "grid/grid_int.h"

#include <string.h>

struct suffix {
    const zarr_key_encoding_vtable *base;
    void *base_self;
    size_t bytes;
    char text[];
};

static void suffix_free(void *self)
{
    struct suffix *s = self;

    if (s && s->base && s->base->free)
        s->base->free(s->base_self);
    zr_free(NULL, s);
}

static zarr_status suffix_new(struct suffix **out, const struct zr_json *config,
                              const char *what, zarr_error *err)
{
    const struct zr_json *v = zr_json_get(config, "suffix");
    const char *text = zr_json_string(v);
    struct suffix *s = NULL;
    char shown[64];

    if (!text)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: suffix is %s, must be a string", what,
                       zr_json_excerpt(v, shown, sizeof shown));
    s = zr_calloc(NULL, 1, sizeof *s + v->u.text.bytes + 1);
    if (!s)
        return zr_fail_memory(err, v->u.text.bytes);
    s->bytes = v->u.text.bytes;
    memcpy(s->text, text, s->bytes);
    *out = s;
    return ZARR_OK;
}

/* Makes the base with a configuration from a tree (NULL: none). */
static zarr_status base_make(struct suffix *s, const zarr_key_encoding_vtable *vt,
                             const struct zr_json *config, zarr_error *err)
{
    struct zr_str text;
    zarr_status st = ZARR_OK;

    zr_str_init(&text, NULL);
    ZR_TRY(zr_config_text(config, &text, err));
    ZR_TRY(vt->parse(&s->base_self, zr_str_text(&text), err));
    s->base = vt;
out:
    zr_str_deinit(&text);
    return st;
}

/* ---- zarrs.default_suffix --------------------------------------------------- */

static zarr_status default_suffix_parse(void **self, const char *json, zarr_error *err)
{
    static const char what[] = "chunk key encoding \"zarrs.default_suffix\"";
    static const char *const members[] = {"separator", "suffix", NULL};
    struct suffix *s = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, NULL);
    ZR_TRY(zr_config_parse(&doc, json ? json : "{}", err));
    ZR_TRY(zr_config_check_members(doc.root, what, members, err));
    ZR_TRY(suffix_new(&s, doc.root, what, err));
    (void)zr_json_remove(doc.root, "suffix"); /* the base parses the rest */
    ZR_TRY(base_make(s, &zr_key_default, doc.root, err));
    *self = s; /* moved */
    s = NULL;
out:
    suffix_free(s);
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status default_suffix_canonical(const void *self, char *text, size_t cap,
                                            size_t *text_bytes, zarr_error *err)
{
    const struct suffix *s = self;
    struct zr_str out, base;
    zarr_status st = ZARR_OK;

    zr_str_init(&out, NULL);
    zr_str_init(&base, NULL);
    ZR_TRY(zr_config_take(s->base_self, s->base->canonical, &base, err));
    zr_str_append(&out, zr_str_text(&base),
                  base.bytes - 1); /* without the closing brace */
    zr_str_puts(&out, ",\"suffix\":");
    zr_json_write_string(&out, s->text, s->bytes);
    zr_str_putc(&out, '}');
    st = zr_config_give(&out, text, cap, text_bytes, err);
out:
    zr_str_deinit(&base);
    zr_str_deinit(&out);
    return st;
}

/* ---- suffix ------------------------------------------------------------------ */

/* Reads a name, or an object with name and configuration. */
static zarr_status base_read(struct suffix *s, const struct zr_json *v, zarr_error *err)
{
    static const zarr_key_encoding_vtable *const bases[] = {&zr_key_default, &zr_key_v2};
    static const char *const members[] = {"name", "configuration", NULL};
    static const char what[] = "chunk key encoding \"suffix\"";
    const struct zr_json *name =
        zr_json_is(v, ZR_JSON_OBJECT) ? zr_json_get(v, "name") : v;
    const struct zr_json *config = zr_json_get(v, "configuration");
    char text[64];

    if (!zr_json_string(name))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: base_encoding is %s, must be a chunk key encoding", what,
                       zr_json_excerpt(v, text, sizeof text));
    if (name != v)
        ZR_CHECK(zr_config_check_members(v, "base_encoding", members, err));
    for (size_t i = 0; i < ZR_COUNT(bases); i++)
        if (zr_json_is_text(name, bases[i]->name))
            return base_make(s, bases[i], config, err);
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "%s: base_encoding %s, only \"default\" and \"v2\" are known", what,
                   zr_json_excerpt(name, text, sizeof text));
}

static zarr_status suffix_parse(void **self, const char *json, zarr_error *err)
{
    static const char what[] = "chunk key encoding \"suffix\"";
    /* The proposal spells the second member in both ways. */
    static const char *const members[] = {"suffix", "base_encoding", "base-encoding",
                                          NULL};
    const struct zr_json *base;
    struct suffix *s = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, NULL);
    ZR_TRY(zr_config_parse(&doc, json ? json : "{}", err));
    ZR_TRY(zr_config_check_members(doc.root, what, members, err));
    base = zr_json_get(doc.root, "base_encoding");
    if (base && zr_json_get(doc.root, "base-encoding"))
        ZR_FAIL(err, ZARR_ERR_INVALID, "%s: base_encoding is given twice", what);
    ZR_TRY(suffix_new(&s, doc.root, what, err));
    ZR_TRY(base_read(s, base ? base : zr_json_get(doc.root, "base-encoding"), err));
    *self = s; /* moved */
    s = NULL;
out:
    suffix_free(s);
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status suffix_canonical(const void *self, char *text, size_t cap,
                                    size_t *text_bytes, zarr_error *err)
{
    const struct suffix *s = self;
    struct zr_str out;
    zarr_status st = ZARR_OK;

    zr_str_init(&out, NULL);
    zr_str_puts(&out, "{\"suffix\":");
    zr_json_write_string(&out, s->text, s->bytes);
    zr_str_printf(
        &out, ",\"base_encoding\":{\"name\":\"%s\",\"configuration\":", s->base->name);
    ZR_TRY(zr_config_take(s->base_self, s->base->canonical, &out, err));
    zr_str_puts(&out, "}}");
    st = zr_config_give(&out, text, cap, text_bytes, err);
out:
    zr_str_deinit(&out);
    return st;
}

/* ---- both -------------------------------------------------------------------- */

static size_t suffix_key(const void *self, int32_t ndim, const uint64_t *chunk,
                         char *text, size_t cap)
{
    const struct suffix *s = self;
    size_t n = s->base->key(s->base_self, ndim, chunk, text, cap);

    if (n + 1 < cap) {
        size_t fits = ZR_MIN(s->bytes, cap - 1 - n);

        memcpy(text + n, s->text, fits);
        text[n + fits] = '\0';
    }
    return n + s->bytes;
}

static int suffix_chunk(const void *self, int32_t ndim, const char *text, uint64_t *chunk)
{
    const struct suffix *s = self;
    size_t bytes = strlen(text), n;
    char base[ZARR_MAX_RANK * 21 +
              2]; /* the longest key that the core's encodings write */

    if (bytes < s->bytes)
        return -1;
    n = bytes - s->bytes;
    if (n >= sizeof base || memcmp(text + n, s->text, s->bytes) != 0)
        return -1;
    memcpy(base, text, n);
    base[n] = '\0';
    return s->base->chunk(s->base_self, ndim, base, chunk);
}

const zarr_key_encoding_vtable zr_key_default_suffix = {
    .struct_size = sizeof(zarr_key_encoding_vtable),
    .name = "zarrs.default_suffix",
    .parse = default_suffix_parse,
    .canonical = default_suffix_canonical,
    .key = suffix_key,
    .chunk = suffix_chunk,
    .free = suffix_free,
};

const zarr_key_encoding_vtable zr_key_suffix = {
    .struct_size = sizeof(zarr_key_encoding_vtable),
    .name = "suffix",
    .parse = suffix_parse,
    .canonical = suffix_canonical,
    .key = suffix_key,
    .chunk = suffix_chunk,
    .free = suffix_free,
};
