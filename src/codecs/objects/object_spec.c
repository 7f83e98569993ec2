/*
 * codecs/objects/object_spec.c - numcodecs' codecs for arrays of Python objects, if the
 * objects are text. categorize stores labels as numbers. json2 and msgpack2 store a list
 * of the elements with type and shape after them; they also take bools and numbers. All
 * exist only in v2, as the first filter. meta/array_v2.c puts that filter in the place
 * that array->bytes codecs have in v3. Members that only change how Python sees the same
 * bytes are kept. Thread class: plain functions.
 */
#include "codecs/objects/objects.h"

#include <string.h>

/* Copies the members. Those among `bools` are left out if they are none, which a store's
 * document may have where only encoding needs them. */
static zarr_status object_put(const zarr_codec_spec *raw, const char *const *known,
                              const char *const *bools, char *text, size_t cap,
                              size_t *text_bytes, zarr_error *err)
{
    struct zr_conf_text t;
    int ignored = 0;

    zr_conf_open(&t, text, cap);
    for (; *known; known++) {
        const char *const *b = bools;

        while (b && *b && !zr_streq(*b, *known))
            b++;
        if (!b || !*b || zr_conf_bool(raw, *known, &ignored, NULL) == ZARR_OK)
            zr_conf_put_json(&t, raw, *known);
    }
    return zr_conf_end(&t, text_bytes, err);
}

static void object_any_length(zarr_chunk_spec *out)
{
    out->n_bytes = UINT64_MAX;
    out->exact = 0;
    out->item_bytes_hint = 1;
}

#define OBJECT_RULE "text of any length (|O), bools, integers and floats of 16 to 64 bits"

bool zr_object_number(const zarr_dtype *dtype, struct zr_number *out)
{
    if (zr_numpy_parse(zarr_dtype_v2(dtype), out) && out->parts == 1)
        return true;
    *out = (struct zr_number){0};
    return false;
}

/* The number of elements of a chunk. False if json2 and msgpack2 do not take its type. */
static bool object_count(const zarr_chunk_spec *in, uint64_t *n)
{
    struct zr_number number;

    if (zarr_dtype_kind(in->dtype) == ZARR_KIND_STRING)
        *n = in->n_bytes / sizeof(zarr_vlen);
    else if (zr_object_number(in->dtype, &number))
        *n = in->n_bytes / number.bytes;
    else
        return false;
    return true;
}

/* ---- json2 ------------------------------------------------------------------------ */

static const char *const json_members[] = {
    "encoding", "skipkeys",   "ensure_ascii", "check_circular", "allow_nan",
    "indent",   "separators", "sort_keys",    "strict",         NULL};

static const char *const json_no_separators[] = {
    "encoding",       "skipkeys",  "ensure_ascii",
    "check_circular", "allow_nan", "indent",
    "sort_keys",      "strict",    NULL};

/* The text between elements: a comma, perhaps with blanks around it. */
static bool json_comma(const struct zr_json *v, const char **out)
{
    const char *text = zr_json_string(v);

    *out = text;
    if (!text)
        return false;
    text += strspn(text, " \n\r\t");
    return *text == ',' && text[1 + strspn(text + 1, " \n\r\t")] == '\0';
}

/* Sets *comma if these are two texts, a comma in the first. */
static bool json_separators(const struct zr_json *v, const char **comma)
{
    const char *found = NULL;

    if (!zr_json_is(v, ZR_JSON_ARRAY) || zr_json_count(v) != 2 ||
        !json_comma(v->u.children.first, &found))
        return false;
    *comma = found;
    return true;
}

/* Whether a text is one of the names, as Python compares the names of encodings: without
 * regard to case, and with '-', '_' and blanks as one. */
static bool json_is_encoding(const char *text, const char *const *names)
{
    for (; text && *names; names++) {
        const char *a = text, *b = *names;

        for (; *a && *b; a++, b++) {
            const char c = *a == '_' || *a == ' '   ? '-'
                           : *a >= 'A' && *a <= 'Z' ? (char)(*a - 'A' + 'a')
                                                    : *a;

            if (c != *b)
                break;
        }
        if (!*a && !*b)
            return true;
    }
    return false;
}

