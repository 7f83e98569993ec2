/*
 * unit/array/test_packed_tensor.c - packed tensors (ZARR_TENSOR_PACKED): every small
 * type, chunks that are packed and chunks that are not, boxes of whole bytes and others,
 * strides, requests that are submitted, appending, memory of a device. Compares with
 * elements that have a byte each, and counts whether chunks went straight into the
 * tensor.
 */
#include "array_test.h"
#include "fakedev/fakedev.h"

#include <zarrc/plugin/plugin.h>

#include <stdbool.h>

enum {
    ROWS = 6,
    COLS = 24,
    ELEMENTS = ROWS * COLS
};

#define PACKBITS "{\"name\":\"packbits\"}"
#define ZSTD     "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"
#define TURN     "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"

static const struct chain {
    const char *codecs;
    bool sharded, packed;
} chains[] = {
    {"[" PACKBITS "]", false, true},
    {"[" PACKBITS "," ZSTD "]", false, true},
    {"[" PACKBITS "]", true, true},
    {"[" PACKBITS "," ZSTD "]", true, true},
    {"[{\"name\":\"bytes\"}]", false, false},
    {"[" TURN "," PACKBITS "]", false, false},
    {"[{\"name\":\"packbits\",\"configuration\":{\"padding_encoding\":\"last_byte\"}}]",
     false, false},
};

static const struct {
    const char *name, *fill;
    uint32_t bits;
    bool sign;
} types[] = {
    {"int4", "-3", 4, true},          {"uint4", "5", 4, false},
    {"int2", "-1", 2, true},          {"uint2", "2", 2, false},
    {"float4_e2m1fn", "1", 4, false}, {"float6_e2m3fn", "1", 6, false},
    {"float6_e3m2fn", "0", 6, false},
};

static zarr_array *make(struct world *w, size_t type, const struct chain *c,
                        uint64_t cols)
{
    const uint64_t shape[2] = {ROWS, cols}, chunk[2] = {2, 8}, shard[2] = {4, 16};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *a = NULL;

    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk_shape = chunk;
    spec.shard_shape = c->sharded ? shard : NULL;
    spec.data_type = types[type].name;
    spec.fill_value = types[type].fill;
    spec.codecs = c->codecs;
    spec.flags = ZARR_SPEC_OVERWRITE;
    assert_ok(zarr_array_create(&a, w->store, "p", &spec, NULL, &terr));
    return a;
}

static uint8_t pattern(size_t type, uint64_t i)
{
    const uint32_t all = (1u << types[type].bits) - 1;
    uint32_t v = (uint32_t)((i * 7 + i / 5) & all);

    if (types[type].sign && v > all / 2)
        v |= ~all;
    return (uint8_t)(v & 0xFFu);
}

static uint32_t bits_at(const uint8_t *row, uint64_t i, uint32_t bits)
{
    uint32_t v = 0;

    for (uint32_t b = 0; b < bits; b++)
        v |= (uint32_t)(row[(i * bits + b) / 8] >> ((i * bits + b) % 8) & 1) << b;
    return v;
}

static void put_bits(uint8_t *row, uint64_t i, uint32_t bits, uint32_t v)
{
    for (uint32_t b = 0; b < bits; b++) {
        const uint64_t at = i * bits + b;

        row[at / 8] =
            (uint8_t)((row[at / 8] & ~(1u << (at % 8))) | (v >> b & 1) << (at % 8));
    }
}

/* A box of the array, as a packed tensor in `memory`. row_bytes 0: no strides. */
struct packed_box {
    uint64_t start[2], count[2];
    uint64_t shape[2];
    int64_t strides[2];
    zarr_selection *sel;
    zarr_tensor t;
};

