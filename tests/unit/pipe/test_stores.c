/*
 * unit/pipe/test_stores.c - the pipeline on an application's stores: submitted batches,
 * conditional writes that conflict, errors that are not missing chunks, cancelling and
 * waiting. Also on an application's codecs: batches in lock step, refused chunks,
 * decoders that wrongly return NOT_FOUND.
 */
#include "unit/pipe/pipe_test.h"

#include <time.h>
#include <unistd.h>

/* ---- a store on top of a memory store ------------------------------------ */

struct over {
    zarr_store *below;
    uint32_t caps;
    atomic_int n_submitted, n_gets, n_conflicts;
    int fail_get;   /* status that GETs of chunks return; 0: no failure */
    int conflicts;  /* this many conditional PUTs find another version */
    int gone_at;    /* this GET of a chunk returns NOT_FOUND; 0: none */
    int replace_at; /* this GET of a chunk finds another version; 0: none */
    bool lose_puts; /* those of chunks return NOT_FOUND */
    int slow_ms;
};

static void over_caps(void *self, zarr_store_caps *out)
{
    const struct over *o = self;

    *out = (zarr_store_caps){.struct_size = sizeof *out, .flags = o->caps};
}

/* Writes the same bytes again, which gives a new version. */
static void over_replace(struct over *o, const char *key)
{
    static char value[65536];
    uint64_t n = sizeof value;

    assert_ok(zarr_store_get(o->below, key, 0, value, &n, NULL, &terr));
    assert_ok(zarr_store_put(o->below, key, value, n, &terr));
}

static void over_do(struct over *o, zarr_store_op *op, zarr_error *err)
{
    const struct timespec ms = {0, o->slow_ms * 1000000L};
    const bool chunk = strstr(op->key, "c/") != NULL;

    if (op->verb == ZARR_STORE_GET && chunk) {
        if (atomic_fetch_add(&o->n_gets, 1) + 1 == o->replace_at)
            over_replace(o, op->key);
        if (o->slow_ms)
            nanosleep(&ms, NULL);
        if (o->gone_at && atomic_load(&o->n_gets) == o->gone_at) {
            op->status = ZARR_ERR_NOT_FOUND;
            return;
        }
        if (o->fail_get) {
            op->status = zr_fail(err, (zarr_status)o->fail_get, "made to fail");
            return;
        }
    }
    if (op->verb == ZARR_STORE_PUT && chunk && o->lose_puts) {
        op->status = zr_fail(err, ZARR_ERR_NOT_FOUND, "there is no such bucket");
        return;
    }
    if (op->verb == ZARR_STORE_PUT && (op->flags & ZARR_STORE_OP_IF_VERSION) &&
        o->conflicts > 0) {
        o->conflicts--;
        atomic_fetch_add(&o->n_conflicts, 1);
        op->status = zr_fail(err, ZARR_ERR_CONFLICT, "another writer was faster");
        return;
    }
    op->flags |= o->caps & ZARR_STORE_CAP_CONDITIONAL ? ZARR_STORE_OP_WANT_VERSION : 0;
    (void)zr_store_run_one(o->below, op, err);
}

static void over_run(void *self, zarr_store_op *op, zarr_error *err)
{
    over_do(self, op, err);
}

static void over_submit(void *self, zarr_store_op **ops, uint64_t n,
                        void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                        void *arg)
{
    struct over *o = self;
    zarr_error err;

    atomic_fetch_add(&o->n_submitted, (int)n);
    for (uint64_t i = n; i-- > 0;) { /* in another order */
        zarr_store_op *op = ops[i];

        err.code = ZARR_OK;
        over_do(o, op, &err);
        done(arg, op, op->status != ZARR_OK ? &err : NULL);
    }
}

static zarr_status over_list(void *self, const char *prefix, uint32_t how,
                             zarr_store_list_fn fn, void *user, zarr_error *err)
{
    return zarr_store_list(((struct over *)self)->below, prefix, how, fn, user, err);
}

static void over_close(void *self)
{
    zarr_store_free(((struct over *)self)->below);
}

