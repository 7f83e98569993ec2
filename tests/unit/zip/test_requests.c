/*
 * unit/zip/test_requests.c - arrays in archives in a store that merges reads: how few
 * requests and bytes they cost, and that compressed members, checks and memory of devices
 * work as they do alone.
 */
#include "zip_test.h"

#include "fakedev/fakedev.h"
#include "tuning.h"
#include "unit/merging_store.h"
#include <zarrc/plugin/plugin.h>
#include <zarrc/zarrc.h>

enum {
    SIDE = 18, /* chunks along a dimension */
    EDGE = 31, /* elements of a chunk along a dimension */
    N = SIDE * EDGE,
    N_CHUNKS = SIDE * SIDE,
    CHUNK_BYTES = EDGE * EDGE * 4,
    TAIL_BYTES = 65536 + 128 /* what the opening reads */
};
static const uint64_t shape[] = {N, N}, edge[] = {EDGE, EDGE};
static int32_t elements[N * N], got[N * N];

static struct zr_memory_registry memory;
static zarr_context *ctx;
static zarr_store *below, *merging, *zip;
static struct merging s;
static struct maker k;
static char names[MADE_MEMBERS][24];
static zarr_error err;
#define assert_ok(call)                                                                  \
    do {                                                                                 \
        if ((call) != ZARR_OK)                                                           \
            fail_msg("%s: %s", #call, err.message);                                      \
    } while (0)

/* ---- archives of arrays ---- */

struct members {
    zarr_store *from;
    uint16_t method; /* of the chunks */
    bool descriptor, local_extra;
    int n;
};

static int add_key(void *user, const zarr_store_item *item)
{
    struct members *m = user;
    static uint8_t value[1 << 19];
    uint64_t bytes = sizeof value;
    const bool is_chunk = strncmp(item->key, "c/", 2) == 0;

    assert_ok(zarr_store_get(m->from, item->key, 0, value, &bytes, NULL, &err));
    snprintf(names[k.n_members], sizeof names[0], "%s", item->key);
    make_member(&k, &(struct made_member){.name = names[k.n_members],
                                          .data = value,
                                          .bytes = (size_t)bytes,
                                          .method = is_chunk ? m->method : 0,
                                          .local_extra = m->local_extra ? 40 : 0,
                                          .descriptor = m->descriptor});
    m->n++;
    return 0;
}

/* Packs an array of all elements under the key "x.zip" of the store below. shards: eight
 * chunks along a dimension are a shard. */
static void pack(struct members *m, const char *codecs, bool shards)
{
    static const uint64_t shard[] = {8 * EDGE, 8 * EDGE};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = edge,
                                  .shard_shape = shards ? shard : NULL,
                                  .data_type = "int32",
                                  .codecs = codecs};
    zarr_array *a = NULL;
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, elements, sizeof elements, 2, shape);
    assert_ok(zarr_store_open(&m->from, ctx, "memory:", NULL, &err));
    assert_ok(zarr_array_create(&a, m->from, "", &spec, NULL, &err));
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &err));
    zarr_array_free(a);
    make_free(&k);
    assert_ok(zarr_store_list(m->from, "", ZARR_LIST_RECURSIVE, add_key, m, NULL, &err));
    make_end(&k, 0, "", 0, false);
    assert_ok(zarr_store_put(below, "x.zip", k.bytes, k.n, NULL, &err));
    zarr_store_free(m->from);
}

static zarr_array *open_packed(void)
{
    zarr_array *a = NULL;

    merging_reset(&s);
    assert_ok(zarr_store_open_zip(&zip, merging, "x.zip", NULL, &err));
    assert_ok(zarr_array_open(&a, zip, "", NULL, &err));
    return a;
}

static void close_packed(zarr_array *a)
{
    zarr_array_free(a);
    zarr_store_free(zip);
}

static zarr_status read_all(zarr_array *a)
{
    zarr_tensor t;

    memset(got, 0, sizeof got);
    zarr_tensor_host(&t, NULL, got, sizeof got, 2, shape);
    return zarr_array_read(a, NULL, &t, NULL, &err);
}

