/*
 * test_shard_writer.c - shards that are written in parts: they have the same bytes as
 * those made in memory, for any data, and nothing changes before the last part.
 */
#include "fakedev/fakedev.h"
#include "unit/array/array_test.h"

#include "ctx/ctx.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    ROWS = 70, /* two shards of 48 and one that reaches beyond the shape */
    COLS = 52,
    SMALL = 16 << 10 /* bytes of memory: far less than a shard */
};

#define ZSTD   "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":true}}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define INDEX  "\"index_codecs\":[" LITTLE ",{\"name\":\"crc32c\"}]"
#define SHARD(chunk, codecs, at)                                                         \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" chunk           \
    ",\"codecs\":[" codecs "]," INDEX ",\"index_location\":\"" at "\"}}"

static const char *const chains[] = {
    "[" SHARD("[8,8]", LITTLE "," ZSTD, "end") "]",
    "[" SHARD("[8,8]", LITTLE "," ZSTD, "start") "]",
    "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," SHARD(
        "[8,16]", LITTLE, "end") "]",
    "[" SHARD("[16,16]", SHARD("[8,8]", LITTLE, "start"), "end") "]",
};

static zarr_array *make_typed(struct world *w, const char *path, const char *type,
                              const char *codecs)
{
    const uint64_t shape[2] = {ROWS, COLS}, shard[2] = {48, 48};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = shard,
                                  .data_type = type,
                                  .fill_value = "-1",
                                  .codecs = codecs};
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, w->store, path, &spec, NULL, &terr));
    return a;
}

static zarr_array *make(struct world *w, const char *path, const char *codecs)
{
    return make_typed(w, path, "int32", codecs);
}

/* A store with two equal arrays: b is written in parts and must get the objects of a. */
static void open_pair(struct world *w, zarr_array **a, zarr_array **b, const char *type,
                      const char *codecs)
{
    static int n;

    world_open(w, n++ % 2 ? WORLD_MEMORY : WORLD_LOCAL);
    *a = make_typed(w, "a", type, codecs);
    *b = make_typed(w, "b", type, codecs);
}

static void close_pair(struct world *w, zarr_array *a, zarr_array *b)
{
    zarr_array_free(a);
    zarr_array_free(b);
    world_close(w);
}

static void write_box(zarr_array *a, const uint64_t *start, const uint64_t *count,
                      int32_t first)
{
    const uint64_t shape[2] = {ROWS, COLS};
    uint64_t n[2] = {count[0], count[1]};
    static int32_t data[ROWS * COLS];
    zarr_selection *sel = NULL;
    zarr_tensor t;

    for (uint64_t i = 0; i < count[0] * count[1]; i++)
        data[i] = first < 0 ? first : first + (int32_t)i;
    zarr_tensor_host(&t, "int32", data, sizeof data, 2, n);
    assert_ok(zarr_selection_box(&sel, 2, shape, start, count, &terr));
    assert_ok(zarr_array_write(a, sel, &t, NULL, &terr));
    zarr_selection_free(sel);
}

static void objects_equal(struct world *w)
{
    static const char *const keys[] = {"c/0/0", "c/0/1", "c/1/0", "c/1/1"};

    for (size_t i = 0; i < 4; i++) {
        static unsigned char data[2][4 * ROWS * COLS];
        uint64_t bytes[2];
        zarr_status st[2];
        char key[16];

        for (int side = 0; side < 2; side++) {
            snprintf(key, sizeof key, "%s/%s", side ? "b" : "a", keys[i]);
            bytes[side] = sizeof data[side];
            st[side] =
                zarr_store_get(w->store, key, 0, data[side], &bytes[side], NULL, &terr);
        }
        assert_int_equal(st[0], st[1]);
        if (st[0] != ZARR_OK)
            continue;
        assert_int_equal(bytes[0], bytes[1]);
        assert_true(bytes[0] < sizeof data[0]);
        assert_memory_equal(data[0], data[1], bytes[0]);
    }
}

/* A context with less memory by default than a shard takes, on the store of a world. */
struct tight {
    zarr_context *ctx;
    zarr_store *store;
};

static void tight_open(struct tight *t, const struct world *w)
{
    const zarr_context_options o = {.struct_size = sizeof o, .memory_bytes = SMALL};
    const zarr_store_options patient = {.struct_size = sizeof patient,
                                        .lock_wait_ms = 20000};

    assert_ok(zarr_context_create(&t->ctx, &o, &terr));
    t->ctx->engine.memory_limit = 0;
    assert_ok(zarr_store_open(&t->store, t->ctx, w->dir, &patient, &terr));
}

static void tight_close(struct tight *t)
{
    zarr_store_free(t->store);
    zarr_context_free(t->ctx);
}

