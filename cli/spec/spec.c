/*
 * spec/spec.c - what a new array shall be: the options that create, import and reencode
 * share. The library judges them.
 */
#include "spec/spec_int.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(CLI_TEXT_N == sizeof((struct cli_spec *)0)->text / sizeof(char *),
               "a place for each text");

const char *cli_spec_keep(struct cli_spec *s, int which, char *text)
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

/* "time,y,x"; an empty name is none. Pointers go into the copy of the text. */
static int read_names(struct cli *cli, struct cli_spec *s)
{
    char *at = cli_strdup(cli_text(cli, "dims"));
    int32_t n = 0;

    cli_spec_keep(s, CLI_TEXT_NAMES, at);
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
        s->spec.chunk_grid = cli_spec_keep(s, CLI_TEXT_GRID, grid.text); /* moved */
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
        s->spec.fill_value = cli_spec_keep(s, CLI_TEXT_FILL, cli_strdup(text));
    if ((text = cli_text(cli, "attributes")) != NULL)
        s->spec.attributes = cli_spec_keep(s, CLI_TEXT_ATTRS, cli_strdup(text));
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
    at = strstr(s->text[CLI_TEXT_CODECS], orders);
    s->spec.codecs =
        cli_spec_keep(s, CLI_TEXT_CODECS,
                      cli_format("%.*slittle%s", (int)(at - s->text[CLI_TEXT_CODECS]),
                                 s->text[CLI_TEXT_CODECS], at + strlen(orders)));
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
    s->spec.codecs = cli_spec_keep(s, CLI_TEXT_CODECS, chain.json);
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
        s->spec.data_type = cli_spec_keep(s, CLI_TEXT_TYPE, list_in_order(v2, orders));
    else if (v2 && *v2 == '<')
        s->spec.data_type = cli_spec_keep(s, CLI_TEXT_TYPE, cli_format(">%s", v2 + 1));
out:
    free(orders);
    return rc;
}

/* The model's shards as they are: codecs in front of and behind them, shards in shards.
 */
static void same_shards(struct cli *cli, struct cli_spec *s)
{
    const char *other[] = {"chunks", "shards", "codec", "index-codec", "order"};
    bool same = s->text[CLI_TEXT_WHOLE] && !cli_flag(cli, "index-at-start");

    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        same = same && !cli_count(cli, other[i]);
    if (!same)
        return;
    s->spec.codecs =
        cli_spec_keep(s, CLI_TEXT_CODECS, cli_strdup(s->text[CLI_TEXT_WHOLE]));
    s->spec.chunk_shape = s->spec.shard_shape; /* NULL: the grid says it */
    s->spec.shard_shape = NULL;
    s->spec.index_codecs = NULL;
    s->spec.flags &= ~(uint32_t)ZARR_SPEC_INDEX_AT_START;
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
    rc = cli_spec_keys(cli, spec);
    read_texts(cli, spec);
    if (!rc)
        rc = read_chunks(cli, spec);
    if (!rc)
        rc = read_shards(cli, spec);
    if (!rc && cli_count(cli, "codec")) {
        rc = cli_spec_codecs(cli, "codec", CLI_TEXT_CODECS, v2, spec);
        spec->spec.codecs = spec->text[CLI_TEXT_CODECS];
    } else if (!rc && v2 && spec->spec.codecs && *spec->spec.codecs == '[') {
        rc = codecs_to_v2(cli, spec);
    } else if (!rc && !v2 && spec->text[CLI_TEXT_CODECS]) {
        unmix_codecs(spec);
        same_shards(cli, spec);
    }
    if (!rc && cli_count(cli, "index-codec")) {
        rc = cli_spec_codecs(cli, "index-codec", CLI_TEXT_INDEX, false, spec);
        spec->spec.index_codecs = spec->text[CLI_TEXT_INDEX];
    }
    if (!rc && cli_text(cli, "dims"))
        rc = read_names(cli, spec);
    return rc;
}
