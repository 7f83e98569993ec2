/*
 * tests/unit/mem/test_route.c - copies and fills between host and fake devices: with the
 * backend's strided copy, through host staging without it, and between two backends.
 * Also counters, and an injected failure at each call. The device's pages fault if the
 * host accesses them, so a wrong route crashes.
 */
#include "unit/mem/mem_test.h"

#include "fakedev/fakedev.h"

enum {
    BYTES = 1 << 18,
    OTHER_DEVICE = ZARR_DEVICE_CUDA
};

/* Two devices of different types: EXT with or without strided copies, and a plain
 * one. */
struct bench {
    struct zr_memory_registry r;
    void *dev, *other;
    uint8_t *want, *src, *got;
    zarr_memory dev_mem, dev_mem2, other_mem, host_mem;
};

static zarr_memory device_block(struct bench *b, int32_t type)
{
    const struct zr_backend *be;
    zarr_memory m = {0};

    assert_int_equal(zr_backend_find(&b->r, type, &be, NULL), ZARR_OK);
    assert_int_equal(be->vt.alloc(be->self, 0, BYTES, &m, NULL), ZARR_OK);
    return m;
}

static void device_release(struct bench *b, zarr_memory *m)
{
    const struct zr_backend *be;

    assert_int_equal(zr_backend_find(&b->r, m->device_type, &be, NULL), ZARR_OK);
    be->vt.free(be->self, m);
}

static void bench_open(struct bench *b, bool plain)
{
    zarr_memory_vtable other = *zarr_fakedev_vtable_plain();

    memset(b, 0, sizeof *b);
    other.device_type = OTHER_DEVICE;
    other.name = "other";
    b->dev = zarr_fakedev_create();
    b->other = zarr_fakedev_create();
    zarr_fakedev_set_type(b->other, OTHER_DEVICE);
    assert_int_equal(zr_memory_registry_init(&b->r, NULL, NULL), ZARR_OK);
    assert_int_equal(
        zr_memory_register(&b->r,
                           plain ? zarr_fakedev_vtable_plain() : zarr_fakedev_vtable(),
                           b->dev, "test", NULL),
        ZARR_OK);
    assert_int_equal(zr_memory_register(&b->r, &other, b->other, "test", NULL), ZARR_OK);
    b->want = malloc(BYTES);
    b->src = malloc(BYTES);
    b->got = malloc(BYTES);
    b->dev_mem = device_block(b, ZARR_DEVICE_EXT);
    b->dev_mem2 = device_block(b, ZARR_DEVICE_EXT);
    b->other_mem = device_block(b, OTHER_DEVICE);
    b->host_mem = zr_mem_of_host(malloc(BYTES), BYTES);
}

static void bench_close(struct bench *b)
{
    zarr_fakedev_counters c;

    zarr_fakedev_count(b->dev, &c);
    assert_int_equal(c.faults, 0);
    zarr_fakedev_count(b->other, &c);
    assert_int_equal(c.faults, 0);
    device_release(b, &b->dev_mem);
    device_release(b, &b->dev_mem2);
    device_release(b, &b->other_mem);
    zr_memory_registry_deinit(&b->r);
    free(b->want);
    free(b->src);
    free(b->got);
    free(b->host_mem.handle);
}

static void block_write(const zarr_memory *m, const uint8_t *from)
{
    if (m->device_type == ZARR_DEVICE_CPU)
        memcpy(m->handle, from, BYTES);
    else
        assert_int_equal(zarr_fakedev_poke(m->handle, 0, from, BYTES), 0);
}

static void block_read(const zarr_memory *m, uint8_t *to)
{
    if (m->device_type == ZARR_DEVICE_CPU)
        memcpy(to, m->handle, BYTES);
    else
        assert_int_equal(zarr_fakedev_peek(m->handle, 0, to, BYTES), 0);
}

static const struct {
    uint32_t item, swap;
} forms[] = {{1, 0}, {2, 2},  {4, 0},  {8, 4},   {16, 16},
             {3, 0}, {12, 4}, {40, 8}, {5000, 0}};

