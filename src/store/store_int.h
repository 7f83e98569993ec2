/*
 * store/store_int.h - what the files of this room share: the handle, the additional
 * entries of built-in stores, the arithmetic of ranges, locks by key.
 */
#ifndef ZR_STORE_INT_H
#define ZR_STORE_INT_H

#include "store/store.h"

struct zr_store_native;
/* A named option of a store, which sets the uint32_t at this offset of
 * zarr_store_options. */
struct zr_store_option {
    const char *name;
    size_t offset;
    const char *choices; /* "one|two": they stand for 1 and 2; NULL: a number */
};
/* Sets members of o by its `config`, if the store is of this room. native: with the names
 * of its options; NULL: it has none. */
zarr_status zr_store_config_read(zarr_store_options *o, bool is_foreign,
                                 const struct zr_store_native *native, const char *kind,
                                 const struct zr_store_env *env, zarr_error *err);

/* The entries that a built-in store has besides the plug-in vtable. */
struct zr_store_native {
    zarr_status (*open)(void **self, const struct zr_store_env *env, const char *url,
                        const zarr_store_options *opts, zarr_error *err);
    zarr_status (*pin)(void *self, struct zr_store_pin *p, zarr_error *err);
    void (*unpin)(void *self, struct zr_store_pin *p);
    /* See zr_store_same(). NULL: two stores are the same only if their self is. */
    bool (*same)(void *self, void *other);
    /* See zr_store_overlap(). NULL: comparing the prefixes is enough. */
    zarr_status (*overlap)(void *self, const char *a, void *other, const char *b,
                           bool *overlap, zarr_error *err);
    /* See zr_store_erase_link(). NULL: the store has no symlinks. */
    zarr_status (*erase_link)(void *self, const char *prefix, bool *was, zarr_error *err);
    /* See zr_store_erase_rest(). NULL: the keys are listed first. */
    zarr_status (*erase_rest)(void *self, const char *prefix, const char *last,
                              const zarr_cancel *cancel, zarr_error *err);
    /* See zr_store_is_by_link(). NULL: it is not. */
    bool (*by_link)(const void *self);
    /* See zr_store_lend(). NULL: the store lends nothing. */
    bool (*lend)(void *self, zarr_store_op *op);
    /* Makes durable which of n keys exist, whose values were written with
     * ZR_STORE_OP_SYNCED. Each key is followed by 0. NULL: a flush does it. */
    zarr_status (*sync_names)(void *self, const char *keys, size_t n, zarr_error *err);
    /* With sync_names: whether it takes the place of a flush here. */
    bool (*syncs_names)(void *self);
    /* The store that keeps a key, for a store that is made of others. NULL: this one.
     * Stores without it need pin and unpin. */
    zarr_store *(*part)(const void *self, const char *key);
    /* Waits for the holder of the key's lock file. NULL: the store has no such files. */
    zarr_status (*wait_for_writer)(void *self, const char *key, const zarr_cancel *cancel,
                                   zarr_error *err);
    const char *detail;                    /* one line for listings of the registry */
    const struct zr_store_option *options; /* n_options of them */
    size_t n_options;
};

enum {
    ZR_STORE_KINDS = 32
};
extern const zarr_store_vtable zr_local_vtable, zr_memory_vtable;
extern const struct zr_store_native zr_local_native, zr_memory_native;

/* ---- waiting for a lock ------------------------------------------------------ */

enum {
    ZR_LOCK_HOLDER_BYTES = 256
};
void zr_lock_rules_read(struct zr_lock_rules *out, const struct zr_store_env *env,
                        const zarr_store_options *opts);
/* When to look again: the warning or the end of the wait is due, or it may be cancelled.
 * UINT64_MAX: never. The first call starts the clock. */
uint64_t zr_lock_wait_due(struct zr_lock_wait *w);
bool zr_lock_wait_is_over(const struct zr_lock_wait *w);
/* Whether to warn now. */
bool zr_lock_wait_is_long(const struct zr_lock_wait *w);
/* A cancel object that is always set. zr_store_lock() knows it: such a wait ends at once.
 */
extern const zarr_cancel zr_lock_no_wait;
/* holder: a phrase such as "process 7 (python) has v.__lock open". Hold no lock of ours:
 * the application's function may take long. */
void zr_lock_wait_warn(struct zr_lock_wait *w, const char *holder);
/* IO with ETIMEDOUT; or CANCELLED. */
zarr_status zr_lock_wait_fail(const struct zr_lock_wait *w, const char *holder,
                              zarr_error *err);

