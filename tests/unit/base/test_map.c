/*
 * unit/base/test_map.c - maps compared with a plain list, and with failing allocations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "unit/json/fail_alloc.h"

enum {
    MODEL_KEYS = 400
};

static long n_freed;

static void count_free(const zarr_allocator *alloc, void *value)
{
    (void)alloc;
    (void)value;
    n_freed++;
}

static void order_and_replacement(void **state)
{
    static int values[3];
    struct zr_map m;

    (void)state;
    n_freed = 0;
    zr_map_init(&m, NULL, count_free);
    assert_null(zr_map_get(&m, "a"));
    assert_false(zr_map_remove(&m, "a"));
    assert_int_equal(zr_map_put(&m, "a", &values[0], NULL), ZARR_OK);
    assert_int_equal(zr_map_put(&m, "b", &values[1], NULL), ZARR_OK);
    /* The same key again. */
    assert_int_equal(zr_map_put(&m, "a", &values[0], NULL), ZARR_OK);
    assert_int_equal(n_freed, 0);
    assert_int_equal(zr_map_put(&m, "a", &values[2], NULL), ZARR_OK);
    assert_int_equal(n_freed, 1);
    assert_int_equal(m.n, 2);
    assert_string_equal(m.items[0].key, "a");
    assert_ptr_equal(zr_map_get(&m, "a"), &values[2]);
    assert_ptr_equal(zr_map_get_n(&m, "bcd", 1), &values[1]);
    assert_null(zr_map_get_n(&m, "bcd", 2));

    assert_int_equal(zr_map_put_n(&m, "a\0x", 3, &values[1], NULL), ZARR_OK);
    assert_ptr_equal(zr_map_get_n(&m, "a\0x", 3), &values[1]);
    assert_ptr_equal(zr_map_get(&m, "a"), &values[2]);
    assert_int_equal(zr_map_put(&m, "", &values[0], NULL), ZARR_OK);
    assert_ptr_equal(zr_map_get(&m, ""), &values[0]);
    zr_map_deinit(&m);
    assert_int_equal(n_freed, 5);
    zr_map_deinit(&m);
}

/* Removes order[at]. The last item takes its place, unless the order stays. */
static void model_remove(int *order, int n, int at, bool unordered)
{
    if (unordered)
        order[at] = order[n - 1];
    else
        memmove(order + at, order + at + 1, (size_t)(n - 1 - at) * sizeof *order);
}

/* Random puts and removes, compared with a simple array. */
static void compare_with_model(bool unordered)
{
    int order[MODEL_KEYS], n = 0;
    static int values[MODEL_KEYS];
    uint64_t seed = 7;
    struct zr_map m;
    char key[300];

    zr_map_init(&m, NULL, NULL);
    for (int step = 0; step < 20000; step++) {
        int k, at;

        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
        k = (int)((seed >> 33) % MODEL_KEYS);
        snprintf(key, sizeof key, "%d/%*d", k, k % 257, k); /* keys of many lengths */
        for (at = 0; at < n && order[at] != k; at++)
            ;
        assert_ptr_equal(zr_map_get(&m, key), at < n ? &values[k] : NULL);
        if ((seed >> 20) % 3) {
            assert_int_equal(zr_map_put(&m, key, &values[k], NULL), ZARR_OK);
            if (at == n)
                order[n++] = k;
        } else {
            assert_int_equal(unordered ? zr_map_remove_unordered(&m, key)
                                       : zr_map_remove(&m, key),
                             at < n);
            if (at < n)
                model_remove(order, n--, at, unordered);
        }
        assert_int_equal(m.n, n);
        for (int i = 0; step % 100 == 0 && i < n; i++)
            assert_ptr_equal(m.items[i].value, &values[order[i]]);
    }
    zr_map_deinit(&m);
}

static void against_a_model(void **state)
{
    (void)state;
    compare_with_model(false);
    compare_with_model(true);
}

