/**
 * @file
 * Chains of codecs by themselves: encode and decode single chunks, without an array and
 * without a store.
 */
#ifndef ZARRC_CHAIN_H
#define ZARRC_CHAIN_H

#include <zarrc/base.h>
#include <zarrc/create.h>
#include <zarrc/error.h>
#include <zarrc/io.h>
#include <zarrc/memory.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/**
 * Makes a chain of codecs.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Filters" and "Chunks".
 *
 * @param out receives the chain; owned: zarr_chain_free()
 * @param ctx borrowed; the chain keeps it alive. The call seals its registries
 * @param spec describes the chunks as those of a new array: `data_type`, `ndim` and
 * `chunk_shape` are required. Format, codecs, fill value, order,
 * shard shape, index codecs and ZARR_SPEC_INDEX_AT_START mean what they mean there;
 * with `shard_shape`, a chunk is a whole shard. `shape` is ignored. `like`, `document`
 * and `chunk_grid` must be NULL
 * @retval ZARR_ERR_INVALID a member of `spec` is wrong, or a codec does not take what the
 * codec before it gives
 * @retval ZARR_ERR_UNSUPPORTED a codec or data type is unknown
 * @see zarr_array_codecs(), zarr_context_list()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_chain_open(zarr_chain **out, zarr_context *ctx,
                                                     const zarr_array_spec *spec,
                                                     zarr_error *err);

/** Frees a chain. No other thread may use it any more. `chain` may be NULL. */
ZARR_API void zarr_chain_free(zarr_chain *chain);

/**
 * @name Encode and decode one chunk
 * Tensors have the shape of the chunk, any strides, any byte order and any kind of
 * memory. Encoded bytes may be in memory of any kind, too.
 * @{
 */
/**
 * Returns how many bytes an encoded chunk can have at most; UINT64_MAX if the metadata
 * gives no bound.
 * @param chain borrowed
 */
ZARR_API uint64_t zarr_chain_bound(const zarr_chain *chain);
/**
 * Encodes one chunk.
 * @param chain borrowed
 * @param src the elements
 * @param dst room for the encoded chunk: `dst->bytes` bytes. `dst->bytes` becomes the
 * length of the encoded chunk
 * @param opts as for zarr_array_encode(); NULL: defaults
 * @retval ZARR_ERR_LIMIT `dst` is too small; `dst->bytes` is the length that is needed
 * @retval ZARR_ERR_INVALID the tensor does not fit
 * @retval ZARR_ERR_UNSUPPORTED a codec cannot encode
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_chain_encode(zarr_chain *chain,
                                                       const zarr_tensor *src,
                                                       zarr_memory *dst,
                                                       const zarr_io_options *opts,
                                                       zarr_error *err);
/**
 * Decodes one chunk.
 * @param chain borrowed
 * @param src the encoded chunk; not changed
 * @param dst where the elements go
 * @param opts as for zarr_array_decode(); NULL: defaults
 * @retval ZARR_ERR_CORRUPT the bytes are damaged
 * @retval ZARR_ERR_INVALID the tensor does not fit, or `src` has no memory
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_chain_decode(zarr_chain *chain,
                                                       const zarr_memory *src,
                                                       const zarr_tensor *dst,
                                                       const zarr_io_options *opts,
                                                       zarr_error *err);
/** @} */

/**
 * Returns the codecs as the JSON text of an array. It has also the members that the chunk
 * decides. Borrowed; lives as long as the chain. NULL if there is no memory.
 * @param chain borrowed
 */
ZARR_API const char *zarr_chain_codecs(const zarr_chain *chain);

ZARR_END_DECLS

#endif
