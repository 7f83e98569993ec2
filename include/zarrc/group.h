/**
 * @file
 * Groups and the hierarchy: open, create, list and walk; copy, move, delete and migrate
 * nodes; consolidated metadata.
 */
#ifndef ZARRC_GROUP_H
#define ZARRC_GROUP_H

#include <zarrc/array.h>
#include <zarrc/base.h>
#include <zarrc/cancel.h>
#include <zarrc/error.h>
#include <zarrc/store.h>

ZARR_BEGIN_DECLS

/** An open group. Several threads may share the handle. Thread class: shared. */
typedef struct zarr_group zarr_group;

/** Kinds of nodes. */
enum {
    ZARR_NODE_NONE = 0,  /**< no node, or a node whose metadata is damaged */
    ZARR_NODE_ARRAY = 1, /**< an array */
    ZARR_NODE_GROUP = 2  /**< a group */
};

/** Options of a group handle, which zarr_group_open() takes. */
typedef struct zarr_group_open_options {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    int32_t zarr_format;         /**< 2 or 3; 0: look for both, v3 first */
    uint32_t consolidated;       /**< one of ZARR_CONSOLIDATED_* */
    /** v2: name of the consolidated document; copied; NULL: ".zmetadata" */
    const char *consolidated_key;
} zarr_group_open_options;

#define ZARR_GROUP_OPEN_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_group_open_options)

/**
 * Opens the group at a path of a store. If the group has consolidated metadata and the
 * options allow its use, the handle answers for all nodes below the group from that one
 * document, without further reads.
 *
 * Spec: Zarr v3 core, "Group metadata"; Zarr v2, "Groups".
 *
 * @param out receives the group; owned: zarr_group_free()
 * @param store borrowed; the group keeps it alive
 * @param path path of the group, such as "a/b"; "" is the root of the store
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND there is no group; the message tells if there is an array
 * @retval ZARR_ERR_CORRUPT the metadata breaks the rules of the format
 * @retval ZARR_ERR_INVALID the path or an option is wrong
 * @see zarr_group_create(), zarr_group_list(), zarr_group_open_array(), zarr_node_probe()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_open(zarr_group **out, zarr_store *store,
                                                     const char *path,
                                                     const zarr_group_open_options *opts,
                                                     zarr_error *err);

/** Describes a new group. All members may be zero or NULL. Pointers are borrowed for the
 * call. */
typedef struct zarr_group_spec {
    uint32_t struct_size, flags; /**< `flags`: ZARR_GROUP_* */
    int32_t zarr_format;         /**< 2 or 3; 0: 3 */
    uint32_t reserved;
    const char *attributes; /**< JSON object; NULL: none */
} zarr_group_spec;

#define ZARR_GROUP_SPEC_INIT ZARR_SIZE_FIRST(zarr_group_spec)

/** Flags of zarr_group_spec. What an interrupted delete or copy left at the path is
 * ZARR_ERR_EXISTS without ZARR_GROUP_OVERWRITE. */
enum {
    /** delete a node at the path first, with everything below it, as ZARR_SPEC_OVERWRITE
     */
    ZARR_GROUP_OVERWRITE = 1,
    ZARR_GROUP_NO_PARENTS = 2, /**< do not create parent groups that are missing */
    /** open a group that exists, whatever its attributes; a `zarr_format` that is not 0
     * must be the group's */
    ZARR_GROUP_IF_MISSING = 8
};

