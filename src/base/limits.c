/*
 * base/limits.c - the values of zarr_limits, and their text. Each default is above what
 * real data uses and below what harms a machine. The untrusted set lowers the limits
 * whose worst case is memory or time. encoded_bytes stays 0: the bound is computed from
 * the decoded size and the codecs. chunk_bytes and variable_chunk_bytes also stay 0: a
 * context computes them from its memory.
 * Thread class: plain functions.
 */
#include "base/base.h"

#include <stddef.h>
#include <string.h>

enum {
    LIMIT_KI = 1 << 10,
    LIMIT_MI = 1 << 20
};

void zr_limits_default(zarr_limits *out)
{
    *out = (zarr_limits){
        .struct_size = sizeof(zarr_limits),
        .metadata_bytes = 64 * (uint64_t)LIMIT_MI,
        .consolidated_bytes = 256 * (uint64_t)LIMIT_MI,
        .json_depth = 1000,
        .rank = ZARR_MAX_RANK,
        .json_tokens = 4 * (uint64_t)LIMIT_MI,
        .string_bytes = 64 * (uint64_t)LIMIT_MI,
        .codecs = 32,
        .shard_depth = 4,
        .chunks_per_shard = 16 * (uint64_t)LIMIT_MI,
        .node_name_bytes = LIMIT_KI,
        .dimension_name_bytes = 64 * LIMIT_KI,
        .listing_keys = 10 * (uint64_t)LIMIT_MI,
        .linked_directories = 64 * (uint64_t)LIMIT_KI,
        .dtype_bytes = 128 * (uint64_t)LIMIT_MI,
    };
}

void zarr_limits_untrusted_sized(zarr_limits *out, uint32_t out_bytes)
{
    zarr_limits all;

    zr_limits_default(&all);
    all.metadata_bytes = 4 * (uint64_t)LIMIT_MI;
    all.json_depth = 64;
    all.string_bytes = LIMIT_MI;
    all.chunk_bytes = 256 * (uint64_t)LIMIT_MI;
    all.variable_chunk_bytes = 64 * (uint64_t)LIMIT_MI;
    all.listing_keys = LIMIT_MI;
    all.linked_directories = 4 * (uint64_t)LIMIT_KI;
    all.dtype_bytes = 32 * (uint64_t)LIMIT_MI;
    zr_struct_give(out, out_bytes, &all, sizeof all);
}

/* ---- by name ---------------------------------------------------------------- */

static const struct limit_member {
    const char *name;
    size_t offset, bytes;
    uint64_t most;
} limit_members[] = {
#define LIMIT_U64(name)                                                                  \
    {                                                                                    \
#        name, offsetof(zarr_limits, name), sizeof(uint64_t), UINT64_MAX                 \
    }
#define LIMIT_U32(name, most)                                                            \
    {                                                                                    \
#        name, offsetof(zarr_limits, name), sizeof(uint32_t), most                       \
    }
    LIMIT_U64(metadata_bytes),
    LIMIT_U64(consolidated_bytes),
    LIMIT_U32(json_depth, UINT32_MAX),
    LIMIT_U32(rank, ZARR_MAX_RANK),
    LIMIT_U64(json_tokens),
    LIMIT_U64(string_bytes),
    LIMIT_U32(codecs, UINT32_MAX),
    LIMIT_U32(shard_depth, ZR_SHARD_DEPTH_MAX),
    LIMIT_U64(chunks_per_shard),
    LIMIT_U64(chunk_bytes),
    LIMIT_U64(encoded_bytes),
    LIMIT_U32(node_name_bytes, UINT32_MAX),
    LIMIT_U32(dimension_name_bytes, UINT32_MAX),
    LIMIT_U64(listing_keys),
    LIMIT_U64(dtype_bytes),
    LIMIT_U64(variable_chunk_bytes),
    LIMIT_U64(linked_directories),
#undef LIMIT_U64
#undef LIMIT_U32
};

static uint64_t limit_get(const zarr_limits *limits, const struct limit_member *m)
{
    const char *at = (const char *)limits + m->offset;
    uint32_t small = 0;
    uint64_t value = 0;

    if (m->bytes == sizeof small) {
        memcpy(&small, at, sizeof small);
        return small;
    }
    memcpy(&value, at, sizeof value);
    return value;
}

static void limit_set(zarr_limits *limits, const struct limit_member *m, uint64_t value)
{
    char *at = (char *)limits + m->offset;
    const uint32_t small = (uint32_t)value;

    if (m->bytes == sizeof small)
        memcpy(at, &small, sizeof small);
    else
        memcpy(at, &value, sizeof value);
}

void zr_limits_complete(zarr_limits *limits, const zarr_limits *from)
{
    for (size_t i = 0; i < ZR_COUNT(limit_members); i++)
        if (limit_get(limits, &limit_members[i]) == 0)
            limit_set(limits, &limit_members[i], limit_get(from, &limit_members[i]));
}

static zarr_status limit_unknown(const char *word, size_t bytes, zarr_error *err)
{
    struct zr_str names;
    zarr_status st = ZARR_OK;

    zr_str_init(&names, NULL);
    for (size_t i = 0; i < ZR_COUNT(limit_members); i++)
        zr_str_printf(&names, "%s%s", i ? ", " : "", limit_members[i].name);
    st = zr_fail(err, ZARR_ERR_INVALID, "\"%.*s\" is not a limit; the limits are %s",
                 (int)ZR_MIN(bytes, (size_t)64), word, zr_str_text(&names));
    zr_str_deinit(&names);
    return st;
}

/* Reads one NAME=VALUE of n bytes. */
static zarr_status limit_parse(zarr_limits *limits, const char *word, size_t n,
                               zarr_error *err)
{
    const char *equals = memchr(word, '=', n);
    const size_t name_bytes = equals ? (size_t)(equals - word) : n;
    const struct limit_member *m = limit_members;
    const struct limit_member *const end = m + ZR_COUNT(limit_members);
    uint64_t value = 0;

    while (m < end &&
           !(strncmp(m->name, word, name_bytes) == 0 && m->name[name_bytes] == '\0' &&
             m->offset + m->bytes <= limits->struct_size))
        m++;
    if (m == end)
        return limit_unknown(word, name_bytes, err);
    if (!equals)
        return zr_fail(err, ZARR_ERR_INVALID, "\"%s\": =VALUE is missing after the name",
                       m->name);
    if (!zr_parse_bytes(equals + 1, n - name_bytes - 1, &value) || value == 0 ||
        value > m->most)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: \"%.*s\" is not a number from 1 to %" PRIu64
                       ", such as 1000, 512M or 4G",
                       m->name, (int)ZR_MIN(n - name_bytes - 1, (size_t)64), equals + 1,
                       m->most);
    limit_set(limits, m, value);
    return ZARR_OK;
}

zarr_status zarr_limits_parse(zarr_limits *limits, const char *text, zarr_error *err)
{
    zarr_limits all = {0};

    ZR_CHECK(zr_struct_read(&all, sizeof all, 2 * sizeof(uint32_t), limits,
                            ZR_TAIL_REFUSE, "zarr_limits", err));
    all.struct_size = limits->struct_size;
    for (const char *p = text; *p != '\0';) {
        const size_t n = strcspn(p, ",");

        if (n > 0)
            ZR_CHECK(limit_parse(&all, p, n, err));
        p += n + (p[n] == ',');
    }
    memcpy(limits, &all, ZR_MIN((size_t)limits->struct_size, sizeof all));
    return ZARR_OK;
}
