/*
 * base/arith.c - checked products. All sizes that come from metadata go through the
 * zr_*_u64 family (base.h, inline) or this loop. A product that wraps would give a small
 * buffer a large index. A zero factor makes the product 0 whatever the others are: an
 * empty array may have enormous other lengths.
 * Thread class: plain function.
 */
#include "base/base.h"

bool zr_product_u64(const uint64_t *v, size_t n, uint64_t *r)
{
    uint64_t product = 1;
    bool fits = true;

    for (size_t i = 0; i < n; i++) {
        if (v[i] == 0) {
            *r = 0;
            return true;
        }
        fits = fits && zr_mul(product, v[i], &product);
    }
    if (fits)
        *r = product;
    return fits;
}
