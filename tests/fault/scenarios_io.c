/*
 * fault/scenarios_io.c - operations on the elements and the shape of arrays.
 */
#include "fault.h"

/* Each chunk of 2 x 5 is old (seed 1) or, in rows below `rows`, new (seed 2). All are
 * new if done. Resizes change the number of rows: `shape` rows are expected. */
static void check_cells(struct world *w, const char *path, uint64_t rows, bool done)
{
    static int32_t data[CELLS];
    zarr_error err;
    zarr_status st = world_rows_io(w, path, false, 0, ROWS, data, &err);

    world_must(st, &err, path);
    for (int64_t i = 0; i < CELLS; i++) {
        const bool is_new = data[i] == world_cell(2, i),
                   may_be_new = i < (int64_t)rows * COLS;

        if (!(data[i] == world_cell(1, i) && !(done && may_be_new)) &&
            !(is_new && may_be_new))
            fail_msg("%s: cell %d is %d", path, (int)i, (int)data[i]);
    }
}

#define SCENARIO_READ(name, path, first, n)                                              \
    static zarr_status name(struct world *w, zarr_error *err)                            \
    {                                                                                    \
        return world_read_rows(w, path, first, n, err);                                  \
    }
SCENARIO_READ(read_v3, "g/v3", 0, ROWS)
SCENARIO_READ(read_v2, "v2/x", 0, ROWS)
SCENARIO_READ(read_shard, "g/shard", 0, ROWS)
SCENARIO_READ(read_part, "g/shard", 3, 2)
SCENARIO_READ(read_plain, "g/plain", 5, 4)
SCENARIO_READ(read_edges, "g/edges", 0, ROWS)
SCENARIO_READ(read_uneven, "g/uneven", 0, ROWS)
SCENARIO_READ(read_whole, "g/whole", 3, 6)

#define SCENARIO_WRITE(name, path, n)                                                    \
    static zarr_status name(struct world *w, zarr_error *err)                            \
    {                                                                                    \
        return world_write_rows(w, path, 2, 0, n, err);                                  \
    }                                                                                    \
    static void check_##name(struct world *w, bool done)                                 \
    {                                                                                    \
        check_cells(w, path, n, done);                                                   \
    }
SCENARIO_WRITE(write_v3, "g/v3", ROWS)
SCENARIO_WRITE(write_v2, "v2/x", ROWS)
SCENARIO_WRITE(write_part, "g/v3", 3)
SCENARIO_WRITE(write_plain, "g/plain", 3)
SCENARIO_WRITE(write_shard, "g/shard", ROWS)
SCENARIO_WRITE(write_shard_part, "g/shard", 7)
SCENARIO_WRITE(write_edges, "g/edges", 4)
SCENARIO_WRITE(write_uneven, "g/uneven", 4)
SCENARIO_WRITE(write_whole, "g/whole", 7)

static zarr_status resize_to(struct world *w, uint64_t rows, zarr_error *err)
{
    const uint64_t shape[2] = {rows, COLS};
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "g/shard", NULL, err);

    if (st == ZARR_OK)
        st = zarr_array_resize(a, shape, NULL, err);
    zarr_array_free(a);
    return st;
}

static zarr_status shrink(struct world *w, zarr_error *err)
{
    return resize_to(w, 5, err);
}

static uint64_t rows_now(struct world *w, const char *path)
{
    zarr_error err;
    zarr_array *a = NULL;
    uint64_t rows = 0;

    world_must(zarr_array_open(&a, w->store, path, NULL, &err), &err, path);
    rows = zarr_array_shape(a)[0];
    zarr_array_free(a);
    return rows;
}

static void check_shrink(struct world *w, bool done)
{
    zarr_error err;
    const uint64_t rows = rows_now(w, "g/shard");

    if (rows != 5 && (done || rows != ROWS))
        fail_msg("%d rows", (int)rows);
    world_must(world_read_rows(w, "g/shard", 0, rows == ROWS && !done ? ROWS : 5, &err),
               &err, "shrink");
}

