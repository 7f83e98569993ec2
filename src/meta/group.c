/*
 * meta/group.c - groups, and the frame of the consolidated metadata in them: for v3 a
 * member of the group's zarr.json, for v2 a document of its own. The documents inside are
 * read like any other.
 * Thread class: plain functions.
 */
#include "meta_int.h"

const char *const zr_group_v3_members[] = {"zarr_format", "node_type", "attributes",
                                           "consolidated_metadata", NULL};
const char *const zr_group_v2_members[] = {"zarr_format", "consolidated_metadata", NULL};

zarr_status zr_consolidated_map(const struct zr_json **out, int format,
                                const struct zr_json *v, zarr_error *err)
{
    const struct zr_json *kind = zr_json_get(v, "kind");
    const struct zr_json *map = zr_json_get(v, "metadata");
    uint64_t version = 0;
    char text[64];

    *out = NULL;
    if (!v || v->type == ZR_JSON_NULL)
        return ZARR_OK;
    if (v->type != ZR_JSON_OBJECT)
        return zr_meta_refuse("consolidated_metadata", "an object", v, err);
    if (format == 3 && kind && !zr_json_is_text(kind, "inline"))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "consolidated_metadata: kind %s is not known",
                       zr_json_excerpt(kind, text, sizeof text));
    if (format == 2) {
        const struct zr_json *said = zr_json_get(v, "zarr_consolidated_format");

        if (!zr_json_u64(said, &version) || version != 1)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "zarr_consolidated_format must be 1, not %s",
                           zr_json_excerpt(said, text, sizeof text));
    }
    if (!zr_json_is(map, ZR_JSON_OBJECT))
        return zr_meta_refuse("metadata", "an object", map, err);
    *out = map;
    return ZARR_OK;
}

zarr_status zr_group_meta_parse(struct zr_group_meta *out, const struct zr_meta_env *env,
                                int format, const struct zr_json *root,
                                const struct zr_json *attributes, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const struct zr_json *type = zr_json_get(root, "node_type");

    *out = (struct zr_group_meta){.format = format, .document = root};
    if (format != 2 && format != 3)
        return zr_fail(err, ZARR_ERR_INVALID, "zarr_format must be 2 or 3, not %d",
                       format);
    ZR_TRY(zr_meta_format(root, format, err));
    if (format == 2) {
        ZR_TRY(zr_meta_attributes(attributes, &out->attributes, err));
        goto out;
    }
    if (!zr_json_is_text(type, "group"))
        ZR_TRY(zr_meta_refuse("node_type", "\"group\"", type, err));
    ZR_TRY(zr_meta_check_members(root, zr_group_v3_members, err));
    ZR_TRY(zr_meta_attributes(zr_json_get(root, "attributes"), &out->attributes, err));
    ZR_TRY(zr_consolidated_map(&out->consolidated, 3,
                               zr_json_get(root, "consolidated_metadata"), err));
out:
    return zr_meta_blame(env, st, err);
}

zarr_status zr_group_meta_write(const struct zr_group_meta *m, struct zr_json_doc *doc,
                                struct zr_json **out, zarr_error *err)
{
    struct zr_json *o = zr_json_new(doc, ZR_JSON_OBJECT);

    if (m->format == 3)
        zr_json_set(doc, o, "attributes",
                    m->attributes ? zr_json_copy(doc, m->attributes)
                                  : zr_json_new(doc, ZR_JSON_OBJECT));
    zr_json_set(doc, o, "zarr_format", zr_json_new_i64(doc, m->format));
    if (m->format == 3) {
        if (m->consolidated)
            zr_json_set(doc, o, "consolidated_metadata",
                        zr_meta_inline_map(doc, zr_json_copy(doc, m->consolidated)));
        zr_json_set(doc, o, "node_type", zr_json_new_text(doc, "group"));
    }
    zr_meta_write_others(doc, o, m->document,
                         m->format == 3 ? zr_group_v3_members : zr_group_v2_members);
    *out = o;
    return zr_meta_doc_status(doc, err);
}
