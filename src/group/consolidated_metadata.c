/*
 * group/consolidated_metadata.c - reads consolidated metadata: every document below a
 * group in one. v3 keeps them by path inside the group's zarr.json, v2 by key in
 * .zmetadata. Both become one sorted table of entries that point into the parsed
 * document. Children, subtrees and single nodes are found in it by bisection. The paths
 * come from a foreign file and must obey the same rules as any other. Thread class:
 * frozen once parsed, counted.
 */
#include "group/group.h"

#include <stdlib.h>
#include <string.h>

struct consolidated_parse {
    struct zr_consolidated *c;
    struct zr_map by_path; /* v2: path -> struct zr_entry */
    size_t cap;
    const zarr_limits *limits;
};

struct zr_consolidated *zr_consolidated_ref(struct zr_consolidated *c)
{
    if (c)
        atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void zr_consolidated_free(struct zr_consolidated *c)
{
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    zr_free(c->alloc, c->entry);
    zr_arena_deinit(&c->arena);
    zr_parsed_free(c->parsed);
    zr_free(c->alloc, c);
}

/* Checks that the key of an entry, or the part of it that is a path, is a normalised
 * path. */
static zarr_status check_entry_path(const char *path, const zarr_limits *limits,
                                    const zarr_allocator *alloc, zarr_error *err)
{
    char *normal = NULL;
    zarr_status st = zr_path_normal(&normal, alloc, path, limits, err);

    if (st == ZARR_OK && !zr_streq(normal, path))
        st = zr_fail(err, ZARR_ERR_CORRUPT, "\"%s\" is not the path of a node", path);
    zr_free(alloc, normal);
    return st;
}

static zarr_status new_entry(struct consolidated_parse *p, const char *path,
                             struct zr_entry **out, zarr_error *err)
{
    struct zr_consolidated *c = p->c;

    ZR_CHECK(check_entry_path(path, p->limits, c->alloc, err));
    if (c->n >= p->cap)
        ZR_CHECK(zr_internal(err));
    *out = &c->entry[c->n++];
    **out = (struct zr_entry){.path = path};
    return ZARR_OK;
}

/* ---- v3: path -> document ----------------------------------------------- */

static zarr_status entry_of_v3(struct consolidated_parse *p, const struct zr_json *v,
                               zarr_error *err)
{
    const struct zr_json *type = zr_json_get(v, "node_type");
    struct zr_entry *e = NULL;
    uint64_t format = 0;

    ZR_CHECK(new_entry(p, v->key, &e, err));
    if (!*e->path || !zr_json_u64(zr_json_get(v, "zarr_format"), &format) || format != 3)
        return zr_fail(err, ZARR_ERR_CORRUPT, "\"%s\" is not a v3 document", v->key);
    e->format = 3;
    e->doc = v;
    e->kind = zr_json_is_text(type, "array")   ? ZARR_NODE_ARRAY
              : zr_json_is_text(type, "group") ? ZARR_NODE_GROUP
                                               : ZARR_NODE_NONE;
    return ZARR_OK;
}

/* ---- v2: key -> document ------------------------------------------------ */

static zarr_status entry_for_path(struct consolidated_parse *p, const char *path,
                                  size_t n, struct zr_entry **out, zarr_error *err)
{
    const char *copy = NULL;

    *out = zr_map_get_n(&p->by_path, path, n);
    if (*out)
        return ZARR_OK;
    copy = zr_arena_strndup(&p->c->arena, path, n);
    if (!copy)
        return zr_fail_memory(err, n);
    ZR_CHECK(new_entry(p, copy, out, err));
    return zr_map_put(&p->by_path, copy, *out, err);
}

static zarr_status entry_of_v2(struct consolidated_parse *p, const struct zr_json *v,
                               zarr_error *err)
{
    const char *name = zr_path_name(v->key);
    struct zr_entry *e = NULL;

    if (!zr_streq(name, ZR_DOC_ARRAY) && !zr_streq(name, ZR_DOC_GROUP) &&
        !zr_streq(name, ZR_DOC_ATTRS))
        return ZARR_OK;
    ZR_CHECK(entry_for_path(p, v->key, zr_path_parent_bytes(v->key), &e, err));
    if (!zr_json_is(v, ZR_JSON_OBJECT))
        return zr_fail(err, ZARR_ERR_CORRUPT, "\"%s\" is not a JSON object", v->key);
    e->format = 2;
    if (zr_streq(name, ZR_DOC_ATTRS)) {
        e->attrs = v;
        return ZARR_OK;
    }
    if (e->doc)
        return zr_fail(err, ZARR_ERR_CORRUPT, "\"%s\" is both array and group", e->path);
    e->doc = v;
    e->kind = zr_streq(name, ZR_DOC_ARRAY) ? ZARR_NODE_ARRAY : ZARR_NODE_GROUP;
    return ZARR_OK;
}

/* ---- the table ---------------------------------------------------------- */

static int compare_entries(const void *a, const void *b)
{
    return zr_path_compare(((const struct zr_entry *)a)->path,
                           ((const struct zr_entry *)b)->path);
}

/* Sorts the table. Drops the group itself, and attributes without a document. */
static void finish_table(struct zr_consolidated *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++)
        if (c->entry[i].doc && *c->entry[i].path)
            c->entry[n++] = c->entry[i];
    c->n = n;
    if (n > 1)
        qsort(c->entry, n, sizeof *c->entry, compare_entries);
}

