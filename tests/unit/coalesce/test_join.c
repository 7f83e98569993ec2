/*
 * unit/coalesce/test_join.c - merged reads against a naive model: random operations on
 * a few objects, answered in every way a server may answer, in pieces of random lengths.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coalesce/coalesce.h"

enum {
    N_OBJECTS = 3,
    OBJECT_BYTES = 3000, /* at most */
    MOST_OPS = 40,
    MEM_BYTES = 1200, /* of an operation at most */
    GUARD = 16
};

static struct zr_memory_registry memory;
static uint64_t seed;

static uint64_t next_random(void) /* xorshift64*: the same numbers in every run */
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return seed * UINT64_C(2685821657736338717);
}

static uint64_t below(uint64_t n)
{
    return next_random() % n;
}

/* ---- objects and operations ---- */

struct object {
    char key[8];
    uint64_t bytes;
    uint8_t value[OBJECT_BYTES];
    zarr_store_version version;
};
struct call {
    zarr_store_op op;
    const struct object *object;
    uint8_t mem[GUARD + MEM_BYTES + GUARD];
    int n_done;
    zarr_error err;
};
static struct object object[N_OBJECTS];
static struct call call[MOST_OPS];
static zarr_store_op *op[MOST_OPS];
static size_t n_ops;
static const zarr_cancel *const cancels[2] = {NULL, (const zarr_cancel *)&seed};

static void make_objects(void)
{
    for (size_t i = 0; i < N_OBJECTS; i++) {
        snprintf(object[i].key, sizeof object[i].key, "o%zu", i);
        object[i].bytes = below(8) == 0 ? 0 : below(OBJECT_BYTES) + 1;
        for (size_t k = 0; k < OBJECT_BYTES; k++)
            object[i].value[k] = (uint8_t)next_random();
        object[i].version = (zarr_store_version){{1, (unsigned char)i}};
    }
}

static void make_call(struct call *c)
{
    const struct object *o = &object[below(N_OBJECTS)];
    const uint64_t length = below(10) == 0 ? 0 : below(MEM_BYTES);
    const uint64_t room = below(6) == 0 ? below(length + 1) : length;

    memset(c, 0, sizeof *c);
    memset(c->mem, 0xee, sizeof c->mem);
    c->object = o;
    c->op = (zarr_store_op){.verb = ZARR_STORE_GET,
                            .key = o->key,
                            .offset = below(OBJECT_BYTES + 200),
                            .length = length,
                            .cancel = cancels[below(8) == 0],
                            .object_bytes = UINT64_MAX,
                            .status = ZARR_ERR_INTERNAL};
    c->op.mem = zr_mem_of_host(c->mem, GUARD + room);
    c->op.mem.offset = GUARD;
    c->op.mem.bytes = room;
    if (below(6) == 0)
        c->op.offset = ZARR_STORE_SUFFIX;
    else if (below(6) == 0)
        c->op.length = ZARR_STORE_TO_END;
    else if (below(20) == 0)
        c->op.offset = UINT64_MAX - 1 - below(3);
    if (below(3) == 0)
        c->op.flags |= ZARR_STORE_OP_WANT_VERSION;
    if (below(4) == 0) {
        c->op.flags |= ZARR_STORE_OP_IF_VERSION;
        c->op.version = o->version;
        if (below(4) == 0)
            c->op.version.bytes[1] ^= 0x80;
    }
}

static bool is_suffix(const zarr_store_op *o)
{
    return o->offset == ZARR_STORE_SUFFIX;
}

/* ---- the model ---- */

static void expect(const struct call *c, uint64_t *from, uint64_t *n)
{
    const uint64_t has = c->object->bytes;

    *from =
        is_suffix(&c->op) ? has - ZR_MIN(c->op.length, has) : ZR_MIN(c->op.offset, has);
    *n = ZR_MIN(ZR_MIN(c->op.length, c->op.mem.bytes), has - *from);
}

