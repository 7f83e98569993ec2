/*
 * json/lookup.c - finds many members of one object. A search goes on where the one before
 * ended, so members in the same order cost one step each. If the orders differ in a large
 * object, an array of its members is sorted by key: searches that begin anew would be
 * quadratic in what a stranger's document has. Without memory for the array the searches
 * are slow, but right.
 * Thread class: solo; the object may be shared.
 */
#include "json_int.h"

#include <stdlib.h>
#include <string.h>

enum {
    STEPS_PER_MEMBER = 8 /* searches may take so many, and then the array is made */
};

static int lookup_order(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    if (a_bytes != b_bytes)
        return a_bytes < b_bytes ? -1 : 1;
    return memcmp(a, b, a_bytes);
}

static int lookup_compare(const void *x, const void *y)
{
    const struct zr_json *a = *(const struct zr_json *const *)x;
    const struct zr_json *b = *(const struct zr_json *const *)y;

    return lookup_order(a->key, a->key_bytes, b->key, b->key_bytes);
}

static void lookup_sort(struct zr_json_lookup *l)
{
    const size_t n = l->object->u.children.n;
    size_t i = 0;

    if (n <= SIZE_MAX / sizeof *l->sorted)
        l->sorted = zr_malloc(NULL, n * sizeof *l->sorted);
    if (!l->sorted)
        return;
    for (const struct zr_json *v = l->object->u.children.first; v; v = v->next)
        l->sorted[i++] = v;
    qsort((void *)l->sorted, n, sizeof *l->sorted, lookup_compare);
}

static const struct zr_json *lookup_bisect(const struct zr_json_lookup *l,
                                           const char *key, size_t bytes)
{
    size_t low = 0, high = l->object->u.children.n;

    while (low < high) {
        const size_t at = low + (high - low) / 2;
        const struct zr_json *v = l->sorted[at];
        const int order = lookup_order(key, bytes, v->key, v->key_bytes);

        if (order == 0)
            return v;
        if (order < 0)
            high = at;
        else
            low = at + 1;
    }
    return NULL;
}

const struct zr_json *zr_json_lookup_get(struct zr_json_lookup *l, const char *key,
                                         size_t bytes)
{
    const struct zr_json *from = l->hint ? l->hint : l->object->u.children.first;
    const struct zr_json *v = from;

    if (!l->sorted && l->steps / STEPS_PER_MEMBER > l->object->u.children.n) {
        l->steps = 0;
        lookup_sort(l);
    }
    if (l->sorted)
        return lookup_bisect(l, key, bytes);
    while (v && lookup_order(v->key, v->key_bytes, key, bytes) != 0) {
        l->steps++;
        v = v->next ? v->next : l->object->u.children.first;
        if (v == from)
            return NULL;
    }
    l->hint = v ? v->next : NULL;
    return v;
}

void zr_json_lookup_end(struct zr_json_lookup *l)
{
    zr_free(NULL, (void *)l->sorted);
    l->sorted = NULL;
}
