/*
 * unit/pipe/chunk/test_trust.c - a decoder of a device that does not check its input is
 * used as the option trust says: always, never, or where a checksum around its codec was
 * verified in this read. The option of the call overrides that of the array, which
 * overrides that of the context. Counters and explanations say when the decoder was not
 * used, and the log says it once.
 */
#include "unit/pipe/device_test.h"

static const struct chain {
    const char *codecs;
    uint64_t chunk[2];
    bool verified; /* the decoder is used with ZARR_TRUST_VERIFIED */
} chains[] = {
    {"[" BYTES "," LATE "]", {10, 10}, false},
    {"[" BYTES "," LATE "," CRC "]", {10, 10}, true},
    {"[" BYTES "," LATE "," GZIP "]", {10, 10}, false},
    {"[" BYTES "," LATE "," GZIP "," CRC "]", {10, 10}, true},
    {"[" SHARD("[5,4]", BYTES "," LATE, "end") "]", {20, 20}, false},
    {"[" SHARD("[5,4]", BYTES "," LATE "," CRC, "end") "]", {20, 20}, true},
    {"[" SHARD("[5,4]", BYTES "," LATE, "end") "," CRC "]", {20, 20}, true},
};
enum {
    N_CHAINS = sizeof chains / sizeof chains[0]
};

static zarr_array *chain_array(const struct pw *w, const struct chain *c)
{
    static int n;
    char path[16];
    zarr_tensor t;
    zarr_array *a;

    snprintf(path, sizeof path, "t%d", ++n);
    a = pw_array(w->store, path, c->codecs, shape, c->chunk);
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    return a;
}

static void explains(zarr_array *a, const zarr_tensor *t, const zarr_io_options *opts,
                     bool used)
{
    zarr_explanation *e = NULL;
    static char text[8192];
    uint32_t n = 0;

    assert_ok(zarr_array_explain(&e, a, ZARR_EXPLAIN_READ, NULL, t, opts, &terr));
    for (uint32_t i = 0; i < e->n_steps; i++)
        if (e->steps[i]->distrusted) {
            assert_string_equal(e->steps[i]->codec, "test.late");
            assert_string_equal(e->steps[i]->distrusted, "fake.late");
            n++;
        }
    assert_int_equal(n, !used);
    assert_in_range(e->trust, ZARR_TRUST_VERIFIED, ZARR_TRUST_NONE);
    assert_ok(
        zarr_explanation_text(e, ZARR_EXPLAIN_TEXT, text, sizeof text, NULL, &terr));
    assert_int_equal(strstr(text, "not test.late@fake.late") == NULL, used);
    assert_ok(
        zarr_explanation_text(e, ZARR_EXPLAIN_JSON, text, sizeof text, NULL, &terr));
    assert_int_equal(strstr(text, "\"distrusted\": \"fake.late\"") == NULL, used);
    assert_non_null(strstr(text, "\"trust\": \""));
    zarr_explanation_free(e);
}

/* Reads into the device, and says whether its decoder was used. */
static bool read_uses(const struct pw *w, zarr_array *a, uint32_t trust)
{
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    struct counts c;
    zarr_tensor t;
    zarr_memory mem = tensor_new(w, &t, sizes);

    opts.trust = trust;
    read_data(&c, a, &t, &mem, &opts);
    opts.stats = NULL;
    explains(a, &t, &opts, n_late.jobs > 0);
    assert_int_equal(c.stats.chunks_distrusted, n_late.jobs ? 0 : c.stats.chunks_total);
    assert_true(n_late.jobs == 0 || (uint64_t)n_late.jobs == c.stats.chunks_total);
    zarr_memory_free(w->ctx, &mem);
    return n_late.jobs > 0;
}

static void test_policy(void **state)
{
    struct pw w;

    (void)state;
    unchecked = true;
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        open_world(&w, threads, 1 << 14);
        for (int k = 0; k < N_CHAINS; k++) {
            zarr_array *a = chain_array(&w, &chains[k]);

            assert_int_equal(read_uses(&w, a, 0), chains[k].verified);
            assert_int_equal(read_uses(&w, a, ZARR_TRUST_VERIFIED), chains[k].verified);
            assert_true(read_uses(&w, a, ZARR_TRUST_FULL));
            assert_false(read_uses(&w, a, ZARR_TRUST_NONE));
            zarr_array_free(a);
        }
        close_world(&w);
    }
    unchecked = false; /* a decoder that checks is always used */
    open_world(&w, 2, 1 << 14);
    for (int k = 0; k < N_CHAINS; k++) {
        zarr_array *a = chain_array(&w, &chains[k]);

        assert_true(read_uses(&w, a, ZARR_TRUST_NONE));
        zarr_array_free(a);
    }
    close_world(&w);
}

