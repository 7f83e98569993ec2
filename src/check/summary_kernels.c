/*
 * check/summary_kernels.c - adds elements in memory to cells. A run of at most
 * ZR_SUMMARY_RUN elements is converted, and read for its sum, for its extremes, and for
 * the squares of the distances from its mean. Elements that are left out are NaN
 * meanwhile. Runs are joined by the formula of Chan, Golub and LeVeque. Loops have a
 * fixed number of lanes, so the result is the same with any instruction set.
 *
 * The sum of a run is a double in each of LANES lanes, and the sum of the errors of its
 * additions. With u = 2^-53 and S the sum of absolute values, this errs by at most d^2
 * u^2 S if d additions follow each other (Ogita, Rump and Oishi 2005). A run of n numbers
 * has d < n / LANES + 4, or less if n is smaller than LANES. Adding a pair of doubles to
 * another errs by 3 u^2 S (Joldes, Muller and Popescu 2017). So the error is less than 4
 * n u^2 S = n * 2^-104 * S, also after runs are joined. Sums of integers of 32 bits are
 * exact.
 * Thread class: plain functions.
 */
#include "check/summary_int.h"

#include <math.h>
#include <string.h>

enum {
    LANES = ZR_SUMMARY_LANES
};

#define INLINE static inline __attribute__((always_inline))

/* ---- pairs of doubles --------------------------------------------------------- */

INLINE double sum_error(double a, double b, double s)
{
    const double c = s - a;

    return (a - (s - c)) + (b - c);
}

INLINE void normalise(double *hi, double *lo, double a, double b)
{
    *hi = a + b;
    *lo = b - (*hi - a);
}

void zr_summary_add_pair(double *hi, double *lo, double other_hi, double other_lo)
{
    const double s = *hi + other_hi, e = sum_error(*hi, other_hi, s);
    const double t = *lo + other_lo, f = sum_error(*lo, other_lo, t);
    double a, b;

    if (!isfinite(s)) { /* the errors are NaN */
        *hi = s;
        *lo = 0;
        return;
    }
    normalise(&a, &b, s, e + t);
    normalise(hi, lo, a, b + f);
}

double zr_summary_divide_pair(double hi, double lo, double by)
{
    const double q = hi / by;

    return isfinite(q) ? q + (fma(-q, by, hi) + lo) / by : q;
}

/* ---- runs of doubles ---------------------------------------------------------- */

/* In all of these, n is a multiple of LANES, and NaN is left out, if there is any. */

/* Makes missing elements NaN. */
INLINE void mark_missing(struct zr_summary_cell *c, double *x, size_t n, double missing)
{
    uint64_t lost[LANES] = {0}, nan[LANES] = {0};

    for (size_t i = 0; i < n; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            const double v = x[i + l];

            lost[l] += v == missing ? 1 : 0;
            nan[l] += v != v ? 1 : 0;
            x[i + l] = v == missing ? (double)NAN : v;
        }
    for (size_t l = 0; l < LANES; l++) {
        c->n_missing += lost[l];
        c->n_nan += nan[l];
    }
}

/* Adds to a sum and to the sum of its errors. */
INLINE void add_double(double *sum, double *rest, double x)
{
    const double s = *sum + x;

    *rest += sum_error(*sum, x, s);
    *sum = s;
}

