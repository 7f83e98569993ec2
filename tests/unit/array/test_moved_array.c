/*
 * unit/array/test_moved_array.c - an array is moved, deleted or replaced while handles of
 * it are open. Reads and writes through these handles fail; they do not give fill values
 * or store chunks that no array has. Nor do reads give fill values in place of elements
 * that another writer removed. Arrays that are still there cost one look at the document
 * for each call that meets a missing chunk.
 */
#include "unit/conditional_caps.h"
#include "hook_store.h"

static const int kinds[] = {2, 3, 4};

static zarr_status read_some(zarr_array *a)
{
    const uint64_t shape[2] = {6, 7};
    int32_t data[6 * 7];
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    return zarr_array_read(a, NULL, &t, NULL, &terr);
}

static zarr_status read_submitted(zarr_array *a)
{
    const uint64_t shape[2] = {6, 7};
    int32_t data[6 * 7];
    zarr_request *rq = NULL;
    zarr_status st;
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    assert_ok(zarr_array_read_submit(&rq, a, NULL, &t, NULL, &terr));
    st = zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr);
    zarr_request_free(rq);
    return st;
}

static zarr_status write_some(zarr_array *a)
{
    static int32_t data[6 * 7] = {1};
    const uint64_t shape[2] = {6, 7};
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    return zarr_array_write(a, NULL, &t, NULL, &terr);
}

static zarr_status append_some(zarr_array *a)
{
    static int32_t data[2 * 7] = {1};
    const uint64_t shape[2] = {2, 7};
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    return zarr_array_append(a, 0, &t, NULL, NULL, &terr);
}

static int on_chunk(void *user, const zarr_block_info *info)
{
    (void)user;
    (void)info;
    return 0;
}

/* Each call that needs the stored array. */
static zarr_status call(int which, zarr_array *a)
{
    const uint64_t chunk[2] = {0, 0}, shape[2] = {20, 20};

    switch (which) {
    case 0:
        return read_some(a);
    case 1:
        return read_submitted(a);
    case 2:
        return write_some(a);
    case 3:
        return append_some(a);
    case 4:
        return zarr_array_resize(a, shape, NULL, &terr);
    case 5:
        return zarr_array_attribute_set(a, "a", "1", NULL, &terr);
    case 6:
        return zarr_array_block_write_encoded(a, chunk, "1234", 4, NULL, &terr);
    case 7:
        return zarr_array_block_erase(a, chunk, NULL, &terr);
    case 8:
        return zarr_array_list_blocks(a, ZARR_BLOCKS_STORED, on_chunk, NULL, NULL, &terr);
    default:
        return ZARR_OK;
    }
}

enum {
    N_CALLS = 9
};

/* Runs a check with a filled array "x" of each kind in each world. */
static void with_each_kind(void (*check)(struct world *w, zarr_array *a))
{
    struct world w;

    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            zarr_array *a;

            world_open(&w, sort);
            a = make_array(&w, "x", kinds[k], 6, 7);
            fill_array(a);
            check(&w, a);
            zarr_array_free(a);
            world_close(&w);
        }
}

static void check_deleted(struct world *w, zarr_array *a)
{
    zarr_array *b = NULL;

    assert_ok(zarr_array_open(&b, w->store, "x", NULL, &terr));
    assert_ok(zarr_node_delete(w->store, "x", &terr));
    for (int i = 0; i < N_CALLS; i++) {
        assert_status(call(i, i % 2 ? a : b), ZARR_ERR_NOT_FOUND);
        assert_non_null(strstr(terr.message, "/x: "));
        assert_int_equal(n_keys(w, "x"), 0);
    }
    zarr_array_free(b);
}

static void test_deleted(void **state)
{
    (void)state;
    with_each_kind(check_deleted);
}

static void test_moved(void **state)
{
    struct world w;
    zarr_array *a = NULL, *b = NULL;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        a = make_array(&w, "x", 3, 6, 7);
        fill_array(a);
        assert_ok(read_some(a));
        assert_ok(zarr_node_move(w.store, "x", w.store, "y", NULL, &terr));
        assert_status(read_some(a), ZARR_ERR_NOT_FOUND);
        assert_says("moved or deleted");
        assert_status(write_some(a), ZARR_ERR_NOT_FOUND);
        assert_ok(zarr_array_open(&b, w.store, "y", NULL, &terr));
        assert_int_equal(count_wrong(b, 6, 7), 0);
        zarr_array_free(a);
        zarr_array_free(b);
        world_close(&w);
    }
}

/* ---- replaced ----------------------------------------------------------- */

struct other_array {
    const char *type, *codecs, *fill, *says; /* says NULL: the same array */
    uint64_t shape[2], chunk[2];
};

