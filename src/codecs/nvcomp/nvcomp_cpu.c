/*
 * codecs/nvcomp/nvcomp_cpu.c - `nvcomp_batch` on CPUs: lz4, zstd and snappy by the
 * implementations of those codecs, deflate by libdeflate. GDeflate has no library here.
 * A thread's state has the states of all of them, made when they are first needed.
 */
#include "codecs/codecs_int.h"
#include "codecs/nvcomp/nvcomp.h"

#include <libdeflate.h>
#include <limits.h>
#include <lz4.h>

enum {
    NVCOMP_LEVEL = 6 /* of deflate */
};

struct nvcomp_self {
    const zarr_allocator *alloc;
    int algorithm;
    bool header;                      /* lz4 */
    const zarr_codec_impl_vtable *by; /* NULL: this file does it */
    void *inner;                      /* instance of `by`; may be NULL */
};
struct nvcomp_thread {
    void *state[ZR_NVCOMP_COUNT]; /* of `by` */
    struct libdeflate_decompressor *decompressor;
    struct libdeflate_compressor *compressor;
};

static const zarr_codec_impl_vtable *nvcomp_by(int algorithm)
{
    switch (algorithm) {
    case ZR_NVCOMP_LZ4:
        return &zr_cpu_lz4;
    case ZR_NVCOMP_ZSTD:
        return &zr_cpu_zstd;
#if defined(ZR_HAVE_SNAPPY)
    case ZR_NVCOMP_SNAPPY:
        return &zr_cpu_snappy;
#endif
    default:
        return NULL;
    }
}

/* A plug-in may register an implementation that can. */
static zarr_status nvcomp_refuse(int algorithm, zarr_error *err)
{
#if !defined(ZR_HAVE_SNAPPY)
    if (algorithm == ZR_NVCOMP_SNAPPY)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "nvcomp_batch: snappy: this build has no libsnappy (Debian "
                       "package libsnappy-dev)");
#endif
    if (algorithm == ZR_NVCOMP_GDEFLATE)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "nvcomp_batch: gdeflate: no library of Debian has GDeflate: a "
                       "plug-in that registers an implementation of \"nvcomp_batch\" can "
                       "provide it");
    return ZARR_OK;
}

static void nvcomp_close(void *self_ptr)
{
    struct nvcomp_self *self = self_ptr;

    if (!self)
        return;
    if (self->inner)
        self->by->close(self->inner);
    zr_free(self->alloc, self);
}

static zarr_status nvcomp_bind(void **out, const zarr_codec_spec *spec,
                               const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    const char *name = zarr_codec_spec_text(spec, "algorithm");
    struct nvcomp_self *self = zr_calloc(alloc, 1, sizeof *self);
    zarr_status st = ZARR_OK;
    int header = 0;

    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = alloc;
    while (self->algorithm + 1 < ZR_NVCOMP_COUNT &&
           !zr_streq(name, zr_nvcomp_algorithms[self->algorithm]))
        self->algorithm++;
    ZR_TRY(nvcomp_refuse(self->algorithm, err));
    (void)zarr_codec_spec_bool(spec, "has_header", &header);
    self->header = header != 0;
    self->by = nvcomp_by(self->algorithm);
    if (self->algorithm == ZR_NVCOMP_LZ4 && !self->header)
        self->by = NULL;
    if (self->by && self->by->bind) /* the codec's own defaults: no member is in `spec` */
        ZR_TRY(self->by->bind(&self->inner, spec, to, err));
    *out = self;
    self = NULL;
out:
    nvcomp_close(self);
    return st;
}

/* ---- the state of a thread --------------------------------------------------------- */

static zarr_status nvcomp_thread_open(void *self, void **state, zarr_error *err)
{
    ZR_UNUSED(self);
    *state = zr_calloc(NULL, 1, sizeof(struct nvcomp_thread));
    return *state ? ZARR_OK : zr_fail_memory(err, sizeof(struct nvcomp_thread));
}

static void nvcomp_thread_close(void *state)
{
    struct nvcomp_thread *t = state;

    if (!t)
        return;
    for (int k = 0; k < ZR_NVCOMP_COUNT; k++)
        if (t->state[k])
            nvcomp_by(k)->thread_close(t->state[k]);
    if (t->decompressor)
        libdeflate_free_decompressor(t->decompressor);
    if (t->compressor)
        libdeflate_free_compressor(t->compressor);
    zr_free(NULL, t);
}

/* Calls the other implementation with its own state of the thread. */
static zarr_status nvcomp_pass(const struct nvcomp_self *self, zarr_codec_job *jobs,
                               uint64_t n, zarr_codec_exec *exec, bool encode,
                               zarr_error *err)
{
    struct nvcomp_thread *t = exec->thread_state;
    void **state = &t->state[self->algorithm];
    zarr_status st = ZARR_OK;

    if (!*state && self->by->thread_open)
        ZR_TRY(self->by->thread_open(self->inner, state, err));
    exec->thread_state = *state;
    st = encode ? self->by->encode(self->inner, jobs, n, exec, err)
                : self->by->decode(self->inner, jobs, n, exec, err);
    exec->thread_state = t;
out:
    return st;
}

/* ---- lz4 without a header -------------------- */

