/*
 * node/facts.c - texts and properties of arrays that several commands print alike, and
 * elements as numbers, for plots.
 */
#include "node/work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *cli_type_name(const zarr_dtype *type)
{
    const char *name = zarr_dtype_name(type);

    return name ? name : zarr_dtype_v2(type);
}

bool cli_is_sharded(const zarr_array *array)
{
    const uint64_t *chunks = zarr_array_chunk_shape(array),
                   *units = zarr_array_block_shape(array);

    return chunks &&
           (!units ||
            memcmp(chunks, units, (size_t)zarr_array_ndim(array) * sizeof *chunks) != 0);
}

const char *cli_sharding_config(const char *codec)
{
    static const char sharding[] = "\"sharding_indexed\"";
    size_t n = 0, m = 0;
    const char *name = cli_json_member(codec, "name", &m);

    if (!name || m != sizeof sharding - 1 || strncmp(name, sharding, m) != 0)
        return NULL;
    return cli_json_member(codec, "configuration", &n);
}

/* ---- elements as numbers, in native byte order ---- */

bool cli_is_number(const zarr_dtype *type)
{
    return zarr_dtype_number(type, NULL, NULL, 0) > 0;
}

/* Of complex numbers and other types with several components, the length of the vector.
 * 64-bit integers lose their low bits. */
double cli_number(const zarr_dtype *type, const void *element)
{
    double v[ZARR_COMPONENTS_MAX] = {0};
    const uint32_t n = zarr_dtype_number(type, element, v, ZARR_COMPONENTS_MAX);
    double length = v[0];

    for (uint32_t i = 1; i < n; i++)
        length = (double)hypotl(length, v[i]);
    return length;
}
