/*
 * fakecuda/memory.c - device, pinned and managed memory. Addresses are never used twice,
 * so memory that was freed stays inaccessible.
 */
#include "fakecuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    BLOCKS_MAX = 65536
};
#define SPACE_BYTES ((size_t)64 << 30)

enum kind {
    DEVICE = 1,
    PINNED = 2,
    MANAGED = 3
};
static struct block {
    CUdeviceptr at;
    size_t bytes;
    enum kind kind;
    int number;     /* of the device */
    CUstream maker; /* other streams may not use it yet */
} blocks[BLOCKS_MAX];
static size_t n_blocks; /* ever made; those that were freed have no bytes */
static char *front, *back;
static size_t used;
static uint64_t live_bytes[DEVICES_MAX];

static void space_open(void)
{
    const int fd = memfd_create("fakecuda", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)SPACE_BYTES) != 0)
        fake_fault("no memory for a device");
    front = mmap(NULL, SPACE_BYTES, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    back = mmap(NULL, SPACE_BYTES, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (front == MAP_FAILED || back == MAP_FAILED)
        fake_fault("no memory for a device");
    (void)close(fd);
    if (back < front) { /* the way from one to the other is a buffer's start for twins */
        char *higher = front;

        front = back;
        back = higher;
    }
}

static struct block *find_block(CUdeviceptr p, size_t bytes)
{
    for (size_t i = n_blocks; i-- > 0;)
        if (blocks[i].bytes > 0 && p >= blocks[i].at &&
            p - blocks[i].at < blocks[i].bytes &&
            bytes <= blocks[i].bytes - (p - blocks[i].at))
            return &blocks[i];
    return NULL;
}

static struct block *block_add(CUdeviceptr at, size_t bytes, enum kind kind)
{
    struct block *b = &blocks[n_blocks];

    if (n_blocks++ == BLOCKS_MAX)
        fake_fault("too many blocks in one process");
    *b = (struct block){
        .at = at, .bytes = bytes, .kind = kind, .number = fake_current()->number};
    return b;
}

int fake_is_device(CUdeviceptr p)
{
    return front && p >= (CUdeviceptr)(uintptr_t)front &&
           p - (CUdeviceptr)(uintptr_t)front < SPACE_BYTES;
}

uintptr_t fake_shift(void)
{
    return (uintptr_t)back - (uintptr_t)front;
}

void *fake_device(CUdeviceptr p, size_t bytes, CUstream s)
{
    const struct block *b = find_block(p, bytes);

    if (!b || b->kind != DEVICE)
        return NULL;
    if (b->maker && b->maker != s)
        fake_fault("memory is used on a stream that does not follow its allocation");
    return (void *)((uintptr_t)p + fake_shift()); /* NOLINT(performance-no-int-to-ptr) */
}

int fake_is_pinned(CUdeviceptr p, size_t bytes)
{
    const struct block *b = find_block(p, bytes);

    return b && b->kind != DEVICE;
}

void fake_settled(CUstream s)
{
    for (size_t i = 0; i < n_blocks; i++)
        if (blocks[i].maker == s)
            blocks[i].maker = NULL;
}

static CUresult device_block(CUdeviceptr *out, size_t bytes, CUstream maker)
{
    const size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    uint64_t *live = &live_bytes[fake_current()->number];

    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (fake_unsafe())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (bytes > fake_setting("FAKECUDA_BYTES", 256 << 20) - *live)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!front)
        space_open();
    if (whole + PAGE > SPACE_BYTES - used)
        fake_fault("no more addresses for a device");
    /* A block ends where its last page does, so one byte too many is seen; it begins at a
     * multiple of 256. */
    const size_t begin = used + (whole - bytes) / 256 * 256;

    if (mprotect(back + used, whole, PROT_READ | PROT_WRITE) != 0)
        fake_fault("no memory for a device");
    memset(back + used, 0xA5, whole);
    *out = (CUdeviceptr)(uintptr_t)front + begin;
    block_add(*out, bytes, DEVICE)->maker = maker;
    *live += bytes;
    used += whole + PAGE;
    return CUDA_SUCCESS;
}