/* Encoding does not depend on trust. */
static void test_write(void **state)
{
    struct pw w;
    zarr_array *a;
    zarr_tensor t;
    zarr_memory mem;

    (void)state;
    unchecked = true;
    context_trust = ZARR_TRUST_NONE;
    open_world(&w, 2, 1 << 14);
    a = pw_array(w.store, "w", chains[0].codecs, shape, chains[0].chunk);
    mem = tensor_new(&w, &t, sizes);
    assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
    memset(&n_late, 0, sizeof n_late);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    assert_true(n_late.encode_jobs > 0);
    zarr_memory_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
    unchecked = false;
    context_trust = 0;
}

static void test_where_it_is_set(void **state)
{
    zarr_array_open_options o = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    zarr_io_options io = ZARR_IO_OPTIONS_INIT;
    zarr_context_options bad = ZARR_CONTEXT_OPTIONS_INIT;
    zarr_context *none = NULL;
    zarr_array *a, *b = NULL, *c = NULL;
    zarr_tensor t;
    struct pw w;

    (void)state;
    unchecked = true;
    context_trust = ZARR_TRUST_FULL;
    open_world(&w, 2, 1 << 14);
    a = chain_array(&w, &chains[0]);
    assert_true(read_uses(&w, a, 0));
    o.trust = ZARR_TRUST_NONE;
    assert_ok(zarr_array_with(&b, a, &o, &terr));
    assert_false(read_uses(&w, b, 0));
    assert_true(read_uses(&w, b, ZARR_TRUST_FULL));
    assert_false(read_uses(&w, b, ZARR_TRUST_VERIFIED));
    assert_true(read_uses(&w, a, 0));
    o.trust = 0;
    assert_ok(zarr_array_with(&c, b, &o, &terr)); /* as b */
    assert_false(read_uses(&w, c, 0));

    io.trust = o.trust = bad.trust = ZARR_TRUST_NONE + 1;
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
    assert_status(zarr_array_read(a, NULL, &t, &io, &terr), ZARR_ERR_INVALID);
    zarr_array_free(c);
    assert_status(zarr_array_with(&c, a, &o, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_context_create(&none, &bad, &terr), ZARR_ERR_INVALID);
    zarr_array_free(a);
    zarr_array_free(b);
    close_world(&w);

    context_trust = 0;
    setenv("ZARRC_TRUST", "full", 1);
    open_world(&w, 2, 1 << 14);
    a = chain_array(&w, &chains[0]);
    assert_true(read_uses(&w, a, 0));
    zarr_array_free(a);
    close_world(&w);
    context_trust = ZARR_TRUST_VERIFIED; /* options override the environment */
    open_world(&w, 2, 1 << 14);
    a = chain_array(&w, &chains[0]);
    assert_false(read_uses(&w, a, 0));
    zarr_array_free(a);
    close_world(&w);
    context_trust = 0;
    bad.trust = 0;
    setenv("ZARRC_TRUST", "some", 1);
    assert_status(zarr_context_create(&none, &bad, &terr), ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "ZARRC_TRUST"));
    unsetenv("ZARRC_TRUST");
    unchecked = false;
}

static atomic_int n_warnings;

static void count_warnings(void *user, uint32_t level, const char *text)
{
    (void)user;
    if (level == ZARR_LOG_WARN && strstr(text, "\"fake.late\""))
        atomic_fetch_add(&n_warnings, 1);
}

static void test_one_warning(void **state)
{
    struct pw w;

    (void)state;
    unchecked = true;
    context_log = count_warnings;
    open_world(&w, 2, 1 << 14);
    for (int k = 1; k >= 0; k--) {
        for (int i = 0; i < 2; i++) {
            zarr_array *a = chain_array(&w, &chains[k]);

            (void)read_uses(&w, a, 0);
            zarr_array_free(a);
        }
        assert_int_equal(n_warnings, k == 0);
    }
    close_world(&w);
    context_log = NULL;
    unchecked = false;
}

/* ---- a checksum on the device, whose result comes late ---------------------------- */

static void add_spec(const struct pw *w, const char *name, uint32_t flags)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .flags = flags,
                                         .name = name,
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};

    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
}

