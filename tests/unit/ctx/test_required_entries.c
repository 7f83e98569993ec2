/*
 * unit/ctx/test_required_entries.c - the required entries of plug-ins' tables, as the
 * headers of zarrc/plugin/ give them. Registering without one of them returns INVALID;
 * registering with nothing else succeeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctx/ctx.h"

static zarr_error terr;

/* A placeholder for any function. Registering calls none. */
static void never(void)
{
    fail_msg("called while it is registered");
}

/* One kind of extension: its table with all entries set, and the required ones. */
struct noun {
    const char *name;
    zarr_status (*put)(zarr_context *ctx, const void *table);
    size_t bytes, first; /* first member that is a pointer */
    size_t required[10]; /* offsets of the required members, ended by 0 */
};

union table {
    zarr_dtype_vtable dtype;
    zarr_codec_spec_vtable spec;
    zarr_codec_impl_vtable impl;
    zarr_grid_vtable grid;
    zarr_key_encoding_vtable keys;
    zarr_store_vtable store;
    zarr_memory_vtable memory;
    zarr_pipeline_vtable pipeline;
    void (*entry[64])(void);
};

#define PUT(noun, ...)                                                                   \
    static zarr_status put_##noun(zarr_context *ctx, const void *table)                  \
    {                                                                                    \
        return zarr_context_register_##noun(ctx, table, __VA_ARGS__, &terr);             \
    }

PUT(codec_spec, "test")
PUT(codec_impl, "test")
PUT(grid, "test")
PUT(key_encoding, "test")
PUT(store, "test")
PUT(memory, NULL, "test")
PUT(pipeline, NULL, "test")
PUT(dtype, "test")

#define AT(type, member) offsetof(zarr_##type##_vtable, member)

static const struct noun nouns[] = {
    {"grid",
     put_grid,
     sizeof(zarr_grid_vtable),
     AT(grid, parse),
     {AT(grid, name), AT(grid, parse), AT(grid, canonical), AT(grid, n_chunks),
      AT(grid, locate), AT(grid, extent)}},
    {"key_encoding",
     put_key_encoding,
     sizeof(zarr_key_encoding_vtable),
     AT(key_encoding, parse),
     {AT(key_encoding, name), AT(key_encoding, parse), AT(key_encoding, canonical),
      AT(key_encoding, key), AT(key_encoding, chunk)}},
    {"pipeline",
     put_pipeline,
     sizeof(zarr_pipeline_vtable),
     AT(pipeline, read),
     {AT(pipeline, name), AT(pipeline, read)}},
    {"memory",
     put_memory,
     sizeof(zarr_memory_vtable),
     AT(memory, alloc),
     {AT(memory, name), AT(memory, alloc), AT(memory, free), AT(memory, copy)}},
    {"store",
     put_store,
     sizeof(zarr_store_vtable),
     AT(store, open),
     {AT(store, name), AT(store, open), AT(store, caps)}},
    {"codec_impl",
     put_codec_impl,
     sizeof(zarr_codec_impl_vtable),
     AT(codec_impl, bind),
     {AT(codec_impl, codec), AT(codec_impl, impl), AT(codec_impl, encode),
      AT(codec_impl, decode)}},
    {"codec_spec",
     put_codec_spec,
     sizeof(zarr_codec_spec_vtable),
     AT(codec_spec, canonical),
     {AT(codec_spec, name)}},
    {"dtype", /* a family: parse() is only called for families */
     put_dtype,
     AT(dtype, numpy),
     AT(dtype, parse),
     {AT(dtype, name), AT(dtype, parse), AT(dtype, write), AT(dtype, fill_parse),
      AT(dtype, fill_print)}},
};

static const char *const names[] = {"test.a", "test.b"};

/* Sets a name or a function at this offset. */
static void set_entry(union table *t, size_t at, const void *from, size_t bytes)
{
    memcpy((char *)t + at, from, bytes);
}

