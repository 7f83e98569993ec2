/*
 * zip/ozx.c - checks an archive against RFC-9 of OME-NGFF, "Single-file OME-Zarr", as far
 * as the directory and the comment show it. It applies to archives called *.ozx, and to
 * those whose comment says that they are OME-Zarr.
 * Thread class: shared; the directory is looked at by the busy thread.
 */
#include "zip/zip_int.h"

#include "json/json.h"

#include <stdio.h>
#include <string.h>

enum {
    OZX_FINDINGS = 12, /* more than there are rules */
    OZX_TEXT_BYTES = 256
};

struct ozx_check {
    struct zr_zip_archive archive;
    const struct zr_zip_table *table;
    bool is_ozx; /* by its name */
    struct zr_zip_ome ome;
    bool is_zip64, is_first, is_sorted;
    size_t n_compressed;
    struct {
        bool is_fault;
        char text[OZX_TEXT_BYTES];
    } found[OZX_FINDINGS];
    size_t n_found;
};

static void ozx_find(struct ozx_check *o, bool is_fault, const char *format, ...)
    ZARR_PRINTF(3, 4);
static void ozx_find(struct ozx_check *o, bool is_fault, const char *format, ...)
{
    va_list ap;

    if (o->n_found == OZX_FINDINGS)
        return;
    va_start(ap, format);
    (void)vsnprintf(o->found[o->n_found].text, OZX_TEXT_BYTES, format, ap);
    va_end(ap);
    o->found[o->n_found++].is_fault = is_fault && o->is_ozx;
}

/* ---- the comment ---- */

static void read_ome(const struct zr_json *root, struct zr_zip_ome *out)
{
    const struct zr_json *ome = zr_json_get(root, "ome");
    const struct zr_json *directory =
        zr_json_get(zr_json_get(ome, "zipFile"), "centralDirectory");

    out->is_ome = zr_json_is(zr_json_get(ome, "version"), ZR_JSON_STRING);
    if (!zr_json_bool(zr_json_get(directory, "jsonFirst"), &out->says_first))
        out->says_first = false;
}

zarr_status zr_zip_read_ome(const struct zr_zip_archive *a, const struct zr_zip_table *t,
                            struct zr_zip_ome *out, zarr_error *err)
{
    const size_t n = (size_t)(t->end_at - t->comment_at);
    char *text = NULL;
    struct zr_json_doc doc;
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    *out = (struct zr_zip_ome){false, false};
    zr_json_doc_init(&doc, a->env.alloc);
    if (n == 0)
        goto out;
    text = zr_calloc(a->env.alloc, 1, n + 1);
    if (!text)
        ZR_FAIL_MEMORY(err, n + 1);
    ZR_TRY(zr_zip_read_host(a, t->comment_at, n, text, err));
    st = zr_json_parse(&doc, text, strlen(text), &a->env.limits, &why);
    if (st == ZARR_OK)
        read_ome(doc.root, out);
    st =
        st == ZARR_ERR_NO_MEMORY ? zr_pass(err, st, &why) : ZARR_OK; /* another comment */
out:
    zr_json_doc_deinit(&doc);
    zr_free(a->env.alloc, text);
    return st;
}

/* ---- the directory ---- */

bool zr_zip_is_document(const char *name)
{
    return zr_ends_with(name, "/" ZR_DOC_V3) || strcmp(name, ZR_DOC_V3) == 0;
}

size_t zr_zip_count_slashes(const char *name)
{
    size_t n = 0;

    for (; *name; name++)
        n += *name == '/';
    return n;
}

bool zr_zip_has_end64(const struct zr_zip_table *t)
{
    return t->comment_at - ZR_ZIP_END_BYTES - t->directory_at - t->directory_bytes >=
           ZR_ZIP_END64_BYTES + ZR_ZIP_LOCATOR_BYTES;
}

/* The order and the compression of the members. */
static void look_at_members(struct ozx_check *o)
{
    const struct zr_zip_table *t = o->table;
    uint64_t first_at = UINT64_MAX, root_at = UINT64_MAX - 1;
    size_t depth = 0;
    bool others = false, any = false;

    o->is_first = o->is_sorted = true;
    for (size_t i = 0; i < t->n_recorded; i++) {
        const struct zr_zip_member *m = &t->member[i];
        const char *name = zr_zip_table_name(t, m);

        first_at = ZR_MIN(first_at, m->header_at);
        if (m->flags & ZR_ZIP_IS_DEAD)
            continue;
        o->n_compressed += m->method != ZR_ZIP_STORED;
        if (strcmp(name, ZR_DOC_V3) == 0) {
            root_at = m->header_at;
            o->is_first = !any;
        }
        any = true;
        if (!zr_zip_is_document(name)) {
            others = true;
            continue;
        }
        if (others || zr_zip_count_slashes(name) < depth)
            o->is_sorted = false;
        depth = zr_zip_count_slashes(name);
    }
    o->is_first = o->is_first && root_at == first_at;
    o->is_zip64 = zr_zip_has_end64(t);
}

/* Whether the folder above the node of a document has a document. */
static bool has_parent(const struct zr_zip_table *t, struct zr_str *key, const char *name)
{
    size_t n = strlen(name) - strlen("/" ZR_DOC_V3);

    while (n > 0 && name[n - 1] != '/')
        n--;
    zr_str_clear(key);
    zr_str_append(key, name, n);
    zr_str_puts(key, ZR_DOC_V3);
    return key->failed || zr_zip_table_find(t, zr_str_text(key)) != NULL;
}

