/**
 * @file
 * How to make a codec. A codec has two parts, which are registered separately. For
 * extenders: stable for each plug-in ABI number.
 *
 * A codec specification tells what the codec means: it checks a configuration, writes it
 * in its canonical form, and tells how shape, data type, fill value and size pass through
 * the codec. It knows no memory and no compression library.
 *
 * A codec implementation encodes and decodes. It is registered for the name of a
 * specification, with its kinds of input and output memory, and a priority. The library
 * chooses one implementation for each codec of a chain; zarr_array_explain() shows which.
 * An implementation reads the configuration with the calls below.
 *
 * "Before" and "after" mean the order of encoding, which is the order of the metadata.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Filters" and "Chunks".
 */
#ifndef ZARRC_PLUGIN_CODEC_H
#define ZARRC_PLUGIN_CODEC_H

#include <zarrc/base.h>
#include <zarrc/context.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/* ---- reading a configuration ------------------------------------------------------- */

/**
 * One codec of a chain: the name of its specification and its configuration, which is
 * checked. A specification or an implementation gets it as an argument and borrows it.
 * Thread class: frozen.
 */
typedef struct zarr_codec_spec zarr_codec_spec;

/**
 * @name The configuration of a codec
 * Texts are borrowed and live as long as the codec. `member` is the name of a member of
 * the configuration.
 * @{
 */
/** Returns the name under which the specification is registered, never an alias. */
ZARR_API const char *zarr_codec_spec_name(const zarr_codec_spec *spec);
/** Returns the canonical configuration as JSON text, "{}" if it is empty. In canonical()
 * of an application or a plug-in it is the text of `raw`. */
ZARR_API const char *zarr_codec_spec_json(const zarr_codec_spec *spec);
/** Stores an integer member in `*out`. Returns 0, or -1 if the member is missing or is
 * not an integer of 64 bits; `*out` is then unchanged. */
ZARR_API int zarr_codec_spec_i64(const zarr_codec_spec *spec, const char *member,
                                 int64_t *out);
/** Stores a numeric member in `*out`. Returns 0, or -1 if the member is missing or is not
 * a number. */
ZARR_API int zarr_codec_spec_f64(const zarr_codec_spec *spec, const char *member,
                                 double *out);
/** Stores 1 or 0 in `*out` for a member that is true or false. Returns 0, or -1 if the
 * member is missing or is neither. */
ZARR_API int zarr_codec_spec_bool(const zarr_codec_spec *spec, const char *member,
                                  int *out);
/** Returns the text of a member; NULL if the member is missing or is not a string. */
ZARR_API const char *zarr_codec_spec_text(const zarr_codec_spec *spec,
                                          const char *member);
/** Stores the first `cap` integers of an array member in `out`. Returns how many the
 * array has, which may exceed `cap`, or -1 if the member is missing or is not an array of
 * integers. */
ZARR_API int64_t zarr_codec_spec_i64s(const zarr_codec_spec *spec, const char *member,
                                      int64_t *out, uint64_t cap);
/** Returns the name of member number `i`, counted from 0; NULL after the last one. A
 * specification uses it to find and refuse unknown members. The library itself refuses
 * names that contain a NUL. */
ZARR_API const char *zarr_codec_spec_member(const zarr_codec_spec *spec, uint64_t i);
/** Returns 1 if the metadata names the codec with the prefix "numcodecs.", else 0. */
ZARR_API int zarr_codec_spec_prefixed(const zarr_codec_spec *spec);
/** @} */

/** Returns where an instance that is bound to this codec allocates host memory; never
 * NULL. Borrowed; it lives as long as the context. */
ZARR_API const zarr_allocator *zarr_codec_spec_allocator(const zarr_codec_spec *spec);
/**
 * Finds a data type, for codecs that change it.
 * @param out receives the data type, borrowed from the context
 * @param spec borrowed
 * @param name a v3 name, a v2 string or v3 JSON, as for zarr_dtype_find()
 * @return as zarr_dtype_find()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_codec_spec_dtype(const zarr_dtype **out,
                                                           const zarr_codec_spec *spec,
                                                           const char *name,
                                                           zarr_error *err);

/* ---- what a codec gets and gives --------------------------------------------------- */

