/*
 * tests/unit/mem/test_pack.c - boxes between the host and a device whose backend copies
 * boxes only inside of the device: random lists with and without a stream, a pool and
 * lists of the backend; one box that is larger than a block; no memory, and failures.
 */
#include "sanitizers.h"
#include "unit/mem/mem_test.h"

#include "fakedev/fakedev.h"

enum {
    ROOM = 1 << 21,
    LIST = 80, /* more boxes than one call of the backend gets */
    BOX = ROOM / LIST,
    RANK = 4,
    LARGE = 80 << 20
};

struct bench {
    struct zr_memory_registry r;
    struct zr_pool *pool;
    void *dev;
    zarr_memory host, device;
    uint8_t *want;
    struct zr_stream stream;
    struct zr_copy_counters c;
};

static bool inside(const zarr_box *box)
{
    return box->dst.mem.device_type == box->src.mem.device_type;
}

static zarr_status copy_box(void *self, const zarr_box *box, void *stream,
                            zarr_error *err)
{
    return inside(box) ? zarr_fakedev_vtable_late()->copy_box(self, box, stream, err)
                       : ZARR_ERR_UNSUPPORTED;
}

static zarr_status copy_boxes(void *self, const zarr_box *boxes, uint64_t n, void *stream,
                              zarr_error *err)
{
    return inside(&boxes[0])
               ? zarr_fakedev_vtable_late()->copy_boxes(self, boxes, n, stream, err)
               : ZARR_ERR_UNSUPPORTED;
}

/* What a backend of the bench has. */
enum {
    NO_LISTS = 1,
    NO_STREAM = 2,
    NO_POOL = 4,
    WAYS = 8
};

