/*
 * unit/pipe/test_at_once.c - small reads that the call carries out that submits them
 * (ZARR_IO_AT_ONCE): which do, which must not, and that those which would wait are done
 * by the pool with the same result.
 */
#include "own_pipe.h"

#include "pipe/pipe_int.h"
#include <zarrc/plugin/store.h>

#include <fcntl.h>
#include <ftw.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    N = 32,
    CHUNK = 8
};

static const uint64_t shape[2] = {N, N}, chunk[2] = {CHUNK, CHUNK}, zero[2];
static int32_t data[N * N], got[N * N];
static const char sharded[] = "[" SHARD("[4,4]", BYTES "," CRC, "end") "]";

struct scene {
    struct pw w;
    zarr_store *store;
    zarr_array *a;
    char dir[64];
};

static void scene_fill(struct scene *s, const char *codecs)
{
    s->a = pw_array(s->store, "a", codecs, shape, chunk);
    for (int i = 0; i < N * N; i++)
        data[i] = i + 1;
    assert_ok(pw_box(s->a, zero, shape, data, NULL, true));
}

/* At "memory:", or in a new folder in `where`. */
static void scene_open(struct scene *s, const char *where, const char *codecs)
{
    pw_open(&s->w, 2, UINT64_C(64) << 20, 0);
    s->dir[0] = '\0';
    if (where)
        snprintf(s->dir, sizeof s->dir, "%s/zarrc-at-once-XXXXXX", where);
    if (where)
        assert_non_null(mkdtemp(s->dir));
    assert_ok(
        zarr_store_open(&s->store, s->w.ctx, where ? s->dir : "memory:", NULL, &terr));
    scene_fill(s, codecs);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void scene_close(struct scene *s)
{
    zarr_array_free(s->a);
    zarr_store_free(s->store);
    pw_close(&s->w);
    if (s->dir[0] != '\0')
        nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Submits a read of n x n elements at (8, 8), and checks what comes. Returns whether the
 * call itself has done it. */
static bool reads_at_once(const struct scene *s, uint64_t n, zarr_io_options opts)
{
    const uint64_t at[2] = {CHUNK, CHUNK}, count[2] = {n, n};
    const uint64_t dims[2] = {(uint64_t)n, (uint64_t)n};
    const zarr_tensor t = pw_tensor(got, dims, n * n * sizeof *got);
    zarr_selection *sel = NULL;
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_request *rq = NULL;
    bool at_once = false;

    opts.struct_size = sizeof opts;
    memset(got, 0, sizeof got);
    assert_ok(zarr_selection_box(&sel, 2, shape, at, count, &terr));
    assert_ok(zarr_array_read_submit(&rq, s->a, sel, &t, &opts, &terr));
    at_once = rq->task.fn == NULL; /* no task was submitted */
    if (at_once)
        assert_true(zr_event_is_set(&rq->done));
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
    for (uint64_t i = 0; i < n; i++)
        assert_memory_equal(&got[i * n], &data[(CHUNK + i) * N + CHUNK], n * sizeof *got);
    zarr_request_progress(rq, &stats);
    assert_int_equal(stats.elements, n * n);
    assert_int_equal(stats.chunks_done, stats.chunks_total);
    zarr_request_free(rq);
    zarr_selection_free(sel);
    return at_once;
}

/* Whether the system tells for files in `dir` what needs no disk: Linux 5.12, and not
 * each file system and sandbox. */
static bool system_tells(const char *dir, bool in_memory)
{
    const struct open_how how = {.flags = O_RDONLY, .resolve = 0x20};
    char path[64], byte;
    int fd, cached;
    bool tells;

    snprintf(path, sizeof path, "%s/zarrc-at-once-XXXXXX", dir);
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    cached = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    tells = cached >= 0 && (in_memory || preadv2(cached, &(struct iovec){&byte, 1}, 1, 0,
                                                 RWF_NOWAIT) == 1);
    if (cached >= 0)
        close(cached);
    close(fd);
    remove(path);
    if (!tells)
        print_message("the system does not tell what of %s is in memory\n", dir);
    return tells;
}

static const zarr_io_options asked = {.flags = ZARR_IO_AT_ONCE};

static void test_small(void **state)
{
    static const char *const codecs[] = {NULL, "[" BYTES "," GZIP "]", sharded};

    const int places = system_tells("/tmp", false) ? 2 : 1;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++)
        for (int local = 0; local < places; local++) {
            struct scene s;

            scene_open(&s, local ? "/tmp" : NULL, codecs[i]);
            assert_true(reads_at_once(&s, CHUNK, asked));
            assert_true(reads_at_once(&s, 3, asked));
            assert_false(reads_at_once(&s, CHUNK, (zarr_io_options){0}));
            scene_close(&s);
        }
}

static void test_in_memory(void **state)
{
    struct scene s;

    (void)state;
    if (access("/dev/shm", W_OK) != 0) {
        print_message("no /dev/shm\n");
        skip();
    }
    if (!system_tells("/dev/shm", true))
        skip();
    scene_open(&s, "/dev/shm", NULL);
    assert_true(reads_at_once(&s, CHUNK, asked));
    scene_close(&s);
}

static void no_progress(void *user, const zarr_stats *so_far)
{
    (void)user;
    (void)so_far;
}

/* More chunks than eight, more bytes than 64 KiB, a call that reports, another pipeline.
 */
static void test_others(void **state)
{
    const uint64_t large[2] = {128, 129};
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options o = asked;
    struct scene s;

    (void)state;
    scene_open(&s, NULL, NULL);
    assert_false(reads_at_once(&s, UINT64_C(3) * CHUNK, asked));
    o.progress = no_progress;
    assert_false(reads_at_once(&s, CHUNK, o));
    o = asked;
    o.stats = &stats;
    assert_false(reads_at_once(&s, CHUNK, o));
    assert_int_equal(stats.chunks_done, 1);
    o = asked;
    o.tuning = TUNING(.pipeline = "serial");
    assert_false(reads_at_once(&s, CHUNK, o));
    o = asked;
    o.tuning = TUNING(.wave_bytes = 1); /* many waves are not small, either */
    assert_false(reads_at_once(&s, UINT64_C(3) * CHUNK, o));
    zarr_array_free(s.a);
    s.a = pw_array(s.store, "large", NULL, large, large); /* chunks of 64.5 KiB */
    assert_ok(pw_box(s.a, zero, shape, data, NULL, true));
    {
        const uint64_t dims[2] = {1, 1};
        const zarr_tensor t = pw_tensor(got, dims, sizeof *got);
        const uint64_t one[2] = {1, 1};
        zarr_selection *sel = NULL;
        zarr_request *rq = NULL;

        assert_ok(zarr_selection_box(&sel, 2, large, zero, one, &terr));
        o = asked;
        o.struct_size = sizeof o;
        assert_ok(zarr_array_read_submit(&rq, s.a, sel, &t, &o, &terr));
        assert_non_null(rq->task.fn);
        assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
        assert_int_equal(got[0], data[0]);
        zarr_request_free(rq);
        zarr_selection_free(sel);
    }
    scene_close(&s);
}

static zr_thread submitter;

static zarr_status decode_elsewhere(void *self, zarr_codec_job *jobs, uint64_t n,
                                    zarr_codec_exec *exec, zarr_error *err)
{
    assert_false(zr_thread_is_self(&submitter));
    return pw_copy_same(self, jobs, n, exec, err);
}

/* A codec that is not the library's may wait for anything, also that of an index. */
static void test_codec_of_application(void **state)
{
    static const char *const codecs[] = {
        "[" BYTES ",{\"name\":\"test.same\"}]",
        "[" SHARD("[4,4]", BYTES ",{\"name\":\"test.same\"}", "end") "]",
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4,4],"
        "\"codecs\":[" BYTES "],\"index_codecs\":[" BYTES ",{\"name\":\"test.same\"}]}}]",
        "[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<i4\"}}," SHARD(
            "[4,4]", BYTES ",{\"name\":\"test.same\"}", "end") "]"};
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.same",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    const zarr_codec_impl_vtable impl = {.struct_size = sizeof impl,
                                         .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                                 ZARR_CODEC_CAN_ENCODE,
                                         .codec = "test.same",
                                         .impl = "cpu.test",
                                         .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                         .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                         .encode = pw_copy_same,
                                         .decode = decode_elsewhere};
    struct scene s = {.dir = ""};

    (void)state;
    pw_context(&s.w, 2, UINT64_C(64) << 20, 0);
    assert_ok(zarr_context_register_codec_spec(s.w.ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(s.w.ctx, &impl, "test", &terr));
    assert_ok(zarr_store_open(&s.store, s.w.ctx, "memory:", NULL, &terr));
    submitter = zr_thread_self();
    for (int i = 0; i < N * N; i++)
        data[i] = i + 1;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
        const char name[2] = {(char)('a' + i), '\0'};

        s.a = pw_array(s.store, name, codecs[i], shape, chunk);
        assert_ok(pw_box(s.a, zero, shape, data, NULL, true));
        assert_false(reads_at_once(&s, CHUNK, asked));
        zarr_array_free(s.a);
    }
    s.a = NULL;
    scene_close(&s);
}

