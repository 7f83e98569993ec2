/*
 * codec/codec.h - the door of meaning: codec specifications, chains of them,
 * and how a chunk's representation passes through. Pure: no memory kinds, no
 * compression library. A chain is array->array codecs, one array->bytes codec
 * (`bytes` or `sharding_indexed`), bytes->bytes codecs, in encoding order. v2
 * arrays have the same chains: order F is a transpose, then `bytes`, then
 * filters and compressor as bytes->bytes codecs (numcodecs filters work on
 * buffers and name their own data types).
 * Thread class: registries sealed, chains frozen once parsed.
 */
#ifndef ZR_CODEC_H
#define ZR_CODEC_H

#include "base/base.h"
#include "dtype/dtype.h"
#include "json/json.h"
#include <zarrc/plugin/codec.h>

/* The codecs that chains are built of: what they say is read by the machinery itself. */
enum zr_structure_kind {
    ZR_STRUCTURE_NONE, /* any other codec */
    ZR_STRUCTURE_TRANSPOSE,
    ZR_STRUCTURE_BYTES,
    ZR_STRUCTURE_SHARD
};

struct zr_codec_registry {
    struct zr_map specs;   /* name -> copied zarr_codec_spec_vtable, with its origin */
    struct zr_map aliases; /* alias -> the same vtable (borrowed) */
    struct zr_map v2;      /* name -> vtable (owned) with ZARR_CODEC_SPEC_V2 */
    struct zr_dtype_registry
        *dtypes; /* borrowed: must outlive the registry and all its chains */
    /* of the room above, opaque here: what runners of chains inside codecs bind; set by
     * the owner of both; NULL: such chains cannot be run */
    const void *impls;
    const zarr_allocator *alloc;
};
void zr_codec_registry_init(struct zr_codec_registry *r, struct zr_dtype_registry *dtypes,
                            const zarr_allocator *alloc);
void zr_codec_registry_deinit(struct zr_codec_registry *r);
/* EXISTS, naming the owner, when a name or alias is taken. origin: borrowed. */
zarr_status zr_codec_spec_register(struct zr_codec_registry *r,
                                   const zarr_codec_spec_vtable *v, const char *origin,
                                   zarr_error *err);
/* "core", or who registered what a look-up gave. */
const char *zr_codec_spec_origin(const zarr_codec_spec_vtable *registered);
/* Whether a specification has this very name: v2: one that only v2 has. */
bool zr_codec_spec_has(const struct zr_codec_registry *r, const char *name, bool v2);
const zarr_codec_spec_vtable *zr_codec_spec_lookup(const struct zr_codec_registry *r,
                                                   const char *name);
/* ZR_STRUCTURE_NONE unless it is the core's transpose, bytes or sharding_indexed. */
enum zr_structure_kind zr_codec_spec_structure(const zarr_codec_spec_vtable *registered);
/* What a v2 id means; NULL: nothing. */
const zarr_codec_spec_vtable *zr_codec_spec_lookup_v2(const struct zr_codec_registry *r,
                                                      const char *id);
/* The core's specifications, a NULL-terminated table for ctx/builtin.c. */
extern const zarr_codec_spec_vtable *const zr_codec_core_specs[];
/* What is refused on purpose: kinds "codec" and "storage transformer". */
extern const struct zr_refusal zr_codec_refused[];

struct zr_chain;

/* What `sharding_indexed` says. */
struct zr_shard_spec {
    int32_t ndim;
    uint64_t chunk_shape[ZARR_MAX_RANK]; /* inner chunks, in the order of dimensions the
                                            codec sees */
    struct zr_chain *inner;              /* owned */
    struct zr_chain *index;              /* owned; fixed size */
    const zarr_dtype *index_dtype;       /* uint64 */
    bool index_at_end;
};

/* transpose: values of n_order for the spellings "C" and "F" of old drafts: any rank. */
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

enum zr_runs {
    ZR_RUNS_BOTH,
    ZR_RUNS_DECODE,
    ZR_RUNS_ENCODE
};