/* Every byte of a block gives at most 255 bytes. */
static zarr_status nvcomp_lz4_decode(const struct zr_host_job *io, size_t *used,
                                     zarr_error *err)
{
    const int room = (int)ZR_MIN(io->dst_bytes, (size_t)LZ4_MAX_INPUT_SIZE);
    int got = 0;

    if (io->src_bytes == 0 || io->src_bytes > INT_MAX)
        return zr_fail(err, ZARR_ERR_CORRUPT, "nvcomp_batch: %zu bytes are not a block",
                       io->src_bytes);
    got = LZ4_decompress_safe((const char *)io->src, (char *)io->dst, (int)io->src_bytes,
                              room);
    if (got >= 0) {
        *used = (size_t)got;
        return ZARR_OK;
    }
    (void)zr_fail(err, ZARR_ERR_CORRUPT,
                  "nvcomp_batch: damaged block of lz4, or more than %d bytes", room);
    return (size_t)room / 255 < io->src_bytes && (size_t)room == io->dst_bytes
               ? ZR_NO_ROOM
               : ZARR_ERR_CORRUPT;
}

static zarr_status nvcomp_lz4_encode(const struct zr_host_job *io, size_t *used,
                                     zarr_error *err)
{
    int got = 0;

    if (io->src_bytes > LZ4_MAX_INPUT_SIZE)
        return zr_fail(err, ZARR_ERR_INVALID, "nvcomp_batch: %zu bytes are too many",
                       io->src_bytes);
    got = LZ4_compress_default((const char *)io->src, (char *)io->dst, (int)io->src_bytes,
                               (int)ZR_MIN(io->dst_bytes, (size_t)INT_MAX));
    if (got <= 0)
        return zr_no_room(err, "nvcomp_batch");
    *used = (size_t)got;
    return ZARR_OK;
}

/* ---- deflate -------------------- */

/* Zeros after the end are padding. */
static zarr_status nvcomp_inflate(struct nvcomp_thread *t, const struct zr_host_job *io,
                                  size_t *used, zarr_error *err)
{
    enum libdeflate_result rc;
    size_t taken = 0;

    if (!t->decompressor)
        t->decompressor = libdeflate_alloc_decompressor();
    if (!t->decompressor)
        return zr_fail_memory(err, 0);
    rc = libdeflate_deflate_decompress_ex(t->decompressor, io->src, io->src_bytes,
                                          io->dst, io->dst_bytes, &taken, used);
    if (rc == LIBDEFLATE_INSUFFICIENT_SPACE)
        return zr_too_long(err, "nvcomp_batch", io->dst_bytes);
    while (rc == LIBDEFLATE_SUCCESS && taken < io->src_bytes && !io->src[taken])
        taken++;
    if (rc != LIBDEFLATE_SUCCESS || taken < io->src_bytes)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "nvcomp_batch: damaged stream of deflate, at byte %zu of %zu",
                       taken, io->src_bytes);
    return ZARR_OK;
}

static zarr_status nvcomp_deflate(struct nvcomp_thread *t, const struct zr_host_job *io,
                                  size_t *used, zarr_error *err)
{
    if (!t->compressor)
        t->compressor = libdeflate_alloc_compressor(NVCOMP_LEVEL);
    if (!t->compressor)
        return zr_fail_memory(err, 0);
    *used = libdeflate_deflate_compress(t->compressor, io->src, io->src_bytes, io->dst,
                                        io->dst_bytes);
    return *used ? ZARR_OK : zr_no_room(err, "nvcomp_batch");
}

/* ---- the table -------------------- */

static zarr_status nvcomp_decode_one(void *self, const struct zr_host_job *io,
                                     size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    return ((const struct nvcomp_self *)self)->algorithm == ZR_NVCOMP_LZ4
               ? nvcomp_lz4_decode(io, used, err)
               : nvcomp_inflate(exec->thread_state, io, used, err);
}

static zarr_status nvcomp_encode_one(void *self, const struct zr_host_job *io,
                                     size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    return ((const struct nvcomp_self *)self)->algorithm == ZR_NVCOMP_LZ4
               ? nvcomp_lz4_encode(io, used, err)
               : nvcomp_deflate(exec->thread_state, io, used, err);
}

static zarr_status nvcomp_decode(void *self_ptr, zarr_codec_job *jobs, uint64_t n,
                                 zarr_codec_exec *exec, zarr_error *err)
{
    const struct nvcomp_self *self = self_ptr;

    return self->by ? nvcomp_pass(self, jobs, n, exec, false, err)
                    : zr_jobs_each(nvcomp_decode_one, self_ptr, jobs, n, exec, err);
}

static zarr_status nvcomp_encode(void *self_ptr, zarr_codec_job *jobs, uint64_t n,
                                 zarr_codec_exec *exec, zarr_error *err)
{
    const struct nvcomp_self *self = self_ptr;

    return self->by ? nvcomp_pass(self, jobs, n, exec, true, err)
                    : zr_jobs_each(nvcomp_encode_one, self_ptr, jobs, n, exec, err);
}

static uint64_t nvcomp_size_hint(void *self_ptr, const zarr_codec_job *job, int encode)
{
    const struct nvcomp_self *self = self_ptr;

    return self->by && self->by->size_hint ? self->by->size_hint(self->inner, job, encode)
                                           : 0;
}

const zarr_codec_impl_vtable zr_cpu_nvcomp_batch = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC | ZARR_CODEC_FOR_V2,
    .codec = "nvcomp_batch",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = nvcomp_bind,
    .thread_open = nvcomp_thread_open,
    .thread_close = nvcomp_thread_close,
    .encode = nvcomp_encode,
    .decode = nvcomp_decode,
    .close = nvcomp_close,
    .size_hint = nvcomp_size_hint,
};