/* Drops a file from the page cache. Returns false if the system keeps it. */
static bool drop(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    unsigned char is_there = 0;
    void *page = NULL;

    assert_true(fd >= 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    page = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    assert_int_equal(mincore(page, 1, &is_there), 0); /* to read it would fetch it */
    munmap(page, 1);
    close(fd);
    return !(is_there & 1);
}

/* The pool reads what is not in the page cache. A fast disk may have it there while the
 * kernel is asked. */
static void test_cold(void **state)
{
    int n_cold = 0, n_pool = 0;
    char path[128];
    struct scene s;

    (void)state;
    if (!system_tells("/tmp", false))
        skip();
    scene_open(&s, "/tmp", NULL);
    assert_ok(zarr_store_flush(s.store, NULL, &terr));
    snprintf(path, sizeof path, "%s/a/c/1/1", s.dir);
    for (int i = 0; i < 20; i++) {
        n_cold += drop(path);
        n_pool += !reads_at_once(&s, CHUNK, asked);
        assert_true(reads_at_once(&s, CHUNK, asked)); /* now it is there */
    }
    scene_close(&s);
    print_message("%d times cold, %d of them read by the pool\n", n_cold, n_pool);
    assert_true(n_pool <= n_cold);
    if (n_pool == 0)
        skip();
}

/* Names with symlinks and missing chunks are found as ever. */
static void test_names(void **state)
{
    char from[128], to[128];
    struct scene s;

    (void)state;
    if (!system_tells("/tmp", false))
        skip();
    scene_open(&s, "/tmp", NULL);
    snprintf(from, sizeof from, "%s/a/c/1/1", s.dir);
    snprintf(to, sizeof to, "%s/elsewhere", s.dir);
    assert_int_equal(rename(from, to), 0);
    assert_int_equal(symlink("../../../elsewhere", from), 0);
    assert_false(reads_at_once(&s, CHUNK, asked));
    assert_int_equal(remove(from), 0);
    for (int y = CHUNK; y < 2 * CHUNK; y++)
        for (int x = CHUNK; x < 2 * CHUNK; x++)
            data[y * N + x] = -1;
    (void)reads_at_once(&s, CHUNK, asked);
    assert_true(reads_at_once(&s, CHUNK, asked)); /* that it is missing is known */
    scene_close(&s);
}

/* While others have all memory, the call returns; the pool waits. */
static void test_budget(void **state)
{
    struct scene s;
    struct zr_budget *b = NULL;
    const uint64_t dims[2] = {CHUNK, CHUNK};
    const zarr_tensor t = pw_tensor(got, dims, sizeof(int32_t) * CHUNK * CHUNK);
    const uint64_t count[2] = {CHUNK, CHUNK};
    zarr_io_options o = asked;
    zarr_selection *sel = NULL;
    zarr_request *rq = NULL;
    int done = 1;

    (void)state;
    scene_open(&s, NULL, "[" BYTES "," GZIP "]");
    b = s.w.ctx->engine.budget;
    o.struct_size = sizeof o;
    assert_ok(zr_budget_take(b, b->total, UINT64_MAX, NULL, &terr));
    assert_ok(zarr_selection_box(&sel, 2, shape, zero, count, &terr));
    assert_ok(zarr_array_read_submit(&rq, s.a, sel, &t, &o, &terr));
    assert_non_null(rq->task.fn);
    assert_ok(zarr_request_wait(rq, 10000000, &done, &terr));
    assert_int_equal(done, 0);
    zr_budget_give(b, b->total);
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
    assert_int_equal(got[0], 1);
    zarr_request_free(rq);
    zarr_selection_free(sel);
    scene_close(&s);
}

/* Decodes n x n elements from (0, 0), whose chunks the caller has. */
static zarr_status decodes_at_once(const struct scene *s, uint64_t n)
{
    static uint8_t bytes[N / CHUNK * N / CHUNK][1024];
    uint64_t chunks[N / CHUNK * N / CHUNK][2];
    zarr_memory values[N / CHUNK * N / CHUNK];
    const uint64_t count[2] = {n, n};
    const uint64_t dims[2] = {(uint64_t)n, (uint64_t)n};
    const zarr_tensor t = pw_tensor(got, dims, n * n * sizeof *got);
    zarr_block_batch batch = ZARR_BLOCK_BATCH_INIT;
    zarr_io_options o = asked;
    zarr_selection *sel = NULL;
    zarr_status st = ZARR_OK;

    for (uint64_t y = 0; y < n / CHUNK; y++)
        for (uint64_t x = 0; x < n / CHUNK; x++) {
            const size_t i = (size_t)batch.n_blocks++;
            uint64_t length = sizeof bytes[i];

            chunks[i][0] = y;
            chunks[i][1] = x;
            assert_ok(zarr_array_block_read_encoded(s->a, chunks[i], bytes[i], &length,
                                                    NULL, &terr));
            values[i] = (zarr_memory){.handle = bytes[i], .bytes = length};
        }
    batch.blocks = chunks[0];
    batch.bytes = values;
    o.struct_size = sizeof o;
    memset(got, 0, sizeof got);
    assert_ok(zarr_selection_box(&sel, 2, shape, zero, count, &terr));
    st = zarr_array_decode(s->a, sel, &t, &batch, &o, &terr);
    zarr_selection_free(sel);
    return st;
}

/* A decode with the flag never waits, and does no more than a little. */
static void test_decode(void **state)
{
    static const char *const codecs[] = {"[" BYTES "," GZIP "]", sharded};
    struct zr_budget *b = NULL;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
        struct scene s;

        scene_open(&s, NULL, codecs[i]);
        b = s.w.ctx->engine.budget;
        assert_ok(decodes_at_once(&s, CHUNK));
        for (uint64_t y = 0; y < CHUNK; y++)
            assert_memory_equal(&got[y * CHUNK], &data[y * N], CHUNK * sizeof *got);
        assert_status(decodes_at_once(&s, N), ZARR_ERR_CANCELLED); /* 16 or 64 chunks */
        assert_ok(zr_budget_take(b, b->total, UINT64_MAX, NULL, &terr));
        assert_status(decodes_at_once(&s, CHUNK), ZARR_ERR_CANCELLED);
        zr_budget_give(b, b->total);
        assert_ok(decodes_at_once(&s, CHUNK));
        scene_close(&s);
    }
}

