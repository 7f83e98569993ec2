/*
 * unit/pipe/test_wishes.c - codec preferences that cannot be followed: of an array or a
 * call they are errors, of a context warnings.
 */
#include "pipe_test.h"

static char lines[2048];
static uint32_t n_lines;

static void keep_line(void *user, uint32_t level, const char *message)
{
    (void)user;
    if (level > ZARR_LOG_WARN)
        return;
    n_lines++;
    strncat(lines, message, sizeof lines - strlen(lines) - 1);
    strncat(lines, "\n", sizeof lines - strlen(lines) - 1);
}

static zarr_status no_code(void *self, zarr_codec_job *jobs, uint64_t n,
                           zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)jobs;
    (void)n;
    (void)exec;
    return zr_fail(err, ZARR_ERR_INTERNAL, "it must not be called");
}

struct wish_world {
    zarr_context *ctx;
    zarr_store *store;
    zarr_array *array;
};

static void open_world(struct wish_world *w, const char *preference)
{
    static const uint64_t shape[2] = {4, 4}, chunk[2] = {2, 2};
    const zarr_codec_impl_vtable far = {.struct_size = sizeof far,
                                        .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE,
                                        .codec = "gzip",
                                        .impl = "fake.far",
                                        .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_EXT),
                                        .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_EXT),
                                        .decode = no_code};
    zarr_context_options o = ZARR_CONTEXT_OPTIONS_INIT;

    lines[0] = '\0';
    n_lines = 0;
    o.codec_preference = preference;
    o.log = keep_line;
    o.log_level = ZARR_LOG_INFO;
    assert_ok(zarr_context_create(&w->ctx, &o, &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &far, "test", &terr));
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", NULL, &terr));
    w->array = pw_array(w->store, "a", "[" BYTES "," GZIP "]", shape, chunk);
}

static void close_world(struct wish_world *w)
{
    zarr_array_free(w->array);
    zarr_store_free(w->store);
    zarr_context_free(w->ctx);
}

static zarr_status use(const struct wish_world *w, const char *preference, bool write)
{
    static int32_t data[16];
    static const uint64_t shape[2] = {4, 4};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_tensor t;

    o.tuning = TUNING(.codec_preference = preference);
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    return write ? zarr_array_write(w->array, NULL, &t, &o, &terr)
                 : zarr_array_read(w->array, NULL, &t, &o, &terr);
}

static void test_context(void **state)
{
    static const struct {
        const char *preference, *warning; /* NULL: none */
    } cases[] = {
        {NULL, NULL},
        {"gzip=cpu", NULL},
        {"gzip=cuda.absent,cpu.libdeflate", NULL}, /* the best of what there is */
        {"zstd=cpu.nosuch", "no implementation of \"zstd\" is named \"cpu.nosuch\""},
        {"gzip=cpu.nosuch", "no implementation of \"gzip\" is named \"cpu.nosuch\""},
        {"zstd=a;gzip=b,c ;lz4=d", "no implementation of \"gzip\" is named \"b,c\""},
        {"gzip=fake.far", "\"fake.far\" cannot decode \"gzip\" here"},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        struct wish_world w;

        open_world(&w, cases[i].preference);
        assert_ok(use(&w, NULL, true));
        assert_ok(use(&w, NULL, false));
        assert_ok(use(&w, NULL, false));
        if (cases[i].warning) {
            assert_non_null(strstr(lines, cases[i].warning));
            assert_in_range(n_lines, 1,
                            3); /* once, or once a direction, not once a call */
        } else {
            assert_string_equal(lines, "");
        }
        close_world(&w);
    }
}

static void test_call(void **state)
{
    struct wish_world w;

    (void)state;
    open_world(&w, NULL);
    assert_ok(use(&w, "gzip=cpu", true));
    assert_status(use(&w, "gzip=cpu.nosuch", true), ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "no implementation of \"gzip\" is named "
                                         "\"cpu.nosuch\""));
    assert_status(use(&w, "gzip=cpu.nosuch", false), ZARR_ERR_INVALID);
    assert_ok(use(&w, "gzip=cpu.nosuch,cpu.libdeflate", false));
    assert_status(use(&w, "zstd=cpu.nosuch", false), ZARR_ERR_INVALID);
    assert_status(use(&w, "gzip=cpu;zsdt=cpu", false), ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "there is no codec \"zsdt\""));
    assert_string_equal(lines, "");
    assert_ok(use(&w, "gzip=fake.far", false));
    assert_non_null(strstr(lines, "\"fake.far\" cannot decode \"gzip\" here"));
    close_world(&w);
}

static void test_array(void **state)
{
    zarr_array_open_options o = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    struct wish_world w;

    (void)state;
    open_world(&w, NULL);
    zarr_array_free(w.array);
    o.codec_preference = "gzip=cpu.nosuch";
    assert_status(zarr_array_open(&w.array, w.store, "a", &o, &terr), ZARR_ERR_INVALID);
    o.codec_preference = "zsdt=cpu";
    assert_status(zarr_array_open(&w.array, w.store, "a", &o, &terr), ZARR_ERR_INVALID);
    o.codec_preference = "gzip=fake.far";
    assert_ok(zarr_array_open(&w.array, w.store, "a", &o, &terr));
    assert_ok(use(&w, "gzip=cpu", false)); /* the call's replaces it */
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_call),
        cmocka_unit_test(test_array),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
