/*
 * bench/gpu/encode.c - LZ4 streams that the device encodes, beside liblz4's length. Each
 * case has a few inputs and repeats them in memory of their own. liblz4 decodes the
 * distinct ones before a row counts.
 */
#include <lz4.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "speed.h"

enum {
    LANES = 32 /* of a stream */
};
struct encoded {
    uint64_t stream, n; /* bytes of a stream, streams */
    uint32_t item;
    double noise;
    uint8_t *plain[DISTINCT];
    uint64_t ours, theirs; /* bytes of the distinct streams */
};

static uint64_t encoded_bound(uint64_t n)
{
    return n + n / 255 + 16;
}

/* Shuffled elements: the streams of blosc. */
static cu_place make(struct speed *s, struct encoded *all)
{
    uint8_t *values = memory(all->stream), *bytes = memory(all->stream * all->n);
    char *out = memory(encoded_bound(all->stream));
    cu_place where;

    for (int i = 0; i < DISTINCT; i++) {
        all->plain[i] = memory(all->stream);
        field(values, all->stream, all->item, all->noise, (uint64_t)i + 1);
        shuffle(all->plain[i], values, all->stream, all->item);
        all->theirs += (uint64_t)LZ4_compress_default((const char *)all->plain[i], out,
                                                      (int)all->stream,
                                                      (int)encoded_bound(all->stream));
    }
    for (uint64_t i = 0; i < all->n; i++)
        memcpy(bytes + i * all->stream, all->plain[i % DISTINCT], all->stream);
    where = place_copy(s, bytes, all->stream * all->n);
    free(bytes);
    free(values);
    free(out);
    return where;
}

/* Runs the launch, and decodes what it wrote. */
static int right(struct speed *s, struct encoded *all, const struct launch *l,
                 cu_place dst, cu_place sizes)
{
    const uint64_t room = encoded_bound(all->stream);
    uint32_t *size = memory(all->n * sizeof *size);
    char *got = memory(all->stream), *bytes = memory(room);
    int equal = 1;

    launch(s, l);
    must(s, s->d.stream_wait(s->stream), "wait");
    must(s, s->d.down(size, sizes, all->n * sizeof *size), "down");
    for (uint64_t i = 0; i < DISTINCT; i++) {
        must(s, s->d.down(bytes, dst + i * room, room), "down");
        equal &= size[i] <= room &&
                 LZ4_decompress_safe(bytes, got, (int)size[i], (int)all->stream) ==
                     (int)all->stream;
        equal &= memcmp(got, all->plain[i], all->stream) == 0;
        all->ours += size[i];
    }
    for (uint64_t i = DISTINCT; i < all->n; i++)
        equal &= size[i] == size[i % DISTINCT];
    free(size);
    free(got);
    free(bytes);
    return equal;
}

static void encode_case(struct speed *s, struct encoded *all)
{
    struct k_stream *streams = memory(all->n * sizeof *streams);
    const uint64_t room = encoded_bound(all->stream), bytes = all->stream * all->n;
    char name[100], more[200];

    for (uint64_t i = 0; i < all->n; i++)
        streams[i] = (struct k_stream){.src = i * all->stream,
                                       .src_bytes = all->stream,
                                       .dst = i * room,
                                       .dst_bytes = room,
                                       .how = K_LZ4,
                                       .number = (uint32_t)i};
    const cu_place where[] = {place(s, room * all->n), make(s, all),
                              place_copy(s, streams, all->n * sizeof *streams),
                              place(s, all->n * sizeof(uint32_t))};
    const struct launch encode = {
        "k_encode", all->n * LANES, {where[0], where[1], where[2], where[3], all->n}};
    const int equal = right(s, all, &encode, where[0], where[3]);

    (void)snprintf(name, sizeof name, "lz4, %s, %llu x %llu KiB",
                   all->item == 2 ? "uint16" : "float32", (unsigned long long)all->n,
                   (unsigned long long)(all->stream >> 10));
    (void)snprintf(more, sizeof more, "\"ratio\":%.3f,\"liblz4_ratio\":%.3f,\"equal\":%s",
                   (double)all->stream * DISTINCT / (double)all->ours,
                   (double)all->stream * DISTINCT / (double)all->theirs,
                   equal ? "true" : "false");
    row(s, &(struct row){"encode", name, more, bytes, timed_launches(s, &encode, 1)});
    places_free(s, where, sizeof where / sizeof *where);
    free(streams);
    for (int i = 0; i < DISTINCT; i++)
        free(all->plain[i]);
}

void speed_encode(struct speed *s)
{
    static const struct {
        uint64_t stream, n; /* KiB */
    } sizes[] = {{64, 4000}, {128, 1000}, {64, 500}, {1024, 256}};
    static const double ratios[] = {1.5, 3};

    for (uint32_t item = 2; item <= 4; item += 2)
        for (size_t r = 0; r < 2; r++) {
            const double noise = noise_for(item, ratios[r]);

            for (size_t c = 0; c < 4; c++) {
                struct encoded all = {.stream = sizes[c].stream << 10,
                                      .n = sizes[c].n / DISTINCT * DISTINCT,
                                      .item = item,
                                      .noise = noise};

                if (s->few)
                    all.n = DISTINCT;
                if (!s->few || (c == 0 && r == 0))
                    encode_case(s, &all);
            }
        }
}
