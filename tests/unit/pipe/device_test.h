/*
 * unit/pipe/device_test.h - for tests of reads and writes with a device that does all
 * work late: a codec of the device, a context with it, arrays of many chains, tensors
 * there, and what both sides counted.
 */
#ifndef DEVICE_TEST_H
#define DEVICE_TEST_H

#include "pipe_test.h"

#include "fakedev/fakedev.h"
#include "sanitizers.h"

enum {
    ROWS = 100,
    COLS = 40,
    N = ROWS * COLS
};
static const uint64_t shape[2] = {ROWS, COLS};
static const uint64_t sizes[2] = {ROWS, COLS};
static int32_t data[N];

/* ---- a codec of the device: queued copies, looked at after the wait ------------- */

static void *device;
static struct {
    atomic_int calls, jobs; /* of decode() */
    atomic_int encode_calls, encode_jobs;
    atomic_int settled, at_once; /* calls; those without a stream */
    atomic_int copied, declined; /* jobs */
} n_late;

/* The codec declines every third job of a call with this; ZARR_OK: none. Of a chunk of so
 * many encoded bytes; 0: of any. */
static zarr_status declines;
static uint64_t declines_bytes;
static bool declines_lists; /* only of calls that have several jobs */

/* What the codec says of its input, and how many blocks were not where they should be. */
static uint32_t codec_alignment;
static atomic_int n_crooked;

static inline void look_where(const zarr_codec_job *job)
{
    const uint64_t in = codec_alignment ? codec_alignment : 1;

    if (job->src.device_type != ZARR_DEVICE_CPU && job->src.offset % in)
        atomic_fetch_add(&n_crooked, 1);
    if (job->dst.device_type != ZARR_DEVICE_CPU && job->dst.offset % sizeof data[0])
        atomic_fetch_add(&n_crooked, 1);
}

/* Changes what a call answers, at once or when it is settled; NULL: nothing. */
static zarr_status (*answer)(zarr_codec_job *jobs, uint64_t n, bool decode, bool settles,
                             zarr_status st, zarr_error *err);

/* A chunk that begins with this element is damaged, or cannot be encoded; 0: none. */
static int32_t damage = -1, refuses;

static inline zarr_status look(zarr_codec_job *jobs, uint64_t n, bool decode,
                               zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0; i < n; i++) {
        const zarr_memory *m = decode ? &jobs[i].dst : &jobs[i].src;
        int32_t first = 0;

        if (jobs[i].status != ZARR_OK) /* declined: its output was not written */
            continue;
        (void)zarr_fakedev_peek(m->handle, m->offset, &first, sizeof first);
        if (decode ? damage < 0 || first != damage : refuses == 0 || first != refuses)
            continue;
        jobs[i].status = ZARR_ERR_CORRUPT;
        if (st == ZARR_OK)
            st = zr_fail(err, ZARR_ERR_CORRUPT, "test.late: damage %d", (int)first);
    }
    return st;
}

static inline bool is_declined(const zarr_codec_job *jobs, uint64_t n, uint64_t i)
{
    return declines != ZARR_OK && i % 3 == 0 && (n > 1 || !declines_lists) &&
           (declines_bytes == 0 || jobs[i].src.bytes == declines_bytes);
}

static inline zarr_status late_copy(zarr_codec_job *jobs, uint64_t n, bool decode,
                                    zarr_codec_exec *exec, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0; i < n && st == ZARR_OK; i++) {
        jobs[i].dst_used = jobs[i].src.bytes;
        if (is_declined(jobs, n, i)) {
            jobs[i].status = declines;
            atomic_fetch_add(&n_late.declined, 1);
            continue;
        }
        jobs[i].dst.bytes = jobs[i].src.bytes;
        st = zarr_fakedev_vtable_late()->copy(device, &jobs[i].dst, &jobs[i].src,
                                              jobs[i].src.bytes, exec->stream, err);
        atomic_fetch_add(&n_late.copied, st == ZARR_OK);
    }
    if (st == ZARR_OK && n > 0 && is_declined(jobs, n, 0))
        st = zr_fail(err, declines, "test.late: not this one");
    if (answer)
        st = answer(jobs, n, decode, false, st, err);
    if (exec->stream) { /* else all is done on return */
        exec->pending = malloc(sizeof decode);
        memcpy(exec->pending, &decode, sizeof decode);
    } else {
        atomic_fetch_add(&n_late.at_once, 1);
    }
    return st;
}

