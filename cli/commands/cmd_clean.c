/*
 * commands/cmd_clean.c - zarrc clean: removes temporary and lock files that killed
 * writers left, and clears what killed resizes and appends left outside of the shapes of
 * arrays. The store decides which files are too young or still in use.
 */
#include "node/work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"dry-run", 'n', 0, NULL, NULL, "list what would be removed, change nothing"},
    {"age", 0, 0, "SECONDS", NULL, "keep files that are younger (default: 3600)"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc clean -n x.zarr", "List what the command without -n removes."},
    {"zarrc clean --age=0 x.zarr", "Remove all of them now, except files in use."},
    {NULL, NULL}};

struct debris {
    struct cli *cli;
    uint64_t age, n_found, n_young;
};

static int on_debris(void *user, const zarr_store_item *item)
{
    struct debris *d = user;
    struct cli *cli = d->cli;

    if (cli_flag(cli, "dry-run") && item->age_s < d->age) {
        d->n_young++;
        return cli_is_cancelled();
    }
    d->n_found++;
    if (cli->json)
        cli_json_text(cli_json(cli), item->key);
    else if (cli_flag(cli, "dry-run") && cli_line(cli, "%s\n", item->key))
        return 1;
    return cli_is_cancelled();
}

static void warn_interrupted(void *user, const char *key, const char *command,
                             const char *hint)
{
    cli_warn(user, "%s: an interrupted %s, which clean does not remove. %s", key, command,
             hint);
}

static void without_document(void *user, const struct cli_rest *rest)
{
    if (rest->read_error)
        cli_warn(user, "%s", rest->read_error->message);
    else
        cli_warn(user, "%s: %s. %s", rest->path,
                 rest->is_group
                     ? "there are nodes or chunks below it, but it has no metadata"
                     : "there are chunks, but no array; clean does not remove them",
                 rest->hint);
}

/* ---- arrays ---- */

static int clean_array(struct cli *cli, const struct cli_node *node, const char *path)
{
    const bool look = cli_flag(cli, "dry-run");
    const zarr_shape_options o = {.struct_size = sizeof o,
                                  .flags = look ? ZARR_LEFTOVERS_LOOK : 0,
                                  .cancel = cli_cancel};
    char *whole = *node->path && *path ? cli_format("%s/%s", node->path, path)
                                       : cli_strdup(*path ? path : node->path);
    char *shown = cli_shown_below(node, path);
    zarr_array *array = NULL;
    zarr_error err = {0};
    int on_debris = 0, rc = CLI_OK;
    zarr_status st = zarr_array_open(&array, node->store, whole, NULL, &err);

    if (!st)
        st = zarr_array_clear_leftovers(array, &on_debris, &o, &err);
    if (st)
        rc = cli_fail(cli, st, &err, "cannot clean %s", shown);
    else if (on_debris && cli->json)
        cli_json_text(cli_json(cli), shown);
    else if (on_debris)
        cli_say(cli, "%s: %s what an interrupted resize or append left", shown,
                look ? "would clear" : "cleared");
    zarr_array_free(array);
    free(shown);
    free(whole);
    return rc;
}

/* Goes on after an array that fails, and returns its exit code. */
static int clean_arrays(struct cli *cli, const struct cli_node *node)
{
    struct cli_tree tree = {0};
    int rc = cli_tree_list(cli, node, &tree);

    if (cli->json)
        cli_json_array(cli_key(cli_json(cli), "arrays"));
    for (size_t i = 0; i < tree.n_items && !cli_is_cancelled(); i++) {
        int one = CLI_OK;

        if (tree.items[i].kind == ZARR_NODE_ARRAY)
            one = clean_array(cli, node, tree.items[i].path);
        rc = rc ? rc : one;
    }
    if (cli->json)
        cli_json_end(cli_json(cli));
    cli_tree_free(&tree);
    return rc;
}

/* ---- what other commands mend ---- */

/* at: where the array should have come to. */
static void tell_staged(struct cli *cli, const char *at, bool is_missing)
{
    char *staged = cli_format("%s" CLI_STAGING_SUFFIX, at);
    char *from = cli_shell_word(staged), *to = cli_shell_word(at);

    if (is_missing)
        cli_warn(
            cli,
            "%s: the new array of an interrupted import. zarrc mv %s %s completes it.",
            staged, from, to);
    else
        cli_warn(cli,
                 "%s: an interrupted import, which did not replace %s. zarrc rm -r %s "
                 "removes it.",
                 staged, at, from);
    free(to);
    free(from);
    free(staged);
}

static bool is_staged(const char *path)
{
    const size_t n = strlen(path), m = sizeof CLI_STAGING_SUFFIX - 1;

    return n > m && strcmp(path + n - m, CLI_STAGING_SUFFIX) == 0;
}

/* An array that has a job object still is told with that. */
static void look_at_staged(struct cli *cli, const struct cli_node *node, const char *path,
                           const char *shown)
{
    const size_t suffix = sizeof CLI_STAGING_SUFFIX - 1;
    struct cli_job job;
    int32_t format;

    if (!is_staged(path))
        return;
    if (cli_job_read(node->store, path, &job)) {
        cli_job_free(&job);
    } else {
        char *inside = cli_format("%.*s", (int)(strlen(path) - suffix), path);
        char *at = cli_format("%.*s", (int)(strlen(shown) - suffix), shown);

        cli_kind_at(node->store, inside, &format);
        tell_staged(cli, at, format == 0);
        free(at);
        free(inside);
    }
}

