/**
 * @file
 * Two structs describe memory of any kind. Reads fill a `zarr_tensor`, and writes store
 * its elements. Stores and codecs use a `zarr_memory`, a range of bytes.
 */
#ifndef ZARRC_MEMORY_H
#define ZARRC_MEMORY_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/**
 * Kinds of memory. The numbers are those of DLPack (DLDeviceType). Other numbers are
 * legal if a memory backend is registered for them.
 */
enum {
    ZARR_DEVICE_CPU = 1,          /**< host memory, which is always there */
    ZARR_DEVICE_CUDA = 2,         /**< memory of a CUDA device */
    ZARR_DEVICE_CUDA_HOST = 3,    /**< host memory pinned by CUDA */
    ZARR_DEVICE_OPENCL = 4,       /**< memory of an OpenCL device */
    ZARR_DEVICE_EXT = 12,         /**< memory of an application or an extension */
    ZARR_DEVICE_CUDA_MANAGED = 13 /**< managed memory of CUDA */
};

/**
 * A range of bytes in memory of any kind. The struct has no size member, and its layout
 * never changes.
 */
typedef struct zarr_memory {
    int32_t device_type; /**< kind of memory, one of ZARR_DEVICE_* */
    int32_t device_id;   /**< number of the device */
    /** the memory: a pointer, or an object of the backend such as a cl_mem. The library
     * dereferences it only in host memory */
    void *handle;
    uint64_t offset; /**< bytes from `handle` to the range */
    uint64_t bytes;  /**< length of the range */
} zarr_memory;

/** Byte orders. 0, which has no name, is the order that the data type names, as in ">i2",
 * else that of the machine. */
enum {
    ZARR_ORDER_LITTLE = 1, /**< little-endian */
    ZARR_ORDER_BIG = 2     /**< big-endian */
};

/**
 * Describes where elements are, or where a read puts them. The caller owns the memory and
 * everything that the struct points to, and keeps it valid during the call, or until the
 * request is done.
 *
 * A DLTensor of DLPack becomes a zarr_tensor without a copy of its elements, and back
 * (`zarrc/dlpack.h`). The device numbers are the same. DLPack counts strides in elements
 * and has no byte order; here strides are in bytes, and `byte_order` names the order.
 *
 * If elements of a destination overlap, the read fails with ZARR_ERR_INVALID. In a
 * source, a stride of 0 repeats an element along that dimension.
 */
typedef struct zarr_tensor {
    uint32_t struct_size;
    /** kind of memory, one of ZARR_DEVICE_* (0: what zarr_array_memory() tells), number
     * of the device, and number of dimensions */
    int32_t device_type, device_id, ndim;
    void *data; /**< the memory; a write to an array does not change it */
    /** data type of the elements; NULL: `data_type`, or the array's own */
    const zarr_dtype *dtype;
    const uint64_t *shape; /**< `ndim` lengths in elements */
    /** `ndim` distances in bytes from one element to the next; NULL: C order without
     * gaps */
    const int64_t *strides;
    /** `byte_offset`: bytes from `data` to the first element. `data_bytes`: bytes of
     * memory at `data`, against which shape and strides are checked; 0: not known */
    uint64_t byte_offset, data_bytes;
    /** `byte_order`: one of ZARR_ORDER_*; 0: that in `data_type`, or the machine's.
     * `flags`: ZARR_TENSOR_* */
    uint32_t byte_order, flags;
    /** data type of the elements by name, as for zarr_dtype_find_order(), in calls that
     * have an array. NULL: `dtype`. Only one of the two may be set */
    const char *data_type;
} zarr_tensor;

/** Flags of a zarr_tensor. */
enum {
    /**
     * several elements share a byte, for data types of 2, 4 and 6 bits. Element i has the
     * bits from i * width on, counted from the lowest bit of the first byte, as DLPack
     * packs them. `shape` counts elements, `data_bytes` bytes. With `strides` each row
     * along the last dimension begins at a byte. The last stride must be 1: it counts
     * elements, not bytes. Bits after a row that ends inside a byte
     * become zero.
     */
    ZARR_TENSOR_PACKED = 1
};

#define ZARR_TENSOR_INIT ZARR_SIZE_FIRST(zarr_tensor)

/**
 * @name Describe host memory as a tensor
 * @{
 */
/**
 * Fills the first `out_bytes` bytes of `*out` as zarr_tensor_host() does, for languages
 * other than C and C++.
 * @param out filled
 * @param out_bytes the size of the caller's struct
 * @param data_type,data,data_bytes,ndim,shape as for zarr_tensor_host()
 */
ZARR_API void zarr_tensor_host_sized(zarr_tensor *out, uint32_t out_bytes,
                                     const char *data_type, void *data,
                                     uint64_t data_bytes, int32_t ndim,
                                     const uint64_t *shape);
/**
 * Makes `*out` describe elements in host memory, in C order. Their byte order is the one
 * that `data_type` names, as in ">i2", else that of the machine. Nothing is copied or
 * allocated. For an array or a field of another data type,
 * reads and writes fail with ZARR_ERR_INVALID; zarr_array_read_box() converts numbers.
 *
 * @param out filled
 * @param data_type data type of the elements at `data`, such as "float64" or "int32";
 * borrowed for as long as the tensor is used. NULL: the array's own, for programs that
 * take any type
 * @param data the first element; borrowed for as long as the tensor is used
 * @param data_bytes bytes of memory at `data`, which guard against a wrong shape; 0:
 * not known
 * @param ndim number of dimensions; 0 for a single element
 * @param shape `ndim` lengths in elements; borrowed for as long as the tensor is used
 * @see zarr_tensor, zarr_array_read(), zarr_array_write()
 */
