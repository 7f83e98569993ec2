/*
 * codecs/filters/delta.c - the arithmetic of numcodecs' delta. Encoding computes e[0] =
 * a[0] and e[i] = a[i] - a[i-1] in the data type, where integers wrap, and casts each
 * result to the stored type. Decoding computes a running sum in the type to which NumPy
 * promotes both types, and casts it to the data type. If both types are equal, tight
 * loops run over native numbers. Different types, halves and the parts of complex numbers
 * go value by value.
 * Buffers may be unaligned and have any byte order. Thread class: plain functions.
 */
#include "codecs/filters/delta.h"

#include <string.h>

/* ---- equal types, native order --------------------------------------------------- */

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

static void delta_native(bool encode, const struct zr_number *type, uint8_t *dst,
                         const uint8_t *src, size_t n)
{
    typedef void loop(uint8_t * dst, const uint8_t *src, size_t n);
    loop *diff, *sum;

    if (type->kind == ZARR_KIND_FLOAT) {
        diff = type->bytes == 4 ? delta_diff_float : delta_diff_double;
        sum = type->bytes == 4 ? delta_sum_float : delta_sum_double;
    } else {
        diff = type->bytes == 1   ? delta_diff_uint8_t
               : type->bytes == 2 ? delta_diff_uint16_t
               : type->bytes == 4 ? delta_diff_uint32_t
                                  : delta_diff_uint64_t;
        sum = type->bytes == 1   ? delta_sum_uint8_t
              : type->bytes == 2 ? delta_sum_uint16_t
              : type->bytes == 4 ? delta_sum_uint32_t
                                 : delta_sum_uint64_t;
    }
    (encode ? diff : sum)(dst, src, n);
}

/* ---- any types, value by value ----------------------------------------- */

/* Returns a + b, or a - b if `minus`, in this type. */
static struct zr_numpy_value delta_join(struct zr_numpy_value a, struct zr_numpy_value b,
                                        bool minus, const struct zr_number *type)
{
    struct zr_numpy_value v = {0};

    v.u = zr_numpy_wrap(type, minus ? a.u - b.u : a.u + b.u);
    if (type->real) /* a sum in double rounds to the sum in float or half */
        v.d = zr_numpy_round(type->bytes, minus ? a.d - b.d : a.d + b.d);
    return v;
}

/* The type to which NumPy promotes both types. NumPy computes the sums in it. It is a
 * float for int64 and uint64, whose sums lose digits in NumPy as they do here. */
static struct zr_number delta_promote(const struct zr_number *a,
                                      const struct zr_number *b)
{
    const uint8_t widest = ZR_MAX(a->bytes, b->bytes);

    if (a->kind == b->kind)
        return a->bytes >= b->bytes ? *a : *b;
    if (a->kind == ZARR_KIND_FLOAT || b->kind == ZARR_KIND_FLOAT) {
        const uint8_t real = a->kind == ZARR_KIND_FLOAT ? a->bytes : b->bytes;
        const uint8_t whole = a->kind == ZARR_KIND_FLOAT ? b->bytes : a->bytes;
        const uint8_t least = whole == 1 ? 2 : whole == 2 ? 4 : 8;

        return zr_number_make(ZARR_KIND_FLOAT, ZR_MAX(real, least));
    }
    if ((a->kind == ZARR_KIND_INT ? a->bytes : b->bytes) >
        (a->kind == ZARR_KIND_UINT ? a->bytes : b->bytes))
        return zr_number_make(ZARR_KIND_INT, widest);
    return widest == 8 ? zr_number_make(ZARR_KIND_FLOAT, 8)
                       : zr_number_make(ZARR_KIND_INT, 2U * widest);
}

/* Handles one part of each element. `steps` has the bytes from one element to the next,
 * of src and of dst. */
static void delta_general(const struct zr_delta *t, bool encode, uint8_t *dst,
                          const uint8_t *src, size_t n, const size_t steps[2])
{
    const struct zr_number *from = encode ? &t->dtype : &t->astype;
    const struct zr_number *to = encode ? &t->astype : &t->dtype;
    const struct zr_number sum = delta_promote(&t->astype, &t->dtype);
    struct zr_numpy_value last = {0};

    for (size_t i = 0; i < n; i++, src += steps[0], dst += steps[1]) {
        struct zr_numpy_value v = zr_numpy_load(from, src);

        if (encode) {
            const struct zr_numpy_value d = i ? delta_join(v, last, true, &t->dtype) : v;

            zr_numpy_store(to, dst, zr_numpy_convert(from, to, d));
            last = v;
        } else {
            v = zr_numpy_convert(from, &sum, v);
            last = i ? delta_join(last, v, false, &sum) : v;
            zr_numpy_store(to, dst, zr_numpy_convert(&sum, to, last));
        }
    }
}

void zr_delta_apply(const struct zr_delta *t, bool encode, uint8_t *dst,
                    const uint8_t *src, size_t n)
{
    const struct zr_number *from = encode ? &t->dtype : &t->astype;
    const struct zr_number *to = encode ? &t->astype : &t->dtype;
    const size_t steps[2] = {zr_number_item_bytes(from), zr_number_item_bytes(to)};
    const struct zr_delta parts = {zr_number_part(&t->dtype), zr_number_part(&t->astype)};

    if (from->parts == 2) { /* then both types are complex */
        delta_general(&parts, encode, dst, src, n, steps);
        delta_general(&parts, encode, dst + steps[1] / 2, src + steps[0] / 2, n, steps);
        return;
    }
    if (from->kind != to->kind || from->bytes != to->bytes ||
        (from->kind == ZARR_KIND_FLOAT && from->bytes == 2)) {
        delta_general(t, encode, dst, src, n, steps);
        return;
    }
    if (zr_number_is_swapped(from)) {
        zr_byteswap(dst, src, n, from->bytes);
        src = dst;
    }
    delta_native(encode, from, dst, src, n);
    if (zr_number_is_swapped(to))
        zr_byteswap(dst, dst, n, to->bytes);
}

void zr_delta_times(const struct zr_delta *t, bool encode, uint8_t *dst,
                    const uint8_t *src, size_t n)
{
    const struct zr_number *from = encode ? &t->dtype : &t->astype;
    const struct zr_number *to = encode ? &t->astype : &t->dtype;
    const uint64_t nat = (uint64_t)INT64_MIN;
    uint64_t last = 0;

    for (size_t i = 0; i < n; i++, src += 8, dst += 8) {
        const uint64_t v = zr_numpy_load(from, src).u;
        struct zr_numpy_value out = {.u = encode ? v - last : last + v};

        if (v == nat || last == nat)
            out.u = nat;
        zr_numpy_store(to, dst, out);
        last = encode ? v : out.u;
    }
}
