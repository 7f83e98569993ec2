/*
 * commands/cmd_rm.c - zarrc rm: deletes nodes without asking. Groups with nodes below
 * them require -r. Only keys of the store are deleted: the library never deletes anything
 * outside of the store's root, also not through links.
 */
#include "node/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"recursive", 'r', 0, NULL, NULL, "delete groups with everything below them"},
    {"force", 'f', 0, NULL, NULL,
     "ignore nodes that do not exist, and delete empty folders"},
    {"dry-run", 'n', 0, NULL, NULL, "list what would be done, change nothing"},
    CLI_CONSOLIDATED_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc rm x.zarr/temp", "Delete an array."},
    {"zarrc rm -r x.zarr/old", "Delete a group with everything below it."},
    {NULL, NULL}};

static int check_children(struct cli *cli, const struct cli_node *node)
{
    struct cli_tree tree = {0};
    bool below = false;
    int rc;

    if (node->kind == ZARR_NODE_ARRAY || cli_flag(cli, "recursive"))
        return CLI_OK;
    if (node->kind == ZARR_NODE_NONE) { /* broken: it may be a group */
        rc = cli_has_nodes_below(cli, node, &below);
        return rc || !below
                   ? rc
                   : cli_error(cli, CLI_USAGE,
                               "Nothing was deleted. -r deletes it with all nodes below.",
                               cli_node_is_missing(node)
                                   ? "%s is what an interrupted command left, and there "
                                     "are nodes below it"
                                   : "%s is broken, and there are nodes below it",
                               node->shown);
    }
    rc = cli_tree_list(cli, node, &tree);
    if (!rc && tree.n_items > 1)
        rc = cli_error(cli, CLI_USAGE,
                       "Nothing was deleted. -r deletes it with all nodes below.",
                       "%s is a group with %zu node%s below it", node->shown,
                       tree.n_items - 1, cli_plural(tree.n_items - 1));
    cli_tree_free(&tree);
    return rc;
}

/* Whether the node, or the root of its store, is a symlink: then only the link is
 * deleted, and no object. */
static bool is_link(const struct cli_node *node)
{
    char *path = cli_path_join(cli_local_root(node), node->path);
    struct stat st;
    bool link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);

    free(path);
    return link;
}

static void tell_progress(void *user, uint64_t objects)
{
    cli_progress_update(user, 0, objects);
}

/* The library deletes links inside of a store. */
static int delete_root_link(struct cli *cli, struct cli_node *node)
{
    if (unlink(cli_local_root(node)) != 0)
        return cli_errno(cli, errno, "cannot delete the link %s", node->shown);
    return cli_node_flush(cli, node);
}

static int delete_node(struct cli *cli, struct cli_node *node, uint64_t n_objects)
{
    zarr_delete_options opts = ZARR_DELETE_OPTIONS_INIT;
    struct cli_progress progress;
    zarr_error err = {0};
    zarr_status st;
    int rc;

    opts.flags = cli_flag(cli, "no-consolidate") ? 0u : ZARR_DELETE_CONSOLIDATED;
    opts.progress = tell_progress;
    opts.progress_user = &progress;
    opts.cancel = cli_cancel;
    cli_progress_begin(&progress, cli, "rm", 0, n_objects);
    node->began = true;
    st = zarr_node_delete_watched(node->store, node->path, &opts, &err);
    cli_progress_end(&progress, st == ZARR_OK);
    rc = st ? cli_fail(cli, st, &err, "cannot delete %s", node->shown) : CLI_OK;
    if (rc || *node->path)
        return cli_update_after(cli, node, true, rc);
    (void)rmdir(cli_local_root(node)); /* the store is empty now */
    return cli_node_flush(cli, node);
}

