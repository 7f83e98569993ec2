/*
 * fault/scenarios_node.c - operations on nodes: create, open, change, list, copy, delete.
 */
#include "fault.h"

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

static zarr_status set_attribute(struct world *w, zarr_error *err)
{
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "v2/x", NULL, err);

    if (st == ZARR_OK)
        st = zarr_array_attribute_set(a, "new", "{\"v\": [1, 2, 3]}", NULL, err);
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
    world_must(zarr_node_probe(w->store, "v2", &kind, &format, NULL, &err), &err, "v2");
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
        st = zarr_group_attributes_merge(g, "{\"new\": [1, 2, 3]}", 0, NULL, err);
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
    world_must(zarr_node_probe(w->store, "g/gone/deep", &kind, &format, NULL, &err), &err,
               "probe");
    assert_int_equal(kind, ZARR_NODE_NONE);
}

static int ignore_chunk(void *user, const zarr_block_info *chunk)
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
        st = zarr_array_list_blocks(a, ZARR_BLOCKS_CHUNKS, ignore_chunk, NULL, NULL, err);
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

    world_must(zarr_node_probe(w->store, "g/gone", &from, &format, NULL, &err), &err,
               "probe");
    world_must(zarr_node_probe(w->store, "g/moved/there", &to, &format, NULL, &err), &err,
               "probe");
    if (done)
        assert_int_equal(from, ZARR_NODE_NONE);
    if (done || to != ZARR_NODE_NONE)
        world_must(world_read_rows(w, "g/moved/there/deep", 0, ROWS, &err), &err,
                   "moved");
    else
        world_must(world_read_rows(w, "g/gone/deep", 0, ROWS, &err), &err, "not moved");
}

static const struct scenario all[] = {
    {"create v3", create_v3, check_create_v3, NULL, NULL},
    {"create v2", create_v2, check_create_v2, NULL, NULL},
    {"open v3", open_v3, NULL, NULL, NULL},
    {"open v2", open_v2, NULL, NULL, NULL},
    {"attribute", set_attribute, check_attribute, NULL, NULL},
    {"create group", create_group, check_create_group, NULL, NULL},
    {"group attribute", set_group_attribute, check_group_attribute, NULL, NULL},
    {"list", list, NULL, "v3 edges uneven whole gone", NULL},
    {"consolidate", consolidate, check_consolidate, "v3", NULL},
    {"migrate", migrate, check_migrate, NULL, NULL},
    {"delete", delete_node, check_delete, "gone", NULL},
    {"inspect", inspect, NULL, NULL, NULL},
    {"copy", copy_node, NULL, NULL, NULL},
    {"move", move_node, check_move, "gone", NULL},
};
const struct scenarios node_scenarios = {all, sizeof all / sizeof *all};