zarr_status zr_spec_json2(const zarr_codec_spec *spec, struct zr_json2 *out,
                          zarr_error *err)
{
    static const char *const utf8[] = {"utf-8", "utf8", "u8", "utf", "cp65001", NULL};
    static const char *const plain[] = {"ascii", "us-ascii", "646", NULL};
    const char *encoding = zarr_codec_spec_text(spec, "encoding");
    const struct zr_json *separators = zr_conf_value(spec, "separators");
    int ascii = 1, nan = 1;

    *out = (struct zr_json2){.comma = zr_conf_has(spec, "indent") ? ", " : ","};
    ZR_CHECK(zr_conf_encoder_bool(spec, "ensure_ascii", &ascii, err));
    ZR_CHECK(zr_conf_encoder_bool(spec, "allow_nan", &nan, err));
    out->finite = !nan;
    out->ascii = ascii != 0 || json_is_encoding(encoding, plain);
    if (zr_conf_has(spec, "encoding") && !json_is_encoding(encoding, utf8) &&
        !json_is_encoding(encoding, plain))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "json2: encoding \"%.64s\", \"utf-8\" and \"ascii\" are known",
                       encoding ? encoding : "?");
    if (zr_conf_has(spec, "separators") && !json_separators(separators, &out->comma) &&
        !zr_conf_is_stored(spec))
        return zr_conf_refuse(spec, "separators", "two texts, a comma in the first", err);
    return ZARR_OK;
}

static zarr_status json_canonical(const zarr_codec_spec *raw, int format, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const bools[] = {"ensure_ascii", "allow_nan", NULL};
    const char *comma = NULL;
    const bool as_given = json_separators(zr_conf_value(raw, "separators"), &comma);
    struct zr_json2 ignored;

    ZR_CHECK(zr_conf_check_members(raw, format, json_members, err));
    ZR_CHECK(zr_spec_json2(raw, &ignored, err));
    return object_put(raw, as_given ? json_members : json_no_separators, bools, text, cap,
                      text_bytes, err);
}

static zarr_status json_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    uint64_t n = 0;

    ZR_UNUSED(fill_out);
    if (!object_count(in, &n))
        return zr_spec_refuse_dtype(spec, in->dtype, OBJECT_RULE, err);
    object_any_length(out);
    return ZARR_OK;
}

const zarr_codec_spec_vtable zr_spec_text_json = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V2,
    .name = "json2",
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = json_canonical,
    .resolve = json_resolve,
    .fill_read = zr_object_fill_read,
    .fill_write = zr_object_fill_write,
};

/* ---- msgpack2 --------------------------------------------------------------------- */

static const char *const msgpack_members[] = {"raw", "use_single_float", "use_bin_type",
                                              NULL};

static zarr_status msgpack_canonical(const zarr_codec_spec *raw, int format, char *text,
                                     size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const bools[] = {"raw", "use_single_float", "use_bin_type", NULL};
    int bytes = 0, ignored = 0;
    uint64_t zero = 0;

    ZR_CHECK(zr_conf_check_members(raw, format, msgpack_members, err));
    if (!zr_conf_is_stored(raw) || !zr_json_u64(zr_conf_value(raw, "raw"), &zero) || zero)
        ZR_CHECK(zr_conf_bool(raw, "raw", &bytes, err));
    ZR_CHECK(zr_conf_encoder_bool(raw, "use_single_float", &ignored, err));
    ZR_CHECK(zr_conf_encoder_bool(raw, "use_bin_type", &ignored, err));
    if (bytes)
        return zr_fail(
            err, ZARR_ERR_UNSUPPORTED,
            "msgpack2: with raw the elements are bytes; only text is supported");
    return object_put(raw, msgpack_members, bools, text, cap, text_bytes, err);
}

/* MessagePack lists have 32-bit lengths. Here two entries follow the elements. */
static zarr_status msgpack_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                   zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    uint64_t n = 0;

    ZR_UNUSED(fill_out);
    if (!object_count(in, &n))
        return zr_spec_refuse_dtype(spec, in->dtype, OBJECT_RULE, err);
    if (in->ndim == 0)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "msgpack2 cannot encode an array without dimensions");
    if (n > UINT32_MAX - 2)
        return zr_fail(
            err, ZARR_ERR_INVALID,
            "msgpack2: chunks of %" PRIu64 " elements, at most 2^32 - 3 are possible", n);
    object_any_length(out);
    return ZARR_OK;
}

const zarr_codec_spec_vtable zr_spec_text_msgpack = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V2,
    .name = "msgpack2",
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = msgpack_canonical,
    .resolve = msgpack_resolve,
    .fill_read = zr_object_fill_read,
    .fill_write = zr_object_fill_write,
};

/* ---- categorize ------------------------------------------------------------------- */

static bool categorize_is_object(const char *dtype)
{
    return dtype &&
           (zr_streq(dtype, "|O") || zr_streq(dtype, "O") || zr_streq(dtype, "object"));
}

/* How many labels the type can number, from 1. */
static uint64_t categorize_most(const struct zr_number *type)
{
    return UINT64_MAX >> (64 - type->bits + (type->kind == ZARR_KIND_INT));
}