/**
 * Creates a group and opens it. Parent groups that are missing are created, too.
 *
 * Spec: Zarr v3 core, "Group metadata" and "Node names"; Zarr v2, "Groups".
 *
 * @param out receives the group; owned: zarr_group_free()
 * @param store borrowed; the group keeps it alive
 * @param path path of the group, such as "a/b"; "" is the root of the store
 * @param spec describes the group; NULL: a group of format 3 without attributes
 * @param opts options of the handle, of which `zarr_format` is ignored; NULL: defaults
 * @retval ZARR_ERR_EXISTS there is something at the path, and no flag allows that
 * @retval ZARR_ERR_INVALID the path, the format, the attributes or an option is wrong, or
 * the store is read-only
 * @retval ZARR_ERR_UNSUPPORTED a flag is unknown, or the store cannot write
 * @see zarr_group_open(), zarr_array_create(), zarr_group_attribute_set()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_create(
    zarr_group **out, zarr_store *store, const char *path, const zarr_group_spec *spec,
    const zarr_group_open_options *opts, zarr_error *err);

/**
 * @name Owners of a group
 * @{
 */
/**
 * Adds an owner to a group.
 * @param group borrowed
 * @return `group`; the caller owns it once more
 */
ZARR_API zarr_group *zarr_group_ref(zarr_group *group);
/**
 * Gives up one ownership of a group. The last owner frees the handle.
 * @param group may be NULL
 */
ZARR_API void zarr_group_free(zarr_group *group);
/** @} */

/**
 * @name What a group is
 * These calls ask the handle, not the store. What they return is borrowed and lives as
 * long as the handle, also if the attributes are changed meanwhile. JSON text is made
 * when it is first asked for, and is NULL if there is no memory for it.
 * @{
 */
/** Returns the path, without slashes at its ends; "" for the root. */
ZARR_API const char *zarr_group_path(const zarr_group *group);
/** Returns the format, 2 or 3. */
ZARR_API int32_t zarr_group_zarr_format(const zarr_group *group);
/** Returns 1 if the handle answers from consolidated metadata, else 0. */
ZARR_API int zarr_group_is_consolidated(const zarr_group *group);
/** Returns the metadata document as JSON text. */
ZARR_API const char *zarr_group_metadata(const zarr_group *group);
/** Returns the attributes as the JSON text of an object, "{}" if there are none. */
ZARR_API const char *zarr_group_attributes(const zarr_group *group);
/** Returns the store of the group, owned by the group. */
ZARR_API zarr_store *zarr_group_store(const zarr_group *group);
/** @} */

/**
 * @name Open a node below a group
 * The path is relative to the group and may have several parts. A group with consolidated
 * metadata opens nodes from it, without a read, and knows no other nodes. The options can
 * forbid or demand that.
 * @{
 */
/**
 * Opens an array below a group.
 * @param out receives the array; owned: zarr_array_free()
 * @param group borrowed
 * @param path path below the group
 * @param opts options of the array handle; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND there is no array; or its options demand consolidated
 * metadata, and the group has none
 * @retval ZARR_ERR_CORRUPT the metadata breaks the rules of the format
 * @retval ZARR_ERR_UNSUPPORTED this build lacks something that the metadata names
 * @see zarr_array_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_open_array(zarr_array **out, zarr_group *group, const char *path,
                      const zarr_array_open_options *opts, zarr_error *err);
/**
 * Opens a group below a group.
 * @param out receives the group; owned: zarr_group_free()
 * @param group borrowed
 * @param path path below the group
 * @param opts options of the new handle; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND there is no group; or its options demand consolidated
 * metadata, and the parent has none
 * @retval ZARR_ERR_CORRUPT the metadata breaks the rules of the format
 * @see zarr_group_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_open_group(zarr_group **out, zarr_group *group, const char *path,
                      const zarr_group_open_options *opts, zarr_error *err);
/** @} */

/**
 * @name Attributes of a group
 * Attributes are members of a JSON object. They are read from the handle. A change reads
 * the document in the store, changes it and writes it, under its lock: changes of others
 * are kept, and the handle has them afterwards. Consolidated metadata is not changed with
 * it. zarr_group_attributes() returns all attributes at once.
 *
 * Spec: Zarr v3 core, "Group metadata"; Zarr v2, "Attributes".
 * @{
 */
