/*
 * zarrc/store.h - where keys and their bytes live. Keys are relative paths
 * such as "a/zarr.json" or "a/c/0/1": non-empty UTF-8 segments joined by '/',
 * none of them "." or "..", no NUL; every store refuses others with INVALID.
 * Thread class of a store: frozen (operations lock inside as needed).
 */
#ifndef ZARRC_STORE_H
#define ZARRC_STORE_H

#include <zarrc/base.h>
#include <zarrc/context.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>

ZARR_BEGIN_DECLS

typedef struct zarr_store zarr_store;
struct zarr_store_vtable; /* zarrc/plugin/store.h */

enum {
    ZARR_DURABILITY_DEFAULT = 0, /**< commit */
    ZARR_DURABILITY_NONE = 1,    /**< survives the death of the process */
    /** survives power loss once zarr_store_flush() returned */
    ZARR_DURABILITY_COMMIT = 2,
    ZARR_DURABILITY_EACH = 3 /**< survives power loss once each write returned */
};

enum {
    ZARR_LOCKING_DEFAULT = 0, /**< os */
    /** TensorStore's protocol: OFD lock on <key>.__lock; between threads and processes */
    ZARR_LOCKING_OS = 1,
    /** temporary name + rename only: the application promises one writer a key */
    ZARR_LOCKING_NONE = 2
};

enum {
    ZARR_SYMLINKS_DEFAULT = 0, /**< within */
    ZARR_SYMLINKS_WITHIN = 1,  /**< followed while they stay below the store's root */
    ZARR_SYMLINKS_DENY = 2,
    ZARR_SYMLINKS_FOLLOW = 3
};

typedef struct zarr_store_options {
    uint32_t struct_size, flags; /**< ZARR_STORE_* */
    uint32_t durability, locking, symlinks, reserved;
    int32_t device_type, device_id; /**< memory store: where values live; 0: host */
    /** a registered store's name when the URL does not tell; NULL: by URL */
    const char *kind;
} zarr_store_options;

#define ZARR_STORE_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_store_options)

enum {
    ZARR_STORE_READ_ONLY = 1, /**< writes fail with INVALID */
    ZARR_STORE_CREATE = 2     /**< local: make the root directory if it is missing */
};

/**
 * Opens a store by URL: a path or file://path (local directory), "memory:" (a new, empty
 * store in memory), or the scheme of a registered store. A missing local root is
 * NOT_FOUND unless CREATE.
 * @param out owned: zarr_store_free(); holds a reference to ctx; seals ctx's registries
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_open(zarr_store **out, zarr_context *ctx,
                                                     const char *url,
                                                     const zarr_store_options *opts,
                                                     zarr_error *err);

/**
 * A store made of the application's own functions. The vtable is copied; `self` is handed
 * to each of them and to vtable->close when the store is freed (also when this call
 * fails).
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_open_custom(
    zarr_store **out, zarr_context *ctx, const struct zarr_store_vtable *vtable,
    void *self, const zarr_store_options *opts, zarr_error *err);

/** One more owner. Returns store. */
ZARR_API zarr_store *zarr_store_ref(zarr_store *store);

/**
 * Ends what was written: with durability commit, everything written through this handle
 * survives power loss once this returned ZARR_OK. Errors of delayed writes arrive here.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_flush(zarr_store *store, zarr_error *err);

/** zarr_store_flush(), then gives up one ownership whatever the outcome. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_close(zarr_store *store, zarr_error *err);

/** Gives up one ownership without flushing; NULL is fine. */
ZARR_API void zarr_store_free(zarr_store *store);

/** The URL or path it was opened with; borrowed. */
ZARR_API const char *zarr_store_url(const zarr_store *store);

/**
 * Reads [offset, offset + *bytes) of one value into host memory; `*bytes` becomes what
 * was read (less at the value's end). *total_bytes (may be NULL) becomes the value's
 * length.
 * @return NOT_FOUND only when the store says that there is no such key
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_get(zarr_store *store, const char *key,
                                                    uint64_t offset, void *data,
                                                    uint64_t *bytes,
                                                    uint64_t *total_bytes,
                                                    zarr_error *err);

/** Writes a whole value, atomically where the store can. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_put(zarr_store *store, const char *key,
                                                    const void *data, uint64_t bytes,
                                                    zarr_error *err);

/** Removes one key; NOT_FOUND when there was none. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_erase(zarr_store *store, const char *key,
                                                      zarr_error *err);

/**
 * Removes all keys below prefix ("" = all; "a" means "a/..."), in the order children
 * first. Symlinks of a local store, the prefix itself too, are removed as links: what
 * they lead to stays.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_erase_prefix(zarr_store *store,
                                                             const char *prefix,
                                                             zarr_error *err);

/**
 * *overlap becomes 1 when the keys below `prefix` of a store and those below
 * `other_prefix` of another (or the same) are the same keys, or some of them are: ask
 * before one is overwritten with the other. Symlinks below the two are not followed.
 * Local folders are compared as the file system knows them, whatever their spelling,
 * symlinks and roots; a prefix may be missing yet. Other stores are the same where they
 * are one handle, share their functions and `self`, or are of one registered kind with
 * the same URL. Any thread. IO where the file system refuses to tell.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_overlap(zarr_store *store,
                                                        const char *prefix,
                                                        zarr_store *other,
                                                        const char *other_prefix,
                                                        int *overlap, zarr_error *err);

/** One row of a listing. */
typedef struct zarr_store_item {
    /** full key, or for a directory row its path without trailing '/' */
    const char *key;
    uint64_t bytes;               /**< UINT64_MAX: not known without asking */
    uint32_t is_prefix, reserved; /**< 1: stands for all keys below it */
} zarr_store_item;

typedef int (*zarr_store_list_fn)(void *user, const zarr_store_item *item);

enum {
    ZARR_LIST_RECURSIVE = 0,
    ZARR_LIST_DIRECTORY = 1,
    ZARR_LIST_DEBRIS = 2
};

/**
 * Calls fn for keys below prefix; lock and temporary names are left out. `how`: RECURSIVE
 * every key; DIRECTORY the keys and prefixes one level down; DEBRIS only left-over
 * temporary and lock files. What a local store has and cannot read (a link that leads out
 * or nowhere, a FIFO) is a key, too: reading it tells why. Order is the store's. A
 * non-zero return of fn stops the listing (ZARR_OK).
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_list(zarr_store *store,
                                                     const char *prefix, uint32_t how,
                                                     zarr_store_list_fn fn, void *user,
                                                     zarr_error *err);

/**
 * Removes left-over temporary and lock files below prefix that nobody holds and that are
 * older than min_age_s; *n_removed may be NULL.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_clean(zarr_store *store,
                                                      const char *prefix,
                                                      uint64_t min_age_s,
                                                      uint64_t *n_removed,
                                                      zarr_error *err);

ZARR_END_DECLS

#endif
