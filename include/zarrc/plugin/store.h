/**
 * @file
 * How to make a store, for authors of plug-ins and applications. This header is stable
 * for each plug-in ABI number, not for a major version.
 *
 * The library passes operations to a store, such as GET, PUT and ERASE. A store has
 * run(), submit() or both. run() does one operation before it returns. submit() starts
 * many, for a store with its own concurrency, such as an event loop. ZARR_STORE_CAP_*
 * tell what a store can do. The library emulates the rest if it can; otherwise a call
 * that needs it fails.
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
    ZARR_STORE_GET = 1, /**< reads a value or a range of it */
    ZARR_STORE_PUT = 2, /**< writes a whole value */
    /** erases a key and its value. If the key does not exist, the status is
     * ZARR_ERR_NOT_FOUND, or ZARR_OK if the store cannot tell */
    ZARR_STORE_ERASE = 3,
    /** writes the value of another key, `source`, without sending its bytes through this
     * process */
    ZARR_STORE_COPY = 4,
    /** sets `object_bytes` to the length of a value. A store that cannot do this returns
     * ZARR_ERR_UNSUPPORTED; then the library sends a GET of 0 bytes */
    ZARR_STORE_STAT = 5,
    /** writes `mem` as one part of a value that begin_parts() began */
    ZARR_STORE_PUT_PART = 6,
    /** changes the end of a value in place: keeps its first `offset` bytes, and writes
     * `mem` after them as its new end. NOT_FOUND: there is no value. INVALID: the value
     * has fewer than `offset` bytes. An APPEND is not atomic: from `offset` on, readers
     * may find any mix of old and new bytes. Each APPEND gives the value a new version.
     * Needs ZARR_STORE_CAP_APPEND */
    ZARR_STORE_APPEND = 7
};

/** Flags of a zarr_store_op. */
enum {
    /** fail with ZARR_ERR_CONFLICT unless the value still has the version `version`. If
     * the key does not exist, a GET, APPEND or ERASE fails with ZARR_ERR_NOT_FOUND
     * instead. A PUT or COPY with a version of zeros succeeds only if the key does not
     * exist. A store gets this flag only if it has this capability:
     *
     * - GET: ZARR_STORE_CAP_VERSIONS
     * - PUT, COPY with zeros: ZARR_STORE_CAP_PUT_NEW
     * - other PUT and COPY, APPEND: ZARR_STORE_CAP_PUT_IF_VERSION
     * - ERASE: ZARR_STORE_CAP_ERASE_IF_VERSION. A store never gets an ERASE with a
     *   version of zeros: the library itself looks whether the key exists */
    ZARR_STORE_OP_IF_VERSION = 1,
    /** PUT, COPY, APPEND, ERASE: the caller holds `lock` for this key */
    ZARR_STORE_OP_LOCKED = 2,
    /** GET, PUT, COPY, APPEND, STAT: set `version`. Without this flag `version` stays as
     * it is */
    ZARR_STORE_OP_WANT_VERSION = 4,
    /** mask of the next three values, which tell the kind of object; 0: another kind, or
     * not known */
    ZARR_STORE_OP_KIND = 24,
    /** a metadata document, or a record of the library about a node. The store writes it
     * to the disk before it replaces the old value, even if it delays other writes */
    ZARR_STORE_OP_DOCUMENT = 8,
    ZARR_STORE_OP_INDEX = 16, /**< GET: the index of a shard, which is a range of it */
    ZARR_STORE_OP_CHUNK = 24, /**< a block, or a range of it */
    /** PUT: commits the parts of `parts`. The value has `length` bytes; `mem` is empty.
     *
     * COPY: the value of the source becomes the part `part`, which begins at `offset`.
     * `done_bytes` becomes its length. The key keeps its value. Needs
     * ZARR_STORE_CAP_COPY_PARTS
     *
     * GET: reads parts that are not committed yet. It may fail with ZARR_ERR_INVALID if
     * some bytes of the range are not written yet. Needs ZARR_STORE_CAP_READ_PARTS */
    ZARR_STORE_OP_IN_PARTS = 32
};

/** Where a COPY reads. */
typedef struct zarr_store_source {
    /** for zarr_store_run(): the store of the source; NULL: the store of the operation */
    zarr_store *store;
    const char *key;
    /** set by the library: `self` of the source's store, which has the same functions as
     * this one */
    void *self;
    /** the COPY fails with ZARR_ERR_CONFLICT if the source has another version. Zeros:
     * any version. Needs ZARR_STORE_CAP_VERSIONS of the source */
    zarr_store_version version;
} zarr_store_source;

