/*
 * impl/impl.h - the door of implementations: the registry of codec implementations by
 * memory kind, and the placement pass. Placement turns a chain of specifications into a
 * program: a list of stages bound to implementations, with copies between memories where
 * they are needed. Transposes and byte order become facts of the program (permutation,
 * swap), which the strided copy at its end applies at no extra cost. All other codecs
 * are stages.
 * Thread class: the registry is sealed, programs are frozen, and thread states are leased
 * (struct zr_worker, pipe).
 */
#ifndef ZR_IMPL_H
#define ZR_IMPL_H

#include "base/base.h"
#include "chain/chain.h"
#include "mem/mem.h"
#include <zarrc/plugin/codec_impl.h>

enum {
    ZR_CHUNK_ALIGNMENT =
        256 /* of chunks in device memory; the most that codecs ask for */
};
struct zr_impl {
    struct zr_registered entry; /* without a name: several codecs may have one "cpu" */
    zarr_codec_impl_vtable vt;
    uint32_t id;    /* dense, for tables of thread states */
    uint32_t order; /* registration order */
};
struct zr_impl_absence { /* why this build has no implementation of a codec */
    const char *codec, *why;
};
/* What one implementation for a device costs, measured on this machine (costs.c). */
struct zr_measured {
    const char *codec, *impl;
    int32_t device_type;
    bool to_stored;       /* it encodes */
    uint64_t chunk_bytes; /* decoded */
    /* nanoseconds for a MiB of elements that are or will be on the device: by this
     * implementation, and by the CPU; copies included */
    uint64_t device_ns, host_ns;
};
struct zr_costs {
    const struct zr_measured *of;
    uint32_t n;
};
struct zr_impl_registry {
    const struct zr_impl_absence *absent; /* borrowed, ends with a NULL codec; or NULL */
    struct zr_registry impls;             /* struct zr_impl */
    /* the costs that were measured, called when a device is a target; NULL: none were */
    const struct zr_costs *(*costs)(void *arg);
    void *costs_arg;
};
const struct zr_costs *zr_impl_costs(const struct zr_impl_registry *r);
/* The measurement with chunks of about that size; NULL: there is none. impl NULL: any. */
struct zr_measured_key {
    const char *codec, *impl;
    int32_t device_type;
    bool to_stored;
    uint64_t chunk_bytes;
};
const struct zr_measured *zr_costs_find(const struct zr_costs *costs,
                                        const struct zr_measured_key *of);
static inline size_t zr_impl_count(const struct zr_impl_registry *r)
{
    return r->impls.n;
}
/* Whether an implementation that cannot work in host memory takes this kind. */
bool zr_impl_has_device(const struct zr_impl_registry *r, int32_t device_type);
static inline const struct zr_impl *zr_impl_at(const struct zr_impl_registry *r, size_t i)
{
    return (const void *)r->impls.entry[i];
}
void zr_impl_registry_init(struct zr_impl_registry *r, const zarr_allocator *alloc);
void zr_impl_registry_deinit(struct zr_impl_registry *r);
zarr_status zr_impl_register(struct zr_impl_registry *r, const zarr_codec_impl_vtable *v,
                             const char *origin, zarr_error *err);
/* The implementations of transpose, bytes and sharding_indexed; NULL-terminated, for
 * ctx/builtin.c. */
extern const zarr_codec_impl_vtable *const zr_impl_core[];
/* Why this build has no implementation of this codec, and what would help. NULL if the
 * table of absences does not list the codec. */
const char *zr_impl_absence_text(const struct zr_impl_registry *r, const char *codec);
/* Whether impl implements this specification: v2 and v3 may each have one of that name.
 */
bool zr_impl_is_for(const struct zr_impl *impl, const zarr_codec_spec_vtable *spec);
/* Whether an implementation of this codec is registered. */
bool zr_impl_has(const struct zr_impl_registry *r, const zarr_codec_spec_vtable *spec);
/* Whether no registered specification has the name of impl's codec. */
bool zr_impl_is_lost(const struct zr_impl *impl, const struct zr_codec_registry *codecs);

/* INVALID if a codec preference (may be NULL) is not "codec=impl,impl;codec=...", or
 * names a codec that is not registered. A list without any registered implementation is a
 * warning, or INVALID if log is NULL. */
