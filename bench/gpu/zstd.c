/*
 * bench/gpu/zstd.c - frames of zstd, and chunks of blosc with zstd inside, with 64 MiB
 * and 1 GiB in flight: by the kernels, by nvCOMP where it is (ZARRC_NVCOMP: its folder),
 * and by all cores of the CPU, with and without a copy of what they decode. Encoded bytes
 * lie where the decoder reads them.
 */
#define _POSIX_C_SOURCE 200809L
#include <blosc.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "kernels.h"
#include "cuda/nvcomp.h"
#include "speed.h"

enum {
    LANES = 32,
    EACH = 256, /* work items of a block that is unshuffled */
    BLOCKS = 4, /* of a stream, and one more for each BLOCK_BYTES: as plug-ins do */
    BLOCK_BYTES = 16384,
    LISTS = 5, /* of nvCOMP */
    THREADS_MOST = 64,
    SECONDS_MOST = 60 /* no case begins after them */
};
#define RATIO 1.75

/* ---- memory -------------------- */

/* Bytes for literals and sequences of a stream. */
static uint64_t parts_bytes(uint64_t decoded)
{
    return decoded / K_ZSTD_BYTES * sizeof(uint64_t) + (decoded + 7) / 8 * 8;
}

/* A row without a time. */
static void say_why_not(struct speed *s, const struct decoded *all, const char *why)
{
    const unsigned long long kib = all->chunk >> 10, n = all->n;
    const char *form = all->form == OF_ZSTD ? "zstd" : "blosc-zstd";

    printf("%-7s %s %d, %llu x %llu KiB: %s\n", "decode", form, all->level, n, kib, why);
    (void)fflush(stdout);
    (void)fprintf(s->json,
                  "%s\n{\"group\":\"decode\",\"name\":\"%s %d, %llu x %llu KiB\","
                  "\"left_out\":\"%s\"}",
                  s->n_rows++ ? "," : "", form, all->level, n, kib, why);
}

/* Whether this machine and the device have the memory that a case needs. */
static int has_memory(struct speed *s, const struct decoded *all)
{
    const double mib = 1 << 20, bytes = (double)(all->chunk * all->n);
    const double host = 2.6 * bytes; /* encoded, decoded, and pinned for the CPU */
    const double device = 7 * bytes; /* 1, .6, and the scratch memory of nvCOMP is more */
    const double pages = (double)sysconf(_SC_PHYS_PAGES);
    const double there = pages * (double)sysconf(_SC_PAGE_SIZE);
    size_t left = 0, whole = 0;
    char why[200] = "";

    must(s, s->d.memory_left(&left, &whole), "free memory");
    if (device > (double)left)
        (void)snprintf(why, sizeof why,
                       "needs %.1f MiB of the device's memory, %.1f MiB are free",
                       device / mib, (double)left / mib);
    else if (host > there)
        (void)snprintf(why, sizeof why,
                       "needs %.1f MiB of memory, the machine has %.1f MiB", host / mib,
                       there / mib);
    if (*why)
        say_why_not(s, all, why);
    return !*why;
}

/* So that what a decoder does not write is seen. where: the output, statuses. */
static void poison(struct speed *s, const struct decoded *all, const cu_place where[2])
{
    must(s, s->d.set_async(where[0], 0xEE, all->chunk * all->n, s->stream), "set");
    must(s, s->d.set_async(where[1], 0, all->n * 4, s->stream), "set");
}

/* ---- what is decoded -------------------- */

/* Streams of zstd, other streams of blosc, and its planes. Places of streams of blosc
 * are in a block that is unshuffled into the output. */
struct parts {
    struct k_stream *streams, *others;
    struct k_planes *planes;
    uint64_t n, n_others, n_planes;
};

static void parts_free(struct parts *p)
{
    free(p->streams);
    free(p->others);
    free(p->planes);
}

/* Sorts the streams of a chunk of blosc, and describes its planes. */
static void list_blosc(struct parts *p, const uint8_t *bytes, const struct k_chunk *c)
{
    struct k_frame f;
    struct k_stream *list;

    (void)k_blosc_header(bytes, c, &f);
    list = memory(f.n_streams * sizeof *list);
    for (uint64_t k = 0; k < f.n_blocks; k++) {
        k_blosc_block(bytes, c, &f, k, (uint32_t)c->number, list);
        k_blosc_planes(c, &f, k, &p->planes[p->n_planes++]);
    }
    for (uint64_t k = 0; k < f.n_streams; k++)
        if (list[k].how == K_ZSTD)
            p->streams[p->n++] = list[k];
        else
            p->others[p->n_others++] = list[k];
    free(list);
}

