/**
 * @file
 * Nodes by their path: open and probe one; delete, copy, move and migrate one with all
 * nodes below it. In a store without locks, these calls may not notice that another call
 * works at the same path.
 */
#ifndef ZARRC_NODE_H
#define ZARRC_NODE_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/group.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/**
 * Tells which kind of node is at a path. It is not an error if there is no node.
 *
 * @param store borrowed
 * @param path path of the node; "" is the root of the store
 * @param kind becomes one of ZARR_NODE_*
 * @param zarr_format becomes 2 or 3; 0 if there is no node
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_CORRUPT the metadata is damaged; `*kind` is ZARR_NODE_NONE, and
 * `*zarr_format` is the format of the document
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_node_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_probe(zarr_store *store, const char *path,
                                                     uint32_t *kind, int32_t *zarr_format,
                                                     const zarr_cancel *cancel,
                                                     zarr_error *err);

/**
 * Opens the array or the group at a path. The call reads the documents of the node once.
 * It fails as zarr_array_open() and zarr_group_open() do.
 *
 * @param array receives the array, or NULL; owned: zarr_array_free()
 * @param group receives the group, or NULL; owned: zarr_group_free()
 * @param store borrowed; the node keeps it alive
 * @param path path of the node, such as "a/b"; "" is the root of the store
 * @param array_opts options of an array; NULL: defaults
 * @param group_opts options of a group; NULL: defaults. If both options are given, they
 * must ask for the same format
 * @retval ZARR_ERR_NOT_FOUND there is no node; or there is a group without consolidated
 * metadata, which `group_opts` demands
 * @retval ZARR_ERR_CORRUPT the metadata breaks the rules of the format
 * @retval ZARR_ERR_UNSUPPORTED this build lacks something that the metadata names
 * @retval ZARR_ERR_INVALID the path or an option is wrong
 * @see zarr_node_probe(), zarr_group_open_node()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_node_open(zarr_array **array, zarr_group **group, zarr_store *store,
               const char *path, const zarr_array_open_options *array_opts,
               const zarr_group_open_options *group_opts, zarr_error *err);

/**
 * Guesses the format of a folder that is not a Zarr node, from the names in the folder.
 * Messages of zarr_array_open() and zarr_group_open() contain the returned text.
 *
 * @param store borrowed
 * @param path path of the folder; "" is the root of the store
 * @return a static text such as "an N5 container, which zarr-python 2 (N5Store) and z5py
 * read"; NULL: the format is not known, or the store cannot list
 * @see zarr_node_probe()
 */
ZARR_API const char *zarr_node_other_format(zarr_store *store, const char *path);

/**
 * Deletes a node and everything below it, even if it is damaged. If there is no node, the
 * call deletes all objects below the path. If the path is a symbolic link to a node, only
 * the link is deleted. After a failure the call can be repeated. Consolidated metadata of
 * parents is not changed (see ZARR_DELETE_CONSOLIDATED). The call first waits for
 * writes that hold the lock of a key of the node. It does not wait for a call that
 * copies, re-encodes or deletes at the path (ZARR_ERR_CONFLICT).
 *
 * Spec: Zarr v3 core, "Storage", "Operations".
 *
 * @param store borrowed
 * @param path path of the node; "" is the root of the store
 * @retval ZARR_ERR_NOT_FOUND there is no node and no object below the path; or there is
 * no node, and the path is inside an array
 * @retval ZARR_ERR_INVALID the store is read-only
 * @retval ZARR_ERR_CONFLICT another call copies, re-encodes or deletes at the path
 * (`os_code` EBUSY); nothing was changed
 * @retval ZARR_ERR_IO the store failed; some objects may be deleted
 * @see zarr_group_consolidate(), zarr_node_move()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_delete(zarr_store *store, const char *path,
                                                      zarr_error *err);

/** Flag of zarr_delete_options. */
enum {
    /** first remove the nodes from the consolidated metadata of the groups above
     * (ZARR_CONSOLIDATED_REMOVE). If that fails, nothing is deleted */
    ZARR_DELETE_CONSOLIDATED = 1
};

/** Options of zarr_node_delete_watched(). */
typedef struct zarr_delete_options {
    uint32_t struct_size, flags; /**< `flags`: ZARR_DELETE_CONSOLIDATED or 0 */
    /** called with the number of objects deleted so far; may be NULL */
    void (*progress)(void *user, uint64_t objects_done);
    void *progress_user; /**< passed to `progress` */
    /** stops the call with ZARR_ERR_CANCELLED once it is set; borrowed; may be NULL */
    zarr_cancel *cancel;
} zarr_delete_options;

#define ZARR_DELETE_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_delete_options)

