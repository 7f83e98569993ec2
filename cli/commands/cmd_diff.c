/*
 * commands/cmd_diff.c - zarrc diff: compares two arrays, regions of arrays, or groups
 * with everything below them. The exit code is 0 if they are equal, 1 if they differ, and
 * any other code if the comparison failed. As text there is a line for each node that
 * differs, and below it a line for each difference; as JSON an object for each node.
 * Elements are spelled as by the other commands, with all their digits.
 */
#include "cf/cf.h"
#include "data/data.h"
#include "node/work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    {"rtol", 0, 0, "X", NULL, "relative tolerance: X times the element of B"},
    {"atol", 0, 0, "X", NULL, "absolute tolerance"},
    {"nan-differs", 0, 0, NULL, NULL, "NaN differs from NaN (default: it is equal)"},
    {"show", 'N', 0, "N", NULL,
     "show at most N different elements of each array, and count the rest (default: 10; "
     "0: all)"},
    CLI_NEAREST_OPTION,
    {"storage", 0, 0, NULL, NULL, "also compare chunks, shards, codecs and format"},
    {"data", 0, 0, NULL, NULL,
     "compare only elements, and the properties that they require to be equal"},
    CLI_FIELD_OPTION,
    CLI_MISSING_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc diff a.zarr b.zarr", "All nodes, attributes and elements."},
    {"zarrc diff --rtol=1e-6 a.zarr/temp b.zarr/temp", "Elements within a tolerance."},
    {"zarrc diff --field=pos.x a.zarr/particles b.zarr/particles",
     "One field of arrays of structs."},
    {"zarrc diff -q 'a.zarr/temp[0]' 'a.zarr/temp[1]' && echo equal",
     "Compare two steps of one array by the exit code."},
    {NULL, NULL}};

/* The state of zarrc diff. */
struct diff {
    struct cli *cli;
    struct cli_node a, b;
    struct cli_progress progress;
    bool begun;
    /* the current pair of nodes: */
    bool node_open;   /* its line or object was begun */
    bool in_elements; /* JSON: the list of elements was begun */
    uint64_t n_shown; /* elements printed */
    /* JSON: the list of what cannot be read */
    struct cli_json *unreadable;
    struct cli_string unreadable_text;
};

/* ---- the output ---- */

enum {
    SHORT = 60 /* longer values are truncated in text */
};

static bool is_silent(const struct diff *d)
{
    return d->cli->quiet && !d->cli->json;
}

/* Begins the output, before any difference. */
static void begin(struct diff *d)
{
    d->begun = true;
    if (!d->cli->json)
        return;
    cli_json_object(cli_json(d->cli));
    cli_json_text(cli_key(cli_json(d->cli), "a"), d->a.shown);
    cli_json_text(cli_key(cli_json(d->cli), "b"), d->b.shown);
    cli_json_array(cli_key(cli_json(d->cli), "nodes"));
}

/* complete: everything could be read. */
static void end(struct diff *d, const zarr_diff_result *result, bool complete)
{
    struct cli_json *j;

    if (!d->cli->json) {
        if (result->n_different == 0 && complete)
            cli_note(d->cli, "%s and %s are equal (%" PRIu64 " node%s)", d->a.shown,
                     d->b.shown, result->n_nodes, cli_plural(result->n_nodes));
        return;
    }
    j = cli_json(d->cli);
    cli_json_end(j);
    cli_json_bool(cli_key(j, "equal"), result->n_different == 0 && complete);
    cli_json_u64(cli_key(j, "nodes_compared"), result->n_nodes);
    cli_json_u64(cli_key(j, "nodes_different"), result->n_different);
    cli_json_end(j);
}

/* Begins the node's line or object, before its first difference. */
static void open_node(struct diff *d, const char *path)
{
    struct cli *cli = d->cli;

    if (d->node_open)
        return;
    d->node_open = true;
    if (cli->json) {
        cli_json_object(cli_json(cli));
        cli_json_text(cli_key(cli_json(cli), "path"), path);
        cli_json_array(cli_key(cli_json(cli), "differences"));
    } else if (!is_silent(d)) {
        char *a = cli_shown_below(&d->a, path), *b = cli_shown_below(&d->b, path);

        cli_line(cli, "%s and %s differ\n", a, b);
        free(a);
        free(b);
    }
}

/* ---- properties ---- */

