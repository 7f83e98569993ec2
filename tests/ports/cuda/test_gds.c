/*
 * ports/cuda/test_gds.c - arrays in stores of URL "gds:", over a libcufile and a driver
 * without a GPU: read and written by cuFile and without it, short reads, failures, and a
 * writer that is killed in the middle. What the real library says without a device:
 * ZARRC_TEST_CUFILE names its file.
 */
#include "application.h"

#include "cufile.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SIDE = 512,
    ELEMENTS = SIDE * SIDE,
    BYTES = 4 * ELEMENTS,
    SHARDS = 2, /* of an array that has some */
    PAGE = 4096,
    READS = 0,
    WRITES = 1,
    REGISTERED = 2
};

typedef void (*fail_fn)(uint64_t k, long result);
typedef void (*most_fn)(size_t bytes);
typedef uint64_t (*count_fn)(int what);

static char root[200], url[220];
static uint32_t elements[ELEMENTS], got[ELEMENTS];
static char told[600];
static const char *program;

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
static const struct {
    const char *name, *codecs;
    uint64_t chunk[2], shard[2];
} stored[] = {
    {"raw", "[" LITTLE "]", {128, 512}, {0, 0}},
    {"odd", "[" LITTLE "]", {100, 311}, {0, 0}},
    {"lz4",
     "[" LITTLE ",{\"name\":\"numcodecs.lz4\",\"configuration\":{\"acceleration\":1}}]",
     {256, 256},
     {0, 0}},
    {"blosc",
     "[" LITTLE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":5,"
     "\"shuffle\":\"shuffle\",\"typesize\":4,\"blocksize\":0}}]",
     {256, 512},
     {0, 0}},
    {"zstd",
     "[" LITTLE
     ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}]",
     {256, 512},
     {0, 0}},
    {"blosc_zstd",
     "[" LITTLE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"zstd\",\"clevel\":5,"
     "\"shuffle\":\"shuffle\",\"typesize\":4,\"blocksize\":0}}]",
     {256, 512},
     {0, 0}},
    {"sharded", "[" LITTLE "]", {64, 128}, {256, 512}},
    {"sharded_lz4",
     "[" LITTLE ",{\"name\":\"numcodecs.lz4\",\"configuration\":{\"acceleration\":1}}]",
     {128, 128},
     {512, 256}},
};
enum {
    N_STORED = sizeof stored / sizeof *stored
};

static void *fake(const char *name)
{
    void *library = dlopen(FAKE_CUFILE, RTLD_NOW);

    return library ? dlsym(library, name) : NULL;
}

static uint64_t count(int what)
{
    void *symbol = fake("fakecufile_count");
    count_fn fn;

    memcpy(&fn, &symbol, sizeof fn);
    return fn(what);
}

static void fail_call(uint64_t k, long result)
{
    void *symbol = fake("fakecufile_fail");
    fail_fn fn;

    memcpy(&fn, &symbol, sizeof fn);
    fn(k, result);
}

static void move_at_most(size_t bytes)
{
    void *symbol = fake("fakecufile_most");
    most_fn fn;

    memcpy(&fn, &symbol, sizeof fn);
    fn(bytes);
}

static void fill(uint32_t seed)
{
    uint32_t x = seed;

    for (size_t i = 0; i < ELEMENTS; i++) {
        x = x * 1664525u + 1013904223u;
        elements[i] = (uint32_t)(i / 3) + (x >> 28) + seed;
    }
}

static zarr_store *open_store(const char *where, uint32_t flags)
{
    zarr_store_options o = ZARR_STORE_OPTIONS_INIT;
    zarr_store *s = NULL;

    o.flags = flags;
    OK(zarr_store_open(&s, ctx, where, &o, &err));
    return s;
}

static zarr_array *make(zarr_store *s, int i)
{
    const uint64_t shape[2] = {SIDE, SIDE};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *a = NULL;

    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk_shape = stored[i].chunk;
    spec.shard_shape = stored[i].shard[0] ? stored[i].shard : NULL;
    spec.data_type = "uint32";
    spec.codecs = stored[i].codecs;
    spec.flags = ZARR_SPEC_OVERWRITE;
    OK(zarr_array_create(&a, s, stored[i].name, &spec, NULL, &err));
    return a;
}

static const uint64_t all[2] = {SIDE, SIDE};

static zarr_tensor on_device(const zarr_memory *mem)
{
    zarr_tensor t = whole_tensor(mem);

    t.shape = all;
    return t;
}

