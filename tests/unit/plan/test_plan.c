/*
 * unit/plan/test_plan.c - plans over made-up indexes, compared with a model that lists
 * coordinates: each element of a selection is in exactly one item, at its place in the
 * chunk. Also layouts, the cuts between segments, valid and invalid indexes, and
 * explaining.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "unit/assert_call.h"
#include "unit/impl/impl_test.h"

enum {
    ROWS = 37,
    COLS = 29,
    NEST = 100000 /* the offset of an inner shard encodes its index entry */
};

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define TURN  "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"
#define SHARD(chunk, codecs)                                                             \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" chunk           \
    ",\"codecs\":[" codecs "],\"index_codecs\":[" BYTES "]}}"

static zarr_error terr;

struct env {
    struct impl_env impl;
    struct zr_grid_registry grids;
    struct zr_key_encoding keys;
    struct zr_grid grid;
    struct zr_chain *chain;
    struct zr_layout *layout;
    zarr_limits limits;
};

static void env_open(struct env *e, const char *codecs, const uint64_t *chunk)
{
    const uint64_t shape[2] = {ROWS, COLS};
    struct zr_layout_args args = {0};

    memset(e, 0, sizeof *e);
    assert_ok(impl_env_open(&e->impl, NULL, &terr));
    assert_ok(zr_grid_registry_init(&e->grids, NULL, &terr));
    assert_ok(zr_key_encoding_register(&e->grids, &zr_key_default, "core", &terr));
    assert_ok(zr_key_encoding_parse(&e->keys, &e->grids, "default", NULL, &terr));
    assert_ok(zr_grid_init_regular(&e->grid, 2, shape, chunk, "chunk_shape", &terr));
    assert_ok(codec_env_parse(&e->chain, &e->impl.codec, 3, codecs, NULL, &terr));
    e->limits.chunks_per_shard = 1 << 20;
    e->limits.chunk_bytes = 1 << 20;
    args.grid = &e->grid;
    args.chain = e->chain;
    args.keys = &e->keys;
    args.impls = &e->impl.impls;
    args.limits = &e->limits;
    args.device_type = ZARR_DEVICE_CPU;
    assert_ok(zr_dtype_find(&e->impl.codec.dtypes, "uint8", &args.dtype, NULL, &terr));
    assert_ok(
        zr_dtype_find(&e->impl.codec.dtypes, "uint64", &args.index_dtype, NULL, &terr));
    assert_ok(zr_layout_make(&e->layout, &args, NULL, &terr));
}

static void env_close(struct env *e)
{
    zr_layout_free(e->layout);
    zr_chain_free(e->chain);
    zr_grid_deinit(&e->grid);
    zr_key_encoding_deinit(&e->keys);
    zr_grid_registry_deinit(&e->grids);
    impl_env_close(&e->impl);
}

static const struct chain {
    const char *codecs;
    uint64_t chunk[2];
} chains[] = {
    {"[" BYTES "]", {6, 10}},
    {"[" TURN "," BYTES "]", {6, 10}},
    {"[" SHARD("[3,5]", BYTES) "]", {6, 10}},
    {"[" TURN "," SHARD("[5,3]", TURN "," BYTES) "]", {6, 10}},
    {"[" SHARD("[6,10]", SHARD("[3,2]", BYTES)) "]", {12, 20}},
    {"[" SHARD("[6,10]", TURN "," SHARD("[2,3]", BYTES)) "]", {12, 20}},
};

/* ---- layouts ---------------------------------------------------------------- */

static void test_layouts(void **state)
{
    struct env e;
    const struct zr_level *lv;

    (void)state;
    env_open(&e, chains[3].codecs, chains[3].chunk);
    assert_int_equal(e.layout->n_levels, 2);
    lv = &e.layout->level[0];
    assert_true(lv->is_shard && lv->permuted);
    assert_int_equal(lv->n_inner[0], 2); /* 10 / 5 */
    assert_int_equal(lv->n_inner[1], 2); /* 6 / 3 */
    assert_int_equal(lv->index_bytes, 4 * 16);
    assert_int_equal(zr_layout_leaf_shape(e.layout)[0], 3);
    assert_int_equal(zr_layout_leaf_shape(e.layout)[1], 5);
    env_close(&e);
    env_open(&e, chains[5].codecs, chains[5].chunk);
    assert_int_equal(e.layout->n_levels, 3);
    assert_int_equal(zr_layout_leaf_shape(e.layout)[0], 3);
    assert_int_equal(zr_layout_leaf_shape(e.layout)[1], 2);
    assert_int_equal(e.layout->level[2].decoded_bytes, 6);
    env_close(&e);
}

