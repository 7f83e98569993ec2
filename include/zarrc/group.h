/*
 * zarrc/group.h - groups and the hierarchy: open, create, list, walk, copy,
 * move, delete; attributes; consolidated metadata. A handle is frozen.
 * Paths are relative to the store's root, "a/b"; "" and "/" are the root.
 */
#ifndef ZARRC_GROUP_H
#define ZARRC_GROUP_H

#include <zarrc/array.h>
#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/store.h>

ZARR_BEGIN_DECLS

typedef struct zarr_group zarr_group;

enum {
    ZARR_NODE_NONE = 0,
    ZARR_NODE_ARRAY = 1,
    ZARR_NODE_GROUP = 2
};

typedef struct zarr_group_open_options {
    uint32_t struct_size, flags;
    int32_t zarr_format;   /**< 2, 3; 0: found, v3 first */
    uint32_t consolidated; /**< ZARR_CONSOLIDATED_*; default AUTO */
    /** v2: another name for ".zmetadata"; copied; NULL: that */
    const char *consolidated_key;
} zarr_group_open_options;

#define ZARR_GROUP_OPEN_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_group_open_options)

/**
 * @param out owned: zarr_group_free(). NOT_FOUND: no group there (the text says if there
 * is an array).
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_open(zarr_group **out, zarr_store *store,
                                                     const char *path,
                                                     const zarr_group_open_options *opts,
                                                     zarr_error *err);

enum {
    ZARR_GROUP_OVERWRITE = 1, /**< as ZARR_SPEC_OVERWRITE */
    ZARR_GROUP_NO_PARENTS = 2,
    ZARR_GROUP_IF_MISSING = 8
};

/**
 * Creates a group and missing parents, and opens it. attributes: JSON object or NULL;
 * zarr_format 0: 3.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_create(
    zarr_group **out, zarr_store *store, const char *path, int32_t zarr_format,
    const char *attributes, uint32_t flags, zarr_error *err);
ZARR_API zarr_group *zarr_group_ref(zarr_group *group);
ZARR_API void zarr_group_free(zarr_group *group);

/* What it is: good as long as the handle, also when it is changed meanwhile. Texts are
 * made when first asked for; NULL: no memory. */
ZARR_API int32_t zarr_group_zarr_format(const zarr_group *group);
ZARR_API const char *zarr_group_path(const zarr_group *group);
/** 1 when children are answered from consolidated metadata. */
ZARR_API int zarr_group_is_consolidated(const zarr_group *group);
ZARR_API const char *zarr_group_metadata(const zarr_group *group);
ZARR_API const char *zarr_group_attributes(const zarr_group *group);
ZARR_API zarr_store *zarr_group_store(const zarr_group *group);

/**
 * Opens a child (path relative to the group), from consolidated metadata where the group
 * has it.
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_open_array(zarr_array **out, zarr_group *group, const char *path,
                      const zarr_array_open_options *opts, zarr_error *err);
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_open_group(zarr_group **out, zarr_group *group, const char *path,
                      const zarr_group_open_options *opts, zarr_error *err);

ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_get(const zarr_group *group,
                                                              const char *name,
                                                              char *text, size_t cap,
                                                              size_t *text_bytes,
                                                              zarr_error *err);
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_set(zarr_group *group,
                                                              const char *name,
                                                              const char *json,
                                                              zarr_error *err);
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_delete(zarr_group *group,
                                                                 const char *name,
                                                                 zarr_error *err);
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attributes_merge(zarr_group *group,
                                                                 const char *json_object,
                                                                 int replace_all,
                                                                 zarr_error *err);

/** One node of a listing; texts borrowed for the call. */
typedef struct zarr_node_item {
    uint32_t struct_size;
    uint32_t kind;    /**< ZARR_NODE_* */
    const char *path; /**< from the store's root */
    const char *name; /**< last segment */
    int32_t zarr_format;
    int32_t depth; /**< 1: a direct child */
    /** its document's text (v2: .zarray or .zgroup), attributes not merged in */
    const char *metadata;
} zarr_node_item;

