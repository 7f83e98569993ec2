/*
 * ports/cuda/test_cuda.c - arrays in memory of a CUDA device: read, written, on the
 * application's streams, with its allocator and beside its contexts. The program runs
 * over the fake driver, or over the real one on a machine with a GPU: the first
 * libcuda.so.1 that the loader finds.
 */
#include "application.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PART = 50 * 33 /* elements of a part */
};

typedef int (*stream_open_fn)(void **out, unsigned flags);
typedef int (*stream_fn)(void *stream);
typedef int (*capture_fn)(void *stream, int mode);
typedef int (*end_capture_fn)(void *stream, void **graph);
typedef int (*fill_fn)(uint64_t dst, unsigned char value, size_t n, void *stream);
typedef int (*copy_fn)(uint64_t dst, uint64_t src, size_t bytes, void *stream);
typedef int (*context_fn)(void **out);
typedef int (*retain_fn)(void **out, int device);
typedef int (*push_fn)(void *context);
typedef int (*count_fn)(int *n);
typedef int (*alloc_fn)(uint64_t *out, size_t bytes);
typedef int (*free_fn)(uint64_t p);
typedef int (*host_alloc_fn)(void **out, size_t bytes, unsigned flags);
typedef int (*host_free_fn)(void *p);

static uint8_t elements[4 * N], got[4 * N], want[4 * N];

static uint64_t address(const zarr_memory *mem)
{
    return (uint64_t)(uintptr_t)mem->handle;
}

/* Makes the primary context of device 0 current, as the CUDA runtime does. */
static void enter(void)
{
    void *context = NULL;

    assert_int_equal(DRIVER(retain_fn, "cuDevicePrimaryCtxRetain")(&context, 0), 0);
    assert_int_equal(DRIVER(push_fn, "cuCtxPushCurrent_v2")(context), 0);
}

static void leave(void)
{
    void *context = NULL;

    assert_int_equal(DRIVER(context_fn, "cuCtxPopCurrent_v2")(&context), 0);
    assert_int_equal(DRIVER(count_fn, "cuDevicePrimaryCtxRelease_v2")((int *)0), 0);
}

/* ---- reading and writing -------------------- */

static void read_all(zarr_array *a, const struct kind *k, const zarr_memory *mem)
{
    const uint64_t bytes = N * item_bytes(k);
    zarr_tensor t = whole_tensor(mem);

    memset(got, 0x77, sizeof got);
    put(mem, got, bytes);
    OK(zarr_array_read(a, NULL, &t, NULL, &err));
    fetch(got, mem, bytes);
    if (memcmp(got, elements, bytes) != 0)
        fail_msg("%s: other elements in memory of kind %d", k->name, mem->device_type);
}

static void read_part(zarr_array *a, const struct kind *k, const zarr_memory *mem)
{
    static const uint64_t shape[2] = {50, 33};
    const uint64_t bytes = PART * item_bytes(k);
    zarr_selection *sel = NULL;
    zarr_tensor t = whole_tensor(mem), host;

    OK(zarr_selection_parse(&sel, 2, zarr_array_shape(a), "3:53, 10:109:3", &err));
    t.shape = shape;
    OK(zarr_array_read(a, sel, &t, NULL, &err));
    fetch(got, mem, bytes);
    zarr_tensor_host(&host, NULL, want, sizeof want, 2, shape);
    OK(zarr_array_read(a, sel, &host, NULL, &err));
    assert_memory_equal(got, want, bytes);
    zarr_selection_free(sel);
}

static void write_all(zarr_array *a, const struct kind *k, const zarr_memory *mem)
{
    const uint64_t bytes = N * item_bytes(k);
    zarr_tensor t = whole_tensor(mem);

    for (uint64_t i = 0; i < bytes / 2 && !is_lossy(k);
         i++) /* other elements than those stored */
        elements[i] = (uint8_t)(elements[i] + 1);
    put(mem, elements, bytes);
    OK(zarr_array_write(a, NULL, &t, NULL, &err));
    zarr_tensor_host(&t, NULL, got, bytes, 2, t.shape);
    OK(zarr_array_read(a, NULL, &t, NULL, &err));
    assert_memory_equal(got, elements, bytes);
}

