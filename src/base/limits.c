/*
 * base/limits.c - the values of zarr_limits. Each default is far above what real data
 * uses and far below what harms a machine. The untrusted set lowers the limits whose
 * worst case is memory. encoded_bytes stays 0: the bound is computed from the decoded
 * size and the codecs. variable_chunk_bytes also stays 0: a context computes it from its
 * memory.
 * Thread class: plain functions.
 */
#include "base/base.h"

enum {
    LIMIT_KI = 1 << 10,
    LIMIT_MI = 1 << 20
};

static zarr_limits limits_usual(void)
{
    return (zarr_limits){
        .struct_size = sizeof(zarr_limits),
        .metadata_bytes = 16 * (uint64_t)LIMIT_MI,
        .consolidated_bytes = 256 * (uint64_t)LIMIT_MI,
        .json_depth = 64,
        .rank = ZARR_MAX_RANK,
        .json_tokens = 4 * (uint64_t)LIMIT_MI,
        .string_bytes = LIMIT_MI,
        .codecs = 32,
        .shard_depth = 4,
        .chunks_per_shard = 16 * (uint64_t)LIMIT_MI,
        .chunk_bytes = 2048 * (uint64_t)LIMIT_MI,
        .encoded_bytes = 0,
        .node_name_bytes = LIMIT_KI,
        .dimension_name_bytes = 64 * LIMIT_KI,
        .listing_keys = 10 * (uint64_t)LIMIT_MI,
        .linked_directories = 64 * (uint64_t)LIMIT_KI,
        .dtype_bytes = 128 * (uint64_t)LIMIT_MI,
    };
}

void zarr_limits_default_sized(zarr_limits *out, uint32_t out_bytes)
{
    const zarr_limits all = limits_usual();

    zr_struct_give(out, out_bytes, &all, sizeof all);
}

void zarr_limits_untrusted_sized(zarr_limits *out, uint32_t out_bytes)
{
    zarr_limits all = limits_usual();

    all.metadata_bytes = 4 * (uint64_t)LIMIT_MI;
    all.chunk_bytes = 256 * (uint64_t)LIMIT_MI;
    all.variable_chunk_bytes = 64 * (uint64_t)LIMIT_MI;
    all.listing_keys = LIMIT_MI;
    all.linked_directories = 4 * (uint64_t)LIMIT_KI;
    all.dtype_bytes = 32 * (uint64_t)LIMIT_MI;
    zr_struct_give(out, out_bytes, &all, sizeof all);
}
