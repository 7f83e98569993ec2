/*
 * cuda/device.h - what the files of the plug-in share: the driver, its devices, and
 * lanes. A lane is a stream of the plug-in with memory for descriptions and results. The
 * library's streams are lanes; a call without a stream borrows one and waits for its
 * work.
 *
 * The driver starts with the first call that needs it, not when the plug-in is loaded, so
 * a process that uses no CUDA memory may fork. The plug-in uses the primary context of a
 * device, as the CUDA runtime does. That context is current on a thread between
 * device_enter() and device_leave() only.
 *
 * A device on which an error has destroyed the context is lost: no call of CUDA follows
 * on it, not even to free something. The same holds for all devices in the child of a
 * fork.
 */
#ifndef CUDA_DEVICE_H
#define CUDA_DEVICE_H

#include <zarrc/plugin/plugin.h>

#include "driver.h"
#include "port/port.h"

#include <pthread.h>
#include <stdatomic.h>

extern struct cuda_driver cuda; /* filled by driver_start() */

/* ---- driver.c -------------------- */

/* Starts the driver, once in a process. UNSUPPORTED: there is no driver or no device
 * here, and the text says which; DEVICE: it failed, or the process was forked. */
zarr_status driver_start(zarr_error *err);
/* Whether the driver was started, and works in this process. Starts nothing. */
int driver_runs(void);
/* Has the plug-in learn of forks; called before the driver is started. */
zarr_status driver_watch_forks(zarr_error *err);
/* Number of devices, after driver_start(). */
int32_t driver_devices(void);
/* Whether libcuda.so.1 is in the process, loaded by any code, and may be called:
 * otherwise no pointer is memory of CUDA. `cuda.cuPointerGetAttributes` is valid then. */
int driver_is_loaded(void);
/* Whether an error has destroyed the context: all later calls fail. */
int driver_is_sticky(CUresult rc);
/* The status and the text for a result of the driver. */
zarr_status driver_fail(zarr_error *err, const char *what, CUresult rc);

/* ---- device.c -------------------- */

/* A block of pinned host memory, and one of device memory of the same size. */
struct pair {
    struct pair *next;
    struct cuda_device *device;
    char *host;
    CUdeviceptr at;
    uint64_t bytes, used, sent; /* `sent`: bytes that are on their way to the device */
};
struct cuda_lane;
struct cuda_device {
    int32_t number;
    CUdevice id;
    CUcontext context;
    CUmodule module;
    atomic_int has_kernels;
    CUfunction kernel[PORT_N_KERNELS];
    CUmemoryPool pool; /* NULL: the device has none */
    CUstream blocks;   /* allocations from the pool are work on it */
    atomic_int lost;   /* the CUresult that destroyed the context; 0: none */
    struct cuda_lane *idle;
    struct pair *pairs; /* not in use */
    int file_blocks;    /* of gds.c */
};

/* The device of a number, opened when it is first asked for. */
zarr_status device_open(int32_t number, struct cuda_device **out, zarr_error *err);
/* The device of a number if it is open and usable, else NULL. Fails silently. */
struct cuda_device *device_usable(int32_t number);
/* The open device whose primary context this is, or NULL. */
struct cuda_device *device_of_context(CUcontext context);
/* For contexts of the library that share the devices. The last one gives them back. */
void devices_hold(void);
void devices_release(void);
/* Take and give a lock that forks take, too. */
void lock_take(pthread_mutex_t *lock);
void lock_give(pthread_mutex_t *lock);
/* Held while a device is opened or closed. */
extern pthread_mutex_t devices_mutex;

/* Has the kernels compiled if they are not. UNSUPPORTED: the build had no clang. */
zarr_status device_kernels(struct cuda_device *d, zarr_error *err);

/* What was current on a thread. */
struct place {
    int pushed, relaxed;
    CUstreamCaptureMode mode;
};
/* Makes the device's context current. Fails if the device is lost. While another thread
 * captures a graph, CUDA forbids allocations and waits to threads whose mode is not
 * relaxed, and such a call would spoil the graph: the thread is relaxed until
 * device_leave(), because the plug-in's work is in no graph. */
zarr_status device_enter(struct cuda_device *d, struct place *was, zarr_error *err);
/* Opens the device of a number and enters it. */
zarr_status device_use(int32_t number, struct cuda_device **out, struct place *was,
                       zarr_error *err);
/* Makes what was current before current again. */
void device_leave(const struct place *was);
/* As driver_fail(), and marks the device lost if the result says so. */
zarr_status device_fail(struct cuda_device *d, zarr_error *err, const char *what,
                        CUresult rc);
