/*
 * meta/missing_value.c - the missing value of an array: the value that xarray shows as
 * NaN, as CF's attribute _FillValue says. In v2 it is the fill value. If that is null, it
 * is the attribute, a plain number. In v3 it is the attribute alone, as xarray's
 * FillValueCoder spells it: floats are base64 of the 8 little-endian bytes of a double,
 * complex numbers two of these, integers and bools plain JSON. For text and times xarray
 * (2026.9) raises in v3. A conversion moves the missing value from one place to the
 * other.
 * Thread class: plain functions.
 */
#include "meta_int.h"

#include <math.h>
#include <string.h>

enum value_kind {
    VALUE_NONE,
    VALUE_ODD, /* an attribute that xarray cannot read, or that equals no element */
    VALUE_WHOLE,
    VALUE_REAL
};

struct value {
    enum value_kind kind;
    uint64_t u;    /* WHOLE: two's complement if negative */
    bool negative; /* WHOLE */
    double d[2];   /* REAL; d[1] is 0 unless the type is complex */
};

/* The numbers of NumPy, which xarray compares with a missing value. */
static bool is_number(const zarr_dtype *type, struct zr_number *n)
{
    if (zarr_dtype_kind(type) == ZARR_KIND_BOOL) {
        *n = zr_number_make(ZARR_KIND_BOOL, 1);
        return true;
    }
    return zr_number_from_dtype(type, n) && zr_numpy_has(n);
}

/* Text and bytes: in v2 xarray compares them, too. It never masks times. */
static bool is_text(const zarr_dtype *type)
{
    const uint32_t kind = zarr_dtype_kind(type);

    return kind == ZARR_KIND_BYTES || kind == ZARR_KIND_UTF32 ||
           kind == ZARR_KIND_STRING || kind == ZARR_KIND_VBYTES;
}

/* Whether xarray reads the array as a variable: all dimensions have names. */
static bool is_variable(const struct zr_array_meta *m)
{
    const struct zr_json *names = zr_json_get(m->attributes, ZR_DIMENSIONS_ATTRIBUTE);

    if (m->format == 2)
        return zr_json_is(names, ZR_JSON_ARRAY) &&
               zr_json_count(names) == (size_t)m->ndim;
    for (int32_t d = 0; d < m->ndim; d++)
        if (!m->dimension_names || !m->dimension_names[d])
            return false;
    return true;
}

static bool has_nan(const struct value *v)
{
    return v->kind == VALUE_REAL && (isnan(v->d[0]) || isnan(v->d[1]));
}

/* Whether they mask the same elements. */
static bool same_value(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == VALUE_WHOLE)
        return a->u == b->u && a->negative == b->negative;
    return (has_nan(a) && has_nan(b)) || (a->d[0] == b->d[0] && a->d[1] == b->d[1]);
}

static bool is_all_zero(const uint8_t *bytes, uint64_t n)
{
    while (n > 0 && bytes[n - 1] == 0)
        n--;
    return n == 0;
}

/* ---- reading ------------------------------------------------------------------- */

static struct value whole_value(uint64_t u, bool negative)
{
    return (struct value){.kind = VALUE_WHOLE, .u = u, .negative = negative};
}

static struct value element_value(const struct zr_number *n, const uint8_t *element)
{
    const struct zr_number part = zr_number_part(n);
    const struct zr_numpy_value first = zr_numpy_load(&part, element);
    struct value v = {.kind = VALUE_REAL, .d = {first.d, 0}};

    if (!part.real)
        return whole_value(first.u, n->kind == ZARR_KIND_INT && (int64_t)first.u < 0);
    if (n->parts == 2)
        v.d[1] = zr_numpy_load(&part, element + part.bytes).d;
    return v;
}

/* An integer or bool. Python's int() cuts the fraction in v3; in v2 no element equals a
 * number with a fraction. */
static struct value read_whole(const struct zr_number *n, const struct zr_json *v,
                               int32_t format)
{
    struct value out = {.kind = VALUE_ODD};
    bool truth = false;
    int64_t i = 0;
    uint64_t u = 0;
    double d = 0;

    if (zr_json_bool(v, &truth))
        out = whole_value(truth, false);
    else if (zr_json_u64(v, &u))
        out = whole_value(u, false);
    else if (zr_json_i64(v, &i))
        out = whole_value((uint64_t)i, i < 0);
    else if (zr_json_f64(v, &d) && fabs(d) < 9e18 && (format == 3 || d == trunc(d)))
        out = whole_value((uint64_t)(int64_t)d, (int64_t)d < 0);
    if (n->kind == ZARR_KIND_BOOL && out.kind == VALUE_WHOLE) {
        if (format == 2 && (out.negative || out.u > 1))
            out.kind = VALUE_ODD;
        else
            out = whole_value(out.u != 0, false);
    }
    return out;
}

