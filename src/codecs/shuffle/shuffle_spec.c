/*
 * codecs/shuffle/shuffle_spec.c - numcodecs' shuffle. If elementsize is absent, v2 uses
 * numcodecs' default, 4. In v3 zarr-python uses the item bytes of the array, and
 * shuffle_complete() adds them. It also does for arrays of NCZarr, which always shuffles
 * by the size of the data type, and writes no elementsize or 0. Elsewhere 0 means the
 * same as 1, as in numcodecs. New metadata must not have it, because the readers differ.
 * Thread class: plain functions.
 */
#include "codecs/shuffle/shuffle.h"

static int shuffle_incomplete(const zarr_codec_spec *s)
{
    return (s->v3 || zr_conf_is_nczarr(s)) && !zr_conf_has(s, "elementsize");
}

static zarr_status shuffle_canonical(const zarr_codec_spec *raw, int format, char *text,
                                     size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"elementsize", NULL};
    struct zr_conf_text t;
    int64_t elementsize = 4;
    bool complete = !shuffle_incomplete(raw);

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(zr_conf_i64(raw, "elementsize", 0, INT32_MAX, &elementsize, err));
    if (elementsize == 0 && !zr_conf_is_stored(raw))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "shuffle: elementsize 0: NCZarr and numcodecs give it different "
                       "meanings (the data type's size, or 1)");
    if (elementsize == 0) {
        complete = complete && !zr_conf_is_nczarr(raw);
        elementsize = 1;
    }
    zr_conf_open(&t, text, cap);
    if (complete)
        zr_conf_put_i64(&t, "elementsize", elementsize);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
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
                       " bytes are not a whole number of elements of %" PRId64,
                       in->n_bytes, elementsize);
    return ZARR_OK;
}

/* If `array` has no data type, the input is bytes inside another codec. Only the hint of
 * their item bytes is known then. */
static zarr_status shuffle_complete(const zarr_codec_spec *spec,
                                    const zarr_chunk_spec *in,
                                    const zarr_chunk_spec *array, char *text, size_t cap,
                                    size_t *text_bytes, zarr_error *err)
{
    struct zr_conf_text t;

    ZR_UNUSED(in);
    *text_bytes = 0;
    if (!shuffle_incomplete(spec))
        return ZARR_OK;
    if (array->dtype && zarr_dtype_variable(array->dtype))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "shuffle: elementsize is missing, and elements of type %s have no "
                       "fixed size",
                       zr_dtype_label(array->dtype));
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "elementsize",
                    array->dtype ? (int64_t)zarr_dtype_item_bytes(array->dtype)
                                 : ZR_MAX((int64_t)array->item_bytes_hint, (int64_t)1));
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

const zarr_codec_spec_vtable zr_spec_shuffle = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_NUMCODECS,
    .name = "shuffle",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = shuffle_canonical,
    .resolve = shuffle_resolve,
    .complete = shuffle_complete,
    .incomplete = shuffle_incomplete,
};
