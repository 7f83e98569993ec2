/*
 * dtype/number.c - converts one number between data types exactly. Every value of every
 * type is sign * c * 2^q with 64 bits of c, so any cast is one shift, one rounding and
 * one comparison with the target's range. Fill values are converted by this code. The
 * loops in codecs/cast fall back to it and are tested against it. zr_floats describes the
 * float formats.
 * Thread class: plain functions.
 */
#include "dtype/dtype_int.h"

#include <stdio.h>
#include <string.h>

/* Whether this machine stores numbers of so many bytes with the most significant byte
 * first. */
static bool number_is_big(unsigned bytes)
{
    return bytes > 1 && !ZR_HOST_IS_LITTLE;
}

/* Takes core types only: in a plug-in's type the same bits may mean other numbers. */
static bool integer_from_dtype(const zarr_dtype *dtype, struct zr_number *out)
{
    const uint32_t kind = zarr_dtype_kind(dtype);
    const uint64_t bits = zarr_dtype_item_bits(dtype);
    char name[16];

    if ((kind != ZARR_KIND_INT && kind != ZARR_KIND_UINT) || bits > 64)
        return false;
    (void)snprintf(name, sizeof name, "%sint%u", kind == ZARR_KIND_INT ? "" : "u",
                   (unsigned)bits);
    *out = (struct zr_number){.kind = (uint8_t)kind,
                              .bytes = (uint8_t)zarr_dtype_item_bytes(dtype),
                              .bits = (uint8_t)bits,
                              .parts = 1};
    out->big = number_is_big(out->bytes);
    return zr_streq(zarr_dtype_name(dtype), name);
}

/* Leaves out complex numbers with parts of less than 16 bits: no codec computes with
 * them. */
static bool real_from_dtype(const zarr_dtype *dtype, struct zr_number *out)
{
    const struct zr_float *f = zr_dtype_float(dtype);
    const bool pair = zarr_dtype_kind(dtype) == ZARR_KIND_COMPLEX;

    if (!f || (pair && f->bytes < 2))
        return false;
    *out = (struct zr_number){.kind = pair ? ZARR_KIND_COMPLEX : ZARR_KIND_FLOAT,
                              .bytes = f->bytes,
                              .bits = f->bits,
                              .parts = pair ? 2 : 1,
                              .big = number_is_big(f->bytes),
                              .real = f};
    return true;
}

bool zr_number_from_dtype(const zarr_dtype *dtype, struct zr_number *out)
{
    return integer_from_dtype(dtype, out) || real_from_dtype(dtype, out);
}

struct zr_number zr_number_make(uint32_t kind, unsigned bytes)
{
    struct zr_number n = {.kind = (uint8_t)kind,
                          .bytes = (uint8_t)bytes,
                          .bits = (uint8_t)(8 * bytes),
                          .parts = kind == ZARR_KIND_COMPLEX ? 2 : 1,
                          .big = number_is_big(bytes)};

    if (kind == ZARR_KIND_FLOAT || kind == ZARR_KIND_COMPLEX)
        n.real = &zr_floats[bytes == 2   ? ZR_FLOATS_16
                            : bytes == 4 ? ZR_FLOATS_32
                                         : ZR_FLOATS_64];
    return n;
}

struct zr_number zr_number_part(const struct zr_number *n)
{
    struct zr_number part = *n;

    if (n->kind == ZARR_KIND_COMPLEX)
        part.kind = ZARR_KIND_FLOAT;
    part.parts = 1;
    return part;
}

bool zr_number_is_swapped(const struct zr_number *n)
{
    return n->bytes > 1 && n->big == ZR_HOST_IS_LITTLE;
}

bool zr_number_is_ieee(const struct zr_number *n)
{
    return n->real && n->real->infinity;
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
    uint8_t turned[8];

    if (zr_number_is_swapped(n)) {
        zr_byteswap(turned, p, 1, n->bytes);
        p = turned;
    }
    return zr_load_low(p, n->bytes) & UINT64_MAX >> (64 - n->bits);
}

