/*
 * bench/micro/costs.c - carries out one fixed operation, for scripts/check-costs, which
 * counts what it costs: instructions, system calls, allocations, page faults, memory.
 * A program, not a test:
 *
 *   costs <case> <n> <directory>
 *
 * n is the number of chunks, files, arrays, points, or hundreds of members of an archive.
 * The operation runs twice before it is counted, so that worker contexts, buffers and
 * pages exist. Everything runs on one thread. Prints one line: allocations, their bytes,
 * minor page faults, and by how many bytes the peak of resident memory rose, all of the
 * counted run alone.
 *
 * Callgrind counts inside counted_step(), strace between two calls of getpgid(0).
 */
#include <zarrc/zarrc.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ACROSS = 8, /* chunks along the second dimension */
    EDGE = 64,  /* elements along each dimension of a chunk, unless a case says else */
    WARM = 2
};

static zarr_error err;

static void must(zarr_status status)
{
    if (status == ZARR_OK)
        return;
    fprintf(stderr, "costs: %s\n", err.message);
    exit(1);
}

/* ---- allocations ------------------------------------------------------------------ */

static uint64_t n_allocations, allocated;
static int counting;

/* glibc's own functions. The ones below take their place, in libraries, too. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): glibc's are reserved
 */
#pragma GCC visibility push(default)
static void count(size_t bytes)
{
    if (!counting)
        return;
    n_allocations++;
    allocated += bytes;
}

