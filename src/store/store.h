/*
 * store/store.h - the door to keys and their bytes: one handle over any store
 * (local directory, memory, an application's own), with what a store lacks
 * emulated or refused behind it. Upper rooms build zarr_store_op and hand them
 * to run or submit; they never see a path, a descriptor or a vtable.
 *
 * A key's fate is told exactly: NOT_FOUND means that the store proved that
 * there is no such key; everything else that went wrong is another status.
 *
 * The handle is counted. Allocator, log, limits and the registry of memories
 * are handed in when a store is opened (struct zr_store_env) and must outlive
 * it; the context is opaque here and held through two functions.
 * Thread class: handles frozen; registry solo until sealed, then frozen; pins
 * frozen between init and deinit.
 */
#ifndef ZR_STORE_H
#define ZR_STORE_H

#include "base/base.h"
#include "mem/mem.h"
#include <zarrc/plugin/store.h>
#include <zarrc/store.h>

/* ---- keys ---------------------------------------------------------------- */

enum {
    ZR_KEY_MAX_BYTES = 65535
};

/* The one check of keys, for all stores: non-empty UTF-8 components joined by '/', none
 * of them "." or "..", no NUL in the n bytes, at most ZR_KEY_MAX_BYTES. INVALID names
 * the byte. */
zarr_status zr_key_validate(const char *key, size_t n, zarr_error *err);
/* The same for the place of a listing: "" is fine and means all. */
zarr_status zr_key_validate_prefix(const char *prefix, size_t n, zarr_error *err);
/* True when key lies below prefix ("" is above all; "a" is above "a/b", not above "ab" or
 * "a"). */
bool zr_key_is_below(const char *key, const char *prefix);

/* ---- opening -------------------------------------------------------------- */

/* The parts of a context that a store uses. The struct is copied; its pointers are
 * borrowed and outlive the store. */
struct zr_store_env {
    const zarr_allocator *alloc;
    struct zr_log log;
    zarr_limits limits;
    const struct zr_memory_registry *memory; /* the host's at least */
    uint64_t lock_warn_ns;              /* a longer wait for a lock is logged; 0: 10 s */
    zarr_context *ctx;                  /* opaque; may be NULL */
    void (*ctx_ref)(zarr_context *ctx); /* may be NULL, as may unref */
    void (*ctx_unref)(zarr_context *ctx);
};

struct zr_store_registry; /* stores by name, which is also the URL scheme */
zarr_status zr_store_registry_create(struct zr_store_registry **out,
                                     const zarr_allocator *alloc, zarr_error *err);
void zr_store_registry_free(struct zr_store_registry *r);
/* Adds "local" (also "file") and "memory". To be called first: a taken name stays. */
zarr_status zr_store_registry_add_core(struct zr_store_registry *r, zarr_error *err);
/* The vtable and its name are copied; it needs open, caps, and run or submit. EXISTS:
 * name taken; INVALID. */
zarr_status zr_store_register(struct zr_store_registry *r,
                              const zarr_store_vtable *vtable, const char *origin,
                              zarr_error *err);
size_t zr_store_registry_count(const struct zr_store_registry *r);
/* Row i; the texts are the registry's. */
void zr_store_registry_item(const struct zr_store_registry *r, size_t i,
                            const char **name, const char **origin, const char **detail);

/* opts as zarr_store_open() takes them (NULL, short or long structs are read here). */
zarr_status zr_store_open(zarr_store **out, const struct zr_store_registry *r,
                          const struct zr_store_env *env, const char *url,
                          const zarr_store_options *opts, zarr_error *err);
/* self is moved: closed with the store, also when this fails. */
zarr_status zr_store_open_custom(zarr_store **out, const struct zr_store_env *env,
                                 const zarr_store_vtable *vtable, void *self,
                                 const zarr_store_options *opts, zarr_error *err);
/* zarr_store_ref, _free, _close, _flush, _url, _get, _put, ... are implemented in this
 * room. */

/* ---- properties ------------------------------------------------------------- */

/* As the store declared it, less WRITE when the handle is read-only. Borrowed, never
 * changes. */
const zarr_store_caps *zr_store_caps(const zarr_store *s);
/* All ZARR_STORE_CAP_* in `caps` are there natively. */
bool zr_store_can(const zarr_store *s, uint32_t caps);
/* Moves bytes to and from this memory without a bounce. */
bool zr_store_device_direct(const zarr_store *s, int32_t device_type);
const char *zr_store_name(const zarr_store *s); /* "local", "memory", the vtable's name */
bool zr_store_is_read_only(const zarr_store *s);
zarr_context *zr_store_context(const zarr_store *s); /* borrowed */
/* Both handles are on the same keys, for certain: what one does the other sees. */
bool zr_store_same(const zarr_store *s, const zarr_store *t);
/* As zarr_store_overlap(). */
zarr_status zr_store_overlap(zarr_store *s, const char *a, zarr_store *t, const char *b,
                             bool *overlap, zarr_error *err);

