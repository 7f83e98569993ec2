/*
 * meta/meta.h - the door of metadata documents: zarr.json, .zarray and .zgroup with
 * .zattrs. They are read, checked against the rules of their format, written canonically,
 * and converted between the formats. Both formats become one struct with one codec chain,
 * so callers need not ask which format an array has: v2's order F is a transpose at the
 * beginning, followed by `bytes` in the stored byte order, the filters and the
 * compressor. Reading is tolerant where real files need it and the meaning is clear
 * (format.md 7); writing is strict. Every error names field, value and rule. No I/O, no
 * paths.
 * Thread class: a parsed struct is frozen. It borrows from the JSON document that it was
 * read from, which must outlive it.
 */
#ifndef ZR_META_H
#define ZR_META_H

#include "base/base.h"
#include "chain/chain.h"
#include "dtype/dtype.h"
#include "grid/grid.h"
#include "json/json.h"

/* v2 attribute with xarray's dimension names */
#define ZR_DIMENSIONS_ATTRIBUTE "_ARRAY_DIMENSIONS"
/* attribute with CF's missing value */
#define ZR_MISSING_ATTRIBUTE "_FillValue"

/* Spaces per level in the documents that we write, as zarr-python 3 writes both
 * formats. */
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
    /* the document comes from a store: faults are CORRUPT, not INVALID, and what cannot
     * change the elements is no fault */
    bool stored;
    /* v2: a fill value that is text is an element, as the data type spells it. Otherwise
     * the codec of an array of objects tells which element it is. */
    bool fill_spelled;
    /* netCDF-C wrote the array, as a document above it says: see zr_array_meta.nczarr */
    bool nczarr;
};

struct zr_array_meta {
    int32_t format; /* 2 or 3 */
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK];
    const zarr_dtype *dtype;
    /* v2: the stored byte order, ZARR_ORDER_*. NATIVE if the type has none, and in v3.
     * ZR_ORDER_MIXED: `leaves` has the order of each field of a struct (zr_order). */
    uint32_t byte_order;
    char *leaves;
    /* v2 "|O": the codec among the filters or beside them that stores objects */
    const struct zr_json *object_codec;
    bool fill_defined; /* false: null in v2 */
    /* false: the metadata do not tell what missing elements are. They do if the codec of
     * v2 objects takes null for a value. */
    bool fill_told;
    /* v3: the fill value is null although the type has no such value, as GDAL writes it
     */
    bool fill_null;
    /* v2: shuffle works on elements of the data type's size unless it says a size, as
     * netCDF-C has it */
    bool nczarr;
    /* one native-endian element; if no fill value is defined, the default of the type or
     * of the codec */
    uint8_t *fill;
    struct zr_grid grid;
    struct zr_key_encoding keys;
    struct zr_chain *chain;
    /* ndim entries, some NULL; or NULL: no names. v2: from _ARRAY_DIMENSIONS */
    const char **dimension_names;
    char order; /* v2: 'C' or 'F' */
    /* v2: dimension_separator was given; if not, chunks may still use "/" */
    bool separator_given;
    const struct zr_json *attributes; /* object, or NULL: none */
    /* v2, as written in the document; NULL: none */
    const struct zr_json *filters, *compressor;
    /* the document read; its unknown members are written back */
    const struct zr_json *document;
    struct zr_json_doc own; /* owns the document if zr_array_meta_convert() made it */
    const zarr_allocator *alloc;
};

/*
 * Reads a zarr.json (format 3) or .zarray (format 2; attributes: its .zattrs or NULL).
 * root and attributes must outlive *out. Checks everything, including that a chunk passes
 * through the chain, except limits.chunk_bytes, which a read of elements checks.
 * @return CORRUPT if env->stored, else INVALID; UNSUPPORTED with the name of what is
 * unknown; LIMIT. *out is then empty
 */
zarr_status zr_array_meta_parse(struct zr_array_meta *out, const struct zr_meta_env *env,
                                int format, const struct zr_json *root,
                                const struct zr_json *attributes, zarr_error *err);
