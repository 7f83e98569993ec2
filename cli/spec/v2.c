/*
 * spec/v2.c - a chain of v3 codecs as v2 says it: filters and one compressor,
 * with the byte order in the data type and a reversing transpose as order F.
 * For models of format 3 (or read through their v3 chain) whose copy shall be
 * format 2. What v2 cannot say is refused by name; everything else is the same
 * JSON with "id" for "name", which the library checks. A codec on arrays works on
 * the stored bytes in v2: the types it names take the byte order of the array's.
 */
#include "spec/spec_int.h"

#include <stdlib.h>
#include <string.h>

static bool name_is(const char *name, const char *wanted)
{
    if (strncmp(name, "numcodecs.", 10) == 0)
        name += 10;
    return strcmp(name, wanted) == 0;
}

bool cli_v2_is_filter(const char *name)
{
    static const char *const names[] = {
        "shuffle",  "delta",      "fixedscaleoffset", "quantize",        "astype",
        "bitround", "packbits",   "categorize",       "vlen-utf8",       "vlen-bytes",
        "json2",    "vlen-array", "msgpack2",         "base64",          "crc32",
        "crc32c",   "adler32",    "fletcher32",       "jenkins_lookup3", NULL};
    const size_t bytes = strcspn(name, ":");

    for (int i = 0; names[i]; i++)
        if (strlen(names[i]) == bytes && strncmp(names[i], name, bytes) == 0)
            return true;
    return false;
}

/* The v2 string of a type that a filter names, in the chain's byte order; NULL: no such
 * member, or none that has an order. Owned. */
static char *ordered_type(struct cli *cli, const struct cli_v2_chain *out,
                          const char *key, const char *value, size_t bytes)
{
    static const char *const keys[] = {"dtype", "astype", "encode_dtype", "decode_dtype"};
    const zarr_dtype *type = NULL;
    const char *v2 = NULL;
    bool wanted = false;

    for (int i = 0; i < 4; i++)
        wanted = wanted || strcmp(key, keys[i]) == 0;
    if (wanted && !out->bytes_seen) {
        char *name = cli_json_unquote(value, bytes);

        if (name && !zarr_dtype_from_numpy(cli->ctx, name, &type, NULL))
            v2 = zarr_dtype_v2(type);
        free(name);
    }
    return v2 && *v2 == '<' ? cli_format("\"%c%s\"", out->big ? '>' : '<', v2 + 1) : NULL;
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

static void add_v2(struct cli *cli, struct cli_v2_chain *chain, const char *name,
                   const char *conf)
{
    struct cli_string *out = &chain->last;
    size_t n = 0;
    char *key = NULL;

    cli_string_printf(out, "{\"id\": \"%s\"",
                      strncmp(name, "numcodecs.", 10) ? name : name + 10);
    for (size_t i = 0; conf; i++) {
        const char *value = cli_json_member_at(conf, i, &key, &n);
        char *type = value ? ordered_type(cli, chain, key, value, n) : NULL;

        if (!value)
            break;
        if (type)
            add_member(out, key, type, strlen(type));
        else if (!(name_is(name, "zstd") && strcmp(key, "checksum") == 0 &&
                   strncmp(value, "false", n) == 0))
            add_member(out, key, value, n);
        free(type);
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

/* The byte order of the chain's bytes. */
static bool chain_is_big(const char *chain)
{
    size_t n = 0, m = 0;

    for (size_t i = 0;; i++) {
        const char *codec = cli_json_item(chain, i, &n);
        const char *text = codec ? cli_json_member(codec, "name", &m) : NULL;
        char *name = text ? cli_json_unquote(text, m) : NULL;
        bool found = name && (name_is(name, "bytes") || name_is(name, "endian"));

        free(name);
        if (!codec)
            return false;
        if (found)
            return is_big(cli_json_member(codec, "configuration", &m));
    }
}

static int add_one(struct cli *cli, const char *codec, const char *name,
                   struct cli_v2_chain *out)
{
    size_t n = 0;
    const char *conf = cli_json_member(codec, "configuration", &n);

    if (name_is(name, "bytes") || name_is(name, "endian")) {
        out->bytes_seen = true;
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
    add_v2(cli, out, name, conf);
    out->last_is_filter =
        cli_v2_is_filter(strncmp(name, "numcodecs.", 10) ? name : name + 10);
    return CLI_OK;
}

int cli_spec_chain_to_v2(struct cli *cli, const char *chain, struct cli_v2_chain *out)
{
    size_t n = 0, m = 0;
    int rc = CLI_OK;

    *out = (struct cli_v2_chain){.big = chain_is_big(chain)};
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