zarr_status zr_spec_categorize(const zarr_codec_spec *spec, struct zr_categorize *out,
                               zarr_error *err)
{
    const struct zr_json *labels = zr_conf_value(spec, "labels");
    const char *astype = zarr_codec_spec_text(spec, "astype");

    *out = (struct zr_categorize){.astype = zr_number_make(ZARR_KIND_UINT, 1)};
    if (zr_conf_has(spec, "astype") &&
        (!zr_numpy_parse(astype, &out->astype) || !zr_number_is_whole(&out->astype)))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "categorize: astype \"%.64s\" is not an integer of 8 to 64 bits",
                       astype ? astype : "?");
    if (!zr_json_is(labels, ZR_JSON_ARRAY))
        return zr_conf_refuse(spec, "labels", "a list of texts", err);
    out->label = labels->u.children.first;
    out->n = zr_json_count(labels);
    for (const struct zr_json *v = out->label; v; v = v->next)
        if (v->type != ZR_JSON_STRING)
            return zr_conf_refuse(spec, "labels", "a list of texts", err);
    if (out->n > categorize_most(&out->astype))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "categorize: %" PRIu64 " labels, astype \"%s\" has numbers for "
                       "%" PRIu64,
                       out->n, astype ? astype : "|u1", categorize_most(&out->astype));
    return ZARR_OK;
}

static zarr_status categorize_canonical(const zarr_codec_spec *raw, int format,
                                        char *text, size_t cap, size_t *text_bytes,
                                        zarr_error *err)
{
    static const char *const known[] = {"labels", "dtype", "astype", NULL};
    const char *dtype = zarr_codec_spec_text(raw, "dtype");
    struct zr_categorize ignored;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(zr_spec_categorize(raw, &ignored, err));
    if (!dtype)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "categorize: dtype must be \"|O\" or a NumPy type such as "
                       "\"<U8\"");
    return object_put(raw, known, NULL, text, cap, text_bytes, err);
}

/* UNSUPPORTED unless the array has the data type that the filter decodes to. */
static zarr_status categorize_type(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                                   zarr_error *err)
{
    const char *text = zarr_codec_spec_text(spec, "dtype");
    const bool big = zr_spec_input(spec)->flags & ZARR_INPUT_BIG_ENDIAN;
    const zarr_dtype *own = NULL;
    uint32_t order = ZR_ORDER_NATIVE;

    if (zarr_dtype_kind(dtype) == ZARR_KIND_STRING && categorize_is_object(text))
        return ZARR_OK;
    if (zarr_dtype_kind(dtype) != ZARR_KIND_UTF32 &&
        zarr_dtype_kind(dtype) != ZARR_KIND_STRING)
        return zr_spec_refuse_dtype(spec, dtype, "text", err);
    if (!categorize_is_object(text))
        ZR_CHECK(zr_conf_dtype(spec, "dtype", &own, &order, err));
    if (!own || !zarr_dtype_equal(own, dtype) || (order == ZARR_ORDER_BIG) != big)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "categorize: dtype \"%.64s\" is not the array's, %s%s", text,
                       zarr_dtype_kind(dtype) != ZARR_KIND_UTF32 ? ""
                       : big                                     ? "big-endian "
                                                                 : "little-endian ",
                       zr_dtype_label(dtype));
    return ZARR_OK;
}

static zarr_status categorize_resolve(const zarr_codec_spec *spec,
                                      const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                      void *fill_out, zarr_error *err)
{
    const uint64_t each = zarr_dtype_item_bytes(in->dtype);
    struct zr_categorize c;

    ZR_UNUSED(fill_out);
    ZR_CHECK(zr_spec_categorize(spec, &c, err));
    ZR_CHECK(categorize_type(spec, in->dtype, err));
    out->item_bytes_hint = c.astype.bytes;
    if (!each || !zr_mul(in->n_bytes / each, c.astype.bytes, &out->n_bytes))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "categorize: a chunk of %" PRIu64 " bytes is too large",
                       in->n_bytes);
    return ZARR_OK;
}

/* Its `dtype` gives the byte order of the text that it takes. */
static zarr_status categorize_elements(const zarr_codec_spec *spec, const char *in,
                                       zarr_codec_elements *out, zarr_error *err)
{
    const char *dtype = zarr_codec_spec_text(spec, "dtype");

    ZR_UNUSED(in, err);
    if (dtype && *dtype == '>')
        out->takes[0] = '>';
    return ZARR_OK;
}

const zarr_codec_spec_vtable zr_spec_categorized = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V2,
    .name = "categorize",
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = categorize_canonical,
    .resolve = categorize_resolve,
    .elements = categorize_elements,
};
