/*
 * unit/codecs/test_parts.c - a stage that decodes parts of a chunk: blosc by blocks.
 * Every requested range is decoded correctly, other bytes are not written, and a
 * malformed container is refused as when it is decoded whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/impl/impl_test.h"

enum {
    N_BLOCKS = 20
};
#define BLOCK ((size_t)1024)
#define N     (BLOCK * N_BLOCKS - 300)

static struct impl_env env;
static zarr_error error;
static uint8_t plain[N];

static int open_env(void **state)
{
    ZR_UNUSED(state);
    impl_pattern(plain, N, 1);
    return impl_env_open(&env, NULL, &error) == ZARR_OK ? 0 : -1;
}

static int close_env(void **state)
{
    ZR_UNUSED(state);
    impl_env_close(&env);
    return 0;
}

static void open_chain(struct impl_chain *c, const char *config, uint8_t **stored,
                       size_t *n)
{
    static const uint64_t dims[] = {N / 4, 0};
    char text[256];
    const struct impl_chain_args args = {
        .format = 2, .codecs = text, .dtype = "<u4", .dims = dims};

    (void)snprintf(text, sizeof text,
                   "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"blosc\",%s}]",
                   config);
    if (impl_chain_open(c, &env, &args, &error) != ZARR_OK || !c->decode || !c->encode) {
        fail_msg("%s: %s", text, error.message);
        abort(); /* for the analyzer: fail_msg() does not return */
    }
    assert_int_equal(c->decode->n, 1);
    assert_true(c->decode->decodes_ranges);
    if (impl_run(c->encode, &env, plain, N, stored, n, &error) != ZARR_OK || !*stored) {
        fail_msg("%s", error.message);
        abort();
    }
}

/* *used: the number of bytes that the decoder reports. */
static zarr_status parts(const struct impl_chain *c, const uint8_t *stored, size_t n,
                         const zarr_codec_range *ranges, uint64_t n_ranges, uint8_t *out,
                         uint64_t *used)
{
    uint8_t *exact = malloc(n ? n : 1);
    zarr_codec_job job = {.src = zr_mem_of_host(exact, n), .dst = zr_mem_of_host(out, N)};
    zarr_status st;

    assert_non_null(exact);
    memcpy(exact, stored, n);
    error.message[0] = '\0';
    st = zr_stage_partial(&c->decode->stage[0], &job, ranges, n_ranges, &env.threads,
                          (zarr_memory){0}, &error);
    assert_int_equal(job.status, st);
    *used = job.dst_used;
    free(exact);
    return st;
}

/* The bytes of the ranges are decoded; blocks that no range touches are unchanged. used
 * 0: any. */
static void check(const struct impl_chain *c, const uint8_t *stored, size_t n,
                  const zarr_codec_range *ranges, uint64_t n_ranges, uint64_t used)
{
    static uint8_t out[N], touched[N];
    uint64_t got = 0;

    memset(out, 0xA5, sizeof out);
    memset(touched, 0, sizeof touched);
    if (parts(c, stored, n, ranges, n_ranges, out, &got) != ZARR_OK)
        fail_msg("%s", error.message);
    for (uint64_t i = 0; i < n_ranges; i++) {
        const size_t at = (size_t)ranges[i].offset, bytes = (size_t)ranges[i].bytes;
        const size_t first = at / BLOCK * BLOCK;
        const size_t end = ZR_MIN((at + bytes + BLOCK - 1) / BLOCK * BLOCK, (size_t)N);

        assert_memory_equal(out + at, plain + at, bytes);
        memset(touched + first, 1, end - first);
    }
    if (!used)
        return;
    assert_int_equal(got, used);
    for (size_t i = 0; i < N && used < N; i++)
        if (!touched[i])
            assert_int_equal(out[i], 0xA5);
}

#define SMALL "\"cname\":\"zstd\",\"clevel\":1,\"shuffle\":1,\"blocksize\":1024"