/* The chunk in the middle. */
static void read_one(zarr_array *a)
{
    const uint64_t at[] = {9 * EDGE, 9 * EDGE};
    zarr_selection *sel = NULL;
    zarr_tensor t;

    memset(got, 0, sizeof got);
    zarr_tensor_host(&t, NULL, got, sizeof got, 2, edge);
    assert_ok(zarr_selection_box(&sel, 2, shape, at, edge, &err));
    assert_ok(zarr_array_read(a, sel, &t, NULL, &err));
    zarr_selection_free(sel);
    for (size_t i = 0; i < EDGE; i++)
        assert_memory_equal(got + i * EDGE, elements + (9 * EDGE + i) * N + 9 * EDGE,
                            EDGE * sizeof *got);
}

/* ---- requests and bytes ---- */

static void test_few_requests(void **state)
{
    struct members m = {0};
    zarr_array *a;
    uint64_t directory;

    (void)state;
    pack(&m, "[\"bytes\"]", false);
    directory = k.n - k.directory_at;
    assert_int_equal(m.n, N_CHUNKS + 1);
    a = open_packed();
    read_one(a);
    assert_in_range(s.n_requests, 1, 3);
    assert_in_range(s.got_bytes, 1, 64000 + directory);
    close_packed(a);

    a = open_packed();
    assert_ok(read_all(a));
    assert_memory_equal(got, elements, sizeof got);
    assert_in_range(s.n_requests, 1, 5);
    assert_in_range(s.rounds, 1, 3);
    assert_in_range(s.got_bytes, 1, k.n * 106 / 100);
    assert_int_equal(s.most_ops, N_CHUNKS);
    close_packed(a);
}

/* Each row: how a member is stored. */
static void test_kinds_of_members(void **state)
{
    static const struct {
        struct members m;
        const char *codecs;
        int most; /* requests */
    } rows[] = {
        {{.method = 8}, "[\"bytes\"]", 5},
        {{.method = 93}, "[\"bytes\"]", 5},
        {{.descriptor = true}, "[\"bytes\"]", 5},
        {{.descriptor = true, .method = 8}, "[\"bytes\"]", 5},
        {{.local_extra = true}, "[\"bytes\"]", 5},
        {{.local_extra = true, .method = 8}, "[\"bytes\",\"crc32c\"]", 5},
        {{.method = 0}, "[\"bytes\",\"zstd\"]", 5},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        struct members m = rows[i].m;
        zarr_array *a;

        pack(&m, rows[i].codecs, false);
        a = open_packed();
        assert_ok(read_all(a));
        assert_memory_equal(got, elements, sizeof got);
        if (s.n_requests > rows[i].most)
            fail_msg("row %zu: %d requests", i, s.n_requests);
        close_packed(a);
    }
}

/* Shards in an archive: all indexes are one round, and so are all chunks. The library
 * passes on chunks that are not adjacent one by one. */
static void test_shards(void **state)
{
    struct members m = {0};
    zarr_array *a;
    zarr_selection *sel = NULL;
    const uint64_t n[] = {(N + 61) / 62, (N + 61) / 62};
    zarr_tensor t;

    (void)state;
    for (int i = 0; i < 3; i++) {
        m = (struct members){.descriptor = i == 1, .method = i == 2 ? 8 : 0};
        pack(&m, "[\"bytes\"]", true);
        assert_int_equal(m.n, 9 + 1);
        a = open_packed();
        assert_ok(read_all(a));
        assert_memory_equal(got, elements, sizeof got);
        if (i < 2) { /* the indexes are too far from each other to share a request */
            assert_in_range(s.n_requests, 1, 16);
            assert_in_range(s.rounds, 1, 5);
        }
        assert_in_range(s.got_bytes, 1, sizeof elements * 140 / 100);
        close_packed(a);
    }
    m = (struct members){0};
    pack(&m, "[\"bytes\"]", true);
    a = open_packed();
    assert_ok(zarr_selection_parse(&sel, 2, shape, "::62, ::62", &err));
    memset(got, 0, sizeof got);
    zarr_tensor_host(&t, NULL, got, sizeof got, 2, n);
    assert_ok(zarr_array_read(a, sel, &t, NULL, &err));
    zarr_selection_free(sel);
    for (size_t i = 0; i < n[0] * n[1]; i++)
        assert_int_equal(got[i], elements[i / n[1] * 62 * N + i % n[1] * 62]);
    assert_int_equal(s.most_ops, n[0] * n[1]); /* every second chunk */
    assert_int_equal(s.rounds, 4);
    assert_in_range(s.n_requests, 1, 2 + 9 + 36); /* those of a row are merged */
    assert_in_range(s.got_bytes, 1,
                    TAIL_BYTES + 2 * 81 * CHUNK_BYTES + 65536 * (uint64_t)s.n_requests);
    close_packed(a);
}