zarr_status zr_preference_check(const char *text, const struct zr_codec_registry *codecs,
                                const struct zr_impl_registry *impls,
                                const struct zr_log *log, zarr_error *err);

/* The word for a ZARR_TRUST_*, and the value of a word. False: it is none. */
const char *zr_trust_name(uint32_t trust);
bool zr_trust_parse(const char *text, uint32_t *trust);

/* One step of a program, in decoding order (encoding walks it backward). */
enum zr_stage_kind {
    ZR_STAGE_CODEC,
    ZR_STAGE_COPY
};
struct zr_stage {
    enum zr_stage_kind kind;
    const struct zr_impl *impl; /* CODEC */
    void *self;                 /* bound instance, owned by the program */
    zarr_codec_spec spec;       /* a copy of the chain's, with its direction set */
    uint64_t in_bytes,
        out_bytes; /* encoded side (bound), decoded side; see exact flags */
    bool in_exact, out_exact;
    uint32_t out_item; /* bytes of an element of the decoded side; 0: no elements */
    int32_t in_device, out_device; /* DLPack types on the encoded and decoded side */
    /*
     * CODEC: the stage for a chunk that impl does not take: accepts() refuses it, or a
     * call ends with a status that zr_stage_declines() names. It has host memory on both
     * sides, and the caller copies in and out if in_device or out_device is not the host.
     * Owned by the program; it may have a fallback itself. NULL: no other implementation
     * exists.
     */
    struct zr_stage *fallback;
    /* the implementation that would decode in place of impl if it were trusted; or NULL
     */
    const struct zr_impl *distrusted;
    /* what decided between the CPU and the device; NULL: nothing was measured, or nothing
     * was to be decided. As long as the registry */
    const struct zr_measured *measured;
};
/*
 * How the bytes of one chunk become elements in a given memory. When decoding, the
 * fetched bytes (in memory `fetch_device`) go through stage[0..n). The result is elements
 * in `decoded_device`, in C order of the permuted shape. swap_bytes says whether their
 * byte order differs from the host's. `order` maps stored dimensions to dimensions of the
 * array: stored dimension i is the array's order[i].
 * If the chain has an array->array codec that computes, elements leave the stages in
 * native order, with the shape and type of that codec's input. Sizes of representations
 * that are not exact have slack when decoding, because streams of other writers may be
 * longer than ours.
 */
struct zr_program {
    struct zr_stage *stage;
    uint32_t n;
    int32_t ndim;
    uint64_t stored_shape[ZARR_MAX_RANK]; /* permuted */
    uint8_t order[ZARR_MAX_RANK];
    uint32_t
        swap_bytes; /* unit to reverse between stored and native order; 0 or 1: none */
    uint32_t item_bytes;
    uint64_t decoded_bytes; /* of one chunk */
    uint64_t encoded_bound; /* of one stored chunk; unsized: an estimate, for counting */
    uint64_t encoded_most;  /* unsized: the most that limits allow; else encoded_bound */
    bool encoded_exact;     /* encoded_bound is the exact size: no bytes->bytes codec of
                               varying size */
    bool decoded_exact;     /* false only around shards; decoded_bytes is then a bound */
    /* Sizes of the bytes side are limits, not bounds. Run the program with
     * zr_unsized_decode() and zr_unsized_encode(); never allocate encoded_bound bytes. */
    bool unsized;
    bool variable;  /* elements of variable length */
    bool gaps;      /* the stored value is a shard, which may have unused bytes */
    bool raw;       /* n == 0: the stored bytes are the elements; ranges can be read */
    bool distrusts; /* a stage has an implementation that is not trusted */
    /* What stages can do with chunks that they accept: the only one decodes ranges, or
     * the last one decodes into strided memory; whether there is one of the two. Not set
     * for bytes around a shard. */
    bool decodes_ranges, decodes_strided, has_routes;
    /* Type of elements whose unused bits stores may hold anything in; NULL: no such
     * elements. The caller applies zr_program_unpad() after decoding or reading and
     * zr_program_pad() before encoding. Host memory only. */
    const zarr_dtype *padded;
    int32_t fetch_device,
        decoded_device; /* raw: both are the target if the store reaches it, else host */
    bool encode;
    const zarr_allocator *alloc;
};
struct zr_placement_options {
    int32_t target_device;        /* where the caller's elements are */
    const int32_t *store_devices; /* memories that the store reads and writes directly;
                                     the host is always one */
    uint32_t n_store_devices;
    /* codec_preference of the context or array, such as
     * "zstd=cuda.nvcomp,cpu.libzstd;gzip=cpu". "cpu" means every name that begins with
     * "cpu.". zr_preference_check() has accepted it. NULL: priorities decide. */
    const char *preference;
    const struct zr_log *log; /* for warnings; NULL: none */
    bool encode;              /* only implementations that encode */
    /* ZARR_TRUST_*: decoders without ZARR_CODEC_SAFE that may be used; 0: VERIFIED */
    uint32_t trust;
    /* whether the log has the warning about trust, which it gets once; NULL: it has */
    atomic_bool *trust_told;
};
/* Chooses implementations for the codecs of `chain` that follow its leading permutations.
 * sharding_indexed is a stage like any other here, because the plan already takes apart
 * the shards whose chunks can be read alone. reps: resolved for this chunk shape.
 */