/* Nodes that no group holds, and archives. */
static void find_other_trees(struct ozx_check *o, struct zr_str *key)
{
    const struct zr_zip_table *t = o->table;
    const char *node = NULL, *archive = NULL;

    for (size_t i = 0; i < t->n_recorded; i++) {
        const struct zr_zip_member *m = &t->member[i];
        const char *name = zr_zip_table_name(t, m);

        if (!(m->flags & ZR_ZIP_HAS_KEY))
            continue;
        if (!node && zr_zip_is_document(name) && strchr(name, '/') &&
            !has_parent(t, key, name))
            node = name;
        if (!archive && zr_ends_with(name, ".ozx"))
            archive = name;
    }
    if (node)
        ozx_find(o, true,
                 "no group holds the node of %.100s, so the archive has more than one "
                 "hierarchy",
                 node);
    if (archive)
        ozx_find(o, true, "there is an archive in it, %.100s", archive);
}

/* Whether the archive is inside of another hierarchy. */
static zarr_status find_parent(struct ozx_check *o, struct zr_str *key, zarr_error *err)
{
    const struct zr_zip_archive *a = &o->archive;
    const char *slash = strrchr(a->key, '/');
    zarr_store_op op = {
        .verb = ZARR_STORE_STAT, .flags = ZARR_STORE_OP_DOCUMENT, .cancel = a->cancel};
    zarr_error why = {0};
    zarr_status st;

    zr_str_clear(key);
    zr_str_append(key, a->key, slash ? (size_t)(slash + 1 - a->key) : 0);
    zr_str_puts(key, ZR_DOC_V3);
    st = zr_str_status(key, err);
    if (st != ZARR_OK)
        return st;
    op.key = zr_str_text(key);
    st = zarr_store_run(a->store, &op, &why);
    if (st == ZARR_OK)
        ozx_find(o, true, "its folder is a node of another hierarchy");
    return st == ZARR_ERR_CANCELLED ? zr_pass(err, st, &why) : ZARR_OK;
}

/* ---- the rules ---- */

static void check_recommendations(struct ozx_check *o)
{
    const bool is_variant =
        o->is_zip64 && o->is_first && o->is_sorted && o->n_compressed == 0;

    if (o->ome.is_ome && !is_variant)
        ozx_find(
            o, true,
            "its comment has an OME-Zarr version, which needs zip64, stored members, "
            "and each " ZR_DOC_V3 " first");
    if (o->ome.says_first && !(o->is_first && o->is_sorted))
        ozx_find(o, true, "its comment says jsonFirst, but other members are before");
    if (o->n_compressed > 0)
        ozx_find(o, false,
                 "%zu members are compressed by the archive; codecs of arrays "
                 "should do that",
                 o->n_compressed);
    if (!o->is_zip64)
        ozx_find(o, false, "it does not use zip64");
    if (!o->is_first)
        ozx_find(o, false, ZR_DOC_V3 " of the root is not the first member");
    else if (!o->is_sorted)
        ozx_find(o, false,
                 "the other " ZR_DOC_V3
                 " do not follow that of the root, level by level");
    if (!o->ome.is_ome)
        ozx_find(o, false, "its comment does not tell the version of OME-Zarr");
    if (!o->is_ozx)
        ozx_find(o, false, "its name does not end in .ozx");
    if (o->table->base > 0)
        ozx_find(o, false, "%" PRIu64 " bytes are before the archive", o->table->base);
}

static zarr_status ozx_check(struct ozx_check *o, zarr_error *err)
{
    const struct zr_zip_table *t = o->table;
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, o->archive.env.alloc);
    o->is_ozx = zr_ends_with(o->archive.key, ".ozx");
    if (o->archive.bytes == 0) /* not written yet */
        goto out;
    ZR_TRY(zr_zip_read_ome(&o->archive, t, &o->ome, err));
    if (!o->is_ozx && !o->ome.is_ome)
        goto out;
    look_at_members(o);
    if (t->root > 0)
        ozx_find(o, true, ZR_DOC_V3 " is not at the root of the archive, but in %.*s",
                 (int)ZR_MIN(t->root, (size_t)100), t->names.ptr + t->first_at);
    else if (!zr_zip_table_find(t, ZR_DOC_V3))
        ozx_find(o, true, "there is no " ZR_DOC_V3 " at the root of the archive");
    else
        find_other_trees(o, &key);
    ZR_TRY(find_parent(o, &key, err));
    check_recommendations(o);
out:
    zr_str_deinit(&key);
    return st;
}

zarr_status zr_zip_check(void *self, zarr_store_check_fn fn, void *user,
                         const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_zip_store *z = self;
    struct ozx_check *o = zr_calloc(z->archive.env.alloc, 1, sizeof *o);
    zarr_status st = ZARR_OK;

    if (!o)
        return zr_fail_memory(err, sizeof *o);
    ZR_TRY(zr_zip_busy_begin(z, cancel, err));
    st = zr_zip_refresh_busy(z, true, cancel, err);
    o->archive = z->archive;
    o->archive.cancel = cancel;
    o->table = &z->table;
    if (st == ZARR_OK)
        st = ozx_check(o, err);
    zr_zip_busy_end(z);
    for (size_t i = 0; st == ZARR_OK && i < o->n_found; i++)
        fn(user, o->found[i].is_fault, o->found[i].text);
out:
    zr_free(z->archive.env.alloc, o);
    return st;
}
