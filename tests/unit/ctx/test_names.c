/*
 * unit/ctx/test_names.c - registered names: spelling, names already in use,
 * "numcodecs.<id>", and the specification that an implementation belongs to if two have
 * its name.
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
#include "unit/ctx/ctx_test.h"

static void assert_fails(zarr_status st, zarr_status expected, const char *text)
{
    if (st != expected || !strstr(terr.message, text))
        fail_msg("%d: %s, not %d: %s", (int)st, terr.message, (int)expected, text);
}

/* ---- what is registered ------------------------------------------------------------ */

static zarr_status add_spec(zarr_context *ctx, const char *name, uint32_t flags,
                            const char *origin)
{
    const zarr_codec_spec_vtable v = {.struct_size = sizeof v,
                                      .name = name,
                                      .flags = flags,
                                      .kind = ZARR_CODEC_BYTES_BYTES};

    return zarr_context_register_codec_spec(ctx, &v, origin, &terr);
}

static zarr_status own_copy(void *self, zarr_codec_job *jobs, uint64_t n,
                            zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        memcpy((char *)jobs[i].dst.handle + jobs[i].dst.offset,
               (char *)jobs[i].src.handle + jobs[i].src.offset, jobs[i].src.bytes);
        jobs[i].dst_used = jobs[i].src.bytes;
        jobs[i].status = ZARR_OK;
    }
    return ZARR_OK;
}

static zarr_status add_impl(zarr_context *ctx, const char *codec, const char *impl,
                            uint32_t caps)
{
    const zarr_codec_impl_vtable v = {.struct_size = sizeof v,
                                      .caps = caps | ZARR_CODEC_CAN_DECODE |
                                              ZARR_CODEC_CAN_ENCODE,
                                      .codec = codec,
                                      .impl = impl,
                                      .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                      .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                      .priority = 1,
                                      .encode = own_copy,
                                      .decode = own_copy};

    return zarr_context_register_codec_impl(ctx, &v, "tests", &terr);
}

static zarr_status own_alloc(void *self, int32_t device_id, uint64_t bytes,
                             zarr_memory *out, zarr_error *err)
{
    (void)self;
    (void)device_id;
    (void)bytes;
    (void)out;
    return zr_fail(err, ZARR_ERR_NO_MEMORY, "none");
}

static void own_free(void *self, zarr_memory *mem)
{
    (void)self;
    (void)mem;
}

static zarr_status own_move(void *self, const zarr_memory *dst, const zarr_memory *src,
                            uint64_t bytes, void *stream, zarr_error *err)
{
    (void)self;
    (void)dst;
    (void)src;
    (void)bytes;
    (void)stream;
    return zr_fail(err, ZARR_ERR_DEVICE, "none");
}

/* ---- spelling ---------------------------------------------------------------------- */

static void refuse_everywhere(zarr_context *ctx, const char *name)
{
    const char *const aliases[] = {name, NULL};
    zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                   .name = "own.codec",
                                   .aliases = aliases,
                                   .kind = ZARR_CODEC_BYTES_BYTES};
    zarr_grid_vtable grid = zr_grid_rectilinear;
    zarr_key_encoding_vtable keys = zr_key_v2;
    zarr_pipeline_vtable pipeline = zr_pipeline_serial;
    zarr_memory_vtable memory = {.struct_size = sizeof memory,
                                 .device_type = ZARR_DEVICE_EXT,
                                 .name = name,
                                 .alloc = own_alloc,
                                 .free = own_free,
                                 .copy = own_move};
    const zarr_store_vtable store = {.struct_size = sizeof store,
                                     .name = name,
                                     .open = own_open,
                                     .caps = own_caps,
                                     .run = own_run};
    const zarr_status st[] = {
        add_spec(ctx, name, 0, "tests"),
        zarr_context_register_codec_spec(ctx, &spec, "tests", &terr),
        add_impl(ctx, "zstd", name, 0),
        add_impl(ctx, name, "own.impl", 0),
        (grid.name = name, zarr_context_register_grid(ctx, &grid, "tests", &terr)),
        (keys.name = name,
         zarr_context_register_key_encoding(ctx, &keys, "tests", &terr)),
        (pipeline.name = name,
         zarr_context_register_pipeline(ctx, &pipeline, NULL, "tests", &terr)),
        zarr_context_register_memory(ctx, &memory, NULL, "tests", &terr),
        zarr_context_register_store(ctx, &store, "tests", &terr),
    };

    for (size_t i = 0; i < ZR_COUNT(st); i++)
        if (st[i] != ZARR_ERR_INVALID)
            fail_msg("\"%s\" was taken by noun %zu: %d", name, i, (int)st[i]);
    memory.name = "own"; /* nothing else was wrong */
    assert_ok(zarr_context_register_memory(ctx, &memory, NULL, "tests", &terr));
}

