/*
 * unit/http/test_device.c - reads from a server, by HTTP and as objects of S3, into
 * memory of a device. The body of each answer lands in pinned memory and goes up from
 * there, in the same waves and with the same calls as the bytes of files. No reactor
 * decodes.
 */
#include "unit/pipe/device_test.h"

#include "net/net.h"

#include <stdlib.h>
#include <sys/stat.h>

static zarr_memory_vtable table;
static struct {
    atomic_uint_fast64_t pinned, other; /* bytes that went up from such host memory */
} from;

static void note_source(const zarr_memory *dst, const zarr_memory *src, uint64_t bytes)
{
    int32_t type = ZARR_DEVICE_CPU, id = 0;

    if (dst->device_type != ZARR_DEVICE_EXT || src->device_type == ZARR_DEVICE_EXT)
        return;
    (void)table.classify(device, (const char *)src->handle + src->offset, &type, &id);
    atomic_fetch_add(type == ZARR_DEVICE_CUDA_HOST ? &from.pinned : &from.other, bytes);
}

static zarr_status copy(void *self, const zarr_memory *dst, const zarr_memory *src,
                        uint64_t bytes, void *stream, zarr_error *err)
{
    note_source(dst, src, bytes);
    return zarr_fakedev_vtable_late()->copy(self, dst, src, bytes, stream, err);
}

static zarr_status copy_list(void *self, const zarr_memory *dst, const zarr_memory *src,
                             uint64_t n, void *stream, zarr_error *err)
{
    for (uint64_t i = 0; i < n; i++)
        note_source(&dst[i], &src[i], src[i].bytes);
    return zarr_fakedev_vtable_late()->copy_list(self, dst, src, n, stream, err);
}

/* Reads an array of a store to the device, with nothing kept from earlier reads. config:
 * options of the store, or NULL. */
static void read_from(const struct pw *w, const char *url, const char *config,
                      struct counts *c)
{
    const zarr_store_options store_opts = {.struct_size = sizeof store_opts,
                                           .config = config};
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_store *store = NULL;
    zarr_array *a = NULL;
    zarr_tensor t;
    zarr_memory mem;

    assert_ok(zarr_store_open(&store, w->ctx, url, &store_opts, &terr));
    assert_ok(zarr_array_open(&a, store, "a", NULL, &terr));
    mem = tensor_new(w, &t, sizes);
    zarr_context_trim(w->ctx);
    atomic_store(&from.pinned, 0);
    atomic_store(&from.other, 0);
    read_data(c, a, &t, &mem, &opts);
    zarr_memory_free(w->ctx, &mem);
    zarr_array_free(a);
    zarr_store_free(store);
}

/* What a read from a server does beyond that of the same files. */
static void compare_reads(const struct counts *file, const struct counts *far)
{
    assert_true(far->moved.bytes_up >= N);
    assert_int_equal(atomic_load(&from.pinned), far->moved.bytes_up);
    assert_int_equal(atomic_load(&from.other), 0);
    assert_int_equal(far->stats.bytes_up, far->moved.bytes_up);
    assert_int_equal(far->stats.waves, file->stats.waves);
    /* The store of a server discards the bytes between near ranges, and no others. */
    assert_true(far->stats.bytes_stored <= file->stats.bytes_stored);
    assert_int_equal(file->moved.bytes_up - far->moved.bytes_up,
                     file->stats.bytes_stored - far->stats.bytes_stored);
    assert_int_equal(far->moved.copies_up, file->moved.copies_up);
    assert_int_equal(far->moved.copies_down, 0);
    assert_int_equal(far->late.lists, file->late.lists);
    assert_int_equal(far->late.syncs, file->late.syncs);
    assert_true(far->late.pinned_allocs >= 1);
}

/* False: a library is missing. */
static bool can_open(const struct pw *w, const char *url, const char *config)
{
    const zarr_store_options opts = {.struct_size = sizeof opts, .config = config};
    zarr_store *store = NULL;
    const zarr_status st = zarr_store_open(&store, w->ctx, url, &opts, NULL);

    zarr_store_free(store);
    return st != ZARR_ERR_UNSUPPORTED;
}

