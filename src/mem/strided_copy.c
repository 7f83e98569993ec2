/*
 * mem/strided_copy.c - copies between two strided host memories, the library's hottest
 * loop: every chunk that is read or written passes here once. A box gets its normal form
 * (struct zr_strided), which shows its true shape: one run of bytes, rows, single
 * elements, or a transposition if the fastest dimensions of the two sides differ. A
 * kernel (kernel.c, transpose.c, x86_*.c) handles two dimensions; this file loops over
 * the others. Destinations too large for the caches are written past them, whole lines at
 * a time, which nearly doubles the speed of a scatter. Nothing is allocated.
 * Thread class: plain functions.
 */
#include "mem/kernel_int.h"
#include "mem/mem_int.h"

/* How many whole lines each row must have to go past the caches. With one it is slower on
 * some CPUs (Zen 3: 6.4 instead of 9.6 GB/s), with two it is never slower. */
#define NT_LINES      2
#define NT_LINE_BYTES ((size_t)64)
/* What rows need to be fetched ahead: so many bytes each, and so many from one to the
 * next. */
#define AHEAD_LEAST_BYTES ((size_t)16)
#define AHEAD_LEAST_STEP  ((uint64_t)256)
/* The tile of the blocked loop for two sides whose fastest dimensions differ if no
 * transposing kernel fits: 32 x 32 elements touch 64 lines, an eighth of a small L1. */
#define TILE_ITEMS 32
/* With fewer elements an inner loop is not worth it. */
#define TILE_LEAST 8

/* ---- normal form ---------------------------------------------------------- */

