/*
 * check/summary_results.c - quantiles and histograms, and what the caller of
 * zarr_array_summary() gets: each place from its cell, or with weights from its cells.
 *
 * Types of up to 16 bits have a counter for each value. Other elements are collected as
 * doubles, all of them if there is room. Else they go to a sketch (Munro and Paterson
 * 1980): sorted buffers of SKETCH_VALUES numbers. Two of one level become one of the next
 * level, which keeps each second number, so a number of level h stands in the place of
 * 2^h elements. Each level errs in the rank of a number by at most 1 / (2 *
 * SKETCH_VALUES) of all elements: with 64 levels that is 0.8 %. Thread class: solo.
 */
#include "check/summary_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SKETCH_VALUES = 4096
};

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int compare_weighted(const void *a, const void *b)
{
    const struct zr_summary_weighted *x = a, *y = b;

    return (x->value > y->value) - (x->value < y->value);
}

zarr_status zr_summary_spread_init(struct zr_summary_spread *p,
                                   const struct zr_summary_type *t, uint64_t n_items,
                                   uint64_t most_bytes, const zarr_allocator *alloc,
                                   zarr_error *err)
{
    p->type = t;
    p->alloc = alloc;
    if (zr_summary_is_counted(t)) {
        p->counts = zr_calloc(alloc, (size_t)1 << (8 * t->item_bytes), sizeof *p->counts);
        return p->counts ? ZARR_OK : zr_fail_memory(err, sizeof(uint64_t) << 16);
    }
    if (!p->is_collecting)
        return ZARR_OK;
    p->is_sketch = zr_mul_cap(n_items, sizeof(double)) > most_bytes;
    p->cap = p->is_sketch ? SKETCH_VALUES : (size_t)ZR_MAX(n_items, 1);
    p->level[0] = zr_calloc(alloc, p->cap, sizeof(double));
    return p->level[0] ? ZARR_OK : zr_fail_memory(err, p->cap * sizeof(double));
}

void zr_summary_spread_deinit(struct zr_summary_spread *p)
{
    for (size_t i = 0; i < ZR_COUNT(p->level); i++)
        zr_free(p->alloc, p->level[i]);
    zr_free(p->alloc, p->weighted);
    zr_free(p->alloc, p->counts);
}

/* ---- the sketch --------------------------------------------------------------- */

/* Merges two sorted buffers into `out`, and keeps each second number: of each pair the
 * first, or the second if `odd` is 1. */
static void merge_halves(double *out, const double *a, const double *b, size_t odd)
{
    size_t i = 0, k = 0;

    for (size_t n = 0; n < (size_t)2 * SKETCH_VALUES; n++) {
        const bool first = k == SKETCH_VALUES || (i < SKETCH_VALUES && a[i] <= b[k]);
        const double v = first ? a[i++] : b[k++];

        if (n % 2 == odd)
            out[n / 2] = v;
    }
}

/* Level 0 is full: moves its numbers to a level that is empty. */
static zarr_status carry(struct zr_summary_spread *p, zarr_error *err)
{
    double *full = p->level[0], *spare = NULL;
    size_t h = 1;

    qsort(full, SKETCH_VALUES, sizeof *full, compare_doubles);
    for (; h < ZR_COUNT(p->level) && p->has_level[h]; h++)
        ;
    spare = zr_calloc(p->alloc, SKETCH_VALUES, sizeof *spare);
    if (!spare || h == ZR_COUNT(p->level)) {
        zr_free(p->alloc, spare);
        return zr_fail_memory(err, SKETCH_VALUES * sizeof *spare);
    }
    /* level[1] holds numbers of weight 1 */
    for (size_t i = 1; i < h; i++) {
        merge_halves(spare, full, p->level[i], p->odd[i]);
        p->odd[i] ^= 1;
        p->has_level[i] = false;
        memcpy(full, spare, SKETCH_VALUES * sizeof *full);
    }
    zr_free(p->alloc, p->level[h]);
    memcpy(spare, full, SKETCH_VALUES * sizeof *spare);
    p->level[h] = spare;
    p->has_level[h] = true;
    p->n_first = 0;
    return ZARR_OK;
}

static void count_patterns(struct zr_summary_spread *p, const uint8_t *src, size_t n)
{
    const uint16_t *x = (const uint16_t *)(const void *)src;

    if (p->type->item_bytes == 1)
        for (size_t i = 0; i < n; i++)
            p->counts[src[i]]++;
    else
        for (size_t i = 0; i < n; i++)
            p->counts[x[i]]++;
}

static void count_bins(struct zr_summary_bins *b, double v, uint64_t times)
{
    size_t low = 0, high = b->n;

    if (v < b->edges[0] || v > b->edges[b->n]) {
        *(v < b->edges[0] ? &b->below : &b->above) += times;
        return;
    }
    while (low + 1 < high) {
        const size_t mid = low + (high - low) / 2;

        if (v < b->edges[mid])
            high = mid;
        else
            low = mid;
    }
    b->count[low] += times;
}

