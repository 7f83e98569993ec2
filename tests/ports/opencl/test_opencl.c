/*
 * ports/opencl/test_opencl.c - arrays that the CPU wrote are read into memory of an
 * OpenCL device by the plug-in beside this file, and are equal: raw, big-endian, with
 * codecs of the CPU, with codecs of the device, shards and whole chunks. Damage names its
 * chunk.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zarrc/zarrc.h>

enum {
    ROWS = 96,
    COLS = 128,
    N = ROWS * COLS,
    PART = 50 * 33
};

static zarr_context *ctx;
static zarr_store *store;
static zarr_error err;

#define OK(call) assert_ok((call), __LINE__)
static void assert_ok(zarr_status st, int line)
{
    if (st != ZARR_OK)
        fail_msg("line %d: %s", line, err.message);
}

/* ---- arrays -------------------- */

struct kind {
    const char *name, *type, *codecs;
    uint64_t chunk[2], shard[2]; /* `shard` 0: none */
    const char *impl;            /* of a codec, which `explain` must name; NULL: any */
    const char *writer;          /* the same for writing */
};
/* What the plug-in counts, as device.h declares it. */
struct counts {
    unsigned long launches, copies, waits;
};
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG    "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define LZ4    "{\"name\":\"numcodecs.lz4\",\"configuration\":{\"acceleration\":1}}"
#define BLOSC(cname, clevel, shuffle, blocksize)                                         \
    "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"" cname "\",\"clevel\":" clevel  \
    ",\"shuffle\":\"" shuffle "\",\"typesize\":2,\"blocksize\":" blocksize "}}"
static const struct kind kinds[] = {
    {"raw", "uint16", "[" LITTLE "]", {32, 32}, {96, 64}, NULL, NULL},
    {"big_endian", "uint16", "[" BIG "]", {32, 32}, {96, 64}, NULL, NULL},
    {"gzip",
     "uint16",
     "[" LITTLE ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]",
     {32, 32},
     {96, 64},
     NULL,
     NULL},
    {"lz4",
     "uint16",
     "[" LITTLE "," LZ4 "]",
     {32, 32},
     {96, 64},
     "opencl.lz4",
     "opencl.lz4"},
    {"transposed_lz4",
     "uint16",
     "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," BIG "," LZ4 "]",
     {32, 64},
     {96, 64},
     "opencl.lz4",
     "opencl.lz4"},
    {"whole_lz4",
     "uint16",
     "[" LITTLE "," LZ4 "]",
     {40, 50},
     {0, 0},
     "opencl.lz4",
     "opencl.lz4"},
    {"shuffle_lz4_crc32c",
     "float32",
     "[" LITTLE ",{\"name\":\"numcodecs.shuffle\",\"configuration\":{\"elementsize\":4}"
     "}," LZ4 ",{\"name\":\"crc32c\"}]",
     {32, 32},
     {96, 64},
     "opencl.shuffle",
     "opencl.shuffle"},
    {"blosc_lz4",
     "uint16",
     "[" LITTLE "," BLOSC("lz4", "5", "shuffle", "0") "]",
     {32, 32},
     {96, 64},
     "opencl.blosc",
     "opencl.blosc_device"},
    {"blosc_lz4_blocks",
     "uint16",
     "[" LITTLE "," BLOSC("lz4", "5", "shuffle", "768") "]",
     {32, 32},
     {96, 64},
     "opencl.blosc",
     "opencl.blosc_device"},
    {"blosc_lz4hc_bits",
     "uint16",
     "[" LITTLE "," BLOSC("lz4hc", "5", "bitshuffle", "768") "]",
     {32, 32},
     {96, 64},
     "opencl.blosc",
     NULL},
    {"blosc_blosclz",
     "uint16",
     "[" LITTLE "," BLOSC("blosclz", "9", "shuffle", "768") "]",
     {32, 32},
     {96, 64},
     "opencl.blosc",
     NULL},
    {"blosc_lz4_plain",
     "uint16",
     "[" LITTLE "," BLOSC("lz4", "5", "noshuffle", "0") "]",
     {32, 32},
     {96, 64},
     "opencl.blosc",
     "opencl.blosc_device"},
    {"blosc_stored",
     "uint16",
     "[" LITTLE "," BLOSC("lz4", "0", "shuffle", "0") "]",
     {32, 32},
     {96, 64},
     "opencl.blosc",
     NULL},
    {"blosc_zstd",
     "uint16",
     "[" LITTLE "," BLOSC("zstd", "5", "shuffle", "0") "]",
     {32, 32},
     {96, 64},
     "opencl.blosc_foreign",
     NULL},
    {"blosc_lz4_bits",
     "float32",
     "[" LITTLE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":5,"
     "\"shuffle\":\"bitshuffle\",\"typesize\":4,\"blocksize\":1000}}]",
     {96, 64},
     {0, 0},
     "opencl.blosc",
     "opencl.blosc_device"},
    {"blosc_lz4_large",
     "float32",
     "[" LITTLE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":1,"
     "\"shuffle\":\"shuffle\",\"typesize\":4,\"blocksize\":0}}]",
     {96, 128},
     {0, 0},
     "opencl.blosc",
     "opencl.blosc_device"},
    {"raw_crc32",
     "uint16",
     "[" LITTLE ","
     "{\"name\":\"numcodecs.crc32\",\"configuration\":{}}"
     "]",
     {32, 32},
     {96, 64},
     "opencl.crc32",
     "opencl.crc32"},
    {"raw_adler32",
     "uint16",
     "[" LITTLE ","
     "{\"name\":\"numcodecs.adler32\",\"configuration\":{}}"
     "]",
     {32, 32},
     {96, 64},
     "opencl.adler32",
     "opencl.adler32"},
    {"raw_fletcher32",
     "uint16",
     "[" LITTLE ","
     "{\"name\":\"numcodecs.fletcher32\",\"configuration\":{}}"
     "]",
     {32, 32},
     {96, 64},
     "opencl.fletcher32",
     "opencl.fletcher32"},
    {"raw_jenkins_lookup3",
     "uint16",
     "[" LITTLE ","
     "{\"name\":\"numcodecs.jenkins_lookup3\",\"configuration\":{}}"
     "]",
     {32, 32},
     {96, 64},
     "opencl.jenkins_lookup3",
     "opencl.jenkins_lookup3"},
    {"raw_crc32c",
     "float32",
     "[" LITTLE ",{\"name\":\"crc32c\"}"
     "]",
     {32, 32},
     {96, 64},
     "opencl.crc32c",
     "opencl.crc32c"},
    {"delta_lz4",
     "uint16",
     "["
     "{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<u2\"}}"
     "," LITTLE "," LZ4 "]",
     {32, 32},
     {96, 64},
     "opencl.lz4",
     "opencl.filters"},
    {"scale_lz4",
     "float32",
     "["
     "{\"name\":\"numcodecs.fixedscaleoffset\",\"configuration\":{\"offset\":60,"
     "\"scale\":16,\"dtype\":\"<f4\",\"astype\":\"<i4\"}}"
     "," LITTLE "," LZ4 "]",
     {32, 32},
     {96, 64},
     "opencl.lz4",
     "opencl.filters"},
    {"astype_lz4",
     "uint16",
     "["
     "{\"name\":\"numcodecs.astype\",\"configuration\":{\"encode_dtype\":\"<i4\","
     "\"decode_dtype\":\"<u2\"}}"
     "," LITTLE "," LZ4 "]",
     {32, 32},
     {96, 64},
     "opencl.lz4",
     "opencl.filters"},
};
enum {
    N_KINDS = sizeof kinds / sizeof kinds[0]
};

