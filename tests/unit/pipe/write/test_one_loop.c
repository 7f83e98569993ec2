/*
 * unit/pipe/write/test_one_loop.c - the chunks of few shards are encoded in one parallel
 * loop: two shards of two chunks each keep four threads busy, and so do nested ones. The
 * encoder waits until four chunks are in work, so the test hangs if they never are. What
 * the four threads count is taken back if another writer was faster.
 */
#include "unit/conditional_caps.h"
#include "unit/pipe/pipe_test.h"

#include <pthread.h>

enum {
    THREADS = 4,
    COLS = 32768 /* a chunk of one row is worth a thread */
};

static pthread_barrier_t all_inside;
static zarr_store *below;
static int n_conflicts; /* so many conditional PUTs find another version */
static int32_t data[THREADS * COLS], got[THREADS * COLS];

static zarr_status copy_each(void *self, zarr_codec_job *jobs, uint64_t n,
                             zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        memcpy((uint8_t *)jobs[i].dst.handle + jobs[i].dst.offset,
               (const uint8_t *)jobs[i].src.handle + jobs[i].src.offset,
               jobs[i].src.bytes);
        jobs[i].dst_used = jobs[i].src.bytes;
    }
    return ZARR_OK;
}

static zarr_status meet_each(void *self, zarr_codec_job *jobs, uint64_t n,
                             zarr_codec_exec *exec, zarr_error *err)
{
    pthread_barrier_wait(&all_inside);
    return copy_each(self, jobs, n, exec, err);
}

static void open_world(struct pw *w)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.meet",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    const zarr_codec_impl_vtable v = {.struct_size = sizeof v,
                                      .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                              ZARR_CODEC_CAN_ENCODE,
                                      .codec = "test.meet",
                                      .impl = "cpu.test",
                                      .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                      .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                      .encode = meet_each,
                                      .decode = copy_each};

    pw_context(w, THREADS, UINT64_C(64) << 20, 0);
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &v, "test", &terr));
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", NULL, &terr));
}

static void check_write(const char *codecs, uint64_t rows)
{
    const uint64_t shape[] = {THREADS, COLS}, shard[] = {rows, COLS}, zero[] = {0, 0};
    zarr_array *a = NULL;
    struct pw w;

    open_world(&w);
    assert_int_equal(pthread_barrier_init(&all_inside, NULL, THREADS), 0);
    for (size_t i = 0; i < (size_t)THREADS * COLS; i++)
        data[i] = (int32_t)(i * 7 + 1);
    memset(got, 0, sizeof got);
    a = pw_array(w.store, "a", codecs, shape, shard);
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    assert_ok(pw_box(a, zero, shape, got, NULL, false));
    assert_memory_equal(got, data, sizeof data);
    pthread_barrier_destroy(&all_inside);
    zarr_array_free(a);
    pw_close(&w);
}

#define MEET  BYTES ",{\"name\":\"test.meet\"}"
#define INNER SHARD("[1,32768]", MEET, "end")

static void test_few_shards(void **state)
{
    (void)state;
    check_write("[" INNER "]", 2);
}

static void test_nested_shards(void **state)
{
    (void)state;
    check_write("[" SHARD("[2,32768]", INNER, "end") "]", 4);
}

/* ---- conflicts ------------------------------------------------------------------ */

static void conditional_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    *out = (zarr_store_caps){.struct_size = sizeof *out,
                             .flags = CAPS_CONDITIONAL | ZARR_STORE_CAP_WRITE |
                                      ZARR_STORE_CAP_ATOMIC_PUT};
}

static void conditional_run(void *self, zarr_store_op *op, zarr_error *err)
{
    (void)self;
    if (op->verb == ZARR_STORE_PUT && (op->flags & ZARR_STORE_OP_IF_VERSION) &&
        n_conflicts-- > 0)
        op->status = zr_fail(err, ZARR_ERR_CONFLICT, "another writer was faster");
    else
        (void)zr_store_run_one(below, op, err);
}

static void conditional_close(void *self)
{
    (void)self;
    zarr_store_free(below);
}

static void check_conflicts(const char *codecs)
{
    const zarr_store_vtable vt = {.struct_size = sizeof vt,
                                  .name = "conditional",
                                  .caps = conditional_caps,
                                  .run = conditional_run,
                                  .close = conditional_close};
    const uint64_t shape[] = {THREADS, COLS}, zero[] = {0, 0},
                   part[] = {THREADS, COLS - 1};
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
    zarr_array *a = NULL;
    struct pw w;

    open_world(&w);
    below = w.store;
    assert_ok(zarr_store_open_custom(&w.store, w.ctx, &vt, &below, NULL, &terr));
    assert_int_equal(pthread_barrier_init(&all_inside, NULL, THREADS), 0);
    a = pw_array(w.store, "a", codecs, shape, shape);
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    n_conflicts = 3;
    assert_ok(pw_box(a, zero, part, data, &opts, true));
    assert_true(n_conflicts < 0);
    assert_int_equal(stats.read_modify_writes, 4);
    assert_int_equal(stats.chunks_done, THREADS);
    assert_int_equal(stats.elements, part[0] * part[1]);
    pthread_barrier_destroy(&all_inside);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_conflicts(void **state)
{
    (void)state;
    check_conflicts("[" INNER "]");
    check_conflicts("[" SHARD("[2,32768]", INNER, "end") "]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_shards),
        cmocka_unit_test(test_nested_shards),
        cmocka_unit_test(test_conflicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
