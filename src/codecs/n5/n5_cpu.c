/*
 * codecs/n5/n5_cpu.c - `n5_default`. A block is the mode (u16), the number of dimensions
 * (u16), the size of each dimension (u32), all big-endian, then the compressed elements.
 * One strided copy between block and chunk does the work of the chain's transpose and
 * bytes. Only the compressor runs as a codec. A block of another shape is cut to the
 * chunk, and elements outside the block get the fill value. A block must decode to
 * exactly the bytes that its own shape needs. This size is checked against
 * limits.chunk_bytes before the compressor decodes.
 */
#include "codecs/codecs_int.h"

#include <string.h>

enum {
    N5_HEAD = 4, /* bytes before the dimensions */
    N5_WORD = 4
};

struct n5_self {
    const zarr_allocator *alloc;
    zarr_codec_runner *compressor;    /* NULL if there is none */
    struct zr_memory_registry memory; /* the host's, for strided copies */
    int32_t ndim;
    uint32_t item_bytes, swap_bytes;
    uint64_t shape[ZARR_MAX_RANK], bytes; /* of the chunk */
    uint64_t most;                        /* the most bytes of a decoded block */
    uint8_t fill[8];
};

static void n5_close(void *self_ptr)
{
    struct n5_self *self = self_ptr;

    if (!self)
        return;
    zarr_codec_runner_close(self->compressor);
    zr_memory_registry_deinit(&self->memory);
    zr_free(self->alloc, self);
}

static zarr_status n5_bind(void **out, const zarr_codec_spec *spec,
                           const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct n5_self *self = zr_calloc(alloc, 1, sizeof *self);
    zarr_status st = ZARR_OK;

    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = alloc;
    ZR_TRY(zr_memory_registry_init(&self->memory, alloc, err));
    self->ndim = to->decoded->ndim;
    self->item_bytes = (uint32_t)zarr_dtype_item_bytes(to->decoded->dtype);
    if (self->item_bytes > sizeof self->fill)
        ZR_TRY(zr_internal(err));
    if (ZR_HOST_IS_LITTLE && self->item_bytes > 1)
        self->swap_bytes = self->item_bytes;
    memcpy(self->shape, to->decoded->shape, sizeof self->shape);
    self->bytes = to->decoded->n_bytes;
    self->most = ZR_MAX(zr_spec_most_bytes(spec), to->decoded->n_bytes);
    if (to->decoded->fill)
        memcpy(self->fill, to->decoded->fill, self->item_bytes);
    if (zarr_codec_spec_chain_codecs(spec, "codecs", NULL) > 2) {
        const zarr_chunk_spec block = {.struct_size = sizeof block,
                                       .n_bytes = self->most,
                                       .item_bytes_hint = self->item_bytes};

        ZR_TRY(
            zr_runner_open_range(&self->compressor, spec, "codecs", 2, 1, &block, err));
    }
    *out = self; /* moved */
    self = NULL;
out:
    n5_close(self);
    return st;
}

static uint64_t n5_scratch(void *self, uint64_t n, uint64_t max_out)
{
    ZR_UNUSED(n, max_out);
    return ((const struct n5_self *)self)->bytes;
}

/* ---- block and chunk ----------------------------------------------------------- */

struct n5_block {
    uint64_t shape[ZARR_MAX_RANK], bytes;
};

/* Copies the elements that block and chunk share. The block is big-endian, with the first
 * dimension fastest. */
static zarr_status n5_copy(const struct n5_self *self, const struct n5_block *b,
                           const zarr_memory *block, const zarr_memory *chunk,
                           bool encode, zarr_error *err)
{
    int64_t step = self->item_bytes;
    zarr_box box = {.struct_size = sizeof box,
                    .ndim = self->ndim,
                    .item_bytes = self->item_bytes,
                    .swap_bytes = self->swap_bytes};
    zarr_box_side *of_block = encode ? &box.dst : &box.src;
    zarr_box_side *of_chunk = encode ? &box.src : &box.dst;

    zr_box_side_init(of_block, block, 0);
    zr_box_side_init(of_chunk, chunk, 0);
    for (int32_t i = 0; i < self->ndim; i++) {
        box.shape[i] = ZR_MIN(b->shape[i], self->shape[i]);
        of_block->stride[i] = step;
        step *= (int64_t)b->shape[i];
    }
    step = self->item_bytes;
    for (int32_t i = self->ndim; i-- > 0;) {
        of_chunk->stride[i] = step;
        step *= (int64_t)self->shape[i];
    }
    return zr_box_copy(&self->memory, &box, NULL, NULL, err);
}

static zarr_status n5_fill(const struct n5_self *self, const zarr_memory *chunk,
                           zarr_error *err)
{
    zarr_box box = {.struct_size = sizeof box,
                    .ndim = 1,
                    .item_bytes = self->item_bytes,
                    .shape = {self->bytes / self->item_bytes}};

    zr_box_side_init(&box.dst, chunk, 0);
    box.dst.stride[0] = self->item_bytes;
    return zr_box_fill(&self->memory, &box, self->fill, NULL, NULL, err);
}

/* ---- decoding ------------------------------------------------------------------ */

