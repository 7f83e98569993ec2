/*
 * unit/check/test_diff_reads.c - how often a comparison reads the objects of an array
 * that is damaged. An index of a shard is read and verified a few times, not once for
 * each inner chunk.
 */
#include "unit/array/hook_store.h"

enum {
    INNER = 128
};

static int n_gets;

static void count_gets(const zarr_store_op *op, int done)
{
    n_gets += !done && op->verb == ZARR_STORE_GET && strstr(op->key, "/c/") != NULL;
}

static void make_shard(const char *path, uint64_t n_shards)
{
    const uint64_t inner = 1, shard = INNER, length = n_shards * INNER;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .zarr_format = 3,
                                  .ndim = 1,
                                  .shape = &length,
                                  .chunk_shape = &inner,
                                  .shard_shape = &shard,
                                  .codecs = "[]",
                                  .data_type = "int8"};
    const uint64_t shape = (uint64_t)length;
    zarr_array *a = NULL;
    int8_t data[4 * INNER];
    zarr_tensor t;

    memset(data, 7, sizeof data);
    assert_ok(zarr_array_create(&a, world.store, path, &spec, NULL, &terr));
    zarr_tensor_host(&t, NULL, data, length, 1, &shape);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    zarr_array_free(a);
}

/* Changes the last byte, of the index's checksum, or the first, of an inner chunk. */
static void damage(const char *key, int first)
{
    unsigned char value[4096];
    uint64_t bytes = sizeof value;

    assert_ok(zarr_store_get(world.store, key, 0, value, &bytes, NULL, &terr));
    value[first ? 0 : bytes - 1] ^= 1;
    assert_ok(zarr_store_put(world.store, key, value, bytes, NULL, &terr));
}

static void compare(uint64_t n_shards, uint64_t unread, int most)
{
    zarr_diff_result r = ZARR_DIFF_RESULT_INIT;

    n_gets = 0;
    hook = count_gets;
    assert_int_not_equal(
        zarr_node_diff(world.store, "a", world.store, "b", &r, NULL, &terr), ZARR_OK);
    unhook();
    assert_int_equal(r.n_unread, unread);
    assert_int_equal(r.n_elements, n_shards * INNER - unread);
    assert_int_equal(r.n_different, 0);
    assert_in_range(n_gets, 1, most);
}

static void test_index(void **state)
{
    static const char *const sides[] = {"a/c/0", "b/c/0"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        begin(0, 0, 0, 0);
        make_shard("a", 1);
        make_shard("b", 1);
        damage(sides[i], 0);
        compare(1, INNER, 16);
        end();
    }
}

static void test_one_of_several(void **state)
{
    (void)state;
    begin(0, 0, 0, 0);
    make_shard("a", 4);
    make_shard("b", 4);
    damage("a/c/2", 0);
    compare(4, INNER, 64);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_one_of_several),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
