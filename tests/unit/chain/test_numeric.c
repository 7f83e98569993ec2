/*
 * unit/chain/test_numeric.c - codecs that compute: refused configurations, with codec,
 * member and rule in the message; the resulting shape, type and fill value; exact casts
 * of single numbers, small floats included.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/chain/chain_test.h"

static struct codec_env env;

static int open_env(void **state)
{
    ZR_UNUSED(state);
    return codec_env_open(&env, NULL, NULL) == ZARR_OK ? 0 : -1;
}

static int close_env(void **state)
{
    ZR_UNUSED(state);
    codec_env_close(&env);
    return 0;
}

#define BYTES           "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ONE(name, text) "[{\"name\":\"" name "\",\"configuration\":{" text "}}," BYTES "]"

static zarr_status resolve(int format, const char *codecs, const char *dtype,
                           const uint64_t *dims, const char *fill,
                           struct zr_chain_reps *reps, zarr_error *err)
{
    struct zr_chain *chain = NULL;
    zarr_chunk_spec chunk;
    uint8_t element[16] = {0};
    zarr_status st = ZARR_OK;

    *reps = (struct zr_chain_reps){0};
    ZR_TRY(codec_env_parse(&chain, &env, format, codecs, NULL, err));
    ZR_TRY(codec_env_chunk(&chunk, &env, dtype, dims, err));
    if (fill) {
        ZR_TRY(zarr_dtype_parse(chunk.dtype, fill, element, err));
        chunk.fill = element;
    }
    ZR_TRY(zr_chain_resolve(reps, chain, &chunk, NULL, NULL, err));
out:
    zr_chain_free(chain);
    return st;
}

static const struct {
    int format;
    const char *codecs, *dtype, *fill, *says;
    zarr_status status;
} bad[] = {
    {3, ONE("bitround", ""), "float32", NULL, "bitround: keepbits is missing",
     ZARR_ERR_INVALID},
    {3, ONE("bitround", "\"keepbits\":-1"), "float32", NULL,
     "bitround: keepbits is -1, must be an integer", ZARR_ERR_INVALID},
    {3, ONE("bitround", "\"keepbits\":3,\"x\":1"), "float32", NULL,
     "bitround: unknown member \"x\"", ZARR_ERR_INVALID},
    {3, ONE("bitround", "\"keepbits\":3"), "bool", NULL,
     "codec bitround does not take data type bool, only", ZARR_ERR_UNSUPPORTED},
    {2, "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"bitround\",\"keepbits\":3}]",
     "int32", NULL, "bitround: its input must be little-endian floats",
     ZARR_ERR_UNSUPPORTED},
    {2,
     "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"astype\",\"encode_dtype\":\"<"
     "i4\",\"decode_dtype\":\"<f4\"},{\"id\":\"bitround\",\"keepbits\":3}]",
     "float32", NULL, "bitround: its input must be", ZARR_ERR_UNSUPPORTED},
    {3, ONE("reshape", ""), "int8", NULL, "reshape: shape is nothing, must be a list",
     ZARR_ERR_INVALID},
    {3, ONE("reshape", "\"shape\":[5]"), "int8", NULL,
     "reshape: shape makes 5 elements of a chunk of 24", ZARR_ERR_INVALID},
    {3, ONE("reshape", "\"shape\":[5,-1]"), "int8", NULL, "makes 5 elements",
     ZARR_ERR_INVALID},
    {3, ONE("reshape", "\"shape\":[-1,-1]"), "int8", NULL,
     "reshape: shape[1] is -1, must be a positive integer", ZARR_ERR_INVALID},
    {3, ONE("reshape", "\"shape\":[0]"), "int8", NULL, "shape[0] is 0", ZARR_ERR_INVALID},
    {3, ONE("reshape", "\"shape\":[\"a\"]"), "int8", NULL, "shape[0] is \"a\"",
     ZARR_ERR_INVALID},
    {3, ONE("reshape", "\"shape\":[[1],[0]]"), "int8", NULL,
     "shape[1] is [0], must be input dimensions in increasing order", ZARR_ERR_INVALID},
    {3, ONE("reshape", "\"shape\":[[1,0],-1]"), "int8", NULL, "increasing order",
     ZARR_ERR_INVALID},
    {3, ONE("reshape", "\"shape\":[[3]]"), "int8", NULL,
     "shape[0] names dimension 3 of an array of 3", ZARR_ERR_INVALID},
    {3, ONE("reshape", "\"shape\":[[1],-1]"), "int8", NULL,
     "shape[0] names input dimensions that do not lie there", ZARR_ERR_INVALID},
    {3, ONE("reshape", "\"shape\":[4294967296,4294967296,-1]"), "int8", NULL,
     "over 64 bits", ZARR_ERR_LIMIT},
    {3, ONE("cast_value", ""), "int8", NULL, "cast_value: data_type is missing",
     ZARR_ERR_INVALID},
    {3, ONE("cast_value", "\"data_type\":\"int7\""), "int8", NULL,
     "cast_value: data_type: ", ZARR_ERR_UNSUPPORTED},
    {3, ONE("cast_value", "\"data_type\":\"complex64\""), "int8", NULL,
     "codec cast_value does not take data type complex64, only integers and floats",
     ZARR_ERR_UNSUPPORTED},
    {3, ONE("cast_value", "\"data_type\":\"int8\""), "bool", NULL,
     "codec cast_value does not take data type bool", ZARR_ERR_UNSUPPORTED},
    {3, ONE("cast_value", "\"data_type\":\"int8\",\"rounding\":\"up\""), "int8", NULL,
     "cast_value: rounding is \"up\", must be one of \"nearest-even\"", ZARR_ERR_INVALID},
    {3, ONE("cast_value", "\"data_type\":\"float32\",\"out_of_range\":\"wrap\""), "int8",
     NULL, "cast_value: out_of_range is \"wrap\", which only integers permit",
     ZARR_ERR_INVALID},
    {3, ONE("cast_value", "\"data_type\":\"int8\",\"scalar_map\":[]"), "int8", NULL,
     "cast_value: scalar_map is [], must be an object", ZARR_ERR_INVALID},
    {3, ONE("cast_value", "\"data_type\":\"int8\",\"scalar_map\":{\"both\":[]}"), "int8",
     NULL, "scalar_map: unknown member \"both\"", ZARR_ERR_INVALID},
    {3, ONE("cast_value", "\"data_type\":\"int8\",\"scalar_map\":{\"encode\":[[1]]}"),
     "int8", NULL, "scalar_map.encode[0] must be a pair", ZARR_ERR_INVALID},
    {3,
     ONE("cast_value",
         "\"data_type\":\"int8\",\"scalar_map\":{\"encode\":[[1,2],[3,300]]}"),
     "int16", NULL, "cast_value: scalar_map.encode[1]", ZARR_ERR_INVALID},
    {3,
     ONE("cast_value",
         "\"data_type\":\"int8\",\"scalar_map\":{\"decode\":[[\"NaN\",2]]}"),
     "int16", NULL, "cast_value: scalar_map.decode[0]", ZARR_ERR_INVALID},
    {3, ONE("cast_value", "\"data_type\":\"uint8\""), "float32", "300.0",
     "cast_value: fill_value 300.0 does not come back from uint8: it is out of",
     ZARR_ERR_INVALID},
    {3, ONE("cast_value", "\"data_type\":\"uint8\",\"out_of_range\":\"clamp\""),
     "float32", "300.0", "fill_value 300.0 does not come back from uint8",
     ZARR_ERR_INVALID},
    {3, ONE("cast_value", "\"data_type\":\"uint8\",\"out_of_range\":\"clamp\""),
     "float32", "\"Infinity\"", "does not come back from uint8: it is infinite",
     ZARR_ERR_INVALID},
    {3, ONE("cast_value", "\"data_type\":\"int8\""), "float32", "\"NaN\"",
     "does not come back from int8: it is NaN", ZARR_ERR_INVALID},
    {3, ONE("scale_offset", "\"scale\":0"), "int8", NULL, "scale_offset: scale is 0",
     ZARR_ERR_INVALID},
    {3, ONE("scale_offset", "\"scale\":-0.0"), "float32", NULL,
     "scale_offset: scale is 0", ZARR_ERR_INVALID},
    {3, ONE("scale_offset", "\"offset\":0.5"), "int8", NULL, "scale_offset: offset",
     ZARR_ERR_INVALID},
    {3, ONE("scale_offset", "\"offset\":-1"), "uint8", NULL, "scale_offset: offset",
     ZARR_ERR_INVALID},
    {3, ONE("scale_offset", "\"offset\":[1]"), "uint8", NULL,
     "scale_offset: offset is [1], must be a number", ZARR_ERR_INVALID},
    {3, ONE("scale_offset", "\"factor\":1"), "uint8", NULL,
     "scale_offset: unknown member \"factor\"", ZARR_ERR_INVALID},
    {3, ONE("scale_offset", ""), "bool", NULL,
     "codec scale_offset does not take data type bool", ZARR_ERR_UNSUPPORTED},
    {3, ONE("scale_offset", "\"scale\":3"), "int8", "100",
     "scale_offset: (fill_value 100 - offset) * scale is not representable as int8",
     ZARR_ERR_INVALID},
    {3, ONE("numcodecs.fixedscaleoffset", "\"offset\":1"), "float32", NULL,
     "fixedscaleoffset: scale is", ZARR_ERR_INVALID},
    {3, ONE("numcodecs.fixedscaleoffset", "\"offset\":\"1\",\"scale\":1"), "float32",
     NULL, "fixedscaleoffset: offset is \"1\"", ZARR_ERR_INVALID},
    {3, ONE("numcodecs.fixedscaleoffset", "\"offset\":1e999,\"scale\":1"), "float32",
     NULL, "fixedscaleoffset: offset is 1e999", ZARR_ERR_INVALID},
    {3,
     ONE("numcodecs.fixedscaleoffset",
         "\"offset\":1,\"scale\":123456789012345678901234567890"),
     "float32", NULL, "integers must fit 64 bits", ZARR_ERR_INVALID},
    {3, ONE("numcodecs.fixedscaleoffset", "\"offset\":1,\"scale\":1,\"dtype\":\"<f8\""),
     "float32", NULL, "fixedscaleoffset: dtype \"<f8\" is not the array's, float32",
     ZARR_ERR_INVALID},
    {3, ONE("numcodecs.quantize", "\"digits\":2"), "int32", NULL,
     "codec numcodecs.quantize does not take data type int32, only floats",
     ZARR_ERR_UNSUPPORTED},
    {3, ONE("numcodecs.quantize", "\"digits\":1000"), "float32", NULL,
     "quantize: digits is 1000, must be an integer from -300 to 300", ZARR_ERR_INVALID},
    {3, ONE("numcodecs.quantize", "\"dtype\":\"<f4\""), "float32", NULL,
     "quantize: digits is missing", ZARR_ERR_INVALID},
    {3, ONE("numcodecs.astype", "\"decode_dtype\":\"<f4\""), "float32", NULL,
     "astype: encode_dtype is nothing, must be a NumPy type", ZARR_ERR_INVALID},
    {3, ONE("numcodecs.astype", "\"encode_dtype\":\"<c4\""), "float32", NULL,
     "astype: encode_dtype is \"<c4\", must be bools", ZARR_ERR_UNSUPPORTED},
    {2,
     "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"fixedscaleoffset\",\"offset\":"
     "0,\"scale\":1}]",
     "float32", NULL, "fixedscaleoffset: dtype is nothing, must be a NumPy type",
     ZARR_ERR_INVALID},
};

static void misfits_are_named(void **state)
{
    static const uint64_t dims[] = {2, 3, 4, 0};

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        struct zr_chain_reps reps;
        zarr_error err = {0};
        const zarr_status st = resolve(bad[i].format, bad[i].codecs, bad[i].dtype, dims,
                                       bad[i].fill, &reps, &err);

        zr_chain_reps_deinit(&reps);
        if (st != bad[i].status || !strstr(err.message, bad[i].says))
            fail_msg("%s of %s: %d, \"%s\"", bad[i].codecs, bad[i].dtype, st,
                     err.message);
    }
}

static const struct {
    const char *codecs, *dtype, *fill;
    uint64_t dims[5], shape[5];
    const char *to, *to_fill;
} good[] = {
    {ONE("reshape", "\"shape\":[[0,1],[2],3]"),
     "int16",
     "7",
     {100, 50, 64, 3},
     {5000, 64, 3},
     "int16",
     "7"},
    {ONE("reshape", "\"shape\":[[0],-1,[3]]"),
     "int16",
     "7",
     {2, 5, 6, 3},
     {2, 30, 3},
     "int16",
     "7"},
    {ONE("reshape", "\"shape\":[1,[],-1]"),
     "int16",
     "7",
     {2, 5},
     {1, 1, 10},
     "int16",
     "7"},
    {ONE("zarrs.squeeze", ""), "int16", "7", {2, 1, 3, 1}, {2, 3}, "int16", "7"},
    {ONE("zarrs.squeeze", ""), "int16", "7", {1, 1}, {1}, "int16", "7"},
    {ONE("bitround", "\"keepbits\":1"), "float32", "0.1", {4}, {4}, "float32", "0.1"},
    {ONE("scale_offset", "\"offset\":5,\"scale\":0.1"),
     "float32",
     "15.0",
     {4},
     {4},
     "float32",
     "1.0"},
    {ONE("scale_offset", ""),
     "uint64",
     "18446744073709551615",
     {4},
     {4},
     "uint64",
     "18446744073709551615"},
    {ONE("cast_value", "\"data_type\":\"uint8\",\"rounding\":\"towards-zero\""),
     "float32",
     "17.0",
     {4},
     {4},
     "uint8",
     "17"},
    {ONE("cast_value", "\"data_type\":\"int8\",\"scalar_map\":{\"encode\":[[\"NaN\",-1],["
                       "\"NaN\",-2]],\"decode\":[[-1,\"NaN\"]]}"),
     "float64",
     "\"NaN\"",
     {4},
     {4},
     "int8",
     "-1"},
    {ONE("cast_value",
         "\"data_type\":\"uint8\",\"out_of_range\":\"error\",\"scalar_map\":"
         "{\"encode\":[[\"+Infinity\",255]],\"decode\":[[255,\"+Infinity\"]"
         "]}"),
     "float32",
     "\"Infinity\"",
     {4},
     {4},
     "uint8",
     "255"},
    {ONE("numcodecs.astype", "\"encode_dtype\":\"<i2\""),
     "float32",
     "3.7",
     {4},
     {4},
     "int16",
     "3"},
    {ONE("numcodecs.astype", "\"encode_dtype\":\"<M8[s]\""), /* the rest: the array's */
     "int64",
     "7",
     {4},
     {4},
     "numpy.datetime64[s]",
     "7"},
    {ONE("numcodecs.fixedscaleoffset", "\"offset\":1,\"scale\":2,\"astype\":\"u1\""),
     "float64",
     "3.0",
     {4},
     {4},
     "uint8",
     "3"},
};

