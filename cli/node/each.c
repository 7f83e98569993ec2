/*
 * node/each.c - commands on several nodes. A shell expands an asterisk below x.zarr to
 * nodes and to files of the group, such as zarr.json. These files are skipped.
 */
#include "node/work.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *cli_node_above(const struct cli_node *node)
{
    char *file = cli_path_join(cli_local_root(node), node->path);
    char *path = cli_strdup(node->path), *shown = NULL;
    uint32_t kind = ZARR_NODE_NONE;
    int32_t format = 0;
    struct stat st;
    const bool exists = stat(file, &st) == 0;
    const bool is_file = exists && S_ISREG(st.st_mode);

    while (exists && *path && kind == ZARR_NODE_NONE) {
        char *slash = strrchr(path, '/');

        *(slash ? slash : path) = '\0';
        if (zarr_node_probe(node->store, path, &kind, &format, NULL, NULL) != ZARR_OK)
            kind = ZARR_NODE_NONE;
    }
    if (kind == ZARR_NODE_ARRAY || (kind == ZARR_NODE_GROUP && is_file))
        shown = *path ? cli_format("%s:/%s", cli_local_root(node), path)
                      : cli_strdup(cli_local_root(node));
    free(path);
    free(file);
    return shown;
}

static bool has_node(const struct cli_node *at)
{
    uint32_t kind = ZARR_NODE_NONE;
    int32_t format = 0;
    const zarr_status st =
        zarr_node_probe(at->store, at->path, &kind, &format, NULL, NULL);

    return format != 0 || (st == ZARR_OK && kind != ZARR_NODE_NONE);
}

/* Whether the operand is a part of a node. Whatever else is wrong with it, fn reports. */
static bool skip(struct cli *cli, const char *text)
{
    struct cli_node node = {0};
    zarr_location *at = NULL;
    char *above = NULL;
    zarr_error err = {0};

    if (zarr_location_parse(&at, cli->ctx, text, NULL) == ZARR_OK && at->is_local &&
        *at->path && !at->selection &&
        cli_store_open(cli, &node.store, at->url, ZARR_STORE_READ_ONLY, &err) ==
            ZARR_OK) {
        node.path = cli_strdup(at->path);
        above = has_node(&node) ? NULL : cli_node_above(&node);
    }
    if (above)
        cli_say(cli, "%s is part of %s, not a node: skipped", text, above);
    zarr_location_free(at);
    cli_node_close(&node);
    free(above);
    return above != NULL;
}

int cli_each_node(struct cli *cli, bool blank_lines,
                  int (*fn)(struct cli *cli, const char *operand))
{
    const bool list = cli->n_args > 1;
    int rc = CLI_OK, n = 0;

    if (list && cli->json)
        cli_json_array(cli_json(cli));
    for (int i = 0; i < cli->n_args && !cli_is_cancelled() && !cli->out_failed; i++) {
        int one = CLI_OK;

        if (list && skip(cli, cli->args[i]))
            continue;
        if (blank_lines && n > 0 && !cli->json)
            cli_printf(cli, "\n");
        n++;
        one = fn(cli, cli->args[i]);
        rc = rc ? rc : one;
        if (list && cli->json) /* a command that failed may have left some open */
            cli_json_end_to(cli_json(cli), 1);
    }
    if (list && cli->json)
        cli_json_end(cli_json(cli));
    if (n == 0 && !cli_is_cancelled() && !cli->out_failed)
        rc = cli_error(cli, CLI_NOT_FOUND, NULL, "no operand is an array or a group");
    return rc ? rc : cli_is_cancelled() ? CLI_INTERRUPTED : CLI_OK;
}