/* A part of the array, whose chunks keep their other elements. */
static void write_part(zarr_array *a, const struct kind *k, const zarr_memory *mem)
{
    static const uint64_t shape[2] = {50, 33};
    const uint64_t bytes = N * item_bytes(k), part = PART * item_bytes(k);
    zarr_selection *sel = NULL;
    zarr_tensor t = whole_tensor(mem), host;

    OK(zarr_selection_parse(&sel, 2, zarr_array_shape(a), "3:53, 10:109:3", &err));
    memset(got, 1, sizeof got);
    put(mem, got, part);
    t.shape = shape;
    OK(zarr_array_write(a, sel, &t, NULL, &err));
    zarr_tensor_host(&host, NULL, got, sizeof got, 2, whole_tensor(mem).shape);
    OK(zarr_array_read(a, NULL, &host, NULL, &err));
    for (uint64_t i = 0; i < N; i++) {
        const uint64_t row = i / COLS, col = i % COLS;
        const int in = row >= 3 && row < 53 && col >= 10 && col < 109 && col % 3 == 1;
        const uint8_t *old = &elements[i * item_bytes(k)];
        const uint8_t *now = &got[i * item_bytes(k)];

        assert_true(in ? now[0] == 1 && now[1] == 1
                       : memcmp(now, old, item_bytes(k)) == 0);
    }
    memcpy(elements, got, bytes);
    zarr_selection_free(sel);
}

/* Elements that are all the fill value are not stored: the device finds out. */
static void write_fill(zarr_array *a, const struct kind *k, const zarr_memory *mem)
{
    const uint64_t bytes = N * item_bytes(k);
    zarr_tensor t = whole_tensor(mem);
    uint64_t n = sizeof got;
    char key[64];

    memset(got, 0, sizeof got);
    put(mem, got, bytes);
    OK(zarr_array_write(a, NULL, &t, NULL, &err));
    (void)snprintf(key, sizeof key, "%s/c/0/0", k->name);
    assert_int_equal(zarr_store_get(store, key, 0, got, &n, NULL, &err),
                     ZARR_ERR_NOT_FOUND);
}

static void test_arrays(void **state)
{
    static const int32_t memories[] = {ZARR_DEVICE_CUDA, ZARR_DEVICE_CUDA_HOST,
                                       ZARR_DEVICE_CUDA_MANAGED};

    (void)state;
    for (size_t m = 0; m < 3; m++)
        for (int i = 0; i < n_kinds; i++) {
            const struct kind *k = &kinds[i];
            zarr_array *a = make_array(k, elements);
            zarr_memory mem;

            OK(zarr_memory_alloc(&mem, ctx, memories[m], 0, N * item_bytes(k), &err));
            read_all(a, k, &mem);
            read_part(a, k, &mem);
            write_all(a, k, &mem);
            if (!is_lossy(k))
                write_part(a, k, &mem);
            write_fill(a, k, &mem);
            zarr_memory_free(ctx, &mem);
            zarr_array_free(a);
            OK(zarr_node_delete(store, k->name, &err));
        }
}

