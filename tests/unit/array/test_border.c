/*
 * unit/array/test_border.c - chunks that reach beyond the shape a handle knows. Another
 * handle may have appended elements there (data first, metadata last). A writer that
 * overwrites all elements it knows of keeps those elements. Only elements that cannot be
 * decoded are lost.
 */
#include "array_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

enum {
    OLD = 10, /* length that the stale handle knows */
    MORE = 4, /* elements appended by the other handle */
    ALL = OLD + MORE,
    TURNS = 150 /* rounds of each thread */
};

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define GZIP  "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"
#define SHARD(chunk, codecs)                                                             \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" chunk           \
    ",\"codecs\":[" codecs "],\"index_codecs\":[" BYTES ",{\"name\":\"crc32c\"}]}}"

static const struct layout {
    /* grid NULL: regular, with chunks of `chunk` elements. */
    const char *name, *codecs, *grid;
    uint64_t chunk;
    uint64_t border; /* first element of the object that contains element OLD */
} layouts[] = {
    {"elements as they are", "[" BYTES "]", NULL, 4, 8},
    {"compressed", "[" BYTES "," GZIP "]", NULL, 4, 8},
    {"shards", "[" SHARD("[4]", BYTES "," GZIP) "]", NULL, 16, 0},
    {"shards inside codecs", "[" SHARD("[4]", BYTES) "," GZIP "]", NULL, 16, 0},
    {"shards in shards", "[" SHARD("[8]", SHARD("[4]", BYTES)) "]", NULL, 16, 0},
    {"shards in shards, behind codecs",
     "[" SHARD("[8]", SHARD("[4]", BYTES) "," GZIP) "]", NULL, 16, 0},
    {"chunks that differ", "[" BYTES "," GZIP "]",
     "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
     "\"chunk_shapes\":[[5,3,6]]}}",
     0, 8},
    {"shards that differ", "[" SHARD("[2]", BYTES "," GZIP) "]",
     "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
     "\"chunk_shapes\":[[6,8]]}}",
     0, 6},
};
static const char *const pipelines[] = {"waves", "serial"};

static zarr_array *make(struct world *w, const struct layout *l)
{
    const uint64_t shape[1] = {OLD};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = shape,
                                  .chunk_shape = l->grid ? NULL : &l->chunk,
                                  .chunk_grid = l->grid,
                                  .data_type = "int32",
                                  .fill_value = "-1",
                                  .codecs = l->codecs};
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, w->store, "x", &spec, NULL, &terr));
    return a;
}

static zarr_tensor row(int32_t *data, const uint64_t *n)
{
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, (uint64_t)*n * sizeof *data, 1, n);
    return t;
}

/* Writes `value` to [from, to): as a box, or as coordinates in reverse order. */
static zarr_status set(zarr_array *a, uint64_t from, uint64_t to, int32_t value,
                       bool points, const zarr_io_options *opts)
{
    const uint64_t shape[1] = {OLD}, n[1] = {to - from};
    int64_t at[OLD];
    int32_t data[OLD];
    zarr_selection *sel = NULL;
    const zarr_tensor t = row(data, n);
    zarr_status st;

    for (uint64_t i = 0; i < n[0]; i++) {
        data[i] = value;
        at[i] = (int64_t)(to - 1 - i);
    }
    if (points)
        assert_ok(zarr_selection_points(&sel, 1, shape, n[0], at, 1, n, &terr));
    else
        assert_ok(zarr_selection_box(&sel, 1, shape, &from, n, &terr));
    st = zarr_array_write(a, sel, &t, opts, &terr);
    zarr_selection_free(sel);
    return st;
}

static void append(zarr_array *a, int32_t first)
{
    const uint64_t n[1] = {MORE};
    int32_t data[MORE];
    const zarr_tensor t = row(data, n);

    for (int i = 0; i < MORE; i++)
        data[i] = first + i;
    assert_ok(zarr_array_append(a, 0, &t, NULL, NULL, &terr));
}