static void box_open(struct packed_box *b, uint8_t *memory, size_t bytes, uint64_t cols,
                     const uint64_t *start, const uint64_t *count, int64_t row_bytes)
{
    const uint64_t whole[2] = {ROWS, cols};

    *b = (struct packed_box){.strides = {row_bytes, 1}};
    for (int d = 0; d < 2; d++) {
        b->start[d] = start[d];
        b->count[d] = count[d];
        b->shape[d] = count[d];
    }
    assert_ok(zarr_selection_box(&b->sel, 2, whole, start, count, &terr));
    zarr_tensor_host(&b->t, NULL, memory, bytes, 2, b->shape);
    b->t.flags = ZARR_TENSOR_PACKED;
    b->t.strides = row_bytes ? b->strides : NULL;
}

/* Whether the packed tensor has the pattern of the array there. */
static void assert_pattern(const struct packed_box *b, size_t type, uint64_t cols)
{
    const uint32_t bits = types[type].bits, mask = (1u << bits) - 1;
    const uint8_t *memory = b->t.data;

    for (uint64_t r = 0; r < b->count[0]; r++)
        for (uint64_t c = 0; c < b->count[1]; c++) {
            const uint8_t *row =
                b->t.strides ? memory + (int64_t)r * b->strides[0] : memory;
            const uint64_t at = b->t.strides ? c : r * b->count[1] + c;
            const uint64_t want = (b->start[0] + r) * cols + b->start[1] + c;

            if (bits_at(row, at, bits) != (pattern(type, want) & mask))
                fail_msg("%s, element %d, %d: %u, want %u", types[type].name, (int)r,
                         (int)c, bits_at(row, at, bits), pattern(type, want) & mask);
        }
}

static void fill_all(zarr_array *a, size_t type, uint64_t cols)
{
    uint8_t elements[ELEMENTS];
    const uint64_t shape[2] = {ROWS, (uint64_t)cols};
    zarr_tensor t = ZARR_TENSOR_INIT;

    for (uint64_t i = 0; i < ROWS * cols; i++)
        elements[i] = pattern(type, i);
    zarr_tensor_host(&t, NULL, elements, ROWS * cols, 2, shape);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
}

static const struct {
    uint64_t start[2], count[2];
    int64_t row_bytes;
    bool one_chunk;
} boxes[] = {
    {{0, 0}, {6, 24}, 0, false},  {{0, 0}, {6, 24}, 40, false},
    {{2, 8}, {2, 8}, 0, true},    {{1, 4}, {4, 16}, 0, false},
    {{1, 4}, {4, 16}, 21, false}, {{5, 20}, {1, 4}, 0, false},
    {{0, 1}, {6, 8}, 0, false},   {{0, 0}, {6, 7}, 0, false},
    {{0, 0}, {6, 7}, 9, false},   {{3, 5}, {2, 13}, 0, false},
    {{2, 0}, {0, 8}, 0, false},
};

/* Reads one box; as a request that is submitted, too. */
static void read_box(zarr_array *a, size_t type, const struct chain *c, size_t i)
{
    uint8_t memory[512];

    for (int submitted = 0; submitted < 2; submitted++) {
        struct packed_box b;
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;

        memset(memory, 0xA5, sizeof memory);
        o.stats = &stats;
        box_open(&b, memory, sizeof memory, COLS, boxes[i].start, boxes[i].count,
                 boxes[i].row_bytes);
        if (submitted) {
            zarr_request *rq = NULL;

            assert_ok(zarr_array_read_submit(&rq, a, b.sel, &b.t, &o, &terr));
            assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
            zarr_request_free(rq);
        } else {
            assert_ok(zarr_array_read(a, b.sel, &b.t, &o, &terr));
        }
        assert_pattern(&b, type, COLS);
        if (boxes[i].one_chunk) { /* nothing is between the store and the tensor */
            assert_int_equal(stats.chunks_done, 1);
            assert_int_equal(stats.elements, 16);
            if (c->packed)
                assert_int_equal(stats.chunks_direct, 1);
            if (c->packed) /* no element was unpacked */
                assert_int_equal(stats.bytes_decoded, 2 * types[type].bits);
        }
        if (b.t.strides && boxes[i].count[0] == 6) /* the gap between rows stays */
            assert_int_equal(memory[b.strides[0] - 1], 0xA5);
        zarr_selection_free(b.sel);
    }
}

