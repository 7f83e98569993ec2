/*
 * unit/ctx/test_registries.c - registering and sealing, lists of what is registered and
 * refused, the k-th allocation failing, and a fork while other threads list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctx/ctx.h"
#include "sanitizers.h"
#include "unit/ctx/ctx_test.h"
#include "unit/json/fail_alloc.h"
#include <sys/wait.h>
#include <unistd.h>

static const zarr_codec_spec_vtable own_codec = {
    .struct_size = sizeof own_codec, .name = "test.own", .kind = ZARR_CODEC_BYTES_BYTES};

struct rows {
    int n, n_own;
    uint32_t last;
    char detail[200];
    int stop_at;
};

static int see_row(void *user, const zarr_registry_item *item)
{
    struct rows *r = user;

    assert_non_null(item->name);
    assert_non_null(item->origin);
    assert_non_null(item->detail);
    assert_true(item->registry >= r->last);
    r->last = item->registry;
    r->n++;
    r->n_own += strcmp(item->origin, "tests") == 0;
    if (strcmp(item->name, "cpu.libzstd") == 0 || strcmp(item->origin, "tests") == 0)
        snprintf(r->detail, sizeof r->detail, "%s", item->detail);
    if (strcmp(item->name, "cpu.libzstd") == 0) {
        assert_true(item->in_kinds & ZARR_MEMORY_BIT(ZARR_DEVICE_CPU));
        assert_true(item->out_kinds & ZARR_MEMORY_BIT(ZARR_DEVICE_CPU));
        assert_int_equal(item->priority, 0);
    }
    if (item->registry == ZARR_REGISTRY_MEMORY && strcmp(item->name, "host") == 0)
        assert_int_equal(item->device_type, ZARR_DEVICE_CPU);
    return r->n == r->stop_at;
}

static zarr_status can_many(void *self, zarr_codec_job *jobs, uint64_t n,
                            zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)jobs;
    (void)n;
    (void)exec;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED, "never called");
}

static zarr_status can_partial(void *self, zarr_codec_job *job,
                               const zarr_codec_range *ranges, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)ranges;
    return can_many(self, job, n, exec, err);
}

static zarr_status can_strided(void *self, zarr_codec_job *job,
                               const zarr_codec_strided *to, zarr_codec_exec *exec,
                               zarr_error *err)
{
    (void)to;
    return can_many(self, job, 1, exec, err);
}

static int see_can(void *user, const zarr_registry_item *item)
{
    if (strcmp(item->origin, "tests") == 0)
        snprintf(user, 80, "%s", item->capabilities);
    return 0;
}

static void test_can(void **state)
{
    zarr_codec_impl_vtable v = {.struct_size = sizeof v,
                                .caps = ZARR_CODEC_CAN_DECODE,
                                .codec = "zstd",
                                .impl = "test.can",
                                .in_kinds = 2,
                                .out_kinds = 2,
                                .decode = can_many,
                                .strided = can_strided};
    zarr_context *ctx = NULL;
    char can[80] = "";

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_context_register_codec_impl(ctx, &v, "tests", &terr));
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_CODEC_IMPL, see_can, can, &terr));
    assert_string_equal(can, "decode strided");
    v.impl = "test.more";
    v.caps |= ZARR_CODEC_BATCH | ZARR_CODEC_SAFE;
    v.partial = can_partial;
    assert_ok(zarr_context_register_codec_impl(ctx, &v, "tests", &terr));
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_CODEC_IMPL, see_can, can, &terr));
    assert_string_equal(can, "decode batch partial strided safe");
    zarr_context_free(ctx);
}

/* ---- tables of other releases ---------------------------------------------------- */

static zarr_status no_pipeline(void *self, zarr_request *request,
                               const zarr_pipeline_steps *steps, zarr_error *err)
{
    (void)self;
    (void)request;
    (void)steps;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED, "never called");
}

/* Copies a table to `bytes` bytes in front of others. */
static void *other_size(unsigned char *room, size_t room_bytes, const void *table,
                        size_t table_bytes, uint32_t bytes)
{
    memset(room, 0xff, room_bytes);
    memcpy(room, table, ZR_MIN(table_bytes, (size_t)bytes));
    memcpy(room, &bytes, sizeof bytes); /* struct_size */
    return room;
}