/**
 * Copies one attribute as JSON text into a buffer of the caller's, as snprintf() does.
 * Text values keep their quotes.
 * @param group borrowed
 * @param name name of the attribute
 * @param text,cap buffer of `cap` bytes; `text` may be NULL if `cap` is 0
 * @param text_bytes becomes the length of the text without its terminator, which may
 * exceed `cap`; may be NULL
 * @retval ZARR_ERR_NOT_FOUND there is no such attribute
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_get(const zarr_group *group,
                                                              const char *name,
                                                              char *text, size_t cap,
                                                              size_t *text_bytes,
                                                              zarr_error *err);
/**
 * Sets one attribute.
 * @param group borrowed
 * @param name name of the attribute
 * @param json the value as JSON text, such as "3", "\"K\"" or "[1,2]"
 * @retval ZARR_ERR_INVALID `json` is not JSON, or the store is read-only
 * @retval ZARR_ERR_CONFLICT the group was replaced by an array
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_set(zarr_group *group,
                                                              const char *name,
                                                              const char *json,
                                                              zarr_error *err);
/**
 * Deletes one attribute.
 * @param group borrowed
 * @param name name of the attribute
 * @retval ZARR_ERR_NOT_FOUND there is no such attribute
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_delete(zarr_group *group,
                                                                 const char *name,
                                                                 zarr_error *err);
/**
 * Sets several attributes at once.
 * @param group borrowed
 * @param json_object JSON object whose members are set
 * @param replace_all 0: other attributes stay; 1: other attributes are deleted
 * @retval ZARR_ERR_INVALID `json_object` is not a JSON object, or the store is read-only
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attributes_merge(zarr_group *group,
                                                                 const char *json_object,
                                                                 int replace_all,
                                                                 zarr_error *err);
/** @} */

/** One node of a listing. Its texts are borrowed for the call. */
typedef struct zarr_node_item {
    uint32_t struct_size;
    uint32_t kind;       /**< one of ZARR_NODE_*; NONE: the node's metadata is damaged */
    const char *path;    /**< path from the root of the store */
    const char *name;    /**< last part of the path */
    int32_t zarr_format; /**< 2 or 3 */
    int32_t depth;       /**< 1: a direct child */
    /** text of the node's document; in v2 .zarray or .zgroup, without the attributes */
    const char *metadata;
} zarr_node_item;

/** Receives one node of a listing. Returns one of ZARR_WALK_*. */
typedef int (*zarr_node_fn)(void *user, const zarr_node_item *node);
/** What a function that receives nodes returns. */
enum {
    ZARR_WALK_GO_ON = 0, /**< go on */
    ZARR_WALK_STOP = 1,  /**< end the listing */
    ZARR_WALK_SKIP = 2   /**< zarr_group_walk(): leave out what is below this node */
};

/** Options of zarr_group_list() and zarr_group_walk(). */
typedef struct zarr_list_options {
    uint32_t struct_size, flags; /**< `flags`: must be 0 */
    /** stops the call with ZARR_ERR_CANCELLED once it is set; borrowed; may be NULL */
    zarr_cancel *cancel;
} zarr_list_options;

#define ZARR_LIST_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_list_options)

