/**
 * @file
 * How to make a store, for authors of plug-ins and applications. This header is stable
 * for each plug-in ABI number, not for a major version.
 *
 * The library passes operations to a store: it reads (GET), writes (PUT) and erases
 * (ERASE) values under keys. There are two ways to receive them. run() does one operation
 * before it returns; the library calls it from several of its threads at once. submit()
 * starts many operations, for a store with its own concurrency, such as an event loop. A
 * store tells what it can do by its capabilities (ZARR_STORE_CAP_*). The library emulates
 * the rest if it can; otherwise a call that needs it fails.
 *
 * Spec: Zarr v3 core, "Abstract store interface".
 */
#ifndef ZARRC_PLUGIN_STORE_H
#define ZARRC_PLUGIN_STORE_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>
#include <zarrc/objects.h>
#include <zarrc/store.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/** What an operation does. */
enum {
    ZARR_STORE_GET = 1,   /**< reads a value or a range of it */
    ZARR_STORE_PUT = 2,   /**< writes a whole value */
    ZARR_STORE_ERASE = 3, /**< erases a key and its value */
    /** writes the value of another key, `source`, as a PUT does, without sending its
     * bytes through this process */
    ZARR_STORE_COPY = 4,
    /** sets `object_bytes` to the length of a value, and `version` to its version. A
     * store that cannot do this ends every such operation with ZARR_ERR_UNSUPPORTED; then
     * the library sends a GET of 0 bytes instead */
    ZARR_STORE_STAT = 5,
    /** writes `mem` as one part of a value that begin_parts() began */
    ZARR_STORE_PUT_PART = 6
};

/** Flags of a zarr_store_op. */
enum {
    /** GET, PUT, COPY, ERASE: do it only if the value still has the version `version`,
     * else fail with ZARR_ERR_CONFLICT. A `version` of zeros means that the key does not
     * exist: a PUT or COPY succeeds only if it makes a new key. A GET or ERASE of a key
     * that does not exist fails with ZARR_ERR_NOT_FOUND, whatever `version` is. A store
     * gets this flag only with ZARR_STORE_CAP_VERSIONS (GET),
     * ZARR_STORE_CAP_PUT_IF_VERSION, ZARR_STORE_CAP_PUT_NEW (zeros) and
     * ZARR_STORE_CAP_ERASE_IF_VERSION. The library itself does an ERASE with zeros, which
     * erases nothing, on a store that lacks the last one */
    ZARR_STORE_OP_IF_VERSION = 1,
    /** PUT, COPY, ERASE: the caller holds `lock` for this key */
    ZARR_STORE_OP_LOCKED = 2,
    /** GET, PUT, COPY, STAT: set `version`, for which a store may need another call.
     * Without this flag `version` stays as it is */
    ZARR_STORE_OP_WANT_VERSION = 4,
    /** all verbs: a mask of two bits that tell what kind of object the key has: one of
     * the next three. If both bits are 0, the object is none of these, or the library
     * does not know it. An example is when it erases all keys below a prefix one by one
     */
    ZARR_STORE_OP_KIND = 24,
    /** a metadata document, or a record of the library about a node. A store whose writes
     * reach the disk later writes it to the disk before it replaces the old value */
    ZARR_STORE_OP_DOCUMENT = 8,
    ZARR_STORE_OP_INDEX = 16, /**< GET: the index of a shard, which is a range of it */
    ZARR_STORE_OP_CHUNK = 24, /**< a block, or a range of it */
    /** PUT: commits the parts of `parts`. The value has `length` bytes; `mem` is empty */
    ZARR_STORE_OP_IN_PARTS = 32
};

/** Where a COPY reads. */
typedef struct zarr_store_source {
    /** the store: NULL for the one that gets the operation. Only for zarr_store_run() */
    zarr_store *store;
    const char *key;
    /** what open() made for that store, which has the same functions as this one. Set by
     * the library */
    void *self;
    /** the version that the source must have, else the COPY fails with
     * ZARR_ERR_CONFLICT. Zeros: any. Only with ZARR_STORE_CAP_VERSIONS of the source */
    zarr_store_version version;
} zarr_store_source;

