/*
 * dtype/text.c - small tools for the tables of the core: writing into the caller's buffer
 * within its bounds, and reading JSON values. Numbers are read straight from the text, so
 * that importing a million of them allocates nothing. Thread class: plain functions.
 */
#include "dtype_int.h"

#include <math.h>
#include <string.h>

/* ---- out ------------------------------------------------------------------ */

void zr_sink_put(struct zr_sink *s, const char *text, size_t n)
{
    if (s->n < s->cap)
        memcpy(s->text + s->n, text, ZR_MIN(n, s->cap - s->n));
    s->n += n;
}

void zr_sink_puts(struct zr_sink *s, const char *text)
{
    zr_sink_put(s, text, strlen(text));
}

void zr_sink_u64(struct zr_sink *s, uint64_t v)
{
    char digits[20], *p = digits + sizeof digits;

    do {
        *--p = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    zr_sink_put(s, p, (size_t)(digits + sizeof digits - p));
}

void zr_sink_base64(struct zr_sink *s, const uint8_t *bytes, size_t n)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < n; i += 3) {
        uint32_t left = (uint32_t)ZR_MIN(n - i, (size_t)3);
        uint32_t group = (uint32_t)bytes[i] << 16;

        group |= left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= left > 2 ? bytes[i + 2] : 0;
        zr_sink_putc(s, letters[group >> 18]);
        zr_sink_putc(s, letters[group >> 12 & 63]);
        zr_sink_putc(s, left > 1 ? letters[group >> 6 & 63] : '=');
        zr_sink_putc(s, left > 2 ? letters[group & 63] : '=');
    }
}

zarr_status zr_sink_end(struct zr_sink *s, size_t *text_bytes)
{
    if (s->cap > 0)
        s->text[ZR_MIN(s->n, s->cap - 1)] = '\0';
    *text_bytes = s->n;
    return ZARR_OK;
}

/* ---- bits ----------------------------------------------------------------- */

void zr_store_low(void *element, uint64_t bits, uint64_t n)
{
    uint8_t one = (uint8_t)bits;
    uint16_t two = (uint16_t)bits;
    uint32_t four = (uint32_t)bits;

    if (n == 1)
        memcpy(element, &one, 1);
    else if (n == 2)
        memcpy(element, &two, 2);
    else if (n == 4)
        memcpy(element, &four, 4);
    else
        memcpy(element, &bits, 8);
}

uint64_t zr_load_low(const void *element, uint64_t n)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    if (n == 1) {
        memcpy(&one, element, 1);
        return one;
    }
    if (n == 2) {
        memcpy(&two, element, 2);
        return two;
    }
    if (n == 4) {
        memcpy(&four, element, 4);
        return four;
    }
    memcpy(&eight, element, 8);
    return eight;
}

/* ---- in ------------------------------------------------------------------- */

zarr_status zr_fill_parse(zr_from_json_fn fn, const zarr_dtype_info *info, int format,
                          const char *json, void *element, zarr_error *err)
{
    const zarr_limits limits = {.string_bytes = 4 * ZR_ITEM_BYTES_MAX};
    struct zr_json number = {.type = ZR_JSON_NUMBER};
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    while (*json == ' ' || *json == '\n' || *json == '\t' || *json == '\r')
        json++;
    if (*json == '-' || (*json >= '0' && *json <= '9')) {
        size_t n = strlen(json);

        while (strchr(" \n\t\r", json[n - 1]))
            n--;
        number.u.text.ptr = json;
        number.u.text.bytes = n;
        return fn(info, format, &number, element, err);
    }
    zr_json_doc_init(&doc, info->allocator);
    st = zr_json_parse(&doc, json, strlen(json), &limits, err);
    if (st == ZARR_ERR_CORRUPT)
        st = zr_prefix(err, ZARR_ERR_INVALID, "%s", info->name);
    if (st == ZARR_OK)
        st = fn(info, format, doc.root, element, err);
    else
        memset(element, 0, (size_t)info->item_bytes); /* it owns nothing */
    zr_json_doc_deinit(&doc);
    return st;
}

zarr_status zr_value_refuse(const zarr_dtype_info *info, const struct zr_json *v,
                            const char *rule, zarr_error *err)
{
    char text[64];

    return zr_fail(err, ZARR_ERR_INVALID, "%s is not a valid %s: %s",
                   zr_json_excerpt(v, text, sizeof text), info->name, rule);
}

