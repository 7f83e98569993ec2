/*
 * unit/impl/test_shard.c - sharding_indexed as a stage: the bytes it writes, inner
 * chunks that are or are not contiguous rows of the shard, missing inner chunks,
 * malformed indexes, and shards inside shards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/impl/impl_test.h"

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG    "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define SHARD(shape, codecs, index, more)                                                \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" shape           \
    ",\"codecs\":[" codecs "],\"index_codecs\":[" index "]" more "}}"
#define START ",\"index_location\":\"start\""
#define GONE  UINT64_MAX

static zarr_error error;

static struct impl_chain open_chain(struct impl_env *env, const char *codecs,
                                    const uint64_t *dims)
{
    const struct impl_chain_args args = {
        .format = 3, .codecs = codecs, .dtype = "uint16", .dims = dims};
    struct impl_chain c;

    if (impl_chain_open(&c, env, &args, &error) != ZARR_OK)
        fail_msg("%s: %s", codecs, error.message);
    return c;
}

static void test_layout(void **state)
{
    /* 2 x 4 in chunks of 1 x 2; the second chunk contains only the fill value */
    static const char codecs[] = "[" SHARD("[1,2]", BIG, LITTLE, START) "]";
    static const uint16_t data[8] = {1, 2, 0, 0, 5, 6, 7, 8};
    static const uint8_t want[] = {0, 1, 0, 2, 0, 5, 0, 6, 0, 7, 0, 8};
    static const uint64_t pairs[8] = {64, 4, GONE, GONE, 68, 4, 72, 4},
                          all[8] = {64, 4, 68, 4, 72, 4, 76, 4}, dims[] = {2, 4, 0};
    struct impl_env env;
    struct impl_chain c;
    uint8_t *value = NULL, *back = NULL;
    size_t n = 0, m = 0;

    ZR_UNUSED(state);
    assert_int_equal(impl_env_open(&env, NULL, NULL), ZARR_OK);
    c = open_chain(&env, codecs, dims);
    assert_int_equal(impl_run(c.encode, &env, data, sizeof data, &value, &n, &error),
                     ZARR_OK);
    assert_int_equal(n, 64 + sizeof want);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(zr_load_le64(value + 8 * i), pairs[i]);
    assert_memory_equal(value + 64, want, sizeof want);
    assert_int_equal(impl_run(c.decode, &env, value, n, &back, &m, &error), ZARR_OK);
    assert_int_equal(m, sizeof data);
    assert_memory_equal(back, data, m);
    free(value);
    env.threads.keep_empty = true;
    assert_int_equal(impl_run(c.encode, &env, data, sizeof data, &value, &n, &error),
                     ZARR_OK);
    assert_int_equal(n, 64 + sizeof data);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(zr_load_le64(value + 8 * i), all[i]);
    free(value);
    free(back);
    impl_chain_close(&c);
    impl_env_close(&env);
}

