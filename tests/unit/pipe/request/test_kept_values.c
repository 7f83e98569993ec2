/*
 * unit/pipe/request/test_kept_values.c - shards with codecs around them, which are
 * decoded whole: the budget keeps the bytes of a value as long as its shard is open. No
 * request waits for them, so requests that have some and need more never wait for each
 * other. How much they may keep together has a bound, for which they wait before they
 * open such shards. Verify and lists of chunks take what they have in memory from the
 * budget, too.
 */
#include "unit/pipe/own_pipe.h"
#include "sanitizers.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum {
    EDGE = 256,
    N = EDGE * EDGE,
    SHARD_BYTES = 128 * 128 * 4 /* of a value, at least */
};
static const uint64_t shape[2] = {EDGE, EDGE}, shard[2] = {128, 128};
static const uint64_t sizes[2] = {EDGE, EDGE};
static int32_t data[N];

/* ---- a codec of inner chunks that looks at the budget ------------------------------ */

static struct zr_budget *looks_at;
static atomic_uint_fast64_t least; /* bytes in use while a chunk is decoded */

static atomic_bool gate_closed; /* no chunk is decoded */
static atomic_int at_gate;
static atomic_bool is_broken; /* all chunks are */

static zarr_status look_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    uint64_t before = atomic_load(&least);
    struct zr_budget_stats s;

    atomic_fetch_add(&at_gate, 1);
    while (atomic_load(&gate_closed))
        sched_yield();
    zr_budget_stats_get(looks_at, &s);
    while (s.now < before && !atomic_compare_exchange_weak(&least, &before, s.now))
        ;
    if (atomic_load(&is_broken))
        return zr_fail(err, ZARR_ERR_CORRUPT, "test.look: broken");
    return pw_copy_same(self, jobs, n, exec, err);
}

static void open_looking(struct pw *w, uint32_t threads, uint64_t memory)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.look",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    const zarr_codec_impl_vtable impl = {.struct_size = sizeof impl,
                                         .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                                 ZARR_CODEC_CAN_ENCODE,
                                         .codec = "test.look",
                                         .impl = "cpu.look",
                                         .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                         .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                         .encode = pw_copy_same,
                                         .decode = look_decode};

    pw_context(w, threads, memory, 0);
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &impl, "test", &terr));
    assert_ok(zarr_context_register_pipeline(w->ctx, &own_pipe, &own_n, "test", &terr));
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", NULL, &terr));
    looks_at = &w->ctx->budget;
    for (int i = 0; i < N; i++)
        data[i] = i / 3;
}

#define LOOK "{\"name\":\"test.look\"}"
static const char *const chains[] = {
    "[" SHARD("[16,16]", BYTES "," LOOK, "end") "," GZIP "]",
    "[" SHARD("[16,16]", BYTES "," LOOK, "start") "," GZIP "," CRC "]",
    "[" SHARD("[64,64]", SHARD("[16,16]", BYTES "," LOOK, "end") "," GZIP, "end") "," GZIP
                                                                                  "]",
    "[" SHARD("[128,128]", SHARD("[16,16]", BYTES "," LOOK, "end") "," GZIP, "end") "]",
};

static zarr_array *make_filled(const struct pw *w, const char *path, const char *chain)
{
    zarr_array *a = pw_array(w->store, path, chain, shape, shard);
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    return a;
}

/* ---- what is kept ------------------------------------------------------------------ */

static uint64_t in_use(const struct pw *w)
{
    struct zr_budget_stats s;

    zr_budget_stats_get(&w->ctx->budget, &s);
    return s.now;
}

/* Bytes of values that requests have waited for. */
static uint64_t held_bytes(const struct pw *w, size_t rank)
{
    struct zr_budget_stats s;

    zr_budget_stats_get(&w->ctx->engine.holders.rank[rank], &s);
    return s.now;
}

