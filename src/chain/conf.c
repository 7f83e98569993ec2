/*
 * chain/conf.c - shared helpers of specifications: they read the members of a
 * configuration and check their rules, refuse unknown members, and write the canonical
 * text. They read through the public getters, so that the core's codecs need nothing that
 * a plug-in lacks. They write by counting bytes as snprintf does. They allocate only for
 * JSON values that are copied as they are. A null member counts as absent, as Python's
 * None does. Written texts contain our own words only, so nothing needs escaping. Thread
 * class: plain functions.
 */
#include "chain/chain_int.h"

#include <stdio.h>
#include <string.h>

zarr_status zr_conf_check_members(const zarr_codec_spec *raw, int format,
                                  const char *const *known, zarr_error *err)
{
    const struct zr_json *m =
        zr_json_is(raw->members, ZR_JSON_OBJECT) ? raw->members->u.children.first : NULL;

    if (format != 3 && raw->stored)
        return ZARR_OK;
    for (; m; m = m->next) {
        bool found = false;

        for (size_t k = 0; known[k] && !found; k++)
            found = zr_json_has_key(m, known[k]);
        if (!found)
            return zr_fail(err, ZARR_ERR_INVALID, "%s: unknown member \"%s\"",
                           zarr_codec_spec_name(raw), m->key);
    }
    return ZARR_OK;
}

bool zr_conf_has(const zarr_codec_spec *raw, const char *member)
{
    const struct zr_json *v = zr_json_get(raw->members, member);

    return v && v->type != ZR_JSON_NULL;
}

const struct zr_json *zr_conf_value(const zarr_codec_spec *raw, const char *member)
{
    return zr_json_get(raw->members, member);
}

zarr_status zr_conf_dtype_v3(const zarr_codec_spec *raw, const char *member,
                             const zarr_dtype **out, zarr_error *err)
{
    return zr_dtype_from_v3(raw->dtypes, zr_conf_value(raw, member), out, err);
}

zarr_status zr_conf_dtype(const zarr_codec_spec *raw, const char *member,
                          const zarr_dtype **out, uint32_t *byte_order, zarr_error *err)
{
    return zr_dtype_find(raw->dtypes, zarr_codec_spec_text(raw, member), out, byte_order,
                         err);
}

zarr_status zr_conf_refuse(const zarr_codec_spec *raw, const char *member,
                           const char *rule, zarr_error *err)
{
    char text[64];

    return zr_fail(err, ZARR_ERR_INVALID, "%s: %s is %s, must be %s",
                   zarr_codec_spec_name(raw), member,
                   zr_json_excerpt(zr_json_get(raw->members, member), text, sizeof text),
                   rule);
}

zarr_status zr_conf_i64(const zarr_codec_spec *raw, const char *member, int64_t lo,
                        int64_t hi, int64_t *v, zarr_error *err)
{
    int64_t got = 0;
    char rule[80];

    if (!zr_conf_has(raw, member))
        return ZARR_OK;
    if (zarr_codec_spec_i64(raw, member, &got) == 0 && got >= lo && got <= hi) {
        *v = got;
        return ZARR_OK;
    }
    (void)snprintf(rule, sizeof rule, "an integer from %" PRId64 " to %" PRId64, lo, hi);
    return zr_conf_refuse(raw, member, rule, err);
}

zarr_status zr_conf_bool(const zarr_codec_spec *raw, const char *member, int *v,
                         zarr_error *err)
{
    if (!zr_conf_has(raw, member) || zarr_codec_spec_bool(raw, member, v) == 0)
        return ZARR_OK;
    return zr_conf_refuse(raw, member, "true or false", err);
}

zarr_status zr_conf_word(const zarr_codec_spec *raw, const char *member,
                         const char *const *words, int *v, zarr_error *err)
{
    const char *got = zarr_codec_spec_text(raw, member);
    char rule[160] = "one of";
    size_t used = strlen(rule);

    for (int i = 0; got && words[i]; i++)
        if (zr_streq(words[i], got)) {
            *v = i;
            return ZARR_OK;
        }
    if (!zr_conf_has(raw, member))
        return ZARR_OK;
    for (int i = 0; words[i] && used < sizeof rule; i++)
        used += (size_t)snprintf(rule + used, sizeof rule - used, " \"%s\"", words[i]);
    return zr_conf_refuse(raw, member, rule, err);
}

/* ---- members that only encoding needs ------------------------------------ */

bool zr_conf_is_stored(const zarr_codec_spec *raw)
{
    return raw->stored;
}

bool zr_conf_is_nczarr(const zarr_codec_spec *raw)
{
    return raw->nczarr;
}

static int64_t conf_nearest(double v, int64_t lo, int64_t hi)
{
    return v <= (double)lo ? lo : v >= (double)hi ? hi : (int64_t)v;
}

zarr_status zr_conf_encoder_i64(const zarr_codec_spec *raw, const char *member,
                                int64_t lo, int64_t hi, int64_t *v, zarr_error *err)
{
    double number = 0;

    if (!raw->stored)
        return zr_conf_i64(raw, member, lo, hi, v, err);
    if (zr_conf_i64(raw, member, lo, hi, v, NULL) != ZARR_OK &&
        zarr_codec_spec_f64(raw, member, &number) == 0 && number == number)
        *v = conf_nearest(number, lo, hi);
    return ZARR_OK;
}

