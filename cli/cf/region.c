/*
 * cf/region.c - regions by name: "time=3" takes indices along a dimension, "lat@35:70"
 * values of a coordinate with both ends included, as isel and sel of xarray. The names
 * become indices, so that everything behind sees an ordinary region.
 *
 * Values of coordinates are numbers (cf/coordinate.c). So each value of a region is an
 * interval of numbers: of one number, of a period of time, or of the points with a label.
 */
#include "cf/cf.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\n\r"; /* as zarr_selection_parse() has them */

/* ---- errors ---- */

static const char several[] = "several points have this value";

/* An item of a region, and the coordinate along which it selects. */
struct region_item {
    struct cli *cli;
    zarr_store *store;
    const zarr_array *array;
    const char *shown;
    const char *item, *name, *text; /* "lat@35:70", "lat", "35:70" */
    struct cf_coordinate c;
    bool is_wrapped; /* longitudes, which repeat after 360 degrees */
    double error;    /* how far apart two of them are the same */
    uint64_t *index; /* the selected ones */
    uint64_t n;
    bool nearest; /* --nearest */
};

/* Prints an error with the range of the coordinate, "lat has 180 values from 89.5 to
 * -89.5", and with the names of dimensions if they are wrong. */
static int refuse(const struct region_item *r, const char *hint, const char *why)
{
    const struct cf_coordinate *c = &r->c;
    const zarr_array *named = c->array ? c->array : r->array;
    struct cli_string more = {0};
    uint64_t low = 0, high = 0;
    int rc;

    for (int32_t d = 0; (!c->array || !c->is_line) && d < zarr_array_ndim(named); d++) {
        const char *name = zarr_array_dimension_name(named, d);

        cli_string_printf(&more, "%s%s", d ? ", " : "; the dimensions are ",
                          name ? name : "(no name)");
    }
    for (uint64_t i = 0; i < c->n; i++) {
        low = c->value[i] < c->value[low] ? i : low;
        high = c->value[i] > c->value[high] ? i : high;
    }
    if (c->array)
        cli_string_printf(&more, "; %s has %" PRIu64 " value%s", r->name, c->n,
                          c->n == 1 ? "" : "s");
    if (c->n > 0) {
        cli_string_printf(&more, " from ");
        cf_coordinate_print(c, low < high ? low : high, &more);
        cli_string_printf(&more, " to ");
        cf_coordinate_print(c, low < high ? high : low, &more);
    }
    rc = cli_error(r->cli, CLI_USAGE, hint, "region %s of %s: %s%s", r->item, r->shown,
                   why, more.text ? more.text : "");
    cli_string_free(&more);
    return rc;
}

/* ---- values of an item ---- */

/* The values that a text means, ends included. */
struct interval {
    double low, high;
    bool is_period;
};

/* Reads the longest label that a delimiter follows. Its values are its indices, which
 * must be neighbours. */
static bool read_label(const struct region_item *r, const char **at, struct interval *out,
                       const char **why)
{
    size_t longest = 0;
    double n = 0;

    for (uint64_t i = 0; i < r->c.n; i++) {
        const size_t bytes = strlen(r->c.text[i]);

        if (bytes < longest || strncmp(*at, r->c.text[i], bytes) != 0 ||
            !strchr(":,]", (*at)[bytes + strspn(*at + bytes, blanks)]))
            continue;
        n = bytes > longest ? 1 : n + 1;
        out->low = n == 1 ? (double)i : out->low;
        out->high = (double)i;
        longest = bytes;
    }
    *at += longest;
    *why = n > 1 ? several : "no point has this value";
    return n > 0 && out->high - out->low == n - 1;
}

/* Whether a date is coarser than the values: then it means all values of its period. */
static bool is_coarse(const struct cf_coordinate *c, enum cf_part finest)
{
    for (uint64_t i = 0; i < c->n && finest >= CF_DAY; i++) {
        struct cf_date date = {{0}};

        if (!isnan(c->value[i]))
            cf_instant_date(c->cf.units.calendar, (int64_t)c->value[i], &date);
        for (int k = (int)finest + 1; k <= CF_MICROSECOND; k++)
            if (date.part[k] > 0)
                return true;
    }
    return finest < CF_DAY;
}

static bool read_period(const struct region_item *r, const char **at,
                        struct interval *out)
{
    const enum cf_calendar calendar = r->c.cf.units.calendar;
    struct cf_date date;
    enum cf_part finest;
    const char *end = cf_date_parse(*at, false, &date, &finest);
    const int64_t first = end ? cf_date_instant(calendar, &date) : CF_NO_TIME;

