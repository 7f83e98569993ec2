/*
 * commands/info_array.c - properties of an array for zarrc info, as text and as JSON.
 */
#include "commands/info.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint64_t info_grid_count(const zarr_array *array)
{
    uint64_t counts[ZARR_MAX_RANK];

    zarr_array_block_counts(array, counts);
    return cli_product(zarr_array_ndim(array), counts);
}

uint64_t info_decoded_bytes(const zarr_array *array)
{
    return cli_mul(cli_product(zarr_array_ndim(array), zarr_array_shape(array)),
                   zarr_dtype_item_bytes(zarr_array_dtype(array)));
}

/* ---- as text ---- */

void info_row(struct cli *cli, const char *name, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = cli_vformat(format, args);
    va_end(args);
    if (cli->color_out)
        cli_out(cli, "\033[1m", 4);
    cli_printf(cli, "  %-12s", name);
    if (cli->color_out)
        cli_out(cli, "\033[0m", 4);
    cli_line(cli, " %s\n", text);
    free(text);
}

/* Adds one codec as name(key=value, ...). */
static void add_codec(struct cli_string *out, const char *codec)
{
    size_t n = 0, m = 0;
    const char *name = cli_json_member(codec, "name", &n);
    const char *conf = cli_json_member(codec, "configuration", &m);
    const char *at, *value;
    char *key = NULL, *line;
    bool is_first = true;

    if (!name) {
        name = codec;
        n = strcspn(codec, ",]");
    }
    cli_string_printf(out, "%.*s", (int)(n > 1 ? n - 2 : n), n > 1 ? name + 1 : name);
    if (!conf || m <= 2)
        return;
    at = cli_json_members(conf);
    while ((value = cli_json_next(&at, &key, &n))) {
        line = cli_json_line(value, n);
        cli_string_printf(out, "%s%s=%s", is_first ? "(" : ", ", key, line);
        is_first = false;
        free(line);
        free(key);
    }
    cli_string_add(out, ")", 1);
}

/* Adds a sharding codec by its configuration: its index codecs, and the shape of its
 * chunks unless an earlier row has it (has_shape). */
static void add_sharding(struct cli_string *out, const char *conf, bool has_shape)
{
    size_t n = 0, m = 0;
    const char *shape = cli_json_member(conf, "chunk_shape", &n);
    const char *location = cli_json_member(conf, "index_location", &m);
    const char *at = cli_json_members(cli_json_member(conf, "index_codecs", &m)), *codec;
    char *lengths = shape && !has_shape ? cli_json_line(shape, n) : NULL;

    cli_string_printf(out, "sharding_indexed");
    if (lengths) /* [4, 4] */
        cli_string_printf(out, ", chunks (%.*s)", (int)strlen(lengths) - 2, lengths + 1);
    cli_string_printf(out, ", index%s:",
                      location && strncmp(location, "\"start\"", 7) == 0 ? " at start"
                                                                         : "");
    while ((codec = cli_json_next(&at, NULL, &n))) {
        cli_string_add(out, " ", 1);
        add_codec(out, codec);
    }
    free(lengths);
}

/* Prints the chain of codecs; inner codecs of shards are indented. */
static void codecs_rows(struct cli *cli, const zarr_array *array)
{
    const char *list = zarr_array_codecs(array), *title = "codecs";

    for (int depth = 0; list; depth++) {
        const char *at = cli_json_members(list), *codec;
        size_t n = 0;

        list = NULL;
        while ((codec = cli_json_next(&at, NULL, &n))) {
            const char *shards = cli_sharding_config(codec);
            struct cli_string text = {0};

            if (shards) {
                add_sharding(&text, shards, depth == 0 && cli_is_sharded(array));
                list = cli_json_member(shards, "codecs", &n);
            } else {
                add_codec(&text, codec);
            }
            info_row(cli, title, "%*s%s", depth * 2, "", text.text);
            cli_string_free(&text);
            title = "";
        }
    }
}

static void names_row(struct cli *cli, const zarr_array *array)
{
    struct cli_string s = {0};
    bool any = false;

    for (int32_t d = 0; d < zarr_array_ndim(array); d++) {
        const char *name = zarr_array_dimension_name(array, d);

        any = any || name;
        cli_string_printf(&s, "%s%s", d ? ", " : "", name ? name : "-");
    }
    if (any)
        info_row(cli, "dimensions", "%s", s.text);
    cli_string_free(&s);
}

