/*
 * unit/pipe/test_default_memory.c - tensors that name no memory are in that of the call,
 * the array, the store or the context, in this order. Metadata and elements of variable
 * length stay in host memory. The device is the guarded one of tests/fakedev.
 */
#include "unit/pipe/pipe_test.h"

#include "fakedev/fakedev.h"

enum {
    N = 16,
    FAR = ZARR_DEVICE_EXT
};
static const uint64_t extent[1] = {N};
static const uint64_t length[1] = {N}, four[1] = {4};

struct far_world {
    zarr_context *ctx;
    void *device;
    int32_t data[N], got[N];
};

static void far_open(struct far_world *w, int32_t device_type, int32_t device_id)
{
    const zarr_context_options o = {
        .struct_size = sizeof o, .device_type = device_type, .device_id = device_id};

    assert_ok(zarr_context_create(&w->ctx, &o, &terr));
    w->device = zarr_fakedev_create();
    assert_ok(zarr_context_register_memory(w->ctx, zarr_fakedev_vtable(), w->device,
                                           "test", &terr));
    for (int i = 0; i < N; i++) {
        w->data[i] = i * i + 1;
        w->got[i] = 0;
    }
}

static void far_close(struct far_world *w)
{
    zarr_fakedev_counters n;

    zarr_context_trim(w->ctx);
    zarr_fakedev_count(w->device, &n);
    assert_int_equal(n.live_blocks, 0);
    assert_int_equal(n.faults, 0);
    zarr_context_free(w->ctx); /* frees the device, too */
}

static zarr_store *far_store(struct far_world *w, int32_t values, int32_t tensors,
                             int32_t tensor_id)
{
    const zarr_store_options o = {.struct_size = sizeof o,
                                  .device_type = values,
                                  .tensor_device_type = tensors,
                                  .tensor_device_id = tensor_id};
    zarr_store *s = NULL;

    assert_ok(zarr_store_open(&s, w->ctx, "memory:", &o, &terr));
    return s;
}

static zarr_array *far_array(zarr_store *s, const char *type, int32_t device,
                             zarr_store *chunks)
{
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .flags = ZARR_SPEC_OVERWRITE,
                                  .ndim = 1,
                                  .shape = length,
                                  .chunk_shape = four,
                                  .data_type = type};
    const zarr_array_open_options o = {
        .struct_size = sizeof o, .device_type = device, .chunk_store = chunks};
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, s, "a", &spec, &o, &terr));
    return a;
}

static void memory_is(zarr_array *a, int32_t type, int32_t id)
{
    zarr_explanation *e = NULL;
    int32_t has_type = -1, has_id = -1;

    zarr_array_memory(a, &has_type, &has_id);
    assert_int_equal(has_type, type);
    assert_int_equal(has_id, id);
    assert_ok(zarr_array_explain(&e, a, ZARR_EXPLAIN_READ, NULL, NULL, NULL, &terr));
    assert_int_equal(e->device_type, type);
    zarr_explanation_free(e);
}

/* A write and a read with tensors that name no memory: it is that of `type`. */
static void round_trip(struct far_world *w, zarr_array *a, int32_t type)
{
    const zarr_memory host = {
        .device_type = ZARR_DEVICE_CPU, .handle = w->data, .bytes = sizeof w->data};
    const zarr_memory back = {
        .device_type = ZARR_DEVICE_CPU, .handle = w->got, .bytes = sizeof w->got};
    zarr_tensor t = ZARR_TENSOR_INIT;
    zarr_memory mem;

    assert_ok(zarr_memory_alloc(&mem, w->ctx, type, 0, sizeof w->data, &terr));
    assert_ok(zarr_memory_copy(w->ctx, &mem, &host, sizeof w->data, &terr));
    t.ndim = 1;
    t.shape = extent;
    t.data = mem.handle;
    t.byte_offset = mem.offset;
    t.data_bytes = mem.offset + mem.bytes;
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    memset(w->got, 0, sizeof w->got);
    assert_ok(zarr_memory_copy(w->ctx, &mem, &back, sizeof w->got, &terr));
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    assert_ok(zarr_memory_copy(w->ctx, &back, &mem, sizeof w->got, &terr));
    assert_memory_equal(w->got, w->data, sizeof w->data);
    /* a call that names its memory needs no default */
    memset(w->got, 0, sizeof w->got);
    zarr_tensor_host(&t, NULL, w->got, sizeof w->got, 1, extent);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    assert_memory_equal(w->got, w->data, sizeof w->data);
    zarr_memory_free(w->ctx, &mem);
}

