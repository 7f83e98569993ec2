/*
 * unit/pipe/test_stores.c - the pipeline on an application's stores: submitted batches,
 * objects that are cut off, errors that are not missing chunks, conditional writes that
 * conflict, shards that are replaced.
 */
#include "unit/conditional_caps.h"
#include "over_store.h"
#include "unit/merging_store.h"

#include <unistd.h>

/* ---- batches of store operations ----------------------------------------- */

static void test_prefetch(void **state)
{
    static const char *const codecs[] = {"[" BYTES "]", "[" BYTES "," GZIP "]",
                                         "[" SHARD("[4,8]", BYTES "," GZIP, "end") "]",
                                         "[" SHARD("[4,8]", BYTES, "start") "," CRC "]"};
    const uint64_t part[2] = {3, 5}, at[2] = {14, 14};

    (void)state;
    for (int caps = 0; caps < 2; caps++)
        for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
            struct over o;
            struct pw w;
            zarr_array *a;

            pw_open(&w, 3, UINT64_C(4) << 20, 4096);
            over_open(&w, &o, &over_submits,
                      caps ? ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX : 0);
            a = pw_array(w.store, "a", codecs[i], shape, chunk);
            memset(got, 0, sizeof got);
            assert_ok(pw_box(a, zero, shape, got, NULL, false));
            assert_int_equal(got[77], -1);
            make_data((int)i);
            assert_ok(pw_box(a, zero, shape, data, NULL, true));
            assert_ok(pw_box(a, at, part, data, NULL, true));
            assert_ok(pw_box(a, at, part, got, NULL, false));
            assert_memory_equal(got, data, 15 * sizeof *got);
            for (uint64_t r = 0; r < 3; r++)
                for (uint64_t c = 0; c < 5; c++)
                    got[r * 5 + c] = data[(r + 14) * N + c + 14];
            assert_ok(pw_box(a, at, part, got, NULL, true));
            assert_ok(pw_box(a, zero, shape, got, NULL, false));
            assert_memory_equal(got, data, sizeof data);
            assert_true(atomic_load(&o.n_submitted) > 16);
            zarr_array_free(a);
            pw_close(&w);
        }
}

/* Opens an array through a store that merges the ranges of a submit(). */
static zarr_array *open_merging(struct pw *w, struct merging *m, zarr_store **s)
{
    zarr_array *a = NULL;

    *m = (struct merging){
        .below = w->store, .memory = &w->ctx->memory, .caps = ZARR_STORE_CAP_VERSIONS};
    assert_ok(zarr_store_open_custom(s, w->ctx, &merging_vtable, m, NULL, &terr));
    assert_ok(zarr_array_open(&a, *s, "a", NULL, &terr));
    merging_reset(m);
    return a;
}

/* A store that is far away writes uncompressed chunks to their places in the tensor: no
 * element is copied, and all are one submit(). Neighbours in a shard are one operation if
 * they are small, or if their elements are copied in any case. */
static void test_one_copy(void **state)
{
    static const struct {
        const char *codecs;
        uint64_t shape[2], chunk[2], index_bytes;
        int n_ops;
    } rows[] = {
        {"[" BYTES "]", {N, N}, {4, N}, 0, 16},
        {"[" SHARD("[1,4096]", BYTES, "end") "]", {16, 4096}, {4, 4096}, 4 * 4 * 16, 16},
        {"[" SHARD("[4,64]", BYTES, "end") "]", {N, N}, {16, N}, 4 * 4 * 16, 4},
        {"[" SHARD("[1,4096]", BIG, "end") "]", {16, 4096}, {4, 4096}, 4 * 4 * 16, 4},
        {"[" SHARD("[2,2048]", BYTES, "end") "]", {16, 4096}, {8, 4096}, 2 * 8 * 16, 2},
    };
    static int32_t values[16 * 4096], read[16 * 4096];

    (void)state;
    for (int i = 0; i < 16 * 4096; i++)
        values[i] = i * 3 + 5;
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        const uint64_t bytes = rows[i].shape[0] * rows[i].shape[1] * sizeof *read;
        const bool direct = rows[i].n_ops == 16;
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_store *s = NULL;
        struct merging m;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 3, UINT64_C(4) << 20, 0);
        a = pw_array(w.store, "a", rows[i].codecs, rows[i].shape, rows[i].chunk);
        assert_ok(pw_box(a, zero, rows[i].shape, values, NULL, true));
        zarr_array_free(a);
        a = open_merging(&w, &m, &s);
        memset(read, 0, sizeof read);
        opts.stats = &stats;
        assert_ok(pw_box(a, zero, rows[i].shape, read, &opts, false));
        assert_memory_equal(read, values, bytes);
        assert_int_equal(stats.chunks_done, 16);
        assert_int_equal(stats.chunks_direct, direct ? 16 : 0);
        if (direct)
            assert_in_range(stats.bytes_host, 0, rows[i].index_bytes);
        assert_int_equal(stats.bytes_decoded, bytes + rows[i].index_bytes);
        assert_int_equal(m.most_ops, rows[i].n_ops);
        zarr_array_free(a);
        zarr_store_free(s);
        pw_close(&w);
    }
}