/**
 * One operation. The library sets the members up to `lock`, `tag` and those from `cancel`
 * on; the store sets the others, and `version` if asked. The layout never changes within
 * an ABI number.
 *
 * A GET reads min(`length`, `mem.bytes`) bytes at `offset` into `mem`, or fewer if the
 * value ends before, and sets `done_bytes` to the number of bytes that it read. If this
 * is less than `length`, or if the value continues after the bytes in `mem`, it must set
 * `object_bytes` to the length of the whole value. Otherwise it may leave UINT64_MAX
 * there. A range that begins after the end of the value has 0 bytes. If the key does not
 * exist, the status is ZARR_ERR_NOT_FOUND. If the store refuses access, it is
 * ZARR_ERR_DENIED, never ZARR_ERR_NOT_FOUND: a missing chunk reads as the fill value. A
 * GET must not read fewer bytes than the range has in the value. The library notices this
 * if `object_bytes` is set, and reports ZARR_ERR_IO.
 *
 * In a GET of a suffix, `offset` is ZARR_STORE_SUFFIX, and `length` is the number of
 * bytes to read from the end of the value. The first of them goes to the start of `mem`.
 * If `length` exceeds the value, the suffix is the whole value. Such a GET must set
 * `object_bytes`. Only a store with ZARR_STORE_CAP_SUFFIX gets it. From other stores the
 * library requests the length first.
 *
 * The library reads a shard in several GETs. With ZARR_STORE_CAP_VERSIONS all but the
 * first are conditional, and one that finds another version fails. A store without
 * versions should set `object_bytes` in every GET: then the library notices a shard of
 * another length, but not one of the same length.
 *
 * A COPY fails with ZARR_ERR_NOT_FOUND if the source does not exist. If the store cannot
 * copy from that source, such as one of another endpoint, it fails with
 * ZARR_ERR_UNSUPPORTED and changes nothing. The library then reads and writes the value.
 */
typedef struct zarr_store_op {
    uint32_t verb;           /**< one of ZARR_STORE_GET and so on */
    uint32_t flags;          /**< ZARR_STORE_OP_* */
    const char *key;         /**< the key; legal, and ended by a NUL */
    uint64_t offset, length; /**< GET: the range in bytes */
    /** GET: where the bytes go; PUT: the value. Memory of a kind that the store takes */
    zarr_memory mem;
    /** with ZARR_STORE_OP_IF_VERSION the version that is expected; becomes the version
     * that was read or written if the store has versions */
    zarr_store_version version;
    void *lock;            /**< what `zarr_store_vtable.lock` made */
    uint64_t done_bytes;   /**< bytes that were read or written */
    uint64_t object_bytes; /**< length of the whole value; UINT64_MAX: not told */
    zarr_status status;    /**< how the operation ended */
    int32_t os_code;       /**< as `zarr_error.os_code`; 0: none */
    void *tag;             /**< for the library; the store does not change it */
    /** bytes of `mem` that the store itself copied from host memory (up) or to host
     * memory (down); the library counts its own copies */
    uint64_t up_bytes, down_bytes;
    /** set by the library: once zarr_cancel_is_set() says so, the caller no longer needs
     * the result, and a store that waits may end the operation with
     * ZARR_ERR_CANCELLED. NULL: never */
    const zarr_cancel *cancel;
    zarr_store_source *source; /**< COPY: where the value is */
    /** PUT_PART and ZARR_STORE_OP_IN_PARTS: what begin_parts() made */
    void *parts;
    /** PUT_PART: number of the part, from 1. `offset` is where the part begins in the
     * value */
    uint64_t part;
} zarr_store_op;

/**
 * A store. Required are caps(), and run() or submit(); a registered store also needs
 * `name` and open(). lock() and unlock() come together. Any other entry may be NULL: its
 * comment gives the meaning, or the store cannot do it.
 *
 * The library calls the functions from any thread, several at once. `self` is what open()
 * made, or what zarr_store_open_custom() got. Functions that fail fill `err` with one
 * line of text. Functions that may take long get a `cancel`, which may be NULL, before
 * it: once zarr_cancel_is_set() says so, they end soon with ZARR_ERR_CANCELLED.
 *
 * Each write of an array checks the array's document before each wave of chunks and at
 * its end. If the store has ZARR_STORE_CAP_VERSIONS and the document is the one that
 * the array handle has seen, a check is one STAT. Otherwise it is one GET.
 */
