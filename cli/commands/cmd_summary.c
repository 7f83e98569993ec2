/*
 * commands/cmd_summary.c - zarrc summary: statistics of an array or of a region, as text,
 * CSV or JSON, and a histogram that is drawn with characters.
 */
#include "cf/cf.h"
#include "data/data.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    CLI_NEAREST_OPTION,
    CLI_DECODE_OPTION,
    {"over", 0, 0, "DIMS", NULL,
     "compute statistics over these dimensions of the region, by name or number, and "
     "keep the others (default: over all)"},
    {"weights", 0, 0, "DIM[=NAME]", NULL,
     "weight elements by the cosine of the latitude, which is the array of the name of "
     "the dimension DIM beside the array, in degrees; NAME: by the elements of that "
     "array"},
    {"missing", 0, 0, "VALUE", NULL,
     "elements with this value are missing; none: no value means that (default: the "
     "value that xarray shows as NaN)"},
    {"quantiles", 0, 0, "Q,...", NULL, "quantiles, from 0 to 1, such as 0.05,0.5,0.95"},
    {"bins", 'b', 0, "N", NULL, "make a histogram of N bins between the extremes"},
    {"edges", 0, 0, "X,...", NULL, "make a histogram with these edges"},
    {"format", 'F', 0, "FORMAT", "text|csv", "output format (default: text)"},
    CLI_FIELD_OPTION,
    CLI_TRUST_OPTION,
    CLI_MISSING_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc summary x.zarr/temp", "All elements."},
    {"zarrc summary --weights=lat 'x.zarr/temp[3]'",
     "The mean of a map, weighted by the area of its cells."},
    {"zarrc summary --decode --over=lat,lon --weights=lat --format=csv "
     "'climate.zarr/tas[time@2003-07, lat@35:70, lon@-10:40]' > mean.csv",
     "The mean over Europe for each time of July 2003."},
    {"zarrc summary --bins=20 --quantiles=0.05,0.5,0.95 x.zarr/temp",
     "How elements are spread."},
    {NULL, NULL}};

struct summary {
    struct cli *cli;
    struct cli_node node;
    zarr_selection *region;
    zarr_summary_options o;
    zarr_io_options io;
    /* What the region has for each dimension of the array, and the array's dimension that
     * each of the result is. */
    char *item[ZARR_MAX_RANK];
    int32_t dim[ZARR_MAX_RANK], n_dims;
    int32_t over[ZARR_MAX_RANK];
    struct cf_coordinate weights, kept[ZARR_MAX_RANK]; /* kept: of the result */
    double *quantiles, *edges;
    void *missing;
    struct cf cf; /* with --decode */
    const zarr_dtype *float64;
    bool has_dates;
    zarr_summary *result;
    struct cli_progress progress;
    bool begun;
};

/* ---- options ------------------------------------------------------------------ */

/* The dimension of the region that the text names. */
static int find_dim(const struct summary *s, const char *text, int32_t *dim)
{
    int64_t number;

    if (cli_parse_i64(text, &number) && number >= -s->n_dims && number < s->n_dims) {
        *dim = (int32_t)(number < 0 ? number + s->n_dims : number);
        return CLI_OK;
    }
    for (int32_t r = 0; r < s->n_dims; r++) {
        const char *name = zarr_array_dimension_name(s->node.array, s->dim[r]);

        if (name && strcmp(name, text) == 0) {
            *dim = r;
            return CLI_OK;
        }
    }
    return cli_error(s->cli, CLI_USAGE, "Use its name, or its number from 0.",
                     "%s has no dimension \"%s\"", s->node.shown, text);
}

/* The text before the next comma, which the caller owns; NULL after the last. */
static char *next_item(const char **at)
{
    const size_t n = *at ? strcspn(*at, ",") : 0;
    char *item = *at ? cli_format("%.*s", (int)n, *at) : NULL;

    if (*at)
        *at = (*at)[n] ? *at + n + 1 : NULL;
    return item;
}

static int read_over(struct summary *s)
{
    const char *at = cli_text(s->cli, "over");
    int rc = CLI_OK;

    s->o.over = at ? s->over : NULL;
    for (char *item; !rc && (item = next_item(&at)) != NULL; free(item))
        rc =
            s->o.n_over == ZARR_MAX_RANK
                ? cli_error(s->cli, CLI_USAGE, NULL, "option --over: too many dimensions")
                : find_dim(s, item, &s->over[s->o.n_over++]);
    return rc;
}

