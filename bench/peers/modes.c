/* bench/peers/modes.c - see modes.h: each mode once, for all engines in C. */
#include "modes.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct modes_state {
    struct job *job;
    const struct engine *engine;
    const struct mode *mode;
    struct box whole; /* the array in memory: what is read, or the source of writes */
    uint64_t counts[MOST_DIMS], edge[MOST_DIMS], n_units;
    struct box unit[MOST_CALLERS]; /* a buffer of each caller */
    int64_t *points;
    uint64_t result;         /* of modes that count */
    _Atomic uint64_t sparse; /* of modes that read many boxes */
    uint64_t random;
};

struct mode {
    const char *name;
    void (*before)(struct modes_state *);
    void (*run)(struct modes_state *);
    uint64_t (*sum)(const struct modes_state *);
    int reads, writes; /* the arrays that it opens: `place`, `to` */
};

enum {
    STEP = 4099, /* of the words that a sparse sum takes; a prime */
    ROWS = 10    /* that one append adds */
};

/* The same numbers in every worker. */
static uint64_t random_below(struct modes_state *s, uint64_t below)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (s->random >> 33) % below;
}

static uint64_t word(const char *data, uint64_t i)
{
    uint64_t w;

    memcpy(&w, data + 8 * i, 8);
    return w;
}

/* Of every word, and of some with their place: both notice other mistakes. */
static uint64_t full_sum(const struct box *box)
{
    uint64_t all = 0, placed = 0;

    for (uint64_t i = 0; i < box->bytes / 8; i++)
        all += word(box->data, i);
    for (uint64_t i = 0; i < box->bytes / 8; i += STEP)
        placed += word(box->data, i) * (i / STEP + 1);
    return all + placed;
}

/* Cheap enough to be timed: a box of half a MiB costs 16 words. */
static void add_sparse(struct modes_state *s, const struct box *box)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < box->bytes / 8; i += STEP)
        sum += word(box->data, i);
    atomic_fetch_add_explicit(&s->sparse, sum, memory_order_relaxed);
}

static uint64_t sum_whole(const struct modes_state *s)
{
    return full_sum(&s->whole);
}

static uint64_t sum_sparse(const struct modes_state *s)
{
    return atomic_load(&s->sparse);
}

static uint64_t sum_result(const struct modes_state *s)
{
    return s->result;
}

static void whole_box(struct modes_state *s)
{
    memset(s->whole.origin, 0, sizeof s->whole.origin);
    memcpy(s->whole.extent, s->job->shape, sizeof s->whole.extent);
    s->whole.bytes = elements(s->job, s->job->shape) * s->job->item;
}

static int is_warm(const struct job *job)
{
    return strcmp(job->out, "warm") == 0;
}

static int is_aligned(const struct job *job)
{
    return strcmp(job->out, "aligned") == 0;
}

static void read_whole(struct modes_state *s)
{
    if (s->engine->read_all)
        s->engine->read_all(s->job, &s->whole);
    else
        s->engine->read(s->job, &s->whole, 0);
}

/* ---- the whole array ---- */

static void read_before(struct modes_state *s)
{
    whole_box(s);
    if (is_warm(s->job) && !s->whole.data) {
        s->whole.data = map_bytes(s->whole.bytes, 1);
        memset(s->whole.data, 1, s->whole.bytes);
    }
}

static void read_run(struct modes_state *s)
{
    if (is_aligned(s->job))
        s->whole.data = map_bytes(s->whole.bytes, 0);
    else if (!is_warm(s->job))
        s->whole.data = need(malloc(s->whole.bytes));
    read_whole(s);
}

static void write_before(struct modes_state *s)
{
    whole_box(s);
    if (s->whole.data)
        return;
    s->whole.data = map_bytes(s->whole.bytes, 1);
    read_whole(s);
}

static void write_run(struct modes_state *s)
{
    if (s->engine->write_all)
        s->engine->write_all(s->job, &s->whole);
    else
        s->engine->write(s->job, &s->whole, 0);
}

/* ---- one unit after another ---- */

static void units_before(struct modes_state *s)
{
    uint64_t bytes = s->job->item;

    s->n_units = 1;
    for (int d = 0; d < s->job->ndim; d++) {
        s->edge[d] = s->job->n_region ? s->job->region[d] : s->job->unit[d];
        s->counts[d] = s->job->shape[d] / s->edge[d];
        s->n_units *= s->counts[d];
        bytes *= s->edge[d];
    }
    for (unsigned c = 0; c < s->job->callers; c++)
        if (!s->unit[c].data)
            s->unit[c].data = need(malloc(bytes));
}

static struct modes_state *the_state; /* of this process: each() passes the job alone */

static void place_unit(struct modes_state *s, uint64_t i, struct box *box)
{
    box->bytes = s->job->item;
    for (int d = s->job->ndim; d-- > 0; i /= s->counts[d]) {
        box->origin[d] = i % s->counts[d] * s->edge[d];
        box->extent[d] = s->edge[d];
        box->bytes *= s->edge[d];
    }
}

static void read_unit(struct job *job, uint64_t i, unsigned caller)
{
    struct box *box = &the_state->unit[caller];

    place_unit(the_state, i, box);
    the_state->engine->read(job, box, caller);
    add_sparse(the_state, box);
}

static void copy_unit(struct job *job, uint64_t i, unsigned caller)
{
    read_unit(job, i, caller);
    the_state->engine->write(job, &the_state->unit[caller], caller);
}

