/**
 * @file
 * Arrays: open them, and get their shape, data type, grids and attributes.
 * zarrc/create.h creates arrays, zarrc/io.h reads and writes elements, and zarrc/shape.h
 * resizes and appends.
 */
#ifndef ZARRC_ARRAY_H
#define ZARRC_ARRAY_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/selection.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/** Use of consolidated metadata. 0: use it if it is there. zarr_group_open() uses that of
 * the group that it opens. zarr_group_open_array() and zarr_group_open_node() use that of
 * their argument, the group below which they open a node. */
enum {
    ZARR_CONSOLIDATED_MUST = 1, /**< fail with ZARR_ERR_NOT_FOUND without it */
    ZARR_CONSOLIDATED_NEVER = 2 /**< read the documents of the nodes */
};

/** What a write does with a chunk whose elements all equal the fill value, bit for bit.
 * The default of a handle is ZARR_EMPTY_CHUNKS_SKIP. */
enum {
    /** erase the chunk instead of storing it. For the comparison, the library copies a
     * chunk to host memory if the CPU cannot read it */
    ZARR_EMPTY_CHUNKS_SKIP = 1,
    ZARR_EMPTY_CHUNKS_WRITE = 2 /**< store it as any other chunk, without a comparison */
};
/** What a read does with a chunk that the store does not have. The default of a handle is
 * ZARR_MISSING_FILL. */
enum {
    ZARR_MISSING_FILL = 1, /**< its elements are the fill value */
    ZARR_MISSING_ERROR = 2 /**< the read fails with ZARR_ERR_NOT_FOUND */
};

/** Flags of zarr_array_open_options. */
enum {
    /**
     * zarr_array_open_document() and zarr_array_with(): the handle's shape reaches to the
     * end of the grid of blocks. Use this flag if the array may have grown since the
     * document was read. A regular grid has no end: each length of the shape is then the
     * largest multiple of the block's length up to 2^62. Calls that read the metadata
     * again or change it fail with ZARR_ERR_INVALID
     */
    ZARR_OPEN_GRID_SHAPE = 1,
    /**
     * zarr_array_open_document(): the document comes from zarr_group_list(), so the store
     * has it. The handle behaves like one from zarr_array_open(): calls check whether the
     * store still has the array. ZARR_ERR_INVALID without a store
     */
    ZARR_OPEN_STORED = 2
};

/** Options of an array handle, which zarr_array_open() and zarr_array_create() take. */
typedef struct zarr_array_open_options {
    uint32_t struct_size, flags; /**< `flags`: ZARR_OPEN_* */
    int32_t zarr_format;         /**< 2 or 3; 0: look for both, v3 first */
    /** one of ZARR_CONSOLIDATED_*, for zarr_group_open_array(), and for
     * zarr_group_open_node() if its parameter `group_opts` is NULL. Calls that open an
     * array by a path of a store always read the array's own documents */
    uint32_t consolidated;
    /** store of the chunks, which the array keeps alive; NULL: that of the metadata */
    zarr_store *chunk_store;
    /** default memory of tensors, as in `zarr_memory`; 0: that of the store of the
     * chunks, or else of the context */
    int32_t device_type, device_id;
    /** as in `zarr_context_options`; copied; NULL: the context's */
    const char *codec_preference;
    /** as in `zarr_context_options`; copied; NULL: the context's */
    const char *pipeline;
    /** one of ZARR_EMPTY_CHUNKS_*: whether chunks of fill values are stored */
    uint32_t empty_chunks;
    uint32_t missing_chunks; /**< one of ZARR_MISSING_*: what a missing chunk means */
    uint32_t trust;    /**< one of ZARR_TRUST_* of zarrc/context.h; 0: the context's */
    uint32_t reserved; /**< must be 0 */
    /** stops the opening with ZARR_ERR_CANCELLED once it is set; borrowed for the call;
     * may be NULL. zarr_array_create() uses the one of `zarr_array_spec` */
    const zarr_cancel *cancel;
} zarr_array_open_options;