static void report(struct cli *cli, const struct cli_node *node,
                   const struct cli_objects *objects)
{
    bool dry = cli_flag(cli, "dry-run");

    if (cli->json) {
        struct cli_json *j = cli_json_node(cli, node->shown);

        cli_json_text(cli_key(j, "kind"), node->kind == ZARR_NODE_ARRAY   ? "array"
                                          : node->kind == ZARR_NODE_GROUP ? "group"
                                          : cli_node_is_missing(node)     ? "rest"
                                                                          : "broken");
        cli_json_u64(cli_key(j, "objects"), objects->n_objects);
        cli_json_bool(cli_key(j, "deleted"), !dry);
        cli_json_end(j);
    }
    cli_say(cli, "%s %s: %" PRIu64 " object%s", dry ? "would delete" : "deleted",
            node->shown, objects->n_objects, cli_plural(objects->n_objects));
}

/* Whether there is nothing at the location. A node of a local store is a folder. */
static bool is_missing(struct cli *cli, const char *text)
{
    zarr_location *p = NULL;
    const bool is_local =
        zarr_location_parse(&p, cli->ctx, text, NULL) == ZARR_OK && p->is_local;
    char *path = is_local ? cli_path_join(p->url, p->path) : NULL;
    const bool missing =
        path && access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);

    free(path);
    zarr_location_free(p);
    return missing;
}

/* --force takes a folder that is empty, too. */
static int open_one(struct cli *cli, const char *text, struct cli_node *node)
{
    const unsigned flags = CLI_OPEN_WRITE | CLI_OPEN_PROBE | CLI_OPEN_REST;
    const bool force = cli_flag(cli, "force");
    int rc = cli_node_open(cli, text, flags | (force ? CLI_OPEN_MISSING : 0u), node);

    if (!rc && force && cli_node_is_missing(node) && !cli_is_empty_folder(node))
        rc = cli_node_fail_missing(cli, flags, node);
    return rc;
}

static int delete_one(struct cli *cli, struct cli_node *node, uint64_t n_objects)
{
    if (!*node->path && is_link(node))
        return delete_root_link(cli, node);
    if (cli_node_is_missing(node) && cli_is_empty_folder(node))
        return cli_delete_folder(cli, node);
    return delete_node(cli, node, n_objects);
}

static int remove_one(struct cli *cli, const char *text)
{
    struct cli_objects objects = {0};
    struct cli_node node = {0};
    int rc;

    if (cli_flag(cli, "force") && is_missing(cli, text))
        return CLI_OK;
    rc = open_one(cli, text, &node);
    if (!rc && !is_link(&node))
        rc = check_children(cli, &node);
    if (!rc && !is_link(&node))
        rc = cli_objects_count(cli, &node, ZARR_LIST_UNLINKED, false, &objects);
    if (!rc && !cli_flag(cli, "dry-run"))
        rc = delete_one(cli, &node, objects.n_objects);
    if (!rc)
        report(cli, &node, &objects);
    cli_node_close(&node);
    return rc;
}

static int run(struct cli *cli)
{
    int rc = CLI_OK;

    if (cli->json)
        cli_json_array(cli_json(cli));
    for (int i = 0; i < cli->n_args && !cli_is_cancelled(); i++) {
        int one = remove_one(cli, cli->args[i]);

        rc = rc ? rc : one;
    }
    if (cli->json)
        cli_json_end(cli_json(cli));
    return rc ? rc : cli_is_cancelled() ? CLI_INTERRUPTED : CLI_OK;
}

const struct cli_command cli_cmd_rm = {
    .name = "rm",
    .summary = "delete nodes",
    .operands = "NODE...",
    .min_args = 1,
    .max_args = -1,
    .about =
        "Deletes arrays and empty groups without asking; with -r also groups with "
        "everything below them. Nodes with broken metadata, and what an interrupted "
        "command left, are deleted as well. If a node or the folder of a store is a "
        "symlink, only the link is deleted. Nothing outside the store is deleted, and "
        "links that lead outside are not followed.",
    .json = "An array with an object for each NODE: node, kind (array, group, broken, or "
            "rest of an interrupted command), objects, deleted.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-mv zarrc-clean",
    .run = run,
};
