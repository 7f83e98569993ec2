/*
 * reencode/read.c - which elements of each array zarrc reencode reads, and their
 * conversion to another data type.
 */
#include "cf/cf.h"
#include "reencode/reencode.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- regions ---- */

/* An index becomes a slice, so that the dimension stays. */
static char *keep_dimensions(char *region, int32_t ndim)
{
    char *items[ZARR_MAX_RANK] = {NULL}, *end;
    struct cli_string text = {0};

    cf_region_split(region, ndim, items);
    for (int32_t d = 0; d < ndim; d++) {
        const long long index = strtoll(items[d], &end, 10);

        cli_string_printf(&text, "%s%s", d ? "," : "", items[d]);
        if (!*end && index == -1)
            cli_string_printf(&text, ":");
        else if (!*end)
            cli_string_printf(&text, ":%lld", index + 1);
        free(items[d]);
    }
    free(region);
    return text.text;
}

static int select_region(struct reencode *r, struct reencode_region *region,
                         const zarr_array *array)
{
    struct cli_node part = {.region = region->text, .shown = region->shown};
    int rc = cli_node_select(r->cli, &part, array, &region->selection);

    if (rc)
        return rc;
    zarr_selection_free(region->selection);
    region->selection = NULL;
    if (zarr_array_ndim(array) > 0)
        part.region = region->text =
            keep_dimensions(region->text, zarr_array_ndim(array));
    return cli_node_select(r->cli, &part, array, &region->selection);
}

/* Takes the items whose dimensions the array has, and marks them in `used`. */
static int find_region(struct reencode *r, const char *path, bool *used)
{
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = cli_cancel};
    struct reencode_region *region = &r->regions[r->n_regions++];
    zarr_array *array = NULL;
    zarr_error err = {0};
    zarr_status st;
    int rc = CLI_OK;

    region->path = cli_path_join(r->src.path, path);
    region->shown = cli_shown_below(&r->src, path);
    region->text = r->src.region ? cli_strdup(r->src.region) : NULL;
    st = zarr_array_open(&array, r->src.store, region->path, &opts, &err);
    if (st)
        rc = cli_fail(r->cli, st, &err, "cannot open array %s", region->shown);
    else if (r->src.kind == ZARR_NODE_GROUP)
        rc = cf_region_resolve(r->cli, r->src.store, array, region->shown, &region->text,
                               used);
    if (!rc && region->text)
        rc = select_region(r, region, array);
    if (!rc && region->selection && zarr_selection_n_items(region->selection) == 0)
        cli_warn(r->cli, "%s[%s] has no elements", region->shown, region->text);
    zarr_array_free(array);
    return rc;
}

static int check_used(struct reencode *r, const bool *used)
{
    const char *at = r->src.region;
    int rc = CLI_OK;

    for (char *item; !rc && (item = cf_next_item(&at)) != NULL; free(item))
        if (!*used++)
            rc = cli_error(r->cli, CLI_USAGE,
                           "Items are NAME=INDICES or NAME@VALUES. zarrc info shows the "
                           "names of dimensions.",
                           "region of the group %s: no array has the dimension of \"%s\"",
                           r->src.shown, item);
    return rc;
}

int cli_reencode_regions(struct reencode *r)
{
    struct cli_tree tree = {0};
    bool *used;
    int rc = CLI_OK;

    if (!r->src.region && !cli_text(r->cli, "dtype"))
        return CLI_OK;
    rc = cli_tree_list(r->cli, &r->src, &tree);
    r->regions = cli_alloc((tree.n_items + 1) * sizeof *r->regions);
    used = cli_alloc((r->src.region ? strlen(r->src.region) : 0) + 1);
    for (size_t i = 0; i < tree.n_items && !rc; i++)
        if (tree.items[i].kind == ZARR_NODE_ARRAY)
            rc = find_region(r, tree.items[i].path, used);
    if (!rc && r->src.kind == ZARR_NODE_GROUP && r->src.region)
        rc = check_used(r, used);
    free(used);
    cli_tree_free(&tree);
    return rc;
}

char *cli_reencode_text(const struct reencode *r)
{
    struct cli_string text = {0};

    for (size_t i = 0; i < r->n_regions; i++)
        cli_string_printf(&text, "%s[%s] ", r->regions[i].path,
                          r->regions[i].text ? r->regions[i].text : "");
    cli_string_printf(&text, "%s %s", r->rounding, r->out_of_range);
    return text.text;
}

void cli_reencode_free(struct reencode *r)
{
    for (size_t i = 0; i < r->n_regions; i++) {
        free(r->regions[i].path);
        free(r->regions[i].shown);
        free(r->regions[i].text);
        zarr_selection_free(r->regions[i].selection);
    }
    free(r->regions);
    free(r->buffer);
}