static void read_looking(struct pw *w, zarr_array *a, const char *pipeline,
                         uint64_t memory)
{
    zarr_io_options o = {.struct_size = sizeof o,
                         .tuning = TUNING(.pipeline = pipeline, .memory_bytes = memory)};
    static int32_t got[N];
    zarr_tensor t;

    memset(got, 0, sizeof got);
    zarr_tensor_host(&t, NULL, got, sizeof got, 2, sizes);
    atomic_store(&least, UINT64_MAX);
    assert_ok(zarr_array_read(a, NULL, &t, &o, &terr));
    assert_memory_equal(got, data, sizeof got);
    assert_in_range(atomic_load(&least), SHARD_BYTES, UINT64_MAX - 1);
    assert_int_equal(in_use(w), 0);
}

static void test_kept(void **state)
{
    static const uint64_t budgets[] = {16 << 10, 100 << 10, 64 << 20};
    static const uint32_t threads[] = {1, 2, 8};

    (void)state;
    for (size_t c = 0; c < ZR_COUNT(chains); c++)
        for (size_t k = 0; k < ZR_COUNT(budgets) * ZR_COUNT(threads); k++) {
            struct pw w;
            zarr_array *a;

            if ((9 * c + k) % ZR_CASE_STEP != 0)
                continue;
            open_looking(&w, threads[k % 3], budgets[k / 3]);
            a = make_filled(&w, "a", chains[c]);
            assert_int_equal(in_use(&w), 0);
            read_looking(&w, a, NULL, 0);
            read_looking(&w, a, NULL, 2 << 20);
            read_looking(&w, a, "serial", 0);
            read_looking(&w, a, own_pipe.name, 0);
            zarr_array_free(a);
            pw_close(&w);
        }
}

/* ---- several at once --------------------------------------------------------------- */

enum {
    USERS = 12
};

enum what {
    READS,
    WRITES,
    VERIFIES,
    LISTS
};

struct user {
    pthread_t thread;
    zarr_array *a;
    int32_t *got;
    enum what what;
    zarr_status st;
    zarr_error err;
};

static int no_fault(void *user, const zarr_verify_item *item)
{
    (void)user;
    print_error("%s: %s\n", item->key, item->message);
    abort();
}

static int any_chunk(void *user, const zarr_block_info *chunk)
{
    (void)user;
    return !chunk->is_chunk;
}

static void *user_runs(void *arg)
{
    const int turns = ZR_CASE_STEP > 1 ? 2 : 6;
    struct user *u = arg;
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, u->got, sizeof data, 2, sizes);
    for (int i = 0; i < turns && u->st == ZARR_OK; i++)
        switch (u->what) {
        case READS:
            u->st = zarr_array_read(u->a, NULL, &t, NULL, &u->err);
            break;
        case WRITES:
            u->st = zarr_array_write(u->a, NULL, &t, NULL, &u->err);
            break;
        case VERIFIES:
            u->st = zarr_array_verify(u->a, no_fault, NULL, NULL, &u->err);
            break;
        case LISTS:
            u->st = zarr_array_list_blocks(u->a, ZARR_BLOCKS_CHUNKS, any_chunk, NULL,
                                           NULL, &u->err);
            break;
        }
    return NULL;
}

/* Returns the most bytes of the budget that were in use. */
static uint64_t at_once(const char *chain, uint32_t threads, uint64_t memory)
{
    static const enum what kinds[] = {READS, VERIFIES, WRITES, READS, LISTS, VERIFIES};
    struct user u[USERS];
    struct zr_budget_stats s;
    char path[16];
    struct pw w;

    memset(u, 0, sizeof u);
    open_looking(&w, threads, memory);
    for (int i = 0; i < USERS; i++) {
        snprintf(path, sizeof path, "a%d", i);
        u[i].a = make_filled(&w, path, chain);
        u[i].got = malloc(sizeof data);
        assert_non_null(u[i].got);
        memcpy(u[i].got, data, sizeof data);
        u[i].what = kinds[(size_t)i % ZR_COUNT(kinds)];
    }
    for (int i = 0; i < USERS; i++)
        assert_int_equal(pthread_create(&u[i].thread, NULL, user_runs, &u[i]), 0);
    for (int i = 0; i < USERS; i++) {
        assert_int_equal(pthread_join(u[i].thread, NULL), 0);
        if (u[i].st != ZARR_OK)
            fail_msg("user %d: %s", i, u[i].err.message);
        assert_memory_equal(u[i].got, data, sizeof data);
        free(u[i].got);
        zarr_array_free(u[i].a);
    }
    zr_budget_stats_get(&w.ctx->budget, &s);
    assert_int_equal(s.now, 0);
    for (size_t i = 0; i < ZR_HOLDER_RANKS; i++)
        assert_int_equal(held_bytes(&w, i), 0);
    pw_close(&w);
    return s.peak;
}

