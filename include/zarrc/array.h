/**
 * @file
 * Arrays: open, create, read and write; attributes and chunks. zarrc/shape.h resizes and
 * appends.
 */
#ifndef ZARRC_ARRAY_H
#define ZARRC_ARRAY_H

#include <zarrc/base.h>
#include <zarrc/cancel.h>
#include <zarrc/dtype.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>
#include <zarrc/plan.h>
#include <zarrc/request.h>
#include <zarrc/selection.h>
#include <zarrc/store.h>

ZARR_BEGIN_DECLS

/**
 * An open array. Several threads may share the handle. A call that changes the array in
 * the store, such as zarr_array_resize(), also changes what its own handle knows; another
 * handle of the array learns of it by zarr_array_refresh(). Thread class: shared.
 */
typedef struct zarr_array zarr_array;

/** Use of consolidated metadata. */
enum {
    ZARR_CONSOLIDATED_DEFAULT = 0, /**< as ZARR_CONSOLIDATED_AUTO */
    ZARR_CONSOLIDATED_AUTO = 1,    /**< use it if the group that is opened has it */
    ZARR_CONSOLIDATED_MUST = 2,    /**< fail with ZARR_ERR_NOT_FOUND without it */
    ZARR_CONSOLIDATED_NEVER = 3    /**< read the documents of the nodes */
};

/** What a write does with a chunk whose elements all equal the fill value, bit for bit.
 */
enum {
    ZARR_EMPTY_CHUNKS_DEFAULT = 0, /**< as ZARR_EMPTY_CHUNKS_SKIP */
    /** erase the chunk instead of storing it. The CPU compares the elements, so a chunk
     * in memory that it cannot read is copied to the host for that */
    ZARR_EMPTY_CHUNKS_SKIP = 1,
    ZARR_EMPTY_CHUNKS_WRITE = 2 /**< store it as any other chunk, without a comparison */
};
/** What a read does with a chunk that the store does not have. */
enum {
    ZARR_MISSING_DEFAULT = 0, /**< as ZARR_MISSING_FILL */
    ZARR_MISSING_FILL = 1,    /**< its elements are the fill value */
    ZARR_MISSING_ERROR = 2    /**< the read fails with ZARR_ERR_NOT_FOUND */
};

/** What a write does with elements outside of the array's shape, in chunks or shards that
 * reach beyond it and that the write covers inside of it. */
enum {
    ZARR_OUTSIDE_DEFAULT = 0, /**< as ZARR_OUTSIDE_KEEP */
    /** read the old value and keep them: another handle may have made the array larger */
    ZARR_OUTSIDE_KEEP = 1,
    /** they become the fill value. This saves the read and the lock; only for a program
     * that knows that the array does not grow meanwhile */
    ZARR_OUTSIDE_RESET = 2
};
/** The order in which a write puts inner chunks into a shard. */
enum {
    ZARR_INNER_ORDER_DEFAULT = 0,     /**< as ZARR_INNER_ORDER_C */
    ZARR_INNER_ORDER_C = 1,           /**< of their coordinates, the last one fastest */
    ZARR_INNER_ORDER_MORTON = 2,      /**< along the Z-order curve */
    ZARR_INNER_ORDER_COLUMN_MAJOR = 3 /**< the first coordinate fastest */
};

/** Flags of zarr_array_open_options. */
enum {
    /**
     * zarr_array_open_document() and zarr_array_with(): the shape of the handle ends
     * where its chunk grid ends, not where the document says. A regular grid has no end:
     * each length is the largest multiple of the chunk's length below 2^62. This is for
     * documents whose shape is out of date, because the array may have grown. Calls that
     * read the metadata again or change it fail with ZARR_ERR_INVALID
     */
    ZARR_OPEN_GRID_SHAPE = 1
};

