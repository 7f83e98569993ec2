/*
 * bench/device/waves.c - what the library itself costs when arrays are read into the
 * memory of a device or written from there, and how well it keeps the device busy. The
 * device and the store are models (model.h, store.h): there is no GPU, and no byte of a
 * chunk is touched. A program, not a test:
 *
 *   device_waves [--rounds N] [--mib N] [part of a case's name]
 *
 * Chunks of 128 KiB, 256 to a shard, lz4. For each case it prints the best and the median
 * of all rounds: microseconds of CPU a chunk, of all threads; calls of the device a wave
 * and a chunk; and the share of the time that the busiest of fetch, upload, codec and
 * download needs at least ("ideal"), of the time that the request took.
 */
#include "model.h"
#include "store.h"

#include <zarrc/zarrc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    EDGE0 = 256, /* a chunk of bytes has 128 KiB */
    EDGE1 = 512,
    WIDTH = 16384,
    SHARD0 = 2048,
    ROUNDS_MOST = 101
};

struct test {
    const char *name;
    bool write;
    struct model_rates rates;
    double store; /* GB/s */
};
static const struct test tests[] = {
    {"read, free calls", false, {.ratio = 64}, 0},
    {"read, calls of 5 us", false, {.call_us = 5, .ratio = 64}, 0},
    {"read, device 50/60, ratio 1.2",
     false,
     {.call_us = 5, .copy = 50, .codec = 60, .inside = 1000, .ratio = 1.2},
     100},
    {"read, device 50/60, ratio 2",
     false,
     {.call_us = 5, .copy = 50, .codec = 60, .inside = 1000, .ratio = 2},
     100},
    {"read, device 50/60, store 30, ratio 2",
     false,
     {.call_us = 5, .copy = 50, .codec = 60, .inside = 1000, .ratio = 2},
     30},
    {"write, free calls", true, {.ratio = 64}, 0},
    {"write, calls of 5 us", true, {.call_us = 5, .ratio = 64}, 0},
    {"write, device 50/60, ratio 64",
     true,
     {.call_us = 5, .copy = 50, .codec = 60, .inside = 1000, .ratio = 64},
     100},
    {"write, device 5/6, ratio 2",
     true,
     {.call_us = 5, .copy = 5, .codec = 6, .inside = 100, .ratio = 2},
     10},
};

static zarr_error err;
static uint64_t mib = 4096;
static int rounds = 9;

static void must(zarr_status status)
{
    if (status == ZARR_OK)
        return;
    fprintf(stderr, "device_waves: %s\n", err.message);
    exit(1);
}

static double cpu_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* An array of a case, and a tensor of the device. */
struct subject {
    zarr_context *ctx;
    zarr_store *store;
    zarr_array *array;
    zarr_memory mem;
    zarr_tensor tensor;
    uint64_t shape[2];
    uint64_t chunks;
};

static void subject_open(struct subject *s, const struct test *t)
{
    const uint64_t shape[2] = {mib * 64, WIDTH}, chunk[2] = {EDGE0, EDGE1},
                   shard[2] = {SHARD0, WIDTH};
    zarr_context_options options = ZARR_CONTEXT_OPTIONS_INIT;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;

    options.memory_bytes = UINT64_C(4) << 30;
    must(zarr_context_create(&s->ctx, &options, &err));
    must(zarr_context_register_memory(s->ctx, model_memory(), NULL, "bench", &err));
    must(zarr_context_register_codec_impl(s->ctx, model_codec("lz4"), "bench", &err));
    must(zarr_store_open_custom(&s->store, s->ctx, model_store(), NULL, NULL, &err));
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk_shape = chunk;
    spec.shard_shape = shard;
    spec.data_type = "uint8";
    spec.codecs = "[{\"name\":\"bytes\"},{\"name\":\"numcodecs.lz4\"}]";
    must(zarr_array_create(&s->array, s->store, "a", &spec, NULL, &err));
    must(zarr_memory_alloc(&s->mem, s->ctx, ZARR_DEVICE_EXT, 0, mib << 20, &err));
    s->shape[0] = shape[0];
    s->shape[1] = shape[1];
    s->tensor = (zarr_tensor)ZARR_TENSOR_INIT;
    s->tensor.device_type = ZARR_DEVICE_EXT;
    s->tensor.ndim = 2;
    s->tensor.data = s->mem.handle;
    s->tensor.data_bytes = mib << 20;
    s->tensor.shape = s->shape;
    s->chunks = (mib << 20) / ((uint64_t)EDGE0 * EDGE1);
    model_rates = (struct model_rates){.ratio = t->rates.ratio};
    model_store_rate(0);
    must(zarr_array_write(s->array, NULL, &s->tensor, NULL, &err)); /* and warm up */
    model_rates = t->rates;
    model_store_rate(t->store);
}

