/*
 * codecs/objects/json2_cpu.c - json2 for text, bools and numbers, spelled as Python's
 * json spells them. Decoding uses the parser of room json. Elements point into its
 * document, so the thread keeps that until the next chunk. The parser accepts no more
 * values than the chunk's shape needs.
 */
#include "codecs/objects/objects_int.h"
#include "json/json.h"

#include <stdio.h>
#include <string.h>

/* ---- encoding ------------------------------------------------------------------ */

static void json_put_unit(struct zr_put *p, unsigned unit)
{
    static const char digits[] = "0123456789abcdef";
    const char text[6] = {'\\',
                          'u',
                          digits[unit >> 12 & 15],
                          digits[unit >> 8 & 15],
                          digits[unit >> 4 & 15],
                          digits[unit & 15]};

    zr_put_bytes(p, text, sizeof text);
}

static void json_put_ascii(struct zr_put *p, unsigned char c, bool ascii)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *hit = c ? strchr(named, c) : NULL;

    if (hit) {
        zr_put_byte(p, '\\');
        zr_put_byte(p, (unsigned char)letters[hit - named]);
    } else if (c < 0x20 || (c == 0x7f && ascii)) {
        json_put_unit(p, c);
    } else {
        zr_put_byte(p, c);
    }
}

static void json_put_point(struct zr_put *p, const unsigned char *s, size_t n)
{
    uint32_t c = s[0] & (0x7Fu >> n);

    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3F);
    if (c >= 0x10000) {
        c -= 0x10000;
        json_put_unit(p, 0xD800 | (c >> 10 & 0x3FF));
        c = 0xDC00 | (c & 0x3FF);
    }
    json_put_unit(p, c);
}

/* Writes text as Python's json spells it. */
static void json_put_text(const struct zr_objects *self, struct zr_put *p,
                          const zarr_vlen *item)
{
    const unsigned char *s = item->data;
    const bool ascii = self->json.ascii;
    uint64_t left = item->bytes;

    zr_put_byte(p, '"');
    while (left > 0) {
        size_t n = *s < 0x80 ? 1 : *s < 0xE0 ? 2 : *s < 0xF0 ? 3 : 4;

        /* zr_objects_size() also counts text that is not UTF-8 */
        n = (size_t)ZR_MIN((uint64_t)n, left);
        if (*s < 0x80)
            json_put_ascii(p, *s, ascii);
        else if (ascii)
            json_put_point(p, s, n);
        else
            zr_put_bytes(p, s, n);
        s += n;
        left -= n;
    }
    zr_put_byte(p, '"');
}

/* Outside of strings all JSON is ASCII, and the writer escapes what must be. */
static void json_put_value(const struct zr_objects *self, struct zr_put *p,
                           const struct zr_json *v)
{
    const unsigned char *s = NULL;
    struct zr_str text;

    zr_str_init(&text, self->alloc);
    zr_json_write_tokens(v, &text);
    p->failed |= text.failed;
    s = (const unsigned char *)zr_str_text(&text);
    for (size_t i = 0, n = 0; i < text.bytes; i += n) {
        n = s[i] < 0x80 ? 1 : s[i] < 0xE0 ? 2 : s[i] < 0xF0 ? 3 : 4;
        n = ZR_MIN(n, text.bytes - i);
        if (n > 1 && self->json.ascii)
            json_put_point(p, s + i, n);
        else
            zr_put_bytes(p, s + i, n);
    }
    zr_str_deinit(&text);
}

static void json_put_number(const struct zr_objects *self, struct zr_put *p,
                            const uint8_t *item)
{
    const struct zr_numpy_value v = zr_numpy_load(&self->type, item);
    char text[48];

    if (self->type.kind == ZARR_KIND_BOOL)
        (void)snprintf(text, sizeof text, v.u ? "true" : "false");
    else if (self->type.kind == ZARR_KIND_FLOAT)
        (void)zr_format_f64(text, sizeof text, v.d);
    else if (self->type.kind == ZARR_KIND_INT)
        (void)snprintf(text, sizeof text, "%" PRId64, (int64_t)v.u);
    else
        (void)snprintf(text, sizeof text, "%" PRIu64, v.u);
    zr_put_word(p, text);
}

