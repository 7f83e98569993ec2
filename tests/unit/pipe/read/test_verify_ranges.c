/*
 * unit/pipe/read/test_verify_ranges.c - verify fetches neighbouring inner chunks with one
 * range. It finds the same faults, in the same order and with the same messages, as with
 * the pipeline `serial`, which fetches each chunk by itself.
 */
#include "unit/pipe/over_store.h"

#include <errno.h>

#define BARE                                                                             \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4,4],"           \
    "\"codecs\":[" BYTES "," CRC "],\"index_codecs\":[" BYTES                            \
    "],\"index_location\":\"start\"}}"

enum {
    CHUNKS = 256, /* in the shard */
    INDEX = 16 * CHUNKS,
    CHUNK_BYTES = 4 * 4 * 4 + 4
};
static const uint64_t whole[2] = {N, N};

/* ---- a store that does not tell lengths ------------------------------------------- */

/* A GET of byte bad_at fails; no byte from ends_at on can be read. 0: all bytes can. */
static uint64_t bad_at, ends_at;

static void odd_run(void *self, zarr_store_op *op, zarr_error *err)
{
    const bool get = op->verb == ZARR_STORE_GET && strstr(op->key, "c/") != NULL;

    if (get && bad_at && op->offset <= bad_at && bad_at - op->offset < op->length) {
        op->status = zr_fail_os(err, ZARR_ERR_IO, EIO, "made to fail");
        return;
    }
    over_do(self, op, err);
    if (!get)
        return;
    op->object_bytes = UINT64_MAX;
    if (ends_at && op->offset + op->done_bytes > ends_at)
        op->done_bytes = ends_at > op->offset ? ends_at - op->offset : 0;
}

static const zarr_store_vtable odd = {.struct_size = sizeof odd,
                                      .name = "odd",
                                      .caps = over_caps,
                                      .run = odd_run,
                                      .list = over_list,
                                      .close = over_close};

/* ---- faults ------------------------------------------------------------------------ */

struct heard {
    char text[1 << 16];
    size_t n;
    int faults;
};

static int hear(void *user, const zarr_verify_item *item)
{
    struct heard *h = user;

    h->faults++;
    h->n += (size_t)snprintf(h->text + h->n, sizeof h->text - h->n,
                             "%d %" PRIu64 ",%" PRIu64 " %s\n", (int)item->status,
                             item->origin[0], item->origin[1], item->message);
    assert_true(h->n < sizeof h->text);
    return 0;
}

static void hear_all(struct pw *w, const char *pipeline, struct heard *h)
{
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .pipeline = pipeline};
    zarr_array *a = NULL;

    h->n = 0;
    h->faults = 0;
    h->text[0] = '\0';
    assert_ok(zarr_array_open(&a, w->store, "a", &opts, &terr));
    assert_ok(zarr_array_verify(a, hear, h, NULL, &terr));
    zarr_array_free(a);
}

static void fill(struct pw *w, const char *codecs)
{
    zarr_array *a = pw_array(w->store, "a", codecs, whole, whole);

    make_data(1);
    assert_ok(pw_box(a, zero, whole, data, NULL, true));
    assert_ok(pw_box(a, zero, whole, got, NULL, false));
    assert_memory_equal(got, data, sizeof got);
    zarr_array_free(a);
}

/* Each makes a shard of a sound one, and returns the number of faults that it has. */

static void damage(uint8_t *object, const uint64_t *pair, size_t i)
{
    object[pair[2 * i] + 5] ^= 1;
}

static int leave_sound(uint8_t *object, uint64_t *pair)
{
    (void)object;
    (void)pair;
    return 0;
}

static int damage_all(uint8_t *object, uint64_t *pair)
{
    for (size_t i = 0; i < CHUNKS; i++)
        damage(object, pair, i);
    return CHUNKS;
}

static int damage_some(uint8_t *object, uint64_t *pair)
{
    damage(object, pair, 0);
    for (size_t i = 100; i < 120; i += 2)
        damage(object, pair, i);
    damage(object, pair, CHUNKS - 1);
    return 12;
}

static int turn_order(uint8_t *object, uint64_t *pair)
{
    for (size_t i = 0; i < CHUNKS; i++)
        pair[2 * i] = INDEX + (uint64_t)(CHUNKS - 1 - i) * CHUNK_BYTES;
    damage(object, pair, 9);
    return 1;
}

