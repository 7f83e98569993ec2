/*
 * unit/array/test_foreign_types.c - arrays with an application's own data types:
 * families with a configuration, and types named by a URI in each form that metadata
 * allows. Arrays are created, written, reopened, read and listed.
 */
#include "array_test.h"

#include <stdbool.h>

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG    "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"

#define URI_HALF "https://example.org/dtypes/half"
#define URI_FIX  "https://example.org/dtypes/fix"

static zarr_status half_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                              const char *name, const char *json, zarr_error *err)
{
    (void)host;
    (void)name;
    (void)json;
    (void)err;
    info->kind = ZARR_KIND_OTHER;
    info->item_bytes = info->swap_bytes = 2;
    return ZARR_OK;
}

/* Type of n 16-bit numbers: {"n": 3}, or "...fix[3]". */
static zarr_status fix_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                             const char *name, const char *json, zarr_error *err)
{
    const char *p = json ? strstr(json, "\"n\":") : strchr(name, '[');
    unsigned n = 0;

    (void)host;
    (void)err;
    if (!p || sscanf(json ? p + 4 : p + 1, "%u", &n) != 1 || n < 1 || n > 8)
        return ZARR_ERR_INVALID;
    info->kind = ZARR_KIND_OTHER;
    info->item_bytes = 2 * (uint64_t)n;
    info->swap_bytes = 2;
    info->param[0] = n;
    return ZARR_OK;
}

static zarr_status fix_text(const zarr_dtype_info *info, const char *name, uint32_t what,
                            char *text, size_t cap, size_t *text_bytes)
{
    const int n = (int)info->param[0];

    *text_bytes = 0;
    if (what == ZARR_DTYPE_TEXT_V3)
        *text_bytes = (size_t)snprintf(
            text, cap, "{\"name\":\"%s\",\"configuration\":{\"n\":%d}}", name, n);
    else if (what == ZARR_DTYPE_TEXT_NAME)
        *text_bytes = (size_t)snprintf(text, cap, "%s[%d]", name, n);
    return ZARR_OK;
}

static zarr_status fix_write(const zarr_dtype_info *info, uint32_t what, char *text,
                             size_t cap, size_t *text_bytes, zarr_error *err)
{
    (void)err;
    return fix_text(info, "test.fix", what, text, cap, text_bytes);
}

static zarr_status fix_uri_write(const zarr_dtype_info *info, uint32_t what, char *text,
                                 size_t cap, size_t *text_bytes, zarr_error *err)
{
    (void)err;
    return fix_text(info, URI_FIX, what, text, cap, text_bytes);
}

static zarr_status fix_fill_parse(const zarr_dtype_info *info, int format,
                                  const char *json, void *element, zarr_error *err)
{
    int v = 0;

    (void)format;
    (void)err;
    if (sscanf(json, "%d", &v) != 1)
        return ZARR_ERR_INVALID;
    for (uint64_t k = 0; k < info->item_bytes; k += 2) {
        const int16_t item = (int16_t)v;

        memcpy((char *)element + k, &item, 2);
    }
    return ZARR_OK;
}

static zarr_status fix_fill_print(const zarr_dtype_info *info, int format,
                                  const void *element, char *text, size_t cap,
                                  size_t *text_bytes, zarr_error *err)
{
    int16_t item;

    (void)info;
    (void)format;
    (void)err;
    memcpy(&item, element, 2);
    *text_bytes = (size_t)snprintf(text, cap, "%d", item);
    return ZARR_OK;
}

static void register_dtypes(struct world *w)
{
    zarr_dtype_vtable v = {.struct_size = sizeof v,
                           .name = URI_HALF,
                           .parse = half_parse,
                           .fill_parse = fix_fill_parse,
                           .fill_print = fix_fill_print};

    assert_ok(zarr_context_register_dtype(w->ctx, &v, "tests", &terr));
    v.flags = ZARR_DTYPE_FAMILY;
    v.name = "test.fix";
    v.parse = fix_parse;
    v.write = fix_write;
    assert_ok(zarr_context_register_dtype(w->ctx, &v, "tests", &terr));
    v.name = URI_FIX;
    v.write = fix_uri_write;
    assert_ok(zarr_context_register_dtype(w->ctx, &v, "tests", &terr));
}

static const struct {
    const char *type, *name, *written; /* as given; its name; as written in zarr.json */
    uint64_t n;
} types[] = {
    {"\"" URI_HALF "\"", URI_HALF, "\"" URI_HALF "\"", 1},
    {URI_HALF, URI_HALF, "\"" URI_HALF "\"", 1},
    {"{\"name\":\"" URI_HALF "\"}", URI_HALF, "\"" URI_HALF "\"", 1},
    {"{\"name\":\"" URI_HALF "\",\"configuration\":{}}", URI_HALF, "\"" URI_HALF "\"", 1},
    {"{\"name\":\"" URI_FIX "\",\"configuration\":{\"n\":3}}", URI_FIX "[3]",
     "\"" URI_FIX "\"", 3},
    {URI_FIX "[5]", URI_FIX "[5]", "\"" URI_FIX "\"", 5},
    {"{\"name\":\"test.fix\",\"configuration\":{\"n\":3}}", "test.fix[3]", "\"test.fix\"",
     3},
    {"test.fix[8]", "test.fix[8]", "\"test.fix\"", 8},
};

