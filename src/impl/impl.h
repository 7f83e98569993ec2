/*
 * impl/impl.h - the door of doing: implementations of codecs per memory kind,
 * and the placement pass that turns a chain of specifications into a program:
 * a list of stages bound to implementations, with the copies between memories
 * where they are needed. Transposes and byte order become facts of the
 * program (permutation, swap) that the strided copy at its end carries out
 * for free; everything else is a stage.
 * Thread class: registry sealed; programs frozen; thread states are leased (struct
 * zr_worker, pipe).
 */
#ifndef ZR_IMPL_H
#define ZR_IMPL_H

#include "base/base.h"
#include "chain/chain.h"
#include "mem/mem.h"

struct zr_impl {
    struct zr_registered entry; /* without a name: several codecs may have one "cpu" */
    zarr_codec_impl_vtable vt;
    uint32_t id;    /* dense, for tables of thread states */
    uint32_t order; /* registration order */
};
struct zr_impl_absence { /* why a build has no implementation of a codec */
    const char *codec, *why;
};
struct zr_impl_registry {
    const struct zr_impl_absence *absent; /* borrowed, ends with a NULL codec; or NULL */
    struct zr_registry impls;             /* struct zr_impl */
};
static inline size_t zr_impl_count(const struct zr_impl_registry *r)
{
    return r->impls.n;
}
static inline const struct zr_impl *zr_impl_at(const struct zr_impl_registry *r, size_t i)
{
    return (const void *)r->impls.entry[i];
}
void zr_impl_registry_init(struct zr_impl_registry *r, const zarr_allocator *alloc);
void zr_impl_registry_deinit(struct zr_impl_registry *r);
zarr_status zr_impl_register(struct zr_impl_registry *r, const zarr_codec_impl_vtable *v,
                             const char *origin, zarr_error *err);
/* The implementations of the codecs that are structure, NULL-terminated, for
 * ctx/builtin.c. */
extern const zarr_codec_impl_vtable *const zr_impl_core[];
/* Why this build has no implementation of a codec that it knows, and what would help;
 * NULL: unknown. */
const char *zr_impl_absent(const struct zr_impl_registry *r, const char *codec);
/* Whether it implements this specification, and not another one of the same name. */
bool zr_impl_is_for(const struct zr_impl *impl, const zarr_codec_spec_vtable *spec);
/* Whether an implementation of this codec is registered. */
bool zr_impl_has(const struct zr_impl_registry *r, const zarr_codec_spec_vtable *spec);
/* Whether the codec that it does is not registered. */
bool zr_impl_is_lost(const struct zr_impl *impl, const struct zr_codec_registry *codecs);

/* One step of a program, in decoding order (encoding walks it backward). */
enum zr_stage_kind {
    ZR_STAGE_CODEC,
    ZR_STAGE_COPY
};
struct zr_stage {
    enum zr_stage_kind kind;
    const struct zr_impl *impl; /* CODEC */
    void *self;                 /* bound instance, owned by the program */
    zarr_codec_spec spec;       /* the chain's, and which way it is run */
    uint64_t in_bytes,
        out_bytes; /* encoded side (bound), decoded side; see exact flags */
    bool in_exact, out_exact;
    uint32_t out_item; /* bytes of an element of the decoded side; 0: no elements */
    int32_t in_device, out_device; /* DLPack types on the encoded and decoded side */
    /*
     * CODEC: the stage for a chunk that impl's accepts() refuses: host memory on both
     * sides (the caller copies in and out where in_device or out_device is another),
     * owned by the program. It may have a fallback itself. NULL: impl takes every chunk,
     * or there is no other implementation.
     */
    struct zr_stage *fallback;
};
/*
 * How one chunk's bytes become its elements for a given place. Decoding: fetched bytes
 * (in memory `fetch_device`) go through stage[0..n) and yield elements in
 * `decoded_device`, C order of the permuted shape, byte order `swap`ped against the host
 * or not. `order` maps permuted dims to array dims: stored dim i is array dim order[i].
 * Where an array->array codec that computes is among them, elements leave the stages in
 * native order, with its input's shape and type. Sizes of representations that are not
 * exact have slack when decoding: other writers' streams may be longer than ours.
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
    uint64_t encoded_bound; /* of one stored chunk; unsized: a guess, to count with */
    uint64_t encoded_most;  /* unsized: what limits allow; else encoded_bound */
    bool encoded_exact;     /* encoded_bound is the exact size: no bytes->bytes codec of
                               varying size */
    bool decoded_exact; /* false only around shards: decoded_bytes is then a bound too */
    /* sizes of the bytes side are limits, not bounds: run it with zr_unsized_decode() and
     * zr_unsized_encode(), allocate nothing by encoded_bound */
    bool unsized;
    bool variable; /* elements of variable length */
    bool gaps;     /* what is stored is a shard, which may have dead bytes */
    bool raw;      /* n == 0: stored bytes are the elements: ranges of it can be read */
    /* elements leave the stages, or are read, with bits that do not count; they go
     * through zr_program_unpad() then, and through zr_program_pad() before they are
     * encoded. In host memory only; NULL: none */
    const zarr_dtype *padded;
    int32_t fetch_device,
        decoded_device; /* raw: both the target where the store reaches it, else host */
    bool encode;
    const zarr_allocator *alloc;
};
struct zr_placement_options {
    int32_t target_device;        /* where elements are wanted or come from */
    const int32_t *store_devices; /* memories the store moves bytes to directly; host
                                     always counts */
    uint32_t n_store_devices;
    /* context's or array's codec_preference, "zstd=cuda.nvcomp,cpu.libzstd;gzip=cpu"; a
     * name without its last part stands for the family; INVALID when malformed, names not
     * registered are passed over. NULL: priorities */
    const char *preference;
    bool encode; /* only implementations that encode */
};
/* Chooses implementations for the codecs of `chain` behind its array->array permutations.
 * Sharding as its array->bytes codec is a stage like any other: the plan takes shards
 * apart where inner chunks can be read alone. reps as resolved for this chunk shape. */