/* Where a document says a codec: "filters" and 2, "compressor" and -1. */
struct zr_chain_place {
    const char *field; /* static */
    int32_t at;        /* -1: no list */
    bool ours; /* v2: what the reader makes of "order" and "dtype", not a codec's name */
};

/* What one of them says. */
struct zr_structure {
    enum zr_structure_kind kind;
    uint8_t order[ZARR_MAX_RANK]; /* transpose: B dim i is A dim order[i]; see
                                     zr_spec_order() */
    int32_t n_order;              /* transpose: entries of order, or ZR_ORDER_C, _F */
    /* bytes: ZARR_ORDER_LITTLE / BIG; NATIVE: not given; MIXED in v2, whose leaves are
     * borrowed from config */
    struct zr_order stored;
    struct zr_shard_spec *shard; /* sharding_indexed: the inner grid, owned */
};

struct zarr_codec_spec { /* one link */
    const zarr_codec_spec_vtable *vt;
    const zarr_allocator *alloc;
    struct zr_dtype_registry *dtypes;
    const struct zr_json *members; /* what the getters read: config.root, once parsed */
    char *json;                    /* canonical configuration text */
    struct zr_json_doc config;     /* the same, parsed */
    bool must_understand;          /* false only when the metadata said so */
    bool prefixed;                 /* metadata names it "numcodecs." + name */
    bool v3;                       /* in a chain of format 3 */
    struct zr_chain_place place;   /* for messages */
    const struct zr_codec_registry *registry; /* borrowed */
    struct zr_sub_chain *sub;                 /* n_sub of them, owned */
    uint32_t n_sub;
    uint64_t most_bytes;  /* limits.chunk_bytes when it was parsed */
    uint64_t most_chunks; /* limits.chunks_per_shard */
    /* In the copy that a stage binds: which way its runners are made for at once. */
    enum zr_runs runs;
    struct zr_structure structure; /* parsed once */
    zarr_codec_front front;        /* what the codecs in front of it did */
};
/* The permutation of a transpose for this rank, also where it was spelled "C" or "F". */
zarr_status zr_spec_order(const zarr_codec_spec *spec, int32_t ndim, uint8_t *order,
                          zarr_error *err);

struct zr_chain {
    struct zarr_codec_spec *codec; /* n of them */
    uint32_t n, a2b;               /* a2b: index of the array->bytes codec; n: none, only
                                      in chains inside other codecs */
    const char *label; /* the member that is this list, static; NULL: none (v2) */
    const zarr_allocator *alloc;
};

/*
 * Why the shards of this chain are decoded and encoded whole, by an implementation of
 * sharding_indexed like any other array->bytes codec: the first codec in front of it that
 * neither permutes dimensions nor works element by element. NULL: inner chunks can be
 * read and written alone; or there are no shards.
 */
const struct zarr_codec_spec *zr_chain_whole_shard(const struct zr_chain *chain);
/* What each edge of a chunk must be a multiple of: the inner chunk's of a shard, else 1;
 * also where codecs in front of it give it another shape. */
zarr_status zr_chain_unit(const struct zr_chain *chain, int32_t ndim, uint64_t *unit,
                          zarr_error *err);

/* jenkins_lookup3: most bytes in `prefix`. */
#define ZR_JENKINS_PREFIX_MAX 64

/* packbits for elements of a data type. */
struct zr_packbits {
    uint32_t components, bytes, bits; /* of an element; in memory and significant, each */
    uint32_t first, kept;             /* which bits are stored */
    bool is_signed, boolean;
    bool padding_first, padding_last; /* a byte counts the padding bits */
};
/* INVALID, UNSUPPORTED: the type has no such bits, or is no number. */
zarr_status zr_spec_packbits(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                             struct zr_packbits *out, zarr_error *err);

/* optional: the arrays that its two chains get, for a chunk of n elements: the mask, of
 * the same shape, and the values, of any number up to n. INVALID: no optional type. */
zarr_status zr_spec_optional_parts(const zarr_codec_spec *spec,
                                   const zarr_chunk_spec *decoded, zarr_chunk_spec *mask,
                                   zarr_chunk_spec *data, zarr_error *err);

