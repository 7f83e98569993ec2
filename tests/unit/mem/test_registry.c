/*
 * tests/unit/mem/test_registry.c - registering memory kinds, host blocks with and
 * without an application's allocator, and conversion of handles to pointers, which fails
 * for devices.
 */
#include "unit/mem/mem_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fakedev/fakedev.h"

struct counted {
    int64_t live, calls, fail_at;
};

static void *counted_alloc(void *user, size_t bytes)
{
    struct counted *c = user;

    if (++c->calls == c->fail_at)
        return NULL;
    c->live++;
    return malloc(bytes);
}

static void *counted_realloc(void *user, void *block, size_t bytes)
{
    struct counted *c = user;

    if (++c->calls == c->fail_at)
        return NULL;
    c->live += !block;
    return realloc(block, bytes);
}

static void counted_free(void *user, void *block)
{
    struct counted *c = user;

    c->live -= !!block;
    free(block);
}

static void host_blocks(void **state)
{
    static const uint64_t sizes[] = {
        0, 1, 64, 4095, 1 << 20, (4 << 20) - 1, 4 << 20, (5 << 20) + 3};
    struct counted count = {0};
    const zarr_allocator alloc = {&count, counted_alloc, counted_realloc, counted_free};
    const zarr_allocator *allocs[] = {NULL, &alloc};

    ZR_UNUSED(state);
    for (size_t a = 0; a < 2; a++) {
        struct zr_memory_registry r;
        const struct zr_backend *be;

        assert_int_equal(zr_memory_registry_init(&r, allocs[a], NULL), ZARR_OK);
        assert_int_equal(zr_backend_find(&r, ZARR_DEVICE_CPU, &be, NULL), ZARR_OK);
        for (size_t k = 0; k < ZR_COUNT(sizes); k++) {
            zarr_memory m = {0};

            assert_int_equal(be->vt.alloc(be->self, 0, sizes[k], &m, NULL), ZARR_OK);
            assert_int_equal(m.bytes, sizes[k]);
            assert_int_equal(m.device_type, ZARR_DEVICE_CPU);
            assert_int_equal((uintptr_t)m.handle % (sizes[k] >= 4 << 20 ? 2 << 20 : 64),
                             0);
            memset(m.handle, 1, sizes[k]);
            be->vt.free(be->self, &m);
            assert_null(m.handle);
            be->vt.free(be->self, &m);
        }
        zr_memory_registry_deinit(&r);
    }
    assert_true(count.calls > (int64_t)ZR_COUNT(sizes));
    assert_int_equal(count.live, 0);
}

static void host_without_memory(void **state)
{
    struct counted count = {.fail_at = 1};
    const zarr_allocator alloc = {&count, counted_alloc, counted_realloc, counted_free};
    struct zr_memory_registry r;
    const struct zr_backend *be;
    zarr_memory m = {0};

    ZR_UNUSED(state);
    assert_int_equal(zr_memory_registry_init(&r, &alloc, NULL), ZARR_ERR_NO_MEMORY);
    zr_memory_registry_deinit(&r);
    assert_int_equal(zr_memory_registry_init(&r, &alloc, NULL), ZARR_OK);
    assert_int_equal(zr_backend_find(&r, ZARR_DEVICE_CPU, &be, NULL), ZARR_OK);
    count.fail_at = count.calls + 1;
    assert_int_equal(be->vt.alloc(be->self, 0, 100, &m, NULL), ZARR_ERR_NO_MEMORY);
    assert_int_equal(be->vt.alloc(be->self, 0, UINT64_MAX, &m, NULL), ZARR_ERR_NO_MEMORY);
    assert_int_equal(be->vt.alloc(be->self, 0, UINT64_MAX - 200, &m, NULL),
                     ZARR_ERR_NO_MEMORY);
    count.fail_at = count.calls + 1;
    assert_int_equal(zr_memory_register(&r, zarr_fakedev_vtable(), NULL, "test", NULL),
                     ZARR_ERR_NO_MEMORY);
    zr_memory_registry_deinit(&r);
    assert_int_equal(count.live, 0);
}

