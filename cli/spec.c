/*
 * spec.c - what a new array shall be: the options that create, import and
 * reencode share, and a model (--like) to start from. Codecs may be given
 * shortly, "zstd:5" or "blosc:cname=lz4,clevel=5"; a short name becomes the JSON
 * that the format wants, and the library judges it: no codec is known here but
 * by what its one positional value is called.
 */
#include "spec.h"

#include <stdlib.h>
#include <string.h>

/* Owned texts of a spec by what they are for. */
enum {
    TEXT_CODECS,
    TEXT_INDEX,
    TEXT_FILL,
    TEXT_ATTRS,
    TEXT_NAMES,
    TEXT_TYPE,
    TEXT_GRID,
};

static const char *keep(struct cli_spec *s, int which, char *text)
{
    free(s->text[which]);
    s->text[which] = text;
    return text;
}

void cli_spec_free(struct cli_spec *spec)
{
    for (size_t i = 0; i < sizeof spec->text / sizeof spec->text[0]; i++)
        free(spec->text[i]);
    *spec = (struct cli_spec){.spec = {.struct_size = sizeof spec->spec}};
}

/* ---- codecs --------------------------------------------------------------------- */

/* What the value of NAME:VALUE means. */
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

/* A value as JSON: numbers, true, false, null and JSON stay, else it is text. */
static void add_value(struct cli_string *out, const char *text)
{
    double number;
    bool plain = strcmp(text, "true") == 0 || strcmp(text, "false") == 0 ||
                 strcmp(text, "null") == 0 || strchr("[{\"", *text) != NULL ||
                 (strchr("0123456789-", *text) && cli_parse_f64(text, &number));

    if (plain) {
        cli_string_printf(out, "%s", text);
    } else {
        char *quoted = cli_json_quote(text);

        cli_string_printf(out, "%s", quoted);
        free(quoted);
    }
}

/* Commas between pairs; a piece without '=' belongs to the value before ("order=2,1,0").
 */
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

/* "NAME:VALUE,KEY=VALUE" as {"name": ..., "configuration": {...}} or, for v2, {"id": ...,
 * ...}. */
static int add_short(struct cli *cli, const char *text, bool v2, struct cli_string *out)
{
    size_t name_bytes = strcspn(text, ":");
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
                             "codec \"%s\": what is \"%.*s\"?", text, (int)n, at);
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

/* One --codec: JSON as it is (the items of a list one by one), or a short name. */
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
    return add_short(cli, text, v2, out);
}

/* All but the last codec are filters, and it too where it does not compress. */
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

        if (i == n - 1 && !cli_v2_is_filter(text))
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

static int read_codecs(struct cli *cli, const char *option, int which, bool v2,
                       struct cli_spec *s)
{
    struct cli_string out = {0};
    int n = cli_count(cli, option), rc = CLI_OK;

    if (n == 1 && strcmp(cli_text(cli, option), "none") == 0) {
        cli_string_printf(&out, v2 ? "{\"filters\": null, \"compressor\": null}" : "[]");
    } else if (v2) {
        rc = codecs_v2(cli, n, &out);
    } else {
        cli_string_add(&out, "[", 1);
        for (int i = 0; i < n && !rc; i++)
            rc = add_codec(cli, cli_text_at(cli, option, i), false, &out);
        cli_string_add(&out, "]", 1);
    }
    keep(s, which, out.text);
    return rc;
}

/* ---- options --------------------------------------------------------------------- */

/* "time,y,x"; an empty name is none. Pointers go into the copy of the text. */
static int read_names(struct cli *cli, struct cli_spec *s)
{
    char *at = cli_strdup(cli_text(cli, "dims"));
    int32_t n = 0;

    keep(s, TEXT_NAMES, at);
    while (n < ZARR_MAX_RANK) {
        size_t m = strcspn(at, ",");
        bool more = at[m] == ',';

        at[m] = '\0';
        s->names[n++] = *at ? at : NULL;
        at += m + more;
        if (!more)
            break;
    }
    if (n != s->spec.ndim)
        return cli_error(cli, CLI_USAGE, NULL,
                         "option --dims: %d names for %d dimensions", (int)n,
                         (int)s->spec.ndim);
    s->spec.dimension_names = s->names;
    return CLI_OK;
}

