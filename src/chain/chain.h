/*
 * chain/chain.h - the door to codec specifications and chains of them, and how a chunk's
 * representation passes through a chain. Pure: no memory kinds, no compression library. A
 * chain is array->array codecs, one array->bytes codec (`bytes` or `sharding_indexed`),
 * and bytes->bytes codecs, in encoding order. v2 arrays have the same chains: order F is
 * a transpose, then comes `bytes`, then filters and compressor as bytes->bytes codecs
 * (numcodecs filters work on buffers and name their own data types).
 * Thread class: registries sealed, chains frozen once parsed.
 */
#ifndef ZR_CHAIN_H
#define ZR_CHAIN_H

#include "base/base.h"
#include "dtype/dtype.h"
#include "json/json.h"
#include <zarrc/plugin/codec.h>

/* The codecs that chains are built of. The machinery reads their configuration itself. */
enum zr_structure_kind {
    ZR_STRUCTURE_NONE, /* any other codec */
    ZR_STRUCTURE_TRANSPOSE,
    ZR_STRUCTURE_BYTES,
    ZR_STRUCTURE_SHARD
};

struct zr_codec_registry {
    struct zr_registry specs;
    struct zr_registry v2; /* specifications with ZARR_CODEC_SPEC_V2 */
    struct zr_dtype_registry
        *dtypes; /* borrowed: must outlive the registry and all its chains */
    /* The implementations that run chains inside codecs. Opaque here: `impl` defines
     * them, and the owner of both registries sets the pointer. NULL: such chains cannot
     * be run. */
    const void *impls;
    const zarr_allocator *alloc;
};
void zr_codec_registry_init(struct zr_codec_registry *r, struct zr_dtype_registry *dtypes,
                            const zarr_allocator *alloc);
void zr_codec_registry_deinit(struct zr_codec_registry *r);
/* Returns EXISTS, naming the owner, if a name or alias is taken. */
zarr_status zr_codec_spec_register(struct zr_codec_registry *r,
                                   const zarr_codec_spec_vtable *v, const char *origin,
                                   zarr_error *err);
/* "core", or the name of the registrant. The argument comes from a look-up. */
const char *zr_codec_spec_origin(const zarr_codec_spec_vtable *registered);
/* Whether a specification has exactly this name. v2: look among those that only v2
 * has. */
bool zr_codec_spec_has(const struct zr_codec_registry *r, const char *name, bool v2);
const zarr_codec_spec_vtable *zr_codec_spec_lookup(const struct zr_codec_registry *r,
                                                   const char *name);
/* Gives ZR_STRUCTURE_NONE unless it is the core's transpose, bytes or
 * sharding_indexed. */
enum zr_structure_kind zr_codec_spec_structure(const zarr_codec_spec_vtable *registered);
/* Gives the specification of a v2 id. NULL: unknown. */
const zarr_codec_spec_vtable *zr_codec_spec_lookup_v2(const struct zr_codec_registry *r,
                                                      const char *id);
/* The specifications that are structure: a NULL-terminated table for ctx/builtin.c. */
extern const zarr_codec_spec_vtable *const zr_chain_specs[];
/* The codecs and storage transformers that are refused on purpose: kinds "codec" and
 * "storage transformer". */
extern const struct zr_refusal zr_codec_refused[];

struct zr_chain;

/* The configuration of `sharding_indexed`, parsed. */
struct zr_shard_spec {
    int32_t ndim;
    uint64_t chunk_shape[ZARR_MAX_RANK]; /* of its chunks, in the order of dimensions that
                                            the codec sees */
    struct zr_chain *inner;              /* owned */
    struct zr_chain *index;              /* owned; fixed size */
    const zarr_dtype *index_dtype;       /* uint64 */
    bool index_at_end;
};

/* transpose: values of n_order for "C" and "F", which old drafts have for any rank. */
enum {
    ZR_ORDER_C = -1,
    ZR_ORDER_F = -2
};

/* A chain in the configuration of a codec (vtable.chains). */
struct zr_sub_chain {
    const char *member;     /* the vtable's */
    struct zr_chain *chain; /* owned */
    char *json;             /* canonical, owned */
};

