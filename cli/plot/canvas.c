/*
 * plot/canvas.c - colours, and a picture of RGB pixels: boxes, antialiased lines, text,
 * and the PNG file. The colour maps are a few colours with linear interpolation between
 * them. The lightness of viridis, cividis and magma grows evenly, also for users with
 * colour blindness. coolwarm is for values around a centre. turbo shows the most steps,
 * but its lightness is uneven. libpng writes it without a time stamp, so that equal
 * pictures are equal files. Everything is clipped at the edges.
 */
#include "plot/plot.h"

#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

const struct plot_rgb cli_plot_missing = {205, 205, 205};

static const struct plot_rgb viridis[] = {{68, 1, 84},    {71, 44, 122},  {59, 81, 139},
                                          {44, 113, 142}, {33, 144, 141}, {39, 173, 129},
                                          {92, 200, 99},  {170, 220, 50}, {253, 231, 37}};
static const struct plot_rgb cividis[] = {
    {0, 34, 78},     {18, 53, 112},   {59, 73, 108},   {87, 93, 109},  {112, 113, 115},
    {138, 134, 120}, {165, 156, 116}, {195, 179, 105}, {225, 204, 85}, {254, 232, 56}};
static const struct plot_rgb magma[] = {{0, 0, 4},      {28, 16, 68},    {79, 18, 123},
                                        {129, 37, 129}, {181, 54, 122},  {229, 80, 100},
                                        {251, 135, 97}, {254, 194, 135}, {252, 253, 191}};
static const struct plot_rgb gray[] = {{0, 0, 0}, {255, 255, 255}};
static const struct plot_rgb coolwarm[] = {
    {59, 76, 192},   {98, 130, 234},  {141, 176, 254}, {184, 208, 249}, {221, 221, 221},
    {245, 196, 173}, {244, 154, 123}, {222, 96, 77},   {180, 4, 38}};
static const struct plot_rgb turbo[] = {
    {35, 23, 27},   {73, 62, 175},  {68, 106, 238},  {50, 149, 247}, {38, 189, 225},
    {41, 221, 187}, {64, 243, 146}, {102, 253, 109}, {150, 250, 80}, {198, 235, 59},
    {238, 208, 45}, {255, 171, 36}, {255, 128, 29},  {238, 84, 21},  {201, 45, 12},
    {161, 18, 2},   {144, 13, 0}};

#define MAP(name)                                                                        \
    {                                                                                    \
#        name, name, sizeof name / sizeof name[0]                                        \
    }
static const struct {
    const char *name;
    const struct plot_rgb *points;
    size_t n;
} maps[] = {MAP(viridis), MAP(cividis), MAP(magma), MAP(gray), MAP(coolwarm), MAP(turbo)};

static uint8_t mix(uint8_t under, uint8_t over, double share)
{
    return (uint8_t)((double)under + ((double)over - (double)under) * share + 0.5);
}

struct plot_rgb cli_plot_color(const char *map, double t)
{
    size_t m = 0, i;
    struct plot_rgb a, b;
    double at;

    while (m + 1 < sizeof maps / sizeof maps[0] && strcmp(maps[m].name, map) != 0)
        m++;
    t = t > 0 ? (t < 1 ? t : 1) : 0;
    at = t * (double)(maps[m].n - 1);
    i = (size_t)at;
    if (i + 2 > maps[m].n)
        i = maps[m].n - 2;
    a = maps[m].points[i];
    b = maps[m].points[i + 1];
    at -= (double)i;
    return (struct plot_rgb){mix(a.r, b.r, at), mix(a.g, b.g, at), mix(a.b, b.b, at)};
}

struct plot_rgb cli_plot_value_color(const struct plot_style *style, double value)
{
    return isnan(value) ? cli_plot_missing
                        : cli_plot_color(style->map, cli_plot_share(style->range, value));
}

/* ---- pixels ---- */

void cli_canvas_init(struct plot_canvas *c, int width, int height)
{
    c->width = width;
    c->height = height;
    c->pixels = cli_alloc((size_t)width * (size_t)height * 3);
}

static uint8_t *pixel(struct plot_canvas *c, int x, int y)
{
    if (x < 0 || y < 0 || x >= c->width || y >= c->height)
        return NULL;
    return c->pixels + ((size_t)y * (size_t)c->width + (size_t)x) * 3;
}

void cli_canvas_set(struct plot_canvas *c, int x, int y, struct plot_rgb color)
{
    uint8_t *p = pixel(c, x, y);

    if (p) {
        p[0] = color.r;
        p[1] = color.g;
        p[2] = color.b;
    }
}

static void blend(struct plot_canvas *c, int x, int y, struct plot_rgb color,
                  double share)
{
    uint8_t *p = pixel(c, x, y);

    if (!p || share <= 0)
        return;
    share = share < 1 ? share : 1;
    p[0] = mix(p[0], color.r, share);
    p[1] = mix(p[1], color.g, share);
    p[2] = mix(p[2], color.b, share);
}

