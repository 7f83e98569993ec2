/*
 * pipe/read/prefetch.c - batches for stores with their own concurrency. If a store is not
 * read on the decoding thread, or if chunks are decoded together, the ranges of a whole
 * wave are fetched at once, before its chunks are decoded. Ranges that could not be
 * fetched are left to the worker, which handles every case. Thread class: on the thread
 * that pulled the wave.
 */
#include "pipe/read/read.h"

#include <string.h>

enum {
    PREFETCH_SLAB = 8 << 20, /* of a block for many chunks */
    MOST_RANGES = 1 << 16    /* of a chunk */
};

/* ---- operations --------------------------------------------------------- */

/* Whether a segment has as many bytes as its chunks can have. */
static bool is_expected(const struct zr_io *io, const struct zr_segment *r)
{
    const uint64_t slack = io->engine->wave_bytes;
    uint64_t most = zr_program_most(io, r->level->decode);

    if (r->bytes == UINT64_MAX)
        return true;
    if (!zr_mul(most, r->n_items, &most))
        most = UINT64_MAX;
    return r->bytes <= slack || r->bytes - slack <= most;
}

/* How many operations fetch a segment here; 0: it is left to the worker. Sets *ranges if
 * they are the ranges that a part of an uncompressed chunk needs. */
static uint32_t count_ops(const struct zr_io *io, const struct zr_segment *r,
                          struct zr_ranges *ranges)
{
    const struct zr_program *p = r->level->decode;

    ranges->n_reads = 0;
    if (r->bytes == ZR_ITEM_MISSING || !r->key || r->bytes == 0)
        return 0;
    if (!p->raw || !zr_raw_in_ranges(io, r, ranges)) {
        ranges->n_reads = 0;
        return is_expected(io, r);
    }
    /* only the worker may change the bytes of padded elements */
    if (p->padded || !zr_io_is_host(io, io->view.base.device_type) ||
        ranges->n_reads > MOST_RANGES)
        return 0;
    return (uint32_t)ranges->n_reads;
}

/* Adds a segment to the operation before it, if it is a near range of the same object.
 * Threads share the decoding of an object, but one request fetches its range. */
static bool op_joins(const struct zr_plan_args *cut, struct zr_prefetch *p,
                     const struct zr_segment *r)
{
    zarr_store_op *op = p->n > 0 ? &p->op[p->n - 1] : NULL;
    uint64_t gaps = cut->wave_gaps - p->gaps;
    struct zr_range range;

    if (cut->apart || !op || !r->shard || op->lock != zr_shard_pin(r->shard) ||
        r->offset < op->offset)
        return false;
    range = (struct zr_range){op->offset, op->offset + op->length};
    if (!zr_range_join(cut, &range, r->offset, r->bytes, &gaps))
        return false;
    p->gaps = cut->wave_gaps - gaps;
    op->length = range.end - range.start;
    p->count[p->n - 1]++;
    return true;
}

/* Begins an operation on segment i. The caller counts it. */
static zarr_store_op *next_op(const struct zr_wave *w, struct zr_prefetch *p, uint32_t i)
{
    const struct zr_segment *r = &w->segment[i];
    zarr_store_op *op = &p->op[p->n];

    *op = (zarr_store_op){.verb = ZARR_STORE_GET,
                          .flags = ZARR_STORE_OP_CHUNK,
                          .key = r->key,
                          .object_bytes = UINT64_MAX,
                          .status = ZARR_ERR_INTERNAL};
    if (r->shard) {
        op->flags |= ZR_STORE_OP_PINNED;
        op->lock = zr_shard_pin(r->shard);
    }
    p->first[p->n] = i;
    return op;
}

static void add_whole(const struct zr_wave *w, struct zr_prefetch *p, uint32_t i)
{
    const struct zr_segment *r = &w->segment[i];
    const bool whole_object = r->bytes == UINT64_MAX;
    zarr_store_op *op = next_op(w, p, i);

    op->offset = whole_object ? 0 : r->offset;
    op->length = whole_object ? ZARR_STORE_TO_END : r->bytes;
    p->count[p->n++] = 1;
}

