/*
 * impl/delta.c - the arithmetic of numcodecs' delta: e[0] = a[0], e[i] = a[i] -
 * a[i-1] in the data type, integers wrapping, then cast to the stored type; back:
 * cast, then running sum. Equal types run in tight loops over native numbers;
 * different ones go value by value. Bytes come unaligned and in any order.
 * Floats that do not fit an integer type become its lowest value, as on x86.
 * Thread class: plain functions.
 */
#include "impl/delta_int.h"

#include <string.h>

/* ---- equal types, native order ------------------------------------------------------
 */

#define DELTA_LOOPS(type)                                                                \
    static void delta_diff_##type(uint8_t *dst, const uint8_t *src, size_t n)            \
    {                                                                                    \
        type prev = 0;                                                                   \
        for (size_t i = 0; i < n; i++) {                                                 \
            type v, d;                                                                   \
            memcpy(&v, src + i * sizeof v, sizeof v);                                    \
            d = i ? (type)(v - prev) : v;                                                \
            memcpy(dst + i * sizeof d, &d, sizeof d);                                    \
            prev = v;                                                                    \
        }                                                                                \
    }                                                                                    \
    static void delta_sum_##type(uint8_t *dst, const uint8_t *src, size_t n)             \
    {                                                                                    \
        type sum = 0;                                                                    \
        for (size_t i = 0; i < n; i++) {                                                 \
            type d;                                                                      \
            memcpy(&d, src + i * sizeof d, sizeof d);                                    \
            sum = i ? (type)(sum + d) : d;                                               \
            memcpy(dst + i * sizeof d, &sum, sizeof d);                                  \
        }                                                                                \
    }
DELTA_LOOPS(uint8_t)
DELTA_LOOPS(uint16_t)
DELTA_LOOPS(uint32_t)
DELTA_LOOPS(uint64_t)
DELTA_LOOPS(float)
DELTA_LOOPS(double)

static void delta_native(bool encode, const struct zr_numpy_type *type, uint8_t *dst,
                         const uint8_t *src, size_t n)
{
    typedef void loop(uint8_t * dst, const uint8_t *src, size_t n);
    loop *diff, *sum;

    if (type->kind == 'f') {
        diff = type->item_bytes == 4 ? delta_diff_float : delta_diff_double;
        sum = type->item_bytes == 4 ? delta_sum_float : delta_sum_double;
    } else {
        diff = type->item_bytes == 1   ? delta_diff_uint8_t
               : type->item_bytes == 2 ? delta_diff_uint16_t
               : type->item_bytes == 4 ? delta_diff_uint32_t
                                       : delta_diff_uint64_t;
        sum = type->item_bytes == 1   ? delta_sum_uint8_t
              : type->item_bytes == 2 ? delta_sum_uint16_t
              : type->item_bytes == 4 ? delta_sum_uint32_t
                                      : delta_sum_uint64_t;
    }
    (encode ? diff : sum)(dst, src, n);
}

/* ---- any types, value by value
 * --------------------------------------------------------- */

struct delta_value { /* which member counts, the type says */
    uint64_t u;      /* integers: extended by their sign */
    double d;
};

static bool delta_is_swapped(const struct zr_numpy_type *type)
{
    return type->item_bytes > 1 && type->big == zr_host_is_little();
}

/* Cuts to the type's width, keeping the sign. */
static uint64_t delta_wrap(uint64_t u, const struct zr_numpy_type *type)
{
    const unsigned spare = (64U - 8U * type->item_bytes) & 63U; /* 0 to 56 */

    if (type->kind == 'u')
        return u << spare >> spare;
    return (uint64_t)((int64_t)(u << spare) >> spare);
}

static struct delta_value delta_load(const uint8_t *p, const struct zr_numpy_type *type)
{
    struct delta_value v = {0};
    uint8_t bytes[8] = {0};
    float f;

    for (unsigned i = 0; i < type->item_bytes; i++)
        bytes[i] = p[type->big ? type->item_bytes - 1U - i : i];
    v.u = delta_wrap(zr_load_le64(bytes), type);
    if (type->kind == 'f' && type->item_bytes == 8) {
        memcpy(&v.d, &v.u, sizeof v.d);
    } else if (type->kind == 'f') {
        const uint32_t bits = (uint32_t)v.u;

        memcpy(&f, &bits, sizeof f);
        v.d = (double)f;
    }
    return v;
}