/** Kinds of codecs. */
enum {
    ZARR_CODEC_ARRAY_ARRAY = 1, /**< takes an array, gives an array */
    ZARR_CODEC_ARRAY_BYTES = 2, /**< takes an array, gives bytes */
    ZARR_CODEC_BYTES_BYTES = 3  /**< takes bytes, gives bytes */
};

/**
 * Describes a chunk before or after a codec. For an array, all members are set. For
 * bytes, `dtype` is NULL, and `n_bytes`, `exact` and `item_bytes_hint` are set.
 */
typedef struct zarr_chunk_spec {
    uint32_t struct_size;
    int32_t ndim;                  /**< number of dimensions */
    uint64_t shape[ZARR_MAX_RANK]; /**< lengths of the dimensions in elements */
    const zarr_dtype *dtype;       /**< data type of the elements; NULL: bytes */
    const void *fill; /**< fill value, one element in native byte order; NULL: zero */
    /** length in bytes; of an array the number of elements times their size */
    uint64_t n_bytes;
    uint32_t exact; /**< 1: every chunk has `n_bytes`; 0: `n_bytes` is an upper bound */
    /** bytes: element size of the array that they come from, which blosc needs as its
     * typesize; 1: not known */
    uint32_t item_bytes_hint;
} zarr_chunk_spec;

/** Facts about what a codec gets. */
enum {
    ZARR_INPUT_V2_FILTER = 1,  /**< the codec is a v2 filter that works between arrays */
    ZARR_INPUT_TRANSPOSED = 2, /**< dimensions were permuted; in v2 also by order F */
    /** v2: elements of types with a byte order are big-endian */
    ZARR_INPUT_BIG_ENDIAN = 4,
    ZARR_INPUT_FLAT = 8 /**< numcodecs passes the array with one dimension */
};

/**
 * Facts about the input of a codec that its shape and data type do not tell: what the
 * codecs before it did. Array->bytes codecs of numcodecs store some of these facts.
 */
typedef struct zarr_codec_input {
    uint32_t struct_size, flags; /**< `flags`: ZARR_INPUT_* */
    /** bits that a rounding codec directly before this one kept, if its output is
     * integers with the bits of the floats; -1: there is no such codec */
    int32_t keepbits;
    uint32_t reserved;
} zarr_codec_input;

/** Fills `*out` with the facts about what a codec of a parsed chain gets. The caller sets
 * `out->struct_size` first. */
ZARR_API void zarr_codec_spec_input(const zarr_codec_spec *spec, zarr_codec_input *out);

/* ---- specifications ---------------------------------------------------------------- */

/** Flags of a codec specification. */
enum {
    /**
     * a codec of numcodecs: `name` is its v2 id, and v3 metadata names it "numcodecs."
     * and `name`, without an alias. If an array->array codec is already registered under
     * that v3 name, as the v3 form of a v2 filter on bytes, the name keeps meaning that
     * codec
     */
    ZARR_CODEC_SPEC_NUMCODECS = 1,
    ZARR_CODEC_SPEC_V3 = 2,           /**< v2 metadata cannot name the codec */
    ZARR_CODEC_SPEC_EXPERIMENTAL = 4, /**< not in Zarr's registry; listings show it */
    /** only for v2 metadata; the name may have another meaning in v3. Implementations
     * need ZARR_CODEC_FOR_V2 */
    ZARR_CODEC_SPEC_V2 = 8,
    /** decoding changes nothing: input and output have the same shape, data type and
     * bytes */
    ZARR_CODEC_SPEC_DECODES_NOTHING = 16,
    /** array->array: changes only the shape; elements stay in C order. No implementation
     * is needed */
    ZARR_CODEC_SPEC_RESHAPES = 32,
    /**
     * array->array: keeps the shape and computes each element by itself, so that it can
     * be applied to parts of a chunk. Before a sharding codec it is applied to each
     * chunk. After a codec without this flag, shards are read and written whole
     */
    ZARR_CODEC_SPEC_ELEMENTWISE = 64,
    /** array->array: keeps the shape, but elements depend on each other. A grid of shards
     * after such a codec is checked when the array is opened. ELEMENTWISE implies this
     * flag */
    ZARR_CODEC_SPEC_KEEPS_SHAPE = 128,
    /** if metadata names the codec "numcodecs." and `name`, the prefix stays when the
     * codec is written, because other readers know no other name */
    ZARR_CODEC_SPEC_KEEPS_PREFIX = 256,
    /** bytes->bytes: adds a checksum, and decoding fails with CORRUPT if the bytes are
     * not those that were encoded. Implementations without ZARR_CODEC_SAFE may decode its
     * output; see ZARR_TRUST_VERIFIED */
    ZARR_CODEC_SPEC_CHECKSUM = 512
};

