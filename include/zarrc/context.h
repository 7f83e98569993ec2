/**
 * @file
 * The context: memory, limits, threads, plug-ins and log, which all calls share. Thread
 * class of a context: shared.
 */
#ifndef ZARRC_CONTEXT_H
#define ZARRC_CONTEXT_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/limits.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/**
 * Functions that allocate host memory for the library, including the large buffers for
 * chunks. All three functions are required, and the library calls them from any thread.
 */
typedef struct zarr_allocator {
    void *user;                               /**< passed to each function */
    void *(*alloc)(void *user, size_t bytes); /**< returns NULL if there is no memory */
    /** `block` may be NULL; if the function returns NULL, the old block stays valid */
    void *(*realloc)(void *user, void *block, size_t bytes);
    void (*free)(void *user, void *block); /**< `block` may be NULL */
} zarr_allocator;

/** Levels of the log. A level includes the levels above it in this list. */
enum {
    ZARR_LOG_ERROR = 1, /**< errors that no call can report */
    ZARR_LOG_WARN = 2, /**< also warnings, such as a node with metadata of both formats */
    ZARR_LOG_INFO = 3, /**< also information */
    /** also opened stores, reads and writes of metadata documents, locks, and failures */
    ZARR_LOG_DEBUG = 4,
    ZARR_LOG_TRACE = 5 /**< also single steps, such as each wave of a request */
};

/**
 * Receives one line of the log, without a newline. The library calls it from any thread.
 * The function must not call the library.
 */
typedef void (*zarr_log_fn)(void *user, uint32_t level, const char *text);

/**
 * Which unsafe decoders may run. Some GPU decoders do not check their input. Such a
 * decoder is unsafe: its implementation lacks ZARR_CODEC_SAFE. On damaged or hostile
 * input it may crash, or overwrite device memory that does not belong to it. 0: a call
 * has the setting of its array, an array that of its context, and a context
 * ZARR_TRUST_VERIFIED.
 */
enum {
    /**
     * those whose input has passed a checksum in the same read. For this, the array must
     * have a checksum codec, such as crc32c, after the decoder's codec. A checksum
     * detects damage. It does not stop an attacker, who can write a valid one
     */
    ZARR_TRUST_VERIFIED = 1,
    ZARR_TRUST_FULL = 2, /**< all: for data that the application trusts */
    ZARR_TRUST_NONE =
        3 /**< none, with or without a checksum: for data of unknown origin */
};

/** Options of zarr_context_create(). */
typedef struct zarr_context_options {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    /** borrowed, must outlive the context; NULL: malloc() */
    const zarr_allocator *allocator;
    const zarr_limits *limits; /**< limits for hostile input, copied; NULL: defaults */
    zarr_log_fn log;           /**< receives the log; NULL: there is no log */
    void *log_user;            /**< passed to `log` */
    uint32_t log_level;        /**< one of ZARR_LOG_*; 0: ZARR_LOG_WARN */
    /**
     * maximum number of threads that work for this context at once, including the
     * caller's; 0: one for each core, zarr_core_count()
     */
    uint32_t max_threads;
    /**
     * maximum bytes of the buffers of all running requests together. If one chunk needs
     * more, or in a write one shard, the call fails with ZARR_ERR_LIMIT before it changes
     * anything; `zarr_tuning.memory_bytes` has the details. 0: an eighth of the memory of
     * the machine, or of the control group if that has less, at least 256 MiB. With this
     * default nothing is refused: a chunk or shard that needs more is handled alone
     */
    uint64_t memory_bytes;
    /** decoded bytes that a request handles in one step (a wave); 0: 64 MiB, and more for
     * a request whose codecs work on a device */
    uint64_t wave_bytes;
    /** how requests are carried out: "waves", "serial" or a registered pipeline; copied;
     * NULL: "waves" */
    const char *pipeline;
    /** preferred implementations of codecs, best first, such as
     * "zstd=cuda.nvcomp,cpu.libzstd;gzip=cpu"; "cpu" means every name that begins with
     * "cpu.". An unknown codec is ZARR_ERR_INVALID. If the list of a codec names no
     * registered implementation of it, the log gets a warning. In the options of an array
     * or in `zarr_tuning`, this is ZARR_ERR_INVALID instead. If the list names registered
     * implementations, but none of them can be used, the log gets a warning, and the
     * library uses another one. Copied; NULL: their priorities decide */
    const char *codec_preference;
    /** files of plug-ins to load, ended by NULL; borrowed for the call. They are loaded
     * before those of ZARRC_PLUGINS. NULL: none */
    const char *const *plugins;
    /**
     * maximum bytes of the library's buffers on each device, used and idle ones together.
     * All requests share them, and wait for each other if necessary. 0: what the memory
     * backend of the device allows; a memory backend is the code of a plug-in or of the
     * library for one kind of memory
     */
    uint64_t device_bytes;
    /**
     * maximum bytes of pinned host memory for copies to and from each device, used and
     * idle ones together. If this is not enough, the library uses ordinary host memory.
     * 0: a quarter of `memory_bytes`, at most 4 GiB and at most `device_bytes`
     */
    uint64_t pinned_bytes;
    /** options for plug-ins: the text of a JSON object with an object for each plug-in,
     * such as {"acme": {"device": 1}}; copied. An option that the plug-in does not have
     * is an error, also in zarr_context_load(). NULL: none */
    const char *plugin_options;
    /** names of memory backends, separated by ";". Each allocates the memory of its kind
     * for the library and for zarr_memory_alloc(). If two have the same kind, the first
     * allocates. A kind can have several backends that only allocate (flag
     * ZARR_MEMORY_ALLOCATOR), and one that also copies bytes. That one allocates if this
     * list names no backend of the kind. An unknown name gives a warning in the log.
     * Copied; NULL: none */
    const char *allocators;
    /** default memory, as in `zarr_memory`, of tensors that name no memory. A store or an
     * array may have another default. Elements of variable length and metadata are always
     * in host memory. 0: host memory */
    int32_t device_type, device_id;
    uint32_t trust;    /**< one of ZARR_TRUST_*: which unsafe decoders may run */
    uint32_t reserved; /**< must be 0 */
} zarr_context_options;

