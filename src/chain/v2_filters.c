/*
 * chain/v2_filters.c - v2 filters, and notes for each codec about the codecs before it.
 * In v2, filters work on bytes and `bytes` comes first. Some codecs of numcodecs encode
 * an array to bytes (zfpy, pcodec). Before such a codec, `bytes` and the filters are
 * replaced by the same filters between arrays. These filters may view their input as
 * another type of the same size, as NumPy does. Some filters have effects that such a
 * codec stores; zarr_codec_input collects these.
 * Thread class: solo while parsed.
 */
#include "chain/chain_int.h"

#include <stdio.h>
#include <string.h>

bool zr_spec_is_filter(const struct zarr_codec_spec *s)
{
    return s->vt->kind == ZARR_CODEC_BYTES_BYTES && s->vt->elements;
}

zarr_status zr_spec_elements(const struct zarr_codec_spec *s, const char *in,
                             zarr_codec_elements *out, zarr_error *err)
{
    struct zr_foreign said;
    zarr_status st;

    *out = (zarr_codec_elements){.struct_size = sizeof *out};
    st = s->vt->elements(s, in, out, zr_foreign_begin(&said, err));
    out->takes[ZARR_ELEMENTS_NAME - 1] = out->gives[ZARR_ELEMENTS_NAME - 1] = '\0';
    return st == ZARR_OK ? ZARR_OK : zr_spec_fail(s, &said, st);
}

/* as_new: a filter of a stored document must be one that new metadata may have. */
static zarr_status filters_check(const struct zr_chain *chain, const zarr_dtype *dtype,
                                 bool as_new, zarr_error *err)
{
    char now[ZARR_ELEMENTS_NAME] = "";
    zarr_codec_elements e;
    zarr_status st = ZARR_OK;
    bool any = false;

    for (uint32_t i = chain->a2b + 1; i < chain->n && !any; i++)
        any = zr_spec_is_filter(&chain->codec[i]);
    if (!any) /* nearly always; what follows takes a while */
        return ZARR_OK;
    if (dtype && chain->a2b < chain->n)
        zr_numpy_name(dtype, chain->codec[chain->a2b].structure.stored.order, now);
    for (uint32_t i = chain->a2b + 1; i < chain->n; i++) {
        struct zarr_codec_spec s = chain->codec[i]; /* borrows all that it points to */

        s.stored = s.stored && !as_new;
        e.gives[0] = '\0';
        if (zr_spec_is_filter(&s))
            st = zr_spec_elements(&s, now, &e, err);
        if (st != ZARR_OK)
            return zr_link_prefix(err, st, &chain->codec[i]);
        (void)snprintf(now, sizeof now, "%s", e.gives);
    }
    return ZARR_OK;
}

zarr_status zr_filters_check(const struct zr_chain *chain, const zarr_dtype *dtype,
                             zarr_error *err)
{
    return filters_check(chain, dtype, false, err);
}

zarr_status zr_filters_encode(const struct zr_chain *chain, const zarr_dtype *dtype,
                              zarr_error *err)
{
    zarr_error why = {0};
    const zarr_status st = filters_check(chain, dtype, true, &why);

    return st == ZARR_ERR_INVALID ? zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s", why.message)
                                  : st;
}

/* ---- v2: from bytes to arrays ------------------------------------------------------ */

static bool codec_makes_bytes(const struct zarr_codec_spec *s)
{
    return s->vt->kind == ZARR_CODEC_ARRAY_BYTES;
}

/* Finds v3's codec between arrays for a v2 filter. NULL: none. */
static const zarr_codec_spec_vtable *filter_array_form(const struct zr_parse *p,
                                                       const struct zarr_codec_spec *s)
{
    const zarr_codec_spec_vtable *v = NULL;
    struct zr_str name;

    zr_str_init(&name, s->alloc);
    zr_str_printf(&name, "numcodecs.%s", s->vt->name);
    if (!name.failed)
        v = zr_codec_spec_lookup(p->registry, zr_str_text(&name));
    zr_str_deinit(&name);
    return v && v->kind == ZARR_CODEC_ARRAY_ARRAY ? v : NULL;
}

/* Rewrites the configuration for the codec between arrays. */
static zarr_status filter_respell(struct zarr_codec_spec *s, zarr_error *err)
{
    zarr_codec_spelling how = {
        .struct_size = sizeof how, .format = 3, .flags = ZARR_SPELLING_BETWEEN_ARRAYS};
    struct zr_spec_question q = {.spelling = &how};

    return s->vt->spell ? zr_link_ask_config(s, &q, err) : ZARR_OK;
}

