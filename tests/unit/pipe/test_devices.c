/*
 * unit/pipe/test_devices.c - an implementation for another memory kind gets that kind,
 * for reads and writes, whole chunks, parts and shards, with every pipeline, and whether
 * or not the store accepts that memory. The copies made are those that explain reports.
 * The other memory is at addresses that fault on any access.
 */
#include "own_pipe.h"

#include <stdio.h>
#include <unistd.h>

/* ---- the other memory ---------------------------------------------------- */

#define FAR ((uintptr_t)1 << 62)

static uint8_t *at(const zarr_memory *m)
{
    return (uint8_t *)((uintptr_t)m->handle & ~FAR) + m->offset;
}

static zarr_status far_alloc(void *self, int32_t device_id, uint64_t bytes,
                             zarr_memory *out, zarr_error *err)
{
    void *p = NULL;

    (void)self;
    (void)err;
    if (posix_memalign(&p, 64, bytes ? bytes : 1) != 0)
        return ZARR_ERR_NO_MEMORY;
    *out = (zarr_memory){.device_type = ZARR_DEVICE_EXT,
                         .device_id = device_id,
                         .handle = (void *)((uintptr_t)p | FAR),
                         .bytes = bytes};
    return ZARR_OK;
}

static void far_free(void *self, zarr_memory *mem)
{
    (void)self;
    free((void *)((uintptr_t)mem->handle & ~FAR));
}

static zarr_status far_copy(void *self, const zarr_memory *dst, const zarr_memory *src,
                            uint64_t bytes, void *stream, zarr_error *err)
{
    (void)self;
    (void)stream;
    (void)err;
    memcpy(at(dst), at(src), bytes);
    return ZARR_OK;
}

/* The offset of the next element of a box on each side. False at the end. */
static bool next_element(const zarr_box *box, uint64_t *index, int64_t *dst, int64_t *src)
{
    for (int32_t d = box->ndim - 1; d >= 0; d--) {
        *dst += box->dst.stride[d];
        *src += box->src.stride[d];
        if (++index[d] < box->shape[d])
            return true;
        *dst -= (int64_t)index[d] * box->dst.stride[d];
        *src -= (int64_t)index[d] * box->src.stride[d];
        index[d] = 0;
    }
    return false;
}

static zarr_status far_box(const zarr_box *box, const uint8_t *pattern)
{
    const uint32_t unit = box->swap_bytes > 1 ? box->swap_bytes : box->item_bytes;
    uint64_t index[ZARR_MAX_RANK] = {0};
    int64_t to = 0, from = 0;

    for (int32_t d = 0; d < box->ndim; d++)
        if (box->shape[d] == 0)
            return ZARR_OK;
    do {
        uint8_t *dst = at(&box->dst.mem) + to;
        const uint8_t *src = pattern ? pattern : at(&box->src.mem) + from;

        for (uint32_t b = 0; b < box->item_bytes; b++)
            dst[b] = src[box->swap_bytes > 1 ? b / unit * unit + unit - 1 - b % unit : b];
    } while (next_element(box, index, &to, &from));
    return ZARR_OK;
}

static zarr_status far_copy_box(void *self, const zarr_box *box, void *stream,
                                zarr_error *err)
{
    (void)self;
    (void)stream;
    (void)err;
    return far_box(box, NULL);
}

static zarr_status far_fill_box(void *self, const zarr_box *box, const void *pattern,
                                void *stream, zarr_error *err)
{
    zarr_box plain = *box;

    (void)self;
    (void)stream;
    (void)err;
    plain.swap_bytes = 0; /* the pattern has the requested value */
    return far_box(&plain, pattern);
}

static const zarr_memory_vtable far_memory = {.struct_size = sizeof far_memory,
                                              .name = "far",
                                              .device_type = ZARR_DEVICE_EXT,
                                              .alloc = far_alloc,
                                              .free = far_free,
                                              .copy = far_copy,
                                              .copy_box = far_copy_box,
                                              .fill_box = far_fill_box};

