/*
 * codec/front.c - what stands in front of numcodecs' codecs that make bytes of an array
 * (zfpy, pcodec), whose chunks show it. In v2 filters are done to bytes, and `bytes`
 * comes first; in front of such a codec both make way for the same filters between
 * arrays, which may view what they get as another type of that size, as NumPy does. In
 * both formats delta and fixedscaleoffset hand on one dimension, and bitround the bits of
 * floats as integers. Thread class: solo while parsed.
 */
#include "codec/codec_int.h"

#include <string.h>

static bool front_makes_bytes(const struct zarr_codec_spec *s)
{
    return s->vt->kind == ZARR_CODEC_ARRAY_BYTES;
}

/* The codec between arrays that a v2 filter is in v3; NULL: none. */
static const zarr_codec_spec_vtable *front_array_form(const struct zr_parse *p,
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

/* One filter; big: the byte order of what it gets, and then of what it gives. */
static zarr_status front_turn(struct zarr_codec_spec *s, const struct zr_parse *p,
                              const char *next, bool *big, zarr_error *err)
{
    const zarr_codec_spec_vtable *v = front_array_form(p, s);
    zarr_status st = ZARR_OK;
    struct zr_filter f;

    if (!v)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "\"%s\" gives bytes, but \"%s\" behind it takes an array",
                       s->vt->name, next);
    if (v->resolve == zr_spec_delta_array.resolve) {
        ZR_TRY(zr_filter_read(s, NULL, &f, err));
        if (f.dtype.item_bytes > 1 && f.dtype.big != *big)
            ZR_TRY(zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "%s: it names another byte order than its elements have, in "
                           "front of \"%s\"",
                           s->vt->name, next));
        *big = f.astype.big;
        ZR_TRY(zr_filter_settle(s, &f, err));
    } else if (*big) {
        ZR_TRY(zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "\"%s\" in front of \"%s\" takes little-endian elements only",
                       s->vt->name, next));
    }
    s->vt = v;
    s->front.v2 = true;
    s->keeps_alias = v->resolve == zr_spec_bitround.resolve;
out:
    return st;
}

/* Categorize: its numbers have an order of their own. */
static bool front_names_big(const struct zarr_codec_spec *s)
{
    const char *dtype = zarr_codec_spec_text(s, "dtype");

    return s->vt->canonical == zr_spec_categorized.canonical && dtype && *dtype == '>';
}

zarr_status zr_front_v2(struct zr_chain *chain, const struct zr_parse *p, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    uint32_t at = 0, to = 0;
    bool big;

    while (at < chain->n && chain->codec[at].vt->kind == ZARR_CODEC_ARRAY_ARRAY)
        at++;
    if (at >= chain->n || chain->codec[at].vt->canonical != zr_spec_bytes.canonical)
        return ZARR_OK;
    for (to = at + 1; to < chain->n && !front_makes_bytes(&chain->codec[to]);)
        to++;
    if (to >= chain->n)
        return ZARR_OK;
    big = chain->codec[at].stored.order == ZARR_ORDER_BIG;
    for (uint32_t i = at + 1; i < to; i++) {
        st = front_turn(&chain->codec[i], p, chain->codec[to].vt->name, &big, err);
        if (st != ZARR_OK)
            return zr_link_prefix(err, st, &chain->codec[i]);
    }
    chain->codec[to].front.big = big;
    if (big && !front_names_big(
                   &chain->codec[to])) { /* libraries of such codecs know no others */
        st =
            zr_fail(err, ZARR_ERR_UNSUPPORTED, "\"%s\" takes little-endian elements only",
                    chain->codec[to].vt->name);
        return zr_link_prefix(err, st, &chain->codec[to]);
    }
    zr_link_deinit(&chain->codec[at]);
    chain->n--;
    memmove(&chain->codec[at], &chain->codec[at + 1],
            (chain->n - at) * sizeof chain->codec[0]);
    return ZARR_OK;
}

static bool front_flattens(const struct zarr_codec_spec *s)
{
    return s->vt->resolve == zr_spec_delta_array.resolve &&
           (zr_streq(s->vt->name, zr_spec_delta_array.name) ||
            zr_streq(s->vt->name, zr_spec_fixedscaleoffset_array.name));
}

void zr_front_note(struct zr_chain *chain)
{
    struct zr_front now = {.round = -1};
    int64_t keep = 0;

    for (uint32_t i = 0; i < chain->n; i++) {
        struct zarr_codec_spec *s = &chain->codec[i];
        const bool transpose = s->vt->canonical == zr_spec_transpose.canonical;

        now.v2 = s->front.v2;
        now.big = s->front.big;
        s->front = now;
        if (front_flattens(s)) {
            now.flat = true;
            now.turned = false;
        }
        now.turned = now.turned || (transpose && !now.flat);
        if (transpose)
            continue;
        now.round = -1;
        if (s->vt->resolve == zr_spec_bitround.resolve && s->keeps_alias &&
            zarr_codec_spec_i64(s, "keepbits", &keep) == 0 && keep < 64)
            now.round = (int32_t)keep;
    }
}
