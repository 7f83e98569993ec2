/*
 * spec/codecs.c - codecs on the command line: JSON, or the short form "zstd:5" or
 * "blosc:cname=lz4,clevel=5". The short form becomes the JSON of the format, which the
 * library checks. Of a codec this file only knows the parameter of NAME:VALUE.
 */
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

/* The name of the parameter that the value in NAME:VALUE sets. */
static const char *positional(const char *name, size_t bytes)
{
    static const char *const keys[][2] = {
        {"zstd", "level"},      {"gzip", "level"},          {"zlib", "level"},
        {"bz2", "level"},       {"lz4", "acceleration"},    {"blosc", "cname"},
        {"transpose", "order"}, {"shuffle", "elementsize"}, {"bytes", "endian"},
        {"endian", "endian"},   {"lzma", "preset"},
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strlen(keys[i][0]) == bytes && strncmp(keys[i][0], name, bytes) == 0)
            return keys[i][1];
    return NULL;
}

/* Adds a value as JSON: numbers, true, false, null and JSON unchanged, other text as a
 * string. */
static void add_value(struct cli_string *out, const char *text)
{
    double number;
    bool plain = strcmp(text, "true") == 0 || strcmp(text, "false") == 0 ||
                 strcmp(text, "null") == 0 || strchr("[{\"", *text) ||
                 (strchr("0123456789-", *text) && cli_parse_f64(text, &number));

    if (plain)
        cli_string_printf(out, "%s", text);
    else
        cli_string_add_quoted(out, text);
}

/* The length of a pair KEY=VALUE. A comma separates pairs; text without '=' after a comma
 * belongs to the value ("order=2,1,0"). */
static size_t value_length(const char *text)
{
    size_t n = strcspn(text, ",");

    while (text[n]) {
        size_t m = strcspn(text + n + 1, ",");

        if (memchr(text + n + 1, '=', m))
            break;
        n += 1 + m;
    }
    return n;
}

static void add_pair(struct cli_string *out, const char *key, size_t key_bytes,
                     char *value)
{
    cli_string_printf(out, "%s\"%.*s\": ",
                      out->n_bytes && out->text[out->n_bytes - 1] != '{' ? ", " : "",
                      (int)key_bytes, key);
    if (strncmp(key, "order", key_bytes) == 0)
        cli_string_printf(out, *value == '[' ? "%s" : "[%s]", value);
    else
        add_value(out, value);
}

/* The length of a name, which may be a URI: a colon before "//" is part of the name. */
static size_t name_length(const char *text)
{
    size_t n = strcspn(text, ":");

    while (strncmp(text + n, "://", 3) == 0)
        n += 3 + strcspn(text + n + 3, ":");
    return n;
}

/* Adds "NAME:VALUE,KEY=VALUE" as {"name": ..., "configuration": {...}} or, for v2, as
 * {"id": ..., ...}. */
static int add_short(struct cli *cli, const char *kind, const char *text, bool v2,
                     struct cli_string *out)
{
    const size_t name_bytes = name_length(text);
    const char *at = text[name_bytes] ? text + name_bytes + 1 : "";
    const char *first = positional(text, name_bytes);
    struct cli_string conf = {0};

    cli_string_add(&conf, "{", 1);
    if (v2)
        cli_string_printf(&conf, "\"id\": \"%.*s\"", (int)name_bytes, text);
    while (*at) {
        size_t n = value_length(at), key_bytes = strcspn(at, "=");
        char *value;

        if (key_bytes < n) {
            value = cli_format("%.*s", (int)(n - key_bytes - 1), at + key_bytes + 1);
            add_pair(&conf, at, key_bytes, value);
        } else if (first) {
            value = cli_format("%.*s", (int)n, at);
            add_pair(&conf, first, strlen(first), value);
            first = NULL;
        } else {
            cli_string_free(&conf);
            return cli_error(cli, CLI_USAGE, "Write NAME:KEY=VALUE,KEY=VALUE or JSON.",
                             "%s \"%s\": what is \"%.*s\"?", kind, text, (int)n, at);
        }
        free(value);
        at += n + (at[n] == ',');
    }
    cli_string_add(&conf, "}", 1);
    if (v2)
        cli_string_printf(out, "%s", conf.text);
    else if (conf.n_bytes > 2)
        cli_string_printf(out, "{\"name\": \"%.*s\", \"configuration\": %s}",
                          (int)name_bytes, text, conf.text);
    else
        cli_string_printf(out, "{\"name\": \"%.*s\"}", (int)name_bytes, text);
    cli_string_free(&conf);
    return CLI_OK;
}

