/*
 * node/node_make.c - what making any node needs: that nothing is there yet,
 * that what may be overwritten is gone (a node, or what is left of one; never
 * files that are none of Zarr's), and that its parents are groups. A
 * parent's document is only written where there is none of either format: a
 * v2 group is left alone when a v3 node is made below it, because a zarr.json
 * beside its .zgroup would hide it.
 * Thread class: plain functions.
 */
#include "node/node_int.h"

#include <string.h>

struct node_writing {
    zarr_store *store;
    const struct zr_new_node *node;
};

/* Attributes that lie there are another node's, which is gone. */
static zarr_status write_attributes(const struct node_writing *w, zarr_error *err)
{
    const struct zr_new_node *node = w->node;
    zarr_store_op op = {.verb = ZARR_STORE_ERASE};
    zarr_error e = {0};
    struct zr_str text;
    zarr_status st = ZARR_OK;

    zr_str_init(&text, zr_store_context(w->store)->alloc);
    if (zr_json_count(node->attrs) > 0) {
        zr_json_write(node->attrs, ZR_META_INDENT, &text);
        ZR_TRY(zr_document_write(w->store, node->path, ZR_DOC_ATTRS, &text, true, err));
        goto out;
    }
    zr_path_key(&text, node->path, ZR_DOC_ATTRS);
    ZR_TRY(zr_str_status(&text, err));
    op.key = zr_str_text(&text);
    st = zr_store_run_one(w->store, &op, &e);
    if (st == ZARR_ERR_NOT_FOUND)
        st = ZARR_OK;
    else if (st != ZARR_OK && err)
        *err = e;
out:
    zr_str_deinit(&text);
    return st;
}

/* With the lock of the document, which is not there. The one of .zattrs is taken inside
 * it; nobody who has that waits for another. */
static zarr_status edit_new_node(void *arg, const struct zr_doc *old, struct zr_str *text,
                                 zarr_error *err)
{
    const struct node_writing *w = arg;
    zarr_status st = ZARR_OK;

    ZR_UNUSED(old);
    if (w->node->format == 2 && !zr_doc_by_version(w->store))
        ZR_TRY(write_attributes(w, err));
    zr_str_append(text, zr_str_text(w->node->text), w->node->text->bytes);
out:
    return st;
}

/* Without locks it is the document that tells who has won: attributes after it. */
static zarr_status commit_new_node(void *arg, zarr_error *err)
{
    const struct node_writing *w = arg;

    return w->node->format == 2 && zr_doc_by_version(w->store) ? write_attributes(w, err)
                                                               : ZARR_OK;
}

zarr_status zr_node_write(zarr_store *store, const struct zr_new_node *node,
                          zarr_error *err)
{
    struct node_writing w = {store, node};
    const struct zr_doc_edit edit = {.fn = edit_new_node,
                                     .arg = &w,
                                     .may_be_new = true,
                                     .must_be_new = true,
                                     .commit = commit_new_node};
    struct zr_doc_source src;
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, zr_store_context(store)->alloc);
    zr_path_key(&key, node->path, node->name);
    ZR_TRY(zr_str_status(&key, err));
    src = zr_doc_source(store, zr_str_text(&key));
    ZR_TRY(zr_doc_update(&src, &edit, err));
out:
    zr_str_deinit(&key);
    return st;
}

static zarr_status parent_is_missing(zarr_store *store, const char *path, bool *missing,
                                     zarr_error *err)
{
    struct zr_find where = {.store = store, .path = path};
    struct zr_found found;
    zarr_status st = ZARR_OK;

    where.limit = zr_store_context(store)->limits.consolidated_bytes;
    zr_found_init(&found, zr_store_context(store)->alloc);
    st = zr_node_find(&found, &where, err);
    *missing = st == ZARR_ERR_NOT_FOUND;
    if (*missing)
        st = ZARR_OK;
    else if (st != ZARR_OK)
        zr_path_prefix(err, st, path);
    else if (found.kind == ZARR_NODE_ARRAY)
        st = zr_fail(err, ZARR_ERR_INVALID, "/%s is an array: no node can be below it",
                     path);
    zr_found_deinit(&found);
    return st;
}

