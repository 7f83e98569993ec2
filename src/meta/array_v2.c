/*
 * meta/array_v2.c - reads a .zarray with its .zattrs into the same struct and the same
 * kind of chain as v3: transpose for order F, `bytes` in the byte order of dtype, then
 * filters and compressor, which keep their v2 spelling. Members that v2 does not know are
 * kept and written back. A missing member means null, a missing order "C".
 * Thread class: plain functions.
 */
#include "meta_int.h"

#include <string.h>

#define OBJECT_LIST "vlen-array"

const char *const zr_array_v2_members[] = {
    "zarr_format",         "shape", "chunks",  "dtype",
    "fill_value",          "order", "filters", "compressor",
    "dimension_separator", NULL,
};

static zarr_status read_order(struct zr_array_meta *m, const struct zr_json *v,
                              zarr_error *err)
{
    m->order = 'C';
    if (!v || zr_json_is_text(v, "C"))
        return ZARR_OK;
    if (!zr_json_is_text(v, "F"))
        return zr_meta_refuse("order", "\"C\" or \"F\"", v, err);
    m->order = 'F';
    return ZARR_OK;
}

static zarr_status read_separator(struct zr_array_meta *m, const struct zr_meta_env *env,
                                  const struct zr_json *v, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc doc;
    struct zr_json *config;

    zr_json_doc_init(&doc, m->alloc);
    m->separator_given = v && v->type != ZR_JSON_NULL;
    if (m->separator_given && !zr_json_is_text(v, ".") && !zr_json_is_text(v, "/")) {
        st = zr_meta_refuse("dimension_separator", "\".\" or \"/\"", v, err);
        goto out;
    }
    config = zr_json_new(&doc, ZR_JSON_OBJECT);
    zr_json_set(&doc, config, "separator",
                zr_json_new_text(&doc, m->separator_given ? zr_json_string(v) : "."));
    ZR_TRY(zr_meta_doc_status(&doc, err));
    ZR_TRY(zr_key_encoding_parse(&m->keys, env->grids, "v2", config, err));
out:
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status read_codecs(struct zr_array_meta *m, const struct zr_json *root,
                               zarr_error *err)
{
    const struct zr_json *filters = zr_json_get(root, "filters");
    const struct zr_json *compressor = zr_json_get(root, "compressor");

    if (filters && filters->type != ZR_JSON_NULL) {
        if (filters->type != ZR_JSON_ARRAY)
            return zr_meta_refuse("filters", "null or a list", filters, err);
        if (zr_json_count(filters) > 0) /* [] is common and means null */
            m->filters = filters;
    }
    if (compressor && compressor->type != ZR_JSON_NULL) {
        if (compressor->type != ZR_JSON_OBJECT)
            return zr_meta_refuse("compressor", "null or an object with an id",
                                  compressor, err);
        m->compressor = compressor;
    }
    return ZARR_OK;
}

static struct zr_json *new_transpose(struct zr_json_doc *doc, int32_t ndim)
{
    struct zr_json *v = zr_json_new(doc, ZR_JSON_OBJECT);
    struct zr_json *order = zr_json_new(doc, ZR_JSON_ARRAY);

    zr_json_set(doc, v, "id", zr_json_new_text(doc, "transpose"));
    for (int32_t d = ndim - 1; d >= 0; d--)
        zr_json_append(doc, order, zr_json_new_i64(doc, d));
    zr_json_set(doc, v, "order", order);
    return v;
}

static struct zr_json *new_bytes(struct zr_json_doc *doc, const struct zr_array_meta *m)
{
    struct zr_json *v = zr_json_new(doc, ZR_JSON_OBJECT);

    zr_json_set(doc, v, "id", zr_json_new_text(doc, "bytes"));
    if (m->byte_order != ZR_ORDER_NATIVE)
        zr_json_set(doc, v, "endian",
                    zr_json_new_text(doc, m->byte_order == ZR_ORDER_MIXED   ? m->leaves
                                          : m->byte_order == ZARR_ORDER_BIG ? "big"
                                                                            : "little"));
    return v;
}

/* Reads m->dtype, and how its elements are stored. */
static zarr_status read_plain(struct zr_array_meta *m, const struct zr_meta_env *env,
                              const struct zr_json *v, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_str leaves;

    zr_str_init(&leaves, m->alloc);
    /* NCZarr of netCDF 4.8 and 4.9.0 writes its char, a byte, as <U1; newer versions
     * write >S1. */
    if (zr_json_is_text(v, "<U1") && zr_json_get(m->document, "_NCZARR_ARRAY"))
        st = zr_dtype_find(env->dtypes, "|S1", &m->dtype, NULL, err);
    else
        st = zr_dtype_from_v2(env->dtypes, v, &m->dtype, &m->byte_order, err);
    if (st != ZARR_OK) {
        zr_prefix(err, st, "dtype");
        goto out;
    }
    if (m->byte_order != ZR_ORDER_MIXED)
        goto out;
    ZR_TRY(zr_dtype_v2_order(m->dtype, v, &m->byte_order, &leaves, err));
    m->leaves = zr_str_take(&leaves);
    if (!m->leaves)
        st = zr_fail_memory(err, leaves.bytes);
out:
    zr_str_deinit(&leaves);
    return st;
}

/* Returns the data type of the elements that an object codec encodes, or NULL if the
 * codec is unknown. */
static const char *object_type(const struct zr_json *codec)
{
    static const char *const known[][2] = {
        {"vlen-utf8", "string"},  {"vlen-bytes", "variable_length_bytes"},
        {"json2", "string"},      {"msgpack2", "string"},
        {"categorize", "string"}, {OBJECT_LIST, OBJECT_LIST}};

    for (size_t i = 0; zr_json_is(codec, ZR_JSON_OBJECT) && i < ZR_COUNT(known); i++)
        if (zr_json_is_text(zr_json_get(codec, "id"), known[i][0]))
            return known[i][1];
    return NULL;
}

/* Finds the codec that turns "|O" into bytes: the first filter, a compressor alone, or
 * the codec beside them under the name that NumPy's users gave it. */
static const struct zr_json *object_codec(const struct zr_array_meta *m,
                                          const struct zr_json *root)
{
    const struct zr_json *first =
        m->filters ? m->filters->u.children.first : m->compressor;
    const struct zr_json *beside = zr_json_get(root, "object_codec");

    if (!object_type(first) && zr_json_is(beside, ZR_JSON_OBJECT))
        return beside;
    return first;
}

static const char *object_field(const struct zr_array_meta *m,
                                const struct zr_json *codec)
{
    return codec == m->compressor                                ? "compressor"
           : m->filters && codec == m->filters->u.children.first ? "filters[0]"
                                                                 : "object_codec";
}

/* zarr-python 3.0 writes "<U5" or "|S5" although it stores text and bytes as object
 * codecs do. */
static bool is_object(const struct zr_array_meta *m, const struct zr_json *dtype)
{
    const char *text = zr_json_string(dtype);
    const struct zr_json *id =
        zr_json_get(m->filters ? m->filters->u.children.first : NULL, "id");

    if (!text)
        return false;
    text += *text && strchr("<>|=", *text);
    return zr_streq(text, "O") || (*text == 'U' && zr_json_is_text(id, "vlen-utf8")) ||
           (*text == 'S' && zr_json_is_text(id, "vlen-bytes"));
}

/* numcodecs writes these by index in either order, and zarr-python reads them as the
 * bytes of any filter. So it scrambles what it wrote itself in order F. */
static zarr_status check_by_index(const struct zr_array_meta *m,
                                  const struct zr_json *codec, zarr_error *err)
{
    const char *id = zr_json_string(zr_json_get(codec, "id"));

    if (m->order != 'F' || m->ndim < 2 || !id ||
        (!zr_streq(id, "json2") && !zr_streq(id, "msgpack2")))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "%s: order \"F\" with the filter \"%s\": zarr-python reads other "
                   "elements than it wrote",
                   object_field(m, codec), id);
}

