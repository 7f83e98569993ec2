/*
 * tests/unit/mem/test_box.c - strided copies and fills of host memory against a
 * byte-by-byte reference: random ranks, shapes, strides, element sizes, byte swaps and
 * alignments. The whole buffer is compared, so a byte written next to the box is an
 * error as well.
 */
#include "sanitizers.h"
#include "unit/mem/mem_test.h"

#include <sys/mman.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 1 << 21,
    MAX_ITEMS = 20000
};
#define CASES (20000 / ZR_CASE_STEP)

struct buffers {
    struct zr_memory_registry registry;
    uint8_t *dst, *want, *src;
};

static int buffers_make(void **state)
{
    struct buffers *b = calloc(1, sizeof *b);

    assert_int_equal(zr_memory_registry_init(&b->registry, NULL, NULL), ZARR_OK);
    b->dst = malloc(BUFFER_BYTES);
    b->want = malloc(BUFFER_BYTES);
    b->src = malloc(BUFFER_BYTES);
    *state = b;
    return 0;
}

static int buffers_end(void **state)
{
    struct buffers *b = *state;

    zr_memory_registry_deinit(&b->registry);
    free(b->dst);
    free(b->want);
    free(b->src);
    free(b);
    return 0;
}

static const struct {
    uint32_t item, swap;
} forms[] = {{1, 0},   {2, 0},   {4, 0},  {8, 0},  {16, 0}, {3, 0},   {5, 0},   {12, 0},
             {40, 0},  {1, 1},   {2, 2},  {4, 4},  {8, 8},  {16, 16}, {8, 4},   {16, 8},
             {24, 8},  {12, 4},  {6, 2},  {12, 3}, {64, 0}, {65, 0},  {96, 16}, {100, 0},
             {100, 5}, {32, 32}, {16, 4}, {7, 0},  {80, 0}, {4, 2},   {8, 2},   {24, 0}};

static uint64_t random_shape(struct rnd *r, int32_t ndim, uint64_t *shape, uint64_t most)
{
    static const uint64_t lengths[] = {1,  2,  3,  4,  5,  7,  8,  9,   13, 16,
                                       17, 31, 32, 33, 64, 65, 71, 100, 129};
    uint64_t total = 1;

    for (int32_t k = 0; k < ndim; k++) {
        uint64_t n = lengths[rnd_below(r, ZR_COUNT(lengths))];

        while (n > 1 && total * n > most)
            n /= 2;
        if (rnd_below(r, 150) == 0)
            n = 0;
        shape[k] = n;
        total *= n ? n : 1;
    }
    return total;
}

/* One random box; false if it does not fit the buffers. */
static bool random_box(struct rnd *r, struct buffers *b, zarr_box *box)
{
    const size_t form = rnd_below(r, ZR_COUNT(forms));
    uint64_t dst_span, src_span, first;
    uint64_t most = 1 + rnd_below(r, rnd_below(r, 8) ? 600 : MAX_ITEMS);

    *box = (zarr_box){.struct_size = sizeof *box};
    box->item_bytes = forms[form].item;
    box->swap_bytes = forms[form].swap;
    box->ndim = (int32_t)rnd_below(r, rnd_below(r, 20) ? 5 : 65);
    random_shape(r, box->ndim, box->shape, most);
    dst_span = random_side(r, box->ndim, box->shape, box->item_bytes, false,
                           box->dst.stride, &first);
    box->dst.mem = zr_mem_of_host(b->dst, dst_span);
    box->dst.mem.offset = first + rnd_below(r, 2) * rnd_below(r, 130);
    src_span = random_side(r, box->ndim, box->shape, box->item_bytes, true,
                           box->src.stride, &first);
    box->src.mem = zr_mem_of_host(b->src, src_span);
    box->src.mem.offset = first + rnd_below(r, 2) * rnd_below(r, 130);
    box->dst.mem.bytes = BUFFER_BYTES;
    box->src.mem.bytes = BUFFER_BYTES;
    if (dst_span + 256 > BUFFER_BYTES || src_span + 256 > BUFFER_BYTES)
        return false;
    /* Claims that dst is part of a large block, whose other bytes do not exist and must
     * not be accessed. */
    if (rnd_below(r, 2))
        box->dst.mem.bytes = UINT64_C(1) << 32;
    return true;
}