static zarr_status write_parent(zarr_store *store, const char *path, int32_t format,
                                zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(store)->alloc;
    struct zr_str text;
    const struct zr_new_node node = {.path = path,
                                     .name = format == 3 ? ZR_DOC_V3 : ZR_DOC_GROUP,
                                     .text = &text,
                                     .format = format};
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    zr_str_init(&text, alloc);
    ZR_TRY(zr_group_text(&text, format, NULL, alloc, err));
    st = zr_node_write(store, &node, &e);
    if (st == ZARR_ERR_EXISTS) /* somebody was faster: as good */
        st = ZARR_OK;
    else if (st != ZARR_OK && err)
        *err = e;
out:
    zr_str_deinit(&text);
    return st;
}

/* From the nearest parent upwards until one is there; cut[] then holds the ends of the
 * missing. */
zarr_status zr_parents_create(zarr_store *store, const char *path, int32_t format,
                              zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(store)->alloc;
    size_t *cut = NULL, n = 0, cap = 0, end = strlen(path);
    char *parent = zr_strdup(alloc, path);
    bool missing = true;
    zarr_status st = ZARR_OK;

    if (!parent)
        ZR_TRY(zr_fail_memory(err, end + 1));
    while (end > 0 && missing) {
        end = zr_path_parent_bytes(parent);
        parent[end] = '\0';
        ZR_TRY(parent_is_missing(store, parent, &missing, err));
        if (!missing)
            break;
        ZR_TRY(zr_grow(alloc, &cut, &cap, n + 1, sizeof *cut, err));
        cut[n++] = end;
    }
    while (n > 0) {
        end = cut[--n];
        memcpy(parent, path, end);
        parent[end] = '\0';
        ZR_TRY(write_parent(store, parent, format, err));
    }
out:
    zr_free(alloc, cut);
    zr_free(alloc, parent);
    return st;
}

zarr_status zr_node_must_be_new(zarr_store *store, const char *path, zarr_error *err)
{
    struct zr_find where = {.store = store, .path = path};
    struct zr_found found;
    zarr_status st = ZARR_OK;

    where.limit = zr_store_context(store)->limits.consolidated_bytes;
    zr_found_init(&found, zr_store_context(store)->alloc);
    st = zr_node_find(&found, &where, err);
    if (st == ZARR_OK)
        st = zr_fail(err, ZARR_ERR_EXISTS, "there is a v%" PRId32 " %s already",
                     found.format, zr_kind_text(found.kind));
    else if (st == ZARR_ERR_NOT_FOUND)
        st = ZARR_OK;
    else if (found.format) /* a document that cannot be read is in the way, too */
        st = zr_prefix(err, ZARR_ERR_EXISTS, "there is a broken node already");
    zr_found_deinit(&found);
    return st;
}

/* ---- what may be overwritten --------------------------------------------- */

/* Keys that a deleted or unfinished array leaves: chunks by either key encoding, and
 * metadata that makes no node alone. */
static bool is_left_over(const char *key)
{
    bool digits = false;

    if (zr_streq(key, ZR_DOC_ATTRS) || zr_streq(key, ZR_DOC_CONSOLIDATED) ||
        zr_streq(key, "c"))
        return true;
    if (key[0] == 'c' && (key[1] == '/' || key[1] == '.'))
        key += 2;
    for (; *key; key++) {
        if (*key >= '0' && *key <= '9')
            digits = true;
        else if ((*key == '/' || *key == '.') && digits)
            digits = false;
        else
            return false;
    }
    return digits;
}

struct foreign {
    size_t skip; /* bytes of the path and its slash */
    struct zr_str name;
};

static int find_foreign(void *user, const zarr_store_item *item)
{
    struct foreign *f = user;

    if (strlen(item->key) <= f->skip || is_left_over(item->key + f->skip))
        return 0;
    zr_str_puts(&f->name, item->key + f->skip);
    return 1;
}