/* More descriptions than one block of a lane has room for. */
static void test_small_chunks(void **state)
{
    enum {
        EDGE = 512
    };
    static const uint64_t shape[2] = {EDGE, EDGE}, chunk[2] = {8, 8};
    static const uint64_t tensor_shape[2] = {EDGE, EDGE};
    static uint16_t from[EDGE * EDGE], to[EDGE * EDGE];

    (void)state;
    for (int i = 0; i < EDGE * EDGE; i++)
        from[i] = (uint16_t)(i / 7 + i % 3);
    for (int k = 0; k < n_kinds; k += 6) { /* raw, lz4, ... */
        zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
        zarr_array *a = NULL;
        zarr_memory mem;
        zarr_tensor t;

        if (item_bytes(&kinds[k]) != 2)
            continue;
        spec.flags = ZARR_SPEC_OVERWRITE;
        spec.ndim = 2;
        spec.shape = spec.shard_shape = shape;
        spec.chunk_shape = chunk;
        spec.data_type = "uint16";
        spec.codecs = kinds[k].codecs;
        OK(zarr_array_create(&a, store, "small", &spec, NULL, &err));
        OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, sizeof from, &err));
        put(&mem, (uint8_t *)from, sizeof from);
        t = whole_tensor(&mem);
        t.shape = tensor_shape;
        OK(zarr_array_write(a, NULL, &t, NULL, &err));
        memset(to, 0, sizeof to);
        put(&mem, (uint8_t *)to, sizeof to);
        OK(zarr_array_read(a, NULL, &t, NULL, &err));
        fetch((uint8_t *)to, &mem, sizeof to);
        assert_memory_equal(to, from, sizeof to);
        zarr_memory_free(ctx, &mem);
        zarr_array_free(a);
    }
    OK(zarr_node_delete(store, "small", &err));
}

/* Many requests at once, each on its thread of the library. */
static void test_many(void **state)
{
    enum {
        MANY = 16
    };
    zarr_request *request[MANY] = {0};
    zarr_tensor t[MANY];
    zarr_memory mem[MANY];
    zarr_array *a = make_array(&kinds[6], elements);
    const uint64_t bytes = N * item_bytes(&kinds[6]);

    (void)state;
    for (int i = 0; i < MANY; i++) {
        OK(zarr_memory_alloc(&mem[i], ctx, ZARR_DEVICE_CUDA, 0, bytes, &err));
        t[i] = whole_tensor(&mem[i]);
        OK(zarr_array_read_submit(&request[i], a, NULL, &t[i], NULL, &err));
    }
    for (int i = 0; i < MANY; i++) {
        OK(zarr_request_wait(request[i], ZARR_WAIT_FOREVER, NULL, &err));
        zarr_request_free(request[i]);
        fetch(got, &mem[i], bytes);
        assert_memory_equal(got, elements, bytes);
        zarr_memory_free(ctx, &mem[i]);
    }
    zarr_array_free(a);
}

/* ---- the application's streams -------------------- */

/* Work on the application's stream comes before the library's. */
static void check_order(void *stream)
{
    zarr_array *a = make_array(&kinds[0], elements);
    const uint64_t bytes = N * item_bytes(&kinds[0]);
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_memory mem, pinned;
    zarr_tensor t, host;

    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, bytes, &err));
    OK(zarr_memory_alloc(&pinned, ctx, ZARR_DEVICE_CUDA_HOST, 0, bytes, &err));
    t = whole_tensor(&mem);
    opts.stream = stream;
    assert_int_equal(
        DRIVER(fill_fn, "cuMemsetD8Async")(address(&mem), 0x55, bytes, stream), 0);
    OK(zarr_array_read(a, NULL, &t, &opts, &err));
    fetch(got, &mem, bytes);
    assert_memory_equal(got, elements, bytes);

    for (uint64_t i = 0; i < bytes; i++)
        elements[i] = (uint8_t)(elements[i] ^ (i & 15));
    memcpy(pinned.handle, elements, bytes);
    assert_int_equal(
        DRIVER(copy_fn, "cuMemcpyAsync")(address(&mem), address(&pinned), bytes, stream),
        0);
    OK(zarr_array_write(a, NULL, &t, &opts, &err));
    zarr_tensor_host(&host, NULL, got, bytes, 2, t.shape);
    OK(zarr_array_read(a, NULL, &host, NULL, &err));
    assert_memory_equal(got, elements, bytes);

    /* A tensor in pinned memory: the host waits for the stream. */
    memset(pinned.handle, 0, bytes);
    assert_int_equal(
        DRIVER(copy_fn, "cuMemcpyAsync")(address(&pinned), address(&mem), bytes, stream),
        0);
    t = whole_tensor(&pinned);
    OK(zarr_array_write(a, NULL, &t, &opts, &err));
    memset(got, 0, sizeof got);
    OK(zarr_array_read(a, NULL, &host, NULL, &err));
    assert_memory_equal(got, elements, bytes);
    zarr_memory_free(ctx, &mem);
    zarr_memory_free(ctx, &pinned);
    zarr_array_free(a);
}