    if (first == CF_NO_TIME)
        return false;
    *at = end;
    out->low = (double)first;
    out->high =
        nextafter((double)cf_period_end(calendar, &date, finest), -(double)INFINITY);
    out->is_period = is_coarse(&r->c, finest);
    return true;
}

static int read_value(const struct region_item *r, const char **at, struct interval *out)
{
    const char *why = "a value is not a number";
    char *end;
    bool ok;

    *at += strspn(*at, blanks);
    if (r->c.cf.kind == CF_TIME) {
        why = "a value is no date of the calendar, as 2003-07";
        ok = read_period(r, at, out);
    } else if (r->c.text) {
        ok = read_label(r, at, out, &why);
    } else {
        out->low = strtod(*at, &end);
        ok = end > *at && !isnan(out->low);
        *at = end;
        if (zarr_dtype_kind(r->c.cf.decoded) == ZARR_KIND_FLOAT &&
            zarr_dtype_item_bytes(r->c.cf.decoded) == sizeof(float))
            out->low = (double)(float)out->low;
        out->high = out->low;
    }
    *at += strspn(*at, blanks);
    return ok && strchr(":,]", **at) ? CLI_OK : refuse(r, NULL, why);
}

/* ---- points of the coordinate ---- */

/* 1: the values never fall, -1: they never rise, 0: neither, or some are missing. */
static int order(const struct cf_coordinate *c)
{
    bool rises = true, falls = true;

    for (uint64_t i = 0; i < c->n; i++) {
        if (isnan(c->value[i]))
            return 0;
        rises = rises && (i == 0 || c->value[i] >= c->value[i - 1]);
        falls = falls && (i == 0 || c->value[i] <= c->value[i - 1]);
    }
    return rises ? 1 : falls ? -1 : 0;
}

/* How far value i is from v. A full turn counts a little, so that 0 is nearer to 0 than
 * 360 is. */
static double distance(const struct region_item *r, uint64_t i, double v)
{
    const double plain = fabs(r->c.value[i] - v);

    return r->is_wrapped ? fmin(plain, fabs(remainder(plain, 360)) + r->error / 2)
                         : plain;
}

/* Selects the one point with this value, or the nearest: of two the larger one. */
static int add_point(struct region_item *r, double v)
{
    double best = (double)INFINITY;
    uint64_t at = 0, n_best = 0;
    struct cli_string hint = {0};
    int rc;

    for (uint64_t i = 0; i < r->c.n; i++) {
        const double d = distance(r, i, v);

        n_best = d < best ? 1 : n_best + (d == best);
        at = d < best || (d == best && r->c.value[i] > r->c.value[at]) ? i : at;
        best = fmin(best, d);
    }
    if (n_best > 1 && best == 0)
        return refuse(r, NULL, several);
    if (n_best > 0 && (best <= r->error || r->nearest)) {
        r->index[r->n++] = at;
        return CLI_OK;
    }
    if (n_best > 0) {
        cli_string_printf(&hint, "The nearest is ");
        cf_coordinate_print(&r->c, at, &hint);
        cli_string_printf(&hint, ", which --nearest takes.");
    }
    rc = refuse(r, hint.text, "no point has this value");
    cli_string_free(&hint);
    return rc;
}

static void add_between(struct region_item *r, double low, double high)
{
    for (uint64_t i = 0; i < r->c.n; i++)
        if (r->c.value[i] >= low && r->c.value[i] <= high)
            r->index[r->n++] = i;
}

/* Longitudes go east from low to high, also across the seam. The points behind the seam
 * are those of the rest of the range, one turn back. */
static void add_longitudes(struct region_item *r, double low, double high, bool falls)
{
    const double *value = r->c.value, e = r->error;
    const double first = value[falls ? r->c.n - 1 : 0];
    const double last = value[falls ? 0 : r->c.n - 1];
    const double to = high + (high < low ? 360 * ceil((low - high) / 360) : 0);
    const double west = low - 360 * floor((low - first + e) / 360);
    const double rest = fmin(west + (to - low) - 360 + e, west - 2 * e);

    if (low >= first && low <= high && high <= last) {
        add_between(r, low, high);
        return;
    }
    if (falls)
        add_between(r, first, rest);
    add_between(r, west - e, fmin(west + (to - low) + e, first + 360 - e));
    if (!falls)
        add_between(r, first, rest);
}

