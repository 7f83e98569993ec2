/*
 * easy/attributes.c - attributes as numbers and texts of C. A value is read and written
 * as JSON text through the public calls of its node. Thread class: plain functions.
 */
#include "easy/easy_int.h"

#include <math.h>
#include <string.h>

static const char *attribute_path(const struct zr_attribute *a)
{
    return a->array ? zarr_array_path(a->array) : zarr_group_path(a->group);
}

static zarr_context *attribute_context(const struct zr_attribute *a)
{
    return zr_store_context(a->array ? zarr_array_store(a->array)
                                     : zarr_group_store(a->group));
}

static zarr_status attribute_check(const struct zr_attribute *a, zarr_error *err)
{
    if (!a->name)
        return zr_fail(err, ZARR_ERR_INVALID, "no attribute is named");
    return ZARR_OK;
}

/* ---- get ------------------------------------------------------------------- */

static zarr_status copy_json(const struct zr_attribute *a, char *text, size_t cap,
                             size_t *bytes, zarr_error *err)
{
    return a->array ? zarr_array_attribute_get(a->array, a->name, text, cap, bytes, err)
                    : zarr_group_attribute_get(a->group, a->name, text, cap, bytes, err);
}

/* Parses the value of the attribute into doc. */
static zarr_status parse_attribute(const struct zr_attribute *a, struct zr_json_doc *doc,
                                   zarr_error *err)
{
    const zarr_context *ctx = attribute_context(a);
    size_t cap = 0, bytes = 0;
    char *text = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(copy_json(a, NULL, 0, &bytes, err));
    while (bytes >= cap) { /* another thread may set a longer one meanwhile */
        ZR_TRY(zr_grow(ctx->alloc, &text, &cap, bytes + 1, 1, err));
        ZR_TRY(copy_json(a, text, cap, &bytes, err));
    }
    ZR_TRY(zr_json_parse(doc, text, bytes, &ctx->limits, err));
out:
    zr_free(ctx->alloc, text);
    return st;
}

/* The caller calls zr_json_doc_deinit(), also after a failure. */
static zarr_status open_attribute(const struct zr_attribute *a, struct zr_json_doc *doc,
                                  zarr_error *err)
{
    const zarr_status st = attribute_check(a, err);

    zr_json_doc_init(doc, st == ZARR_OK ? attribute_context(a)->alloc : NULL);
    return st == ZARR_OK ? parse_attribute(a, doc, err) : st;
}

static zarr_status refuse_value(const struct zr_attribute *a, const struct zr_json *v,
                                const char *wanted, zarr_error *err)
{
    char excerpt[64];

    return zr_fail(err, ZARR_ERR_INVALID, "attribute \"%s\": %s is not %s", a->name,
                   zr_json_excerpt(v, excerpt, sizeof excerpt), wanted);
}

static zarr_status refuse_room(const struct zr_attribute *a, uint64_t n, const char *what,
                               uint64_t cap, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_LIMIT,
                   "attribute \"%s\" has %" PRIu64 " %s, there is room for %" PRIu64,
                   a->name, n, what, cap);
}

/* A number, or one of the texts that stand for numbers that JSON lacks. Whole numbers
 * must be exact; a decimal fraction means the nearest double. */
static bool value_is_double(const struct zr_json *v, double *out)
{
    int64_t i;
    uint64_t u;

    if (zr_json_i64(v, &i)) {
        *out = (double)i;
        return *out < 9223372036854775808.0 && (int64_t)*out == i;
    }
    if (zr_json_u64(v, &u)) {
        *out = (double)u;
        return *out < 18446744073709551616.0 && (uint64_t)*out == u;
    }
    if (zr_json_is_text(v, "NaN"))
        *out = (double)NAN;
    else if (zr_json_is_text(v, "Infinity"))
        *out = (double)INFINITY;
    else if (zr_json_is_text(v, "-Infinity"))
        *out = -(double)INFINITY;
    else
        return zr_json_f64(v, out) && isfinite(*out);
    return true;
}