#define ZARR_CONTEXT_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_context_options)

/**
 * Makes a context. A context owns what calls share: allocator, limits, byte budget, log,
 * and the registries of data types, codecs, chunk grids, stores, memories and pipelines.
 * Make one context when the program starts, and pass it on. A process can have several;
 * they share its pool of threads.
 *
 * The registries contain what the library has built in. The application adds its own
 * entries with zarr_context_register_codec_spec() and its siblings, or loads plug-ins,
 * before it opens a store. zarr_location_parse(), zarr_array_open_document() and every
 * call that opens a store seal the registries, even if they fail. Afterwards, a
 * registration returns ZARR_ERR_INVALID.
 *
 * If a member of the options is zero, an environment variable can set its default:
 *
 * - ZARRC_MAX_THREADS, ZARRC_MEMORY_BYTES (such as 512M or 4G), ZARRC_WAVE_BYTES,
 *   ZARRC_DEVICE_BYTES, ZARRC_PINNED_BYTES, ZARRC_ALLOCATORS, ZARRC_PIPELINE,
 *   ZARRC_CODEC_PREFERENCE, ZARRC_PLUGIN_OPTIONS: as the member of that name;
 * - ZARRC_LIMITS: a text for zarr_limits_parse();
 * - ZARRC_TRUST: verified, full or none;
 * - ZARRC_LOG_LEVEL: error, warn, info, debug or trace;
 * - ZARRC_MEMORY: the default memory, a text for zarr_memory_parse(), such as "cuda:0".
 *   It may be a name that only a loaded plug-in knows, such as the UUID of a GPU;
 * - ZARRC_LOCKS (os or none), ZARRC_SYMLINKS (within, deny or follow): defaults of local
 *   stores (zarr_store_options).
 *
 * ZARRC_PLUGINS names more plug-ins to load: absolute paths, separated by colons. From a
 * directory, every file whose name ends in .so is loaded, in the order of names. Empty
 * parts are ignored.
 *
 * A program that runs with raised privileges (set-user-ID) ignores ZARRC_LIMITS,
 * ZARRC_LOCKS, ZARRC_PLUGIN_OPTIONS, ZARRC_PLUGINS, ZARRC_SYMLINKS and ZARRC_TRUST.
 *
 * The first context keeps the shared library mapped until the process ends, even after
 * dlclose().
 *
 * @param out receives the context; owned: zarr_context_free()
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_INVALID an option or an environment variable has a wrong value, which
 * the message names
 * @retval ZARR_ERR_NOT_FOUND a plug-in does not exist
 * @retval ZARR_ERR_IO a plug-in cannot be loaded
 * @retval ZARR_ERR_ABI a plug-in has another ABI number, or a file is not a plug-in
 * @retval ZARR_ERR_EXISTS a plug-in registers a name that is taken
 * @see zarr_context_free(), zarr_limits_untrusted(), zarr_store_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_context_create(zarr_context **out,
                                                         const zarr_context_options *opts,
                                                         zarr_error *err);

/**
 * Counts the cores that this process may use. The result is the smaller of two numbers:
 * the cores of its affinity mask, and the quota of its control group, rounded up. The
 * library reads the quota at most once a second. The result is the default of
 * `zarr_context_options.max_threads`.
 *
 * @return at least 1
 */
ZARR_API uint32_t zarr_core_count(void);

/**
 * @name Owners of a context
 * @{
 */
/**
 * Adds an owner to a context.
 * @param ctx borrowed
 * @return `ctx`; the caller owns it once more
 */
ZARR_API zarr_context *zarr_context_ref(zarr_context *ctx);

