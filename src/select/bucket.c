/*
 * select/bucket.c - coordinates sorted into chunks, once. The key of a tuple is its
 * chunk: one number if the chunks can be numbered, else the tuple of chunk coordinates.
 * The keys are sorted stably, and equal keys form a run. A bucket of rank 1 serves a list
 * dimension, one of the array's rank serves points. Memory depends on the coordinates
 * given, not on the grid. A run is `whole` if it names every existing element of its
 * chunk once: the count must be right, and a bitmap of the chunk shows that no element
 * comes twice.
 * Thread class: solo while filled, then frozen.
 */
#include "select/select_int.h"

#include <string.h>

void zr_bucket_deinit(struct zr_bucket *b, const zarr_allocator *alloc)
{
    zr_nums_deinit(&b->c, alloc);
    zr_nums_deinit(&b->r, alloc);
    zr_nums_deinit(&b->start, alloc);
    zr_nums_deinit(&b->chunk, alloc);
    zr_nums_deinit(&b->whole, alloc);
    b->n_runs = 0;
}

static uint64_t coord_at(const struct zr_coords *in, uint64_t i, int32_t d)
{
    int32_t col = in->order ? in->order[d] : d;

    return in->at[i * (uint64_t)in->rank + (uint64_t)col];
}

/* Counts the chunks along each dimension. False: the count of all does not fit 64 bits,
 * so chunks cannot be numbered. */
static bool count_chunks(const struct zr_axis *axes, int32_t rank, uint64_t *n)
{
    uint64_t all = 1;

    for (int32_t d = 0; d < rank; d++) {
        n[d] = axes[d].edge ? zr_ceil_div_u64(axes[d].extent, axes[d].edge)
                            : zr_grid_n_chunks(axes[d].grid, axes[d].dim);
        if (!zr_mul(all, n[d], &all))
            return false;
    }
    return true;
}

/* Computes the keys of all tuples in s->keys. *words: numbers per key. */
static zarr_status bucket_keys(struct zr_sorter *s, const struct zr_axis *axes,
                               const struct zr_coords *in, size_t *words, zarr_error *err)
{
    uint64_t n_chunks[ZARR_MAX_RANK];
    const bool numbered = count_chunks(axes, in->rank, n_chunks);
    uint64_t *key;

    *words = numbered ? 1 : (size_t)in->rank;
    ZR_CHECK(zr_nums_need(&s->keys, s->alloc, in->n, *words, err));
    key = s->keys.ptr;
    for (uint64_t i = 0; i < in->n; i++, key += *words) {
        key[0] = 0;
        for (int32_t d = 0; d < in->rank; d++) {
            uint64_t at = coord_at(in, i, d);
            const struct zr_axis *x = &axes[d];
            uint64_t chunk = x->edge ? at / x->edge : zr_grid_locate(x->grid, x->dim, at);
            if (numbered)
                key[0] = key[0] * n_chunks[d] + chunk;
            else
                key[d] = chunk;
        }
    }
    return ZARR_OK;
}

/* Whether the i-th and j-th item in order are in one chunk. */
static bool same_chunk(const struct zr_sorter *s, uint64_t i, uint64_t j, size_t words)
{
    const uint64_t *a = s->keys.ptr + zr_sorter_item(s, i) * words;
    const uint64_t *b = s->keys.ptr + zr_sorter_item(s, j) * words;

    return zr_keys_compare(a, b, words) == 0;
}

static uint64_t count_runs(const struct zr_sorter *s, uint64_t n, size_t words)
{
    uint64_t runs = n > 0;

    for (uint64_t i = 1; i < n; i++)
        runs += !same_chunk(s, i - 1, i, words);
    return runs;
}

/* A run while it is made: the place of its chunk, and its tuples inside it. */
struct run {
    int32_t rank;
    uint64_t n;
    const uint64_t *c;
    uint64_t origin[ZARR_MAX_RANK], valid[ZARR_MAX_RANK];
};

/* Sets origin, valid and the chunk coordinates from the first tuple of a run. */
static void run_locate(struct run *r, const struct zr_axis *axes,
                       const struct zr_coords *in, uint64_t i, uint64_t *chunk)
{
    for (int32_t d = 0; d < r->rank; d++) {
        uint64_t size = 0;
        zr_axis_cut(&axes[d], coord_at(in, i, d), &chunk[d], &r->origin[d], &size);
        r->valid[d] = zr_axis_valid(&axes[d], r->origin[d], size);
    }
}

