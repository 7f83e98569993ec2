/*
 * codec/spec_filter.c - numcodecs' filters shuffle, base64 and delta. All have
 * exact sizes. delta exists twice: in v2 it is a filter over bytes that names
 * its own data types; v3's "numcodecs.delta" is the same arithmetic between
 * arrays, in front of `bytes`.
 * NumPy's names of data types are read here for numbers only, byte order
 * included: "<f8", ">i2", "|u1", "float32"; one without an order is little,
 * so that a store means the same on every machine.
 * Thread class: plain functions.
 */
#include "codec/codec_int.h"

#include <string.h>

/* ---- shuffle ------------------------------------------------------------------- */

static zarr_status shuffle_canonical(const zarr_codec_spec *raw, int format, char *text,
                                     size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"elementsize", NULL};
    zarr_status st = ZARR_OK;
    struct zr_conf_text t;
    int64_t elementsize = 4;

    ZR_TRY(zr_conf_known(raw, format, known, err));
    ZR_TRY(zr_conf_i64(raw, "elementsize", 0, INT32_MAX, &elementsize, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "elementsize", elementsize);
    zr_conf_close(&t, text_bytes);
out:
    return st;
}

static zarr_status shuffle_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                   zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    int64_t elementsize = 1;

    ZR_UNUSED(fill_out);
    (void)zarr_codec_spec_i64(spec, "elementsize", &elementsize);
    out->item_bytes_hint = 1;
    if (elementsize > 1 && in->exact && in->n_bytes % (uint64_t)elementsize)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "shuffle: %" PRIu64
                       " bytes are no whole number of elements of %" PRId64,
                       in->n_bytes, elementsize);
    return ZARR_OK;
}

static const char *const shuffle_aliases[] = {"numcodecs.shuffle", NULL};
const zarr_codec_spec_vtable zr_spec_shuffle = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_NUMCODECS,
    .name = "shuffle",
    .aliases = shuffle_aliases,
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = shuffle_canonical,
    .resolve = shuffle_resolve,
};

/* ---- base64 ---------------------------------------------------------------------- */

static zarr_status base64_canonical(const zarr_codec_spec *raw, int format, char *text,
                                    size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {NULL};
    zarr_status st = ZARR_OK;
    struct zr_conf_text t;

    ZR_TRY(zr_conf_known(raw, format, known, err));
    zr_conf_open(&t, text, cap);
    zr_conf_close(&t, text_bytes);
out:
    return st;
}

static zarr_status base64_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                  zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    const uint64_t groups = in->n_bytes / 3 + (in->n_bytes % 3 != 0);

    ZR_UNUSED(fill_out);
    out->item_bytes_hint = 1;
    if (!zr_mul_u64(groups, 4, &out->n_bytes))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "%s: a chunk of %" PRIu64 " bytes is too large", spec->vt->name,
                       in->n_bytes);
    return ZARR_OK;
}

static const char *const base64_aliases[] = {"numcodecs.base64", NULL};
const zarr_codec_spec_vtable zr_spec_base64 = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_NUMCODECS,
    .name = "base64",
    .aliases = base64_aliases,
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = base64_canonical,
    .resolve = base64_resolve,
};

/* ---- delta ----------------------------------------------------------------------- */

bool zr_numpy_parse(const char *text, struct zr_numpy_type *out)
{
    static const struct {
        const char *name, *code;
    } names[] = {{"int8", "i1"},    {"int16", "i2"},  {"int32", "i4"},  {"int64", "i8"},
                 {"uint8", "u1"},   {"uint16", "u2"}, {"uint32", "u4"}, {"uint64", "u8"},
                 {"float32", "f4"}, {"float64", "f8"}};
    const char *code = text;
    char order = '=';

    if (!text)
        return false;
    for (size_t i = 0; i < ZR_COUNT(names); i++)
        if (zr_streq(names[i].name, text))
            code = names[i].code;
    if (*code == '<' || *code == '>' || *code == '=' || *code == '|')
        order = *code++;
    if (strlen(code) != 2 || !strchr("iuf", code[0]) || !strchr("1248", code[1]) ||
        (code[0] == 'f' && code[1] < '4'))
        return false;
    *out =
        (struct zr_numpy_type){.kind = code[0], .item_bytes = (uint8_t)(code[1] - '0')};
    out->big = order == '>';
    if (out->item_bytes == 1)
        out->big = false;
    return true;
}

