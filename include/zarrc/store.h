/**
 * @file
 * Stores: open one, and ask what it can do. A store keeps values under keys;
 * zarrc/objects.h has the calls for them. A block is a value that holds elements: a
 * shard, or a chunk of an array without shards. Thread class of a store: shared.
 */
#ifndef ZARRC_STORE_H
#define ZARRC_STORE_H

#include <zarrc/base.h>
#include <zarrc/context.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

struct zarr_store_vtable; /* zarrc/plugin/store.h */

/**
 * What a local store keeps after a loss of power or a crash of the system. Data always
 * survives the end of the process. The default is ZARR_DURABILITY_COMMIT.
 */
enum {
    /** nothing is guaranteed: an object may be empty or truncated */
    ZARR_DURABILITY_NONE = 1,
    /** everything that was written before the last zarr_store_flush(). After later
     * writes, a metadata document holds its old or its new value. A block may also be
     * empty or truncated. A read of it fails with ZARR_ERR_CORRUPT if a codec can detect
     * the damage */
    ZARR_DURABILITY_COMMIT = 2,
    /** as ZARR_DURABILITY_COMMIT, but blocks also hold their old or their new value.
     * Every write waits for the disk */
    ZARR_DURABILITY_ORDERED = 3,
    /** everything that a call wrote, once the call has returned. Each object holds its
     * old or its new value. Every write waits for the disk twice */
    ZARR_DURABILITY_EACH = 4
};

/** How a local store locks a key that is written. 0: as the environment variable
 * ZARRC_LOCKS says ("os" or "none"), else ZARR_LOCKS_OS. */
enum {
    /** with a lock on the file `<key>.__lock`, between threads and between processes. A
     * write fails with ZARR_ERR_UNSUPPORTED if the file system has neither open file
     * description locks nor flock(2) */
    ZARR_LOCKS_OS = 1,
    /** not at all: the application must make sure that each key has one writer at a time.
     * The store still replaces values atomically */
    ZARR_LOCKS_NONE = 2
};

/** Whether a local store follows symbolic links. 0: as the environment variable
 * ZARRC_SYMLINKS says ("within", "deny" or "follow"), else ZARR_SYMLINKS_WITHIN. */
enum {
    /** if they stay below the root of the store, or below the root of the hierarchy that
     * the store is a part of. The store finds the root of the hierarchy in its own path,
     * by the rules of zarr_location_parse(). So reads and writes of the store can follow
     * a link into the rest of the hierarchy. ZARR_SYMLINKS_DENY prevents that */
    ZARR_SYMLINKS_WITHIN = 1,
    ZARR_SYMLINKS_DENY = 2,  /**< never */
    ZARR_SYMLINKS_FOLLOW = 3 /**< always */
};

/** Options of zarr_store_open() and zarr_store_open_custom(). */
typedef struct zarr_store_options {
    uint32_t struct_size, flags; /**< `flags`: ZARR_STORE_* */
    /** local stores: one of ZARR_DURABILITY_*, of ZARR_LOCKS_* and of ZARR_SYMLINKS_*
     */
    uint32_t durability, locks, symlinks, reserved;
    /** memory stores: the memory that holds all values but metadata documents, as in
     * `zarr_memory`; 0: host memory */
    int32_t device_type, device_id;
    /** name of the kind of store, as it was registered; NULL: the URL decides */
    const char *kind;
    /** maximum time that a write waits for other writers of its key, in milliseconds; 0:
     * no limit. After that time the write fails with ZARR_ERR_IO and `os_code` ETIMEDOUT
     * if another writer holds the lock of the key. It fails with ZARR_ERR_CONFLICT if
     * other writers changed the key during every try. A wait of 10 s logs a warning that
     * names the key. Stores with their own locks may ignore this member */
    uint32_t lock_wait_ms, reserved_1;
    /** JSON object with options of one kind of store, such as credentials; borrowed for
     * the call. The library keeps no copy of it. An unknown name is an error that lists
     * the known ones. NULL: none
     *
     * - A local store has the options "durability", "lock_wait_ms", "locks" and
     *   "symlinks", as in {"locks": "none", "lock_wait_ms": 500}. They override the
     *   members of these names.
     * - A zip archive has the options "zip_update" and "zip_form". zarr_store_open()
     *   passes the others to the store that holds the archive.
     * - The function `open` of a registered store gets the text. */
    const char *config;
    /** default memory for arrays whose chunks are in this store, as in
     * `zarr_context_options`; 0: that of the context, or in a composite store that of the
     * chunk store */
    int32_t tensor_device_type, tensor_device_id;
    /** ends zarr_store_open() with ZARR_ERR_CANCELLED once it is set, if the kind of
     * store supports that; borrowed for the call. NULL: never */
    const zarr_cancel *cancel;
} zarr_store_options;

