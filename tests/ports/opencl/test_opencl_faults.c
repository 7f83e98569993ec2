/*
 * ports/opencl/test_opencl_faults.c - the k-th call of OpenCL fails, for each k. A read
 * fails then, or what it gives is right, if another implementation took its part; a
 * write fails or stores what was to be written; and the next one works. This program
 * exports functions of OpenCL, which the plug-in finds before those of the library.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <zarrc/plugin/plugin.h>
#include <zarrc/zarrc.h>

#include "../../opencl_alive.h"

enum {
    ROWS = 64,
    COLS = 48,
    N = ROWS * COLS,
    MOST_CALLS = 4000
};

/* ---- OpenCL ---------------------------------------------------------------------- */

static void *opencl;
static long calls_left; /* the call that makes it 0 fails; below 0: none does */
static cl_int failure;

static void *real(const char *name)
{
    void *found = dlsym(opencl, name);

    assert_non_null(found);
    return found;
}

static int fails(void)
{
    return __atomic_sub_fetch(&calls_left, 1, __ATOMIC_RELAXED) == 0;
}

#define EXPORT       __attribute__((visibility("default")))
#define REAL(x)      ((__typeof__(&x))(uintptr_t)real(#x))
#define PASS(x, ...) return fails() ? failure : REAL(x)(__VA_ARGS__)

EXPORT cl_mem clCreateBuffer(cl_context c, cl_mem_flags flags, size_t n, void *p,
                             cl_int *rc)
{
    if (!fails())
        return REAL(clCreateBuffer)(c, flags, n, p, rc);
    *rc = failure;
    return NULL;
}

EXPORT cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *rc)
{
    if (!fails())
        return REAL(clCreateKernel)(program, name, rc);
    *rc = failure;
    return NULL;
}

EXPORT cl_int clSetKernelArg(cl_kernel k, cl_uint i, size_t n, const void *p)
{
    PASS(clSetKernelArg, k, i, n, p);
}

EXPORT cl_int clFinish(cl_command_queue q)
{
    const cl_int rc = REAL(clFinish)(q); /* nothing runs after it, also if it fails */

    return fails() ? failure : rc;
}

/* NOLINT(function-size): a function of OpenCL */
EXPORT cl_int clEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_bool wait, size_t at,
                                  size_t n, void *p, cl_uint n_events,
                                  const cl_event *events, cl_event *event)
{
    PASS(clEnqueueReadBuffer, q, m, wait, at, n, p, n_events, events, event);
}

/* NOLINT(function-size): a function of OpenCL */
EXPORT cl_int clEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool wait, size_t at,
                                   size_t n, const void *p, cl_uint n_events,
                                   const cl_event *events, cl_event *event)
{
    PASS(clEnqueueWriteBuffer, q, m, wait, at, n, p, n_events, events, event);
}

/* NOLINT(function-size): a function of OpenCL */
EXPORT cl_int clEnqueueCopyBuffer(cl_command_queue q, cl_mem src, cl_mem dst, size_t from,
                                  size_t to, size_t n, cl_uint n_events,
                                  const cl_event *events, cl_event *event)
{
    PASS(clEnqueueCopyBuffer, q, src, dst, from, to, n, n_events, events, event);
}

/* NOLINT(function-size): a function of OpenCL */
EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint rank,
                                     const size_t *first, const size_t *n,
                                     const size_t *group, cl_uint n_events,
                                     const cl_event *events, cl_event *event)
{
    PASS(clEnqueueNDRangeKernel, q, k, rank, first, n, group, n_events, events, event);
}

/* ---- arrays ---------------------------------------------------------------------- */

static zarr_context *ctx;
static zarr_store *store;
static zarr_error err;
static int16_t elements[N], got[N];
static const uint64_t sizes[2] = {ROWS, COLS};

#define OK(call) assert_ok((call), __LINE__)
static void assert_ok(zarr_status st, int line)
{
    if (st != ZARR_OK)
        fail_msg("line %d: %s", line, err.message);
}

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define LZ4    "{\"name\":\"numcodecs.lz4\",\"configuration\":{\"acceleration\":1}}"
static const struct {
    const char *name, *codecs;
    int sharded;
} kinds[] = {
    {"raw", "[" LITTLE "]", 0},
    {"lz4", "[" LITTLE "," LZ4 "]", 1},
    {"blosc",
     "[" LITTLE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":5,"
     "\"shuffle\":\"shuffle\",\"typesize\":2,\"blocksize\":0}}]",
     1},
    {"sums",
     "[" LITTLE ",{\"name\":\"numcodecs.shuffle\",\"configuration\":{\"elementsize\":2}},"
     "{\"name\":\"crc32c\"}]",
     0},
    {"cpu",
     "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":"
     "false}}]",
     1},
};
enum {
    N_KINDS = sizeof kinds / sizeof kinds[0]
};
static const cl_int failures[] = {CL_OUT_OF_RESOURCES, CL_INVALID_VALUE};

