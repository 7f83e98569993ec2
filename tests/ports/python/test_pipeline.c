/*
 * ports/python/test_pipeline.c - the codec pipeline of zarr-python as a C program, with
 * the rules of an interpreter: a lock around objects, an event loop that never blocks,
 * signals that cancel, exceptions that come back as they were raised. It needs the public
 * headers only, and no file, store or document made for the purpose.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <zarrc/chunks.h>

#include "pipeline.h"

enum {
    ROWS = 10,
    COLS = 12,
    GROWN = 14, /* rows after an append of another process */
    FILL = -1
};

static zarr_context *ctx;
static zarr_error err;

#define OK(call) assert_ok((call), __LINE__)
static void assert_ok(zarr_status st, int line)
{
    if (st != ZARR_OK)
        fail_msg("line %d: %s", line, err.message);
}

/* ---- arrays -------------------- */

struct kind {
    const char *name, *document; /* the shape is two %d */
    uint64_t chunk[RANK];        /* unit of writing */
};
#define V3(chunk, codecs)                                                                \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%d,%d],\"data_type\":"        \
    "\"int32\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_"         \
    "shape\":" chunk                                                                     \
    "}},\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":-1,"                \
    "\"codecs\":[" codecs "]}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
static const struct kind kinds[] = {
    {"v3",
     V3("[4,5]", LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1}}"),
     {4, 5}},
    {"v3, raw", V3("[3,12]", LITTLE), {3, 12}},
    {"v3, shards",
     V3("[4,6]",
        "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,3],"
        "\"codecs\":[" LITTLE ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}],"
        "\"index_codecs\":[" LITTLE ",{\"name\":\"crc32c\"}]}}"),
     {4, 6}},
    {"v2, F",
     "{\"zarr_format\":2,\"shape\":[%d,%d],\"chunks\":[4,5],\"dtype\":\">i4\",\"order\":"
     "\"F\",\"fill_value\":-1,\"filters\":null,\"compressor\":{\"id\":\"zlib\","
     "\"level\":1}}",
     {4, 5}},
};
enum {
    N_KINDS = sizeof kinds / sizeof kinds[0]
};

static const char *format_document(const struct kind *k, int rows)
{
    static char text[1024];

    snprintf(text, sizeof text, k->document, rows, COLS);
    return text;
}

static int32_t cell_value(uint64_t row, uint64_t col)
{
    return (int32_t)(row * 100 + col);
}

/* The values of an array of `rows` rows. One chunk, at the coordinates 1, 1, is
 * missing. */
static void make_values(struct dict *d, const struct kind *k, int rows)
{
    static int32_t all[GROWN][COLS];
    const uint64_t shape[RANK] = {(uint64_t)rows, COLS};
    zarr_store *store = NULL;
    zarr_array *a = NULL;
    zarr_tensor t;

    for (uint64_t i = 0; i < (uint64_t)rows; i++)
        for (uint64_t j = 0; j < COLS; j++) {
            const bool gone = i / k->chunk[0] == 1 && j / k->chunk[1] == 1;

            all[i][j] = gone ? FILL : cell_value(i, j);
        }
    OK(zarr_store_open(&store, ctx, "memory:", NULL, &err));
    OK(zarr_array_open_document(&a, ctx, format_document(k, rows), NULL, "/g/a", store,
                                NULL, &err));
    zarr_tensor_host(&t, NULL, all, sizeof all, RANK, shape);
    OK(zarr_array_write(a, NULL, &t, NULL, &err));
    zarr_array_free(a);
    dict_load(d, store);
    zarr_store_free(store);
}

/* ---- batches, as an indexer of zarr-python makes them -------------------- */

struct batch {
    struct item item[DICT_KEYS];
    unsigned n;
    uint64_t shape[RANK];
};

/* The part of one dimension that lies in chunk c. False: nothing. */
static bool cut(const struct slice *s, uint64_t c, uint64_t edge, struct slice *chunk,
                struct slice *out)
{
    uint64_t first = s->start, skipped = 0;

    while (first < s->stop && first < c * edge) {
        first += s->step;
        skipped++;
    }
    if (first >= s->stop || first >= (c + 1) * edge)
        return false;
    *chunk = (struct slice){first - c * edge, 0, s->step};
    *out = (struct slice){skipped, skipped, 1};
    for (; first < s->stop && first < (c + 1) * edge; first += s->step) {
        chunk->stop = first - c * edge + 1;
        out->stop++;
    }
    return true;
}