static size_t item_bytes(const struct kind *k)
{
    return strcmp(k->type, "float32") == 0 ? 4 : 2;
}

/* A walk with some noise, which all codecs shorten. */
static void make_elements(const struct kind *k, uint8_t *out)
{
    uint32_t x = 12345;

    for (size_t i = 0; i < N; i++) {
        uint16_t whole;
        float real;

        x = x * 1664525u + 1013904223u;
        whole = (uint16_t)(1000 + i % COLS / 4 + (x >> 28));
        real = (float)whole / 16;
        if (item_bytes(k) == 2)
            memcpy(out + 2 * i, &whole, 2);
        else
            memcpy(out + 4 * i, &real, 4);
    }
}

static zarr_array *make_array(const struct kind *k, uint8_t *elements)
{
    const uint64_t shape[2] = {ROWS, COLS};
    const int64_t tensor_shape[2] = {ROWS, COLS};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *a = NULL;
    zarr_tensor src;

    make_elements(k, elements);
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk_shape = k->chunk;
    spec.shard_shape = k->shard[0] ? k->shard : NULL;
    spec.data_type = k->type;
    spec.codecs = k->codecs;
    OK(zarr_array_create(&a, store, k->name, &spec, NULL, &err));
    zarr_tensor_host(&src, elements, N * item_bytes(k), 2, tensor_shape);
    OK(zarr_array_write(a, NULL, &src, NULL, &err));
    return a;
}

