/*
 * check/summary_kernels.c - adds elements in memory to cells. A run of elements becomes
 * doubles, and is read for its extremes, its sum, and the squares of the distances from
 * its mean. It has LANES lanes: they share a cell, or each has its own. Elements that are
 * left out become NaN. Runs are joined by the formula of Chan, Golub and LeVeque. All
 * loops have fixed lanes, so each set of instructions gives the same result.
 *
 * A lane has its sum and the sum of the errors of its additions. With u = 2^-53 and S the
 * sum of absolute values, d additions err by at most d * (k + 1) * u^2 * S if the pair is
 * normalised after each k of them. In a row k is ROW_STEPS, and d is a 16th of the
 * elements. In columns k is 1. Adding a pair to another errs by 3 u^2 S (Joldes, Muller
 * and Popescu 2017), once for each run. So n elements err by less than 4 n u^2 S = n *
 * 2^-104 * S. Sums of integers are exact.
 * Thread class: plain functions.
 */
#include "check/summary_int.h"

#include <math.h>
#include <string.h>

enum {
    LANES = 16,
    RUN = 2048, /* elements that stay in the nearest cache */
    WIDTH = 64, /* columns that are loaded together */
    ROW_STEPS = 32
};

#define INLINE static inline __attribute__((always_inline))

/* ---- runs --------------------------------------------------------------------- */

/* A run, and the statistics of its lanes. Lane l has x[l], x[l + stride] and so on. */
struct lane_run {
    double *x;
    size_t end, stride; /* end: a multiple of stride */
    double hi[LANES], lo[LANES], min[LANES], max[LANES], squares[LANES];
    uint64_t n_missing[LANES], n_nan[LANES];
};

/* Counts missing elements and NaN, and makes both NaN. */
INLINE void mark(struct lane_run *r, double missing)
{
    uint64_t n_missing[LANES] = {0}, n_nan[LANES] = {0};

    for (size_t i = 0; i < r->end; i += r->stride)
#pragma GCC unroll 1
        for (size_t l = 0; l < LANES; l++) {
            const double x = r->x[i + l];

            n_missing[l] += x == missing;
            n_nan[l] += x != x;
            r->x[i + l] = x == missing ? (double)NAN : x;
        }
    memcpy(r->n_missing, n_missing, sizeof n_missing);
    memcpy(r->n_nan, n_nan, sizeof n_nan);
}

/* Finds the extremes and the plain sum. This is NaN if an element is and skips_nan is
 * false. */
INLINE void find_extremes(struct lane_run *r, bool skips_nan)
{
    double min[LANES], max[LANES], sum[LANES] = {0};

    for (size_t l = 0; l < LANES; l++) {
        min[l] = (double)INFINITY;
        max[l] = -(double)INFINITY;
    }
    for (size_t i = 0; i < r->end; i += r->stride)
#pragma GCC unroll 1
        for (size_t l = 0; l < LANES; l++) {
            const double v = r->x[i + l];

            min[l] = v < min[l] ? v : min[l];
            max[l] = v > max[l] ? v : max[l];
            sum[l] += skips_nan && v != v ? 0 : v;
        }
    memcpy(r->min, min, sizeof min);
    memcpy(r->max, max, sizeof max);
    memcpy(r->hi, sum, sizeof sum);
    memset(r->lo, 0, sizeof r->lo);
}

/* Whether plain sums are exact: of integers, and of floats of 24 bits that have one sign
 * and differ by less than 17 bits, because a lane adds at most 2^7 of them. */
INLINE bool is_exact(const struct zr_summary_type *t, const struct lane_run *r)
{
    bool yes = t->is_whole || t->number.bytes <= 4;

    for (size_t l = 0; l < LANES && !t->is_whole; l++)
        yes &= (r->min[l] > 0 && r->max[l] <= r->min[l] * 0x1p17) ||
               (r->max[l] < 0 && r->min[l] >= r->max[l] * 0x1p17);
    return yes;
}

/* steps: additions before a pair is normalised. */
INLINE void sum_pairs(struct lane_run *r, size_t steps, bool skips_nan)
{
    double sum[LANES] = {0}, rest[LANES] = {0};

    for (size_t i = 0; i < r->end;) {
        const size_t stop = ZR_MIN(r->end, i + steps * r->stride);

        for (; i < stop; i += r->stride)
#pragma GCC unroll 1
            for (size_t l = 0; l < LANES; l++) {
                const double v = r->x[i + l];

                zr_summary_add_double(&sum[l], &rest[l], skips_nan && v != v ? 0 : v);
            }
#pragma GCC unroll 1
        for (size_t l = 0; l < LANES; l++)
            zr_summary_normalise(&sum[l], &rest[l], sum[l], rest[l]);
    }
    memcpy(r->hi, sum, sizeof sum);
    memcpy(r->lo, rest, sizeof rest);
}

