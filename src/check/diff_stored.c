/*
 * check/diff_stored.c - compares huge arrays by the chunks that are stored, whatever the
 * grids of the two: the stored chunks of the first array, and those of the second where
 * the first has none. All elements that neither has stored are the fill value, so the
 * comparison of one of them is enough.
 * Thread class: plain functions.
 */
#include "array/array.h"
#include "check/diff_int.h"

#include <string.h>

enum {
    DIFF_SPARSE_PART = 4,       /* if more than 1/4 is stored, large boxes are faster */
    DIFF_MOST_CHUNKS = 4 << 20, /* more chunks take too much memory */
    DIFF_FEW_ITEMS = 4096       /* boxes without known chunks are not cut further */
};

/* ---- where chunks are ---- */

/* The dimensions that a selection drops have one element, and so they cannot be cut. Any
 * other dimension of one element may therefore take the place of a dropped one. */
static bool place_side(struct zr_diff_side *s, const zarr_selection *region,
                       const uint64_t *shape)
{
    const int32_t rank = zarr_array_ndim(s->array);
    int32_t from = 0;

    memcpy(s->extent, zarr_array_shape(s->array), (size_t)rank * sizeof *s->extent);
    if (region && !zr_selection_is_box(region, s->base, s->extent))
        return false;
    for (int32_t d = 0; d < s->ndim; d++) {
        int32_t left = s->ndim - d;

        while (from < rank && s->extent[from] != shape[d] && rank - from > left)
            from++;
        if (from == rank || s->extent[from] != shape[d])
            return false;
        s->dim[d] = from++;
    }
    return true;
}

void zr_diff_side_init(struct zr_diff_side *s, const struct zr_comparing *c, int side)
{
    const zarr_array *array = c->p->array[side];
    const uint64_t *inner = zarr_array_chunk_shape(array);
    const uint64_t *outer = zarr_array_block_shape(array);
    const size_t bytes = (size_t)zarr_array_ndim(array) * sizeof *inner;

    s->array = array;
    s->grid = zr_array_grid(array);
    s->ndim = c->ndim;
    s->placed = place_side(s, c->p->selection[side], c->shape);
    if (inner)
        memcpy(s->inner, inner, bytes);
    s->has_one_index = zr_array_has_one_index(array);
    s->has_inner = inner && !(outer && memcmp(inner, outer, bytes) == 0);
    zr_coord_set_init(&s->stored, zarr_array_ndim(array), c->p->d->ctx->alloc);
}

/* Finds the chunk of a coordinate of the array, along one dimension. */
static uint64_t chunk_at(const struct zr_diff_side *s, bool is_inner, int32_t d,
                         uint64_t at, uint64_t *origin, uint64_t *size)
{
    uint64_t n;

    if (is_inner) {
        n = at / s->inner[d];
        *origin = n * s->inner[d];
        *size = s->inner[d];
    } else {
        n = zr_grid_locate(s->grid, d, at);
        zr_grid_extent(s->grid, d, n, origin, size);
    }
    return n;
}

static bool cut_at(const struct zr_diff_side *s, bool is_inner,
                   const struct zr_diff_box *b, int32_t *dim, uint64_t *at)
{
    uint64_t most = 0, origin, size;

    for (int32_t r = 0; r < s->ndim; r++) {
        const int32_t d = s->dim[r];
        const uint64_t lo = s->base[d] + b->start[r], hi = lo + b->count[r] - 1;
        const uint64_t first = chunk_at(s, is_inner, d, lo, &origin, &size);
        const uint64_t n = chunk_at(s, is_inner, d, hi, &origin, &size) - first;

        if (n <= most)
            continue;
        most = n;
        *dim = r;
        if (is_inner)
            origin = (first + (n + 1) / 2) * s->inner[d];
        else
            zr_grid_extent(s->grid, d, first + (n + 1) / 2, &origin, &size);
        *at = origin - s->base[d];
    }
    return most > 0;
}

