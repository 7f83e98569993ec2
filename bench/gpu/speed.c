/*
 * bench/gpu/speed.c - kernels_speed: times copies and the kernels of plugins/kernels on
 * the first CUDA device. A table on standard output, JSON into the file of the first
 * argument.
 */
#define _POSIX_C_SOURCE 200809L
#include "speed.h"

#include <lz4.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BLOCK = 256, /* work items */
    WARP = 32,
    STEP = 64 /* elements of a field between two points of its curve */
};

void must(struct speed *s, cu_result rc, const char *what)
{
    if (rc == 0)
        return;
    (void)fprintf(stderr, "%s: %s (%d)\n", what, driver_error(&s->d, rc), rc);
    exit(1);
}

void *memory(uint64_t n)
{
    void *p = calloc(1, n ? n : 1);

    if (p)
        return p;
    (void)fprintf(stderr, "no memory for %llu bytes\n", (unsigned long long)n);
    exit(1);
}

double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- launches -------------------- */

/* Work items of a group: some kernels have one stream in each. */
static unsigned group_items(const char *kernel)
{
    static const char *const streamed[] = {"k_decode", "k_encode", "k_zstd_literals",
                                           "k_zstd_sequences", "k_zstd_execute"};

    for (size_t i = 0; i < sizeof streamed / sizeof *streamed; i++)
        if (strcmp(kernel, streamed[i]) == 0)
            return WARP;
    return BLOCK;
}