/**
 * Non-zero stops; for zarr_group_walk() ZARR_WALK_SKIP leaves out what is below this
 * group.
 */
typedef int (*zarr_node_fn)(void *user, const zarr_node_item *node);
enum {
    ZARR_WALK_GO_ON = 0,
    ZARR_WALK_STOP = 1,
    ZARR_WALK_SKIP = 2
};

/** Direct children, sorted by name. A prefix without metadata is no node. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_list(zarr_group *group, zarr_node_fn fn,
                                                     void *user, zarr_error *err);
/**
 * All nodes below, parents before children, sorted by name. Iterative; a broken node is
 * reported through its kind NONE and goes on.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_walk(zarr_group *group, zarr_node_fn fn,
                                                     void *user, zarr_error *err);

/* ---- nodes by path -------------------------------------------------------- */

/** What is at path: *kind is ZARR_NODE_*, *zarr_format 2, 3 or 0.
 * A broken document is an error that leaves its format there and kind NONE. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_probe(zarr_store *store, const char *path,
                                                     uint32_t *kind, int32_t *zarr_format,
                                                     zarr_error *err);
/**
 * Deletes a node and everything below it; can be called again after a failure. Of a
 * symlink to a node only the link. NOT_FOUND when there is neither a node nor what such a
 * failure left.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_delete(zarr_store *store, const char *path,
                                                      zarr_error *err);

enum {
    ZARR_COPY_OVERWRITE = 1,
    ZARR_COPY_SKIP_EQUAL =
        2 /**< leave objects alone that are there with equal bytes: resumes a copy */
};

typedef struct zarr_copy_options {
    uint32_t struct_size, flags; /**< ZARR_COPY_* */
    uint32_t max_threads, reserved;
    /** one thread at a time, with no lock held; numbers rise, not each is told */
    void (*progress)(void *user, uint64_t objects_done, uint64_t bytes_done);
    void *progress_user;
    const int *cancel; /**< polled; non-zero: stop with CANCELLED; NULL: never */
} zarr_copy_options;

#define ZARR_COPY_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_copy_options)

/**
 * Copies a node with everything below it byte for byte, between any stores; metadata
 * last. Missing parents are created. INVALID, with nothing changed and whatever the
 * flags, where source and destination are one place or one is inside the other, as
 * zarr_store_overlap() knows it.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_copy(zarr_store *src, const char *src_path,
                                                    zarr_store *dst, const char *dst_path,
                                                    const zarr_copy_options *opts,
                                                    zarr_error *err);
/**
 * Moves a node with everything below it. Inside one store that can rename (local, memory)
 * it is one step once the destination is free: a reader finds the whole node here or
 * there; symlinks below move as they are; progress is not called. Else (between stores or
 * disks, or where something lies at the destination already) it is a copy, and the source
 * is deleted once everything is there. Nobody may write below the source meanwhile.
 * INVALID as zarr_node_copy() says it.
 * Consolidated metadata of parents is left as it is.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_move(zarr_store *src, const char *src_path,
                                                    zarr_store *dst, const char *dst_path,
                                                    const zarr_copy_options *opts,
                                                    zarr_error *err);

/* ---- metadata of the other format ------------------------------------------ */

enum {
    ZARR_MIGRATE_DRY_RUN =
        1, /**< check everything, tell what would be done, write nothing */
    ZARR_MIGRATE_OVERWRITE =
        2, /**< replace documents of the new format that say something else */
    ZARR_MIGRATE_REMOVE = 4 /**< delete the documents of the old format afterwards */
};

enum {
    ZARR_MIGRATED_WRITTEN = 1,
    ZARR_MIGRATED_REPLACED = 2,
    ZARR_MIGRATED_KEPT = 3, /**< it was there already and says the same */
    ZARR_MIGRATED_CONSOLIDATED = 4,
    ZARR_MIGRATED_REMOVED = 5,
    ZARR_MIGRATED_REFUSED =
        6, /**< this node has no form in the other format: nothing is written */
    ZARR_MIGRATED_LEFT =
        7 /**< of the old format, but not what the new documents say: not removed */
};

