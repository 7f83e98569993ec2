/*
 * dtype/struct_text.c - structs as text: their names in both formats, and their elements
 * as JSON objects with a member for every field and nested lists for subarrays. Every
 * field must have a value, because no rule gives one to a missing field. Base64 of the
 * packed record is also read, little-endian unless stated otherwise (order.c), as
 * zarr-python does.
 * Thread class: frozen.
 * Recursion: through nested structs, ZR_STRUCT_DEPTH_MAX deep.
 */
#include "struct_int.h"

#include <string.h>

/* ---- names ----------------------------------------------------------------- */

static void put_shape(struct zr_sink *s, const struct zr_field *f)
{
    for (int32_t d = 0; d < f->ndim; d++) {
        zr_sink_puts(s, d ? "," : ",[");
        zr_sink_u64(s, f->shape[d]);
    }
    zr_sink_puts(s, f->ndim ? "]" : "");
}

/* Writes "<f4" as a string and a struct's v2 text as a list. */
static void put_v2_type(struct zr_sink *s, const zarr_dtype *dtype)
{
    const bool list = zr_struct_from_dtype(dtype) != NULL;

    zr_sink_puts(s, list ? "" : "\"");
    zr_sink_puts(s, dtype->v2);
    zr_sink_puts(s, list ? "" : "\"");
}

static bool has_form(const struct zr_struct *s, bool v2)
{
    if (!v2 && s->subarrays)
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (!(v2 ? s->field[i].dtype->v2 : s->field[i].dtype->v3_json))
            return false;
    return true;
}

zarr_status zr_struct_write(const zarr_dtype_info *info, uint32_t what, char *text,
                            size_t cap, size_t *text_bytes, zarr_error *err)
{
    const struct zr_struct *st = info->self;
    const bool v2 = what == ZARR_DTYPE_TEXT_V2;
    struct zr_sink s = {text, cap, 0};

    ZR_UNUSED(err);
    *text_bytes = 0;
    if (!has_form(st, v2))
        return ZARR_OK;
    zr_sink_puts(&s, v2 ? "[" : "{\"name\":\"struct\",\"configuration\":{\"fields\":[");
    for (size_t i = 0; i < st->n; i++) {
        const struct zr_field *f = &st->field[i];

        zr_sink_puts(&s, i ? "," : "");
        zr_sink_puts(&s, v2 ? "[" : "{\"name\":");
        zr_sink_puts(&s, f->quoted);
        zr_sink_puts(&s, v2 ? "," : ",\"data_type\":");
        if (v2) {
            put_v2_type(&s, f->dtype);
            put_shape(&s, f);
        } else {
            zr_sink_puts(&s, f->dtype->v3_json);
        }
        zr_sink_puts(&s, v2 ? "]" : "}");
    }
    zr_sink_puts(&s, v2 ? "]" : "]}}");
    return zr_sink_end(&s, text_bytes);
}

/* ---- elements out ------------------------------------------------------------ */

static zarr_status print_one(struct zr_sink *s, const zarr_dtype *dtype, int format,
                             const uint8_t *element, zarr_error *err)
{
    const size_t left = s->n < s->cap ? s->cap - s->n : 0;
    size_t n = 0;
    zarr_status st = dtype->entry->vt.fill_print(
        &dtype->info, format, element, left ? s->text + s->n : NULL, left, &n, err);

    s->n += n;
    return st;
}

/* Opens the lists that begin with element i of a subarray, or closes those that end after
 * it. */
static void put_brackets(struct zr_sink *s, const struct zr_field *f, uint64_t i,
                         char bracket)
{
    for (int32_t d = f->ndim - 1; d >= 0; d--) {
        if (i % f->shape[d] != (bracket == '[' ? 0 : f->shape[d] - 1))
            return;
        zr_sink_putc(s, bracket);
        i /= f->shape[d];
    }
}

static zarr_status print_field(struct zr_sink *s, const struct zr_field *f, int format,
                               const uint8_t *at, zarr_error *err)
{
    for (uint64_t i = 0; i < f->n_items; i++) {
        if (i > 0)
            zr_sink_putc(s, ',');
        put_brackets(s, f, i, '[');
        ZR_CHECK(print_one(s, f->dtype, format, at + i * f->dtype->info.item_bytes, err));
        put_brackets(s, f, i, ']');
    }
    return ZARR_OK;
}

zarr_status zr_struct_fill_print(const zarr_dtype_info *info, int format,
                                 const void *element, char *text, size_t cap,
                                 size_t *text_bytes, zarr_error *err)
{
    const struct zr_struct *self = info->self;
    struct zr_sink s = {text, cap, 0};

    for (size_t i = 0; i < self->n; i++) {
        const struct zr_field *f = &self->field[i];

        zr_sink_putc(&s, i ? ',' : '{');
        zr_sink_puts(&s, f->quoted);
        zr_sink_putc(&s, ':');
        ZR_CHECK(print_field(&s, f, format, (const uint8_t *)element + f->offset, err));
    }
    zr_sink_putc(&s, '}');
    return zr_sink_end(&s, text_bytes);
}

