/*
 * fault/scenarios.c - the operations during which steps fail, and the contents that the
 * store may have afterwards: the old ones, or the complete result.
 */
#include "fault.h"

/* ---- checks -------------------------------------------------------------- */

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

static void check_none(struct world *w, bool done)
{
    (void)w;
    (void)done;
}

static zarr_status create_v3(struct world *w, zarr_error *err)
{
    return world_make(w, "new/deep/er", 4, err);
}

static zarr_status create_v2(struct world *w, zarr_error *err)
{
    return world_make(w, "v2/new/er", 2, err);
}

static void check_created(struct world *w, bool done, const char *path, int kind)
{
    zarr_error err;
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, path, NULL, &err);

    if (st == ZARR_ERR_NOT_FOUND && !done) {
        world_must(world_make(w, path, kind, &err), &err, "again");
        return;
    }
    world_must(st, &err, path);
    zarr_array_free(a);
}

static void check_create_v3(struct world *w, bool done)
{
    check_created(w, done, "new/deep/er", 4);
}

static void check_create_v2(struct world *w, bool done)
{
    check_created(w, done, "v2/new/er", 2);
}

static zarr_status open_v3(struct world *w, zarr_error *err)
{
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "g/shard", NULL, err);

    zarr_array_free(a);
    return st;
}

static zarr_status open_v2(struct world *w, zarr_error *err)
{
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "v2/x", NULL, err);

    zarr_array_free(a);
    return st;
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
    const int64_t shape[2] = {3, COLS};
    int32_t data[3 * COLS];
    zarr_tensor t;
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "g/shard", NULL, err);

    for (int i = 0; i < 3 * COLS; i++)
        data[i] = world_cell(1, CELLS + i);
    zarr_tensor_host(&t, data, sizeof data, 2, shape);
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

static zarr_status set_attribute(struct world *w, zarr_error *err)
{
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "v2/x", NULL, err);

    if (st == ZARR_OK)
        st = zarr_array_attribute_set(a, "new", "{\"v\": [1, 2, 3]}", err);
    zarr_array_free(a);
    return st;
}

static void check_attribute(struct world *w, bool done)
{
    char text[64];
    zarr_error err;
    zarr_array *a = NULL;
    zarr_status st;

    world_must(zarr_array_open(&a, w->store, "v2/x", NULL, &err), &err, "v2/x");
    world_must(zarr_array_attribute_get(a, "was", text, sizeof text, NULL, &err), &err,
               "was");
    st = zarr_array_attribute_get(a, "new", text, sizeof text, NULL, &err);
    if (st != ZARR_ERR_NOT_FOUND || done)
        world_must(st, &err, "new");
    zarr_array_free(a);
}

static int count_node(void *user, const zarr_node_item *node)
{
    (void)node;
    ++*(int *)user;
    return 0;
}

static zarr_status list(struct world *w, zarr_error *err)
{
    zarr_group *g = NULL;
    int n = 0;
    zarr_status st = zarr_group_open(&g, w->store, "", NULL, err);

    if (st == ZARR_OK)
        st = zarr_group_walk(g, count_node, &n, NULL, err);
    if (st == ZARR_OK)
        assert_int_equal(n, 11);
    zarr_group_free(g);
    return st;
}

/* Writes consolidated metadata and opens every node through it. */
static zarr_status consolidate(struct world *w, zarr_error *err)
{
    zarr_group *g = NULL;
    zarr_array *a = NULL;
    int n = 0;
    zarr_status st = zarr_group_open(&g, w->store, "g", NULL, err);

    if (st == ZARR_OK)
        st = zarr_group_consolidate(g, NULL, err);
    zarr_group_free(g);
    g = NULL;
    if (st == ZARR_OK)
        st = zarr_group_open(&g, w->store, "g", NULL, err);
    if (st == ZARR_OK)
        st = zarr_group_open_array(&a, g, "v3", NULL, err);
    if (st == ZARR_OK)
        st = zarr_group_walk(g, count_node, &n, NULL, err);
    zarr_array_free(a);
    zarr_group_free(g);
    return st;
}

