/*
 * plan/plan_int.h - what the files of this room share.
 */
#ifndef ZR_PLAN_INT_H
#define ZR_PLAN_INT_H

#include "plan/plan.h"

/* Copies a projection into an arena, lists and points included; false: no memory. */
bool zr_target_pack(struct zr_target *out, const struct zr_projection *p,
                    struct zr_arena *arena);
/* Sorts the items of one shard by offset and cuts them into runs; whole objects get a
 * run each. */
zarr_status zr_wave_cut(struct zr_wave *w, const struct zr_plan_args *args,
                        zarr_error *err);

#endif