static struct parts list_parts(const struct decoded *all)
{
    /* streams have 4 KiB or more, or are few */
    const uint64_t most = all->form == OF_ZSTD ? 1 : 64 + all->chunk / 4096;
    struct parts p = {.streams = memory(all->n * most * sizeof *p.streams),
                      .others = memory(all->n * most * sizeof *p.others),
                      .planes = memory(all->n * most * sizeof *p.planes)};
    uint64_t at = 0;

    for (uint64_t i = 0; i < all->n; i++) {
        const struct k_chunk c = {.src = at,
                                  .src_bytes = all->n_bytes[i % DISTINCT],
                                  .dst = i * all->chunk,
                                  .dst_bytes = all->chunk,
                                  .scratch = i * all->chunk,
                                  .number = i};

        if (all->form == OF_ZSTD)
            p.streams[p.n++] = (struct k_stream){.src = c.src,
                                                 .src_bytes = c.src_bytes,
                                                 .dst = c.dst,
                                                 .dst_bytes = c.dst_bytes,
                                                 .number = (uint32_t)i};
        else
            list_blosc(&p, all->bytes[i % DISTINCT], &c);
        at += c.src_bytes;
    }
    return p;
}

/* ---- the kernels -------------------- */

/* Scratch memory: the list of blocks, then literals and sequences of each stream. */
static struct k_zstd_chunk *describe(const struct parts *p, uint64_t *n_blocks,
                                     uint64_t *room)
{
    struct k_zstd_chunk *chunks = memory(p->n * sizeof *chunks);

    *n_blocks = 0;
    for (uint64_t i = 0; i < p->n; i++) {
        chunks[i].first_block = (uint32_t)*n_blocks;
        chunks[i].most_blocks =
            BLOCKS + (uint32_t)(p->streams[i].dst_bytes / BLOCK_BYTES);
        *n_blocks += chunks[i].most_blocks;
    }
    *room = *n_blocks * sizeof(struct k_zstd_block);
    for (uint64_t i = 0; i < p->n; i++) {
        const struct k_stream *from = &p->streams[i];

        chunks[i].src = from->src;
        chunks[i].src_bytes = from->src_bytes;
        chunks[i].dst = from->dst;
        chunks[i].dst_bytes = from->dst_bytes;
        chunks[i].number = from->number;
        chunks[i].sequences = *room;
        chunks[i].literals = *room + from->dst_bytes / K_ZSTD_BYTES * sizeof(uint64_t);
        *room += parts_bytes(from->dst_bytes);
    }
    return chunks;
}

static void say_kernels(struct speed *s, const struct decoded *all, const char *form,
                        const struct launch *list, size_t n, int equal)
{
    char what[60];

    (void)snprintf(what, sizeof what, "%s %d, all kernels", form, all->level);
    decoded_say(s, all, what, equal, timed_launches(s, list, n));
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(what, sizeof what, "%s %d, %s", form, all->level, list[i].kernel);
        if (list[i].items)
            decoded_say(s, all, what, equal, timed_launches(s, &list[i], 1));
    }
}

static void by_kernels(struct speed *s, const struct decoded *all, cu_place src)
{
    struct parts p = list_parts(all);
    uint64_t n_blocks, room;
    struct k_zstd_chunk *chunks = describe(&p, &n_blocks, &room);
    const int blosc = all->form == OF_BLOSC_ZSTD;
    const uint64_t bytes = all->chunk * all->n;
    cu_place w[] = {place(s, bytes),
                    place(s, all->n * 4),
                    place(s, blosc ? bytes : 1), /* before it is unshuffled */
                    place(s, room),
                    place_copy(s, chunks, p.n * sizeof *chunks),
                    place_copy(s, p.others, p.n_others * sizeof *p.others),
                    place_copy(s, p.planes, p.n_planes * sizeof *p.planes)};
    const cu_place to = blosc ? w[2] : w[0];
    const struct launch list[] = {
        {"k_zstd_open", p.n, {w[3], src, w[4], w[1], 0, p.n}},
        {"k_zstd_literals", n_blocks * LANES, {w[3], src, w[4], w[1], 0, n_blocks}},
        {"k_zstd_sequences", n_blocks * LANES, {w[3], src, w[4], w[1], 0, n_blocks}},
        {"k_zstd_execute", p.n * LANES, {to, src, w[3], w[4], w[1], 0, p.n}},
        {"k_decode", p.n_others * LANES, {to, src, w[5], w[1], p.n_others}},
        {"k_unshuffle", p.n_planes * EACH, {w[0], to, w[6], p.n_planes, EACH}}};
    const size_t n = blosc ? 6 : 4;

    say_kernels(s, all, blosc ? "blosc-zstd" : "zstd", list, n,
                decoded_right(s, all, list, n, w));
    places_free(s, w, sizeof w / sizeof *w);
    free(chunks);
    parts_free(&p);
}

