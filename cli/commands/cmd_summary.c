/*
 * commands/cmd_summary.c - zarrc summary: statistics of an array or of a region, as text,
 * CSV or JSON, and a histogram that is drawn with characters.
 */
#include "cf/cf.h"
#include "node/node.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    CLI_NEAREST_OPTION,
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
    {"zarrc summary --over=lat,lon --weights=lat --format=csv x.zarr/temp > mean.csv",
     "A line for each time."},
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
    char *part[ZARR_MAX_RANK];
    int32_t dim[ZARR_MAX_RANK], n_dims;
    int32_t over[ZARR_MAX_RANK];
    double *weights, *quantiles, *edges;
    void *missing;
    zarr_summary *result;
    struct cli_progress progress;
    bool begun;
};

/* ---- options ------------------------------------------------------------------ */

/* Adds what the region has for the next dimension; "..." means several. */
static void add_part(struct summary *s, int *n, const char *text, int length, int rest)
{
    const int ndim = zarr_array_ndim(s->node.array);
    const bool dots = length == 3 && memcmp(text, "...", 3) == 0;
    int64_t index;

    for (int i = dots ? ndim - *n - rest : 1; i > 0 && *n < ndim; i--) {
        s->part[*n] = dots ? cli_strdup(":") : cli_format("%.*s", length, text);
        if (dots ||
            !cli_parse_i64(s->part[*n], &index)) /* an index drops its dimension */
            s->dim[s->n_dims++] = *n;
        (*n)++;
    }
}

/* Splits the region, which cli_node_select() has checked. */
static void split_region(struct summary *s)
{
    const char *text = s->node.region ? s->node.region : "";
    int n = 0, rest = 0, depth = 0;

    for (const char *c = text; *c; c++) {
        depth += (*c == '[') - (*c == ']');
        rest += *c == ',' && depth == 0;
    }
    while (*text) {
        const char *end;
        int length;

        text += strspn(text, " ");
        for (end = text, depth = 0; *end && (*end != ',' || depth > 0); end++)
            depth += (*end == '[') - (*end == ']');
        length = (int)(end - text);
        while (length > 0 && text[length - 1] == ' ')
            length--;
        add_part(s, &n, text, length, rest--);
        text = end + (*end == ',');
    }
    add_part(s, &n, "...", 3, 0);
}

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

/* The parts of a text between commas. The caller frees *copy and *part. */
static int split(const char *text, char **copy, char ***part)
{
    int n = 1, i = 0;

    for (const char *c = text; *c; c++)
        n += *c == ',';
    *copy = cli_strdup(text);
    *part = cli_alloc((size_t)n * sizeof **part);
    for (char *c = *copy; c; i++) {
        (*part)[i] = c;
        c = strchr(c, ',');
        if (c)
            *c++ = '\0';
    }
    return n;
}

static int read_over(struct summary *s)
{
    const char *text = cli_text(s->cli, "over");
    char *copy, **part;
    int n, rc = CLI_OK;

    if (!text)
        return CLI_OK;
    n = split(text, &copy, &part);
    if (n > ZARR_MAX_RANK)
        rc = cli_error(s->cli, CLI_USAGE, NULL, "option --over: too many dimensions");
    for (int i = 0; i < n && !rc; i++)
        rc = find_dim(s, part[i], &s->over[i]);
    s->o.over = s->over;
    s->o.n_over = (uint32_t)n;
    free(part);
    free(copy);
    return rc;
}

/* Numbers between commas, in memory of their own. */
static int read_numbers(struct summary *s, const char *option, double **out, uint32_t *n)
{
    const char *text = cli_text(s->cli, option);
    char *copy, **part;
    int count, rc = CLI_OK;

    if (!text)
        return CLI_OK;
    count = split(text, &copy, &part);
    *out = cli_alloc((size_t)count * sizeof **out);
    for (int i = 0; i < count && !rc; i++)
        if (!cli_parse_f64(part[i], &(*out)[i]))
            rc = cli_error(s->cli, CLI_USAGE, NULL, "option --%s: \"%s\" is not a number",
                           option, part[i]);
    *n = (uint32_t)count;
    free(part);
    free(copy);
    return rc;
}