/* ---- elements in --------------------------------------------------------------- */

static zarr_status refuse_shape(const struct zr_field *f, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_INVALID,
                   "field \"%.64s\": nested lists of the subarray's shape are expected",
                   f->name);
}

/* Gives the first item of the list in dimension d. NULL: not a list of the right
 * length. */
static const struct zr_json *open_list(const struct zr_field *f, int32_t d,
                                       const struct zr_json *v)
{
    return zr_json_is(v, ZR_JSON_ARRAY) && zr_json_count(v) == f->shape[d]
               ? v->u.children.first
               : NULL;
}

static zarr_status parse_one(const struct zr_field *f, int format,
                             const struct zr_json *v, uint8_t *at, zarr_error *err)
{
    zarr_status st = zr_dtype_fill_parse(f->dtype, v, format, at, err);

    return st == ZARR_OK ? st : zr_prefix(err, st, "field \"%.64s\"", f->name);
}

/* next[d]: the next value in the open list of dimension d. */
static zarr_status parse_subarray(const struct zr_field *f, int format,
                                  const struct zr_json *v, uint8_t *at, zarr_error *err)
{
    const struct zr_json *next[ZARR_MAX_RANK] = {NULL};
    int32_t d = 0, last = f->ndim - 1;

    for (uint64_t i = 0; i < f->n_items; i++) {
        for (; d <= last; d++) {
            next[d] = open_list(f, d, d ? next[d - 1] : v);
            if (!next[d])
                return refuse_shape(f, err);
        }
        ZR_CHECK(
            parse_one(f, format, next[last], at + i * f->dtype->info.item_bytes, err));
        for (d = last; d >= 0; d--) {
            next[d] = next[d]->next;
            if (next[d])
                break;
        }
        d++; /* open the inner lists again */
    }
    return ZARR_OK;
}

static zarr_status parse_object(const struct zr_struct *self, int format,
                                const struct zr_json *v, uint8_t *element,
                                zarr_error *err)
{
    for (const struct zr_json *m = v->u.children.first; m; m = m->next) {
        const struct zr_field *f = zr_map_get_n(&self->by_name, m->key, m->key_bytes);

        if (!f)
            return zr_fail(err, ZARR_ERR_INVALID, "the struct has no field \"%.64s\"",
                           m->key);
        if (f->ndim > 0)
            ZR_CHECK(parse_subarray(f, format, m, element + f->offset, err));
        else
            ZR_CHECK(parse_one(f, format, m, element + f->offset, err));
    }
    /* Members are unique, so none is missing if there are as many as fields. */
    for (size_t i = 0; zr_json_count(v) != self->n && i < self->n; i++)
        if (!zr_json_get(v, self->field[i].name))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "field \"%.64s\" is missing, every field needs a value",
                           self->field[i].name);
    return ZARR_OK;
}

static zarr_status struct_from_json(const zarr_dtype_info *info, int format,
                                    const struct zr_json *v, void *element,
                                    zarr_error *err)
{
    const struct zr_struct *self = info->self;
    uint64_t zero = 1;
    char shown[64];
    size_t n = 0;

    if (zr_json_is(v, ZR_JSON_OBJECT))
        return parse_object(self, format, v, element, err);
    if (format == 2 && zr_json_u64(v, &zero) && zero == 0) {
        memset(element, 0, (size_t)info->item_bytes);
    } else if (zr_value_base64(v, element, (size_t)info->item_bytes, &n) &&
               n == info->item_bytes) {
        zr_struct_swap(self, &(struct zr_order){.order = ZARR_ORDER_LITTLE}, element, 1);
    } else {
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: a struct's value must be an object with every field, or "
                       "base64 of its %" PRIu64 " bytes",
                       zr_json_excerpt(v, shown, sizeof shown), info->item_bytes);
    }
    return ZARR_OK;
}

zarr_status zr_struct_fill_parse(const zarr_dtype_info *info, int format,
                                 const char *json, void *element, zarr_error *err)
{
    return zr_fill_parse(struct_from_json, info, format, json, element, err);
}

void zr_struct_fill_default(const zarr_dtype_info *info, void *element)
{
    const struct zr_struct *self = info->self;

    for (size_t i = 0; i < self->n; i++) {
        const struct zr_field *f = &self->field[i];

        for (uint64_t k = 0; k < f->n_items; k++)
            zr_dtype_fill_default(f->dtype, (uint8_t *)element + f->offset +
                                                k * f->dtype->info.item_bytes);
    }
}
