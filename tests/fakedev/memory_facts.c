/*
 * tests/fakedev/memory_facts.c - what the fake device says of memory: pinned host memory,
 * pointers that it knows, and budgets.
 */
#include "fakedev_int.h"

#include <stdlib.h>

zarr_status fake_host_alloc(void *self, int32_t device_id, uint64_t bytes,
                            zarr_memory *out, zarr_error *err)
{
    struct fakedev *dev = self;
    zarr_status st = fake_inject(dev, ZARR_FAKEDEV_HOST, err);
    struct block *b = NULL;

    if (st != ZARR_OK)
        return st;
    if (!fake_within(dev, bytes, true))
        return fake_fail(err, ZARR_ERR_NO_MEMORY, "out of pinned memory");
    b = fake_block_new(dev, device_id, bytes, true);
    if (!b)
        return fake_fail(err, ZARR_ERR_NO_MEMORY, "out of memory");
    *out = (zarr_memory){
        .device_type = ZARR_DEVICE_CPU, .handle = b->handle, .bytes = bytes};
    pthread_mutex_lock(&dev->mutex);
    dev->late.pinned_allocs++;
    dev->late.pinned_blocks++;
    dev->late.pinned_bytes += b->bytes;
    if (dev->late.pinned_bytes > dev->late.pinned_peak)
        dev->late.pinned_peak = dev->late.pinned_bytes;
    pthread_mutex_unlock(&dev->mutex);
    return ZARR_OK;
}

void fake_host_free(void *self, zarr_memory *mem)
{
    struct fakedev *dev = self;
    struct block *b = NULL;

    if (!mem->handle)
        return;
    b = fake_block_take(dev, mem->handle, true);
    pthread_mutex_lock(&dev->mutex);
    dev->late.pinned_blocks--;
    dev->late.pinned_bytes -= b->bytes;
    pthread_mutex_unlock(&dev->mutex);
    free(b);
    *mem = (zarr_memory){0};
}

int fake_classify(void *self, const void *pointer, int32_t *device_type,
                  int32_t *device_id)
{
    struct fakedev *dev = self;
    const struct block *b = NULL;

    pthread_mutex_lock(&fake_all.mutex);
    b = fake_block_locked(pointer);
    if (b && b->owner == dev) {
        *device_type = b->pinned ? ZARR_DEVICE_CUDA_HOST : dev->device_type;
        *device_id = b->device_id;
    } else {
        b = NULL;
    }
    pthread_mutex_unlock(&fake_all.mutex);
    return b != NULL;
}

zarr_status fake_limit(void *self, int32_t device_id, uint64_t *bytes, zarr_error *err)
{
    struct fakedev *dev = self;
    const zarr_status st = fake_inject(dev, ZARR_FAKEDEV_LIMIT, err);

    (void)device_id;
    if (st == ZARR_OK && dev->most)
        *bytes = dev->most;
    return st;
}

void zarr_fakedev_late_count(void *self, zarr_fakedev_late_counters *out)
{
    struct fakedev *dev = self;

    pthread_mutex_lock(&dev->mutex);
    *out = dev->late;
    pthread_mutex_unlock(&dev->mutex);
}

void zarr_fakedev_decline(void *self, uint32_t calls)
{
    ((struct fakedev *)self)->declined = calls;
}

void zarr_fakedev_budget(void *self, uint64_t device_bytes, uint64_t pinned_bytes)
{
    struct fakedev *dev = self;

    pthread_mutex_lock(&dev->mutex);
    dev->most = device_bytes;
    dev->pinned_most = pinned_bytes;
    pthread_mutex_unlock(&dev->mutex);
}
