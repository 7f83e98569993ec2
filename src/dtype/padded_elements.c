/*
 * dtype/padded_elements.c - elements of less than a byte, which have one byte each. In
 * stores the bits above the element's may be anything. In memory they repeat the sign or
 * are zero, so that the byte has the value of the element. A bool is 0 or 1. Writers may
 * give the value in either form (Python's ml_dtypes keeps zeros above a negative int4).
 * Any other byte is refused, because it is a value of another type. Fields of structs are
 * treated the same. This file also converts the packed form, several elements a byte:
 * element i has the bits from i * width on, counted from the lowest bit of the first
 * byte, as DLPack and the codec packbits have it. Thread class: plain functions.
 */
#include "struct_int.h"

#include <string.h>

uint32_t zr_dtype_padded_bits(const zarr_dtype *dtype)
{
    const zarr_dtype_info *info = &dtype->info;

    return info->kind <= ZARR_KIND_COMPLEX && info->item_bytes == info->components &&
                   info->component_bits < 8
               ? info->component_bits
               : 0;
}

bool zr_dtype_is_padded(const zarr_dtype *dtype)
{
    const struct zr_struct *s = zr_struct_from_dtype(dtype);

    for (size_t i = 0; s && i < s->n; i++)
        if (zr_dtype_is_padded(s->field[i].dtype))
            return true;
    return zr_dtype_padded_bits(dtype) > 0;
}

/* ---- columns: n runs of `count` bytes, `stride` bytes apart -------------------- */

struct padded_column {
    uint8_t *at;
    size_t n, count, stride;
};

struct padded_form {
    uint8_t keep, sign;
    bool truth;
};

static struct padded_form make_padded_form(const zarr_dtype *dtype)
{
    const uint32_t bits = zr_dtype_padded_bits(dtype);
    struct padded_form f = {.keep = (uint8_t)((1U << bits) - 1)};

    f.truth = dtype->info.kind == ZARR_KIND_BOOL;
    if (dtype->info.kind == ZARR_KIND_INT)
        f.sign = (uint8_t)(1U << bits >> 1);
    return f;
}

/* Returns non-zero if some byte has neither form of a value. */
static uint8_t mend_row(struct padded_form f, uint8_t *p, size_t n)
{
    uint8_t bad = 0;

    if (f.truth) {
        for (size_t i = 0; i < n; i++)
            p[i] = p[i] != 0;
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        const uint8_t v = p[i], low = v & f.keep;
        const uint8_t whole = (uint8_t)((low ^ f.sign) - f.sign);

        bad |= (uint8_t)((v != whole) & (v != low));
        p[i] = whole;
    }
    return bad;
}

static uint8_t mend_column(const zarr_dtype *dtype, struct padded_column c)
{
    const struct padded_form f = make_padded_form(dtype);
    uint8_t bad = 0;

    if (c.stride == c.count)
        return mend_row(f, c.at, c.n * c.count);
    for (size_t i = 0; i < c.n; i++)
        bad |= mend_row(f, c.at + i * c.stride, c.count);
    return bad;
}

/* Recursion: the parser limits the depth of structs. */
static const zarr_dtype *mend(const zarr_dtype *dtype, struct padded_column c)
{
    const struct zr_struct *s = zr_struct_from_dtype(dtype);
    const zarr_dtype *wrong = NULL;

    if (!s)
        return zr_dtype_padded_bits(dtype) && mend_column(dtype, c) ? dtype : NULL;
    for (size_t i = 0; i < s->n; i++) {
        const struct zr_field *f = &s->field[i];
        const size_t bytes = (size_t)(f->n_items * f->dtype->info.item_bytes);
        struct padded_column below = {c.at + f->offset, c.n, bytes, c.stride};

        if (!zr_dtype_is_padded(f->dtype))
            continue;
        if (!zr_struct_from_dtype(f->dtype)) {
            if (mend(f->dtype, below))
                wrong = f->dtype;
            continue;
        }
        below.count = (size_t)f->dtype->info.item_bytes;
        for (uint64_t k = 0; k < f->n_items; k++) {
            const zarr_dtype *inner = mend(f->dtype, below);

            if (inner)
                wrong = inner;
            below.at += below.count;
        }
    }
    return wrong;
}

void zr_dtype_unpad(const zarr_dtype *dtype, void *data, size_t n)
{
    const size_t bytes = (size_t)dtype->info.item_bytes;

    (void)mend(dtype, (struct padded_column){data, n, bytes, bytes});
}

zarr_status zr_dtype_pad(const zarr_dtype *dtype, void *data, size_t n, zarr_error *err)
{
    const size_t bytes = (size_t)dtype->info.item_bytes;
    const zarr_dtype *wrong = mend(dtype, (struct padded_column){data, n, bytes, bytes});

    if (!wrong)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INVALID,
                   "an element is not a valid %s: it has bits set above its %" PRIu32
                   " that do not repeat its sign",
                   wrong->info.name, zr_dtype_padded_bits(wrong));
}

static bool row_is_well(struct padded_form f, const uint8_t *p, size_t n)
{
    uint8_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        const uint8_t low = p[i] & f.keep;

        bad |= (uint8_t)(p[i] ^ (uint8_t)((low ^ f.sign) - f.sign));
    }
    return bad == 0;
}

bool zr_dtype_is_padded_well(const zarr_dtype *dtype, const void *data, size_t n)
{
    /* Fields of structs are not examined: the caller copies them. */
    return !zr_struct_from_dtype(dtype) &&
           row_is_well(make_padded_form(dtype), data, n * (size_t)dtype->info.item_bytes);
}

/* ---- packed ---------------------------------------------------------------- */

void zr_packed_get(const zarr_dtype *dtype, void *elements, const void *packed, size_t n)
{
    const unsigned width = zr_dtype_padded_bits(dtype), keep = (1U << width) - 1;
    const uint8_t *from = packed;
    uint8_t *to = elements;
    unsigned have = 0, bits = 0;

    for (size_t i = 0; i < n; i++) {
        if (have < width) {
            bits |= (unsigned)*from++ << have;
            have += 8;
        }
        to[i] = (uint8_t)(bits & keep);
        bits >>= width;
        have -= width;
    }
    zr_dtype_unpad(dtype, elements, n);
}

void zr_packed_put(const zarr_dtype *dtype, void *packed, const void *elements, size_t n)
{
    const unsigned width = zr_dtype_padded_bits(dtype), keep = (1U << width) - 1;
    const uint8_t *from = elements;
    uint8_t *to = packed;
    unsigned have = 0, bits = 0;

    for (size_t i = 0; i < n; i++) {
        bits |= (from[i] & keep) << have;
        have += width;
        if (have >= 8) {
            *to++ = (uint8_t)bits;
            bits >>= 8;
            have -= 8;
        }
    }
    if (have)
        *to = (uint8_t)bits;
}
