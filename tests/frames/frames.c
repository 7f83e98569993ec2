/*
 * frames.c - prints the call stack of each read, decompression and compression that a few
 * reads and writes of arrays lead to. It defines pread(), preadv2() and two functions of
 * libzstd, so that the library calls these; they print the stack and go on to the real
 * ones.
 * scripts/count-frames builds and runs it, turns addresses into names, and counts.
 *
 * Usage: frames DIRECTORY
 * Output: one line a stack, "CASE<TAB>CALL<TAB>ADDRESS ...": innermost frame first, only
 * frames of the library, as offsets into it.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zstd.h>

#include <zarrc/zarrc.h>

enum {
    STACK_MOST = 128,
    LINE_MOST = 4096
};

/* The current case. NULL: calls are not printed. */
static const char *_Atomic current;

static void print_stack(const char *call)
{
    void *at[STACK_MOST];
    char line[LINE_MOST];
    const char *name = current;
    int n = 0, len = 0;

    if (!name)
        return;
    n = backtrace(at, STACK_MOST);
    len = snprintf(line, sizeof line, "%s\t%s\t", name, call);
    for (int i = 0; i < n && len < LINE_MOST - 32; i++) {
        Dl_info info;

        if (dladdr(at[i], &info) == 0 || !strstr(info.dli_fname, "libzarrc"))
            continue;
        /* The address of the call, not the return address. */
        len += snprintf(line + len, 32, "%#" PRIxPTR " ",
                        (uintptr_t)at[i] - (uintptr_t)info.dli_fbase - 1);
    }
    line[len++] = '\n';
    if (write(STDOUT_FILENO, line, (size_t)len) != len)
        abort();
}

static void *real(const char *name)
{
    void *p = dlsym(RTLD_NEXT, name);

    if (!p)
        abort();
    return p;
}

/* ISO C has no cast from an object's address to a function's. */
#define REAL(fn, name)                                                                   \
    do {                                                                                 \
        void *p_ = real(name);                                                           \
        memcpy(&(fn), &p_, sizeof p_);                                                   \
    } while (0)

/* The variant with 64-bit offsets, under glibc's name for it. */
ssize_t pread64(int fd, void *to, size_t n, off_t at);
ssize_t pread64(int fd, void *to, size_t n, off_t at)
{
    ssize_t (*fn)(int, void *, size_t, off_t);

    print_stack("pread");
    REAL(fn, "pread64");
    return fn(fd, to, n, at);
}

ssize_t preadv64v2(int fd, const struct iovec *part, int n, off_t at, int flags);
ssize_t preadv64v2(int fd, const struct iovec *part, int n, off_t at, int flags)
{
    ssize_t (*fn)(int, const struct iovec *, int, off_t, int);

    print_stack("pread");
    REAL(fn, "preadv64v2");
    return fn(fd, part, n, at, flags);
}

size_t ZSTD_decompressDCtx(ZSTD_DCtx *ctx, void *to, size_t room, const void *from,
                           size_t n)
{
    size_t (*fn)(ZSTD_DCtx *, void *, size_t, const void *, size_t);

    print_stack("decompress");
    REAL(fn, "ZSTD_decompressDCtx");
    return fn(ctx, to, room, from, n);
}

size_t ZSTD_compress2(ZSTD_CCtx *ctx, void *to, size_t room, const void *from, size_t n)
{
    size_t (*fn)(ZSTD_CCtx *, void *, size_t, const void *, size_t);

    print_stack("compress");
    REAL(fn, "ZSTD_compress2");
    return fn(ctx, to, room, from, n);
}

/* ---- arrays ---------------------------------------------------------------------- */

enum {
    ROWS = 1024,
    COLS = 1024
};
static float elements[ROWS * COLS];

static void stop(const char *what, const zarr_error *err)
{
    fprintf(stderr, "frames: %s: %s\n", what, err->message);
    exit(1);
}

struct kind {
    const char *name, *codecs;
    uint64_t chunk[2], shard[2];
};
#define RAW "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}]"
static const struct kind kinds[] = {
    {"raw", RAW, {64, 256}, {0, 0}},
    {"raw, large chunks", RAW, {1024, 1024}, {0, 0}},
    {"zstd", NULL, {64, 256}, {0, 0}},
    {"sharded, zstd", NULL, {64, 64}, {512, 256}},
};

static zarr_array *make(zarr_store *store, const struct kind *k)
{
    const uint64_t shape[2] = {ROWS, COLS};
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 2,
        .shape = shape,
        .chunk_shape = k->chunk,
        .shard_shape = k->shard[0] != 0 ? k->shard : NULL,
        .data_type = "float32",
        .codecs = k->codecs,
    };
    zarr_array *array = NULL;
    zarr_error err;

    if (zarr_array_create(&array, store, k->name, &spec, NULL, &err) != ZARR_OK)
        stop(k->name, &err);
    return array;
}

/* Reads or writes the selected elements. */
static void run(zarr_array *array, const char *name, const char *selected, int write,
                uint32_t threads)
{
    const uint64_t shape[2] = {ROWS, COLS};
    const zarr_io_options opts = {.struct_size = sizeof opts, .max_threads = threads};
    char text[128];
    zarr_selection *sel = NULL;
    const uint64_t *want = NULL;
    uint64_t extent[2];
    zarr_tensor tensor;
    zarr_error err;
    zarr_status st;

    if (zarr_selection_parse(&sel, 2, shape, selected, &err) != ZARR_OK)
        stop(selected, &err);
    want = zarr_selection_shape(sel);
    extent[0] = (uint64_t)want[0];
    extent[1] = (uint64_t)want[1];
    zarr_tensor_host(&tensor, NULL, elements, sizeof elements, 2, extent);
    snprintf(text, sizeof text, "%s %s [%s], %s", write ? "write" : "read", name,
             selected, threads == 1 ? "1 thread" : "several threads");
    current = text;
    st = write ? zarr_array_write(array, sel, &tensor, &opts, &err)
               : zarr_array_read(array, sel, &tensor, &opts, &err);
    current = NULL;
    if (st != ZARR_OK)
        stop(text, &err);
    zarr_selection_free(sel);
}

static void run_kind(zarr_store *store, const struct kind *k)
{
    static const char *const selected[] = {"...", "10:70,3:100", "10:1000,3:1000"};
    zarr_array *array = make(store, k);

    for (size_t i = 0; i < sizeof selected / sizeof *selected; i++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            for (size_t e = 0; e < sizeof elements / sizeof *elements; e++)
                elements[e] = (float)(e * e % 1000);
            run(array, k->name, selected[i], 1, threads);
            run(array, k->name, selected[i], 0, threads);
        }
    zarr_array_free(array);
}

int main(int argc, char **argv)
{
    const zarr_store_options opts = {.struct_size = sizeof opts,
                                     .flags = ZARR_STORE_CREATE};
    void *warm[1];
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_error err;

    if (argc != 2) {
        fprintf(stderr, "usage: frames DIRECTORY\n");
        return 2;
    }
    (void)backtrace(warm, 1); /* the first call loads a library: do that now */
    if (zarr_context_create(&ctx, NULL, &err) != ZARR_OK ||
        zarr_store_open(&store, ctx, argv[1], &opts, &err) != ZARR_OK)
        stop(argv[1], &err);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        run_kind(store, &kinds[i]);
    zarr_store_free(store);
    zarr_context_free(ctx);
    return 0;
}
