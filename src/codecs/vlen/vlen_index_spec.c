/*
 * codecs/vlen/vlen_index_spec.c - `zarrs.vlen`: elements of variable length. As in Arrow,
 * a chunk has an index of offsets (32 or 64 bits, one more than there are elements) and
 * the bytes of all elements. Each goes through its own chain. The encoded length of the
 * index is before the index at the chunk's start, or after it at the chunk's end.
 * Metadata does not bound the encoded size. Older readers do not know index_location, so
 * the default, "start", is not written. Thread class: plain functions.
 */
#include "codecs/vlen/vlen.h"

static const char *const vidx_types[] = {"uint32", "uint64", NULL};
static const char *const vidx_locations[] = {"start", "end", NULL};

static zarr_status vidx_chain(const zarr_codec_spec *raw, const char *member,
                              zarr_error *err)
{
    int array = 0;

    if (zarr_codec_spec_chain_codecs(raw, member, &array) < 0)
        return zr_fail(err, ZARR_ERR_INVALID, "zarrs.vlen: %s are missing", member);
    if (!array)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "zarrs.vlen: %s: no array->bytes codec such as \"bytes\" is "
                       "among them",
                       member);
    return ZARR_OK;
}

static zarr_status vidx_canonical(const zarr_codec_spec *raw, int format, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"data_codecs", "index_codecs", "index_data_type",
                                        "index_location", NULL};
    int type = -1, location = 0;
    struct zr_conf_text t;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(vidx_chain(raw, "index_codecs", err));
    ZR_CHECK(vidx_chain(raw, "data_codecs", err));
    ZR_CHECK(zr_conf_word(raw, "index_data_type", vidx_types, &type, err));
    ZR_CHECK(zr_conf_word(raw, "index_location", vidx_locations, &location, err));
    if (type < 0)
        return zr_fail(err, ZARR_ERR_INVALID, "zarrs.vlen: index_data_type is missing");
    zr_conf_open(&t, text, cap);
    zr_conf_put_raw(&t, "\"index_codecs\":");
    zr_conf_put_raw(&t, zarr_codec_spec_chain_json(raw, "index_codecs"));
    zr_conf_put_raw(&t, ",\"data_codecs\":");
    zr_conf_put_raw(&t, zarr_codec_spec_chain_json(raw, "data_codecs"));
    t.any = true;
    zr_conf_put_word(&t, "index_data_type", vidx_types[type]);
    if (location)
        zr_conf_put_word(&t, "index_location", vidx_locations[location]);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

zarr_status zr_spec_vlen_inner(const zarr_codec_spec *spec,
                               const zarr_chunk_spec *decoded, zarr_chunk_spec *index,
                               zarr_chunk_spec *data, zarr_error *err)
{
    const uint64_t n = decoded->n_bytes / sizeof(zarr_vlen);
    const char *type = zarr_codec_spec_text(spec, "index_data_type");

    *index = (zarr_chunk_spec){.struct_size = sizeof *index,
                               .ndim = 1,
                               .shape = {n + 1},
                               .exact = decoded->exact};
    *data = (zarr_chunk_spec){
        .struct_size = sizeof *data,
        .ndim = 1,
        .shape = {ZR_MIN(zr_spec_most_bytes(spec), (uint64_t)ZR_UNSIZED_BYTES)}};
    ZR_CHECK(zarr_codec_spec_dtype(&index->dtype, spec, type, err));
    ZR_CHECK(zarr_codec_spec_dtype(&data->dtype, spec, "uint8", err));
    index->n_bytes = (n + 1) * zarr_dtype_item_bytes(index->dtype);
    data->n_bytes = data->shape[0];
    return ZARR_OK;
}

static zarr_status vidx_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    zarr_chunk_spec index = {0}, data = {0}, encoded = {0};
    const uint32_t kind = zarr_dtype_kind(in->dtype);

    ZR_UNUSED(fill_out);
    if (kind != ZARR_KIND_STRING && kind != ZARR_KIND_VBYTES)
        return zr_spec_refuse_dtype(spec, in->dtype, "text and bytes of variable length",
                                    err);
    ZR_CHECK(zr_spec_vlen_inner(spec, in, &index, &data, err));
    ZR_CHECK(zarr_codec_spec_chain_resolve(spec, "index_codecs", &index, &encoded, err));
    ZR_CHECK(zarr_codec_spec_chain_resolve(spec, "data_codecs", &data, &encoded, err));
    out->n_bytes = UINT64_MAX;
    out->exact = 0;
    out->item_bytes_hint = 1;
    return ZARR_OK;
}

static zarr_status vidx_chain_input(const zarr_codec_spec *spec, const char *member,
                                    const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                    zarr_error *err)
{
    zarr_chunk_spec other = {0};

    return zr_streq(member, "index_codecs")
               ? zr_spec_vlen_inner(spec, in, out, &other, err)
               : zr_spec_vlen_inner(spec, in, &other, out, err);
}

static const char *const vidx_chains[] = {"index_codecs", "data_codecs", NULL};
static const char *const vidx_aliases[] = {"https://codec.zarrs.dev/array_to_bytes/vlen",
                                           NULL};
const zarr_codec_spec_vtable zr_spec_zarrs_vlen = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3 | ZARR_CODEC_SPEC_EXPERIMENTAL,
    .name = "zarrs.vlen",
    .aliases = vidx_aliases,
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = vidx_canonical,
    .resolve = vidx_resolve,
    .chains = vidx_chains,
    .chain_input = vidx_chain_input,
};
