/*
 * plot/data.c - selects and reads the elements that a plot shows, as numbers. An array of
 * any size should be drawn in about a second. So no more elements are read than the
 * picture has pixels, and no more chunks than a limit of decoded bytes and of objects
 * permits. If the region has more chunks, evenly spaced ones are read, and a pixel
 * between two of them shows the nearest element of the nearer chunk: every value shown is
 * an element of the array near its true position. If most of these chunks are missing,
 * the stored ones are found and drawn, too (sparse.c).
 *
 * The region's text is parsed here only to number the ticks and to count chunks. The
 * library parses it for the read.
 */
#include "plot/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t budget_bytes = 384u << 20, budget_chunks = 8192;

/* ---- the region ---- */

static int64_t clip(int64_t v, int64_t n, bool down)
{
    v = v < 0 ? v + n : v;
    if (down)
        return v < 0 ? -1 : v >= n ? n - 1 : v;
    return v < 0 ? 0 : v > n ? n : v;
}

/* Parses "a:b:c", "7" or "[1,2]", which the library has already accepted. */
static void read_dim(const char *at, uint64_t length, struct dim_region *p)
{
    const char *colon = strchr(at, ':'), *second = colon ? strchr(colon + 1, ':') : NULL;
    char *first = cli_format("%.*s", (int)strcspn(at, ":"), at);
    int64_t v;

    p->step = 1;
    p->is_list = *at == '[';
    p->is_index = !colon && cli_parse_i64(at, &p->start);
    snprintf(p->text, sizeof p->text, "%s", strlen(at) < sizeof p->text ? at : "[...]");
    if (second && cli_parse_i64(second + 1, &v) && v != 0)
        p->step = v > -INT64_MAX ? v : -INT64_MAX;
    if (colon && cli_parse_i64(first, &v))
        p->start = clip(v, (int64_t)length, p->step < 0);
    else if (colon)
        p->start = p->step < 0 ? (int64_t)length - 1 : 0;
    free(first);
}

/* ---- samples ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void set_chunks(struct plot_axis *s, const zarr_array *array)
{
    const uint64_t *chunk = zarr_array_chunk_shape(array);
    const uint64_t step = (uint64_t)(s->step < 0 ? -s->step : s->step);

    s->chunk = chunk ? chunk[s->array_dim] / step : s->n;
    s->chunk = s->chunk ? s->chunk : 1;
    s->n_chunks = (s->n - 1) / s->chunk + 1;
    s->n_picked = least(s->n_chunks, s->n_samples);
}

/* How many chunks may be read. */
static uint64_t most_chunks(const zarr_array *array)
{
    const uint64_t *chunk = zarr_array_chunk_shape(array);
    uint64_t bytes = zarr_dtype_item_bytes(zarr_array_dtype(array)), most;

    if (chunk)
        bytes = cli_mul(bytes, cli_product(zarr_array_ndim(array), chunk));
    most = budget_bytes / (bytes ? bytes : 1);
    return most < 4 ? 4 : least(most, budget_chunks);
}

/* Reduces the chunks of both axes to the limits. */
static void limit_chunks(const zarr_array *array, struct plot_axis *s, int n)
{
    const uint64_t most = most_chunks(array);
    uint64_t all = 1;
    double factor;

    for (int i = 0; i < n; i++)
        all = cli_mul(all, s[i].n_picked);
    if (all <= most)
        return;
    factor = pow((double)most / (double)all, 1.0 / n);
    for (int i = 0; i < n; i++) {
        const double less = floor((double)s[i].n_picked * factor);

        s[i].n_picked = less < 1 ? 1 : (uint64_t)less;
    }
}

/* Finds the element of each sample. */
static void list_samples(struct plot_axis *s)
{
    s->list = cli_alloc((size_t)s->n_samples * sizeof *s->list);
    for (uint64_t i = 0; i < s->n_samples; i++) {
        const double share = ((double)i + 0.5) / (double)s->n_samples;
        uint64_t at = least((uint64_t)(share * (double)s->n), s->n - 1);

        if (s->n_picked < s->n_chunks) {
            const uint64_t k =
                least((uint64_t)(share * (double)s->n_picked), s->n_picked - 1);
            const uint64_t picked =
                (uint64_t)(((double)k + 0.5) * (double)s->n_chunks / (double)s->n_picked);
            const uint64_t first = picked * s->chunk;
            const uint64_t last = least(first + s->chunk, s->n) - 1;

            at = at < first ? first : at > last ? last : at;
        }
        s->list[i] = (int64_t)at;
    }
}

/* ---- reading ---- */

/* The axis before those that there are. */
static void add_axis(struct reading *r, int32_t dim, int32_t array_dim)
{
    const struct dim_region *p = &r->dims[array_dim];
    const char *name = zarr_array_dimension_name(r->array, array_dim);

    r->out->axis[1 - r->out->ndim++] =
        (struct plot_axis){.dim = dim,
                           .array_dim = array_dim,
                           .n = zarr_selection_shape(r->outer)[dim],
                           .step = p->step,
                           .first = (double)p->start,
                           .spacing = (double)p->step,
                           .name = name ? cli_strdup(name) : NULL};
}

