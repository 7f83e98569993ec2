/*
 * plot/draw.c - draws the picture: a plane with a colour bar, or a line, with axes that
 * show indexes of the array. All distances are multiples of the text scale, so that
 * pictures of any size look alike. Small pictures have no axes and no title.
 */
#include "plot/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct plot_rgb white = {255, 255, 255}, ink = {34, 34, 34},
                             faint = {110, 110, 110}, grid = {232, 232, 232},
                             line_color = {38, 105, 175};

struct layout {
    struct plot_canvas *c;
    const struct plot_data *data;
    const struct plot_style *style;
    int scale, thin, pad, text;         /* thin: of lines; text: height of a line */
    struct plot_box box;                /* where the data is drawn */
    struct plot_ticks ticks[2], values; /* rows, columns; of the colour bar */
};

static int widest(const struct plot_ticks *t, int scale)
{
    int most = 0;

    for (int i = 0; i < t->n; i++) {
        const int w = cli_text_width(t->text[i], scale);

        most = w > most ? w : most;
    }
    return most;
}

/* ---- layout ---- */

void cli_plot_fit(const struct plot_data *data, const char *aspect, int *width,
                  int *height)
{
    const struct plot_axis *a = data->axis;
    const double ratio = (double)a[1].n * fabs((double)a[1].step) /
                         ((double)a[0].n * fabs((double)a[0].step));

    if (data->ndim == 1 || strcmp(aspect, "fill") == 0 ||
        (strcmp(aspect, "auto") == 0 && (ratio < 0.25 || ratio > 4)))
        return;
    if ((double)*width > (double)*height * ratio)
        *width = (int)fmax((double)*height * ratio + 0.5, 1);
    else
        *height = (int)fmax((double)*width / ratio + 0.5, 1);
}

/* The largest box in the data's aspect ratio that fits into `room`, centred. */
static struct plot_box fit_box(const struct layout *l, struct plot_box room)
{
    struct plot_box box = room;

    cli_plot_fit(l->data, l->style->aspect, &box.width, &box.height);
    box.x += (room.width - box.width) / 2;
    box.y += (room.height - box.height) / 2;
    return box;
}

static void make_ticks(struct layout *l, int height)
{
    const int most = height / (l->text * 4);

    if (l->data->ndim == 2)
        cli_plot_axis_ticks(&l->data->axis[0], most, &l->ticks[0]);
    else
        cli_plot_ticks(l->style->range, most, false, &l->ticks[0]);
    cli_plot_ticks(l->style->range, most, false, &l->values);
}

static void make_layout(struct layout *l)
{
    const int w = l->c->width, h = l->c->height, s = l->scale;
    int left, right, top, bottom;

    l->text = PLOT_FONT_HEIGHT * s;
    l->pad = 5 * s;
    top = l->text + 3 * l->pad;
    bottom = l->text + 3 * l->pad + (l->data->axis[1].name ? l->text + l->pad : 0);
    make_ticks(l, h - top - bottom);
    left = widest(&l->ticks[0], s) + 3 * l->pad +
           (l->data->ndim == 2 && l->data->axis[0].name ? l->text + l->pad : 0);
    right = widest(&l->values, s);
    right = right > cli_text_width("NaN", s) ? right : cli_text_width("NaN", s);
    right = l->data->ndim == 2 ? right + 8 * l->pad : 3 * l->pad;
    if (w - left - right >= 8 && h - top - bottom >= 8) /* else the data without axes */
        l->box = (struct plot_box){left, top, w - left - right, h - top - bottom};
    l->box = fit_box(l, l->box);
    if (l->data->ndim == 2)
        make_ticks(l, l->box.height);
}

/* ---- axes ---- */

static void text(struct layout *l, int x, int y, const char *what, struct plot_rgb color)
{
    const struct plot_text t = {what, l->scale, color, false};

    cli_canvas_text(l->c, x, y, &t);
}

static void fill(struct layout *l, int x, int y, int width, int height,
                 struct plot_rgb color)
{
    cli_canvas_fill(l->c, (struct plot_box){x, y, width, height}, color);
}

/* The x position in pixels of an index on the x axis. */
static int x_pixel(const struct layout *l, double index)
{
    const struct plot_axis *a = &l->data->axis[1];
    const double i = (index - a->first) / a->spacing;

    return l->box.x + (int)((i + 0.5) / (double)a->n * l->box.width);
}

