/*
 * json/keys.c - checks whether two members of an object have the same key.
 * Implementations disagree about which of them counts, so such a document has two
 * meanings and is refused. In small objects all pairs are compared. Larger ones use a
 * hash set with the keyed hash of maps, so that no text costs more than linear time.
 * Thread class: solo.
 */
#include "json_int.h"

#include <string.h>

/* 120 comparisons, mostly of lengths only, cost about as much as 16 hashes. */
enum {
    PAIRS_MAX = 16
};

void zr_json_keys_init(struct zr_json_keys *k, const zarr_allocator *alloc)
{
    *k = (struct zr_json_keys){.alloc = alloc};
}

void zr_json_keys_deinit(struct zr_json_keys *k)
{
    zr_free(k->alloc, (void *)k->slots);
    k->slots = NULL;
    k->cap = 0;
}

static bool same_key(const struct zr_json *a, const struct zr_json *b)
{
    return a->key_bytes == b->key_bytes && a->key[0] == b->key[0] &&
           memcmp(a->key, b->key, a->key_bytes) == 0;
}

static const struct zr_json *check_pairs(const struct zr_json *object)
{
    for (const struct zr_json *b = object->u.children.first; b; b = b->next)
        for (const struct zr_json *a = object->u.children.first; a != b; a = a->next)
            if (same_key(a, b))
                return b;
    return NULL;
}

/* Makes at least two empty slots for each member. */
static zarr_status reserve_slots(struct zr_json_keys *k, size_t n, size_t *used,
                                 zarr_error *err)
{
    size_t cap = 64;

    while (cap / 2 < n)
        cap *= 2;
    if (cap > k->cap) {
        zr_free(k->alloc, (void *)k->slots);
        k->cap = 0;
        k->slots = zr_malloc(k->alloc, cap * sizeof *k->slots);
        if (!k->slots)
            return zr_fail_memory(err, cap * sizeof *k->slots);
        k->cap = cap;
    }
    memset((void *)k->slots, 0, cap * sizeof *k->slots);
    *used = cap;
    return ZARR_OK;
}

zarr_status zr_json_keys_check(struct zr_json_keys *k, const struct zr_json *object,
                               const struct zr_json **twice, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    size_t cap = 0;

    *twice = NULL;
    if (object->u.children.n <= PAIRS_MAX) {
        *twice = check_pairs(object);
        goto out;
    }
    ZR_TRY(reserve_slots(k, object->u.children.n, &cap, err));
    for (const struct zr_json *v = object->u.children.first; v && !*twice; v = v->next) {
        size_t at = (size_t)zr_map_hash(v->key, v->key_bytes) & (cap - 1);

        while (k->slots[at] && !same_key(k->slots[at], v))
            at = (at + 1) & (cap - 1);
        if (k->slots[at])
            *twice = v;
        k->slots[at] = v;
    }
out:
    return st;
}