/* A codec implementation of the first release ends before size_hint(), a pipeline with
 * close(); those of a later one are longer than the library's. */
static void test_sizes(void **state)
{
    const zarr_codec_impl_vtable impl = {.caps = ZARR_CODEC_CAN_DECODE,
                                         .codec = "zstd",
                                         .impl = "test.size",
                                         .in_kinds = 2,
                                         .out_kinds = 2,
                                         .decode = can_many};
    const zarr_pipeline_vtable pipeline = {.name = "test.size", .read = no_pipeline};
    const uint32_t impl_first = (uint32_t)offsetof(zarr_codec_impl_vtable, size_hint);
    const uint32_t pipe_first = (uint32_t)ZR_SIZE_THROUGH(zarr_pipeline_vtable, close);

    _Alignas(16) unsigned char room[sizeof impl + sizeof pipeline + 128];

    (void)state;
    for (int i = 0; i < 3; i++) { /* too short, first, later */
        const uint32_t impl_bytes =
            i == 2 ? (uint32_t)sizeof impl + 64 : impl_first - (i == 0);
        const uint32_t pipe_bytes =
            i == 2 ? (uint32_t)sizeof pipeline + 64 : pipe_first - (i == 0);
        zarr_context *ctx = NULL;
        char can[80] = "";

        assert_ok(zarr_context_create(&ctx, NULL, &terr));
        assert_status(zarr_context_register_codec_impl(
                          ctx,
                          other_size(room, sizeof room, &impl, sizeof impl, impl_bytes),
                          "tests", &terr),
                      i == 0 ? ZARR_ERR_ABI : ZARR_OK);
        assert_status(
            zarr_context_register_pipeline(
                ctx,
                other_size(room, sizeof room, &pipeline, sizeof pipeline, pipe_bytes),
                NULL, "tests", &terr),
            i == 0 ? ZARR_ERR_ABI : ZARR_OK);
        if (i > 0) { /* what the table lacks is not there */
            assert_ok(
                zarr_context_list(ctx, ZARR_REGISTRY_CODEC_IMPL, see_can, can, &terr));
            assert_string_equal(can, "decode");
            assert_non_null(zr_pipeline_find(&ctx->pipelines, "test.size"));
        }
        zarr_context_free(ctx);
    }
}