static zarr_memory device_memory(void)
{
    zarr_memory mem;

    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, BYTES, &err));
    return mem;
}

static void read_back(zarr_array *a, const zarr_memory *mem, const char *what)
{
    zarr_tensor t = on_device(mem);

    memset(got, 0x77, sizeof got);
    if (mem->device_type == ZARR_DEVICE_CPU) {
        OK(zarr_array_read(a, NULL, &t, NULL, &err));
    } else {
        put(mem, (const uint8_t *)got, BYTES);
        OK(zarr_array_read(a, NULL, &t, NULL, &err));
        fetch((uint8_t *)got, mem, BYTES);
    }
    if (memcmp(got, elements, BYTES) != 0)
        fail_msg("%s: other elements", what);
}

static zarr_stats write_device(zarr_array *a, const zarr_memory *mem)
{
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_tensor t = on_device(mem);

    opts.stats = &stats;
    put(mem, (const uint8_t *)elements, BYTES);
    OK(zarr_array_write(a, NULL, &t, &opts, &err));
    return stats;
}

static void no_debris(void)
{
    uint64_t n = 0;

    OK(zarr_store_clean(store, "", 0, &n, NULL, &err));
    assert_int_equal(n, 0);
}

/* ---- arrays -------------------- */

/* Which transfers between disk and device are direct. */
enum direct {
    DIRECT_NONE,
    DIRECT_WRITES, /* what nvCOMP encodes, it does not decode without trust */
    DIRECT_BOTH
};
static enum direct expect_direct(int i)
{
    return strcmp(stored[i].name, "zstd") == 0         ? DIRECT_WRITES
           : strcmp(stored[i].name, "blosc_zstd") == 0 ? DIRECT_NONE
                                                       : DIRECT_BOTH;
}

/* The most bytes that come to the host in a write: of whole pages of raw chunks none, of
 * shards the part of the last page. Shards of encoded chunks come there once. */
static uint64_t most_down(int i)
{
    if (i == 0)
        return 0;
    if (strcmp(stored[i].name, "sharded") == 0)
        return SHARDS * (PAGE - 1);
    return stored[i].shard[0] ? BYTES : UINT64_MAX;
}

/* What the CPU wrote to the plain store is read on the device, and the other way. */
static void both_ways(int i, enum direct direct)
{
    const zarr_memory host = {
        .device_type = ZARR_DEVICE_CPU, .handle = got, .bytes = sizeof got};
    zarr_memory mem = device_memory();
    zarr_store *plain = open_store(root, 0);
    zarr_array *a = make(plain, i), *b = NULL;
    uint64_t reads, writes;
    zarr_stats stats;
    zarr_tensor t;

    fill(1 + (uint32_t)i);
    zarr_tensor_host(&t, NULL, elements, BYTES, 2, all);
    OK(zarr_array_write(a, NULL, &t, NULL, &err));
    OK(zarr_array_open(&b, store, stored[i].name, NULL, &err));
    reads = count(READS);
    read_back(b, &mem, stored[i].name);
    reads = count(READS) - reads;
    fill(100 + (uint32_t)i);
    writes = count(WRITES);
    stats = write_device(b, &mem);
    writes = count(WRITES) - writes;
    read_back(a, &host, stored[i].name);
    read_back(b, &mem, stored[i].name);
    if ((direct == DIRECT_BOTH) != (reads > 0) || (direct == DIRECT_NONE && writes > 0) ||
        (direct != DIRECT_NONE && i == 0 && writes == 0))
        fail_msg("%s: %d reads and %d writes by cuFile", stored[i].name, (int)reads,
                 (int)writes);
    if (direct && stats.bytes_down > most_down(i))
        fail_msg("%s: %d bytes came to the host", stored[i].name, (int)stats.bytes_down);
    if (direct && stored[i].shard[0] && reads > SHARDS)
        fail_msg("%s: %d reads by cuFile of %d shards", stored[i].name, (int)reads,
                 SHARDS);
    no_debris();
    zarr_array_free(a);
    zarr_array_free(b);
    zarr_store_free(plain);
    zarr_memory_free(ctx, &mem);
}

static char *list[1000]; /* the environment before cuFile is opened */

/* As an application may do it; setenv() makes another list. */
static int list_is_ours(void)
{
    for (size_t i = 0; environ[i]; i++) {
        if (i + 1 == sizeof list / sizeof *list)
            return 0;
        list[i] = environ[i];
    }
    environ = list;
    return 1;
}

