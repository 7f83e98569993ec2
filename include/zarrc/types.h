/**
 * @file
 * Opaque handles. Headers that only name a handle include this one, and not the header
 * with the calls for it.
 */
#ifndef ZARRC_TYPES_H
#define ZARRC_TYPES_H

#include <zarrc/base.h>

ZARR_BEGIN_DECLS

/** What all calls share: allocator, limits, registries and log. Thread class: shared. */
typedef struct zarr_context zarr_context;

/**
 * A store, which keeps byte values under keys. A key is a relative path such as
 * "a/zarr.json" or "a/c/0/1": parts of UTF-8 text joined by slashes, none of them empty,
 * "." or "..". Every store refuses other keys with ZARR_ERR_INVALID. Thread class:
 * shared.
 */
typedef struct zarr_store zarr_store;

/**
 * An open array. Several threads may share the handle. A call that changes the array in
 * the store, such as zarr_array_resize(), also updates its own handle. Other handles of
 * the array see the change after zarr_array_refresh(). Thread class: shared.
 */
typedef struct zarr_array zarr_array;

/** An open group. Several threads may share the handle. Thread class: shared. */
typedef struct zarr_group zarr_group;

/**
 * A data type. It belongs to its context and lives as long as the context: nothing has to
 * be freed. Thread class: frozen.
 */
typedef struct zarr_dtype zarr_dtype;

/**
 * A set of elements of an array, in an order. A selection is made for one shape, and can
 * be used for any number of reads and writes of arrays with that shape. Its size depends
 * on the number of dimensions and of given coordinates, not on the number of elements.
 * Thread class: frozen.
 */
typedef struct zarr_selection zarr_selection;

/** A read, write or append in progress. Thread class: shared. */
typedef struct zarr_request zarr_request;

/**
 * Writes one shard in parts, for shards that do not fit in memory. It keeps its array,
 * the context and the store alive. Thread class: solo.
 */
typedef struct zarr_shard_writer zarr_shard_writer;

/**
 * Asks calls to stop (zarr_cancel_set()). A program passes it to calls as `cancel`, a
 * member of their options or a parameter, and sets it from any thread or from a signal
 * handler. One object may serve many calls, one after another or at the same time. Thread
 * class: shared.
 */
typedef struct zarr_cancel zarr_cancel;

/** Holds the bytes that elements of variable length point to. Thread class: shared. */
typedef struct zarr_heap zarr_heap;

ZARR_END_DECLS

#endif