#define ZARR_ARRAY_OPEN_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_array_open_options)

/**
 * Opens the array at a path of a store. The call reads and checks the metadata, and no
 * chunks.
 *
 * Spec: Zarr v3 core, "Array metadata"; Zarr v2, "Arrays".
 *
 * @param out receives the array; owned: zarr_array_free()
 * @param store borrowed; the array keeps it alive
 * @param path path of the array, such as "a/b"; "" is the root of the store
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND there is no array; the message tells if there is a group
 * @retval ZARR_ERR_CORRUPT the metadata breaks the rules of the format
 * @retval ZARR_ERR_UNSUPPORTED this build lacks a codec, data type or other extension
 * that the metadata names
 * @retval ZARR_ERR_INVALID the path or an option is wrong
 * @see zarr_array_create(), zarr_group_open_array(), zarr_array_read(),
 * zarr_array_shape()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_open(zarr_array **out, zarr_store *store,
                                                     const char *path,
                                                     const zarr_array_open_options *opts,
                                                     zarr_error *err);

/**
 * Opens an array from the text of its metadata, without I/O (but see `store`).
 * zarr_array_decode() and zarr_array_encode() need no store. With this handle, reads,
 * writes and zarr_array_recheck() do not check whether the store still has the array,
 * unless ZARR_OPEN_STORED is set.
 *
 * Spec: Zarr v3 core, "Array metadata"; Zarr v2, "Arrays".
 *
 * @param out receives the array; owned: zarr_array_free()
 * @param ctx borrowed; the array keeps it alive. The call seals its registries
 * (zarr_context_create())
 * @param text the text of a zarr.json or .zarray
 * @param attributes v2: the text of the .zattrs; NULL: there are none. Must be NULL in v3
 * @param path path of the array in its store, for chunk keys and messages; NULL: the root
 * @param store store of the array, which the array keeps alive; NULL: there is none, and
 * calls that need one fail with ZARR_ERR_UNSUPPORTED. If a v2 document has no
 * dimension_separator, the call finds the separator in the keys of stored chunks, as
 * zarr_array_open() does
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_CORRUPT the text is not JSON, or breaks the rules of the format
 * @retval ZARR_ERR_NOT_FOUND the text describes a group
 * @retval ZARR_ERR_UNSUPPORTED this build lacks a codec, data type or other extension
 * that the text names
 * @retval ZARR_ERR_INVALID an argument or an option is wrong, or the store belongs to
 * another context
 * @retval ZARR_ERR_LIMIT the text is longer than `zarr_limits.metadata_bytes`
 * @see zarr_array_open(), zarr_array_decode(), zarr_array_metadata()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
/* NOLINT(function-size): the two texts of a node, and what zarr_array_open() takes */
zarr_array_open_document(zarr_array **out, zarr_context *ctx, const char *text,
                         const char *attributes, const char *path, zarr_store *store,
                         const zarr_array_open_options *opts, zarr_error *err);

/**
 * Makes another handle of an array, with other options and without I/O. If one handle
 * changes the metadata, call zarr_array_refresh() for the other.
 * @param out receives the array; owned: zarr_array_free()
 * @param array borrowed
 * @param opts options; a member that is NULL or zero means the value that `array` has;
 * NULL: all values of `array`
 * @retval ZARR_ERR_INVALID an option is wrong, or asks for another format
 * @see zarr_array_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_with(zarr_array **out, zarr_array *array,
                                                     const zarr_array_open_options *opts,
                                                     zarr_error *err);

/**
 * @name Owners of an array
 * @{
 */
/**
 * Adds an owner to an array.
 * @param array borrowed
 * @return `array`; the caller owns it once more
 */
ZARR_API zarr_array *zarr_array_ref(zarr_array *array);
/**
 * Gives up one ownership of an array. The last owner frees the handle. No write is lost.
 * @param array may be NULL
 */
ZARR_API void zarr_array_free(zarr_array *array);
/** @} */

/* ---- what it is ---------------------------------------------------------- */

