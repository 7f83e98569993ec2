/*
 * codecs/objects/msgpack2_cpu.c - msgpack2 for text, bools, numbers and what JSON has
 * besides. Texts point into the encoded bytes. It uses no library, so that no allocation
 * depends on a count in the chunk.
 */
#include "codecs/objects/objects_int.h"

#include <string.h>

/* ---- encoding --------------------------------------------------------------- */

/* Writes a first byte and a big-endian number of 1, 2, 4 or 8 bytes. */
static void pack_put(struct zr_put *p, unsigned first, uint64_t v, unsigned bytes)
{
    zr_put_byte(p, first);
    while (bytes-- > 0)
        zr_put_byte(p, (unsigned)(v >> 8 * bytes & 0xFF));
}

static void pack_put_list(struct zr_put *p, uint64_t n)
{
    if (n < 16)
        zr_put_byte(p, 0x90 | (unsigned)n);
    else if (n <= UINT16_MAX)
        pack_put(p, 0xDC, n, 2);
    else
        pack_put(p, 0xDD, n, 4);
}

static void pack_put_string(struct zr_put *p, const zarr_vlen *item, bool short_text)
{
    if (item->bytes < 32)
        zr_put_byte(p, 0xA0 | (unsigned)item->bytes);
    else if (item->bytes <= UINT8_MAX && short_text)
        pack_put(p, 0xD9, item->bytes, 1);
    else if (item->bytes <= UINT16_MAX)
        pack_put(p, 0xDA, item->bytes, 2);
    else
        pack_put(p, 0xDB, item->bytes, 4);
    zr_put_bytes(p, item->data, item->bytes);
}

static void pack_put_number(struct zr_put *p, uint64_t v)
{
    if (v < 128)
        zr_put_byte(p, (unsigned)v);
    else if (v <= UINT8_MAX)
        pack_put(p, 0xCC, v, 1);
    else if (v <= UINT16_MAX)
        pack_put(p, 0xCD, v, 2);
    else if (v <= UINT32_MAX)
        pack_put(p, 0xCE, v, 4);
    else
        pack_put(p, 0xCF, v, 8);
}

static void pack_put_minus(struct zr_put *p, int64_t v)
{
    if (v >= -32)
        zr_put_byte(p, (unsigned)v & 0xFF);
    else if (v >= INT8_MIN)
        pack_put(p, 0xD0, (uint64_t)v, 1);
    else if (v >= INT16_MIN)
        pack_put(p, 0xD1, (uint64_t)v, 2);
    else if (v >= INT32_MIN)
        pack_put(p, 0xD2, (uint64_t)v, 4);
    else
        pack_put(p, 0xD3, (uint64_t)v, 8);
}

static void pack_put_real(struct zr_put *p, double d, bool single)
{
    const float f = (float)d;
    uint64_t bits = 0;
    uint32_t half = 0;

    memcpy(&bits, &d, sizeof bits);
    memcpy(&half, &f, sizeof half);
    if (single)
        pack_put(p, 0xCA, half, 4);
    else
        pack_put(p, 0xCB, bits, 8);
}

static void pack_put_text(const struct zr_objects *self, struct zr_put *p,
                          const zarr_vlen *item)
{
    pack_put_string(p, item, self->short_text);
}

static void pack_put_map(struct zr_put *p, uint64_t n)
{
    if (n < 16)
        zr_put_byte(p, 0x80 | (unsigned)n);
    else if (n <= UINT16_MAX)
        pack_put(p, 0xDE, n, 2);
    else
        pack_put(p, 0xDF, n, 4);
}

