/*
 * impl/shard.c - `sharding_indexed` as a codec like any other: it encodes a whole array
 * to the value of a shard. Shards whose chunks can be read alone never come here,
 * because the plan takes them apart. Shards come here if they follow codecs that need the
 * whole shard (reshape, numcodecs.delta ...), or if they are inside other codecs.
 * chain/shard_index.c checks the index, as for all shards. The encoder writes the same
 * bytes as pipe/write/shard_write.c: chunks in C order, without those that equal
 * the fill value. Elements of variable length point into the decoder's buffer, which the
 * next chunk reuses. So their bytes are moved to blocks that stay. Thread class:
 * frozen; memory is the calling thread's.
 */
#include "impl/impl_int.h"

#include <stdio.h>
#include <string.h>

enum {
    SHARD_CANCEL_EVERY = 256 /* chunks between two checks for cancellation */
};

struct shard_self {
    const zarr_allocator *alloc;
    const struct zr_shard_spec *spec; /* borrowed */
    zarr_codec_runner *inner, *index;
    int32_t ndim;
    uint64_t grid[ZARR_MAX_RANK], n; /* chunks */
    /* A chunk in the shard: rows of `row` bytes each, n_rows[d] of them in
     * dimension d, step[d] bytes apart. */
    uint64_t n_rows[ZARR_MAX_RANK];
    size_t step[ZARR_MAX_RANK], row;
    size_t origin[ZARR_MAX_RANK]; /* from one chunk to the next */
    size_t item_bytes, chunk_bytes, bytes, index_bytes;
    uint64_t bound, most_bytes;
    bool variable;
    uint8_t *fill;
};

static void shard_close(void *self_ptr)
{
    struct shard_self *self = self_ptr;

    if (!self)
        return;
    zarr_codec_runner_close(self->inner);
    zarr_codec_runner_close(self->index);
    zr_free(self->alloc, self->fill);
    zr_free(self->alloc, self);
}

/* ---- binding --------------------------------------------------------------------- */

/* The trailing dimensions in which a chunk is as long as the shard join the row.
 * No product here exceeds the bytes of the shard, which the chain has checked. */
static zarr_status shard_measure(struct shard_self *self, const zarr_chunk_spec *shard,
                                 const zarr_chunk_spec *chunk, zarr_error *err)
{
    size_t step = 0;
    bool whole = true;

    if (!zr_fits(shard->n_bytes, &self->bytes) ||
        !zr_fits(zarr_dtype_item_bytes(shard->dtype), &step))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "a chunk does not fit this machine's addresses");
    self->item_bytes = self->row = self->chunk_bytes = step;
    for (int32_t d = shard->ndim - 1; d >= 0; d--) {
        const size_t n = (size_t)chunk->shape[d];

        self->n_rows[d] = whole ? 1 : n;
        self->step[d] = step;
        self->origin[d] = step * n;
        self->chunk_bytes *= n;
        if (whole)
            self->row *= n;
        whole = whole && n == shard->shape[d];
        step *= (size_t)shard->shape[d];
    }
    return ZARR_OK;
}

static zarr_status shard_bind_runners(struct shard_self *self,
                                      const zarr_codec_spec *spec,
                                      const struct zr_shard_inner_specs *parts,
                                      zarr_error *err)
{
    ZR_CHECK(zr_runner_open_chain(&self->inner, spec, "codecs",
                                  spec->structure.shard->inner, &parts->chunk, err));
    ZR_CHECK(zr_runner_open_chain(&self->index, spec, "index_codecs",
                                  spec->structure.shard->index, &parts->index, err));
    if (!zr_fits(zr_runner_bound(self->index), &self->index_bytes))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "a shard index does not fit this machine's addresses");
    if (!zr_mul(self->n, zr_runner_bound(self->inner), &self->bound) ||
        !zr_add(self->bound, self->index_bytes, &self->bound))
        self->bound = UINT64_MAX;
    return ZARR_OK;
}

