/*
 * dtype/number.c - one number from one data type to another, exactly: every value of
 * every type is sign * c * 2^q with 64 bits of c, so a cast is one shift, one rounding
 * and one comparison with the target's range, whatever the two types are. This is what
 * fill values are converted with, and what impl's loops fall back to and are tested
 * against. What a type is made of stands in one table.
 * Thread class: plain functions.
 */
#include "dtype/dtype_int.h"

#include <string.h>

#define INTEGER(text, sign, width)                                                       \
    {                                                                                    \
        text,                                                                            \
        {                                                                                \
            .kind = (sign) ? ZARR_KIND_INT : ZARR_KIND_UINT,                             \
            .bytes = (width) < 8 ? 1 : (width) / 8, .bits = width, .parts = 1,           \
        }                                                                                \
    }
#define FLOAT(text, size, width, fraction, offset, flavour)                              \
    {                                                                                    \
        text,                                                                            \
        {                                                                                \
            .kind = ZARR_KIND_FLOAT, .bytes = size, .bits = width, .parts = 1,           \
            .fraction_bits = fraction, .special = flavour, .bias = offset,               \
        }                                                                                \
    }
#define NUMBER_PAIR(text, size, width, fraction, offset)                                 \
    {                                                                                    \
        text,                                                                            \
        {                                                                                \
            .kind = ZARR_KIND_FLOAT, .bytes = size, .bits = width, .parts = 2,           \
            .fraction_bits = fraction, .special = ZR_FLOAT_IEEE, .bias = offset,         \
        }                                                                                \
    }

static const struct {
    const char *name;
    struct zr_number number;
} number_table[] = {
    INTEGER("int2", true, 2),
    INTEGER("int4", true, 4),
    INTEGER("int8", true, 8),
    INTEGER("int16", true, 16),
    INTEGER("int32", true, 32),
    INTEGER("int64", true, 64),
    INTEGER("uint2", false, 2),
    INTEGER("uint4", false, 4),
    INTEGER("uint8", false, 8),
    INTEGER("uint16", false, 16),
    INTEGER("uint32", false, 32),
    INTEGER("uint64", false, 64),
    FLOAT("float16", 2, 16, 10, 15, ZR_FLOAT_IEEE),
    FLOAT("float32", 4, 32, 23, 127, ZR_FLOAT_IEEE),
    FLOAT("float64", 8, 64, 52, 1023, ZR_FLOAT_IEEE),
    FLOAT("bfloat16", 2, 16, 7, 127, ZR_FLOAT_IEEE),
    FLOAT("float8_e3m4", 1, 8, 4, 3, ZR_FLOAT_IEEE),
    FLOAT("float8_e4m3", 1, 8, 3, 7, ZR_FLOAT_IEEE),
    FLOAT("float8_e5m2", 1, 8, 2, 15, ZR_FLOAT_IEEE),
    FLOAT("float8_e4m3fn", 1, 8, 3, 7, ZR_FLOAT_NAN_ONES),
    FLOAT("float8_e4m3b11fnuz", 1, 8, 3, 11, ZR_FLOAT_NAN_MINUS_ZERO),
    FLOAT("float8_e4m3fnuz", 1, 8, 3, 8, ZR_FLOAT_NAN_MINUS_ZERO),
    FLOAT("float8_e5m2fnuz", 1, 8, 2, 16, ZR_FLOAT_NAN_MINUS_ZERO),
    FLOAT("float8_e8m0fnu", 1, 8, 0, 127, ZR_FLOAT_POWERS),
    FLOAT("float6_e2m3fn", 1, 6, 3, 1, ZR_FLOAT_FINITE),
    FLOAT("float6_e3m2fn", 1, 6, 2, 3, ZR_FLOAT_FINITE),
    FLOAT("float4_e2m1fn", 1, 4, 1, 1, ZR_FLOAT_FINITE),
    NUMBER_PAIR("complex64", 4, 32, 23, 127),
    NUMBER_PAIR("complex128", 8, 64, 52, 1023),
    NUMBER_PAIR("complex_float16", 2, 16, 10, 15),
    NUMBER_PAIR("complex_bfloat16", 2, 16, 7, 127),
    NUMBER_PAIR("complex_float32", 4, 32, 23, 127),
    NUMBER_PAIR("complex_float64", 8, 64, 52, 1023),
};

