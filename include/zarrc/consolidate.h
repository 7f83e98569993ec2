/**
 * @file
 * Consolidated metadata: write it, bring it up to date, compare it.
 */
#ifndef ZARRC_CONSOLIDATE_H
#define ZARRC_CONSOLIDATE_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/**
 * @name Consolidated metadata
 * Consolidated metadata is a copy of the metadata of all nodes below a group, in one
 * document of the group. A reader opens all of them with one read. Other calls do not
 * update the copy: a program that changes nodes consolidates again, or calls
 * zarr_group_consolidated_update(). In v2 the copy is in the document .zmetadata, in v3
 * in the member `consolidated_metadata` of the group's zarr.json.
 * @{
 */
/** Flags of zarr_consolidate_options. */
enum {
    /** zarr_group_consolidated_update(): also all nodes below the path */
    ZARR_CONSOLIDATED_BELOW = 1,
    /** zarr_group_consolidated_update(): remove the entries of the node at the path and
     * of all nodes below it. Call it before the node is deleted, replaced or renamed.
     * Calls that do so have a flag that includes this step: ZARR_DELETE_CONSOLIDATED,
     * ZARR_COPY_CONSOLIDATED, ZARR_REENCODE_CONSOLIDATED, ZARR_MIGRATE_CONSOLIDATED,
     * ZARR_RESIZE_CONSOLIDATED, ZARR_SPEC_CONSOLIDATED and ZARR_GROUP_CONSOLIDATED */
    ZARR_CONSOLIDATED_REMOVE = 2
};

/** Options of calls for consolidated metadata. */
typedef struct zarr_consolidate_options {
    /** `flags`: ZARR_CONSOLIDATED_BELOW, ZARR_CONSOLIDATED_REMOVE or 0 */
    uint32_t struct_size, flags;
    /** zarr_group_consolidate() of a v2 group: another name for the document; NULL: the
     * `consolidated_key` that the group was opened with, or ".zmetadata". Must be NULL in
     * other calls and for v3 groups */
    const char *key;
    /** stops the call with ZARR_ERR_CANCELLED once it is set; borrowed; may be NULL */
    zarr_cancel *cancel;
} zarr_consolidate_options;

#define ZARR_CONSOLIDATE_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_consolidate_options)

/**
 * Writes the consolidated metadata of a group, in one step. It contains all nodes that
 * the store has below the group. The handle does not change: open the group again to use
 * the new consolidated metadata.
 *
 * @param group borrowed
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND the store has no such group any more
 * @retval ZARR_ERR_INVALID `key` has a slash, is the name of another document, or is
 * given for a v3 group; or the store is read-only
 * @retval ZARR_ERR_EXISTS the object under `key` is not consolidated metadata
 * @retval ZARR_ERR_CORRUPT the metadata of a node is damaged
 * @retval ZARR_ERR_CANCELLED `cancel` was set; the group has its old metadata or the new
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_group_is_consolidated(), zarr_group_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_consolidate(
    zarr_group *group, const zarr_consolidate_options *opts, zarr_error *err);
/**
 * Brings consolidated metadata up to date after a node was created, changed or deleted.
 * The call replaces the entry of the node in the consolidated metadata of each group
 * above by the documents in the store. If there are none, it removes the entry. It adds
 * entries of parents that have none. In a local store, the groups above include those
 * above the root of the store. A program that changes many nodes calls this once at the
 * end (ZARR_CONSOLIDATED_BELOW), or calls zarr_group_consolidate().
 *
 * A program that deletes, replaces or renames a node removes its entries first
 * (ZARR_CONSOLIDATED_REMOVE). Otherwise readers of consolidated metadata read fill values
 * in place of the missing chunks until this call.
 *
 * @param store borrowed
 * @param path path of the node, which need not exist any more; "" is the root
 * @param n_updated becomes the number of groups with consolidated metadata that were
 * found; may be NULL
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_CORRUPT consolidated metadata, or metadata of the node, is damaged
 * @retval ZARR_ERR_UNSUPPORTED consolidated metadata has an unknown form
 * @retval ZARR_ERR_INVALID the store is read-only, or `key` is given
 * @retval ZARR_ERR_CANCELLED `cancel` was set; some groups may be up to date
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_group_consolidate(), zarr_group_consolidated_check()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_consolidated_update(zarr_store *store, const char *path, uint64_t *n_updated,
                               const zarr_consolidate_options *opts, zarr_error *err);
/**
 * Compares the consolidated metadata of a group, as it is in the store now, with the
 * metadata of its nodes.
 * @param group borrowed; in v2 its `consolidated_key` names the document
 * @param fn called for each difference, with the path of the node and a sentence; a
 * non-zero return ends the comparison
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
