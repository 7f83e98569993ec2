/*
 * zarrc/plugin/codec.h - how to make a codec: what it means (a specification)
 * apart from how it is done (an implementation). FOR EXTENDERS: stable per
 * plug-in ABI number.
 *
 * A specification validates and canonicalises a configuration and says how
 * shape, data type, fill value and sizes pass through. It knows no memory, no
 * library. An implementation is registered for a specification's name with
 * the memory kinds it takes and gives, a priority, and batched entries; the
 * library chooses one per chain position (zarr_array_explain() shows which).
 * Implementations read a specification through the getters below.
 */
#ifndef ZARRC_PLUGIN_CODEC_H
#define ZARRC_PLUGIN_CODEC_H

#include <zarrc/base.h>
#include <zarrc/context.h>
#include <zarrc/dtype.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>

ZARR_BEGIN_DECLS

/** A validated codec of a chain: name + canonical configuration. Thread class: frozen. */
typedef struct zarr_codec_spec zarr_codec_spec;

/** Name under which the specification is registered (aliases resolved). Borrowed. */
ZARR_API const char *zarr_codec_spec_name(const zarr_codec_spec *spec);
/** Canonical configuration as JSON text, "{}" when empty. Borrowed. */
ZARR_API const char *zarr_codec_spec_json(const zarr_codec_spec *spec);
/** A member of the configuration; returns 0, or -1 when absent or of another type. */
ZARR_API int zarr_codec_spec_i64(const zarr_codec_spec *spec, const char *member,
                                 int64_t *out);
ZARR_API int zarr_codec_spec_f64(const zarr_codec_spec *spec, const char *member,
                                 double *out);
ZARR_API int zarr_codec_spec_bool(const zarr_codec_spec *spec, const char *member,
                                  int *out);
/** Borrowed text, or NULL. */
ZARR_API const char *zarr_codec_spec_text(const zarr_codec_spec *spec,
                                          const char *member);
/** Integers of an array member; returns how many there are (up to cap are stored), or -1.
 */
ZARR_API int64_t zarr_codec_spec_i64s(const zarr_codec_spec *spec, const char *member,
                                      int64_t *out, uint64_t cap);
/** Name of the i-th member of the configuration, NULL behind the last: to refuse unknown
 * ones. Borrowed. */
ZARR_API const char *zarr_codec_spec_member(const zarr_codec_spec *spec, uint64_t i);
/** Where an instance bound to this codec takes host memory from; never NULL. Borrowed. */
ZARR_API const zarr_allocator *zarr_codec_spec_allocator(const zarr_codec_spec *spec);
/** A data type by v3 name, v2 string or v3 JSON, as zarr_dtype_find() takes them: for
 * codecs that change it. Borrowed. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_codec_spec_dtype(const zarr_codec_spec *spec,
                                                           const char *name,
                                                           const zarr_dtype **out,
                                                           zarr_error *err);

enum {
    ZARR_CODEC_ARRAY_ARRAY = 1,
    ZARR_CODEC_ARRAY_BYTES = 2,
    ZARR_CODEC_BYTES_BYTES = 3
};

/** What a codec sees of a chunk. Arrays: all members. Bytes: only n_bytes (decoded side,
 * exact or a bound) and exact. */
typedef struct zarr_chunk_spec {
    uint32_t struct_size;
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK];
    const zarr_dtype *dtype;
    const void *fill; /**< one native-endian element; NULL: zero */
    uint64_t n_bytes; /**< bytes of this representation: exact for arrays (elements x
                         item_bytes) */
    uint32_t exact;   /**< 1: n_bytes is exact for every chunk; 0: an upper bound */
    uint32_t item_bytes_hint; /**< bytes side: item size of the array that went in
                                 (blosc's typesize), 1 if none */
} zarr_chunk_spec;

