/*
 * store/store.h - the door to keys and their bytes: one handle for any store (a local
 * directory, memory, or an application's own store). The room emulates what a store
 * cannot do, or refuses it. Upper rooms build a zarr_store_op and call run or submit.
 * They never see a path, a descriptor or a vtable.
 *
 * NOT_FOUND always means that the store proved that the key does not exist. Every other
 * failure has another status.
 *
 * The handle is reference-counted. The opener passes the allocator, log, limits and
 * registry of memory kinds in a struct zr_store_env. They must outlive the store. The
 * context is opaque here: the store holds it with the two functions of that struct.
 *
 * Thread class: handles frozen; registry solo until sealed, then frozen; pins frozen
 * between init and deinit.
 */
#ifndef ZR_STORE_H
#define ZR_STORE_H

#include "base/base.h"
#include "mem/mem.h"
#include <zarrc/objects.h>
#include <zarrc/plugin/store.h>
#include <zarrc/store.h>

/* ---- keys ---------------------------------------------------------------- */

enum {
    ZR_KEY_MAX_BYTES = 65535
};

/* Checks a key of n bytes; all stores use this check. A key is non-empty UTF-8 components
 * joined by '/'. No component is "." or "..", there is no NUL, and n is at most
 * ZR_KEY_MAX_BYTES. INVALID names the byte. */
zarr_status zr_key_validate(const char *key, size_t n, zarr_error *err);
/* Checks the prefix of a listing. As for a key, but "" is also valid and means all
 * keys. */
zarr_status zr_key_validate_prefix(const char *prefix, size_t n, zarr_error *err);
/* True if key is below prefix. Every key is below "". "a/b" is below "a"; "ab" and "a"
 * are not. */
bool zr_key_is_below(const char *key, const char *prefix);

#define ZR_DOC_V3           "zarr.json"
#define ZR_DOC_ARRAY        ".zarray"
#define ZR_DOC_GROUP        ".zgroup"
#define ZR_DOC_ATTRS        ".zattrs"
#define ZR_DOC_CONSOLIDATED ".zmetadata"
/* no documents of Zarr: array/shape/leftover.c and node/job.c */
#define ZR_DOC_LEFTOVERS ".zarrc-leftovers"
#define ZR_DOC_JOB       ".zarrc-job"

/* The lock of this key beside a node claims the node. No object has this name. It is not
 * below the node, so that the node's folder can be renamed and removed. */
#define ZR_CLAIM_SUFFIX ".zarrc-work"
/* ZARR_STORE_OP_DOCUMENT if the last component of the key is one of these names, else 0:
 * for operations whose caller does not know what is under the key. */
uint32_t zr_key_kind(const char *key);
/* Whether an operation failed because of its object alone, so that other keys may still
 * be read: there is a folder or a FIFO under the key, a symlink leads nowhere, the file's
 * permissions or its blocks on the disk prevent a read. */
bool zr_store_blames_object(zarr_status st, const zarr_error *err);
/* Whether a service refused access, as some do for keys that do not exist. So the key may
 * be missing; but a chunk that may be missing must not read as the fill value. */
bool zr_store_hides(zarr_status st, const zarr_error *err);
/* Whether it failed because what is under the key is no value: a folder, a FIFO, a socket
 * or a device. */
bool zr_store_has_no_value(zarr_status st, const zarr_error *err);

/* ---- opening -------------------------------------------------------------- */

/* What a store uses of a context. The store copies the struct. It borrows the pointers,
 * which must outlive it. */
struct zr_store_env {
    const zarr_allocator *alloc;
    struct zr_log log;
    zarr_limits limits;
    const struct zr_memory_registry *memory; /* has at least host memory */
    uint32_t locks, symlinks; /* of local stores whose options leave them open; 0: the
                                   library's defaults */
    uint64_t lock_warn_ns;    /* a longer wait for a lock is logged; 0: 10 s */
    zarr_context *ctx;        /* opaque; may be NULL */
    void (*ctx_ref)(zarr_context *ctx); /* both functions may be NULL */
    void (*ctx_unref)(zarr_context *ctx);
};

struct zr_store_registry; /* stores by name, which is also the URL scheme */
zarr_status zr_store_registry_create(struct zr_store_registry **out,
                                     const zarr_allocator *alloc, zarr_error *err);
