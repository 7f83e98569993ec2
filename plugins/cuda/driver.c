/*
 * cuda/driver.c - loads libcuda.so.1, looks its functions up and starts it. A machine
 * without a GPU, or with a driver that is too old, is told from a failure. The child of a
 * fork cannot use the driver that its parent started. Thread class: shared.
 */
#include "cufile.h"
#include "device.h"
#include "nvcomp.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum {
    DRIVER_LEAST_VERSION = 11000 /* of CUDA: 1000 * major + 10 * minor */
};

_Static_assert(sizeof(CUmemPoolProps) == 88, "the driver's struct");

struct cuda_driver cuda;

static pthread_mutex_t driver_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *library;
    atomic_int loaded;  /* the table is filled */
    atomic_int started; /* cuInit() has succeeded */
    atomic_int forked;  /* in a child of the process that started it */
    int watched;
    int32_t devices;
} driver;

int driver_is_sticky(CUresult rc)
{
    switch (rc) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
        return 1;
    default:
        return rc >= CUDA_ERROR_HARDWARE_STACK_ERROR && rc <= CUDA_ERROR_LAUNCH_FAILED;
    }
}

static const char *result_name(CUresult rc)
{
    const char *name = NULL;

    if (cuda.cuGetErrorName && cuda.cuGetErrorName(rc, &name) == CUDA_SUCCESS && name)
        return name;
    return "an unknown error";
}

zarr_status driver_fail(zarr_error *err, const char *what, CUresult rc)
{
    const zarr_status st =
        rc == CUDA_ERROR_OUT_OF_MEMORY ? ZARR_ERR_NO_MEMORY : ZARR_ERR_DEVICE;

    if (err) {
        err->os_code = rc;
        err->os_domain = ZARR_OS_DEVICE;
    }
    return port_host->fail(err, st, "cuda: %s: %s (%d)", what, result_name(rc), rc);
}

zarr_status device_fail(struct cuda_device *d, zarr_error *err, const char *what,
                        CUresult rc)
{
    int none = 0;

    if (driver_is_sticky(rc))
        (void)atomic_compare_exchange_strong(&d->lost, &none, rc);
    return driver_fail(err, what, rc);
}

zarr_status device_is_lost(const struct cuda_device *d, zarr_error *err)
{
    const CUresult rc = atomic_load(&d->lost);

    if (err) {
        err->os_code = rc;
        err->os_domain = ZARR_OS_DEVICE;
    }
    return port_host->fail(err, ZARR_ERR_DEVICE,
                           "cuda: device %d is lost since an error: %s (%d); only a new "
                           "process can use it again",
                           (int)d->number, result_name(rc), rc);
}

/* ---- loading -------------------- */

static int find_call(void *out, const char *name, size_t bytes)
{
    void *symbol = dlsym(driver.library, name);

    memcpy(out, &symbol, bytes); /* C has no cast from objects to functions */
    return symbol != NULL;
}

/* The name of the first function that is missing, or NULL. */
static const char *find_calls(void)
{
    const char *missing = NULL;

#define FIND_CALL(name, arguments)                                                       \
    if (!find_call(&cuda.name, #name, sizeof cuda.name) && !missing)                     \
        missing = #name;
#define FIND_NEWER(name, arguments) (void)find_call(&cuda.name, #name, sizeof cuda.name);
    CUDA_DRIVER_CALLS(FIND_CALL)
    CUDA_DRIVER_NEWER(FIND_NEWER)
#undef FIND_CALL
#undef FIND_NEWER
    return missing;
}

/* `how`: flags of dlopen(). The library stays loaded: its threads and those of an
 * application use it. */
static zarr_status driver_load(int how, zarr_error *err)
{
    const char *missing = NULL;

    if (atomic_load(&driver.loaded))
        return ZARR_OK;
    if (!driver.library)
        driver.library = dlopen("libcuda.so.1", how);
    if (!driver.library)
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               "cuda: no libcuda.so.1, which NVIDIA's driver has: %s",
                               dlerror());
    missing = find_calls();
    if (missing)
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               "cuda: libcuda.so.1 is too old: it has no %s", missing);
    atomic_store(&driver.loaded, 1);
    return ZARR_OK;
}

int driver_is_loaded(void)
{
    zarr_status st;

    if (atomic_load(&driver.forked))
        return 0;
    if (atomic_load(&driver.loaded))
        return 1;
    lock_take(&driver_mutex);
    st = driver_load(RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD, NULL);
    lock_give(&driver_mutex);
    return st == ZARR_OK;
}