/* Reads n x n elements at (8, 8) without a request. */
static zarr_status read_now(const struct scene *s, uint64_t n, uint8_t *present)
{
    const uint64_t at[2] = {CHUNK, CHUNK}, count[2] = {n, n};
    const uint64_t dims[2] = {(uint64_t)n, (uint64_t)n};
    const zarr_tensor t = pw_tensor(got, dims, n * n * sizeof *got);
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_selection *sel = NULL;
    zarr_status st = ZARR_OK;

    opts.flags = ZARR_IO_AT_ONCE;
    opts.present = present;
    opts.n_present = present ? 9 : 0;
    memset(got, 0, sizeof got);
    assert_ok(zarr_selection_box(&sel, 2, shape, at, count, &terr));
    st = zarr_array_read(s->a, sel, &t, &opts, &terr);
    for (uint64_t i = 0; i < n && st == ZARR_OK; i++)
        assert_memory_equal(&got[i * n], &data[(CHUNK + i) * N + CHUNK], n * sizeof *got);
    zarr_selection_free(sel);
    return st;
}

/* zarr_array_read() with the flag is an attempt, too: its caller decides what comes then.
 */
static void test_read(void **state)
{
    uint8_t present[10];
    struct scene s;

    (void)state;
    scene_open(&s, NULL, NULL);
    assert_ok(read_now(&s, 3, NULL));
    assert_ok(zarr_store_erase(s.store, "a/c/1/2", NULL, &terr));
    for (int i = 0; i < 8; i++)
        memset(&data[(CHUNK + i) * N + 2 * CHUNK], 0xff, CHUNK * sizeof *data);
    memset(present, 7, sizeof present);
    assert_ok(read_now(&s, UINT64_C(2) * CHUNK, present));
    assert_memory_equal(present, ((const uint8_t[10]){1, 0, 1, 1, 7, 7, 7, 7, 7, 7}), 10);
    assert_status(read_now(&s, UINT64_C(3) * CHUNK, NULL),
                  ZARR_ERR_CANCELLED); /* nine chunks */
    assert_ok(pw_box(s.a, zero, shape, got, NULL, false));
    assert_memory_equal(got, data, sizeof got);
    scene_close(&s);
}

