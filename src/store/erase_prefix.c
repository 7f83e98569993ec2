/*
 * store/erase_prefix.c - erases the keys below a prefix of a store that cannot do it
 * itself: lists a page of keys and erases them together, until there are none. So it
 * never holds all keys.
 * Thread class: any thread.
 */
#include "store/store_int.h"

#include <stdlib.h>
#include <string.h>

enum {
    ERASE_PAGE = 4096 /* keys that are listed before they are erased */
};

struct erase_keys {
    const zarr_allocator *alloc;
    struct zr_str text;
    const char **key;
    zarr_store_op *op;
    size_t n, cap, op_cap;
    size_t seen, skip; /* rows of this listing; how many of them are known to be gone */
    char *first;       /* key of the page before; NULL: this is the first page */
    zarr_status status;
    zarr_error *err;
};

static int erase_collect(void *user, const zarr_store_item *item)
{
    struct erase_keys *k = user;

    if (item->is_prefix || k->seen++ < k->skip)
        return 0;
    zr_str_append(&k->text, item->key, strlen(item->key) + 1);
    k->n++;
    k->status = zr_str_status(&k->text, k->err);
    return k->status != ZARR_OK || k->n == ERASE_PAGE;
}

static int deeper_first(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    int depth = 0;

    for (const char *p = x; *p != '\0'; p++)
        depth -= *p == '/';
    for (const char *p = y; *p != '\0'; p++)
        depth += *p == '/';
    return depth != 0 ? depth : strcmp(x, y);
}

/* Erases the keys of a page. *any: some were there. */
static zarr_status erase_page(zarr_store *s, struct erase_keys *k,
                              const zarr_cancel *cancel, bool *any, zarr_error *err)
{
    const char *at = zr_str_text(&k->text);

    *any = false;
    ZR_CHECK(zr_grow(k->alloc, &k->key, &k->cap, k->n, sizeof *k->key, err));
    ZR_CHECK(zr_grow(k->alloc, &k->op, &k->op_cap, k->n, sizeof *k->op, err));
    for (size_t i = 0; i < k->n; i++) {
        k->key[i] = at;
        at += strlen(at) + 1;
    }
    qsort(k->key, k->n, sizeof *k->key, deeper_first);
    for (size_t i = 0; i < k->n; i++)
        k->op[i] = (zarr_store_op){.verb = ZARR_STORE_ERASE,
                                   .flags = zr_key_kind(k->key[i]),
                                   .key = k->key[i],
                                   .cancel = cancel};
    ZR_CHECK(zr_store_run(s, k->op, k->n, err));
    for (size_t i = 0; i < k->n; i++)
        *any = *any || k->op[i].status == ZARR_OK;
    return ZARR_OK;
}

/* Whether the page begins with the same key as the one before. */
static zarr_status erase_compare(struct erase_keys *k, bool *is_same, zarr_error *err)
{
    const char *first = zr_str_text(&k->text);

    *is_same = k->first && strcmp(k->first, first) == 0;
    if (*is_same)
        return ZARR_OK;
    zr_free(k->alloc, k->first);
    k->first = zr_strdup(k->alloc, first);
    return k->first ? ZARR_OK : zr_fail_memory(err, strlen(first));
}

/* Erases page after page. A listing may show for long what is gone: such keys are
 * skipped, whether the store says that they are missing or confirms each ERASE. */
static zarr_status erase_pages(zarr_store *s, struct erase_keys *k, const char *prefix,
                               const zarr_cancel *cancel, zarr_error *err)
{
    bool any = false, is_same = false;

    k->skip = 0;
    do {
        k->n = k->seen = 0;
        zr_str_clear(&k->text);
        ZR_CHECK(
            zr_store_list(s, prefix, ZARR_LIST_RECURSIVE, erase_collect, k, cancel, err));
        ZR_CHECK(k->status);
        if (k->n == 0)
            return ZARR_OK;
        ZR_CHECK(erase_compare(k, &is_same, err));
        ZR_CHECK(erase_page(s, k, cancel, &any, err));
        if (!any || is_same)
            k->skip += k->n;
    } while (k->n == ERASE_PAGE);
    return ZARR_OK;
}

zarr_status zr_erase_by_listing(zarr_store *s, const char *prefix,
                                const zarr_cancel *cancel, zarr_error *err)
{
    struct erase_keys k = {.alloc = s->env.alloc, .err = err};
    zarr_status st = ZARR_OK;

    zr_str_init(&k.text, k.alloc);
    ZR_TRY(erase_pages(s, &k, prefix, cancel, err));
    if (k.skip > 0) /* the listing may have caught up: then other keys were skipped */
        ZR_TRY(erase_pages(s, &k, prefix, cancel, err));
out:
    zr_free(k.alloc, k.first);
    zr_free(k.alloc, k.key);
    zr_free(k.alloc, k.op);
    zr_str_deinit(&k.text);
    return st;
}
