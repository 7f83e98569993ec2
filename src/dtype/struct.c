/*
 * dtype/struct.c - records of named fields, packed: v3 `struct` (fields as objects) and
 * its forerunner `structured` (fields as pairs), v2 lists such as
 * [["a","<i4"],["b",">f8",[2,3]],["c",[["d","|u1"]]]]. In memory every field has this
 * machine's byte order, so the type as a whole has none. struct zr_order has the orders
 * in storage (order.c). Only v2 has subarrays.
 * Thread class: frozen once parsed.
 * Recursion: a field's type may be a struct again. Every level is nested JSON, so the
 * parser's limit of depth bounds it.
 */
#include "struct_int.h"

#include <stdio.h>
#include <string.h>

/* A struct in a struct adds four levels of JSON in v3 and two in v2. The limit is below
 * the parser's own default, so that the text written from a type can be read again. */
static const zarr_limits struct_limits = {
    .json_depth = 60,
    .json_tokens = 8 * ZR_STRUCT_FIELDS_MAX + 64, /* per level: each parses a tree */
    .string_bytes = 1 << 20};

static void free_fields(struct zr_struct *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++) {
        zr_free(s->alloc, s->field[i].name);
        zr_free(s->alloc, s->field[i].quoted);
        zr_free(s->alloc, s->field[i].shape);
    }
    zr_free(s->alloc, s->field);
    zr_map_deinit(&s->by_name);
    zr_free(s->alloc, s);
}

static void struct_free(zarr_dtype_info *info)
{
    free_fields(info->self);
    info->self = NULL;
}

const struct zr_struct *zr_struct_from_dtype(const zarr_dtype *dtype)
{
    return dtype && dtype->entry->vt.free == struct_free ? dtype->info.self : NULL;
}

/* ---- one field ----------------------------------------------------------- */

static zarr_status field_refuse(const struct zr_field *f, const char *rule,
                                zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_INVALID, "struct: field \"%.64s\" %s", f->name, rule);
}

/* In v2, NumPy lists the padding of aligned structs as fields without a name and calls
 * field i of these "f<i>". */
static zarr_status field_name(struct zr_struct *s, struct zr_field *f,
                              const struct zr_json *v, bool v2, zarr_error *err)
{
    const char *name = zr_json_string(v);
    zarr_status st = ZARR_OK;
    struct zr_str quoted;
    char numbered[24];

    zr_str_init(&quoted, s->alloc);
    if (v2 && name && !*name) {
        snprintf(numbered, sizeof numbered, "f%td", f - s->field);
        name = numbered;
    }
    if (!name || !*name)
        ZR_FAIL(err, ZARR_ERR_INVALID, "struct: a field's name must be a string, not %s",
                name ? "an empty one" : zr_json_type_text(v));
    if (zr_map_get(&s->by_name, name))
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "struct: two fields are called \"%.64s\", "
                "but names must be unique",
                name);
    zr_json_write_string(&quoted, name, strlen(name));
    ZR_TRY(zr_str_status(&quoted, err));
    f->quoted = zr_str_take(&quoted);
    f->name = zr_strdup(s->alloc, name);
    if (!f->quoted || !f->name)
        ZR_FAIL_MEMORY(err, strlen(name));
    st = zr_map_put(&s->by_name, name, f, err);
out:
    zr_str_deinit(&quoted);
    return st;
}

/* Reads a shape: [2,3], or 2 for [2]. */
static zarr_status field_shape(const struct zr_struct *s, struct zr_field *f,
                               const struct zr_json *v, zarr_error *err)
{
    const struct zr_json *item = zr_json_is(v, ZR_JSON_ARRAY) ? v->u.children.first : v;
    const size_t n = zr_json_is(v, ZR_JSON_ARRAY) ? zr_json_count(v) : 1;

    if (n > ZARR_MAX_RANK)
        return field_refuse(f, "has a subarray of too many dimensions", err);
    f->shape = zr_calloc(s->alloc, ZR_MAX(n, (size_t)1), sizeof *f->shape);
    if (!f->shape)
        return zr_fail_memory(err, n * sizeof *f->shape);
    for (; f->ndim < (int32_t)n; item = item->next, f->ndim++) {
        if (!zr_json_u64(item, &f->shape[f->ndim]))
            return field_refuse(
                f, "has a subarray whose shape is not a list of positive integers", err);
        if (f->shape[f->ndim] == 0)
            return zr_fail(
                err, ZARR_ERR_UNSUPPORTED,
                "struct: field \"%.64s\" has a subarray whose shape has a zero", f->name);
    }
    if (!zr_product_u64(f->shape, n, &f->n_items))
        return field_refuse(f, "has a subarray too large to count", err);
    return ZARR_OK;
}

