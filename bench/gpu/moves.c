/*
 * bench/gpu/moves.c - copies between host and device by size, and what calls cost; boxes,
 * planes, fills, comparisons, checksums and casts: kernels whose time is that of memory.
 */
#include <stdlib.h>
#include <string.h>

#include "boxes.h"
#include "speed.h"

struct room {
    uint64_t bytes;
    cu_place dst, src;
};

static void say(struct speed *s, const char *what, uint32_t item, uint64_t bytes,
                double seconds)
{
    char name[100];

    (void)snprintf(name, sizeof name, "%s, items of %u", what, item);
    row(s, &(struct row){"moves", name, "", bytes, seconds});
}

/* ---- boxes -------------------- */

enum {
    EDGE = 64 /* elements of a chunk in its first two dimensions */
};

/* Chunks of EDGE x EDGE x `inner`, each contiguous, that become one array. */
static uint64_t chunks_of_array(struct k_box *boxes, uint32_t item, uint64_t n)
{
    const uint64_t inner = 32, each = (uint64_t)EDGE * EDGE * inner;

    for (uint64_t i = 0; i < n; i++) {
        boxes[i] = (struct k_box){
            .n = each,
            .src_at = i * each * item,
            .dst_at = i * inner * item,
            .shape = {EDGE, EDGE, inner},
            .dst = {(k_i64)(EDGE * n * inner * item), (k_i64)(n * inner * item), item},
            .src = {(k_i64)(EDGE * inner * item), (k_i64)(inner * item), item},
            .ndim = 3,
            .item_bytes = item};
    }
    return each;
}

static void boxes_once(struct speed *s, const struct room *r, const char *what,
                       const struct k_box *boxes, uint64_t n, int fill)
{
    struct k_box *ready = memory(n * sizeof *ready);

    for (uint64_t i = 0; i < n; i++) {
        ready[i] = boxes[i];
        kernels_box_ready(&ready[i], fill);
    }
    const cu_place list = place_copy(s, ready, n * sizeof *ready);
    const uint64_t each = kernels_box_items(ready);
    const struct launch l = {fill ? "k_fill_boxes" : "k_copy_boxes",
                             n * each,
                             {r->dst, r->src, list, n, each}};

    say(s, what, boxes->item_bytes, n * boxes->n * boxes->item_bytes,
        timed_launches(s, &l, 1));
    places_free(s, &list, 1);
    free(ready);
}

static void time_boxes(struct speed *s, const struct room *r, uint32_t item)
{
    const uint64_t count = r->bytes / item, n = count / ((uint64_t)EDGE * EDGE * 32);
    struct k_box *boxes = memory(n * sizeof *boxes);
    uint64_t side = 1;

    while (side * side * 4 <= count)
        side *= 2;
    (void)chunks_of_array(boxes, item, n);
    boxes_once(s, r, "boxes, chunks of an array", boxes, n, 0);
    for (uint64_t i = 0; i < n; i++)
        boxes[i].swap_bytes = item;
    if (item > 1)
        boxes_once(s, r, "boxes, chunks, bytes swapped", boxes, n, 0);
    boxes[0] = (struct k_box){.n = count,
                              .shape = {count},
                              .dst = {item},
                              .src = {item},
                              .ndim = 1,
                              .item_bytes = item};
    boxes_once(s, r, "boxes, one contiguous", boxes, 1, 0);
    boxes[0] = (struct k_box){.n = side * side,
                              .shape = {side, side},
                              .dst = {(k_i64)(side * item), item},
                              .src = {item, (k_i64)(side * item)},
                              .ndim = 2,
                              .item_bytes = item};
    boxes_once(s, r, "boxes, one transposed", boxes, 1, 0);
    boxes[0] = (struct k_box){.n = count / 2,
                              .shape = {count / 2},
                              .dst = {item},
                              .src = {2 * (k_i64)item},
                              .ndim = 1,
                              .item_bytes = item};
    boxes_once(s, r, "boxes, every second element", boxes, 1, 0);
    boxes[0] = (struct k_box){
        .n = count, .shape = {count}, .dst = {item}, .ndim = 1, .item_bytes = item};
    boxes_once(s, r, "fill", boxes, 1, 1);
    free(boxes);
}

/* ---- parts of 128 KiB -------------------- */

enum {
    PART = 128 << 10
};