typedef struct zarr_store_vtable {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    const char *name; /**< such as "local"; a registered store has it as URL scheme */
    /** Makes in `*self` the store of a URL. After a failure there is nothing to close.
     * NULL: the table is only for zarr_store_open_custom(). */
    zarr_status (*open)(void **self, zarr_context *ctx, const char *url,
                        const zarr_store_options *opts, const zarr_cancel *cancel,
                        zarr_error *err);
    /** Tells what the store can do. Sets the members of `*out` that are inside of
     * `out->struct_size`. */
    void (*caps)(void *self, zarr_store_caps *out);
    /** Does one operation before it returns. `err` gets the text for `op->status`. NULL:
     * the library uses submit(). */
    void (*run)(void *self, zarr_store_op *op, zarr_error *err);
    /**
     * Starts `n` operations and returns. The store calls `done`(`arg`, op, err) once for
     * each of them, from any thread and in any order, also before submit() returns.
     * Operations belong to the store until then. NULL: the library uses run().
     *
     * The library passes on all that it needs at a time, such as the ranges of many
     * chunks. A store with ZARR_STORE_CAP_COALESCES gets ranges of one value unmerged,
     * and merges near ones itself: it writes the bytes to their operations and discards
     * those between them. Only such GETs may share a request that have the same key and
     * `cancel`, and with ZARR_STORE_OP_IF_VERSION the same version.
     */
    void (*submit)(void *self, zarr_store_op **ops, uint64_t n,
                   void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                   void *arg);
    /** Asks the store to end the operations of submit() with this `arg` soon, with
     * ZARR_ERR_CANCELLED. NULL: they run to their end. */
    void (*cancel)(void *self, void *arg);
    /** Lists keys as zarr_store_list() does; `how` is ZARR_LIST_RECURSIVE,
     * ZARR_LIST_DIRECTORY or ZARR_LIST_DEBRIS. Needs ZARR_STORE_CAP_LIST.
     *
     * A store whose listings have pages requests one page after another inside of this
     * call, with the token that the last one ended with. It calls `fn` for the rows of a
     * page before it requests the next one, so it never holds all keys. It ends when `fn`
     * returns non-zero, which is no failure. `fn` may write and erase keys below the
     * prefix: whether keys that are written meanwhile are listed is up to the store. */
    zarr_status (*list)(void *self, const char *prefix, uint32_t how,
                        zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                        zarr_error *err);
    /** Waits until the caller alone may change a key, and sets `*lock`. Once `cancel`
     * (may be NULL) is set, it ends the wait soon with ZARR_ERR_CANCELLED.
     *
     * Between the holder's GET and its PUT or ERASE no other caller may write the key. So
     * PUTs and ERASEs without ZARR_STORE_OP_LOCKED, such as those of whole chunks, must
     * wait, too. With ZARR_STORE_CAP_WRITES_WAIT, the store makes them wait itself, and
     * does other operations meanwhile. Without it, the library takes the lock around each
     * PUT and ERASE and sets ZARR_STORE_OP_LOCKED. It does so one by one, on several
     * threads, also if the store has submit().
     *
     * The library takes locks of other keys while it holds one, so the locks of two keys
     * must not exclude each other. */
    zarr_status (*lock)(void *self, const char *key, const zarr_cancel *cancel,
                        void **lock, zarr_error *err);
    /** Ends what lock() began, possibly in another thread; cannot fail. */
    void (*unlock)(void *self, void *lock);
    /** Flushes as zarr_store_flush(). Each append calls it, too, and each resize that
     * clears elements. NULL: there is nothing to flush. */
    zarr_status (*flush)(void *self, const zarr_cancel *cancel, zarr_error *err);
    /** Erases all keys below a prefix. NULL: the library lists and erases them, a few
     * thousand at a time. */
    zarr_status (*erase_prefix)(void *self, const char *prefix, const zarr_cancel *cancel,
                                zarr_error *err);
    /** Erases the files or keys that killed processes left, as zarr_store_clean() does.
     * NULL: there are none. */
    zarr_status (*clean)(void *self, const char *prefix, uint64_t min_age_s,
                         uint64_t *n_removed, const zarr_cancel *cancel, zarr_error *err);
    /** Frees self; cannot fail. NULL: nothing to free. */
    void (*close)(void *self);
    /**
     * Moves every key below the prefix `from` to the same place below `to`, in one step.
     * At any moment a reader finds all keys at the old or all at the new place. The
     * prefixes are not empty, and neither is below the other. NOT_FOUND: there is no key
     * below `from`. UNSUPPORTED: this move cannot be one step, for example because there
     * are keys below `to`, or `to` is on another disk; nothing was changed, and the
     * library copies and deletes. NULL: as UNSUPPORTED.
     */
    zarr_status (*rename)(void *self, const char *from, const char *to,
                          const zarr_cancel *cancel, zarr_error *err);
    /**
     * Begins a new value of a key that is written in parts, and sets `*parts`. Needs
     * ZARR_STORE_CAP_PARTS, and comes together with end_parts(). `lock` is what lock()
     * made for this key; NULL: the caller has no lock. Then this call may wait as lock()
     * does, until end_parts() of another writer.
     *
     * Then the library sends ZARR_STORE_PUT_PART, several at once and in any order. All
     * parts, in the order of their numbers, make the value without gaps. Only the last
     * one may have fewer bytes than `part_min_bytes` of zarr_store_caps, and no number
     * exceeds `parts_max`. A part that is sent again replaces the first one of its
     * number. Readers see the old value until a PUT with ZARR_STORE_OP_IN_PARTS, which
     * commits the parts: it gives the key the new value in one step. It may have
     * conditions and a lock as any PUT.
     *
     * A commit that fails may be sent again with the same parts, for example because its
     * answer was lost. If an earlier one has succeeded, the store must report
     * success and the version of that one, whatever the conditions are.
     */
    zarr_status (*begin_parts)(void *self, const char *key, void *lock,
                               const zarr_cancel *cancel, void **parts, zarr_error *err);
    /** Ends what begin_parts() began. Discards the parts if no commit succeeded; cannot
     * fail. No operation on the parts is in flight. */
    void (*end_parts)(void *self, const char *key, void *parts);
    /** Calls `fn`(`user`, place) once with the place of the keys, or not at all if the
     * store does not know it. Stores of one place are taken for the same one: each sees
     * the other's changes. NULL: the library compares the hosts and paths of the URLs,
     * and treats equal ones as if they might be the same. */
    void (*place)(void *self, zarr_store_place_fn fn, void *user);
    /** Sets the counters that the store has, of those inside of `out->struct_size`. The
     * others are 0. NULL: all are. */
    void (*count)(void *self, zarr_store_counters *out);
} zarr_store_vtable;

