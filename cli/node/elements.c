/*
 * node/elements.c - elements of arrays as numbers, for plots. Every numeric type becomes
 * a double; of complex numbers and other types with several components it is the length
 * of the vector. 64-bit integers lose their low bits, so this is no basis for exact
 * comparisons. Elements are in native byte order, as the library returns them.
 */
#include "node/work.h"

#include <math.h>

bool cli_is_number(const zarr_dtype *type)
{
    return zarr_dtype_number(type, NULL, NULL, 0) > 0;
}

double cli_number(const zarr_dtype *type, const void *element)
{
    double v[ZARR_COMPONENTS_MAX] = {0};
    const uint32_t n = zarr_dtype_number(type, element, v, ZARR_COMPONENTS_MAX);
    double length = v[0];

    for (uint32_t i = 1; i < n; i++)
        length = (double)hypotl(length, v[i]);
    return length;
}
