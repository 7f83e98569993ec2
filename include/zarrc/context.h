/*
 * zarrc/context.h - the context owns what calls share: allocator, limits,
 * byte budget, registries, log. Make one at start and pass it on; several in
 * one process are fine (the thread pool is the process's). Thread class: shared.
 *
 * Registries are filled by the built-ins, then by the application's
 * zarr_context_register_*() or by plug-ins (zarrc/plugin/plugin.h), and sealed by the
 * first call of zarr_store_open() or zarr_store_open_custom(), one that fails included:
 * a store that is being opened may look things up already, and unsealing would take them
 * away from it. A later registration fails with ZARR_ERR_INVALID. Before that other
 * threads may look up and list: they see a registration whole, or not yet.
 */
#ifndef ZARRC_CONTEXT_H
#define ZARRC_CONTEXT_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/limits.h>
#include <zarrc/memory.h>

ZARR_BEGIN_DECLS

/**
 * Where the library takes host memory from. All three or none; called from any thread.
 * Large page-aligned blocks for chunks come from `alloc` too, with their bytes.
 */
typedef struct zarr_allocator {
    void *user;
    void *(*alloc)(void *user, size_t bytes); /**< NULL: no memory */
    /** block may be NULL; on NULL the old block stays */
    void *(*realloc)(void *user, void *block, size_t bytes);
    void (*free)(void *user, void *block); /**< block may be NULL */
} zarr_allocator;

enum {
    ZARR_LOG_ERROR = 1,
    ZARR_LOG_WARN = 2,
    ZARR_LOG_INFO = 3,
    ZARR_LOG_DEBUG = 4,
    ZARR_LOG_TRACE = 5
};

/**
 * One finished line without newline; called from any thread, must not call back into the
 * library.
 */
typedef void (*zarr_log_fn)(void *user, uint32_t level, const char *text);

typedef struct zarr_context_options {
    uint32_t struct_size, flags;
    /** borrowed, must outlive the context; NULL: malloc */
    const zarr_allocator *allocator;
    const zarr_limits *limits; /**< copied; NULL: defaults */
    zarr_log_fn log;           /**< NULL: silent */
    void *log_user;
    uint32_t log_level; /**< ZARR_LOG_*; 0: ZARR_LOG_WARN */
    /**
     * of the process's pool this context may use at once, the caller's included; 0: all
     * cores
     */
    uint32_t n_threads;
    /**
     * byte budget for buffers in flight; 0: an eighth of the machine, at least 256 MiB
     */
    uint64_t memory_bytes;
    uint64_t wave_bytes; /**< decoded bytes of a mini-batch; 0: 64 MiB */
    /** "waves" (default), "serial", or a registered one; copied */
    const char *pipeline;
    /** "zstd=cuda.nvcomp,cpu.libzstd;gzip=..."; copied; NULL: priorities decide */
    const char *codec_preference;
    /**
     * files of plug-ins to load (zarrc/plugin/plugin.h), NULL-terminated, borrowed for
     * the call; before those of ZARR_PLUGIN_PATH. NULL: none
     */
    const char *const *plugins;
} zarr_context_options;

#define ZARR_CONTEXT_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_context_options)

/**
 * Makes a context. Environment: ZARR_THREADS, ZARR_MEMORY_BYTES, ZARR_PIPELINE,
 * ZARR_CODEC_PREF and ZARR_LOG_LEVEL fill members left zero.
 *
 * ZARR_PLUGIN_PATH names more plug-ins to load, with colons between: absolute paths of
 * files, or of folders, of which every *.so is loaded, by name. What is missing or cannot
 * be loaded fails the creation, naming it; an empty part means nothing, never the
 * working directory. It is ignored in a program that runs with another user's rights
 * (set-user-ID). ZARR_PLUGIN_PATH is read by the library only here.
 * @param out owned by the caller: zarr_context_free()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_context_create(zarr_context **out,
                                                         const zarr_context_options *opts,
                                                         zarr_error *err);

/** One more owner. Returns ctx. */
ZARR_API zarr_context *zarr_context_ref(zarr_context *ctx);

/**
 * Gives up one ownership; NULL is fine. Stores, arrays and groups hold their context by
 * themselves.
 */
ZARR_API void zarr_context_free(zarr_context *ctx);

/**
 * The limits in force, in the first out_bytes of *out. For other languages; C and C++ use
 * zarr_context_limits(), which knows the size.
 */
ZARR_API void zarr_context_limits_sized(const zarr_context *ctx, zarr_limits *out,
                                        uint32_t out_bytes);
/** The limits in force. Thread class: plain function. */
static inline void zarr_context_limits(const zarr_context *ctx, zarr_limits *out)
{
    zarr_context_limits_sized(ctx, out, sizeof *out);
}

/** Gives cached buffers, codec contexts and idle pool memory back to the system. */
ZARR_API void zarr_context_trim(zarr_context *ctx);

enum {
    ZARR_REGISTRY_DTYPE = 1,
    ZARR_REGISTRY_CODEC = 2,
    ZARR_REGISTRY_CODEC_IMPL = 3,
    ZARR_REGISTRY_GRID = 4,
    ZARR_REGISTRY_KEY_ENCODING = 5,
    ZARR_REGISTRY_STORE = 6,
    ZARR_REGISTRY_MEMORY = 7,
    ZARR_REGISTRY_PIPELINE = 8,
    /** no registry: names that the library refuses on purpose; detail is the reason */
    ZARR_REGISTRY_REFUSED = 9,
    /** no registry: the plug-ins that are loaded; origin is the file */
    ZARR_REGISTRY_PLUGIN = 10
};

enum {
    ZARR_ITEM_EXPERIMENTAL = 1, /**< not in Zarr's registry, or marked as not stable */
    ZARR_ITEM_FAMILY = 2,       /**< data type: members differ by configuration */
    ZARR_ITEM_DEFAULT = 4       /**< pipeline: the context's own */
};

/** One row of a registry; texts are borrowed for the call, never NULL. */
typedef struct zarr_registry_item {
    uint32_t struct_size, registry;
    const char *name;   /**< "zstd", "cpu.libzstd", "float32" */
    const char *origin; /**< "core", or who registered it */
    const char *detail; /**< one line: kinds, priority, v2 spelling ...; "" if none */
    uint32_t flags, reserved; /**< ZARR_ITEM_* */
    const char *v3;           /**< name in v3 metadata; "" if it has none there */
    const char *v2;           /**< name in v2 metadata; "" if it has none there */
    const char *aliases;      /**< further names that are read, with blanks between; "" */
    /** implementation: its codec; refused: of what kind, "codec"; else "" */
    const char *of;
    /** implementation: what it can, words with blanks between: decode, encode, batch,
     * partial, strided (functions of its table), safe, deterministic; else "" */
    const char *capabilities;
} zarr_registry_item;

/**
 * Calls fn for each row of one registry, or of all with registry 0 (refusals too), in
 * registration order; a non-zero return of fn stops.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_context_list(
    zarr_context *ctx, uint32_t registry,
    int (*fn)(void *user, const zarr_registry_item *item), void *user, zarr_error *err);

ZARR_END_DECLS

#endif