static const struct other_array others[] = {
    {"int32", "[]", "-1", NULL, {6, 7}, {2, 2}},
    {"int32", "[]", "-1", NULL, {60, 7}, {2, 2}},
    {"int32", "[]", "-1", "other chunks", {6, 7}, {2, 3}},
    {"uint32", "[]", "1", "data_type", {6, 7}, {2, 2}},
    {"int32",
     "[{\"name\": \"gzip\", \"configuration\": {\"level\": 1}}]",
     "-1",
     "codecs",
     {6, 7},
     {2, 2}},
    {"int32", "[]", "-2", "fill_value", {6, 7}, {2, 2}},
};

static zarr_array *make_other(struct world *w, const struct other_array *o, int overwrite)
{
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .flags = overwrite ? ZARR_SPEC_OVERWRITE : 0,
                                  .zarr_format = 3,
                                  .ndim = 2,
                                  .shape = o->shape,
                                  .chunk_shape = o->chunk,
                                  .data_type = o->type,
                                  .fill_value = o->fill,
                                  .codecs = o->codecs};
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, w->store, "x", &spec, NULL, &terr));
    return a;
}

static void test_replaced(void **state)
{
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            world_open(&w, sort);
            a = make_other(&w, &others[0], 0);
            assert_ok(read_some(a)); /* from now on the document's version is known */
            zarr_array_free(make_other(&w, &others[i], 1));
            if (others[i].says) {
                assert_status(read_some(a), ZARR_ERR_CONFLICT);
                assert_says(others[i].says);
                assert_status(write_some(a), ZARR_ERR_CONFLICT);
                assert_int_equal(n_keys(&w, "x"), 1);
            } else {
                assert_ok(read_some(a));
                assert_ok(write_some(a));
            }
            zarr_array_free(a);
            world_close(&w);
        }
}

static void test_replaced_by_group(void **state)
{
    struct world w;
    zarr_array *a = NULL;
    zarr_group *g = NULL;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_array(&w, "x", 3, 6, 7);
    assert_ok(read_some(a));
    assert_ok(zarr_node_delete(w.store, "x", &terr));
    assert_ok(group_create(&g, w.store, "x", 3, NULL, 0, &terr));
    assert_status(read_some(a), ZARR_ERR_CONFLICT);
    assert_status(write_some(a), ZARR_ERR_CONFLICT);
    zarr_group_free(g);
    zarr_array_free(a);
    world_close(&w);
}

/* A handle knows what others did to attributes and shape when it looks again. */
static void test_other_changes(void **state)
{
    const uint64_t larger[2] = {8, 9};
    struct world w;
    zarr_array *a = NULL, *b = NULL;

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        world_open(&w, WORLD_LOCAL);
        a = make_array(&w, "x", kinds[k], 6, 7);
        assert_ok(zarr_array_open(&b, w.store, "x", NULL, &terr));
        assert_ok(read_some(b));
        assert_ok(zarr_array_attribute_set(a, "a", "1", NULL, &terr));
        assert_ok(read_some(b));
        assert_ok(zarr_array_resize(a, larger, NULL, &terr));
        assert_ok(read_some(b));
        assert_ok(write_some(b));
        zarr_array_free(a);
        zarr_array_free(b);
        world_close(&w);
    }
}

/* ---- what a check costs, and races with it ------------------------------ */

static int n_looks, n_gets; /* at the document */

static void count_looks(const zarr_store_op *op, int done)
{
    const size_t n = strlen(op->key);
    const int document = n > 9 && strcmp(op->key + n - 9, "zarr.json") == 0;

    if (!done && document) {
        n_looks++;
        n_gets += op->verb == ZARR_STORE_GET && op->mem.bytes > 0;
    }
}

static void read_line(uint64_t n)
{
    int32_t data[64];
    const uint64_t shape = (uint64_t)n;
    zarr_selection *sel = NULL;
    zarr_tensor t;
    const uint64_t zero = 0;

    zarr_tensor_host(&t, NULL, data, sizeof data, 1, &shape);
    assert_ok(zarr_selection_box(&sel, 1, zarr_array_shape(mine), &zero, &n, &terr));
    assert_ok(zarr_array_read(mine, sel, &t, NULL, &terr));
    zarr_selection_free(sel);
}

static void write_line(uint64_t at, int32_t value)
{
    const uint64_t shape = 1;
    const uint64_t one = 1;
    zarr_selection *sel = NULL;
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, &value, sizeof value, 1, &shape);
    assert_ok(zarr_selection_box(&sel, 1, zarr_array_shape(mine), &at, &one, &terr));
    assert_ok(zarr_array_write(mine, sel, &t, NULL, &terr));
    zarr_selection_free(sel);
}

