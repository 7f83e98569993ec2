#include "runner.h"

#include <stdio.h>

#include "twins.h"

void launch(const struct target *t, const char *kernel, uint64_t items, int streamed,
            const struct argument arguments[ARGUMENTS_MOST])
{
    struct kernels_argument own[ARGUMENTS_MOST];

    if (t->opencl) {
        opencl_launch(t->opencl, kernel, streamed ? items * t->lanes : items,
                      streamed ? t->lanes : 0, arguments);
        return;
    }
    if (t->cuda) {
        cuda_launch(t->cuda, kernel, streamed ? items * t->lanes : items,
                    streamed ? t->lanes : 0, arguments);
        return;
    }
    if (t->team && team_launch(kernel, items, arguments))
        return;
    for (int i = 0; i < ARGUMENTS_MOST; i++)
        own[i] = (struct kernels_argument){arguments[i].bytes, arguments[i].n};
    if (!kernels_twin(kernel, items, own))
        fail_msg("%s is not in the table of twins", kernel);
}

/* ---- targets -------------------- */

size_t targets_open(struct target *targets)
{
    size_t n = 0;

    targets[n++] = (struct target){.name = "host", .lanes = K_LANES};
    if (team_open())
        targets[n++] = (struct target){.name = "team", .lanes = LANES, .team = 1};
    for (uint32_t lanes = 1; lanes <= LANES; lanes += LANES - 1) {
        struct opencl *o = opencl_open(lanes);

        if (o)
            targets[n++] =
                (struct target){.name = lanes == 1 ? "opencl" : "opencl, many lanes",
                                .lanes = lanes,
                                .opencl = o};
    }
    struct cuda *c = cuda_open();

    if (c)
        targets[n++] = (struct target){.name = "cuda", .lanes = LANES, .cuda = c};
    return n;
}

void targets_close(struct target *targets, size_t n)
{
    team_close();
    for (size_t i = 0; i < n; i++) {
        if (targets[i].opencl)
            opencl_close(targets[i].opencl);
        if (targets[i].cuda)
            cuda_close(targets[i].cuda);
    }
}

/* Whether KERNELS_NEED names no target, or one of these. */
static int has_needed(const struct target *targets, size_t n)
{
    const char *need = getenv("KERNELS_NEED");

    for (size_t i = 0; need && i < n; i++)
        if (strcmp(targets[i].name, need) == 0)
            return 1;
    if (need)
        (void)fprintf(stderr, "there is no target %s\n", need);
    return !need;
}

int run_on_targets(const char *name, const struct CMUnitTest *tests, size_t n)
{
    const char *only = getenv("KERNELS_ONLY");
    struct target targets[TARGETS_MOST];
    const size_t n_targets = targets_open(targets);
    int failed = has_needed(targets, n_targets) ? 0 : 1;

    cmocka_set_test_filter(getenv("KERNELS_TEST"));
    for (size_t i = 0; i < n_targets; i++) {
        struct CMUnitTest *own;

        if (only && strcmp(targets[i].name, only) != 0)
            continue;
        own = calloc(n, sizeof *own);
        if (!own)
            return 1;
        for (size_t k = 0; k < n; k++) {
            own[k] = tests[k];
            own[k].initial_state = &targets[i];
        }
        printf("%s: %s\n", name, targets[i].name);
        fflush(stdout);
        failed += _cmocka_run_group_tests(targets[i].name, own, n, NULL, NULL);
        free(own);
    }
    targets_close(targets, n_targets);
    return failed;
}

/* ---- bytes -------------------- */

void fill_random(uint8_t *p, size_t n, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(next_random(seed) >> 40);
}

void fill_numbers(uint8_t *p, size_t n, size_t item, uint64_t *seed)
{
    size_t i = 0;

    while (i < n) {
        const size_t run = 1 + below(seed, 80), kind = below(seed, 4);
        const size_t back = i ? 1 + below(seed, i < 70000 ? i : 70000) : 0;

        for (size_t k = 0; k < run && i < n; k++, i++)
            p[i] = (uint8_t)(kind == 0 && back ? p[i - back]
                             : kind == 1       ? 0
                             : i % item == 0   ? below(seed, 7)
                                               : i % item);
    }
}
