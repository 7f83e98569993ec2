/*
 * ports/opencl/test_opencl.c - arrays that the CPU wrote are read into memory of an
 * OpenCL device by the plug-in beside this file, and are equal: raw, big-endian, with
 * codecs of the CPU, with codecs of the device, shards and whole chunks. Damage names its
 * chunk.
 */
#include "../../opencl_alive.h"
#include "arrays.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PART = 50 * 33
};

/* What the plug-in counts, as device.h declares it. */
struct counts {
    unsigned long launches, copies, waits;
};

/* Implementations that `explain` must name. Any may read and write other kinds. */
static const struct by {
    const char *kind, *reader, *writer;
} by[] = {
    {"lz4", "opencl.lz4", "opencl.lz4"},
    {"transposed_lz4", "opencl.lz4", "opencl.lz4"},
    {"whole_lz4", "opencl.lz4", "opencl.lz4"},
    {"shuffle_lz4_crc32c", "opencl.shuffle", "opencl.shuffle"},
    {"blosc_lz4", "opencl.blosc", "opencl.blosc_device"},
    {"blosc_lz4_blocks", "opencl.blosc", "opencl.blosc_device"},
    {"blosc_lz4hc_bits", "opencl.blosc", NULL},
    {"blosc_blosclz", "opencl.blosc", NULL},
    {"blosc_lz4_plain", "opencl.blosc", "opencl.blosc_device"},
    {"blosc_stored", "opencl.blosc", NULL},
    {"zstd", "cpu.libzstd", "cpu.libzstd"}, /* unless it is named: zstd_is_named() */
    {"blosc_zstd", "cpu.libblosc", NULL},
    {"blosc_zstd_blocks", "cpu.libblosc", NULL},
    {"blosc_lz4_bits", "opencl.blosc", "opencl.blosc_device"},
    {"blosc_lz4_large", "opencl.blosc", "opencl.blosc_device"},
    {"raw_crc32", "opencl.crc32", "opencl.crc32"},
    {"raw_adler32", "opencl.adler32", "opencl.adler32"},
    {"raw_fletcher32", "opencl.fletcher32", "opencl.fletcher32"},
    {"raw_jenkins_lookup3", "opencl.jenkins_lookup3", "opencl.jenkins_lookup3"},
    {"raw_crc32c", "opencl.crc32c", "opencl.crc32c"},
    {"delta_lz4", "opencl.lz4", "opencl.filters"},
    {"scale_lz4", "opencl.lz4", "opencl.filters"},
    {"astype_lz4", "opencl.lz4", "opencl.filters"},
    {"packbits", "opencl.packbits", "opencl.packbits"},
    {"packbits_lz4", "opencl.lz4", "opencl.packbits"},
    {"packed_bools", "opencl.lz4", "opencl.packbits"},
};

static const struct by *find_by(const struct kind *k)
{
    static const struct by any;

    for (size_t i = 0; i < sizeof by / sizeof by[0]; i++)
        if (k->name && strcmp(by[i].kind, k->name) == 0)
            return &by[i];
    return &any;
}

static zarr_tensor shaped_tensor(const zarr_memory *mem, const uint64_t *shape)
{
    zarr_tensor t = whole_tensor(mem);

    t.shape = shape;
    return t;
}

/* ---- reading and writing -------------------- */

/* Decoders of the device may decode what they do not check. */
static const zarr_io_options *full_trust(void)
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
    static uint8_t elements[4 * N];
    void *plugin = dlopen(PORT_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
    const struct counts *counts = plugin ? dlsym(plugin, "opencl_counts") : NULL;

    (void)state;
    if (!counts) {
        fail_msg("the plug-in does not tell its counts");
        return;
    }
    for (int i = 0; i < n_kinds; i++) {
        const struct kind *k = &kinds[i];
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        zarr_stats stats = ZARR_STATS_INIT;
        struct counts before;
        zarr_array *a;
        zarr_tensor dst;
        zarr_memory mem;

        if (!find_by(k)->reader || strstr(k->name, "zstd"))
            continue;
        a = make_array(k, elements);
        OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_OPENCL, 0, N * item_bytes(k), &err));
        dst = whole_tensor(&mem);
        opts.stats = &stats;
        before = *counts;
        OK(zarr_array_read(a, NULL, &dst, &opts, &err));
        assert_true(counts->launches > before.launches);
        if (counts->waits - before.waits > 2 * stats.waves)
            fail_msg("%s: %lu waits in %d waves", k->name, counts->waits - before.waits,
                     (int)stats.waves);
        zarr_memory_free(ctx, &mem);
        zarr_array_free(a);
        OK(zarr_node_delete(store, k->name, &err));
    }
    dlclose(plugin);
}