/* ---- starting -------------------- */

/* A fork waits until the driver has started or failed to, no device is opened, and no
 * list changes, because the child closes its contexts. A thread that holds one of these
 * locks may take those after it. Those of the loaders of cuFile and nvCOMP are not here:
 * these libraries may fork while they start. */
static pthread_mutex_t *const fork_locks[] = {&gds_mutex,    &cufile_handles_mutex,
                                              &driver_mutex, &devices_mutex,
                                              &lanes_mutex,  &pairs_mutex};
enum {
    FORK_LOCKS = sizeof fork_locks / sizeof *fork_locks
};

static _Thread_local int locks_held;

void lock_take(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    locks_held++;
}

void lock_give(pthread_mutex_t *lock)
{
    locks_held--;
    pthread_mutex_unlock(lock);
}

/* The driver itself may fork to start nvidia-modprobe, in a call that is made under a
 * lock. That child ends without a call of the plug-in. */
static void fork_begins(void)
{
    for (int i = 0; i < FORK_LOCKS && locks_held == 0; i++)
        pthread_mutex_lock(fork_locks[i]);
}

static void fork_in_parent(void)
{
    for (int i = FORK_LOCKS - 1; i >= 0 && locks_held == 0; i--)
        pthread_mutex_unlock(fork_locks[i]);
}

static void fork_in_child(void)
{
    if (atomic_load(&driver.started))
        atomic_store(&driver.forked, 1);
    fork_in_parent();
    cufile_in_child();
    nvcomp_in_child();
}

static void watch_forks(void)
{
    driver.watched = pthread_atfork(fork_begins, fork_in_parent, fork_in_child) == 0;
}

zarr_status driver_watch_forks(zarr_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_forks);
    return driver.watched
               ? ZARR_OK
               : port_host->fail(err, ZARR_ERR_NO_MEMORY, "cuda: no memory for a fork");
}

static zarr_status no_driver(CUresult rc, zarr_error *err)
{
    switch (rc) {
    case CUDA_ERROR_NO_DEVICE:
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               "cuda: no device: the driver finds no GPU");
    case CUDA_ERROR_STUB_LIBRARY:
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               "cuda: no driver: libcuda.so.1 is the stub of a toolkit");
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               "cuda: libcuda.so.1 does not fit the driver: %s (%d)",
                               result_name(rc), rc);
    case CUDA_ERROR_NOT_INITIALIZED:
        return port_host->fail(
            err, ZARR_ERR_DEVICE,
            "cuda: the driver cannot start (%s); if the parent process used CUDA before "
            "a fork, use spawn",
            result_name(rc));
    default:
        return driver_fail(err, "start of the driver", rc);
    }
}

static zarr_status driver_begin(zarr_error *err)
{
    int version = 0, n = 0;
    zarr_status st = driver_load(RTLD_NOW | RTLD_LOCAL, err);
    CUresult rc;

    if (st != ZARR_OK)
        return st;
    rc = cuda.cuDriverGetVersion(&version);
    if (rc == CUDA_SUCCESS && version < DRIVER_LEAST_VERSION)
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               "cuda: the driver is too old: it has CUDA %d.%d, and "
                               "%d.%d is the least",
                               version / 1000, version % 1000 / 10,
                               DRIVER_LEAST_VERSION / 1000,
                               DRIVER_LEAST_VERSION % 1000 / 10);
    rc = cuda.cuInit(0);
    if (rc == CUDA_SUCCESS)
        rc = cuda.cuDeviceGetCount(&n);
    if (rc == CUDA_SUCCESS && n == 0)
        rc = CUDA_ERROR_NO_DEVICE;
    if (rc != CUDA_SUCCESS)
        return no_driver(rc, err);
    driver.devices = n;
    atomic_store(&driver.started, 1);
    return ZARR_OK;
}

zarr_status driver_start(zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (atomic_load(&driver.forked))
        return port_host->fail(
            err, ZARR_ERR_DEVICE,
            "cuda: this process is a fork of one that used CUDA, which cannot be used "
            "here; start processes by spawn");
    if (atomic_load(&driver.started))
        return ZARR_OK;
    lock_take(&driver_mutex);
    if (!atomic_load(&driver.started))
        st = driver_begin(err);
    lock_give(&driver_mutex);
    return st;
}

int driver_runs(void)
{
    return atomic_load(&driver.started) && !atomic_load(&driver.forked);
}

int32_t driver_devices(void)
{
    return driver.devices;
}
