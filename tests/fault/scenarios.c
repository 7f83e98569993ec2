/*
 * fault/scenarios.c - the operations during which steps fail, as tests, and the contents
 * that the store may have afterwards: the old ones, or the complete result.
 */
#include "fault.h"

static const struct scenarios *const groups[] = {&element_scenarios, &node_scenarios,
                                                 &store_scenarios};

size_t scenario_tests(struct CMUnitTest *tests, size_t most, CMUnitTestFunction test)
{
    size_t n = 0;

    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (size_t i = 0; i < groups[g]->n; i++) {
            const struct scenario *s = &groups[g]->one[i];

            assert_true(n < most);
            tests[n++] =
                (struct CMUnitTest){s->name, test, NULL, NULL, (void *)(uintptr_t)s};
        }
    return n;
}

static void check_unchanged(struct world *w, const struct scenario *s, const char *path)
{
    zarr_error err;

    if (!s->changes || strcmp(s->changes, path) != 0)
        world_must(world_read_rows(w, path, 0, ROWS, &err), &err, path);
}

void world_check(struct world *w, const struct scenario *s, bool done)
{
    if (s->check)
        s->check(w, done);
    else
        check_unchanged(w, s, "g/shard");
    check_unchanged(w, s, "v2/x");
    check_unchanged(w, s, "g/plain");
}