/**
 * @name What an array is
 * These calls ask the handle, not the store. What they return is borrowed and lives as
 * long as the handle, even if the array is resized or changed. A call that returns JSON
 * text makes it at its first use, and returns NULL if there is no memory for it.
 * @{
 */
/** Returns the shape in elements, one entry for each dimension. */
ZARR_API const uint64_t *zarr_array_shape(const zarr_array *array);
/** Returns the number of dimensions. */
ZARR_API int32_t zarr_array_ndim(const zarr_array *array);
/** Returns the data type. It lives as long as the context. */
ZARR_API const zarr_dtype *zarr_array_dtype(const zarr_array *array);
/** Returns the fill value: one element in the machine's byte order. NULL if the fill
 * value in the metadata is null. Missing elements then read as zero. There are two
 * exceptions in v2: datetime64 and timedelta64 read as NaT, and elements of the codecs
 * json2 and msgpack2 as null. */
ZARR_API const void *zarr_array_fill_value(const zarr_array *array);
/** Returns the missing value, which xarray shows as NaN: one element in the machine's
 * byte order. In v3 it is the attribute `_FillValue`. In v2 it is the fill value, or this
 * attribute if the fill value is null. NULL: the array has no such value, or its elements
 * are neither numbers nor booleans. NULL, too, if a dimension has no name, because xarray
 * reads only arrays whose dimensions have names. */
ZARR_API const void *zarr_array_missing_value(const zarr_array *array);
/** Returns the name of dimension `dim`; NULL if it has none. */
ZARR_API const char *zarr_array_dimension_name(const zarr_array *array, int32_t dim);
/** Returns the format, 2 or 3. */
ZARR_API int32_t zarr_array_zarr_format(const zarr_array *array);
/** Returns the path, without slashes at its ends; "" for the root. */
ZARR_API const char *zarr_array_path(const zarr_array *array);
/** Returns the metadata document as canonical JSON text, in v3 with the attributes. */
ZARR_API const char *zarr_array_metadata(const zarr_array *array);
/**
 * Returns the attributes as the JSON text of an object, "{}" if there are none. The text
 * is always UTF-8.
 */
ZARR_API const char *zarr_array_attributes(const zarr_array *array);
/**
 * Returns the codecs as a JSON list in the notation of v3. For a v2 array this is the
 * chain that its filters and compressor make. `zarr_array_spec.codecs` takes the list for
 * a new v3 array, not for a new v2 array. If "sharding_indexed" is in the list, set
 * `chunk_shape` of the spec to the shape of a block. To copy codecs and shapes to a new
 * array of either format, set `zarr_array_spec.like` instead.
 */
ZARR_API const char *zarr_array_codecs(const zarr_array *array);
/** Returns the context, borrowed from the array. */
ZARR_API zarr_context *zarr_array_context(const zarr_array *array);
/** Stores in `device_type` and `device_id` the default memory of tensors: that of the
 * handle's options, or else of its store of the chunks, or else of the context. For
 * elements of variable length, the defaults of store and context do not count: the
 * default is host memory, unless the handle's options name another. Reads and writes of
 * such elements fail with ZARR_ERR_UNSUPPORTED in device memory. */
ZARR_API void zarr_array_memory(const zarr_array *array, int32_t *device_type,
                                int32_t *device_id);
/** Returns the store of the metadata, owned by the array. */
ZARR_API zarr_store *zarr_array_store(const zarr_array *array);
/** Returns the store of the chunks, owned by the array. */
ZARR_API zarr_store *zarr_array_chunk_store(const zarr_array *array);
/** @} */

/**
 * @name The grids of chunks and of blocks
 * A *chunk* is the smallest unit that is decoded on its own. A *shard* is an object that
 * holds chunks. A *block* is what the store has as one object: a shard, or a chunk of an
 * array without shards. Reads along chunks and writes along blocks are fastest. Grid
 * coordinates count from 0. Shapes and coordinates have one entry for each
 * dimension. Returned shapes are borrowed as that of zarr_array_shape().
 *
 * Spec: Zarr v3 core, "Chunk grids"; Zarr v3 codec "sharding_indexed".
 * @{
 */