/* zarrs.vlen: the arrays that its two chains get, for a chunk of n elements: the index of
 * n + 1 offsets, and the bytes, of any number that limits allow. */
zarr_status zr_spec_vlen_parts(const zarr_codec_spec *spec,
                               const zarr_chunk_spec *decoded, zarr_chunk_spec *index,
                               zarr_chunk_spec *data, zarr_error *err);

/* zfp: what it makes of a data type and a configuration. */
enum zr_zfp_scalar { /* zfp's own types */
    ZR_ZFP_INT32,
    ZR_ZFP_INT64,
    ZR_ZFP_FLOAT,
    ZR_ZFP_DOUBLE
};
enum zr_zfp_mode { /* numbered as zfp does */
    ZR_ZFP_EXPERT = 1,
    ZR_ZFP_RATE,
    ZR_ZFP_PRECISION,
    ZR_ZFP_ACCURACY,
    ZR_ZFP_REVERSIBLE
};
struct zr_zfp {
    enum zr_zfp_scalar scalar;
    enum zr_zfp_mode mode;
    uint32_t item_bytes;         /* of the data type */
    uint32_t bits;               /* narrower than 32: the integer is shifted up; else 0 */
    const struct zr_float *real; /* narrower than 32 bits: cast to float; else NULL */
    bool is_unsigned;
    bool header;      /* numcodecs' zfpy */
    uint32_t dims;    /* 1 to 4 */
    uint64_t size[4]; /* slowest first */
    /* zfpy behind a filter that flattens: the array's own dimensions, which a header may
     * name as well; 0: more than zfp has, or no such filter */
    uint32_t array_dims;
    uint64_t array_size[4];
    bool bits_of_floats; /* zfpy behind bitround: integers, but a header may say floats */
    uint64_t n_items, n_blocks;
    uint32_t minbits, maxbits, maxprec; /* the four of the expert mode; for other modes */
    int32_t minexp;                     /* bounds for a block of 4^dims */
    double number;                      /* rate, precision or tolerance */
};
/* `array` is the decoded side. INVALID, UNSUPPORTED. */
zarr_status zr_spec_zfp(const zarr_codec_spec *spec, const zarr_chunk_spec *array,
                        struct zr_zfp *out, zarr_error *err);
/* Blocks of 4^dims that cover so many items. */
uint64_t zr_zfp_blocks(const uint64_t *size, uint32_t dims);
/* Most bits that a block takes. */
uint64_t zr_zfp_block_bits(const struct zr_zfp *z);

/* lzma: one entry of `filters`, as Python's module lzma names its members. */
enum zr_lzma_member {
    ZR_LZMA_PRESET,
    ZR_LZMA_DICT_SIZE,
    ZR_LZMA_LC,
    ZR_LZMA_LP,
    ZR_LZMA_PB,
    ZR_LZMA_MODE,
    ZR_LZMA_NICE_LEN,
    ZR_LZMA_MF,
    ZR_LZMA_DEPTH,
    ZR_LZMA_DIST,
    ZR_LZMA_START_OFFSET,
    ZR_LZMA_MEMBERS
};
struct zr_lzma_filter {
    int64_t id;                      /* liblzma's */
    int64_t member[ZR_LZMA_MEMBERS]; /* -1: not said */
};
#define ZR_LZMA_FILTERS_MAX 4
/* How many there are, in encoding order; 0: none are said. */
uint32_t zr_spec_lzma_filters(const zarr_codec_spec *spec,
                              struct zr_lzma_filter out[ZR_LZMA_FILTERS_MAX]);

struct zr_chain_parse_options {
    int format; /* 2 or 3: spelling of members */
    const zarr_limits *limits;
    bool allow_missing_bytes; /* tolerate a chain without array->bytes codec where
                                 unambiguous (old drafts) */
    /* v2: where each item comes from; NULL: the list is all there is, `transpose` and
     * `bytes` included, as zr_chain_write() makes it. */
    const struct zr_chain_place *places;
};
/* Parses a JSON array of codec objects {name, configuration, must_understand} or bare
 * strings (format 3); for format 2 of {"id":..., members...}. Owned by the caller:
 * zr_chain_free(). Unknown codecs are UNSUPPORTED by name. Checks order and kinds of
 * links, limits (codecs, shard_depth). */
