/*
 * array/create/spec_fold.c - removes the two codecs that v2 has no names for from the
 * filters of a new v2 array. `bytes` becomes the byte order of dtype; a transpose that
 * reverses all dimensions becomes order "F"; one that does nothing is dropped. What v2
 * cannot express is refused: other permutations, and either codec after a filter. Thread
 * class: plain functions.
 */
#include "array/create/spec_int.h"

struct fold {
    const struct zr_spec_codecs *c;
    struct zr_json *root;
    bool other, bytes; /* whether such codecs came before */
    char order[2];
    const struct zr_json *endian; /* NULL: as in dtype */
};

static const char *core_name(const struct fold *f, const struct zr_json *v)
{
    const char *id = zr_json_string(zr_json_get(v, "id"));
    const zarr_codec_spec_vtable *vt =
        id ? zr_codec_spec_lookup(&f->c->ctx->codecs, id) : NULL;

    return vt && (zr_streq(vt->name, "bytes") || zr_streq(vt->name, "transpose"))
               ? vt->name
               : NULL;
}

static zarr_status check_place(const struct fold *f, const struct zr_json *v,
                               const char *name, const char *member, zarr_error *err)
{
    if (f->other || f->bytes)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "Zarr v2 cannot express codec \"%s\" after %s", name,
                       f->other ? "a filter" : "\"bytes\"");
    for (const struct zr_json *m = v->u.children.first; m; m = m->next)
        if (!zr_streq(m->key, "id") && !zr_streq(m->key, member))
            return zr_fail(err, ZARR_ERR_INVALID, "%s: unknown member \"%s\"", name,
                           m->key);
    return ZARR_OK;
}

static zarr_status fold_bytes(struct fold *f, const struct zr_json *v, zarr_error *err)
{
    const struct zr_json *endian = zr_json_get(v, "endian");
    char text[64];

    ZR_CHECK(check_place(f, v, "bytes", "endian", err));
    if (!zr_streq(zarr_dtype_codec(f->c->dtype), "bytes"))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "codec bytes does not take data type %s, only types of fixed size",
                       f->c->spec->data_type);
    if (endian && !zr_json_is_text(endian, "little") && !zr_json_is_text(endian, "big"))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "bytes: endian is %s, must be \"little\" or \"big\"",
                       zr_json_excerpt(endian, text, sizeof text));
    f->bytes = true;
    f->endian = endian;
    return ZARR_OK;
}

/* Returns whether the order reverses all dimensions or none. *reversed: it reverses more
 * than one dimension. */
static bool fold_order(const struct zr_json *order, int32_t ndim, bool *reversed)
{
    bool same = true, back = true;
    uint64_t axis = 0;
    int32_t d = 0;

    *reversed = zr_json_is_text(order, "F") && ndim > 1;
    if (zr_json_is_text(order, "F") || zr_json_is_text(order, "C"))
        return true;
    if (!zr_json_is(order, ZR_JSON_ARRAY) || zr_json_count(order) != (size_t)ndim)
        return false;
    for (const struct zr_json *v = order->u.children.first; v; v = v->next, d++) {
        if (!zr_json_u64(v, &axis))
            return false;
        same = same && axis == (uint64_t)d;
        back = back && axis == (uint64_t)(ndim - 1 - d);
    }
    *reversed = back && !same;
    return same || back;
}

static zarr_status fold_transpose(struct fold *f, const struct zr_json *v,
                                  zarr_error *err)
{
    const struct zr_json *order = zr_json_get(v, "order");
    bool reversed = false;
    char text[64];

    ZR_CHECK(check_place(f, v, "transpose", "order", err));
    if (!fold_order(order, f->c->spec->ndim, &reversed))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "transpose: order is %s, in Zarr v2 it must reverse all %" PRId32
                       " dimensions or none",
                       zr_json_excerpt(order, text, sizeof text), f->c->spec->ndim);
    if (reversed)
        f->order[0] = f->order[0] == 'F' ? 'C' : 'F';
    return ZARR_OK;
}

/* *gone: the codec is removed and is no filter. */
static zarr_status fold_one(struct fold *f, const struct zr_json *v, bool *gone,
                            zarr_error *err)
{
    const char *name = core_name(f, v);

    *gone = name != NULL;
    if (!name) {
        f->other = true;
        return ZARR_OK;
    }
    return zr_streq(name, "bytes") ? fold_bytes(f, v, err) : fold_transpose(f, v, err);
}

static zarr_status fold_dtype(const struct fold *f, zarr_error *err)
{
    const bool big = zr_json_is_text(f->endian, "big");
    const struct zr_order order = {big ? ZARR_ORDER_BIG : ZARR_ORDER_LITTLE, NULL};
    struct zr_json *v = NULL;

    if (!f->endian || !zr_dtype_has_order(f->c->dtype))
        return ZARR_OK;
    v = zr_dtype_write_v2(f->c->dtype, &order, f->c->doc);
    if (!v && zr_json_is_ok(f->c->doc))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "bytes: data type \"%s\" has no big-endian order in v2",
                       f->c->spec->data_type);
    zr_json_set(f->c->doc, f->root, "dtype", v);
    return ZARR_OK;
}

zarr_status zr_spec_fold_v2(struct zr_json *root, const struct zr_spec_codecs *c,
                            zarr_error *err)
{
    struct fold f = {.c = c, .root = root, .order = {c->spec->order == 'F' ? 'F' : 'C'}};
    const struct zr_json *filters = zr_json_get(root, "filters");
    const struct zr_json *compressor = zr_json_get(root, "compressor");
    struct zr_json *kept = zr_json_new(c->doc, ZR_JSON_ARRAY);
    zarr_status st = ZARR_OK;
    size_t i = 0;
    bool gone = false;

    if (!zr_json_is(filters, ZR_JSON_ARRAY))
        filters = NULL;
    for (const struct zr_json *v = filters ? filters->u.children.first : NULL; v;
         v = v->next, i++) {
        st = fold_one(&f, v, &gone, err);
        if (st != ZARR_OK)
            ZR_TRY(zr_prefix(err, st, "filters[%zu]", i));
        if (!gone)
            zr_json_append(c->doc, kept, zr_json_copy(c->doc, v));
    }
    st = fold_one(&f, compressor, &gone, err);
    if (st != ZARR_OK)
        ZR_TRY(zr_prefix(err, st, "compressor"));
    ZR_TRY(fold_dtype(&f, err));
    if (gone)
        zr_json_set(c->doc, root, "compressor", zr_json_new(c->doc, ZR_JSON_NULL));
    if (zr_json_count(kept) < zr_json_count(filters))
        zr_json_set(c->doc, root, "filters",
                    zr_json_count(kept) ? kept : zr_json_new(c->doc, ZR_JSON_NULL));
    zr_json_set(c->doc, root, "order", zr_json_new_text(c->doc, f.order));
out:
    return st;
}
