/*
 * unit/select/test_model.c - projection against brute force. A random selection
 * of a random small array is made twice: by the library, and as a plain map
 * from flat result position to flat array position, computed by the most naive
 * means. Then every (chunk, result) pair of every projection is checked
 * against the map, two levels of inner projections included, as are order,
 * count, `valid` and `whole`.
 *
 * A failing case prints its seed: ZR_SEED=<seed> ZR_CASES=1 runs it alone.
 */
#include "sanitizers.h"
#include "unit/select/selection_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_LEVELS = 3
};

struct example {
    struct rng rng;
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK];
    struct zr_grid grid;
    struct both both;
    uint32_t *stamp; /* for each result item: the stamp of the projection, one level up,
                        that contained it */
    uint32_t n_stamps;
};

/* The position of a level's chunks in the array. */
struct place {
    uint8_t dim[ZARR_MAX_RANK];   /* array dimension of each dimension of the chunk */
    uint64_t base[ZARR_MAX_RANK]; /* array coordinates of its parent's origin */
    uint64_t end[ZARR_MAX_RANK];  /* the end of parent or array */
};

struct level {
    struct zr_projector *p;
    uint64_t edge[ZARR_MAX_RANK];
    uint8_t order[ZARR_MAX_RANK];
};

/* ---- random arrays and grids ---------------------------------------------- */

static void random_shape(struct example *x)
{
    struct rng *r = &x->rng;

    x->ndim = rng_chance(r, 3) ? ZARR_MAX_RANK : (int32_t)rng_below(r, 6);
    for (int32_t d = 0; d < x->ndim; d++)
        x->shape[d] = x->ndim == ZARR_MAX_RANK ? 1 : 1 + rng_below(r, 13);
    for (int i = 0; x->ndim == ZARR_MAX_RANK && i < 6; i++)
        x->shape[rng_below(r, ZARR_MAX_RANK)] = 1 + rng_below(r, 3);
    while (product(x->shape, x->ndim) > MAX_ITEMS)
        x->shape[rng_below(r, (uint64_t)x->ndim)] = 2;
    if (x->ndim == 1)
        x->shape[0] = 1 + rng_below(r, 60);
    if (x->ndim > 0 && rng_chance(r, 3))
        x->shape[rng_below(r, (uint64_t)x->ndim)] = 0;
}

/* The tests' own grid, or the library's: their configurations differ only in the
 * outermost member. */
static void random_rect(struct example *x, const struct zr_grid_registry *registry)
{
    bool own = rng_chance(&x->rng, 50);
    struct zr_str text;

    zr_str_init(&text, NULL);
    zr_str_puts(&text, own ? "{\"edges\":[" : "{\"kind\":\"inline\",\"chunk_shapes\":[");
    for (int32_t d = 0; d < x->ndim; d++) {
        uint64_t end = 0;
        zr_str_puts(&text, d ? ",[" : "[");
        while (end < x->shape[d] || rng_chance(&x->rng, 20) || end == 0) {
            uint64_t edge = 1 + rng_below(&x->rng, 6);
            zr_str_printf(&text, "%s%" PRIu64, end ? "," : "", edge);
            end += edge;
        }
        zr_str_puts(&text, "]");
    }
    zr_str_puts(&text, "]}");
    assert_int_equal(grid_make(&x->grid, registry, x->ndim, x->shape,
                               own ? "test.rect" : "rectilinear", zr_str_text(&text),
                               NULL),
                     ZARR_OK);
    zr_str_deinit(&text);
}

static void random_regular(struct example *x)
{
    uint64_t edge[ZARR_MAX_RANK];

    for (int32_t d = 0; d < x->ndim; d++)
        edge[d] = 1 + rng_below(&x->rng, rng_chance(&x->rng, 50) ? 4 : x->shape[d] + 3);
    assert_int_equal(
        zr_grid_init_regular(&x->grid, x->ndim, x->shape, edge, "chunk_shape", NULL),
        ZARR_OK);
}

/* ---- checking one projection ---------------------------------------------- */