/* ---- a codec with implementations for both memory kinds ------------------ */

#define NEAR_BIT ZARR_MEMORY_BIT(ZARR_DEVICE_CPU)
#define FAR_BIT  ZARR_MEMORY_BIT(ZARR_DEVICE_EXT)

struct side {
    uint32_t encoded, decoded;            /* memory kinds */
    atomic_int jobs, wrong, most_encoded; /* largest number of jobs in one call */
};
static struct side near_side, far_side;

static zarr_status turn(struct side *s, bool encode, zarr_codec_job *jobs, uint64_t n)
{
    const uint32_t in = encode ? s->decoded : s->encoded;
    const uint32_t out = encode ? s->encoded : s->decoded;

    if (encode && atomic_load(&s->most_encoded) < (int)n)
        atomic_store(&s->most_encoded, (int)n);
    for (uint64_t i = 0; i < n; i++) {
        zarr_codec_job *job = &jobs[i];

        if ((ZARR_MEMORY_BIT(job->src.device_type) & in) == 0 ||
            (ZARR_MEMORY_BIT(job->dst.device_type) & out) == 0)
            atomic_fetch_add(&s->wrong, 1);
        job->status = job->dst.bytes < job->src.bytes ? ZARR_ERR_CORRUPT : ZARR_OK;
        if (job->status != ZARR_OK)
            return job->status;
        for (uint64_t k = 0; k < job->src.bytes; k++)
            at(&job->dst)[k] = at(&job->src)[k] ^ 0x5a;
        job->dst_used = job->src.bytes;
        atomic_fetch_add(&s->jobs, 1);
    }
    return ZARR_OK;
}

static zarr_status near_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    return turn(&near_side, true, jobs, n);
}

static zarr_status near_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    return turn(&near_side, false, jobs, n);
}

static zarr_status far_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    return turn(&far_side, true, jobs, n);
}

static zarr_status far_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    return turn(&far_side, false, jobs, n);
}

/* ---- worlds -------------------------------------------------------------- */

enum {
    VALUES_NEAR, /* memory:, whose objects are in host memory */
    VALUES_FAR,
    LOCAL,
    N_STORES
};
struct setting {
    int store;
    uint32_t encoded, decoded; /* calls of the implementation for the other memory */
    bool batch;
    int32_t tensor; /* memory kind of the elements */
    const char *preference;
    char dir[40];
};

static void register_all(struct pw *w, const struct setting *s)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.turn",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    zarr_codec_impl_vtable v = {.struct_size = sizeof v,
                                .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                        ZARR_CODEC_CAN_ENCODE,
                                .codec = "test.turn",
                                .impl = "cpu.test",
                                .in_kinds = NEAR_BIT,
                                .out_kinds = NEAR_BIT,
                                .encode = near_encode,
                                .decode = near_decode};

    near_side.encoded = near_side.decoded = NEAR_BIT;
    far_side.encoded = s->encoded;
    far_side.decoded = s->decoded;
    assert_ok(zarr_context_register_memory(w->ctx, &far_memory, NULL, "test", &terr));
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &v, "test", &terr));
    v.impl = "far.test";
    v.in_kinds = s->encoded;
    v.out_kinds = s->decoded;
    v.priority = 100;
    v.caps |= s->batch ? ZARR_CODEC_BATCH : 0;
    v.encode = far_encode;
    v.decode = far_decode;
    assert_ok(zarr_context_register_codec_impl(w->ctx, &v, "test", &terr));
    assert_ok(zarr_context_register_pipeline(w->ctx, &own_pipe, &own_n, "test", &terr));
}

static void open_setting(struct pw *w, struct setting *s)
{
    zarr_store_options opts = ZARR_STORE_OPTIONS_INIT;

    pw_context(w, 3, UINT64_C(64) << 20, 0);
    register_all(w, s);
    strcpy(s->dir, "/tmp/zarrc-devices-XXXXXX");
    if (s->store == LOCAL)
        assert_non_null(mkdtemp(s->dir));
    opts.durability = ZARR_DURABILITY_NONE;
    opts.device_type = s->store == VALUES_FAR ? ZARR_DEVICE_EXT : 0;
    assert_ok(zarr_store_open(&w->store, w->ctx,
                              s->store == LOCAL ? s->dir : "memory:", &opts, &terr));
}

