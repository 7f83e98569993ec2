/*
 * codec/registry.c - names to specifications. A vtable is copied when it is
 * registered, so a shorter one of an older plug-in reads as "NULL for the
 * rest"; its strings stay the plug-in's. Nothing replaces anything: a name or
 * alias that is taken is EXISTS, so the core's meanings are safe.
 * Thread class: solo while it is filled, frozen once sealed by its owner.
 */
#include "codec/codec_int.h"

#include <string.h>

static void codec_vtable_free(const zarr_allocator *alloc, void *value)
{
    zr_free(alloc, value);
}

void zr_codec_registry_init(struct zr_codec_registry *r, struct zr_dtype_registry *dtypes,
                            const zarr_allocator *alloc)
{
    *r = (struct zr_codec_registry){.dtypes = dtypes, .alloc = alloc};
    zr_map_init(&r->specs, alloc, codec_vtable_free);
    zr_map_init(&r->aliases, alloc, NULL);
    zr_map_init(&r->v2, alloc, codec_vtable_free);
}

void zr_codec_registry_deinit(struct zr_codec_registry *r)
{
    if (!r)
        return;
    zr_map_deinit(&r->v2);
    zr_map_deinit(&r->aliases);
    zr_map_deinit(&r->specs);
}

static zarr_status codec_vtable_check(const struct zr_codec_registry *r,
                                      const zarr_codec_spec_vtable *v, zarr_error *err)
{
    if (!v->name || !v->name[0])
        return zr_fail(err, ZARR_ERR_INVALID, "codec specification without a name");
    if (v->kind < ZARR_CODEC_ARRAY_ARRAY || v->kind > ZARR_CODEC_BYTES_BYTES)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "codec \"%s\": kind %" PRIu32 " is not known", v->name, v->kind);
    if ((v->flags & ZARR_CODEC_SPEC_V2) ? zr_codec_spec_lookup_v2(r, v->name) != NULL
                                        : zr_codec_spec_lookup(r, v->name) != NULL)
        return zr_fail(err, ZARR_ERR_EXISTS, "codec \"%s\" is registered already",
                       v->name);
    for (size_t i = 0; v->aliases && v->aliases[i]; i++)
        if (zr_codec_spec_lookup(r, v->aliases[i]))
            return zr_fail(err, ZARR_ERR_EXISTS, "codec \"%s\": alias \"%s\" is taken",
                           v->name, v->aliases[i]);
    return ZARR_OK;
}

zarr_status zr_codec_spec_register(struct zr_codec_registry *r,
                                   const zarr_codec_spec_vtable *v, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zarr_codec_spec_vtable read, *copy = NULL;
    size_t n = 0;

    if (!v)
        return zr_fail(err, ZARR_ERR_INVALID, "codec specification: no vtable");
    ZR_TRY(zr_struct_read(&read, sizeof read, offsetof(zarr_codec_spec_vtable, chains), v,
                          ZR_TAIL_IGNORE, "zarr_codec_spec_vtable", err));
    ZR_TRY(codec_vtable_check(r, &read, err));
    copy = zr_malloc(r->alloc, sizeof *copy);
    if (!copy) {
        st = zr_fail_memory(err, sizeof *copy);
        goto out;
    }
    *copy = read;
    for (; copy->aliases && copy->aliases[n]; n++)
        ZR_TRY(zr_map_put(&r->aliases, copy->aliases[n], copy, err));
    ZR_TRY(zr_map_put((copy->flags & ZARR_CODEC_SPEC_V2) ? &r->v2 : &r->specs, copy->name,
                      copy, err));
    copy = NULL; /* moved */
out:
    for (size_t i = 0; copy && i < n; i++)
        (void)zr_map_remove(&r->aliases, copy->aliases[i]);
    zr_free(r->alloc, copy);
    return st;
}

const zarr_codec_spec_vtable *zr_codec_spec_lookup(const struct zr_codec_registry *r,
                                                   const char *name)
{
    const zarr_codec_spec_vtable *v = zr_map_get(&r->specs, name);

    return v ? v : zr_map_get(&r->aliases, name);
}

const zarr_codec_spec_vtable *zr_codec_spec_lookup_v2(const struct zr_codec_registry *r,
                                                      const char *id)
{
    const zarr_codec_spec_vtable *v = zr_map_get(&r->v2, id);

    if (!v)
        v = zr_map_get(&r->specs, id);
    return v && !(v->flags & ZARR_CODEC_SPEC_V3) ? v : NULL;
}

const zarr_codec_spec_vtable *const zr_codec_core_specs[] = {
    &zr_spec_bytes,
    &zr_spec_transpose,
    &zr_spec_sharding,
    &zr_spec_gzip,
    &zr_spec_zlib,
    &zr_spec_zstd,
    &zr_spec_lz4,
    &zr_spec_blosc,
    &zr_spec_crc32c,
    &zr_spec_shuffle,
    &zr_spec_delta,
    &zr_spec_delta_array,
    &zr_spec_bz2,
    &zr_spec_lzma,
    &zr_spec_base64,
    &zr_spec_crc32,
    &zr_spec_adler32,
    &zr_spec_fletcher32,
    &zr_spec_jenkins_lookup3,
    &zr_spec_packbits_bits,
    &zr_spec_packbits_array,
    &zr_spec_packbits_v2,
    &zr_spec_zfp_bare,
    &zr_spec_zfpy,
    &zr_spec_pcodec,
    &zr_spec_gdeflate,
    &zr_spec_fixedscaleoffset,
    &zr_spec_fixedscaleoffset_array,
    &zr_spec_quantize,
    &zr_spec_quantize_array,
    &zr_spec_astype,
    &zr_spec_astype_array,
    &zr_spec_bitround,
    &zr_spec_bitround_v2,
    &zr_spec_reshape,
    &zr_spec_squeeze,
    &zr_spec_cast_value,
    &zr_spec_scale_offset,
    &zr_spec_vlen_utf8,
    &zr_spec_vlen_bytes,
    &zr_spec_optional,
    &zr_spec_zarrs_optional,
    &zr_spec_n5_default,
    &zr_spec_conditional,
    &zr_spec_zarrs_vlen,
    &zr_spec_vlen_v2,
    &zr_spec_vlen_array,
    &zr_spec_text_json,
    &zr_spec_text_msgpack,
    &zr_spec_categorized,
    NULL,
};