/* The calls come in the order of the regions, over and over. */
const struct reencode_region *cli_reencode_region(struct reencode *r,
                                                  const zarr_array *source)
{
    for (size_t i = 0; i < r->n_regions; i++, r->next++) {
        r->next %= r->n_regions;
        if (strcmp(r->regions[r->next].path, zarr_array_path(source)) == 0)
            return &r->regions[r->next];
    }
    return NULL;
}

/* ---- conversion ---- */

/* Elements are written with the codec cast_value, and the chunks are read without it. */
enum {
    CAST_CHUNK = 1 << 16, /* elements that one thread converts */
    CAST_PART = 16 * CAST_CHUNK
};

static zarr_status create_line(const struct reencode *r, zarr_array **out,
                               zarr_store *chunks, const zarr_dtype *type, uint64_t n,
                               const char *codecs, zarr_error *err)
{
    const uint64_t chunk = n < CAST_CHUNK ? n : CAST_CHUNK;
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .chunk_store = chunks};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_store *store = NULL;
    zarr_status st = zarr_store_open(&store, r->cli->ctx, "memory:", NULL, err);

    spec.ndim = 1;
    spec.shape = &n;
    spec.fill_value = "1"; /* which all types have */
    spec.chunk_shape = &chunk;
    spec.data_type = cli_type_name(type);
    spec.codecs = codecs;
    if (!st)
        st = zarr_array_create(out, store, "", &spec, &opts, err);
    zarr_store_free(store);
    return st;
}

/* Converts n elements by one of the roundings of cast_value. */
static zarr_status convert_by(const struct reencode *r, const struct reencode_types *t,
                              const char *rounding, const void *src, uint64_t n,
                              void *dst, zarr_error *err)
{
    static const char bytes[] =
        "{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}]";
    char *name = cli_json_quote(cli_type_name(t->to));
    char *cast = cli_format("[{\"name\": \"cast_value\", \"configuration\": "
                            "{\"data_type\": %s, \"rounding\": \"%s\", "
                            "\"out_of_range\": \"%s\"}}, %s",
                            name, rounding, r->out_of_range, bytes);
    char *plain = cli_format("[%s", bytes);
    zarr_array *in = NULL, *out = NULL;
    zarr_store *chunks = NULL;
    zarr_tensor tensor;
    zarr_status st = zarr_store_open(&chunks, r->cli->ctx, "memory:", NULL, err);

    if (!st)
        st = create_line(r, &in, chunks, t->from, n, cast, err);
    if (!st)
        st = create_line(r, &out, chunks, t->to, n, plain, err);
    zarr_tensor_host(&tensor, NULL, (void *)src, 0, 1, &n);
    if (!st)
        st = cli_write(in, NULL, &tensor, NULL, err);
    tensor.data = dst;
    if (!st)
        st = cli_read(out, NULL, &tensor, NULL, err);
    zarr_array_free(in);
    zarr_array_free(out);
    zarr_store_free(chunks);
    free(plain);
    free(cast);
    free(name);
    return st;
}

/* A number is exact if it is rounded up and down to one value. */
static zarr_status convert_part(const struct reencode *r, const struct reencode_types *t,
                                const void *src, uint64_t n, void *dst, zarr_error *err)
{
    const size_t bytes = (size_t)(n * zarr_dtype_item_bytes(t->to));
    void *other;
    zarr_status st;

    if (strcmp(r->rounding, "exact") != 0)
        return convert_by(r, t, r->rounding, src, n, dst, err);
    other = cli_alloc(bytes);
    st = convert_by(r, t, "towards-negative", src, n, dst, err);
    if (!st)
        st = convert_by(r, t, "towards-positive", src, n, other, err);
    if (!st && memcmp(dst, other, bytes) != 0)
        st = ZARR_ERR_INVALID;
    free(other);
    return st;
}

zarr_status cli_reencode_convert(const struct reencode *r, const struct reencode_types *t,
                                 const void *src, uint64_t *n, void *dst, zarr_error *err)
{
    const uint64_t src_bytes = zarr_dtype_item_bytes(t->from);
    const uint64_t dst_bytes = zarr_dtype_item_bytes(t->to);
    zarr_status st = ZARR_OK;
    uint64_t at = 0, m = 0;

    for (; at < *n; at += m) {
        m = *n - at < CAST_PART ? *n - at : CAST_PART;
        st = convert_part(r, t, (const char *)src + at * src_bytes, m,
                          (char *)dst + at * dst_bytes, err);
        if (st)
            break;
    }
    if (st != ZARR_ERR_INVALID)
        return st;
    while (m > 1) { /* finds the element */
        const uint64_t half = m / 2;

        st = convert_part(r, t, (const char *)src + at * src_bytes, half, dst, err);
        at += st ? 0 : half;
        m = st ? half : m - half;
    }
    *n = at;
    return convert_part(r, t, (const char *)src + at * src_bytes, 1, dst, err);
}