static void delta_store(uint8_t *p, struct delta_value v,
                        const struct zr_numpy_type *type)
{
    uint8_t bytes[8];

    if (type->kind == 'f' && type->item_bytes == 8) {
        memcpy(&v.u, &v.d, sizeof v.u);
    } else if (type->kind == 'f') {
        const float f = (float)v.d;
        uint32_t bits;

        memcpy(&bits, &f, sizeof bits);
        v.u = bits;
    }
    zr_store_le64(bytes, v.u);
    for (unsigned i = 0; i < type->item_bytes; i++)
        p[type->big ? type->item_bytes - 1U - i : i] = bytes[i];
}

static uint64_t delta_from_float(double d, const struct zr_numpy_type *to)
{
    const double two63 = 9223372036854775808.0;

    if (to->kind == 'u' && d >= two63 && d < 2 * two63)
        return (uint64_t)d;
    if (d >= -two63 && d < two63)
        return (uint64_t)(int64_t)d;
    return (uint64_t)INT64_MIN;
}

static struct delta_value delta_cast(struct delta_value v,
                                     const struct zr_numpy_type *from,
                                     const struct zr_numpy_type *to)
{
    if (to->kind != 'f') {
        v.u = delta_wrap(from->kind == 'f' ? delta_from_float(v.d, to) : v.u, to);
        return v;
    }
    if (to->item_bytes == 8)
        v.d = from->kind == 'f'   ? v.d
              : from->kind == 'u' ? (double)v.u
                                  : (double)(int64_t)v.u;
    else
        v.d = (double)(from->kind == 'f'   ? (float)v.d
                       : from->kind == 'u' ? (float)v.u
                                           : (float)(int64_t)v.u);
    return v;
}

/* a + b, or a - b, in this type. */
static struct delta_value delta_join(struct delta_value a, struct delta_value b,
                                     bool minus, const struct zr_numpy_type *type)
{
    struct delta_value v = {0};

    v.u = delta_wrap(minus ? a.u - b.u : a.u + b.u, type);
    if (type->kind == 'f' && type->item_bytes == 8)
        v.d = minus ? a.d - b.d : a.d + b.d;
    else if (type->kind == 'f')
        v.d = (double)(minus ? (float)a.d - (float)b.d : (float)a.d + (float)b.d);
    return v;
}

static void delta_general(const struct zr_delta *t, bool encode, uint8_t *dst,
                          const uint8_t *src, size_t n)
{
    const struct zr_numpy_type *from = encode ? &t->dtype : &t->astype;
    const struct zr_numpy_type *to = encode ? &t->astype : &t->dtype;
    struct delta_value last = {0};

    for (size_t i = 0; i < n; i++) {
        struct delta_value v = delta_load(src + i * from->item_bytes, from);

        if (encode) {
            const struct delta_value d = i ? delta_join(v, last, true, &t->dtype) : v;

            delta_store(dst + i * to->item_bytes, delta_cast(d, from, to), to);
            last = v;
        } else {
            v = delta_cast(v, from, to);
            last = i ? delta_join(last, v, false, &t->dtype) : v;
            delta_store(dst + i * to->item_bytes, last, to);
        }
    }
}

void zr_delta_run(const struct zr_delta *t, bool encode, uint8_t *dst, const uint8_t *src,
                  size_t n)
{
    const struct zr_numpy_type *from = encode ? &t->dtype : &t->astype;
    const struct zr_numpy_type *to = encode ? &t->astype : &t->dtype;

    if (from->kind != to->kind || from->item_bytes != to->item_bytes) {
        delta_general(t, encode, dst, src, n);
        return;
    }
    if (delta_is_swapped(from)) {
        zr_byteswap(dst, src, n, from->item_bytes);
        src = dst;
    }
    delta_native(encode, from, dst, src, n);
    if (delta_is_swapped(to))
        zr_byteswap(dst, dst, n, to->item_bytes);
}