static void representations(void **state)
{
    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(good); i++) {
        struct zr_chain_reps reps;
        zarr_error err = {0};
        char text[64];
        size_t n = 0;
        int32_t d = 0;

        if (resolve(3, good[i].codecs, good[i].dtype, good[i].dims, good[i].fill, &reps,
                    &err) != ZARR_OK)
            fail_msg("%s: %s", good[i].codecs, err.message);
        for (; good[i].shape[d]; d++)
            assert_int_equal(reps.rep[1].shape[d], good[i].shape[d]);
        assert_int_equal(reps.rep[1].ndim, d);
        assert_string_equal(zarr_dtype_name(reps.rep[1].dtype), good[i].to);
        assert_int_equal(zarr_dtype_print(reps.rep[1].dtype, reps.rep[1].fill, text,
                                          sizeof text, &n, NULL),
                         ZARR_OK);
        assert_string_equal(text, good[i].to_fill);
        zr_chain_reps_deinit(&reps);
    }
}

/* ---- single numbers ------------------------------------------------------ */

static const struct {
    const char *from;
    double value;
    const char *to;
    uint32_t rounding, range;
    enum zr_cast_result result;
    double got;
} casts[] = {
    {"float64", 2.5, "int8", ZR_ROUND_EVEN, 0, ZR_CAST_OK, 2},
    {"float64", 3.5, "int8", ZR_ROUND_EVEN, 0, ZR_CAST_OK, 4},
    {"float64", -2.5, "int8", ZR_ROUND_AWAY, 0, ZR_CAST_OK, -3},
    {"float64", -2.5, "int8", ZR_ROUND_ZERO, 0, ZR_CAST_OK, -2},
    {"float64", -2.5, "int8", ZR_ROUND_POSITIVE, 0, ZR_CAST_OK, -2},
    {"float64", -2.5, "int8", ZR_ROUND_NEGATIVE, 0, ZR_CAST_OK, -3},
    {"float64", 128, "int8", 0, ZR_RANGE_ERROR, ZR_CAST_RANGE, 0},
    {"float64", 128, "int8", 0, ZR_RANGE_CLAMP, ZR_CAST_OK, 127},
    {"float64", 128, "int8", 0, ZR_RANGE_WRAP, ZR_CAST_OK, -128},
    {"float64", 32769, "int16", 0, ZR_RANGE_WRAP, ZR_CAST_OK, -32767},
    {"float64", -32769, "int16", 0, ZR_RANGE_WRAP, ZR_CAST_OK, 32767},
    {"float64", 127.5, "int8", 0, ZR_RANGE_ERROR, ZR_CAST_RANGE, 0},
    {"float64", 1e300, "uint8", 0, ZR_RANGE_WRAP, ZR_CAST_OK, 0},
    {"float64", 65519, "float16", 0, 0, ZR_CAST_OK, 65504},
    {"float64", 65520, "float16", 0, 0, ZR_CAST_RANGE, 0},
    {"float64", 65535, "float16", ZR_ROUND_ZERO, 0, ZR_CAST_OK, 65504},
    {"float64", 1e-46, "float32", ZR_ROUND_POSITIVE, 0, ZR_CAST_OK,
     1.401298464324817e-45},
    {"float64", 1e-46, "float32", ZR_ROUND_EVEN, 0, ZR_CAST_OK, 0},
    {"float64", 448, "float8_e4m3fn", 0, 0, ZR_CAST_OK, 448},
    {"float64", 464, "float8_e4m3fn", 0, 0, ZR_CAST_OK, 448},
    {"float64", 465, "float8_e4m3fn", 0, 0, ZR_CAST_RANGE, 0},
    {"float64", 1000, "float8_e4m3fn", 0, ZR_RANGE_CLAMP, ZR_CAST_OK, 448},
    {"float64", 57344, "float8_e5m2", 0, 0, ZR_CAST_OK, 57344},
    {"float64", 240, "float8_e4m3fnuz", 0, 0, ZR_CAST_OK, 240},
    {"float64", 30, "float8_e4m3b11fnuz", 0, 0, ZR_CAST_OK, 30},
    {"float64", 15.5, "float8_e3m4", 0, 0, ZR_CAST_OK, 15.5},
    {"float64", 7, "float6_e2m3fn", 0, 0, ZR_CAST_OK, 7},
    {"float64", 30, "float6_e3m2fn", 0, ZR_RANGE_CLAMP, ZR_CAST_OK, 28},
    {"float64", 5, "float4_e2m1fn", 0, 0, ZR_CAST_OK, 4},
    {"float64", -5.1, "float4_e2m1fn", 0, 0, ZR_CAST_OK, -6},
    {"float64", 0.25, "float4_e2m1fn", 0, 0, ZR_CAST_OK, 0},
    {"float64", 0.25, "float4_e2m1fn", ZR_ROUND_AWAY, 0, ZR_CAST_OK, 0.5},
    {"float64", 3, "float8_e8m0fnu", ZR_ROUND_ZERO, 0, ZR_CAST_OK, 2},
    {"float64", 0, "float8_e8m0fnu", 0, 0, ZR_CAST_RANGE, 0},
    {"float64", -1, "float8_e8m0fnu", 0, ZR_RANGE_CLAMP, ZR_CAST_OK,
     5.877471754111438e-39},
    {"float64", 0x1.fp-128, "float8_e8m0fnu", 0, 0, ZR_CAST_OK, 0x1p-127},
    {"float64", 0x1.fp-128, "float8_e8m0fnu", ZR_ROUND_ZERO, 0, ZR_CAST_RANGE, 0},
    {"float64", 0x1p-128, "float8_e8m0fnu", 0, 0, ZR_CAST_RANGE, 0},
    {"float64", 3.3895313892515355e38, "bfloat16", 0, 0, ZR_CAST_OK,
     3.3895313892515355e38},
    {"float64", 1.00390625, "bfloat16", ZR_ROUND_EVEN, 0, ZR_CAST_OK, 1},
    {"float64", 1.00390625, "bfloat16", ZR_ROUND_AWAY, 0, ZR_CAST_OK, 1.0078125},
    {"float64", 7, "int4", 0, 0, ZR_CAST_OK, 7},
    {"float64", -9, "int4", 0, ZR_RANGE_WRAP, ZR_CAST_OK, 7},
    {"float64", -3, "int2", 0, ZR_RANGE_CLAMP, ZR_CAST_OK, -2},
    {"float64", 5, "uint2", 0, ZR_RANGE_WRAP, ZR_CAST_OK, 1},
};

