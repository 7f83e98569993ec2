/*
 * unit/array/test_shared_handles.c - two callers share a handle, and one acts between
 * two steps of the other. The handle never returns to an older shape or older
 * attributes.
 */
#include "hook_store.h"

#include <pthread.h>

static void resize_between(const zarr_store_op *op, int done)
{
    if (!done || !is_at(op, ZARR_STORE_PUT, "a/.zattrs"))
        return;
    their_status = zarr_array_resize(mine, &(const uint64_t){20}, NULL, NULL);
}

static void set_between(const zarr_store_op *op, int done)
{
    if (!done || !is_at(op, ZARR_STORE_PUT, "a/.zarray"))
        return;
    their_status = zarr_array_attribute_set(mine, "k", "1", NULL, NULL);
}

static void resize_after_reading(const zarr_store_op *op, int done)
{
    if (!done || !(is_at(op, ZARR_STORE_GET, "a/.zarray") ||
                   is_at(op, ZARR_STORE_GET, "a/zarr.json")))
        return;
    their_status = zarr_array_resize(mine, &(const uint64_t){20}, NULL, NULL);
}

static void check_new(int with_attribute)
{
    char text[8] = "";

    assert_int_equal(n_hooked, 1);
    assert_int_equal(their_status, ZARR_OK);
    assert_int_equal(zarr_array_shape(mine)[0], 20);
    if (with_attribute) {
        assert_ok(zarr_array_attribute_get(mine, "k", text, sizeof text, NULL, &terr));
        assert_string_equal(text, "1");
    }
}

static void test_handle_of_two_documents(void **state)
{
    (void)state;
    begin(0, 2, 10, 4);
    hook = resize_between;
    assert_ok(zarr_array_attribute_set(mine, "k", "1", NULL, &terr));
    check_new(1);
    end();

    begin(0, 2, 10, 4);
    hook = set_between;
    assert_ok(zarr_array_resize(mine, &(const uint64_t){20}, NULL, &terr));
    check_new(1);
    end();

    begin(0, 2, 10, 4);
    hook = set_between;
    assert_ok(append(mine, 1, 10));
    check_new(1);
    end();
}

static void test_refresh_between(void **state)
{
    int changed = 0;

    (void)state;
    for (int format = 2; format <= 3; format++) {
        begin(0, format, 10, 4);
        hook = resize_after_reading;
        assert_ok(zarr_array_refresh(mine, &changed, NULL, &terr));
        check_new(0);
        assert_int_equal(changed, 1);
        end();
    }
}

struct setting {
    zarr_array *a;
    zarr_group *g;
    const char *name;
    uint64_t length;
};

static void *set_one(void *arg)
{
    const struct setting *s = arg;
    zarr_status st = ZARR_OK;

    if (s->length)
        st = zarr_array_resize(s->a, &s->length, NULL, NULL);
    else
        st = s->a ? zarr_array_attribute_set(s->a, s->name, "1", NULL, NULL)
                  : zarr_group_attribute_set(s->g, s->name, "1", NULL, NULL);
    if (st != ZARR_OK)
        abort();
    return NULL;
}

static int has(const struct setting *s, const char *name)
{
    char text[8];

    return (s->a ? zarr_array_attribute_get(s->a, name, text, sizeof text, NULL, NULL)
                 : zarr_group_attribute_get(s->g, name, text, sizeof text, NULL, NULL)) ==
           ZARR_OK;
}

/* Two threads make one change each through one handle: the handle has both
 * afterwards. */
static void check_two_changes(struct setting *one, struct setting *two, int turns)
{
    for (int i = 1; i <= turns; i++) {
        pthread_t p, q;
        char a[16], b[16];

        snprintf(a, sizeof a, "a%d", i);
        snprintf(b, sizeof b, "b%d", i);
        one->name = a;
        two->name = b;
        two->length = two->length ? (uint64_t)i : 0;
        assert_int_equal(pthread_create(&p, NULL, set_one, one), 0);
        assert_int_equal(pthread_create(&q, NULL, set_one, two), 0);
        pthread_join(p, NULL);
        pthread_join(q, NULL);
        assert_true(has(one, a));
        if (two->length)
            assert_int_equal(zarr_array_shape(two->a)[0], i);
        else
            assert_true(has(two, b));
    }
}

static void test_one_handle_of_two_threads(void **state)
{
    (void)state;
    for (int format = 2; format <= 3; format++)
        for (int what = 0; what < 3; what++) {
            struct setting one = {0}, two = {0};
            zarr_group *g = NULL;
            struct world w;

            world_open(&w, WORLD_MEMORY);
            assert_ok(group_create(&g, w.store, "", format, NULL, 0, &terr));
            if (what == 0)
                one.g = two.g = g;
            else
                one.a = two.a = line(w.store, format, 10, 4);
            two.length = what == 2;
            check_two_changes(&one, &two, 150);
            zarr_array_free(one.a);
            zarr_group_free(g);
            world_close(&w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handle_of_two_documents),
        cmocka_unit_test(test_refresh_between),
        cmocka_unit_test(test_one_handle_of_two_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