INLINE void sum_run(struct zr_summary_cell *c, const double *x, size_t n, bool has_nan)
{
    double sum[LANES] = {0}, rest[LANES] = {0}, hi;

    for (size_t i = 0; i < n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            add_double(&sum[l], &rest[l], has_nan && x[i + l] != x[i + l] ? 0 : x[i + l]);
    for (size_t w = LANES / 2; w > 0; w /= 2)
        for (size_t l = 0; l < w; l++) {
            rest[l] += rest[l + w];
            add_double(&sum[l], &rest[l], sum[l + w]);
        }
    hi = sum[0] + rest[0];
    c->sum.real.hi = isfinite(hi) ? hi : sum[0]; /* the errors of infinities are NaN */
    c->sum.real.lo = isfinite(hi) ? sum_error(sum[0], rest[0], hi) : 0;
}

INLINE void find_extremes(struct zr_summary_cell *c, const double *x, size_t n)
{
    double min[LANES], max[LANES];

    for (size_t l = 0; l < LANES; l++) {
        min[l] = (double)INFINITY;
        max[l] = -(double)INFINITY;
    }
    for (size_t i = 0; i < n; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            min[l] = x[i + l] < min[l] ? x[i + l] : min[l];
            max[l] = x[i + l] > max[l] ? x[i + l] : max[l];
        }
    for (size_t l = 1; l < LANES; l++) {
        min[0] = ZR_MIN(min[0], min[l]);
        max[0] = ZR_MAX(max[0], max[l]);
    }
    c->min.real = min[0];
    c->max.real = max[0];
}

INLINE double square_run(const double *x, size_t n, double mean, bool has_nan)
{
    double sum[LANES] = {0};

    for (size_t i = 0; i < n; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            const double d = has_nan && x[i + l] != x[i + l] ? 0 : x[i + l] - mean;

            sum[l] += d * d;
        }
    for (size_t l = 1; l < LANES; l++)
        sum[0] += sum[l];
    return sum[0];
}

INLINE double mean_of_run(const struct zr_summary_cell *c)
{
    return zr_summary_divide_pair(c->sum.real.hi, c->sum.real.lo, (double)c->n);
}

/* Fills a run of `count` elements up to lanes. Returns its length. */
INLINE size_t pad(double *x, size_t count, double value)
{
    size_t n = count;

    for (; n % LANES > 0; n++)
        x[n] = value;
    return n;
}

/* The statistics of `count` elements at x, which may be padded. */
INLINE void scan(struct zr_summary_cell *c, double *x, size_t count, double missing)
{
    const size_t n = pad(x, count, (double)NAN);
    double mean;

    c->n = count;
    find_extremes(c, x, n);
    (void)pad(x, count, 0);
    sum_run(c, x, n, false);
    if (!isnan(c->sum.real.hi) && !(missing >= c->min.real && missing <= c->max.real)) {
        mean = mean_of_run(c);
        (void)pad(x, count, mean);
        c->squares = square_run(x, n, mean, false);
        return;
    }
    (void)pad(x, count, (double)NAN);
    mark_missing(c, x, n, missing);
    c->n_nan -= n - count;
    c->n -= c->n_nan + c->n_missing;
    find_extremes(c, x, n);
    sum_run(c, x, n, true);
    c->squares = square_run(x, n, mean_of_run(c), true);
}

static void scan_portable(struct zr_summary_cell *c, double *x, size_t n, double missing)
{
    scan(c, x, n, missing);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void scan_avx2(struct zr_summary_cell *c,
                                                      double *x, size_t n, double missing)
{
    scan(c, x, n, missing);
}
#endif

static void scan_doubles(struct zr_summary_cell *c, double *x, size_t n, double missing)
{
#if defined(__x86_64__)
    if (zr_cpu_features & ZR_CPU_AVX2) {
        scan_avx2(c, x, n, missing);
        return;
    }
#endif
    scan_portable(c, x, n, missing);
}

/* ---- runs of integers of 64 bits ---------------------------------------------- */

/* Replaces each number with its distance from the mean. */
static void make_distances(const struct zr_summary_type *t,
                           const struct zr_summary_cell *c, union zr_summary_value *x,
                           size_t n)
{
    const int64_t center = (int64_t)(c->sum.integer / (zr_int128)c->n);
    const bool is_far = (uint64_t)c->max.integer - (uint64_t)c->min.integer > INT64_MAX;
    const double rest =
        (double)(c->sum.integer % (zr_int128)c->n) / (double)c->n; /* of the mean */

    for (size_t i = 0; i < n; i++) {
        const int64_t v = x[i].integer;
        const double d = is_far ? (double)v - (double)center
                                : (double)(int64_t)((uint64_t)v - (uint64_t)center);

        x[i].real = t->has_missing && v == t->missing.integer ? (double)NAN : d - rest;
    }
}

INLINE void scan_wide(const struct zr_summary_type *t, struct zr_summary_cell *c,
                      union zr_summary_value *x, size_t n, bool is_filtered)
{
    int64_t min = INT64_MAX, max = INT64_MIN;
    zr_int128 sum = 0;

    for (size_t i = 0; i < n; i++) {
        const int64_t v = x[i].integer;

        if (is_filtered && t->is_time && v == INT64_MIN) {
            c->n_nan++;
        } else if (is_filtered && t->has_missing && v == t->missing.integer) {
            c->n_missing++;
        } else {
            sum += v;
            min = v < min ? v : min;
            max = v > max ? v : max;
        }
    }
    c->n = n - c->n_nan - c->n_missing;
    c->sum.integer = sum;
    c->min.integer = min;
    c->max.integer = max;
    if (c->n > 0 && !t->is_time) {
        make_distances(t, c, x, n);
        c->squares = square_run(&x->real, pad(&x->real, n, (double)NAN), 0, true);
    }
}

static void add_run(const struct zr_summary_type *t, struct zr_summary_cell *cell,
                    union zr_summary_value *x, size_t n)
{
    struct zr_summary_cell c = {.n = 0};

    if (t->is_wide && (t->is_time || t->has_missing))
        scan_wide(t, &c, x, n, true);
    else if (t->is_wide)
        scan_wide(t, &c, x, n, false);
    else
        scan_doubles(&c, &x->real, n, t->missing.real);
    if (t->nan_is_missing) {
        c.n_missing += c.n_nan;
        c.n_nan = 0;
    }
    zr_summary_join(t, cell, &c);
}

/* ---- conversion --------------------------------------------------------------- */

#define LOAD(name, type)                                                                 \
    static void name(const struct zr_summary_type *t, void *dst, const void *src,        \
                     size_t n)                                                           \
    {                                                                                    \
        const type *x = src;                                                             \
        double *d = dst;                                                                 \
        size_t i = 0;                                                                    \
                                                                                         \
        ZR_UNUSED(t);                                                                    \
        for (; i + LANES <= n; i += LANES)                                               \
            for (size_t l = 0; l < LANES; l++)                                           \
                d[i + l] = (double)x[i + l];                                             \
        for (; i < n; i++)                                                               \
            d[i] = (double)x[i];                                                         \
    }
LOAD(load_int16, int16_t)
LOAD(load_uint16, uint16_t)
LOAD(load_int32, int32_t)
LOAD(load_uint32, uint32_t)
LOAD(load_float, float)

static void load_byte(const struct zr_summary_type *t, void *dst, const void *src,
                      size_t n)
{
    const uint8_t *x = src;
    double *d = dst;

    for (size_t i = 0; i < n; i++)
        d[i] = t->table[x[i]];
}

static void load_same(const struct zr_summary_type *t, void *dst, const void *src,
                      size_t n)
{
    ZR_UNUSED(t);
    memcpy(dst, src, n * sizeof(uint64_t));
}

static void load_flipped(const struct zr_summary_type *t, void *dst, const void *src,
                         size_t n)
{
    const uint64_t *x = src;
    uint64_t *d = dst;

    ZR_UNUSED(t);
    for (size_t i = 0; i < n; i++)
        d[i] = x[i] ^ (uint64_t)1 << 63;
}

static void load_bfloat(const struct zr_summary_type *t, void *dst, const void *src,
                        size_t n)
{
    const uint16_t *x = src;
    double *d = dst;

    ZR_UNUSED(t);
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)x[i] << 16;
        float f;

        memcpy(&f, &bits, sizeof f);
        d[i] = (double)f;
    }
}

