/**
 * @file
 * Objects of a store: read, written, listed and erased by their keys. Programs that use
 * arrays and groups need none of these calls.
 */
#ifndef ZARRC_OBJECTS_H
#define ZARRC_OBJECTS_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/**
 * Reads a value, or a part of it, into host memory.
 *
 * @param store borrowed
 * @param key key of the value
 * @param offset where the part begins, in bytes
 * @param data receives the bytes
 * @param bytes size of `data`; becomes the number of bytes that were read, which is less
 * at the end of the value
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_NOT_FOUND the store says that there is no such key
 * @retval ZARR_ERR_INVALID the key is invalid
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_store_put(), zarr_store_stat(), zarr_store_read()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_get(zarr_store *store, const char *key,
                                                    uint64_t offset, void *data,
                                                    uint64_t *bytes,
                                                    const zarr_cancel *cancel,
                                                    zarr_error *err);

/**
 * Writes a whole value. A reader sees the old or the new value if the store replaces
 * values atomically, as local and memory stores do.
 *
 * @param store borrowed
 * @param key key of the value
 * @param data the bytes; borrowed for the call
 * @param bytes how many bytes there are
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_INVALID the key is invalid, or the store is read-only
 * @retval ZARR_ERR_UNSUPPORTED the store cannot write
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_store_get(), zarr_store_flush()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_put(zarr_store *store, const char *key,
                                                    const void *data, uint64_t bytes,
                                                    const zarr_cancel *cancel,
                                                    zarr_error *err);

/**
 * Removes one key and its value.
 * @param store borrowed
 * @param key the key
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_NOT_FOUND there is no such key, unless the store cannot tell
 * @retval ZARR_ERR_INVALID the key is invalid, or the store is read-only
 * @retval ZARR_ERR_UNSUPPORTED the store cannot write
 * @retval ZARR_ERR_IO the store failed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_erase(zarr_store *store, const char *key,
                                                      const zarr_cancel *cancel,
                                                      zarr_error *err);

/**
 * Removes all keys below a prefix. A local store removes symbolic links, but not what
 * they lead to. To delete an array or group use zarr_node_delete().
 *
 * @param store borrowed
 * @param prefix "a" means all keys that begin with "a/"; "" means all keys of the store
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_INVALID the prefix is invalid, or the store is read-only
 * @retval ZARR_ERR_UNSUPPORTED the store cannot write, or cannot list
 * @retval ZARR_ERR_IO the store failed; some keys may be removed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_erase_prefix(zarr_store *store,
                                                             const char *prefix,
                                                             const zarr_cancel *cancel,
                                                             zarr_error *err);

/**
 * Tells whether two prefixes have keys in common. Call it before overwriting one with the
 * other.
 *
 * In local stores, the call compares directories, so spelling and symbolic links do not
 * matter. It does not follow links below the prefixes. Other stores are the same store if
 * they are one handle, share their functions and `self`, or have the same place
 * (zarr_store_place) or URL.
 *
 * @param store,prefix the first store and its prefix
 * @param other,other_prefix the second store, which may be the same, and its prefix
 * @param overlap becomes 1 if some keys are the same, else 0
 * @retval ZARR_ERR_INVALID a prefix is NULL
 * @retval ZARR_ERR_IO the file system failed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_overlap(zarr_store *store,
                                                        const char *prefix,
                                                        zarr_store *other,
                                                        const char *other_prefix,
                                                        int *overlap, zarr_error *err);

/**
 * The version of a value, such as an ETag, or an inode and a time. Only the store knows
 * what the bytes mean. All 64 bytes are compared. If a version is longer than 63 bytes,
 * the store puts a hash of it here.
 */
typedef struct zarr_store_version {
    /** the length of the version, at most 63; then the version; then zeros. 64 zeros:
     * there is no such key */
    unsigned char bytes[64];
} zarr_store_version;

/** `offset` of a GET of the last `length` bytes of a value. They begin at the start of
 * `mem`. */
#define ZARR_STORE_SUFFIX UINT64_MAX
/** `length` of a GET of all bytes from `offset` on. */
#define ZARR_STORE_TO_END UINT64_MAX

/** What zarr_store_stat(), zarr_store_read() and zarr_store_write() tell about a value.
 */
typedef struct zarr_store_value {
    uint32_t struct_size;
    uint32_t has_version; /**< 1: `version` is known; 0: the store has no versions */
    uint64_t bytes;       /**< length of the whole value; UINT64_MAX: not told */
    uint64_t done_bytes;  /**< bytes that were read or written */
    /** bytes that were copied from host memory to a device (up), or back (down) */
    uint64_t up_bytes, down_bytes;
    zarr_store_version version; /**< the version that was seen, read or written */
} zarr_store_value;

