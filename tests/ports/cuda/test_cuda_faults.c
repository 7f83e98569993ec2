/*
 * ports/cuda/test_cuda_faults.c - what the CUDA plug-in does when the driver fails: any
 * call may, a device may be lost, there may be no driver, no device or an old driver, and
 * a process may fork or end at any time. All but the fork needs the fake driver. What
 * leaves the driver unusable runs in a process of its own.
 */
#include "application.h"
#include "../../sanitizers.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef void (*fail_fn)(uint64_t k, int result);
typedef const char *(*failed_fn)(void);
typedef uint64_t (*number_fn)(void);
typedef int (*int_fn)(void);
typedef int (*stream_open_fn)(void **out, unsigned flags);
typedef int (*context_fn)(void **out);
typedef int (*retain_fn)(void **out, int device);
typedef int (*push_fn)(void *context);

enum {
    OUT_OF_MEMORY = 2,
    ILLEGAL_ADDRESS = 700,
    UNKNOWN = 999,
    CALLS_MAX = 3000,
#if defined(__SANITIZE_THREAD__) /* it cannot follow a fork */
    HAS_FORK = 0
#else
    HAS_FORK = 1
#endif
};
/* Steps between calls that lose the device, in processes of their own, and between
 * errors. */
#define CALLS_STEP  (ZR_CASE_STEP > 1 ? 31 : 7)
#define ERRORS_STEP (size_t)(ZR_CASE_STEP > 1 ? 5 : 1)

static uint8_t elements[4 * N], got[4 * N];

/* ---- any call fails -------------------- */

/* Reads an array and writes it back, after what is on a stream. What fails first is in
 * `err`. */
static zarr_status read_and_write_after(zarr_array *a, const zarr_memory *mem,
                                        void *stream)
{
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_tensor t = whole_tensor(mem);
    zarr_status st;

    opts.stream = stream;
    st = zarr_array_read(a, NULL, &t, &opts, &err);
    return st == ZARR_OK ? zarr_array_write(a, NULL, &t, &opts, &err) : st;
}

static zarr_status read_and_write(zarr_array *a, const zarr_memory *mem)
{
    return read_and_write_after(a, mem, NULL);
}

static void copy_failed(char *to, size_t room)
{
    (void)snprintf(to, room, "%s", DRIVER(failed_fn, "fakecuda_failed")());
}

/* Does all in a new context with the k-th call failing; returns whether one failed. */
static int one_failure(uint64_t k, int result)
{
    const struct kind *kind = &kinds[k % 2 ? 6 : 0];
    const uint64_t bytes = N * item_bytes(kind);
    const uint64_t blocks = DRIVER(number_fn, "fakecuda_blocks")();
    char failed[64];
    zarr_array *a;
    zarr_memory mem = {0};
    zarr_status st;

    begin_context(NULL, NULL);
    a = make_array(kind, elements);
    DRIVER(fail_fn, "fakecuda_fail")(k, result);
    st = zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, bytes, &err);
    if (st == ZARR_OK)
        st = read_and_write(a, &mem);
    copy_failed(failed, sizeof failed);
    if (st != ZARR_OK &&
        (!failed[0] || (st != ZARR_ERR_DEVICE && st != ZARR_ERR_NO_MEMORY)))
        fail_msg("call %d: status %d after %s: %s", (int)k, st, failed, err.message);
    if (!failed[0])
        DRIVER(fail_fn, "fakecuda_fail")(0, 0);
    if (st == ZARR_OK) { /* the library may have found another way */
        memset(got, 0, sizeof got);
        fetch(got, &mem, bytes);
        assert_memory_equal(got, elements, bytes);
    }
    zarr_array_free(a);
    zarr_memory_free(ctx, &mem);
    end_context();
    copy_failed(failed, sizeof failed);
    DRIVER(fail_fn, "fakecuda_fail")(0, 0);
    /* Where the call that failed was to free something, or to make the context current
     * for that, memory is left. */
    if (DRIVER(number_fn, "fakecuda_blocks")() != blocks && !strstr(failed, "Free") &&
        !strstr(failed, "Ctx"))
        fail_msg("call %d: memory is left after %s failed", (int)k, failed);
    return failed[0] != '\0';
}