static bool read_base64(const struct zr_json *v, double *out)
{
    uint8_t bytes[sizeof(uint64_t)];
    uint64_t bits = 0;
    size_t n = 0;

    if (!zr_json_is(v, ZR_JSON_STRING) ||
        !zr_base64_decode(v->u.text.ptr, v->u.text.bytes, bytes, sizeof bytes, &n) ||
        n != sizeof bytes)
        return false;
    for (size_t i = sizeof bytes; i-- > 0;)
        bits = bits << 8 | bytes[i];
    memcpy(out, &bits, sizeof bits);
    return true;
}

/* Reads a plain number in v3 as well, which xarray refuses. */
static struct value read_real(const struct zr_number *n, const struct zr_json *v,
                              int32_t format)
{
    struct value out = {.kind = VALUE_REAL};

    if (format == 3 && n->parts == 2 && zr_json_is(v, ZR_JSON_ARRAY) &&
        zr_json_count(v) == 2 && read_base64(zr_json_at(v, 0), &out.d[0]) &&
        read_base64(zr_json_at(v, 1), &out.d[1]))
        return out;
    if (format == 3 && n->parts == 1 && read_base64(v, &out.d[0]))
        return out;
    out.d[1] = 0;
    if (zr_json_is_text(v, "NaN")) /* so NaN is written in our attributes */
        out.d[0] = NAN;
    else if (!zr_json_f64(v, &out.d[0]))
        out.kind = VALUE_ODD;
    return out;
}

static struct value attribute_value(const struct zr_array_meta *m,
                                    const struct zr_number *n)
{
    const struct zr_json *v = zr_json_get(m->attributes, ZR_MISSING_ATTRIBUTE);

    if (!v)
        return (struct value){.kind = VALUE_NONE};
    if (m->format == 2 && zr_json_is(v, ZR_JSON_ARRAY) && zr_json_count(v) == 1)
        v = zr_json_at(v, 0);
    return zr_number_part(n).real ? read_real(n, v, m->format)
                                  : read_whole(n, v, m->format);
}

/* ---- writing ------------------------------------------------------------------- */

static struct zr_json *whole_json(const struct zr_number *n, const struct value *v,
                                  struct zr_json_doc *doc)
{
    if (n->kind == ZARR_KIND_BOOL)
        return zr_json_new_bool(doc, v->u != 0);
    return v->negative ? zr_json_new_i64(doc, (int64_t)v->u) : zr_json_new_u64(doc, v->u);
}

static zarr_status base64_json(double d, struct zr_json_doc *doc,
                               const zarr_allocator *alloc, struct zr_json **out,
                               zarr_error *err)
{
    uint8_t bytes[sizeof(uint64_t)];
    struct zr_str text;
    uint64_t bits;
    zarr_status st;

    memcpy(&bits, &d, sizeof bits);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    zr_str_init(&text, alloc);
    zr_base64_encode(&text, bytes, sizeof bytes);
    st = zr_str_status(&text, err);
    if (st == ZARR_OK)
        *out = zr_json_new_text(doc, zr_str_text(&text));
    zr_str_deinit(&text);
    return st;
}

/* As the attribute of v3. */
static zarr_status value_v3(const struct zr_array_meta *m, const struct zr_number *n,
                            const struct value *v, struct zr_json_doc *doc,
                            struct zr_json **out, zarr_error *err)
{
    struct zr_json *part[2] = {NULL, NULL};

    if (v->kind == VALUE_WHOLE) {
        *out = whole_json(n, v, doc);
        return ZARR_OK;
    }
    for (int i = 0; i < n->parts; i++)
        ZR_CHECK(base64_json(v->d[i], doc, m->alloc, &part[i], err));
    *out = part[0];
    if (n->parts == 2) {
        *out = zr_json_new(doc, ZR_JSON_ARRAY);
        zr_json_append(doc, *out, part[0]);
        zr_json_append(doc, *out, part[1]);
    }
    return ZARR_OK;
}

static struct zr_json *real_json(double d, struct zr_json_doc *doc)
{
    char text[40];

    if (!isfinite(d))
        return zr_json_new_text(doc, isnan(d) ? "NaN" : d < 0 ? "-Infinity" : "Infinity");
    (void)zr_format_f64(text, sizeof text, d);
    return zr_json_new_number(doc, text);
}

/* As numbers that people read. */
static struct zr_json *value_plain(const struct zr_number *n, const struct value *v,
                                   struct zr_json_doc *doc)
{
    struct zr_json *list;

    if (v->kind == VALUE_WHOLE)
        return whole_json(n, v, doc);
    if (n->parts == 1)
        return real_json(v->d[0], doc);
    list = zr_json_new(doc, ZR_JSON_ARRAY);
    zr_json_append(doc, list, real_json(v->d[0], doc));
    zr_json_append(doc, list, real_json(v->d[1], doc));
    return list;
}

