/*
 * unit/array/test_vlen.c - variable-length elements through the public functions:
 * tensors with a heap, offsets and bytes, both formats, shards and nested shards, both
 * pipelines, parts of chunks, fill values, empty chunks, resizing, refusals, and
 * malformed chunks.
 */
#include <stdbool.h>

#include <zarrc/vlen.h>

#include "array_test.h"

static struct world w;

static void open_world(void)
{
    world_open(&w, WORLD_MEMORY);
}

/* ---- documents ----------------------------------------------------------- */

static const char *const documents[] = {
    /* v3 */
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[7,10],\"data_type\":"
    "\"string\","
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4,4]}},"
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":\"fi\\u00fcl\","
    "\"codecs\":[{\"name\":\"vlen-utf8\"}]}",
    /* compressed, permuted, checked */
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[7,10],\"data_type\":"
    "\"string\","
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4,4]}},"
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":\"\","
    "\"codecs\":[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},"
    "{\"name\":\"vlen-utf8\",\"configuration\":{}},{\"name\":\"zstd\"},"
    "{\"name\":\"gzip\"},\"crc32c\"]}",
    /* several array->array codecs, which move elements that point into a buffer */
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[7,10],\"data_type\":"
    "\"string\","
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4,4]}},"
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":\"\","
    "\"codecs\":[{\"name\":\"reshape\",\"configuration\":{\"shape\":[2,8]}},"
    "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},"
    "{\"name\":\"reshape\",\"configuration\":{\"shape\":[2,2,4]}},"
    "{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},"
    "{\"name\":\"transpose\",\"configuration\":{\"order\":[2,1,0]}},"
    "\"vlen-utf8\",\"zstd\",\"crc32c\"]}",
    /* shards */
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[7,10],"
    "\"data_type\":\"variable_length_bytes\",\"chunk_grid\":{\"name\":\"regular\","
    "\"configuration\":{\"chunk_shape\":[4,8]}},\"chunk_key_encoding\":{\"name\":"
    "\"default\"},\"fill_value\":\"AP8B\",\"codecs\":[{\"name\":\"sharding_indexed\","
    "\"configuration\":{\"chunk_shape\":[2,2],\"codecs\":[\"vlen-bytes\",{\"name\":"
    "\"zstd\"}],\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":"
    "\"little\"}},\"crc32c\"]}}]}",
    /* nested shards, inside another codec */
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[7,10],"
    "\"data_type\":\"bytes\",\"chunk_grid\":{\"name\":\"regular\","
    "\"configuration\":{\"chunk_shape\":[4,8]}},\"chunk_key_encoding\":{\"name\":"
    "\"default\"},\"fill_value\":[102],\"codecs\":[{\"name\":\"sharding_indexed\","
    "\"configuration\":{\"chunk_shape\":[4,4],\"codecs\":[{\"name\":\"sharding_indexed\","
    "\"configuration\":{\"chunk_shape\":[2,2],\"codecs\":[\"vlen-bytes\"],"
    "\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]}}]"
    ","
    "\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
    "\"crc32c\"]}},{\"name\":\"zstd\"}]}",
    /* v2 */
    "{\"zarr_format\":2,\"shape\":[7,10],\"chunks\":[3,4],\"dtype\":\"|O\",\"order\":"
    "\"F\","
    "\"fill_value\":0,\"filters\":[{\"id\":\"vlen-utf8\"}],\"compressor\":{\"id\":"
    "\"zlib\","
    "\"level\":1}}",
    "{\"zarr_format\":2,\"shape\":[7,10],\"chunks\":[3,4],\"dtype\":\"|O\",\"order\":"
    "\"C\","
    "\"fill_value\":null,\"filters\":[{\"id\":\"vlen-bytes\"},{\"id\":\"shuffle\","
    "\"elementsize\":1}],\"compressor\":{\"id\":\"blosc\",\"cname\":\"lz4\",\"clevel\":5,"
    "\"shuffle\":1,\"blocksize\":0}}",
    "{\"zarr_format\":2,\"shape\":[7,10],\"chunks\":[7,10],\"dtype\":\"|O\",\"order\":"
    "\"C\",\"fill_value\":\"\",\"filters\":null,\"object_codec\":{\"id\":\"vlen-utf8\"},"
    "\"compressor\":null}",
};

