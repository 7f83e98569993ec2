/*
 * node/erase.c - erases a node that is overwritten, also a broken one or the remains of
 * an array, but never files that do not belong to Zarr.
 * Thread class: plain functions.
 */
#include "node/node_int.h"

#include <string.h>

/* Whether a deleted or unfinished array leaves such a key: chunks by either key encoding,
 * and metadata that alone makes no node. */
static bool is_left_over(const char *key)
{
    bool digits = false;

    if (zr_streq(key, ZR_DOC_ATTRS) || zr_streq(key, ZR_DOC_CONSOLIDATED) ||
        zr_streq(key, ZR_DOC_LEFTOVERS) || zr_streq(key, "c"))
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
    size_t skip; /* length of the path and its slash */
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

    zr_found_init(&found, zr_store_context(store)->alloc);
    st = zr_node_find(&found, &where, &e);
    *is_node = found.format != 0; /* a broken node can be replaced, too */
    zr_found_deinit(&found);
    if (*is_node)
        return ZARR_OK;
    if (st == ZARR_ERR_NOT_FOUND)
        return zr_prefix_may_go(store, path, err);
    return zr_pass(err, st, &e);
}

/* Erases the documents first, so that a node erased in part does not look like a node
 * with missing chunks. If path is a link to another place, erases only the link. */
zarr_status zr_node_erase(zarr_store *store, const char *path, zarr_error *err)
{
    static const char *const names[] = {ZR_DOC_V3, ZR_DOC_ARRAY, ZR_DOC_GROUP};
    bool link = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_store_erase_link(store, path, &link, err));
    if (link)
        goto out;
    for (size_t i = 0; i < ZR_COUNT(names); i++)
        ZR_TRY(zr_doc_erase(store, path, names[i], err));
    ZR_TRY(zr_store_erase_prefix(store, path, err));
out:
    return st;
}