/* A scalar, or the beginning of a list or map. */
static void pack_put_node(const struct zr_objects *self, struct zr_put *p,
                          const struct zr_json *v)
{
    struct zr_numpy_value n = {0};
    zarr_vlen text = {0};
    uint32_t kind = 0;

    if (v->type == ZR_JSON_NULL) {
        zr_put_byte(p, 0xC0);
    } else if (v->type == ZR_JSON_TRUE || v->type == ZR_JSON_FALSE) {
        zr_put_byte(p, v->type == ZR_JSON_TRUE ? 0xC3 : 0xC2);
    } else if (v->type == ZR_JSON_STRING) {
        text = (zarr_vlen){v->u.text.ptr, v->u.text.bytes};
        pack_put_string(p, &text, self->short_text);
    } else if (v->type == ZR_JSON_ARRAY) {
        pack_put_list(p, v->u.children.n);
    } else if (v->type == ZR_JSON_OBJECT) {
        pack_put_map(p, v->u.children.n);
    } else if (zr_value_number(v, &kind, &n) && kind == ZARR_KIND_FLOAT) {
        pack_put_real(p, n.d, self->single);
    } else if (kind == ZARR_KIND_INT) {
        pack_put_minus(p, (int64_t)n.u);
    } else {
        pack_put_number(p, n.u);
    }
}

static void pack_put_value(const struct zr_objects *self, struct zr_put *p,
                           const struct zr_json *v)
{
    struct zr_value_walk walk = {.depth = 0};

    for (; v; v = zr_value_next(&walk, v)) {
        const zarr_vlen key = {v->key, v->key_bytes};

        if (v->key)
            pack_put_string(p, &key, self->short_text);
        pack_put_node(self, p, v);
    }
}

static void pack_put_element(const struct zr_objects *self, struct zr_put *p,
                             const uint8_t *items, uint64_t i)
{
    struct zr_numpy_value v;
    zarr_vlen item;

    if (!self->type.kind) {
        item = zr_objects_item(items, i);
        zr_objects_put(self, p, &item, pack_put_value, pack_put_text);
        return;
    }
    v = zr_numpy_load(&self->type, items + i * self->each);
    if (self->type.kind == ZARR_KIND_BOOL)
        zr_put_byte(p, 0xC2 | (unsigned)(v.u & 1));
    else if (self->type.kind == ZARR_KIND_FLOAT)
        pack_put_real(p, v.d, self->single);
    else if (self->type.kind == ZARR_KIND_INT && (int64_t)v.u < 0)
        pack_put_minus(p, (int64_t)v.u);
    else
        pack_put_number(p, v.u);
}

static void pack_put_chunk(const struct zr_objects *self, struct zr_put *p,
                           const uint8_t *items)
{
    struct zr_nest nest;
    zarr_vlen type;
    char name[ZR_OBJECTS_TYPE];

    zr_objects_type_name(self, name);
    type = (zarr_vlen){name, strlen(name)};
    zr_nest_begin(&nest, self, self->n > 0);
    pack_put_list(p, nest.dims[0] + 2);
    for (uint64_t i = 0; i < self->n; i++) {
        for (int32_t d = nest.open; d <= nest.leaf; d++)
            pack_put_list(p, nest.dims[d]);
        pack_put_element(self, p, items, i);
        zr_nest_step(&nest);
    }
    pack_put_string(p, &type, true);
    pack_put_list(p, (uint64_t)nest.ndim);
    for (int32_t d = 0; d < nest.ndim; d++)
        pack_put_number(p, nest.dims[d]);
}

/* ---- decoding ---------------------------------------------------------------- */

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
        return zr_objects_damaged(self, "ends after the end of the chunk", i, err);
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
    return zr_objects_damaged(r->self, "ends after the end of the chunk", r->i, err);
}

static zarr_status pack_read_text(struct pack_value *r, zarr_vlen *item, zarr_error *err)
{
    if (!pack_text(r->f, item))
        return pack_cut(r, err);
    if (!zr_utf8_valid(item->data, (size_t)item->bytes))
        return zr_objects_damaged(r->self, "is not UTF-8", r->i, err);
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
    zarr_status st = ZARR_OK;
    zarr_vlen text = {0};
    uint32_t kind = 0;
    bool map = false;

    *n = 0;
    if (type == 0xC1)
        return zr_objects_damaged(r->self, "is missing or not a value", r->i, err);
    if (type == 0xC0) {
        r->f->p++;
        *out = zr_json_new(doc, ZR_JSON_NULL);
    } else if (pack_is_text(type)) {
        ZR_TRY(pack_read_text(r, &text, err));
        *out = zr_json_new_string(doc, text.data, (size_t)text.bytes);
    } else if (pack_is_list(type) || (type & 0xF0) == 0x80 || type == 0xDE ||
               type == 0xDF) {
        if (!msgpack_count(r->f, &map, n))
            ZR_TRY(pack_cut(r, err));
        r->maps |= map;
        *out = zr_json_new(doc, map ? ZR_JSON_OBJECT : ZR_JSON_ARRAY);
    } else {
        if (!pack_plain(r->f, &kind, &v))
            ZR_TRY(pack_cut(r, err));
        if (!kind)
            ZR_TRY(zr_objects_no_json(r->self, pack_kind(type), r->i, err));
        *out = zr_value_new_number(doc, kind, v);
    }
    if (!zr_json_ok(doc))
        st = zr_fail_memory(err, 0);
out:
    return st;
}