static zarr_status shard_bind(void **out, const zarr_codec_spec *spec,
                              const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct shard_self *self = zr_calloc(alloc, 1, sizeof *self);
    struct zr_shard_inner_specs parts;
    zarr_status st = ZARR_OK;

    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = alloc;
    self->spec = spec->structure.shard;
    self->ndim = to->decoded->ndim;
    self->variable = zarr_dtype_variable(to->decoded->dtype) != 0;
    self->most_bytes = spec->most_bytes;
    /* the chain has checked the number of chunks */
    ZR_TRY(zr_shard_inner_specs(spec->structure.shard, to->decoded, UINT64_MAX, &parts,
                                err));
    self->n = parts.n_chunks;
    memcpy(self->grid, parts.grid, sizeof self->grid);
    ZR_TRY(shard_measure(self, to->decoded, &parts.chunk, err));
    ZR_TRY(shard_bind_runners(self, spec, &parts, err));
    self->fill = zr_calloc(alloc, 1, ZR_MAX(self->item_bytes, (size_t)1));
    if (!self->fill)
        ZR_FAIL_MEMORY(err, self->item_bytes);
    if (to->decoded->fill)
        memcpy(self->fill, to->decoded->fill, self->item_bytes);
    *out = self; /* moved */
    self = NULL;
out:
    shard_close(self);
    return st;
}

/* ---- places ---------------------------------------------------------------------- */

/* Advances `at` by one place in C order, and *offset with it. False: it was the last. */
static bool shard_next(int32_t ndim, const uint64_t *n, const size_t *step, uint64_t *at,
                       size_t *offset)
{
    for (int32_t d = ndim - 1; d >= 0; d--) {
        *offset += step[d];
        if (++at[d] < n[d])
            return true;
        *offset -= step[d] * (size_t)n[d];
        at[d] = 0;
    }
    return false;
}

/* Whether a chunk is contiguous in the shard. */
static bool shard_is_one_row(const struct shard_self *self)
{
    return self->row == self->chunk_bytes;
}

static void shard_scatter(const struct shard_self *self, uint8_t *shard,
                          const uint8_t *chunk)
{
    uint64_t at[ZARR_MAX_RANK] = {0};
    size_t offset = 0;

    do {
        memcpy(shard + offset, chunk, self->row);
        chunk += self->row;
    } while (shard_next(self->ndim, self->n_rows, self->step, at, &offset));
}

static void shard_gather(const struct shard_self *self, uint8_t *chunk,
                         const uint8_t *shard)
{
    uint64_t at[ZARR_MAX_RANK] = {0};
    size_t offset = 0;

    do {
        memcpy(chunk, shard + offset, self->row);
        chunk += self->row;
    } while (shard_next(self->ndim, self->n_rows, self->step, at, &offset));
}

static void shard_fill(const struct shard_self *self, uint8_t *to, size_t bytes)
{
    memcpy(to, self->fill, self->item_bytes);
    for (size_t have = self->item_bytes; have < bytes; have *= 2)
        memcpy(to + have, to, ZR_MIN(have, bytes - have));
}

/* *pairs: room for the index. *chunk: room for one chunk; NULL if chunks are
 * contiguous in the shard. */
static zarr_status shard_room(const struct shard_self *self, zarr_codec_exec *exec,
                              bool encode, uint64_t **pairs, uint8_t **chunk,
                              zarr_error *err)
{
    uint8_t *room = NULL;

    if (!exec->inner)
        return zr_internal(err);
    *chunk = NULL;
    ZR_CHECK(zr_exec_room(exec, encode, self->n * 2 * sizeof **pairs, &room, err));
    *pairs = (uint64_t *)(void *)room;
    if (!shard_is_one_row(self))
        ZR_CHECK(zr_exec_room(exec, encode, self->chunk_bytes, chunk, err));
    return ZARR_OK;
}

/* CANCELLED if the caller no longer needs the result: a shard may have millions of inner
 * chunks. */
static zarr_status shard_check_cancel(uint64_t i, const zarr_codec_exec *exec,
                                      zarr_error *err)
{
    const struct zr_thread_states *ts = exec->inner;

    return i % SHARD_CANCEL_EVERY ? ZARR_OK : zr_cancel_check(ts->cancel, err);
}

