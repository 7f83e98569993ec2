/*
 * commands/cmd_clean.c - zarrc clean: removes temporary and lock files that killed
 * writers left. The store decides which files are too young or still in use.
 */
#include "node/work.h"

#include <inttypes.h>
#include <stdlib.h>

static const struct cli_option options[] = {
    {"dry-run", 'n', 0, NULL, NULL, "list the left-over files, change nothing"},
    {"age", 0, 0, "SECONDS", NULL, "keep files that are younger (default: 3600)"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc clean -n x.zarr", "List the files that killed writers left."},
    {"zarrc clean --age=0 x.zarr", "Remove all of them now, except files in use."},
    {NULL, NULL}};

struct debris {
    struct cli *cli;
    uint64_t n_found, n_bytes;
};

static int found(void *user, const zarr_store_item *item)
{
    struct debris *d = user;
    struct cli *cli = d->cli;

    d->n_found++;
    d->n_bytes += item->bytes == UINT64_MAX ? 0 : item->bytes;
    if (cli->json)
        cli_json_text(cli_json(cli), item->key);
    else if (cli_flag(cli, "dry-run") && cli_printf(cli, "%s\n", item->key))
        return 1;
    return cli_cancel;
}

static void interrupted(void *user, const char *key, const char *command,
                        const char *hint)
{
    cli_warn(user, "%s: an interrupted %s, which clean does not remove. %s", key, command,
             hint);
}

static int clean(struct cli *cli, struct cli_node *node, uint64_t age)
{
    struct debris d = {.cli = cli};
    uint64_t removed = 0;
    zarr_error err = {0};
    zarr_status st;

    if (cli->json) {
        cli_json_object(cli_json(cli));
        cli_json_array(cli_key(cli_json(cli), "found"));
    }
    st = zarr_store_list(node->store, node->path, ZARR_LIST_DEBRIS, found, &d, &err);
    if (cli->json)
        cli_json_end(cli_json(cli));
    if (!st && !cli_cancel && !cli_flag(cli, "dry-run"))
        st = zarr_store_clean(node->store, node->path, age, &removed, &err);
    if (st || cli_cancel)
        return cli_fail(cli, st, &err, "cannot clean %s", node->shown);
    if (cli->json)
        cli_json_u64(cli_key(cli_json(cli), "removed"), removed);
    if (cli_flag(cli, "dry-run"))
        cli_say(cli, "%" PRIu64 " left-over files; files in use would be kept",
                d.n_found);
    else
        cli_say(cli, "removed %" PRIu64 " of %" PRIu64 " left-over files", removed,
                d.n_found);
    return CLI_OK;
}

static int run(struct cli *cli)
{
    struct cli_node node = {0};
    uint64_t age = 3600;
    int rc = cli_u64(cli, "age", &age);

    if (!rc)
        rc = cli_node_open(cli, cli->args[0], CLI_OPEN_WRITE | CLI_OPEN_REST, &node);
    if (!rc)
        rc = clean(cli, &node, age);
    if (!rc)
        rc = cli_jobs_each(cli, &node, interrupted, cli);
    cli_node_close(&node);
    return rc;
}

const struct cli_command cli_cmd_clean = {
    .name = "clean",
    .summary = "remove left-over temporary files",
    .operands = "NODE",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Removes temporary and lock files below NODE that killed writers left. It "
        "keeps files that are younger than --age or that a running process uses. "
        "Left-over files only take space: readers and listings ignore them. It names "
        "the commands that continue or remove what interrupted commands left.",
    .json = "found: keys of the left-over files. removed: the number of removed files.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-verify",
    .run = run,
};
