/*
 * commands/cmd_plot.c - zarrc plot: draws an array as a PNG file or in the terminal.
 */
#include "cf/cf.h"
#include "plot/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"output", 'o', CLI_VALUE_FILE, "FILE", NULL, "write a PNG file; - is stdout"},
    {"force", 'f', 0, NULL, NULL, "overwrite FILE if it exists"},
    {"term", 't', 0, NULL, NULL,
     "draw in the terminal (default without -o if stdout is a terminal)"},
    {"slice", 's', 0, "REGION", NULL,
     "draw this region, as 3,:,: or ::10; the same as NODE[REGION]"},
    CLI_FIELD_OPTION,
    CLI_NEAREST_OPTION,
    CLI_DECODE_OPTION,
    {"size", 0, 0, "WxH", NULL,
     "size in pixels (default: 1000 wide, up to 750 high); in the terminal: in "
     "characters"},
    {"map", 'm', 0, "NAME", PLOT_MAPS, "colour map (default: viridis)"},
    {"percentiles", 'p', 0, "LOW,HIGH", NULL,
     "percentiles of the first and the last colour (default: 2,98)"},
    {"min", 0, 0, "X", NULL,
     "value of the first colour, or the low end of a line's axis"},
    {"max", 0, 0, "X", NULL,
     "value of the last colour, or the high end of a line's axis"},
    {"hide-fill", 0, 0, NULL, NULL,
     "show elements that have the fill value as missing, too"},
    {"origin", 0, 0, "WHERE", "upper|lower",
     "position of row 0 (default: upper; latitudes: so that north is up)"},
    {"aspect", 0, 0, "MODE", "auto|equal|fill",
     "equal: elements are square; fill: use the whole size; auto (default): equal unless "
     "the picture becomes too narrow"},
    {"bare", 0, 0, NULL, NULL, "draw no axes, title and colour bar"},
    {"title", 0, 0, "TEXT", NULL, "title (default: the node and its region)"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc plot -o t.png 'x.zarr/temp[3,:,:]'", "One plane of a 3-D array."},
    {"zarrc plot --term -m coolwarm --min=-2 --max=2 x.zarr/anomaly",
     "In the terminal, with a fixed range of values."},
    {"zarrc plot -o july.png 'climate.zarr/tas[time@2003-07, lat@35:70, lon@-10:40]'",
     "A month over Europe, with coordinates on the axes."},
    {"zarrc plot --bare --size=256x256 -o thumbnail.png x.zarr/image", "A thumbnail."},
    {NULL, NULL}};

struct plot {
    struct cli *cli;
    struct cli_node node;
    int width, height; /* pixels, or characters */
    bool term;
    double percent[2];
    struct plot_style style;
    struct plot_data data;
};

static int read_size(struct plot *p)
{
    uint64_t size[ZARR_MAX_RANK];
    int32_t n = 0;
    bool given = false;
    struct winsize w;
    int rc = cli_shape(p->cli, "size", size, &n, &given);

    if (!rc && given &&
        (n != 2 || size[0] < 1 || size[1] < 1 || size[0] > 16384 || size[1] > 16384))
        rc = cli_error(p->cli, CLI_USAGE, "Write --size=1000x750, 16384 at most.",
                       "option --size: \"%s\" is not a valid size",
                       cli_text(p->cli, "size"));
    if (given && !rc) {
        p->width = (int)size[0];
        p->height = (int)size[1];
    } else if (p->term) {
        const bool ok = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0;

        p->width = ok ? w.ws_col : 80;
        p->height = ok ? w.ws_row : 24;
    } else {
        p->width = 1000;
        p->height = 750;
    }
    return rc;
}

static int read_percentiles(struct plot *p)
{
    const char *text = cli_text(p->cli, "percentiles");
    char *end = NULL;

    p->percent[0] = 2;
    p->percent[1] = 98;
    if (!text)
        return CLI_OK;
    p->percent[0] = strtod(text, &end);
    return *end == ',' && cli_parse_f64(end + 1, &p->percent[1]) && p->percent[0] >= 0 &&
                   p->percent[0] < p->percent[1] && p->percent[1] <= 100
               ? CLI_OK
               : cli_error(p->cli, CLI_USAGE, "Write --percentiles=2,98.",
                           "option --percentiles: \"%s\" is not valid", text);
}