static void test_arrays(void **state)
{
    (void)state;
    for (int i = 0; i < N_STORED; i++)
        both_ways(i, expect_direct(i));
    assert_null(getenv("CUFILE_LOGFILE_PATH"));
    assert_ptr_equal(environ, list); /* no list was freed that another thread reads */
    assert_int_not_equal(access("cufile.log", F_OK), 0);
}

/* Nothing visits the host between the disk and a decoder of the device. */
static void read_direct(int i, uint32_t trust, const char *preference)
{
    const zarr_tuning tuning = {.struct_size = sizeof tuning,
                                .codec_preference = preference};
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_memory mem = device_memory();
    zarr_array *a = make(store, i);
    zarr_tensor t;
    uint64_t reads;

    fill(60);
    zarr_tensor_host(&t, NULL, elements, BYTES, 2, all);
    OK(zarr_array_write(a, NULL, &t, NULL, &err));
    opts.stats = &stats;
    opts.trust = trust;
    opts.tuning = &tuning;
    t = on_device(&mem);
    reads = count(READS);
    OK(zarr_array_read(a, NULL, &t, &opts, &err));
    assert_true(count(READS) > reads);
    fetch((uint8_t *)got, &mem, BYTES);
    assert_memory_equal(got, elements, BYTES);
    assert_int_equal(stats.chunks_fallback + stats.chunks_distrusted, 0);
    assert_int_equal(stats.bytes_up, 0);
    assert_int_equal(stats.bytes_down, 0);
    assert_int_equal(stats.copies_decoded_host, 0);
    zarr_memory_free(ctx, &mem);
    zarr_array_free(a);
}

/* Trusted zstd goes to nvCOMP, whose input a kernel checks, and any zstd to the kernels
 * that are named. */
static void test_zstd_direct(void **state)
{
    enum {
        ZSTD = 4,
        BLOSC_ZSTD = 5
    };

    (void)state;
    assert_string_equal(stored[ZSTD].name, "zstd");
    assert_string_equal(stored[BLOSC_ZSTD].name, "blosc_zstd");
    read_direct(ZSTD, ZARR_TRUST_FULL, NULL);
    read_direct(ZSTD, ZARR_TRUST_NONE, "zstd=cuda.zstd");
    read_direct(BLOSC_ZSTD, ZARR_TRUST_NONE, "blosc=cuda.blosc_zstd");
}

static void test_values(void **state)
{
    static const uint64_t sizes[] = {1,     4095,  16383,   16384,          16385,
                                     20480, 70001, 1 << 20, 9 * 1000 * 1000};
    const uint64_t room = UINT64_C(9) << 20;
    uint8_t *a = malloc(room), *b = malloc(room);
    zarr_memory mem, part;

    (void)state;
    assert_true(a && b);
    OK(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_CUDA, 0, room, &err));
    for (uint64_t i = 0; i < room; i++)
        a[i] = (uint8_t)(i * 7 + i / 251);
    put(&mem, a, room);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint64_t n = sizes[i], from = n / 3, want = n - from;
        zarr_store_value v = ZARR_STORE_VALUE_INIT;

        part = mem;
        part.bytes = n;
        OK(zarr_store_write(store, "v", &part, NULL, &v, NULL, &err));
        assert_int_equal(v.down_bytes, n < 16384 ? n : n % 4096);
        memset(b, 0, room);
        v.bytes = room;
        OK(zarr_store_get(store, "v", 0, b, &v.bytes, NULL, &err));
        assert_int_equal(v.bytes, n);
        assert_memory_equal(a, b, n);
        part = mem;
        part.offset = 5;
        part.bytes = room - 5;
        OK(zarr_store_read(store, "v", from, &part, &v, NULL, &err));
        assert_int_equal(v.done_bytes, want);
        assert_int_equal(v.up_bytes, want < 16384 ? want : 0);
        part.bytes = want;
        fetch(b, &part, want);
        assert_memory_equal(a + from, b, want);
        put(&mem, a, room);
    }
    zarr_memory_free(ctx, &mem);
    free(a);
    free(b);
}

/* A handle is kept for reads, and new after the value was replaced. */
static void test_handles(void **state)
{
    zarr_array *a = make(store, 0);
    zarr_memory mem = device_memory();
    uint64_t before;

    (void)state;
    fill(7);
    write_device(a, &mem);
    read_back(a, &mem, "first");
    before = count(REGISTERED);
    read_back(a, &mem, "again");
    assert_int_equal(count(REGISTERED), before);
    fill(8);
    write_device(a, &mem);
    read_back(a, &mem, "replaced");
    assert_true(count(REGISTERED) > before);
    zarr_memory_free(ctx, &mem);
    zarr_array_free(a);
}