static void numpy_print(const struct zr_numpy_type *type, char out[4])
{
    out[0] = type->item_bytes == 1 ? '|' : type->big ? '>' : '<';
    out[1] = type->kind;
    out[2] = (char)('0' + type->item_bytes);
    out[3] = '\0';
}

static zarr_status delta_read_type(const zarr_codec_spec *raw, const char *member,
                                   struct zr_numpy_type *type, zarr_error *err)
{
    const char *text = zarr_codec_spec_text(raw, member);

    if (zr_numpy_parse(text, type))
        return ZARR_OK;
    if (text)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "delta: %s \"%s\" is no type of %s",
                       member, text, "integers or floats of 32 or 64 bits");
    return zr_fail(err, ZARR_ERR_INVALID,
                   "delta: %s must be a NumPy type such as \"<i4\"", member);
}

static zarr_status delta_canonical(const zarr_codec_spec *raw, int format, char *text,
                                   size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"dtype", "astype", NULL};
    zarr_status st = ZARR_OK;
    struct zr_conf_text t;
    struct zr_numpy_type dtype = {0}, astype;
    char name[4];

    ZR_TRY(zr_conf_known(raw, format, known, err));
    ZR_TRY(delta_read_type(raw, "dtype", &dtype, err));
    astype = dtype;
    if (zr_conf_has(raw, "astype"))
        ZR_TRY(delta_read_type(raw, "astype", &astype, err));
    zr_conf_open(&t, text, cap);
    numpy_print(&dtype, name);
    zr_conf_put_word(&t, "dtype", name);
    numpy_print(&astype, name);
    zr_conf_put_word(&t, "astype", name);
    zr_conf_close(&t, text_bytes);
out:
    return st;
}

static zarr_status delta_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                 zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    struct zr_numpy_type dtype = {0}, astype = {0};

    ZR_UNUSED(fill_out);
    if (!zr_numpy_parse(zarr_codec_spec_text(spec, "dtype"), &dtype) ||
        !zr_numpy_parse(zarr_codec_spec_text(spec, "astype"), &astype))
        return zr_internal(err);
    if (in->exact && in->n_bytes % dtype.item_bytes)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "delta: %" PRIu64 " bytes are no whole number of elements of %d",
                       in->n_bytes, dtype.item_bytes);
    out->item_bytes_hint = astype.item_bytes;
    if (!zr_mul_u64(in->n_bytes / dtype.item_bytes, astype.item_bytes, &out->n_bytes))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "delta: a chunk of %" PRIu64 " bytes is too large", in->n_bytes);
    return ZARR_OK;
}

const zarr_codec_spec_vtable zr_spec_delta = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_NUMCODECS,
    .name = "delta",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = delta_canonical,
    .resolve = delta_resolve,
};

/* ---- numcodecs.delta, between arrays ----------------------------------------------- */

/* A fill value means nothing behind a difference: it stays zero. */
static zarr_status delta_array_resolve(const zarr_codec_spec *spec,
                                       const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                       void *fill_out, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const zarr_dtype *dtype = NULL;
    const char *name = zarr_codec_spec_text(spec, "dtype");

    ZR_UNUSED(fill_out);
    ZR_TRY(zarr_codec_spec_dtype(spec, name, &dtype, err));
    if (!zarr_dtype_equal(dtype, in->dtype)) {
        st = zr_fail(err, ZARR_ERR_INVALID, "delta: dtype \"%s\" is not the array's, %s",
                     name, zarr_dtype_name(in->dtype) ? zarr_dtype_name(in->dtype) : "?");
        goto out;
    }
    ZR_TRY(zarr_codec_spec_dtype(spec, zarr_codec_spec_text(spec, "astype"), &out->dtype,
                                 err));
out:
    return st;
}

const zarr_codec_spec_vtable zr_spec_delta_array = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3,
    .name = "numcodecs.delta",
    .kind = ZARR_CODEC_ARRAY_ARRAY,
    .canonical = delta_canonical,
    .resolve = delta_array_resolve,
};
