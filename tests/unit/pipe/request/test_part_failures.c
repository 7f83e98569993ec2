/*
 * unit/pipe/request/test_part_failures.c - which failure a part of a request keeps, and
 * what the caller is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipe/request/request.h"

#include <string.h>

enum {
    N = 3
};

struct scene {
    struct zarr_request rq;
    struct zr_part part[N];
    zarr_status status[N];
    zarr_error error[N];
};

static void scene_open(struct scene *s)
{
    const struct zr_io io = {.prefix = "", .parts = s->part, .n_parts = N};

    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i < N; i++) {
        s->part[i].number = i;
        s->part[i].status_to = &s->status[i];
        s->part[i].error_to = &s->error[i];
    }
    zr_request_init(&s->rq, &io, NULL);
    zr_parts_begin(&s->rq);
}

static void fail_part(struct scene *s, uint32_t i, zarr_status st, uint64_t ordinal)
{
    zarr_error err = ZARR_ERROR_INIT;

    zr_part_fail(&s->rq, i, zr_fail(&err, st, "chunk %d", (int)ordinal), &err, ordinal);
}

/* Threads report in any order; of a part, the failure of its first chunk counts. */
static void test_first_chunk(void **state)
{
    struct scene s;
    zarr_error err = ZARR_ERROR_INIT;

    (void)state;
    scene_open(&s);
    assert_int_equal(zr_parts_status(&s.rq, &err), ZARR_OK);
    fail_part(&s, 1, ZARR_ERR_IO, 7);
    fail_part(&s, 1, ZARR_ERR_CORRUPT, 2);
    fail_part(&s, 1, ZARR_ERR_LIMIT, 5);
    fail_part(&s, 2, ZARR_ERR_LIMIT, 0);
    assert_int_equal(zr_parts_status(&s.rq, &err), ZARR_ERR_CORRUPT);
    assert_int_equal(err.item, 1);
    zr_parts_tell(&s.rq);
    assert_int_equal(s.status[0], ZARR_OK);
    assert_int_equal(s.status[1], ZARR_ERR_CORRUPT);
    assert_string_equal(s.error[1].message, "chunk 2");
    assert_string_equal(s.error[2].message, "chunk 0");
    /* parts that were moved together keep the caller's numbers */
    s.part[1].number = 2;
    s.part[2].number = 1;
    assert_int_equal(zr_parts_status(&s.rq, &err), ZARR_ERR_LIMIT);
    assert_int_equal(err.item, 1);
    zr_mutex_deinit(&s.rq.locked.mutex);
}

/* A request that fails as a whole fails the parts that have no failure of their own; a
 * new try forgets them all. */
static void test_whole_request(void **state)
{
    struct scene s;
    zarr_error err = ZARR_ERROR_INIT;

    (void)state;
    scene_open(&s);
    fail_part(&s, 0, ZARR_ERR_CORRUPT, 3);
    zr_parts_fail_all(&s.rq, zr_fail(&err, ZARR_ERR_CANCELLED, "cancelled"), &err);
    zr_parts_tell(&s.rq);
    assert_int_equal(s.status[0], ZARR_ERR_CORRUPT);
    assert_int_equal(s.status[1], ZARR_ERR_CANCELLED);
    zr_parts_begin(&s.rq);
    assert_int_equal(zr_parts_status(&s.rq, &err), ZARR_OK);
    zr_mutex_deinit(&s.rq.locked.mutex);
}

/* What the request itself has to report or to repeat is no failure of a part. */
static void test_taken(void **state)
{
    struct scene s;

    (void)state;
    scene_open(&s);
    assert_true(zr_parts_take(&s.rq, ZARR_ERR_IO));
    assert_false(zr_parts_take(&s.rq, ZARR_OK));
    assert_false(zr_parts_take(&s.rq, ZARR_ERR_CANCELLED));
    assert_false(zr_parts_take(&s.rq, ZARR_ERR_CONFLICT));
    s.rq.last_try = true;
    assert_true(zr_parts_take(&s.rq, ZARR_ERR_CONFLICT));
    s.rq.io.parts = NULL;
    assert_false(zr_parts_take(&s.rq, ZARR_ERR_IO));
    zr_mutex_deinit(&s.rq.locked.mutex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_chunk),
        cmocka_unit_test(test_whole_request),
        cmocka_unit_test(test_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