static void subject_close(struct subject *s)
{
    zarr_memory_free(s->ctx, &s->mem);
    zarr_array_free(s->array);
    zarr_store_free(s->store);
    zarr_context_free(s->ctx);
    model_store_end();
}

/* Seconds that the busiest part of the model needs for all bytes. */
static double ideal(const struct test *t)
{
    const double decoded = (double)(mib << 20) / 1e9, encoded = decoded / t->rates.ratio;
    double most = 0;

    if (t->rates.codec > 0)
        most = decoded / t->rates.codec +
               (t->write ? 2 : 1) * decoded / t->rates.inside; /* one engine */
    if (t->rates.copy > 0 && encoded / t->rates.copy > most)
        most = encoded / t->rates.copy;
    if (t->store > 0 && encoded / t->store > most)
        most = encoded / t->store;
    return most;
}

struct result {
    double cpu[ROUNDS_MOST], wall[ROUNDS_MOST];
    zarr_stats stats; /* of the last round */
    uint64_t calls, waits, allocs;
};

static void one_round(const struct subject *s, const struct test *t, struct result *r,
                      int i)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    const uint64_t calls = atomic_load(&model_counters.calls),
                   waits = atomic_load(&model_counters.waits),
                   allocs = atomic_load(&model_counters.allocs);
    double wall, cpu;

    r->stats = (zarr_stats)ZARR_STATS_INIT;
    o.stats = &r->stats;
    wall = model_now();
    cpu = cpu_now();
    must(t->write ? zarr_array_write(s->array, NULL, &s->tensor, &o, &err)
                  : zarr_array_read(s->array, NULL, &s->tensor, &o, &err));
    r->cpu[i] = (cpu_now() - cpu) * 1e6 / (double)s->chunks;
    r->wall[i] = model_now() - wall;
    r->calls = atomic_load(&model_counters.calls) - calls;
    r->waits = atomic_load(&model_counters.waits) - waits;
    r->allocs = atomic_load(&model_counters.allocs) - allocs;
}

static void run(const struct test *t)
{
    static struct result r;
    struct subject s = {0};
    const double least = ideal(t);
    double chunks, waves;

    subject_open(&s, t);
    for (int i = 0; i < rounds; i++)
        one_round(&s, t, &r, i);
    qsort(r.cpu, (size_t)rounds, sizeof r.cpu[0], compare_doubles);
    qsort(r.wall, (size_t)rounds, sizeof r.wall[0], compare_doubles);
    chunks = (double)s.chunks;
    waves = (double)r.stats.waves;
    printf("| %s | %.2f | %.2f | %.0f | %.1f | %.3f | %.1f | %.1f |", t->name, r.cpu[0],
           r.cpu[rounds / 2], chunks / waves, (double)r.calls / waves,
           (double)r.calls / chunks, (double)r.waits / waves,
           (double)(mib << 20) / 1e9 / r.wall[0]);
    if (least > 0)
        printf(" %.2f | %.2f |\n", least / r.wall[0], least / r.wall[rounds / 2]);
    else
        printf(" | |\n");
    fflush(stdout);
    subject_close(&s);
}

int main(int argc, char **argv)
{
    const char *part = "";

    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && strcmp(argv[i], "--rounds") == 0)
            rounds = atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--mib") == 0)
            mib = strtoull(argv[++i], NULL, 10);
        else
            part = argv[i];
    }
    if (rounds < 1 || rounds > ROUNDS_MOST || mib < 32 || mib % 32 != 0) {
        fprintf(stderr, "device_waves: 1 to %d rounds, multiples of 32 MiB\n",
                ROUNDS_MOST);
        return 2;
    }
    printf("%d rounds of %d MiB\n\n", rounds, (int)mib);
    printf("| case | us of CPU a chunk, best | median | chunks a wave | calls a wave | "
           "calls a chunk | waits a wave | GB/s, best | of ideal, best | median |\n"
           "|---|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if (strstr(tests[i].name, part))
            run(&tests[i]);
    return 0;
}
