/*
 * cf/region.c - regions by name: "time=3" takes indices along a dimension, "lat@35:70"
 * values of a coordinate with both ends included, as isel and sel of xarray. The names
 * become indices, so that everything behind sees an ordinary region.
 */
#include "cf/cf.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- coordinates ---- */

/* Opens `name` in the group above `path`, or in the next one that has it. */
static int open_coordinate(struct cli *cli, zarr_store *store, const char *path,
                           const char *name, zarr_array **out)
{
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = cli_cancel};
    char *group = cli_strdup(path);
    int rc = CLI_OK;

    for (*out = NULL; !rc && !*out && *group;) {
        char *slash = strrchr(group, '/'), *full;
        zarr_error err = {0};
        zarr_status st;

        (slash ? slash : group)[0] = '\0';
        full = cli_path_join(group, name);
        st = zarr_array_open(out, store, full, &opts, &err);
        if (st != ZARR_OK && st != ZARR_ERR_NOT_FOUND && st != ZARR_ERR_INVALID)
            rc = cli_fail(cli, st, &err, "cannot open coordinate /%s", full);
        free(full);
    }
    free(group);
    return rc;
}

static bool is_time(const struct cf_coordinate *c)
{
    return c->cf.kind == CF_TIME;
}

static int read_values(struct cli *cli, const char *name, struct cf_coordinate *c)
{
    const zarr_io_options opts = {.struct_size = sizeof opts, .cancel = cli_cancel};
    const int32_t ndim = zarr_array_ndim(c->array);
    const uint64_t *shape = zarr_array_shape(c->array);
    const uint64_t bytes = zarr_dtype_item_bytes(c->cf.type);
    const uint64_t all = cli_mul(cli_product(ndim, shape), bytes + sizeof *c->value);
    zarr_tensor tensor = {.struct_size = sizeof tensor};
    zarr_error err = {0};
    zarr_status st;
    char *elements;

    if (all > (cli->memory_bytes ? cli->memory_bytes : 1u << 30))
        return cli_error(cli, CLI_CORRUPT, "Raise --mem, or select by index: NAME=INDEX.",
                         "coordinate %s is too large", name);
    c->n = cli_product(ndim, shape);
    elements = cli_alloc((size_t)(c->n * bytes) + 1);
    c->value = cli_alloc((size_t)c->n * sizeof *c->value + 1);
    zarr_tensor_host(&tensor, NULL, elements, c->n * bytes, ndim, shape);
    st = zarr_array_read(c->array, NULL, &tensor, &opts, &err);
    for (uint64_t i = 0; i < c->n && !st; i++)
        if (is_time(c))
            c->value[i].time = cf_time(&c->cf, elements + i * bytes);
        else
            c->value[i].number = cf_number(&c->cf, elements + i * bytes);
    free(elements);
    return st ? cli_fail_array(cli, c->array, st, &err, "cannot read coordinate %s", name)
              : CLI_OK;
}

int cf_coordinate_read(struct cli *cli, zarr_store *store, const char *path,
                       const char *name, struct cf_coordinate *out)
{
    const zarr_dtype *type;
    int rc = open_coordinate(cli, store, path, name, &out->array);

    if (rc || !out->array)
        return rc;
    type = zarr_array_dtype(out->array);
    rc = cf_find(cli, out->array, type, name, &out->cf);
    if (!rc && (is_time(out) || (zarr_dtype_components(type) == 1 &&
                                 zarr_dtype_kind(type) <= ZARR_KIND_FLOAT)))
        return read_values(cli, name, out);
    cf_coordinate_free(out);
    return rc;
}

void cf_coordinate_free(struct cf_coordinate *c)
{
    cf_free(&c->cf);
    zarr_array_free(c->array);
    free(c->value);
    *c = (struct cf_coordinate){0};
}

static void print_value(const struct cf_coordinate *c, union cf_value v,
                        struct cli_string *out)
{
    if (is_time(c))
        cf_instant_print(c->cf.units.calendar, v.time, out);
    else
        cli_string_printf(out, "%.*g", zarr_dtype_item_bytes(c->cf.decoded) == 4 ? 7 : 12,
                          v.number);
}

void cf_coordinate_print(const struct cf_coordinate *c, uint64_t i,
                         struct cli_string *out)
{
    print_value(c, c->value[i], out);
}

static bool is_before(const struct cf_coordinate *c, union cf_value a, union cf_value b)
{
    return is_time(c) ? a.time < b.time : a.number < b.number;
}

