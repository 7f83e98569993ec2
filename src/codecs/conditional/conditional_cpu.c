/*
 * codecs/conditional/conditional_cpu.c - `conditional`: a header of bits, then the output
 * of the codecs whose bits are set. The encoder applies a codec if it makes the chunk
 * smaller. It also applies a codec that keeps the length (a shuffle), because the codecs
 * after it may gain from that. If all of them together do not make the chunk smaller, the
 * encoder applies none. So an encoded chunk is never longer than the decoded chunk plus
 * the header. A checksum makes chunks longer; it belongs after this codec, not inside it.
 */
#include "codecs/codecs_int.h"

#include <string.h>

struct cond_self {
    const zarr_allocator *alloc;
    zarr_codec_runner **codec; /* n of them */
    size_t n, head;
};

static void cond_close(void *self_ptr)
{
    struct cond_self *self = self_ptr;

    if (!self)
        return;
    for (size_t i = 0; self->codec && i < self->n; i++)
        zarr_codec_runner_close(self->codec[i]);
    zr_free(self->alloc, self->codec);
    zr_free(self->alloc, self);
}

static zarr_status cond_bind(void **out, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    const int64_t n = zarr_codec_spec_chain_codecs(spec, "codecs", NULL);
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct cond_self *self = zr_calloc(alloc, 1, sizeof *self);
    zarr_chunk_spec plain = {.struct_size = sizeof plain,
                             .n_bytes = to->decoded->n_bytes,
                             .item_bytes_hint = to->decoded->item_bytes_hint};
    zarr_status st = ZARR_OK;
    int64_t bits = 0;

    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = alloc;
    self->n = n > 0 ? (size_t)n : 0;
    (void)zarr_codec_spec_i64(spec, "header_bits", &bits);
    self->head = (size_t)bits / 8;
    self->codec =
        zr_calloc(alloc, ZR_MAX(self->n, (size_t)1), sizeof(zarr_codec_runner *));
    if (!self->codec)
        ZR_FAIL_MEMORY(err, self->n * sizeof(zarr_codec_runner *));
    for (uint32_t i = 0; i < self->n; i++) {
        ZR_TRY(zr_runner_open_range(&self->codec[i], spec, "codecs", i, 1, &plain, err));
        plain.n_bytes = ZR_MAX(plain.n_bytes, zr_runner_bound(self->codec[i]));
    }
    *out = self; /* moved */
    self = NULL;
out:
    cond_close(self);
    return st;
}

static bool cond_bit(const uint8_t *head, size_t i)
{
    return head[i / 8] >> i % 8 & 1;
}

static zarr_status cond_put(const struct zr_host_job *io, size_t at,
                            const zarr_memory *from, size_t *used, zarr_error *err)
{
    if (from->bytes > io->dst_bytes - at)
        return zr_too_long(err, "conditional", io->dst_bytes);
    if (from->bytes)
        memcpy(io->dst + at, (const uint8_t *)from->handle + from->offset,
               (size_t)from->bytes);
    *used = at + (size_t)from->bytes;
    return ZARR_OK;
}

/* ---- decoding ------------------------------------------------------------------ */

static zarr_status cond_head(const struct cond_self *self, const struct zr_host_job *io,
                             zarr_error *err)
{
    if (io->src_bytes < self->head)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "conditional: %zu bytes, the header has %zu", io->src_bytes,
                       self->head);
    for (size_t i = self->n; i < 8 * self->head; i++)
        if (cond_bit(io->src, i))
            return zr_fail(err, ZARR_ERR_CORRUPT,
                           "conditional: the header's bit %zu is set, there are %zu "
                           "codecs",
                           i, self->n);
    return ZARR_OK;
}

static zarr_status cond_decode_one(void *self_ptr, const struct zr_host_job *io,
                                   size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct cond_self *self = self_ptr;
    struct zr_runner_row row;
    zarr_memory src = {0}, dst = zr_mem_of_host(io->dst, io->dst_bytes);
    size_t first = 0;
    zarr_status st = ZARR_OK;

    ZR_TRY(cond_head(self, io, err));
    src = zr_mem_of_host((void *)(uintptr_t)(io->src + self->head),
                         io->src_bytes - self->head);
    while (first < self->n && !cond_bit(io->src, first))
        first++;
    if (first == self->n)
        return cond_put(io, 0, &src, used, err);
    zr_runner_row_open(&row, exec, false, &src);
    for (size_t i = self->n; i-- > first + 1;) {
        if (!cond_bit(io->src, i))
            continue;
        st = zr_runner_row_run(&row, self->codec[i], err);
        /* the runner has its own buffer, so a larger one of the caller would not help */
        exec->flags &= ~(uint32_t)ZARR_CODEC_JOB_NO_ROOM;
        ZR_TRY(st);
        zr_runner_row_keep(&row);
    }
    ZR_TRY(zarr_codec_runner_decode(self->codec[first], exec, &row.input, &dst, err));
    *used = (size_t)dst.bytes;
out:
    return st;
}

ZR_JOBS_EACH(cond_decode, cond_decode_one)

/* ---- encoding ------------------------------------------------------------------ */

static zarr_status cond_encode_one(void *self_ptr, const struct zr_host_job *io,
                                   size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct cond_self *self = self_ptr;
    const zarr_memory plain = zr_mem_of_host((void *)(uintptr_t)io->src, io->src_bytes);
    struct zr_runner_row row;
    zarr_status st = ZARR_OK;

    if (io->dst_bytes < self->head)
        return zr_too_long(err, "conditional", io->dst_bytes);
    memset(io->dst, 0, self->head);
    zr_runner_row_open(&row, exec, true, &plain);
    for (size_t i = 0; i < self->n; i++) {
        zarr_error why = {0};

        st = zr_runner_row_run(&row, self->codec[i], &why);
        /* INVALID: the codec does not take these bytes */
        if (st != ZARR_OK && st != ZARR_ERR_INVALID) {
            if (err)
                *err = why;
            goto out;
        }
        if (st == ZARR_OK && row.output.bytes <= row.input.bytes) {
            io->dst[i / 8] |= (uint8_t)(1U << i % 8);
            zr_runner_row_keep(&row);
        } else {
            zr_runner_row_drop(&row);
        }
    }
    if (row.input.bytes >= plain.bytes) {
        memset(io->dst, 0, self->head);
        row.input = plain;
    }
    st = cond_put(io, self->head, &row.input, used, err);
out:
    return st;
}

ZR_JOBS_EACH(cond_encode, cond_encode_one)

static uint64_t cond_size_hint(void *self, const zarr_codec_job *job, int encode)
{
    uint64_t room = 0;

    if (!encode)
        return 0;
    return zr_add(job->src.bytes, ((const struct cond_self *)self)->head, &room)
               ? room
               : UINT64_MAX;
}

const zarr_codec_impl_vtable zr_cpu_conditional = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "conditional",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = cond_bind,
    .encode = cond_encode,
    .decode = cond_decode,
    .close = cond_close,
    .size_hint = cond_size_hint,
};