static void json_put_element(const struct zr_objects *self, struct zr_put *p,
                             const uint8_t *items, uint64_t i)
{
    zarr_vlen item;

    if (self->type.kind) {
        json_put_number(self, p, items + i * self->each);
        return;
    }
    item = zr_objects_item(items, i);
    zr_objects_put(self, p, &item, json_put_value, json_put_text);
}

static void json_put(const struct zr_objects *self, struct zr_put *p,
                     const uint8_t *items)
{
    struct zr_nest nest;
    char number[24], type[ZR_OBJECTS_TYPE];

    zr_nest_begin(&nest, self, self->n > 0);
    zr_put_byte(p, '[');
    zr_objects_type_name(self, type);
    for (uint64_t i = 0; i < self->n; i++) {
        for (int32_t d = nest.open; d <= nest.leaf; d++)
            zr_put_byte(p, '[');
        json_put_element(self, p, items, i);
        zr_nest_step(&nest);
        for (int32_t d = nest.open; d <= nest.leaf; d++)
            zr_put_byte(p, ']');
        zr_put_word(p, self->json.comma);
    }
    zr_put_byte(p, '"');
    zr_put_word(p, type);
    zr_put_byte(p, '"');
    zr_put_word(p, self->json.comma);
    zr_put_byte(p, '[');
    for (int32_t d = 0; d < nest.ndim; d++) {
        zr_put_word(p, d ? self->json.comma : "");
        (void)snprintf(number, sizeof number, "%" PRIu64, nest.dims[d]);
        zr_put_word(p, number);
    }
    zr_put_word(p, "]]");
}

/* ---- decoding ------------------------------------------------------------------- */

/* Parses the chunk. Numbers have no more values than their lists need; text has values of
 * any kind, as many as a chunk's memory has room for. */
static zarr_status json_parse_chunk(const struct zr_objects *self, struct zr_values *t,
                                    const struct zr_host_job *io, zarr_error *err)
{
    const bool text = !self->type.kind;
    uint64_t tokens = 0;
    zarr_limits limits = {.json_depth = (uint32_t)self->ndim + 2 +
                                        (text ? (uint32_t)ZR_VALUE_DEPTH : 0),
                          .string_bytes = ZR_MAX(io->src_bytes, (size_t)1)};
    zarr_status st = ZARR_OK;

    if (!zr_mul(self->n, (uint64_t)self->ndim + 1, &tokens) ||
        !zr_add(tokens, 4 + (uint64_t)self->ndim, &tokens))
        tokens = UINT64_MAX;
    limits.json_tokens = text ? ZR_MAX(tokens, self->most_values) : tokens;
    st = zr_json_parse(&t->doc, (const char *)io->src, io->src_bytes, &limits, err);
    if (st == ZARR_ERR_LIMIT && !text)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "json2: there are more values than %" PRIu64
                       " elements: lists and objects are not supported",
                       self->n);
    return st == ZARR_OK ? st : zr_prefix(err, st, "json2");
}

static zarr_status json2_number(const struct zr_objects *self, const struct zr_json *v,
                                uint64_t i, uint8_t *to, zarr_error *err)
{
    struct zr_numpy_value n = {0};
    uint32_t kind = 0;
    char text[48];
    bool truth = false;
    int64_t minus = 0;

    if (zr_json_bool(v, &truth)) {
        kind = ZARR_KIND_BOOL;
        n.u = truth;
    } else if (zr_json_u64(v, &n.u)) {
        kind = ZARR_KIND_UINT;
    } else if (zr_json_i64(v, &minus)) {
        kind = ZARR_KIND_INT;
        n.u = (uint64_t)minus;
    } else if (zr_json_f64(v, &n.d)) {
        kind = ZARR_KIND_FLOAT;
    }
    if (kind && self->type.kind == ZARR_KIND_FLOAT &&
        kind != ZARR_KIND_BOOL) { /* -0 stays a float */
        kind = ZARR_KIND_FLOAT;
        (void)zr_json_f64(v, &n.d);
    }
    return zr_objects_number(self, kind, n, zr_json_excerpt(v, text, sizeof text), i, to,
                             err);
}