/* A sharded array without an archive: the plan leaves gaps to the store. */
static void test_shards_alone(void **state)
{
    const uint64_t n[] = {9, 9};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = edge,
                                  .shard_shape = shape,
                                  .data_type = "int32",
                                  .codecs = "[\"bytes\"]"};
    static const struct {
        uint64_t gap;
        int ops;
    } rows[] = {{0, 81}, {1, 81}, {1 << 20, 1}};
    zarr_selection *sel = NULL;
    zarr_array *a = NULL;
    zarr_tensor t;

    (void)state;
    zarr_tensor_host(&t, NULL, elements, sizeof elements, 2, shape);
    assert_ok(zarr_array_create(&a, below, "a", &spec, NULL, &err));
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &err));
    zarr_array_free(a);
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        const zarr_io_options o = {.struct_size = sizeof o,
                                   .tuning = TUNING(.coalesce_gap = rows[i].gap)};

        assert_ok(zarr_array_open(&a, merging, "a", NULL, &err));
        assert_ok(zarr_selection_parse(&sel, 2, shape, "5::62, 7::62", &err));
        merging_reset(&s);
        zarr_tensor_host(&t, NULL, got, sizeof got, 2, n);
        assert_ok(zarr_array_read(a, sel, &t, &o, &err));
        for (size_t c = 0; c < 81; c++)
            assert_int_equal(got[c], elements[(c / 9 * 62 + 5) * N + c % 9 * 62 + 7]);
        assert_int_equal(s.most_ops, rows[i].ops);
        assert_int_equal(s.rounds, 2);           /* the index, and the chunks */
        assert_in_range(s.n_requests, 2, 1 + 9); /* those of a row are merged */
        zarr_selection_free(sel);
        zarr_array_free(a);
    }
}

/* ---- failures ---- */

static size_t chunk_at(size_t i) /* the data of chunk member i */
{
    size_t n = 0;

    for (size_t j = 0; j < k.n_members; j++)
        if (strncmp(k.member[j].m.name, "c/", 2) == 0 && n++ == i)
            return k.member[j].data_at;
    fail();
    return 0;
}

static void test_damage(void **state)
{
    static const uint16_t methods[] = {0, 8, 93};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(methods); i++) {
        struct members m = {.method = methods[i]};
        zarr_array *a;

        pack(&m, "[\"bytes\"]", false);
        k.bytes[chunk_at(100) + 300] ^= 0x40;
        assert_ok(zarr_store_put(below, "x.zip", k.bytes, k.n, NULL, &err));
        a = open_packed();
        assert_status(read_all(a), ZARR_ERR_CORRUPT);
        assert_non_null(strstr(err.message, "member of x.zip"));
        read_one(a); /* another chunk */
        close_packed(a);
    }
}

static void test_failed_request(void **state)
{
    struct members m = {0};
    zarr_array *a;

    (void)state;
    pack(&m, "[\"bytes\"]", false);
    a = open_packed();
    s.fail_at = s.n_requests + 1;
    assert_ok(read_all(a)); /* each worker reads its chunk again */
    assert_memory_equal(got, elements, sizeof got);
    close_packed(a);
}

static void test_changed_archive(void **state)
{
    struct members m = {0};
    zarr_array *a;

    (void)state;
    pack(&m, "[\"bytes\"]", false);
    a = open_packed();
    assert_ok(
        zarr_store_put(below, "x.zip", k.bytes, k.n, NULL, &err)); /* a new version */
    assert_status(read_all(a), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "the archive changed after it was opened"));
    close_packed(a);
}

