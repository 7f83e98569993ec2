/*
 * fakecuda/calls.c - the driver itself: start, devices, contexts, and failures that a
 * test asked for.
 */
#include "fakecuda.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STACK_MAX = 16
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int started, forked;
static struct CUctx_st contexts[DEVICES_MAX];
static _Thread_local CUcontext stack[STACK_MAX];
static _Thread_local int depth;
static _Thread_local CUstreamCaptureMode capture_mode; /* 0: global */
static pthread_key_t of_thread; /* data of a thread, which its end frees */
static uint64_t threads;        /* that have such data */
static int gone;                /* the process exits, and the driver has ended */

/* What a test asked for. */
static struct {
    uint64_t calls, fail_at;
    CUresult result;
    uint64_t after_loss; /* calls on a broken context */
    char failed[64];
} test;

void fake_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

void fake_fault(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)fputs("fakecuda: ", stderr);
    (void)vfprintf(stderr, fmt, args);
    (void)fputs("\n", stderr);
    va_end(args);
    abort();
}

uint64_t fake_setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

CUcontext fake_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

CUcontext fake_context(int number)
{
    return &contexts[number];
}

static int n_devices(void)
{
    const uint64_t n = fake_setting("FAKECUDA_DEVICES", 2);

    return n < DEVICES_MAX ? (int)n : DEVICES_MAX;
}

/* Errors after which a context cannot be used, as cuda.h of CUDA 13.0 says of them. */
static int is_sticky(CUresult rc)
{
    static const CUresult all[] = {214, 220, 226, 700, 702, 710, 714, 715,
                                   716, 717, 718, 719, 721, 810, 911};
    size_t i = 0;

    while (i < sizeof all / sizeof *all && all[i] != rc)
        i++;
    return i < sizeof all / sizeof *all;
}

static CUresult count_call(const char *name, CUcontext c)
{
    if (c && c->broken) {
        test.after_loss++;
        (void)fprintf(stderr, "fakecuda: %s on a device that is lost\n", name);
        return c->broken;
    }
    if (++test.calls != test.fail_at)
        return CUDA_SUCCESS;
    (void)snprintf(test.failed, sizeof test.failed, "%s", name);
    if (c && is_sticky(test.result))
        c->broken = test.result;
    return test.result;
}

static void thread_ends(void *data)
{
    (void)data;
    fake_lock();
    if (gone)
        fake_fault("a thread ends while the process exits, when the driver has ended");
    threads--;
    fake_unlock();
}

/* With the address sanitizer, threads of the library end, for its leak checker. */
static void driver_ends(void)
{
#if !defined(__SANITIZE_ADDRESS__)
    fake_lock();
    gone = 1;
    fake_unlock();
#endif
}

uint64_t fakecuda_threads(void)
{
    uint64_t n;

    fake_lock();
    n = threads;
    fake_unlock();
    return n;
}

CUresult fake_call(const char *name, CUstream s)
{
    CUcontext c = s ? fake_stream_context(s) : fake_current();

    if (started && !pthread_getspecific(of_thread)) {
        threads++;
        (void)pthread_setspecific(of_thread, &of_thread);
    }

    if (forked)
        fake_fault("%s in the child of a fork", name);
    if (!started)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!fake_current() && strcmp(name, "cuPointerGetAttributes") != 0)
        return 201; /* no context */
    if (c && c->retained == 0)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return count_call(name, c);
}

static void in_child(void)
{
    forked = started;
}

CUresult fake_unsafe(void)
{
    if (capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED || !fake_spoil_captures())
        return CUDA_SUCCESS;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* A matter of the thread, which no error of a device changes. */
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    const CUstreamCaptureMode old = capture_mode;

    capture_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}

/* ---- start and devices -------------------- */

static CUresult global_call(const char *name)
{
    if (forked)
        fake_fault("%s in the child of a fork", name);
    return started ? count_call(name, NULL) : CUDA_ERROR_NOT_INITIALIZED;
}

/* As the driver does to start nvidia-modprobe, if the test wants it. */
static void start_program(void)
{
    const pid_t child = fake_setting("FAKECUDA_FORKS", 0) ? fork() : -1;

    if (child == 0)
        _exit(0);
    if (child > 0)
        (void)waitpid(child, NULL, 0);
}

