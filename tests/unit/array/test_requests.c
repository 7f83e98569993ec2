/*
 * unit/array/test_requests.c - requests to an open array: tensors that do not fit,
 * options, requests in the background, and the explanation of a request.
 */
#include "array_test.h"

#include <zarrc/parts.h>
#include <zarrc/plugin/store.h>

static void test_other_tensors(void **state)
{
    const uint64_t shape[2] = {5, 4};
    const uint64_t wrong[2] = {4, 5}, right[2] = {4, 4};
    struct world w;
    zarr_array *a = NULL;
    zarr_selection *sel = NULL;
    const zarr_dtype *f = NULL;
    zarr_stats stats = {.struct_size = sizeof stats};
    zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
    int32_t data[20] = {0};
    zarr_tensor t;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    a = make_array(&w, "x", 3, 4, 4);
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, wrong);
    assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_says("/x: ");
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, right);
    assert_ok(zarr_dtype_find(&f, w.ctx, "float32", &terr));
    t.dtype = f;
    assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_says("float32");
    t.dtype = zarr_array_dtype(a);
    assert_ok(zarr_selection_dims(&sel, 2, shape, 0, NULL, &terr));
    assert_status(zarr_array_read(a, sel, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_says("selection");
    zarr_selection_free(sel);
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    assert_int_equal(stats.chunks_missing, 4);
    assert_int_equal(data[15], -1);
    opts.missing_chunks = ZARR_MISSING_ERROR;
    assert_status(zarr_array_read(a, NULL, &t, &opts, &terr), ZARR_ERR_NOT_FOUND);
    assert_says("x/c/0/0");
    stats.struct_size = 0;
    assert_status(zarr_array_read(a, NULL, &t, &opts, &terr), ZARR_ERR_ABI);
    stats.struct_size = sizeof stats;
    opts.missing_chunks = 0;
    opts.stream = &w; /* host memory has no streams */
    assert_status(zarr_array_read(a, NULL, &t, &opts, &terr), ZARR_ERR_UNSUPPORTED);
    assert_says("a stream is given");
    assert_status(zarr_array_write(a, NULL, &t, &opts, &terr), ZARR_ERR_UNSUPPORTED);
    opts.stream = NULL;
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    zarr_array_free(a);
    world_close(&w);
}

static void test_submit(void **state)
{
    const uint64_t shape[2] = {4, 4};
    struct world w;
    zarr_array *a = NULL;
    zarr_request *rq = NULL;
    zarr_stats stats = {.struct_size = sizeof stats};
    zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
    int32_t data[16], back[16] = {0};
    zarr_tensor t;
    int done = 0;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_array(&w, "x", 4, 4, 4);
    for (int i = 0; i < 16; i++)
        data[i] = i * i;
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    assert_ok(zarr_array_write_submit(&rq, a, NULL, &t, &opts, &terr));
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, &done, &terr));
    assert_int_equal(done, 1);
    assert_int_equal(stats.elements, 16);
    zarr_request_free(rq);
    zarr_tensor_host(&t, NULL, back, sizeof back, 2, shape);
    assert_ok(zarr_array_read_submit(&rq, a, NULL, &t, NULL, &terr));
    zarr_array_free(a); /* the request keeps it alive */
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
    zarr_request_free(rq);
    assert_memory_equal(data, back, sizeof data);
    world_close(&w);
}

enum {
    SUBMIT_READ,
    SUBMIT_WRITE,
    SUBMIT_READ_MANY,
    SUBMIT_WRITE_MANY,
    SUBMIT_APPEND,
    SUBMIT_CALLS
};

struct submit_options {
    char pipeline[8], preference[16];
    zarr_tuning tuning;
    zarr_io_options o;
};

static zarr_request *submit(int call, zarr_array *a, const zarr_tensor *t,
                            zarr_io_part *part, const zarr_io_options *o)
{
    zarr_request *rq = NULL;

    if (call == SUBMIT_READ)
        assert_ok(zarr_array_read_submit(&rq, a, NULL, t, o, &terr));
    else if (call == SUBMIT_WRITE)
        assert_ok(zarr_array_write_submit(&rq, a, NULL, t, o, &terr));
    else if (call == SUBMIT_READ_MANY)
        assert_ok(zarr_array_read_many_submit(&rq, a, part, 1, o, &terr));
    else if (call == SUBMIT_WRITE_MANY)
        assert_ok(zarr_array_write_many_submit(&rq, a, part, 1, o, &terr));
    else
        assert_ok(zarr_array_append_submit(&rq, a, 0, t, NULL, o, &terr));
    return rq;
}

/* The caller overwrites the options once the call has returned. The append waits for its
 * lock until then. */