void zr_array_meta_deinit(struct zr_array_meta *m);
/* Sets what the chain needs to know of a chunk: the first one, if chunks differ in shape.
 * fill is borrowed. */
void zr_array_meta_chunk(const struct zr_array_meta *m, zarr_chunk_spec *out);
/* Whether shuffle names no size or 0 and netCDF-C and numcodecs read that differently.
 * *zero: it is 0. */
bool zr_array_meta_shuffle_is_unclear(const struct zr_array_meta *m, bool *zero);
/* For new arrays: completes what the chain's codecs leave to the array
 * (zr_chain_complete()). */
zarr_status zr_array_meta_complete(struct zr_array_meta *m, zarr_error *err);
/* Makes the canonical document: zarr.json, or .zarray without attributes. *out belongs to
 * doc. */
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
/* Makes NaN and Infinity stay bare in the fill values of v2 arrays of objects, where
 * strings are other values. For a document that was read: a .zarray, or a .zmetadata.
 * Others do not change. */
void zr_meta_keep_tokens(struct zr_json *document);
/* Expresses a chain for elements of m in v2. UNSUPPORTED names what v2 cannot express.
 * The values belong to doc; NULL: none. */
struct zr_v2_codecs {
    const struct zr_json *filters, *compressor;
    uint32_t byte_order; /* ZARR_ORDER_* */
    char order;          /* 'C' or 'F' */
};
zarr_status zr_array_meta_codecs_v2(const struct zr_array_meta *m,
                                    const struct zr_meta_env *env,
                                    const struct zr_chain *chain, struct zr_json_doc *doc,
                                    struct zr_v2_codecs *out, zarr_error *err);
/* Makes the chunk grid, name and configuration, in v3's form for both formats. */
zarr_status zr_array_meta_grid(const struct zr_array_meta *m, struct zr_json_doc *doc,
                               struct zr_json **out, zarr_error *err);
/* Makes the codecs as a v3 list; for a v2 array, those of the chain that it is read
 * through. */
zarr_status zr_array_meta_codecs(const struct zr_array_meta *m, struct zr_json_doc *doc,
                                 struct zr_json **out, zarr_error *err);
/* UNSUPPORTED if the codec that turns the elements into bytes exists only in v2. */
zarr_status zr_array_meta_check_v3(const struct zr_array_meta *m,
                                   const struct zr_codec_registry *codecs,
                                   zarr_error *err);
/* Makes the same array in the other format (or a copy in the same). Encoded chunks stay
 * valid if both formats can express the chain and the key encoding. Otherwise UNSUPPORTED
 * names what the other format cannot express: sharding, a permutation, a codec, a data
 * type, a fill value's bits, names of only some dimensions. A null fill value of v2
 * becomes the type's default; _ARRAY_DIMENSIONS becomes dimension_names, and back. */
zarr_status zr_array_meta_convert(struct zr_array_meta *out,
                                  const struct zr_meta_env *env,
                                  const struct zr_array_meta *in, int to_format,
                                  zarr_error *err);

/* ---- missing values (missing_value.c) ---------------------------------------------- */

/* What a conversion changes so that xarray masks the same elements. All zero: nothing. */
struct zr_missing_change {
    struct zr_json *fill;      /* the new fill_value, maybe null; NULL: it stays */
    struct zr_json *attribute; /* the new attribute _FillValue; NULL: it stays */
    bool drop;                 /* the attribute is removed */
    bool elements;             /* the elements of missing chunks change */
    const char *warning;       /* why the missing value is lost; NULL: it is not */
};
/* Plans the conversion of m to the format. Only arrays that xarray reads as variables
 * change. Values belong to doc. */
zarr_status zr_missing_plan(struct zr_missing_change *out, const struct zr_array_meta *m,
                            int32_t format, struct zr_json_doc *doc, zarr_error *err);
/* Makes the change in a document that has been converted. attributes: v2's .zattrs; NULL:
 * v3, where they are in the document. Both belong to doc. */
void zr_missing_apply(const struct zr_missing_change *c, struct zr_json_doc *doc,
                      struct zr_json *document, struct zr_json *attributes);
/* Writes the missing value of a number as an element of the array, at most 16 bytes.
 * False: there is none, or no element can have it. */