/* The bytes that either side may have accessed, and some more. */
static size_t box_reach(const zarr_box *box, const zarr_box_side *side)
{
    uint64_t end = side->mem.offset + box->item_bytes;

    for (int32_t k = 0; k < box->ndim; k++)
        if (side->stride[k] > 0 && box->shape[k])
            end += (box->shape[k] - 1) * (uint64_t)side->stride[k];
    return end + 128 < BUFFER_BYTES ? (size_t)end + 128 : BUFFER_BYTES;
}

static void compare(struct buffers *b, size_t bytes, uint64_t seed, int n)
{
    if (memcmp(b->dst, b->want, bytes) == 0)
        return;
    for (size_t i = 0; i < bytes; i++)
        if (b->dst[i] != b->want[i]) {
            print_error("seed %" PRIu64 " case %d: byte %zu is %02x, not %02x\n", seed, n,
                        i, b->dst[i], b->want[i]);
            break;
        }
    fail();
}

static void copies_equal_reference(void **state)
{
    struct buffers *b = *state;
    const uint64_t seed = rnd_seed(20260101);
    struct rnd r = {seed};
    zarr_box box;
    int done = 0;

    print_message("seed %" PRIu64 "\n", seed);
    rnd_bytes(&r, b->src, BUFFER_BYTES);
    rnd_bytes(&r, b->dst, BUFFER_BYTES);
    for (int n = 0; done < CASES; n++) {
        size_t bytes;

        if (!random_box(&r, b, &box))
            continue;
        done++;
        bytes = box_reach(&box, &box.dst);
        memcpy(b->want, b->dst, bytes);
        reference_copy(&box, b->want, b->src, NULL);
        assert_int_equal(zr_box_copy(&b->registry, &box, NULL, NULL, NULL), ZARR_OK);
        compare(b, bytes, seed, n);
    }
}

/* A form copies at other places than that of the box it was made from. */
static void forms_equal_reference(void **state)
{
    struct buffers *b = *state;
    const uint64_t seed = rnd_seed(20260103);
    struct zr_copy_counters counters = {0};
    struct rnd r = {seed};
    uint64_t copied = 0, bytes_copied = 0;
    zarr_box box;

    print_message("seed %" PRIu64 "\n", seed);
    rnd_bytes(&r, b->src, BUFFER_BYTES);
    rnd_bytes(&r, b->dst, BUFFER_BYTES);
    for (int n = 0; n < CASES / 2; n++) {
        struct zr_box_form form;
        uint64_t total;

        if (!random_box(&r, b, &box) || !zr_box_form_make(&form, &b->registry, &box))
            continue;
        total = box.item_bytes;
        for (int32_t k = 0; k < box.ndim; k++)
            total *= box.shape[k];
        assert_int_equal(form.bytes, total);
        for (int k = 0; k < 3; k++) {
            size_t bytes;
            bool done;

            box.dst.mem.offset += rnd_below(&r, 2) * rnd_below(&r, 40);
            box.src.mem.offset += rnd_below(&r, 40);
            bytes = box_reach(&box, &box.dst);
            memcpy(b->want, b->dst, bytes);
            done = zr_box_form_copy(&form, &box.dst.mem, &box.src.mem, &counters);
            if (done)
                reference_copy(&box, b->want, b->src, NULL);
            compare(b, bytes, seed, n);
            assert_true(done || form.line);
            copied += done;
            bytes_copied += done ? total : 0;
        }
        box.dst.mem.bytes--;
        assert_false(zr_box_form_copy(&form, &box.dst.mem, &box.src.mem, &counters));
        box.dst.mem.bytes++;
        box.src.mem.bytes = box.src.mem.offset + (uint64_t)form.src_high - 1;
        assert_false(zr_box_form_copy(&form, &box.dst.mem, &box.src.mem, &counters));
    }
    assert_true(copied > (uint64_t)CASES / 2);
    assert_int_equal(counters.copies_host, copied);
    assert_int_equal(counters.bytes_host, bytes_copied);
}

