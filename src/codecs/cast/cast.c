/*
 * codecs/cast/cast.c - cast_value for many elements. A block of numbers goes through a
 * loop that compilers vectorise if the loop casts every number of the block as the
 * specification says. Any other block, and a block with a number that scalar_map may
 * list, goes element by element through the exact cast of dtype (zr_scalar_cast()). That
 * cast also finds the element with an error. Thread class: plain functions.
 */
#include "codecs/cast/cast_loop.h"

#include <math.h>
#include <string.h>

/* Makes the table of all 256 values of a float of one byte. */
static zarr_status cast_table(struct zr_cast_loop *r, zarr_error *err)
{
    const struct zr_number *n = &r->cast.from;

    if (n->bytes != 1 || n->kind != ZARR_KIND_FLOAT)
        return ZARR_OK;
    r->table = zr_malloc(r->cast.alloc, 256 * sizeof *r->table);
    if (!r->table)
        return zr_fail_memory(err, 256 * sizeof *r->table);
    for (uint64_t bits = 0; bits < 256; bits++) {
        const struct zr_scalar v =
            zr_scalar_from_bits(n, bits & UINT64_MAX >> (64 - n->bits));

        r->table[bits] = zr_scalar_f64(&v);
    }
    return ZARR_OK;
}

static zarr_status cast_prepare(struct zr_cast_loop *r, zarr_error *err)
{
    const zarr_status st = cast_table(r, err);

    r->quick = zr_numpy_has(&r->cast.to) && (r->table || zr_numpy_has(&r->cast.from));
    return st;
}

void zr_cast_loop_close(struct zr_cast_loop *r)
{
    zr_free(r->cast.alloc, r->table);
    r->table = NULL;
    zr_cast_close(&r->cast);
}

zarr_status zr_cast_loop_open(struct zr_cast_loop *r, const zarr_codec_spec *spec,
                              const zarr_dtype *array, bool encode,
                              const zarr_allocator *alloc, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    *r = (struct zr_cast_loop){.cast = {.alloc = alloc}};
    ZR_TRY(zr_cast_open(&r->cast, spec, array, encode, alloc, err));
    ZR_TRY(cast_prepare(r, err));
out:
    if (st != ZARR_OK)
        zr_cast_loop_close(r);
    return st;
}

/* ---- element by element ---------------------------------------------------------- */

static enum zr_cast_result cast_slow(const struct zr_cast_loop *r, uint8_t *dst,
                                     const uint8_t *src, size_t n, size_t *bad)
{
    const struct zr_cast *c = &r->cast;

    for (size_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        const enum zr_cast_result result =
            zr_cast_one(c, zr_number_bits(&c->from, src + i * c->from.bytes), &bits);

        if (result != ZR_CAST_OK) {
            *bad = i;
            return result;
        }
        zr_number_put(&c->to, dst + i * c->to.bytes, bits);
    }
    return ZR_CAST_OK;
}

/* ---- integers -------------------------------------------------------------------- */

static bool cast_is_listed(const struct zr_cast_loop *r, const uint8_t *src, size_t n)
{
    const struct zr_cast *c = &r->cast;

    for (size_t i = 0; c->n_map && i < n; i++)
        if (zr_cast_find_pair(c, zr_number_bits(&c->from, src + i * c->from.bytes)))
            return true;
    return false;
}

/* Whether every integer is in [least, most]. The bounds are signed if the source is. */
static bool cast_is_in_range(const uint64_t *v, size_t n, bool sign, uint64_t least,
                             uint64_t most)
{
    int out = 0;

    if (sign)
        for (size_t i = 0; i < n; i++)
            out |= (int64_t)v[i] < (int64_t)least || (int64_t)v[i] > (int64_t)most;
    else
        for (size_t i = 0; i < n; i++)
            out |= v[i] > most;
    return !out;
}

/* The range of integers that the target represents exactly, as far as a source of this
 * signedness can have them. For floats it is the range of the fraction's bits. */
static void cast_limits(const struct zr_cast_loop *r, uint64_t *least, uint64_t *most)
{
    const struct zr_number *to = &r->cast.to;
    const bool sign = r->cast.from.kind == ZARR_KIND_INT;
    const unsigned bits = to->real                    ? to->real->fraction_bits + 1U
                          : to->kind == ZARR_KIND_INT ? to->bits - 1U
                                                      : to->bits;

    *most = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    if (sign && *most > (uint64_t)INT64_MAX)
        *most = (uint64_t)INT64_MAX;
    *least = to->kind == ZARR_KIND_UINT ? 0 : ~*most;
}

static bool cast_integers(const struct zr_cast_loop *r, uint8_t *dst, const uint8_t *src,
                          size_t n)
{
    const bool sign = r->cast.from.kind == ZARR_KIND_INT;
    uint64_t v[ZR_BLOCK], least, most;

    zr_block_whole(&r->cast.from, src, n, v);
    cast_limits(r, &least, &most);
    if ((r->cast.to.real || r->cast.range != ZR_RANGE_WRAP) &&
        !cast_is_in_range(v, n, sign, least, most))
        return false;
    zr_block_put_whole(&r->cast.to, dst, v, n, sign);
    return true;
}

/* ---- floats ------------------------------------------------------------ */

