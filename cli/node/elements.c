/*
 * node/elements.c - elements of arrays as numbers, for plots. Every numeric type becomes
 * a pair of doubles. 64-bit integers lose their low bits, so this is no basis for exact
 * comparisons. Elements are in native byte order, as the library returns them.
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