static void store_value(const struct zr_number *n, const struct value *v,
                        uint8_t *element)
{
    const struct zr_number part = zr_number_part(n);

    for (int i = 0; i < n->parts; i++)
        zr_numpy_store(&part, element + (size_t)i * part.bytes,
                       (struct zr_numpy_value){.u = v->u, .d = v->d[i]});
}

/* Writes the value as v2's fill value. *out stays NULL if the type does not have it. */
static zarr_status value_fill(const struct zr_array_meta *m, const struct zr_number *n,
                              const struct value *v, struct zr_json_doc *doc,
                              struct zr_json **out, zarr_error *err)
{
    uint8_t element[2 * sizeof(double)] = {0};
    struct value back;

    *out = NULL;
    store_value(n, v, element);
    back = element_value(n, element);
    if (!same_value(&back, v))
        return ZARR_OK;
    return zr_dtype_fill_write(m->dtype, element, 2, doc, out, err);
}

/* ---- to v3 --------------------------------------------------------------------- */

static zarr_status plan_v3(struct zr_missing_change *out, const struct zr_array_meta *m,
                           struct zr_json_doc *doc, zarr_error *err)
{
    const bool given = zr_json_get(m->attributes, ZR_MISSING_ATTRIBUTE) != NULL;
    struct zr_number n;
    struct value v;

    if (!is_number(m->dtype, &n)) {
        if (m->fill_defined || given)
            out->warning = "xarray has no form of a missing value for the data type in "
                           "Zarr v3, so the new array has none";
        out->drop = given;
        return ZARR_OK;
    }
    v = m->fill_defined ? element_value(&n, m->fill) : attribute_value(m, &n);
    if (v.kind == VALUE_ODD)
        out->warning = "the attribute " ZR_MISSING_ATTRIBUTE
                       " is not one value of the data type, and xarray cannot open it in "
                       "Zarr v3, so the new array has none";
    out->drop = v.kind == VALUE_ODD;
    return v.kind <= VALUE_ODD ? ZARR_OK : value_v3(m, &n, &v, doc, &out->attribute, err);
}

/* ---- to v2 --------------------------------------------------------------------- */

static void set_null(struct zr_missing_change *out, struct zr_json_doc *doc,
                     bool is_default)
{
    out->fill = zr_json_new(doc, ZR_JSON_NULL);
    out->elements = !is_default;
}

/* In v2, xarray would mask the elements that equal the fill value. It masks no NaN, since
 * NaN is missing already. */
static void plan_unmasked(struct zr_missing_change *out, const struct value *fill,
                          bool is_zero, struct zr_json_doc *doc)
{
    if (!has_nan(fill))
        set_null(out, doc, is_zero);
}

/* The missing value differs from the fill value: either the fill value becomes null,
 * which reads as zero, and the attribute says the missing value in plain, or the fill
 * value becomes the missing value. */
static zarr_status plan_masked(struct zr_missing_change *out,
                               const struct zr_array_meta *m, const struct zr_number *n,
                               const struct value *v, bool is_zero,
                               struct zr_json_doc *doc, zarr_error *err)
{
    const bool plain = v->kind == VALUE_WHOLE ||
                       (isfinite(v->d[0]) && isfinite(v->d[1]) && v->d[1] == 0);
    const bool scaled = zr_json_get(m->attributes, "scale_factor") ||
                        zr_json_get(m->attributes, "add_offset");
    struct zr_json *fill = NULL;

    ZR_CHECK(value_fill(m, n, v, doc, &fill, err));
    if (is_zero && has_nan(v) && !scaled) { /* NaN masks nothing */
        set_null(out, doc, true);
        out->drop = true;
    } else if (plain && (is_zero || !fill)) {
        set_null(out, doc, is_zero);
        out->attribute =
            v->kind == VALUE_WHOLE ? whole_json(n, v, doc) : real_json(v->d[0], doc);
    } else if (fill) {
        out->fill = fill;
        out->elements = out->drop = true;
    } else {
        out->warning = "Zarr v2 has no form for its missing value, the attribute "
                       "" ZR_MISSING_ATTRIBUTE;
    }
    return ZARR_OK;
}

static zarr_status is_empty_text(const struct zr_array_meta *m, struct zr_json_doc *doc,
                                 bool *empty, zarr_error *err)
{
    struct zr_json *text = NULL;

    if (!zarr_dtype_variable(m->dtype)) {
        *empty = is_all_zero(m->fill, zarr_dtype_item_bytes(m->dtype));
        return ZARR_OK;
    }
    ZR_CHECK(zr_dtype_fill_write(m->dtype, m->fill, 3, doc, &text, err));
    *empty = zr_json_is(text, ZR_JSON_STRING) && text->u.text.bytes == 0;
    return ZARR_OK;
}