/** Options of an array handle, which zarr_array_open() and zarr_array_create() take. */
typedef struct zarr_array_open_options {
    uint32_t struct_size, flags; /**< `flags`: ZARR_OPEN_* */
    int32_t zarr_format;         /**< 2 or 3; 0: look for both, v3 first */
    /** zarr_group_open_array(): one of ZARR_CONSOLIDATED_*. Other calls always read the
     * array's own documents */
    uint32_t consolidated;
    /** store of the chunks, which the array keeps alive; NULL: the store of the metadata
     */
    zarr_store *chunk_store;
    /** memory of tensors that name none, as in `zarr_mem`; 0: the default memory of the
     * store of the chunks, or else of the context */
    int32_t device_type, device_id;
    /** as in `zarr_context_options`; copied; NULL: the context's */
    const char *codec_preference;
    /** as in `zarr_context_options`; copied; NULL: the context's */
    const char *pipeline;
    /** one of ZARR_EMPTY_CHUNKS_*: whether chunks of fill values are stored */
    uint32_t empty_chunks;
    uint32_t missing_chunks; /**< one of ZARR_MISSING_*: what a missing chunk means */
} zarr_array_open_options;

#define ZARR_ARRAY_OPEN_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_array_open_options)

/**
 * Opens the array at a path of a store. The call reads and checks the metadata. It reads
 * no chunks.
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
 * Opens an array from the text of its metadata, without I/O. For programs that have the
 * metadata already, and for zarr_array_decode() and zarr_array_encode(), which need no
 * store. Requests do not check whether the store still has the array.
 *
 * Spec: Zarr v3 core, "Array metadata"; Zarr v2, "Arrays".
 *
 * @param out receives the array; owned: zarr_array_free()
 * @param ctx borrowed; the array keeps it alive. The call seals its registries
 * @param text the text of a zarr.json or .zarray
 * @param attributes v2: the text of the .zattrs; NULL: there are none. Must be NULL in v3
 * @param path path of the array in its store, for chunk keys and messages; NULL: the root
 * @param store store of the array, which the array keeps alive; NULL: there is none, and
 * calls that need one fail with ZARR_ERR_UNSUPPORTED. A v2 document without
 * dimension_separator is compared with the chunks of the store, as zarr_array_open() does
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
 * Opens an array once more, with other options and without I/O. Both handles are of the
 * same array; a change through one of them is not seen by the other before
 * zarr_array_refresh().
 * @param out receives the array; owned: zarr_array_free()
 * @param array borrowed
 * @param opts options; members that are NULL or zero are as for `array`. NULL: all are
 * @retval ZARR_ERR_INVALID an option is wrong, or asks for another format
 * @see zarr_array_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_with(zarr_array **out, zarr_array *array,
                                                     const zarr_array_open_options *opts,
                                                     zarr_error *err);

/**
 * Describes a new array. `data_type` and, unless `ndim` is 0, `shape` are required,
 * except with `like` or `document`. Another member that is NULL or zero means the default
 * that is stated. Pointers are borrowed for the call.
 */