/* The new array of an import that replaces a whole store is beside the store. */
static void look_beside(struct cli *cli, const struct cli_node *node)
{
    char *real = *node->path ? NULL : realpath(cli_local_root(node), NULL);
    char *staged = real ? cli_format("%s" CLI_STAGING_SUFFIX, real) : NULL;

    if (staged && access(staged, F_OK) == 0)
        tell_staged(cli, real, false);
    free(staged);
    free(real);
}

struct stale {
    char *first;
    uint64_t n;
};

static int note_stale(void *user, const char *path, const char *what)
{
    struct stale *s = user;

    if (s->n++ == 0)
        s->first = cli_format("/%s %s", path, what);
    return cli_is_cancelled();
}

/* A command that was interrupted may leave a node unlisted. */
static void tell_consolidated(struct cli *cli, const struct cli_node *node,
                              const char *path, const char *shown)
{
    zarr_group_open_options opts = {.struct_size = sizeof opts};
    struct stale s = {NULL, 0};
    zarr_group *group = NULL;

    opts.consolidated = ZARR_CONSOLIDATED_MUST;
    if (zarr_group_open(&group, node->store, path, &opts, NULL) == ZARR_OK &&
        zarr_group_consolidated_check(group, note_stale, &s, NULL, NULL) == ZARR_OK &&
        s.n > 0) {
        char *word = cli_shell_word(shown);

        cli_warn(cli,
                 "%s: consolidated metadata is out of date for %" PRIu64
                 " nodes: %s. zarrc consolidate %s writes it anew.",
                 shown, s.n, s.first, word);
        free(word);
    }
    zarr_group_free(group);
    free(s.first);
}

static int tell_unfinished(struct cli *cli, const struct cli_node *node)
{
    struct cli_tree tree = {0};
    int rc = cli_tree_list(cli, node, &tree);

    for (size_t i = 0; i < tree.n_items && !cli_is_cancelled(); i++) {
        char *path = cli_path_join(node->path, tree.items[i].path);
        char *shown = cli_shown_below(node, tree.items[i].path);

        if (tree.items[i].kind == ZARR_NODE_GROUP)
            tell_consolidated(cli, node, path, shown);
        else
            look_at_staged(cli, node, path, shown);
        free(shown);
        free(path);
    }
    look_beside(cli, node);
    cli_tree_free(&tree);
    return rc;
}

static int clean(struct cli *cli, struct cli_node *node, uint64_t age)
{
    struct debris d = {.cli = cli, .age = age};
    uint64_t removed = 0;
    zarr_error err = {0};
    zarr_status st;
    int rc = CLI_OK;

    if (cli->json) {
        cli_json_object(cli_json(cli));
        cli_json_array(cli_key(cli_json(cli), "found"));
    }
    st = zarr_store_list(node->store, node->path, ZARR_LIST_DEBRIS, on_debris, &d,
                         cli_cancel, &err);
    if (cli->json)
        cli_json_end(cli_json(cli));
    if (!st && !cli_is_cancelled() && !cli_flag(cli, "dry-run"))
        st = zarr_store_clean(node->store, node->path, age, &removed, cli_cancel, &err);
    if (st || cli_is_cancelled())
        return cli_fail(cli, st, &err, "cannot clean %s", node->shown);
    rc = clean_arrays(cli, node);
    if (!rc && !cli_flag(cli, "dry-run"))
        rc = cli_node_flush(cli, node);
    if (cli->json)
        cli_json_u64(cli_key(cli_json(cli), "removed"), removed);
    if (cli_flag(cli, "dry-run"))
        cli_say(cli,
                "%" PRIu64 " left-over files, and %" PRIu64
                " younger than --age; files in use would be kept",
                d.n_found, d.n_young);
    else
        cli_say(cli, "removed %" PRIu64 " of %" PRIu64 " left-over files", removed,
                d.n_found);
    return rc;
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
        rc = cli_jobs_each(cli, &node, warn_interrupted, cli);
    if (!rc)
        rc = cli_rests_each(cli, &node, without_document, cli);
    if (!rc)
        rc = tell_unfinished(cli, &node);
    cli_node_close(&node);
    return rc;
}

const struct cli_command cli_cmd_clean = {
    .name = "clean",
    .summary = "remove what killed writers left",
    .operands = "NODE",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Removes temporary and lock files below NODE that killed writers left. It keeps "
        "files that are younger than --age or that a running process uses. Left-over "
        "files only take space: readers and listings ignore them. It names the commands "
        "that continue or remove what interrupted commands left, and those for chunks or "
        "groups without their metadata, and for consolidated metadata that is out of "
        "date.\n\n"
        "If a resize or an append was killed, chunks or elements may be left outside of "
        "the shape of an array, and a record of it, .zarrc-leftovers. clean clears these "
        "chunks and elements, whatever --age says. What other programs or resize "
        "--keep-chunks left outside of a shape stays; resize to the same shape clears "
        "it.",
    .json =
        "found: keys of the left-over files; with --dry-run those that are old enough. "
        "arrays: arrays that were cleared, or "
        "would be. removed: the number of removed files.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-verify zarrc-resize",
    .run = run,
};