void zr_store_registry_free(struct zr_store_registry *r);
/* Adds "local" (also as "file") and "memory". Call it first, because a name cannot be
 * registered twice. */
zarr_status zr_store_registry_add_core(struct zr_store_registry *r, zarr_error *err);
/* Registers a store; copies the vtable and its name. The vtable needs open, caps, and run
 * or submit. EXISTS if the name is taken, INVALID if an entry is missing. */
zarr_status zr_store_register(struct zr_store_registry *r,
                              const zarr_store_vtable *vtable, const char *origin,
                              zarr_error *err);
size_t zr_store_registry_count(const struct zr_store_registry *r);
/* Gives entry i. The registry owns the texts. */
void zr_store_registry_item(const struct zr_store_registry *r, size_t i,
                            const char **name, const char **origin, const char **detail);

/* Opens the store of a URL. opts is what zarr_store_open() got: NULL, or a struct of an
 * older or newer version. */
zarr_status zr_store_open(zarr_store **out, const struct zr_store_registry *r,
                          const struct zr_store_env *env, const char *url,
                          const zarr_store_options *opts, zarr_error *err);
/* See zarr_location_parse(). */
zarr_status zr_location_parse(zarr_location **out, const struct zr_store_registry *r,
                              const struct zr_store_env *env, const char *text,
                              zarr_error *err);
/* Sets *out to the URL of a store as messages show it (zr_url_put_shown()), owned, or to
 * NULL if that is the URL itself, as for a path. */
zarr_status zr_store_show_url(char **out, const zarr_allocator *alloc, const char *url,
                              zarr_error *err);
/* Splits the URL of an archive, without "zip:", into the URL of the store that holds it
 * and its key there: of the file that a symbolic link leads to. Both texts are owned by
 * the caller. */
zarr_status zr_archive_split(const zarr_allocator *alloc, const char *url, char **store,
                             char **key, zarr_error *err);
/* The store by whose name "zip:" an archive is opened, and paths of archives. */
#define ZR_STORE_ZIP "zip"
/* Opens a store of the application. self is moved: it is closed with the store, or at
 * once if this call fails. */
zarr_status zr_store_open_custom(zarr_store **out, const struct zr_store_env *env,
                                 const zarr_store_vtable *vtable, void *self,
                                 const zarr_store_options *opts, zarr_error *err);
/* The same for a store that has a URL. */
zarr_status zr_store_open_custom_url(zarr_store **out, const struct zr_store_env *env,
                                     const zarr_store_vtable *vtable, void *self,
                                     const char *url, const zarr_store_options *opts,
                                     zarr_error *err);
/* This room also implements the public zarr_store_ref, _free, _close, _flush, _url, _get,
 * _put, ... */

/* ---- properties ------------------------------------------------------------- */

/* The capabilities that the store declared, without WRITE if the handle is read-only.
 * Borrowed; they never change. */
const zarr_store_caps *zr_store_caps(const zarr_store *s);
/* True if the store itself has all of ZARR_STORE_CAP_* in `caps`, without emulation. */
bool zr_store_can(const zarr_store *s, uint32_t caps);
/* As zr_store_can(), for what a composite store can do with this key. */
bool zr_store_can_key(const zarr_store *s, const char *key, uint32_t caps);
/* Whether only versions, and no locks, keep writers on two handles apart: a read and a
 * write that belong together are conditional, and repeated after a conflict. */
bool zr_store_is_by_version(const zarr_store *s);
/* The default memory of arrays with chunks in this store. False: it has none. */
bool zr_store_default_memory(const zarr_store *s, int32_t *device_type,
                             int32_t *device_id);
/* True if the store moves bytes to and from this kind of memory without an intermediate
 * copy. */
bool zr_store_device_direct(const zarr_store *s, int32_t device_type);
/* The options that the store was opened with, without its texts, which are the
 * caller's. */
