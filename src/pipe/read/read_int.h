/*
 * pipe/read/read_int.h - what the files of this room share.
 */
#ifndef ZR_PIPE_READ_INT_H
#define ZR_PIPE_READ_INT_H

#include "pipe/read/read.h"

/* An index that was fetched ahead. */
struct zr_ahead {
    struct zr_store_pin *pin; /* owned until zr_open_exec() takes it; nested: NULL */
    zarr_store_op op;         /* done; its memory has the encoded index */
    zarr_memory block;        /* a pool block that contains it */
};

#endif
