/*
 * array/io_int.h - a call that reads or writes: prepare.c fills it in, io.c carries it
 * out.
 */
#ifndef ZR_ARRAY_IO_INT_H
#define ZR_ARRAY_IO_INT_H

#include "array/array_int.h"

/* Encoded chunks that the caller has, or gets. */
struct zr_io_given {
    zarr_store *store;   /* the chunks to read */
    int32_t device_type; /* the memory that encoded chunks are in */
    /* writes: as in struct zr_io */
    zarr_status (*sink)(void *arg, const uint64_t *chunk, const zarr_mem *bytes,
                        zarr_error *err);
    void *sink_arg;
};

struct zr_io_call {
    zarr_array *array;
    struct zr_array_state *state;    /* counted */
    const struct zr_io_given *given; /* NULL: the chunk store has the chunks */
    struct zr_io io;
    zarr_io_options opts;
    uint8_t *field_fill;       /* owned; io points into it */
    zarr_cancel *owned_cancel; /* counted, for a submitted request; else NULL */
};
/* Sets c->io, c->opts and c->field_fill. c->array and c->state are set before. */
zarr_status zr_io_prepare(struct zr_io_call *c, const zarr_selection *sel,
                          const zarr_tensor *tensor, const zarr_io_options *opts,
                          bool write, zarr_error *err);

/* Reads or writes, and returns when that is done. c->array, c->state and c->given are set
 * before. */
zarr_status zr_io_call_run(struct zr_io_call *c, const zarr_selection *sel,
                           const zarr_tensor *tensor, const zarr_io_options *opts,
                           bool write, zarr_error *err);

#endif