static void test_streams(void **state)
{
    void *stream = NULL;

    (void)state;
    enter();
    assert_int_equal(DRIVER(stream_open_fn, "cuStreamCreate")(&stream, 1), 0);
    check_order(stream);
    check_order((void *)1); /* NOLINT(performance-no-int-to-ptr): DLPack's numbers */
    check_order((void *)2); /* NOLINT(performance-no-int-to-ptr) */
    assert_int_equal(DRIVER(stream_fn, "cuStreamDestroy_v2")(stream), 0);
    leave();
}

static void test_capture(void **state)
{
    zarr_array *a = make_array(&kinds[0], elements);
    const uint64_t bytes = N * item_bytes(&kinds[0]);
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    void *stream = NULL, *graph = NULL;
    zarr_memory mem;
    zarr_tensor t;

    (void)state;
    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, bytes, &err));
    t = whole_tensor(&mem);
    enter();
    assert_int_equal(DRIVER(stream_open_fn, "cuStreamCreate")(&stream, 1), 0);
    assert_int_equal(DRIVER(capture_fn, "cuStreamBeginCapture_v2")(stream, 2), 0);
    opts.stream = stream;
    assert_int_equal(zarr_array_read(a, NULL, &t, &opts, &err), ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "capturing"));
    assert_int_equal(DRIVER(end_capture_fn, "cuStreamEndCapture")(stream, &graph), 0);
    OK(zarr_array_read(a, NULL, &t, &opts, &err));
    fetch(got, &mem, bytes);
    assert_memory_equal(got, elements, bytes);
    assert_int_equal(DRIVER(stream_fn, "cuStreamDestroy_v2")(stream), 0);
    leave();
    zarr_memory_free(ctx, &mem);
    zarr_array_free(a);
}

/* A graph that is captured on another stream does not suffer, and neither do reads. */
static void test_capture_elsewhere(void **state)
{
    zarr_array *a = make_array(&kinds[6], elements);
    const uint64_t bytes = N * item_bytes(&kinds[6]);
    void *stream = NULL, *graph = NULL;
    zarr_memory mem, pinned;
    zarr_tensor t;

    (void)state;
    enter();
    assert_int_equal(DRIVER(stream_open_fn, "cuStreamCreate")(&stream, 1), 0);
    assert_int_equal(DRIVER(capture_fn, "cuStreamBeginCapture_v2")(stream, 0), 0);
    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, bytes, &err));
    OK(zarr_memory_alloc(&pinned, ctx, ZARR_DEVICE_CUDA_HOST, 0, bytes, &err));
    t = whole_tensor(&mem);
    OK(zarr_array_read(a, NULL, &t, NULL, &err));
    fetch(got, &mem, bytes);
    assert_memory_equal(got, elements, bytes);
    OK(zarr_array_write(a, NULL, &t, NULL, &err));
    zarr_memory_free(ctx, &mem);
    zarr_memory_free(ctx, &pinned);
    assert_int_equal(DRIVER(end_capture_fn, "cuStreamEndCapture")(stream, &graph), 0);
    assert_int_equal(DRIVER(stream_fn, "cuStreamDestroy_v2")(stream), 0);
    leave();
    zarr_array_free(a);
}

/* ---- the application's contexts and pointers -------------------- */

static void *current(void)
{
    void *context = NULL;

    assert_int_equal(DRIVER(context_fn, "cuCtxGetCurrent")(&context), 0);
    return context;
}