/* A chunk that is cut off, too long or missing, where the store wrote to the tensor. */
static void test_wrong_lengths_in_place(void **state)
{
    static const uint64_t bytes[] = {1, 1023, 1025, 0};
    const uint64_t rows_chunk[2] = {4, N};
    static char value[2000];

    (void)state;
    make_data(6);
    for (size_t i = 0; i < ZR_COUNT(bytes); i++) {
        zarr_store *s = NULL;
        struct merging m;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 3, UINT64_C(4) << 20, 0);
        a = pw_array(w.store, "a", "[" BYTES "]", shape, rows_chunk);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        zarr_array_free(a);
        if (bytes[i])
            assert_ok(zarr_store_put(w.store, "a/c/7/0", value, bytes[i], NULL, &terr));
        else
            assert_ok(zarr_store_erase(w.store, "a/c/7/0", NULL, &terr));
        a = open_merging(&w, &m, &s);
        if (bytes[i]) {
            assert_status(pw_box(a, zero, shape, got, NULL, false), ZARR_ERR_CORRUPT);
            assert_non_null(strstr(terr.message, "a/c/7/0"));
        } else {
            assert_ok(pw_box(a, zero, shape, got, NULL, false));
            for (int k = 0; k < N * N; k++)
                assert_int_equal(got[k], k / (4 * N) == 7 ? -1 : data[k]);
        }
        zarr_array_free(a);
        zarr_store_free(s);
        pw_close(&w);
    }
}

/* A part of a missing raw chunk, in several ranges, on an empty store. */
static void test_missing_part(void **state)
{
    const uint64_t big[2] = {3, 16384}, part[2] = {2, 2}, at[2] = {1, 1};
    struct over o;
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    over_open(&w, &o, &over_runs,
              ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_FAST_GET | CAPS_CONDITIONAL);
    a = pw_array(w.store, "a", "[" BYTES "]", big, big);
    assert_ok(pw_box(a, at, part, got, NULL, false));
    for (int i = 0; i < 4; i++)
        assert_int_equal(got[i], -1);
    /* A chunk that exists for the first range and not for the second is not a missing
     * chunk. */
    make_data(4);
    assert_ok(pw_box(a, at, part, data, NULL, true));
    atomic_store(&o.n_gets, 0);
    o.gone_at = 2;
    assert_ok(pw_box(a, at, part, got, NULL, false));
    for (int i = 0; i < 4; i++)
        assert_int_equal(got[i], data[i]);
    assert_int_equal(atomic_load(&o.n_gets), 4);
    zarr_array_free(a);
    pw_close(&w);
}

enum {
    WIDE = 16384
};
static const uint64_t wide[2] = {6, WIDE};

/* Reads columns 1 and 2 of n rows from row 1 on, of an array of chunks or inner chunks of
 * three rows. The rows of `none` are missing. */
static zarr_status read_columns(zarr_array *a, uint64_t n, uint64_t none, uint64_t *bytes,
                                struct merging *m)
{
    const uint64_t part[2] = {n, 2}, at[2] = {1, 1};
    zarr_status st;