static void close_setting(struct pw *w, const struct setting *s)
{
    if (s->store == LOCAL) {
        assert_ok(zarr_store_erase_prefix(w->store, "", NULL, &terr));
        (void)rmdir(s->dir);
    }
    pw_close(w);
}

/* ---- requests ------------------------------------------------------------ */

enum {
    ROWS = 7,
    COLS = 9,
    N_CHUNKS = 6
};
static const uint64_t shape[2] = {ROWS, COLS}, chunk[2] = {4, 4};

/* Transfers a box of the array from or to data, in the other memory if the setting says
 * so. NOLINT(function-size): what pw_box() takes, and the setting */
static zarr_status box(struct pw *w, const struct setting *s, zarr_array *a,
                       const uint64_t *start, const uint64_t *n, int32_t *data,
                       const zarr_io_options *opts, bool write)
{
    const uint64_t size[2] = {(uint64_t)n[0], (uint64_t)n[1]};
    const uint64_t bytes = n[0] * n[1] * sizeof *data;
    zarr_tensor t = pw_tensor(NULL, size, bytes);
    zarr_selection *sel = NULL;
    zarr_memory mem = {0};
    zarr_status st;

    assert_ok(zarr_memory_alloc(&mem, w->ctx, s->tensor, 0, bytes, &terr));
    memset(at(&mem), 0x11, bytes);
    if (write)
        memcpy(at(&mem), data, bytes);
    t.device_type = s->tensor;
    t.data = mem.handle;
    t.byte_offset = mem.offset;
    t.data_bytes = mem.bytes;
    assert_ok(zarr_selection_box(&sel, 2, shape, start, n, &terr));
    st = write ? zarr_array_write(a, sel, &t, opts, &terr)
               : zarr_array_read(a, sel, &t, opts, &terr);
    if (!write)
        memcpy(data, at(&mem), bytes);
    zarr_selection_free(sel);
    zarr_memory_free(w->ctx, &mem);
    return st;
}

/* What explain reports about a request of all elements. */
struct told {
    char text[1024];
    bool fetched_far;  /* the store moves bytes to or from the other memory */
    unsigned down, up; /* copies on the path of one chunk */
    /* Copies between tensor and chunk; copies to look for the fill value. */
    bool crosses, compared;
};

static struct told explain(const struct setting *s, zarr_array *a, const char *pipeline,
                           uint32_t empty, bool write)
{
    const uint64_t size[2] = {ROWS, COLS};
    const zarr_tensor t = {.struct_size = sizeof t,
                           .device_type = s->tensor,
                           .ndim = 2,
                           .shape = size,
                           .data_bytes = sizeof(int32_t) * ROWS * COLS};
    const zarr_io_options opts = {
        .struct_size = sizeof opts,
        .empty_chunks = empty,
        .tuning = TUNING(.pipeline = pipeline, .codec_preference = s->preference)};
    struct told told = {0};
    zarr_explanation *e = NULL;

    assert_ok(zarr_array_explain(&e, a, write ? ZARR_EXPLAIN_WRITE : ZARR_EXPLAIN_READ,
                                 NULL, &t, &opts, &terr));
    for (uint32_t i = 0; i < e->n_steps; i++) {
        const zarr_explain_step *step = e->steps[i];

        told.down += step->kind == ZARR_STEP_COPY && step->to_device == ZARR_DEVICE_CPU;
        told.up += step->kind == ZARR_STEP_COPY && step->to_device == ZARR_DEVICE_EXT;
        if (step->kind == ZARR_STEP_STORE)
            told.fetched_far =
                (write ? step->from_device : step->to_device) == ZARR_DEVICE_EXT;
    }
    told.crosses = e->copy == ZARR_EXPLAIN_COPY_BETWEEN;
    told.compared = (e->flags & ZARR_EXPLAIN_COMPARED) != 0;
    assert_ok(zarr_explanation_text(e, ZARR_EXPLAIN_TEXT, told.text, sizeof told.text,
                                    NULL, &terr));
    zarr_explanation_free(e);
    return told;
}

