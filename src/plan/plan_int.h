/*
 * plan/plan_int.h - what the files of this room share.
 */
#ifndef ZR_PLAN_INT_H
#define ZR_PLAN_INT_H

#include "plan/plan.h"

/* Makes the outermost level for chunks of this shape (array order of dimensions); used by
 * layout.c and variants.c. zr_level_deinit() frees a level's contents. */
zarr_status zr_level_outer_make(const struct zr_layout *l,
                                const struct zr_layout_args *args, const uint64_t *shape,
                                struct zr_level *out, zarr_error *err);
void zr_level_deinit(struct zr_level *lv, const zarr_allocator *alloc);
/* elementwise.c: makes the chain of the level inside a shard, and its fill value. */
bool zr_codec_commutes(const struct zarr_codec_spec *s);
zarr_status zr_level_inner_chain(const struct zr_level *shard, struct zr_level *in,
                                 const zarr_allocator *alloc, zarr_error *err);
zarr_status zr_level_inner_fill(const struct zr_layout *l,
                                const struct zr_layout_args *args, struct zr_level *in,
                                zarr_error *err);
zarr_status zr_variants_make(struct zr_variants **out, const struct zr_layout_args *args,
                             const zarr_allocator *alloc, zarr_error *err);
void zr_variants_free(struct zr_variants *v);
/* As zr_layout_outer(), for a shape that level[0] does not have. */
zarr_status zr_variants_find(const struct zr_layout *l, const uint64_t *shape,
                             const struct zr_level **out, zarr_error *err);
void zr_variant_unref(struct zr_variant *v); /* v may be NULL */

/* Copies a projection into an arena, lists and points included. Returns false if memory
 * is out. */
bool zr_target_pack(struct zr_target *out, const struct zr_projection *p,
                    struct zr_arena *arena);
/* Sorts the items of each shard by offset and cuts them into segments. Whole objects get
 * a segment each. */
zarr_status zr_wave_cut(struct zr_wave *w, const struct zr_plan_args *args,
                        zarr_error *err);

/* ---- plan.c and wave.c -------------------------------------------------- */

/* Shards of one level that the plan works on. */
struct zr_frame {
    struct zr_projection *proj; /* room for `most` */
    const struct zr_level **lv; /* level of each shard, counted */
    struct zr_shard **shard;    /* opened, counted */
    uint64_t *ordinal;
    uint64_t *unit; /* number of the block that it is in */
    uint32_t n, pos, most;
    bool waiting; /* given out as an OPEN wave, not resumed yet */
    struct zr_projector *inner;
    bool inner_active;
    struct zr_projector *leaves; /* counts the chunks of missing shards */
    struct zr_arena lists;       /* copies of list pieces and points of proj */
};

struct zr_plan {
    struct zr_plan_args a;
    const zarr_allocator *alloc;
    struct zr_projector *outer;
    struct zr_frame *frame; /* n_levels - 1 frames */
    uint32_t n_frames;
    uint64_t ordinal;
    uint64_t unit; /* next block */
    struct zr_str key;
    zarr_selection *all; /* used if the caller gave no selection */
};

/* The arrays of a wave grow in arena blocks of doubling size. */
struct zr_wave_builder {
    struct zr_wave *w;
    uint64_t unit; /* of the items that are added */
    uint32_t group_cap, item_cap, hold_cap;
    uint64_t end; /* of the chunk that was added last, in its shard; 0: none yet */
    /* Some chunk of a shard is not stored right behind the one before it. */
    bool is_scattered;
};

bool zr_wave_is_full(const struct zr_plan *p, const struct zr_wave_builder *b);
zarr_status zr_wave_add_whole(struct zr_plan *p, struct zr_wave_builder *b,
                              const struct zr_projection *proj, zarr_error *err);
/* entry: number in the shard's index; UINT64_MAX: the shard is missing. */
zarr_status zr_wave_add_inner(struct zr_plan *p, struct zr_wave_builder *b,
                              struct zr_shard *shard, const struct zr_projection *proj,
                              uint64_t entry, uint32_t fill_level, zarr_error *err);
zarr_status zr_wave_add_missing(struct zr_plan *p, struct zr_wave_builder *b,
                                struct zr_shard *shard, const struct zr_projection *proj,
                                uint32_t level, zarr_error *err);

#endif