bool zr_number_of(const zarr_dtype *dtype, struct zr_number *out)
{
    const char *name = zarr_dtype_name(dtype);

    for (size_t i = 0; name && i < ZR_COUNT(number_table); i++)
        if (zr_streq(number_table[i].name, name) &&
            zarr_dtype_item_bytes(dtype) ==
                (uint64_t)number_table[i].number.bytes * number_table[i].number.parts) {
            *out = number_table[i].number;
            return true;
        }
    return false;
}

const char *zr_dtype_label(const zarr_dtype *dtype)
{
    const char *name = zarr_dtype_name(dtype);

    if (!name)
        name = zarr_dtype_v2(dtype);
    return name ? name : "?";
}

const char *zr_dtype_fill_text(const zarr_dtype *dtype, const void *fill, char *text,
                               size_t cap)
{
    size_t n = 0;

    if (zarr_dtype_print(dtype, fill, text, cap, &n, NULL) != ZARR_OK)
        text[0] = '\0';
    return text;
}

/* ---- bits in memory --------------------------------------------------------------- */

uint64_t zr_number_bits(const struct zr_number *n, const void *p)
{
    uint64_t bits = 0;
    uint16_t two;
    uint32_t four;

    if (n->bytes == 1) {
        bits = *(const uint8_t *)p;
    } else if (n->bytes == 2) {
        memcpy(&two, p, 2);
        bits = two;
    } else if (n->bytes == 4) {
        memcpy(&four, p, 4);
        bits = four;
    } else {
        memcpy(&bits, p, 8);
    }
    return bits & UINT64_MAX >> (64 - n->bits);
}

void zr_number_put(const struct zr_number *n, void *p, uint64_t bits)
{
    uint16_t two;
    uint32_t four;

    /* Integers of less than a byte fill it with their sign, all others with zeros. */
    if (n->kind == ZARR_KIND_INT && n->bits < 8 && (bits >> (n->bits - 1) & 1))
        bits |= UINT64_MAX << n->bits;
    two = (uint16_t)bits;
    four = (uint32_t)bits;
    if (n->bytes == 1)
        *(uint8_t *)p = (uint8_t)bits;
    else if (n->bytes == 2)
        memcpy(p, &two, 2);
    else if (n->bytes == 4)
        memcpy(p, &four, 4);
    else
        memcpy(p, &bits, 8);
}

/* ---- what is special about a format --------------------------------------------------
 */

static uint64_t float_sign(const struct zr_number *n)
{
    return n->special == ZR_FLOAT_POWERS ? 0 : UINT64_C(1) << (n->bits - 1);
}

/* The magnitude bits of infinity; what lies above is NaN. IEEE only. */
static uint64_t float_infinity(const struct zr_number *n)
{
    return (float_sign(n) - 1) & UINT64_MAX << n->fraction_bits;
}

static uint64_t float_largest(const struct zr_number *n)
{
    if (n->special == ZR_FLOAT_IEEE)
        return float_infinity(n) - 1;
    if (n->special == ZR_FLOAT_POWERS)
        return 0xfe;
    return float_sign(n) - (n->special == ZR_FLOAT_NAN_ONES ? 2 : 1);
}

static bool float_is_nan(const struct zr_number *n, uint64_t bits)
{
    const uint64_t magnitude = bits & (float_sign(n) - 1);

    if (n->special == ZR_FLOAT_IEEE)
        return magnitude > float_infinity(n);
    if (n->special == ZR_FLOAT_NAN_ONES)
        return magnitude == float_sign(n) - 1;
    if (n->special == ZR_FLOAT_NAN_MINUS_ZERO)
        return bits == float_sign(n);
    return n->special == ZR_FLOAT_POWERS && bits == 0xff;
}

/* ---- out of a type -------------------------------------------------------------------
 */

static struct zr_scalar scalar_of_float(const struct zr_number *n, uint64_t bits)
{
    const uint64_t hidden = UINT64_C(1) << n->fraction_bits;
    const uint64_t magnitude = bits & (float_sign(n) - 1);
    const uint64_t exponent = magnitude >> n->fraction_bits;
    struct zr_scalar v = {.minus = (bits & float_sign(n)) != 0};

