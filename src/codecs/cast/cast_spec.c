/*
 * codecs/cast/cast_spec.c - `cast_value`: casts elements to another type by value. These
 * rules apply in this order: scalar_map lists the value; the other type has it exactly;
 * `rounding`, then `out_of_range`, give it a value. Any other value is an error. So is a
 * fill value that does not decode to itself. Decoding swaps the types and the two maps.
 * Keys of a map match by value: all NaN are one key, -0 equals 0, and the first of equal
 * keys wins. Thread class: plain functions.
 */
#include "codecs/cast/cast.h"

#include <stdlib.h>
#include <string.h>

static const char *const cast_roundings[] = {"nearest-even",     "towards-zero",
                                             "towards-positive", "towards-negative",
                                             "nearest-away",     NULL};
static const char *const cast_ranges[] = {"error", "clamp", "wrap", NULL};

/* ---- the configuration ------------------------------------------------------------ */

static zarr_status cast_number(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                               struct zr_number *out, zarr_error *err)
{
    if (zr_number_from_dtype(dtype, out) && out->parts == 1)
        return ZARR_OK;
    return zr_spec_refuse_dtype(spec, dtype, "integers and floats", err);
}

static zarr_status cast_target(const zarr_codec_spec *spec, const zarr_dtype **out,
                               struct zr_number *to, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (!zr_conf_value(spec, "data_type"))
        return zr_fail(err, ZARR_ERR_INVALID, "cast_value: data_type is missing");
    st = zr_conf_dtype_v3(spec, "data_type", out, err);
    if (st != ZARR_OK)
        return zr_prefix(err, st, "cast_value: data_type");
    return cast_number(spec, *out, to, err);
}

/* INVALID unless it is a list of pairs. The numbers are checked later, with the types. */
static zarr_status cast_check_pairs(const struct zr_json *list, const char *member,
                                    zarr_error *err)
{
    size_t i = 0;

    if (!list || list->type == ZR_JSON_NULL)
        return ZARR_OK;
    if (list->type != ZR_JSON_ARRAY)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "cast_value: scalar_map.%s must be a list of pairs", member);
    for (const struct zr_json *v = list->u.children.first; v; v = v->next, i++)
        if (v->type != ZR_JSON_ARRAY || zr_json_count(v) != 2)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "cast_value: scalar_map.%s[%zu] must be a pair", member, i);
    return ZARR_OK;
}

static zarr_status cast_check_map(const zarr_codec_spec *raw, zarr_error *err)
{
    const struct zr_json *map = zr_conf_value(raw, "scalar_map");

    if (!zr_conf_has(raw, "scalar_map"))
        return ZARR_OK;
    if (map->type != ZR_JSON_OBJECT)
        return zr_conf_refuse(raw, "scalar_map", "an object of encode and decode", err);
    for (const struct zr_json *m = map->u.children.first; m; m = m->next)
        if (!zr_json_has_key(m, "encode") && !zr_json_has_key(m, "decode"))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "cast_value: scalar_map: unknown member \"%s\"", m->key);
    ZR_CHECK(cast_check_pairs(zr_json_get(map, "encode"), "encode", err));
    return cast_check_pairs(zr_json_get(map, "decode"), "decode", err);
}