typedef struct zarr_array_spec {
    uint32_t struct_size, flags; /**< `flags`: ZARR_SPEC_* */
    int32_t zarr_format;         /**< 2 or 3; 0: 3 */
    int32_t ndim;                /**< number of dimensions; 0: a single element */
    const uint64_t *shape;       /**< lengths of the dimensions in elements */
    /** shape of a chunk in elements, the unit of reading; in sharded arrays of an inner
     * chunk. NULL: a shape of about 1 MiB is chosen */
    const uint64_t *chunk_shape;
    /** v3: shape of a shard in elements, the unit of writing: multiples of `chunk_shape`.
     * NULL: the array has no shards */
    const uint64_t *shard_shape;
    /** data type as zarr_dtype_find() takes it, such as "float32" or "<f4"; the v2
     * spelling sets the stored byte order, too */
    const char *data_type;
    /** JSON text as the data type spells it, such as "0" or "\"NaN\""; in v2 also "null".
     * For the v2 codecs json2 and msgpack2, JSON other than text is a value. NULL: zero,
     * or "" for text */
    const char *fill_value;
    /** v3: JSON array of codecs; those of the inner chunks in sharded arrays. If no codec
     * turns elements into bytes, `bytes` is put before them. A `bytes` without `endian`
     * gets the byte order of `data_type`, as in ">i2", or else little-endian. v2: a JSON
     * object with `filters` and `compressor`. NULL: zstd */
    const char *codecs;
    const char *index_codecs; /**< codecs of the shard index; NULL: bytes and crc32c */
    const char *attributes;   /**< JSON object; NULL: none */
    /** a name for each dimension, or NULL for a dimension without a name; v2 arrays keep
     * them in the attribute _ARRAY_DIMENSIONS. NULL: no names */
    const char *const *dimension_names;
    /** v3: how chunk keys are made: the name of an encoding such as "default" or "v2", or
     * a JSON object with `name` and `configuration`. NULL: "default" */
    const char *key_encoding;
    /** separator in chunk keys, '/' or '.'; 0: '.' in v2 arrays, '/' in the encodings
     * "default" and "v2"; other encodings decide by themselves */
    char separator;
    /** order of the elements in chunks, 'C' or 'F', which in v3 adds a transpose codec;
     * 0: 'C' */
    char order;
    uint16_t reserved;
    uint32_t reserved2;
    /** the text of a whole zarr.json or .zarray, instead of all members above except
     * `flags`; checked, and written in canonical form */
    const char *document;
    /** v3: grid of chunks that differ in shape, such as "rectilinear": a JSON object with
     * `name` and `configuration`. With `chunk_shape` it is the grid of the shards; it
     * excludes `shard_shape`. NULL: a regular grid */
    const char *chunk_grid;
    /**
     * a model: an array that the new array is like. Each member that is NULL or zero,
     * shape and data type included, is taken from the model. Elements are not copied.
     * NULL: the defaults stated above.
     *
     * Shapes and names need `ndim`, which must be the model's. `chunk_grid` replaces
     * chunks and shards. Another data type gets its own default fill value, another
     * `zarr_format` its default chunk keys. In the other format, an array whose
     * dimensions have names keeps its missing value, as zarr_node_migrate() does, unless
     * another data type or attributes are given: it gets or loses the attribute
     * _FillValue, or v2's fill value becomes null; a type for which xarray has no missing
     * value is a warning in the log. `codecs` replaces the whole chain; in a sharded
     * array, the chain of the inner chunks. `order` replaces the transposes before it.
     * Nested shards, and codecs around shards, are kept only if no member changes chunks,
     * shards or codecs. Excludes `document`. Borrowed for the call
     */
    struct zarr_array *like;
} zarr_array_spec;

#define ZARR_ARRAY_SPEC_INIT ZARR_SIZE_FIRST(zarr_array_spec)

/** Flags of zarr_array_spec. */
enum {
    /**
     * delete a node at the path first, with everything below it, also if it is damaged,
     * and chunks that an array left there. If there is no node but other keys, such as a
     * directory with files, the call fails with ZARR_ERR_EXISTS and deletes nothing;
     * zarr_node_delete() deletes those
     */
    ZARR_SPEC_OVERWRITE = 1,
    ZARR_SPEC_NO_PARENTS = 2,     /**< do not create parent groups that are missing */
    ZARR_SPEC_INDEX_AT_START = 4, /**< store the index of a shard before its chunks */
    /** open an array that exists, if its metadata is equal; attributes may differ, and
     * the array may have grown: no dimension is shorter than `shape`. Otherwise
     * ZARR_ERR_EXISTS names what differs */
    ZARR_SPEC_IF_MISSING = 8,
    /** with `like`: the new array has no shards, even if the model has */
    ZARR_SPEC_NO_SHARDS = 16,
    /** chunks that are stored at the path already become elements of the new array.
     * Without it they are refused. Excludes ZARR_SPEC_OVERWRITE */
    ZARR_SPEC_KEEP_CHUNKS = 32,
    /** with `like` of the other format: fill value and attribute _FillValue are those of
     * the model, even if xarray then knows another missing value */
    ZARR_SPEC_KEEP_FILL = 64
};

