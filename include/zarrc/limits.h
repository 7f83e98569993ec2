/**
 * @file
 * Limits: how much memory and time hostile input may cost.
 */
#ifndef ZARRC_LIMITS_H
#define ZARRC_LIMITS_H

#include <zarrc/base.h>
#include <zarrc/error.h>

ZARR_BEGIN_DECLS

/**
 * Limits of a context, fixed when it is created. Input that exceeds a limit fails with
 * ZARR_ERR_LIMIT; the message and the part ZARR_ERROR_SETTING of the error name the
 * member. A member that is zero has the value that the environment variable ZARRC_LIMITS
 * gives it, else its default, which is in brackets.
 *
 * The defaults suit data whose origin you know: valid arrays rarely exceed them, but a
 * document or a chunk within them can take gigabytes. Open data of unknown origin
 * with zarr_limits_untrusted().
 */
typedef struct zarr_limits {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    uint64_t metadata_bytes;     /**< length of one metadata document [64 MiB] */
    uint64_t consolidated_bytes; /**< length of a consolidated document [256 MiB] */
    uint32_t json_depth;         /**< nesting of JSON values [1,000] */
    uint32_t rank;               /**< dimensions of an array, at most 64 [64] */
    uint64_t json_tokens;        /**< values in one JSON document [4 Mi] */
    uint64_t string_bytes;       /**< length of one JSON string [64 MiB] */
    /** codecs in one chain, and in all its nested chains together [32] */
    uint32_t codecs;
    uint32_t shard_depth;      /**< levels of nested shards, at most 64 [4] */
    uint64_t chunks_per_shard; /**< chunks of one shard [2^24] */
    /** length of one decoded chunk, or of a whole shard if codecs before the sharding
     * need it at once [2 GiB, or half of
     * `zarr_context_options.memory_bytes` if that is more] */
    uint64_t chunk_bytes;
    /** length of one stored object [computed from the decoded length and the codecs] */
    uint64_t encoded_bytes;
    uint32_t node_name_bytes;      /**< length of a node's name [1024] */
    uint32_t dimension_name_bytes; /**< length of a dimension's name [64 KiB] */
    /** keys of one listing, and names in one walk through a hierarchy [10 Mi] */
    uint64_t listing_keys;
    /** estimated memory of all data types with parameters, such as structs, that a
     * context has met and keeps until its end [128 MiB] */
    uint64_t dtype_bytes;
    /** as `chunk_bytes`, for elements of variable length, 16 bytes or more each. The
     * bytes that they point to have the same limit of their own. [half of
     * `zarr_context_options.memory_bytes`; at least 256 MiB, but never more than all of
     * `memory_bytes`; at most `chunk_bytes`] */
    uint64_t variable_chunk_bytes;
    /** directories that one listing, or one walk through a hierarchy, finds behind
     * symbolic links; each counts once for each path that leads to it [64 Ki] */
    uint64_t linked_directories;
} zarr_limits;

#define ZARR_LIMITS_INIT ZARR_SIZE_FIRST(zarr_limits)

/**
 * @name Narrow limits
 * These functions fill a struct of limits, which zarr_context_create() takes. Change
 * members afterwards as needed. zarr_context_limits() gives the defaults.
 * @{
 */
/**
 * Fills the first `out_bytes` bytes of `*out` with narrow limits, `struct_size` included.
 * This is zarr_limits_untrusted() for languages other than C and C++. A program that was
 * compiled with a shorter struct gets its own members and no byte more.
 * @param out filled
 * @param out_bytes the size of the caller's struct
 */
ZARR_API void zarr_limits_untrusted_sized(zarr_limits *out, uint32_t out_bytes);

/**
 * Fills `*out` with narrow limits for data of unknown origin. A chunk has at most 256
 * MiB, or 64 MiB if its elements have variable length. Metadata has at most 4 MiB, a JSON
 * string 1 MiB, and JSON 64 levels. A listing has at most 1 Mi keys and 4 Ki directories
 * behind symbolic links, a data type 32 MiB. All members but `encoded_bytes` are set, so
 * ZARRC_LIMITS does not change them.
 * @param out filled
 */
static inline void zarr_limits_untrusted(zarr_limits *out)
{
    zarr_limits_untrusted_sized(out, sizeof *out);
}
/** @} */

/**
 * Sets members of a struct of limits by their names. ZARRC_LIMITS and the option --limit
 * of the program take the same text, such as "chunk_bytes=8G,json_depth=2000". K, M, G or
 * T may follow a number, for powers of 1024. If a name is repeated, the last value
 * counts. Thread class: solo in `limits`.
 * @param limits borrowed; its `struct_size` is set. Unchanged on failure
 * @param text borrowed; NAME=VALUE, separated by commas; "" sets nothing
 * @retval ZARR_ERR_INVALID a name is not a member of the struct, or a value is not a
 * number from 1 to the greatest that the member takes; the message quotes it
 * @retval ZARR_ERR_ABI `struct_size` does not fit
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_limits_parse(zarr_limits *limits,
                                                       const char *text, zarr_error *err);

ZARR_END_DECLS

#endif