static void assert_guards(const struct call *c)
{
    for (size_t i = 0; i < GUARD; i++)
        assert_true(c->mem[i] == 0xee);
    for (size_t i = GUARD + c->op.mem.bytes; i < sizeof c->mem; i++)
        assert_true(c->mem[i] == 0xee);
}

/* knows: the answer told the length of the value. */
static void assert_done(const struct call *c, bool knows)
{
    uint64_t from, n;

    expect(c, &from, &n);
    assert_int_equal(c->n_done, 1);
    assert_guards(c);
    if (!knows && (is_suffix(&c->op) || n < c->op.length)) {
        assert_int_equal(c->op.status, ZARR_ERR_IO);
        return;
    }
    if (c->op.status != ZARR_OK)
        fail_msg("%s", c->err.message);
    assert_int_equal(c->op.done_bytes, n);
    assert_memory_equal(c->mem + GUARD, c->object->value + from, n);
    if (knows)
        assert_int_equal(c->op.object_bytes, c->object->bytes);
    if (c->op.flags & ZARR_STORE_OP_WANT_VERSION)
        assert_memory_equal(&c->op.version, &c->object->version,
                            sizeof c->object->version);
}

/* ---- the store ---- */

static struct call *find_call(const zarr_store_op *o)
{
    return (struct call *)((uintptr_t)o - offsetof(struct call, op));
}

static void on_done(void *arg, zarr_store_op *o, const zarr_error *err)
{
    struct call *c = find_call(o);

    assert_ptr_equal(arg, &n_ops);
    assert_true((o->status != ZARR_OK) == (err != NULL));
    c->n_done++;
    if (err)
        c->err = *err;
}

static const struct object *find_object(const char *key)
{
    return &object[key[1] - '0'];
}

/* Every operation is in one request, together with such that fit. */
static void assert_requests(const struct zr_joint_reads *m,
                            const struct zr_joint_rules *rules)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_requests; i++) {
        const struct zr_joint_read *r = &m->request[i];
        uint64_t end = r->offset, longest = 0, wasted = 0;

        for (size_t k = 0; k < r->n; k++, n++) {
            const zarr_store_op *o = r->piece[k].op;
            const uint64_t bytes = ZR_MIN(o->length, o->mem.bytes);

            assert_string_equal(o->key, r->key);
            assert_ptr_equal(o->cancel, r->cancel);
            assert_int_equal(is_suffix(o), r->offset == ZARR_STORE_SUFFIX);
            assert_int_equal(o->flags & ZARR_STORE_OP_IF_VERSION,
                             r->flags & ZARR_STORE_OP_IF_VERSION);
            if (r->flags & ZARR_STORE_OP_IF_VERSION)
                assert_memory_equal(&o->version, &r->version, sizeof r->version);
            if (o->flags & ZARR_STORE_OP_WANT_VERSION)
                assert_true(r->flags & ZARR_STORE_OP_WANT_VERSION);
            longest = ZR_MAX(longest, is_suffix(o) ? o->length : bytes);
            if (is_suffix(o) || (k > 0 && bytes == 0))
                continue;
            assert_true(o->offset >= r->offset);
            assert_true(o->offset <= end || o->offset - end <= rules->gap);
            wasted += o->offset > end ? o->offset - end : 0;
            end = ZR_MAX(end, zr_add_cap(o->offset, bytes));
        }
        assert_int_equal(r->bytes,
                         r->offset == ZARR_STORE_SUFFIX ? longest : end - r->offset);
        assert_true(r->bytes <= ZR_MAX(rules->bytes, longest));
        assert_true(wasted <= ZR_MAX(rules->waste, r->bytes - wasted));
    }
    assert_int_equal(n, n_ops);
}

enum manner {
    MANNER_RANGE,   /* 206, with the length of the value */
    MANNER_UNKNOWN, /* 206 without it */
    MANNER_WHOLE,   /* 200 */
    MANNER_CHUNKED, /* 200, and only the end tells the length */
    N_MANNERS
};

