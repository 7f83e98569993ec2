/*
 * check/summary_results.c - quantiles and histograms, and what the caller of
 * zarr_array_summary() gets: each place from its cell, or with weights from its cells.
 *
 * Types of up to 16 bits have a counter for each value. Other elements are collected as
 * doubles. If there is no room for all, they go to a sketch (Munro and Paterson 1980): a
 * full level is sorted, and each second number moves to the next level. This changes the
 * rank of a number by at most 2^h, once in LEVEL_VALUES * 2^h elements. So with 52 levels
 * ranks err by at most 52 / LEVEL_VALUES = 0.64 % of all elements.
 * Thread class: solo.
 */
#include "check/summary_int.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEVEL_VALUES = 8192
};

/* Also of struct zr_summary_weighted, which begins with its value. */
static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* ---- elements that are added -------------------------------------------------- */

static size_t n_patterns(const struct zr_summary_spread *p)
{
    return (size_t)1 << (8 * p->type->item_bytes);
}

static zarr_status make_sketch_level(struct zr_summary_spread *p, size_t h, size_t n,
                                     zarr_error *err)
{
    if (!p->level[h].value)
        p->level[h].value = zr_calloc(p->alloc, n, sizeof(double));
    return p->level[h].value ? ZARR_OK : zr_fail_memory(err, n * sizeof(double));
}

static zarr_status make_bins(struct zr_summary_spread *p, zarr_error *err)
{
    p->bins = zr_calloc(p->alloc, (size_t)p->n_bins, sizeof *p->bins);
    return p->bins ? ZARR_OK : zr_fail_memory(err, p->n_bins * sizeof *p->bins);
}

zarr_status zr_summary_spread_init(struct zr_summary_spread *p, uint64_t n_items,
                                   uint64_t most_bytes, zarr_error *err)
{
    if (p->type->item_bytes <= 2) {
        p->counts = zr_calloc(p->alloc, n_patterns(p), sizeof *p->counts);
        return p->counts ? ZARR_OK : zr_fail_memory(err, sizeof(uint64_t) << 16);
    }
    if (p->edges) {
        zarr_status st = make_bins(p, err);

        if (st != ZARR_OK || !p->is_collecting)
            return st;
    }
    p->is_sketch = zr_mul_cap(n_items, sizeof(double)) > most_bytes;
    p->most = p->is_sketch ? LEVEL_VALUES : (size_t)ZR_MAX(n_items, 1);
    return make_sketch_level(p, 0, p->most, err);
}

void zr_summary_spread_deinit(struct zr_summary_spread *p)
{
    for (size_t h = 0; h < ZR_SUMMARY_LEVELS; h++)
        zr_free(p->alloc, p->level[h].value);
    zr_free(p->alloc, p->list);
    zr_free(p->alloc, p->bins);
    zr_free(p->alloc, p->counts);
}

/* Level 0 is full: moves half of its numbers up, and so on. */
static zarr_status move_up(struct zr_summary_spread *p, zarr_error *err)
{
    for (size_t h = 0; p->level[h].n == LEVEL_VALUES; h++) {
        double *from = p->level[h].value, *to;

        if (h + 1 == ZR_SUMMARY_LEVELS)
            return zr_fail_limit(err, "memory_bytes", p->most,
                                 "there are too many elements");
        ZR_CHECK(make_sketch_level(p, h + 1, LEVEL_VALUES, err));
        qsort(from, LEVEL_VALUES, sizeof *from, compare_values);
        to = p->level[h + 1].value;
        for (size_t i = p->level[h].is_odd; i < LEVEL_VALUES; i += 2)
            to[p->level[h + 1].n++] = from[i];
        p->level[h].is_odd = !p->level[h].is_odd;
        p->level[h].n = 0;
    }
    return ZARR_OK;
}

static void count_bins(struct zr_summary_spread *p, double v, uint64_t times)
{
    uint64_t low = 0, high = p->n_bins;

    if (v < p->edges[0] || v > p->edges[p->n_bins]) {
        *(v < p->edges[0] ? &p->below : &p->above) += times;
        return;
    }
    while (low + 1 < high) {
        const uint64_t mid = low + (high - low) / 2;

        if (v < p->edges[mid])
            high = mid;
        else
            low = mid;
    }
    p->bins[low] += times;
}

