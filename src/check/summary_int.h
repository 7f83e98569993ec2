/*
 * check/summary_int.h - what the files that compute statistics share. summary_kernels.c
 * adds elements in memory to cells, summary.c reads an array, and summary_results.c makes
 * what the caller gets, with quantiles and histograms.
 */
#ifndef ZR_CHECK_SUMMARY_INT_H
#define ZR_CHECK_SUMMARY_INT_H

#include "check/check.h"
#include "dtype/dtype.h"

#include <math.h>

__extension__ typedef __int128 zr_int128;

/* ---- pairs of doubles: hi is the number rounded, and hi + lo the number ------- */

/* As hi = a + b. If this is infinite or NaN, lo is 0. The error b may be NaN then. */
static inline void zr_summary_normalise(double *hi, double *lo, double a, double b)
{
    const double s = a + b;

    *lo = isfinite(s) ? b - (s - a) : 0;
    *hi = isfinite(s) ? s : a;
}
/* Adds to a sum and to the sum of its errors. */
static inline void zr_summary_add_double(double *sum, double *rest, double x)
{
    const double s = *sum + x, c = s - *sum;

    *rest += (*sum - (s - c)) + (x - c);
    *sum = s;
}
/* The error is at most 3 * 2^-106 of the result. */
static inline void zr_summary_add_pair(double *hi, double *lo, double other_hi,
                                       double other_lo)
{
    double s = *hi, e = 0, t = *lo, f = 0, a, b;

    zr_summary_add_double(&s, &e, other_hi);
    zr_summary_add_double(&t, &f, other_lo);
    zr_summary_normalise(&a, &b, s, e + t);
    zr_summary_normalise(hi, lo, a, b + f);
}
/* (hi + lo) / by, as a pair whose second number is *rest. */
static inline double zr_summary_divide_pair(double hi, double lo, double by, double *rest)
{
    const double q = hi / by;
    double out = q;

    *rest = 0;
    if (isfinite(q))
        zr_summary_normalise(&out, rest, q, (fma(-q, by, hi) + lo) / by);
    return out;
}

/* ---- cells -------------------------------------------------------------------- */

union zr_summary_value {
    double real;
    int64_t integer; /* is_wide */
};

/* The statistics of the elements that one place of the result has. */
struct zr_summary_cell {
    union {
        struct {
            double hi, lo;
        } real;
        zr_int128 integer; /* is_whole */
    } sum;
    uint64_t n, n_missing, n_nan;    /* n: elements that are neither */
    union zr_summary_value min, max; /* only if n > 0 */
    double squares;                  /* sum of squares of distances from the mean */
};

struct zr_summary_type {
    const zarr_dtype *dtype;
    struct zr_number number;
    bool is_whole;
    bool is_wide; /* whole numbers of 64 bits; others become doubles */
    bool is_time; /* INT64_MIN is NaT */
    bool has_missing, nan_is_missing;
    uint64_t flip; /* of uint64: the bit that makes it an int64 in the same order */
    uint32_t item_bytes;
    /* Compared by value, as xarray does. NaN: each NaN is missing, or none */
    union zr_summary_value missing;
    void (*convert)(void *user, const void *elements, uint64_t n, double *values);
    void *user;
};

/* UNSUPPORTED: elements are no numbers and no times. */
zarr_status zr_summary_type_init(struct zr_summary_type *t, const zarr_dtype *dtype,
                                 const zarr_summary_options *o, zarr_error *err);

/* n_steps rows of n neighbouring elements. Element i of each goes to cell i *
 * cell_stride; 0: all go to one cell. */
struct zr_summary_block {
    const uint8_t *src;
    size_t n, n_steps, cell_stride;
    size_t step_bytes; /* from one row to the next */
};
void zr_summary_add(const struct zr_summary_type *t, struct zr_summary_cell *cells,
                    const struct zr_summary_block *b);
/* Adds the elements of b to a. */
void zr_summary_join(const struct zr_summary_type *t, struct zr_summary_cell *a,
                     const struct zr_summary_cell *b);