zarr_status zr_program_make(struct zr_program **out, const struct zr_impl_registry *impls,
                            const struct zr_chain *chain,
                            const struct zr_chain_reps *reps,
                            const struct zr_placement_options *opts,
                            const zarr_allocator *alloc, zarr_error *err);
/* The same for only the bytes->bytes codecs around a shard: the decoded "elements" are
 * the shard's bytes. */
zarr_status zr_program_make_bytes(struct zr_program **out,
                                  const struct zr_impl_registry *impls,
                                  const struct zr_chain *chain,
                                  const struct zr_chain_reps *reps,
                                  const struct zr_placement_options *opts,
                                  const zarr_allocator *alloc, zarr_error *err);
void zr_program_free(struct zr_program *p);
/* Sets the unused bits of stored elements in place to the form that memory has. `bytes`
 * is a whole number of elements. Does nothing if the program is not padded. */
void zr_program_unpad(const struct zr_program *p, void *elements, uint64_t bytes);
/* The same for elements on their way to a store. INVALID: an element has unused bits that
 * no value of its type has. */
zarr_status zr_program_pad(const struct zr_program *p, void *elements, uint64_t bytes,
                           zarr_error *err);
/* Whether zr_program_pad() would leave them as they are. */
bool zr_program_is_padded_well(const struct zr_program *p, const void *elements,
                               uint64_t bytes);

/* Whether s->impl takes this encoded chunk. If not, the caller tries s->fallback. The
 * chunk may still be in host memory, before its copy to s->in_device. */
bool zr_stage_accepts(const struct zr_stage *s, const zarr_codec_job *job);
/* Whether each chunk that the stage gets was accepted before it left host memory. */
static inline bool zr_stage_has_looked(const struct zr_stage *s)
{
    return (s->impl->vt.caps & ZARR_CODEC_LOOKS) && s->in_device != ZARR_DEVICE_CPU;
}
/* Whether a failure only says that s->impl cannot do it (UNSUPPORTED, NO_MEMORY, DEVICE),
 * and there is a fallback to try. */
bool zr_stage_declines(const struct zr_stage *s, zarr_status st);
/* Adds to the text of a failure of `by` which implementations of s did not take the chunk
 * before. Returns st. */
zarr_status zr_stage_tell_tried(const struct zr_stage *s, const struct zr_stage *by,
                                zarr_status st, zarr_error *err);
/* Scratch bytes in the output's memory that a call with n chunks needs; 0: none. */
uint64_t zr_stage_scratch(const struct zr_stage *s, uint64_t n);

struct zr_buffer { /* host memory that grows; growing discards its content */
    uint8_t *p;
    size_t bytes;
};
/* Runners inside codecs push the buffers that they need. When a stage returns, its
 * buffers are popped, but their memory and content stay until the next chunk. */