static zarr_status map_scenario(struct fail_alloc *f)
{
    static int values[100];
    struct zr_map m;
    zarr_status st = ZARR_OK;
    char key[16];
    size_t put = 0;

    zr_map_init(&m, &f->alloc, NULL);
    for (size_t i = 0; i < 100 && st == ZARR_OK; i++) {
        snprintf(key, sizeof key, "k%zu", i);
        st = zr_map_put(&m, key, &values[i], NULL);
        put += st == ZARR_OK;
    }
    assert_int_equal(m.n, put); /* the failure left the map complete and unchanged */
    for (size_t i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "k%zu", i);
        assert_ptr_equal(zr_map_get(&m, key), i < put ? &values[i] : NULL);
    }
    zr_map_deinit(&m);
    return st;
}

static void failing_memory(void **state)
{
    struct fail_alloc f;
    zarr_status st = ZARR_ERR_NO_MEMORY;

    (void)state;
    for (size_t n = 1; st != ZARR_OK && n < 1000; n++) {
        fail_alloc_init(&f, n, 0);
        st = map_scenario(&f);
        assert_int_equal(st, f.failed ? ZARR_ERR_NO_MEMORY : ZARR_OK);
        assert_int_equal(f.held, 0);
    }
    assert_int_equal(st, ZARR_OK);
}

static void many_keys(void **state)
{
    enum {
        MANY = 50000
    };
    struct zr_map m;
    char key[16];

    (void)state;
    zr_map_init(&m, NULL, NULL);
    for (uintptr_t i = 1; i <= MANY; i++) {
        snprintf(key, sizeof key, "%ju", (uintmax_t)i);
        assert_int_equal(zr_map_put(&m, key, (void *)i, NULL), ZARR_OK);
    }
    for (uintptr_t i = 1; i <= MANY; i++) {
        snprintf(key, sizeof key, "%ju", (uintmax_t)i);
        assert_ptr_equal(zr_map_get(&m, key), (void *)i);
    }
    assert_null(zr_map_get(&m, "0"));
    zr_map_deinit(&m);
}

/* ---- keys that collide --------------------------------------------------------- */

static uint64_t hash_of_child; /* of the text "key", in a process that drew its own key */

static void ask_child(void)
{
    int ends[2];
    uint64_t hash;
    pid_t child;

    if (pipe(ends) != 0 || (child = fork()) < 0)
        abort();
    if (child == 0) {
        hash = zr_map_hash("key", 3);
        _exit(write(ends[1], &hash, sizeof hash) != sizeof hash);
    }
    close(ends[1]);
    if (read(ends[0], &hash_of_child, sizeof hash_of_child) != sizeof hash_of_child ||
        waitpid(child, NULL, 0) != child)
        abort();
    close(ends[0]);
}

/* Who does not know the key of a process cannot compute its hashes. */
static void each_process_has_its_key(void **state)
{
    (void)state;
    assert_true(zr_map_hash("key", 3) != hash_of_child);
    assert_true(zr_map_hash("key", 3) == zr_map_hash("key", 3));
}

/* "Aa" and "BB" are equal under the hashes that multiply by 31, and so are all texts made
 * of them. Here they fill the slots as chance does: 1 - 1/e = 63 %. */
static void keys_made_to_collide(void **state)
{
    enum {
        BITS = 16
    };
    static bool slot[1 << BITS];
    char key[2 * BITS + 1];
    size_t n = 0;

    (void)state;
    for (unsigned i = 0; i < 1U << BITS; i++) {
        uint64_t at;

        for (unsigned b = 0; b < BITS; b++)
            memcpy(key + 2 * (size_t)b, i >> b & 1 ? "Aa" : "BB", 3);
        at = zr_map_hash(key, 2 * (size_t)BITS) & ((1U << BITS) - 1);
        n += !slot[at];
        slot[at] = true;
    }
    assert_in_range(n, 0.6 * (1 << BITS), 0.66 * (1 << BITS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_process_has_its_key),
        cmocka_unit_test(keys_made_to_collide),
        cmocka_unit_test(order_and_replacement),
        cmocka_unit_test(against_a_model),
        cmocka_unit_test(failing_memory),
        cmocka_unit_test(many_keys),
    };

    ask_child();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