static zarr_status shard_prefix(const struct shard_self *self, const uint64_t *at,
                                zarr_status st, zarr_error *err)
{
    char text[160];

    zr_coord_text(text, sizeof text, at, self->ndim);
    return zr_prefix(err, st, "chunk [%s] of the shard", text);
}

/* ---- decoding -------------------------------------------------------------------- */

/* The index, and the blocks with the bytes that elements of variable length point to. */
struct shard_keep {
    size_t block;                /* index of the last block in the stack of buffers */
    size_t used;                 /* bytes of the last block */
    uint64_t all;                /* bytes of all elements so far */
    struct zr_shard_pairs index; /* its entries are not checked yet */
};

/* Adds a block. The buffer at its place in the stack may contain the elements' bytes, so
 * it goes to *gone, which the caller frees after copying them. */
static zarr_status keep_grow(struct shard_keep *k, struct zr_thread_states *ts,
                             uint64_t bytes, struct zr_buffer *gone, zarr_error *err)
{
    struct zr_buffer fresh = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_buffer_need(&fresh, bytes, ts, err));
    st = zr_buffer_stack_push(&ts->decode, 1, ts->alloc, err);
    if (st != ZARR_OK) {
        zr_buffer_free(&fresh, ts);
        goto out;
    }
    k->block = ts->decode.top - 1;
    k->used = 0;
    *gone = ts->decode.buffer[k->block];
    ts->decode.buffer[k->block] = fresh;
out:
    return st;
}

static zarr_status keep_items(const struct shard_self *self, struct shard_keep *k,
                              struct zr_thread_states *ts, uint8_t *items,
                              zarr_error *err)
{
    struct zr_buffer gone = {0};
    uint64_t sum = 0, twice = 0;
    uint8_t *to = NULL;
    zarr_vlen item;
    zarr_status st = ZARR_OK;

    for (size_t at = 0; at < self->chunk_bytes; at += self->item_bytes) {
        memcpy(&item, items + at, sizeof item);
        if (!zr_add(sum, item.bytes, &sum))
            sum = UINT64_MAX;
    }
    if (!zr_add(k->all, sum, &k->all) || k->all > self->most_bytes)
        ZR_FAIL_LIMIT(err, "variable_chunk_bytes", self->most_bytes,
                      "the shard's elements have more than %" PRIu64 " bytes",
                      self->most_bytes);
    twice = 2 * (uint64_t)ts->decode.buffer[k->block].bytes;
    if (sum > ts->decode.buffer[k->block].bytes - k->used)
        ZR_TRY(keep_grow(k, ts,
                         ZR_MAX(sum, ZR_MIN(twice, self->most_bytes - (k->all - sum))),
                         &gone, err));
    to = ts->decode.buffer[k->block].p + k->used;
    k->used += (size_t)sum;
    for (size_t at = 0; at < self->chunk_bytes; at += self->item_bytes) {
        memcpy(&item, items + at, sizeof item);
        if (item.bytes)
            memcpy(to, item.data, (size_t)item.bytes);
        if (item.data) /* NULL: a missing or empty element */
            item.data = to;
        to += item.bytes;
        memcpy(items + at, &item, sizeof item);
    }
out:
    zr_buffer_free(&gone, ts);
    return st;
}

static zarr_status decode_chunk(const struct shard_self *self,
                                const struct zr_host_job *io, uint64_t i, uint8_t *to,
                                struct shard_keep *k, zarr_codec_exec *exec,
                                zarr_error *err)
{
    const uint64_t *pair = k->index.pairs + 2 * i;
    zarr_memory src = {0}, dst = zr_mem_of_host(to, self->chunk_bytes);

    if (ZR_PAIR_IS_MISSING(pair)) {
        shard_fill(self, to, self->chunk_bytes);
        return ZARR_OK;
    }
    ZR_CHECK(zr_shard_pair_check(&k->index, i, err));
    src = zr_mem_of_host((void *)(uintptr_t)(io->src + pair[0]), pair[1]);
    ZR_CHECK(zarr_codec_runner_decode(self->inner, exec, &src, &dst, err));
    if (dst.bytes != self->chunk_bytes)
        ZR_CHECK(zr_internal(err));
    if (self->variable)
        ZR_CHECK(keep_items(self, k, exec->inner, to, err));
    return ZARR_OK;
}

