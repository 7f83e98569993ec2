/*
 * elements.c - elements of arrays as numbers: what plots draw and comparisons
 * with a tolerance subtract. Every numeric type becomes a pair of doubles; a
 * 64-bit integer loses its last bits here, so whoever needs them compares the
 * bytes. Elements are native-endian, as the library hands them out.
 */
#include "work.h"

#include <math.h>
#include <string.h>

#define READER(name, type)                                                               \
    static void name(const void *element, double out[2])                                 \
    {                                                                                    \
        type value;                                                                      \
                                                                                         \
        memcpy(&value, element, sizeof value);                                           \
        out[0] = (double)value;                                                          \
        out[1] = 0;                                                                      \
    }

READER(read_i8, int8_t)
READER(read_i16, int16_t)
READER(read_i32, int32_t)
READER(read_i64, int64_t)
READER(read_u8, uint8_t)
READER(read_u16, uint16_t)
READER(read_u32, uint32_t)
READER(read_u64, uint64_t)
READER(read_f32, float)
READER(read_f64, double)

static void read_bool(const void *element, double out[2])
{
    out[0] = *(const unsigned char *)element != 0;
    out[1] = 0;
}

/* IEEE binary16: sign, 5 bits of exponent (bias 15), 10 bits of fraction. */
static void read_f16(const void *element, double out[2])
{
    uint16_t bits;
    int exponent;
    double fraction;

    memcpy(&bits, element, sizeof bits);
    exponent = bits >> 10 & 31;
    fraction = bits & 0x3ff;
    if (exponent == 31)
        out[0] = fraction > 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        out[0] = ldexp(fraction, -24);
    else
        out[0] = ldexp(fraction + 1024, exponent - 25);
    if (bits & 0x8000)
        out[0] = -out[0];
    out[1] = 0;
}

static void read_c64(const void *element, double out[2])
{
    float parts[2];

    memcpy(parts, element, sizeof parts);
    out[0] = (double)parts[0];
    out[1] = (double)parts[1];
}

static void read_c128(const void *element, double out[2])
{
    memcpy(out, element, 2 * sizeof *out);
}

static const struct {
    uint32_t kind;
    uint64_t bytes;
    cli_number_fn fn;
} readers[] = {
    {ZARR_KIND_BOOL, 1, read_bool},    {ZARR_KIND_INT, 1, read_i8},
    {ZARR_KIND_INT, 2, read_i16},      {ZARR_KIND_INT, 4, read_i32},
    {ZARR_KIND_INT, 8, read_i64},      {ZARR_KIND_UINT, 1, read_u8},
    {ZARR_KIND_UINT, 2, read_u16},     {ZARR_KIND_UINT, 4, read_u32},
    {ZARR_KIND_UINT, 8, read_u64},     {ZARR_KIND_FLOAT, 2, read_f16},
    {ZARR_KIND_FLOAT, 4, read_f32},    {ZARR_KIND_FLOAT, 8, read_f64},
    {ZARR_KIND_COMPLEX, 8, read_c64},  {ZARR_KIND_COMPLEX, 16, read_c128},
    {ZARR_KIND_DATETIME, 8, read_i64}, {ZARR_KIND_TIMEDELTA, 8, read_i64},
};

cli_number_fn cli_number_of(const zarr_dtype *dtype)
{
    const uint32_t kind = zarr_dtype_kind(dtype);
    const uint64_t bytes = zarr_dtype_item_bytes(dtype);
    const char *name = zarr_dtype_name(dtype);

    if (name && strcmp(name, "bfloat16") == 0)
        return NULL; /* as long as a float16, but something else */
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        if (readers[i].kind == kind && readers[i].bytes == bytes)
            return readers[i].fn;
    return NULL;
}
