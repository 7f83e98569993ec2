/*
 * codecs/shuffle/shuffle.c - numcodecs' byte shuffle. It stores all first bytes, then all
 * second bytes, and so on. Elements of 2, 4, 8 and 16 bytes go through vector registers.
 * Other widths, and the last elements, go through a loop over tiles. A tile is small
 * enough that source and destination stay in the nearest cache.
 * Thread class: plain functions.
 */
#include "codecs/shuffle/shuffle.h"

enum {
    SHUFFLE_TILE_BYTES = 8192
};

/* Handles the elements `from` to n - 1, which the vector loop has left. */
static void shuffle_tail(uint8_t *out, const uint8_t *in, size_t from, size_t n,
                         size_t width)
{
    const size_t tile = ZR_MAX((size_t)SHUFFLE_TILE_BYTES / width, (size_t)64);

    for (size_t t = from; t < n; t += tile) {
        const size_t end = n - t < tile ? n : t + tile;

        for (size_t b = 0; b < width; b++)
            for (size_t i = t; i < end; i++)
                out[b * n + i] = in[i * width + b];
    }
}

static void unshuffle_tail(uint8_t *out, const uint8_t *in, size_t from, size_t n,
                           size_t width)
{
    const size_t tile = ZR_MAX((size_t)SHUFFLE_TILE_BYTES / width, (size_t)64);

    for (size_t t = from; t < n; t += tile) {
        const size_t end = n - t < tile ? n : t + tile;

        for (size_t b = 0; b < width; b++)
            for (size_t i = t; i < end; i++)
                out[i * width + b] = in[b * n + i];
    }
}

void zr_shuffle(uint8_t *out, const uint8_t *in, size_t n, size_t width)
{
    size_t done = 0;

#if defined(__x86_64__)
    done = zr_shuffle_sse2(out, in, n, width);
#endif
    shuffle_tail(out, in, done, n, width);
}

void zr_unshuffle(uint8_t *out, const uint8_t *in, size_t n, size_t width)
{
    size_t done = 0;

#if defined(__x86_64__)
    done = zr_unshuffle_sse2(out, in, n, width);
#endif
    unshuffle_tail(out, in, done, n, width);
}