zarr_status zr_summary_spread_add(struct zr_summary_spread *p, const uint8_t *src,
                                  uint64_t n, zarr_error *err)
{
    double x[ZR_BLOCK];

    for (uint64_t i = 0; p->counts && i < n; i++)
        p->counts[p->type->item_bytes == 1 ? src[i]
                                           : ((const uint16_t *)(const void *)src)[i]]++;
    for (uint64_t now; !p->counts && n > 0; n -= now, src += now * p->type->item_bytes) {
        size_t kept;

        now = ZR_MIN(n, (uint64_t)ZR_BLOCK);
        kept = zr_summary_load_doubles(p->type, x, src, (size_t)now);
        for (size_t i = 0; i < kept; i++) {
            if (p->bins)
                count_bins(p, x[i], 1);
            if (p->is_collecting)
                p->level[0].value[p->level[0].n++] = x[i];
            if (p->is_sketch && p->level[0].n == p->most)
                ZR_CHECK(move_up(p, err));
        }
    }
    return ZARR_OK;
}

/* ---- quantiles and histograms ------------------------------------------------- */

static void add_weighted(struct zr_summary_spread *p, double value, uint64_t weight)
{
    p->list[p->n_list++] = (struct zr_summary_weighted){value, weight};
}

/* Sorts what was added, for the functions that follow. */
static zarr_status make_list(struct zr_summary_spread *p, zarr_error *err)
{
    size_t n = p->counts ? n_patterns(p) : 0;

    for (size_t h = 0; h < ZR_SUMMARY_LEVELS; h++)
        n += p->level[h].n;
    p->n_list = n;
    if (!p->counts && !p->is_sketch) {
        if (n > 0)
            qsort(p->level[0].value, n, sizeof(double), compare_values);
        return ZARR_OK;
    }
    p->list = zr_calloc(p->alloc, n, sizeof *p->list);
    if (!p->list)
        return zr_fail_memory(err, zr_mul_cap(n, sizeof *p->list));
    p->n_list = 0;
    for (size_t i = 0; p->counts && i < n; i++) {
        const uint16_t pattern = (uint16_t)i;
        const uint8_t byte = (uint8_t)i;
        const void *element = p->type->item_bytes == 1 ? (const void *)&byte : &pattern;
        double v;

        if (p->counts[i] > 0 && zr_summary_load_doubles(p->type, &v, element, 1) > 0)
            add_weighted(p, v, p->counts[i]);
    }
    for (size_t h = 0; h < ZR_SUMMARY_LEVELS; h++)
        for (size_t i = 0; i < p->level[h].n; i++)
            add_weighted(p, p->level[h].value[i], UINT64_C(1) << h);
    qsort(p->list, p->n_list, sizeof *p->list, compare_values);
    return ZARR_OK;
}

static struct zr_summary_weighted weighted_item(const struct zr_summary_spread *p,
                                                size_t i)
{
    return p->list ? p->list[i] : (struct zr_summary_weighted){p->level[0].value[i], 1};
}

/* The two elements with the ranks `rank` and `rank` + 1. */
static void find_rank(const struct zr_summary_spread *p, uint64_t rank, double *a,
                      double *b)
{
    size_t i = p->list ? 0 : (size_t)rank;
    uint64_t end = p->list ? weighted_item(p, 0).weight : rank + 1;

    while (i + 1 < p->n_list && end <= rank)
        end += weighted_item(p, ++i).weight;
    *a = weighted_item(p, i).value;
    *b = i + 1 < p->n_list && end <= rank + 1 ? weighted_item(p, i + 1).value : *a;
}

/* As NumPy does it, so that both round equally. n: the number of elements. */
static double find_quantile(const struct zr_summary_spread *p, double q, uint64_t n)
{
    double place, part, a, b;

    if (n == 0 || p->n_list == 0)
        return (double)NAN;
    place = q * (double)(n - 1);
    part = place - floor(place);
    find_rank(p, ZR_MIN((uint64_t)place, n - 1), &a, &b);
    if (a == b || part == 0) /* infinities have no distance */
        return a;
    return part >= 0.5 ? b - (b - a) * (1 - part) : a + (b - a) * part;
}

/* Edges of equal bins between the extremes, as numpy.histogram() makes them. */
static zarr_status make_edges(const struct zr_summary_type *t,
                              const struct zr_summary_cell *all, double *edges,
                              uint32_t n, zarr_error *err)
{
    double low = all->n > 0 ? zr_summary_double(t, &all->min) : 0;
    double high = all->n > 0 ? zr_summary_double(t, &all->max) : 1;

    if (!isfinite(high - low))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "elements reach from %g to %g: a histogram needs edges", low,
                       high);
    if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    for (uint32_t i = 0; i < n; i++)
        edges[i] = low + (double)i * ((high - low) / (double)n);
    edges[n] = high;
    return ZARR_OK;
}