static void test_submit_copies_options(void **state)
{
    const uint64_t shape[2] = {4, 4};
    struct world w;
    zarr_array *a = NULL;
    int32_t data[16] = {0};
    zarr_tensor t;
    zarr_io_part part = {.tensor = &t};
    void *lock = NULL;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_array(&w, "x", 4, 4, 4);
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    for (int call = 0; call < SUBMIT_CALLS; call++) {
        struct submit_options s = {"serial", "zstd=cpu", ZARR_TUNING_INIT,
                                   ZARR_IO_OPTIONS_INIT};
        zarr_request *rq;

        s.tuning.pipeline = s.pipeline;
        s.tuning.codec_preference = s.preference;
        s.o.tuning = &s.tuning;
        assert_ok(zarr_store_lock(&lock, w.store, "x/.zarrc-append", NULL, &terr));
        rq = submit(call, a, &t, &part, &s.o);
        memset(&s, 0xff, sizeof s);
        zarr_store_unlock(w.store, lock);
        assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
        zarr_request_free(rq);
    }
    zarr_array_free(a);
    world_close(&w);
}

static void test_explain(void **state)
{
    struct world w;
    zarr_array *a = NULL;
    zarr_explanation *e = NULL;
    char text[4096];
    size_t n = 0;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_array(&w, "x", 4, 8, 8);
    for (uint32_t what = ZARR_EXPLAIN_READ; what <= ZARR_EXPLAIN_WRITE; what++)
        for (uint32_t form = ZARR_EXPLAIN_TEXT; form <= ZARR_EXPLAIN_JSON; form++) {
            explain_text(a, what, NULL, form, text, sizeof text);
            assert_non_null(strstr(text, "zstd"));
            assert_true((text[0] == '{') == (form == ZARR_EXPLAIN_JSON));
        }
    assert_status(zarr_array_explain(&e, a, 2, NULL, NULL, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_null(e);
    assert_ok(zarr_array_explain(&e, a, ZARR_EXPLAIN_READ, NULL, NULL, NULL, &terr));
    zarr_array_free(a); /* the explanation does without it */
    assert_int_equal(e->struct_size, sizeof *e);
    assert_int_equal(e->ndim, 2);
    assert_int_equal(e->flags, ZARR_EXPLAIN_SHARDS);
    assert_int_equal(e->device_type, ZARR_DEVICE_CPU);
    assert_int_equal(e->elements, 64);
    assert_int_equal(e->blocks, 4);
    assert_int_equal(e->blocks_partial, 0);
    assert_int_equal(e->block_shape[1], 4);
    assert_int_equal(e->chunks, 16);
    assert_int_equal(e->chunk_shape[1], 2);
    assert_int_equal(e->chunk_bytes, 16);
    assert_int_equal(e->indexes_cached, 0);
    assert_int_equal(e->indexes_to_fetch, 4);
    assert_string_equal(e->path, "x");
    assert_string_equal(e->store, "local");
    assert_ok(zarr_explanation_text(e, ZARR_EXPLAIN_TEXT, NULL, 0, &n, &terr));
    assert_true(n > 10);
    assert_ok(zarr_explanation_text(e, ZARR_EXPLAIN_TEXT, text, 8, NULL, &terr));
    assert_string_equal(text, "read \"x");
    assert_status(zarr_explanation_text(e, 2, text, 1, &n, &terr), ZARR_ERR_INVALID);
    zarr_explanation_free(e);
    zarr_explanation_free(NULL);
    world_close(&w);
}

/* A write of a field changes each object that is stored, also if it has all elements. */
static void test_explain_field(void **state)
{
    const uint64_t length = 16, chunk = 8;
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 1,
        .shape = &length,
        .chunk_shape = &chunk,
        .data_type = "{\"name\":\"struct\",\"configuration\":{\"fields\":["
                     "{\"name\":\"a\",\"data_type\":\"int32\"},"
                     "{\"name\":\"b\",\"data_type\":\"int16\"}]}}"};
    const uint64_t shape = 16;
    int32_t data[16] = {1};
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_explanation *e = NULL;
    zarr_array *a = NULL;
    struct world w;
    zarr_tensor t;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    assert_ok(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr));
    o.field = "a";
    o.stats = &stats;
    zarr_tensor_host(&t, NULL, data, sizeof data, 1, &shape);
    for (uint32_t outside = 0; outside <= ZARR_OUTSIDE_RESET; outside++) {
        o.outside = outside;
        assert_ok(zarr_array_explain(&e, a, ZARR_EXPLAIN_WRITE, NULL, &t, &o, &terr));
        assert_ok(zarr_array_write(a, NULL, &t, &o, &terr));
        assert_int_equal(e->blocks_partial, 2);
        assert_int_equal(stats.read_modify_writes, 2);
        zarr_explanation_free(e);
    }
    assert_ok(zarr_array_explain(&e, a, ZARR_EXPLAIN_READ, NULL, &t, &o, &terr));
    assert_int_equal(e->blocks_partial, 0);
    zarr_explanation_free(e);
    zarr_array_free(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_tensors),         cmocka_unit_test(test_submit),
        cmocka_unit_test(test_submit_copies_options), cmocka_unit_test(test_explain),
        cmocka_unit_test(test_explain_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