/* Boxes that cover shards wholly, in part, across borders, and with the fill value. */
static void same_bytes(void **state)
{
    static const uint64_t boxes[][4] = {
        {0, 0, ROWS, COLS}, {5, 7, 30, 40}, {0, 0, 48, 48}, {47, 47, 2, 2},
        {48, 0, 22, 52},    {0, 0, 8, 8},   {69, 51, 1, 1}, {0, 0, ROWS, COLS}};
    static const int32_t first[] = {1, 50000, 7, 9, 100000, -1, 5, -1};
    struct world w;

    (void)state;
    for (size_t c = 0; c < sizeof chains / sizeof chains[0]; c++) {
        zarr_array *a, *b = NULL;
        struct tight t;

        world_open(&w, WORLD_LOCAL);
        a = make(&w, "a", chains[c]);
        zarr_array_free(make(&w, "b", chains[c]));
        tight_open(&t, &w);
        assert_ok(zarr_array_open(&b, t.store, "b", NULL, &terr));
        for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
            write_box(a, boxes[i], boxes[i] + 2, first[i]);
            write_box(b, boxes[i], boxes[i] + 2, first[i]);
            objects_equal(&w);
        }
        zarr_array_free(a);
        zarr_array_free(b);
        tight_close(&t);
        world_close(&w);
    }
}

/* Writes all shards of b in boxes of at most `most` bytes, with the elements of a. */
static void copy_in_parts(zarr_array *a, zarr_array *b, uint64_t most)
{
    static int32_t data[ROWS * COLS];
    const uint64_t shape[2] = {ROWS, COLS};
    uint64_t shard[2], start[2], count[2];

    for (uint64_t i = 0; i < 4; i++) {
        zarr_shard_writer *w = NULL;

        shard[0] = i / 2;
        shard[1] = i % 2;
        assert_ok(zarr_shard_writer_open(&w, b, shard, NULL, &terr));
        while (zarr_shard_writer_next(w, most, start, count)) {
            uint64_t n[2] = {count[0], count[1]};
            zarr_selection *sel = NULL;
            zarr_tensor t;

            assert_true(count[0] * count[1] * 4 <= (most > 4096 ? most : 4096));
            zarr_tensor_host(&t, "int32", data, sizeof data, 2, n);
            assert_ok(zarr_selection_box(&sel, 2, shape, start, count, &terr));
            assert_ok(zarr_array_read(a, sel, &t, NULL, &terr));
            zarr_selection_free(sel);
            assert_int_equal(zarr_shard_writer_next(w, most, start, count), 0);
            assert_ok(zarr_shard_writer_write(w, &t, &terr));
        }
        zarr_shard_writer_free(w);
    }
}

static void in_boxes(void **state)
{
    static const uint64_t all[4] = {0, 0, ROWS, COLS};
    static const uint64_t most[] = {1, 1500, 5000, 1 << 20};
    struct world w;

    (void)state;
    for (size_t c = 0; c < sizeof chains / sizeof chains[0]; c++)
        for (size_t m = 0; m < sizeof most / sizeof most[0]; m++) {
            zarr_array *a, *b;

            open_pair(&w, &a, &b, "int32", chains[c]);
            write_box(a, all, all + 2, 1);
            copy_in_parts(a, b, most[m]);
            objects_equal(&w);
            write_box(a, all, all + 2, -1); /* the fill value: no objects */
            copy_in_parts(a, b, most[m]);
            objects_equal(&w);
            close_pair(&w, a, b);
        }
}