static void every_call_fails(int result)
{
    uint64_t k = 1;

    if (!is_fake())
        skip();
    while (k < CALLS_MAX && one_failure(k, result))
        k += ZR_CASE_STEP;
    assert_in_range(k, 20, CALLS_MAX - 1);
    (void)one_failure(0, 0);
}

static void test_no_memory(void **state)
{
    (void)state;
    every_call_fails(OUT_OF_MEMORY);
}

static void test_unknown(void **state)
{
    (void)state;
    every_call_fails(UNKNOWN);
}

/* ---- in processes of their own -------------------- */

/* Runs this program in a part; `set` and `to`: a variable of the environment. */
static void run_part(const char *part, const char *number, const char *set,
                     const char *to)
{
    char program[] = "test_port_cuda_faults";
    char *args[] = {program, strdup(part), strdup(number), NULL};
    char old[4096] = "";
    int how = 0;
    pid_t child;

    if (set) {
        (void)snprintf(old, sizeof old, "%s", getenv(set) ? getenv(set) : "");
        assert_int_equal(setenv(set, to, 1), 0);
    }
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, environ), 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    if (set && old[0])
        assert_int_equal(setenv(set, old, 1), 0);
    else if (set)
        assert_int_equal(unsetenv(set), 0);
    free(args[1]);
    free(args[2]);
    if (how != 0)
        fail_msg("%s %s: status %#x", part, number, (unsigned)how);
}

static void part_fails(const char *why)
{
    (void)fprintf(stderr, "%s (%d: %s)\n", why, err.code, err.message);
    _exit(1);
}