/**
 * Lists the direct children of a group, sorted by name. A directory without metadata is
 * not a node and is left out. A node whose metadata is damaged has the kind
 * ZARR_NODE_NONE. A group with consolidated metadata lists the nodes in it, without a
 * read.
 *
 * @param group borrowed
 * @param fn called for each child
 * @param user passed to `fn`
 * @param opts options; NULL: defaults
 * @return ZARR_OK, also when `fn` ended the listing
 * @retval ZARR_ERR_UNSUPPORTED the store cannot list
 * @retval ZARR_ERR_LIMIT there are more names than `zarr_limits.listing_keys`
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_group_open_array(), zarr_group_walk(), zarr_store_list()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_list(zarr_group *group, zarr_node_fn fn,
                                                     void *user,
                                                     const zarr_list_options *opts,
                                                     zarr_error *err);
/**
 * Lists all nodes below a group, parents before their children and sorted by name. A node
 * whose metadata is damaged has the kind ZARR_NODE_NONE, and the walk goes on. The walk
 * does not recurse, however deep the hierarchy is.
 *
 * @param group borrowed
 * @param fn called for each node
 * @param user passed to `fn`
 * @param opts options; NULL: defaults
 * @return ZARR_OK, also when `fn` ended the walk
 * @retval ZARR_ERR_UNSUPPORTED the store cannot list
 * @retval ZARR_ERR_LIMIT there are more names than `zarr_limits.listing_keys`
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_group_list()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_walk(zarr_group *group, zarr_node_fn fn,
                                                     void *user,
                                                     const zarr_list_options *opts,
                                                     zarr_error *err);

/* ---- nodes by path -------------------------------------------------------- */

/**
 * Tells which kind of node is at a path. It is not an error if there is no node.
 *
 * @param store borrowed
 * @param path path of the node; "" is the root of the store
 * @param kind becomes one of ZARR_NODE_*
 * @param zarr_format becomes 2 or 3; 0 if there is no node
 * @retval ZARR_ERR_CORRUPT the metadata is damaged; `*kind` is ZARR_NODE_NONE, and
 * `*zarr_format` is the format of the document
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_array_open(), zarr_group_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_probe(zarr_store *store, const char *path,
                                                     uint32_t *kind, int32_t *zarr_format,
                                                     zarr_error *err);
/**
 * Deletes a node and everything below it, also if it is damaged. A symbolic link to a
 * node is removed itself, and the node stays. After a failure the call can be made again.
 * Consolidated metadata of parents is not changed.
 *
 * Spec: Zarr v3 core, "Storage", "Operations".
 *
 * @param store borrowed
 * @param path path of the node; "" is the root of the store
 * @retval ZARR_ERR_NOT_FOUND there is no node, nor the rest of a delete that failed
 * @retval ZARR_ERR_INVALID the store is read-only
 * @retval ZARR_ERR_CONFLICT another call copies, re-encodes or deletes at the path
 * (`os_code` EBUSY); nothing was changed. Stores without locks do not see calls of other
 * handles
 * @retval ZARR_ERR_IO the store failed; some objects may be deleted
 * @see zarr_group_consolidate(), zarr_node_move()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_delete(zarr_store *store, const char *path,
                                                      zarr_error *err);

/** Options of zarr_node_delete_watched(). */
typedef struct zarr_delete_options {
    uint32_t struct_size, flags; /**< `flags`: must be 0 */
    /** called with the rising number of objects that are deleted; may be NULL */
    void (*progress)(void *user, uint64_t objects_done);
    void *progress_user; /**< passed to `progress` */
    /** stops the call with ZARR_ERR_CANCELLED once it is set; borrowed; may be NULL */
    zarr_cancel *cancel;
} zarr_delete_options;

#define ZARR_DELETE_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_delete_options)

/**
 * The same as zarr_node_delete(), with progress and cancel. Both put an object
 * `.zarrc-job` at the path first, and delete it last: if the call is interrupted, it
 * tells that a delete was at work.
 *
 * @param store,path as for zarr_node_delete()
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_CANCELLED `cancel` was set; the rest is no node any more, and
 * the call can be made again
 * @see zarr_node_delete()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_node_delete_watched(zarr_store *store, const char *path,
                         const zarr_delete_options *opts, zarr_error *err);

/** Flags of zarr_copy_options. */
enum {
    /** delete what is at the destination first */
    ZARR_COPY_OVERWRITE = 1,
    /** keep objects at the destination that have equal bytes, to resume a copy. An object
     * with other bytes, or one that the source does not have (if the store can list),
     * fails the call with ZARR_ERR_EXISTS. With ZARR_COPY_OVERWRITE the one is replaced
     * and the other deleted */
    ZARR_COPY_SKIP_EQUAL = 2
};