/* ---- the elements of a box ---- */

struct reading {
    struct reencode *r;
    const struct reencode_region *region;
    zarr_array *source;
    const zarr_selection *selection;
    const uint64_t *start; /* of the box, in the new array */
    const zarr_io_options *io;
};

/* Skips damage. */
static zarr_status read_source(const struct reading *g, const zarr_tensor *dst,
                               zarr_error *err)
{
    const struct cli_node node = {.array = g->source, .shown = g->region->shown};
    zarr_status st = zarr_array_read(g->source, g->selection, dst, g->io, err);

    while (st && cli_flag(g->r->cli, "skip-damaged") && cli_is_damage(st, err)) {
        const zarr_error failed = *err;

        st = cli_salvage_block(g->r->cli, &node, &failed, CLI_MEND_ERASE, err);
        g->r->n_lost += st == ZARR_OK;
        if (!st)
            st = zarr_array_read(g->source, g->selection, dst, g->io, err);
    }
    return st;
}

/* The error of an element that cannot be converted. index: in the box. */
static zarr_status refuse(const struct reading *g, const zarr_tensor *dst, uint64_t index,
                          const void *element, zarr_error *err)
{
    char *value = cli_fill_text(zarr_array_dtype(g->source), element, NULL);
    const char *region = g->region->text;
    uint64_t at[ZARR_MAX_RANK];
    struct cli_string place = {0};

    for (int32_t d = dst->ndim - 1; d >= 0; d--) {
        at[d] = g->start[d] + index % dst->shape[d];
        index /= dst->shape[d];
    }
    for (int32_t d = 0; d < dst->ndim; d++)
        cli_string_printf(&place, "%s%" PRIu64, d ? ", " : "", at[d]);
    cli_set_error(err, ZARR_ERR_INVALID, "%s%s%s%s: element [%s]: %s has no value in %s",
                  g->region->shown, region ? "[" : "", region ? region : "",
                  region ? "]" : "", place.text ? place.text : "",
                  value ? value : "the number", cli_type_name(dst->dtype));
    cli_string_free(&place);
    free(value);
    return ZARR_ERR_INVALID;
}

static zarr_status read_converted(const struct reading *g, const zarr_tensor *dst,
                                  zarr_error *err)
{
    const struct reencode_types types = {zarr_array_dtype(g->source), dst->dtype};
    const uint64_t item_bytes = zarr_dtype_item_bytes(types.from);
    uint64_t n = cli_product(dst->ndim, dst->shape);
    const uint64_t bytes = cli_mul(n, item_bytes);
    zarr_tensor tensor;
    zarr_status st;

    g->r->buffer = cli_realloc(g->r->buffer, (size_t)bytes);
    zarr_tensor_host(&tensor, NULL, g->r->buffer, bytes, dst->ndim, dst->shape);
    st = read_source(g, &tensor, err);
    if (st)
        return st;
    st = cli_reencode_convert(g->r, &types, g->r->buffer, &n, dst->data, err);
    return st == ZARR_ERR_INVALID
               ? refuse(g, dst, n, (char *)g->r->buffer + n * item_bytes, err)
               : st;
}

zarr_status cli_reencode_read(void *user, zarr_array *source, const uint64_t *start,
                              const zarr_tensor *dst, const zarr_io_options *io,
                              zarr_error *err)
{
    struct reading g = {.r = user, .source = source, .start = start, .io = io};
    const uint64_t *shape = zarr_array_shape(source);
    zarr_selection *box = NULL, *part = NULL;
    zarr_status st;

    g.region = cli_reencode_region(user, source);
    if (g.region->selection)
        shape = zarr_selection_shape(g.region->selection);
    st = zarr_selection_box(&box, dst->ndim, shape, start, dst->shape, err);
    if (!st && g.region->selection)
        st = zarr_selection_compose(&part, g.region->selection, box, err);
    g.selection = part ? part : box;
    if (!st)
        st = (zarr_dtype_equal(zarr_array_dtype(source), dst->dtype)
                  ? read_source
                  : read_converted)(&g, dst, err);
    zarr_selection_free(box);
    zarr_selection_free(part);
    return st;
}
