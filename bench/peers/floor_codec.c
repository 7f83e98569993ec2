/* bench/peers/floor_codec.c - see floor_codec.h. */
#include "floor_codec.h"

#include "worker.h"

#include <blosc.h>
#include <libdeflate.h>
#include <zstd.h>

#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 128 << 10,
    LEAST_IN_PIECES = 2 << 20 /* bytes of a chunk: smaller ones stay in a cache */
};

struct floor_codec {
    enum floor_kind kind;
    size_t item;
    int level;
    ZSTD_DCtx *unzstd;
    ZSTD_CCtx *zstd;
    struct libdeflate_decompressor *inflate;
    struct libdeflate_compressor *deflate;
    char *scratch;
};

enum floor_kind floor_kind(const char *name)
{
    static const char *const names[] = {"raw", "zstd", "gzip", "blosc", "shuffle", "big"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return (enum floor_kind)i;
    fail("%s: the floor has no such codec", name);
}

struct floor_codec *floor_codec_open(enum floor_kind kind, size_t bytes, size_t item,
                                     int level)
{
    struct floor_codec *c = need(calloc(1, sizeof *c));

    c->kind = kind;
    c->item = item;
    c->level = level;
    c->scratch = map_bytes(bytes, 1);
    c->unzstd = need(ZSTD_createDCtx());
    c->zstd = need(ZSTD_createCCtx());
    c->inflate = need(libdeflate_alloc_decompressor());
    c->deflate = need(libdeflate_alloc_compressor(kind == FLOOR_GZIP ? level : 1));
    return c;
}

static void unzstd(struct floor_codec *c, const char *from, size_t n, char *to,
                   size_t bytes)
{
    if (ZSTD_decompressDCtx(c->unzstd, to, bytes, from, n) != bytes)
        fail("zstd: a wrong chunk");
}

static void unshuffle(const char *from, char *to, size_t bytes, size_t item)
{
    const size_t n = bytes / item;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < item; k++)
            to[i * item + k] = from[k * n + i];
}

static void shuffle(const char *from, char *to, size_t bytes, size_t item)
{
    const size_t n = bytes / item;

    for (size_t k = 0; k < item; k++)
        for (size_t i = 0; i < n; i++)
            to[k * n + i] = from[i * item + k];
}

static void swap_pairs(const char *from, char *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 2) {
        uint16_t v;

        memcpy(&v, from + i, 2);
        v = (uint16_t)(v << 8 | v >> 8);
        memcpy(to + i, &v, 2);
    }
}

void floor_decode(struct floor_codec *c, const char *from, size_t n, char *to,
                  size_t bytes)
{
    size_t got = 0;

    switch (c->kind) {
    case FLOOR_RAW:
        memcpy(to, from, bytes);
        break;
    case FLOOR_ZSTD:
        unzstd(c, from, n, to, bytes);
        break;
    case FLOOR_GZIP:
        if (libdeflate_gzip_decompress(c->inflate, from, n, to, bytes, &got) != 0 ||
            got != bytes)
            fail("gzip: a wrong chunk");
        break;
    case FLOOR_BLOSC:
        if (blosc_decompress_ctx(from, to, bytes, 1) != (int)bytes)
            fail("blosc: a wrong chunk");
        break;
    case FLOOR_SHUFFLE:
        unzstd(c, from, n, c->scratch, bytes);
        unshuffle(c->scratch, to, bytes, c->item);
        break;
    case FLOOR_BIG:
        swap_pairs(from, to, bytes);
        break;
    }
}

static size_t zstd(struct floor_codec *c, const char *from, size_t bytes, char *to,
                   size_t room)
{
    const size_t n = ZSTD_compressCCtx(c->zstd, to, room, from, bytes, c->level);

    if (ZSTD_isError(n))
        fail("zstd: %s", ZSTD_getErrorName(n));
    return n;
}

size_t floor_encode(struct floor_codec *c, const char *from, size_t bytes, char *to,
                    size_t room)
{
    switch (c->kind) {
    case FLOOR_RAW:
        memcpy(to, from, bytes);
        return bytes;
    case FLOOR_ZSTD:
        return zstd(c, from, bytes, to, room);
    case FLOOR_GZIP:
        return libdeflate_gzip_compress(c->deflate, from, bytes, to, room);
    case FLOOR_SHUFFLE:
        shuffle(from, c->scratch, bytes, c->item);
        return zstd(c, c->scratch, bytes, to, room);
    case FLOOR_BIG:
        swap_pairs(from, to, bytes);
        return bytes;
    default:
        fail("the floor does not encode this");
    }
}

int floor_pieces(struct floor_codec *c, const char *from, size_t n, size_t bytes,
                 void (*f)(void *user, const char *piece, size_t at, size_t n_piece),
                 void *user)
{
    ZSTD_inBuffer in = {from, n, 0};
    size_t at = 0;

    if (c->kind != FLOOR_ZSTD || bytes < LEAST_IN_PIECES)
        return 0;
    ZSTD_DCtx_reset(c->unzstd, ZSTD_reset_session_only);
    while (at < bytes) {
        ZSTD_outBuffer out = {c->scratch, PIECE, 0};

        if (ZSTD_isError(ZSTD_decompressStream(c->unzstd, &out, &in)) || out.pos == 0)
            fail("zstd: a wrong chunk");
        f(user, c->scratch, at, out.pos);
        at += out.pos;
    }
    return 1;
}

uint32_t floor_crc32c(const char *p, size_t n)
{
    uint32_t crc = 0xFFFFFFFFu;

    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned char)p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}