/* All ranges of a chunk are of one version. If there is no pin, the worker reads them. */
static void add_ranges(const struct zr_io *io, const struct zr_wave *w,
                       struct zr_prefetch *p, uint32_t i, const struct zr_ranges *s)
{
    const struct zr_segment *r = &w->segment[i];
    const uint64_t base = r->shard ? r->item[0]->offset : 0;
    struct zr_store_pin *pin = NULL;
    uint64_t at[ZARR_MAX_RANK] = {0};

    if (!r->shard && s->n_reads > 1) {
        pin = &p->pin[p->n_pins];
        if (zr_store_pin_init(pin, io->store, r->key, NULL) != ZARR_OK)
            return;
        p->n_pins++;
    }
    for (uint64_t k = 0; k < s->n_reads; k++) {
        zarr_store_op *op = next_op(w, p, i);

        op->offset = base + zr_ranges_next(s, at);
        op->length = s->read_bytes;
        if (pin) {
            op->flags |= ZR_STORE_OP_PINNED;
            op->lock = pin;
        }
        p->room[p->n] = s->span;
        p->count[p->n++] = 0;
    }
}

static void make_ops(const struct zr_io *io, const struct zr_wave *w,
                     struct zr_prefetch *p)
{
    struct zr_plan_args cut;
    struct zr_ranges ranges;
    bool before = false; /* the segment before is in the last operation */

    zr_waves_cut(io, &cut);
    for (uint32_t i = 0; i < w->n_segments; i++) {
        const bool part = count_ops(io, &w->segment[i], &ranges) != 0;

        if (!part || ranges.n_reads > 0) {
            before = false;
            if (part)
                add_ranges(io, w, p, i, &ranges);
            continue;
        }
        if (before && op_joins(&cut, p, &w->segment[i]))
            continue;
        before = true;
        add_whole(w, p, i);
    }
}

/* Whether operation k is a range of a chunk, but not its first one. */
static bool is_further(const struct zr_prefetch *p, uint32_t k)
{
    return k > 0 && p->first[k] == p->first[k - 1];
}

/* The most bytes of memory that an operation, or all ranges of a chunk, need. */
static uint64_t op_room(const struct zr_wave *w, const struct zr_prefetch *p, uint32_t k)
{
    if (p->count[k] == 0)
        return p->room[k];
    return p->op[k].length == ZARR_STORE_TO_END
               ? w->segment[p->first[k]].level->decode->encoded_bound
               : p->op[k].length;
}

/* The same in a block of several operations. A whole object has a tail, so that the next
 * one is aligned. Ranges of shards have none: their neighbours are copied as one. */
static uint64_t op_bytes(const struct zr_wave *w, const struct zr_prefetch *p, uint32_t k)
{
    const uint64_t align = ZR_CHUNK_ALIGNMENT;
    const uint64_t bytes = op_room(w, p, k);

    if (p->op[k].length != ZARR_STORE_TO_END)
        return bytes;
    return bytes <= UINT64_MAX - align ? (bytes + align - 1) / align * align : bytes;
}

/* Whether encoded bytes are copied to the tensor's device as they are, by the library or
 * by a codec that reads headers on the host. */
static bool goes_up(const struct zr_io *io, const struct zr_program *prog)
{
    return !zr_io_is_host(io, io->view.base.device_type) &&
           zr_io_is_host(io, prog->fetch_device) &&
           (prog->n == 0 || !zr_io_is_host(io, prog->stage[0].out_device));
}

/* Whether operation k still needs memory. The first range of a chunk has that of all. */
static bool op_waits(const struct zr_prefetch *p, uint32_t k)
{
    return !is_further(p, k) && p->op[k].status != ZARR_OK && !p->op[k].mem.handle;
}

