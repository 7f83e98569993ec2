/*
 * base/map.c - text to pointer, in the order of insertion: registries, attributes,
 * members of a group. The items are a plain array in that order. From nine items on a
 * table with open addressing (index + 1; 0: empty) finds them faster than a scan.
 * Removing shifts the array and rebuilds the table, but is rare. Keys come from hostile
 * metadata. So the hash uses a number drawn per process (SipHash-1-3), and an attacker
 * cannot choose keys that all collide. The order of items, and so all output, never
 * depends on the hash.
 * Thread class: solo; frozen once filled (lookups write nothing).
 */
#include "base/base.h"

#include <string.h>

enum {
    MAP_SCAN_MAX = 8
};

static uint64_t map_seed(void)
{
    static _Atomic uint64_t seed;
    uint64_t s = atomic_load_explicit(&seed, memory_order_relaxed), none = 0;

    if (s)
        return s;
    s = zr_random_u64() | 1;
    return atomic_compare_exchange_strong(&seed, &none, s) ? s : none;
}

#define MAP_ROTL(v, by) ((v) << (by) | (v) >> (64 - (by)))

static inline void map_sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = MAP_ROTL(v[1], 13) ^ v[0];
    v[0] = MAP_ROTL(v[0], 32);
    v[2] += v[3];
    v[3] = MAP_ROTL(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = MAP_ROTL(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = MAP_ROTL(v[1], 17) ^ v[2];
    v[2] = MAP_ROTL(v[2], 32);
}

static inline void map_sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    map_sip_round(v);
    v[0] ^= word;
}