/* 1: the values never fall, -1: they never rise, 0: neither, or some are missing. */
static int order(const struct cf_coordinate *c)
{
    bool rises = true, falls = true;

    for (uint64_t i = 0; i < c->n; i++) {
        if (is_time(c) ? c->value[i].time == CF_NO_TIME : isnan(c->value[i].number))
            return 0;
        rises = rises && (i == 0 || !is_before(c, c->value[i], c->value[i - 1]));
        falls = falls && (i == 0 || !is_before(c, c->value[i - 1], c->value[i]));
    }
    return rises ? 1 : falls ? -1 : 0;
}

/* ---- one region ---- */

/* A dimension by name. */
struct naming {
    struct cli *cli;
    zarr_store *store;
    const zarr_array *array;
    const char *shown;
    const char *name, *text; /* of this item: "lat", "35:70" */
    struct cf_coordinate c;
    struct cli_string *out; /* the indices */
    bool nearest;           /* --nearest */
};

/* The range of the values: "lat has 180 values, 89.5 to -89.5". */
static void add_range(const struct naming *r, struct cli_string *out)
{
    const struct cf_coordinate *c = &r->c;
    uint64_t low = 0, high = 0;

    for (uint64_t i = 0; i < c->n; i++) {
        low = is_before(c, c->value[i], c->value[low]) ? i : low;
        high = is_before(c, c->value[high], c->value[i]) ? i : high;
    }
    cli_string_printf(out, "%s has %" PRIu64 " values", r->name, c->n);
    if (c->n == 0)
        return;
    cli_string_printf(out, " from ");
    print_value(c, c->value[low < high ? low : high], out);
    cli_string_printf(out, " to ");
    print_value(c, c->value[low < high ? high : low], out);
}

static int refuse(const struct naming *r, const char *hint, const char *why)
{
    struct cli_string range = {0};
    int rc;

    add_range(r, &range);
    rc = cli_error(r->cli, CLI_USAGE, hint, "region %s@%s of %s: %s; %s", r->name,
                   r->text, r->shown, why, range.text);
    cli_string_free(&range);
    return rc;
}

/* One value of the text: a number, or a period. */
struct value {
    union cf_value low, high; /* the first and the last instant of a period */
    enum cf_part finest;
};

static int read_value(const struct naming *r, const char *text, size_t bytes,
                      struct value *out)
{
    const enum cf_calendar calendar = r->c.cf.units.calendar;
    const bool narrow = zarr_dtype_kind(r->c.cf.decoded) == ZARR_KIND_FLOAT &&
                        zarr_dtype_item_bytes(r->c.cf.decoded) == sizeof(float);
    char *copy = cli_format("%.*s", (int)bytes, text);
    struct cf_date date;
    const char *end;
    bool ok;

    if (is_time(&r->c)) {
        end = cf_date_parse(copy, false, &date, &out->finest);
        ok = end && end[strspn(end, " ")] == '\0';
        out->low.time = ok ? cf_date_instant(calendar, &date) : CF_NO_TIME;
        ok = out->low.time != CF_NO_TIME;
        out->high.time = ok ? cf_period_end(calendar, &date, out->finest) : CF_NO_TIME;
    } else {
        ok = cli_parse_f64(copy, &out->low.number) && !isnan(out->low.number);
        if (narrow)
            out->low.number = (double)(float)out->low.number;
        out->high = out->low;
    }
    free(copy);
    return ok ? CLI_OK
              : refuse(r, NULL,
                       is_time(&r->c) ? "a value is no date of the calendar, as 2003-07"
                                      : "a value is not a number");
}

/* The colon between the ends of a range, not one of a time of day; NULL: there is none.
 */
static const char *find_colon(const struct naming *r, const char *text)
{
    struct cf_date date;
    enum cf_part finest;
    const char *end = is_time(&r->c) ? cf_date_parse(text, false, &date, &finest) : NULL;

    return strchr(end ? end : text, ':');
}

/* ---- single values ---- */

static double distance(const struct naming *r, uint64_t i, const struct value *v)
{
    double d;

    if (is_time(&r->c))
        return fabs((double)r->c.value[i].time - (double)v->low.time);
    d = fabs(r->c.value[i].number - v->low.number);
    if (r->c.cf.is_longitude) {
        d = fmod(d, 360);
        d = fmin(d, 360 - d);
    }
    return d;
}

/* How far apart two values of a coordinate may be to be the same after a full turn. */
static double turn_error(const struct naming *r)
{
    return zarr_dtype_item_bytes(r->c.cf.decoded) == sizeof(float) ? 1e-4 : 1e-9;
}

static int add_index(const struct naming *r, uint64_t i)
{
    cli_string_printf(r->out, "%" PRIu64, i);
    return CLI_OK;
}

