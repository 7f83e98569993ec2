/*
 * frame/docs.h - help, man pages and completions, made from the commands' tables.
 */
#ifndef CLI_DOCS_H
#define CLI_DOCS_H

#include "frame/frame.h"

/* ---- help.c ---- */

void cli_help_program(struct cli_string *out);
void cli_help_options(struct cli_string *out); /* those of all commands */
void cli_help_command(const struct cli_command *command, struct cli_string *out);
/* "-c, --chunks=SHAPE" */
void cli_help_option_name(const struct cli_option *option, struct cli_string *out);
/* "zarrc info [OPTION]... NODE" */
void cli_help_usage(const struct cli_command *command, struct cli_string *out);

/* ---- docs_man.c, docs_completion.c ---- */

void cli_man_program(struct cli_string *out);
void cli_man_command(const struct cli_command *command, struct cli_string *out);
/* shell: bash, zsh or fish; returns false for any other. */
bool cli_completion(const char *shell, struct cli_string *out);

#endif
