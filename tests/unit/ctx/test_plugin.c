/*
 * unit/ctx/test_plugin.c - loading plug-ins: what is loaded and visible, each way in
 * which a file is not a plug-in, names already in use, ZARRC_PLUGINS, the order of
 * unloading, sealing, threads, and loading with the k-th allocation failing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../json/fail_alloc.h"
#include "ctx/ctx.h"
#include "unit/ctx/ctx_test.h"

#define ODD(number) ODD_FOLDER "/plugin_odd_" #number ".so"
#define GOOD        ODD(0)

static zarr_status create_with(zarr_context **out, const char *const *plugins)
{
    const zarr_context_options o = {.struct_size = sizeof o, .plugins = plugins};

    return zarr_context_create(out, &o, &terr);
}

static int count_row(void *user, const zarr_registry_item *item)
{
    int *n = user;

    n[0] += strcmp(item->origin, "good") == 0;
    if (item->registry == ZARR_REGISTRY_PLUGIN) {
        n[1]++;
        assert_string_equal(item->name, "good");
        assert_non_null(strstr(item->origin, "plugin_odd_0.so"));
        assert_string_equal(item->detail, "1.2; MIT");
    } else if (strcmp(item->name, "odd.codec") == 0) {
        assert_true(item->flags & ZARR_ITEM_EXPERIMENTAL);
        assert_string_equal(item->v3, "odd.codec");
    }
    return 0;
}

static void test_good(void **state)
{
    /* Loading the same file twice is allowed. */
    static const char *const files[] = {GOOD, GOOD, NULL};
    void *handle = dlopen(GOOD, RTLD_NOW | RTLD_LOCAL); /* to inspect the result */
    const int *loads, *unloads, *closed;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    int n[2] = {0};

    (void)state;
    assert_non_null(handle);
    loads = dlsym(handle, "plugin_odd_loads");
    unloads = dlsym(handle, "plugin_odd_unloads");
    closed = dlsym(handle, "plugin_odd_closed");
    assert_ok(create_with(&ctx, files));
    assert_int_equal(*loads, 1);
    assert_ok(zarr_context_list(ctx, 0, count_row, n, &terr));
    assert_int_equal(n[0], 3);
    assert_int_equal(n[1], 1);
    assert_ok(zarr_context_load(ctx, GOOD, &terr));
    assert_int_equal(*loads, 1);
    assert_ok(zarr_store_open(&store, ctx, "memory:", NULL, &terr));
    assert_int_equal(zarr_context_load(ctx, GOOD, &terr), ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "sealed"));
    zarr_context_free(ctx);
    assert_int_equal(*unloads, 0); /* the store keeps the context alive */
    zarr_store_free(store);
    assert_int_equal(*unloads, 1);
    assert_int_equal(*closed, 1);
    dlclose(handle);
}

/* The first attempt to open a store seals the context (context.h): what a store looked
 * up must stay registered. */
static void test_sealed_by_failure(void **state)
{
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;

    (void)state;
    assert_ok(create_with(&ctx, NULL));
    assert_int_equal(zarr_store_open(&store, ctx, "nosuch://x", NULL, &terr),
                     ZARR_ERR_UNSUPPORTED);
    assert_int_equal(zarr_context_load(ctx, GOOD, &terr), ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "sealed: load before the first store is opened, "
                                         "or tried"));
    zarr_context_free(ctx);
}

static void test_pipeline_of_plugin(void **state)
{
    static const char *const files[] = {GOOD, NULL};
    zarr_context_options o = {.struct_size = sizeof o, .plugins = files};
    zarr_context *ctx = NULL;

    (void)state;
    o.pipeline = "odd";
    assert_ok(zarr_context_create(&ctx, &o, &terr));
    assert_string_equal(ctx->pipeline->name, "odd");
    assert_non_null(ctx->pipeline->vt.write); /* owned by the library */
    zarr_context_free(ctx);
}

/* ---- options ------------------------------------------------------------------- */