bool zr_diff_cut(const struct zr_diff_side *s, const struct zr_diff_box *b,
                 const zarr_error *why, int32_t *dim, uint64_t *at)
{
    const bool whole = s->has_one_index && why->part[ZARR_ERROR_CHUNK].bytes == 0;

    if (s->placed)
        return cut_at(s, false, b, dim, at) ||
               (s->has_inner && !whole && cut_at(s, true, b, dim, at));
    if (b->n_items <= DIFF_FEW_ITEMS)
        return false;
    *dim = 0;
    for (int32_t r = 1; r < s->ndim; r++)
        if (b->count[r] > b->count[*dim])
            *dim = r;
    *at = b->start[*dim] + b->count[*dim] / 2;
    return b->count[*dim] > 1;
}

static bool is_stored(const struct zr_coord_set *s, const uint64_t *chunk)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const uint64_t *row = zr_coord_set_item(s, mid);
        int32_t d = 0;

        while (d < s->ndim && row[d] == chunk[d])
            d++;
        if (d == s->ndim)
            return true;
        if (row[d] < chunk[d])
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}

bool zr_diff_covers(const struct zr_diff_side *s, const uint64_t *at, uint64_t *skip)
{
    uint64_t where[ZARR_MAX_RANK], chunk[ZARR_MAX_RANK] = {0}, origin, size;
    const int32_t last = s->ndim > 0 ? s->dim[s->ndim - 1] : -1;

    memcpy(where, s->base, sizeof where);
    for (int32_t r = 0; r < s->ndim; r++)
        where[s->dim[r]] += at[r];
    for (int32_t d = 0; d < s->stored.ndim; d++) {
        chunk[d] = chunk_at(s, s->is_inner, d, where[d], &origin, &size);
        if (d == last && skip)
            *skip = origin + size - where[d];
    }
    return is_stored(&s->stored, chunk);
}

/* Goes on in C order, n elements along the last dimension. False: that was the end. */
static bool box_step(const struct zr_diff_box *b, int32_t ndim, uint64_t *at, uint64_t n)
{
    int32_t d = ndim - 1;

    at[d] = n < b->start[d] + b->count[d] - at[d] ? at[d] + n : b->start[d] + b->count[d];
    while (at[d] == b->start[d] + b->count[d]) {
        at[d] = b->start[d];
        if (--d < 0)
            return false;
        at[d]++;
    }
    return true;
}

uint64_t zr_diff_count_uncovered(const struct zr_diff_side *s,
                                 const struct zr_diff_box *b)
{
    const int32_t last = s->ndim - 1;
    uint64_t at[ZARR_MAX_RANK], n = 0, skip = 1;

    memcpy(at, b->start, sizeof at);
    do {
        const bool covered = zr_diff_covers(s, at, &skip);

        skip = ZR_MIN(skip, b->start[last] + b->count[last] - at[last]);
        n += covered ? 0 : skip;
    } while (box_step(b, s->ndim, at, skip));
    return n;
}

/* The part of a stored chunk that is compared. False: there is none. */
static bool stored_box(const struct zr_diff_side *s, size_t i, struct zr_diff_box *out)
{
    const uint64_t *chunk = zr_coord_set_item(&s->stored, i);
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK];

    for (int32_t d = 0; d < s->stored.ndim; d++) {
        const uint64_t from = s->base[d], to = from + s->extent[d];
        uint64_t origin = s->is_inner ? chunk[d] * s->inner[d] : 0, end, size;

        if (!s->is_inner)
            zr_grid_extent(s->grid, d, chunk[d], &origin, &size);
        else
            size = s->inner[d];
        end = ZR_MIN(zr_add_cap(origin, size), to);
        origin = ZR_MAX(origin, from);
        if (origin >= end)
            return false;
        start[d] = origin - from;
        count[d] = end - origin;
    }
    for (int32_t r = 0; r < s->ndim; r++) {
        out->start[r] = start[s->dim[r]];
        out->count[r] = count[s->dim[r]];
    }
    out->n_items = zr_product_cap(out->count, (size_t)s->ndim);
    return true;
}

