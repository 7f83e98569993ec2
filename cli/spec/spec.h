/*
 * spec/spec.h - what a new array shall be, from options and a model: shared by create,
 * import and reencode.
 */
#ifndef CLI_SPEC_H
#define CLI_SPEC_H

#include "node/node.h"

/* Rows for a table of options; cli_spec_read() reads them. */
#define CLI_SPEC_OPTIONS                                                                 \
    {"chunks",                                                                           \
     'c',                                                                                \
     0,                                                                                  \
     "SHAPE",                                                                            \
     NULL,                                                                               \
     "chunk lengths, as 100,100; with shards those of the inner chunks; edges that "     \
     "differ as 2+3x4,10: 2, then 3 four times, along the first dimension"},             \
        {"shards",                                                                       \
         's',                                                                            \
         0,                                                                              \
         "SHAPE",                                                                        \
         NULL,                                                                           \
         "shard lengths or edges, multiples of the chunks; \"none\" for no "             \
         "shards"},                                                                      \
        {"codec",                                                                        \
         'C',                                                                            \
         CLI_REPEAT,                                                                     \
         "CODEC",                                                                        \
         NULL,                                                                           \
         "a codec, in order; NAME, NAME:LEVEL, NAME:KEY=VALUE,... or JSON; \"none\" "    \
         "for "                                                                          \
         "uncompressed"},                                                                \
        {"index-codec", 0,    CLI_REPEAT,                                                \
         "CODEC",       NULL, "codecs of shard indexes, instead of bytes and crc32c"},   \
        {"index-at-start", 0, 0, NULL, NULL, "shard indexes in front of the chunks"},    \
        {"fill", 0, 0, "JSON", NULL, "fill value, as the data type spells it"},          \
        {"dims",  0,    0,                                                               \
         "NAMES", NULL, "dimension names, as time,y,x; an empty one has no name"},       \
        {"attributes", 'a', 0, "JSON", NULL, "attributes, a JSON object"},               \
        {"format", 0, 0, "N", "2|3", "Zarr format of the new array"},                    \
        {"key-encoding",                                                                 \
         0,                                                                              \
         0,                                                                              \
         "NAME",                                                                         \
         NULL,                                                                           \
         "how chunk keys are made (v3): default, v2 or another, "                        \
         "see zarrc list key-encodings; also "                                           \
         "NAME:KEY=VALUE,... or JSON"},                                                  \
        {"separator", 0, 0, "CHAR", "/|.", "separator in chunk keys"},                   \
    {                                                                                    \
        "order", 0, 0, "ORDER", "C|F", "order of the elements inside chunks"             \
    }

/* A zarr_array_spec with what it points to. Zero it before. */
struct cli_spec {
    zarr_array_spec spec;
    uint64_t shape[ZARR_MAX_RANK], chunks[ZARR_MAX_RANK], shards[ZARR_MAX_RANK];
    const char *names[ZARR_MAX_RANK];
    char *text[5]; /* by CLI_TEXT_* of spec_int.h: owned texts behind the pointers of spec
                    */
};
/* Makes it like a model, which must be open until the new array has been created. */
void cli_spec_like(struct cli_spec *spec, zarr_array *model);
/* What the options say; call it after cli_spec_like(). */
int cli_spec_read(struct cli *cli, struct cli_spec *spec);
void cli_spec_free(struct cli_spec *spec);
/* "2+3x4,10" as the JSON of a rectilinear grid, appended; false: no edges that differ.
 * The caller frees *out. */
struct cli_string;
bool cli_edges_parse(const char *text, struct cli_string *out, int32_t *ndim);

#endif