/* Numbers between commas, in memory of their own. */
static int read_numbers(struct summary *s, const char *option, double **out, uint32_t *n)
{
    const char *at = cli_text(s->cli, option);
    int rc = CLI_OK;

    for (char *item; !rc && (item = next_item(&at)) != NULL; free(item)) {
        *out = cli_realloc(*out, ((size_t)*n + 1) * sizeof **out);
        if (!cli_parse_f64(item, &(*out)[(*n)++]))
            rc = cli_error(s->cli, CLI_USAGE, NULL, "option --%s: \"%s\" is not a number",
                           option, item);
    }
    return rc;
}

static void convert(void *user, const void *elements, uint64_t n, double *values)
{
    const struct cf *cf = user;
    const char *element = elements;

    for (uint64_t i = 0; i < n; i++, element += cf->value_bytes)
        values[i] = cf_number(cf, element);
}

/* Reads --field, --missing and --decode. */
static int read_type(struct summary *s)
{
    const char *text = cli_text(s->cli, "missing");
    struct cli_field field;
    zarr_error err = {0};
    int rc = cli_field_find(s->cli, &s->node, &field);

    if (rc)
        return rc;
    s->io = field.options;
    if (!text) {
        s->o.missing = s->io.field ? NULL : zarr_array_missing_value(s->node.array);
    } else if (strcmp(text, "none") != 0 && !zarr_dtype_variable(field.type)) {
        s->missing = cli_alloc((size_t)zarr_dtype_item_bytes(field.type) + 1);
        if (zarr_dtype_parse(field.type, text, s->missing, &err))
            return cli_error(s->cli, CLI_USAGE, NULL, "option --missing: %s",
                             err.message);
        s->o.missing = s->missing;
    }
    rc = zarr_dtype_find(&s->float64, s->cli->ctx, "float64", &err)
             ? cli_fail(s->cli, err.code, &err, "cannot write numbers")
             : CLI_OK;
    if (rc || !cf_is_wanted(s->cli))
        return rc;
    if (text)
        return cli_error(s->cli, CLI_USAGE, "The attributes tell what is missing.",
                         "--decode and --missing exclude each other");
    rc = cf_find(s->cli, s->node.array, field.type, s->node.shown, &s->cf);
    s->has_dates = s->cf.kind == CF_TIME;
    if (s->cf.kind == CF_NUMBER || s->has_dates) {
        s->o.convert = convert;
        s->o.convert_user = &s->cf;
    }
    return rc;
}

/* Reads what the region has of an array along one dimension of the result. c->array: NULL
 * if there is none. */
static int read_coordinate(const struct summary *s, const char *name, int32_t r,
                           struct cf_coordinate *c)
{
    const zarr_array *a = s->node.array;
    const int32_t d = s->dim[r];

    return name ? cf_coordinate_read(s->cli, s->node.store, zarr_array_path(a), name,
                                     s->item[d], zarr_array_shape(a)[d], c)
                : CLI_OK;
}

static int read_weights(struct summary *s)
{
    const char *text = cli_text(s->cli, "weights"),
               *equals = text ? strchr(text, '=') : NULL;
    const char *name = equals ? equals + 1 : text;
    char *dim = text ? cli_format("%.*s", (int)strcspn(text, "="), text) : NULL;
    struct cf_coordinate *c = &s->weights;
    int rc = text ? find_dim(s, dim, &s->o.weights_dim) : CLI_OK;

    free(dim);
    if (rc || !text)
        return rc;
    rc = read_coordinate(s, name, s->o.weights_dim, c);
    if (rc)
        return rc;
    if (!c->array || c->text || c->cf.kind == CF_TIME)
        return cli_error(
            s->cli, CLI_USAGE, NULL,
            "%s has no array %s of one number for each index of the dimension",
            s->node.shown, name);
    for (uint64_t i = 0; i < c->n && !equals; i++) {
        if (!(fabs(c->value[i]) < 90.01))
            return cli_error(s->cli, CLI_USAGE, "DIM=NAME takes the weights themselves.",
                             "%s has %g, which is not a latitude in degrees", name,
                             c->value[i]);
        /* 90 degrees give 6e-17 */
        c->value[i] = fmax(cos(c->value[i] * (3.14159265358979323846 / 180)), 0);
    }
    s->o.weights = c->value;
    s->o.n_weights = c->n;
    return CLI_OK;
}

