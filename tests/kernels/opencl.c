/*
 * tests/kernels/opencl.c - the kernels on the first OpenCL device, from the text that the
 * build made. Memory behind each buffer is checked: no kernel writes there.
 */
#include "runner.h"

#if defined(TESTS_OPENCL)
#    define CL_TARGET_OPENCL_VERSION 120
#    include <CL/cl.h>

#    include <stdio.h>

#    include "../opencl_alive.h"
#    include "text.h"

enum {
    GUARD = 64 /* bytes behind a buffer */
};
struct opencl {
    cl_context context;
    cl_command_queue queue;
    cl_program program;
};

static void must(cl_int rc, const char *what)
{
    if (rc != CL_SUCCESS)
        fail_msg("OpenCL: %s: %d", what, rc);
}

static int build(struct opencl *o, cl_device_id device, uint32_t lanes)
{
    const char *source = (const char *)kernels_opencl;
    char options[64], log[4000] = "";
    cl_int rc;

    (void)snprintf(options, sizeof options, "-cl-std=CL1.2 -DK_LANES=%u%s", lanes,
                   getenv("ZARR_TEST_FEW") ? " -cl-opt-disable" : "");
    o->program = clCreateProgramWithSource(o->context, 1, &source, NULL, &rc);
    if (rc == CL_SUCCESS)
        rc = clBuildProgram(o->program, 1, &device, options, NULL, NULL);
    if (rc == CL_SUCCESS)
        return 1;
    (void)clGetProgramBuildInfo(o->program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1,
                                log, NULL);
    (void)fprintf(stderr, "OpenCL: %d\n%s\n", rc, log);
    return 0;
}

struct opencl *opencl_open(uint32_t lanes)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int rc;
    struct opencl *o = NULL;

    if (!opencl_is_alive()) {
        puts("without OpenCL: " OPENCL_ABORTS);
        return NULL;
    }
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS)
        return NULL;
    o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->context = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);
    if (rc == CL_SUCCESS)
        o->queue = clCreateCommandQueue(o->context, device, 0, &rc);
    if (rc != CL_SUCCESS || !build(o, device, lanes))
        exit(1); /* a device is there, and the kernels do not compile for it */
    return o;
}

void opencl_close(struct opencl *o)
{
    (void)clReleaseProgram(o->program);
    (void)clReleaseCommandQueue(o->queue);
    (void)clReleaseContext(o->context);
    free(o);
}

static cl_mem upload(const struct opencl *o, const struct argument *a)
{
    uint8_t *bytes = block((size_t)a->n + GUARD);
    cl_int rc;
    cl_mem m;

    memcpy(bytes, a->bytes, (size_t)a->n);
    memset(bytes + a->n, 0xA5, GUARD);
    m = clCreateBuffer(o->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                       (size_t)a->n + GUARD, bytes, &rc);
    must(rc, "buffer");
    free(bytes);
    return m;
}

static void download(const struct opencl *o, cl_mem m, const struct argument *a)
{
    uint8_t guard[GUARD];

    must(clEnqueueReadBuffer(o->queue, m, CL_TRUE, a->n, GUARD, guard, 0, NULL, NULL),
         "read");
    for (size_t i = 0; i < GUARD; i++)
        if (guard[i] != 0xA5)
            fail_msg("OpenCL: byte %zu behind a buffer of %zu was written", i,
                     (size_t)a->n);
    if (a->n)
        must(clEnqueueReadBuffer(o->queue, m, CL_TRUE, 0, (size_t)a->n, a->bytes, 0, NULL,
                                 NULL),
             "read");
    must(clReleaseMemObject(m), "release");
}

void opencl_launch(struct opencl *o, const char *kernel, uint64_t items, uint32_t group,
                   const struct argument arguments[ARGUMENTS_MOST])
{
    const size_t local = group ? group : 64;
    const size_t global = ((size_t)items + local - 1) / local * local;
    cl_mem buffers[ARGUMENTS_MOST] = {NULL};
    cl_int rc;
    cl_kernel k = clCreateKernel(o->program, kernel, &rc);
    cl_uint n = 0;

    must(rc, kernel);
    must(clGetKernelInfo(k, CL_KERNEL_NUM_ARGS, sizeof n, &n, NULL), kernel);
    for (cl_uint i = 0; i < n; i++) {
        const struct argument *a = &arguments[i];
        const cl_ulong wide = a->n;
        const cl_uint narrow = (cl_uint)a->n;

        if (a->bytes) {
            const cl_uint same = (cl_uint)first_argument(arguments, (int)i);

            if (same == i)
                buffers[i] = upload(o, a);
            rc = clSetKernelArg(k, i, sizeof buffers[i], &buffers[same]);
        } else {
            rc = a->is_u32 ? clSetKernelArg(k, i, sizeof narrow, &narrow)
                           : clSetKernelArg(k, i, sizeof wide, &wide);
        }
        must(rc, kernel);
    }
    if (items)
        must(clEnqueueNDRangeKernel(o->queue, k, 1, NULL, &global, &local, 0, NULL, NULL),
             kernel);
    must(clFinish(o->queue), kernel);
    for (cl_uint i = 0; i < n; i++)
        if (buffers[i])
            download(o, buffers[i], &arguments[i]);
    must(clReleaseKernel(k), kernel);
}

#else
struct opencl *opencl_open(uint32_t lanes)
{
    (void)lanes;
    return NULL;
}

void opencl_close(struct opencl *o)
{
    (void)o;
}

void opencl_launch(struct opencl *o, const char *kernel, uint64_t items, uint32_t group,
                   const struct argument arguments[ARGUMENTS_MOST])
{
    (void)o;
    (void)kernel;
    (void)items;
    (void)group;
    (void)arguments;
}
#endif
