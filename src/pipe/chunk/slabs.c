/*
 * pipe/chunk/slabs.c - reads large uncompressed chunks in slabs of whole rows that fit a
 * core's cache: from the store into scratch, and from there to their destination.
 * Compared with reading the chunk at once, this saves one pass over memory, needs a
 * scratch of a quarter MiB instead of a chunk, and gives several threads work if a
 * request touches only one chunk. The object is pinned, so all slabs see one version. A
 * chunk that has the same layout in the caller's memory is read directly into it. But
 * kernels copy with `rep movsb`, which takes more than twice as long on some CPUs (Zen 3)
 * unless both sides are aligned alike, and NumPy's large arrays begin 16 bytes after a
 * page boundary. So memory that is not aligned is read into directly only on Intel's CPUs
 * with FSRM, where the way through scratch takes 1.4 times as long. Other CPUs were not
 * measured. Thread class: open, then zr_slabs_one() from any threads, then close.
 */
#include "pipe/chunk/chunk_int.h"

#include <string.h>

enum {
    SLAB_BYTES = 256 * 1024,
    /* a chunk with longer rows is not read in slabs */
    SLAB_MOST = 1024 * 1024,
    SLABS_LEAST = 2 * 1024 * 1024 /* smaller chunks fit the cache anyway */
};

/* Returns the slowest stored dimension with more than one row; -1 if there is none. */
static int32_t slab_dim(const struct zr_program *p)
{
    for (int32_t i = 0; i < p->ndim; i++)
        if (p->stored_shape[i] > 1)
            return i;
    return -1;
}

static uint64_t row_bytes(const struct zr_program *p, int32_t dim)
{
    uint64_t n = p->item_bytes;

    for (int32_t i = dim + 1; i < p->ndim; i++)
        n *= p->stored_shape[i]; /* no overflow: checked when the layout was made */
    return n;
}

static uint64_t slab_rows(uint64_t row)
{
    return ZR_MAX(SLAB_BYTES / row, UINT64_C(1));
}

bool zr_slabs_fit(const struct zr_io *io, const struct zr_segment *segment)
{
    const struct zr_program *p = segment->level->decode;
    const struct zr_target *t = &segment->item[0]->target;
    int32_t dim = -1;

    if (!p->raw || t->many || io->no_direct || p->decoded_bytes < SLABS_LEAST ||
        segment->n_items != 1 || segment->bytes != UINT64_MAX || segment->shard ||
        !segment->key || t->kind != ZR_PROJ_DIMS || !t->arithmetic ||
        t->n_items * 2 <= p->decoded_bytes / p->item_bytes ||
        !zr_device_is_host(io->engine->memory, p->fetch_device) ||
        !zr_device_is_host(io->engine->memory, zr_target_view(io, t)->base.device_type) ||
        !zr_store_can(io->store, ZARR_STORE_CAP_FAST_GET) ||
        !zr_store_can(io->store, ZARR_STORE_CAP_RANGES))
        return false;
    dim = slab_dim(p);
    return dim >= 0 && t->dim[p->order[dim]].c_step == 1 &&
           row_bytes(p, dim) <= SLAB_MOST;
}

/* Whether reading directly into the view is as fast as it can be. */
static bool direct(const struct zr_io *io, const struct zr_program *p,
                   const struct zr_target *t, zarr_memory *at)
{
    void *ptr = NULL;

    return p->fetch_device == zr_target_view(io, t)->base.device_type &&
           zr_target_is_direct(io, p, t, at) &&
           zr_mem_host_ptr(io->engine->memory, at, at->bytes, &ptr, NULL) == ZARR_OK &&
           (zr_cpu_features & ZR_CPU_FSRM || (uintptr_t)ptr % 64 == 0);
}