static uint64_t count_waves(const struct scene *s, const char *pipeline)
{
    const zarr_io_options opts = {.struct_size = sizeof opts,
                                  .tuning = TUNING(.pipeline = pipeline)};
    zarr_explanation *e = NULL;
    uint64_t n;

    assert_ok(zarr_array_explain(&e, s->a, ZARR_EXPLAIN_READ, NULL, NULL, &opts, &terr));
    n = e->waves;
    zarr_explanation_free(e);
    return n;
}

/* Flags of a pipeline of the application: it is tried if its table says that it waits for
 * nothing, and is explained as plain if the table says that it is. */
static void test_pipeline_of_application(void **state)
{
    zarr_pipeline_vtable tried = own_pipe, plain = own_pipe;
    zarr_io_options o = asked;
    struct scene s;

    (void)state;
    tried.name = "test.tried";
    tried.flags = ZARR_PIPELINE_AT_ONCE;
    memset(&s, 0, sizeof s);
    pw_context(&s.w, 2, UINT64_C(64) << 20, 0);
    assert_ok(zarr_context_register_pipeline(s.w.ctx, &own_pipe, &own_n, "test", &terr));
    assert_ok(zarr_context_register_pipeline(s.w.ctx, &tried, &own_n, "test", &terr));
    plain.name = "test.plain";
    plain.flags = ZARR_PIPELINE_PLAIN;
    assert_ok(zarr_context_register_pipeline(s.w.ctx, &plain, &own_n, "test", &terr));
    assert_ok(zarr_store_open(&s.store, s.w.ctx, "memory:", NULL, &terr));
    scene_fill(&s, sharded);
    o.tuning = TUNING(.pipeline = "test.own");
    assert_false(reads_at_once(&s, CHUNK, o));
    o.tuning = TUNING(.pipeline = "test.tried");
    assert_true(reads_at_once(&s, CHUNK, o));
    assert_int_equal(own_n.reads, 2);
    /* the steps end the attempt, and the pool calls the pipeline once more */
    assert_false(reads_at_once(&s, UINT64_C(3) * CHUNK, o));
    assert_int_equal(own_n.reads, 4);
    assert_int_equal(own_n.wrong, 0);
    assert_int_equal(count_waves(&s, "test.tried"), 1);
    assert_int_equal(count_waves(&s, "test.plain"), count_waves(&s, "serial"));
    assert_int_equal(count_waves(&s, "test.plain"), N / 4 * (N / 4));
    scene_close(&s);
}