/* A budget that has room for the value of one shard, or not even for that. */
static void test_at_once(void **state)
{
    static const uint32_t threads[] = {1, 2, 8};

    (void)state;
    for (size_t c = 0; c < ZR_COUNT(chains); c++)
        for (size_t i = 0; i < ZR_COUNT(threads); i++) {
            (void)at_once(chains[c], threads[i], 90 << 10);
            (void)at_once(chains[c], threads[i], 1 << 10);
        }
}

/* However many requests have such shards at once, the budget holds: it has room for what
 * they may keep together, and for the largest piece of work beside. */
static void test_budget_holds(void **state)
{
    static const uint32_t threads[] = {1, 2, 8};
    enum {
        ROOM = 3 << 20
    };

    (void)state;
    for (size_t c = 0; c < ZR_COUNT(chains); c++)
        for (size_t i = 0; i < ZR_COUNT(threads); i++)
            assert_in_range(at_once(chains[c], threads[i], ROOM), SHARD_BYTES, ROOM);
}

/* ---- verify and lists ----------------------------------------------------------- */

static const char *const plain_chains[] = {
    "[" BYTES "," LOOK "]",
    "[" SHARD("[64,64]", BYTES "," LOOK, "end") "]",
};
enum {
    LEAF_BYTES = 64 * 64 * 4
};

/* Verifies with eight threads. Returns the most bytes of the budget that were in use; at
 * least so many are while a chunk is decoded. */
static uint64_t verify_in_parallel(const char *chain, uint64_t memory, uint64_t chunk)
{
    struct zr_budget_stats s;
    zarr_array *a;
    struct pw w;

    open_looking(&w, 8, memory);
    a = make_filled(&w, "a", chain);
    zr_budget_stats_get(&w.ctx->budget, &s);
    w.ctx->budget.peak = 0; /* of the write */
    atomic_store(&least, UINT64_MAX);
    for (int i = 0; i < (ZR_CASE_STEP > 1 ? 2 : 6); i++)
        assert_ok(zarr_array_verify(a, no_fault, NULL, NULL, &terr));
    assert_in_range(atomic_load(&least), chunk, UINT64_MAX - 1);
    zr_budget_stats_get(&w.ctx->budget, &s);
    assert_int_equal(s.now, 0);
    for (size_t i = 0; i < ZR_HOLDER_RANKS; i++)
        assert_int_equal(held_bytes(&w, i), 0);
    zarr_array_free(a);
    pw_close(&w);
    return s.peak;
}

static void test_verify(void **state)
{
    enum {
        ROOM = 560 << 10 /* a quarter has room for one value of a shard */
    };

    (void)state;
    for (size_t c = 0; c < ZR_COUNT(plain_chains); c++) {
        assert_in_range(
            verify_in_parallel(plain_chains[c], 300 << 10, 2 * (uint64_t)LEAF_BYTES), 1,
            300 << 10);
        (void)verify_in_parallel(plain_chains[c], 1 << 10, 2 * (uint64_t)LEAF_BYTES);
    }
    for (size_t c = 0; c < ZR_COUNT(chains); c++) {
        assert_in_range(verify_in_parallel(chains[c], ROOM, SHARD_BYTES), 1, ROOM);
        (void)verify_in_parallel(chains[c], 1 << 10, SHARD_BYTES);
    }
}

