/*
 * bench/gpu/speed.h - what the parts of kernels_speed share: the device, timing by its
 * events, rows of the result, and data that look like real ones.
 */
#ifndef BENCH_GPU_SPEED_H
#define BENCH_GPU_SPEED_H

#include <stdint.h>
#include <stdio.h>

#include "driver.h"

enum {
    REPEATS = 5,
    PARAMETERS_MOST = 8,
    DISTINCT = 8 /* chunks that are encoded; others repeat them */
};
struct speed {
    struct driver d;
    cu_module module;
    cu_stream stream;
    cu_event from, to;
    FILE *json;
    int n_rows;
    int few;          /* small sizes: to see that the program runs */
    double copy_rate; /* bytes a second that a copy on the device writes */
};

/* Ends the program with the driver's error, if there is one. */
void must(struct speed *s, cu_result rc, const char *what);
void *memory(uint64_t n); /* zeroed; never NULL */

/* A launch: numbers, and addresses as numbers. */
struct launch {
    const char *kernel;
    uint64_t items, parameters[PARAMETERS_MOST];
};
void launch(struct speed *s, const struct launch *l);
/* The median seconds of REPEATS runs by the device's clock, after one that warms up. */
double median_seconds(struct speed *s, void (*body)(struct speed *, const void *),
                      const void *of);
double median(double *all, size_t n); /* it sorts them */
double timed_launches(struct speed *s, const struct launch *list, size_t n);
double now(void); /* seconds of this machine's clock */

/* Device memory, and the same with bytes of the host in it. */
cu_place place(struct speed *s, uint64_t n);
cu_place place_copy(struct speed *s, const void *bytes, uint64_t n);
void places_free(struct speed *s, const cu_place *places, size_t n);

/* A row: bytes that come out, the seconds, and what they are beside a copy on the device
 * that writes as many bytes; or 0 bytes, and the seconds of a call. `more`: further
 * members of the JSON object, or "". */
struct row {
    const char *group, *name, *more;
    uint64_t bytes;
    double seconds;
};
void row(struct speed *s, const struct row *r);

/* n elements of 2 (integers) or 4 bytes (floats): a smooth field with noise. */
void field(void *to, uint64_t n_bytes, uint32_t item, double noise, uint64_t seed);
/* The noise with which shuffled elements in LZ4 have about this ratio. */
double noise_for(uint32_t item, double ratio);
void shuffle(uint8_t *to, const uint8_t *from, uint64_t bytes, uint32_t item);

/* What is decoded: n chunks of `chunk` bytes, of which the first DISTINCT repeat. */
struct decoded {
    enum form {
        OF_LZ4,
        OF_BLOSC, /* with LZ4 inside */
        OF_ZSTD,
        OF_BLOSC_ZSTD
    } form;
    int level;                  /* of zstd */
    uint64_t chunk, n, encoded; /* bytes of a chunk, chunks, encoded bytes of all */
    uint32_t item;
    double noise;
    uint8_t *plain[DISTINCT], *bytes[DISTINCT];
    uint64_t n_bytes[DISTINCT];
    double sequences; /* of LZ4, in a KiB */
};
void decoded_make(struct decoded *all);
void decoded_free(struct decoded *all);
/* The encoded chunks, one after the other. */
cu_place decoded_upload(struct speed *s, const struct decoded *all);
/* Runs the launches over poisoned output, and compares it; without launches, compares
 * what is there. where: the output, statuses. */
int decoded_right(struct speed *s, const struct decoded *all, const struct launch *list,
                  size_t n, const cu_place where[2]);
void decoded_say(struct speed *s, const struct decoded *all, const char *what, int equal,
                 double seconds);

void speed_copies(struct speed *s); /* between host and device, and what calls cost */
void speed_lz4(struct speed *s);
void speed_blosc(struct speed *s);
void speed_encode(struct speed *s);
void speed_zstd(struct speed *s);  /* beside nvCOMP, and the CPU with a copy */
void speed_moves(struct speed *s); /* boxes, planes, fills, comparisons, sums, casts */

#endif