enum {
    ZARR_ELEMENTS_NAME = 40 /**< bytes for a NumPy type string with its NUL */
};
/**
 * The elements that a v2 filter takes and gives, as NumPy type strings such as "<f8",
 * "|u1" or "<m8[ns]". "": the filter names none.
 */
typedef struct zarr_codec_elements {
    uint32_t struct_size, reserved;
    char takes[ZARR_ELEMENTS_NAME]; /**< elements that encoding takes */
    char gives[ZARR_ELEMENTS_NAME]; /**< elements that encoding gives */
} zarr_codec_elements;

/** Flags of a zarr_codec_spelling. */
enum {
    ZARR_SPELLING_BIG_ENDIAN = 1, /**< v2: elements are big-endian at this codec */
    /** v3: a v2 filter becomes an array->array codec, whose element types have no byte
     * order */
    ZARR_SPELLING_BETWEEN_ARRAYS = 2
};
/** How `spell` writes a codec. */
typedef struct zarr_codec_spelling {
    uint32_t struct_size;
    int32_t format; /**< format of the metadata, 2 or 3 */
    uint32_t flags; /**< ZARR_SPELLING_* */
    /** v3: 1 puts "numcodecs." before the name; set by the library, and `spell` may
     * change it */
    uint32_t prefix;
} zarr_codec_spelling;

/**
 * A codec specification. `name` and `kind` are required. Any other entry may be NULL or
 * 0, which has the meaning that its comment gives.
 *
 * The library calls the functions from any thread. Functions that write text do so as
 * snprintf(): they write at most `cap` bytes with the NUL and store the length without
 * the NUL in `*text_bytes`, even if it exceeds the buffer; `text` may be NULL if `cap` is
 * 0. Functions that fail fill `err` with one line of text.
 */