static int mend(void **state)
{
    (void)state;
    atomic_store(&is_broken, false);
    return 0;
}

struct hearer {
    const struct pw *w;
    int n;
};

static int hear_fault(void *user, const zarr_verify_item *item)
{
    struct hearer *h = user;

    assert_int_equal(item->status, ZARR_ERR_CORRUPT);
    for (size_t i = 0; i < ZR_HOLDER_RANKS; i++)
        assert_int_equal(held_bytes(h->w, i), 0);
    return ++h->n == 40;
}

/* The application may read while it hears of a fault: that waits for nothing of
 * verify. */
static void test_faults(void **state)
{
    (void)state;
    for (size_t c = 0; c < ZR_COUNT(chains); c++) {
        struct hearer h;
        zarr_array *a;
        struct pw w;

        open_looking(&w, 1, 200 << 10);
        a = make_filled(&w, "a", chains[c]);
        h = (struct hearer){.w = &w};
        atomic_store(&is_broken, true);
        assert_ok(zarr_array_verify(a, hear_fault, &h, NULL, &terr));
        atomic_store(&is_broken, false);
        assert_int_equal(h.n, 40);
        zarr_array_free(a);
        pw_close(&w);
    }
}

struct lister {
    zarr_array *a;
    int n;
};

static int read_chunk(void *user, const zarr_block_info *chunk)
{
    struct lister *l = user;
    const uint64_t at[2] = {16 * chunk->coordinates[0], 16 * chunk->coordinates[1]},
                   n[2] = {16, 16};
    int32_t got[16 * 16];

    assert_ok(pw_box(l->a, at, n, got, NULL, false));
    assert_int_equal(got[17], data[(at[0] + 1) * EDGE + at[1] + 1]);
    l->n++;
    return l->n == 40;
}

/* The application may read while it gets a list: that waits for nothing of the list. */
static void test_list_and_read(void **state)
{
    (void)state;
    for (size_t c = 0; c < ZR_COUNT(chains); c++) {
        const uint64_t begun = zr_now_ns();
        struct lister l = {.n = 0};
        struct pw w;

        open_looking(&w, 2, 1 << 10);
        l.a = make_filled(&w, "a", chains[c]);
        assert_ok(
            zarr_array_list_blocks(l.a, ZARR_BLOCKS_CHUNKS, read_chunk, &l, NULL, &terr));
        assert_int_equal(l.n, 40);
        assert_in_range(zr_now_ns() - begun, 0, UINT64_C(8000000000));
        assert_int_equal(in_use(&w), 0);
        zarr_array_free(l.a);
        pw_close(&w);
    }
}

/* ---- who waits --------------------------------------------------------------------- */

enum {
    WAITERS = 3,
    ROOM_FOR_ONE = 800 << 10, /* a quarter is for values, of which each has 138 KiB */
    PATIENCE_NS = 1000 * 1000
};

static uint32_t count_waiting(const struct pw *w)
{
    struct zr_budget_stats s;

    zr_budget_stats_get(&w->ctx->engine.holders.rank[0], &s);
    return s.n_waiting;
}

static zarr_request *submit(zarr_array *a, int32_t *got)
{
    zarr_request *r = NULL;
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, got, sizeof data, 2, sizes);
    assert_ok(zarr_array_read_submit(&r, a, NULL, &t, NULL, &terr));
    return r;
}

static void wait_until_waiting(const struct pw *w, uint32_t n)
{
    const struct timespec a_while = {.tv_nsec = PATIENCE_NS};

    for (int i = 0; i < 20000 && count_waiting(w) != n; i++)
        nanosleep(&a_while, NULL);
    assert_int_equal(count_waiting(w), n);
}

/* A request that is at its chunks has what there is of values. Others wait and can be
 * cancelled; then they go on, also after one whose shard is damaged. */