zarr_status zr_chain_parse(struct zr_chain **out, const struct zr_codec_registry *r,
                           const struct zr_json *codecs,
                           const struct zr_chain_parse_options *opts,
                           const zarr_allocator *alloc, zarr_error *err);
/* A number of NumPy's naming, byte order included: "<f8", ">i2", "|u1", "float32" (this
 * machine's order). */
struct zr_numpy_type {
    char kind; /* b i u f c; single elements of c are loaded by part */
    uint8_t item_bytes;
    bool big; /* false for single bytes */
};
/* False: no bool, integer, float of 16 to 64 bits, or complex number of two of 32 or 64.
 * text may be NULL. */
bool zr_numpy_parse(const char *text, struct zr_numpy_type *out);
/* The type of a complex number's two parts; another type is its own part. */
struct zr_numpy_type zr_numpy_part(const struct zr_numpy_type *type);

struct zr_numpy_value { /* which member counts, the type says */
    uint64_t u;         /* bool, integers: extended by their sign */
    double d;
};
/* One element of any alignment; and what NumPy's astype() makes of one: of floats that do
 * not fit an integer type what x86 does (zr_numpy_whole()), on every machine. */
struct zr_numpy_value zr_numpy_load(const struct zr_numpy_type *type, const void *p);
void zr_numpy_store(const struct zr_numpy_type *type, void *p, struct zr_numpy_value v);
struct zr_numpy_value zr_numpy_convert(const struct zr_numpy_type *from,
                                       const struct zr_numpy_type *to,
                                       struct zr_numpy_value v);
void zr_numpy_cast(const struct zr_numpy_type *from, const struct zr_numpy_type *to,
                   const void *src, void *dst);
/* Cuts to the type's width, keeping the sign. */
uint64_t zr_numpy_wrap(const struct zr_numpy_type *type, uint64_t u);
/* A whole number of that type, in C's conversion where it fits. NaN, infinities and what
 * is out of range: the lowest integer of 32 bits for types up to int32, of 64 bits for
 * others, cut to the type's width by zr_numpy_wrap(); 0 above a uint64. */
uint64_t zr_numpy_whole(const struct zr_numpy_type *type, double d);
/* To the digits of a float of so many bytes, half to even. */
double zr_numpy_round(unsigned float_bytes, double d);

/* What a count of 64 bits stands for: "M8[s]", "m8[10us]". */
struct zr_numpy_unit {
    char kind;     /* M, m; 0: just a number */
    char text[16]; /* between the brackets */
};
enum zr_filter_kind {
    ZR_FILTER_DELTA,
    ZR_FILTER_SCALE, /* fixedscaleoffset */
    ZR_FILTER_QUANTIZE,
    ZR_FILTER_ASTYPE
};
struct zr_filter_factor { /* a number of the configuration, as Python reads it */
    double f;
    uint64_t u; /* whole: two's complement */
    bool whole, minus;
};
/* What a filter of numcodecs that computes says: in v2 over bytes, in v3 between arrays.
 */
struct zr_filter {
    enum zr_filter_kind kind;
    struct zr_numpy_type dtype, astype; /* decoded and encoded elements */
    struct zr_filter_factor offset, scale;
    double quantum;                    /* quantize: 1 / its step */
    struct zr_numpy_unit unit, asunit; /* of times, whose types are int64's */
};
/* `array`: the type on the decoded side where that is an array, whose elements have this
 * machine's byte order; NULL for bytes. */
zarr_status zr_filter_read(const zarr_codec_spec *spec, const zarr_dtype *array,
                           struct zr_filter *out, zarr_error *err);

