/*
 * codecs/objects/msgpack2_cpu.c - msgpack2 for text, bools, numbers and what JSON has
 * besides; msgpack2_put.c writes it. Texts point into the encoded bytes. It uses no
 * library, so that no allocation depends on a count in the chunk.
 */
#include "codecs/objects/objects_int.h"

#include <string.h>

struct pack_from {
    const uint8_t *p, *end;
};

/* Reads the number of `bytes` bytes after the first byte. Returns false if they are not
 * in the chunk. */
static bool pack_length(struct pack_from *f, unsigned bytes, uint64_t *v)
{
    *v = 0;
    if ((size_t)(f->end - f->p) < 1 + (size_t)bytes)
        return false;
    for (f->p++; bytes > 0; bytes--)
        *v = *v << 8 | *f->p++;
    return true;
}

static unsigned pack_type(const struct pack_from *f)
{
    return f->p < f->end ? *f->p : 0xC1; /* no value begins with this byte */
}

static bool pack_is_list(unsigned type)
{
    return (type & 0xF0) == 0x90 || type == 0xDC || type == 0xDD;
}

static bool pack_list(struct pack_from *f, uint64_t *n)
{
    const unsigned type = pack_type(f);

    if ((type & 0xF0) == 0x90) {
        f->p++;
        *n = type & 0x0F;
        return true;
    }
    return pack_is_list(type) && pack_length(f, type == 0xDC ? 2 : 4, n);
}

static bool pack_number(struct pack_from *f, uint64_t *v)
{
    const unsigned type = pack_type(f);

    if (type < 0x80) {
        f->p++;
        *v = type;
        return true;
    }
    return type >= 0xCC && type <= 0xCF && pack_length(f, 1U << (type - 0xCC), v);
}

static bool pack_is_text(unsigned type)
{
    return (type & 0xE0) == 0xA0 || (type >= 0xD9 && type <= 0xDB);
}

/* Reads a text. Returns false if it ends after the end of the chunk. */
static bool pack_text(struct pack_from *f, zarr_vlen *item)
{
    const unsigned type = pack_type(f);
    uint64_t n = type & 0x1F;

    if (type < 0xC0)
        f->p++;
    else if (type < 0xD9 || !pack_length(f, 1U << ((type - 0xD9) & 3), &n))
        return false;
    if (n > (uint64_t)(f->end - f->p))
        return false;
    *item = (zarr_vlen){f->p, n};
    f->p += n;
    return true;
}

static const char *pack_kind(unsigned type)
{
    if (type < 0x80 || type >= 0xE0 || (type >= 0xCA && type <= 0xD3))
        return "a number";
    if (type < 0x90 || type == 0xDE || type == 0xDF)
        return "a map";
    if (pack_is_list(type))
        return "a list";
    if (type == 0xC0)
        return "nil";
    if (type == 0xC2 || type == 0xC3)
        return "a bool";
    return type >= 0xC4 && type <= 0xC6 ? "bytes" : "an extension";
}

/* Reads a number or bool, and its kind for zr_objects_number(). Kind 0 means another
 * value, which stays unread. Returns false if the value is cut off. */
static bool pack_plain(struct pack_from *f, uint32_t *kind, struct zr_numpy_value *v)
{
    const unsigned type = pack_type(f), width = 1U << (type & 3);
    const struct zr_number sign = zr_number_make(ZARR_KIND_INT, width);
    uint32_t half = 0;
    float real = 0;

    *kind = ZARR_KIND_UINT;
    if (type < 0x80 || (type >= 0xCC && type <= 0xCF))
        return pack_number(f, &v->u);
    if (type >= 0xD0 && type <= 0xD3) {
        if (!pack_length(f, width, &v->u))
            return false;
        v->u = zr_numpy_wrap(&sign, v->u);
        *kind = (int64_t)v->u < 0 ? ZARR_KIND_INT : ZARR_KIND_UINT;
    } else if (type >= 0xE0) {
        f->p++;
        v->u = (uint64_t)((int64_t)type - 256);
        *kind = ZARR_KIND_INT;
    } else if (type == 0xCA || type == 0xCB) {
        if (!pack_length(f, type == 0xCA ? 4 : 8, &v->u))
            return false;
        half = (uint32_t)v->u;
        memcpy(&real, &half, sizeof real);
        memcpy(&v->d, &v->u, sizeof v->d);
        v->d = type == 0xCA ? (double)real : v->d;
        *kind = ZARR_KIND_FLOAT;
    } else if (type == 0xC2 || type == 0xC3) {
        f->p++;
        v->u = type & 1;
        *kind = ZARR_KIND_BOOL;
    } else {
        *kind = 0;
    }
    return true;
}

