/*
 * zarrc/array.h - arrays: open, create, read, write, resize, look at chunks.
 * A handle is frozen: share it between threads; what changes the array in the
 * store (resize, append, attributes) is seen by other handles after
 * zarr_array_refresh(). Handles hold their stores and context.
 */
#ifndef ZARRC_ARRAY_H
#define ZARRC_ARRAY_H

#include <zarrc/base.h>
#include <zarrc/dtype.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>
#include <zarrc/plan.h>
#include <zarrc/request.h>
#include <zarrc/selection.h>
#include <zarrc/store.h>

ZARR_BEGIN_DECLS

typedef struct zarr_array zarr_array;

enum {
    ZARR_CONSOLIDATED_DEFAULT = 0, /**< arrays: never; groups: auto */
    ZARR_CONSOLIDATED_AUTO = 1,    /**< use it where the opened group has it */
    ZARR_CONSOLIDATED_MUST = 2,
    ZARR_CONSOLIDATED_NEVER = 3
};

enum {
    ZARR_EMPTY_CHUNKS_DEFAULT = 0,
    /**
     * A chunk equal to the fill value bit for bit is erased, not stored. The CPU
     * compares: a chunk in a memory that it cannot read is copied down for that once
     * (encoding goes on from the copy where it can); ZARR_EMPTY_CHUNKS_WRITE does
     * without.
     */
    ZARR_EMPTY_CHUNKS_SKIP = 1,
    ZARR_EMPTY_CHUNKS_WRITE = 2
};
enum {
    ZARR_MISSING_DEFAULT = 0,
    ZARR_MISSING_FILL = 1,
    ZARR_MISSING_ERROR = 2
};

typedef struct zarr_array_open_options {
    uint32_t struct_size, flags;
    int32_t zarr_format;   /**< 2, 3; 0: found, v3 first */
    uint32_t consolidated; /**< ZARR_CONSOLIDATED_* of the group it is opened through */
    /** borrowed (referenced): chunks live there, metadata in `store`; NULL: the same */
    zarr_store *chunk_store;
    /** default memory for calls that leave the choice open; 0: host */
    int32_t device_type, device_id;
    /** as in zarr_context_options; copied; NULL: the context's */
    const char *codec_preference;
    const char *pipeline; /**< copied; NULL: the context's */
    /**
     * ZARR_EMPTY_CHUNKS_*: default SKIP: chunks equal to the fill value bit for bit are
     * not stored
     */
    uint32_t empty_chunks;
    uint32_t missing_chunks; /**< ZARR_MISSING_*: default FILL */
} zarr_array_open_options;

#define ZARR_ARRAY_OPEN_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_array_open_options)

/**
 * Opens the array at `path` ("" or "/": the store's root) of a store.
 * @param out owned: zarr_array_free()
 * @return NOT_FOUND: no array there (the text says if there is a group); CORRUPT,
 * UNSUPPORTED: the metadata, by name
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_open(zarr_array **out, zarr_store *store,
                                                     const char *path,
                                                     const zarr_array_open_options *opts,
                                                     zarr_error *err);

/**
 * What a new array shall be. Pointers are borrowed for the call; NULL and zero mean the
 * default stated.
 */