/**
 * One operation. The store sets `done_bytes`, `object_bytes`, `status`, `os_code`,
 * `up_bytes` and `down_bytes`, and with ZARR_STORE_OP_WANT_VERSION `version`. The library
 * sets the other members.
 *
 * A GET reads min(`length`, `mem.bytes`) bytes at `offset` into `mem`. It reads fewer
 * bytes only if the value ends before, and 0 if the range begins after the end. It sets:
 *
 * - `done_bytes` to the number of bytes that it read.
 * - `object_bytes` to the length of the whole value. It must if it read fewer than
 *   `length` bytes; otherwise UINT64_MAX may stay.
 * - `status` to ZARR_ERR_NOT_FOUND if the key does not exist, but to ZARR_ERR_DENIED if
 *   the store refuses access. A missing chunk reads as the fill value; a refused one must
 *   not.
 *
 * If `offset` is ZARR_STORE_SUFFIX, a GET reads the last `length` bytes of the value, or
 * the whole value if it is shorter. The first of them goes to the start of `mem`. Such a
 * GET must set `object_bytes`. Only a store with ZARR_STORE_CAP_SUFFIX gets it.
 *
 * The library reads a shard in several GETs. A store without versions should set
 * `object_bytes` in every GET. Then the library notices if another writer replaced the
 * shard by one of another length.
 *
 * A COPY fails with ZARR_ERR_NOT_FOUND if the source does not exist. If the store cannot
 * copy from the source, or not under the condition, the COPY changes nothing and fails
 * with ZARR_ERR_UNSUPPORTED. Then the library reads and writes the value.
 */
typedef struct zarr_store_op {
    uint32_t verb;           /**< one of ZARR_STORE_GET and so on */
    uint32_t flags;          /**< ZARR_STORE_OP_* */
    const char *key;         /**< the key; legal, and ended by a NUL */
    uint64_t offset, length; /**< GET: the range in bytes */
    /** GET: where the bytes go; PUT: the value; APPEND: its new end. Memory of a kind
     * that the store takes */
    zarr_memory mem;
    /** with ZARR_STORE_OP_IF_VERSION: the expected version. With
     * ZARR_STORE_OP_WANT_VERSION it becomes the version that was read or written;
     * undefined after a failure */
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
    /** once zarr_cancel_is_set() is true, a store may end the operation with
     * ZARR_ERR_CANCELLED. A write that ends so may have been done. NULL: never */
    const zarr_cancel *cancel;
    zarr_store_source *source; /**< COPY: where the value is */
    /** PUT_PART and ZARR_STORE_OP_IN_PARTS: what begin_parts() made */
    void *parts;
    /** PUT_PART, and COPY with ZARR_STORE_OP_IN_PARTS: number of the part, from 1.
     * `offset` is where the part begins in the value */
    uint64_t part;
} zarr_store_op;

/** Receives what is wrong with the form of a store. `is_fault` is 1 if the store breaks a
 * rule, 0 if it ignores a recommendation. `text` is one line, valid during the call. */
typedef void (*zarr_store_check_fn)(void *user, int is_fault, const char *text);

/**
 * The functions of a store. Required are caps(), and run() or submit(); a registered
 * store also needs `name` and open(). lock() and unlock() come together. Any other entry
 * may be NULL. Then the store cannot do this, unless the comment of the entry says
 * otherwise.
 *
 * The library calls the functions from any thread, several at once. `self` is what open()
 * made, or what zarr_store_open_custom() got. Functions that fail fill `err` with one
 * line of text. Functions that may take long get a `cancel`, which may be NULL. Once
 * zarr_cancel_is_set() is true, they end soon with ZARR_ERR_CANCELLED.
 */
