/*
 * ports/cuda/test_nvcomp.c - arrays in memory of a CUDA device whose codecs nvCOMP does:
 * read, written, damaged, of forms that it does not take, and with calls that fail. The
 * program runs over the fake driver and a fake nvCOMP. On a machine with a GPU,
 * ZARRC_NVCOMP names the real one.
 */
#include "application.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD   "{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}"
#define GZIP   "{\"name\":\"gzip\",\"configuration\":{\"level\":5}}"
#define ZLIB   "{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":5}}"
#define LZ4    "{\"name\":\"numcodecs.lz4\",\"configuration\":{\"acceleration\":1}}"
#define CRC    "{\"name\":\"crc32c\"}"
#define BLOSC(cname)                                                                     \
    "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"" cname                          \
    "\",\"clevel\":5,\"shuffle\":\"shuffle\",\"typesize\":2,\"blocksize\":0}}"

static const struct kind all[] = {
    {"zstd", "uint16", "[" LITTLE "," ZSTD "]", {32, 32}, {0, 0}},
    {"zstd_odd", "uint16", "[" LITTLE "," ZSTD "]", {7, 9}, {0, 0}},
    {"zstd_shards", "float32", "[" LITTLE "," ZSTD "]", {32, 32}, {96, 64}},
    {"zstd_crc", "uint16", "[" LITTLE "," ZSTD "," CRC "]", {32, 32}, {96, 64}},
    {"gzip", "uint16", "[" LITTLE "," GZIP "]", {32, 32}, {0, 0}},
    {"gzip_shards", "float32", "[" LITTLE "," GZIP "]", {31, 32}, {93, 64}},
    {"zlib", "uint16", "[" LITTLE "," ZLIB "]", {32, 32}, {0, 0}},
    {"zlib_crc", "float32", "[" LITTLE "," ZLIB "," CRC "]", {32, 32}, {96, 64}},
    {"blosc_zstd", "uint16", "[" LITTLE "," BLOSC("zstd") "]", {32, 32}, {96, 64}},
    {"blosc_zstd_large", "uint16", "[" LITTLE "," BLOSC("zstd") "]", {96, 128}, {0, 0}},
    {"blosc_zlib", "uint16", "[" LITTLE "," BLOSC("zlib") "]", {32, 32}, {0, 0}},
    {"blosc_zstd_crc",
     "uint16",
     "[" LITTLE "," BLOSC("zstd") "," CRC "]",
     {31, 33},
     {93, 66}},
};
enum {
    N_ALL = sizeof all / sizeof all[0],
    WITH_CRC = 3
};

static const struct kind one = {
    "one", "uint16", "[" LITTLE "," ZSTD "]", {ROWS, COLS}, {0, 0}};
static uint8_t value[8 * N];

typedef void (*nvcomp_fail_fn)(uint64_t k, int result);
typedef uint64_t (*nvcomp_calls_fn)(void);

static uint8_t elements[4 * N], got[4 * N];

/* A function of the fake library, which the plug-in has loaded. */
static any_call fake(const char *name)
{
    void *library = dlopen(FAKE_NVCOMP, RTLD_NOW | RTLD_NOLOAD), *symbol;
    any_call call = NULL;

    symbol = library ? dlsym(library, name) : NULL;
    memcpy(&call, &symbol, sizeof call);
    return call;
}

static uint64_t calls(void)
{
    nvcomp_calls_fn fn = (nvcomp_calls_fn)fake("fakenvcomp_calls");

    return fn ? fn() : 0;
}

static void fail_call(uint64_t k, int result)
{
    nvcomp_fail_fn fn = (nvcomp_fail_fn)fake("fakenvcomp_fail");

    assert_non_null(fn);
    fn(k, result);
}

static zarr_memory device_memory(void)
{
    zarr_memory mem;

    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, sizeof elements, &err));
    return mem;
}

/* Reads all to the device; `trust` as in zarr_io_options. */
static zarr_status read_device(zarr_array *a, const struct kind *k, uint32_t trust,
                               zarr_stats *stats)
{
    const uint64_t bytes = N * item_bytes(k);
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_memory mem = device_memory();
    zarr_tensor t = whole_tensor(&mem);
    zarr_status st;

    *stats = (zarr_stats)ZARR_STATS_INIT;
    opts.stats = stats;
    opts.trust = trust;
    memset(got, 0x77, sizeof got);
    put(&mem, got, bytes);
    st = zarr_array_read(a, NULL, &t, &opts, &err);
    if (st == ZARR_OK)
        fetch(got, &mem, bytes);
    zarr_memory_free(ctx, &mem);
    return st;
}