static void fills_equal_reference(void **state)
{
    struct buffers *b = *state;
    const uint64_t seed = rnd_seed(20260102);
    struct rnd r = {seed};
    uint8_t pattern[2000];
    zarr_box box;

    print_message("seed %" PRIu64 "\n", seed);
    rnd_bytes(&r, b->dst, BUFFER_BYTES);
    for (int n = 0; n < 5000 / ZR_CASE_STEP; n++) {
        size_t bytes;

        if (!random_box(&r, b, &box))
            continue;
        rnd_bytes(&r, pattern, sizeof pattern);
        if (rnd_below(&r, 3) == 0)
            memset(pattern, pattern[0], sizeof pattern);
        if (rnd_below(&r, 50) == 0) { /* longer than one piece of the blocked loop */
            box = (zarr_box){.struct_size = sizeof box, .ndim = 1, .item_bytes = 1500};
            box.shape[0] = rnd_below(&r, 50);
            box.dst.stride[0] = 1500;
            box.dst.mem = zr_mem_of_host(b->dst, BUFFER_BYTES);
        } else if (rnd_below(&r, 10) == 0) { /* one long contiguous row */
            box.ndim = 1;
            box.shape[0] = rnd_below(&r, 200000) / box.item_bytes;
            box.dst.stride[0] = box.item_bytes;
            box.dst.mem.offset = rnd_below(&r, 200);
        }
        bytes = box_reach(&box, &box.dst);
        memcpy(b->want, b->dst, bytes);
        reference_copy(&box, b->want, NULL, pattern);
        assert_int_equal(zr_box_fill(&b->registry, &box, pattern, NULL, NULL, NULL),
                         ZARR_OK);
        compare(b, bytes, seed, n);
    }
}

/* Every pair of orders of three axes, for element sizes with and without a transposing
 * kernel. */
static void transposes_equal_reference(void **state)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const uint64_t shapes[][3] = {
        {8, 9, 40}, {16, 16, 16}, {33, 5, 67}, {70, 64, 3}};
    struct buffers *b = *state;
    struct rnd r = {7};

    rnd_bytes(&r, b->src, BUFFER_BYTES);
    for (size_t f = 0; f < ZR_COUNT(forms); f++) {
        for (size_t c = 0; c < ZR_COUNT(shapes) * 6; c++) {
            zarr_box box = {.struct_size = sizeof box, .ndim = 3};
            int64_t line = box.item_bytes = forms[f].item, dline = line;
            const uint64_t *shape = shapes[c / 6];

            box.swap_bytes = forms[f].swap;
            for (int k = 2; k >= 0; k--) {
                const int d = orders[c % 6][k];
                box.shape[k] = shape[k];
                box.src.stride[k] = line;
                line *= (int64_t)shape[k];
                box.dst.stride[d] = dline;
                dline *= (int64_t)shape[d];
            }
            if (line > BUFFER_BYTES)
                continue;
            box.dst.mem = zr_mem_of_host(b->dst, BUFFER_BYTES);
            box.src.mem = zr_mem_of_host(b->src, BUFFER_BYTES);
            memset(b->want, 0, (size_t)line);
            memset(b->dst, 0, (size_t)line);
            reference_copy(&box, b->want, b->src, NULL);
            assert_int_equal(zr_box_copy(&b->registry, &box, NULL, NULL, NULL), ZARR_OK);
            compare(b, (size_t)line, f, (int)c);
        }
    }
}

/* A destination stride of 0: the last element remains, in whatever order the device is
 * walked. */