static void test_looks(void **state)
{
    static const uint32_t caps[] = {0, CAPS_CONDITIONAL, ZARR_STORE_CAP_IMMUTABLE};

    (void)state;
    for (int i = 0; i < 3; i++) {
        begin(caps[i], 3, 32, 4);
        hook = count_looks;
        n_looks = n_gets = 0;
        write_line(0, 5);
        assert_int_equal(n_looks, i == 2 ? 0 : 2);
        n_looks = 0;
        read_line(4); /* nothing is missing */
        assert_int_equal(n_looks, 0);
        read_line(32); /* seven chunks are */
        read_line(8);
        assert_int_equal(n_looks, i == 2 ? 0 : 2);
        /* a store with versions is asked for the text once */
        assert_int_equal(n_gets, i == 0 ? 4 : i == 1 ? 1 : 0);
        end();
    }
}

/* Another process deletes the array right after the first check, which the write finds
 * out at its end. */
static void delete_at_put(const zarr_store_op *op, int done)
{
    if (!done && is_at(op, ZARR_STORE_PUT, "a/c/")) {

        assert_ok(zarr_store_erase(other, "a/zarr.json", NULL, &terr));
    }
}

static void test_deleted_meanwhile(void **state)
{
    const uint64_t shape = 32;
    static int32_t data[32] = {1, 2, 3};
    zarr_tensor t;

    (void)state;
    begin(0, 3, 32, 4);
    hook = delete_at_put;
    zarr_tensor_host(&t, NULL, data, sizeof data, 1, &shape);
    assert_status(zarr_array_write(mine, NULL, &t, NULL, &terr), ZARR_ERR_NOT_FOUND);
    assert_says("moved or deleted");
    end();
}

/* ---- shrunk --------------------------------------------------------------- */

/* Reads two rows in one of several ways. */
static zarr_status read_rows(zarr_array *a, uint64_t first, int way)
{
    const uint64_t start[2] = {first, 0}, count[2] = {2, 7};
    const uint64_t shape[2] = {2, 7};
    const int64_t rows[2] = {(int64_t)first + 1, (int64_t)first};
    const zarr_dim_selection dims[1] = {
        {.kind = ZARR_DIM_LIST, .list = rows, .n_list = 2}};
    int32_t data[2 * 7];
    zarr_selection *sel = NULL;
    zarr_io_part part = {.status = ZARR_OK};
    zarr_tensor t;
    zarr_status st;

    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    if (way == 1)
        assert_ok(zarr_selection_dims(&sel, 2, zarr_array_shape(a), 1, dims, &terr));
    else
        assert_ok(zarr_selection_box(&sel, 2, zarr_array_shape(a), start, count, &terr));
    part.selection = sel;
    part.tensor = &t;
    st = way == 2 ? zarr_array_read_many(a, &part, 1, NULL, &terr)
                  : zarr_array_read(a, sel, &t, NULL, &terr);
    zarr_selection_free(sel);
    return st;
}

/* Elements that another writer removed are not read as fill values. */
static void check_shrunk(struct world *w, zarr_array *a)
{
    const uint64_t smaller[2] = {2, 7}, larger[2] = {6, 8};
    zarr_array *b = NULL;

    assert_ok(zarr_array_open(&b, w->store, "x", NULL, &terr));
    assert_ok(zarr_array_recheck(b, NULL, &terr));
    assert_ok(zarr_array_resize(a, smaller, NULL, &terr));
    for (int i = 0; i < 2; i++) { /* also when the version is known */
        assert_status(read_some(b), ZARR_ERR_CONFLICT);
        assert_says("dimension 0 had length 6");
        assert_status(read_submitted(b), ZARR_ERR_CONFLICT);
        assert_status(zarr_array_recheck(b, NULL, &terr), ZARR_ERR_CONFLICT);
        for (int way = 0; way < 3; way++) {
            assert_status(read_rows(b, 1, way), ZARR_ERR_CONFLICT);
            assert_ok(read_rows(b, 0, way));
        }
    }
    assert_ok(zarr_array_resize(a, larger, NULL, &terr));
    assert_ok(read_some(b)); /* the elements that are there now */
    assert_ok(zarr_array_recheck(b, NULL, &terr));
    zarr_array_free(b);
}

static void test_shrunk(void **state)
{
    (void)state;
    with_each_kind(check_shrunk);
}