/* A flag that this library does not know may change what the functions do. */
static void test_pipeline_flags(void **state)
{
    zarr_pipeline_vtable pipeline = {.struct_size = sizeof pipeline,
                                     .flags = ZARR_PIPELINE_PLAIN | 4,
                                     .name = "test.flags",
                                     .read = no_pipeline};
    zarr_context *ctx = NULL;

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_status(zarr_context_register_pipeline(ctx, &pipeline, NULL, "tests", &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_non_null(
        strstr(terr.message, "pipeline \"test.flags\" has unknown flags 0x5"));
    pipeline.flags = ZARR_PIPELINE_PLAIN | ZARR_PIPELINE_AT_ONCE;
    assert_ok(zarr_context_register_pipeline(ctx, &pipeline, NULL, "tests", &terr));
    zarr_context_free(ctx);
}

/* Work on a stream needs someone who ends it, and decoders state a power of two. */
static void test_wrong_impls(void **state)
{
    const zarr_codec_impl_vtable good = {.struct_size = sizeof good,
                                         .caps = ZARR_CODEC_CAN_DECODE,
                                         .codec = "zstd",
                                         .impl = "test.wrong",
                                         .in_kinds = 2,
                                         .out_kinds = 2,
                                         .decode = can_many};
    static const uint32_t alignments[] = {3, 48, 512};
    zarr_codec_impl_vtable bad = good;
    zarr_context *ctx = NULL;

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    bad.caps |= ZARR_CODEC_ASYNC | ZARR_CODEC_BATCH;
    assert_status(zarr_context_register_codec_impl(ctx, &bad, "tests", &terr),
                  ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "ASYNC without settle"));
    for (size_t i = 0; i < ZR_COUNT(alignments); i++) {
        bad = good;
        bad.alignment = alignments[i];
        assert_status(zarr_context_register_codec_impl(ctx, &bad, "tests", &terr),
                      ZARR_ERR_INVALID);
        assert_non_null(strstr(terr.message, "alignment"));
    }
    assert_ok(zarr_context_register_codec_impl(ctx, &good, "tests", &terr));
    zarr_context_free(ctx);
}

static void test_register(void **state)
{
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_codec_spec_vtable taken = own_codec;
    struct rows all = {0}, codecs = {0}, some = {.stop_at = 3}, impls = {0};

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_context_register_codec_spec(ctx, &own_codec, "tests", &terr));
    assert_status(zarr_context_register_codec_spec(ctx, &own_codec, "tests", &terr),
                  ZARR_ERR_EXISTS);
    taken.name = "zstd"; /* a name of the core */
    assert_status(zarr_context_register_codec_spec(ctx, &taken, "tests", &terr),
                  ZARR_ERR_EXISTS);
    assert_status(zarr_context_register_grid(ctx, &zr_grid_regular, "tests", &terr),
                  ZARR_ERR_EXISTS);
    assert_status(zarr_context_register_codec_spec(ctx, NULL, "tests", &terr),
                  ZARR_ERR_INVALID);
    taken.name = "test.more";
    assert_status(zarr_context_register_codec_spec(ctx, &taken, "", &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_context_register_codec_spec(ctx, &taken, "core", &terr),
                  ZARR_ERR_INVALID);

    assert_ok(zarr_context_list(ctx, 0, see_row, &all, &terr));
    assert_int_equal(all.n_own, 1);
    assert_true(all.n > 40);
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_CODEC, see_row, &codecs, &terr));
    assert_string_equal(codecs.detail, "bytes to bytes");
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_CODEC_IMPL, see_row, &impls, &terr));
    assert_non_null(strstr(impls.detail, "zstd; priority 0; memory"));
    assert_non_null(strstr(impls.detail, "; version 1.")); /* of libzstd */
    assert_ok(zarr_context_list(ctx, 0, see_row, &some, &terr));
    assert_int_equal(some.n, 3);
    assert_status(zarr_context_list(ctx, 99, see_row, &some, &terr), ZARR_ERR_INVALID);

    /* This call seals the context. */
    assert_ok(zarr_store_open(&store, ctx, "memory:", NULL, &terr));
    assert_status(zarr_context_register_codec_spec(ctx, &taken, "tests", &terr),
                  ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "sealed"));
    zarr_context_free(ctx); /* the store keeps it alive */
    zarr_store_free(store);
}

/* A refused name is reported with the reason, and no name is both refused and known. */
static int check_refused(void *user, const zarr_registry_item *item)
{
    zarr_context *ctx = user;
    const zarr_dtype *dtype = NULL;

    assert_int_equal(item->registry, ZARR_REGISTRY_REFUSED);
    assert_true(*item->name && *item->of && *item->detail);
    if (zr_streq(item->of, "data type")) {
        assert_status(zarr_dtype_find(&dtype, ctx, item->name, &terr),
                      ZARR_ERR_UNSUPPORTED);
        assert_non_null(strstr(terr.message, item->detail));
    } else if (zr_streq(item->of, "codec")) {
        assert_null(zr_codec_spec_lookup(&ctx->codecs, item->name));
    } else if (zr_streq(item->of, "chunk grid")) {
        assert_null(zr_registry_find(&ctx->grids.grids, item->name));
    } else if (zr_streq(item->of, "chunk key encoding")) {
        assert_null(zr_registry_find(&ctx->grids.encodings, item->name));
    } else if (!zr_streq(item->of, "member") &&   /* of a chunk grid or key encoding */
               !zr_streq(item->of, "elements")) { /* that no codec accepts */
        assert_string_equal(item->of, "storage transformer");
    }
    return 0;
}

static void test_refused(void **state)
{
    zarr_context *ctx = NULL;

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_REFUSED, check_refused, ctx, &terr));
    zarr_context_free(ctx);
    assert_status(zr_fail_refused(&terr, zr_codec_refused, "codec", "imagecodecs_jpeg2k"),
                  ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(terr.message, "\"imagecodecs_jpeg2k\" is refused: "));
    assert_status(zr_fail_refused(&terr, zr_codec_refused, "codec", "imagecodec"),
                  ZARR_ERR_UNSUPPORTED);
    assert_string_equal(terr.message, "codec \"imagecodec\" is not known");
}

static zarr_status own_type(zarr_dtype_info *info, const zarr_dtype_host *host,
                            const char *name, const char *json, zarr_error *err)
{
    (void)host;
    (void)name;
    (void)json;
    (void)err;
    info->item_bytes = 1;
    info->kind = ZARR_KIND_OTHER;
    return ZARR_OK;
}

