/*
 * meta/consolidated_metadata.c - writes consolidated metadata: a map from paths to
 * documents. Thread class: plain functions.
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
static void add_node_documents(struct zr_json_doc *doc, struct zr_json *map,
                               const struct zr_meta_node *node)
{
    const bool array = zr_json_get(node->document, "shape") != NULL;

    add_document(doc, map, node->path, array ? ".zarray" : ".zgroup", node->document);
    if (node->attributes)
        add_document(doc, map, node->path, ".zattrs", node->attributes);
}

struct zr_json *zr_consolidated_write_v2(struct zr_json_doc *doc,
                                         const struct zr_meta_node *nodes, size_t n)
{
    struct zr_json *o = zr_json_new(doc, ZR_JSON_OBJECT);
    struct zr_json *map = zr_json_new(doc, ZR_JSON_OBJECT);

    for (size_t i = 0; i < n; i++)
        add_node_documents(doc, map, &nodes[i]);
    zr_json_set(doc, o, "metadata", map);
    zr_json_set(doc, o, "zarr_consolidated_format", zr_json_new_u64(doc, 1));
    return o;
}

/* ---- patching ------------------------------------------------------------ */

/* Whether the key of an entry belongs to the node at `path`, or to one below it. */
static bool is_entry_at(const struct zr_json *entry, int format, const char *path,
                        bool below)
{
    static const char *const names[] = {".zarray", ".zgroup", ".zattrs"};
    const size_t n = strlen(path);
    const char *rest = entry->key;

    if (n > 0) {
        if (strncmp(entry->key, path, n) != 0)
            return false;
        rest += n;
        if (*rest == '\0')
            return format == 3;
        if (*rest++ != '/')
            return false;
    }
    if (below)
        return true;
    for (size_t i = 0; format == 2 && i < ZR_COUNT(names); i++)
        if (zr_streq(rest, names[i]))
            return true;
    return false;
}

static void keep_entry(struct zr_json *map, struct zr_json *entry)
{
    entry->next = NULL;
    if (map->u.children.last)
        map->u.children.last->next = entry;
    else
        map->u.children.first = entry;
    map->u.children.last = entry;
    map->u.children.n++;
}

static void add_nodes(struct zr_json_doc *doc, struct zr_json *map, int format,
                      const struct zr_meta_node *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (format == 2)
            add_node_documents(doc, map, &nodes[i]);
        else
            zr_json_add(doc, map, nodes[i].path, strlen(nodes[i].path),
                        copy_node(doc, &nodes[i]));
}

void zr_consolidated_patch(struct zr_json_doc *doc, struct zr_json *map, int format,
                           const char *path, bool below, const struct zr_meta_node *nodes,
                           size_t n)
{
    struct zr_json *entry = map->u.children.first, *next = NULL;
    bool added = false;

    map->u.children.first = map->u.children.last = NULL;
    map->u.children.n = 0;
    for (; entry; entry = next) {
        next = entry->next;
        if (!is_entry_at(entry, format, path, below)) {
            keep_entry(map, entry);
            continue;
        }
        if (!added)
            add_nodes(doc, map, format, nodes, n);
        added = true;
    }
    if (!added)
        add_nodes(doc, map, format, nodes, n);
}
