/*
 * commands/cmd_diff.c - zarrc diff: compares two arrays, regions of arrays, or groups
 * with everything below them. The exit code is 0 if they are equal, 1 if they differ, and
 * any other code if the comparison failed.
 */
#include "cf/cf.h"
#include "diff/diff.h"

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
        cli_diff_begin(d);
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
    o->tell = cli_diff_tell;
    o->tell_node = cli_diff_tell_node;
    o->progress = on_progress;
    o->tell_user = o->progress_user = d;
    o->cancel = cli_cancel;
    st = zarr_node_diff(d->a.store, d->a.path, d->b.store, d->b.path, &result, o, &err);
    if (d->begun)
        cli_progress_end(&d->progress, st == ZARR_OK);
    if (d->cli->out_failed)
        return CLI_IO;
    if (!st || (d->begun && !cli_is_cancelled()))
        cli_diff_end(d, &result, st == ZARR_OK);
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
        "value or else the attribute _FillValue, in v3 the attribute. "
        "The storage of elements (chunks, codecs, format) is ignored unless --storage is "
        "given. With --field only one field of arrays of structs is compared; the "
        "dimensions of a subarray follow those of the array.\n\n"
        "Elements are equal if their bits are equal or both are NaN; with --rtol or "
        "--atol, if |a - b| <= atol + rtol * |b|. Memory does not grow with the "
        "arrays.\n\n"
        "If little of two large arrays is stored, only the stored chunks of both are "
        "read. A "
        "node or chunk that cannot be read is reported, and everything else is "
        "compared.\n\n"
        "Exit code 0: equal. 1: different. Any other code: the comparison failed, or a "
        "part "
        "could not be read. With -q nothing is printed, and the comparison ends at the "
        "first difference.",
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