/**
 * Creates an array and opens it. Parent groups that are missing are created, too. The
 * array's own document is written last. No chunk is written: all elements read as the
 * fill value at first.
 *
 * If chunks are stored at the path already, as after a delete that was interrupted, the
 * call fails with ZARR_ERR_EXISTS: the elements of a deleted array do not come back. It
 * lists one level of the store below the path to see them. In a store that cannot list
 * it sees only the object `.zarrc-job` of an interrupted call. ZARR_SPEC_OVERWRITE and
 * zarr_node_delete() delete such chunks.
 *
 * Of several threads or processes that create the same array, one succeeds. The others
 * get ZARR_ERR_EXISTS or, with ZARR_SPEC_IF_MISSING, open what the first one made.
 *
 * Spec: Zarr v3 core, "Array metadata", "Chunk grids", "Chunk encoding" and "Node names";
 * Zarr v2, "Arrays".
 *
 * @param out receives the array; owned: zarr_array_free()
 * @param store borrowed; the array keeps it alive
 * @param path path of the array, such as "a/b"; "" is the root of the store
 * @param spec describes the array
 * @param opts options of the handle; NULL: defaults
 * @retval ZARR_ERR_EXISTS there is a node at the path, or what is left of one, and no
 * flag allows that
 * @retval ZARR_ERR_INVALID a member of `spec` is wrong, or two contradict each other; the
 * message names them; or the store is read-only
 * @retval ZARR_ERR_UNSUPPORTED a codec or data type is unknown, or does not exist in the
 * format
 * @see zarr_array_open(), zarr_array_write(), zarr_group_create(), zarr_context_list()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_create(
    zarr_array **out, zarr_store *store, const char *path, const zarr_array_spec *spec,
    const zarr_array_open_options *opts, zarr_error *err);

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
 * Gives up one ownership of an array. The last owner frees the handle. Nothing is lost:
 * a write is in the store when its call returns, and zarr_store_flush() makes it durable.
 * @param array may be NULL
 */
ZARR_API void zarr_array_free(zarr_array *array);
/** @} */

/* ---- what it is ---------------------------------------------------------- */

/**
 * @name What an array is
 * These calls ask the handle, not the store. What they return is borrowed and lives as
 * long as the handle, also if the array is resized or changed meanwhile. JSON text is
 * made when it is first asked for, and is NULL if there is no memory for it.
 * @{
 */
/** Returns the shape in elements, one entry for each dimension. */
ZARR_API const uint64_t *zarr_array_shape(const zarr_array *array);
/** Returns the number of dimensions. */
ZARR_API int32_t zarr_array_ndim(const zarr_array *array);
/** Returns the data type. It lives as long as the context. */
ZARR_API const zarr_dtype *zarr_array_dtype(const zarr_array *array);
/** Returns the fill value: one element in the machine's byte order. NULL if the metadata
 * of a v2 array has null; elements that are missing then read as zero, times as NaT,
 * values of the codecs json2 and msgpack2 as null. */
ZARR_API const void *zarr_array_fill_value(const zarr_array *array);
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
 * is always UTF-8. A node whose document has half of a surrogate pair (U+D800 to U+DFFF),
 * as Python can write it, fails to open with ZARR_ERR_CORRUPT.
 */
ZARR_API const char *zarr_array_attributes(const zarr_array *array);
/**
 * Returns the codecs as the JSON text of an array. For a v2 array this is the chain that
 * its filters and compressor make. Filters that v3 has no name for follow `bytes`; a new
 * v2 array can be created with such a chain.
 */
ZARR_API const char *zarr_array_codecs(const zarr_array *array);
/** Returns the context, borrowed from the array. */
ZARR_API zarr_context *zarr_array_context(const zarr_array *array);
/** Stores in `device_type` and `device_id` the memory of tensors that name none: that of
 * the options of the handle, or else of its store of chunks, or else of the context. A
 * binding allocates its results there. Elements of variable length have host memory
 * unless the handle's options say otherwise. */
ZARR_API void zarr_array_memory(const zarr_array *array, int32_t *device_type,
                                int32_t *device_id);