/* The i-th pair of a projection of dimensions or points. */
static void pair(const struct zr_projection *q, const struct both *b, uint64_t i,
                 const uint64_t *at, uint64_t *c, uint64_t *r)
{
    uint64_t result[ZARR_MAX_RANK] = {0};

    if (q->kind == ZR_PROJ_POINTS) {
        memcpy(c, q->c_points + i * (uint64_t)q->ndim, (size_t)q->ndim * sizeof *c);
        *r = q->r_points[i];
        return;
    }
    for (int32_t d = 0; d < q->ndim; d++) {
        const struct zr_piece *piece = &q->dim[d];
        uint64_t in_result;
        assert_int_equal(piece->c_list == NULL, piece->r_list == NULL);
        c[d] = piece->c_list ? piece->c_list[at[d]]
                             : piece->c0 + at[d] * (uint64_t)piece->c_step;
        in_result = piece->r_list ? piece->r_list[at[d]]
                                  : piece->r0 + at[d] * (uint64_t)piece->r_step;
        if (piece->result_dim >= 0)
            result[piece->result_dim] = in_result;
        else
            assert_int_equal(piece->n, 1);
    }
    *r = flatten(result, b->shape, b->ndim);
}

static void check_pieces(const struct zr_projection *q)
{
    bool arithmetic = true;

    for (int32_t d = 0; d < q->ndim; d++) {
        const struct zr_piece *piece = &q->dim[d];
        assert_true(piece->n > 0);
        if (piece->c_list) {
            arithmetic = false;
            for (uint64_t i = 1; i < piece->n; i++) /* a stable sort */
                assert_true(piece->r_list[i] > piece->r_list[i - 1]);
        } else {
            assert_true(piece->c_step >= 1);
            if (piece->n == 1)
                assert_true(piece->c_step == 1 && piece->r_step == 1);
        }
    }
    assert_int_equal(q->arithmetic, arithmetic);
}

/* Walks all elements of the chunk that exist, and computes their extent. */
static uint64_t count_valid(const struct zr_projection *q, const struct place *w)
{
    uint64_t n = 1;

    for (int32_t d = 0; d < q->ndim; d++) {
        uint64_t valid = 0;
        for (uint64_t c = 0; c < q->shape[d]; c++)
            valid += w->base[w->dim[d]] + q->origin[d] + c < w->end[w->dim[d]];
        assert_int_equal(q->valid[d], valid);
        n *= valid;
    }
    return n;
}

/*
 * Every pair must be in the map, inside the chunk, in the outer projection (stamp
 * `outer`), and must occur once. The stamp becomes `mine`.
 */
static void check_pairs(struct example *x, const struct zr_projection *q,
                        const struct place *w, uint32_t outer, uint32_t mine)
{
    const struct both *b = &x->both;
    uint64_t n[ZARR_MAX_RANK], at[ZARR_MAX_RANK] = {0}, c[ZARR_MAX_RANK],
                               a[ZARR_MAX_RANK];
    uint64_t r = 0, distinct = 0, last = 0, stored = 1;
    uint8_t *seen = must_alloc(product(x->shape, x->ndim), 1);

    for (int32_t d = 0; d < q->ndim; d++)
        n[d] = q->kind == ZR_PROJ_DIMS ? q->dim[d].n : 1;
    if (q->kind == ZR_PROJ_DIMS)
        assert_int_equal(product(n, q->ndim), q->n_items);
    else
        assert_int_equal(q->n_points, q->n_items);
    for (uint64_t i = 0; i < q->n_items; i++) {
        pair(q, b, i, at, c, &r);
        for (int32_t d = 0; d < q->ndim; d++) {
            assert_true(c[d] < q->valid[d]);
            a[w->dim[d]] = w->base[w->dim[d]] + q->origin[d] + c[d];
        }
        assert_true(r < b->n);
        assert_int_equal(b->map[r], flatten(a, x->shape, x->ndim));
        assert_int_equal(x->stamp[r], outer);
        x->stamp[r] = mine;
        distinct += !seen[b->map[r]];
        seen[b->map[r]] = 1;
        if (q->kind == ZR_PROJ_POINTS && i > 0)
            assert_true(r > last); /* a stable sort */
        last = r;
        turn(at, n, q->ndim);
    }
    free(seen);
    assert_int_equal(q->whole, distinct == q->n_items && distinct == count_valid(q, w));
    for (int32_t d = 0; d < q->ndim; d++)
        stored *= q->shape[d];
    assert_int_equal(q->full, q->whole && distinct == stored);
}