    merging_reset(m);
    memset(got, 0, sizeof got);
    st = pw_box(a, at, part, got, NULL, false);
    *bytes = m->got_bytes;
    for (uint64_t i = 0; st == ZARR_OK && i < 2 * n; i++) {
        const uint64_t row = 1 + i / 2;

        assert_int_equal(got[i], row / 3 == none ? -1 : (int)(row * WIDE + 1 + i % 2));
    }
    return st;
}

/* Parts of several uncompressed chunks, or of one, of a store that is far away: only the
 * ranges that they need are fetched, and all at once. */
static void test_parts_of_chunks(void **state)
{
    static const char *const codecs[] = {"[" BYTES "]",
                                         "[" SHARD("[3,16384]", BYTES, "end") "]"};
    static const uint64_t chunks[][2] = {{3, WIDE}, {6, WIDE}};
    static int32_t values[6 * WIDE];

    (void)state;
    for (int i = 0; i < 6 * WIDE; i++)
        values[i] = i;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
        uint64_t bytes = 0;
        zarr_store *s = NULL;
        struct merging m;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 3, UINT64_C(4) << 20, 0);
        a = pw_array(w.store, "a", codecs[i], wide, chunks[i]);
        assert_ok(pw_box(a, zero, wide, values, NULL, true));
        zarr_array_free(a);
        a = open_merging(&w, &m, &s);
        assert_ok(read_columns(a, 4, UINT64_MAX, &bytes, &m));
        assert_in_range(bytes, 4 * 8, 150 * 1024); /* a chunk has 192 KiB */
        assert_int_equal(m.most_ops, 4);
        assert_int_equal(m.rounds, 1 + (int)i); /* the index of the shard */
        w.ctx->budget.peak = 0;
        assert_ok(read_columns(a, 2, UINT64_MAX, &bytes, &m));
        assert_in_range(bytes, 2 * 8, 150 * 1024);
        assert_in_range(w.ctx->budget.peak, 2 * 8, 100 * 1024); /* from row to row */
        assert_int_equal(m.most_ops, 2);
        assert_int_equal(m.rounds, 1 + (int)i);
        if (i == 0) {
            assert_ok(zarr_store_put(w.store, "a/c/1/0", values, 4 * WIDE * 3 + 1, NULL,
                                     &terr));
            assert_status(read_columns(a, 4, UINT64_MAX, &bytes, &m), ZARR_ERR_CORRUPT);
            assert_non_null(strstr(terr.message, "a/c/1/0"));
            assert_ok(zarr_store_erase(w.store, "a/c/1/0", NULL, &terr));
            assert_ok(read_columns(a, 4, 1, &bytes, &m));
        }
        zarr_array_free(a);
        zarr_store_free(s);
        pw_close(&w);
    }
}

/* A store that merges no ranges gets neighbours in a shard as one. But of uncompressed
 * chunks that are wanted in part it gets only what is wanted, if the rest is long. */
static void test_parts_of_neighbours(void **state)
{
    enum {
        ROWS = 160
    };
    static const struct {
        const char *codecs; /* chunks of 1.25 MiB and of 128 KiB */
        uint64_t columns, least_gets, most_gets, least_bytes, most_bytes;
    } rows[] = {
        {"[" SHARD("[20,16384]", BYTES, "end") "]", 2, ROWS, ROWS, 8 * ROWS, 4096},
        {"[" SHARD("[2,16384]", BYTES, "end") "]", 2, 1, 4, 9 << 20, 11 << 20},
        {"[" SHARD("[20,16384]", BYTES, "end") "]", 16000, 1, 4, 9 << 20, 11 << 20}};
    const uint64_t whole[2] = {ROWS, WIDE}, at[2] = {0, 1};
    int32_t *values = calloc(2 * ROWS, WIDE * sizeof *values);
    int32_t *read = values + ROWS * WIDE;

    (void)state;
    assert_non_null(values);
    for (int i = 0; i < ROWS * WIDE; i++)
        values[i] = i;
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        const uint64_t n = rows[i].columns, part[2] = {ROWS, n};
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        zarr_stats stats = ZARR_STATS_INIT;
        struct over o;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 1, UINT64_C(128) << 20, 0);
        over_open(&w, &o, &over_submits,
                  CAPS_CONDITIONAL | ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        a = pw_array(w.store, "a", rows[i].codecs, whole, whole);
        assert_ok(pw_box(a, zero, whole, values, NULL, true));
        opts.stats = &stats;
        assert_ok(pw_box(a, at, part, read, &opts, false));
        for (uint64_t k = 0; k < ROWS * n; k++)
            assert_int_equal(read[k], k / n * WIDE + 1 + k % n);
        assert_in_range(stats.store_ranges - stats.index_reads, rows[i].least_gets,
                        rows[i].most_gets);
        assert_in_range(stats.bytes_stored, rows[i].least_bytes, rows[i].most_bytes);
        zarr_array_free(a);
        pw_close(&w);
    }
    free(values);
}