/** Returns the store of the metadata, owned by the array. */
ZARR_API zarr_store *zarr_array_store(const zarr_array *array);
/** Returns the store of the chunks, owned by the array. */
ZARR_API zarr_store *zarr_array_chunk_store(const zarr_array *array);
/** @} */

/**
 * @name The grid of chunks
 * The unit of reading is the chunk, in a sharded array the inner chunk. The unit of
 * writing is the chunk, in a sharded array the whole shard. Reads and writes along these
 * units are fastest. Grid coordinates count units of writing from 0. Arrays of shapes and
 * coordinates have one entry for each dimension.
 *
 * Spec: Zarr v3 core, "Chunk grids"; Zarr v3 codec "sharding_indexed".
 * @{
 */
/**
 * Returns the shape of the unit of reading in elements, borrowed as zarr_array_shape()
 * is. NULL if chunks differ in shape. Shards that can only be decoded whole, because
 * codecs such as reshape are before the sharding, are the unit themselves.
 */
ZARR_API const uint64_t *zarr_array_chunk_shape(const zarr_array *array);
/**
 * Returns the shape of the unit of writing in elements, borrowed as zarr_array_shape()
 * is. NULL if units differ in shape; zarr_array_chunk_extent() tells the shape of each.
 */
ZARR_API const uint64_t *zarr_array_write_shape(const zarr_array *array);
/**
 * Copies the shapes that the array has at this moment, one entry for each dimension. The
 * handle keeps what zarr_array_shape() has returned, also after the array is resized. It
 * keeps nothing of this call, which suits a handle that is open while its array grows.
 * @param shape receives the shape in elements; NULL: not wanted
 * @param chunk_shape receives the shape of the unit of reading; NULL: not wanted
 * @param write_shape receives the shape of the unit of writing; NULL: not wanted. Where
 * units differ in shape, this and `chunk_shape` receive zeros
 */
ZARR_API void zarr_array_copy_shapes(const zarr_array *array, uint64_t *shape,
                                     uint64_t *chunk_shape, uint64_t *write_shape);
/** Returns the grid of the units of writing as JSON text: an object with `name` and
 * `configuration`. */
ZARR_API const char *zarr_array_chunk_grid(const zarr_array *array);
/** Stores in `counts` how many units of writing there are along each dimension. */
ZARR_API void zarr_array_chunk_counts(const zarr_array *array, uint64_t *counts);
/**
 * Tells where the unit of writing with the grid coordinates `chunk` begins, and the shape
 * that it is stored with, which may reach beyond the array. `origin` and `shape` are
 * filled; either may be NULL.
 * @retval ZARR_ERR_INVALID there is no such unit
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_extent(const zarr_array *array,
                                                             const uint64_t *chunk,
                                                             uint64_t *origin,
                                                             uint64_t *shape,
                                                             zarr_error *err);
/**
 * Finds the unit of writing that holds the element with the coordinates `at`, and stores
 * its grid coordinates in `chunk`.
 * @retval ZARR_ERR_INVALID there is no such element
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_locate(const zarr_array *array,
                                                             const uint64_t *at,
                                                             uint64_t *chunk,
                                                             zarr_error *err);
/**
 * Stores in `shape` the shape of the largest unit of writing, for buffers; 1 along a
 * dimension without units. If the grid of a plug-in cannot count equal
 * chunks, the call looks at the first 65536 along each dimension.
 */
ZARR_API void zarr_array_chunk_largest(const zarr_array *array, uint64_t *shape);
/** @} */

/**
 * Selects whole units of writing of an array, in a regular grid or any other. Slices and
 * indexes count units, as in zarr_selection_blocks().
 * @param array borrowed
 * @param out receives the selection; owned: zarr_selection_free()
 * @param n_dims,dims what is selected, as for zarr_selection_dims()
 * @retval ZARR_ERR_INVALID a dimension is selected by a list, a mask or a step, or an
 * index is out of bounds
 * @see zarr_array_chunk_extent(), zarr_array_write_shape()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_select_blocks(const zarr_array *array, zarr_selection **out, int32_t n_dims,
                         const zarr_dim_selection *dims, zarr_error *err);

/* ---- elements ----------------------------------------------------------- */