bool info_is_coordinate(const zarr_array *array, const char *name)
{
    const char *dim =
        zarr_array_ndim(array) == 1 ? zarr_array_dimension_name(array, 0) : NULL;

    return dim && strcmp(dim, name) == 0;
}

void info_variable_text(struct cli *cli, const zarr_array *array, const char *name,
                        const char *files)
{
    static const char *const keys[] = {
        "units",       "calendar",      "standard_name", "long_name",   "scale_factor",
        "add_offset",  "missing_value", "valid_range",   "valid_min",   "valid_max",
        "_Unsigned",   "_Encoding",     "flag_values",   "flag_masks",  "flag_meanings",
        "coordinates", "bounds",        "grid_mapping",  "cell_methods"};
    const zarr_dtype *type = zarr_array_dtype(array);
    char *fill = cli_fill_text(type, zarr_array_missing_value(array), NULL);
    struct cli_string dims = {0};

    cli_string_add(&dims, "", 0);
    for (int32_t d = 0; d < zarr_array_ndim(array); d++) {
        const char *dim = zarr_array_dimension_name(array, d);

        cli_string_printf(&dims, "%s%s%s%" PRIu64, d ? ", " : "", dim ? dim : "",
                          dim ? "=" : "", zarr_array_shape(array)[d]);
    }
    info_row(cli, info_is_coordinate(array, name) ? "coordinate" : "array",
             "%s(%s)  %s%s", name, dims.text,
             zarr_dtype_n_fields(type) ? "struct" : cli_type_name(type), files);
    cli_string_free(&dims);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t n = 0;
        const char *value = cli_json_member(zarr_array_attributes(array), keys[i], &n);
        char *line = value ? cli_json_line(value, n) : NULL;

        if (line)
            info_row(cli, "", "  %s: %s", keys[i], line);
        free(line);
    }
    if (fill)
        info_row(cli, "", "  _FillValue: %s", fill);
    free(fill);
}

void info_attributes(struct cli *cli, const char *attributes)
{
    const char *at = cli_json_members(attributes), *value;
    size_t n = 0;
    char *key = NULL, *line;
    bool is_first = true;

    while ((value = cli_json_next(&at, &key, &n))) {
        line = cli_json_line(value, n);
        info_row(cli, is_first ? "attributes" : "", "%s: %s", key, line);
        is_first = false;
        free(line);
        free(key);
    }
}

/* The lengths of irregular chunks, as in the metadata: [[2,3,2],[[6,3]]]. Owned. */
static char *grid_text(const zarr_array *a)
{
    const char *grid = zarr_array_chunk_grid(a);
    size_t n = 0;
    const char *config = cli_json_member(grid, "configuration", &n);
    const char *edges = cli_json_member(config, "chunk_shapes", &n);

    if (edges)
        return cli_format("%.*s", (int)n, edges);
    return cli_strdup(grid ? grid : "irregular");
}

static void shape_row(struct cli *cli, const char *name, const zarr_array *a,
                      const uint64_t *shape, const char *more)
{
    char *text = shape ? cli_shape_text(zarr_array_ndim(a), shape) : grid_text(a);

    info_row(cli, name, "%s%s", text, more);
    free(text);
}

/* A count as text; UINT64_MAX stands for an overflow. */
static const char *count_text(uint64_t n, char text[32])
{
    if (n == UINT64_MAX)
        snprintf(text, 32, "more than 2^64");
    else
        snprintf(text, 32, "%" PRIu64, n);
    return text;
}

static void grid_rows(struct cli *cli, const zarr_array *a)
{
    char more[64], count[32];

    snprintf(more, sizeof more, "  %s of them", count_text(info_grid_count(a), count));
    if (cli_is_sharded(a)) {
        shape_row(cli, "shards", a, zarr_array_block_shape(a), more);
        more[0] = '\0';
    }
    shape_row(cli, "chunks", a, zarr_array_chunk_shape(a), more);
}

static void stats_rows(struct cli *cli, const struct info_stats *s)
{
    char text[16], count[32];

    info_row(cli, "stored", "%s in %" PRIu64 " of %s objects",
             cli_bytes_text(s->bytes, text), s->n_objects, count_text(s->n_total, count));
    if (s->bytes && s->n_total && s->decoded != UINT64_MAX)
        info_row(cli, "ratio", "%.3g",
                 (double)s->decoded * ((double)s->n_objects / (double)s->n_total) /
                     (double)s->bytes);
    info_files_text(cli, &s->files);
}