/* json2: how text and numbers are written. */
struct zr_json2 {
    const char *comma; /* with its blanks; borrowed */
    bool ascii;        /* everything else is escaped */
    bool finite;       /* allow_nan is false */
};
/* The bools and numbers that json2 and msgpack2 keep; false: another type. */
bool zr_object_number(const zarr_dtype *dtype, struct zr_numpy_type *out);
zarr_status zr_spec_json2(const zarr_codec_spec *spec, struct zr_json2 *out,
                          zarr_error *err);

/* vlen-array: what the lists hold, and in which byte order. */
struct zr_ragged {
    const zarr_dtype *item;
    struct zr_order stored;
};
zarr_status zr_spec_ragged(const zarr_codec_spec *spec, struct zr_ragged *out,
                           zarr_error *err);

/* categorize: label i (from 0) is the number i + 1 of type astype. */
struct zr_categorize {
    const struct zr_json *label; /* the first of n strings; borrowed */
    uint64_t n;
    struct zr_numpy_type astype;
};
zarr_status zr_spec_categorize(const zarr_codec_spec *spec, struct zr_categorize *out,
                               zarr_error *err);

/* ---- numbers -------------------------------------------------------------------- */

enum {                       /* where a float format has infinity and NaN */
    ZR_FLOAT_IEEE,           /* both, in the highest exponent */
    ZR_FLOAT_NAN_ONES,       /* "fn": NaN is all ones */
    ZR_FLOAT_NAN_MINUS_ZERO, /* "fnuz": NaN is what would be -0 */
    ZR_FLOAT_POWERS,         /* "e8m0fnu": powers of two; NaN is all ones */
    ZR_FLOAT_FINITE          /* neither */
};
/* What the numbers of a data type are made of. */
struct zr_number {
    uint8_t kind;  /* ZARR_KIND_INT, _UINT, _FLOAT */
    uint8_t bytes; /* in memory, of one part */
    uint8_t bits;  /* that count, the lowest of them */
    uint8_t parts; /* 2: complex */
    uint8_t fraction_bits, special;
    int16_t bias;
};
/* False: no integer of 2 to 64 bits, float or complex that we know. */
bool zr_number_of(const zarr_dtype *dtype, struct zr_number *out);
/* One part between memory (native order, any alignment) and its bits. */
uint64_t zr_number_bits(const struct zr_number *n, const void *p);
void zr_number_put(const struct zr_number *n, void *p, uint64_t bits);

enum { /* as cast_value spells them, in this order */
    ZR_ROUND_EVEN,
    ZR_ROUND_ZERO,
    ZR_ROUND_POSITIVE,
    ZR_ROUND_NEGATIVE,
    ZR_ROUND_AWAY
};
enum {
    ZR_RANGE_ERROR,
    ZR_RANGE_CLAMP, /* to infinity where there is one */
    ZR_RANGE_WRAP   /* integers */
};
enum {
    ZR_SCALAR_FINITE,
    ZR_SCALAR_INFINITY,
    ZR_SCALAR_NAN
};
struct zr_scalar { /* (minus ? -1 : 1) * c * 2^q; NaN: c is the payload from the top */
    uint8_t kind;
    bool minus;
    int32_t q;
    uint64_t c;
};
enum zr_cast_result {
    ZR_CAST_OK,
    ZR_CAST_NAN,
    ZR_CAST_INFINITY,
    ZR_CAST_RANGE /* why there is no value */
};
struct zr_scalar zr_scalar_of(const struct zr_number *n, uint64_t bits);
/* The rounding comes first, to the target's digits with any exponent, then the range. */
enum zr_cast_result zr_scalar_cast(const struct zr_scalar *v, const struct zr_number *to,
                                   uint32_t rounding, uint32_t out_of_range,
                                   uint64_t *bits);
double zr_scalar_f64(const struct zr_scalar *v); /* nearest */

/* Equal for equal numbers: all NaN are one, and so are both zeros. */
uint64_t zr_number_key(const struct zr_number *n, uint64_t bits);

