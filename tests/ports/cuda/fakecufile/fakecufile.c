/*
 * fakecufile/fakecufile.c - a libcufile.so.0 without a GPU, over the fake driver, for
 * tests of the real adapter. It does what it is asked at once. What breaks a rule, or
 * leaves cuFile's fast way, aborts the process and says which: a driver opened before
 * CUDA is started, compatibility mode allowed, a log in the working directory, offsets
 * and sizes that are not multiples of 4096, memory that is not registered, a file that
 * was closed before its handle, handles and buffers that are left at the end.
 *
 * Environment: FAKECUFILE_NVFS 0: no module in the kernel; FAKECUFILE_REFUSE 1: no file
 * can be registered; FAKECUFILE_KILL k: the k-th write is half done, then the process is
 * killed.
 */
#include "cufile.h"
#include "fakecuda.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CF_API __attribute__((visibility("default")))

enum {
    PAGE = 4096,
    HANDLES = 256,
    BUFFERS = 64
};

struct handle {
    int live, fd;
    struct stat st;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct handle handles[HANDLES];
static struct {
    CUdeviceptr at;
    size_t bytes;
} buffers[BUFFERS];
static int is_open, compat_is_off;
static uint64_t n_reads, n_writes, n_registered, fail_in;
static long fail_with;
static size_t most = SIZE_MAX;

static void fault(const char *what)
{
    (void)fprintf(stderr, "fake cuFile: %s\n", what);
    abort();
}

/* For tests: from the k-th read or write on, all fail with a result, below 0; 0: none. */
CF_API void fakecufile_fail(uint64_t k, long result);
void fakecufile_fail(uint64_t k, long result)
{
    fail_in = k;
    fail_with = result;
}

/* One read or write moves so many bytes at most. */
CF_API void fakecufile_most(size_t bytes);
void fakecufile_most(size_t bytes)
{
    most = bytes;
}

/* How many there were: 0: reads, 1: writes, 2: files registered. */
CF_API uint64_t fakecufile_count(int what);
uint64_t fakecufile_count(int what)
{
    return what == 0 ? n_reads : what == 1 ? n_writes : n_registered;
}

static long failure(void)
{
    if (fail_in > 1)
        fail_in--;
    else if (fail_in == 1)
        return fail_with;
    return 0;
}

static int setting(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text ? atoi(text) : otherwise;
}

#define CF_DECLARE(result, name, arguments) CF_API result name arguments;
CUFILE_CALLS(CF_DECLARE)

struct cufile_result cuFileSetParameterBool(int which, bool value)
{
    if (is_open)
        return (struct cufile_result){.code = 5022};
    compat_is_off = which == CUFILE_ALLOW_COMPAT_MODE && !value;
    return (struct cufile_result){0};
}

struct cufile_result cuFileDriverOpen(void)
{
    CUcontext c;

    if (cuCtxGetCurrent(&c) == CUDA_ERROR_NOT_INITIALIZED)
        fault("cuFileDriverOpen() before cuInit()");
    if (!compat_is_off)
        fault("compatibility mode is allowed");
    if (!getenv("CUFILE_LOGFILE_PATH"))
        fault("a log in the working directory");
    is_open = 1;
    return (struct cufile_result){0};
}

struct cufile_result cuFileDriverClose_v2(void)
{
    if (!is_open)
        fault("closed twice");
    for (int i = 0; i < HANDLES; i++)
        if (handles[i].live)
            fault("a handle is left");
    for (int i = 0; i < BUFFERS; i++)
        if (buffers[i].bytes)
            fault("a buffer is left");
    is_open = 0;
    return (struct cufile_result){0};
}

struct cufile_result cuFileDriverGetProperties(struct cufile_properties *out)
{
    memset(out, 0, offsetof(struct cufile_properties, room));
    out->nvfs.major = setting("FAKECUFILE_NVFS", 1) ? 2 : 0;
    return (struct cufile_result){0};
}

static void check_file(const struct handle *h)
{
    struct stat st;

    if (!is_open || !h->live)
        fault("a handle that is not registered");
    if (fstat(h->fd, &st) != 0 || st.st_ino != h->st.st_ino || st.st_dev != h->st.st_dev)
        fault("a file was closed before its handle");
}

struct cufile_result cuFileHandleRegister(void **out, struct cufile_file *file)
{
    struct cufile_result r = {.code = 5027};