/* Each row: what context, store and array say, and what counts. */
static void test_order(void **state)
{
    static const struct {
        int32_t context, store, array, counts;
    } rows[] = {{0, 0, 0, ZARR_DEVICE_CPU},
                {FAR, 0, 0, FAR},
                {FAR, ZARR_DEVICE_CPU, 0, ZARR_DEVICE_CPU},
                {0, FAR, 0, FAR},
                {ZARR_DEVICE_CPU, FAR, 0, FAR},
                {FAR, FAR, ZARR_DEVICE_CPU, ZARR_DEVICE_CPU},
                {0, ZARR_DEVICE_CPU, FAR, FAR},
                {0, 0, FAR, FAR}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct far_world w;
        zarr_store *s;
        zarr_array *a;

        far_open(&w, rows[i].context, 0);
        s = far_store(&w, 0, rows[i].store, 0);
        a = far_array(s, "int32", rows[i].array, NULL);
        memory_is(a, rows[i].counts, 0);
        round_trip(&w, a, rows[i].counts);
        zarr_array_free(a);
        zarr_store_free(s);
        far_close(&w);
    }
}

/* "Everything to one device" is one setting, also of the environment. */
static void test_environment(void **state)
{
    struct far_world w;
    zarr_store *s;
    zarr_array *a;

    (void)state;
    setenv("ZARRC_MEMORY", "ext:0", 1);
    far_open(&w, 0, 0);
    s = far_store(&w, 0, 0, 0);
    a = far_array(s, "int32", 0, NULL);
    round_trip(&w, a, FAR);
    zarr_array_free(a);
    zarr_store_free(s);
    far_close(&w);
    far_open(&w, ZARR_DEVICE_CPU, 0); /* the code overrides it */
    s = far_store(&w, 0, 0, 0);
    a = far_array(s, "int32", 0, NULL);
    memory_is(a, ZARR_DEVICE_CPU, 0);
    zarr_array_free(a);
    zarr_store_free(s);
    far_close(&w);
    unsetenv("ZARRC_MEMORY");
}

/* The default is that of the store of the chunks, also in a composite store; another
 * handle keeps it. */
static void test_stores(void **state)
{
    const zarr_store_options near_options = {.struct_size = sizeof near_options,
                                             .tensor_device_type = ZARR_DEVICE_CPU};
    zarr_array_open_options host = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    struct far_world w;
    zarr_store *docs, *chunks, *both = NULL;
    zarr_array *a, *b = NULL;

    (void)state;
    far_open(&w, 0, 0);
    docs = far_store(&w, 0, 0, 0);
    chunks = far_store(&w, 0, FAR, 7);
    a = far_array(docs, "int32", 0, chunks);
    memory_is(a, FAR, 7);
    assert_ok(zarr_array_with(&b, a, NULL, &terr));
    memory_is(b, FAR, 7);
    zarr_array_free(b);
    host.device_type = ZARR_DEVICE_CPU;
    assert_ok(zarr_array_with(&b, a, &host, &terr));
    memory_is(b, ZARR_DEVICE_CPU, 0);
    zarr_array_free(b);
    zarr_array_free(a);
    assert_ok(zarr_store_erase_prefix(chunks, "", NULL, &terr));
    assert_ok(zarr_store_open_composite(&both, docs, chunks, NULL, &terr));
    a = far_array(both, "int32", 0, NULL);
    memory_is(a, FAR, 7);
    zarr_array_free(a);
    zarr_store_free(both);
    assert_ok(zarr_store_open_composite(&both, docs, chunks, &near_options, &terr));
    a = far_array(both, "int32", 0, NULL);
    memory_is(a, ZARR_DEVICE_CPU, 0); /* its own default comes first */
    zarr_array_free(a);
    zarr_store_free(both);
    zarr_store_free(docs);
    zarr_store_free(chunks);
    far_close(&w);
}

