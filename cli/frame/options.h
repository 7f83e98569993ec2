/*
 * frame/options.h - the options and operands of the command line.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "frame/frame.h"

struct cli_value {
    const struct cli_option *option;
    const char *text; /* NULL for a flag */
};
struct cli_values {
    struct cli_value *items;
    size_t n_items;
    const char **args; /* operands */
    int n_args;
};

#endif
