/*
 * bench/gpu/decode.c - LZ4 streams and chunks of blosc. Each case encodes a few chunks
 * and repeats them in memory of their own. All decoded bytes are compared before a row
 * counts. zstd.c uses the same for frames of zstd.
 */
#include <blosc.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "kernels.h"
#include "speed.h"

enum {
    LANES = 32, /* of a stream */
    EACH = 256  /* work items of a block that is unshuffled */
};

/* Sequences in a block of LZ4. */
static uint64_t count_sequences(const uint8_t *p, uint64_t n)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < n; count++) {
        const uint8_t token = p[i++];
        uint64_t more = token >> 4;

        if (more == 15)
            do
                more += p[i];
            while (p[i++] == 255);
        i += more;
        if (i >= n)
            break;
        i += 2;
        if ((token & 15) == 15)
            while (p[i++] == 255)
                ;
    }
    return count;
}

/* Encodes `values` to room for `room` bytes; returns the length. */
static uint64_t encode(struct decoded *all, uint8_t *plain, const uint8_t *values,
                       uint8_t *to, uint64_t room)
{
    const int level = all->level;
    int n;

    memcpy(plain, values, all->chunk);
    if (all->form == OF_ZSTD) {
        const size_t bytes = ZSTD_compress(to, room, plain, all->chunk, level);

        return ZSTD_isError(bytes) ? 0 : bytes;
    }
    if (all->form != OF_LZ4)
        return (uint64_t)blosc_compress_ctx(all->form == OF_BLOSC ? 5 : level, 1,
                                            all->item, all->chunk, values, to, room,
                                            all->form == OF_BLOSC ? "lz4" : "zstd", 0, 1);
    shuffle(plain, values, all->chunk, all->item);
    n = LZ4_compress_default((const char *)plain, (char *)to, (int)all->chunk, (int)room);
    all->sequences +=
        (double)count_sequences(to, (uint64_t)n) * 1024 / ((double)all->chunk * DISTINCT);
    return (uint64_t)n;
}

void decoded_make(struct decoded *all)
{
    const uint64_t room = all->chunk + all->chunk / 100 + 1024;
    uint8_t *values = memory(all->chunk);
    uint64_t sum = 0;

    all->sequences = 0;
    for (int i = 0; i < DISTINCT; i++) {
        all->plain[i] = memory(all->chunk);
        all->bytes[i] = memory(room);
        field(values, all->chunk, all->item, all->noise, (uint64_t)i + 1);
        all->n_bytes[i] = encode(all, all->plain[i], values, all->bytes[i], room);
        sum += all->n_bytes[i];
    }
    all->encoded = sum * (all->n / DISTINCT);
    free(values);
}

void decoded_free(struct decoded *all)
{
    for (int i = 0; i < DISTINCT; i++) {
        free(all->plain[i]);
        free(all->bytes[i]);
    }
}

cu_place decoded_upload(struct speed *s, const struct decoded *all)
{
    uint8_t *bytes = memory(all->encoded);
    uint64_t at = 0;
    cu_place where;

    for (uint64_t i = 0; i < all->n; i++) {
        memcpy(bytes + at, all->bytes[i % DISTINCT], all->n_bytes[i % DISTINCT]);
        at += all->n_bytes[i % DISTINCT];
    }
    where = place_copy(s, bytes, all->encoded);
    free(bytes);
    return where;
}

int decoded_right(struct speed *s, const struct decoded *all, const struct launch *list,
                  size_t n, const cu_place where[2])
{
    const uint64_t bytes = all->chunk * all->n;
    uint8_t *got = memory(bytes);
    uint32_t *status = memory(all->n * sizeof *status);
    int equal = 1;

    if (n > 0) {
        must(s, s->d.set_async(where[0], 0xEE, bytes, s->stream), "set");
        must(s, s->d.set_async(where[1], 0, all->n * sizeof *status, s->stream), "set");
    }
    for (size_t i = 0; i < n; i++)
        launch(s, &list[i]);
    must(s, s->d.stream_wait(s->stream), "wait");
    must(s, s->d.down(got, where[0], bytes), "down");
    must(s, s->d.down(status, where[1], all->n * sizeof *status), "down");
    for (uint64_t i = 0; i < all->n; i++)
        equal &= status[i] == K_OK &&
                 memcmp(got + i * all->chunk, all->plain[i % DISTINCT], all->chunk) == 0;
    free(got);
    free(status);
    return equal;
}

void decoded_say(struct speed *s, const struct decoded *all, const char *what, int equal,
                 double seconds)
{
    const uint64_t bytes = all->chunk * all->n;
    char name[100], more[200];

    (void)snprintf(name, sizeof name, "%s, %s, %llu x %llu KiB", what,
                   all->item == 2 ? "uint16" : "float32", (unsigned long long)all->n,
                   (unsigned long long)(all->chunk >> 10));
    (void)snprintf(
        more, sizeof more, "\"ratio\":%.3f,\"sequences_kib\":%.2f,\"equal\":%s",
        (double)bytes / (double)all->encoded, all->sequences, equal ? "true" : "false");
    row(s, &(struct row){"decode", name, more, bytes, seconds});
}