static zarr_status decode_index(const struct shard_self *self,
                                const struct zr_host_job *io, uint64_t *pairs,
                                struct zr_shard_pairs *out, zarr_codec_exec *exec,
                                zarr_error *err)
{
    const zarr_memory src = zr_mem_of_host(
        (void *)(uintptr_t)(io->src + out->index_offset), self->index_bytes);
    zarr_memory dst = zr_mem_of_host(pairs, self->n * 2 * sizeof *pairs);

    *out = (struct zr_shard_pairs){.pairs = pairs,
                                   .n = self->n,
                                   .shard_bytes = io->src_bytes,
                                   .index_offset = out->index_offset,
                                   .index_bytes = self->index_bytes};
    return zarr_codec_runner_decode(self->index, exec, &src, &dst, err);
}

/* Decodes the index, and makes room for chunks and for the bytes of
 * elements of variable length. */
static zarr_status decode_open(const struct shard_self *self,
                               const struct zr_host_job *io, uint8_t **chunk,
                               struct shard_keep *k, zarr_codec_exec *exec,
                               zarr_error *err)
{
    uint64_t *pairs = NULL;
    uint8_t *block = NULL;
    zarr_status st = ZARR_OK;

    st = zr_shard_index_at(self->spec, io->src_bytes, self->index_bytes,
                           &k->index.index_offset, err);
    if (st == ZARR_OK) {
        ZR_TRY(shard_room(self, exec, false, &pairs, chunk, err));
        st = decode_index(self, io, pairs, &k->index, exec, err);
    }
    if (st != ZARR_OK) {
        (void)zr_prefix(err, st, "shard index");
        goto out;
    }
    if (self->variable) {
        ZR_TRY(zr_exec_room(exec, false, 1, &block, err));
        k->block = ((struct zr_thread_states *)exec->inner)->decode.top - 1;
    }
out:
    return st;
}

static zarr_status shard_decode_one(void *self_ptr, const struct zr_host_job *io,
                                    size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct shard_self *self = self_ptr;
    uint64_t at[ZARR_MAX_RANK] = {0};
    struct shard_keep keep = {0};
    uint8_t *chunk = NULL, *to = NULL;
    size_t offset = 0;
    zarr_status st = ZARR_OK;

    if (io->dst_bytes < self->bytes)
        return zr_too_long(err, "sharding_indexed", io->dst_bytes);
    ZR_TRY(decode_open(self, io, &chunk, &keep, exec, err));
    for (uint64_t i = 0; i < self->n; i++) {
        ZR_TRY(shard_check_cancel(i, exec, err));
        to = chunk ? chunk : io->dst + offset;
        st = decode_chunk(self, io, i, to, &keep, exec, err);
        if (st != ZARR_OK) {
            st = shard_prefix(self, at, st, err);
            goto out;
        }
        if (chunk)
            shard_scatter(self, io->dst + offset, chunk);
        (void)shard_next(self->ndim, self->grid, self->origin, at, &offset);
    }
    *used = self->bytes;
out:
    exec->flags &= ~(uint32_t)ZARR_CODEC_JOB_NO_ROOM; /* more room would not help */
    return st;
}

ZR_JOBS_EACH(shard_decode, shard_decode_one)

/* ---- encoding -------------------------------------------------------------------- */

static zarr_status encode_chunk(const struct shard_self *self, const uint8_t *from,
                                const struct zr_host_job *io, size_t *pos, uint64_t *pair,
                                zarr_codec_exec *exec, zarr_error *err)
{
    const struct zr_thread_states *ts = exec->inner;
    const zarr_memory src = zr_mem_of_host((void *)(uintptr_t)from, self->chunk_bytes);
    const size_t at = *pos;

    if (!ts->keep_empty &&
        zr_elements_equal(from, self->chunk_bytes / self->item_bytes, self->fill,
                          (uint32_t)self->item_bytes, self->variable))
        return ZARR_OK;
    ZR_CHECK(zr_runner_encode_at(self->inner, exec, &src, io, pos, err));
    pair[0] = at;
    pair[1] = *pos - at;
    return ZARR_OK;
}

