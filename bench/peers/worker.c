/* bench/peers/worker.c - see worker.h: the command line, memory, and the answer. */
#include "worker.h"

#include "modes.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

enum {
    MOST_SAMPLES = 64,
    HUGE_PAGE = 2 << 20
};

_Noreturn void fail(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    exit(1);
}

void *need(void *p)
{
    if (!p)
        fail("out of memory");
    return p;
}

double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

char *map_bytes(size_t n, int huge)
{
    char *all = mmap(NULL, n + HUGE_PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const size_t before = (size_t)(-(uintptr_t)all & (HUGE_PAGE - 1));

    if (all == MAP_FAILED)
        fail("out of memory");
    if (before > 0)
        munmap(all, before);
    if (before < HUGE_PAGE)
        munmap(all + before + n, HUGE_PAGE - before);
    if (huge)
        madvise(all + before, n, MADV_HUGEPAGE);
    return all + before;
}

void unmap_bytes(char *p, size_t n)
{
    munmap(p, n);
}

/* Makes the host of a virtual machine give its memory before the clock runs. */
static void touch(size_t n)
{
    char *p;

    if (n == 0)
        return;
    p = map_bytes(n, 1);
    for (size_t i = 0; i < n; i += 4096)
        ((volatile char *)p)[i] = 1;
    unmap_bytes(p, n);
}

uint64_t elements(const struct job *job, const uint64_t *extent)
{
    uint64_t n = 1;

    for (int d = 0; d < job->ndim; d++)
        n *= extent[d];
    return n;
}

struct loop {
    struct job *job;
    uint64_t n, grain;
    void (*f)(struct job *, uint64_t, unsigned);
    _Atomic uint64_t next;
    _Atomic unsigned callers;
};

static void *take_part(void *arg)
{
    struct loop *loop = arg;
    const unsigned caller = atomic_fetch_add(&loop->callers, 1);
    uint64_t i;

    while ((i = atomic_fetch_add(&loop->next, loop->grain)) < loop->n)
        for (uint64_t k = i; k < i + loop->grain && k < loop->n; k++)
            loop->f(loop->job, k, caller);
    return NULL;
}

void each(struct job *job, uint64_t n, void (*f)(struct job *, uint64_t, unsigned))
{
    struct loop loop = {.job = job, .n = n, .grain = n > 4096 ? 32 : 1, .f = f};
    pthread_t thread[MOST_CALLERS];

    for (uint64_t i = 1; i < job->callers; i++)
        if (pthread_create(&thread[i], NULL, take_part, &loop) != 0)
            fail("no thread");
    take_part(&loop);
    for (uint64_t i = 1; i < job->callers; i++)
        pthread_join(thread[i], NULL);
}

/* ---- the command line ---- */

static int numbers(const char *text, uint64_t *out)
{
    int n = 0;
    char *end;

    while (*text && n < MOST_DIMS) {
        out[n++] = strtoull(text, &end, 10);
        text = *end ? end + 1 : end;
    }
    return n;
}

static void set(struct job *job, const char *key, const char *value)
{
    const struct {
        const char *key;
        uint64_t *number;
    } plain[] = {
        {"n", &job->n},         {"repeats", &job->repeats}, {"callers", &job->callers},
        {"touch", &job->touch}, {"item", &job->item},       {"delay", &job->delay_ms}};
    const struct {
        const char *key;
        const char **text;
    } texts[] = {{"to", &job->to},
                 {"out", &job->out},
                 {"codec", &job->codec},
                 {"warmup", &job->warmup}};

    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(key, plain[i].key) == 0)
            *plain[i].number = strtoull(value, NULL, 10);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(key, texts[i].key) == 0)
            *texts[i].text = value;
    if (strcmp(key, "shape") == 0)
        job->ndim = numbers(value, job->shape);
    else if (strcmp(key, "unit") == 0)
        numbers(value, job->unit);
    else if (strcmp(key, "inner") == 0)
        numbers(value, job->inner);
    else if (strcmp(key, "region") == 0)
        job->n_region = numbers(value, job->region);
    else if (strcmp(key, "axis") == 0)
        job->axis = atoi(value);
    else if (strcmp(key, "huge") == 0)
        job->huge = atoi(value);
    else if (strcmp(key, "level") == 0)
        job->level = atoi(value);
}

static void parse(struct job *job, int argc, char **argv)
{
    *job = (struct job){.out = "alloc", .codec = "raw", .item = 2, .n = 1, .repeats = 1};
    job->callers = 1;
    job->huge = 1;
    if (argc < 3)
        fail("usage: %s MODE PLACE [key=value ...]", argv[0]);
    job->mode = argv[1];
    job->place = argv[2];
    for (int i = 3; i < argc; i++) {
        char *value = strchr(argv[i], '=');

        if (!value)
            fail("%s: not key=value", argv[i]);
        *value = 0;
        set(job, argv[i], value + 1);
    }
    if (job->callers < 1 || job->callers > MOST_CALLERS || job->repeats < 1 ||
        job->repeats > MOST_SAMPLES)
        fail("callers or repeats");
}

/* ---- the answer ---- */

static long peak_kb(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kb = 0;

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld", &kb) == 1)
            break;
    if (file)
        fclose(file);
    return kb;
}

/* The peak counts from here on. */
static void reset_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");

    if (!file)
        return;
    fputs("5", file);
    fclose(file);
}

static double cpu_seconds(const struct rusage *use)
{
    return (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) +
           1e-6 * (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec);
}

int worker_main(int argc, char **argv, const struct engine *engine)
{
    struct job job;
    struct rusage before, after;
    double seconds[MOST_SAMPLES] = {0};
    uint64_t sum = 0;
    struct modes_state *state;

    parse(&job, argc, argv);
    engine->begin(&job);
    state = modes_begin(&job, engine);
    /* The first of several is not counted: it warms what the process keeps. */
    for (uint64_t i = job.repeats > 1 ? 0 : 1; i <= job.repeats; i++) {
        modes_before(state);
        touch(job.touch);
        reset_peak();
        getrusage(RUSAGE_SELF, &before);
        seconds[i ? i - 1 : 0] = modes_run(state);
        getrusage(RUSAGE_SELF, &after);
        sum = modes_after(state);
    }
    printf("{\"seconds\": [");
    for (uint64_t i = 0; i < job.repeats; i++)
        printf("%s%.9g", i ? ", " : "", seconds[i]);
    printf("], \"sum\": %llu, \"cpu\": %.4f, \"faults\": %ld, \"peak_kb\": %ld}\n",
           (unsigned long long)sum, cpu_seconds(&after) - cpu_seconds(&before),
           after.ru_minflt - before.ru_minflt, peak_kb());
    return 0;
}
