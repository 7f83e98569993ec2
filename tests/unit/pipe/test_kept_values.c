/*
 * unit/pipe/test_kept_values.c - shards with codecs around them, which are decoded whole:
 * the budget keeps the bytes of a value as long as its shard is open. No request waits
 * for them, so requests that have some and need more never wait for each other.
 */
#include "own_pipe.h"

#include <pthread.h>

enum {
    EDGE = 256,
    N = EDGE * EDGE,
    SHARD_BYTES = 128 * 128 * 4 /* of a value, at least */
};
static const uint64_t shape[2] = {EDGE, EDGE}, shard[2] = {128, 128};
static const int64_t sizes[2] = {EDGE, EDGE};
static int32_t data[N];

/* ---- a codec of inner chunks that looks at the budget ------------------------------ */

static struct zr_budget *looks_at;
static atomic_uint_fast64_t least; /* bytes in use while a chunk is decoded */

static zarr_status look_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    uint64_t before = atomic_load(&least);
    struct zr_budget_stats s;

    zr_budget_stats_get(looks_at, &s);
    while (s.now < before && !atomic_compare_exchange_weak(&least, &before, s.now))
        ;
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

static zarr_array *filled(const struct pw *w, const char *path, const char *chain)
{
    zarr_array *a = pw_array(w->store, path, chain, shape, shard);
    zarr_tensor t;

    zarr_tensor_host(&t, data, sizeof data, 2, sizes);
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

static void read_looking(struct pw *w, zarr_array *a, const char *pipeline,
                         uint64_t memory)
{
    zarr_io_options o = {
        .struct_size = sizeof o, .pipeline = pipeline, .memory_bytes = memory};
    static int32_t got[N];
    zarr_tensor t;

    memset(got, 0, sizeof got);
    zarr_tensor_host(&t, got, sizeof got, 2, sizes);
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

            open_looking(&w, threads[k % 3], budgets[k / 3]);
            a = filled(&w, "a", chains[c]);
            assert_int_equal(in_use(&w), 0);
            read_looking(&w, a, NULL, 0);
            read_looking(&w, a, NULL, 32 << 10);
            read_looking(&w, a, "serial", 0);
            read_looking(&w, a, own_pipe.name, 0);
            zarr_array_free(a);
            pw_close(&w);
        }
}

/* ---- several at once --------------------------------------------------------------- */

enum {
    USERS = 6,
    TURNS = 6
};

struct user {
    pthread_t thread;
    zarr_array *a;
    int32_t *got;
    bool writes;
    zarr_status st;
    zarr_error err;
};

static void *user_runs(void *arg)
{
    struct user *u = arg;
    zarr_tensor t;

    zarr_tensor_host(&t, u->got, sizeof data, 2, sizes);
    for (int i = 0; i < TURNS && u->st == ZARR_OK; i++)
        u->st = u->writes ? zarr_array_write(u->a, NULL, &t, NULL, &u->err)
                          : zarr_array_read(u->a, NULL, &t, NULL, &u->err);
    return NULL;
}

/* A budget that has room for the value of one shard, or not even for that. */
static void at_once(const char *chain, uint32_t threads, uint64_t memory)
{
    struct user u[USERS];
    char path[16];
    struct pw w;

    memset(u, 0, sizeof u);
    open_looking(&w, threads, memory);
    for (int i = 0; i < USERS; i++) {
        snprintf(path, sizeof path, "a%d", i);
        u[i].a = filled(&w, path, chain);
        u[i].got = malloc(sizeof data);
        assert_non_null(u[i].got);
        memcpy(u[i].got, data, sizeof data);
        u[i].writes = i % 3 == 2;
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
    assert_int_equal(in_use(&w), 0);
    pw_close(&w);
}

static void test_at_once(void **state)
{
    static const uint32_t threads[] = {1, 2, 8};

    (void)state;
    for (size_t c = 0; c < ZR_COUNT(chains); c++)
        for (size_t i = 0; i < ZR_COUNT(threads); i++) {
            at_once(chains[c], threads[i], 90 << 10);
            at_once(chains[c], threads[i], 1 << 10);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
