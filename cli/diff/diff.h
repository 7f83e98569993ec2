/*
 * diff/diff.h - one run of zarrc diff, split over diff/nodes.c (what nodes are),
 * diff/elements.c (what is in arrays), diff/stored.c (where it can be), diff/report.c
 * (both kinds of output) and cmd_diff.c.
 */
#ifndef CLI_DIFF_H
#define CLI_DIFF_H

#include "node/work.h"

struct diff {
    struct cli *cli;
    struct cli_node a, b;
    uint64_t limit; /* elements to show of each array */
    double rtol, atol;
    bool tolerant, nan_differs, storage, data_only, ignore_attributes;
    uint64_t n_nodes, n_different; /* different: nodes */
    struct cli_progress progress;
    uint64_t done_bytes;
};

/* Elements of two arrays of one type and shape. */
struct diff_elements {
    uint64_t n_compared, n_different, n_shown;
    double largest; /* of |a - b|; negative: of what is no number */
    uint64_t largest_at[ZARR_MAX_RANK];
};

/* A pair of nodes under work. */
struct diff_pair {
    struct diff *d;
    const char *path; /* below both, "" for the top */
    char *shown_a, *shown_b;
    zarr_array *a, *b;
    uint64_t n_facts; /* differences of what is not elements */
    bool in_elements; /* JSON: the list of elements is open */
    /* What is compared: whole elements or --field's, of both; a subarray's dimensions
     * stand behind those of the regions. */
    struct cli_field field[2];
    int32_t ndim; /* of positions that are shown */
    struct diff_elements elements;
};

/* ---- diff/report.c ---- */

void cli_diff_begin(struct diff *d);
void cli_diff_end(struct diff *d);
/* A property with its two values; JSON: json texts where is_json. NULL: has none. */
void cli_diff_fact(struct diff_pair *p, const char *what, const char *a, const char *b,
                   bool is_json);
/* A node that only one has: 'a' or 'b'. */
void cli_diff_only(struct diff *d, const char *path, char side);
void cli_diff_element(struct diff_pair *p, const uint64_t *at, const void *a,
                      const void *b);
void cli_diff_pair_begin(struct diff_pair *p);
/* Counts the pair as different where it is. */
void cli_diff_pair_end(struct diff_pair *p);

/* ---- diff/nodes.c ---- */

/* What both are: kind, shape, type, fill value, names, attributes; with --storage also
 * chunks, codecs, format. */
void cli_diff_arrays(struct diff_pair *p);
void cli_diff_attributes(struct diff_pair *p, const char *a, const char *b);

/* ---- diff/stored.c ---- */

/* The chunks that either array has stored, where they differ in no other and are few;
 * false: look at all. */
bool cli_diff_stored(const struct diff_pair *p, struct cli_chunks *out);

/* ---- diff/elements.c ---- */

/* sa, sb: regions of the arrays, of one shape. */
int cli_diff_elements(struct diff_pair *p, const zarr_selection *sa,
                      const zarr_selection *sb);

#endif
