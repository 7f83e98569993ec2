/*
 * node/facts.c - texts and properties of arrays that several commands print alike;
 * elements as numbers, for plots; the memory that --memory names: a tensor there, and its
 * copy on the host, where the program writes elements from; what --trust permits, which
 * matters for memory of devices, and what --missing-chunks says.
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

const char *cli_kind_name(uint32_t kind)
{
    return kind == ZARR_NODE_ARRAY   ? "array"
           : kind == ZARR_NODE_GROUP ? "group"
                                     : "broken";
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

/* ---- --memory, --trust and --missing-chunks ---- */

bool cli_missing_is_error(const struct cli *cli)
{
    return cli_choice(cli, "missing-chunks") == 2;
}

uint32_t cli_trust(const struct cli *cli)
{
    return cli_choice(cli, "trust"); /* as ZARR_TRUST_* */
}

int cli_memory_find(struct cli *cli, struct cli_memory *out)
{
    const char *text = cli_text(cli, "memory");
    zarr_error err = {0};
    zarr_status st;

    *out = (struct cli_memory){.device_type = ZARR_DEVICE_CPU};
    if (!text)
        return CLI_OK;
    st = zarr_memory_parse(cli->ctx, text, &out->device_type, &out->device_id, &err);
    if (st)
        return cli_error(cli, CLI_USAGE, "zarrc list devices shows what there is.",
                         "--memory: %s", err.message);
    return CLI_OK;
}

zarr_status cli_memory_tensor(struct cli *cli, const struct cli_memory *memory,
                              uint64_t bytes, zarr_memory *block, zarr_tensor *tensor,
                              zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (memory->device_type == ZARR_DEVICE_CPU)
        return ZARR_OK;
    if (!block->handle)
        st = zarr_memory_alloc(block, cli->ctx, memory->device_type, memory->device_id,
                               bytes, err);
    tensor->device_type = memory->device_type;
    tensor->device_id = memory->device_id;
    tensor->data = block->handle;
    tensor->byte_offset = block->offset;
    tensor->data_bytes = block->offset + block->bytes;
    return st;
}

zarr_status cli_memory_download(struct cli *cli, const zarr_memory *block, void *data,
                                uint64_t bytes, zarr_error *err)
{
    const zarr_memory host = {
        .device_type = ZARR_DEVICE_CPU, .handle = data, .bytes = bytes};

    return block->handle ? zarr_memory_copy(cli->ctx, &host, block, bytes, err) : ZARR_OK;
}
