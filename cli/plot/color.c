/*
 * plot/color.c - colour maps, as a few colours with linear interpolation between them.
 * The lightness of viridis, cividis and magma grows evenly, also for users with colour
 * blindness. coolwarm is for values around a centre. turbo shows the most steps, but its
 * lightness is uneven.
 */
#include "plot/plot.h"

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

static uint8_t between(uint8_t a, uint8_t b, double share)
{
    return (uint8_t)((double)a + ((double)b - (double)a) * share + 0.5);
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
    return (struct plot_rgb){between(a.r, b.r, at), between(a.g, b.g, at),
                             between(a.b, b.b, at)};
}