static void check_stats(const struct setting *s, const struct told *told,
                        const zarr_stats *got, bool write, bool sharded)
{
    const bool far = s->tensor == ZARR_DEVICE_EXT;
    const bool values_far = s->store == VALUES_FAR;
    uint64_t up = (uint64_t)told->up * N_CHUNKS, down = (uint64_t)told->down * N_CHUNKS;

    if (sharded) /* another test counts inner chunks and ranges */
        return;
    if (told->crosses)
        *(write == far ? &down : &up) += N_CHUNKS;
    if (told->compared)
        down += N_CHUNKS;
    if (told->fetched_far && !values_far)
        *(write ? &down : &up) += N_CHUNKS;
    if (!told->fetched_far && values_far)
        *(write ? &up : &down) += N_CHUNKS;
    if (got->copies_up != up || got->copies_down != down)
        fail_msg("%d copies up, %d down, where explain tells of %d, %d: %s",
                 (int)got->copies_up, (int)got->copies_down, (int)up, (int)down,
                 told->text);
}

/* ---- the test ------------------------------------------------------------ */

#define T  "{\"name\":\"test.turn\"}"
#define IN "[2,2]"
static const char *const codecs[] = {
    "[" BYTES "," T "]",
    "[" BYTES "," T "," T "]",
    "[" BYTES "," CRC "," T "]",
    "[" BYTES "," T "," CRC "]",
    "[" TURN "," BYTES "," T "]",
    "[" BIG "," T "]",
    "[" BYTES "]",
    "[" SHARD(IN, BYTES "," T, "end") "]", /* shards from this row on */
    "[" SHARD(IN, BYTES "," T "," CRC, "start") "]",
    "[" SHARD(IN, BYTES "," T, "end") "," T "]",
    "[" SHARD(IN, BIG "," T, "end") "," CRC "]",
    "[" TURN "," SHARD(IN, BYTES, "end") "]",
    "[" SHARD(IN, SHARD("[1,2]", BYTES "," T, "end"), "end") "]",
};
enum {
    FIRST_SHARD = 7
};
static const char *const pipelines[] = {"waves", "serial", "test.own"};

static int32_t data[ROWS * COLS], got[ROWS * COLS], part[25], part_got[25];

static void check_all(struct pw *w, const struct setting *s, zarr_array *a,
                      const zarr_io_options *opts, const char *what)
{
    static const uint64_t zero[2] = {0, 0};

    assert_ok(box(w, s, a, zero, shape, got, opts, false));
    if (memcmp(got, data, sizeof data) != 0)
        fail_msg("%s: other elements", what);
}

static void one_array(struct pw *w, const struct setting *s, size_t c, size_t p)
{
    static const uint64_t zero[2] = {0, 0}, start[2] = {1, 2}, n[2] = {5, 5};
    const struct setting host = {.tensor = ZARR_DEVICE_CPU};
    const bool sharded = c >= FIRST_SHARD;
    const uint32_t empty = p == 1 ? ZARR_EMPTY_CHUNKS_WRITE : ZARR_EMPTY_CHUNKS_SKIP;
    zarr_stats stats = ZARR_STATS_INIT;
    const zarr_io_options opts = {
        .struct_size = sizeof opts,
        .empty_chunks = empty,
        .stats = &stats,
        .tuning = TUNING(.pipeline = pipelines[p], .codec_preference = s->preference)};
    char path[16];
    struct told told;
    zarr_array *a;

    snprintf(path, sizeof path, "a%d-%d", (int)c, (int)p);
    a = pw_array(w->store, path, codecs[c], shape, chunk);
    for (int i = 0; i < ROWS * COLS; i++)
        data[i] = 100 * (int)c + i;
    told = explain(s, a, pipelines[p], empty, true);
    assert_ok(box(w, s, a, zero, shape, data, &opts, true));
    check_stats(s, &told, &stats, true, sharded);
    told = explain(s, a, pipelines[p], empty, false);
    check_all(w, s, a, &opts, told.text);
    if (p == 1) /* one plain copy a chunk, no short cuts */
        check_stats(s, &told, &stats, false, sharded);
    check_all(w, &host, a, NULL, "on the host");
    assert_ok(box(w, s, a, start, n, part_got, &opts, false));
    for (int i = 0; i < 25; i++) {
        int32_t *element = &data[(i / 5 + 1) * COLS + i % 5 + 2];

        assert_int_equal(part_got[i], *element);
        part[i] = *element = -1000 - i;
    }
    assert_ok(box(w, s, a, start, n, part, &opts, true));
    assert_int_equal(stats.read_modify_writes, 4);
    check_all(w, s, a, &opts, told.text);
    check_all(w, &host, a, NULL, "on the host");
    zarr_array_free(a);
}