/* The exponent moves from the bias of a half to that of a float by a multiplication,
 * which is right for subnormal numbers, too. */
static void load_half(const struct zr_summary_type *t, void *dst, const void *src,
                      size_t n)
{
    const uint16_t *x = src;
    double *d = dst;

    ZR_UNUSED(t);
    for (size_t i = 0; i < n; i++) {
        const bool special = (x[i] & 0x7c00) == 0x7c00; /* infinity, NaN */
        const uint32_t bits = (uint32_t)(x[i] & 0x8000) << 16 |
                              (uint32_t)(x[i] & 0x7fff) << 13 |
                              (special ? UINT32_C(0x7f800000) : 0);
        float f;

        memcpy(&f, &bits, sizeof f);
        d[i] = (double)f * (special ? 1 : 0x1p112);
    }
}

/* ---- types -------------------------------------------------------------------- */

static bool choose_load(struct zr_summary_type *t, const zarr_dtype *dtype)
{
    const bool is_signed = t->number.kind == ZARR_KIND_INT;

    switch (t->number.bytes) {
    case 1:
        for (unsigned i = 0; i < 256; i++) {
            const uint8_t byte = (uint8_t)i;

            (void)zarr_dtype_number(dtype, &byte, &t->table[i], 1);
        }
        t->load = load_byte;
        return true;
    case 2:
        t->load =
            t->number.real
                ? strcmp(t->number.real->name, "bfloat16") == 0 ? load_bfloat : load_half
                : (is_signed ? load_int16 : load_uint16);
        return true;
    case 4:
        t->load = t->number.real ? load_float : is_signed ? load_int32 : load_uint32;
        return true;
    default:
        t->is_wide = !t->number.real;
        t->is_flipped = t->is_wide && !is_signed;
        t->load = t->is_flipped ? load_flipped : load_same;
        return t->number.bytes == 8;
    }
}