INLINE void square_lanes(struct lane_run *r, const double *mean, bool skips_nan)
{
    double sum[LANES] = {0};

    for (size_t i = 0; i < r->end; i += r->stride)
#pragma GCC unroll 1
        for (size_t l = 0; l < LANES; l++) {
            const double v = r->x[i + l];
            const double d = (skips_nan && v != v ? mean[l] : v) - mean[l];

            sum[l] += d * d;
        }
    memcpy(r->squares, sum, sizeof sum);
}

/* Lane 0 gets all but the squares. */
INLINE void fold_lanes(struct lane_run *r)
{
    for (size_t w = LANES / 2; w > 0; w /= 2)
        for (size_t l = 0; l < w; l++) {
            r->lo[l] += r->lo[l + w];
            zr_summary_add_double(&r->hi[l], &r->lo[l], r->hi[l + w]);
            r->min[l] = ZR_MIN(r->min[l], r->min[l + w]);
            r->max[l] = ZR_MAX(r->max[l], r->max[l + w]);
            r->n_missing[l] += r->n_missing[l + w];
            r->n_nan[l] += r->n_nan[l + w];
        }
    zr_summary_normalise(&r->hi[0], &r->lo[0], r->hi[0], r->lo[0]);
}

INLINE void pad(struct lane_run *r, size_t from, double value)
{
    for (; from < r->end; from++)
        r->x[from] = value;
}

/* Finds all but the squares. A row has n elements, and then NaN. Returns whether elements
 * are left out. */
INLINE bool scan(const struct zr_summary_type *t, struct lane_run *r, size_t n,
                 bool is_row)
{
    const size_t end = is_row ? n : r->end, steps = is_row ? ROW_STEPS : 1;
    const double missing = t->missing.real;
    bool skips_nan = false;

    pad(r, end, (double)NAN);
    find_extremes(r, false);
    for (size_t l = 0; l < LANES; l++)
        skips_nan |= isnan(r->hi[l]) || (missing >= r->min[l] && missing <= r->max[l]);
    if (skips_nan) {
        mark(r, missing);
        r->n_nan[LANES - 1] -= r->end - end; /* may wrap until lanes are folded */
        find_extremes(r, true);
    }
    if (!is_exact(t, r) && skips_nan)
        sum_pairs(r, steps, true);
    else if (!is_exact(t, r))
        sum_pairs(r, steps, false);
    return skips_nan;
}

/* Makes lane l a cell, without the squares, and returns its mean in the run. */
INLINE double make_cell(const struct zr_summary_type *t, const struct lane_run *r,
                        size_t l, size_t n, struct zr_summary_cell *c)
{
    double rest;

    c->n_missing = r->n_missing[l] + (t->nan_is_missing ? r->n_nan[l] : 0);
    c->n_nan = t->nan_is_missing ? 0 : r->n_nan[l];
    c->n = n - c->n_missing - c->n_nan;
    if (c->n == 0)
        return 0;
    c->min.real = r->min[l];
    c->max.real = r->max[l];
    if (t->is_whole) {
        c->sum.integer = (int64_t)r->hi[l] + (int64_t)r->lo[l];
    } else {
        c->sum.real.hi = r->hi[l];
        c->sum.real.lo = r->lo[l];
    }
    return zr_summary_divide_pair(r->hi[l], r->lo[l], (double)c->n, &rest);
}

/* Adds a row of n elements to one cell, or n columns to cells of their own. */
INLINE void add_run(const struct zr_summary_type *t, struct zr_summary_cell *cells,
                    size_t cell_stride, struct lane_run *r, size_t n, bool is_row)
{
    const size_t n_cells = is_row ? 1 : n, n_each = is_row ? n : r->end / r->stride;
    struct zr_summary_cell c[LANES] = {{.n = 0}};
    double mean[LANES] = {0};
    const bool skips_nan = scan(t, r, n, is_row);

    if (is_row)
        fold_lanes(r);
    for (size_t l = 0; l < n_cells; l++)
        mean[l] = make_cell(t, r, l, n_each, &c[l]);
    for (size_t l = 1; is_row && l < LANES; l++)
        mean[l] = mean[0];
    if (skips_nan)
        square_lanes(r, mean, true);
    else
        square_lanes(r, mean, false);
    for (size_t l = 1; is_row && l < LANES; l++)
        r->squares[0] += r->squares[l];
    for (size_t l = 0; l < n_cells; l++) {
        c[l].squares = r->squares[l];
        zr_summary_join(t, cells + l * cell_stride, &c[l]);
    }
}

