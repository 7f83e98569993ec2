/*
 * unit/pipe/test_device_answers.c - one call of a device's codec declines some chunks at
 * once and finds damage in others once its work is waited for. What is declined is done
 * alone, and damage names its chunk.
 */
#include "device_test.h"

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
    zarr_mem mem;
    zarr_selection *sel;
    int64_t lengths[2];
};

static void world_open(struct world *o, int kind, const char *text)
{
    open_world(&o->w, 2, 1 << 20);
    o->a = filled_array(&o->w, "a", kind);
    o->sel = selection_of(text, o->lengths);
    o->mem = tensor_new(&o->w, &o->t, o->lengths);
    declines_lists = true;
}

static void world_close(struct world *o)
{
    damage = -1;
    refuses = 0;
    declines = ZARR_OK;
    declines_lists = false;
    zarr_selection_free(o->sel);
    zarr_mem_free(o->w.ctx, &o->mem);
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

    zarr_tensor_host(&host, all, sizeof all, 2, o->lengths);
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
    zarr_tensor_host(&host, got, sizeof got, 2, sizes);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_write_in_part),
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