static zarr_status field_type(const struct zr_struct *s, struct zr_field *f,
                              const zarr_dtype_host *host, const struct zr_json *v,
                              bool v2, zarr_error *err)
{
    const char *bare = v2 ? zr_json_string(v) : NULL; /* "<i4" is not a v3 name */
    zarr_status st = ZARR_OK;
    struct zr_str text;

    zr_str_init(&text, s->alloc);
    if ((bare && *bare && strchr("[{\"", *bare)) ||
        (!zr_json_is(v, ZR_JSON_STRING) &&
         !zr_json_is(v, v2 ? ZR_JSON_ARRAY : ZR_JSON_OBJECT))) {
        st = field_refuse(f, "has no data type", err);
        goto out;
    }
    if (bare) {
        zr_str_puts(&text, bare);
    } else {
        zr_json_write(v, 0, &text);
    }
    ZR_TRY(zr_str_status(&text, err));
    st = host->find(&f->dtype, host, zr_str_text(&text), err);
    if (st != ZARR_OK) {
        zr_prefix(err, st, "struct: field \"%.64s\"", f->name);
        goto out;
    }
    if (f->dtype->info.item_bytes == 0 || zarr_dtype_variable(f->dtype))
        st = field_refuse(f, "has a data type of variable length", err);
    else if (f->dtype->info.kind == ZARR_KIND_OPTIONAL)
        st = field_refuse(f, "may be missing, which a record cannot express", err);
out:
    zr_str_deinit(&text);
    return st;
}

/* Places a complete field: sets its offset and adds its size to the struct. */
static zarr_status field_place(struct zr_struct *s, struct zr_field *f, zarr_error *err)
{
    const struct zr_struct *below = zr_struct_from_dtype(f->dtype);
    uint64_t bytes = 0;

    f->offset = s->bytes;
    if (!zr_mul(f->n_items, f->dtype->info.item_bytes, &bytes) ||
        !zr_add(s->bytes, bytes, &s->bytes) || s->bytes > ZR_ITEM_BYTES_MAX)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "struct: elements have more than %" PRIu64 " bytes, the supported "
                       "maximum",
                       ZR_ITEM_BYTES_MAX);
    s->n_fields += 1 + (below ? below->n_fields : 0);
    s->n_orders += below ? below->n_orders : f->dtype->info.swap_bytes > 1;
    s->depth = ZR_MAX(s->depth, 1 + (below ? below->depth : 0));
    s->subarrays |= f->ndim > 0 || (below && below->subarrays);
    if (s->n_fields > ZR_STRUCT_FIELDS_MAX || s->depth > ZR_STRUCT_DEPTH_MAX)
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "struct: more than %d fields, or nested deeper than %d",
                       (int)ZR_STRUCT_FIELDS_MAX, (int)ZR_STRUCT_DEPTH_MAX);
    return ZARR_OK;
}

/* Parses {"name":..., "data_type":...} or the old pair [name, data_type]; in v2, [name,
 * dtype] or [name, dtype, shape]. */
static zarr_status field_parse(struct zr_struct *s, struct zr_field *f,
                               const zarr_dtype_host *host, const struct zr_json *v,
                               bool v2, zarr_error *err)
{
    const bool pair = zr_json_is(v, ZR_JSON_ARRAY);
    const size_t n = zr_json_count(v);
    const struct zr_json *name = pair ? zr_json_at(v, 0) : zr_json_get(v, "name");
    const struct zr_json *type = pair ? zr_json_at(v, 1) : zr_json_get(v, "data_type");
    char text[64];

    if (!pair && name && type)
        ZR_CHECK(zr_config_only("struct: a field", v, "name", "data_type", err));
    if ((!pair && (v2 || !zr_json_is(v, ZR_JSON_OBJECT))) || !name || !type ||
        (n != 2 && !(v2 && n == 3)))
        return zr_fail(err, ZARR_ERR_INVALID, "struct: a field must be %s, not %s",
                       v2 ? "a list of name, dtype and perhaps a shape"
                          : "an object with name and data_type",
                       zr_json_excerpt(v, text, sizeof text));
    f->n_items = 1;
    ZR_CHECK(field_name(s, f, name, v2, err));
    ZR_CHECK(field_type(s, f, host, type, v2, err));
    if (n == 3)
        ZR_CHECK(field_shape(s, f, zr_json_at(v, 2), err));
    return field_place(s, f, err);
}