static void check_one(struct example *x, const struct zr_projection *q,
                      const struct place *w, uint32_t outer, uint32_t mine)
{
    assert_int_equal(q->ndim, x->ndim);
    if (q->kind == ZR_PROJ_DIMS)
        check_pieces(q);
    else
        assert_false(q->arithmetic);
    check_pairs(x, q, w, outer, mine);
}

/* Chunks come in C order, so no chunk comes twice. */
static void check_order(uint64_t *last, const struct zr_projection *q, bool first)
{
    int32_t d = 0;

    if (!first) {
        while (d < q->ndim && q->chunk[d] == last[d])
            d++;
        assert_true(d < q->ndim && q->chunk[d] > last[d]);
    }
    memcpy(last, q->chunk, sizeof q->chunk);
}

/* Grid coordinates, origin and shape agree with the edges of this level. */
static void check_cut(const struct example *x, const struct zr_projection *q,
                      const struct level *level, int depth)
{
    for (int32_t d = 0; d < q->ndim; d++) {
        uint64_t origin = q->chunk[d] * level->edge[d], size = level->edge[d];
        if (depth == 0) {
            assert_true(q->chunk[d] < zr_grid_n_chunks(&x->grid, d));
            zr_grid_extent(&x->grid, d, q->chunk[d], &origin, &size);
        }
        assert_int_equal(q->origin[d], origin);
        assert_int_equal(q->shape[d], size);
    }
}

/* ---- walking levels ------------------------------------------------------- */

static void walk(struct example *x, struct level *levels, int depth,
                 const struct place *w, uint32_t outer, uint64_t expected);

static void random_level(struct example *x, struct level *level,
                         const struct zr_projection *q)
{
    for (int32_t d = 0; d < q->ndim; d++)
        level->order[d] = (uint8_t)d;
    for (uint64_t d = (uint64_t)q->ndim; d > 1 && rng_chance(&x->rng, 70); d--) {
        uint64_t other = rng_below(&x->rng, d);
        uint8_t swap = level->order[d - 1];
        level->order[d - 1] = level->order[other];
        level->order[other] = swap;
    }
    for (int32_t d = 0; d < q->ndim; d++) {
        uint64_t whole = q->shape[level->order[d]];
        level->edge[d] = 1 + rng_below(&x->rng, whole);
        while (rng_chance(&x->rng, 90) && whole % level->edge[d])
            level->edge[d]--; /* usually divides the outer edge */
    }
}

static bool is_identity(const struct level *level, int32_t ndim)
{
    for (int32_t d = 0; d < ndim; d++)
        if (level->order[d] != d)
            return false;
    return true;
}

/* Projects q on its inner chunks and checks these projections against q. */
static void descend(struct example *x, struct level *levels, int depth,
                    const struct place *w, const struct zr_projection *q, uint32_t mine)
{
    struct level *level = &levels[depth + 1];
    struct place in = *w;
    uint64_t clip[ZARR_MAX_RANK];
    bool clipped = rng_chance(&x->rng, 30);
    zarr_status st;

    for (int32_t d = 0; d < q->ndim; d++)
        clip[d] = q->valid[d];
    if (level->p) {
        st = zr_project_reopen_inner(level->p, q, clipped ? clip : NULL, NULL);
    } else {
        random_level(x, level, q);
        bool plain = is_identity(level, q->ndim) && rng_chance(&x->rng, 50);
        st = zr_project_open_inner(&level->p, NULL, q, level->edge,
                                   plain ? NULL : level->order, clipped ? clip : NULL,
                                   NULL);
    }
    assert_int_equal(st, ZARR_OK);
    for (int32_t d = 0; d < q->ndim; d++) {
        uint8_t from = w->dim[level->order[d]];
        in.dim[d] = from;
    }
    for (int32_t d = 0; d < q->ndim; d++) {
        in.base[w->dim[d]] = w->base[w->dim[d]] + q->origin[d];
        in.end[w->dim[d]] = ZR_MIN(w->end[w->dim[d]], in.base[w->dim[d]] + q->shape[d]);
    }
    walk(x, levels, depth + 1, &in, mine, q->n_items);
}

