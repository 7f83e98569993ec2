/*
 * tests/kernels/team.c - the code of teams (kernels/team.h), which only GPUs use, in
 * host C: the lanes of a team are fibers that take turns whenever all meet. Lanes that
 * meet at different places fail the test.
 */
#include <stdint.h>

static uint32_t team_shuffle(uint32_t x, uint32_t from, int line);
static uint32_t team_ballot(uint32_t x, int line);
static void team_meet(int line);

#define K_LANES                      32
#define K_TEAM                       1
#define K_GROUP                      K_LANES
#define K_ROOM(type, name)           static type name
#define K_MEET()                     team_meet(__LINE__)
#define K_TAKE(share, lane, x, from) team_shuffle(x, from, __LINE__)
#define K_BALLOT(x)                  team_ballot((uint32_t)(x), __LINE__)
#define K_JOIN(share, lane, bits)    team_ballot(bits, __LINE__)
#include "runner.h"

#if defined(__GLIBC__)
#    include <ucontext.h>

enum {
    STACK = 1 << 16
};
static struct {
    ucontext_t host, fibers[K_LANES];
    char *stacks;
    uint32_t shared[K_LANES]; /* values that lanes show to the others */
    int at[K_LANES];          /* the line at which a lane waits; 0: it has ended */
    uint32_t lane;            /* the one that runs */
    void (*run)(const struct argument *a);
    const struct argument *arguments;
} team;

static void team_meet(int line)
{
    team.at[team.lane] = line;
    (void)swapcontext(&team.fibers[team.lane], &team.host);
}

static uint32_t team_shuffle(uint32_t x, uint32_t from, int line)
{
    team.shared[team.lane] = x;
    team_meet(line);
    x = team.shared[from];
    team_meet(line);
    return x;
}

static uint32_t team_ballot(uint32_t x, int line)
{
    team.shared[team.lane] = x;
    team_meet(line);
    x = 0;
    for (uint32_t k = 0; k < K_LANES; k++)
        x |= (uint32_t)(team.shared[k] != 0) << k;
    team_meet(line);
    return x;
}

static void run_decode(const struct argument *a)
{
    k_decode(a[0].bytes, a[1].bytes, a[2].bytes, a[3].bytes, a[4].n);
}

static void run_zstd_literals(const struct argument *a)
{
    k_zstd_literals(a[0].bytes, a[1].bytes, a[2].bytes, a[3].bytes, a[4].n, a[5].n);
}

static void run_zstd_sequences(const struct argument *a)
{
    k_zstd_sequences(a[0].bytes, a[1].bytes, a[2].bytes, a[3].bytes, a[4].n, a[5].n);
}

static void run_zstd_execute(const struct argument *a)
{
    k_zstd_execute(a[0].bytes, a[1].bytes, a[2].bytes, a[3].bytes, a[4].bytes, a[5].n,
                   a[6].n);
}

static const struct {
    const char *name;
    void (*run)(const struct argument *a);
} kernels[] = {{"k_decode", run_decode},
               {"k_zstd_literals", run_zstd_literals},
               {"k_zstd_sequences", run_zstd_sequences},
               {"k_zstd_execute", run_zstd_execute}};

static void lane_run(void)
{
    team.run(team.arguments);
    team_meet(0);
}

static void one_team(uint64_t stream)
{
    /* no local variable lives across getcontext(), which compilers treat as setjmp() */
    for (team.lane = 0; team.lane < K_LANES; team.lane++) {
        assert_int_equal(getcontext(&team.fibers[team.lane]), 0);
        team.fibers[team.lane].uc_stack.ss_sp = team.stacks + (size_t)STACK * team.lane;
        team.fibers[team.lane].uc_stack.ss_size = STACK;
        team.fibers[team.lane].uc_link = NULL;
        makecontext(&team.fibers[team.lane], lane_run, 0);
    }
    do {
        for (team.lane = 0; team.lane < K_LANES; team.lane++) {
            k_place = stream * K_LANES + team.lane;
            (void)swapcontext(&team.host, &team.fibers[team.lane]);
        }
        for (uint32_t k = 1; k < K_LANES; k++)
            if (team.at[k] != team.at[0])
                fail_msg("lane %u meets at line %d, lane 0 at line %d", k, team.at[k],
                         team.at[0]);
    } while (team.at[0]);
}

int team_launch(const char *kernel, uint64_t streams,
                const struct argument arguments[ARGUMENTS_MOST])
{
    size_t k = 0;

    while (k < COUNT(kernels) && strcmp(kernel, kernels[k].name) != 0)
        k++;
    if (k == COUNT(kernels))
        return 0;
    team.run = kernels[k].run;
    if (!team.stacks)
        team.stacks = block((size_t)STACK * K_LANES);
    team.arguments = arguments;
    for (uint64_t i = 0; i < streams; i++)
        one_team(i);
    return 1;
}

int team_open(void)
{
    return 1;
}

void team_close(void)
{
    free(team.stacks);
    team.stacks = NULL;
}
#else
static uint32_t team_shuffle(uint32_t x, uint32_t from, int line)
{
    (void)from;
    (void)line;
    return x;
}

static uint32_t team_ballot(uint32_t x, int line)
{
    (void)line;
    return x;
}

static void team_meet(int line)
{
    (void)line;
}

int team_launch(const char *kernel, uint64_t streams,
                const struct argument arguments[ARGUMENTS_MOST])
{
    (void)kernel;
    (void)streams;
    (void)arguments;
    return 0;
}

int team_open(void)
{
    return 0;
}

void team_close(void)
{
}
#endif