static inline zarr_status late_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                      zarr_codec_exec *exec, zarr_error *err)
{
    zarr_status st = late_copy(jobs, n, true, exec, err);

    (void)self;
    for (uint64_t i = 0; i < n; i++)
        look_where(&jobs[i]);
    atomic_fetch_add(&n_late.calls, 1);
    atomic_fetch_add(&n_late.jobs, (int)n);
    return st == ZARR_OK && !exec->stream ? look(jobs, n, true, err) : st;
}

static inline zarr_status late_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                                      zarr_codec_exec *exec, zarr_error *err)
{
    zarr_status st = late_copy(jobs, n, false, exec, err);

    (void)self;
    atomic_fetch_add(&n_late.encode_calls, 1);
    atomic_fetch_add(&n_late.encode_jobs, (int)n);
    return st == ZARR_OK && !exec->stream ? look(jobs, n, false, err) : st;
}

static inline zarr_status late_settle(void *self, zarr_codec_job *jobs, uint64_t n,
                                      zarr_codec_exec *exec, zarr_error *err)
{
    bool decode = false;
    zarr_status st;

    (void)self;
    atomic_fetch_add(&n_late.settled, 1);
    memcpy(&decode, exec->pending, sizeof decode);
    free(exec->pending);
    st = look(jobs, n, decode, err);
    return answer ? answer(jobs, n, decode, true, st, err) : st;
}

#define CPU ZARR_MEMORY_BIT(ZARR_DEVICE_CPU)
#define EXT ZARR_MEMORY_BIT(ZARR_DEVICE_EXT)

static uint64_t pinned_bytes; /* of the next context; 0: the default */
static uint64_t context_bytes = UINT64_C(64) << 20;
static uint32_t context_trust;
static zarr_log_fn context_log;
static uint32_t context_log_level;
static int32_t values_device; /* of the store, where its chunks are; 0: the host */
static const zarr_memory_vtable *device_table;  /* NULL: that of late streams */
static void (*more_codecs)(const struct pw *w); /* registers them; NULL: none */
static bool unchecked; /* the device's codec does not check its input */

static inline void open_world(struct pw *w, uint32_t threads, uint64_t wave)
{
    zarr_context_options opts = {.max_threads = threads,
                                 .memory_bytes = context_bytes,
                                 .wave_bytes = wave,
                                 .pinned_bytes = pinned_bytes,
                                 .trust = context_trust,
                                 .log = context_log,
                                 .log_level = context_log_level};
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.late",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    const zarr_codec_impl_vtable host = {.struct_size = sizeof host,
                                         .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                                 ZARR_CODEC_CAN_ENCODE,
                                         .codec = "test.late",
                                         .impl = "cpu.same",
                                         .in_kinds = CPU,
                                         .out_kinds = CPU,
                                         .encode = pw_copy_same,
                                         .decode = pw_copy_same};
    const zarr_codec_impl_vtable late = {
        .struct_size = sizeof late,
        .caps = (unchecked ? 0 : ZARR_CODEC_SAFE) | ZARR_CODEC_CAN_DECODE |
                ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_BATCH | ZARR_CODEC_ASYNC,
        .codec = "test.late",
        .impl = "fake.late",
        .in_kinds = EXT,
        .out_kinds = EXT,
        .priority = 10,
        .alignment = codec_alignment,
        .encode = late_encode,
        .decode = late_decode,
        .settle = late_settle};
    zarr_store_options where = ZARR_STORE_OPTIONS_INIT;

    pw_context_options(w, &opts);
    w->ctx->engine.memory_limit = 0; /* a chunk that needs more is alone */
    device = zarr_fakedev_create();
    assert_ok(zarr_context_register_memory(
        w->ctx, device_table ? device_table : zarr_fakedev_vtable_late(), device, "test",
        &terr));
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &host, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &late, "test", &terr));
    if (more_codecs)
        more_codecs(w);
    where.device_type = values_device;
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", &where, &terr));
    damage = -1;
    refuses = 0;
    for (int i = 0; i < N; i++)
        data[i] = 1000 + i;
}