static zarr_status create_options(zarr_context **out, const char *text)
{
    static const char *const files[] = {ODD(16), GOOD, NULL};
    const zarr_context_options o = {
        .struct_size = sizeof o, .plugins = files, .plugin_options = text};

    return zarr_context_create(out, &o, &terr);
}

static void test_options(void **state)
{
    static const struct {
        const char *options, *text;
    } bad[] = {
        {"{\"odd\": {\"numbre\": 1}}", "plug-in \"odd\" has no option \"numbre\""},
        {"{\"good\": {\"x\": 1}}", "plug-in \"good\" has no option \"x\""},
        {"{\"odd\": {\"number\": 1.5}}", "option \"number\" of plug-in \"odd\" has anot"},
        {"{\"odd\": {\"number\": \"1\"}}",
         "option \"number\" of plug-in \"odd\" has ano"},
        {"{\"odd\": {\"name\": null}}", "option \"name\" of plug-in \"odd\" has another"},
        {"{\"odd\": {\"switch\": 1}}",
         "option \"switch\" of plug-in \"odd\" has another"},
        {"{\"odd\": 1}", "plugin_options: \"odd\" is not an object but a number"},
        {"[]", "plugin_options is not an object but a"},
        {"{", "plugin_options: "},
    };
    void *handle = dlopen(ODD(16), RTLD_NOW | RTLD_LOCAL);
    zarr_context *ctx = NULL;
    const int *given;

    (void)state;
    assert_non_null(handle);
    given = dlsym(handle, "plugin_odd_given");
    assert_ok(create_options(&ctx, NULL));
    assert_int_equal(*given, 0);
    zarr_context_free(ctx);
    assert_ok(
        create_options(&ctx, "{\"odd\": {\"real\": 0.5, \"number\": -7}, \"good\": {}}"));
    assert_int_equal(*given, 3);
    assert_int_equal(*(int64_t *)dlsym(handle, "plugin_odd_i64"), -7);
    assert_true(*(double *)dlsym(handle, "plugin_odd_f64") == 0.5);
    zarr_context_free(ctx);
    setenv("ZARRC_PLUGIN_OPTIONS", "{\"odd\": {\"switch\": true, \"name\": \"abc\"}}", 1);
    assert_ok(create_options(&ctx, NULL));
    assert_int_equal(*given, 12);
    assert_int_equal(*(int *)dlsym(handle, "plugin_odd_bool"), 1);
    assert_string_equal((char *)dlsym(handle, "plugin_odd_text"), "abc");
    zarr_context_free(ctx);
    assert_ok(create_options(&ctx, "{}")); /* goes before the environment */
    assert_int_equal(*given, 0);
    zarr_context_free(ctx);
    setenv("ZARRC_PLUGIN_OPTIONS", "", 1);
    assert_ok(create_options(&ctx, NULL));
    zarr_context_free(ctx);
    unsetenv("ZARRC_PLUGIN_OPTIONS");
    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        assert_int_equal(create_options(&ctx, bad[i].options), ZARR_ERR_INVALID);
        if (!strstr(terr.message, bad[i].text))
            fail_msg("%s: %s", bad[i].options, terr.message);
    }
    dlclose(handle);
}

/* A plug-in that was refused for an option has registered, so it stays; it does not count
 * as loaded. */
static void test_refused_option(void **state)
{
    zarr_context_options o = {.struct_size = sizeof o,
                              .plugin_options = "{\"good\": {\"x\": 1}}"};
    void *handle = dlopen(GOOD, RTLD_NOW | RTLD_LOCAL);
    const int *unloads;
    zarr_context *ctx = NULL;
    int before = 0, n[2] = {0};

    (void)state;
    assert_non_null(handle);
    unloads = dlsym(handle, "plugin_odd_unloads");
    before = *unloads;
    assert_ok(zarr_context_create(&ctx, &o, &terr));
    assert_int_equal(zarr_context_load(ctx, GOOD, &terr), ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "no option \"x\""));
    assert_int_equal(zarr_context_load(ctx, GOOD, &terr), ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "failed before"));
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_PLUGIN, count_row, n, &terr));
    assert_int_equal(n[1], 0);
    zarr_context_free(ctx);
    assert_int_equal(*unloads, before + 1);
    dlclose(handle);
}