static bool choose_type(struct zr_summary_type *t, const zarr_dtype *dtype)
{
    const uint32_t kind = zarr_dtype_kind(dtype);

    t->is_time = kind == ZARR_KIND_DATETIME || kind == ZARR_KIND_TIMEDELTA;
    if (t->is_time)
        t->number = zr_number_make(ZARR_KIND_INT, t->item_bytes & 15);
    else if (kind == ZARR_KIND_BOOL)
        t->number = zr_number_make(ZARR_KIND_UINT, 1);
    else if (!zr_number_from_dtype(dtype, &t->number) || t->number.parts != 1)
        return false;
    return t->number.bytes == t->item_bytes && choose_load(t, dtype);
}

zarr_status zr_summary_type_init(struct zr_summary_type *t, const zarr_dtype *dtype,
                                 const void *missing, zarr_error *err)
{
    *t = (struct zr_summary_type){
        .item_bytes = (uint32_t)ZR_MIN(zarr_dtype_item_bytes(dtype), UINT32_MAX)};
    if (zarr_dtype_components(dtype) != 1 || !choose_type(t, dtype))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "elements of data type %s have no summary: it needs real numbers, "
                       "booleans or times",
                       zr_dtype_label(dtype));
    t->missing.real = (double)NAN; /* equal to nothing */
    if (missing) {
        t->load(t, &t->missing, missing, 1);
        t->has_missing = true;
        t->nan_is_missing = t->is_wide ? t->is_time && t->missing.integer == INT64_MIN
                                       : isnan(t->missing.real);
    }
    return ZARR_OK;
}

/* ---- for the other files ------------------------------------------------------ */

void zr_summary_add_row(const struct zr_summary_type *t, struct zr_summary_scratch *s,
                        struct zr_summary_cell *cell, const uint8_t *src, size_t n)
{
    while (n > 0) {
        const size_t now = ZR_MIN(n, (size_t)ZR_SUMMARY_RUN);

        t->load(t, s->run, src, now);
        add_run(t, cell, s->run, now);
        src += now * t->item_bytes;
        n -= now;
    }
}

