/*
 * unit/codecs/test_inside.c - n5_default and zarrs.vlen, whose chunks put their own
 * header around the output of other codecs: the bytes in both directions, and chunks
 * with wrong contents inside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/impl/impl_test.h"

static struct impl_env env;
static struct zr_buffer buffers[ZR_UNSIZED_BUFFERS];
static zarr_error error;

static int open_env(void **state)
{
    ZR_UNUSED(state);
    return impl_env_open(&env, NULL, &error) == ZARR_OK ? 0 : -1;
}

static int close_env(void **state)
{
    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(buffers); i++)
        zr_buffer_free(&buffers[i], &env.threads);
    impl_env_close(&env);
    return 0;
}

/* The encoding and decoding program of a chain whose chunk has this fill value (NULL:
 * zero). */
static void open_filled(struct impl_chain *c, const char *codecs, const char *dtype,
                        const uint64_t *dims, const void *fill)
{
    struct zr_placement_options opts = {.target_device = ZARR_DEVICE_CPU};
    zarr_chunk_spec chunk;
    zarr_status st;

    *c = (struct impl_chain){0};
    st = codec_env_parse(&c->chain, &env.codec, 3, codecs, NULL, &error);
    if (st == ZARR_OK)
        st = codec_env_chunk(&chunk, &env.codec, dtype, dims, &error);
    chunk.fill = fill;
    if (st == ZARR_OK)
        st = zr_chain_resolve(&c->reps, c->chain, &chunk, NULL, NULL, &error);
    for (int encode = 0; st == ZARR_OK && encode < 2; encode++) {
        opts.encode = encode;
        st = zr_program_make(encode ? &c->encode : &c->decode, &env.impls, c->chain,
                             &c->reps, &opts, NULL, &error);
    }
    if (st != ZARR_OK || !c->decode || !c->encode) {
        fail_msg("%s: %s", codecs, error.message);
        abort(); /* for the analyzer: fail_msg() does not return */
    }
}

/* The result stays valid until the next call. */
static zarr_status run(const struct zr_program *p, const void *src, size_t n,
                       zarr_memory *out)
{
    struct zr_unsized g = {.ts = &env.threads, .buffer = buffers};
    const zarr_memory in = zr_mem_of_host((void *)(uintptr_t)src, n);

    error.message[0] = '\0';
    *out = (zarr_memory){0};
    return p->encode ? zr_unsized_encode(p, &g, &in, NULL, out, &error)
                     : zr_unsized_decode(p, &g, &in, NULL, out, &error);
}

static void must_be(const struct zr_program *p, const void *src, size_t n,
                    const void *want, size_t want_bytes)
{
    zarr_memory got;

    if (run(p, src, n, &got) != ZARR_OK)
        fail_msg("%s", error.message);
    assert_int_equal(got.bytes, want_bytes);
    assert_memory_equal((const uint8_t *)got.handle + got.offset, want, want_bytes);
}

/* Copies the bytes, possibly cut, to a buffer of their exact size, so that a sanitizer
 * detects a read past the end. */
static void must_fail(const struct zr_program *p, const void *src, size_t n,
                      zarr_status want, const char *says)
{
    uint8_t *exact = malloc(n ? n : 1);
    zarr_status st;
    zarr_memory got;

    assert_non_null(exact);
    memcpy(exact, src, n);
    st = run(p, exact, n, &got);
    free(exact);
    if (st != want || !strstr(error.message, says))
        fail_msg("%d, \"%s\", wanted \"%s\"", st, error.message, says);
    assert_int_equal(env.threads.decode.top + env.threads.encode.top, 0);
}

/* ---- n5_default ------------------------------------------------------------------ */

#define N5(order, more)                                                                  \
    "[{\"name\":\"n5_default\",\"configuration\":{\"codecs\":[{\"name\":\"transpose\","  \
    "\"configuration\":{\"order\":" order "}},{\"name\":\"bytes\",\"configuration\":{"   \
    "\"endian\":\"big\"}}" more "]}}]"

static const uint64_t two_by_three[] = {2, 3, 0};