/** Options of reads, writes, appends, verifications and lists of chunks. */
typedef struct zarr_io_options {
    uint32_t struct_size, flags; /**< `flags`: ZARR_IO_* */
    uint32_t max_threads; /**< threads at most, the caller's included; 0: the context's */
    uint32_t missing_chunks; /**< one of ZARR_MISSING_*; 0: the array's */
    uint64_t wave_bytes; /**< decoded bytes that are handled at once; 0: the context's */
    /**
     * a stream of the device that the tensor is on, in the form of the device's own
     * interface (such as a CUstream), or NULL. The call touches the tensor only after the
     * work that is on the stream at entry. It is used during the call only, also by calls
     * that submit. All work of the call is done when it returns, or when the request is
     * done: the application need not wait for a stream. UNSUPPORTED: the tensor is in
     * host memory (ZARR_DEVICE_CPU), or the tensors of parts are on several devices, or
     * the call has no tensor
     */
    void *stream;
    /** borrowed; filled at the end, also if a chunk fails; may be NULL */
    zarr_stats *stats;
    const char *pipeline; /**< name of a registered pipeline; NULL: the array's */
    /**
     * called now and then, by one thread at a time; may be NULL. It may read and write
     * arrays, but must not append to the array that is being appended to, nor wait for
     * its own request
     */
    void (*progress)(void *user, const zarr_stats *so_far);
    void *progress_user;   /**< passed to `progress` */
    uint32_t empty_chunks; /**< one of ZARR_EMPTY_CHUNKS_*; 0: the array's */
    /** writes: one of ZARR_OUTSIDE_*: what elements outside of the shape become */
    uint32_t outside;
    /**
     * one field of structured elements, as zarr_dtype_field_find() takes it, such as "a"
     * or "a.b". The tensor then has the data type of the field, and the dimensions of a
     * subarray after those of the selection. A write leaves the other fields alone. NULL:
     * whole elements
     */
    const char *field;
    /** reads of elements of variable length: receives their bytes; required for those */
    struct zarr_heap *heap;
    /** stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL. Borrowed by a
     * blocking call; a submitted request is an owner of it until it is freed */
    zarr_cancel *cancel;
    /** reads of shards: inner chunks of one shard are fetched together if the hole
     * between them has at most this many bytes; 1: practically none. 0: 16 KiB for a
     * store with ZARR_STORE_CAP_FAST_GET, else 1 MiB */
    uint64_t coalesce_gap;
    /** reads of shards: bytes at most that are fetched together; 1: each inner chunk
     * alone. 0: 1 MiB for a store with ZARR_STORE_CAP_FAST_GET, else 16 MiB */
    uint64_t coalesce_bytes;
    /** bytes at most that this call takes of the context's `memory_bytes`, so that it
     * leaves room for others; a chunk that needs more is handled alone. Buffers of chunks
     * whose size the metadata does not bound count in the context's budget only. 0: no
     * limit of its own */
    uint64_t memory_bytes;
    /** as in `zarr_context_options`; the array handle keeps what it prepared for each
     * text, so a program should use few. NULL: the array's */
    const char *codec_preference;
    /** reads: receives a byte for each unit of writing that the selection touches, in C
     * order of their coordinates: 1 if the store has the chunk or shard, 0 if it is
     * missing. Borrowed; undefined after a failure; NULL: not wanted */
    uint8_t *present;
    uint64_t n_present; /**< bytes of `present`, at least as many as there are units */
    /** writes of shards: one of ZARR_INNER_ORDER_*. Whole and changed shards have their
     * inner chunks in this order; the index tells where each is, so readers need not know
     * it */
    uint32_t inner_order, reserved;
} zarr_io_options;

#define ZARR_IO_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_io_options)

/** Flags of zarr_io_options. */
enum {
    ZARR_IO_NO_HUGE_PAGES = 1, /**< do not ask for huge pages for the caller's memory */
    ZARR_IO_NO_DIRECT = 2      /**< decode into a buffer and copy, always; for tests */
};