/* ---- the listing ---- */

struct stored_chunks {
    struct zr_diff_side *s;
    uint64_t n_items, most;
    bool many, is_inner;
    zarr_status st;
    zarr_error *err;
};

static int add_stored_chunk(void *user, const zarr_block_info *chunk)
{
    struct stored_chunks *l = user;
    struct zr_coord_set *stored = &l->s->stored;
    struct zr_diff_box b;

    if (l->is_inner && !chunk->is_chunk) {
        l->many = true;
        return 1;
    }
    l->st = zr_coord_set_add(stored, chunk->coordinates, l->err);
    if (l->st == ZARR_OK && stored->n > 0) {
        if (stored_box(l->s, stored->n - 1, &b))
            l->n_items = zr_add_cap(l->n_items, b.n_items);
        else
            stored->n--; /* outside the region */
    }
    l->many = l->n_items > l->most || stored->n > DIFF_MOST_CHUNKS;
    return l->st != ZARR_OK || l->many;
}

/* *few false: the chunks have more than `most` elements, or cannot be listed. */
static zarr_status list_side(struct zr_comparing *c, int side, bool is_inner,
                             uint64_t *most, bool *few, zarr_error *err)
{
    struct zr_diff_side *s = &c->side[side];
    struct stored_chunks l = {.s = s, .most = *most, .is_inner = is_inner, .err = err};
    const zarr_io_options io = {.struct_size = sizeof io, .cancel = c->p->d->opts.cancel};
    zarr_error why = {0};
    zarr_status st;

    s->is_inner = is_inner;
    s->stored.n = 0;
    st = zarr_array_list_blocks(c->p->array[side],
                                is_inner ? ZARR_BLOCKS_CHUNKS : ZARR_BLOCKS_STORED,
                                add_stored_chunk, &l, &io, &why);
    if (st == ZARR_ERR_NO_MEMORY || st == ZARR_ERR_CANCELLED)
        return zr_pass(err, st, &why);
    *few = st == ZARR_OK && !l.many;
    if (*few)
        *most -= l.n_items;
    zr_coord_set_sort(&s->stored);
    return l.st;
}

/* Lists the chunks of shards if the shards alone have too many elements for one box. */
static zarr_status list_stored(struct zr_comparing *c, int side, uint64_t *most,
                               bool *few, zarr_error *err)
{
    const uint64_t before = *most;
    uint64_t left = before;
    zarr_status st = list_side(c, side, false, most, few, err);

    if (st || !c->side[side].has_inner || (*few && before - *most <= c->most))
        return st;
    st = list_side(c, side, true, &left, few, err);
    if (st == ZARR_OK && *few)
        *most = left;
    else if (st == ZARR_OK) { /* such as an index that cannot be read */
        *most = before;
        st = list_side(c, side, false, most, few, err);
    }
    return st;
}

zarr_status zr_diff_find_stored(struct zr_comparing *c, bool *few, zarr_error *err)
{
    const uint64_t total = zr_product_cap(c->shape, (size_t)c->ndim);
    uint64_t most = total / DIFF_SPARSE_PART;

    *few = false;
    if (total <= c->most || c->ndim == 0 || !c->side[0].placed || !c->side[1].placed)
        return ZARR_OK;
    for (int side = 0; side < 2; side++) {
        ZR_CHECK(list_stored(c, side, &most, few, err));
        if (!*few)
            return ZARR_OK;
    }
    return ZARR_OK;
}

/* ---- the comparison ---- */

static zarr_status compare_chunk(struct zr_comparing *c, const struct zr_diff_box *chunk,
                                 zarr_error *err)
{
    struct zr_box_walk boxes;
    struct zr_diff_box b;
    zarr_status st = ZARR_OK;

    if (c->done && zr_diff_count_uncovered(c->done, chunk) == 0)
        return ZARR_OK;
    zr_box_walk_init(&boxes, c->ndim, chunk->count, NULL, c->most);
    while (st == ZARR_OK && !zr_diff_is_decided(c) && zr_box_walk_next(&boxes)) {
        for (int32_t d = 0; d < c->ndim; d++)
            b.start[d] = chunk->start[d] + boxes.start[d];
        memcpy(b.count, boxes.count, sizeof b.count);
        b.n_items = boxes.n_items;
        st = zr_diff_box(c, &b, err);
    }
    return st;
}