/* Lets the store write an uncompressed chunk to its place in the tensor. A codec that
 * takes batches, and a device, have memory of their own. */
static void place_directly(const struct zr_io *io, const struct zr_wave *w,
                           struct zr_prefetch *p, uint32_t k)
{
    const struct zr_segment *r = &w->segment[p->first[k]];
    const struct zr_program *prog = r->level->decode;
    zarr_memory at;

    if (p->count[k] == 1 && !prog->padded && !zr_is_batched(io, prog) &&
        zr_raw_is_direct(io, r, &at))
        p->op[k].mem = at;
}

/* Whether an operation shares a block with others: what goes to a device, because copies
 * of neighbours become one, and what comes to the host with a known length, because a
 * large block is on huge pages. Of a length that only has a bound, pages that stay
 * untouched are worth more. */
static bool op_shares(const struct zr_io *io, const struct zr_wave *w,
                      const struct zr_prefetch *p, uint32_t k, bool *up)
{
    const struct zr_program *prog = w->segment[p->first[k]].level->decode;

    *up = goes_up(io, prog);
    return *up || (prog->fetch_device == ZARR_DEVICE_CPU &&
                   (p->op[k].length != ZARR_STORE_TO_END || prog->encoded_exact));
}

/* Takes one block for operation k and those after it, pinned for a device if the budget
 * has room. This saves allocations, too. */
static zarr_status take_slab(const struct zr_io *io, const struct zr_wave *w,
                             struct zr_prefetch *p, uint32_t k, bool up, zarr_error *err)
{
    const zarr_memory *tensor = &io->view.base;
    struct zr_pool *pool = io->engine->pool;
    uint64_t all = op_bytes(w, p, k), at = 0, next = 0;
    bool also_up = false;
    uint32_t end = k + 1;

    for (; end < p->n; end++) {
        if (!op_waits(p, end))
            continue;
        if (!op_shares(io, w, p, end, &also_up) || also_up != up ||
            !zr_add(all, op_bytes(w, p, end), &next) || next > PREFETCH_SLAB)
            break;
        all = next;
    }
    all = ZR_MAX(all, UINT64_C(64));
    if (up)
        ZR_CHECK(zr_pool_take_staging(pool, tensor->device_type, tensor->device_id, all,
                                      &p->block[k], err));
    else
        ZR_CHECK(zr_pool_take(pool, ZARR_DEVICE_CPU, 0, all, &p->block[k], err));
    for (uint32_t i = k; i < end; i++) {
        zarr_store_op *op = &p->op[i];

        if (!op_waits(p, i))
            continue;
        if (!zr_mem_slice(&p->block[k], at, op_bytes(w, p, i), &op->mem))
            return zr_internal(err);
        at += op->mem.bytes;
        op->mem.bytes = op_room(w, p, i);
    }
    return ZARR_OK;
}

/* Puts the ranges of each chunk into their places in its memory. */
static zarr_status place_ranges(struct zr_prefetch *p, zarr_error *err)
{
    zarr_memory all = {0};
    uint64_t from = 0;

    for (uint32_t k = 0; k < p->n; k++) {
        zarr_store_op *op = &p->op[k];

        if (p->count[k] != 0 || op->status == ZARR_OK)
            continue;
        if (!is_further(p, k)) {
            all = op->mem;
            from = op->offset;
        }
        if (!zr_mem_slice(&all, op->offset - from, op->length, &op->mem))
            return zr_internal(err);
    }
    return ZARR_OK;
}

static zarr_status take_memory(const struct zr_io *io, const struct zr_wave *w,
                               struct zr_prefetch *p, zarr_error *err)
{
    bool up = false;

