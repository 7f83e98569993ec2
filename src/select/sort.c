/*
 * select/sort.c - a stable order of number tuples, for putting coordinates into chunks
 * and for finding repeats. It is a radix sort by bytes, least significant byte first,
 * that skips every byte in which all keys agree. Chunk numbers are small, so one or two
 * passes are usually enough. Coordinates that are already in order, the common case, are
 * recognised and not moved.
 * Thread class: solo.
 */
#include "select/select_int.h"

#include <string.h>

zarr_status zr_nums_need(struct zr_nums *v, const zarr_allocator *alloc, uint64_t n,
                         uint64_t per, zarr_error *err)
{
    uint64_t all = 0;
    size_t need = 0;

    if (!zr_mul(n, per, &all) || !zr_fits(all, &need) || need > SIZE_MAX / sizeof *v->ptr)
        return zr_fail_memory(err, UINT64_MAX);
    if (need <= v->cap)
        return ZARR_OK;
    return zr_grow(alloc, &v->ptr, &v->cap, need, sizeof *v->ptr, err);
}

void zr_nums_deinit(struct zr_nums *v, const zarr_allocator *alloc)
{
    zr_free(alloc, v->ptr);
    *v = (struct zr_nums){0};
}

void zr_sorter_deinit(struct zr_sorter *s)
{
    zr_nums_deinit(&s->keys, s->alloc);
    zr_nums_deinit(&s->order, s->alloc);
    zr_nums_deinit(&s->scratch, s->alloc);
    zr_nums_deinit(&s->bits, s->alloc);
}

int zr_keys_compare(const uint64_t *a, const uint64_t *b, size_t words)
{
    for (size_t w = 0; w < words; w++)
        if (a[w] != b[w])
            return a[w] < b[w] ? -1 : 1;
    return 0;
}

static bool keys_are_in_order(const uint64_t *keys, uint64_t n, size_t words)
{
    for (uint64_t i = 1; i < n; i++)
        if (zr_keys_compare(keys + (i - 1) * words, keys + i * words, words) > 0)
            return false;
    return true;
}

/* Sorts the order `from` by one byte of one word of the keys. The result is `to`. */
static void radix_pass(uint64_t *to, const uint64_t *from, uint64_t n,
                       const uint64_t *word, size_t words, unsigned shift)
{
    uint64_t at[256] = {0};
    uint64_t sum = 0;

    for (uint64_t i = 0; i < n; i++)
        at[word[i * words] >> shift & 0xff]++;
    for (size_t b = 0; b < 256; b++) {
        uint64_t count = at[b];
        at[b] = sum;
        sum += count;
    }
    for (uint64_t i = 0; i < n; i++)
        to[at[word[from[i] * words] >> shift & 0xff]++] = from[i];
}

/* The bits in which the keys differ in one word. A byte without such bits needs no
 * pass. */
static uint64_t word_diff(const uint64_t *word, uint64_t n, size_t words)
{
    uint64_t diff = 0;

    for (uint64_t i = 1; i < n; i++)
        diff |= word[i * words] ^ word[0];
    return diff;
}

static void radix_sort(struct zr_sorter *s, uint64_t n, size_t words)
{
    for (uint64_t i = 0; i < n; i++)
        s->order.ptr[i] = i;
    for (size_t w = words; w-- > 0;) {
        const uint64_t *word = s->keys.ptr + w;
        uint64_t diff = word_diff(word, n, words);
        for (unsigned shift = 0; shift < 64; shift += 8) {
            if ((diff >> shift & 0xff) == 0)
                continue;
            radix_pass(s->scratch.ptr, s->order.ptr, n, word, words, shift);
            struct zr_nums swap = s->order;
            s->order = s->scratch;
            s->scratch = swap;
        }
    }
}

zarr_status zr_sorter_sort(struct zr_sorter *s, uint64_t n, size_t words, zarr_error *err)
{
    s->sorted = n < 2 || keys_are_in_order(s->keys.ptr, n, words);
    if (s->sorted)
        return ZARR_OK;
    ZR_CHECK(zr_nums_need(&s->order, s->alloc, n, 1, err));
    ZR_CHECK(zr_nums_need(&s->scratch, s->alloc, n, 1, err));
    radix_sort(s, n, words);
    return ZARR_OK;
}