static void set_names(union table *t, const struct noun *n, const char *name)
{
    if (strcmp(n->name, "codec_impl") == 0) {
        t->impl.codec = t->impl.impl = name;
        t->impl.caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE;
        t->impl.in_kinds = t->impl.out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU);
    } else if (strcmp(n->name, "codec_spec") == 0) {
        t->spec.name = name;
        t->spec.kind = ZARR_CODEC_BYTES_BYTES;
    } else if (strcmp(n->name, "memory") == 0) {
        t->memory.name = name;
        t->memory.device_type = ZARR_DEVICE_EXT;
    } else if (strcmp(n->name, "store") == 0) {
        t->store.name = name;
        t->store.run = (void (*)(void *, zarr_store_op *, zarr_error *))never;
    } else if (strcmp(n->name, "dtype") == 0) {
        t->dtype.flags = ZARR_DTYPE_FAMILY;
        t->dtype.name = name;
    } else {
        set_entry(t, n->required[0], &name, sizeof name);
    }
}

/* Sets all required entries except the one at offset `without` (0: sets all). */
static zarr_status put_without(const struct noun *n, size_t without)
{
    void (*const stand_in)(void) = never;
    const uint32_t bytes = (uint32_t)n->bytes;
    zarr_context *ctx = NULL;
    union table t;
    zarr_status st;

    memset(&t, 0, sizeof t);
    memcpy(&t, &bytes, sizeof bytes);
    set_names(&t, n, names[0]);
    for (size_t i = 0; n->required[i]; i++)
        if (n->required[i] >= n->first)
            set_entry(&t, n->required[i], &stand_in, sizeof stand_in);
    if (without)
        memset((char *)&t + without, 0, sizeof(void *));
    memset(&terr, 0, sizeof terr);
    assert_int_equal(zarr_context_create(&ctx, NULL, &terr), ZARR_OK);
    st = n->put(ctx, &t);
    zarr_context_free(ctx);
    return st;
}

static void test_required(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(nouns); i++) {
        const struct noun *n = &nouns[i];
        zarr_status st = put_without(n, 0);

        if (st != ZARR_OK)
            fail_msg("%s with all that is required: %s", n->name, terr.message);
        for (size_t k = 0; n->required[k]; k++) {
            st = put_without(n, n->required[k]);
            if (st != ZARR_ERR_INVALID)
                fail_msg("%s without the entry at %zu: %s", n->name, n->required[k],
                         zarr_status_text(st));
        }
    }
}

/* Required members that are not pointers, and those of which one of two is required. */
static void test_others(void **state)
{
    zarr_context *ctx = NULL;
    union table t = {.impl = {.struct_size = sizeof t.impl,
                              .codec = names[0],
                              .impl = names[1],
                              .in_kinds = 2,
                              .out_kinds = 2}};

    (void)state;
    assert_int_equal(zarr_context_create(&ctx, NULL, &terr), ZARR_OK);
    assert_int_equal(put_codec_impl(ctx, &t), ZARR_ERR_INVALID); /* no capability */
    t.impl.caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE;
    assert_int_equal(put_codec_impl(ctx, &t), ZARR_ERR_INVALID);
    t.impl.decode = (zarr_status(*)(void *, zarr_codec_job *, uint64_t, zarr_codec_exec *,
                                    zarr_error *))never;
    t.impl.in_kinds = 0;
    assert_int_equal(put_codec_impl(ctx, &t), ZARR_ERR_INVALID);
    t.impl.in_kinds = 2;
    t.impl.out_kinds = 0;
    assert_int_equal(put_codec_impl(ctx, &t), ZARR_ERR_INVALID);
    t.impl.out_kinds = 2;
    assert_int_equal(put_codec_impl(ctx, &t), ZARR_OK);

    t = (union table){.spec = {.struct_size = sizeof t.spec, .name = names[0]}};
    assert_int_equal(put_codec_spec(ctx, &t), ZARR_ERR_INVALID); /* no kind */

    t = (union table){
        .store = {.struct_size = sizeof t.store,
                  .name = names[0],
                  .open = (zarr_status(*)(void **, zarr_context *, const char *,
                                          const zarr_store_options *, const zarr_cancel *,
                                          zarr_error *))never,
                  .caps = (void (*)(void *, zarr_store_caps *))never}};
    assert_int_equal(put_store(ctx, &t), ZARR_ERR_INVALID); /* neither run nor submit */
    t.store.run = (void (*)(void *, zarr_store_op *, zarr_error *))never;
    t.store.unlock = (void (*)(void *, void *))never;
    assert_int_equal(put_store(ctx, &t), ZARR_ERR_INVALID); /* without lock */
    t.store.unlock = NULL;
    assert_int_equal(put_store(ctx, &t), ZARR_OK);
    zarr_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_required),
        cmocka_unit_test(test_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