#define EXPECT(condition)                                                                \
    do {                                                                                 \
        if (!(condition))                                                                \
            part_fails(#condition);                                                      \
    } while (0)

/* A context whose device may not work. */
static void only_plugin(void)
{
    static const char *const plugins[] = {PORT_PLUGIN, NULL};
    zarr_context_options opts = ZARR_CONTEXT_OPTIONS_INIT;

    opts.plugins = plugins;
    EXPECT(zarr_context_create(&ctx, &opts, &err) == ZARR_OK);
}

/* A stream of an application, which makes the primary context of device 0 current. */
static void *application_stream(void)
{
    void *context = NULL, *stream = NULL;

    EXPECT(DRIVER(retain_fn, "cuDevicePrimaryCtxRetain")(&context, 0) == 0);
    EXPECT(DRIVER(push_fn, "cuCtxPushCurrent_v2")(context) == 0);
    EXPECT(DRIVER(stream_open_fn, "cuStreamCreate")(&stream, 1) == 0);
    return stream;
}

/* The k-th call destroys the context by an error: what is pending fails, and nothing
 * follows. `argument`: "k error type"; type: 0, or the memory of a tensor that a stream
 * of the application has used. */
static int part_lost(const char *argument)
{
    const struct kind *kind = &kinds[6];
    char *end = NULL;
    const uint64_t k = strtoull(argument, &end, 10);
    const int error = (int)strtol(end, &end, 10);
    const int32_t type = (int32_t)strtol(end, NULL, 10);
    char number[16];
    void *stream = NULL, *context = NULL;
    number_fn after;
    zarr_array *a;
    zarr_memory mem;

    begin_context(NULL, NULL);
    after = DRIVER(number_fn, "fakecuda_after_loss");
    a = make_array(kind, elements);
    OK(zarr_memory_alloc(&mem, ctx, type ? type : ZARR_DEVICE_CUDA, 0,
                         N * item_bytes(kind), &err));
    if (type)
        stream = application_stream();
    DRIVER(fail_fn, "fakecuda_fail")(k, error);
    if (read_and_write_after(a, &mem, stream) == ZARR_OK)
        return 2; /* there are not so many calls */
    if (type == ZARR_DEVICE_CUDA_HOST &&
        strcmp(DRIVER(failed_fn, "fakecuda_failed")(), "cuCtxGetCurrent") == 0)
        return 0; /* this call tells no device */
    (void)snprintf(number, sizeof number, "(%d)", error);
    EXPECT(err.code == ZARR_ERR_DEVICE);
    EXPECT(strstr(err.message, number));
    EXPECT(error != ILLEGAL_ADDRESS || strstr(err.message, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    EXPECT(read_and_write_after(a, &mem, stream) == ZARR_ERR_DEVICE);
    EXPECT(strstr(err.message, "is lost"));
    EXPECT(strstr(err.message, number));
    if (type)
        EXPECT(DRIVER(context_fn, "cuCtxPopCurrent_v2")(&context) == 0);
    zarr_memory_free(ctx, &mem);
    zarr_array_free(a);
    end_context();
    EXPECT(after() == 0);
    EXPECT(DRIVER(number_fn, "fakecuda_depth")() == 0);
    only_plugin();
    EXPECT(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, 64, &err) ==
           ZARR_ERR_DEVICE);
    EXPECT(strstr(err.message, "is lost")); /* for other contexts, too */
    zarr_context_free(ctx);
    return 0;
}

/* Loses the device at each step-th call from the first on; returns how many calls there
 * are. */
static int lose_at(int first, int step, int error, int type)
{
    for (int k = first; k < CALLS_MAX; k += step) {
        char number[40];
        int how = 0;
        pid_t child;
        char program[] = "test_port_cuda_faults", part[] = "lost";
        char *args[] = {program, part, number, NULL};

        (void)snprintf(number, sizeof number, "%d %d %d", k, error, type);
        assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, environ),
                         0);
        assert_int_equal(waitpid(child, &how, 0), child);
        if (WIFEXITED(how) && WEXITSTATUS(how) == 2)
            return k;
        if (how != 0)
            fail_msg("call %d, error %d, memory %d: status %#x", k, error, type,
                     (unsigned)how);
    }
    fail_msg("there is no end of calls");
    return 0;
}

static void test_lost(void **state)
{
    (void)state;
    if (!is_fake())
        skip();
    assert_true(lose_at(1, CALLS_STEP, ILLEGAL_ADDRESS, 0) > 20);
    assert_true(lose_at(1, CALLS_STEP, ILLEGAL_ADDRESS, ZARR_DEVICE_CUDA) > 20);
    assert_true(lose_at(1, 1, ILLEGAL_ADDRESS, ZARR_DEVICE_CUDA_HOST) > 2);
}

/* All that cuda.h says of: the process must be relaunched. */
static void test_sticky(void **state)
{
    static const int all[] = {214, 220, 226, 702, 710, 714, 715,
                              716, 717, 718, 719, 721, 810, 911};

    (void)state;
    if (!is_fake())
        skip();
    for (size_t i = 0; i < sizeof all / sizeof *all; i += ERRORS_STEP)
        assert_true(lose_at(3, 40, all[i], 0) > 40);
}