static void keep_line(void *user, uint32_t level, const char *text)
{
    if (level == ZARR_LOG_WARN && strstr(text, "plugin_options"))
        snprintf(user, 200, "%s", text);
}

static void test_options_of_a_missing_plugin(void **state)
{
    char line[200] = "";
    zarr_context_options o = {.struct_size = sizeof o,
                              .log = keep_line,
                              .log_user = line,
                              .plugin_options = "{\"nosuch\": {}, \"good\": {}}"};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;

    (void)state;
    assert_ok(zarr_context_create(&ctx, &o, &terr));
    assert_ok(zarr_context_load(ctx, GOOD, &terr));
    assert_string_equal(line, "");
    assert_ok(zarr_store_open(&store, ctx, "memory:", NULL, &terr));
    assert_string_equal(line, "plugin_options: plug-in \"nosuch\" is not loaded");
    zarr_store_free(store);
    zarr_context_free(ctx);
}

static void *use_and_end(void *arg)
{
    zarr_context *ctx = NULL;

    if (create_options(&ctx, NULL) != ZARR_OK)
        return arg;
    zarr_context_free(ctx);
    return NULL;
}

/* A thread that has a destructor of a plug-in ends after the plug-in's last context,
 * which has called unload() and left the file mapped. */
static void test_thread_outlives_the_plugin(void **state)
{
    pthread_t thread;
    void *failed = NULL, *handle = NULL;
    int one = 1;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, use_and_end, &one), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    handle = dlopen(ODD(16), RTLD_NOW | RTLD_NOLOAD); /* still mapped */
    assert_non_null(handle);
    assert_int_equal(*(int *)dlsym(handle, "plugin_odd_ended"), 1);
    assert_int_equal(*(int *)dlsym(handle, "plugin_odd_unloads"), 1);
    dlclose(handle);
}

struct bad {
    const char *file;
    zarr_status status;
    const char *text;
};

static void test_bad(void **state)
{
    static const struct bad bad[] = {
        {ODD(1), ZARR_ERR_ABI, "does not export zarr_plugin_v1"},
        {ODD(2), ZARR_ERR_ABI, "zarr_plugin_v2"},
        {ODD(3), ZARR_ERR_ABI, "gives no table"},
        {ODD(4), ZARR_ERR_ABI, "made for plug-in ABI 77, this library has ABI 1"},
        {ODD(5), ZARR_ERR_ABI, "zarr_plugin.struct_size is 16"},
        {ODD(6), ZARR_ERR_INVALID, "lacks its name or load"},
        {ODD(7), ZARR_ERR_DEVICE, "plug-in \"odd\" failed: no device 7 here"},
        {ODD(8), ZARR_ERR_INVALID, "plug-in \"odd\" failed: it does not say why"},
        {ODD(11), ZARR_ERR_EXISTS, "the library's own"},
        {ODD(12), ZARR_ERR_IO, "function_that_nobody_has"},
        {ODD(14), ZARR_ERR_INVALID, "plug-in \"odd?  bytes\": names are printable"},
        {ODD(15), ZARR_ERR_INVALID, "version and license are printable"},
        {ODD_FOLDER "/plugin_odd_none.so", ZARR_ERR_NOT_FOUND, "No such file"},
        {"plugin_odd_0.so", ZARR_ERR_NOT_FOUND,
         "No such file"}, /* no folder is searched */
        {"/dev/null", ZARR_ERR_IO, "cannot be loaded"},
        {ODD_FOLDER, ZARR_ERR_IO, "cannot be loaded"},
        {"", ZARR_ERR_INVALID, "no plug-in is named"},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        const char *const files[] = {bad[i].file, NULL};
        zarr_context *ctx = NULL;
        zarr_status st = create_with(&ctx, files);

        if (st != bad[i].status || !strstr(terr.message, bad[i].text) ||
            !strstr(terr.message, bad[i].file))
            fail_msg("%s: %d %s", bad[i].file, (int)st, terr.message);
        assert_null(ctx);
    }
}