static zarr_status append(struct world *w, zarr_error *err)
{
    const uint64_t shape[2] = {3, COLS};
    int32_t data[3 * COLS];
    zarr_tensor t;
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "g/shard", NULL, err);

    for (int i = 0; i < 3 * COLS; i++)
        data[i] = world_cell(1, CELLS + i);
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    if (st == ZARR_OK)
        st = zarr_array_append(a, 0, &t, NULL, NULL, err);
    zarr_array_free(a);
    return st;
}

static void check_append(struct world *w, bool done)
{
    zarr_error err;
    int32_t data[3 * COLS];
    const uint64_t rows = rows_now(w, "g/shard");

    world_must(world_read_rows(w, "g/shard", 0, ROWS, &err), &err, "append");
    if (rows == ROWS && !done)
        return;
    assert_int_equal(rows, ROWS + 3);
    world_must(world_rows_io(w, "g/shard", false, ROWS, 3, data, &err), &err, "append");
    for (int i = 0; i < 3 * COLS; i++)
        assert_int_equal(data[i], world_cell(1, CELLS + i));
}

static zarr_status submit(struct world *w, zarr_error *err)
{
    const uint64_t shape[2] = {ROWS, COLS};
    int32_t data[CELLS];
    zarr_tensor t;
    zarr_request *rq = NULL;
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "g/shard", NULL, err);

    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    if (st == ZARR_OK)
        st = zarr_array_read_submit(&rq, a, NULL, &t, NULL, err);
    if (st == ZARR_OK)
        st = zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, err);
    zarr_request_free(rq);
    zarr_array_free(a);
    return st;
}

/* Explains a read and a write, as numbers and as text. */
static zarr_status explain(struct world *w, zarr_error *err)
{
    zarr_explanation *e = NULL;
    zarr_array *a = NULL;
    size_t n = 0;
    zarr_status st = zarr_array_open(&a, w->store, "g/shard", NULL, err);

    for (uint32_t what = ZARR_EXPLAIN_READ; what <= ZARR_EXPLAIN_WRITE; what++) {
        if (st == ZARR_OK)
            st = zarr_array_explain(&e, a, what, NULL, NULL, NULL, err);
        for (uint32_t form = ZARR_EXPLAIN_TEXT; form <= ZARR_EXPLAIN_JSON; form++)
            if (st == ZARR_OK)
                st = zarr_explanation_text(e, form, NULL, 0, &n, err);
        zarr_explanation_free(e);
        e = NULL;
    }
    zarr_array_free(a);
    return st;
}

static const struct scenario all[] = {
    {"read v3", read_v3, NULL, "v3", NULL},
    {"read v2", read_v2, NULL, NULL, NULL},
    {"read shards", read_shard, NULL, NULL, NULL},
    {"read part of a shard", read_part, NULL, NULL, NULL},
    {"read ranges", read_plain, NULL, NULL, NULL},
    {"write v3", write_v3, check_write_v3, "v3", NULL},
    {"write v2", write_v2, check_write_v2, NULL, "v2/x"},
    {"write part", write_part, check_write_part, "v3", NULL},
    {"write part of plain chunks", write_plain, check_write_plain, NULL, "g/plain"},
    {"write shards", write_shard, check_write_shard, NULL, NULL},
    {"write part of shards", write_shard_part, check_write_shard_part, NULL, NULL},
    {"read chunks that differ", read_edges, NULL, "edges", NULL},
    {"read shards that differ", read_uneven, NULL, "uneven", NULL},
    {"read shards in whole", read_whole, NULL, "whole", NULL},
    {"write chunks that differ", write_edges, check_write_edges, "edges", NULL},
    {"write shards that differ", write_uneven, check_write_uneven, "uneven", NULL},
    {"write shards in whole", write_whole, check_write_whole, "whole", NULL},
    {"shrink", shrink, check_shrink, NULL, NULL},
    {"append", append, check_append, NULL, NULL},
    {"submit", submit, NULL, NULL, NULL},
    {"explain", explain, NULL, NULL, NULL},
};
const struct scenarios element_scenarios = {all, sizeof all / sizeof *all};