static void read_every_chain(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (size_t type = 0; type < sizeof types / sizeof *types; type++)
        for (size_t c = 0; c < sizeof chains / sizeof *chains; c++) {
            zarr_array *a = make(&w, type, &chains[c], COLS);

            fill_all(a, type, COLS);
            for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++)
                read_box(a, type, &chains[c], i);
            zarr_array_free(a);
        }
    world_close(&w);
}

static void put_pattern(const struct packed_box *b, size_t type, uint64_t cols)
{
    for (uint64_t r = 0; r < b->count[0]; r++)
        for (uint64_t c = 0; c < b->count[1]; c++) {
            uint8_t *row =
                (uint8_t *)b->t.data + (b->t.strides ? (int64_t)r * b->strides[0] : 0);

            put_bits(row, b->t.strides ? c : r * b->count[1] + c, types[type].bits,
                     pattern(type, (b->start[0] + r) * cols + b->start[1] + c));
        }
}

/* Everything outside of the box is the fill value. */
static void assert_written(zarr_array *a, size_t type, const struct packed_box *b)
{
    const uint8_t fill = *(const uint8_t *)zarr_array_fill_value(a);
    const uint64_t shape[2] = {ROWS, COLS};
    uint8_t got[ELEMENTS];
    zarr_tensor t = ZARR_TENSOR_INIT;

    zarr_tensor_host(&t, NULL, got, sizeof got, 2, shape);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    for (uint64_t i = 0; i < ELEMENTS; i++) {
        const uint64_t r = i / COLS, c = i % COLS;
        const bool in = r >= b->start[0] && r < b->start[0] + b->count[0] &&
                        c >= b->start[1] && c < b->start[1] + b->count[1];

        if (got[i] != (in ? pattern(type, i) : fill))
            fail_msg("%s, element %d: %d", types[type].name, (int)i, got[i]);
    }
}

static void write_every_chain(void **state)
{
    struct world w;
    uint8_t memory[512];

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (size_t n = 0; n < sizeof types / sizeof *types * sizeof chains / sizeof *chains;
         n++)
        for (size_t i = 0; i < 2 * sizeof boxes / sizeof *boxes; i++) {
            const size_t type = n / (sizeof chains / sizeof *chains), box = i / 2;
            zarr_array *a =
                make(&w, type, &chains[n % (sizeof chains / sizeof *chains)], COLS);
            struct packed_box b;

            memset(memory, 0x5A, sizeof memory);
            box_open(&b, memory, sizeof memory, COLS, boxes[box].start, boxes[box].count,
                     boxes[box].row_bytes);
            put_pattern(&b, type, COLS);
            if (i % 2) {
                zarr_request *rq = NULL;

                assert_ok(zarr_array_write_submit(&rq, a, b.sel, &b.t, NULL, &terr));
                assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
                zarr_request_free(rq);
            } else {
                assert_ok(zarr_array_write(a, b.sel, &b.t, NULL, &terr));
            }
            assert_written(a, type, &b);
            zarr_selection_free(b.sel);
            zarr_array_free(a);
        }
    world_close(&w);
}

/* A last dimension that ends inside a byte: the detour, and aligned boxes go without. */
static void odd_shape(void **state)
{
    const uint64_t start[2] = {0, 0}, most[2] = {2, 8}, all[2] = {ROWS, 13};
    struct world w;
    uint8_t memory[512];

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (size_t type = 0; type < sizeof types / sizeof *types; type++) {
        zarr_array *a = make(&w, type, &chains[0], 13);
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        struct packed_box b;

        o.stats = &stats;
        fill_all(a, type, 13);
        for (int whole = 0; whole < 2; whole++) {
            box_open(&b, memory, sizeof memory, 13, start, whole ? all : most, 0);
            assert_ok(zarr_array_read(a, b.sel, &b.t, &o, &terr));
            assert_pattern(&b, type, 13);
            assert_true((stats.chunks_direct == stats.chunks_done) == !whole);
            assert_ok(zarr_array_write(a, b.sel, &b.t, NULL, &terr));
            memset(memory, 0, sizeof memory);
            assert_ok(zarr_array_read(a, b.sel, &b.t, NULL, &terr));
            assert_pattern(&b, type, 13);
            zarr_selection_free(b.sel);
        }
        zarr_array_free(a);
    }
    world_close(&w);
}

