/*
 * tests/kernels/test_copy.c - boxes, fills, runs, gathered elements and comparisons give
 * what the library's own copies give; planes of bytes what its shuffle gives, planes of
 * bits what their definition says.
 */
#include "runner.h"

#include "boxes.h"
#include "codecs/shuffle/shuffle.h"
#include "mem/mem.h"

enum {
    BOXES = 24,
    TURNS = 12
};

/* ---- boxes -------------------- */

/* Strides of a dense block in a random order of the dimensions, with a gap after each and
 * random signs. Returns the bytes of the block; *first is where the first element is. */
static uint64_t layout(const struct k_box *b, k_i64 *stride, uint64_t *first,
                       uint64_t *seed)
{
    uint32_t order[K_RANK];
    uint64_t bytes = b->item_bytes;

    *first = 0;
    for (uint32_t d = 0; d < b->ndim; d++) {
        const uint32_t at = (uint32_t)below(seed, d + 1);

        order[d] = order[at];
        order[at] = d;
    }
    for (uint32_t k = 0; k < b->ndim; k++) {
        const uint32_t d = order[k];
        const int minus = below(seed, 3) == 0;

        stride[d] = minus ? -(k_i64)bytes : (k_i64)bytes;
        if (minus)
            *first += (b->shape[d] - 1) * bytes;
        bytes *= b->shape[d];
        bytes += below(seed, 2) * below(seed, 5);
    }
    return bytes;
}

static void box_make(struct k_box *b, uint32_t item, uint64_t *dst_bytes,
                     uint64_t *src_bytes, uint64_t *seed)
{
    static const uint32_t swaps[] = {0, 2, 4, 8};
    const uint32_t swap = swaps[below(seed, COUNT(swaps))];
    uint64_t first;

    memset(b, 0, sizeof *b);
    b->ndim = (uint32_t)below(seed, K_RANK + 1);
    b->item_bytes = item;
    b->swap_bytes = item % (swap ? swap : 1) == 0 ? swap : 0;
    b->n = 1;
    for (uint32_t d = 0; d < b->ndim; d++) {
        b->shape[d] = 1 + below(seed, b->ndim > 3 ? 3 : b->ndim > 2 ? 12 : 60);
        b->n *= b->shape[d];
    }
    /* any alignment: elements that do not fit a word are copied by bytes */
    *dst_bytes += below(seed, 2) * below(seed, 8);
    *src_bytes += below(seed, 2) * below(seed, 8);
    *dst_bytes += layout(b, b->dst, &first, seed);
    b->dst_at = first;
    *src_bytes += layout(b, b->src, &first, seed);
    b->src_at = first;
}

/* The same copy by the library. `pattern` NULL: no fill. */
static void box_by_library(const struct zr_memory_registry *r, const struct k_box *b,
                           uint8_t *dst, uint64_t dst_bytes, uint8_t *src,
                           uint64_t src_bytes, const void *pattern)
{
    zarr_box box = {.struct_size = sizeof box,
                    .ndim = (int32_t)b->ndim,
                    .item_bytes = b->item_bytes,
                    .swap_bytes = b->swap_bytes};

    box.dst.mem = (zarr_memory){.device_type = ZARR_DEVICE_CPU,
                                .handle = dst,
                                .offset = b->dst_at,
                                .bytes = dst_bytes};
    box.src.mem = (zarr_memory){.device_type = ZARR_DEVICE_CPU,
                                .handle = src,
                                .offset = b->src_at,
                                .bytes = src_bytes};
    for (uint32_t d = 0; d < b->ndim; d++) {
        box.shape[d] = b->shape[d];
        box.dst.stride[d] = b->dst[d];
        box.src.stride[d] = b->src[d];
    }
    assert_int_equal(pattern ? zr_box_fill(r, &box, pattern, NULL, NULL, NULL)
                             : zr_box_copy(r, &box, NULL, NULL, NULL),
                     ZARR_OK);
}