static zarr_tensor device_tensor(const zarr_mem *mem, const int64_t *shape)
{
    zarr_tensor t = ZARR_TENSOR_INIT;

    t.device_type = ZARR_DEVICE_OPENCL;
    t.ndim = 2;
    t.data = mem->handle;
    t.data_bytes = mem->bytes;
    t.shape = shape;
    return t;
}

static void fetch(uint8_t *to, const zarr_mem *mem, uint64_t bytes)
{
    const zarr_mem back = {.device_type = ZARR_DEVICE_CPU, .handle = to, .bytes = bytes};

    OK(zarr_mem_copy(ctx, &back, mem, bytes, &err));
}

/* ---- reading and writing -------------------- */

/* Decoders of the device may decode what they do not check. */
static const zarr_io_options *trusting(void)
{
    static zarr_io_options opts = ZARR_IO_OPTIONS_INIT;

    opts.trust = ZARR_TRUST_FULL;
    return &opts;
}

/* `impl` NULL: any will do. */
static void check_impl(zarr_array *a, uint32_t how, const zarr_tensor *t,
                       const char *impl, const zarr_io_options *opts)
{
    zarr_explanation *e = NULL;
    bool found = false;

    if (!impl)
        return;
    OK(zarr_array_explain(&e, a, how, NULL, t, opts, &err));
    for (uint32_t i = 0; i < e->n_steps; i++)
        found |= e->steps[i]->n_implementations > 0 &&
                 strcmp(e->steps[i]->implementations[0], impl) == 0;
    zarr_explanation_free(e);
    if (!found)
        fail_msg("not by %s", impl);
}

/* A wave with codecs of the device waits once: what they do stays on the stream. */
static void test_waits(void **state)
{
    static const int64_t shape[2] = {ROWS, COLS};
    static uint8_t elements[4 * N];
    void *plugin = dlopen(PORT_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
    const struct counts *counts = plugin ? dlsym(plugin, "opencl_counts") : NULL;

    (void)state;
    if (!counts) {
        fail_msg("the plug-in does not tell its counts");
        return;
    }
    for (int i = 0; i < N_KINDS; i++) {
        const struct kind *k = &kinds[i];
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        zarr_stats stats = ZARR_STATS_INIT;
        struct counts before;
        zarr_array *a;
        zarr_tensor dst;
        zarr_mem mem;

        if (!k->impl || strstr(k->name, "zstd")) /* its decoder waits */
            continue;
        a = make_array(k, elements);
        OK(zarr_mem_alloc(ctx, ZARR_DEVICE_OPENCL, 0, N * item_bytes(k), &mem, &err));
        dst = device_tensor(&mem, shape);
        opts.stats = &stats;
        before = *counts;
        OK(zarr_array_read(a, NULL, &dst, &opts, &err));
        assert_true(counts->launches > before.launches);
        if (counts->waits - before.waits > 2 * stats.waves)
            fail_msg("%s: %lu waits in %d waves", k->name, counts->waits - before.waits,
                     (int)stats.waves);
        zarr_mem_free(ctx, &mem);
        zarr_array_free(a);
        OK(zarr_node_delete(store, k->name, &err));
    }
    dlclose(plugin);
}

static void test_read(void **state)
{
    static const int64_t shape[2] = {ROWS, COLS}, part_shape[2] = {50, 33};
    static uint8_t elements[4 * N], got[4 * N], part[4 * N], want[4 * N];

    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        const struct kind *k = &kinds[i];
        const size_t item = item_bytes(k);
        zarr_array *a = make_array(k, elements);
        zarr_selection *sel = NULL;
        zarr_mem mem;
        zarr_tensor dst, host_part;

        OK(zarr_mem_alloc(ctx, ZARR_DEVICE_OPENCL, 0, N * item, &mem, &err));
        dst = device_tensor(&mem, shape);
        check_impl(a, ZARR_EXPLAIN_READ, &dst, k->impl, trusting());
        OK(zarr_array_read(a, NULL, &dst, trusting(), &err));
        fetch(got, &mem, N * item);
        assert_memory_equal(got, elements, N * item);

        OK(zarr_selection_parse(&sel, 2, zarr_array_shape(a), "3:53, 10:109:3", &err));
        dst = device_tensor(&mem, part_shape);
        OK(zarr_array_read(a, sel, &dst, trusting(), &err));
        fetch(part, &mem, PART * item);
        zarr_tensor_host(&host_part, want, sizeof want, 2, part_shape);
        OK(zarr_array_read(a, sel, &host_part, NULL, &err));
        assert_memory_equal(part, want, PART * item);
        zarr_selection_free(sel);
        zarr_mem_free(ctx, &mem);
        zarr_array_free(a);
        OK(zarr_node_delete(store, k->name, &err));
    }
}

