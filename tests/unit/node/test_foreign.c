/*
 * unit/node/test_foreign.c - arrays made of an application's own pieces, written and read
 * from end to end: codecs of all kinds alone, in shards and in front of them, and a
 * chunk key encoding. Data types are in test_foreign_types.c.
 */
#include "node_test.h"

#include <stdbool.h>

/* ---- codecs -------------------------------------------------------------------------
 */

static atomic_int n_partial, n_whole; /* calls of test.turn's decoders */

static char *at(const zarr_mem *m)
{
    return (char *)m->handle + m->offset;
}

static zarr_status finish(zarr_codec_job *job)
{
    job->dst_used = job->src.bytes;
    return job->status = ZARR_OK;
}

static bool fits(zarr_codec_job *job)
{
    job->status = job->dst.bytes < job->src.bytes ? ZARR_ERR_CORRUPT : ZARR_OK;
    return job->status == ZARR_OK;
}

/* ~x, which is its own inverse; also as array->bytes. */
static zarr_status neg(void *self, zarr_codec_job *jobs, uint64_t n,
                       zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        if (!fits(&jobs[i]))
            return jobs[i].status;
        for (uint64_t k = 0; k < jobs[i].src.bytes; k++)
            at(&jobs[i].dst)[k] = (char)~at(&jobs[i].src)[k];
        (void)finish(&jobs[i]);
    }
    return ZARR_OK;
}

/* All elements of a chunk from back to front. */
static zarr_status mirror(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t bytes = jobs[i].src.bytes;

        if (!fits(&jobs[i]))
            return jobs[i].status;
        for (uint64_t k = 0; k + 2 <= bytes; k += 2)
            memcpy(at(&jobs[i].dst) + bytes - 2 - k, at(&jobs[i].src) + k, 2);
        (void)finish(&jobs[i]);
    }
    return ZARR_OK;
}

static zarr_status turn(void *self, zarr_codec_job *jobs, uint64_t n,
                        zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        if (!fits(&jobs[i]))
            return jobs[i].status;
        for (uint64_t k = 0; k < jobs[i].src.bytes; k++)
            at(&jobs[i].dst)[k] = (char)(at(&jobs[i].src)[k] ^ 0x5a);
        (void)finish(&jobs[i]);
    }
    atomic_fetch_add(&n_whole, 1);
    return ZARR_OK;
}

static zarr_status turn_partial(void *self, zarr_codec_job *job,
                                const zarr_codec_range *ranges, uint64_t n,
                                zarr_codec_exec *exec, zarr_error *err)
{
    uint64_t used = 0, last = 0;

    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t r = 0; r < n; r++) {
        assert_true(ranges[r].offset >= last);
        last = ranges[r].offset + ranges[r].bytes;
        assert_true(last <= job->dst.bytes);
        if (last > job->src.bytes)
            return job->status = ZARR_ERR_CORRUPT;
        for (uint64_t k = ranges[r].offset; k < last; k++)
            at(&job->dst)[k] = (char)(at(&job->src)[k] ^ 0x5a);
        used += ranges[r].bytes;
    }
    job->dst_used = used;
    atomic_fetch_add(&n_partial, 1);
    return job->status = ZARR_OK;
}

static zarr_status resolve_neg(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                               zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    int16_t fill = 0;

    (void)spec;
    (void)err;
    if (in->fill)
        memcpy(&fill, in->fill, sizeof fill);
    fill = (int16_t)~fill;
    memcpy(fill_out, &fill, sizeof fill);
    out->fill = fill_out;
    return ZARR_OK;
}

static zarr_status resolve_mirror(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                  zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    (void)spec;
    (void)err;
    if (in->fill)
        memcpy(fill_out, in->fill, sizeof(int16_t));
    out->fill = fill_out;
    return ZARR_OK;
}

static zarr_status resolve_bytes(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                 zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    (void)spec;
    (void)fill_out;
    (void)err;
    out->dtype = NULL;
    out->n_bytes = in->n_bytes;
    out->exact = 1;
    return ZARR_OK;
}