static int read_options(struct summary *s)
{
    struct cli *cli = s->cli;
    uint64_t bins = 0;
    uint32_t n_edges = 0;
    int64_t index;
    int rc = s->node.region ? cli_node_select(cli, &s->node, s->node.array, &s->region)
                            : CLI_OK;

    if (rc)
        return rc;
    cf_region_split(s->node.region, zarr_array_ndim(s->node.array), s->item);
    for (int32_t d = 0; d < zarr_array_ndim(s->node.array); d++)
        if (!cli_parse_i64(s->item[d], &index)) /* an index drops its dimension */
            s->dim[s->n_dims++] = d;
    if ((rc = read_over(s)) || (rc = read_type(s)) || (rc = read_weights(s)) ||
        (rc = read_numbers(s, "quantiles", &s->quantiles, &s->o.n_quantiles)) ||
        (rc = read_numbers(s, "edges", &s->edges, &n_edges)) ||
        (rc = cli_u64(cli, "bins", &bins)))
        return rc;
    s->o.quantiles = s->quantiles;
    s->o.edges = s->edges;
    s->o.n_bins = n_edges > 0 ? n_edges - 1 : (uint32_t)bins;
    if (bins > 1000000 || n_edges == 1 || (bins > 0 && n_edges > 0))
        return cli_error(cli, CLI_USAGE, NULL,
                         "a histogram has either --bins, 1000000 at most, or two --edges "
                         "or more");
    if (s->has_dates && (s->o.n_bins > 0 || s->o.n_quantiles > 0 || s->o.weights))
        return cli_error(cli, CLI_UNSUPPORTED,
                         "Leave out --decode: they are numbers then.",
                         "times have no histogram, quantiles or weights");
    return CLI_OK;
}

/* ---- output ------------------------------------------------------------------- */

enum column {
    COUNT,
    MISSING,
    NANS,
    MIN,
    MAX,
    MEAN,
    STD,
    SUM,
    WEIGHT
};

static const char *const column_names[] = {"count", "missing", "nan", "min",   "max",
                                           "mean",  "std",     "sum", "weight"};

__extension__ typedef unsigned __int128 uint128;

/* A sum of integers as decimal digits. */
static void print_integer(int64_t high, uint64_t low, struct cli_string *out)
{
    char digits[48], *c = digits + sizeof digits - 1;
    uint128 v = (uint128)(uint64_t)high << 64 | low;

    v = high < 0 ? -v : v;
    *c = '\0';
    do {
        *--c = (char)('0' + (int)(v % 10));
        v /= 10;
    } while (v > 0);
    cli_string_printf(out, "%s%s", high < 0 ? "-" : "", c);
}

/* Appends an element of the result, or a date with --decode. */
static int print_element(const struct summary *s, const zarr_dtype *type,
                         const void *element, bool is_json, struct cli_string *out)
{
    double v = 0;

    if (!s->has_dates)
        return is_json ? cli_element_json(s->cli, type, element, out)
                       : cli_element_text(s->cli, type, element, out);
    memcpy(&v, element, sizeof v);
    cli_string_add(out, "\"", is_json);
    cf_instant_print(s->cf.units.calendar, cf_units_instant(&s->cf.units, v), out);
    cli_string_add(out, "\"", is_json);
    return CLI_OK;
}

/* Appends the statistic of a place; nothing if there is none. */
static int print_value(const struct summary *s, enum column column, uint64_t p,
                       bool is_json, struct cli_string *out)
{
    const zarr_summary *r = s->result;
    const uint64_t *const counts[] = {r->count, r->n_missing, r->n_nan};
    const double *const numbers[] = {r->mean, r->std, r->sum, r->weight};
    const void *const extremes[] = {r->min, r->max};
    const uint32_t kind = zarr_dtype_kind(r->dtype);

    if (column <= NANS)
        cli_string_printf(out, "%" PRIu64, counts[column][p]);
    else if (column < SUM && r->count[p] == 0)
        return CLI_OK;
    else if (column <= MAX)
        return print_element(s, r->dtype,
                             (const char *)extremes[column - MIN] +
                                 p * zarr_dtype_item_bytes(r->dtype),
                             is_json, out);
    else if (column == SUM && r->sum_high)
        print_integer(r->sum_high[p], r->sum_low[p], out);
    else if (kind != ZARR_KIND_DATETIME && kind != ZARR_KIND_TIMEDELTA &&
             (!s->has_dates || column == MEAN))
        return print_element(s, s->float64, &numbers[column - MEAN][p], is_json, out);
    return CLI_OK;
}