/* Adds the value of one --codec: JSON unchanged (a list: its items), or a short name. */
static int add_codec(struct cli *cli, const char *text, bool v2, struct cli_string *out)
{
    const char *comma = out->n_bytes > 1 ? ", " : "";
    size_t bytes = strlen(text);

    cli_string_printf(out, "%s", comma);
    if (*text == '[') {
        const char *end = text + bytes;

        while (end > text + 1 && *end != ']')
            end--;
        cli_string_add(out, text + 1, (size_t)(end - text - 1));
        return CLI_OK;
    }
    if (*text == '{') {
        cli_string_add(out, text, bytes);
        return CLI_OK;
    }
    return add_short(cli, "codec", text, v2, out);
}

/* Whether a codec of numcodecs must be a filter, not the compressor, even if it is last.
 * The name ends at a colon. */
static bool is_filter(const char *name)
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

/* Writes codecs for v2. All but the last codec are filters; the last one is the
 * compressor unless it must be a filter. */
static int codecs_v2(struct cli *cli, int n, struct cli_string *out)
{
    struct cli_string filters = {0}, compressor = {0};
    const char *last = cli_text_at(cli, "codec", n - 1);
    bool whole = n == 1 && *last == '{' && strstr(last, "\"compressor\"");
    int rc = CLI_OK;

    if (whole) {
        cli_string_printf(out, "%s", last);
        return CLI_OK;
    }
    cli_string_add(&filters, "[", 1);
    for (int i = 0; i < n && !rc; i++) {
        const char *text = cli_text_at(cli, "codec", i);

        if (i == n - 1 && !is_filter(text))
            rc = add_codec(cli, text, true, &compressor);
        else
            rc = add_codec(cli, text, true, &filters);
    }
    cli_string_add(&filters, "]", 1);
    cli_string_printf(out, "{\"filters\": %s, \"compressor\": %s}",
                      filters.n_bytes > 2 ? filters.text : "null",
                      compressor.text ? compressor.text : "null");
    cli_string_free(&filters);
    cli_string_free(&compressor);
    return rc;
}

int cli_spec_keys(struct cli *cli, struct cli_spec *s)
{
    const char *text = cli_text(cli, "key-encoding");
    struct cli_string out = {0};
    int rc;

    if (!text)
        return CLI_OK;
    s->spec.key_encoding = text;
    if (*text == '{' || text[name_length(text)] == '\0')
        return CLI_OK;
    rc = add_short(cli, "key encoding", text, false, &out);
    s->spec.key_encoding = cli_spec_keep(s, out.text);
    return rc;
}

int cli_spec_codecs(struct cli *cli, const char *option, bool v2, struct cli_spec *s,
                    const char **out)
{
    struct cli_string json = {0};
    int n = cli_count(cli, option), rc = CLI_OK;

    if (n == 1 && strcmp(cli_text(cli, option), "none") == 0) {
        cli_string_printf(&json, v2 ? "{\"filters\": null, \"compressor\": null}" : "[]");
    } else if (v2) {
        rc = codecs_v2(cli, n, &json);
    } else {
        cli_string_add(&json, "[", 1);
        for (int i = 0; i < n && !rc; i++)
            rc = add_codec(cli, cli_text_at(cli, option, i), false, &json);
        cli_string_add(&json, "]", 1);
    }
    *out = cli_spec_keep(s, json.text);
    return rc;
}