/* Marks every tuple in a bitmap of the chunk. True if no tuple was marked before. */
static bool run_is_distinct(const struct run *r, uint64_t *bits)
{
    const uint64_t *c = r->c;

    memset(bits, 0, (size_t)(r->n / 64 + 1) * sizeof *bits);
    for (uint64_t i = 0; i < r->n; i++, c += r->rank) {
        uint64_t flat = 0;
        for (int32_t d = 0; d < r->rank; d++) {
            if (c[d] >= r->valid[d])
                return false;
            flat = flat * r->valid[d] + c[d];
        }
        if (bits[flat / 64] >> flat % 64 & 1)
            return false;
        bits[flat / 64] |= (uint64_t)1 << flat % 64;
    }
    return true;
}

static zarr_status run_is_whole(const struct run *r, struct zr_sorter *s, uint64_t *whole,
                                zarr_error *err)
{
    uint64_t all = 1;

    *whole = 0;
    for (int32_t d = 0; d < r->rank; d++)
        all = zr_mul_cap(all, r->valid[d]);
    if (all != r->n)
        return ZARR_OK;
    ZR_CHECK(zr_nums_need(&s->bits, s->alloc, r->n / 64 + 1, 1, err));
    *whole = run_is_distinct(r, s->bits.ptr);
    return ZARR_OK;
}

/* Copies items [from, to) of the order into the bucket as one run. */
static zarr_status bucket_add_run(struct zr_bucket *b, struct zr_sorter *s,
                                  const struct zr_axis *axes, const struct zr_coords *in,
                                  uint64_t from, uint64_t to, zarr_error *err)
{
    uint64_t rank = (uint64_t)in->rank, k = b->n_runs;
    struct run r = {.rank = in->rank, .n = to - from, .c = b->c.ptr + from * rank};

    run_locate(&r, axes, in, zr_sorter_item(s, from), b->chunk.ptr + k * rank);
    for (uint64_t i = from; i < to; i++) {
        uint64_t item = zr_sorter_item(s, i);
        uint64_t *c = b->c.ptr + i * rank;
        for (int32_t d = 0; d < in->rank; d++)
            c[d] = coord_at(in, item, d) - r.origin[d];
        b->r.ptr[i] = in->result ? in->result[item] : item;
    }
    b->start.ptr[k] = from;
    b->start.ptr[k + 1] = to;
    b->n_runs = k + 1;
    return run_is_whole(&r, s, &b->whole.ptr[k], err);
}

static zarr_status bucket_alloc(struct zr_bucket *b, const zarr_allocator *alloc,
                                uint64_t n, uint64_t rank, uint64_t runs, zarr_error *err)
{
    /* Never 0 items: rank 0 has no coordinates, but its pointers need a block. */
    ZR_CHECK(zr_nums_need(&b->c, alloc, ZR_MAX(n, 1), ZR_MAX(rank, 1), err));
    ZR_CHECK(zr_nums_need(&b->r, alloc, ZR_MAX(n, 1), 1, err));
    ZR_CHECK(zr_nums_need(&b->start, alloc, runs + 1, 1, err));
    ZR_CHECK(zr_nums_need(&b->chunk, alloc, ZR_MAX(runs, 1), ZR_MAX(rank, 1), err));
    return zr_nums_need(&b->whole, alloc, ZR_MAX(runs, 1), 1, err);
}

zarr_status zr_bucket_fill(struct zr_bucket *b, struct zr_sorter *s,
                           const struct zr_axis *axes, const struct zr_coords *in,
                           zarr_error *err)
{
    size_t words = 0;
    uint64_t from = 0;

    b->n_runs = 0;
    s->has_sorted = true;
    ZR_CHECK(bucket_keys(s, axes, in, &words, err));
    ZR_CHECK(zr_sorter_sort(s, in->n, words, err));
    ZR_CHECK(bucket_alloc(b, s->alloc, in->n, (uint64_t)in->rank,
                          count_runs(s, in->n, words), err));
    for (uint64_t i = 1; i <= in->n; i++) {
        if (i < in->n && same_chunk(s, i - 1, i, words))
            continue;
        ZR_CHECK(bucket_add_run(b, s, axes, in, from, i, err));
        from = i;
    }
    return ZARR_OK;
}