static void make_batch(struct batch *b, const struct kind *k, const struct slice *s,
                       int rows)
{
    b->n = 0;
    for (uint64_t i = 0; i * k->chunk[0] < (uint64_t)rows; i++)
        for (uint64_t j = 0; j * k->chunk[1] < COLS; j++) {
            struct item *it = &b->item[b->n];
            const uint64_t chunk[RANK] = {i, j}, shape[RANK] = {(uint64_t)rows, COLS};

            it->complete = true;
            if (!cut(&s[0], i, k->chunk[0], &it->chunk[0], &it->out[0]) ||
                !cut(&s[1], j, k->chunk[1], &it->chunk[1], &it->out[1]))
                continue;
            for (int d = 0; d < RANK; d++) {
                const uint64_t rest = shape[d] - chunk[d] * k->chunk[d];
                const uint64_t inside = rest < k->chunk[d] ? rest : k->chunk[d];

                if (it->chunk[d].start || it->chunk[d].stop < inside || s[d].step > 1)
                    it->complete = false;
            }
            snprintf(it->key, sizeof it->key,
                     k->document[15] == '3' ? "g/a/c/%d/%d" : "g/a/%d.%d", (int)i,
                     (int)j);
            b->n++;
        }
    for (int d = 0; d < RANK; d++)
        b->shape[d] = (uint64_t)b->item[b->n - 1].out[d].stop;
}

static const struct slice all_of_it[RANK] = {{0, ROWS, 1}, {0, COLS, 1}};
static const struct slice selections[][RANK] = {
    {{0, ROWS, 1}, {0, COLS, 1}}, {{2, 9, 1}, {4, 11, 1}}, {{1, 10, 3}, {0, 12, 2}},
    {{5, 6, 1}, {7, 8, 1}},       {{0, 4, 1}, {0, 5, 1}},  {{0, 10, 9}, {0, 12, 11}},
};
enum {
    N_SELECTIONS = sizeof selections / sizeof selections[0]
};

static void check_elements(const int32_t *got, const struct kind *k,
                           const struct slice *s, const struct batch *b)
{
    for (uint64_t i = 0; i < b->shape[0]; i++)
        for (uint64_t j = 0; j < b->shape[1]; j++) {
            const uint64_t row = s[0].start + i * s[0].step;
            const uint64_t col = s[1].start + j * s[1].step;
            const bool gone = row / k->chunk[0] == 1 && col / k->chunk[1] == 1;

            assert_int_equal(got[i * b->shape[1] + j],
                             gone ? FILL : cell_value(row, col));
        }
}

/* ---- whole values -------------------- */

static void read_batch(const struct pipeline *p, struct dict *d, const struct kind *k,
                       const struct slice *s, int rows)
{
    struct batch b;
    int32_t got[GROWN * COLS];
    bool present[DICT_KEYS];
    zarr_tensor out;
    zarr_status st;

    make_batch(&b, k, s, rows);
    zarr_tensor_host(&out, NULL, got, sizeof got, RANK, b.shape);
    host_lock();
    st = pipeline_read(p, d, b.item, b.n, &out, present, &err);
    host_unlock();
    OK(st);
    check_elements(got, k, s, &b);
    for (unsigned i = 0; i < b.n; i++)
        assert_int_equal(present[i],
                         !strstr(b.item[i].key, "1/1") && !strstr(b.item[i].key, "1.1"));
}

static void test_read(void **state)
{
    struct dict d = {{NULL}, {NULL}, 0, 0, 0, 0};
    struct pipeline p;

    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        make_values(&d, &kinds[i], ROWS);
        OK(pipeline_open(&p, ctx, format_document(&kinds[i], ROWS), "/g/a", NULL, &err));
        for (int s = 0; s < N_SELECTIONS; s++)
            read_batch(&p, &d, &kinds[i], selections[s], ROWS);
        pipeline_close(&p);
        host_lock();
        dict_clear(&d);
        assert_int_equal(bytes_alive(), 0);
        host_unlock();
    }
}

/* The pipeline outlives an append: its document still has the old shape. */
static void test_read_appended(void **state)
{
    static const struct slice rest[RANK] = {{7, GROWN, 1}, {0, COLS, 1}};
    struct dict d = {{NULL}, {NULL}, 0, 0, 0, 0};
    struct pipeline p;

    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        make_values(&d, &kinds[i], GROWN);
        OK(pipeline_open(&p, ctx, format_document(&kinds[i], ROWS), "/g/a", NULL, &err));
        read_batch(&p, &d, &kinds[i], rest, GROWN);
        pipeline_close(&p);
        host_lock();
        dict_clear(&d);
        host_unlock();
    }
}

