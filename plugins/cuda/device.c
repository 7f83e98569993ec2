/*
 * cuda/device.c - the devices of the process: the primary context of each, its kernels
 * and its memory pool. All contexts of the library share them. A device is opened when it
 * is first used, and its kernels are compiled by the driver when one is first launched.
 * Thread class: shared.
 */
#include "device.h"
#include "kernels/text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    DEVICES_MAX = 256,
    UUID_TEXT = 37
};

pthread_mutex_t devices_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    unsigned holders;
    struct cuda_device *_Atomic open[DEVICES_MAX];
} devices;

/* ---- contexts -------------------- */

zarr_status device_check(struct cuda_device *d, zarr_error *err, const char *what,
                         CUresult rc)
{
    return rc == CUDA_SUCCESS ? ZARR_OK : device_fail(d, err, what, rc);
}

zarr_status device_enter(struct cuda_device *d, struct place *was, zarr_error *err)
{
    CUcontext now = NULL;
    CUresult rc;

    *was = (struct place){.mode = CU_STREAM_CAPTURE_MODE_RELAXED};
    if (!driver_runs())
        return driver_start(err); /* says why */
    if (atomic_load(&d->lost))
        return device_is_lost(d, err);
    rc = cuda.cuCtxGetCurrent(&now);
    if (rc == CUDA_SUCCESS && now != d->context) {
        rc = cuda.cuCtxPushCurrent_v2(d->context);
        was->pushed = rc == CUDA_SUCCESS;
    }
    if (rc == CUDA_SUCCESS) {
        rc = cuda.cuThreadExchangeStreamCaptureMode(&was->mode);
        was->relaxed = rc == CUDA_SUCCESS;
    }
    if (rc == CUDA_SUCCESS)
        return ZARR_OK;
    device_leave(was);
    return device_fail(d, err, "context", rc);
}

void device_leave(const struct place *was)
{
    CUstreamCaptureMode mode = was->mode;
    CUcontext own = NULL;

    if (was->relaxed)
        (void)cuda.cuThreadExchangeStreamCaptureMode(&mode);
    if (was->pushed)
        (void)cuda.cuCtxPopCurrent_v2(&own);
}

void device_give_up(struct cuda_device *d)
{
    int none = 0;

    (void)atomic_compare_exchange_strong(&d->lost, &none, CUDA_ERROR_LAUNCH_FAILED);
}

zarr_status device_end_wait(struct cuda_device *d, CUstream s, CUresult rc,
                            zarr_error *err)
{
    zarr_status st;

    if (rc == CUDA_SUCCESS)
        return ZARR_OK;
    st = device_fail(d, err, "wait", rc);
    if (!atomic_load(&d->lost) && cuda.cuStreamSynchronize(s) != CUDA_SUCCESS)
        device_give_up(d);
    return st;
}

/* ---- kernels -------------------- */

/* One form of the kernels. */
static zarr_status image_load(struct cuda_device *d, const void *image, zarr_error *err)
{
    char log[300] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                              CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    /* The driver takes numbers as pointers. */
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    CUmodule module = NULL;
    CUresult rc = cuda.cuModuleLoadDataEx(&module, image, 2, options, values);
    zarr_status st;

    for (int k = 0; k < PORT_N_KERNELS && rc == CUDA_SUCCESS; k++)
        rc = cuda.cuModuleGetFunction(&d->kernel[k], module, port_kernel_facts[k].name);
    if (rc == CUDA_SUCCESS) {
        d->module = module;
        return ZARR_OK;
    }
    st = device_fail(d, err, "kernels", rc);
    if (log[0])
        st = port_host->fail(err, st, "cuda: kernels: %s", log);
    if (module && !atomic_load(&d->lost))
        (void)cuda.cuModuleUnload(module);
    return st;
}