/* ---- locks by key, inside one handle ----------------------------------------- */

/* One thread's wait or lock, in that thread's storage. key is borrowed until the lock is
 * given back. */
struct zr_keylock {
    const char *key;
    struct zr_keylock *next;
    uint32_t bucket;
};
enum {
    ZR_KEYLOCK_BUCKETS = 64
};
struct zr_keylocks {
    struct {
        zr_mutex mutex;
        zr_cond given;
        struct zr_keylock *held[ZR_KEYLOCK_BUCKETS];
        uint32_t n_waiting;
    } locked;
    struct zr_fork_hook fork;
    struct zr_lock_rules rules;
};
void zr_keylocks_init(struct zr_keylocks *k, const struct zr_store_env *env,
                      const zarr_store_options *opts);
void zr_keylocks_deinit(struct zr_keylocks *k);
/* Fails with IO when the wait is over, with CANCELLED when it was cancelled. */
zarr_status zr_keylocks_take(struct zr_keylocks *k, struct zr_keylock *lock,
                             struct zr_lock_wait *wait, zarr_error *err);
/* Does not wait. Returns false if the key is locked. */
bool zr_keylocks_try(struct zr_keylocks *k, struct zr_keylock *lock, const char *key);
void zr_keylocks_give(struct zr_keylocks *k, struct zr_keylock *lock);

/* What zr_store_lock() returns if the store has no locks of its own. */
struct zr_handle_lock {
    struct zr_keylock keylock;
    char key[]; /* terminated */
};
zarr_status zr_handle_lock_take(struct zr_keylocks *k, const zarr_allocator *alloc,
                                const char *key, const zarr_cancel *cancel, void **lock,
                                zarr_error *err);
void zr_handle_lock_give(struct zr_keylocks *k, const zarr_allocator *alloc, void *lock);

/* ---- the handle ----------------------------------------------------------------- */

struct zarr_store {
    atomic_uint refs;
    zarr_store_vtable vt;
    const struct zr_store_native
        *native; /* NULL: a store of a plug-in or the application */
    void *self;
    /* Does an operation that the store can do without emulation: vt.run for the core's
     * stores, zr_op_run_foreign() with this handle for others. */
    void (*run)(void *run_self, zarr_store_op *op, zarr_error *err);
    void *run_self;
    zarr_store_caps caps;
    int32_t device_types[ZR_STORE_KINDS]; /* caps.device_types points here */
    struct zr_store_env env;
    char *url, *name;
    bool read_only, by_url;      /* by_url: opened by its URL, which identifies it */
    atomic_bool has_stat;        /* a foreign store has done a STAT */
    struct zr_keylocks keylocks; /* for stores without CAP_LOCK */
    zarr_store_options options;  /* without its texts, which are the caller's */
    struct {
        zr_mutex mutex;
        struct store_batch *batches; /* the batches in flight, for cancel */
    } locked;
    struct zr_fork_hook fork;
};

/* A built-in store that is not opened by a URL. */
struct zr_store_native_make {
    const zarr_store_vtable *vt;
    const struct zr_store_native *native;
    void *self; /* moved */
    bool read_only;
    const zarr_store *memory_source; /* whose default memory is used; NULL: of none */
};
/* Makes its handle. Of the options only ZARR_STORE_READ_ONLY and the default memory may
 * be set. */
zarr_status zr_store_make_native(zarr_store **out, const struct zr_store_env *env,
                                 const struct zr_store_native_make *make, const char *url,
                                 const zarr_store_options *opts, zarr_error *err);

/* The store that keeps a key: s itself, or a part of a composite store. */
zarr_store *zr_store_of_key(const zarr_store *s, const char *key);

/* ---- one operation ----------------------------------------------------------------- */

/* Adds copies between host and device memory to op's counters. */
void zr_op_add_copies(zarr_store_op *op, const struct zr_copy_counters *c);
/* Resets the results in op: done_bytes and the members after it. */
void zr_op_begin(zarr_store_op *op);
/* Sets op's status and os_code. Returns status, for use as `return zr_op_end(...)`. */
zarr_status zr_op_end(zarr_store_op *op, zarr_status status, int os_code);
/* True for a PUT that must make a new key. */
bool zr_op_is_new(const zarr_store_op *op);
/* True for an ERASE of a key that must not exist. */
bool zr_op_erases_nothing(const zarr_store_op *op);
/* Computes which bytes of a value of object_bytes a GET reads: [*offset, *offset +
 * *n). */
void zr_op_range(const zarr_store_op *op, uint64_t object_bytes, uint64_t *offset,
                 uint64_t *n);