/**
 * Gives up one ownership of a context. The last owner frees it. Stores, arrays and groups
 * own their context, too, so the program may free all of them in any order.
 * @param ctx may be NULL
 */
ZARR_API void zarr_context_free(zarr_context *ctx);
/** @} */

/**
 * @name The limits of a context
 * @{
 */
/**
 * Fills the first `out_bytes` bytes of `*out` as zarr_context_limits() does, for
 * languages other than C and C++.
 * @param ctx borrowed
 * @param out filled
 * @param out_bytes the size of the caller's struct
 */
ZARR_API void zarr_context_limits_sized(const zarr_context *ctx, zarr_limits *out,
                                        uint32_t out_bytes);
/**
 * Fills `*out` with the limits of a context, defaults included.
 * @param ctx borrowed
 * @param out filled
 * @see zarr_limits
 */
static inline void zarr_context_limits(const zarr_context *ctx, zarr_limits *out)
{
    zarr_context_limits_sized(ctx, out, sizeof *out);
}
/** @} */

/**
 * Frees what a context caches for later calls, such as buffers and idle memory of pools.
 * The next calls are slower.
 * @param ctx borrowed
 */
ZARR_API void zarr_context_trim(zarr_context *ctx);

/** Registries of a context. */
enum {
    ZARR_REGISTRY_DTYPE = 1,        /**< data types */
    ZARR_REGISTRY_CODEC = 2,        /**< codecs */
    ZARR_REGISTRY_CODEC_IMPL = 3,   /**< implementations of codecs */
    ZARR_REGISTRY_GRID = 4,         /**< chunk grids */
    ZARR_REGISTRY_KEY_ENCODING = 5, /**< encodings of chunk keys */
    ZARR_REGISTRY_STORE = 6,        /**< stores */
    ZARR_REGISTRY_MEMORY = 7,       /**< kinds of memory */
    ZARR_REGISTRY_PIPELINE = 8,     /**< pipelines */
    /** names that the library refuses on purpose; `detail` is the reason */
    ZARR_REGISTRY_REFUSED = 9,
    /** plug-ins that are loaded; `origin` is the file */
    ZARR_REGISTRY_PLUGIN = 10,
    /** devices, which the memory backends look up for each listing. A backend that fails
     * has one row, whose `detail` is the reason */
    ZARR_REGISTRY_DEVICE = 11
};

/** Flags of a zarr_registry_item. */
enum {
    /** not in Zarr's registry, or marked there as unstable */
    ZARR_ITEM_EXPERIMENTAL = 1,
    ZARR_ITEM_FAMILY = 2, /**< data types that differ by configuration */
    ZARR_ITEM_DEFAULT = 4 /**< pipeline: the one that the context uses */
};

/** One row of a registry. Its texts are borrowed for the call and never NULL. */
typedef struct zarr_registry_item {
    uint32_t struct_size, registry; /**< `registry`: one of ZARR_REGISTRY_* */
    /** such as "zstd", "cpu.libzstd", "float32" or "cuda:0" */
    const char *name;
    const char *origin;       /**< "core", or the name of the plug-in */
    const char *detail;       /**< one line, such as a priority or a reason; may be "" */
    uint32_t flags, reserved; /**< ZARR_ITEM_* */
    const char *v3;           /**< name in Zarr v3 metadata; "" if there is none */
    const char *v2;           /**< name in Zarr v2 metadata; "" if there is none */
    const char *aliases;      /**< other names that reads accept, separated by blanks */
    /** implementation: its codec; refused name: what it names, such as "codec"; device:
     * its memory backend; else "" */
    const char *of;
    /** implementation: some of these words, separated by blanks; else "". Flags: decode,
     * encode, batch, safe, deterministic, v2, v3. Functions that it has: partial,
     * strided, within. zarrc/plugin/codec_impl.h describes both */
    const char *capabilities;
    /** implementation: kinds of memory of the encoded and of the decoded side, bit d for
     * the device type d; else 0 */
    uint32_t in_kinds, out_kinds;
    /** implementation: its priority; memory and device: its device type; else 0 */
    int32_t priority, device_type;
    int32_t device_id, reserved_1; /**< device: its number; else 0 */
    /** device: size of its memory, and how much is free now; 0: not known */
    uint64_t total_bytes, free_bytes;
} zarr_registry_item;

/**
 * Lists what a context knows: data types, codecs, stores and so on. Rows come in the
 * order of registration.
 *
 * @param ctx borrowed
 * @param registry one of ZARR_REGISTRY_*; 0: all of them
 * @param fn called for each row; a non-zero return ends the listing. It may call the
 * library
 * @param user passed to `fn`
 * @return ZARR_OK, also when `fn` ended the listing
 * @retval ZARR_ERR_INVALID `registry` is not a registry
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_context_list(
    zarr_context *ctx, uint32_t registry,
    int (*fn)(void *user, const zarr_registry_item *item), void *user, zarr_error *err);

ZARR_END_DECLS

#endif