/**
 * Returns the shape of a chunk in elements. NULL if chunks differ in shape. In nested
 * shards this is the innermost chunk. If codecs such as reshape precede the sharding, the
 * chunk is the whole shard.
 */
ZARR_API const uint64_t *zarr_array_chunk_shape(const zarr_array *array);
/**
 * Returns the shape of a block in elements. NULL if blocks differ in shape;
 * zarr_array_block_extent() tells the shape of each.
 */
ZARR_API const uint64_t *zarr_array_block_shape(const zarr_array *array);
/**
 * Copies the shapes that the array has at this moment. Use this call if the handle stays
 * open while its array grows: each shape that zarr_array_shape() has returned stays in
 * memory until the handle is freed.
 * @param shape receives the shape in elements; NULL: not wanted
 * @param chunk_shape receives the shape of a chunk, zeros if chunks differ in shape;
 * NULL: not wanted
 * @param block_shape receives the shape of a block, zeros if blocks differ in shape;
 * NULL: not wanted
 */
ZARR_API void zarr_array_copy_shapes(const zarr_array *array, uint64_t *shape,
                                     uint64_t *chunk_shape, uint64_t *block_shape);
/** Returns the grid of the blocks as JSON text: an object with `name` and
 * `configuration`, as the array's metadata has it. */
ZARR_API const char *zarr_array_chunk_grid(const zarr_array *array);
/**
 * Stores in `counts` how many chunks there are along each dimension. If all chunks have
 * one shape, this is shape / chunk shape, rounded up. All chunks in shards have one
 * shape, even if the shards differ in shape.
 */
ZARR_API void zarr_array_chunk_counts(const zarr_array *array, uint64_t *counts);
/**
 * Stores in `origin` the first element of the chunk with the grid coordinates `chunk`,
 * and in `shape` its stored shape. The chunk may reach beyond the array. `origin` or
 * `shape` may be NULL. In nested shards these are the innermost chunks.
 * @retval ZARR_ERR_INVALID there is no such chunk
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_extent(const zarr_array *array,
                                                             const uint64_t *chunk,
                                                             uint64_t *origin,
                                                             uint64_t *shape,
                                                             zarr_error *err);
/** Stores in `counts` how many blocks there are along each dimension. */
ZARR_API void zarr_array_block_counts(const zarr_array *array, uint64_t *counts);
/**
 * Stores in `origin` the first element of the block with the grid coordinates `block`,
 * and in `shape` its stored shape. The block may reach beyond the array. `origin` or
 * `shape` may be NULL.
 * @retval ZARR_ERR_INVALID there is no such block
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_block_extent(const zarr_array *array,
                                                             const uint64_t *block,
                                                             uint64_t *origin,
                                                             uint64_t *shape,
                                                             zarr_error *err);
/**
 * Finds the block that holds the element with the coordinates `at`, and stores its grid
 * coordinates in `block`.
 * @retval ZARR_ERR_INVALID there is no such element
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_block_locate(const zarr_array *array,
                                                             const uint64_t *at,
                                                             uint64_t *block,
                                                             zarr_error *err);
/**
 * Stores in `shape` the largest length that blocks have along each dimension, for
 * buffers. If the grid of a plug-in has no function `n_equal`, the call examines only the
 * first 65536 blocks along each dimension, and a later one may be larger.
 */
ZARR_API void zarr_array_block_largest(const zarr_array *array, uint64_t *shape);
/** @} */

/**
 * Selects whole blocks of an array. Slices and indexes count blocks, not elements.
 * ZARR_DIM_ALL, ZARR_DIM_SLICE with a step of 1 and ZARR_DIM_INDEX are allowed; an index
 * keeps its dimension.
 * @param out receives the selection; owned: zarr_selection_free()
 * @param array borrowed
 * @param n_dims,dims what is selected, as for zarr_selection_dims()
 * @retval ZARR_ERR_INVALID another kind of selection or step is given, or an index is out
 * of bounds
 * @see zarr_array_block_extent(), zarr_array_block_shape()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_select_blocks(zarr_selection **out, const zarr_array *array, int32_t n_dims,
                         const zarr_dim_selection *dims, zarr_error *err);

/* ---- changes in the store ------------------------------------------------ */