static void expect(zarr_array *a, const int32_t *want, uint64_t n, const char *what)
{
    int32_t got[ALL];
    const zarr_tensor t = row(got, &n);

    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    for (uint64_t i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("%s: element %d is %d, not %d", what, (int)i, got[i], want[i]);
}

/* One handle appends and the other does not know of it. from: first element
 * overwritten. */
static void one_case(struct world *w, const struct layout *l, uint64_t from, bool points,
                     const zarr_io_options *opts)
{
    int32_t want[ALL];
    zarr_array *a = make(w, l), *b = NULL;

    for (int i = 0; i < ALL; i++)
        want[i] = i >= OLD ? i - OLD + 1 : i >= (int)from ? 7 : 5;
    assert_ok(set(a, 0, OLD, 5, false, opts));
    assert_ok(zarr_array_open(&b, w->store, "x", NULL, &terr));
    append(b, 1);
    assert_ok(set(a, from, OLD, 7, points, opts));
    expect(b, want, ALL, l->name);
    /* The fill value, too: erasing the chunk would lose the appended elements. */
    assert_ok(set(a, from, OLD, -1, points, opts));
    for (uint64_t i = from; i < OLD; i++)
        want[i] = -1;
    expect(b, want, ALL, l->name);
    zarr_array_free(a);
    zarr_array_free(b);
}

static void test_appended_stays(void **state)
{
    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
            for (int p = 0; p < 2; p++)
                for (int how = 0; how < 4; how++) {
                    const zarr_io_options opts = {.struct_size = sizeof opts,
                                                  .tuning =
                                                      TUNING(.pipeline = pipelines[p])};
                    struct world w;

                    world_open(&w, sort);
                    one_case(&w, &layouts[i], how % 2 ? 0 : layouts[i].border, how / 2,
                             &opts);
                    world_close(&w);
                }
}

/* An unreadable old value is ignored if every element inside the known shape is
 * overwritten. */
static void test_damaged(void **state)
{
    static const char junk[] = "this is no chunk of any codec, and no shard either";

    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        for (int longer = 0; longer < 2; longer++) {
            const struct layout *l = &layouts[i];
            static char huge[200000];
            int32_t want[OLD];
            char key[32];
            zarr_array *a = NULL;
            struct world w;

            world_open(&w, WORLD_MEMORY);
            a = make(&w, l);
            snprintf(key, sizeof key, "x/c/%d", l->border == 8 ? 2 : l->border ? 1 : 0);
            assert_ok(set(a, 0, OLD, 5, false, NULL));
            assert_non_null(get_text(&w, key));
            if (longer)
                assert_ok(zarr_store_put(w.store, key, huge, sizeof huge, NULL, &terr));
            else
                assert_ok(zarr_store_put(w.store, key, junk, sizeof junk, NULL, &terr));
            assert_status(set(a, OLD - 1, OLD, 7, false, NULL), ZARR_ERR_CORRUPT);
            assert_ok(set(a, l->border, OLD, 7, false, NULL));
            for (int k = 0; k < OLD; k++)
                want[k] = k >= (int)l->border ? 7 : 5;
            expect(a, want, OLD, l->name);
            zarr_array_free(a);
            world_close(&w);
        }
}

/* An old value that only a limit of this context keeps from being read is no damage: what
 * another handle appended stays. */
static void test_limit(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * (sizeof layouts / sizeof *layouts); i++) {
        const struct layout *l = &layouts[i / 2];
        const zarr_io_options opts = {.struct_size = sizeof opts,
                                      .tuning = TUNING(.pipeline = pipelines[i % 2])};
        zarr_limits limits = {.struct_size = sizeof limits, .encoded_bytes = 8};
        const zarr_context_options o = {.struct_size = sizeof o, .limits = &limits};
        int32_t want[ALL], got[OLD];
        const uint64_t n[1] = {OLD};
        const zarr_tensor t = row(got, n);
        zarr_array *a = NULL, *b = NULL;
        zarr_context *small = NULL;
        zarr_store *s = NULL;
        struct world w;

        world_open(&w, WORLD_LOCAL);
        b = make(&w, l);
        assert_ok(set(b, 0, OLD, 5, false, NULL));
        assert_ok(zarr_context_create(&small, &o, &terr));
        assert_ok(zarr_store_open(&s, small, w.dir, NULL, &terr));
        assert_ok(zarr_array_open(&a, s, "x", NULL, &terr));
        append(b, 1);
        assert_status(set(a, l->border, OLD, 7, false, &opts), ZARR_ERR_LIMIT);
        assert_non_null(strstr(terr.message, "encoded_bytes"));
        assert_status(zarr_array_read(a, NULL, &t, &opts, &terr), ZARR_ERR_LIMIT);
        for (int k = 0; k < ALL; k++)
            want[k] = k >= OLD ? k - OLD + 1 : 5;
        expect(b, want, ALL, l->name);
        zarr_array_free(a);
        zarr_store_free(s);
        zarr_context_free(small);
        zarr_array_free(b);
        world_close(&w);
    }
}