static int read_options(struct plot *p)
{
    struct cli *cli = p->cli;
    const char *output = cli_text(cli, "output");
    const char *map = cli_text(cli, "map"), *aspect = cli_text(cli, "aspect");
    int rc;

    p->term =
        cli_flag(cli, "term") || (!output && !cli->json && isatty(STDOUT_FILENO) == 1);
    if (p->term && output)
        return cli_error(cli, CLI_USAGE, NULL, "--term and --output exclude each other");
    if (!p->term && !output && !cli->json)
        return cli_error(cli, CLI_USAGE, "Use -o FILE, -o - for stdout, or --term.",
                         "option --output is missing");
    if (cli->json && (p->term || (output && strcmp(output, "-") == 0)))
        return cli_error(cli, CLI_USAGE, NULL,
                         "the picture and JSON cannot both be written to stdout");
    p->style.map = map ? map : "viridis";
    p->style.aspect = aspect ? aspect : "auto";
    p->style.lower = cli_choice(cli, "origin") == 2;
    p->style.trim = !cli_text(cli, "size");
    p->style.bare = cli_flag(cli, "bare");
    rc = read_size(p);
    return rc ? rc : read_percentiles(p);
}

/* The colours of a plane cover the range between two percentiles; a line shows all of its
 * values. */
static int choose_range(struct plot *p)
{
    struct plot_range *r = &p->style.range;
    const bool line = p->data.ndim == 1;
    int rc;

    *r = cli_plot_stretch(&p->data, line ? 0 : p->percent[0], line ? 100 : p->percent[1]);
    if (line) {
        const double more = (r->high - r->low) * 0.04;

        r->low -= more;
        r->high += more;
    }
    rc = cli_f64(p->cli, "min", &r->low);
    if (!rc)
        rc = cli_f64(p->cli, "max", &r->high);
    if (!rc && !(r->low < r->high && isfinite(r->high - r->low)))
        rc = cli_error(p->cli, CLI_USAGE, "Give both --min and --max.",
                       "the range %g to %g is empty", r->low, r->high);
    return rc;
}

static void make_title(struct plot *p)
{
    const char *given = cli_text(p->cli, "title");
    const char *unit = p->data.unit;

    p->style.title =
        given ? cli_strdup(given)
              : cli_format("%s%s%s%s%s", p->node.shown, p->data.region, unit ? " (" : "",
                           unit ? unit : "", unit ? ")" : "");
}

static int write_png(struct plot *p)
{
    const char *output = cli_text(p->cli, "output");
    struct plot_canvas canvas = {0};
    struct cli_file file = {0};
    int rc = CLI_OK;

    if (!output)
        return CLI_OK;
    if (cli_flag(p->cli, "force"))
        rc = cli_require_outside(p->cli, output, &p->node);
    if (!rc)
        rc = cli_file_create(p->cli, output, cli_flag(p->cli, "force"), &file);
    if (!rc) {
        cli_canvas_init(&canvas, p->width, p->height);
        cli_plot_draw(&canvas, &p->data, &p->style);
        rc = cli_canvas_write(p->cli, &canvas, &file);
    }
    if (!rc)
        rc = cli_file_commit(p->cli, &file);
    cli_file_close(&file);
    free(canvas.pixels);
    return rc;
}

/* What the axes show, and which end of them. */
static void report_axes(struct cli_json *j, const struct plot *p)
{
    cli_json_text(cli_key(j, "units"), p->data.unit);
    cli_json_text(cli_key(j, "origin"), p->style.lower ? "lower" : "upper");
    cli_json_array(cli_key(j, "axes"));
    for (int i = 2 - p->data.ndim; i < 2; i++) {
        const struct plot_axis *a = &p->data.axis[i];
        struct cli_string ends[2] = {{0}};

        for (uint64_t k = 0; a->at.array && k < 2; k++)
            cf_coordinate_print(&a->at, k ? a->n - 1 : 0, &ends[k]);
        cli_json_object(j);
        cli_json_text(cli_key(j, "label"), a->name);
        cli_json_text(cli_key(j, "first"), ends[0].text);
        cli_json_text(cli_key(j, "last"), ends[1].text);
        cli_json_end(j);
        cli_string_free(&ends[0]);
        cli_string_free(&ends[1]);
    }
    cli_json_end(j);
}