static void register_codecs(struct world *w)
{
    const uint32_t cpu = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU);
    zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                   .flags = ZARR_CODEC_SPEC_V3};
    zarr_codec_impl_vtable impl = {.struct_size = sizeof impl,
                                   .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE,
                                   .in_kinds = cpu,
                                   .out_kinds = cpu};

    spec.name = impl.codec = "test.neg";
    impl.impl = "cpu.neg";
    spec.kind = ZARR_CODEC_ARRAY_ARRAY;
    spec.flags |= ZARR_CODEC_SPEC_ELEMENTWISE;
    spec.resolve = resolve_neg;
    impl.encode = impl.decode = neg;
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "tests", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &impl, "tests", &terr));
    spec.name = impl.codec = "test.mirror";
    impl.impl = "cpu.mirror";
    spec.flags = ZARR_CODEC_SPEC_V3;
    spec.resolve = resolve_mirror;
    impl.encode = impl.decode = mirror;
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "tests", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &impl, "tests", &terr));
    spec.name = impl.codec = "test.pack";
    impl.impl = "cpu.pack";
    spec.kind = ZARR_CODEC_ARRAY_BYTES;
    spec.resolve = resolve_bytes;
    impl.encode = impl.decode = neg;
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "tests", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &impl, "tests", &terr));
    spec.name = impl.codec = "test.turn";
    impl.impl = "cpu.turn";
    spec.kind = ZARR_CODEC_BYTES_BYTES;
    impl.encode = impl.decode = turn;
    impl.partial = turn_partial;
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "tests", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &impl, "tests", &terr));
}

/* ---- chunk keys ---------------------------------------------------------------------
 */

/* Coordinates from the last to the first: "k_<1>_<0>". */
static zarr_status keys_parse(void **self, const char *json, zarr_error *err)
{
    (void)json;
    (void)err;
    *self = NULL;
    return ZARR_OK;
}

static zarr_status keys_canonical(const void *self, char *text, size_t cap,
                                  size_t *text_bytes, zarr_error *err)
{
    (void)self;
    (void)err;
    *text_bytes = (size_t)snprintf(text, cap, "{}");
    return ZARR_OK;
}

static size_t keys_key(const void *self, int32_t ndim, const uint64_t *chunk, char *text,
                       size_t cap)
{
    char all[32 * ZARR_MAX_RANK] = "k";
    size_t n = 1;

    (void)self;
    for (int32_t d = ndim - 1; d >= 0; d--)
        n += (size_t)snprintf(all + n, sizeof all - n, "_%llu",
                              (unsigned long long)chunk[d]);
    (void)snprintf(text, cap, "%s", all);
    return n;
}

static int keys_chunk(const void *self, int32_t ndim, const char *text, uint64_t *chunk)
{
    char again[32 * ZARR_MAX_RANK];
    const char *p = text;

    if (*p++ != 'k')
        return -1;
    for (int32_t d = ndim - 1; d >= 0; d--) {
        char *end = NULL;

        if (*p++ != '_')
            return -1;
        chunk[d] = strtoull(p, &end, 10);
        p = end;
    }
    (void)keys_key(self, ndim, chunk, again, sizeof again);
    return strcmp(again, text) == 0 ? 0 : -1;
}

static void keys_free(void *self)
{
    assert_null(self);
}

static const zarr_key_encoding_vtable keys = {.struct_size = sizeof keys,
                                              .name = "test.keys",
                                              .parse = keys_parse,
                                              .canonical = keys_canonical,
                                              .key = keys_key,
                                              .chunk = keys_chunk,
                                              .free = keys_free};

/* ---- arrays of int16 ----------------------------------------------------------------
 */

enum {
    ROWS = 7,
    COLS = 10,
    CELLS = ROWS * COLS
};
static const int64_t all_shape[2] = {ROWS, COLS};
static const uint64_t shape[2] = {ROWS, COLS}, start[2] = {1, 2}, count[2] = {5, 6};

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG    "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define SHARD(codecs)                                                                    \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,2],"           \
    "\"codecs\":[" codecs "],\"index_codecs\":[" LITTLE "]}}"