static int share_bytes(uint8_t *object, uint64_t *pair)
{
    for (size_t i = 1; i < CHUNKS; i++)
        pair[2 * i] = pair[2 * (i / 2)];
    for (size_t i = 7; i < CHUNKS; i += 50)
        pair[2 * i] += 1; /* overlaps the next one */
    damage(object, pair, 1);
    return 0; /* as many as `serial` finds */
}

static int drop_and_stretch(uint8_t *object, uint64_t *pair)
{
    (void)object;
    for (size_t i = 0; i < CHUNKS; i++)
        if (i % 7 == 3 || (i > 20 && i < 60))
            pair[2 * i] = pair[2 * i + 1] = UINT64_MAX;
    pair[2 * (size_t)70 + 1] = 0;
    pair[2 * (size_t)71 + 1] = 1 << 30;
    pair[2 * (size_t)72] = UINT64_C(1) << 62;
    pair[2 * (size_t)74 + 1]--;
    return 4;
}

static int fail_inside(uint8_t *object, uint64_t *pair)
{
    (void)object;
    bad_at = pair[2 * (size_t)77] + 30;
    return 1;
}

static int end_early(uint8_t *object, uint64_t *pair)
{
    (void)object;
    ends_at = pair[2 * (size_t)200] + 30;
    return 56;
}

static int (*const makers[])(uint8_t *object, uint64_t *pair) = {
    leave_sound, damage_all,       damage_some, turn_order,
    share_bytes, drop_and_stretch, fail_inside, end_early};

static void test_same_faults(void **state)
{
    static const uint64_t memory[] = {64 << 20, 1 << 10};
    static struct heard one, many;
    static uint8_t object[1 << 16];

    (void)state;
    for (size_t k = 0; k < 4 * ZR_COUNT(makers); k++) {
        uint64_t pair[2 * CHUNKS], n = sizeof object;
        struct over o;
        struct pw w;
        int faults;

        pw_open(&w, 2, memory[k % 2], 0);
        over_open(&w, &o, &odd, k / 2 % 2 ? ZARR_STORE_CAP_FAST_GET : 0);
        fill(&w, "[" BARE "]");
        assert_ok(zarr_store_get(o.below, "a/c/0/0", 0, object, &n, NULL, &terr));
        assert_int_equal(n, INDEX + CHUNKS * CHUNK_BYTES);
        memcpy(pair, object, sizeof pair);
        faults = makers[k / 4](object, pair);
        memcpy(object, pair, sizeof pair);
        assert_ok(zarr_store_put(o.below, "a/c/0/0", object, n, NULL, &terr));
        hear_all(&w, "serial", &one);
        hear_all(&w, NULL, &many);
        assert_string_equal(many.text, one.text);
        if (faults || makers[k / 4] == leave_sound)
            assert_int_equal(one.faults, faults);
        bad_at = ends_at = 0;
        pw_close(&w);
    }
}

/* ---- requests ---------------------------------------------------------------------- */

static int count_gets(const char *codecs, const char *pipeline)
{
    static struct heard h;
    struct over o;
    struct pw w;

    pw_open(&w, 1, 0, 0);
    over_open(&w, &o, &over_runs, ZARR_STORE_CAP_FAST_GET);
    fill(&w, codecs);
    atomic_store(&o.n_gets, 0);
    hear_all(&w, pipeline, &h);
    assert_string_equal(h.text, "");
    pw_close(&w);
    return atomic_load(&o.n_gets);
}

/* One range has twice as many chunks as the one before it. */
static void test_few_gets(void **state)
{
    static const char *const codecs[] = {
        "[" BARE "]",
        "[" SHARD("[4,4]", BYTES, "end") "]",
        "[" SHARD("[4,4]", BYTES "," GZIP, "start") "]",
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
        assert_in_range(count_gets(codecs[i], NULL), 2, 12);
        assert_in_range(count_gets(codecs[i], "serial"), CHUNKS, CHUNKS + 2);
    }
    /* four nested shards, each with an index */
    assert_in_range(
        count_gets("[" SHARD("[32,32]", SHARD("[4,4]", BYTES, "end"), "end") "]", NULL),
        9, 40);
    /* decoded whole */
    assert_in_range(count_gets("[" SHARD("[4,4]", BYTES, "end") "," GZIP "]", NULL), 1,
                    2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_faults),
        cmocka_unit_test(test_few_gets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
