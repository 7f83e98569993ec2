/*
 * dtype/integer.c - bool and the integers of 8 to 64 bits. Values are read as
 * decimal integers, never through a double, so 2^64-1 survives; "0.0" and "0"
 * in quotes are taken because other writers have them. One set of functions
 * serves all widths: item_bytes and kind tell. Thread class: frozen.
 */
#include "dtype_int.h"

#include <string.h>

static zarr_status integer_facts(zarr_dtype_info *info, uint32_t kind, uint8_t bytes)
{
    info->kind = kind;
    info->item_bytes = bytes;
    info->swap_bytes = bytes;
    info->dlpack_code = kind == ZARR_KIND_INT ? ZARR_DLPACK_INT : ZARR_DLPACK_UINT;
    info->dlpack_bits = (uint8_t)(bytes * 8);
    info->dlpack_lanes = 1;
    return ZARR_OK;
}

#define INTEGER_PARSE(function, kind, bytes)                                             \
    static zarr_status function(zarr_dtype_info *info, const zarr_dtype_host *host,      \
                                const char *name, const char *json, zarr_error *err)     \
    {                                                                                    \
        ZR_UNUSED(host);                                                                 \
        ZR_UNUSED(name);                                                                 \
        ZR_UNUSED(json);                                                                 \
        ZR_UNUSED(err);                                                                  \
        return integer_facts(info, kind, bytes);                                         \
    }
INTEGER_PARSE(parse_int8, ZARR_KIND_INT, 1)
INTEGER_PARSE(parse_int16, ZARR_KIND_INT, 2)
INTEGER_PARSE(parse_int32, ZARR_KIND_INT, 4)
INTEGER_PARSE(parse_int64, ZARR_KIND_INT, 8)
INTEGER_PARSE(parse_uint8, ZARR_KIND_UINT, 1)
INTEGER_PARSE(parse_uint16, ZARR_KIND_UINT, 2)
INTEGER_PARSE(parse_uint32, ZARR_KIND_UINT, 4)
INTEGER_PARSE(parse_uint64, ZARR_KIND_UINT, 8)

/* The low bytes of a 64-bit pattern, in the host's order. */
static void put_low_bytes(void *element, uint64_t bits, uint64_t n)
{
    uint8_t one = (uint8_t)bits;
    uint16_t two = (uint16_t)bits;
    uint32_t four = (uint32_t)bits;

    if (n == 1)
        memcpy(element, &one, 1);
    else if (n == 2)
        memcpy(element, &two, 2);
    else if (n == 4)
        memcpy(element, &four, 4);
    else
        memcpy(element, &bits, 8);
}

static uint64_t get_low_bytes(const void *element, uint64_t n)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    if (n == 1) {
        memcpy(&one, element, 1);
        return one;
    }
    if (n == 2) {
        memcpy(&two, element, 2);
        return two;
    }
    if (n == 4) {
        memcpy(&four, element, 4);
        return four;
    }
    memcpy(&eight, element, 8);
    return eight;
}

static zarr_status integer_fill_parse(const zarr_dtype_info *info, int format,
                                      const char *json, void *element, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_value value;
    unsigned width = (unsigned)info->item_bytes * 8;
    bool is_signed = info->kind == ZARR_KIND_INT;
    int64_t low = is_signed ? -INT64_MAX - 1 : 0;
    uint64_t high = UINT64_MAX >> (64 - width + is_signed), bits = 0;

    ZR_UNUSED(format);
    if (is_signed && width < 64)
        low = -((int64_t)1 << (width - 1));
    ZR_TRY(zr_value_open(&value, info, json, err));
    ZR_TRY(zr_value_integer(info, value.v, low, high, &bits, err));
    put_low_bytes(element, bits, info->item_bytes);
out:
    zr_value_close(&value);
    return st;
}

static zarr_status integer_fill_print(const zarr_dtype_info *info, int format,
                                      const void *element, char *text, size_t cap,
                                      size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};
    uint64_t bits = get_low_bytes(element, info->item_bytes);
    uint64_t sign = UINT64_C(1) << (info->item_bytes * 8 - 1);

    ZR_UNUSED(format);
    ZR_UNUSED(err);
    if (info->kind == ZARR_KIND_INT && (bits & sign)) {
        zr_sink_putc(&s, '-');
        bits = sign - (bits & (sign - 1)); /* the magnitude, 2^63 included */
    }
    zr_sink_u64(&s, bits);
    return zr_sink_end(&s, text_bytes);
}

static zarr_status bool_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                              const char *name, const char *json, zarr_error *err)
{
    ZR_UNUSED(host);
    ZR_UNUSED(name);
    ZR_UNUSED(json);
    ZR_UNUSED(err);
    info->kind = ZARR_KIND_BOOL;
    info->item_bytes = 1;
    info->dlpack_code = ZARR_DLPACK_BOOL;
    info->dlpack_bits = 8;
    info->dlpack_lanes = 1;
    return ZARR_OK;
}

static zarr_status bool_fill_parse(const zarr_dtype_info *info, int format,
                                   const char *json, void *element, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_value value;
    bool truth = false;
    uint64_t bits = 0;

    ZR_UNUSED(format);
    ZR_TRY(zr_value_open(&value, info, json, err));
    if (zr_json_bool(value.v, &truth))
        bits = truth;
    else if (zr_json_is(value.v, ZR_JSON_NUMBER)) /* old files: 0 and 1 */
        ZR_TRY(zr_value_integer(info, value.v, 0, 1, &bits, err));
    else
        ZR_TRY(zr_value_refuse(info, value.v, "true or false is expected", err));
    put_low_bytes(element, bits, 1);
out:
    zr_value_close(&value);
    return st;
}

static zarr_status bool_fill_print(const zarr_dtype_info *info, int format,
                                   const void *element, char *text, size_t cap,
                                   size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};

    ZR_UNUSED(info);
    ZR_UNUSED(format);
    ZR_UNUSED(err);
    zr_sink_puts(&s, get_low_bytes(element, 1) ? "true" : "false");
    return zr_sink_end(&s, text_bytes);
}

const zarr_dtype_vtable zr_dtype_bool = {
    .struct_size = sizeof(zarr_dtype_vtable),
    .name = "bool",
    .v2 = "b1",
    .parse = bool_parse,
    .fill_parse = bool_fill_parse,
    .fill_print = bool_fill_print,
};

#define INTEGER_TABLE(table, v3_name, v2_type, function)                                 \
    const zarr_dtype_vtable table = {                                                    \
        .struct_size = sizeof(zarr_dtype_vtable),                                        \
        .name = v3_name,                                                                 \
        .v2 = v2_type,                                                                   \
        .parse = function,                                                               \
        .fill_parse = integer_fill_parse,                                                \
        .fill_print = integer_fill_print,                                                \
    }
INTEGER_TABLE(zr_dtype_int8, "int8", "i1", parse_int8);
INTEGER_TABLE(zr_dtype_int16, "int16", "i2", parse_int16);
INTEGER_TABLE(zr_dtype_int32, "int32", "i4", parse_int32);
INTEGER_TABLE(zr_dtype_int64, "int64", "i8", parse_int64);
INTEGER_TABLE(zr_dtype_uint8, "uint8", "u1", parse_uint8);
INTEGER_TABLE(zr_dtype_uint16, "uint16", "u2", parse_uint16);
INTEGER_TABLE(zr_dtype_uint32, "uint32", "u4", parse_uint32);
INTEGER_TABLE(zr_dtype_uint64, "uint64", "u8", parse_uint64);
