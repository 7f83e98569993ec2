/*
 * codecs/objects/object_fill.c - fill values of "|O" arrays with json2 or msgpack2:
 * metadata may have any JSON value. values.c says which element stands for it, and a
 * missing element reads as a stored one of that value does.
 * Thread class: plain functions.
 */
#include "codecs/objects/objects.h"
#include "codecs/objects/values.h"

#include <string.h>

static zarr_status fill_parse(struct zr_json_doc *doc, const char *json, zarr_error *err)
{
    const size_t bytes = strlen(json);
    const zarr_limits limits = {.json_depth = ZR_VALUE_DEPTH,
                                .json_tokens = bytes + 1,
                                .string_bytes = bytes + 1};

    return zr_json_parse(doc, json, bytes, &limits, err);
}

/* Hands a text out as snprintf() does. */
static zarr_status fill_give(const struct zr_str *from, char *text, size_t cap,
                             size_t *text_bytes, zarr_error *err)
{
    const zarr_status st = zr_str_status(from, err);
    const size_t n = cap ? ZR_MIN(from->bytes, cap - 1) : 0;

    if (st != ZARR_OK)
        return st;
    if (cap) {
        memcpy(text, zr_str_text(from), n);
        text[n] = '\0';
    }
    *text_bytes = from->bytes;
    return ZARR_OK;
}

/* Spells all numbers in a value as decoded MessagePack does. */
static void fill_respell(struct zr_json_doc *doc, struct zr_json *root)
{
    struct zr_value_walk walk = {.depth = 0};

    for (const struct zr_json *v = root; v; v = zr_value_next(&walk, v)) {
        struct zr_json *number = (struct zr_json *)(uintptr_t)v; /* doc owns it */
        const struct zr_json *again = NULL;
        struct zr_numpy_value n;
        uint32_t kind = 0;

        if (v->type == ZR_JSON_NUMBER && zr_value_number(v, &kind, &n))
            again = zr_value_new_number(doc, kind, n);
        if (again)
            number->u.text = again->u.text;
    }
}

static zarr_status fill_element(struct zr_values *t, const char *json, bool respell,
                                zarr_vlen *item, zarr_error *err)
{
    ZR_CHECK(fill_parse(&t->doc, json, err));
    if (t->doc.root->type == ZR_JSON_STRING) {
        *item = (zarr_vlen){t->doc.root->u.text.ptr, t->doc.root->u.text.bytes};
        return zr_value_escape(t, item, err);
    }
    if (respell)
        fill_respell(&t->doc, t->doc.root);
    ZR_CHECK(zr_value_text(t, t->doc.root, item, err));
    if (!zr_json_is_ok(&t->doc))
        return zr_fail_memory(err, item->bytes);
    return ZARR_OK;
}

zarr_status zr_object_fill_read(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                                const char *json, char *text, size_t cap,
                                size_t *text_bytes, zarr_error *err)
{
    const bool respell = zr_streq(zarr_codec_spec_name(spec), "msgpack2");
    void *state = NULL;
    zarr_vlen item = {0};
    struct zr_str out;
    zarr_status st = ZARR_OK;

    *text_bytes = 0;
    if (zarr_dtype_kind(dtype) != ZARR_KIND_STRING)
        return ZARR_OK;
    zr_str_init(&out, zarr_codec_spec_allocator(spec));
    ZR_TRY(zr_values_open(NULL, &state, err));
    zr_values_begin(state, zarr_codec_spec_allocator(spec));
    ZR_TRY(fill_element(state, json, respell, &item, err));
    zr_json_write_string(&out, item.data, (size_t)item.bytes);
    st = fill_give(&out, text, cap, text_bytes, err);
out:
    zr_str_deinit(&out);
    zr_values_close(state);
    return st;
}

/* INVALID if the codec could not store missing elements: a chunk that is written in part
 * has them. */
static zarr_status fill_check(const zarr_codec_spec *spec, const struct zr_json *v,
                              zarr_error *err)
{
    struct zr_value_rule rule = {.any_float = true};
    struct zr_json2 json;
    int single = 0;
    const char *why = NULL;

    if (zr_streq(zarr_codec_spec_name(spec), "json2")) {
        ZR_CHECK(zr_spec_json2(spec, &json, err));
        rule = (struct zr_value_rule){.any_integer = true, .any_float = !json.finite};
    } else {
        (void)zarr_codec_spec_bool(spec, "use_single_float", &single);
        rule.single = single != 0;
    }
    why = zr_value_unfit(&rule, v);
    if (why)
        return zr_fail(err, ZARR_ERR_INVALID, "fill_value %s, which chunks cannot store",
                       why);
    return ZARR_OK;
}

zarr_status zr_object_fill_write(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                                 const char *json, char *text, size_t cap,
                                 size_t *text_bytes, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct zr_json_doc doc, value;
    bool is_value = false;
    zarr_vlen item;
    struct zr_str out;
    zarr_status st = ZARR_OK;

    *text_bytes = 0;
    if (zarr_dtype_kind(dtype) != ZARR_KIND_STRING)
        return ZARR_OK;
    zr_json_doc_init(&doc, alloc);
    zr_json_doc_init(&value, alloc);
    zr_str_init(&out, alloc);
    ZR_TRY(fill_parse(&doc, json, err));
    if (!zr_json_is(doc.root, ZR_JSON_STRING))
        ZR_TRY(zr_internal(err));
    item = (zarr_vlen){doc.root->u.text.ptr, doc.root->u.text.bytes};
    ZR_TRY(zr_value_parse(&value, &item, &is_value, err));
    if (is_value)
        ZR_TRY(fill_check(spec, value.root, err));
    zr_json_write_tokens(is_value ? value.root : doc.root, &out);
    st = fill_give(&out, text, cap, text_bytes, err);
out:
    zr_str_deinit(&out);
    zr_json_doc_deinit(&value);
    zr_json_doc_deinit(&doc);
    return st;
}