/* Machine code, unless there is none for this device or the driver refuses it. */
static zarr_status module_load(struct cuda_device *d, zarr_error *err)
{
    zarr_status st = ZARR_ERR_UNSUPPORTED;

    if (kernels_fatbin_bytes > 0)
        st = image_load(d, kernels_fatbin, err);
    if (st != ZARR_OK && kernels_ptx_bytes > 0 && !atomic_load(&d->lost))
        st = image_load(d, kernels_ptx, err);
    return st;
}

zarr_status device_kernels(struct cuda_device *d, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (atomic_load(&d->has_kernels))
        return ZARR_OK;
    if (kernels_ptx_bytes + kernels_fatbin_bytes == 0)
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               "cuda: the plug-in was built without kernels");
    lock_take(&devices_mutex);
    if (!atomic_load(&d->has_kernels))
        st = module_load(d, err);
    if (st == ZARR_OK)
        atomic_store(&d->has_kernels, 1);
    lock_give(&devices_mutex);
    return st;
}

/* ---- opening and closing -------------------- */

/* Memory pools free memory without a wait for the whole device. The pool gives memory
 * that is free back to the device: the library keeps blocks itself. */
static zarr_status pool_open(struct cuda_device *d, zarr_error *err)
{
    const CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->id}};
    int has = 0;
    CUresult rc;

    if (!cuda.cuMemPoolCreate || !cuda.cuMemPoolDestroy || !cuda.cuMemFreeAsync ||
        !cuda.cuMemAllocFromPoolAsync)
        return ZARR_OK;
    rc = cuda.cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                                   d->id);
    if (rc == CUDA_SUCCESS && has)
        rc = cuda.cuMemPoolCreate(&d->pool, &props);
    return device_check(d, err, "memory pool", rc);
}

/* Frees what the device has; its context is current. */
static void device_empty(struct cuda_device *d)
{
    for (struct cuda_lane *l = d->idle, *next; l; l = next) {
        next = l->next;
        lane_free(l);
    }
    for (struct pair *p = d->pairs, *next; p; p = next) {
        next = p->next;
        pair_free(p);
    }
    if (d->module && !atomic_load(&d->lost))
        (void)cuda.cuModuleUnload(d->module);
    if (d->blocks && !atomic_load(&d->lost))
        (void)cuda.cuStreamDestroy_v2(d->blocks);
    if (d->pool && !atomic_load(&d->lost))
        (void)cuda.cuMemPoolDestroy(d->pool);
}

/* After a loss or a fork only host memory is freed, and what the driver has stays. */
static void device_close(struct cuda_device *d)
{
    struct place was;

    if (device_enter(d, &was, NULL) == ZARR_OK) {
        device_empty(d);
        device_leave(&was);
        if (!atomic_load(&d->lost))
            (void)cuda.cuDevicePrimaryCtxRelease_v2(d->id);
    } else {
        atomic_store(&d->lost, CUDA_ERROR_DEINITIALIZED);
        device_empty(d);
    }
    free(d);
}

static zarr_status device_begin(struct cuda_device *d, zarr_error *err)
{
    struct place was;
    zarr_status st;
    CUresult rc = cuda.cuDeviceGet(&d->id, d->number);

    if (rc == CUDA_SUCCESS)
        rc = cuda.cuDevicePrimaryCtxRetain(&d->context, d->id);
    if (rc != CUDA_SUCCESS)
        return device_fail(d, err, "context", rc);
    st = device_enter(d, &was, err);
    if (st != ZARR_OK)
        return st;
    st = pool_open(d, err);
    if (st == ZARR_OK)
        st = device_check(d, err, "stream",
                          cuda.cuStreamCreate(&d->blocks, CU_STREAM_NON_BLOCKING));
    device_leave(&was);
    return st;
}

