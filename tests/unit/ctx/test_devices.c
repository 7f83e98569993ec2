/*
 * unit/ctx/test_devices.c - the listing of devices, and texts that name a memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fakedev/fakedev.h"
#include "unit/ctx/ctx_test.h"

/* What the backend of a test tells. */
struct tale {
    uint32_t n;
    bool is_lost; /* device_count() fails */
    bool finds;   /* devices have names */
};

static zarr_status tale_count(void *self, uint32_t *n, zarr_error *err)
{
    const struct tale *t = self;

    assert_int_equal(*n, 1);
    if (t->is_lost)
        return zr_fail(err, ZARR_ERR_DEVICE, "the driver is gone");
    *n = t->n;
    return ZARR_OK;
}

static zarr_status tale_describe(void *self, int32_t device_id, zarr_device_facts *out,
                                 zarr_error *err)
{
    (void)self;
    assert_int_equal(out->struct_size, sizeof *out);
    assert_int_equal(out->total_bytes | out->free_bytes, 0);
    if (device_id == 1)
        return zr_fail(err, ZARR_ERR_DEVICE, "device 1 is lost");
    if (device_id == 2) { /* not UTF-8, and not terminated */
        memset(out->name, 0xC3, sizeof out->name);
        return ZARR_OK;
    }
    strcpy(out->name, "Example 9000");
    out->total_bytes = 3ull << 30;
    out->free_bytes = 1ull << 29;
    return ZARR_OK;
}

static zarr_status tale_find(void *self, const char *text, int32_t *device_id,
                             zarr_error *err)
{
    (void)self;
    if (strcmp(text, "Wrong") == 0)
        *device_id = -5;
    else if (strcmp(text, "GPU:Seven") == 0)
        *device_id = 7;
    else
        return zr_fail(err, ZARR_ERR_INVALID, "nothing is called %s", text);
    return ZARR_OK;
}

static void add_tale(zarr_context *ctx, const char *name, int32_t type, uint32_t flags,
                     struct tale *t)
{
    zarr_memory_vtable v = *zarr_fakedev_vtable();

    v.name = name;
    v.device_type = type;
    v.flags |= flags;
    v.close = NULL;
    v.device_count = tale_count;
    v.describe = tale_describe;
    v.find = t->finds ? tale_find : NULL;
    assert_ok(zarr_context_register_memory(ctx, &v, t, "test", &terr));
}

struct seen {
    char text[2000];
    int stop_after;
};

static int see(void *user, const zarr_registry_item *item)
{
    struct seen *s = user;
    const size_t n = strlen(s->text);

    assert_int_equal(item->registry, ZARR_REGISTRY_DEVICE);
    snprintf(s->text + n, sizeof s->text - n, "%s=%s/%s/%d:%d/%s\n", item->name, item->of,
             item->origin, (int)item->device_type, (int)item->device_id,
             item->device_type == ZARR_DEVICE_CPU ? "" : item->detail);
    if (item->device_type == ZARR_DEVICE_CPU)
        assert_true(item->total_bytes >= item->free_bytes && item->free_bytes > 0);
    return --s->stop_after == 0;
}

static void test_list(void **state)
{
    static const char want[] =
        "host:0=host/core/1:0/\n"
        "cuda:0=tale/test/2:0/Example 9000, 3.0 GiB, 0.5 GiB free\n"
        "cuda:1=tale/test/2:1/device 1 is lost\n"
        "cuda:2=tale/test/2:2/\n"
        "lost=lost/test/20:0/the driver is gone\n"
        "many=many/test/21:0/memory backend \"many\" counts 5000 "
        "devices\n";
    struct tale tale = {.n = 3}, none = {.n = 0}, lost = {.is_lost = true},
                many = {.n = 5000};
    struct seen seen = {.text = ""}, two = {.stop_after = 2};
    zarr_context *ctx = NULL;

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    add_tale(ctx, "tale", ZARR_DEVICE_CUDA, 0, &tale);
    add_tale(ctx, "pool", ZARR_DEVICE_CUDA, ZARR_MEMORY_ALLOCATOR, &tale);
    add_tale(ctx, "lost", 20, 0, &lost);
    add_tale(ctx, "many", 21, 0, &many);
    add_tale(ctx, "none", 22, 0, &none);
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_DEVICE, see, &seen, &terr));
    assert_string_equal(seen.text, want);
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_DEVICE, see, &two, &terr));
    assert_int_equal(two.stop_after, 0);
    assert_status(zarr_context_list(ctx, ZARR_REGISTRY_DEVICE + 1, see, &seen, &terr),
                  ZARR_ERR_INVALID);
    zarr_context_free(ctx);
}

