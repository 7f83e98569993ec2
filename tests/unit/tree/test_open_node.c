/*
 * unit/tree/test_open_node.c - nodes of either kind in one call, and what opening costs
 * in a store that is far away: which documents it asks for, and which of them together.
 */
#include "node/node.h"
#include "unit/array/array_test.h"

#define V3_GROUP "{\"zarr_format\":3,\"node_type\":\"group\"}"
#define V3_BOTH                                                                          \
    "{\"zarr_format\":3,\"node_type\":\"group\",\"consolidated_metadata\":{\"kind\":"    \
    "\"inline\",\"must_understand\":false,\"metadata\":{}}}"

#define V3_LISTS_A                                                                       \
    "{\"zarr_format\":3,\"node_type\":\"group\",\"consolidated_metadata\":{\"kind\":"    \
    "\"inline\",\"must_understand\":false,\"metadata\":{\"a\":{\"zarr_format\":3,"       \
    "\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"uint8\",\"chunk_grid\":"      \
    "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"                    \
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,"                    \
    "\"codecs\":[{\"name\":\"bytes\"}]}}}}"

/* ---- a store that writes down what it is asked for ------------------------ */

static struct {
    zarr_store *below;
    const char *deny; /* names of documents that it refuses */
    char log[512];    /* the names of one journey, with a semicolon after them */
} far;

static void far_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    *out = (zarr_store_caps){.struct_size = sizeof *out, .flags = ZARR_STORE_CAP_LIST};
}

static void far_submit(void *self, zarr_store_op **ops, uint64_t n,
                       void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                       void *arg)
{
    const char *names[8];

    (void)self;
    assert_true(n <= ZR_COUNT(names));
    for (uint64_t i = 0; i < n; i++) {
        const char *slash = strrchr(ops[i]->key, '/');

        names[i] = slash ? slash + 1 : ops[i]->key;
        assert_int_equal(ops[i]->verb, ZARR_STORE_GET);
        strcat(strcat(far.log, names[i]), i + 1 < n ? " " : ";");
    }
    for (uint64_t i = n; i-- > 0;) {
        zarr_error err = {0};

        if (far.deny && strstr(far.deny, names[i])) {
            ops[i]->status = zr_fail(&err, ZARR_ERR_DENIED, "%s: 403", names[i]);
            err.os_code = ops[i]->os_code = 403;
            err.os_domain = ZARR_OS_STORE;
        } else {
            (void)zr_store_run_one(far.below, ops[i], &err);
        }
        done(arg, ops[i], ops[i]->status ? &err : NULL);
    }
}

static zarr_status far_list(void *self, const char *prefix, uint32_t how,
                            zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                            zarr_error *err)
{
    (void)self;
    return zarr_store_list(far.below, prefix, how, fn, user, cancel, err);
}

static const zarr_store_vtable far_vtable = {.struct_size = sizeof far_vtable,
                                             .name = "far",
                                             .caps = far_caps,
                                             .submit = far_submit,
                                             .list = far_list};

static void far_open(struct world *w)
{
    world_open(w, WORLD_MEMORY);
    zarr_array_free(make_array(w, "v2/a", 2, 4, 4));
    zarr_array_free(make_array(w, "v3/a", 3, 4, 4));
    put_text(w, "v2/.zattrs", "{\"k\":1}");
    put_text(w, "v2/.zmetadata", "{\"zarr_consolidated_format\":1,\"metadata\":{}}");
    put_text(w, "v3/zarr.json", V3_GROUP);
    zarr_array_free(make_array(w, "mixed/a", 2, 4, 4));
    put_text(w, "mixed/zarr.json", V3_GROUP);
    put_text(w, "both/zarr.json", V3_BOTH);
    put_text(w, "lists/zarr.json", V3_LISTS_A);
    far.below = w->store;
    far.deny = NULL;
    assert_ok(zarr_store_open_custom(&w->store, w->ctx, &far_vtable, NULL, NULL, &terr));
}

