/*
 * chain/link.c - one link of a chain: a specification with its canonical configuration,
 * and the getters through which implementations and specifications read it. The getters
 * read `members`: the raw configuration while the specification checks it, later the
 * canonical one. Facts that the core needs for every chunk (a transpose's order, the byte
 * order) are parsed once.
 * Thread class: solo while parsed, then frozen.
 */
#include "chain/chain_int.h"

#include <string.h>

const char *zarr_codec_spec_name(const zarr_codec_spec *spec)
{
    return spec ? spec->vt->name : NULL;
}

const char *zarr_codec_spec_json(const zarr_codec_spec *spec)
{
    if (!spec)
        return NULL;
    return spec->json ? spec->json : "{}";
}

const zarr_allocator *zarr_codec_spec_allocator(const zarr_codec_spec *spec)
{
    return spec ? zr_allocator_or_plain(spec->alloc) : NULL;
}

zarr_status zarr_codec_spec_dtype(const zarr_dtype **out, const zarr_codec_spec *spec,
                                  const char *name, zarr_error *err)
{
    *out = NULL;
    ZR_NEED(spec, err);
    return zr_dtype_find(spec->dtypes, name, out, NULL, err);
}

int zarr_codec_spec_i64(const zarr_codec_spec *spec, const char *member, int64_t *out)
{
    return spec && zr_json_i64(zr_json_get(spec->members, member), out) ? 0 : -1;
}

int zarr_codec_spec_f64(const zarr_codec_spec *spec, const char *member, double *out)
{
    return spec && zr_json_f64(zr_json_get(spec->members, member), out) ? 0 : -1;
}

int zarr_codec_spec_bool(const zarr_codec_spec *spec, const char *member, int *out)
{
    bool v = false;

    if (!spec)
        return -1;
    if (!zr_json_bool(zr_json_get(spec->members, member), &v))
        return -1;
    *out = v;
    return 0;
}

const char *zarr_codec_spec_text(const zarr_codec_spec *spec, const char *member)
{
    return spec ? zr_json_string(zr_json_get(spec->members, member)) : NULL;
}

int64_t zarr_codec_spec_i64s(const zarr_codec_spec *spec, const char *member,
                             int64_t *out, uint64_t cap)
{
    if (!spec)
        return -1;
    const struct zr_json *list = zr_json_get(spec->members, member);
    uint64_t n = 0;

    if (!zr_json_is(list, ZR_JSON_ARRAY))
        return -1;
    for (const struct zr_json *v = list->u.children.first; v; v = v->next, n++) {
        int64_t number = 0;

        if (!zr_json_i64(v, &number))
            return -1;
        if (n < cap)
            out[n] = number;
    }
    return (int64_t)n;
}

const char *zarr_codec_spec_member(const zarr_codec_spec *spec, uint64_t i)
{
    const struct zr_json *v = NULL;

    if (!spec)
        return NULL;
    if (!zr_json_is(spec->members, ZR_JSON_OBJECT))
        return NULL;
    for (v = spec->members->u.children.first; v && i > 0; v = v->next)
        i--;
    return v ? v->key : NULL;
}

void zr_link_deinit(struct zarr_codec_spec *s)
{
    zr_shard_spec_free(s->structure.shard, s->alloc);
    zr_sub_free(s);
    zr_free(s->alloc, s->json);
    if (s->config.root || s->json)
        zr_json_doc_deinit(&s->config);
    *s = (struct zarr_codec_spec){0};
}

static void link_read_transpose(struct zarr_codec_spec *s)
{
    struct zr_structure *f = &s->structure;
    int64_t order[ZARR_MAX_RANK] = {0};
    const char *letter = zarr_codec_spec_text(s, "order");
    int64_t n = 0;

    if (letter) {
        f->n_order = zr_streq(letter, "F") ? ZR_ORDER_F : ZR_ORDER_C;
        return;
    }
    n = zarr_codec_spec_i64s(s, "order", order, ZARR_MAX_RANK);
    f->n_order = n > 0 && n <= ZARR_MAX_RANK ? (int32_t)n : 0;
    for (int32_t i = 0; i < f->n_order; i++)
        f->order[i] = (uint8_t)order[i];
}

static void link_read_bytes(struct zarr_codec_spec *s)
{
    const char *text = zarr_codec_spec_text(s, "endian");

    s->structure.stored.order = !text                          ? ZR_ORDER_NATIVE
                                : *text == '<' || *text == '>' ? ZR_ORDER_MIXED
                                : zr_streq(text, "big")        ? ZARR_ORDER_BIG
                                                               : ZARR_ORDER_LITTLE;
    s->structure.stored.leaves = text;
}

/* The specification has checked these members. A value that does not fit stays unset. */
static void link_read_structure(struct zarr_codec_spec *s)
{
    s->structure.kind = zr_codec_spec_structure(s->vt);
    if (s->structure.kind == ZR_STRUCTURE_BYTES)
        link_read_bytes(s);
    if (s->structure.kind == ZR_STRUCTURE_TRANSPOSE)
        link_read_transpose(s);
}

