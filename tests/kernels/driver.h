/*
 * tests/kernels/driver.h - the calls of NVIDIA's driver that the tests and the benchmark
 * of kernels use, found in libcuda.so.1 at run time. The declarations are our own, so
 * neither needs anything of CUDA to be built.
 */
#ifndef TESTS_KERNELS_DRIVER_H
#define TESTS_KERNELS_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int cu_result;     /* 0: done */
typedef int cu_device;     /* a number from 0 */
typedef uint64_t cu_place; /* an address in device memory */
typedef void *cu_context, *cu_module, *cu_function, *cu_stream, *cu_event;

/* name here, name in the library, parameters */
#define DRIVER_CALLS(CALL)                                                               \
    CALL(init, "cuInit", (unsigned flags))                                               \
    CALL(driver_version, "cuDriverGetVersion", (int *version))                           \
    CALL(error_name, "cuGetErrorName", (cu_result rc, const char **name))                \
    CALL(device_count, "cuDeviceGetCount", (int *n))                                     \
    CALL(device_get, "cuDeviceGet", (cu_device * device, int number))                    \
    CALL(device_name, "cuDeviceGetName", (char *name, int room, cu_device device))       \
    CALL(device_number, "cuDeviceGetAttribute",                                          \
         (int *value, int what, cu_device device))                                       \
    CALL(context_retain, "cuDevicePrimaryCtxRetain", (cu_context * c, cu_device device)) \
    CALL(context_release, "cuDevicePrimaryCtxRelease_v2", (cu_device device))            \
    CALL(context_use, "cuCtxSetCurrent", (cu_context c))                                 \
    CALL(wait_all, "cuCtxSynchronize", (void))                                           \
    CALL(module_load, "cuModuleLoadDataEx",                                              \
         (cu_module * m, const void *image, unsigned n, int *options, void **values))    \
    CALL(module_unload, "cuModuleUnload", (cu_module m))                                 \
    CALL(function_get, "cuModuleGetFunction",                                            \
         (cu_function * f, cu_module m, const char *name))                               \
    CALL(memory_left, "cuMemGetInfo_v2", (size_t * left, size_t * all))                  \
    CALL(alloc, "cuMemAlloc_v2", (cu_place * at, size_t n))                              \
    CALL(free, "cuMemFree_v2", (cu_place at))                                            \
    CALL(host_alloc, "cuMemAllocHost_v2", (void **p, size_t n))                          \
    CALL(host_free, "cuMemFreeHost", (void *p))                                          \
    CALL(up, "cuMemcpyHtoD_v2", (cu_place to, const void *from, size_t n))               \
    CALL(down, "cuMemcpyDtoH_v2", (void *to, cu_place from, size_t n))                   \
    CALL(up_async, "cuMemcpyHtoDAsync_v2",                                               \
         (cu_place to, const void *from, size_t n, cu_stream s))                         \
    CALL(down_async, "cuMemcpyDtoHAsync_v2",                                             \
         (void *to, cu_place from, size_t n, cu_stream s))                               \
    CALL(copy_async, "cuMemcpyDtoDAsync_v2",                                             \
         (cu_place to, cu_place from, size_t n, cu_stream s))                            \
    CALL(set_async, "cuMemsetD8Async",                                                   \
         (cu_place at, uint8_t byte, size_t n, cu_stream s))                             \
    CALL(launch, "cuLaunchKernel",                                                       \
         (cu_function f, unsigned grid_x, unsigned grid_y, unsigned grid_z,              \
          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,   \
          cu_stream s, void **parameters, void **extra))                                 \
    CALL(stream_open, "cuStreamCreate", (cu_stream * s, unsigned flags))                 \
    CALL(stream_close, "cuStreamDestroy_v2", (cu_stream s))                              \
    CALL(stream_wait, "cuStreamSynchronize", (cu_stream s))                              \
    CALL(event_open, "cuEventCreate", (cu_event * e, unsigned flags))                    \
    CALL(event_close, "cuEventDestroy_v2", (cu_event e))                                 \
    CALL(event_record, "cuEventRecord", (cu_event e, cu_stream s))                       \
    CALL(event_wait, "cuEventSynchronize", (cu_event e))                                 \
    CALL(event_elapsed, "cuEventElapsedTime", (float *ms, cu_event from, cu_event to))

struct driver {
    void *library;
    cu_device device;
    cu_context context;
#define DRIVER_MEMBER(member, name, parameters) cu_result(*member) parameters;
    DRIVER_CALLS(DRIVER_MEMBER)
#undef DRIVER_MEMBER
};

/* Opens the library and the first device; its primary context becomes that of the
 * thread. NULL, or why there is no device. */
const char *driver_open(struct driver *d);
void driver_close(struct driver *d);

/* Loads the kernels: the PTX that the build made, or the file, of PTX or machine code,
 * that KERNELS_IMAGE names. On failure it writes why to standard error. */
cu_result driver_kernels(struct driver *d, cu_module *m);
/* The name that the driver has for an error. */
const char *driver_error(const struct driver *d, cu_result rc);

#endif