    for (uint32_t k = 0; k < p->n; k++) {
        p->op[k].mem.device_type = w->segment[p->first[k]].level->decode->fetch_device;
        if (p->count[k] != 0 || p->op[k].length == p->room[k])
            (void)zr_store_lend(io->store, &p->op[k]);
        if (op_waits(p, k))
            place_directly(io, w, p, k);
    }
    for (uint32_t k = 0; k < p->n; k++) {
        const struct zr_program *prog = w->segment[p->first[k]].level->decode;
        zarr_store_op *op = &p->op[k];

        if (!op_waits(p, k))
            continue;
        if (op_shares(io, w, p, k, &up)) {
            ZR_CHECK(take_slab(io, w, p, k, up, err));
            continue;
        }
        ZR_CHECK(zr_pool_take(io->engine->pool, prog->fetch_device,
                              zr_io_device_id(io, prog->fetch_device),
                              ZR_MAX(op_room(w, p, k), UINT64_C(64)), &p->block[k], err));
        op->mem = p->block[k];
        op->mem.bytes = op_room(w, p, k);
    }
    return place_ranges(p, err);
}

/* ---- results ------------------------------------------------------------ */

static bool is_complete(const zarr_store_op *op)
{
    if (op->status != ZARR_OK)
        return false;
    if (op->length == ZARR_STORE_TO_END)
        return op->object_bytes == UINT64_MAX || op->object_bytes <= op->done_bytes;
    return op->done_bytes == op->length;
}

/* Gives back the blocks of which no value came: workers fetch those again, each into its
 * scratch. */
static void give_failed(const struct zr_io *io, struct zr_prefetch *p)
{
    uint32_t first = 0; /* of a block */

    while (first < p->n) {
        const void *const block = p->block[first].handle;
        bool any = false;
        uint32_t k = first;

        do
            any = any || (is_complete(&p->op[k]) && p->op[k].mem.handle == block);
        while (++k < p->n && !p->block[k].handle);
        if (!any)
            zr_pool_give(io->engine->pool, &p->block[first]);
        first = k;
    }
}

/* Keeps the ranges of a chunk, which begin with operation k, if all came, of an object of
 * the right length. Returns how many they are. */
static uint32_t keep_ranges(struct zr_wave *w, struct zr_prefetch *p, uint32_t k)
{
    const uint32_t i = p->first[k];
    struct zr_segment *r = &w->segment[i];
    const uint64_t bytes = r->level->decode->decoded_bytes;
    bool good = true;
    uint32_t n = 0;

    do {
        const zarr_store_op *op = &p->op[k + n];

        good = good && is_complete(op) &&
               (r->shard || op->object_bytes == UINT64_MAX || op->object_bytes == bytes);
        n++;
    } while (k + n < p->n && is_further(p, k + n));
    if (good) {
        p->mem[i] = p->op[k].mem;
        p->mem[i].bytes = p->room[k];
    }
    if (p->op[k].status == ZARR_ERR_NOT_FOUND && !r->shard)
        r->bytes = ZR_ITEM_MISSING;
    return n;
}

static void keep_operation(struct zr_wave *w, struct zr_prefetch *p, uint32_t k)
{
    const zarr_store_op *op = &p->op[k];
    const bool good = is_complete(op);
    zarr_memory bytes = op->mem;

    bytes.bytes = op->done_bytes;
    for (uint32_t i = p->first[k]; good && i < p->first[k] + p->count[k]; i++) {
        const struct zr_segment *r = &w->segment[i];

        if (r->bytes == UINT64_MAX)
            p->mem[i] = bytes;
        else if (!zr_mem_slice(&bytes, r->offset - op->offset, r->bytes, &p->mem[i]))
            p->mem[i] = (zarr_memory){0};
    }
    if (op->status == ZARR_ERR_NOT_FOUND && op->length == ZARR_STORE_TO_END)
        w->segment[p->first[k]].bytes = ZR_ITEM_MISSING;
}

/* Keeps what was fetched completely. The store said of a whole object that it is missing:
 * no one asks again. Other segments are left to the worker, which handles every case. */