/* Loads up to ZR_BLOCK elements without missing ones and NaN. Returns how many are left.
 */
size_t zr_summary_load_doubles(const struct zr_summary_type *t, double *out,
                               const uint8_t *src, size_t n);
/* The sum as a pair. */
static inline void zr_summary_sum(const struct zr_summary_type *t,
                                  const struct zr_summary_cell *c, double *hi, double *lo)
{
    *hi = t->is_whole ? (double)c->sum.integer : c->sum.real.hi;
    *lo = t->is_whole ? (double)(c->sum.integer - (zr_int128)*hi) : c->sum.real.lo;
}
/* The mean, as zr_summary_divide_pair() gives it. */
static inline double zr_summary_mean(const struct zr_summary_type *t,
                                     const struct zr_summary_cell *c, double *rest)
{
    double hi, lo;

    zr_summary_sum(t, c, &hi, &lo);
    return zr_summary_divide_pair(hi, lo, (double)c->n, rest);
}
static inline double zr_summary_double(const struct zr_summary_type *t,
                                       const union zr_summary_value *v)
{
    return !t->is_wide ? v->real
           : t->flip   ? (double)((uint64_t)v->integer ^ t->flip)
                       : (double)v->integer;
}

/* ---- summary_results.c: quantiles and histograms ------------------------------ */

enum {
    ZR_SUMMARY_LEVELS = 52
};
struct zr_summary_weighted {
    double value;
    uint64_t weight; /* elements in whose place it is */
};
/* The elements, or what is kept of them. Zero it before use. */
struct zr_summary_spread {
    const struct zr_summary_type *type;
    const zarr_allocator *alloc;
    uint64_t *counts; /* of types of up to 16 bits, by the bits */
    /* Level 0 has elements. A number of level h is in the place of 2^h elements. */
    struct {
        double *value;
        size_t n;
        bool is_odd;
    } level[ZR_SUMMARY_LEVELS];
    size_t most; /* numbers of level 0 */
    bool is_collecting, is_sketch;
    struct zr_summary_weighted *list; /* sorted; NULL: level 0 has all */
    size_t n_list;
    const double *edges; /* n_bins + 1, rising */
    uint64_t *bins;      /* counted while elements are added; NULL: at the end */
    uint64_t n_bins, below, above;
};
/* The caller has set the type, the allocator, the bins and is_collecting. more than
 * most_bytes make it a sketch. Deinit it also after a failure. */
zarr_status zr_summary_spread_init(struct zr_summary_spread *p, uint64_t n_items,
                                   uint64_t most_bytes, zarr_error *err);
void zr_summary_spread_deinit(struct zr_summary_spread *p);
zarr_status zr_summary_spread_add(struct zr_summary_spread *p, const uint8_t *src,
                                  uint64_t n, zarr_error *err);

/* ---- summary.c ---------------------------------------------------------------- */

/* One call. */
struct zr_summary_job {
    zarr_array *array;
    zarr_context *ctx;
    const zarr_selection *region;
    zarr_summary_options opts;
    zarr_io_options io;
    struct zr_summary_type type;
    int32_t ndim; /* of the region's result */
    uint64_t shape[ZARR_MAX_RANK];
    /* cells from one index to the next; 0: the statistics go over this dimension */
    uint64_t cell_stride[ZARR_MAX_RANK];
    uint64_t n_cells, n_items;
    bool has_all; /* over all dimensions */
    struct zr_summary_cell *cells;
    struct zr_summary_spread spread;
    zarr_stats stats;
};
static inline bool zr_summary_is_over(const struct zr_summary_job *j, int32_t dim)
{
    for (uint32_t i = 0; i < j->opts.n_over; i++)
        if (j->opts.over[i] == dim)
            return true;
    return !j->opts.over;
}

zarr_status zr_summary_make_results(zarr_summary **out, struct zr_summary_job *j,
                                    zarr_error *err);

#endif