static void same(const struct kind *k)
{
    if (memcmp(got, elements, N * item_bytes(k)) != 0)
        fail_msg("%s: other elements", k->name);
}

/* Whether a read of a trusted array would use nvCOMP. */
static int explains(zarr_array *a)
{
    static char text[16384];
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_explanation *e = NULL;
    zarr_tensor t = ZARR_TENSOR_INIT;

    opts.trust = ZARR_TRUST_FULL;
    t.device_type = ZARR_DEVICE_CUDA;
    OK(zarr_array_explain(&e, a, ZARR_EXPLAIN_READ, NULL, &t, &opts, &err));
    OK(zarr_explanation_text(e, ZARR_EXPLAIN_TEXT, text, sizeof text, NULL, &err));
    zarr_explanation_free(e);
    return strstr(text, "@cuda.nvcomp") || strstr(text, "@cuda.blosc_foreign");
}

/* ---- other forms -------------------- */

static void store_value(const uint8_t *p, uint64_t n)
{
    const zarr_memory mem = {
        .device_type = ZARR_DEVICE_CPU, .handle = (void *)(uintptr_t)p, .bytes = n};

    OK(zarr_store_write(store, "one/c/0/0", &mem, NULL, NULL, NULL, &err));
}

/* Frames that only the CPU decodes: the length is not told, or there are two. */
static void other_frames(void)
{
    zarr_array *a = make_array(&one, elements);
    const size_t bytes = (size_t)2 * N;
    ZSTD_CCtx *c = ZSTD_createCCtx();
    zarr_stats stats;
    size_t n;

    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, 0);
    n = ZSTD_compress2(c, value, sizeof value, elements, bytes);
    store_value(value, n);
    OK(read_device(a, &one, ZARR_TRUST_FULL, &stats));
    same(&one);
    assert_int_equal(stats.chunks_fallback, 1);

    n = ZSTD_compress(value, sizeof value, elements, bytes / 2, 3);
    n += ZSTD_compress(value + n, sizeof value - n, elements + bytes / 2, bytes / 2, 3);
    store_value(value, n);
    OK(read_device(a, &one, ZARR_TRUST_FULL, &stats));
    same(&one);
    assert_int_equal(stats.chunks_fallback, 1);
    (void)ZSTD_freeCCtx(c);
    zarr_array_free(a);
}

/* ---- reading -------------------- */

static void test_read(void **state)
{
    zarr_stats stats;

    (void)state;
    for (int i = 0; i < N_ALL; i++) {
        zarr_array *a = make_array(&all[i], elements);
        const int crc = strstr(all[i].codecs, CRC) != NULL;
        uint64_t before = calls();

        OK(read_device(a, &all[i], ZARR_TRUST_FULL, &stats));
        same(&all[i]);
        assert_true(explains(a));
        if (is_fake())
            assert_true(calls() > before);
        assert_int_equal(stats.chunks_fallback, 0);
        assert_int_equal(stats.chunks_distrusted, 0);
        before = calls();
        OK(read_device(a, &all[i], ZARR_TRUST_VERIFIED, &stats));
        same(&all[i]);
        if (is_fake())
            assert_int_equal(calls() > before, crc);
        assert_int_equal(stats.chunks_distrusted > 0, !crc);
        before = calls();
        OK(read_device(a, &all[i], ZARR_TRUST_NONE, &stats));
        same(&all[i]);
        assert_int_equal(calls(), before);
        zarr_array_free(a);
    }
}

/* From a store that reaches the device a kernel checks the headers, and no chunk visits
 * the host, except those of blosc. */
static void test_read_reached(void **state)
{
    zarr_store *const plain = store;
    zarr_store_options on_device = ZARR_STORE_OPTIONS_INIT;
    zarr_stats stats;

    (void)state;
    on_device.device_type = ZARR_DEVICE_CUDA;
    OK(zarr_store_open(&store, ctx, "memory:", &on_device, &err));
    for (int i = 0; i < N_ALL; i++) {
        zarr_array *a = make_array(&all[i], elements);
        const uint64_t before = calls();

        OK(read_device(a, &all[i], ZARR_TRUST_FULL, &stats));
        same(&all[i]);
        if (!strstr(all[i].codecs, "blosc")) {
            if (is_fake())
                assert_true(calls() > before);
            assert_int_equal(stats.chunks_fallback, 0);
            assert_int_equal(stats.bytes_up, 0);
            assert_int_equal(stats.copies_decoded_host, 0);
            if (!all[i].shard[0]) /* an index is read on the host */
                assert_int_equal(stats.bytes_down, 0);
        }
        OK(read_device(a, &all[i], ZARR_TRUST_VERIFIED, &stats));
        same(&all[i]);
        zarr_array_free(a);
    }
    other_frames();
    zarr_store_free(store);
    store = plain;
}

