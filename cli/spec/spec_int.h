/*
 * spec/spec_int.h - what spec.c (options) and spec/codecs.c (--codec) share. Commands use
 * cli_spec_*() of spec.h.
 */
#ifndef CLI_SPEC_INT_H
#define CLI_SPEC_INT_H

#include "spec/spec.h"

/* The owned texts of a spec. */
enum {
    CLI_TEXT_CODECS,
    CLI_TEXT_INDEX,
    CLI_TEXT_NAMES,
    CLI_TEXT_GRID,
    CLI_TEXT_KEYS,
    CLI_TEXT_N
};

/* Makes text number `which` of the spec, which takes ownership. Returns text. */
const char *cli_spec_keep(struct cli_spec *s, int which, char *text);
/* Stores the values of an option (--codec, --index-codec) as JSON in text `which`. */
int cli_spec_codecs(struct cli *cli, const char *option, int which, bool v2,
                    struct cli_spec *s);
/* Reads --key-encoding: a name, NAME:KEY=VALUE,... or JSON. */
int cli_spec_keys(struct cli *cli, struct cli_spec *s);

#endif
