/*
 * impl/trust.c - which decoders that do not check their input (without ZARR_CODEC_SAFE)
 * may be used: all, none, or those whose input has passed a checksum by then. A checksum
 * codec that comes later in the chain is decoded earlier. A program notes which decoders
 * are not used for that reason.
 * Thread class: plain functions.
 */
#include "impl/impl_int.h"

static const char *const trust_words[] = {"", "verified", "full", "none"};

const char *zr_trust_name(uint32_t trust)
{
    return trust_words[ZR_MIN(trust, (uint32_t)ZARR_TRUST_NONE)];
}

bool zr_trust_parse(const char *text, uint32_t *trust)
{
    for (uint32_t i = ZARR_TRUST_VERIFIED; i <= ZARR_TRUST_NONE; i++)
        if (zr_streq(text, trust_words[i])) {
            *trust = i;
            return true;
        }
    return false;
}

uint32_t zr_place_trust(const struct zr_place *p, uint32_t link)
{
    const uint32_t trust = p->opts->trust ? p->opts->trust : ZARR_TRUST_VERIFIED;

    if (trust != ZARR_TRUST_VERIFIED)
        return trust;
    for (uint32_t i = 0; i < link; i++)
        if (p->links[i].spec->vt->flags & ZARR_CODEC_SPEC_CHECKSUM)
            return ZARR_TRUST_FULL;
    return trust;
}

bool zr_place_distrusts(const struct zr_place *p, uint32_t link,
                        const struct zr_impl *impl)
{
    return !p->opts->encode && !(impl->vt.caps & ZARR_CODEC_SAFE) &&
           (impl->vt.caps & ZARR_CODEC_CAN_DECODE) &&
           zr_impl_is_for(impl, p->links[link].spec->vt) &&
           zr_place_trust(p, link) != ZARR_TRUST_FULL;
}

bool zr_place_distrusts_any(const struct zr_place *place)
{
    for (uint32_t link = 0; link < place->n_links; link++)
        for (size_t k = 0; k < zr_impl_count(place->impls); k++)
            if (zr_place_distrusts(place, link, zr_impl_at(place->impls, k)))
                return true;
    return false;
}

static void trust_tell(const struct zr_placement_options *opts, const struct zr_stage *s)
{
    if (!opts->log || !opts->trust_told || s->out_device != ZARR_DEVICE_CPU ||
        (s->distrusted->vt.out_kinds & ZARR_MEMORY_BIT(ZARR_DEVICE_CPU)) ||
        atomic_exchange(opts->trust_told, true))
        return;
    zr_log(opts->log, ZARR_LOG_WARN,
           "trust: \"%s\" of codec \"%s\" does not check its input, so \"%s\" decodes on "
           "the CPU. It is used for data with a checksum codec after \"%s\", or with "
           "ZARRC_TRUST=full if all data is to be trusted",
           s->distrusted->vt.impl, s->distrusted->vt.codec, s->impl->vt.impl,
           s->distrusted->vt.codec);
}

zarr_status zr_program_distrust(struct zr_program *p, const struct zr_place *place,
                                zarr_error *err)
{
    const size_t n = ((size_t)place->n_links + 1) * (zr_impl_count(place->impls) + 1);
    struct zr_placement_options opts = *place->opts;
    struct zr_place trusting = *place;
    struct zr_program q = {.alloc = p->alloc};
    zarr_error none = ZARR_ERROR_INIT;
    zarr_status st = ZARR_OK;
    uint32_t i = 0, k = 0;
    bool *excluded;

    if (!zr_place_distrusts_any(place))
        return ZARR_OK;
    excluded = zr_calloc(p->alloc, n, 1);
    if (!excluded)
        return zr_fail_memory(err, n);
    opts.trust = ZARR_TRUST_FULL; /* places the chain once more as if all were trusted */
    trusting.opts = &opts;
    trusting.excluded = excluded;
    st = zr_program_place(&q, &trusting, excluded, &none);
    for (; st == ZARR_OK && i < p->n; i++) { /* both have one stage for each link */
        if (p->stage[i].kind != ZR_STAGE_CODEC)
            continue;
        while (q.stage[k].kind != ZR_STAGE_CODEC)
            k++;
        if (q.stage[k].impl != p->stage[i].impl &&
            !(q.stage[k].impl->vt.caps & ZARR_CODEC_SAFE)) {
            p->stage[i].distrusted = q.stage[k].impl;
            p->distrusts = true;
            trust_tell(place->opts, &p->stage[i]);
        }
        k++;
    }
    zr_program_drop_stages(&q);
    zr_free(p->alloc, excluded);
    return st == ZARR_ERR_NO_MEMORY ? zr_fail_memory(err, n) : ZARR_OK;
}
