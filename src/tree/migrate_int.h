/*
 * tree/migrate_int.h - a migration between its parts: what migrate.c found and
 * converted and migrate_old.c compared, migrate_write.c writes. At home in this room.
 */
#ifndef ZR_TREE_MIGRATE_INT_H
#define ZR_TREE_MIGRATE_INT_H

#include "tree/tree.h"

/* One document of the new format. */
struct zr_new_doc {
    struct zr_json *root; /* NULL: none is wanted */
    uint32_t action;      /* ZARR_MIGRATED_* */
};

struct zr_migrated {
    const char *path; /* from the store's root */
    uint32_t kind;
    bool done;        /* it has a document of the new format only */
    bool stray;       /* done, but its .zattrs says something else: that stays */
    bool more;        /* its v2 document has members that v3 cannot say: it stays */
    bool consolidate; /* a group with consolidated metadata in either format */
    struct zr_new_doc attributes; /* v2; written first */
    struct zr_new_doc document;
};

struct zr_migration {
    zarr_store *store;
    const zarr_context *ctx;
    zarr_migrate_options opts;
    int32_t from, to;
    struct zr_json_doc made;  /* holds the new documents and the paths */
    struct zr_migrated *node; /* parents before children */
    size_t n, cap;
    uint64_t seen;       /* names, for the limit */
    zarr_status refused; /* of the first node that was; told with it */
    zarr_error why;
};

static inline bool zr_has_consolidated(const struct zr_json *root)
{
    return zr_json_is(zr_json_get(root, "consolidated_metadata"), ZR_JSON_OBJECT);
}
zarr_status zr_migration_check_cancel(const struct zr_migration *m, zarr_error *err);
/* text may be NULL. */
void zr_migration_tell(const struct zr_migration *m, const struct zr_migrated *node,
                       uint32_t action, const char *name, const char *text);
zarr_status zr_migration_is_there(const struct zr_migration *m, const char *path,
                                  const char *name, bool *there, zarr_error *err);
/* What is to be done with this new document. EXISTS: another is there. */
zarr_status zr_migration_judge(const struct zr_migration *m, struct zr_migrated *node,
                               struct zr_new_doc *doc, const char *name, zarr_error *err);
/* A node that is done, with this document: whether its old attributes may go. */
zarr_status zr_migration_judge_stray(struct zr_migration *m, struct zr_migrated *node,
                                     const struct zr_json *root, zarr_error *err);
zarr_status zr_migration_check_kind(const struct zr_migration *m,
                                    const struct zr_migrated *node, zarr_error *err);
/* Everything there is to write and delete; with DRY_RUN tells it only. */
zarr_status zr_migration_write(struct zr_migration *m, zarr_error *err);

#endif