/* Several ranges of one chunk need a store that tells versions apart. From another they
 * are one range, or the whole chunk. */
static void test_ranges_without_versions(void **state)
{
    static const struct {
        uint32_t caps;
        int gets;
    } stores[] = {{0, 1}, {CAPS_CONDITIONAL, 2}, {ZARR_STORE_CAP_IMMUTABLE, 2}};
    static const char *const codecs[] = {"[" BYTES "]",
                                         "[" SHARD("[3,16384]", BYTES, "end") "]"};
    const uint64_t big[2] = {3, 16384}, part[2] = {2, 2};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(stores) * ZR_COUNT(codecs); i++) {
        const int sharded = (int)(i % 2);

        for (uint64_t row = 0; row < 2; row++) {
            const uint64_t at[2] = {row, 1};
            struct over o;
            struct pw w;
            zarr_array *a;

            pw_open(&w, 2, UINT64_C(64) << 20, 0);
            over_open(&w, &o, &over_runs,
                      stores[i / 2].caps | ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX |
                          ZARR_STORE_CAP_FAST_GET);
            a = pw_array(w.store, "a", codecs[sharded], big, big);
            make_data(3);
            assert_ok(pw_box(a, at, part, data, NULL, true));
            atomic_store(&o.n_gets, 0);
            assert_ok(pw_box(a, at, part, got, NULL, false));
            assert_memory_equal(got, data, 4 * sizeof *got);
            assert_int_equal(atomic_load(&o.n_gets), stores[i / 2].gets + sharded);
            zarr_array_free(a);
            pw_close(&w);
        }
    }
}

static void make_dir(char *dir, size_t cap)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(dir, cap, "%s/zarrc-pipe-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
}

/* A file where the directory of the chunks should be is damage, not missing chunks. */
static void test_file_as_parent(void **state)
{
    static const char *const pipelines[] = {"waves", "serial"};
    static const char *const codecs[] = {"[" BYTES "]", "[" BYTES "," GZIP "]",
                                         "[" SHARD("[4,8]", BYTES, "end") "]"};
    const uint64_t part[2] = {2, 2};
    char dir[256];
    struct pw w;

    (void)state;
    make_dir(dir, sizeof dir);
    pw_context(&w, 2, UINT64_C(64) << 20, 0);
    assert_ok(zarr_store_open(&w.store, w.ctx, dir, NULL, &terr));
    for (size_t i = 0; i < ZR_COUNT(codecs) * 2; i++) {
        zarr_io_options opts = {.struct_size = sizeof opts,
                                .tuning = TUNING(.pipeline = pipelines[i % 2])};
        zarr_array *a = pw_array(w.store, "a", codecs[i / 2], shape, chunk);

        assert_ok(zarr_store_put(w.store, "a/c", "x", 1, NULL, &terr));
        assert_status(pw_box(a, zero, shape, got, &opts, false), ZARR_ERR_IO);
        assert_non_null(strstr(terr.message, "a/c/0/0"));
        assert_status(pw_box(a, zero, part, got, &opts, false), ZARR_ERR_IO);
        assert_status(pw_box(a, zero, part, data, &opts, true), ZARR_ERR_IO);
        zarr_array_free(a);
        assert_ok(zarr_store_erase_prefix(w.store, "", NULL, &terr));
    }
    pw_close(&w);
    assert_int_equal(rmdir(dir), 0);
}