static void test_taken(void **state)
{
    static const char *const clash[] = {GOOD, ODD(9), NULL}, *const same[] = {
                                                                 GOOD, ODD(10), NULL};
    static const char *const thief[] = {ODD(13), NULL};
    static const char *const taken[] = {"codec \"gzip\"", "alias \"numcodecs.zstd\"",
                                        "chunk key encoding \"default\"",
                                        "pipeline \"waves\""};
    void *handle = dlopen(ODD(13), RTLD_NOW | RTLD_LOCAL);
    zarr_context *ctx = NULL;
    int *attempt;

    (void)state;
    assert_int_equal(create_with(&ctx, clash), ZARR_ERR_EXISTS);
    assert_non_null(strstr(terr.message, "odd: codec \"odd.codec\""));
    assert_non_null(strstr(terr.message, "by good"));
    assert_int_equal(create_with(&ctx, same), ZARR_ERR_EXISTS);
    assert_non_null(strstr(terr.message, "\"good\" is loaded already, from "));
    assert_non_null(strstr(terr.message, "plugin_odd_0.so"));

    assert_non_null(handle);
    attempt = dlsym(handle, "plugin_odd_attempt");
    for (*attempt = 0; *attempt < 4; ++*attempt) {
        assert_int_equal(create_with(&ctx, thief), ZARR_ERR_EXISTS);
        assert_non_null(strstr(terr.message, taken[*attempt]));
        assert_non_null(strstr(terr.message, "thief: "));
        assert_non_null(strstr(terr.message, "by core"));
    }
    dlclose(handle);
}

/* What a plug-in registered before it failed stays registered, so its file stays
 * loaded. */
static void test_half_way(void **state)
{
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    int n[2] = {0};

    (void)state;
    assert_ok(create_with(&ctx, NULL));
    assert_ok(zarr_context_load(ctx, GOOD, &terr));
    assert_int_equal(zarr_context_load(ctx, ODD(9), &terr), ZARR_ERR_EXISTS);
    assert_non_null(zr_registry_find(&ctx->grids.encodings, "odd.odd"));
    assert_int_equal(zarr_context_load(ctx, ODD(9), &terr), ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "failed before"));
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_PLUGIN, count_row, n, &terr));
    assert_int_equal(n[1], 1); /* the good one: what failed is not loaded */
    assert_ok(zarr_store_open(&store, ctx, "memory:", NULL, &terr));
    zarr_store_free(store);
    zarr_context_free(ctx);
}

static void test_path(void **state)
{
    static const struct bad bad[] = {
        {"plugin_odd_0.so", ZARR_ERR_INVALID,
         "\"plugin_odd_0.so\" is not an absolute path"},
        {".", ZARR_ERR_INVALID, "\".\" is not an absolute path"},
        {GOOD ":/none/here.so", ZARR_ERR_NOT_FOUND, "ZARRC_PLUGINS: /none/here.so"},
        {GOOD ":" ODD(9), ZARR_ERR_EXISTS, "plugin_odd_9.so"},
        {ODD_FOLDER, ZARR_ERR_ABI, "plugin_odd_1.so"}, /* the first bad one by name */
    };
    char folder[] = "/tmp/zarrc-plugins-XXXXXX", link_path[200];
    zarr_context *ctx = NULL;
    int n[2] = {0};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        setenv("ZARRC_PLUGINS", bad[i].file, 1);
        if (create_with(&ctx, NULL) != bad[i].status ||
            !strstr(terr.message, bad[i].text))
            fail_msg("%s: %s", bad[i].file, terr.message);
    }
    assert_non_null(mkdtemp(folder));
    snprintf(link_path, sizeof link_path, "%s/b.so", folder);
    assert_int_equal(symlink(GOOD, link_path), 0);
    snprintf(link_path, sizeof link_path, "::%s:%s:", folder, GOOD); /* again: allowed */
    setenv("ZARRC_PLUGINS", link_path, 1);
    assert_ok(create_with(&ctx, NULL));
    assert_ok(zarr_context_list(ctx, 0, count_row, n, &terr));
    assert_int_equal(n[1], 1);
    zarr_context_free(ctx);
    setenv("ZARRC_PLUGINS", "", 1);
    assert_ok(create_with(&ctx, NULL));
    zarr_context_free(ctx);
    unsetenv("ZARRC_PLUGINS");
    snprintf(link_path, sizeof link_path, "%s/b.so", folder);
    unlink(link_path);
    rmdir(folder);
}

