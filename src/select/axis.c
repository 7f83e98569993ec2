/*
 * select/axis.c - one dimension of a projection: the pieces that a selection has in each
 * chunk it touches, in ascending chunk order. Arithmetic selections are never stored: the
 * number of its first item gives a piece by division. For steps up to a regular edge the
 * next chunk is the neighbour, so no division is needed. Lists walk the runs of their
 * bucket.
 * Thread class: solo.
 */
#include "select/select_int.h"

void zr_axis_set_arith(struct zr_axis *x, uint64_t n, uint64_t a0, int64_t step,
                       uint64_t r0, int64_t r_step)
{
    if (n < 2) {
        step = 1;
        r_step = 1;
    } else if (step < 0) { /* the same pairs, from the other end */
        a0 += (uint64_t)step * (n - 1);
        r0 += (uint64_t)r_step * (n - 1);
        step = -step;
        r_step = -r_step;
    }
    x->listed = false;
    x->n = n;
    x->a0 = a0;
    x->r0 = r0;
    x->step = (uint64_t)step;
    x->r_step = r_step;
}

/* Fills the piece that begins with item i, in the chunk already set. */
static void axis_fill(struct zr_axis *x, uint64_t i, uint64_t at)
{
    uint64_t c0 = at - x->origin;
    uint64_t room =
        x->size > c0 ? x->size - c0 : 1; /* otherwise the grid's answers are wrong */
    uint64_t n = x->step == 1 ? room : (room - 1) / x->step + 1;

    n = ZR_MIN(n, x->n - i);
    x->next = i + n;
    x->valid = zr_axis_valid(x, x->origin, x->size);
    x->whole = n == x->valid; /* distinct, so the count is equal only if these are all */
    x->piece.n = n;
    x->piece.c0 = c0;
    x->piece.r0 = x->r0 + (uint64_t)x->r_step * i;
    /* The step of a single item may be huge, so 1 replaces it: later products stay
     * small. */
    x->piece.c_step = n > 1 ? (int64_t)x->step : 1;
    x->piece.r_step = n > 1 ? x->r_step : 1;
}

static void axis_load_run(struct zr_axis *x, uint64_t run)
{
    const struct zr_bucket *b = &x->list;
    uint64_t start = b->start.ptr[run];

    x->next = run + 1;
    x->chunk = b->chunk.ptr[run];
    if (x->edge) {
        x->origin = x->chunk * x->edge;
        x->size = x->edge;
    } else {
        zr_grid_extent(x->grid, x->dim, x->chunk, &x->origin, &x->size);
    }
    x->valid = zr_axis_valid(x, x->origin, x->size);
    x->whole = b->whole.ptr[run] != 0;
    x->piece.n = b->start.ptr[run + 1] - start;
    x->piece.c_list = b->c.ptr + start;
    x->piece.r_list = b->r.ptr + start;
    x->piece.c0 = x->piece.c_list[0];
    x->piece.r0 = x->piece.r_list[0];
    x->piece.c_step = 0;
    x->piece.r_step = 0;
}

void zr_axis_first(struct zr_axis *x)
{
    x->piece = (struct zr_piece){.result_dim = x->result_dim};
    if (x->listed) {
        axis_load_run(x, 0);
        return;
    }
    zr_axis_cut(x, x->a0, &x->chunk, &x->origin, &x->size);
    axis_fill(x, 0, x->a0);
}

bool zr_axis_next(struct zr_axis *x)
{
    uint64_t i = x->next;
    uint64_t at;

    if (x->listed) {
        if (i == x->list.n_runs)
            return false;
        axis_load_run(x, i);
        return true;
    }
    if (i == x->n)
        return false;
    at = x->a0 + x->step * i;
    if (x->edge >= x->step && x->edge) { /* the steps skip no chunk */
        x->chunk++;
        x->origin += x->edge;
    } else {
        zr_axis_cut(x, at, &x->chunk, &x->origin, &x->size);
    }
    axis_fill(x, i, at);
    return true;
}

/* Between two steps there may be any number of irregular chunks: walk. */
static uint64_t axis_count_steps(const struct zr_axis *x)
{
    struct zr_axis walk = *x; /* without moving in a list */
    uint64_t n = 1;

    zr_axis_first(&walk);
    while (zr_axis_next(&walk))
        n++;
    return n;
}

uint64_t zr_axis_count(const struct zr_axis *x)
{
    uint64_t last;

    if (x->listed)
        return x->list.n_runs;
    if (x->n == 0)
        return 0;
    last = x->a0 + x->step * (x->n - 1);
    if (x->edge)
        return x->step > x->edge ? x->n : last / x->edge - x->a0 / x->edge + 1;
    if (x->step > 1)
        return axis_count_steps(x);
    return zr_grid_locate(x->grid, x->dim, last) -
           zr_grid_locate(x->grid, x->dim, x->a0) + 1;
}