zarr_status zr_prefix_may_go(zarr_store *store, const char *path, zarr_error *err)
{
    struct foreign f = {.skip = *path ? strlen(path) + 1 : 0};
    zarr_status st = ZARR_OK;

    zr_str_init(&f.name, zr_store_context(store)->alloc);
    if (!zr_store_can(store, ZARR_STORE_CAP_LIST))
        goto out;
    ZR_TRY(zarr_store_list(store, path, ZARR_LIST_RECURSIVE, find_foreign, &f, err));
    ZR_TRY(zr_str_status(&f.name, err));
    if (f.name.bytes)
        st =
            zr_fail(err, ZARR_ERR_EXISTS,
                    "there is no array or group to replace, but other keys (\"%.200s\"), "
                    "which are not deleted",
                    zr_str_text(&f.name));
out:
    zr_str_deinit(&f.name);
    return st;
}

zarr_status zr_node_may_go(zarr_store *store, const char *path, bool *is_node,
                           zarr_error *err)
{
    struct zr_find where = {.store = store, .path = path};
    struct zr_found found;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    where.limit = zr_store_context(store)->limits.consolidated_bytes;
    zr_found_init(&found, zr_store_context(store)->alloc);
    st = zr_node_find(&found, &where, &e);
    *is_node = found.format != 0; /* a broken one can be replaced, too */
    zr_found_deinit(&found);
    if (*is_node)
        return ZARR_OK;
    if (st == ZARR_ERR_NOT_FOUND)
        return zr_prefix_may_go(store, path, err);
    if (err)
        *err = e;
    return st;
}

/* The documents first: half a node must not be taken for a node with missing chunks. Of a
 * link to another place only the link. */
zarr_status zr_node_erase(zarr_store *store, const char *path, zarr_error *err)
{
    static const char *const names[] = {ZR_DOC_V3, ZR_DOC_ARRAY, ZR_DOC_GROUP};
    struct zr_str key;
    zarr_error e = {0};
    bool link = false;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, zr_store_context(store)->alloc);
    ZR_TRY(zr_store_erase_link(store, path, &link, err));
    for (size_t i = 0; !link && i < ZR_COUNT(names); i++) {
        zr_path_key(&key, path, names[i]);
        ZR_TRY(zr_str_status(&key, err));
        st = zarr_store_erase(store, zr_str_text(&key), &e);
        if (st != ZARR_OK && st != ZARR_ERR_NOT_FOUND) {
            if (err)
                *err = e;
            goto out;
        }
    }
    if (!link)
        ZR_TRY(zr_store_erase_prefix(store, path, err));
out:
    zr_str_deinit(&key);
    return st;
}

static int note_item(void *user, const zarr_store_item *item)
{
    ZR_UNUSED(item);
    *(bool *)user = true;
    return 1;
}

/* Without a document, but with keys below and in no array: what a delete that failed left
 * behind. */
static zarr_status left_behind(zarr_store *store, char *path, bool *yes, zarr_error *err)
{
    uint32_t kind = ZARR_NODE_NONE;
    int32_t format = 0;
    zarr_status st = ZARR_OK;

    *yes = false;
    ZR_TRY(zarr_store_list(store, path, ZARR_LIST_DIRECTORY, note_item, yes, err));
    for (size_t i = strlen(path); *yes && i-- > 0;) {
        if (path[i] != '/')
            continue;
        path[i] = '\0';
        st = zarr_node_probe(store, path, &kind, &format, err);
        path[i] = '/';
        if (st != ZARR_OK)
            goto out;
        *yes = kind != ZARR_NODE_ARRAY;
    }
out:
    return st;
}

zarr_status zarr_node_delete(zarr_store *store, const char *path, zarr_error *err)
{
    bool found = true;
    const zarr_context *ctx = zr_store_context(store);
    uint32_t kind = ZARR_NODE_NONE;
    int32_t format = 0;
    char *normal = NULL;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_path_normal(&normal, ctx->alloc, path, &ctx->limits, err));
    /* A broken node can be deleted; one that the store cannot tell about cannot. */
    st = zarr_node_probe(store, normal, &kind, &format, &e);
    if (st != ZARR_OK && format == 0) {
        if (err)
            *err = e;
        goto out;
    }
    if (format == 0)
        ZR_TRY(left_behind(store, normal, &found, err));
    if (!found)
        ZR_TRY(
            zr_fail(err, ZARR_ERR_NOT_FOUND, "/%s: there is no array or group", normal));
    st = zr_node_erase(store, normal, err);
    if (st != ZARR_OK)
        zr_path_prefix(err, st, normal);
out:
    zr_free(ctx->alloc, normal);
    return st;
}
