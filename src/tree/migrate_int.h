/*
 * tree/migrate_int.h - a migration under way. migrate.c finds and converts the nodes,
 * migrate_missing.c keeps missing values, migrate_compare.c compares with what is already
 * there, migrate_write.c writes. Only for
 * this room.
 */
#ifndef ZR_TREE_MIGRATE_INT_H
#define ZR_TREE_MIGRATE_INT_H

#include "tree/tree.h"

/* One document of the new format. */
struct zr_new_doc {
    struct zr_json *root; /* NULL: the document is not needed */
    uint32_t action;      /* ZARR_MIGRATED_* */
};

struct zr_migrated {
    const char *path; /* path from the store's root */
    uint32_t kind;
    bool done;  /* it already has a document of the new format, and no other */
    bool stray; /* done, but its .zattrs has other attributes, so that file stays */
    /* its v2 document has members that v3 cannot express, so that file stays */
    bool more;
    const char *lost; /* what of its meaning is lost; NULL: nothing */
    bool consolidate; /* a group that has consolidated metadata in either format */
    struct zr_new_doc attributes; /* v2; written first */
    struct zr_new_doc document;
};

struct zr_migration {
    zarr_store *store;
    const zarr_context *ctx;
    zarr_migrate_options opts;
    int32_t from, to;
    struct zr_json_doc made;  /* owns the new documents and the paths */
    struct zr_migrated *node; /* parents before children */
    size_t n, cap;
    struct zr_seen seen; /* for the limits */
    bool ome_told;       /* a group above has the warning about OME-Zarr */
    zarr_status refused; /* status of the first refused node; `why` is its error */
    zarr_error why;
};

static inline bool zr_has_consolidated(const struct zr_json *root)
{
    return zr_json_is(zr_json_get(root, "consolidated_metadata"), ZR_JSON_OBJECT);
}
zarr_status zr_migration_check_cancel(const struct zr_migration *m, zarr_error *err);
/* Reports an action to the caller. text may be NULL. */
void zr_migration_tell(const struct zr_migration *m, const struct zr_migrated *node,
                       uint32_t action, const char *name, const char *text);
zarr_status zr_migration_is_there(const struct zr_migration *m, const char *path,
                                  const char *name, bool *there, zarr_error *err);
/* Decides what to do with this new document. EXISTS: a different one is there. */
zarr_status zr_migration_judge(const struct zr_migration *m, struct zr_migrated *node,
                               struct zr_new_doc *doc, const char *name, zarr_error *err);
/* For a node that is done and has this document: decides whether its old attributes may
 * be deleted. */
zarr_status zr_migration_judge_stray(struct zr_migration *m, struct zr_migrated *node,
                                     const struct zr_json *root, zarr_error *err);
zarr_status zr_migration_check_kind(const struct zr_migration *m,
                                    const struct zr_migrated *node, zarr_error *err);
/* Changes the node's new documents so that the missing value of this array, the node
 * before the migration, stays. UNSUPPORTED: elements of missing chunks would change. */
zarr_status zr_migration_keep_missing(struct zr_migration *m, struct zr_migrated *node,
                                      zarr_array *array, zarr_error *err);
/* Writes and deletes everything. With DRY_RUN only reports it. */
zarr_status zr_migration_write(struct zr_migration *m, zarr_error *err);

#endif