/* ---- writing -------------------- */

/* What the device encodes, the CPU decodes. */
static void test_write(void **state)
{
    (void)state;
    for (int i = 0; i < N_ALL; i++) {
        const struct kind *k = &all[i];
        const uint64_t bytes = N * item_bytes(k);
        zarr_array *a = make_array(k, elements);
        zarr_memory mem = device_memory();
        zarr_tensor t = whole_tensor(&mem);
        const uint64_t before = calls();

        for (uint64_t j = 0; j < bytes; j++)
            elements[j] = (uint8_t)(elements[j] + 1 + j / 100 % 2);
        put(&mem, elements, bytes);
        OK(zarr_array_write(a, NULL, &t, NULL, &err));
        if (is_fake() && (strncmp(k->name, "zstd", 4) == 0 || k->name[0] == 'g'))
            assert_true(calls() > before);
        zarr_tensor_host(&t, NULL, got, bytes, 2, t.shape);
        OK(zarr_array_read(a, NULL, &t, NULL, &err));
        same(k);
        zarr_memory_free(ctx, &mem);
        zarr_array_free(a);
    }
}

/* Elements without any pattern become longer: such outputs may not fit their room. */
static void test_write_noise(void **state)
{
    const struct kind *k = &all[0];
    const uint64_t bytes = N * item_bytes(k);
    zarr_array *a = make_array(k, elements);
    zarr_memory mem = device_memory();
    zarr_tensor t = whole_tensor(&mem);
    uint32_t x = 1;

    (void)state;
    for (uint64_t j = 0; j < bytes; j++)
        elements[j] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
    put(&mem, elements, bytes);
    OK(zarr_array_write(a, NULL, &t, NULL, &err));
    zarr_tensor_host(&t, NULL, got, bytes, 2, t.shape);
    OK(zarr_array_read(a, NULL, &t, NULL, &err));
    same(k);
    zarr_memory_free(ctx, &mem);
    zarr_array_free(a);
}

/* ---- KvikIO's codec -------------------- */

static zarr_array *batch_array(const char *path, const char *algorithm)
{
    const uint64_t shape[2] = {ROWS, COLS};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *a = NULL;
    char codecs[200];

    (void)snprintf(codecs, sizeof codecs,
                   "{\"filters\":null,\"compressor\":{\"id\":\"nvcomp_batch\","
                   "\"algorithm\":%s}}",
                   algorithm);
    spec.zarr_format = 2;
    spec.ndim = 2;
    spec.shape = spec.chunk_shape = shape;
    spec.data_type = "<u2";
    spec.codecs = codecs;
    OK(zarr_array_create(&a, store, path, &spec, NULL, &err));
    return a;
}

static void test_kvikio(void **state)
{
    static const struct {
        const char *algorithm;
        int real_only; /* the fake library has no Snappy */
    } batches[] = {{"\"zstd\"", 0},
                   {"\"lz4\"", 0},
                   {"\"lz4\",\"options\":{\"has_header\":false}", 0},
                   {"\"snappy\"", 1},
                   {"\"deflate\"", 0}}; /* the last: its chunk is used below */
    zarr_stats stats;
    zarr_array *a;

    (void)state;
    make_elements(&one, elements);
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        char path[16];
        zarr_memory mem = device_memory();
        zarr_tensor t = whole_tensor(&mem);

        (void)snprintf(path, sizeof path, "k%d", (int)i);
        a = batch_array(path, batches[i].algorithm);
        zarr_tensor_host(&t, NULL, elements, (size_t)2 * N, 2, t.shape);
        OK(zarr_array_write(a, NULL, &t, NULL, &err));
        zarr_memory_free(ctx, &mem);
        OK(read_device(a, &one, ZARR_TRUST_FULL, &stats));
        same(&one);
        assert_true(explains(a) || (batches[i].real_only && is_fake()));
        zarr_array_free(a);
    }
}