enum {
    /** A numcodecs codec: `name` is its v2 id; v3 metadata spells it "numcodecs." + name,
     * which needs no alias. Where a codec between arrays was registered by that name
     * before, as the v3 form of a v2 filter on bytes, it keeps it. */
    ZARR_CODEC_SPEC_NUMCODECS = 1,
    ZARR_CODEC_SPEC_V3 = 2,           /**< has no place in v2 metadata */
    ZARR_CODEC_SPEC_EXPERIMENTAL = 4, /**< not in Zarr's registry: shown by listings */
    /** Only for v2 metadata, where its name may mean something else than in v3. Done by
     * implementations with ZARR_CODEC_FOR_V2. */
    ZARR_CODEC_SPEC_V2 = 8,
    /** Decoding changes nothing, and the encoded side has the decoded side's shape, data
     * type and bytes. */
    ZARR_CODEC_SPEC_DECODES_NOTHING = 16,
    /** array->array: changes the shape only; elements stay in C order. Needs no
     * implementation. */
    ZARR_CODEC_SPEC_RESHAPES = 32,
    /** array->array: every element by itself, the shape stays: commutes with cutting a
     * chunk into parts. In front of a shard it is done to the inner chunks, one by one;
     * behind a codec without this flag shards are read and written whole. */
    ZARR_CODEC_SPEC_ELEMENTWISE = 64,
    /** array->array: the shape stays, though elements depend on each other. A grid of
     * shards behind such a codec is checked when the array is opened. ELEMENTWISE implies
     * it. */
    ZARR_CODEC_SPEC_KEEPS_SHAPE = 128,
    /** A codec that metadata names "numcodecs." + name keeps that prefix when it is
     * written: other readers know it by no other name. */
    ZARR_CODEC_SPEC_KEEPS_PREFIX = 256
};

enum {
    ZARR_INPUT_V2_FILTER = 1,  /**< the codec is a v2 filter that works between arrays */
    ZARR_INPUT_TRANSPOSED = 2, /**< dimensions were permuted (v2: order F) */
    ZARR_INPUT_BIG_ENDIAN = 4, /**< v2: elements that name a byte order are big-endian */
    ZARR_INPUT_FLAT = 8        /**< numcodecs hands the array on with one dimension */
};
/** What the codecs in front of a codec did to the array that it gets, as far as its shape
 * and data type don't tell: numcodecs' array->bytes codecs store some of it. */
typedef struct zarr_codec_input {
    uint32_t struct_size, flags; /**< flags: ZARR_INPUT_* */
    int32_t keepbits; /**< of a rounding right in front that hands on the bits of
                         floats as integers; -1: none */
    uint32_t reserved;
} zarr_codec_input;
/** Copies the front of a codec of a parsed chain. *out: struct_size set by the caller. */
ZARR_API void zarr_codec_spec_input(const zarr_codec_spec *spec, zarr_codec_input *out);
/** 1 if the metadata names the codec "numcodecs." + name, else 0. */
ZARR_API int zarr_codec_spec_prefixed(const zarr_codec_spec *spec);

enum {
    ZARR_ELEMENTS_NAME = 40 /**< bytes of a NumPy type's name, the final NUL included */
};
/** The elements that a v2 filter takes and gives, as NumPy names them: "<f8", "|u1",
 * "<m8[ns]". Empty: it names none. */
typedef struct zarr_codec_elements {
    uint32_t struct_size, reserved;
    char takes[ZARR_ELEMENTS_NAME], gives[ZARR_ELEMENTS_NAME];
} zarr_codec_elements;

enum {
    ZARR_SPELLING_BIG_ENDIAN = 1, /**< v2: elements are big-endian where the codec is */
    /** v3: a v2 filter becomes a codec between arrays: element types have no byte order.
     */
    ZARR_SPELLING_BETWEEN_ARRAYS = 2
};
/** What spell() is asked for. */
typedef struct zarr_codec_spelling {
    uint32_t struct_size;
    int32_t format;  /**< 2 or 3 */
    uint32_t flags;  /**< ZARR_SPELLING_* */
    uint32_t prefix; /**< in and out: v3: 1 puts "numcodecs." in front of the name */
} zarr_codec_spelling;

/** Required: name and kind; every other entry may be NULL, with the default told at it.
 */