/* Reads the type of lists; the filter defines their items. */
static zarr_status read_list_type(struct zr_array_meta *m, const struct zr_meta_env *env,
                                  zarr_error *err)
{
    const char *text = zr_json_string(zr_json_get(m->object_codec, "dtype"));
    const zarr_dtype *item = NULL;
    zarr_status st = ZARR_OK;
    struct zr_str name;

    zr_str_init(&name, m->alloc);
    if (!text)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                OBJECT_LIST ": dtype must be a NumPy type such as \"<i4\"");
    st = zr_dtype_find(env->dtypes, text, &item, NULL, err);
    if (st != ZARR_OK)
        ZR_TRY(zr_prefix(err, st, OBJECT_LIST ": dtype"));
    zr_str_printf(&name, OBJECT_LIST "[%s]",
                  zarr_dtype_name(item) ? zarr_dtype_name(item) : zarr_dtype_v2(item));
    ZR_TRY(zr_str_status(&name, err));
    st = zr_dtype_find(env->dtypes, zr_str_text(&name), &m->dtype, NULL, err);
out:
    zr_str_deinit(&name);
    return st;
}

static zarr_status read_dtype(struct zr_array_meta *m, const struct zr_meta_env *env,
                              const struct zr_json *root, zarr_error *err)
{
    const struct zr_json *v = zr_json_get(root, "dtype"), *codec = NULL;
    const char *name = NULL, *id = NULL;
    zarr_status st = ZARR_OK;

    codec = is_object(m, v) ? object_codec(m, root)
            : m->filters    ? m->filters->u.children.first
                            : m->compressor;
    ZR_TRY(check_by_index(m, codec, err));
    if (!is_object(m, v))
        return read_plain(m, env, v, err);
    name = object_type(codec);
    id = zr_json_string(zr_json_get(codec, "id"));
    m->byte_order = ZR_ORDER_NATIVE;
    if (name) {
        m->object_codec = codec;
        if (zr_streq(name, OBJECT_LIST)) {
            st = read_list_type(m, env, err);
            return zr_prefix(err, st, "%s", object_field(m, codec));
        }
        return zr_dtype_find(env->dtypes, name, &m->dtype, NULL, err);
    }
    if (id && zr_refusal_find(zr_codec_refused, "codec", id)) {
        st = zr_fail_refused(err, zr_codec_refused, "codec", id);
        return zr_prefix(err, st, "%s", object_field(m, codec));
    }
    if (id)
        return zr_fail(
            err, ZARR_ERR_UNSUPPORTED,
            "%s: data type \"|O\" with the filter \"%.64s\" in front is not known: "
            "vlen-utf8, vlen-bytes, vlen-array, json2, msgpack2 and categorize are",
            object_field(m, codec), id);
    st = read_plain(m, env, v, err);
out:
    return st;
}