static inline void zarr_tensor_host(zarr_tensor *out, const char *data_type, void *data,
                                    uint64_t data_bytes, int32_t ndim,
                                    const uint64_t *shape)
{
    zarr_tensor_host_sized(out, sizeof *out, data_type, data, data_bytes, ndim, shape);
}
/** @} */

/**
 * @name Memory of a device
 * Programs that use only host memory do not need these calls.
 * @{
 */
/**
 * Tells which memory a text such as "cuda:0" names: a kind, and after a colon the device
 * (number 0 if it is missing). A kind is the name of a memory backend of the context, a
 * number of DLPack, or one of these words: host, cpu, cuda, cuda_host, cuda_managed,
 * opencl, ext. A device is a number, or a name that the backend of the kind finds, such
 * as the UUID of a GPU in "cuda:GPU-8932f937". The call does not check whether a device
 * with such a number exists.
 * @param ctx borrowed; NULL: no backend is known
 * @param text NUL-terminated
 * @param device_type receives the kind of memory, also after ZARR_ERR_UNSUPPORTED. It is
 * 0 if the text names no kind (ZARR_ERR_INVALID)
 * @param device_id receives the number of the device
 * @retval ZARR_ERR_INVALID the text names no kind of memory, or no device of it
 * @retval ZARR_ERR_UNSUPPORTED the device has a name, but no memory backend of the kind
 * is loaded, or its driver is missing
 * @see zarr_tensor, zarr_context_list()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_memory_parse(zarr_context *ctx,
                                                       const char *text,
                                                       int32_t *device_type,
                                                       int32_t *device_id,
                                                       zarr_error *err);

/**
 * Allocates memory of a device, through the backend of the context that allocates its
 * kind (zarr_context_options.allocators). The block is aligned to 64 bytes or more. Large
 * host blocks are on huge pages.
 *
 * @param out receives the block; owned: zarr_memory_free()
 * @param ctx borrowed
 * @param device_type kind of memory, one of ZARR_DEVICE_*
 * @param device_id number of the device
 * @param bytes length of the block
 * @retval ZARR_ERR_UNSUPPORTED no memory backend has this device type
 * @retval ZARR_ERR_NO_MEMORY the device has too little memory
 * @retval ZARR_ERR_DEVICE the device or its driver failed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_memory_alloc(zarr_memory *out,
                                                       zarr_context *ctx,
                                                       int32_t device_type,
                                                       int32_t device_id, uint64_t bytes,
                                                       zarr_error *err);

/**
 * Allocates memory through the backend with a given name, such as an application's pool.
 * Its kind is that of the backend.
 *
 * @param out receives the block; owned: zarr_memory_free()
 * @param ctx borrowed
 * @param backend name of a registered memory backend, such as "host" or "cuda"
 * @param device_id number of the device
 * @param bytes length of the block
 * @retval ZARR_ERR_UNSUPPORTED no memory backend has this name
 * @retval ZARR_ERR_NO_MEMORY the device has too little memory
 * @retval ZARR_ERR_DEVICE the device or its driver failed
 * @see zarr_memory_alloc(), zarr_context_register_memory()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_memory_alloc_from(zarr_memory *out, zarr_context *ctx, const char *backend,
                       int32_t device_id, uint64_t bytes, zarr_error *err);

/**
 * Frees a block of zarr_memory_alloc() or zarr_memory_alloc_from() through the backend
 * that allocated it, and makes `*mem` empty. An empty `*mem` does not change.
 * @param ctx the context that allocated the block
 * @param mem the block
 */
ZARR_API void zarr_memory_free(zarr_context *ctx, zarr_memory *mem);

/**
 * Copies bytes between memory of any two kinds, through host memory if there is no direct
 * copy.
 * @param ctx borrowed
 * @param dst,src the two ranges; each has at least `bytes` bytes
 * @param bytes how many bytes are copied
 * @retval ZARR_ERR_INVALID a range is shorter than `bytes`, or its `handle` is NULL
 * @retval ZARR_ERR_UNSUPPORTED no memory backend has the device type
 * @retval ZARR_ERR_DEVICE a device or its driver failed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_memory_copy(zarr_context *ctx,
                                                      const zarr_memory *dst,
                                                      const zarr_memory *src,
                                                      uint64_t bytes, zarr_error *err);

/**
 * Tells to which memory a pointer belongs. The call asks each memory backend of the
 * context in the order of registration. If no backend knows the pointer, it is host
 * memory (ZARR_DEVICE_CPU). The pointer is not dereferenced. Handles that are not
 * addresses, such as a cl_mem, are not recognised.
 * @param ctx borrowed
 * @param pointer any address; NULL is host memory
 * @param device_type receives the kind of memory, one of ZARR_DEVICE_*
 * @param device_id receives the number of the device; 0 for host memory
 * @see zarr_memory_alloc()
 */
ZARR_API void zarr_memory_classify(zarr_context *ctx, const void *pointer,
                                   int32_t *device_type, int32_t *device_id);
/** @} */

ZARR_END_DECLS

#endif
