/*
 * diff/diff.h - what zarrc diff says of the differences that the library finds.
 */
#ifndef CLI_DIFF_H
#define CLI_DIFF_H

#include "node/work.h"

/* One run of zarrc diff. */
struct diff {
    struct cli *cli;
    struct cli_node a, b;
    struct cli_progress progress;
    bool begun;
    /* the pair of nodes under way: */
    bool node_open;   /* its line or object is there */
    bool in_elements; /* JSON: the list of elements is open */
    uint64_t n_shown; /* elements */
};

/* Where the first progress is told, before the first difference. */
void cli_diff_begin(struct diff *d);
void cli_diff_end(struct diff *d, const zarr_diff_result *result);
/* For zarr_diff_options; user is a struct diff. */
int cli_diff_tell(void *user, const zarr_difference *f);
int cli_diff_tell_node(void *user, const zarr_diff_node *node);

#endif