/* *out is NULL if it fails. */
static zarr_status device_new(int32_t number, struct cuda_device **out, zarr_error *err)
{
    struct cuda_device *d = calloc(1, sizeof *d);
    zarr_status st;

    *out = NULL;
    if (!d)
        return port_host->fail(err, ZARR_ERR_NO_MEMORY, "cuda: no memory for a device");
    d->number = number;
    st = device_begin(d, err);
    if (st == ZARR_OK)
        *out = d;
    else if (d->context)
        device_close(d);
    else
        free(d);
    return st;
}

static zarr_status number_check(int32_t number, zarr_error *err)
{
    const zarr_status st = driver_start(err);

    if (st != ZARR_OK)
        return st;
    if (number < 0 || number >= driver_devices() || number >= DEVICES_MAX)
        return port_host->fail(err, ZARR_ERR_INVALID,
                               "cuda: there is no device %d: the driver shows %d, whose "
                               "numbers begin at 0",
                               (int)number, (int)driver_devices());
    return ZARR_OK;
}

zarr_status device_open(int32_t number, struct cuda_device **out, zarr_error *err)
{
    zarr_status st = number_check(number, err);

    *out = NULL;
    if (st != ZARR_OK)
        return st;
    *out = atomic_load(&devices.open[number]);
    if (*out)
        return atomic_load(&(*out)->lost) ? device_is_lost(*out, err) : ZARR_OK;
    lock_take(&devices_mutex);
    *out = atomic_load(&devices.open[number]);
    if (!*out)
        st = device_new(number, out, err);
    if (*out)
        atomic_store(&devices.open[number], *out);
    lock_give(&devices_mutex);
    return st;
}

zarr_status device_use(int32_t number, struct cuda_device **out, struct place *was,
                       zarr_error *err)
{
    const zarr_status st = device_open(number, out, err);

    return st == ZARR_OK && *out ? device_enter(*out, was, err) : st;
}

struct cuda_device *device_usable(int32_t number)
{
    struct cuda_device *d = NULL;

    if (driver_runs() && number >= 0 && number < DEVICES_MAX)
        d = atomic_load(&devices.open[number]);
    return d && !atomic_load(&d->lost) ? d : NULL;
}

struct cuda_device *device_of_context(CUcontext context)
{
    for (int32_t i = 0; i < driver_devices() && i < DEVICES_MAX; i++) {
        struct cuda_device *d = atomic_load(&devices.open[i]);

        if (d && d->context == context)
            return d;
    }
    return NULL;
}

void devices_hold(void)
{
    lock_take(&devices_mutex);
    devices.holders++;
    lock_give(&devices_mutex);
}

void devices_release(void)
{
    unsigned left;

    lock_take(&devices_mutex);
    left = --devices.holders;
    for (int i = 0; i < DEVICES_MAX && left == 0; i++) {
        struct cuda_device *d = atomic_load(&devices.open[i]);

        if (!d || !driver_runs() || atomic_load(&d->lost))
            continue; /* what is lost stays so as long as the process */
        device_close(d);
        atomic_store(&devices.open[i], NULL);
    }
    lock_give(&devices_mutex);
}

/* ---- memory -------------------- */

zarr_status device_alloc(struct cuda_device *d, uint64_t bytes, CUdeviceptr *out,
                         zarr_error *err)
{
    const size_t n = bytes > 0 ? (size_t)bytes : 1;
    zarr_status st;

    *out = 0;
    if (!d->pool)
        return device_check(d, err, "allocation", cuda.cuMemAlloc_v2(out, n));
    st = device_check(d, err, "allocation",
                      cuda.cuMemAllocFromPoolAsync(out, n, d->pool, d->blocks));
    if (st == ZARR_OK) /* any stream may use it from now on */
        st = device_end_wait(d, d->blocks, cuda.cuStreamSynchronize(d->blocks), err);
    if (st != ZARR_OK) {
        device_free(d, *out);
        *out = 0;
    }
    return st;
}

