/*
 * frame/frame_int.h - what the files of the frame (main, options, help, docs, messages)
 * share and commands have no use for.
 */
#ifndef CLI_FRAME_INT_H
#define CLI_FRAME_INT_H

#include "frame/docs.h"
#include "frame/frame.h"
#include "frame/options.h"

/* Options that every command has. */
extern const struct cli_option cli_common_options[];
/* "0  success" ...: rows "code\0text" of the exit codes, for help and man pages. */
struct cli_exit_row {
    const char *code, *text;
};
extern const struct cli_exit_row cli_exit_rows[];

/* ---- options.c ---- */

/* Reads argv[1..] into cli->values; finds cli->command on the way. */
int cli_options_parse(struct cli *cli, int argc, char **argv);
void cli_options_free(struct cli *cli);
/* Reads the common options into cli; before that, messages are plain. */
int cli_options_common(struct cli *cli);
const struct cli_option *cli_option_find(const struct cli_command *command,
                                         const char *name, size_t bytes);

/* ---- message.c ---- */

/* For zarr_context_options.log. */
void cli_log(void *user, uint32_t level, const char *text);

/* ---- json_out.c ---- */

/* A writer into text, all on one line; cli_json_done() frees it and ends the text. */
struct cli_json *cli_json_start(struct cli *cli, struct cli_string *out, bool one_line);
int cli_json_done(struct cli_json *j);

/* ---- out.c ---- */

/* Ends stdout: the exit code when something could not be written. */
int cli_out_finish(struct cli *cli);

#endif
