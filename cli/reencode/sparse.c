/*
 * reencode/sparse.c - the boxes in which there is anything to do. Where source and
 * destination have one fill value, a box of which no chunk is stored is done: huge arrays
 * with few chunks are re-encoded by these alone.
 */
#include "reencode/reencode.h"

#include <string.h>

enum {
    FEW_BOXES = 64, /* of a grid: not worth a listing */
    SPARSE_PART = 4 /* at most 1/4 of the boxes are touched, else all are done */
};

/* A range of boxes in each dimension. */
struct range {
    uint64_t first[ZARR_MAX_RANK], last[ZARR_MAX_RANK];
};

static void range_of(const struct cli_boxes *b, const zarr_array *array,
                     const uint64_t *chunk, struct range *out)
{
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK];

    /* Listed chunks are inside the grid: this cannot fail. */
    (void)!zarr_array_chunk_extent(array, chunk, start, count, NULL);
    for (int32_t d = 0; d < b->ndim; d++) {
        const uint64_t rest = b->shape[d] - start[d];

        out->first[d] = start[d] / b->step[d];
        out->last[d] = (start[d] + (count[d] < rest ? count[d] : rest) - 1) / b->step[d];
    }
}

/* False: they are many. */
static bool add_range(struct cli_chunks *boxes, const struct range *r, uint64_t most)
{
    uint64_t at[ZARR_MAX_RANK];
    int32_t d = 0;

    memcpy(at, r->first, sizeof at);
    while (d >= 0) {
        if (boxes->n / 2 > most) { /* chunks share boxes */
            cli_chunks_sort(boxes);
            if (boxes->n > most)
                return false;
        }
        cli_chunks_add(boxes, at);
        for (d = boxes->ndim - 1; d >= 0; d--) {
            if (++at[d] <= r->last[d])
                break;
            at[d] = r->first[d];
        }
    }
    return true;
}

struct listing {
    const struct cli_boxes *b;
    const zarr_array *array;
    struct cli_chunks *boxes;
    uint64_t most;
    bool many;
};

static int add_chunk(void *user, const zarr_chunk_info *chunk)
{
    struct listing *l = user;
    struct range range;

    range_of(l->b, l->array, chunk->chunk, &range);
    l->many = !add_range(l->boxes, &range, l->most);
    return l->many || cli_cancel;
}

static bool add_boxes(const struct cli_boxes *b, zarr_array *array,
                      struct cli_chunks *boxes, uint64_t most)
{
    struct listing l = {.b = b, .array = array, .boxes = boxes, .most = most};

    return zarr_array_chunk_list(array, ZARR_CHUNKS_OBJECTS, add_chunk, &l, NULL) ==
               ZARR_OK &&
           !l.many && !cli_cancel;
}

bool cli_reencode_sparse(const struct reencode_pair *pair, const struct cli_boxes *b,
                         bool both, struct cli_chunks *out)
{
    uint64_t counts[ZARR_MAX_RANK], most;

    *out = (struct cli_chunks){.ndim = b->ndim};
    if (b->grid)
        return false;
    for (int32_t d = 0; d < b->ndim; d++)
        counts[d] = (b->shape[d] - 1) / b->step[d] + 1;
    most = cli_product(b->ndim, counts) / SPARSE_PART;
    if (most <= FEW_BOXES / SPARSE_PART || !cli_same_fill(pair->src, pair->dst))
        return false;
    if (add_boxes(b, pair->src, out, most) &&
        (!both || add_boxes(b, pair->dst, out, most))) {
        cli_chunks_sort(out);
        if (out->n <= most)
            return true;
    }
    cli_chunks_free(out);
    return false;
}