#define ZARR_STORE_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_store_options)

/** What a store can do. */
enum {
    ZARR_STORE_CAP_RANGES = 1, /**< GET with `offset` and `length` */
    ZARR_STORE_CAP_SUFFIX = 2, /**< GET of the last bytes in one operation */
    ZARR_STORE_CAP_LIST = 4,   /**< list() */
    ZARR_STORE_CAP_WRITE = 8,  /**< PUT and ERASE */
    /** a reader sees the value before a PUT or that after it, never a mix */
    ZARR_STORE_CAP_ATOMIC_PUT = 16,
    /** lock() and unlock() exclude all other writers that use them */
    ZARR_STORE_CAP_LOCK = 32,
    /** values have versions, and a GET obeys ZARR_STORE_OP_IF_VERSION */
    ZARR_STORE_CAP_VERSIONS = 64,
    /** a GET takes microseconds: the thread that decodes a chunk also fetches it */
    ZARR_STORE_CAP_FAST_GET = 128,
    /** no value changes or disappears while the store is open, so the library does not
     * check whether an open array was moved or deleted */
    ZARR_STORE_CAP_IMMUTABLE = 256,
    /** a PUT with ZARR_STORE_OP_IF_VERSION and a version of zeros: it fails if the key is
     * there */
    ZARR_STORE_CAP_PUT_NEW = 512,
    /** with ZARR_STORE_CAP_LOCK: a PUT or ERASE without ZARR_STORE_OP_LOCKED waits for
     * the holder of its key's lock */
    ZARR_STORE_CAP_WRITES_WAIT = 1024,
    /** a PUT with ZARR_STORE_OP_IF_VERSION. Needs ZARR_STORE_CAP_VERSIONS and
     * ZARR_STORE_CAP_PUT_NEW. Without ZARR_STORE_CAP_LOCK, the library uses it in place
     * of locks: if another writer changed a value, the library repeats the write */
    ZARR_STORE_CAP_PUT_IF_VERSION = 2048,
    /** an ERASE with ZARR_STORE_OP_IF_VERSION. Needs ZARR_STORE_CAP_VERSIONS. A store
     * with ZARR_STORE_CAP_PUT_IF_VERSION needs this or ZARR_STORE_CAP_LOCK to erase
     * safely. With neither, a write of a part of a block never erases the block, but
     * stores it even if all its elements equal the fill value */
    ZARR_STORE_CAP_ERASE_IF_VERSION = 4096,
    /** values can be written in parts: begin_parts(). Without it, a whole value is in
     * memory while it is written */
    ZARR_STORE_CAP_PARTS = 16384,
    /** a COPY of a value in the same store, or in another store of the same kind. Without
     * it the library does a GET and a PUT */
    ZARR_STORE_CAP_COPY = 32768,
    /** submit() merges near ranges of a value into one request, so the library does not
     */
    ZARR_STORE_CAP_COALESCES = 8192,
    /** with ZARR_STORE_CAP_PARTS: a GET with ZARR_STORE_OP_IN_PARTS reads parts before
     * their commit. Other readers see them only after it */
    ZARR_STORE_CAP_READ_PARTS = 65536,
    /** a value can grow, or lose its end, in place: ZARR_STORE_APPEND */
    ZARR_STORE_CAP_APPEND = 131072,
    /** with ZARR_STORE_CAP_PARTS: a COPY with ZARR_STORE_OP_IN_PARTS. Without it the
     * library does a GET and a ZARR_STORE_PUT_PART */
    ZARR_STORE_CAP_COPY_PARTS = 262144,
    /** values become visible at the next flush, all of them together. A flush may send
     * all data, so flush once, after the last write */
    ZARR_STORE_CAP_ATOMIC_FLUSH = 524288
};