static bool random_small_box(struct rnd *r, zarr_box *box)
{
    uint64_t dst_span, src_span, dst_first, src_first, total = 1;
    const size_t form = rnd_below(r, ZR_COUNT(forms));

    *box = (zarr_box){.struct_size = sizeof *box};
    box->item_bytes = forms[form].item;
    box->swap_bytes = forms[form].swap;
    box->ndim = (int32_t)rnd_below(r, 5);
    for (int32_t k = 0; k < box->ndim; k++) {
        box->shape[k] = rnd_below(r, 60) ? 1 + rnd_below(r, 10) : 0;
        total *= box->shape[k];
    }
    dst_span = random_side(r, box->ndim, box->shape, box->item_bytes, false,
                           box->dst.stride, &dst_first);
    src_span = random_side(r, box->ndim, box->shape, box->item_bytes, true,
                           box->src.stride, &src_first);
    box->dst.mem.offset = dst_first;
    box->src.mem.offset = src_first;
    return dst_span <= BYTES && src_span <= BYTES && total <= 2000;
}

static void place(zarr_box_side *side, const zarr_memory *m)
{
    const uint64_t offset = side->mem.offset;

    side->mem = *m;
    side->mem.offset = offset;
}

static void random_boxes(bool plain)
{
    const uint64_t seed = rnd_seed(20260104);
    struct rnd r = {seed};
    struct bench b;

    print_message("seed %" PRIu64 "\n", seed);
    bench_open(&b, plain);
    rnd_bytes(&r, b.src, BYTES);
    rnd_bytes(&r, b.want, BYTES);
    for (int n = 0, done = 0; done < 400; n++) {
        const zarr_memory *mems[] = {&b.host_mem, &b.dev_mem, &b.other_mem, &b.dev_mem2};
        const zarr_memory *from = mems[rnd_below(&r, 4)], *to = mems[rnd_below(&r, 4)];
        zarr_box box;

        if (from == to || !random_small_box(&r, &box))
            continue;
        done++;
        block_write(from, b.src);
        block_write(to, b.want);
        place(&box.dst, to);
        place(&box.src, from);
        if (rnd_below(&r, 4)) {
            reference_copy(&box, b.want, b.src, NULL);
            assert_int_equal(zr_box_copy(&b.r, &box, NULL, NULL, NULL), ZARR_OK);
        } else {
            reference_copy(&box, b.want, NULL, b.src);
            memset(&box.src, 0xff, sizeof box.src); /* ignored */
            assert_int_equal(zr_box_fill(&b.r, &box, b.src, NULL, NULL, NULL), ZARR_OK);
        }
        block_read(to, b.got);
        if (memcmp(b.got, b.want, BYTES) != 0) {
            print_error("seed %" PRIu64 " case %d\n", seed, n);
            fail();
        }
    }
    bench_close(&b);
}

static void boxes_by_the_backend(void **state)
{
    ZR_UNUSED(state);
    random_boxes(false);
}

static void boxes_through_the_host(void **state)
{
    ZR_UNUSED(state);
    random_boxes(true);
}

/* More than one staging block, cut inside a dimension. */
static void large_boxes_are_cut(void **state)
{
    enum {
        ROWS = 1100,
        COLUMNS = 1050,
        ROW_BYTES = COLUMNS * 2 + 6
    };
    const uint64_t bytes = (uint64_t)ROWS * ROW_BYTES;
    struct bench b;
    struct rnd r = {5};
    zarr_memory big = {0};
    const struct zr_backend *be;
    uint8_t *data = malloc(bytes), *back = malloc(bytes);
    zarr_box box = {.struct_size = sizeof box,
                    .ndim = 2,
                    .item_bytes = 2,
                    .swap_bytes = 2,
                    .shape = {ROWS, COLUMNS}};

    ZR_UNUSED(state);
    bench_open(&b, true);
    assert_int_equal(zr_backend_find(&b.r, ZARR_DEVICE_EXT, &be, NULL), ZARR_OK);
    assert_int_equal(be->vt.alloc(be->self, 0, bytes, &big, NULL), ZARR_OK);
    rnd_bytes(&r, data, bytes);
    memset(back, 0, bytes);
    box.dst.mem = big;
    box.src.mem = zr_mem_of_host(data, bytes);
    box.dst.stride[0] = box.src.stride[0] = ROW_BYTES;
    box.dst.stride[1] = box.src.stride[1] = 2;
    assert_int_equal(zr_box_copy(&b.r, &box, NULL, NULL, NULL), ZARR_OK);
    box.src.mem = big;
    box.dst.mem = zr_mem_of_host(back, bytes);
    assert_int_equal(zr_box_copy(&b.r, &box, NULL, NULL, NULL), ZARR_OK);
    for (size_t i = 0; i < ROWS; i++)
        assert_memory_equal(data + i * ROW_BYTES, back + i * ROW_BYTES, COLUMNS * 2);
    assert_int_equal(zarr_fakedev_peek(big.handle, 0, back, bytes), 0);
    assert_int_equal(back[0], data[1]);
    be->vt.free(be->self, &big);
    free(data);
    free(back);
    bench_close(&b);
}