/**
 * Reads the selected elements of an array into memory of the caller. The tensor may have
 * any strides, any byte order and any kind of memory. Chunks are fetched and decoded in
 * parallel. A chunk gives the fill value only if the store says that it is missing, and
 * the array's document is still there after that: a read that met a missing object looks
 * at the document once, at its end. There is no such check in a store with
 * ZARR_STORE_CAP_IMMUTABLE, nor for an array that only consolidated metadata describes.
 * After a failure the content of the tensor is undefined.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param dst where the elements go; its shape is the shape of the selection's result
 * @param opts options; NULL: defaults
 * @return ZARR_OK, or the error of the first chunk that failed, whatever the number of
 * threads; the message names the key and the reason
 * @retval ZARR_ERR_INVALID the tensor or the selection does not fit the array
 * @retval ZARR_ERR_CORRUPT a chunk or a shard index is damaged
 * @retval ZARR_ERR_NOT_FOUND a chunk is missing, and ZARR_MISSING_ERROR is set; or the
 * array was moved or deleted after it was opened
 * @retval ZARR_ERR_CONFLICT another array, with other chunks, data type, codecs or fill
 * value, has taken the place of this one
 * @retval ZARR_ERR_LIMIT a chunk is larger than `zarr_limits.chunk_bytes`
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_array_read_submit(), zarr_array_read_vlen(), zarr_array_write(),
 * zarr_tensor_host(), zarr_selection_parse()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_read(zarr_array *array,
                                                     const zarr_selection *selection,
                                                     const zarr_tensor *dst,
                                                     const zarr_io_options *opts,
                                                     zarr_error *err);

/**
 * Writes elements from memory of the caller to the selected elements of an array. A
 * dimension of the tensor with stride 0 repeats its element.
 *
 * A chunk or shard that the selection covers in part, or that reaches beyond the array's
 * shape (but see ZARR_OUTSIDE_RESET), is read, changed and written under a lock, so that
 * several threads and processes may write to one array. Whole units of writing need no
 * read; zarr_array_write_shape() tells their shape. The data is in the store when the
 * call returns, and zarr_store_flush() makes it durable. After a failure each stored
 * object is old or new.
 *
 * A write looks at the array's document before its first and after its last object, so it
 * fails if the array was moved, deleted or replaced after it was opened; chunks that it
 * stored in between stay at the old place. It does not notice an array that is moved or
 * deleted after the second look, nor one that was replaced by an array with equal
 * metadata. The exceptions of zarr_array_read() hold here as well.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param src the elements; its shape is the shape of the selection's result
 * @param opts options; NULL: defaults
 * @return ZARR_OK, or the error of the first chunk that failed, whatever the number of
 * threads; the message names the key and the reason
 * @retval ZARR_ERR_INVALID the tensor or the selection does not fit the array, or the
 * store is read-only
 * @retval ZARR_ERR_CORRUPT a chunk that must be changed in part is damaged
 * @retval ZARR_ERR_CONFLICT other writers changed a chunk each time it was written; or
 * another array, with other chunks, data type, codecs or fill value, has taken the place
 * of this one
 * @retval ZARR_ERR_NOT_FOUND the array was moved or deleted after it was opened
 * @retval ZARR_ERR_UNSUPPORTED the store cannot write, or a codec cannot encode
 * @retval ZARR_ERR_CANCELLED `cancel` was set; some chunks may be written
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_array_append(), zarr_array_write_submit(), zarr_array_write_vlen(),
 * zarr_store_flush(), zarr_tensor_host()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_write(zarr_array *array,
                                                      const zarr_selection *selection,
                                                      const zarr_tensor *src,
                                                      const zarr_io_options *opts,
                                                      zarr_error *err);

/**
 * @name Read and write in the background
 * These calls start what zarr_array_read() and zarr_array_write() do, and return at once.
 * The selection, the tensor with its memory, and all that the options point to stay the
 * caller's and must be valid until the request is done. The request keeps the array
 * alive.
 * @{
 */