/* Element 0, 0 of the array is in a chunk that is stored so: its first bytes; "": they
 * are another test's. */
static const struct {
    const char *codecs, *starts;
    int first; /* which element of chunk 0, 0 comes first */
} chains[] = {
    {"[\"test.neg\"," LITTLE "]", "~<", 0},
    {"[\"test.mirror\"," BIG "]", ">", 15},
    {"[\"test.pack\"]", "~=", 0},
    {"[\"test.neg\",\"test.pack\"]", "=", 0},
    {"[\"test.mirror\",\"test.neg\",\"test.pack\",\"test.turn\"]", "", 0},
    {"[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},\"test.mirror\","
     "\"test.pack\"]",
     "~=", 15},
    {"[" SHARD("\"test.neg\"," LITTLE) "]", "~<", 0},
    {"[" SHARD("\"test.pack\"") "]", "~=", 0},
    {"[" SHARD("\"test.mirror\",\"test.pack\",\"test.turn\"") "]", "", 0},
    {"[\"test.neg\"," SHARD("\"test.pack\"") "]", "=", 0},
    {"[\"test.neg\"," SHARD("\"test.neg\"," BIG) "]", ">", 0},
    {"[\"test.mirror\"," SHARD(LITTLE) "]", "<", 15},
    {"[\"test.mirror\"," SHARD("\"test.neg\",\"test.pack\"") ",\"test.turn\"]", "", 0},
};

static zarr_array *make(struct world *w, const char *path, const char *codecs)
{
    char doc[1500];
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *a = NULL;

    snprintf(doc, sizeof doc,
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[7,10],"
             "\"data_type\":\"int16\",\"chunk_grid\":{\"name\":\"regular\","
             "\"configuration\":{\"chunk_shape\":[4,4]}},\"chunk_key_encoding\":"
             "{\"name\":\"test.keys\"},\"fill_value\":3,\"codecs\":%s}",
             codecs);
    spec.document = doc;
    assert_ok(zarr_array_create(&a, w->store, path, &spec, NULL, &terr));
    return a;
}

/* Two bytes as the row says: "~" inverted, then "<", ">" or "=" (the machine's order). */
static void check_stored(struct world *w, const char *path, size_t i, int16_t element)
{
    const char *how = chains[i].starts;
    const uint16_t one = 1;
    uint16_t v = (uint16_t)element;
    uint8_t want[2], got[2];
    uint64_t n = 2;
    char key[32];
    bool little;

    if (!*how)
        return;
    if (*how == '~') {
        v = (uint16_t)~v;
        how++;
    }
    little = *how == '=' ? *(const uint8_t *)&one == 1 : *how == '<';
    want[little ? 0 : 1] = (uint8_t)(v & 0xff);
    want[little ? 1 : 0] = (uint8_t)(v >> 8);
    snprintf(key, sizeof key, "%s/k_0_0", path);
    assert_ok(zarr_store_get(w->store, key, 0, got, &n, NULL, &terr));
    if (memcmp(got, want, 2) != 0)
        fail_msg("%s: begins with %02x %02x", chains[i].codecs, got[0], got[1]);
}

static void check_elements(zarr_array *a, const int16_t *want, const char *pipeline,
                           const char *what)
{
    const zarr_io_options opts = {.struct_size = sizeof opts, .pipeline = pipeline};
    int16_t got[CELLS], part[30];
    const int64_t box[2] = {5, 6};
    zarr_selection *sel = NULL;
    zarr_tensor t;

    memset(got, 0x11, sizeof got);
    zarr_tensor_host(&t, got, sizeof got, 2, all_shape);
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    if (memcmp(got, want, sizeof got) != 0)
        fail_msg("%s: other elements", what);
    zarr_tensor_host(&t, part, sizeof part, 2, box);
    assert_ok(zarr_selection_box(&sel, 2, shape, start, count, &terr));
    assert_ok(zarr_array_read(a, sel, &t, &opts, &terr));
    zarr_selection_free(sel);
    for (int i = 0; i < 30; i++)
        assert_int_equal(part[i], want[(1 + i / 6) * COLS + 2 + i % 6]);
}