static void test_context_stays(void **state)
{
    zarr_array *a = make_array(&kinds[6], elements);
    zarr_memory mem;
    zarr_tensor t;
    void *before;

    (void)state;
    assert_null(current());
    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, sizeof elements, &err));
    t = whole_tensor(&mem);
    OK(zarr_array_read(a, NULL, &t, NULL, &err));
    assert_null(current());
    enter();
    before = current();
    OK(zarr_array_read(a, NULL, &t, NULL, &err));
    assert_ptr_equal(current(), before);
    leave();
    zarr_memory_free(ctx, &mem);
    assert_null(current());
    zarr_array_free(a);
}

static void check_kind(const void *p, int32_t kind)
{
    int32_t type = -1, id = -1;

    zarr_memory_classify(ctx, p, &type, &id);
    assert_int_equal(type, kind);
    assert_int_equal(id, 0);
}

static void test_classify(void **state)
{
    static const int32_t memories[] = {ZARR_DEVICE_CUDA, ZARR_DEVICE_CUDA_HOST,
                                       ZARR_DEVICE_CUDA_MANAGED};
    void *pinned = NULL;
    uint64_t device = 0;

    (void)state;
    for (size_t m = 0; m < 3; m++) {
        zarr_memory mem;

        OK(zarr_memory_alloc(&mem, ctx, memories[m], 0, 1000, &err));
        check_kind(mem.handle, memories[m]);
        check_kind((char *)mem.handle + 999, memories[m]);
        zarr_memory_free(ctx, &mem);
    }
    check_kind(elements, ZARR_DEVICE_CPU);
    check_kind(&device, ZARR_DEVICE_CPU);
    enter(); /* memory of the application */
    assert_int_equal(DRIVER(host_alloc_fn, "cuMemHostAlloc")(&pinned, 100, 0), 0);
    assert_int_equal(DRIVER(alloc_fn, "cuMemAlloc_v2")(&device, 100), 0);
    check_kind(pinned, ZARR_DEVICE_CUDA_HOST);
    check_kind((void *)(uintptr_t)device, /* NOLINT(performance-no-int-to-ptr) */
               ZARR_DEVICE_CUDA);
    assert_int_equal(DRIVER(host_free_fn, "cuMemFreeHost")(pinned), 0);
    assert_int_equal(DRIVER(free_fn, "cuMemFree_v2")(device), 0);
    leave();
}

/* ---- several devices, and listings -------------------- */

static void test_second_device(void **state)
{
    zarr_array *a = make_array(&kinds[6], elements);
    const uint64_t bytes = N * item_bytes(&kinds[6]);
    zarr_memory first, second, none;
    zarr_tensor t;
    int n = 0;

    (void)state;
    assert_int_equal(DRIVER(count_fn, "cuDeviceGetCount")(&n), 0);
    assert_int_equal(zarr_memory_alloc(&none, ctx, ZARR_DEVICE_CUDA, n, 64, &err),
                     ZARR_ERR_INVALID);
    assert_non_null(strstr(err.message, "there is no device"));
    if (n < 2) {
        zarr_array_free(a);
        printf("there is one device only\n");
        return;
    }
    OK(zarr_memory_alloc(&first, ctx, ZARR_DEVICE_CUDA, 0, bytes, &err));
    OK(zarr_memory_alloc(&second, ctx, ZARR_DEVICE_CUDA, 1, bytes, &err));
    t = whole_tensor(&second);
    OK(zarr_array_read(a, NULL, &t, NULL, &err));
    OK(zarr_memory_copy(ctx, &first, &second, bytes, &err));
    fetch(got, &first, bytes);
    assert_memory_equal(got, elements, bytes);
    zarr_memory_free(ctx, &first);
    zarr_memory_free(ctx, &second);
    zarr_array_free(a);
}

static int find_device(void *user, const zarr_registry_item *item)
{
    if (strcmp(item->name, "cuda:0") != 0)
        return 0;
    printf("%s: %s\n", item->name, item->detail);
    assert_true(item->total_bytes > 0);
    assert_true(strlen(item->detail) > 36); /* a name and a UUID */
    assert_non_null(strchr(item->detail, '('));
    (void)snprintf(user, 64, "cuda:%s", strchr(item->detail, '(') + 1);
    *strchr(user, ')') = '\0';
    return 0;
}