static void test_read(void **state)
{
    static const uint64_t part_shape[2] = {50, 33};
    static uint8_t elements[4 * N], got[4 * N], part[4 * N], want[4 * N];

    (void)state;
    for (int i = 0; i < n_kinds; i++) {
        const struct kind *k = &kinds[i];
        const size_t item = item_bytes(k);
        zarr_array *a = make_array(k, elements);
        zarr_selection *sel = NULL;
        zarr_memory mem;
        zarr_tensor dst, host_part;

        OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_OPENCL, 0, N * item, &err));
        dst = whole_tensor(&mem);
        check_impl(a, ZARR_EXPLAIN_READ, &dst, find_by(k)->reader, full_trust());
        OK(zarr_array_read(a, NULL, &dst, full_trust(), &err));
        fetch(got, &mem, N * item);
        assert_memory_equal(got, elements, N * item);

        OK(zarr_selection_parse(&sel, 2, zarr_array_shape(a), "3:53, 10:109:3", &err));
        dst = shaped_tensor(&mem, part_shape);
        OK(zarr_array_read(a, sel, &dst, full_trust(), &err));
        fetch(part, &mem, PART * item);
        zarr_tensor_host(&host_part, NULL, want, sizeof want, 2, part_shape);
        OK(zarr_array_read(a, sel, &host_part, NULL, &err));
        assert_memory_equal(part, want, PART * item);
        zarr_selection_free(sel);
        zarr_memory_free(ctx, &mem);
        zarr_array_free(a);
        OK(zarr_node_delete(store, k->name, &err));
    }
}

/* The device's elements are those of the host. */
static void read_both(zarr_array *a, const struct kind *k, const char *impl,
                      const zarr_io_options *opts)
{
    static const uint64_t shape[2] = {ROWS, COLS};
    static uint8_t got[4 * N], want[4 * N];
    const uint64_t bytes = N * item_bytes(k);
    zarr_tensor t;
    zarr_memory mem;

    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_OPENCL, 0, bytes, &err));
    t = whole_tensor(&mem);
    check_impl(a, ZARR_EXPLAIN_READ, &t, impl, opts);
    OK(zarr_array_read(a, NULL, &t, opts, &err));
    fetch(got, &mem, bytes);
    zarr_tensor_host(&t, NULL, want, bytes, 2, shape);
    OK(zarr_array_read(a, NULL, &t, NULL, &err));
    assert_memory_equal(got, want, bytes);
    zarr_memory_free(ctx, &mem);
}

/* What the device wrote is read on the host as what the host wrote. */
static void write_both(zarr_array *a, const struct kind *k, uint8_t *elements)
{
    static const uint64_t shape[2] = {ROWS, COLS};
    static uint8_t got[4 * N], want[4 * N];
    const uint64_t bytes = N * item_bytes(k);
    const zarr_memory from = {
        .device_type = ZARR_DEVICE_CPU, .handle = elements, .bytes = bytes};
    zarr_tensor t, on_host;
    zarr_memory mem;

    zarr_tensor_host(&t, NULL, elements, bytes, 2, shape);
    zarr_tensor_host(&on_host, NULL, want, bytes, 2, shape);
    OK(zarr_array_write(a, NULL, &t, NULL, &err));
    OK(zarr_array_read(a, NULL, &on_host, NULL, &err));
    memset(got, 0, sizeof got);
    zarr_tensor_host(&on_host, NULL, got, bytes, 2, shape);
    OK(zarr_array_write(a, NULL, &on_host, NULL, &err));

    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_OPENCL, 0, bytes, &err));
    OK(zarr_memory_copy(ctx, &mem, &from, bytes, &err));
    t = whole_tensor(&mem);
    check_impl(a, ZARR_EXPLAIN_WRITE, &t, find_by(k)->writer, NULL);
    OK(zarr_array_write(a, NULL, &t, NULL, &err));
    OK(zarr_array_read(a, NULL, &on_host, NULL, &err));
    assert_memory_equal(got, want, bytes);
    zarr_memory_free(ctx, &mem);
}