/**
 * Does one operation on a store. A store that wraps another one can pass on an operation
 * that it got, with its flags, versions and memory of any kind. The library emulates what
 * the inner store lacks. `up_bytes` and `down_bytes` become the
 * bytes that were copied between host memory and a device, by the store or the library.
 *
 * @param store borrowed
 * @param op the operation; `mem` may be of any registered kind
 * @return op->status
 * @retval ZARR_ERR_NOT_FOUND there is no such key
 * @retval ZARR_ERR_INVALID the operation is wrong, or the store is read-only
 * @retval ZARR_ERR_UNSUPPORTED the store can do it neither itself nor by emulation
 * @retval ZARR_ERR_CONFLICT the value does not have the expected version
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_store_lock()
 */
ZARR_API zarr_status zarr_store_run(zarr_store *store, zarr_store_op *op,
                                    zarr_error *err);

/**
 * Starts many operations on a store, as zarr_store_run() does one. A store with submit()
 * gets those that it can do itself in one call. This thread and the threads of the
 * library do the others, so this call may return late. It calls `done` once for each
 * operation, from any thread and in any order, also before it returns. If `flags` of an
 * operation are not known, all end with ZARR_ERR_INVALID.
 *
 * In a child that an operation forked on this thread, the call returns, and `done` is not
 * called any more.
 *
 * @param store borrowed until the last `done`
 * @param ops the operations; they, their keys and memory belong to the library until
 * their `done`, the array of pointers until this call returns. `tag` changes
 * @param n how many
 * @param done gets each operation that has ended. `err` has the text for `op->status`, or
 * is NULL
 * @param arg passed to `done`; names these operations for zarr_store_cancel()
 * @see zarr_store_run(), zarr_store_cancel()
 */
