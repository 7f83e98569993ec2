/*
 * plan/elementwise.c - codecs that compute before a shard. A codec that works element by
 * element commutes with cutting the shard into chunks: the chain of the chunk
 * becomes these codecs followed by its own, and a chunk is read and written alone
 * like any other. A chunk that is missing inside a stored shard has the fill value as
 * these codecs encoded it. Decoded, this may differ from the array's fill value, which is
 * the value of a missing shard.
 * Thread class: plain functions.
 */
#include "plan/plan_int.h"

#include <string.h>

bool zr_codec_commutes(const struct zarr_codec_spec *s)
{
    return (s->vt->flags & ZARR_CODEC_SPEC_ELEMENTWISE) != 0;
}

static uint32_t count_elementwise(const struct zr_chain *chain)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < chain->a2b; i++)
        n += zr_codec_commutes(&chain->codec[i]);
    return n;
}

zarr_status zr_level_inner_chain(const struct zr_level *shard, struct zr_level *in,
                                 const zarr_allocator *alloc, zarr_error *err)
{
    const struct zr_chain *inner = shard->shard->inner;
    const uint32_t n = count_elementwise(shard->chain);
    struct zr_chain *own = &in->own;
    uint32_t k = 0;

    in->chain = inner;
    if (n == 0)
        return ZARR_OK;
    own->codec = zr_calloc(alloc, (size_t)n + inner->n, sizeof *own->codec);
    if (!own->codec)
        return zr_fail_memory(err, (n + (uint64_t)inner->n) * sizeof *own->codec);
    for (uint32_t i = 0; i < shard->chain->a2b; i++)
        if (zr_codec_commutes(&shard->chain->codec[i]))
            own->codec[k++] = shard->chain->codec[i];
    memcpy(own->codec + n, inner->codec, inner->n * sizeof *own->codec);
    own->n = n + inner->n;
    own->a2b = n + inner->a2b;
    own->alloc = alloc;
    in->chain = own;
    in->n_elementwise = n;
    return ZARR_OK;
}

/* `in` must be resolved. */
zarr_status zr_level_inner_fill(const struct zr_layout *l,
                                const struct zr_layout_args *args, struct zr_level *in,
                                zarr_error *err)
{
    const struct zr_chain elementwise = {.codec = in->own.codec,
                                         .n = in->n_elementwise,
                                         .a2b = in->n_elementwise,
                                         .alloc = l->alloc};
    const size_t bytes = l->item_bytes;
    zarr_status st = ZARR_OK;

    in->fill = l->fill;
    in->fill_swapped = l->fill_swapped;
    if (in->n_elementwise == 0)
        return ZARR_OK;
    in->own_fill = zr_calloc(l->alloc, 2, bytes);
    if (!in->own_fill)
        return zr_fail_memory(err, 2 * bytes);
    st = zr_element_decode(args->impls, &elementwise, &in->reps, args->trust,
                           in->own_fill, l->alloc, err);
    if (st != ZARR_OK)
        return zr_prefix(err, st, "the fill value of chunks missing in a shard");
    memcpy(in->own_fill + bytes, in->own_fill, bytes);
    if (l->swap_unit > 1)
        zr_byteswap(in->own_fill + bytes, in->own_fill, bytes / l->swap_unit,
                    l->swap_unit);
    in->fill = in->own_fill;
    in->fill_swapped = in->own_fill + bytes;
    return ZARR_OK;
}