/* Makes every check that does not need the store: key, verb, flags, permissions. Sets
 * op->source->self. */
zarr_status zr_op_check(const zarr_store *s, const zarr_store_op *op, zarr_error *err);

/* The lock of its key that an unlocked write takes: without it the write could come
 * between the GET and the PUT of the holder. */
enum zr_lock_kind {
    ZR_LOCK_NONE,
    ZR_LOCK_HANDLE, /* the store has neither locks nor versions */
    ZR_LOCK_STORE   /* an application's store has locks, but its writes do not wait */
};
enum zr_lock_kind zr_op_lock_kind(const zarr_store *s, const zarr_store_op *op);
/* Calls run() of a foreign store, or submit() and waits, and checks the results. */
void zr_op_run_foreign(void *store, zarr_store_op *op, zarr_error *err);
/* Checks the results of a foreign store before they are used. Fills err if the store
 * failed without a text. */
void zr_op_distrust(const zarr_store *s, zarr_store_op *op, zarr_error *err);

/* Sets the key and the operation in the error of op, which failed. Returns its status. */
zarr_status zr_op_fail(const zarr_store_op *op, zarr_error *err);

/* Ends a call of the application for one key: the error names the store and, if the store
 * does not, the key. */
zarr_status zr_store_end(const zarr_store *store, const char *key, zarr_status st,
                         zarr_error *err);

/* Around a call of an entry of s->vt other than run and submit: gives the err for it, and
 * checks the error of a foreign store that failed. */
zarr_error *zr_store_call_begin(const zarr_store *s, struct zr_foreign *f,
                                zarr_error *err);
zarr_status zr_store_call_end(const zarr_store *s, struct zr_foreign *f, zarr_status st,
                              uint32_t operation, zarr_error *err);

/* True if the store cannot do op without emulation. */
bool zr_op_needs_emulation(const zarr_store *s, const zarr_store_op *op);
/* Whether op is a GET through a pin that the store itself can do otherwise. begin() makes
 * a plain GET of it, end() makes it pinned again and checks the version. */
bool zr_emulate_is_only_pin(const zarr_store *s, const zarr_store_op *op);
void zr_emulate_pin_begin(const zarr_store *s, zarr_store_op *op);
void zr_emulate_pin_end(zarr_store_op *op, zarr_error *err);
/* Whether op is a write by the holder of a lock of this handle, which the store itself
 * can do without that lock. begin() makes it such a write, and it stays one. */
bool zr_emulate_is_only_lock(const zarr_store *s, const zarr_store_op *op);
void zr_emulate_lock_begin(zarr_store_op *op);
/* Does op by other operations. UNSUPPORTED if they could not give the same guarantee. */
void zr_emulate_run(zarr_store *s, zarr_store_op *op, zarr_error *err);
/* Says that a key appeared while its prefix was erased. */
zarr_status zr_store_fail_new_key(const char *key, zarr_error *err);
zarr_status zr_erase_by_listing(zarr_store *s, const char *prefix,
                                const zarr_cancel *cancel, zarr_error *err);

/* Sets the version that the pin of a store without pins saw first, if the store has
 * versions. False: none yet. */
bool zr_pin_version(const struct zr_store_pin *p, zarr_store_version *out);
/* Checks a GET through a pin on a store without pins: its version must be the one that
 * the first GET saw. Without versions that is the length, where the store tells it. */
zarr_status zr_pin_check(struct zr_store_pin *p, const zarr_store_op *op,
                         zarr_error *err);

/* The length of "file://", "local://" or, before a slash, "file:" at the beginning of a
 * URL: a path follows. 0: there is none of them. */
size_t zr_url_of_files(const char *url);
/* The length of "SCHEME://", if a URL begins with it and no path of this machine follows.
 */
size_t zr_url_of_server(const char *url);
/* The path in a URL of a local store, of any scheme. */
const char *zr_url_folder(const char *url);
/* The length of the first part of a path that names an archive, as "a/x.zip" in
 * "a/x.zip/temp". 0: none does. */
size_t zr_path_find_archive(const char *path);
/* The length of the first part of an absolute path that is the root of its hierarchy, in
 * store/location.c. 0: no memory. */
size_t zr_path_find_root(const zarr_allocator *alloc, const char *path);
bool zr_path_is_archive(const char *path); /* the whole path */
/* The length of a URL without its query, if it is one of a server whose path ends as the
 * name of an archive; else 0. */
size_t zr_url_of_archive(const char *url);

#endif