static int cut_chunk(void *user, const zarr_store_item *item)
{
    static unsigned char value[65536];
    const int more = *(const int *)((void **)user)[1];
    zarr_store *store = ((void **)user)[0];
    uint64_t n = sizeof value;

    if (item->is_prefix || !strstr(item->key, "/c/"))
        return 0;
    assert_ok(zarr_store_get(store, item->key, 0, value, &n, NULL, &terr));
    assert_ok(zarr_store_put(store, item->key, value, (uint64_t)((int64_t)n + more), NULL,
                             &terr));
    return 0;
}

/* A part of an uncompressed chunk whose object is too short or too long elsewhere: the
 * answer to the range tells the length of the object, so this needs no extra request. */
static void test_part_of_cut_chunk(void **state)
{
    static const uint64_t big[2] = {96, 96};
    static const uint64_t at[3][2] = {{1, 1}, {0, 0}, {3, 90}},
                          part[3][2] = {{1, 4}, {2, 96}, {5, 2}};
    static const int more[] = {0, -1, -20000, 1};
    char dir[256], url[300];

    (void)state;
    make_dir(dir, sizeof dir);
    for (size_t i = 0; i < ZR_COUNT(more) * ZR_COUNT(at) * 2; i++) {
        const size_t k = i / 2 % ZR_COUNT(at), cut = i / 2 / ZR_COUNT(at);
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
        void *user[2];
        struct pw w;
        zarr_array *a;

        pw_context(&w, 1, UINT64_C(64) << 20, 0);
        snprintf(url, sizeof url, i % 2 ? "memory:" : "%s/%zu", dir, i);
        assert_ok(zarr_store_open(
            &w.store, w.ctx, url,
            &(zarr_store_options){.struct_size = sizeof(zarr_store_options),
                                  .flags = ZARR_STORE_CREATE},
            &terr));
        a = pw_array(w.store, "a", "[" BYTES "]", big, big);
        make_data(1);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        user[0] = w.store;
        user[1] = (void *)(uintptr_t)&more[cut];
        assert_ok(zarr_store_list(w.store, "a", ZARR_LIST_RECURSIVE, cut_chunk, user,
                                  NULL, &terr));
        assert_status(pw_box(a, at[k], part[k], got, &opts, false),
                      cut == 0 ? ZARR_OK : ZARR_ERR_CORRUPT);
        if (cut == 0) {
            assert_int_equal(stats.chunks_partial, 1);
            assert_true(stats.bytes_stored < 96 * 96 * 4 / 2);
        }
        assert_ok(zarr_store_erase_prefix(w.store, "a", NULL, &terr));
        zarr_array_free(a);
        pw_close(&w);
        (void)rmdir(url);
    }
    (void)rmdir(dir);
}

/* ---- errors and conflicts ------------------------------------------------ */

static void test_faults_are_not_missing(void **state)
{
    static const int faults[] = {ZARR_ERR_IO, ZARR_ERR_CORRUPT, ZARR_ERR_LIMIT};

    (void)state;
    for (int batch = 0; batch < 2; batch++)
        for (size_t i = 0; i < ZR_COUNT(faults); i++) {
            struct over o;
            struct pw w;
            zarr_array *a;
            zarr_io_options strict = {.struct_size = sizeof strict,
                                      .missing_chunks = ZARR_MISSING_ERROR};

            pw_open(&w, 2, UINT64_C(64) << 20, 0);
            over_open(&w, &o, batch ? &over_submits : &over_runs,
                      batch ? 0 : ZARR_STORE_CAP_FAST_GET);
            a = pw_array(w.store, "a", "[" BYTES "," GZIP "]", shape, chunk);
            assert_status(pw_box(a, zero, shape, got, &strict, false),
                          ZARR_ERR_NOT_FOUND);
            assert_non_null(strstr(terr.message, "c/0/0"));
            o.fail_get = faults[i];
            assert_status(pw_box(a, zero, shape, got, NULL, false),
                          (zarr_status)faults[i]);
            assert_non_null(strstr(terr.message, "c/0/0"));
            o.fail_get = 0;
            assert_ok(pw_box(a, zero, shape, got, NULL, false));
            zarr_array_free(a);
            pw_close(&w);
        }
}