typedef struct zarr_array_spec {
    uint32_t struct_size, flags; /**< ZARR_SPEC_* */
    int32_t zarr_format;         /**< 2 or 3; 0: 3 */
    int32_t ndim;
    const uint64_t *shape;
    /**
     * NULL: a guess of about 1 MiB. With shards: the inner chunks (the unit of reading)
     */
    const uint64_t *chunk_shape;
    /** v3: NULL: no sharding; multiples of chunk_shape (the unit of writing) */
    const uint64_t *shard_shape;
    /**
     * as zarr_dtype_find() takes it; "<" or ">" in v2 spelling sets the stored byte
     * order. Required
     */
    const char *data_type;
    /** JSON text as the data type spells it; v2 also "null". NULL: zero ("" for text) */
    const char *fill_value;
    /**
     * JSON array of v3 codecs, or v2 {"filters": [...], "compressor": {...}|null}; for
     * shards: of the inner chunks. NULL: zstd. May hold a single bytes->bytes list:
     * `bytes` is added
     */
    const char *codecs;
    const char *index_codecs; /**< JSON array; NULL: bytes (little) + crc32c */
    const char *attributes;   /**< JSON object; NULL: none */
    /** ndim entries, NULL entries allowed; v3 (v2: _ARRAY_DIMENSIONS attribute) */
    const char *const *dimension_names;
    /**
     * The name of a registered encoding, "default" or "v2" among others, or its JSON
     * object {"name": ..., "configuration": ...} (then no separator); NULL: default for
     * v3 (v2 arrays have no choice)
     */
    const char *key_encoding;
    /**
     * '/' or '.'; 0: '.' in v2 arrays, '/' for "default" and "v2", for other encodings
     * what they take without
     */
    char separator;
    /** v2: 'C' or 'F'; v3: 'F' adds a transpose codec; 0: 'C' */
    char order;
    uint16_t reserved;
    uint32_t reserved2;
    /**
     * whole zarr.json or .zarray text instead of all of the above; checked and written
     * canonically
     */
    const char *document;
    /**
     * v3: JSON object {"name": ..., "configuration": ...} of the grid of the units of
     * writing, for chunks that differ in shape ("rectilinear", a plug-in's); NULL:
     * regular. Without chunk_shape it is the grid of the chunks; with it of shards,
     * whose edges are multiples of chunk_shape. Not with shard_shape
     */
    const char *chunk_grid;
} zarr_array_spec;

#define ZARR_ARRAY_SPEC_INIT ZARR_SIZE_FIRST(zarr_array_spec)

enum {
    /**
     * an existing node at path, also a broken one, is deleted first, with everything
     * below it; chunks that no document belongs to, too. EXISTS, and nothing is deleted,
     * where there is no node but other keys (a folder with files, a group without a
     * document); zarr_node_delete() deletes those
     */
    ZARR_SPEC_OVERWRITE = 1,
    ZARR_SPEC_NO_PARENTS = 2,     /**< don't write missing parent groups */
    ZARR_SPEC_INDEX_AT_START = 4, /**< shard index first */
    /** an existing array with equal metadata is opened instead of EXISTS */
    ZARR_SPEC_IF_MISSING = 8
};

/**
 * Creates an array (and missing parent groups) and opens it. EXISTS unless a flag says
 * otherwise.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_create(
    zarr_array **out, zarr_store *store, const char *path, const zarr_array_spec *spec,
    const zarr_array_open_options *opts, zarr_error *err);

/** One more owner. Returns array. */
ZARR_API zarr_array *zarr_array_ref(zarr_array *array);
/**
 * NULL is fine. Nothing is buffered: writes are in the store when their call returned;
 * zarr_store_flush() makes them durable.
 */
ZARR_API void zarr_array_free(zarr_array *array);

/* ---- what it is ---------------------------------------------------------- */

/* All borrowed: good as long as the handle, also when it is changed meanwhile. Texts are
 * made when first asked for; NULL where one is promised: no memory. */

ZARR_API int32_t zarr_array_zarr_format(const zarr_array *array);
ZARR_API const char *zarr_array_path(const zarr_array *array);
ZARR_API int32_t zarr_array_ndim(const zarr_array *array);
ZARR_API const uint64_t *zarr_array_shape(const zarr_array *array);
/**
 * The unit of writing: chunks, or shards where the array has them. NULL where they differ
 * in shape: zarr_array_chunk_extent() tells each.
 */
ZARR_API const uint64_t *zarr_array_write_shape(const zarr_array *array);
/**
 * The unit of reading: chunks, or the innermost chunks of shards (array order of
 * dimensions; they are all alike, also where shards differ). NULL where chunks differ.
 * Shards behind codecs that need all of them (reshape, numcodecs.delta) are the unit.
 */
ZARR_API const uint64_t *zarr_array_chunk_shape(const zarr_array *array);
/** The grid of the units of writing as a JSON object: name and configuration. */
ZARR_API const char *zarr_array_chunk_grid(const zarr_array *array);
/**
 * How many units of writing there are along each dimension.
 * @param counts ndim entries, filled
 */