zarr_status zr_program_make(struct zr_program **out, const struct zr_impl_registry *impls,
                            const struct zr_chain *chain,
                            const struct zr_chain_reps *reps,
                            const struct zr_placement_options *opts,
                            const zarr_allocator *alloc, zarr_error *err);
/* The same for the bytes->bytes codecs only (outside a shard): out elements are the
 * shard's bytes. */
zarr_status zr_program_make_bytes(struct zr_program **out,
                                  const struct zr_impl_registry *impls,
                                  const struct zr_chain *chain,
                                  const struct zr_chain_reps *reps,
                                  const struct zr_placement_options *opts,
                                  const zarr_allocator *alloc, zarr_error *err);
void zr_program_free(struct zr_program *p);
/* Stored elements in place, any whole number of them, as memory has them; nothing where
 * the program is not padded. */
void zr_program_unpad(const struct zr_program *p, void *elements, uint64_t bytes);
/* The other way. INVALID: an element is not of its type. */
zarr_status zr_program_pad(const struct zr_program *p, void *elements, uint64_t bytes,
                           zarr_error *err);
/* Whether zr_program_pad() would leave them as they are. */
bool zr_program_is_padded_well(const struct zr_program *p, const void *elements,
                               uint64_t bytes);
/* Human line for explain: "zstd@cpu.libzstd -> copy host->ext -> ...". */
void zr_program_print(const struct zr_program *p, struct zr_str *out);

/* Whether s->impl takes this encoded chunk; if not, s->fallback is next. */
bool zr_stage_accepts(const struct zr_stage *s, const zarr_codec_job *job);
/* Scratch bytes in the output's memory that a call with n chunks needs; 0: none. */
uint64_t zr_stage_scratch(const struct zr_stage *s, uint64_t n);

struct zr_buffer { /* host memory that grows; what is in it is lost then */
    uint8_t *p;
    size_t bytes;
};
/* Runners inside codecs push what they need, and a stage that returns pops it; the memory
 * stays, with what is in it, until the next chunk. */
struct zr_buffer_stack {
    struct zr_buffer *buffer;
    size_t n, top;
};
#define ZR_BUFFER_KEEPS ((size_t)1 << 20) /* bytes that a thread may keep uncounted */
struct zr_grant {                         /* counts larger buffers before they are made */
    zarr_status (*take)(void *arg, uint64_t bytes, zarr_error *err);
    void *arg;
};
struct zr_thread_states {
    void **state; /* by impl id, opened on first use */
    size_t n;
    struct zr_buffer_stack decode, encode;
    const struct zr_grant *grant; /* NULL: not counted */
    bool keep_empty; /* encoders of shards write inner chunks that are the fill value */
    const atomic_bool
        *cancel; /* set: the result is not needed any more; NULL: always needed */
    const zarr_allocator *alloc;
};
/* Codec stage s of n chunks on this thread; more than one for implementations with
 * ZARR_CODEC_BATCH. ts: its owner calls zr_thread_states_close(). Decoders are held to
 * what metadata says when out_exact. All jobs get their status, err->item is the first
 * failed one. stream NULL: done on return; else dst_used and status are the
 * implementation's word, checked when it gave them. */