static void test_conflicts(void **state)
{
    const uint64_t part[2] = {3, 5}, at[2] = {1, 2};
    struct over o;
    struct pw w;
    zarr_array *a;
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    over_open(&w, &o, &over_runs, CAPS_CONDITIONAL | ZARR_STORE_CAP_FAST_GET);
    a = pw_array(w.store, "a", "[" BYTES "," GZIP "]", shape, chunk);
    make_data(1);
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    o.conflicts = 3;
    assert_ok(pw_box(a, at, part, data, &opts, true));
    assert_int_equal(atomic_load(&o.n_conflicts), 3);
    assert_int_equal(stats.read_modify_writes, 4);
    assert_int_equal(stats.chunks_done, 1);
    assert_int_equal(stats.elements, 15);
    assert_ok(pw_box(a, at, part, got, NULL, false));
    assert_memory_equal(got, data, 15 * sizeof *got);
    o.conflicts = 20; /* more than any number of tries at once */
    assert_ok(pw_box(a, at, part, data, NULL, true));
    assert_int_equal(o.conflicts, 0);
    zarr_array_free(a);
    pw_close(&w);
}

/* Another writer changes elements of the block between the read and the write. */
static void write_elsewhere(struct over *o)
{
    static const uint64_t at[2] = {15, 15}, one[2] = {1, 1};
    int32_t value = 77;
    zarr_array *a = NULL;

    o->replace_at = 0;
    assert_ok(zarr_array_open(&a, o->below, "a", NULL, &terr));
    assert_ok(pw_box(a, at, one, &value, NULL, true));
    zarr_array_free(a);
}

/* Sets in one call what is left of blocks to the fill value. A store that erases only
 * without a condition never gets such an ERASE: another writer's elements would be lost.
 * The blocks stay, with the fill value. */
static void write_fill(uint32_t caps, const char *codecs, const zarr_store_vtable *vt,
                       bool other_writer)
{
    const uint64_t part[2] = {15, 15}, at[2] = {0, 0}, all[2] = {16, 32};
    const bool erases = caps & ZARR_STORE_CAP_ERASE_IF_VERSION;
    uint64_t bytes = 0;
    struct over o;
    struct pw w;
    zarr_array *a;

    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    over_open(&w, &o, vt, caps);
    a = pw_array(w.store, "a", codecs, shape, chunk);
    make_data(5);
    assert_ok(pw_box(a, at, part, data, NULL, true)); /* block 0, the rest is -1 */
    memset(data, 0xff, sizeof data);
    atomic_store(&o.n_gets, 0);
    o.replace_at = other_writer ? 1 : 0;
    o.replace = write_elsewhere;
    atomic_store(&o.n_ops[ZARR_STORE_ERASE], 0);
    /* and block 1, which is missing */
    assert_ok(pw_box(a, at, (const uint64_t[]){15, 30}, data, NULL, true));
    assert_int_equal(o.n_ops[ZARR_STORE_ERASE], o.n_conditional[ZARR_STORE_ERASE]);
    assert_status(zarr_store_get(o.below, "a/c/0/0", 0, NULL, &bytes, NULL, &terr),
                  erases && !other_writer ? ZARR_ERR_NOT_FOUND : ZARR_OK);
    assert_status(zarr_store_get(o.below, "a/c/0/1", 0, NULL, &bytes, NULL, &terr),
                  ZARR_ERR_NOT_FOUND);
    assert_ok(pw_box(a, at, all, got, NULL, false));
    for (uint64_t i = 0; i < all[0] * all[1]; i++)
        assert_int_equal(got[i], other_writer && i == 15 * 32 + 15 ? 77 : -1);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_empty_by_version(void **state)
{
    static const char *const codecs[] = {
        "[" BYTES "," GZIP "]", "[" SHARD("[4,8]", BYTES, "end") "]",
        "[" SHARD("[8,8]", SHARD("[4,8]", BYTES, "end"), "end") "]"};
    static const uint32_t caps[] = {CAPS_CONDITIONAL,
                                    CAPS_CONDITIONAL & ~ZARR_STORE_CAP_ERASE_IF_VERSION};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(codecs) * ZR_COUNT(caps) * 2; i++) {
        const char *c = codecs[i / 4];

        write_fill(caps[i % 2] | ZARR_STORE_CAP_FAST_GET, c, &over_runs, i / 2 % 2);
        write_fill(caps[i % 2], c, &over_submits, i / 2 % 2);
    }
}

