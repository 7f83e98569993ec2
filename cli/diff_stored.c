/*
 * diff_stored.c - the chunks in which two arrays can differ at all. Where both
 * are whole, on one grid and of one fill value, a chunk that neither has stored
 * is equal: huge arrays with few chunks are compared by these alone.
 */
#include "diff.h"

#include <stdlib.h>
#include <string.h>

enum {
    FEW_CHUNKS = 4096, /* of a grid: not worth a listing */
    SPARSE_PART = 4    /* at most 1/4 of the grid is stored, else boxes are better */
};

static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static bool same_fill(const struct diff_pair *p)
{
    const zarr_dtype *type = zarr_array_dtype(p->a);
    char *a = cli_fill_text(type, zarr_array_fill_value(p->a), NULL);
    char *b = cli_fill_text(type, zarr_array_fill_value(p->b), NULL);
    const bool same = same_text(a, b);

    free(a);
    free(b);
    return same;
}

static uint64_t grid_count(const zarr_array *array)
{
    uint64_t counts[ZARR_MAX_RANK];

    zarr_array_chunk_counts(array, counts);
    return cli_product(zarr_array_ndim(array), counts);
}

static int add_chunk(void *user, const zarr_chunk_info *chunk)
{
    struct diff_chunks *s = user;
    const size_t bytes = (size_t)s->ndim * sizeof *s->at;

    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 256;
        s->at = cli_realloc(s->at, s->cap * bytes);
    }
    memcpy(s->at + s->n++ * (size_t)s->ndim, chunk->chunk, bytes);
    return cli_cancel;
}

/* Rows of ndim coordinates, the number in front of them: qsort() hands nothing over. */
static int compare_rows(const void *a, const void *b)
{
    const uint64_t *p = a, *q = b;

    for (uint64_t d = 1; d <= p[0]; d++)
        if (p[d] != q[d])
            return p[d] < q[d] ? -1 : 1;
    return 0;
}

/* C order, each once. */
static void sort_chunks(struct diff_chunks *s)
{
    const size_t ndim = (size_t)s->ndim, width = ndim + 1;
    uint64_t *rows = cli_alloc((s->n ? s->n : 1) * width * sizeof *rows);
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        rows[i * width] = ndim;
        memcpy(rows + i * width + 1, s->at + i * ndim, ndim * sizeof *rows);
    }
    qsort(rows, s->n, width * sizeof *rows, compare_rows);
    for (size_t i = 0; i < s->n; i++) {
        const uint64_t *row = rows + i * width;

        if (i == 0 || compare_rows(row - width, row) != 0)
            memcpy(s->at + n++ * ndim, row + 1, ndim * sizeof *rows);
    }
    s->n = n;
    free(rows);
}

bool cli_diff_stored(const struct diff_pair *p, struct diff_chunks *out)
{
    const struct diff *d = p->d;
    const uint64_t total = grid_count(p->a);
    bool ok;

    *out = (struct diff_chunks){.ndim = zarr_array_ndim(p->a)};
    if (d->nan_differs || d->a.region || d->b.region || total <= FEW_CHUNKS ||
        !same_text(zarr_array_chunk_grid(p->a), zarr_array_chunk_grid(p->b)) ||
        !same_fill(p))
        return false;
    ok =
        zarr_array_chunk_list(p->a, ZARR_CHUNKS_OBJECTS, add_chunk, out, NULL) ==
            ZARR_OK &&
        zarr_array_chunk_list(p->b, ZARR_CHUNKS_OBJECTS, add_chunk, out, NULL) == ZARR_OK;
    if (ok)
        sort_chunks(out);
    if (ok && out->n <= total / SPARSE_PART)
        return true;
    cli_diff_chunks_free(out);
    return false;
}

void cli_diff_chunks_free(struct diff_chunks *chunks)
{
    free(chunks->at);
    *chunks = (struct diff_chunks){NULL, 0, 0, 0};
}
