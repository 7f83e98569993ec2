/*
 * frame/commands.c - the table of subcommands, in the order of the help. A new command
 * is a file commands/cmd_<name>.c, a name in COMMANDS, and a line in CMakeLists.txt.
 */
#include "frame/frame_int.h"

#include <string.h>

/* clang-format off */
#define COMMANDS(X) \
    X(info) X(ls) X(tree) X(cat) X(attrs) X(create) X(import) X(export) X(explain) X(cp) \
    X(mv) X(rm) X(resize) X(append) X(reencode) X(migrate) X(verify) X(diff) X(clean) \
    X(repack) X(consolidate) X(plot) X(summary) X(list) X(calibrate) X(version) X(help) X(completion) X(generate)
/* clang-format on */

#define DECLARE(name) extern const struct cli_command cli_cmd_##name;
COMMANDS(DECLARE)

#define ROW(name) &cli_cmd_##name,
const struct cli_command *const cli_commands[] = {COMMANDS(ROW) NULL};

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; cli_commands[i]; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    return NULL;
}
