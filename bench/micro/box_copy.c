/*
 * bench/micro/box_copy.c - how fast strided copies, fills and comparisons of
 * host memory are (mem/mem.h). A program, not a test:
 *
 *   box_copy [part of a case's name [side of the large array]]
 *
 * Prints the best and the median of several rounds in GB/s of payload, so that
 * a busy machine shows. "fresh" maps new pages for each round, huge ones, as a
 * large destination of a read gets them; "warm" writes the same ones again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem/mem.h"

enum {
    ROUNDS = 5,
    MAX_ROUNDS = 31
};

static struct zr_memory_registry registry;
static const char *wanted = "";

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void report(const char *name, uint64_t bytes, double *seconds, int n)
{
    qsort(seconds, (size_t)n, sizeof *seconds, compare_doubles);
    printf("%-44s %8.2f %8.2f GB/s\n", name, (double)bytes / seconds[0] / 1e9,
           (double)bytes / seconds[n / 2] / 1e9);
    fflush(stdout);
}

static void must(zarr_status st)
{
    if (st != ZARR_OK) {
        fprintf(stderr, "box_copy: status %d\n", (int)st);
        exit(1);
    }
}

static void *pages(uint64_t bytes)
{
    void *p = zr_pages_alloc(bytes);

    if (!p)
        exit(1);
    return p;
}

/* ---- chunks into a large C-order array -------------------------------------------- */

static uint64_t side = 512; /* of the large array */

enum {
    FRESH = 1,
    GATHER = 2,
    SWAP = 4,
    CROOKED = 8
};

/* Copies all chunks of side n (`inner` in the last dimension) of u16 to an array of
 * side^3. Crooked: the array does not begin at a cache line. */
static void scatter(const char *name, uint64_t n, uint64_t inner, int how)
{
    const bool fresh = how & FRESH, gather = how & GATHER;
    const uint32_t swap = how & SWAP ? 2 : 0;
    const uint64_t shift = how & CROOKED ? 24 : 0;
    const uint64_t total = side * side * side * 2 + shift;
    uint8_t *chunk = pages(n * n * inner * 2), *array = pages(total);
    double seconds[ROUNDS];
    zarr_box box = {
        .struct_size = sizeof box, .ndim = 3, .item_bytes = 2, .swap_bytes = swap};
    zarr_box_side *big = gather ? &box.src : &box.dst,
                  *small = gather ? &box.dst : &box.src;

    if (!strstr(name, wanted))
        return;
    memset(chunk, 1, n * n * inner * 2);
    memset(array, 1, total);
    box.shape[0] = box.shape[1] = n;
    box.shape[2] = inner;
    small->mem = zr_mem_of_host(chunk, n * n * inner * 2);
    small->stride[0] = (int64_t)(n * inner * 2);
    small->stride[1] = (int64_t)(inner * 2);
    small->stride[2] = big->stride[2] = 2;
    big->stride[0] = (int64_t)(side * side * 2);
    big->stride[1] = (int64_t)(side * 2);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t from;

        if (fresh) {
            zr_pages_free(array, total);
            array = pages(total);
        }
        from = zr_now_ns();
        big->mem = zr_mem_of_host(array, total);
        for (uint64_t i = 0; i < side; i += n)
            for (uint64_t j = 0; j < side; j += n)
                for (uint64_t k = 0; k < side; k += inner) {
                    big->mem.offset = ((i * side + j) * side + k) * 2 + shift;
                    must(zr_box_copy(&registry, &box, NULL, NULL, NULL));
                }
        seconds[round] = (double)(zr_now_ns() - from) / 1e9;
    }
    report(name, total, seconds, ROUNDS);
    zr_pages_free(chunk, n * n * inner * 2);
    zr_pages_free(array, total);
}

/* ---- boxes in the cache -------------------------------------------------- */

/* Copies one box many times; each side has `bytes` of payload. */
static void repeat(const char *name, const zarr_box *box, uint64_t bytes)
{
    double seconds[MAX_ROUNDS];
    const uint64_t turns = 1 + (UINT64_C(1) << 25) / bytes;

    if (!strstr(name, wanted))
        return;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        const uint64_t from = zr_now_ns();

        for (uint64_t k = 0; k < turns; k++)
            must(zr_box_copy(&registry, box, NULL, NULL, NULL));
        seconds[round] = (double)(zr_now_ns() - from) / 1e9;
    }
    report(name, bytes * turns, seconds, MAX_ROUNDS);
}

/* n^3 elements; dst in C order, src with its axes in the given order (outermost first).
 */
