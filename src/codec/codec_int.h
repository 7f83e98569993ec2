/*
 * codec/codec_int.h - shared inside the room: reading a raw configuration and
 * writing its canonical text without allocating, and the tables of core specs.
 */
#ifndef ZR_CODEC_INT_H
#define ZR_CODEC_INT_H

#include "codec/codec.h"

/* ---- configuration members (conf.c) ------------------------------------- */

/* In format 3, INVALID for a member that is not among the NULL-terminated `known`. */
zarr_status zr_conf_known(const zarr_codec_spec *raw, int format,
                          const char *const *known, zarr_error *err);
/* Each leaves *v alone when the member is absent or null, and refuses other types and
 * values. */
zarr_status zr_conf_i64(const zarr_codec_spec *raw, const char *member, int64_t lo,
                        int64_t hi, int64_t *v, zarr_error *err);
zarr_status zr_conf_bool(const zarr_codec_spec *raw, const char *member, int *v,
                         zarr_error *err);
/* *v: index into the NULL-terminated `words`. */
zarr_status zr_conf_word(const zarr_codec_spec *raw, const char *member,
                         const char *const *words, int *v, zarr_error *err);
/* UNSUPPORTED for an array whose length the encoded chunk tells, as inside `optional`. */
zarr_status zr_spec_needs_length(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                 zarr_error *err);
/* INVALID: "<codec>: <member> is <what it is>, must be <rule>". */
zarr_status zr_conf_refuse(const zarr_codec_spec *raw, const char *member,
                           const char *rule, zarr_error *err);
bool zr_conf_has(const zarr_codec_spec *raw, const char *member); /* and not null */

/* Canonical text, counted as snprintf does. */
struct zr_conf_text {
    char *text;
    size_t cap, bytes;
    bool any;    /* a member was written */
    bool failed; /* no memory: zr_conf_end() says so */
};
void zr_conf_open(struct zr_conf_text *t, char *text, size_t cap);
void zr_conf_put_i64(struct zr_conf_text *t, const char *member, int64_t v);
void zr_conf_put_f64(struct zr_conf_text *t, const char *member, double v); /* finite */
void zr_conf_put_bool(struct zr_conf_text *t, const char *member, int v);
void zr_conf_put_word(struct zr_conf_text *t, const char *member, const char *v);
void zr_conf_put_raw(struct zr_conf_text *t, const char *text); /* punctuation, numbers */
void zr_conf_put_json(struct zr_conf_text *t, const zarr_codec_spec *raw,
                      const char *member); /* as it stands, if it does */
void zr_conf_close(struct zr_conf_text *t, size_t *text_bytes);
/* The same, with the status of what was put. */
zarr_status zr_conf_end(struct zr_conf_text *t, size_t *text_bytes, zarr_error *err);
/* canonical() of a specification that has no members. */
zarr_status zr_conf_none(const zarr_codec_spec *raw, int format, char *text, size_t cap,
                         size_t *text_bytes, zarr_error *err);

/* ---- specs ------------------------------------------------------------------ */

extern const zarr_codec_spec_vtable zr_spec_bytes, zr_spec_transpose, zr_spec_sharding,
    zr_spec_gzip, zr_spec_zlib, zr_spec_zstd, zr_spec_lz4, zr_spec_blosc, zr_spec_crc32c,
    zr_spec_shuffle, zr_spec_delta, zr_spec_delta_array, zr_spec_vlen_utf8,
    zr_spec_vlen_bytes, zr_spec_optional, zr_spec_zarrs_optional, zr_spec_n5_default,
    zr_spec_conditional, zr_spec_zarrs_vlen, zr_spec_vlen_v2;
extern const zarr_codec_spec_vtable zr_spec_bz2, zr_spec_lzma, zr_spec_base64,
    zr_spec_crc32, zr_spec_adler32, zr_spec_fletcher32, zr_spec_jenkins_lookup3,
    zr_spec_packbits_bits, zr_spec_packbits_array, zr_spec_packbits_v2, zr_spec_zfp_bare,
    zr_spec_zfpy, zr_spec_pcodec, zr_spec_gdeflate;
extern const zarr_codec_spec_vtable zr_spec_fixedscaleoffset,
    zr_spec_fixedscaleoffset_array, zr_spec_quantize, zr_spec_quantize_array,
    zr_spec_astype, zr_spec_astype_array, zr_spec_bitround, zr_spec_bitround_v2,
    zr_spec_reshape, zr_spec_squeeze, zr_spec_cast_value, zr_spec_scale_offset;
extern const zarr_codec_spec_vtable zr_spec_text_json, zr_spec_text_msgpack,
    zr_spec_vlen_array, zr_spec_categorized;

#define ZR_NUMPY_NAME 5 /* "<c16" */
void zr_numpy_print(const struct zr_numpy_type *type, char out[ZR_NUMPY_NAME]);
/* "<M8[s]": int64 and what it counts. False: no such type, or one without a unit. */
bool zr_numpy_parse_time(const char *text, struct zr_numpy_type *out,
                         struct zr_numpy_unit *unit);
/* The elements of an array in this order, "" where NumPy has no such number. */
void zr_numpy_name(const zarr_dtype *dtype, uint32_t order, char out[ZARR_ELEMENTS_NAME]);
/* Of a number or time by that name; 0: no such type. */
uint32_t zr_numpy_item_bytes(const char *name);
/* v3 or v2 name for messages, never NULL. */
const char *zr_spec_type_name(const zarr_dtype *dtype);
/* A fill value for messages, "" where it cannot be told. */
const char *zr_spec_fill_text(const zarr_dtype *dtype, const void *fill, char *text,
                              size_t cap);