/* A codec that changes nothing. The device does its work late; `late` has what is special
 * of that implementation. The CPU has another, which is less wanted. */
static void add_late(const struct pw *w, const char *name, zarr_codec_impl_vtable late)
{
    const zarr_codec_impl_vtable cpu = {.struct_size = sizeof cpu,
                                        .caps = ZARR_CODEC_CAN_DECODE |
                                                ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE,
                                        .codec = name,
                                        .impl = "cpu.same",
                                        .in_kinds = CPU,
                                        .out_kinds = CPU,
                                        .priority = -10,
                                        .encode = pw_copy_same,
                                        .decode = pw_copy_same};

    late.struct_size = sizeof late;
    late.caps |= ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_BATCH |
                 ZARR_CODEC_ASYNC | ZARR_CODEC_SAFE;
    late.codec = name;
    late.impl = "fake.late";
    late.in_kinds = late.out_kinds = EXT;
    late.encode = late_encode;
    late.decode = late_decode;
    late.settle = late_settle;
    assert_ok(zarr_context_register_codec_impl(w->ctx, &late, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &cpu, "test", &terr));
}

static void add_sum(const struct pw *w)
{
    add_spec(w, "test.sum", ZARR_CODEC_SPEC_CHECKSUM);
    add_late(w, "test.sum", (zarr_codec_impl_vtable){0});
}

static void test_late_checksum(void **state)
{
    const struct chain c = {
        "[" BYTES "," LATE ",{\"name\":\"test.sum\"}]", {ROWS, COLS}, true};
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    struct counts n;
    zarr_tensor t;
    zarr_array *a;
    zarr_memory mem;
    struct pw w;

    (void)state;
    unchecked = true;
    context_trust = ZARR_TRUST_VERIFIED;
    more_codecs = add_sum;
    open_world(&w, 2, 1 << 20);
    a = chain_array(&w, &c);
    mem = tensor_new(&w, &t, sizes);
    read_data(&n, a, &t, &mem, &opts);
    assert_int_equal(n_late.calls, 2);
    assert_int_equal(n.stats.chunks_distrusted, 0);
    damage = data[0];
    count_begin(&n, &opts);
    assert_status(zarr_array_read(a, NULL, &t, &opts, &terr), ZARR_ERR_CORRUPT);
    assert_int_equal(n_late.calls, 1); /* the checksum's; the decoder never saw it */
    zarr_memory_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
    more_codecs = NULL;
    context_trust = 0;
    unchecked = false;
}

/* ---- a decoder that looks at what comes from the device ---------------------------- */

static atomic_int n_looked, n_blind;

/* Counts the chunks that it sees before their bytes are on the host. */
static int sees(void *self, const zarr_codec_job *job)
{
    const unsigned char *at = (const unsigned char *)job->src.handle + job->src.offset;

    (void)self;
    atomic_fetch_add(&n_looked, 1);
    for (uint64_t i = 0; i < job->src.bytes; i++)
        if (at[i] != 0xEE)
            return 1;
    atomic_fetch_add(&n_blind, 1);
    return 1;
}

static void add_looking(const struct pw *w)
{
    add_sum(w);
    add_spec(w, "test.looks", 0);
    add_late(w, "test.looks",
             (zarr_codec_impl_vtable){.caps = ZARR_CODEC_LOOKS, .accepts = sees});
}

/* The preference has the codec before it done on the device, too. The bytes come down,
 * and the decoder looks at them only once they are there. */
static void test_looks_behind_the_device(void **state)
{
    const struct chain c = {
        "[" BYTES ",{\"name\":\"test.looks\"},{\"name\":\"test.sum\"}]", {10, 10}, true};
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    struct counts n;
    zarr_tensor t;
    zarr_array *a;
    zarr_memory mem;
    struct pw w;

    (void)state;
    more_codecs = add_looking;
    open_world(&w, 2, 1 << 20);
    a = chain_array(&w, &c);
    mem = tensor_new(&w, &t, sizes);
    opts.tuning = TUNING(.codec_preference = "test.sum=fake;test.looks=fake");
    read_data(&n, a, &t, &mem, &opts);
    assert_int_equal(n_late.calls, 2);
    assert_int_equal(n_looked, ROWS / 10 * (COLS / 10));
    assert_int_equal(n_blind, 0);
    zarr_memory_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
    more_codecs = NULL;
}

/* ---- decoders of the host ---------------------------------------------------------- */