static void test_write(void **state)
{
    static uint8_t elements[4 * N];

    (void)state;
    for (int i = 0; i < n_kinds; i++) {
        const struct kind *k = &kinds[i];
        zarr_array *a = make_array(k, elements);

        for (uint64_t e = 0; e < N; e++) /* other elements than those stored */
            elements[e] = (uint8_t)(item_bytes(k) == 1 ? !elements[e] : elements[e] + 1);
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
        OK(zarr_store_put(store, "v2/.zarray", text, strlen(text), NULL, &err));
        OK(zarr_array_open(&a, store, "v2", NULL, &err));
        make_elements(&k, elements);
        write_both(a, &k, elements);
        read_both(a, &k, NULL, NULL);
        zarr_array_free(a);
        OK(zarr_node_delete(store, "v2", &err));
    }
}

static const zarr_io_options *zstd_is_named(void)
{
    static const zarr_tuning tuning = {.struct_size = sizeof tuning,
                                       .codec_preference =
                                           "zstd=opencl.zstd;blosc=opencl.blosc_zstd"};
    static zarr_io_options opts = ZARR_IO_OPTIONS_INIT;

    opts.tuning = &tuning;
    return &opts;
}

/* The kernels of zstd, which need no trust. */
static void read_all_zstd(int from_device)
{
    static uint8_t elements[4 * N];

    for (int i = 0; i < n_kinds; i++) {
        const struct kind *k = &kinds[i];
        zarr_io_options opts = *zstd_is_named();
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_array *a;

        if (!strstr(k->name, "zstd"))
            continue;
        a = make_array(k, elements);
        opts.stats = &stats;
        read_both(a, k, strstr(k->name, "blosc") ? "opencl.blosc_zstd" : "opencl.zstd",
                  &opts);
        assert_int_equal(stats.chunks_fallback, 0);
        assert_int_equal(stats.bytes_up == 0, from_device);
        zarr_array_free(a);
        OK(zarr_node_delete(store, k->name, &err));
    }
}

static void test_zstd(void **state)
{
    (void)state;
    read_all_zstd(0);
}

/* ---- damage -------------------- */

static const struct kind *find_kind(const char *name)
{
    int i = 0;

    while (strcmp(kinds[i].name, name) != 0)
        assert_true(++i < n_kinds);
    return &kinds[i];
}

/* Each byte of a chunk in turn. A decoder says so, or the elements differ: it never
 * writes elsewhere. */
