/**
 * @file
 * New arrays: how a program describes and creates them.
 */
#ifndef ZARRC_CREATE_H
#define ZARRC_CREATE_H

#include <zarrc/array.h>
#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/**
 * Describes a new array. `data_type` is required, and so is `shape` unless `ndim` is 0.
 * With `like` or `document`, neither is. All other members may be NULL or zero. Pointers
 * are borrowed for the call.
 */
typedef struct zarr_array_spec {
    uint32_t struct_size, flags; /**< `flags`: ZARR_SPEC_* */
    int32_t zarr_format;         /**< 2 or 3; 0: 3 */
    int32_t ndim;                /**< number of dimensions; 0: a single element */
    const uint64_t *shape;       /**< lengths of the dimensions in elements */
    /** shape of a chunk in elements; NULL: about 1 MiB. If "sharding_indexed" is in
     * `codecs`, it is the shape of a shard */
    const uint64_t *chunk_shape;
    /** v3: shape of a shard in elements, multiples of `chunk_shape`. NULL: no
     * shards, unless `chunk_grid` or `codecs` makes them */
    const uint64_t *shard_shape;
    /** data type as zarr_dtype_find() takes it, such as "float32" or "<f4"; the v2
     * spelling sets the stored byte order, too */
    const char *data_type;
    /** JSON text as the data type spells it, such as "0" or "\"NaN\""; in v2 also "null".
     * With the v2 codecs json2 and msgpack2 it may be any JSON that the codec can store,
     * such as a list. NULL: zero, or "" for text */
    const char *fill_value;
    /** v3: JSON array of codecs. With `shard_shape`, or with both `chunk_grid` and
     * `chunk_shape`, they are the codecs of the chunks: the call puts them inside a
     * "sharding_indexed". Else they are the whole chain. If it has no array-to-bytes
     * codec, the call inserts that of the data type, such as `bytes`. A `bytes` without
     * `endian` gets the byte order of `data_type`, or else little-endian. v2: JSON object
     * with `filters` and `compressor`.
     *
     * NULL: zstd. If elements have a fixed size and the default memory of the handle is
     * CUDA, CUDA pinned or CUDA managed: blosc with lz4 and shuffle. Neither codec gets a
     * checksum (see ZARR_SPEC_CHECKSUM) */
    const char *codecs;
    const char *index_codecs; /**< codecs of the shard index; NULL: bytes and crc32c */
    const char *attributes;   /**< JSON object; NULL: none */
    /** a name for each dimension, or NULL for a dimension without a name; v2 arrays keep
     * them in the attribute _ARRAY_DIMENSIONS. NULL: no names */
    const char *const *dimension_names;
    /** v3: encoding of chunk keys: a name such as "default" or "v2", or a JSON object
     * with `name` and `configuration`. NULL: "default" */
    const char *key_encoding;
    /** separator in chunk keys, '/' or '.'; 0: '.' in v2 arrays, '/' in v3 arrays, unless
     * an encoding of a plug-in has another one. Must be 0 if `key_encoding` is a JSON
     * object, which names the separator itself */
    char separator;
    /** order of the elements in chunks, 'C' or 'F', which in v3 adds a transpose codec;
     * 0: 'C' */
    char order;
    uint16_t reserved;
    uint32_t reserved2;
    /** the text of a whole zarr.json or .zarray, in place of the other members. Only
     * `flags`, `cancel`, `zarr_format` and, beside a .zarray, `attributes` may be set,
     * too. `zarr_format` must be 0 or the format of the text */
    const char *document;
    /** v3: grid of chunks that differ in shape, such as "rectilinear": a JSON object with
     * `name` and `configuration`. With `chunk_shape` it is the grid of the shards; it
     * excludes `shard_shape`. NULL: a regular grid */
    const char *chunk_grid;
    /**
     * a model: the new array is like this one in each member that is NULL or zero, shape
     * and data type included. Elements are not copied. NULL: the defaults stated above.
     * Excludes `document`.
     *
     * - If shapes or names are given, `ndim` is required, and must be the model's.
     * - `chunk_grid` replaces chunks and shards.
     * - Another data type gets its own default fill value.
     * - Another `zarr_format` gets its default chunk keys. If all dimensions have names,
     *   the missing value of the model is kept, by the rules of zarr_node_migrate(). It
     *   is not kept if `attributes` or another data type is given.
     * - `codecs` replaces the whole chain; in a sharded array, the chain of the chunks.
     * - `order` replaces the transposes at the beginning of the chain.
     * - Nested shards, and codecs around shards, are kept only if no member changes
     *   chunks, shards or codecs
     */
    struct zarr_array *like;
    /** once it is set, the call ends with ZARR_ERR_CANCELLED if it waits for another call
     * at the path or deletes an old node; may be NULL */
    const zarr_cancel *cancel;
} zarr_array_spec;

#define ZARR_ARRAY_SPEC_INIT ZARR_SIZE_FIRST(zarr_array_spec)

