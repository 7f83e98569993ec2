/*
 * impl/impl_int.h - shared inside the room: preferences, programs of runners, placement.
 */
#ifndef ZR_IMPL_INT_H
#define ZR_IMPL_INT_H

#include "impl/impl.h"

extern const zarr_codec_impl_vtable zr_cpu_bytes, zr_cpu_transpose, zr_cpu_shard;

/* ---- preferences (preference.c) ------------------------------------------------------
 */

/* INVALID with the place when it is not "codec=impl,impl;codec=...". NULL is fine. */
zarr_status zr_preference_check(const char *text, zarr_error *err);
/* Place of this implementation in its codec's list, 0 first; the list's length when not
 * in it. */
uint32_t zr_preference_rank(const char *text, const char *codec, const char *impl);

/* ---- failures (stage.c) -------------------------------------------------------------
 */

/* zr_foreign_failed(), naming the implementation. */
zarr_status zr_impl_failed(const struct zr_impl *impl, struct zr_foreign *f,
                           zarr_status st, bool cancelled);

/* ---- programs of runners (program.c) ---------------------------------------------- */

/* All codecs of the chain are stages on the host; nothing is left to a copy. reps as
 * resolved by zr_chain_resolve_any(). */
zarr_status zr_program_make_plain(struct zr_program **out,
                                  const struct zr_impl_registry *impls,
                                  const struct zr_chain *chain,
                                  const struct zr_chain_reps *reps, bool encode,
                                  const zarr_allocator *alloc, zarr_error *err);

/* ---- runners (runner.c) ----------------------------------------------------------- */

/* The same for all of a chain that a codec has besides: a shard's; member names it. */
zarr_status zr_runner_open_chain(zarr_codec_runner **out, const zarr_codec_spec *spec,
                                 const char *member, const struct zr_chain *chain,
                                 const zarr_chunk_spec *decoded, zarr_error *err);
/* n more on top, with the memory that their places had. */
zarr_status zr_buffer_stack_push(struct zr_buffer_stack *s, size_t n,
                                 const zarr_allocator *alloc, zarr_error *err);

/* ---- placement (place.c) ----------------------------------------------- */

struct zr_place_link { /* one codec of the chain to be placed, in decoding order */
    const zarr_codec_spec *spec;
    const zarr_chunk_spec *encoded, *decoded;
};
struct zr_step { /* what was chosen: an implementation for link i, or a copy (impl NULL)
                    before it */
    const struct zr_impl *impl;
    uint32_t link;
    int32_t in_device, out_device;
};
struct zr_place {
    const struct zr_impl_registry *impls;
    const struct zr_placement_options *opts;
    const struct zr_place_link *links;
    uint32_t n_links;
    const bool *excluded; /* [link * zr_impl_count(impls) + impl]: refused to bind */
    const zarr_allocator *alloc;
};
/* steps: room for 2 * n_links + 1. UNSUPPORTED names the codec without an implementation.
 */
zarr_status zr_place_path(const struct zr_place *p, struct zr_step *steps,
                          uint32_t *n_steps, zarr_error *err);
/* Whether this implementation does this codec in the wanted direction between these
 * memories; its cost. */
bool zr_place_usable(const struct zr_place *p, uint32_t link, const struct zr_impl *impl,
                     int32_t in_device, int32_t out_device, int64_t *cost);

#endif
