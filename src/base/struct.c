/*
 * base/struct.c - reads and writes structs that begin with their size, which lets options
 * and vtables grow without a new ABI. A short struct comes from an older caller: the rest
 * gets its default, which is zero. A long one comes from a newer caller. In options and
 * tensors an unknown non-zero byte is a request that the library would silently ignore,
 * so it is refused. In vtables it is an offer that the library may ignore. A size above
 * 64 KiB means that the caller did not initialise the struct, so it is refused before
 * anything reads that far.
 * Thread class: plain function.
 */
#include "base/base.h"

#include <string.h>

enum {
    STRUCT_MAX_BYTES = 65536
};

static bool struct_is_all_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

zarr_status zr_struct_read(void *dst, size_t dst_bytes, size_t min_bytes, const void *src,
                           enum zr_tail tail, const char *name, zarr_error *err)
{
    const uint32_t own_size = (uint32_t)dst_bytes;
    uint32_t size = 0;

    memset(dst, 0, dst_bytes);
    memcpy(dst, &own_size, sizeof own_size);
    if (!src)
        return ZARR_OK;

    memcpy(&size, src, sizeof size);
    if (size == 0 && tail == ZR_TAIL_IGNORE) /* vtables have no _INIT macro */
        return zr_fail(err, ZARR_ERR_ABI, "%s.struct_size is 0: set it to sizeof(%s)",
                       name, name);
    if (size == 0)
        return zr_fail(err, ZARR_ERR_ABI,
                       "%s.struct_size is 0: initialise the struct with its _INIT macro",
                       name);
    if (size < min_bytes || size > STRUCT_MAX_BYTES)
        return zr_fail(err, ZARR_ERR_ABI, "%s.struct_size is %" PRIu32 ", expected %zu",
                       name, size, dst_bytes);
    if (size > dst_bytes && tail == ZR_TAIL_REFUSE &&
        !struct_is_all_zero((const unsigned char *)src + dst_bytes, size - dst_bytes))
        return zr_fail(
            err, ZARR_ERR_UNSUPPORTED,
            "%s has members set that this version of the library does not know", name);

    memcpy(dst, src, ZR_MIN((size_t)size, dst_bytes));
    memcpy(dst, &own_size, sizeof own_size);
    return ZARR_OK;
}

void zr_struct_give(void *dst, size_t dst_bytes, const void *src, size_t src_bytes)
{
    const size_t n = ZR_MIN(dst_bytes, src_bytes);
    const uint32_t size = (uint32_t)dst_bytes;

    if (dst_bytes < sizeof size)
        return;
    memcpy(dst, src, n);
    memset((unsigned char *)dst + n, 0, dst_bytes - n);
    memcpy(dst, &size, sizeof size);
}

zarr_status zr_flags_check(uint32_t flags, uint32_t known, const char *what,
                           zarr_error *err)
{
    return flags & ~known ? zr_fail(err, ZARR_ERR_UNSUPPORTED,
                                    "%s: unknown flags 0x%" PRIx32, what, flags & ~known)
                          : ZARR_OK;
}
