/* bench/gpu/copies.c - copies between host and device by size, and what calls cost. */
#include <stdlib.h>
#include <string.h>

#include "speed.h"

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