static void bench_open(struct bench *b, int way, size_t bytes)
{
    zarr_memory_vtable v = *zarr_fakedev_vtable_late();
    const struct zr_backend *be = NULL;

    memset(b, 0, sizeof *b);
    v.copy_box = copy_box;
    v.copy_boxes = way & NO_LISTS ? NULL : copy_boxes;
    v.copy_list = way & NO_LISTS ? NULL : v.copy_list;
    b->dev = zarr_fakedev_create();
    assert_int_equal(zr_memory_registry_init(&b->r, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_memory_register(&b->r, &v, b->dev, "test", NULL), ZARR_OK);
    assert_int_equal(zr_pool_create(&b->pool, &b->r, NULL, 1 << 28, NULL), ZARR_OK);
    assert_int_equal(zr_backend_find(&b->r, ZARR_DEVICE_EXT, &be, NULL), ZARR_OK);
    assert_int_equal(be->vt.alloc(be->self, 0, bytes, &b->device, NULL), ZARR_OK);
    b->host = zr_mem_of_host(malloc(bytes), bytes);
    b->want = malloc(bytes);
    assert_true(b->host.handle && b->want);
    if (!(way & NO_STREAM)) {
        assert_int_equal(zr_stream_open(&b->stream, &b->r, ZARR_DEVICE_EXT, 0, NULL),
                         ZARR_OK);
        b->stream.pool = way & NO_POOL ? NULL : b->pool;
    }
}

static void bench_close(struct bench *b)
{
    const struct zr_backend *be = NULL;
    zarr_fakedev_counters c;

    zr_stream_close(&b->stream);
    assert_int_equal(zr_backend_find(&b->r, ZARR_DEVICE_EXT, &be, NULL), ZARR_OK);
    be->vt.free(be->self, &b->device);
    zr_pool_free(b->pool);
    zarr_fakedev_count(b->dev, &c);
    assert_int_equal(c.faults, 0);
    free(b->host.handle);
    free(b->want);
    zr_memory_registry_deinit(&b->r);
}

/* Random bytes on both sides; `want` becomes what dst has now. */
static void fill(struct bench *b, struct rnd *r, bool up, uint8_t *src)
{
    rnd_bytes(r, b->want, ROOM);
    rnd_bytes(r, src, ROOM);
    if (up) {
        memcpy(b->host.handle, src, ROOM);
        assert_int_equal(zarr_fakedev_poke(b->device.handle, 0, b->want, ROOM), 0);
    } else {
        memcpy(b->host.handle, b->want, ROOM);
        assert_int_equal(zarr_fakedev_poke(b->device.handle, 0, src, ROOM), 0);
    }
}

/* A box inside of part `i` on both sides. */
static void random_box(const struct bench *b, struct rnd *r, bool up, uint64_t i,
                       zarr_box *box)
{
    static const uint32_t items[] = {1, 2, 4, 8, 3};
    uint64_t first[2] = {0}, span[2];

    do {
        *box = (zarr_box){.struct_size = sizeof *box,
                          .ndim = (int32_t)rnd_below(r, RANK + 1),
                          .item_bytes = items[rnd_below(r, ZR_COUNT(items))]};
        for (int32_t k = 0; k < box->ndim; k++)
            box->shape[k] = 1 + rnd_below(r, 9);
        if (rnd_below(r, 3) == 0)
            box->swap_bytes = box->item_bytes;
        span[0] = random_side(r, box->ndim, box->shape, box->item_bytes, false,
                              box->dst.stride, &first[0]);
        span[1] = random_side(r, box->ndim, box->shape, box->item_bytes, true,
                              box->src.stride, &first[1]);
    } while (span[0] > BOX || span[1] > BOX);
    box->dst.mem = up ? b->device : b->host;
    box->src.mem = up ? b->host : b->device;
    box->dst.mem.bytes = box->src.mem.bytes = ROOM;
    box->dst.mem.offset = i * BOX + first[0];
    box->src.mem.offset = i * BOX + first[1];
}

static bool holds(const struct bench *b, bool up, uint64_t bytes)
{
    uint8_t *now = malloc(bytes);
    bool same;

    assert_non_null(now);
    if (up)
        assert_int_equal(zarr_fakedev_peek(b->device.handle, 0, now, bytes), 0);
    else
        memcpy(now, b->host.handle, bytes);
    same = memcmp(now, b->want, bytes) == 0;
    free(now);
    return same;
}

static void turn(struct bench *b, struct rnd *r, bool up)
{
    static zarr_box box[LIST];
    static uint8_t src[ROOM];
    const uint64_t n = rnd_below(r, 3) ? 1 + rnd_below(r, LIST) : 1;

    fill(b, r, up, src);
    for (uint64_t i = 0; i < n; i++) {
        random_box(b, r, up, i, &box[i]);
        reference_copy(&box[i], b->want, src, NULL);
    }
    assert_int_equal(zr_box_copy_list(&b->r, box, n, &b->stream, &b->c, NULL), ZARR_OK);
    assert_int_equal(zr_stream_sync(&b->stream, NULL), ZARR_OK);
    assert_true(holds(b, up, ROOM));
}

static void random_lists(void **state)
{
    struct rnd r = {rnd_seed(7)};

    ZR_UNUSED(state);
    for (int way = 0; way < WAYS; way++) {
        struct bench b;

        bench_open(&b, way, ROOM);
        for (int k = 0; k < 40 / ZR_CASE_STEP; k++)
            turn(&b, &r, k % 2);
        bench_close(&b);
    }
}

/* ---- a box of many blocks --------------------------------------------------------- */

/* Every second row, so no side is one run. */
static zarr_box large_box(const struct bench *b, bool up)
{
    zarr_box box = {.struct_size = sizeof box, .ndim = 3, .item_bytes = 4};
    zarr_box_side *dev = up ? &box.dst : &box.src, *host = up ? &box.src : &box.dst;

    box.shape[0] = 5;
    box.shape[1] = 1 << 11;
    box.shape[2] = 1 << 10;
    dev->mem = b->device;
    host->mem = b->host;
    dev->mem.bytes = host->mem.bytes = LARGE;
    for (int k = 0; k < 2; k++) {
        zarr_box_side *side = k ? dev : host;

        side->stride[2] = 4;
        side->stride[1] = k ? 8 << 10 : 4 << 10;
        side->stride[0] = side->stride[1] << 11;
    }
    return box;
}

static void a_large_box(void **state)
{
    struct rnd r = {rnd_seed(9)};

    ZR_UNUSED(state);
    for (int up = 0; up < 2; up++) {
        uint8_t *src = malloc(LARGE);
        struct bench b;
        zarr_box box;

        assert_non_null(src);
        bench_open(&b, 0, LARGE);
        rnd_bytes(&r, src, LARGE);
        memset(b.want, 0x55, LARGE);
        memcpy(b.host.handle, up ? src : b.want, LARGE);
        assert_int_equal(zarr_fakedev_poke(b.device.handle, 0, up ? b.want : src, LARGE),
                         0);
        box = large_box(&b, up);
        reference_copy(&box, b.want, src, NULL);
        assert_int_equal(zr_box_copy_list(&b.r, &box, 1, &b.stream, &b.c, NULL), ZARR_OK);
        assert_true(holds(&b, up, LARGE));
        assert_int_equal(b.c.staged, 0);
        assert_true(b.c.calls < 10); /* not one a row */
        bench_close(&b);
        free(src);
    }
}

/* ---- what fails ------------------------------------------------------------------- */

static void no_memory_for_a_block(void **state)
{
    struct rnd r = {rnd_seed(11)};
    struct bench b;

    ZR_UNUSED(state);
    bench_open(&b, NO_POOL, ROOM);
    for (int k = 0; k < 10; k++) {
        zarr_fakedev_fail(b.dev, ZARR_FAKEDEV_ALLOC, 1, ZARR_ERR_NO_MEMORY);
        turn(&b, &r, k % 2);
    }
    zarr_fakedev_fail(b.dev, 0, 0, ZARR_OK);
    bench_close(&b);
}

/* Where the device has little memory left, a large box goes through a small block. */
static void little_memory_for_a_block(void **state)
{
    ZR_UNUSED(state);
    for (int up = 0; up < 2; up++) {
        zarr_fakedev_counters c;
        struct bench b;
        zarr_box box;

        bench_open(&b, NO_POOL, LARGE);
        box = large_box(&b, up);
        zarr_fakedev_count(b.dev, &c);
        zarr_fakedev_budget(b.dev, c.live_bytes + (512 << 10), 0);
        assert_int_equal(zr_box_copy_list(&b.r, &box, 1, &b.stream, &b.c, NULL), ZARR_OK);
        assert_int_equal(b.c.staged, 0);
        assert_in_range(b.c.calls, 10, 1000); /* not one a row */
        zarr_fakedev_budget(b.dev, 0, 0);
        bench_close(&b);
    }
}

/* Two boxes of 20 rows each. */
static void small_boxes(struct bench *b, int way, zarr_box box[2])
{
    for (int i = 0; i < 2; i++) {
        box[i] = large_box(b, way % 2);
        box[i].shape[0] = 1;
        box[i].shape[1] = 20;
        box[i].src.mem.offset = box[i].dst.mem.offset = (uint64_t)i * (1 << 18);
    }
}

static void each_call_may_fail(void **state)
{
    ZR_UNUSED(state);
    for (int way = 0; way < WAYS; way++) {
        bool done = false;

        for (uint64_t k = 1; !done; k++) {
            struct bench b;
            zarr_box box[2];
            zarr_status st;

            bench_open(&b, way, ROOM);
            small_boxes(&b, way, box);
            zarr_fakedev_fail(b.dev, ZARR_FAKEDEV_ALL, k, ZARR_ERR_DEVICE);
            st = zr_box_copy_list(&b.r, box, 2, &b.stream, &b.c, NULL);
            done = st == ZARR_OK;
            assert_true(done || st == ZARR_ERR_DEVICE);
            zarr_fakedev_fail(b.dev, 0, 0, ZARR_OK);
            bench_close(&b);
        }
    }
}

/* A block is no larger than the elements of its list need: what waves took of the
 * device's budget does not have more. */
static void a_small_list_has_a_small_block(void **state)
{
    ZR_UNUSED(state);
    for (int way = 0; way < WAYS; way++) {
        zarr_fakedev_counters c;
        struct bench b;
        zarr_box box[2];

        bench_open(&b, way, ROOM);
        small_boxes(&b, way, box);
        assert_int_equal(zr_box_copy_list(&b.r, box, 2, &b.stream, &b.c, NULL), ZARR_OK);
        zarr_fakedev_count(b.dev, &c);
        assert_in_range(c.peak_bytes, ROOM, 2 * ROOM);
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_list_has_a_small_block),
        cmocka_unit_test(random_lists),
        cmocka_unit_test(a_large_box),
        cmocka_unit_test(no_memory_for_a_block),
        cmocka_unit_test(little_memory_for_a_block),
        cmocka_unit_test(each_call_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