static int part_fork(void)
{
    const struct kind *kind = &kinds[6];
    zarr_array *a;
    zarr_memory mem;
    zarr_tensor t;
    int32_t type, id;
    int how = 0;
    pid_t child;

    begin_context(NULL, NULL);
    a = make_array(kind, elements);
    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, N * item_bytes(kind), &err));
    t = whole_tensor(&mem);
    EXPECT(zarr_array_read(a, NULL, &t, NULL, &err) == ZARR_OK);
    child = fork();
    if (child == 0) {
        zarr_memory_classify(ctx, elements, &type,
                             &id); /* without a call of the driver */
        EXPECT(type == ZARR_DEVICE_CPU);
        EXPECT(zarr_array_read(a, NULL, &t, NULL, &err) == ZARR_ERR_DEVICE);
        EXPECT(strstr(err.message, "spawn"));
        zarr_tensor_host(&t, NULL, got, sizeof got, 2, t.shape);
        EXPECT(zarr_array_read(a, NULL, &t, NULL, &err) == ZARR_OK);
        zarr_memory_free(ctx, &mem);
        zarr_array_free(a);
        end_context();
        exit(0);
    }
    EXPECT(waitpid(child, &how, 0) == child && how == 0);
    EXPECT(zarr_array_read(a, NULL, &t, NULL, &err) == ZARR_OK);
    fetch(got, &mem, N * item_bytes(kind));
    EXPECT(memcmp(got, elements, N * item_bytes(kind)) == 0);
    zarr_memory_free(ctx, &mem);
    zarr_array_free(a);
    end_context();
    return 0;
}

static void test_fork(void **state)
{
    (void)state;
    if (!HAS_FORK)
        skip();
    run_part("fork", "0", NULL, NULL);
    if (is_fake()) /* the driver's own forks do not wait for its callers */
        run_part("plain", "0", "FAKECUDA_FORKS", "1");
}

/* The process ends while a context and memory are there, and threads of the library have
 * called the driver: they do not end after it. */
static int part_exit(void)
{
    zarr_request *request;
    zarr_array *a;
    zarr_memory mem;
    zarr_tensor t;

    begin_context(NULL, NULL);
    a = make_array(&kinds[6], elements);
    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, sizeof elements, &err));
    t = whole_tensor(&mem);
    EXPECT(zarr_array_read_submit(&request, a, NULL, &t, NULL, &err) == ZARR_OK);
    EXPECT(zarr_request_wait(request, ZARR_WAIT_FOREVER, NULL, &err) == ZARR_OK);
    zarr_request_free(request);
    EXPECT(!is_fake() || DRIVER(number_fn, "fakecuda_threads")() > 1);
    exit(0);
}

static void test_exit(void **state)
{
    (void)state;
    run_part("exit", "0", NULL, NULL);
}

/* ---- no device -------------------- */

static int show_device(void *user, const zarr_registry_item *item)
{
    const char *want = user;

    if (strcmp(item->name, "cuda") == 0)
        EXPECT(strstr(item->detail, want));
    return 0;
}

static int show_mig(void *none, const zarr_registry_item *item)
{
    (void)none;
    if (strcmp(item->name, "cuda:1") == 0)
        EXPECT(strstr(item->detail, "(MIG-11111111-1111-1111-1111-111111111111)"));
    return 0;
}

/* The plug-in can be loaded, and each call says what is missing. */
static int part_none(const char *want)
{
    char text[64];
    int32_t type = 0, id = 0;
    zarr_memory mem;

    (void)snprintf(text, sizeof text, "%s", want);
    only_plugin();
    EXPECT(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, 64, &err) ==
           ZARR_ERR_UNSUPPORTED);
    EXPECT(strstr(err.message, want));
    EXPECT(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA_HOST, 0, 64, &err) ==
           ZARR_ERR_UNSUPPORTED);
    EXPECT(strstr(err.message, want));
    EXPECT(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA_MANAGED, 0, 64, &err) ==
           ZARR_ERR_UNSUPPORTED);
    EXPECT(strstr(err.message, want));
    EXPECT(zarr_memory_parse(ctx, "cuda:GPU-1", &type, &id, &err) ==
           ZARR_ERR_UNSUPPORTED);
    EXPECT(strstr(err.message, want));
    zarr_memory_classify(ctx, elements, &type, &id);
    EXPECT(type == ZARR_DEVICE_CPU);
    EXPECT(zarr_context_list(ctx, ZARR_REGISTRY_DEVICE, show_device, text, &err) ==
           ZARR_OK);
    zarr_context_free(ctx);
    return 0;
}

