/*
 * zarrc/plugin/store.h - how to make a store. FOR EXTENDERS: stable per
 * plug-in ABI number, not for a major version.
 *
 * A store gets batches of operations. One that has nothing to gain from a
 * batch fills `run` only; the library then calls it from its worker threads,
 * several at a time. One that has its own concurrency (an event loop) fills
 * `submit`. What a store cannot do it leaves NULL or out of its caps, and the
 * library emulates it or refuses: it never pretends.
 */
#ifndef ZARRC_PLUGIN_STORE_H
#define ZARRC_PLUGIN_STORE_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>
#include <zarrc/store.h>

ZARR_BEGIN_DECLS

enum {
    ZARR_STORE_GET = 1,
    ZARR_STORE_PUT = 2,
    ZARR_STORE_ERASE = 3,
    ZARR_STORE_STAT = 4
};

/**
 * offset of a GET that wants the last `length` bytes; mem then holds them from its start
 * on.
 */
#define ZARR_STORE_SUFFIX UINT64_MAX
/** length of a GET that wants all from offset on. */
#define ZARR_STORE_TO_END UINT64_MAX

/** What an object was when it was read; all zero: "no such object". Compared as bytes. */
typedef struct zarr_store_version {
    uint64_t word[4];
} zarr_store_version;

enum {
    /**
     * GET, PUT, ERASE: only while the object is still `version`, else CONFLICT (cap
     * CONDITIONAL)
     */
    ZARR_STORE_OP_IF_VERSION = 1,
    ZARR_STORE_OP_LOCKED = 2, /**< PUT, ERASE: the caller holds `lock` on this key */
    /**
     * GET, PUT, STAT: fill `version` (it may cost a call); without it `version` is left
     * alone
     */
    ZARR_STORE_OP_WANT_VERSION = 4
};

/**
 * One operation; frozen per ABI number. The caller fills the first part, the store the
 * second. GET: reads up to min(length, mem.bytes) bytes at offset into mem. When the
 * value (or the range of it) is longer than mem, done_bytes is mem.bytes and object_bytes
 * tells the value's full length: stores must set object_bytes whenever done_bytes < what
 * was asked for or the value goes on behind mem; else they may leave UINT64_MAX. A range
 * that begins behind the end gives 0 bytes. A suffix longer than the value gives the
 * whole value.
 */
typedef struct zarr_store_op {
    uint32_t verb, flags;
    const char *key; /**< validated, terminated */
    uint64_t offset, length;
    /** GET destination, PUT source; of a kind the store declared */
    zarr_mem mem;
    /** in: IF_VERSION; out: of what was read or written, when the cap is there */
    zarr_store_version version;
    void *lock; /**< from vtable->lock */
    uint64_t done_bytes, object_bytes;
    zarr_status status;
    int32_t os_code;
    void *tag; /**< the submitter's */
    /** out: bytes of `mem` that came from host memory to it (up) or went to host memory
     * (down) in a copy that the store had to make; the library counts its own */
    uint64_t up_bytes, down_bytes;
} zarr_store_op;

enum {
    ZARR_STORE_CAP_RANGES = 1, /**< GET with offset and length */
    ZARR_STORE_CAP_SUFFIX = 2, /**< GET of the last n bytes in one request */
    ZARR_STORE_CAP_LIST = 4,
    ZARR_STORE_CAP_WRITE = 8,
    /** readers see the old or the new value, never a mix */
    ZARR_STORE_CAP_ATOMIC_PUT = 16,
    /** lock and unlock exclude all cooperating writers */
    ZARR_STORE_CAP_LOCK = 32,
    ZARR_STORE_CAP_CONDITIONAL = 64,
    /** a GET costs microseconds: run it on the decoding thread */
    ZARR_STORE_CAP_FAST_GET = 128
};

typedef struct zarr_store_caps {
    uint32_t struct_size, flags; /**< ZARR_STORE_CAP_* */
    /** memories it moves bytes to and from directly; NULL: host only */
    const int32_t *device_types;
    /** operations worth having in flight at once; 0: as many as threads */
    uint32_t n_device_types, parallel;
} zarr_store_caps;

/**
 * Required: caps, and run or submit; to be registered also name and open; lock and unlock
 * come together. NULL entries: the default stated, or "cannot". All may be called from
 * any thread at once.
 */
typedef struct zarr_store_vtable {
    uint32_t struct_size, flags;
    const char *name; /**< "local", "memory", ... also the URL scheme when registered */
    /** Opens `url`; when it fails it leaves nothing to close. NULL: only
     * zarr_store_open_custom(). */
    zarr_status (*open)(void **self, zarr_context *ctx, const char *url,
                        const zarr_store_options *opts, zarr_error *err);
    /** Required. Sets members of *out that lie below out->struct_size. */
    void (*caps)(void *self, zarr_store_caps *out);
    /**
     * Does one operation before it returns; fills op's second part; err gets text for
     * op->status. Required unless submit is there.
     */
    void (*run)(void *self, zarr_store_op *op, zarr_error *err);
    /**
     * Starts n operations and returns; calls done(arg, op, err) once for each, from any
     * thread, in any order, also before submit returns. The ops stay the store's until
     * then. NULL: the library runs `run`.
     */
    void (*submit)(void *self, zarr_store_op **ops, uint64_t n,
                   void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                   void *arg);
    /**
     * Asks that operations with this done/arg end soon, as CANCELLED. NULL: they run on.
     */
    void (*cancel)(void *self, void *arg);
    /** zarr_store_list() for this store; needs CAP_LIST. */
    zarr_status (*list)(void *self, const char *prefix, uint32_t how,
                        zarr_store_list_fn fn, void *user, zarr_error *err);
    /**
     * Waits for the exclusive right to change key; may be given back by another thread.
     */
    zarr_status (*lock)(void *self, const char *key, void **lock, zarr_error *err);
    void (*unlock)(void *self, void *lock);
    /** Default: nothing to flush. */
    zarr_status (*flush)(void *self, zarr_error *err);
    /** Default: list + erase. */
    zarr_status (*erase_prefix)(void *self, const char *prefix, zarr_error *err);
    /** Default: nothing to clean. */
    zarr_status (*clean)(void *self, const char *prefix, uint64_t min_age_s,
                         uint64_t *n_removed, zarr_error *err);
    /** Frees self; cannot fail. NULL: nothing to free. */
    void (*close)(void *self);
    /**
     * Moves every key below prefix `from` to the same place below `to`, in one step: a
     * reader finds all of them there or all here, whatever happens in between. Neither
     * prefix is empty or below the other. NOT_FOUND: nothing is below `from`.
     * UNSUPPORTED: not these two (something is below `to`, another disk ...), nothing was
     * changed and the caller copies and deletes. Default: that.
     */
    zarr_status (*rename)(void *self, const char *from, const char *to, zarr_error *err);
} zarr_store_vtable;

ZARR_END_DECLS

#endif