static void on_done(void *arg, zarr_store_op *op, const zarr_error *why)
{
    assert_true((op->status == ZARR_OK) == (why == NULL));
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* Operations of every kind in one call, and each has its own result. */
static void test_one_submit(void **state)
{
    enum {
        N_OPS = 8,
        ROOM = 8192
    };
    static uint8_t mem[N_OPS][ROOM];
    static const struct {
        const char *key;
        uint32_t verb;
        uint64_t offset, length;
        zarr_status status;
        uint64_t done, object;
    } rows[N_OPS] = {
        {"c/0/0", ZARR_STORE_GET, 0, ZARR_STORE_TO_END, ZARR_OK, CHUNK_BYTES,
         CHUNK_BYTES},
        {"c/0/1", ZARR_STORE_GET, ZARR_STORE_SUFFIX, 16, ZARR_OK, 16, CHUNK_BYTES},
        {"c/0/2", ZARR_STORE_GET, CHUNK_BYTES - 5, 16, ZARR_OK, 5, CHUNK_BYTES},
        {"c/0/2", ZARR_STORE_GET, CHUNK_BYTES + 5, 16, ZARR_OK, 0, CHUNK_BYTES},
        {"c/0/99", ZARR_STORE_GET, 0, 16, ZARR_ERR_NOT_FOUND, 0, UINT64_MAX},
        {"c/0/3", ZARR_STORE_STAT, 0, 0, ZARR_OK, 0, CHUNK_BYTES},
        {"c/0/3", ZARR_STORE_GET, 0, 0, ZARR_OK, 0, CHUNK_BYTES},
        {"c/0/3", ZARR_STORE_GET, 100, 16, ZARR_OK, 16, CHUNK_BYTES},
    };
    static const struct members kinds[] = {
        {.method = 0}, {.method = 8}, {.descriptor = true}};

    (void)state;
    for (size_t c = 0; c < ZR_COUNT(kinds); c++) {
        struct members m = kinds[c];
        zarr_store_op op[N_OPS], *ops[N_OPS];
        atomic_int n_done = 0;

        pack(&m, "[\"bytes\"]", false);
        close_packed(open_packed());
        assert_ok(zarr_store_open_zip(&zip, merging, "x.zip", NULL, &err));
        for (size_t i = 0; i < N_OPS; i++) {
            ops[i] = &op[i];
            op[i] = (zarr_store_op){.verb = rows[i].verb,
                                    .key = rows[i].key,
                                    .offset = rows[i].offset,
                                    .length = rows[i].length,
                                    .mem = zr_mem_of_host(mem[i], ROOM)};
        }
        zarr_store_submit(zip, ops, N_OPS, on_done, &n_done);
        assert_int_equal(n_done, N_OPS); /* zip waits */
        for (size_t i = 0; i < N_OPS; i++) {
            assert_status(op[i].status, rows[i].status);
            assert_int_equal(op[i].done_bytes, rows[i].done);
            assert_int_equal(op[i].object_bytes, rows[i].object);
        }
        for (size_t i = 0; i < 16 / 4; i++)
            assert_memory_equal(mem[7] + 4 * i, &elements[3 * EDGE + 25 + i], 4);
        zarr_store_free(zip);
    }
}

static void never_run(void *self, zarr_store_op *op, zarr_error *why)
{
    (void)self;
    (void)op;
    (void)why;
    fail();
}

/* The capability is one of submit(). */
static void test_no_submit(void **state)
{
    zarr_store_vtable vt = merging_vtable;
    zarr_store *store = NULL;

    (void)state;
    vt.submit = NULL;
    vt.run = never_run;
    assert_status(zarr_store_open_custom(&store, ctx, &vt, &s, NULL, &err),
                  ZARR_ERR_INVALID);
    assert_non_null(strstr(err.message, "says COALESCES but has no submit"));
}

static void test_cancel(void **state)
{
    struct members m = {0};
    zarr_cancel *cancel = NULL;
    uint8_t mem[16];
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .key = "c/0/0",
                        .length = 16,
                        .mem = zr_mem_of_host(mem, sizeof mem)};
    zarr_store_op *ops[] = {&op};
    atomic_int n_done = 0;

    (void)state;
    pack(&m, "[\"bytes\"]", false);
    assert_ok(zarr_cancel_create(&cancel, &err));
    assert_ok(zarr_store_open_zip(&zip, merging, "x.zip", NULL, &err));
    zarr_cancel_set(cancel);
    op.cancel = cancel;
    zarr_store_submit(zip, ops, 1, on_done, &n_done);
    assert_int_equal(n_done, 1);
    assert_status(op.status, ZARR_ERR_CANCELLED);
    op.flags = UINT32_C(0x80000000);
    zarr_store_submit(zip, ops, 1, on_done, &n_done);
    assert_status(op.status, ZARR_ERR_INVALID);
    zarr_store_free(zip);
    zarr_cancel_free(cancel);
}

/* ---- memory of devices ---- */