static int see_nothing_own(void *user, const zarr_registry_item *item)
{
    (void)user;
    assert_true(!zr_streq(item->origin, "tests") ||
                item->registry == ZARR_REGISTRY_MEMORY ||
                item->registry == ZARR_REGISTRY_DEVICE);
    return 0;
}

static void test_spelling(void **state)
{
    static const char *const names[] = {"",     "hash\n", "two words", "a\tb",
                                        "a\"b", "a\\b",   "del\x7f",   "\xc3\xa9"};
    zarr_context *ctx = NULL;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(names); i++) {
        assert_ok(zarr_context_create(&ctx, NULL, &terr));
        refuse_everywhere(ctx, names[i]);
        assert_ok(zarr_context_list(ctx, 0, see_nothing_own, NULL, &terr));
        zarr_context_free(ctx);
    }
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_fails(add_spec(ctx, "x\n  forged  core", 0, "tests"), ZARR_ERR_INVALID,
                 "tests: codec \"x?  forged  core\": names are printable ASCII");
    assert_fails(add_impl(ctx, "zstd", "cpu.a,cpu.b", 0), ZARR_ERR_INVALID,
                 "names have no =, comma or ;");
    assert_fails(add_spec(ctx, "fine", 0, "me\n(core)"), ZARR_ERR_INVALID, "origin");
    assert_ok(add_spec(ctx, "fine", 0, "my own program"));
    zarr_context_free(ctx);
}

/* ---- owners -------------------------------------------------------------- */

static void test_owners(void **state)
{
    const uint32_t v2 = ZARR_CODEC_SPEC_V2, v3 = ZARR_CODEC_SPEC_V3;
    zarr_context *ctx = NULL;

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(add_spec(ctx, "only", v2, "A"));
    assert_fails(add_spec(ctx, "only", v2, "B"), ZARR_ERR_EXISTS,
                 "B: codec \"only\" is registered already, by A");
    assert_ok(add_spec(ctx, "foo", v2, "A"));
    assert_ok(add_spec(ctx, "foo", v3, "C"));
    assert_fails(add_spec(ctx, "foo", v3, "D"), ZARR_ERR_EXISTS,
                 "D: codec \"foo\" is registered already, by C");
    assert_fails(add_spec(ctx, "foo", v2, "D"), ZARR_ERR_EXISTS, "already, by A");
    zarr_context_free(ctx);
}

/* ---- numcodecs.<id> ------------------------------------------------------ */

static zarr_status parse(zarr_context *ctx, int format, const char *codecs, char *text,
                         size_t cap)
{
    const struct zr_chain_parse_options opts = {.format = format};
    struct zr_chain *chain = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, NULL);
    st = zr_json_parse(&doc, codecs, strlen(codecs), NULL, &terr);
    if (st == ZARR_OK)
        st = zr_chain_parse(&chain, &ctx->codecs, doc.root, &opts, NULL, &terr);
    if (st == ZARR_OK)
        snprintf(text, cap, "%s", zarr_codec_spec_name(&chain->codec[1]));
    zr_chain_free(chain);
    zr_json_doc_deinit(&doc);
    return st;
}