static void damage_chunk(const char *name, const char *key, const zarr_io_options *opts)
{
    const struct kind *k = find_kind(name);
    static const uint64_t shape[2] = {ROWS, COLS};
    static uint8_t elements[4 * N], got[4 * N], data[65536];
    const uint64_t bytes = N * item_bytes(k);
    zarr_array *a = make_array(k, elements);
    uint64_t n = sizeof data, refused = 0, tried = 0;
    char text[64];
    zarr_memory mem;
    zarr_tensor t, on_host;

    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_OPENCL, 0, bytes, &err));
    OK(zarr_store_get(store, key, 0, data, &n, NULL, &err));
    for (uint64_t at = 0; at < n; at += at < 64 ? 1 : 97, tried++) {
        zarr_status st;

        data[at] ^= 0x55;
        OK(zarr_store_put(store, key, data, n, NULL, &err));
        t = whole_tensor(&mem);
        st = zarr_array_read(a, NULL, &t, opts, &err);
        data[at] ^= 0x55;
        if (st == ZARR_OK)
            continue;
        refused++;
        if (st != ZARR_ERR_CORRUPT) { /* such as a chunk of Blosc 2: to the CPU, too */
            zarr_tensor_host(&on_host, NULL, got, bytes, 2, shape);
            assert_int_equal(st, zarr_array_read(a, NULL, &on_host, NULL, &err));
        }
        assert_true(zarr_error_text(&err, ZARR_ERROR_KEY, text, sizeof text) > 0);
        assert_string_equal(text, key);
    }
    assert_in_range(refused, 4, tried);
    OK(zarr_store_put(store, key, data, n, NULL, &err));
    t = whole_tensor(&mem);
    OK(zarr_array_read(a, NULL, &t, NULL, &err));
    fetch(got, &mem, bytes);
    assert_memory_equal(got, elements, bytes);
    zarr_memory_free(ctx, &mem);
    zarr_array_free(a);
    OK(zarr_node_delete(store, k->name, &err));
}

/* A store whose values are in the device's memory. */
static zarr_store *enter_device_store(void)
{
    zarr_store *const plain = store;
    zarr_store_options o = ZARR_STORE_OPTIONS_INIT;

    o.device_type = ZARR_DEVICE_OPENCL;
    OK(zarr_store_open(&store, ctx, "memory:", &o, &err));
    return plain;
}

static void leave_device_store(zarr_store *plain)
{
    zarr_store_free(store);
    store = plain;
}

static void test_zstd_on_device(void **state)
{
    zarr_store *const plain = enter_device_store();

    (void)state;
    read_all_zstd(1);
    damage_chunk("zstd_big_endian", "zstd_big_endian/c/0/1", zstd_is_named());
    damage_chunk("blosc_zstd", "blosc_zstd/c/0/1", zstd_is_named());
    leave_device_store(plain);
}

/* Encoded chunks of blosc in the device's memory, as a store there has them. */
static void test_blosc_on_device(void **state)
{
    static uint8_t elements[4 * N];
    const zarr_tuning tuning = {.struct_size = sizeof tuning,
                                .codec_preference = "blosc=opencl.blosc_device"};
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;

    (void)state;
    opts.tuning = &tuning;
    for (int i = 0; i < n_kinds; i++) {
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

static void test_damage(void **state)
{
    const zarr_tuning tuning = {.struct_size = sizeof tuning,
                                .codec_preference = "blosc=opencl.blosc_device"};
    zarr_io_options on_device = ZARR_IO_OPTIONS_INIT;

    (void)state;
    on_device.tuning = &tuning;
    damage_chunk("blosc_lz4_blocks", "blosc_lz4_blocks/c/0/1", &on_device);
    damage_chunk("zstd_big_endian", "zstd_big_endian/c/0/1", zstd_is_named());
    damage_chunk("blosc_zstd", "blosc_zstd/c/0/1", zstd_is_named());
    damage_chunk("whole_lz4", "whole_lz4/c/1/1", NULL);
    damage_chunk("blosc_lz4", "blosc_lz4/c/0/1", NULL);
    damage_chunk("blosc_lz4hc_bits", "blosc_lz4hc_bits/c/0/1", NULL);
    damage_chunk("blosc_blosclz", "blosc_blosclz/c/0/1", NULL);
    damage_chunk("blosc_lz4_plain", "blosc_lz4_plain/c/0/1", NULL);
}

static int begin(void **state)
{
    (void)state;
    begin_context(NULL, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    end_context();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),   cmocka_unit_test(test_waits),
        cmocka_unit_test(test_write),  cmocka_unit_test(test_v2),
        cmocka_unit_test(test_zstd),   cmocka_unit_test(test_blosc_on_device),
        cmocka_unit_test(test_damage), cmocka_unit_test(test_zstd_on_device),
    };

    if (!opencl_is_alive()) {
        puts("skipped: " OPENCL_ABORTS);
        return 77;
    }
    return cmocka_run_group_tests(tests, begin, end);
}
