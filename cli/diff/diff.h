/*
 * diff/diff.h - prints the differences that the library finds for zarrc diff.
 */
#ifndef CLI_DIFF_H
#define CLI_DIFF_H

#include "node/work.h"

/* The state of zarrc diff. */
struct diff {
    struct cli *cli;
    struct cli_node a, b;
    struct cli_progress progress;
    bool begun;
    /* the current pair of nodes: */
    bool node_open;   /* its line or object was begun */
    bool in_elements; /* JSON: the list of elements was begun */
    uint64_t n_shown; /* elements printed */
    /* JSON: the list of what cannot be read */
    struct cli_json *unreadable;
    struct cli_string unreadable_text;
};

/* Begins the output. Call it at the first progress, before any difference. */
void cli_diff_begin(struct diff *d);
/* complete: everything could be read. */
void cli_diff_end(struct diff *d, const zarr_diff_result *result, bool complete);
/* Callbacks for zarr_diff_options; user is a struct diff. */
int cli_diff_tell(void *user, const zarr_difference *f);
int cli_diff_tell_node(void *user, const zarr_diff_node *node);

#endif