static zarr_array *make_document(const char *path, const char *document)
{
    zarr_array_spec spec = {.struct_size = sizeof spec, .document = document};
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, w.store, path, &spec, NULL, &terr));
    return a;
}

/* ---- elements ------------------------------------------------------------ */

enum {
    ROWS = 7,
    COLS = 10,
    N = ROWS * COLS
};
static char words[N][400];
static zarr_vlen items[N];

static void make_items(unsigned seed)
{
    for (size_t i = 0; i < N; i++) {
        const size_t n = (i * 37 + seed * 11) % 300;

        for (size_t k = 0; k + 1 < n; k += 2) { /* two-byte characters */
            words[i][k] = (char)0xc3;
            words[i][k + 1] = (char)(0xa0 + (i + k + seed) % 30);
        }
        items[i] =
            (zarr_vlen){.data = i % 5 ? words[i] : NULL, .bytes = i % 5 ? n & ~1u : 0};
    }
    items[7] = (zarr_vlen){.data = "a\0b", .bytes = 3};
}

static zarr_tensor host_tensor(zarr_vlen *data, const uint64_t *shape)
{
    return (zarr_tensor){.struct_size = sizeof(zarr_tensor),
                         .device_type = ZARR_DEVICE_CPU,
                         .ndim = 2,
                         .data = data,
                         .shape = shape,
                         .data_bytes = (uint64_t)(shape[0] * shape[1]) * sizeof *data};
}

static void same_item(const zarr_vlen *got, const zarr_vlen *want, size_t i)
{
    if (got->bytes != want->bytes ||
        (got->bytes && memcmp(got->data, want->data, (size_t)got->bytes)))
        fail_msg("element %zu: %llu bytes \"%.*s\", wanted %llu \"%.*s\"", i,
                 (unsigned long long)got->bytes, (int)got->bytes, (const char *)got->data,
                 (unsigned long long)want->bytes, (int)want->bytes,
                 (const char *)want->data);
}

static const uint64_t whole[] = {ROWS, COLS};
static const char *const pipelines[] = {"waves", "serial"};

static void read_and_compare(zarr_array *a, const char *pipeline)
{
    zarr_vlen got[N];
    zarr_heap *heap = NULL;
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options o = {
        .struct_size = sizeof o, .stats = &stats, .tuning = TUNING(.pipeline = pipeline)};
    zarr_tensor t = host_tensor(got, whole);
    uint64_t sum = 0;

    assert_ok(zarr_heap_create(&heap, w.ctx, 0, &terr));
    o.heap = heap;
    assert_ok(zarr_array_read(a, NULL, &t, &o, &terr));
    for (size_t i = 0; i < N; i++) {
        same_item(&got[i], &items[i], i);
        sum += items[i].bytes;
    }
    assert_true(zarr_heap_bytes(heap) <= sum); /* fill values: stored once a chunk */
    assert_int_equal(stats.bytes_heap, zarr_heap_bytes(heap));
    zarr_heap_free(heap);
}

