/*
 * unit/pipe/chunk/test_unsized_chunks.c - unsized chunks, whose size only decoding tells:
 * the memory they grow to counts against the budget, several at once wait for each other,
 * and the process does not keep that memory afterwards.
 */
#include "unit/pipe/pipe_test.h"

#include <sys/resource.h>
#include <unistd.h>

#include <zarrc/vlen.h>

#include "sanitizers.h"

#define BOMB   ((uint64_t)96 << 20) /* decoded size of each chunk */
#define CHUNKS 8

static void *bomb;
static uint64_t bomb_bytes;

/* Zeros, compressed twice: a stream of a few hundred bytes. */
static void bomb_make(struct pw *w)
{
    const uint64_t shape[1] = {BOMB};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = shape,
                                  .chunk_shape = shape,
                                  .data_type = "uint8",
                                  .fill_value = "1",
                                  .codecs = "[" BYTES "," GZIP "," GZIP "]"};
    const uint64_t n[1] = {(uint64_t)BOMB};
    uint8_t *zeros = calloc(BOMB, 1);
    zarr_tensor t = {.struct_size = sizeof t,
                     .device_type = ZARR_DEVICE_CPU,
                     .ndim = 1,
                     .data = zeros,
                     .shape = n,
                     .data_bytes = BOMB};
    zarr_array *a = NULL;

    assert_non_null(zeros);
    assert_ok(zarr_array_create(&a, w->store, "zeros", &spec, NULL, &terr));
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    zarr_array_free(a);
    free(zeros);
    bomb_bytes = 1 << 20;
    bomb = malloc(bomb_bytes);
    assert_non_null(bomb);
    assert_ok(zarr_store_get(w->store, "zeros/c/0", 0, bomb, &bomb_bytes, NULL, &terr));
    assert_true(bomb_bytes < 1 << 20);
}

/* Must be the first call of a test: skip() leaves the test without any clean-up. */
static void needs_resident(void)
{
    if (access("/proc/self/status", R_OK) != 0) {
        print_message("skipped: no /proc/self/status, which reports the memory in use\n");
        skip();
    }
}

static uint64_t resident(const char *what)
{
    char line[256];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");

    assert_non_null(f);
    while (kib == 0 && fgets(line, sizeof line, f))
        if (strncmp(line, what, strlen(what)) == 0)
            (void)sscanf(line + strlen(what), ": %lu", &kib);
    fclose(f);
    return (uint64_t)kib << 10;
}

static zarr_array *strings(struct pw *w)
{
    const uint64_t shape[1] = {4 * CHUNKS}, chunk[1] = {4};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .data_type = "string",
                                  .codecs =
                                      "[{\"name\":\"vlen-utf8\"}," GZIP "," GZIP "]"};
    zarr_array *a = NULL;
    char key[32];

    assert_ok(zarr_array_create(&a, w->store, "s", &spec, NULL, &terr));
    for (int i = 0; i < CHUNKS; i++) {
        snprintf(key, sizeof key, "s/c/%d", i);
        assert_ok(zarr_store_put(w->store, key, bomb, bomb_bytes, NULL, &terr));
    }
    return a;
}

static zarr_status read_strings(struct pw *w, zarr_array *a, uint64_t first, uint64_t n,
                                zarr_vlen *items)
{
    const uint64_t shape[1] = {(uint64_t)n};
    const zarr_tensor t = {.struct_size = sizeof t,
                           .device_type = ZARR_DEVICE_CPU,
                           .ndim = 1,
                           .data = items,
                           .shape = shape,
                           .data_bytes = n * sizeof *items};
    zarr_io_options opts = {.struct_size = sizeof opts};
    zarr_selection *sel = NULL;
    zarr_status st;

    assert_ok(zarr_heap_create(&opts.heap, w->ctx, 0, &terr));
    assert_ok(zarr_selection_box(&sel, 1, zarr_array_shape(a), &first, &n, &terr));
    st = zarr_array_read(a, sel, &t, &opts, &terr);
    zarr_selection_free(sel);
    zarr_heap_free(opts.heap);
    return st;
}