static void check_consolidate(struct world *w, bool done)
{
    zarr_error err;
    zarr_group *g = NULL;
    zarr_array *a = NULL;

    world_must(zarr_group_open(&g, w->store, "g", NULL, &err), &err, "g");
    if (done)
        assert_int_equal(zarr_group_is_consolidated(g), 1);
    world_must(zarr_group_open_array(&a, g, "v3", NULL, &err), &err, "g/v3");
    zarr_array_free(a);
    zarr_group_free(g);
}

static zarr_status migrate(struct world *w, zarr_error *err)
{
    zarr_migrate_options opts = ZARR_MIGRATE_OPTIONS_INIT;

    opts.flags = ZARR_MIGRATE_REMOVE;
    return zarr_node_migrate(w->store, "v2", &opts, err);
}

/* Whatever was done before, the same call completes it. world_check() reads the
 * array. */
static void check_migrate(struct world *w, bool done)
{
    uint32_t kind = 0;
    int32_t format = 0;
    zarr_error err = {0};
    const zarr_status st = done ? ZARR_OK : migrate(w, &err);
    /* after one failed fsync this handle gives no guarantee any more */
    const bool spoilt = st == ZARR_ERR_IO && strstr(err.message, "earlier flush failed");

    if (!spoilt)
        world_must(st, &err, "once more");
    world_must(zarr_node_probe(w->store, "v2", &kind, &format, &err), &err, "v2");
    assert_true(format == 3 || (spoilt && format == 2));
}

static zarr_status create_group(struct world *w, zarr_error *err)
{
    const zarr_group_spec spec = {.struct_size = sizeof spec, .attributes = "{\"k\": 1}"};
    zarr_group *g = NULL;
    zarr_status st = zarr_group_create(&g, w->store, "new/deep", &spec, NULL, err);

    zarr_group_free(g);
    return st;
}

static void check_create_group(struct world *w, bool done)
{
    zarr_error err;
    zarr_group *g = NULL;
    const zarr_status st = zarr_group_open(&g, w->store, "new/deep", NULL, &err);

    if (st != ZARR_ERR_NOT_FOUND || done)
        world_must(st, &err, "new/deep");
    zarr_group_free(g);
}

static zarr_status set_group_attribute(struct world *w, zarr_error *err)
{
    zarr_group *g = NULL;
    zarr_status st = zarr_group_open(&g, w->store, "g", NULL, err);

    if (st == ZARR_OK)
        st = zarr_group_attributes_merge(g, "{\"new\": [1, 2, 3]}", 0, err);
    zarr_group_free(g);
    return st;
}

static void check_group_attribute(struct world *w, bool done)
{
    char text[64];
    zarr_error err;
    zarr_group *g = NULL;
    zarr_status st;

    world_must(zarr_group_open(&g, w->store, "g", NULL, &err), &err, "g");
    st = zarr_group_attribute_get(g, "new", text, sizeof text, NULL, &err);
    if (st != ZARR_ERR_NOT_FOUND || done)
        world_must(st, &err, "new");
    zarr_group_free(g);
}

static zarr_status delete_node(struct world *w, zarr_error *err)
{
    return zarr_node_delete(w->store, "g/gone", err);
}

/* A partial deletion is allowed if it can be repeated. */
static void check_delete(struct world *w, bool done)
{
    uint32_t kind = 0;
    int32_t format = 0;
    zarr_error err;
    zarr_status st;

    if (!done) {
        st = zarr_node_delete(w->store, "g/gone", &err);
        if (st != ZARR_ERR_NOT_FOUND)
            world_must(st, &err, "delete again");
    }
    world_must(zarr_node_probe(w->store, "g/gone/deep", &kind, &format, &err), &err,
               "probe");
    assert_int_equal(kind, ZARR_NODE_NONE);
}

static int ignore_chunk(void *user, const zarr_chunk_info *chunk)
{
    (void)user;
    (void)chunk;
    return 0;
}

