/*
 * plan/blocks.c - one block, for plans of reads and for writes: its key, and the level
 * for a block of its shape.
 * Thread class: plain functions.
 */
#include "plan/plan_int.h"

#include <string.h>

void zr_plan_key(const struct zr_plan_args *a, const uint64_t *chunk, struct zr_str *out)
{
    zr_str_clear(out);
    if (a->prefix[0] != '\0') {
        zr_str_puts(out, a->prefix);
        zr_str_putc(out, '/');
    }
    zr_key_encoding_key(a->layout->keys, a->layout->grid->ndim, chunk, out);
}

zarr_status zr_layout_outer(const struct zr_layout *l, const uint64_t *shape,
                            const struct zr_level **out, zarr_error *err)
{
    const struct zr_level *first = &l->level[0];

    *out = first;
    if (!l->variants ||
        memcmp(first->shape, shape, (size_t)first->ndim * sizeof *shape) == 0)
        return ZARR_OK;
    return zr_variants_find(l, shape, out, err);
}

void zr_level_give(const struct zr_level *lv)
{
    if (lv && lv->variant)
        zr_variant_unref(lv->variant);
}