static zarr_status pack_number_item(const struct zr_objects *self, struct pack_from *f,
                                    uint64_t i, uint8_t *to, zarr_error *err)
{
    const unsigned type = pack_type(f);
    struct zr_numpy_value v = {0};
    uint32_t kind = 0;

    if (!pack_plain(f, &kind, &v))
        return zr_objects_fail(self, "ends after the end of the chunk", i, err);
    return zr_objects_number(self, kind, v, pack_is_text(type) ? "text" : pack_kind(type),
                             i, to, err);
}

/* ---- values that are not text ---- */

/* A value that is being read: a place among lists and maps, and the tree so far. */
struct pack_value {
    const struct zr_objects *self;
    struct zr_values *t;
    struct pack_from *f;
    uint64_t i; /* the element, for messages */
    struct {
        struct zr_json *v;
        uint64_t left; /* values of it that are still to come */
    } around[ZR_VALUE_DEPTH];
    size_t depth;
    bool maps;
};

static zarr_status pack_cut(const struct pack_value *r, zarr_error *err)
{
    return zr_objects_fail(r->self, "ends after the end of the chunk", r->i, err);
}

static zarr_status pack_read_text(struct pack_value *r, zarr_vlen *item, zarr_error *err)
{
    if (!pack_text(r->f, item))
        return pack_cut(r, err);
    if (!zr_utf8_is_valid(item->data, (size_t)item->bytes))
        return zr_objects_fail(r->self, "is not UTF-8", r->i, err);
    return ZARR_OK;
}

/* Reads the number of values in a list or map; *n stays 0 for other values. */
static bool msgpack_count(struct pack_from *f, bool *map, uint64_t *n)
{
    const unsigned type = pack_type(f);

    *map = (type & 0xF0) == 0x80 || type == 0xDE || type == 0xDF;
    if (pack_is_list(type))
        return pack_list(f, n);
    if (type == 0xDE || type == 0xDF)
        return pack_length(f, type == 0xDE ? 2 : 4, n);
    if (*map) {
        f->p++;
        *n = type & 0x0F;
    }
    return true;
}

/* Reads a scalar, or the beginning of a list or map with *n values. */
static zarr_status pack_read_node(struct pack_value *r, struct zr_json **out, uint64_t *n,
                                  zarr_error *err)
{
    const unsigned type = pack_type(r->f);
    struct zr_json_doc *doc = &r->t->doc;
    struct zr_numpy_value v = {0};
    zarr_vlen text = {0};
    uint32_t kind = 0;
    bool map = false;

    *n = 0;
    if (type == 0xC1)
        return zr_objects_fail(r->self, "is missing or not a value", r->i, err);
    if (type == 0xC0) {
        r->f->p++;
        *out = zr_json_new(doc, ZR_JSON_NULL);
    } else if (pack_is_text(type)) {
        ZR_CHECK(pack_read_text(r, &text, err));
        *out = zr_json_new_string(doc, text.data, (size_t)text.bytes);
    } else if (pack_is_list(type) || (type & 0xF0) == 0x80 || type == 0xDE ||
               type == 0xDF) {
        if (!msgpack_count(r->f, &map, n))
            ZR_CHECK(pack_cut(r, err));
        r->maps |= map;
        *out = zr_json_new(doc, map ? ZR_JSON_OBJECT : ZR_JSON_ARRAY);
    } else {
        if (!pack_plain(r->f, &kind, &v))
            ZR_CHECK(pack_cut(r, err));
        if (!kind)
            ZR_CHECK(zr_objects_no_json(r->self, pack_kind(type), r->i, err));
        *out = zr_value_new_number(doc, kind, v);
    }
    if (!zr_json_is_ok(doc))
        return zr_fail_memory(err, 0);
    return ZARR_OK;
}

/* Reads the next value of the innermost list or map, with its key. */
static zarr_status pack_read_next(struct pack_value *r, struct zr_json **out, uint64_t *n,
                                  zarr_error *err)
{
    struct zr_json *in = r->depth ? r->around[r->depth - 1].v : NULL;
    zarr_vlen key = {0};

    if (zr_json_is(in, ZR_JSON_OBJECT)) {
        if (pack_type(r->f) != 0xC1 && !pack_is_text(pack_type(r->f)))
            ZR_CHECK(zr_objects_no_json(r->self, "a key that is not text", r->i, err));
        ZR_CHECK(pack_type(r->f) == 0xC1 ? pack_cut(r, err) : ZARR_OK);
        ZR_CHECK(pack_read_text(r, &key, err));
    }
    ZR_CHECK(pack_read_node(r, out, n, err));
    if (zr_json_is(in, ZR_JSON_OBJECT))
        zr_json_add(&r->t->doc, in, key.data, (size_t)key.bytes, *out);
    else if (in)
        zr_json_append(&r->t->doc, in, *out);
    return ZARR_OK;
}

/* JSON has no object with a key twice. The parser tells so of the text. */
static zarr_status pack_check_keys(struct pack_value *r, const zarr_vlen *item,
                                   zarr_error *err)
{
    bool is_value = false;
    zarr_status st = zr_value_parse(&r->t->scratch, item, &is_value, err);

    if (st == ZARR_OK && !is_value)
        st = zr_objects_fail(r->self, "has a key twice", r->i, err);
    return st;
}

