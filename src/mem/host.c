/*
 * mem/host.c - host memory as a backend like any other. Blocks of 4 MiB and more are
 * aligned to 2 MiB and ask for huge pages, because touching new 4 KiB pages costs more
 * than all decoding. They come directly from the system. If the application gave an
 * allocator, everything comes from it: such a block has room for the alignment, and the
 * allocator's own pointer just before its first byte. A block is freed with the same
 * zarr_memory, whose length tells where the block is from.
 * Thread class: as the allocator's.
 */
#include "mem/kernel_int.h"
#include "mem/mem_int.h"

#include <string.h>
#include <unistd.h>

static bool host_from_pages(const zarr_allocator *alloc, uint64_t bytes)
{
    return !alloc && bytes >= ZR_HOST_LARGE_BYTES;
}

/* Allocates more, aligns, and stores the allocator's pointer just before the block. */
static void *host_alloc_aligned(const zarr_allocator *alloc, size_t bytes)
{
    const size_t align =
        (size_t)(bytes >= ZR_HOST_LARGE_BYTES ? ZR_HOST_HUGE_BYTES : ZR_HOST_ALIGN_BYTES);
    size_t total;
    uint8_t *raw, *block;

    if (!zr_add(bytes, align + sizeof raw, &total))
        return NULL;
    raw = zr_malloc(alloc, total);
    if (!raw)
        return NULL;
    block = raw + sizeof raw;
    block += (align - (uintptr_t)block % align) % align;
    memcpy(block - sizeof raw, &raw, sizeof raw);
    if (align == ZR_HOST_HUGE_BYTES)
        zr_pages_advise(block, bytes);
    return block;
}

static zarr_status host_alloc(void *self, int32_t device_id, uint64_t bytes,
                              zarr_memory *out, zarr_error *err)
{
    const zarr_allocator *alloc = self;
    size_t n;
    void *p = NULL;

    if (zr_fits(bytes, &n))
        p = host_from_pages(alloc, bytes) ? zr_pages_alloc(n)
                                          : host_alloc_aligned(alloc, n);
    if (!p)
        return zr_fail_memory(err, bytes);
    *out = zr_mem_of_host(p, bytes);
    out->device_id = device_id;
    return ZARR_OK;
}

static void host_free(void *self, zarr_memory *mem)
{
    const zarr_allocator *alloc = self;

    if (mem->handle) {
        if (host_from_pages(alloc, mem->bytes)) {
            zr_pages_free(mem->handle, (size_t)mem->bytes);
        } else {
            void *raw;

            memcpy(&raw, (uint8_t *)mem->handle - sizeof raw, sizeof raw);
            zr_free(alloc, raw);
        }
    }
    *mem = (zarr_memory){0};
}

static zarr_status host_copy(void *self, const zarr_memory *dst, const zarr_memory *src,
                             uint64_t bytes, void *stream, zarr_error *err)
{
    ZR_UNUSED(self, stream);
    if (bytes > dst->bytes || bytes > src->bytes)
        return zr_internal(err);
    zr_host_copy(zr_mem_at(dst), zr_mem_at(src), (size_t)bytes);
    return ZARR_OK;
}

static zarr_status host_copy_box(void *self, const zarr_box *box, void *stream,
                                 zarr_error *err)
{
    ZR_UNUSED(self, stream, err);
    zr_host_box_copy(box);
    return ZARR_OK;
}

static zarr_status host_fill_box(void *self, const zarr_box *box, const void *pattern,
                                 void *stream, zarr_error *err)
{
    ZR_UNUSED(self, stream, err);
    zr_host_box_fill(box, pattern);
    return ZARR_OK;
}

static zarr_status host_describe(void *self, int32_t device_id, zarr_device_facts *out,
                                 zarr_error *err)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const long idle = sysconf(_SC_AVPHYS_PAGES);

    ZR_UNUSED(self, device_id, err);
    if (page <= 0)
        return ZARR_OK;
    if (pages > 0)
        out->total_bytes =
            ZR_MIN((uint64_t)pages * (uint64_t)page, zr_cgroup_bytes(NULL));
    if (idle > 0)
        out->free_bytes = ZR_MIN((uint64_t)idle * (uint64_t)page, out->total_bytes);
    return ZARR_OK;
}

void zr_host_vtable(zarr_memory_vtable *out)
{
    *out = (zarr_memory_vtable){
        .struct_size = sizeof *out,
        .flags = ZARR_MEMORY_HOST_READ | ZARR_MEMORY_HOST_WRITE,
        .name = "host",
        .device_type = ZARR_DEVICE_CPU,
        .alignment = (uint32_t)ZR_HOST_ALIGN_BYTES,
        .alloc = host_alloc,
        .free = host_free,
        .copy = host_copy,
        .copy_box = host_copy_box,
        .fill_box = host_fill_box,
        .describe = host_describe,
    };
}

/* ---- with pointers ------------------------------------------------------------ */

void zr_host_box_copy(const zarr_box *box)
{
    struct zr_strided s;

    if (zr_strided_init(&s, box, zr_mem_at(&box->dst.mem), zr_mem_at(&box->src.mem))) {
        s.nt = box->dst.mem.bytes >= ZR_NT_EXTENT_BYTES;
        zr_strided_copy(&s);
    }
}

void zr_host_box_fill(const zarr_box *box, const void *pattern)
{
    struct zr_strided s;

    if (zr_strided_init(&s, box, zr_mem_at(&box->dst.mem), NULL)) {
        s.nt = box->dst.mem.bytes >= ZR_NT_EXTENT_BYTES;
        zr_strided_fill(&s, pattern, box->item_bytes);
    }
}

void zr_host_copy(void *dst, const void *src, size_t bytes)
{
    const struct zr_kernels *k = zr_kernels();

    if (bytes < ZR_NT_EXTENT_BYTES) {
        if (bytes)
            k->line(dst, src, bytes);
    } else {
        k->line_nt(dst, src, bytes);
        k->fence();
    }
}