#define ZARR_STORE_VALUE_INIT ZARR_SIZE_FIRST(zarr_store_value)

/**
 * Tells whether a key exists. Also gives the length and the version of its value, without
 * reading it.
 *
 * @param store borrowed
 * @param key the key
 * @param out receives what is known; may be NULL
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_NOT_FOUND the store says that there is no such key
 * @retval ZARR_ERR_INVALID the key is invalid
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_store_read()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_stat(zarr_store *store, const char *key,
                                                     zarr_store_value *out,
                                                     const zarr_cancel *cancel,
                                                     zarr_error *err);

/**
 * Reads a value, a range of it, or its last bytes, into memory of any kind. The library
 * emulates what the store lacks: ranges, suffixes, and memory that it cannot reach.
 *
 * @param store borrowed
 * @param key the key
 * @param offset where the range begins, in bytes; ZARR_STORE_SUFFIX: the range is the
 * end of the value
 * @param mem receives the bytes. The range is as long as `mem`, or ends with the value
 * @param out receives what is known, such as `done_bytes`; may be NULL. The version may
 * need one more operation of the store
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_NOT_FOUND the store says that there is no such key
 * @retval ZARR_ERR_INVALID the key is invalid, or `mem` is NULL
 * @retval ZARR_ERR_UNSUPPORTED no memory backend has this kind of memory
 * @retval ZARR_ERR_CONFLICT the value changed each time that it was read
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_store_stat(), zarr_store_get()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_read(
    zarr_store *store, const char *key, uint64_t offset, const zarr_memory *mem,
    zarr_store_value *out, const zarr_cancel *cancel, zarr_error *err);

/**
 * Writes a whole value from memory of any kind. With `expected` it writes only if the
 * value still has this version.
 *
 * @param store borrowed
 * @param key the key
 * @param mem the value; borrowed for the call
 * @param expected the version that the value must have, from zarr_store_stat(),
 * zarr_store_read() or an earlier write; all zeros: the key must not exist yet, as for
 * zarr_store_put_new(). NULL: any
 * @param out receives what is known; may be NULL
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_CONFLICT the value has another version, or is gone
 * @retval ZARR_ERR_EXISTS the key is there, and `expected` has only zeros
 * @retval ZARR_ERR_INVALID the key is invalid, `mem` is NULL, or the store is
 * read-only
 * @retval ZARR_ERR_UNSUPPORTED the store cannot write, or not under this condition; or no
 * memory backend has this kind of memory
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_store_put()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_write(zarr_store *store, const char *key,
                                                      const zarr_memory *mem,
                                                      const zarr_store_version *expected,
                                                      zarr_store_value *out,
                                                      const zarr_cancel *cancel,
                                                      zarr_error *err);

/**
 * Writes a value under a key that does not exist yet. Of several callers with one key,
 * one succeeds.
 *
 * With ZARR_STORE_CAP_PUT_NEW, as in local and memory stores, the call is atomic. In
 * other stores it excludes only writers that take the lock of the key; without
 * ZARR_STORE_CAP_LOCK, only writers of this handle.
 *
 * @param store borrowed
 * @param key the key
 * @param data the bytes; borrowed for the call
 * @param bytes how many bytes there are
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_EXISTS the key is there; its value did not change
 * @retval ZARR_ERR_INVALID the key is invalid, or the store is read-only
 * @retval ZARR_ERR_UNSUPPORTED the store cannot write
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_store_put(), zarr_store_write()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_put_new(zarr_store *store,
                                                        const char *key, const void *data,
                                                        uint64_t bytes,
                                                        const zarr_cancel *cancel,
                                                        zarr_error *err);

/** One row of a listing. Its text is borrowed for the call. */
typedef struct zarr_store_item {
    /** the whole key; of a prefix its path, without a slash at the end */
    const char *key;
    uint64_t bytes; /**< length of the value; UINT64_MAX: the listing does not tell */
    /** 1: the row means all keys below a prefix */
    uint32_t is_prefix;
    /** 1: a symbolic link of a local store leads to the key or the prefix */
    uint32_t is_linked;
    /** ZARR_LIST_DEBRIS: age in seconds, as zarr_store_clean() compares it; 0: unknown
     */
    uint64_t age_s;
} zarr_store_item;

/** Receives one row of a listing. A non-zero return ends the listing. */
typedef int (*zarr_store_list_fn)(void *user, const zarr_store_item *item);