/* The device's elements are those of the host. */
static void read_both(zarr_array *a, const struct kind *k, const char *impl,
                      const zarr_io_options *opts)
{
    static const int64_t shape[2] = {ROWS, COLS};
    static uint8_t got[4 * N], want[4 * N];
    const uint64_t bytes = N * item_bytes(k);
    zarr_tensor t;
    zarr_mem mem;

    OK(zarr_mem_alloc(ctx, ZARR_DEVICE_OPENCL, 0, bytes, &mem, &err));
    t = device_tensor(&mem, shape);
    check_impl(a, ZARR_EXPLAIN_READ, &t, impl, opts);
    OK(zarr_array_read(a, NULL, &t, opts, &err));
    fetch(got, &mem, bytes);
    zarr_tensor_host(&t, want, bytes, 2, shape);
    OK(zarr_array_read(a, NULL, &t, NULL, &err));
    assert_memory_equal(got, want, bytes);
    zarr_mem_free(ctx, &mem);
}

/* What the device wrote is read on the host as what the host wrote. */
static void write_both(zarr_array *a, const struct kind *k, uint8_t *elements)
{
    static const int64_t shape[2] = {ROWS, COLS};
    static uint8_t got[4 * N], want[4 * N];
    const uint64_t bytes = N * item_bytes(k);
    const zarr_mem from = {
        .device_type = ZARR_DEVICE_CPU, .handle = elements, .bytes = bytes};
    zarr_tensor t, on_host;
    zarr_mem mem;

    zarr_tensor_host(&t, elements, bytes, 2, shape);
    zarr_tensor_host(&on_host, want, bytes, 2, shape);
    OK(zarr_array_write(a, NULL, &t, NULL, &err));
    OK(zarr_array_read(a, NULL, &on_host, NULL, &err));
    memset(got, 0, sizeof got);
    zarr_tensor_host(&on_host, got, bytes, 2, shape);
    OK(zarr_array_write(a, NULL, &on_host, NULL, &err));

    OK(zarr_mem_alloc(ctx, ZARR_DEVICE_OPENCL, 0, bytes, &mem, &err));
    OK(zarr_mem_copy(ctx, &mem, &from, bytes, &err));
    t = device_tensor(&mem, shape);
    check_impl(a, ZARR_EXPLAIN_WRITE, &t, k->writer, NULL);
    OK(zarr_array_write(a, NULL, &t, NULL, &err));
    OK(zarr_array_read(a, NULL, &on_host, NULL, &err));
    assert_memory_equal(got, want, bytes);
    zarr_mem_free(ctx, &mem);
}

