/*
 * zarrc/memory.h - memory of any kind, as data: the tensor view that every
 * read fills and every write drains, and the run of bytes that stores and
 * codecs see. Device numbers are DLPack's (dlpack.h, DLDeviceType), so a
 * DLTensor becomes a zarr_tensor without a copy; DLPack counts strides in
 * elements and has no byte order, we count bytes and name it.
 */
#ifndef ZARRC_MEMORY_H
#define ZARRC_MEMORY_H

#include <zarrc/base.h>
#include <zarrc/error.h>

ZARR_BEGIN_DECLS

typedef struct zarr_dtype zarr_dtype;
typedef struct zarr_context zarr_context;

/** DLPack's DLDeviceType numbers; others are legal when a memory backend registered them.
 */
enum {
    ZARR_DEVICE_CPU = 1,
    ZARR_DEVICE_CUDA = 2,
    ZARR_DEVICE_CUDA_HOST = 3,
    ZARR_DEVICE_OPENCL = 4,
    ZARR_DEVICE_EXT = 12,
    ZARR_DEVICE_CUDA_MANAGED = 13
};

/** A run of bytes anywhere. `handle` is a pointer or the backend's object (cl_mem); never
 * dereferenced directly. */
typedef struct zarr_mem {
    int32_t device_type, device_id;
    void *handle;
    uint64_t offset; /**< bytes behind handle */
    uint64_t bytes;  /**< extent from offset on */
} zarr_mem;

enum {
    ZARR_ORDER_NATIVE = 0,
    ZARR_ORDER_LITTLE = 1,
    ZARR_ORDER_BIG = 2
};

/**
 * Where elements are or shall go. The caller owns everything in it, for the
 * duration of the call or until the request is done.
 * Strides are in bytes and may be zero or negative; NULL means C order. As a
 * destination, elements must not overlap (ZARR_ERR_INVALID). data_bytes is the
 * extent behind `data` that may be touched, checked against shape and strides;
 * 0: not known. dtype NULL means the array's own data type.
 */
typedef struct zarr_tensor {
    uint32_t struct_size;
    int32_t device_type, device_id, ndim;
    void *data;
    const zarr_dtype *dtype;
    const int64_t *shape, *strides;
    uint64_t byte_offset, data_bytes;
    uint32_t byte_order, flags; /**< ZARR_ORDER_*; ZARR_TENSOR_* */
} zarr_tensor;

/** In zarr_tensor.flags. */
enum {
    /**
     * Several elements a byte, for types of 2, 4 and 6 bits: element i has the bits from
     * i * width on, counted from the lowest of the first byte (DLPack's packing). In host
     * memory, without strides; `shape` counts elements, data_bytes bytes. Taken by
     * zarr_array_read() and _write(), which need a byte an element beside it meanwhile.
     */
    ZARR_TENSOR_PACKED = 1
};

#define ZARR_TENSOR_INIT ZARR_SIZE_FIRST(zarr_tensor)

/**
 * Fills the first out_bytes of *out as zarr_tensor_host() does. For other languages; C
 * and C++ use that function, which knows the size.
 */
ZARR_API void zarr_tensor_host_sized(zarr_tensor *out, uint32_t out_bytes, void *data,
                                     uint64_t data_bytes, int32_t ndim,
                                     const int64_t *shape);
/** Fills *out as a C-order, native-endian host tensor over `data` (borrowed; so is
 * shape). Thread class: plain function. */
static inline void zarr_tensor_host(zarr_tensor *out, void *data, uint64_t data_bytes,
                                    int32_t ndim, const int64_t *shape)
{
    zarr_tensor_host_sized(out, sizeof *out, data, data_bytes, ndim, shape);
}

/**
 * Allocates `bytes` of the given device's memory through the context's backend; 64-byte
 * aligned or better, huge pages for large host blocks, counted in the byte budget's
 * statistics only.
 * @param out owned by the caller; give it back with zarr_mem_free()
 * @return UNSUPPORTED: no backend has that device type; NO_MEMORY; DEVICE
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_mem_alloc(zarr_context *ctx,
                                                    int32_t device_type,
                                                    int32_t device_id, uint64_t bytes,
                                                    zarr_mem *out, zarr_error *err);

/** Gives back what zarr_mem_alloc() gave; an empty zarr_mem is fine. Sets *mem empty. */
ZARR_API void zarr_mem_free(zarr_context *ctx, zarr_mem *mem);

/** Copies bytes between any two memories, through the host where no direct way exists. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_mem_copy(zarr_context *ctx, const zarr_mem *dst,
                                                   const zarr_mem *src, uint64_t bytes,
                                                   zarr_error *err);

ZARR_END_DECLS

#endif
