/*
 * array/handle/document.c - opens an array from the text of its metadata, without I/O,
 * and makes a second handle of an open array with other options. Thread class: plain
 * functions.
 */
#include "array/shape/shape_int.h"

#include <string.h>

enum {
    LONGEST_BITS = 62 /* a grid without end: lengths up to 2^62 */
};

/* ---- shapes ------------------------------------------------------------- */

/* Replaces the state by one whose shape is as long as its grid: without end if the grid
 * is regular, else up to the end of the last chunk. A list of equal edges has an end. */
static zarr_status use_grid_shape(const zarr_array *a, struct zr_array_state **s,
                                  zarr_error *err)
{
    const struct zr_grid *grid = &(*s)->meta.grid;
    const bool has_no_end = grid->regular && !(grid->vt && grid->vt->resize);
    struct zr_array_state *longer = NULL;
    uint64_t shape[ZARR_MAX_RANK];

    for (int32_t d = 0; d < grid->ndim && has_no_end; d++)
        shape[d] =
            (UINT64_C(1) << LONGEST_BITS) / grid->chunk_shape[d] * grid->chunk_shape[d];
    ZR_CHECK(zr_outside_state(&longer, a, *s, has_no_end ? shape : NULL, err));
    zr_array_state_free(*s);
    *s = longer;
    return ZARR_OK;
}

zarr_status zr_array_may_change(const zarr_array *array, zarr_error *err)
{
    if (!array->grid_shape)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INVALID,
                   "the array was opened with ZARR_OPEN_GRID_SHAPE: this handle cannot "
                   "read its metadata again or change it");
}

/* ---- a text ------------------------------------------------------------- */

static zarr_status parse_document(struct zr_parsed **out, const zarr_context *ctx,
                                  const char *text, const char *what, zarr_error *err)
{
    struct zr_parsed *parsed = NULL;
    zarr_status st = ZARR_OK;

    if (strlen(text) > ctx->limits.metadata_bytes)
        ZR_FAIL_LIMIT(err, "metadata_bytes", ctx->limits.metadata_bytes,
                      "%s: it has %zu bytes", what, strlen(text));
    ZR_TRY(zr_parsed_new(&parsed, ctx->alloc, err));
    st = zr_json_parse(&parsed->json, text, strlen(text), &ctx->limits, err);
    if (st == ZARR_OK && !zr_json_is(parsed->json.root, ZR_JSON_OBJECT))
        st = zr_fail(err, ZARR_ERR_CORRUPT, "it must be a JSON object");
    if (st != ZARR_OK) {
        zr_prefix(err, st, "%s", what);
        goto out;
    }
    *out = parsed; /* moved */
    parsed = NULL;
out:
    zr_parsed_free(parsed);
    return st;
}

static zarr_status text_format(int32_t *out, const struct zr_json *root, int32_t wish,
                               zarr_error *err)
{
    uint64_t told = 0;

    if (!zr_json_u64(zr_json_get(root, "zarr_format"), &told) || (told != 2 && told != 3))
        return zr_fail(err, ZARR_ERR_CORRUPT, "zarr_format must be 2 or 3");
    if (wish != 0 && (uint64_t)wish != told)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "zarr_format is %" PRIu64 ", asked for is %" PRId32, told, wish);
    if (told == 3 && !zr_json_is_text(zr_json_get(root, "node_type"), "array"))
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "node_type is not \"array\"");
    *out = (int32_t)told;
    return ZARR_OK;
}

/* Makes a state from the texts. attributes: v2's .zattrs, or NULL. */
static zarr_status state_of_text(struct zr_array_state **out, const zarr_array *a,
                                 const char *text, const char *attributes, int32_t wish,
                                 const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_parsed *parsed = NULL, *attrs = NULL;
    struct zr_array_source src;
    int32_t format = 0;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(parse_document(&parsed, a->h.ctx, text, "document", err));
    ZR_TRY(text_format(&format, parsed->json.root, wish, err));
    if (attributes && format == 3)
        ZR_FAIL(err, ZARR_ERR_INVALID, "a zarr.json has its attributes inside");
    if (attributes)
        ZR_TRY(parse_document(&attrs, a->h.ctx, attributes, "attributes", err));
    src = zr_array_source_make(format, parsed, attrs, NULL);
    ZR_TRY(zr_origin_state(out, a, &src, cancel, err));
    if (a->grid_shape)
        ZR_TRY(use_grid_shape(a, out, err));
out:
    if (st != ZARR_OK) {
        zr_array_state_free(*out);
        *out = NULL;
    }
    zr_parsed_free(parsed);
    zr_parsed_free(attrs);
    return st;
}

/* The store of an array without a store. */
static zarr_status no_store(zarr_store **out, zarr_context *ctx, zarr_error *err)
{
    const struct zr_lent nothing = {.absent = ZARR_ERR_UNSUPPORTED,
                                    .absent_text =
                                        "the array was opened without a store"};

    return zr_ctx_open_lent(out, ctx, &nothing, err);
}