/* Finds the next element, from `at` on, that no chunk covers. */
static bool find_uncovered(const struct zr_comparing *c, const struct zr_diff_box *all,
                           uint64_t *at)
{
    uint64_t skip = 1;

    while (zr_diff_covers(&c->side[0], at, &skip) ||
           zr_diff_covers(&c->side[1], at, &skip))
        if (!box_step(all, c->ndim, at, skip))
            return false;
    return true;
}

/* Compares an element that neither array has stored, and counts it as all of them, also
 * if it cannot be read. If it differs, others are compared, as many as the caller wants
 * to hear of. */
static zarr_status compare_missing(struct zr_comparing *c, zarr_error *err)
{
    struct zr_diff_pair *p = c->p;
    struct zr_diff_box all = {.n_items = zr_product_cap(c->shape, (size_t)c->ndim)};
    struct zr_diff_box one = {.n_items = 1};
    const uint64_t before = p->node.n_different, elements = p->node.n_elements;
    const uint64_t unread = p->node.n_unread, bytes = p->d->done_bytes;
    uint64_t left, each = 0, *n = NULL;

    left = all.n_items > c->n_seen ? all.n_items - c->n_seen : 0;
    memcpy(all.count, c->shape, sizeof all.count);
    for (int32_t d = 0; d < c->ndim; d++)
        one.count[d] = 1;
    c->done = NULL;
    for (bool more = left > 0; more && find_uncovered(c, &all, one.start);
         more = each > 0 && p->n_told < p->d->opts.max_elements &&
                !zr_diff_is_decided(c) && box_step(&all, c->ndim, one.start, 1)) {
        ZR_CHECK(zr_diff_box(c, &one, err));
        each = each ? each : p->node.n_different - before;
    }
    p->node.n_different = zr_add_cap(before, zr_mul_cap(left, each));
    n = p->node.n_unread > unread ? &p->node.n_unread : &p->node.n_elements;
    p->node.n_elements = elements;
    p->node.n_unread = unread;
    *n = zr_add_cap(*n, zr_mul_cap(left, p->n_values));
    p->d->done_bytes = zr_add_cap(bytes, zr_mul_cap(left, c->item_bytes));
    zr_diff_progress(p->d, zr_str_text(&p->path[0]));
    return ZARR_OK;
}

/* Whether x comes before y in C order of where they begin. */
static bool box_is_before(const struct zr_diff_box *x, const struct zr_diff_box *y,
                          int32_t ndim)
{
    for (int32_t d = 0; d < ndim; d++)
        if (x->start[d] != y->start[d])
            return x->start[d] < y->start[d];
    return true;
}

zarr_status zr_diff_sparse(struct zr_comparing *c, zarr_error *err)
{
    struct zr_diff_box box[2] = {{.n_items = 0}, {.n_items = 0}};
    size_t next[2] = {0, 0};
    bool have[2] = {false, false};

    while (!zr_diff_is_decided(c)) {
        int side;

        for (side = 0; side < 2; side++)
            while (!have[side] && next[side] < c->side[side].stored.n)
                have[side] = stored_box(&c->side[side], next[side]++, &box[side]);
        if (!have[0] && !have[1])
            break;
        side = !have[0] || (have[1] && !box_is_before(&box[0], &box[1], c->ndim));
        c->done = side ? &c->side[0] : NULL;
        ZR_CHECK(compare_chunk(c, &box[side], err));
        have[side] = false;
    }
    if (!zr_diff_is_decided(c))
        ZR_CHECK(compare_missing(c, err));
    return ZARR_OK;
}
