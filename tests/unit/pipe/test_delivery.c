/*
 * unit/pipe/test_delivery.c - plug-ins' pipelines that report success without having
 * finished: they did nothing, left out a segment or a unit, or encoded without putting.
 * The request fails, whatever its selection. It succeeds if the pipeline did everything,
 * once or twice.
 */
#include "pipe_test.h"

enum {
    SIDE = 10,
    CHUNK = 4,
    ALL = 1000 /* all segments or units */
};

/* How much of a request the pipeline does: this many segments or units, this many
 * times. */
static struct {
    int most, times;
    bool parts;  /* with a call for each step, instead of read() and write() */
    bool no_put; /* encodes only */
} lazy;

static zarr_status in_parts(const zarr_pipeline_steps *s, zarr_pipeline_worker *worker,
                            zarr_pipeline_wave *wave, uint32_t i, zarr_error *err)
{
    zarr_pipeline_segment segment;
    zarr_memory got = {0}, block = {0};
    zarr_status st = s->fetch(worker, wave, i, &got, err);
    const bool missing = st == ZARR_ERR_NOT_FOUND;

    s->segment_get(wave, i, &segment);
    st = missing ? ZARR_OK : st;
    for (uint32_t k = 0; k < segment.n_items && st == ZARR_OK; k++) {
        if (missing) {
            st = s->fill(worker, wave, i, k, err);
            continue;
        }
        st = s->decode(worker, wave, i, k, &got, &block, err);
        if (st == ZARR_OK)
            st = s->scatter(worker, wave, i, k, &block, err);
    }
    return st;
}

static zarr_status lazy_read(void *self, zarr_request *request,
                             const zarr_pipeline_steps *s, zarr_error *err)
{
    zarr_pipeline_worker *worker = NULL;
    zarr_pipeline_plan *plan = NULL;
    zarr_pipeline_wave *wave = NULL;
    uint32_t kind = ZARR_WAVE_MORE, n_opens = 0, n_segments = 0;
    int left = lazy.most;
    zarr_status st = ZARR_OK;

    (void)self;
    if (left == 0)
        return ZARR_OK; /* does not even open a plan */
    assert_ok(s->worker_open(&worker, request, 0, err));
    assert_ok(s->plan_open(&plan, request, NULL, err));
    assert_ok(s->wave_open(&wave, plan, err));
    while (st == ZARR_OK) {
        st = s->next(plan, wave, &kind, err);
        if (st != ZARR_OK || kind != ZARR_WAVE_MORE)
            break;
        s->wave_counts(wave, &n_opens, &n_segments);
        assert_int_equal(n_opens, 0);
        for (uint32_t i = 0; i < n_segments && st == ZARR_OK && left > 0; i++, left--)
            for (int k = 0; k < lazy.times && st == ZARR_OK; k++)
                st = lazy.parts ? in_parts(s, worker, wave, i, err)
                                : s->read(worker, wave, i, err);
    }
    s->wave_close(wave);
    s->plan_close(plan);
    s->worker_close(worker);
    return st;
}

static zarr_status lazy_write(void *self, zarr_request *request,
                              const zarr_pipeline_steps *s, zarr_error *err)
{
    zarr_pipeline_worker *worker = NULL;
    zarr_pipeline_blocks *units = NULL;
    uint32_t n = 1;
    int left = lazy.most;
    zarr_status st = ZARR_OK;

    (void)self;
    assert_ok(s->worker_open(&worker, request, 0, err));
    assert_ok(s->blocks_open(&units, request, err));
    while (st == ZARR_OK && n > 0 && left > 0) {
        st = s->blocks_next(units, 1, &n, err);
        for (uint32_t i = 0; i < n && st == ZARR_OK && left > 0; i++, left--) {
            zarr_pipeline_block unit;
            zarr_memory bytes = {0};
            int empty = 0;

            s->block_get(units, i, &unit);
            if (!lazy.parts || !unit.simple) {
                st = s->write(worker, units, i, 1, err);
                continue;
            }
            st = s->encode(worker, units, i, &bytes, &empty, err);
            if (st == ZARR_OK && !lazy.no_put)
                st = s->put(worker, units, i, empty ? NULL : &bytes, err);
        }
    }
    s->blocks_close(units);
    s->worker_close(worker);
    return st;
}

static zarr_array *open_all(struct pw *w)
{
    static const zarr_pipeline_vtable pipe = {.struct_size = sizeof pipe,
                                              .name = "test.lazy",
                                              .read = lazy_read,
                                              .write = lazy_write};
    static const zarr_pipeline_vtable reader = {
        .struct_size = sizeof reader, .name = "test.reader", .read = lazy_read};
    const uint64_t shape[2] = {SIDE, SIDE}, chunk[2] = {CHUNK, CHUNK};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .data_type = "int32",
                                  .codecs = "[" BYTES ",{\"name\":\"zstd\"}]"};
    zarr_array *a = NULL;

    pw_context(w, 2, UINT64_C(64) << 20, 0);
    assert_ok(zarr_context_register_pipeline(w->ctx, &pipe, NULL, "test", &terr));
    assert_ok(zarr_context_register_pipeline(w->ctx, &reader, NULL, "test", &terr));
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", NULL, &terr));
    assert_ok(zarr_array_create(&a, w->store, "a", &spec, NULL, &terr));
    return a;
}

