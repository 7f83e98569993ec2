/**
 * @file
 * Cancellation: one object stops every call that has it.
 */
#ifndef ZARRC_CANCEL_H
#define ZARRC_CANCEL_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/**
 * Makes an object that is not set.
 * @param out receives the object; owned: zarr_cancel_free()
 * @retval ZARR_ERR_NO_MEMORY an allocation failed
 * @see zarr_cancel_set(), zarr_request_cancel()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_cancel_create(zarr_cancel **out,
                                                        zarr_error *err);

/**
 * Gives up the ownership of a cancel object. Submitted requests own the object of their
 * options, too, until they are freed; blocking calls borrow it. The last owner frees it.
 * @param cancel may be NULL
 */
ZARR_API void zarr_cancel_free(zarr_cancel *cancel);

/**
 * Asks all calls that have the object to stop. It stays set, so later calls stop, too.
 * The function only stores to an atomic variable: a signal handler may call it.
 *
 * A call whose object is set returns ZARR_ERR_CANCELLED soon. A read or write finishes
 * the chunks that it is decoding, encoding or storing, and begins no other. One operation
 * of a store runs to its end, unless the store ends it early (zarrc/plugin/store.h). A
 * write that was ended early may have been done. A call that had all of its work done may
 * return ZARR_OK.
 *
 * After a cancelled call, each object of the store holds its old or its new value. Locks
 * are released, and temporary files are removed. The call leaves:
 *
 * - zarr_array_write(): some chunks are new, the others old.
 * - zarr_array_append(): as stated there, the old shape and a record of leftovers.
 * - zarr_array_resize(): the old shape or the new one, with a record of leftovers if
 *   chunks outside of the shape are not cleared yet. The same call continues.
 * - zarr_node_copy(), zarr_node_move(), zarr_node_reencode(): a destination that is not a
 *   node yet, or all of it. `.zarrc-job` may be there. The source is complete.
 * - zarr_node_delete_watched(): the node, or a rest that is not a node any more.
 * - zarr_node_migrate(): some documents of the new format; the old ones are complete.
 * - zarr_group_consolidate(): nothing, or the new metadata.
 * - Calls that only read: nothing. Calls that create with a claim: maybe `.zarrc-job`.
 *
 * The content of a destination tensor is undefined. `cancel` is plain
 * memory: a forked child has its own copy.
 * @param cancel borrowed; may be NULL
 * @see zarr_cancel_reset()
 */
ZARR_API void zarr_cancel_set(zarr_cancel *cancel);

/**
 * Makes a set object usable for further calls. A call that runs meanwhile may or may not
 * have seen that it was set. A signal handler may call it.
 * @param cancel borrowed; may be NULL
 */
ZARR_API void zarr_cancel_reset(zarr_cancel *cancel);

/**
 * Returns 1 if the object is set, else 0. A signal handler may call it.
 * @param cancel borrowed; NULL: 0
 */
ZARR_API int zarr_cancel_is_set(const zarr_cancel *cancel);

ZARR_END_DECLS

#endif
