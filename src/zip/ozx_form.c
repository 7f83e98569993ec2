/*
 * zip/ozx_form.c - gives an archive the form of RFC-9 of OME-NGFF: the order of members,
 * and the comment. The comment tells a version only if it is in the attributes of the
 * root, and the archive has the form.
 * Thread class: called by the busy thread.
 */
#include "zip/zip_int.h"

#include "json/json.h"

#include <string.h>

enum {
    LEVEL_OTHERS = ZR_ZIP_LEVELS - 1,
    VERSION_MOST = 32
};

unsigned zr_zip_level(const struct zr_zip_store *z, const struct zr_zip_member *m)
{
    const char *name = zr_zip_table_name(&z->table, m);

    if (!z->is_ozx)
        return 0;
    if (!zr_zip_is_document(name))
        return LEVEL_OTHERS;
    return (unsigned)ZR_MIN(zr_zip_count_slashes(name), (size_t)LEVEL_OTHERS - 1);
}

uint64_t zr_zip_levels(const struct zr_zip_store *z)
{
    uint64_t levels = 0;

    for (size_t i = 0; i < z->table.n; i++)
        if (!(z->table.member[i].flags & ZR_ZIP_IS_DEAD))
            levels |= UINT64_C(1) << zr_zip_level(z, &z->table.member[i]);
    return levels;
}

/* ---- the version ---- */

static bool is_version(const char *text)
{
    const size_t n = text ? strlen(text) : 0;

    return n > 0 && n <= VERSION_MOST &&
           strspn(text, "0123456789.-+abcdefghijklmnopqrstuvwxyz") == n;
}

static zarr_status read_document(const struct zr_zip_store *z,
                                 const struct zr_zip_member *m, char **out,
                                 zarr_error *err)
{
    const struct zr_zip_archive *a = &z->archive;
    uint8_t head[ZR_ZIP_LOCAL_BYTES];
    uint64_t lead = m->lead;
    char *text = NULL;
    zarr_status st = ZARR_OK;

    if (lead == 0) {
        ZR_TRY(zr_zip_read_host(a, m->header_at, sizeof head, head, err));
        lead = sizeof head + (size_t)zr_zip_u16(head + 26) + zr_zip_u16(head + 28);
    }
    text = zr_calloc(a->env.alloc, 1, (size_t)m->bytes + 1);
    if (!text)
        return zr_fail_memory(err, m->bytes + 1);
    st = zr_zip_read_host(a, m->header_at + lead, (size_t)m->bytes, text, err);
    if (st == ZARR_OK)
        *out = text;
    else
        zr_free(a->env.alloc, text);
out:
    return st;
}

/* Appends the comment if the document of the root tells the version. One that cannot be
 * read tells none: a directory without the comment is better than no directory. */
static zarr_status add_version(const struct zr_zip_store *z,
                               const struct zr_zip_member *root, struct zr_str *out,
                               zarr_error *err)
{
    const zarr_allocator *alloc = z->archive.env.alloc;
    struct zr_json_doc doc;
    char *text = NULL;
    const char *version = NULL;
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    if (root->bytes > z->archive.env.limits.metadata_bytes)
        return ZARR_OK;
    zr_json_doc_init(&doc, alloc);
    st = read_document(z, root, &text, &why);
    if (st == ZARR_OK)
        st = zr_json_parse(&doc, text, strlen(text), &z->archive.env.limits, &why);
    if (st == ZARR_OK)
        version = zr_json_string(zr_json_get(
            zr_json_get(zr_json_get(doc.root, "attributes"), "ome"), "version"));
    if (is_version(version))
        zr_str_printf(out,
                      "{\"ome\":{\"version\":\"%s\",\"zipFile\":{\"centralDirectory\":{"
                      "\"jsonFirst\":true}}}}",
                      version);
    st = st == ZARR_ERR_NO_MEMORY || st == ZARR_ERR_CANCELLED ? zr_pass(err, st, &why)
                                                              : zr_str_status(out, err);
    zr_json_doc_deinit(&doc);
    zr_free(alloc, text);
    return st;
}

/* ---- the comment ---- */

/* The document of the root, if the archive has the form: the document is first, and no
 * member is compressed. NULL: it has not. */
static const struct zr_zip_member *find_first(const struct zr_zip_store *z,
                                              const uint64_t *new_at)
{
    const struct zr_zip_table *t = &z->table;
    const struct zr_zip_member *root = NULL;

    if (z->is_ozx && t->root == 0 && t->n_slots > 0)
        root = zr_zip_table_find(t, ZR_DOC_V3);
    if (!root || zr_zip_member_fault(root) ||
        (new_at ? new_at[root - t->member] : root->header_at) != t->base)
        return NULL;
    for (size_t i = 0; i < t->n; i++)
        if (!(t->member[i].flags & ZR_ZIP_IS_DEAD) &&
            (t->member[i].method != ZR_ZIP_STORED ||
             t->member[i].flags & ZR_ZIP_IS_ENCRYPTED))
            return NULL;
    return root;
}

zarr_status zr_zip_make_comment(const struct zr_zip_store *z, const uint64_t *new_at,
                                struct zr_str *out, zarr_error *err)
{
    const struct zr_zip_table *t = &z->table;
    const size_t n = (size_t)(t->end_at - t->comment_at);
    const struct zr_zip_member *root = find_first(z, new_at);
    struct zr_zip_ome old = {false, false};

    if (root)
        ZR_CHECK(add_version(z, root, out, err));
    if (out->bytes > 0 || n == 0)
        return ZARR_OK;
    if (z->is_ozx)
        ZR_CHECK(zr_zip_read_ome(&z->archive, t, &old, err));
    if (old.is_ome || old.says_first) /* it was true of an older root */
        return ZARR_OK;
    ZR_CHECK(zr_grow(t->alloc, &out->ptr, &out->cap, n + 1, 1, err));
    ZR_CHECK(zr_zip_read_host(&z->archive, t->comment_at, n, out->ptr, err));
    out->bytes = n;
    return ZARR_OK;
}

zarr_status zr_zip_ozx_is_same(const struct zr_zip_store *z, bool *yes, zarr_error *err)
{
    const struct zr_zip_table *t = &z->table;
    const size_t n = (size_t)(t->end_at - t->comment_at);
    uint8_t *old = zr_malloc(t->alloc, n + 1);
    struct zr_str comment;
    zarr_status st = ZARR_OK;

    zr_str_init(&comment, t->alloc);
    if (!old)
        return zr_fail_memory(err, n + 1);
    ZR_TRY(zr_zip_make_comment(z, NULL, &comment, err));
    if (n > 0)
        ZR_TRY(zr_zip_read_host(&z->archive, t->comment_at, n, old, err));
    *yes = z->archive.bytes == 0 || (zr_zip_has_end64(t) && comment.bytes == n &&
                                     memcmp(zr_str_text(&comment), old, n) == 0);
out:
    zr_str_deinit(&comment);
    zr_free(t->alloc, old);
    return st;
}