static void test_waiters(void **state)
{
    static int32_t got[WAITERS + 1][N];
    zarr_request *r[WAITERS + 1];
    zarr_array *a[WAITERS + 1];
    struct pw w;

    (void)state;
    open_looking(&w, 8, ROOM_FOR_ONE);
    for (int i = 0; i <= WAITERS; i++) {
        char path[16];

        snprintf(path, sizeof path, "a%d", i);
        a[i] = make_filled(&w, path, chains[0]);
    }
    assert_ok(zarr_store_put(w.store, "a2/c/0/0", "no gzip", 7, NULL, &terr));
    atomic_store(&at_gate, 0); /* earlier tests have passed there */
    atomic_store(&gate_closed, true);
    r[0] = submit(a[0], got[0]);
    while (atomic_load(&at_gate) == 0)
        sched_yield();
    for (int i = 1; i <= WAITERS; i++)
        r[i] = submit(a[i], got[i]);
    wait_until_waiting(&w, WAITERS);
    assert_in_range(held_bytes(&w, 0), SHARD_BYTES, ROOM_FOR_ONE / 4);
    zarr_request_cancel(r[1]);
    assert_int_equal(zarr_request_wait(r[1], UINT64_MAX, NULL, &terr),
                     ZARR_ERR_CANCELLED);
    atomic_store(&gate_closed, false);
    assert_int_equal(zarr_request_wait(r[2], UINT64_MAX, NULL, &terr), ZARR_ERR_CORRUPT);
    for (int i = 0; i <= WAITERS; i += WAITERS) {
        assert_ok(zarr_request_wait(r[i], UINT64_MAX, NULL, &terr));
        assert_memory_equal(got[i], data, sizeof data);
    }
    for (int i = 0; i <= WAITERS; i++) {
        zarr_request_free(r[i]);
        zarr_array_free(a[i]);
    }
    assert_int_equal(held_bytes(&w, 0), 0);
    assert_int_equal(in_use(&w), 0);
    pw_close(&w);
}

static int open_gate(void **state)
{
    (void)state;
    atomic_store(&gate_closed, false);
    return 0;
}

/* ---- a wave that fails ------------------------------------------------------------- */

enum {
    ROW = 768 << 10,
    ROW_SHARD = 192 << 10,
    ROW_INNER = 4096
};

/* It gives its shards' bytes back before it waits for the lock of the plan, whose owner
 * may wait for them. Else the read would end after ten seconds. */
static void test_fails_soon(void **state)
{
    static int32_t row[ROW];
    static const uint64_t n[2] = {1, ROW}, chunk[2] = {1, ROW_SHARD};
    static const uint64_t n_signed[2] = {1, ROW};
    static uint8_t object[ROW_SHARD * 5];
    uint64_t bytes = sizeof object, begun;
    zarr_array *a;
    zarr_tensor t;
    struct pw w;

    (void)state;
    open_looking(&w, 4, 3 << 20);
    a = pw_array(w.store, "row", "[" SHARD("[1,4096]", BYTES "," CRC, "end") "," LOOK "]",
                 n, chunk);
    for (int i = 0; i < ROW; i++)
        row[i] = i;
    zarr_tensor_host(&t, NULL, row, sizeof row, 2, n_signed);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    assert_ok(zarr_store_get(w.store, "row/c/0/0", 0, object, &bytes, NULL, &terr));
    object[(ROW_SHARD / ROW_INNER - 1) * (ROW_INNER * 4 + 4) + 100] ^= 1;
    assert_ok(zarr_store_put(w.store, "row/c/0/0", object, bytes, NULL, &terr));
    begun = zr_now_ns();
    for (int i = 0; i < 8; i++)
        assert_int_equal(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_CORRUPT);
    assert_in_range(zr_now_ns() - begun, 0, UINT64_C(8000000000));
    assert_int_equal(held_bytes(&w, 0), 0);
    assert_int_equal(in_use(&w), 0);
    zarr_array_free(a);
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_budget_holds),
        cmocka_unit_test(test_verify),
        cmocka_unit_test_teardown(test_faults, mend),
        cmocka_unit_test(test_list_and_read),
        cmocka_unit_test_teardown(test_waiters, open_gate),
        cmocka_unit_test(test_fails_soon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
