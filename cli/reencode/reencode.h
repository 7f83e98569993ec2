/*
 * reencode/reencode.h - the state of zarrc reencode, and the creation of its arrays.
 */
#ifndef CLI_REENCODE_H
#define CLI_REENCODE_H

#include "node/work.h"

struct reencode {
    struct cli *cli;
    struct cli_node src, dst;
    struct cli_progress progress;
    const char *phase; /* the name of the current progress; NULL before the first one */
    int rc;            /* the exit code of an error that was already printed */
    zarr_reencode_result result;
};

/* For zarr_reencode_options.make: creates an array like the source, changed by the
 * options. Prints its error and sets rc. */
zarr_status cli_reencode_make(void *user, zarr_array *source, zarr_store *target,
                              const char *path, zarr_error *err);

#endif