static void last_of_repeated_elements_stays(void **state)
{
    struct buffers *b = *state;
    zarr_box box = {
        .struct_size = sizeof box, .ndim = 2, .item_bytes = 1, .shape = {3, 4}};

    for (int turn = 0; turn < 4; turn++) {
        const int64_t step = turn % 2 ? -1 : 1;
        const bool rows = turn / 2 != 0; /* dimension with the stride of 0 */

        for (int i = 0; i < 12; i++)
            b->src[i] = (uint8_t)(i + 1);
        memset(b->dst, 0, 16);
        box.dst.mem = zr_mem_of_host(b->dst, 16);
        box.src.mem = zr_mem_of_host(b->src, 12);
        box.src.mem.offset = step < 0 ? 11 : 0;
        box.src.stride[0] = 4 * step;
        box.src.stride[1] = step;
        box.dst.stride[0] = rows ? 0 : 1;
        box.dst.stride[1] = rows ? 1 : 0;
        assert_int_equal(zr_box_copy(&b->registry, &box, NULL, NULL, NULL), ZARR_OK);
        for (int i = 0; i < (rows ? 4 : 3); i++) {
            const int at = rows ? 8 + i : 4 * i + 3;

            assert_int_equal(b->dst[i], step < 0 ? 12 - at : at + 1);
        }
    }
}

static void boxes_outside_are_refused(void **state)
{
    struct buffers *b = *state;
    zarr_box box = {.struct_size = sizeof box, .ndim = 1, .item_bytes = 4, .shape = {10}};
    zarr_error err = {0};

    box.dst.mem = zr_mem_of_host(b->dst, 40);
    box.src.mem = zr_mem_of_host(b->src, 40);
    box.dst.stride[0] = box.src.stride[0] = 4;
    assert_int_equal(zr_box_copy(&b->registry, &box, NULL, NULL, &err), ZARR_OK);
    box.dst.mem.bytes = 39;
    assert_int_equal(zr_box_copy(&b->registry, &box, NULL, NULL, &err),
                     ZARR_ERR_INTERNAL);
    box.dst.mem.bytes = 40;
    box.src.stride[0] = -4;
    assert_int_equal(zr_box_copy(&b->registry, &box, NULL, NULL, &err),
                     ZARR_ERR_INTERNAL);
    box.src.mem.offset = 36;
    assert_int_equal(zr_box_copy(&b->registry, &box, NULL, NULL, &err), ZARR_OK);
    box.src.mem.offset = UINT64_MAX;
    assert_int_equal(zr_box_copy(&b->registry, &box, NULL, NULL, &err),
                     ZARR_ERR_INTERNAL);
    box.shape[0] = UINT64_MAX;
    assert_int_equal(zr_box_copy(&b->registry, &box, NULL, NULL, &err),
                     ZARR_ERR_INTERNAL);
    box.shape[0] = 0;
    assert_int_equal(zr_box_copy(&b->registry, &box, NULL, NULL, &err), ZARR_OK);
    box.swap_bytes = 3;
    assert_int_equal(zr_box_copy(&b->registry, &box, NULL, NULL, &err),
                     ZARR_ERR_INTERNAL);
    box.swap_bytes = 0;
    box.ndim = 65;
    assert_int_equal(zr_box_copy(&b->registry, &box, NULL, NULL, &err),
                     ZARR_ERR_INTERNAL);
}

/* ---- where memory begins and ends ---- */

/* BUFFER_BYTES between two pages that no one may touch. */
static uint8_t *map_fenced(size_t page)
{
    uint8_t *p = mmap(NULL, BUFFER_BYTES + 2 * page, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + page, BUFFER_BYTES, PROT_READ | PROT_WRITE), 0);
    return p + page;
}

/* Moves one side of a box to the beginning of its buffer, or to the end. */
static void put_at_end(zarr_box_side *side, const zarr_box *box, bool at_end)
{
    uint64_t low = 0, high = box->item_bytes;

    for (int32_t k = 0; k < box->ndim; k++) {
        const int64_t way = (int64_t)(box->shape[k] - 1) * side->stride[k];

        low += way < 0 ? (uint64_t)-way : 0;
        high += way > 0 ? (uint64_t)way : 0;
    }
    side->mem.offset = at_end ? BUFFER_BYTES - high : low;
}