void zr_number_put(const struct zr_number *n, void *p, uint64_t bits)
{
    /* Signed integers of less than a byte repeat their sign in it. All other types have
     * zeros there. */
    if (n->kind == ZARR_KIND_INT && n->bits < 8 && (bits >> (n->bits - 1) & 1))
        bits |= UINT64_MAX << n->bits;
    zr_store_low(p, bits, n->bytes);
    if (zr_number_is_swapped(n))
        zr_byteswap(p, p, 1, n->bytes);
}

/* ---- from a type ---------------------------------------------------------------- */

static struct zr_scalar scalar_from_float(const struct zr_float *f, uint64_t bits)
{
    const uint64_t hidden = UINT64_C(1) << f->fraction_bits;
    const uint64_t magnitude = bits & ~f->sign;
    const uint64_t exponent = magnitude >> f->fraction_bits;
    struct zr_scalar v = {.minus = (bits & f->sign) != 0};

    if (zr_float_is_nan(f, bits)) {
        v.kind = ZR_SCALAR_NAN;
        if (f->infinity) /* the payload, left-aligned */
            v.c = (magnitude & (hidden - 1)) << (64 - f->fraction_bits);
        return v;
    }
    if (f->infinity && magnitude == f->infinity) {
        v.kind = ZR_SCALAR_INFINITY;
        return v;
    }
    if (!f->sign) { /* a power of two */
        v.c = 1;
        v.q = (int32_t)bits - f->bias;
        return v;
    }
    v.c = magnitude & (hidden - 1);
    v.c |= exponent ? hidden : 0;
    v.q = (int32_t)(exponent ? exponent : 1) - f->bias - f->fraction_bits;
    return v;
}

struct zr_scalar zr_scalar_from_bits(const struct zr_number *n, uint64_t bits)
{
    struct zr_scalar v = {.c = bits};

    if (n->real)
        return scalar_from_float(n->real, bits);
    if (n->kind == ZARR_KIND_INT && (bits >> (n->bits - 1) & 1)) {
        v.minus = true;
        v.c = (~bits + 1) & UINT64_MAX >> (64 - n->bits);
    }
    return v;
}

/* ---- to a type ------------------------------------------------------------------ */

/* Rounds c / 2^shift (shift >= 1). A tie goes to even: by the last digit kept, or by
 * odd_code if code_parity is set. */
static uint64_t round_shift(const struct zr_scalar *v, uint32_t shift, uint32_t rounding,
                            bool odd_code, bool code_parity)
{
    const uint64_t kept = shift < 64 ? v->c >> shift : 0;
    const uint64_t rest = shift < 64 ? v->c & ((UINT64_C(1) << shift) - 1) : v->c;
    const uint64_t half = shift <= 64 ? UINT64_C(1) << (shift - 1) : 0; /* 0: above c */
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

/* Gives the magnitude as an integer. *huge: it has more than 64 bits. */
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
                                        const struct zr_float *to, uint64_t *bits)
{
    const uint64_t sign = v->minus ? to->sign : 0;

    if (v->kind == ZR_SCALAR_INFINITY) {
        *bits = to->infinity | sign;
        return to->infinity ? ZR_CAST_OK : ZR_CAST_INFINITY;
    }
    if (to->infinity)
        *bits = to->nan | v->c >> (64 - to->fraction_bits) | sign;
    else
        *bits = to->nan;
    return to->nan ? ZR_CAST_OK : ZR_CAST_NAN;
}

/* Gives the result beyond the largest number: infinity if the type has it, else the
 * largest. */
