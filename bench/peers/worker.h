/* bench/peers/worker.h - what the workers in C share. A worker is a program that carries
 * out one operation with one library, and prints one line about it:
 *
 *     WORKER MODE PLACE [key=value ...]
 *     {"seconds": [...], "sum": n, "cpu": s, "faults": n, "peak_kb": n}
 *
 * bench/peers/README.md lists the modes and the keys. The workers in Python and Rust do
 * the same. */
#ifndef BENCH_PEERS_WORKER_H
#define BENCH_PEERS_WORKER_H

#include <stddef.h>
#include <stdint.h>

enum {
    MOST_DIMS = 4,
    MOST_CALLERS = 128
};

/* The request, and what an engine learns when it opens the array. */
struct job {
    const char *mode, *place, *to, *out, *codec, *warmup;
    uint64_t shape[MOST_DIMS], unit[MOST_DIMS], inner[MOST_DIMS], region[MOST_DIMS];
    int ndim, n_region, axis, huge, level;
    uint64_t item, n, repeats, callers, touch, delay_ms;
};

/* A box of elements, dense in memory. */
struct box {
    uint64_t origin[MOST_DIMS], extent[MOST_DIMS], bytes;
    char *data;
};

/* A library. Calls with a number of the caller come from that thread. Functions end the
 * program if they fail. NULL: the engine cannot do it. */
struct engine {
    void (*begin)(struct job *); /* once, before the clock runs */
    void (*open)(struct job *);  /* the array at `place`; sets shape, unit and item */
    void (*open_target)(struct job *); /* the array at `to`, which takes writes */
    void (*close)(struct job *);
    void (*read)(struct job *, struct box *, unsigned caller);
    void (*write)(struct job *, struct box *, unsigned caller);
    void (*read_all)(struct job *, struct box *);     /* NULL: read() by one caller */
    void (*write_all)(struct job *, struct box *);    /* NULL: write() by one caller */
    void (*append)(struct job *, const struct box *); /* along the first dimension */
    /* elements at n points of ndim coordinates, in the order of the points */
    void (*points)(struct job *, const int64_t *coordinates, char *out);
    uint64_t (*strings)(struct job *);    /* the bytes of all texts */
    uint64_t (*open_one)(struct job *);   /* opens and closes the array `place` */
    uint64_t (*list)(struct job *);       /* counts the arrays of the group */
    uint64_t (*open_nodes)(struct job *); /* opens the arrays a00000 ... of the group */
};

int worker_main(int argc, char **argv, const struct engine *engine);

/* What engines use, too. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
double now(void);
char *map_bytes(size_t n, int huge); /* fresh memory at a multiple of 2 MiB */
void unmap_bytes(char *p, size_t n);
void *need(void *p); /* ends the program if p is NULL */
uint64_t elements(const struct job *job, const uint64_t *extent);
/* Calls f(job, i, caller) for each i below n, from job->callers threads. */
void each(struct job *job, uint64_t n, void (*f)(struct job *, uint64_t, unsigned));

#endif