/* The index of a place along a kept dimension. */
static uint64_t place_index(const zarr_summary *r, uint64_t p, int32_t kept)
{
    for (int32_t i = r->ndim - 1; i > kept; i--)
        p /= r->shape[i];
    return p % r->shape[kept];
}

/* Appends the name of a column. The first ones are the kept dimensions. */
static void print_name(const struct summary *s, int c, struct cli_string *out)
{
    const zarr_summary *r = s->result;
    const char *name = c < r->ndim
                           ? zarr_array_dimension_name(s->node.array, s->dim[r->dims[c]])
                           : column_names[c - r->ndim];

    if (name)
        cli_add_clean(out, name, strlen(name));
    else
        cli_string_printf(out, "dim_%d", (int)s->dim[r->dims[c]]);
}

/* Appends the coordinate of a place along a kept dimension, or its index. */
static void print_coordinate(const struct summary *s, int32_t kept, uint64_t p,
                             bool is_json, struct cli_string *out)
{
    const struct cf_coordinate *c = &s->kept[kept];
    const uint64_t i = place_index(s->result, p, kept);
    struct cli_string text = {0};

    if (c->array)
        cf_coordinate_print(c, i, &text);
    else
        cli_string_printf(&text, "%" PRIu64, i);
    if (is_json && c->array && (c->text || c->cf.kind == CF_TIME || isnan(c->value[i])))
        cli_string_add_quoted(out, text.text);
    else
        cli_string_add(out, text.text, text.n_bytes);
    cli_string_free(&text);
}

static int print_cell(const struct summary *s, int c, uint64_t p, bool is_json,
                      struct cli_string *out)
{
    if (c >= s->result->ndim)
        return print_value(s, (enum column)(c - s->result->ndim), p, is_json, out);
    print_coordinate(s, c, p, is_json, out);
    return CLI_OK;
}

static int n_columns(const struct summary *s)
{
    return s->result->ndim + (s->result->weight ? WEIGHT : SUM) + 1;
}

/* A line of names, then one for each place. */
static int write_table(const struct summary *s, bool is_csv)
{
    const zarr_summary *r = s->result;
    int rc = CLI_OK;

    for (uint64_t line = 0; line <= r->n_places && !rc; line++) {
        struct cli_string row = {0};

        for (int c = 0; c < n_columns(s) && !rc; c++) {
            struct cli_string cell = {0};

            cli_string_add(&cell, "", 0);
            if (line == 0)
                print_name(s, c, &cell);
            else
                rc = print_cell(s, c, line - 1, false, &cell);
            cli_string_add(&row, is_csv ? "," : " ", c > 0);
            if (is_csv)
                cli_csv_field(&cell, false, &row);
            else
                cli_string_printf(&row, "%-*s",
                                  c >= r->ndim && c < r->ndim + MIN ? 11 : 19, cell.text);
            cli_string_free(&cell);
        }
        if (!rc)
            rc = cli_line(s->cli, "%s\n", row.text);
        cli_string_free(&row);
    }
    return rc;
}

/* Bars of the histogram, the longest as long as `bar`. */
static int draw_histogram(const struct summary *s)
{
    static const char bar[] = "##################################################";
    const double width = sizeof bar - 1;
    const zarr_summary *r = s->result;
    uint64_t most = 1;
    int rc = CLI_OK;

    for (uint32_t i = 0; i < r->n_bins; i++)
        most = r->bins[i] > most ? r->bins[i] : most;
    for (uint32_t i = 0; i < r->n_bins && !rc; i++) {
        const int length = (int)ceil((double)r->bins[i] / (double)most * width);

        rc = cli_line(s->cli, "%12.6g %12.6g %12llu %.*s\n", r->edges[i], r->edges[i + 1],
                      (unsigned long long)r->bins[i], length, bar);
    }
    if (r->n_below + r->n_above > 0 && !rc)
        rc = cli_line(s->cli, "outside of the edges: %llu below, %llu above\n",
                      (unsigned long long)r->n_below, (unsigned long long)r->n_above);
    return rc;
}