void device_free(struct cuda_device *d, CUdeviceptr p)
{
    zarr_error err =
        ZARR_ERROR_INIT; /* not read: the result may mark the device as lost */

    if (!p || atomic_load(&d->lost))
        return;
    (void)device_check(d, &err, "free",
                       d->pool ? cuda.cuMemFreeAsync(p, d->blocks)
                               : cuda.cuMemFree_v2(p));
}

/* ---- UUIDs -------------------- */

/* The text of a device's UUID, in `text`; an empty one if the driver does not tell it.
 * That of a part of a device (MIG) is its own. */
static CUresult read_uuid(int32_t number, char text[UUID_TEXT])
{
    CUdevice id = 0;
    CUuuid uuid;
    CUresult rc = cuda.cuDeviceGet(&id, number);
    char *p = text;

    *text = '\0';
    if (rc == CUDA_SUCCESS && cuda.cuDeviceGetUuid_v2)
        rc = cuda.cuDeviceGetUuid_v2(&uuid, id);
    for (int i = 0; i < 16 && rc == CUDA_SUCCESS && cuda.cuDeviceGetUuid_v2; i++)
        p += snprintf(p, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                      (unsigned)(unsigned char)uuid.bytes[i]);
    return rc;
}

/* nvidia-smi and CUDA_VISIBLE_DEVICES name devices so. */
static const char *uuid_prefix(const char *name)
{
    return strstr(name, " MIG ") ? "MIG-" : "GPU-";
}

zarr_status device_find(void *self, const char *text, int32_t *number, zarr_error *err)
{
    const int named = strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0;
    const char *id = named ? text + 4 : "";
    zarr_status st = driver_start(err);
    int found = 0;

    (void)self;
    for (int32_t i = 0; *id && st == ZARR_OK && i < driver_devices(); i++) {
        char uuid[UUID_TEXT];
        const CUresult rc = read_uuid(i, uuid);

        if (rc != CUDA_SUCCESS)
            st = driver_fail(err, "UUID", rc);
        else if (strncasecmp(uuid, id, strlen(id)) == 0) {
            *number = i;
            found++;
        }
    }
    if (st != ZARR_OK || found == 1)
        return st;
    if (found > 1)
        return port_host->fail(err, ZARR_ERR_INVALID,
                               "cuda: %d devices have a UUID that begins as %s", found,
                               text);
    return port_host->fail(err, ZARR_ERR_INVALID,
                           "cuda: %s is no device that the driver shows: they have "
                           "numbers, and names that begin with GPU- or MIG-",
                           text);
}

/* ---- facts -------------------- */

zarr_status device_describe(int32_t number, zarr_device_facts *out, zarr_error *err)
{
    struct cuda_device *d = device_usable(number);
    size_t total = 0, free_now = 0;
    char uuid[UUID_TEXT];
    CUdevice id = 0;
    struct place was;
    zarr_status st = number_check(number, err);
    CUresult rc;

    if (st != ZARR_OK)
        return st;
    rc = cuda.cuDeviceGet(&id, number);
    if (rc == CUDA_SUCCESS)
        rc = cuda.cuDeviceGetName(out->name, 80, id);
    if (rc == CUDA_SUCCESS)
        rc = cuda.cuDeviceTotalMem_v2(&total, id);
    if (rc != CUDA_SUCCESS)
        return driver_fail(err, "description", rc);
    out->name[79] = '\0';
    out->total_bytes = total;
    if (read_uuid(number, uuid) == CUDA_SUCCESS && uuid[0]) {
        const size_t at = strlen(out->name);

        (void)snprintf(out->name + at, sizeof out->name - at, " (%s%s)",
                       uuid_prefix(out->name), uuid);
    }
    if (d && device_enter(d, &was, NULL) == ZARR_OK) { /* a context costs much memory */
        if (cuda.cuMemGetInfo_v2(&free_now, &total) == CUDA_SUCCESS)
            out->free_bytes = free_now;
        device_leave(&was);
    }
    return ZARR_OK;
}