void info_files_format(const struct info_files *f, const char *before, char *text,
                       size_t cap)
{
    char bytes[16];

    *text = '\0';
    if (f->is_known)
        (void)snprintf(text, cap, "%s%" PRIu64 " file%s%s%s%s", before, f->n,
                       cli_plural(f->n), f->is_local ? ", " : "",
                       f->is_local ? cli_bytes_text(f->allocated, bytes) : "",
                       f->is_local ? " allocated" : "");
}

void info_files_text(struct cli *cli, const struct info_files *f)
{
    char text[64];

    info_files_format(f, "", text, sizeof text);
    if (*text)
        info_row(cli, "holds", "%s", text);
}

void info_files_json(struct cli_json *j, const struct info_files *f)
{
    info_count_json(cli_key(j, "files"), f->is_known ? f->n : UINT64_MAX);
    info_count_json(cli_key(j, "allocated_bytes"),
                    f->is_known && f->is_local ? f->allocated : UINT64_MAX);
}

void info_store_text(struct cli *cli, const zarr_store *store)
{
    zarr_store_counters c = ZARR_STORE_COUNTERS_INIT;
    char sent[16], received[16];

    zarr_store_read_counters(store, &c);
    if (c.requests > 0)
        info_row(cli, "requests",
                 "%" PRIu64 ", %" PRIu64 " of them repeated, %s received, %s sent",
                 c.requests, c.retries, cli_bytes_text(c.bytes_received, received),
                 cli_bytes_text(c.bytes_sent, sent));
    if (c.dead_bytes > 0)
        info_row(cli, "dead bytes",
                 "%s of the archive, with %" PRIu64 " replaced or erased value%s",
                 cli_bytes_text(c.dead_bytes, sent), c.dead_values,
                 cli_plural(c.dead_values));
}

void info_store_json(struct cli_json *j, const zarr_store *store)
{
    zarr_store_counters c = ZARR_STORE_COUNTERS_INIT;

    zarr_store_read_counters(store, &c);
    if (c.requests > 0) {
        cli_json_object(cli_key(j, "requests"));
        cli_json_u64(cli_key(j, "requests"), c.requests);
        cli_json_u64(cli_key(j, "retries"), c.retries);
        cli_json_u64(cli_key(j, "bytes_received"), c.bytes_received);
        cli_json_u64(cli_key(j, "bytes_sent"), c.bytes_sent);
        cli_json_end(j);
    }
    if (c.dead_bytes > 0) {
        cli_json_object(cli_key(j, "dead"));
        cli_json_u64(cli_key(j, "values"), c.dead_values);
        cli_json_u64(cli_key(j, "bytes"), c.dead_bytes);
        cli_json_end(j);
    }
}

/* Prints the fields of a struct; fields of nested structs are indented. */
static void fields_rows(struct cli *cli, const zarr_dtype *type, int depth)
{
    for (uint64_t i = 0; i < zarr_dtype_n_fields(type); i++) {
        zarr_dtype_field f = ZARR_DTYPE_FIELD_INIT;
        char *shape;

        if (zarr_dtype_field_at(type, i, &f, NULL) != ZARR_OK)
            return;
        shape = f.ndim ? cli_shape_text(f.ndim, f.shape) : cli_strdup("");
        info_row(cli, depth || i ? "" : "fields", "%*s%s: %s%s%s, byte %" PRIu64,
                 depth * 2, "", f.name,
                 zarr_dtype_n_fields(f.dtype) ? "struct" : cli_type_name(f.dtype),
                 f.ndim ? " " : "", shape, f.offset);
        free(shape);
        fields_rows(cli, f.dtype, depth + 1);
    }
}

