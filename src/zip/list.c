/*
 * zip/list.c - lists the keys of an archive. The first listing sorts them, so that a
 * prefix is a range of the order. The rows are copied, because a caller that gets one may
 * write.
 * Thread class: solo.
 */
#include "zip/zip_int.h"

#include <stdlib.h>
#include <string.h>

struct zip_sort_item {
    const char *key;
    uint32_t i;
};

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct zip_sort_item *)a)->key,
                  ((const struct zip_sort_item *)b)->key);
}

static void fill_sort_items(const struct zr_zip_table *t, struct zip_sort_item *item,
                            bool *sorted)
{
    size_t n = 0;

    *sorted = true;
    for (size_t i = 0; i < t->n; i++) {
        if (!(t->member[i].flags & ZR_ZIP_HAS_KEY))
            continue;
        item[n] = (struct zip_sort_item){zr_zip_table_key(t, &t->member[i]), (uint32_t)i};
        if (n > 0 && *sorted && by_key(&item[n - 1], &item[n]) > 0)
            *sorted = false;
        n++;
    }
}

static zarr_status sort_by_key(struct zr_zip_table *t, zarr_error *err)
{
    struct zip_sort_item *item = NULL;
    bool sorted = false;
    zarr_status st = ZARR_OK;

    if (t->sorted)
        goto out;
    item = zr_calloc(t->alloc, t->n_keys, sizeof *item);
    t->sorted = zr_calloc(t->alloc, t->n_keys, sizeof *t->sorted);
    if (!item || !t->sorted) {
        zr_free(t->alloc, t->sorted);
        t->sorted = NULL;
        ZR_FAIL_MEMORY(err, t->n_keys * sizeof *item);
    }
    fill_sort_items(t, item, &sorted);
    if (!sorted)
        qsort(item, t->n_keys, sizeof *item, by_key);
    for (size_t i = 0; i < t->n_keys; i++)
        t->sorted[i] = item[i].i;
out:
    zr_free(t->alloc, item);
    return st;
}

static const char *key_at(const struct zr_zip_table *t, const uint32_t *order, size_t i)
{
    return zr_zip_table_key(t, &t->member[order[i]]);
}

/* The first key from `from` on that is not before text. */
static size_t find_bound(const struct zr_zip_table *t, const uint32_t *order, size_t from,
                         const char *text)
{
    size_t to = t->n_keys;

    while (from < to) {
        const size_t mid = from + (to - from) / 2;

        if (strcmp(key_at(t, order, mid), text) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

struct zip_listing {
    struct zr_zip_table *t;
    size_t i, next;            /* a key, and the first key after its row */
    struct zr_str start, text; /* the prefix with its slash; the row's prefix */
    bool deep;
    struct zr_zip_rows *rows;
};

static zarr_status add_row(struct zr_zip_rows *rows, const char *key, uint64_t bytes,
                           zarr_error *err)
{
    ZR_CHECK(zr_grow(rows->text.alloc, &rows->row, &rows->cap, rows->n + 1,
                     sizeof *rows->row, err));
    rows->row[rows->n++] = (struct zr_zip_row){bytes, rows->text.bytes};
    zr_str_append(&rows->text, key, strlen(key) + 1);
    return zr_str_status(&rows->text, err);
}

/* Makes the row of key i: the key, or the prefix one level below `start` that it has. */
static zarr_status make_row(struct zip_listing *l, zarr_error *err)
{
    const uint32_t *order = l->t->sorted;
    const struct zr_zip_member *m = &l->t->member[order[l->i]];
    const char *key = key_at(l->t, order, l->i);
    const char *slash = l->deep ? NULL : strchr(key + l->start.bytes, '/');

    l->next = l->i + 1;
    if (!slash)
        return add_row(l->rows, key, m->bytes, err);
    zr_str_clear(&l->text);
    zr_str_append(&l->text, key, (size_t)(slash - key));
    zr_str_putc(&l->text, '/' + 1); /* comes after all keys below the prefix */
    if (l->text.failed)
        return zr_str_status(&l->text, err);
    l->next = find_bound(l->t, order, l->i, l->text.ptr);
    l->text.ptr[l->text.bytes - 1] = '\0';
    return add_row(l->rows, l->text.ptr, UINT64_MAX, err);
}

zarr_status zr_zip_table_list(struct zr_zip_table *t, const char *prefix, bool deep,
                              struct zr_zip_rows *rows, zarr_error *err)
{
    struct zip_listing l = {.t = t, .deep = deep, .rows = rows};
    zarr_status st = ZARR_OK;

    zr_str_init(&l.start, t->alloc);
    zr_str_init(&l.text, t->alloc);
    ZR_TRY(sort_by_key(t, err));
    if (*prefix)
        zr_str_printf(&l.start, "%s/", prefix);
    ZR_TRY(zr_str_status(&l.start, err));
    for (l.i = find_bound(t, t->sorted, 0, zr_str_text(&l.start));
         l.i < t->n_keys &&
         zr_starts_with(key_at(t, t->sorted, l.i), zr_str_text(&l.start));
         l.i = l.next)
        ZR_TRY(make_row(&l, err));
out:
    zr_str_deinit(&l.start);
    zr_str_deinit(&l.text);
    return st;
}