static int see_chunk(void *user, const zarr_chunk_info *chunk)
{
    (void)chunk;
    ++*(int *)user;
    return 0;
}

static int no_fault(void *user, const zarr_verify_item *item)
{
    (void)user;
    fail_msg("%s: %s", item->key, item->message);
    return 0;
}

/* Everything once: missing, whole, a part, opened again. */
static void one_chain(struct world *w, size_t i, const char *pipeline, const char *path)
{
    const zarr_io_options opts = {.struct_size = sizeof opts, .pipeline = pipeline};
    const int64_t box[2] = {5, 6};
    zarr_array *a = make(w, path, chains[i].codecs);
    int16_t data[CELLS], part[30];
    zarr_selection *sel = NULL;
    zarr_tensor t;
    int n = 0;

    for (int k = 0; k < CELLS; k++)
        data[k] = 3;
    check_elements(a, data, pipeline, chains[i].codecs);
    for (int k = 0; k < CELLS; k++)
        data[k] = k % COLS >= 8 ? 3 : (int16_t)(257 * k - 5000); /* 2 chunks are fill */
    zarr_tensor_host(&t, data, sizeof data, 2, all_shape);
    assert_ok(zarr_array_write(a, NULL, &t, &opts, &terr));
    check_elements(a, data, pipeline, chains[i].codecs);
    check_stored(w, path, i, data[chains[i].first / 4 * COLS + chains[i].first % 4]);
    assert_int_equal(n_keys(w, path), 5); /* zarr.json, and chunks that aren't fill */
    for (int k = 0; k < 30; k++)
        part[k] = data[(1 + k / 6) * COLS + 2 + k % 6] = (int16_t)(-7 * k);
    zarr_tensor_host(&t, part, sizeof part, 2, box);
    assert_ok(zarr_selection_box(&sel, 2, shape, start, count, &terr));
    assert_ok(zarr_array_write(a, sel, &t, &opts, &terr));
    zarr_selection_free(sel);
    check_elements(a, data, pipeline, chains[i].codecs);
    zarr_array_free(a);
    assert_ok(zarr_array_open(&a, w->store, path, NULL, &terr));
    check_elements(a, data, NULL, chains[i].codecs);
    assert_ok(zarr_array_chunk_list(a, 0, see_chunk, &n, &terr));
    assert_true(n >= 4);
    assert_ok(zarr_array_verify(a, no_fault, NULL, NULL, &terr));
    zarr_array_free(a);
}

static void open_world(struct world *w, enum world_sort sort)
{
    world_begin(w, sort);
    assert_ok(world_context(w, &terr));
    register_codecs(w);
    assert_ok(zarr_context_register_key_encoding(w->ctx, &keys, "tests", &terr));
}

static void test_codecs_and_keys(void **state)
{
    static const char *const pipelines[] = {"waves", "serial"};
    struct world w;

    (void)state;
    for (enum world_sort sort = 0; sort < WORLD_PLAIN; sort++) {
        open_world(&w, sort);
        assert_ok(world_store(&w, sort, &terr));
        for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
            for (int p = 0; p < 2; p++) {
                char path[16];

                snprintf(path, sizeof path, "a%d-%d", (int)i, p);
                one_chain(&w, i, pipelines[p], path);
            }
        world_close(&w);
    }
}

/* Keys are read back: what an array shrinks by is found and deleted. */
static void test_keys_shrink(void **state)
{
    const uint64_t small[2] = {3, 5};
    struct world w;
    zarr_array *a;

    (void)state;
    open_world(&w, WORLD_MEMORY);
    assert_ok(world_store(&w, WORLD_MEMORY, &terr));
    a = make(&w, "x", "[\"test.pack\"]");
    put_text(&w, "x/k_2_1", "0123456789abcdef0123456789abcdef");
    put_text(&w, "x/k_1_0", "0123456789abcdef0123456789abcdef");
    put_text(&w, "x/k_01_0", "no chunk's");
    assert_ok(zarr_array_resize(a, small, 0, &terr));
    assert_null(get_text(&w, "x/k_2_1"));
    assert_non_null(get_text(&w, "x/k_1_0"));
    assert_non_null(get_text(&w, "x/k_01_0"));
    zarr_array_free(a);
    world_close(&w);
}