static zarr_status json_item(const struct zr_objects *self, struct zr_values *t,
                             const struct zr_json *v, uint64_t i, uint8_t *to,
                             zarr_error *err)
{
    zarr_vlen item = {0};

    if (self->type.kind)
        return json2_number(self, v, i, to, err);
    if (v->type == ZR_JSON_STRING) {
        item = (zarr_vlen){v->u.text.ptr, v->u.text.bytes};
        ZR_CHECK(zr_value_escape(t, &item, err));
    } else {
        ZR_CHECK(zr_value_text(t, v, &item, err));
    }
    memcpy(to, &item, sizeof item);
    return ZARR_OK;
}

/* Checks the type and the shape that follow the elements. */
static zarr_status json_tail(const struct zr_objects *self, const struct zr_nest *nest,
                             const struct zr_json *type, zarr_error *err)
{
    const struct zr_json *shape = type->next, *v = NULL;
    uint64_t size = 0;

    if (type->type != ZR_JSON_STRING)
        return zr_objects_wrong_list(self, nest->dims[0], err);
    ZR_CHECK(zr_objects_type(self, type->u.text.ptr, type->u.text.bytes, err));
    if (!zr_json_is(shape, ZR_JSON_ARRAY) || zr_json_count(shape) != (size_t)nest->ndim)
        return zr_objects_wrong_shape(self, err);
    v = shape->u.children.first;
    for (int32_t d = 0; d < nest->ndim; d++, v = v->next)
        if (!zr_json_u64(v, &size) || size != nest->dims[d])
            return zr_objects_wrong_shape(self, err);
    return ZARR_OK;
}

static zarr_status json_read(const struct zr_objects *self, struct zr_values *t,
                             const struct zr_host_job *io, zarr_error *err)
{
    const struct zr_json *next[ZARR_MAX_RANK] = {NULL}, *root = NULL, *v = NULL;
    struct zr_nest nest;

    ZR_CHECK(json_parse_chunk(self, t, io, err));
    root = t->doc.root;
    zr_nest_begin(
        &nest, self,
        zr_json_is(root, ZR_JSON_ARRAY) && self->n &&
            (self->ndim < 2 || zr_json_is(root->u.children.first, ZR_JSON_ARRAY)));
    if (!zr_json_is(root, ZR_JSON_ARRAY) || zr_json_count(root) < 2 ||
        zr_json_count(root) - 2 != nest.dims[0])
        return zr_objects_wrong_list(self, nest.dims[0], err);
    next[0] = root->u.children.first;
    for (uint64_t i = 0; i < self->n; i++) {
        for (int32_t d = nest.open; d <= nest.leaf; d++) {
            v = next[d - 1];
            if (v->type != ZR_JSON_ARRAY || zr_json_count(v) != nest.dims[d])
                return zr_objects_fail(self, "is not in a list of the chunk's shape", i,
                                       err);
            next[d - 1] = v->next;
            next[d] = v->u.children.first;
        }
        v = next[nest.leaf];
        ZR_CHECK(json_item(self, t, v, i, io->dst + i * self->each, err));
        next[nest.leaf] = v->next;
        zr_nest_step(&nest);
    }
    return json_tail(self, &nest, next[0], err);
}

static const struct zr_objects_form json_form = {.put = json_put, .read = json_read};

static zarr_status json_bind(void **out, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    return zr_objects_bind(out, &json_form, spec, to, err);
}

const zarr_codec_impl_vtable zr_cpu_json2 = ZR_OBJECTS_TABLE("json2", json_bind);