ZARR_API void zarr_array_chunk_counts(const zarr_array *array, uint64_t *counts);
/**
 * Where a unit of writing (a chunk, or a shard) begins in the array, and the shape it is
 * stored with, which may reach beyond the array. Either may be NULL. ndim entries each.
 * Thread class: any.
 * @return INVALID: no such chunk
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_extent(const zarr_array *array,
                                                             const uint64_t *chunk,
                                                             uint64_t *origin,
                                                             uint64_t *shape,
                                                             zarr_error *err);
/** The unit of writing that holds an element. INVALID: no such element. ndim entries. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_locate(const zarr_array *array,
                                                             const uint64_t *at,
                                                             uint64_t *chunk,
                                                             zarr_error *err);
/**
 * The shape of the largest unit of writing, for buffers; 1 along dimensions that have
 * none. (Of a plug-in's grid that tells no runs: of the first 65536 along each
 * dimension.)
 */
ZARR_API void zarr_array_chunk_largest(const zarr_array *array, uint64_t *shape);
/**
 * Block selection on the array's own grid of units of writing: zarr_selection_blocks()
 * for chunks of any shapes.
 * @param out owned: zarr_selection_free()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_select_blocks(const zarr_array *array, zarr_selection **out, int32_t n_dims,
                         const zarr_dim_selection *dims, zarr_error *err);
ZARR_API const zarr_dtype *zarr_array_dtype(const zarr_array *array);
/** One native-endian element, or NULL where v2 says null (read as zero, times as NaT). */
ZARR_API const void *zarr_array_fill_value(const zarr_array *array);
/** Name of a dimension or NULL. */
ZARR_API const char *zarr_array_dimension_name(const zarr_array *array, int32_t dim);
/** The metadata document as canonical JSON text (attributes included for v3). */
ZARR_API const char *zarr_array_metadata(const zarr_array *array);
/**
 * Attributes as JSON text of an object, "{}" when there are none. Always UTF-8: a
 * document with half of a surrogate pair (U+D800 to U+DFFF, which Python writes for text
 * that is no Unicode) has no such text, and its node is CORRUPT, whatever else is in it.
 */
ZARR_API const char *zarr_array_attributes(const zarr_array *array);
/**
 * Codecs as a JSON array, v2 arrays as the chain they are read through. Filters of v2
 * that v3 cannot say stand behind `bytes`; an array of v2 can be created of that, too.
 */
ZARR_API const char *zarr_array_codecs(const zarr_array *array);
ZARR_API zarr_store *zarr_array_store(const zarr_array *array);
ZARR_API zarr_store *zarr_array_chunk_store(const zarr_array *array);

/* ---- elements ----------------------------------------------------------- */

/** For zarr_array_read(), _write() and their submit forms. */
typedef struct zarr_io_options {
    uint32_t struct_size, flags; /**< ZARR_IO_* */
    uint32_t max_threads;        /**< the caller's included; 0: the context's */
    uint32_t missing_chunks;     /**< ZARR_MISSING_*; 0: the array's */
    uint64_t wave_bytes;         /**< decoded bytes of a mini-batch; 0: the context's */
    /** kept for device work ordered on it, which is not yet: NULL, else UNSUPPORTED. All
     * is done on return */
    void *stream;
    zarr_stats *stats;    /**< borrowed, filled at the end; NULL: not wanted */
    const char *pipeline; /**< NULL: the array's */
    /**
     * called now and then, one thread at a time; NULL: none. The library holds no lock
     * and no memory of the budget meanwhile: it may read and write, this chunk too (but
     * not append to the array that is being appended to, nor wait for its own request)
     */
    void (*progress)(void *user, const zarr_stats *so_far);
    void *progress_user;
    uint32_t empty_chunks, reserved; /**< ZARR_EMPTY_CHUNKS_*; 0: the array's */
    /**
     * one field of an array of structs, as zarr_dtype_field_find() takes it: "a.b";
     * several fields are several calls. The tensor then has the field's data type, and a
     * subarray's dimensions behind those of the selection; writing leaves the other
     * fields alone. NULL: whole elements
     */
    const char *field;
    /** reads of elements of variable length: takes their bytes (zarrc/vlen.h) */
    struct zarr_heap *heap;
} zarr_io_options;

