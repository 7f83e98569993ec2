/*
 * frame/frame_int.h - functions that only the files of frame/ share.
 */
#ifndef CLI_FRAME_INT_H
#define CLI_FRAME_INT_H

#include "frame/frame.h"

/* Options that every command has. */
extern const struct cli_option cli_common_options[];
/* The exit codes with their meaning, for help and man pages; a NULL code ends the
 * table. */
struct cli_exit_row {
    const char *code, *text;
};
extern const struct cli_exit_row cli_exit_rows[];

/* ---- options.c ---- */

/* Reads argv[1..] into cli->values, cli->args and cli->command. */
int cli_options_parse(struct cli *cli, int argc, char **argv);
void cli_options_free(struct cli *cli);
/* Reads the common options into cli. Messages have no colour before this call. */
int cli_options_common(struct cli *cli);
/* An option of the command or a common option by its name (bytes long), or by its letter
 * if name is NULL; NULL: there is none. */
const struct cli_option *cli_option_find(const struct cli_command *command, char letter,
                                         const char *name, size_t bytes);

/* ---- message.c ---- */

/* For zarr_context_options.log. */
void cli_log(void *user, uint32_t level, const char *text);

/* ---- suggest.c ---- */

/* If a message ends with an unknown data type, codec or key encoding that the command
 * line has: a hint with the most similar one, valid until the next call; else NULL. */
const char *cli_nearest_name(const struct cli *cli, const char *message);

/* ---- out.c ---- */

/* Appends text for stdout or stderr (fd) with its control characters escaped: names from
 * a store must not send any to the terminal. line_ends: also those. */
void cli_add_escaped(struct cli_string *out, const char *text, size_t bytes, int fd,
                     bool line_ends);

/* Flushes and closes stdout. Returns CLI_IO if anything could not be written. */
int cli_out_finish(struct cli *cli);

#endif
