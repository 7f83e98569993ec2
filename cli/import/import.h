/*
 * import/import.h - the state of zarrc import, shared by import/file.c (the type and
 * shape of the file), import/copy.c (copying the elements) and cmd_import.c (options,
 * region, location and creation of the array).
 */
#ifndef CLI_IMPORT_H
#define CLI_IMPORT_H

#include "data/data.h"

struct import {
    struct cli *cli;
    struct cli_node node;
    struct cli_node model; /* --like; its array is NULL without it */
    struct cli_source source;
    const char *format; /* "npy", "raw", or a text format */
    bool can_seek, raw;
    struct cli_npy header;         /* of a raw file: filled from the options */
    const zarr_dtype *type;        /* of the elements, without padding */
    const zarr_dtype *padded_type; /* with the file's padding between fields, or NULL */
    const zarr_dtype *new_type;    /* of the new array if it is not `type`, else NULL */
    const zarr_dtype *file_type;   /* in the header, if it stands for `type`, else NULL */
    size_t item_bytes;             /* in the file */
    struct cli_field field; /* of an existing array: the field of --field, or all */
    uint32_t byte_order;
    char *orders; /* of each field of a struct; NULL: all are in byte_order */
    zarr_selection *selection;    /* the region of an existing array, or NULL */
    struct cli_elements elements; /* of a text file */
    bool text, convert;           /* convert: to elements of variable length */
    bool created;                 /* a new array was created */
    zarr_shard_writer *shard;     /* that is written in parts, or NULL */
    unsigned char *buffer;        /* of a box */
    uint64_t copied;              /* bytes of elements */
    struct cli_progress progress;
    /* Where a new array is created: at the node's location or, if it replaces an array
     * (staged), at a temporary location until it is complete. */
    zarr_store *target_store;
    char *target_path, *target_root; /* target_root: folder of a temporary store */
    bool staged;
};

int cli_import_open(struct import *im);
/* Fills format, raw, text, header, type, padded_type, item_bytes, byte_order, orders and
 * elements. The node must be open. */
int cli_import_describe(struct import *im);
/* The size of the file's elements. */
uint64_t cli_import_bytes(const struct import *im);

/* The shape that elements for the region must have, with the dimensions of a subarray
 * field at the end. Returns the rank. */
int32_t cli_import_region(const struct import *im, uint64_t shape[ZARR_MAX_RANK]);

/* Copies the elements into the open array. */
int cli_import_copy(struct import *im);

#endif
