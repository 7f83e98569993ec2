/*
 * spec/spec.h - the description of a new array by options and a model, for create, import
 * and reencode.
 */
#ifndef CLI_SPEC_H
#define CLI_SPEC_H

#include "node/node.h"

/* Rows for a table of options; cli_spec_read() reads them. */
/* clang-format off */
#define CLI_SPEC_OPTIONS                                                                 \
    {"chunks", 'c', 0, "SHAPE", NULL,                                                    \
     "chunk lengths, as 100,100; irregular chunks as 2+3*4,10: in the first dimension "  \
     "2, then four times 3"},                                                            \
    {"shards", 's', 0, "SHAPE", NULL,                                                    \
     "shard lengths, multiples of the chunk lengths; irregular shards as in --chunks; "  \
     "\"none\": no shards"},                                                             \
    {"codec", 'C', CLI_REPEAT, "CODEC", NULL,                                            \
     "the next codec: NAME, NAME:LEVEL, NAME:KEY=VALUE,... or JSON; \"none\": "          \
     "uncompressed"},                                                                    \
    {"index-codec", 0, CLI_REPEAT, "CODEC", NULL,                                        \
     "codecs of shard indexes, instead of bytes and crc32c"},                            \
    {"checksum", 0, 0, NULL, NULL,                                                       \
     "append crc32c to the codecs of each chunk, which detects changed bytes"},          \
    {"index-at-start", 0, 0, NULL, NULL, "shard indexes before the chunks"},             \
    {"fill", 0, 0, "JSON", NULL, "fill value, as the data type spells it"},              \
    {"dims", 0, 0, "NAMES", NULL,                                                        \
     "dimension names, as time,y,x; an empty one has no name"},                          \
    {"attributes", 'a', 0, "JSON", NULL, "attributes, a JSON object"},                   \
    {"zarr-format", 0, 0, "N", "2|3", "Zarr format of the result"},                      \
    {"key-encoding", 0, 0, "NAME", NULL,                                                 \
     "v3: encoding of chunk keys: default, v2 or another of zarrc list key-encodings; "  \
     "also NAME:KEY=VALUE,... or JSON"},                                                 \
    {"separator", 0, 0, "CHAR", "/|.", "separator in chunk keys"},                       \
    {"order", 0, 0, "ORDER", "C|F", "order of the elements inside chunks"}

/* For commands with --like. */
#define CLI_KEEP_FILL_OPTION                                                             \
    {"keep-fill", 0, 0, NULL, NULL,                                                      \
     "with --like and --zarr-format: take fill value and attribute _FillValue as they "  \
     "are, even if the missing value changes"}
/* clang-format on */

/* A zarr_array_spec with the data that it points to. Zero it before use. */
struct cli_spec {
    zarr_array_spec spec;
    uint64_t shape[ZARR_MAX_RANK], chunks[ZARR_MAX_RANK], shards[ZARR_MAX_RANK];
    const char *names[ZARR_MAX_RANK];
    char *text[5]; /* owned, behind pointers of spec: codecs, names, grid, key encoding */
    size_t n_texts;
};
/* Takes everything from a model, which must stay open until the new array is created. */
void cli_spec_like(struct cli_spec *spec, zarr_array *model);
/* Applies the options. Call it after cli_spec_like(). */
int cli_spec_read(struct cli *cli, struct cli_spec *spec);
void cli_spec_free(struct cli_spec *spec);
/* Appends "2+3*4,10" as the JSON of a rectilinear grid. Returns false if text has no
 * lists of chunk lengths. The caller frees *out. */
bool cli_edges_parse(const char *text, struct cli_string *out, int32_t *ndim);

/* ---- for spec.c and codecs.c ---- */

/* Takes a text that a pointer of spec needs. Returns it. */
const char *cli_spec_keep(struct cli_spec *s, char *text);
/* The values of an option (--codec, --index-codec) as JSON; kept by the spec. */
int cli_spec_codecs(struct cli *cli, const char *option, bool v2, struct cli_spec *s,
                    const char **out);
/* Reads --key-encoding: a name, NAME:KEY=VALUE,... or JSON. */
int cli_spec_keys(struct cli *cli, struct cli_spec *s);

#endif