/* One dimension of "2+3+2,6x3,10": edges joined by '+', each with a count behind 'x'. A
 * single number stands for itself. Appends JSON, returns what is behind or NULL. */
static const char *read_edges(const char *at, struct cli_string *out)
{
    const size_t n = strcspn(at, ",");
    const bool list = strcspn(at, "+x") < n;

    cli_string_printf(out, "%s", list ? "[" : "");
    for (bool more = true; more; at += more) {
        const size_t edge = strspn(at, "0123456789");
        const size_t count = at[edge] == 'x' ? strspn(at + edge + 1, "0123456789") : 0;

        if (edge == 0 || (at[edge] == 'x' && count == 0))
            return NULL;
        if (count)
            cli_string_printf(out, "[%.*s,%.*s]", (int)edge, at, (int)count,
                              at + edge + 1);
        else
            cli_string_printf(out, "%.*s", (int)edge, at);
        at += edge + (count ? count + 1 : 0);
        more = *at == '+';
        cli_string_printf(out, "%s", more ? "," : "");
    }
    cli_string_printf(out, "%s", list ? "]" : "");
    return *at == ',' || *at == '\0' ? at : NULL;
}

bool cli_edges_parse(const char *text, struct cli_string *out, int32_t *ndim)
{
    const char *at = text;

    *ndim = 0;
    if (strcspn(text, "+x") == strlen(text) ||
        strspn(text, "0123456789+x,") != strlen(text))
        return false;
    cli_string_printf(out, "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":"
                           "\"inline\",\"chunk_shapes\":[");
    do {
        at = read_edges(at, out);
        if (!at)
            return false;
        ++*ndim;
        cli_string_printf(out, "%s", *at ? "," : "]}}");
    } while (*at++);
    return true;
}

/* --chunks or --shards whose chunks differ; *done false: it is none such. */
static int read_grid(struct cli *cli, const char *option, struct cli_spec *s, bool *done)
{
    const char *text = cli_text(cli, option);
    struct cli_string grid = {0};
    int32_t n = 0;

    *done = text && cli_edges_parse(text, &grid, &n);
    if (*done && n != s->spec.ndim) {
        cli_string_free(&grid);
        return cli_error(cli, CLI_USAGE, NULL,
                         "option --%s: edges of %d dimensions for %d", option, (int)n,
                         (int)s->spec.ndim);
    }
    if (*done)
        s->spec.chunk_grid = keep(s, TEXT_GRID, grid.text); /* moved */
    else
        cli_string_free(&grid);
    return CLI_OK;
}

/* --chunks or --shards; a single number is for all dimensions. */
static int read_lengths(struct cli *cli, const char *option, struct cli_spec *s,
                        uint64_t *out, const uint64_t **member)
{
    uint64_t lengths[ZARR_MAX_RANK];
    int32_t n = 0;
    bool given = false;
    int rc = cli_shape(cli, option, lengths, &n, &given);

    if (rc || !given)
        return rc;
    if (n == 1 && s->spec.ndim > 1) {
        for (n = 1; n < s->spec.ndim; n++)
            lengths[n] = lengths[0];
    }
    if (n != s->spec.ndim)
        return cli_error(cli, CLI_USAGE, NULL,
                         "option --%s: %d lengths for %d dimensions", option, (int)n,
                         (int)s->spec.ndim);
    memcpy(out, lengths, (size_t)n * sizeof *out);
    *member = out;
    return CLI_OK;
}