/* A part read with steps, into a strided tensor. */
static void read_part(zarr_array *a)
{
    const uint64_t at[] = {1, 2}, n[] = {5, 7};
    const uint64_t shape[] = {5, 7};
    const int64_t strides[] = {(int64_t)sizeof(zarr_vlen),
                               5 * (int64_t)sizeof(zarr_vlen)};
    zarr_vlen got[35];
    zarr_selection *sel = NULL;
    zarr_heap *heap = NULL;
    zarr_io_options o = {.struct_size = sizeof o};
    zarr_tensor t = host_tensor(got, shape);

    t.strides = (int64_t *)(uintptr_t)strides;
    assert_ok(zarr_selection_box(&sel, 2, zarr_array_shape(a), at, n, &terr));
    assert_ok(zarr_heap_create(&heap, w.ctx, 0, &terr));
    o.heap = heap;
    assert_ok(zarr_array_read(a, sel, &t, &o, &terr));
    for (size_t r = 0; r < 5; r++)
        for (size_t c = 0; c < 7; c++)
            same_item(&got[c * 5 + r], &items[(r + 1) * COLS + c + 2], r * 7 + c);
    zarr_heap_free(heap);
    zarr_selection_free(sel);
}

/* Changes a box in the array and in the mirror. */
static void write_part(zarr_array *a, const char *pipeline)
{
    const uint64_t at[] = {2, 3}, n[] = {3, 4};
    const uint64_t shape[] = {3, 4};
    zarr_vlen part[12];
    zarr_selection *sel = NULL;
    zarr_io_options o = {.struct_size = sizeof o, .tuning = TUNING(.pipeline = pipeline)};
    zarr_tensor t = host_tensor(part, shape);

    for (size_t i = 0; i < 12; i++) {
        part[i] = (zarr_vlen){.data = "changed elements", .bytes = i};
        items[(2 + i / 4) * COLS + 3 + i % 4] = part[i];
    }
    assert_ok(zarr_selection_box(&sel, 2, zarr_array_shape(a), at, n, &terr));
    assert_ok(zarr_array_write(a, sel, &t, &o, &terr));
    zarr_selection_free(sel);
}

static int bad_chunk(void *user, const zarr_verify_item *item)
{
    fail_msg("%s: %s", item->key, item->message);
    return *(int *)user;
}

static void every_way(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof documents / sizeof *documents; d++)
        for (size_t p = 0; p < 2; p++) {
            const zarr_io_options o = {.struct_size = sizeof o,
                                       .tuning = TUNING(.pipeline = pipelines[p])};
            zarr_tensor t = host_tensor(items, whole);
            zarr_array *a = NULL;
            int none = 0;

            open_world();
            make_items((unsigned)d);
            a = make_document("a", documents[d]);
            assert_ok(zarr_array_write(a, NULL, &t, &o, &terr));
            read_and_compare(a, pipelines[0]);
            read_and_compare(a, pipelines[1]);
            read_part(a);
            write_part(a, pipelines[p]);
            read_and_compare(a, pipelines[1 - p]);
            assert_ok(zarr_array_verify(a, bad_chunk, &none, NULL, &terr));
            zarr_array_free(a);
            world_close(&w);
        }
}

/* ---- fill values, empty chunks, resizing --------------------------------- */

static void fills(void **state)
{
    static const struct {
        const char *fill;
        uint64_t bytes;
    } want[] = {{"fi\xc3\xbcl", 5}, {"", 0}, {"", 0}, {"\0\xff\1", 3},
                {"f", 1},           {"", 0}, {"", 0}, {"", 0}};
    (void)state;
    for (size_t d = 0; d < sizeof documents / sizeof *documents; d++) {
        zarr_array *a = NULL;
        zarr_vlen fill = {.data = want[d].fill, .bytes = want[d].bytes};
        zarr_tensor t = host_tensor(items, whole);
        const uint64_t small[] = {5, 6}, large[] = {7, 10};
        int before = 0;

        open_world();
        a = make_document("a", documents[d]);
        for (size_t i = 0; i < N; i++)
            items[i] = fill;
        read_and_compare(a, NULL);
        before = n_keys(&w, "a");
        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        /* Compared by content, not by address. */
        assert_int_equal(n_keys(&w, "a"), before);
        make_items(3);
        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        assert_ok(zarr_array_resize(a, small, NULL, &terr));
        assert_ok(zarr_array_resize(a, large, NULL, &terr));
        for (size_t i = 0; i < N; i++)
            if (i / COLS >= 5 || i % COLS >= 6)
                items[i] = fill;
        read_and_compare(a, NULL);
        zarr_array_free(a);
        world_close(&w);
    }
}

