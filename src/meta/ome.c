/*
 * meta/ome.c - recognizes the metadata of OME-Zarr (OME-NGFF) in the attributes of a
 * group. Up to version 0.4 it is for Zarr v2 and at the top of the attributes; from 0.5
 * on it is for Zarr v3 and inside the attribute `ome`. A conversion of the format keeps
 * attributes as they are, so readers no longer find it.
 * Thread class: plain functions.
 */
#include "meta_int.h"

#include <string.h>

static bool has(const struct zr_json *attributes, const char *key, enum zr_json_type type)
{
    return zr_json_is(zr_json_get(attributes, key), type);
}

/* `labels` and `series` are common words: they count only in groups of these names. */
static bool is_named(const char *path, const char *name)
{
    const char *last = strrchr(path, '/');

    return zr_streq(last ? last + 1 : path, name);
}

static bool is_ome_v2(const struct zr_json *a, const char *path)
{
    return zr_json_get(zr_json_at(zr_json_get(a, "multiscales"), 0), "datasets") ||
           zr_json_get(zr_json_get(a, "plate"), "wells") ||
           zr_json_get(zr_json_get(a, "well"), "images") ||
           has(a, "image-label", ZR_JSON_OBJECT) ||
           zr_json_get(a, "bioformats2raw.layout") ||
           (has(a, "labels", ZR_JSON_ARRAY) && is_named(path, "labels")) ||
           (has(a, "series", ZR_JSON_ARRAY) && is_named(path, "OME"));
}

const char *zr_ome_warning(const struct zr_json *attributes, const char *path,
                           int32_t format)
{
    const struct zr_json *ome = zr_json_get(attributes, "ome");

    if (format == 3 && !ome && is_ome_v2(attributes, path))
        return "the OME-Zarr metadata of this group, and of all others here, stays at "
               "the "
               "top of the attributes, where readers of OME-Zarr 0.5 do not look. To "
               "make it 0.5, move these members into the attribute \"ome\", add "
               "\"version\": \"0.5\" there, remove \"version\" from the members, and "
               "make "
               "the names of the axes the dimension names of the arrays";
    if (format == 2 && zr_json_get(ome, "version") && zr_json_is(ome, ZR_JSON_OBJECT))
        return "the OME-Zarr metadata of this group, and of all others here, stays in "
               "the "
               "attribute \"ome\", where readers of OME-Zarr 0.4 do not look. To make it "
               "0.4, move the members of \"ome\" to the top of the attributes, and give "
               "multiscales, plate, well and image-label \"version\": \"0.4\"";
    return NULL;
}