static const zarr_store_vtable over_runs = {.struct_size = sizeof over_runs,
                                            .name = "over",
                                            .caps = over_caps,
                                            .run = over_run,
                                            .list = over_list,
                                            .close = over_close};
static const zarr_store_vtable over_submits = {.struct_size = sizeof over_submits,
                                               .name = "over",
                                               .caps = over_caps,
                                               .submit = over_submit,
                                               .list = over_list,
                                               .close = over_close};

static void over_open(struct pw *w, struct over *o, const zarr_store_vtable *vt,
                      uint32_t caps)
{
    memset(o, 0, sizeof *o);
    o->caps =
        caps | ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT;
    o->below = w->store;
    w->store = NULL;
    assert_ok(zarr_store_open_custom(&w->store, w->ctx, vt, o, NULL, &terr));
}

enum {
    N = 64
};
static const uint64_t shape[2] = {N, N}, chunk[2] = {16, 16}, zero[2] = {0, 0};
static int32_t data[N * N], got[N * N];

static void make_data(int seed)
{
    for (int i = 0; i < N * N; i++)
        data[i] = i * 3 + seed;
}

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

/* A part of a missing raw chunk, in several ranges, on an empty store. */
static void test_missing_part(void **state)
{
    const uint64_t big[2] = {3, 16384}, part[2] = {2, 2}, at[2] = {1, 1};
    struct over o;
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    over_open(&w, &o, &over_runs, ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_FAST_GET);
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
        zarr_io_options opts = {.struct_size = sizeof opts, .pipeline = pipelines[i % 2]};
        zarr_array *a = pw_array(w.store, "a", codecs[i / 2], shape, chunk);

        assert_ok(zarr_store_put(w.store, "a/c", "x", 1, &terr));
        assert_status(pw_box(a, zero, shape, got, &opts, false), ZARR_ERR_IO);
        assert_non_null(strstr(terr.message, "a/c/0/0"));
        assert_status(pw_box(a, zero, part, got, &opts, false), ZARR_ERR_IO);
        assert_status(pw_box(a, zero, part, data, &opts, true), ZARR_ERR_IO);
        zarr_array_free(a);
        assert_ok(zarr_store_erase_prefix(w.store, "", &terr));
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
    assert_ok(
        zarr_store_put(store, item->key, value, (uint64_t)((int64_t)n + more), &terr));
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
        assert_ok(
            zarr_store_list(w.store, "a", ZARR_LIST_RECURSIVE, cut_chunk, user, &terr));
        assert_status(pw_box(a, at[k], part[k], got, &opts, false),
                      cut == 0 ? ZARR_OK : ZARR_ERR_CORRUPT);
        if (cut == 0) {
            assert_int_equal(stats.chunks_partial, 1);
            assert_true(stats.bytes_stored < 96 * 96 * 4 / 2);
        }
        assert_ok(zarr_store_erase_prefix(w.store, "a", &terr));
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
    over_open(&w, &o, &over_runs, ZARR_STORE_CAP_CONDITIONAL | ZARR_STORE_CAP_FAST_GET);
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
    o.conflicts = 1000;
    assert_status(pw_box(a, at, part, data, NULL, true), ZARR_ERR_CONFLICT);
    o.conflicts = 0;
    zarr_array_free(a);
    pw_close(&w);
}

/* A shard replaced between reading its index and its chunks is read again, with each
 * pipeline. */
static void test_replaced_shard(void **state)
{
    static const char *const pipelines[] = {"waves", "serial"};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(pipelines); i++) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options opts = {
            .struct_size = sizeof opts, .pipeline = pipelines[i], .stats = &stats};
        struct over o;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 1, UINT64_C(64) << 20, 0);
        over_open(&w, &o, &over_runs,
                  ZARR_STORE_CAP_CONDITIONAL | ZARR_STORE_CAP_RANGES |
                      ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_FAST_GET);
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

/* ---- requests -------------------------------------------------------------------- */

static void count_progress(void *user, const zarr_stats *so_far)
{
    zarr_stats *last = user;

    assert_true(so_far->chunks_done <= so_far->chunks_total);
    *last = *so_far;
}