typedef struct zarr_codec_spec_vtable {
    uint32_t struct_size, flags; /**< `flags`: ZARR_CODEC_SPEC_* */
    const char *name;            /**< such as "zstd" */
    /** more v3 names that are read but never written, ended by NULL; NULL: none */
    const char *const *aliases;
    uint32_t kind, reserved; /**< `kind`: ZARR_CODEC_ARRAY_ARRAY and so on */
    /**
     * Checks a configuration and writes its canonical form, the JSON text of an object.
     * `raw` has the configuration of the metadata, which the calls above read: an empty
     * object if there is none; in v2 without the member `id`. `format` is 2 or 3 and
     * tells the spelling; a v3 name that begins with "numcodecs." comes as 2. In format 3
     * the function refuses unknown members. Errors name the codec, the member and the
     * rule.
     *
     * NULL: any configuration is legal and is copied as it is.
     */
    zarr_status (*canonical)(const zarr_codec_spec *raw, int format, char *text,
                             size_t cap, size_t *text_bytes, zarr_error *err);
    /**
     * Tells what the codec gives if it gets `in`. `*out` arrives as a copy of `*in` with
     * `fill` NULL; the function sets the members that differ. For an array the library
     * computes `n_bytes`. For bytes, UINT64_MAX in `n_bytes` means that the metadata
     * gives no bound; `zarr_limits.chunk_bytes` is the bound then. `fill_out` has zeroed
     * room for one element of the output data type (512 bytes); `out->fill` may point to
     * it. The library calls the function once for each chain and chunk shape. An input
     * that the codec does not take, because of its number of dimensions or data type, is
     * INVALID or UNSUPPORTED.
     *
     * NULL: an array->array codec changes nothing; other codecs give at most `n_bytes` +
     * `n_bytes` / 8 + 64 KiB.
     */
    zarr_status (*resolve)(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                           zarr_chunk_spec *out, void *fill_out, zarr_error *err);
    /**
     * Members of the configuration that are lists of codecs, ended by NULL. Each list is
     * a whole chain, or has only bytes->bytes codecs. They are parsed before canonical(),
     * which gets their text from zarr_codec_spec_chain_json(). All nested codecs count
     * for `zarr_limits.codecs`. NULL: there are no such members.
     */
    const char *const *chains;
    /**
     * Returns 1 if encoding and then decoding an array such as `in` can change values,
     * else 0; values that encode() refuses do not count. A shard index, whose values are
     * offsets, must not use such a codec. The library calls the function after resolve(),
     * for the same `in`. NULL: no value changes.
     */
    int (*lossy)(const zarr_codec_spec *spec, const zarr_chunk_spec *in);
    /**
     * Writes the configuration with the members that only the array can tell, such as the
     * typesize of blosc. The library calls it for new arrays and for conversions, which
     * must write complete metadata. `in` is what the codec gets. `array` is what the
     * array->bytes codec of the chain gets; its `dtype` is NULL in a chain of
     * bytes->bytes codecs. A length of 0 means that the configuration is complete. NULL:
     * it always is.
     */
    zarr_status (*complete)(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                            const zarr_chunk_spec *array, char *text, size_t cap,
                            size_t *text_bytes, zarr_error *err);
    /** Returns 1 if decoding needs a member that the configuration lacks, else 0. The
     * library then calls complete() for a stored array, too, when it is opened. NULL: 0
     */
    int (*incomplete)(const zarr_codec_spec *spec);
    /**
     * Tells what the nested chain `member` gets if the codec gets `in`. `*out` arrives
     * zeroed except for `struct_size`. It becomes an array or bytes; an array with
     * `exact` 0 has one dimension, of any length up to `shape`[0]. NULL: only the
     * implementation knows, so nested chains are not completed, and an incomplete one is
     * refused.
     */
    zarr_status (*chain_input)(const zarr_codec_spec *spec, const char *member,
                               const zarr_chunk_spec *in, zarr_chunk_spec *out,
                               zarr_error *err);
    /**
     * Writes the members of the configuration as metadata of `how->format` has them. The
     * library spells nested chains. A length of 0 means the canonical form. NULL: the
     * canonical form in both formats.
     */
    zarr_status (*spell)(const zarr_codec_spec *spec, zarr_codec_spelling *how,
                         char *text, size_t cap, size_t *text_bytes, zarr_error *err);
    /**
     * Tells which elements the codec takes and gives. `*out` arrives empty.
     *
     * bytes->bytes: makes the codec a v2 filter on elements. v3 has such a filter between
     * arrays, as "numcodecs." and `name`, which must be registered as an array->array
     * codec. `in` is the NumPy type string of the elements that the codec gets, "" if
     * they are not known; elements that the codec cannot take are INVALID. `in` NULL asks
     * only for what the configuration names.
     *
     * array->bytes: `takes` names the byte order of the elements before it in v2.
     *
     * NULL: the codec does not work on elements.
     */
    zarr_status (*elements)(const zarr_codec_spec *spec, const char *in,
                            zarr_codec_elements *out, zarr_error *err);
    /** Changes what later codecs learn from zarr_codec_spec_input(). `*input` arrives as
     * this codec has it, with `keepbits` -1. NULL: nothing changes. */
    void (*pass)(const zarr_codec_spec *spec, zarr_codec_input *input);
    /**
     * array->bytes, for elements of less than a byte: returns 1 if the encoded bytes are
     * the elements of `in` one after the other, packed as ZARR_TENSOR_PACKED has them,
     * and nothing else; else 0. Packed tensors are then read and written without
     * unpacking. NULL: 0
     */
    int (*packs)(const zarr_codec_spec *spec, const zarr_chunk_spec *in);
    /**
     * array->bytes, v2: tells which element a fill value is, for a codec whose elements
     * stand for more than `dtype` can spell. `json` is the fill value of the metadata,
     * "null" if there is none. The function writes that element as zarr_dtype_parse()
     * reads it. A length of 0 means that the data type reads the fill value itself. NULL:
     * it always does.
     */
    zarr_status (*fill_read)(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                             const char *json, char *text, size_t cap, size_t *text_bytes,
                             zarr_error *err);
    /** The reverse of fill_read(): `json` is an element as zarr_dtype_print() writes it,
     * and the function writes it as v2 metadata has it. NULL: as it is */
    zarr_status (*fill_write)(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                              const char *json, char *text, size_t cap,
                              size_t *text_bytes, zarr_error *err);
} zarr_codec_spec_vtable;

