/*
 * import/import.h - one run of zarrc import, split over import/file.c (what the file
 * holds), import/copy.c (its elements, box by box), import/place.c (where a new array is
 * made) and cmd_import.c (the array they go to).
 */
#ifndef CLI_IMPORT_H
#define CLI_IMPORT_H

#include "data/data.h"

struct import {
    struct cli *cli;
    struct cli_node node;
    FILE *file;
    const char *name;
    const char *format; /* "npy", "raw", or a text format */
    bool is_stdin, can_seek, raw;
    struct cli_npy head; /* of a raw file: made from the options */
    const zarr_dtype *type;
    const zarr_dtype
        *padded;            /* the file's, where it has holes between fields; else NULL */
    const zarr_dtype *made; /* of a new array that is not of the file's type, or NULL */
    const zarr_dtype *said; /* by the file, where it means another type; else NULL */
    size_t item_bytes;      /* in the file */
    /* of an array that is there: what --field chooses, or its elements */
    struct cli_field field;
    uint32_t byte_order;
    char *orders; /* of a struct's fields; NULL: all are in byte_order */
    zarr_selection *selection;
    struct cli_elements elements; /* of a text */
    bool text, convert;           /* convert: to elements of variable length */
    bool told;                    /* what cannot be converted */
    bool created;
    /* Where a new array is made: the node's place, or (beside) one beside an array that
     * it replaces when it is complete. */
    zarr_store *made_store;
    char *made_path, *made_root; /* made_root: the folder of a store beside */
    bool beside;
};

/* ---- import/file.c ---- */

int cli_import_open(struct import *im);
/* Fills format, raw, text, head, type, padded, item_bytes, byte_order, orders and
 * elements; needs the node. */
int cli_import_describe(struct import *im);
/* Of the file's elements. */
uint64_t cli_import_bytes(const struct import *im);

/* Shape of what goes into the region: a field's own dimensions are the last. */
int32_t cli_import_region(const struct import *im, uint64_t shape[ZARR_MAX_RANK]);

/* ---- import/copy.c ---- */

/* The elements into the array, which is there. */
int cli_import_copy(struct import *im);

/* ---- import/place.c ---- */

/* Fills made_store, made_path, made_root and beside; replaces: an array is there. */
int cli_import_place(struct import *im, bool replaces);
/* The complete array takes its place. */
int cli_import_settle(struct import *im);
/* Deletes what was made of a new array, and nothing else; a warning where it cannot. */
void cli_import_undo(struct import *im);
/* Frees the members. */
void cli_import_leave(struct import *im);

#endif