/* ---- results ------------------------------------------------------------------ */

struct results {
    zarr_summary s;
    zarr_context *ctx;
    struct zr_arena arena;
    int32_t dims[ZARR_MAX_RANK];
    uint64_t shape[ZARR_MAX_RANK];
    /* the members of `s` of the same names */
    uint64_t *count, *n_missing, *n_nan, *sum_low, *bins;
    int64_t *sum_high;
    double *sum, *mean, *std, *weight, *edges, *quantiles;
    uint8_t *min, *max;
    bool lacks_memory;
};

void zarr_summary_free(zarr_summary *summary)
{
    struct results *r = (struct results *)(void *)summary;
    zarr_context *ctx;

    if (!r)
        return;
    ctx = r->ctx;
    zr_arena_deinit(&r->arena);
    zr_free(ctx->alloc, r);
    zarr_context_free(ctx);
}

static void *make_zeros(struct results *r, uint64_t n, size_t bytes)
{
    uint64_t all = 0;
    size_t fits = 0;
    void *list = NULL;

    if (zr_mul(ZR_MAX(n, 1), bytes, &all) && zr_fits(all, &fits))
        list = zr_arena_alloc(&r->arena, fits);
    if (list)
        memset(list, 0, fits);
    else
        r->lacks_memory = true;
    return list;
}

#define MAKE(name, n) r->s.name = r->name = make_zeros(r, n, sizeof *r->name)

static zarr_status make_members(struct results *r, const struct zr_summary_job *j,
                                zarr_error *err)
{
    const uint64_t n = r->s.n_places, bytes = zr_mul_cap(n, j->type.number.bytes);

    MAKE(count, n);
    MAKE(n_missing, n);
    MAKE(n_nan, n);
    MAKE(min, bytes);
    MAKE(max, bytes);
    MAKE(sum, n);
    MAKE(mean, n);
    MAKE(std, n);
    if (j->opts.weights) {
        MAKE(weight, n);
    } else if (j->type.is_whole && !j->type.is_time) {
        MAKE(sum_high, n);
        MAKE(sum_low, n);
    }
    r->s.n_bins = j->opts.n_bins;
    if (r->s.n_bins > 0) {
        MAKE(edges, (uint64_t)r->s.n_bins + 1);
        MAKE(bins, r->s.n_bins);
    }
    if (j->opts.n_quantiles > 0)
        MAKE(quantiles, j->opts.n_quantiles);
    return r->lacks_memory ? zr_fail_memory(err, UINT64_MAX) : ZARR_OK;
}

/* Weighted sums of cells. */
struct weighing {
    double weight_hi, weight_lo, sum_hi, sum_lo, mean, squares;
};

static void weigh(struct weighing *w, const struct zr_summary_type *t,
                  const struct zr_summary_cell *c, double weight)
{
    double hi, lo, product, n, by, rest, before = w->weight_hi;

    if (c->n == 0 || weight == 0)
        return;
    zr_summary_sum(t, c, &hi, &lo);
    product = hi * weight;
    zr_summary_add_pair(&w->sum_hi, &w->sum_lo, product,
                        isfinite(product) ? fma(hi, weight, -product) + lo * weight : 0);
    n = weight * (double)c->n;
    zr_summary_add_pair(&w->weight_hi, &w->weight_lo, n, fma(weight, (double)c->n, -n));
    by = zr_summary_mean(t, c, &rest) - w->mean;
    w->mean += by * (n / w->weight_hi);
    w->squares += c->squares * weight + by * by * before * (n / w->weight_hi);
}

/* Stores an extreme as the array has it. */
static void encode(const struct zr_summary_type *t, const union zr_summary_value *v,
                   uint8_t *list, uint64_t place)
{
    uint64_t bits;

    if (t->is_wide)
        bits = (uint64_t)v->integer ^ t->flip;
    else if (!t->number.real)
        bits = (uint64_t)(int64_t)v->real;
    else
        (void)zr_float_from_f64(t->number.real, v->real, &bits); /* exact */
    zr_number_put(&t->number, list + place * t->number.bytes, bits);
}

