/*
 * impl/unused_bits.c - elements with unused bits (bool, int4), for callers of programs
 * without a stage that sets these bits. Readers never see what a store has in unused
 * bits, and invalid elements are never stored. Thread class: plain functions.
 */
#include "impl/impl.h"

void zr_program_unpad(const struct zr_program *p, void *elements, uint64_t bytes)
{
    if (p->padded)
        zr_dtype_unpad(p->padded, elements, (size_t)(bytes / p->item_bytes));
}

zarr_status zr_program_pad(const struct zr_program *p, void *elements, uint64_t bytes,
                           zarr_error *err)
{
    return p->padded
               ? zr_dtype_pad(p->padded, elements, (size_t)(bytes / p->item_bytes), err)
               : ZARR_OK;
}

bool zr_program_is_padded_well(const struct zr_program *p, const void *elements,
                               uint64_t bytes)
{
    return !p->padded ||
           zr_dtype_is_padded_well(p->padded, elements, (size_t)(bytes / p->item_bytes));
}
