/*
 * store/memory/key_order.c - the keys of the memory store in order: a skip list through
 * the nodes of the table. So a listing costs as much as it tells, not as much as the
 * store has. The heights of nodes come from their hash, which no caller can predict.
 * Thread class: called under the table's mutex.
 */
#include "store/memory/memory_int.h"

#include <string.h>

/* Each node is one higher than 1 with probability 1/4, one more with 1/16, ... */
static unsigned order_height(uint64_t hash)
{
    unsigned height = 1;

    for (hash >>= 16; height < ZR_MEMORY_HEIGHT && (hash & 3) == 0; hash >>= 2)
        height++;
    return height;
}

struct zr_memory_node *zr_memory_node_new(const zarr_allocator *alloc, uint64_t hash,
                                          size_t key_bytes, zarr_error *err)
{
    const unsigned height = order_height(hash);
    const size_t head =
        offsetof(struct zr_memory_node, after) + height * sizeof(struct zr_memory_node *);
    struct zr_memory_node *node = zr_malloc(alloc, head + key_bytes);

    if (!node) {
        zr_fail_memory(err, head + key_bytes);
        return NULL;
    }
    memset(node, 0, head);
    node->hash = hash;
    node->height = height;
    node->key = (char *)node + head;
    return node;
}

/* Sets link[i] to the place of the pointer, on level i, to the first node whose key is
 * not before `key` and the text after it. */
static void order_find(struct zr_memory_table *t, const char *key, const char *after,
                       struct zr_memory_node **link[ZR_MEMORY_HEIGHT])
{
    const size_t n = strlen(key);
    struct zr_memory_node **level = t->locked.first;

    link[0] =
        &t->locked.first[0]; /* the height is at least 1; an analyzer cannot see it */
    for (unsigned i = t->locked.height; i-- > 0;) {
        for (;;) {
            const struct zr_memory_node *node = level[i];
            int order = node ? strncmp(node->key, key, n) : 1;

            if (order == 0)
                order = strcmp(node->key + n, after);
            if (order >= 0)
                break;
            level = level[i]->after;
        }
        link[i] = &level[i];
    }
}

void zr_memory_order_add(struct zr_memory_table *t, struct zr_memory_node *node)
{
    struct zr_memory_node **link[ZR_MEMORY_HEIGHT];

    if (t->locked.height < node->height)
        t->locked.height = node->height;
    order_find(t, node->key, "", link);
    for (unsigned i = 0; i < node->height; i++) {
        node->after[i] = *link[i];
        *link[i] = node;
    }
}

void zr_memory_order_remove(struct zr_memory_table *t, struct zr_memory_node *node)
{
    struct zr_memory_node **link[ZR_MEMORY_HEIGHT];

    order_find(t, node->key, "", link);
    for (unsigned i = 0; i < node->height && i < t->locked.height; i++)
        *link[i] = node->after[i];
}

struct zr_memory_node *zr_memory_order_below(struct zr_memory_table *t,
                                             const char *prefix)
{
    struct zr_memory_node **link[ZR_MEMORY_HEIGHT];

    if (*prefix == '\0')
        return t->locked.first[0];
    order_find(t, prefix, "/", link);
    return *link[0] && zr_key_is_below((*link[0])->key, prefix) ? *link[0] : NULL;
}

/* ---- listing ---- */

static zarr_status order_row(struct zr_memory_list *x, const char *key, size_t n,
                             uint64_t bytes, zarr_error *err)
{
    ZR_CHECK(zr_grow(x->text.alloc, &x->row, &x->cap, x->n + 1, sizeof *x->row, err));
    x->row[x->n++] = (struct zr_memory_row){.bytes = bytes};
    zr_str_append(&x->text, key, n);
    zr_str_append(&x->text, "", 1);
    return ZARR_OK;
}

/* The first node after all that is below a prefix. */
static struct zr_memory_node *order_after(struct zr_memory_table *t, const char *prefix)
{
    static const char after_slash[] = {'/' + 1, '\0'};
    struct zr_memory_node **link[ZR_MEMORY_HEIGHT];

    order_find(t, prefix, after_slash, link);
    return *link[0];
}

/* The first node of the next page. */
static struct zr_memory_node *order_begin(struct zr_memory_table *t, const char *prefix,
                                          const struct zr_memory_list *x)
{
    const char *last = zr_str_text(&x->last);
    struct zr_memory_node **link[ZR_MEMORY_HEIGHT];

    if (!x->has_last)
        return zr_memory_order_below(t, prefix);
    if (x->last_is_prefix)
        return order_after(t, last);
    order_find(t, last, "", link);
    return *link[0] && strcmp((*link[0])->key, last) == 0 ? (*link[0])->after[0]
                                                          : *link[0];
}

static zarr_status order_collect(struct zr_memory_table *t, const char *prefix, bool deep,
                                 struct zr_memory_list *x, zarr_error *err)
{
    const size_t skip = *prefix ? strlen(prefix) + 1 : 0;
    struct zr_memory_node *node = order_begin(t, prefix, x);

    while (node && zr_key_is_below(node->key, prefix) && x->n < ZR_MEMORY_PAGE) {
        const size_t n = skip + strcspn(node->key + skip, deep ? "" : "/");

        if (node->key[n] == '\0') {
            ZR_CHECK(order_row(x, node->key, n, node->value->mem.bytes, err));
            node = node->after[0];
            continue;
        }
        ZR_CHECK(order_row(x, node->key, n, UINT64_MAX, err));
        x->row[x->n - 1].is_prefix = true;
        ZR_CHECK(zr_str_status(&x->text, err));
        node = order_after(t, x->text.ptr + x->text.bytes - n - 1);
    }
    return zr_str_status(&x->text, err);
}

void zr_memory_list_init(struct zr_memory_list *x, const zarr_allocator *alloc)
{
    *x = (struct zr_memory_list){.row = NULL};
    zr_str_init(&x->text, alloc);
    zr_str_init(&x->last, alloc);
}

/* Remembers the last row of the page that was told. */
static zarr_status order_turn_page(struct zr_memory_list *x, zarr_error *err)
{
    if (x->n > 0) {
        x->has_last = true;
        x->last_is_prefix = x->row[x->n - 1].is_prefix;
        zr_str_clear(&x->last);
        zr_str_puts(&x->last, x->row[x->n - 1].key);
    }
    x->n = 0;
    zr_str_clear(&x->text);
    return zr_str_status(&x->last, err);
}

zarr_status zr_memory_table_list(struct zr_memory_table *t, const char *prefix, bool deep,
                                 struct zr_memory_list *out, zarr_error *err)
{
    const char *at;
    zarr_status st = order_turn_page(out, err);

    if (st != ZARR_OK)
        return st;
    zr_mutex_lock(&t->locked.mutex);
    st = order_collect(t, prefix, deep, out, err);
    zr_mutex_unlock(&t->locked.mutex);
    if (st != ZARR_OK || out->n == 0)
        return st;
    at = zr_str_text(&out->text); /* the text does not move any more */
    for (size_t i = 0; i < out->n; i++) {
        out->row[i].key = at;
        at += strlen(at) + 1;
    }
    return st;
}

void zr_memory_list_deinit(struct zr_memory_list *x)
{
    zr_free(x->text.alloc, x->row);
    zr_str_deinit(&x->text);
    zr_str_deinit(&x->last);
}