static int add_range(struct region_item *r, const struct interval *from,
                     const struct interval *to)
{
    const double low = from->low, high = to->high;
    const int sorted = order(&r->c);
    const uint64_t n = r->n;

    if (sorted == 0)
        return refuse(r, "Select by index: NAME=FIRST:END.",
                      "the values are not sorted, or some are missing");
    if (r->is_wrapped && r->c.n > 0 && isfinite(low) && isfinite(high))
        add_longitudes(r, low, high, sorted < 0);
    else if (low <= high)
        add_between(r, low, high);
    else if (sorted < 0)
        add_between(r, to->low, from->high);
    else
        return refuse(r, NULL, "the range falls, but the values rise");
    return r->n > n ? CLI_OK : refuse(r, NULL, "no point lies in the range");
}

/* ---- items ---- */

/* A part of a text without blanks at its ends; owned. */
static char *trim(const char *at, size_t bytes)
{
    const size_t skipped = strspn(at, blanks) < bytes ? strspn(at, blanks) : bytes;

    at += skipped;
    bytes -= skipped;
    while (bytes > 0 && strchr(blanks, at[bytes - 1]))
        bytes--;
    return cli_format("%.*s", (int)bytes, at);
}

/* Selects "35:70", "2003-07" or "35". *is_one: whether it is one point. */
static int add_item(struct region_item *r, const char **at, bool *is_one)
{
    struct interval low = {.low = -(double)INFINITY}, high = {.high = (double)INFINITY};
    const uint64_t n = r->n;
    int rc = **at == ':' ? CLI_OK : read_value(r, at, &low);

    if (!rc && **at == ':') {
        ++*at;
        rc = **at ? read_value(r, at, &high) : CLI_OK;
        return rc ? rc : add_range(r, &low, &high);
    }
    if (!rc && low.is_period)
        add_between(r, low.low, low.high);
    else if (!rc && r->c.text && low.low < low.high)
        return refuse(r, NULL, several);
    *is_one = r->n == n;
    return rc || r->n > n ? rc : add_point(r, low.low);
}

/* Writes the selected indices as "3", "3:7" or "[3,5]". */
static void print_indices(const struct region_item *r, bool is_one,
                          struct cli_string *out)
{
    uint64_t k = 1;

    while (k < r->n && r->index[k] == r->index[k - 1] + 1)
        k++;
    if (is_one)
        cli_string_printf(out, "%" PRIu64, r->index[0]);
    else if (k == r->n)
        cli_string_printf(out, "%" PRIu64 ":%" PRIu64, r->index[0], r->index[0] + k);
    else
        for (k = 0; k < r->n; k++)
            cli_string_printf(out, "%s%" PRIu64 "%s", k ? "," : "[", r->index[k],
                              k + 1 < r->n ? "" : "]");
}

/* Adds the indices of an item or of a list of items, "[35,70]". */
static int add_values(struct region_item *r, struct cli_string *out)
{
    const bool is_list = *r->text == '[';
    const char *at = r->text + is_list;
    bool is_one = false;
    int rc;

    r->is_wrapped = r->c.cf.is_longitude && r->c.cf.kind != CF_TIME && !r->c.text;
    r->error = !r->is_wrapped                                            ? 0
               : zarr_dtype_item_bytes(r->c.cf.decoded) == sizeof(float) ? 1e-4
                                                                         : 1e-9;
    r->n = 0;
    do {
        r->index = cli_realloc(r->index, (size_t)(r->n + r->c.n + 1) * sizeof *r->index);
        rc = add_item(r, &at, &is_one);
    } while (!rc && is_list && *at == ',' && at++);
    if (!rc && strcmp(at, is_list ? "]" : "") != 0)
        rc = refuse(r, NULL,
                    is_list ? "the list does not end" : "a range of values has no step");
    if (!rc)
        print_indices(r, is_one && !is_list, out);
    free(r->index);
    r->index = NULL;
    return rc;
}

/* The dimension of this name, from dimension d on; -1 if there is none. */
static int32_t find_dimension(const zarr_array *array, const char *name, int32_t d)
{
    for (; name && d < zarr_array_ndim(array); d++) {
        const char *other = zarr_array_dimension_name(array, d);

        if (other && strcmp(other, name) == 0)
            return d;
    }
    return -1;
}

/* Resolves NAME@VALUES. *dim: the dimension that it selects along. */
static int resolve_values(struct region_item *r, int32_t *dim, struct cli_string *out)
{
    int rc = cf_coordinate_read(r->cli, r->store, zarr_array_path(r->array), r->name,
                                NULL, 0, &r->c);

    if (rc)
        return rc;
    if (!r->c.array)
        return refuse(r, NULL, "there is no such coordinate of numbers, times or text");
    if (!r->c.is_line)
        return refuse(r, "Select by index along its dimensions: NAME=FIRST:END.",
                      "the coordinate does not have one dimension");
    *dim = find_dimension(r->array, r->name, 0);
    if (*dim < 0) /* a coordinate along a dimension of another name */
        *dim = find_dimension(r->array, zarr_array_dimension_name(r->c.array, 0), 0);
    if (*dim < 0 || zarr_array_shape(r->array)[*dim] != r->c.n)
        return refuse(r, NULL, "no dimension has this name and length");
    return add_values(r, out);
}