static void keep_results(const struct zr_io *io, struct zr_wave *w, struct zr_prefetch *p)
{
    uint32_t k = 0;

    while (k < p->n) {
        if (p->count[k] == 0) {
            k += keep_ranges(w, p, k);
            continue;
        }
        keep_operation(w, p, k++);
    }
    give_failed(io, p);
}

/* Points to the bytes of chunks in shards that are in memory already, because codecs
 * surround them, for chunks that are decoded together. Those of a wrong size are left to
 * the worker. */
static void point_to_buffers(const struct zr_io *io, const struct zr_wave *w,
                             struct zr_prefetch *p)
{
    for (uint32_t i = 0; i < w->n_segments; i++) {
        const struct zr_segment *r = &w->segment[i];
        const struct zr_program *prog = r->level->decode;
        bool good = !r->key && r->bytes < ZR_ITEM_MISSING && zr_is_batched(io, prog) &&
                    zr_io_is_host(io, prog->fetch_device);

        for (uint32_t k = 0; good && k < r->n_items; k++)
            good = r->item[k]->bytes <= zr_program_most(io, prog);
        if (good && !zr_mem_slice(&r->shard->buffer, r->offset, r->bytes, &p->mem[i]))
            p->mem[i] = (zarr_memory){0};
    }
}

static zarr_status prefetch_room(const struct zr_io *io, struct zr_wave *w,
                                 struct zr_prefetch *p, zarr_error *err)
{
    const size_t n_segments = (size_t)w->n_segments + 1;
    struct zr_ranges ranges;
    size_t n = 1, n_pins = 1;

    for (uint32_t i = 0; i < w->n_segments; i++) {
        n += count_ops(io, &w->segment[i], &ranges);
        n_pins += ranges.n_reads > 1;
    }
    if (n > UINT32_MAX / 2)
        return zr_fail_memory(err, n);
    p->op = zr_arena_alloc(&w->arena, n * sizeof *p->op);
    p->mem = zr_arena_alloc(&w->arena, n_segments * sizeof *p->mem);
    p->first = zr_arena_alloc(&w->arena, n * sizeof *p->first);
    p->count = zr_arena_alloc(&w->arena, n * sizeof *p->count);
    p->room = zr_arena_alloc(&w->arena, n * sizeof *p->room);
    p->pin = zr_arena_alloc(&w->arena, n_pins * sizeof *p->pin);
    p->block = zr_arena_alloc(&w->arena, n * sizeof *p->block);
    if (!p->op || !p->mem || !p->first || !p->count || !p->room || !p->pin || !p->block) {
        p->block = NULL;
        return zr_fail_memory(err, n * sizeof *p->op);
    }
    memset(p->mem, 0, n_segments * sizeof *p->mem);
    memset(p->block, 0, n * sizeof *p->block);
    return ZARR_OK;
}

zarr_status zr_prefetch_begin(const struct zr_io *io, struct zr_wave *w,
                              struct zr_prefetch *p, zarr_error *err)
{
    const zarr_status st = prefetch_room(io, w, p, err);

    if (st == ZARR_OK)
        make_ops(io, w, p);
    return st;
}

zarr_status zr_prefetch_run(const struct zr_io *io, struct zarr_request *rq,
                            struct zr_wave *w, struct zr_prefetch *p, zarr_error *err)
{
    ZR_CHECK(take_memory(io, w, p, err));
    if (zr_request_wave_begin(rq) != 0 && !zr_io_is_host(io, io->view.base.device_type))
        zr_log(io->engine->log, ZARR_LOG_TRACE,
               "%s: %" PRIu32 " ranges for a device; %" PRIu64
               " blocks of pinned memory are in use",
               *io->prefix ? io->prefix : "/", p->n,
               zr_pool_count_pinned(io->engine->pool));
    ZR_CHECK(zr_ops_run(io, rq, p->op, p->n, NULL, &w->arena, err));
    keep_results(io, w, p);
    point_to_buffers(io, w, p);
    return ZARR_OK;
}

