/*
 * commands/cmd_program.c - commands about the program itself: help, completion, version.
 */
#include "frame/frame.h"

#include <string.h>

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
    const char *name = cli->n_args > 0 ? cli->args[0] : NULL;
    const struct cli_command *c = name ? cli_command_find(name) : NULL;
    struct cli_string text = {0};

    if (name && !c && strcmp(name, "options") != 0)
        return cli_error(cli, CLI_USAGE, "zarrc help lists all commands.",
                         "unknown command \"%s\"", name);
    if (cli_flag(cli, "man") && c)
        cli_man_command(c, &text);
    else if (cli_flag(cli, "man"))
        cli_man_program(&text);
    else if (c)
        cli_help_command(c, &text);
    else if (name)
        cli_help_options(&text);
    else
        cli_help_program(&text);
    return put(cli, &text);
}

static const struct cli_option help_options[] = {
    {"man", 0, 0, NULL, NULL, "print the man page, which programs such as man -l format"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example help_examples[] = {
    {"zarrc help", "All commands."},
    {"zarrc help cat", "One command: its options and examples."},
    {"zarrc help options", "The options of all commands."},
    {"zarrc help --man cat | man -l -", "A man page that is not installed."},
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
    .options = help_options,
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
            "name, origin and detail, one for each implementation of a codec; detail is "
            "its description with its priority and, where it is "
            "a library, the version of that.",
    .examples = version_examples,
    .see_also = "zarrc-list",
    .run = run_version,
};