/* ---- the model ---------------------------------------------------------------- */

struct model {
    struct env *e;
    struct zr_view view;
    uint64_t n; /* elements of the result */
    bool is_points;
    const uint64_t *expect; /* r * COLS + c of each */
    uint8_t *hits;
    const struct zr_item *item;
    uint64_t base[2]; /* first element of the item's chunk in the array */
};

/* The first element of an item's chunk in the array, from the made-up offset of its
 * source. */
static void item_base(struct model *m, const struct zr_segment *segment)
{
    const struct zr_layout *l = m->e->layout;
    uint64_t id = m->item->offset, entry[2] = {0, 0}, chunk[2];
    const char *key = segment->shard ? segment->shard->key : segment->key;

    assert_true(zr_key_encoding_chunk(&m->e->keys, 2, key, chunk));
    m->base[0] = chunk[0] * l->grid->chunk_shape[0];
    m->base[1] = chunk[1] * l->grid->chunk_shape[1];
    entry[0] = l->n_levels == 3 ? id / NEST - 1 : id;
    entry[1] = id % NEST;
    for (uint32_t i = 0; i + 1 < l->n_levels; i++) {
        const struct zr_level *lv = &l->level[i], *in = &l->level[i + 1];
        uint64_t at[2] = {entry[i] / lv->n_inner[1], entry[i] % lv->n_inner[1]};

        for (int d = 0; d < 2; d++)
            m->base[in->to_array[d]] += at[d] * lv->inner_shape[d];
    }
}

static void hit(struct model *m, uint64_t view_at, uint64_t chunk_at)
{
    const struct zr_layout *l = m->e->layout;
    const struct zr_level *leaf = &l->level[l->n_levels - 1];
    const struct zr_program *p = leaf->decode;
    uint64_t stored[2] = {chunk_at / p->stored_shape[1], chunk_at % p->stored_shape[1]};
    uint64_t at[2] = {m->base[0], m->base[1]};

    assert_true(view_at < m->n);
    m->hits[view_at]++;
    if (m->item->bytes == ZR_ITEM_MISSING)
        return;
    for (int s = 0; s < 2; s++)
        at[leaf->to_array[p->order[s]]] += stored[s];
    assert_int_equal(at[0] * COLS + at[1], m->expect[view_at]);
}

static zarr_status each_box(void *arg, const zarr_box *box, zarr_error *err)
{
    uint64_t i[ZARR_MAX_RANK] = {0};

    (void)err;
    for (;;) {
        int64_t v = (int64_t)box->dst.mem.offset, c = (int64_t)box->src.mem.offset;
        int32_t d = box->ndim - 1;

        for (int32_t k = 0; k < box->ndim; k++) {
            v += (int64_t)i[k] * box->dst.stride[k];
            c += (int64_t)i[k] * box->src.stride[k];
        }
        hit(arg, (uint64_t)v, (uint64_t)c);
        while (d >= 0 && ++i[d] == box->shape[d])
            i[d--] = 0;
        if (d < 0)
            return ZARR_OK;
    }
}

static void check_run(struct model *m, const struct zr_wave *w,
                      const struct zr_segment *segment)
{
    uint64_t last = 0;

    for (uint32_t k = 0; k < segment->n_items; k++) {
        struct zr_boxes b = {.item_bytes = 1, .swap_unit = 1, .view = &m->view};

        m->item = segment->item[k];
        if (m->item->bytes != ZR_ITEM_MISSING) {
            b.program = w->level->decode;
            b.chunk_mem = zr_mem_of_host(NULL, w->level->decoded_bytes);
            item_base(m, segment);
        }
        if (segment->bytes != UINT64_MAX && segment->bytes != ZR_ITEM_MISSING) {
            assert_true(m->item->offset >= last && m->item->offset >= segment->offset);
            assert_true(m->item->offset + m->item->bytes <=
                        segment->offset + segment->bytes);
            last = m->item->offset;
        }
        assert_ok(zr_target_boxes(&b, &m->item->target, each_box, m, &terr));
    }
}