zarr_store_options zr_store_options(const zarr_store *s);
const char *zr_store_name(const zarr_store *s); /* "local", "memory", the vtable's name */
bool zr_store_is_read_only(const zarr_store *s);
/* The store that keeps the chunks: s itself, or a part of a composite store. Borrowed. */
zarr_store *zr_store_of_chunks(zarr_store *s);
zarr_context *zr_store_context(const zarr_store *s); /* borrowed */
/* True if both handles certainly have the same keys: each sees the other's changes. */
bool zr_store_same(const zarr_store *s, const zarr_store *t);
/* See zarr_store_overlap(). */
zarr_status zr_store_overlap(zarr_store *s, const char *a, zarr_store *t, const char *b,
                             bool *overlap, zarr_error *err);

/* ---- operations ------------------------------------------------------------ */

/*
 * An internal flag for GET, besides the public ones: op->lock points to the pin (struct
 * zr_store_pin) of op->key. zarrc/plugin/store.h documents each verb. This room validates
 * keys. mem may be of any registered kind. Ranges and suffixes work on every store, and
 * so do COPY and an ERASE with IF_VERSION that expects no value. IF_VERSION without the
 * capability for the verb and PUT without CAP_WRITE are UNSUPPORTED, because emulation
 * could not give the same guarantee. Writes through a read-only handle are
 * INVALID.
 */
#define ZR_STORE_OP_PINNED UINT32_C(0x80000000)
/* An internal flag for ERASE: another lock of this store, which the caller holds, keeps
 * out all who change this key. So the store need not lock the key, too. */
#define ZR_STORE_OP_GUARDED UINT32_C(0x40000000)
/* An internal flag for PUT and ERASE, given by zr_durable_flags(): a PUT has its value on
 * the disk before it has its key. For an ERASE it means nothing. */
#define ZR_STORE_OP_SYNCED UINT32_C(0x20000000)

/* An internal flag for COPY: UNSUPPORTED, and no bytes in memory, if the store cannot
 * copy by itself. */
#define ZR_STORE_OP_BY_STORE UINT32_C(0x10000000)

/* Internal flags for a PUT of our own stores. TELL: sets `version`, and adds CREATED if
 * the key is known to be new. A local store without locks never knows that: another
 * writer may make the key after the look. */
#define ZR_STORE_OP_TELL    UINT32_C(0x08000000)
#define ZR_STORE_OP_CREATED UINT32_C(0x04000000)
/* Whether chunks are in a store of our own, not of a plug-in. */
bool zr_store_is_own(const zarr_store *s);

/* Does one operation before it returns. Returns op->status (also NOT_FOUND) and fills err
 * for it. On the local and memory stores a GET takes none of our locks and does not
 * allocate, except that it tells the pool when it waits for the disk. */
zarr_status zr_store_run_one(zarr_store *s, zarr_store_op *op, zarr_error *err);
/* Does a GET, and a STAT if the GET did not tell the length. Messages begin with the URL
 * of the store. */
zarr_status zr_store_get(zarr_store *s, zarr_store_op *op, zarr_error *err);
/*
 * Does n operations before it returns; each has its own status. All have one `cancel`.
 * Returns the status of the first item that is neither OK nor NOT_FOUND, and sets
 * err->item to its index. On a store whose GETs are fast the operations run one after
 * the other on this thread, and callers with many threads call it from each of them.
 * Other stores get them as from zr_store_submit().
 */
zarr_status zr_store_run(zarr_store *s, zarr_store_op *ops, uint64_t n, zarr_error *err);

typedef void (*zr_store_done_fn)(void *arg, zarr_store_op *op, const zarr_error *err);
/*
 * Begins n operations. It calls done(arg, op, err) once for each, from any thread and in
 * any order, possibly before this returns. err may be NULL and is valid during the call.
 * Until done is called, the operations (the structs, not the array of pointers), keys,
 * memory and pins belong to the store. Flags and `lock` of a locked write are not valid
 * afterwards. Stores with an event loop run the operations
 * themselves. This thread and the thread pool of the process run those of other stores,
 * and writes that may wait for a lock of this handle; when this returns, all have begun,
 * on threads that work on them. This function itself never fails. In a child that an
 * operation forked on this thread, it returns, and done is not called any more.
 */
void zr_store_submit(zarr_store *s, zarr_store_op **ops, uint64_t n,
                     zr_store_done_fn done, void *arg);
/* Asks the store to end the operations that were submitted with this arg soon, as
 * CANCELLED. done is still called for each of them. */
