/**
 * @file
 * Everything that a program needs to use libzarrc. A program that exchanges tensors or
 * columns with other libraries includes zarrc/dlpack.h or zarrc/arrow.h as well, and one
 * that extends the library headers of zarrc/plugin/.
 */
/**
 * @mainpage Zarr arrays in C
 *
 * libzarrc reads and writes Zarr arrays and groups of the formats 2 and 3. A Zarr array
 * is an N-dimensional array of equal elements, cut into chunks. Each chunk is compressed
 * and stored under a key of a store, such as a file below a directory. Groups and arrays
 * are the nodes of a hierarchy and have attributes, a JSON object of the user's own.
 *
 * ## A short program
 *
 * The calls of zarrc/easy.h are enough for everyday work:
 *
 * - zarr_create_array() or zarr_open_array() gives the array at a location such as
 *   "run.zarr/temp".
 * - zarr_array_write_box() stores elements from memory of the program, and
 *   zarr_array_read_box() fills memory. Both convert numbers if no value changes.
 * - zarr_array_free() frees the array.
 *
 * Programs in C++ may include zarrc/zarrc.hpp instead: handles free themselves, and the
 * containers of the standard library are buffers.
 *
 * ## A program that controls everything
 *
 * - zarr_context_create() makes a context. Make one when the program starts.
 * - zarr_store_open() opens a store: a directory, memory, or a store of the
 *   application's own.
 * - zarr_array_create() or zarr_array_open() gives an array.
 * - zarr_tensor_host() describes memory of the program. zarr_array_read() fills it with
 *   elements of the array, and zarr_array_write() stores elements from it.
 * - The program frees its handles, in any order.
 *
 * ## Handles
 *
 * `zarr_context`, `zarr_store`, `zarr_array`, `zarr_group`, `zarr_selection`,
 * `zarr_request`, `zarr_cancel` and `zarr_heap` are opaque (zarrc/types.h).
 * A call that makes a handle stores it in `*out`, or NULL when it fails. The handle then
 * belongs to the caller, who gives it up with the matching free function.
 *
 * Free functions accept NULL. With NULL for a handle, a call that returns a status
 * returns ZARR_ERR_INVALID, a getter returns NULL or 0, and any other call does nothing,
 * unless its page says what NULL means.
 *
 * Contexts, stores, arrays and groups count their owners. zarr_array_ref() and its
 * siblings add an owner, and the object lives until its last owner frees it. An array or
 * group keeps its store alive, and a store keeps its context alive.
 *
 * ## Errors
 *
 * A call that can fail returns a `zarr_status`: ZARR_OK, which is 0, or a negative
 * ZARR_ERR_ code. Its last parameter, `err`, points to a `zarr_error` of the caller's,
 * usually on the stack, and receives the code and one line of text that names the node,
 * the key and the reason. `err` may be NULL. After a success it is unchanged. Nothing has
 * to be freed, nothing is printed, and no error is kept in a thread-local variable.
 *
 * Pages list the codes that have a meaning of their own for a call. Further codes are
 * possible everywhere: ZARR_ERR_NO_MEMORY, ZARR_ERR_LIMIT for input beyond a member of
 * `zarr_limits`, ZARR_ERR_ABI for an options struct without its size, and
 * ZARR_ERR_UNSUPPORTED for an unknown flag. A call that reads or writes the store may
 * also return ZARR_ERR_IO.
 *
 * ## Options structs
 *
 * A struct whose first member is `struct_size` can grow in later versions, at its end
 * only. Set that member with the struct's _INIT macro, or with sizeof in a designated
 * initialiser. Each other member means its default when it is zero. A NULL pointer to
 * options means all defaults. Text and arrays that members point to are borrowed for the
 * call unless a member says that they are copied.
 *
 * A program that was compiled with an older, shorter struct keeps working. A longer
 * struct of a newer program works while the members that this library does not know are
 * zero. Otherwise the call returns ZARR_ERR_UNSUPPORTED: no option is silently ignored.
 *
 * ## Ownership
 *
 * Three words tell who frees what. Borrowed: the object stays the caller's and must be
 * valid during the call, or for as long as stated. Owned: the caller frees the object.
 * Moved: the object belongs to the library from the call on, also when the call fails.
 *
 * ## Threads
 *
 * Every call may be made from any thread, and several threads may share a handle, unless
 * the call or the type says otherwise. Comments name three thread classes. Frozen: the
 * object never changes after it is made. Shared: the object locks inside. Solo: one
 * thread at a time. A handle must not be freed by its last owner while another thread is
 * inside a call with it.
 *
 * Reads and writes use a pool of threads that belongs to the process. The pool starts
 * when it is first needed. `zarr_context_options.max_threads` limits how many of its
 * threads work for a context. Handles survive a fork: the child process may go on using
 * them, except for requests that the parent had submitted.
 *
 * ## Shapes, elements and units
 *
 * Shapes, coordinates and counts of elements are uint64_t. Dimension 0 varies slowest (C
 * order). Sizes of memory and of stored objects are bytes. The memory of the caller is
 * described by a `zarr_tensor`, whose strides are in bytes and may be negative or zero,
 * and whose byte order may differ from the machine's. A `zarr_selection` says which
 * elements a call means.
 *
 * ## Text
 *
 * All text is UTF-8 and ends with a NUL. Attributes, codecs and fill values are JSON
 * text. A call that writes text into a buffer of the caller's works as snprintf() does:
 * at most `cap` bytes are written, the terminator included, and the length without the
 * terminator is stored, even if it exceeds the buffer.
 *
 * ## Paths and keys
 *
 * A path names a node below the root of its store, such as "a/b". "" and "/" are the
 * root. Backslashes count as slashes, and slashes at the ends or next to each other are
 * ignored. A key names a stored object, such as "a/b/zarr.json".
 */
#ifndef ZARRC_ZARRC_H
#define ZARRC_ZARRC_H

#include <zarrc/array.h>
#include <zarrc/base.h>
#include <zarrc/blocks.h>
#include <zarrc/cancel.h>
#include <zarrc/check.h>
#include <zarrc/chunks.h>
#include <zarrc/consolidate.h>
#include <zarrc/context.h>
#include <zarrc/create.h>
#include <zarrc/dtype.h>
#include <zarrc/easy.h>
#include <zarrc/error.h>
#include <zarrc/group.h>
#include <zarrc/io.h>
#include <zarrc/limits.h>
#include <zarrc/memory.h>
#include <zarrc/node.h>
#include <zarrc/objects.h>
#include <zarrc/parts.h>
#include <zarrc/plan.h>
#include <zarrc/progress.h>
#include <zarrc/reencode.h>
#include <zarrc/request.h>
#include <zarrc/selection.h>
#include <zarrc/shape.h>
#include <zarrc/store.h>
#include <zarrc/types.h>
#include <zarrc/version.h>
#include <zarrc/vlen.h>

#endif