void cli_canvas_fill(struct plot_canvas *c, struct plot_box box, struct plot_rgb color)
{
    for (int y = box.y; y < box.y + box.height; y++)
        for (int x = box.x; x < box.x + box.width; x++)
            cli_canvas_set(c, x, y, color);
}

void cli_canvas_frame(struct plot_canvas *c, struct plot_box b, int thick,
                      struct plot_rgb color)
{
    const int w = b.width + 2 * thick;

    cli_canvas_fill(c, (struct plot_box){b.x - thick, b.y - thick, w, thick}, color);
    cli_canvas_fill(c, (struct plot_box){b.x - thick, b.y + b.height, w, thick}, color);
    cli_canvas_fill(c, (struct plot_box){b.x - thick, b.y, thick, b.height}, color);
    cli_canvas_fill(c, (struct plot_box){b.x + b.width, b.y, thick, b.height}, color);
}

/* ---- lines ---- */

static double distance_to(const struct plot_line *l, double x, double y)
{
    const double dx = l->z - l->x, dy = l->w - l->y;
    const double length = dx * dx + dy * dy;
    double t = length > 0 ? ((x - l->x) * dx + (y - l->y) * dy) / length : 0;

    t = t > 0 ? (t < 1 ? t : 1) : 0;
    return (double)hypotl(x - l->x - t * dx, y - l->y - t * dy);
}

static int between(double v, int low, int high)
{
    return v < (double)low ? low : v > (double)high ? high : (int)v;
}

void cli_canvas_line(struct plot_canvas *c, struct plot_box b, const struct plot_line *l)
{
    const double half = l->width / 2, reach = half + 1;
    const int x0 = between(fmin(l->x, l->z) - reach, b.x, b.x + b.width);
    const int x1 = between(fmax(l->x, l->z) + reach, b.x, b.x + b.width - 1);
    const int y0 = between(fmin(l->y, l->w) - reach, b.y, b.y + b.height);
    const int y1 = between(fmax(l->y, l->w) + reach, b.y, b.y + b.height - 1);

    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++)
            blend(c, x, y, l->color,
                  half + 0.5 - distance_to(l, (double)x + 0.5, (double)y + 0.5));
}

/* ---- text ---- */

int cli_text_width(const char *text, int scale)
{
    const int n = cli_font_count(text);

    return n > 0 ? (n * (PLOT_FONT_WIDTH + 1) - 1) * scale : 0;
}

static double bit_at(const uint8_t *glyph, int column, int row)
{
    if (column < 0 || row < 0 || column >= PLOT_FONT_WIDTH || row >= PLOT_FONT_HEIGHT)
        return 0;
    return glyph[row] >> (PLOT_FONT_WIDTH - 1 - column) & 1;
}

/* The coverage of a pixel: interpolates the bits of the glyph and compares with 0.45,
 * which rounds the corners at larger scales. */
static double ink(const uint8_t *glyph, int scale, int x, int y)
{
    const double u = ((double)x + 0.5) / scale - 0.5, v = ((double)y + 0.5) / scale - 0.5;
    const int i = (int)floor(u), k = (int)floor(v);
    const double p = u - i, q = v - k;
    const double value =
        (1 - p) * (1 - q) * bit_at(glyph, i, k) + p * (1 - q) * bit_at(glyph, i + 1, k) +
        (1 - p) * q * bit_at(glyph, i, k + 1) + p * q * bit_at(glyph, i + 1, k + 1);

    return (value - 0.45) * scale + 0.5;
}

void cli_canvas_text(struct plot_canvas *c, int x, int y, const struct plot_text *t)
{
    const int s = t->scale, margin = 1;
    uint8_t glyph[PLOT_FONT_HEIGHT];
    int at = 0;

    for (const char *p = t->text; cli_font_next(&p, glyph);
         at += (PLOT_FONT_WIDTH + 1) * s) {
        for (int v = -margin; v < PLOT_FONT_HEIGHT * s + margin; v++)
            for (int u = -margin; u < PLOT_FONT_WIDTH * s + margin; u++) {
                const double share = ink(glyph, s, u, v);

                if (t->upward)
                    blend(c, x + v, y - at - u, t->color, share);
                else
                    blend(c, x + at + u, y + v, t->color, share);
            }
    }
}

/* ---- PNG ---- */

int cli_canvas_write(struct cli *cli, const struct plot_canvas *c,
                     const struct cli_file *file)
{
    const char *name = file->path ? file->path : "stdout";
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)c->width,
                       .height = (png_uint_32)c->height,
                       .format = PNG_FORMAT_RGB};

    errno = 0;
    if (png_image_write_to_stdio(&image, file->file, 0, c->pixels, 0, NULL))
        return CLI_OK;
    return ferror(file->file) && errno
               ? cli_errno(cli, errno, "cannot write %s", name)
               : cli_error(cli, CLI_IO, NULL, "cannot write %s: %s", name, image.message);
}