static void register_backends(void **state)
{
    struct zr_memory_registry r;
    const struct zr_backend *be;
    zarr_memory_vtable v = *zarr_fakedev_vtable();
    zarr_error err = {0};
    char origin[] = "here";

    ZR_UNUSED(state);
    assert_int_equal(zr_memory_registry_init(&r, NULL, &err), ZARR_OK);
    assert_int_equal(zr_memory_register(&r, NULL, NULL, "x", &err), ZARR_ERR_INVALID);
    v.close = NULL;
    v.copy = NULL;
    assert_int_equal(zr_memory_register(&r, &v, NULL, "x", &err), ZARR_ERR_INVALID);
    v.copy = zarr_fakedev_vtable()->copy;
    v.device_type = 32;
    assert_int_equal(zr_memory_register(&r, &v, NULL, "x", &err), ZARR_ERR_INVALID);
    v.device_type = 0;
    assert_int_equal(zr_memory_register(&r, &v, NULL, "x", &err), ZARR_ERR_INVALID);
    v.device_type = ZARR_DEVICE_CPU;
    assert_int_equal(zr_memory_register(&r, &v, NULL, "x", &err), ZARR_ERR_EXISTS);
    v.device_type = ZARR_DEVICE_EXT;
    v.alignment = 48;
    assert_int_equal(zr_memory_register(&r, &v, NULL, "x", &err), ZARR_ERR_INVALID);
    v.alignment = 0;
    v.struct_size = 8;
    assert_int_equal(zr_memory_register(&r, &v, NULL, "x", &err), ZARR_ERR_ABI);
    v.struct_size = sizeof v;
    assert_int_equal(zr_backend_find(&r, ZARR_DEVICE_EXT, &be, &err),
                     ZARR_ERR_UNSUPPORTED);
    assert_int_equal(zr_memory_register(&r, &v, NULL, origin, &err), ZARR_OK);
    origin[0] = 'X'; /* copied */
    assert_int_equal(zr_backend_find(&r, ZARR_DEVICE_EXT, &be, &err), ZARR_OK);
    assert_string_equal(be->entry.origin, "here");
    assert_int_equal(be->vt.alignment, 64);
    assert_int_equal(zr_memory_register(&r, &v, NULL, "y", &err), ZARR_ERR_EXISTS);
    v.device_type = ZARR_DEVICE_OPENCL; /* another kind with the same name */
    assert_int_equal(zr_memory_register(&r, &v, NULL, "y", &err), ZARR_ERR_EXISTS);
    assert_non_null(strstr(err.message, "is taken by device type 12 of here"));
    v.name = "host";
    assert_int_equal(zr_memory_register(&r, &v, NULL, "y", &err), ZARR_ERR_EXISTS);
    assert_non_null(strstr(err.message, "is taken by device type 1 of core"));
    v.name = "third";
    assert_int_equal(zr_memory_register(&r, &v, NULL, "y", &err), ZARR_OK);
    assert_true(zr_device_is_host(&r, ZARR_DEVICE_CPU));
    assert_false(zr_device_is_host(&r, ZARR_DEVICE_EXT));
    assert_false(zr_device_is_host(&r, ZARR_DEVICE_CUDA));
    zr_memory_registry_deinit(&r);
}

/* A table of the first release lacks the entries after close; a newer one is longer than
 * the library's. */
static void tables_of_other_sizes(void **state)
{
    const uint32_t first_release = (uint32_t)ZR_SIZE_THROUGH(zarr_memory_vtable, close);
    struct {
        zarr_memory_vtable v;
        void *entry_of_tomorrow;
    } newer = {*zarr_fakedev_vtable(), &newer};
    struct zr_memory_registry r;
    const struct zr_backend *be;
    zarr_memory_vtable v;
    zarr_error err = {0};

    ZR_UNUSED(state);
    memset(&v, 0xff, sizeof v); /* what lies behind the table */
    memcpy(&v, zarr_fakedev_vtable(), first_release);
    v.close = NULL;
    assert_int_equal(zr_memory_registry_init(&r, NULL, &err), ZARR_OK);
    v.struct_size = first_release - 1;
    assert_int_equal(zr_memory_register(&r, &v, NULL, "x", &err), ZARR_ERR_ABI);
    v.struct_size = first_release;
    assert_int_equal(zr_memory_register(&r, &v, NULL, "x", &err), ZARR_OK);
    assert_int_equal(zr_backend_find(&r, ZARR_DEVICE_EXT, &be, &err), ZARR_OK);
    assert_int_equal(be->vt.struct_size, sizeof v);
    assert_null(be->vt.close);
    newer.v.struct_size = sizeof newer;
    newer.v.name = "newer";
    newer.v.device_type = ZARR_DEVICE_OPENCL;
    newer.v.close = NULL;
    assert_int_equal(zr_memory_register(&r, &newer.v, NULL, "x", &err), ZARR_OK);
    assert_int_equal(zr_backend_find(&r, ZARR_DEVICE_OPENCL, &be, &err), ZARR_OK);
    assert_ptr_equal(be->vt.copy_box, newer.v.copy_box);
    zr_memory_registry_deinit(&r);
}