    if (float_is_nan(n, bits)) {
        v.kind = ZR_SCALAR_NAN;
        if (n->special == ZR_FLOAT_IEEE) /* the payload, from the top */
            v.c = (magnitude & (hidden - 1)) << (64 - n->fraction_bits);
        return v;
    }
    if (n->special == ZR_FLOAT_IEEE && magnitude == float_infinity(n)) {
        v.kind = ZR_SCALAR_INFINITY;
        return v;
    }
    if (n->special == ZR_FLOAT_POWERS) {
        v.c = 1;
        v.q = (int32_t)bits - n->bias;
        return v;
    }
    v.c = magnitude & (hidden - 1);
    v.c |= exponent ? hidden : 0;
    v.q = (int32_t)(exponent ? exponent : 1) - n->bias - n->fraction_bits;
    return v;
}

struct zr_scalar zr_scalar_of(const struct zr_number *n, uint64_t bits)
{
    struct zr_scalar v = {.c = bits};

    if (n->kind == ZARR_KIND_FLOAT)
        return scalar_of_float(n, bits);
    if (n->kind == ZARR_KIND_INT && (bits >> (n->bits - 1) & 1)) {
        v.minus = true;
        v.c = (~bits + 1) & UINT64_MAX >> (64 - n->bits);
    }
    return v;
}

/* ---- into a type ---------------------------------------------------------------------
 */

/* c / 2^shift (shift >= 1), rounded; `even`: the last digit kept is. */
static uint64_t round_shift(const struct zr_scalar *v, uint32_t shift, uint32_t rounding,
                            bool odd_code, bool code_parity)
{
    const uint64_t kept = shift < 64 ? v->c >> shift : 0;
    const uint64_t rest = shift < 64 ? v->c & ((UINT64_C(1) << shift) - 1) : v->c;
    const uint64_t half = shift <= 64 ? UINT64_C(1) << (shift - 1) : 0; /* 0: over 2^64 */
    const bool odd = code_parity ? odd_code : (kept & 1) != 0;
    bool up = false;

    if (rest == 0)
        return kept;
    switch (rounding) {
    case ZR_ROUND_ZERO:
        break;
    case ZR_ROUND_POSITIVE:
        up = !v->minus;
        break;
    case ZR_ROUND_NEGATIVE:
        up = v->minus;
        break;
    case ZR_ROUND_AWAY:
        up = half && rest >= half;
        break;
    default:
        up = half && (rest > half || (rest == half && odd));
        break;
    }
    return kept + up;
}

/* The magnitude as an integer; *huge: it has more than 64 bits. */
static uint64_t cast_magnitude(const struct zr_scalar *v, uint32_t rounding, bool *huge)
{
    if (v->q < 0)
        return round_shift(v, (uint32_t)-v->q, rounding, false, false);
    if (v->q == 0)
        return v->c;
    *huge = v->c && (v->q >= 64 || v->c >> (64 - v->q));
    return v->q < 64 ? v->c << v->q : 0;
}

static enum zr_cast_result cast_to_integer(const struct zr_scalar *v,
                                           const struct zr_number *to, uint32_t rounding,
                                           uint32_t out_of_range, uint64_t *bits)
{
    const uint64_t mask = UINT64_MAX >> (64 - to->bits);
    const bool sign = to->kind == ZARR_KIND_INT;
    const uint64_t most = sign ? mask >> 1 : mask, least = sign ? (mask >> 1) + 1 : 0;
    bool huge = false;
    uint64_t c = 0;

    if (v->kind != ZR_SCALAR_FINITE)
        return v->kind == ZR_SCALAR_NAN ? ZR_CAST_NAN : ZR_CAST_INFINITY;
    c = cast_magnitude(v, rounding, &huge);
    if (huge || c > (v->minus ? least : most)) {
        if (out_of_range == ZR_RANGE_CLAMP)
            *bits = v->minus ? least & mask : most;
        else
            *bits = (v->minus ? ~c + 1 : c) & mask;
        return out_of_range == ZR_RANGE_ERROR ? ZR_CAST_RANGE : ZR_CAST_OK;
    }
    *bits = (v->minus ? ~c + 1 : c) & mask;
    return ZR_CAST_OK;
}

static enum zr_cast_result cast_special(const struct zr_scalar *v,
                                        const struct zr_number *to, uint64_t *bits)
{
    const uint64_t sign = v->minus ? float_sign(to) : 0;

    if (v->kind == ZR_SCALAR_INFINITY) {
        if (to->special != ZR_FLOAT_IEEE)
            return ZR_CAST_INFINITY;
        *bits = float_infinity(to) | sign;
        return ZR_CAST_OK;
    }
    switch (to->special) {
    case ZR_FLOAT_IEEE:
        *bits = float_infinity(to) | UINT64_C(1) << (to->fraction_bits - 1) |
                v->c >> (64 - to->fraction_bits) | sign;
        break;
    case ZR_FLOAT_NAN_ONES:
        *bits = float_sign(to) - 1;
        break;
    case ZR_FLOAT_NAN_MINUS_ZERO:
        *bits = float_sign(to);
        break;
    case ZR_FLOAT_POWERS:
        *bits = 0xff;
        break;
    default:
        return ZR_CAST_NAN;
    }
    return ZR_CAST_OK;
}