static void discard_writer(void **state)
{
    static const uint64_t all[4] = {0, 0, ROWS, COLS};
    const uint64_t shard[2] = {0, 0}, beyond[2] = {0, 2};
    static int32_t data[48 * 48];
    uint64_t start[2], count[2];
    zarr_shard_writer *writer = NULL;
    uint64_t n[2];
    zarr_tensor t;
    struct world w;
    zarr_array *a, *b;

    (void)state;
    open_pair(&w, &a, &b, "int32", chains[0]);
    write_box(a, all, all + 2, 1);
    write_box(b, all, all + 2, 1);
    assert_status(zarr_shard_writer_open(&writer, b, beyond, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_ok(zarr_shard_writer_open(&writer, b, shard, NULL, &terr));
    zarr_tensor_host(&t, "int32", data, sizeof data, 2, n);
    assert_status(zarr_shard_writer_write(writer, &t, &terr), ZARR_ERR_INVALID);
    assert_true(zarr_shard_writer_next(writer, 2000, start, count));
    n[0] = count[0];
    n[1] = count[1];
    zarr_tensor_host(&t, "int32", data, sizeof data, 2, n);
    assert_ok(zarr_shard_writer_write(writer, &t, &terr));
    zarr_shard_writer_free(writer);
    objects_equal(&w);
    close_pair(&w, a, b);
}

/* Packed elements, which other writes store as bytes, are those of the session's shard.
 */
static void write_packed(void **state)
{
    static const char codecs[] = "[" SHARD("[8,8]", "{\"name\":\"packbits\"}", "end") "]";
    const uint64_t shape[2] = {ROWS, COLS}, shard[2] = {0, 0};
    uint64_t start[2], count[2];
    static unsigned char data[ROWS * COLS];
    zarr_shard_writer *writer = NULL;
    struct world w;
    zarr_array *a, *b;

    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 37 + i / 7);
    open_pair(&w, &a, &b, "int4", codecs);
    assert_ok(zarr_shard_writer_open(&writer, b, shard, NULL, &terr));
    while (zarr_shard_writer_next(writer, 500, start, count)) {
        uint64_t n[2] = {count[0], count[1]};
        zarr_selection *sel = NULL;
        zarr_tensor t;

        zarr_tensor_host(&t, "int4", data, sizeof data, 2, n);
        t.flags = ZARR_TENSOR_PACKED;
        assert_ok(zarr_shard_writer_write(writer, &t, &terr));
        assert_ok(zarr_selection_box(&sel, 2, shape, start, count, &terr));
        assert_ok(zarr_array_write(a, sel, &t, NULL, &terr));
        zarr_selection_free(sel);
    }
    zarr_shard_writer_free(writer);
    objects_equal(&w);
    close_pair(&w, a, b);
}

static void refuse_boxes(void **state)
{
    const uint64_t shard[2] = {0, 0};
    zarr_shard_writer *writer = NULL;
    struct world w;

    (void)state;
    for (int i = 0; i < 2; i++) {
        zarr_array *a;

        world_open(&w, i ? WORLD_LOCAL : WORLD_MEMORY);
        a = make_array(&w, "a", 3, 8, 8); /* without shards */
        assert_status(zarr_shard_writer_open(&writer, a, shard, NULL, &terr),
                      ZARR_ERR_UNSUPPORTED);
        assert_null(writer);
        zarr_array_free(a);
        world_close(&w);
    }
}

/* A shard whose elements are all written replaces a damaged one, as an ordinary write
 * does; so does one that reaches beyond the array's shape. */
static void replace_damaged(void **state)
{
    static const uint64_t all[4] = {0, 0, ROWS, COLS};
    static const char *const keys[] = {"b/c/0/0", "b/c/1/1"};
    char bytes[600];
    struct world w;

    (void)state;
    memset(bytes, 0x11, sizeof bytes);
    for (size_t c = 0; c < sizeof chains / sizeof chains[0]; c++) {
        zarr_array *a, *b;

        open_pair(&w, &a, &b, "int32", chains[c]);
        write_box(a, all, all + 2, 1);
        for (size_t i = 0; i < 4; i++) /* too short for an index, or no index */
            assert_ok(zarr_store_put(w.store, keys[i / 2], bytes,
                                     i % 2 ? 5 : sizeof bytes, NULL, &terr));
        copy_in_parts(a, b, 1500);
        objects_equal(&w);
        close_pair(&w, a, b);
    }
}

/* The session looks at each tensor: elements in memory of a device are refused. */
static void in_device_memory(void **state)
{
    const uint64_t shard[2] = {0, 0};
    uint64_t start[2], count[2];
    void *device = zarr_fakedev_create();
    zarr_shard_writer *writer = NULL;
    zarr_memory mem = {0};
    zarr_array *a;
    zarr_tensor t;
    uint64_t n[2];
    struct world w;

    (void)state;
    world_begin(&w, WORLD_LOCAL);
    assert_ok(world_context(&w, &terr));
    assert_ok(zarr_context_register_memory(w.ctx, zarr_fakedev_vtable(), device, "tests",
                                           &terr));
    assert_ok(world_store(&w, WORLD_LOCAL, &terr));
    assert_ok(zarr_memory_alloc(&mem, w.ctx, ZARR_DEVICE_EXT, 0, 48 * 48 * 4, &terr));
    a = make(&w, "a", chains[0]);
    assert_ok(zarr_shard_writer_open(&writer, a, shard, NULL, &terr));
    assert_true(zarr_shard_writer_next(writer, 1 << 20, start, count));
    n[0] = count[0];
    n[1] = count[1];
    zarr_tensor_host(&t, "int32", mem.handle, 48 * 48 * 4, 2, n);
    t.device_type = ZARR_DEVICE_EXT;
    t.byte_offset = mem.offset;
    assert_status(zarr_shard_writer_write(writer, &t, &terr), ZARR_ERR_UNSUPPORTED);
    assert_says("a/c/0/0: a shard is written in parts from host memory");
    zarr_shard_writer_free(writer);
    zarr_array_free(a);
    zarr_memory_free(w.ctx, &mem);
    world_close(&w);
}

/* A limit of memory that the writer cannot keep is refused. */
static void refuse_low_limit(void **state)
{
    const uint64_t shard[2] = {0, 0};
    zarr_io_options o = {.struct_size = sizeof o, .tuning = TUNING(.memory_bytes = 1000)};
    zarr_shard_writer *writer = NULL;
    zarr_array *a;
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make(&w, "a", chains[3]);
    assert_status(zarr_shard_writer_open(&writer, a, shard, &o, &terr), ZARR_ERR_LIMIT);
    assert_says("/a: one shard needs ");
    o.tuning =
        TUNING(.memory_bytes = strtoull(strstr(terr.message, "needs ") + 6, NULL, 10));
    assert_ok(zarr_shard_writer_open(&writer, a, shard, &o, &terr));
    zarr_shard_writer_free(writer);
    zarr_array_free(a);
    world_close(&w);
}

/* ---- memory ---------------------------------------------------------------------- */

static void *write_one(void *arg)
{
    static const uint64_t box[4] = {0, 0, 2, 2};

    write_box(arg, box, box + 2, 7);
    return NULL;
}

/* Another writer of the shard has all memory and waits for the lock of the session. */
static void tight_memory(void **state)
{
    static const uint64_t all[4] = {0, 0, ROWS, COLS};
    const uint64_t shard[2] = {0, 0};
    static int32_t data[48 * 48];
    uint64_t start[2], count[2];
    zarr_shard_writer *writer = NULL;
    zarr_array *a = NULL;
    pthread_t other;
    struct tight t;
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    zarr_array_free(make(&w, "b", chains[0]));
    tight_open(&t, &w);
    assert_ok(zarr_array_open(&a, t.store, "b", NULL, &terr));
    write_box(a, all, all + 2, 1);
    assert_ok(zarr_shard_writer_open(&writer, a, shard, NULL, &terr));
    assert_int_equal(pthread_create(&other, NULL, write_one, a), 0);
    usleep(50000); /* enough time to wait for the lock */
    while (zarr_shard_writer_next(writer, 5000, start, count)) {
        uint64_t n[2] = {count[0], count[1]};
        zarr_tensor part;

        zarr_tensor_host(&part, "int32", data, sizeof data, 2, n);
        assert_ok(zarr_shard_writer_write(writer, &part, &terr));
    }
    zarr_shard_writer_free(writer);
    pthread_join(other, NULL);
    assert_int_equal(read_at(a, 1, 1), 10);
    assert_int_equal(read_at(a, 2, 2), 0);
    zarr_array_free(a);
    tight_close(&t);
    world_close(&w);
}

struct session {
    zarr_array *array;
    zarr_shard_writer *writer;
    zarr_status status;
    atomic_bool is_open;
};

static void *open_session(void *arg)
{
    const uint64_t shard[2] = {0, 0};
    struct session *x = arg;

    x->status = zarr_shard_writer_open(&x->writer, x->array, shard, NULL, NULL);
    atomic_store(&x->is_open, true);
    return NULL;
}

/* A session waits for memory before it takes the lock, and keeps it until it is freed. */
static void waits_for_memory(void **state)
{
    struct zr_budget_stats stats = {0};
    struct session x = {0};
    pthread_t opener;
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    x.array = make(&w, "b", chains[0]);
    zr_budget_stats_get(&w.ctx->budget, &stats);
    assert_ok(zr_budget_take(&w.ctx->budget, stats.total, UINT64_MAX, NULL, &terr));
    assert_int_equal(pthread_create(&opener, NULL, open_session, &x), 0);
    while (stats.n_waiting == 0 && !atomic_load(&x.is_open))
        zr_budget_stats_get(&w.ctx->budget, &stats);
    assert_int_equal(stats.n_waiting, 1);
    zr_budget_give(&w.ctx->budget, stats.total);
    pthread_join(opener, NULL);
    assert_ok(x.status);
    zr_budget_stats_get(&w.ctx->budget, &stats);
    assert_in_range(stats.now, 1, stats.total);
    zarr_shard_writer_free(x.writer);
    zr_budget_stats_get(&w.ctx->budget, &stats);
    assert_int_equal(stats.now, 0);
    zarr_array_free(x.array);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bytes),       cmocka_unit_test(in_boxes),
        cmocka_unit_test(discard_writer),   cmocka_unit_test(write_packed),
        cmocka_unit_test(refuse_boxes),     cmocka_unit_test(replace_damaged),
        cmocka_unit_test(tight_memory),     cmocka_unit_test(in_device_memory),
        cmocka_unit_test(refuse_low_limit), cmocka_unit_test(waits_for_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
