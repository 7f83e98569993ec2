/*
 * mem/stage.c - strided copies and fills if a backend only offers plain copies, or the
 * two sides belong to different backends. The box is cut into pieces that fit a small
 * block of host memory, in the order of the device side's strides, so that rows of a
 * piece are as long as possible on the device. The host kernels pack, unpack and swap
 * bytes; the backend's copy() moves the rows. Rows of one short element each are slow
 * here, so a backend should offer copy_box.
 * Thread class: plain functions.
 */
#include "mem/mem_int.h"

struct stage {
    const struct zr_memory_registry *r;
    const struct zr_backend *be;
    bool up;       /* the device side is dst */
    bool constant; /* a fill: packed bytes are the same for each row */
    uint8_t *packed;
    uint64_t packed_bytes;
    const struct zr_backend *next; /* device to device: the destination of the pieces */
    struct zr_copy_counters *c;
};

static zarr_box_side *stage_side(zarr_box *box, bool up)
{
    return up ? &box->dst : &box->src;
}

/* Reverses a dimension on both sides. */
static void stage_flip(zarr_box *box, int32_t k)
{
    const int64_t last = (int64_t)(box->shape[k] - 1);

    box->dst.mem.offset += (uint64_t)(last * box->dst.stride[k]);
    box->src.mem.offset += (uint64_t)(last * box->src.stride[k]);
    box->dst.stride[k] = -box->dst.stride[k];
    box->src.stride[k] = -box->src.stride[k];
}