static void all_arrays(struct setting *s)
{
    struct pw w;

    open_setting(&w, s);
    atomic_store(&far_side.jobs, 0);
    atomic_store(&far_side.most_encoded, 0);
    memset(&own_n, 0, sizeof own_n);
    for (size_t c = 0; c < ZR_COUNT(codecs); c++)
        for (size_t p = 0; p < ZR_COUNT(pipelines); p++) {
            one_array(&w, s, c, p);
            if (atomic_load(&far_side.wrong) + atomic_load(&near_side.wrong) != 0)
                fail_msg("store %d, %s by %s: memory of another kind", s->store,
                         codecs[c], pipelines[p]);
        }
    if (s->tensor == ZARR_DEVICE_EXT) {
        assert_true(atomic_load(&far_side.jobs) > 100);
        if (s->batch)
            assert_true(atomic_load(&far_side.most_encoded) > 1);
        else
            assert_int_equal(atomic_load(&far_side.most_encoded), 1);
    }
    /* The pipeline "test.own" runs the requests, step by step. */
    assert_true(atomic_load(&own_n.reads) >= (int)(3 * ZR_COUNT(codecs)));
    assert_int_equal(atomic_load(&own_n.writes), 2 * ZR_COUNT(codecs));
    /* Full reads or writes, no shards. */
    assert_int_equal(atomic_load(&own_n.encoded), 2 * FIRST_SHARD);
    assert_true(atomic_load(&own_n.fetched) > 0);
    assert_int_equal(atomic_load(&own_n.wrong), 0);
    close_setting(&w, s);
}

static void test_kinds(void **state)
{
    static const uint32_t encoded[] = {FAR_BIT, NEAR_BIT, NEAR_BIT | FAR_BIT};

    (void)state;
    for (int store = 0; store < N_STORES; store++)
        for (size_t k = 0; k < ZR_COUNT(encoded); k++)
            for (int batch = 0; batch < (store == LOCAL ? 1 : 2); batch++) {
                struct setting s = {.store = store,
                                    .encoded = encoded[k],
                                    .decoded = FAR_BIT,
                                    .batch = batch,
                                    .tensor = ZARR_DEVICE_EXT};

                all_arrays(&s);
                s.tensor = ZARR_DEVICE_CPU;
                if (!batch)
                    all_arrays(&s);
            }
}

/* Elements in host memory go through an implementation for the other memory, because a
 * preference says so and the store has its values there. */
static void test_preferred(void **state)
{
    (void)state;
    for (int store = 0; store < N_STORES; store++) {
        struct setting s = {.store = store,
                            .encoded = FAR_BIT,
                            .decoded = FAR_BIT,
                            .tensor = ZARR_DEVICE_CPU,
                            .preference = "test.turn=far.test"};

        atomic_store(&far_side.jobs, 0);
        all_arrays(&s);
        if (store == VALUES_FAR)
            assert_true(atomic_load(&far_side.jobs) > 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_preferred),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
