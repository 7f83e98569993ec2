/*
 * cuda/foreign.c - what belongs to the application: its streams, and pointers of unknown
 * origin. A stream is a CUstream, or 1 or 2, which both DLPack and CUDA give to the
 * default streams (legacy, and of the thread). Thread class: shared.
 */
#include "device.h"

/* `d` NULL: the context is not that of a device of the plug-in. */
static zarr_status fail_stream(struct cuda_device *d, CUresult rc, zarr_error *err)
{
    static const char what[] = "the application's stream";

    return d ? device_fail(d, err, what, rc) : driver_fail(err, what, rc);
}

static zarr_status refuse_capture(struct cuda_device *d, CUstream s, zarr_error *err)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult rc = cuda.cuStreamIsCapturing(s, &status);

    if ((rc == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE) ||
        (rc >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
         rc <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD))
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               "cuda: the application's stream is capturing a graph, "
                               "which cannot have reads and writes of arrays");
    return rc == CUDA_SUCCESS ? ZARR_OK : fail_stream(d, rc, err);
}

/* A default stream is that of the current context: the application's, if it has one. */
static int is_default(const void *foreign)
{
    return (uintptr_t)foreign == 1 || (uintptr_t)foreign == 2;
}

/* Records an event on the stream, in the stream's own context, and has the lane wait for
 * it. The driver keeps the event until then. */
static CUresult follow(struct cuda_lane *l, CUstream s, CUcontext of)
{
    CUcontext own = NULL;
    CUevent event = NULL;
    CUresult rc = cuda.cuCtxPushCurrent_v2(of);

    if (rc != CUDA_SUCCESS)
        return rc;
    rc = cuda.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (rc == CUDA_SUCCESS)
        rc = cuda.cuEventRecord(event, s);
    (void)cuda.cuCtxPopCurrent_v2(&own);
    if (rc == CUDA_SUCCESS)
        rc = cuda.cuStreamWaitEvent(l->stream, event, 0);
    if (event && !driver_is_sticky(rc))
        (void)cuda.cuEventDestroy_v2(event);
    return rc;
}

zarr_status foreign_order(struct cuda_lane *l, void *foreign, zarr_error *err)
{
    struct cuda_device *d = l->device;
    CUstream s = foreign;
    CUcontext of = d->context;
    struct place was;
    zarr_status st = device_enter(d, &was, err);
    CUresult rc = CUDA_SUCCESS;

    if (st != ZARR_OK)
        return st;
    st = refuse_capture(d, s, err);
    if (st == ZARR_OK && !is_default(foreign))
        rc = cuda.cuStreamGetCtx(s, &of);
    if (st == ZARR_OK && rc == CUDA_SUCCESS && of != d->context) {
        rc = follow(l, s, of);
    } else if (st == ZARR_OK && rc == CUDA_SUCCESS) {
        rc = cuda.cuEventRecord(l->event, s);
        if (rc == CUDA_SUCCESS)
            rc = cuda.cuStreamWaitEvent(l->stream, l->event, 0);
    }
    if (rc != CUDA_SUCCESS)
        st = fail_stream(d, rc, err);
    device_leave(&was);
    return st;
}

zarr_status foreign_wait(void *foreign, zarr_error *err)
{
    CUcontext now = NULL;
    struct cuda_device *d = NULL;
    struct place was = {0};
    zarr_status st = driver_start(err);
    CUresult rc;

    if (st != ZARR_OK)
        return st;
    rc = cuda.cuCtxGetCurrent(&now);
    if (rc != CUDA_SUCCESS)
        return fail_stream(NULL, rc, err);
    if (now) {
        d = device_of_context(now);
        if (d && atomic_load(&d->lost))
            return device_is_lost(d, err);
    } else {
        st = device_use(0, &d, &was, err);
        if (st != ZARR_OK)
            return st;
    }
    st = refuse_capture(d, foreign, err);
    if (st == ZARR_OK) {
        rc = cuda.cuStreamSynchronize(foreign);
        if (rc != CUDA_SUCCESS)
            st = fail_stream(d, rc, err);
    }
    device_leave(&was);
    return st;
}

int memory_classify(void *self, const void *pointer, int32_t *device_type,
                    int32_t *device_id)
{
    unsigned type = 0, managed = 0;
    int number = 0;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &managed, &number};

    (void)self;
    if (!driver_is_loaded() ||
        cuda.cuPointerGetAttributes(3, which, values, (CUdeviceptr)(uintptr_t)pointer) !=
            CUDA_SUCCESS)
        return 0;
    if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE && !managed)
        return 0;
    /* As in DLPack, pinned and managed memory have no device. */
    *device_type = managed                      ? ZARR_DEVICE_CUDA_MANAGED
                   : type == CU_MEMORYTYPE_HOST ? ZARR_DEVICE_CUDA_HOST
                                                : ZARR_DEVICE_CUDA;
    *device_id = *device_type == ZARR_DEVICE_CUDA ? number : 0;
    return 1;
}
