/*
 * meta/consolidated.c - writes consolidated metadata: a map from paths to documents.
 * Thread class: plain functions.
 */
#include "meta_int.h"

#include <string.h>

struct zr_json *zr_meta_inline_map(struct zr_json_doc *doc, struct zr_json *map)
{
    struct zr_json *v = zr_json_new(doc, ZR_JSON_OBJECT);

    zr_json_set(doc, v, "kind", zr_json_new_text(doc, "inline"));
    zr_json_set(doc, v, "must_understand", zr_json_new_bool(doc, false));
    zr_json_set(doc, v, "metadata", map);
    return v;
}

/* A node's document as it is written into the map. Groups get empty consolidated
 * metadata. */
static struct zr_json *copy_node(struct zr_json_doc *doc, const struct zr_meta_node *node)
{
    struct zr_json *v = zr_json_copy(doc, node->document);

    if (zr_json_is_text(zr_json_get(v, "node_type"), "group"))
        zr_json_set(doc, v, "consolidated_metadata",
                    zr_meta_inline_map(doc, zr_json_new(doc, ZR_JSON_OBJECT)));
    return v;
}

struct zr_json *zr_consolidated_write_v3(struct zr_json_doc *doc,
                                         const struct zr_meta_node *nodes, size_t n)
{
    struct zr_json *map = zr_json_new(doc, ZR_JSON_OBJECT);

    for (size_t i = 0; i < n; i++)
        zr_json_add(doc, map, nodes[i].path, strlen(nodes[i].path),
                    copy_node(doc, &nodes[i]));
    return zr_meta_inline_map(doc, map);
}

static void add_document(struct zr_json_doc *doc, struct zr_json *map, const char *path,
                         const char *name, const struct zr_json *v)
{
    struct zr_str key;

    zr_str_init(&key, doc->arena.alloc);
    zr_str_printf(&key, "%s%s%s", path, *path ? "/" : "", name);
    if (key.failed)
        doc->failed = true;
    else
        zr_json_add(doc, map, zr_str_text(&key), key.bytes, zr_json_copy(doc, v));
    zr_str_deinit(&key);
}

/* zarr-python 3 adds an empty "consolidated_metadata" to each .zgroup in here. Its own
 * files do not have it, and no reader needs it: v2's never saw one, and zarr-python adds
 * it where it is missing. We leave it out, so that the entries equal the documents. */
struct zr_json *zr_consolidated_write_v2(struct zr_json_doc *doc,
                                         const struct zr_meta_node *nodes, size_t n)
{
    struct zr_json *o = zr_json_new(doc, ZR_JSON_OBJECT);
    struct zr_json *map = zr_json_new(doc, ZR_JSON_OBJECT);

    for (size_t i = 0; i < n; i++) {
        bool array = zr_json_get(nodes[i].document, "shape") != NULL;

        add_document(doc, map, nodes[i].path, array ? ".zarray" : ".zgroup",
                     nodes[i].document);
        if (nodes[i].attributes)
            add_document(doc, map, nodes[i].path, ".zattrs", nodes[i].attributes);
    }
    zr_json_set(doc, o, "metadata", map);
    zr_json_set(doc, o, "zarr_consolidated_format", zr_json_new_u64(doc, 1));
    return o;
}