static void test_short(void **state)
{
    static const size_t most[] = {4096, 4096 * 3, 5000};

    (void)state;
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        move_at_most(most[i]);
        both_ways(0, DIRECT_BOTH);
        both_ways(1, DIRECT_BOTH);
    }
    move_at_most(SIZE_MAX);
}

/* ---- failures -------------------- */

static void fails_with(zarr_array *a, const zarr_memory *mem, long result)
{
    zarr_tensor t = on_device(mem);

    for (uint64_t k = 1; k < 5; k++) {
        fail_call(k, result);
        assert_int_equal(zarr_array_read(a, NULL, &t, NULL, &err), ZARR_ERR_IO);
        assert_non_null(strstr(err.message, "GPUDirect Storage: read"));
        if (result != -1)
            assert_non_null(strstr(err.message, "5008"));
        fail_call(0, 0);
        read_back(a, mem, "after a failure");
    }
    /* a write that fails leaves every chunk whole: old or new */
    fail_call(1, result);
    assert_int_equal(zarr_array_write(a, NULL, &t, NULL, &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "GPUDirect Storage: write"));
    fail_call(0, 0);
    no_debris();
    read_back(a, mem, "after a write that failed"); /* it wrote the same elements */
}

static void test_failures(void **state)
{
    zarr_array *a = make(store, 0);
    zarr_memory mem = device_memory();

    (void)state;
    fill(3);
    write_device(a, &mem);
    read_back(a, &mem, "before");
    fails_with(a, &mem, -1);
    fails_with(a, &mem, -5008);
    zarr_memory_free(ctx, &mem);
    zarr_array_free(a);
}

/* Each chunk is the old one or, of fill(12), the new one. */
static void read_chunks(zarr_array *a, const zarr_memory *mem)
{
    zarr_tensor t = on_device(mem);
    const size_t n = ELEMENTS / 4; /* rows of a chunk follow each other */

    OK(zarr_array_read(a, NULL, &t, NULL, &err));
    fetch((uint8_t *)got, mem, BYTES);
    for (size_t i = 0; i < ELEMENTS; i += n) {
        fill(11);
        if (memcmp(got + i, elements + i, 4 * n) == 0)
            continue;
        fill(12);
        if (memcmp(got + i, elements + i, 4 * n) != 0)
            fail_msg("a mix of two values");
    }
}

/* The value that a killed writer was replacing is the old one. */
static void test_killed(void **state)
{
    char *const argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t) "write", root,
                          NULL};
    zarr_memory mem = device_memory();
    zarr_array *a = make(store, 0);
    pid_t child;
    int status = 0;

    (void)state;
    fill(11);
    write_device(a, &mem);
    for (int k = 1; k <= 2; k++) {
        assert_int_equal(setenv("FAKECUFILE_KILL", k == 1 ? "1" : "3", 1), 0);
        assert_int_equal(posix_spawn(&child, program, NULL, NULL, argv, environ), 0);
        assert_int_equal(unsetenv("FAKECUFILE_KILL"), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        read_chunks(a, &mem);
    }
    zarr_array_free(a);
    zarr_memory_free(ctx, &mem);
    OK(zarr_store_clean(store, "", 0, NULL, NULL, &err));
}

/* ---- without cuFile's fast way -------------------- */

static int begin_with(void)
{
    begin_context(NULL, NULL);
    zarr_store_free(store);
    store = open_store(url, ZARR_STORE_CREATE);
    return 0;
}

static void take_log(void *user, uint32_t level, const char *text)
{
    (void)user;
    if (level <= ZARR_LOG_WARN)
        (void)snprintf(told, sizeof told, "%s", text);
}

/* A store that cannot do it says why. */
static void says_why(const char *why)
{
    static const char *const plugins[] = {PORT_PLUGIN, NULL};
    zarr_context_options opts = ZARR_CONTEXT_OPTIONS_INIT;
    zarr_context *other = NULL;
    zarr_store *s = NULL;

    opts.plugins = plugins;
    opts.log = take_log;
    told[0] = '\0';
    OK(zarr_context_create(&other, &opts, &err));
    OK(zarr_store_open(&s, other, url, NULL, &err));
    if (why ? !strstr(told, why) : told[0] != '\0')
        fail_msg("it said: %s", told);
    zarr_store_free(s);
    zarr_context_free(other);
}