static int read_missing(struct summary *s)
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
        s->missing = cli_alloc(zarr_dtype_item_bytes(field.type) + 1);
        if (zarr_dtype_parse(field.type, text, s->missing, &err))
            return cli_error(s->cli, CLI_USAGE, NULL, "option --missing: %s",
                             err.message);
        s->o.missing = s->missing;
    }
    return CLI_OK;
}

/* ---- weights ------------------------------------------------------------------ */

/* The path of the array `name` beside the one that is summed up. Owned. */
static char *sibling_path(const struct summary *s, const char *name)
{
    const char *slash = strrchr(s->node.path, '/');
    char *above =
        cli_format("%.*s", slash ? (int)(slash - s->node.path) : 0, s->node.path);
    char *path = cli_path_join(above, name);

    free(above);
    return path;
}

/* Reads what the region has of a one-dimensional array of numbers. */
static int read_weights(struct summary *s, zarr_array *from, int32_t dim)
{
    const char *part = s->part[s->dim[dim]];
    const zarr_dtype *type = zarr_array_dtype(from);
    const uint64_t item = zarr_dtype_item_bytes(type);
    zarr_selection *selection = NULL;
    zarr_tensor tensor;
    zarr_error err = {0};
    zarr_status st;
    uint64_t n, bytes;
    uint8_t *data;

    if (zarr_array_ndim(from) != 1 || zarr_dtype_components(type) != 1 ||
        zarr_dtype_number(type, NULL, NULL, 0) != 1 ||
        zarr_array_shape(from)[0] != zarr_array_shape(s->node.array)[s->dim[dim]])
        return cli_error(
            s->cli, CLI_USAGE, NULL,
            "%s is not an array of one number for each index of the dimension",
            zarr_array_path(from));
    st = zarr_selection_parse(&selection, 1, zarr_array_shape(from), part, &err);
    if (st)
        return cli_fail(s->cli, st, &err, "cannot select [%s] of the weights", part);
    n = zarr_selection_n_items(selection);
    bytes = cli_mul(n, item > sizeof *s->weights ? item : sizeof *s->weights);
    data = cli_alloc((size_t)bytes + 1);
    s->weights = cli_alloc((size_t)bytes + 1);
    zarr_tensor_host(&tensor, NULL, data, n * item, 1, &n);
    st = cli_read(from, selection, &tensor, NULL, &err);
    for (uint64_t i = 0; i < n && !st; i++)
        (void)zarr_dtype_number(type, data + i * item, &s->weights[i], 1);
    s->o.weights = s->weights;
    s->o.n_weights = n;
    free(data);
    zarr_selection_free(selection);
    return st ? cli_fail_array(s->cli, from, st, &err, "cannot read the weights %s",
                               zarr_array_path(from))
              : CLI_OK;
}

static int find_weights(struct summary *s)
{
    const char *text = cli_text(s->cli, "weights");
    const char *equals = text ? strchr(text, '=') : NULL;
    char *dim = NULL, *path = NULL;
    zarr_array *from = NULL;
    zarr_error err = {0};
    zarr_status st;
    int rc;

    if (!text)
        return CLI_OK;
    dim =
        cli_format("%.*s", (int)(equals ? (size_t)(equals - text) : strlen(text)), text);
    path = sibling_path(s, equals ? equals + 1 : dim);
    rc = find_dim(s, dim, &s->o.weights_dim);
    if (rc)
        goto out;
    st = zarr_array_open(&from, s->node.store, path, NULL, &err);
    rc = st ? cli_fail(s->cli, st, &err, "cannot open the weights %s", path)
            : read_weights(s, from, s->o.weights_dim);
    for (uint64_t i = 0; i < s->o.n_weights && !equals && !rc; i++) {
        if (!(fabs(s->weights[i]) < 90.01))
            rc = cli_error(s->cli, CLI_USAGE, "DIM=NAME takes the weights themselves.",
                           "%s has %g, which is not a latitude in degrees", path,
                           s->weights[i]);
        /* 90 degrees give 6e-17 */
        s->weights[i] = fmax(cos(s->weights[i] * (3.14159265358979323846 / 180)), 0);
    }
out:
    zarr_array_free(from);
    free(path);
    free(dim);
    return rc;
}