/* Reads the next value of the innermost list or map, with its key. */
static zarr_status pack_read_next(struct pack_value *r, struct zr_json **out, uint64_t *n,
                                  zarr_error *err)
{
    struct zr_json *in = r->depth ? r->around[r->depth - 1].v : NULL;
    zarr_status st = ZARR_OK;
    zarr_vlen key = {0};

    if (zr_json_is(in, ZR_JSON_OBJECT)) {
        if (pack_type(r->f) != 0xC1 && !pack_is_text(pack_type(r->f)))
            ZR_TRY(zr_objects_no_json(r->self, "a key that is not text", r->i, err));
        ZR_TRY(pack_type(r->f) == 0xC1 ? pack_cut(r, err) : ZARR_OK);
        ZR_TRY(pack_read_text(r, &key, err));
    }
    ZR_TRY(pack_read_node(r, out, n, err));
    if (zr_json_is(in, ZR_JSON_OBJECT))
        zr_json_add(&r->t->doc, in, key.data, (size_t)key.bytes, *out);
    else if (in)
        zr_json_append(&r->t->doc, in, *out);
out:
    return st;
}

/* JSON has no object with a key twice. The parser tells so of the text. */
static zarr_status pack_check_keys(struct pack_value *r, const zarr_vlen *item,
                                   zarr_error *err)
{
    bool is_value = false;
    zarr_status st = zr_value_parse(&r->t->scratch, item, &is_value, err);

    if (st == ZARR_OK && !is_value)
        st = zr_objects_damaged(r->self, "has a key twice", r->i, err);
    return st;
}

static zarr_status pack_other(struct pack_value *r, zarr_vlen *item, zarr_error *err)
{
    struct zr_json *root = NULL, *v = NULL;
    zarr_status st = ZARR_OK;
    uint64_t n = 0, n_values = 0;

    do {
        if (n_values++ == r->self->most_values)
            ZR_TRY(zr_fail(err, ZARR_ERR_LIMIT,
                           "msgpack2: element %" PRIu64 " has more values than "
                           "limit chunk_bytes has room for",
                           r->i));
        ZR_TRY(pack_read_next(r, &v, &n, err));
        root = root ? root : v;
        if (r->depth)
            r->around[r->depth - 1].left--;
        if (n && r->depth == ZR_VALUE_DEPTH)
            ZR_TRY(zr_fail(err, ZARR_ERR_LIMIT,
                           "msgpack2: element %" PRIu64
                           " has lists and maps more than %d deep",
                           r->i, ZR_VALUE_DEPTH));
        if (n) {
            r->around[r->depth].v = v;
            r->around[r->depth++].left = n;
        }
        while (r->depth && !r->around[r->depth - 1].left)
            r->depth--;
    } while (r->depth);
    ZR_TRY(zr_value_text(r->t, root, item, err));
    if (r->maps)
        st = pack_check_keys(r, item, err);
out:
    return st;
}

static zarr_status pack_item(const struct zr_objects *self, struct zr_values *t,
                             struct pack_from *f, uint64_t i, uint8_t *to,
                             zarr_error *err)
{
    struct pack_value r;
    const unsigned type = pack_type(f);
    zarr_status st = ZARR_OK;
    zarr_vlen item = {0};

    if (type == 0xC1)
        return zr_objects_damaged(self, "is missing or not a value", i, err);
    if (self->type.kind)
        return pack_number_item(self, f, i, to, err);
    r.self = self;
    r.t = t;
    r.f = f;
    r.i = i;
    r.depth = 0;
    r.maps = false;
    if (pack_is_text(type)) {
        ZR_TRY(pack_read_text(&r, &item, err));
        ZR_TRY(zr_value_escape(t, &item, err));
    } else {
        ZR_TRY(pack_other(&r, &item, err));
    }
    memcpy(to, &item, sizeof item);
out:
    return st;
}