CUresult cuInit(unsigned flags)
{
    CUresult rc;

    start_program();
    fake_lock();
    rc = flags == 0 ? count_call("cuInit", NULL) : CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS && n_devices() == 0)
        rc = CUDA_ERROR_NO_DEVICE;
    if (rc == CUDA_SUCCESS && !started) {
        started = 1;
        (void)pthread_atfork(NULL, NULL, in_child);
        (void)pthread_key_create(&of_thread, thread_ends);
        (void)atexit(driver_ends);
        for (int i = 0; i < DEVICES_MAX; i++)
            contexts[i].number = i;
    }
    fake_unlock();
    return rc;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = (int)fake_setting("FAKECUDA_VERSION", 13000);
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult rc, const char **text)
{
    *text = rc == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : rc == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : rc == 999                        ? "CUDA_ERROR_UNKNOWN"
            : is_sticky(rc)                    ? "a sticky error"
                                               : NULL;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

#define GLOBAL(name, body)                                                               \
    do {                                                                                 \
        CUresult rc_;                                                                    \
        fake_lock();                                                                     \
        rc_ = global_call(name);                                                         \
        if (rc_ == CUDA_SUCCESS)                                                         \
            rc_ = (body);                                                                \
        fake_unlock();                                                                   \
        return rc_;                                                                      \
    } while (0)

static CUresult set_number(int *out, int value)
{
    *out = value;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *n)
{
    GLOBAL("cuDeviceGetCount", set_number(n, n_devices()));
}

CUresult cuDeviceGet(CUdevice *out, int number)
{
    GLOBAL("cuDeviceGet",
           number < n_devices() ? set_number(out, number) : 101 /* no such device */);
}

static CUresult device_name(char *name, int room, CUdevice d)
{
    (void)snprintf(name, (size_t)room, "Fake GPU %d%s", d,
                   fake_setting("FAKECUDA_MIG", 0) ? " MIG 1g.10gb" : "");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int room, CUdevice d)
{
    GLOBAL("cuDeviceGetName", device_name(name, room, d));
}

static CUresult device_uuid(CUuuid *out, CUdevice d)
{
    memset(out->bytes, 0x10 + d, sizeof out->bytes);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice d)
{
    GLOBAL("cuDeviceGetUuid", device_uuid(out, d));
}

static CUresult attribute(int *out, CUdevice_attribute which)
{
    if (which == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)
        *out = 1;
    else if (which == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
        *out = fake_setting("FAKECUDA_POOLS", 1) != 0;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute which, CUdevice d)
{
    (void)d;
    GLOBAL("cuDeviceGetAttribute", attribute(out, which));
}

static CUresult device_total(size_t *out)
{
    *out = fake_setting("FAKECUDA_BYTES", 256 << 20);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice d)
{
    (void)d;
    GLOBAL("cuDeviceTotalMem", device_total(out));
}

/* ---- contexts -------------------- */

static CUresult retain(CUcontext *out, CUdevice d)
{
    contexts[d].retained++;
    *out = &contexts[d];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice d)
{
    start_program();
    GLOBAL("cuDevicePrimaryCtxRetain", retain(out, d));
}

static CUresult release(CUdevice d)
{
    if (contexts[d].retained == 0)
        fake_fault("a context is released twice");
    contexts[d].retained--;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d)
{
    GLOBAL("cuDevicePrimaryCtxRelease", release(d));
}

static CUresult current(CUcontext *out)
{
    *out = fake_current();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
    GLOBAL("cuCtxGetCurrent", current(out));
}

static CUresult push(CUcontext c)
{
    if (!c || c->retained == 0)
        return 201; /* no context */
    if (depth == STACK_MAX)
        fake_fault("contexts are pushed and not popped");
    stack[depth++] = c;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext c)
{
    GLOBAL("cuCtxPushCurrent", push(c));
}

/* Not one of the calls that fail: what is current is the thread's, whatever happened. */
CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    if (depth == 0)
        return 201;
    *out = stack[--depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext c)
{
    depth = 0;
    return c ? cuCtxPushCurrent_v2(c) : CUDA_SUCCESS;
}

static CUresult wait_all(void)
{
    fake_drain(NULL);
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    FAKE_CALL("cuCtxSynchronize", NULL, wait_all());
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    static char pools[DEVICES_MAX];
    const int id = props->location.id;

    *out = (void *)&pools[id];
    GLOBAL("cuMemPoolCreate", props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                                      props->location.type == CU_MEM_LOCATION_TYPE_DEVICE
                                  ? CUDA_SUCCESS
                                  : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    GLOBAL("cuMemPoolDestroy", pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- for tests -------------------- */

void fakecuda_fail(uint64_t k, int result)
{
    fake_lock();
    test.fail_at = k ? test.calls + k : 0;
    test.result = result;
    test.failed[0] = '\0';
    fake_unlock();
}

const char *fakecuda_failed(void)
{
    return test.failed;
}

uint64_t fakecuda_calls(void)
{
    return test.calls;
}

uint64_t fakecuda_after_loss(void)
{
    return test.after_loss;
}

int fakecuda_depth(void)
{
    return depth;
}