static zarr_status fill_table(struct consolidated_parse *p,
                              const struct zr_json *metadata, int32_t format,
                              zarr_error *err)
{
    struct zr_consolidated *c = p->c;

    p->cap = zr_json_count(metadata);
    c->entry = zr_calloc(c->alloc, ZR_MAX(p->cap, 1), sizeof *c->entry);
    if (!c->entry)
        return zr_fail_memory(err, p->cap * sizeof *c->entry);
    for (const struct zr_json *v = metadata->u.children.first; v; v = v->next) {
        if (strlen(v->key) != v->key_bytes)
            return zr_fail(err, ZARR_ERR_CORRUPT, "\"%s\": a path with a NUL", v->key);
        ZR_CHECK(format == 3 ? entry_of_v3(p, v, err) : entry_of_v2(p, v, err));
    }
    finish_table(c);
    return ZARR_OK;
}

zarr_status zr_consolidated_parse(struct zr_consolidated **out, struct zr_parsed *parsed,
                                  const struct zr_json *metadata, int32_t format,
                                  const zarr_limits *limits, zarr_error *err)
{
    struct consolidated_parse p = {.limits = limits};
    zarr_status st = ZARR_OK;

    *out = NULL;
    zr_map_init(&p.by_path, parsed->alloc, NULL);
    if (!zr_json_is(metadata, ZR_JSON_OBJECT))
        ZR_FAIL(err, ZARR_ERR_CORRUPT, "\"metadata\" is not a JSON object");
    p.c = zr_calloc(parsed->alloc, 1, sizeof *p.c);
    if (!p.c)
        ZR_FAIL_MEMORY(err, sizeof *p.c);
    atomic_init(&p.c->refs, 1);
    p.c->alloc = parsed->alloc;
    p.c->parsed = zr_parsed_ref(parsed);
    zr_arena_init(&p.c->arena, parsed->alloc);
    ZR_TRY(fill_table(&p, metadata, format, err));
    *out = p.c; /* moved */
    p.c = NULL;
out:
    zr_consolidated_free(p.c);
    zr_map_deinit(&p.by_path);
    if (st != ZARR_OK && st != ZARR_ERR_NO_MEMORY)
        return zr_prefix(err, ZARR_ERR_CORRUPT, "consolidated metadata");
    return st;
}

size_t zr_consolidated_seek(const struct zr_consolidated *c, const char *path)
{
    size_t low = 0, high = c->n;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;

        if (zr_path_compare(c->entry[mid].path, path) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const struct zr_entry *zr_consolidated_find(const struct zr_consolidated *c,
                                            const char *path)
{
    const size_t i = zr_consolidated_seek(c, path);

    return i < c->n && zr_streq(c->entry[i].path, path) ? &c->entry[i] : NULL;
}