static void test_requests(void **state)
{
    const int64_t dims[2] = {N, N};
    const zarr_tensor t = pw_tensor(got, dims, sizeof got);
    zarr_stats last = ZARR_STATS_INIT;
    zarr_io_options opts = {.struct_size = sizeof opts,
                            .max_threads = 2,
                            .progress = count_progress,
                            .progress_user = &last};
    struct over o;
    struct pw w;
    zarr_array *a;
    zarr_request *rq = NULL;
    int done = 1;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 1024);
    over_open(&w, &o, &over_runs, ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
    a = pw_array(w.store, "a", "[" SHARD("[4,4]", BYTES, "end") "]", shape, chunk);
    make_data(5);
    assert_ok(pw_box(a, zero, shape, data, &opts, true));
    assert_int_equal(last.chunks_total, 256);
    assert_int_equal(last.chunks_done, 256);
    o.slow_ms = 3;
    assert_ok(zarr_array_read_submit(&rq, a, NULL, &t, &opts, &terr));
    assert_ok(zarr_request_wait(rq, 1000, &done, &terr));
    assert_int_equal(done, 0);
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, &done, &terr));
    assert_int_equal(done, 1);
    assert_memory_equal(got, data, sizeof data);
    assert_int_equal(last.chunks_done, 256);
    zarr_request_free(rq);

    assert_ok(zarr_array_read_submit(&rq, a, NULL, &t, &opts, &terr));
    assert_ok(zarr_request_wait(rq, 20000000, &done, &terr));
    zarr_request_cancel(rq);
    assert_status(zarr_request_wait(rq, ZARR_WAIT_FOREVER, &done, &terr),
                  ZARR_ERR_CANCELLED);
    zarr_request_free(rq);
    zarr_array_free(a);
    pw_close(&w);
}

/* A progress callback that reads and writes the same chunks: no lock may be held during
 * the call, nor any of a budget that has room for one request only. */
struct nosy {
    zarr_array *array;
    int calls;
    bool busy;
};

static void nosy_progress(void *user, const zarr_stats *so_far)
{
    const uint64_t part[2] = {1, 3}, at[2] = {1, 1};
    struct nosy *n = user;
    int32_t few[3];

    (void)so_far;
    assert_false(n->busy);
    n->busy = true;
    n->calls++;
    assert_ok(pw_box(n->array, at, part, few, NULL, false));
    assert_ok(pw_box(n->array, at, part, few, NULL, true));
    n->busy = false;
}

