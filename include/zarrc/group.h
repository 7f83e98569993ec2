/**
 * @file
 * Groups and the hierarchy: open, create, list and walk; attributes; consolidated
 * metadata. zarrc/node.h copies, moves, deletes and migrates nodes.
 */
#ifndef ZARRC_GROUP_H
#define ZARRC_GROUP_H

#include <zarrc/array.h>
#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

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
    /** stops the opening with ZARR_ERR_CANCELLED once it is set; borrowed for the call;
     * may be NULL. zarr_group_create() uses the one of `zarr_group_spec` */
    const zarr_cancel *cancel;
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
    /** once it is set, the call ends with ZARR_ERR_CANCELLED if it waits for another call
     * at the path or deletes an old node; may be NULL */
    const zarr_cancel *cancel;
} zarr_group_spec;

#define ZARR_GROUP_SPEC_INIT ZARR_SIZE_FIRST(zarr_group_spec)

/** Flags of zarr_group_spec. If an interrupted delete or copy left objects at the path,
 * the call fails with ZARR_ERR_EXISTS, unless ZARR_GROUP_OVERWRITE is set. */
enum {
    /** delete a node at the path first, with everything below it, as ZARR_SPEC_OVERWRITE
     */
    ZARR_GROUP_OVERWRITE = 1,
    ZARR_GROUP_NO_PARENTS = 2, /**< do not create parent groups that are missing */
    /** if a group exists, open it, whatever its attributes. If `zarr_format` is not 0, it
     * must be the group's format */
    ZARR_GROUP_IF_MISSING = 8,
    /** as ZARR_SPEC_CLAIM, until zarr_group_release_claim(), so that a group and its
     * first members come from one caller. Does not claim the members */
    ZARR_GROUP_CLAIM = 128,
    /** with ZARR_GROUP_OVERWRITE: as ZARR_SPEC_CONSOLIDATED */
    ZARR_GROUP_CONSOLIDATED = 256
};

/**
 * Creates a group and opens it. Parent groups that are missing are created, too. Calls
 * that create a node at one path at the same time wait for each other, as
 * zarr_array_create() says.
 *
 * Spec: Zarr v3 core, "Group metadata" and "Node names"; Zarr v2, "Groups".
 *
 * @param out receives the group; owned: zarr_group_free()
 * @param store borrowed; the group keeps it alive
 * @param path path of the group, such as "a/b"; "" is the root of the store
 * @param spec describes the group; NULL: a v3 group without attributes
 * @param opts options of the handle; its format is that of `spec`. NULL: defaults
 * @retval ZARR_ERR_EXISTS there is a node at the path, or what an interrupted call left
 * of one, and no flag allows that
 * @retval ZARR_ERR_INVALID the path, the format, the attributes or an option is wrong, or
 * the store is read-only
 * @retval ZARR_ERR_UNSUPPORTED a flag is unknown, or the store cannot write
 * @see zarr_group_open(), zarr_array_create(), zarr_group_attribute_set()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_create(
    zarr_group **out, zarr_store *store, const char *path, const zarr_group_spec *spec,
    const zarr_group_open_options *opts, zarr_error *err);

/**
 * Releases the claim of ZARR_GROUP_CLAIM. The claim also ends when the group is freed;
 * `.zarrc-job` then stays.
 * @param group may have no claim
 * @param is_complete 1: the group has its members, and `.zarrc-job` is deleted; 0: it
 * stays
 * @param cancel once it is set, the call does not wait for the store; may be NULL
 * @retval ZARR_ERR_IO `.zarrc-job` could not be deleted; the claim is released
 * @retval ZARR_ERR_CANCELLED `cancel` was set, and `.zarrc-job` may be there; the claim
 * is released
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_release_claim(zarr_group *group,
                                                              int is_complete,
                                                              const zarr_cancel *cancel,
                                                              zarr_error *err);

/**
 * Frees a group.
 * @param group may be NULL
 */