/** What was done (with DRY_RUN: would be) with one document; texts borrowed for the call.
 */
typedef struct zarr_migrate_item {
    uint32_t struct_size;
    uint32_t action; /**< ZARR_MIGRATED_* */
    uint32_t kind;   /**< of the node: ZARR_NODE_* */
    uint32_t reserved;
    const char *path; /**< of the node, from the store's root */
    const char *key;  /**< of the document, from the store's root; REFUSED: NULL */
    const char *text; /**< WRITTEN, REPLACED: the document; REFUSED, LEFT: why; else
                         NULL */
} zarr_migrate_item;

typedef struct zarr_migrate_options {
    uint32_t struct_size, flags; /**< ZARR_MIGRATE_* */
    int32_t zarr_format;         /**< of the new documents: 2 or 3; 0: 3 */
    uint32_t reserved;
    void (*tell)(void *user, const zarr_migrate_item *item); /**< may be NULL */
    void *user;
    const int *cancel; /**< polled; non-zero: stop with CANCELLED; NULL: never */
} zarr_migrate_options;

#define ZARR_MIGRATE_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_migrate_options)

/**
 * Writes the metadata of the node at path and of all nodes below it in the other format,
 * beside the documents that are there (v3 wins where a node has both). No chunk is read
 * or written: the new documents describe the stored chunks as they lie. v2 to v3: the key
 * encoding is "v2", order F a transpose, filters and compressor codecs, the data type's
 * byte order that of `bytes`; a null fill value becomes the type's default,
 * _ARRAY_DIMENSIONS the dimension names. v3 to v2 goes where v2 can say it: no shards, a
 * regular grid, key encoding "v2", a fill value that is the same bit by bit (v2 has one
 * NaN), dimension names that are all there or all null, and no other _ARRAY_DIMENSIONS
 * beside them; a scalar gets the empty list, without which xarray takes it for no
 * variable. An attribute _ARRAY_DIMENSIONS of a v3 array without names stays an
 * attribute, which v2 readers take for the names: migrated back it is dimension_names.
 * Bare NaN and Infinity in v2 attributes are no JSON; in v3 they are the strings "NaN"
 * and "Infinity". Groups that have consolidated metadata in the old format get it in the
 * new one. Members of v3 documents that neither format knows are copied into those of v2,
 * which may have any; v3 has no place for those of v2: with REMOVE such a document and
 * the attributes beside it stay (LEFT).
 *
 * The whole tree is converted and checked before the first document is written. Documents
 * are written below before above, each in one piece, then those of the old format are
 * deleted if asked for. Beside a node that was of the new format before, .zmetadata
 * stays, and so does a .zattrs that says something else (LEFT). Stopped at any moment,
 * the tree can be read, and the same call goes on. Nobody may change the metadata
 * meanwhile.
 * @return UNSUPPORTED what the other format cannot say; EXISTS a document of the new
 * format that says something else; the text names node, field and rule. Nothing is
 * written then.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_migrate(zarr_store *store,
                                                       const char *path,
                                                       const zarr_migrate_options *opts,
                                                       zarr_error *err);

/**
 * Writes consolidated metadata of the group at path (v2: .zmetadata or `key`; v3: inside
 * zarr.json), last and atomically. Bare NaN and Infinity, which are no JSON, become the
 * strings "NaN" and "Infinity" in it.
 * INVALID: a key with '/', or of another document; EXISTS: something that is no
 * consolidated metadata is there under that key.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_consolidate(zarr_store *store,
                                                            const char *path,
                                                            const char *key,
                                                            zarr_error *err);
/**
 * Compares consolidated with real metadata; fn gets the path and a sentence for each
 * difference. A bare NaN or Infinity and its string are none.
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_consolidated_check(zarr_store *store, const char *path,
                              int (*fn)(void *user, const char *path, const char *what),
                              void *user, zarr_error *err);

ZARR_END_DECLS

#endif