static void append_rows(void **state)
{
    const uint64_t shape[2] = {3, COLS};
    struct world w;
    uint8_t memory[512] = {0};

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (size_t c = 0; c < sizeof chains / sizeof *chains; c++) {
        zarr_array *a = make(&w, 0, &chains[c], COLS);
        struct packed_box b = {.start = {ROWS, 0}, .count = {3, COLS}};
        const uint64_t start[2] = {ROWS, 0}, count[2] = {3, COLS};
        uint64_t whole[2] = {ROWS + 3, COLS}, appended = 0;

        fill_all(a, 0, COLS);
        zarr_tensor_host(&b.t, NULL, memory, sizeof memory, 2, shape);
        b.t.flags = ZARR_TENSOR_PACKED;
        put_pattern(&b, 0, COLS);
        if (c % 2) {
            zarr_request *rq = NULL;

            assert_ok(zarr_array_append_submit(&rq, a, 0, &b.t, &appended, NULL, &terr));
            assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
            zarr_request_free(rq);
        } else {
            assert_ok(zarr_array_append(a, 0, &b.t, &appended, NULL, &terr));
        }
        assert_int_equal(appended, ROWS);
        memset(memory, 0, sizeof memory);
        assert_ok(zarr_selection_box(&b.sel, 2, whole, start, count, &terr));
        assert_ok(zarr_array_read(a, b.sel, &b.t, NULL, &terr));
        assert_pattern(&b, 0, COLS);
        zarr_selection_free(b.sel);
        zarr_array_free(a);
    }
    world_close(&w);
}

static void refuse_requests(void **state)
{
    const uint64_t start[2] = {0, 0}, count[2] = {ROWS, COLS};
    struct world w;
    uint8_t memory[512];

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (size_t c = 0; c < 5; c += 4) {
        zarr_array *a = make(&w, 0, &chains[c], COLS);
        struct packed_box b;

        box_open(&b, memory, sizeof memory, COLS, start, count, 12);
        b.strides[1] = 2;
        assert_status(zarr_array_read(a, b.sel, &b.t, NULL, &terr), ZARR_ERR_UNSUPPORTED);
        assert_says("must be 1");
        b.strides[1] = 1;
        b.strides[0] = 11; /* rows of a destination overlap */
        assert_status(zarr_array_read(a, b.sel, &b.t, NULL, &terr), ZARR_ERR_INVALID);
        b.strides[0] = 12;
        b.t.data_bytes = 71;
        assert_status(zarr_array_read(a, b.sel, &b.t, NULL, &terr), ZARR_ERR_INVALID);
        b.t.data_bytes = 72;
        assert_ok(zarr_array_read(a, b.sel, &b.t, NULL, &terr));
        b.t.data = NULL;
        assert_status(zarr_array_read(a, b.sel, &b.t, NULL, &terr), ZARR_ERR_INVALID);
        b.t.data = memory;
        b.shape[1] = 8;
        assert_status(zarr_array_read(a, b.sel, &b.t, NULL, &terr), ZARR_ERR_INVALID);
        b.t.ndim = 1;
        b.t.strides = NULL;
        assert_status(zarr_array_read(a, b.sel, &b.t, NULL, &terr), ZARR_ERR_INVALID);
        zarr_selection_free(b.sel);
        zarr_array_free(a);
    }
    world_close(&w);
}