bool zr_missing_element(const struct zr_array_meta *m, uint8_t *element);
/* Gives the missing value as plain JSON; NULL: there is none, or NaN, which masks
 * nothing. *variable: whether xarray reads the array as a variable. */
zarr_status zr_missing_value(struct zr_json **out, bool *variable,
                             const struct zr_array_meta *m, struct zr_json_doc *doc,
                             zarr_error *err);

/* Returns the first member of an array's or group's document that its format does not
 * know, or NULL. */
const struct zr_json *zr_meta_other_member(const struct zr_json *root, int32_t format,
                                           bool array);
/* Copies such members of a v3 document into a v2 document, which may have any members. */
void zr_meta_carry(struct zr_json_doc *doc, struct zr_json *to,
                   const struct zr_json *from, bool array);

struct zr_group_meta {
    int32_t format;
    const struct zr_json *attributes; /* object, or NULL: none */
    /* v3: the object inside "consolidated_metadata" that maps paths to documents; NULL:
     * none */
    const struct zr_json *consolidated;
    const struct zr_json *document;
};
/* Reads a zarr.json or .zgroup. *out only borrows, so it need not be freed. */
zarr_status zr_group_meta_parse(struct zr_group_meta *out, const struct zr_meta_env *env,
                                int format, const struct zr_json *root,
                                const struct zr_json *attributes, zarr_error *err);
/* Makes the canonical document: zarr.json with attributes and consolidated metadata, if
 * any; or .zgroup. */
zarr_status zr_group_meta_write(const struct zr_group_meta *m, struct zr_json_doc *doc,
                                struct zr_json **out, zarr_error *err);

/* Returns why readers of OME-Zarr do not find the metadata of a group at path after a
 * conversion to the format, and what to do; NULL: there is none. */
const char *zr_ome_warning(const struct zr_json *attributes, const char *path,
                           int32_t format);

/* ---- consolidated metadata -------------------------------------------------- */

/* One node for consolidated metadata; all borrowed. */
struct zr_meta_node {
    const char *path; /* relative to the consolidating group; "": that group (v2 only) */
    const struct zr_json *document;   /* its zarr.json, .zarray or .zgroup */
    const struct zr_json *attributes; /* v2: its .zattrs, or NULL */
};
/* Makes the value of a group's "consolidated_metadata". Nodes are written in the given
 * order; groups among them get an empty one. */
struct zr_json *zr_consolidated_write_v3(struct zr_json_doc *doc,
                                         const struct zr_meta_node *nodes, size_t n);
/* Makes a whole .zmetadata. */
struct zr_json *zr_consolidated_write_v2(struct zr_json_doc *doc,
                                         const struct zr_meta_node *nodes, size_t n);
/* Replaces what the map of documents says of the node at `path`, and of all nodes below
 * it if `below`, with the given nodes. Their paths are relative to the consolidating
 * group, as `path` is. n 0: the nodes are gone. Other entries stay, in their order. */
void zr_consolidated_patch(struct zr_json_doc *doc, struct zr_json *map, int format,
                           const char *path, bool below, const struct zr_meta_node *nodes,
                           size_t n);
/* Finds the map of documents in the value of a v3 group's "consolidated_metadata" or in a
 * .zmetadata document. *out is NULL if the value is null, which other writers use for
 * "none". Kinds other than "inline" are UNSUPPORTED. */
zarr_status zr_consolidated_map(const struct zr_json **out, int format,
                                const struct zr_json *v, zarr_error *err);

/* ---- names ------------------------------------------------------------------- */

/* Checks a name as a foreign file may have it: not empty, no '/', '\' or NUL, not "." or
 * "..", well-formed UTF-8, at most node_name_bytes. */
zarr_status zr_node_name_check(const char *name, size_t bytes, const zarr_limits *limits,
                               zarr_error *err);
/* Checks a name for a new node. It must also not be one that a format reserves (only
 * dots, "__..." in v3, names of documents). */
zarr_status zr_node_name_check_new(const char *name, size_t bytes, int format,
                                   const zarr_limits *limits, zarr_error *err);

#endif
