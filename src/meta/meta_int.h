/*
 * meta/meta_int.h - what the files of this room share: reading one member with
 * its rule, and the parts that v2 and v3 have in common. Not for other rooms.
 */
#ifndef ZR_META_INT_H
#define ZR_META_INT_H

#include "meta/meta.h"

/* ---- fields.c: one member each; messages begin with the field's name ---- */

/* "<field> must be <want>, not <v>". */
zarr_status zr_meta_refuse(const char *field, const char *want, const struct zr_json *v,
                           zarr_error *err);
zarr_status zr_meta_format(const struct zr_json *root, int format, zarr_error *err);
/* m->ndim and m->shape. */
zarr_status zr_meta_shape(struct zr_array_meta *m, const struct zr_json *v,
                          const struct zr_meta_env *env, zarr_error *err);
/* A list of ndim sizes. */
zarr_status zr_meta_sizes(const char *field, const struct zr_json *v, int32_t ndim,
                          uint64_t *out, zarr_error *err);
/* An extension: a bare name, or an object {name, configuration}. *config stays NULL
 * without one. */
zarr_status zr_meta_extension(const char *field, const struct zr_json *v,
                              const char **name, const struct zr_json **config,
                              zarr_error *err);
/* NULL, or an object. JSON null is no attributes. */
zarr_status zr_meta_attributes(const struct zr_json *v, const struct zr_json **out,
                               zarr_error *err);
/* Members that a v3 document has beyond those known may be left alone only if they say
 * so. */
zarr_status zr_meta_check_members(const struct zr_json *root, const char *const *known,
                                  zarr_error *err);
bool zr_meta_is_known(const struct zr_json *member, const char *const *known);
/* How elements are stored, as far as the fields say. */
static inline struct zr_order zr_meta_order(const struct zr_array_meta *m)
{
    return (struct zr_order){m->byte_order, m->leaves};
}
/* m->fill from a value; with v NULL the type's default. Needs m->dtype and, in v2, the
 * byte order. */
zarr_status zr_meta_fill(struct zr_array_meta *m, const struct zr_meta_env *env,
                         const struct zr_json *v, zarr_error *err);
/* m->dimension_names with room for ndim names, all NULL. */
zarr_status zr_meta_names_alloc(struct zr_array_meta *m, zarr_error *err);
/* The chain is made: does a chunk pass? */
zarr_status zr_meta_check_chain(const struct zr_array_meta *m,
                                const struct zr_meta_env *env, zarr_error *err);
/* What is wrong with a stored document is CORRUPT; with a wish, INVALID. */
zarr_status zr_meta_blame(const struct zr_meta_env *env, zarr_status st, zarr_error *err);

/* ---- array_v2.c, array_v3.c ---- */
zarr_status zr_array_v2_parse(struct zr_array_meta *m, const struct zr_meta_env *env,
                              zarr_error *err);
zarr_status zr_array_v3_parse(struct zr_array_meta *m, const struct zr_meta_env *env,
                              zarr_error *err);
extern const char *const zr_array_v2_members[], *const zr_array_v3_members[];
extern const char *const zr_group_v2_members[], *const zr_group_v3_members[];

/* ---- write.c ---- */
/* From the fields alone, whatever format they were read from. Borrowed values are copied.
 */
zarr_status zr_array_v3_write(const struct zr_array_meta *m, struct zr_json_doc *doc,
                              struct zr_json **out, zarr_error *err);
zarr_status zr_array_v2_write(const struct zr_array_meta *m, struct zr_json_doc *doc,
                              struct zr_json **out, zarr_error *err);
/* The members of `from` that are not in `known`, copied behind those of `to`. */
void zr_meta_write_others(struct zr_json_doc *doc, struct zr_json *to,
                          const struct zr_json *from, const char *const *known);
zarr_status zr_meta_doc_status(const struct zr_json_doc *doc, zarr_error *err);

#endif