/* ---- output ------------------------------------------------------------------- */

enum {
    BAR_WIDTH = 50
};

static bool has_sums(const zarr_summary *r)
{
    const uint32_t kind = zarr_dtype_kind(r->dtype);

    return kind != ZARR_KIND_DATETIME && kind != ZARR_KIND_TIMEDELTA;
}

__extension__ typedef unsigned __int128 uint128;

/* A sum of integers as decimal digits; owned. */
static char *integer_text(int64_t high, uint64_t low)
{
    char digits[48], *c = digits + sizeof digits - 1;
    uint128 v = (uint128)(uint64_t)high << 64 | low;

    if (high < 0)
        v = -v;
    *c = '\0';
    do {
        *--c = (char)('0' + (int)(v % 10));
        v /= 10;
    } while (v > 0);
    return cli_format("%s%s", high < 0 ? "-" : "", c);
}

/* A number as the shortest text that reads back as itself, as in JSON; owned. */
static char *double_text(double v)
{
    char text[32] = "NaN";

    for (int digits = 1; digits <= 17 && !isnan(v); digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    return cli_strdup(text);
}

enum {
    COLUMN_COUNT,
    COLUMN_MISSING,
    COLUMN_NAN,
    COLUMN_MIN,
    COLUMN_MAX,
    COLUMN_MEAN,
    COLUMN_STD,
    COLUMN_SUM,
    COLUMN_WEIGHT,
    N_COLUMNS
};
static const char *const columns[] = {"count", "missing", "nan", "min",   "max",
                                      "mean",  "std",     "sum", "weight"};

/* The statistic of a place as JSON text; owned. NULL: there is none. */
static char *value_text(const zarr_summary *r, int column, uint64_t p)
{
    const uint64_t item = zarr_dtype_item_bytes(r->dtype);
    const void *element[] = {(const char *)r->min + p * item,
                             (const char *)r->max + p * item};
    zarr_error err = {0};

    switch (column) {
    case COLUMN_COUNT:
        return cli_format("%llu", (unsigned long long)r->count[p]);
    case COLUMN_MISSING:
        return cli_format("%llu", (unsigned long long)r->n_missing[p]);
    case COLUMN_NAN:
        return cli_format("%llu", (unsigned long long)r->n_nan[p]);
    case COLUMN_MIN:
    case COLUMN_MAX:
        return r->count[p] ? cli_fill_text(r->dtype, element[column - COLUMN_MIN], &err)
                           : NULL;
    case COLUMN_SUM:
        if (r->sum_high)
            return integer_text(r->sum_high[p], r->sum_low[p]);
        return has_sums(r) ? double_text(r->sum[p]) : NULL;
    case COLUMN_WEIGHT:
        return r->weight ? double_text(r->weight[p]) : NULL;
    default:
        return has_sums(r) && r->count[p]
                   ? double_text(column == COLUMN_MEAN ? r->mean[p] : r->std[p])
                   : NULL;
    }
}

static void dim_name(const struct summary *s, int32_t kept, char name[64])
{
    const int32_t dim = s->dim[s->result->dims[kept]];
    const char *own = zarr_array_dimension_name(s->node.array, dim);

    if (own)
        snprintf(name, 64, "%s", own);
    else
        snprintf(name, 64, "dim_%d", (int)dim);
}

/* The index of a place along each kept dimension. */
static void place_index(const zarr_summary *r, uint64_t p, uint64_t *index)
{
    for (int32_t i = r->ndim - 1; i >= 0; i--) {
        index[i] = p % r->shape[i];
        p /= r->shape[i];
    }
}

/* One cell of the table, which begins a line if column is 0. */
static int write_cell(const struct summary *s, bool is_csv, int column, const char *text)
{
    return is_csv ? cli_line(s->cli, "%s%s", column ? "," : "", text)
                  : cli_line(s->cli, "%s%-*s", column ? " " : "", column < 6 ? 11 : 18,
                             text);
}

static int write_places(const struct summary *s, bool is_csv)
{
    const zarr_summary *r = s->result;
    const int n = N_COLUMNS - !r->weight;
    uint64_t index[ZARR_MAX_RANK];
    char name[64];
    int rc = CLI_OK;

    for (int c = 0; c < r->ndim + n && !rc; c++) {
        if (c < r->ndim)
            dim_name(s, c, name);
        rc = write_cell(s, is_csv, c, c < r->ndim ? name : columns[c - r->ndim]);
    }
    for (uint64_t p = 0; p < r->n_places && !rc; p++) {
        rc = cli_printf(s->cli, "\n");
        place_index(r, p, index);
        for (int c = 0; c < r->ndim + n && !rc; c++) {
            char *text = c < r->ndim ? cli_format("%llu", (unsigned long long)index[c])
                                     : value_text(r, c - r->ndim, p);

            rc = write_cell(s, is_csv, c, text ? text : "");
            free(text);
        }
    }
    return rc ? rc : cli_printf(s->cli, "\n");
}

/* Bars of the histogram, the longest of BAR_WIDTH characters. */
static int draw_histogram(const struct summary *s)
{
    static const char bar[] = "##################################################";
    const zarr_summary *r = s->result;
    uint64_t most = 1;
    int rc = CLI_OK;

    for (uint32_t i = 0; i < r->n_bins; i++)
        most = r->bins[i] > most ? r->bins[i] : most;
    for (uint32_t i = 0; i < r->n_bins && !rc; i++) {
        const int length = (int)ceil((double)r->bins[i] / (double)most * BAR_WIDTH);

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
        return write_places(s, false);
    for (int c = 0; c < N_COLUMNS && !rc; c++) {
        char *text = value_text(r, c, 0);

        if (text)
            rc = cli_line(s->cli, "%-8s %s\n", columns[c], text);
        free(text);
    }
    for (uint32_t i = 0; i < s->o.n_quantiles && !rc; i++)
        rc = cli_line(s->cli, "q%-7g %.9g\n", s->quantiles[i], r->quantiles[i]);
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

static int write_json(const struct summary *s)
{
    const zarr_summary *r = s->result;
    struct cli_json *j = cli_json(s->cli);
    uint64_t index[ZARR_MAX_RANK];
    char name[64];

    cli_json_object(j);
    cli_json_text(cli_key(j, "node"), s->node.shown);
    cli_json_list(cli_key(j, "dimensions"));
    for (int32_t i = 0; i < r->ndim; i++) {
        dim_name(s, i, name);
        cli_json_text(j, name);
    }
    cli_json_end(j);
    cli_json_shape(cli_key(j, "shape"), r->ndim, r->shape);
    cli_json_bool(cli_key(j, "sketch"), (r->flags & ZARR_SUMMARY_SKETCH) != 0);
    cli_json_array(cli_key(j, "places"));
    for (uint64_t p = 0; p < r->n_places; p++) {
        cli_json_object(j);
        place_index(r, p, index);
        cli_json_shape(cli_key(j, "index"), r->ndim, index);
        for (int c = 0; c < N_COLUMNS - !r->weight; c++) {
            char *text = value_text(r, c, p);
            const bool is_plain = text && (*text == '-' ? text[1] : *text) <= '9';

            if (is_plain || (text && *text == '"'))
                cli_json_raw(cli_key(j, columns[c]), text);
            else if (text) /* inf, nan */
                cli_json_f64(cli_key(j, columns[c]), strtod(text, NULL));
            else
                cli_json_null(cli_key(j, columns[c]));
            free(text);
        }
        cli_json_end(j);
    }
    cli_json_end(j);
    write_json_spread(s, j);
    cli_json_end(j);
    return CLI_OK;
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

static int read_options(struct summary *s)
{
    struct cli *cli = s->cli;
    uint64_t bins = 0;
    uint32_t n_edges = 0;
    int rc;

    if (cli->json && cli_text(cli, "format"))
        return cli_error(cli, CLI_USAGE, NULL, "--json and --format exclude each other");
    if (s->node.region) {
        rc = cli_node_select(cli, &s->node, s->node.array, &s->region);
        if (rc)
            return rc;
    }
    split_region(s);
    rc = read_over(s);
    if (!rc)
        rc = read_missing(s);
    if (!rc)
        rc = find_weights(s);
    if (!rc)
        rc = read_numbers(s, "quantiles", &s->quantiles, &s->o.n_quantiles);
    if (!rc)
        rc = read_numbers(s, "edges", &s->edges, &n_edges);
    if (!rc)
        rc = cli_u64(cli, "bins", &bins);
    if (!rc && (bins > 1000000 || n_edges == 1 || (bins > 0 && n_edges > 0)))
        rc =
            cli_error(cli, CLI_USAGE, NULL,
                      "a histogram has either --bins, 1000000 at most, or two --edges or "
                      "more");
    s->o.quantiles = s->quantiles;
    s->o.edges = s->edges;
    s->o.n_bins = n_edges > 0 ? n_edges - 1 : (uint32_t)bins;
    return rc;
}

static int compute(struct summary *s)
{
    zarr_error err = {0};
    zarr_status st;

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
    return st ? cli_fail_array(s->cli, s->node.array, st, &err, "cannot summarise %s",
                               s->node.shown)
              : CLI_OK;
}

static int run(struct cli *cli)
{
    struct summary s = {.cli = cli, .o = ZARR_SUMMARY_OPTIONS_INIT};
    const char *format = cli_text(cli, "format");
    int rc = cli_node_open(cli, cli->args[0], CLI_OPEN_ARRAY | CLI_OPEN_REGION, &s.node);

    if (!rc)
        rc = read_options(&s);
    if (!rc)
        rc = compute(&s);
    if (!rc)
        rc = cli->json                  ? write_json(&s)
             : format && *format == 'c' ? write_places(&s, true)
                                        : write_text(&s);
    for (int32_t d = 0; d < ZARR_MAX_RANK; d++)
        free(s.part[d]);
    free(s.weights);
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
        "places has a line.\n\n"
        "Sums of integers are exact. Sums of floats have about twice the digits of a "
        "double before they are rounded. Results do not depend on the number of threads. "
        "Each chunk is read and decoded once. Memory does not grow with the array, but "
        "with the places that are kept; --mem limits it.\n\n"
        "Quantiles, and histograms without --edges, are exact for types of up to 16 "
        "bits, and if the elements as doubles fit in a quarter of --mem. Otherwise they "
        "are "
        "from a sketch, whose ranks err by at most 1 %. The output says so.",
    .json =
        "node. dimensions: names of those that are kept, and shape: their lengths. "
        "sketch: whether quantiles and bins are from a sketch. places: an object for "
        "each place, with index, count, missing, nan, min, max, mean, std, sum, and "
        "with --weights weight; without elements null. quantiles. edges, bins, below, "
        "above: the histogram.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-cat zarrc-plot zarrc-info",
    .run = run,
};