/**
 * @name Nested chains
 * A codec can have chains in its configuration: the members that
 * `zarr_codec_spec_vtable.chains` lists. Texts are borrowed and live as long as the
 * codec.
 * @{
 */
/** Returns the canonical JSON text of the chain in a member; NULL if it is missing. */
ZARR_API const char *zarr_codec_spec_chain_json(const zarr_codec_spec *spec,
                                                const char *member);
/** Returns how many codecs the chain in a member has; -1 if it is missing. `*array`
 * becomes 1 for a whole chain, and 0 if it has only bytes->bytes codecs or none; `array`
 * may be NULL. */
ZARR_API int64_t zarr_codec_spec_chain_codecs(const zarr_codec_spec *spec,
                                              const char *member, int *array);
/** Returns the name of codec number `i` of the chain in a member, counted from 0; NULL
 * after the last one. */
ZARR_API const char *zarr_codec_spec_chain_name(const zarr_codec_spec *spec,
                                                const char *member, uint64_t i);
/**
 * Tells what the chain in a member gives. For use in resolve().
 * @param spec borrowed
 * @param member name of the member
 * @param in what the chain gets; an array with `exact` 0 has one dimension, of any length
 * up to `shape`[0]
 * @param out filled: the encoded side, whose `n_bytes` is UINT64_MAX without a bound
 * @retval ZARR_ERR_INVALID the member is missing, or the chain does not take `in`
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_codec_spec_chain_resolve(
    const zarr_codec_spec *spec, const char *member, const zarr_chunk_spec *in,
    zarr_chunk_spec *out, zarr_error *err);
/** @} */

/* ---- implementations --------------------------------------------------------------- */

/**
 * One chunk to encode or decode. Both blocks of memory are borrowed for the call. The
 * struct is used in arrays and has no size member, so it never gets more members.
 */
typedef struct zarr_codec_job {
    zarr_memory src; /**< the input; `src.bytes` is its exact length */
    /** the output; `dst.bytes` is the room for it. A decoder writes exactly the length
     * that the metadata gives, never more */
    zarr_memory dst;
    uint64_t dst_used;     /**< set by the codec: bytes of output */
    const uint64_t *chunk; /**< reserved for chunk coordinates: NULL now */
    zarr_status status;    /**< set by the codec */
    uint32_t flags;        /**< set by the codec: ZARR_CODEC_JOB_* */
} zarr_codec_job;

/** Flags of a zarr_codec_job. */
enum {
    /** with a failed status: the output is longer than `dst`. If the metadata does not
     * tell the length, the library calls again with more room, up to a limit */
    ZARR_CODEC_JOB_NO_ROOM = 1
};

/** A range of bytes in a decoded chunk. */
typedef struct zarr_codec_range {
    uint64_t offset; /**< first byte */
    uint64_t bytes;  /**< length */
} zarr_codec_range;

/** The places of all elements of a decoded chunk, which include those beyond the edge of
 * the array. */
typedef struct zarr_codec_strided {
    uint32_t struct_size;
    int32_t ndim;          /**< number of dimensions */
    uint64_t item_bytes;   /**< bytes of an element */
    zarr_memory first;     /**< the first element; `first.bytes` is `item_bytes` */
    const uint64_t *shape; /**< lengths in elements; decode() gives them in C order */
    const int64_t *stride; /**< bytes from one element to the next, of any sign */
} zarr_codec_strided;