static uint64_t little(const uint8_t *p)
{
    uint64_t v = 0;

    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static void damage(uint8_t *object, uint64_t at, uint64_t bytes)
{
    assert_true(at < 4096 && bytes <= 4096 - at);
    memset(object + at, 'x', bytes);
}

/* A damaged inner chunk does not affect its neighbours. */
static void test_damaged_inner(void **state)
{
    const struct layout *l = &layouts[2];
    int32_t want[ALL];
    uint8_t *object = malloc(4096);
    uint64_t n = 4096;
    zarr_array *a = NULL, *b = NULL;
    struct world w;

    (void)state;
    assert_non_null(object);
    world_open(&w, WORLD_MEMORY);
    a = make(&w, l);
    assert_ok(set(a, 0, OLD, 5, false, NULL));
    assert_ok(zarr_array_open(&b, w.store, "x", NULL, &terr));
    append(b, 1);
    assert_ok(zarr_store_get(w.store, "x/c/0", 0, object, &n, NULL, &terr));
    n -= 36; /* third of four index entries, in front of the checksum */
    damage(object, little(object + n), little(object + n + 8));
    n += 36;
    assert_ok(zarr_store_put(w.store, "x/c/0", object, n, NULL, &terr));
    assert_ok(set(a, 0, OLD, 7, false, NULL));
    for (int i = 0; i < ALL; i++) /* elements 10 and 11 could not be decoded */
        want[i] = i < OLD ? 7 : i < 12 ? -1 : i - OLD + 1;
    expect(b, want, ALL, l->name);
    zarr_array_free(a);
    zarr_array_free(b);
    world_close(&w);
    free(object);
}

/* Cost: no request more for chunks inside the array, one more for border chunks. */
static void test_cost(void **state)
{
    zarr_stats stats = ZARR_STATS_INIT;
    const zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    a = make(&w, &layouts[1]);
    assert_ok(set(a, 0, OLD, 5, false, &opts));
    assert_int_equal(stats.store_gets, 1);
    assert_int_equal(stats.read_modify_writes, 0); /* no chunk is stored yet */
    assert_ok(set(a, 0, OLD, 6, false, &opts));
    assert_int_equal(stats.store_gets, 1);
    assert_int_equal(stats.read_modify_writes, 1);
    assert_ok(set(a, 0, 8, 6, false, &opts));
    assert_int_equal(stats.store_gets, 0);
    zarr_array_free(a);
    world_close(&w);
}

/* ---- threads ---------------------------------------------------------------------- */

struct job {
    zarr_array *a;
    atomic_int stop, n_written;
};

/* Writes all elements in the shape that this thread's handle knows. They have that value
 * already. */
static void *write_all(void *arg)
{
    static int32_t data[OLD + TURNS];
    struct job *j = arg;
    zarr_error e;

    for (int i = 0; i < OLD + TURNS; i++)
        data[i] = 5;
    while (!atomic_load(&j->stop)) {
        uint64_t n = zarr_array_shape(j->a)[0];
        const uint64_t zero = 0;
        zarr_tensor t = row(data, &n);
        zarr_selection *sel = NULL;
        zarr_status st;

        if (zarr_selection_box(&sel, 1, &n, &zero, &n, &e) != ZARR_OK)
            abort();
        st = zarr_array_write(j->a, sel, &t, NULL, &e);
        if (st == ZARR_OK)
            atomic_fetch_add(&j->n_written, 1);
        else if (st != ZARR_ERR_INVALID) /* the shape may have changed */
            abort();
        zarr_selection_free(sel);
    }
    return NULL;
}

static void appends_and_writes(struct world *w, const struct layout *l)
{
    static int32_t got[OLD + TURNS];
    const uint64_t n[1] = {OLD + TURNS}, one[1] = {1};
    int32_t five = 5;
    const zarr_tensor t = row(got, n), o = row(&five, one);
    struct job j = {.a = make(w, l)};
    pthread_t id;

    assert_ok(set(j.a, 0, OLD, 5, false, NULL));
    assert_int_equal(pthread_create(&id, NULL, write_all, &j), 0);
    for (int i = 0; i < TURNS; i++) {
        const int before = atomic_load(&j.n_written);

        assert_ok(zarr_array_append(j.a, 0, &o, NULL, NULL, &terr));
        while (i % 8 == 0 && atomic_load(&j.n_written) == before)
            sched_yield(); /* or all appends happened before the first write */
    }
    atomic_store(&j.stop, 1);
    pthread_join(id, NULL);
    assert_ok(zarr_array_read(j.a, NULL, &t, NULL, &terr));
    for (int i = 0; i < OLD + TURNS; i++)
        if (got[i] != 5)
            fail_msg("%s, %s: element %d was lost", w->dir[0] ? "local" : "memory",
                     l->name, i);
    zarr_array_free(j.a);
}

static void test_threads(void **state)
{
    static const struct layout large[] = {
        {"one chunk", "[" BYTES "]", NULL, 1024, 0},
        {"one shard", "[" SHARD("[64]", BYTES) "]", NULL, 1024, 0},
    };

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
            struct world w;

            world_open(&w, sort);
            appends_and_writes(&w, &large[i]);
            world_close(&w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appended_stays), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_damaged_inner),  cmocka_unit_test(test_limit),
        cmocka_unit_test(test_cost),           cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