/* Nothing is read or written beside a box. */
static void boxes_at_the_ends_of_memory(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct buffers b = *(struct buffers *)*state;
    struct rnd r = {rnd_seed(20261127)};
    int done = 0;

    b.dst = map_fenced(page);
    b.src = map_fenced(page);
    while (done < CASES) {
        bool is_empty = false;
        zarr_box box;

        if (!random_box(&r, &b, &box))
            continue;
        for (int32_t k = 0; k < box.ndim; k++)
            is_empty = is_empty || box.shape[k] == 0;
        if (is_empty)
            continue;
        put_at_end(&box.dst, &box, rnd_below(&r, 2));
        put_at_end(&box.src, &box, rnd_below(&r, 2));
        assert_int_equal(zr_box_copy(&b.registry, &box, NULL, NULL, NULL), ZARR_OK);
        done++;
    }
    munmap(b.dst - page, BUFFER_BYTES + 2 * page);
    munmap(b.src - page, BUFFER_BYTES + 2 * page);
}

static void all_equal_finds_each_difference(void **state)
{
    static const uint32_t items[] = {1, 2, 3, 4, 8, 12, 16, 40, 64, 100};
    struct buffers *b = *state;
    struct rnd r = {99};
    uint8_t pattern[128];

    for (size_t f = 0; f < ZR_COUNT(items); f++) {
        for (int n = 0; n < 300; n++) {
            const uint32_t item = items[f];
            const uint64_t count = rnd_below(&r, 1 + rnd_below(&r, 400));
            uint8_t *data = b->dst + rnd_below(&r, 64);
            const size_t bytes = (size_t)(count * item);

            rnd_bytes(&r, pattern, sizeof pattern);
            for (uint64_t i = 0; i < count; i++)
                memcpy(data + i * item, pattern, item);
            data[bytes] = (uint8_t)~data[0]; /* not part of it */
            assert_true(zr_all_equal(data, count, pattern, item));
            if (bytes == 0)
                continue;
            data[rnd_below(&r, bytes)] ^= (uint8_t)(1 << rnd_below(&r, 8));
            assert_false(zr_all_equal(data, count, pattern, item));
        }
    }
    assert_true(zr_all_equal(NULL, 0, pattern, 4));
}

static void minus_zero_is_not_zero(void **state)
{
    const double zero = 0.0, data[] = {0.0, 0.0, -0.0};

    ZR_UNUSED(state);
    assert_true(zr_all_equal(data, 2, &zero, sizeof zero));
    assert_false(zr_all_equal(data, 3, &zero, sizeof zero));
}

static void contiguous_copy_is_counted(void **state)
{
    struct buffers *b = *state;
    struct zr_copy_counters c = {0};
    zarr_box box = {
        .struct_size = sizeof box, .ndim = 2, .item_bytes = 2, .shape = {3, 5}};

    box.dst.mem = zr_mem_of_host(b->dst, 30);
    box.src.mem = zr_mem_of_host(b->src, 30);
    box.dst.stride[0] = box.src.stride[0] = 10;
    box.dst.stride[1] = box.src.stride[1] = 2;
    assert_int_equal(zr_box_copy(&b->registry, &box, NULL, &c, NULL), ZARR_OK);
    assert_int_equal(zr_box_fill(&b->registry, &box, "ab", NULL, &c, NULL), ZARR_OK);
    assert_int_equal(c.copies_host, 2);
    assert_int_equal(c.bytes_host, 60);
    assert_int_equal(c.copies_up + c.copies_down + c.copies_device + c.staged, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_equal_reference),
        cmocka_unit_test(forms_equal_reference),
        cmocka_unit_test(fills_equal_reference),
        cmocka_unit_test(transposes_equal_reference),
        cmocka_unit_test(last_of_repeated_elements_stays),
        cmocka_unit_test(boxes_outside_are_refused),
        cmocka_unit_test(boxes_at_the_ends_of_memory),
        cmocka_unit_test(all_equal_finds_each_difference),
        cmocka_unit_test(minus_zero_is_not_zero),
        cmocka_unit_test(contiguous_copy_is_counted),
    };

    return cmocka_run_group_tests_name("mem_box", tests, buffers_make, buffers_end);
}
