/*
 * spec/spec_int.h - what spec.c (options), spec/codecs.c (--codec), spec/like.c (a model)
 * and spec/v2.c (a chain of codecs as format 2 says it) share. Commands use cli_spec_*()
 * of spec.h.
 */
#ifndef CLI_SPEC_INT_H
#define CLI_SPEC_INT_H

#include "spec/spec.h"

/* Owned texts of a spec by what they are for. */
enum {
    CLI_TEXT_CODECS,
    CLI_TEXT_INDEX,
    CLI_TEXT_FILL,
    CLI_TEXT_ATTRS,
    CLI_TEXT_NAMES,
    CLI_TEXT_TYPE,
    CLI_TEXT_GRID,
    CLI_TEXT_KEYS,
    CLI_TEXT_WHOLE, /* a model's chain that has shards, as it is */
    CLI_TEXT_N
};

/* Puts text, owned, into that place of the spec; returns it. */
const char *cli_spec_keep(struct cli_spec *s, int which, char *text);
/* The values of option (--codec, --index-codec) as JSON, into text `which`. */
int cli_spec_codecs(struct cli *cli, const char *option, int which, bool v2,
                    struct cli_spec *s);
/* --key-encoding: a name, NAME:KEY=VALUE,... or JSON. */
int cli_spec_keys(struct cli *cli, struct cli_spec *s);

struct cli_v2_chain {
    char *json;        /* {"filters": ..., "compressor": ...}; owned by the caller */
    bool big, fortran; /* byte order of the data type, order of the elements */
    struct cli_string filters, last; /* while it is made */
    bool last_is_filter, bytes_seen;
};
/* Of numcodecs, and not to be the compressor where it is last. name: up to a colon. */
bool cli_v2_is_filter(const char *name);
/* chain: a JSON array of v3 codecs. */
int cli_spec_chain_to_v2(struct cli *cli, const char *chain, struct cli_v2_chain *out);

#endif