/** What the library gives an implementation for one call. */
typedef struct zarr_codec_exec {
    uint32_t struct_size;
    uint32_t flags; /**< ZARR_CODEC_JOB_NO_ROOM, set by a runner for the library */
    /** what thread_open() made, for one thread at a time */
    void *thread_state;
    /** NULL: all work is done when the call returns. With ZARR_CODEC_ASYNC a stream of
     * the memory backend of the device side: encode() and decode() may leave work on it,
     * which begins after the work that is there already */
    void *stream;
    /** memory of the implementation's output kind, at least as long as scratch() asked */
    zarr_memory scratch;
    /** reserved for grids of chunks that differ in shape; NULL: as in bind() */
    const uint64_t *chunk_shape;
    void *inner; /**< for runners; not for the implementation */
    /** set by encode() and decode(), only with `stream`: what settle() needs. NULL: all
     * work is complete, and settle() is not called */
    void *pending;
    /** bytes that the implementation itself copied from host memory (up) or to host
     * memory (down), and how often; the library counts its own copies */
    uint64_t up_bytes, up_copies, down_bytes, down_copies;
} zarr_codec_exec;

/** Capabilities of a codec implementation. */
enum {
    ZARR_CODEC_CAN_DECODE = 1, /**< decode() works */
    ZARR_CODEC_CAN_ENCODE = 2, /**< encode() works */
    /**
     * one call gets all chunks of a wave, including those in shards. Without this flag
     * each call gets one chunk, on any thread. A block that replaces its old value comes
     * alone, and so does a shard with codecs around it
     */
    ZARR_CODEC_BATCH = 4,
    /** decode() checks all bounds: no input makes it touch memory that is not its own. An
     * implementation without this flag decodes only data that is trusted; see
     * ZARR_TRUST_VERIFIED */
    ZARR_CODEC_SAFE = 8,
    /** equal input gives equal encoded bytes; for listings */
    ZARR_CODEC_DETERMINISTIC = 16,
    /**
     * implements the specification of the name that has ZARR_CODEC_SPEC_V2. With
     * ZARR_CODEC_FOR_V3, or with neither flag, it implements the specification without
     * ZARR_CODEC_SPEC_V2. If a specification of the name has ZARR_CODEC_SPEC_V2, an
     * implementation with neither flag is refused
     */
    ZARR_CODEC_FOR_V2 = 32,
    ZARR_CODEC_FOR_V3 = 64, /**< see ZARR_CODEC_FOR_V2; both flags: both formats */
    /**
     * encode() and decode() can leave work on `exec->stream`; needs settle(). They return
     * with `exec->pending` set, and the library waits for the stream and calls settle().
     * Until then both blocks of each job, the scratch memory and `self` stay as they are.
     * decode() sets `dst_used` before it returns, so the length of the output must follow
     * from the metadata or from bytes that the host can read. encode() may leave
     * `dst_used` to settle().
     */
    ZARR_CODEC_ASYNC = 128,
    /**
     * accepts() must get the encoded bytes in host memory. The library uses such a
     * decoder only for chunks that it copies from host memory, and calls accepts() once,
     * before the copy. For device decoders that fail badly on some valid streams
     */
    ZARR_CODEC_LOOKS = 256
};

/**
 * The task of an instance of an implementation: one codec, chunks of one shape, one
 * direction, and the kinds of memory of input and output. The number of a device is in
 * the memory of each job. Borrowed for the call of bind().
 */
typedef struct zarr_codec_binding {
    uint32_t struct_size;
    uint32_t encode;                /**< 1: encode() is called; 0: decode() */
    const zarr_chunk_spec *decoded; /**< a chunk before the codec */
    const zarr_chunk_spec *encoded; /**< the same after the codec */
    /** kinds of memory of both sides, one of ZARR_DEVICE_* each */
    int32_t decoded_type, encoded_type;
} zarr_codec_binding;

/** The bit of a kind of memory in `in_kinds` and `out_kinds`. The kind is a device type
 * of DLPack below 32, such as ZARR_DEVICE_CPU. */
#define ZARR_MEMORY_BIT(device_type) (UINT32_C(1) << (device_type))

/**
 * A codec implementation. Required are `codec`, `impl`, `in_kinds`, `out_kinds`, and
 * encode() or decode() with its capability. Any other entry may be NULL or 0, which has
 * the meaning that its comment gives.
 *
 * The library calls the functions from any thread. Threads share `self`, which bind()
 * makes, so it must not change; `exec->thread_state` and `exec->scratch` belong to one
 * call. Functions that fail fill `err` with one line of text.
 */