    pthread_mutex_lock(&mutex);
    if (!is_open || file->type != CUFILE_OPAQUE_FD)
        fault("cuFileHandleRegister()");
    if (!(fcntl(file->is.fd, F_GETFL) & O_DIRECT))
        fault("a file without O_DIRECT");
    for (int i = 0; i < HANDLES && r.code && !setting("FAKECUFILE_REFUSE", 0); i++)
        if (!handles[i].live) {
            handles[i] = (struct handle){.live = 1, .fd = file->is.fd};
            (void)fstat(file->is.fd, &handles[i].st);
            *out = &handles[i];
            n_registered++;
            r.code = 0;
        }
    pthread_mutex_unlock(&mutex);
    return r;
}

void cuFileHandleDeregister(void *handle)
{
    pthread_mutex_lock(&mutex);
    check_file(handle);
    ((struct handle *)handle)->live = 0;
    pthread_mutex_unlock(&mutex);
}

struct cufile_result cuFileBufRegister(const void *base, size_t bytes, int flags)
{
    const CUdeviceptr at = (CUdeviceptr)(uintptr_t)base;
    struct cufile_result r = {.code = 5022};

    pthread_mutex_lock(&mutex);
    if (!is_open || at % PAGE || bytes % PAGE || flags != 0 ||
        !fakecuda_memory_now(at, bytes))
        fault("cuFileBufRegister()");
    for (int i = 0; i < BUFFERS && r.code; i++)
        if (!buffers[i].bytes) {
            buffers[i].at = at;
            buffers[i].bytes = bytes;
            r.code = 0;
        }
    pthread_mutex_unlock(&mutex);
    return r;
}

struct cufile_result cuFileBufDeregister(const void *base)
{
    int found = 0;

    pthread_mutex_lock(&mutex);
    for (int i = 0; i < BUFFERS; i++)
        if (buffers[i].bytes && buffers[i].at == (CUdeviceptr)(uintptr_t)base) {
            buffers[i].bytes = 0;
            found = 1;
        }
    pthread_mutex_unlock(&mutex);
    if (!found)
        fault("a buffer that is not registered");
    return (struct cufile_result){0};
}

/* The memory of a read or a write. */
static void *check(const struct handle *h, const void *base, size_t bytes, off_t at,
                   off_t from)
{
    const CUdeviceptr p = (CUdeviceptr)(uintptr_t)base + (CUdeviceptr)from;
    int inside = 0;
    void *memory;

    check_file(h);
    if (at % PAGE || bytes % PAGE || p % PAGE)
        fault("not aligned");
    for (int i = 0; i < BUFFERS; i++)
        inside |= buffers[i].bytes && p >= buffers[i].at &&
                  p + bytes <= buffers[i].at + buffers[i].bytes;
    memory = inside ? fakecuda_memory_now(p, bytes) : NULL;
    if (!memory)
        fault("memory that is not registered");
    return memory;
}

ssize_t cuFileRead(void *handle, void *base, size_t bytes, off_t at, off_t from)
{
    void *memory;
    long rc;

    pthread_mutex_lock(&mutex);
    memory = check(handle, base, bytes, at, from);
    n_reads++;
    rc = failure();
    pthread_mutex_unlock(&mutex);
    errno = EIO;
    if (rc < 0)
        return rc;
    rc = pread(((struct handle *)handle)->fd, memory, bytes, at);
    return rc > 0 && (size_t)rc > most ? (ssize_t)most : rc;
}

ssize_t cuFileWrite(void *handle, const void *base, size_t bytes, off_t at, off_t from)
{
    const void *memory;
    long rc;
    int fd;

    pthread_mutex_lock(&mutex);
    memory = check(handle, base, bytes, at, from);
    fd = ((struct handle *)handle)->fd;
    if (++n_writes == (uint64_t)setting("FAKECUFILE_KILL", 0)) {
        (void)!pwrite(fd, memory, bytes / 2 / PAGE * PAGE, at);
        (void)raise(SIGKILL);
    }
    rc = failure();
    pthread_mutex_unlock(&mutex);
    errno = EIO;
    if (rc < 0)
        return rc;
    return pwrite(fd, memory, bytes > most ? most / PAGE * PAGE : bytes, at);
}