/**
 * Reads the metadata of an array again, which other handles and processes may have
 * changed. Pointers that the handle gave before stay valid.
 * @param array borrowed
 * @param changed becomes 1 if the metadata differs from what the handle had, else 0; may
 * be NULL
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_NOT_FOUND the array was deleted
 * @retval ZARR_ERR_CORRUPT the metadata is damaged; the handle stays as it was
 * @see zarr_array_shape(), zarr_array_attributes()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_refresh(zarr_array *array, int *changed,
                                                        const zarr_cancel *cancel,
                                                        zarr_error *err);

/**
 * Checks whether the stored array still has all elements of this handle. Call it after
 * several reads that belong together. ZARR_OK means that none of these reads returned a
 * fill value in place of an element that another writer removed. The handle keeps its
 * shape.
 *
 * In three cases the call cannot check, and still returns ZARR_OK:
 *
 * - in a store with ZARR_STORE_CAP_IMMUTABLE;
 * - with a handle of zarr_array_open_document() without ZARR_OPEN_STORED;
 * - for an array that only consolidated metadata describes.
 *
 * @param array borrowed
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_NOT_FOUND the array was moved or deleted
 * @retval ZARR_ERR_CONFLICT the stored array is smaller, or another array with other
 * chunks, data type, codecs or fill value has taken its place
 * @see zarr_array_refresh()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_recheck(zarr_array *array,
                                                        const zarr_cancel *cancel,
                                                        zarr_error *err);

/**
 * @name Attributes of an array
 * Calls that get an attribute read the handle. A call that changes an attribute changes
 * the document in the store, under its lock. Changes by other handles are kept, and this
 * handle has them afterwards. zarr_array_attributes() returns all attributes at once.
 *
 * Spec: Zarr v3 core, "Array metadata"; Zarr v2, "Attributes".
 * @{
 */
/**
 * Copies one attribute as JSON text into a buffer of the caller's, as snprintf() does.
 * Text values keep their quotes.
 * @param array borrowed
 * @param name name of the attribute
 * @param text,cap buffer of `cap` bytes; `text` may be NULL if `cap` is 0
 * @param text_bytes becomes the length of the text without its terminator, which may
 * exceed `cap`; may be NULL
 * @retval ZARR_ERR_NOT_FOUND there is no such attribute
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_get(const zarr_array *array,
                                                              const char *name,
                                                              char *text, size_t cap,
                                                              size_t *text_bytes,
                                                              zarr_error *err);
/**
 * Sets one attribute.
 * @param array borrowed
 * @param name name of the attribute
 * @param json the value as JSON text, such as "3", "\"K\"" or "[1,2]"
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_INVALID `json` is not JSON, or the store is read-only
 * @retval ZARR_ERR_CONFLICT the array was replaced by a group
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_set(zarr_array *array,
                                                              const char *name,
                                                              const char *json,
                                                              const zarr_cancel *cancel,
                                                              zarr_error *err);
/**
 * Deletes one attribute.
 * @param array borrowed
 * @param name name of the attribute
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_NOT_FOUND there is no such attribute
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_delete(
    zarr_array *array, const char *name, const zarr_cancel *cancel, zarr_error *err);
/**
 * Sets several attributes at once.
 * @param array borrowed
 * @param json_object JSON object whose members are set
 * @param replace_all 0: other attributes stay; 1: other attributes are deleted
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_INVALID `json_object` is not a JSON object, or the store is read-only
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_attributes_merge(zarr_array *array, const char *json_object, int replace_all,
                            const zarr_cancel *cancel, zarr_error *err);
/** @} */

ZARR_END_DECLS

#endif