/* The last two dimensions longer than 1, or the last one. */
static int choose_axes(struct reading *r)
{
    const int32_t ndim = zarr_selection_ndim(r->outer);
    const uint64_t *shape = zarr_selection_shape(r->outer);
    int32_t array_dim = zarr_array_ndim(r->array) - 1;
    struct plot_data *out = r->out;

    if (zarr_selection_n_items(r->outer) == 0 || ndim == 0)
        return cli_error(r->cli, CLI_USAGE, NULL, "there is nothing to draw: %s",
                         ndim == 0 ? "the region is a single element"
                                   : "the region has no elements");
    for (int32_t d = ndim - 1; d >= 0; d--, array_dim--) {
        while (array_dim > 0 && r->dims[array_dim].is_index)
            array_dim--;
        if (out->ndim < 2 && (shape[d] > 1 || (d == 0 && out->ndim == 0)))
            add_axis(r, d, array_dim);
        else if (!r->dims[array_dim].is_list)
            snprintf(r->dims[array_dim].text, sizeof r->dims->text, "%lld",
                     (long long)r->dims[array_dim].start);
    }
    for (int i = 2 - out->ndim; i < 2; i++) {
        struct plot_axis *a = &out->axis[i];

        a->n_samples = least(a->n, out->ndim == 1 ? 8 * out->most[i] : out->most[i]);
        set_chunks(a, r->array);
    }
    return CLI_OK;
}

zarr_status cli_plot_select(const struct reading *r, int64_t *const list[2],
                            const uint64_t n[2], zarr_selection **out, zarr_error *err)
{
    const int32_t ndim = zarr_selection_ndim(r->outer);
    zarr_dim_selection dims[ZARR_MAX_RANK];
    zarr_selection *inner = NULL;
    zarr_status st;

    memset(dims, 0, sizeof dims);
    for (int32_t d = 0; d < ndim; d++)
        dims[d].kind = ZARR_DIM_INDEX;
    for (int i = 2 - r->out->ndim; i < 2; i++)
        dims[r->out->axis[i].dim] =
            (zarr_dim_selection){.kind = list[i] ? ZARR_DIM_LIST : ZARR_DIM_ALL,
                                 .list = list[i],
                                 .n_list = n[i]};
    st = zarr_selection_dims(&inner, ndim, zarr_selection_shape(r->outer), ndim, dims,
                             err);
    if (!st)
        st = zarr_selection_compose(out, r->outer, inner, err);
    zarr_selection_free(inner);
    return st;
}

static zarr_status make_selection(struct reading *r, zarr_error *err)
{
    struct plot_axis *axis = r->out->axis;
    const uint64_t n[2] = {axis[0].n_samples, axis[1].n_samples};

    for (int i = 2 - r->out->ndim; i < 2; i++)
        if (axis[i].n_samples < axis[i].n || axis[i].n_picked < axis[i].n_chunks) {
            list_samples(&axis[i]);
            r->out->sampled = true;
        }
    return cli_plot_select(r, (int64_t *const[]){axis[0].list, axis[1].list}, n,
                           &r->whole, err);
}

/* The type of the values of an optional type, also if it is nested; else the type. */
static const zarr_dtype *value_type(const zarr_dtype *type)
{
    while (zarr_dtype_underlying(type))
        type = zarr_dtype_underlying(type);
    return type;
}

/* Whether an element of optional type has a value: the byte after the value tells. */
static bool has_value(const zarr_dtype *type, const char *element)
{
    bool has = true;

    for (; has && zarr_dtype_underlying(type); type = zarr_dtype_underlying(type))
        has = element[zarr_dtype_item_bytes(type) - 1] != 0;
    return has;
}

/* Floats compare by value, because -0.0 is 0.0. */
static bool is_equal(const zarr_dtype *type, const char *element, const char *other)
{
    if (zarr_dtype_kind(type) == ZARR_KIND_FLOAT)
        return cli_number(type, element) == cli_number(type, other);
    return memcmp(element, other, (size_t)zarr_dtype_item_bytes(type)) == 0;
}

static void convert(struct reading *r, const char *elements)
{
    struct plot_data *out = r->out;
    const zarr_dtype *type = value_type(r->field.type);
    const size_t bytes = (size_t)zarr_dtype_item_bytes(r->field.type);
    const char *fill = r->out->hide_fill ? zarr_array_fill_value(r->array) : NULL;
    const char *missing = zarr_array_missing_value(r->array);
    const bool by_cf = type == r->field.type && cf_is_number(type);

    if (fill)
        fill += r->field.offset;
    out->min = (double)INFINITY;
    out->max = -(double)INFINITY;
    for (uint64_t i = 0; i < out->n_values; i++) {
        const char *element = elements + i * bytes;
        double v = by_cf ? cf_number(&r->cf, element) : cli_number(type, element);

        if (!has_value(r->field.type, element) ||
            (fill && memcmp(element, fill, bytes) == 0) ||
            (missing && !by_cf && is_equal(type, element, missing)))
            v = (double)NAN;
        out->values[i] = v;
        if (isfinite(v)) {
            out->n_finite++;
            out->min = fmin(out->min, v);
            out->max = fmax(out->max, v);
        }
    }
}

