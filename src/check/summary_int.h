/*
 * check/summary_int.h - what the files that compute statistics share. summary_kernels.c
 * adds elements in memory to cells, summary.c reads an array, and summary_results.c makes
 * what the caller gets, with quantiles and histograms.
 */
#ifndef ZR_CHECK_SUMMARY_INT_H
#define ZR_CHECK_SUMMARY_INT_H

#include "check/check.h"
#include "dtype/dtype.h"

__extension__ typedef __int128 zr_int128;

enum {
    ZR_SUMMARY_RUN = 768, /* elements that stay in the nearest cache meanwhile */
    ZR_SUMMARY_LANES = 16
};

union zr_summary_value {
    double real;     /* floats, and integers of at most 32 bits */
    int64_t integer; /* is_wide */
};

/* The statistics of the elements that one place of the result has. */
struct zr_summary_cell {
    union {
        struct {
            double hi, lo; /* the sum is hi + lo, and hi is it rounded */
        } real;
        zr_int128 integer;
    } sum;
    uint64_t n, n_missing, n_nan;    /* n: elements that are neither */
    union zr_summary_value min, max; /* only if n > 0 */
    double squares;                  /* sum of squares of distances from the mean */
};

struct zr_summary_type {
    struct zr_number number;
    bool is_wide;    /* integers of 64 bits and times; others are loaded as doubles */
    bool is_time;    /* INT64_MIN is NaT */
    bool is_flipped; /* uint64 has its highest bit flipped, so it is an int64 in order */
    bool has_missing, nan_is_missing;
    uint32_t item_bytes;
    /* Converts n elements, to doubles unless is_wide. */
    void (*load)(const struct zr_summary_type *t, void *dst, const void *src, size_t n);
    /* Compared by value, as xarray does. NaN: each NaN is missing, or none */
    union zr_summary_value missing;
    double table[256]; /* of types of one byte: their values */
};

/* UNSUPPORTED: elements are no numbers and no times. missing: an element; may be NULL. */
zarr_status zr_summary_type_init(struct zr_summary_type *t, const zarr_dtype *dtype,
                                 const void *missing, zarr_error *err);

/* Memory for the elements of a run. One thread at a time. */
struct zr_summary_scratch {
    union zr_summary_value run[ZR_SUMMARY_RUN]; /* a multiple of the lanes */
    union zr_summary_value rows[ZR_SUMMARY_RUN];
};

/* Adds n neighbouring elements to one cell. */
void zr_summary_add_row(const struct zr_summary_type *t, struct zr_summary_scratch *s,
                        struct zr_summary_cell *cell, const uint8_t *src, size_t n);
/* n_steps rows of n_cells elements each. Element i of each row goes to the cell i *
 * cell_stride. */
struct zr_summary_columns {
    const uint8_t *src;
    size_t n_cells, n_steps, cell_stride;
    size_t step_bytes; /* from one row to the next */
};
void zr_summary_add_columns(const struct zr_summary_type *t, struct zr_summary_scratch *s,
                            struct zr_summary_cell *cells,
                            const struct zr_summary_columns *c);
/* Adds the elements of another cell. */
void zr_summary_join(const struct zr_summary_type *t, struct zr_summary_cell *to,
                     const struct zr_summary_cell *from);
/* Loads up to ZR_SUMMARY_RUN elements as doubles into s->run, without missing ones and
 * NaN. Returns how many there are. */
size_t zr_summary_load_doubles(const struct zr_summary_type *t,
                               struct zr_summary_scratch *s, const uint8_t *src,
                               size_t n);
/* Adds a number that is the sum of two doubles. The error is at most 3 * 2^-106 of the
 * result. */
void zr_summary_add_pair(double *hi, double *lo, double other_hi, double other_lo);
/* (hi + lo) / by, with an error of little more than that of the last rounding. */
double zr_summary_divide_pair(double hi, double lo, double by);
static inline double zr_summary_double(const struct zr_summary_type *t,
                                       const union zr_summary_value *v)
{
    if (!t->is_wide)
        return v->real;
    return t->is_flipped ? (double)((uint64_t)v->integer ^ (uint64_t)1 << 63)
                         : (double)v->integer;
}

/* ---- summary_results.c: quantiles and histograms ------------------------------ */

struct zr_summary_weighted {
    double value;
    uint64_t weight; /* elements in whose place it is */
};
struct zr_summary_bins {
    const double *edges; /* n + 1, rising */
    uint64_t *count;     /* n; NULL: nothing is counted */
    size_t n;
    uint64_t below, above;
};
struct zr_summary_spread {
    const struct zr_summary_type *type;
    const zarr_allocator *alloc;
    struct zr_summary_bins edges; /* bins that are known before the elements */
    bool is_collecting;           /* elements are also kept, or sketched */
    bool is_sketch;
    uint64_t
        *counts; /* of types of up to 16 bits, by the bits; these are all they need */
    /* level[0]: elements, n_first of them; all if is_sketch is false. level[h]: numbers
     * of the weight 2^(h - 1), full or empty */
    double *level[65];
    size_t n_first, cap;
    bool has_level[65];
    uint8_t odd[65];
    struct zr_summary_weighted *weighted; /* sorted; NULL: level[0] has all */
    size_t n_weighted;
};
/* Whether elements have a counter for each value, so that nothing else is needed. */
static inline bool zr_summary_is_counted(const struct zr_summary_type *t)
{
    return t->item_bytes <= 2;
}
/* The caller has set `edges` and `is_collecting`. n_items: elements at most. most_bytes:
 * more memory makes it a sketch. Deinit it also after a failure. */
zarr_status zr_summary_spread_init(struct zr_summary_spread *p,
                                   const struct zr_summary_type *t, uint64_t n_items,
                                   uint64_t most_bytes, const zarr_allocator *alloc,
                                   zarr_error *err);
void zr_summary_spread_deinit(struct zr_summary_spread *p);
zarr_status zr_summary_spread_add(struct zr_summary_spread *p,
                                  struct zr_summary_scratch *s, const uint8_t *src,
                                  size_t n, zarr_error *err);
/* ---- summary.c ---------------------------------------------------------------- */

/* One call. */
struct zr_summary_job {
    zarr_array *array;
    zarr_context *ctx;
    const zarr_selection *region;
    zarr_summary_options opts;
    zarr_io_options io;
    struct zr_summary_type type;
    const zarr_dtype *dtype;
    int32_t ndim; /* of the region's result */
    uint64_t shape[ZARR_MAX_RANK];
    /* cells from one index to the next; 0: the statistics go over this dimension */
    uint64_t cell_stride[ZARR_MAX_RANK];
    uint64_t n_cells, n_items;
    bool has_all; /* over all dimensions */
    struct zr_summary_cell *cells;
    struct zr_summary_spread spread;
    struct zr_summary_scratch *scratch; /* one for each worker */
    uint32_t n_scratch;
    zarr_stats stats;
    uint64_t bytes_done;
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