/** What a listing tells. */
enum {
    ZARR_LIST_RECURSIVE = 0, /**< every key below the prefix */
    ZARR_LIST_DIRECTORY = 1, /**< the keys and the prefixes one level below the prefix */
    /** only keys that zarr_store_clean() removes, of any age; symbolic links are not
     * followed */
    ZARR_LIST_DEBRIS = 2,
    /** as ZARR_LIST_RECURSIVE, but each symbolic link of a local store is a key. This is
     * what zarr_store_erase_prefix() removes */
    ZARR_LIST_UNLINKED = 3,
    /** as ZARR_LIST_DIRECTORY, but each symbolic link of a local store is a key */
    ZARR_LIST_DIRECTORY_UNLINKED = 4,
    /** as ZARR_LIST_RECURSIVE, and each directory of a local store is a prefix, also an
     * empty one */
    ZARR_LIST_FOLDERS = 5
};

/**
 * Lists the keys below a prefix, in any order. Keys that are written or erased meanwhile
 * may be listed or not. Temporary files and lock files are left out. A file that a local
 * store cannot read, such as a FIFO, is listed as a key.
 *
 * @param store borrowed
 * @param prefix "a" means all keys that begin with "a/"; "" means all keys of the store
 * @param how one of ZARR_LIST_*
 * @param fn called for each row
 * @param user passed to `fn`
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @return ZARR_OK, also when `fn` ended the listing
 * @retval ZARR_ERR_INVALID an argument is wrong
 * @retval ZARR_ERR_UNSUPPORTED the store cannot list
 * @retval ZARR_ERR_LIMIT there are more keys than `zarr_limits.listing_keys`, or more
 * directories behind symbolic links than `zarr_limits.linked_directories`
 * @retval ZARR_ERR_IO the store failed; with `os_code` ELOOP, a symbolic link leads to a
 * directory above it
 * @see zarr_group_list(), zarr_array_list_blocks()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_list(zarr_store *store,
                                                     const char *prefix, uint32_t how,
                                                     zarr_store_list_fn fn, void *user,
                                                     const zarr_cancel *cancel,
                                                     zarr_error *err);

/**
 * Removes temporary files and lock files that a killed process left below a prefix. Files
 * that are in use stay.
 *
 * @param store borrowed
 * @param prefix as for zarr_store_list()
 * @param min_age_s only files at least this old are removed, in seconds
 * @param n_removed becomes the number of files that were removed; may be NULL
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_INVALID the prefix is invalid, or the store is read-only
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_store_list()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_store_clean(zarr_store *store, const char *prefix, uint64_t min_age_s,
                 uint64_t *n_removed, const zarr_cancel *cancel, zarr_error *err);

/** Flags of zarr_store_repack(). */
enum {
    ZARR_REPACK_LOOK = 1 /**< only look: change nothing, and wait for no writer */
};

/** What zarr_store_repack() did. */
typedef struct zarr_repack_result {
    uint32_t struct_size;
    uint32_t is_needed;    /**< 1: the archive was written anew, or would be */
    uint64_t bytes_before; /**< length of the archive */
    /** length of the new archive. ZARR_REPACK_LOOK: an estimate, some bytes off per
     * member */
    uint64_t bytes_after;
} zarr_repack_result;

#define ZARR_REPACK_RESULT_INIT ZARR_SIZE_FIRST(zarr_repack_result)

/**
 * Writes a zip archive anew, without the bytes that no value uses. zarr_store_counters
 * has their number. An archive that has no such bytes stays as it is, unless it has the
 * form "ozx" and lacks something that this call gives such archives (see below).
 *
 * The new archive replaces the old one in one step, so readers and a killed process find
 * one of the two. The call holds the lock of the archive: other writers wait for it.
 * The store needs room for both archives. Stores that are open read-only fail
 * after this call: open them again.
 *
 * Values are not decoded, and keep their headers and times. The call checks the headers,
 * and the CRC-32 of values that the archive does not compress. If it finds a fault, the
 * archive stays as it is.
 *
 * An archive of the form "ozx" also gets the order of members, the comment and the zip64
 * records that RFC-9 of OME-NGFF recommends. zarr_store_open_zip() tells which archives
 * have this form.
 *
 * @param store borrowed; the store of an archive. With ZARR_REPACK_LOOK it may be
 * read-only
 * @param flags ZARR_REPACK_*
 * @param result receives what was done; may be NULL. The caller sets
 * `result->struct_size`
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_UNSUPPORTED the store is no archive, or cannot be written; an unknown
 * flag
 * @retval ZARR_ERR_INVALID the store is read-only
 * @retval ZARR_ERR_CORRUPT a member is damaged
 * @retval ZARR_ERR_CANCELLED `cancel` was set; nothing was changed
 * @retval ZARR_ERR_IO the store failed, or another program writes the archive
 * @see zarr_store_read_counters(), zarr_store_clean()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_store_repack(zarr_store *store, uint32_t flags,
                                                       zarr_repack_result *result,
                                                       const zarr_cancel *cancel,
                                                       zarr_error *err);

ZARR_END_DECLS

#endif
