/*
 * impl/trust.c - which decoders that do not check their input (without ZARR_CODEC_SAFE)
 * may be used: all, none, or those whose input has passed a checksum by then. A checksum
 * codec that comes later in the chain is decoded earlier.
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