static char *what_text(const zarr_difference *f)
{
    static const char *const names[] = {
        [ZARR_DIFFERENCE_KIND] = "kind",
        [ZARR_DIFFERENCE_SHAPE] = "shape",
        [ZARR_DIFFERENCE_DATA_TYPE] = "data type",
        [ZARR_DIFFERENCE_FIELD_SHAPE] = "shape of the field",
        [ZARR_DIFFERENCE_FILL_VALUE] = "fill value",
        [ZARR_DIFFERENCE_FORMAT] = "format",
        [ZARR_DIFFERENCE_CHUNKS] = "chunks",
        [ZARR_DIFFERENCE_SHARDS] = "shards",
        [ZARR_DIFFERENCE_CHUNK_GRID] = "chunk grid",
        [ZARR_DIFFERENCE_CODECS] = "codecs",
        [ZARR_DIFFERENCE_MISSING_VALUE] = "missing value",
    };

    if (f->what == ZARR_DIFFERENCE_ATTRIBUTE)
        return cli_format("attribute %s", f->name);
    if (f->what == ZARR_DIFFERENCE_DIMENSION_NAME)
        return cli_format("name of dimension %d", (int)f->dim);
    return cli_strdup(f->what < sizeof names / sizeof *names && names[f->what]
                          ? names[f->what]
                          : "something");
}

/* The value on side a or b as text, owned; NULL if that side has none. */
static char *value_text(const zarr_difference *f, bool is_a)
{
    const char *value = is_a ? f->a : f->b;
    const uint64_t *shape = is_a ? f->shape_a : f->shape_b;
    const bool is_shape =
        f->what == ZARR_DIFFERENCE_SHAPE || f->what == ZARR_DIFFERENCE_FIELD_SHAPE;

    if (shape || is_shape)
        return cli_shape_text(is_a ? f->ndim_a : f->ndim_b, shape);
    if (value && f->is_json)
        return cli_json_line(value, strlen(value));
    return value ? cli_strdup(value) : NULL;
}

static void value_json(struct cli_json *j, const char *value, bool is_json)
{
    if (is_json && value)
        cli_json_raw(j, value);
    else
        cli_json_text(j, value);
}

static const char *cut(const char *value, char text[SHORT + 4])
{
    size_t n = SHORT;

    if (!value)
        return "(none)";
    if (strlen(value) <= SHORT)
        return value;
    while (n > 0 && ((unsigned char)value[n] & 0xc0) == 0x80)
        n--; /* a character is left out as a whole */
    memcpy(text, value, n);
    memcpy(text + n, "...", 4);
    return text;
}

static void tell_property(struct diff *d, const zarr_difference *f)
{
    struct cli *cli = d->cli;
    char *what = what_text(f), *a = value_text(f, true), *b = value_text(f, false);
    char ta[SHORT + 4], tb[SHORT + 4];

    open_node(d, f->path);
    if (cli->json) {
        struct cli_json *j = cli_json(cli);

        cli_json_object(j);
        cli_json_text(cli_key(j, "what"), what);
        value_json(cli_key(j, "a"), a, f->is_json);
        value_json(cli_key(j, "b"), b, f->is_json);
        cli_json_end(j);
    } else if (!is_silent(d)) {
        cli_line(cli, "  %s: %s | %s\n", what, cut(a, ta), cut(b, tb));
    }
    free(what);
    free(a);
    free(b);
}

static void tell_only(struct diff *d, const zarr_difference *f)
{
    const bool is_a = f->what == ZARR_DIFFERENCE_ONLY_A;
    struct cli *cli = d->cli;

    if (cli->json) {
        struct cli_json *j = cli_json(cli);

        cli_json_object(j);
        cli_json_text(cli_key(j, "path"), f->path);
        cli_json_text(cli_key(j, "only_in"), is_a ? "a" : "b");
        cli_json_end(j);
    } else if (!is_silent(d)) {
        char *shown = cli_shown_below(is_a ? &d->a : &d->b, f->path);

        cli_line(cli, "only %s\n", shown);
        free(shown);
    }
}

/* ---- elements ---- */

static void element_json(struct diff *d, const zarr_difference *f)
{
    struct cli_json *j = cli_json(d->cli);
    struct cli_string text = {0};

    if (!d->in_elements) {
        cli_json_end(j); /* differences */
        cli_json_array(cli_key(j, "elements"));
        d->in_elements = true;
    }
    cli_json_object(j);
    cli_json_shape(cli_key(j, "index"), f->ndim, f->index);
    cli_element_json(d->cli, f->dtype, f->element_a, &text);
    cli_json_raw(cli_key(j, "a"), text.text);
    text.n_bytes = 0;
    cli_element_json(d->cli, f->dtype, f->element_b, &text);
    cli_json_raw(cli_key(j, "b"), text.text);
    cli_json_end(j);
    free(text.text);
}

static void element_text(struct diff *d, const zarr_difference *f)
{
    struct cli_string text = {0};

    cli_string_printf(&text, "  [");
    for (int32_t i = 0; i < f->ndim; i++)
        cli_string_printf(&text, "%s%" PRIu64, i ? ", " : "", f->index[i]);
    cli_string_printf(&text, "]: ");
    cli_element_text(d->cli, f->dtype, f->element_a, &text);
    cli_string_printf(&text, " | ");
    cli_element_text(d->cli, f->dtype, f->element_b, &text);
    cli_line(d->cli, "%s\n", text.text);
    free(text.text);
}