static void test_device(void **state)
{
    static const struct members kinds[] = {{.method = 0}, {.method = 8}};
    static const char *const codecs[] = {"[\"bytes\"]", "[\"bytes\",\"zstd\"]"};
    zarr_memory mem = {0};
    zarr_tensor t;

    (void)state;
    assert_ok(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_EXT, 0, sizeof elements, &err));
    for (size_t i = 0; i < 4; i++) {
        struct members m = kinds[i % 2];
        zarr_array *a;

        pack(&m, codecs[i / 2], false);
        a = open_packed();
        memset(got, 0, sizeof got);
        assert_int_equal(zarr_fakedev_poke(mem.handle, mem.offset, got, sizeof got), 0);
        zarr_tensor_host(&t, NULL, mem.handle, mem.offset + mem.bytes, 2, shape);
        t.device_type = ZARR_DEVICE_EXT;
        t.byte_offset = mem.offset;
        assert_ok(zarr_array_read(a, NULL, &t, NULL, &err));
        assert_int_equal(zarr_fakedev_peek(mem.handle, mem.offset, got, sizeof got), 0);
        assert_memory_equal(got, elements, sizeof got);
        assert_in_range(s.n_requests, 1, 5);
        close_packed(a);
    }
    zarr_memory_free(ctx, &mem);
}

/* Memory that the host reaches under another name is read into directly, and checked. */
static void test_pinned(void **state)
{
    struct members m = {0};
    zarr_memory mem = {0};
    zarr_store_op op = {
        .verb = ZARR_STORE_GET, .key = "c/0/0", .length = ZARR_STORE_TO_END};
    zarr_store_op *ops[] = {&op};
    atomic_int n_done = 0;

    (void)state;
    pack(&m, "[\"bytes\"]", false);
    assert_ok(zarr_store_open_zip(&zip, merging, "x.zip", NULL, &err));
    assert_ok(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA_HOST, 0, CHUNK_BYTES, &err));
    op.mem = mem;
    op.mem.bytes = CHUNK_BYTES;
    zarr_store_submit(zip, ops, 1, on_done, &n_done);
    assert_int_equal(n_done, 1);
    assert_status(op.status, ZARR_OK);
    assert_int_equal(op.up_bytes + op.down_bytes, 0);
    assert_memory_equal((uint8_t *)mem.handle + mem.offset, elements, EDGE * 4);
    zarr_memory_free(ctx, &mem);
    zarr_store_free(zip);
}

/* ---- */

static int setup(void **state)
{
    const zarr_context_options o = {.struct_size = sizeof o, .max_threads = 2};
    const zarr_memory_vtable *pinned = zarr_fakedev_vtable_near(ZARR_DEVICE_CUDA_HOST);

    (void)state;
    for (size_t i = 0; i < N * N; i++)
        elements[i] = (int32_t)((i * UINT64_C(2654435761)) >> 8) | 1;
    assert_ok(zarr_context_create(&ctx, &o, &err));
    assert_ok(zarr_context_register_memory(ctx, zarr_fakedev_vtable(),
                                           zarr_fakedev_create(), "tests", &err));
    assert_ok(zarr_context_register_memory(ctx, pinned, (void *)(uintptr_t)pinned,
                                           "tests", &err));
    assert_ok(zr_memory_registry_init(&memory, NULL, &err));
    assert_ok(zarr_store_open(&below, ctx, "memory:", NULL, &err));
    s = (struct merging){
        .below = below, .memory = &memory, .caps = ZARR_STORE_CAP_VERSIONS};
    zr_estimate_add(&s.estimate, 30000000, 100000000, 4 << 20);
    assert_ok(zarr_store_open_custom(&merging, ctx, &merging_vtable, &s, NULL, &err));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    make_free(&k);
    zarr_store_free(merging);
    zarr_store_free(below);
    zr_memory_registry_deinit(&memory);
    zarr_context_free(ctx);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_requests),    cmocka_unit_test(test_kinds_of_members),
        cmocka_unit_test(test_shards),          cmocka_unit_test(test_shards_alone),
        cmocka_unit_test(test_damage),          cmocka_unit_test(test_failed_request),
        cmocka_unit_test(test_changed_archive), cmocka_unit_test(test_one_submit),
        cmocka_unit_test(test_cancel),          cmocka_unit_test(test_device),
        cmocka_unit_test(test_pinned),          cmocka_unit_test(test_no_submit),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