/* Resolves one item. *next: the dimension of an item without name. */
static int resolve_item(struct region_item *r, const char *item, struct cli_string *dims,
                        int32_t *next)
{
    const char *sign = item + strcspn(item, "=@");
    char *name = trim(item, (size_t)(sign - item));
    struct cli_string indices = {0};
    int32_t dim = *next;
    int rc = CLI_OK;

    r->item = *item ? item : "(empty)";
    r->name = name;
    r->text = *sign ? sign + 1 + strspn(sign + 1, blanks) : item;
    *next += !*sign;
    if (*r->text == '\0')
        rc = refuse(r, NULL, "it selects nothing");
    else if (*sign == '@')
        rc = resolve_values(r, &dim, &indices);
    else if (*sign == '=' && (dim = find_dimension(r->array, name, 0)) < 0)
        rc = refuse(r, NULL, "no dimension has this name");
    if (*sign != '@')
        cli_string_printf(&indices, "%s", r->text);
    if (!rc && (strcmp(item, "...") == 0 || dim >= zarr_array_ndim(r->array)))
        rc = refuse(r, "Items without names come first, without \"...\".",
                    "it has no dimension");
    else if (!rc && *sign &&
             find_dimension(r->array, zarr_array_dimension_name(r->array, dim),
                            dim + 1) >= 0)
        rc = refuse(r, NULL, "two dimensions have this name");
    else if (!rc && dims[dim].n_bytes)
        rc = refuse(r, NULL, "another item selects along this dimension, too");
    if (!rc)
        dims[dim] = indices; /* moved */
    else
        cli_string_free(&indices);
    cf_coordinate_free(&r->c);
    free(name);
    return rc;
}

/* ---- regions ---- */

char *cf_next_item(const char **at)
{
    const char *begin = *at;
    int depth = 0;
    size_t n = 0;

    if (!*begin)
        return NULL;
    for (; begin[n] && (begin[n] != ',' || depth > 0); n++)
        depth += begin[n] == '[' ? 1 : begin[n] == ']' ? -1 : 0;
    *at += n + (begin[n] == ',');
    return trim(begin, n);
}

void cf_region_split(const char *region, int32_t ndim, char **items)
{
    const char *at = region ? region : "", *count = at;
    int32_t n = 0, d = 0;
    char *item;

    for (; (item = cf_next_item(&count)) != NULL; n++)
        free(item);
    while (d < ndim && (item = cf_next_item(&at)) != NULL)
        if (strcmp(item, "...") != 0)
            items[d++] = item;
        else
            for (free(item); n <= ndim; n++)
                items[d++] = cli_strdup(":");
    while (d < ndim)
        items[d++] = cli_strdup(":");
}

/* Whether the item names a dimension of the array. */
static bool is_along(const zarr_array *array, const char *item)
{
    const char *sign = item + strcspn(item, "=@");
    char *name = trim(item, (size_t)(sign - item));
    const bool found = *sign && find_dimension(array, name, 0) >= 0;

    free(name);
    return found;
}

int cf_region_resolve(struct cli *cli, zarr_store *store, const zarr_array *array,
                      const char *shown, char **region, bool *used)
{
    struct region_item r = {.cli = cli, .store = store, .array = array, .shown = shown};
    struct cli_string dims[ZARR_MAX_RANK] = {{0}}, whole = {0};
    bool any = !used;
    int32_t next = 0;
    const char *at = *region;
    char *item;
    int rc = CLI_OK;

    if (!*region || (!used && !strpbrk(*region, "=@")))
        return CLI_OK;
    r.nearest = cli_flag(cli, "nearest");
    for (; !rc && (item = cf_next_item(&at)) != NULL; free(item), used += used != NULL)
        if (!used || is_along(array, item)) {
            rc = resolve_item(&r, item, dims, &next);
            any = true;
            if (used)
                *used = true;
        }
    for (int32_t d = 0; d < zarr_array_ndim(array); d++) {
        cli_string_printf(&whole, "%s%s", d ? "," : "",
                          dims[d].n_bytes ? dims[d].text : ":");
        cli_string_free(&dims[d]);
    }
    if (rc || !any)
        cli_string_free(&whole);
    if (!rc) {
        free(*region);
        *region = whole.text;
    }
    return rc;
}