/* The codecs of a chain, and the place of each in the document, for messages. */
struct v2_list {
    struct zr_json_doc doc;
    struct zr_json *items;
    struct zr_chain_place *place;
    size_t n;
};

static void list_add(struct v2_list *l, struct zr_json *codec, const char *field,
                     int32_t at)
{
    const bool ours = zr_streq(field, "order") || zr_streq(field, "dtype");

    zr_json_append(&l->doc, l->items, codec);
    l->place[l->n++] = (struct zr_chain_place){field, at, ours};
}

static void list_add_first(struct v2_list *l, const struct zr_array_meta *m)
{
    struct zr_json *codec = zr_json_copy(&l->doc, m->object_codec);

    if (!m->object_codec)
        list_add(l, new_bytes(&l->doc, m), "dtype", -1);
    else if (m->object_codec == m->compressor)
        list_add(l, codec, "compressor", -1);
    else if (m->filters && m->object_codec == m->filters->u.children.first)
        list_add(l, codec, "filters", 0);
    else
        list_add(l, codec, "object_codec", -1);
}

/* NCZarr leaves its members in .zarray, and since netCDF 4.9.3 among the attributes. In
 * netCDF-C's mode "zarr" only the root has a mark, and the caller knows of it. */
static bool is_nczarr(const struct zr_array_meta *m)
{
    static const char *const members[] = {"_NCZARR_ARRAY", "_nczarr_array"};

    for (size_t i = 0; i < ZR_COUNT(members); i++)
        if (zr_json_get(m->document, members[i]) ||
            zr_json_get(m->attributes, members[i]))
            return true;
    return false;
}