static bool value_is_int64(const struct zr_json *v, int64_t *out)
{
    const double exact = 9007199254740992.0; /* 2^53 */
    double d;

    if (zr_json_i64(v, out))
        return true;
    if (!zr_json_f64(v, &d) || !(fabs(d) <= exact) || floor(d) != d)
        return false;
    *out = (int64_t)d;
    return true;
}

static bool put_number(enum zr_number_type type, const struct zr_json *v, void *values,
                       uint64_t i)
{
    double d = 0;
    int64_t whole = 0;

    if (type == ZR_TYPE_DOUBLE ? !value_is_double(v, &d) : !value_is_int64(v, &whole))
        return false;
    if (values && type == ZR_TYPE_DOUBLE)
        ((double *)values)[i] = d;
    else if (values)
        ((int64_t *)values)[i] = whole;
    return true;
}

/* The first of n values: those of a list, or a single one. */
static const struct zr_json *first_value(const struct zr_json *v, uint64_t *n)
{
    const bool is_list = zr_json_is(v, ZR_JSON_ARRAY);

    *n = is_list ? zr_json_count(v) : 1;
    return is_list ? v->u.children.first : v;
}

static zarr_status give_numbers(const struct zr_attribute *a, const struct zr_json *root,
                                enum zr_number_type type, void *values, uint64_t cap,
                                uint64_t *n, zarr_error *err)
{
    const char *wanted =
        type == ZR_TYPE_DOUBLE ? "exact as a double" : "a whole number of 64 bits";
    uint64_t have = 0;
    const struct zr_json *first = first_value(root, &have), *v = first;

    for (uint64_t i = 0; i < have; i++, v = v->next)
        if (!put_number(type, v, NULL, i))
            return refuse_value(a, v, wanted, err);
    if (n)
        *n = have;
    else if (have != cap)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "attribute \"%s\" has %" PRIu64 " numbers, expected %" PRIu64,
                       a->name, have, cap);
    if (values && have > cap)
        return refuse_room(a, have, "numbers", cap, err);
    v = first;
    for (uint64_t i = 0; values && i < have; i++, v = v->next)
        (void)put_number(type, v, values, i);
    return ZARR_OK;
}