/* ---- nvCOMP -------------------- */

static zarr_status no_nvcomp(zarr_error *err, zarr_status st, const char *fmt, ...)
{
    (void)err;
    (void)fmt;
    return st;
}
static const zarr_host host = {.fail = no_nvcomp};
const zarr_host *port_host = &host; /* which nvcomp_library.c uses */

/* A call: its lists in device memory (in, in_bytes, room, out_bytes, out), and statuses.
 */
struct nvcomp_call {
    const struct nvcomp_way *way;
    cu_place list[LISTS], status, temp;
    uint64_t n, temp_bytes;
};

static void *device_pointer(cu_place at)
{
    return (void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr) */
}

static void nvcomp_run(struct speed *s, const void *of)
{
    const struct nvcomp_call *c = of;
    const struct nvcomp_options how = {{0}};

    if (c->way->decode(device_pointer(c->list[0]), device_pointer(c->list[1]),
                       device_pointer(c->list[2]), device_pointer(c->list[3]), c->n,
                       device_pointer(c->temp), c->temp_bytes, device_pointer(c->list[4]),
                       how, device_pointer(c->status), s->stream) != 0) {
        (void)fprintf(stderr, "nvCOMP fails\n");
        exit(1);
    }
}

/* The lists; `src` gets each frame at a multiple of what nvCOMP asks for. */
static void nvcomp_lists(struct speed *s, const struct decoded *all,
                         struct nvcomp_call *c, cu_place dst, cu_place src, cu_place from)
{
    uint64_t *rows = memory(LISTS * all->n * sizeof *rows), at = 0;

    for (uint64_t i = 0; i < all->n; i++) {
        const uint64_t bytes = all->n_bytes[i % DISTINCT];

        must(s, s->d.copy_async(src + at, from, bytes, s->stream), "copy");
        rows[i] = src + at;
        rows[all->n + i] = bytes;
        rows[2 * all->n + i] = all->chunk;
        rows[4 * all->n + i] = dst + i * all->chunk;
        from += bytes;
        at +=
            (bytes + c->way->align.input - 1) / c->way->align.input * c->way->align.input;
    }
    must(s, s->d.stream_wait(s->stream), "wait");
    for (int k = 0; k < LISTS; k++)
        c->list[k] = place_copy(s, rows + (uint64_t)k * all->n, all->n * sizeof *rows);
    free(rows);
}

static void by_nvcomp(struct speed *s, const struct decoded *all, cu_place from)
{
    const struct nvcomp_way *way =
        nvcomp_start(NULL) == ZARR_OK ? nvcomp_find(NVCOMP_ZSTD, 0) : NULL;
    struct nvcomp_call c = {.way = way, .n = all->n};
    const uint64_t bytes = all->chunk * all->n;
    char what[40];

    if (!way) {
        say_why_not(s, all, "there is no nvCOMP");
        return;
    }
    const cu_place w[] = {place(s, bytes), place(s, all->n * 4),
                          place(s, all->encoded + all->n * way->align.input)};

    c.status = w[1];
    c.temp_bytes = nvcomp_temp(NVCOMP_ZSTD, 0, all->n, all->chunk, s->stream);
    c.temp = place(s, c.temp_bytes);
    nvcomp_lists(s, all, &c, w[0], w[2], from);
    poison(s, all, w);
    nvcomp_run(s, &c);
    (void)snprintf(what, sizeof what, "zstd %d, nvCOMP", all->level);
    decoded_say(s, all, what, decoded_right(s, all, NULL, 0, w),
                median_seconds(s, nvcomp_run, &c));
    places_free(s, w, 3);
    places_free(s, c.list, LISTS);
    places_free(s, &c.temp, 1);
}

/* ---- the CPU -------------------- */

struct cpu {
    const struct decoded *all;
    uint8_t *to;
    atomic_uchar *done;
    atomic_ullong next;
};

static void *cpu_thread(void *of)
{
    struct cpu *c = of;
    const struct decoded *all = c->all;
    ZSTD_DCtx *d = ZSTD_createDCtx();
    uint64_t i;

    while ((i = atomic_fetch_add(&c->next, 1)) < all->n) {
        uint8_t *to = c->to + i * all->chunk;
        const uint8_t *from = all->bytes[i % DISTINCT];

        if (all->form == OF_ZSTD)
            (void)ZSTD_decompressDCtx(d, to, all->chunk, from,
                                      all->n_bytes[i % DISTINCT]);
        else
            (void)blosc_decompress_ctx(from, to, all->chunk, 1);
        atomic_store_explicit(&c->done[i], 1, memory_order_release);
    }
    (void)ZSTD_freeDCtx(d);
    return NULL;
}