void zr_store_cancel(zarr_store *s, void *arg);

/* ---- locks: read-modify-write ------------------------------------------------- */

/*
 * Waits for the exclusive right to change key. The holder may do GETs and one PUT or
 * ERASE with ZARR_STORE_OP_LOCKED and op->lock. The PUT uses the right up: a second PUT
 * is INVALID. A PUT of the same key without the flag waits for ever while the caller
 * holds the lock.
 *
 * With CAP_LOCK all cooperating writers are excluded, also other processes and
 * TensorStore. Writes without the flag wait too: the store sees to it (CAP_WRITES_WAIT),
 * or this room takes the lock for them. Without CAP_LOCK only other callers of
 * zr_store_lock() on this handle are
 * excluded. If the store has CAP_PUT_IF_VERSION, use IF_VERSION there. If it has neither,
 * writes of this handle without the flag wait too.
 *
 * The wait ends with CANCELLED once cancel (may be NULL) is set.
 *
 * The holder of a first lock may wait for a second one only if no holder of the second
 * ever waits for the first.
 */
zarr_status zr_store_lock(zarr_store *s, const char *key, const zarr_cancel *cancel,
                          void **lock, zarr_error *err);
void zr_store_unlock(zarr_store *s, void *lock); /* NULL is allowed; any thread */
/* See `check` in zarr_store_vtable. Of a composite store: nothing. */
zarr_status zr_store_check(zarr_store *s, zarr_store_check_fn fn, void *user,
                           const zarr_cancel *cancel, zarr_error *err);
/* See `begin_parts` in zarr_store_vtable. Such a value is written only to keys that can
 * have ZARR_STORE_CAP_PARTS: emulation would need memory that the caller's budget does
 * not count. */
zarr_status zr_store_begin_parts(zarr_store *s, const char *key, void *lock,
                                 const zarr_cancel *cancel, void **parts,
                                 zarr_error *err);
/* parts: NULL is allowed. */
void zr_store_end_parts(zarr_store *s, const char *key, void *parts);
/* The least bytes of a part of a value of `total` bytes at most, unless it is the last
 * one; at least 1. */
uint64_t zr_store_part_min_bytes(const zarr_store *s, const char *key, uint64_t total);
/* As zr_store_lock(), but waits for no other holder: CONFLICT with `os_code` EBUSY, and a
 * text that tells who holds it. A store of a plug-in that looks at its cancel object
 * before it looks at the lock is waited for, until `cancel` is set. */
zarr_status zr_store_lock_try(zarr_store *s, const char *key, const zarr_cancel *cancel,
                              void **lock, zarr_error *err);

/* A wait of a call for other writers. */
struct zr_lock_rules {
    struct zr_log log;
    uint64_t limit_ns; /* 0: no limit */
    uint64_t warn_ns;  /* a wait as long as this is logged once */
};
struct zr_lock_wait {
    const struct zr_lock_rules *rules;
    const char *key;
    const zarr_cancel *cancel; /* ends the wait; NULL: never */
    uint64_t begun_ns;         /* 0: no wait yet */
    bool warned;
};

/* Waits between the tries of a write that others overtake (CONFLICT), while the caller
 * holds no lock that they need. */
struct zr_backoff {
    struct zr_lock_wait wait;
    const char *key;
    uint64_t bound_ns; /* of the next wait */
    uint32_t n_tries;
};
/* store and key are borrowed until the last wait. key: what is waited for, which may be
 * the path of a node. cancel may be NULL. */
void zr_backoff_init(struct zr_backoff *b, const zarr_store *s, const char *key,
                     const zarr_cancel *cancel);
/* After a try failed with st, and *err has its text: waits, and returns OK if the caller
 * should try again. Else returns st, or CANCELLED. */
zarr_status zr_backoff_wait(struct zr_backoff *b, zarr_status st, zarr_error *err);

/* Waits until no key at or below the prefix is locked, as zr_store_lock() does for one. A
 * writer that comes later is not waited for. */
zarr_status zr_store_wait_for_writers(zarr_store *s, const char *prefix,
                                      const zarr_cancel *cancel, zarr_error *err);
/* Waits for the holder of the lock of one key, if the lock is a file. It is a look at
 * that file if there is no holder. */