static int write_text(const struct summary *s)
{
    const zarr_summary *r = s->result;
    int rc = CLI_OK;

    if (r->ndim > 0)
        return write_table(s, false);
    for (int c = 0; c < n_columns(s) && !rc; c++) {
        struct cli_string text = {0};

        rc = print_cell(s, c, 0, false, &text);
        if (!rc && text.text)
            rc = cli_line(s->cli, "%-8s %s\n", column_names[c], text.text);
        cli_string_free(&text);
    }
    for (uint32_t i = 0; i < s->o.n_quantiles && !rc; i++)
        rc = cli_line(s->cli, "q%-7g %.15g\n", s->quantiles[i], r->quantiles[i]);
    if (!rc && r->n_bins > 0)
        rc = draw_histogram(s);
    if (!rc && (r->flags & ZARR_SUMMARY_SKETCH))
        rc = cli_line(s->cli, "Quantiles and bins without edges are from a sketch: ranks "
                              "err by at most 1 %%.\n");
    return rc;
}

static void write_json_list(struct cli_json *j, const char *key, const double *list,
                            uint32_t n)
{
    cli_json_list(cli_key(j, key));
    for (uint32_t i = 0; i < n; i++)
        cli_json_f64(j, list[i]);
    cli_json_end(j);
}

static void write_json_spread(const struct summary *s, struct cli_json *j)
{
    const zarr_summary *r = s->result;

    if (s->o.n_quantiles > 0)
        write_json_list(j, "quantiles", r->quantiles, s->o.n_quantiles);
    if (r->n_bins == 0)
        return;
    write_json_list(j, "edges", r->edges, r->n_bins + 1);
    cli_json_shape(cli_key(j, "bins"), (int32_t)r->n_bins, r->bins);
    cli_json_u64(cli_key(j, "below"), r->n_below);
    cli_json_u64(cli_key(j, "above"), r->n_above);
}

static int write_json_place(const struct summary *s, struct cli_json *j, uint64_t p)
{
    const int32_t ndim = s->result->ndim;
    int rc = CLI_OK;

    cli_json_object(j);
    cli_json_list(cli_key(j, "index"));
    for (int32_t i = 0; i < ndim; i++)
        cli_json_u64(j, place_index(s->result, p, i));
    cli_json_end(j);
    if (ndim > 0)
        cli_json_object(cli_key(j, "coordinates"));
    for (int c = 0; c < n_columns(s) && !rc; c++) {
        struct cli_string name = {0}, text = {0};

        if (c > 0 && c == ndim)
            cli_json_end(j);
        print_name(s, c, &name);
        rc = print_cell(s, c, p, true, &text);
        cli_json_raw(cli_key(j, name.text), text.text);
        cli_string_free(&name);
        cli_string_free(&text);
    }
    cli_json_end(j);
    return rc;
}

static int write_json(const struct summary *s)
{
    const zarr_summary *r = s->result;
    struct cli_json *j = cli_json(s->cli);
    int rc = CLI_OK;

    cli_json_object(j);
    cli_json_text(cli_key(j, "node"), s->node.shown);
    cli_json_list(cli_key(j, "dimensions"));
    for (int32_t i = 0; i < r->ndim; i++) {
        struct cli_string name = {0};

        print_name(s, i, &name);
        cli_json_text(j, name.text);
        cli_string_free(&name);
    }
    cli_json_end(j);
    cli_json_shape(cli_key(j, "shape"), r->ndim, r->shape);
    cli_json_bool(cli_key(j, "sketch"), (r->flags & ZARR_SUMMARY_SKETCH) != 0);
    cli_json_array(cli_key(j, "places"));
    for (uint64_t p = 0; p < r->n_places && !rc; p++)
        rc = write_json_place(s, j, p);
    cli_json_end(j);
    write_json_spread(s, j);
    cli_json_end(j);
    return rc;
}

/* ---- the command -------------------------------------------------------------- */