zarr_status zr_summary_spread_add(struct zr_summary_spread *p,
                                  struct zr_summary_scratch *s, const uint8_t *src,
                                  size_t n, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (p->counts) {
        count_patterns(p, src, n);
        return ZARR_OK;
    }
    while (n > 0 && st == ZARR_OK) {
        const size_t now = ZR_MIN(n, (size_t)ZR_SUMMARY_RUN);
        const size_t kept = zr_summary_load_doubles(p->type, s, src, now);

        for (size_t i = 0; i < kept && st == ZARR_OK; i++) {
            if (p->edges.count)
                count_bins(&p->edges, s->run[i].real, 1);
            if (p->is_collecting)
                p->level[0][p->n_first++] = s->run[i].real;
            if (p->is_sketch && p->n_first == SKETCH_VALUES)
                st = carry(p, err);
        }
        src += now * p->type->item_bytes;
        n -= now;
    }
    return st;
}

/* ---- results ------------------------------------------------------------------ */

static void list_counts(struct zr_summary_spread *p, struct zr_summary_scratch *s)
{
    const size_t n = (size_t)1 << (8 * p->type->item_bytes);

    for (size_t i = 0; i < n; i++) {
        const uint16_t pattern = (uint16_t)i;
        const uint8_t byte = (uint8_t)i;

        if (p->counts[i] > 0 &&
            zr_summary_load_doubles(p->type, s,
                                    n == 256 ? &byte : (const uint8_t *)&pattern, 1) > 0)
            p->weighted[p->n_weighted++] =
                (struct zr_summary_weighted){s->run[0].real, p->counts[i]};
    }
}

static void list_level(struct zr_summary_spread *p, size_t h, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p->weighted[p->n_weighted++] = (struct zr_summary_weighted){
            p->level[h][i], h > 0 ? UINT64_C(1) << (h - 1) : 1};
}

/* Sorts what was added, for the functions that follow. */
static zarr_status finish_list(struct zr_summary_spread *p, struct zr_summary_scratch *s,
                               zarr_error *err)
{
    size_t n = p->n_first;

    if (p->counts)
        n = (size_t)1 << (8 * p->type->item_bytes);
    for (size_t h = 1; h < ZR_COUNT(p->level); h++)
        n += p->has_level[h] ? SKETCH_VALUES : 0;
    if (!p->counts && !p->is_sketch) {
        qsort(p->level[0], n, sizeof(double), compare_doubles);
        p->n_weighted = n; /* level[0] itself is the list */
        return ZARR_OK;
    }
    p->weighted = zr_calloc(p->alloc, ZR_MAX(n, 1), sizeof *p->weighted);
    if (!p->weighted)
        return zr_fail_memory(err, zr_mul_cap(n, sizeof *p->weighted));
    if (p->counts)
        list_counts(p, s);
    else
        list_level(p, 0, p->n_first);
    for (size_t h = 1; h < ZR_COUNT(p->level); h++)
        if (p->has_level[h])
            list_level(p, h, SKETCH_VALUES);
    qsort(p->weighted, p->n_weighted, sizeof *p->weighted, compare_weighted);
    return ZARR_OK;
}

static struct zr_summary_weighted weighted_at(const struct zr_summary_spread *p, size_t i)
{
    return p->weighted ? p->weighted[i] : (struct zr_summary_weighted){p->level[0][i], 1};
}

/* The two elements with the ranks `rank` and `rank` + 1. */
static void find_rank(const struct zr_summary_spread *p, uint64_t rank, double *a,
                      double *b)
{
    size_t i = p->weighted ? 0 : (size_t)rank;
    uint64_t before = p->weighted ? 0 : rank;

    for (; i + 1 < p->n_weighted && rank >= before + weighted_at(p, i).weight; i++)
        before += weighted_at(p, i).weight;
    *a = *b = weighted_at(p, i).value;
    if (rank + 1 >= before + weighted_at(p, i).weight && i + 1 < p->n_weighted)
        *b = weighted_at(p, i + 1).value;
}

static double find_quantile(const struct zr_summary_spread *p, double q)
{
    uint64_t n = p->weighted ? 0 : p->n_weighted;
    double place, part, a, b;

    for (size_t i = 0; p->weighted && i < p->n_weighted; i++)
        n += p->weighted[i].weight;
    if (n == 0)
        return (double)NAN;
    place = q * (double)(n - 1);
    part = place - floor(place);
    find_rank(p, ZR_MIN((uint64_t)place, n - 1), &a, &b);
    if (a == b || part == 0) /* infinities have no distance */
        return a;
    /* as NumPy does it, so that both round equally */
    return part >= 0.5 ? b - (b - a) * (1 - part) : a + (b - a) * part;
}

