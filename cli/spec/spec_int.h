/*
 * spec/spec_int.h - what spec.c (options) and spec/codecs.c (--codec) share. Commands use
 * cli_spec_*() of spec.h.
 */
#ifndef CLI_SPEC_INT_H
#define CLI_SPEC_INT_H

#include "spec/spec.h"

/* Owned texts of a spec by what they are for. */
enum {
    CLI_TEXT_CODECS,
    CLI_TEXT_INDEX,
    CLI_TEXT_NAMES,
    CLI_TEXT_GRID,
    CLI_TEXT_KEYS,
    CLI_TEXT_N
};

/* Puts text, owned, into that place of the spec; returns it. */
const char *cli_spec_keep(struct cli_spec *s, int which, char *text);
/* The values of option (--codec, --index-codec) as JSON, into text `which`. */
int cli_spec_codecs(struct cli *cli, const char *option, int which, bool v2,
                    struct cli_spec *s);
/* --key-encoding: a name, NAME:KEY=VALUE,... or JSON. */
int cli_spec_keys(struct cli *cli, struct cli_spec *s);

#endif