/* Writes one selection after another, and compares all elements each time. */
static void test_write(void **state)
{
    struct dict d = {{NULL}, {NULL}, 0, 0, 0, 0};
    struct pipeline p;

    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        const struct kind *k = &kinds[i];
        int32_t want[ROWS][COLS], got[ROWS][COLS], src[ROWS * COLS];
        bool present[DICT_KEYS];
        struct batch b;
        zarr_tensor t;
        zarr_status st;

        for (int e = 0; e < ROWS * COLS; e++)
            want[e / COLS][e % COLS] = FILL;
        OK(pipeline_open(&p, ctx, format_document(k, ROWS), "/g/a", NULL, &err));
        for (int s = N_SELECTIONS - 1; s >= 0; s--) {
            const struct slice *sel = selections[s];

            make_batch(&b, k, sel, ROWS);
            for (uint64_t e = 0; e < b.shape[0] * b.shape[1]; e++) {
                const uint64_t r = sel[0].start + (e / b.shape[1]) * sel[0].step;
                const uint64_t c = sel[1].start + (e % b.shape[1]) * sel[1].step;

                src[e] = want[r][c] = s == 0 ? FILL : cell_value(r, c) + s * 10000;
            }
            zarr_tensor_host(&t, NULL, src, sizeof src, RANK, b.shape);
            host_lock();
            st = pipeline_write(&p, &d, b.item, b.n, &t, &err);
            host_unlock();
            OK(st);
            make_batch(&b, k, all_of_it, ROWS);
            zarr_tensor_host(&t, NULL, got, sizeof got, RANK, b.shape);
            host_lock();
            st = pipeline_read(&p, &d, b.item, b.n, &t, present, &err);
            host_unlock();
            OK(st);
            assert_memory_equal(got, want, sizeof want);
        }
        assert_int_equal(d.n, 0); /* the last write made all chunks fill values */
        pipeline_close(&p);
    }
}

/* A damaged value is an error that names what an exception must have. */
static void test_damaged(void **state)
{
    struct dict d = {{NULL}, {NULL}, 0, 0, 0, 0};
    struct pipeline p;
    struct batch b;
    int32_t got[ROWS * COLS];
    bool present[DICT_KEYS];
    char text[64];
    uint64_t inner[ZARR_MAX_RANK];
    zarr_tensor out;
    zarr_status st;

    (void)state;
    make_values(&d, &kinds[2], ROWS);
    OK(pipeline_open(&p, ctx, format_document(&kinds[2], ROWS), "/g/a", NULL, &err));
    make_batch(&b, &kinds[2], all_of_it, ROWS);
    zarr_tensor_host(&out, NULL, got, sizeof got, RANK, b.shape);
    host_lock();
    dict_get(&d, "g/a/c/1/0")->data[3] ^= 0x10;
    st = pipeline_read(&p, &d, b.item, b.n, &out, present, &err);
    host_unlock();
    assert_int_equal(st, ZARR_ERR_CORRUPT);
    assert_int_equal(err.operation, ZARR_OPERATION_DECODE);
    assert_true(zarr_error_text(&err, ZARR_ERROR_PATH, text, sizeof text) > 0);
    assert_string_equal(text, "/g/a");
    assert_true(zarr_error_text(&err, ZARR_ERROR_KEY, text, sizeof text) > 0);
    assert_string_equal(text, "g/a/c/1/0");
    assert_int_equal(zarr_error_chunk(&err, inner), RANK);
    pipeline_close(&p);
    host_lock();
    dict_clear(&d);
    host_unlock();
}

/* ---- parts of shards, on the event loop -------------------- */

static struct async_store remote;

struct soon {
    struct reading reading;
    struct pipeline p;
    struct batch batch;
    zarr_tensor out;
    zarr_cancel *cancel;
    int32_t got[ROWS * COLS];
    zarr_status status;
    zarr_error err;
    int ended; /* a pipe: the test waits for it */
    int wait;
};

static void soon_end(struct reading *r, zarr_status st, const zarr_error *e)
{
    struct soon *s = r->user;

    s->status = st;
    s->err = *e;
    MUST(write(s->ended, "", 1) == 1);
}

static void soon_begin(void *arg)
{
    struct soon *s = arg;
    zarr_status st = pipeline_read_soon(&s->p, s->batch.item, s->batch.n, &s->out,
                                        s->cancel, &s->reading, &s->err);

    MUST(st == ZARR_OK);
}

static void soon_start(struct soon *s, const struct kind *k, const struct slice *sel,
                       zarr_store *view)
{
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    s->wait = fds[0];
    s->ended = fds[1];
    s->reading = (struct reading){.then = soon_end, .user = s};
    OK(pipeline_open(&s->p, ctx, format_document(k, ROWS), "/g/a", view, &err));
    make_batch(&s->batch, k, sel, ROWS);
    zarr_tensor_host(&s->out, NULL, s->got, sizeof s->got, RANK, s->batch.shape);
    loop_call(soon_begin, s);
}