typedef struct zarr_store_vtable {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    const char *name; /**< such as "local"; a registered store has it as URL scheme */
    /** Opens the store of a URL, and sets `*self`. After a failure there is nothing to
     * close. NULL: the table is only for zarr_store_open_custom(). */
    zarr_status (*open)(void **self, zarr_context *ctx, const char *url,
                        const zarr_store_options *opts, const zarr_cancel *cancel,
                        zarr_error *err);
    /** Tells what the store can do. Sets the members of `*out` that are inside of
     * `out->struct_size`. Called when the store is opened. */
    void (*caps)(void *self, zarr_store_caps *out);
    /** Does one operation before it returns. `err` gets the text for `op->status`. NULL:
     * the library uses submit(). */
    void (*run)(void *self, zarr_store_op *op, zarr_error *err);
    /**
     * Starts `n` operations and returns. The store calls `done`(`arg`, op, err) once for
     * each of them, from any thread and in any order, also before submit() returns. `err`
     * may be NULL. An operation belongs to the store until its `done`, the array `ops`
     * until submit() returns. NULL: the library uses run().
     *
     * A store with ZARR_STORE_CAP_COALESCES gets all ranges of a value unmerged, and
     * merges near ones itself. GETs may share a request only if their `key` and `cancel`
     * are the same, and with ZARR_STORE_OP_IF_VERSION their `version`. ERASEs without a
     * condition may share a request if their `cancel` is the same.
     */
    void (*submit)(void *self, zarr_store_op **ops, uint64_t n,
                   void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                   void *arg);
    /** Asks the store to end the operations of submit() with this `arg` soon, with
     * ZARR_ERR_CANCELLED. Some of them may have ended already, and submit() may still
     * run. NULL: they run to their end. */
    void (*cancel)(void *self, void *arg);
    /** Lists keys as zarr_store_list() does; `how` is ZARR_LIST_RECURSIVE,
     * ZARR_LIST_DIRECTORY or ZARR_LIST_DEBRIS. Needs ZARR_STORE_CAP_LIST.
     *
     * A non-zero return of `fn` ends the listing, and is no failure. `fn` may write and
     * erase keys below the prefix; such keys may be listed or not. A store whose listings
     * have pages calls `fn` for the rows of one page before it requests the next one. */
    zarr_status (*list)(void *self, const char *prefix, uint32_t how,
                        zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                        zarr_error *err);
    /** Waits until the caller alone may change a key, and sets `*lock`, which is not NULL
     * then. Until unlock(), no other caller may write the key.
     *
     * With ZARR_STORE_CAP_WRITES_WAIT, the store makes each PUT and ERASE without
     * ZARR_STORE_OP_LOCKED wait, and does other operations meanwhile. Without this
     * capability, the library takes the lock around each such PUT and ERASE.
     *
     * The library may hold the locks of several keys, so locks of different keys must not
     * exclude each other. */
    zarr_status (*lock)(void *self, const char *key, const zarr_cancel *cancel,
                        void **lock, zarr_error *err);
    /** Ends what lock() began, possibly in another thread; cannot fail. */
    void (*unlock)(void *self, void *lock);
    /** Flushes as zarr_store_flush(). NULL: there is nothing to flush. */
    zarr_status (*flush)(void *self, const zarr_cancel *cancel, zarr_error *err);
    /** Erases all keys that begin with `prefix` and a slash; with "", all keys. NULL: the
     * library lists and erases them. */
    zarr_status (*erase_prefix)(void *self, const char *prefix, const zarr_cancel *cancel,
                                zarr_error *err);
    /** Erases the files or keys that killed processes left, as zarr_store_clean() does.
     * NULL: there are none. */
    zarr_status (*clean)(void *self, const char *prefix, uint64_t min_age_s,
                         uint64_t *n_removed, const zarr_cancel *cancel, zarr_error *err);
    /** Frees `self`; cannot fail. NULL: nothing to free. */
    void (*close)(void *self);
    /**
     * Moves every key below the prefix `from` to the same place below `to`, in one step:
     * a reader finds all keys at the old or all at the new place. The prefixes are not
     * empty, and neither is below the other.
     *
     * - NOT_FOUND: there is no key below `from`.
     * - UNSUPPORTED: the move cannot be one step, for example because there are keys
     *   below `to`. Nothing was changed; the library copies and deletes.
     * - NULL: as UNSUPPORTED.
     */
    zarr_status (*rename)(void *self, const char *from, const char *to,
                          const zarr_cancel *cancel, zarr_error *err);
    /**
     * Begins a new value of a key that is written in parts, and sets `*parts`, which is
     * not NULL then. Needs ZARR_STORE_CAP_PARTS, and comes together with end_parts().
     * `lock` is what lock() made for this key; NULL: the caller has no lock. Without a
     * lock and with ZARR_STORE_CAP_WRITES_WAIT, the call may wait as lock() does.
     * Otherwise it must not wait.
     *
     * Then the library sends ZARR_STORE_PUT_PART, several at once and in any order. The
     * parts have the numbers 1, 2 and so on, and each begins where the one before it
     * ends. There is at least one. Only the last one may have fewer bytes than
     * `part_min_bytes` of zarr_store_caps, and no number exceeds `parts_max`, if that is
     * not 0. A part that is sent again replaces the first one of its number. A part whose
     * operation failed does not exist. If a part that was sent again had another length,
     * so that parts overlapped, a commit may fail with ZARR_ERR_INVALID.
     *
     * Readers see the old value until a PUT with ZARR_STORE_OP_IN_PARTS, which commits
     * the parts: it gives the key the new value in one step. It may have conditions and a
     * lock as any PUT. The store itself checks the parts: if one is missing, or if they
     * do not have `length` bytes together, the commit fails with ZARR_ERR_INVALID.
     *
     * If a commit fails, it changed nothing, or it succeeded and its answer was lost. The
     * library may then
     * send parts and the commit again, also with another condition, or call end_parts().
     * If an earlier commit has succeeded, the store must report success and the version
     * of that one, whatever the conditions are. If the parts are lost, it reports
     * ZARR_ERR_CONFLICT.
     */
    zarr_status (*begin_parts)(void *self, const char *key, void *lock,
                               const zarr_cancel *cancel, void **parts, zarr_error *err);
    /** Ends what begin_parts() began. Discards the parts if no commit succeeded; cannot
     * fail. No operation on the parts is in flight. */
    void (*end_parts)(void *self, const char *key, void *parts);
    /** Calls `fn`(`user`, place) once with the place of the keys, or not at all if the
     * store does not know it. Stores with equal places must have the same keys. NULL: the
     * library compares the hosts and paths of the URLs. */
    void (*place)(void *self, zarr_store_place_fn fn, void *user);
    /** Sets the members of `*out` that the store counts and that are inside of
     * `out->struct_size`. The others are 0. NULL: all are 0. */
    void (*count)(void *self, zarr_store_counters *out);
    /** Checks the form of the store, such as the layout of an archive, and calls `fn` for
     * each fault. zarr_node_verify() of the root reports the faults. NULL: there is
     * nothing to check. */
    zarr_status (*check)(void *self, zarr_store_check_fn fn, void *user,
                         const zarr_cancel *cancel, zarr_error *err);
    /** Writes what holds the keys anew, without unused bytes, as zarr_store_repack()
     * does. Sets the members of `*out` that are inside of `out->struct_size`. NULL: the
     * store has no such bytes. */
    zarr_status (*repack)(void *self, uint32_t flags, zarr_repack_result *out,
                          const zarr_cancel *cancel, zarr_error *err);
} zarr_store_vtable;