enum zr_direction {
    ZR_DIRECTION_BOTH,
    ZR_DIRECTION_DECODE,
    ZR_DIRECTION_ENCODE
};

/* The place of a codec in a document: "filters" and 2, "compressor" and -1. */
struct zr_chain_place {
    const char *field; /* static */
    int32_t at;        /* -1: no list */
    bool ours; /* v2: the reader made it from "order" or "dtype"; the document does not
                  name it */
};

/* The facts that a link of one of these kinds adds to the structure. */
struct zr_structure {
    enum zr_structure_kind kind;
    uint8_t order[ZARR_MAX_RANK]; /* transpose: B dim i is A dim order[i]; see
                                     zr_spec_order() */
    int32_t n_order;              /* transpose: entries of order, or ZR_ORDER_C, _F */
    /* bytes: ZARR_ORDER_LITTLE, _BIG, NATIVE (not given), or MIXED in v2, whose leaves
     * are borrowed from config */
    struct zr_order stored;
    struct zr_shard_spec *shard; /* sharding_indexed: the inner grid, owned */
};

struct zarr_codec_spec { /* one link */
    const zarr_codec_spec_vtable *vt;
    const zarr_allocator *alloc;
    struct zr_dtype_registry *dtypes;
    const struct zr_json *members; /* the getters read these; config.root, once parsed */
    char *json;                    /* canonical configuration text; NULL: a shard */
    struct zr_json_doc config;     /* the same, parsed */
    bool must_understand;          /* false only if the metadata says so */
    bool prefixed;                 /* metadata names it "numcodecs." + name */
    bool v3;                       /* in a chain of format 3 */
    bool stored;                   /* of a store's document: see zr_conf_is_stored() */
    bool nczarr;                   /* of an array that NCZarr wrote */
    struct zr_chain_place place;   /* for messages */
    const struct zr_codec_registry *registry; /* borrowed */
    struct zr_sub_chain *sub;                 /* n_sub of them, owned */
    uint32_t n_sub;
    uint64_t most_bytes;  /* limits.chunk_bytes when it was parsed */
    uint64_t most_chunks; /* limits.chunks_per_shard */
    /* Set in a stage's copy: the direction whose runners are made at once,
     * and which implementations these may use (ZARR_TRUST_*). */
    enum zr_direction direction;
    uint32_t trust;
    struct zr_structure structure; /* parsed once */
    zarr_codec_input input;        /* about the codecs before it */
};
/* The links of a chain have no configuration for shards, which `structure` describes:
 * writing and parsing it would be a third of the time of opening an array. This one gives
 * it to a copy of such a link, for the getters of implementations; other links stay as
 * they are. The copy owns it until zr_spec_drop_shard_config(). */
zarr_status zr_spec_own_shard_config(struct zarr_codec_spec *s, zarr_error *err);
void zr_spec_drop_shard_config(struct zarr_codec_spec *s);
/* Gives the permutation of a transpose for this rank, also if it is spelled "C" or
 * "F". */
zarr_status zr_spec_order(const zarr_codec_spec *spec, int32_t ndim, uint8_t *order,
                          zarr_error *err);

struct zr_chain {
    struct zarr_codec_spec *codec; /* n of them */
    uint32_t n, a2b;   /* a2b: index of the array->bytes codec; n: none, only in chains
                          inside other codecs */
    const char *label; /* the member that is this list, static; NULL: none (v2) */
    const zarr_allocator *alloc;
};

/*
 * Gives the codec that forces the shards of this chain to be decoded and encoded whole:
 * the first codec before the shards that neither permutes dimensions nor works element
 * by element. An implementation of sharding_indexed then runs like any other
 * array->bytes codec. NULL: its chunks can be read and written alone, or the chain has
 * no shards.
 */
const struct zarr_codec_spec *zr_chain_whole_shard(const struct zr_chain *chain);
/* Gives the number that each edge of a chunk must be a multiple of: for a shard
 * the edge of its chunks, else 1. It holds also if codecs before the shard change the
 * shape. */
