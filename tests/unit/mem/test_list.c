/*
 * tests/unit/mem/test_list.c - lists of copies, fills and comparisons between host and
 * fake devices, on streams that do their work only at the wait and without streams. Each
 * test runs with a backend that has every entry, and with backends that lack or decline
 * one. Also the k-th call failing, and what is counted.
 */
#include "sanitizers.h"
#include "unit/mem/mem_test.h"

#include "fakedev/fakedev.h"

enum {
    BYTES = 1 << 15,
    PARTS = 64, /* a memory is cut in so many parts, each used once in a list */
    PART = BYTES / PARTS,
    OTHER_DEVICE = ZARR_DEVICE_CUDA,
    N_MEMS = 4
};

struct bench {
    struct zr_memory_registry r;
    void *dev, *other;
    zarr_memory mem[N_MEMS]; /* host, device, device, other device */
    uint8_t *is[N_MEMS];     /* what each must hold */
    struct zr_stream stream;
};

/* Entries that a backend lacks, as ZARR_FAKEDEV_*. */
static const uint32_t lacks[] = {0,
                                 ZARR_FAKEDEV_LIST,
                                 ZARR_FAKEDEV_BOXES,
                                 ZARR_FAKEDEV_BOXES | ZARR_FAKEDEV_BOX,
                                 ZARR_FAKEDEV_FILLS,
                                 ZARR_FAKEDEV_FILLS | ZARR_FAKEDEV_FILL,
                                 ZARR_FAKEDEV_EQUAL,
                                 ZARR_FAKEDEV_ORDER,
                                 ZARR_FAKEDEV_STREAM,
                                 ZARR_FAKEDEV_ALL};

static zarr_memory_vtable table_without(uint32_t entries)
{
    zarr_memory_vtable v = *zarr_fakedev_vtable_late();

    v.copy_list = entries & ZARR_FAKEDEV_LIST ? NULL : v.copy_list;
    v.copy_box = entries & ZARR_FAKEDEV_BOX ? NULL : v.copy_box;
    v.copy_boxes = entries & ZARR_FAKEDEV_BOXES ? NULL : v.copy_boxes;
    v.fill_box = entries & ZARR_FAKEDEV_FILL ? NULL : v.fill_box;
    v.fill_boxes = entries & ZARR_FAKEDEV_FILLS ? NULL : v.fill_boxes;
    v.equal_list = entries & ZARR_FAKEDEV_EQUAL ? NULL : v.equal_list;
    v.order = entries & ZARR_FAKEDEV_ORDER ? NULL : v.order;
    v.stream_open = entries & ZARR_FAKEDEV_STREAM ? NULL : v.stream_open;
    return v;
}

static void mem_make(struct bench *b, int i, int32_t type)
{
    const struct zr_backend *be;

    assert_int_equal(zr_backend_find(&b->r, type, &be, NULL), ZARR_OK);
    assert_int_equal(be->vt.alloc(be->self, 0, BYTES, &b->mem[i], NULL), ZARR_OK);
    b->is[i] = malloc(BYTES);
}