/* Reads a decimal with fraction or exponent whose value is a whole number: "5.0", "1e3".
 * Refuses values beyond 2^53, where a double cannot tell neighbours apart. */
static bool parse_whole_float(const char *s, size_t n, int64_t *out)
{
    double f;

    if (!zr_parse_f64(s, n, &f) || !(fabs(f) <= 9007199254740992.0) || f != floor(f))
        return false;
    *out = (int64_t)f;
    return true;
}

zarr_status zr_value_integer(const zarr_dtype_info *info, const struct zr_json *v,
                             int64_t low, uint64_t high, uint64_t *bits, zarr_error *err)
{
    const char *s;
    size_t n;
    int64_t i = 0;
    bool is_signed;

    if (!zr_json_is(v, ZR_JSON_NUMBER) && !zr_json_is(v, ZR_JSON_STRING))
        return zr_value_refuse(info, v, "a whole number is expected", err);
    s = v->u.text.ptr;
    n = v->u.text.bytes;
    if (zr_parse_u64(s, n, bits)) {
        if (*bits > high)
            return zr_value_refuse(info, v, "out of range", err);
        return ZARR_OK;
    }
    is_signed = zr_parse_i64(s, n, &i);
    if (!is_signed && !parse_whole_float(s, n, &i))
        return zr_value_refuse(info, v, "a whole number in range is expected", err);
    if (i < low || (i > 0 && (uint64_t)i > high))
        return zr_value_refuse(info, v, "out of range", err);
    *bits = (uint64_t)i;
    return ZARR_OK;
}

bool zr_value_base64(const struct zr_json *v, void *out, size_t cap, size_t *n)
{
    return zr_json_is(v, ZR_JSON_STRING) && v->u.text.bytes % 4 == 0 &&
           zr_base64_decode(v->u.text.ptr, v->u.text.bytes, out, cap, n);
}

zarr_status zr_config_u64(const char *type, const struct zr_json *config,
                          const char *member, uint64_t max, uint64_t *out,
                          zarr_error *err)
{
    const struct zr_json *v = zr_json_get(config, member);
    char text[64];

    if (!zr_json_u64(v, out) || *out < 1 || *out > max)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "data type %s: %s must be a whole number from 1 to %" PRIu64
                       ", not %s",
                       type, member, max, zr_json_excerpt(v, text, sizeof text));
    return ZARR_OK;
}

zarr_status zr_config_only(const char *what, const struct zr_json *config, const char *a,
                           const char *b, zarr_error *err)
{
    const struct zr_json *m =
        zr_json_is(config, ZR_JSON_OBJECT) ? config->u.children.first : NULL;

    for (; m; m = m->next)
        if (!zr_json_has_key(m, a) && !(b && zr_json_has_key(m, b)))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "%s has the member \"%.64s\" besides %s%s%s", what, m->key, a,
                           b ? " and " : "", b ? b : "");
    return ZARR_OK;
}

zarr_status zr_config_length(const zarr_dtype_info *info, const char *name,
                             const char *json, uint64_t *n, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc config;
    const char *inside = NULL;
    size_t inside_bytes = 0;

    zr_json_doc_init(&config, info->allocator);
    if (!json && zr_split_brackets(name, &inside, &inside_bytes)) {
        if (!zr_parse_u64(inside, inside_bytes, n) || *n == 0)
            st = zr_fail(err, ZARR_ERR_INVALID,
                         "data type \"%.64s\": a number of bytes is expected in brackets",
                         name);
        goto out;
    }
    if (json)
        ZR_TRY(zr_json_parse(&config, json, strlen(json), NULL, err));
    ZR_TRY(zr_config_u64(name, config.root, "length_bytes", ZR_ITEM_BYTES_MAX, n, err));
    st = zr_config_only("the configuration", config.root, "length_bytes", NULL, err);
    zr_prefix(err, st, "data type %s", name);
out:
    zr_json_doc_deinit(&config);
    return st;
}

bool zr_split_brackets(const char *name, const char **inside, size_t *n)
{
    const char *open = strchr(name, '[');
    size_t rest = open ? strlen(open) : 0;

    if (rest < 2 || open[rest - 1] != ']')
        return false;
    *inside = open + 1;
    *n = rest - 2;
    return true;
}