/* Only nvCOMP decodes GDeflate, so without trust there is no way. */
static void test_gdeflate(void **state)
{
    zarr_memory mem = {
        .device_type = ZARR_DEVICE_CPU, .handle = value, .bytes = sizeof value};
    zarr_array *a = batch_array("g", "\"gdeflate\"");
    zarr_store_value got_value = {.struct_size = sizeof got_value};
    zarr_stats stats;

    (void)state;
    if (!is_fake()) { /* there GDeflate is deflate */
        zarr_array_free(a);
        skip();
    }
    OK(zarr_store_read(store, "k4/0.0", 0, &mem, &got_value, NULL, &err));
    mem.bytes = got_value.bytes;
    OK(zarr_store_write(store, "g/0.0", &mem, NULL, NULL, NULL, &err));
    OK(read_device(a, &one, ZARR_TRUST_FULL, &stats));
    same(&one);
    assert_int_equal(read_device(a, &one, 0, &stats), ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "trust"));
    value[mem.bytes / 2] ^= 0x5A;
    value[mem.bytes / 2 + 1] ^= 0x5A;
    OK(zarr_store_write(store, "g/0.0", &mem, NULL, NULL, NULL, &err));
    if (read_device(a, &one, ZARR_TRUST_FULL, &stats) != ZARR_OK)
        assert_non_null(strstr(err.message, "nvCOMP"));
    zarr_array_free(a);
}

static void test_other_frames(void **state)
{
    (void)state;
    other_frames();
}

/* nvCOMP says that it cannot; the CPU then says what is wrong. */
static void test_damage(void **state)
{
    zarr_array *a = make_array(&one, elements);
    zarr_stats stats;
    size_t n;

    (void)state;
    if (!is_fake()) {
        zarr_array_free(a);
        skip();
    }
    n = ZSTD_compress(value, sizeof value, elements, (size_t)2 * N, 3);
    for (size_t i = 60; i < n; i += 7)
        value[i] ^= 0x5A;
    store_value(value, n);
    assert_int_equal(read_device(a, &one, ZARR_TRUST_FULL, &stats), ZARR_ERR_CORRUPT);
    assert_non_null(strstr(err.message, "zstd"));
    zarr_array_free(a);
}

/* ---- failures -------------------- */

/* A call that fails is done by the CPU. */
static void test_calls_fail(void **state)
{
    static const int results[] = {10, 11, 21, 1000, 10000};
    zarr_stats stats;

    (void)state;
    if (!is_fake())
        skip();
    for (size_t r = 0; r < sizeof results / sizeof *results; r++)
        for (uint64_t k = 1; k <= 3; k++) {
            zarr_array *a = make_array(&all[2], elements);

            fail_call(k, results[r]);
            OK(read_device(a, &all[2], ZARR_TRUST_FULL, &stats));
            same(&all[2]);
            fail_call(0, 0);
            zarr_array_free(a);
        }
}

/* Each call of the driver fails once; the read ends well or with an error. */
static void test_driver_fails(void **state)
{
    const nvcomp_fail_fn fails = (nvcomp_fail_fn)driver_call("fakecuda_fail");
    zarr_array *a = make_array(&all[WITH_CRC], elements);
    zarr_stats stats;
    int n_ok = 0;

    (void)state;
    for (uint64_t k = 1; fails && k < 60; k++) {
        zarr_memory mem = device_memory();
        zarr_tensor t = whole_tensor(&mem);
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        zarr_status st;

        fails(k, 2); /* out of memory */
        st = zarr_array_read(a, NULL, &t, &opts, &err);
        fails(0, 0);
        n_ok += st == ZARR_OK;
        if (st == ZARR_OK) {
            fetch(got, &mem, N * item_bytes(&all[WITH_CRC]));
            same(&all[WITH_CRC]);
        }
        zarr_memory_free(ctx, &mem);
    }
    assert_true(!fails || n_ok > 0);
    OK(read_device(a, &all[WITH_CRC], 0, &stats));
    same(&all[WITH_CRC]);
    zarr_array_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),         cmocka_unit_test(test_read_reached),
        cmocka_unit_test(test_write),        cmocka_unit_test(test_write_noise),
        cmocka_unit_test(test_other_frames), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_calls_fail),   cmocka_unit_test(test_driver_fails),
        cmocka_unit_test(test_kvikio),       cmocka_unit_test(test_gdeflate),
    };
    int rc;

    setenv("ZARRC_NVCOMP", FAKE_NVCOMP, 0);
    begin_context(NULL, NULL);
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    end_context();
    return rc;
}
