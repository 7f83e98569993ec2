/*
 * unit/pipe/batch/test_device_answers.c - how a device's codec answers: one call declines
 * some chunks at once and finds damage in others once its work is waited for, or fails as
 * a whole and then names a chunk. What is declined is done alone, damage names its chunk,
 * and nothing counts as done that was not.
 */
#include "unit/pipe/device_test.h"

static const zarr_status answers[] = {ZARR_ERR_UNSUPPORTED, ZARR_ERR_NO_MEMORY,
                                      ZARR_ERR_DEVICE};
enum {
    IN_PLACE = 4, /* of kinds[]: each chunk is in the tensor as it is */
    CUT = 5       /* chunks of the last column are cut by the shape */
};

struct world {
    struct pw w;
    zarr_array *a;
    zarr_tensor t;
    zarr_memory mem;
    zarr_selection *sel;
    uint64_t lengths[2];
};

static void world_open(struct world *o, int kind, const char *text)
{
    open_world(&o->w, 2, 1 << 20);
    o->a = filled_array(&o->w, "a", kind);
    o->sel = parse_selection(text, o->lengths);
    o->mem = tensor_new(&o->w, &o->t, o->lengths);
    declines_lists = true;
}

static void world_close(struct world *o)
{
    answer = NULL;
    damage = -1;
    refuses = 0;
    declines = ZARR_OK;
    declines_lists = false;
    zarr_selection_free(o->sel);
    zarr_memory_free(o->w.ctx, &o->mem);
    zarr_array_free(o->a);
    close_world(&o->w);
}

static zarr_status read_all(struct world *o)
{
    return zarr_array_read(o->a, o->sel, &o->t, NULL, &terr);
}

/* Writes the elements that the array has already. */
static zarr_status write_all(struct world *o)
{
    static int32_t all[N];
    zarr_tensor host;

    zarr_tensor_host(&host, NULL, all, sizeof all, 2, o->lengths);
    for (uint64_t i = 0; i < zarr_selection_n_items(o->sel); i++)
        all[i] = o->lengths[1] == COLS ? data[i]
                                       : data[i / (COLS - 2) * COLS + 1 + i % (COLS - 2)];
    assert_int_equal(zarr_fakedev_poke(o->mem.handle, 0, all, sizeof all), 0);
    return zarr_array_write(o->a, o->sel, &o->t, NULL, &terr);
}

/* Chunk r, c is damaged, and others are declined with each answer. */
static void one_damaged(struct world *o, int kind, uint64_t r, uint64_t c,
                        zarr_status (*request)(struct world *), int32_t *where)
{
    const uint64_t *chunk = kinds[kind].chunk;

    *where = data[r * chunk[0] * COLS + c * chunk[1]];
    for (size_t i = 0; i < ZR_COUNT(answers); i++) {
        declines = answers[i];
        assert_status(request(o), ZARR_ERR_CORRUPT);
        same_key(r, c);
    }
    declines = ZARR_OK;
}

static void test_read(void **state)
{
    struct world o;

    (void)state;
    world_open(&o, IN_PLACE, "...");
    for (uint64_t r = 1; r < 10; r += 1 + r % 3 / 2) /* 0, 3, 6 and 9 are declined */
        one_damaged(&o, IN_PLACE, r, 0, read_all, &damage);
    world_close(&o);
}

/* Each old value is read before. */
static void test_write_in_part(void **state)
{
    struct world o;

    (void)state;
    world_open(&o, IN_PLACE, ":, 1:39");
    for (uint64_t r = 1; r < 10; r += 1 + r % 3 / 2) /* 0, 3, 6 and 9 are declined */
        one_damaged(&o, IN_PLACE, r, 0, write_all, &damage);
    world_close(&o);
}

static void test_encode(void **state)
{
    struct world o;

    (void)state;
    world_open(&o, CUT, "...");
    for (uint64_t i = 1; i < 75; i += 9) /* of which every third is declined */
        one_damaged(&o, CUT, i / 5, i % 5, write_all, &refuses);
    world_close(&o);
}

/* The CPU's decoder takes the damaged chunk, so nothing fails and nothing is lost. */
static void done_alone(int kind, const char *text, int32_t at,
                       zarr_status (*request)(struct world *))
{
    static int32_t got[N];
    struct world o;
    zarr_tensor host;

    world_open(&o, kind, text);
    declines_lists = false;
    damage = at;
    for (size_t i = 0; i < ZR_COUNT(answers); i++) {
        declines = answers[i];
        assert_ok(request(&o));
    }
    declines = ZARR_OK;
    damage = -1;
    zarr_tensor_host(&host, NULL, got, sizeof got, 2, sizes);
    assert_ok(zarr_array_read(o.a, NULL, &host, NULL, &terr));
    assert_memory_equal(got, data, sizeof data);
    world_close(&o);
}

static void test_alone(void **state)
{
    (void)state;
    done_alone(IN_PLACE, "...", 1000 + 10 * COLS, read_all);
    done_alone(IN_PLACE, ":, 1:39", 1000 + 10 * COLS, write_all);
    /* the old values of chunks that the shape cuts */
    done_alone(CUT, "...", 1000 + 7 * COLS + 36, write_all);
}

/* ---- answers as a whole ----------------------------------------------------------- */