static zarr_status make_chain(struct zr_array_meta *m, const struct zr_meta_env *env,
                              zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zarr_limits limits;
    struct zr_chain_parse_options options = {
        .format = 2, .limits = &limits, .stored = env->stored, .nczarr = m->nczarr};
    struct v2_list l = {.n = 0};
    int32_t at = 0;

    zr_chunk_limits(&limits, env->limits, m->dtype);
    zr_json_doc_init(&l.doc, m->alloc);
    l.items = zr_json_new(&l.doc, ZR_JSON_ARRAY);
    l.place = zr_calloc(m->alloc, zr_json_count(m->filters) + 3, sizeof *l.place);
    if (!l.place)
        ZR_FAIL_MEMORY(err, zr_json_count(m->filters) * sizeof *l.place);
    if (m->order == 'F' && m->ndim > 1)
        list_add(&l, new_transpose(&l.doc, m->ndim), "order", -1);
    list_add_first(&l, m);
    for (const struct zr_json *f = m->filters ? m->filters->u.children.first : NULL; f;
         f = f->next, at++)
        if (f != m->object_codec)
            list_add(&l, zr_json_copy(&l.doc, f), "filters", at);
    if (m->compressor && m->compressor != m->object_codec)
        list_add(&l, zr_json_copy(&l.doc, m->compressor), "compressor", -1);
    ZR_TRY(zr_meta_doc_status(&l.doc, err));
    options.places = l.place;
    st = zr_chain_parse(&m->chain, env->codecs, l.items, &options, m->alloc, err);
out:
    zr_free(m->alloc, l.place);
    zr_json_doc_deinit(&l.doc);
    return st;
}

/* Takes xarray's dimension names if they fit. Attributes are free, so others are no
 * error. */
static zarr_status read_dimensions(struct zr_array_meta *m, zarr_error *err)
{
    const struct zr_json *v = zr_json_get(m->attributes, ZR_DIMENSIONS_ATTRIBUTE);
    zarr_status st = ZARR_OK;
    int32_t d = 0;

    if (!zr_json_is(v, ZR_JSON_ARRAY) || zr_json_count(v) != (size_t)m->ndim)
        return ZARR_OK;
    for (const struct zr_json *name = v->u.children.first; name; name = name->next)
        if (!zr_json_string(name))
            return ZARR_OK;
    st = zr_meta_names_alloc(m, err);
    for (const struct zr_json *name = v->u.children.first; st == ZARR_OK && name;
         name = name->next)
        m->dimension_names[d++] = zr_json_string(name);
    return st;
}

zarr_status zr_array_v2_parse(struct zr_array_meta *m, const struct zr_meta_env *env,
                              zarr_error *err)
{
    const struct zr_json *root = m->document;
    const struct zr_json *fill = zr_json_get(root, "fill_value");
    uint64_t chunks[ZARR_MAX_RANK] = {0};

    ZR_CHECK(zr_meta_shape(m, zr_json_get(root, "shape"), env, err));
    ZR_CHECK(zr_meta_sizes("chunks", zr_json_get(root, "chunks"), m->ndim, chunks, err));
    ZR_CHECK(zr_grid_init_regular(&m->grid, m->ndim, m->shape, chunks, "chunks", err));
    ZR_CHECK(read_codecs(m, root, err));
    ZR_CHECK(read_order(m, zr_json_get(root, "order"), err));
    ZR_CHECK(read_dtype(m, env, root, err));
    ZR_CHECK(read_separator(m, env, zr_json_get(root, "dimension_separator"), err));
    m->nczarr = env->nczarr || is_nczarr(m);
    ZR_CHECK(make_chain(m, env, err));
    ZR_CHECK(zr_meta_fill_v2_read(m, env, fill, err));
    return read_dimensions(m, err);
}

static bool shuffle_is_unclear(const struct zr_json *codec, uint64_t item_bytes,
                               bool *zero)
{
    const struct zr_json *size = zr_json_get(codec, "elementsize");
    uint64_t bytes = 4; /* numcodecs' default */

    if (!zr_json_is_text(zr_json_get(codec, "id"), "shuffle"))
        return false;
    if (size && size->type != ZR_JSON_NULL && (!zr_json_u64(size, &bytes) || bytes != 0))
        return false;
    *zero = bytes == 0;
    return ZR_MAX(bytes, UINT64_C(1)) != item_bytes;
}

bool zr_array_meta_shuffle_is_unclear(const struct zr_array_meta *m, bool *zero)
{
    const uint64_t item_bytes = zarr_dtype_item_bytes(m->dtype);

    *zero = false;
    if (m->format != 2 || m->nczarr || zarr_dtype_variable(m->dtype))
        return false;
    for (const struct zr_json *f = m->filters ? m->filters->u.children.first : NULL; f;
         f = f->next)
        if (shuffle_is_unclear(f, item_bytes, zero))
            return true;
    return shuffle_is_unclear(m->compressor, item_bytes, zero);
}