/* Text is in host memory by default, but not if the array says otherwise. */
static void test_text(void **state)
{
    struct far_world w;
    zarr_store *s;
    zarr_array *a;
    zarr_heap *heap = NULL;
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_vlen items[N] = {{0}};
    zarr_tensor t = ZARR_TENSOR_INIT;

    (void)state;
    far_open(&w, FAR, 0);
    s = far_store(&w, 0, FAR, 0);
    a = far_array(s, "string", 0, NULL);
    memory_is(a, ZARR_DEVICE_CPU, 0);
    items[3] = (zarr_vlen){"abc", 3};
    t.ndim = 1;
    t.shape = extent;
    t.data = items;
    t.data_bytes = sizeof items;
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    assert_ok(zarr_heap_create(&heap, w.ctx, 0, &terr));
    o.heap = heap;
    items[3] = (zarr_vlen){0};
    assert_ok(zarr_array_read(a, NULL, &t, &o, &terr));
    assert_int_equal(items[3].bytes, 3);
    zarr_heap_free(heap);
    zarr_array_free(a);
    a = far_array(s, "string", FAR, NULL);
    assert_status(zarr_array_write(a, NULL, &t, NULL, &terr), ZARR_ERR_UNSUPPORTED);
    zarr_array_free(a);
    zarr_store_free(s);
    far_close(&w);
}

/* A store of a device has chunks there, but no document. */
static void test_metadata(void **state)
{
    zarr_fakedev_counters n;
    struct far_world w;
    zarr_store *s;
    zarr_array *a;
    zarr_group *g = NULL;
    char text[40];
    uint64_t bytes = sizeof text;

    (void)state;
    far_open(&w, FAR, 0);
    s = far_store(&w, FAR, 0, 0);
    a = far_array(s, "int32", 0, NULL);
    assert_ok(zarr_group_create(&g, s, "g", NULL, NULL, &terr));
    assert_ok(zarr_array_attribute_set(a, "k", "[1, 2, 3]", NULL, &terr));
    assert_ok(zarr_store_get(s, "a/zarr.json", 0, text, &bytes, NULL, &terr));
    zarr_fakedev_count(w.device, &n);
    assert_int_equal(n.allocs, 0);
    assert_int_equal(n.copies_up + n.copies_down, 0);
    round_trip(&w, a, FAR);
    zarr_fakedev_count(w.device, &n);
    assert_true(n.live_blocks >= N / 4);
    zarr_group_free(g);
    zarr_array_free(a);
    zarr_store_free(s);
    far_close(&w);
}

/* Without a backend the default is an error of the calls that need it. */
static void test_unknown(void **state)
{
    const zarr_store_options bad = {.struct_size = sizeof bad, .tensor_device_type = -1};
    struct far_world w;
    zarr_store *s, *none = NULL;
    zarr_array *a;
    zarr_tensor t = ZARR_TENSOR_INIT;

    (void)state;
    far_open(&w, ZARR_DEVICE_CUDA, 1);
    assert_status(zarr_store_open(&none, w.ctx, "memory:", &bad, &terr),
                  ZARR_ERR_INVALID);
    s = far_store(&w, 0, 0, 0);
    a = far_array(s, "int32", 0, NULL);
    t.ndim = 1;
    t.shape = extent;
    t.data = w.data;
    t.data_bytes = sizeof w.data;
    assert_status(zarr_array_write(a, NULL, &t, NULL, &terr), ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(terr.message, "2"));
    t.device_type = ZARR_DEVICE_CPU;
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    zarr_array_free(a);
    zarr_store_free(s);
    far_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),    cmocka_unit_test(test_environment),
        cmocka_unit_test(test_stores),   cmocka_unit_test(test_text),
        cmocka_unit_test(test_metadata), cmocka_unit_test(test_unknown)};

    unsetenv("ZARRC_MEMORY");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
