/*
 * impl/costs.c - what was measured on this machine: whether chunks reach a device sooner
 * if the CPU does a codec and the elements are copied, or if the encoded bytes are copied
 * and the device does it. Without a measurement the device does it, except by an
 * implementation with ZARR_CODEC_IF_FASTER.
 * Thread class: frozen.
 */
#include "impl/impl_int.h"

#include <string.h>

enum {
    COSTS_NEAR = 8 /* chunks of so many times the size may behave alike */
};

static uint64_t size_distance(uint64_t a, uint64_t b)
{
    const uint64_t small = ZR_MAX(ZR_MIN(a, b), UINT64_C(1));

    return ZR_MAX(a, b) / small;
}

const struct zr_measured *zr_costs_find(const struct zr_costs *costs,
                                        const struct zr_measured_key *of)
{
    const struct zr_measured *best = NULL;
    uint64_t least = COSTS_NEAR + 1;

    for (uint32_t i = 0; costs && i < costs->n; i++) {
        const struct zr_measured *m = &costs->of[i];
        const uint64_t distance = size_distance(m->chunk_bytes, of->chunk_bytes);

        if (m->device_type != of->device_type || m->to_stored != of->to_stored ||
            !zr_streq(m->codec, of->codec) || (of->impl && !zr_streq(m->impl, of->impl)))
            continue;
        if (distance < least) {
            least = distance;
            best = m;
        }
    }
    return best;
}

const struct zr_costs *zr_impl_costs(const struct zr_impl_registry *r)
{
    return r->costs ? r->costs(r->costs_arg) : NULL;
}