static zarr_status pack_tail(const struct zr_objects *self, const struct zr_nest *nest,
                             struct pack_from *f, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zarr_vlen type = {0};
    uint64_t n = 0;

    if (!pack_is_text(pack_type(f)) || !pack_text(f, &type))
        return zr_objects_wrong_list(self, nest->dims[0], err);
    ZR_TRY(zr_objects_type(self, type.data, (size_t)type.bytes, err));
    if (!pack_list(f, &n) || n != (uint64_t)nest->ndim)
        return zr_objects_wrong_shape(self, err);
    for (int32_t d = 0; d < nest->ndim; d++)
        if (!pack_number(f, &n) || n != nest->dims[d])
            return zr_objects_wrong_shape(self, err);
    if (f->p != f->end)
        st = zr_fail(err, ZARR_ERR_CORRUPT, "%s: %zu bytes after the shape", self->codec,
                     (size_t)(f->end - f->p));
out:
    return st;
}

static zarr_status msgpack_decode_one(void *self_ptr, const struct zr_host_job *io,
                                      size_t *used, zarr_codec_exec *exec,
                                      zarr_error *err)
{
    const struct zr_objects *self = self_ptr;
    struct pack_from f = {io->src, io->src + io->src_bytes};
    struct zr_values *t = exec->thread_state;
    zarr_status st = ZARR_OK;
    struct zr_nest nest;
    uint64_t n = 0;
    bool list;

    zr_values_begin(t, self->alloc);
    if (io->dst_bytes / self->each < self->n)
        return zr_no_room(err, self->codec);
    list = pack_list(&f, &n);
    zr_nest_begin(&nest, self,
                  self->n && (self->ndim < 2 || pack_is_list(pack_type(&f))));
    if (!list || n < 2 || n - 2 != nest.dims[0])
        return zr_objects_wrong_list(self, nest.dims[0], err);
    for (uint64_t i = 0; i < self->n; i++) {
        for (int32_t d = nest.open; d <= nest.leaf; d++)
            if (!pack_list(&f, &n) || n != nest.dims[d])
                return zr_objects_damaged(self, "is not in a list of the chunk's shape",
                                          i, err);
        ZR_TRY(pack_item(self, t, &f, i, io->dst + i * self->each, err));
        zr_nest_step(&nest);
    }
    ZR_TRY(pack_tail(self, &nest, &f, err));
    *used = (size_t)self->n * self->each;
out:
    return st;
}

static zarr_status msgpack_encode_one(void *self, const struct zr_host_job *io,
                                      size_t *used, zarr_codec_exec *exec,
                                      zarr_error *err)
{
    ZR_UNUSED(exec);
    return zr_objects_encode(self, pack_put_chunk, io, used, err);
}

static zarr_status msgpack_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                  zarr_codec_exec *exec, zarr_error *err)
{
    return zr_jobs_each(msgpack_decode_one, self, jobs, n, exec, err);
}

static zarr_status msgpack_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                                  zarr_codec_exec *exec, zarr_error *err)
{
    return zr_jobs_each(msgpack_encode_one, self, jobs, n, exec, err);
}

static uint64_t msgpack_size_hint(void *self, const zarr_codec_job *job, int encode)
{
    return encode ? zr_objects_size(self, pack_put_chunk, job) : 0;
}

const zarr_codec_impl_vtable zr_cpu_msgpack2 = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC | ZARR_CODEC_FOR_V2,
    .codec = "msgpack2",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = zr_objects_bind,
    .thread_open = zr_values_open,
    .thread_close = zr_values_close,
    .encode = msgpack_encode,
    .decode = msgpack_decode,
    .close = zr_objects_close,
    .size_hint = msgpack_size_hint,
};