/** Options of zarr_node_copy() and zarr_node_move(). */
typedef struct zarr_copy_options {
    uint32_t struct_size, flags;    /**< `flags`: ZARR_COPY_* */
    uint32_t max_threads, reserved; /**< threads at most; 0: as many as the context has */
    /** called by one thread at a time with rising numbers, not after each object; may be
     * NULL */
    void (*progress)(void *user, uint64_t objects_done, uint64_t bytes_done);
    void *progress_user; /**< passed to `progress` */
    /** stops the call with ZARR_ERR_CANCELLED once it is set; borrowed; may be NULL */
    zarr_cancel *cancel;
    /** name of the source in the object `.zarrc-job`; NULL: URL and path. Borrowed */
    const char *source_name;
} zarr_copy_options;

#define ZARR_COPY_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_copy_options)

/**
 * Copies a node with everything below it, in a store or between two stores. Objects are
 * copied byte for byte. Chunks are copied first, in parallel, and metadata last, so that
 * an incomplete copy is not a node. Parent groups that are missing are created. While the
 * call is at work, the destination has an object `.zarrc-job`, a JSON object with
 * "command" ("cp" or "mv") and "source". An interrupted call leaves it, and the same call
 * with ZARR_COPY_SKIP_EQUAL continues. If the source has such an object of another call,
 * which was interrupted, the copy gets it at the end.
 *
 * @param src,src_path store and path of the node
 * @param dst,dst_path store and path of the copy; the store may be the same
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND there is no node at the source
 * @retval ZARR_ERR_EXISTS there is a node at the destination, or keys that would be
 * mixed with the copy, such as chunks of a node that was deleted in part
 * @retval ZARR_ERR_INVALID source and destination are one place, or one is inside the
 * other, as zarr_store_overlap() tells; nothing was changed. Or the destination is
 * read-only
 * @retval ZARR_ERR_CONFLICT an object, or the metadata of a node, changed while it was
 * copied. With ZARR_COPY_SKIP_EQUAL and ZARR_COPY_OVERWRITE the call copies what differs.
 * Or, with `os_code` EBUSY, another call copies, re-encodes or deletes at the
 * destination; stores without locks do not see calls of other handles
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO a store failed
 * @see zarr_node_move()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_copy(zarr_store *src, const char *src_path,
                                                    zarr_store *dst, const char *dst_path,
                                                    const zarr_copy_options *opts,
                                                    zarr_error *err);
/**
 * Moves a node with everything below it. Nothing else may write below the source during
 * the call. Consolidated metadata of parents is not changed.
 *
 * Inside of a local store or a memory store a move is one step: a reader finds the whole
 * node at the old or at the new path. Symbolic links below it move as they are, and
 * `progress` is not called. Between stores or disks, or if something is at the
 * destination already, the node is copied, and the source is deleted once the copy is
 * complete. Before that, the call looks whether the source is still what was copied.
 *
 * A node that is a symbolic link inside of a store is copied from what the link leads to,
 * and only the link is deleted. The root of a store that was opened by the name of a
 * symbolic link is not moved, because the store would be emptied and the link would stay:
 * open the store by its own path, or move the link with rename().
 *
 * @param src,src_path store and path of the node
 * @param dst,dst_path store and new path; the store may be the same
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND there is no node at the source
 * @retval ZARR_ERR_EXISTS there is a node at the destination, or keys that would be
 * mixed with the copy, such as chunks of a node that was deleted in part
 * @retval ZARR_ERR_INVALID source and destination are one place, or one is inside the
 * other, or a store is read-only, or the source is the root of a store that was opened by
 * a symbolic link; nothing was changed
 * @retval ZARR_ERR_CONFLICT an object, the keys or the metadata of the source changed
 * meanwhile; the source is complete. With ZARR_COPY_SKIP_EQUAL and ZARR_COPY_OVERWRITE
 * the call copies what differs. Or, with `os_code` EBUSY, another call copies, re-encodes
 * or deletes at the destination; stores without locks do not see calls of other handles
 * @retval ZARR_ERR_CANCELLED `cancel` was set; the source is complete
 * @retval ZARR_ERR_IO a store failed
 * @see zarr_node_copy(), zarr_group_consolidate()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_move(zarr_store *src, const char *src_path,
                                                    zarr_store *dst, const char *dst_path,
                                                    const zarr_copy_options *opts,
                                                    zarr_error *err);

/* ---- metadata of the other format ------------------------------------------ */

