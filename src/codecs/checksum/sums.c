/*
 * codecs/checksum/sums.c - two checksums of HDF5 that none of our libraries has.
 * fletcher32 follows HDF5: it adds big-endian words of 16 bits. An odd byte at the end is
 * the high byte of a word. Carries are added back instead of computing modulo 65535, so
 * 0xFFFF does not become 0. jenkins_lookup3 is Bob Jenkins' public domain hash lookup3,
 * hashlittle(). It mixes three words after each twelve bytes, and in another way at the
 * end.
 * Thread class: plain functions.
 */
#include "codecs/checksum/checksum.h"

#include <string.h>

/* ---- fletcher32 ------------------------------------------------------------------- */

enum {
    FLETCHER_RUN = 360 /* the most words that the sums can take without overflow */
};

static uint32_t fletcher_fold(uint32_t sum)
{
    return (sum & 0xFFFF) + (sum >> 16);
}

uint32_t zr_fletcher32(const uint8_t *p, size_t n)
{
    uint32_t sum1 = 0, sum2 = 0;
    size_t words = n / 2;

    while (words > 0) {
        const size_t run = ZR_MIN(words, (size_t)FLETCHER_RUN);

        for (size_t i = 0; i < run; i++, p += 2) {
            sum1 += (uint32_t)p[0] << 8 | p[1];
            sum2 += sum1;
        }
        sum1 = fletcher_fold(sum1);
        sum2 = fletcher_fold(sum2);
        words -= run;
    }
    if (n % 2) {
        sum1 = fletcher_fold(sum1 + ((uint32_t)*p << 8));
        sum2 = fletcher_fold(sum2 + sum1);
    }
    return fletcher_fold(sum2) << 16 | fletcher_fold(sum1);
}

/* ---- jenkins_lookup3 -------------------------------------------------------------- */

enum {
    JENKINS_BLOCK = 12
};
struct jenkins {
    uint32_t a, b, c;
};

static uint32_t jenkins_rotate(uint32_t x, unsigned bits)
{
    return x << bits | x >> (32 - bits);
}

static void jenkins_add(struct jenkins *s, const uint8_t block[JENKINS_BLOCK])
{
    s->a += zr_load_le32(block);
    s->b += zr_load_le32(block + 4);
    s->c += zr_load_le32(block + 8);
}

static void jenkins_mix(struct jenkins *s)
{
    static const unsigned rotations[] = {4, 6, 8, 16, 19, 4};

    for (size_t i = 0; i < ZR_COUNT(rotations); i++) {
        /* x -= z; x ^= rotated z; z += y, for each of the three words in turn */
        const uint32_t a = (s->a - s->c) ^ jenkins_rotate(s->c, rotations[i]);
        const uint32_t c = s->c + s->b;

        *s = (struct jenkins){.a = s->b, .b = c, .c = a};
    }
}

static void jenkins_last(struct jenkins *s)
{
    static const unsigned rotations[] = {14, 11, 25, 16, 4, 14, 24};

    for (size_t i = 0; i < ZR_COUNT(rotations); i++) {
        /* c ^= b; c -= rotated b, for each of the three words in turn */
        const uint32_t c = (s->c ^ s->b) - jenkins_rotate(s->b, rotations[i]);

        *s = (struct jenkins){.a = s->b, .b = c, .c = s->a};
    }
}

/* A sequence of bytes in two parts: the prefix, then the rest. */
struct jenkins_source {
    const uint8_t *part[2];
    size_t bytes[2];
};

static size_t jenkins_take(struct jenkins_source *from, uint8_t *block)
{
    size_t n = 0;

    for (size_t k = 0; k < 2; k++) {
        const size_t take = ZR_MIN(from->bytes[k], JENKINS_BLOCK - n);

        if (take)
            memcpy(block + n, from->part[k], take);
        from->part[k] += take;
        from->bytes[k] -= take;
        n += take;
    }
    return n;
}

uint32_t zr_jenkins_lookup3(uint32_t initval, const uint8_t *prefix, size_t prefix_bytes,
                            const uint8_t *p, size_t n)
{
    const uint32_t start = UINT32_C(0xDEADBEEF) + (uint32_t)(prefix_bytes + n) + initval;
    struct jenkins s = {start, start, start};
    struct jenkins_source from = {{prefix, p}, {prefix_bytes, n}};
    uint8_t last[JENKINS_BLOCK] = {0};

    if (!prefix_bytes && !n)
        return s.c;
    while (from.bytes[0] + from.bytes[1] > JENKINS_BLOCK) {
        uint8_t block[JENKINS_BLOCK];
        const bool whole = !from.bytes[0];

        if (!whole)
            (void)jenkins_take(&from, block);
        jenkins_add(&s, whole ? from.part[1] : block);
        if (whole) {
            from.part[1] += JENKINS_BLOCK;
            from.bytes[1] -= JENKINS_BLOCK;
        }
        jenkins_mix(&s);
    }
    (void)jenkins_take(&from, last);
    jenkins_add(&s, last);
    jenkins_last(&s);
    return s.b; /* after seven rounds, b has the value of c */
}
