/*
 * ports/cuda/test_cuda_tables.c - the tables of the CUDA plug-in, called as the library
 * may call them: what it does not do by chance. The program runs over the fake driver, a
 * fake nvCOMP and a fake cuFile, and loads the plug-in itself.
 */
#include "application.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BYTES = 1000,
    BLOCK = 8192,
    FILE_BYTES = 64 * 1024,
    FORKS = 100,
#if defined(__SANITIZE_THREAD__) /* it cannot follow a fork */
    HAS_FORK = 0
#else
    HAS_FORK = 1
#endif
};

static const zarr_plugin *plugin;
static void *plugin_self;

/* ---- the plug-in's host -------------------- */

static const zarr_memory_vtable *memory;
static const zarr_codec_impl_vtable *zstd;

static zarr_status failure(zarr_error *e, zarr_status st, const char *fmt, ...)
{
    (void)e;
    (void)fmt;
    return st;
}

static const char *option_text(zarr_context *c, const char *name)
{
    (void)c;
    return strcmp(name, "nvcomp") == 0   ? FAKE_NVCOMP
           : strcmp(name, "cufile") == 0 ? FAKE_CUFILE
                                         : NULL;
}

static zarr_status take_memory(zarr_context *c, const zarr_memory_vtable *vt, void *self,
                               zarr_error *e)
{
    (void)c;
    (void)self;
    (void)e;
    if (strcmp(vt->name, "cuda") == 0)
        memory = vt;
    return ZARR_OK;
}

static zarr_status take_codec(zarr_context *c, const zarr_codec_impl_vtable *vt,
                              zarr_error *e)
{
    (void)c;
    (void)e;
    if (strcmp(vt->codec, "zstd") == 0)
        zstd = vt;
    return ZARR_OK;
}

static zarr_status os_failure(zarr_error *e, zarr_status st, int os_code, const char *fmt,
                              ...)
{
    (void)e;
    (void)os_code;
    (void)fmt;
    return st;
}

static const zarr_host host = {.struct_size = sizeof host,
                               .abi = ZARR_PLUGIN_ABI,
                               .fail = failure,
                               .fail_os = os_failure,
                               .register_memory = take_memory,
                               .register_codec_impl = take_codec,
                               .option_text = option_text};

static zarr_memory block_on(int32_t device)
{
    zarr_memory mem = {0};

    OK(memory->alloc(NULL, device, BLOCK, &mem, NULL));
    return mem;
}

static zarr_memory slice_memory(const zarr_memory *mem, uint64_t at, uint64_t bytes)
{
    zarr_memory part = *mem;

    part.offset += at;
    part.bytes = bytes;
    return part;
}

/* ---- memory -------------------- */

/* The kernels of one device do not reach the memory of another. */
static void boxes_of_two_devices(void **state)
{
    zarr_memory a = block_on(0), b = block_on(1);
    zarr_box box = {.struct_size = sizeof box, .ndim = 1, .item_bytes = 4, .shape = {64}};

    (void)state;
    box.dst = (zarr_box_side){.mem = a, .stride = {4}};
    box.src = (zarr_box_side){.mem = b, .stride = {8}};
    assert_int_equal(memory->copy_box(NULL, &box, NULL, NULL), ZARR_ERR_UNSUPPORTED);
    assert_int_equal(memory->copy_boxes(NULL, &box, 1, NULL, NULL), ZARR_ERR_UNSUPPORTED);
    OK(memory->copy(NULL, &a, &b, BLOCK, NULL, NULL));
    memory->free(NULL, &a);
    memory->free(NULL, &b);
}

/* ---- nvCOMP -------------------- */

/* A call that fails leaves no work: the library gives the scratch memory to others. One
 * input has been moved there when the other output turns out to begin at a wrong place.
 */
static void failed_batch_leaves_no_work(void **state)
{
    static uint8_t marks[BLOCK], got[BLOCK];
    const zarr_chunk_spec decoded = {
        .struct_size = sizeof decoded, .exact = 1, .n_bytes = BYTES};
    const zarr_codec_binding to = {.struct_size = sizeof to,
                                   .decoded = &decoded,
                                   .encoded = &decoded,
                                   .decoded_type = ZARR_DEVICE_CUDA,
                                   .encoded_type = ZARR_DEVICE_CUDA};
    const zarr_memory on_host = {.handle = marks, .bytes = BLOCK},
                      back = {.handle = got, .bytes = BLOCK};
    zarr_memory src = block_on(0), dst = block_on(0), scratch = block_on(0);
    zarr_codec_job jobs[2] = {
        {.src = slice_memory(&src, 1, 100), .dst = slice_memory(&dst, 0, BYTES)},
        {.src = slice_memory(&src, 256, 100), .dst = slice_memory(&dst, 2049, BYTES)}};
    zarr_codec_exec exec = {.struct_size = sizeof exec, .scratch = scratch};
    void *self = NULL;

    (void)state;
    OK(zstd->bind(&self, NULL, &to, NULL));
    assert_true(zstd->scratch(self, 2, BYTES) <= BLOCK);
    OK(memory->stream_open(NULL, 0, &exec.stream, NULL));
    assert_int_equal(zstd->decode(self, jobs, 2, &exec, NULL), ZARR_ERR_UNSUPPORTED);
    assert_null(exec.pending);
    memset(marks, 0x11, sizeof marks);
    OK(memory->copy(NULL, &scratch, &on_host, BLOCK, NULL, NULL));
    OK(memory->sync(NULL, exec.stream, NULL));
    OK(memory->copy(NULL, &back, &scratch, BLOCK, NULL, NULL));
    assert_memory_equal(got, marks, BLOCK);
    memory->stream_close(NULL, exec.stream);
    zstd->close(self);
    memory->free(NULL, &src);
    memory->free(NULL, &dst);
    memory->free(NULL, &scratch);
}