static void lz4_case(struct speed *s, struct decoded *all)
{
    struct k_stream *streams = memory(all->n * sizeof *streams);
    const uint64_t bytes = all->chunk * all->n;
    uint64_t at = 0;

    all->form = OF_LZ4;
    decoded_make(all);
    for (uint64_t i = 0; i < all->n; i++) {
        streams[i] = (struct k_stream){.src = at,
                                       .src_bytes = all->n_bytes[i % DISTINCT],
                                       .dst = i * all->chunk,
                                       .dst_bytes = all->chunk,
                                       .how = K_LZ4,
                                       .number = (uint32_t)i};
        at += streams[i].src_bytes;
    }
    const cu_place where[] = {place(s, bytes), place(s, all->n * 4),
                              decoded_upload(s, all),
                              place_copy(s, streams, all->n * sizeof *streams)};
    const struct launch decode = {
        "k_decode", all->n * LANES, {where[0], where[2], where[3], where[1], all->n}};
    const int equal = decoded_right(s, all, &decode, 1, where);

    decoded_say(s, all, "lz4", equal, timed_launches(s, &decode, 1));
    places_free(s, where, sizeof where / sizeof *where);
    free(streams);
    decoded_free(all);
}

/* The cases of chunks, items and ratios. */
static void cases(struct speed *s, void (*one)(struct speed *, struct decoded *))
{
    static const uint64_t chunks[] = {128, 64, 1024, 8192}; /* KiB */
    static const double ratios[] = {1.5, 2, 3};

    for (uint32_t item = 2; item <= 4; item += 2)
        for (size_t r = 0; r < 3; r++) {
            const double noise = noise_for(item, ratios[r]);

            for (size_t c = 0; c < 4; c++) {
                struct decoded all = {
                    .chunk = chunks[c] << 10, .item = item, .noise = noise};

                all.n = chunks[c] <= 128 ? 1000 : (128 << 10) / chunks[c] * 2;
                all.n = s->few ? DISTINCT : all.n / DISTINCT * DISTINCT;
                if (s->few && (c > 1 || r > 0))
                    continue;
                if (r != 1 && chunks[c] == 64)
                    continue;
                one(s, &all);
            }
        }
}

void speed_lz4(struct speed *s)
{
    cases(s, lz4_case);
}

/* ---- blosc -------------------- */

/* The first launches, which say how many blocks and streams there are. */
static void blosc_count(struct speed *s, const struct launch *list, cu_place totals,
                        uint64_t counts[2])
{
    launch(s, &list[0]);
    launch(s, &list[1]);
    must(s, s->d.stream_wait(s->stream), "wait");
    must(s, s->d.down(counts, totals, 2 * sizeof *counts), "down");
}

static void blosc_case(struct speed *s, struct decoded *all)
{
    struct k_chunk *chunks = memory(all->n * sizeof *chunks);
    const uint64_t bytes = all->chunk * all->n, n = all->n;
    uint64_t at = 0, counts[2];

    all->form = OF_BLOSC;
    decoded_make(all);
    for (uint64_t i = 0; i < n; i++) {
        chunks[i] = (struct k_chunk){.src = at,
                                     .src_bytes = all->n_bytes[i % DISTINCT],
                                     .dst = i * all->chunk,
                                     .dst_bytes = all->chunk,
                                     .scratch = i * all->chunk,
                                     .number = i};
        at += chunks[i].src_bytes;
    }
    cu_place w[] = {place(s, bytes),
                    place(s, n * 4),
                    decoded_upload(s, all),
                    place_copy(s, chunks, n * sizeof *chunks),
                    place(s, n * sizeof(struct k_frame)),
                    place(s, 2 * sizeof(uint64_t)),
                    place(s, bytes),
                    0,
                    0};
    struct launch list[5] = {{"k_blosc_open", n, {w[2], w[3], w[4], w[1], n}},
                             {"k_blosc_number", 1, {w[4], w[5], n}}};

    must(s, s->d.set_async(w[1], 0, n * 4, s->stream), "set");
    blosc_count(s, list, w[5], counts);
    w[7] = place(s, counts[1] * sizeof(struct k_stream));
    w[8] = place(s, counts[0] * sizeof(struct k_planes));
    list[2] = (struct launch){
        "k_blosc_list", counts[0], {w[2], w[3], w[4], w[7], w[8], n, counts[0]}};
    list[3] = (struct launch){
        "k_decode", counts[1] * LANES, {w[6], w[2], w[7], w[1], counts[1]}};
    list[4] = (struct launch){
        "k_unshuffle", counts[0] * EACH, {w[0], w[6], w[8], counts[0], EACH}};
    const int equal = decoded_right(s, all, list, 5, w);

    decoded_say(s, all, "blosc-lz4, all", equal, timed_launches(s, list, 5));
    decoded_say(s, all, "blosc-lz4, k_blosc_*", equal, timed_launches(s, list, 3));
    decoded_say(s, all, "blosc-lz4, k_decode", equal, timed_launches(s, list + 3, 1));
    decoded_say(s, all, "blosc-lz4, k_unshuffle", equal, timed_launches(s, list + 4, 1));
    places_free(s, w, sizeof w / sizeof *w);
    free(chunks);
    decoded_free(all);
}

void speed_blosc(struct speed *s)
{
    cases(s, blosc_case);
}
