/*
 * commands/cmd_program.c - commands about the program itself: help, completion, version,
 * and the hidden command that writes man pages and completions into a folder.
 */
#include "frame/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int put(struct cli *cli, struct cli_string *text)
{
    int rc = CLI_OK;

    if (cli->json) {
        struct cli_json *j = cli_json(cli);

        cli_json_object(j);
        cli_json_text(cli_key(j, "text"), text->text);
        cli_json_end(j);
    } else {
        rc = cli_out(cli, text->text, text->n_bytes);
    }
    cli_string_free(text);
    return rc;
}

/* ---- help ---- */

static int run_help(struct cli *cli)
{
    struct cli_string text = {0};
    const struct cli_command *c = NULL;

    if (cli->n_args == 0) {
        cli_help_program(&text);
        return put(cli, &text);
    }
    if (strcmp(cli->args[0], "options") == 0) {
        cli_help_options(&text);
        return put(cli, &text);
    }
    c = cli_command_find(cli->args[0]);
    if (!c)
        return cli_error(cli, CLI_USAGE, "zarrc help lists all commands.",
                         "unknown command \"%s\"", cli->args[0]);
    cli_help_command(c, &text);
    return put(cli, &text);
}

static const struct cli_example help_examples[] = {
    {"zarrc help", "All commands."},
    {"zarrc help cat", "One command: its options and examples."},
    {"zarrc help options", "The options of all commands."},
    {NULL, NULL}};

const struct cli_command cli_cmd_help = {
    .name = "help",
    .summary = "show help for zarrc, one command, or the options of all commands",
    .operands = "[COMMAND|options]",
    .max_args = 1,
    .flags = CLI_CMD_NO_CONTEXT,
    .about = "Shows the list of commands, the same help as zarrc COMMAND --help, or the "
             "options "
             "that all commands have. The man pages have the same texts and more.",
    .json = "An object with the member text.",
    .examples = help_examples,
    .run = run_help,
};

/* ---- completion ---- */

static int run_completion(struct cli *cli)
{
    struct cli_string text = {0};

    if (!cli_completion(cli->args[0], &text))
        return cli_error(cli, CLI_USAGE, NULL, "\"%s\" is not one of bash, zsh, fish",
                         cli->args[0]);
    return put(cli, &text);
}

static const struct cli_example completion_examples[] = {
    {"source <(zarrc completion bash)", "Completion in the current bash."},
    {"zarrc completion fish > ~/.config/fish/completions/zarrc.fish",
     "Permanent completion in fish."},
    {NULL, NULL}};

const struct cli_command cli_cmd_completion = {
    .name = "completion",
    .summary = "write a completion script for bash, zsh or fish",
    .operands = "SHELL",
    .min_args = 1,
    .max_args = 1,
    .flags = CLI_CMD_NO_CONTEXT,
    .about = "Writes the script to standard output. It completes all commands and "
             "options, and never runs zarrc.",
    .json = "An object with the member text.",
    .examples = completion_examples,
    .run = run_completion,
};

/* ---- version ---- */

struct counts {
    unsigned of[16];
};

static int count_item(void *user, const zarr_registry_item *item)
{
    struct counts *counts = user;

    if (item->registry < 16)
        counts->of[item->registry]++;
    return 0;
}

static int codec_json(void *user, const zarr_registry_item *item)
{
    struct cli_json *j = user;

    cli_json_object(j);
    cli_json_text(cli_key(j, "name"), item->name);
    cli_json_text(cli_key(j, "origin"), item->origin);
    cli_json_text(cli_key(j, "detail"), item->detail);
    cli_json_end(j);
    return 0;
}

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
    st = zarr_context_list(cli->ctx, ZARR_REGISTRY_CODEC_IMPL, codec_json, j, &err);
    cli_json_end(j);
    cli_json_end(j);
    return st ? cli_fail(cli, st, &err, "cannot list the codecs") : CLI_OK;
}