struct zr_stage_call {
    zarr_codec_job *jobs;
    uint64_t n;
    struct zr_thread_states *ts;
    zarr_mem scratch;
    void *stream;
};
zarr_status zr_stage_run(const struct zr_stage *s, const struct zr_stage_call *call,
                         bool encode, zarr_error *err);
/* Whether a stage decodes parts of chunks (it must accept the chunk, too); and doing so:
 * job->dst has the decoded chunk's exact size. */
bool zr_stage_is_partial(const struct zr_stage *s);
zarr_status zr_stage_partial(const struct zr_stage *s, zarr_codec_job *job,
                             const zarr_codec_range *ranges, uint64_t n,
                             struct zr_thread_states *ts, zarr_mem scratch,
                             zarr_error *err);
/* Whether a stage decodes to places with strides (it must accept the chunk, too); and
 * doing so: UNSUPPORTED, nothing was written and the stage is to decode to a block. */
bool zr_stage_strides(const struct zr_stage *s);
zarr_status zr_stage_strided(const struct zr_stage *s, zarr_codec_job *job,
                             const zarr_codec_strided *to, struct zr_thread_states *ts,
                             zarr_mem scratch, zarr_error *err);
/*
 * Runs the stages of a program on host memory where sizes are not known: a decoder that
 * finds its room too small is called again with more, up to the stage's bound; then it is
 * LIMIT where the limits set that bound, else CORRUPT. buffer[0] and [1] are used in
 * turn, [2] is an implementation's scratch, [3] for elements of variable length that must
 * not overwrite what they point to; they belong to the caller.
 * dst: where the elements go, exactly p->decoded_bytes or (decoded_exact false) as many
 * as come and fit; NULL: into a buffer, or src itself where there is no stage.
 */
enum {
    ZR_UNSIZED_BUFFERS = 4
};
struct zr_unsized {
    struct zr_thread_states *ts;
    struct zr_buffer *buffer; /* ZR_UNSIZED_BUFFERS */
    bool no_room;             /* out, of a failed call: dst is too small */
    /* without dst: no more than `most` bytes are wanted, of a decoder that could take its
     * input for more; what is longer fails with no_room */
    bool bounded;
    uint64_t most;
};
zarr_status zr_unsized_decode(const struct zr_program *p, struct zr_unsized *g,
                              const zarr_mem *src, const zarr_mem *dst, zarr_mem *out,
                              zarr_error *err);
zarr_status zr_unsized_encode(const struct zr_program *p, struct zr_unsized *g,
                              const zarr_mem *src, const zarr_mem *dst, zarr_mem *out,
                              zarr_error *err);
zarr_status zr_buffer_need(struct zr_buffer *b, uint64_t bytes,
                           const struct zr_thread_states *ts, zarr_error *err);
void zr_buffer_free(struct zr_buffer *b, const struct zr_thread_states *ts);
/* Frees a buffer that is larger than a thread keeps. */
void zr_buffer_trim(struct zr_buffer *b, const struct zr_thread_states *ts);

/* Decodes one element: the one that the chain's codecs, all array->array, encode to the
 * last fill value of reps (NULL: zero). out: room for one element of reps->rep[0]. */
zarr_status zr_element_decode(const struct zr_impl_registry *impls,
                              const struct zr_chain *chain,
                              const struct zr_chain_reps *reps, void *out,
                              const zarr_allocator *alloc, zarr_error *err);

/* Whether each of n elements in host memory equals the pattern: bit for bit; the data of
 * elements of variable length byte for byte. */
bool zr_elements_equal(const void *elements, uint64_t n, const void *pattern,
                       uint32_t item_bytes, bool variable);

/* Frees the runners' buffers that are larger than a thread keeps, while no runner runs.
 */
void zr_thread_states_trim(struct zr_thread_states *ts, bool encode);
void zr_thread_states_close(const struct zr_impl_registry *r,
                            struct zr_thread_states *ts);

/* ---- for implementations: jobs as host bytes (jobs.c) ----------------------------- */

/* Memory kinds that a CPU implementation reads and writes. */
#define ZR_HOST_KINDS                                                                    \
    (ZARR_MEMORY_BIT(ZARR_DEVICE_CPU) | ZARR_MEMORY_BIT(ZARR_DEVICE_CUDA_HOST) |         \
     ZARR_MEMORY_BIT(ZARR_DEVICE_CUDA_MANAGED))