static struct zr_number number(const char *name)
{
    const zarr_dtype *dtype = NULL;
    struct zr_number n;

    assert_int_equal(zr_dtype_find(&env.dtypes, name, &dtype, NULL, NULL), ZARR_OK);
    assert_true(zr_number_from_dtype(dtype, &n));
    return n;
}

static void single_casts(void **state)
{
    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(casts); i++) {
        const struct zr_number from = number(casts[i].from), to = number(casts[i].to);
        struct zr_scalar v =
            zr_scalar_from_bits(&from, zr_number_bits(&from, &casts[i].value));
        uint64_t bits = 0;

        if (zr_scalar_cast(&v, &to, casts[i].rounding, casts[i].range, &bits) !=
            casts[i].result)
            fail_msg("cast %zu of %g to %s", i, casts[i].value, casts[i].to);
        if (casts[i].result != ZR_CAST_OK)
            continue;
        v = zr_scalar_from_bits(&to, bits);
        if (zr_scalar_f64(&v) != casts[i].got) /* NOLINT */
            fail_msg("cast %zu of %g to %s: %.17g", i, casts[i].value, casts[i].to,
                     zr_scalar_f64(&v));
    }
}

/* Every value of every type of up to 16 bits survives a cast to float64 and back. */
static void casts_come_back(void **state)
{
    static const char *const names[] = {"int2",
                                        "int4",
                                        "int8",
                                        "int16",
                                        "uint2",
                                        "uint4",
                                        "uint8",
                                        "uint16",
                                        "float16",
                                        "bfloat16",
                                        "float8_e3m4",
                                        "float8_e4m3",
                                        "float8_e5m2",
                                        "float8_e4m3fn",
                                        "float8_e4m3b11fnuz",
                                        "float8_e5m2fnuz",
                                        "float8_e4m3fnuz",
                                        "float8_e8m0fnu",
                                        "float6_e2m3fn",
                                        "float6_e3m2fn",
                                        "float4_e2m1fn"};
    const struct zr_number wide = number("float64");

    ZR_UNUSED(state);
    for (size_t k = 0; k < ZR_COUNT(names); k++) {
        const struct zr_number n = number(names[k]);

        for (uint64_t bits = 0; bits < UINT64_C(1) << n.bits; bits++) {
            struct zr_scalar v = zr_scalar_from_bits(&n, bits);
            uint64_t there = 0, back = 0;
            uint8_t memory[8] = {0};

            assert_int_equal(zr_scalar_cast(&v, &wide, 0, 0, &there), ZR_CAST_OK);
            v = zr_scalar_from_bits(&wide, there);
            assert_int_equal(zr_scalar_cast(&v, &n, 0, 0, &back), ZR_CAST_OK);
            if (zr_number_key(&n, back) != zr_number_key(&n, bits))
                fail_msg("%s: %#x is %#x", names[k], (unsigned)bits, (unsigned)back);
            zr_number_put(&n, memory, bits);
            assert_int_equal(zr_number_bits(&n, memory), bits);
        }
    }
}