ZARR_API void zarr_store_submit(zarr_store *store, zarr_store_op **ops, uint64_t n,
                                void (*done)(void *arg, zarr_store_op *op,
                                             const zarr_error *err),
                                void *arg);

/**
 * Asks a store to end the operations of zarr_store_submit() with this `arg` soon, with
 * ZARR_ERR_CANCELLED. `done` is still called for each of them.
 * @param store borrowed
 * @param arg as in zarr_store_submit()
 */
ZARR_API void zarr_store_cancel(zarr_store *store, void *arg);

/**
 * @name Lock one key
 * @{
 */
/**
 * Waits until the caller alone may change a key, for a read and a write that belong
 * together. The holder does GETs and one PUT or ERASE with ZARR_STORE_OP_LOCKED. A PUT
 * or ERASE of the key without that flag waits until the lock is released. If the holder
 * itself makes such a call, it waits for ever. Without ZARR_STORE_CAP_LOCK the lock
 * excludes only other callers on this handle. If such a store has
 * ZARR_STORE_CAP_PUT_IF_VERSION, writes without the flag do not wait, and the holder's
 * write should have ZARR_STORE_OP_IF_VERSION.
 *
 * @param lock receives the lock; owned: zarr_store_unlock()
 * @param store borrowed
 * @param key the key; copied
 * @param cancel ends the wait with ZARR_ERR_CANCELLED once it is set; NULL: nothing does
 * @retval ZARR_ERR_INVALID the key is not a legal one, or the store is read-only
 * @retval ZARR_ERR_UNSUPPORTED the store cannot write
 * @retval ZARR_ERR_IO the wait took longer than `lock_wait_ms`, or the store failed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_lock(void **lock, zarr_store *store,
                                                     const char *key,
                                                     const zarr_cancel *cancel,
                                                     zarr_error *err);
/**
 * Ends what zarr_store_lock() began, in any thread.
 * @param store borrowed
 * @param lock moved; may be NULL
 */
ZARR_API void zarr_store_unlock(zarr_store *store, void *lock);
/** @} */

/**
 * @name Write a value in parts
 * @{
 */
/**
 * Begins a new value of a key that is written in parts, as `begin_parts` in
 * zarr_store_vtable says. zarr_store_run() then writes the parts
 * (ZARR_STORE_PUT_PART) and commits them (ZARR_STORE_OP_IN_PARTS).
 *
 * @param parts receives the parts; owned: zarr_store_end_parts()
 * @param store borrowed
 * @param key the key; copied
 * @param lock what zarr_store_lock() made for the key; NULL: none
 * @param cancel ends a wait with ZARR_ERR_CANCELLED once it is set; NULL: nothing does
 * @retval ZARR_ERR_INVALID the key is not a legal one, or the store is read-only
 * @retval ZARR_ERR_UNSUPPORTED the store has no ZARR_STORE_CAP_PARTS
 * @retval ZARR_ERR_IO the store failed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_begin_parts(void **parts,
                                                            zarr_store *store,
                                                            const char *key, void *lock,
                                                            const zarr_cancel *cancel,
                                                            zarr_error *err);
/**
 * Ends what zarr_store_begin_parts() began, before its lock is released. Discards the
 * parts if no commit succeeded.
 * @param store borrowed
 * @param key the same key
 * @param parts moved; may be NULL
 */
ZARR_API void zarr_store_end_parts(zarr_store *store, const char *key, void *parts);
/** @} */

ZARR_END_DECLS

#endif