struct zr_buffer_stack {
    struct zr_buffer *buffer;
    size_t n, top;
};
/* Bytes of a buffer that a thread may keep without counting them in the budget. */
#define ZR_BUFFER_KEEPS ((size_t)1 << 20)
struct zr_grant { /* counts a larger buffer before it is allocated */
    zarr_status (*take)(void *arg, uint64_t bytes, zarr_error *err);
    void *arg;
};
struct zr_thread_states {
    void **state; /* by impl id, opened on first use */
    size_t n;
    struct zr_buffer_stack decode, encode;
    const struct zr_grant *grant; /* NULL: not counted */
    bool keep_empty; /* encoders of shards also write chunks of only fill value */
    const zarr_cancel *cancel; /* set: the caller no longer needs the result; or NULL */
    const zarr_allocator *alloc;
};
/* Runs codec stage s on n chunks on this thread; n > 1 only for implementations with
 * ZARR_CODEC_BATCH. The owner of ts calls zr_thread_states_close(). If out_exact, a
 * decoder must give exactly out_bytes. Every job gets its status; err->item is the first
 * job that failed. stream NULL: the work is finished on return. Otherwise dst_used and
 * status are only what the implementation reported, and are checked as such. */
struct zr_stage_call {
    zarr_codec_job *jobs;
    uint64_t n;
    struct zr_thread_states *ts;
    zarr_memory scratch;
    /* a stream of the device side, only for a stage that zr_stage_is_async(); NULL: all
     * work is done on return */
    void *stream;
    void *pending; /* out: not NULL if zr_stage_end() must be called */
    uint64_t up_bytes, up_copies, down_bytes, down_copies; /* out: by the codec itself */
};
zarr_status zr_stage_run(const struct zr_stage *s, struct zr_stage_call *call,
                         bool encode, zarr_error *err);
/* Ends a call that left work on its stream, which was waited for. A failure of the wait
 * makes the results of no interest, but what the codec keeps is still freed. */
zarr_status zr_stage_end(const struct zr_stage *s, struct zr_stage_call *call,
                         bool encode, zarr_error *err);
/* Whether a stage may leave work on a stream. */
bool zr_stage_is_async(const struct zr_stage *s);
/* Decodes n ranges of a chunk. job->dst has the exact size of the decoded chunk. */
zarr_status zr_stage_partial(const struct zr_stage *s, zarr_codec_job *job,
                             const zarr_codec_range *ranges, uint64_t n,
                             struct zr_thread_states *ts, zarr_memory scratch,
                             zarr_error *err);
/* Checks the chunk and sets job->dst to a part of job->src. */
zarr_status zr_stage_within(const struct zr_stage *s, zarr_codec_job *job,
                            struct zr_thread_states *ts, zarr_memory scratch,
                            zarr_error *err);
/* Decodes a chunk into strided memory. UNSUPPORTED: nothing was written, and the caller
 * decodes to a block instead. */
zarr_status zr_stage_decode_strided(const struct zr_stage *s, zarr_codec_job *job,
                                    const zarr_codec_strided *to,
                                    struct zr_thread_states *ts, zarr_memory scratch,
                                    zarr_error *err);
/*
 * Runs the stages of a program on host memory when sizes are not known. A decoder that
 * finds its room too small is called again with more room, up to the stage's bound. If
 * that is also too small, the result is LIMIT if limits set the bound, else CORRUPT.
 * The caller owns the buffers: [0] and [1] are used in turn, [2] is scratch of an
 * implementation, and [3] takes elements of variable length, which must not overwrite the
 * bytes that they point to.
 * dst: room for the elements, exactly p->decoded_bytes; if decoded_exact is false, it may
 * stay partly unused. NULL: the result is in a buffer, or is src itself if the program
 * has no stage.
 */
enum {
    ZR_UNSIZED_BUFFERS = 4
};
struct zr_unsized {
    struct zr_thread_states *ts;
    struct zr_buffer *buffer; /* ZR_UNSIZED_BUFFERS */
    bool no_room;             /* out, of a failed call: dst is too small */
    /* Without dst: the result has at most `most` bytes, and a longer one fails with
     * no_room. For decoders that cannot tell the length from their input alone. */
    bool bounded;
    uint64_t most;
};
zarr_status zr_unsized_decode(const struct zr_program *p, struct zr_unsized *g,
                              const zarr_memory *src, const zarr_memory *dst,
                              zarr_memory *out, zarr_error *err);