static void time_planes(struct speed *s, const struct room *r, uint32_t item,
                        uint32_t bits)
{
    static const uint64_t eaches[] = {32, 256, 1024};
    const uint64_t n = r->bytes / PART;
    struct k_planes *parts = memory(n * sizeof *parts);
    cu_place list;

    for (uint64_t i = 0; i < n; i++)
        parts[i] = (struct k_planes){i * PART, i * PART, PART, item, bits};
    list = place_copy(s, parts, n * sizeof *parts);
    for (size_t i = 0; i < 3; i++) {
        const struct launch l = {
            "k_unshuffle", n * eaches[i], {r->dst, r->src, list, n, eaches[i]}};
        char name[80];

        (void)snprintf(name, sizeof name, "unshuffle%s, each %llu",
                       bits ? " of bits" : "", (unsigned long long)eaches[i]);
        say(s, name, item, r->bytes, timed_launches(s, &l, 1));
    }
    places_free(s, &list, 1);
    free(parts);
}

static void time_runs(struct speed *s, const struct room *r)
{
    const uint64_t n = r->bytes / PART, each = 1024;
    struct k_run *runs = memory(n * sizeof *runs);
    uint8_t zeros[16] = {0};

    for (uint64_t i = 0; i < n; i++)
        runs[i] = (struct k_run){i * PART, i * PART, PART};
    const cu_place w[] = {place_copy(s, runs, n * sizeof *runs), place(s, n * 4),
                          place_copy(s, zeros, sizeof zeros)};
    const struct launch copy = {"k_copy_runs", n * each, {r->dst, r->src, w[0], n, each}};
    const struct launch differ = {
        "k_differ", n * each, {r->dst, w[2], w[0], w[1], n, each, 4}};

    say(s, "runs of 128 KiB", 1, r->bytes, timed_launches(s, &copy, 1));
    must(s, s->d.set_async(r->dst, 0, r->bytes, s->stream), "set");
    say(s, "differ, all equal", 4, r->bytes, timed_launches(s, &differ, 1));
    places_free(s, w, 3);
    free(runs);
}

static void time_sums(struct speed *s, const struct room *r)
{
    static const uint64_t eaches[] = {32, 256, 1024};
    const uint64_t n = r->bytes / PART;
    struct k_sum *sums = memory(n * sizeof *sums);
    char name[80];

    for (uint64_t i = 0; i < n; i++)
        sums[i] = (struct k_sum){.src = i * PART,
                                 .bytes = PART,
                                 .at = 4 * i,
                                 .kind = K_CRC32C,
                                 .number = (k_u32)i,
                                 .store = 1};
    const cu_place w[] = {place_copy(s, sums, n * sizeof *sums), place(s, n * 1024 * 8),
                          place(s, n * 4)};
    for (size_t i = 0; i < 3; i++) {
        const uint64_t each = eaches[i];
        const struct launch list[] = {
            {"k_sum_slices", n * each, {r->src, w[0], w[1], n, each}},
            {"k_sum_end", n, {r->dst, r->src, w[0], w[1], w[2], n, each}}};

        (void)snprintf(name, sizeof name, "crc32c, each %llu", (unsigned long long)each);
        say(s, name, 1, r->bytes, timed_launches(s, list, 2));
    }
    places_free(s, w, 3);
    free(sums);
}

static void time_cast(struct speed *s, const struct room *r, const char *what,
                      struct k_type from, struct k_type to)
{
    const uint64_t count = r->bytes / (from.bytes > to.bytes ? from.bytes : to.bytes);
    const struct k_filter f = {.n = count, .from = from, .to = to, .scale = 1};
    const cu_place list = place_copy(s, &f, sizeof f);
    const struct launch l = {"k_cast", count, {r->dst, r->src, list, 1, count}};

    say(s, what, to.bytes, count * to.bytes, timed_launches(s, &l, 1));
    places_free(s, &list, 1);
}

void speed_moves(struct speed *s)
{
    const struct room r = {.bytes = s->few ? 1 << 20 : 256 << 20,
                           .dst = place(s, s->few ? 1 << 20 : 256 << 20),
                           .src = place(s, s->few ? 1 << 20 : 256 << 20)};
    uint8_t *bytes = memory(r.bytes);
    const struct k_type i16 = {K_INT, 2, 0, 0}, f32 = {K_FLOAT, 4, 0, 0},
                        f64 = {K_FLOAT, 8, 0, 0};

    field(bytes, r.bytes, 2, 10, 1);
    must(s, s->d.up(r.src, bytes, r.bytes), "up");
    for (uint32_t item = 1; item <= 8; item *= 2)
        time_boxes(s, &r, item);
    for (uint32_t item = 2; item <= 8; item *= 2)
        time_planes(s, &r, item, 0);
    time_planes(s, &r, 2, 1);
    time_planes(s, &r, 4, 1);
    time_runs(s, &r);
    time_sums(s, &r);
    time_cast(s, &r, "cast int16 to float32", i16, f32);
    time_cast(s, &r, "cast float64 to float32", f64, f32);
    free(bytes);
    places_free(s, (const cu_place[]){r.dst, r.src}, 2);
}

