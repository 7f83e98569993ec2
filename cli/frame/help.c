/*
 * frame/help.c - the help texts, made from the commands' tables: purpose, usage, options,
 * examples that can be copied. Man pages and completions are made from the same tables
 * (docs_man.c, docs_completion.c).
 */
#include "frame/frame_int.h"

#include <stdlib.h>
#include <string.h>

const struct cli_exit_row cli_exit_rows[] = {
    {"0", "success; diff found no difference, verify found no error"},
    {"1", "diff found a difference, or verify found an error"},
    {"2", "invalid options, arguments or requested metadata"},
    {"3", "not found, or reading or writing failed"},
    {"4", "stored data is corrupt or exceeds a limit"},
    {"5", "the target already exists"},
    {"6", "valid, but not supported by this build"},
    {"7",
     "another process is at work there, or the store did not answer in time: the same "
     "command may succeed later. After the codes 1 to 6 it would fail again"},
    {"8", "done, but --skip-damaged left out data that is damaged"},
    {"130", "interrupted"},
    {"141", "a reader of the output closed the pipe"},
    {NULL, NULL}};

enum {
    WIDTH = 80,
    OPTION_COLUMN = 26
};

/* Adds the words of text, with lines broken at WIDTH and indented by `indent`. column:
 * where the first word begins. */
static void add_words(struct cli_string *out, const char *text, size_t indent,
                      size_t column)
{
    while (*text) {
        size_t n = strcspn(text, " \n");

        if (column > indent && column + 1 + n > WIDTH) {
            cli_string_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            cli_string_add(out, " ", 1);
            column++;
        }
        cli_string_add(out, text, n);
        column += n;
        text += n;
        text += strspn(text, " \n");
    }
}

/* "(one|two|three)", on lines of its own. */
static void add_choices(const char *choices, struct cli_string *out)
{
    size_t column = WIDTH;

    for (const char *word = choices; *word;) {
        size_t n = strcspn(word, "|");

        n += word[n] == '|';
        if (column + n >= WIDTH) {
            column = OPTION_COLUMN + 1;
            cli_string_printf(out, "\n%*s%s", OPTION_COLUMN, "",
                              word == choices ? "(" : " ");
        }
        cli_string_add(out, word, n);
        column += n;
        word += n;
    }
    cli_string_add(out, ")", 1);
}

static void add_options(const struct cli_option *table, struct cli_string *out)
{
    for (; table && table->name; table++) {
        const char *repeat = table->flags & CLI_REPEAT ? "; may be repeated" : "";
        char *text = cli_format("%s%s", table->help, repeat);
        struct cli_string name = {0};
        size_t column;

        if (table->letter)
            cli_string_printf(&name, "  -%c, ", table->letter);
        cli_string_printf(&name, "%s--%s%s%s", table->letter ? "" : "      ", table->name,
                          table->value ? "=" : "", table->value ? table->value : "");
        cli_string_add(out, name.text, name.n_bytes);
        column = name.n_bytes;
        if (column + 2 > OPTION_COLUMN) {
            cli_string_add(out, "\n", 1);
            column = 0;
        }
        cli_string_printf(out, "%*s", (int)(OPTION_COLUMN - column), "");
        add_words(out, text, OPTION_COLUMN, OPTION_COLUMN);
        if (table->choices)
            add_choices(table->choices, out);
        cli_string_add(out, "\n", 1);
        cli_string_free(&name);
        free(text);
    }
}

static void add_paragraphs(const char *text, struct cli_string *out)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) : strlen(text);
        char *paragraph = cli_format("%.*s", (int)n, text);

        add_words(out, paragraph, 0, 0);
        cli_string_add(out, "\n\n", 2);
        free(paragraph);
        text += n + (end ? 2 : 0);
    }
}

char *cli_help_usage(const struct cli_command *command)
{
    return cli_format("usage: zarrc %s [OPTION]...%s%s", command->name,
                      *command->operands ? " " : "", command->operands);
}

void cli_help_command(const struct cli_command *command, struct cli_string *out)
{
    char *usage = cli_help_usage(command);

    cli_string_printf(out, "zarrc %s - %s\n\n%s\n\n", command->name, command->summary,
                      usage);
    free(usage);
    add_paragraphs(command->about, out);
    if (command->options && command->options->name) {
        cli_string_printf(out, "options:\n");
        add_options(command->options, out);
        cli_string_add(out, "\n", 1);
    }
    cli_string_printf(out, "zarrc help options lists the options of all commands.\n"
                           "\nexamples:\n");
    for (const struct cli_example *e = command->examples; e && e->line; e++) {
        cli_string_printf(out, "  %s\n      ", e->line);
        add_words(out, e->what, 6, 6);
        cli_string_add(out, "\n", 1);
    }
    cli_string_printf(out, "\nMore: man zarrc-%s\n", command->name);
}

void cli_help_program(struct cli_string *out)
{
    cli_string_printf(out,
                      "zarrc - Zarr arrays on the command line, formats 2 and 3\n\n"
                      "usage: zarrc COMMAND [OPTION]... [OPERAND]...\n\ncommands:\n");
    for (size_t i = 0; cli_commands[i]; i++)
        cli_string_printf(out, "  %-12s %s\n", cli_commands[i]->name,
                          cli_commands[i]->summary);
    cli_string_printf(
        out,
        "\nlocations:\n"
        "  x.zarr/group/array   a node; the root of the store is found automatically\n"
        "  x.zarr:/array        a node; the root of the store is x.zarr\n"
        "  x.zarr/a[0:10,::2]   a region of an array, as in Python (quote it for "
        "the shell)\n"
        "  x.zarr/a[lat@35:70]  a region by name: values after @, indices after =\n"
        "\nexamples:\n"
        "  zarrc ls -R x.zarr\n"
        "  zarrc info x.zarr/temp\n"
        "  zarrc cat 'x.zarr/temp[0,:5,:5]'\n"
        "  zarrc import data.npy x.zarr/data --chunks 100,100\n"
        "\nexit codes:\n");
    for (const struct cli_exit_row *r = cli_exit_rows; r->code; r++)
        cli_string_printf(out, "  %-4s %s\n", r->code, r->text);
    cli_string_printf(out, "\nzarrc COMMAND --help shows the help of one command, and "
                           "zarrc help options\nthe options of all commands.\n");
}

void cli_help_options(struct cli_string *out)
{
    cli_string_printf(out, "zarrc help options - the options of all commands\n\n"
                           "They may stand before or after the command.\n\noptions:\n");
    add_options(cli_common_options, out);
}