/* ---- offsets and bytes --------------------------------------------------- */

static void columns(void **state)
{
    const uint64_t at[] = {1, 1}, n[] = {3, 5};
    const uint64_t offsets[] = {0, 1, 1, 4, 4, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16};
    const zarr_io_options at_once = {.struct_size = sizeof at_once,
                                     .flags = ZARR_IO_AT_ONCE}; /* it is ignored */
    zarr_vlen_column out = ZARR_VLEN_COLUMN_INIT, in = ZARR_VLEN_COLUMN_INIT;
    zarr_selection *sel = NULL;
    zarr_array *a = NULL;

    (void)state;
    open_world();
    a = make_document("a", documents[0]);
    assert_ok(zarr_selection_box(&sel, 2, zarr_array_shape(a), at, n, &terr));
    in.n = 15;
    in.offsets = offsets;
    in.bytes = (const uint8_t *)"xa\0b23456789012xyz";
    assert_ok(zarr_array_write_vlen(a, sel, &in, NULL, &terr));
    assert_ok(zarr_array_read_vlen(a, sel, &out, &at_once, &terr));
    assert_int_equal(out.n, 15);
    assert_memory_equal(out.offsets, offsets, sizeof offsets);
    assert_memory_equal(out.bytes, in.bytes, 16);
    zarr_vlen_column_free(&out);
    zarr_vlen_column_free(&out);
    assert_ok(zarr_array_read_vlen(a, NULL, &out, NULL, &terr));
    assert_int_equal(out.n, N);
    assert_int_equal(out.offsets[N], 16 + 5 * (N - 15));
    zarr_vlen_column_free(&out);

    in.n = 14;
    assert_status(zarr_array_write_vlen(a, sel, &in, NULL, &terr), ZARR_ERR_INVALID);
    in.n = 15;
    {
        uint64_t falling[16];

        memcpy(falling, offsets, sizeof falling);
        falling[3] = 0;
        in.offsets = falling;
        assert_status(zarr_array_write_vlen(a, sel, &in, NULL, &terr), ZARR_ERR_INVALID);
        assert_says("element 2");
    }
    {
        zarr_io_options o = {.struct_size = sizeof o};

        assert_ok(zarr_heap_create(&o.heap, w.ctx, 20, &terr));
        assert_status(zarr_array_read_vlen(a, NULL, &out, &o, &terr), ZARR_ERR_LIMIT);
        assert_null(out.owner);
        zarr_heap_free(o.heap);
    }
    zarr_selection_free(sel);
    zarr_array_free(a);
    a = make_array(&w, "plain", 3, 4, 4);
    assert_status(zarr_array_read_vlen(a, NULL, &out, NULL, &terr), ZARR_ERR_INVALID);
    assert_says("fixed length");
    zarr_array_free(a);
    world_close(&w);
}

/* Enough elements for several ranges, which threads gather: rows of several chunks, empty
 * elements, and elements of fill values, which share their bytes. */