static int read_values(struct reading *r)
{
    struct plot_data *out = r->out;
    const zarr_dtype *type = r->field.type;
    uint64_t shape[2] = {0, 0};
    zarr_tensor tensor;
    zarr_stats stats = {.struct_size = sizeof stats};
    zarr_error err = {0};
    zarr_status st;
    uint64_t bytes;
    char *elements;

    if (zarr_dtype_n_fields(type) > 0)
        return cli_error(r->cli, CLI_USAGE, "Choose a field: --field=NAME.",
                         "%s holds structs", r->node->shown);
    if (r->field.ndim > 0)
        return cli_error(
            r->cli, CLI_UNSUPPORTED,
            "Choose a field that is not a subarray. zarrc export --field can "
            "write this one.",
            "field %s of %s is a subarray, but a picture shows one value for each "
            "element",
            r->field.options.field, r->node->shown);
    if (!cli_is_number(value_type(type)))
        return cli_error(r->cli, CLI_UNSUPPORTED, NULL,
                         "%s holds elements of type %s, which are not numbers",
                         r->node->shown, cli_type_name(type));
    st = make_selection(r, &err);
    if (st)
        return cli_fail(r->cli, st, &err, "cannot select elements of %s", r->node->shown);
    out->n_values =
        r->out->axis[1].n_samples * (r->out->ndim == 2 ? r->out->axis[0].n_samples : 1);
    bytes = out->n_values * zarr_dtype_item_bytes(type);
    elements = cli_alloc((size_t)bytes);
    for (int i = 0; i < r->out->ndim; i++)
        shape[i] = (uint64_t)r->out->axis[2 - r->out->ndim + i].n_samples;
    zarr_tensor_host(&tensor, NULL, elements, bytes, r->out->ndim, shape);
    r->field.options.stats = &stats;
    st = cli_read(r->array, r->whole, &tensor, &r->field.options, &err);
    r->field.options.stats = NULL;
    if (!st && out->sampled && stats.chunks_missing > stats.chunks_total / 4 * 3)
        st = cli_plot_fill_stored(r, most_chunks(r->array), elements, &err);
    if (!st)
        st = zarr_array_recheck(r->array, cli_cancel, &err);
    if (!st) {
        out->values = cli_alloc((size_t)out->n_values * sizeof *out->values);
        convert(r, elements);
    }
    free(elements);
    return st ? cli_fail_array(r->cli, r->array, st, &err, "cannot read %s",
                               r->node->shown)
              : CLI_OK;
}

/* Tells the region as it is drawn, and the unit. */
static void describe(struct reading *r)
{
    struct cli_string text = {0};
    const int32_t ndim = zarr_array_ndim(r->array);
    bool any = false;

    cli_string_add(&text, "[", 1);
    for (int32_t d = 0; d < ndim; d++) {
        any = any || strcmp(r->dims[d].text, ":") != 0;
        cli_string_printf(&text, "%s%s", d ? ", " : "", r->dims[d].text);
    }
    cli_string_add(&text, "]", 1);
    r->out->unit = r->cf.unit && r->cf.kind != CF_TIME ? cli_strdup(r->cf.unit) : NULL;
    r->out->region = r->node->asked ? cli_format("[%s]", r->node->asked)
                                    : cli_strdup(any ? text.text : "");
    cli_string_free(&text);
}

int cli_plot_read(struct cli *cli, const struct cli_node *node, struct plot_data *out)
{
    struct reading r = {.cli = cli, .node = node, .out = out, .array = node->array};
    int rc = cli_field_find(cli, node, &r.field);

    if (!rc)
        rc = cf_find(cli, r.array, r.field.type, node->shown, &r.cf);
    if (!rc)
        rc = cli_node_select(cli, node, r.array, &r.outer);
    if (rc)
        goto out;
    cf_region_split(node->region, zarr_array_ndim(r.array), r.items);
    for (int32_t d = 0; d < zarr_array_ndim(r.array); d++)
        read_dim(r.items[d], zarr_array_shape(r.array)[d], &r.dims[d]);
    rc = choose_axes(&r);
    if (!rc) {
        limit_chunks(r.array, &out->axis[2 - out->ndim], out->ndim);
        rc = read_values(&r);
    }
    if (!rc)
        describe(&r);
    if (!rc)
        rc = cli_plot_coordinates(&r);
out:
    for (int32_t d = 0; d < zarr_array_ndim(r.array); d++)
        free(r.items[d]);
    cf_free(&r.cf);
    zarr_selection_free(r.whole);
    zarr_selection_free(r.outer);
    return rc;
}

void cli_plot_data_free(struct plot_data *data)
{
    for (int i = 0; i < 2; i++) {
        free(data->axis[i].name);
        free(data->axis[i].list);
        cf_coordinate_free(&data->axis[i].at);
    }
    free(data->values);
    free(data->region);
    free(data->unit);
    *data = (struct plot_data){0};
}