zarr_status zr_chain_unit(const struct zr_chain *chain, int32_t ndim, uint64_t *unit,
                          zarr_error *err);

struct zr_chain_parse_options {
    int format; /* 2 or 3: spelling of members */
    const zarr_limits *limits;
    bool allow_missing_bytes; /* accept a chain without array->bytes codec if it is
                                 unambiguous (old drafts) */
    /* v2: the place of each item in the document. NULL: the list is complete and contains
     * `transpose` and `bytes`, as zr_chain_write() makes it. */
    const struct zr_chain_place *places;
    /* The document comes from a store: members that only encoding needs may have any
     * value. */
    bool stored;
    bool nczarr; /* v2: NCZarr, a part of netCDF-C, wrote the array */
};
/* Parses a JSON array of codecs: objects {name, configuration, must_understand} or bare
 * strings in format 3, {"id":..., members...} in format 2. The caller owns the chain:
 * zr_chain_free(). Returns UNSUPPORTED, with the name, for unknown codecs. Checks order
 * and kinds of links, and limits (codecs, shard_depth). */
zarr_status zr_chain_parse(struct zr_chain **out, const struct zr_codec_registry *r,
                           const struct zr_json *codecs,
                           const struct zr_chain_parse_options *opts,
                           const zarr_allocator *alloc, zarr_error *err);
/* ---- completing and writing ---------------------------------------------- */

/* Fills in the configuration that depends on the array, so that the written chain is
 * complete: blosc's typesize and shuffle, a transpose spelled by a letter. Drops `endian`
 * if elements have one byte or no order. Does the same in chains inside shards and the
 * core's other codecs. Call it before the chain is shared: for new arrays and
 * conversions. `chunk` is as for zr_chain_resolve(). */
zarr_status zr_chain_complete(struct zr_chain *chain, const zarr_chunk_spec *chunk,
                              zarr_error *err);
/* Sets little-endian if `bytes` gives no order, in this chain and inside its shards,
 * because the writers of `structured` meant that. Call it before the chain is shared. */
zarr_status zr_chain_complete_order(struct zr_chain *chain, const zarr_dtype *dtype,
                                    zarr_error *err);
/* Completes only the codecs that cannot be decoded otherwise (vtable.incomplete), here
 * and inside shards and other codecs. *completed: there was such a codec. Returns
 * UNSUPPORTED if the array does not tell the missing part. Call it before the chain is
 * shared; the chain was resolved for `chunk`. */
zarr_status zr_chain_complete_stored(struct zr_chain *chain, const zarr_chunk_spec *chunk,
                                     bool *completed, zarr_error *err);
/* Checks that zr_chain_write() can write this chain. Returns UNSUPPORTED for shards in
 * v2, and in v3 for a filter that computes after other filters or in another byte order.
 * Call it before conversions. */
zarr_status zr_chain_has_form(const struct zr_chain *chain, int format, zarr_error *err);
/* Writes the canonical JSON array of the chain (format 3: name + configuration; format 2:
 * id + members). v2 filters that compute and come right after `bytes` become v3's codecs
 * between arrays, before `bytes`. In format 2 links keep the chain's order and their own
 * names: the caller knows which of them v2 has. Returns NULL if memory is short or the
 * chain has no form (see above); doc has failed in both cases. */
struct zr_json *zr_chain_write(struct zr_json_doc *doc, const struct zr_chain *chain,
                               int format);
/* The same in v3's notation, for people and for making another array like this one. v2
 * filters that have no form in v3 stay after `bytes`, with the byte orders that they
 * name. */
struct zr_json *zr_chain_show(struct zr_json_doc *doc, const struct zr_chain *chain);
void zr_chain_free(struct zr_chain *chain);
/* Whether the filters of a v2 chain can encode elements of this type, else UNSUPPORTED. A
 * document of a store may name a filter that can only decode them. */
zarr_status zr_filters_encode(const struct zr_chain *chain, const zarr_dtype *dtype,
                              zarr_error *err);