/**
 * Does one operation on a store. The library emulates what the store lacks. A store that
 * wraps another one can pass on an operation that it got. `up_bytes` and `down_bytes`
 * become the bytes that the store and the library copied between host memory and a
 * device.
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
 * Starts many operations on a store, each as zarr_store_run() does it. `done` is called
 * once for each operation, from any thread and in any order, also before this call
 * returns. This thread may do some of the operations itself, so this call may return
 * late. If `flags` of an operation are not known, all operations end with
 * ZARR_ERR_INVALID.
 *
 * If an operation on this thread forks the process, the call returns in the parent and
 * in the child. In the child it does not call `done` afterwards.
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
 * together. The holder may do GETs, and with ZARR_STORE_OP_LOCKED also APPENDs and
 * one PUT or ERASE. A write without that flag waits until the lock is released, so
 * the holder must not make one.
 *
 * Without ZARR_STORE_CAP_LOCK, the lock excludes only other callers on this handle. If
 * such a store has ZARR_STORE_CAP_PUT_IF_VERSION, writes without the flag do not wait.
 * Then the holder's write should have ZARR_STORE_OP_IF_VERSION.
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
 * Ends what zarr_store_begin_parts() began. Call it before the lock is released. Discards
 * the parts if no commit succeeded.
 * @param store borrowed
 * @param key the same key
 * @param parts moved; may be NULL
 */
ZARR_API void zarr_store_end_parts(zarr_store *store, const char *key, void *parts);
/** @} */

ZARR_END_DECLS

#endif
