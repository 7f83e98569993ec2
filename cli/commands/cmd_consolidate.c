/*
 * commands/cmd_consolidate.c - zarrc consolidate: writes the metadata of all nodes below
 * a group into one document, as zarr-python does. --check compares that document with the
 * nodes.
 */
#include "node/work.h"

#include <inttypes.h>

static const struct cli_option options[] = {
    {"check", 0, 0, NULL, NULL,
     "write nothing; compare the consolidated metadata with the nodes, exit code 1 if "
     "they differ"},
    {"key", 0, 0, "NAME", NULL,
     "v2: name of the document (default: .zmetadata); an existing object is replaced "
     "only if it is consolidated metadata"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc consolidate x.zarr", "Write one document for remote readers."},
    {"zarrc consolidate --check x.zarr", "Check whether it is up to date."},
    {NULL, NULL}};

struct checking {
    struct cli *cli;
    uint64_t n;
};

static int differs(void *user, const char *path, const char *what)
{
    struct checking *c = user;
    struct cli *cli = c->cli;
    int rc = CLI_OK;

    c->n++;
    if (cli->json) {
        struct cli_json *j = cli_json(cli);

        cli_json_object(j);
        cli_json_text(cli_key(j, "path"), path);
        cli_json_text(cli_key(j, "what"), what);
        cli_json_end(j);
    } else if (!cli->quiet) {
        rc = cli_line(cli, "/%s: %s\n", path, what);
    }
    return rc || cli_is_cancelled();
}

/* The handle reads the nodes themselves: consolidated metadata may be damaged. */
static zarr_status open_nodes(const struct cli_node *node, zarr_group **out,
                              zarr_error *err)
{
    const zarr_group_open_options o = {.struct_size = sizeof o,
                                       .consolidated = ZARR_CONSOLIDATED_NEVER,
                                       .cancel = cli_cancel};

    return zarr_group_open(out, node->store, node->path, &o, err);
}

static int check(struct cli *cli, struct cli_node *node)
{
    const zarr_consolidate_options o = {.struct_size = sizeof o, .cancel = cli_cancel};
    struct checking c = {.cli = cli};
    zarr_group *group = NULL;
    zarr_error err = {0};
    zarr_status st;

    if (cli->json)
        cli_json_array(cli_key(cli_json_node(cli, node->shown), "differences"));
    st = open_nodes(node, &group, &err);
    if (!st)
        st = zarr_group_consolidated_check(group, differs, &c, &o, &err);
    zarr_group_free(group);
    if (st || cli_is_cancelled())
        return cli_fail(cli, st, &err, "cannot check %s", node->shown);
    if (c.n == 0)
        cli_say(cli, "consolidated metadata of %s is up to date", node->shown);
    return c.n ? CLI_DIFFERENT : CLI_OK;
}

static int consolidate(struct cli *cli, struct cli_node *node)
{
    const zarr_consolidate_options o = {
        .struct_size = sizeof o, .key = cli_text(cli, "key"), .cancel = cli_cancel};
    struct cli_tree tree = {0};
    zarr_group *group = NULL;
    zarr_error err = {0};
    zarr_status st = open_nodes(node, &group, &err);
    int rc;

    if (!st)
        st = zarr_group_consolidate(group, &o, &err);
    zarr_group_free(group);
    rc = st ? cli_fail(cli, st, &err, "cannot consolidate %s", node->shown)
            : cli_node_flush(cli, node);
    if (!rc)
        rc = cli_tree_list(cli, node, &tree);
    if (!rc && cli->json)
        cli_json_u64(cli_key(cli_json_node(cli, node->shown), "nodes"), tree.n_items - 1);
    if (!rc)
        cli_say(cli, "consolidated %zu node%s below %s", tree.n_items - 1,
                cli_plural(tree.n_items - 1), node->shown);
    cli_tree_free(&tree);
    return rc;
}

static int run(struct cli *cli)
{
    const bool checks = cli_flag(cli, "check");
    struct cli_node node = {0};
    int rc;

    if (checks && cli_text(cli, "key"))
        return cli_error(cli, CLI_USAGE, NULL, "--check and --key exclude each other");
    rc = cli_node_open(cli, cli->args[0],
                       checks ? CLI_OPEN_GROUP : CLI_OPEN_GROUP | CLI_OPEN_WRITE, &node);
    if (!rc)
        rc = checks ? check(cli, &node) : consolidate(cli, &node);
    cli_node_close(&node);
    return rc;
}

const struct cli_command cli_cmd_consolidate = {
    .name = "consolidate",
    .summary = "write the metadata of all nodes into one document",
    .operands = "GROUP",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Writes consolidated metadata: the metadata of all nodes below GROUP in one "
        "document, inside zarr.json (v3) or as .zmetadata (v2), as zarr-python does. "
        "Readers then open a large remote hierarchy with one request.\n\n"
        "The commands of zarrc that change nodes bring consolidated metadata of the "
        "groups above up to date. Most other programs do not: run this command again "
        "after them. --check finds out whether it is up to date.\n\n"
        "Bare NaN and Infinity, which are not JSON and which some programs write into "
        "attributes, become the strings \"NaN\" and \"Infinity\" in the copy. --check "
        "treats both as equal. So the document is valid JSON, with one exception: a fill "
        "value of the v2 codecs json2 and msgpack2 that has a bare NaN or Infinity stays "
        "as it is, because the string would be another value.",
    .json = "node; nodes: the number of consolidated nodes. With --check: node; "
            "differences: an array of objects with path and what.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-verify",
    .run = run,
};
