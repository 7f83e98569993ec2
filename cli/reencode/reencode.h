/*
 * reencode/reencode.h - what options make of each array that zarrc reencode writes.
 */
#ifndef CLI_REENCODE_H
#define CLI_REENCODE_H

#include "node/work.h"

struct reencode {
    struct cli *cli;
    struct cli_node src, dst;
    struct cli_progress progress;
    const char *phase; /* what the progress is called; NULL: it has not begun */
    int rc;            /* of a failure that has been told already */
    zarr_reencode_result result;
};

/* For zarr_reencode_options.make: the source with the options laid over it. What is wrong
 * is told, and in rc. */
zarr_status cli_reencode_make(void *user, zarr_array *source, zarr_store *target,
                              const char *path, zarr_error *err);

#endif