zarr_status zr_unsized_encode(const struct zr_program *p, struct zr_unsized *g,
                              const zarr_memory *src, const zarr_memory *dst,
                              zarr_memory *out, zarr_error *err);
/* Makes the buffer at least `bytes` long. Its content is lost if it grows. */
zarr_status zr_buffer_need(struct zr_buffer *b, uint64_t bytes,
                           const struct zr_thread_states *ts, zarr_error *err);
void zr_buffer_free(struct zr_buffer *b, const struct zr_thread_states *ts);
/* Frees a buffer that is larger than a thread keeps. */
void zr_buffer_trim(struct zr_buffer *b, const struct zr_thread_states *ts);

/* Decodes the last fill value of reps (NULL: zero) through the chain's codecs, which are
 * all array->array. trust: ZARR_TRUST_*. out: room for one element of reps->rep[0]. */
zarr_status zr_element_decode(const struct zr_impl_registry *impls,
                              const struct zr_chain *chain,
                              const struct zr_chain_reps *reps, uint32_t trust, void *out,
                              const zarr_allocator *alloc, zarr_error *err);

/* Whether each of n elements in host memory equals the pattern bit for bit. Of elements
 * of variable length, the bytes that they point to are compared. */
bool zr_elements_equal(const void *elements, uint64_t n, const void *pattern,
                       uint32_t item_bytes, bool variable);

/* Frees the buffers of runners that are larger than a thread keeps. Call it while no
 * runner runs. */
void zr_thread_states_trim(struct zr_thread_states *ts, bool encode);
void zr_thread_states_close(const struct zr_impl_registry *r,
                            struct zr_thread_states *ts);

/* ---- for implementations: jobs as host bytes (jobs.c) ----------------------------- */

/* Implementations get jobs as blocks of any memory. Only zr_jobs_each() turns these into
 * pointers. */

/* Memory kinds that a CPU implementation reads and writes. */
#define ZR_HOST_KINDS                                                                    \
    (ZARR_MEMORY_BIT(ZARR_DEVICE_CPU) | ZARR_MEMORY_BIT(ZARR_DEVICE_CUDA_HOST) |         \
     ZARR_MEMORY_BIT(ZARR_DEVICE_CUDA_MANAGED))

/* One chunk as host bytes. Pointers are never NULL, even if there are no bytes. */
struct zr_host_job {
    const uint8_t *src;
    size_t src_bytes;
    uint8_t *dst;
    size_t dst_bytes; /* room */
};
typedef zarr_status (*zr_host_job_fn)(void *self, const struct zr_host_job *io,
                                      size_t *used, zarr_codec_exec *exec,
                                      zarr_error *err);
/* Runs fn on each job and sets the job's status and dst_used. Returns the first failure,
 * with its text in err. */
zarr_status zr_jobs_each(zr_host_job_fn fn, void *self, zarr_codec_job *jobs, uint64_t n,
                         zarr_codec_exec *exec, zarr_error *err);
/* Defines encode() or decode() of zarr_codec_impl_vtable, which runs fn on each job. */
#define ZR_JOBS_EACH(name, fn)                                                           \
    static zarr_status name(void *self, zarr_codec_job *jobs, uint64_t n,                \
                            zarr_codec_exec *exec, zarr_error *err)                      \
    {                                                                                    \
        return zr_jobs_each(fn, self, jobs, n, exec, err);                               \
    }