/* A shard with a made-up index. Some shards are missing, and some chunks of the
 * others. */
static void made_up_shard(struct env *e, struct zr_open *o, unsigned *seed)
{
    const struct zr_level *lv = &e->layout->level[o->level];
    uint64_t *pairs = zr_malloc(NULL, 2 * 64 * sizeof *pairs);
    struct zr_shard_pairs in = {.n = lv->n_inner_all, .shard_bytes = UINT64_MAX};
    bool nests = o->level + 2 < e->layout->n_levels;

    assert_non_null(pairs);
    assert_true(in.n <= 64);
    for (uint64_t i = 0; i < in.n; i++) {
        bool gone = rand_r(seed) % 5 == 0;

        pairs[2 * i] = gone ? ZR_INDEX_MISSING : nests ? (i + 1) * NEST : i;
        pairs[2 * i + 1] = gone ? ZR_INDEX_MISSING : 1;
    }
    if (!o->parent && rand_r(seed) % 5 == 0) {
        zr_free(NULL, pairs);
        pairs = NULL;
    }
    o->shard = zr_shard_new(NULL, o->key, o->lv->ndim, o->origin);
    if (o->parent) {
        o->shard->parent = zr_shard_ref(o->parent);
        o->shard->base = o->offset;
    }
    assert_ok(zr_shard_index_make(&o->shard->index, pairs, &in, NULL, &terr));
}

static void run_plan(struct model *m, const zarr_selection *sel, bool plain,
                     unsigned *seed)
{
    const struct zr_plan_args args = {.layout = m->e->layout,
                                      .prefix = "",
                                      .selection = sel,
                                      .wave_bytes = 64,
                                      .wave_items = 5,
                                      .segment_bytes = 8,
                                      .segment_gap = 2,
                                      .threads = 2,
                                      .plain = plain};
    struct zr_plan *p = NULL;
    struct zr_wave w;
    uint64_t total, n = 0;

    assert_ok(zr_plan_open(&p, &args, NULL, &terr));
    total = zr_plan_count(p);
    assert_true(zr_plan_count_sorts(p) == (m->is_points && m->e->layout->n_levels > 1));
    zr_wave_init(&w, NULL);
    do {
        assert_ok(zr_plan_next(p, &w, &terr));
        assert_true(w.n_items <= (plain ? 1 : 5) && w.n_opens <= 64);
        for (uint32_t i = 0; i < w.n_segments; i++) {
            check_run(m, &w, &w.segment[i]);
            for (uint32_t k = 0; k < w.segment[i].n_items; k++)
                n += w.segment[i].item[k]->n_chunks;
        }
        for (uint32_t i = 0; i < w.n_opens; i++)
            made_up_shard(m->e, &w.open[i], seed);
        assert_ok(zr_plan_resume(p, &w, &terr));
    } while (w.kind != ZR_WAVE_END);
    assert_int_equal(n, total);
    zr_wave_deinit(&w);
    zr_plan_free(p);
}

/* Coordinates along one dimension, counted by the test itself. */
static uint64_t dim_coords(const zarr_dim_selection *d, uint64_t len, uint64_t *out)
{
    uint64_t n = 0;

    if (d->kind == ZARR_DIM_LIST)
        for (; n < d->n_list; n++)
            out[n] = (uint64_t)d->list[n];
    else
        for (int64_t i = d->start; i < d->stop && i < (int64_t)len; i += d->step)
            out[n++] = (uint64_t)i;
    return n;
}

static void random_dim(zarr_dim_selection *d, int64_t *list, uint64_t len, unsigned *seed)
{
    *d = (zarr_dim_selection){.kind = ZARR_DIM_SLICE};
    d->start = (int64_t)((uint64_t)rand_r(seed) % len);
    d->stop = d->start + 1 + (int64_t)((uint64_t)rand_r(seed) % len);
    d->step = 1 + rand_r(seed) % 4;
    if (rand_r(seed) % 3 != 0)
        return;
    d->kind = ZARR_DIM_LIST;
    d->n_list = 1 + (uint64_t)rand_r(seed) % 12;
    d->list = list;
    for (uint64_t i = 0; i < d->n_list; i++)
        list[i] = (int64_t)((uint64_t)rand_r(seed) % len);
}