/* Adds at most ZR_SUMMARY_RUN elements: rows of the source become columns. */
static void add_block(const struct zr_summary_type *t, struct zr_summary_scratch *s,
                      struct zr_summary_cell *cells, const struct zr_summary_columns *c)
{
    for (size_t i = 0; i < c->n_steps; i++)
        t->load(t, s->rows + i * c->n_cells, c->src + i * c->step_bytes, c->n_cells);
    for (size_t k = 0; k < c->n_cells; k++) {
        for (size_t i = 0; i < c->n_steps; i++)
            s->run[i] = s->rows[i * c->n_cells + k];
        add_run(t, cells + k * c->cell_stride, s->run, c->n_steps);
    }
}

void zr_summary_add_columns(const struct zr_summary_type *t, struct zr_summary_scratch *s,
                            struct zr_summary_cell *cells,
                            const struct zr_summary_columns *c)
{
    const size_t width = ZR_MIN(c->n_cells, (size_t)32);
    const size_t height = ZR_MIN(c->n_steps, ZR_SUMMARY_RUN / width);

    for (size_t k = 0; k < c->n_cells; k += width)
        for (size_t i = 0; i < c->n_steps; i += height) {
            const struct zr_summary_columns block = {
                .src = c->src + i * c->step_bytes + k * t->item_bytes,
                .n_cells = ZR_MIN(width, c->n_cells - k),
                .n_steps = ZR_MIN(height, c->n_steps - i),
                .cell_stride = c->cell_stride,
                .step_bytes = c->step_bytes};

            add_block(t, s, cells + k * c->cell_stride, &block);
        }
}

/* The mean of b without that of a. Integers are first made small by a number of a. */
static double mean_distance(const struct zr_summary_type *t,
                            const struct zr_summary_cell *a,
                            const struct zr_summary_cell *b)
{
    const double na = (double)a->n, nb = (double)b->n;
    zr_int128 x, y;

    if (!t->is_wide)
        return zr_summary_divide_pair(b->sum.real.hi, b->sum.real.lo, nb) -
               zr_summary_divide_pair(a->sum.real.hi, a->sum.real.lo, na);
    x = a->sum.integer - (zr_int128)a->min.integer * (zr_int128)a->n;
    y = b->sum.integer - (zr_int128)a->min.integer * (zr_int128)b->n;
    return (double)y / nb - (double)x / na;
}

static void join_values(const struct zr_summary_type *t, struct zr_summary_cell *a,
                        const struct zr_summary_cell *b)
{
    const double na = (double)a->n, nb = (double)b->n;
    const double by = t->is_time ? 0 : mean_distance(t, a, b);

    a->squares += b->squares + by * by * (na * (nb / (na + nb)));
    if (!t->is_wide) {
        zr_summary_add_pair(&a->sum.real.hi, &a->sum.real.lo, b->sum.real.hi,
                            b->sum.real.lo);
        a->min.real = ZR_MIN(a->min.real, b->min.real);
        a->max.real = ZR_MAX(a->max.real, b->max.real);
    } else {
        a->sum.integer += b->sum.integer;
        a->min.integer = ZR_MIN(a->min.integer, b->min.integer);
        a->max.integer = ZR_MAX(a->max.integer, b->max.integer);
    }
}

void zr_summary_join(const struct zr_summary_type *t, struct zr_summary_cell *to,
                     const struct zr_summary_cell *from)
{
    if (from->n > 0 && to->n > 0) {
        join_values(t, to, from);
    } else if (from->n > 0) {
        to->sum = from->sum;
        to->min = from->min;
        to->max = from->max;
        to->squares = from->squares;
    }
    to->n += from->n;
    to->n_missing += from->n_missing;
    to->n_nan += from->n_nan;
}

size_t zr_summary_load_doubles(const struct zr_summary_type *t,
                               struct zr_summary_scratch *s, const uint8_t *src, size_t n)
{
    size_t kept = 0;

    t->load(t, s->run, src, n);
    for (size_t i = 0; i < n; i++) {
        const union zr_summary_value v = s->run[i];
        const bool is_missing = t->is_wide
                                    ? t->has_missing && v.integer == t->missing.integer
                                    : isnan(v.real) || v.real == t->missing.real;

        s->run[kept].real = zr_summary_double(t, &v);
        kept += is_missing ? 0 : 1;
    }
    return kept;
}
