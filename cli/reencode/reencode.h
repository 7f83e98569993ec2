/*
 * reencode/reencode.h - the state of zarrc reencode, the regions of its arrays, and their
 * creation.
 */
#ifndef CLI_REENCODE_H
#define CLI_REENCODE_H

#include "node/work.h"

/* The elements of one array that are read. */
struct reencode_region {
    char *path, *shown;
    char *text;                /* the region, as indices; NULL: all of it */
    zarr_selection *selection; /* the same */
};

struct reencode {
    struct cli *cli;
    struct cli_node src, dst;
    struct cli_progress progress;
    const char *phase; /* the name of the current progress; NULL before the first one */
    int rc;            /* the exit code of an error that was already printed */
    zarr_reencode_result result;
    struct reencode_region *regions; /* of all arrays; NULL without region and --dtype */
    size_t n_regions, next;
    const char *rounding, *out_of_range; /* "exact", or words of the codec cast_value */
    void *buffer;                        /* of elements before they are converted */
    uint64_t n_lost;                     /* regions that --skip-damaged left out */
};

/* ---- read.c ---- */

/* Finds the regions of all arrays of the source before anything is written. */
int cli_reencode_regions(struct reencode *r);
void cli_reencode_free(struct reencode *r);
/* That of one array; NULL: there are none. */
const struct reencode_region *cli_reencode_region(struct reencode *r,
                                                  const zarr_array *source);
/* What is read, for zarr_reencode_options.read_text; owned. */
char *cli_reencode_text(const struct reencode *r);
/* For zarr_reencode_options.read. */
zarr_status cli_reencode_read(void *user, zarr_array *source, const uint64_t *start,
                              const zarr_tensor *dst, const zarr_io_options *io,
                              zarr_error *err);
struct reencode_types {
    const zarr_dtype *from, *to;
};
/* Converts *n elements. INVALID: *n is the index of one that has no value in the other
 * type, or the types cannot be converted. */
zarr_status cli_reencode_convert(const struct reencode *r, const struct reencode_types *t,
                                 const void *src, uint64_t *n, void *dst,
                                 zarr_error *err);

/* ---- make.c ---- */

/* For zarr_reencode_options.make: creates an array like the source, changed by the
 * options. Prints its error and sets rc. */
zarr_status cli_reencode_make(void *user, zarr_array *source, zarr_store *target,
                              const char *path, zarr_error *err);

#endif