static void runs_between_all(void **state)
{
    struct zr_copy_counters c = {0};
    struct rnd r = {77};
    struct bench b;
    zarr_memory part;

    ZR_UNUSED(state);
    bench_open(&b, false);
    rnd_bytes(&r, b.src, BYTES);
    block_write(&b.host_mem, b.src);
    assert_int_equal(zr_mem_copy_bytes(&b.r, &b.dev_mem, &b.host_mem, BYTES, &c, NULL),
                     ZARR_OK);
    assert_int_equal(zr_mem_copy_bytes(&b.r, &b.dev_mem2, &b.dev_mem, BYTES, &c, NULL),
                     ZARR_OK);
    assert_int_equal(zr_mem_copy_bytes(&b.r, &b.other_mem, &b.dev_mem2, BYTES, &c, NULL),
                     ZARR_OK);
    memset(b.host_mem.handle, 0, BYTES);
    assert_int_equal(zr_mem_copy_bytes(&b.r, &b.host_mem, &b.other_mem, BYTES, &c, NULL),
                     ZARR_OK);
    assert_memory_equal(b.host_mem.handle, b.src, BYTES);
    assert_int_equal(c.copies_up, 2); /* one of them through the host */
    assert_int_equal(c.copies_down, 2);
    assert_int_equal(c.copies_device, 1);
    assert_int_equal(c.bytes_device, BYTES);
    assert_int_equal(c.bytes_up, 2 * BYTES);
    assert_int_equal(c.staged, 1);
    assert_true(zr_mem_slice(&b.dev_mem, 100, 50, &part));
    assert_int_equal(zr_mem_copy_bytes(&b.r, &part, &b.host_mem, 51, &c, NULL),
                     ZARR_ERR_INVALID);
    assert_int_equal(zr_mem_copy_bytes(&b.r, &part, &b.host_mem, 50, &c, NULL), ZARR_OK);
    block_read(&b.dev_mem, b.got);
    assert_memory_equal(b.got + 100, b.src, 50);
    bench_close(&b);
}

static void boxes_are_counted(void **state)
{
    struct zr_copy_counters c = {0};
    struct bench b;
    zarr_box box = {
        .struct_size = sizeof box, .ndim = 2, .item_bytes = 4, .shape = {8, 8}};

    ZR_UNUSED(state);
    bench_open(&b, false);
    box.dst.stride[0] = box.src.stride[0] = 40;
    box.dst.stride[1] = box.src.stride[1] = 4;
    box.dst.mem = b.dev_mem;
    box.src.mem = b.host_mem;
    memset(b.host_mem.handle, 1, BYTES);
    assert_int_equal(zr_box_copy(&b.r, &box, NULL, &c, NULL), ZARR_OK);
    assert_int_equal(c.copies_up, 1);
    assert_int_equal(c.bytes_up, 256);
    box.src.mem = b.dev_mem2;
    assert_int_equal(zr_box_copy(&b.r, &box, NULL, &c, NULL), ZARR_OK);
    assert_int_equal(zr_box_fill(&b.r, &box, "abcd", NULL, &c, NULL), ZARR_OK);
    assert_int_equal(c.copies_device, 2);
    assert_int_equal(c.staged, 0);
    box.dst.mem = b.other_mem;
    assert_int_equal(zr_box_copy(&b.r, &box, NULL, &c, NULL), ZARR_OK);
    assert_int_equal(c.staged, 1);
    assert_int_equal(c.copies_down, 1);
    assert_int_equal(c.copies_up, 2);
    box.shape[1] = 0;
    assert_int_equal(zr_box_copy(&b.r, &box, NULL, &c, NULL), ZARR_OK);
    assert_int_equal(c.copies_up, 2); /* nothing was copied */
    bench_close(&b);
}