struct zr_cast_pair { /* of a scalar_map */
    uint64_t key, value;
    size_t order;
};
/* What cast_value does in one direction. */
struct zr_cast {
    struct zr_number from, to;
    uint32_t rounding, range;
    struct zr_cast_pair *map; /* n_map of them by key, owned */
    size_t n_map;
    const zarr_allocator *alloc;
};
/* array: the type on the decoded side. */
zarr_status zr_cast_open(struct zr_cast *c, const zarr_codec_spec *spec,
                         const zarr_dtype *array, bool encode,
                         const zarr_allocator *alloc, zarr_error *err);
void zr_cast_close(struct zr_cast *c);
const struct zr_cast_pair *zr_cast_mapped(const struct zr_cast *c, uint64_t bits);
enum zr_cast_result zr_cast_one(const struct zr_cast *c, uint64_t bits, uint64_t *out);
const char *zr_cast_reason(enum zr_cast_result result); /* "NaN, which ..." */

/* What scale_offset does. */
struct zr_affine {
    struct zr_number number;
    double offset, scale;               /* floats: exactly these */
    uint64_t whole_offset, whole_scale; /* integers: two's complement */
};
zarr_status zr_affine_open(struct zr_affine *a, const zarr_codec_spec *spec,
                           const zarr_dtype *dtype, zarr_error *err);
/* One element, by its bits or as an integer. False: the type has no such result. */
bool zr_affine_one(const struct zr_affine *a, bool encode, uint64_t bits, uint64_t *out);
bool zr_affine_signed(const struct zr_affine *a, bool encode, int64_t v, int64_t *out);
bool zr_affine_unsigned(const struct zr_affine *a, bool encode, uint64_t v,
                        uint64_t *out);

/* What bitround works on: units of so many bytes, `parts` of them an element. */
struct zr_round {
    uint8_t unit_bytes, parts, fraction_bits;
    bool real; /* floats; else integers, from the highest bit that is set */
};
bool zr_round_of(const zarr_dtype *dtype, struct zr_round *out);

/* ---- completing and writing ---------------------------------------------------------
 */

/* Fills in what depends on the array, so that what is written is complete: blosc's
 * typesize and shuffle, transpose spelled by a letter; drops `endian` where elements have
 * one byte or no order. In chains inside shards and the core's other codecs, too. Before
 * the chain is shared: new arrays, conversions. `chunk` as for zr_chain_resolve(). */
zarr_status zr_chain_complete(struct zr_chain *chain, const zarr_chunk_spec *chunk,
                              zarr_error *err);
/* Elements in an order that `bytes` does not say, in this chain or inside its shards, are
 * little-endian: so did the writers of `structured`. Before the chain is shared. */
zarr_status zr_chain_settle_order(struct zr_chain *chain, const zarr_dtype *dtype,
                                  zarr_error *err);
/* Completes only the codecs that cannot be decoded otherwise (vtable.incomplete), here or
 * inside shards and other codecs. *completed: there was one. UNSUPPORTED: the array does
 * not tell what is missing. Before the chain is shared; it was resolved for `chunk`. */
zarr_status zr_chain_complete_stored(struct zr_chain *chain, const zarr_chunk_spec *chunk,
                                     bool *settled, zarr_error *err);
/* Whether zr_chain_write() can say this chain; UNSUPPORTED: shards in v2, a filter
 * that computes behind others or of another byte order in v3. Before conversions. */
zarr_status zr_chain_has_form(const struct zr_chain *chain, int format, zarr_error *err);
/* Canonical JSON array of the chain (format 3: name + configuration; format 2: id +
 * members). v2 filters that compute, right behind `bytes`, become v3's codecs between
 * arrays, in front of it; in format 2 links stay in the chain's order under their own
 * names: the caller knows which of them v2 has. NULL: no memory, or no form (see above);
 * doc has failed either way. */
struct zr_json *zr_chain_write(struct zr_json_doc *doc, const struct zr_chain *chain,
                               int format);
/* The same for people, and for making another array of it, in the notation of v3: where
 * that has no form for filters of v2 these stand behind `bytes`, where they are, with the
 * byte orders that they name. */
