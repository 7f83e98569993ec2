/*
 * meta/meta_int.h - what the files of this room share: reading one member by its rule,
 * and the parts that v2 and v3 have in common.
 */
#ifndef ZR_META_INT_H
#define ZR_META_INT_H

#include "meta/meta.h"

/* ---- fields.c: one member each; messages begin with the field's name ---- */

/* Fails with "<field> must be <want>, not <v>". */
zarr_status zr_meta_refuse(const char *field, const char *want, const struct zr_json *v,
                           zarr_error *err);
zarr_status zr_meta_format(const struct zr_json *root, int format, zarr_error *err);
/* Sets m->ndim and m->shape. */
zarr_status zr_meta_shape(struct zr_array_meta *m, const struct zr_json *v,
                          const struct zr_meta_env *env, zarr_error *err);
/* Reads a list of ndim sizes. */
zarr_status zr_meta_sizes(const char *field, const struct zr_json *v, int32_t ndim,
                          uint64_t *out, zarr_error *err);
/* Reads an extension: a bare name, or an object {name, configuration}. *config stays NULL
 * if there is none. */
zarr_status zr_meta_extension(const char *field, const struct zr_json *v,
                              const char **name, const struct zr_json **config,
                              zarr_error *err);
/* v: NULL, or an object; JSON null means no attributes. */
zarr_status zr_meta_attributes(const struct zr_json *v, const struct zr_json **out,
                               zarr_error *err);
/* Checks the members of a v3 document that are not known: they may be ignored only if
 * they say so. */
zarr_status zr_meta_check_members(const struct zr_json *root, const char *const *known,
                                  zarr_error *err);
bool zr_meta_is_known(const struct zr_json *member, const char *const *known);
/* The byte order of stored elements, as far as the fields define it. */
static inline struct zr_order zr_meta_order(const struct zr_array_meta *m)
{
    return (struct zr_order){m->byte_order, m->leaves};
}
/* Sets m->fill from a value; if v is NULL, from the type's default. Needs m->dtype and,
 * in v2, the byte order. */
zarr_status zr_meta_fill(struct zr_array_meta *m, const struct zr_meta_env *env,
                         const struct zr_json *v, zarr_error *err);
/* The same for v2, where the codec of an array of objects has a say. v: NULL or null: no
 * fill value is defined. Needs m->chain, too. */
zarr_status zr_meta_fill_v2_read(struct zr_array_meta *m, const struct zr_meta_env *env,
                                 const struct zr_json *v, zarr_error *err);
/* Makes the fill value of a v2 document; *out belongs to doc. */
zarr_status zr_meta_fill_v2_write(const struct zr_array_meta *m, struct zr_json_doc *doc,
                                  struct zr_json **out, zarr_error *err);
/* Makes m->dimension_names with ndim entries, all NULL. */
zarr_status zr_meta_names_alloc(struct zr_array_meta *m, zarr_error *err);
/* Checks that a chunk passes through the chain, which must be made already. */
zarr_status zr_meta_check_chain(const struct zr_array_meta *m,
                                const struct zr_meta_env *env, zarr_error *err);
/* Turns a fault into CORRUPT for a stored document, INVALID for a caller's. */
zarr_status zr_meta_blame(const struct zr_meta_env *env, zarr_status st, zarr_error *err);

/* ---- array_v2.c, array_v3.c ---- */
zarr_status zr_array_v2_parse(struct zr_array_meta *m, const struct zr_meta_env *env,
                              zarr_error *err);
zarr_status zr_array_v3_parse(struct zr_array_meta *m, const struct zr_meta_env *env,
                              zarr_error *err);
extern const char *const zr_array_v2_members[], *const zr_array_v3_members[];
extern const char *const zr_group_v2_members[], *const zr_group_v3_members[];

/* ---- write.c ---- */
/* Write only from the fields, so they serve either source format. Borrowed values are
 * copied. */
zarr_status zr_array_v3_write(const struct zr_array_meta *m, struct zr_json_doc *doc,
                              struct zr_json **out, zarr_error *err);
zarr_status zr_array_v2_write(const struct zr_array_meta *m, struct zr_json_doc *doc,
                              struct zr_json **out, zarr_error *err);
/* Copies the members of `from` that are not in `known` after those of `to`. */
void zr_meta_write_others(struct zr_json_doc *doc, struct zr_json *to,
                          const struct zr_json *from, const char *const *known);
zarr_status zr_meta_doc_status(const struct zr_json_doc *doc, zarr_error *err);

/* ---- consolidated_metadata.c ---- */
/* Makes the value of "consolidated_metadata" around a map of documents. */
struct zr_json *zr_meta_inline_map(struct zr_json_doc *doc, struct zr_json *map);

#endif