static zarr_status pack_other(struct pack_value *r, zarr_vlen *item, zarr_error *err)
{
    struct zr_json *root = NULL, *v = NULL;
    uint64_t n = 0, n_values = 0;

    do {
        if (n_values++ == r->self->most_values)
            return zr_fail_limit(err, "variable_chunk_bytes",
                                 r->self->most_values * sizeof(struct zr_json),
                                 "msgpack2: element %" PRIu64
                                 " has more values than the limit has room for",
                                 r->i);
        ZR_CHECK(pack_read_next(r, &v, &n, err));
        root = root ? root : v;
        if (r->depth)
            r->around[r->depth - 1].left--;
        if (n && r->depth == ZR_VALUE_DEPTH)
            return zr_fail(err, ZARR_ERR_LIMIT,
                           "msgpack2: element %" PRIu64
                           " has lists and maps more than %d deep",
                           r->i, ZR_VALUE_DEPTH);
        if (n) {
            r->around[r->depth].v = v;
            r->around[r->depth++].left = n;
        }
        while (r->depth && !r->around[r->depth - 1].left)
            r->depth--;
    } while (r->depth);
    ZR_CHECK(zr_value_text(r->t, root, item, err));
    if (r->maps)
        return pack_check_keys(r, item, err);
    return ZARR_OK;
}

static zarr_status pack_item(const struct zr_objects *self, struct zr_values *t,
                             struct pack_from *f, uint64_t i, uint8_t *to,
                             zarr_error *err)
{
    struct pack_value r;
    const unsigned type = pack_type(f);
    zarr_vlen item = {0};

    if (type == 0xC1)
        return zr_objects_fail(self, "is missing or not a value", i, err);
    if (self->type.kind)
        return pack_number_item(self, f, i, to, err);
    r.self = self;
    r.t = t;
    r.f = f;
    r.i = i;
    r.depth = 0;
    r.maps = false;
    if (pack_is_text(type)) {
        ZR_CHECK(pack_read_text(&r, &item, err));
        ZR_CHECK(zr_value_escape(t, &item, err));
    } else {
        ZR_CHECK(pack_other(&r, &item, err));
    }
    memcpy(to, &item, sizeof item);
    return ZARR_OK;
}

static zarr_status pack_tail(const struct zr_objects *self, const struct zr_nest *nest,
                             struct pack_from *f, zarr_error *err)
{
    zarr_vlen type = {0};
    uint64_t n = 0;

    if (!pack_is_text(pack_type(f)) || !pack_text(f, &type))
        return zr_objects_wrong_list(self, nest->dims[0], err);
    ZR_CHECK(zr_objects_type(self, type.data, (size_t)type.bytes, err));
    if (!pack_list(f, &n) || n != (uint64_t)nest->ndim)
        return zr_objects_wrong_shape(self, err);
    for (int32_t d = 0; d < nest->ndim; d++)
        if (!pack_number(f, &n) || n != nest->dims[d])
            return zr_objects_wrong_shape(self, err);
    if (f->p != f->end)
        return zr_fail(err, ZARR_ERR_CORRUPT, "%s: %zu bytes after the shape",
                       self->codec, (size_t)(f->end - f->p));
    return ZARR_OK;
}

static zarr_status msgpack_read(const struct zr_objects *self, struct zr_values *t,
                                const struct zr_host_job *io, zarr_error *err)
{
    struct pack_from f = {io->src, io->src + io->src_bytes};
    struct zr_nest nest;
    uint64_t n = 0;
    bool list;

    list = pack_list(&f, &n);
    zr_nest_begin(&nest, self,
                  self->n && (self->ndim < 2 || pack_is_list(pack_type(&f))));
    if (!list || n < 2 || n - 2 != nest.dims[0])
        return zr_objects_wrong_list(self, nest.dims[0], err);
    for (uint64_t i = 0; i < self->n; i++) {
        for (int32_t d = nest.open; d <= nest.leaf; d++)
            if (!pack_list(&f, &n) || n != nest.dims[d])
                return zr_objects_fail(self, "is not in a list of the chunk's shape", i,
                                       err);
        ZR_CHECK(pack_item(self, t, &f, i, io->dst + i * self->each, err));
        zr_nest_step(&nest);
    }
    return pack_tail(self, &nest, &f, err);
}

static const struct zr_objects_form msgpack_form = {.put = zr_msgpack_put,
                                                    .read = msgpack_read};

static zarr_status msgpack_bind(void **out, const zarr_codec_spec *spec,
                                const zarr_codec_binding *to, zarr_error *err)
{
    return zr_objects_bind(out, &msgpack_form, spec, to, err);
}

const zarr_codec_impl_vtable zr_cpu_msgpack2 = ZR_OBJECTS_TABLE("msgpack2", msgpack_bind);
