/*
 * chain/chain_int.h - shared inside the room: links, nested chains and shards while they
 * are parsed, completed and written.
 */
#ifndef ZR_CHAIN_INT_H
#define ZR_CHAIN_INT_H

#include "chain/chain.h"

extern const zarr_codec_spec_vtable zr_spec_bytes, zr_spec_transpose, zr_spec_sharding;

/* ---- links (link.c) ---------------------------------------------------------- */

void zr_link_deinit(struct zarr_codec_spec *s);
/* Takes canonical text (moved, also on failure). Parses it into config and the facts that
 * are often needed. */
zarr_status zr_link_set_config(struct zarr_codec_spec *s, char *json, zarr_error *err);
/* As zr_foreign_fail(), naming the codec. Returns INTERNAL if the codec's answer breaks
 * its contract. */
zarr_status zr_spec_fail(const struct zarr_codec_spec *s, struct zr_foreign *f,
                         zarr_status st);
zarr_status zr_spec_broke(const struct zarr_codec_spec *s, const char *how,
                          zarr_error *err);
/* Chooses the entry that zr_spec_ask() calls: spell() if `spelling` is set, fill_read()
 * or fill_write() if `fill` is set, complete() if `in` is set, else canonical(). The
 * vtable must have that entry. */
struct zr_spec_question {
    int format;
    const zarr_chunk_spec *in, *array;
    zarr_codec_spelling *spelling;
    const char *fill;
    const zarr_dtype *dtype; /* of the fill value */
    bool to_metadata;
};
/* *out: the text that the entry writes, owned by the caller (s->alloc); NULL if it writes
 * none. */
zarr_status zr_spec_ask(const struct zarr_codec_spec *s, struct zr_spec_question *q,
                        char **out, zarr_error *err);
/* The text becomes the configuration; without one it stays as it is. */
zarr_status zr_link_ask_config(struct zarr_codec_spec *s, struct zr_spec_question *q,
                               zarr_error *err);
/* Asks the vtable for the canonical form of the configuration at s->members, and stores
 * it as the link's configuration. */
zarr_status zr_link_canonical(struct zarr_codec_spec *s, int format, zarr_error *err);

/* Parses the chains that s->vt->chains names (sub.c). Recursion is bounded by
 * limits.codecs: each level has a codec. */
struct zr_parse;
zarr_status zr_sub_parse(struct zarr_codec_spec *s, struct zr_parse *p, zarr_error *err);
void zr_sub_free(struct zarr_codec_spec *s);
/* Writes the chain's text. Replaces the old text if there is one. */
zarr_status zr_sub_print(struct zr_sub_chain *sub, int format,
                         const zarr_allocator *alloc, zarr_error *err);

/* v2 filters (v2_filters.c): codecs that work on bytes in v2, and between arrays in
 * v3. */
bool zr_spec_is_filter(const struct zarr_codec_spec *s);
/* Gives the types of the elements before and after the codec (vtable.elements). `in` is
 * as in vtable.elements. */
zarr_status zr_spec_elements(const struct zarr_codec_spec *s, const char *in,
                             zarr_codec_elements *out, zarr_error *err);
/* Whether each filter of a v2 chain can take the elements that come to it. */
zarr_status zr_filters_check(const struct zr_chain *chain, const zarr_dtype *dtype,
                             zarr_error *err);
/* v2 (v2_filters.c): turns `bytes` and the filters after it, before an array->bytes
 * codec, into filters between arrays. Returns UNSUPPORTED for elements that such a codec
 * cannot get. */
zarr_status zr_chain_place_v2_filters(struct zr_chain *chain, const struct zr_parse *p,
                                      zarr_error *err);
/* Notes in each link the effects of the codecs before it. Call it once all links have
 * their place. */
void zr_chain_note_inputs(struct zr_chain *chain);

/* ---- chains and shards --------------------------------------------------------- */

/* The maximum depth of codecs nested in codecs, shards included: it bounds the C stack
 * for running them. */
#define ZR_SUB_DEPTH 8

struct zr_parse { /* one call of zr_chain_parse(), all nested chains together */
    const struct zr_codec_registry *registry;
    const zarr_allocator *alloc;
    zarr_limits limits;
    int format;
    bool allow_missing_bytes;
    bool stored, nczarr;
    /* Number of chains of other codecs around this one; 0: the array's own chain. A
     * nested chain may lack an array->bytes codec. */
    uint32_t sub;
    uint32_t n_codecs;                   /* so far */
    uint32_t depth;                      /* of shards around this chain */
    const struct zr_chain_place *places; /* of the array's own items; NULL: none given */
};
/* Prefixes the message with the link's place: "codecs[1]", "filters[0]" or
 * "compressor". */
zarr_status zr_link_prefix(zarr_error *err, zarr_status st,
                           const struct zarr_codec_spec *s);
/* `label` names the list in messages: "codecs", "index_codecs". Recursion is bounded by
 * limits.shard_depth. */
zarr_status zr_chain_parse_list(struct zr_chain **out, struct zr_parse *p,
                                const char *label, const struct zr_json *codecs,
                                zarr_error *err);
/* Reads s->members, the raw configuration, and fills s->structure.shard, which is all
 * that the library itself reads of a shard. */
zarr_status zr_shard_spec_parse(struct zarr_codec_spec *s, struct zr_parse *p,
                                zarr_error *err);
void zr_shard_spec_free(struct zr_shard_spec *shard, const zarr_allocator *alloc);
/* Computes rep[i + 1] from rep[i] of `around`, and whether it is unsized. */
zarr_status zr_shard_spec_resolve(const struct zarr_codec_spec *s,
                                  struct zr_chain_reps *around, uint32_t i,
                                  const zarr_limits *limits, zarr_error *err);
/* Copies limits and sets each member that is zero to its default. limits NULL: all
 * defaults. */
void zr_codec_limits(zarr_limits *out, const zarr_limits *limits);

#endif
