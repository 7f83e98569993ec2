/*
 * dtype/numpy.c - NumPy's names of numbers, byte order included: "<f8", ">i2", "|u1",
 * "float32". A name without a byte order means little-endian, so that a store means the
 * same on every machine. This file also converts single elements between these types as
 * NumPy's astype() does, for numcodecs' filters.
 * Thread class: plain functions.
 */
#include "dtype/dtype_int.h"

#include <string.h>

static const char numpy_letters[] = "biufc"; /* from ZARR_KIND_BOOL on */

char zr_numpy_letter(const struct zr_number *n)
{
    return numpy_letters[n->kind - ZARR_KIND_BOOL];
}

bool zr_numpy_has(const struct zr_number *n)
{
    return n->kind && (n->real ? n->real <= &zr_floats[ZR_FLOATS_64] : n->bits >= 8);
}

bool zr_numpy_parse(const char *text, struct zr_number *out)
{
    static const struct {
        const char *name, *code;
    } names[] = {
        {"bool", "b1"},    {"int8", "i1"},        {"int16", "i2"},    {"int32", "i4"},
        {"int64", "i8"},   {"uint8", "u1"},       {"uint16", "u2"},   {"uint32", "u4"},
        {"uint64", "u8"},  {"float16", "f2"},     {"float32", "f4"},  {"float64", "f8"},
        {"half", "f2"},    {"single", "f4"},      {"double", "f8"},   {"float", "f8"},
        {"int", "i8"},     {"uint", "u8"},        {"?", "b1"},        {"complex64", "c8"},
        {"csingle", "c8"}, {"complex128", "c16"}, {"cdouble", "c16"}, {"complex", "c16"}};
    const char *code = text;
    char order = '=';

    if (!text)
        return false;
    for (size_t i = 0; i < ZR_COUNT(names); i++)
        if (zr_streq(names[i].name, text))
            code = names[i].code;
    if (*code == '<' || *code == '>' || *code == '=' || *code == '|')
        order = *code++;
    if (zr_streq(code, "c8") || zr_streq(code, "c16")) {
        *out = zr_number_make(ZARR_KIND_COMPLEX, code[1] == '8' ? 4 : 8);
    } else {
        if (strlen(code) != 2 || !strchr("biuf", code[0]) || !strchr("1248", code[1]) ||
            (code[0] == 'f' && code[1] == '1') || (code[0] == 'b' && code[1] != '1'))
            return false;
        *out = zr_number_make(
            ZARR_KIND_BOOL + (uint32_t)(strchr(numpy_letters, code[0]) - numpy_letters),
            (unsigned)(code[1] - '0'));
    }
    out->big = order == '>' && out->bytes > 1;
    return true;
}

bool zr_numpy_parse_time(const char *text, struct zr_number *out,
                         struct zr_numpy_unit *unit)
{
    static const char *const names[] = {"Y",  "M",  "W",  "D",  "h",  "m", "s",
                                        "ms", "us", "ns", "ps", "fs", "as"};
    const char *code = text, *name;
    size_t n = 0;

    if (!text)
        return false;
    if (strchr("<>=", *code) && *code)
        code++;
    n = strlen(code);
    if (n < 5 || (*code != 'M' && *code != 'm') || code[1] != '8' || code[2] != '[' ||
        code[n - 1] != ']' || n - 4 >= sizeof unit->text)
        return false;
    *unit = (struct zr_numpy_unit){.kind = *code};
    memcpy(unit->text, code + 3, n - 4);
    name = unit->text + strspn(unit->text, "0123456789");
    *out = zr_number_make(ZARR_KIND_INT, 8);
    out->big = *text == '>';
    for (size_t i = 0; i < ZR_COUNT(names); i++)
        if (zr_streq(names[i], name))
            return true;
    return false;
}

void zr_numpy_print(const struct zr_number *n, char out[ZR_NUMPY_NAME])
{
    const uint32_t bytes = zr_number_item_bytes(n);

    *out++ = bytes == 1 ? '|' : n->big ? '>' : '<';
    *out++ = zr_numpy_letter(n);
    if (bytes > 9)
        *out++ = '1';
    *out++ = (char)('0' + bytes % 10);
    *out = '\0';
}

/* ---- elements ---------------------------------------------------------------- */

