/*
 * meta/meta.h - the door to metadata documents: zarr.json, .zarray and .zgroup
 * with .zattrs, read, checked against each other's rules, written canonically,
 * and converted between the formats. Both formats become one struct with one
 * codec chain, so that nobody above asks which format an array has: v2 order F
 * is a transpose in front, then `bytes` in the stored byte order, then filters
 * and compressor.
 * Reading is tolerant where real files need it and the meaning is clear
 * (format.md 7); writing is strict. Every refusal names field, value and rule.
 * Pure: no I/O, no paths.
 * Thread class: a parsed struct is frozen. It borrows from the JSON document
 * that it was read from, which must outlive it.
 */
#ifndef ZR_META_H
#define ZR_META_H

#include "base/base.h"
#include "chain/chain.h"
#include "dtype/dtype.h"
#include "grid/grid.h"
#include "json/json.h"

#define ZR_DIMENSIONS_ATTRIBUTE "_ARRAY_DIMENSIONS" /* xarray's dimension names in v2 */

/* Blanks a level of the documents that we write, as zarr-python 3 does in both formats.
 */
enum {
    ZR_META_INDENT = 2
};

/* What reading needs of a context; all borrowed. */
struct zr_meta_env {
    struct zr_dtype_registry *dtypes;
    const struct zr_codec_registry *codecs;
    const struct zr_grid_registry *grids;
    const zarr_limits *limits; /* NULL: defaults */
    const zarr_allocator *alloc;
    bool stored; /* the document comes from a store: what is wrong is CORRUPT, not INVALID
                  */
};

struct zr_array_meta {
    int32_t format; /* 2 or 3 */
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK];
    const zarr_dtype *dtype;
    uint32_t byte_order; /* v2: as stored, ZARR_ORDER_*; NATIVE where the type has none,
                            and in v3; ZR_ORDER_MIXED with */
    char *leaves;        /* the orders of a struct's fields (zr_order) */
    const struct zr_json *object_codec; /* v2 "|O": of the filters, or beside them */
    bool fill_defined;                  /* false: v2 null */
    uint8_t
        *fill; /* one native-endian element; the type's default where it is not defined */
    struct zr_grid grid;
    struct zr_key_encoding keys;
    struct zr_chain *chain;
    const char **dimension_names; /* ndim entries, some NULL; NULL: none. v2: from
                                     _ARRAY_DIMENSIONS */
    char order;                   /* v2: 'C' or 'F' */
    bool separator_given; /* v2: dimension_separator was there; if not, "/" may still be
                             meant */
    const struct zr_json *attributes;           /* object, or NULL: none */
    const struct zr_json *filters, *compressor; /* v2, as written there; NULL: none */
    const struct zr_json
        *document; /* what it was read from: unknown members are written back from it */
    struct zr_json_doc own; /* holds the document where zr_array_meta_convert() made it */
    const zarr_allocator *alloc;
};

/*
 * Reads a zarr.json (format 3) or .zarray (2; attributes: its .zattrs or NULL). root and
 * attributes must outlive *out. Checks everything, the passage of a chunk through the
 * chain included; only limits.chunk_bytes is left to whoever reads.
 * @return CORRUPT or INVALID (env->stored), UNSUPPORTED by name, LIMIT; *out is empty
 * then
 */
zarr_status zr_array_meta_parse(struct zr_array_meta *out, const struct zr_meta_env *env,
                                int format, const struct zr_json *root,
                                const struct zr_json *attributes, zarr_error *err);
void zr_array_meta_deinit(struct zr_array_meta *m);
/* What the chain needs to know of a chunk: of the first one where chunks differ. fill is
 * borrowed. */
void zr_array_meta_chunk(const struct zr_array_meta *m, zarr_chunk_spec *out);
/* For new arrays: fills in what the chain's codecs leave to the array
 * (zr_chain_complete()). */
zarr_status zr_array_meta_complete(struct zr_array_meta *m, zarr_error *err);
/* The canonical document: zarr.json, or .zarray without attributes. *out belongs to doc.
 */
zarr_status zr_array_meta_write(const struct zr_array_meta *m, struct zr_json_doc *doc,
                                struct zr_json **out, zarr_error *err);
/* The same for a new array. v2 codecs that are incomplete, or that have members or nested
 * codecs in the spelling of v3, are written in the canonical form of numcodecs. */
zarr_status zr_array_meta_write_new(const struct zr_array_meta *m,
                                    struct zr_json_doc *doc, struct zr_json **out,
                                    zarr_error *err);
/* The same with all v2 codecs in canonical form, to compare two arrays. */
zarr_status zr_array_meta_write_canonical(const struct zr_array_meta *m,
                                          struct zr_json_doc *doc, struct zr_json **out,
                                          zarr_error *err);