/* Sends [at, end) in pieces; stops when the request has all. */
static void send_bytes(struct zr_joint_read *r, const struct object *o, uint64_t at,
                       uint64_t end)
{
    while (at < end) {
        const uint64_t length = below(4) == 0 ? below(700) : below(40);
        const uint64_t n = ZR_MIN(length, end - at);
        uint8_t *piece = malloc((size_t)n + 1); /* the address sanitizer sees its end */

        memcpy(piece, o->value + at, (size_t)n);
        at += n;
        if (!zr_joint_read_take(r, piece, (size_t)n) && below(2) == 0)
            end = at;
        free(piece);
    }
}

/* Returns whether the answer told the length. */
static bool answer(struct zr_joint_read *r, enum manner manner)
{
    const struct object *o = find_object(r->key);
    struct zr_joint_answer a = {.object_bytes = UINT64_MAX, .version = &o->version};
    const bool suffix = r->offset == ZARR_STORE_SUFFIX, whole = manner >= MANNER_WHOLE;
    const bool outside = !suffix && r->offset >= o->bytes;
    uint64_t at = whole    ? 0
                  : suffix ? o->bytes - ZR_MIN(r->bytes, o->bytes)
                           : ZR_MIN(r->offset, o->bytes);
    const uint64_t end =
        whole || suffix ? o->bytes : ZR_MIN(zr_add_cap(r->offset, r->bytes), o->bytes);
    const bool late = manner == MANNER_CHUNKED, knows = manner != MANNER_UNKNOWN;
    zarr_error err = {0};

    if (!whole && (outside || (suffix && o->bytes == 0))) { /* 416 */
        a.object_bytes = o->bytes;
    } else if (late && suffix) { /* the store asks for the length first */
        a.status = zr_joint_read_begin(r, 0, UINT64_MAX, &err);
        assert_int_equal(a.status, ZARR_ERR_IO);
        assert_int_equal(zr_joint_read_begin(r, 0, o->bytes, &err), ZARR_OK);
        a.status = ZARR_OK;
        send_bytes(r, o, 0, end);
    } else {
        a.status =
            zr_joint_read_begin(r, at, late || !knows ? UINT64_MAX : o->bytes, &err);
        if (a.status == ZARR_OK && below(4) == 0) { /* the connection was reset */
            send_bytes(r, o, at, at + below(end - at + 1));
            a.status =
                zr_joint_read_begin(r, at, late || !knows ? UINT64_MAX : o->bytes, &err);
        }
        if (a.status == ZARR_OK)
            send_bytes(r, o, at, end);
        if (late)
            a.object_bytes = o->bytes;
    }
    a.err = a.status == ZARR_OK ? NULL : &err;
    zr_joint_read_end(r, &a, on_done, &n_ops);
    return knows || (!whole && outside) || (suffix && o->bytes == 0);
}

static void start(const struct zr_joint_rules *rules, struct zr_joint_reads **m)
{
    zarr_error err;

    make_objects();
    n_ops = 1 + below(MOST_OPS);
    for (size_t i = 0; i < n_ops; i++) {
        make_call(&call[i]);
        op[i] = &call[i].op;
        if (i > 0 && below(8) == 0) { /* the same range again */
            call[i].object = call[i - 1].object;
            call[i].op = call[i - 1].op;
            call[i].op.mem.handle = call[i].mem;
        }
    }
    assert_int_equal(zr_joint_reads_make(m, NULL, &memory, op, n_ops, rules, &err),
                     ZARR_OK);
}

static void test_model(void **state)
{
    (void)state;
    for (int round = 0; round < 5000; round++) {
        const struct zr_joint_rules rules = {.gap = below(3) * below(300),
                                             .waste = below(3) * below(200),
                                             .bytes = below(2 * OBJECT_BYTES)};
        bool knows[MOST_OPS];
        struct zr_joint_reads *m = NULL;
        size_t n_requests;

        seed = (uint64_t)round + 1;
        start(&rules, &m);
        assert_requests(m, &rules);
        n_requests = m->n_requests;
        for (size_t i = n_requests; i-- > 0;) { /* in another order */
            struct zr_joint_read *r = &m->request[i];
            struct call *c[MOST_OPS];
            const size_t n = r->n;
            bool told;

            for (size_t k = 0; k < n; k++)
                c[k] = find_call(r->piece[k].op);
            told = answer(r, (enum manner)below(N_MANNERS));
            for (size_t k = 0; k < n; k++)
                knows[c[k] - call] = told;
        }
        for (size_t i = 0; i < n_ops; i++)
            assert_done(&call[i], knows[i]);
    }
}