static zarr_array *make_array(int kind)
{
    const uint64_t shape[] = {ROWS, COLS}, chunk[] = {16, 16}, shard[] = {32, 48};
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .ndim = 2,
                            .shape = shape,
                            .chunk_shape = chunk,
                            .shard_shape = kinds[kind].sharded ? shard : NULL,
                            .data_type = "int16",
                            .codecs = kinds[kind].codecs};
    zarr_array *a = NULL;
    zarr_tensor t;

    for (int i = 0; i < N; i++)
        elements[i] = (int16_t)(1 + i / 5);
    OK(zarr_array_create(&a, store, kinds[kind].name, &spec, NULL, &err));
    zarr_tensor_host(&t, NULL, elements, sizeof elements, 2, sizes);
    OK(zarr_array_write(a, NULL, &t, NULL, &err));
    return a;
}

static zarr_tensor tensor_new(zarr_memory *mem)
{
    zarr_tensor t = ZARR_TENSOR_INIT;

    OK(zarr_memory_alloc(mem, ctx, ZARR_DEVICE_OPENCL, 0, sizeof got, &err));
    t.device_type = ZARR_DEVICE_OPENCL;
    t.ndim = 2;
    t.data = mem->handle;
    t.data_bytes = mem->bytes;
    t.shape = sizes;
    return t;
}

static void copy(const zarr_memory *mem, int16_t *host, int up)
{
    const zarr_memory at = {
        .device_type = ZARR_DEVICE_CPU, .handle = host, .bytes = sizeof got};

    OK(zarr_memory_copy(ctx, up ? mem : &at, up ? &at : mem, sizeof got, &err));
}

/* Runs the call with the k-th call of OpenCL failing. Returns whether one did. */
static int with_failure(long k, zarr_status (*call)(zarr_array *, const zarr_tensor *),
                        zarr_array *a, const zarr_tensor *t, zarr_status *st)
{
    long left;

    zarr_context_trim(ctx); /* so that buffers are made each time */
    __atomic_store_n(&calls_left, k, __ATOMIC_RELAXED);
    *st = call(a, t);
    left = __atomic_exchange_n(&calls_left, -1, __ATOMIC_RELAXED);
    if (*st != ZARR_OK && *st != ZARR_ERR_DEVICE && *st != ZARR_ERR_NO_MEMORY)
        fail_msg("call %ld: %d, %s", k, *st, err.message);
    return left <= 0;
}

static zarr_status read_all(zarr_array *a, const zarr_tensor *t)
{
    return zarr_array_read(a, NULL, t, NULL, &err);
}

static zarr_status write_all(zarr_array *a, const zarr_tensor *t)
{
    return zarr_array_write(a, NULL, t, NULL, &err);
}

static void reads(int kind)
{
    zarr_array *a = make_array(kind);
    zarr_memory mem;
    const zarr_tensor t = tensor_new(&mem);
    zarr_status st = ZARR_OK;

    for (long k = 1; with_failure(k, read_all, a, &t, &st); k++) {
        assert_true(k < MOST_CALLS);
        if (st != ZARR_OK)
            OK(read_all(a, &t)); /* nothing is lost */
        copy(&mem, got, 0);
        assert_memory_equal(got, elements, sizeof got);
        memset(got, 0, sizeof got);
        copy(&mem, got, 1);
    }
    zarr_memory_free(ctx, &mem);
    zarr_array_free(a);
    OK(zarr_node_delete(store, kinds[kind].name, &err));
}

static void writes(int kind)
{
    zarr_array *a = make_array(kind);
    zarr_memory mem;
    const zarr_tensor t = tensor_new(&mem);
    zarr_status st = ZARR_OK;
    zarr_tensor host;
    int16_t from = 0;

    zarr_tensor_host(&host, NULL, got, sizeof got, 2, sizes);
    for (long k = 1; from = (int16_t)k, 1; k++) {
        int failed;

        assert_true(k < MOST_CALLS);
        for (int i = 0; i < N; i++)
            elements[i] = (int16_t)(from + i / 7);
        copy(&mem, elements, 1);
        failed = with_failure(k, write_all, a, &t, &st);
        if (st != ZARR_OK)
            OK(write_all(a, &t));
        OK(zarr_array_read(a, NULL, &host, NULL, &err));
        assert_memory_equal(got, elements, sizeof got);
        if (!failed)
            break;
    }
    zarr_memory_free(ctx, &mem);
    zarr_array_free(a);
    OK(zarr_node_delete(store, kinds[kind].name, &err));
}

static void test_reads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        failure = failures[i];
        for (int kind = 0; kind < N_KINDS; kind++)
            reads(kind);
    }
}

static void test_writes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        failure = failures[i];
        for (int kind = 0; kind < N_KINDS; kind++)
            writes(kind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_writes),
    };
    zarr_context_options o = {.struct_size = sizeof o, .max_threads = 1};
    int failed;

    calls_left = -1;
    if (!opencl_is_alive()) {
        puts("skipped: " OPENCL_ABORTS);
        return 77;
    }
    opencl = dlopen("libOpenCL.so.1", RTLD_NOW);
    if (!opencl || zarr_context_create(&ctx, &o, &err) != ZARR_OK ||
        zarr_context_load(ctx, PORT_PLUGIN, &err) != ZARR_OK) {
        printf("skipped: %s\n", opencl ? err.message : "no OpenCL");
        return 77;
    }
    if (zarr_store_open(&store, ctx, "memory:", NULL, &err) != ZARR_OK)
        return 1;
    failed = cmocka_run_group_tests_name("opencl faults", tests, NULL, NULL);
    zarr_store_free(store);
    zarr_context_free(ctx);
    return failed;
}
