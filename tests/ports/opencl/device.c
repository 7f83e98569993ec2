#include "device.h"
#include "text.h"

#include <pthread.h>
#include <stdlib.h>

struct device {
    cl_context cl;
    cl_device_id id;
    cl_program program;
    pthread_mutex_t mutex; /* of idle */
    struct lane *idle;
    unsigned owners;
};

struct device_counts opencl_counts;
static struct device the_device = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void count(unsigned long *what)
{
    __atomic_fetch_add(what, 1, __ATOMIC_RELAXED);
}

zarr_status cl_failed(zarr_error *err, const char *what, cl_int rc)
{
    const zarr_status st =
        rc == CL_MEM_OBJECT_ALLOCATION_FAILURE || rc == CL_OUT_OF_RESOURCES
            ? ZARR_ERR_NO_MEMORY
            : ZARR_ERR_DEVICE;

    if (err) {
        err->os_code = rc;
        err->os_domain = ZARR_OS_DEVICE;
    }
    return port_host->fail(err, st, "opencl: %s: %d", what, rc);
}

/* ---- the device -------------------- */

static zarr_status program_build(struct device *d, zarr_error *err)
{
    const char *source = (const char *)kernels_opencl;
    char log[400] = "";
    cl_int rc;

    d->program = clCreateProgramWithSource(d->cl, 1, &source, NULL, &rc);
    if (rc != CL_SUCCESS)
        return cl_failed(err, "program", rc);
    rc = clBuildProgram(d->program, 1, &d->id, "-cl-std=CL1.2", NULL, NULL);
    if (rc == CL_SUCCESS)
        return ZARR_OK;
    clGetProgramBuildInfo(d->program, d->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log,
                          NULL);
    return port_host->fail(err, ZARR_ERR_DEVICE, "opencl: %s", log);
}

static void device_release(struct device *d)
{
    while (d->idle) {
        struct lane *l = d->idle;

        d->idle = l->next;
        lane_close(l);
    }
    if (d->program)
        clReleaseProgram(d->program);
    if (d->cl)
        clReleaseContext(d->cl);
    d->program = NULL;
    d->cl = NULL;
}

static zarr_status device_begin(struct device *d, zarr_error *err)
{
    cl_platform_id platform;
    cl_int rc = clGetPlatformIDs(1, &platform, NULL);
    zarr_status st;

    if (rc == CL_SUCCESS)
        rc = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &d->id, NULL);
    if (rc != CL_SUCCESS)
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED, "opencl: no device (%d)", rc);
    d->cl = clCreateContext(NULL, 1, &d->id, NULL, NULL, &rc);
    if (rc != CL_SUCCESS)
        return cl_failed(err, "context", rc);
    st = program_build(d, err);
    if (st != ZARR_OK)
        device_release(d);
    return st;
}

zarr_status device_open(struct device **out, zarr_error *err)
{
    struct device *d = &the_device;
    zarr_status st = ZARR_OK;

    pthread_mutex_lock(&d->mutex);
    if (d->owners == 0)
        st = device_begin(d, err);
    if (st == ZARR_OK)
        d->owners++;
    pthread_mutex_unlock(&d->mutex);
    *out = d;
    return st;
}

void device_close(void)
{
    struct device *d = &the_device;

    pthread_mutex_lock(&d->mutex);
    if (--d->owners == 0)
        device_release(d);
    pthread_mutex_unlock(&d->mutex);
}

struct device *device_get(void)
{
    return &the_device;
}

zarr_status device_describe(const struct device *d, zarr_device_facts *out,
                            zarr_error *err)
{
    cl_ulong bytes = 0;
    cl_int rc = clGetDeviceInfo(d->id, CL_DEVICE_NAME, sizeof out->name, out->name, NULL);

    if (rc == CL_SUCCESS)
        rc =
            clGetDeviceInfo(d->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    out->total_bytes = bytes;
    return rc == CL_SUCCESS ? ZARR_OK : cl_failed(err, "device information", rc);
}

cl_context device_cl(const struct device *d)
{
    return d->cl;
}

/* ---- lanes -------------------- */

zarr_status lane_open(struct device *d, struct lane **out, zarr_error *err)
{
    struct lane *l = calloc(1, sizeof *l);
    cl_int rc;

    *out = NULL;
    if (!l)
        return port_host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a queue");
    l->device = d;
    l->queue = clCreateCommandQueue(d->cl, d->id, 0, &rc);
    for (int k = 0; k < PORT_N_KERNELS && rc == CL_SUCCESS; k++)
        l->kernel[k] = clCreateKernel(d->program, port_kernel_facts[k].name, &rc);
    if (rc != CL_SUCCESS) {
        lane_close(l);
        return cl_failed(err, "queue", rc);
    }
    *out = l;
    return ZARR_OK;
}

void lane_close(struct lane *l)
{
    for (int k = 0; k < PORT_N_KERNELS; k++)
        if (l->kernel[k])
            clReleaseKernel(l->kernel[k]);
    if (l->queue)
        clReleaseCommandQueue(l->queue);
    free(l);
}

zarr_status lane_begin(struct device *d, struct lane **out, zarr_error *err)
{
    pthread_mutex_lock(&d->mutex);
    *out = d->idle;
    if (*out)
        d->idle = (*out)->next;
    pthread_mutex_unlock(&d->mutex);
    return *out ? ZARR_OK : lane_open(d, out, err);
}

zarr_status lane_end(struct lane *l, zarr_status st, zarr_error *err)
{
    struct device *d = l->device;
    const cl_int rc = clFinish(l->queue);

    count(&opencl_counts.waits);
    lane_drop_staged(l);
    if (st == ZARR_OK && rc != CL_SUCCESS)
        st = cl_failed(err, "wait", rc);
    port_finish_comparisons(&l->port, st);
    pthread_mutex_lock(&d->mutex);
    l->next = d->idle;
    d->idle = l;
    pthread_mutex_unlock(&d->mutex);
    return st;
}