/* Floats that overflow an integer type: every machine gives NumPy's result on x86. */
static const struct {
    const char *type;
    double from;
    int64_t to;
} misfits[] = {
    {"<i4", NAN, INT32_MIN},
    {"<i4", INFINITY, INT32_MIN},
    {"<i4", -INFINITY, INT32_MIN},
    {"<i4", 3e9, INT32_MIN},
    {"<i4", -3e9, INT32_MIN},
    {"<i4", 2147483648.0, INT32_MIN},
    {"<i4", 2147483647.9, INT32_MAX},
    {"<i4", -2147483648.9, INT32_MIN},
    {"<i4", 1e20, INT32_MIN},
    {"|i1", NAN, 0},
    {"|i1", 3e9, 0},
    {"|i1", 300, 44},
    {"|i1", -129, 127},
    {"<i2", -INFINITY, 0},
    {"<i2", 3e9, 0},
    {"<i2", -40000, 25536},
    {"|u1", NAN, 0},
    {"|u1", -1, 255},
    {"<u2", 3e9, 0},
    {"<u2", -3e9, 0},
    {"<u2", -2, 65534},
    {"<i8", NAN, INT64_MIN},
    {"<i8", 1e20, INT64_MIN},
    {"<i8", -1e20, INT64_MIN},
    {"<i8", 3e9, 3000000000},
    {"<u8", NAN, INT64_MIN},
    {"<u8", -INFINITY, INT64_MIN},
    {"<u8", -1e20, INT64_MIN},
    {"<u8", INFINITY, 0},
    {"<u8", 1e20, 0},
    {"<u8", 18446744073709551616.0, 0},
    {"<u8", 9223372036854775808.0, INT64_MIN},
    {"<u8", -1, -1},
    {"<u4", 3e9, 3000000000},
    {"<u4", -1, 4294967295},
    {"|b1", NAN, 1},
};

static void floats_that_do_not_fit(void **state)
{
    const struct zr_number real = zr_number_make(ZARR_KIND_FLOAT, 8);

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(misfits); i++) {
        const struct zr_numpy_value v = {.d = misfits[i].from};
        struct zr_number to;
        uint64_t got;

        assert_true(zr_numpy_parse(misfits[i].type, &to));
        got = zr_numpy_convert(&real, &to, v).u;
        if (got != (uint64_t)misfits[i].to)
            fail_msg("%s of %g is %" PRId64 ", not %" PRId64, misfits[i].type,
                     misfits[i].from, (int64_t)got, misfits[i].to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misfits_are_named),      cmocka_unit_test(representations),
        cmocka_unit_test(single_casts),           cmocka_unit_test(casts_come_back),
        cmocka_unit_test(floats_that_do_not_fit),
    };

    return cmocka_run_group_tests(tests, open_env, close_env);
}
