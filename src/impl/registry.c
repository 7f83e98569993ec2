/*
 * impl/registry.c - the registered implementations, in order of registration, the core's
 * first. Two implementations of one specification must differ in name, because a
 * preference could not tell them apart. Ids are dense, because they index tables of
 * thread states. Thread class: solo while it is filled, frozen once sealed by its owner.
 */
#include "impl/impl_int.h"

#include <string.h>

void zr_impl_registry_init(struct zr_impl_registry *r, const zarr_allocator *alloc)
{
    *r = (struct zr_impl_registry){0};
    zr_registry_init(&r->impls, "codec implementation", alloc, NULL);
}

void zr_impl_registry_deinit(struct zr_impl_registry *r)
{
    if (r)
        zr_registry_deinit(&r->impls);
}

static uint32_t impl_formats(const zarr_codec_impl_vtable *v)
{
    const uint32_t both = ZARR_CODEC_FOR_V2 | ZARR_CODEC_FOR_V3;

    return v->caps & both ? v->caps & both : ZARR_CODEC_FOR_V3;
}

bool zr_impl_is_for(const struct zr_impl *impl, const zarr_codec_spec_vtable *spec)
{
    const uint32_t format =
        spec->flags & ZARR_CODEC_SPEC_V2 ? ZARR_CODEC_FOR_V2 : ZARR_CODEC_FOR_V3;

    return (impl_formats(&impl->vt) & format) && zr_streq(impl->vt.codec, spec->name);
}

bool zr_impl_is_lost(const struct zr_impl *impl, const struct zr_codec_registry *codecs)
{
    const uint32_t formats = impl_formats(&impl->vt);

    return !((formats & ZARR_CODEC_FOR_V2) &&
             zr_codec_spec_has(codecs, impl->vt.codec, true)) &&
           !((formats & ZARR_CODEC_FOR_V3) &&
             zr_codec_spec_has(codecs, impl->vt.codec, false));
}

/* Preferences contain names, so a name has none of their separators. */
static zarr_status impl_check_name(const char *impl, zarr_error *err)
{
    zarr_status st = zr_check_name("codec implementation", impl, err);

    if (st == ZARR_OK && strpbrk(impl, "=,;"))
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "codec implementation \"%.64s\": names have no =, comma or ;", impl);
    return st;
}

static zarr_status impl_check(const struct zr_impl_registry *r,
                              const zarr_codec_impl_vtable *v, zarr_error *err)
{
    const char *codec = v->codec, *impl = v->impl;
    zarr_status st = impl_check_name(impl, err);

    if (st == ZARR_OK)
        st = zr_check_name("codec of an implementation", codec, err);
    if (st != ZARR_OK)
        return st;
    if (((v->caps & ZARR_CODEC_CAN_DECODE) && !v->decode) ||
        ((v->caps & ZARR_CODEC_CAN_ENCODE) && !v->encode) ||
        !(v->caps & (ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE)))
        return zr_fail(
            err, ZARR_ERR_INVALID,
            "codec implementation \"%s\" of \"%s\": capabilities without functions", impl,
            codec);
    if ((v->caps & ZARR_CODEC_ASYNC) && !v->settle)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "codec implementation \"%s\" of \"%s\": ASYNC without settle",
                       impl, codec);
    if (v->alignment & (v->alignment - 1) || v->alignment > ZR_CHUNK_ALIGNMENT)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "codec implementation \"%s\" of \"%s\": alignment %" PRIu32
                       " is not a power of two up to %d",
                       impl, codec, v->alignment, (int)ZR_CHUNK_ALIGNMENT);
    if (!v->in_kinds || !v->out_kinds)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "codec implementation \"%s\" of \"%s\": no memory kinds", impl,
                       codec);
    for (size_t i = 0; i < zr_impl_count(r); i++) {
        const struct zr_impl *old = zr_impl_at(r, i);

        if (zr_streq(old->vt.codec, codec) && zr_streq(old->vt.impl, impl) &&
            (impl_formats(&old->vt) & impl_formats(v)))
            return zr_fail(err, ZARR_ERR_EXISTS,
                           "codec implementation \"%s\" of \"%s\" is registered "
                           "already, by %s",
                           impl, codec, old->entry.origin);
    }
    return ZARR_OK;
}

bool zr_impl_has(const struct zr_impl_registry *r, const zarr_codec_spec_vtable *spec)
{
    for (size_t i = 0; i < zr_impl_count(r); i++)
        if (zr_impl_is_for(zr_impl_at(r, i), spec))
            return true;
    return false;
}

zarr_status zr_impl_register(struct zr_impl_registry *r, const zarr_codec_impl_vtable *v,
                             const char *origin, zarr_error *err)
{
    const uint32_t n = (uint32_t)zr_impl_count(r);
    struct zr_impl impl = {.entry.origin = origin, .id = n, .order = n};

    if (!v)
        return zr_fail(err, ZARR_ERR_INVALID, "codec implementation: no vtable");
    ZR_CHECK(zr_struct_read(&impl.vt, sizeof impl.vt,
                            offsetof(zarr_codec_impl_vtable, size_hint), v,
                            ZR_TAIL_IGNORE, "zarr_codec_impl_vtable", err));
    ZR_CHECK(impl_check(r, &impl.vt, err));
    return zr_registry_add(&r->impls, &impl.entry, sizeof impl, NULL, err);
}

bool zr_impl_has_device(const struct zr_impl_registry *r, int32_t device_type)
{
    const uint32_t host = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU);

    for (size_t i = 0; device_type > 0 && device_type < 32 && i < zr_impl_count(r); i++) {
        const uint32_t in = zr_impl_at(r, i)->vt.in_kinds;
        const uint32_t out = zr_impl_at(r, i)->vt.out_kinds;

        if (!(in & out & host) && ((in | out) & ZARR_MEMORY_BIT(device_type)))
            return true;
    }
    return false;
}

const char *zr_impl_absence_text(const struct zr_impl_registry *r, const char *codec)
{
    for (const struct zr_impl_absence *a = r->absent; a && a->codec; a++)
        if (zr_streq(a->codec, codec))
            return a->why;
    return NULL;
}

const zarr_codec_impl_vtable *const zr_impl_core[] = {
    &zr_cpu_bytes,
    &zr_cpu_transpose,
    &zr_cpu_shard,
    NULL,
};