static zarr_status parse(const char *text, int32_t *number)
{
    int32_t type = 0;
    const zarr_status st = zarr_memory_parse(ctx, text, &type, number, &err);

    if (st == ZARR_OK)
        assert_int_equal(type, strncmp(text, "cuda:", 5) == 0 ? ZARR_DEVICE_CUDA
                                                              : ZARR_DEVICE_CUDA_HOST);
    return st;
}

/* A device is found by the name that the listing shows. */
static void test_names(void **state)
{
    static const char *const wrong[] = {"cuda:GPU-zz", "cuda:MIG-", "cuda:abc",
                                        "cuda:gpu-1"};
    char name[64] = "";
    int32_t number = -1;

    (void)state;
    OK(zarr_context_list(ctx, ZARR_REGISTRY_DEVICE, find_device, name, &err));
    assert_true(strncmp(name, "cuda:GPU-", 9) == 0 || strncmp(name, "cuda:MIG-", 9) == 0);
    assert_int_equal(strlen(name), 9 + 36);
    OK(parse(name, &number));
    assert_int_equal(number, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(parse(wrong[i], &number), ZARR_ERR_INVALID);
        assert_non_null(strstr(err.message, strchr(wrong[i], ':') + 1));
    }
    if (!is_fake())
        return;
    OK(parse("cuda:GPU-11", &number)); /* those of the fake driver are 1010..., 1111... */
    assert_int_equal(number, 1);
    OK(parse("cuda_host:MIG-10101010-1", &number));
    assert_int_equal(number, 0);
    assert_int_equal(parse("cuda:GPU-1", &number), ZARR_ERR_INVALID);
    assert_non_null(strstr(err.message, "2 devices"));
}

/* ---- an allocator of the application, such as RMM -------------------- */

static struct {
    alloc_fn alloc;
    free_fn free;
    int allocs, live;
} rmm;

static zarr_status rmm_alloc(void *self, int32_t device_id, uint64_t bytes,
                             zarr_memory *out, zarr_error *e)
{
    uint64_t p = 0;

    (void)self, (void)e;
    enter();
    assert_int_equal(rmm.alloc(&p, bytes), 0);
    leave();
    *out = (zarr_memory){.device_type = ZARR_DEVICE_CUDA,
                         .device_id = device_id,
                         .handle = (void *)(uintptr_t)p, /* NOLINT */
                         .bytes = bytes};
    __atomic_fetch_add(&rmm.allocs, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&rmm.live, 1, __ATOMIC_RELAXED);
    return ZARR_OK;
}

static void rmm_free(void *self, zarr_memory *mem)
{
    (void)self;
    enter();
    assert_int_equal(rmm.free(address(mem)), 0);
    leave();
    __atomic_fetch_sub(&rmm.live, 1, __ATOMIC_RELAXED);
}

static void add_rmm(void)
{
    static const zarr_memory_vtable table = {.struct_size = sizeof table,
                                             .flags = ZARR_MEMORY_ALLOCATOR,
                                             .name = "rmm",
                                             .device_type = ZARR_DEVICE_CUDA,
                                             .alloc = rmm_alloc,
                                             .free = rmm_free};

    OK(zarr_context_register_memory(ctx, &table, NULL, "test", &err));
}

static void test_allocator(void **state)
{
    zarr_context *outer = ctx;
    zarr_store *outer_store = store;

    (void)state;
    rmm.alloc = DRIVER(alloc_fn, "cuMemAlloc_v2");
    rmm.free = DRIVER(free_fn, "cuMemFree_v2");
    begin_context("rmm", add_rmm);
    for (int i = 0; i < n_kinds; i++) {
        zarr_array *a = make_array(&kinds[i], elements);
        zarr_memory mem;

        OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, sizeof elements, &err));
        read_all(a, &kinds[i], &mem);
        write_all(a, &kinds[i], &mem);
        zarr_memory_free(ctx, &mem);
        zarr_array_free(a);
    }
    end_context();
    assert_true(rmm.allocs > n_kinds);
    assert_int_equal(rmm.live, 0);
    ctx = outer;
    store = outer_store;
}