/** What a store can do, as zarr_store_capabilities() and the table of a store report. */
typedef struct zarr_store_caps {
    uint32_t struct_size, flags; /**< `flags`: ZARR_STORE_CAP_* */
    /** kinds of memory that operations can use: ZARR_DEVICE_*; NULL: only host memory */
    const int32_t *device_types;
    uint32_t n_device_types; /**< how many `device_types` there are */
    uint32_t parallel;       /**< operations to run at once; 0: one for each core */
    /** name of the store's kind, such as "local". Only the library sets it */
    const char *kind;
    /** the ZARR_STORE_CAP_* for metadata and for chunks. In a composite store: `flags` of
     * its metadata store and of its chunk store. In other stores both equal `flags`. Only
     * the library sets them */
    uint32_t metadata_flags, chunk_flags;
    /** with ZARR_STORE_CAP_PARTS: the least bytes of a part that is not the last one, and
     * the most parts of a value; 0: any number */
    uint64_t part_min_bytes, parts_max;
} zarr_store_caps;

#define ZARR_STORE_CAPS_INIT ZARR_SIZE_FIRST(zarr_store_caps)

/**
 * Where the keys of a store are. Before use, strip the slashes at both ends of `prefix`.
 * Then the name of a value in the bucket of the endpoint is `prefix`, a slash and the
 * key. Two stores with equal places have the same keys. A member that means nothing for a
 * store is NULL or "". No member has a credential.
 */
typedef struct zarr_store_place {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    const char *scheme;          /**< such as "https", "s3", or "file" */
    const char *endpoint;        /**< the host, with a port if it is not the usual one */
    const char *bucket;          /**< or container */
    const char *prefix;          /**< without escapes */
} zarr_store_place;

/** Gets a place, whose texts are valid during the call. */
typedef void (*zarr_store_place_fn)(void *user, const zarr_store_place *place);

/** What a store has sent and received since it was opened, and what it wastes. */
typedef struct zarr_store_counters {
    uint32_t struct_size, flags;
    uint64_t requests;   /**< requests, repeated ones included */
    uint64_t retries;    /**< requests that repeated one that failed */
    uint64_t bytes_sent; /**< bytes of headers and bodies that were sent, before TLS */
    uint64_t bytes_received; /**< bytes of headers and bodies of answers, after TLS */
    /** in an archive: replaced and erased values whose bytes are still there */
    uint64_t dead_values;
    /** in an archive: bytes that no value uses, those of `dead_values` included */
    uint64_t dead_bytes;
} zarr_store_counters;

#define ZARR_STORE_COUNTERS_INIT ZARR_SIZE_FIRST(zarr_store_counters)

/** Flags of zarr_store_options. */
enum {
    ZARR_STORE_READ_ONLY = 1, /**< refuse to write, with ZARR_ERR_INVALID */
    /** local stores: create the root directory if it is missing; archives: create the
     * archive */
    ZARR_STORE_CREATE = 2
};