static void one_array(int kind, uint32_t threads, uint64_t wave)
{
    const char *const root = getenv("ZR_SERVER_ROOT");
    char dir[1024], url[1024], config[1100], command[1100];
    struct counts file, far;
    struct pw w;

    (void)snprintf(dir, sizeof dir, "%s/device", root);
    (void)snprintf(url, sizeof url, "%s/device", getenv("ZR_SERVER"));
    (void)snprintf(config, sizeof config,
                   "{\"endpoint\": \"%s\", \"anonymous\": true, \"style\": \"path\"}",
                   getenv("ZR_SERVER"));
    assert_int_equal(mkdir(dir, 0700), 0);
    open_world(&w, threads, wave);
    zarr_store_free(w.store);
    assert_ok(zarr_store_open(&w.store, w.ctx, dir, NULL, &terr));
    zarr_array_free(filled_array(&w, "a", kind));
    read_from(&w, dir, NULL, &file);
    read_from(&w, url, NULL, &far);
    compare_reads(&file, &far);
    if (can_open(&w, "s3://device", config)) {
        read_from(&w, "s3://device", config, &far);
        compare_reads(&file, &far);
    }
    close_world(&w);
    (void)snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
}

static void test_reads(void **state)
{
    (void)state;
    table = *zarr_fakedev_vtable_late();
    table.copy = copy;
    table.copy_list = copy_list;
    device_table = &table;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            one_array(kind, threads, 1 << 20);
            one_array(kind, threads, 4096);
        }
    device_table = NULL;
}

/* ---- who decodes ---- */

static atomic_int n_decoded, n_on_reactors;

static zarr_status watched_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                  zarr_codec_exec *exec, zarr_error *err)
{
    atomic_fetch_add(&n_decoded, (int)n);
    atomic_fetch_add(&n_on_reactors, zr_net_is_reactor());
    return pw_copy_same(self, jobs, n, exec, err);
}

static void add_watched(const struct pw *w)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.watched",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    const zarr_codec_impl_vtable impl = {.struct_size = sizeof impl,
                                         .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                                 ZARR_CODEC_CAN_ENCODE,
                                         .codec = "test.watched",
                                         .impl = "cpu.watched",
                                         .in_kinds = CPU,
                                         .out_kinds = CPU,
                                         .encode = pw_copy_same,
                                         .decode = watched_decode};

    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &impl, "test", &terr));
}

/* Reads an array that the server has into memory of the host. */
static void read_served(uint32_t threads, const char *codecs, const uint64_t *chunk)
{
    static int32_t got[N];
    char dir[1024], url[1024], command[1100];
    zarr_store *store = NULL;
    zarr_array *a = NULL;
    zarr_tensor t;
    struct pw w;

    (void)snprintf(dir, sizeof dir, "%s/served", getenv("ZR_SERVER_ROOT"));
    (void)snprintf(url, sizeof url, "%s/served", getenv("ZR_SERVER"));
    assert_int_equal(mkdir(dir, 0700), 0);
    open_world(&w, threads, 4096);
    assert_ok(zarr_store_open(&store, w.ctx, dir, NULL, &terr));
    a = pw_array(store, "a", codecs, shape, chunk);
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    zarr_array_free(a);
    zarr_store_free(store);
    assert_ok(zarr_store_open(&store, w.ctx, url, NULL, &terr));
    assert_ok(zarr_array_open(&a, store, "a", NULL, &terr));
    memset(got, 0, sizeof got);
    zarr_tensor_host(&t, NULL, got, sizeof got, 2, sizes);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    assert_memory_equal(got, data, sizeof got);
    zarr_array_free(a);
    zarr_store_free(store);
    close_world(&w);
    (void)snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
}

static void test_reactors_never_decode(void **state)
{
    static const char *const codecs[] = {
        "[" BYTES ",{\"name\":\"test.watched\"}]",
        "[" SHARD("[5,4]", BYTES ",{\"name\":\"test.watched\"}", "end") "]"};
    static const uint64_t chunk[2] = {10, 20};

    (void)state;
    more_codecs = add_watched;
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
            atomic_store(&n_decoded, 0);
            read_served(threads, codecs[i], chunk);
            assert_true(atomic_load(&n_decoded) > 1);
            assert_int_equal(atomic_load(&n_on_reactors), 0);
        }
    more_codecs = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reads),
                                       cmocka_unit_test(test_reactors_never_decode)};

    if (!getenv("ZR_SERVER_ROOT")) {
        printf("skipped: tests/support/scripted_server.py starts this program\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