static void n5_blocks(void **state)
{
    static const int16_t chunk[6] = {1, -2, 3, 4, 5, 6}, fill = -1;
    static const uint8_t whole[] = {0, 0, 0, 2, 0,    0,    0, 2, 0, 0, 0, 3,
                                    0, 1, 0, 4, 0xff, 0xfe, 0, 5, 0, 3, 0, 6};
    /* Blocks at the end of the array may be smaller: the rest gets the fill value. */
    static const uint8_t small[] = {0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0xff, 0xfe};
    static const int16_t from_small[6] = {1, -2, -1, -1, -1, -1};
    /* Larger blocks are cropped. */
    static const uint8_t large[] = {0, 0, 0, 2,    0,    0, 0, 3, 0, 0, 0, 3, 0, 1, 0,
                                    4, 0, 9, 0xff, 0xfe, 0, 5, 0, 9, 0, 3, 0, 6, 0, 9};
    uint8_t bad[sizeof whole];
    struct impl_chain c;

    ZR_UNUSED(state);
    open_filled(&c, N5("[1,0]", ""), "int16", two_by_three, &fill);
    must_be(c.encode, chunk, sizeof chunk, whole, sizeof whole);
    must_be(c.decode, whole, sizeof whole, chunk, sizeof chunk);
    must_be(c.decode, small, sizeof small, from_small, sizeof from_small);
    must_be(c.decode, large, sizeof large, chunk, sizeof chunk);

    must_fail(c.decode, whole, 3, ZARR_ERR_CORRUPT, "n5_default: a block of 3 bytes");
    must_fail(c.decode, whole, 11, ZARR_ERR_CORRUPT,
              "n5_default: a block of 11 bytes, its header has 12");
    must_fail(c.decode, whole, sizeof whole - 1, ZARR_ERR_CORRUPT,
              "elements of 11 bytes, the block's shape needs 12");
    memcpy(bad, whole, sizeof bad);
    bad[1] = 1;
    must_fail(c.decode, bad, sizeof bad, ZARR_ERR_UNSUPPORTED, "a block of mode 1");
    bad[0] = 1;
    must_fail(c.decode, bad, sizeof bad, ZARR_ERR_CORRUPT, "a block of mode 257");
    memcpy(bad, whole, sizeof bad);
    bad[3] = 3;
    must_fail(c.decode, bad, sizeof bad, ZARR_ERR_CORRUPT,
              "a block of 3 dimensions, the array has 2");
    memcpy(bad, whole, sizeof bad);
    bad[11] = 0;
    must_fail(c.decode, bad, sizeof bad, ZARR_ERR_CORRUPT, "dimension 1 of a block is 0");
    memset(bad + 4, 0xff, 8);
    must_fail(c.decode, bad, sizeof bad, ZARR_ERR_LIMIT, "(limit chunk_bytes is");
    impl_chain_close(&c);
}

/* With a compressor, its output follows the header. */
static void n5_compressed(void **state)
{
    static const uint8_t chunk[3] = {7, 8, 9};
    static const uint64_t three[] = {3, 0};
    uint8_t stored[64];
    struct impl_chain c;
    zarr_memory got;

    ZR_UNUSED(state);
    open_filled(&c, N5("[0]", ",{\"name\":\"crc32c\"}"), "uint8", three, NULL);
    assert_int_equal(run(c.encode, chunk, 3, &got), ZARR_OK);
    assert_int_equal(got.bytes, 8 + 3 + 4);
    memcpy(stored, (const uint8_t *)got.handle + got.offset, 15);
    assert_memory_equal(stored, "\0\0\0\1\0\0\0\3\7\10\11", 11);
    must_be(c.decode, stored, 15, chunk, 3);
    must_fail(c.decode, stored, 14, ZARR_ERR_CORRUPT, "crc32c");
    stored[8] ^= 1;
    must_fail(c.decode, stored, 15, ZARR_ERR_CORRUPT, "crc32c");
    stored[8] ^= 1;
    stored[7] = 4; /* claims one element more than it contains */
    must_fail(c.decode, stored, 15, ZARR_ERR_CORRUPT, "n5_default: elements of 3 bytes");
    impl_chain_close(&c);
}

/* ---- zarrs.vlen ---------------------------------------------------------- */

#define VLEN(type, endian, where, data)                                                  \
    "[{\"name\":\"zarrs.vlen\",\"configuration\":{\"index_data_type\":\"" type "\","     \
    "\"index_location\":\"" where "\",\"index_codecs\":[{\"name\":\"bytes\","            \
    "\"configuration\":{\"endian\":\"" endian "\"}}],\"data_codecs\":[\"bytes\"" data    \
    "]}}]"

