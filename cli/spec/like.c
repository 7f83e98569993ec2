/*
 * spec/like.c - what a new array shall be when another one is its model (--like, and what
 * reencode keeps).
 */
#include "spec/spec_int.h"

#include <stdlib.h>
#include <string.h>

static char *cut(const char *text, size_t bytes)
{
    return text ? cli_format("%.*s", (int)bytes, text) : NULL;
}

/* The codecs of an innermost chunk: what stands in front of shards, also of nested ones,
 * does the same inside them, and what stands behind them can. Recursion: as deep as the
 * shards. */
static void add_inner(struct cli_string *out, const char *codecs)
{
    const char *codec;
    size_t n = 0, m = 0;

    for (size_t i = 0; (codec = cli_json_item(codecs, i, &n)) != NULL; i++) {
        const char *conf = cli_shards_of(codec);
        const char *inner = conf ? cli_json_member(conf, "codecs", &m) : NULL;

        if (inner)
            add_inner(out, inner);
        else
            cli_string_printf(out, "%s%.*s", out->n_bytes ? ", " : "", (int)n, codec);
    }
}

/* Index chain and place of the index, of the outermost shards. */
static void like_index(struct cli_spec *s, const char *conf)
{
    size_t m = 0;
    const char *part = cli_json_member(conf, "index_codecs", &m);

    s->spec.index_codecs = cli_spec_keep(s, CLI_TEXT_INDEX, cut(part, m));
    part = cli_json_member(conf, "index_location", &m);
    if (part && m == 7 && strncmp(part, "\"start\"", 7) == 0)
        s->spec.flags |= ZARR_SPEC_INDEX_AT_START;
}

/* Of shards the chain of an inner chunk, for other shards or none; the whole chain is
 * kept for a copy with the same. */
static void like_codecs(struct cli_spec *s, zarr_array *model, bool sharded)
{
    const char *codecs = zarr_array_codecs(model), *codec, *conf = NULL;
    struct cli_string inner = {0};
    size_t n = 0;

    for (size_t i = 0; sharded && !conf && (codec = cli_json_item(codecs, i, &n)); i++)
        conf = cli_shards_of(codec);
    if (conf) {
        add_inner(&inner, codecs);
        cli_spec_keep(s, CLI_TEXT_WHOLE, cli_strdup(codecs));
        like_index(s, conf);
    }
    s->spec.codecs = cli_spec_keep(
        s, CLI_TEXT_CODECS, conf ? cli_format("[%s]", inner.text) : cli_strdup(codecs));
    cli_string_free(&inner);
}

/* A name alone, or an object with a configuration. */
static void like_keys(struct cli_spec *s, zarr_array *model)
{
    const char *document = zarr_array_metadata(model);
    size_t bytes = 0, n = 0, m = 0;
    const char *keys = cli_json_member(document, "chunk_key_encoding", &bytes);
    const char *conf = keys ? cli_json_member(keys, "configuration", &n) : NULL;
    const char *name = keys && *keys == '{' ? cli_json_member(keys, "name", &n) : keys;
    const char *separator = conf ? cli_json_member(conf, "separator", &m)
                                 : cli_json_member(document, "dimension_separator", &m);
    const char *order = cli_json_member(document, "order", &n);

    if (separator && m == 3)
        s->spec.separator = separator[1];
    if (name && strncmp(name, "\"v2\"", 4) == 0) {
        s->spec.key_encoding = "v2";
        s->spec.separator = s->spec.separator ? s->spec.separator : '.';
    } else if (name && strncmp(name, "\"default\"", 9) == 0) {
        s->spec.key_encoding = "default";
    } else if (keys) {
        s->spec.key_encoding = cli_spec_keep(s, CLI_TEXT_KEYS, cut(keys, bytes));
        s->spec.separator = 0;
    }
    if (zarr_array_zarr_format(model) == 2 && order)
        s->spec.order = order[1];
}

static int like_fill(struct cli *cli, struct cli_spec *s, zarr_array *model)
{
    const void *fill = zarr_array_fill_value(model);
    zarr_error err = {0};
    char *text =
        fill ? cli_fill_text(zarr_array_dtype(model), fill, &err) : cli_strdup("null");

    if (!text)
        return cli_fail(cli, err.code, &err, "fill value");
    s->spec.fill_value = cli_spec_keep(s, CLI_TEXT_FILL, text);
    return CLI_OK;
}

int cli_spec_like(struct cli *cli, zarr_array *model, struct cli_spec *spec)
{
    const int32_t ndim = zarr_array_ndim(model);
    const uint64_t *chunks = zarr_array_chunk_shape(model);
    const uint64_t *units = zarr_array_write_shape(model);
    const zarr_dtype *type = zarr_array_dtype(model);
    const size_t bytes = (size_t)ndim * sizeof(uint64_t);
    const bool sharded = cli_is_sharded(model);

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
            cli_spec_keep(spec, CLI_TEXT_GRID, cli_strdup(zarr_array_chunk_grid(model)));
    spec->spec.data_type =
        cli_spec_keep(spec, CLI_TEXT_TYPE, cli_strdup(cli_type_name(type)));
    spec->spec.attributes =
        cli_spec_keep(spec, CLI_TEXT_ATTRS, cli_strdup(zarr_array_attributes(model)));
    for (int32_t d = 0; d < ndim; d++) {
        spec->names[d] = zarr_array_dimension_name(model, d);
        if (spec->names[d])
            spec->spec.dimension_names = spec->names;
    }
    like_codecs(spec, model, sharded);
    like_keys(spec, model);
    return like_fill(cli, spec, model);
}

void cli_spec_scalar_names(struct cli_spec *spec, zarr_array *model)
{
    const char *attributes = spec->spec.attributes;
    size_t bytes = 0;

    if (zarr_array_zarr_format(model) == 3 && spec->spec.zarr_format == 2 &&
        spec->spec.ndim == 0 &&
        !(attributes && cli_json_member(attributes, "_ARRAY_DIMENSIONS", &bytes)))
        spec->spec.dimension_names = spec->names;
}