static inline void close_world(struct pw *w)
{
    zarr_fakedev_counters c;

    zarr_fakedev_count(device, &c);
    assert_int_equal(c.faults, 0);
    pw_close(w);
}

/* ---- arrays ----------------------------------------------------------------------- */

#define LATE "{\"name\":\"test.late\"}"
static const struct kind {
    const char *codecs;
    uint64_t chunk[2];
    bool on_device; /* the codecs next to the elements work there */
} kinds[] = {
    {"[" BYTES "]", {10, 40}, false},
    {"[" BIG "]", {7, 9}, false},
    {"[" BYTES "," GZIP "]", {10, 10}, false},
    {"[" TURN "," BIG "," GZIP "]", {9, 11}, false},
    {"[" BYTES "," LATE "]", {10, 40}, true}, /* each chunk is in the tensor as it is */
    {"[" BYTES "," LATE "]", {7, 9}, true},
    {"[" TURN "," BIG "," LATE "]", {8, 8}, true},
    {"[" BYTES "," LATE "," CRC "]", {10, 10}, true},
    {"[" BYTES "," LATE "," GZIP "," LATE "]", {10, 10}, true},
    {"[" SHARD("[5,4]", BYTES, "end") "]", {20, 20}, false},
    {"[" SHARD("[5,4]", BIG "," LATE, "end") "]", {20, 20}, true},
    {"[" SHARD("[2,4]", BYTES "," LATE "," CRC, "start") "," CRC "]", {20, 20}, true},
    {"[" SHARD("[10,20]", SHARD("[5,4]", BYTES "," LATE, "end"), "end") "]",
     {20, 20},
     true},
    {"[" TURN "," BYTES "]", {9, 11}, false},
    {"[" BYTES "," LATE "," GZIP "]", {10, 10}, true},
};
enum {
    N_RAW = 2, /* the first ones are raw chunks */
    RAW_SHARDS = 9,
    N_KINDS = sizeof kinds / sizeof kinds[0]
};

/* A tensor of a shape on the device, with room for `data`. */
static inline zarr_memory tensor_new(const struct pw *w, zarr_tensor *t,
                                     const uint64_t *lengths)
{
    zarr_memory mem;

    assert_ok(zarr_memory_alloc(&mem, w->ctx, ZARR_DEVICE_EXT, 0, sizeof data, &terr));
    *t = (zarr_tensor)ZARR_TENSOR_INIT;
    t->device_type = ZARR_DEVICE_EXT;
    t->ndim = 2;
    t->data = mem.handle;
    t->data_bytes = mem.bytes;
    t->shape = lengths;
    return mem;
}

/* A selection of `shape`, and its lengths. */
static inline zarr_selection *parse_selection(const char *text, uint64_t *lengths)
{
    zarr_selection *sel = NULL;

    assert_ok(zarr_selection_parse(&sel, 2, shape, text, &terr));
    for (int d = 0; d < 2; d++)
        lengths[d] = zarr_selection_shape(sel)[d];
    return sel;
}

/* The first elements of `data` for a selection, on the device and on the host. */
struct source {
    zarr_selection *sel;
    zarr_tensor t, host;
    zarr_memory mem;
    uint64_t lengths[2];
};