/* ---- the struct ----------------------------------------------------------- */

static zarr_status fields_parse(struct zr_struct *s, const zarr_dtype_host *host,
                                const struct zr_json *list, bool v2, zarr_error *err)
{
    const size_t n = zr_json_count(list);
    char shown[64];

    if (!zr_json_is(list, ZR_JSON_ARRAY) || n == 0)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "struct: fields must be a list of at least one field, not %s",
                       zr_json_excerpt(list, shown, sizeof shown));
    if (n > ZR_STRUCT_FIELDS_MAX)
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "struct: %zu fields, at most %d are supported", n,
                       (int)ZR_STRUCT_FIELDS_MAX);
    s->field = zr_calloc(s->alloc, n, sizeof *s->field);
    if (!s->field)
        return zr_fail_memory(err, n * sizeof *s->field);
    for (const struct zr_json *v = list->u.children.first; v; v = v->next)
        ZR_CHECK(field_parse(s, &s->field[s->n++], host, v, v2, err));
    return ZARR_OK;
}

static zarr_status struct_make(zarr_dtype_info *info, const zarr_dtype_host *host,
                               const struct zr_json *fields, bool v2, zarr_error *err)
{
    struct zr_struct *s = zr_calloc(info->allocator, 1, sizeof *s);
    zarr_status st = ZARR_OK;

    if (!s)
        return zr_fail_memory(err, sizeof *s);
    s->alloc = info->allocator;
    zr_map_init(&s->by_name, s->alloc, NULL);
    ZR_TRY(fields_parse(s, host, fields, v2, err));
    info->kind = ZARR_KIND_STRUCT;
    info->item_bytes = s->bytes;
    info->swap_bytes = 1;
    info->self = s;
    s = NULL;
out:
    free_fields(s);
    return st;
}

/* Parses the text of a caller or a document. Returns INVALID if it is not valid JSON. */
static zarr_status struct_json(struct zr_json_doc *doc, const char *text, zarr_error *err)
{
    zarr_status st = zr_json_parse(doc, text, strlen(text), &struct_limits, err);

    if (st == ZARR_ERR_CORRUPT)
        st = ZARR_ERR_INVALID;
    return st == ZARR_OK ? st : zr_prefix(err, st, "struct");
}

static zarr_status struct_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                                const char *name, const char *json, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc config;

    zr_json_doc_init(&config, info->allocator);
    if (!json)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "data type %.64s needs a configuration with fields", name);
    ZR_TRY(struct_json(&config, json, err));
    if (!zr_json_get(config.root, "fields"))
        ZR_FAIL(err, ZARR_ERR_INVALID, "data type %.64s: the configuration has no fields",
                name);
    st = zr_config_only("the configuration", config.root, "fields", NULL, err);
    if (st != ZARR_OK) {
        zr_prefix(err, st, "data type %.64s", name);
        goto out;
    }
    st = struct_make(info, host, zr_json_get(config.root, "fields"), false, err);
out:
    zr_json_doc_deinit(&config);
    return st;
}

static zarr_status struct_parse_v2(zarr_dtype_info *info, const zarr_dtype_host *host,
                                   const char *v2, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc list;

    zr_json_doc_init(&list, info->allocator);
    ZR_TRY(struct_json(&list, v2, err));
    st = struct_make(info, host, list.root, true, err);
out:
    zr_json_doc_deinit(&list);
    return st;
}

static const char *const struct_aliases[] = {"structured", NULL};
const zarr_dtype_vtable zr_dtype_struct = {
    .struct_size = sizeof(zarr_dtype_vtable),
    .flags = ZARR_DTYPE_FAMILY,
    .name = "struct",
    .aliases = struct_aliases,
    .v2 = "[",
    .parse = struct_parse,
    .parse_v2 = struct_parse_v2,
    .write = zr_struct_write,
    .fill_parse = zr_struct_fill_parse,
    .fill_print = zr_struct_fill_print,
    .fill_default = zr_struct_fill_default,
    .free = struct_free,
};