#define ZARR_IO_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_io_options)

enum {
    ZARR_IO_NO_HUGE_PAGES = 1, /**< leave the page size of the caller's memory alone */
    ZARR_IO_NO_DIRECT = 2      /**< always decode to scratch and copy: for tests */
};

/**
 * Reads the selected elements into dst (any memory kind, strides, byte order). dst->shape
 * must be the selection's shape. selection NULL: all. dst is undefined after a failure.
 * @return the error of the lowest failing chunk, with node, key and reason in the text
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_read(zarr_array *array,
                                                     const zarr_selection *selection,
                                                     const zarr_tensor *dst,
                                                     const zarr_io_options *opts,
                                                     zarr_error *err);

/**
 * Writes src to the selected elements. A tensor whose dimensions have stride 0
 * broadcasts. Chunks and shards covered in part, or reaching beyond the shape, are
 * read, changed and written under a lock. After a failure each object of the store is old
 * or new.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_write(zarr_array *array,
                                                      const zarr_selection *selection,
                                                      const zarr_tensor *src,
                                                      const zarr_io_options *opts,
                                                      zarr_error *err);

/**
 * Starts a read; everything handed over stays the caller's and must stay valid until the
 * request is done.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_read_submit(
    zarr_request **out, zarr_array *array, const zarr_selection *selection,
    const zarr_tensor *dst, const zarr_io_options *opts, zarr_error *err);
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_write_submit(
    zarr_request **out, zarr_array *array, const zarr_selection *selection,
    const zarr_tensor *src, const zarr_io_options *opts, zarr_error *err);

enum {
    ZARR_EXPLAIN_READ = 0,
    ZARR_EXPLAIN_WRITE = 1,
    ZARR_EXPLAIN_JSON = 2
};

/**
 * Tells what a read or write would do: path, implementations, copies, mini-batches.
 * Executes nothing and touches no data; a shard index not yet cached is shown as such.
 * Counts above 2^64 are "more than 2^64" in the text and null in JSON.
 * tensor may be NULL: the array's default memory.
 * @param text,cap the caller's buffer; @param text_bytes needed less the terminator (may
 * exceed cap)
 */
ZARR_API ZARR_MUST_CHECK zarr_status
/* NOLINT(function-size): a read's arguments, and a buffer as snprintf takes it */
zarr_array_explain(zarr_array *array, uint32_t what, const zarr_selection *selection,
                   const zarr_tensor *tensor, const zarr_io_options *opts, char *text,
                   size_t cap, size_t *text_bytes, zarr_error *err);

/* ---- shape and attributes ------------------------------------------------ */

enum {
    ZARR_RESIZE_KEEP_CHUNKS = 1 /**< leave chunks that fall outside in the store */
};