static void test_write(void **state)
{
    static uint8_t elements[4 * N];

    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        const struct kind *k = &kinds[i];
        zarr_array *a = make_array(k, elements);

        for (uint64_t e = 0; e < N; e++) /* other elements than those stored */
            elements[e] = (uint8_t)(elements[e] + 1);
        write_both(a, k, elements);
        zarr_array_free(a);
        OK(zarr_node_delete(store, k->name, &err));
    }
}

static const char v2_scale[] =
    "{\"id\":\"fixedscaleoffset\",\"offset\":3,\"scale\":2,\"dtype\":\">u2\","
    "\"astype\":\">f8\"}";
/* Filters of v2 name a byte order of their own. */
static void test_v2(void **state)
{
    static const char *const filters[] = {
        "{\"id\":\"delta\",\"dtype\":\">u2\",\"astype\":\">u2\"}",
        "{\"id\":\"astype\",\"encode_dtype\":\">i4\",\"decode_dtype\":\">u2\"}", v2_scale,
        "{\"id\":\"shuffle\",\"elementsize\":2}",
        "{\"id\":\"crc32c\",\"location\":\"start\"}"};
    static uint8_t elements[4 * N];
    struct kind k = {.type = ">u2"};
    char text[600];

    (void)state;
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        zarr_array *a = NULL;

        (void)snprintf(text, sizeof text,
                       "{\"zarr_format\":2,\"shape\":[96,128],\"chunks\":[30,50],"
                       "\"dtype\":\">u2\",\"fill_value\":0,\"order\":\"C\","
                       "\"filters\":[%s],\"compressor\":{\"id\":\"lz4\","
                       "\"acceleration\":1}}",
                       filters[i]);
        OK(zarr_store_put(store, "v2/.zarray", text, strlen(text), &err));
        OK(zarr_array_open(&a, store, "v2", NULL, &err));
        make_elements(&k, elements);
        write_both(a, &k, elements);
        read_both(a, &k, NULL, NULL);
        zarr_array_free(a);
        OK(zarr_node_delete(store, "v2", &err));
    }
}

/* Encoded chunks of blosc in the device's memory, as a store there has them. */
static void test_blosc_on_device(void **state)
{
    static uint8_t elements[4 * N];
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;

    (void)state;
    opts.codec_preference = "blosc=opencl.blosc_device";
    for (int i = 0; i < N_KINDS; i++) {
        const struct kind *k = &kinds[i];
        zarr_array *a;

        if (!strstr(k->name, "blosc") || strstr(k->name, "zstd"))
            continue;
        a = make_array(k, elements);
        read_both(a, k, "opencl.blosc_device", &opts);
        zarr_array_free(a);
        OK(zarr_node_delete(store, k->name, &err));
    }
}

/* ---- damage -------------------- */

static const struct kind *kind_of(const char *name)
{
    int i = 0;

    while (strcmp(kinds[i].name, name) != 0)
        assert_true(++i < N_KINDS);
    return &kinds[i];
}

/* Each byte of a chunk in turn. A decoder says so, or the elements differ: it never
 * writes elsewhere. */
static void damage_chunk(const char *name, const char *key, const zarr_io_options *opts)
{
    const struct kind *k = kind_of(name);
    static const int64_t shape[2] = {ROWS, COLS};
    static uint8_t elements[4 * N], got[4 * N], data[65536];
    const uint64_t bytes = N * item_bytes(k);
    zarr_array *a = make_array(k, elements);
    uint64_t n = sizeof data, refused = 0, tried = 0;
    char text[64];
    zarr_mem mem;
    zarr_tensor t, on_host;

    OK(zarr_mem_alloc(ctx, ZARR_DEVICE_OPENCL, 0, bytes, &mem, &err));
    OK(zarr_store_get(store, key, 0, data, &n, NULL, &err));
    for (uint64_t at = 0; at < n; at += at < 64 ? 1 : 97, tried++) {
        zarr_status st;

        data[at] ^= 0x55;
        OK(zarr_store_put(store, key, data, n, &err));
        t = device_tensor(&mem, shape);
        st = zarr_array_read(a, NULL, &t, opts, &err);
        data[at] ^= 0x55;
        if (st == ZARR_OK)
            continue;
        refused++;
        if (st != ZARR_ERR_CORRUPT) { /* such as a chunk of Blosc 2: to the CPU, too */
            zarr_tensor_host(&on_host, got, bytes, 2, shape);
            assert_int_equal(st, zarr_array_read(a, NULL, &on_host, NULL, &err));
        }
        assert_true(zarr_error_text(&err, ZARR_ERROR_KEY, text, sizeof text) > 0);
        assert_string_equal(text, key);
    }
    assert_in_range(refused, 4, tried);
    OK(zarr_store_put(store, key, data, n, &err));
    t = device_tensor(&mem, shape);
    OK(zarr_array_read(a, NULL, &t, NULL, &err));
    fetch(got, &mem, bytes);
    assert_memory_equal(got, elements, bytes);
    zarr_mem_free(ctx, &mem);
    zarr_array_free(a);
    OK(zarr_node_delete(store, k->name, &err));
}