/* Adds the index of the point with this value. */
static int add_point(const struct naming *r, const struct value *v)
{
    const struct cf_coordinate *c = &r->c;
    uint64_t at = 0, n_equal = 0;
    struct cli_string hint = {0};
    int rc;

    for (uint64_t i = 0; i < c->n; i++) {
        if (is_time(c) ? c->value[i].time == v->low.time
                       : c->value[i].number == v->low.number) {
            at = n_equal++ ? at : i;
        } else if (!n_equal && !(distance(r, at, v) <= distance(r, i, v))) {
            at = i;
        }
    }
    if (n_equal > 1)
        return refuse(r, NULL, "several points have this value");
    if (n_equal == 1 || (c->cf.is_longitude && c->n > 0 && !is_time(c) &&
                         distance(r, at, v) < turn_error(r)))
        return add_index(r, at);
    if (c->n > 0 && r->nearest && !isnan(distance(r, at, v)))
        return add_index(r, at);
    cli_string_printf(&hint, "The nearest is ");
    if (c->n > 0)
        print_value(c, c->value[at], &hint);
    cli_string_printf(&hint, ", which --nearest takes.");
    rc = refuse(r, c->n > 0 ? hint.text : NULL, "no point has this value");
    cli_string_free(&hint);
    return rc;
}

static int add_list(struct naming *r)
{
    const char *at = r->text + 1;
    int rc = CLI_OK;

    cli_string_add(r->out, "[", 1);
    while (!rc) {
        const size_t n = strcspn(at, ",]");
        struct value v;

        rc = read_value(r, at, n, &v);
        if (!rc)
            rc = add_point(r, &v);
        at += n;
        if (*at != ',')
            break;
        cli_string_add(r->out, ",", 1);
        at++;
    }
    cli_string_add(r->out, "]", 1);
    return rc || strcmp(at, "]") == 0 ? rc : refuse(r, NULL, "the list does not end");
}

/* ---- ranges ---- */

/* Adds the points from low to high; NULL: an open end. Returns false if there are none.
 */
static bool add_between(const struct naming *r, const union cf_value *low,
                        const union cf_value *high)
{
    const struct cf_coordinate *c = &r->c;
    uint64_t first = 0, n = 0;

    for (uint64_t i = 0; i < c->n; i++)
        if (!(low && is_before(c, c->value[i], *low)) &&
            !(high && is_before(c, *high, c->value[i]))) {
            first = n++ ? first : i;
        }
    cli_string_printf(r->out, "%" PRIu64 ":%" PRIu64, first, first + n);
    return n > 0;
}

struct turned {
    double east; /* degrees east of the beginning of the range */
    uint64_t i;
};

static int by_east(const void *a, const void *b)
{
    const struct turned *x = a, *y = b;

    return x->east < y->east ? -1 : x->east > y->east ? 1 : x->i < y->i ? -1 : 1;
}

/* Adds the indices of n points, from west to east or back. */
static void add_turned(const struct naming *r, const struct turned *t, uint64_t n,
                       bool falls)
{
    bool is_slice = true;

    for (uint64_t k = 1; k < n; k++)
        is_slice =
            is_slice && (falls ? t[k].i + 1 == t[k - 1].i : t[k].i == t[k - 1].i + 1);
    if (is_slice) {
        const uint64_t first = falls ? t[n - 1].i : t[0].i;

        cli_string_printf(r->out, "%" PRIu64 ":%" PRIu64, first, first + n);
        return;
    }
    for (uint64_t k = 0; k < n; k++)
        cli_string_printf(r->out, "%s%" PRIu64, k ? "," : "[",
                          t[falls ? n - 1 - k : k].i);
    cli_string_add(r->out, "]", 1);
}

/* A range of longitudes may cross the seam: it goes east from low to high. */
static bool add_longitudes(const struct naming *r, double low, double high, bool falls)
{
    const struct cf_coordinate *c = &r->c;
    const double error = turn_error(r);
    struct turned *t = cli_alloc((size_t)c->n * sizeof *t + 1);
    uint64_t n = 0, kept = 0;

    high += high < low ? 360 * ceil((low - high) / 360) : 0;
    for (uint64_t i = 0; i < c->n; i++) {
        double east = fmod(c->value[i].number - low, 360);

        east += east < 0 ? 360 : 0;
        east = east > 360 - error ? 0 : east;
        if (east <= high - low + error)
            t[n++] = (struct turned){east, i};
    }
    if (n > 0)
        qsort(t, (size_t)n, sizeof *t, by_east);
    for (uint64_t k = 0; k < n; k++) /* 0 and 360 are one point */
        if (kept == 0 || t[k].east - t[kept - 1].east > error)
            t[kept++] = t[k];
    if (kept > 0)
        add_turned(r, t, kept, falls);
    free(t);
    return kept > 0;
}

