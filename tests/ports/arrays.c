#include "arrays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

zarr_context *ctx;
zarr_store *store;
zarr_error err;

void assert_ok(zarr_status st, int line)
{
    if (st != ZARR_OK)
        fail_msg("line %d: %s", line, err.message);
}

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG    "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define LZ4    "{\"name\":\"numcodecs.lz4\",\"configuration\":{\"acceleration\":1}}"
#define ZSTD   "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":true}}"
#define GZIP   "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"
#define CRC32C "{\"name\":\"crc32c\"}"
#define BOOLS  "{\"name\":\"numcodecs.packbits\"}"
#define PACKBITS(where)                                                                  \
    "{\"name\":\"packbits\",\"configuration\":{\"padding_encoding\":\"" where "\"}}"
#define DELTA "{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<u2\"}}"
#define SCALE                                                                            \
    "{\"name\":\"numcodecs.fixedscaleoffset\",\"configuration\":{\"offset\":60,"         \
    "\"scale\":16,\"dtype\":\"<f4\",\"astype\":\"<i4\"}}"
#define ASTYPE                                                                           \
    "{\"name\":\"numcodecs.astype\",\"configuration\":{\"encode_dtype\":\"<i4\","        \
    "\"decode_dtype\":\"<u2\"}}"
#define BLOSC(cname, clevel, shuffle, typesize, blocksize)                               \
    "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"" cname "\",\"clevel\":" clevel  \
    ",\"shuffle\":\"" shuffle "\",\"typesize\":" typesize ",\"blocksize\":" blocksize    \
    "}}"
#define TRANSPOSE "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"
#define SHUFFLE   "{\"name\":\"numcodecs.shuffle\",\"configuration\":{\"elementsize\":4}}"

/* Chunks of 32 by 32 elements in shards of 96 by 64. */
#define SHARDED                                                                          \
    {32, 32},                                                                            \
    {                                                                                    \
        96, 64                                                                           \
    }

/* Rows with one codec behind the numbers. */
#define BLOSC_KIND(name, cname, clevel, shuffle, blocksize)                              \
    {                                                                                    \
        name, "uint16",                                                                  \
            "[" LITTLE "," BLOSC(cname, clevel, shuffle, "2", blocksize) "]", SHARDED    \
    }
#define SUM_KIND(codec)                                                                  \
    {                                                                                    \
        "raw_" codec, "uint16",                                                          \
            "[" LITTLE ",{\"name\":\"numcodecs." codec "\",\"configuration\":{}}]",      \
            SHARDED                                                                      \
    }

const struct kind kinds[] = {
    {"raw", "uint16", "[" LITTLE "]", SHARDED},
    {"raw_whole", "uint16", "[" LITTLE "]", {40, 50}, {0, 0}},
    {"big_endian", "uint16", "[" BIG "]", SHARDED},
    {"transposed", "float32", "[" TRANSPOSE "," LITTLE "]", {32, 64}, {0, 0}},
    {"zstd", "uint16", "[" LITTLE "," ZSTD "]", SHARDED},
    {"zstd_big_endian", "float32", "[" BIG "," ZSTD "]", {40, 50}, {0, 0}},
    {"lz4", "uint16", "[" LITTLE "," LZ4 "]", SHARDED},
    {"transposed_lz4", "uint16", "[" TRANSPOSE "," BIG "," LZ4 "]", {32, 64}, {96, 64}},
    {"whole_lz4", "uint16", "[" LITTLE "," LZ4 "]", {40, 50}, {0, 0}},
    {"shuffle_lz4_crc32c", "float32", "[" LITTLE "," SHUFFLE "," LZ4 "," CRC32C "]",
     SHARDED},
    BLOSC_KIND("blosc_lz4", "lz4", "5", "shuffle", "0"),
    BLOSC_KIND("blosc_zstd", "zstd", "5", "shuffle", "0"),
    BLOSC_KIND("blosc_lz4_blocks", "lz4", "5", "shuffle", "768"),
    BLOSC_KIND("blosc_lz4hc_bits", "lz4hc", "5", "bitshuffle", "768"),
    BLOSC_KIND("blosc_blosclz", "blosclz", "9", "shuffle", "768"),
    BLOSC_KIND("blosc_lz4_plain", "lz4", "5", "noshuffle", "0"),
    BLOSC_KIND("blosc_stored", "lz4", "0", "shuffle", "0"),
    {"blosc_lz4_bits",
     "float32",
     "[" LITTLE "," BLOSC("lz4", "5", "bitshuffle", "4", "1000") "]",
     {96, 64},
     {0, 0}},
    {"blosc_lz4_large",
     "float32",
     "[" LITTLE "," BLOSC("lz4", "1", "shuffle", "4", "0") "]",
     {96, 128},
     {0, 0}},
    SUM_KIND("crc32"),
    SUM_KIND("adler32"),
    SUM_KIND("fletcher32"),
    SUM_KIND("jenkins_lookup3"),
    {"raw_crc32c", "float32", "[" LITTLE "," CRC32C "]", SHARDED},
    {"delta_lz4", "uint16", "[" DELTA "," LITTLE "," LZ4 "]", SHARDED},
    {"scale_lz4", "float32", "[" SCALE "," LITTLE "," LZ4 "]", SHARDED},
    {"astype_lz4", "uint16", "[" ASTYPE "," LITTLE "," LZ4 "]", SHARDED},
    {"packbits", "uint16", "[" PACKBITS("first_byte") "]", SHARDED},
    {"packbits_lz4", "float32", "[" PACKBITS("last_byte") "," LZ4 "]", {40, 50}, {0, 0}},
    {"packed_bools", "bool", "[" BOOLS "," LITTLE "," LZ4 "]", {33, 47}, {0, 0}},
    {"gzip", "uint16", "[" LITTLE "," GZIP "]", SHARDED},
    {"blosc_zstd_blocks", /* blocks of 3,000 bytes, of which each chunk ends with a part
                           */
     "float32",
     "[" LITTLE "," BLOSC("zstd", "3", "bitshuffle", "3", "3000") "]",
     {96, 70},
     {0, 0}},
};
const int n_kinds = sizeof kinds / sizeof kinds[0];

size_t item_bytes(const struct kind *k)
{
    return strcmp(k->type, "bool") == 0 ? 1 : strcmp(k->type, "float32") == 0 ? 4 : 2;
}

int is_lossy(const struct kind *k)
{
    return strstr(k->codecs, "fixedscaleoffset") || item_bytes(k) == 1;
}

void make_elements(const struct kind *k, uint8_t *out)
{
    uint32_t x = 12345;

    for (size_t i = 0; i < N; i++) {
        uint16_t whole;
        float real;

        x = x * 1664525u + 1013904223u;
        whole = (uint16_t)(1000 + i % COLS / 4 + (x >> 28));
        real = (float)whole / 16;
        if (item_bytes(k) == 1)
            out[i] = whole % 3 == 0;
        else if (item_bytes(k) == 2)
            memcpy(out + 2 * i, &whole, 2);
        else
            memcpy(out + 4 * i, &real, 4);
    }
}

static const uint64_t whole_shape[2] = {ROWS, COLS};

zarr_array *make_array(const struct kind *k, uint8_t *elements)
{
    const uint64_t shape[2] = {ROWS, COLS};
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
    spec.flags = ZARR_SPEC_OVERWRITE;
    OK(zarr_array_create(&a, store, k->name, &spec, NULL, &err));
    zarr_tensor_host(&src, NULL, elements, N * item_bytes(k), 2, whole_shape);
    OK(zarr_array_write(a, NULL, &src, NULL, &err));
    return a;
}

zarr_tensor whole_tensor(const zarr_memory *mem)
{
    zarr_tensor t = ZARR_TENSOR_INIT;

    t.device_type = mem->device_type;
    t.device_id = mem->device_id;
    t.ndim = 2;
    t.data = mem->handle;
    t.data_bytes = mem->bytes;
    t.shape = whole_shape;
    return t;
}

void fetch(uint8_t *to, const zarr_memory *mem, uint64_t bytes)
{
    const zarr_memory back = {
        .device_type = ZARR_DEVICE_CPU, .handle = to, .bytes = bytes};

    OK(zarr_memory_copy(ctx, &back, mem, bytes, &err));
}

void put(const zarr_memory *mem, const uint8_t *from, uint64_t bytes)
{
    union {
        const uint8_t *in;
        void *out;
    } source = {.in = from};
    const zarr_memory src = {
        .device_type = ZARR_DEVICE_CPU, .handle = source.out, .bytes = bytes};

    OK(zarr_memory_copy(ctx, mem, &src, bytes, &err));
}

/* ---- contexts -------------------- */

static void give_up(int no_device)
{
    printf("%s: %s\n", no_device ? "skipped" : "failed", err.message);
    exit(no_device ? 77 : 1);
}

void begin_context(const char *allocators, void (*add)(void))
{
    const char *other = getenv("PORT_OTHER_PLUGIN"); /* of a test's child */
    const char *const plugins[] = {other ? other : PORT_PLUGIN, NULL};
    zarr_context_options opts = ZARR_CONTEXT_OPTIONS_INIT;
    zarr_memory mem;
    zarr_status st;

    opts.plugins = plugins;
    opts.allocators = allocators;
    st = zarr_context_create(&ctx, &opts, &err);
    if (st != ZARR_OK)
        give_up(PORT_LOADS_DEVICE && st == ZARR_ERR_UNSUPPORTED);
    if (add)
        add();
    st = zarr_memory_alloc(&mem, ctx, PORT_MEMORY, 0, 64, &err);
    if (st != ZARR_OK)
        give_up(st == ZARR_ERR_UNSUPPORTED);
    zarr_memory_free(ctx, &mem);
    OK(zarr_store_open(&store, ctx, "memory:", NULL, &err));
}

void end_context(void)
{
    zarr_store_free(store);
    zarr_context_free(ctx);
    store = NULL;
    ctx = NULL;
}