/* A chain for elements of m as v2 says it. UNSUPPORTED names what v2 cannot say. The
 * values belong to doc; NULL: none. */
struct zr_v2_codecs {
    const struct zr_json *filters, *compressor;
    uint32_t byte_order; /* ZARR_ORDER_* */
    char order;          /* 'C' or 'F' */
};
zarr_status zr_array_meta_codecs_v2(const struct zr_array_meta *m,
                                    const struct zr_meta_env *env,
                                    const struct zr_chain *chain, struct zr_json_doc *doc,
                                    struct zr_v2_codecs *out, zarr_error *err);
/* Codecs as a v3 list; v2 arrays too, as the chain they are read through. */
/* The chunk grid, name and configuration; v2: as v3 would have it. */
zarr_status zr_array_meta_grid(const struct zr_array_meta *m, struct zr_json_doc *doc,
                               struct zr_json **out, zarr_error *err);
zarr_status zr_array_meta_codecs(const struct zr_array_meta *m, struct zr_json_doc *doc,
                                 struct zr_json **out, zarr_error *err);
/*
 * The same array in the other format (or a copy, in the same). Encoded chunks stay valid
 * where both formats can say the chain and the key encoding; else UNSUPPORTED names what
 * the other format cannot say (sharding, a permutation, a codec, a data type, a fill
 * value's bits, half of the dimension names). v2 null becomes the type's default;
 * _ARRAY_DIMENSIONS becomes dimension_names and back.
 */
zarr_status zr_array_meta_convert(struct zr_array_meta *out,
                                  const struct zr_meta_env *env,
                                  const struct zr_array_meta *in, int to_format,
                                  zarr_error *err);

/* The first member of an array's or group's document that its format does not know. */
const struct zr_json *zr_meta_other_member(const struct zr_json *root, int32_t format,
                                           bool array);
/* Such members of a v3 document copied into one of v2, which may have any. */
void zr_meta_carry(struct zr_json_doc *doc, struct zr_json *to,
                   const struct zr_json *from, bool array);

struct zr_group_meta {
    int32_t format;
    const struct zr_json *attributes;   /* object, or NULL: none */
    const struct zr_json *consolidated; /* v3: the object inside "consolidated_metadata"
                                           that maps paths to documents; NULL: none */
    const struct zr_json *document;
};
/* Reads a zarr.json or .zgroup. Nothing to free: it only points. */
zarr_status zr_group_meta_parse(struct zr_group_meta *out, const struct zr_meta_env *env,
                                int format, const struct zr_json *root,
                                const struct zr_json *attributes, zarr_error *err);
/* The canonical document: zarr.json with attributes and, if any, consolidated metadata;
 * or .zgroup. */
zarr_status zr_group_meta_write(const struct zr_group_meta *m, struct zr_json_doc *doc,
                                struct zr_json **out, zarr_error *err);

/* ---- consolidated metadata -------------------------------------------------- */

/* One node on its way into consolidated metadata; all borrowed. */
struct zr_meta_node {
    const char *path; /* relative to the consolidating group; "": that group (v2 only) */
    const struct zr_json *document;   /* its zarr.json, .zarray or .zgroup */
    const struct zr_json *attributes; /* v2: its .zattrs, or NULL */
};
/* The value of a group's "consolidated_metadata". Nodes are written in the given order;
 * groups below get an empty one. */
struct zr_json *zr_consolidated_write_v3(struct zr_json_doc *doc,
                                         const struct zr_meta_node *nodes, size_t n);
/* A whole .zmetadata. */
struct zr_json *zr_consolidated_write_v2(struct zr_json_doc *doc,
                                         const struct zr_meta_node *nodes, size_t n);
/*
 * The map inside: of a v3 group's "consolidated_metadata" value, or of a .zmetadata
 * document. NULL for what other writers put there to say "none" (null). Kinds other than
 * "inline" are UNSUPPORTED.
 */
zarr_status zr_consolidated_map(const struct zr_json **out, int format,
                                const struct zr_json *v, zarr_error *err);

/* ---- names ------------------------------------------------------------------- */

/* One name as a foreign file may have it: not empty, no '/', '\', NUL, no "." or "..",
 * well-formed UTF-8, node_name_bytes. */
zarr_status zr_node_name_check(const char *name, size_t bytes, const zarr_limits *limits,
                               zarr_error *err);
/* Such names with single '/' between; "" is the root. */
zarr_status zr_node_path_check(const char *path, size_t bytes, const zarr_limits *limits,
                               zarr_error *err);
/* A name for a new node: also none that a format reserves (only dots, "__..." in v3,
 * names of documents). */
zarr_status zr_node_name_check_new(const char *name, size_t bytes, int format,
                                   const zarr_limits *limits, zarr_error *err);

#endif
