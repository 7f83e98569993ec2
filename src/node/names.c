/*
 * node/names.c - names and keys below a path, collected from the store's listing and
 * sorted, because a store may list in any order and users should see one order. The texts
 * are in an arena. The limit listing_keys bounds the cost of a store with too many keys.
 * Thread class: solo.
 */
#include "node/node_int.h"

#include <stdlib.h>
#include <string.h>

void zr_names_init(struct zr_names *names, const zarr_allocator *alloc)
{
    *names = (struct zr_names){.alloc = alloc};
    zr_arena_init(&names->arena, alloc);
}

void zr_names_deinit(struct zr_names *names)
{
    zr_free(names->alloc, names->item);
    zr_arena_deinit(&names->arena);
    zr_names_init(names, names->alloc);
}

struct names_listing {
    struct zr_names *names;
    size_t skip; /* length of the path and its slash */
    bool prefixes;
    uint64_t limit;
    zarr_status st;
    zarr_error *err;
};

zarr_status zr_names_add(struct zr_names *names, const char *name, uint64_t limit,
                         zarr_error *err)
{
    char *copy = NULL;

    if (names->n >= limit)
        return zr_fail_limit(err, "listing_keys", limit,
                             "more than %" PRIu64 " names in a listing", limit);
    ZR_CHECK(zr_grow(names->alloc, &names->item, &names->cap, names->n + 1,
                     sizeof *names->item, err));
    copy = zr_arena_strndup(&names->arena, name, strlen(name));
    if (!copy)
        return zr_fail_memory(err, strlen(name));
    names->item[names->n++] = copy;
    return ZARR_OK;
}

static int on_listed_name(void *user, const zarr_store_item *item)
{
    struct names_listing *l = user;

    l->st = zr_cancel_check(l->names->cancel, l->err);
    if (l->st != ZARR_OK)
        return 1;
    if (l->prefixes != (item->is_prefix != 0) || strlen(item->key) <= l->skip)
        return 0;
    l->names->n_linked += item->is_linked != 0;
    l->st = zr_names_add(l->names, item->key + l->skip, l->limit, l->err);
    return l->st != ZARR_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_keys(const void *a, const void *b)
{
    return zr_path_compare(*(const char *const *)a, *(const char *const *)b);
}

size_t zr_names_find(const struct zr_names *names, const char *key)
{
    const char **at = names->n > 0 ? bsearch(&key, names->item, names->n,
                                             sizeof *names->item, compare_keys)
                                   : NULL;

    return at ? (size_t)(at - names->item) : names->n;
}

/* An application's store may report a prefix once for each key below it. */
static void drop_repeats(struct zr_names *names)
{
    size_t n = 1;

    for (size_t i = 1; i < names->n; i++)
        if (!zr_streq(names->item[i], names->item[n - 1]))
            names->item[n++] = names->item[i];
    names->n = n;
}

static void names_sort(struct zr_names *names, bool prefixes)
{
    if (names->n < 2)
        return;
    qsort(names->item, names->n, sizeof *names->item,
          prefixes ? compare_names : compare_keys);
    drop_repeats(names);
}

void zr_names_sort_keys(struct zr_names *names)
{
    names_sort(names, false);
}

static zarr_status names_list(struct zr_names *names, zarr_store *store, const char *path,
                              bool prefixes, zarr_error *err)
{
    struct names_listing l = {
        .names = names,
        .skip = *path ? strlen(path) + 1 : 0,
        .prefixes = prefixes,
        .limit = zr_store_context(store)->limits.listing_keys,
        .err = err,
    };
    zarr_status st =
        zr_store_list(store, path, prefixes ? ZARR_LIST_DIRECTORY : ZARR_LIST_RECURSIVE,
                      on_listed_name, &l, names->cancel, err);

    if (st == ZARR_OK)
        st = l.st;
    names_sort(names, prefixes);
    return st;
}

zarr_status zr_names_below(struct zr_names *names, zarr_store *store, const char *path,
                           zarr_error *err)
{
    return names_list(names, store, path, true, err);
}

zarr_status zr_names_keys(struct zr_names *names, zarr_store *store, const char *path,
                          zarr_error *err)
{
    return names_list(names, store, path, false, err);
}
