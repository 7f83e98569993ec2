/**
 * @file
 * How to make a codec. A codec has two parts, which are registered separately: a
 * specification, and an implementation (zarrc/plugin/codec_impl.h). For extenders: stable
 * for each plug-in ABI number.
 *
 * A codec specification tells what the codec means. It checks a configuration, writes it
 * in its canonical form, and tells how shape, data type, fill value and size pass through
 * the codec. It knows no memory and no compression library.
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
/** Returns the canonical configuration as JSON text, "{}" if it is empty. Inside of
 * canonical() nothing is canonical yet, and it is the text of `raw`. */
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

/* ---- specifications ---------------------------------------------------------------- */

/** Flags of a codec specification. */
enum {
    /**
     * a codec of numcodecs: `name` is its v2 id, and v3 metadata names it "numcodecs."
     * and `name`, without an alias. A v2 filter on bytes may have an array->array codec
     * as its v3 form. If that one is registered under the v3 name already, the name
     * keeps meaning it
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
    /** array->array: keeps the shape; elements may depend on each other. If sharding
     * follows such a codec, opening the array checks that each block is a whole number of
     * chunks; without the flag, only decoding can tell. ELEMENTWISE implies this flag */
    ZARR_CODEC_SPEC_KEEPS_SHAPE = 128,
    /** if metadata names the codec "numcodecs." and `name`, the prefix stays when the
     * codec is written, because other readers know no other name */
    ZARR_CODEC_SPEC_KEEPS_PREFIX = 256,
    /** bytes->bytes: adds a checksum, and decoding fails with CORRUPT if the bytes are
     * not those that were encoded. Implementations without ZARR_CODEC_SAFE may decode
     * bytes that passed this check; see ZARR_TRUST_VERIFIED */
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
 * snprintf(). They write at most `cap` bytes with the NUL and store the length without
 * the NUL in `*text_bytes`, even if it exceeds the buffer. `text` may be NULL if `cap` is
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
     * bytes->bytes: a codec with this function is a v2 filter on elements. v3 has such a
     * filter between arrays, as "numcodecs." and `name`, which must be registered as an
     * array->array codec. `in` is the NumPy type string of the elements that the codec
     * gets, "" if they are not known; elements that the codec cannot take are INVALID.
     * `in` NULL asks only for what the configuration names.
     *
     * array->bytes: `takes` names the byte order of the elements before it in v2.
     *
     * NULL: the codec does not work on elements.
     */
    zarr_status (*elements)(const zarr_codec_spec *spec, const char *in,
                            zarr_codec_elements *out, zarr_error *err);
    /** Changes what later codecs learn about their input. On entry, `*input` describes
     * the input of this codec, except that `keepbits` is -1. NULL: nothing changes. */
    void (*pass)(const zarr_codec_spec *spec, zarr_codec_input *input);
    /**
     * array->bytes, for elements of less than a byte. Returns 1 if the encoded bytes are
     * the elements of `in` one after the other, packed as ZARR_TENSOR_PACKED has them,
     * and nothing else. Else returns 0. Packed tensors are then read and written without
     * unpacking. NULL: 0
     */
    int (*packs)(const zarr_codec_spec *spec, const zarr_chunk_spec *in);
    /**
     * array->bytes, v2: translates the fill value of the metadata for a codec whose
     * elements are objects, such as lists, which `dtype` has as JSON text. `json` is the
     * fill value, "null" if there is none. The function writes to `text` the element
     * in the form that zarr_dtype_parse() reads. If it sets `*text_bytes` to 0, the data
     * type reads `json` itself. NULL: the data type always does.
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

ZARR_END_DECLS

#endif