zarr_status zr_slabs_open(struct zr_slabs *s, const struct zr_io *io,
                          const struct zr_segment *segment, zarr_error *err)
{
    const struct zr_program *p = segment->level->decode;
    const struct zr_target *t = &segment->item[0]->target;

    memset(s, 0, sizeof *s);
    ZR_CHECK(zr_store_pin_init(&s->pin, io->store, segment->key, err));
    if (s->pin.object_bytes != p->decoded_bytes) {
        zr_store_pin_deinit(&s->pin);
        if (!zr_store_is_own(io->store)) /* it did not tell the length */
            return ZARR_OK;
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "chunk has %" PRIu64
                       " bytes where its shape and data type need %" PRIu64,
                       s->pin.object_bytes, p->decoded_bytes);
    }
    s->segment = segment;
    s->dim = slab_dim(p);
    s->row_bytes = row_bytes(p, s->dim);
    s->rows = slab_rows(s->row_bytes);
    s->n = (t->dim[p->order[s->dim]].n + s->rows - 1) / s->rows;
    s->direct = direct(io, p, t, &s->at);
    return ZARR_OK;
}

void zr_slabs_close(struct zr_slabs *s)
{
    zr_store_pin_deinit(&s->pin);
}

/* Copies rows first .. first + n of the target, which begin at the start of block. */
static zarr_status slab_scatter(const struct zr_work *w, const struct zr_slabs *s,
                                uint64_t first, uint64_t n, const zarr_memory *block,
                                zarr_error *err)
{
    const struct zr_program *p = s->segment->level->decode;
    struct zr_target t = s->segment->item[0]->target;
    struct zr_piece piece[ZARR_MAX_RANK];
    struct zr_piece *rows = &piece[p->order[s->dim]];

    memcpy(piece, t.dim, (size_t)t.ndim * sizeof *piece);
    t.n_items = t.n_items / rows->n * n;
    rows->r0 = (uint64_t)((int64_t)rows->r0 + (int64_t)first * rows->r_step);
    rows->c0 = 0;
    rows->n = n;
    t.dim = piece;
    return zr_scatter_target(w, p, &t, block, err);
}

zarr_status zr_slabs_one(const struct zr_work *w, struct zr_slabs *s, uint64_t i,
                         zarr_error *err)
{
    const struct zr_program *p = s->segment->level->decode;
    const struct zr_target *t = &s->segment->item[0]->target;
    const struct zr_piece *all = &t->dim[p->order[s->dim]];
    const uint64_t first = i * s->rows, n = ZR_MIN(s->rows, all->n - first);
    const uint64_t bytes = n * s->row_bytes;
    struct zr_get g = {.key = s->segment->key,
                       .pin = &s->pin,
                       .offset = (all->c0 + first) * s->row_bytes,
                       .known = "chunk",
                       .counted = true};

    if (i == 0) { /* one chunk, counted once for all its slabs */
        w->worker->stats.store_gets++;
        zr_item_count(w, s->segment->item[0], s->direct);
    }
    if (!s->direct)
        ZR_CHECK(zr_worker_scratch(w, ZR_SCRATCH_A, ZARR_DEVICE_CPU, bytes, &g.dst, err));
    else if (!zr_mem_slice(&s->at, g.offset, bytes, &g.dst))
        ZR_CHECK(zr_internal(err));
    ZR_CHECK(zr_get(w, &g, err));
    w->worker->stats.bytes_decoded += bytes;
    ZR_CHECK(zr_block_unpad(w, p, &g.dst, err));
    if (!s->direct)
        ZR_CHECK(slab_scatter(w, s, first, n, &g.dst, err));
    return ZARR_OK;
}

static bool slabs_apply(const struct zr_work *w, struct zr_direct *d)
{
    const struct zr_program *p = d->segment->level->decode;
    uint64_t row = 0;

    if (d->fetched || !zr_slabs_fit(w->io, d->segment))
        return false;
    row = row_bytes(p, slab_dim(p));
    d->bytes = slab_rows(row) * row;
    return true;
}

static zarr_status slabs_read(const struct zr_work *w, struct zr_direct *d, bool *done,
                              zarr_error *err)
{
    struct zr_slabs s;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_slabs_open(&s, w->io, d->segment, err));
    for (uint64_t i = 0; i < s.n; i++)
        ZR_TRY(zr_slabs_one(w, &s, i, err));
    *done = s.n > 0;
out:
    zr_slabs_close(&s);
    return st;
}

const struct zr_direct_route zr_route_slabs = {false, slabs_apply, slabs_read};