typedef struct zarr_codec_impl_vtable {
    uint32_t struct_size, caps; /**< `caps`: ZARR_CODEC_CAN_DECODE and so on */
    const char *codec;          /**< name of the specification, such as "zstd" */
    const char *impl;           /**< name of the implementation, such as "cpu.libzstd" */
    /** kinds of memory that it can use, for the encoded and for the decoded side: a sum
     * of ZARR_MEMORY_BIT() of each */
    uint32_t in_kinds, out_kinds;
    int32_t priority; /**< the highest wins; the library's own CPU ones have 0 */
    /** decoding: alignment in bytes, within its block, of input that is not in host
     * memory (a power of two up to 256); 0: none. Input in host memory has no alignment.
     * Output that is not in host memory begins at a multiple of 256 bytes in its block,
     * or at an element of the caller's tensor. The memory backend aligns blocks */
    uint32_t alignment;
    /**
     * Makes an instance in `*self`. UNSUPPORTED: it cannot handle this codec, these
     * chunks or these kinds of memory, and the library tries the next implementation.
     * After a failure there is nothing to close. NULL: `self` is NULL in all calls.
     */
    zarr_status (*bind)(void **self, const zarr_codec_spec *spec,
                        const zarr_codec_binding *to, zarr_error *err);
    /** Returns 1 if this instance can decode `job->src`, else 0; then the next
     * implementation decodes it. If the encoded bytes are in host memory, the library
     * calls this before it copies them to the kind of memory that bind() got; `job->dst`
     * may then be empty. NULL: it can decode all. */
    int (*accepts)(void *self, const zarr_codec_job *job);
    /** Returns how many bytes of scratch memory a call with `n` chunks of at most
     * `max_out` decoded bytes each needs. If there is no room for them, the next
     * implementation of the codec gets the chunks. NULL: 0. */
    uint64_t (*scratch)(void *self, uint64_t n, uint64_t max_out);
    /** Makes in `*state` what only one thread at a time can use, such as a context of a
     * compression library. All instances of the implementation share it; `self` is the
     * first one that needs it. NULL: there is no such state. */
    zarr_status (*thread_open)(void *self, void **state, zarr_error *err);
    /** Frees a state of thread_open(), which is not NULL; cannot fail. NULL: nothing to
     * free. */
    void (*thread_close)(void *state);
    /**
     * Encodes `n` chunks. The function sets `status` and `dst_used` of each job, and
     * returns the first status that is not ZARR_OK, whose text is in `err`. A job whose
     * status is UNSUPPORTED, NO_MEMORY or DEVICE falls back to the next implementation of
     * the codec, if there is one. So do all jobs if the function returns one of these and
     * no job has a status. Other failures end the read or write. NULL: only without
     * ZARR_CODEC_CAN_ENCODE.
     */
    zarr_status (*encode)(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err);
    /** Decodes `n` chunks, as encode() encodes them. The input is hostile (but see
     * ZARR_CODEC_SAFE): damage is CORRUPT. NULL: only without ZARR_CODEC_CAN_DECODE. */
    zarr_status (*decode)(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err);
    /** Frees what bind() made, which is not NULL; cannot fail. NULL: nothing to free. */
    void (*close)(void *self);
    /**
     * Returns the number of output bytes for `job->src` if it is fast to find, else 0.
     * `encode` 0: the length in the header of the chunk, for which the library reserves
     * memory within limits. `encode` 1: an upper bound. NULL: 0.
     */
    uint64_t (*size_hint)(void *self, const zarr_codec_job *job, int encode);
    /**
     * Decodes parts of one chunk, for reads that need little of it. `job->src` is the
     * whole encoded chunk, and `job->dst` has room for exactly the decoded chunk. The `n`
     * ranges are in ascending order, do not overlap, and are inside the decoded chunk.
     * The function writes the bytes of each range at their offset in `job->dst`; other
     * bytes of `job->dst` may have any value. It sets `job->dst_used` to the bytes that
     * it decoded. It may miss damage elsewhere in the chunk. NULL: chunks are decoded
     * whole.
     */
    zarr_status (*partial)(void *self, zarr_codec_job *job,
                           const zarr_codec_range *ranges, uint64_t n,
                           zarr_codec_exec *exec, zarr_error *err);
    /**
     * Decodes one whole chunk directly to the places of its elements in the caller's
     * memory, which is of a kind in `out_kinds`. `job->dst` is empty. The function sets
     * `job->dst_used` to the bytes that it decoded. It returns UNSUPPORTED before it
     * writes anything if this chunk must be decoded to a block. NULL: all chunks are
     * decoded to a block, and copied from there.
     */
    zarr_status (*strided)(void *self, zarr_codec_job *job, const zarr_codec_strided *to,
                           zarr_codec_exec *exec, zarr_error *err);
    /**
     * Ends a call of encode() or decode() that left work on a stream, even if the call
     * failed. The library has already waited for the stream, and the wait may have
     * failed. The function sets `status` of each job that failed now, does not change
     * that of jobs that failed earlier, and frees what `exec->pending` has. It returns
     * the first status that is not ZARR_OK, whose text is in `err`. If it returns a
     * status that no job has, all jobs failed. Required with ZARR_CODEC_ASYNC.
     */
    zarr_status (*settle)(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err);
    /** strided() is not called for chunks that decode to fewer bytes */
    uint64_t strided_least;
    /**
     * Checks one encoded chunk that contains the decoded one unchanged, as with
     * checksums. The function sets `job->dst` to that part of `job->src`, without a copy,
     * and `job->dst_used` to its length. The library calls it instead of decode() for
     * chunks in host memory, unless the decoded chunk belongs in another block.
     * UNSUPPORTED: the library calls decode(). NULL: decode() copies.
     */
    zarr_status (*within)(void *self, zarr_codec_job *job, zarr_codec_exec *exec,
                          zarr_error *err);
} zarr_codec_impl_vtable;