static zarr_status encode_index(const struct shard_self *self,
                                const struct zr_host_job *io, size_t *pos,
                                uint64_t *pairs, zarr_codec_exec *exec, zarr_error *err)
{
    const zarr_memory src = zr_mem_of_host(pairs, self->n * 2 * sizeof *pairs);
    const size_t at = self->spec->index_at_end ? *pos : 0;
    zarr_memory dst = zr_mem_of_host(io->dst + at, self->index_bytes);

    if (io->dst_bytes - at < self->index_bytes)
        return zr_too_long(err, "sharding_indexed", io->dst_bytes);
    ZR_CHECK(zarr_codec_runner_encode(self->index, exec, &src, &dst, err));
    if (dst.bytes != self->index_bytes)
        ZR_CHECK(zr_internal(err));
    if (self->spec->index_at_end)
        *pos += self->index_bytes;
    return ZARR_OK;
}

static zarr_status shard_encode_one(void *self_ptr, const struct zr_host_job *io,
                                    size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct shard_self *self = self_ptr;
    uint64_t *pairs = NULL, at[ZARR_MAX_RANK] = {0};
    uint8_t *chunk = NULL;
    size_t offset = 0, pos = self->spec->index_at_end ? 0 : self->index_bytes;
    zarr_status st = ZARR_OK;

    if (io->src_bytes != self->bytes)
        return zr_internal(err);
    if (io->dst_bytes < pos)
        return zr_too_long(err, "sharding_indexed", io->dst_bytes);
    ZR_TRY(shard_room(self, exec, true, &pairs, &chunk, err));
    memset(pairs, 0xff, (size_t)self->n * 2 * sizeof *pairs);
    for (uint64_t i = 0; i < self->n; i++) {
        ZR_TRY(shard_check_cancel(i, exec, err));
        if (chunk)
            shard_gather(self, chunk, io->src + offset);
        st = encode_chunk(self, chunk ? chunk : io->src + offset, io, &pos, pairs + 2 * i,
                          exec, err);
        if (st != ZARR_OK) {
            st = shard_prefix(self, at, st, err);
            goto out;
        }
        (void)shard_next(self->ndim, self->grid, self->origin, at, &offset);
    }
    ZR_TRY(encode_index(self, io, &pos, pairs, exec, err));
    *used = pos;
out:
    return st;
}

ZR_JOBS_EACH(shard_encode, shard_encode_one)

/* The bytes that all elements of variable length point to; 0 if that is not known. */
static uint64_t shard_pointed_at(const zarr_codec_job *job)
{
    uint64_t sum = 0;
    zarr_vlen item;

    for (uint64_t at = 0; at + sizeof item <= job->src.bytes; at += sizeof item)
        if (!zr_job_peek(job, at, &item, sizeof item) || !zr_add(sum, item.bytes, &sum))
            return 0;
    return sum;
}

/* When encoding, the hint is the size of the elements and the index, with 16 bytes for
 * what codecs add to each chunk. The bounds of many small chunks would add up
 * to much more. A longer result gets more room later. */
static uint64_t shard_size_hint(void *self_ptr, const zarr_codec_job *job, int encode)
{
    const struct shard_self *self = self_ptr;
    uint64_t room = 0;

    if (!encode)
        return self->bytes;
    if (!zr_mul(self->n, 16, &room) || !zr_add(room, self->index_bytes, &room) ||
        !zr_add(room, job->src.bytes, &room))
        room = UINT64_MAX;
    if (self->variable && self->item_bytes == sizeof(zarr_vlen) &&
        !zr_add(room, shard_pointed_at(job), &room))
        room = UINT64_MAX;
    return ZR_MIN(room, ZR_MIN(self->bound, self->most_bytes));
}

const zarr_codec_impl_vtable zr_cpu_shard = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "sharding_indexed",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = shard_bind,
    .encode = shard_encode,
    .decode = shard_decode,
    .close = shard_close,
    .size_hint = shard_size_hint,
};
