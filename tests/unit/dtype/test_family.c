/*
 * unit/dtype/test_family.c - an application's family of types: a pair of elements of
 * another type, and families whose tables are wrong.
 */
#include "dtype_test.h"

#include <stdio.h>
#include <string.h>

static const struct zr_order little_order = {ZARR_ORDER_LITTLE, NULL};

struct pair {
    const zarr_dtype *of;
};

static zarr_status pair_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                              const char *name, const char *json, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const zarr_allocator *a = info->allocator;
    struct pair *p = a->alloc(a->user, sizeof *p);

    if (!p)
        return ZARR_ERR_NO_MEMORY;
    p = a->realloc(a->user, p, sizeof *p);
    ZR_TRY(host->find(&p->of, host, json ? "int16" : "float32", err));
    info->kind = zr_streq(name, "pair") ? ZARR_KIND_STRUCT : 0;
    info->item_bytes = 2 * zarr_dtype_item_bytes(p->of);
    info->swap_bytes = zarr_dtype_swap_bytes(p->of);
    info->self = info->kind ? p : NULL;
    if (info->kind)
        p = NULL;
out:
    a->free(a->user, p);
    return st;
}

static zarr_status pair_write(const zarr_dtype_info *info, uint32_t what, char *text,
                              size_t cap, size_t *text_bytes, zarr_error *err)
{
    const struct pair *p = info->self;
    const char *name = zarr_dtype_name(p->of);

    ZR_UNUSED(err);
    *text_bytes = what == ZARR_DTYPE_TEXT_NAME
                      ? (size_t)snprintf(text, cap, "pair[%s]", name)
                      : 0; /* has no text in any metadata in this test */
    return ZARR_OK;
}

static void pair_free(zarr_dtype_info *info)
{
    info->allocator->free(info->allocator->user, info->self);
}

typedef zarr_status (*parse_fn)(zarr_dtype_info *info, const zarr_dtype_host *host,
                                const char *name, const char *json, zarr_error *err);

static zarr_dtype_vtable pair_family(const char *name, parse_fn parse)
{
    return (zarr_dtype_vtable){.struct_size = sizeof(zarr_dtype_vtable),
                               .flags = ZARR_DTYPE_FAMILY,
                               .name = name,
                               .parse = parse,
                               .write = pair_write,
                               .fill_parse = zr_dtype_core[3]->fill_parse,
                               .fill_print = zr_dtype_core[3]->fill_print,
                               .free = pair_free};
}

/* Leaves its argument unchanged: there is nothing to free. */
static zarr_status broken_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                                const char *name, const char *json, zarr_error *err)
{
    zarr_status st = pair_parse(info, host, "pair", json, err);

    ZR_UNUSED(name);
    if (st != ZARR_OK)
        return st;
    pair_free(info);
    return ZARR_ERR_INVALID;
}

static void refuse_broken_family(void **state)
{
    struct zr_dtype_registry r;
    const zarr_dtype *t = NULL;
    zarr_dtype_vtable v = pair_family("broken", broken_parse);

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    assert_int_equal(zr_dtype_register(&r, &v, "test", NULL), ZARR_OK);
    assert_int_equal(zr_dtype_find(&r, "broken", &t, NULL, NULL), ZARR_ERR_INVALID);
    v.flags = 0;
    v.name = "broken.2";
    assert_int_equal(zr_dtype_register(&r, &v, "test", NULL), ZARR_ERR_INVALID);
    zr_dtype_registry_deinit(&r);
}

static const char pair_with[] = "{\"name\":\"pair\",\"configuration\":{\"x\":1}}";
static const char pair_empty[] = "{\"name\":\"pair\",\"configuration\":{}}";

static void plugged_in(void **state)
{
    struct zr_dtype_registry r, other;
    const zarr_dtype *t = NULL, *same = NULL;
    struct zr_json_doc doc;
    const zarr_dtype_vtable v = pair_family("pair", pair_parse);

    (void)state;
    zr_json_doc_init(&doc, NULL);
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    assert_int_equal(fill_registry(&other, NULL), ZARR_OK);
    assert_int_equal(zr_dtype_register(&r, &v, "test", NULL), ZARR_OK);
    assert_int_equal(zr_dtype_register(&other, &v, "test", NULL), ZARR_OK);
    assert_int_equal(zr_dtype_find(&r, pair_with, &t, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_dtype_find(&r, pair_empty, &same, NULL, NULL), ZARR_OK);
    assert_ptr_equal(t, same); /* another spelling of the same type: the same object */
    assert_string_equal(zarr_dtype_name(t), "pair[int16]");
    assert_int_equal(zarr_dtype_item_bits(t), 32);
    assert_int_equal(zr_dtype_find(&r, "pair", &same, NULL, NULL), ZARR_OK);
    assert_string_equal(zarr_dtype_name(same), "pair[float32]");
    assert_false(zarr_dtype_equal(t, same));
    assert_null(zarr_dtype_v2(t));
    assert_null(zr_dtype_write_v3(t, &doc));
    assert_null(zr_dtype_write_v2(t, &little_order, &doc));
    assert_true(zr_json_is_ok(&doc));
    assert_int_equal(zr_dtype_find(&other, pair_empty, &same, NULL, NULL), ZARR_OK);
    assert_ptr_not_equal(t, same);
    assert_true(zarr_dtype_equal(t, same)); /* also in another context */
    assert_int_equal(zr_dtype_find(&r, "pair[x]", &same, NULL, NULL), ZARR_ERR_INTERNAL);
    zr_dtype_registry_deinit(&other);
    zr_dtype_registry_deinit(&r);
    zr_json_doc_deinit(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plugged_in),
        cmocka_unit_test(refuse_broken_family),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