/**
 * Starts a read.
 * @param out receives the request; owned: zarr_request_free()
 * @param array,selection,dst,opts as for zarr_array_read()
 * @retval ZARR_ERR_INVALID an argument is wrong; errors of chunks are reported by
 * zarr_request_wait()
 * @see zarr_request_wait()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_read_submit(
    zarr_request **out, zarr_array *array, const zarr_selection *selection,
    const zarr_tensor *dst, const zarr_io_options *opts, zarr_error *err);
/**
 * Starts a write.
 * @param out receives the request; owned: zarr_request_free()
 * @param array,selection,src,opts as for zarr_array_write()
 * @retval ZARR_ERR_INVALID an argument is wrong; errors of chunks are reported by
 * zarr_request_wait()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_write_submit(
    zarr_request **out, zarr_array *array, const zarr_selection *selection,
    const zarr_tensor *src, const zarr_io_options *opts, zarr_error *err);
/** @} */

/**
 * Explains what a read or write would do. It tells which chunks the call would touch,
 * which implementations of codecs it would use, and which copies it would make. Nothing
 * is executed, and no data is touched. zarr_stats counts what a call did.
 *
 * @param out receives the explanation; owned: zarr_explanation_free()
 * @param array borrowed; the explanation does not need it any more
 * @param what ZARR_EXPLAIN_READ or ZARR_EXPLAIN_WRITE
 * @param selection as for zarr_array_read(); NULL: all elements
 * @param tensor as for zarr_array_read(), of which only the kind of memory and the
 * strides count; NULL: the default memory, in C order
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_INVALID an argument is wrong
 * @retval ZARR_ERR_UNSUPPORTED no memory backend has the tensor's kind of memory
 * @see zarr_explanation_text(), zarr_stats
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_explain(zarr_explanation **out,
                                                        zarr_array *array, uint32_t what,
                                                        const zarr_selection *selection,
                                                        const zarr_tensor *tensor,
                                                        const zarr_io_options *opts,
                                                        zarr_error *err);

/* ---- shape and attributes ------------------------------------------------ */

/**
 * Reads the metadata of an array again. Other handles and processes may have resized the
 * array or changed its attributes. Pointers that the handle gave before stay valid.
 * @param array borrowed
 * @param changed becomes 1 if the metadata differs from what the handle had, else 0; may
 * be NULL
 * @retval ZARR_ERR_NOT_FOUND the array was deleted
 * @retval ZARR_ERR_CORRUPT the metadata is damaged; the handle stays as it was
 * @see zarr_array_shape(), zarr_array_attributes()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_refresh(zarr_array *array, int *changed,
                                                        zarr_error *err);

/**
 * @name Attributes of an array
 * Attributes are members of a JSON object. They are read from the handle. A change reads
 * the document in the store, changes it and writes it, under its lock: changes of others
 * are kept, and the handle has them afterwards. zarr_array_attributes() returns all
 * attributes at once.
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
 * @retval ZARR_ERR_INVALID `json` is not JSON, or the store is read-only
 * @retval ZARR_ERR_CONFLICT the array was replaced by a group
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_set(zarr_array *array,
                                                              const char *name,
                                                              const char *json,
                                                              zarr_error *err);
/**
 * Deletes one attribute.
 * @param array borrowed
 * @param name name of the attribute
 * @retval ZARR_ERR_NOT_FOUND there is no such attribute
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_delete(zarr_array *array,
                                                                 const char *name,
                                                                 zarr_error *err);
/**
 * Sets several attributes at once.
 * @param array borrowed
 * @param json_object JSON object whose members are set
 * @param replace_all 0: other attributes stay; 1: other attributes are deleted
 * @retval ZARR_ERR_INVALID `json_object` is not a JSON object, or the store is read-only
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attributes_merge(zarr_array *array,
                                                                 const char *json_object,
                                                                 int replace_all,
                                                                 zarr_error *err);
/** @} */

ZARR_END_DECLS

#endif