uint64_t zr_numpy_wrap(const struct zr_number *n, uint64_t u)
{
    const unsigned spare = 64U - n->bits;

    if (n->kind == ZARR_KIND_BOOL)
        return u != 0;
    if (n->kind == ZARR_KIND_UINT)
        return u << spare >> spare;
    return (uint64_t)((int64_t)(u << spare) >> spare);
}

/* Converts to a whole number of that type, as C does if it fits. Other numbers give what
 * x86 gives: the lowest integer of 32 or 64 bits, and for uint64 0 if they are above the
 * range. NumPy uses 32 bits for all types up to int32. For uint32 its choice depends on
 * the number of elements; this function always uses 64 bits. zr_numpy_wrap() cuts the
 * result to the type's width. */
static uint64_t convert_to_whole(const struct zr_number *n, double d)
{
    const double two63 = 9223372036854775808.0;

    if (n->kind == ZARR_KIND_BOOL)
        return d != 0;
    if (n->bytes < 4 || (n->bytes == 4 && n->kind == ZARR_KIND_INT))
        return (uint64_t)(d > -2147483649.0 && d < 2147483648.0 ? (int64_t)d
                                                                : (int64_t)INT32_MIN);
    if (n->kind == ZARR_KIND_UINT && n->bytes == 8 && d >= two63)
        return d < 2 * two63 ? (uint64_t)d : 0;
    if (d >= -two63 && d < two63)
        return (uint64_t)(int64_t)d;
    return (uint64_t)INT64_MIN;
}

static const struct zr_number numpy_half = {.kind = ZARR_KIND_FLOAT,
                                            .bytes = 2,
                                            .bits = 16,
                                            .parts = 1,
                                            .real = &zr_floats[ZR_FLOATS_16]};
/* NaN are converted by their bits. NumPy's conversions from and to half keep as many bits
 * as fit, so a signalling NaN stays signalling. The processor's conversions make it
 * quiet. */
#define DOUBLE_INF   UINT64_C(0x7ff0000000000000)
#define DOUBLE_QUIET UINT64_C(0x0008000000000000)

static bool numpy_is_nan(uint64_t bits)
{
    return (bits & INT64_MAX) > DOUBLE_INF;
}