static void units_run(struct modes_state *s)
{
    each(s->job, s->n_units, read_unit);
}

static void round_run(struct modes_state *s)
{
    each(s->job, s->n_units, copy_unit);
}

/* ---- parts at random places ---- */

/* crops: boxes of `region`; planes: one index of the dimension `axis` */
static void parts_run(struct modes_state *s)
{
    struct job *job = s->job;
    const int is_planes = strcmp(job->mode, "planes") == 0;
    struct box box = {.bytes = job->item};

    for (int d = 0; d < job->ndim; d++) {
        box.extent[d] = !is_planes ? job->region[d] : d == job->axis ? 1 : job->shape[d];
        box.bytes *= box.extent[d];
    }
    box.data = need(malloc(box.bytes));
    for (uint64_t i = 0; i < job->n; i++) {
        for (int d = 0; d < job->ndim; d++) {
            const uint64_t room = job->shape[d] - box.extent[d] + 1;

            box.origin[d] = room > 1 ? random_below(s, room) : 0;
        }
        s->engine->read(job, &box, 0);
        add_sparse(s, &box);
    }
    free(box.data);
}

static void points_before(struct modes_state *s)
{
    const int ndim = s->job->ndim;

    s->whole.bytes = s->job->n * s->job->item;
    s->points = need(realloc(s->points, s->job->n * (uint64_t)ndim * sizeof *s->points));
    s->whole.data = need(realloc(s->whole.data, s->whole.bytes));
    for (uint64_t i = 0; i < s->job->n; i++)
        for (int d = 0; d < ndim; d++)
            s->points[i * (uint64_t)ndim + (uint64_t)d] =
                (int64_t)random_below(s, s->job->shape[d]);
}

static void points_run(struct modes_state *s)
{
    s->engine->points(s->job, s->points, s->whole.data);
}

static void append_run(struct modes_state *s)
{
    struct job *job = s->job;
    struct box slab = {.extent = {ROWS}, .bytes = ROWS * job->item};
    uint64_t row = 1, at = 0;
    float *value;

    for (int d = 1; d < job->ndim; d++)
        row *= slab.extent[d] = job->shape[d];
    slab.bytes *= row;
    value = need(malloc(slab.bytes));
    slab.data = (char *)value;
    for (uint64_t i = 0; i < job->n; i++, slab.origin[0] += ROWS) {
        for (uint64_t k = 0; k < ROWS * row; k++, at++)
            value[k] = (float)(at / 8);
        s->engine->append(job, &slab);
    }
    free(value);
}

/* ---- handles and texts ---- */

static void strings_run(struct modes_state *s)
{
    s->result = s->engine->strings(s->job);
}

static void open_run(struct modes_state *s)
{
    for (uint64_t i = 0; i < s->job->n; i++)
        s->result += s->engine->open_one(s->job);
}

static void list_run(struct modes_state *s)
{
    s->result = s->engine->list(s->job);
}

static void nodes_run(struct modes_state *s)
{
    s->result = s->engine->open_nodes(s->job);
}

static const struct mode all[] = {
    {"read", read_before, read_run, sum_whole, 1, 0},
    {"write", write_before, write_run, sum_result, 1, 1},
    {"units", units_before, units_run, sum_sparse, 1, 0},
    {"round", units_before, round_run, sum_sparse, 1, 1},
    {"crops", NULL, parts_run, sum_sparse, 1, 0},
    {"planes", NULL, parts_run, sum_sparse, 1, 0},
    {"points", points_before, points_run, sum_whole, 1, 0},
    {"append", NULL, append_run, sum_result, 0, 1},
    {"strings", NULL, strings_run, sum_result, 1, 0},
    {"open", NULL, open_run, sum_result, 0, 0},
    {"list", NULL, list_run, sum_result, 0, 0},
    {"nodes", NULL, nodes_run, sum_result, 0, 0},
};

/* Starts the threads and fills the caches that a process keeps. */
static void warm_up(struct modes_state *s)
{
    struct job small = *s->job;
    struct modes_state state = {.job = &small, .engine = s->engine};

    if (!small.warmup)
        return;
    small.place = small.warmup;
    small.out = "alloc";
    s->engine->open(&small);
    whole_box(&state);
    read_run(&state);
    s->engine->close(&small);
    free(state.whole.data);
}

struct modes_state *modes_begin(struct job *job, const struct engine *engine)
{
    struct modes_state *s = need(calloc(1, sizeof *s));

    s->job = job;
    s->engine = engine;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, job->mode) == 0)
            s->mode = &all[i];
    if (!s->mode)
        fail("%s: no such mode", job->mode);
    the_state = s;
    warm_up(s);
    return s;
}

void modes_before(struct modes_state *s)
{
    s->random = 1;
    s->result = 0;
    atomic_store(&s->sparse, 0);
    if (s->mode->reads)
        s->engine->open(s->job);
    if (s->mode->writes)
        s->engine->open_target(s->job);
    if (s->mode->before)
        s->mode->before(s);
}

double modes_run(struct modes_state *s)
{
    const double start = now();

    s->mode->run(s);
    return now() - start;
}

uint64_t modes_after(struct modes_state *s)
{
    const uint64_t sum = s->mode->sum(s);

    if (strcmp(s->mode->name, "read") == 0 && !is_warm(s->job)) {
        if (is_aligned(s->job))
            unmap_bytes(s->whole.data, s->whole.bytes);
        else
            free(s->whole.data);
        s->whole.data = NULL;
    }
    s->engine->close(s->job);
    return sum;
}