static void test_numcodecs(void **state)
{
    const uint32_t flag = ZARR_CODEC_SPEC_NUMCODECS;
    zarr_context *ctx = NULL;
    char name[64] = "";

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(add_spec(ctx, "nc1", flag, "A"));
    assert_ok(parse(ctx, 3, "[\"bytes\",\"numcodecs.nc1\"]", name, sizeof name));
    assert_string_equal(name, "nc1");
    assert_fails(parse(ctx, 3, "[\"bytes\",\"nc1\"]", name, sizeof name),
                 ZARR_ERR_UNSUPPORTED, "where it is \"numcodecs.nc1\"");
    assert_fails(add_spec(ctx, "numcodecs.nc1", ZARR_CODEC_SPEC_V3, "B"), ZARR_ERR_EXISTS,
                 "B: codec \"numcodecs.nc1\" is registered already, by A");
    assert_ok(add_spec(ctx, "numcodecs.nc2", ZARR_CODEC_SPEC_V3, "B"));
    assert_fails(add_spec(ctx, "nc2", flag, "A"), ZARR_ERR_EXISTS,
                 "A: codec \"nc2\": alias \"numcodecs.nc2\" is taken, by B");
    assert_ok(add_spec(ctx, "nc3", 0, "A")); /* without the flag it has no such name */
    assert_fails(parse(ctx, 3, "[\"bytes\",\"numcodecs.nc3\"]", name, sizeof name),
                 ZARR_ERR_UNSUPPORTED, "\"numcodecs.nc3\" is unknown");
    /* Holds for the core's codecs as well. */
    assert_fails(add_spec(ctx, "numcodecs.zlib", ZARR_CODEC_SPEC_V3, "B"),
                 ZARR_ERR_EXISTS, "by core");
    assert_ok(parse(ctx, 3,
                    "[\"bytes\",{\"name\":\"numcodecs.zlib\","
                    "\"configuration\":{\"level\":1}}]",
                    name, sizeof name));
    assert_string_equal(name, "zlib");
    zarr_context_free(ctx);
}

/* ---- v2 and v3 under one name -------------------------------------------- */

static const struct zr_impl *find_impl(zarr_context *ctx, const char *impl)
{
    for (size_t i = 0; i < zr_impl_count(&ctx->impls); i++)
        if (zr_streq(zr_impl_at(&ctx->impls, i)->vt.impl, impl))
            return zr_impl_at(&ctx->impls, i);
    return NULL;
}

static void test_for_which(void **state)
{
    const zarr_codec_spec_vtable *core, *own;
    zarr_context *ctx = NULL;

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(add_spec(ctx, "scale_offset", ZARR_CODEC_SPEC_V2, "tests"));
    core = zr_codec_spec_lookup(&ctx->codecs, "scale_offset");
    own = zr_codec_spec_lookup_v2(&ctx->codecs, "scale_offset");
    assert_ptr_not_equal(core, own);
    assert_true(zr_impl_has(&ctx->impls, core));
    /* The core's name means another codec. */
    assert_false(zr_impl_has(&ctx->impls, own));
    assert_ok(add_impl(ctx, "scale_offset", "cpu.v2", ZARR_CODEC_FOR_V2));
    assert_true(zr_impl_is_for(find_impl(ctx, "cpu.v2"), own));
    assert_false(zr_impl_is_for(find_impl(ctx, "cpu.v2"), core));
    assert_fails(add_impl(ctx, "scale_offset", "cpu.v3", 0), ZARR_ERR_INVALID,
                 "tests: codec implementation \"cpu.v3\": Zarr v2 has a codec "
                 "\"scale_offset\" of its own: ZARR_CODEC_FOR_V2 or ");
    assert_ok(add_impl(ctx, "scale_offset", "cpu.v3", ZARR_CODEC_FOR_V3));
    assert_false(zr_impl_is_for(find_impl(ctx, "cpu.v3"), own));
    assert_true(zr_impl_is_for(find_impl(ctx, "cpu.v3"), core));
    assert_ok(
        add_impl(ctx, "scale_offset", "cpu.all", ZARR_CODEC_FOR_V2 | ZARR_CODEC_FOR_V3));
    assert_true(zr_impl_is_for(find_impl(ctx, "cpu.all"), own));
    assert_true(zr_impl_is_for(find_impl(ctx, "cpu.all"), core));
    /* A preference distinguishes the two by the format of the codec. */
    assert_ok(add_impl(ctx, "scale_offset", "cpu.v2", ZARR_CODEC_FOR_V3));
    assert_fails(add_impl(ctx, "scale_offset", "cpu.v2", ZARR_CODEC_FOR_V3),
                 ZARR_ERR_EXISTS, "by tests");
    assert_fails(add_impl(ctx, "scale_offset", "cpu.all", ZARR_CODEC_FOR_V2),
                 ZARR_ERR_EXISTS, "by tests");
    /* In the other order: an implementation of the same origin must give the format, one
     * of another origin keeps meaning the codec that existed. */
    assert_ok(add_impl(ctx, "cast_value", "cpu.mine", 0));
    assert_fails(add_spec(ctx, "cast_value", ZARR_CODEC_SPEC_V2, "tests"),
                 ZARR_ERR_INVALID, "\"cpu.mine\": Zarr v2 has a codec \"cast_value\"");
    assert_false(zr_codec_spec_has(&ctx->codecs, "cast_value", true));
    assert_ok(add_spec(ctx, "cast_value", ZARR_CODEC_SPEC_V2, "another plug-in"));
    zarr_context_free(ctx);
}