static void run_case(struct env *e, unsigned *seed)
{
    static uint64_t rows[64], cols[64], expect[64 * 64];
    static uint8_t hits[64 * 64];
    const uint64_t shape[2] = {ROWS, COLS};
    int64_t list[2][12], points[40];
    zarr_dim_selection dims[2];
    zarr_selection *sel = NULL;
    struct model m = {.e = e, .expect = expect, .hits = hits};

    if (rand_r(seed) % 4 == 0) {
        m.n = 20;
        m.is_points = true;
        for (uint64_t i = 0; i < 20; i++) {
            points[2 * i] = rand_r(seed) % ROWS;
            points[2 * i + 1] = rand_r(seed) % COLS;
            expect[i] = (uint64_t)(points[2 * i] * COLS + points[2 * i + 1]);
        }
        assert_ok(zarr_selection_points(&sel, 2, shape, 20, points, 0, NULL, &terr));
    } else {
        uint64_t n_rows, n_cols;

        random_dim(&dims[0], list[0], ROWS, seed);
        random_dim(&dims[1], list[1], COLS, seed);
        n_rows = dim_coords(&dims[0], ROWS, rows);
        n_cols = dim_coords(&dims[1], COLS, cols);
        m.n = n_rows * n_cols;
        for (uint64_t i = 0; i < m.n; i++)
            expect[i] = rows[i / n_cols] * COLS + cols[i % n_cols];
        assert_ok(zarr_selection_dims(&sel, 2, shape, 2, dims, &terr));
    }
    assert_int_equal(zarr_selection_n_items(sel), m.n);
    zr_view_contiguous(&m.view, zr_mem_of_host(NULL, m.n), zarr_selection_ndim(sel),
                       zarr_selection_shape(sel), 1, 0);
    for (int plain = 0; plain < 2; plain++) {
        memset(hits, 0, sizeof hits);
        run_plan(&m, sel, plain != 0, seed);
        for (uint64_t i = 0; i < m.n; i++)
            assert_int_equal(hits[i], 1);
    }
    zarr_selection_free(sel);
}

static void test_each_element_once(void **state)
{
    unsigned seed = 7;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(chains); i++) {
        struct env e;

        env_open(&e, chains[i].codecs, chains[i].chunk);
        for (int k = 0; k < 200; k++)
            run_case(&e, &seed);
        env_close(&e);
    }
}

/* ---- indexes -------------------------------------------------------------------- */

static void test_indexes(void **state)
{
    static const struct {
        uint64_t offset, bytes, shard_bytes, index_offset, index_bytes;
        zarr_status want;
    } cases[] = {
        {0, 84, 100, 84, 16, ZARR_OK},
        {0, 85, 100, 84, 16, ZARR_ERR_CORRUPT}, /* overlaps the index */
        {90, 11, 100, 0, 0, ZARR_ERR_CORRUPT},  /* beyond the end */
        {16, 84, 100, 0, 16, ZARR_OK},          /* index at start */
        {15, 1, 100, 0, 16, ZARR_ERR_CORRUPT},  /* the last byte of the index */
        {100, 0, 100, 84, 16, ZARR_OK},         /* no bytes, at the end */
        {UINT64_MAX, UINT64_MAX, 100, 84, 16, ZARR_OK},
        {UINT64_MAX, 0, UINT64_MAX, 0, 0,
         ZARR_ERR_CORRUPT}, /* half of the mark of a missing chunk */
        {UINT64_MAX - 1, 5, UINT64_MAX, 0, 0, ZARR_ERR_CORRUPT},
        {5, UINT64_MAX, UINT64_MAX, 0, 0, ZARR_ERR_CORRUPT},
        {UINT64_C(1) << 63, 1, UINT64_MAX - 1, UINT64_MAX - 17, 16,
         ZARR_ERR_CORRUPT}, /* no store has so many bytes */
        {200, 1, 5, UINT64_MAX - 10, 16, ZARR_ERR_CORRUPT}, /* shorter than its index */
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        uint64_t *pair = zr_malloc(NULL, 2 * sizeof *pair);
        const struct zr_shard_pairs in = {.n = 1,
                                          .shard_bytes = cases[i].shard_bytes,
                                          .index_offset = cases[i].index_offset,
                                          .index_bytes = cases[i].index_bytes};
        struct zr_shard_index *x = NULL;

        assert_non_null(pair);
        pair[0] = cases[i].offset;
        pair[1] = cases[i].bytes;
        assert_ok(zr_shard_index_make(&x, pair, &in, NULL, &terr));
        assert_int_equal(zr_shard_index_lacks(x, 0),
                         pair[0] == ZR_INDEX_MISSING && pair[1] == ZR_INDEX_MISSING);
        assert_int_equal(zr_shard_index_check(x, 0, &terr), cases[i].want);
        if (cases[i].want == ZARR_ERR_CORRUPT)
            assert_non_null(strstr(terr.message, "entry 0"));
        zr_shard_index_free(x);
    }
}