struct zr_json *zr_chain_show(struct zr_json_doc *doc, const struct zr_chain *chain);
void zr_chain_free(struct zr_chain *chain);

/*
 * Checks the chain against a chunk and tells every representation on the way: rep[0] is
 * the chunk as the array sees it, rep[i + 1] what codec i gives; n + 1 entries. Inner
 * chains of shards are checked too (divisibility, index of fixed size). fills holds the
 * transformed fill values.
 */
struct zr_chain_reps {
    zarr_chunk_spec *rep; /* n + 1 */
    uint8_t *fills;       /* (n + 1) * fill_bytes, pointed into by rep[].fill */
    uint64_t fill_bytes;  /* room for one element: ZR_FILL_BYTES or the array's item */
    uint32_t n;
    bool loose; /* a size is bounded by limits.chunk_bytes only: such bounds are nothing
                   to allocate by */
    const zarr_allocator *alloc;
};
#define ZR_FILL_BYTES 512
zarr_status zr_chain_resolve(struct zr_chain_reps *out, const struct zr_chain *chain,
                             const zarr_chunk_spec *chunk, const zarr_limits *limits,
                             const zarr_allocator *alloc, zarr_error *err);
/* The same; `varies`: the array has one dimension of any length up to shape[0]. chunk
 * without dtype: n_bytes bytes for a chain of bytes->bytes codecs, exact as it says. */
zarr_status zr_chain_resolve_any(struct zr_chain_reps *out, const struct zr_chain *chain,
                                 const zarr_chunk_spec *chunk, bool varies,
                                 const zarr_limits *limits, const zarr_allocator *alloc,
                                 zarr_error *err);
void zr_chain_reps_deinit(struct zr_chain_reps *reps);
/* What a bytes->bytes codec makes of n_bytes at most. */
zarr_status zr_spec_bound(const zarr_codec_spec *spec, uint64_t n_bytes,
                          uint64_t *encoded, zarr_error *err);
/* The first codec of the chain that does not keep every value of what it gets; NULL: none
 * is known to. */
const struct zarr_codec_spec *zr_chain_lossy(const struct zr_chain *chain,
                                             const struct zr_chain_reps *reps);
/* A chain of the configuration; NULL: absent. */
const struct zr_sub_chain *zr_spec_sub(const zarr_codec_spec *spec, const char *member);

/* Encoded size of a shard's index (n_chunks entries of 16 bytes through the index chain).
 */
zarr_status zr_shard_index_bytes(const struct zr_shard_spec *s, uint64_t n_chunks,
                                 uint64_t *out, zarr_error *err);
/* What is inside a shard. */
struct zr_shard_parts {
    zarr_chunk_spec chunk, index; /* as the two chains get them: without sizes */
    uint64_t grid[ZARR_MAX_RANK], n_chunks;
};
/* INVALID: inner chunks do not fit the shard; LIMIT: more than `most` of them. */
zarr_status zr_shard_parts(const struct zr_shard_spec *s, const zarr_chunk_spec *shard,
                           uint64_t most, struct zr_shard_parts *out, zarr_error *err);

/* ---- indexes of shards (shard_index.c) ------------------------------------------ */

#define ZR_INDEX_MISSING UINT64_MAX
/* n pairs of offset and bytes in host order, offsets from the value's first byte, both
 * all ones: missing; and where the index itself lies in the value (index_bytes 0: not
 * known). shard_bytes UINT64_MAX: not known. */
struct zr_shard_pairs {
    const uint64_t *pairs;
    uint64_t n, shard_bytes, index_offset, index_bytes;
};
/* Entries must lie inside the value, may not wrap and may not overlap the index. CORRUPT
 * names the entry. */
zarr_status zr_shard_pairs_check(const struct zr_shard_pairs *in, zarr_error *err);
/* Where the index of a value lies. CORRUPT: the value is too short for one. */
zarr_status zr_shard_index_at(const struct zr_shard_spec *s, uint64_t shard_bytes,
                              uint64_t index_bytes, uint64_t *at, zarr_error *err);

#endif