/* Little of a large chunk: its decoder is asked for that only, and for all where a part
 * would be most of it or pipelines take no short cuts. */
static void test_partial(void **state)
{
    enum {
        EDGE = 512
    };
    static int16_t data[EDGE * EDGE], got[EDGE * EDGE];
    static const uint64_t edges[2] = {EDGE, EDGE}, from[2] = {17, 40}, n[2] = {3, 5};
    static const char *const codecs[] = {
        "[" LITTLE ",\"test.turn\"]",
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[256,256],"
        "\"codecs\":[" LITTLE ",\"test.turn\"],\"index_codecs\":[" LITTLE "]}}]"};
    const int64_t all[2] = {EDGE, EDGE}, box[2] = {3, 5};
    struct world w;

    (void)state;
    open_world(&w, WORLD_MEMORY);
    assert_ok(world_store(&w, WORLD_MEMORY, &terr));
    for (int k = 0; k < EDGE * EDGE; k++)
        data[k] = (int16_t)(k * 31);
    for (int i = 0; i < 2; i++) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
        const zarr_array_spec spec = {.struct_size = sizeof spec,
                                      .ndim = 2,
                                      .shape = edges,
                                      .chunk_shape = edges,
                                      .data_type = "int16",
                                      .codecs = codecs[i]};
        zarr_selection *sel = NULL;
        zarr_array *a = NULL;
        zarr_tensor t;

        assert_ok(zarr_array_create(&a, w.store, i ? "b" : "a", &spec, NULL, &terr));
        zarr_tensor_host(&t, data, sizeof data, 2, all);
        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        assert_ok(zarr_selection_box(&sel, 2, edges, from, n, &terr));
        for (int serial = 0; serial < 2; serial++) {
            opts.pipeline = serial ? "serial" : "waves";
            n_partial = n_whole = 0;
            memset(got, 0, sizeof got);
            zarr_tensor_host(&t, got, sizeof(int16_t) * 15, 2, box);
            assert_ok(zarr_array_read(a, sel, &t, &opts, &terr));
            for (int k = 0; k < 15; k++)
                assert_int_equal(got[k], data[(17 + k / 5) * EDGE + 40 + k % 5]);
            assert_int_equal(n_partial, !serial);
            assert_int_equal(n_whole, serial);
            assert_int_equal(stats.chunks_partial, !serial);
        }
        opts.pipeline = NULL;
        n_partial = 0;
        zarr_tensor_host(&t, got, sizeof got, 2, all);
        assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
        assert_memory_equal(got, data, sizeof data);
        assert_int_equal(n_partial, 0);
        zarr_selection_free(sel);
        zarr_array_free(a);
    }
    world_close(&w);
}

struct rows {
    int codecs, impls, keys;
};

static int see_row(void *user, const zarr_registry_item *item)
{
    struct rows *r = user;

    if (strcmp(item->origin, "tests") != 0)
        return 0;
    r->codecs += item->registry == ZARR_REGISTRY_CODEC;
    r->impls += item->registry == ZARR_REGISTRY_CODEC_IMPL;
    r->keys += item->registry == ZARR_REGISTRY_KEY_ENCODING &&
               strcmp(item->name, "test.keys") == 0;
    return 0;
}

static void test_listed(void **state)
{
    struct rows rows = {0, 0, 0};
    struct world w;

    (void)state;
    open_world(&w, WORLD_MEMORY);
    assert_ok(zarr_context_list(w.ctx, 0, see_row, &rows, &terr));
    assert_int_equal(rows.codecs, 4);
    assert_int_equal(rows.impls, 4);
    assert_int_equal(rows.keys, 1);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codecs_and_keys),
        cmocka_unit_test(test_keys_shrink),
        cmocka_unit_test(test_partial),
        cmocka_unit_test(test_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
