/**
 * @file
 * Tensors of DLPack: those of NumPy, PyTorch, JAX, CuPy and others become a zarr_tensor,
 * and back, without a copy of their elements. The header needs no other library. It works
 * beside dlpack.h, which may be included before it, after it or not at all.
 *
 * Spec: DLPack 1.1, https://dmlc.github.io/dlpack/latest/c_api.html; tensors without a
 * version as of DLPack 0.6 and later.
 */
#ifndef ZARRC_DLPACK_H
#define ZARRC_DLPACK_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/* The structs of dlpack.h. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/** Flags of a tensor of DLPack. */
enum {
    ZARR_DLPACK_READ_ONLY = 1, /**< elements must not be changed */
    ZARR_DLPACK_COPIED = 2     /**< elements are a copy made for the receiver */
};

/** A tensor of DLPack as zarrc sees it. `tensor` points into the struct: do not move it.
 */
typedef struct zarr_dlpack_view {
    uint32_t struct_size;
    uint32_t flags;     /**< ZARR_DLPACK_*; 0 of tensors without a version */
    zarr_tensor tensor; /**< the elements; its `data` belongs to the tensor of DLPack */
    uint64_t shape[ZARR_MAX_RANK];  /**< what `tensor.shape` points to */
    int64_t strides[ZARR_MAX_RANK]; /**< what `tensor.strides` points to, unless NULL */
} zarr_dlpack_view;

#define ZARR_DLPACK_VIEW_INIT ZARR_SIZE_FIRST(zarr_dlpack_view)

/** @name Tensors of DLPack as tensors of zarrc
 * @{
 */
/**
 * Describes the elements of a tensor of DLPack. Nothing is copied. If no data type has
 * the tensor's lanes, they become one more dimension, the last. Elements of less than a
 * byte are packed (ZARR_TENSOR_PACKED), unless the tensor's flags say that they are
 * padded to bytes.
 * @param out filled; initialise it with ZARR_DLPACK_VIEW_INIT. Valid as long as `from`
 * @param ctx borrowed; it knows the data types
 * @param from borrowed; its deleter is not called
 * @retval ZARR_ERR_UNSUPPORTED the major version is not 1, there is no such data type, or
 * packed elements have rows that do not begin at a byte
 * @retval ZARR_ERR_INVALID an argument is NULL, or a device, shape, stride or offset is
 * impossible
 * @see zarr_tensor, zarr_dtype_from_dlpack()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_tensor_from_dlpack(zarr_dlpack_view *out, zarr_context *ctx,
                        const struct DLManagedTensorVersioned *from, zarr_error *err);

/**
 * Describes the elements of a tensor without a version (DLPack before 1.0). Its elements
 * of less than a byte are packed.
 * @param out,ctx,from as for zarr_tensor_from_dlpack()
 * @return as zarr_tensor_from_dlpack()
 * @retval ZARR_ERR_UNSUPPORTED there is no such data type, or rows do not begin at a byte
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_tensor_from_dlpack_unversioned(zarr_dlpack_view *out, zarr_context *ctx,
                                    const struct DLManagedTensor *from, zarr_error *err);
/** @} */

/** @name Tensors of zarrc as tensors of DLPack
 * @{
 */
/**
 * Called once when the receiver deletes a tensor of DLPack, from any thread.
 * @param user as passed to zarr_tensor_to_dlpack()
 */
typedef void (*zarr_dlpack_release)(void *user);

/**
 * Makes a tensor of DLPack of the elements of `tensor`. Nothing is copied. Elements of
 * less than a byte are flagged as padded, unless the tensor is packed.
 * @param out receives the tensor, version 1.1; owned: call its deleter
 * @param ctx borrowed; the tensor keeps it alive
 * @param tensor borrowed during the call, apart from its elements; `dtype` is needed
 * @param flags ZARR_DLPACK_*
 * @param release,user called by the deleter, to free the elements; not called if this
 * function fails. `release` may be NULL
 * @retval ZARR_ERR_UNSUPPORTED DLPack has no such data type, or the elements are not in
 * the machine's byte order, or strides are no multiple of the size of an element
 * @retval ZARR_ERR_INVALID an argument is NULL, or a shape, stride or offset is
 * impossible
 * @see zarr_dtype_dlpack()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_tensor_to_dlpack(
    struct DLManagedTensorVersioned **out, zarr_context *ctx, const zarr_tensor *tensor,
    uint32_t flags, zarr_dlpack_release release, void *user, zarr_error *err);

/**
 * Makes a tensor without a version, for receivers that know no other. It cannot say that
 * elements are read-only, or that those of less than a byte are padded.
 * @param out receives the tensor; owned: call its deleter
 * @param ctx,tensor,release,user as for zarr_tensor_to_dlpack()
 * @return as zarr_tensor_to_dlpack()
 * @retval ZARR_ERR_UNSUPPORTED also if elements of less than a byte are not packed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_tensor_to_dlpack_unversioned(
    struct DLManagedTensor **out, zarr_context *ctx, const zarr_tensor *tensor,
    zarr_dlpack_release release, void *user, zarr_error *err);
/** @} */

ZARR_END_DECLS

#endif