/** Flags of zarr_array_spec. */
enum {
    /**
     * first delete what is at the path: a node, even a damaged one, with everything below
     * it, and chunks that an array left there. If there are only other keys, such as
     * files in a directory, the call fails with ZARR_ERR_EXISTS and deletes nothing
     */
    ZARR_SPEC_OVERWRITE = 1,
    ZARR_SPEC_NO_PARENTS = 2,     /**< do not create parent groups that are missing */
    ZARR_SPEC_INDEX_AT_START = 4, /**< store the index of a shard before its chunks */
    /** if an array exists with equal metadata, open it. Attributes may differ, and
     * dimensions may be longer than in `shape`. If something else differs, the call fails
     * with ZARR_ERR_EXISTS, and the message names it */
    ZARR_SPEC_IF_MISSING = 8,
    /** with `like`: the new array has no shards, even if the model has */
    ZARR_SPEC_NO_SHARDS = 16,
    /** chunks that are already stored at the path become chunks of the new array.
     * Excludes ZARR_SPEC_OVERWRITE */
    ZARR_SPEC_KEEP_CHUNKS = 32,
    /** with `like` of the other format: keep the model's fill value and attribute
     * _FillValue, even if this changes which elements xarray shows as missing */
    ZARR_SPEC_KEEP_FILL = 64,
    /** the handle claims the node until zarr_array_release_claim(), so that an array and
     * its first elements come from one caller. Until then, calls that create, copy,
     * delete or re-encode a node at the path wait or fail with ZARR_ERR_CONFLICT. An
     * object `.zarrc-job` says that the array is not complete. If ZARR_SPEC_IF_MISSING
     * opens an array that exists, the handle has no claim */
    ZARR_SPEC_CLAIM = 128,
    /** append crc32c, which detects a changed byte, to the codecs of each chunk; in v2 to
     * the filters. Codecs that have it already stay as they are. Excludes `document` */
    ZARR_SPEC_CHECKSUM = 256,
    /** with ZARR_SPEC_OVERWRITE: first remove the old nodes from the consolidated
     * metadata of the groups above (ZARR_CONSOLIDATED_REMOVE). Call
     * zarr_group_consolidated_update() afterwards to add the array */
    ZARR_SPEC_CONSOLIDATED = 512
};

/**
 * Creates an array and opens it. Parent groups that are missing are created, too. No
 * chunk is written: all elements read as the fill value at first.
 *
 * If chunks are stored at the path already, as after an interrupted delete, the call
 * fails with ZARR_ERR_EXISTS. ZARR_SPEC_OVERWRITE and zarr_node_delete() delete such
 * chunks. In a store that cannot list, the call may not find them.
 *
 * If several threads or processes create a node at one path, one call works at a time.
 * The others wait, at most `zarr_store_options.lock_wait_ms`. The first call succeeds.
 * The others return ZARR_ERR_EXISTS, open what the first one made (ZARR_SPEC_IF_MISSING),
 * or replace it (ZARR_SPEC_OVERWRITE). In a store without locks, the first call that
 * writes the document succeeds.
 *
 * Spec: Zarr v3 core, "Array metadata", "Chunk grids", "Chunk encoding" and "Node names";
 * Zarr v2, "Arrays".
 *
 * @param out receives the array; owned: zarr_array_free()
 * @param store borrowed; the array keeps it alive
 * @param path path of the array, such as "a/b"; "" is the root of the store
 * @param spec describes the array
 * @param opts options of the handle; NULL: defaults
 * @retval ZARR_ERR_EXISTS there is a node at the path, or chunks of one, and no flag
 * allows that
 * @retval ZARR_ERR_INVALID a member of `spec` is wrong, or two contradict each other; or
 * the store is read-only
 * @retval ZARR_ERR_UNSUPPORTED a codec or data type is unknown, or does not exist in the
 * format
 * @see zarr_array_open(), zarr_array_write(), zarr_group_create(), zarr_context_list()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_create(
    zarr_array **out, zarr_store *store, const char *path, const zarr_array_spec *spec,
    const zarr_array_open_options *opts, zarr_error *err);

/**
 * Releases the claim of ZARR_SPEC_CLAIM. The claim also ends when the last owner frees
 * the array; `.zarrc-job` then stays.
 * @param array may have no claim
 * @param is_complete 1: the array has its elements, and `.zarrc-job` is deleted; 0: it
 * stays
 * @param cancel once it is set, the call does not wait for the store; may be NULL
 * @retval ZARR_ERR_IO `.zarrc-job` could not be deleted; the claim is released
 * @retval ZARR_ERR_CANCELLED `cancel` was set, and `.zarrc-job` may be there; the claim
 * is released
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_release_claim(zarr_array *array,
                                                              int is_complete,
                                                              const zarr_cancel *cancel,
                                                              zarr_error *err);

ZARR_END_DECLS

#endif