static void blocks(void **state)
{
    static const zarr_codec_range one[] = {{5000, 8}};
    static const zarr_codec_range last[] = {{N - 4, 4}};
    static const zarr_codec_range across[] = {{BLOCK - 4, 8}};
    /* Two ranges in one block, one in its neighbour, one far away. */
    static const zarr_codec_range many[] = {
        {0, 4}, {900, 4}, {BLOCK, 4}, {10 * BLOCK + 4, 4}};
    static const zarr_codec_range half[] = {{0, 8 * BLOCK}, {9 * BLOCK, 8 * BLOCK}};
    static const zarr_codec_range all[] = {{0, N}};
    struct impl_chain c;
    uint8_t *stored = NULL;
    size_t n = 0;

    ZR_UNUSED(state);
    open_chain(&c, SMALL, &stored, &n);
    /* The number of blocks that the test assumes. */
    assert_int_equal(zr_load_le32(stored + 8), BLOCK);
    check(&c, stored, n, one, 1, BLOCK);
    check(&c, stored, n, last, 1, N % BLOCK);
    check(&c, stored, n, across, 1, 2 * BLOCK);
    check(&c, stored, n, many, 4, 3 * BLOCK);
    /* Most of the chunk: decoding it whole is cheaper. */
    check(&c, stored, n, half, 2, N);
    check(&c, stored, n, all, 1, N);
    for (size_t at = 0; at + 4 <= N; at += 508) {
        const zarr_codec_range two[] = {{at, 4}, {N - 4, 4}};

        check(&c, stored, n, two, at + 4 <= N - 4 ? 2 : 1, 0);
    }
    free(stored);
    impl_chain_close(&c);
}

static void stored_as_it_is(void **state)
{
    static const zarr_codec_range two[] = {{5000, 8}, {N - 4, 4}};
    struct impl_chain c;
    uint8_t *stored = NULL;
    static uint8_t out[N];
    uint64_t used = 0;
    size_t n = 0;

    ZR_UNUSED(state);
    open_chain(&c, "\"cname\":\"lz4\",\"clevel\":0,\"shuffle\":0", &stored, &n);
    assert_int_equal(n, N + 16);
    memset(out, 0xA5, sizeof out);
    assert_int_equal(parts(&c, stored, n, two, 2, out, &used), ZARR_OK);
    assert_int_equal(used, 12);
    assert_memory_equal(out + 5000, plain + 5000, 8);
    assert_memory_equal(out + N - 4, plain + N - 4, 4);
    assert_int_equal(out[4999], 0xA5);
    assert_int_equal(out[5008], 0xA5);
    assert_int_equal(parts(&c, stored, n - 1, two, 2, out, &used), ZARR_ERR_CORRUPT);
    free(stored);
    impl_chain_close(&c);
}

static void lies(void **state)
{
    static const zarr_codec_range one[] = {{5000, 8}};
    static const zarr_codec_range nothing[] = {{5000, 0}}, outside[] = {{N - 4, 8}},
                                  far[] = {{UINT64_MAX, 8}};
    struct impl_chain c;
    uint8_t *stored = NULL;
    static uint8_t out[N];
    uint64_t used = 0;
    size_t n = 0;

    ZR_UNUSED(state);
    open_chain(&c, SMALL, &stored, &n);
    for (size_t cut = 0; cut < n; cut += 97)
        assert_int_equal(parts(&c, stored, cut, one, 1, out, &used), ZARR_ERR_CORRUPT);
    stored[4]--; /* one byte shorter than the chunk */
    assert_int_equal(parts(&c, stored, n, one, 1, out, &used), ZARR_ERR_CORRUPT);
    if (!strstr(error.message, "expected"))
        fail_msg("%s", error.message);
    stored[4]++;
    /* Invalid arguments. */
    assert_int_equal(parts(&c, stored, n, nothing, 1, out, &used), ZARR_ERR_INTERNAL);
    assert_int_equal(parts(&c, stored, n, outside, 1, out, &used), ZARR_ERR_INTERNAL);
    assert_int_equal(parts(&c, stored, n, far, 1, out, &used), ZARR_ERR_INTERNAL);
    /* A block with damaged bytes is refused, unless no range touches it. */
    for (size_t i = 16; i < n; i += 13) {
        const uint8_t was = stored[i];
        zarr_status st;

        stored[i] ^= 0xff;
        st = parts(&c, stored, n, one, 1, out, &used);
        assert_true(st == ZARR_OK || st == ZARR_ERR_CORRUPT);
        stored[i] = was;
    }
    free(stored);
    impl_chain_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks),
        cmocka_unit_test(stored_as_it_is),
        cmocka_unit_test(lies),
    };

    return cmocka_run_group_tests(tests, open_env, close_env);
}