/* ---- what cannot be read ---- */

static void tell_unreadable(struct diff *d, const zarr_difference *f)
{
    struct cli *cli = d->cli;
    const char *why = f->a ? f->a : f->b;

    open_node(d, f->path);
    if (cli->json) { /* written at the end of the node: elements may have begun */
        if (!d->unreadable)
            cli_json_array(d->unreadable =
                               cli_json_start(cli, &d->unreadable_text, true));
        cli_json_object(d->unreadable);
        cli_json_text(cli_key(d->unreadable, "side"), f->a ? "a" : "b");
        if (f->index)
            cli_json_shape(cli_key(d->unreadable, "index"), f->ndim, f->index);
        cli_json_text(cli_key(d->unreadable, "why"), why);
        cli_json_end(d->unreadable);
    } else if (!is_silent(d)) {
        cli_line(cli, "  unreadable: %s\n", why);
    }
}

static int tell(void *user, const zarr_difference *f)
{
    struct diff *d = user;

    if (f->what == ZARR_DIFFERENCE_ONLY_A || f->what == ZARR_DIFFERENCE_ONLY_B) {
        tell_only(d, f);
    } else if (f->what == ZARR_DIFFERENCE_UNREADABLE) {
        tell_unreadable(d, f);
    } else if (f->what != ZARR_DIFFERENCE_ELEMENT) {
        tell_property(d, f);
    } else {
        open_node(d, f->path);
        d->n_shown++;
        if (d->cli->json)
            element_json(d, f);
        else
            element_text(d, f);
    }
    return d->cli->out_failed;
}

/* ---- the end of a node ---- */

static void end_json(struct diff *d, const zarr_diff_node *n)
{
    struct cli_json *j = cli_json(d->cli);

    cli_json_end(j); /* differences or elements */
    if (n->n_elements) {
        cli_json_u64(cli_key(j, "elements_compared"), n->n_elements);
        cli_json_u64(cli_key(j, "elements_different"), n->n_different);
        if (n->largest_at)
            cli_json_f64(cli_key(j, "largest_difference"), n->largest);
    }
    if (d->unreadable) {
        cli_json_end(d->unreadable);
        cli_json_finish(d->unreadable);
        cli_json_raw(cli_key(j, "unreadable"), d->unreadable_text.text);
        cli_json_u64(cli_key(j, "elements_unreadable"), n->n_unread);
        cli_string_free(&d->unreadable_text);
        d->unreadable = NULL;
    }
    cli_json_end(j);
}

static void end_text(struct diff *d, const zarr_diff_node *n)
{
    if (n->n_unread)
        cli_printf(d->cli, "  %" PRIu64 " element%s not compared\n", n->n_unread,
                   n->n_unread == 1 ? " was" : "s were");
    if (n->n_different == 0)
        return;
    if (n->n_different > d->n_shown)
        cli_printf(d->cli, "  ... and %" PRIu64 " more\n", n->n_different - d->n_shown);
    cli_printf(d->cli, "  %" PRIu64 " of %" PRIu64 " elements differ", n->n_different,
               n->n_elements);
    if (n->largest_at) {
        char *at = cli_shape_text(n->ndim, n->largest_at);

        cli_printf(d->cli, ", by %.6g at most, at %s", n->largest, at);
        free(at);
    }
    cli_printf(d->cli, "\n");
}

static int tell_node(void *user, const zarr_diff_node *n)
{
    struct diff *d = user;

    if (n->n_different)
        open_node(d, n->path); /* not yet open if no element is shown */
    if (d->node_open && d->cli->json)
        end_json(d, n);
    else if (d->node_open && !is_silent(d))
        end_text(d, n);
    d->node_open = d->in_elements = false;
    d->n_shown = 0;
    return d->cli->out_failed;
}

/* ---- the command ---- */

static int read_options(struct cli *cli, zarr_diff_options *o)
{
    int rc = cli_f64(cli, "rtol", &o->rtol);

    if (!rc)
        rc = cli_f64(cli, "atol", &o->atol);
    o->max_elements = 10;
    if (!rc)
        rc = cli_u64(cli, "show", &o->max_elements);
    if (!o->max_elements)
        o->max_elements = UINT64_MAX;
    if (!rc && (!(o->rtol >= 0) || !(o->atol >= 0)))
        rc = cli_error(cli, CLI_USAGE, NULL, "a tolerance must be at least 0");
    if (cli_text(cli, "rtol") || cli_text(cli, "atol"))
        o->flags |= ZARR_DIFF_TOLERANT;
    if (cli_missing_is_error(cli))
        o->flags |= ZARR_DIFF_MISSING_ERROR;
    if (cli_flag(cli, "nan-differs"))
        o->flags |= ZARR_DIFF_NAN_DIFFERS;
    if (cli_flag(cli, "storage"))
        o->flags |= ZARR_DIFF_STORAGE;
    if (cli_flag(cli, "data"))
        o->flags |= ZARR_DIFF_DATA;
    o->field = cli_text(cli, "field");
    if (cli->quiet && !cli->json) { /* only the exit code is needed */
        o->flags |= ZARR_DIFF_FIRST;
        o->max_elements = 0;
    }
    return rc;
}

