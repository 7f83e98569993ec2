/*
 * unit/pipe/test_many.c - several selections in one request: each part gets what a read
 * of its own gives, chunks that parts share are fetched and decoded once, writes of parts
 * are as writes one after the other, and a chunk that fails fails only its parts.
 */
#include "pipe_test.h"

#include "fakedev/fakedev.h"

enum {
    ROWS = 61,
    COLS = 47,
    N = ROWS * COLS,
    MOST = 12 /* parts */
};
static const uint64_t shape[2] = {ROWS, COLS}, zero[2];
static int32_t data[N];

static const struct kind {
    const char *codecs;
    uint64_t chunk[2];
} kinds[] = {
    {"[" BYTES "]", {8, 10}},
    {"[" BYTES "," GZIP "]", {16, 16}},
    {"[" BIG "," GZIP "," CRC "]", {9, 47}},
    {"[" TURN "," BYTES "]", {8, 10}},
    {"[" SHARD("[4,5]", BYTES, "end") "]", {16, 20}},
    {"[" SHARD("[4,5]", BIG "," GZIP, "start") "," GZIP "]", {16, 10}},
    {"[" TURN "," SHARD("[5,4]", TURN "," BYTES, "end") "]", {8, 10}},
    {"[" SHARD("[8,10]", TURN "," SHARD("[5,2]", BYTES "," GZIP, "end"), "end") "]",
     {16, 20}},
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

/* ---- parts ------------------------------------------------------------------- */

struct part {
    zarr_selection *sel;
    zarr_tensor t;
    int64_t shape[2], stride[2];
    int32_t *block; /* room for the strides */
    int32_t *first;
    zarr_error err;
};
static struct part part[MOST];
static zarr_io_part ask[MOST];

static zarr_selection *random_selection(unsigned *seed)
{
    static const char *const texts[] = {
        "::3,1",           "5:50:7,::-2", "[1,1,7,60],[28,0,3]",
        "[30,2,9],4:20:5", "...",         "40:40,:"};
    zarr_selection *sel = NULL;
    const unsigned what = (unsigned)rand_r(seed) % 10;

    if (what < 2) {
        assert_ok(zarr_selection_parse(
            &sel, 2, shape, texts[(size_t)rand_r(seed) % ZR_COUNT(texts)], &terr));
    } else if (what == 2) {
        int64_t at[20];
        const uint64_t n = 10;

        for (int i = 0; i < 20; i++)
            at[i] = rand_r(seed) % (i % 2 ? COLS : ROWS);
        assert_ok(zarr_selection_points(&sel, 2, shape, 10, at, 1, &n, &terr));
    } else {
        uint64_t at[2], n[2];

        for (int d = 0; d < 2; d++) {
            n[d] = 1 + (uint64_t)rand_r(seed) % 30;
            at[d] = (uint64_t)rand_r(seed) % (shape[d] - n[d] + 1);
        }
        assert_ok(zarr_selection_box(&sel, 2, shape, at, n, &terr));
    }
    return sel;
}

/* A tensor for a selection: in C or Fortran order, or backward. */
static void part_tensor(struct part *p, unsigned *seed, bool fill)
{
    const int32_t ndim = zarr_selection_ndim(p->sel);
    const uint64_t n = zarr_selection_n_items(p->sel);
    const int form = rand_r(seed) % 3;
    int64_t step = (int64_t)sizeof *p->block;

    p->block = calloc(n + 1, sizeof *p->block);
    p->first = p->block;
    for (uint64_t i = 0; i < n && fill; i++)
        p->block[i] = rand_r(seed);
    for (int32_t k = 0; k < ndim; k++) {
        const int32_t d = form == 1 ? k : ndim - 1 - k;

        p->shape[d] = (int64_t)zarr_selection_shape(p->sel)[d];
        p->stride[d] = form == 2 ? -step : step;
        step *= p->shape[d];
    }
    if (form == 2 && n > 0)
        p->first += n - 1;
    p->t = (zarr_tensor)ZARR_TENSOR_INIT;
    p->t.device_type = ZARR_DEVICE_CPU;
    p->t.ndim = ndim;
    p->t.data = p->first;
    p->t.shape = p->shape;
    p->t.strides = p->stride;
}

static void make_parts(int n, unsigned *seed, bool fill)
{
    for (int i = 0; i < n; i++) {
        part[i].sel = random_selection(seed);
        part_tensor(&part[i], seed, fill);
        part[i].err = (zarr_error)ZARR_ERROR_INIT;
        ask[i] = (zarr_io_part){.selection = part[i].sel,
                                .tensor = &part[i].t,
                                .error = &part[i].err,
                                .status = ZARR_ERR_INTERNAL};
    }
}

static void free_parts(int n)
{
    for (int i = 0; i < n; i++) {
        zarr_selection_free(part[i].sel);
        free(part[i].block);
    }
}

/* The elements of a part are those that a read of its own gives. */
static void check_part(zarr_array *a, struct part *p)
{
    const uint64_t n = zarr_selection_n_items(p->sel);
    int32_t *one = calloc(n + 1, sizeof *one);
    zarr_tensor t = p->t;

    t.data = one + (p->first - p->block);
    assert_ok(zarr_array_read(a, p->sel, &t, NULL, &terr));
    assert_memory_equal(one, p->block, n * sizeof *one);
    free(one);
}

static zarr_array *filled(struct pw *w, const char *path, size_t kind)
{
    zarr_array *a =
        pw_array(w->store, path, kinds[kind].codecs, shape, kinds[kind].chunk);
    const uint64_t at[2] = {3, 2}, n[2] = {ROWS - 8, COLS - 2};

    for (int i = 0; i < N; i++)
        data[i] = i * 11 + 1;
    assert_ok(pw_box(a, at, n, data, NULL, true)); /* some chunks are missing */
    return a;
}

/* ---- reads and writes --------------------------------------------------------- */

static void test_reads(void **state)
{
    unsigned seed = 1;

    (void)state;
    for (size_t k = 0; k < N_KINDS * 4; k++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        struct pw w;
        zarr_array *a;

        pw_open(&w, k % 2 ? 4 : 1, UINT64_C(64) << 20, k & 8 ? 700 : 0);
        a = filled(&w, "a", k % N_KINDS);
        o.pipeline = k / N_KINDS == 3 ? "serial" : NULL;
        for (int round = 0; round < 25; round++) {
            const int n = rand_r(&seed) % (MOST + 1);

            make_parts(n, &seed, false);
            assert_ok(zarr_array_read_many(a, ask, (size_t)n, &o, &terr));
            for (int i = 0; i < n; i++) {
                assert_int_equal(ask[i].status, ZARR_OK);
                check_part(a, &part[i]);
            }
            free_parts(n);
        }
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* Both arrays hold the same. */
static void same_elements(zarr_array *a, zarr_array *b)
{
    static int32_t x[N], y[N];

    assert_ok(pw_box(a, zero, shape, x, NULL, false));
    assert_ok(pw_box(b, zero, shape, y, NULL, false));
    assert_memory_equal(x, y, sizeof x);
}

static void test_writes(void **state)
{
    unsigned seed = 2;

    (void)state;
    for (size_t k = 0; k < N_KINDS * 4; k++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        struct pw w;
        zarr_array *a, *b;

        pw_open(&w, k % 2 ? 4 : 1, UINT64_C(64) << 20, k & 8 ? 700 : 0);
        a = filled(&w, "a", k % N_KINDS);
        b = filled(&w, "b", k % N_KINDS);
        o.pipeline = k / N_KINDS == 3 ? "serial" : NULL;
        for (int round = 0; round < 12; round++) {
            const int n = rand_r(&seed) % (MOST + 1);

            make_parts(n, &seed, true);
            assert_ok(zarr_array_write_many(a, ask, (size_t)n, &o, &terr));
            for (int i = 0; i < n; i++) {
                assert_int_equal(ask[i].status, ZARR_OK);
                assert_ok(zarr_array_write(b, part[i].sel, &part[i].t, NULL, &terr));
            }
            same_elements(a, b);
            free_parts(n);
        }
        zarr_array_free(a);
        zarr_array_free(b);
        pw_close(&w);
    }
}

/* ---- boxes -------------------------------------------------------------------- */

static int32_t crop[MOST][N];

/* Part i is the box at `at` of n[0] x n[1] elements. */
static void box_part(int i, uint64_t row, uint64_t col, uint64_t rows, uint64_t cols)
{
    const uint64_t at[2] = {row, col}, n[2] = {rows, cols};
    struct part *p = &part[i];

    assert_ok(zarr_selection_box(&p->sel, 2, shape, at, n, &terr));
    p->block = NULL;
    p->shape[0] = (int64_t)rows;
    p->shape[1] = (int64_t)cols;
    zarr_tensor_host(&p->t, crop[i], sizeof crop[i], 2, p->shape);
    p->err = (zarr_error)ZARR_ERROR_INIT;
    ask[i] = (zarr_io_part){.selection = p->sel,
                            .tensor = &p->t,
                            .error = &p->err,
                            .status = ZARR_ERR_INTERNAL};
}

static void check_box(int i, uint64_t row, uint64_t col, uint64_t rows, uint64_t cols)
{
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < cols; c++)
            assert_int_equal(crop[i][r * cols + c], data[(row + r) * COLS + col + c]);
}

static zarr_array *full(struct pw *w, const char *path, size_t kind)
{
    zarr_array *a =
        pw_array(w->store, path, kinds[kind].codecs, shape, kinds[kind].chunk);

    for (int i = 0; i < N; i++)
        data[i] = i * 11 + 1;
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    return a;
}

/* Three crops that overlap: each chunk, and each index, is fetched once. */
static void test_once(void **state)
{
    (void)state;
    for (int sharded = 0; sharded < 2; sharded++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        zarr_stats stats = ZARR_STATS_INIT;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 2, UINT64_C(64) << 20, 0);
        a = full(&w, "a", sharded ? 4 : 1);
        o.stats = &stats;
        o.coalesce_bytes = 1; /* each inner chunk alone */
        box_part(0, 0, 0, 20, 20);
        box_part(1, 5, 5, 20, 20);
        box_part(2, 5, 5, 3, 3);
        assert_ok(zarr_array_read_many(a, ask, 3, &o, &terr));
        check_box(0, 0, 0, 20, 20);
        check_box(1, 5, 5, 20, 20);
        check_box(2, 5, 5, 3, 3);
        assert_int_equal(stats.elements, 400 + 400 + 9);
        assert_int_equal(stats.chunks_total, stats.chunks_done);
        if (sharded) { /* inner chunks of 4 x 5 */
            assert_int_equal(stats.chunks_done, 5 * 4 + 6 * 4 - 4 * 3);
            assert_int_equal(stats.index_reads, 4);
            assert_int_equal(stats.store_gets, stats.chunks_done + stats.index_reads);
        } else { /* chunks of 16 x 16 */
            assert_int_equal(stats.chunks_done, 4);
            assert_int_equal(stats.store_gets, 4);
            assert_int_equal(stats.bytes_decoded, 4 * 16 * 16 * 4);
        }
        free_parts(3);
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* Writes four boxes that cover chunks together, or leave a hole. */
static void write_quarters(zarr_array *a, bool hole, zarr_stats *stats)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;

    o.stats = stats;
    for (int i = 0; i < 4; i++)
        box_part(i, i / 2 ? 10 : 0, i % 2 ? 7 : 0, i / 2 ? 22 : 10 - (uint64_t)hole,
                 i % 2 ? 33 : 7);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < N; j++)
            crop[i][j] = 1000 * (i + 1) + j;
    assert_ok(zarr_array_write_many(a, ask, 4, &o, &terr));
    free_parts(4);
}

/* What the caller wrote at a place, or the old element. */
static void check_quarters(zarr_array *a, bool hole)
{
    static int32_t now[ROWS][COLS];

    assert_ok(pw_box(a, zero, shape, now[0], NULL, false));
    assert_int_equal(now[0][0], 1000);
    assert_int_equal(now[8][7], 2000 + 8 * 33);
    assert_int_equal(now[9][0], hole ? 9 * COLS * 11 + 1 : 1000 + 9 * 7);
    assert_int_equal(now[31][39], 4000 + 21 * 33 + 32);
    assert_int_equal(now[31][40], (31 * COLS + 40) * 11 + 1);
}

/* Parts that cover chunks together need no old value; parts that leave a hole do. */
static void test_covered(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const bool hole = i % 2, sharded = i / 2;
        zarr_stats stats = ZARR_STATS_INIT;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 2, UINT64_C(64) << 20, 0);
        a = full(&w, "a", sharded ? 4 : 1);
        write_quarters(a, hole, &stats);
        if (sharded) /* of 16 x 20 */
            assert_int_equal(stats.read_modify_writes, hole ? 2 : 0);
        else /* the last column of 16 x 16 is not written whole */
            assert_int_equal(stats.read_modify_writes, hole ? 2 + 2 : 2);
        assert_int_equal(stats.store_puts, sharded ? 4 : 6);
        check_quarters(a, hole);
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* ---- failures ----------------------------------------------------------------- */

static void damage(zarr_array *a, uint64_t row, uint64_t col, uint64_t at, uint64_t n)
{
    const uint64_t chunk[2] = {row, col};
    static uint8_t bytes[65536];
    uint64_t len = sizeof bytes;

    assert_ok(zarr_array_chunk_read_encoded(a, chunk, bytes, &len, &terr));
    if (at > len)
        at = len - n;
    memset(bytes + at, 0xa5, n);
    assert_ok(zarr_array_chunk_write_encoded(a, chunk, bytes, len, &terr));
}

static void read_damaged(zarr_array *a, const zarr_io_options *o)
{
    box_part(0, 17, 0, 12, 12); /* the chunk below */
    box_part(1, 2, 0, 20, 5);   /* the damaged one, and the one below */
    box_part(2, 0, 21, 16, 10); /* beside it */
    box_part(3, 0, 0, 3, 3);
    assert_status(zarr_array_read_many(a, ask, 4, o, &terr), ZARR_ERR_CORRUPT);
    assert_int_equal(terr.item, 1);
    assert_non_null(strstr(terr.message, "a/c/0/0"));
    assert_int_equal(ask[0].status, ZARR_OK);
    assert_int_equal(ask[1].status, ZARR_ERR_CORRUPT);
    assert_int_equal(ask[2].status, ZARR_OK);
    assert_int_equal(ask[3].status, ZARR_ERR_CORRUPT);
    assert_string_equal(part[1].err.message, terr.message);
    assert_int_equal(part[0].err.code, ZARR_OK);
    assert_int_equal(part[3].err.code, ZARR_ERR_CORRUPT);
    assert_true(part[3].err.part[ZARR_ERROR_KEY].bytes > 0);
    assert_true(part[3].err.part[ZARR_ERROR_PATH].bytes > 0);
    check_box(0, 17, 0, 12, 12);
    check_box(2, 0, 21, 16, 10);
    free_parts(4);
}

/* A damaged chunk, a damaged index, and an inner chunk between good ones. */
static void test_failures(void **state)
{
    static const struct {
        size_t kind;
        uint64_t at, n;
    } faults[] = {{1, 5, 40}, {4, UINT64_MAX, 30}, {7, UINT64_MAX, 30}};

    (void)state;
    for (size_t f = 0; f < ZR_COUNT(faults); f++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            zarr_io_options o = ZARR_IO_OPTIONS_INIT;
            struct pw w;
            zarr_array *a;

            pw_open(&w, threads, UINT64_C(64) << 20, 0);
            a = full(&w, "a", faults[f].kind);
            damage(a, 0, 0, faults[f].at, faults[f].n);
            read_damaged(a, &o);
            o.pipeline = "serial";
            read_damaged(a, &o);
            zarr_array_free(a);
            pw_close(&w);
        }
}

/* Inner chunks that are fetched together: the good ones of the range are read. */
static void test_inner_failure(void **state)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 1, UINT64_C(64) << 20, 0);
    a = pw_array(w.store, "a", "[" SHARD("[16,4]", BYTES "," CRC, "end") "]", shape,
                 kinds[1].chunk);
    for (int i = 0; i < N; i++)
        data[i] = i * 11 + 1;
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    damage(a, 0, 0, 270, 4); /* in the second of four inner chunks of 260 bytes */
    for (int i = 0; i < 4; i++)
        box_part(i, 1, 4 * (uint64_t)i, 10, 4);
    assert_status(zarr_array_read_many(a, ask, 4, &o, &terr), ZARR_ERR_CORRUPT);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ask[i].status, i == 1 ? ZARR_ERR_CORRUPT : ZARR_OK);
        if (i != 1)
            check_box(i, 1, 4 * (uint64_t)i, 10, 4);
    }
    assert_int_equal(terr.item, 1);
    assert_non_null(strstr(terr.message, "inner chunk [0,1]"));
    free_parts(4);
    zarr_array_free(a);
    pw_close(&w);
}