/**
 * Opens a store by its URL.
 *
 * - A path, "file://path", "file:/path" or "local://path" is a local directory, in which
 *   each key is a file.
 * - "memory:" is a new, empty store in memory.
 * - "zip:path", and a path that ends in ".zip" or ".ozx" and is no directory, is a zip
 *   archive. With ZARR_STORE_CREATE the archive may be missing. zarr_store_open_zip()
 *   says when a new archive appears.
 * - "gds:path", or `kind` "gds" with a path, is a local directory. If a plug-in supports
 *   it, chunks move directly between files and memory of devices. Otherwise the log gets
 *   a warning. `device_types` of zarr_store_capabilities() tells whether chunks move
 *   directly.
 * - "https://...", "http://..." and "s3://..." are the files of a web server and the
 *   objects of a bucket.
 * - "NAME:..." opens the store that the application or a plug-in has registered as NAME.
 *
 * A reader of a local store finds the old value of a key or the new one, even if the
 * writer was killed. The call seals the registries of the context
 * (zarr_context_create()).
 *
 * Spec: Zarr v3 core, "Stores" and "Abstract store interface".
 *
 * @param out receives the store; owned: zarr_store_free()
 * @param ctx borrowed; the store keeps it alive
 * @param url path or URL
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND the local directory is missing, and ZARR_STORE_CREATE is not
 * set
 * @retval ZARR_ERR_INVALID the path is a file of unknown format, or an option is wrong
 * @retval ZARR_ERR_UNSUPPORTED no store is registered for `kind`, or for NAME in
 * "NAME:..."; or the path is a file of a format that the message names
 * @retval ZARR_ERR_IO the directory cannot be opened or created
 * @see zarr_array_open(), zarr_group_open(), zarr_store_flush(), zarr_store_list()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_open(zarr_store **out, zarr_context *ctx,
                                                     const char *url,
                                                     const zarr_store_options *opts,
                                                     zarr_error *err);

/** The parts of a text that names a node. */
typedef struct zarr_location {
    uint32_t struct_size;
    uint32_t is_local;     /**< 1: `url` is the path of a local directory, no archive */
    const char *url;       /**< of the store, for zarr_store_open() */
    const char *path;      /**< of the node in the store; "": the root */
    const char *selection; /**< for zarr_selection_parse(); NULL: there is none */
    /** `url` for messages, as zarr_url_show() writes it */
    const char *shown;
} zarr_location;

/**
 * Parses a location: a text that names a store, a node and a selection. The operands of
 * the program zarrc are locations:
 *
 *     PATH | file://PATH | STORE:/NODE | SCHEME:REST | SCHEME://HOST/PATH?QUERY
 *
 * The query may be missing. Each form may end with a selection in brackets. The last ":/"
 * separates a store from a node, as in "x.zarr:/a/b[0:10]"; that of "https://" does not
 * count. Without such a ":/", the call searches the text for the root of the store. The
 * node is what follows the root.
 *
 * - In "zip:PATH" the root is the first part of PATH that is a file.
 * - In another PATH, the root is a part that ends in ".zip" or ".ozx" and is no
 *   directory. Without such a part, the call begins with the deepest folder on the path
 *   that is a node, and goes up while the folder above is also a node. If no folder is a
 *   node, the root is the first folder called "*.zarr", else the path itself.
 * - In "SCHEME://HOST/PATH" the root is the first part of the path that ends in ".zarr",
 *   ".zip" or ".ozx". Without such a part, the whole URL is the root. Escapes such as
 *   "%20" in the node are decoded. The query belongs to the root:
 *   "https://host/x.zarr/a?key=1" is the node "a" of "https://host/x.zarr?key=1".
 *
 * SCHEME is the name of a registered store; REST may end in ":/NODE". But if there is a
 * file or a folder called SCHEME, "SCHEME:/a" with one slash is the node "a" of the store
 * in it. If the text with its brackets names a file, it has no selection.
 *
 * The call looks for files and folders, but opens none and sends no request. It seals the
 * registries of the context.
 *
 * @param out receives the location; owned: zarr_location_free()
 * @param ctx borrowed; the location keeps it alive
 * @param text the text
 * @retval ZARR_ERR_INVALID the text is empty, or its node has a malformed escape
 * @see zarr_store_open(), zarr_node_probe(), zarr_selection_parse()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_location_parse(zarr_location **out,
                                                         zarr_context *ctx,
                                                         const char *text,
                                                         zarr_error *err);
/**
 * Frees a location and its texts.
 * @param location may be NULL
 */
ZARR_API void zarr_location_free(zarr_location *location);