static void many(void **state)
{
    enum {
        MANY_ROWS = 400,
        MANY_COLS = 501,
        MANY = MANY_ROWS * MANY_COLS
    };
    static const uint64_t shape[] = {MANY_ROWS, MANY_COLS}, chunk[] = {90, 167};
    static uint64_t offsets[MANY + 1];
    static uint8_t bytes[MANY * 13];
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .ndim = 2,
                            .shape = shape,
                            .chunk_shape = chunk,
                            .data_type = "string",
                            .fill_value = "\"filling\""};
    zarr_vlen_column in = ZARR_VLEN_COLUMN_INIT, out = ZARR_VLEN_COLUMN_INIT;
    zarr_array *a = NULL;

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        const size_t row = i / MANY_COLS, n = i * 7 % 13;

        if (row >= 180 && row < 270) { /* the chunks of these are not stored */
            memcpy(bytes + offsets[i], "filling", 7);
            offsets[i + 1] = offsets[i] + 7;
            continue;
        }
        for (size_t k = 0; k < n; k++)
            bytes[offsets[i] + k] = (uint8_t)('a' + (i + k) % 26);
        offsets[i + 1] = offsets[i] + n;
    }
    in.n = MANY;
    in.offsets = offsets;
    in.bytes = bytes;
    open_world();
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    assert_ok(zarr_array_write_vlen(a, NULL, &in, NULL, &terr));
    for (uint32_t threads = 0; threads < 5; threads++) {
        const zarr_io_options o = {.struct_size = sizeof o, .max_threads = threads};

        assert_ok(zarr_array_read_vlen(a, NULL, &out, &o, &terr));
        assert_int_equal(out.n, MANY);
        assert_memory_equal(out.offsets, offsets, sizeof offsets);
        assert_memory_equal(out.bytes, bytes, offsets[MANY]);
        zarr_vlen_column_free(&out);
    }
    zarr_array_free(a);
    world_close(&w);
}

/* ---- created from a specification ---- */

static void made_by_spec(void **state)
{
    static const char *const types[] = {"string", "bytes", "variable_length_bytes"};
    static const uint64_t shape[] = {ROWS, COLS}, chunk[] = {2, 5}, shard[] = {4, 10};

    (void)state;
    for (int kind = 0; kind < 9; kind++) {
        zarr_array_spec spec = {.struct_size = sizeof spec,
                                .zarr_format = kind / 3 == 2 ? 2 : 3,
                                .ndim = 2,
                                .shape = shape,
                                .chunk_shape = chunk,
                                .shard_shape = kind / 3 == 1 ? shard : NULL,
                                .data_type = types[kind % 3],
                                .order = kind % 2 ? 'F' : 'C'};
        zarr_tensor t = host_tensor(items, whole);
        zarr_array *a = NULL;

        open_world();
        make_items(9);
        if (zarr_array_create(&a, w.store, "a", &spec, NULL, &terr) != ZARR_OK)
            fail_msg("%d: %s", kind, terr.message);
        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        zarr_array_free(a);
        assert_ok(zarr_array_open(&a, w.store, "a", NULL, &terr));
        assert_true(zarr_dtype_variable(zarr_array_dtype(a)));
        read_and_compare(a, NULL);
        zarr_array_free(a);
        world_close(&w);
    }
}

/* ---- refusals ------------------------------------------------------------ */