/* Registering is refused after load() has returned. */
static void test_late(void **state)
{
    static const char *const files[] = {GOOD, NULL};
    static const zarr_codec_spec_vtable late = {
        .struct_size = sizeof late, .name = "late", .kind = ZARR_CODEC_BYTES_BYTES};
    void *handle = dlopen(GOOD, RTLD_NOW | RTLD_LOCAL);
    zarr_context *ctx = NULL;
    const zarr_host *const *host;

    (void)state;
    assert_non_null(handle);
    assert_ok(create_with(&ctx, files));
    host = dlsym(handle, "plugin_odd_host");
    assert_int_equal((*host)->abi, ZARR_PLUGIN_ABI);
    assert_int_equal((*host)->register_codec_spec(ctx, &late, &terr), ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "while it is loaded"));
    zarr_context_free(ctx);
    dlclose(handle);
}

/* Every entry is set: an entry forgotten in host.c would be NULL. */
static void test_host_is_full(void **state)
{
    void *handle = dlopen(GOOD, RTLD_NOW | RTLD_LOCAL);
    static const char *const files[] = {GOOD, NULL};
    const size_t first = offsetof(zarr_host, version);
    zarr_context *ctx = NULL;
    const zarr_host *const *host;

    (void)state;
    assert_non_null(handle);
    assert_ok(create_with(&ctx, files));
    host = dlsym(handle, "plugin_odd_host");
    assert_int_equal((*host)->struct_size, sizeof(zarr_host));
    for (size_t at = first; at < sizeof(zarr_host); at += sizeof(void *)) {
        void *entry = NULL;

        memcpy(&entry, (const char *)*host + at, sizeof entry);
        assert_non_null(entry);
    }
    for (size_t at = offsetof(zarr_pipeline_steps, request);
         at < sizeof(zarr_pipeline_steps); at += sizeof(void *)) {
        void *entry = NULL;

        memcpy(&entry, (const char *)&zr_pipeline_steps + at, sizeof entry);
        assert_non_null(entry);
    }
    zarr_context_free(ctx);
    dlclose(handle);
}

static void *load_often(void *arg)
{
    static const char *const files[] = {GOOD, NULL};
    const zarr_context_options o = {.struct_size = sizeof o, .plugins = files};

    for (int i = 0; i < 20; i++) {
        zarr_context *ctx = NULL;

        if (zarr_context_create(&ctx, &o, NULL) != ZARR_OK)
            ++*(int *)arg;
        zarr_context_free(ctx);
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t thread[4];
    int failed[4] = {0};

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, load_often, &failed[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(failed[i], 0);
    }
}

static void test_failing_allocations(void **state)
{
    static const char *const files[] = {GOOD, NULL};

    (void)state;
    setenv("ZARRC_PLUGINS", GOOD, 1);
    for (int forever = 0; forever < 2; forever++)
        for (size_t k = 1;; k++) {
            struct fail_alloc f;
            zarr_context_options o = {.struct_size = sizeof o, .plugins = files};
            zarr_context *ctx = NULL;
            zarr_status st;

            fail_alloc_init(&f, k, forever);
            o.allocator = &f.alloc;
            st = zarr_context_create(&ctx, &o, &terr);
            zarr_context_free(ctx);
            assert_int_equal(f.held, 0);
            if (!f.failed) {
                assert_int_equal(st, ZARR_OK);
                break;
            }
            assert_int_equal(st, ZARR_ERR_NO_MEMORY);
        }
    unsetenv("ZARRC_PLUGINS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_thread_outlives_the_plugin),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_refused_option),
        cmocka_unit_test(test_options_of_a_missing_plugin),
        cmocka_unit_test(test_pipeline_of_plugin),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_half_way),
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_host_is_full),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_sealed_by_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