static void walk(struct example *x, struct level *levels, int depth,
                 const struct place *w, uint32_t outer, uint64_t expected)
{
    struct zr_projector *p = levels[depth].p;
    struct zr_projection *q = must_alloc(1, sizeof *q);
    uint64_t last[ZARR_MAX_RANK], n = 0, items = 0;
    uint64_t rewinds = rng_chance(&x->rng, 20) ? 1 + rng_below(&x->rng, 3) : 0;

    for (uint64_t i = 0; i < rewinds && zr_project_next(p, q); i++)
        ;
    if (rewinds)
        zr_project_rewind(p);
    while (zr_project_next(p, q)) {
        uint32_t mine = ++x->n_stamps;
        check_order(last, q, n == 0);
        check_cut(x, q, &levels[depth], depth);
        check_one(x, q, w, outer, mine);
        items += q->n_items;
        n++;
        if (depth + 1 < N_LEVELS)
            descend(x, levels, depth, w, q, mine);
    }
    assert_false(zr_project_next(p, q));
    assert_int_equal(items, expected);
    assert_int_equal(zr_project_count(p), n);
    free(q);
}

/* ---- cases ---------------------------------------------------------------- */

/* A box has the start and count that it reports, and no other selection reports to be
 * one. */
static void check_box(const struct example *x)
{
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK], at[ZARR_MAX_RANK] = {0};
    uint64_t a[ZARR_MAX_RANK];

    if (!zr_selection_is_box(x->both.sel, start, count))
        return;
    assert_int_equal(product(count, x->ndim), x->both.n);
    for (uint64_t i = 0; i < x->both.n; i++) {
        for (int32_t d = 0; d < x->ndim; d++)
            a[d] = start[d] + at[d];
        assert_int_equal(x->both.map[i], flatten(a, x->shape, x->ndim));
        turn(at, count, x->ndim);
    }
}

/* Counting the chunks of a box needs no projector. */
static void check_count(const struct example *x, const struct zr_projector *p)
{
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK], n = UINT64_MAX;

    if (zr_project_count_box(&n, &x->grid, x->both.sel))
        assert_int_equal(n, zr_project_count(p));
    else
        assert_false(zr_selection_is_box(x->both.sel, start, count));
}

static void run_case(const struct zr_grid_registry *registry, uint64_t seed)
{
    struct example x = {.rng.state = seed};
    struct level levels[N_LEVELS] = {0};
    struct place w = {0};

    random_shape(&x);
    if (rng_chance(&x.rng, 30))
        random_rect(&x, registry);
    else
        random_regular(&x);
    random_selection(&x.rng, &x.both, x.ndim, x.shape);
    check_box(&x);
    x.stamp = must_alloc(x.both.n, sizeof *x.stamp);
    for (int32_t d = 0; d < x.ndim; d++) {
        w.dim[d] = (uint8_t)d;
        w.end[d] = x.shape[d];
    }
    assert_int_equal(zr_project_open(&levels[0].p, NULL, &x.grid, x.both.sel, NULL),
                     ZARR_OK);
    check_count(&x, levels[0].p);
    walk(&x, levels, 0, &w, 0, x.both.n);
    for (int i = 0; i < N_LEVELS; i++)
        zr_project_free(levels[i].p);
    free(x.stamp);
    both_free(&x.both);
    zr_grid_deinit(&x.grid);
}

static uint64_t running; /* seed of the current case */

/* An assertion leaves the case with longjmp: print the seed first. */
static int tell_seed(void **state)
{
    (void)state;
    if (running)
        printf("failed: ZR_SEED=%" PRIu64 " ZR_CASES=1\n", running);
    return 0;
}

static void test_projections_agree_with_brute_force(void **state)
{
    uint64_t seed = test_number("ZR_SEED", 20240607);
    uint64_t n = test_number("ZR_CASES", (uint64_t)(12000 / ZR_CASE_STEP));
    struct zr_grid_registry registry;

    (void)state;
    registry_make(&registry);
    for (uint64_t i = 0; i < n; i++) {
        running = seed + i;
        run_case(&registry, running);
    }
    running = 0;
    printf("%" PRIu64 " cases from seed %" PRIu64 "\n", n, seed);
    zr_grid_registry_deinit(&registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_projections_agree_with_brute_force, tell_seed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