/** Flags of zarr_migrate_options. */
enum {
    /** check everything and tell what would be done, but write nothing */
    ZARR_MIGRATE_DRY_RUN = 1,
    /** replace documents of the new format that have another meaning */
    ZARR_MIGRATE_OVERWRITE = 2,
    /** delete the documents of the old format afterwards */
    ZARR_MIGRATE_REMOVE = 4,
    /** leave fill values and attributes `_FillValue` as they are, even if readers then
     * take other elements for missing ones */
    ZARR_MIGRATE_KEEP_FILL = 8
};

/** What zarr_node_migrate() did with a document. */
enum {
    ZARR_MIGRATED_WRITTEN = 1,      /**< it was written */
    ZARR_MIGRATED_REPLACED = 2,     /**< it replaced one with another meaning */
    ZARR_MIGRATED_KEPT = 3,         /**< it existed with the same meaning */
    ZARR_MIGRATED_CONSOLIDATED = 4, /**< consolidated metadata was written */
    ZARR_MIGRATED_REMOVED = 5,      /**< the old document was deleted */
    /** the other format cannot describe the node, so nothing is written */
    ZARR_MIGRATED_REFUSED = 6,
    /** the old document has members that the new one lacks, so it was not deleted */
    ZARR_MIGRATED_LEFT = 7,
    /** a document of the new format could not keep all that the old one means; `text`
     * says what is lost. Comes after the item of that document */
    ZARR_MIGRATED_WARNED = 8
};

/** What was done with a document, or would be done. Its texts are borrowed for the call.
 */
typedef struct zarr_migrate_item {
    uint32_t struct_size;
    uint32_t action; /**< one of ZARR_MIGRATED_* */
    uint32_t kind;   /**< kind of the node, one of ZARR_NODE_* */
    uint32_t reserved;
    const char *path; /**< path of the node from the root of the store */
    const char *key;  /**< key of the document; NULL for a node that was refused */
    /** the document that was written or that replaced another; the reason why it was
     * refused or left; the warning; else NULL */
    const char *text;
} zarr_migrate_item;

/** Options of zarr_node_migrate(). */
typedef struct zarr_migrate_options {
    uint32_t struct_size, flags; /**< `flags`: ZARR_MIGRATE_* */
    int32_t zarr_format;         /**< the new format, 2 or 3; 0: 3 */
    uint32_t reserved;
    /** called for each document; may be NULL */
    void (*tell)(void *user, const zarr_migrate_item *item);
    void *user; /**< passed to `tell` */
    /** stops the call with ZARR_ERR_CANCELLED once it is set; borrowed; may be NULL */
    zarr_cancel *cancel;
} zarr_migrate_options;

#define ZARR_MIGRATE_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_migrate_options)

