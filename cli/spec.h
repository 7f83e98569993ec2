/*
 * spec.h - what spec.c and spec_v2.c share: a chain of codecs as format 2 says
 * it. Commands use cli_spec_*() of cli.h.
 */
#ifndef CLI_SPEC_H
#define CLI_SPEC_H

#include "cli.h"

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
