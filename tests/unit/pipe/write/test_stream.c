/*
 * test_stream.c - shards that are written in parts because memory has no room for them,
 * on stores with locks, with conditions and with neither; other writers meanwhile; and
 * writes whose answers are lost.
 */
#include "unit/conditional_caps.h"
#include "unit/pipe/over_store.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    CAPS = CAPS_CONDITIONAL | ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_PARTS,
    LITTLE_MEMORY = 12000 /* bytes; a shard has 16384 */
};

#define CODECS(at) "[" SHARD("[8,8]", BYTES, at) "]"

static const zarr_tuning tuning = {.struct_size = sizeof tuning,
                                   .memory_bytes = LITTLE_MEMORY};
static const zarr_io_options little = {.struct_size = sizeof little, .tuning = &tuning};

static void check_all(zarr_array *a, const int32_t *want)
{
    memset(got, 0, sizeof got);
    assert_ok(pw_box(a, zero, shape, got, NULL, false));
    assert_memory_equal(got, want, sizeof got);
}

/* A whole shard, then a part of it that covers no inner chunk. */
static void write_both(zarr_array *a)
{
    const uint64_t at[2] = {3, 5}, n[2] = {20, 30};
    static int32_t part[20 * 30];

    make_data(11);
    assert_ok(pw_box(a, zero, shape, data, &little, true));
    check_all(a, data);
    for (int i = 0; i < 20 * 30; i++) {
        part[i] = -i;
        data[(3 + i / 30) * N + 5 + i % 30] = -i;
    }
    assert_ok(pw_box(a, at, n, part, &little, true));
    check_all(a, data);
}

static void own_stores(void **state)
{
    char dir[128];
    const char *tmp = getenv("TMPDIR");

    (void)state;
    for (int i = 0; i < 3; i++) {
        zarr_store_options opts = ZARR_STORE_OPTIONS_INIT;
        struct pw w;
        zarr_array *a;

        pw_context(&w, 2, UINT64_C(64) << 20, 0);
        snprintf(dir, sizeof dir, "%s/zarrc-streamed-XXXXXX", tmp ? tmp : "/tmp");
        if (i > 0)
            assert_non_null(mkdtemp(dir));
        opts.locks = i == 1 ? ZARR_LOCKS_NONE : 0;
        assert_ok(
            zarr_store_open(&w.store, w.ctx, i == 0 ? "memory:" : dir, &opts, &terr));
        a = pw_array(w.store, "a", CODECS("start"), shape, shape);
        write_both(a);
        zarr_array_free(a);
        assert_ok(zarr_node_delete(w.store, "a", &terr));
        assert_ok(zarr_store_erase(w.store, "zarr.json", NULL, &terr));
        if (i > 0)
            assert_int_equal(rmdir(dir), 0); /* nothing is left */
        pw_close(&w);
    }
}

static void open_with_parts(struct pw *w, struct over *o, const zarr_store_vtable *vt,
                            uint32_t caps, uint64_t part_min_bytes)
{
    pw_open(w, 2, UINT64_C(64) << 20, 0);
    *o = (struct over){.caps = caps | ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_WRITE,
                       .below = w->store,
                       .part_min_bytes = part_min_bytes};
    w->store = NULL;
    over_again(w, o, vt, 0);
}