/**
 * Makes a store from functions of the application. zarrc/plugin/store.h describes the
 * table of functions. The call seals the registries of the context.
 *
 * @param out receives the store; owned: zarr_store_free()
 * @param ctx borrowed; the store keeps it alive
 * @param vtable the functions; copied. The library calls them from any thread
 * @param self passed to each function; moved: the function `close` of the table gets it
 * when the store is freed, or when this call fails
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_INVALID a function that is required is missing
 * @retval ZARR_ERR_ABI the size of the table does not fit
 * @see zarr_store_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_open_custom(
    zarr_store **out, zarr_context *ctx, const struct zarr_store_vtable *vtable,
    void *self, const zarr_store_options *opts, zarr_error *err);

/**
 * Makes a composite store from two stores: one for metadata, one for chunks. The metadata
 * store has the keys whose last part is "zarr.json", ".zarray", ".zgroup", ".zattrs" or
 * ".zmetadata", and the library's own records about a node. The chunk store has all other
 * keys. A key in the wrong store is ignored.
 *
 * A listing has the keys of both stores. Moving a node is atomic only if all its keys are
 * in one of the two stores. Writes of elements use the locks of the chunk store, and
 * changes of documents those of the metadata store. zarr_store_open() cannot open the URL
 * of a composite store.
 *
 * zarr_store_capabilities() of a composite store tells `device_types` and `parallel` of
 * the chunk store. Its `flags` for locks, versions and conditional writes are those of
 * the metadata store. ZARR_STORE_CAP_COALESCES and ZARR_STORE_CAP_ATOMIC_FLUSH are never
 * set. Any other flag is set if both stores have it.
 *
 * @param out receives the store; owned: zarr_store_free()
 * @param metadata_store,chunk_store borrowed; the composite store keeps them alive
 * @param opts options, of which only the flag ZARR_STORE_READ_ONLY and the default memory
 * may be set; NULL: defaults
 * @retval ZARR_ERR_INVALID a store is NULL or composite, both are the same or have
 * different contexts, or `opts` sets another option
 * @see zarr_store_open(), zarr_array_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_open_composite(
    zarr_store **out, zarr_store *metadata_store, zarr_store *chunk_store,
    const zarr_store_options *opts, zarr_error *err);

/**
 * Opens a zip archive that is the value of one key of a store, as a store of its members.
 * zarr_store_open() opens an archive in a file.
 *
 * If all members are below one folder that holds a metadata document, that folder is the
 * root of the store. A member whose name cannot be a key is ignored, and the log gets a
 * warning.
 *
 * A member without compression can be read in ranges. A member compressed with deflate or
 * zstd is decoded whole. A read of a whole member checks its CRC-32. Reads of a member
 * fail if it is encrypted, has another compression, or has wrong headers.
 *
 * If `store` has ZARR_STORE_CAP_WRITE and ZARR_STORE_CAP_READ_PARTS, the archive can be
 * written. Values become members without compression. The first write takes the lock of
 * `key`. A flush writes the archive's directory of members and releases the lock. During
 * many writes without a flush, the library does both about every 10 s. In a pause of half
 * a second or more it also does both; if that fails, it tries again later. Freeing the
 * store does both, but only logs errors. A new archive appears when its directory of
 * members is first written. If the process is killed, values written after the last
 * directory are lost. Opening an archive may have to wait for another writer: at most
 * `lock_wait_ms` of `store`, or until `cancel` is set.
 *
 * Between the first write and the flush, other programs may refuse the archive. A child
 * process that is forked between the two cannot write. With the option {"zip_update":
 * "copy"}, or if `store` lacks ZARR_STORE_CAP_APPEND, each flush replaces the whole
 * archive in one step. zarr_store_repack() removes the bytes of replaced values.
 *
 * If `store` has ZARR_STORE_CAP_PARTS without ZARR_STORE_CAP_READ_PARTS, only a new
 * archive can be written. It is kept in a temporary file in the folder TMPDIR. Each flush
 * sends all of it, and so does freeing the store.
 *
 * Archives called "*.ozx" get the form "ozx", that of single-file OME-Zarr (RFC-9 of
 * OME-NGFF). The option "zip_form" sets the form: "ozx" or "plain". In the form "ozx" the
 * directory has the records of zip64. It lists every "zarr.json" first, from the root
 * down, and then the other members. In the file, members are in the order of the writes.
 * zarr_store_repack() puts them into the order of the directory. With the option
 * {"zip_form": "ozx"}, each flush does so, too. Without the option, only one flush does
 * so: the first one that finds a complete hierarchy in a new "*.ozx".
 *
 * If another program changes the archive, a writable store reads the directory again. In
 * a read-only store, each read then fails with ZARR_ERR_IO.
 *
 * @param out receives the store of the members; owned: zarr_store_free()
 * @param store borrowed; the new store keeps it alive
 * @param key key of the archive; copied
 * @param opts options: flags, `cancel`, the default memory, `config` with "zip_update"
 * and "zip_form", and no others; NULL: defaults. With ZARR_STORE_CREATE the key may be
 * missing
 * @retval ZARR_ERR_NOT_FOUND there is no such key, and ZARR_STORE_CREATE is not set
 * @retval ZARR_ERR_CORRUPT the value is no zip archive, or its directory is damaged
 * @retval ZARR_ERR_UNSUPPORTED the archive has several parts; or ZARR_STORE_CREATE is
 * set, there is no such key, and `store` cannot hold a new archive
 * @retval ZARR_ERR_LIMIT there are more members than `zarr_limits.listing_keys`
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_store_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_open_zip(zarr_store **out,
                                                         zarr_store *store,
                                                         const char *key,
                                                         const zarr_store_options *opts,
                                                         zarr_error *err);

/**
 * @name Owners of a store
 * @{
 */