static int no_fault(void *user, const zarr_verify_item *item)
{
    struct world *w = user;

    /* A chunk that could not be checked is not reported as damaged. */
    if (!atomic_load(&w->memory.blown) && item->status == ZARR_ERR_CORRUPT)
        fail_msg("%s: %s", item->key, item->message);
    return 0;
}

static zarr_status inspect(struct world *w, zarr_error *err)
{
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "g/shard", NULL, err);

    if (st == ZARR_OK)
        st = zarr_array_chunk_list(a, ZARR_CHUNKS_INNER, ignore_chunk, NULL, NULL, err);
    if (st == ZARR_OK)
        st = zarr_array_verify(a, no_fault, w, NULL, err);
    zarr_array_free(a);
    return st;
}

static zarr_status copy_node(struct world *w, zarr_error *err)
{
    return zarr_node_copy(w->store, "v2", w->store, "other", NULL, err);
}

static zarr_status move_node(struct world *w, zarr_error *err)
{
    return zarr_node_move(w->store, "g/gone", w->store, "g/moved/there", NULL, err);
}

/* If the top document exists, everything was copied; otherwise everything is where it
 * was. */
static void check_move(struct world *w, bool done)
{
    zarr_error err;
    uint32_t from = 0, to = 0;
    int32_t format = 0;

    world_must(zarr_node_probe(w->store, "g/gone", &from, &format, &err), &err, "probe");
    world_must(zarr_node_probe(w->store, "g/moved/there", &to, &format, &err), &err,
               "probe");
    if (done)
        assert_int_equal(from, ZARR_NODE_NONE);
    if (done || to != ZARR_NODE_NONE)
        world_must(world_read_rows(w, "g/moved/there/deep", 0, ROWS, &err), &err,
                   "moved");
    else
        world_must(world_read_rows(w, "g/gone/deep", 0, ROWS, &err), &err, "not moved");
}

static zarr_status submit(struct world *w, zarr_error *err)
{
    const int64_t shape[2] = {ROWS, COLS};
    int32_t data[CELLS];
    zarr_tensor t;
    zarr_request *rq = NULL;
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "g/shard", NULL, err);

    zarr_tensor_host(&t, data, sizeof data, 2, shape);
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

/* Opens an array from its text, and once more with other options. */
static zarr_status open_text(struct world *w, zarr_error *err)
{
    zarr_array_open_options opts = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    zarr_array *a = NULL, *b = NULL, *c = NULL;
    const char *text;
    zarr_status st = zarr_array_open(&a, w->store, "g/v3", NULL, err);

    opts.device_type = ZARR_DEVICE_CPU;
    opts.codec_preference = "zstd=cpu";
    if (st == ZARR_OK) {
        text = zarr_array_metadata(a);
        st = !text ? zarr_array_refresh(a, NULL, err)
                   : zarr_array_open_document(&b, w->ctx, text, NULL, "g/v3", w->store,
                                              NULL, err);
    }
    if (st == ZARR_OK && b)
        st = zarr_array_with(&c, b, &opts, err);
    zarr_array_free(c);
    zarr_array_free(b);
    zarr_array_free(a);
    return st;
}

/* Reads through a store of two, and takes a text apart. */
static zarr_status composite(struct world *w, zarr_error *err)
{
    zarr_store *chunks = NULL, *both = NULL;
    zarr_location *at = NULL;
    zarr_group *g = NULL;
    zarr_status st = zarr_store_open(&chunks, w->ctx, "memory:", NULL, err);

    if (st == ZARR_OK)
        st = zarr_store_open_composite(&both, w->store, chunks, NULL, err);
    if (st == ZARR_OK)
        st = zarr_group_open(&g, both, "g", NULL, err);
    if (st == ZARR_OK)
        st = zarr_location_parse(&at, w->ctx, "x.zarr:/g[1]", err);
    zarr_location_free(at);
    zarr_group_free(g);
    zarr_store_free(both);
    zarr_store_free(chunks);
    return st;
}

