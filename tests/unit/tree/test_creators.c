/*
 * unit/tree/test_creators.c - two writers create one v2 node, whose attributes are a
 * separate document: the node has the attributes of the writer that created it, and no
 * others.
 */
#include "unit/conditional_caps.h"
#include "unit/array/hook_store.h"

#include <pthread.h>
#include <stdbool.h>

static void test_stray_attributes(void **state)
{
    struct world w;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        zarr_array *a = NULL;
        zarr_group *g = NULL;

        world_open(&w, sort);
        put_text(&w, "a/.zattrs", "{\"x\":1}");
        put_text(&w, "g/.zattrs", "{\"x\":1}");
        put_text(&w, "p/.zattrs", "{\"x\":1}");
        a = line(w.store, 2, 10, 4);
        assert_string_equal(zarr_array_attributes(a), "{}");
        assert_null(get_text(&w, "a/.zattrs"));
        zarr_array_free(a);
        assert_ok(group_create(&g, w.store, "g", 2, NULL, 0, &terr));
        assert_string_equal(zarr_group_attributes(g), "{}");
        zarr_group_free(g);
        assert_ok(group_create(&g, w.store, "p/q", 2, "{\"y\":2}", 0, &terr));
        zarr_group_free(g);
        assert_null(get_text(&w, "p/.zattrs")); /* created as a parent */
        assert_non_null(get_text(&w, "p/q/.zattrs"));
        world_close(&w);
    }
}

struct creating {
    zarr_store *store;
    const char *attributes;
    int is_group;
    zarr_status st;
};

static void *create(void *arg)
{
    struct creating *c = arg;
    const uint64_t length = 10;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .zarr_format = 2,
                                  .ndim = 1,
                                  .shape = &length,
                                  .attributes = c->attributes,
                                  .data_type = "int32"};
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    zarr_error e;

    if (c->is_group)
        c->st = group_create(&g, c->store, "n", 2, c->attributes, 0, &e);
    else
        c->st = zarr_array_create(&a, c->store, "n", &spec, NULL, &e);
    zarr_group_free(g);
    zarr_array_free(a);
    return NULL;
}

static void check_winner(struct world *w, const struct creating *one,
                         const struct creating *two)
{
    const struct creating *winner = one->st == ZARR_OK ? one : two;
    const struct creating *loser = winner == one ? two : one;
    const char *text;

    assert_int_equal(winner->st, ZARR_OK);
    assert_int_equal(loser->st, ZARR_ERR_EXISTS);
    text = get_text(w, "n/.zattrs");
    assert_non_null(text);
    assert_non_null(strstr(text, winner == one ? "one" : "two"));
}

static void test_creators_of_v2(void **state)
{
    struct creating one = {.attributes = "{\"one\":1}"},
                    two = {.attributes = "{\"two\":2}"};
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    one.store = two.store = w.store;
    for (int i = 0; i < 400; i++) {
        pthread_t p, q;

        one.is_group = two.is_group = i % 2;
        assert_int_equal(pthread_create(&p, NULL, create, &one), 0);
        assert_int_equal(pthread_create(&q, NULL, create, &two), 0);
        pthread_join(p, NULL);
        pthread_join(q, NULL);
        check_winner(&w, &one, &two);
        assert_ok(zarr_node_delete(w.store, "n", &terr));
    }
    world_close(&w);
}

static struct creating between;
static const char *between_key;

static void create_between(const zarr_store_op *op, int done)
{
    if (done || !is_at(op, ZARR_STORE_PUT, between_key))
        return;
    create(&between);
}

static void creators_of_a_store(uint32_t caps)
{
    static const char *const keys[] = {"n/.zattrs", "n/.zarray", "n/.zgroup"};

    for (int i = 0; i < 6; i++) {
        const bool is_group = i % 2;
        struct creating one = {.attributes = "{\"one\":1}", .is_group = is_group};

        begin(caps, 0, 0, 0);
        one.store = world.store;
        between = (struct creating){
            .store = other, .attributes = "{\"two\":2}", .is_group = is_group};
        between_key = keys[i / 2];
        hook = create_between;
        create(&one);
        /* True if this kind of node has such a key. */
        assert_int_equal(n_hooked > 0, is_group ? i / 2 != 1 : i / 2 != 2);
        if (n_hooked)
            check_winner(&world, &one, &between);
        end();
    }
}

static void test_creators_by_version(void **state)
{
    (void)state;
    creators_of_a_store(CAPS_CONDITIONAL);
    creators_of_a_store(ZARR_STORE_CAP_PUT_NEW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stray_attributes),
        cmocka_unit_test(test_creators_of_v2),
        cmocka_unit_test(test_creators_by_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