static uint32_t n5_load(const uint8_t *p, size_t n)
{
    uint32_t v = 0;

    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static zarr_status n5_head(const struct n5_self *self, const struct zr_host_job *io,
                           struct n5_block *b, zarr_error *err)
{
    const size_t head = N5_HEAD + N5_WORD * (size_t)self->ndim;
    uint32_t mode = 0, ndim = 0;

    if (io->src_bytes < N5_HEAD)
        return zr_fail(err, ZARR_ERR_CORRUPT, "n5_default: a block of %zu bytes",
                       io->src_bytes);
    mode = n5_load(io->src, 2);
    ndim = n5_load(io->src + 2, 2);
    if (mode)
        return zr_fail(err, mode < 3 ? ZARR_ERR_UNSUPPORTED : ZARR_ERR_CORRUPT,
                       "n5_default: a block of mode %" PRIu32 ", only 0 is default",
                       mode);
    if (ndim != (uint32_t)self->ndim)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "n5_default: a block of %" PRIu32
                       " dimensions, the array has %" PRId32,
                       ndim, self->ndim);
    if (io->src_bytes < head)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "n5_default: a block of %zu bytes, its header has %zu",
                       io->src_bytes, head);
    for (int32_t i = 0; i < self->ndim; i++) {
        b->shape[i] = n5_load(io->src + N5_HEAD + N5_WORD * (size_t)i, N5_WORD);
        if (b->shape[i] == 0)
            return zr_fail(err, ZARR_ERR_CORRUPT,
                           "n5_default: dimension %" PRId32 " of a block is 0", i);
    }
    if (!zr_product_u64(b->shape, (size_t)self->ndim, &b->bytes) ||
        !zr_mul(b->bytes, self->item_bytes, &b->bytes) || b->bytes > self->most)
        return zr_fail_limit(
            err, "chunk_bytes", self->most,
            "n5_default: a block says it has more than %" PRIu64 " bytes", self->most);
    return ZARR_OK;
}

static zarr_status n5_decode_one(void *self_ptr, const struct zr_host_job *io,
                                 size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct n5_self *self = self_ptr;
    const size_t head = N5_HEAD + N5_WORD * (size_t)self->ndim;
    const zarr_memory chunk = zr_mem_of_host(io->dst, self->bytes);
    struct n5_block b = {0};
    zarr_memory block = {0}, src = {0};
    zarr_status st = ZARR_OK;

    if (io->dst_bytes < self->bytes)
        return zr_internal(err);
    ZR_TRY(n5_head(self, io, &b, err));
    block = src =
        zr_mem_of_host((void *)(uintptr_t)(io->src + head), io->src_bytes - head);
    if (self->compressor) {
        block = b.bytes <= exec->scratch.bytes ? exec->scratch : (zarr_memory){0};
        if (block.handle)
            block.bytes = b.bytes;
        ZR_TRY(zarr_codec_runner_decode(self->compressor, exec, &src, &block, err));
    }
    if (block.bytes != b.bytes)
        ZR_FAIL(err, ZARR_ERR_CORRUPT,
                "n5_default: elements of %" PRIu64
                " bytes, the block's shape needs %" PRIu64,
                block.bytes, b.bytes);
    for (int32_t i = 0; i < self->ndim; i++)
        if (b.shape[i] < self->shape[i]) {
            ZR_TRY(n5_fill(self, &chunk, err));
            break;
        }
    ZR_TRY(n5_copy(self, &b, &block, &chunk, false, err));
    *used = (size_t)self->bytes;
out:
    /* the chunk's size is known, so more room would not help */
    exec->flags &= ~(uint32_t)ZARR_CODEC_JOB_NO_ROOM;
    return st;
}

ZR_JOBS_EACH(n5_decode, n5_decode_one)

/* ---- encoding -------------------------------------------- */

static void n5_store(uint8_t *p, uint32_t v, size_t n)
{
    for (size_t i = n; i-- > 0; v >>= 8)
        p[i] = (uint8_t)v;
}

static zarr_status n5_encode_one(void *self_ptr, const struct zr_host_job *io,
                                 size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct n5_self *self = self_ptr;
    const size_t head = N5_HEAD + N5_WORD * (size_t)self->ndim;
    const zarr_memory chunk = zr_mem_of_host((void *)(uintptr_t)io->src, io->src_bytes);
    struct n5_block b = {.bytes = self->bytes};
    zarr_memory block = exec->scratch, dst = {0};

    if (io->src_bytes != self->bytes || block.bytes < self->bytes)
        return zr_internal(err);
    if (io->dst_bytes < head || (!self->compressor && io->dst_bytes - head < self->bytes))
        return zr_too_long(err, "n5_default", io->dst_bytes);
    memcpy(b.shape, self->shape, sizeof b.shape);
    n5_store(io->dst, 0, 2);
    n5_store(io->dst + 2, (uint32_t)self->ndim, 2);
    for (int32_t i = 0; i < self->ndim; i++)
        n5_store(io->dst + N5_HEAD + N5_WORD * (size_t)i, (uint32_t)self->shape[i],
                 N5_WORD);
    dst = zr_mem_of_host(io->dst + head, io->dst_bytes - head);
    block = self->compressor ? block : dst;
    block.bytes = self->bytes;
    ZR_CHECK(n5_copy(self, &b, &block, &chunk, true, err));
    if (self->compressor)
        ZR_CHECK(zarr_codec_runner_encode(self->compressor, exec, &block, &dst, err));
    else
        dst.bytes = self->bytes;
    *used = head + (size_t)dst.bytes;
    return ZARR_OK;
}

ZR_JOBS_EACH(n5_encode, n5_encode_one)

const zarr_codec_impl_vtable zr_cpu_n5_default = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "n5_default",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = n5_bind,
    .scratch = n5_scratch,
    .encode = n5_encode,
    .decode = n5_decode,
    .close = n5_close,
};
