/*
 * cmd_explain.c - zarrc explain and zarrc list: what the library would do, and
 * what it is made of. Both pass on what the library says of itself.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static int explain(struct cli *cli, const struct cli_node *node,
                   const zarr_selection *selection)
{
    const uint32_t what =
        (cli_flag(cli, "write") ? ZARR_EXPLAIN_WRITE : ZARR_EXPLAIN_READ) |
        (cli->json ? ZARR_EXPLAIN_JSON : 0);
    zarr_error err = {0};
    size_t n = 0;
    zarr_status st;
    char *text = NULL;
    int rc = CLI_OK;

    st = zarr_array_explain(node->array, what, selection, NULL, NULL, NULL, 0, &n, &err);
    if (!st) {
        text = cli_alloc(n + 1);
        st = zarr_array_explain(node->array, what, selection, NULL, NULL, text, n + 1, &n,
                                &err);
    }
    if (st)
        rc = cli_fail(cli, st, &err, "cannot explain %s", node->shown);
    else if (cli->json)
        cli_json_raw(cli_json(cli), text);
    else
        rc = cli_printf(cli, "%s%s", text,
                        *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
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
    {"write", 'w', 0, NULL, NULL, "a write instead of a read"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example explain_examples[] = {
    {"zarrc explain 'x.zarr/temp[0:10]'",
     "How many chunks a read touches, and who decodes them."},
    {"zarrc explain --write 'x.zarr/temp[5:15]'", "Which chunks are written in part."},
    {NULL, NULL}};

const struct cli_command cli_cmd_explain = {
    .name = "explain",
    .summary = "tell what a read or write of a region would do",
    .operands = "ARRAY[REGION]",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Tells which chunks a read or write would touch, which implementation does each "
        "codec, which copies there are, and in how many batches. Nothing is read but "
        "metadata.",
    .json = "The library's own document; see zarr_array_explain().",
    .options = explain_options,
    .examples = explain_examples,
    .see_also = "zarrc-info zarrc-list",
    .run = run_explain,
};

/* ---- list -----------------------------------------------------------------------------
 */

struct registry {
    const char *name, *title;
    uint32_t number;
};

static const struct registry registries[] = {
    {"dtypes", "data types", ZARR_REGISTRY_DTYPE},
    {"codecs", "codecs", ZARR_REGISTRY_CODEC},
    {"implementations", "implementations of codecs", ZARR_REGISTRY_CODEC_IMPL},
    {"grids", "chunk grids", ZARR_REGISTRY_GRID},
    {"key-encodings", "chunk key encodings", ZARR_REGISTRY_KEY_ENCODING},
    {"stores", "stores", ZARR_REGISTRY_STORE},
    {"memory", "memory", ZARR_REGISTRY_MEMORY},
    {"pipelines", "pipelines", ZARR_REGISTRY_PIPELINE},
};
enum {
    N_REGISTRIES = sizeof registries / sizeof registries[0]
};

static int item_text(void *user, const zarr_registry_item *item)
{
    struct cli *cli = user;
    bool core = strcmp(item->origin, "core") == 0;

    return cli_printf(cli, "  %-24s %s%s%s%s\n", item->name, item->detail,
                      core ? "" : "  (", core ? "" : item->origin, core ? "" : ")");
}

static int item_json(void *user, const zarr_registry_item *item)
{
    struct cli_json *j = user;

    cli_json_object(j);
    cli_json_text(cli_key(j, "name"), item->name);
    cli_json_text(cli_key(j, "origin"), item->origin);
    cli_json_text(cli_key(j, "detail"), item->detail);
    cli_json_end(j);
    return cli_cancel;
}

static zarr_status list_one(struct cli *cli, const struct registry *r, zarr_error *err)
{
    zarr_status st;

    if (cli->json) {
        cli_json_array(cli_key(cli_json(cli), r->name));
        st = zarr_context_list(cli->ctx, r->number, item_json, cli_json(cli), err);
        cli_json_end(cli_json(cli));
        return st;
    }
    cli_printf(cli, "%s\n", r->title);
    return zarr_context_list(cli->ctx, r->number, item_text, cli, err);
}

static int run_list(struct cli *cli)
{
    const char *only = cli->n_args ? cli->args[0] : NULL;
    const char *names[N_REGISTRIES + 1] = {NULL};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    bool found = !only;

    for (size_t i = 0; i < N_REGISTRIES; i++) {
        names[i] = registries[i].name;
        found = found || strcmp(only, registries[i].name) == 0;
    }
    if (!found) {
        const char *near = cli_nearest(only, names);

        return cli_error(cli, CLI_USAGE, "Try: zarrc list --help",
                         "no registry \"%s\"%s%s", only, near ? "; did you mean " : "",
                         near ? near : "");
    }
    if (cli->json)
        cli_json_object(cli_json(cli));
    for (size_t i = 0; i < N_REGISTRIES && !st; i++)
        if (!only || strcmp(only, registries[i].name) == 0)
            st = list_one(cli, &registries[i], &err);
    if (cli->json)
        cli_json_end(cli_json(cli));
    return st ? cli_fail(cli, st, &err, "cannot list what this build has") : CLI_OK;
}

static const struct cli_example list_examples[] = {
    {"zarrc list", "All that this build has."},
    {"zarrc list codecs", "Only the codecs."},
    {"zarrc list --json | jq -r '.dtypes[].name'",
     "Names of data types, for other programs."},
    {NULL, NULL}};

const struct cli_command cli_cmd_list = {
    .name = "list",
    .summary = "list codecs, data types, stores and what else this build has",
    .operands = "[REGISTRY]",
    .max_args = 1,
    .about = "Lists what the library's registries hold: dtypes, codecs, implementations, "
             "grids, "
             "key-encodings, stores, memory, pipelines; or one of them. What did not "
             "come with the "
             "library is marked with where it came from.",
    .json = "A member for each registry; each is a list of objects with name, origin "
            "(core: came "
            "with the library) and detail.",
    .examples = list_examples,
    .see_also = "zarrc-version zarrc-explain",
    .run = run_list,
};