/**
 * Adds an owner to a store.
 * @param store borrowed
 * @return `store`; the caller owns it once more
 */
ZARR_API zarr_store *zarr_store_ref(zarr_store *store);
/**
 * Gives up one ownership of a store. The last owner frees the store, without a flush.
 * Only a zip archive is completed first (zarr_store_open_zip()).
 * @param store may be NULL
 */
ZARR_API void zarr_store_free(zarr_store *store);
/** @} */

/**
 * Makes everything that was written through a store survive a loss of power. Reports
 * errors of delayed writes. With ZARR_DURABILITY_NONE the call makes nothing durable. In
 * a zip archive it writes the directory all the same.
 * @param store borrowed
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_IO the data could not be made durable
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_flush(zarr_store *store,
                                                      const zarr_cancel *cancel,
                                                      zarr_error *err);

/**
 * Returns the context that a store was opened in.
 * @param store borrowed
 * @return borrowed from the store
 */
ZARR_API zarr_context *zarr_store_context(const zarr_store *store);

/**
 * Returns the URL or path that a store was opened with. It is written as by
 * zarr_url_show(), so zarr_store_open() may fail with it.
 * @param store borrowed
 * @return text that lives as long as the store
 */
ZARR_API const char *zarr_store_url(const zarr_store *store);

/**
 * Writes a URL as messages show it. User info is left out, and "***" is in place of the
 * values of query parameters and of a fragment. A text without a scheme, such as a path,
 * stays as it is.
 *
 * @param url the URL
 * @param text receives at most `cap` - 1 bytes and a NUL; may be NULL if `cap` is 0
 * @param cap the size of `text` in bytes
 * @return the length of the whole text without its NUL; 0 if the call cannot allocate
 * memory
 */
ZARR_API size_t zarr_url_show(const char *url, char *text, size_t cap);

/**
 * Tells what a store itself can do. The library emulates the rest where possible.
 *
 * @param store borrowed
 * @param out receives the capabilities, without ZARR_STORE_CAP_WRITE if the store is open
 * read-only. Its pointers live as long as the store. The caller sets `out->struct_size`
 * @see zarr_store_url()
 */
ZARR_API void zarr_store_capabilities(const zarr_store *store, zarr_store_caps *out);

/**
 * Tells where the keys of a store are. `fn` is called once, or not at all if the place is
 * not known. A composite store tells the place of its chunk store.
 *
 * @param store borrowed
 * @param fn called before this call returns
 * @param user passed to `fn`
 * @see zarr_store_overlap()
 */
ZARR_API void zarr_store_tell_place(const zarr_store *store, zarr_store_place_fn fn,
                                    void *user);

/**
 * Reads what a store has sent and received. A store without a network has zeros. A zip
 * archive has its own `dead_values` and `dead_bytes`, and the other numbers of the store
 * that holds it. A composite store has the sums of its two stores.
 *
 * @param store borrowed
 * @param out receives the numbers. The caller sets `out->struct_size`
 */
ZARR_API void zarr_store_read_counters(const zarr_store *store, zarr_store_counters *out);

ZARR_END_DECLS

#endif