/* Part sizes are checked in over_store.h. */
static void other_stores(void **state)
{
    static const uint32_t caps[] = {CAPS, ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_PARTS};
    /* the window has 8 parts of 300 bytes: more than are sent at once */
    static const uint64_t part_bytes[] = {0, 3000, 300};

    (void)state;
    for (size_t i = 0; i < 12; i++) {
        const bool by_version = i % 2 == 0;
        struct over o;
        struct pw w;
        zarr_array *a;

        open_with_parts(&w, &o, i / 2 % 2 ? &over_submits : &over_runs, caps[i % 2],
                        part_bytes[i / 4]);
        o.wants_equal_parts = part_bytes[i / 4] > 0;
        a = pw_array(w.store, "a", i == 2 ? CODECS("start") : CODECS("end"), shape,
                     shape);
        o.n_conditional[ZARR_STORE_PUT] = 0;
        write_both(a);
        assert_int_equal(o.n_uploads, 2);
        assert_int_equal(o.n_open_uploads, 0);
        assert_int_equal(o.n_conditional[ZARR_STORE_PUT], by_version);
        assert_true(o.n_ops[ZARR_STORE_PUT_PART] > 6);
        if (i / 2 % 2 && part_bytes[i / 4] != 3000)
            assert_int_equal(o.most_parts, 4);
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* An index in front would be a short part that is not the last one. */
static void short_first_part(void **state)
{
    struct over o;
    struct pw w;
    zarr_array *a;

    (void)state;
    open_with_parts(&w, &o, &over_runs, CAPS, 3000);
    a = pw_array(w.store, "a", CODECS("start"), shape, shape);
    assert_status(pw_box(a, zero, shape, data, &little, true), ZARR_ERR_LIMIT);
    make_data(1);
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    assert_int_equal(o.n_uploads, 0);
    check_all(a, data);
    zarr_array_free(a);
    pw_close(&w);
}

/* ---- another writer meanwhile ---- */

static void write_elsewhere(struct over *o)
{
    static const uint64_t at[2] = {63, 63}, one[2] = {1, 1};
    int32_t value = 77;
    zarr_array *a = NULL;

    o->replace_at = 0;
    assert_ok(zarr_array_open(&a, o->below, "a", NULL, &terr));
    assert_ok(pw_box(a, at, one, &value, NULL, true));
    zarr_array_free(a);
}

/* GETs of the write: the index, the chunk that it changes, chunks that it keeps. */
static void meet_another_writer(void **state)
{
    const uint64_t at[2] = {3, 5}, one[2] = {1, 1};

    (void)state;
    for (int gets = 1; gets <= 40; gets += 13) {
        int32_t value = -5;
        struct over o;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 1, UINT64_C(64) << 20, 0);
        over_open(&w, &o, &over_runs, CAPS);
        a = pw_array(w.store, "a", CODECS("end"), shape, shape);
        make_data(2);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        atomic_store(&o.n_gets, 0);
        o.replace_at = gets;
        o.replace = write_elsewhere;
        assert_ok(pw_box(a, at, one, &value, &little, true));
        assert_int_equal(o.replace_at, 0);
        assert_int_equal(o.n_open_uploads, 0);
        assert_true(o.n_ops[ZARR_STORE_PUT_PART] > 0);
        data[3 * N + 5] = value;
        data[63 * N + 63] = 77;
        check_all(a, data);
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* ---- lost answers ---- */

/* The call fails, and the store has the old value or the new one. The same call then
 * succeeds, and other elements are as they were. */
static void lose_answer(uint32_t verb, const zarr_store_vtable *vt, bool streamed)
{
    const uint64_t at[2] = {1, 2}, n[2] = {40, 50};
    const bool erases = verb == ZARR_STORE_ERASE;
    static int32_t part[N * N];
    const zarr_io_options *opts = streamed ? &little : NULL;
    struct over over;
    struct pw w;
    zarr_array *a;

    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    over_open(&w, &over, vt, CAPS);
    a = streamed ? pw_array(w.store, "a", CODECS("end"), shape, shape)
                 : pw_array(w.store, "a", "[" BYTES "]", shape, chunk);
    make_data(3);
    memset(part, 0xff, sizeof part); /* the fill value */
    for (int i = 0; i < N * N; i++)
        if (erases) {
            const int row = i / N, col = i % N;
            const bool inside = row >= 1 && row < 41 && col >= 2 && col < 52;

            data[i] = inside ? data[i] : -1;
        } else {
            part[i] = -100 - i;
        }
    assert_ok(pw_box(a, zero, shape, data, opts, true));
    over.lost_answers[verb] = 1;
    assert_status(pw_box(a, at, n, part, opts, true), ZARR_ERR_IO);
    assert_int_equal(over.lost_answers[verb], 0);
    assert_int_equal(over.n_open_uploads, 0);
    assert_ok(pw_box(a, at, n, part, opts, true));
    for (int i = 0; i < 40 * 50; i++)
        data[(1 + i / 50) * N + 2 + i % 50] = part[i];
    check_all(a, data);
    zarr_array_free(a);
    pw_close(&w);
}

static void lost_answers(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const zarr_store_vtable *vt = i ? &over_submits : &over_runs;

        lose_answer(ZARR_STORE_PUT, vt, false);
        lose_answer(ZARR_STORE_ERASE, vt, false);
        lose_answer(ZARR_STORE_PUT, vt, true);
        lose_answer(ZARR_STORE_PUT_PART, vt, true);
    }
}

/* Making a node is a conditional PUT: a second try finds the node.
 */
static void lost_answer_of_a_new_node(void **state)
{
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .data_type = "int32"};
    struct over o;
    struct pw w;
    zarr_array *a = NULL;

    (void)state;
    pw_open(&w, 1, UINT64_C(64) << 20, 0);
    over_open(&w, &o, &over_runs, CAPS);
    zarr_array_free(pw_array(w.store, "b", "[" BYTES "]", shape, chunk));
    o.lost_answers[ZARR_STORE_PUT] = 1;
    assert_status(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr), ZARR_ERR_IO);
    assert_null(a);
    assert_status(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr),
                  ZARR_ERR_EXISTS);
    assert_ok(zarr_array_open(&a, w.store, "a", NULL, &terr));
    zarr_array_free(a);
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_stores),       cmocka_unit_test(other_stores),
        cmocka_unit_test(short_first_part), cmocka_unit_test(meet_another_writer),
        cmocka_unit_test(lost_answers),     cmocka_unit_test(lost_answer_of_a_new_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
