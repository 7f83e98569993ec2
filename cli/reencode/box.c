/*
 * reencode/box.c - how an array is cut for re-encoding. Two grids meet: chunks
 * of the source, each of which should be decoded once, and units of writing of
 * the destination (chunks or shards), each of which must be written once and
 * whole, because an object that is there counts as finished. So a box is made
 * of whole units; where memory allows it is widened to whole chunks of the
 * source as well (the least common multiple, or the next multiple of the unit),
 * then to whole rows. Where units differ in shape a box is as many of them as
 * fit into the steps, which are as long as the largest unit or longer.
 */
#include "reencode/reencode.h"

#include <string.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Of two lengths, neither of them 0. */
static uint64_t common_multiple(uint64_t a, uint64_t b)
{
    uint64_t x = a, y = b;

    while (y) {
        uint64_t rest = x % y;

        x = y;
        y = rest;
    }
    return x ? cli_mul(a / x, b) : 0;
}

/* Bytes of a box if step[d] were n. */
static uint64_t bytes_with(const struct cli_boxes *b, int32_t d, uint64_t n,
                           uint64_t item_bytes)
{
    uint64_t bytes = cli_mul(n, item_bytes);

    for (int32_t i = 0; i < b->ndim; i++)
        if (i != d)
            bytes = cli_mul(bytes, b->step[i]);
    return bytes;
}

static void try_step(struct reencode_shape *s, int32_t d, uint64_t n, uint64_t limit)
{
    n = least(n, s->boxes.shape[d]);
    if (n > s->boxes.step[d] && bytes_with(&s->boxes, d, n, s->item_bytes) <= limit)
        s->boxes.step[d] = n;
}

/* Whole chunks of the source; the dimension that gains most comes first. */
static void align_to_source(struct reencode_shape *s, const uint64_t *chunk,
                            uint64_t limit)
{
    bool tried[ZARR_MAX_RANK] = {false};

    for (int32_t i = 0; i < s->boxes.ndim; i++) {
        int32_t best = -1;

        for (int32_t d = s->boxes.ndim - 1; d >= 0; d--)
            if (!tried[d] && (best < 0 || chunk[d] / s->boxes.step[d] >
                                              chunk[best] / s->boxes.step[best]))
                best = d;
        tried[best] = true;
        if (chunk[best] > s->unit[best])
            try_step(s, best,
                     (chunk[best] + s->unit[best] - 1) / s->unit[best] * s->unit[best],
                     limit);
        try_step(s, best, common_multiple(chunk[best], s->unit[best]), limit);
    }
}

/* Longer rows: fewer boxes, more to do at once. */
static void widen(struct reencode_shape *s, uint64_t limit)
{
    for (int32_t d = s->boxes.ndim - 1; d >= 0; d--) {
        uint64_t step = s->boxes.step[d];
        uint64_t bytes = bytes_with(&s->boxes, d, step, s->item_bytes);

        if (bytes && limit / bytes > 1)
            s->boxes.step[d] = least(cli_mul(step, limit / bytes), s->boxes.shape[d]);
        if (s->boxes.step[d] < s->boxes.shape[d])
            break;
    }
}

static int over_limit(struct reencode *r, const struct reencode_pair *pair,
                      uint64_t bytes)
{
    char need[16], have[16], hint[64];

    cli_bytes_text(cli_buffer_bytes(r->cli), have);
    snprintf(hint, sizeof hint, "Try: --mem=%lluM, or smaller chunks or shards.",
             (unsigned long long)((bytes >> 19) + 2));
    return cli_error(r->cli, CLI_CORRUPT, hint,
                     "one chunk or shard of %s has %s, --mem leaves %s for it",
                     pair->shown, cli_bytes_text(bytes, need), have);
}

int cli_reencode_shape(struct reencode *r, const struct reencode_pair *pair,
                       struct reencode_shape *s)
{
    static const uint64_t enough = 64u << 20; /* larger boxes gain nothing */
    const bool alike = zarr_array_write_shape(pair->dst) != NULL;
    const uint64_t *chunk = zarr_array_chunk_shape(pair->src);
    const uint64_t limit = cli_buffer_bytes(r->cli);
    int32_t ndim = zarr_array_ndim(pair->dst);
    uint64_t grow;

    s->item_bytes = zarr_dtype_item_bytes(zarr_array_dtype(pair->dst));
    if (s->item_bytes == 0)
        return cli_error(r->cli, CLI_UNSUPPORTED, NULL, "%s: elements of variable length",
                         pair->shown);
    cli_boxes_init(&s->boxes, ndim, zarr_array_shape(pair->dst), NULL, 1, false);
    if (s->boxes.done) /* no elements */
        return CLI_OK;
    zarr_array_chunk_largest(pair->dst, s->unit);
    zarr_array_chunk_counts(pair->dst, s->grid);
    s->boxes.grid = alike ? NULL : pair->dst;
    for (int32_t d = 0; d < ndim; d++)
        s->boxes.step[d] = least(s->unit[d], s->boxes.shape[d]);
    if (cli_product(ndim, s->grid) == UINT64_MAX)
        return cli_error(r->cli, CLI_CORRUPT, "Choose larger chunks.",
                         "%s would have more than 2^64 chunks", pair->shown);
    s->unit_bytes = cli_mul(cli_product(ndim, s->boxes.step), s->item_bytes);
    if (s->unit_bytes > limit && r->cli->memory_bytes)
        return over_limit(r, pair, s->unit_bytes);
    s->n_buffers = s->unit_bytes > limit / 2 ? 1 : 2;
    if (chunk && alike)
        align_to_source(s, chunk, limit / 2);
    grow = least(limit / 2, enough);
    widen(s, grow);
    s->buffer_bytes = cli_mul(cli_product(ndim, s->boxes.step), s->item_bytes);
    return CLI_OK;
}
