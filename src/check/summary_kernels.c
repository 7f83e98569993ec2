/*
 * check/summary_kernels.c - adds elements in memory to cells. A run of at most
 * ZR_SUMMARY_RUN elements is converted, searched for extremes, summed, and read once more
 * for the squares of the distances from its mean. If the sum is NaN, or an element is
 * missing, elements are dropped first. Runs are joined by the formula of Chan, Golub and
 * LeVeque. Loops have a fixed number of lanes, which the compiler keeps in vectors, so
 * the result is the same with any instruction set.
 *
 * Sums of floats are pairs of doubles. With u = 2^-53 and S the sum of absolute values:
 * - Adding a double to a pair errs by at most 2 u^2 of the result, and adding a pair by
 *   3 u^2 (Joldes, Muller and Popescu 2017).
 * - In a block of 512 elements, each of 16 lanes adds 32 doubles, and the 31 errors
 * apart. This errs by at most 31^2 u^2 S (Ogita, Rump and Oishi 2005), and adding its
 * result to the pair of the lane by less than 100 u^2 S.
 * - The rest of a run takes less than 512 / 16 steps in each lane. Then 16 pairs are
 * added. A run of n elements with a block thus errs by less than 1200 u^2 S < 4 n u^2 S.
 * Without one, if n >= 16, it is less than (2 n / 16 + 48) u^2 S; else it takes n steps
 * and one addition of a pair. So the error is less than n * 2^-104 of S, also after runs
 * are joined. Thread class: plain functions.
 */
#include "check/summary_int.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    LANES = 8,
    SUM_LANES = 16, /* the additions of one lane wait for each other */
    BLOCK_STEPS = 32,
    BLOCK = BLOCK_STEPS * SUM_LANES
};

#define INLINE static inline __attribute__((always_inline))

/* What the passes find in a run. */
struct run_facts {
    union zr_summary_value min, max;
    size_t n_nan, n_missing;
    double hi, lo;     /* of doubles; REAL: a pair */
    zr_int128 integer; /* SMALL, WIDE */
};

/* ---- pairs of doubles --------------------------------------------------------- */

INLINE void add_double(double *hi, double *lo, double x)
{
    const double s = *hi + x, b = s - *hi;
    const double e = ((*hi - (s - b)) + (x - b)) + *lo;

    *hi = s + e;
    *lo = e - (*hi - s);
}

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

/* ---- passes over doubles ------------------------------------------------------ */

/* Four lanes: compilers keep a loop of four in registers. */
struct extremes {
    double min[4], max[4];
};

INLINE void widen_extremes(struct extremes *e, const double *x)
{
    for (size_t l = 0; l < 4; l++) {
        e->min[l] = x[l] < e->min[l] ? x[l] : e->min[l];
        e->max[l] = x[l] > e->max[l] ? x[l] : e->max[l];
    }
}

INLINE void find_extremes(const double *x, size_t n, struct run_facts *r)
{
    struct extremes a, b, c, d;
    size_t i = 0;

    for (size_t l = 0; l < 4; l++) {
        a.min[l] = b.min[l] = c.min[l] = d.min[l] = x[0];
        a.max[l] = b.max[l] = c.max[l] = d.max[l] = x[0];
    }
    for (; i + 16 <= n; i += 16) {
        widen_extremes(&a, x + i);
        widen_extremes(&b, x + i + 4);
        widen_extremes(&c, x + i + 8);
        widen_extremes(&d, x + i + 12);
    }
    for (; i < n; i++) {
        a.min[0] = x[i] < a.min[0] ? x[i] : a.min[0];
        a.max[0] = x[i] > a.max[0] ? x[i] : a.max[0];
    }
    for (size_t l = 0; l < 4; l++) {
        a.min[l] = ZR_MIN(ZR_MIN(a.min[l], b.min[l]), ZR_MIN(c.min[l], d.min[l]));
        a.max[l] = ZR_MAX(ZR_MAX(a.max[l], b.max[l]), ZR_MAX(c.max[l], d.max[l]));
    }
    r->min.real = ZR_MIN(ZR_MIN(a.min[0], a.min[1]), ZR_MIN(a.min[2], a.min[3]));
    r->max.real = ZR_MAX(ZR_MAX(a.max[0], a.max[1]), ZR_MAX(a.max[2], a.max[3]));
}

/* Adds a block to the pairs of the lanes. */
INLINE void add_block_sums(double *hi, double *lo, const double *x)
{
    double sum[SUM_LANES], rest[SUM_LANES] = {0};

    for (size_t l = 0; l < SUM_LANES; l++)
        sum[l] = x[l];
    for (size_t i = SUM_LANES; i < BLOCK; i += SUM_LANES)
        for (size_t l = 0; l < SUM_LANES; l++) {
            const double v = x[i + l], s = sum[l] + v, b = s - sum[l];

            rest[l] += (sum[l] - (s - b)) + (v - b);
            sum[l] = s;
        }
    for (size_t l = 0; l < SUM_LANES; l++) {
        const double s = hi[l] + sum[l], b = s - hi[l];
        const double e = ((hi[l] - (s - b)) + (sum[l] - b)) + (lo[l] + rest[l]);

        hi[l] = s + e;
        lo[l] = e - (hi[l] - s);
    }
}