static void transpose(uint64_t n, uint32_t item, uint32_t swap, const int *order)
{
    const uint64_t bytes = n * n * n * item;
    uint8_t *a = pages(bytes), *b = pages(bytes);
    zarr_box box = {
        .struct_size = sizeof box, .ndim = 3, .item_bytes = item, .swap_bytes = swap};
    int64_t line = item, dline = item;
    char name[100];

    memset(a, 1, bytes);
    memset(b, 1, bytes);
    for (int k = 2; k >= 0; k--) {
        box.shape[k] = n;
        box.dst.stride[k] = dline;
        box.src.stride[order[k]] = line;
        line *= (int64_t)n;
        dline *= (int64_t)n;
    }
    box.dst.mem = zr_mem_of_host(a, bytes);
    box.src.mem = zr_mem_of_host(b, bytes);
    (void)snprintf(name, sizeof name, "transpose %d%d%d u%u%s %llu^3", order[0], order[1],
                   order[2], item * 8, swap ? " swap" : "", (unsigned long long)n);
    repeat(name, &box, bytes);
    zr_pages_free(a, bytes);
    zr_pages_free(b, bytes);
}

/* n rows of `run` elements, both sides with gaps. */
static void rows(uint64_t n, uint64_t run, uint32_t item, uint32_t swap, int64_t step)
{
    const uint64_t bytes = n * run * item;
    const int64_t pitch = (int64_t)(run * item) * step + 32;
    uint8_t *a = pages(n * (uint64_t)pitch), *b = pages(n * (uint64_t)pitch);
    zarr_box box = {.struct_size = sizeof box,
                    .ndim = 2,
                    .item_bytes = item,
                    .swap_bytes = swap,
                    .shape = {n, run}};
    char name[100];

    memset(a, 1, n * (uint64_t)pitch);
    memset(b, 1, n * (uint64_t)pitch);
    box.dst.mem = zr_mem_of_host(a, n * (uint64_t)pitch);
    box.src.mem = zr_mem_of_host(b, n * (uint64_t)pitch);
    box.dst.stride[0] = box.src.stride[0] = pitch;
    box.dst.stride[1] = item;
    box.src.stride[1] = item * step;
    (void)snprintf(name, sizeof name, "rows %llux%llu u%u%s step %lld",
                   (unsigned long long)n, (unsigned long long)run, item * 8,
                   swap ? " swap" : "", (long long)step);
    repeat(name, &box, bytes);
    zr_pages_free(a, n * (uint64_t)pitch);
    zr_pages_free(b, n * (uint64_t)pitch);
}

/* ---- fills and comparisons ----------------------------------------------- */

static void fill(const char *name, uint64_t bytes, uint32_t item, const void *pattern)
{
    uint8_t *a = pages(bytes);
    double seconds[MAX_ROUNDS];
    const uint64_t turns = 1 + (UINT64_C(1) << 25) / bytes;
    zarr_box box = {.struct_size = sizeof box,
                    .ndim = 1,
                    .item_bytes = item,
                    .shape = {bytes / item}};

    if (!strstr(name, wanted))
        return;
    memset(a, 1, bytes);
    box.dst.mem = zr_mem_of_host(a, bytes);
    box.dst.stride[0] = item;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        const uint64_t from = zr_now_ns();

        for (uint64_t k = 0; k < turns; k++)
            must(zr_box_fill(&registry, &box, pattern, NULL, NULL, NULL));
        seconds[round] = (double)(zr_now_ns() - from) / 1e9;
    }
    report(name, bytes * turns, seconds, MAX_ROUNDS);
    zr_pages_free(a, bytes);
}

static void all_equal(const char *name, uint64_t bytes, uint32_t item)
{
    uint8_t *a = pages(bytes), pattern[64] = {0};
    double seconds[MAX_ROUNDS];
    const uint64_t turns = 1 + (UINT64_C(1) << 27) / bytes;
    uint64_t yes = 0;

    if (!strstr(name, wanted))
        return;
    memset(a, 0, bytes);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        const uint64_t from = zr_now_ns();

        for (uint64_t k = 0; k < turns; k++)
            yes += zr_all_equal(a, bytes / item, pattern, item);
        seconds[round] = (double)(zr_now_ns() - from) / 1e9;
    }
    if (yes == 0)
        exit(1);
    report(name, bytes * turns, seconds, MAX_ROUNDS);
    zr_pages_free(a, bytes);
}

