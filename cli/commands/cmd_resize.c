/*
 * commands/cmd_resize.c - zarrc resize: changes the shape of an array. Chunks outside a
 * smaller shape are deleted after the metadata is written, unless --keep-chunks is given.
 */
#include "node/work.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    {"keep-chunks", 0, 0, NULL, NULL, "do not delete chunks outside of the new shape"},
    CLI_CONSOLIDATED_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc resize x.zarr/temp 500,-,-", "500 steps; the other lengths do not change."},
    {"zarrc resize --keep-chunks x.zarr/temp 10,180,360",
     "A smaller shape; the elements come back if the array grows again."},
    {"zarrc resize x.zarr/temp -- -,-,-", "Clear what is stored outside of the shape."},
    {NULL, NULL}};

static int read_shape(struct cli *cli, const struct cli_node *node, uint64_t *shape)
{
    const int32_t ndim = zarr_array_ndim(node->array);
    int32_t n = 0;

    memcpy(shape, zarr_array_shape(node->array), (size_t)ndim * sizeof *shape);
    if (cli_parse_shape(cli->args[1], true, shape, &n) && n == ndim)
        return CLI_OK;
    return cli_error(cli, CLI_USAGE, "Write lengths as 100,200; '-' keeps a length.",
                     "\"%s\" is not a shape of %d dimensions", cli->args[1], (int)ndim);
}

static void report(struct cli *cli, const struct cli_node *node, const char *before)
{
    int32_t ndim = zarr_array_ndim(node->array);
    char *now = cli_shape_text(ndim, zarr_array_shape(node->array));

    if (cli->json)
        cli_json_shape(cli_key(cli_json_node(cli, node->shown), "shape"), ndim,
                       zarr_array_shape(node->array));
    cli_say(cli, "%s: %s, was %s", node->shown, now, before);
    free(now);
}

static int run(struct cli *cli)
{
    const zarr_shape_options o = {
        .struct_size = sizeof o,
        .flags = (cli_flag(cli, "keep-chunks") ? ZARR_RESIZE_KEEP_CHUNKS : 0u) |
                 (cli_flag(cli, "no-consolidate") ? 0u : ZARR_RESIZE_CONSOLIDATED),
        .cancel = cli_cancel};
    uint64_t shape[ZARR_MAX_RANK] = {0};
    struct cli_node node = {0};
    zarr_error err = {0};
    zarr_status st;
    char *before = NULL;
    int rc = cli_node_open(cli, cli->args[0], CLI_OPEN_ARRAY | CLI_OPEN_WRITE, &node);

    if (!rc)
        rc = read_shape(cli, &node, shape);
    if (rc)
        goto out;
    before = cli_shape_text(zarr_array_ndim(node.array), zarr_array_shape(node.array));
    node.began = true;
    st = zarr_array_resize(node.array, shape, &o, &err);
    rc = st ? cli_fail_array(cli, node.array, st, &err, "cannot resize %s", node.shown)
            : cli_node_flush(cli, &node);
    if (!rc)
        report(cli, &node, before);
    rc = cli_update_after(cli, &node, false, rc);
out:
    free(before);
    cli_node_close(&node);
    return rc;
}

const struct cli_command cli_cmd_resize = {
    .name = "resize",
    .summary = "change the shape of an array",
    .operands = "NODE SHAPE",
    .min_args = 2,
    .max_args = 2,
    .about =
        "Changes the shape of an array, but not its number of dimensions. SHAPE has a "
        "length for each dimension, as 100,200; '-' keeps a length. New elements have "
        "the fill value until they are written.\n\n"
        "If the shape becomes smaller, chunks outside of it are deleted, and in chunks "
        "that are partly outside, the elements outside get the fill value. With "
        "--keep-chunks no chunk changes.\n\n"
        "If a resize or an append is killed, the next resize first clears what it left "
        "outside of the shape. A resize to the shape that the array has clears "
        "everything outside, also what other programs or --keep-chunks left there. Then "
        "chunks that are partly outside stay if their codecs lose values, with a warning "
        "if they have other elements outside than the fill value.",
    .json = "node; shape: the new shape.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-append zarrc-clean",
    .run = run,
};