/* ---- copies between host and device -------------------- */

/* `n` copies of `bytes` each, at places one after the other. */
struct copies {
    cu_place device, other;
    uint8_t *host;
    uint64_t bytes, n;
};

static void up_all(struct speed *s, const void *of)
{
    const struct copies *c = of;

    for (uint64_t i = 0; i < c->n; i++)
        must(s,
             s->d.up_async(c->device + i * c->bytes, c->host + i * c->bytes, c->bytes,
                           s->stream),
             "up");
}

static void down_all(struct speed *s, const void *of)
{
    const struct copies *c = of;

    for (uint64_t i = 0; i < c->n; i++)
        must(s,
             s->d.down_async(c->host + i * c->bytes, c->device + i * c->bytes, c->bytes,
                             s->stream),
             "down");
}

static void copy_all(struct speed *s, const void *of)
{
    const struct copies *c = of;

    for (uint64_t i = 0; i < c->n; i++)
        must(s,
             s->d.copy_async(c->other + i * c->bytes, c->device + i * c->bytes, c->bytes,
                             s->stream),
             "copy");
}

static void by_size(struct speed *s, const struct copies *all, const char *kind)
{
    static const uint64_t sizes[] = {4 << 10, 64 << 10, 128 << 10,
                                     1 << 20, 8 << 20,  64 << 20};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct copies c = *all;
        char name[80];

        c.n = all->bytes / sizes[i];
        c.n = c.n > 512 ? 512 : c.n;
        c.bytes = sizes[i];
        if (c.n == 0)
            continue;
        (void)snprintf(name, sizeof name, "up, %s, %llu KiB", kind,
                       (unsigned long long)(c.bytes >> 10));
        row(s, &(struct row){"copies", name, "", c.n * c.bytes,
                             median_seconds(s, up_all, &c)});
        (void)snprintf(name, sizeof name, "down, %s, %llu KiB", kind,
                       (unsigned long long)(c.bytes >> 10));
        row(s, &(struct row){"copies", name, "", c.n * c.bytes,
                             median_seconds(s, down_all, &c)});
    }
}

/* Host seconds of a call, of many. */
static void call_costs(struct speed *s, cu_place at, uint8_t *pinned)
{
    enum {
        CALLS = 2000
    };
    const struct launch small = {"k_copy_runs", 1, {at, at, at, 0, 1}};
    cu_place blocks[100];
    double t = now();

    for (int i = 0; i < CALLS; i++)
        launch(s, &small);
    row(s, &(struct row){"calls", "a launch", "", 0, (now() - t) / CALLS});
    must(s, s->d.stream_wait(s->stream), "wait");
    t = now();
    for (int i = 0; i < CALLS; i++)
        must(s, s->d.up_async(at, pinned, 4096, s->stream), "up");
    row(s, &(struct row){"calls", "a copy up of 4 KiB", "", 0, (now() - t) / CALLS});
    must(s, s->d.stream_wait(s->stream), "wait");
    t = now();
    for (int i = 0; i < CALLS; i++) {
        launch(s, &small);
        must(s, s->d.stream_wait(s->stream), "wait");
    }
    row(s, &(struct row){"calls", "a launch and a wait", "", 0, (now() - t) / CALLS});
    t = now();
    for (int i = 0; i < 100; i++)
        blocks[i] = place(s, 1 << 20);
    places_free(s, blocks, 100);
    row(s, &(struct row){"calls", "alloc and free of 1 MiB", "", 0, (now() - t) / 100});
}

void speed_copies(struct speed *s)
{
    const uint64_t bytes = s->few ? 4 << 20 : 512 << 20;
    struct copies c = {
        .device = place(s, bytes), .other = place(s, bytes), .bytes = bytes, .n = 1};
    void *pinned;
    double t = now();

    must(s, s->d.host_alloc(&pinned, bytes), "pinned memory");
    row(s, &(struct row){"calls", "pinned memory allocated", "", bytes, now() - t});
    c.host = pinned;
    for (uint64_t i = 0; i < bytes; i++)
        c.host[i] = (uint8_t)(i * 2654435761U >> 13);
    must(s, s->d.up(c.device, c.host, bytes), "up");
    t = median_seconds(s, copy_all, &c);
    s->copy_rate = (double)bytes / t;
    row(s, &(struct row){"copies", "device to device, 512 MiB", "", bytes, t});
    by_size(s, &c, "pinned");
    call_costs(s, c.device, c.host);
    must(s, s->d.host_free(pinned), "free");
    c.host = memory(bytes);
    memset(c.host, 1, bytes);
    by_size(s, &c, "pageable");
    free(c.host);
    places_free(s, (const cu_place[]){c.device, c.other}, 2);
}