zarr_status zr_store_wait_for_writer(zarr_store *s, const char *key,
                                     const zarr_cancel *cancel, zarr_error *err);

/* ---- pins: many reads of one value ------------------------------------------- */

/*
 * Keeps one version of a value readable, for the reads of a shard. Every GET through the
 * pin reads the same bytes, whatever writers do. (Local: an open descriptor, and a GET
 * costs one pread. Memory: a reference.) A GET fails with CONFLICT if the value was
 * replaced and the store can only compare versions. The local store does so if this
 * process has no descriptors left for pins. On a store that can do neither (no
 * CAP_VERSIONS) a GET reads the current value, and fails with CONFLICT if the store
 * tells another length of it than before. The caller owns the struct; key is borrowed
 * until deinit.
 */
struct zr_store_pin {
    zarr_store *store;
    const char *key;
    zarr_store_version version; /* none: not known yet */
    uint64_t object_bytes;      /* UINT64_MAX: not known */
    intptr_t held; /* for the store: descriptor + 1 (0: compares versions), or a value */
    uint64_t told_bytes; /* a store without versions: the length that a GET told first */
    atomic_int state;
};
/* Whether GETs through a pin of this key certainly read one version, or fail. */
bool zr_store_pins(const zarr_store *s, const char *key);
/* NOT_FOUND if the store knows at once that the key is missing. On stores without pins
 * the first GET returns it. */
zarr_status zr_store_pin_init(struct zr_store_pin *p, zarr_store *s, const char *key,
                              zarr_error *err);
void zr_store_pin_deinit(struct zr_store_pin *p); /* zeroed storage is allowed */
/* Refuses the version of a value that a conditional write cannot replace, because the
 * store does not tell it: zeros would mean that there is no value. */
zarr_status zr_store_check_version(const zarr_store *s, const char *key,
                                   const zarr_store_version *v, zarr_error *err);
bool zr_store_version_equal(const zarr_store_version *a, const zarr_store_version *b);
/* True for the version of a key that does not exist. */
__attribute__((always_inline)) static inline bool
zr_store_version_is_none(const zarr_store_version *v)
{
    return v->bytes[0] == 0;
}
/* Makes a version of n <= 7 numbers. */
void zr_store_version_make(zarr_store_version *out, const uint64_t *number, size_t n);
/* Number i of a version that consists of n numbers; 0 if this one does not. */
uint64_t zr_store_version_number(const zarr_store_version *v, size_t n, size_t i);

/* ---- the parts of a value before its commit, for stores --------------------------- */

struct zr_value_part {
    uint64_t number, offset, bytes; /* offset + bytes does not overflow */
    uint64_t wanted;                /* what `bytes` becomes once it is written */
    void *value;                    /* for the store; may be NULL */
};
struct zr_part_list {
    struct zr_value_part *part; /* n of them, by number; their offsets rise, too */
    size_t n, cap;
    bool has_overlap; /* a part was at bytes of another one */
};
/* Adds a part, or replaces the one of its number, whose value goes to *old, else NULL. In
 * a list that had overlapping parts no check succeeds any more: one of them may have the
 * bytes of another. */
zarr_status zr_part_list_put(struct zr_part_list *l, const zarr_allocator *alloc,
                             const struct zr_value_part *part, void **old,
                             zarr_error *err);
/* The part that has the byte `at`, or NULL. */
const struct zr_value_part *zr_part_list_at(const struct zr_part_list *l, uint64_t at);
bool zr_part_list_covers(const struct zr_part_list *l, uint64_t at, uint64_t bytes);
/* INVALID unless the parts 1, 2 and so on make a value of this length without gaps. */
zarr_status zr_part_list_check(const struct zr_part_list *l, const char *key,
                               uint64_t bytes, zarr_error *err);

/* ---- lent values: a store of bytes that the caller has -------------------------- */