static void far_close(struct world *w)
{
    zarr_store_free(far.below);
    world_close(w);
}

/* ---- opens ---------------------------------------------------------------- */

enum call {
    ARRAY,
    GROUP,
    NODE,
    PROBE
};

static zarr_status open_as(struct world *w, enum call call, const char *path,
                           int32_t format, uint32_t consolidated)
{
    const zarr_array_open_options ao = {.struct_size = sizeof ao, .zarr_format = format};
    const zarr_group_open_options go = {
        .struct_size = sizeof go, .zarr_format = format, .consolidated = consolidated};
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    uint32_t kind;
    int32_t found;
    zarr_status st = ZARR_ERR_INVALID;

    far.log[0] = '\0';
    switch (call) {
    case ARRAY:
        st = zarr_array_open(&a, w->store, path, &ao, &terr);
        break;
    case GROUP:
        st = zarr_group_open(&g, w->store, path, &go, &terr);
        break;
    case NODE:
        st = zarr_node_open(&a, &g, w->store, path, &ao, &go, &terr);
        assert_int_equal((a != NULL) + (g != NULL), st == ZARR_OK);
        break;
    case PROBE:
        st = zarr_node_probe(w->store, path, &kind, &found, NULL, &terr);
        break;
    }
    if (g && zarr_group_zarr_format(g) == 2)
        assert_non_null(strstr(zarr_group_attributes(g), "\"k\": 1"));
    zarr_array_free(a);
    zarr_group_free(g);
    return st;
}

static const struct journey_row {
    enum call call;
    const char *path;
    int32_t format;
    uint32_t consolidated;
    const char *deny, *log;
    zarr_status status;
} rows[] = {
    {GROUP, "v3", 0, 0, NULL, "zarr.json;", ZARR_OK},
    {GROUP, "both", 0, 0, NULL, "zarr.json;", ZARR_OK},
    {ARRAY, "v3/a", 0, 0, NULL, "zarr.json;", ZARR_OK},
    {NODE, "v3", 0, 0, NULL, "zarr.json;", ZARR_OK},
    {NODE, "v3/a", 0, 0, NULL, "zarr.json;", ZARR_OK},
    {PROBE, "v3/a", 0, 0, NULL, "zarr.json;", ZARR_OK},
    {GROUP, "v2", 0, 0, NULL, "zarr.json;.zgroup .zattrs .zmetadata;", ZARR_OK},
    {GROUP, "v2", 2, 0, NULL, ".zgroup .zattrs .zmetadata;", ZARR_OK},
    {GROUP, "v2", 2, ZARR_CONSOLIDATED_NEVER, NULL, ".zgroup .zattrs;", ZARR_OK},
    {ARRAY, "v2/a", 0, 0, NULL, "zarr.json;.zarray .zattrs;", ZARR_OK},
    {ARRAY, "v2/a", 2, 0, NULL, ".zarray .zattrs;", ZARR_OK},
    {NODE, "v2", 0, 0, NULL, "zarr.json;.zarray .zgroup .zattrs .zmetadata;", ZARR_OK},
    {NODE, "v2/a", 0, 0, NULL, "zarr.json;.zarray .zgroup .zattrs .zmetadata;", ZARR_OK},
    {NODE, "v2/a", 2, ZARR_CONSOLIDATED_NEVER, NULL, ".zarray .zgroup .zattrs;", ZARR_OK},
    {PROBE, "v2", 0, 0, NULL, "zarr.json;.zarray .zgroup;", ZARR_OK},
    {NODE, "none", 0, 0, NULL, "zarr.json;.zarray .zgroup .zattrs .zmetadata;",
     ZARR_ERR_NOT_FOUND},
    {PROBE, "none", 0, 0, NULL, "zarr.json;.zarray .zgroup;", ZARR_OK},
    /* one name is refused, another one is there */
    {GROUP, "v2", 0, 0, "zarr.json .zarray .zmetadata",
     "zarr.json;.zgroup .zattrs .zmetadata;", ZARR_OK},
    {NODE, "v2", 0, 0, "zarr.json .zarray .zmetadata",
     "zarr.json;.zarray .zgroup .zattrs .zmetadata;", ZARR_OK},
    {NODE, "v2/a", 0, 0, "zarr.json .zgroup .zmetadata",
     "zarr.json;.zarray .zgroup .zattrs .zmetadata;", ZARR_OK},
    {ARRAY, "v2/a", 0, 0, "zarr.json .zattrs", "zarr.json;.zarray .zattrs;", ZARR_OK},
    /* the first refusal is the error if nothing else is there */
    {NODE, "none", 0, 0, "zarr.json", "zarr.json;.zarray .zgroup .zattrs .zmetadata;",
     ZARR_ERR_DENIED},
    {NODE, "v2", 2, 0, ".zgroup", ".zarray .zgroup .zattrs .zmetadata;.zgroup;",
     ZARR_ERR_DENIED},
};