/* Makes a key that does not exist, looks at it, reads and replaces it. */
static zarr_status put_new(struct world *w, zarr_error *err)
{
    char text[3] = {'a', 'b', 'c'};
    const zarr_mem mem = {
        .device_type = ZARR_DEVICE_CPU, .handle = text, .bytes = sizeof text};
    zarr_store_value v = ZARR_STORE_VALUE_INIT;
    zarr_status st = zarr_store_put_new(w->store, "fresh", text, sizeof text, err);

    if (st == ZARR_OK)
        st = zarr_store_stat(w->store, "fresh", &v, err);
    if (st == ZARR_OK)
        st = zarr_store_read(w->store, "fresh", ZARR_STORE_SUFFIX, 2, &mem, &v, err);
    if (st == ZARR_OK)
        st = zarr_store_write(w->store, "fresh", &mem, v.has_version ? &v.version : NULL,
                              &v, err);
    return st;
}

static void check_put_new(struct world *w, bool done)
{
    char text[4];
    uint64_t bytes = sizeof text;
    zarr_error err;
    const zarr_status st = zarr_store_get(w->store, "fresh", 0, text, &bytes, NULL, &err);

    if (done || st != ZARR_ERR_NOT_FOUND) {
        world_must(st, &err, "fresh");
        assert_int_equal(bytes, 3);
        assert_true(memcmp(text, "abc", 3) == 0 || memcmp(text, "bcc", 3) == 0);
    }
}

const struct scenario scenarios[] = {
    {"create v3", create_v3, check_create_v3, NULL},
    {"create v2", create_v2, check_create_v2, NULL},
    {"open v3", open_v3, check_none, NULL},
    {"open v2", open_v2, check_none, NULL},
    {"read v3", read_v3, check_none, "v3"},
    {"read v2", read_v2, check_none, NULL},
    {"read shards", read_shard, check_none, NULL},
    {"read part of a shard", read_part, check_none, NULL},
    {"read ranges", read_plain, check_none, NULL},
    {"write v3", write_v3, check_write_v3, "v3"},
    {"write v2", write_v2, check_write_v2, NULL},
    {"write part", write_part, check_write_part, "v3"},
    {"write part of plain chunks", write_plain, check_write_plain, NULL},
    {"write shards", write_shard, check_write_shard, NULL},
    {"write part of shards", write_shard_part, check_write_shard_part, NULL},
    {"read chunks that differ", read_edges, check_none, "edges"},
    {"read shards that differ", read_uneven, check_none, "uneven"},
    {"read shards in whole", read_whole, check_none, "whole"},
    {"write chunks that differ", write_edges, check_write_edges, "edges"},
    {"write shards that differ", write_uneven, check_write_uneven, "uneven"},
    {"write shards in whole", write_whole, check_write_whole, "whole"},
    {"shrink", shrink, check_shrink, NULL},
    {"append", append, check_append, NULL},
    {"attribute", set_attribute, check_attribute, NULL},
    {"create group", create_group, check_create_group, NULL},
    {"group attribute", set_group_attribute, check_group_attribute, NULL},
    {"list", list, check_none, "v3 edges uneven whole gone"},
    {"consolidate", consolidate, check_consolidate, "v3"},
    {"migrate", migrate, check_migrate, NULL},
    {"delete", delete_node, check_delete, "gone"},
    {"inspect", inspect, check_none, NULL},
    {"copy", copy_node, check_none, NULL},
    {"move", move_node, check_move, "gone"},
    {"submit", submit, check_none, NULL},
    {"explain", explain, check_none, NULL},
    {"open a text", open_text, check_none, "v3"},
    {"composite store", composite, check_none, NULL},
    {"put a new key", put_new, check_put_new, NULL},
};
const int n_scenarios = sizeof scenarios / sizeof *scenarios;

void world_check(struct world *w, const struct scenario *s, bool done)
{
    zarr_error err;

    s->check(w, done);
    if (s->check == check_none)
        world_must(world_read_rows(w, "g/shard", 0, ROWS, &err), &err, "g/shard");
    if (s->run != write_v2)
        world_must(world_read_rows(w, "v2/x", 0, ROWS, &err), &err, "v2/x");
    if (s->run != write_plain)
        world_must(world_read_rows(w, "g/plain", 0, ROWS, &err), &err, "g/plain");
}