static void boxes_once(const struct target *t, const struct zr_memory_registry *r,
                       int fill, uint64_t *seed)
{
    static const uint32_t items[] = {1, 2, 3, 4, 8, 12, 16};
    struct k_box boxes[BOXES];
    const uint32_t item = items[below(seed, COUNT(items))];
    const uint64_t each = 1 + below(seed, 300);
    uint64_t dst_bytes = 0, src_bytes = 0;
    uint8_t pattern[16], *dst, *want, *src;

    for (size_t i = 0; i < BOXES; i++) {
        const uint64_t dst_from = dst_bytes, src_from = src_bytes;

        box_make(&boxes[i], item, &dst_bytes, &src_bytes, seed);
        boxes[i].dst_at += dst_from;
        boxes[i].src_at += src_from;
    }
    dst = block(dst_bytes);
    want = block(dst_bytes);
    src = block(src_bytes);
    fill_random(src, src_bytes, seed);
    fill_random(dst, dst_bytes, seed);
    fill_random(pattern, sizeof pattern, seed);
    memcpy(want, dst, dst_bytes);
    for (size_t i = 0; i < BOXES; i++)
        box_by_library(r, &boxes[i], want, dst_bytes, src, src_bytes,
                       fill ? pattern : NULL);
    for (size_t i = 0; i < BOXES; i++)
        kernels_box_ready(&boxes[i], fill);
    if (fill)
        LAUNCH(t, "k_fill_boxes", BOXES * each, BUFFER(dst, dst_bytes),
               BUFFER(pattern, sizeof pattern), BUFFER(boxes, sizeof boxes),
               NUMBER(BOXES), NUMBER(each));
    else
        LAUNCH(t, "k_copy_boxes", BOXES * each, BUFFER(dst, dst_bytes),
               BUFFER(src, src_bytes), BUFFER(boxes, sizeof boxes), NUMBER(BOXES),
               NUMBER(each));
    assert_memory_equal(dst, want, dst_bytes);
    free(dst);
    free(want);
    free(src);
}

static void boxes_like_the_library(void **state)
{
    struct zr_memory_registry r;
    uint64_t seed = 17;

    assert_int_equal(zr_memory_registry_init(&r, NULL, NULL), ZARR_OK);
    for (int turn = 0; turn < draws(TURNS); turn++) {
        boxes_once(*state, &r, 0, &seed);
        boxes_once(*state, &r, 1, &seed);
    }
    zr_memory_registry_deinit(&r);
}

/* ---- runs and places -------------------- */

static void runs_are_copied(void **state)
{
    uint64_t seed = 3;

    for (int turn = 0; turn < draws(TURNS); turn++) {
        struct k_run runs[20];
        const uint64_t each = 1 + below(&seed, 70);
        uint8_t dst[20 * 200] = {0}, want[sizeof dst] = {0}, src[3000];

        fill_random(src, sizeof src, &seed);
        for (size_t i = 0; i < COUNT(runs); i++) {
            runs[i] = (struct k_run){.src = below(&seed, sizeof src - 200),
                                     .dst = 200 * i + below(&seed, 3),
                                     .bytes = below(&seed, 198)};
            memcpy(want + runs[i].dst, src + runs[i].src, (size_t)runs[i].bytes);
        }
        LAUNCH(*state, "k_copy_runs", COUNT(runs) * each, BUFFER(dst, sizeof dst),
               BUFFER(src, sizeof src), BUFFER(runs, sizeof runs), NUMBER(COUNT(runs)),
               NUMBER(each));
        assert_memory_equal(dst, want, sizeof dst);
    }
}

static void places_are_gathered(void **state)
{
    static const uint32_t items[] = {1, 2, 4, 6, 8, 16};
    uint64_t seed = 5;

    for (size_t k = 0; k < COUNT(items); k++) {
        const uint32_t item = items[k], swap = item % 2 == 0 ? 2 : 0;
        uint64_t places[100];
        uint8_t dst[100 * 16], want[sizeof dst], src[900];

        memset(dst, 0, sizeof dst);
        memset(want, 0, sizeof want);
        fill_random(src, sizeof src, &seed);
        for (size_t i = 0; i < COUNT(places); i++) {
            places[i] = below(&seed, sizeof src - 16);
            for (uint32_t b = 0; b < item; b++)
                want[i * item + b] = src[places[i] + (swap ? b ^ 1 : b)];
        }
        LAUNCH(*state, "k_gather", COUNT(places), BUFFER(dst, sizeof dst),
               BUFFER(src, sizeof src), BUFFER(places, sizeof places),
               NUMBER(COUNT(places)), NUMBER_U32(item), NUMBER_U32(swap));
        assert_memory_equal(dst, want, sizeof dst);
    }
}