static void cast_reals(const struct zr_cast_loop *r, const uint8_t *src, size_t n,
                       double *v)
{
    if (!r->table) {
        zr_block_real(&r->cast.from, src, n, v);
        return;
    }
    for (size_t i = 0; i < n; i++)
        v[i] = r->table[src[i]];
}

/* Rounds to whole numbers. |v| must be less than 2^31; then adding and subtracting
 * 1.5 * 2^52 rounds half to even. */
static void cast_round(uint32_t rounding, double *v, size_t n)
{
    const double shift = 6755399441055744.0;

    switch (rounding) {
    case ZR_ROUND_EVEN:
        for (size_t i = 0; i < n; i++)
            v[i] = (v[i] + shift) - shift;
        break;
    case ZR_ROUND_ZERO:
        for (size_t i = 0; i < n; i++)
            v[i] = (double)(int32_t)v[i];
        break;
    case ZR_ROUND_POSITIVE:
        for (size_t i = 0; i < n; i++)
            v[i] = ceil(v[i]);
        break;
    case ZR_ROUND_NEGATIVE:
        for (size_t i = 0; i < n; i++)
            v[i] = floor(v[i]);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            v[i] = round(v[i]);
        break;
    }
}

static bool cast_reals_are_in(const double *v, size_t n, double least, double most)
{
    int out = 0;

    for (size_t i = 0; i < n; i++)
        out |= !(v[i] >= least && v[i] <= most);
    return !out;
}

static bool cast_to_integers(const struct zr_cast_loop *r, uint8_t *dst, double *v,
                             size_t n)
{
    const struct zr_number *to = &r->cast.to;
    const bool sign = to->kind == ZARR_KIND_INT;
    const double most = ldexp(1, ZR_MIN(to->bits, 31) - sign) - 1;

    if (!cast_reals_are_in(v, n, -2147483647.0, 2147483647.0))
        return false;
    cast_round(r->cast.rounding, v, n);
    if (!cast_reals_are_in(v, n, sign ? -most - 1 : 0, most))
        return false;
    zr_block_put_real(&r->cast.to, dst, v, n);
    return true;
}

/* A wider float holds every number. A narrower one gets the nearest number if that is
 * finite. Returns false if the loop cannot cast this block. */
static bool cast_to_floats(const struct zr_cast_loop *r, uint8_t *dst, const double *v,
                           size_t n)
{
    const bool wider =
        r->cast.to.bytes == 8 || (r->cast.to.bytes == 4 && r->cast.from.bits <= 32);

    if (!wider &&
        (r->cast.to.bytes != 4 || r->cast.rounding != ZR_ROUND_EVEN ||
         !cast_reals_are_in(v, n, -(double)3.402823466e+38f, (double)3.402823466e+38f)))
        return false;
    zr_block_put_real(&r->cast.to, dst, v, n);
    return true;
}

static bool cast_floats(const struct zr_cast_loop *r, uint8_t *dst, const uint8_t *src,
                        size_t n)
{
    double v[ZR_BLOCK];

    cast_reals(r, src, n, v);
    return r->cast.to.real ? cast_to_floats(r, dst, v, n)
                           : cast_to_integers(r, dst, v, n);
}

enum zr_cast_result zr_cast_all(const struct zr_cast_loop *r, uint8_t *dst,
                                const uint8_t *src, size_t n, size_t *bad)
{
    const bool real = r->cast.from.real != NULL;
    enum zr_cast_result result = ZR_CAST_OK;

    for (size_t at = 0; at < n && result == ZR_CAST_OK; at += ZR_BLOCK) {
        const size_t m = ZR_MIN(n - at, (size_t)ZR_BLOCK);
        const uint8_t *from = src + at * r->cast.from.bytes;
        uint8_t *to = dst + at * r->cast.to.bytes;

        if (r->quick && !cast_is_listed(r, from, m) &&
            (real ? cast_floats : cast_integers)(r, to, from, m))
            continue;
        result = cast_slow(r, to, from, m, bad);
        *bad += at;
    }
    return result;
}

zarr_status zr_codecs_cast(uint8_t *dst, const struct zr_number *to, const uint8_t *src,
                           const struct zr_number *from, size_t n,
                           const zarr_allocator *alloc, zarr_error *err)
{
    struct zr_cast_loop r = {.cast = {.from = *from, .to = *to, .alloc = alloc}};
    enum zr_cast_result result = ZR_CAST_OK;
    uint8_t block[8 * ZR_BLOCK];
    size_t bad = 0;
    zarr_status st = ZARR_OK;

    ZR_TRY(cast_prepare(&r, err));
    for (size_t at = 0; at < n && result == ZR_CAST_OK; at += ZR_BLOCK) {
        const size_t m = ZR_MIN(n - at, (size_t)ZR_BLOCK);

        memcpy(block, src + at * from->bytes, m * from->bytes);
        result = zr_cast_all(&r, dst + at * to->bytes, block, m, &bad);
        bad += at;
    }
    if (result != ZR_CAST_OK)
        st = zr_fail(err, ZARR_ERR_INVALID, "element %zu is %s", bad,
                     zr_cast_reason(result));
out:
    zr_cast_loop_close(&r);
    return st;
}