zarr_status zr_link_set_config(struct zarr_codec_spec *s, char *json, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (s->json) {
        zr_free(s->alloc, s->json);
        zr_json_doc_deinit(&s->config);
    }
    s->json = json;
    s->members = NULL;
    zr_json_doc_init(&s->config, s->alloc);
    ZR_TRY(zr_json_parse(&s->config, json, strlen(json), NULL, err));
    if (!zr_json_is(s->config.root, ZR_JSON_OBJECT)) {
        st = zr_spec_broke(s, "canonical() gives no object", err);
        goto out;
    }
    s->members = s->config.root;
    link_read_structure(s);
out:
    return st;
}

static zarr_status link_copy_raw(const struct zarr_codec_spec *s, char **out,
                                 zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_str text;

    zr_str_init(&text, s->alloc);
    zr_json_write(s->members, 0, &text);
    ZR_TRY(zr_str_status(&text, err));
    *out = zr_str_take(&text);
    if (!*out)
        st = zr_fail_memory(err, text.bytes);
out:
    zr_str_deinit(&text);
    return st;
}

zarr_status zr_spec_fail(const struct zarr_codec_spec *s, struct zr_foreign *f,
                         zarr_status st)
{
    return zr_foreign_fail(f, st, false, "codec \"%s\" of %s", s->vt->name,
                           zr_codec_spec_origin(s->vt));
}

zarr_status zr_spec_broke(const struct zarr_codec_spec *s, const char *how,
                          zarr_error *err)
{
    const char *origin = zr_codec_spec_origin(s->vt);

    if (zr_streq(origin, "core"))
        return zr_fail(err, ZARR_ERR_INTERNAL, "%s: %s", s->vt->name, how);
    return zr_fail(err, ZARR_ERR_INTERNAL, "codec \"%s\" of %s " ZR_BROKE ": %s",
                   s->vt->name, origin, how);
}

static zarr_status text_ask(const struct zarr_codec_spec *s, struct zr_spec_question *q,
                            char *text, size_t cap, size_t *need, zarr_error *err)
{
    struct zr_foreign said;
    zarr_error *foreign = zr_foreign_begin(&said, err);
    zarr_status st = ZARR_OK;

    if (q->spelling)
        st = s->vt->spell(s, q->spelling, text, cap, need, foreign);
    else if (q->fill)
        st = (q->to_metadata ? s->vt->fill_write : s->vt->fill_read)(
            s, q->dtype, q->fill, text, cap, need, foreign);
    else if (q->in)
        st = s->vt->complete(s, q->in, q->array, text, cap, need, foreign);
    else
        st = s->vt->canonical(s, q->format, text, cap, need, foreign);
    return st == ZARR_OK ? ZARR_OK : zr_spec_fail(s, &said, st);
}

zarr_status zr_spec_ask(const struct zarr_codec_spec *s, struct zr_spec_question *q,
                        char **out, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    char small[512], *json = NULL;
    size_t need = 0, cap = 0;

    *out = NULL;
    ZR_TRY(text_ask(s, q, small, sizeof small, &need, err));
    if (need == 0)
        goto out;
    if (!zr_add(need, 1, &cap) || !(json = zr_malloc(s->alloc, cap)))
        ZR_FAIL_MEMORY(err, need);
    if (need < sizeof small)
        memcpy(json, small, cap);
    else
        ZR_TRY(text_ask(s, q, json, cap, &need, err));
    json[cap - 1] = '\0';
    *out = json; /* moved */
    json = NULL;
out:
    zr_free(s->alloc, json);
    return st;
}

zarr_status zr_link_ask_config(struct zarr_codec_spec *s, struct zr_spec_question *q,
                               zarr_error *err)
{
    char *json = NULL;

    ZR_CHECK(zr_spec_ask(s, q, &json, err));
    if (json)
        return zr_link_set_config(s, json, err);
    return ZARR_OK;
}

/* To a plug-in, whose texts end with a NUL, a name with one in it would look like the
 * part before it, perhaps a member that it knows. The getters do not find such a name. */
static zarr_status link_check_names(const struct zarr_codec_spec *s, zarr_error *err)
{
    const struct zr_json *m =
        zr_json_is(s->members, ZR_JSON_OBJECT) ? s->members->u.children.first : NULL;

    for (; m; m = m->next)
        if (!zr_json_has_key(m, m->key))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "%s: the name of a member has a NUL after \"%.64s\"",
                           s->vt->name, m->key);
    return ZARR_OK;
}

zarr_status zr_link_canonical(struct zarr_codec_spec *s, int format, zarr_error *err)
{
    struct zr_spec_question q = {.format = format};
    zarr_status st = ZARR_OK;
    char *json = NULL, *raw = NULL, *before = s->json;

    /* The core's own codecs read members only. */
    if (!s->vt->canonical || !zr_streq(zr_codec_spec_origin(s->vt), "core")) {
        ZR_TRY(link_check_names(s, err));
        ZR_TRY(link_copy_raw(s, &raw, err));
    }
    if (s->vt->canonical) {
        s->json = raw; /* for zarr_codec_spec_json() */
        st = zr_spec_ask(s, &q, &json, err);
        s->json = before;
        ZR_TRY(st);
    } else {
        json = raw; /* moved */
        raw = NULL;
    }
    st = json ? zr_link_set_config(s, json, err)
              : zr_spec_broke(s, "canonical() gives no text", err);
out:
    zr_free(s->alloc, raw);
    return st;
}
