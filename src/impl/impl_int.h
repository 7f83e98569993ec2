/*
 * impl/impl_int.h - shared inside the room: preferences, programs of runners, placement.
 */
#ifndef ZR_IMPL_INT_H
#define ZR_IMPL_INT_H

#include "impl/impl.h"

extern const zarr_codec_impl_vtable zr_cpu_bytes, zr_cpu_transpose, zr_cpu_shard;

/* ---- preferences (preference.c) -------------------------------------------------- */

/* Index of this implementation in its codec's list; the length of the list if it is not
 * in it. */
uint32_t zr_preference_rank(const char *text, const char *codec, const char *impl);
/* A warning in the log if the preference has a list for a codec, and the implementation
 * that was chosen is not in it. */
void zr_preference_tell(const struct zr_placement_options *opts,
                        const struct zr_impl_registry *impls, const zarr_codec_spec *spec,
                        const struct zr_impl *chosen);

/* ---- failures (stage.c) ---------------------------------------------------------- */

/* zr_foreign_fail() with the name of the implementation in the text. */
zarr_status zr_impl_fail(const struct zr_impl *impl, struct zr_foreign *f, zarr_status st,
                         bool cancelled);

/* ---- programs of runners (program.c) ---------------------------------------------- */

/* A program in which all codecs of the chain are stages on the host; no copy applies a
 * permutation or a byte order. reps: resolved by zr_chain_resolve_any(). opts: for the
 * host. */
zarr_status zr_program_make_plain(struct zr_program **out,
                                  const struct zr_impl_registry *impls,
                                  const struct zr_chain *chain,
                                  const struct zr_chain_reps *reps,
                                  const struct zr_placement_options *opts,
                                  const zarr_allocator *alloc, zarr_error *err);

/* ---- runners (runner.c) ----------------------------------------------------------- */

/* A runner of all codecs of a chain that is not among the codec's nested chains, such as
 * those of a shard. member: its name in messages. */
zarr_status zr_runner_open_chain(zarr_codec_runner **out, const zarr_codec_spec *spec,
                                 const char *member, const struct zr_chain *chain,
                                 const zarr_chunk_spec *decoded, zarr_error *err);
/* Pushes n buffers, which keep the memory that earlier buffers at their places had. */
zarr_status zr_buffer_stack_push(struct zr_buffer_stack *s, size_t n,
                                 const zarr_allocator *alloc, zarr_error *err);

/* ---- placement (place.c) ----------------------------------------------- */

struct zr_place_link { /* one codec of the chain to be placed, in decoding order */
    const zarr_codec_spec *spec;
    const zarr_chunk_spec *encoded, *decoded;
};
struct zr_step { /* the implementation chosen for a link; impl NULL: a copy before it */
    const struct zr_impl *impl;
    uint32_t link;
    int32_t in_device, out_device;
};
struct zr_place {
    const struct zr_impl_registry *impls;
    const struct zr_placement_options *opts;
    const struct zr_place_link *links;
    uint32_t n_links;
    const struct zr_costs *costs; /* of the device; NULL: none were measured */
    const bool *excluded; /* [link * zr_impl_count(impls) + impl id]: refused to bind */
    const zarr_allocator *alloc;
};
/* steps: room for 3 * n_links + 1. UNSUPPORTED names the codec without an implementation.
 */
zarr_status zr_place_path(const struct zr_place *p, struct zr_step *steps,
                          uint32_t *n_steps, zarr_error *err);
/* ZARR_TRUST_FULL if all implementations may decode this link: the user says so, or a
 * checksum around it is checked first. Otherwise another ZARR_TRUST_*. */
uint32_t zr_place_trust(const struct zr_place *p, uint32_t link);
/* What was measured for a link, by this implementation of the target's device (NULL: by
 * any); NULL: nothing. */
const struct zr_measured *zr_place_find_measurement(const struct zr_place *p,
                                                    uint32_t link,
                                                    const struct zr_impl *impl);
/* Whether only the lack of trust keeps an implementation from the link. */
bool zr_place_distrusts(const struct zr_place *p, uint32_t link,
                        const struct zr_impl *impl);
bool zr_place_distrusts_any(const struct zr_place *p); /* some codec's decoder */
/* Whether this implementation runs the link's codec in the wanted direction between these
 * memories. *cost: its cost. */
bool zr_place_is_usable(const struct zr_place *p, uint32_t link,
                        const struct zr_impl *impl, int32_t in_device, int32_t out_device,
                        int64_t *cost);

/* ---- stages of a program (bind.c, trust.c) ------------------------------ */

/* The room for a representation: while decoding one without an exact size, more than its
 * bound. */
uint64_t zr_stage_rep_bytes(const zarr_chunk_spec *rep, bool encode);
/* Places the links and binds their implementations. excluded: place->excluded. */
zarr_status zr_program_place(struct zr_program *p, const struct zr_place *place,
                             bool *excluded, zarr_error *err);
/* Notes in each stage which implementation it would have if all were trusted. */
zarr_status zr_program_distrust(struct zr_program *p, const struct zr_place *place,
                                zarr_error *err);
void zr_program_drop_stages(struct zr_program *p);

#endif
