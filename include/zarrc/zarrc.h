/**
 * @file
 * Everything that a program needs to use libzarrc. To exchange tensors or columns with
 * other libraries, include zarrc/dlpack.h or zarrc/arrow.h as well. To extend the
 * library, include headers of zarrc/plugin/.
 */
/**
 * @mainpage Zarr arrays in C
 *
 * libzarrc reads and writes Zarr arrays and groups of the formats 2 and 3 (v2 and v3). A
 * Zarr array is an N-dimensional array of elements of one data type, cut into chunks.
 * Each chunk is encoded, for example compressed, and a store keeps it under a key, such
 * as the name of a file. Or several chunks form a shard, which has one key. Groups and
 * arrays are the nodes of a hierarchy. Each node has attributes: a JSON object that the
 * user defines.
 *
 * ## A short program
 *
 * The calls of zarrc/easy.h are enough for everyday work:
 *
 * - zarr_create_array() or zarr_open_array() gives the array at a location such as
 *   "run.zarr/temp".
 * - zarr_array_write_box() stores elements from memory of the program, and
 *   zarr_array_read_box() fills memory. Both convert numbers if no value can change.
 * - zarr_array_free() frees the array.
 *
 * Programs in C++ may include zarrc/zarrc.hpp instead. There, handles free themselves,
 * and containers of the standard library serve as buffers.
 *
 * ## A program that controls everything
 *
 * - zarr_context_create() makes a context. Make one when the program starts.
 * - zarr_store_open() opens a store: a directory, memory, a zip archive, a web server, a
 *   bucket of S3, or one that the application has registered.
 * - zarr_array_create() or zarr_array_open() gives an array.
 * - zarr_tensor_host() describes memory of the program. zarr_array_read() fills it with
 *   elements of the array, and zarr_array_write() stores elements from it.
 * - The program frees its handles, in any order.
 *
 * ## Handles
 *
 * `zarr_context`, `zarr_store`, `zarr_array`, `zarr_group`, `zarr_selection`,
 * `zarr_request`, `zarr_shard_writer`, `zarr_cancel` and `zarr_heap` are opaque handles
 * (zarrc/types.h). A call that makes a handle stores it in `*out`, or NULL when it fails.
 * The caller owns the handle and gives it up with the matching free function.
 *
 * Free functions accept NULL. Other calls treat NULL in place of a handle as follows,
 * unless their page says what NULL means. A call that returns a status returns
 * ZARR_ERR_INVALID, a getter returns NULL or 0, and any other call does nothing.
 *
 * Contexts, stores and arrays count their owners. zarr_array_ref(), zarr_store_ref() and
 * zarr_context_ref() add an owner, and the object lives until its last owner frees it. An
 * array or group keeps its store alive, and a store keeps its context alive.
 *
 * ## Errors
 *
 * Most calls that can fail return a `zarr_status`: ZARR_OK, which is 0, or a negative
 * ZARR_ERR_ code. Their last parameter, `err`, points to a `zarr_error` of the caller,
 * usually on the stack. The call stores the code there, and one line of text that names
 * the node, the key and the reason. `err` may be NULL. A call that succeeds does not
 * change it. The library prints nothing and keeps no error in a thread-local variable,
 * and an error needs no free.
 *
 * The page of a call lists the codes with a special meaning for it. Other codes are
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
 * A program that was compiled with an older, shorter struct keeps working. A newer
 * program may pass a longer struct. If a member that this library does not know is not
 * zero, the call returns ZARR_ERR_UNSUPPORTED, and not a result without the option.
 *
 * ## Ownership
 *
 * Three words tell who frees what:
 *
 * - Borrowed: the owner stays the same. What a borrowed argument points to must be valid
 *   during the call, or for as long as stated. A borrowed result is valid for as long as
 *   the handle that it comes from.
 * - Owned: the caller must free the object.
 * - Moved: the library owns the object from the call on, even if the call fails.
 *
 * ## Threads
 *
 * Any thread may make any call, and several threads may share a handle, unless the call
 * or the type says otherwise. Comments name three thread classes. Frozen: the object
 * never changes, so any thread may use it. Shared: the object has locks inside, so any
 * thread may use it. Solo: only one thread may use it at a time. The last owner must not
 * free a handle while another thread is inside a call with it.
 *
 * Reads and writes use a pool of threads that belongs to the process. The pool starts
 * when it is first needed. `zarr_context_options.max_threads` limits how many of its
 * threads work for a context. Handles survive a fork: the child process may continue to
 * use them. There are two exceptions: requests that the parent had submitted, and writes
 * to a zip archive that the parent was writing.
 *
 * ## Cancellation
 *
 * A call that may wait for a store takes a `zarr_cancel`, as the member `cancel` of its
 * options or as the parameter before `err`. zarr_cancel_set() stops all calls that have
 * the object. Four kinds of calls have no such object and run to their end: calls of
 * zarrc/easy.h without options, zarr_node_delete(), zarr_node_other_format(), and freeing
 * an archive that was written (flush it first).
 *
 * ## Shapes, elements and units
 *
 * Shapes, coordinates and counts of elements are uint64_t. Dimension 0 varies slowest (C
 * order). `ndim` in names means number of dimensions. Sizes of memory and of stored
 * objects are in bytes. A `zarr_tensor` describes memory of the caller. Its strides are
 * in bytes and may be negative or zero, and its byte order may differ from the machine's.
 * A `zarr_selection` says which elements a call reads or writes.
 *
 * ## Text
 *
 * All text is UTF-8 and ends with a NUL. Attributes, codecs and fill values are JSON
 * text. Unless its page says otherwise, a call that writes text into a buffer of the
 * caller works as snprintf() does. It writes at most `cap` bytes, the terminator
 * included. It stores the full length without the terminator, even if that exceeds the
 * buffer.
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