static void on_progress(void *user, const zarr_progress *now)
{
    struct summary *s = user;

    if (!s->begun)
        cli_progress_begin(&s->progress, s->cli, "summary", now->bytes_total, 0);
    s->begun = true;
    cli_progress_update(&s->progress, now->bytes_done, 0);
}

static int compute(struct summary *s)
{
    zarr_error err = {0};
    zarr_status st;
    int rc = CLI_OK;

    s->io.cancel = cli_cancel;
    s->io.trust = cli_trust(s->cli);
    if (cli_missing_is_error(s->cli))
        s->io.missing_chunks = ZARR_MISSING_ERROR;
    s->o.io = &s->io;
    s->o.progress = on_progress;
    s->o.progress_user = s;
    st = zarr_array_summary(&s->result, s->node.array, s->region, &s->o, &err);
    if (s->begun)
        cli_progress_end(&s->progress, st == ZARR_OK);
    if (st)
        return cli_fail_array(s->cli, s->node.array, st, &err, "cannot summarise %s",
                              s->node.shown);
    for (int32_t i = 0; i < s->result->ndim && !rc; i++)
        rc = read_coordinate(
            s, zarr_array_dimension_name(s->node.array, s->dim[s->result->dims[i]]),
            s->result->dims[i], &s->kept[i]);
    return rc;
}

static int run(struct cli *cli)
{
    struct summary s = {.cli = cli, .o = ZARR_SUMMARY_OPTIONS_INIT};
    const char *format = cli_text(cli, "format");
    int rc = cli->json && format ? cli_error(cli, CLI_USAGE, NULL,
                                             "--json and --format exclude each other")
                                 : CLI_OK;

    if (!rc)
        rc = cli_node_open(cli, cli->args[0], CLI_OPEN_ARRAY | CLI_OPEN_REGION, &s.node);
    if (!rc)
        rc = read_options(&s);
    if (!rc)
        rc = compute(&s);
    if (!rc)
        rc = cli->json                  ? write_json(&s)
             : format && *format == 'c' ? write_table(&s, true)
                                        : write_text(&s);
    for (int32_t d = 0; d < ZARR_MAX_RANK; d++) {
        free(s.item[d]);
        cf_coordinate_free(&s.kept[d]);
    }
    cf_coordinate_free(&s.weights);
    cf_free(&s.cf);
    free(s.quantiles);
    free(s.edges);
    free(s.missing);
    zarr_summary_free(s.result);
    zarr_selection_free(s.region);
    cli_node_close(&s.node);
    return rc;
}

const struct cli_command cli_cmd_summary = {
    .name = "summary",
    .summary = "compute statistics of the elements of an array",
    .operands = "ARRAY[REGION]",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Shows how many elements an array or a region has, how many are missing and NaN, "
        "and the least element, the greatest, the mean, the standard deviation (whose "
        "divisor is the number of elements) and the sum. Missing elements and NaN are "
        "left out. With --over, the others of the dimensions are kept, and each of their "
        "places has a line, which begins with its coordinates, or with indices in the "
        "region along dimensions without a coordinate.\n\n"
        "--decode, or ZARRC_DECODE=1 in the environment, computes statistics of the "
        "values that zarrc cat --decode writes: scaled, with missing values and those "
        "outside of the valid range left out. Times have a least, a greatest and a mean "
        "date.\n\n"
        "Sums of integers are exact. Sums of floats have about twice the digits of a "
        "double before they are rounded. Results do not depend on the number of threads. "
        "Each chunk is read and decoded once. Memory does not grow with the array, but "
        "with the places that are kept; --mem limits it.\n\n"
        "Quantiles, and histograms without --edges, are exact for types of up to 16 "
        "bits, and if the elements as doubles fit in a quarter of --mem. Otherwise they "
        "are from a sketch, whose ranks err by at most 1 %. The output says so.",
    .json = "node. dimensions: names of those that are kept, and shape: their lengths. "
            "sketch: whether quantiles and bins are from a sketch. places: an object for "
            "each place, with index, coordinates by name, count, missing, nan, min, max, "
            "mean, std, sum, and with --weights weight; without elements null. "
            "quantiles. edges, bins, below, above: the histogram.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-cat zarrc-plot zarrc-info",
    .run = run,
};