/* The statistics of place p; `cells` are those of its weights, or one. */
static void finish_place(struct results *r, const struct zr_summary_job *j, uint64_t p,
                         const struct zr_summary_cell *cells)
{
    const zarr_summary_options *o = &j->opts;
    const uint64_t n = o->weights ? o->n_weights : 1;
    const uint64_t stride = o->weights ? j->cell_stride[o->weights_dim] : 0;
    struct zr_summary_cell all = {.n = 0};
    struct weighing w = {.mean = 0};
    double rest;

    for (uint64_t i = 0; i < n; i++) {
        zr_summary_join(&j->type, &all, cells + i * stride);
        if (o->weights)
            weigh(&w, &j->type, cells + i * stride, o->weights[i]);
    }
    r->count[p] = all.n;
    r->n_missing[p] = all.n_missing;
    r->n_nan[p] = all.n_nan;
    if (all.n > 0) {
        encode(&j->type, &all.min, r->min, p);
        encode(&j->type, &all.max, r->max, p);
    }
    if (!o->weights) {
        zr_summary_sum(&j->type, &all, &w.sum_hi, &w.sum_lo);
        w.weight_hi = (double)all.n;
        w.squares = all.squares;
    } else {
        r->weight[p] = w.weight_hi;
    }
    r->sum[p] = j->type.is_time ? (double)NAN : w.sum_hi;
    r->mean[p] = zr_summary_divide_pair(w.sum_hi, w.sum_lo, w.weight_hi, &rest);
    r->std[p] = sqrt(w.squares / w.weight_hi);
    if (j->type.is_time)
        r->mean[p] = r->std[p] = (double)NAN;
    if (r->sum_high) {
        r->sum_low[p] = (uint64_t)all.sum.integer;
        r->sum_high[p] = (int64_t)((all.sum.integer - (zr_int128)r->sum_low[p]) /
                                   ((zr_int128)1 << 64));
    }
}

static void finish_places(struct results *r, const struct zr_summary_job *j)
{
    for (uint64_t p = 0; p < r->s.n_places; p++) {
        uint64_t rest = p, at = 0;

        for (int32_t i = r->s.ndim - 1; i >= 0; i--) {
            at += rest % r->shape[i] * j->cell_stride[r->dims[i]];
            rest /= r->shape[i];
        }
        finish_place(r, j, p, j->cells + at);
    }
}

static zarr_status finish_spread(struct results *r, struct zr_summary_job *j,
                                 zarr_error *err)
{
    struct zr_summary_spread *p = &j->spread;
    struct zr_summary_cell all = {.n = 0};

    if (!p->type)
        return ZARR_OK;
    for (uint64_t i = 0; i < j->n_cells; i++) /* one, or one for each weight */
        zr_summary_join(&j->type, &all, j->cells + i);
    ZR_CHECK(make_list(p, err));
    for (uint32_t i = 0; i < j->opts.n_quantiles; i++)
        r->quantiles[i] = find_quantile(p, j->opts.quantiles[i], all.n);
    if (p->edges)
        memcpy(r->edges, p->edges, ((size_t)p->n_bins + 1) * sizeof *r->edges);
    else if (p->n_bins > 0)
        ZR_CHECK(make_edges(&j->type, &all, r->edges, r->s.n_bins, err));
    if (p->n_bins > 0 && !p->bins) {
        p->edges = r->edges;
        ZR_CHECK(make_bins(p, err));
        for (size_t i = 0; i < p->n_list; i++)
            count_bins(p, weighted_item(p, i).value, weighted_item(p, i).weight);
    }
    if (p->bins)
        memcpy(r->bins, p->bins, (size_t)p->n_bins * sizeof *r->bins);
    r->s.n_below = p->below;
    r->s.n_above = p->above;
    r->s.flags = p->is_sketch ? ZARR_SUMMARY_SKETCH : 0;
    return ZARR_OK;
}

zarr_status zr_summary_make_results(zarr_summary **out, struct zr_summary_job *j,
                                    zarr_error *err)
{
    struct results *r = zr_calloc(j->ctx->alloc, 1, sizeof *r);
    zarr_status st = ZARR_OK;

    if (!r)
        return zr_fail_memory(err, sizeof *r);
    zr_arena_init(&r->arena, j->ctx->alloc);
    r->ctx = zarr_context_ref(j->ctx);
    r->s.struct_size = sizeof r->s;
    r->s.dtype = j->type.dtype;
    r->s.n_places = 1;
    for (int32_t d = 0; d < j->ndim; d++)
        if (!zr_summary_is_over(j, d)) {
            r->dims[r->s.ndim] = d;
            r->shape[r->s.ndim++] = j->shape[d];
            r->s.n_places = zr_mul_cap(r->s.n_places, j->shape[d]);
        }
    r->s.shape = r->shape;
    r->s.dims = r->dims;
    ZR_TRY(make_members(r, j, err));
    finish_places(r, j);
    ZR_TRY(finish_spread(r, j, err));
    *out = &r->s;
    r = NULL; /* moved */
out:
    zarr_summary_free(r ? &r->s : NULL);
    return st;
}