static void test_none(void **state)
{
    (void)state;
    if (!is_fake())
        skip();
    run_part("none", "no device", "FAKECUDA_DEVICES", "0");
    run_part("none", "too old: it has CUDA 10.2", "FAKECUDA_VERSION", "10020");
    run_part("none", "no libcuda.so.1", "LD_LIBRARY_PATH", "/nonexistent");
}

/* The default memory is a device with a name, which ZARRC_MEMORY has. */
static int part_named(void)
{
    int32_t type = 0, number = -1;
    zarr_array *a;

    begin_context(NULL, NULL);
    EXPECT(zarr_context_list(ctx, ZARR_REGISTRY_DEVICE, show_mig, NULL, &err) == ZARR_OK);
    a = make_array(&kinds[6], elements);
    zarr_array_memory(a, &type, &number);
    EXPECT(type == ZARR_DEVICE_CUDA && number == 1);
    zarr_array_free(a);
    end_context();
    return 0;
}

static void test_named(void **state)
{
    (void)state;
    if (!is_fake())
        skip();
    assert_int_equal(setenv("FAKECUDA_MIG", "1", 1), 0);
    run_part("named", "0", "ZARRC_MEMORY", "cuda:MIG-11111111-1111");
    assert_int_equal(unsetenv("FAKECUDA_MIG"), 0);
}

/* A device without memory pools. */
static int part_plain(void)
{
    zarr_array *a;
    zarr_memory mem;

    begin_context(NULL, NULL);
    a = make_array(&kinds[6], elements);
    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, sizeof elements, &err));
    EXPECT(read_and_write(a, &mem) == ZARR_OK);
    zarr_memory_free(ctx, &mem);
    zarr_array_free(a);
    end_context();
    EXPECT(DRIVER(number_fn, "fakecuda_blocks")() == 0);
    return 0;
}

static void test_without_pools(void **state)
{
    (void)state;
    if (!is_fake())
        skip();
    run_part("plain", "0", "FAKECUDA_POOLS", "0");
    run_part("plain", "0", "FAKECUDA_SEED", "0");
    run_part("plain", "0", "FAKECUDA_SEED", "77");
}

/* Machine code of kernels is used where there is some and the driver takes it, else PTX.
 */
static int part_image(int fatbin)
{
    EXPECT(part_plain() == 0);
    EXPECT(DRIVER(int_fn, "fakecuda_fatbin")() == fatbin);
    return 0;
}

static void test_image(void **state)
{
    (void)state;
    if (!is_fake())
        skip();
    run_part("image", "0", NULL, NULL);
#if defined(FATBIN_PLUGIN)
    assert_int_equal(setenv("FAKECUDA_FATBIN", "0", 1), 0);
    run_part("image", "0", "PORT_OTHER_PLUGIN", FATBIN_PLUGIN);
    assert_int_equal(unsetenv("FAKECUDA_FATBIN"), 0);
    run_part("image", "1", "PORT_OTHER_PLUGIN", FATBIN_PLUGIN);
#endif
}

static int run_as_part(const char *part, const char *argument)
{
    if (strcmp(part, "lost") == 0)
        return part_lost(argument);
    if (strcmp(part, "fork") == 0)
        return part_fork();
    if (strcmp(part, "exit") == 0)
        return part_exit();
    if (strcmp(part, "plain") == 0)
        return part_plain();
    if (strcmp(part, "image") == 0)
        return part_image(argument[0] == '1');
    if (strcmp(part, "named") == 0)
        return part_named();
    return part_none(argument);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_lost),      cmocka_unit_test(test_sticky),
        cmocka_unit_test(test_fork),      cmocka_unit_test(test_exit),
        cmocka_unit_test(test_none),      cmocka_unit_test(test_without_pools),
        cmocka_unit_test(test_named),     cmocka_unit_test(test_image),
    };

    if (argc == 3)
        return run_as_part(argv[1], argv[2]);
    begin_context(NULL, NULL); /* ends with 77 without a GPU */
    end_context();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