/* A shard replaced between reading its index and its chunks is read again, with each
 * pipeline. */
static void test_replaced_shard(void **state)
{
    static const char *const pipelines[] = {"waves", "serial"};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(pipelines); i++) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options opts = {.struct_size = sizeof opts,
                                .stats = &stats,
                                .tuning = TUNING(.pipeline = pipelines[i])};
        struct over o;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 1, UINT64_C(64) << 20, 0);
        over_open(&w, &o, &over_runs,
                  CAPS_CONDITIONAL | ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX |
                      ZARR_STORE_CAP_FAST_GET);
        a = pw_array(w.store, "a", "[" SHARD("[4,8]", BYTES, "end") "]", shape, chunk);
        make_data(7);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        atomic_store(&o.n_gets, 0);
        o.replace_at = 18; /* 16 indexes, then chunks; with serial the ninth shard's */
        memset(got, 0, sizeof got);
        assert_ok(pw_box(a, zero, shape, got, &opts, false));
        assert_memory_equal(got, data, sizeof data);
        assert_true(atomic_load(&o.n_gets) >= 18);
        assert_int_equal(stats.chunks_done, 128);
        assert_int_equal(stats.elements, N * N);
        assert_true(stats.index_reads > 16);
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* Sets the first inner chunk of the first shard to the fill value, so that all others are
 * at other places of the shard. */
static void shrink_shard(struct over *o)
{
    const uint64_t part[2] = {4, 8};
    static int32_t fill[32];
    zarr_array *a = NULL;

    memset(fill, 0xff, sizeof fill);
    assert_ok(zarr_array_open(&a, o->below, "a", NULL, &terr));
    assert_ok(pw_box(a, zero, part, fill, NULL, true));
    zarr_array_free(a);
}

/* A store without versions: the lengths differ. */
static void test_replaced_without_versions(void **state)
{
    static const char *const pipelines[] = {"waves", "serial"};
    static const char *const codecs[] = {
        "[" SHARD("[4,8]", BYTES, "end") "]", "[" SHARD("[4,8]", BYTES, "start") "]",
        "[" SHARD("[8,8]", SHARD("[4,8]", BYTES, "end"), "end") "]"};
    const uint64_t at[2] = {0, 8}, part[2] = {16, 8};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(pipelines) * ZR_COUNT(codecs) * 2; i++) {
        const zarr_io_options opts = {.struct_size = sizeof opts,
                                      .tuning = TUNING(.pipeline = pipelines[i % 2])};
        const bool submits = i / 2 % 2;
        const int nested = i / 4 == 2;
        struct over o;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 1, UINT64_C(64) << 20, 0);
        over_open(&w, &o, submits ? &over_submits : &over_runs,
                  ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        a = pw_array(w.store, "a", codecs[i / 4], shape, chunk);
        make_data(7);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        for (int gets = 2; gets <= 3 + nested; gets++) { /* 1: the index */
            atomic_store(&o.n_gets, 0);
            o.replace_at = gets;
            o.replace = shrink_shard;
            memset(got, 0, sizeof got);
            assert_ok(pw_box(a, at, part, got, &opts, false));
            for (uint64_t k = 0; k < 16 * 8; k++)
                assert_int_equal(got[k], data[k / 8 * N + 8 + k % 8]);
            o.replace_at = 0;
            assert_ok(pw_box(a, zero, shape, data, NULL, true));
        }
        zarr_array_free(a);
        pw_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_one_copy),
        cmocka_unit_test(test_wrong_lengths_in_place),
        cmocka_unit_test(test_missing_part),
        cmocka_unit_test(test_parts_of_chunks),
        cmocka_unit_test(test_parts_of_neighbours),
        cmocka_unit_test(test_ranges_without_versions),
        cmocka_unit_test(test_file_as_parent),
        cmocka_unit_test(test_part_of_cut_chunk),
        cmocka_unit_test(test_faults_are_not_missing),
        cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_empty_by_version),
        cmocka_unit_test(test_replaced_shard),
        cmocka_unit_test(test_replaced_without_versions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