/* --chunks: with shards they are the inner ones, which are all alike. */
static int read_chunks(struct cli *cli, struct cli_spec *s)
{
    const char *text = cli_text(cli, "chunks"), *shards = cli_text(cli, "shards");
    bool no_shards = !shards || strcmp(shards, "none") == 0, done = false;
    int rc = CLI_OK;

    if (text && no_shards)
        rc = read_grid(cli, "chunks", s, &done);
    if (done) {
        s->spec.chunk_shape = NULL; /* and the model's shards go */
        s->spec.shard_shape = NULL;
    }
    if (text && !done && !s->spec.chunk_shape)
        s->spec.chunk_grid = NULL; /* the model's, which had no shards */
    return rc || done ? rc
                      : read_lengths(cli, "chunks", s, s->chunks, &s->spec.chunk_shape);
}

static int read_shards(struct cli *cli, struct cli_spec *s)
{
    const char *text = cli_text(cli, "shards");
    bool done = false;
    int rc = CLI_OK;

    if (!text)
        return CLI_OK;
    if (strcmp(text, "none") == 0) {
        s->no_shards = true;
        s->spec.shard_shape = NULL; /* and nothing else of the model's shards */
        if (s->spec.chunk_shape)
            s->spec.chunk_grid = NULL;
        s->spec.index_codecs = NULL;
        s->spec.flags &= ~(uint32_t)ZARR_SPEC_INDEX_AT_START;
        return CLI_OK;
    }
    s->spec.chunk_grid = NULL;
    rc = read_grid(cli, "shards", s, &done);
    if (!done)
        return read_lengths(cli, "shards", s, s->shards, &s->spec.shard_shape);
    s->spec.shard_shape = NULL;
    if (!rc && !s->spec.chunk_shape)
        rc = cli_error(cli, CLI_USAGE, NULL,
                       "option --shards: --chunks must be given with edges of shards");
    return rc;
}

static void read_texts(struct cli *cli, struct cli_spec *s)
{
    const char *text;

    if ((text = cli_text(cli, "fill")) != NULL)
        s->spec.fill_value = keep(s, TEXT_FILL, cli_strdup(text));
    if ((text = cli_text(cli, "attributes")) != NULL)
        s->spec.attributes = keep(s, TEXT_ATTRS, cli_strdup(text));
    if ((text = cli_text(cli, "key-encoding")) != NULL)
        s->spec.key_encoding = text;
    if ((text = cli_text(cli, "separator")) != NULL)
        s->spec.separator = *text;
    if ((text = cli_text(cli, "order")) != NULL)
        s->spec.order = *text;
    if (cli_flag(cli, "index-at-start"))
        s->spec.flags |= ZARR_SPEC_INDEX_AT_START;
}

/* The byte order of each field where a v2 model's differ, "<><"; owned, or NULL. */
static char *mixed_orders(const char *codecs)
{
    static const char member[] = "\"endian\":\"";
    const char *at = strstr(codecs, member);
    size_t n = 0;

    if (at)
        n = strspn(at + sizeof member - 1, "<>");
    return n ? cli_format("%.*s", (int)n, at + sizeof member - 1) : NULL;
}

/* v3 has one order for all fields: little-endian. */
static void unmix_codecs(struct cli_spec *s)
{
    char *orders = mixed_orders(s->spec.codecs), *at;

    if (!orders)
        return;
    at = strstr(s->text[TEXT_CODECS], orders);
    s->spec.codecs = keep(s, TEXT_CODECS,
                          cli_format("%.*slittle%s", (int)(at - s->text[TEXT_CODECS]),
                                     s->text[TEXT_CODECS], at + strlen(orders)));
    free(orders);
}

/* A struct's list with these orders; NULL: all big-endian. Types stand behind a comma,
 * names behind a bracket. Owned. */
static char *list_in_order(const char *v2, const char *orders)
{
    char *list = cli_strdup(v2);

    for (char *at = list; (at = strstr(at, ",\"<")) != NULL; at += 3)
        at[2] = orders && *orders ? *orders++ : '>';
    return list;
}