/* Seconds of one run; with `dst`, chunks are copied in their order as they are there. */
static double cpu_run(struct speed *s, struct cpu *c, int n_threads, cu_place dst)
{
    pthread_t threads[THREADS_MOST];
    const double from = now();

    atomic_store(&c->next, 0);
    memset((void *)c->done, 0, c->all->n);
    for (int i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, cpu_thread, c) != 0) {
            (void)fprintf(stderr, "no thread\n");
            exit(1);
        }
    for (uint64_t i = 0; dst && i < c->all->n; i++) {
        const uint64_t at = i * c->all->chunk;

        while (!atomic_load_explicit(&c->done[i], memory_order_acquire))
            (void)usleep(20);
        must(s, s->d.up_async(dst + at, c->to + at, c->all->chunk, s->stream), "up");
    }
    for (int i = 0; i < n_threads; i++)
        (void)pthread_join(threads[i], NULL);
    must(s, s->d.stream_wait(s->stream), "wait");
    return now() - from;
}

static void by_cpu(struct speed *s, const struct decoded *all)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int n_threads = cores < THREADS_MOST ? (int)cores : THREADS_MOST;
    const uint64_t bytes = all->chunk * all->n;
    const char *form = all->form == OF_ZSTD ? "zstd" : "blosc-zstd";
    struct cpu c = {.all = all, .done = memory(all->n)};
    const cu_place w[] = {place(s, bytes), place(s, all->n * 4)};
    void *pinned;

    must(s, s->d.host_alloc(&pinned, bytes), "pinned memory");
    c.to = pinned;
    poison(s, all, w);
    for (int copies = 0; copies <= 1; copies++) {
        double seconds[REPEATS];
        char what[80];

        for (int i = -1; i < REPEATS; i++)
            seconds[i < 0 ? 0 : i] = cpu_run(s, &c, n_threads, copies ? w[0] : 0);
        (void)snprintf(what, sizeof what, "%s %d, %d threads of the CPU%s", form,
                       all->level, n_threads, copies ? " and a copy" : "");
        decoded_say(s, all, what, !copies || decoded_right(s, all, NULL, 0, w),
                    median(seconds, REPEATS));
    }
    must(s, s->d.host_free(pinned), "free");
    places_free(s, w, 2);
    free((void *)c.done);
}

/* ---- cases -------------------- */

/* The noise with which chunks have the ratio. */
static double find_noise(const struct decoded *like)
{
    double low = 1e-2, high = 1e4;

    for (int i = 0; i < 14; i++) {
        struct decoded one = *like;

        one.noise = sqrt(low * high);
        one.n = DISTINCT;
        decoded_make(&one);
        if ((double)(one.chunk * DISTINCT) / (double)one.encoded > RATIO)
            low = one.noise;
        else
            high = one.noise;
        decoded_free(&one);
    }
    return low;
}

static void zstd_case(struct speed *s, struct decoded *all)
{
    cu_place src;

    if (!has_memory(s, all))
        return;
    decoded_make(all);
    src = decoded_upload(s, all);
    by_kernels(s, all, src);
    if (all->form == OF_ZSTD)
        by_nvcomp(s, all, src);
    by_cpu(s, all);
    places_free(s, &src, 1);
    decoded_free(all);
}

/* The most wanted first. */
void speed_zstd(struct speed *s)
{
    static const struct {
        enum form form;
        int level;
    } kinds[] = {{OF_ZSTD, 3}, {OF_ZSTD, 1}, {OF_BLOSC_ZSTD, 3}};
    static const uint64_t chunks[] = {128, 1024, 256, 512}; /* KiB */
    static const uint64_t flying[] = {1 << 30, 64 << 20};
    const double start = now();

    nvcomp_place(getenv("ZARRC_NVCOMP"));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t c = 0; c < 4; c++) {
            struct decoded all = {.form = kinds[k].form,
                                  .level = kinds[k].level,
                                  .item = 2,
                                  .chunk = s->few ? 16 << 10 : chunks[c] << 10};

            all.noise = find_noise(&all);
            for (size_t f = 0; f < 2; f++) {
                all.n = s->few ? DISTINCT : flying[f] / all.chunk;
                if (now() - start > SECONDS_MOST)
                    say_why_not(s, &all, "the time is over");
                else if (!s->few || (c == 0 && f == 0))
                    zstd_case(s, &all);
            }
        }
}