void *malloc(size_t bytes)
{
    count(bytes);
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    count(n * bytes);
    return __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
    count(bytes);
    return __libc_realloc(p, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    count(bytes);
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    count(bytes);
    *out = __libc_memalign(alignment, bytes);
    return *out ? 0 : ENOMEM;
}
#pragma GCC visibility pop
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

/* ---- the cases -------------------------------------------------------------------- */

struct world {
    const struct cost_case *what;
    uint64_t n, edge;
    uint64_t shape[2];
    uint64_t tensor_shape[2];
    const char *location;
    zarr_context *ctx;
    zarr_store *store;
    zarr_array *array;
    zarr_group *group;
    zarr_selection *selection;
    zarr_tensor tensor;
    uint16_t *elements;
};

struct cost_case {
    const char *name;
    void (*prepare)(struct world *w);
    void (*step)(struct world *w);
    const char *codecs;
    uint64_t edge;  /* of a chunk; 0: EDGE */
    uint64_t shard; /* chunks along each dimension of a shard; 0: no shards */
    int in_memory;
};

/* Numbers that compress as measured data does: a slope with noise in the low bits. */
static void set_elements(struct world *w)
{
    uint32_t x = 1;

    for (uint64_t i = 0; i < w->shape[0] * w->shape[1]; i++) {
        x = x * 1664525 + 1013904223;
        w->elements[i] =
            (uint16_t)(i % w->shape[1] * 3 + i / w->shape[1] + (x >> 28) + 1);
    }
}

static void whole_tensor(struct world *w)
{
    w->tensor_shape[0] = w->shape[0];
    w->tensor_shape[1] = w->shape[1];
    zarr_tensor_host(&w->tensor, NULL, w->elements,
                     (size_t)(w->shape[0] * w->shape[1]) * sizeof *w->elements, 2,
                     w->tensor_shape);
}

static void open_store(struct world *w)
{
    zarr_context_options options = ZARR_CONTEXT_OPTIONS_INIT;
    zarr_store_options store = ZARR_STORE_OPTIONS_INIT;

    options.max_threads = 1;
    options.memory_bytes = UINT64_C(256) << 20; /* not a part of the machine's */
    store.flags = ZARR_STORE_CREATE;
    must(zarr_context_create(&w->ctx, &options, &err));
    must(zarr_store_open(&w->store, w->ctx, w->what->in_memory ? "memory:" : w->location,
                         &store, &err));
}

/* An array with n chunks, all written. */
static void prepare_array(struct world *w)
{
    const uint64_t edge = w->what->edge ? w->what->edge : EDGE;
    const uint64_t chunk[2] = {edge, edge};
    const uint64_t shard[2] = {edge * w->what->shard, edge * w->what->shard};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;

    w->edge = edge;
    w->shape[0] = edge * (w->n / ACROSS);
    w->shape[1] = edge * ACROSS;
    spec.ndim = 2;
    spec.shape = w->shape;
    spec.chunk_shape = chunk;
    spec.shard_shape = w->what->shard ? shard : NULL;
    spec.data_type = "uint16";
    spec.codecs = w->what->codecs;
    w->elements =
        aligned_alloc(64, (size_t)(w->shape[0] * w->shape[1]) * sizeof(uint16_t));
    if (!w->elements)
        exit(1);
    set_elements(w);
    whole_tensor(w);
    open_store(w);
    must(zarr_array_create(&w->array, w->store, "a", &spec, NULL, &err));
    must(zarr_array_write(w->array, NULL, &w->tensor, NULL, &err));
}

/* As above; then selects what is neither the first nor the last half chunk of a side. */
static void prepare_crop(struct world *w)
{
    uint64_t start[2], n[2];

    prepare_array(w);
    start[0] = start[1] = w->edge / 2;
    n[0] = w->shape[0] - w->edge;
    n[1] = w->shape[1] - w->edge;
    must(zarr_selection_box(&w->selection, 2, w->shape, start, n, &err));
    w->tensor_shape[0] = n[0];
    w->tensor_shape[1] = n[1];
    zarr_tensor_host(&w->tensor, NULL, w->elements,
                     (size_t)(n[0] * n[1]) * sizeof *w->elements, 2, w->tensor_shape);
}

/* As prepare_array(); then selects a point in each chunk. */
static void prepare_points(struct world *w)
{
    int64_t *at = NULL;

    prepare_array(w);
    at = calloc((size_t)w->n, 2 * sizeof *at);
    if (!at)
        exit(1);
    for (uint64_t i = 0; i < w->n; i++) {
        at[2 * i] = (int64_t)(i / ACROSS * w->edge + i % w->edge);
        at[2 * i + 1] = (int64_t)(i % ACROSS * w->edge + 7);
    }
    must(zarr_selection_points(&w->selection, 2, w->shape, w->n, at, 1, &w->n, &err));
    free(at);
    w->tensor_shape[0] = w->n;
    zarr_tensor_host(&w->tensor, NULL, w->elements, (size_t)w->n * sizeof *w->elements, 1,
                     w->tensor_shape);
}

/* A group of n arrays without chunks. */
static void prepare_group(struct world *w)
{
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;

    open_store(w);
    spec.ndim = 2;
    spec.shape = (const uint64_t[2]){1000, 1000};
    spec.chunk_shape = (const uint64_t[2]){100, 100};
    spec.data_type = "float32";
    must(zarr_group_create(&w->group, w->store, "", NULL, NULL, &err));
    for (uint64_t i = 0; i < w->n; i++) {
        char name[32];
        zarr_array *a = NULL;

        (void)snprintf(name, sizeof name, "a%llu", (unsigned long long)i);
        must(zarr_array_create(&a, w->store, name, &spec, NULL, &err));
        zarr_array_free(a);
    }
}

static void prepare_text(struct world *w)
{
    const uint64_t chunk = 256;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_vlen_column column = ZARR_VLEN_COLUMN_INIT;
    uint64_t *offsets;
    uint8_t *bytes;

    open_store(w);
    w->shape[0] = chunk * w->n;
    spec.ndim = 1;
    spec.shape = w->shape;
    spec.chunk_shape = &chunk;
    spec.data_type = "string";
    spec.codecs = w->what->codecs;
    offsets = calloc((size_t)w->shape[0] + 1, sizeof *offsets);
    bytes = calloc((size_t)w->shape[0], 16);
    if (!offsets || !bytes)
        exit(1);
    for (uint64_t i = 0; i < w->shape[0]; i++) {
        offsets[i + 1] = offsets[i] + 3 + i % 13;
        memset(bytes + offsets[i], 'a' + (int)(i % 26), 3 + i % 13);
    }
    column.n = w->shape[0];
    column.offsets = offsets;
    column.bytes = bytes;
    must(zarr_array_create(&w->array, w->store, "a", &spec, NULL, &err));
    must(zarr_array_write_vlen(w->array, NULL, &column, NULL, &err));
    free(offsets);
    free(bytes);
}

/* ---- a zip archive of many members -------------------------------------------- */

enum {
    ZIP_MEMBERS = 100, /* for each n */
    ZIP_DATA = 8       /* bytes of each member */
};

static void put_number(uint8_t **p, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *(*p)++ = (uint8_t)(value >> 8 * i);
}

/* What a local header and a header of the directory have in common, for a stored member:
 * version, flags, method, time, date, CRC-32, two lengths, those of name and fields. */
static void put_zip_header(uint8_t **p, size_t name_bytes)
{
    put_number(p, 20, 2);
    put_number(p, 0, 6);
    put_number(p, 0, 2);
    put_number(p, 0, 4);
    put_number(p, ZIP_DATA, 4);
    put_number(p, ZIP_DATA, 4);
    put_number(p, name_bytes, 2);
    put_number(p, 0, 2);
}

static size_t print_zip_name(char name[32], uint64_t i)
{
    return (size_t)snprintf(name, 32, "temp/c/%llu/%llu", (unsigned long long)(i / 100),
                            (unsigned long long)(i % 100));
}

/* A directory of members that are never read, so their data is one run of zeros. */
static void prepare_zip(struct world *w)
{
    const uint64_t n = w->n * ZIP_MEMBERS;
    const size_t room = (size_t)n * 160 + 64;
    uint8_t *const bytes = calloc(1, room), *p = bytes, *directory;
    uint64_t at = 0;
    char name[32];

    if (!bytes)
        exit(1);
    for (uint64_t i = 0; i < n; i++) {
        const size_t name_bytes = print_zip_name(name, i);

        put_number(&p, 0x04034b50, 4);
        put_zip_header(&p, name_bytes);
        memcpy(p, name, name_bytes);
        p += name_bytes + ZIP_DATA;
    }
    directory = p;
    for (uint64_t i = 0; i < n; i++) {
        const size_t name_bytes = print_zip_name(name, i);

        put_number(&p, 0x02014b50, 4);
        put_number(&p, 20, 2);
        put_zip_header(&p, name_bytes);
        put_number(&p, 0, 10); /* comment, disk, attributes */
        put_number(&p, at, 4);
        memcpy(p, name, name_bytes);
        p += name_bytes;
        at += 30 + name_bytes + ZIP_DATA;
    }
    at = (uint64_t)(p - directory);
    put_number(&p, 0x06054b50, 8);
    put_number(&p, n & 0xffff, 2);
    put_number(&p, n & 0xffff, 2);
    put_number(&p, at, 4);
    put_number(&p, (uint64_t)(directory - bytes), 4);
    put_number(&p, 0, 2);
    open_store(w);
    must(zarr_store_put(w->store, "x.zip", bytes, (uint64_t)(p - bytes), NULL, &err));
    free(bytes);
}

static void read_step(struct world *w)
{
    must(zarr_array_read(w->array, w->selection, &w->tensor, NULL, &err));
}

static void write_step(struct world *w)
{
    must(zarr_array_write(w->array, w->selection, &w->tensor, NULL, &err));
}

static void text_step(struct world *w)
{
    zarr_vlen_column column = ZARR_VLEN_COLUMN_INIT;

    must(zarr_array_read_vlen(w->array, NULL, &column, NULL, &err));
    zarr_vlen_column_free(&column);
}

/* Opens a store and its array n times. */
static void open_step(struct world *w)
{
    for (uint64_t i = 0; i < w->n; i++) {
        zarr_store *store = NULL;
        zarr_array *array = NULL;

        must(zarr_store_open(&store, w->ctx, w->location, NULL, &err));
        must(zarr_array_open(&array, store, "a", NULL, &err));
        zarr_array_free(array);
        zarr_store_free(store);
    }
}

/* Opens an archive of n * ZIP_MEMBERS members. */
static void open_zip_step(struct world *w)
{
    zarr_store *store = NULL;

    must(zarr_store_open_zip(&store, w->store, "x.zip", NULL, &err));
    must(zarr_store_stat(store, "temp/c/0/0", NULL, NULL, &err));
    zarr_store_free(store);
}

static int one_more(void *user, const zarr_node_item *node)
{
    (void)node;
    ++*(uint64_t *)user;
    return ZARR_WALK_GO_ON;
}

static void list_step(struct world *w)
{
    uint64_t n = 0;

    must(zarr_group_list(w->group, one_more, &n, NULL, &err));
    if (n != w->n)
        exit(1);
}

#define RAW "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"
#define BIG "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]"
#define WITH(codec)                                                                      \
    "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}," codec "]"
#define ZSTD                                                                             \
    WITH("{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}")
#define GZIP WITH("{\"name\":\"gzip\",\"configuration\":{\"level\":1}}")
#define CRC  WITH("{\"name\":\"crc32c\"}")
#define BLOSC                                                                            \
    WITH("{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":5,"        \
         "\"shuffle\":\"shuffle\",\"typesize\":2,\"blocksize\":0}}")
#define TRANSPOSE                                                                        \
    "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},"                     \
    "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"
#define TEXT                                                                             \
    "[{\"name\":\"vlen-utf8\"},{\"name\":\"zstd\",\"configuration\":{\"level\":3}}]"

static const struct cost_case cases[] = {
    {"open raw", prepare_array, open_step, RAW, 8, 0, 0},
    {"open sharded", prepare_array, open_step, ZSTD, 8, 2, 0},
    {"open zip", prepare_zip, open_zip_step, NULL, 0, 0, 1},
    {"list", prepare_group, list_step, NULL, 0, 0, 0},
    {"read raw", prepare_array, read_step, RAW, 0, 0, 0},
    {"read zstd", prepare_array, read_step, ZSTD, 0, 0, 0},
    {"read gzip", prepare_array, read_step, GZIP, 0, 0, 0},
    {"read blosc", prepare_array, read_step, BLOSC, 0, 0, 0},
    {"read crc32c", prepare_array, read_step, CRC, 0, 0, 0},
    {"read big-endian", prepare_array, read_step, BIG, 0, 0, 0},
    {"read transpose", prepare_array, read_step, TRANSPOSE, 0, 0, 0},
    {"read memory", prepare_array, read_step, RAW, 0, 0, 1},
    {"read shard raw", prepare_array, read_step, RAW, 0, 8, 0},
    {"read shard zstd", prepare_array, read_step, ZSTD, 0, 8, 0},
    {"read shard tiny", prepare_array, read_step, RAW, 4, 8, 0},
    {"crop raw", prepare_crop, read_step, RAW, 0, 0, 0},
    {"crop shard", prepare_crop, read_step, ZSTD, 0, 8, 0},
    {"points raw", prepare_points, read_step, RAW, 0, 0, 0},
    {"points shard", prepare_points, read_step, RAW, 0, 8, 0},
    {"read text", prepare_text, text_step, TEXT, 0, 0, 0},
    {"write raw", prepare_array, write_step, RAW, 0, 0, 0},
    {"write zstd", prepare_array, write_step, ZSTD, 0, 0, 0},
    {"write blosc", prepare_array, write_step, BLOSC, 0, 0, 0},
    {"write shard", prepare_array, write_step, ZSTD, 0, 8, 0},
    {"write memory", prepare_array, write_step, RAW, 0, 0, 1},
    {"update raw", prepare_crop, write_step, RAW, 0, 0, 0},
    {"update shard", prepare_crop, write_step, ZSTD, 0, 8, 0},
};

/* ---- counting --------------------------------------------------------------------- */

__attribute__((noinline)) static void counted_step(struct world *w)
{
    w->what->step(w);
    __asm__ volatile(""); /* no tail call: callgrind watches this function */
}

/* Bytes of a line of /proc/self/status. */
static uint64_t status_bytes(const char *line)
{
    char text[256];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(text, sizeof text, f))
        if (!strncmp(text, line, strlen(line)))
            kib = strtoull(text + strlen(line), NULL, 10);
    if (f)
        (void)fclose(f);
    return kib << 10;
}

