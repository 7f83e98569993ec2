/*
 * dtype/integer.c - bool and the integers of 2 to 64 bits. Values are read as decimal
 * integers, never through a double, so 2^64-1 survives. "0.0" and "0" in quotes are read
 * because other writers have them. One set of functions serves all widths, by item_bits
 * and kind. An integer of less than 8 bits has one byte. The byte's upper bits repeat the
 * sign or are zero; any other upper bits are ignored. Thread class: frozen.
 */
#include "dtype_int.h"

#include <string.h>

static zarr_status integer_facts(zarr_dtype_info *info, uint32_t kind, uint8_t bits)
{
    info->kind = kind;
    info->item_bytes = bits < 8 ? 1 : bits / 8;
    info->item_bits = bits;
    info->swap_bytes = (uint32_t)info->item_bytes;
    info->dlpack_code = kind == ZARR_KIND_INT ? ZARR_DLPACK_INT : ZARR_DLPACK_UINT;
    info->dlpack_bits = bits;
    info->dlpack_lanes = 1;
    return ZARR_OK;
}

#define INTEGER_PARSE(function, kind, bits)                                              \
    static zarr_status function(zarr_dtype_info *info, const zarr_dtype_host *host,      \
                                const char *name, const char *json, zarr_error *err)     \
    {                                                                                    \
        ZR_UNUSED(host);                                                                 \
        ZR_UNUSED(name);                                                                 \
        ZR_UNUSED(json);                                                                 \
        ZR_UNUSED(err);                                                                  \
        return integer_facts(info, kind, bits);                                          \
    }
INTEGER_PARSE(parse_int2, ZARR_KIND_INT, 2)
INTEGER_PARSE(parse_int4, ZARR_KIND_INT, 4)
INTEGER_PARSE(parse_int8, ZARR_KIND_INT, 8)
INTEGER_PARSE(parse_int16, ZARR_KIND_INT, 16)
INTEGER_PARSE(parse_int32, ZARR_KIND_INT, 32)
INTEGER_PARSE(parse_int64, ZARR_KIND_INT, 64)
INTEGER_PARSE(parse_uint2, ZARR_KIND_UINT, 2)
INTEGER_PARSE(parse_uint4, ZARR_KIND_UINT, 4)
INTEGER_PARSE(parse_uint8, ZARR_KIND_UINT, 8)
INTEGER_PARSE(parse_uint16, ZARR_KIND_UINT, 16)
INTEGER_PARSE(parse_uint32, ZARR_KIND_UINT, 32)
INTEGER_PARSE(parse_uint64, ZARR_KIND_UINT, 64)

/* Loads an element as 64 bits: two's complement, or unsigned. */
static uint64_t integer_load(const zarr_dtype_info *info, const void *element)
{
    const unsigned unused = 64 - (unsigned)info->item_bits;
    const uint64_t bits = zr_load_low(element, info->item_bytes) << unused;
    const uint64_t low = bits >> unused, sign = UINT64_C(1) << (info->item_bits - 1);

    /* In a negative number the sign bit weighs 2 * sign less than in `low`. */
    return info->kind == ZARR_KIND_INT && (low & sign) ? low - 2 * sign : low;
}

static zarr_status integer_from_json(const zarr_dtype_info *info, int format,
                                     const struct zr_json *v, void *element,
                                     zarr_error *err)
{
    unsigned width = (unsigned)info->item_bits;
    bool is_signed = info->kind == ZARR_KIND_INT;
    int64_t low = is_signed ? -INT64_MAX - 1 : 0;
    uint64_t high = UINT64_MAX >> (64 - width + is_signed), bits = 0;

    ZR_UNUSED(format);
    if (is_signed && width < 64)
        low = -((int64_t)1 << (width - 1));
    ZR_CHECK(zr_value_integer(info, v, low, high, &bits, err));
    zr_store_low(element, bits, info->item_bytes);
    return ZARR_OK;
}

ZR_FILL_PARSE(integer)

static zarr_status integer_fill_print(const zarr_dtype_info *info, int format,
                                      const void *element, char *text, size_t cap,
                                      size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};
    uint64_t bits = integer_load(info, element);

    ZR_UNUSED(format, err);
    if (info->kind == ZARR_KIND_INT && bits >> 63) {
        zr_sink_putc(&s, '-');
        bits = 0 - bits; /* the magnitude, also of -2^63 */
    }
    zr_sink_u64(&s, bits);
    return zr_sink_end(&s, text_bytes);
}

static int integer_compare(const zarr_dtype_info *info, const void *a, const void *b)
{
    const uint64_t flip = info->kind == ZARR_KIND_INT ? UINT64_C(1) << 63 : 0;
    const uint64_t x = integer_load(info, a) ^ flip, y = integer_load(info, b) ^ flip;

    return (x > y) - (x < y);
}