static void test_progress_holds_nothing(void **state)
{
    static const char *const codecs[] = {"[" BYTES "," GZIP "]",
                                         "[" SHARD("[4,4]", BYTES "," GZIP, "end") "]"};
    static const char *const pipelines[] = {"waves", "serial"};
    const uint64_t at[2] = {1, 1};

    (void)state;
    alarm(60); /* a lock held here would deadlock */
    for (size_t i = 0; i < ZR_COUNT(codecs) * ZR_COUNT(pipelines) * 4; i++) {
        const bool wide = i >= 8; /* four units, which are written together */
        const uint64_t part[2] = {wide ? 30 : 14, wide ? 31 : 15};
        struct nosy nosy = {0};
        zarr_io_options opts = {.struct_size = sizeof opts,
                                .pipeline = pipelines[i % 2],
                                .progress = nosy_progress,
                                .progress_user = &nosy};
        struct over o;
        struct pw w;

        /* a budget for one request at a time */
        pw_open(&w, 2, wide ? UINT64_C(64) << 20 : 1, 0);
        over_open(&w, &o, i % 8 < 4 ? &over_runs : &over_submits,
                  ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        nosy.array = pw_array(w.store, "a", codecs[i / 2 % 2], shape, chunk);
        make_data(3);
        assert_ok(pw_box(nosy.array, zero, shape, data, NULL, true));
        o.slow_ms = i / 2 % 2 ? 20 : 60;
        memcpy(got, data, sizeof got);
        assert_ok(pw_box(nosy.array, at, part, got, &opts, true));
        assert_ok(pw_box(nosy.array, at, part, got, &opts, false));
        assert_true(nosy.calls > (wide ? 1 : 2));
        zarr_array_free(nosy.array);
        pw_close(&w);
    }
    alarm(0);
}

/* Many short requests whose worker threads start late, each with its own context. */
static void test_late_helpers(void **state)
{
    (void)state;
    make_data(9);
    for (int i = 0; i < 100; i++) {
        struct pw w;
        zarr_array *a;

        pw_open(&w, 4, UINT64_C(64) << 20, 256);
        a = pw_array(w.store, "a", "[" BYTES "]", shape, chunk);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        assert_ok(pw_box(a, zero, shape, got, NULL, false));
        assert_memory_equal(got, data, sizeof data);
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* ---- codecs ------------------------------------------------------------------------ */

static atomic_int n_batches, batch_most, n_single;
static int flip_fails;

static zarr_status flip(zarr_codec_job *jobs, uint64_t n, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0; i < n && st == ZARR_OK; i++) {
        const uint8_t *src = (uint8_t *)jobs[i].src.handle + jobs[i].src.offset;
        uint8_t *dst = (uint8_t *)jobs[i].dst.handle + jobs[i].dst.offset;

        if (flip_fails)
            return jobs[i].status = zr_fail(err, (zarr_status)flip_fails, "flip fails");
        for (uint64_t k = 0; k < jobs[i].src.bytes; k++)
            dst[k] = src[k] ^ 0x5a;
        jobs[i].dst_used = jobs[i].src.bytes;
        jobs[i].status = ZARR_OK;
    }
    return st;
}

static zarr_status flip_single(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    atomic_fetch_add(&n_single, (int)n);
    return flip(jobs, n, err);
}

static zarr_status flip_batch(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    assert_true(exec->scratch.bytes >= 100 * n);
    atomic_fetch_add(&n_batches, 1);
    if ((int)n > atomic_load(&batch_most))
        atomic_store(&batch_most, (int)n);
    return flip(jobs, n, err);
}

/* Refuses some chunks, chosen by the lowest byte of their first element, when encoding
 * or decoding. */
static int flip_accepts(void *self, const zarr_codec_job *job)
{
    const uint8_t *src = (uint8_t *)job->src.handle + job->src.offset;

    (void)self;
    return ((src[0] ^ src[3]) & 16) != 0;
}

static uint64_t flip_scratch(void *self, uint64_t n, uint64_t max_out)
{
    (void)self;
    (void)max_out;
    return 100 * n;
}

static void register_flip(zarr_context *ctx, bool batch)
{
    const uint32_t cpu = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU);
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.flip",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    zarr_codec_impl_vtable v = {.struct_size = sizeof v,
                                .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE,
                                .codec = "test.flip",
                                .impl = "cpu.single",
                                .in_kinds = cpu,
                                .out_kinds = cpu,
                                .encode = flip_single,
                                .decode = flip_single};

    assert_ok(zarr_context_register_codec_spec(ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(ctx, &v, "test", &terr));
    if (!batch)
        return;
    v.caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_BATCH;
    v.impl = "cpu.batch";
    v.priority = 1000;
    v.encode = NULL;
    v.decode = flip_batch;
    v.accepts = flip_accepts;
    v.scratch = flip_scratch;
    assert_ok(zarr_context_register_codec_impl(ctx, &v, "test", &terr));
}

#define FLIP "{\"name\":\"test.flip\"}"

static void test_lockstep(void **state)
{
    static const char *const codecs[] = {
        "[" BYTES "," FLIP "]", "[" BYTES "," GZIP "," FLIP "," CRC "]",
        "[" BIG "," FLIP "," FLIP "]", "[" SHARD("[4,8]", BYTES "," FLIP, "end") "]",
        "[" SHARD("[4,8]", BYTES, "end") "," FLIP "]"};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
        struct pw w;
        zarr_array *a;

        atomic_store(&n_batches, 0);
        atomic_store(&batch_most, 0);
        pw_context(&w, 3, UINT64_C(64) << 20, 0);
        register_flip(w.ctx, true);
        assert_ok(zarr_store_open(&w.store, w.ctx, "memory:", NULL, &terr));
        a = pw_array(w.store, "a", codecs[i], shape, chunk);
        make_data((int)i);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        assert_ok(zarr_array_chunk_erase(a, (const uint64_t[]){1, 1}, &terr));
        assert_ok(pw_box(a, zero, shape, got, &opts, false));
        for (int k = 0; k < N * N; k++)
            assert_int_equal(got[k], k / N / 16 == 1 && k % N / 16 == 1 ? -1 : data[k]);
        assert_true(atomic_load(&n_batches) > 0);
        if (i == 0 || i == 3) {
            assert_true(stats.chunks_fallback > 0);
            assert_true(atomic_load(&batch_most) > 1);
        }
        assert_int_equal(stats.chunks_done, i < 3 ? 16 : 128);
        assert_int_equal(stats.elements, N * N);
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* A PUT that answers NOT_FOUND has failed, also one that is sent with others. */
static void test_lost_puts(void **state)
{
    static const char *const codecs[] = {"[" BYTES "," FLIP "]", "[" BYTES "," GZIP "]"};
    const uint32_t cpu = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU);
    const zarr_codec_impl_vtable batch = {.struct_size = sizeof batch,
                                          .caps =
                                              ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_BATCH,
                                          .codec = "test.flip",
                                          .impl = "cpu.batch",
                                          .priority = 1000,
                                          .in_kinds = cpu,
                                          .out_kinds = cpu,
                                          .encode = flip_batch,
                                          .scratch = flip_scratch};
    const uint64_t at[2] = {1, 1}, part[2] = {40, 40};

    (void)state;
    for (size_t i = 0; i < 2 * ZR_COUNT(codecs); i++) {
        struct over o;
        struct pw w;
        zarr_array *a;

        pw_context(&w, 2, UINT64_C(64) << 20, 0);
        register_flip(w.ctx, false);
        assert_ok(zarr_context_register_codec_impl(w.ctx, &batch, "test", &terr));
        assert_ok(zarr_store_open(&w.store, w.ctx, "memory:", NULL, &terr));
        over_open(&w, &o, i % 2 ? &over_runs : &over_submits,
                  ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        a = pw_array(w.store, "a", codecs[i / 2], shape, chunk);
        make_data(3);
        o.lose_puts = true;
        assert_status(pw_box(a, zero, shape, data, NULL, true), ZARR_ERR_NOT_FOUND);
        assert_non_null(strstr(terr.message, "a/c/"));
        assert_status(pw_box(a, at, part, data, NULL, true), ZARR_ERR_NOT_FOUND);
        o.lose_puts = false;
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* A decoder's NOT_FOUND does not make the chunk a missing one. */
static void test_decoder_not_found(void **state)
{
    static const char *const codecs[] = {"[" BYTES "," FLIP "]",
                                         "[" SHARD("[4,8]", BYTES, "end") "," FLIP "]",
                                         "[" SHARD("[4,8]", BYTES "," FLIP, "end") "]"};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
        struct pw w;
        zarr_array *a;

        pw_context(&w, 2, UINT64_C(64) << 20, 0);
        register_flip(w.ctx, false);
        assert_ok(zarr_store_open(&w.store, w.ctx, "memory:", NULL, &terr));
        a = pw_array(w.store, "a", codecs[i], shape, chunk);
        make_data(3);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        flip_fails = ZARR_ERR_NOT_FOUND;
        assert_status(pw_box(a, zero, shape, got, NULL, false), ZARR_ERR_NOT_FOUND);
        flip_fails = 0;
        assert_ok(pw_box(a, zero, shape, got, NULL, false));
        assert_memory_equal(got, data, sizeof data);
        zarr_array_free(a);
        pw_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_missing_part),
        cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_faults_are_not_missing),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_late_helpers),
        cmocka_unit_test(test_lockstep),
        cmocka_unit_test(test_decoder_not_found),
        cmocka_unit_test(test_lost_puts),
        cmocka_unit_test(test_part_of_cut_chunk),
        cmocka_unit_test(test_file_as_parent),
        cmocka_unit_test(test_replaced_shard),
        cmocka_unit_test(test_progress_holds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
