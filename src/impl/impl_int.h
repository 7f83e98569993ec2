/*
 * impl/impl_int.h - shared inside the room: jobs as host bytes, the core's CPU
 * implementations, kernels, preferences. Jobs reach us as runs of any memory;
 * zr_jobs_each() is the one place here where they become pointers.
 */
#ifndef ZR_IMPL_INT_H
#define ZR_IMPL_INT_H

#include "impl/impl.h"

/* Memory kinds that a CPU implementation reads and writes. */
#define ZR_HOST_KINDS                                                                    \
    (ZARR_MEMORY_BIT(ZARR_DEVICE_CPU) | ZARR_MEMORY_BIT(ZARR_DEVICE_CUDA_HOST) |         \
     ZARR_MEMORY_BIT(ZARR_DEVICE_CUDA_MANAGED))

/* ---- jobs (jobs.c) ----------------------------------------------------------- */

/* One chunk as host bytes. Pointers are never NULL, even for no bytes. */
struct zr_span {
    const uint8_t *src;
    size_t src_bytes;
    uint8_t *dst;
    size_t dst_bytes; /* room */
};
typedef zarr_status (*zr_span_fn)(void *self, const struct zr_span *io, size_t *used,
                                  zarr_codec_exec *exec, zarr_error *err);
/* Runs fn on each job, sets its status and dst_used; the first failure is returned, its
 * text in err. */
zarr_status zr_jobs_each(zr_span_fn fn, void *self, zarr_codec_job *jobs, uint64_t n,
                         zarr_codec_exec *exec, zarr_error *err);
/*
 * What a function under zr_jobs_each() returns when the output is longer than the room;
 * its job fails with CORRUPT and ZARR_CODEC_JOB_NO_ROOM, and may be given more.
 */
#define ZR_NO_ROOM ((zarr_status)-1000)
/* n bytes of the input at `at`, for size hints; false: it has not so many, or is not the
 * host's. */
bool zr_job_peek(const zarr_codec_job *job, uint64_t at, void *out, size_t n);
/* "zstd: more than 4096 bytes"; ZR_NO_ROOM. */
zarr_status zr_too_long(zarr_error *err, const char *codec, size_t room);
/* An encoder ran out of room, which resolve() had measured: a bug. */
zarr_status zr_no_room(zarr_error *err, const char *codec);

/* ---- the core's implementations -------------------------------------------------- */

extern const zarr_codec_impl_vtable zr_cpu_bytes, zr_cpu_transpose, zr_cpu_zstd,
    zr_cpu_gzip, zr_cpu_zlib, zr_cpu_lz4, zr_cpu_blosc, zr_cpu_crc32c, zr_cpu_shuffle,
    zr_cpu_delta, zr_cpu_delta_array, zr_cpu_vlen_utf8, zr_cpu_vlen_bytes,
    zr_cpu_optional, zr_cpu_zarrs_optional, zr_cpu_n5_default, zr_cpu_conditional,
    zr_cpu_zarrs_vlen, zr_cpu_vlen_v2, zr_cpu_vlen_array, zr_cpu_json2, zr_cpu_msgpack2,
    zr_cpu_categorize, zr_cpu_shard;
extern const zarr_codec_impl_vtable zr_cpu_base64, zr_cpu_crc32, zr_cpu_adler32,
    zr_cpu_fletcher32, zr_cpu_jenkins_lookup3, zr_cpu_packbits, zr_cpu_packbits_array;
extern const zarr_codec_impl_vtable zr_cpu_fixedscaleoffset,
    zr_cpu_fixedscaleoffset_array, zr_cpu_quantize, zr_cpu_quantize_array, zr_cpu_astype,
    zr_cpu_astype_array, zr_cpu_bitround, zr_cpu_cast_value, zr_cpu_scale_offset;
/* With their libraries: ZR_HAVE_*. */
extern const zarr_codec_impl_vtable zr_cpu_bz2, zr_cpu_lzma, zr_cpu_zfp, zr_cpu_zfpy;

/* ---- kernels ---------------------------------------------------------------------- */

/* out[b * n + i] = in[i * width + b] and back, n elements of width bytes. */
void zr_shuffle(uint8_t *out, const uint8_t *in, size_t n, size_t width);
void zr_unshuffle(uint8_t *out, const uint8_t *in, size_t n, size_t width);

/* HDF5's Fletcher sum. */
uint32_t zr_fletcher32(const uint8_t *p, size_t n);
/* Bob Jenkins' lookup3 over the prefix and then p; prefix may be NULL when it has no
 * bytes. */
uint32_t zr_jenkins_lookup3(uint32_t initval, const uint8_t *prefix, size_t prefix_bytes,
                            const uint8_t *p, size_t n);