static void test_shapes(void **state)
{
    static const struct {
        const char *codecs;
        uint64_t dims[5];
    } rows[] = {
        {"[" SHARD("[6]", LITTLE, LITTLE, "") "]", {24, 0}},
        {"[" SHARD("[24]", LITTLE, LITTLE, "") ",\"gzip\"]", {24, 0}},
        {"[" SHARD("[2,3,4]", BIG, BIG ",\"crc32c\"", "") "]", {4, 6, 8, 0}},
        {"[" SHARD("[1,3,8]", LITTLE ",\"crc32c\"", LITTLE, START) "]", {4, 6, 8, 0}},
        {"[" SHARD("[4,1,1]", LITTLE ",\"zstd\"", LITTLE, "") "]", {4, 6, 8, 0}},
        {"[" SHARD("[2,6]",
                   "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," LITTLE,
                   LITTLE, "") "]",
         {4, 6, 0}},
        {"[" SHARD("[4,4]",
                   SHARD("[2,4]", SHARD("[1,2]", BIG, LITTLE, START), LITTLE, ""), LITTLE,
                   "") ",\"zstd\"]",
         {8, 8, 0}},
    };
    struct impl_env env;

    ZR_UNUSED(state);
    assert_int_equal(impl_env_open(&env, NULL, NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        struct impl_chain c = open_chain(&env, rows[i].codecs, rows[i].dims);
        const size_t bytes = (size_t)c.decode->decoded_bytes;
        uint8_t *data = malloc(bytes);

        assert_non_null(data);
        for (int kind = 0; kind < 4; kind++) {
            uint8_t *value = NULL, *back = NULL;
            size_t n = 0, m = 0;

            impl_pattern(data, bytes, kind);
            assert_int_equal(impl_run(c.encode, &env, data, bytes, &value, &n, &error),
                             ZARR_OK);
            assert_int_equal(impl_run(c.decode, &env, value, n, &back, &m, &error),
                             ZARR_OK);
            assert_int_equal(m, bytes);
            assert_memory_equal(back, data, bytes);
            free(value);
            free(back);
        }
        free(data);
        impl_chain_close(&c);
    }
    impl_env_close(&env);
}

static void test_lies(void **state)
{
    static const uint64_t dims[] = {4, 0};
    /* two chunks of 4 bytes, followed by the index of 32 */
    static const struct {
        uint64_t pairs[4];
        size_t cut; /* number of bytes present; 0: all */
        const char *words;
    } rows[] = {
        {{0, 4, 4, 4}, 31, "cannot hold its index"},
        {{0, 4, 4, 4}, 39, "lies outside"},
        {{36, 8, 4, 4}, 0, "lies outside"},
        {{0, 4, UINT64_MAX - 3, 8}, 0, "lies outside"},
        {{0, UINT64_MAX - 1, 4, 4}, 0, "lies outside"},
        {{GONE, 4, 4, 4}, 0, "lies outside"},
        {{0, GONE, 4, 4}, 0, "lies outside"},
        {{6, 4, 4, 4}, 0, "overlaps the index"},
        {{0, 8, 4, 4}, 0, "chunk [0] of the shard"},
        {{0, 4, 4, 3}, 0, "chunk [1] of the shard"},
        {{0, 0, 4, 4}, 0, "chunk [0] of the shard"},
        {{0, 4, 0, 4}, 0, NULL}, /* entries may share bytes */
        {{GONE, GONE, GONE, GONE}, 0, NULL},
    };
    struct impl_env env;
    struct impl_chain c;

    ZR_UNUSED(state);
    assert_int_equal(impl_env_open(&env, NULL, NULL), ZARR_OK);
    c = open_chain(&env, "[" SHARD("[2]", LITTLE, LITTLE, "") "]", dims);
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        uint8_t value[40] = {1, 0, 2, 0, 3, 0, 4, 0}, *back = NULL;
        const size_t n = rows[i].cut ? rows[i].cut : sizeof value;
        zarr_status st = ZARR_OK;
        size_t m = 0;

        for (size_t k = 0; k < 4; k++)
            zr_store_le64(value + 8 + 8 * k, rows[i].pairs[k]);
        st = impl_run(c.decode, &env, value, n, &back, &m, &error);
        if (!rows[i].words)
            assert_int_equal(st, ZARR_OK);
        else if (st != ZARR_ERR_CORRUPT || !strstr(error.message, rows[i].words))
            fail_msg("row %zu: %d: %s", i, (int)st, error.message);
        free(back);
    }
    impl_chain_close(&c);
    impl_env_close(&env);
}

static zarr_status grant_none(void *arg, uint64_t bytes, zarr_error *err)
{
    ZR_UNUSED(arg);
    return zr_fail(err, ZARR_ERR_LIMIT, "asked for %" PRIu64 " bytes", bytes);
}

/* An object without a valid index is refused before memory is allocated for the
 * shard. */
static void test_short(void **state)
{
    static const struct zr_grant grant = {.take = grant_none};
    static const uint64_t dims[] = {1 << 17, 0};
    static const uint8_t value[5] = {0};
    struct impl_env env;
    struct impl_chain c;
    uint8_t *back = NULL;
    size_t m = 0;

    ZR_UNUSED(state);
    assert_int_equal(impl_env_open(&env, NULL, NULL), ZARR_OK);
    c = open_chain(&env, "[" SHARD("[1]", LITTLE, LITTLE, "") "]", dims);
    env.threads.grant = &grant;
    assert_int_equal(impl_run(c.decode, &env, value, sizeof value, &back, &m, &error),
                     ZARR_ERR_CORRUPT);
    assert_non_null(strstr(error.message, "shard index"));
    impl_chain_close(&c);
    impl_env_close(&env);
}

static void test_cancel(void **state)
{
    static const uint64_t dims[] = {1024, 0};
    static uint16_t data[1024] = {1, 2, 3};
    zarr_cancel cancel;
    struct impl_env env;
    struct impl_chain c;
    uint8_t *value = NULL, *back = NULL;
    size_t n = 0, m = 0;

    ZR_UNUSED(state);
    zr_cancel_init(&cancel, NULL);
    assert_int_equal(impl_env_open(&env, NULL, NULL), ZARR_OK);
    c = open_chain(&env, "[" SHARD("[1]", LITTLE, LITTLE, "") "]", dims);
    env.threads.cancel = &cancel;
    assert_int_equal(impl_run(c.encode, &env, data, sizeof data, &value, &n, &error),
                     ZARR_OK);
    zarr_cancel_set(&cancel);
    assert_int_equal(impl_run(c.decode, &env, value, n, &back, &m, &error),
                     ZARR_ERR_CANCELLED);
    assert_int_equal(impl_run(c.encode, &env, data, sizeof data, &back, &m, &error),
                     ZARR_ERR_CANCELLED);
    free(value);
    impl_chain_close(&c);
    impl_env_close(&env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_lies),   cmocka_unit_test(test_short),
        cmocka_unit_test(test_cancel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