/**
 * The same as zarr_node_delete(), with progress and cancel. If the call is interrupted,
 * an object `.zarrc-job` stays at the path.
 *
 * @param store,path as for zarr_node_delete()
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_CANCELLED `cancel` was set. Either the node is complete, or there is
 * no node at the path, only some of its objects. The call can be repeated
 * @see zarr_node_delete()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_node_delete_watched(zarr_store *store, const char *path,
                         const zarr_delete_options *opts, zarr_error *err);

/** Flags of zarr_copy_options. */
enum {
    /** delete what is at the destination first */
    ZARR_COPY_OVERWRITE = 1,
    /** keep objects at the destination that have equal bytes, to resume a copy. If the
     * destination has any other object, the call fails with ZARR_ERR_EXISTS. With
     * ZARR_COPY_OVERWRITE as well, the call replaces objects that differ, and deletes
     * those that the source does not have.
     *
     * If the destination's store cannot be written, such as an archive in a bucket, the
     * call succeeds if the copy is complete and equal. Else it fails with
     * ZARR_ERR_UNSUPPORTED */
    ZARR_COPY_SKIP_EQUAL = 2,
    /** remove the source of a move, and nodes that ZARR_COPY_OVERWRITE replaces, from the
     * consolidated metadata of the groups above (ZARR_CONSOLIDATED_REMOVE). Call
     * zarr_group_consolidated_update() afterwards to add the new nodes */
    ZARR_COPY_CONSOLIDATED = 4
};

/** Options of zarr_node_copy() and zarr_node_move(). */
typedef struct zarr_copy_options {
    uint32_t struct_size, flags;    /**< `flags`: ZARR_COPY_* */
    uint32_t max_threads, reserved; /**< maximum threads; 0: as many as the context has */
    /** called repeatedly, by one thread at a time, with the numbers so far; may be NULL
     */
    void (*progress)(void *user, uint64_t objects_done, uint64_t bytes_done);
    void *progress_user; /**< passed to `progress` */
    /** stops the call with ZARR_ERR_CANCELLED once it is set; borrowed; may be NULL */
    zarr_cancel *cancel;
    /** receive how many objects ZARR_COPY_SKIP_EQUAL did not write, and their bytes, even
     * if the call fails. `progress` also counts them. Borrowed for the call; may be NULL
     */
    uint64_t *objects_skipped, *bytes_skipped;
} zarr_copy_options;

#define ZARR_COPY_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_copy_options)

