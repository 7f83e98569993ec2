/*
 * fault/test_alloc.c - every scenario with the k-th call of the context's allocator
 * failing, once and then with all later ones, for each k until it is not reached. The
 * status is NO_MEMORY or OK, the store holds old or new contents, the same context
 * completes the scenario afterwards, and no block leaks.
 */
#include "fault.h"

#include "../sanitizers.h"

static void run_once(const struct scenario *s, int64_t k, bool forever, bool *reached)
{
    struct world w;
    zarr_store *store = NULL;
    zarr_error err = {0};
    zarr_status st;

    world_context(&w, 1);
    assert_int_equal(zarr_store_open(&store, w.ctx, "memory:", NULL, &err), ZARR_OK);
    world_fill(&w, store, s->extra);
    zarr_context_trim(w.ctx); /* frees cached memory, which would need no allocation */
    fuse_set(&w.memory, k, forever);
    err = (zarr_error){0};
    st = s->run(&w, &err);
    *reached = fuse_off(&w.memory);
    if (st != ZARR_OK &&
        (st != ZARR_ERR_NO_MEMORY || !strstr(err.message, "allocate") || !*reached))
        fail_msg("%s, k %d, %s: %s: %s", s->name, (int)k, forever ? "for ever" : "once",
                 zarr_status_text(st), err.message);
    world_check(&w, s, st == ZARR_OK);
    world_close(&w);
}

static void test_scenario(void **state)
{
    const struct scenario *s = *state;

    for (int forever = 0; forever < 2; forever++) {
        bool reached = true;
        int64_t k = 0;

        while (reached) {
            k += ZR_FAIL_STEP(k);
            run_once(s, k, forever, &reached);
        }
        assert_true(k > 3);
        print_message("%s: %d allocations\n", s->name, (int)k - 1);
    }
}

int main(void)
{
    static struct CMUnitTest tests[64];
    const size_t n = scenario_tests(tests, 64, test_scenario);

    return _cmocka_run_group_tests("alloc", tests, n, NULL, NULL);
}