/* Converts a v2 fill value to the element as the data type spells it, or such an element
 * to what v2 metadata have (to_metadata), by the rule of the array->bytes codec. *out
 * belongs to doc. NULL: the codec has no such rule, and the value is both. */
zarr_status zr_chain_fill(const struct zr_chain *chain, const zarr_dtype *dtype,
                          const struct zr_json *v, bool to_metadata,
                          struct zr_json_doc *doc, struct zr_json **out, zarr_error *err);

/*
 * Checks the chain against a chunk and gives the n + 1 representations between all links:
 * rep[0] is the chunk as the array sees it, and rep[i + 1] is the output of codec i. Also
 * checks the inner chains of shards (divisibility, index of fixed size). `fills` holds
 * the transformed fill values.
 */
struct zr_chain_reps {
    zarr_chunk_spec *rep; /* n + 1 */
    uint8_t *fills;       /* (n + 1) * fill_bytes; rep[].fill points into it */
    uint64_t fill_bytes;  /* room for one element: ZR_FILL_BYTES or the array's item */
    uint32_t n;
    bool unsized; /* only limits.chunk_bytes bounds a size: do not allocate by it */
    const zarr_allocator *alloc;
};
#define ZR_FILL_BYTES 512
zarr_status zr_chain_resolve(struct zr_chain_reps *out, const struct zr_chain *chain,
                             const zarr_chunk_spec *chunk, const zarr_limits *limits,
                             const zarr_allocator *alloc, zarr_error *err);
/* The same. `varies`: the array has one dimension of any length up to shape[0]. A chunk
 * without dtype is n_bytes bytes for a chain of bytes->bytes codecs; `exact` tells
 * whether n_bytes is exact or a bound. */
zarr_status zr_chain_resolve_any(struct zr_chain_reps *out, const struct zr_chain *chain,
                                 const zarr_chunk_spec *chunk, bool varies,
                                 const zarr_limits *limits, const zarr_allocator *alloc,
                                 zarr_error *err);
void zr_chain_reps_deinit(struct zr_chain_reps *reps);
/* The bound of a size that metadata does not give, if limits.chunk_bytes is larger:
 * products of many such sizes must fit 64 bits. */
#define ZR_UNSIZED_BYTES (UINT64_C(1) << 36)
/* Gives the largest output of a bytes->bytes codec for n_bytes of input. */
zarr_status zr_spec_bound(const zarr_codec_spec *spec, uint64_t n_bytes,
                          uint64_t *encoded, zarr_error *err);
/* Gives the first codec of the chain that does not keep every value of its input. NULL:
 * no codec is known to lose values. */
const struct zarr_codec_spec *zr_chain_lossy(const struct zr_chain *chain,
                                             const struct zr_chain_reps *reps);
/* Whether encoded chunks, up to the bytes->bytes codecs, are the elements of this type,
 * packed (vtable.packs). */
bool zr_chain_packs(const struct zr_chain *chain, const zarr_dtype *dtype);
/* Gives a chain of the configuration. NULL: absent. */
const struct zr_sub_chain *zr_spec_sub(const zarr_codec_spec *spec, const char *member);

/* The representations of the two chains inside a shard. */
struct zr_shard_inner_specs {
    zarr_chunk_spec chunk, index; /* inputs of the two chains, without sizes */
    uint64_t grid[ZARR_MAX_RANK], n_chunks;
};
/* Returns INVALID if the chunks do not fit the shard, LIMIT if there are more than
 * `most`. */
zarr_status zr_shard_inner_specs(const struct zr_shard_spec *s,
                                 const zarr_chunk_spec *shard, uint64_t most,
                                 struct zr_shard_inner_specs *out, zarr_error *err);

/* ---- indexes of shards (shard_index.c) ------------------------------------------ */

#define ZR_INDEX_MISSING UINT64_MAX
/* n pairs of offset and bytes in host order. Offsets count from the value's first byte. A
 * pair of all ones means missing. The index itself is in the value at index_offset
 * (index_bytes 0: its place is unknown). shard_bytes UINT64_MAX: unknown. */