static zarr_status plan_v2(struct zr_missing_change *out, const struct zr_array_meta *m,
                           struct zr_json_doc *doc, zarr_error *err)
{
    const struct zr_json *attribute = zr_json_get(m->attributes, ZR_MISSING_ATTRIBUTE);
    struct value v = {.kind = VALUE_NONE}, fill = {.kind = VALUE_NONE};
    struct zr_number n;
    bool is_zero = false;

    if (is_number(m->dtype, &n)) {
        fill = element_value(&n, m->fill);
        v = attribute_value(m, &n);
        is_zero = is_all_zero(m->fill, zarr_dtype_item_bytes(m->dtype));
    } else if (!is_text(m->dtype)) {
        return ZARR_OK; /* xarray masks nothing */
    } else if (attribute) {
        v.kind = VALUE_ODD;
    } else {
        ZR_CHECK(is_empty_text(m, doc, &is_zero, err));
    }
    if (v.kind == VALUE_NONE)
        plan_unmasked(out, &fill, is_zero, doc);
    else if (v.kind == VALUE_ODD)
        out->warning = "xarray cannot read its attribute " ZR_MISSING_ATTRIBUTE
                       ", so the attribute and the fill value stay as they are";
    else if (same_value(&v, &fill))
        out->drop = true;
    else
        ZR_CHECK(plan_masked(out, m, &n, &v, is_zero, doc, err));
    return ZARR_OK;
}

/* ---- the room's calls ---------------------------------------------------------- */

zarr_status zr_missing_plan(struct zr_missing_change *out, const struct zr_array_meta *m,
                            int32_t format, struct zr_json_doc *doc, zarr_error *err)
{
    *out = (struct zr_missing_change){0};
    if (m->format == format || !is_variable(m))
        return ZARR_OK;
    ZR_CHECK(format == 3 ? plan_v3(out, m, doc, err) : plan_v2(out, m, doc, err));
    return zr_meta_doc_status(doc, err);
}

void zr_missing_apply(const struct zr_missing_change *c, struct zr_json_doc *doc,
                      struct zr_json *document, struct zr_json *attributes)
{
    struct zr_json *to = attributes ? attributes : zr_json_get(document, "attributes");

    if (c->fill)
        zr_json_set(doc, document, "fill_value", zr_json_copy(doc, c->fill));
    if (c->drop && to)
        (void)zr_json_remove(to, ZR_MISSING_ATTRIBUTE);
    if (!c->attribute)
        return;
    if (!to) {
        to = zr_json_new(doc, ZR_JSON_OBJECT);
        zr_json_set(doc, document, "attributes", to);
    }
    zr_json_set(doc, to, ZR_MISSING_ATTRIBUTE, zr_json_copy(doc, c->attribute));
}

/* The missing value of an array of numbers. */
static struct value missing_value(const struct zr_array_meta *m,
                                  const struct zr_number *n)
{
    return m->format == 2 && m->fill_defined ? element_value(n, m->fill)
                                             : attribute_value(m, n);
}

bool zr_missing_element(const struct zr_array_meta *m, uint8_t *element)
{
    struct zr_number n;
    struct value v, back;

    if (!is_variable(m) || !is_number(m->dtype, &n))
        return false;
    v = missing_value(m, &n);
    if (v.kind <= VALUE_ODD)
        return false;
    store_value(&n, &v, element);
    back = element_value(&n, element);
    /* xarray rounds a missing value to the type of floats, and to no other type */
    return zr_number_part(&n).real || same_value(&back, &v);
}

zarr_status zr_missing_value(struct zr_json **out, bool *variable,
                             const struct zr_array_meta *m, struct zr_json_doc *doc,
                             zarr_error *err)
{
    const bool by_fill = m->format == 2 && m->fill_defined;
    struct zr_number n;
    struct value v;

    *out = NULL;
    *variable = is_variable(m);
    if (!*variable)
        return ZARR_OK;
    if (is_number(m->dtype, &n)) {
        v = missing_value(m, &n);
        if (v.kind > VALUE_ODD && !has_nan(&v))
            *out = value_plain(&n, &v, doc);
    } else if (is_text(m->dtype) && m->format == 2) {
        if (by_fill)
            ZR_CHECK(zr_dtype_fill_write(m->dtype, m->fill, 3, doc, out, err));
        else if (zr_json_get(m->attributes, ZR_MISSING_ATTRIBUTE))
            *out = zr_json_copy(doc, zr_json_get(m->attributes, ZR_MISSING_ATTRIBUTE));
    }
    return zr_meta_doc_status(doc, err);
}
