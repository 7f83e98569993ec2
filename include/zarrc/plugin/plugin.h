/**
 * @file
 * Plug-ins, and how an application extends a context by its own data types, codecs, chunk
 * grids, stores, memories and pipelines. Stable for each plug-in ABI number. The library
 * registers what it has built in through the same tables.
 *
 * A plug-in is a shared library that exports one function, zarr_plugin_v1(). It does not
 * link to libzarrc: everything that it calls is in the table `zarr_host`. Compile it
 * against these headers with -shared -fPIC, and load it by
 * `zarr_context_options.plugins`, zarr_context_load(), the environment variable
 * ZARRC_PLUGINS or the option --plugin of zarrc. The library looks for plug-ins
 * nowhere else, and starts no other process.
 */
#ifndef ZARRC_PLUGIN_PLUGIN_H
#define ZARRC_PLUGIN_PLUGIN_H

#include <zarrc/context.h>
#include <zarrc/plugin/codec.h>
#include <zarrc/plugin/codec_impl.h>
#include <zarrc/plugin/dtype.h>
#include <zarrc/plugin/grid.h>
#include <zarrc/plugin/memory.h>
#include <zarrc/plugin/pipeline.h>
#include <zarrc/plugin/store.h>
#include <zarrc/store.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/**
 * @name Extend a context
 * These calls register functions of the application, before the registries are sealed
 * (zarr_context_create()). `vtable` is a table of functions, which the header of its type
 * describes. The table is copied; the functions and texts that it points to must outlive
 * the context. `origin` names who registers, and zarr_context_list() shows it.
 *
 * @retval ZARR_ERR_EXISTS a name in the table is taken, by the library or by another
 * origin; the message names both
 * @retval ZARR_ERR_INVALID the table lacks what is required, or the registries are sealed
 * @retval ZARR_ERR_ABI the size of the table does not fit
 * @{
 */
/** Registers a data type (zarrc/plugin/dtype.h). */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_context_register_dtype(zarr_context *ctx, const zarr_dtype_vtable *vtable,
                            const char *origin, zarr_error *err);
/** Registers what a codec means (zarrc/plugin/codec.h). */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_context_register_codec_spec(zarr_context *ctx, const zarr_codec_spec_vtable *vtable,
                                 const char *origin, zarr_error *err);
/** Registers an implementation of a codec (zarrc/plugin/codec_impl.h). */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_context_register_codec_impl(zarr_context *ctx, const zarr_codec_impl_vtable *vtable,
                                 const char *origin, zarr_error *err);
/** Registers a chunk grid (zarrc/plugin/grid.h). */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_context_register_grid(zarr_context *ctx, const zarr_grid_vtable *vtable,
                           const char *origin, zarr_error *err);
/** Registers an encoding of chunk keys (zarrc/plugin/grid.h). */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_context_register_key_encoding(
    zarr_context *ctx, const zarr_key_encoding_vtable *vtable, const char *origin,
    zarr_error *err);
/** Registers a store (zarrc/plugin/store.h). Its name becomes a scheme of URLs. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_context_register_store(zarr_context *ctx, const zarr_store_vtable *vtable,
                            const char *origin, zarr_error *err);
/**
 * Registers a kind of memory (zarrc/plugin/memory.h). `self` is passed to each function,
 * and to `close` of the table when the context ends.
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_context_register_memory(zarr_context *ctx, const zarr_memory_vtable *vtable,
                             void *self, const char *origin, zarr_error *err);

/**
 * Registers a pipeline (zarrc/plugin/pipeline.h). `self` is passed to `read` and `write`,
 * and to `close` of the table when the context ends.
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_context_register_pipeline(zarr_context *ctx, const zarr_pipeline_vtable *vtable,
                               void *self, const char *origin, zarr_error *err);
/** @} */

/* ---- plug-ins ------------------------------------------------------------- */

/** The plug-in ABI number: part of the name zarr_plugin_v1, and `zarr_plugin.abi`. */
#define ZARR_PLUGIN_ABI 1

/** Does item `i` of zarr_host.parallel. `worker` is the number of the thread, below
 * `max_threads`. */
typedef zarr_status (*zarr_parallel_fn)(void *arg, uint64_t i, uint32_t worker,
                                        zarr_error *err);

/**
 * What the library gives to plug-ins. The table is static: a plug-in may keep the
 * pointer. It grows at its end only: a plug-in that also runs with older libraries checks
 * `struct_size` before it uses a newer entry. Entries whose names begin with `spec_`,
 * `runner_`, `next_`, `dtype_` and `store_` are public functions: `spec_i64` is
 * zarr_codec_spec_i64(), `runner_open` is zarr_codec_runner_open(), `next_open` is
 * zarr_codec_next_open(), `dtype_name` is zarr_dtype_name(), `store_run` is
 * zarr_store_run(). Thread class: frozen.
 */
typedef struct zarr_host {
    uint32_t struct_size, abi; /**< abi: ZARR_PLUGIN_ABI */
    const char *version;       /**< zarr_version() */

    /** Fills `err`, which may be NULL, with a status and one line of text, formatted as
     * printf() does. Returns `status`. */
    zarr_status (*fail)(zarr_error *err, zarr_status status, const char *fmt, ...)
        ZARR_PRINTF(3, 4);
    /** Does the same, and appends the text of an errno. */
    zarr_status (*fail_os)(zarr_error *err, zarr_status status, int os_code,
                           const char *fmt, ...) ZARR_PRINTF(4, 5);
    /** Writes a line to the context's log. `level`: one of ZARR_LOG_*. */
    void (*log)(zarr_context *ctx, uint32_t level, const char *fmt, ...)
        ZARR_PRINTF(3, 4);

    /** Allocates host memory by the context's allocator; owned: `free`. Returns NULL if
     * there is no memory. */
    void *(*alloc)(zarr_context *ctx, size_t bytes);
    void (*free)(zarr_context *ctx, void *block);

    /** Registrations, only in load(). Their origin is the plug-in's name. */
    zarr_status (*register_dtype)(zarr_context *ctx, const zarr_dtype_vtable *vtable,
                                  zarr_error *err);
    zarr_status (*register_codec_spec)(zarr_context *ctx,
                                       const zarr_codec_spec_vtable *vtable,
                                       zarr_error *err);
    zarr_status (*register_codec_impl)(zarr_context *ctx,
                                       const zarr_codec_impl_vtable *vtable,
                                       zarr_error *err);
    zarr_status (*register_grid)(zarr_context *ctx, const zarr_grid_vtable *vtable,
                                 zarr_error *err);
    zarr_status (*register_key_encoding)(zarr_context *ctx,
                                         const zarr_key_encoding_vtable *vtable,
                                         zarr_error *err);
    zarr_status (*register_store)(zarr_context *ctx, const zarr_store_vtable *vtable,
                                  zarr_error *err);
    zarr_status (*register_memory)(zarr_context *ctx, const zarr_memory_vtable *vtable,
                                   void *self, zarr_error *err);
    zarr_status (*register_pipeline)(zarr_context *ctx,
                                     const zarr_pipeline_vtable *vtable, void *self,
                                     zarr_error *err);

    /** The configuration of a codec. */
    const char *(*spec_name)(const zarr_codec_spec *spec);
    const char *(*spec_json)(const zarr_codec_spec *spec);
    int (*spec_i64)(const zarr_codec_spec *spec, const char *member, int64_t *out);
    int (*spec_f64)(const zarr_codec_spec *spec, const char *member, double *out);
    int (*spec_bool)(const zarr_codec_spec *spec, const char *member, int *out);
    const char *(*spec_text)(const zarr_codec_spec *spec, const char *member);
    int64_t (*spec_i64s)(const zarr_codec_spec *spec, const char *member, int64_t *out,
                         uint64_t cap);
    const char *(*spec_member)(const zarr_codec_spec *spec, uint64_t i);
    const zarr_allocator *(*spec_allocator)(const zarr_codec_spec *spec);
    zarr_status (*spec_dtype)(const zarr_dtype **out, const zarr_codec_spec *spec,
                              const char *name, zarr_error *err);

    /** Data types. */
    const char *(*dtype_name)(const zarr_dtype *dtype);
    uint32_t (*dtype_kind)(const zarr_dtype *dtype);
    uint64_t (*dtype_item_bytes)(const zarr_dtype *dtype);
    uint64_t (*dtype_item_bits)(const zarr_dtype *dtype);

    /** Other stores, for a store that wraps one. Call these functions from
     * zarr_store_vtable.open() on, never in load(): opening a store seals the context. */
    zarr_status (*store_open)(zarr_store **out, zarr_context *ctx, const char *url,
                              const zarr_store_options *opts, zarr_error *err);
    zarr_status (*store_flush)(zarr_store *store, const zarr_cancel *cancel,
                               zarr_error *err);
    void (*store_free)(zarr_store *store);
    zarr_status (*store_list)(zarr_store *store, const char *prefix, uint32_t how,
                              zarr_store_list_fn fn, void *user,
                              const zarr_cancel *cancel, zarr_error *err);

    /**
     * Calls `fn` for each `i` below `n` on threads of the library and on this one, on
     * `max_threads` at most; 0: one for each core. After a failure no further calls
     * begin. Returns the failure with the lowest `i`.
     */
    zarr_status (*parallel)(uint64_t n, uint32_t max_threads, zarr_parallel_fn fn,
                            void *arg, zarr_error *err);

    /** Chains of codecs in the configuration of a codec, and how to run them. */
    const char *(*spec_chain_json)(const zarr_codec_spec *spec, const char *member);
    int64_t (*spec_chain_codecs)(const zarr_codec_spec *spec, const char *member,
                                 int *array);
    zarr_status (*spec_chain_resolve)(const zarr_codec_spec *spec, const char *member,
                                      const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                      zarr_error *err);
    zarr_status (*runner_open)(zarr_codec_runner **out, const zarr_codec_spec *spec,
                               const char *member, const zarr_chunk_spec *decoded,
                               zarr_error *err);
    zarr_status (*runner_decode)(const zarr_codec_runner *runner, zarr_codec_exec *exec,
                                 const zarr_memory *src, zarr_memory *dst,
                                 zarr_error *err);
    zarr_status (*runner_encode)(const zarr_codec_runner *runner, zarr_codec_exec *exec,
                                 const zarr_memory *src, zarr_memory *dst,
                                 zarr_error *err);
    void (*runner_close)(zarr_codec_runner *runner);

    /** Operations of the store that store_open() opened. */
    zarr_status (*store_run)(zarr_store *store, zarr_store_op *op, zarr_error *err);
    zarr_status (*store_lock)(void **lock, zarr_store *store, const char *key,
                              const zarr_cancel *cancel, zarr_error *err);
    void (*store_unlock)(zarr_store *store, void *lock);
    void (*store_capabilities)(const zarr_store *store, zarr_store_caps *out);
    zarr_status (*store_erase_prefix)(zarr_store *store, const char *prefix,
                                      const zarr_cancel *cancel, zarr_error *err);

    /**
     * Options that the application has for this plug-in
     * (zarr_context_options.plugin_options), only in load(). Each function returns 1 and
     * sets `*out` if the option is given, else 0 and leaves `*out` alone; option_text()
     * returns the text or NULL, borrowed as long as the context. load() asks for every
     * option that the plug-in has: loading fails if an option is given that load() did
     * not ask for, or that has another type.
     */
    int (*option_i64)(zarr_context *ctx, const char *name, int64_t *out);
    int (*option_f64)(zarr_context *ctx, const char *name, double *out);
    int (*option_bool)(zarr_context *ctx, const char *name, int *out);
    const char *(*option_text)(zarr_context *ctx, const char *name);

    /** More operations of such a store. */
    void (*store_submit)(zarr_store *store, zarr_store_op **ops, uint64_t n,
                         void (*done)(void *arg, zarr_store_op *op,
                                      const zarr_error *err),
                         void *arg);
    void (*store_cancel)(zarr_store *store, void *arg);
    void (*store_tell_place)(const zarr_store *store, zarr_store_place_fn fn, void *user);
    void (*store_read_counters)(const zarr_store *store, zarr_store_counters *out);

    /** The next implementation of a codec, for an implementation that wraps it. */
    zarr_status (*next_open)(zarr_codec_next **out, const zarr_codec_binding *to,
                             zarr_error *err);
    const char *(*next_name)(const zarr_codec_next *next);
    uint64_t (*next_scratch)(const zarr_codec_next *next, uint64_t n, uint64_t max_out);
    zarr_status (*next_run)(const zarr_codec_next *next, zarr_codec_exec *exec,
                            zarr_codec_job *jobs, uint64_t n, zarr_error *err);
    void (*next_close)(zarr_codec_next *next);
} zarr_host;

/** Describes a plug-in. The struct and its texts are static. */
typedef struct zarr_plugin {
    uint32_t struct_size, abi; /**< `abi`: ZARR_PLUGIN_ABI of the headers */
    const char *name; /**< one word, such as "acme"; origin of what it registers */
    const char *version, *license; /**< such as "1.0" and "MIT"; NULL: not told */
    /**
     * Registers what the plug-in has. Called once for each context that loads the
     * plug-in. `*self`, which may stay NULL, is passed to unload(). A load() that fails
     * fills `err` and frees what it made, except what it registered.
     */
    zarr_status (*load)(const zarr_host *host, zarr_context *ctx, void **self,
                        zarr_error *err);
    /** Called when the context ends and nothing that was registered is in use any more;
     * cannot fail. Plug-ins of one context are unloaded in reverse order. The file stays
     * mapped until the process ends, so that destructors of threads can still run; static
     * data keeps its values for the next context. NULL: nothing to do. */
    void (*unload)(void *self);
} zarr_plugin;

/** Type of zarr_plugin_v1(). */
typedef const zarr_plugin *(*zarr_plugin_fn)(void);

/** Makes a function of a plug-in visible to the library, whatever -fvisibility says. */
#if defined(_WIN32)
#    define ZARR_PLUGIN_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#    define ZARR_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#    define ZARR_PLUGIN_EXPORT
#endif

/**
 * The one symbol of a plug-in. The plug-in defines it and returns the address of its
 * zarr_plugin; the declaration here gives it this name in C++, too. The library does not
 * define it. A later ABI has another name, and a plug-in may export both.
 * @return static; called once for each context that loads the plug-in
 */
ZARR_PLUGIN_EXPORT const zarr_plugin *zarr_plugin_v1(void);

/**
 * Loads a plug-in into a context, before its registries are sealed. A file
 * that the context has loaded already is accepted. After a failure, what the plug-in had
 * registered stays registered, and the file stays mapped: free the context.
 *
 * @param ctx borrowed
 * @param path path of the shared library. No directories are searched; a relative path
 * begins at the working directory
 * @return ZARR_OK, one of the codes below, or what the plug-in's own function returns.
 * The message names the path
 * @retval ZARR_ERR_NOT_FOUND there is no such file
 * @retval ZARR_ERR_IO the file cannot be loaded
 * @retval ZARR_ERR_ABI the file is not a plug-in, or has another ABI number
 * @retval ZARR_ERR_EXISTS the name of the plug-in, or one that it registers, is taken;
 * the message tells by whom
 * @retval ZARR_ERR_INVALID the registries are sealed
 * @see zarr_context_create(), zarr_context_register_dtype()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_context_load(zarr_context *ctx,
                                                       const char *path, zarr_error *err);

ZARR_END_DECLS

#endif
