/*
 * fault/test_malloc.c - the k-th malloc, calloc, realloc, aligned allocation or mmap of
 * the whole process fails while a scenario runs, also those of zstd, libdeflate, the C
 * library and the thread pool. Nothing may crash or hang, a failure is reported, and the
 * store holds old or new contents. The functions below replace those of the C library.
 */
#include "fault.h"

#include "../sanitizers.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);           /* NOLINT(bugprone-reserved-identifier) */
void *__libc_calloc(size_t n, size_t bytes); /* NOLINT(bugprone-reserved-identifier) */
void *__libc_realloc(void *block,
                     size_t bytes); /* NOLINT(bugprone-reserved-identifier) */
void *__libc_memalign(size_t align,
                      size_t bytes); /* NOLINT(bugprone-reserved-identifier) */

static struct fuse process_memory;

static atomic_size_t refused_bytes = SIZE_MAX; /* no larger block is to be had */

static bool out_of_memory(size_t bytes)
{
    if (!fuse_burns(&process_memory) && bytes < atomic_load(&refused_bytes))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    return out_of_memory(bytes) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return out_of_memory(n * bytes) ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *block, size_t bytes)
{
    return out_of_memory(bytes) ? NULL : __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return out_of_memory(bytes) ? NULL : __libc_memalign(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
    void *block = out_of_memory(bytes) ? NULL : __libc_memalign(align, bytes);

    if (!block)
        return ENOMEM;
    *out = block;
    return 0;
}

void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    if (out_of_memory(bytes))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, bytes, prot, flags, fd, offset);
}

static void run_once(const struct scenario *s, int64_t k, bool forever, bool *reached)
{
    struct world w;
    zarr_store *store = NULL;
    zarr_error err = {0};
    zarr_status st;

    world_context(&w, 2);
    assert_int_equal(zarr_store_open(&store, w.ctx, "memory:", NULL, &err), ZARR_OK);
    world_fill(&w, store, s->extra);
    zarr_context_trim(w.ctx);
    fuse_set(&process_memory, k, forever);
    atomic_store(&w.memory.blown, true); /* see no_fault() */
    st = s->run(&w, &err);
    *reached = fuse_off(&process_memory);
    if (st != ZARR_OK && (st != ZARR_ERR_NO_MEMORY || !*reached))
        fail_msg("%s, k %d, %s: %s: %s", s->name, (int)k, forever ? "for ever" : "once",
                 zarr_status_text(st), err.message);
    world_check(&w, s, st == ZARR_OK);
    world_close(&w);
}

/* With two threads the count differs between runs: three runs without a failure are the
 * end. */
static void test_scenario(void **state)
{
    const struct scenario *s = *state;

    for (int forever = 0; forever < 2; forever++) {
        int misses = 0;

        for (int64_t k = 1; misses < 3; k += ZR_FAIL_STEP(k)) {
            bool reached = false;

            run_once(s, k, forever, &reached);
            misses = reached ? 0 : misses + 1;
        }
    }
}

/* ---- scratch memory that a library allocates itself ---- */

enum {
    BLOSC_CHUNK = 256 << 10 /* one block, of which libblosc needs at least two */
};

static void blosc_scratch(void **state)
{
    static const uint64_t shape[1] = {BLOSC_CHUNK};
    static uint8_t data[BLOSC_CHUNK];
    const uint64_t length = BLOSC_CHUNK;
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 1,
        .shape = shape,
        .chunk_shape = shape,
        .data_type = "uint8",
        .codecs = "[\"bytes\",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"zstd\","
                  "\"clevel\":5,\"shuffle\":\"noshuffle\",\"typesize\":1,"
                  "\"blocksize\":262144}}]"};
    struct world w;
    zarr_array *a = NULL;
    zarr_error err = {0};
    zarr_tensor t;

    (void)state;
    for (size_t i = 0; i < BLOSC_CHUNK; i++)
        data[i] = (uint8_t)(i * i >> 9);
    world_context(&w, 2);
    world_must(zarr_store_open(&w.store, w.ctx, "memory:", NULL, &err), &err, "open");
    world_must(zarr_array_create(&a, w.store, "a", &spec, NULL, &err), &err, "create");
    zarr_tensor_host(&t, "uint8", data, sizeof data, 1, &length);
    for (int i = 0; i < 2; i++) { /* write, then read, each without memory first */
        zarr_status st;

        atomic_store(&refused_bytes, 400 << 10);
        st = i == 0 ? zarr_array_write(a, NULL, &t, NULL, &err)
                    : zarr_array_read(a, NULL, &t, NULL, &err);
        atomic_store(&refused_bytes, SIZE_MAX);
        if (st != ZARR_ERR_NO_MEMORY)
            fail_msg("%s: %s: %s", i == 0 ? "write" : "read", zarr_status_text(st),
                     err.message);
        world_must(i == 0 ? zarr_array_write(a, NULL, &t, NULL, &err)
                          : zarr_array_read(a, NULL, &t, NULL, &err),
                   &err, "with memory");
    }
    zarr_array_free(a);
    world_close(&w);
}

int main(void)
{
    static struct CMUnitTest tests[64];
    size_t n = scenario_tests(tests, 63, test_scenario);

    tests[n++] = (struct CMUnitTest)cmocka_unit_test(blosc_scratch);

    return _cmocka_run_group_tests("malloc", tests, n, NULL, NULL);
}