/* ZARR_OK if rc is a success, else as device_fail(). */
zarr_status device_check(struct cuda_device *d, zarr_error *err, const char *what,
                         CUresult rc);
zarr_status device_is_lost(const struct cuda_device *d, zarr_error *err);
/* Counts a device as lost on which work may go on that could not be waited for. */
void device_give_up(struct cuda_device *d);
/* Ends a wait for a stream of the plug-in that gave `rc`: nothing is queued on it
 * afterwards, also if the wait failed. If a second one fails, the device is given up. */
zarr_status device_end_wait(struct cuda_device *d, CUstream s, CUresult rc,
                            zarr_error *err);
/* The device whose UUID begins so, after "GPU-" or "MIG-": an entry of the tables. */
zarr_status device_find(void *self, const char *text, int32_t *number, zarr_error *err);
/* A name and a UUID, and sizes. */
zarr_status device_describe(int32_t number, zarr_device_facts *out, zarr_error *err);

/* The context of the device is current for all of these. */
zarr_status device_alloc(struct cuda_device *d, uint64_t bytes, CUdeviceptr *out,
                         zarr_error *err);
void device_free(struct cuda_device *d, CUdeviceptr p);

/* ---- lane.c, pair.c -------------------- */

struct cuda_lane {
    struct port_lane port; /* first */
    struct cuda_device *device;
    CUstream stream;
    CUevent event;      /* of the application's stream */
    CUevent done;       /* of the lane's work */
    struct pair *pairs; /* descriptions since the last wait; the first has room */
    struct place was;   /* between port_begin() and port_end() */
    struct cuda_lane *next, *after; /* in the lists of idle ones and of all */
};
/* Of the lists of lanes; of those of pairs. */
extern pthread_mutex_t lanes_mutex, pairs_mutex;
zarr_status lane_open(struct cuda_device *d, struct cuda_lane **out, zarr_error *err);
/* Keeps a lane whose work is done for the next one who opens one. */
void lane_keep(struct cuda_lane *l);
/* Frees a lane. */
void lane_free(struct cuda_lane *l);
/* Queues the copy of what was staged since the last launch. */
zarr_status lane_send(struct cuda_lane *l, zarr_error *err);
/* Waits for all work on a lane, and ends its comparisons. */
zarr_status lane_wait(struct cuda_lane *l, zarr_error *err);
/* Whether a stream of the library or of an application is a lane. */
int is_lane(const void *stream);
/* Queues copies of runs between any memories that CUDA reaches, or host memory. */
zarr_status lane_copy(struct cuda_lane *l, const zarr_memory *dst, const zarr_memory *src,
                      uint64_t n, zarr_error *err);
/* A block of at least `bytes` bytes from those that the device keeps, or a new one. */
zarr_status pair_take(struct cuda_device *d, uint64_t bytes, struct pair **out,
                      zarr_error *err);
void pair_give(struct pair *p);
void pair_free(struct pair *p);

/* ---- memory.c, host.c, foreign.c -------------------- */

extern const zarr_memory_vtable cuda_memory, cuda_host_memory, cuda_managed_memory;

/* Functions of a kind of memory, as device_alloc() and device_free(): the context of the
 * device is current. `bytes` may be 0. */
typedef zarr_status (*block_alloc_fn)(struct cuda_device *d, uint64_t bytes,
                                      CUdeviceptr *out, zarr_error *err);
typedef void (*block_free_fn)(struct cuda_device *d, CUdeviceptr p);
/* alloc() of a table by fn(): *out has the kind, the device and `bytes`, and gets the
 * handle, which is NULL after a failure. */
zarr_status memory_alloc_by(block_alloc_fn fn, zarr_memory *out, zarr_error *err);
/* free() of a table by fn(), if the device is still usable. */
void memory_free_by(block_free_fn fn, zarr_memory *mem);

/* Makes later work on a lane follow what is on a stream of the application now. */
zarr_status foreign_order(struct cuda_lane *l, void *foreign, zarr_error *err);
/* Waits for a stream of the application. */
zarr_status foreign_wait(void *foreign, zarr_error *err);
/* zarr_memory_vtable.classify of all three tables. */
int memory_classify(void *self, const void *pointer, int32_t *device_type,
                    int32_t *device_id);

static inline CUdeviceptr device_address(const zarr_memory *m)
{
    return (CUdeviceptr)(uintptr_t)m->handle + m->offset;
}

#endif