typedef struct zarr_codec_spec_vtable {
    uint32_t struct_size, flags; /**< flags: ZARR_CODEC_SPEC_* */
    const char *name;            /**< "zstd" */
    const char *const
        *aliases; /**< NULL-terminated v3 names also accepted on read; NULL: none */
    uint32_t kind, reserved; /**< ZARR_CODEC_* */
    /**
     * Checks a configuration and writes its canonical form, the JSON text of an object.
     * `raw` is the configuration as it stands in the metadata, read by the getters above
     * (an empty object if absent; v2: without "id"). format is 2 or 3 and says which
     * spelling is meant: v3 names that begin with "numcodecs." come as 2. In format 3
     * unknown members are refused. cap and *text_bytes as snprintf has them: text may be
     * NULL when cap is 0. Errors name the codec, the member and the rule. NULL: any
     * configuration, copied as it is.
     */
    zarr_status (*canonical)(const zarr_codec_spec *raw, int format, char *text,
                             size_t cap, size_t *text_bytes, zarr_error *err);
    /**
     * What comes out of encode for what goes in: shape, dtype, fill, n_bytes, exact.
     * n_bytes UINT64_MAX: nothing in the metadata bounds it; limits.chunk_bytes does.
     * `*out` arrives as a copy of *in with fill NULL. `fill_out` has room for one element
     * of the output data type (512 bytes) and arrives zeroed. Called once per chain and
     * chunk shape. Refuses what does not fit (rank, data type) with INVALID or
     * UNSUPPORTED. For arrays n_bytes is computed by the caller. NULL: array->array
     * unchanged; others: worst case n_bytes + n_bytes / 8 + 64 KiB, not exact.
     */
    zarr_status (*resolve)(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                           zarr_chunk_spec *out, void *fill_out, zarr_error *err);
    /**
     * Members of the configuration that are lists of codecs: NULL-terminated; NULL: none.
     * They are parsed before canonical() is called, which takes their text from
     * zarr_codec_spec_chain_json(). Each is a whole chain, or of bytes->bytes codecs
     * only; all nested ones count against limits.codecs.
     */
    const char *const *chains;
    /**
     * Whether some array of that type, encoded and decoded again, may come back with
     * other values; what encode() refuses does not count as kept. Such a codec is refused
     * where values point to others: in a shard's index. Called behind resolve() for the
     * same `in`. NULL: all values are kept.
     */
    int (*lossy)(const zarr_codec_spec *spec, const zarr_chunk_spec *in);
    /**
     * Writes the configuration with what only the array tells, such as blosc's typesize:
     * for new arrays and conversions, whose metadata must be complete. in: what the codec
     * gets. array: what the chain's array->bytes codec gets; dtype NULL in a chain of
     * bytes->bytes codecs. text, cap and *text_bytes as for canonical(); 0 bytes: nothing
     * is missing. NULL: nothing ever is.
     */
    zarr_status (*complete)(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                            const zarr_chunk_spec *array, char *text, size_t cap,
                            size_t *text_bytes, zarr_error *err);
    /** Returns 1 if the configuration lacks what decoding needs: complete() is called
     * when a stored array is opened, too. NULL: never. */
    int (*incomplete)(const zarr_codec_spec *spec);
    /**
     * Sets *out to what the chain `member` gets for a chunk `in`: an array (exact 0: one
     * dimension of any length up to shape[0]), or bytes (dtype NULL). *out arrives zeroed
     * but for struct_size. NULL: only the implementation knows; chains inside are not
     * completed then, and an incomplete one is refused.
     */
    zarr_status (*chain_input)(const zarr_codec_spec *spec, const char *member,
                               const zarr_chunk_spec *in, zarr_chunk_spec *out,
                               zarr_error *err);
    /**
     * Writes the members as metadata of how->format spells them; nested chains are
     * spelled by the library. text, cap and *text_bytes as for canonical(); 0 bytes: the
     * canonical form. NULL: the canonical form in both formats.
     */
    zarr_status (*spell)(const zarr_codec_spec *spec, zarr_codec_spelling *how,
                         char *text, size_t cap, size_t *text_bytes, zarr_error *err);
    /**
     * bytes->bytes: makes the codec a v2 filter on elements: v3 has it between arrays,
     * under "numcodecs." + name, which must be registered as array->array. Sets what it
     * takes and gives. in: the NumPy type of the elements that come, "" if that is not
     * known; NULL: only what the configuration names is asked. Refuses with INVALID the
     * elements that it can't take. array->bytes: `takes` names the byte order of the
     * elements in front of it in v2. *out arrives empty. NULL: the codec has no elements.
     */
    zarr_status (*elements)(const zarr_codec_spec *spec, const char *in,
                            zarr_codec_elements *out, zarr_error *err);
    /** Changes what the codecs behind this one learn from zarr_codec_spec_input(). *front
     * arrives as this codec has it, with keepbits -1. NULL: nothing. */
    void (*pass)(const zarr_codec_spec *spec, zarr_codec_input *input);
} zarr_codec_spec_vtable;

/** Canonical JSON of the chain that a member of the configuration holds; NULL: absent.
 * Borrowed. */
ZARR_API const char *zarr_codec_spec_chain_json(const zarr_codec_spec *spec,
                                                const char *member);
/** How many codecs it has; -1: absent. *array: 1 for a whole chain, 0 for bytes->bytes
 * codecs only (or none at all); may be NULL. */
ZARR_API int64_t zarr_codec_spec_chain_codecs(const zarr_codec_spec *spec,
                                              const char *member, int *array);
