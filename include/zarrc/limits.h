/*
 * zarrc/limits.h - how much hostile input may cost. One object a context,
 * fixed when the context is created. A value over a limit fails with
 * ZARR_ERR_LIMIT and a text that names the member.
 */
#ifndef ZARRC_LIMITS_H
#define ZARRC_LIMITS_H

#include <zarrc/base.h>

ZARR_BEGIN_DECLS

/** Zero means the default, given behind each member. */
typedef struct zarr_limits {
    uint32_t struct_size, flags;
    uint64_t metadata_bytes;     /**< one metadata document; 16 MiB */
    uint64_t consolidated_bytes; /**< a consolidated document; 256 MiB */
    uint32_t json_depth;         /**< 64 */
    uint32_t rank;               /**< 64 */
    uint64_t json_tokens;        /**< 4 Mi values in one document */
    uint64_t string_bytes;       /**< one JSON string; 1 MiB */
    /** in one chain, and in all nested chains together; 32 */
    uint32_t codecs;
    uint32_t shard_depth;      /**< nested sharding; 4 */
    uint64_t chunks_per_shard; /**< inner chunks of one shard; 2^24 */
    /** one decoded chunk; of a shard the inner one, unless codecs in front of it need the
     * whole shard at once; 2 GiB */
    uint64_t chunk_bytes;
    /** one stored object; 0: computed from the decoded size and codecs */
    uint64_t encoded_bytes;
    uint32_t node_name_bytes;      /**< 1024 */
    uint32_t dimension_name_bytes; /**< 64 KiB */
    /** keys of one listing, and names in one walk over a hierarchy, where a folder that
     * several symbolic links lead to counts each time; 10 Mi */
    uint64_t listing_keys;
    /** memory (estimated) of all data types with parameters, structs above all, that a
     * context has met: each is kept as long as the context; 128 MiB */
    uint64_t dtype_bytes;
} zarr_limits;

#define ZARR_LIMITS_INIT ZARR_SIZE_FIRST(zarr_limits)

/**
 * Fills the first out_bytes of *out with the defaults above, struct_size included: a
 * program compiled with a shorter struct gets its own members and no byte more. For other
 * languages; C and C++ use the function without _sized, which knows the size.
 */
ZARR_API void zarr_limits_default_sized(zarr_limits *out, uint32_t out_bytes);
/** The same with the values of zarr_limits_untrusted(). */
ZARR_API void zarr_limits_untrusted_sized(zarr_limits *out, uint32_t out_bytes);

/** Fills *out with the defaults above. Thread class: plain function. */
static inline void zarr_limits_default(zarr_limits *out)
{
    zarr_limits_default_sized(out, sizeof *out);
}

/**
 * Fills *out with hardened values for data from strangers: chunks 256 MiB, metadata 4
 * MiB, listing 1 Mi keys, data types 32 MiB. Thread class: plain function.
 */
static inline void zarr_limits_untrusted(zarr_limits *out)
{
    zarr_limits_untrusted_sized(out, sizeof *out);
}

ZARR_END_DECLS

#endif