/* ---- elements ----------------------------------------------------------------- */

/* Loads n elements, and changes uint64 so that they are int64 in the same order. */
static void load(const struct zr_summary_type *t, union zr_summary_value *out,
                 const uint8_t *src, size_t n)
{
    size_t now;

    if (t->convert) {
        t->convert(t->user, src, n, &out->real);
        return;
    }
    for (; n > 0; n -= now, out += now, src += now * t->item_bytes) {
        now = ZR_MIN(n, (size_t)ZR_BLOCK);
        if (t->is_wide)
            memcpy(out, src, now * sizeof *out);
        else if (zr_numpy_has(&t->number))
            zr_block_real(&t->number, src, now, &out->real);
        else
            for (size_t i = 0; i < now; i++)
                (void)zarr_dtype_number(t->dtype, src + i * t->item_bytes, &out[i].real,
                                        1);
        for (size_t i = 0; t->flip && i < now; i++)
            out[i].integer = (int64_t)((uint64_t)out[i].integer ^ t->flip);
    }
}

/* Adds integers of 64 bits, one after the other. */
static void add_wide(const struct zr_summary_type *t, struct zr_summary_cell *cell,
                     const union zr_summary_value *x, size_t end, size_t stride)
{
    struct zr_summary_cell c = {.min.integer = INT64_MAX, .max.integer = INT64_MIN};
    double rest, squares[4] = {0};
    int64_t center;
    bool is_far;

    for (size_t i = 0; i < end; i += stride) {
        const int64_t v = x[i].integer;

        if (t->has_missing && v == t->missing.integer) {
            c.n_missing++;
        } else if (t->is_time && v == INT64_MIN) {
            c.n_nan++;
        } else {
            c.n++;
            c.sum.integer += v;
            c.min.integer = ZR_MIN(c.min.integer, v);
            c.max.integer = ZR_MAX(c.max.integer, v);
        }
    }
    center = (int64_t)(c.sum.integer / (zr_int128)ZR_MAX(c.n, 1));
    rest = (double)(c.sum.integer % (zr_int128)ZR_MAX(c.n, 1)) / (double)c.n;
    is_far = (uint64_t)c.max.integer - (uint64_t)c.min.integer > INT64_MAX;
    for (size_t i = 0, k = 0; i < end && !t->is_time; i += stride, k++) {
        const int64_t v = x[i].integer;
        const double d = (is_far ? (double)v - (double)center
                                 : (double)(int64_t)((uint64_t)v - (uint64_t)center)) -
                         rest;

        squares[k % 4] += t->has_missing && v == t->missing.integer ? 0 : d * d;
    }
    c.squares = (squares[0] + squares[1]) + (squares[2] + squares[3]);
    c.sum.integer += (zr_int128)t->flip * (zr_int128)c.n;
    zr_summary_join(t, cell, &c);
}