static void all_equal(void **state)
{
    uint64_t seed = 7;

    for (uint32_t item = 1; item <= 16; item++) {
        struct k_run runs[12];
        uint32_t differs[12] = {0};
        uint8_t pattern[16], src[12 * 16 * 40];

        fill_random(pattern, item, &seed);
        for (size_t i = 0; i < sizeof src; i++)
            src[i] = pattern[i % (size_t)(16 * 40) % item];
        for (size_t i = 0; i < COUNT(runs); i++) {
            const uint64_t n = below(&seed, 40), at = below(&seed, n * item);

            runs[i] = (struct k_run){.src = (size_t)(16 * 40) * i, .bytes = n * item};
            if (n && i % 2)
                src[runs[i].src + at] ^= 1;
        }
        LAUNCH(*state, "k_differ", COUNT(runs) * 7, BUFFER(src, sizeof src),
               BUFFER(pattern, sizeof pattern), BUFFER(runs, sizeof runs),
               BUFFER(differs, sizeof differs), NUMBER(COUNT(runs)), NUMBER(7),
               NUMBER_U32(item));
        for (size_t i = 0; i < COUNT(runs); i++)
            assert_int_equal(
                differs[i] == 0,
                zr_all_equal(src + runs[i].src, runs[i].bytes / item, pattern, item));
    }
}

/* ---- planes -------------------- */

/* Bit b of byte j of element e, of n elements, in planes of bits. */
static unsigned plane_bit(const uint8_t *planes, size_t n, size_t j, size_t b, size_t e)
{
    return planes[(j * 8 + b) * (n / 8) + e / 8] >> e % 8 & 1;
}

static void expect_bits(const uint8_t *planes, const uint8_t *elements, size_t n,
                        size_t item)
{
    for (size_t e = 0; e < n; e++)
        for (size_t j = 0; j < item; j++)
            for (size_t b = 0; b < 8; b++)
                assert_int_equal(plane_bit(planes, n, j, b, e),
                                 elements[e * item + j] >> b & 1);
}

static void planes_once(const struct target *t, uint32_t bits, uint64_t *seed)
{
    struct k_planes parts[10], back[10];
    const size_t room = 600;
    uint8_t in[10 * 600], out[sizeof in], again[sizeof in];

    fill_random(in, sizeof in, seed);
    memset(out, 0, sizeof out);
    memset(again, 0, sizeof again);
    for (size_t i = 0; i < COUNT(parts); i++) {
        parts[i] = (struct k_planes){.src = room * i,
                                     .dst = room * (COUNT(parts) - 1 - i),
                                     .bytes = below(seed, room + 1),
                                     .item_bytes = (uint32_t)below(seed, 18),
                                     .bits = bits};
        back[i] = parts[i];
        back[i].src = parts[i].dst;
        back[i].dst = parts[i].src;
    }
    LAUNCH(t, "k_shuffle", COUNT(parts) * 9, BUFFER(out, sizeof out),
           BUFFER(in, sizeof in), BUFFER(parts, sizeof parts), NUMBER(COUNT(parts)),
           NUMBER(9));
    LAUNCH(t, "k_unshuffle", COUNT(parts) * 9, BUFFER(again, sizeof again),
           BUFFER(out, sizeof out), BUFFER(back, sizeof back), NUMBER(COUNT(parts)),
           NUMBER(9));
    for (size_t i = 0; i < COUNT(parts); i++) {
        const uint8_t *from = in + parts[i].src, *to = out + parts[i].dst;
        const size_t bytes = (size_t)parts[i].bytes;
        const size_t item = parts[i].item_bytes ? parts[i].item_bytes : 1;
        const size_t n = bytes / item;
        uint8_t want[600];

        assert_memory_equal(again + parts[i].src, from, bytes);
        assert_memory_equal(to + n * item, from + n * item, bytes - n * item);
        if (bits && n % 8 == 0) {
            expect_bits(to, from, n, item);
        } else {
            zr_shuffle(want, from, n, bits ? 1 : item);
            assert_memory_equal(to, bits ? from : want, n * item);
        }
    }
}

static void planes_and_back(void **state)
{
    uint64_t seed = 11;

    for (int turn = 0; turn < 2 * draws(TURNS); turn++)
        planes_once(*state, turn % 2 ? 1 : 0, &seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_like_the_library), cmocka_unit_test(runs_are_copied),
        cmocka_unit_test(places_are_gathered),    cmocka_unit_test(all_equal),
        cmocka_unit_test(planes_and_back),
    };

    return run_on_targets("copy", tests, COUNT(tests));
}
