/* bench/peers/floor_codec.h - one chunk through the codecs of the floor: the libraries'
 * own calls with contexts that are kept, and the barest loops. */
#ifndef BENCH_PEERS_FLOOR_CODEC_H
#define BENCH_PEERS_FLOOR_CODEC_H

#include <stddef.h>
#include <stdint.h>

enum floor_kind {
    FLOOR_RAW,
    FLOOR_ZSTD,
    FLOOR_GZIP,
    FLOOR_BLOSC,
    FLOOR_SHUFFLE, /* byte shuffle of elements, then zstd */
    FLOOR_BIG      /* big-endian elements of two bytes */
};

struct floor_codec;

enum floor_kind floor_kind(const char *name);
/* For one thread; chunks of at most `bytes`, elements of `item` bytes. */
struct floor_codec *floor_codec_open(enum floor_kind kind, size_t bytes, size_t item,
                                     int level);
/* `to` gets exactly `bytes`. */
void floor_decode(struct floor_codec *c, const char *from, size_t n, char *to,
                  size_t bytes);
size_t floor_encode(struct floor_codec *c, const char *from, size_t bytes, char *to,
                    size_t room);
/* Decodes a frame of zstd in pieces that stay in a cache, and gives each piece, with its
 * place in the chunk, to f. Returns 0 if the frame has to be decoded at once. */
int floor_pieces(struct floor_codec *c, const char *from, size_t n, size_t bytes,
                 void (*f)(void *user, const char *piece, size_t at, size_t n_piece),
                 void *user);
uint32_t floor_crc32c(const char *p, size_t n);

#endif