/* ---- running nested chains --------------------------------------------------------- */

/**
 * Runs a nested chain on host memory. An implementation makes it in bind(), uses it in
 * encode() and decode(), and closes it in close(). If the metadata does not tell a
 * length, buffers grow up to `zarr_limits.chunk_bytes`.
 *
 * A call takes codec contexts and buffers from `exec`. The chain may contain the same
 * codec, so an implementation must not call a runner while it uses its own thread state.
 * Thread class: frozen.
 */
typedef struct zarr_codec_runner zarr_codec_runner;

/**
 * @name Run nested chains
 * @{
 */
/**
 * Makes a runner.
 * @param out receives the runner; owned: zarr_codec_runner_close()
 * @param spec the codec that has the chain; borrowed, must outlive the runner
 * @param member member of its configuration
 * @param decoded what the chain gets, as `in` of zarr_codec_spec_chain_resolve()
 * @retval ZARR_ERR_UNSUPPORTED a codec has no implementation on the host
 * @retval ZARR_ERR_INVALID the member is missing, or the chain does not take `decoded`
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_codec_runner_open(
    zarr_codec_runner **out, const zarr_codec_spec *spec, const char *member,
    const zarr_chunk_spec *decoded, zarr_error *err);
/**
 * Decodes bytes.
 * @param runner borrowed
 * @param exec what the implementation was called with
 * @param src the encoded bytes, in host memory
 * @param dst where the output goes. If `dst->handle` is not NULL, it has room for
 * `dst->bytes` bytes of output. If it is NULL, it becomes memory of this thread that is
 * valid until the implementation's encode() or decode() returns, or `src` itself if the
 * chain changes nothing. `dst->bytes` becomes the length of the output
 * @retval ZARR_ERR_CORRUPT the bytes are damaged, or the room is too small; if the
 * implementation's own job then fails, the library marks it with ZARR_CODEC_JOB_NO_ROOM
 * @retval ZARR_ERR_LIMIT the output exceeds `zarr_limits.chunk_bytes`
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_codec_runner_decode(const zarr_codec_runner *runner, zarr_codec_exec *exec,
                         const zarr_memory *src, zarr_memory *dst, zarr_error *err);
/**
 * Encodes bytes or elements.
 * @param runner borrowed
 * @param exec,dst as for zarr_codec_runner_decode()
 * @param src the decoded side, in host memory
 * @return as zarr_codec_runner_decode()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_codec_runner_encode(const zarr_codec_runner *runner, zarr_codec_exec *exec,
                         const zarr_memory *src, zarr_memory *dst, zarr_error *err);
/** Frees a runner, which may be NULL. */
ZARR_API void zarr_codec_runner_close(zarr_codec_runner *runner);
/** @} */

ZARR_END_DECLS

#endif