/* The work of this job was not done. */
static void spoil(const zarr_codec_job *job)
{
    static const int32_t other = 7;

    (void)zarr_fakedev_poke(job->dst.handle, job->dst.offset, &other, sizeof other);
}

static zarr_status says; /* of a call as a whole */

/* The call fails as a whole, but leaves work; settle() then gives one job a status. */
static zarr_status whole_then_one(zarr_codec_job *jobs, uint64_t n, bool decode,
                                  bool settles, zarr_status st, zarr_error *err)
{
    (void)decode;
    if (n == 1)
        return st;
    if (!settles)
        return zr_fail(err, says, "test.late: all of them");
    for (uint64_t i = n / 2; i < n; i++)
        spoil(&jobs[i]);
    jobs[1].status = ZARR_ERR_UNSUPPORTED;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED, "test.late: this one");
}

/* Some jobs are declined at once; then all others fail, without a status each. */
static zarr_status settles_whole(zarr_codec_job *jobs, uint64_t n, bool decode,
                                 bool settles, zarr_status st, zarr_error *err)
{
    (void)decode;
    if (n == 1 || !settles)
        return st;
    spoil(&jobs[1]);
    return zr_fail(err, ZARR_ERR_DEVICE, "test.late: all others");
}

static void not_done(zarr_status (*how)(zarr_codec_job *, uint64_t, bool, bool,
                                        zarr_status, zarr_error *),
                     zarr_status whole, zarr_status one_by_one)
{
    static int32_t got[N];
    struct world o;
    zarr_tensor host;

    says = whole;
    for (int writes = 0; writes < 2; writes++) {
        world_open(&o, IN_PLACE, "...");
        for (int i = 0; i < N && writes; i++)
            data[i] = 50000 + i;
        declines = one_by_one;
        answer = how;
        assert_ok(writes ? write_all(&o) : read_all(&o));
        answer = NULL;
        declines = ZARR_OK;
        zarr_tensor_host(&host, NULL, got, sizeof got, 2, sizes);
        if (writes)
            assert_ok(zarr_array_read(o.a, NULL, &host, NULL, &terr));
        else
            assert_int_equal(zarr_fakedev_peek(o.mem.handle, 0, got, sizeof got), 0);
        assert_memory_equal(got, data, sizeof got);
        world_close(&o);
    }
}

static void test_whole(void **state)
{
    (void)state;
    not_done(whole_then_one, ZARR_ERR_UNSUPPORTED, ZARR_OK);
    not_done(whole_then_one, ZARR_ERR_LIMIT, ZARR_OK);
    not_done(settles_whole, ZARR_OK, ZARR_ERR_UNSUPPORTED);
}

/* ---- outputs ---------------------------------------------------------------------- */

/* One output is too short. */
static zarr_status one_short(zarr_codec_job *jobs, uint64_t n, bool decode, bool settles,
                             zarr_status st, zarr_error *err)
{
    (void)err;
    if (n > 1 && settles != decode)
        jobs[4].dst_used = jobs[4].dst.bytes - 4;
    for (uint64_t i = 0; i < n && settles && st == ZARR_OK; i++)
        st = jobs[i].status;
    return st;
}

/* A length that is wrong beside declined jobs is seen: that chunk is done alone, too. */
static void test_short_output(void **state)
{
    static int32_t got[N];
    struct world o;
    zarr_tensor host;

    (void)state;
    for (int writes = 0; writes < 2; writes++) {
        world_open(&o, IN_PLACE, "...");
        for (int i = 0; i < N && writes; i++)
            data[i] = 50000 + i;
        answer = one_short;
        assert_status(writes ? write_all(&o) : read_all(&o),
                      writes ? ZARR_ERR_INTERNAL : ZARR_ERR_CORRUPT);
        same_key(4, 0);
        declines = ZARR_ERR_UNSUPPORTED;
        assert_ok(writes ? write_all(&o) : read_all(&o));
        world_close(&o);
    }
    world_open(&o, IN_PLACE, "...");
    declines = ZARR_ERR_UNSUPPORTED;
    answer = one_short;
    assert_ok(write_all(&o));
    answer = NULL;
    zarr_tensor_host(&host, NULL, got, sizeof got, 2, sizes);
    assert_ok(zarr_array_read(o.a, NULL, &host, NULL, &terr));
    assert_memory_equal(got, data, sizeof got);
    world_close(&o);
}

/* As ZSTD_compress() leaves it. */
static zarr_status error_as_length(zarr_codec_job *jobs, uint64_t n, bool decode,
                                   bool settles, zarr_status st, zarr_error *err)
{
    (void)decode;
    (void)settles;
    (void)err;
    for (uint64_t i = 0; i < n; i++)
        if (jobs[i].status != ZARR_OK)
            jobs[i].dst_used = UINT64_MAX - 69;
    return st;
}

/* What a declined job says of its output is not looked at. */
static void test_length_of_declined(void **state)
{
    static const int after[] = {IN_PLACE, 14 /* a codec of the CPU follows */};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(after); i++) {
        struct world o;

        world_open(&o, after[i], "...");
        declines = ZARR_ERR_UNSUPPORTED;
        answer = error_as_length;
        assert_ok(write_all(&o));
        assert_ok(read_all(&o));
        world_close(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_write_in_part),
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_short_output),
        cmocka_unit_test(test_length_of_declined),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
