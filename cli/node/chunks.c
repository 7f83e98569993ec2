/*
 * node/chunks.c - lists of chunks, or of boxes: coordinates in C order, each once.
 */
#include "node/work.h"

#include <stdlib.h>
#include <string.h>

/* Rows of ndim coordinates, the number in front of them: qsort() hands nothing over. */
static int compare_rows(const void *a, const void *b)
{
    const uint64_t *p = a, *q = b;

    for (uint64_t d = 1; d <= p[0]; d++)
        if (p[d] != q[d])
            return p[d] < q[d] ? -1 : 1;
    return 0;
}

void cli_chunks_sort(struct cli_chunks *s)
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

void cli_chunks_add(struct cli_chunks *s, const uint64_t *at)
{
    const size_t ndim = (size_t)s->ndim, bytes = ndim * sizeof *at;

    if (s->n && memcmp(s->at + (s->n - 1) * ndim, at, bytes) == 0)
        return; /* boxes of neighbours are often the same */
    if (s->n == s->cap) {
        cli_chunks_sort(s); /* may leave few */
        if (s->n >= s->cap / 2) {
            s->cap = s->cap ? s->cap * 2 : 256;
            s->at = cli_realloc(s->at, s->cap * bytes);
        }
    }
    memcpy(s->at + s->n++ * ndim, at, bytes);
}

static int add_chunk(void *user, const zarr_chunk_info *chunk)
{
    cli_chunks_add(user, chunk->chunk);
    return cli_cancel;
}

bool cli_chunks_stored(struct cli_chunks *s, zarr_array *array)
{
    return zarr_array_chunk_list(array, ZARR_CHUNKS_OBJECTS, add_chunk, s, NULL) ==
               ZARR_OK &&
           !cli_cancel;
}

void cli_chunks_free(struct cli_chunks *s)
{
    free(s->at);
    *s = (struct cli_chunks){NULL, 0, 0, 0};
}

bool cli_same_fill(const zarr_array *a, const zarr_array *b)
{
    char *p, *q;
    bool same;

    if (!zarr_array_fill_value(a) && !zarr_array_fill_value(b))
        return true; /* both read as zeros */
    p = cli_fill_text(zarr_array_dtype(a), zarr_array_fill_value(a), NULL);
    q = cli_fill_text(zarr_array_dtype(b), zarr_array_fill_value(b), NULL);
    same = p && q && strcmp(p, q) == 0;

    free(p);
    free(q);
    return same;
}