/** Name of its i-th codec, NULL behind the last. Borrowed. */
ZARR_API const char *zarr_codec_spec_chain_name(const zarr_codec_spec *spec,
                                                const char *member, uint64_t i);
/**
 * What the chain makes of `in`: *out is its encoded side (n_bytes, exact). For resolve().
 * in->dtype NULL: bytes. An array with exact 0 has one dimension of any length up to
 * shape[0].
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_codec_spec_chain_resolve(
    const zarr_codec_spec *spec, const char *member, const zarr_chunk_spec *in,
    zarr_chunk_spec *out, zarr_error *err);

/** One chunk of a batch. */
typedef struct zarr_codec_job {
    zarr_mem src;      /**< src.bytes is the exact length of the input */
    zarr_mem dst;      /**< dst.bytes is the room; decoders must yield what metadata says,
                          never more */
    uint64_t dst_used; /**< out: bytes produced */
    const uint64_t *chunk; /**< reserved for chunk coordinates: always NULL now */
    zarr_status status;    /**< out */
    uint32_t flags;        /**< out: ZARR_CODEC_JOB_* */
} zarr_codec_job;

enum {
    /** With a failed status: the output is longer than dst. Where metadata does not tell
     * the length, the library calls again with more room, up to a limit. */
    ZARR_CODEC_JOB_NO_ROOM = 1
};

/** Bytes of a chunk's decoded side. */
typedef struct zarr_codec_range {
    uint64_t offset, bytes;
} zarr_codec_range;

/** Where the elements of a decoded chunk go, those at its edges included. */
typedef struct zarr_codec_strided {
    uint32_t struct_size;
    int32_t ndim;
    uint64_t item_bytes;
    zarr_mem first;        /**< the place of element 0; bytes: item_bytes */
    const uint64_t *shape; /**< what decode() gives are these elements in C order */
    const int64_t *stride; /**< bytes from one to the next, of any sign */
} zarr_codec_strided;

/** Per-call surroundings, made by the library. */
typedef struct zarr_codec_exec {
    uint32_t struct_size;
    uint32_t
        flags; /**< ZARR_CODEC_JOB_NO_ROOM: set by a runner; the library hands it on */
    void *thread_state; /**< what thread_open made for this implementation; used by one
                           thread at a time */
    void *stream;       /**< reserved: always NULL now, work is finished on return */
    zarr_mem scratch;   /**< at least what scratch() asked for, in the implementation's
                           output memory */
    const uint64_t
        *chunk_shape; /**< reserved for grids with varying chunks; NULL: as bound */
    void *inner;      /**< for runners: pass this struct on, don't look */
} zarr_codec_exec;

enum {
    ZARR_CODEC_CAN_DECODE = 1,
    ZARR_CODEC_CAN_ENCODE = 2,
    ZARR_CODEC_BATCH = 4, /**< takes the chunks of a whole mini-batch in one call, inner
                             ones of a shard too; else called per chunk on any thread. An
                             outer chunk that is written over its former value comes
                             alone, as does a shard with codecs around it */
    ZARR_CODEC_SAFE = 8,  /**< bounds-checked on any input */
    ZARR_CODEC_DETERMINISTIC = 16, /**< equal input gives equal encoded bytes */
    /** Which specification of the name `codec` it does: the one with ZARR_CODEC_SPEC_V2.
     * With ZARR_CODEC_FOR_V3, or neither: the one without that flag. Where there is one
     * with that flag, neither is refused. */
    ZARR_CODEC_FOR_V2 = 32,
    ZARR_CODEC_FOR_V3 = 64 /**< with ZARR_CODEC_FOR_V2: both */
};

/** Memory kinds as bits of in_kinds and out_kinds: bit n is DLPack device type n (< 32).
 */
#define ZARR_MEMORY_BIT(device_type) (UINT32_C(1) << (device_type))

/** Required: codec, impl, in_kinds, out_kinds, CAN_DECODE or CAN_ENCODE in caps, and
 * decode or encode for each of them; every other entry may be NULL, with the default told
 * at it. */