struct lines {
    char text[1024];
    int n;
};

static void take_line(void *user, uint32_t level, const char *text)
{
    struct lines *l = user;

    assert_int_equal(level, ZARR_LOG_WARN);
    l->n++;
    snprintf(l->text + strlen(l->text), sizeof l->text - strlen(l->text), "%s\n", text);
}

static void test_lost(void **state)
{
    struct lines lines = {.n = 0};
    const zarr_context_options o = {
        .struct_size = sizeof o, .log = take_line, .log_user = &lines};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;

    (void)state;
    assert_ok(zarr_context_create(&ctx, &o, &terr));
    assert_ok(zarr_store_open(&store, ctx, "memory:", NULL, &terr));
    assert_int_equal(lines.n, 0); /* every implementation of the core has its codec */
    zarr_store_free(store);
    zarr_context_free(ctx);

    assert_ok(zarr_context_create(&ctx, &o, &terr));
    assert_ok(add_impl(ctx, "nosuch", "cpu.acme", 0));
    assert_ok(add_impl(ctx, "json2", "cpu.acme", ZARR_CODEC_FOR_V3));
    assert_ok(add_impl(ctx, "zstd", "cpu.acme", ZARR_CODEC_FOR_V2));
    assert_ok(add_impl(ctx, "later", "cpu.acme", 0));
    assert_ok(add_spec(ctx, "later", 0, "tests"));
    assert_int_equal(lines.n, 0);
    assert_ok(zarr_store_open(&store, ctx, "memory:", NULL, &terr));
    zarr_store_free(store);
    /* Listed only once. */
    assert_ok(zarr_store_open(&store, ctx, "memory:", NULL, &terr));
    zarr_store_free(store);
    assert_int_equal(lines.n, 3);
    assert_non_null(strstr(lines.text,
                           "tests: codec implementation \"cpu.acme\" cannot be "
                           "used: there is no codec \"nosuch\"\n"));
    assert_non_null(strstr(lines.text, "\"json2\" but one of Zarr v2 "));
    assert_non_null(strstr(lines.text, "\"zstd\" that only Zarr v2 has\n"));
    zarr_context_free(ctx);
}

/* The table has no macro that sets its struct_size. */
static void test_no_size(void **state)
{
    const zarr_codec_spec_vtable v = {.name = "x", .kind = ZARR_CODEC_BYTES_BYTES};
    zarr_context *ctx = NULL;

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_fails(zarr_context_register_codec_spec(ctx, &v, "tests", &terr), ZARR_ERR_ABI,
                 "tests: zarr_codec_spec_vtable.struct_size is 0: set it to "
                 "sizeof(zarr_codec_spec_vtable)");
    zarr_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spelling),  cmocka_unit_test(test_owners),
        cmocka_unit_test(test_numcodecs), cmocka_unit_test(test_for_which),
        cmocka_unit_test(test_lost),      cmocka_unit_test(test_no_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