/* A model's v3 chain for an array of format 2; the byte order goes into the data type. */
static int codecs_to_v2(struct cli *cli, struct cli_spec *s)
{
    struct cli_v2_chain chain = {0};
    const zarr_dtype *type = NULL;
    zarr_error err = {0};
    const char *v2;
    zarr_status st = ZARR_OK;
    char *orders = mixed_orders(s->spec.codecs);
    int rc = cli_spec_chain_to_v2(cli, s->spec.codecs, &chain);

    if (rc)
        goto out;
    s->spec.codecs = keep(s, TEXT_CODECS, chain.json);
    s->spec.order = chain.fortran ? 'F' : s->spec.order;
    if (!chain.big && !orders)
        goto out;
    st = zarr_dtype_find(cli->ctx, s->spec.data_type, &type, &err);
    if (st) {
        rc = cli_fail(cli, st, &err, "data type %s", s->spec.data_type);
        goto out;
    }
    v2 = zarr_dtype_v2(type);
    if (v2 && *v2 == '[')
        s->spec.data_type = keep(s, TEXT_TYPE, list_in_order(v2, orders));
    else if (v2 && *v2 == '<')
        s->spec.data_type = keep(s, TEXT_TYPE, cli_format(">%s", v2 + 1));
out:
    free(orders);
    return rc;
}

int cli_spec_read(struct cli *cli, struct cli_spec *spec)
{
    const char *format = cli_text(cli, "format");
    bool v2;
    int rc;

    spec->spec.struct_size = sizeof spec->spec;
    if (format) {
        if (spec->spec.zarr_format && spec->spec.zarr_format != *format - '0') {
            spec->spec.key_encoding = NULL; /* the model's keys are the other format's */
            spec->spec.separator = 0;
            spec->spec.order = 0; /* its chain says so already */
        }
        spec->spec.zarr_format = *format - '0';
    }
    v2 = spec->spec.zarr_format == 2;
    read_texts(cli, spec);
    rc = read_chunks(cli, spec);
    if (!rc)
        rc = read_shards(cli, spec);
    if (!rc && cli_count(cli, "codec")) {
        rc = read_codecs(cli, "codec", TEXT_CODECS, v2, spec);
        spec->spec.codecs = spec->text[TEXT_CODECS];
    } else if (!rc && v2 && spec->spec.codecs && *spec->spec.codecs == '[') {
        rc = codecs_to_v2(cli, spec);
    } else if (!rc && !v2 && spec->text[TEXT_CODECS]) {
        unmix_codecs(spec);
    }
    if (!rc && cli_count(cli, "index-codec")) {
        rc = read_codecs(cli, "index-codec", TEXT_INDEX, false, spec);
        spec->spec.index_codecs = spec->text[TEXT_INDEX];
    }
    if (!rc && cli_text(cli, "dims"))
        rc = read_names(cli, spec);
    return rc;
}

/* ---- a model ---------------------------------------------------------------------- */

static char *cut(const char *text, size_t bytes)
{
    return text ? cli_format("%.*s", (int)bytes, text) : NULL;
}

/* Of a sharding codec's configuration: inner chain, index chain, place of the index. */
static void like_shards(struct cli_spec *s, const char *codec)
{
    size_t n = 0, m = 0;
    const char *conf = cli_json_member(codec, "configuration", &n);
    const char *part;

    if (!conf)
        return;
    part = cli_json_member(conf, "codecs", &m);
    s->spec.codecs = keep(s, TEXT_CODECS, cut(part, m));
    part = cli_json_member(conf, "index_codecs", &m);
    s->spec.index_codecs = keep(s, TEXT_INDEX, cut(part, m));
    part = cli_json_member(conf, "index_location", &m);
    if (part && m == 7 && strncmp(part, "\"start\"", 7) == 0)
        s->spec.flags |= ZARR_SPEC_INDEX_AT_START;
}