uint64_t zr_map_hash(const char *key, size_t n)
{
    const uint64_t k0 = map_seed(), k1 = k0 * UINT64_C(0x9E3779B97F4A7C15);
    uint64_t v[4] = {
        k0 ^ UINT64_C(0x736F6D6570736575),
        k1 ^ UINT64_C(0x646F72616E646F6D),
        k0 ^ UINT64_C(0x6C7967656E657261),
        k1 ^ UINT64_C(0x7465646279746573),
    };
    uint64_t last = (uint64_t)n << 56;
    size_t i = 0;

    for (; n - i >= 8; i += 8)
        map_sip_word(v, zr_load_le64(key + i));
    for (unsigned shift = 0; i < n; i++, shift += 8)
        last |= (uint64_t)(uint8_t)key[i] << shift;
    map_sip_word(v, last);
    v[2] ^= 0xFF;
    map_sip_round(v);
    map_sip_round(v);
    map_sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void zr_map_init(struct zr_map *m, const zarr_allocator *alloc,
                 void (*free_value)(const zarr_allocator *, void *))
{
    *m = (struct zr_map){.alloc = alloc, .free_value = free_value};
}

static void map_free_value(const struct zr_map *m, void *value)
{
    if (m->free_value && value)
        m->free_value(m->alloc, value);
}

void zr_map_deinit(struct zr_map *m)
{
    for (size_t i = 0; i < m->n; i++) {
        zr_free(m->alloc, m->items[i].key);
        map_free_value(m, m->items[i].value);
    }
    zr_free(m->alloc, m->items);
    zr_free(m->alloc, m->slots);
    zr_map_init(m, m->alloc, m->free_value);
}

static bool map_is_key(const struct zr_map_item *it, uint64_t hash, const char *key,
                       size_t n)
{
    return it->hash == hash && it->key_bytes == n && memcmp(it->key, key, n) == 0;
}

/* NULL: not there. */
static struct zr_map_item *map_find(const struct zr_map *m, uint64_t hash,
                                    const char *key, size_t n)
{
    if (m->n_slots == 0) {
        for (size_t i = 0; i < m->n; i++)
            if (map_is_key(&m->items[i], hash, key, n))
                return &m->items[i];
        return NULL;
    }
    for (size_t at = (size_t)hash & (m->n_slots - 1); m->slots[at];
         at = (at + 1) & (m->n_slots - 1)) {
        struct zr_map_item *it = &m->items[m->slots[at] - 1];

        if (map_is_key(it, hash, key, n))
            return it;
    }
    return NULL;
}

void *zr_map_get_n(const struct zr_map *m, const char *key, size_t n)
{
    const struct zr_map_item *it = m->n ? map_find(m, zr_map_hash(key, n), key, n) : NULL;

    return it ? it->value : NULL;
}

void *zr_map_get(const struct zr_map *m, const char *key)
{
    return zr_map_get_n(m, key, strlen(key));
}

static void map_enter(struct zr_map *m, size_t index)
{
    size_t at = (size_t)m->items[index].hash & (m->n_slots - 1);

    while (m->slots[at])
        at = (at + 1) & (m->n_slots - 1);
    m->slots[at] = (uint32_t)(index + 1);
}

static void map_refill(struct zr_map *m)
{
    if (m->n_slots)
        memset(m->slots, 0, m->n_slots * sizeof *m->slots);
    for (size_t i = 0; m->n_slots && i < m->n; i++)
        map_enter(m, i);
}

/* Makes room for one more item; the table is at most three quarters full. Changes nothing
 * if it fails. */
static zarr_status map_make_room(struct zr_map *m, zarr_error *err)
{
    const size_t n_slots = m->n_slots ? m->n_slots * 2 : 4 * (size_t)MAP_SCAN_MAX;
    uint32_t *slots;

    if (m->n >= UINT32_MAX / 4)
        return zr_fail(err, ZARR_ERR_LIMIT, "a map is full: %zu keys", m->n);
    if (m->n == m->cap) {
        zarr_status st =
            zr_grow(m->alloc, &m->items, &m->cap, m->n + 1, sizeof *m->items, err);
        if (st != ZARR_OK)
            return st;
    }
    if (m->n < MAP_SCAN_MAX || m->n + 1 <= m->n_slots / 4 * 3)
        return ZARR_OK;
    slots = zr_calloc(m->alloc, n_slots, sizeof *slots);
    if (!slots)
        return zr_fail_memory(err, (uint64_t)n_slots * sizeof *slots);
    zr_free(m->alloc, m->slots);
    m->slots = slots;
    m->n_slots = n_slots;
    map_refill(m);
    return ZARR_OK;
}

zarr_status zr_map_put_n(struct zr_map *m, const char *key, size_t n, void *value,
                         zarr_error *err)
{
    const uint64_t hash = zr_map_hash(key, n);
    struct zr_map_item *it = map_find(m, hash, key, n);
    zarr_status st;
    char *copy;

    if (it) {
        if (it->value != value)
            map_free_value(m, it->value);
        it->value = value;
        return ZARR_OK;
    }
    st = map_make_room(m, err);
    if (st != ZARR_OK)
        return st;
    copy = n < SIZE_MAX ? zr_malloc(m->alloc, n + 1) : NULL;
    if (!copy)
        return zr_fail_memory(err, (uint64_t)n + 1);
    memcpy(copy, key, n);
    copy[n] = '\0';
    m->items[m->n++] =
        (struct zr_map_item){.key = copy, .key_bytes = n, .value = value, .hash = hash};
    if (m->n_slots)
        map_enter(m, m->n - 1);
    return ZARR_OK;
}

zarr_status zr_map_put(struct zr_map *m, const char *key, void *value, zarr_error *err)
{
    return zr_map_put_n(m, key, strlen(key), value, err);
}

bool zr_map_remove(struct zr_map *m, const char *key)
{
    const size_t n = strlen(key);
    struct zr_map_item *it = map_find(m, zr_map_hash(key, n), key, n);

    if (!it)
        return false;
    zr_free(m->alloc, it->key);
    map_free_value(m, it->value);
    m->n--;
    memmove(it, it + 1, (size_t)(m->items + m->n - it) * sizeof *it);
    map_refill(m);
    return true;
}

static size_t map_find_slot(const struct zr_map *m, size_t index)
{
    size_t at = (size_t)m->items[index].hash & (m->n_slots - 1);

    while (m->slots[at] != index + 1)
        at = (at + 1) & (m->n_slots - 1);
    return at;
}

/* Empties a slot. Items behind it that could not have their own slot move up, so that no
 * search ends too early. */
static void map_empty_slot(struct zr_map *m, size_t hole)
{
    const size_t mask = m->n_slots - 1;

    for (size_t at = (hole + 1) & mask; m->slots[at]; at = (at + 1) & mask) {
        const size_t home = (size_t)m->items[m->slots[at] - 1].hash & mask;

        if (((at - home) & mask) >= ((at - hole) & mask)) {
            m->slots[hole] = m->slots[at];
            hole = at;
        }
    }
    m->slots[hole] = 0;
}

bool zr_map_remove_unordered(struct zr_map *m, const char *key)
{
    const size_t n = strlen(key);
    struct zr_map_item *it = map_find(m, zr_map_hash(key, n), key, n);
    const size_t last = m->n - 1;

    if (!it)
        return false;
    if (m->n_slots) {
        map_empty_slot(m, map_find_slot(m, (size_t)(it - m->items)));
        if (it != m->items + last)
            m->slots[map_find_slot(m, last)] = (uint32_t)(it - m->items + 1);
    }
    zr_free(m->alloc, it->key);
    map_free_value(m, it->value);
    *it = m->items[last];
    m->n--;
    return true;
}