static void soon_wait(struct soon *s)
{
    char c;

    assert_int_equal(read(s->wait, &c, 1), 1);
    close(s->wait);
    close(s->ended);
    pipeline_close(&s->p);
}

static zarr_store *remote_begin(const struct kind *k, enum async_trouble trouble)
{
    zarr_store *view = NULL;

    memset(&remote, 0, sizeof remote);
    make_values(&remote.values, k, ROWS);
    remote.trouble = trouble;
    OK(async_store_open(&view, ctx, &remote, &err));
    loop_start();
    return view;
}

static void remote_end(zarr_store *view)
{
    loop_stop();
    zarr_store_free(view);
    host_lock();
    dict_clear(&remote.values);
    assert_int_equal(bytes_alive(), 0);
    host_unlock();
}

/* All indexes come in one call of the store, all ranges in another. */
static void test_read_parts(void **state)
{
    zarr_store *view = remote_begin(&kinds[2], ASYNC_WORKS);
    static struct soon s;

    (void)state;
    for (int i = 0; i < N_SELECTIONS; i++) {
        memset(&s, 0, sizeof s);
        remote.rounds = 0;
        soon_start(&s, &kinds[2], selections[i], view);
        soon_wait(&s);
        err = s.err;
        OK(s.status);
        check_elements(s.got, &kinds[2], selections[i], &s.batch);
        /* the shard of the fourth is missing, so it has no range */
        assert_int_equal(remote.rounds, i == 3 ? 1 : 2);
    }
    assert_true(loop_slowest() < 1000000000);
    remote_end(view);
}

/* Reads of several tasks of the language are under way at once. */
static void test_read_at_once(void **state)
{
    zarr_store *view = remote_begin(&kinds[2], ASYNC_WORKS);
    static struct soon s[N_SELECTIONS];

    (void)state;
    memset(s, 0, sizeof s);
    for (int i = 0; i < N_SELECTIONS; i++)
        soon_start(&s[i], &kinds[2], selections[i], view);
    for (int i = 0; i < N_SELECTIONS; i++) {
        soon_wait(&s[i]);
        err = s[i].err;
        OK(s[i].status);
        check_elements(s[i].got, &kinds[2], selections[i], &s[i].batch);
    }
    remote_end(view);
}

/* An exception of the store's coroutine comes back under its own number. */
static void test_exception(void **state)
{
    zarr_store *view = remote_begin(&kinds[2], ASYNC_RAISES);
    static struct soon s;
    char key[64];

    (void)state;
    memset(&s, 0, sizeof s);
    soon_start(&s, &kinds[2], all_of_it, view);
    soon_wait(&s);
    assert_int_equal(s.status, ZARR_ERR_IO);
    assert_int_equal(s.err.os_domain, ZARR_OS_STORE);
    assert_int_equal(s.err.os_code, ASYNC_EXCEPTION);
    assert_int_equal(s.err.operation, ZARR_OPERATION_READ);
    assert_true(zarr_error_text(&s.err, ZARR_ERROR_KEY, key, sizeof key) > 0);
    assert_memory_equal(key, "g/a/c/", 6);
    assert_non_null(strstr(s.err.message, "OSError: the bucket is gone"));
    remote_end(view);
}

static zarr_cancel *interrupted;

static void on_signal(int signal)
{
    (void)signal;
    zarr_cancel_set(interrupted); /* NOLINT(bugprone-signal-handler): made for handlers */
}

/* Ctrl-C while a store hangs: the handler runs in any thread and takes no lock. */
static void test_interrupt(void **state)
{
    zarr_store *view = remote_begin(&kinds[2], ASYNC_HANGS);
    void (*before)(int) = signal(SIGINT, on_signal);
    static struct soon s;
    unsigned rounds = 0;

    (void)state;
    memset(&s, 0, sizeof s);
    OK(zarr_cancel_create(&interrupted, &err));
    s.cancel = interrupted;
    soon_start(&s, &kinds[2], all_of_it, view);
    while (rounds == 0) { /* until the store has the operations */
        host_lock();
        rounds = remote.rounds;
        host_unlock();
    }
    assert_int_equal(raise(SIGINT), 0);
    soon_wait(&s);
    assert_int_equal(s.status, ZARR_ERR_CANCELLED);
    signal(SIGINT, before);
    zarr_cancel_free(interrupted);
    remote_end(view);
}

static int begin(void **state)
{
    (void)state;
    return zarr_context_create(&ctx, NULL, &err);
}

static int end(void **state)
{
    (void)state;
    zarr_context_free(ctx);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),       cmocka_unit_test(test_read_appended),
        cmocka_unit_test(test_write),      cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_read_parts), cmocka_unit_test(test_read_at_once),
        cmocka_unit_test(test_exception),  cmocka_unit_test(test_interrupt),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