static void check_items(zarr_array *a, size_t i, const int16_t *want)
{
    int16_t got[40];
    const uint64_t five = 5, two = 2;
    const uint64_t n = types[i].n, five_u = 5, from = 1, count_u = 2;
    zarr_selection *sel = NULL;
    zarr_tensor t;

    assert_string_equal(zarr_dtype_name(zarr_array_dtype(a)), types[i].name);
    assert_int_equal(zarr_dtype_item_bytes(zarr_array_dtype(a)), 2 * n);
    memset(got, 0x11, sizeof got);
    zarr_tensor_host(&t, NULL, got, 10 * n, 1, &five);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    assert_memory_equal(got, want, 10 * n);
    zarr_tensor_host(&t, NULL, got, 4 * n, 1, &two);
    assert_ok(zarr_selection_box(&sel, 1, &five_u, &from, &count_u, &terr));
    assert_ok(zarr_array_read(a, sel, &t, NULL, &terr));
    assert_memory_equal(got, want + n, 4 * n);
    zarr_selection_free(sel);
}

static void one_type(struct world *w, size_t i, const char *path, bool sharded)
{
    const uint64_t n = types[i].n, edge = 5, chunk = 2, inner = 1, from = 3, rest = 2;
    const uint64_t three = 3, two = 2;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = &edge,
                                  .chunk_shape = sharded ? &inner : &chunk,
                                  .shard_shape = sharded ? &chunk : NULL,
                                  .data_type = types[i].type,
                                  .fill_value = "3",
                                  .codecs = "[" BIG "]"};
    int16_t data[40], copy[40];
    uint8_t stored[2];
    uint64_t bytes = 2, at_start = 0;
    zarr_selection *sel = NULL;
    zarr_array *a = NULL;
    zarr_tensor t;
    char key[32];

    assert_ok(zarr_array_create(&a, w->store, path, &spec, NULL, &terr));
    for (uint64_t k = 0; k < 5 * n; k++)
        data[k] = 3;
    check_items(a, i, data);
    for (uint64_t k = 0; k < 3 * n; k++)
        data[k] = copy[k] = (int16_t)(1000 + 300 * (int)k);
    zarr_tensor_host(&t, NULL, copy, 6 * n, 1, &three);
    assert_ok(zarr_selection_box(&sel, 1, &edge, &at_start, &(uint64_t){3}, &terr));
    assert_ok(zarr_array_write(a, sel, &t, NULL, &terr));
    zarr_selection_free(sel);
    check_items(a, i, data);
    assert_non_null(strstr(zarr_array_metadata(a), types[i].written));
    zarr_array_free(a);
    assert_ok(zarr_array_open(&a, w->store, path, NULL, &terr));
    check_items(a, i, data);
    for (uint64_t k = 3 * n; k < 5 * n; k++)
        data[k] = copy[k - 3 * n] = (int16_t)(-300 * (int)k);
    zarr_tensor_host(&t, NULL, copy, 4 * n, 1, &two);
    assert_ok(zarr_selection_box(&sel, 1, &edge, &from, &rest, &terr));
    assert_ok(zarr_array_write(a, sel, &t, NULL, &terr)); /* one chunk changes */
    zarr_selection_free(sel);
    check_items(a, i, data);
    snprintf(key, sizeof key, "%s/c/0", path); /* 1000 = 0x03e8, big-endian */
    assert_ok(zarr_store_get(w->store, key, 0, stored, &bytes, NULL, &terr));
    assert_int_equal(stored[0], 0x03);
    assert_int_equal(stored[1], 0xe8);
    zarr_array_free(a);
}

static int see_row(void *user, const zarr_registry_item *item)
{
    if (strcmp(item->origin, "tests") != 0)
        return 0;
    ++*(int *)user;
    assert_int_equal(item->registry, ZARR_REGISTRY_DTYPE);
    assert_string_equal(item->name, item->v3);
    assert_true(strcmp(item->name, URI_HALF) == 0 || strcmp(item->name, URI_FIX) == 0 ||
                strcmp(item->name, "test.fix") == 0);
    assert_int_equal((item->flags & ZARR_ITEM_FAMILY) != 0,
                     strcmp(item->name, URI_HALF) != 0);
    return 0;
}

static void test_types(void **state)
{
    struct world w;

    (void)state;
    for (enum world_sort sort = 0; sort < WORLD_PLAIN; sort++) {
        int n = 0;

        world_begin(&w, sort);
        assert_ok(world_context(&w, &terr));
        register_dtypes(&w);
        assert_ok(world_store(&w, sort, &terr));
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            for (int sharded = 0; sharded < 2; sharded++) {
                char path[16];

                snprintf(path, sizeof path, "t%d-%d", (int)i, sharded);
                one_type(&w, i, path, sharded != 0);
            }
        assert_ok(zarr_context_list(w.ctx, 0, see_row, &n, &terr));
        assert_int_equal(n, 3);
        world_close(&w);
    }
}

/* A context without this type refuses the array and names the type. */
static void test_unknown_uri(void **state)
{
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    put_text(&w, "x/zarr.json",
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[1],\"data_type\":"
             "\"" URI_HALF "\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":"
             "{\"chunk_shape\":[1]}},\"chunk_key_encoding\":{\"name\":\"default\"},"
             "\"fill_value\":0,\"codecs\":[" LITTLE "]}");
    assert_status(zarr_array_open(&a, w.store, "x", NULL, &terr), ZARR_ERR_UNSUPPORTED);
    assert_says(URI_HALF);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_unknown_uri),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