/**
 * Writes the metadata of a node, and of all nodes below it, in the other format. The new
 * documents are beside those that exist. No chunk is read or written: the new documents
 * describe the stored chunks as they are. If a node has documents in both formats, those
 * of v3 count. Nothing else may change the metadata during the call.
 *
 * From v2 to v3, the key encoding becomes "v2", the order F a transpose codec, filters
 * and compressor become codecs, and the byte order moves from the data type to the codec
 * `bytes`. A fill value null becomes the default of the data type. The attribute
 * _ARRAY_DIMENSIONS becomes the dimension names. NaN and Infinity without quotes in
 * attributes, which are not JSON, become the strings "NaN" and "Infinity".
 *
 * From v3 to v2, v2 must be able to describe the array: no shards, a regular grid, the
 * key encoding "v2", a fill value that v2 can spell bit for bit, and names for all
 * dimensions or for none. Dimension names become the attribute _ARRAY_DIMENSIONS, which
 * must not exist with another value. An array without dimensions gets an empty list,
 * because xarray needs it. An attribute _ARRAY_DIMENSIONS of an array without dimension
 * names stays, and readers of v2 take it for the names.
 *
 * Arrays with dimension names are variables for xarray and other readers that follow the
 * CF conventions. In v2 these take the fill value for the missing value, unless it is
 * null, else the attribute `_FillValue`, a plain number; in v3 they take the attribute
 * alone, in which floating-point numbers are base64 of the 8 little-endian bytes of a
 * double, and complex numbers a list of two such texts. The missing value stays the same:
 *
 * - To v3, the attribute `_FillValue` is set. For times, text and other types that xarray
 *   cannot read so, there is none in v3, and ZARR_MIGRATED_WARNED tells it.
 * - To v2, an attribute equal to the fill value is dropped. Else a fill value zero
 * becomes null, and the attribute a plain number. Without the attribute NaN stays, and
 * other fill values become null. If the elements of missing chunks would change by this,
 * the array is refused, unless all its chunks are stored. zarr_node_reencode() converts
 * it.
 *
 * ZARR_MIGRATE_KEEP_FILL leaves fill values and attributes as they are.
 *
 * Metadata of OME-Zarr stays where it is, although readers look for it in another place:
 * 0.4 is for v2 and at the top of a group's attributes, 0.5 is for v3 and in the
 * attribute `ome`. ZARR_MIGRATED_WARNED tells it once, of the topmost group, and says
 * what to do.
 *
 * A group that has consolidated metadata in the old format gets it in the new one.
 * Members of a v3 document that neither format knows are copied to v2. Members of a v2
 * document that v3 has no place for are not; ZARR_MIGRATE_REMOVE then leaves that
 * document and its attributes. If a node had the new format before, it also leaves
 * .zmetadata, and a .zattrs that differs.
 *
 * The whole tree is converted and checked before the first document is written. Children
 * are written before their parents, each document in one step. Documents of the old
 * format are deleted last. If the call is stopped at any moment, the tree can be read,
 * and the same call goes on where it stopped.
 *
 * Spec: Zarr v3 core, "Array metadata" and "Group metadata"; Zarr v2, "Metadata".
 *
 * @param store borrowed
 * @param path path of the node; "" is the root of the store
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND there is no node
 * @retval ZARR_ERR_UNSUPPORTED the other format cannot describe a node, or not without
 * changing elements of missing chunks; the message names node, member and rule, and
 * nothing was written
 * @retval ZARR_ERR_EXISTS a document of the new format exists with another meaning;
 * nothing was written
 * @retval ZARR_ERR_INVALID the store is read-only, or an option is wrong
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_group_consolidate(), zarr_node_copy()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_migrate(zarr_store *store,
                                                       const char *path,
                                                       const zarr_migrate_options *opts,
                                                       zarr_error *err);

/**
 * @name Consolidated metadata
 * Consolidated metadata is a copy of the metadata of all nodes below a group, in one
 * document of the group. A reader opens all of them with one read. Nothing keeps the copy
 * up to date: a program that changes nodes consolidates again. In v2 the copy is in the
 * document .zmetadata, in v3 in the member `consolidated_metadata` of the group's
 * zarr.json, as zarr-python writes it.
 * @{
 */
/** Flags of zarr_consolidate_options. */
enum {
    /** zarr_group_consolidated_update(): also all nodes below the path */
    ZARR_CONSOLIDATED_BELOW = 1
};