/* A name is refused only until it is registered. */
static void test_refused_brought(void **state)
{
    zarr_dtype_vtable type = *zr_dtype_core[0];
    zarr_codec_spec_vtable codec = own_codec;
    zarr_grid_vtable grid = zr_grid_rectilinear;
    zarr_key_encoding_vtable keys = zr_key_v2;
    struct zr_key_encoding made = {0};
    zarr_context *ctx = NULL;
    const zarr_dtype *found = NULL;

    (void)state;
    type.name = "json";
    type.parse = own_type;
    type.v2 = NULL;
    type.aliases = NULL;
    type.numpy = NULL;
    type.flags = 0;
    codec.name = "lzw";
    grid.name = "rectangular";
    keys.name = "fanout";
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_context_register_dtype(ctx, &type, "tests", &terr));
    assert_ok(zarr_context_register_codec_spec(ctx, &codec, "tests", &terr));
    assert_ok(zarr_context_register_grid(ctx, &grid, "tests", &terr));
    assert_ok(zarr_context_register_key_encoding(ctx, &keys, "tests", &terr));
    assert_ok(zarr_dtype_find(&found, ctx, "json", &terr));
    assert_string_equal(zarr_dtype_name(found), "json");
    assert_string_equal(zr_codec_spec_lookup(&ctx->codecs, "lzw")->name, "lzw");
    assert_non_null(zr_registry_find(&ctx->grids.grids, "rectangular"));
    assert_ok(zr_key_encoding_parse(&made, &ctx->grids, "fanout", NULL, &terr));
    zr_key_encoding_deinit(&made);
    zarr_context_free(ctx);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    for (int forever = 0; forever < 2; forever++)
        for (size_t k = 1;; k++) {
            struct fail_alloc f;
            zarr_context_options o = {.struct_size = sizeof o,
                                      .codec_preference = "zstd=b"};
            zarr_context *ctx = NULL;
            zarr_status st;

            fail_alloc_init(&f, k, forever);
            o.allocator = &f.alloc;
            st = zarr_context_create(&ctx, &o, &terr);
            if (st == ZARR_OK)
                st = zarr_context_register_codec_spec(ctx, &own_codec, "tests", &terr);
            zarr_context_free(ctx);
            assert_int_equal(f.held, 0);
            if (!f.failed) {
                assert_int_equal(st, ZARR_OK);
                assert_true(k > 20);
                break;
            }
            assert_int_equal(st, ZARR_ERR_NO_MEMORY);
        }
}

struct lister {
    zarr_context *ctx;
    uint32_t registry;
    atomic_bool stop;
    zr_thread thread;
};

static int ignore_row(void *user, const zarr_registry_item *item)
{
    (void)user;
    (void)item;
    return 0;
}

static void *list_all_the_time(void *arg)
{
    struct lister *l = arg;
    zarr_error err;

    while (!atomic_load(&l->stop))
        (void)!zarr_context_list(l->ctx, l->registry, ignore_row, NULL, &err);
    return NULL;
}

/* Forks while other threads list. The child inherits no held lock. Listing plug-ins does
 * nothing but lock, as long as none is loaded. */
static void test_fork(void **state)
{
    struct lister l[2] = {{.registry = 0}, {.registry = ZARR_REGISTRY_PLUGIN}};
    zarr_context *ctx = NULL;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    for (int i = 0; i < 2; i++) {
        l[i].ctx = ctx;
        assert_int_equal(zr_thread_start(&l[i].thread, list_all_the_time, &l[i], NULL),
                         ZARR_OK);
    }
    for (int i = 0; i < 50; i++) {
        int status = 0;
        const pid_t pid = fork();

        if (pid == 0) {
            alarm(20);
            _exit(zarr_context_list(ctx, 0, ignore_row, NULL, &terr) != ZARR_OK);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < 2; i++) {
        atomic_store(&l[i].stop, true);
        zr_thread_join(&l[i].thread);
    }
    zarr_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_pipeline_flags),
        cmocka_unit_test(test_wrong_impls),
        cmocka_unit_test(test_can),
        cmocka_unit_test(test_register),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_brought),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_fork),
    };

    return cmocka_run_group_tests(tests, clear_environment, NULL);
}