/* Defines NAME_encode() and NAME_decode() of a codec whose NAME_one() does both ways. */
#define ZR_JOBS_BOTH_WAYS(name)                                                          \
    static zarr_status name##_encode_one(void *self, const struct zr_host_job *io,       \
                                         size_t *used, zarr_codec_exec *exec,            \
                                         zarr_error *err)                                \
    {                                                                                    \
        ZR_UNUSED(exec);                                                                 \
        return name##_one(self, io, true, used, err);                                    \
    }                                                                                    \
    static zarr_status name##_decode_one(void *self, const struct zr_host_job *io,       \
                                         size_t *used, zarr_codec_exec *exec,            \
                                         zarr_error *err)                                \
    {                                                                                    \
        ZR_UNUSED(exec);                                                                 \
        return name##_one(self, io, false, used, err);                                   \
    }                                                                                    \
    ZR_JOBS_EACH(name##_encode, name##_encode_one)                                       \
    ZR_JOBS_EACH(name##_decode, name##_decode_one)
/* What bind() makes: zeroed memory of the specification's allocator. Its first member is
 * the allocator. Returns NULL if there is no memory. */
void *zr_self_new(const zarr_codec_spec *spec, size_t bytes, zarr_error *err);
/* close() for one that has no other memory. */
void zr_self_free(void *self);
/*
 * A zr_host_job_fn returns this if the output is longer than the room. The job then fails
 * with CORRUPT and ZARR_CODEC_JOB_NO_ROOM, and the caller may try again with more room.
 */
#define ZR_NO_ROOM ((zarr_status)-1000)
/* Copies n bytes of the input from offset `at`, for size hints. False: the input is too
 * short, or not in host memory. */
bool zr_job_peek(const zarr_codec_job *job, uint64_t at, void *out, size_t n);
/* Returns ZR_NO_ROOM with the text "zstd: more than 4096 bytes". */
zarr_status zr_too_long(zarr_error *err, const char *codec, size_t room);
/* INTERNAL: an encoder needed more than the bound that resolve() gave. */
zarr_status zr_no_room(zarr_error *err, const char *codec);

/* ---- for implementations: chains inside codecs (runner.c) ------------------------- */

/* A runner of n codecs, from codec `first` on, of the chain that `member` of the
 * configuration holds. decoded: the decoded side of codec `first`. */
zarr_status zr_runner_open_range(zarr_codec_runner **out, const zarr_codec_spec *spec,
                                 const char *member, uint32_t first, uint32_t n,
                                 const zarr_chunk_spec *decoded, zarr_error *err);
/* zarr_codec_runner_decode() for a result of at most `most` bytes, whose room the runner
 * makes: not every codec can tell the length of the result from its input. */
zarr_status zr_runner_decode_most(const zarr_codec_runner *r, zarr_codec_exec *exec,
                                  const zarr_memory *src, uint64_t most, zarr_memory *dst,
                                  zarr_error *err);
/* Whether the runner's chain has a codec that does not keep every value. */
bool zr_runner_is_lossy(const zarr_codec_runner *r);
/* *same: whether `encoded` decodes to `decoded` again. Decodes into separate memory,
 * because the elements being encoded may be in the thread's decode buffers. */
zarr_status zr_runner_comes_back(const zarr_codec_runner *r, zarr_codec_exec *exec,
                                 const zarr_memory *encoded, const zarr_memory *decoded,
                                 bool *same, zarr_error *err);
/* Encodes to io->dst from offset *at on, and adds the encoded size to *at. Encoders need
 * the room that their specification promises, and io may have less, so the runner encodes
 * into its own buffer and copies. A result that does not fit io is zr_too_long(). */
zarr_status zr_runner_encode_at(const zarr_codec_runner *r, zarr_codec_exec *exec,
                                const zarr_memory *src, const struct zr_host_job *io,
                                size_t *at, zarr_error *err);
/* The bound of the runner's encoded bytes. */
uint64_t zr_runner_bound(const zarr_codec_runner *r);
/* Runs runners one after another, for a codec that decides after each run whether to keep
 * its result. Results stay in memory of the thread until the stage returns. */
struct zr_runner_row {
    zarr_memory input;  /* what the next runner gets */
    zarr_memory output; /* of the last run, until the codec keeps or drops it */
    zarr_codec_exec *exec;
    size_t base, top; /* in the thread's stack of buffers */
    bool encode;
};
void zr_runner_row_open(struct zr_runner_row *row, zarr_codec_exec *exec, bool encode,
                        const zarr_memory *input);
zarr_status zr_runner_row_run(struct zr_runner_row *row, const zarr_codec_runner *r,
                              zarr_error *err);
void zr_runner_row_keep(struct zr_runner_row *row); /* the output is the next input */
void zr_runner_row_drop(struct zr_runner_row *row); /* the input stays */
/* Memory of the thread for an encoder or decoder until its stage returns. The content
 * stays until the next chunk. */
zarr_status zr_exec_room(zarr_codec_exec *exec, bool encode, uint64_t bytes,
                         uint8_t **out, zarr_error *err);

#endif
