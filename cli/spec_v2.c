/*
 * spec_v2.c - a chain of v3 codecs as v2 says it: filters and one compressor,
 * with the byte order in the data type and a reversing transpose as order F.
 * For models of format 3 (or read through their v3 chain) whose copy shall be
 * format 2. What v2 cannot say is refused by name; everything else is the same
 * JSON with "id" for "name", which the library checks.
 */
#include "spec.h"

#include <stdlib.h>
#include <string.h>

static bool name_is(const char *name, const char *wanted)
{
    if (strncmp(name, "numcodecs.", 10) == 0)
        name += 10;
    return strcmp(name, wanted) == 0;
}

/* numcodecs numbers blosc's shuffles. */
static void add_member(struct cli_string *out, const char *key, const char *value,
                       size_t bytes)
{
    static const char *const shuffles[] = {"\"noshuffle\"", "\"shuffle\"",
                                           "\"bitshuffle\""};

    cli_string_printf(out, ", \"%s\": ", key);
    for (int i = 0; strcmp(key, "shuffle") == 0 && i < 3; i++)
        if (strlen(shuffles[i]) == bytes && strncmp(shuffles[i], value, bytes) == 0) {
            cli_string_printf(out, "%d", i);
            return;
        }
    cli_string_add(out, value, bytes);
}

static void add_v2(struct cli_string *out, const char *name, const char *conf)
{
    size_t n = 0;
    char *key = NULL;

    cli_string_printf(out, "{\"id\": \"%s\"",
                      strncmp(name, "numcodecs.", 10) ? name : name + 10);
    for (size_t i = 0; conf; i++) {
        const char *value = cli_json_member_at(conf, i, &key, &n);

        if (!value)
            break;
        if (!(name_is(name, "zstd") && strcmp(key, "checksum") == 0 &&
              strncmp(value, "false", n) == 0))
            add_member(out, key, value, n);
        free(key);
    }
    cli_string_add(out, "}", 1);
}

/* [n-1, ..., 0] */
static bool is_reversal(const char *conf)
{
    size_t n = 0, count = 0;
    const char *order = conf ? cli_json_member(conf, "order", &n) : NULL;
    uint64_t axis = 0;

    if (!order)
        return false;
    while (cli_json_item(order, count, &n))
        count++;
    for (size_t i = 0; i < count; i++) {
        const char *item = cli_json_item(order, i, &n);
        char *text = cli_format("%.*s", (int)n, item);
        bool ok = cli_parse_u64(text, &axis) && axis == count - 1 - i;

        free(text);
        if (!ok)
            return false;
    }
    return true;
}

static bool is_big(const char *conf)
{
    size_t n = 0;
    const char *endian = conf ? cli_json_member(conf, "endian", &n) : NULL;

    return endian && n == 5 && strncmp(endian, "\"big\"", 5) == 0;
}

static int add_one(struct cli *cli, const char *codec, const char *name,
                   struct cli_v2_chain *out)
{
    size_t n = 0;
    const char *conf = cli_json_member(codec, "configuration", &n);

    if (name_is(name, "bytes") || name_is(name, "endian")) {
        out->big = is_big(conf);
        return CLI_OK;
    }
    if (name_is(name, "transpose")) {
        out->fortran = is_reversal(conf);
        return out->fortran ? CLI_OK
                            : cli_error(cli, CLI_UNSUPPORTED, NULL,
                                        "format 2 has no transpose but that of order F");
    }
    if (name_is(name, "sharding_indexed"))
        return cli_error(cli, CLI_UNSUPPORTED, "--shards=none makes plain chunks.",
                         "format 2 has no shards");
    if (out->last.n_bytes) { /* the one before was no compressor then */
        cli_string_printf(&out->filters, "%s%s", out->filters.n_bytes ? ", " : "",
                          out->last.text);
        out->last.n_bytes = 0;
    }
    add_v2(&out->last, name, conf);
    out->last_is_filter =
        name_is(name, "shuffle") || name_is(name, "delta") || name_is(name, "crc32c");
    return CLI_OK;
}

int cli_spec_chain_to_v2(struct cli *cli, const char *chain, struct cli_v2_chain *out)
{
    size_t n = 0, m = 0;
    int rc = CLI_OK;

    *out = (struct cli_v2_chain){.big = false};
    for (size_t i = 0; !rc; i++) {
        const char *codec = cli_json_item(chain, i, &n);
        const char *text = codec ? cli_json_member(codec, "name", &m) : NULL;
        char *name = text    ? cli_json_unquote(text, m)
                     : codec ? cli_json_unquote(codec, n)
                             : NULL;

        if (!name)
            break;
        rc = add_one(cli, codec, name, out);
        free(name);
    }
    if (!rc && out->last_is_filter) {
        cli_string_printf(&out->filters, "%s%s", out->filters.n_bytes ? ", " : "",
                          out->last.text);
        out->last.n_bytes = 0;
    }
    if (!rc)
        out->json = cli_format(
            "{\"filters\": %s%s%s, \"compressor\": %s}", out->filters.n_bytes ? "[" : "",
            out->filters.n_bytes ? out->filters.text : "null",
            out->filters.n_bytes ? "]" : "", out->last.n_bytes ? out->last.text : "null");
    cli_string_free(&out->filters);
    cli_string_free(&out->last);
    return rc;
}