static void on_progress(void *user, const zarr_progress *now)
{
    struct diff *d = user;

    if (!d->begun) {
        begin(d);
        cli_progress_begin(&d->progress, d->cli, "diff", now->bytes_total, 0);
    }
    cli_progress_update(&d->progress, now->bytes_done, 0);
}

/* The region of an array; NULL: all of it. */
static int select_region(struct cli *cli, const struct cli_node *node,
                         zarr_selection **out)
{
    return node->region && node->array ? cli_node_select(cli, node, node->array, out)
                                       : CLI_OK;
}

static int diff(struct diff *d, zarr_diff_options *o)
{
    zarr_diff_result result = ZARR_DIFF_RESULT_INIT;
    zarr_error err = {0};
    zarr_status st;

    o->buffer_bytes = cli_buffer_bytes(d->cli);
    o->tell = tell;
    o->tell_node = tell_node;
    o->progress = on_progress;
    o->tell_user = o->progress_user = d;
    o->cancel = cli_cancel;
    st = zarr_node_diff(d->a.store, d->a.path, d->b.store, d->b.path, &result, o, &err);
    if (d->begun)
        cli_progress_end(&d->progress, st == ZARR_OK);
    if (d->cli->out_failed)
        return CLI_IO;
    if (!st || (d->begun && !cli_is_cancelled()))
        end(d, &result, st == ZARR_OK);
    if (st)
        return cli_fail(d->cli, st, &err, "cannot compare %s%s with %s",
                        result.n_nodes ? "all of " : "", d->a.shown, d->b.shown);
    return result.n_different ? CLI_DIFFERENT : CLI_OK;
}

static int run(struct cli *cli)
{
    struct diff d = {.cli = cli};
    zarr_diff_options o = ZARR_DIFF_OPTIONS_INIT;
    zarr_selection *regions[2] = {NULL, NULL};
    int rc = read_options(cli, &o);

    if (!rc)
        rc = cli_node_open(cli, cli->args[0], CLI_OPEN_REGION, &d.a);
    if (!rc)
        rc = cli_node_open(cli, cli->args[1], CLI_OPEN_REGION, &d.b);
    if (!rc)
        rc = select_region(cli, &d.a, &regions[0]);
    if (!rc)
        rc = select_region(cli, &d.b, &regions[1]);
    o.selection_a = regions[0];
    o.selection_b = regions[1];
    if (!rc)
        rc = diff(&d, &o);
    zarr_selection_free(regions[0]);
    zarr_selection_free(regions[1]);
    cli_node_close(&d.a);
    cli_node_close(&d.b);
    return rc;
}

const struct cli_command cli_cmd_diff = {
    .name = "diff",
    .summary = "compare two nodes",
    .operands = "A[REGION] B[REGION]",
    .min_args = 2,
    .max_args = 2,
    .about =
        "Compares two arrays, regions of arrays, or groups with everything below them: "
        "shape, data type, fill value, missing value, dimension names, attributes, and "
        "every element. The missing value is what xarray shows as NaN: in v2 the fill "
        "value or else the attribute _FillValue, in v3 the attribute. The storage of "
        "elements (chunks, codecs, format) is ignored unless --storage is given. With "
        "--field only one field of arrays of structs is compared; the dimensions of a "
        "subarray follow those of the array.\n\n"
        "Elements are equal if their bits are equal or both are NaN; with --rtol or "
        "--atol, if |a - b| <= atol + rtol * |b|. Memory does not grow with the "
        "arrays.\n\n"
        "If little of two large arrays is stored, only the stored chunks of both are "
        "read. A node or chunk that cannot be read is reported, and everything else is "
        "compared.\n\n"
        "Exit code 0: equal. 1: different. Any other code: the comparison failed, or a "
        "part could not be read. With -q nothing is printed, and the comparison ends at "
        "the first difference.",
    .json = "a, b. nodes: an object for each node that differs, with path and either "
            "only_in (a or b) or differences (what, a, b) and elements (index, a, b), "
            "elements_compared, elements_different, largest_difference; if a part cannot "
            "be read, unreadable (side, index, why) and elements_unreadable. equal; "
            "nodes_compared; nodes_different.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-verify zarrc-reencode",
    .run = run,
};