static inline void source_open(const struct pw *w, struct source *s, const char *text)
{
    memset(s, 0, sizeof *s);
    s->sel = parse_selection(text, s->lengths);
    s->mem = tensor_new(w, &s->t, s->lengths);
    assert_int_equal(zarr_fakedev_poke(s->mem.handle, 0, data, sizeof data), 0);
    zarr_tensor_host(&s->host, NULL, data, sizeof data, 2, s->lengths);
}

static inline void source_close(const struct pw *w, struct source *s)
{
    zarr_selection_free(s->sel);
    zarr_memory_free(w->ctx, &s->mem);
}

/* Reads a selection to the device, and so to `values`, and compares it with what a read
 * to the host gives. */
static inline void compare_read(const struct pw *w, zarr_array *a, const char *text,
                                int32_t *values)
{
    static int32_t want[N];
    uint64_t lengths[2];
    zarr_selection *sel = parse_selection(text, lengths);
    const uint64_t bytes = zarr_selection_n_items(sel) * sizeof data[0];
    zarr_tensor t, host;
    zarr_memory mem = tensor_new(w, &t, lengths);

    assert_ok(zarr_array_read(a, sel, &t, NULL, &terr));
    assert_int_equal(zarr_fakedev_peek(mem.handle, 0, values, bytes), 0);
    zarr_tensor_host(&host, NULL, want, sizeof want, 2, lengths);
    assert_ok(zarr_array_read(a, sel, &host, NULL, &terr));
    assert_memory_equal(values, want, bytes);
    zarr_selection_free(sel);
    zarr_memory_free(w->ctx, &mem);
}

/* The k-th call of the device fails, for each k: a read of all of `a`, which has `data`,
 * fails with that, or what it gives is right. */
static inline void read_failing(const struct pw *w, zarr_array *a, zarr_status status)
{
    static int32_t values[N];
    bool passed = false;
    zarr_tensor t;
    zarr_memory mem = tensor_new(w, &t, sizes);

    for (uint64_t k = 1; !passed; k += ZR_FAIL_STEP(k)) {
        zarr_status st;

        assert_true(k < 2000);
        zarr_context_trim(w->ctx); /* so that blocks are allocated each time */
        zarr_fakedev_fail(device, ZARR_FAKEDEV_ALL, k, status);
        st = zarr_array_read(a, NULL, &t, NULL, &terr);
        zarr_fakedev_fail(device, 0, 0, ZARR_OK);
        if (st == ZARR_OK) {
            assert_int_equal(zarr_fakedev_peek(mem.handle, 0, values, sizeof values), 0);
            assert_memory_equal(values, data, sizeof data);
            passed = k > 150; /* an allocation is tried again after a trim */
        } else {
            assert_int_equal(st, status);
        }
    }
    zarr_memory_free(w->ctx, &mem);
}

/* The chunk that the last error names. */
static inline void same_key(uint64_t r, uint64_t c)
{
    char key[32], want[32];

    assert_true(zarr_error_text(&terr, ZARR_ERROR_KEY, key, sizeof key) > 0);
    snprintf(want, sizeof want, "a/c/%d/%d", (int)r, (int)c);
    assert_string_equal(key, want);
}

/* What the device has besides the blocks that are there. */
static inline void budget_set(const struct pw *w, uint64_t bytes)
{
    zarr_fakedev_counters c;
    uint64_t told = 0;

    zarr_fakedev_count(device, &c);
    zarr_fakedev_budget(device, bytes, 0);
    assert_ok(zr_pool_budget(w->ctx->pool, ZARR_DEVICE_EXT, 0, false, &told, &terr));
    assert_int_equal(told, bytes);
    zarr_fakedev_budget(device, c.live_bytes + bytes, 0);
}

/* Makes an array and writes these N elements. */
static inline zarr_array *write_array(const struct pw *w, const char *path, int kind,
                                      int32_t *values)
{
    zarr_array *a =
        pw_array(w->store, path, kinds[kind].codecs, shape, kinds[kind].chunk);
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, values, N * sizeof *values, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    return a;
}