/* n is a multiple of SUM_LANES, here and in sum_plain(). */
INLINE void sum_pairs(const double *x, size_t n, struct run_facts *r)
{
    double hi[SUM_LANES] = {0}, lo[SUM_LANES] = {0};
    size_t i = 0;

    for (; i + BLOCK <= n; i += BLOCK)
        add_block_sums(hi, lo, x + i);
    for (; i < n; i += SUM_LANES)
        for (size_t l = 0; l < SUM_LANES; l++)
            add_double(&hi[l], &lo[l], x[i + l]);
    r->hi = hi[0];
    r->lo = lo[0];
    for (size_t l = 1; l < SUM_LANES; l++)
        zr_summary_add_pair(&r->hi, &r->lo, hi[l], lo[l]);
}

INLINE double sum_plain(const double *x, size_t n)
{
    double sum[SUM_LANES] = {0};

    for (size_t i = 0; i < n; i += SUM_LANES)
        for (size_t l = 0; l < SUM_LANES; l++)
            sum[l] += x[i + l];
    for (size_t l = 1; l < SUM_LANES; l++)
        sum[0] += sum[l];
    return sum[0];
}

INLINE double square_doubles(const double *x, size_t n, double mean)
{
    double sum[LANES] = {0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            sum[l] += (x[i + l] - mean) * (x[i + l] - mean);
    for (; i < n; i++)
        sum[0] += (x[i] - mean) * (x[i] - mean);
    for (size_t l = 1; l < LANES; l++)
        sum[0] += sum[l];
    return sum[0];
}

/* ---- passes over integers of 64 bits ------------------------------------------ */

static void sum_wide(const int64_t *x, size_t n, struct run_facts *r)
{
    int64_t min = INT64_MAX, max = INT64_MIN, high[LANES] = {0};
    uint64_t low[LANES] = {0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            high[l] += x[i + l] >> 32;
            low[l] += (uint32_t)x[i + l];
        }
    for (; i < n; i++) {
        high[0] += x[i] >> 32;
        low[0] += (uint32_t)x[i];
    }
    for (i = 0; i < n; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }
    r->min.integer = min;
    r->max.integer = max;
    r->integer = 0;
    for (size_t l = 0; l < LANES; l++)
        r->integer += (zr_int128)high[l] * ((zr_int128)1 << 32) + (zr_int128)low[l];
}

/* Makes the numbers their distances from `center`, as doubles. */
static void subtract_center(union zr_summary_value *x, size_t n, int64_t center,
                            bool is_far)
{
    for (size_t i = 0; i < n; i++) {
        const int64_t v = x[i].integer;

        x[i].real = is_far ? (double)v - (double)center
                           : (double)(int64_t)((uint64_t)v - (uint64_t)center);
    }
}

/* ---- instruction sets --------------------------------------------------------- */

struct summary_kernels {
    void (*extremes)(const double *x, size_t n, struct run_facts *r);
    void (*pairs)(const double *x, size_t n, struct run_facts *r);
    double (*plain)(const double *x, size_t n);
    double (*square)(const double *x, size_t n, double mean);
};

#define KERNELS(set, attribute)                                                          \
    attribute static void extremes_##set(const double *x, size_t n, struct run_facts *r) \
    {                                                                                    \
        find_extremes(x, n, r);                                                          \
    }                                                                                    \
    attribute static void pairs_##set(const double *x, size_t n, struct run_facts *r)    \
    {                                                                                    \
        sum_pairs(x, n, r);                                                              \
    }                                                                                    \
    attribute static double plain_##set(const double *x, size_t n)                       \
    {                                                                                    \
        return sum_plain(x, n);                                                          \
    }                                                                                    \
    attribute static double square_##set(const double *x, size_t n, double mean)         \
    {                                                                                    \
        return square_doubles(x, n, mean);                                               \
    }                                                                                    \
    static const struct summary_kernels set = {extremes_##set, pairs_##set, plain_##set, \
                                               square_##set};

KERNELS(portable, )
#if defined(__x86_64__)
KERNELS(avx2, __attribute__((target("avx2"))))
#endif

static const struct summary_kernels *choose_kernels(void)
{
#if defined(__x86_64__)
    if (zr_cpu_features & ZR_CPU_AVX2)
        return &avx2;
#endif
    return &portable;
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

static void fill_byte_table(struct zr_summary_type *t, const zarr_dtype *dtype)
{
    for (unsigned i = 0; i < 256; i++) {
        const uint8_t byte = (uint8_t)i;

        (void)zarr_dtype_number(dtype, &byte, &t->table[i], 1);
    }
}

static bool choose_integer(struct zr_summary_type *t, const zarr_dtype *dtype,
                           bool has_sign)
{
    t->form = ZR_SUMMARY_SMALL;
    switch (t->item_bytes) {
    case 1:
        fill_byte_table(t, dtype);
        t->load = load_byte;
        return true;
    case 2:
        t->load = has_sign ? load_int16 : load_uint16;
        return true;
    case 4:
        t->load = has_sign ? load_int32 : load_uint32;
        return true;
    default:
        t->form = ZR_SUMMARY_WIDE;
        t->is_flipped = !has_sign;
        t->load = has_sign ? load_same : load_flipped;
        return t->item_bytes == 8;
    }
}

static bool choose_float(struct zr_summary_type *t, const zarr_dtype *dtype)
{
    const char *name = zarr_dtype_name(dtype);

    t->form = ZR_SUMMARY_REAL;
    switch (t->item_bytes) {
    case 1:
        fill_byte_table(t, dtype);
        t->load = load_byte;
        return true;
    case 2:
        t->load = name && strcmp(name, "bfloat16") == 0 ? load_bfloat : load_half;
        return name && (t->load == load_bfloat || strcmp(name, "float16") == 0);
    case 4:
        t->load = load_float;
        return true;
    default:
        t->load = load_same;
        return t->item_bytes == 8;
    }
}

static bool choose_form(struct zr_summary_type *t, const zarr_dtype *dtype)
{
    if (zarr_dtype_components(dtype) != 1)
        return false;
    switch (zarr_dtype_kind(dtype)) {
    case ZARR_KIND_BOOL:
    case ZARR_KIND_UINT:
        return choose_integer(t, dtype, false);
    case ZARR_KIND_INT:
        return choose_integer(t, dtype, true);
    case ZARR_KIND_FLOAT:
        return choose_float(t, dtype);
    case ZARR_KIND_DATETIME:
    case ZARR_KIND_TIMEDELTA:
        t->is_time = true;
        return choose_integer(t, dtype, true);
    default:
        return false;
    }
}

zarr_status zr_summary_type_init(struct zr_summary_type *t, const zarr_dtype *dtype,
                                 const void *missing, zarr_error *err)
{
    const char *name = zarr_dtype_name(dtype);

    *t = (struct zr_summary_type){
        .item_bytes = (uint32_t)ZR_MIN(zarr_dtype_item_bytes(dtype), UINT32_MAX)};
    if (!choose_form(t, dtype))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "elements of data type %s have no summary: it needs real numbers, "
                       "booleans or times",
                       name ? name : zarr_dtype_v2(dtype));
    t->missing.real = (double)NAN; /* equal to nothing */
    if (missing) {
        t->has_missing = true;
        t->load(t, &t->missing, missing, 1);
    }
    return ZARR_OK;
}

/* ---- runs --------------------------------------------------------------------- */

static bool nan_is_missing(const struct zr_summary_type *t)
{
    if (!t->has_missing)
        return false;
    return t->form == ZR_SUMMARY_WIDE ? t->is_time && t->missing.integer == INT64_MIN
                                      : isnan(t->missing.real);
}

/* These move the elements to the front that are not missing and not NaN, and count the
 * others. */
static size_t keep_doubles(const struct zr_summary_type *t, double *x, size_t n,
                           struct run_facts *r)
{
    size_t kept = 0;

    r->n_nan = r->n_missing = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = x[i];
        const bool nan = v != v, missing = v == t->missing.real;

        x[kept] = v;
        r->n_nan += nan ? 1 : 0;
        r->n_missing += missing ? 1 : 0;
        kept += nan || missing ? 0 : 1;
    }
    return kept;
}

static size_t keep_wide(const struct zr_summary_type *t, int64_t *x, size_t n,
                        struct run_facts *r)
{
    size_t kept = 0;

    r->n_nan = r->n_missing = 0;
    if (!t->is_time && !t->has_missing)
        return n;
    for (size_t i = 0; i < n; i++) {
        const int64_t v = x[i];
        const bool nan = t->is_time && v == INT64_MIN;
        const bool missing = t->has_missing && v == t->missing.integer;

        x[kept] = v;
        r->n_nan += nan ? 1 : 0;
        r->n_missing += !nan && missing ? 1 : 0;
        kept += nan || missing ? 0 : 1;
    }
    return kept;
}

static void sum_floats(const struct summary_kernels *k, const double *x, size_t n,
                       struct run_facts *r)
{
    const size_t even = n - n % SUM_LANES;
    double hi = 0, lo = 0;

    r->hi = r->lo = 0;
    if (even > 0)
        k->pairs(x, even, r);
    for (size_t i = even; i < n; i++)
        add_double(&hi, &lo, x[i]);
    if (isfinite(hi) && isfinite(r->hi)) {
        zr_summary_add_pair(&r->hi, &r->lo, hi, lo);
        return;
    }
    r->hi = r->lo = 0; /* the errors of infinities are NaN */
    for (size_t i = 0; i < n; i++)
        r->hi += x[i];
}

static void sum_doubles(const struct zr_summary_type *t, const struct summary_kernels *k,
                        const double *x, size_t n, struct run_facts *r)
{
    const size_t even = n - n % SUM_LANES;

    if (t->form == ZR_SUMMARY_REAL) {
        sum_floats(k, x, n, r);
        return;
    }
    r->hi = k->plain(x, even); /* 2^12 numbers of 32 bits: the sum is exact */
    for (size_t i = even; i < n; i++)
        r->hi += x[i];
}

static bool contains_value(const double *x, size_t n, double value)
{
    uint64_t found[LANES] = {0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            found[l] |= x[i + l] == value ? UINT64_MAX : 0;
    for (; i < n; i++)
        found[0] |= x[i] == value ? 1 : 0;
    for (size_t l = 1; l < LANES; l++)
        found[0] |= found[l];
    return found[0] != 0;
}

static void add_doubles(const struct zr_summary_type *t, struct zr_summary_cell *cell,
                        double *x, size_t n)
{
    const struct summary_kernels *k = choose_kernels();
    struct zr_summary_cell c = {.n = n};
    struct run_facts r;

    sum_doubles(t, k, x, n, &r);
    if (isnan(r.hi) || (t->has_missing && contains_value(x, n, t->missing.real))) {
        c.n = keep_doubles(t, x, n, &r);
        c.n_nan = nan_is_missing(t) ? 0 : r.n_nan;
        c.n_missing = r.n_missing + (r.n_nan - c.n_nan);
        sum_doubles(t, k, x, c.n, &r);
    }
    if (c.n > 0) {
        k->extremes(x, c.n, &r);
        c.squares = k->square(x, c.n, r.hi / (double)c.n);
        if (t->form == ZR_SUMMARY_REAL) {
            c.sum.real.hi = r.hi;
            c.sum.real.lo = r.lo;
            c.min = r.min;
            c.max = r.max;
        } else {
            c.sum.integer = (int64_t)r.hi;
            c.min.integer = (int64_t)r.min.real;
            c.max.integer = (int64_t)r.max.real;
        }
    }
    zr_summary_join(t, cell, &c);
}

static void add_wide(const struct zr_summary_type *t, struct zr_summary_cell *cell,
                     union zr_summary_value *x, size_t n)
{
    struct zr_summary_cell c = {.n = 0};
    struct run_facts r;

    c.n = keep_wide(t, &x->integer, n, &r);
    c.n_nan = nan_is_missing(t) ? 0 : r.n_nan;
    c.n_missing = r.n_missing + (r.n_nan - c.n_nan);
    if (c.n > 0) {
        sum_wide(&x->integer, c.n, &r);
        c.sum.integer = r.integer;
        c.min = r.min;
        c.max = r.max;
    }
    if (c.n > 0 && !t->is_time) {
        const zr_int128 count = (zr_int128)c.n;
        const uint64_t range = (uint64_t)r.max.integer - (uint64_t)r.min.integer;

        subtract_center(x, c.n, (int64_t)(r.integer / count), range > INT64_MAX);
        c.squares = choose_kernels()->square(&x->real, c.n,
                                             (double)(r.integer % count) / (double)c.n);
    }
    zr_summary_join(t, cell, &c);
}

static void add_run(const struct zr_summary_type *t, struct zr_summary_cell *cell,
                    union zr_summary_value *x, size_t n)
{
    if (t->form == ZR_SUMMARY_WIDE)
        add_wide(t, cell, x, n);
    else
        add_doubles(t, cell, &x->real, n);
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
    const size_t width = ZR_MIN(c->n_cells, (size_t)64);
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

    if (t->form == ZR_SUMMARY_REAL)
        return b->sum.real.hi / nb - a->sum.real.hi / na;
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
    if (t->form == ZR_SUMMARY_REAL) {
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
    struct run_facts r;

    t->load(t, s->run, src, n);
    if (t->form != ZR_SUMMARY_WIDE)
        return keep_doubles(t, &s->run->real, n, &r);
    n = keep_wide(t, &s->run->integer, n, &r);
    for (size_t i = 0; i < n; i++) {
        const int64_t v = s->run[i].integer;

        s->run[i].real =
            t->is_flipped ? (double)((uint64_t)v ^ (uint64_t)1 << 63) : (double)v;
    }
    return n;
}
