/*
 * reencode/reencode.h - the state of zarrc reencode, the regions of its arrays, and their
 * creation.
 */
#ifndef CLI_REENCODE_H
#define CLI_REENCODE_H

#include "node/work.h"

/* The region of one array, as indices along its dimensions. */
struct reencode_region {
    char *path, *text; /* text NULL: all of it */
};

struct reencode {
    struct cli *cli;
    struct cli_node src, dst;
    struct cli_progress progress;
    const char *phase; /* the name of the current progress; NULL before the first one */
    int rc;            /* the exit code of an error that was already printed */
    zarr_reencode_result result;
    struct reencode_region *regions; /* of all arrays; NULL: no region was given */
    size_t n_regions, next;
    uint32_t rules; /* of zarr_dtype_cast() */
};

/* Finds the regions of all arrays of the source before anything is written. */
int cli_reencode_regions(struct reencode *r);
void cli_reencode_free(struct reencode *r);
/* For zarr_reencode_options.select. */
const char *cli_reencode_select(void *user, const zarr_array *source);

/* For zarr_reencode_options.make: creates an array like the source, changed by the
 * options. Prints its error and sets rc. */
zarr_status cli_reencode_make(void *user, zarr_array *source, const uint64_t *shape,
                              zarr_store *target, const char *path, zarr_error *err);

#endif
