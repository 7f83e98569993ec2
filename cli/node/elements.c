/*
 * node/elements.c - elements of arrays as numbers: what plots draw and comparisons
 * with a tolerance subtract. Every numeric type becomes a pair of doubles; a
 * 64-bit integer loses its last bits here, so whoever needs them compares the
 * bytes. Elements are native-endian, as the library hands them out.
 */
#include "node/work.h"

#include <string.h>

bool cli_is_number(const zarr_dtype *type)
{
    static const char zero[16];
    double number[2];

    return zarr_dtype_item_bytes(type) <= sizeof zero &&
           zarr_dtype_number(type, zero, number) > 0;
}

void cli_number(const zarr_dtype *type, const void *element, double out[2])
{
    out[1] = 0;
    (void)zarr_dtype_number(type, element, out);
}