/**
 * Changes the shape: the metadata first; when shrinking, chunks wholly outside are
 * deleted afterwards, and of those cut by the border the part outside becomes the fill
 * value. This handle has the new shape on return; rank stays. Resizes and appends of the
 * same array wait for each other, across handles and processes where the store can lock;
 * what others (without that lock) make part of the array again before it is cleared away
 * stays, but for what they do in the moment between looking and clearing one chunk.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_resize(zarr_array *array,
                                                       const uint64_t *shape,
                                                       uint32_t flags, zarr_error *err);

/**
 * Grows `axis` by src's length along it and writes src there; data first, metadata last:
 * readers see all of it or nothing. src->ndim is the array's. Appends of the same array
 * wait for each other. CONFLICT: it was resized by somebody who does not. On a store that
 * has no locks but versions (CAP_CONDITIONAL without CAP_LOCK) the metadata comes first
 * and reserves the place: no append is lost, but readers may see fill values until the
 * data is there, and an append that fails while writing leaves them. On a store with
 * neither only appends through one store handle are kept apart. It cannot be cancelled,
 * because it has no request: zarr_array_resize() and zarr_array_write_submit() can, and
 * then readers see the new shape before the data.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_append(zarr_array *array, int32_t axis,
                                                       const zarr_tensor *src,
                                                       const zarr_io_options *opts,
                                                       zarr_error *err);

/** Reads the metadata again. *changed (may be NULL) tells whether it differs. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_refresh(zarr_array *array, int *changed,
                                                        zarr_error *err);

/**
 * One attribute as JSON text, or NULL. Copies into the caller's buffer as snprintf
 * would.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_get(const zarr_array *array,
                                                              const char *name,
                                                              char *text, size_t cap,
                                                              size_t *text_bytes,
                                                              zarr_error *err);
/**
 * Sets one attribute from JSON text; read-modify-write of the metadata under its lock.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_set(zarr_array *array,
                                                              const char *name,
                                                              const char *json,
                                                              zarr_error *err);
/** Deletes one; NOT_FOUND when it is not there. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_delete(zarr_array *array,
                                                                 const char *name,
                                                                 zarr_error *err);
/**
 * Merges an object's members over the attributes (replace_all 0), or replaces them all
 * (1).
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attributes_merge(zarr_array *array,
                                                                 const char *json_object,
                                                                 int replace_all,
                                                                 zarr_error *err);

/* ---- chunks -------------------------------------------------------------- */

/** A stored chunk; pointers are borrowed for the call. */
typedef struct zarr_chunk_info {
    uint32_t struct_size;
    int32_t ndim;
    /**
     * grid coordinates in units of zarr_array_chunk_shape(), or of the write shape for
     * whole objects
     */
    const uint64_t *chunk;
    const char *key;        /**< of the object in the chunk store */
    uint64_t offset, bytes; /**< inside the object */
    uint32_t inner;         /**< 1: an inner chunk of a shard; 0: a whole object */
    uint32_t reserved;
} zarr_chunk_info;

typedef int (*zarr_chunk_list_fn)(void *user, const zarr_chunk_info *chunk);

enum {
    ZARR_CHUNKS_OBJECTS = 0,
    ZARR_CHUNKS_INNER = 1 /**< look into shards too (reads their indexes) */
};

/**
 * Lists the chunks that are stored, from the store's listing; bytes of objects may be
 * UINT64_MAX (not known). IO where what stands for a folder of chunks cannot be read.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_list(zarr_array *array,
                                                           uint32_t what,
                                                           zarr_chunk_list_fn fn,
                                                           void *user, zarr_error *err);

/**
 * Encoded bytes of one stored object (unit of writing). *bytes: room in, length out
 * (LIMIT with the needed length when the room is too small). NOT_FOUND when it is not
 * stored.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_read_encoded(zarr_array *array,
                                                                   const uint64_t *chunk,
                                                                   void *data,
                                                                   uint64_t *bytes,
                                                                   zarr_error *err);
/** Stores encoded bytes as they are; they are the caller's responsibility. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_write_encoded(zarr_array *array,
                                                                    const uint64_t *chunk,
                                                                    const void *data,
                                                                    uint64_t bytes,
                                                                    zarr_error *err);
/** Removes one stored object; NOT_FOUND when it was not stored. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_erase(zarr_array *array,
                                                            const uint64_t *chunk,
                                                            zarr_error *err);
/** Key of an object in the chunk store; as snprintf. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_key(const zarr_array *array,
                                                          const uint64_t *chunk,
                                                          char *text, size_t cap,
                                                          size_t *text_bytes,
                                                          zarr_error *err);

/** A fault that zarr_array_verify() found. */
typedef struct zarr_verify_item {
    uint32_t struct_size;
    zarr_status status;
    const char *key;     /**< object */
    const char *message; /**< one line */
} zarr_verify_item;

/**
 * Decodes every stored chunk and checks every shard index. fn is called for each fault,
 * one thread at a time and with no lock held; a non-zero return stops. The call is
 * ZARR_OK when it could look at everything.
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_verify(zarr_array *array, int (*fn)(void *user, const zarr_verify_item *item),
                  void *user, const zarr_io_options *opts, zarr_error *err);

ZARR_END_DECLS

#endif