static void call_cost(void)
{
    uint8_t a[64] = {0}, b[64] = {0};
    zarr_box box = {
        .struct_size = sizeof box, .ndim = 3, .item_bytes = 2, .shape = {2, 2, 4}};
    const uint64_t turns = 2000000, from = zr_now_ns();

    box.dst.mem = zr_mem_of_host(a, 64);
    box.src.mem = zr_mem_of_host(b, 64);
    for (int k = 0, line = 2; k < 3; k++, line *= 2 * (k + 1))
        box.dst.stride[2 - k] = box.src.stride[2 - k] = k == 0 ? 2 : k == 1 ? 8 : 20;
    for (uint64_t k = 0; k < turns; k++)
        must(zr_box_copy(&registry, &box, NULL, NULL, NULL));
    printf("%-44s %8.1f ns a call\n", "tiny box",
           (double)(zr_now_ns() - from) / (double)turns);
}

int main(int argc, char **argv)
{
    static const int orders[][3] = {{2, 1, 0}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}};
    static const uint32_t items[] = {1, 2, 4, 8, 16, 3, 12};
    const uint16_t pattern16 = 0x1234;

    if (argc > 1)
        wanted = argv[1];
    if (argc > 2)
        side = strtoull(argv[2], NULL, 10);
    must(zr_memory_registry_init(&registry, NULL, NULL));
    printf("%-44s %8s %8s\n", "case", "best", "median");
    scatter("scatter u16 64^3 warm", 64, 64, 0);
    scatter("scatter u16 64^3 fresh", 64, 64, FRESH);
    scatter("scatter u16 64x64x128 warm", 64, 128, 0);
    scatter("scatter u16 64x64x256 warm", 64, 256, 0);
    scatter("scatter u16 64x64x256 fresh", 64, 256, FRESH);
    scatter("scatter u16 64x64x512 warm", 64, 512, 0);
    scatter("scatter u16 64x64x512 fresh", 64, 512, FRESH);
    scatter("scatter u16 64^3 crooked", 64, 64, CROOKED);
    scatter("scatter u16 64^3 crooked, fresh", 64, 64, CROOKED | FRESH);
    scatter("scatter u16 64x64x256 crooked", 64, 256, CROOKED);
    scatter("scatter u16 64x64x512 crooked", 64, 512, CROOKED);
    scatter("scatter u16 32^3 warm", 32, 32, 0);
    scatter("scatter u16 32^3 fresh", 32, 32, FRESH);
    scatter("scatter u16 32^3 crooked", 32, 32, CROOKED);
    scatter("scatter u16 16^3 warm", 16, 16, 0);
    scatter("scatter u16 64^3 swap warm", 64, 64, SWAP);
    scatter("scatter u16 64^3 swap fresh", 64, 64, SWAP | FRESH);
    scatter("gather u16 64^3 warm", 64, 64, GATHER);
    scatter("gather u16 32^3 warm", 32, 32, GATHER);
    for (size_t k = 0; k < ZR_COUNT(orders); k++)
        transpose(64, 2, 0, orders[k]);
    for (size_t k = 0; k < ZR_COUNT(items); k++)
        transpose(64, items[k], 0, orders[0]);
    transpose(64, 2, 2, orders[0]);
    transpose(64, 4, 4, orders[0]);
    transpose(100, 4, 0, orders[0]);
    transpose(33, 2, 0, orders[0]);
    transpose(256, 2, 0, orders[0]);
    rows(256, 64, 2, 0, 1);
    rows(256, 16, 2, 0, 1);
    rows(256, 3, 1, 0, 1);
    rows(256, 64, 2, 2, 1);
    rows(64, 512, 2, 2, 1);
    rows(64, 512, 2, 0, 2);
    rows(64, 512, 4, 0, 2);
    rows(64, 512, 12, 0, 2);
    fill("fill u16 pattern 256 KiB", 1 << 18, 2, &pattern16);
    fill("fill u16 zero 256 KiB", 1 << 18, 2, "\0");
    fill("fill u16 pattern 64 MiB", 1 << 26, 2, &pattern16);
    fill("fill u16 zero 64 MiB", 1 << 26, 2, "\0");
    fill("fill 12-byte pattern 64 MiB", 12 << 22, 12, "abcdefghijkl");
    all_equal("equal u16 256 KiB", 1 << 18, 2);
    all_equal("equal 12-byte 252 KiB", 252 << 10, 12);
    all_equal("equal u16 64 MiB", 1 << 26, 2);
    if (!wanted[0])
        call_cost();
    zr_memory_registry_deinit(&registry);
    return 0;
}
