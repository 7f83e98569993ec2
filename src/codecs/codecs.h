/*
 * codecs/codecs.h - the door of the core's codecs, a folder a family: what a codec means
 * beside what does it. They are plug-ins like any other, registered by ctx/builtin.c
 * alone; only transpose, bytes and sharding_indexed are not here, because chains are
 * built of them (chain, impl).
 * Thread class: tables, frozen.
 */
#ifndef ZR_CODECS_H
#define ZR_CODECS_H

#include "chain/chain.h"
#include "impl/impl.h"

/* NULL-terminated. */
extern const zarr_codec_spec_vtable *const zr_codecs_specs[];
extern const zarr_codec_impl_vtable *const zr_codecs_impls[];
/* What this build lacks, for zr_impl_registry. */
extern const struct zr_impl_absence zr_codecs_absent[];

#endif
