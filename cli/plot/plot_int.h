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

struct reading {
    struct cli *cli;
    const struct cli_node *node;
    struct plot_data *out;
    zarr_array *array;
    zarr_selection *outer, *whole;
    char *items[ZARR_MAX_RANK]; /* of the region; owned */
    struct dim_region dims[ZARR_MAX_RANK];
    struct cli_field field;
    struct cf cf; /* of the field */
};

/* Selects n[i] elements of the region along each axis i: those of list[i], or all if it
 * is NULL. */
zarr_status cli_plot_select(const struct reading *r, int64_t *const list[2],
                            const uint64_t n[2], zarr_selection **out, zarr_error *err);
/* Gives coordinates to the axes of the result (plot/range.c). */
int cli_plot_coordinates(struct reading *r);

/* Replaces elements between the samples of a sparse array: each stored chunk of the
 * region gets the pixels that it covers. Of more than `most` chunks, evenly spaced ones.
 */
zarr_status cli_plot_fill_stored(struct reading *r, uint64_t most, char *elements,
                                 zarr_error *err);

#endif