/* Whether a range of longitudes lies inside the values, so that it needs no turn. */
static bool is_inside(const struct cf_coordinate *c, double low, double high)
{
    const double first = c->value[0].number, last = c->value[c->n - 1].number;

    return low <= high && low >= fmin(first, last) && high <= fmax(first, last);
}

static int add_range_values(const struct naming *r, const char *colon)
{
    const struct cf_coordinate *c = &r->c;
    const bool has_low = colon > r->text, has_high = colon[1] != '\0';
    const int sorted = order(c);
    struct value low, high;
    bool found;
    int rc = CLI_OK;

    if (sorted == 0)
        return refuse(r, "Select by index: NAME=FIRST:END.", "the values are not sorted");
    if (find_colon(r, colon + 1))
        return refuse(r, NULL, "a range of values has no step");
    if (has_low)
        rc = read_value(r, r->text, (size_t)(colon - r->text), &low);
    if (!rc && has_high)
        rc = read_value(r, colon + 1, strlen(colon + 1), &high);
    if (rc)
        return rc;
    if (has_low && has_high && c->cf.is_longitude && !is_time(c) && c->n > 0 &&
        !is_inside(c, low.low.number, high.high.number)) {
        found = add_longitudes(r, low.low.number, high.high.number, sorted < 0);
    } else {
        if (has_low && has_high && is_before(c, high.high, low.low)) {
            struct value other = low;

            if (sorted > 0)
                return refuse(r, NULL, "the range falls, but the values rise");
            low = high;
            high = other;
        }
        found = add_between(r, has_low ? &low.low : NULL, has_high ? &high.high : NULL);
    }
    return found ? CLI_OK : refuse(r, NULL, "no point lies in the range");
}

/* ---- items ---- */

/* Whether a date is coarser than the values: then it means all values of its period. */
static bool is_period(const struct cf_coordinate *c, enum cf_part finest)
{
    enum cf_part part = CF_DAY;

    for (uint64_t i = 0; i < c->n; i++)
        if (c->value[i].time != CF_NO_TIME && cf_instant_part(c->value[i].time) > part)
            part = cf_instant_part(c->value[i].time);
    return finest < part;
}

/* Adds the indices of "35:70", "2003-07", "35" or "[35,70]". */
static int add_values(struct naming *r)
{
    const char *colon;
    struct value v;
    int rc;

    if (*r->text == '[')
        return add_list(r);
    colon = find_colon(r, r->text);
    if (colon)
        return add_range_values(r, colon);
    rc = read_value(r, r->text, strlen(r->text), &v);
    if (rc)
        return rc;
    if (is_time(&r->c) && is_period(&r->c, v.finest)) {
        const size_t n = r->out->n_bytes;

        if (order(&r->c) == 0)
            return refuse(r, "Select by index: NAME=FIRST:END.",
                          "the values are not sorted");
        if (add_between(r, &v.low, &v.high))
            return CLI_OK;
        r->out->n_bytes = n;
    }
    return add_point(r, &v);
}

static int32_t find_dimension(const zarr_array *array, const char *name)
{
    for (int32_t d = 0; name && d < zarr_array_ndim(array); d++) {
        const char *other = zarr_array_dimension_name(array, d);

        if (other && strcmp(name, other) == 0)
            return d;
    }
    return -1;
}

/* "time, lat, lon" */
static void add_names(const zarr_array *array, struct cli_string *out)
{
    for (int32_t d = 0; d < zarr_array_ndim(array); d++) {
        const char *name = zarr_array_dimension_name(array, d);

        cli_string_printf(out, "%s%s", d ? ", " : "", name ? name : "(no name)");
    }
}

static int refuse_name(const struct naming *r, const char *what)
{
    struct cli_string names = {0};
    int rc;

    add_names(r->array, &names);
    rc = cli_error(r->cli, CLI_USAGE, NULL, "%s has no %s %s; its dimensions are %s",
                   r->shown, what, r->name, names.n_bytes ? names.text : "none");
    cli_string_free(&names);
    return rc;
}

static int refuse_plane(const struct naming *r)
{
    struct cli_string names = {0};
    char *why;
    int rc;

    add_names(r->c.array, &names);
    why = cli_format("the coordinate has %d dimensions (%s), not 1",
                     (int)zarr_array_ndim(r->c.array), names.n_bytes ? names.text : "");
    rc = refuse(r, "Select by index along its dimensions: NAME=FIRST:END.", why);
    free(why);
    cli_string_free(&names);
    return rc;
}

