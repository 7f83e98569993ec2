/*
 * tests/fakedev/near.c - memory of the host under the names of pinned and managed memory,
 * which the CPU reads and writes, too.
 */
#include "fakedev_int.h"

#include <stdlib.h>
#include <string.h>

static zarr_status near_alloc(void *self, int32_t device_id, uint64_t bytes,
                              zarr_memory *out, zarr_error *err)
{
    const zarr_memory_vtable *table = self;
    void *p = NULL;

    if (posix_memalign(&p, 64, bytes ? bytes : 1) != 0)
        return fake_fail(err, ZARR_ERR_NO_MEMORY, "out of memory");
    *out = (zarr_memory){.device_type = table->device_type,
                         .device_id = device_id,
                         .handle = p,
                         .bytes = bytes};
    return ZARR_OK;
}

static void near_free(void *self, zarr_memory *mem)
{
    (void)self;
    free(mem->handle);
    *mem = (zarr_memory){0};
}

static zarr_status near_copy(void *self, const zarr_memory *dst, const zarr_memory *src,
                             uint64_t bytes, void *stream, zarr_error *err)
{
    (void)self;
    (void)stream;
    (void)err;
    memcpy((char *)dst->handle + dst->offset, (const char *)src->handle + src->offset,
           bytes);
    return ZARR_OK;
}

#define NEAR(kind, type)                                                                 \
    {                                                                                    \
        .struct_size = sizeof(zarr_memory_vtable),                                       \
        .flags = ZARR_MEMORY_HOST_READ | ZARR_MEMORY_HOST_WRITE, .name = kind,           \
        .device_type = type, .alloc = near_alloc, .free = near_free, .copy = near_copy   \
    }

const zarr_memory_vtable *zarr_fakedev_vtable_near(int32_t device_type)
{
    static const zarr_memory_vtable pinned = NEAR("near-pinned", ZARR_DEVICE_CUDA_HOST),
                                    managed =
                                        NEAR("near-managed", ZARR_DEVICE_CUDA_MANAGED);

    return device_type == ZARR_DEVICE_CUDA_HOST      ? &pinned
           : device_type == ZARR_DEVICE_CUDA_MANAGED ? &managed
                                                     : NULL;
}