static inline zarr_array *filled_array(const struct pw *w, const char *path, int kind)
{
    return write_array(w, path, kind, data);
}

/* A chunk of two arrays is stored alike, or missing in both. */
static inline void same_value(const struct pw *w, const char *const *path, uint64_t r,
                              uint64_t c)
{
    static unsigned char value[2][2 * sizeof data];
    uint64_t bytes[2] = {sizeof value[0], sizeof value[0]};
    zarr_status st[2];
    char key[64];

    for (int i = 0; i < 2; i++) {
        snprintf(key, sizeof key, "%s/c/%d/%d", path[i], (int)r, (int)c);
        st[i] = zarr_store_get(w->store, key, 0, value[i], &bytes[i], NULL, &terr);
        assert_true(st[i] == ZARR_OK || st[i] == ZARR_ERR_NOT_FOUND);
    }
    assert_int_equal(st[0], st[1]);
    if (st[0] != ZARR_OK)
        return;
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(value[0], value[1], bytes[0]);
}

static inline void same_arrays(const struct pw *w, const char *one, const char *other,
                               int kind)
{
    const char *const path[2] = {one, other};

    for (uint64_t r = 0; r * kinds[kind].chunk[0] < ROWS; r++)
        for (uint64_t c = 0; c * kinds[kind].chunk[1] < COLS; c++)
            same_value(w, path, r, c);
}

/* ---- counts ------------------------------------------------------------------------ */

/* What a request says that it did, and what the device saw of it. */
struct counts {
    zarr_stats stats;
    zarr_fakedev_counters moved;
    zarr_fakedev_late_counters late;
};

static inline void count_begin(struct counts *c, zarr_io_options *opts)
{
    c->stats = (zarr_stats)ZARR_STATS_INIT;
    opts->stats = &c->stats;
    memset(&n_late, 0, sizeof n_late);
    zarr_fakedev_late_count(device, &c->late);
    zarr_fakedev_count(device, &c->moved);
}

#define COUNT_ADDED(of, member) c->of.member = of.member - c->of.member

static inline void count_end(struct counts *c)
{
    zarr_fakedev_counters moved;
    zarr_fakedev_late_counters late;

    zarr_fakedev_late_count(device, &late);
    zarr_fakedev_count(device, &moved);
    COUNT_ADDED(moved, copies_up);
    COUNT_ADDED(moved, bytes_up);
    COUNT_ADDED(moved, copies_down);
    COUNT_ADDED(moved, bytes_down);
    COUNT_ADDED(moved, copies_device);
    COUNT_ADDED(moved, bytes_device);
    COUNT_ADDED(moved, boxes);
    COUNT_ADDED(moved, fills);
    COUNT_ADDED(late, calls);
    COUNT_ADDED(late, lists);
    COUNT_ADDED(late, list_items);
    COUNT_ADDED(late, equals);
    COUNT_ADDED(late, queued);
    COUNT_ADDED(late, syncs);
    COUNT_ADDED(late, orders);
    COUNT_ADDED(late, streams_opened);
    COUNT_ADDED(late, pinned_allocs);
}

/* Reads all elements into a tensor of tensor_new(), which has others before, and compares
 * them with `data`. */
static inline void read_data(struct counts *c, zarr_array *a, const zarr_tensor *t,
                             const zarr_memory *mem, zarr_io_options *opts)
{
    static int32_t got[N];

    memset(got, 0, sizeof got);
    assert_int_equal(zarr_fakedev_poke(mem->handle, 0, got, sizeof got), 0);
    count_begin(c, opts);
    assert_ok(zarr_array_read(a, NULL, t, opts, &terr));
    count_end(c);
    assert_int_equal(zarr_fakedev_peek(mem->handle, 0, got, sizeof got), 0);
    assert_memory_equal(got, data, sizeof data);
}

#endif