/* Adds a row piece by piece, or as many columns and steps at once as have room. */
INLINE void add_to_cells(const struct zr_summary_type *t, struct zr_summary_cell *cells,
                         const struct zr_summary_block *b)
{
    const bool is_row = b->cell_stride == 0;
    const size_t width = is_row ? RUN : WIDTH, height = RUN / width;
    union zr_summary_value x[RUN];

    for (size_t i = 0, h; i < b->n_steps; i += h) {
        h = ZR_MIN(b->n_steps - i, height);
        for (size_t k = 0, w; k < b->n; k += w) {
            const uint8_t *src = b->src + i * b->step_bytes + k * t->item_bytes;
            struct zr_summary_cell *to = cells + k * b->cell_stride;
            size_t stride;

            w = ZR_MIN(b->n - k, width);
            stride = (w + LANES - 1) / LANES * LANES;
            for (size_t s = 0; s < h; s++) {
                load(t, x + s * stride, src + s * b->step_bytes, w);
                memset(x + s * stride + w, 0, (stride - w) * sizeof *x);
            }
            if (is_row && !t->is_wide)
                add_run(t, to, 0,
                        &(struct lane_run){.x = &x->real, .end = stride, .stride = LANES},
                        w, true);
            else if (is_row)
                add_wide(t, to, x, w, 1);
            for (size_t l = 0; l < w && !is_row && t->is_wide; l++)
                add_wide(t, to + l * b->cell_stride, x + l, h * stride, stride);
            for (size_t l = 0; l < w && !is_row && !t->is_wide; l += LANES)
                add_run(t, to + l * b->cell_stride, b->cell_stride,
                        &(struct lane_run){
                            .x = &x[l].real, .end = h * stride, .stride = stride},
                        ZR_MIN(w - l, (size_t)LANES), false);
        }
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void add_avx2(const struct zr_summary_type *t,
                                                         struct zr_summary_cell *cells,
                                                         const struct zr_summary_block *b)
{
    add_to_cells(t, cells, b);
}
#endif

void zr_summary_add(const struct zr_summary_type *t, struct zr_summary_cell *cells,
                    const struct zr_summary_block *b)
{
#if defined(__x86_64__)
    if ((zr_cpu_features & ZR_CPU_AVX2) && __builtin_cpu_supports("fma")) {
        add_avx2(t, cells, b);
        return;
    }
#endif
    add_to_cells(t, cells, b);
}

/* ---- types -------------------------------------------------------------------- */

static bool find_number(struct zr_summary_type *t)
{
    const uint32_t kind = zarr_dtype_kind(t->dtype);

    t->is_time = kind == ZARR_KIND_DATETIME || kind == ZARR_KIND_TIMEDELTA;
    if (t->is_time)
        t->number = zr_number_make(ZARR_KIND_INT, 8);
    else if (kind == ZARR_KIND_BOOL)
        t->number = zr_number_make(ZARR_KIND_BOOL, 1);
    else if (!zr_number_from_dtype(t->dtype, &t->number) || t->number.parts != 1)
        return false;
    t->is_whole = !t->number.real;
    t->is_wide = t->is_whole && t->number.bytes == 8;
    t->flip = t->is_wide && t->number.kind == ZARR_KIND_UINT ? UINT64_C(1) << 63 : 0;
    return t->number.bytes == t->item_bytes && zarr_dtype_components(t->dtype) == 1;
}

zarr_status zr_summary_type_init(struct zr_summary_type *t, const zarr_dtype *dtype,
                                 const zarr_summary_options *o, zarr_error *err)
{
    *t = (struct zr_summary_type){
        .dtype = dtype,
        .item_bytes = (uint32_t)ZR_MIN(zarr_dtype_item_bytes(dtype), UINT32_MAX),
        .convert = o->convert,
        .user = o->convert_user,
        .missing.real = (double)NAN};
    if (o->convert) {
        t->number = zr_number_make(ZARR_KIND_FLOAT, 8);
        t->nan_is_missing = true;
    } else if (!find_number(t)) {
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "elements of data type %s have no summary: it needs real numbers, "
                       "booleans or times",
                       zr_dtype_label(dtype));
    } else if (o->missing) {
        load(t, &t->missing, o->missing, 1);
        t->has_missing = true;
        t->nan_is_missing = t->is_wide ? t->is_time && t->missing.integer == INT64_MIN
                                       : isnan(t->missing.real);
    }
    return ZARR_OK;
}

/* ---- for the other files ------------------------------------------------------ */

void zr_summary_join(const struct zr_summary_type *t, struct zr_summary_cell *a,
                     const struct zr_summary_cell *b)
{
    const uint64_t n_missing = a->n_missing + b->n_missing, n_nan = a->n_nan + b->n_nan;

    if (a->n == 0) {
        *a = *b;
    } else if (b->n > 0) {
        const double na = (double)a->n, nb = (double)b->n;
        double rest_a, rest_b, mean = zr_summary_mean(t, a, &rest_a);
        const double by = (zr_summary_mean(t, b, &rest_b) - mean) + (rest_b - rest_a);

        a->squares += b->squares + by * by * (na * (nb / (na + nb)));
        if (t->is_whole)
            a->sum.integer += b->sum.integer;
        else
            zr_summary_add_pair(&a->sum.real.hi, &a->sum.real.lo, b->sum.real.hi,
                                b->sum.real.lo);
        if (t->is_wide) {
            a->min.integer = ZR_MIN(a->min.integer, b->min.integer);
            a->max.integer = ZR_MAX(a->max.integer, b->max.integer);
        } else {
            a->min.real = ZR_MIN(a->min.real, b->min.real);
            a->max.real = ZR_MAX(a->max.real, b->max.real);
        }
        a->n += b->n;
    }
    a->n_missing = n_missing;
    a->n_nan = n_nan;
}

size_t zr_summary_load_doubles(const struct zr_summary_type *t, double *out,
                               const uint8_t *src, size_t n)
{
    union zr_summary_value x[ZR_BLOCK];
    size_t kept = 0;

    load(t, x, src, n);
    for (size_t i = 0; i < n; i++) {
        const bool is_missing = t->is_wide
                                    ? t->has_missing && x[i].integer == t->missing.integer
                                    : isnan(x[i].real) || x[i].real == t->missing.real;

        out[kept] = zr_summary_double(t, &x[i]);
        kept += is_missing ? 0 : 1;
    }
    return kept;
}