static void test_journeys(void **state)
{
    struct world w;

    (void)state;
    far_open(&w);
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        const struct journey_row *r = &rows[i];

        far.deny = r->deny;
        terr.message[0] = '\0';
        if (open_as(&w, r->call, r->path, r->format, r->consolidated) != r->status ||
            strcmp(far.log, r->log) != 0)
            fail_msg("row %zu: %s (%s)", i, far.log, terr.message);
    }
    far_close(&w);
}

/* The format of the group is tried first, so a v2 node costs no zarr.json. */
static void test_members(void **state)
{
    static const struct {
        const char *group, *path, *log;
    } members[] = {{"v2", "a", ".zarray .zgroup .zattrs .zmetadata;"},
                   {"v3", "a", "zarr.json;"}};
    const zarr_group_open_options never = {.struct_size = sizeof never,
                                           .consolidated = ZARR_CONSOLIDATED_NEVER},
                                  any = {.struct_size = sizeof any};
    const zarr_array_open_options array_never = {.struct_size = sizeof array_never,
                                                 .consolidated = ZARR_CONSOLIDATED_NEVER};
    struct world w;
    zarr_group *g = NULL, *in = NULL;
    zarr_array *a = NULL;

    (void)state;
    far_open(&w);
    for (size_t i = 0; i < ZR_COUNT(members); i++) {
        assert_ok(zarr_group_open(&g, w.store, members[i].group, &never, &terr));
        far.log[0] = '\0';
        assert_ok(zarr_group_open_node(&a, &in, g, members[i].path, NULL, NULL, &terr));
        assert_non_null(a);
        assert_null(in);
        assert_string_equal(far.log, members[i].log);
        zarr_array_free(a);
        far.log[0] = '\0';
        assert_ok(zarr_group_open_array(&a, g, members[i].path, NULL, &terr));
        assert_string_equal(far.log, i == 0 ? ".zarray .zattrs;" : "zarr.json;");
        zarr_array_free(a);
        assert_ok(zarr_group_open_node(&a, &in, g, "", NULL, &never, &terr));
        assert_string_equal(zarr_group_path(in), members[i].group);
        zarr_group_free(in);
        assert_status(zarr_group_open_node(&a, &in, g, "none", NULL, NULL, &terr),
                      ZARR_ERR_NOT_FOUND);
        assert_says("there is no array or group");
        zarr_group_free(g);
    }
    assert_ok(zarr_group_open(&g, w.store, "both", NULL, &terr)); /* lists nothing */
    far.log[0] = '\0';
    assert_status(zarr_group_open_node(&a, &in, g, "a", NULL, NULL, &terr),
                  ZARR_ERR_NOT_FOUND);
    assert_string_equal(far.log, "");
    zarr_group_free(g);

    /* the options of the group decide whether its metadata is used */
    assert_ok(zarr_group_open(&g, w.store, "lists", NULL, &terr));
    far.log[0] = '\0';
    assert_ok(zarr_group_open_node(&a, &in, g, "a", &array_never, &any, &terr));
    assert_string_equal(far.log, "");
    zarr_array_free(a);
    assert_status(zarr_group_open_node(&a, &in, g, "a", NULL, &never, &terr),
                  ZARR_ERR_NOT_FOUND);
    assert_status(zarr_group_open_node(&a, &in, g, "a", &array_never, NULL, &terr),
                  ZARR_ERR_NOT_FOUND);
    zarr_group_free(g);
    far_close(&w);
}