/* ---- explaining ------------------------------------------------------------------- */

static bool explains(const struct zr_explain_args *args, zarr_explanation *e,
                     struct zr_arena *arena, const char *text)
{
    struct zr_str out, json;
    bool has;

    zr_str_init(&out, NULL);
    zr_str_init(&json, NULL);
    zr_arena_reset(arena);
    assert_ok(zr_plan_explain(e, args, arena, &terr));
    zr_explanation_print(e, &out);
    assert_ok(zr_explanation_json(e, &json, NULL, &terr));
    has = strstr(zr_str_text(&out), text) || strstr(zr_str_text(&json), text);
    zr_str_deinit(&out);
    zr_str_deinit(&json);
    return has;
}

static void test_explain(void **state)
{
    struct env env;
    struct zr_explain_args args = {.pipeline = "waves",
                                   .store_name = "memory",
                                   .tensor_device = ZARR_DEVICE_CPU,
                                   .tensor_contiguous = true};
    zarr_explanation e;
    struct zr_arena arena;

    (void)state;
    env_open(&env, chains[2].codecs, chains[2].chunk);
    zr_arena_init(&arena, NULL);
    args.plan = (struct zr_plan_args){
        .layout = env.layout, .prefix = "a", .wave_bytes = 140, .threads = 3};
    assert_true(explains(&args, &e, &arena, "read \"a\" from store memory"));
    assert_true(explains(&args, &e, &arena, "blocks:       21 of shape [6,10]"));
    assert_true(explains(&args, &e, &arena, "chunks:       78 of shape [3,5]"));
    assert_true(explains(&args, &e, &arena, "waves:        8 of at most 150 bytes"));
    args.plan.wave_items = 1;
    assert_true(explains(&args, &e, &arena, "\"indexes_to_fetch\": 21"));
    assert_int_equal(e.chunks, 78);
    assert_int_equal(e.waves, 78);
    assert_int_equal(e.wave_bytes, 15);
    assert_int_equal(e.indexes_to_fetch, 21);
    assert_int_equal(e.threads, 3);
    assert_int_equal(e.flags, ZARR_EXPLAIN_SHARDS);
    assert_int_equal(e.steps[0]->kind, ZARR_STEP_STORE);
    assert_int_equal(e.steps[0]->from_device, 0);
    assert_int_equal(e.steps[0]->to_device, ZARR_DEVICE_CPU);
    assert_int_equal(e.steps[1]->kind, ZARR_STEP_INDEX);
    assert_int_equal(e.steps[1]->index_chunks, 4);
    assert_int_equal(e.steps[e.n_steps - 1]->kind, ZARR_STEP_TENSOR);
    assert_int_equal(e.steps[e.n_steps - 1]->level, 1);
    args.write = true; /* for writing: the reverse order, with encoders */
    assert_true(explains(&args, &e, &arena, "write \"a\" to store memory"));
    assert_int_equal(e.steps[0]->kind, ZARR_STEP_TENSOR);
    assert_int_equal(e.steps[e.n_steps - 1]->kind, ZARR_STEP_STORE);
    assert_int_equal(e.steps[e.n_steps - 1]->to_device, 0);
    zr_arena_deinit(&arena);
    env_close(&env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_each_element_once),
        cmocka_unit_test(test_indexes), cmocka_unit_test(test_explain)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