static int y_pixel(const struct layout *l, double at)
{
    const struct plot_axis *a = &l->data->axis[0];
    const struct plot_range r = l->style->range;
    double share;

    if (l->data->ndim == 2) {
        share = ((at - a->first) / a->spacing + 0.5) / (double)a->n;
        share = l->style->lower ? 1 - share : share;
    } else {
        share = (r.high - at) / (r.high - r.low);
    }
    return l->box.y + (int)(share * l->box.height);
}

static void draw_x_axis(struct layout *l)
{
    const int y = l->box.y + l->box.height, s = l->scale;
    const char *name = l->data->axis[1].name;
    struct plot_ticks *t = &l->ticks[1];
    int each;

    cli_plot_axis_ticks(&l->data->axis[1], 2, t);
    each = widest(t, s) + 6 * s * 4;
    cli_plot_axis_ticks(&l->data->axis[1],
                        l->box.width / each > 10 ? 10 : l->box.width / each, t);
    for (int i = 0; i < t->n; i++) {
        const int x = x_pixel(l, t->at[i]);

        fill(l, x - s / 2, y + s, s, 3 * s, ink);
        text(l, x - cli_text_width(t->text[i], s) / 2, y + 6 * s, t->text[i], ink);
    }
    if (name)
        text(l, l->box.x + (l->box.width - cli_text_width(name, s)) / 2,
             y + 6 * s + l->text + l->pad, name, faint);
}

static void draw_y_axis(struct layout *l)
{
    const int s = l->scale;
    const struct plot_ticks *t = &l->ticks[0];
    const char *name = l->data->axis[0].name;

    for (int i = 0; i < t->n; i++) {
        const int y = y_pixel(l, t->at[i]);

        fill(l, l->box.x - 4 * s, y - s / 2, 3 * s, s, ink);
        text(l, l->box.x - 6 * s - cli_text_width(t->text[i], s), y - l->text / 2,
             t->text[i], ink);
    }
    if (name && l->data->ndim == 2) {
        const struct plot_text up = {name, s, faint, true};

        cli_canvas_text(l->c, l->box.x - 6 * s - widest(t, s) - l->pad - l->text,
                        l->box.y + (l->box.height + cli_text_width(name, s)) / 2, &up);
    }
}

static void draw_title(struct layout *l)
{
    const size_t fits = (size_t)(l->c->width / ((PLOT_FONT_WIDTH + 1) * l->scale));
    const size_t n = (size_t)cli_font_count(l->style->title);
    const char *from = l->style->title;
    uint8_t glyph[PLOT_FONT_HEIGHT];
    char *shown;
    int width, x;

    for (size_t i = 0; n > fits && fits >= 4 && i < n - fits + 3; i++)
        (void)cli_font_next(&from, glyph);
    shown = cli_format("%s%s", from > l->style->title ? "..." : "", from);
    width = cli_text_width(shown, l->scale);
    x = l->box.x + (l->box.width - width) / 2;
    x = x + width > l->c->width - l->pad ? l->c->width - l->pad - width : x;
    text(l, x < 0 ? 0 : x, l->box.y - l->text - l->pad - l->scale, shown, ink);
    free(shown);
}

/* ---- a plane ---- */

static void draw_plane(struct layout *l)
{
    const struct plot_data *d = l->data;
    const uint64_t rows = d->axis[0].n_samples, columns = d->axis[1].n_samples;

    for (int y = 0; y < l->box.height; y++) {
        const int from = l->style->lower ? l->box.height - 1 - y : y;
        const uint64_t row = (uint64_t)from * rows / (uint64_t)l->box.height;

        for (int x = 0; x < l->box.width; x++) {
            const uint64_t column = (uint64_t)x * columns / (uint64_t)l->box.width;

            cli_canvas_set(
                l->c, l->box.x + x, l->box.y + y,
                cli_plot_value_color(l->style, d->values[row * columns + column]));
        }
    }
}