static const uint64_t three[] = {3, 0};

static void check_strings(const char *codecs, const void *stored, size_t n)
{
    static const zarr_vlen items[3] = {{"ab", 2}, {"", 0}, {"\xC3\xBC!", 3}};
    struct impl_chain c;
    zarr_vlen back[3];
    zarr_memory got;

    open_filled(&c, codecs, "string", three, NULL);
    must_be(c.encode, items, sizeof items, stored, n);
    if (run(c.decode, stored, n, &got) != ZARR_OK)
        fail_msg("%s", error.message);
    assert_int_equal(got.bytes, sizeof back);
    memcpy(back, (const uint8_t *)got.handle + got.offset, sizeof back);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(back[i].bytes, items[i].bytes);
        if (items[i].bytes)
            assert_memory_equal(back[i].data, items[i].data, items[i].bytes);
    }
    impl_chain_close(&c);
}

static void vlen_chunks(void **state)
{
    static const char little[] = "\x10\0\0\0\0\0\0\0" /* index: 4 times 4 bytes */
                                 "\0\0\0\0\2\0\0\0\2\0\0\0\5\0\0\0"
                                 "ab\xC3\xBC!";
    static const char big[] =
        "ab\xC3\xBC!"
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\5"
        "\x20\0\0\0\0\0\0\0";

    ZR_UNUSED(state);
    check_strings(VLEN("uint32", "little", "start", ""), little, sizeof little - 1);
    check_strings(VLEN("uint64", "big", "end", ""), big, sizeof big - 1);
}

static void vlen_chunks_that_lie(void **state)
{
    /* length of the index, 4 offsets, data */
    static const struct {
        const char *bytes;
        size_t n;
        const char *says;
    } lies[] = {
#define CHUNK(text) text, sizeof(text) - 1
        {CHUNK(""), "0 bytes, the index's length alone has 8"},
        {CHUNK("\x10\0\0\0\0\0\0"), "7 bytes, the index's length alone has 8"},
        {CHUNK("\x11\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\2\0\0\0\5\0\0\0"),
         "an index of 17 bytes, the chunk has 16 besides its length"},
        {CHUNK("\xff\xff\xff\xff\xff\xff\xff\xff"), "an index of 18446744073709551615"},
        {CHUNK("\x10\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\2\0\0\0\5\0\0\0abcd"),
         "zarrs.vlen: 4 bytes, the index says 5"},
        {CHUNK("\x10\0\0\0\0\0\0\0\6\0\0\0\2\0\0\0\2\0\0\0\5\0\0\0abcde"),
         "the first offset is 6"},
        {CHUNK("\x10\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0\2\0\0\0\5\0\0\0abcde"),
         "element 1 goes from byte 3 to 2 of 5"},
        {CHUNK("\x10\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\6\0\0\0\5\0\0\0abcde"),
         "element 1 goes from byte 2 to 6 of 5"},
        {CHUNK("\x10\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\3\0\0\0\5\0\0\0ab\xC3\xBC!"),
         "element 1 is not UTF-8"},
        {CHUNK("\x0c\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\5\0\0\0abcde"), "12"},
    };
    static const zarr_vlen null[3] = {{"a", 1}, {NULL, 2}, {"", 0}};
    static const zarr_vlen broken[3] = {{"a", 1}, {"", 0}, {"\xFF", 1}};
    struct impl_chain c;

    ZR_UNUSED(state);
    open_filled(&c, VLEN("uint32", "little", "start", ""), "string", three, NULL);
    for (size_t i = 0; i < ZR_COUNT(lies); i++)
        must_fail(c.decode, lies[i].bytes, lies[i].n, ZARR_ERR_CORRUPT, lies[i].says);
    must_fail(c.encode, null, sizeof null, ZARR_ERR_INVALID,
              "zarrs.vlen: element 1 of 2 bytes at NULL");
    must_fail(c.encode, broken, sizeof broken, ZARR_ERR_INVALID,
              "zarrs.vlen: element 2 is not UTF-8");
    impl_chain_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(n5_blocks),
        cmocka_unit_test(n5_compressed),
        cmocka_unit_test(vlen_chunks),
        cmocka_unit_test(vlen_chunks_that_lie),
    };

    return cmocka_run_group_tests(tests, open_env, close_env);
}