static uint64_t stride_bytes(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

void zr_box_sort(zarr_box *out, const zarr_box *box, bool by_dst)
{
    const int64_t *by = by_dst ? out->dst.stride : out->src.stride;
    int32_t n = 0;

    out->struct_size = sizeof *out;
    out->item_bytes = box->item_bytes;
    out->swap_bytes = box->swap_bytes;
    out->dst.mem = box->dst.mem;
    out->src.mem = box->src.mem;
    for (int32_t k = 0; k < box->ndim; k++) {
        const int64_t stride = by_dst ? box->dst.stride[k] : box->src.stride[k];
        int32_t at = n;

        if (box->shape[k] == 1)
            continue;
        for (; at > 0 && stride_bytes(by[at - 1]) < stride_bytes(stride); at--) {
            out->shape[at] = out->shape[at - 1];
            out->dst.stride[at] = out->dst.stride[at - 1];
            out->src.stride[at] = out->src.stride[at - 1];
        }
        out->shape[at] = box->shape[k];
        out->dst.stride[at] = box->dst.stride[k];
        out->src.stride[at] = box->src.stride[k];
        n++;
    }
    out->ndim = n;
}

/* Sorts dimensions as the device has them, and makes its strides positive. */
static void stage_sort(zarr_box *out, const zarr_box *box, bool up)
{
    zr_box_sort(out, box, up);
    for (int32_t k = 0; k < out->ndim; k++)
        if (stage_side(out, up)->stride[k] < 0)
            stage_flip(out, k);
}

/* Makes one side of a piece the packed bytes, in C order. */
static void stage_pack_side(zarr_box_side *side, const zarr_box *piece, uint8_t *packed,
                            uint64_t packed_bytes)
{
    int64_t line = piece->item_bytes;

    side->mem = zr_mem_of_host(packed, packed_bytes);
    for (int32_t k = piece->ndim - 1; k >= 0; k--) {
        side->stride[k] = line;
        line *= (int64_t)piece->shape[k];
    }
}

/* Moves one row with the backend. The bytes of a zarr_memory count from its offset. */
static zarr_status stage_row(const struct stage *g, zarr_memory dev, uint8_t *packed,
                             uint64_t bytes, zarr_error *err)
{
    const zarr_memory host = zr_mem_of_host(packed, bytes);

    dev.bytes = bytes;
    zr_count_call(g->c);
    return g->up ? g->be->vt.copy(g->be->self, &dev, &host, bytes, NULL, err)
                 : g->be->vt.copy(g->be->self, &host, &dev, bytes, NULL, err);
}

/* Moves all rows of a piece. A row is as long as the device side is contiguous. */
static zarr_status stage_rows(const struct stage *g, zarr_box *piece, zarr_error *err)
{
    const zarr_box_side *side = stage_side(piece, g->up);
    zarr_memory dev = side->mem;
    uint64_t at[ZARR_MAX_RANK] = {0}, bytes = piece->item_bytes;
    uint8_t *packed = g->packed;
    int32_t outer = piece->ndim, k;

    while (outer > 0 &&
           (piece->shape[outer - 1] == 1 || (uint64_t)side->stride[outer - 1] == bytes))
        bytes *= piece->shape[--outer];
    for (;;) {
        ZR_CHECK(stage_row(g, dev, packed, bytes, err));
        packed += g->constant ? 0 : bytes;
        for (k = outer - 1; k >= 0; k--) {
            if (++at[k] < piece->shape[k]) {
                dev.offset += (uint64_t)side->stride[k];
                break;
            }
            at[k] = 0;
            dev.offset -= (uint64_t)side->stride[k] * (piece->shape[k] - 1);
        }
        if (k < 0)
            break;
    }
    return ZARR_OK;
}

static zarr_status stage_piece(const struct stage *g, zarr_box *piece, zarr_error *err)
{
    zarr_box host = *piece;

    if (g->up) {
        if (!g->constant) {
            stage_pack_side(&host.dst, piece, g->packed, g->packed_bytes);
            zr_host_box_copy(&host);
        }
        return stage_rows(g, piece, err);
    }
    ZR_CHECK(stage_rows(g, piece, err));
    stage_pack_side(&host.src, piece, g->packed, g->packed_bytes);
    if (g->next)
        ZR_CHECK(zr_stage_copy(g->r, &host, g->next, NULL, g->c, err));
    else
        zr_host_box_copy(&host);
    return ZARR_OK;
}

/* Cuts the box into pieces: whole dimensions from `cut` + 1 on, some indexes of `cut`,
 * one of each before. */
static zarr_status stage_pieces(const struct stage *g, const zarr_box *box,
                                zarr_error *err)
{
    uint64_t at[ZARR_MAX_RANK] = {0}, bytes = box->item_bytes, step[ZARR_MAX_RANK];
    zarr_box piece = *box;
    int32_t k;

    for (k = box->ndim - 1; k >= 0; k--) {
        const uint64_t fit = g->packed_bytes / bytes; /* at least 1 */

        step[k] = ZR_MIN(fit, box->shape[k]);
        bytes *= step[k];
        if (step[k] < box->shape[k])
            bytes = g->packed_bytes; /* full: 1 of each dimension before */
    }
    for (;;) {
        piece.dst.mem.offset = box->dst.mem.offset;
        piece.src.mem.offset = box->src.mem.offset;
        for (k = 0; k < box->ndim; k++) {
            piece.shape[k] = ZR_MIN(step[k], box->shape[k] - at[k]);
            piece.dst.mem.offset += at[k] * (uint64_t)box->dst.stride[k];
            piece.src.mem.offset += at[k] * (uint64_t)box->src.stride[k];
        }
        ZR_CHECK(stage_piece(g, &piece, err));
        for (k = box->ndim - 1; k >= 0; k--) {
            at[k] += step[k];
            if (at[k] < box->shape[k])
                break;
            at[k] = 0;
        }
        if (k < 0)
            break;
    }
    return ZARR_OK;
}

/* Allocates the block: as large as the box needs, at most the usual piece, at least one
 * element. */
static zarr_status stage_begin(struct stage *g, const zarr_box *box, zarr_error *err)
{
    uint64_t total = 0;
    size_t bytes;

    (void)zr_product_u64(box->shape, (size_t)box->ndim, &total); /* checked by route.c */
    total *= box->item_bytes;
    g->packed_bytes = ZR_MAX(ZR_MIN(total, ZR_STAGE_BYTES), box->item_bytes);
    bytes = (size_t)g->packed_bytes;
    g->packed = zr_malloc(g->r->alloc, bytes);
    return g->packed ? ZARR_OK : zr_fail_memory(err, bytes);
}

zarr_status zr_stage_copy(const struct zr_memory_registry *r, const zarr_box *box,
                          const struct zr_backend *dst_be,
                          const struct zr_backend *src_be, struct zr_copy_counters *c,
                          zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct stage g = {.r = r, .be = src_be ? src_be : dst_be, .up = !src_be, .c = c};
    zarr_box sorted;

    if (src_be)
        g.next = dst_be;
    ZR_TRY(stage_begin(&g, box, err));
    stage_sort(&sorted, box, g.up);
    ZR_TRY(stage_pieces(&g, &sorted, err));
out:
    zr_free(r->alloc, g.packed);
    return st;
}

zarr_status zr_stage_fill(const struct zr_memory_registry *r, const zarr_box *box,
                          const void *pattern, const struct zr_backend *dst_be,
                          struct zr_copy_counters *c, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct stage g = {.r = r, .be = dst_be, .up = true, .constant = true, .c = c};
    zarr_box sorted, own = *box, block = {.ndim = 1, .item_bytes = box->item_bytes};

    own.src = (zarr_box_side){.mem = own.dst.mem}; /* a fill's caller need not set it */
    ZR_TRY(stage_begin(&g, box, err));
    block.shape[0] = g.packed_bytes / box->item_bytes;
    block.dst.mem = zr_mem_of_host(g.packed, g.packed_bytes);
    block.dst.stride[0] = box->item_bytes;
    zr_host_box_fill(&block, pattern);
    stage_sort(&sorted, &own, true);
    ZR_TRY(stage_pieces(&g, &sorted, err));
out:
    zr_free(r->alloc, g.packed);
    return st;
}