/* Counts the elements, or the numbers of the sketch, in bins. */
static void count_list(const struct zr_summary_spread *p, struct zr_summary_bins *b)
{
    for (size_t i = 0; i < p->n_weighted; i++)
        count_bins(b, weighted_at(p, i).value, weighted_at(p, i).weight);
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

static void *make_list(struct results *r, uint64_t n, size_t bytes)
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

static zarr_status make_lists(struct results *r, const struct zr_summary_job *j,
                              zarr_error *err)
{
    const uint64_t n = r->s.n_places;

    r->s.count = r->count = make_list(r, n, sizeof *r->count);
    r->s.n_missing = r->n_missing = make_list(r, n, sizeof *r->n_missing);
    r->s.n_nan = r->n_nan = make_list(r, n, sizeof *r->n_nan);
    r->s.min = r->min = make_list(r, n, j->type.item_bytes);
    r->s.max = r->max = make_list(r, n, j->type.item_bytes);
    r->s.sum = r->sum = make_list(r, n, sizeof *r->sum);
    r->s.mean = r->mean = make_list(r, n, sizeof *r->mean);
    r->s.std = r->std = make_list(r, n, sizeof *r->std);
    if (j->opts.weights) {
        r->s.weight = r->weight = make_list(r, n, sizeof *r->weight);
    } else if (!j->type.number.real && !j->type.is_time) {
        r->s.sum_high = r->sum_high = make_list(r, n, sizeof *r->sum_high);
        r->s.sum_low = r->sum_low = make_list(r, n, sizeof *r->sum_low);
    }
    if (j->opts.n_bins > 0) {
        r->s.n_bins = j->opts.n_bins;
        r->s.edges = r->edges =
            make_list(r, (uint64_t)j->opts.n_bins + 1, sizeof *r->edges);
        r->s.bins = r->bins = make_list(r, j->opts.n_bins, sizeof *r->bins);
    }
    if (j->opts.n_quantiles > 0)
        r->s.quantiles = r->quantiles =
            make_list(r, j->opts.n_quantiles, sizeof *r->quantiles);
    return r->lacks_memory ? zr_fail_memory(err, UINT64_MAX) : ZARR_OK;
}

/* A sum of integers, exactly. */
static zr_int128 true_sum(const struct zr_summary_type *t,
                          const struct zr_summary_cell *c)
{
    const zr_int128 flip = t->is_flipped ? (zr_int128)1 << 63 : 0;

    return t->is_wide ? c->sum.integer + flip * (zr_int128)c->n
                      : (zr_int128)c->sum.real.hi + (zr_int128)c->sum.real.lo;
}

/* The sum as two doubles. */
static void sum_pair(const struct zr_summary_type *t, const struct zr_summary_cell *c,
                     double *hi, double *lo)
{
    if (t->is_wide) {
        const zr_int128 sum = true_sum(t, c);

        *hi = (double)sum;
        *lo = (double)(sum - (zr_int128)*hi);
    } else {
        *hi = c->sum.real.hi;
        *lo = c->sum.real.lo;
    }
}

static double mean_of_cell(const struct zr_summary_type *t,
                           const struct zr_summary_cell *c)
{
    double hi, lo;

    sum_pair(t, c, &hi, &lo);
    return zr_summary_divide_pair(hi, lo, (double)c->n);
}

/* Weighted sums of cells. */
struct weighing {
    double weight_hi, weight_lo, sum_hi, sum_lo, mean, squares;
};

static void weigh(struct weighing *w, const struct zr_summary_type *t,
                  const struct zr_summary_cell *c, double weight)
{
    double hi, lo, product, n, by, before = w->weight_hi;

    if (c->n == 0 || weight == 0)
        return;
    sum_pair(t, c, &hi, &lo);
    product = hi * weight;
    zr_summary_add_pair(&w->sum_hi, &w->sum_lo, product,
                        isfinite(product) ? fma(hi, weight, -product) + lo * weight : 0);
    n = weight * (double)c->n;
    zr_summary_add_pair(&w->weight_hi, &w->weight_lo, n, fma(weight, (double)c->n, -n));
    by = mean_of_cell(t, c) - w->mean;
    w->mean += by * (n / w->weight_hi);
    w->squares += c->squares * weight + by * by * before * (n / w->weight_hi);
}

/* Stores an extreme as the array has it. */
static void encode(const struct zr_summary_type *t, const union zr_summary_value *v,
                   uint8_t *list, uint64_t place)
{
    uint64_t bits;

    if (t->is_wide)
        bits = (uint64_t)v->integer ^ (t->is_flipped ? (uint64_t)1 << 63 : 0);
    else if (!t->number.real)
        bits = (uint64_t)(int64_t)v->real;
    else
        (void)zr_float_from_f64(t->number.real, v->real, &bits); /* exact */
    zr_number_put(&t->number, list + place * t->item_bytes, bits);
}

/* ---- one place ---------------------------------------------------------------- */

static void finish_sums(struct results *r, const struct zr_summary_job *j,
                        const struct zr_summary_cell *c, uint64_t p)
{
    double lo;

    sum_pair(&j->type, c, &r->sum[p], &lo);
    r->mean[p] = zr_summary_divide_pair(r->sum[p], lo, (double)c->n);
    r->std[p] = sqrt(c->squares / (double)c->n);
    if (r->sum_high) {
        const zr_int128 sum = true_sum(&j->type, c);

        r->sum_low[p] = (uint64_t)sum;
        r->sum_high[p] =
            (int64_t)((sum - (zr_int128)r->sum_low[p]) / ((zr_int128)1 << 64));
    }
}

static void finish_place(struct results *r, const struct zr_summary_job *j, uint64_t p,
                         const struct zr_summary_cell *cells)
{
    const zarr_summary_options *o = &j->opts;
    const uint64_t n = o->weights ? o->n_weights : 1;
    const uint64_t stride = o->weights ? j->cell_stride[o->weights_dim] : 0;
    struct zr_summary_cell all = {.n = 0};
    struct weighing w = {.mean = 0};

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
    if (j->type.is_time) {
        r->sum[p] = r->mean[p] = r->std[p] = (double)NAN;
    } else if (o->weights) {
        r->weight[p] = w.weight_hi;
        r->sum[p] = w.sum_hi;
        r->mean[p] = zr_summary_divide_pair(w.sum_hi, w.sum_lo, w.weight_hi);
        r->std[p] = sqrt(w.squares / w.weight_hi);
    } else {
        finish_sums(r, j, &all, p);
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

/* ---- the histogram and quantiles ---------------------------------------------- */

/* Edges of equal bins between the extremes, as numpy.histogram() makes them. */
static zarr_status make_edges(struct results *r, const struct zr_summary_job *j,
                              zarr_error *err)
{
    const uint32_t n = j->opts.n_bins;
    struct zr_summary_cell all = {.n = 0};
    double low = 0, high = 1;

    for (uint64_t i = 0; i < j->n_cells; i++) /* one, or one for each weight */
        zr_summary_join(&j->type, &all, j->cells + i);
    if (all.n > 0) {
        low = zr_summary_double(&j->type, &all.min);
        high = zr_summary_double(&j->type, &all.max);
    }
    if (!isfinite(high - low))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "elements reach from %g to %g: a histogram needs edges", low,
                       high);
    if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    for (uint32_t i = 0; i < n; i++)
        r->edges[i] = low + (double)i * ((high - low) / (double)n);
    r->edges[n] = high;
    return ZARR_OK;
}

static zarr_status finish_spread(struct results *r, struct zr_summary_job *j,
                                 zarr_error *err)
{
    struct zr_summary_bins bins = {
        .edges = r->edges, .count = r->bins, .n = j->opts.n_bins};
    zarr_status st = ZARR_OK;

    if (!j->spread.type)
        return ZARR_OK;
    ZR_TRY(finish_list(&j->spread, j->scratch, err));
    for (uint32_t i = 0; i < j->opts.n_quantiles; i++)
        r->quantiles[i] = find_quantile(&j->spread, j->opts.quantiles[i]);
    if (j->opts.edges)
        memcpy(r->edges, j->opts.edges, (bins.n + 1) * sizeof *r->edges);
    else if (bins.n > 0)
        ZR_TRY(make_edges(r, j, err));
    if (j->spread.edges.count) {
        memcpy(r->bins, j->spread.edges.count, bins.n * sizeof *r->bins);
        bins.below = j->spread.edges.below;
        bins.above = j->spread.edges.above;
    } else if (bins.n > 0) {
        count_list(&j->spread, &bins);
    }
    r->s.n_below = bins.below;
    r->s.n_above = bins.above;
    r->s.flags = j->spread.is_sketch ? ZARR_SUMMARY_SKETCH : 0;
out:
    return st;
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
    r->s.dtype = j->dtype;
    r->s.n_places = 1;
    for (int32_t d = 0; d < j->ndim; d++)
        if (!zr_summary_is_over(j, d)) {
            r->dims[r->s.ndim] = d;
            r->shape[r->s.ndim++] = j->shape[d];
            r->s.n_places = zr_mul_cap(r->s.n_places, j->shape[d]);
        }
    r->s.shape = r->shape;
    r->s.dims = r->dims;
    ZR_TRY(make_lists(r, j, err));
    finish_places(r, j);
    ZR_TRY(finish_spread(r, j, err));
    *out = &r->s;
    r = NULL; /* moved */
out:
    zarr_summary_free(r ? &r->s : NULL);
    return st;
}
