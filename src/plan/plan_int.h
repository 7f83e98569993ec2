/*
 * plan/plan_int.h - what the files of this room share.
 */
#ifndef ZR_PLAN_INT_H
#define ZR_PLAN_INT_H

#include "plan/plan.h"

/* What layout.c and variants.c share: makes the outermost level for chunks of this shape
 * (array order), and takes a level apart. */
zarr_status zr_level_outer_make(const struct zr_layout *l,
                                const struct zr_layout_args *args, const uint64_t *shape,
                                struct zr_level *out, zarr_error *err);
void zr_level_deinit(struct zr_level *lv, const zarr_allocator *alloc);
/* front.c: the chain of the level inside a shard, and its fill value. */
bool zr_codec_commutes(const struct zarr_codec_spec *s);
zarr_status zr_level_inner_chain(const struct zr_level *shard, struct zr_level *in,
                                 const zarr_allocator *alloc, zarr_error *err);
zarr_status zr_level_inner_fill(const struct zr_layout *l,
                                const struct zr_layout_args *args, struct zr_level *in,
                                zarr_error *err);
zarr_status zr_variants_make(struct zr_variants **out, const struct zr_layout_args *args,
                             const zarr_allocator *alloc, zarr_error *err);
void zr_variants_free(struct zr_variants *v);

/* Copies a projection into an arena, lists and points included; false: no memory. */
bool zr_target_pack(struct zr_target *out, const struct zr_projection *p,
                    struct zr_arena *arena);
/* Sorts the items of one shard by offset and cuts them into runs; whole objects get a
 * run each. */
zarr_status zr_wave_cut(struct zr_wave *w, const struct zr_plan_args *args,
                        zarr_error *err);

#endif