/* ---- operations ------------------------------------------------------------ */

/*
 * Flag for GET besides the public ones: op->lock is a `struct zr_store_pin *` on op->key.
 * Public semantics of each verb: zarrc/plugin/store.h. Keys are validated here, mem may
 * be any registered kind, ranges and suffixes work on every store. Emulation never hides
 * a lack that matters: IF_VERSION without CAP_CONDITIONAL and PUT without CAP_WRITE are
 * UNSUPPORTED, writes through a read-only handle INVALID.
 */
#define ZR_STORE_OP_PINNED UINT32_C(0x80000000)

/* One operation, done on return; returns op->status (NOT_FOUND included) and fills err
 * for it. On the local and memory stores a GET takes no lock of ours and does not
 * allocate. */
zarr_status zr_store_run_one(zarr_store *s, zarr_store_op *op, zarr_error *err);
/*
 * n operations, done on return, each with its own status. Returns the status of the
 * lowest item that is neither OK nor NOT_FOUND, err->item is its index. On stores without
 * an event loop they run one after the other on this thread: callers with many threads
 * call it from each.
 */
zarr_status zr_store_run(zarr_store *s, zarr_store_op *ops, uint64_t n, zarr_error *err);

typedef void (*zr_store_done_fn)(void *arg, zarr_store_op *op, const zarr_error *err);
/*
 * Starts n operations; done(arg, op, err) comes once for each, from any thread, in any
 * order, also before this returns; err may be NULL and lives for the call. ops (the
 * structs, not the array of pointers), keys, memories and pins stay the store's until
 * then. Stores with an event loop go on by themselves; the others' operations, and writes
 * that may wait for a lock of this handle, run on the process's thread pool. Never fails
 * itself.
 */
void zr_store_submit(zarr_store *s, zarr_store_op **ops, uint64_t n,
                     zr_store_done_fn done, void *arg);
/* Asks that operations submitted with this arg end soon, as CANCELLED; done still comes
 * for each. */
void zr_store_cancel(zarr_store *s, void *arg);

/* ---- locks: read-modify-write ------------------------------------------------- */

/*
 * Waits for the exclusive right to change key and holds it over a GET and one PUT or
 * ERASE with ZARR_STORE_OP_LOCKED and op->lock. One PUT a lock: after it the right is
 * spent, a second is INVALID. Do not PUT the same key without the flag while holding it:
 * that waits for ever. With CAP_LOCK all cooperating writers are excluded (processes,
 * TensorStore); without it only other zr_store_lock() callers of this handle, and
 * IF_VERSION is the way where CAP_CONDITIONAL is; where that is not either, writes of
 * this handle without the flag wait as well. A holder of one lock may wait for a
 * second one only if no holder of the second one ever waits for the first.
 */
zarr_status zr_store_lock(zarr_store *s, const char *key, void **lock, zarr_error *err);
void zr_store_unlock(zarr_store *s, void *lock); /* NULL is fine; any thread */

/* ---- pins: many reads of one value ------------------------------------------- */

/*
 * Keeps one version of a value readable, for reads of a shard: every GET through the pin
 * sees the same bytes whatever writers do (local: an open descriptor, a GET costs one
 * pread; memory: a reference), or fails with CONFLICT on stores that can only compare
 * versions, and on local ones where this process has no more descriptors for pins. Stores
 * that have neither (no CAP_CONDITIONAL) read as is. The struct is the caller's storage;
 * key is borrowed until deinit.
 */
struct zr_store_pin {
    zarr_store *store;
    const char *key;
    zarr_store_version version; /* all zero: not known (yet) */
    uint64_t object_bytes;      /* UINT64_MAX: not known */
    intptr_t held; /* the store's: descriptor + 1 (0: by version), or a value */
    atomic_int state;
};
/* NOT_FOUND if the store can tell at once. On stores without pins the GETs tell it. */
zarr_status zr_store_pin_init(struct zr_store_pin *p, zarr_store *s, const char *key,
                              zarr_error *err);
void zr_store_pin_deinit(struct zr_store_pin *p); /* zeroed storage is fine */
bool zr_store_version_equal(const zarr_store_version *a, const zarr_store_version *b);

/* ---- the rest, as the public functions do it ----------------------------------- */

zarr_status zr_store_list(zarr_store *s, const char *prefix, uint32_t how,
                          zarr_store_list_fn fn, void *user, zarr_error *err);
/* Removes a prefix that is itself a link to another place, and nothing there; *was: it
 * was one. */
zarr_status zr_store_erase_link(zarr_store *s, const char *prefix, bool *was,
                                zarr_error *err);
zarr_status zr_store_erase_prefix(zarr_store *s, const char *prefix, zarr_error *err);
/* As the vtable's rename says it; UNSUPPORTED where there is none. */
zarr_status zr_store_rename(zarr_store *s, const char *from, const char *to,
                            zarr_error *err);

#endif
