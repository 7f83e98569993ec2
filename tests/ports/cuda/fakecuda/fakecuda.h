/*
 * fakecuda/fakecuda.h - a libcuda.so.1 without a GPU, for tests: enough of the driver for
 * the real plug-in to run over it. Device memory is a range of addresses whose pages the
 * host cannot touch; the driver works on a second mapping, where only live blocks are
 * accessible. Work on a stream waits as long as it may: it runs when something waits for
 * it, or now and then by chance. Kernels are the host's twins, by name. A call that
 * breaks a rule of the driver aborts the process and says which.
 *
 * Environment: FAKECUDA_DEVICES (2), FAKECUDA_BYTES of memory for each (256 MiB),
 * FAKECUDA_VERSION (13000), FAKECUDA_SEED of chance (1; 0: never), FAKECUDA_POOLS (1),
 * FAKECUDA_MIG (0; 1: devices are parts of one), FAKECUDA_FATBIN (1; 0: refused),
 * FAKECUDA_FORKS (0; 1: the driver forks when it starts and when a device is opened).
 * The functions fakecuda_*() are for tests, which find them by dlsym().
 */
#ifndef FAKECUDA_H
#define FAKECUDA_H

#include <stddef.h>
#include <stdint.h>

#include "driver.h"

enum {
    DEVICES_MAX = 8
};

struct CUctx_st {
    int number, retained;
    CUresult broken; /* every call fails with it */
};

/* The state of everything; calls hold the lock. */
void fake_lock(void);
void fake_unlock(void);
/* Counts a call. Not 0: it fails with that result, because the context is broken or the
 * test said so. `s` NULL: the current context is what matters. */
CUresult fake_call(const char *name, CUstream s);
/* Does `body` as a call, if it does not fail before. */
#define FAKE_CALL(name, s, body)                                                         \
    do {                                                                                 \
        CUresult rc_;                                                                    \
        fake_lock();                                                                     \
        rc_ = fake_call(name, s);                                                        \
        if (rc_ == CUDA_SUCCESS)                                                         \
            rc_ = (body);                                                                \
        fake_unlock();                                                                   \
        return rc_;                                                                      \
    } while (0)
/* Fails for an allocation or a wait on a thread that is not relaxed while any thread
 * captures a graph, which is then spoiled. */
CUresult fake_unsafe(void);
/* Whether a stream captures a graph; the graphs are invalid from now on. */
int fake_spoil_captures(void);
/* Says what is wrong and aborts. */
void fake_fault(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
CUcontext fake_current(void);
CUcontext fake_context(int number);
uint64_t fake_setting(const char *name, uint64_t otherwise);

/* ---- what the library exports -------------------- */

#define FAKE_API                      __attribute__((visibility("default")))
#define FAKE_DECLARE(name, arguments) FAKE_API CUresult name arguments;
CUDA_DRIVER_CALLS(FAKE_DECLARE)
CUDA_DRIVER_NEWER(FAKE_DECLARE)
FAKE_API CUresult cuStreamBeginCapture_v2(CUstream s, int mode);
FAKE_API CUresult cuStreamEndCapture(CUstream s, void **graph);
FAKE_API CUresult cuStreamQuery(CUstream s);
/* For bench/gpu; the plug-in does not use them. */
FAKE_API CUresult cuCtxSetCurrent(CUcontext c);
FAKE_API CUresult cuCtxSynchronize(void);
FAKE_API CUresult cuMemAllocHost_v2(void **out, size_t bytes);
FAKE_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n);
FAKE_API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n);
FAKE_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n,
                                       CUstream s);
FAKE_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s);
FAKE_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n,
                                       CUstream s);
FAKE_API CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to);

/* The k-th call from now on fails with a result; 0: none. */
FAKE_API void fakecuda_fail(uint64_t k, int result);
/* The function that failed so, or "". */
FAKE_API const char *fakecuda_failed(void);
FAKE_API uint64_t fakecuda_calls(void);
/* Calls on a device after an error destroyed its context. */
FAKE_API uint64_t fakecuda_after_loss(void);
/* How many contexts this thread has pushed and not popped. */
FAKE_API int fakecuda_depth(void);
/* Whether the last kernels were machine code, which begins with FAKECUDA_MAGIC here. */
FAKE_API int fakecuda_fatbin(void);
#define FAKECUDA_MAGIC "fakecuda fatbin"
/* Threads that have called the driver and not ended. No such thread may end once handlers
 * of atexit() run: the driver has freed what the thread's destructor needs. */
FAKE_API uint64_t fakecuda_threads(void);
/* Blocks of memory that are alive. */
FAKE_API uint64_t fakecuda_blocks(void);

/* For other fakes of libraries that use streams, also work without a lock in `run`:
 * memory as fake_device(), and work at its turn. */
FAKE_API void *fakecuda_memory(CUdeviceptr p, size_t bytes, CUstream s);
/* The same for a library that works at once, outside of fakecuda_queue(). */
FAKE_API void *fakecuda_memory_now(CUdeviceptr p, size_t bytes);
FAKE_API void fakecuda_queue(CUstream s, void (*run)(void *arg), void *arg);

/* ---- memory.c -------------------- */

/* The driver's address of device memory; NULL if [p, p + bytes) is not inside of a live
 * block. `s`: the stream that uses it. */
void *fake_device(CUdeviceptr p, size_t bytes, CUstream s);
/* What the driver's address of any device address is. */
uintptr_t fake_shift(void);
int fake_is_device(CUdeviceptr p);
/* Whether host memory is pinned or managed. */
int fake_is_pinned(CUdeviceptr p, size_t bytes);
/* Blocks that `s` allocated are usable on other streams. */
void fake_settled(CUstream s);

/* ---- streams.c -------------------- */

struct work {
    struct work *next;
    void (*run)(struct work *w);
    void (*drop)(struct work *w); /* frees what it has; NULL: nothing */
};
void fake_queue(CUstream s, struct work *w);
void fake_drain(CUstream s);
/* A default stream or a live one, else NULL. */
CUstream fake_stream(CUstream s);
CUcontext fake_stream_context(CUstream s);

#endif
