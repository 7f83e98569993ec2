/*
 * spec/spec.c - the options that describe a new array, for create, import and reencode.
 * The library checks their values.
 */
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

const char *cli_spec_keep(struct cli_spec *s, char *text)
{
    s->text[s->n_texts++] = text;
    return text;
}

void cli_spec_free(struct cli_spec *spec)
{
    for (size_t i = 0; i < spec->n_texts; i++)
        free(spec->text[i]);
    *spec = (struct cli_spec){.spec = {.struct_size = sizeof spec->spec}};
}

/* Reads "time,y,x"; an empty name stands for no name. s->names points into a copy of the
 * text. */
static int read_names(struct cli *cli, struct cli_spec *s)
{
    char *at = cli_strdup(cli_text(cli, "dims"));
    int32_t n = 0;

    cli_spec_keep(s, at);
    if (!cli_is_utf8(at))
        return cli_error(cli, CLI_USAGE, NULL, "option --dims: \"%s\" is not UTF-8", at);
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

/* Reads one dimension of "2+3+2,6*3,10": chunk lengths joined by '+', each with an
 * optional count after '*', or one length for all chunks. Appends JSON. Returns the end
 * of the dimension, or NULL if it is not valid. */
static const char *read_edges(const char *at, struct cli_string *out)
{
    const size_t n = strcspn(at, ",x");
    const bool list = strcspn(at, "+*") < n;

    cli_string_printf(out, "%s", list ? "[" : "");
    for (bool more = true; more; at += more) {
        const size_t edge = strspn(at, "0123456789");
        const size_t count = at[edge] == '*' ? strspn(at + edge + 1, "0123456789") : 0;

        if (edge == 0 || (at[edge] == '*' && count == 0))
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
    return strchr(",x", *at) ? at : NULL; /* or at the end */
}

bool cli_edges_parse(const char *text, struct cli_string *out, int32_t *ndim)
{
    const char *at = text;

    *ndim = 0;
    if (strcspn(text, "+*") == strlen(text) ||
        strspn(text, "0123456789+*x,") != strlen(text))
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

/* Reads --chunks or --shards: edges of an irregular grid unless it must be regular, or
 * lengths into *member, which points to out. A single length is that of all dimensions.
 */
static int read_grid(struct cli *cli, const char *option, bool is_regular,
                     struct cli_spec *s, uint64_t *out, const uint64_t **member)
{
    const char *text = cli_text(cli, option);
    struct cli_string grid = {0};
    int32_t n = 0;
    const bool edges = text && !is_regular && cli_edges_parse(text, &grid, &n);
    int rc = CLI_OK;

    if (!text)
        return CLI_OK;
    if (edges) {
        s->spec.chunk_grid = cli_spec_keep(s, grid.text); /* moved */
    } else {
        cli_string_free(&grid);
        rc = cli_shape(cli, option, out, &n, NULL);
        *member = out;
    }
    if (n == 1 && !edges)
        for (; n < s->spec.ndim; n++)
            out[n] = out[0];
    if (!rc && n != s->spec.ndim)
        rc = cli_error(cli, CLI_USAGE, NULL,
                       edges ? "option --%s: edges of %d dimensions for %d"
                             : "option --%s: %d lengths for %d dimensions",
                       option, (int)n, (int)s->spec.ndim);
    return rc;
}

/* Reads --chunks. With shards, the grid of chunks must be regular. */
static int read_chunks(struct cli *cli, struct cli_spec *s)
{
    const char *shards = cli_text(cli, "shards");

    return read_grid(cli, "chunks", shards && strcmp(shards, "none") != 0, s, s->chunks,
                     &s->spec.chunk_shape);
}

static int read_shards(struct cli *cli, struct cli_spec *s)
{
    const char *text = cli_text(cli, "shards");
    int rc;

    if (text && strcmp(text, "none") == 0) {
        s->spec.flags |= ZARR_SPEC_NO_SHARDS;
        return CLI_OK;
    }
    rc = read_grid(cli, "shards", false, s, s->shards, &s->spec.shard_shape);
    if (rc || !text || s->spec.shard_shape)
        return rc;
    if (!s->spec.chunk_shape && s->spec.like)
        s->spec.chunk_shape = zarr_array_chunk_shape(s->spec.like);
    return s->spec.chunk_shape
               ? CLI_OK
               : cli_error(
                     cli, CLI_USAGE, NULL,
                     "option --shards: --chunks must be given with edges of shards");
}

static void read_texts(struct cli *cli, struct cli_spec *s)
{
    const char *format = cli_text(cli, "zarr-format"), *text;

    if (format)
        s->spec.zarr_format = *format - '0';
    if ((text = cli_text(cli, "fill")))
        s->spec.fill_value = text;
    if ((text = cli_text(cli, "attributes")))
        s->spec.attributes = text;
    if ((text = cli_text(cli, "separator")))
        s->spec.separator = *text;
    if ((text = cli_text(cli, "order")))
        s->spec.order = *text;
    if (cli_flag(cli, "checksum"))
        s->spec.flags |= ZARR_SPEC_CHECKSUM;
    if (cli_flag(cli, "index-at-start"))
        s->spec.flags |= ZARR_SPEC_INDEX_AT_START;
    if (cli_flag(cli, "keep-fill"))
        s->spec.flags |= ZARR_SPEC_KEEP_FILL;
}

void cli_spec_like(struct cli_spec *spec, zarr_array *model)
{
    spec->spec.like = model;
    spec->spec.ndim = zarr_array_ndim(model);
}

int cli_spec_read(struct cli *cli, struct cli_spec *spec)
{
    int32_t format;
    int rc;

    spec->spec.struct_size = sizeof spec->spec;
    read_texts(cli, spec);
    format = spec->spec.zarr_format || !spec->spec.like
                 ? spec->spec.zarr_format
                 : zarr_array_zarr_format(spec->spec.like);
    rc = cli_spec_keys(cli, spec);
    if (!rc)
        rc = read_chunks(cli, spec);
    if (!rc)
        rc = read_shards(cli, spec);
    if (!rc && cli_count(cli, "codec"))
        rc = cli_spec_codecs(cli, "codec", format == 2, spec, &spec->spec.codecs);
    if (!rc && cli_count(cli, "index-codec"))
        rc = cli_spec_codecs(cli, "index-codec", false, spec, &spec->spec.index_codecs);
    if (!rc && cli_text(cli, "dims"))
        rc = read_names(cli, spec);
    return rc;
}
