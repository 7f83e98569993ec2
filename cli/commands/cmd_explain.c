/*
 * commands/cmd_explain.c - zarrc explain: prints the library's description of a read or
 * write.
 */
#include "cf/cf.h"
#include "node/node.h"

#include <stdlib.h>

static char *explanation_text(const zarr_explanation *e, uint32_t form, zarr_status *st,
                              zarr_error *err)
{
    size_t n = 0;
    char *text = NULL;

    *st = zarr_explanation_text(e, form, NULL, 0, &n, err);
    if (!*st) {
        text = cli_alloc(n + 1);
        *st = zarr_explanation_text(e, form, text, n + 1, NULL, err);
    }
    return text;
}

static int explain(struct cli *cli, const struct cli_node *node,
                   const zarr_selection *selection)
{
    const uint32_t what = cli_flag(cli, "write") ? ZARR_EXPLAIN_WRITE : ZARR_EXPLAIN_READ;
    zarr_explanation *e = NULL;
    zarr_error err = {0};
    char *text = NULL;
    struct cli_memory memory;
    zarr_tensor tensor = ZARR_TENSOR_INIT;
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_status st = ZARR_OK;
    int rc = cli_memory_find(cli, &memory);

    if (rc)
        return rc;
    tensor.device_type = memory.device_type;
    tensor.device_id = memory.device_id;
    opts.trust = cli_trust(cli);
    st = zarr_array_explain(&e, node->array, what, selection, &tensor, &opts, &err);
    if (!st)
        text = explanation_text(e, cli->json ? ZARR_EXPLAIN_JSON : ZARR_EXPLAIN_TEXT, &st,
                                &err);
    if (st)
        rc = cli_fail(cli, st, &err, "cannot explain %s", node->shown);
    else if (cli->json)
        cli_json_raw(cli_json(cli), text);
    else
        rc = cli_printf(cli, "%s", text);
    zarr_explanation_free(e);
    free(text);
    return rc;
}

static int run_explain(struct cli *cli)
{
    struct cli_node node = {0};
    zarr_selection *selection = NULL;
    int rc = cli_node_open(cli, cli->args[0], CLI_OPEN_ARRAY | CLI_OPEN_REGION, &node);

    if (!rc)
        rc = cli_node_select(cli, &node, node.array, &selection);
    if (!rc)
        rc = explain(cli, &node, selection);
    zarr_selection_free(selection);
    cli_node_close(&node);
    return rc;
}

static const struct cli_option explain_options[] = {
    {"write", 'w', 0, NULL, NULL, "explain a write instead of a read"},
    {"memory", 0, 0, "KIND[:N]", NULL,
     "the memory of the elements, such as cuda:0; see zarrc list devices (default: "
     "host)"},
    CLI_TRUST_OPTION,
    CLI_NEAREST_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example explain_examples[] = {
    {"zarrc explain 'x.zarr/temp[0:10]'",
     "The chunks that a read touches, and the implementations that decode them."},
    {"zarrc explain --write 'x.zarr/temp[5:15]'",
     "The chunks that a write covers completely or in part."},
    {"zarrc explain --memory=host x.zarr/temp",
     "The way of the chunks into memory of this kind."},
    {NULL, NULL}};

const struct cli_command cli_cmd_explain = {
    .name = "explain",
    .summary = "describe what a read or write of a region does",
    .operands = "ARRAY[REGION]",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Describes which chunks a read or write touches, which implementation runs each "
        "codec, which copies are made, and the number of batches. Only metadata is read.",
    .json = "The document of the library; see zarr_explanation(3).",
    .options = explain_options,
    .examples = explain_examples,
    .see_also = "zarrc-info zarrc-list",
    .run = run_explain,
};