/* ---- a store of the application ---- */

static zarr_store *below;

static void near_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT |
                 ZARR_STORE_CAP_FAST_GET;
}

static void near_run(void *self, zarr_store_op *op, zarr_error *err)
{
    char *p = op->mem.handle ? (char *)op->mem.handle + op->mem.offset : NULL;

    (void)self;
    op->done_bytes = 0;
    op->object_bytes = UINT64_MAX;
    if (op->verb == ZARR_STORE_PUT) {
        op->status = zarr_store_put(below, op->key, p, op->mem.bytes, NULL, err);
        return;
    }
    if (strstr(op->key, "/c/"))
        assert_false(zr_thread_is_self(&submitter));
    zarr_store_run(below, op, err);
}

static zarr_status near_list(void *self, const char *prefix, uint32_t how,
                             zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                             zarr_error *err)
{
    (void)cancel;
    (void)self;
    return zarr_store_list(below, prefix, how, fn, user, NULL, err);
}

static void test_of_application(void **state)
{
    static const zarr_store_vtable near = {.struct_size = sizeof near,
                                           .name = "near",
                                           .caps = near_caps,
                                           .run = near_run,
                                           .list = near_list};
    struct scene s = {.dir = ""};

    (void)state;
    pw_open(&s.w, 2, UINT64_C(64) << 20, 0);
    below = s.w.store;
    assert_ok(zarr_store_open_custom(&s.store, s.w.ctx, &near, NULL, NULL, &terr));
    s.a = pw_array(s.store, "a", NULL, shape, chunk);
    for (int i = 0; i < N * N; i++)
        data[i] = i + 1;
    assert_ok(pw_box(s.a, zero, shape, data, NULL, true));
    submitter = zr_thread_self();
    assert_false(reads_at_once(&s, CHUNK, asked));
    scene_close(&s);
}

