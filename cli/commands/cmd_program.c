/*
 * commands/cmd_program.c - commands about the program itself: help and completion.
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
    .about =
        "Shows the list of commands, the same help as zarrc COMMAND --help, or the "
        "options that all commands have. The man pages have the same texts and more.",
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