static void host_pointers(void **state)
{
    struct zr_memory_registry r;
    uint8_t bytes[64];
    zarr_memory m = zr_mem_of_host(bytes, sizeof bytes), part;
    void *p;

    ZR_UNUSED(state);
    assert_int_equal(zr_memory_registry_init(&r, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_mem_host_ptr(&r, &m, 64, &p, NULL), ZARR_OK);
    assert_ptr_equal(p, bytes);
    assert_int_equal(zr_mem_host_ptr(&r, &m, 65, &p, NULL), ZARR_ERR_INTERNAL);
    assert_null(p);
    assert_true(zr_mem_slice(&m, 60, 4, &part));
    assert_int_equal(zr_mem_host_ptr(&r, &part, 4, &p, NULL), ZARR_OK);
    assert_ptr_equal(p, bytes + 60);
    assert_int_equal(zr_mem_host_ptr(&r, &part, 5, &p, NULL), ZARR_ERR_INTERNAL);
    assert_false(zr_mem_slice(&m, 60, 5, &part));
    assert_false(zr_mem_slice(&m, UINT64_MAX, 2, &part));
    assert_true(zr_mem_slice(&m, 64, 0, &part));
    part = m;
    part.offset = UINT64_MAX;
    assert_int_equal(zr_mem_host_ptr(&r, &part, 1, &p, NULL), ZARR_ERR_INTERNAL);
    part = (zarr_memory){.device_type = ZARR_DEVICE_CPU};
    assert_int_equal(zr_mem_host_ptr(&r, &part, 0, &p, NULL), ZARR_OK);
    part.bytes = 1;
    assert_int_equal(zr_mem_host_ptr(&r, &part, 1, &p, NULL), ZARR_ERR_INTERNAL);
    part.device_type = ZARR_DEVICE_OPENCL;
    assert_int_equal(zr_mem_host_ptr(&r, &part, 1, &p, NULL), ZARR_ERR_UNSUPPORTED);
    zr_memory_registry_deinit(&r);
}

/* Accesses an address in a child process; returns the signal that ended the child. */
static int signal_of_touch(volatile uint8_t *p, bool write)
{
    int how = 0;
    const pid_t child = fork();

    if (child == 0) {
        (void)signal(SIGSEGV, SIG_DFL);
        (void)signal(SIGBUS, SIG_DFL);
        if (write)
            *p = 1;
        else
            (void)*p;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFSIGNALED(how) ? WTERMSIG(how) : 0;
}

static void device_memory_is_out_of_reach(void **state)
{
    struct zr_memory_registry r;
    const struct zr_backend *be;
    zarr_error err = {0};
    zarr_memory m = {0};
    uint8_t *was;
    void *p;

    ZR_UNUSED(state);
    assert_int_equal(zr_memory_registry_init(&r, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_memory_register(&r, zarr_fakedev_vtable(), zarr_fakedev_create(),
                                        "test", NULL),
                     ZARR_OK);
    assert_int_equal(zr_backend_find(&r, ZARR_DEVICE_EXT, &be, NULL), ZARR_OK);
    assert_int_equal(be->vt.alloc(be->self, 0, 1000, &m, NULL), ZARR_OK);
    assert_int_equal(zr_mem_host_ptr(&r, &m, 10, &p, &err), ZARR_ERR_MEMORY_KIND);
    assert_non_null(strstr(err.message, "fake"));
    was = m.handle;
    assert_int_equal(signal_of_touch(was, false), SIGSEGV);
    assert_int_equal(signal_of_touch(was + 999, true), SIGSEGV);
    be->vt.free(be->self, &m);
    assert_int_equal(signal_of_touch(was, false), SIGSEGV); /* and behind its end */
    zr_memory_registry_deinit(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_blocks),
        cmocka_unit_test(host_without_memory),
        cmocka_unit_test(register_backends),
        cmocka_unit_test(tables_of_other_sizes),
        cmocka_unit_test(host_pointers),
        cmocka_unit_test(device_memory_is_out_of_reach),
    };

    return cmocka_run_group_tests_name("mem_registry", tests, NULL, NULL);
}