/* Resolves NAME@VALUES. *dim: the dimension that it selects along. */
static int resolve_values(struct naming *r, int32_t *dim)
{
    int rc =
        cf_coordinate_read(r->cli, r->store, zarr_array_path(r->array), r->name, &r->c);

    *dim = find_dimension(r->array, r->name);
    if (rc)
        return rc;
    if (!r->c.array)
        return refuse_name(r, *dim < 0 ? "dimension or coordinate"
                                       : "coordinate of numbers or times");
    if (zarr_array_ndim(r->c.array) != 1)
        return refuse_plane(r);
    if (*dim < 0) /* a coordinate along a dimension of another name */
        *dim = find_dimension(r->array, zarr_array_dimension_name(r->c.array, 0));
    if (*dim < 0)
        return refuse_name(r, "dimension of the coordinate");
    if (zarr_array_shape(r->array)[*dim] != r->c.n)
        return refuse(r, NULL, "the dimension has another length");
    return add_values(r);
}

/* Resolves one item, which is changed. *next: the dimension of an item without name. */
static int resolve_item(struct naming *r, char *item, struct cli_string *dims,
                        int32_t *next)
{
    char *sign = item + strcspn(item, "=@"), *end;
    const bool is_values = *sign == '@', has_name = *sign != '\0';
    struct cli_string indices = {0};
    int32_t dim = *next;
    int rc = CLI_OK;

    r->out = &indices;
    r->name = item;
    r->text = has_name ? sign + 1 + strspn(sign + 1, " ") : item;
    for (end = sign; has_name && end > item && end[-1] == ' ';)
        end--;
    if (has_name)
        *end = '\0';
    if (*r->text == '\0')
        rc = cli_error(r->cli, CLI_USAGE, NULL, "region of %s: %s%s selects nothing",
                       r->shown, r->name, has_name ? is_values ? "@" : "=" : "an item");
    else if (is_values)
        rc = resolve_values(r, &dim);
    else if (has_name && (dim = find_dimension(r->array, r->name)) < 0)
        rc = refuse_name(r, "dimension");
    if (!is_values)
        cli_string_printf(&indices, "%s", r->text);
    if (!has_name)
        ++*next;
    if (!rc && (strcmp(item, "...") == 0 || dim >= zarr_array_ndim(r->array)))
        rc = cli_error(r->cli, CLI_USAGE,
                       "Items without names come first, without \"...\".",
                       "region of %s: \"%s\" has no dimension", r->shown, item);
    else if (!rc && dims[dim].n_bytes)
        rc = cli_error(r->cli, CLI_USAGE, NULL,
                       "region of %s: %s selects dimension %d again", r->shown, item,
                       (int)dim);
    if (!rc)
        dims[dim] = indices; /* moved */
    else
        cli_string_free(&indices);
    cf_coordinate_free(&r->c);
    return rc;
}

size_t cf_item_bytes(const char *at)
{
    int depth = 0;
    size_t n = 0;

    for (; at[n] && (at[n] != ',' || depth > 0); n++)
        depth += at[n] == '[' ? 1 : at[n] == ']' ? -1 : 0;
    return n;
}

int cf_region_resolve(struct cli *cli, zarr_store *store, const zarr_array *array,
                      const char *shown, char **region)
{
    struct naming r = {.cli = cli, .store = store, .array = array, .shown = shown};
    struct cli_string dims[ZARR_MAX_RANK] = {{0}}, whole = {0};
    int32_t next = 0;
    int rc = CLI_OK;

    if (!*region || !strpbrk(*region, "=@"))
        return CLI_OK;
    r.nearest = cli_flag(cli, "nearest");
    for (const char *at = *region; !rc && *at;) {
        size_t bytes = cf_item_bytes(at), blank = strspn(at, " ");
        char *item = cli_strdup(at + (blank < bytes ? blank : bytes));
        size_t n = bytes - (blank < bytes ? blank : bytes);

        while (n > 0 && item[n - 1] == ' ')
            n--;
        item[n] = '\0';
        rc = resolve_item(&r, item, dims, &next);
        free(item);
        at += bytes + (at[bytes] == ',');
    }
    for (int32_t d = 0; d < zarr_array_ndim(array); d++) {
        cli_string_printf(&whole, "%s%s", d ? "," : "",
                          dims[d].n_bytes ? dims[d].text : ":");
        cli_string_free(&dims[d]);
    }
    if (rc) {
        cli_string_free(&whole);
    } else {
        free(*region);
        *region = whole.text;
    }
    return rc;
}