static int count_arrays(void *user, const zarr_node_item *node)
{
    *(int *)user += node->kind == ZARR_NODE_ARRAY;
    return ZARR_WALK_GO_ON;
}

/* A listing asks for both documents of a v2 node together, too. */
static void test_listings(void **state)
{
    static const struct {
        const char *group, *log;
    } groups[] = {{"v2", ".zarray .zgroup;"},
                  {"v3", "zarr.json;"},
                  {"mixed", "zarr.json;.zarray .zgroup;"}};
    const zarr_group_open_options never = {.struct_size = sizeof never,
                                           .consolidated = ZARR_CONSOLIDATED_NEVER};
    struct world w;
    zarr_group *g = NULL;

    (void)state;
    far_open(&w);
    for (size_t i = 0; i < ZR_COUNT(groups); i++) {
        int n = 0;

        assert_ok(zarr_group_open(&g, w.store, groups[i].group, &never, &terr));
        far.log[0] = '\0';
        assert_ok(zarr_group_list(g, count_arrays, &n, NULL, &terr));
        assert_int_equal(n, 1);
        assert_string_equal(far.log, groups[i].log);
        zarr_group_free(g);
    }
    far_close(&w);
}

static void test_refusals(void **state)
{
    const zarr_array_open_options ao = {.struct_size = sizeof ao, .zarr_format = 2};
    const zarr_group_open_options go = {.struct_size = sizeof go, .zarr_format = 3},
                                  must = {.struct_size = sizeof must,
                                          .consolidated = ZARR_CONSOLIDATED_MUST};
    struct world w;
    zarr_array *a = NULL;
    zarr_group *g = NULL;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        zarr_array_free(make_array(&w, "g/a", 3, 4, 4));
        assert_status(zarr_node_open(&a, &g, w.store, "g", &ao, &go, &terr),
                      ZARR_ERR_INVALID);
        assert_says("zarr_format is 2 in the options of an array, and 3 in those");
        assert_status(zarr_node_open(&a, &g, w.store, "g", NULL, &must, &terr),
                      ZARR_ERR_NOT_FOUND);
        assert_says("/g: there is no consolidated metadata");
        assert_ok(zarr_node_open(&a, &g, w.store, "g/a", NULL, &must, &terr));
        zarr_array_free(a);
        assert_status(zarr_node_open(&a, &g, w.store, "a/../b", NULL, NULL, &terr),
                      ZARR_ERR_INVALID);
        put_text(&w, "g/a/zarr.json", "{\"zarr_format\":3,\"node_type\":\"array\"}");
        assert_status(zarr_node_open(&a, &g, w.store, "g/a", NULL, NULL, &terr),
                      ZARR_ERR_CORRUPT);
        w.ctx->limits.metadata_bytes = 10; /* an array's document is not so long */
        assert_status(zarr_node_open(&a, &g, w.store, "g/a", NULL, NULL, &terr),
                      ZARR_ERR_LIMIT);
        assert_null(a);
        assert_ok(zarr_node_open(&a, &g, w.store, "g", NULL, NULL, &terr));
        zarr_group_free(g);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_journeys),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_listings),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
