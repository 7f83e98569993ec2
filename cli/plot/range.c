/*
 * plot/range.c - the range of values that a plot shows, and round numbers in it. The
 * range leaves out some percent of the values at both ends, so that one outlier does not
 * give all others the same colour.
 */
#include "plot/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double percentile(const double *sorted, uint64_t n, double percent)
{
    const double at = percent / 100 * (double)(n - 1);
    const uint64_t i = (uint64_t)at;
    const double rest = at - (double)i;

    return i + 1 < n ? sorted[i] + (sorted[i + 1] - sorted[i]) * rest : sorted[n - 1];
}

static struct plot_range widen_range(double low, double high)
{
    const double more = fmax(fabs(low), 1) * 0.5;

    if (low < high)
        return (struct plot_range){low, high};
    return (struct plot_range){low - more, low + more};
}

double cli_plot_share(struct plot_range range, double value)
{
    const double share = (value - range.low) / (range.high - range.low);

    return share > 0 ? (share < 1 ? share : 1) : 0;
}

struct plot_range cli_plot_stretch(const struct plot_data *data, double low, double high)
{
    double *sorted;
    uint64_t n = 0;
    struct plot_range range;

    if (data->n_finite == 0)
        return (struct plot_range){0, 1};
    sorted = cli_alloc((size_t)data->n_finite * sizeof *sorted);
    for (uint64_t i = 0; i < data->n_values; i++)
        if (isfinite(data->values[i]))
            sorted[n++] = data->values[i];
    qsort(sorted, (size_t)n, sizeof *sorted, compare_doubles);
    range.low = percentile(sorted, n, low);
    range.high = percentile(sorted, n, high);
    free(sorted);
    if (!(range.low < range.high)) /* nearly all values are equal: use all of them */
        return widen_range(data->min, data->max);
    return range;
}

/* 1, 2 or 5 times a power of ten, at least x. */
static double round_step(double x)
{
    const double power = pow(10, floor(log10(x)));
    const double digits = x / power;

    return (digits <= 1 ? 1 : digits <= 2 ? 2 : digits <= 5 ? 5 : 10) * power;
}

static void number_text(double value, double step, double largest, char text[24])
{
    if (fabs(value) < step * 1e-6)
        value = 0;
    if (largest >= 1e6 || step < 1e-5) {
        int digits = (int)ceil(log10(largest / step) + 1e-9) + 1;

        snprintf(text, 24, "%.*g", digits < 1 ? 1 : digits > 12 ? 12 : digits, value);
    } else {
        int digits = (int)-floor(log10(step) + 1e-9);

        snprintf(text, 24, "%.*f", digits > 0 ? digits : 0, value);
    }
}

void cli_plot_ticks(struct plot_range r, int most, bool whole, struct plot_ticks *out)
{
    const double largest = fmax(fabs(r.low), fabs(r.high));
    double step, first;

    out->n = 0;
    if (most > PLOT_MAX_TICKS)
        most = PLOT_MAX_TICKS;
    if (most < 2 || !(r.low < r.high) || !isfinite(r.high - r.low))
        return;
    step = round_step((r.high - r.low) / most);
    if (whole && step < 1)
        step = 1;
    first = ceil(r.low / step - 1e-9) * step;
    for (int i = 0; i < PLOT_MAX_TICKS; i++) {
        const double at = first + i * step;

        if (at > r.high + step * 1e-9)
            break;
        out->at[out->n] = at;
        if (whole && largest < 1e15)
            snprintf(out->text[out->n], 24, "%.0f", at);
        else
            number_text(at, step, largest, out->text[out->n]);
        out->n++;
    }
}

/* ---- coordinates ---- */

void cli_plot_axis_ticks(const struct plot_axis *a, int most, struct plot_ticks *out)
{
    const double last = a->first + a->spacing * ((double)a->n - 1);
    const struct plot_range range = {fmin(a->first, last), fmax(a->first, last)};

    cli_plot_ticks(range, most, !a->is_even, out);
    for (int k = 0; k < out->n && a->at.array && !a->is_even; k++) {
        const double i = round((out->at[k] - a->first) / a->spacing);
        struct cli_string text = {0};
        char *zeros;

        if (!(i >= 0 && i < (double)a->n))
            continue;
        cli_string_add(&text, "", 0);
        cf_coordinate_print(&a->at, (uint64_t)i, &text);
        zeros = strstr(text.text, "T00:00:00");
        zeros = zeros ? zeros : strstr(text.text, ":00:00");
        if (zeros)
            *zeros = '\0';
        snprintf(out->text[k], sizeof out->text[k], "%.23s", text.text);
        cli_string_free(&text);
    }
}

/* Longitudes go on across the seam: 350, 355, 360. */
static void unwrap_longitudes(struct cf_coordinate *c)
{
    bool is_far = false;

    for (uint64_t i = 1; i < c->n; i++) {
        const double turn = c->value[i] - c->value[i - 1];

        if (isfinite(turn))
            c->value[i] -= 360 * round(turn / 360);
        is_far = is_far || c->value[i] >= 360;
    }
    is_far = is_far && c->value[0] > 180;
    for (uint64_t i = 0; i < c->n && is_far; i++)
        c->value[i] -= 360;
}

/* Ticks at round numbers need evenly spaced values. */
static void find_spacing(struct plot_axis *a)
{
    const struct cf_coordinate *c = &a->at;
    const double first = c->value[0], last = c->value[c->n - 1];
    const double spacing = (last - first) / ((double)c->n - 1);

    if (c->cf.kind == CF_TIME || c->text || c->n < 2 || !isfinite(spacing) ||
        spacing == 0)
        return;
    for (uint64_t i = 0; i < c->n; i++)
        if (!(fabs(c->value[i] - first - (double)i * spacing) <= 1e-3 * fabs(spacing)))
            return;
    a->is_even = true;
    a->first = first;
    a->spacing = spacing;
}

/* Gives the axis the coordinate of its dimension. */
static int read_axis(struct reading *r, struct plot_axis *a)
{
    const uint64_t most = 1u << 22; /* values, to be quick */
    const char *unit;
    struct cf_coordinate *c = &a->at;
    char *name = a->name;
    int rc = CLI_OK;

    if (name && a->n <= most)
        rc = cf_coordinate_read(r->cli, r->node->store, zarr_array_path(r->array), name,
                                r->items[a->array_dim],
                                zarr_array_shape(r->array)[a->array_dim], c);
    if (rc || !c->array || c->n == 0)
        return rc;
    if (c->cf.is_longitude && c->cf.kind != CF_TIME)
        unwrap_longitudes(c);
    find_spacing(a);
    a->is_northward = c->cf.is_latitude && c->value[0] < c->value[a->n - 1];
    unit = c->cf.kind == CF_TIME ? NULL : c->cf.unit;
    a->name = unit ? cli_format("%s (%s)", name, unit) : cli_strdup(name);
    free(name);
    return CLI_OK;
}

int cli_plot_coordinates(struct reading *r)
{
    int rc = CLI_OK;

    for (int i = 2 - r->out->ndim; i < 2 && !rc; i++)
        rc = read_axis(r, &r->out->axis[i]);
    return rc;
}