/* Converts one filter. big: the byte order of its input, then of its output. */
static zarr_status filter_to_array(struct zarr_codec_spec *s, const struct zr_parse *p,
                                   const char *next, bool *big, zarr_error *err)
{
    const zarr_codec_spec_vtable *v = filter_array_form(p, s);
    zarr_codec_elements e = {.struct_size = sizeof e};

    if (!v || !zr_spec_is_filter(s))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "\"%s\" gives bytes, but \"%s\" after it takes an array",
                       s->vt->name, next);
    ZR_CHECK(zr_spec_elements(s, NULL, &e, err));
    if (!e.takes[0] && *big)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "\"%s\" before \"%s\" takes little-endian elements only",
                       s->vt->name, next);
    if ((e.takes[0] == '<' && *big) || (e.takes[0] == '>' && !*big))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "\"%s\" before \"%s\" names a byte order that its elements do "
                       "not have",
                       s->vt->name, next);
    if (e.takes[0])
        *big = e.gives[0] == '>';
    ZR_CHECK(filter_respell(s, err));
    s->vt = v;
    s->input.flags |= ZARR_INPUT_V2_FILTER;
    s->prefixed = true;
    return ZARR_OK;
}

/* Refuses big-endian elements for codecs that name no byte order, because their libraries
 * know little-endian elements only. */
static zarr_status check_big_endian(struct zarr_codec_spec *s, zarr_error *err)
{
    zarr_codec_elements e = {.struct_size = sizeof e};

    if (s->vt->elements)
        ZR_CHECK(zr_spec_elements(s, NULL, &e, err));
    if (e.takes[0] != '>')
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "\"%s\" takes little-endian elements only", s->vt->name);
    return ZARR_OK;
}

static void drop_bytes(struct zr_chain *chain, uint32_t at)
{
    zr_link_deinit(&chain->codec[at]);
    chain->n--;
    memmove(&chain->codec[at], &chain->codec[at + 1],
            (chain->n - at) * sizeof chain->codec[0]);
}

zarr_status zr_chain_place_v2_filters(struct zr_chain *chain, const struct zr_parse *p,
                                      zarr_error *err)
{
    zarr_status st = ZARR_OK;
    uint32_t at = 0, to = 0;
    bool big;

    while (at < chain->n && chain->codec[at].vt->kind == ZARR_CODEC_ARRAY_ARRAY)
        at++;
    if (at >= chain->n || chain->codec[at].structure.kind != ZR_STRUCTURE_BYTES)
        return ZARR_OK;
    for (to = at + 1; to < chain->n && !codec_makes_bytes(&chain->codec[to]);)
        to++;
    if (to >= chain->n)
        return ZARR_OK;
    big = chain->codec[at].structure.stored.order == ZARR_ORDER_BIG;
    for (uint32_t i = at + 1; i < to; i++) {
        st = filter_to_array(&chain->codec[i], p, chain->codec[to].vt->name, &big, err);
        if (st != ZARR_OK)
            return zr_link_prefix(err, st, &chain->codec[i]);
    }
    if (big) {
        chain->codec[to].input.flags |= ZARR_INPUT_BIG_ENDIAN;
        st = check_big_endian(&chain->codec[to], err);
        if (st != ZARR_OK)
            return zr_link_prefix(err, st, &chain->codec[to]);
    }
    drop_bytes(chain, at);
    return ZARR_OK;
}

/* ---- notes about the codecs before --------------------------------------------- */

void zr_chain_note_inputs(struct zr_chain *chain)
{
    const uint32_t handed_on = ZARR_INPUT_TRANSPOSED | ZARR_INPUT_FLAT;
    zarr_codec_input now = {.struct_size = sizeof now, .keepbits = -1};

    for (uint32_t i = 0; i < chain->n; i++) {
        struct zarr_codec_spec *s = &chain->codec[i];

        now.flags = (now.flags & handed_on) | (s->input.flags & ~handed_on);
        s->input = now;
        if (s->structure.kind == ZR_STRUCTURE_TRANSPOSE) {
            if (!(now.flags & ZARR_INPUT_FLAT))
                now.flags |= ZARR_INPUT_TRANSPOSED;
            continue;
        }
        now.keepbits = -1;
        if (s->vt->pass)
            s->vt->pass(s, &now);
    }
}