zarr_status zr_conf_encoder_bool(const zarr_codec_spec *raw, const char *member, int *v,
                                 zarr_error *err)
{
    const zarr_status st = zr_conf_bool(raw, member, v, raw->stored ? NULL : err);

    return raw->stored ? ZARR_OK : st;
}

zarr_status zr_conf_encoder_word(const zarr_codec_spec *raw, const char *member,
                                 const char *const *words, int *v, zarr_error *err)
{
    const zarr_status st = zr_conf_word(raw, member, words, v, raw->stored ? NULL : err);

    return raw->stored ? ZARR_OK : st;
}

/* ---- canonical text ------------------------------------------------------ */

void zr_conf_put_raw(struct zr_conf_text *t, const char *text)
{
    const size_t n = strlen(text);
    const size_t room = t->bytes + 1 < t->cap ? t->cap - 1 - t->bytes : 0;

    if (room > 0)
        memcpy(t->text + t->bytes, text, ZR_MIN(n, room));
    t->bytes += n;
}

static void conf_put_key(struct zr_conf_text *t, const char *member)
{
    zr_conf_put_raw(t, t->any ? ",\"" : "\"");
    zr_conf_put_raw(t, member);
    zr_conf_put_raw(t, "\":");
    t->any = true;
}

void zr_conf_open(struct zr_conf_text *t, char *text, size_t cap)
{
    *t = (struct zr_conf_text){.text = text, .cap = cap};
    zr_conf_put_raw(t, "{");
}

void zr_conf_put_i64(struct zr_conf_text *t, const char *member, int64_t v)
{
    char digits[24];

    (void)snprintf(digits, sizeof digits, "%" PRId64, v);
    conf_put_key(t, member);
    zr_conf_put_raw(t, digits);
}

void zr_conf_put_f64(struct zr_conf_text *t, const char *member, double v)
{
    char digits[40];

    (void)zr_format_f64(digits, sizeof digits, v);
    conf_put_key(t, member);
    zr_conf_put_raw(t, digits);
}

void zr_conf_put_bool(struct zr_conf_text *t, const char *member, int v)
{
    conf_put_key(t, member);
    zr_conf_put_raw(t, v ? "true" : "false");
}

void zr_conf_put_word(struct zr_conf_text *t, const char *member, const char *v)
{
    conf_put_key(t, member);
    zr_conf_put_raw(t, "\"");
    zr_conf_put_raw(t, v);
    zr_conf_put_raw(t, "\"");
}

void zr_conf_put_json(struct zr_conf_text *t, const zarr_codec_spec *raw,
                      const char *member)
{
    struct zr_str text;

    if (!zr_conf_has(raw, member))
        return;
    zr_str_init(&text, raw->alloc);
    zr_json_write(zr_json_get(raw->members, member), 0, &text);
    t->failed |= text.failed;
    conf_put_key(t, member);
    zr_conf_put_raw(t, zr_str_text(&text));
    zr_str_deinit(&text);
}

void zr_conf_close(struct zr_conf_text *t, size_t *text_bytes)
{
    zr_conf_put_raw(t, "}");
    if (t->cap)
        t->text[ZR_MIN(t->bytes, t->cap - 1)] = '\0';
    *text_bytes = t->bytes;
}

zarr_status zr_conf_end(struct zr_conf_text *t, size_t *text_bytes, zarr_error *err)
{
    zr_conf_close(t, text_bytes);
    return t->failed ? zr_fail_memory(err, t->bytes) : ZARR_OK;
}

zarr_status zr_conf_none(const zarr_codec_spec *raw, int format, char *text, size_t cap,
                         size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {NULL};
    struct zr_conf_text t;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    zr_conf_open(&t, text, cap);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

zarr_status zr_spec_needs_length(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                 zarr_error *err)
{
    if (in->dtype && !in->exact)
        return zr_fail(
            err, ZARR_ERR_UNSUPPORTED,
            "%s: cannot take an array whose length is known only from the chunk",
            zarr_codec_spec_name(spec));
    return ZARR_OK;
}

uint64_t zr_spec_most_bytes(const zarr_codec_spec *spec)
{
    return spec->most_bytes;
}

const zarr_codec_input *zr_spec_input(const zarr_codec_spec *spec)
{
    return &spec->input;
}

bool zr_spec_is_prefixed(const zarr_codec_spec *spec)
{
    return spec->prefixed != 0;
}

void zr_spec_fail_dtype(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                        const char *rule, zarr_error *err)
{
    (void)zr_fail(err, ZARR_ERR_UNSUPPORTED, "codec %s%s does not take data type %s%s%s",
                  spec->prefixed ? "numcodecs." : "", zarr_codec_spec_name(spec),
                  zr_dtype_label(dtype), rule ? ", only " : "", rule ? rule : "");
}

zarr_status zr_spec_set_bound(zarr_chunk_spec *out, const char *codec, uint64_t n_bytes,
                              uint64_t extra, zarr_error *err)
{
    if (!zr_add(n_bytes, extra, &out->n_bytes))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "%s: a chunk of %" PRIu64 " bytes is too large", codec, n_bytes);
    return ZARR_OK;
}

zarr_status zr_spec_compressed(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                               zarr_chunk_spec *out, uint64_t extra, zarr_error *err)
{
    out->exact = 0;
    out->item_bytes_hint = 1;
    return zr_spec_set_bound(out, zarr_codec_spec_name(spec), in->n_bytes, extra, err);
}