struct zr_shard_pairs {
    const uint64_t *pairs;
    uint64_t n, shard_bytes, index_offset, index_bytes;
};
/* Checks that entry i lies inside the value, does not wrap and does not overlap the
 * index. Returns CORRUPT, naming the entry, if not. */
zarr_status zr_shard_pair_check(const struct zr_shard_pairs *in, uint64_t i,
                                zarr_error *err);
/* Whether the pair means missing. */
#define ZR_PAIR_IS_MISSING(pair)                                                         \
    ((pair)[0] == ZR_INDEX_MISSING && (pair)[1] == ZR_INDEX_MISSING)
/* Gives the place of the index in a value. Returns CORRUPT if the value is too short for
 * an index. */
zarr_status zr_shard_index_at(const struct zr_shard_spec *s, uint64_t shard_bytes,
                              uint64_t index_bytes, uint64_t *at, zarr_error *err);

/* ---- for specifications (conf.c) ------------------------------------------------- */

/* Reading a raw configuration and writing its canonical text, without allocating. */
/* INVALID for a member that is not among the NULL-terminated `known`. Documents of a
 * store may have any members in format 2. */
zarr_status zr_conf_check_members(const zarr_codec_spec *raw, int format,
                                  const char *const *known, zarr_error *err);
/* Gives a member of the configuration as JSON, borrowed. NULL: absent. */
const struct zr_json *zr_conf_value(const zarr_codec_spec *raw, const char *member);
/* Give the data type that a member names. The first function reads a name as in v3
 * metadata. The second reads any name that zarr_dtype_find() takes, and gives its byte
 * order (ZARR_ORDER_*). */
zarr_status zr_conf_dtype_v3(const zarr_codec_spec *raw, const char *member,
                             const zarr_dtype **out, zarr_error *err);
zarr_status zr_conf_dtype(const zarr_codec_spec *raw, const char *member,
                          const zarr_dtype **out, uint32_t *byte_order, zarr_error *err);
/* Gives what the codecs before this one did. */
const zarr_codec_input *zr_spec_input(const zarr_codec_spec *spec);
/* Tells whether the metadata names the codec with the prefix "numcodecs.". */
bool zr_spec_is_prefixed(const zarr_codec_spec *spec);
/* Gives the name of codec i of the chain in a member; NULL after the last one. */
const char *zr_spec_chain_name(const zarr_codec_spec *spec, const char *member,
                               uint64_t i);
/* Returns the limit that bounds chunks of this type: chunk_bytes, or
 * variable_chunk_bytes. */
const char *zr_chunk_limit_name(const zarr_dtype *dtype);
/* Copies limits, with the limit for chunks of this type as chunk_bytes. limits NULL: the
 * defaults. */
void zr_chunk_limits(zarr_limits *out, const zarr_limits *limits,
                     const zarr_dtype *dtype);
/* Gives chunk_bytes as it was when the chain was parsed: the bound of sizes that metadata
 * does not give. */
uint64_t zr_spec_most_bytes(const zarr_codec_spec *spec);
/* The facts of `transpose` and `bytes` at the start of a nested chain. Returns INVALID if
 * the permutation does not have ndim dimensions. */
struct zr_chain_layout {
    uint8_t order[ZARR_MAX_RANK]; /* stored dimension i is the array's order[i] */
    uint32_t byte_order;          /* ZARR_ORDER_*; NATIVE: not given */
};
zarr_status zr_spec_chain_layout(const zarr_codec_spec *spec, const char *member,
                                 int32_t ndim, struct zr_chain_layout *out,
                                 zarr_error *err);
/* Each leaves *v unchanged if the member is absent or null, and refuses other types and
 * values. */
zarr_status zr_conf_i64(const zarr_codec_spec *raw, const char *member, int64_t lo,
                        int64_t hi, int64_t *v, zarr_error *err);
zarr_status zr_conf_bool(const zarr_codec_spec *raw, const char *member, int *v,
                         zarr_error *err);
/* *v: index into the NULL-terminated `words`. */
zarr_status zr_conf_word(const zarr_codec_spec *raw, const char *member,
                         const char *const *words, int *v, zarr_error *err);