/* A table that ends before the entries for listings has one device. */
static void test_old_table(void **state)
{
    struct tale tale = {.n = 3};
    struct seen seen = {.text = ""};
    zarr_memory_vtable v = *zarr_fakedev_vtable();
    zarr_context *ctx = NULL;

    (void)state;
    v.close = NULL;
    v.device_count = tale_count;
    v.struct_size = (uint32_t)offsetof(zarr_memory_vtable, device_count);
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_context_register_memory(ctx, &v, &tale, "test", &terr));
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_DEVICE, see, &seen, &terr));
    assert_non_null(strstr(seen.text, "ext:0="));
    assert_null(strstr(seen.text, "ext:1="));
    zarr_context_free(ctx);
}

static void test_parse(void **state)
{
    static const struct {
        const char *text;
        int32_t type, id;
    } good[] = {{"host", 1, 0},   {"cpu:0", 1, 0},   {"cuda", 2, 0},
                {"cuda:7", 2, 7}, {"13:2", 13, 2},   {"cuda_managed:1", 13, 1},
                {"acme", 20, 0},  {"acme:3", 20, 3}, {"opencl:2147483647", 4, INT32_MAX}};
    static const char *const bad[] = {"",         ":",      ":0",      "acm",
                                      "acme:",    "acme:x", "acme:-1", "acme:2147483648",
                                      "cuda:0:0", " cuda",  "acme:3 "};
    struct tale tale = {.n = 1};
    zarr_context *ctx = NULL;
    int32_t type = 0, id = 0;

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    add_tale(ctx, "acme", 20, 0, &tale);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_ok(zarr_memory_parse(ctx, good[i].text, &type, &id, &terr));
        assert_int_equal(type, good[i].type);
        assert_int_equal(id, good[i].id);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_status(zarr_memory_parse(ctx, bad[i], &type, &id, &terr),
                      ZARR_ERR_INVALID);
    assert_status(zarr_memory_parse(ctx, "cuda:GPU-12", &type, &id, &terr),
                  ZARR_ERR_UNSUPPORTED); /* who knows is not loaded */
    assert_status(zarr_memory_parse(NULL, "cuda:GPU-12", &type, &id, &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_status(zarr_memory_parse(ctx, NULL, &type, &id, &terr), ZARR_ERR_INVALID);
    assert_ok(zarr_memory_parse(NULL, "cuda:1", &type, &id, &terr));
    assert_status(zarr_memory_parse(NULL, "acme", &type, &id, &terr), ZARR_ERR_INVALID);
    zarr_context_free(ctx);
}

/* What follows the colon, and begins with a letter, is a name that the backend finds; an
 * allocator asks the backend of its kind. */
static void test_names(void **state)
{
    static const char *const good[] = {"acme:GPU:Seven", "20:GPU:Seven",
                                       "pool:GPU:Seven"};
    struct tale tale = {.n = 1, .finds = true}, other = {.n = 1};
    zarr_context *ctx = NULL;
    int32_t type = 0, id = 0;

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    add_tale(ctx, "acme", 20, 0, &tale);
    add_tale(ctx, "pool", 20, ZARR_MEMORY_ALLOCATOR, &other);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_ok(zarr_memory_parse(ctx, good[i], &type, &id, &terr));
        assert_int_equal(type, 20);
        assert_int_equal(id, 7);
    }
    assert_ok(zarr_memory_parse(ctx, "acme:3", &type, &id, &terr));
    assert_int_equal(id, 3);
    assert_status(zarr_memory_parse(ctx, "acme:-1", &type, &id, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_memory_parse(ctx, "acme:GPU", &type, &id, &terr),
                  ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "nothing is called GPU"));
    assert_status(zarr_memory_parse(ctx, "acme:Wrong", &type, &id, &terr),
                  ZARR_ERR_DEVICE);
    zarr_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list), cmocka_unit_test(test_old_table),
        cmocka_unit_test(test_parse), cmocka_unit_test(test_names)};

    return cmocka_run_group_tests(tests, clear_environment, NULL);
}
