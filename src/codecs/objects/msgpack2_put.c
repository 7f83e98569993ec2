/*
 * codecs/objects/msgpack2_put.c - writes chunks of msgpack2, in the forms that numcodecs
 * writes: the shortest one of each value.
 * Thread class: plain functions.
 */
#include "codecs/objects/objects_int.h"

#include <string.h>

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

void zr_msgpack_put(const struct zr_objects *self, struct zr_put *p, const uint8_t *items)
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
