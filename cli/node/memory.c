/*
 * node/memory.c - the memory that --memory names: a tensor there, and its copy on the
 * host, where the program writes elements from. What --trust permits, which matters for
 * memory of devices, and what --missing-chunks says.
 */
#include "node/node.h"

#include <string.h>

bool cli_missing_is_error(const struct cli *cli)
{
    const char *text = cli_text(cli, "missing-chunks");

    return text && strcmp(text, "error") == 0;
}

uint32_t cli_trust(const struct cli *cli)
{
    const char *text = cli_text(cli, "trust");

    if (!text)
        return 0;
    return strcmp(text, "full") == 0   ? ZARR_TRUST_FULL
           : strcmp(text, "none") == 0 ? ZARR_TRUST_NONE
                                       : ZARR_TRUST_VERIFIED;
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
