/*
 * ports/python/pipeline.h - a codec pipeline as zarr-python calls it: with the document
 * of an array, and with batches of chunks, each with its key, its part of the chunk and
 * its place in the result. The store is the language's, and so is all I/O.
 */
#ifndef PORT_PIPELINE_H
#define PORT_PIPELINE_H

#include "stores.h"

enum {
    RANK = 2
};

/* A slice, whose bounds are not negative and whose step is positive. */
struct slice {
    uint64_t start, stop, step;
};

/* One chunk of a batch. */
struct item {
    char key[64];
    struct slice chunk[RANK], out[RANK];
    bool complete; /* all elements of the chunk inside of the array's shape are meant */
};

struct pipeline {
    zarr_context *ctx;
    zarr_array *array;
};

/* The document may be older than the array: chunks outside of its shape are legal. */
zarr_status pipeline_open(struct pipeline *p, zarr_context *ctx, const char *document,
                          const char *path, zarr_store *chunks, zarr_error *err);
void pipeline_close(struct pipeline *p);

/* The selection of the whole array that a batch of one indexer makes. */
zarr_status pipeline_selection(const struct pipeline *p, const struct item *batch,
                               unsigned n, zarr_selection **out, zarr_error *err);

/*
 * The language fetches and stores whole values, and the library decodes and encodes. The
 * caller has the lock, which is given up meanwhile. present[i] becomes whether the chunk
 * is in the store.
 */
zarr_status pipeline_read(const struct pipeline *p, struct dict *values,
                          const struct item *batch, unsigned n, const zarr_tensor *out,
                          bool *present, zarr_error *err);
zarr_status pipeline_write(const struct pipeline *p, struct dict *values,
                           const struct item *batch, unsigned n,
                           const zarr_tensor *elements, zarr_error *err);

/*
 * The library asks the store of pipeline_open() for parts of shards. Called on the loop,
 * which goes on meanwhile; `then` is called there.
 */
struct reading {
    zarr_request *request;
    zarr_selection *selection;
    void (*then)(struct reading *r, zarr_status st, const zarr_error *err);
    void *user;
};
zarr_status pipeline_read_soon(const struct pipeline *p, const struct item *batch,
                               unsigned n, const zarr_tensor *out, zarr_cancel *cancel,
                               struct reading *r, zarr_error *err);

#endif