/* ---- forks -------------------- */

static atomic_int is_over;
static int file_to_read;

static void must(zarr_status st)
{
    if (st != ZARR_OK)
        abort(); /* in any thread */
}

/* Threads that are in the plug-in when the process forks. */
static void *opens_streams(void *none)
{
    void *stream = NULL;

    while (!atomic_load(&is_over)) {
        must(memory->stream_open(NULL, 0, &stream, NULL));
        memory->stream_close(NULL, stream);
    }
    return none;
}

static void *reads_files(void *none)
{
    zarr_memory mem = {0};
    uint64_t staged = 0;

    must(memory->alloc(NULL, 0, FILE_BYTES, &mem, NULL));
    while (!atomic_load(&is_over))
        must(memory->read_file(NULL, file_to_read, 0, &mem, &staged, NULL));
    memory->free(NULL, &mem);
    return none;
}

static void *looks_for_libraries(void *none)
{
    const zarr_chunk_spec all = {.struct_size = sizeof all, .exact = 1, .n_bytes = BYTES};
    const zarr_codec_binding to = {.struct_size = sizeof to,
                                   .decoded = &all,
                                   .encoded = &all,
                                   .decoded_type = ZARR_DEVICE_CUDA,
                                   .encoded_type = ZARR_DEVICE_CUDA};
    const int directory = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    void *self = NULL;

    while (!atomic_load(&is_over)) {
        must(zstd->bind(&self, NULL, &to, NULL));
        zstd->close(self);
        must(memory->reaches_files(NULL, directory, NULL));
    }
    (void)close(directory);
    return none;
}

/* What the end of a context does in the child, and the start of another. */
static void child_ends(void *stream)
{
    void *self = NULL;

    alarm(30); /* a lock that no thread gives back */
    memory->stream_close(NULL, stream);
    plugin->unload(plugin_self);
    must(plugin->load(&host, NULL, &self, NULL));
    if (memory->stream_open(NULL, 0, &stream, NULL) != ZARR_ERR_DEVICE)
        _exit(1);
    plugin->unload(self);
    _exit(0);
}

/* A child can free its contexts, also if other threads worked when it was made. */
static void forks_beside_work(void **state)
{
    static void *(*const work[])(void *) = {opens_streams, opens_streams, reads_files,
                                            looks_for_libraries};
    enum {
        THREADS = sizeof work / sizeof *work
    };
    pthread_t threads[THREADS];
    void *stream = NULL;
    int how = 0, n;

    (void)state;
    if (!HAS_FORK)
        skip();
    file_to_read = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(file_to_read, FILE_BYTES), 0);
    OK(memory->stream_open(NULL, 0, &stream, NULL));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work[i], NULL), 0);
    for (n = 0; n < FORKS && how == 0; n++) {
        const pid_t child = fork();

        if (child == 0)
            child_ends(stream);
        assert_int_equal(waitpid(child, &how, 0), child);
    }
    atomic_store(&is_over, 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    memory->stream_close(NULL, stream);
    (void)close(file_to_read);
    if (how != 0)
        fail_msg("fork %d: status %#x", n, (unsigned)how);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(boxes_of_two_devices),
                                       cmocka_unit_test(failed_batch_leaves_no_work),
                                       cmocka_unit_test(forks_beside_work)};
    void *file = NULL, *symbol;
    zarr_plugin_fn door = NULL;
    int rc;

    setenv("FAKECUDA_SEED", "0", 1); /* work waits as long as it may */
    if (!is_fake())
        return 77;
    file = dlopen(PORT_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    symbol = file ? dlsym(file, "zarr_plugin_v1") : NULL;
    memcpy(&door, &symbol, sizeof door);
    plugin = door ? door() : NULL;
    if (!plugin || plugin->load(&host, NULL, &plugin_self, NULL) != ZARR_OK)
        return 1;
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    plugin->unload(plugin_self);
    return rc;
}
