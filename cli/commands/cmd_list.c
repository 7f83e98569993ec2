/*
 * commands/cmd_list.c - zarrc list prints the library's registries, and zarrc version
 * the versions of the program and the library.
 */
#include "node/node.h"

#include <stdio.h>
#include <string.h>

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
    {"refused", "refused on purpose", ZARR_REGISTRY_REFUSED},
    {"plugins", "plug-ins", ZARR_REGISTRY_PLUGIN},
    {"devices", "devices", ZARR_REGISTRY_DEVICE},
};
enum {
    N_REGISTRIES = sizeof registries / sizeof registries[0]
};

static int item_text(void *user, const zarr_registry_item *item)
{
    struct cli *cli = user;
    bool core = strcmp(item->origin, "core") == 0;
    bool refused = item->registry == ZARR_REGISTRY_REFUSED;

    return cli_printf(cli, "  %-24s %s%s%s%s%s%s%s%s%s%s\n", item->name,
                      refused ? item->of : "", refused ? ": " : "", item->detail,
                      *item->aliases ? "; also " : "", item->aliases,
                      *item->capabilities ? "; can " : "", item->capabilities,
                      core ? "" : "  (", core ? "" : item->origin, core ? "" : ")");
}

/* Writes words that spaces separate as a list. */
static void words_json(struct cli_json *j, const char *words)
{
    char word[256];

    cli_json_list(j);
    while (*words) {
        size_t n = strcspn(words, " ");

        snprintf(word, sizeof word, "%.*s", (int)n, words);
        cli_json_text(j, word);
        words += n + (words[n] == ' ');
    }
    cli_json_end(j);
}

static int item_json(void *user, const zarr_registry_item *item)
{
    struct cli_json *j = user;

    cli_json_object(j);
    cli_json_text(cli_key(j, "name"), item->name);
    cli_json_text(cli_key(j, "origin"), item->origin);
    cli_json_text(cli_key(j, "detail"), item->detail);
    if (item->registry == ZARR_REGISTRY_DTYPE || item->registry == ZARR_REGISTRY_CODEC) {
        cli_json_text(cli_key(j, "v3"), *item->v3 ? item->v3 : NULL);
        cli_json_text(cli_key(j, "v2"), *item->v2 ? item->v2 : NULL);
        words_json(cli_key(j, "aliases"), item->aliases);
        cli_json_bool(cli_key(j, "experimental"), item->flags & ZARR_ITEM_EXPERIMENTAL);
    }
    if (*item->of)
        cli_json_text(cli_key(j, "of"), item->of);
    if (item->registry == ZARR_REGISTRY_DEVICE) {
        cli_json_u64(cli_key(j, "total_bytes"), item->total_bytes);
        cli_json_u64(cli_key(j, "free_bytes"), item->free_bytes);
    }
    if (*item->capabilities)
        words_json(cli_key(j, "capabilities"), item->capabilities);
    cli_json_end(j);
    return cli_is_cancelled();
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
                         "there is not a registry \"%s\"%s%s", only,
                         near ? "; did you mean " : "", near ? near : "");
    }
    if (cli->json)
        cli_json_object(cli_json(cli));
    for (size_t i = 0; i < N_REGISTRIES && !st; i++)
        if (!only || strcmp(only, registries[i].name) == 0)
            st = list_one(cli, &registries[i], &err);
    return st ? cli_fail(cli, st, &err, "cannot list the registries") : CLI_OK;
}

static const struct cli_example list_examples[] = {
    {"zarrc list", "Everything that this build supports."},
    {"zarrc list codecs", "Only the codecs."},
    {"zarrc list devices", "The devices whose memory --memory can name."},
    {"zarrc list --json | jq -r '.dtypes[].name'",
     "Names of data types, for other programs."},
    {NULL, NULL}};

const struct cli_command cli_cmd_list = {
    .name = "list",
    .summary = "list codecs, data types, stores and the other registries",
    .operands = "[REGISTRY]",
    .max_args = 1,
    .about =
        "Lists the library's registries, or the one that is named: dtypes, codecs, "
        "implementations, grids, key-encodings, stores, memory, pipelines, refused, "
        "plugins and devices. refused has names that the library knows but refuses, and "
        "elements that a codec or data type refuses, with the reason. plugins has the "
        "loaded plug-ins. devices has each device of each kind of memory; its name is "
        "the operand of --memory. An entry that a plug-in added is marked with its "
        "origin.",
    .json =
        "A member for each registry: a list of objects with name, origin (core: the "
        "library itself) and detail. Data types and codecs: v3 and v2 (the name in that "
        "format, or null), aliases and experimental. Implementations: of (the codec) and "
        "capabilities. Devices: of (the memory backend), total_bytes and free_bytes, 0 "
        "if not known. Refused: of (the kind of name, or elements); detail is the "
        "reason.",
    .examples = list_examples,
    .see_also = "zarrc-version zarrc-explain",
    .run = run_list,
};

/* ---- version ---- */

static int version_json(struct cli *cli)
{
    struct cli_json *j = cli_json(cli);
    zarr_error err = {0};
    zarr_status st;

    cli_json_object(j);
    cli_json_text(cli_key(j, "program"), ZARR_VERSION_STRING);
    cli_json_text(cli_key(j, "library"), zarr_version());
    cli_json_u64(cli_key(j, "library_number"), zarr_version_number());
    cli_json_list(cli_key(j, "zarr_formats"));
    cli_json_u64(j, 2);
    cli_json_u64(j, 3);
    cli_json_end(j);
    cli_json_array(cli_key(j, "codecs"));
    st = zarr_context_list(cli->ctx, ZARR_REGISTRY_CODEC_IMPL, item_json, j, &err);
    return st ? cli_fail(cli, st, &err, "cannot list the codecs") : CLI_OK;
}

static int run_version(struct cli *cli)
{
    return cli->json ? version_json(cli)
                     : cli_printf(cli,
                                  "zarrc %s (library %s)\n"
                                  "zarrc list shows what this build supports.\n",
                                  ZARR_VERSION_STRING, zarr_version());
}

static const struct cli_example version_examples[] = {
    {"zarrc version", "The versions of the program and of the library that it uses."},
    {"zarrc version --json",
     "The same for other programs, with the codecs of this build."},
    {NULL, NULL}};

const struct cli_command cli_cmd_version = {
    .name = "version",
    .summary = "show the versions of the program and the library",
    .operands = "",
    .about = "Shows the version of the program, and the version of the library that it "
             "uses.",
    .json = "program, library: versions as text. library_number: major * 1000000 + minor "
            "* 1000 + patch. zarr_formats: list of numbers. codecs: list of objects with "
            "the members that zarrc list has for implementations, one for each "
            "implementation of a codec; detail is its description with its priority and, "
            "where it is a library, the version of that.",
    .examples = version_examples,
    .see_also = "zarrc-list",
    .run = run_version,
};