static uint64_t numpy_bits(double d)
{
    uint64_t bits;

    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static double numpy_double_from_bits(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

/* Convert a NaN between a double and a float of `bytes` bytes with a fraction of
 * `fraction` bits. Bits that do not fit are lost. A NaN that would become infinity gets
 * its lowest bit. */
static uint64_t numpy_nan_down(uint64_t bits, unsigned bytes, unsigned fraction)
{
    const uint64_t sign = bits >> 63 << (8 * bytes - 1);
    const uint64_t exponent = ((UINT64_C(1) << (8 * bytes - 1 - fraction)) - 1)
                              << fraction;
    const uint64_t kept = (bits & (DOUBLE_INF ^ INT64_MAX)) >> (52 - fraction);

    return sign | exponent | (kept ? kept : 1);
}

static double numpy_nan_up(uint64_t bits, unsigned bytes, unsigned fraction)
{
    const uint64_t kept = bits & ((UINT64_C(1) << fraction) - 1);

    return numpy_double_from_bits(bits >> (8 * bytes - 1) << 63 | DOUBLE_INF |
                                  kept << (52 - fraction));
}

static uint64_t numpy_half_bits(double d)
{
    uint64_t bits = numpy_bits(d);
    struct zr_scalar v;

    if (numpy_is_nan(bits))
        return numpy_nan_down(bits, 2, 10);
    v = zr_scalar_of_f64(d);
    (void)zr_scalar_cast(&v, &numpy_half, ZR_ROUND_EVEN, ZR_RANGE_CLAMP, &bits);
    return bits;
}

static double numpy_half_value(uint64_t bits)
{
    const struct zr_scalar v = zr_scalar_from_bits(&numpy_half, bits & 0xffff);

    if ((bits & 0x7fff) > 0x7c00)
        return numpy_nan_up(bits & 0xffff, 2, 10);
    return zr_scalar_f64(&v);
}

double zr_numpy_round(unsigned float_bytes, double d)
{
    if (float_bytes == 4)
        return (double)(float)d;
    return float_bytes == 2 ? numpy_half_value(numpy_half_bits(d)) : d;
}

struct zr_numpy_value zr_numpy_load(const struct zr_number *n, const void *p)
{
    struct zr_numpy_value v = {.u = zr_number_bits(n, p)};
    float f;

    if (!n->real) {
        v.u = zr_numpy_wrap(n, v.u);
    } else if (n->bytes == 8) {
        memcpy(&v.d, &v.u, sizeof v.d);
    } else if (n->bytes == 4) {
        const uint32_t bits = (uint32_t)v.u;

        memcpy(&f, &bits, sizeof f);
        v.d = (bits & INT32_MAX) > 0x7f800000 ? numpy_nan_up(bits, 4, 23) : (double)f;
    } else {
        v.d = numpy_half_value(v.u);
    }
    return v;
}

void zr_numpy_store(const struct zr_number *n, void *p, struct zr_numpy_value v)
{
    if (n->real && n->bytes == 8) {
        memcpy(&v.u, &v.d, sizeof v.u);
    } else if (n->real && n->bytes == 4) {
        const float f = (float)v.d;
        uint32_t bits;

        memcpy(&bits, &f, sizeof bits);
        v.u =
            numpy_is_nan(numpy_bits(v.d)) ? numpy_nan_down(numpy_bits(v.d), 4, 23) : bits;
    } else if (n->real) {
        v.u = numpy_half_bits(v.d);
    }
    zr_number_put(n, p, v.u);
}

/* Converts between floats of `from` and `to` bytes. */
static double numpy_convert_real(unsigned from, unsigned to, double d)
{
    const uint64_t bits = numpy_bits(d);

    if (from == to || (numpy_is_nan(bits) && from == 2))
        return d;
    if (numpy_is_nan(bits) && to > 2)
        d = numpy_double_from_bits(bits | DOUBLE_QUIET);
    return zr_numpy_round(to, d);
}

struct zr_numpy_value zr_numpy_convert(const struct zr_number *from,
                                       const struct zr_number *to,
                                       struct zr_numpy_value v)
{
    const bool real = from->real != NULL, sign = from->kind == ZARR_KIND_INT;

    if (!to->real)
        v.u = zr_numpy_wrap(to, real ? convert_to_whole(to, v.d) : v.u);
    else if (real)
        v.d = numpy_convert_real(from->bytes, to->bytes, v.d);
    else if (to->bytes == 8)
        v.d = sign ? (double)(int64_t)v.u : (double)v.u;
    else /* NumPy converts to half by way of float, which is exact in half's range */
        v.d =
            zr_numpy_round(to->bytes, (double)(sign ? (float)(int64_t)v.u : (float)v.u));
    return v;
}

/* Converts where one of the types is complex. A new imaginary part is 0. A real target
 * drops the imaginary part. A bool is true even if only the imaginary part is not 0. */
static void numpy_cast_complex(const struct zr_number *from, const struct zr_number *to,
                               const uint8_t *src, uint8_t *dst)
{
    const struct zr_number in = zr_number_part(from), out = zr_number_part(to);
    struct zr_numpy_value real = zr_numpy_load(&in, src), imaginary = {0};

    if (from->parts == 2)
        imaginary = zr_numpy_load(&in, src + in.bytes);
    if (to->kind == ZARR_KIND_BOOL && imaginary.d != 0) /* or NaN */
        real = imaginary;
    zr_numpy_store(&out, dst, zr_numpy_convert(&in, &out, real));
    if (to->parts == 2) {
        if (from->parts == 2)
            imaginary = zr_numpy_convert(&in, &out, imaginary);
        zr_numpy_store(&out, dst + out.bytes, imaginary);
    }
}

void zr_numpy_cast(const struct zr_number *from, const struct zr_number *to,
                   const void *src, void *dst)
{
    if (from->parts == 2 || to->parts == 2)
        numpy_cast_complex(from, to, src, dst);
    else
        zr_numpy_store(to, dst, zr_numpy_convert(from, to, zr_numpy_load(from, src)));
}

void zr_numpy_name(const zarr_dtype *dtype, uint32_t order, char out[ZR_NUMPY_NAME])
{
    struct zr_number n;

    out[0] = '\0';
    if (!zr_numpy_parse(zarr_dtype_v2(dtype), &n))
        return;
    n.big = n.bytes > 1 && order == ZARR_ORDER_BIG;
    zr_numpy_print(&n, out);
}

uint32_t zr_numpy_item_bytes(const char *name)
{
    struct zr_number n;
    struct zr_numpy_unit unit;

    return zr_numpy_parse(name, &n) || zr_numpy_parse_time(name, &n, &unit)
               ? zr_number_item_bytes(&n)
               : 0;
}