/** Options of calls for consolidated metadata. */
typedef struct zarr_consolidate_options {
    uint32_t struct_size, flags; /**< `flags`: ZARR_CONSOLIDATED_BELOW or 0 */
    /** zarr_group_consolidate() of a v2 group: another name for the document; NULL: the
     * `consolidated_key` that the group was opened with, or ".zmetadata". Must be NULL in
     * other calls and for v3 groups */
    const char *key;
    /** stops the call with ZARR_ERR_CANCELLED once it is set; borrowed; may be NULL */
    zarr_cancel *cancel;
} zarr_consolidate_options;

#define ZARR_CONSOLIDATE_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_consolidate_options)

/**
 * Writes the consolidated metadata of a group, in one step. It holds all nodes that the
 * store has below the group, also if the handle answers from consolidated metadata. NaN
 * and Infinity without quotes, which are not JSON, become the strings "NaN" and
 * "Infinity", except in fill values of the v2 codecs json2 and msgpack2, where the string
 * is another value. The handle does not change: open the group again to use what was
 * written.
 *
 * @param group borrowed
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND the store has no such group any more
 * @retval ZARR_ERR_INVALID `key` has a slash, is the name of another document, or is
 * given for a v3 group; or the store is read-only
 * @retval ZARR_ERR_EXISTS the object under `key` is not consolidated metadata
 * @retval ZARR_ERR_CORRUPT the metadata of a node is damaged
 * @retval ZARR_ERR_CANCELLED `cancel` was set; nothing was written
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_group_is_consolidated(), zarr_group_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_consolidate(
    zarr_group *group, const zarr_consolidate_options *opts, zarr_error *err);
/**
 * Brings consolidated metadata up to date after a node was created, changed or deleted.
 * Each group above the node that has consolidated metadata gets the node's documents as
 * the store has them now, or loses its entry. Parents of the node that have no entry get
 * one, too. Other entries stay as they are. Groups without consolidated metadata do not
 * get any. A group's own ".zmetadata" (v2) counts, because it has an entry of the group
 * itself. Nodes change without this call, so a program that changes many of them calls it
 * once at the end, or zarr_group_consolidate().
 *
 * @param store borrowed
 * @param path path of the node, which need not exist any more; "" is the root
 * @param opts options; NULL: defaults
 * @param n_updated becomes the number of groups with consolidated metadata that were
 * found; may be NULL
 * @retval ZARR_ERR_CORRUPT consolidated metadata, or metadata of the node, is damaged
 * @retval ZARR_ERR_UNSUPPORTED consolidated metadata has a form that is not known
 * @retval ZARR_ERR_INVALID the store is read-only, or `key` is given
 * @retval ZARR_ERR_CANCELLED `cancel` was set; some groups may be up to date
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_group_consolidate(), zarr_group_consolidated_check()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_consolidated_update(
    zarr_store *store, const char *path, const zarr_consolidate_options *opts,
    uint64_t *n_updated, zarr_error *err);
/**
 * Compares the consolidated metadata of a group, as it is in the store now, with the
 * metadata of its nodes.
 * @param group borrowed; in v2 its `consolidated_key` names the document
 * @param fn called for each difference, with the path of the node and a sentence; a
 * non-zero return ends the comparison. NaN without quotes and the string "NaN" are equal
 * @param user passed to `fn`
 * @param opts options; NULL: defaults
 * @return ZARR_OK, with or without differences
 * @retval ZARR_ERR_NOT_FOUND the store has no such group any more, or it has no
 * consolidated metadata
 * @retval ZARR_ERR_CORRUPT the consolidated metadata is damaged
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO the store failed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_consolidated_check(
    zarr_group *group, int (*fn)(void *user, const char *path, const char *what),
    void *user, const zarr_consolidate_options *opts, zarr_error *err);
/** @} */

ZARR_END_DECLS

#endif