static void read_bombs(uint64_t memory)
{
    const zarr_limits limits = {.struct_size = sizeof limits,
                                .variable_chunk_bytes = 2 * BOMB};
    zarr_vlen items[4 * CHUNKS];
    struct pw w;
    zarr_array *a;
    uint64_t before = 0;

    pw_context_limits(&w, 4, memory, 0, &limits);
    assert_ok(zarr_store_open(&w.store, w.ctx, "memory:", NULL, &terr));
    a = strings(&w);
    before = resident("VmRSS");
    /* Alone or at the same time: the chunk is refused as text, and no thread waits for
     * ever. */
    assert_status(read_strings(&w, a, 0, 4, items), ZARR_ERR_CORRUPT);
    assert_status(read_strings(&w, a, 0, 4 * CHUNKS, items), ZARR_ERR_CORRUPT);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(resident("VmRSS") < before + ((uint64_t)48 << 20));
#else
    (void)before; /* the sanitizers' allocators keep freed memory */
#endif
    zarr_array_free(a);
    pw_close(&w);
}

static void test_small_afterwards(void **state)
{
    (void)state;
    needs_resident();
    read_bombs((uint64_t)1 << 30);
}

/* Four threads, and a budget for one such chunk. */
static void test_one_by_one(void **state)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct rusage before, after;
    uint64_t now;

    needs_resident();
    now = resident("VmRSS");
    getrusage(RUSAGE_SELF, &before);
    read_bombs((uint64_t)16 << 20);
    getrusage(RUSAGE_SELF, &after);
    if ((uint64_t)after.ru_maxrss > (uint64_t)before.ru_maxrss)
        assert_true((uint64_t)after.ru_maxrss * 1024 < now + 3 * BOMB);
#else
    needs_resident();
    read_bombs((uint64_t)16 << 20);
#endif
    (void)state;
}

/* Without a limit of the caller's, a chunk gets no more memory than the context has. The
 * elements alone may exceed it, too, whatever their chunk has stored. */
static void test_limit(void **state)
{
    const uint64_t shape[1] = {UINT64_C(1) << 26};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = shape,
                                  .chunk_shape = shape,
                                  .data_type = "string"};
    static const char sparse[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[67108864],"
        "\"data_type\":\"string\",\"fill_value\":\"\",\"chunk_grid\":{\"name\":"
        "\"regular\","
        "\"configuration\":{\"chunk_shape\":[67108864]}},\"chunk_key_encoding\":"
        "{\"name\":\"default\"},\"codecs\":[\"vlen-utf8\",{\"name\":\"zstd\","
        "\"configuration\":"
        "{\"level\":0,\"checksum\":false}}]}";
    zarr_vlen items[4];
    zarr_array *a = NULL;
    uint64_t before;
    struct pw w;

    (void)state;
    needs_resident();
    pw_open(&w, 4, (uint64_t)16 << 20, 0);
    before = resident("VmHWM");
    a = strings(&w);
    assert_status(read_strings(&w, a, 0, 4, items), ZARR_ERR_LIMIT);
    assert_non_null(strstr(terr.message, "limit variable_chunk_bytes"));
    zarr_array_free(a);
    assert_status(zarr_array_create(&a, w.store, "sparse", &spec, NULL, &terr),
                  ZARR_ERR_LIMIT);
    assert_ok(zarr_store_put(w.store, "sparse/zarr.json", sparse, sizeof sparse - 1, NULL,
                             &terr));
    assert_ok(zarr_store_put(w.store, "sparse/c/0", bomb, bomb_bytes, NULL, &terr));
    assert_ok(zarr_array_open(&a, w.store, "sparse", NULL, &terr));
    assert_status(read_strings(&w, a, 0, 4, items), ZARR_ERR_LIMIT);
    assert_non_null(strstr(terr.message, "limit variable_chunk_bytes"));
    zarr_array_free(a);
    pw_close(&w);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(resident("VmHWM") < before + ((uint64_t)96 << 20));
#else
    (void)before;
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_one_by_one),
        cmocka_unit_test(test_small_afterwards),
    };
    struct pw w;
    int failed = 0;

    pw_open(&w, 1, (uint64_t)1 << 30, 0);
    bomb_make(&w);
    pw_close(&w);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(bomb);
    return failed;
}