/* ---- single cases ---- */

static struct zr_joint_reads *merge_two(const zarr_store_op *a, const zarr_store_op *b)
{
    const struct zr_joint_rules rules = {.gap = 100, .waste = 60, .bytes = 1000};
    struct zr_joint_reads *m = NULL;
    zarr_error err;

    memset(call, 0, sizeof call);
    call[0].op = *a;
    call[1].op = *b;
    n_ops = 2;
    for (size_t i = 0; i < n_ops; i++) {
        op[i] = &call[i].op;
        call[i].op.verb = ZARR_STORE_GET;
        call[i].op.mem = zr_mem_of_host(call[i].mem, ZR_MIN(op[i]->length, MEM_BYTES));
        if (!op[i]->key)
            op[i]->key = "o0";
    }
    assert_int_equal(zr_joint_reads_make(&m, NULL, &memory, op, n_ops, &rules, &err),
                     ZARR_OK);
    return m;
}

static void drop(struct zr_joint_reads *m)
{
    zarr_error why = {.code = ZARR_ERR_DENIED, .os_code = 403};
    const struct zr_joint_answer no = {
        .status = ZARR_ERR_DENIED, .err = &why, .object_bytes = UINT64_MAX};

    for (size_t i = 0, n = m->n_requests; i < n; i++)
        zr_joint_read_end(&m->request[i], &no, on_done, &n_ops);
    for (size_t i = 0; i < n_ops; i++) {
        assert_int_equal(call[i].n_done, 1);
        assert_int_equal(call[i].op.status, ZARR_ERR_DENIED);
        assert_int_equal(call[i].op.os_code, 403);
    }
}

static void test_what_is_merged(void **state)
{
    static const struct {
        zarr_store_op a, b;
        size_t n;
    } rows[] = {
        {{.offset = 0, .length = 60}, {.offset = 160, .length = 60}, 1},
        {{.offset = 0, .length = 60}, {.offset = 161, .length = 60}, 2},
        {{.offset = 160, .length = 60}, {.offset = 0, .length = 60}, 1},
        {{.offset = 0, .length = 10}, {.offset = 70, .length = 10}, 1}, /* waste */
        {{.offset = 0, .length = 10}, {.offset = 71, .length = 10}, 2},
        {{.offset = 0, .length = 10}, {.offset = 71, .length = 51}, 1},
        {{.offset = 0, .length = 950}, {.offset = 950, .length = 50}, 1},
        {{.offset = 0, .length = 950}, {.offset = 950, .length = 51}, 2},
        {{.offset = 0, .length = 1200}, {.offset = 1100, .length = 100}, 1}, /* inside */
        {{.offset = 0, .length = 1200}, {.offset = 1100, .length = 101}, 2},
        {{.offset = 0, .length = 10}, {.offset = 0, .length = 10}, 1},
        {{.offset = 0, .length = 10}, {.offset = 900}, 1}, /* needs no bytes */
        {{.offset = 0, .length = 10}, {.offset = 0, .length = 10, .key = "o1"}, 2},
        {{.offset = ZARR_STORE_SUFFIX, .length = 10},
         {.offset = ZARR_STORE_SUFFIX, .length = 1100},
         1},
        {{.offset = ZARR_STORE_SUFFIX, .length = 10}, {.offset = 0, .length = 10}, 2},
        {{.length = 10, .flags = ZARR_STORE_OP_IF_VERSION}, {.length = 10}, 2},
        {{.length = 10, .flags = ZARR_STORE_OP_IF_VERSION, .version = {{1, 7}}},
         {.length = 10, .flags = ZARR_STORE_OP_IF_VERSION, .version = {{1, 7}}},
         1},
        {{.length = 10, .flags = ZARR_STORE_OP_IF_VERSION, .version = {{1, 7}}},
         {.length = 10, .flags = ZARR_STORE_OP_IF_VERSION, .version = {{1, 8}}},
         2},
        {{.length = 10}, {.length = 10, .cancel = (const zarr_cancel *)&seed}, 2},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        struct zr_joint_reads *m = merge_two(&rows[i].a, &rows[i].b);

        if (m->n_requests != rows[i].n)
            fail_msg("row %zu: %zu requests", i, m->n_requests);
        drop(m);
    }
}

