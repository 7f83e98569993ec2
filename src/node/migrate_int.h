/*
 * node/migrate_int.h - a migration between its two halves: what migrate.c found
 * and converted, migrate_write.c writes. At home in this room.
 */
#ifndef ZR_NODE_MIGRATE_INT_H
#define ZR_NODE_MIGRATE_INT_H

#include "node/node_int.h"

/* One document of the new format. */
struct zr_new_doc {
    struct zr_json *root; /* NULL: none is wanted */
    uint32_t action;      /* ZARR_MIGRATED_* */
};

struct zr_migrated {
    const char *path; /* from the store's root */
    uint32_t kind;
    bool done;        /* it has a document of the new format only */
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
    zarr_status refused; /* of the first node that was; told with it */
    zarr_error why;
};

zarr_status zr_migration_check_cancel(const struct zr_migration *m, zarr_error *err);
/* text may be NULL. */
void zr_migration_tell(const struct zr_migration *m, const struct zr_migrated *node,
                       uint32_t action, const char *name, const char *text);
/* ".zarray" and so on, of this node in this format. */
const char *zr_migrated_name(const struct zr_migrated *node, int32_t format);
/* Everything there is to write and delete; with DRY_RUN tells it only. */
zarr_status zr_migration_write(struct zr_migration *m, zarr_error *err);

#endif