zarr_status zr_attribute_get_numbers(const struct zr_attribute *a,
                                     enum zr_number_type type, void *values, uint64_t cap,
                                     uint64_t *n, zarr_error *err)
{
    struct zr_json_doc doc;
    zarr_status st = open_attribute(a, &doc, err);

    if (st == ZARR_OK) {
        st = give_numbers(a, doc.root, type, values, cap, n, err);
        zr_path_prefix(err, st, attribute_path(a));
    }
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status give_single_text(const struct zr_attribute *a,
                                    const struct zr_json *root, char *text, size_t cap,
                                    size_t *text_bytes, zarr_error *err)
{
    uint64_t n = 0;
    const struct zr_json *v = first_value(root, &n);
    const char *value = n == 1 ? zr_json_string(v) : NULL;
    size_t bytes;

    if (!value)
        return refuse_value(a, root, "a text without a NUL", err);
    bytes = v->u.text.bytes;
    if (text_bytes)
        *text_bytes = bytes;
    if (!text)
        return ZARR_OK;
    if (bytes >= cap)
        return refuse_room(a, bytes, "bytes and a NUL", cap, err);
    memcpy(text, value, bytes + 1);
    return ZARR_OK;
}

zarr_status zr_attribute_get_text(const struct zr_attribute *a, char *text, size_t cap,
                                  size_t *text_bytes, zarr_error *err)
{
    struct zr_json_doc doc;
    zarr_status st = open_attribute(a, &doc, err);

    if (st == ZARR_OK) {
        st = give_single_text(a, doc.root, text, cap, text_bytes, err);
        zr_path_prefix(err, st, attribute_path(a));
    }
    zr_json_doc_deinit(&doc);
    return st;
}

/* ---- lists of texts -------------------------------------------------------- */

/* Keeps the parsed document, whose strings are the texts. */
struct texts_block {
    zarr_texts texts;  /* first: the caller has its address */
    zarr_context *ctx; /* counted: it has the allocator */
    struct zr_json_doc doc;
    const char *text[];
};

void zarr_texts_free(zarr_texts *texts)
{
    struct texts_block *b = (struct texts_block *)(void *)texts;
    zarr_context *ctx;

    if (!b)
        return;
    ctx = b->ctx;
    zr_json_doc_deinit(&b->doc);
    zr_free(ctx->alloc, b);
    zarr_context_free(ctx);
}

/* Takes the document if it succeeds. */
static zarr_status give_texts(zarr_texts **out, const struct zr_attribute *a,
                              struct zr_json_doc *doc, zarr_error *err)
{
    zarr_context *ctx = attribute_context(a);
    uint64_t n = 0;
    const struct zr_json *v = first_value(doc->root, &n);
    struct texts_block *b = NULL;
    size_t bytes = 0;

    if (zr_mul((size_t)n, sizeof *b->text, &bytes) && zr_add(bytes, sizeof *b, &bytes))
        b = zr_calloc(ctx->alloc, 1, bytes);
    if (!b)
        return zr_fail_memory(err, bytes);
    for (uint64_t i = 0; i < n; i++, v = v->next) {
        b->text[i] = zr_json_string(v);
        if (!b->text[i]) {
            zr_free(ctx->alloc, b);
            return refuse_value(a, v, "a text without a NUL", err);
        }
    }
    b->texts = (zarr_texts){.struct_size = sizeof b->texts, .n = n, .text = b->text};
    b->ctx = zarr_context_ref(ctx);
    b->doc = *doc; /* moved */
    zr_json_doc_init(doc, ctx->alloc);
    *out = &b->texts;
    return ZARR_OK;
}

zarr_status zr_attribute_get_texts(zarr_texts **out, const struct zr_attribute *a,
                                   zarr_error *err)
{
    struct zr_json_doc doc;
    zarr_status st = open_attribute(a, &doc, err);

    if (st == ZARR_OK) {
        st = give_texts(out, a, &doc, err);
        zr_path_prefix(err, st, attribute_path(a));
    }
    zr_json_doc_deinit(&doc);
    return st;
}

/* ---- set ------------------------------------------------------------------- */

static void write_double(struct zr_str *out, double v)
{
    char text[40];

    zr_format_f64(text, sizeof text, v);
    zr_str_printf(out, isfinite(v) ? "%s" : "\"%s\"", text);
}

static zarr_status write_attribute(struct zr_str *out, const struct zr_attribute_value *v,
                                   zarr_error *err)
{
    if (v->n > 0 && !v->doubles && !v->int64s && !v->texts)
        return zr_fail(err, ZARR_ERR_INVALID, "no value is given");
    if (v->is_list)
        zr_str_putc(out, '[');
    for (uint64_t i = 0; i < v->n; i++) {
        if (i > 0)
            zr_str_putc(out, ',');
        if (v->doubles)
            write_double(out, v->doubles[i]);
        else if (v->int64s)
            zr_str_printf(out, "%" PRId64, v->int64s[i]);
        else if (v->texts[i])
            zr_json_write_string(out, v->texts[i], strlen(v->texts[i]));
        else
            return zr_fail(err, ZARR_ERR_INVALID, "text %" PRIu64 " is NULL", i);
    }
    if (v->is_list)
        zr_str_putc(out, ']');
    return zr_str_status(out, err);
}

zarr_status zr_attribute_set(zarr_array *array, zarr_group *group, const char *name,
                             const struct zr_attribute_value *value, zarr_error *err)
{
    const struct zr_attribute a = {.array = array, .group = group, .name = name};
    struct zr_str json;
    zarr_status st = attribute_check(&a, err);

    if (st != ZARR_OK)
        return st;
    zr_str_init(&json, attribute_context(&a)->alloc);
    st = write_attribute(&json, value, err);
    if (st != ZARR_OK)
        zr_path_prefix(err, st, attribute_path(&a));
    else if (array)
        st = zarr_array_attribute_set(array, name, zr_str_text(&json), NULL, err);
    else
        st = zarr_group_attribute_set(group, name, zr_str_text(&json), NULL, err);
    zr_str_deinit(&json);
    return st;
}