/* Results of an answer that ended early: each operation for itself. */
static void test_short_answer(void **state)
{
    const zarr_store_op a = {.offset = 0, .length = 10}, b = {.offset = 20, .length = 10};
    const struct zr_joint_answer ok = {.object_bytes = UINT64_MAX};
    struct zr_joint_reads *m = merge_two(&a, &b);
    zarr_error err;

    (void)state;
    assert_int_equal(zr_joint_read_begin(m->request, 0, 100, &err), ZARR_OK);
    assert_true(zr_joint_read_take(m->request, object[0].value, 25));
    zr_joint_read_end(m->request, &ok, on_done, &n_ops);
    assert_int_equal(call[0].op.status, ZARR_OK);
    assert_int_equal(call[1].op.status, ZARR_ERR_IO);
    assert_string_equal(call[1].err.message, "o0: the answer ended at byte 25 of 30");
    assert_int_equal(call[1].op.done_bytes, 0);
}

/* Answers that contradict the request or themselves. */
static void test_wrong_answers(void **state)
{
    const zarr_store_op a = {.offset = 10, .length = 10};
    const struct zr_joint_answer ok = {.object_bytes = UINT64_MAX};
    struct zr_joint_reads *m = merge_two(&a, &a);
    zarr_error err;

    (void)state;
    assert_int_equal(zr_joint_read_begin(m->request, 11, 100, &err), ZARR_ERR_IO);
    assert_int_equal(zr_joint_read_begin(m->request, UINT64_MAX, 100, &err), ZARR_ERR_IO);
    drop(m);
    m = merge_two(&a, &a); /* more bytes than the value has */
    assert_int_equal(zr_joint_read_begin(m->request, 10, 15, &err), ZARR_OK);
    assert_false(zr_joint_read_take(m->request, object[0].value, 5));
    assert_false(zr_joint_read_take(m->request, object[0].value, 5));
    zr_joint_read_end(m->request, &ok, on_done, &n_ops);
    assert_int_equal(call[0].op.status, ZARR_ERR_IO);
    assert_true(call[0].mem[5] == 0);
}

static void test_refused_memory(void **state)
{
    const struct zr_joint_rules rules = {.gap = 0, .bytes = 0};
    zarr_store_op one = {
        .verb = ZARR_STORE_GET,
        .key = "o0",
        .length = 4,
        .mem = {.device_type = ZARR_DEVICE_CUDA, .handle = call, .bytes = 4}};
    zarr_store_op *ops[] = {&one};
    struct zr_joint_reads *m = NULL;
    zarr_error err;

    (void)state;
    assert_int_equal(zr_joint_reads_make(&m, NULL, &memory, ops, 1, &rules, &err),
                     ZARR_ERR_UNSUPPORTED);
    assert_null(m);
}

static int setup(void **state)
{
    (void)state;
    return zr_memory_registry_init(&memory, NULL, NULL) != ZARR_OK;
}

static int teardown(void **state)
{
    (void)state;
    zr_memory_registry_deinit(&memory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),          cmocka_unit_test(test_what_is_merged),
        cmocka_unit_test(test_short_answer),   cmocka_unit_test(test_wrong_answers),
        cmocka_unit_test(test_refused_memory),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
