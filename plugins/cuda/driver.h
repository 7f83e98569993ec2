/*
 * cuda/driver.h - the part of CUDA's driver API that the plug-in uses, in declarations of
 * its own: no header and no library of CUDA is needed to build it. Each row of
 * CUDA_DRIVER_CALLS is a function of libcuda.so.1, by the name that the library exports.
 * A name with its version never changes its meaning, so the names are looked up as they
 * are. Where cuda.h is installed, tests/ports/cuda/check_driver.c compares everything
 * with it.
 *
 * Spec: CUDA driver API reference manual.
 */
#ifndef CUDA_DRIVER_H
#define CUDA_DRIVER_H

#include <stddef.h>

/* X(name, value): results and flags. */
#define CUDA_DRIVER_NUMBERS(X)                                                           \
    X(CUDA_SUCCESS, 0)                                                                   \
    X(CUDA_ERROR_INVALID_VALUE, 1)                                                       \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                       \
    X(CUDA_ERROR_NOT_INITIALIZED, 3)                                                     \
    X(CUDA_ERROR_DEINITIALIZED, 4)                                                       \
    X(CUDA_ERROR_STUB_LIBRARY, 34)                                                       \
    X(CUDA_ERROR_NO_DEVICE, 100)                                                         \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                                 \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                                              \
    X(CUDA_ERROR_NOT_READY, 600)                                                         \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                   \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                    \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                              \
    X(CUDA_ERROR_ASSERT, 710)                                                            \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                              \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                                                     \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                                            \
    X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)                                    \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                        \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                                       \
    X(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 89)                                 \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)                                   \
    X(CU_EVENT_BLOCKING_SYNC, 1)                                                         \
    X(CU_EVENT_DISABLE_TIMING, 2)                                                        \
    X(CU_JIT_ERROR_LOG_BUFFER, 5)                                                        \
    X(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                                             \
    X(CU_MEMHOSTALLOC_PORTABLE, 1)                                                       \
    X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                                                  \
    X(CU_MEM_ATTACH_GLOBAL, 1)                                                           \
    X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                                                    \
    X(CU_MEMORYTYPE_HOST, 1)                                                             \
    X(CU_MEMORYTYPE_DEVICE, 2)                                                           \
    X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                               \
    X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                                                \
    X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                                            \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                                 \
    X(CU_STREAM_NON_BLOCKING, 1)                                                         \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)

/* Those that came with CUDA 11.4 to 13.0. */
#define CUDA_DRIVER_NEWER_NUMBERS(X)                                                     \
    X(CUDA_ERROR_CONTAINED, 226)                                                         \
    X(CUDA_ERROR_TENSOR_MEMORY_LEAK, 721)                                                \
    X(CUDA_ERROR_MPS_CLIENT_TERMINATED, 810)                                             \
    X(CUDA_ERROR_EXTERNAL_DEVICE, 911)

#if !defined(CUDA_DRIVER_OF_CUDA_H) /* else cuda.h has these */
enum {
#    define CUDA_DRIVER_ENUM(name, value) name = value,
    CUDA_DRIVER_NUMBERS(CUDA_DRIVER_ENUM) CUDA_DRIVER_NEWER_NUMBERS(CUDA_DRIVER_ENUM)
#    undef CUDA_DRIVER_ENUM
};
typedef int CUresult;
typedef int CUdevice;
typedef int CUdevice_attribute;
typedef int CUpointer_attribute;
typedef int CUjit_option;
typedef int CUstreamCaptureMode;
typedef int CUstreamCaptureStatus;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;
typedef struct CUmemLocation_st {
    int type, id;
} CUmemLocation;
typedef struct CUmemPoolProps_st {
    int allocType, handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned char reserved[56];
} CUmemPoolProps;
#endif