static int run_version(struct cli *cli)
{
    struct counts counts = {{0}};
    zarr_error err = {0};
    zarr_status st;

    if (cli->json)
        return version_json(cli);
    st = zarr_context_list(cli->ctx, 0, count_item, &counts, &err);
    if (st)
        return cli_fail(cli, st, &err, "cannot list the registries");
    return cli_printf(cli,
                      "zarrc %s (library %s)\n"
                      "%u data types, %u codecs with %u implementations, %u stores\n"
                      "zarrc list shows them.\n",
                      ZARR_VERSION_STRING, zarr_version(), counts.of[ZARR_REGISTRY_DTYPE],
                      counts.of[ZARR_REGISTRY_CODEC], counts.of[ZARR_REGISTRY_CODEC_IMPL],
                      counts.of[ZARR_REGISTRY_STORE]);
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
    .about = "Shows the version of the program, the version of the library that it uses, "
             "and the numbers of data types, codecs and stores of this build.",
    .json = "program, library: versions as text. library_number: major * 1000000 + minor "
            "* 1000 + patch. zarr_formats: list of numbers. codecs: list of objects with "
            "name, origin and detail, one for each implementation of a codec; detail is "
            "its description with its priority and, where it is "
            "a library, the version of that.",
    .examples = version_examples,
    .see_also = "zarrc-list",
    .run = run_version,
};

/* ---- generate ---- */

static int write_page(struct cli *cli, const char *folder, const char *name,
                      struct cli_string *text)
{
    char *path = cli_path_join(folder, name);
    struct cli_file file = {0};
    int rc = cli_file_create(cli, path, true, &file);

    if (!rc) {
        fwrite(text->text, 1, text->n_bytes, file.file);
        rc = cli_file_commit(cli, &file);
    }
    cli_file_close(&file);
    cli_string_free(text);
    free(path);
    return rc;
}

static int write_man(struct cli *cli, const char *folder)
{
    struct cli_string text = {0};
    int rc;

    cli_man_program(&text);
    rc = write_page(cli, folder, "zarrc.1", &text);
    for (size_t i = 0; cli_commands[i] && !rc; i++)
        if (!(cli_commands[i]->flags & CLI_CMD_HIDDEN)) {
            char name[64];

            snprintf(name, sizeof name, "zarrc-%s.1", cli_commands[i]->name);
            cli_man_command(cli_commands[i], &text);
            rc = write_page(cli, folder, name, &text);
        }
    return rc;
}

static int write_completions(struct cli *cli, const char *folder)
{
    static const char *const shells[][2] = {
        {"bash", "zarrc.bash"}, {"zsh", "_zarrc"}, {"fish", "zarrc.fish"}};
    int rc = CLI_OK;

    for (size_t i = 0; i < 3 && !rc; i++) {
        struct cli_string text = {0};

        cli_completion(shells[i][0], &text);
        rc = write_page(cli, folder, shells[i][1], &text);
    }
    return rc;
}

static int run_generate(struct cli *cli)
{
    if (mkdir(cli->args[1], 0777) != 0 && errno != EEXIST)
        return cli_errno(cli, errno, "cannot create %s", cli->args[1]);
    if (strcmp(cli->args[0], "man") == 0)
        return write_man(cli, cli->args[1]);
    if (strcmp(cli->args[0], "completions") == 0)
        return write_completions(cli, cli->args[1]);
    return cli_error(cli, CLI_USAGE, NULL, "\"%s\" is not one of man, completions",
                     cli->args[0]);
}

static const struct cli_example generate_examples[] = {
    {"zarrc generate man man", "Write all man pages into the folder man."}, {NULL, NULL}};

const struct cli_command cli_cmd_generate = {
    .name = "generate",
    .summary = "write man pages or completions into a folder",
    .operands = "man|completions FOLDER",
    .min_args = 2,
    .max_args = 2,
    .flags = CLI_CMD_HIDDEN | CLI_CMD_NO_CONTEXT,
    .about = "For the build and for packagers.",
    .examples = generate_examples,
    .run = run_generate,
};