/* Memory that the host cannot touch: every chain and box, read and written. */
static void devices(void **state)
{
    void *device = zarr_fakedev_create();
    zarr_memory mem = {0};
    struct world w;

    (void)state;
    world_begin(&w, WORLD_MEMORY);
    assert_ok(world_context(&w, &terr));
    assert_ok(zarr_context_register_memory(w.ctx, zarr_fakedev_vtable(), device, "tests",
                                           &terr));
    assert_ok(world_store(&w, WORLD_MEMORY, &terr));
    assert_ok(zarr_memory_alloc(&mem, w.ctx, ZARR_DEVICE_EXT, 0, 512, &terr));
    for (size_t n = 0; n < sizeof chains / sizeof *chains * sizeof boxes / sizeof *boxes;
         n++) {
        const size_t type = n % (sizeof types / sizeof *types);
        const size_t box = n % (sizeof boxes / sizeof *boxes);
        const struct chain *c = &chains[n / (sizeof boxes / sizeof *boxes)];
        const bool packed = c->packed && boxes[box].one_chunk;
        zarr_array *a = make(&w, type, c, COLS);
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options o = {.struct_size = sizeof o, .stats = &stats};
        zarr_fakedev_counters count = {0};
        uint8_t memory[512] = {0};
        struct packed_box b;

        box_open(&b, memory, sizeof memory, COLS, boxes[box].start, boxes[box].count,
                 boxes[box].row_bytes);
        put_pattern(&b, type, COLS);
        assert_int_equal(zarr_fakedev_poke(mem.handle, mem.offset, memory, 512), 0);
        b.t.device_type = ZARR_DEVICE_EXT;
        b.t.data = mem.handle;
        b.t.byte_offset = mem.offset;
        b.t.data_bytes = mem.offset + mem.bytes;
        assert_ok(zarr_array_write(a, b.sel, &b.t, &o, &terr));
        if (packed) /* no element has a byte of its own on the way */
            assert_int_equal(stats.bytes_down, 2 * types[type].bits);
        assert_written(a, type, &b);
        memset(memory, 0, sizeof memory);
        assert_int_equal(zarr_fakedev_poke(mem.handle, mem.offset, memory, 512), 0);
        assert_ok(zarr_array_read(a, b.sel, &b.t, &o, &terr));
        if (packed)
            assert_int_equal(stats.bytes_up, 2 * types[type].bits);
        assert_int_equal(zarr_fakedev_peek(mem.handle, mem.offset, memory, 512), 0);
        b.t.data = memory;
        assert_pattern(&b, type, COLS);
        zarr_fakedev_count(device, &count);
        assert_int_equal(count.faults, 0);
        zarr_selection_free(b.sel);
        zarr_array_free(a);
    }
    zarr_memory_free(w.ctx, &mem);
    world_close(&w);
}

/* The name of a data type counts as the type does, whether the request is one of bytes or
 * one of elements. */
static void named_types(void **state)
{
    const uint64_t start[2] = {0, 0}, counts[2][2] = {{ROWS, COLS}, {ROWS, COLS - 1}};
    static uint8_t memory[512];
    struct packed_box b;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (size_t c = 0; c < sizeof chains / sizeof *chains; c++) {
        zarr_array *a = make(&w, 0, &chains[c], COLS);

        for (int i = 0; i < 2; i++) {
            box_open(&b, memory, sizeof memory, COLS, start, counts[i], 0);
            b.t.data_type = "int4";
            assert_ok(zarr_array_write(a, b.sel, &b.t, NULL, &terr));
            assert_ok(zarr_array_read(a, b.sel, &b.t, NULL, &terr));
            b.t.data_type = "uint4";
            assert_status(zarr_array_write(a, b.sel, &b.t, NULL, &terr),
                          ZARR_ERR_INVALID);
            assert_status(zarr_array_read(a, b.sel, &b.t, NULL, &terr), ZARR_ERR_INVALID);
            zarr_selection_free(b.sel);
        }
        zarr_array_free(a);
    }
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_every_chain), cmocka_unit_test(write_every_chain),
        cmocka_unit_test(odd_shape),        cmocka_unit_test(append_rows),
        cmocka_unit_test(refuse_requests),  cmocka_unit_test(devices),
        cmocka_unit_test(named_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