static void device_unmap(const struct block *b)
{
    const size_t at = (size_t)(b->at - (CUdeviceptr)(uintptr_t)front) / PAGE * PAGE;
    const size_t whole = (b->bytes + PAGE - 1) / PAGE * PAGE;

    (void)mprotect(back + at, whole, PROT_NONE);
    (void)madvise(back + at, whole, MADV_REMOVE);
    live_bytes[b->number] -= b->bytes;
}

static CUresult block_free(CUdeviceptr p, int host)
{
    struct block *b = find_block(p, 0);

    if (!b || b->at != p || (host != 0) != (b->kind == PINNED))
        fake_fault("memory is freed that was not allocated so, or was freed before");
    if (b->kind == DEVICE)
        device_unmap(b);
    else
        free((void *)(uintptr_t)p); /* NOLINT(performance-no-int-to-ptr) */
    b->bytes = 0;
    return CUDA_SUCCESS;
}

static CUresult host_block(CUdeviceptr *out, size_t bytes, enum kind kind)
{
    void *p = bytes && !fake_unsafe()
                  ? aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE)
                  : NULL;

    if (!p)
        return bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)(uintptr_t)p;
    (void)block_add(*out, bytes, kind);
    return CUDA_SUCCESS;
}

/* ---- calls -------------------- */

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    FAKE_CALL("cuMemAlloc", NULL, device_block(out, bytes, NULL));
}

static CUresult free_any(CUdeviceptr p)
{
    fake_drain(NULL); /* an implicit wait for all work */
    return block_free(p, 0);
}

CUresult cuMemFree_v2(CUdeviceptr p)
{
    FAKE_CALL("cuMemFree", NULL, free_any(p));
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags)
{
    FAKE_CALL("cuMemAllocManaged", NULL,
              flags == CU_MEM_ATTACH_GLOBAL ? host_block(out, bytes, MANAGED)
                                            : CUDA_ERROR_INVALID_VALUE);
}

static CUresult pinned_block(void **out, size_t bytes)
{
    CUdeviceptr p = 0;
    const CUresult rc = host_block(&p, bytes, PINNED);

    *out = (void *)(uintptr_t)p; /* NOLINT(performance-no-int-to-ptr) */
    return rc;
}

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    FAKE_CALL("cuMemHostAlloc", NULL, pinned_block(out, bytes));
}

CUresult cuMemAllocHost_v2(void **out, size_t bytes)
{
    return cuMemHostAlloc(out, bytes, 0);
}

CUresult cuMemFreeHost(void *p)
{
    FAKE_CALL("cuMemFreeHost", NULL, block_free((CUdeviceptr)(uintptr_t)p, 1));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
                                 CUstream s)
{
    FAKE_CALL("cuMemAllocFromPoolAsync", s,
              pool && fake_stream(s) ? device_block(out, bytes, s)
                                     : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s)
{
    FAKE_CALL("cuMemFreeAsync", s,
              fake_stream(s) ? block_free(p, 0) : CUDA_ERROR_INVALID_VALUE);
}

static CUresult free_bytes(size_t *left, size_t *total)
{
    *total = fake_setting("FAKECUDA_BYTES", 256 << 20);
    *left = *total - live_bytes[fake_current()->number];
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
    FAKE_CALL("cuMemGetInfo", NULL, free_bytes(left, total));
}

static CUresult attributes(unsigned n, const CUpointer_attribute *which, void **values,
                           CUdeviceptr p)
{
    const struct block *b = find_block(p, 1);

    for (unsigned i = 0; i < n; i++) {
        int v = 0;

        if (which[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
            v = !b ? 0 : b->kind == PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        else if (which[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED)
            v = b && b->kind == MANAGED;
        else if (which[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            v = b ? b->number : -2;
        else
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(values[i], &v, which[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ? 1 : sizeof v);
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *which, void **values,
                                CUdeviceptr p)
{
    CUresult rc;

    fake_lock();
    rc = fake_call("cuPointerGetAttributes", NULL);
    if (rc == CUDA_SUCCESS)
        rc = attributes(n, which, values, p);
    fake_unlock();
    return rc;
}

uint64_t fakecuda_blocks(void)
{
    uint64_t n = 0;

    for (size_t i = 0; i < n_blocks; i++)
        n += blocks[i].bytes > 0;
    return n;
}