/* NOLINT(function-size): public; the texts of a node, and what zarr_array_open() takes */
zarr_status zarr_array_open_document(zarr_array **out, zarr_context *ctx,
                                     const char *text, const char *attributes,
                                     const char *path, zarr_store *store,
                                     const zarr_array_open_options *opts, zarr_error *err)
{
    zarr_store *keep = store ? zarr_store_ref(store) : NULL;
    struct zr_array_state *state = NULL;
    zarr_array_open_options o;
    zarr_array *a = NULL;
    char *normal = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_NEED(ctx, err);
    if (!text || (store && zr_store_context(store) != ctx))
        ZR_TRY(
            zr_fail(err, ZARR_ERR_INVALID,
                    text ? "the store belongs to another context" : "no text is given"));
    ZR_TRY(zr_array_options_read(&o, opts, ZARR_OPEN_GRID_SHAPE | ZARR_OPEN_STORED, err));
    if (!store && (o.flags & ZARR_OPEN_STORED))
        ZR_FAIL(err, ZARR_ERR_INVALID, "ZARR_OPEN_STORED needs a store");
    if (!store)
        ZR_TRY(no_store(&keep, ctx, err));
    ZR_TRY(zr_path_normal(&normal, ctx->alloc, path ? path : "", &ctx->limits, err));
    ZR_TRY(zr_array_new(&a, keep, normal, &o, err));
    a->may_go = a->may_go && (o.flags & ZARR_OPEN_STORED);
    a->may_probe = store || o.chunk_store;
    a->grid_shape = (o.flags & ZARR_OPEN_GRID_SHAPE) != 0;
    st = state_of_text(&state, a, text, attributes, o.zarr_format, o.cancel, err);
    if (st == ZARR_OK)
        st = zr_array_adopt(a, state, o.cancel, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, a->h.path);
        goto out;
    }
    *out = a; /* moved */
    a = NULL;
out:
    zarr_array_free(a);
    zarr_store_free(keep);
    return st;
}

/* ---- another handle ----------------------------------------------------- */

/* Takes what the options leave to defaults from the array. */
static void inherit_options(zarr_array_open_options *o, const zarr_array *a)
{
    o->chunk_store = o->chunk_store ? o->chunk_store : a->chunk_store;
    o->empty_chunks = o->empty_chunks ? o->empty_chunks : a->empty_chunks;
    o->missing_chunks = o->missing_chunks ? o->missing_chunks : a->missing_chunks;
    o->pipeline = o->pipeline ? o->pipeline : a->pipeline->name;
    if (!o->codec_preference)
        o->codec_preference = a->codec_preference;
    o->trust = o->trust ? o->trust : a->trust;
    if (o->device_type == 0) {
        o->device_type = a->device_type;
        o->device_id = a->device_id;
    }
}

/* Makes the same state once more, because layouts depend on the options of a handle. */
static zarr_status same_state(struct zr_array_state **out, const zarr_array *a,
                              const zarr_array *from, const struct zr_array_state *s,
                              zarr_error *err)
{
    struct zr_array_source src = {.format = s->meta.format,
                                  .parsed = s->parsed,
                                  .root = s->root,
                                  .nczarr = s->meta.nczarr};
    zarr_status st = ZARR_OK;

    *out = NULL;
    zr_array_source_attrs(&src, s);
    ZR_TRY(zr_array_state_new(out, a->h.ctx, &src, err));
    ZR_TRY(zr_separator_inherit(a, s, *out, err));
    if (a->grid_shape && !from->grid_shape)
        ZR_TRY(use_grid_shape(a, out, err));
out:
    if (st != ZARR_OK) {
        zr_array_state_free(*out);
        *out = NULL;
    }
    return st;
}

zarr_status zarr_array_with(zarr_array **out, zarr_array *array,
                            const zarr_array_open_options *opts, zarr_error *err)
{
    *out = NULL;
    ZR_NEED(array, err);
    struct zr_array_state *s = zr_array_state_get(array), *state = NULL;
    zarr_array_open_options o;
    zarr_array *a = NULL;
    char *path = NULL;
    bool names_memory = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_array_options_read(&o, opts, ZARR_OPEN_GRID_SHAPE, err));
    names_memory = o.device_type != 0;
    if (o.zarr_format != 0 && o.zarr_format != s->meta.format)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "zarr_format is %" PRId32 ", asked for is %" PRId32, s->meta.format,
                o.zarr_format);
    inherit_options(&o, array);
    path = zr_strdup(array->h.ctx->alloc, array->h.path);
    if (!path)
        ZR_FAIL_MEMORY(err, strlen(array->h.path));
    ZR_TRY(zr_array_new(&a, array->h.store, path, &o, err));
    a->device_by_default = array->device_by_default && !names_memory;
    a->may_go = array->may_go;
    a->may_probe = false;
    a->grid_shape = array->grid_shape || (o.flags & ZARR_OPEN_GRID_SHAPE) != 0;
    atomic_store(&a->has_document, atomic_load(&array->has_document));
    ZR_TRY(same_state(&state, a, array, s, err));
    ZR_TRY(zr_array_adopt(a, state, o.cancel, err));
    *out = a; /* moved */
    a = NULL;
out:
    zr_path_prefix(err, st, array->h.path);
    zarr_array_free(a);
    zr_array_state_free(s);
    return st;
}