static void refusals(void **state)
{
    static const struct {
        const char *filters, *says;
    } objects[] = {
        {"null", "no filter says"},
        {"[{\"id\":\"pickle\",\"protocol\":5}]", "run code from the file"},
        {"[{\"id\":\"nobody\"}]", "\"nobody\""},
    };
    zarr_tensor t = host_tensor(items, whole);
    zarr_array *a = NULL;
    zarr_vlen keep;

    (void)state;
    open_world();
    make_items(1);
    a = make_document("a", documents[0]);
    assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_says("heap");
    keep = items[3];
    items[3] = (zarr_vlen){.data = "\xff\xfe", .bytes = 2};
    assert_status(zarr_array_write(a, NULL, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_says("is not UTF-8");
    items[3] = (zarr_vlen){.data = NULL, .bytes = 2};
    assert_status(zarr_array_write(a, NULL, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_says("NULL");
    items[3] = (zarr_vlen){.data = "", .bytes = UINT64_C(1) << 40};
    assert_status(zarr_array_write(a, NULL, &t, NULL, &terr), ZARR_ERR_LIMIT);
    items[3] = keep;
    t.device_type = ZARR_DEVICE_CUDA_HOST;
    assert_true(zarr_array_write(a, NULL, &t, NULL, &terr) != ZARR_OK);
    zarr_array_free(a);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        char text[512];

        snprintf(text, sizeof text,
                 "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[4],\"dtype\":\"|O\","
                 "\"order\":\"C\",\"fill_value\":null,\"filters\":%s,"
                 "\"compressor\":null}",
                 objects[i].filters);
        put_text(&w, "o/.zarray", text);
        assert_status(zarr_array_open(&a, w.store, "o", NULL, &terr),
                      ZARR_ERR_UNSUPPORTED);
        assert_says(objects[i].says);
    }
    world_close(&w);
}

/* ---- malformed chunks ---- */

static void hostile(void **state)
{
    static const struct {
        const char *bytes;
        uint64_t n;
        const char *says;
    } lies[] = {
        {"", 0, "count alone"},
        {"\2\0\0", 3, "count alone"},
        {"\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, "3 elements"},
        {"\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 12, "4294967295 elements"},
        {"\2\0\0\0\1\0\0\0a", 9, "is missing"},
        {"\2\0\0\0\1\0\0\0a\1\0\0", 12, "is missing"},
        {"\2\0\0\0\1\0\0\0a\1\0\0\0", 13, "ends after"},
        {"\2\0\0\0\xff\xff\xff\xff", 8, "ends after"},
        {"\2\0\0\0\0\0\0\0\0\0\0\0x", 13, "after the last"},
        {"\2\0\0\0\1\0\0\0\xff\0\0\0\0", 13, "is not UTF-8"},
        {"\2\0\0\0\2\0\0\0\xc3\xbc\1\0\0\0\xc3", 15, "is not UTF-8"},
    };
    const char *document =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[2],\"data_type\":"
        "\"string\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":"
        "{\"chunk_shape\":[2]}},\"chunk_key_encoding\":{\"name\":\"default\"},"
        "\"fill_value\":\"\",\"codecs\":[\"vlen-utf8\"]}";
    zarr_vlen_column out = ZARR_VLEN_COLUMN_INIT;
    const uint64_t chunk[] = {0};
    zarr_array *a = NULL;

    (void)state;
    open_world();
    a = make_document("a", document);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        assert_ok(zarr_array_block_write_encoded(a, chunk, lies[i].bytes, lies[i].n, NULL,
                                                 &terr));
        assert_status(zarr_array_read_vlen(a, NULL, &out, NULL, &terr), ZARR_ERR_CORRUPT);
        assert_says(lies[i].says);
    }
    zarr_array_free(a);
    world_close(&w);
}

/* Each allocation fails in turn: the call returns an error and leaks nothing. */
static void allocations(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof documents / sizeof *documents; d++)
        for (int k = 1;; k++) {
            zarr_vlen_column out = ZARR_VLEN_COLUMN_INIT;
            zarr_tensor t = host_tensor(items, whole);
            zarr_array *a = NULL;
            zarr_status st;

            open_world();
            make_items(2);
            a = make_document("a", documents[d]);
            atomic_store(&w.fail_at, k);
            st = zarr_array_write(a, NULL, &t, NULL, &terr);
            if (st == ZARR_OK)
                st = zarr_array_read_vlen(a, NULL, &out, NULL, &terr);
            {
                const bool over = atomic_exchange(&w.fail_at, 0) > 0;

                if (st == ZARR_OK)
                    for (size_t i = 0; i < N; i++) {
                        const zarr_vlen got = {.data = out.bytes + out.offsets[i],
                                               .bytes =
                                                   out.offsets[i + 1] - out.offsets[i]};

                        same_item(&got, &items[i], i);
                    }
                else
                    assert_status(st, ZARR_ERR_NO_MEMORY);
                zarr_vlen_column_free(&out);
                zarr_array_free(a);
                world_close(&w);
                if (over)
                    break;
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way),    cmocka_unit_test(fills),
        cmocka_unit_test(columns),      cmocka_unit_test(many),
        cmocka_unit_test(made_by_spec), cmocka_unit_test(refusals),
        cmocka_unit_test(hostile),      cmocka_unit_test(allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