/* Jobs reach implementations as blocks of any memory. Only zr_jobs_each() turns them into
 * pointers. */

/* One chunk as host bytes. Pointers are never NULL, even for no bytes. */
struct zr_host_job {
    const uint8_t *src;
    size_t src_bytes;
    uint8_t *dst;
    size_t dst_bytes; /* room */
};
typedef zarr_status (*zr_host_job_fn)(void *self, const struct zr_host_job *io,
                                      size_t *used, zarr_codec_exec *exec,
                                      zarr_error *err);
/* Runs fn on each job, sets its status and dst_used; the first failure is returned, its
 * text in err. */
zarr_status zr_jobs_each(zr_host_job_fn fn, void *self, zarr_codec_job *jobs, uint64_t n,
                         zarr_codec_exec *exec, zarr_error *err);
/*
 * What a function under zr_jobs_each() returns when the output is longer than the room;
 * its job fails with CORRUPT and ZARR_CODEC_JOB_NO_ROOM, and may be given more.
 */
#define ZR_NO_ROOM ((zarr_status)-1000)
/* Copies n bytes of the input at `at`, for size hints; false: the input is shorter, or
 * not in host memory. */
bool zr_job_peek(const zarr_codec_job *job, uint64_t at, void *out, size_t n);
/* "zstd: more than 4096 bytes"; ZR_NO_ROOM. */
zarr_status zr_too_long(zarr_error *err, const char *codec, size_t room);
/* INTERNAL: an encoder needed more than the bound that resolve() gave. */
zarr_status zr_no_room(zarr_error *err, const char *codec);

/* ---- for implementations: chains inside codecs (runner.c) ------------------------- */

/* A runner of n codecs of that chain, from `first` on; decoded: the decoded side of the
 * first one. */
zarr_status zr_runner_open_range(zarr_codec_runner **out, const zarr_codec_spec *spec,
                                 const char *member, uint32_t first, uint32_t n,
                                 const zarr_chunk_spec *decoded, zarr_error *err);
/* zarr_codec_runner_decode() without a room, for an array of at most that many bytes: not
 * every codec can tell from its input alone how long it is. */
zarr_status zr_runner_decode_most(const zarr_codec_runner *r, zarr_codec_exec *exec,
                                  const zarr_mem *src, uint64_t most, zarr_mem *dst,
                                  zarr_error *err);
/* Whether its chain has a codec that does not keep every value. */
bool zr_runner_lossy(const zarr_codec_runner *r);
/* Whether what it encoded decodes to the same again; in memory of its own, because
 * elements that are being encoded may lie where the thread decodes to. */
zarr_status zr_runner_comes_back(const zarr_codec_runner *r, zarr_codec_exec *exec,
                                 const zarr_mem *encoded, const zarr_mem *decoded,
                                 bool *same, zarr_error *err);
/* Encodes to io->dst from *at on, and counts it on. Encoders want the room that their
 * specification promises, of which io may have less: this one's buffers have it, and what
 * does not fit then is zr_too_long(). */
zarr_status zr_runner_encode_at(const zarr_codec_runner *r, zarr_codec_exec *exec,
                                const zarr_mem *src, const struct zr_host_job *io,
                                size_t *at, zarr_error *err);
/* The bound of its encoded bytes. */
uint64_t zr_runner_bound(const zarr_codec_runner *r);
/* Runners one after another, for a codec that decides after each run whether to go on
 * with its result. The results are in memory of the thread until the stage returns. */
struct zr_runner_row {
    zarr_mem input;  /* what the next runner gets */
    zarr_mem output; /* of the last run, until it is kept or dropped */
    zarr_codec_exec *exec;
    size_t base, top; /* of the thread's buffers */
    bool encode;
};
void zr_runner_row_open(struct zr_runner_row *row, zarr_codec_exec *exec, bool encode,
                        const zarr_mem *input);
zarr_status zr_runner_row_run(struct zr_runner_row *row, const zarr_codec_runner *r,
                              zarr_error *err);
void zr_runner_row_keep(struct zr_runner_row *row); /* the output is the next input */
void zr_runner_row_drop(struct zr_runner_row *row); /* the input stays */
/* Memory of the thread for an encoder or decoder, until its stage returns; what is in it
 * stays until the next chunk. */
zarr_status zr_exec_room(zarr_codec_exec *exec, bool encode, uint64_t bytes,
                         uint8_t **out, zarr_error *err);

#endif
