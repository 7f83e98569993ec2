/*
 * unit/store/test_memory_order.c - listings and renames of the memory store against a
 * plain array of keys, and their cost: a listing costs what it tells, however many keys
 * the store has.
 */
#include "store_test.h"

enum {
    N_KEYS = 400,
    N_STEPS = 3000,
    MANY = 60000
};

static struct {
    char key[32];
    bool there;
} model[N_KEYS];

static uint32_t seed = 1;

static uint32_t next(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static void name_key(char *out, size_t cap, uint32_t i)
{
    static const char *const ends[] = {"",   "-", "/x", "/x/y",
                                       "0x", "/", ".z", "/zarr.json"};

    snprintf(out, cap, "%c/%" PRIu32 "%s%s", 'a' + (int)(i % 3), i / 24, ends[i / 3 % 8],
             i / 3 % 8 == 5 ? "k" : "");
}

struct seen {
    char key[N_KEYS][32];
    bool prefix[N_KEYS];
    size_t n;
};

static int see(void *user, const zarr_store_item *item)
{
    struct seen *x = user;

    assert_true(x->n < N_KEYS);
    if (x->n > 0 && !item->is_prefix && !x->prefix[x->n - 1])
        assert_true(strcmp(x->key[x->n - 1], item->key) < 0);
    x->prefix[x->n] = item->is_prefix != 0;
    snprintf(x->key[x->n++], sizeof x->key[0], "%s", item->key);
    return 0;
}

/* Whether the row is right, and how many keys of the model it stands for. */
static size_t n_of_row(const char *key, bool prefix)
{
    size_t n = 0;

    for (size_t i = 0; i < N_KEYS; i++)
        n += model[i].there && (prefix ? zr_key_is_below(model[i].key, key)
                                       : strcmp(model[i].key, key) == 0);
    return n;
}

static void compare(zarr_store *s, const char *prefix, uint32_t how)
{
    static struct seen x;
    size_t n = 0, want = 0;
    zarr_error err;

    x.n = 0;
    assert_status(zarr_store_list(s, prefix, how, see, &x, NULL, &err), ZARR_OK);
    for (size_t i = 0; i < x.n; i++) {
        const size_t more = n_of_row(x.key[i], x.prefix[i]);

        assert_true(zr_key_is_below(x.key[i], prefix) && more > 0);
        assert_true(how == ZARR_LIST_DIRECTORY || !x.prefix[i]);
        n += more;
    }
    for (size_t i = 0; i < N_KEYS; i++)
        want += model[i].there && zr_key_is_below(model[i].key, prefix);
    assert_int_equal(n, want);
}

static void test_model(void **state)
{
    static const char *const prefixes[] = {"", "a", "b/3", "b/3/x", "c/1", "none"};
    zarr_store *s = open_sort(*state, SORT_MEMORY);

    for (uint32_t i = 0; i < N_KEYS; i++)
        name_key(model[i].key, sizeof model[i].key, i);
    for (int step = 0; step < N_STEPS; step++) {
        const uint32_t i = next(N_KEYS);

        if (model[i].there && next(3) == 0) {
            assert_status(zarr_store_erase(s, model[i].key, NULL, NULL), ZARR_OK);
            model[i].there = false;
        } else {
            assert_status(put_text(s, model[i].key, "v"), ZARR_OK);
            model[i].there = true;
        }
        if (step % 16 == 0)
            for (size_t p = 0; p < ZR_COUNT(prefixes); p++) {
                compare(s, prefixes[p], ZARR_LIST_RECURSIVE);
                compare(s, prefixes[p], ZARR_LIST_DIRECTORY);
            }
        if (step % 500 == 499) { /* there and back again */
            assert_status(zr_store_rename(s, "a", "r", NULL, NULL), ZARR_OK);
            assert_null(get_text(s, model[0].key));
            assert_status(zr_store_rename(s, "r", "a", NULL, NULL), ZARR_OK);
        }
    }
    zarr_store_free(s);
}

static int count(void *user, const zarr_store_item *item)
{
    (void)item;
    ++*(uint64_t *)user;
    return 0;
}

/* One listing for each of many keys: with listings that look at all keys this takes
 * minutes. The limit on rows shows that one level does not collect what is below it. */
static void test_cost(void **state)
{
    struct world *w = *state;
    zarr_store *s;
    uint64_t n = 0;
    char key[64];

    w->env.limits.listing_keys = 4;
    s = open_sort(w, SORT_MEMORY);
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "%d/%d/k", i % 2, i);
        assert_status(put_text(s, key, "v"), ZARR_OK);
    }
    assert_status(zarr_store_list(s, "", ZARR_LIST_DIRECTORY, count, &n, NULL, NULL),
                  ZARR_OK);
    assert_int_equal(n, 2);
    assert_status(zarr_store_list(s, "1", ZARR_LIST_DIRECTORY, count, &n, NULL, NULL),
                  ZARR_ERR_LIMIT);
    n = 0;
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "%d/%d", i % 2, i);
        assert_status(zarr_store_list(s, key, ZARR_LIST_RECURSIVE, count, &n, NULL, NULL),
                      ZARR_OK);
    }
    assert_int_equal(n, MANY);
    zarr_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_model, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_cost, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