void zr_prefetch_end(const struct zr_io *io, struct zr_prefetch *p)
{
    for (uint32_t k = 0; k < p->n; k++)
        zr_pool_give(io->engine->pool, &p->block[k]);
    for (uint32_t k = 0; k < p->n_pins; k++)
        zr_store_pin_deinit(&p->pin[k]);
}

uint64_t zr_wave_on_device(const struct zr_io *io, const struct zr_wave *w, uint64_t n)
{
    const struct zr_level *last = w->level;
    uint64_t most = zr_device_need(io, last, false, false, n);

    for (uint32_t i = 0; most > 0 && i < w->n_segments; i++) {
        if (w->segment[i].level == last)
            continue;
        last = w->segment[i].level;
        most = ZR_MAX(most, zr_device_need(io, last, false, false, n));
    }
    return most;
}

/* What a chunk has in host memory besides its encoded bytes: for a device, what stages
 * leave there. */
static uint64_t chunk_on_host(const struct zr_io *io, const struct zr_program *p,
                              bool batched)
{
    uint64_t sum = 0;

    if (!batched)
        return p->decoded_bytes;
    if (zr_io_is_host(io, io->view.base.device_type))
        return zr_mul_cap(p->decoded_bytes, 2);
    for (uint32_t i = 0; i < p->n; i++)
        if (zr_io_is_host(io, p->stage[i].out_device))
            sum = zr_add_cap(sum, ZR_MAX(p->stage[i].out_bytes, p->stage[i].in_bytes));
    return sum;
}

uint64_t zr_chunk_on_host(const struct zr_io *io, const struct zr_level *lv)
{
    const struct zr_program *p = lv->decode;
    const bool batched = zr_is_batched(io, p);
    uint64_t need = zr_add_cap(p->encoded_bound, chunk_on_host(io, p, batched));

    if (batched && !zr_io_is_host(io, io->view.base.device_type))
        need = zr_add_cap(need, zr_mul_cap(p->decoded_bytes, 2));
    return need;
}

static uint64_t wave_on_host(const struct zr_io *io, const struct zr_wave *w, uint64_t n,
                             bool batched)
{
    const uint64_t alone = ZR_MIN(n, (uint64_t)zr_io_threads(io));
    const struct zr_level *last = w->level;
    uint64_t most = chunk_on_host(io, last->decode, batched);
    uint64_t decoded = last->decode->decoded_bytes, need;

    for (uint32_t i = 0; i < w->n_segments; i++) {
        if (w->segment[i].level == last)
            continue;
        last = w->segment[i].level;
        most = ZR_MAX(most, chunk_on_host(io, last->decode, batched));
        decoded = ZR_MAX(decoded, last->decode->decoded_bytes);
    }
    need = zr_mul_cap(n, most);
    /* chunks that the device declines are done by the CPU */
    if (batched && !zr_io_is_host(io, io->view.base.device_type))
        need = zr_add_cap(need, zr_mul_cap(zr_mul_cap(decoded, 2), alone));
    for (uint32_t i = 0; i < w->n_segments; i++) {
        const struct zr_segment *r = &w->segment[i];

        if (r->bytes != ZR_ITEM_MISSING && r->key &&
            !zr_add(need,
                    r->bytes == UINT64_MAX ? r->level->decode->encoded_bound : r->bytes,
                    &need))
            return UINT64_MAX;
    }
    return need;
}

struct zr_need zr_prefetch_need(const struct zarr_request *rq, const struct zr_wave *w,
                                const struct zr_prefetch *p, bool batched)
{
    const uint64_t n =
        batched ? w->n_items : (uint64_t)ZR_MIN(zr_io_threads(&rq->io), w->n_segments);

    return (struct zr_need){.host =
                                zr_add_cap(wave_on_host(&rq->io, w, n, batched), p->gaps),
                            .device = zr_wave_on_device(&rq->io, w, n)};
}