static void draw_bar(struct layout *l)
{
    const int s = l->scale;
    const struct plot_range r = l->style->range;
    struct plot_box bar = {l->box.x + l->box.width + 3 * l->pad, l->box.y, 2 * l->pad,
                           l->box.height};
    const bool any_missing = l->data->n_finite < l->data->n_values;

    if (any_missing && bar.height > 6 * l->text)
        bar.height -= l->text + 2 * l->pad;
    for (int y = 0; y < bar.height; y++)
        fill(l, bar.x, bar.y + y, bar.width, 1,
             cli_plot_color(l->style->map, 1 - ((double)y + 0.5) / (double)bar.height));
    cli_canvas_frame(l->c, bar, l->thin, faint);
    for (int i = 0; i < l->values.n; i++) {
        const double share = (r.high - l->values.at[i]) / (r.high - r.low);
        const int y = bar.y + (int)(share * (bar.height - 1));

        fill(l, bar.x + bar.width + s, y - s / 2, 3 * s, s, ink);
        text(l, bar.x + bar.width + 6 * s, y - l->text / 2, l->values.text[i], ink);
    }
    if (any_missing && bar.height < l->box.height) {
        struct plot_box patch = {bar.x, bar.y + bar.height + 2 * l->pad, bar.width,
                                 l->text};

        cli_canvas_fill(l->c, patch, cli_plot_missing);
        cli_canvas_frame(l->c, patch, l->thin, faint);
        text(l, bar.x + bar.width + 6 * s, patch.y, "NaN", ink);
    }
}

/* ---- a line ---- */

static void draw_grid(struct layout *l)
{
    for (int i = 0; i < l->ticks[0].n; i++)
        fill(l, l->box.x, y_pixel(l, l->ticks[0].at[i]), l->box.width, l->thin, grid);
    for (int i = 0; i < l->ticks[1].n; i++)
        fill(l, x_pixel(l, l->ticks[1].at[i]), l->box.y, l->thin, l->box.height, grid);
}

static double clamp_y(double y, const struct plot_box *b)
{
    const double far = 4.0 * b->height;

    return y < b->y - far ? b->y - far : y > b->y + far ? b->y + far : y;
}

static void draw_line(struct layout *l)
{
    const struct plot_data *d = l->data;
    const struct plot_range r = l->style->range;
    const uint64_t n = d->n_values;
    const bool dots = n <= 60;
    double x = 0, y = 0;
    bool pen = false;

    for (uint64_t i = 0; i < n; i++) {
        const double v = d->values[i];
        const double to_x = l->box.x + ((double)i + 0.5) / (double)n * l->box.width;
        const double to_y =
            clamp_y(l->box.y + (r.high - v) / (r.high - r.low) * l->box.height, &l->box);

        if (!isfinite(v)) {
            pen = false;
            continue;
        }
        if (pen)
            cli_canvas_line(
                l->c, l->box,
                &(struct plot_line){x, y, to_x, to_y, 0.9 * l->scale, line_color});
        if (dots || (!pen && (i + 1 == n || !isfinite(d->values[i + 1]))))
            cli_canvas_line(
                l->c, l->box,
                &(struct plot_line){to_x, to_y, to_x, to_y, 3.0 * l->scale, line_color});
        x = to_x;
        y = to_y;
        pen = true;
    }
}

static bool is_white(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != 255)
            return false;
    return true;
}

/* Cuts off empty rows at top and bottom, except for a margin. */
static void trim(struct plot_canvas *c, int margin)
{
    const size_t row = (size_t)c->width * 3;
    int first = 0, last = c->height - 1;

    while (first < last && is_white(c->pixels + (size_t)first * row, row))
        first++;
    while (last > first && is_white(c->pixels + (size_t)last * row, row))
        last--;
    first = first > margin ? first - margin : 0;
    last = last + margin < c->height - 1 ? last + margin : c->height - 1;
    memmove(c->pixels, c->pixels + (size_t)first * row, (size_t)(last - first + 1) * row);
    c->height = last - first + 1;
}

/* ---- the picture ---- */

void cli_plot_draw(struct plot_canvas *c, const struct plot_data *data,
                   const struct plot_style *style)
{
    const int small = c->width < c->height ? c->width : c->height;
    struct layout l = {.c = c, .data = data, .style = style, .scale = small / 300};
    bool bare = style->bare || small < 160;

    l.scale = l.scale < 1 ? 1 : l.scale;
    l.thin = l.scale > 1 ? l.scale / 2 : 1;
    l.box = (struct plot_box){0, 0, c->width, c->height};
    cli_canvas_fill(c, l.box, white);
    if (bare) {
        l.box = fit_box(&l, l.box);
    } else {
        make_layout(&l);
        draw_x_axis(&l);
        draw_y_axis(&l);
        draw_title(&l);
        if (data->ndim == 1)
            draw_grid(&l);
        else
            draw_bar(&l);
        cli_canvas_frame(c, l.box, l.thin, faint);
    }
    if (data->ndim == 2)
        draw_plane(&l);
    else
        draw_line(&l);
    if (style->trim)
        trim(c, bare ? 0 : l.pad);
}