#if defined(__x86_64__)
uint32_t zr_crc32c_sse42(uint32_t crc, const uint8_t *p, size_t n);
uint32_t zr_crc32c_pclmul(uint32_t crc, const uint8_t *p, size_t n);
/* How many elements of 2, 4, 8 or 16 bytes were done; the rest is the caller's. */
size_t zr_shuffle_sse2(uint8_t *out, const uint8_t *in, size_t n, size_t width);
size_t zr_unshuffle_sse2(uint8_t *out, const uint8_t *in, size_t n, size_t width);
#endif
/* Without instructions for it; tests hold the others against this. */
uint32_t zr_crc32c_table(uint32_t crc, const uint8_t *p, size_t n);

/* ---- preferences (preference.c) ------------------------------------------------------
 */

/* INVALID with the place when it is not "codec=impl,impl;codec=...". NULL is fine. */
zarr_status zr_preference_check(const char *text, zarr_error *err);
/* Place of this implementation in its codec's list, 0 first; the list's length when not
 * in it. */
uint32_t zr_preference_rank(const char *text, const char *codec, const char *impl);

/* ---- failures (stage.c) -------------------------------------------------------------
 */

/* zr_foreign_failed(), naming the implementation. */
zarr_status zr_impl_failed(const struct zr_impl *impl, struct zr_foreign *f,
                           zarr_status st, bool cancelled);

/* ---- programs of runners (program.c) ---------------------------------------------- */

/* All codecs of the chain are stages on the host; nothing is left to a copy. reps as
 * resolved by zr_chain_resolve_any(). */
zarr_status zr_program_make_plain(struct zr_program **out,
                                  const struct zr_impl_registry *impls,
                                  const struct zr_chain *chain,
                                  const struct zr_chain_reps *reps, bool encode,
                                  const zarr_allocator *alloc, zarr_error *err);

/* ---- runners (runner.c) ----------------------------------------------------------- */

/* A runner of n codecs of that chain from `first` on; decoded: what the first of them
 * gives when decoding. */
zarr_status zr_runner_open_part(zarr_codec_runner **out, const zarr_codec_spec *spec,
                                const char *member, uint32_t first, uint32_t n,
                                const zarr_chunk_spec *decoded, zarr_error *err);
/* The same for all of a chain that a codec has besides: a shard's; member names it. */
zarr_status zr_runner_open_chain(zarr_codec_runner **out, const zarr_codec_spec *spec,
                                 const char *member, const struct zr_chain *chain,
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
                                const zarr_mem *src, const struct zr_span *io, size_t *at,
                                zarr_error *err);
/* Most bytes that it gives when encoding. */
uint64_t zr_runner_bound(const zarr_codec_runner *r);
/* After a run whose input was the one result kept since `base`: now it is `out`. */
void zr_buffer_stack_last(struct zr_buffer_stack *s, size_t base, const zarr_mem *out);
/* n more on top, with the memory that their places had. */
zarr_status zr_buffer_stack_push(struct zr_buffer_stack *s, size_t n,
                                 const zarr_allocator *alloc, zarr_error *err);
/* Memory of the thread for an encoder or decoder, until its stage returns; what is in it
 * stays until the next chunk. */
zarr_status zr_exec_room(zarr_codec_exec *exec, bool encode, uint64_t bytes,
                         uint8_t **out, zarr_error *err);

/* ---- placement (place.c)
 * ---------------------------------------------------------------- */

struct zr_leg { /* one codec of the chain to be placed, in decoding order */
    const zarr_codec_spec *spec;
    const zarr_chunk_spec *encoded, *decoded;
};
struct zr_step { /* what was chosen: an implementation for leg i, or a copy (impl NULL)
                    before it */
    const struct zr_impl *impl;
    uint32_t leg;
    int32_t in_device, out_device;
};
struct zr_place {
    const struct zr_impl_registry *impls;
    const struct zr_placement_options *opts;
    const struct zr_leg *legs;
    uint32_t n_legs;
    const bool *excluded; /* [leg * impls->n + impl]: refused to bind */
    const zarr_allocator *alloc;
};
/* steps: room for 2 * n_legs + 1. UNSUPPORTED names the codec nobody does. */
zarr_status zr_place_path(const struct zr_place *p, struct zr_step *steps,
                          uint32_t *n_steps, zarr_error *err);
/* Whether this implementation does this codec in the wanted direction between these
 * memories; its cost. */
bool zr_place_usable(const struct zr_place *p, uint32_t leg, const struct zr_impl *impl,
                     int32_t in_device, int32_t out_device, int64_t *cost);

#endif