/* Sets the peak to what is resident now. */
static void reset_peak(void)
{
    const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, "5", 1) != 1)
        (void)fputs("costs: the peak of memory cannot be reset\n", stderr);
    if (fd >= 0)
        (void)close(fd);
}

static void measure(struct world *w)
{
    struct rusage before, after;
    uint64_t resident, peak;

    for (int i = 0; i < WARM; i++)
        w->what->step(w);
    reset_peak();
    resident = status_bytes("VmRSS:");
    (void)getrusage(RUSAGE_SELF, &before);
    (void)getpgid(0);
    counting = 1;
    counted_step(w);
    counting = 0;
    (void)getpgid(0);
    (void)getrusage(RUSAGE_SELF, &after);
    peak = status_bytes("VmHWM:");
    printf("%llu %llu %ld %llu\n", (unsigned long long)n_allocations,
           (unsigned long long)allocated, after.ru_minflt - before.ru_minflt,
           (unsigned long long)(peak > resident ? peak - resident : 0));
}

static void close_world(struct world *w)
{
    zarr_selection_free(w->selection);
    zarr_array_free(w->array);
    zarr_group_free(w->group);
    zarr_store_free(w->store);
    zarr_context_free(w->ctx);
    free(w->elements);
}

int main(int argc, char **argv)
{
    struct world w = {0};

    if (argc == 2 && !strcmp(argv[1], "list")) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            puts(cases[i].name);
        return 0;
    }
    for (size_t i = 0; argc == 4 && i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(argv[1], cases[i].name))
            w.what = &cases[i];
    w.n = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    if (!w.what || w.n == 0) {
        fputs("usage: costs <case> <n> <directory>, or: costs list\n", stderr);
        return 2;
    }
    w.location = argv[3];
    w.what->prepare(&w);
    measure(&w);
    close_world(&w);
    return 0;
}