void launch(struct speed *s, const struct launch *l)
{
    const unsigned group = group_items(l->kernel);
    const uint64_t blocks = (l->items + group - 1) / group;
    void *parameters[PARAMETERS_MOST];
    cu_function f;

    must(s, s->d.function_get(&f, s->module, l->kernel), l->kernel);
    for (int i = 0; i < PARAMETERS_MOST; i++)
        parameters[i] = (void *)(uintptr_t)&l->parameters[i];
    if (blocks)
        must(s,
             s->d.launch(f, (unsigned)blocks, 1, 1, group, 1, 1, 0, s->stream, parameters,
                         NULL),
             l->kernel);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median(double *all, size_t n)
{
    qsort(all, n, sizeof *all, compare);
    return all[n / 2];
}

double median_seconds(struct speed *s, void (*body)(struct speed *, const void *),
                      const void *of)
{
    double all[REPEATS];

    for (int i = -1; i < REPEATS; i++) {
        float ms;

        must(s, s->d.event_record(s->from, s->stream), "event");
        body(s, of);
        must(s, s->d.event_record(s->to, s->stream), "event");
        must(s, s->d.event_wait(s->to), "wait");
        must(s, s->d.event_elapsed(&ms, s->from, s->to), "time");
        if (i >= 0)
            all[i] = (double)ms * 1e-3;
    }
    return median(all, REPEATS);
}

struct launches {
    const struct launch *list;
    size_t n;
};

static void launch_all(struct speed *s, const void *of)
{
    const struct launches *all = of;

    for (size_t i = 0; i < all->n; i++)
        launch(s, &all->list[i]);
}

double timed_launches(struct speed *s, const struct launch *list, size_t n)
{
    const struct launches all = {list, n};

    return median_seconds(s, launch_all, &all);
}

/* ---- memory -------------------- */

cu_place place(struct speed *s, uint64_t n)
{
    cu_place at;

    must(s, s->d.alloc(&at, n ? n : 1), "alloc");
    return at;
}

cu_place place_copy(struct speed *s, const void *bytes, uint64_t n)
{
    const cu_place at = place(s, n);

    must(s, s->d.up(at, bytes, n), "copy up");
    return at;
}

void places_free(struct speed *s, const cu_place *places, size_t n)
{
    for (size_t i = 0; i < n; i++)
        must(s, s->d.free(places[i]), "free");
}

/* ---- rows -------------------- */

void row(struct speed *s, const struct row *r)
{
    const double rate = (double)r->bytes / r->seconds;
    const double of_copy = s->copy_rate > 0 ? rate / s->copy_rate : 0;

    if (r->bytes)
        printf("%-7s %-44s %10.3f ms %8.2f GB/s %6.1f %% %s\n", r->group, r->name,
               r->seconds * 1e3, rate * 1e-9, 100 * of_copy, r->more);
    else
        printf("%-7s %-44s %10.3f us\n", r->group, r->name, r->seconds * 1e6);
    (void)fflush(stdout);
    (void)fprintf(s->json,
                  "%s\n{\"group\":\"%s\",\"name\":\"%s\",\"bytes\":%llu,\"seconds\":%.9g,"
                  "\"gb_s\":%.6g,\"of_copy\":%.4g%s%s}",
                  s->n_rows++ ? "," : "", r->group, r->name, (unsigned long long)r->bytes,
                  r->seconds, rate * 1e-9, of_copy, *r->more ? "," : "", r->more);
    (void)fflush(s->json);
}

/* ---- data -------------------- */

static double uniform(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (double)(*seed >> 11) * 0x1p-53;
}

void field(void *to, uint64_t n_bytes, uint32_t item, double noise, uint64_t seed)
{
    seed = seed * 2654435761U + 88172645463325252U;
    const double phase = 10 * uniform(&seed);

    double hill = 0, next = sin(phase) + .5 * sin(2 * phase), slope = 0;

    for (uint64_t i = 0; i < n_bytes / item; i++) {
        if (i % STEP == 0) {
            const double x = (double)(i + STEP);

            hill = next;
            next = sin(x / 9001 + phase) + .5 * sin(x / 2503 + 2 * phase);
            slope = (next - hill) / STEP;
        }
        hill += slope;
        /* three uniform numbers: near enough to a bell */
        const double bell = uniform(&seed) + uniform(&seed) + uniform(&seed) - 1.5;

        if (item == 2) {
            const uint16_t v = (uint16_t)(9000 + 1500 * hill + 2 * noise * bell);

            memcpy((uint8_t *)to + 2 * i, &v, 2);
        } else {
            const float v =
                (float)(280 + floor(64 * (20 * hill + 2 * noise * bell)) / 64);

            memcpy((uint8_t *)to + 4 * i, &v, 4);
        }
    }
}

void shuffle(uint8_t *to, const uint8_t *from, uint64_t bytes, uint32_t item)
{
    for (uint64_t i = 0; i < bytes; i++)
        to[i % item * (bytes / item) + i / item] = from[i];
}

static double measure_ratio(uint32_t item, double noise)
{
    enum {
        BYTES = 128 * 1024
    };
    static uint8_t plain[BYTES], planes[BYTES];
    static char out[LZ4_COMPRESSBOUND(BYTES)];

    field(plain, BYTES, item, noise, 1);
    shuffle(planes, plain, BYTES, item);
    return (double)BYTES /
           LZ4_compress_default((const char *)planes, out, BYTES, (int)sizeof out);
}

double noise_for(uint32_t item, double ratio)
{
    double low = 1e-3, high = 1e5;

    for (int i = 0; i < 24; i++) {
        const double middle = sqrt(low * high);

        if (measure_ratio(item, middle) > ratio)
            low = middle;
        else
            high = middle;
    }
    return sqrt(low * high);
}

/* ---- the program -------------------- */

static void speed_open(struct speed *s, const char *json)
{
    const char *why = driver_open(&s->d);
    char name[100] = "";
    int version = 0;
    double from;

    if (why) {
        (void)fprintf(stderr, "%s\n", why);
        exit(77);
    }
    s->few = getenv("ZARR_TEST_FEW") != NULL;
    must(s, s->d.stream_open(&s->stream, 1), "stream"); /* 1: no default stream */
    must(s, s->d.event_open(&s->from, 0), "event");
    must(s, s->d.event_open(&s->to, 0), "event");
    from = now();
    if (driver_kernels(&s->d, &s->module))
        exit(1);
    from = now() - from;
    must(s, s->d.device_name(name, sizeof name - 1, s->d.device), "name");
    must(s, s->d.driver_version(&version), "version");
    s->json = fopen(json, "w");
    if (!s->json) {
        perror(json);
        exit(1);
    }
    (void)fprintf(s->json,
                  "{\"device\":\"%s\",\"cuda\":%d,\"load_seconds\":%.4g,\"rows\":[", name,
                  version, from);
    printf("%s, CUDA %d.%d, the kernels load in %.0f ms\n", name, version / 1000,
           version % 1000 / 10, from * 1e3);
}

int main(int argc, char **argv)
{
    static const struct group {
        const char *name;
        void (*run)(struct speed *);
    } groups[] = {{"copies", speed_copies}, {"moves", speed_moves},
                  {"lz4", speed_lz4},       {"blosc", speed_blosc},
                  {"encode", speed_encode}, {"zstd", speed_zstd}};
    static struct speed s;

    if (argc < 2) {
        (void)fprintf(stderr, "usage: kernels_speed OUT.json [copies] [moves] [lz4] "
                              "[blosc] [encode] [zstd] (ZARR_TEST_FEW=1: small)\n");
        return 2;
    }
    speed_open(&s, argv[1]);
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        int wanted = argc == 2;

        for (int i = 2; i < argc; i++)
            wanted |= strcmp(argv[i], groups[g].name) == 0;
        if (wanted)
            groups[g].run(&s);
    }
    (void)fprintf(s.json, "\n]}\n");
    return fclose(s.json) == 0 ? 0 : 1;
}