static zarr_status transfer(zarr_array *a, const zarr_selection *sel, bool write)
{
    static int32_t data[SIDE * SIDE];
    const int32_t ndim = sel ? zarr_selection_ndim(sel) : 2;
    uint64_t shape[2] = {SIDE, SIDE};
    const zarr_io_options opts = {.struct_size = sizeof opts,
                                  .tuning = TUNING(.pipeline = "test.lazy")};
    zarr_tensor t;

    for (int32_t d = 0; sel && d < ndim; d++)
        shape[d] = zarr_selection_shape(sel)[d];
    t = pw_tensor(data, shape, sizeof data);
    t.ndim = ndim;
    for (int i = 0; i < SIDE * SIDE; i++)
        data[i] = i + 1;
    memset(&terr, 0, sizeof terr);
    return write ? zarr_array_write(a, sel, &t, &opts, &terr)
                 : zarr_array_read(a, sel, &t, &opts, &terr);
}

static void check_refused(zarr_array *a, const zarr_selection *sel, bool write,
                          const char *words)
{
    assert_status(transfer(a, sel, write), ZARR_ERR_INTERNAL);
    if (!strstr(terr.message, words) || !strstr(terr.message, "\"test.lazy\""))
        fail_msg("%s", terr.message);
}

static void test_reads(void **state)
{
    const uint64_t start[2] = {3, 0}, n[2] = {2, 1}, none[2] = {0, 1};
    zarr_selection *box = NULL, *empty = NULL, *points = NULL;
    zarr_array *a;
    struct pw w;

    (void)state;
    a = open_all(&w);
    lazy.times = 1;
    lazy.no_put = false;
    assert_ok(zarr_selection_box(&box, 2, zarr_array_shape(a), start, n, &terr));
    assert_ok(zarr_selection_box(&empty, 2, zarr_array_shape(a), start, none, &terr));
    assert_ok(
        zarr_selection_parse(&points, 2, zarr_array_shape(a), "[9,0,9,9,5],0", &terr));
    for (int parts = 0; parts < 2; parts++) {
        lazy.parts = parts;
        for (int stored = 0; stored < 2; stored++) { /* missing chunks count as well */
            lazy.most = 0;
            check_refused(a, NULL, false, "read 0 of 100 elements");
            check_refused(a, box, false, "read 0 of 2 elements");
            assert_ok(transfer(a, empty, false));
            lazy.most = 1;
            check_refused(a, NULL, false, " of 100 elements");
            check_refused(a, box, false, "read 1 of 2 elements");
            lazy.most = ALL;
            for (lazy.times = 1; lazy.times < 3; lazy.times++) {
                assert_ok(transfer(a, NULL, false));
                assert_ok(transfer(a, box, false));
                assert_ok(transfer(a, points, false));
            }
            lazy.times = 1;
            assert_ok(transfer(a, NULL, true));
        }
    }
    zarr_selection_free(box);
    zarr_selection_free(empty);
    zarr_selection_free(points);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_writes(void **state)
{
    const uint64_t start[2] = {3, 0}, n[2] = {2, 1};
    zarr_selection *box = NULL;
    zarr_array *a;
    struct pw w;

    (void)state;
    a = open_all(&w);
    assert_ok(zarr_selection_box(&box, 2, zarr_array_shape(a), start, n, &terr));
    for (int parts = 0; parts < 2; parts++) {
        lazy.parts = parts;
        lazy.most = 0;
        check_refused(a, NULL, true, "written 0 of 100 elements");
        lazy.most = 1;
        check_refused(a, NULL, true, "written 16 of 100 elements");
        check_refused(a, box, true, "written 1 of 2 elements");
        lazy.most = ALL;
        assert_ok(transfer(a, NULL, true));
        assert_ok(transfer(a, box, true));
    }
    lazy.no_put = true; /* the four chunks inside */
    check_refused(a, NULL, true, "written 36 of 100 elements");
    lazy.no_put = false;
    zarr_selection_free(box);
    zarr_array_free(a);
    pw_close(&w);
}

/* The library writes for a pipeline that only reads. */
static void test_no_write(void **state)
{
    zarr_io_options opts = {.struct_size = sizeof opts,
                            .tuning = TUNING(.pipeline = "test.reader")};
    static int32_t data[SIDE * SIDE] = {1, 2, 3}, got[SIDE * SIDE];
    const uint64_t shape[2] = {SIDE, SIDE};
    zarr_tensor t = pw_tensor(data, shape, sizeof data);
    zarr_array *a;
    struct pw w;

    (void)state;
    a = open_all(&w);
    assert_ok(zarr_array_write(a, NULL, &t, &opts, &terr));
    t = pw_tensor(got, shape, sizeof got);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    assert_memory_equal(got, data, sizeof data);
    lazy.most = 0; /* what it reads is compared with the request */
    assert_status(zarr_array_read(a, NULL, &t, &opts, &terr), ZARR_ERR_INTERNAL);
    zarr_array_free(a);
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_writes),
        cmocka_unit_test(test_no_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