static atomic_int n_quick;

static zarr_status quick(void *self, zarr_codec_job *jobs, uint64_t n,
                         zarr_codec_exec *exec, zarr_error *err)
{
    atomic_fetch_add(&n_quick, (int)n);
    return pw_copy_same(self, jobs, n, exec, err);
}

/* "cpu.quick", which does not check its input, for the codec "test.late" and for
 * "test.only", which has no other implementation. */
static void add_quick(const struct pw *w)
{
    zarr_codec_impl_vtable v = {.struct_size = sizeof v,
                                .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE,
                                .codec = "test.only",
                                .impl = "cpu.quick",
                                .in_kinds = CPU,
                                .out_kinds = CPU,
                                .priority = 20,
                                .encode = pw_copy_same,
                                .decode = quick};

    add_spec(w, "test.only", 0);
    assert_ok(zarr_context_register_codec_impl(w->ctx, &v, "test", &terr));
    v.codec = "test.late";
    assert_ok(zarr_context_register_codec_impl(w->ctx, &v, "test", &terr));
}

static zarr_status host_read(zarr_array *a, uint32_t trust, zarr_stats *stats)
{
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    static int32_t got[N];
    zarr_tensor t;
    zarr_status st;

    *stats = (zarr_stats)ZARR_STATS_INIT;
    opts.stats = stats;
    opts.trust = trust;
    n_quick = 0;
    memset(got, 0, sizeof got);
    zarr_tensor_host(&t, NULL, got, sizeof got, 2, sizes);
    st = zarr_array_read(a, NULL, &t, &opts, &terr);
    if (st == ZARR_OK)
        assert_memory_equal(got, data, sizeof data);
    return st;
}

/* Chains inside codecs and shards that are decoded whole follow the same policy. */
static void test_host(void **state)
{
#define DELTA "{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<i4\"}}"
    static const struct chain host[] = {
        {"[" BYTES "," LATE "]", {10, 10}, false},
        {"[" BYTES "," LATE "," CRC "]", {10, 10}, true},
        {"[" BYTES "," CRC "," LATE "]", {10, 10}, false}, /* looked at too late */
        {"[" SHARD("[5,4]", BYTES "," LATE, "end") "," CRC "]", {20, 20}, true},
        {"[" DELTA "," SHARD("[5,4]", BYTES "," LATE, "end") "]", {20, 20}, false},
        {"[" DELTA "," SHARD("[5,4]", BYTES "," LATE "," CRC, "end") "]", {20, 20}, true},
        {"[" DELTA "," SHARD("[5,4]", BYTES "," LATE, "end") "," CRC "]", {20, 20}, true},
    };
    zarr_stats stats;
    struct pw w;

    (void)state;
    more_codecs = add_quick;
    open_world(&w, 2, 1 << 14);
    for (size_t k = 0; k < sizeof host / sizeof host[0]; k++) {
        zarr_array *a = chain_array(&w, &host[k]);

        assert_ok(host_read(a, ZARR_TRUST_VERIFIED, &stats));
        assert_int_equal(n_quick > 0, host[k].verified);
        assert_ok(host_read(a, ZARR_TRUST_FULL, &stats));
        assert_true(n_quick > 0);
        assert_int_equal(stats.chunks_distrusted, 0);
        assert_ok(host_read(a, ZARR_TRUST_NONE, &stats));
        assert_int_equal(n_quick, 0);
        zarr_array_free(a);
    }
    close_world(&w);
    more_codecs = NULL;
}

static void test_no_other(void **state)
{
    static const struct chain only = {
        "[" BYTES ",{\"name\":\"test.only\"}]", {10, 10}, false};
    zarr_stats stats;
    zarr_array *a;
    struct pw w;

    (void)state;
    more_codecs = add_quick;
    context_trust = ZARR_TRUST_FULL;
    open_world(&w, 2, 1 << 14);
    a = chain_array(&w, &only);
    assert_status(host_read(a, ZARR_TRUST_VERIFIED, &stats), ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(terr.message, "trust"));
    assert_non_null(strstr(terr.message, "cpu.quick"));
    assert_ok(host_read(a, 0, &stats));
    zarr_array_free(a);
    close_world(&w);
    more_codecs = NULL;
    context_trust = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_where_it_is_set),
        cmocka_unit_test(test_one_warning),
        cmocka_unit_test(test_late_checksum),
        cmocka_unit_test(test_looks_behind_the_device),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_no_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