static void test_damage(void **state)
{
    zarr_io_options on_device = ZARR_IO_OPTIONS_INIT;

    (void)state;
    on_device.codec_preference = "blosc=opencl.blosc_device";
    damage_chunk("blosc_lz4_blocks", "blosc_lz4_blocks/c/0/1", &on_device);
    damage_chunk("blosc_zstd", "blosc_zstd/c/0/1", trusting());
    damage_chunk("whole_lz4", "whole_lz4/c/1/1", NULL);
    damage_chunk("blosc_lz4", "blosc_lz4/c/0/1", NULL);
    damage_chunk("blosc_lz4hc_bits", "blosc_lz4hc_bits/c/0/1", NULL);
    damage_chunk("blosc_blosclz", "blosc_blosclz/c/0/1", NULL);
    damage_chunk("blosc_lz4_plain", "blosc_lz4_plain/c/0/1", NULL);
}

static int begin(void **state)
{
    static const char *const plugins[] = {PORT_PLUGIN, NULL};
    zarr_context_options opts = ZARR_CONTEXT_OPTIONS_INIT;

    (void)state;
    opts.plugins = plugins;
    if (zarr_context_create(&ctx, &opts, &err) != ZARR_OK) {
        printf("%s: %s\n", err.code == ZARR_ERR_UNSUPPORTED ? "skipped" : "failed",
               err.message);
        exit(err.code == ZARR_ERR_UNSUPPORTED ? 77 : 1);
    }
    return zarr_store_open(&store, ctx, "memory:", NULL, &err);
}

static int end(void **state)
{
    (void)state;
    zarr_store_free(store);
    zarr_context_free(ctx);
    return 0;
}

/* Looks for devices as any program does, without the library and the plug-in. */
static void look_for_devices(void)
{
    typedef int32_t (*platforms_fn)(uint32_t n, void **out, uint32_t *found);
    typedef int32_t (*devices_fn)(void *platform, uint64_t type, uint32_t n, void **out,
                                  uint32_t *found);
    void *lib = dlopen("libOpenCL.so.1", RTLD_NOW), *platform = NULL, *device = NULL;
    void *symbols[2] = {lib ? dlsym(lib, "clGetPlatformIDs") : NULL,
                        lib ? dlsym(lib, "clGetDeviceIDs") : NULL};
    platforms_fn platforms;
    devices_fn devices;
    uint32_t n = 0;

    memcpy(&platforms, &symbols[0], sizeof platforms);
    memcpy(&devices, &symbols[1], sizeof devices);
    if (platforms && devices && platforms(1, &platform, &n) == 0 && n > 0)
        (void)devices(platform, UINT64_C(0xFFFFFFFF), 1, &device, &n);
}

/* PoCL aborts the process if it does not find out about the machine's cores, as in a
 * chroot without /sys: a child tries. */
static bool is_opencl_alive(void)
{
    int how = 0;
    const pid_t child = fork();

    if (child == 0) {
        look_for_devices();
        _exit(0);
    }
    return child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_v2),
        cmocka_unit_test(test_blosc_on_device),
        cmocka_unit_test(test_damage),
    };

    if (!is_opencl_alive()) {
        printf("skipped: looking for OpenCL's devices ends the process here (is /sys "
               "mounted?)\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, begin, end);
}