/* ---- damage -------------------- */

/* Bytes of a chunk in turn. What the device refuses the CPU refuses, too. */
static void damage_chunk(const struct kind *k, const char *key,
                         const zarr_io_options *opts)
{
    static uint8_t data[65536];
    const uint64_t bytes = N * item_bytes(k);
    zarr_array *a = make_array(k, elements);
    uint64_t n = sizeof data, refused = 0;
    zarr_memory mem;

    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, bytes, &err));
    OK(zarr_store_get(store, key, 0, data, &n, NULL, &err));
    for (uint64_t at = 0; at < n; at += at < 64 ? 1 : 97) {
        zarr_tensor t = whole_tensor(&mem), host;
        zarr_status st;

        data[at] ^= 0x55;
        OK(zarr_store_put(store, key, data, n, NULL, &err));
        st = zarr_array_read(a, NULL, &t, opts, &err);
        zarr_tensor_host(&host, NULL, got, bytes, 2, t.shape);
        if (st != ZARR_OK)
            assert_int_equal(st, zarr_array_read(a, NULL, &host, NULL, &err));
        data[at] ^= 0x55;
        refused += st != ZARR_OK;
    }
    assert_true(refused > 3);
    OK(zarr_store_put(store, key, data, n, NULL, &err));
    read_all(a, k, &mem);
    zarr_memory_free(ctx, &mem);
    zarr_array_free(a);
}

static void test_damage(void **state)
{
    (void)state;
    damage_chunk(&kinds[8], "whole_lz4/c/1/1", NULL);
    damage_chunk(&kinds[10], "blosc_lz4/c/0/1", NULL);
}

/* The kernels of zstd decode if they are named: all chunks, and without trust. */
static void test_zstd(void **state)
{
    const zarr_tuning tuning = {.struct_size = sizeof tuning,
                                .codec_preference =
                                    "zstd=cuda.zstd;blosc=cuda.blosc_zstd"};
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    int found = 0;

    (void)state;
    opts.tuning = &tuning;
    for (int i = 0; i < n_kinds; i++) {
        const struct kind *k = &kinds[i];
        const uint64_t bytes = N * item_bytes(k);
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_array *a;
        zarr_tensor t;
        zarr_memory mem;

        if (!strstr(k->name, "zstd"))
            continue;
        a = make_array(k, elements);
        OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, bytes, &err));
        t = whole_tensor(&mem);
        opts.stats = &stats;
        OK(zarr_array_read(a, NULL, &t, &opts, &err));
        opts.stats = NULL;
        fetch(got, &mem, bytes);
        assert_memory_equal(got, elements, bytes);
        assert_int_equal(stats.chunks_fallback + stats.chunks_distrusted, 0);
        zarr_memory_free(ctx, &mem);
        zarr_array_free(a);
        OK(zarr_node_delete(store, k->name, &err));
        found++;
    }
    assert_int_equal(found, 4);
    damage_chunk(&kinds[5], "zstd_big_endian/c/0/1", &opts);
    damage_chunk(&kinds[11], "blosc_zstd/c/0/1", &opts);
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
        cmocka_unit_test(test_arrays),        cmocka_unit_test(test_small_chunks),
        cmocka_unit_test(test_many),          cmocka_unit_test(test_streams),
        cmocka_unit_test(test_capture),       cmocka_unit_test(test_capture_elsewhere),
        cmocka_unit_test(test_context_stays), cmocka_unit_test(test_classify),
        cmocka_unit_test(test_second_device), cmocka_unit_test(test_names),
        cmocka_unit_test(test_allocator),     cmocka_unit_test(test_damage),
        cmocka_unit_test(test_zstd),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