typedef struct zarr_codec_impl_vtable {
    uint32_t struct_size, caps;   /**< ZARR_CODEC_* */
    const char *codec, *impl;     /**< "zstd", "cpu.libzstd" */
    uint32_t in_kinds, out_kinds; /**< encoded side and decoded side: ZARR_MEMORY_BIT of
                                     each kind usable */
    int32_t priority; /**< higher wins; the core's CPU implementations have 0 */
    uint32_t reserved;
    /** Makes an instance for one codec and the representation on its decoded side; when
     * it fails it leaves nothing to close. NULL: there is none, self is NULL. */
    zarr_status (*bind)(void **self, const zarr_codec_spec *spec,
                        const zarr_chunk_spec *decoded, zarr_error *err);
    /** Whether this encoded chunk can be done; NULL: always. A refused one goes to the
     * next implementation. */
    int (*accepts)(void *self, const zarr_codec_job *job);
    /** Scratch bytes for a batch of n chunks of at most max_out decoded bytes each; NULL:
     * none. */
    uint64_t (*scratch)(void *self, uint64_t n, uint64_t max_out);
    /** A state one thread uses at a time (a codec context). NULL: none. */
    zarr_status (*thread_open)(void **state, zarr_error *err);
    /** Frees such a state (not called for a NULL one); cannot fail. NULL: nothing to
     * free.
     */
    void (*thread_close)(void *state);
    /** Each sets every job's status and dst_used; returns the first failing status, err
     * has its text. NULL: only where caps lacks CAN_ENCODE, CAN_DECODE. */
    zarr_status (*encode)(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err);
    zarr_status (*decode)(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err);
    /** Frees what bind() made (not called for a NULL self); cannot fail. NULL: nothing to
     * free. */
    void (*close)(void *self);
    /**
     * Bytes of output that job->src will give, as far as that is cheap to tell: when
     * decoding what a header says, which is believed in so far as memory is reserved by
     * it, within limits; when encoding a bound. 0: not known. NULL: never known.
     */
    uint64_t (*size_hint)(void *self, const zarr_codec_job *job, int encode);
    /**
     * Decodes parts of one chunk, for reads that want little of it. job->src is the whole
     * encoded chunk, job->dst has room for exactly the decoded one; each range's bytes
     * must come to its offset there, and what else is written is free. Ranges rise, do
     * not overlap and lie inside. Sets job->dst_used to the bytes decoded. Damage that
     * lies elsewhere in the chunk may go unseen. NULL: chunks are decoded whole.
     */
    zarr_status (*partial)(void *self, zarr_codec_job *job,
                           const zarr_codec_range *ranges, uint64_t n,
                           zarr_codec_exec *exec, zarr_error *err);
    /**
     * Decodes one chunk that is wanted whole straight to its elements' places in the
     * caller's memory, which is of a kind in out_kinds; job->dst is empty. Sets
     * job->dst_used to the bytes decoded. UNSUPPORTED, before anything is written: this
     * one is decoded to a block. NULL: all are, and copied from there.
     */
    zarr_status (*strided)(void *self, zarr_codec_job *job, const zarr_codec_strided *to,
                           zarr_codec_exec *exec, zarr_error *err);
} zarr_codec_impl_vtable;

/**
 * Runs a chain that is a member of a codec's configuration, on host memory: made in
 * bind(), used in encode() and decode(), closed in close(). Sizes that metadata does not
 * tell are found by growing buffers up to limits.chunk_bytes.
 * Thread class: frozen; what a call needs (codec contexts, buffers) it takes from exec.
 * An implementation with a thread_state of its own must not use that across a call here:
 * the chain may hold the same codec again.
 */
typedef struct zarr_codec_runner zarr_codec_runner;

/**
 * @param decoded the chain's decoded side, as for zarr_codec_spec_chain_resolve()
 * @return UNSUPPORTED where a codec has no implementation on the host; INVALID where the
 * member is absent or does not fit
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_codec_runner_open(
    zarr_codec_runner **out, const zarr_codec_spec *spec, const char *member,
    const zarr_chunk_spec *decoded, zarr_error *err);
/**
 * Decodes src. dst->handle not NULL: there, dst->bytes is the room. NULL: into memory of
 * this thread that stays until the implementation's encode() or decode() returns, or into
 * src itself where the chain changes nothing. dst->bytes becomes the length.
 * @return CORRUPT, LIMIT; CORRUPT also where the room is too small, which the caller's
 * own job is marked with when it fails then
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_codec_runner_decode(const zarr_codec_runner *runner, zarr_codec_exec *exec,
                         const zarr_mem *src, zarr_mem *dst, zarr_error *err);
/** The same backward. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_codec_runner_encode(const zarr_codec_runner *runner, zarr_codec_exec *exec,
                         const zarr_mem *src, zarr_mem *dst, zarr_error *err);
/** NULL is fine. */
ZARR_API void zarr_codec_runner_close(zarr_codec_runner *runner);

ZARR_END_DECLS

#endif