static void report_json(const struct plot *p)
{
    struct cli_json *j = cli_json_node(p->cli, p->node.shown);
    const struct plot_axis *a = p->data.axis;
    const uint64_t shape[] = {a[0].n, a[1].n};
    const uint64_t samples[] = {a[0].n_samples, a[1].n_samples};
    const bool any = p->data.n_finite > 0;

    cli_json_text(cli_key(j, "region"), p->data.region);
    cli_json_shape(cli_key(j, "shape"), p->data.ndim, &shape[2 - p->data.ndim]);
    cli_json_shape(cli_key(j, "samples"), p->data.ndim, &samples[2 - p->data.ndim]);
    cli_json_bool(cli_key(j, "sampled"), p->data.sampled);
    cli_json_f64(cli_key(j, "min"), any ? p->data.min : (double)NAN);
    cli_json_f64(cli_key(j, "max"), any ? p->data.max : (double)NAN);
    cli_json_u64(cli_key(j, "missing"), p->data.n_values - p->data.n_finite);
    cli_json_f64(cli_key(j, "low"), p->style.range.low);
    cli_json_f64(cli_key(j, "high"), p->style.range.high);
    report_axes(j, p);
    cli_json_text(cli_key(j, "file"), cli_text(p->cli, "output"));
}

static int plot(struct plot *p)
{
    int rc;

    p->data = (struct plot_data){
        .most = {(uint64_t)p->height * (p->term ? 2 : 1), (uint64_t)p->width},
        .hide_fill = cli_flag(p->cli, "hide-fill")};
    rc = cli_plot_read(p->cli, &p->node, &p->data);
    if (!rc)
        rc = choose_range(p);
    if (rc)
        return rc;
    if (!cli_text(p->cli, "origin")) /* north is up */
        p->style.lower = p->data.ndim == 2 && p->data.axis[0].is_northward;
    make_title(p);
    rc = p->term ? cli_plot_term(p->cli, &p->data, &p->style, p->width, p->height)
                 : write_png(p);
    if (!rc && p->cli->json)
        report_json(p);
    return rc;
}

static int run(struct cli *cli)
{
    struct plot p = {.cli = cli};
    const char *slice = cli_text(cli, "slice");
    int rc = read_options(&p);

    if (!rc)
        rc = cli_node_open(cli, cli->args[0], CLI_OPEN_ARRAY | CLI_OPEN_REGION, &p.node);
    if (!rc && slice && p.node.region)
        rc = cli_error(cli, CLI_USAGE, NULL, "two regions: [%s] and --slice=%s",
                       p.node.region, slice);
    if (!rc && slice) {
        p.node.region = cli_strdup(slice);
        rc = cli_node_resolve(cli, &p.node);
    }
    if (!rc)
        rc = plot(&p);
    cli_plot_data_free(&p.data);
    free(p.style.title);
    cli_node_close(&p.node);
    return rc;
}

const struct cli_command cli_cmd_plot = {
    .name = "plot",
    .summary = "draw an array as PNG or in the terminal",
    .operands = "NODE[REGION]",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Draws two dimensions of an array as a plane of colours, or one dimension as a "
        "line. If an array has more dimensions, the last two are drawn, at index 0 of "
        "the others, unless a region selects otherwise. Complex numbers are drawn as "
        "their magnitude.\n\n"
        "At most one element for each pixel is read, and only some evenly spaced chunks "
        "of a very large array, so that any array takes about a second. If most of these "
        "are missing, the stored chunks are found and drawn. Colours cover the 2nd to "
        "the 98th percentile of the elements that were read, unless options give another "
        "range.\n\n"
        "Values are always decoded as by zarrc-cat(1) --decode, except times: "
        "scale_factor and add_offset are applied, and NaN and missing values are grey. "
        "An axis shows the one-dimensional coordinate of its dimension with the units, "
        "or indexes if there is none. North is up, and longitudes go on across the seam.",
    .json = "node; region; shape: of the drawn region; samples: elements read along each "
            "axis; sampled: whether elements were left out; min, max: of the elements "
            "read; missing: the number of NaN and missing values; low, high: the range "
            "of the colours or the axis; units: of the elements; origin: upper or lower; "
            "axes: a list of objects with label, first and last (of the coordinate, or "
            "null); file.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-cat zarrc-info",
    .run = run,
};