static zarr_status cast_canonical(const zarr_codec_spec *raw, int format, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"data_type", "rounding", "out_of_range",
                                        "scalar_map", NULL};
    const zarr_dtype *dtype = NULL;
    struct zr_number to = {0};
    struct zr_conf_text t;
    int rounding = ZR_ROUND_EVEN, range = ZR_RANGE_ERROR;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(cast_target(raw, &dtype, &to, err));
    ZR_CHECK(zr_conf_word(raw, "rounding", cast_roundings, &rounding, err));
    ZR_CHECK(zr_conf_word(raw, "out_of_range", cast_ranges, &range, err));
    if (range == ZR_RANGE_WRAP && to.kind == ZARR_KIND_FLOAT)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "cast_value: out_of_range is \"wrap\", which only integers "
                       "permit, not %s",
                       zr_dtype_label(dtype));
    ZR_CHECK(cast_check_map(raw, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_json(&t, raw, "data_type");
    if (rounding != ZR_ROUND_EVEN)
        zr_conf_put_word(&t, "rounding", cast_roundings[rounding]);
    if (range != ZR_RANGE_ERROR)
        zr_conf_put_word(&t, "out_of_range", cast_ranges[range]);
    zr_conf_put_json(&t, raw, "scalar_map");
    return zr_conf_end(&t, text_bytes, err);
}

/* ---- scalar_map ------------------------------------------------------------------- */

uint64_t zr_number_key(const struct zr_number *n, uint64_t bits)
{
    const struct zr_scalar v = zr_scalar_from_bits(n, bits);

    if (v.kind == ZR_SCALAR_NAN)
        return UINT64_MAX;
    if (n->kind == ZARR_KIND_FLOAT && v.kind == ZR_SCALAR_FINITE && v.c == 0)
        return 0;
    return bits;
}

static int cast_compare(const void *a, const void *b)
{
    const struct zr_cast_pair *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Parses a number as a fill value, and also "+Infinity". The specification's example has
 * that, although it is not a fill value. */
static zarr_status cast_parse_scalar(const zarr_dtype *dtype, const struct zr_number *n,
                                     const struct zr_json *v, uint64_t *bits,
                                     zarr_error *err)
{
    static const struct zr_json infinity = {.type = ZR_JSON_STRING,
                                            .u.text = {.ptr = "Infinity", .bytes = 8}};
    uint8_t element[8] = {0};

    if (zr_json_is_text(v, "+Infinity"))
        v = &infinity;
    ZR_CHECK(zr_dtype_fill_parse(dtype, v, 3, element, err));
    *bits = zr_number_bits(n, element);
    return ZARR_OK;
}

static zarr_status cast_read_map(struct zr_cast *c, const struct zr_json *list,
                                 const zarr_dtype *from, const zarr_dtype *to,
                                 const char *member, zarr_error *err)
{
    const size_t n = zr_json_count(list);
    zarr_status st = ZARR_OK;
    size_t kept = 0;

    if (!n)
        return ZARR_OK;
    c->map = zr_calloc(c->alloc, n, sizeof *c->map);
    if (!c->map)
        return zr_fail_memory(err, (uint64_t)n * sizeof *c->map);
    for (const struct zr_json *v = list->u.children.first; v; v = v->next) {
        struct zr_cast_pair *pair = &c->map[c->n_map];

        pair->order = c->n_map++;
        st = cast_parse_scalar(from, &c->from, v->u.children.first, &pair->key, err);
        if (st == ZARR_OK)
            st = cast_parse_scalar(to, &c->to, v->u.children.last, &pair->value, err);
        if (st != ZARR_OK) {
            st =
                zr_prefix(err, st, "cast_value: scalar_map.%s[%zu]", member, pair->order);
            goto out;
        }
        pair->key = zr_number_key(&c->from, pair->key);
    }
    qsort(c->map, c->n_map, sizeof *c->map, cast_compare);
    for (size_t i = 0; i < c->n_map; i++)
        if (!kept || c->map[kept - 1].key != c->map[i].key)
            c->map[kept++] = c->map[i];
    c->n_map = kept;
out:
    return st;
}

/* ---- casts ----------------------------------------------------------------------- */

void zr_cast_close(struct zr_cast *c)
{
    zr_free(c->alloc, c->map);
    c->map = NULL;
    c->n_map = 0;
}

zarr_status zr_cast_open(struct zr_cast *c, const zarr_codec_spec *spec,
                         const zarr_dtype *array, bool encode,
                         const zarr_allocator *alloc, zarr_error *err)
{
    const char *member = encode ? "encode" : "decode";
    const zarr_dtype *target = NULL;
    struct zr_number near = {0}, far = {0};
    int rounding = ZR_ROUND_EVEN, range = ZR_RANGE_ERROR;
    zarr_status st = ZARR_OK;

    *c = (struct zr_cast){.alloc = alloc};
    ZR_TRY(cast_number(spec, array, &near, err));
    ZR_TRY(cast_target(spec, &target, &far, err));
    ZR_TRY(zr_conf_word(spec, "rounding", cast_roundings, &rounding, err));
    ZR_TRY(zr_conf_word(spec, "out_of_range", cast_ranges, &range, err));
    c->from = encode ? near : far;
    c->to = encode ? far : near;
    c->rounding = (uint32_t)rounding;
    c->range = (uint32_t)range;
    if (range == ZR_RANGE_WRAP && c->to.kind == ZARR_KIND_FLOAT)
        c->range = ZR_RANGE_ERROR; /* decoding to floats; "wrap" is for integers */
    ZR_TRY(cast_read_map(c, zr_json_get(zr_conf_value(spec, "scalar_map"), member),
                         encode ? array : target, encode ? target : array, member, err));
out:
    if (st != ZARR_OK)
        zr_cast_close(c);
    return st;
}

const struct zr_cast_pair *zr_cast_find_pair(const struct zr_cast *c, uint64_t bits)
{
    const uint64_t key = zr_number_key(&c->from, bits);
    size_t low = 0, high = c->n_map;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (c->map[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->n_map && c->map[low].key == key ? &c->map[low] : NULL;
}

enum zr_cast_result zr_cast_one(const struct zr_cast *c, uint64_t bits, uint64_t *out)
{
    const struct zr_cast_pair *mapped = c->n_map ? zr_cast_find_pair(c, bits) : NULL;
    struct zr_scalar v;

    if (mapped) {
        *out = mapped->value;
        return ZR_CAST_OK;
    }
    v = zr_scalar_from_bits(&c->from, bits);
    return zr_scalar_cast(&v, &c->to, c->rounding, c->range, out);
}

const char *zr_cast_reason(enum zr_cast_result result)
{
    return result == ZR_CAST_NAN        ? "NaN, which the other type lacks"
           : result == ZR_CAST_INFINITY ? "infinite, which the other type lacks"
                                        : "out of the other type's range";
}

/* ---- the representation ------------------------------------------------------------ */

/* Encodes the fill value. INVALID unless it decodes to itself: missing chunks must read
 * as the array's fill value. */
static zarr_status cast_fill(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                             const zarr_dtype *target, void *fill_out, zarr_error *err)
{
    struct zr_cast there, back = {0};
    enum zr_cast_result result;
    uint64_t bits, out = 0, again = 0;
    zarr_status st = ZARR_OK;
    char text[64] = "";

    ZR_TRY(zr_cast_open(&there, spec, in->dtype, true, zarr_codec_spec_allocator(spec),
                        err));
    ZR_TRY(zr_cast_open(&back, spec, in->dtype, false, zarr_codec_spec_allocator(spec),
                        err));
    bits = zr_number_bits(&there.from, in->fill);
    result = zr_cast_one(&there, bits, &out);
    if (result == ZR_CAST_OK)
        result = zr_cast_one(&back, out, &again);
    if (result == ZR_CAST_OK &&
        zr_number_key(&there.from, bits) == zr_number_key(&there.from, again)) {
        zr_number_put(&there.to, fill_out, out);
        goto out;
    }
    st = zr_fail(err, ZARR_ERR_INVALID,
                 "cast_value: fill_value %s does not come back from %s%s%s",
                 zr_dtype_fill_text(in->dtype, in->fill, text, sizeof text),
                 zr_dtype_label(target), result == ZR_CAST_OK ? "" : ": it is ",
                 result == ZR_CAST_OK ? "" : zr_cast_reason(result));
out:
    zr_cast_close(&there);
    zr_cast_close(&back);
    return st;
}

static zarr_status cast_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    struct zr_number from, to;
    struct zr_cast c;

    ZR_CHECK(cast_number(spec, in->dtype, &from, err));
    ZR_CHECK(cast_target(spec, &out->dtype, &to, err));
    for (int encode = 0; encode < 2; encode++) { /* checks that the maps fit the types */
        ZR_CHECK(zr_cast_open(&c, spec, in->dtype, encode,
                              zarr_codec_spec_allocator(spec), err));
        zr_cast_close(&c);
    }
    if (in->fill) {
        ZR_CHECK(cast_fill(spec, in, out->dtype, fill_out, err));
        out->fill = fill_out;
    }
    return ZARR_OK;
}

/* A cast to the same type without a map keeps all values. Others count as lossy. */
static int cast_lossy(const zarr_codec_spec *spec, const zarr_chunk_spec *in)
{
    const zarr_dtype *target = NULL;
    struct zr_number to;

    return cast_target(spec, &target, &to, NULL) != ZARR_OK ||
           !zarr_dtype_equal(target, in->dtype) || zr_conf_has(spec, "scalar_map");
}

const zarr_codec_spec_vtable zr_spec_cast_value = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3 | ZARR_CODEC_SPEC_ELEMENTWISE,
    .name = "cast_value",
    .kind = ZARR_CODEC_ARRAY_ARRAY,
    .canonical = cast_canonical,
    .resolve = cast_resolve,
    .lossy = cast_lossy,
};