void info_array_text(struct cli *cli, const struct cli_node *node,
                     const struct info_stats *stats)
{
    const zarr_array *a = node->array;
    char *fill = cli_fill_text(zarr_array_dtype(a), zarr_array_fill_value(a), NULL),
         bytes[16];

    cli_line(cli, "%s\n", node->shown);
    info_row(cli, "array", "Zarr v%d", (int)node->zarr_format);
    shape_row(cli, "shape", a, zarr_array_shape(a), "");
    names_row(cli, a);
    if (zarr_dtype_n_fields(zarr_array_dtype(a)) > 0)
        info_row(cli, "data type", "struct of %" PRIu64 " bytes",
                 zarr_dtype_item_bytes(zarr_array_dtype(a)));
    else
        info_row(cli, "data type", "%s", cli_type_name(zarr_array_dtype(a)));
    fields_rows(cli, zarr_array_dtype(a), 0);
    info_row(cli, "fill value", "%s", fill ? fill : "null");
    grid_rows(cli, a);
    codecs_rows(cli, a);
    info_row(cli, "size", "%s",
             info_decoded_bytes(a) == UINT64_MAX
                 ? "more than 2^64 bytes"
                 : cli_bytes_text(info_decoded_bytes(a), bytes));
    if (stats)
        stats_rows(cli, stats);
    if (stats)
        info_store_text(cli, node->store);
    info_attributes(cli, zarr_array_attributes(a));
    free(fill);
}

/* ---- as JSON ---- */

static void names_json(struct cli_json *j, const zarr_array *array)
{
    cli_json_list(j);
    for (int32_t d = 0; d < zarr_array_ndim(array); d++)
        cli_json_text(j, zarr_array_dimension_name(array, d));
    cli_json_end(j);
}

static void fields_json(struct cli_json *j, const zarr_dtype *type)
{
    cli_json_list(j);
    for (uint64_t i = 0; i < zarr_dtype_n_fields(type); i++) {
        zarr_dtype_field f = ZARR_DTYPE_FIELD_INIT;

        if (zarr_dtype_field_at(type, i, &f, NULL) != ZARR_OK)
            break;
        cli_json_object(j);
        cli_json_text(cli_key(j, "name"), f.name);
        cli_json_text(cli_key(j, "data_type"), cli_type_name(f.dtype));
        cli_json_u64(cli_key(j, "offset"), f.offset);
        cli_json_shape(cli_key(j, "shape"), f.ndim, f.shape);
        if (zarr_dtype_n_fields(f.dtype) > 0)
            fields_json(cli_key(j, "fields"), f.dtype);
        cli_json_end(j);
    }
    cli_json_end(j);
}

void info_count_json(struct cli_json *j, uint64_t n)
{
    if (n == UINT64_MAX)
        cli_json_null(j);
    else
        cli_json_u64(j, n);
}

void info_array_json(struct cli *cli, const struct cli_node *node,
                     const struct info_stats *stats)
{
    const zarr_array *a = node->array;
    const int32_t ndim = zarr_array_ndim(a);
    struct cli_json *j = cli_json_node(cli, node->shown);
    char *fill = cli_fill_text(zarr_array_dtype(a), zarr_array_fill_value(a), NULL);

    cli_json_text(cli_key(j, "path"), node->path);
    cli_json_text(cli_key(j, "kind"), "array");
    cli_json_i64(cli_key(j, "zarr_format"), node->zarr_format);
    cli_json_shape(cli_key(j, "shape"), ndim, zarr_array_shape(a));
    names_json(cli_key(j, "dimension_names"), a);
    cli_json_text(cli_key(j, "data_type"), cli_type_name(zarr_array_dtype(a)));
    cli_json_u64(cli_key(j, "item_bytes"), zarr_dtype_item_bytes(zarr_array_dtype(a)));
    if (zarr_dtype_n_fields(zarr_array_dtype(a)) > 0)
        fields_json(cli_key(j, "fields"), zarr_array_dtype(a));
    cli_json_raw(cli_key(j, "fill_value"), fill);
    cli_json_shape(cli_key(j, "chunks"), ndim, zarr_array_chunk_shape(a));
    cli_json_shape(cli_key(j, "shards"), ndim,
                   cli_is_sharded(a) ? zarr_array_block_shape(a) : NULL);
    cli_json_raw(cli_key(j, "chunk_grid"), zarr_array_chunk_grid(a));
    cli_json_raw(cli_key(j, "codecs"), zarr_array_codecs(a));
    info_count_json(cli_key(j, "bytes"), info_decoded_bytes(a));
    if (stats)
        info_stats_json(j, stats, false);
    if (stats)
        info_store_json(j, node->store);
    cli_json_raw(cli_key(j, "attributes"), zarr_array_attributes(a));
    cli_json_raw(cli_key(j, "metadata"), zarr_array_metadata(a));
    free(fill);
}