static void test_not_native(void **state)
{
    static const char *const settings[][3] = {
        {"FAKECUFILE_NVFS", "0", "no nvidia-fs"},
        {"FAKECUFILE_REFUSE", "1", "cuFile refuses files of this file system"}};

    (void)state;
    says_why(NULL);
    for (size_t i = 0; i < 2; i++) {
        zarr_store_caps caps = ZARR_STORE_CAPS_INIT;

        end_context();
        assert_int_equal(setenv(settings[i][0], settings[i][1], 1), 0);
        assert_int_equal(begin_with(), 0);
        zarr_store_capabilities(store, &caps);
        assert_int_equal(caps.n_device_types, 0);
        assert_true(caps.flags & ZARR_STORE_CAP_FAST_GET);
        says_why(settings[i][2]);
        for (int k = 0; k < N_STORED; k++)
            both_ways(k, DIRECT_NONE);
        end_context();
        assert_int_equal(unsetenv(settings[i][0]), 0);
        assert_int_equal(begin_with(), 0);
    }
}

/* Files that are refused later go through pinned memory, one by one. */
static void test_refused_later(void **state)
{
    zarr_store_value v = ZARR_STORE_VALUE_INIT;
    zarr_memory mem = device_memory();

    (void)state;
    fill(5);
    put(&mem, (const uint8_t *)elements, BYTES);
    assert_int_equal(setenv("FAKECUFILE_REFUSE", "1", 1), 0);
    OK(zarr_store_write(store, "w", &mem, NULL, &v, NULL, &err));
    assert_int_equal(v.down_bytes, BYTES);
    OK(zarr_store_read(store, "w", 0, &mem, &v, NULL, &err));
    assert_int_equal(v.up_bytes, BYTES);
    assert_int_equal(unsetenv("FAKECUFILE_REFUSE"), 0);
    fetch((uint8_t *)got, &mem, BYTES);
    assert_memory_equal(got, elements, BYTES);
    zarr_memory_free(ctx, &mem);
}

/* ---- the real library -------------------- */

static void test_real(void **state)
{
    const char *const file = getenv("ZARRC_TEST_CUFILE");
    struct cufile_result (*version)(int *out), r;
    void *library, *symbol;
    int n = 0;

    (void)state;
    if (!file) {
        print_message("skipped: ZARRC_TEST_CUFILE names no libcufile\n");
        skip();
    }
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
#define IS_THERE(result, name, arguments) assert_non_null(dlsym(library, #name));
    CUFILE_CALLS(IS_THERE)
    symbol = dlsym(library, "cuFileGetVersion");
    memcpy(&version, &symbol, sizeof version);
    r = version(&n);
    assert_int_equal(r.code, 0);
    assert_true(n >= 1000);
}

/* ---- all -------------------- */

static int begin(void **state)
{
    (void)state;
    return begin_with();
}

static int end(void **state)
{
    (void)state;
    end_context();
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* The child of test_killed(). */
static int write_in_child(const char *where)
{
    zarr_memory mem;
    zarr_array *a = NULL;

    (void)snprintf(url, sizeof url, "gds:%s", where);
    (void)begin_with();
    mem = device_memory();
    OK(zarr_array_open(&a, store, stored[0].name, NULL, &err));
    fill(12);
    write_device(a, &mem);
    return 0;
}

/* O_DIRECT, which not every file system has. */
static int has_direct(void)
{
    const int fd = open(root, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays),        cmocka_unit_test(test_zstd_direct),
        cmocka_unit_test(test_values),        cmocka_unit_test(test_handles),
        cmocka_unit_test(test_short),         cmocka_unit_test(test_failures),
        cmocka_unit_test(test_killed),        cmocka_unit_test(test_not_native),
        cmocka_unit_test(test_refused_later), cmocka_unit_test(test_real),
    };
    int rc;

    program = argv[0];
    if (setenv("ZARRC_CUFILE", FAKE_CUFILE, 1) != 0 ||
        setenv("ZARRC_NVCOMP", FAKE_NVCOMP, 1) != 0)
        return 1;
    if (argc > 2)
        return write_in_child(argv[2]);
    (void)snprintf(root, sizeof root, "test_gds-XXXXXX");
    if (!list_is_ours() || !mkdtemp(root))
        return 1;
    if (!is_fake() || !has_direct()) {
        printf("skipped: %s\n", is_fake() ? "no O_DIRECT in the working directory"
                                          : "not over the fake driver");
        (void)rmdir(root);
        return 77;
    }
    (void)snprintf(url, sizeof url, "gds:%s", root);
    rc = cmocka_run_group_tests(tests, begin, end);
    (void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return rc;
}