static enum zr_cast_result cast_clamp(const struct zr_scalar *v,
                                      const struct zr_float *to, uint32_t out_of_range,
                                      uint64_t *bits)
{
    if (out_of_range != ZR_RANGE_CLAMP)
        return ZR_CAST_RANGE;
    *bits = to->infinity ? to->infinity : to->largest;
    *bits |= v->minus ? to->sign : 0;
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

/* Casts to a format of powers of two, which has no zero, no sign and no number below its
 * smallest. */
static enum zr_cast_result cast_to_power(const struct zr_scalar *v,
                                         const struct zr_float *to, uint32_t rounding,
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
                                         const struct zr_float *to, uint32_t rounding,
                                         uint32_t out_of_range, uint64_t *bits)
{
    const int least = 1 - to->bias; /* exponent of the least normal number */
    const int exponent = v->q + bit_length(v->c) - 1;
    const int unit = ZR_MAX(exponent, least) - to->fraction_bits;
    const int shift = unit - v->q;
    uint64_t c;

    if (v->kind != ZR_SCALAR_FINITE)
        return cast_special(v, to, bits);
    if (!to->sign)
        return cast_to_power(v, to, rounding, out_of_range, bits);
    *bits = 0;
    if (v->c) {
        c = shift > 0 ? round_shift(v, (uint32_t)shift, rounding, false, false)
                      : v->c << -shift;
        /* The hidden bit adds one to the exponent field, a carry another: both wanted. */
        if (exponent > least)
            c += (uint64_t)(exponent - least) << to->fraction_bits;
        if (c > to->largest)
            return cast_clamp(v, to, out_of_range, bits);
        *bits = c;
    }
    if (v->minus && (*bits || to->nan != to->sign)) /* not if -0 would be NaN */
        *bits |= to->sign;
    return ZR_CAST_OK;
}

enum zr_cast_result zr_scalar_cast(const struct zr_scalar *v, const struct zr_number *to,
                                   uint32_t rounding, uint32_t out_of_range,
                                   uint64_t *bits)
{
    return to->real ? cast_to_float(v, to->real, rounding, out_of_range, bits)
                    : cast_to_integer(v, to, rounding, out_of_range, bits);
}

/* The exponent of the least positive number. */
static int float_least(const struct zr_float *f)
{
    return f->sign ? 1 - f->bias - f->fraction_bits : -f->bias;
}

static bool float_holds_float(const struct zr_float *to, const struct zr_float *from)
{
    if (to == from)
        return true;
    if (!to->sign || (from->infinity && !to->infinity) || (from->nan && !to->nan))
        return false;
    if (to->nan == to->sign && from->sign && from->nan != from->sign)
        return false; /* it has no -0 */
    return to->fraction_bits >= from->fraction_bits &&
           float_least(to) <= float_least(from) &&
           zr_float_to_f64(to, to->largest) >= zr_float_to_f64(from, from->largest);
}

/* bits: how many the largest magnitude has, less the one of the lowest number of a signed
 * type. */
static bool float_holds_integer(const struct zr_float *to, unsigned bits, bool sign)
{
    const uint64_t most = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;

    return to->sign && bits <= to->fraction_bits + 1U && float_least(to) <= 0 &&
           zr_float_to_f64(to, to->largest) >= (double)most + sign;
}

bool zr_number_holds(const struct zr_number *to, const struct zr_number *from)
{
    const bool sign = from->kind == ZARR_KIND_INT;
    const unsigned bits = from->bits - (unsigned)sign;

    if (from->real)
        return to->real && float_holds_float(to->real, from->real);
    if (to->real)
        return float_holds_integer(to->real, bits, sign);
    if (to->kind == ZARR_KIND_UINT)
        return !sign && bits <= to->bits;
    return bits <= to->bits - 1U;
}

struct zr_scalar zr_scalar_of_f64(double d)
{
    uint64_t bits;

    memcpy(&bits, &d, sizeof bits);
    return scalar_from_float(&zr_floats[ZR_FLOATS_64], bits);
}

double zr_scalar_f64(const struct zr_scalar *v)
{
    uint64_t bits = 0;
    double d;

    (void)cast_to_float(v, &zr_floats[ZR_FLOATS_64], ZR_ROUND_EVEN, ZR_RANGE_CLAMP,
                        &bits);
    memcpy(&d, &bits, sizeof d);
    return d;
}
