#include "boxes.h"

static uint64_t magnitude(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

static void move(struct k_box *b, uint32_t to, uint32_t from)
{
    b->shape[to] = b->shape[from];
    b->dst[to] = b->dst[from];
    b->src[to] = b->src[from];
}

/* Walks backward along the dimensions in which the destination does, so that its strides
 * are positive; drops those of one element. */
static void forward(struct k_box *b)
{
    uint32_t n = 0;

    for (uint32_t d = 0; d < b->ndim; d++) {
        const int64_t steps = (int64_t)b->shape[d] - 1;

        if (steps == 0)
            continue;
        if (b->dst[d] < 0) {
            b->dst_at += (uint64_t)(b->dst[d] * steps);
            b->src_at += (uint64_t)(b->src[d] * steps);
            b->dst[d] = -b->dst[d];
            b->src[d] = -b->src[d];
        }
        move(b, n++, d);
    }
    b->ndim = n;
}

/* The largest stride of the destination first. */
static void sort(struct k_box *b)
{
    for (uint32_t d = 1; d < b->ndim; d++) {
        const uint64_t shape = b->shape[d];
        const int64_t dst = b->dst[d], src = b->src[d];
        uint32_t k = d;

        for (; k > 0 && b->dst[k - 1] < dst; k--)
            move(b, k, k - 1);
        b->shape[k] = shape;
        b->dst[k] = dst;
        b->src[k] = src;
    }
}

static void join(struct k_box *b)
{
    uint32_t n = 0;

    for (uint32_t d = 1; d < b->ndim; d++) {
        const int64_t steps = (int64_t)b->shape[d];

        if (b->dst[n] == b->dst[d] * steps && b->src[n] == b->src[d] * steps) {
            b->shape[n] *= b->shape[d];
            b->dst[n] = b->dst[d];
            b->src[n] = b->src[d];
        } else {
            move(b, ++n, d);
        }
    }
    b->ndim = n + 1;
}

/* Sixteen bytes, if all rows begin at multiples of them, and otherwise one unit more. */
static void divide_rows(struct k_box *b, uint32_t last)
{
    const uint64_t bytes = b->shape[last] * b->item_bytes;
    uint64_t bits = b->dst_at;

    for (uint32_t d = 0; d < last; d++)
        bits |= (uint64_t)b->dst[d];
    b->piece = 0;
    b->in_row = bytes / 16 + (bytes % 16 != 0) + (bits % 16 != 0);
}

/* Elements that lie apart in the source: a unit has 32 bytes of the destination, and
 * neighbouring units follow the dimension in which the source is densest. */
static void divide_items(struct k_box *b, uint32_t last)
{
    b->piece = 1;
    if (b->dst[last] == (int64_t)b->item_bytes && 32 % b->item_bytes == 0)
        b->piece = 32 / b->item_bytes;
    b->in_row = b->shape[last] / b->piece + (b->shape[last] % b->piece != 0);
    for (uint32_t d = 0; d < last && b->piece > 1; d++)
        if (magnitude(b->src[d]) < magnitude(b->src[b->turn < last ? b->turn : last]))
            b->turn = d;
}

void kernels_box_ready(struct k_box *b, int fill)
{
    uint32_t last;

    b->units = b->in_row = 0;
    b->piece = b->turn = b->unused = 0;
    if (b->n == 0)
        return;
    for (uint32_t d = 0; d < b->ndim && fill; d++)
        b->src[d] = b->dst[d];
    forward(b);
    sort(b);
    if (b->ndim > 0) {
        join(b);
    } else { /* one element */
        b->ndim = 1;
        b->shape[0] = 1;
        b->dst[0] = b->src[0] = b->item_bytes;
    }
    last = b->ndim - 1;
    b->turn = b->ndim;
    if (b->dst[last] == (int64_t)b->item_bytes && b->src[last] == (int64_t)b->item_bytes)
        divide_rows(b, last);
    else
        divide_items(b, last);
    b->units = b->n / b->shape[last] * b->in_row;
}

uint64_t kernels_box_items(const struct k_box *b)
{
    enum {
        UNITS =
            8, /* of a row, for an item: it then reads the description for them once */
        ROUND = 64
    };
    const uint64_t items = b->piece ? b->units : b->units / UNITS;

    return (items / ROUND + 1) * ROUND;
}