/* Whether the configuration comes from a store. Then a member that cannot change decoded
 * elements is no reason to refuse it. In new metadata it is. */
bool zr_conf_is_stored(const zarr_codec_spec *raw);
/* Whether NCZarr wrote the array, which understands some members differently. */
bool zr_conf_is_nczarr(const zarr_codec_spec *raw);
/* The same as the three above for members that only encoding needs. In documents of a
 * store a number outside the range becomes the nearest one, and any other wrong value
 * counts as absent. */
zarr_status zr_conf_encoder_i64(const zarr_codec_spec *raw, const char *member,
                                int64_t lo, int64_t hi, int64_t *v, zarr_error *err);
zarr_status zr_conf_encoder_bool(const zarr_codec_spec *raw, const char *member, int *v,
                                 zarr_error *err);
zarr_status zr_conf_encoder_word(const zarr_codec_spec *raw, const char *member,
                                 const char *const *words, int *v, zarr_error *err);
/* Returns UNSUPPORTED for an array whose length is known only from the encoded chunk, as
 * inside `optional`. */
zarr_status zr_spec_needs_length(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                 zarr_error *err);
/* Returns INVALID: "<codec>: <member> is <value>, must be <rule>". */
zarr_status zr_conf_refuse(const zarr_codec_spec *raw, const char *member,
                           const char *rule, zarr_error *err);
bool zr_conf_has(const zarr_codec_spec *raw, const char *member); /* not null */

/* Canonical text; counts all bytes, as snprintf does. */
struct zr_conf_text {
    char *text;
    size_t cap, bytes;
    bool any;    /* a member was written */
    bool failed; /* memory was short: zr_conf_end() returns NO_MEMORY */
};
void zr_conf_open(struct zr_conf_text *t, char *text, size_t cap);
void zr_conf_put_i64(struct zr_conf_text *t, const char *member, int64_t v);
void zr_conf_put_f64(struct zr_conf_text *t, const char *member, double v); /* finite */
void zr_conf_put_bool(struct zr_conf_text *t, const char *member, int v);
void zr_conf_put_word(struct zr_conf_text *t, const char *member, const char *v);
void zr_conf_put_raw(struct zr_conf_text *t, const char *text); /* punctuation, numbers */
void zr_conf_put_json(struct zr_conf_text *t, const zarr_codec_spec *raw,
                      const char *member); /* copied unchanged, if present */
void zr_conf_close(struct zr_conf_text *t, size_t *text_bytes);
/* Ends the text and returns the status of all writes. */
zarr_status zr_conf_end(struct zr_conf_text *t, size_t *text_bytes, zarr_error *err);
/* canonical() of a specification that has no members. */
zarr_status zr_conf_none(const zarr_codec_spec *raw, int format, char *text, size_t cap,
                         size_t *text_bytes, zarr_error *err);

/* Fills err: the codec does not take elements of the type. rule: what it takes, such as
 * "integers"; NULL: the message does not say it. */
void zr_spec_fail_dtype(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                        const char *rule, zarr_error *err);
/* The same; returns UNSUPPORTED. Inline, so that the analyzer knows that it fails. */
static inline zarr_status zr_spec_refuse_dtype(const zarr_codec_spec *spec,
                                               const zarr_dtype *dtype, const char *rule,
                                               zarr_error *err)
{
    zr_spec_fail_dtype(spec, dtype, rule, err);
    return ZARR_ERR_UNSUPPORTED;
}
/* Sets out->n_bytes to n_bytes + extra. Returns LIMIT if the sum does not fit. */
zarr_status zr_spec_set_bound(zarr_chunk_spec *out, const char *codec, uint64_t n_bytes,
                              uint64_t extra, zarr_error *err);
/* resolve() of a codec that compresses bytes: its output has no items, and at most
 * in->n_bytes + extra bytes. */
zarr_status zr_spec_compressed(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                               zarr_chunk_spec *out, uint64_t extra, zarr_error *err);
/* The value of a macro as text. */
#define ZR_DIGITS(n)      ZR_DIGITS_TEXT(n)
#define ZR_DIGITS_TEXT(n) #n

#endif