static void like_codecs(struct cli_spec *s, zarr_array *model, bool sharded)
{
    const char *codecs = zarr_array_codecs(model);
    size_t n = 0, m = 0;

    if (!sharded) {
        s->spec.codecs = keep(s, TEXT_CODECS, cli_strdup(codecs));
        return;
    }
    for (size_t i = 0;; i++) {
        const char *codec = cli_json_item(codecs, i, &n);
        const char *name = codec ? cli_json_member(codec, "name", &m) : NULL;

        if (!codec)
            return;
        if (name && m == 18 && strncmp(name, "\"sharding_indexed\"", 18) == 0) {
            like_shards(s, codec);
            return;
        }
    }
}

static void like_keys(struct cli_spec *s, zarr_array *model)
{
    const char *document = zarr_array_metadata(model);
    size_t n = 0, m = 0;
    const char *keys = cli_json_member(document, "chunk_key_encoding", &n);
    const char *conf = keys ? cli_json_member(keys, "configuration", &n) : NULL;
    const char *name = keys ? cli_json_member(keys, "name", &n) : NULL;
    const char *separator = conf ? cli_json_member(conf, "separator", &m)
                                 : cli_json_member(document, "dimension_separator", &m);
    const char *order = cli_json_member(document, "order", &n);

    if (name)
        s->spec.key_encoding = strncmp(name, "\"v2\"", 4) == 0 ? "v2" : "default";
    if (separator && m == 3)
        s->spec.separator = separator[1];
    if (zarr_array_zarr_format(model) == 2 && order)
        s->spec.order = order[1];
}

static int like_fill(struct cli *cli, struct cli_spec *s, zarr_array *model)
{
    const zarr_dtype *type = zarr_array_dtype(model);
    const void *fill = zarr_array_fill_value(model);
    zarr_error err = {0};
    size_t n = 0;
    zarr_status st;

    if (!fill) {
        s->spec.fill_value = keep(s, TEXT_FILL, cli_strdup("null"));
        return CLI_OK;
    }
    st = zarr_dtype_print(type, fill, NULL, 0, &n, &err);
    if (!st) {
        char *text = cli_alloc(n + 1);

        st = zarr_dtype_print(type, fill, text, n + 1, &n, &err);
        s->spec.fill_value = keep(s, TEXT_FILL, text);
    }
    return st ? cli_fail(cli, st, &err, "fill value") : CLI_OK;
}

int cli_spec_like(struct cli *cli, zarr_array *model, struct cli_spec *spec)
{
    const int32_t ndim = zarr_array_ndim(model);
    const uint64_t *chunks = zarr_array_chunk_shape(model);
    const uint64_t *units = zarr_array_write_shape(model);
    const zarr_dtype *type = zarr_array_dtype(model);
    const char *name = zarr_dtype_name(type);
    size_t bytes = (size_t)ndim * sizeof(uint64_t);
    bool sharded;

    sharded = chunks && (!units || memcmp(chunks, units, bytes) != 0);
    cli_spec_free(spec);
    spec->spec.zarr_format = zarr_array_zarr_format(model);
    spec->spec.ndim = ndim;
    memcpy(spec->shape, zarr_array_shape(model), bytes);
    spec->spec.shape = spec->shape;
    if (chunks)
        spec->spec.chunk_shape = memcpy(spec->chunks, chunks, bytes);
    if (units && sharded)
        spec->spec.shard_shape = memcpy(spec->shards, units, bytes);
    if (!units)
        spec->spec.chunk_grid =
            keep(spec, TEXT_GRID, cli_strdup(zarr_array_chunk_grid(model)));
    spec->spec.data_type =
        keep(spec, TEXT_TYPE, cli_strdup(name ? name : zarr_dtype_v2(type)));
    spec->spec.attributes =
        keep(spec, TEXT_ATTRS, cli_strdup(zarr_array_attributes(model)));
    for (int32_t d = 0; d < ndim; d++) {
        spec->names[d] = zarr_array_dimension_name(model, d);
        if (spec->names[d])
            spec->spec.dimension_names = spec->names;
    }
    like_codecs(spec, model, sharded);
    like_keys(spec, model);
    return like_fill(cli, spec, model);
}
