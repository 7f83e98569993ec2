/**
 * @file
 * How to implement a codec whose specification is registered (zarrc/plugin/codec.h). For
 * extenders: stable for each plug-in ABI number.
 *
 * A codec implementation encodes and decodes. It is registered for the name of a
 * specification, with its kinds of input and output memory, and a priority. The library
 * chooses one implementation for each codec of a chain; zarr_array_explain() shows which.
 * An implementation reads the configuration with the calls of the specification.
 */
#ifndef ZARRC_PLUGIN_CODEC_IMPL_H
#define ZARRC_PLUGIN_CODEC_IMPL_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>
#include <zarrc/plugin/codec.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

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
    ZARR_CODEC_LOOKS = 256,
    /**
     * for implementations of a device. It is used only if `zarrc calibrate` measured that
     * it is faster than the CPU, or if the codec preference names it
     */
    ZARR_CODEC_IF_FASTER = 512
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
    const char *impl;  /**< name of the implementation, for tables that share functions */
    const void *inner; /**< for zarr_codec_next_open(); not for the implementation */
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

/* ---- the next implementation ------------------------------------------------------- */

/**
 * The next implementation of a codec, bound for an implementation that wraps it. It is
 * the best one after the wrapper, by preference and priority. It works between the same
 * kinds of memory and needs no more alignment. The wrapper opens it in bind(), uses it in
 * encode() and decode(), and closes it in close(). Thread class: frozen.
 */
typedef struct zarr_codec_next zarr_codec_next;

/**
 * @name Wrap the next implementation
 * @{
 */
/**
 * Binds the next implementation.
 * @param out receives it; owned: zarr_codec_next_close()
 * @param to what bind() of the wrapper got
 * @retval ZARR_ERR_UNSUPPORTED there is none
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_codec_next_open(zarr_codec_next **out,
                                                          const zarr_codec_binding *to,
                                                          zarr_error *err);
/** Returns the name of the implementation, such as "cpu.libzstd". Borrowed;
 * it lives as long as `next`. */
ZARR_API const char *zarr_codec_next_name(const zarr_codec_next *next);
/** Returns how many bytes of scratch memory zarr_codec_next_run() needs in
 * `exec->scratch`; for use in scratch(), whose parameters these are. */
ZARR_API uint64_t zarr_codec_next_scratch(const zarr_codec_next *next, uint64_t n,
                                          uint64_t max_out);
/**
 * Encodes or decodes chunks, in the direction of the wrapper. All work is done when the
 * call returns, and the library has checked the lengths of the outputs.
 * @param next borrowed
 * @param exec what encode() or decode() of the wrapper got
 * @param jobs chunks between the wrapper's kinds of memory, such as the wrapper's own
 * jobs; `status`, `dst_used` and `flags` of each are set
 * @param n number of jobs
 * @return the first status of a job that is not ZARR_OK, whose text is in `err`
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_codec_next_run(const zarr_codec_next *next,
                                                         zarr_codec_exec *exec,
                                                         zarr_codec_job *jobs, uint64_t n,
                                                         zarr_error *err);
/** Closes the implementation; `next` may be NULL. */
ZARR_API void zarr_codec_next_close(zarr_codec_next *next);
/** @} */

ZARR_END_DECLS

#endif
