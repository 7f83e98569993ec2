/*
 * plot/plot_int.h - what the files that read the elements of a plot share.
 */
#ifndef CLI_PLOT_INT_H
#define CLI_PLOT_INT_H

#include "plot/plot.h"

/* The part of a region for one dimension of the array. */
struct dim_region {
    bool is_index, is_list;
    int64_t start, step;
    char text[32];
};

/* The samples of one axis of the picture. */
struct sampling {
    int32_t dim;           /* of the region's result */
    int32_t array_dim;     /* of the array */
    uint64_t n, n_samples; /* elements of the region, and those that are drawn */
    uint64_t chunk;        /* length of a chunk in elements of the region */
    uint64_t n_chunks;     /* chunks that the region touches */
    uint64_t n_picked;     /* chunks that are read */
    int64_t *list;         /* the element of each sample; NULL: all elements */
};

struct reading {
    const struct plot_request *q;
    struct plot_data *out;
    zarr_array *array;
    zarr_selection *outer, *inner, *whole;
    char *items[ZARR_MAX_RANK]; /* of the region; owned */
    struct dim_region dims[ZARR_MAX_RANK];
    struct sampling axis[2];
    int n_axes;
    struct cli_field field;
    struct cf cf; /* of the field */
};

/* Gives coordinates to the axes of the result (plot/range.c). */
int cli_plot_coordinates(struct reading *r);

/* Replaces elements between the samples of a sparse array: each stored chunk of the
 * region gets the pixels that it covers. Of more than `most` chunks, evenly spaced ones.
 */
zarr_status cli_plot_fill_stored(struct reading *r, uint64_t most, char *elements,
                                 zarr_error *err);

#endif