/* A missing chunk that must not be missing, and a write into a damaged chunk. */
static void test_other_failures(void **state)
{
    const uint64_t gone[2] = {1, 1};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = full(&w, "a", 1);
    assert_ok(zarr_array_chunk_erase(a, gone, &terr));
    o.missing_chunks = ZARR_MISSING_ERROR;
    box_part(0, 0, 0, 10, 40);
    box_part(1, 10, 20, 10, 10);
    assert_status(zarr_array_read_many(a, ask, 2, &o, &terr), ZARR_ERR_NOT_FOUND);
    assert_int_equal(terr.item, 1);
    assert_int_equal(ask[0].status, ZARR_OK);
    assert_int_equal(ask[1].status, ZARR_ERR_NOT_FOUND);
    check_box(0, 0, 0, 10, 40);
    free_parts(2);

    damage(a, 0, 0, 5, 40);
    box_part(0, 1, 1, 3, 3);   /* a part of the damaged chunk */
    box_part(1, 40, 0, 10, 9); /* elsewhere */
    memset(crop[1], 7, sizeof crop[1]);
    assert_status(zarr_array_write_many(a, ask, 2, NULL, &terr), ZARR_ERR_CORRUPT);
    assert_int_equal(ask[0].status, ZARR_ERR_CORRUPT);
    assert_int_equal(ask[1].status, ZARR_OK);
    free_parts(2);
    box_part(1, 40, 0, 10, 9);
    memset(crop[1], 0, sizeof crop[1]);
    assert_ok(zarr_array_read(a, part[1].sel, &part[1].t, NULL, &terr));
    assert_int_equal(crop[1][89], 0x07070707);
    zarr_selection_free(part[1].sel);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_arguments(void **state)
{
    struct pw w;
    zarr_array *a;
    zarr_request *rq = NULL;
    zarr_tensor packed;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = full(&w, "a", 1);
    assert_ok(zarr_array_read_many(a, NULL, 0, NULL, &terr));
    assert_ok(zarr_array_write_many(a, NULL, 0, NULL, &terr));
    assert_status(zarr_array_read_many(a, NULL, 1, NULL, &terr), ZARR_ERR_INVALID);
    box_part(0, 0, 0, 4, 4);
    box_part(1, 0, 0, 4, 4);
    part[1].shape[1] = 5;
    memset(crop[0], 0, sizeof crop[0]);
    assert_status(zarr_array_read_many(a, ask, 2, NULL, &terr), ZARR_ERR_INVALID);
    assert_int_equal(terr.item, 1);
    assert_non_null(strstr(terr.message, "a: part 1: "));
    assert_int_equal(ask[0].status, ZARR_ERR_INVALID);
    assert_int_equal(part[0].err.code, ZARR_ERR_INVALID);
    assert_int_equal(crop[0][1], 0);
    assert_status(zarr_array_write_many_submit(&rq, a, ask, 2, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_null(rq);
    part[1].shape[1] = 4;
    packed = part[1].t;
    packed.flags = ZARR_TENSOR_PACKED;
    ask[1].tensor = &packed;
    assert_status(zarr_array_read_many(a, ask, 2, NULL, &terr), ZARR_ERR_UNSUPPORTED);
    ask[1].tensor = &part[1].t;
    ask[1].reserved = 1;
    assert_status(zarr_array_read_many(a, ask, 2, NULL, &terr), ZARR_ERR_UNSUPPORTED);
    ask[1].reserved = 0;
    free_parts(2);
    ask[0] = (zarr_io_part){.tensor = &part[0].t}; /* all elements */
    part[0].shape[0] = ROWS;
    part[0].shape[1] = COLS;
    zarr_tensor_host(&part[0].t, crop[0], sizeof crop[0], 2, part[0].shape);
    assert_ok(zarr_array_read_many(a, ask, 1, NULL, &terr));
    assert_memory_equal(crop[0], data, sizeof data);
    zarr_array_free(a);
    pw_close(&w);
}

/* ---- requests ------------------------------------------------------------------ */

static void note_status(void *user, zarr_status status, const zarr_error *e)
{
    zarr_status *to = user;

    (void)status;
    (void)e;
    to[0] = ask[0].status; /* they are set before */
    to[1] = ask[1].status;
}

static void test_submitted(void **state)
{
    zarr_status seen[2] = {ZARR_ERR_INTERNAL, ZARR_ERR_INTERNAL};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_cancel *cancel = NULL;
    zarr_request *rq = NULL;
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = full(&w, "a", 4);
    o.stats = &stats;
    box_part(0, 0, 0, 20, 20);
    box_part(1, 5, 5, 20, 20);
    assert_ok(zarr_array_read_many_submit(&rq, a, ask, 2, &o, &terr));
    assert_ok(zarr_request_then(rq, note_status, seen, &terr));
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
    check_box(0, 0, 0, 20, 20);
    check_box(1, 5, 5, 20, 20);
    zarr_request_free(rq);
    assert_int_equal(seen[0], ZARR_OK);
    assert_int_equal(seen[1], ZARR_OK);
    assert_int_equal(stats.chunks_total, stats.chunks_done);
    assert_ok(zarr_array_write_many_submit(&rq, a, ask, 2, &o, &terr));
    zarr_request_free(rq);
    assert_ok(zarr_array_read_many_submit(&rq, a, ask, 0, NULL, &terr));
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
    zarr_request_free(rq);

    assert_ok(zarr_cancel_create(&cancel, &terr));
    zarr_cancel_set(cancel);
    o.cancel = cancel;
    for (int write = 0; write < 2; write++) {
        assert_status(write ? zarr_array_write_many(a, ask, 2, &o, &terr)
                            : zarr_array_read_many(a, ask, 2, &o, &terr),
                      ZARR_ERR_CANCELLED);
        assert_int_equal(ask[0].status, ZARR_ERR_CANCELLED);
        assert_int_equal(ask[1].status, ZARR_ERR_CANCELLED);
        assert_int_equal(part[1].err.code, ZARR_ERR_CANCELLED);
    }
    assert_ok(zarr_array_read_many_submit(&rq, a, ask, 2, &o, &terr));
    assert_status(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr),
                  ZARR_ERR_CANCELLED);
    assert_int_equal(ask[0].status, ZARR_ERR_CANCELLED);
    zarr_request_free(rq);
    zarr_cancel_free(cancel);
    free_parts(2);
    zarr_array_free(a);
    pw_close(&w);
}

/* An array that was deleted meanwhile is the failure of all parts. */
static void test_gone(void **state)
{
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = full(&w, "a", 1);
    assert_ok(zarr_node_delete(w.store, "a", &terr));
    box_part(0, 0, 0, 20, 20);
    box_part(1, 5, 5, 20, 20);
    assert_status(zarr_array_read_many(a, ask, 2, NULL, &terr), ZARR_ERR_NOT_FOUND);
    assert_int_equal(ask[0].status, ZARR_ERR_NOT_FOUND);
    assert_int_equal(ask[1].status, ZARR_ERR_NOT_FOUND);
    assert_status(zarr_array_write_many(a, ask, 2, NULL, &terr), ZARR_ERR_NOT_FOUND);
    assert_int_equal(ask[1].status, ZARR_ERR_NOT_FOUND);
    free_parts(2);
    zarr_array_free(a);
    pw_close(&w);
}

/* ---- memory of other kinds ----------------------------------------------------- */

/* Parts on a device, on the host, and on both. */
static void test_memories(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_KINDS; k++)
        for (int mixed = 0; mixed < 2; mixed++) {
            void *device = zarr_fakedev_create();
            zarr_fakedev_counters c;
            static int32_t back[N];
            zarr_mem mem[2];
            struct pw w;
            zarr_array *a;

            pw_context(&w, 2, UINT64_C(64) << 20, 0);
            assert_ok(zarr_context_register_memory(w.ctx, zarr_fakedev_vtable_late(),
                                                   device, "test", &terr));
            assert_ok(zarr_store_open(&w.store, w.ctx, "memory:", NULL, &terr));
            a = full(&w, "a", k);
            box_part(0, 0, 0, 30, 20);
            box_part(1, 5, 5, 20, 20);
            box_part(2, 0, 0, ROWS, COLS);
            for (int i = 0; i < (mixed ? 1 : 2); i++) {
                assert_ok(zarr_mem_alloc(w.ctx, ZARR_DEVICE_EXT, 0, sizeof data, &mem[i],
                                         &terr));
                part[i].t.device_type = ZARR_DEVICE_EXT;
                part[i].t.data = mem[i].handle;
            }
            assert_ok(zarr_array_read_many(a, ask, mixed ? 3 : 2, NULL, &terr));
            assert_int_equal(zarr_fakedev_peek(mem[0].handle, 0, crop[0], UINT64_C(2400)),
                             0);
            check_box(0, 0, 0, 30, 20);
            if (!mixed)
                assert_int_equal(
                    zarr_fakedev_peek(mem[1].handle, 0, crop[1], UINT64_C(1600)), 0);
            check_box(1, 5, 5, 20, 20);
            if (mixed)
                check_box(2, 0, 0, ROWS, COLS);
            /* and written back, changed */
            for (int i = 0; i < 600; i++)
                crop[0][i] += 5;
            assert_int_equal(zarr_fakedev_poke(mem[0].handle, 0, crop[0], UINT64_C(2400)),
                             0);
            assert_ok(zarr_array_write_many(a, ask, 1, NULL, &terr));
            assert_ok(pw_box(a, zero, shape, back, NULL, false));
            for (int i = 0; i < N; i++)
                assert_int_equal(back[i],
                                 data[i] + (i / COLS < 30 && i % COLS < 20 ? 5 : 0));
            zarr_fakedev_count(device, &c);
            assert_int_equal(c.faults, 0);
            free_parts(3);
            zarr_mem_free(w.ctx, &mem[0]);
            if (!mixed)
                zarr_mem_free(w.ctx, &mem[1]);
            zarr_array_free(a);
            pw_close(&w);
        }
}

/* ---- fields and text ----------------------------------------------------------- */

/* Parts of one field, written and read; the others keep their elements. */
static void test_field(void **state)
{
    const uint64_t n = 20, chunk = 8, at[2] = {0, 5}, len = 10;
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 1,
        .shape = &n,
        .chunk_shape = &chunk,
        .data_type = "{\"name\":\"struct\",\"configuration\":{\"fields\":["
                     "{\"name\":\"a\",\"data_type\":\"int32\"},"
                     "{\"name\":\"b\",\"data_type\":\"int16\"}]}}"};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    const int64_t size = 10;
    int32_t value[2][10];
    zarr_tensor t[2];
    zarr_io_part two[2] = {{0}};
    zarr_array *a = NULL;
    struct pw w;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    o.field = "a";
    for (int i = 0; i < 2; i++) {
        zarr_selection *sel = NULL;

        for (int k = 0; k < 10; k++)
            value[i][k] = 100 * (i + 1) + k;
        zarr_tensor_host(&t[i], value[i], sizeof value[i], 1, &size);
        assert_ok(zarr_selection_box(&sel, 1, &n, &at[i], &len, &terr));
        two[i] = (zarr_io_part){.selection = sel, .tensor = &t[i]};
    }
    assert_ok(zarr_array_write_many(a, two, 2, &o, &terr));
    memset(value, 0, sizeof value);
    assert_ok(zarr_array_read_many(a, two, 2, &o, &terr));
    assert_int_equal(value[0][4], 104); /* the second part has overwritten the rest */
    assert_int_equal(value[0][5], 200);
    assert_int_equal(value[1][9], 209);
    t[1].byte_order = ZARR_ORDER_BIG;
    if (zr_host_is_little())
        assert_status(zarr_array_read_many(a, two, 2, &o, &terr), ZARR_ERR_UNSUPPORTED);
    t[0].byte_order = ZARR_ORDER_BIG;
    assert_ok(zarr_array_read_many(a, two, 2, &o, &terr));
    assert_int_equal(((uint8_t *)value[0])[19], 104);
    for (int i = 0; i < 2; i++)
        zarr_selection_free((zarr_selection *)(uintptr_t)two[i].selection);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_text(void **state)
{
    const uint64_t n = 9, chunk = 4, at[2] = {1, 3}, len = 4;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = &n,
                                  .chunk_shape = &chunk,
                                  .data_type = "string",
                                  .fill_value = "\"none\""};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    const int64_t size = 4;
    zarr_vlen value[2][4];
    zarr_tensor t[2];
    zarr_io_part two[2] = {{0}};
    zarr_array *a = NULL;
    struct pw w;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    assert_ok(zarr_heap_create(&o.heap, w.ctx, 0, &terr));
    for (int i = 0; i < 2; i++) {
        zarr_selection *sel = NULL;

        for (int k = 0; k < 4; k++)
            value[i][k] = (zarr_vlen){.data = i ? "second" : "first", .bytes = i ? 6 : 5};
        zarr_tensor_host(&t[i], value[i], sizeof value[i], 1, &size);
        assert_ok(zarr_selection_box(&sel, 1, &n, &at[i], &len, &terr));
        two[i] = (zarr_io_part){.selection = sel, .tensor = &t[i]};
    }
    assert_ok(zarr_array_write_many(a, two, 1, &o, &terr));
    memset(value, 0, sizeof value);
    assert_ok(zarr_array_read_many(a, two, 2, &o, &terr));
    assert_int_equal(value[0][0].bytes, 5);
    assert_memory_equal(value[0][3].data, "first", 5);
    assert_memory_equal(value[1][1].data, "first", 5);
    assert_int_equal(value[1][2].bytes, 4);
    assert_memory_equal(value[1][3].data, "none", 4);
    for (int i = 0; i < 2; i++)
        zarr_selection_free((zarr_selection *)(uintptr_t)two[i].selection);
    zarr_heap_free(o.heap);
    zarr_array_free(a);
    pw_close(&w);
}