/* n_bytes + extra into out->n_bytes, LIMIT when it does not fit. */
zarr_status zr_spec_grow(zarr_chunk_spec *out, const char *codec, uint64_t n_bytes,
                         uint64_t extra, zarr_error *err);

/* ---- links (link.c) ---------------------------------------------------------- */

void zr_link_deinit(struct zarr_codec_spec *s);
/* Takes canonical text (moved, also on failure) and reads it into config and the frequent
 * facts. */
zarr_status zr_link_settle(struct zarr_codec_spec *s, char *json, zarr_error *err);
/* zr_foreign_failed(), naming the codec; INTERNAL: what it gave is against its contract.
 */
zarr_status zr_spec_failed(const struct zarr_codec_spec *s, struct zr_foreign *f,
                           zarr_status st);
zarr_status zr_spec_broke(const struct zarr_codec_spec *s, const char *how,
                          zarr_error *err);
/* What zr_spec_ask() calls: spell() if there is a spelling, else complete() if there is
 * `in`, else canonical(). The entry is not NULL. */
struct zr_spec_question {
    int format;
    const zarr_chunk_spec *in, *array;
    zarr_codec_spelling *spelling;
};
/* *out: the text that the entry writes, owned by the caller (s->alloc); NULL if it writes
 * none. */
zarr_status zr_spec_ask(const struct zarr_codec_spec *s, struct zr_spec_question *q,
                        char **out, zarr_error *err);
/* Asks the vtable for the canonical form of what s->members points at, and settles it. */
zarr_status zr_link_canonical(struct zarr_codec_spec *s, int format, zarr_error *err);

/* Parses the chains that s->vt->chains names (sub.c). Recursion is bounded by
 * limits.codecs: each level has a codec. */
struct zr_parse;
zarr_status zr_sub_parse(struct zarr_codec_spec *s, struct zr_parse *p, zarr_error *err);
void zr_sub_free(struct zarr_codec_spec *s);
/* Writes the chain's text, anew where it had one. */
zarr_status zr_sub_print(struct zr_sub_chain *sub, int format,
                         const zarr_allocator *alloc, zarr_error *err);

/* v2 filters (front.c): codecs on bytes that v3 has between arrays. */
bool zr_spec_is_filter(const struct zarr_codec_spec *s);
/* What the codec takes and gives (vtable.elements); `in` as there. */
zarr_status zr_spec_elements(const struct zarr_codec_spec *s, const char *in,
                             zarr_codec_elements *out, zarr_error *err);
/* Whether each filter of a v2 chain can take the elements that come to it. */
zarr_status zr_filters_check(const struct zr_chain *chain, const zarr_dtype *dtype,
                             zarr_error *err);
/* v2 (front.c): `bytes` and the filters behind it in front of an array->bytes codec
 * become filters between arrays. UNSUPPORTED for what such a codec cannot get. */
zarr_status zr_front_v2(struct zr_chain *chain, const struct zr_parse *p,
                        zarr_error *err);
/* What each link has in front of it, once all have their place. */
void zr_front_note(struct zr_chain *chain);

/* A number that a macro names, as text. */
#define ZR_DIGITS(n)    ZR_DIGITS_OF(n)
#define ZR_DIGITS_OF(n) #n

/* ---- chains and shards --------------------------------------------------------- */

/* Codecs in codecs in codecs, and the shards among them: the C stack that running them
 * takes. */
#define ZR_SUB_DEPTH 8

struct zr_parse { /* one call of zr_chain_parse(), all nested chains together */
    const struct zr_codec_registry *registry;
    const zarr_allocator *alloc;
    zarr_limits limits;
    int format;
    bool allow_missing_bytes;
    /* chains of other codecs around this one; 0: the array's own. Inside, it may be
     * without array->bytes codec. */
    uint32_t sub;
    uint32_t n_codecs;                   /* so far */
    uint32_t depth;                      /* of shards around this chain */
    const struct zr_chain_place *places; /* of the array's own items; NULL: none given */
};
/* Puts "codecs[1]", "filters[0]" or "compressor" in front. */
zarr_status zr_link_prefix(zarr_error *err, zarr_status st,
                           const struct zarr_codec_spec *s);
/* `label` names the list in messages: "codecs", "index_codecs". Recursion is bounded by
 * limits.shard_depth. */
zarr_status zr_chain_parse_list(struct zr_chain **out, struct zr_parse *p,
                                const char *label, const struct zr_json *codecs,
                                zarr_error *err);
/* s->members is the raw configuration; fills s->shard and the canonical text. */
zarr_status zr_shard_spec_parse(struct zarr_codec_spec *s, struct zr_parse *p,
                                zarr_error *err);
void zr_shard_spec_free(struct zr_shard_spec *shard, const zarr_allocator *alloc);
/* Writes the configuration of a shard spec anew into s->json and s->config. */
zarr_status zr_shard_spec_settle(struct zarr_codec_spec *s, zarr_error *err);
struct zr_json *zr_shard_spec_write(struct zr_json_doc *doc,
                                    const struct zr_shard_spec *shard);
/* rep[i + 1] from rep[i] of `around`, and whether it is loose. */
zarr_status zr_shard_spec_resolve(const struct zarr_codec_spec *s,
                                  struct zr_chain_reps *around, uint32_t i,
                                  const zarr_limits *limits, zarr_error *err);
/* Where limits.chunk_bytes is more than this, a size that metadata does not tell is
 * bounded by this: products of many must fit 64 bits. */
#define ZR_LOOSE_BYTES (UINT64_C(1) << 36)
/* Every member set: zero means the default. limits NULL: all defaults. */
void zr_codec_limits(zarr_limits *out, const zarr_limits *limits);

#endif