static void bench_open(struct bench *b, uint32_t without, bool stream)
{
    const zarr_memory_vtable v = table_without(without);
    zarr_memory_vtable other = *zarr_fakedev_vtable_late();

    memset(b, 0, sizeof *b);
    other.device_type = OTHER_DEVICE;
    other.name = "other";
    b->dev = zarr_fakedev_create();
    b->other = zarr_fakedev_create();
    zarr_fakedev_set_type(b->other, OTHER_DEVICE);
    assert_int_equal(zr_memory_registry_init(&b->r, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_memory_register(&b->r, &v, b->dev, "test", NULL), ZARR_OK);
    assert_int_equal(zr_memory_register(&b->r, &other, b->other, "test", NULL), ZARR_OK);
    mem_make(b, 0, ZARR_DEVICE_CPU);
    mem_make(b, 1, ZARR_DEVICE_EXT);
    mem_make(b, 2, ZARR_DEVICE_EXT);
    mem_make(b, 3, OTHER_DEVICE);
    if (stream)
        assert_int_equal(zr_stream_open(&b->stream, &b->r, ZARR_DEVICE_EXT, 0, NULL),
                         ZARR_OK);
    assert_int_equal(b->stream.handle != NULL,
                     stream && (without & ZARR_FAKEDEV_STREAM) == 0);
}

static void bench_close(struct bench *b)
{
    zarr_fakedev_counters c;

    zr_stream_close(&b->stream);
    zarr_fakedev_count(b->dev, &c);
    assert_int_equal(c.faults, 0);
    zarr_fakedev_count(b->other, &c);
    assert_int_equal(c.faults, 0);
    for (int i = 0; i < N_MEMS; i++) {
        const struct zr_backend *be;

        assert_int_equal(zr_backend_find(&b->r, b->mem[i].device_type, &be, NULL),
                         ZARR_OK);
        be->vt.free(be->self, &b->mem[i]);
        free(b->is[i]);
    }
    zr_memory_registry_deinit(&b->r);
}

static void mem_write(struct bench *b, int i)
{
    if (i == 0)
        memcpy(b->mem[i].handle, b->is[i], BYTES);
    else
        assert_int_equal(zarr_fakedev_poke(b->mem[i].handle, 0, b->is[i], BYTES), 0);
}

static bool mem_holds(struct bench *b, int i)
{
    static uint8_t now[BYTES];

    if (i == 0)
        return memcmp(b->mem[i].handle, b->is[i], BYTES) == 0;
    assert_int_equal(zarr_fakedev_peek(b->mem[i].handle, 0, now, BYTES), 0);
    return memcmp(now, b->is[i], BYTES) == 0;
}

static void mems_fill(struct bench *b, struct rnd *r)
{
    for (int i = 0; i < N_MEMS; i++) {
        rnd_bytes(r, b->is[i], BYTES);
        mem_write(b, i);
    }
}

/* A list in which parts below `half` are sources and the others are destinations, so that
 * runs neither overlap nor depend on each other. */
struct list {
    uint64_t n;
    int to[PARTS], from[PARTS];
    uint64_t to_at[PARTS], from_at[PARTS];
    zarr_memory dst[PARTS], src[PARTS];
    zarr_box box[PARTS];
};

static void list_random(struct bench *b, struct rnd *r, struct list *l)
{
    const bool alike = rnd_below(r, 2) == 0; /* long segments */
    const int to = (int)rnd_below(r, N_MEMS), from = (int)rnd_below(r, N_MEMS);

    memset(l, 0, sizeof *l);
    l->n = rnd_below(r, PARTS / 2);
    for (uint64_t i = 0; i < l->n; i++) {
        uint64_t bytes = rnd_below(r, 8) ? rnd_below(r, PART / 8 + 1) * 8 : 0;
        zarr_box *x = &l->box[i];

        l->to[i] = alike ? to : (int)rnd_below(r, N_MEMS);
        l->from[i] = alike ? from : (int)rnd_below(r, N_MEMS);
        l->from_at[i] = i * PART;
        l->to_at[i] = (PARTS / 2 + i) * PART;
        assert_true(zr_mem_slice(&b->mem[l->to[i]], l->to_at[i], bytes, &l->dst[i]));
        assert_true(zr_mem_slice(&b->mem[l->from[i]], l->from_at[i], bytes, &l->src[i]));
        *x = (zarr_box){.struct_size = sizeof *x, .ndim = 2, .item_bytes = 4};
        x->swap_bytes = rnd_below(r, 2) ? 4 : 0;
        x->shape[0] = bytes / 8;
        x->shape[1] = 2;
        zr_box_side_init(&x->dst, &l->dst[i], 0);
        zr_box_side_init(&x->src, &l->src[i], 0);
        x->dst.stride[0] = x->src.stride[0] = 8;
        x->dst.stride[1] = rnd_below(r, 9) ? 4 : 0; /* 0: repeats an element */
        x->src.stride[1] = 4;
    }
}

static void finish(struct bench *b, const char *what, uint32_t without)
{
    assert_int_equal(zr_stream_sync(&b->stream, NULL), ZARR_OK);
    for (int i = 0; i < N_MEMS; i++)
        if (!mem_holds(b, i)) {
            print_error("%s: memory %d, backend without %x\n", what, i, without);
            fail();
        }
}

static void each_backend(void (*test)(struct bench *b, struct rnd *r, uint32_t without))
{
    struct rnd r = {rnd_seed(20261123)};

    for (size_t k = 0; k < 4 * ZR_COUNT(lacks); k++) {
        const uint32_t without = lacks[k / 4];
        struct bench b;

        bench_open(&b, k % 2 ? without : 0, (k & 2) != 0);
        if (k % 2 == 0) /* has the entries, and declines them */
            zarr_fakedev_decline(b.dev,
                                 without & (ZARR_FAKEDEV_LIST | ZARR_FAKEDEV_BOX |
                                            ZARR_FAKEDEV_BOXES | ZARR_FAKEDEV_FILL |
                                            ZARR_FAKEDEV_FILLS | ZARR_FAKEDEV_EQUAL));
        test(&b, &r, without);
        bench_close(&b);
    }
}

static void copy_runs(struct bench *b, struct rnd *r, uint32_t without)
{
    static struct list l;

    for (int turn = 0; turn < 30 / ZR_CASE_STEP; turn++) {
        struct zr_copy_counters c = {0};
        uint64_t bytes = 0;

        mems_fill(b, r);
        list_random(b, r, &l);
        for (uint64_t i = 0; i < l.n; i++) {
            memcpy(b->is[l.to[i]] + l.to_at[i], b->is[l.from[i]] + l.from_at[i],
                   l.dst[i].bytes);
            bytes += l.dst[i].bytes;
        }
        assert_int_equal(zr_mem_copy_list(&b->r, l.dst, l.src, l.n, &b->stream, &c, NULL),
                         ZARR_OK);
        finish(b, "runs", without);
        assert_true(c.bytes_host + c.bytes_up + c.bytes_down + c.bytes_device >= bytes);
    }
}

static void copy_boxes(struct bench *b, struct rnd *r, uint32_t without)
{
    static struct list l;

    for (int turn = 0; turn < 30 / ZR_CASE_STEP; turn++) {
        mems_fill(b, r);
        list_random(b, r, &l);
        for (uint64_t i = 0; i < l.n; i++)
            reference_copy(&l.box[i], b->is[l.to[i]], b->is[l.from[i]], NULL);
        assert_int_equal(zr_box_copy_list(&b->r, l.box, l.n, &b->stream, NULL, NULL),
                         ZARR_OK);
        finish(b, "boxes", without);
    }
}

static void fill_boxes(struct bench *b, struct rnd *r, uint32_t without)
{
    static struct list l;

    for (int turn = 0; turn < 30 / ZR_CASE_STEP; turn++) {
        uint8_t pattern[4] = {1, 2, 3, (uint8_t)turn};

        mems_fill(b, r);
        list_random(b, r, &l);
        for (uint64_t i = 0; i < l.n; i++) {
            reference_copy(&l.box[i], b->is[l.to[i]], NULL, pattern);
            memset(&l.box[i].src, 0xff, sizeof l.box[i].src); /* ignored */
        }
        assert_int_equal(
            zr_box_fill_list(&b->r, l.box, l.n, pattern, &b->stream, NULL, NULL),
            ZARR_OK);
        memset(pattern, 0, sizeof pattern); /* only read during the call */
        finish(b, "fills", without);
    }
}

/* Compares runs with a pattern, on the stream of the bench. */
static zarr_status compare(struct bench *b, const zarr_memory *src, uint64_t n,
                           const void *pattern, uint32_t item, uint8_t *equal)
{
    const struct zr_equal_list l = {src, n, pattern, item, equal};

    return zr_mem_equal_list(&b->r, &l, &b->stream, NULL, NULL);
}

static void compare_runs(struct bench *b, struct rnd *r, uint32_t without)
{
    static struct list l;
    static const uint32_t items[] = {1, 2, 4, 8};

    for (int turn = 0; turn < 30 / ZR_CASE_STEP; turn++) {
        const uint32_t item = items[rnd_below(r, ZR_COUNT(items))];
        uint8_t pattern[8], equal[PARTS], want[PARTS];

        mems_fill(b, r);
        rnd_bytes(r, pattern, sizeof pattern);
        list_random(b, r, &l);
        memset(equal, 7, sizeof equal);
        for (uint64_t i = 0; i < l.n; i++) {
            uint8_t *at = b->is[l.from[i]] + l.from_at[i];
            const uint64_t bytes = l.src[i].bytes;

            for (uint64_t k = 0; k < bytes; k++)
                at[k] = pattern[k % item];
            want[i] = bytes == 0 || rnd_below(r, 2);
            if (!want[i])
                at[rnd_below(r, bytes)] ^= 1;
        }
        for (int i = 0; i < N_MEMS; i++)
            mem_write(b, i);
        assert_int_equal(compare(b, l.src, l.n, pattern, item, equal), ZARR_OK);
        memset(pattern, 0, sizeof pattern);
        finish(b, "comparisons", without);
        assert_memory_equal(equal, want, l.n);
    }
}

static void runs_with_each_backend(void **state)
{
    ZR_UNUSED(state);
    each_backend(copy_runs);
}

static void boxes_with_each_backend(void **state)
{
    ZR_UNUSED(state);
    each_backend(copy_boxes);
}

static void fills_with_each_backend(void **state)
{
    ZR_UNUSED(state);
    each_backend(fill_boxes);
}

static void comparisons_with_each_backend(void **state)
{
    ZR_UNUSED(state);
    each_backend(compare_runs);
}

/* ---- streams ---------------------------------------------------------------------- */

static void parts(struct bench *b, int to, int from, uint64_t n, zarr_memory *dst,
                  zarr_memory *src)
{
    for (uint64_t i = 0; i < n; i++) {
        assert_true(zr_mem_slice(&b->mem[to], (PARTS / 2 + i) * PART, PART, &dst[i]));
        assert_true(zr_mem_slice(&b->mem[from], i * PART, PART, &src[i]));
    }
}

static void nothing_is_done_before_the_wait(void **state)
{
    zarr_memory dst[8], src[8];
    zarr_fakedev_late_counters c;
    struct rnd r = {3};
    struct bench b;

    ZR_UNUSED(state);
    bench_open(&b, 0, true);
    mems_fill(&b, &r);
    parts(&b, 1, 0, 8, dst, src);
    assert_int_equal(zr_mem_copy_list(&b.r, dst, src, 8, &b.stream, NULL, NULL), ZARR_OK);
    assert_true(b.stream.queued);
    assert_true(mem_holds(&b, 1)); /* still the old bytes */
    parts(&b, 0, 1, 8, dst, src);  /* later work on the same stream */
    assert_int_equal(zr_mem_copy_list(&b.r, dst, src, 8, &b.stream, NULL, NULL), ZARR_OK);
    assert_int_equal(*((uint8_t *)dst[0].handle + dst[0].offset), 0xEE);
    memcpy(b.is[1] + BYTES / 2, b.is[0], 8 * PART);
    memcpy(b.is[0] + BYTES / 2, b.is[1], 8 * PART);
    finish(&b, "wait", 0);
    assert_false(b.stream.queued);
    assert_int_equal(zr_stream_sync(&b.stream, NULL), ZARR_OK); /* no call */
    zarr_fakedev_late_count(b.dev, &c);
    assert_int_equal(c.syncs, 1);
    assert_int_equal(c.lists, 2);
    assert_int_equal(c.list_items, 16);
    bench_close(&b);
}

/* Work that the stream's backend cannot do comes after what is queued. */
static void other_work_waits(void **state)
{
    zarr_memory dst[2], src[2];
    struct rnd r = {4};
    struct bench b;

    ZR_UNUSED(state);
    bench_open(&b, 0, true);
    mems_fill(&b, &r);
    assert_true(zr_mem_slice(&b.mem[1], 0, PART, &dst[0]));
    assert_true(zr_mem_slice(&b.mem[0], 0, PART, &src[0]));
    assert_int_equal(zr_mem_copy_list(&b.r, dst, src, 1, &b.stream, NULL, NULL), ZARR_OK);
    assert_true(zr_mem_slice(&b.mem[3], PART, PART, &dst[0]));
    assert_true(zr_mem_slice(&b.mem[1], 0, PART, &src[0]));
    assert_true(zr_mem_slice(&b.mem[0], PART, PART, &dst[1]));
    assert_true(zr_mem_slice(&b.mem[0], 4 * PART, PART, &src[1]));
    assert_int_equal(zr_mem_copy_list(&b.r, dst, src, 2, &b.stream, NULL, NULL), ZARR_OK);
    assert_false(b.stream.queued);
    memcpy(b.is[1], b.is[0], PART);
    memcpy(b.is[3] + PART, b.is[1], PART);
    memcpy(b.is[0] + PART, b.is[0] + 4 * PART, PART);
    finish(&b, "other work", 0);
    bench_close(&b);
}

/* The application's stream fills memory that ours reads. */
static void ours_runs_after_a_foreign_stream(void **state)
{
    ZR_UNUSED(state);
    for (int k = 0; k < 4; k++) {
        const zarr_memory_vtable *v = zarr_fakedev_vtable_late();
        struct rnd r = {5};
        struct bench b;
        zarr_memory dst, src;
        void *foreign = NULL;

        bench_open(&b,
                   k == 1   ? ZARR_FAKEDEV_ORDER
                   : k == 2 ? ZARR_FAKEDEV_STREAM
                            : 0,
                   k != 3);
        if (k == 3) /* no stream at all: nothing to order */
            assert_int_equal(zr_stream_order(&b.stream, b.dev, NULL), ZARR_OK);
        mems_fill(&b, &r);
        assert_int_equal(v->stream_open(b.dev, 0, &foreign, NULL), ZARR_OK);
        assert_int_equal(v->copy(b.dev, &b.mem[1], &b.mem[2], PART, foreign, NULL),
                         ZARR_OK);
        assert_int_equal(zr_stream_order(&b.stream, NULL, NULL), ZARR_OK);
        assert_int_equal(zr_stream_order(&b.stream, foreign, NULL), ZARR_OK);
        assert_true(zr_mem_slice(&b.mem[0], 0, PART, &dst));
        assert_true(zr_mem_slice(&b.mem[1], 0, PART, &src));
        memcpy(b.is[1], b.is[2], k == 3 ? 0 : PART);
        memcpy(b.is[0], b.is[1], PART);
        assert_int_equal(zr_mem_copy_list(&b.r, &dst, &src, 1, &b.stream, NULL, NULL),
                         ZARR_OK);
        finish(&b, "order", 0);
        assert_int_equal(v->sync(b.dev, foreign, NULL), ZARR_OK);
        v->stream_close(b.dev, foreign);
        bench_close(&b);
    }
}

/* ---- counters, checks, failures --------------------------------------------------- */

static void calls_and_copies_are_counted(void **state)
{
    zarr_memory dst[8], src[8];

    ZR_UNUSED(state);
    for (int k = 0; k < 2; k++) {
        struct zr_copy_counters c = {0};
        struct rnd r = {6};
        uint8_t equal[8];
        struct bench b;

        bench_open(&b, k ? ZARR_FAKEDEV_ALL : 0, false);
        mems_fill(&b, &r);
        parts(&b, 1, 0, 8, dst, src);
        assert_int_equal(zr_mem_copy_list(&b.r, dst, src, 8, NULL, &c, NULL), ZARR_OK);
        assert_int_equal(c.copies_up, 8);
        assert_int_equal(c.bytes_up, 8 * PART);
        assert_int_equal(c.calls, k ? 8 : 1);
        parts(&b, 1, 2, 8, dst, src);
        assert_int_equal(zr_mem_copy_list(&b.r, dst, src, 8, NULL, &c, NULL), ZARR_OK);
        assert_int_equal(c.copies_device, 8);
        assert_int_equal(c.calls, k ? 16 : 2);
        assert_int_equal(zr_mem_equal_list(&b.r,
                                           &(struct zr_equal_list){dst, 8, "x", 1, equal},
                                           NULL, &c, NULL),
                         ZARR_OK);
        assert_int_equal(c.copies_down, k ? 8 : 0);
        assert_int_equal(c.calls, k ? 24 : 3);
        assert_int_equal(c.staged + c.copies_host, 0);
        bench_close(&b);
    }
}

static void wrong_lists_move_nothing(void **state)
{
    zarr_memory dst[8], src[8];
    zarr_box box[2] = {{.struct_size = sizeof box[0], .ndim = 1, .item_bytes = 1},
                       {.struct_size = sizeof box[0], .ndim = 1, .item_bytes = 1}};
    uint8_t equal[8];
    struct rnd r = {7};
    zarr_error err = {0};
    struct bench b;

    ZR_UNUSED(state);
    bench_open(&b, 0, true);
    mems_fill(&b, &r);
    parts(&b, 1, 0, 8, dst, src);
    src[7].bytes--;
    assert_int_equal(zr_mem_copy_list(&b.r, dst, src, 8, &b.stream, NULL, &err),
                     ZARR_ERR_INVALID);
    src[7] = src[6];
    src[7].offset = UINT64_MAX;
    assert_int_equal(zr_mem_copy_list(&b.r, dst, src, 8, &b.stream, NULL, &err),
                     ZARR_ERR_INVALID);
    src[7] = src[6];
    src[7].device_type = ZARR_DEVICE_OPENCL;
    assert_int_equal(zr_mem_copy_list(&b.r, dst, src, 8, &b.stream, NULL, &err),
                     ZARR_ERR_UNSUPPORTED);
    for (int i = 0; i < 2; i++) {
        box[i].shape[0] = PART;
        box[i].dst.stride[0] = box[i].src.stride[0] = 1;
        zr_box_side_init(&box[i].dst, &dst[i], 0);
        zr_box_side_init(&box[i].src, &src[i], 0);
    }
    box[1].dst.mem.bytes = PART;
    assert_int_equal(zr_box_copy_list(&b.r, box, 2, &b.stream, NULL, &err),
                     ZARR_ERR_INTERNAL);
    assert_int_equal(zr_box_fill_list(&b.r, box, 2, "x", &b.stream, NULL, &err),
                     ZARR_ERR_INTERNAL);
    box[1] = box[0];
    box[1].item_bytes = 2;
    box[1].shape[0] = 1;
    assert_int_equal(zr_box_fill_list(&b.r, box, 2, "xy", &b.stream, NULL, &err),
                     ZARR_ERR_INTERNAL);
    assert_int_equal(compare(&b, dst, 8, "xyz", 3, equal), ZARR_ERR_INTERNAL);
    assert_int_equal(compare(&b, dst, 8, "", 0, equal), ZARR_ERR_INTERNAL);
    assert_false(b.stream.queued);
    finish(&b, "wrong lists", 0);
    bench_close(&b);
}

/* Everything once; the first failure ends it. */
static zarr_status do_all(struct bench *b, zarr_error *err)
{
    struct zr_stream s = {0};
    zarr_status st = ZARR_OK;
    zarr_memory dst[4], src[4];
    zarr_box box[4];
    uint8_t equal[4];

    parts(b, 1, 0, 4, dst, src);
    for (int i = 0; i < 4; i++) {
        box[i] = (zarr_box){.struct_size = sizeof box[i],
                            .ndim = 1,
                            .item_bytes = 2,
                            .swap_bytes = 2,
                            .shape = {PART / 2}};
        zr_box_side_init(&box[i].dst, &dst[i], 0);
        zr_box_side_init(&box[i].src, &src[i], 0);
        box[i].dst.stride[0] = box[i].src.stride[0] = 2;
    }
    ZR_TRY(zr_stream_open(&s, &b->r, ZARR_DEVICE_EXT, 0, err));
    ZR_TRY(zr_mem_copy_list(&b->r, dst, src, 4, &s, NULL, err));
    ZR_TRY(zr_box_copy_list(&b->r, box, 4, &s, NULL, err));
    ZR_TRY(zr_box_fill_list(&b->r, box, 4, "ab", &s, NULL, err));
    ZR_TRY(zr_mem_equal_list(&b->r, &(struct zr_equal_list){dst, 4, "ab", 2, equal}, &s,
                             NULL, err));
    ZR_TRY(zr_stream_sync(&s, err));
    for (int i = 0; i < 4; i++)
        assert_int_equal(equal[i], 1);
out:
    zr_stream_close(&s);
    return st;
}

static void each_call_may_fail(void **state)
{
    ZR_UNUSED(state);
    for (size_t n = 0; n < ZR_COUNT(lacks); n++) {
        struct rnd r = {8};
        zarr_status st = ZARR_ERR_DEVICE;
        struct bench b;
        uint64_t k = 0;

        bench_open(&b, lacks[n], false);
        mems_fill(&b, &r);
        while (st != ZARR_OK) {
            zarr_error err = {0};

            zarr_fakedev_fail(b.dev, ZARR_FAKEDEV_ALL, ++k, ZARR_ERR_DEVICE);
            st = do_all(&b, &err);
            if (st == ZARR_OK)
                break;
            assert_int_equal(st, ZARR_ERR_DEVICE);
            assert_string_equal(err.message, "fake device: injected failure");
        }
        assert_true(k >= 5); /* four lists at least */
        zarr_fakedev_fail(b.dev, 0, 0, ZARR_OK);
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_with_each_backend),
        cmocka_unit_test(boxes_with_each_backend),
        cmocka_unit_test(fills_with_each_backend),
        cmocka_unit_test(comparisons_with_each_backend),
        cmocka_unit_test(nothing_is_done_before_the_wait),
        cmocka_unit_test(other_work_waits),
        cmocka_unit_test(ours_runs_after_a_foreign_stream),
        cmocka_unit_test(calls_and_copies_are_counted),
        cmocka_unit_test(wrong_lists_move_nothing),
        cmocka_unit_test(each_call_may_fail),
    };

    return cmocka_run_group_tests_name("mem_list", tests, NULL, NULL);
}
