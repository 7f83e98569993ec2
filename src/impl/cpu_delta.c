/*
 * impl/cpu_delta.c - numcodecs' delta for chunks: as a v2 filter over bytes, where
 * the configuration says the byte order of both sides; and as "numcodecs.delta"
 * between arrays, whose elements are in native order whatever it says.
 */
#include "impl/delta_int.h"

struct delta_self {
    const zarr_allocator *alloc;
    struct zr_delta types;
};

static zarr_status delta_bind(void **out, const zarr_codec_spec *spec,
                              const zarr_chunk_spec *decoded, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct zr_delta types;
    struct delta_self *self = NULL;

    if (!zr_numpy_parse(zarr_codec_spec_text(spec, "dtype"), &types.dtype) ||
        !zr_numpy_parse(zarr_codec_spec_text(spec, "astype"), &types.astype))
        return zr_internal(err);
    if (decoded->dtype) { /* between arrays */
        types.dtype.big = types.dtype.item_bytes > 1 && !zr_host_is_little();
        types.astype.big = types.astype.item_bytes > 1 && !zr_host_is_little();
    }
    self = zr_malloc(alloc, sizeof *self);
    if (!self)
        return zr_fail_memory(err, sizeof *self);
    *self = (struct delta_self){.alloc = alloc, .types = types};
    *out = self;
    return ZARR_OK;
}

static void delta_close(void *self)
{
    if (self)
        zr_free(((struct delta_self *)self)->alloc, self);
}

static zarr_status delta_one(const struct delta_self *self, const struct zr_span *io,
                             bool encode, size_t *used, zarr_error *err)
{
    const size_t from =
        encode ? self->types.dtype.item_bytes : self->types.astype.item_bytes;
    const size_t to =
        encode ? self->types.astype.item_bytes : self->types.dtype.item_bytes;
    const size_t n = io->src_bytes / from;

    if (io->src_bytes % from)
        return zr_fail(err, encode ? ZARR_ERR_INVALID : ZARR_ERR_CORRUPT,
                       "delta: %zu bytes are no whole number of elements of %zu",
                       io->src_bytes, from);
    if (n > io->dst_bytes / to)
        return zr_too_long(err, "delta", io->dst_bytes);
    zr_delta_run(&self->types, encode, io->dst, io->src, n);
    *used = n * to;
    return ZARR_OK;
}

static zarr_status delta_decode_one(void *self, const struct zr_span *io, size_t *used,
                                    zarr_codec_exec *exec, zarr_error *err)
{
    ZR_UNUSED(exec);
    return delta_one(self, io, false, used, err);
}

static zarr_status delta_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                zarr_codec_exec *exec, zarr_error *err)
{
    return zr_jobs_each(delta_decode_one, self, jobs, n, exec, err);
}

static zarr_status delta_encode_one(void *self, const struct zr_span *io, size_t *used,
                                    zarr_codec_exec *exec, zarr_error *err)
{
    ZR_UNUSED(exec);
    return delta_one(self, io, true, used, err);
}

static zarr_status delta_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                                zarr_codec_exec *exec, zarr_error *err)
{
    return zr_jobs_each(delta_encode_one, self, jobs, n, exec, err);
}

#define DELTA_VTABLE(name)                                                               \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_impl_vtable),                                   \
        .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |        \
                ZARR_CODEC_DETERMINISTIC,                                                \
        .codec = name, .impl = "cpu.zarrc", .in_kinds = ZR_HOST_KINDS,                   \
        .out_kinds = ZR_HOST_KINDS, .bind = delta_bind, .encode = delta_encode,          \
        .decode = delta_decode, .close = delta_close,                                    \
    }
const zarr_codec_impl_vtable zr_cpu_delta = DELTA_VTABLE("delta");
const zarr_codec_impl_vtable zr_cpu_delta_array = DELTA_VTABLE("numcodecs.delta");