/* A shrink inside of a shard leaves the object, without some of its chunks. */
static void test_inner_chunks(void **state)
{
    static const int32_t one[4] = {1, 2, 3, 4};
    const uint64_t shape[2] = {2, 2};
    const uint64_t zero[2] = {0, 0}, inner[2] = {2, 2}, shard[2] = {4, 4};
    int32_t data[4 * 4];
    zarr_selection *sel = NULL;
    zarr_tensor t;

    (void)state;
    begin(0, 0, 0, 0);
    mine = make_array(&world, "x", 4, 4, 4);
    assert_ok(zarr_selection_box(&sel, 2, shard, zero, inner, &terr));
    zarr_tensor_host(&t, NULL, (void *)(uintptr_t)one, sizeof one, 2, shape);
    assert_ok(zarr_array_write(mine, sel, &t, NULL, &terr));
    zarr_selection_free(sel);
    hook = count_looks;
    n_looks = 0;
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, (const uint64_t[]){4, 4});
    assert_ok(zarr_array_read(mine, NULL, &t, NULL, &terr));
    assert_int_equal(data[5], 4);
    assert_int_equal(data[15], -1);
    assert_int_equal(n_looks, 1);
    end();
}

/* ---- what is never looked at --------------------------------------------- */

/* An array that was opened from a text has no document to look at. */
static void check_text(struct world *w, zarr_array *a)
{
    zarr_array *b = NULL;

    assert_ok(zarr_array_open_document(&b, w->ctx, zarr_array_metadata(a), NULL, "x",
                                       w->store, NULL, &terr));
    assert_ok(zarr_node_delete(w->store, "x", &terr));
    assert_status(read_some(a), ZARR_ERR_NOT_FOUND);
    assert_ok(read_some(b));
    assert_ok(write_some(b));
    zarr_array_free(b);
}

static void test_text(void **state)
{
    (void)state;
    with_each_kind(check_text);
}

/* It is the store of the metadata that tells. */
static void test_chunk_store(void **state)
{
    zarr_array_open_options opts = {.struct_size = sizeof opts};
    struct world w;
    zarr_store *chunks = NULL;
    zarr_array *a = NULL, *b = NULL;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    assert_ok(zarr_store_open(&chunks, w.ctx, "memory:", NULL, &terr));
    opts.chunk_store = chunks;
    zarr_array_free(make_array(&w, "x", 3, 6, 7));
    assert_ok(zarr_array_open(&a, w.store, "x", &opts, &terr));
    assert_ok(read_some(a));
    assert_ok(write_some(a)); /* chunks has no document, and need not */
    assert_ok(zarr_store_put(chunks, "x/zarr.json", zarr_array_metadata(a),
                             strlen(zarr_array_metadata(a)), NULL, &terr));
    assert_ok(zarr_array_open(&b, w.store, "x", NULL, &terr));
    assert_ok(zarr_store_erase_prefix(chunks, "x/c", NULL, &terr));
    assert_ok(zarr_node_delete(w.store, "x", &terr));
    assert_status(read_some(a), ZARR_ERR_NOT_FOUND);
    assert_status(write_some(a), ZARR_ERR_NOT_FOUND);
    assert_status(read_some(b), ZARR_ERR_NOT_FOUND);
    zarr_array_free(a);
    zarr_array_free(b);
    zarr_store_free(chunks);
    world_close(&w);
}

/* ---- consolidated metadata ---------------------------------------------- */

static zarr_array *open_below(struct world *w, zarr_group **g)
{
    zarr_array *a = NULL;

    assert_ok(zarr_group_open(g, w->store, "", NULL, &terr));
    assert_ok(zarr_group_open_array(&a, *g, "x", NULL, &terr));
    return a;
}

static void test_consolidated(void **state)
{
    struct world w;
    zarr_group *g = NULL;
    zarr_array *a = NULL;

    (void)state;
    for (int absent = 0; absent < 2; absent++)
        for (int format = 2; format <= 3; format++) {
            const char *doc = format == 2 ? "x/.zarray" : "x/zarr.json";

            world_open(&w, WORLD_LOCAL);
            assert_ok(group_create(&g, w.store, "", format, NULL, 0, &terr));
            zarr_group_free(g);
            zarr_array_free(make_array(&w, "x", format, 6, 7));
            assert_ok(consolidate_at(w.store, "", NULL, &terr));
            if (absent)
                assert_ok(zarr_store_erase(w.store, doc, NULL, &terr));
            a = open_below(&w, &g);
            if (absent) { /* the group's document is the array's only one */
                assert_ok(read_some(a));
                assert_ok(write_some(a));
            } else {
                assert_ok(read_some(a));
                assert_ok(zarr_store_erase(w.store, doc, NULL, &terr));
                assert_status(read_some(a), ZARR_ERR_NOT_FOUND);
            }
            zarr_array_free(a);
            zarr_group_free(g);
            world_close(&w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deleted),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_replaced_by_group),
        cmocka_unit_test(test_other_changes),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_deleted_meanwhile),
        cmocka_unit_test(test_shrunk),
        cmocka_unit_test(test_inner_chunks),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_chunk_store),
        cmocka_unit_test(test_consolidated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