static uint64_t stride_size(int64_t stride)
{
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

/* Keeps dimensions sorted: smallest stride of dst first, then of src. */
static void dims_insert(struct zr_strided *s, uint64_t n, int64_t ds, int64_t ss)
{
    uint32_t k = s->ndim++;

    for (; k > 0; k--) {
        const uint64_t other = (uint64_t)s->ds[k - 1];
        if (other < (uint64_t)ds ||
            (other == (uint64_t)ds && stride_size(s->ss[k - 1]) <= stride_size(ss)))
            break;
        s->n[k] = s->n[k - 1];
        s->ds[k] = s->ds[k - 1];
        s->ss[k] = s->ss[k - 1];
    }
    s->n[k] = n;
    s->ds[k] = ds;
    s->ss[k] = ss;
}

/* Joins neighbours that form one line on both sides. */
static void dims_merge(struct zr_strided *s)
{
    uint32_t last = 0;

    for (uint32_t k = 1; k < s->ndim; k++) {
        int64_t n = (int64_t)s->n[last], dline, sline;

        if (zr_mul(s->ds[last], n, &dline) && zr_mul(s->ss[last], n, &sline) &&
            dline == s->ds[k] && sline == s->ss[k]) {
            s->n[last] *= s->n[k];
            continue;
        }
        last++;
        s->n[last] = s->n[k];
        s->ds[last] = s->ds[k];
        s->ss[last] = s->ss[k];
    }
    s->ndim = s->ndim ? last + 1 : 0;
}

static void dims_drop_inner(struct zr_strided *s)
{
    s->ndim--;
    for (uint32_t k = 0; k < s->ndim; k++) {
        s->n[k] = s->n[k + 1];
        s->ds[k] = s->ds[k + 1];
        s->ss[k] = s->ss[k + 1];
    }
}

bool zr_strided_init(struct zr_strided *out, const zarr_box *box, void *dst,
                     const void *src)
{
    const bool fill = !src;

    out->dst = dst;
    out->src = src;
    out->run = box->item_bytes;
    out->unit =
        !fill && box->swap_bytes > 1 ? box->swap_bytes : 0; /* patterns are ready */
    out->ndim = 0;
    out->nt = false;
    for (int32_t k = box->ndim - 1; k >= 0; k--) {
        const uint64_t n = box->shape[k];
        int64_t ds = box->dst.stride[k], ss = fill ? 0 : box->src.stride[k];

        if (n == 0)
            return false;
        if (n == 1)
            continue;
        if (ds < 0) { /* walks the dimension from its other end */
            out->dst += ds * (int64_t)(n - 1);
            ds = -ds;
            if (!fill)
                out->src += ss * (int64_t)(n - 1);
            ss = -ss;
        }
        dims_insert(out, n, ds, ss);
    }
    dims_merge(out);
    if (out->ndim && out->ds[0] == (int64_t)out->run &&
        (fill || out->ss[0] == (int64_t)out->run)) {
        out->run *= out->n[0];
        dims_drop_inner(out);
    }
    return out->run != 0;
}

/* ---- walking ---------------------------------------------------------------- */

/* A copy's dimensions, as in struct zr_strided. */
struct dims {
    uint32_t ndim;
    const uint64_t *n;
    const int64_t *ds, *ss;
};

/* Runs fn on every plane of more than two dimensions; the kernel handles 0 and 1. */
static void planes_walk(const struct dims *s, struct zr_plane *plane, zr_plane_fn fn)
{
    uint64_t at[ZARR_MAX_RANK];
    uint32_t k;

    for (k = 2; k < s->ndim; k++)
        at[k] = 0;
    for (;;) {
        fn(plane);
        for (k = 2; k < s->ndim; k++) {
            if (++at[k] < s->n[k]) {
                plane->dst += s->ds[k];
                plane->src += s->ss[k];
                break;
            }
            at[k] = 0;
            plane->dst -= (int64_t)(s->n[k] - 1) * s->ds[k];
            plane->src -= (int64_t)(s->n[k] - 1) * s->ss[k];
        }
        if (k >= s->ndim)
            return;
    }
}

/* Copies all planes. `plane` has the pointers and the length of a run. */
static inline void planes_run(const struct dims *s, struct zr_plane *plane,
                              zr_plane_fn fn)
{
    plane->n0 = s->ndim > 0 ? s->n[0] : 1;
    plane->ds0 = s->ndim > 0 ? s->ds[0] : 0;
    plane->ss0 = s->ndim > 0 ? s->ss[0] : 0;
    plane->n1 = s->ndim > 1 ? s->n[1] : 1;
    plane->ds1 = s->ndim > 1 ? s->ds[1] : 0;
    plane->ss1 = s->ndim > 1 ? s->ss[1] : 0;
    if (s->ndim > 2)
        planes_walk(s, plane, fn);
    else
        fn(plane);
}

/* Copies a plane in tiles, so that the lines of both sides stay in the cache while they
 * are used. */
static void plane_tiles(const struct zr_plane *p, uint64_t n1, uint64_t n0)
{
    const zr_plane_fn fn = zr_plane_items(p->run, p->unit, false);
    struct zr_plane tile = *p;

    for (uint64_t i = 0; i < p->n1; i += n1) {
        tile.n1 = ZR_MIN(p->n1 - i, n1);
        for (uint64_t j = 0; j < p->n0; j += n0) {
            tile.n0 = ZR_MIN(p->n0 - j, n0);
            tile.dst = p->dst + (int64_t)i * p->ds1 + (int64_t)j * p->ds0;
            tile.src = p->src + (int64_t)i * p->ss1 + (int64_t)j * p->ss0;
            fn(&tile);
        }
    }
}

static void plane_copy_in_tiles(const struct zr_plane *p)
{
    struct zr_plane turned = *p;

    if (p->n0 >= TILE_LEAST) {
        plane_tiles(p, TILE_ITEMS, TILE_ITEMS);
        return;
    }
    /* Copies the channels of a picture: a few long lines, with the inner loop along
     * them. */
    turned.n0 = p->n1;
    turned.ds0 = p->ds1;
    turned.ss0 = p->ss1;
    turned.n1 = p->n0;
    turned.ds1 = p->ds0;
    turned.ss1 = p->ss0;
    plane_tiles(&turned, TILE_LEAST, TILE_ITEMS * TILE_ITEMS / TILE_LEAST);
}

/* Makes dimension k the second one; the others keep their order. */
static void dims_second(struct zr_strided *s, uint32_t k)
{
    const uint64_t n = s->n[k];
    const int64_t ds = s->ds[k], ss = s->ss[k];

    for (; k > 1; k--) {
        s->n[k] = s->n[k - 1];
        s->ds[k] = s->ds[k - 1];
        s->ss[k] = s->ss[k - 1];
    }
    s->n[1] = n;
    s->ds[1] = ds;
    s->ss[1] = ss;
}

/* Whether both lengths of the plane are worth tiles. Reverses a backward source. */
static bool transposes(struct zr_strided *s)
{
    const uint64_t least = zr_transpose_min(s->run);

    if (least == 0 || s->unit > s->run || zr_log2_small(s->unit ? s->unit : 1) > 4 ||
        s->ds[0] != (int64_t)s->run || s->n[0] < least || s->n[1] < least)
        return false;
    if (s->ss[1] == -(int64_t)s->run) {
        s->dst += s->ds[1] * (int64_t)(s->n[1] - 1);
        s->src += s->ss[1] * (int64_t)(s->n[1] - 1);
        s->ds[1] = -s->ds[1];
        s->ss[1] = -s->ss[1];
    }
    return s->ss[1] == (int64_t)s->run;
}

/* Whether all rows begin at a line. */
static bool rows_begin_at_lines(const struct zr_strided *s)
{
    uint64_t places = (uintptr_t)s->dst;

    for (uint32_t k = 0; k < s->ndim; k++)
        places |= (uint64_t)s->ds[k];
    return places % NT_LINE_BYTES == 0;
}

/* Whether the lines of rows should be fetched before they are written: those of a large
 * output are in memory, and the rows lie too far apart for the CPU to foresee them. A
 * line that is written whole, one for each row, gains nothing. */
static bool rows_need_fetch(const struct zr_strided *s)
{
    return s->unit < 2 && s->run >= AHEAD_LEAST_BYTES && s->ndim > 0 &&
           stride_size(s->ds[0]) >= AHEAD_LEAST_STEP &&
           (s->run != NT_LINE_BYTES || !rows_begin_at_lines(s));
}

static zr_plane_fn plane_choose(struct zr_strided *s)
{
    const bool is_large = s->nt;
    uint32_t inner = 0; /* the fastest dimension of the source */

    for (uint32_t k = 1; k < s->ndim; k++)
        if (s->ss[k] != 0 && stride_size(s->ss[k]) < stride_size(s->ss[inner]))
            inner = k;
    /* whether rows contain whole lines, wherever they begin */
    s->nt = is_large && s->run >= NT_LINES * NT_LINE_BYTES &&
            (rows_begin_at_lines(s) || s->run >= (NT_LINES + 1) * NT_LINE_BYTES);
    if (inner == 0 || s->run >= NT_LINE_BYTES)
        return is_large && !s->nt && rows_need_fetch(s)
                   ? zr_kernels()->rows_ahead
                   : zr_plane_items(s->run, s->unit, s->nt);
    dims_second(s, inner);
    return transposes(s) ? zr_plane_transpose : plane_copy_in_tiles;
}

void zr_strided_copy(struct zr_strided *s)
{
    const zr_plane_fn fn = plane_choose(s);
    const struct dims dims = {s->ndim, s->n, s->ds, s->ss};
    struct zr_plane plane = {
        .dst = s->dst, .src = s->src, .run = s->run, .unit = s->unit};

    planes_run(&dims, &plane, fn);
    if (s->nt)
        zr_kernels()->fence();
}

/* ---- boxes that are alike -------------------------------------------------- */

bool zr_box_form_make(struct zr_box_form *out, const struct zr_memory_registry *r,
                      const zarr_box *box)
{
    uint8_t *const dst = zr_mem_at(&box->dst.mem), *const src = zr_mem_at(&box->src.mem);
    struct zr_strided s;

    if (!zr_device_is_host(r, box->dst.mem.device_type) ||
        !zr_device_is_host(r, box->src.mem.device_type) || zr_route_repeats(box) ||
        zr_route_check(box, false, &out->bytes, NULL) != ZARR_OK || out->bytes == 0 ||
        !zr_extent(box->ndim, box->shape, box->dst.stride, box->item_bytes, &out->dst_low,
                   &out->dst_high) ||
        !zr_extent(box->ndim, box->shape, box->src.stride, box->item_bytes, &out->src_low,
                   &out->src_high) ||
        !zr_strided_init(&s, box, dst, src) || s.ndim > ZR_FORM_DIMS)
        return false;
    s.nt = box->dst.mem.bytes >= ZR_NT_EXTENT_BYTES;
    out->dst_bytes = box->dst.mem.bytes;
    out->line = s.nt && s.run >= NT_LINE_BYTES;
    out->place = (uint32_t)((uintptr_t)dst % NT_LINE_BYTES);
    out->plane = plane_choose(&s);
    out->fence = s.nt;
    out->run = s.run;
    out->unit = s.unit;
    out->ndim = s.ndim;
    out->dst_at = s.dst - dst;
    out->src_at = s.src - src;
    memcpy(out->n, s.n, s.ndim * sizeof *s.n);
    memcpy(out->ds, s.ds, s.ndim * sizeof *s.ds);
    memcpy(out->ss, s.ss, s.ndim * sizeof *s.ss);
    return true;
}

/* Whether a box that begins at mem->offset is inside. */
static bool form_fits(const zarr_memory *mem, int64_t low, int64_t high)
{
    return mem->offset >= (uint64_t)-low && mem->offset <= mem->bytes &&
           (uint64_t)high <= mem->bytes - mem->offset;
}

bool zr_box_form_copy(const struct zr_box_form *f, const zarr_memory *dst,
                      const zarr_memory *src, struct zr_copy_counters *c)
{
    const struct dims dims = {f->ndim, f->n, f->ds, f->ss};
    struct zr_plane plane = {.run = f->run, .unit = f->unit};

    if (!form_fits(dst, f->dst_low, f->dst_high) ||
        !form_fits(src, f->src_low, f->src_high) || dst->bytes != f->dst_bytes ||
        (f->line && (uintptr_t)zr_mem_at(dst) % NT_LINE_BYTES != f->place))
        return false;
    plane.dst = zr_mem_at(dst) + f->dst_at;
    plane.src = zr_mem_at(src) + f->src_at;
    planes_run(&dims, &plane, f->plane);
    if (f->fence)
        zr_kernels()->fence();
    zr_route_count(c, ZR_ROUTE_HOST, 1, f->bytes);
    return true;
}
