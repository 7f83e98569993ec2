/*
 * select/merge.c - several projectors of one grid as one. A heap holds the next chunk of
 * each; the chunk that comes first is given out once, with what each projector takes of
 * it. The memory is one projection for each projector.
 * Thread class: solo.
 */
#include "select/select_int.h"

#include <string.h>

enum {
    MERGE_COMPARED = 64 /* boxes that are compared with each other */
};

struct source {
    struct zr_projector *p; /* owned */
    struct zr_projection at;
};
struct zr_merge {
    const zarr_allocator *alloc;
    uint32_t room, n;
    struct source *source;
    /* heap of sources by chunk and number, followed by those of the current chunk */
    uint32_t *heap;
    uint32_t n_heap, n_taken;
    uint32_t *taken; /* their numbers are ascending */
};

zarr_status zr_merge_new(struct zr_merge **out, uint32_t n, const zarr_allocator *alloc,
                         zarr_error *err)
{
    struct zr_merge *m = zr_calloc(alloc, 1, sizeof *m);

    *out = NULL;
    if (!m)
        return zr_fail_memory(err, sizeof *m);
    m->alloc = alloc;
    m->room = n = ZR_MAX(n, 1u);
    m->source = zr_calloc(alloc, n, sizeof *m->source);
    m->heap = zr_calloc(alloc, n, sizeof *m->heap);
    m->taken = zr_calloc(alloc, n, sizeof *m->taken);
    if (!m->source || !m->heap || !m->taken) {
        zr_merge_free(m);
        return zr_fail_memory(err, n * sizeof *m->source);
    }
    *out = m;
    return ZARR_OK;
}

void zr_merge_free(struct zr_merge *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; m->source && i < m->room; i++)
        zr_project_free(m->source[i].p);
    zr_free(m->alloc, m->source);
    zr_free(m->alloc, m->heap);
    zr_free(m->alloc, m->taken);
    zr_free(m->alloc, m);
}

struct zr_projector **zr_merge_slot(struct zr_merge *m, uint32_t i)
{
    return &m->source[i].p;
}

uint32_t zr_merge_room(const struct zr_merge *m)
{
    return m->room;
}

/* ---- the heap -------------------------------------------------------------- */

static int compare_chunks(const struct zr_merge *m, uint32_t a, uint32_t b)
{
    const struct zr_projection *x = &m->source[a].at, *y = &m->source[b].at;

    return zr_keys_compare(x->chunk, y->chunk, (size_t)x->ndim);
}

static bool comes_before(const struct zr_merge *m, uint32_t a, uint32_t b)
{
    const int order = compare_chunks(m, a, b);

    return order < 0 || (order == 0 && a < b);
}

static void heap_push(struct zr_merge *m, uint32_t i)
{
    uint32_t at = m->n_heap++;

    for (; at > 0 && comes_before(m, i, m->heap[(at - 1) / 2]); at = (at - 1) / 2)
        m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = i;
}

static uint32_t heap_pop(struct zr_merge *m)
{
    const uint32_t first = m->heap[0], last = m->heap[--m->n_heap];
    uint32_t at = 0, child = 1;

    for (; child < m->n_heap; at = child, child = 2 * at + 1) {
        child +=
            child + 1 < m->n_heap && comes_before(m, m->heap[child + 1], m->heap[child]);
        if (!comes_before(m, m->heap[child], last))
            break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = last;
    return first;
}

static void step(struct zr_merge *m, uint32_t i)
{
    if (zr_project_next(m->source[i].p, &m->source[i].at))
        heap_push(m, i);
}

void zr_merge_start(struct zr_merge *m, uint32_t n)
{
    m->n = n;
    m->n_heap = m->n_taken = 0;
    for (uint32_t i = 0; i < n; i++)
        step(m, i);
}

void zr_merge_rewind(struct zr_merge *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        zr_project_rewind(m->source[i].p);
    zr_merge_start(m, m->n);
}

uint64_t zr_merge_count(const struct zr_merge *m)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < m->n; i++)
        if (!zr_add(n, zr_project_count(m->source[i].p), &n))
            return UINT64_MAX;
    return n;
}

/* ---- one chunk ------------------------------------------------------------- */

static bool is_plain_box(const struct zr_projection *p)
{
    if (p->kind != ZR_PROJ_DIMS || !p->arithmetic)
        return false;
    for (int32_t d = 0; d < p->ndim; d++)
        if (p->dim[d].n > 1 && p->dim[d].c_step != 1)
            return false;
    return true;
}

static bool boxes_meet(const struct zr_projection *a, const struct zr_projection *b)
{
    for (int32_t d = 0; d < a->ndim; d++) {
        const struct zr_piece *x = &a->dim[d], *y = &b->dim[d];

        if (x->c0 + x->n <= y->c0 || y->c0 + y->n <= x->c0)
            return false;
    }
    return true;
}

/* Whether boxes that do not overlap cover the chunk together, as far as it is inside the
 * array. */
static bool cover_together(const struct zr_merge *m)
{
    const struct zr_projection *first = &m->source[m->taken[0]].at;
    uint64_t want = 1, have = 0;

    if (m->n_taken > MERGE_COMPARED)
        return false;
    for (int32_t d = 0; d < first->ndim; d++)
        want = zr_mul_cap(want, first->valid[d]);
    for (uint32_t i = 0; i < m->n_taken; i++)
        if (!zr_add(have, m->source[m->taken[i]].at.n_items, &have))
            return false;
    if (have != want || want == UINT64_MAX)
        return false;
    for (uint32_t i = 0; i < m->n_taken; i++) {
        const struct zr_projection *x = &m->source[m->taken[i]].at;

        if (!is_plain_box(x))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (boxes_meet(x, &m->source[m->taken[k]].at))
                return false;
    }
    return true;
}

/* Sets `whole` and `full` of the first projection for all together. */
static void merge_whole(const struct zr_merge *m, struct zr_projection *out)
{
    bool whole = false;

    for (uint32_t i = 0; i < m->n_taken && !whole; i++)
        whole = m->source[m->taken[i]].at.whole;
    out->whole = out->full = whole || cover_together(m);
    for (int32_t d = 0; d < out->ndim; d++)
        out->full = out->full && out->valid[d] == out->shape[d];
}

bool zr_merge_next(struct zr_merge *m, struct zr_projection *out)
{
    for (uint32_t i = 0; i < m->n_taken; i++)
        step(m, m->taken[i]);
    m->n_taken = 0;
    if (m->n_heap == 0)
        return false;
    do {
        m->taken[m->n_taken++] = heap_pop(m);
    } while (m->n_heap > 0 && compare_chunks(m, m->taken[0], m->heap[0]) == 0);
    for (uint32_t i = m->n_taken; i-- > 0;)
        m->source[m->taken[i]].at.next =
            i + 1 < m->n_taken ? &m->source[m->taken[i + 1]].at : NULL;
    *out = m->source[m->taken[0]].at;
    if (m->n_taken > 1)
        merge_whole(m, out);
    return true;
}