/* Beyond the largest number: infinity where there is one, else the largest. */
static enum zr_cast_result cast_clamp(const struct zr_scalar *v,
                                      const struct zr_number *to, uint32_t out_of_range,
                                      uint64_t *bits)
{
    if (out_of_range != ZR_RANGE_CLAMP)
        return ZR_CAST_RANGE;
    *bits = to->special == ZR_FLOAT_IEEE ? float_infinity(to) : float_largest(to);
    *bits |= v->minus ? float_sign(to) : 0;
    return ZR_CAST_OK;
}

static int bit_length(uint64_t c)
{
    int n = 0;

    for (int step = 32; step; step /= 2)
        if (c >> step) {
            c >>= step;
            n += step;
        }
    return n + (c != 0);
}

/* Powers of two have no zero, no sign and nothing below the least. */
static enum zr_cast_result cast_to_power(const struct zr_scalar *v,
                                         const struct zr_number *to, uint32_t rounding,
                                         uint32_t out_of_range, uint64_t *bits)
{
    const int top = bit_length(v->c) - 1;
    int code = v->q + top + to->bias;

    if (top > 0)
        code += round_shift(v, (uint32_t)top, rounding, (code & 1) != 0, true) > 1;
    if (v->minus || !v->c || code < 0) {
        *bits = 0;
        return out_of_range == ZR_RANGE_CLAMP ? ZR_CAST_OK : ZR_CAST_RANGE;
    }
    if (code > 0xfe)
        return cast_clamp(v, to, out_of_range, bits);
    *bits = (uint64_t)code;
    return ZR_CAST_OK;
}

static enum zr_cast_result cast_to_float(const struct zr_scalar *v,
                                         const struct zr_number *to, uint32_t rounding,
                                         uint32_t out_of_range, uint64_t *bits)
{
    const int least = 1 - to->bias; /* exponent of the least normal number */
    const int exponent = v->q + bit_length(v->c) - 1;
    const int unit = ZR_MAX(exponent, least) - to->fraction_bits;
    const int shift = unit - v->q;
    uint64_t c;

    if (v->kind != ZR_SCALAR_FINITE)
        return cast_special(v, to, bits);
    if (to->special == ZR_FLOAT_POWERS)
        return cast_to_power(v, to, rounding, out_of_range, bits);
    *bits = 0;
    if (v->c) {
        c = shift > 0 ? round_shift(v, (uint32_t)shift, rounding, false, false)
                      : v->c << -shift;
        /* The hidden bit adds one to the exponent field, a carry another: both wanted. */
        if (exponent > least)
            c += (uint64_t)(exponent - least) << to->fraction_bits;
        if (c > float_largest(to))
            return cast_clamp(v, to, out_of_range, bits);
        *bits = c;
    }
    if (v->minus && (*bits || to->special != ZR_FLOAT_NAN_MINUS_ZERO))
        *bits |= float_sign(to);
    return ZR_CAST_OK;
}

enum zr_cast_result zr_scalar_cast(const struct zr_scalar *v, const struct zr_number *to,
                                   uint32_t rounding, uint32_t out_of_range,
                                   uint64_t *bits)
{
    return (to->kind == ZARR_KIND_FLOAT ? cast_to_float : cast_to_integer)(
        v, to, rounding, out_of_range, bits);
}

double zr_scalar_f64(const struct zr_scalar *v)
{
    static const struct zr_number f64 = {.kind = ZARR_KIND_FLOAT,
                                         .bytes = 8,
                                         .bits = 64,
                                         .parts = 1,
                                         .fraction_bits = 52,
                                         .special = ZR_FLOAT_IEEE,
                                         .bias = 1023};
    uint64_t bits = 0;
    double d;

    (void)zr_scalar_cast(v, &f64, ZR_ROUND_EVEN, ZR_RANGE_CLAMP, &bits);
    memcpy(&d, &bits, sizeof d);
    return d;
}