/* X(name, arguments): the driver must have it. */
#define CUDA_DRIVER_CALLS(X)                                                             \
    X(cuInit, (unsigned flags))                                                          \
    X(cuDriverGetVersion, (int *version))                                                \
    X(cuGetErrorName, (CUresult rc, const char **text))                                  \
    X(cuDeviceGetCount, (int *n))                                                        \
    X(cuDeviceGet, (CUdevice * out, int number))                                         \
    X(cuDeviceGetName, (char *name, int room, CUdevice d))                               \
    X(cuDeviceGetAttribute, (int *out, CUdevice_attribute which, CUdevice d))            \
    X(cuDeviceTotalMem_v2, (size_t * out, CUdevice d))                                   \
    X(cuDevicePrimaryCtxRetain, (CUcontext * out, CUdevice d))                           \
    X(cuDevicePrimaryCtxRelease_v2, (CUdevice d))                                        \
    X(cuCtxGetCurrent, (CUcontext * out))                                                \
    X(cuCtxPushCurrent_v2, (CUcontext c))                                                \
    X(cuCtxPopCurrent_v2, (CUcontext * out))                                             \
    X(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total))                            \
    X(cuMemAlloc_v2, (CUdeviceptr * out, size_t bytes))                                  \
    X(cuMemFree_v2, (CUdeviceptr p))                                                     \
    X(cuMemAllocManaged, (CUdeviceptr * out, size_t bytes, unsigned flags))              \
    X(cuMemHostAlloc, (void **out, size_t bytes, unsigned flags))                        \
    X(cuMemFreeHost, (void *p))                                                          \
    X(cuPointerGetAttributes,                                                            \
      (unsigned n, CUpointer_attribute *which, void **data, CUdeviceptr p))              \
    X(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s))       \
    X(cuMemcpyPeerAsync, (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,       \
                          CUcontext src_context, size_t bytes, CUstream s))              \
    X(cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t n, CUstream s))     \
    X(cuStreamCreate, (CUstream * out, unsigned flags))                                  \
    X(cuStreamDestroy_v2, (CUstream s))                                                  \
    X(cuStreamSynchronize, (CUstream s))                                                 \
    X(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned flags))                        \
    X(cuStreamIsCapturing, (CUstream s, CUstreamCaptureStatus * status))                 \
    X(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode))                   \
    X(cuStreamGetCtx, (CUstream s, CUcontext * out))                                     \
    X(cuEventCreate, (CUevent * out, unsigned flags))                                    \
    X(cuEventRecord, (CUevent e, CUstream s))                                            \
    X(cuEventQuery, (CUevent e))                                                         \
    X(cuEventSynchronize, (CUevent e))                                                   \
    X(cuEventDestroy_v2, (CUevent e))                                                    \
    X(cuModuleLoadDataEx, (CUmodule * out, const void *image, unsigned n,                \
                           CUjit_option *options, void **values))                        \
    X(cuModuleUnload, (CUmodule m))                                                      \
    X(cuModuleGetFunction, (CUfunction * out, CUmodule m, const char *name))             \
    X(cuLaunchKernel,                                                                    \
      (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,    \
       unsigned bz, unsigned shared_bytes, CUstream s, void **arguments, void **extra))

/* Newer ones, which may be NULL. */
#define CUDA_DRIVER_NEWER(X)                                                             \
    X(cuDeviceGetUuid_v2, (CUuuid * out, CUdevice d))                                    \
    X(cuMemPoolCreate, (CUmemoryPool * out, const CUmemPoolProps *props))                \
    X(cuMemPoolDestroy, (CUmemoryPool pool))                                             \
    X(cuMemAllocFromPoolAsync,                                                           \
      (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream s))                  \
    X(cuMemFreeAsync, (CUdeviceptr p, CUstream s))

struct cuda_driver {
#define CUDA_DRIVER_MEMBER(name, arguments) CUresult(*name) arguments;
    CUDA_DRIVER_CALLS(CUDA_DRIVER_MEMBER)
    CUDA_DRIVER_NEWER(CUDA_DRIVER_MEMBER)
#undef CUDA_DRIVER_MEMBER
};

#endif