/* ---- allocations that fail ------------------------------------------------------ */

/* Each allocation fails once: the call fails, and so does a part, or all of them. */
static void fail_each(struct pw *w, zarr_array *a, bool write)
{
    zarr_status st = ZARR_ERR_NO_MEMORY;
    int64_t k = 1;

    for (; st != ZARR_OK; k++) {
        for (int i = 0; i < 2; i++)
            ask[i].status = ZARR_ERR_INTERNAL;
        atomic_store(&w->fail_in, k);
        st = write ? zarr_array_write_many(a, ask, 2, NULL, &terr)
                   : zarr_array_read_many(a, ask, 2, NULL, &terr);
        for (int i = 0; i < 2; i++)
            assert_true(ask[i].status == ZARR_OK || ask[i].status == ZARR_ERR_NO_MEMORY);
        assert_int_equal(st, ask[0].status != ZARR_OK ? ask[0].status : ask[1].status);
    }
    atomic_store(&w->fail_in, 0);
    assert_true(k > 10);
}

static void test_no_memory(void **state)
{
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 1, UINT64_C(64) << 20, 0);
    a = full(&w, "a", 4);
    box_part(0, 0, 0, 20, 20);
    box_part(1, 5, 5, 20, 20);
    fail_each(&w, a, false);
    fail_each(&w, a, true);
    free_parts(2);
    zarr_array_free(a);
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),          cmocka_unit_test(test_writes),
        cmocka_unit_test(test_once),           cmocka_unit_test(test_covered),
        cmocka_unit_test(test_failures),       cmocka_unit_test(test_inner_failure),
        cmocka_unit_test(test_other_failures), cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_submitted),      cmocka_unit_test(test_gone),
        cmocka_unit_test(test_memories),       cmocka_unit_test(test_field),
        cmocka_unit_test(test_text),           cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests_name("several selections", tests, NULL, NULL);
}
