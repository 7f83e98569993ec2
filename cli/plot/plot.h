/*
 * plot/plot.h - what the files of zarrc plot share: plot/data.c (reading samples as
 * numbers), plot/range.c (range of values, ticks), plot/font.c, plot/canvas.c (colours,
 * pixels and PNG), plot/draw.c (the picture), plot/term.c (the picture in a terminal) and
 * cmd_plot.c.
 */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include "cf/cf.h"
#include "node/work.h"

/* ---- colours (plot/canvas.c) ---- */

struct plot_rgb {
    uint8_t r, g, b;
};
#define PLOT_MAPS "viridis|cividis|magma|gray|coolwarm|turbo"
/* The colour at t, 0 to 1, of a colour map. */
struct plot_rgb cli_plot_color(const char *map, double t);
/* The colour of missing values: NaN, and hidden fill values. */
extern const struct plot_rgb cli_plot_missing;

/* ---- data to draw (plot/data.c) ---- */

/* A dimension of the picture. */
struct plot_axis {
    int32_t dim, array_dim; /* of the region's result, and of the array */
    uint64_t n, n_samples;  /* elements of the region, and those that are drawn */
    uint64_t chunk;         /* length of a chunk in elements of the region */
    uint64_t n_chunks;      /* chunks that the region touches */
    uint64_t n_picked;      /* chunks that are read */
    int64_t *list;          /* the element of each sample; NULL: all elements */
    int64_t step;           /* of array indices between elements */
    char *name;             /* of the dimension, with the coordinate's units; or NULL */
    /* what ticks show of element i: first + i * spacing. An index, or the coordinate if
     * its values are evenly spaced */
    double first, spacing;
    bool is_even, is_northward;
    struct cf_coordinate at; /* the values of the n elements; at.array NULL: none */
};

struct plot_data {
    uint64_t most[2];         /* samples along the axes at most; set before the read */
    bool hide_fill;           /* elements with the fill value are missing; set before */
    int32_t ndim;             /* 1 or 2 */
    struct plot_axis axis[2]; /* rows, columns; a line has axis[1] only */
    double *values;           /* axis[0].n_samples * axis[1].n_samples; NaN: missing */
    uint64_t n_values, n_finite;
    double min, max; /* of the finite values */
    bool sampled;    /* not every element of the region was read */
    char *region;    /* as drawn: "[0,:,:]" */
    char *unit;      /* attribute units, or NULL */
};

/* Reads samples of the node's region. */
int cli_plot_read(struct cli *cli, const struct cli_node *node, struct plot_data *out);
void cli_plot_data_free(struct plot_data *data);

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

/* ---- numbers (plot/range.c) ---- */

struct plot_range {
    double low, high; /* low < high */
};
/* Where a value is in a range: 0 to 1, also if it is outside. */
double cli_plot_share(struct plot_range range, double value);
/* The range between two percentiles of the finite values. */
struct plot_range cli_plot_stretch(const struct plot_data *data, double low, double high);

enum {
    PLOT_MAX_TICKS = 16
};
struct plot_ticks {
    int n;
    double at[PLOT_MAX_TICKS];
    char text[PLOT_MAX_TICKS][24];
};
/* At most `most` round numbers in the range; whole: integers only. */
void cli_plot_ticks(struct plot_range range, int most, bool whole,
                    struct plot_ticks *out);

/* The same for an axis. */
void cli_plot_axis_ticks(const struct plot_axis *axis, int most, struct plot_ticks *out);

/* ---- pixels (plot/canvas.c) ---- */

struct plot_canvas {
    int width, height;
    uint8_t *pixels; /* RGB; owned */
};
struct plot_box {
    int x, y, width, height;
};
struct plot_text {
    const char *text;
    int scale;
    struct plot_rgb color;
    bool upward; /* rotated by 90 degrees to the left */
};
void cli_canvas_init(struct plot_canvas *c, int width, int height);
void cli_canvas_set(struct plot_canvas *c, int x, int y, struct plot_rgb color);
void cli_canvas_fill(struct plot_canvas *c, struct plot_box box, struct plot_rgb color);
void cli_canvas_frame(struct plot_canvas *c, struct plot_box box, int thick,
                      struct plot_rgb color);
/* An antialiased line from (x, y) to (z, w), clipped to box. */
struct plot_line {
    double x, y, z, w, width;
    struct plot_rgb color;
};
void cli_canvas_line(struct plot_canvas *c, struct plot_box box,
                     const struct plot_line *line);
/* (x, y): the top corner where the text begins. */
void cli_canvas_text(struct plot_canvas *c, int x, int y, const struct plot_text *text);
int cli_text_width(const char *text, int scale);
/* Writes a PNG file. */
int cli_canvas_write(struct cli *cli, const struct plot_canvas *c,
                     const struct cli_file *file);

/* A glyph has rows of 5 bits each; the highest bit is the leftmost pixel (plot/font.c).
 */
enum {
    PLOT_FONT_WIDTH = 5,
    PLOT_FONT_HEIGHT = 7
};
/* Draws the next character of UTF-8 text with its combining marks, and goes on behind it;
 * a box if there is no glyph. False: the text is at its end. */
bool cli_font_next(const char **text, uint8_t glyph[PLOT_FONT_HEIGHT]);
/* The number of glyphs of UTF-8 text. */
int cli_font_count(const char *text);

/* ---- pictures ---- */

struct plot_style {
    const char *map;
    char *title;
    struct plot_range range;
    bool bare;          /* no axes, no title, no colour bar */
    bool lower;         /* row 0 is at the bottom */
    bool trim;          /* the height may be reduced to the drawing */
    const char *aspect; /* auto, equal, fill */
};
/* The colour of a value. */
struct plot_rgb cli_plot_value_color(const struct plot_style *style, double value);
/* Makes a size smaller so that the elements of a plane are square, if the style's aspect
 * asks for that. */
void cli_plot_fit(const struct plot_data *data, const char *aspect, int *width,
                  int *height);
void cli_plot_draw(struct plot_canvas *c, const struct plot_data *data,
                   const struct plot_style *style);
/* Draws on stdout with columns by rows characters. */
int cli_plot_term(struct cli *cli, const struct plot_data *data,
                  const struct plot_style *style, int columns, int rows);

#endif