/* One value that the caller lends for as long as the store lives. */
struct zr_lent_value {
    zarr_memory mem; /* memory of any kind; never written to */
    /* OK; NOT_FOUND: there is no such value; another: reading it failed so */
    zarr_status status;
};
struct zr_lent {
    const struct zr_lent_value *value; /* n of them; borrowed */
    uint64_t n;
    /* Finds the number of a key's value; false: it has none. Called from any thread. NULL
     * if n is 0 */
    bool (*find)(const void *arg, const char *key, uint64_t *i);
    const void *arg;
    /* status and text for a key without a value; borrowed */
    zarr_status absent;
    const char *absent_text;
};
/* Makes a store that reads these values and writes nothing. Its locks exclude no one. */
zarr_status zr_store_open_lent(zarr_store **out, const struct zr_store_env *env,
                               const struct zr_lent *lent, zarr_error *err);
/* Whether the store lends anything. */
bool zr_store_lends(const zarr_store *s);
/* Does a GET without a copy: op->mem becomes the place of the bytes, which must not be
 * changed. Returns false if the store lends nothing, has no such value, or has it in
 * another kind of memory than op->mem names; then run the GET. */
bool zr_store_lend(zarr_store *s, zarr_store_op *op);

/* ---- a few keys that reach the disk alone --------------------------------------- */

/*
 * Makes changes of some keys survive a loss of power. zarr_store_flush() does so for the
 * whole store, and may wait for all that other programs wrote to the same disk. So the
 * caller adds the keys first, changes them with PUTs and ERASEs that have the flags of
 * zr_durable_flags(), and then calls zr_durable_end(). That syncs only these keys, or
 * flushes the store if they are many or the store knows nothing better.
 */
struct zr_durable {
    zarr_store *store;
    struct zr_str keys; /* n of them, each followed by 0 */
    size_t n, last;     /* last: where the last of them begins */
    uint32_t n_syncs;   /* of values and folders */
    bool alone;         /* false: a flush does it; the caller may say so, too */
};
void zr_durable_init(struct zr_durable *d, zarr_store *s);
void zr_durable_deinit(struct zr_durable *d); /* zeroed storage is allowed */
/* Adds a key, from now on before all that is changed. Keys of one folder should follow
 * each other. Returns false if a flush is needed anyway: no more keys need be added. */
bool zr_durable_add(struct zr_durable *d, const char *key);
uint32_t zr_durable_flags(const struct zr_durable *d);
/* Call it when the keys were changed. An error is one of a flush. */
zarr_status zr_durable_end(struct zr_durable *d, zarr_error *err);

/* ---- the rest, as in the public functions; cancel may be NULL ------------------ */

zarr_status zr_store_list(zarr_store *s, const char *prefix, uint32_t how,
                          zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                          zarr_error *err);
zarr_status zr_store_flush(zarr_store *s, const zarr_cancel *cancel, zarr_error *err);

/* The end of the name of a lock file, as TensorStore writes it: both exclude each other.
 */
#define ZR_LOCK_SUFFIX ".__lock"

/* Flushes, so that a loss of power never leaves what comes next without what was written.
 * Does nothing where all of it appears at once. */
zarr_status zr_store_flush_before(zarr_store *s, const zarr_cancel *cancel,
                                  zarr_error *err);
/* Removes a prefix that is itself a symlink, and nothing at the link's target. *was:
 * whether it was a symlink. */
zarr_status zr_store_erase_link(zarr_store *s, const char *prefix, bool *was,
                                zarr_error *err);
/* Whether the store, or a part of it, was opened by the name of a symlink. */
bool zr_store_is_by_link(const zarr_store *s);
zarr_status zr_store_erase_prefix(zarr_store *s, const char *prefix,
                                  const zarr_cancel *cancel, zarr_error *err);
/* Removes what is left of a prefix whose keys were erased: empty folders, temporary
 * files, and the key `last` after them. CONFLICT if there is another key, which stays. */
zarr_status zr_store_erase_rest(zarr_store *s, const char *prefix, const char *last,
                                const zarr_cancel *cancel, zarr_error *err);
/* Appends a name of a prefix that does not depend on the current folder, on how the URL
 * was spelled, or on where in a hierarchy the store begins: of a local store its path
 * without links, of others the URL and the prefix. */
void zr_store_place(struct zr_str *out, const zarr_store *s, const char *prefix);
/* See `rename` in zarr_store_vtable. UNSUPPORTED if the store has none. */
zarr_status zr_store_rename(zarr_store *s, const char *from, const char *to,
                            const zarr_cancel *cancel, zarr_error *err);

#endif