static void integer_number(const zarr_dtype_info *info, const void *element, double *out)
{
    const uint64_t bits = integer_load(info, element);

    if (info->kind == ZARR_KIND_INT && bits >> 63)
        *out = -(double)(0 - bits);
    else
        *out = (double)bits;
}

static zarr_status bool_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                              const char *name, const char *json, zarr_error *err)
{
    ZR_UNUSED(host, name, json, err);
    info->kind = ZARR_KIND_BOOL;
    info->item_bytes = 1;
    info->component_bits = 1;
    info->dlpack_code = ZARR_DLPACK_BOOL;
    info->dlpack_bits = 8;
    info->dlpack_lanes = 1;
    return ZARR_OK;
}

static zarr_status bool_from_json(const zarr_dtype_info *info, int format,
                                  const struct zr_json *v, void *element, zarr_error *err)
{
    bool truth = false;
    uint64_t bits = 0;

    ZR_UNUSED(format);
    if (zr_json_bool(v, &truth))
        bits = truth;
    else if (zr_json_is(v, ZR_JSON_NUMBER)) /* old files: 0 and 1 */
        ZR_CHECK(zr_value_integer(info, v, 0, 1, &bits, err));
    else
        ZR_CHECK(zr_value_refuse(info, v, "true or false is expected", err));
    zr_store_low(element, bits, 1);
    return ZARR_OK;
}

ZR_FILL_PARSE(bool)

static zarr_status bool_fill_print(const zarr_dtype_info *info, int format,
                                   const void *element, char *text, size_t cap,
                                   size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};

    ZR_UNUSED(info, format, err);
    zr_sink_puts(&s, zr_load_low(element, 1) ? "true" : "false");
    return zr_sink_end(&s, text_bytes);
}

static int bool_compare(const zarr_dtype_info *info, const void *a, const void *b)
{
    ZR_UNUSED(info);
    return (zr_load_low(a, 1) != 0) - (zr_load_low(b, 1) != 0);
}

static void bool_number(const zarr_dtype_info *info, const void *element, double *out)
{
    ZR_UNUSED(info);
    *out = zr_load_low(element, 1) ? 1 : 0;
}

const zarr_dtype_vtable zr_dtype_bool = {
    .struct_size = sizeof(zarr_dtype_vtable),
    .name = "bool",
    .v2 = "b1",
    .parse = bool_parse,
    .fill_parse = bool_fill_parse,
    .fill_print = bool_fill_print,
    .numpy = "b1",
    .compare = bool_compare,
    .number = bool_number,
};

#define INTEGER_TABLE(table, options, v3_name, v2_type, numpy_type, function)            \
    const zarr_dtype_vtable table = {                                                    \
        .struct_size = sizeof(zarr_dtype_vtable),                                        \
        .flags = options,                                                                \
        .name = v3_name,                                                                 \
        .v2 = v2_type,                                                                   \
        .parse = function,                                                               \
        .fill_parse = integer_fill_parse,                                                \
        .fill_print = integer_fill_print,                                                \
        .numpy = numpy_type,                                                             \
        .compare = integer_compare,                                                      \
        .number = integer_number,                                                        \
    }
/* In v2 only TensorStore has small integers, and only signed ones. */
INTEGER_TABLE(zr_dtype_int2, ZARR_DTYPE_V2_PLAIN, "int2", "int2", "int2", parse_int2);
INTEGER_TABLE(zr_dtype_int4, ZARR_DTYPE_V2_PLAIN, "int4", "int4", "int4", parse_int4);
INTEGER_TABLE(zr_dtype_int8, 0, "int8", "i1", "i1", parse_int8);
INTEGER_TABLE(zr_dtype_int16, 0, "int16", "i2", "i2", parse_int16);
INTEGER_TABLE(zr_dtype_int32, 0, "int32", "i4", "i4", parse_int32);
INTEGER_TABLE(zr_dtype_int64, 0, "int64", "i8", "i8", parse_int64);
INTEGER_TABLE(zr_dtype_uint2, 0, "uint2", NULL, "uint2", parse_uint2);
INTEGER_TABLE(zr_dtype_uint4, 0, "uint4", NULL, "uint4", parse_uint4);
INTEGER_TABLE(zr_dtype_uint8, 0, "uint8", "u1", "u1", parse_uint8);
INTEGER_TABLE(zr_dtype_uint16, 0, "uint16", "u2", "u2", parse_uint16);
INTEGER_TABLE(zr_dtype_uint32, 0, "uint32", "u4", "u4", parse_uint32);
INTEGER_TABLE(zr_dtype_uint64, 0, "uint64", "u8", "u8", parse_uint64);