/* ---- failures ---- */

/* The result of a failure is that of the request, not of the call that submits it. */
static void test_damage(void **state)
{
    const uint64_t dims[2] = {N, N};
    const zarr_tensor t = pw_tensor(got, dims, sizeof got);
    const uint64_t whole[2] = {N, N};
    zarr_io_options o = asked;
    zarr_array *one = NULL;
    zarr_request *rq = NULL;
    struct scene s;

    (void)state;
    scene_open(&s, NULL, NULL);
    one = pw_array(s.store, "one", "[" BYTES "," CRC "]", shape, whole);
    assert_ok(zarr_store_put(s.store, "one/c/0/0", "damage", 6, NULL, &terr));
    o.struct_size = sizeof o;
    assert_ok(zarr_array_read_submit(&rq, one, NULL, &t, &o, &terr));
    assert_null(rq->task.fn);
    assert_status(zarr_request_wait(rq, 0, NULL, &terr), ZARR_ERR_CORRUPT);
    assert_non_null(strstr(terr.message, "one/c/0/0"));
    zarr_request_free(rq);
    zarr_array_free(one);
    scene_close(&s);
}

/* Each allocation fails once, here or in the pool. */
static void test_no_memory(void **state)
{
    const uint64_t count[2] = {CHUNK, CHUNK};
    const uint64_t dims[2] = {CHUNK, CHUNK};
    const zarr_tensor t = pw_tensor(got, dims, sizeof(int32_t) * CHUNK * CHUNK);
    zarr_io_options o = asked;
    zarr_selection *sel = NULL;
    struct scene s;
    bool failed = true;

    (void)state;
    scene_open(&s, NULL, sharded);
    o.struct_size = sizeof o;
    assert_ok(zarr_selection_box(&sel, 2, shape, zero, count, &terr));
    for (int k = 1; failed; k++) {
        zarr_request *rq = NULL;
        zarr_status st;

        zarr_context_trim(s.w.ctx);
        atomic_store(&s.w.fail_in, k);
        st = zarr_array_read_submit(&rq, s.a, sel, &t, &o, &terr);
        if (st == ZARR_OK)
            st = zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr);
        failed = atomic_load(&s.w.fail_in) <= 0;
        atomic_store(&s.w.fail_in, 0);
        if (st != ZARR_OK)
            assert_int_equal(st, ZARR_ERR_NO_MEMORY);
        else
            assert_int_equal(got[0], 1);
        zarr_request_free(rq);
    }
    zarr_selection_free(sel);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small),
                                       cmocka_unit_test(test_in_memory),
                                       cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_cold),
                                       cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_budget),
                                       cmocka_unit_test(test_decode),
                                       cmocka_unit_test(test_read),
                                       cmocka_unit_test(test_of_application),
                                       cmocka_unit_test(test_damage),
                                       cmocka_unit_test(test_no_memory),
                                       cmocka_unit_test(test_codec_of_application),
                                       cmocka_unit_test(test_pipeline_of_application)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