ZARR_API void zarr_group_free(zarr_group *group);

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
 * The path is relative to the group and may have several parts. A handle that answers
 * from consolidated metadata (zarr_group_is_consolidated()) opens nodes from it, without
 * a read, and finds no other nodes. The options of the new handle can forbid or demand
 * this (ZARR_CONSOLIDATED_NEVER, ZARR_CONSOLIDATED_MUST). If a call reads the node from
 * the store instead, and no option tells the format, it looks for the group's format
 * first.
 * @{
 */
/**
 * Opens an array below a group.
 * @param out receives the array; owned: zarr_array_free()
 * @param group borrowed
 * @param path path below the group
 * @param opts options of the array handle; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND there is no array; or `opts` demands consolidated metadata,
 * and the group has none
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
 * @retval ZARR_ERR_NOT_FOUND there is no group; or `opts` demands consolidated metadata,
 * and the group above has none
 * @retval ZARR_ERR_CORRUPT the metadata breaks the rules of the format
 * @see zarr_group_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_open_group(zarr_group **out, zarr_group *group, const char *path,
                      const zarr_group_open_options *opts, zarr_error *err);
/**
 * Opens the array or the group below a group.
 * @param array,group one receives the node, the other NULL; owned: zarr_array_free(),
 * zarr_group_free()
 * @param parent borrowed
 * @param path path below `parent`
 * @param array_opts,group_opts as for zarr_node_open(). `consolidated` of `group_opts` is
 * used, or that of `array_opts` if `group_opts` is NULL
 * @retval ZARR_ERR_NOT_FOUND there is no node; or the options demand consolidated
 * metadata, and `parent` has none
 * @retval ZARR_ERR_CORRUPT the metadata breaks the rules of the format
 * @retval ZARR_ERR_UNSUPPORTED this build lacks something that the metadata names
 * @see zarr_node_open()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_open_node(zarr_array **array, zarr_group **group, zarr_group *parent,
                     const char *path, const zarr_array_open_options *array_opts,
                     const zarr_group_open_options *group_opts, zarr_error *err);
/** @} */

/**
 * @name Attributes of a group
 * Calls that get an attribute read the handle. A call that changes an attribute changes
 * the document in the store, under its lock. Changes by other handles are kept, and this
 * handle has them afterwards. Consolidated metadata does not change.
 * zarr_group_attributes() returns all attributes at once.
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
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_INVALID `json` is not JSON, or the store is read-only
 * @retval ZARR_ERR_CONFLICT the group was replaced by an array
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_set(zarr_group *group,
                                                              const char *name,
                                                              const char *json,
                                                              const zarr_cancel *cancel,
                                                              zarr_error *err);
/**
 * Deletes one attribute.
 * @param group borrowed
 * @param name name of the attribute
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_NOT_FOUND there is no such attribute
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_delete(
    zarr_group *group, const char *name, const zarr_cancel *cancel, zarr_error *err);
/**
 * Sets several attributes at once.
 * @param group borrowed
 * @param json_object JSON object whose members are set
 * @param replace_all 0: other attributes stay; 1: other attributes are deleted
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_INVALID `json_object` is not a JSON object, or the store is read-only
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_attributes_merge(zarr_group *group, const char *json_object, int replace_all,
                            const zarr_cancel *cancel, zarr_error *err);
/** @} */

/** One node of a listing. Its texts live until the function that receives it returns, or
 * in a `zarr_members` (zarrc/easy.h) as long as the list. */
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

/** Bits of `zarr_list_options.flags`. */
enum {
    /** if a single node cannot be read, because a permission is missing or a block of the
     * disk is bad, report it with the kind ZARR_NODE_NONE and go on. A group whose
     * members cannot be listed is reported twice: as a group, then with the kind
     * ZARR_NODE_NONE. Without this flag the call fails */
    ZARR_MEMBERS_GO_ON = 1
};

/** Options of zarr_group_list() and zarr_group_walk(). */
typedef struct zarr_list_options {
    uint32_t struct_size;
    uint32_t flags; /**< ZARR_MEMBERS_GO_ON or 0 */
    /** stops the call with ZARR_ERR_CANCELLED once it is set; borrowed; may be NULL */
    zarr_cancel *cancel;
} zarr_list_options;

#define ZARR_LIST_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_list_options)

/**
 * Lists the direct children of a group, sorted by name. A directory without metadata is
 * not a node and is left out. A node whose metadata is damaged has the kind
 * ZARR_NODE_NONE. A handle that answers from consolidated metadata lists the nodes in it,
 * without a read.
 *
 * @param group borrowed
 * @param fn called for each child
 * @param user passed to `fn`
 * @param opts options; NULL: defaults
 * @return ZARR_OK, also when `fn` ended the listing
 * @retval ZARR_ERR_UNSUPPORTED the store cannot list, and no group at or above this one
 * has consolidated metadata that names what is below it
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
 * whose metadata is damaged has the kind ZARR_NODE_NONE, and the walk goes on.
 *
 * @param group borrowed
 * @param fn called for each node
 * @param user passed to `fn`
 * @param opts options; NULL: defaults
 * @return ZARR_OK, also when `fn` ended the walk
 * @retval ZARR_ERR_UNSUPPORTED the store cannot list, and no group at or above this one
 * has consolidated metadata that names what is below it
 * @retval ZARR_ERR_LIMIT the walk finds more names than `zarr_limits.listing_keys`, or
 * more directories behind symbolic links than `zarr_limits.linked_directories`
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_group_list()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_walk(zarr_group *group, zarr_node_fn fn,
                                                     void *user,
                                                     const zarr_list_options *opts,
                                                     zarr_error *err);

ZARR_END_DECLS

#endif
