/*
 * reencode/reencode.h - one run of zarrc reencode, split over reencode/plan.c (what the
 * destination shall be, and what is there already), reencode/array.c (the
 * elements of one array), reencode/box.c and reencode/sparse.c (in which boxes)
 * and cmd_reencode.c.
 */
#ifndef CLI_REENCODE_H
#define CLI_REENCODE_H

#include "node/work.h"
#include "spec/spec.h"

#define CLI_JOB_NAME ".zarrc-job"

enum {
    REENCODE_START,   /* nothing is there */
    REENCODE_GO_ON,   /* an interrupted run of the same command is there */
    REENCODE_COMPLETE /* all of it is there */
};

struct reencode {
    struct cli *cli;
    struct cli_node src, dst;
    struct cli_tree tree;  /* of src */
    zarr_store *target;    /* in memory: the documents that dst shall have */
    struct cli_string job; /* text of the job object */
    int state;             /* REENCODE_* */
    struct cli_progress progress;
    uint64_t done_bytes, skipped_bytes, total_bytes; /* decoded; UINT64_MAX: or more */
    uint64_t empty_bytes;                   /* of done_bytes, where nothing is stored */
    uint64_t n_arrays, n_groups, n_written; /* n_written: objects */
    bool verified;
};

/* ---- reencode/plan.c ---- */

/* Fills target and job. */
int cli_reencode_plan(struct reencode *r);
/* Looks at what is at the destination: sets state, or says why it cannot be. */
int cli_reencode_begin(struct reencode *r);
/* Puts the documents where they belong, the top's own last, and ends the job. */
int cli_reencode_finish(struct reencode *r);

/* ---- reencode/array.c ---- */

/* Source and destination of one array; the latter has its chunks in dst's store, its
 * document in target. */
struct reencode_pair {
    zarr_array *src, *dst;
    char *shown;
};
int cli_reencode_open(struct reencode *r, size_t item, struct reencode_pair *out);
void cli_reencode_close(struct reencode_pair *pair);
/* Writes the objects that are not there yet. */
int cli_reencode_array(struct reencode *r, const struct reencode_pair *pair);
/* Reads both and compares every bit; CLI_DIFFERENT. */
int cli_reencode_compare(struct reencode *r, const struct reencode_pair *pair);

/* Boxes that fit both sides: whole units of writing, of whole source chunks where that
 * fits; n_buffers is 1 where two would be over the limit, 0 where one is.
 * (reencode/box.c)
 */
struct reencode_shape {
    struct cli_boxes boxes;
    /* the largest unit, and how many there are in a dimension */
    uint64_t unit[ZARR_MAX_RANK], grid[ZARR_MAX_RANK];
    uint64_t item_bytes, buffer_bytes, unit_bytes;
    int n_buffers;
};
int cli_reencode_shape(struct reencode *r, const struct reencode_pair *pair,
                       struct reencode_shape *s);

/* Numbers of the boxes, along each dimension, in which the source (both: or the
 * destination) has anything stored, where the others are equal and many; false: do all.
 * To be freed. (reencode/sparse.c) */
bool cli_reencode_sparse(const struct reencode_pair *pair, const struct cli_boxes *b,
                         bool both, struct cli_chunks *out);

#endif
