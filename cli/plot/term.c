/*
 * plot/term.c - draws the picture in a terminal. A plane is made of half blocks, two
 * pixels a character, in 24-bit colour if COLORTERM announces it, else in 256 colours.
 * Without colours, denser characters stand for higher values. A line is a row of bars in
 * eighths of a character. The text is UTF-8 in every locale.
 */
#include "plot/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MODE_PLAIN,
    MODE_256,
    MODE_24
};

static int color_mode(const struct cli *cli)
{
    const char *term = getenv("COLORTERM");

    if (!cli->color_out)
        return MODE_PLAIN;
    return term && (strcmp(term, "truecolor") == 0 || strcmp(term, "24bit") == 0)
               ? MODE_24
               : MODE_256;
}

static void add_color(struct cli_string *out, int mode, bool back, struct plot_rgb c)
{
    if (mode == MODE_24)
        cli_string_printf(out, "\033[%d;2;%u;%u;%um", back ? 48 : 38, c.r, c.g, c.b);
    else
        cli_string_printf(out, "\033[%d;5;%um", back ? 48 : 38,
                          16u + 36u * ((c.r + 25u) / 51u) + 6u * ((c.g + 25u) / 51u) +
                              (c.b + 25u) / 51u);
}

static char value_shade(const struct plot_style *style, double v)
{
    static const char shades[] = " .:-=+*#%@";

    return isnan(v) ? '?' : shades[(int)(cli_plot_share(style->range, v) * 9.999)];
}

/* ---- a plane ---- */

struct plane {
    const struct plot_data *data;
    const struct plot_style *style;
    int width, height; /* pixels; a character has two, one above the other */
};

static double value_at(const struct plane *p, int x, int y)
{
    const uint64_t rows = p->data->axis[0].n_samples,
                   columns = p->data->axis[1].n_samples;
    const int from = p->style->lower ? p->height - 1 - y : y;

    return p->data->values[(uint64_t)from * rows / (uint64_t)p->height * columns +
                           (uint64_t)x * columns / (uint64_t)p->width];
}

static void add_row(const struct plane *p, int mode, int y, struct cli_string *out)
{
    for (int x = 0; x < p->width; x++) {
        const double upper = value_at(p, x, y);
        const double lower = y + 1 < p->height ? value_at(p, x, y + 1) : upper;

        if (mode == MODE_PLAIN) {
            const char c = value_shade(p->style, isnan(upper)   ? lower
                                                 : isnan(lower) ? upper
                                                                : (upper + lower) / 2);

            cli_string_add(out, &c, 1);
        } else {
            add_color(out, mode, false, cli_plot_value_color(p->style, upper));
            add_color(out, mode, true, cli_plot_value_color(p->style, lower));
            cli_string_printf(out, "\xe2\x96\x80"); /* upper half block */
        }
    }
    cli_string_printf(out, mode == MODE_PLAIN ? "\n" : "\033[0m\n");
}

static void add_legend(const struct plot_style *style, int mode, int width,
                       struct cli_string *out)
{
    const int n = width < 40 ? width / 2 : 20;

    cli_string_printf(out, "%.6g ", style->range.low);
    for (int i = 0; i < n; i++) {
        const double t = ((double)i + 0.5) / n;
        const double v = style->range.low + t * (style->range.high - style->range.low);
        const char c = value_shade(style, v);

        if (mode == MODE_PLAIN) {
            cli_string_add(out, &c, 1);
        } else {
            add_color(out, mode, true, cli_plot_color(style->map, t));
            cli_string_add(out, " ", 1);
        }
    }
    cli_string_printf(out, "%s %.6g\n", mode == MODE_PLAIN ? "" : "\033[0m",
                      style->range.high);
}

/* ---- a line ---- */

/* The mean of the finite samples in a column; NaN if there are none. */
static double column_mean(const struct plot_data *d, int x, int width)
{
    const uint64_t first = (uint64_t)x * d->n_values / (uint64_t)width;
    uint64_t last = (uint64_t)(x + 1) * d->n_values / (uint64_t)width, n = 0;
    double sum = 0;

    last = last > first ? last : first + 1;
    for (uint64_t i = first; i < last; i++)
        if (isfinite(d->values[i])) {
            sum += d->values[i];
            n++;
        }
    return n ? sum / (double)n : (double)NAN;
}

static void add_bars(const struct plot_data *d, const struct plot_style *style, int width,
                     int height, struct cli_string *out)
{
    char label[24];

    for (int y = 0; y < height; y++) {
        label[0] = '\0';
        if (y == 0 || y + 1 == height)
            snprintf(label, sizeof label, "%.6g",
                     y == 0 ? style->range.high : style->range.low);
        cli_string_printf(out, "%12s |", label);
        for (int x = 0; x < width; x++) {
            const double v = column_mean(d, x, width);
            const double level =
                isnan(v) ? 0 : cli_plot_share(style->range, v) * height * 8;
            const double here = level - 8.0 * (height - 1 - y);

            if (here < 1)
                cli_string_add(out, " ", 1);
            else /* U+2581 to U+2588: 1 to 8 eighths of a block */
                cli_string_printf(out, "\xe2\x96%c", 0x80 + (here < 8 ? (int)here : 8));
        }
        cli_string_add(out, "\n", 1);
    }
}

int cli_plot_term(struct cli *cli, const struct plot_data *data,
                  const struct plot_style *style, int columns, int rows)
{
    struct cli_string out = {0};
    const int mode = color_mode(cli);
    int rc;

    cli_add_clean(&out, style->title, strlen(style->title)); /* it has names of a store */
    cli_string_add(&out, "\n", 1);
    rows = rows > 5 ? rows - 3 : 2;
    if (data->ndim == 2) {
        struct plane p = {data, style, columns, rows * 2};

        /* half a character is about as high as it is wide: pixels are nearly square */
        cli_plot_fit(data, style->aspect, &p.width, &p.height);
        for (int y = 0; y < p.height; y += 2)
            add_row(&p, mode, y, &out);
        add_legend(style, mode, p.width, &out);
    } else {
        add_bars(data, style, columns > 24 ? columns - 14 : 10, rows, &out);
    }
    rc = cli_out(cli, out.text, out.n_bytes);
    free(out.text);
    return rc;
}