/**
 * Copies a node with everything below it, in a store or between two stores. Objects are
 * copied byte for byte. Metadata is copied last: an incomplete copy is not a node. Parent
 * groups that are missing are created. An interrupted call leaves an object `.zarrc-job`
 * at the destination. To continue, make the same call with ZARR_COPY_SKIP_EQUAL.
 *
 * @param src,src_path store and path of the node
 * @param dst,dst_path store and path of the copy; the store may be the same
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND there is no node at the source
 * @retval ZARR_ERR_EXISTS there is a node at the destination, or keys such as chunks of a
 * node that was deleted in part
 * @retval ZARR_ERR_INVALID source and destination are the same, or one is inside the
 * other (zarr_store_overlap()); nothing was changed. Or the destination is read-only
 * @retval ZARR_ERR_CONFLICT an object, or the metadata of a node, changed while it was
 * copied. Repeat the call with ZARR_COPY_SKIP_EQUAL and ZARR_COPY_OVERWRITE: it copies
 * what differs. Or, with `os_code` EBUSY, another call copies, re-encodes or deletes at
 * the destination
 * @retval ZARR_ERR_UNSUPPORTED a v2 array has the codec shuffle without `elementsize`.
 * This codec depends on the attribute `_NCProperties` of a group above, and only one of
 * source and destination has such a group. Nothing was changed. Copy the whole hierarchy
 * of netCDF-C, or use zarr_node_reencode()
 * @retval ZARR_ERR_CANCELLED `cancel` was set. `.zarrc-job` may be at the destination
 * even if the copy is complete
 * @retval ZARR_ERR_IO a store failed
 * @see zarr_node_move()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_copy(zarr_store *src, const char *src_path,
                                                    zarr_store *dst, const char *dst_path,
                                                    const zarr_copy_options *opts,
                                                    zarr_error *err);
/**
 * Moves a node with everything below it. Nothing else may write below the source during
 * the call. Consolidated metadata of parents is not changed (see ZARR_COPY_CONSOLIDATED).
 *
 * In five cases the call copies the node, checks that the source has not changed, and
 * deletes the source:
 *
 * - between stores or disks;
 * - in a store that cannot rename (a bucket, an archive);
 * - if one of the paths is the root of a store;
 * - with ZARR_COPY_SKIP_EQUAL, if something is at the destination;
 * - if the source is a symbolic link to a node. Then the call deletes only the link.
 *
 * Otherwise a move is atomic: a reader finds the whole node at the old or at the new
 * path. ZARR_COPY_OVERWRITE deletes what is at the destination before the move. An
 * atomic move does not call `progress`.
 *
 * The call does not move the root of a store that was opened by a symbolic link.
 *
 * @param src,src_path store and path of the node
 * @param dst,dst_path store and new path; the store may be the same
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND there is no node at the source
 * @retval ZARR_ERR_EXISTS there is a node at the destination, or keys such as chunks of a
 * node that was deleted in part
 * @retval ZARR_ERR_INVALID source and destination are the same, or one is inside the
 * other, or a store is read-only, or the source is the root of a store that was opened by
 * a symbolic link; nothing was changed
 * @retval ZARR_ERR_CONFLICT an object, the keys or the metadata of the source changed
 * during the call. If the source is still a node, repeat the call with
 * ZARR_COPY_SKIP_EQUAL and ZARR_COPY_OVERWRITE: it copies what differs. If the source is
 * not a node, the copy is complete, and the changed objects stay at the source.
 * Or, with `os_code` EBUSY, another call changes a node at the source or the destination
 * @retval ZARR_ERR_UNSUPPORTED an array would lose the attribute that its shuffle depends
 * on, as in zarr_node_copy(); nothing was changed
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
    /** leave fill values and attributes `_FillValue` as they are, even if this changes
     * which elements xarray shows as missing */
    ZARR_MIGRATE_KEEP_FILL = 8,
    /** with ZARR_MIGRATE_REMOVE: first remove the nodes from the consolidated metadata of
     * the groups above (ZARR_CONSOLIDATED_REMOVE). Call zarr_group_consolidated_update()
     * afterwards to add them again */
    ZARR_MIGRATE_CONSOLIDATED = 16
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
    /** the new document lacks something that the old one means, as `text` says. Comes
     * after the item of the new document */
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
    /** the new document; the reason why the node was refused or the old document was not
     * deleted; the warning; else NULL */
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
 * documents are beside the existing ones, and describe the stored chunks as they are. If
 * a node has documents in both formats, calls that open it use the v3 document by
 * default. Nothing else may change the metadata during the call.
 *
 * From v2 to v3:
 *
 * - The key encoding becomes "v2".
 * - The order F becomes a transpose codec, and filters and compressor become codecs. The
 *   byte order moves from the data type to the codec `bytes`.
 * - A fill value null becomes the default of the data type.
 * - The attribute _ARRAY_DIMENSIONS becomes the dimension names.
 * - NaN and Infinity without quotes in attributes become strings.
 *
 * From v3 to v2, the array must have:
 *
 * - no shards, a regular grid and the key encoding "v2";
 * - a fill value that v2 can represent bit for bit;
 * - names for all dimensions or for none. The names become the attribute
 *   _ARRAY_DIMENSIONS, which must not exist with another value.
 *
 * xarray and other readers that follow the CF conventions treat arrays with dimension
 * names as variables. They show elements equal to a *missing value* as missing:
 *
 * - In v2 it is the fill value, or the attribute `_FillValue` if the fill value is null.
 * - In v3 it is the attribute `_FillValue`. There a floating-point number is base64 of
 *   the 8 little-endian bytes of a double, and a complex number a list of two such texts.
 *
 * In arrays with dimension names the missing value stays the same, unless
 * ZARR_MIGRATE_KEEP_FILL is set:
 *
 * - To v3, the attribute `_FillValue` is set. Times, text and some other types have no
 *   missing value in v3, which ZARR_MIGRATED_WARNED reports.
 * - To v2 with the attribute, the missing value becomes the fill value, and the attribute
 *   is removed. But if the fill value was zero, missing chunks must still read as zero.
 *   Then the fill value usually becomes null, and the attribute stays, as a plain number.
 * - To v2 without the attribute, the fill value of numbers, text and bytes becomes null,
 *   because xarray would take elements equal to it for missing ones. NaN stays.
 *
 * If missing chunks would read differently with the new fill value, the array is refused,
 * unless the store can list chunks and the array has all of them. zarr_node_reencode()
 * converts an array that is refused.
 *
 * Metadata of OME-Zarr is not moved to the place where readers of the new format look for
 * it. ZARR_MIGRATED_WARNED reports this, and says what to do.
 *
 * A group that has consolidated metadata in the old format gets it in the new one.
 * Members of a v3 document that neither format knows are copied to v2. Members of a v2
 * document that v3 has no place for are not copied; then ZARR_MIGRATE_REMOVE keeps this
 * document and its attributes.
 *
 * All nodes are checked before the first document is written. If the call is interrupted,
 * the nodes can still be read, and the same call continues.
 *
 * Spec: Zarr v3 core, "Array metadata" and "Group metadata"; Zarr v2, "Metadata".
 *
 * @param store borrowed
 * @param path path of the node; "" is the root of the store
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND there is no node
 * @retval ZARR_ERR_UNSUPPORTED the other format cannot describe a node, or only by
 * changing elements of missing chunks; the message names node, member and rule, and
 * nothing was written
 * @retval ZARR_ERR_EXISTS a document of the new format exists with another meaning;
 * nothing was written
 * @retval ZARR_ERR_INVALID the store is read-only, or an option is wrong
 * @retval ZARR_ERR_CONFLICT with `os_code` EBUSY: another call changes the node; nothing
 * was written
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_group_consolidate(), zarr_node_copy()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_migrate(zarr_store *store,
                                                       const char *path,
                                                       const zarr_migrate_options *opts,
                                                       zarr_error *err);

ZARR_END_DECLS

#endif
