/*
 * diff/stored.c - the chunks in which two arrays can differ at all. Where both
 * are whole, on one grid and of one fill value, a chunk that neither has stored
 * is equal: huge arrays with few chunks are compared by these alone.
 */
#include "diff/diff.h"

#include <string.h>

enum {
    FEW_CHUNKS = 4096, /* of a grid: not worth a listing */
    SPARSE_PART = 4    /* at most 1/4 of the grid is stored, else boxes are better */
};

static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static uint64_t grid_count(const zarr_array *array)
{
    uint64_t counts[ZARR_MAX_RANK];

    zarr_array_chunk_counts(array, counts);
    return cli_product(zarr_array_ndim(array), counts);
}

bool cli_diff_stored(const struct diff_pair *p, struct cli_chunks *out)
{
    const struct diff *d = p->d;
    const uint64_t total = grid_count(p->a);

    *out = (struct cli_chunks){.ndim = zarr_array_ndim(p->a)};
    if (d->nan_differs ||
        !zarr_dtype_equal(zarr_array_dtype(p->a), zarr_array_dtype(p->b)) ||
        d->a.region || d->b.region || total <= FEW_CHUNKS ||
        !same_text(zarr_array_chunk_grid(p->a), zarr_array_chunk_grid(p->b)) ||
        !cli_same_fill(p->a, p->b))
        return false;
    if (cli_chunks_stored(out, p->a) && cli_chunks_stored(out, p->b)) {
        cli_chunks_sort(out);
        if (out->n <= total / SPARSE_PART)
            return true;
    }
    cli_chunks_free(out);
    return false;
}