/* The k-th call of the device fails, k = 1, 2, ... until none fails. */
static void failures_come_back(void **state)
{
    struct bench b;
    zarr_box box = {
        .struct_size = sizeof box, .ndim = 2, .item_bytes = 4, .shape = {5, 6}};

    ZR_UNUSED(state);
    bench_open(&b, true);
    box.dst.stride[0] = box.src.stride[0] = 40;
    box.dst.stride[1] = box.src.stride[1] = 4;
    box.dst.mem = b.other_mem;
    box.src.mem = b.dev_mem;
    for (uint64_t k = 1; k <= 6; k++) {
        zarr_error err = {0};
        zarr_status st;

        zarr_fakedev_fail(b.dev, ZARR_FAKEDEV_COPY, k, ZARR_ERR_DEVICE);
        st = zr_box_copy(&b.r, &box, NULL, NULL, &err);
        assert_int_equal(st, k <= 5 ? ZARR_ERR_DEVICE : ZARR_OK);
        zarr_fakedev_fail(b.dev, 0, 0, ZARR_OK);
        zarr_fakedev_fail(b.other, ZARR_FAKEDEV_COPY, k, ZARR_ERR_DEVICE);
        st = zr_box_copy(&b.r, &box, NULL, NULL, &err);
        assert_int_equal(st, k <= 5 ? ZARR_ERR_DEVICE : ZARR_OK);
        if (st != ZARR_OK)
            assert_string_equal(err.message, "fake device: injected failure");
        zarr_fakedev_fail(b.other, 0, 0, ZARR_OK);
    }
    bench_close(&b);
}

/* The fake device must detect errors itself; otherwise these tests prove little. */
static void the_device_is_strict(void **state)
{
    struct bench b;
    zarr_fakedev_counters c;
    const zarr_memory_vtable *v = zarr_fakedev_vtable();
    zarr_memory long_mem, wrong;
    uint8_t byte;

    ZR_UNUSED(state);
    bench_open(&b, false);
    long_mem = b.dev_mem;
    long_mem.offset = 1;
    assert_int_equal(v->copy(b.dev, &long_mem, &b.host_mem, BYTES, NULL, NULL),
                     ZARR_ERR_DEVICE);
    wrong = b.dev_mem;
    wrong.device_type = ZARR_DEVICE_CPU;
    assert_int_equal(v->copy(b.dev, &b.dev_mem2, &wrong, 10, NULL, NULL),
                     ZARR_ERR_DEVICE);
    wrong = b.host_mem;
    wrong.device_type = ZARR_DEVICE_EXT;
    assert_int_equal(v->copy(b.dev, &wrong, &b.host_mem, 10, NULL, NULL),
                     ZARR_ERR_DEVICE);
    assert_int_equal(v->copy(b.dev, &b.host_mem, &b.host_mem, 10, NULL, NULL),
                     ZARR_ERR_DEVICE);
    assert_int_equal(zarr_fakedev_peek(b.dev_mem.handle, BYTES, &byte, 1), -1);
    assert_int_equal(zarr_fakedev_peek(&byte, 0, &byte, 1), -1);
    zarr_fakedev_count(b.dev, &c);
    assert_int_equal(c.faults, 4);
    device_release(&b, &b.dev_mem);
    device_release(&b, &b.dev_mem2);
    device_release(&b, &b.other_mem);
    zr_memory_registry_deinit(&b.r);
    free(b.want);
    free(b.src);
    free(b.got);
    free(b.host_mem.handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_by_the_backend), cmocka_unit_test(boxes_through_the_host),
        cmocka_unit_test(large_boxes_are_cut),  cmocka_unit_test(runs_between_all),
        cmocka_unit_test(boxes_are_counted),    cmocka_unit_test(failures_come_back),
        cmocka_unit_test(the_device_is_strict),
    };

    return cmocka_run_group_tests_name("mem_route", tests, NULL, NULL);
}
