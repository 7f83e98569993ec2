/*
 * unit/array/test_leftover.c - what an interrupted resize or append leaves outside of the
 * array's shape: stores with versions and no locks, records that lie, what
 * ZARR_RESIZE_KEEP_CHUNKS and other programs leave, what other calls do with the record,
 * and what is flushed before what. fault/test_leftover.c kills processes.
 */
#include "unit/conditional_caps.h"
#include "hook_store.h"

#include <zarrc/check.h>

#include <pthread.h>
#include <stdbool.h>

static const char record[] = "a/.zarrc-leftovers";

/* A store that cannot erase a version keeps a record of nothing. */
static bool has_record(zarr_store *s)
{
    char text[64] = "";
    uint64_t n = sizeof text - 1;

    return zarr_store_get(s, record, 0, text, &n, NULL, NULL) == ZARR_OK &&
           !strstr(text, "\"extent\": [0]");
}

static void put_record(zarr_store *s, const char *text)
{
    assert_ok(zarr_store_put(s, record, text, strlen(text), NULL, &terr));
}

/* Changes the shape in the document from 50 to 10, as another program would. */
static void cut_document(zarr_store *s)
{
    char text[4096] = "", *at;
    uint64_t n = sizeof text - 1;

    assert_ok(zarr_store_get(s, "a/zarr.json", 0, text, &n, NULL, &terr));
    at = strstr(text, "50");
    assert_non_null(at);
    *at = '1';
    assert_ok(zarr_store_put(s, "a/zarr.json", text, n, NULL, &terr));
}

static void expect(zarr_array *a, uint64_t n_kept, uint64_t n)
{
    int32_t data[256];

    read_all(a, data, n);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(data[i], i < n_kept ? 1 + (int32_t)i : 0);
}

/* ---- stores without locks ---------------------------------------------------- */

/* Where operations begin to fail. */
static int64_t fails_at;

static void stop_there(const zarr_store_op *op, int done)
{
    if (!done && atomic_fetch_add(&n_hooked, 1) + 1 >= fails_at)
        ((zarr_store_op *)(uintptr_t)op)->key = "stopped/*"; /* goes nowhere */
}

enum what {
    SHRINK,
    APPEND,
    APPEND_AFTER_SHRINK, /* a shrink that cleared nothing */
    N_WHAT
};

static zarr_status run_stopped(enum what what)
{
    const uint64_t small = 10;
    zarr_status st;

    assert_ok(append(mine, 1, 50));
    if (what == APPEND_AFTER_SHRINK) {
        cut_document(world.store);
        put_record(world.store, "{\"zarrc_leftovers\": 1, \"extent\": [50]}");
        assert_ok(zarr_array_refresh(mine, NULL, NULL, &terr));
    }
    n_hooked = 0;
    hook = stop_there;
    st = what == SHRINK ? zarr_array_resize(mine, &small, NULL, NULL)
                        : append(mine, what == APPEND ? 51 : 11, 7);
    unhook();
    return st;
}

/* Elements that were reserved may have been written. */
static void expect_reserved(zarr_array *a, uint64_t n_kept, uint64_t n_reserved,
                            uint64_t n)
{
    int32_t data[256];

    read_all(a, data, n);
    for (uint64_t i = 0; i < n; i++) {
        const int32_t value = (int32_t)i + 1;

        assert_true(data[i] == (i < n_kept ? value : 0) ||
                    (i >= n_kept && i < n_reserved && data[i] == value));
    }
}

/* Returns false if the call needs fewer operations. */
static bool stop_and_grow(enum what what, uint32_t caps)
{
    const uint64_t large = 60;
    uint64_t n, n_base = what == APPEND_AFTER_SHRINK ? 10 : 50;
    zarr_status st;
    bool reached;

    begin(caps, 3, 0, 8);
    st = run_stopped(what);
    reached = n_hooked >= fails_at;
    assert_true(reached || st == ZARR_OK);
    assert_ok(zarr_array_open(&theirs, other, "a", NULL, &terr));
    n = zarr_array_shape(theirs)[0];
    assert_ok(zarr_array_resize(theirs, &large, NULL, &terr));
    if (caps && n > n_base) /* the append has published its shape first */
        expect_reserved(theirs, n_base, n, 60);
    else
        expect(theirs, n, 60);
    assert_false(has_record(other));
    end();
    return reached;
}

/* After the k-th operation no write reaches the store, as if the process were killed. */
static void test_stopped(void **state)
{
    static const uint32_t caps[] = {0, CAPS_CONDITIONAL,
                                    CAPS_CONDITIONAL & ~ZARR_STORE_CAP_ERASE_IF_VERSION};

    (void)state;
    for (size_t c = 0; c < sizeof caps / sizeof *caps; c++)
        for (enum what what = 0; what < N_WHAT; what++)
            for (fails_at = 1; stop_and_grow(what, caps[c]);)
                fails_at++;
}

/* ---- records that lie ---------------------------------------------------------- */

static void test_records(void **state)
{
    static const char *const texts[] = {
        "",
        "no JSON",
        "[]",
        "{\"zarrc_leftovers\": 1}",
        "{\"zarrc_leftovers\": 2, \"extent\": [50]}",
        "{\"zarrc_leftovers\": 1, \"extent\": [50, 50]}",
        "{\"zarrc_leftovers\": 1, \"extent\": [-1]}",
        "{\"zarrc_leftovers\": 1, \"extent\": [18446744073709551615]}",
        "{\"zarrc_leftovers\": 1, \"extent\": [1000000000000000]}",
        "{\"zarrc_leftovers\": 1, \"extent\": [50]}"};
    const uint64_t large = 60;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        begin(0, 3, 0, 8);
        assert_ok(append(mine, 1, 50));
        cut_document(world.store);
        put_record(world.store, texts[i]);
        assert_ok(zarr_array_resize(mine, &large, NULL, &terr));
        expect(mine, 10, 60);
        assert_false(has_record(world.store));
        end();
    }
}

/* ---- what has no record --------------------------------------------------------- */

struct seen {
    int n_notes, n_warnings;
};

static int see(void *user, const zarr_finding *f)
{
    struct seen *s = user;

    assert_int_equal(f->what, ZARR_FINDING_OUTSIDE);
    assert_null(f->block);
    s->n_notes += f->severity == ZARR_SEVERITY_NOTE;
    s->n_warnings += f->severity == ZARR_SEVERITY_WARNING;
    return 0;
}

static struct seen verify(zarr_store *store)
{
    struct seen s = {0, 0};
    const zarr_verify_options opts = {
        .struct_size = sizeof opts, .tell = see, .tell_user = &s};
    zarr_verify_result r = ZARR_VERIFY_RESULT_INIT;

    assert_ok(zarr_node_verify(store, "a", &r, &opts, &terr));
    assert_int_equal(r.n_errors, 0);
    assert_int_equal(r.n_notes, s.n_notes);
    assert_int_equal(r.n_warnings, s.n_warnings);
    return s;
}

/* KEEP_CHUNKS and other programs leave elements without a record. A grow shows them;
 * verify notes them; clear_leftovers keeps them; a resize to the same shape clears them.
 */
static void test_without_record(void **state)
{
    const uint64_t small = 10, large = 60;
    struct seen s;
    int found = 1;

    (void)state;
    for (int by = 0; by < 2; by++) {
        begin(0, 3, 0, 8);
        assert_ok(append(mine, 1, 50));
        s = verify(world.store);
        assert_int_equal(s.n_notes + s.n_warnings, 0);
        if (by == 0)
            assert_ok(zarr_array_resize(
                mine, &small,
                &(const zarr_shape_options){.struct_size = sizeof(zarr_shape_options),
                                            .flags = ZARR_RESIZE_KEEP_CHUNKS},
                &terr));
        else
            cut_document(world.store);
        assert_false(has_record(world.store));
        s = verify(world.store);
        assert_int_equal(s.n_notes,
                         2); /* chunks outside, and elements of a border chunk */
        assert_int_equal(s.n_warnings, 0);
        assert_ok(zarr_array_clear_leftovers(mine, &found, NULL, &terr));
        assert_int_equal(found, 0);
        assert_ok(zarr_array_resize(mine, &large, NULL, &terr));
        expect(mine, 50, 60);
        assert_ok(zarr_array_resize(
            mine, &small,
            &(const zarr_shape_options){.struct_size = sizeof(zarr_shape_options),
                                        .flags = ZARR_RESIZE_KEEP_CHUNKS},
            &terr));
        assert_ok(zarr_array_resize(mine, &small, NULL, &terr)); /* the same shape */
        s = verify(world.store);
        assert_int_equal(s.n_notes + s.n_warnings, 0);
        assert_ok(zarr_array_resize(mine, &large, NULL, &terr));
        expect(mine, 10, 60);
        end();
    }
}

/* With KEEP_CHUNKS: a shrink first clears what was left, so that it keeps only what it
 * cut off itself; a grow shows all, and the record goes when it says nothing more. */
static void test_keep(void **state)
{
    const uint64_t smaller = 4, small = 10, some = 30, large = 60;

    (void)state;
    begin(0, 3, 0, 8);
    assert_ok(append(mine, 1, 50));
    cut_document(world.store);
    put_record(world.store, "{\"zarrc_leftovers\": 1, \"extent\": [50]}");
    assert_ok(zarr_array_resize(
        mine, &smaller,
        &(const zarr_shape_options){.struct_size = sizeof(zarr_shape_options),
                                    .flags = ZARR_RESIZE_KEEP_CHUNKS},
        &terr));
    assert_false(has_record(world.store));
    assert_ok(zarr_array_resize(mine, &large, NULL, &terr));
    expect(mine, 10, 60);
    end();

    begin(0, 3, 0, 8);
    assert_ok(append(mine, 1, 50));
    cut_document(world.store);
    put_record(world.store, "{\"zarrc_leftovers\": 1, \"extent\": [50]}");
    assert_ok(zarr_array_resize(
        mine, &some,
        &(const zarr_shape_options){.struct_size = sizeof(zarr_shape_options),
                                    .flags = ZARR_RESIZE_KEEP_CHUNKS},
        &terr));
    expect(mine, 30, 30);
    assert_true(has_record(world.store));
    assert_ok(zarr_array_resize(
        mine, &large,
        &(const zarr_shape_options){.struct_size = sizeof(zarr_shape_options),
                                    .flags = ZARR_RESIZE_KEEP_CHUNKS},
        &terr));
    expect(mine, 50, 60);
    assert_false(has_record(world.store));
    assert_ok(zarr_array_resize(mine, &small, NULL, &terr));
    assert_status(zarr_array_clear_leftovers(
                      mine, NULL,
                      &(const zarr_shape_options){
                          .struct_size = sizeof(zarr_shape_options), .flags = 2},
                      &terr),
                  ZARR_ERR_UNSUPPORTED);
    end();
}

/* An append overwrites what it shows; an older record stays until all is cleared. */
static void test_append_over(void **state)
{
    const uint64_t large = 60;
    struct seen s;
    int found = 0;

    (void)state;
    begin(0, 3, 0, 8);
    assert_ok(append(mine, 1, 50));
    cut_document(world.store);
    put_record(world.store, "{\"zarrc_leftovers\": 1, \"extent\": [50]}");
    assert_ok(append(mine, 11, 9));
    assert_true(has_record(world.store));
    expect(mine, 19, 19);
    s = verify(world.store);
    assert_int_equal(s.n_warnings, 1);
    assert_ok(zarr_array_clear_leftovers(
        mine, &found,
        &(const zarr_shape_options){.struct_size = sizeof(zarr_shape_options),
                                    .flags = ZARR_LEFTOVERS_LOOK},
        &terr));
    assert_int_equal(found, 1);
    assert_true(has_record(world.store));
    assert_ok(zarr_array_clear_leftovers(mine, &found, NULL, &terr));
    assert_int_equal(found, 1);
    assert_false(has_record(world.store));
    s = verify(world.store);
    assert_int_equal(s.n_notes + s.n_warnings, 0);
    assert_ok(zarr_array_resize(
        mine, &large,
        &(const zarr_shape_options){.struct_size = sizeof(zarr_shape_options),
                                    .flags = ZARR_RESIZE_KEEP_CHUNKS},
        &terr));
    expect(mine, 19, 60);
    end();
}

/* Text has elements whose bytes are elsewhere, and a fill value that is no zero. */
static void test_text(void **state)
{
    const uint64_t length = 20, chunk = 8, small = 3;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = &length,
                                  .chunk_shape = &chunk,
                                  .fill_value = "\"none\"",
                                  .data_type = "string"};
    zarr_vlen item[20];
    const uint64_t shape = 20;
    zarr_tensor t;
    struct seen s;

    (void)state;
    begin(0, 0, 0, 0);
    assert_ok(zarr_array_create(&mine, world.store, "a", &spec, NULL, &terr));
    for (int i = 0; i < 20; i++)
        item[i] = (zarr_vlen){.data = "some", .bytes = 4};
    zarr_tensor_host(&t, NULL, item, sizeof item, 1, &shape);
    assert_ok(zarr_array_write(mine, NULL, &t, NULL, &terr));
    s = verify(world.store);
    assert_int_equal(s.n_notes, 0);
    assert_ok(zarr_array_resize(
        mine, &small,
        &(const zarr_shape_options){.struct_size = sizeof(zarr_shape_options),
                                    .flags = ZARR_RESIZE_KEEP_CHUNKS},
        &terr));
    s = verify(world.store);
    assert_int_equal(s.n_notes, 2);
    assert_ok(zarr_array_resize(mine, &small, NULL, &terr));
    s = verify(world.store);
    assert_int_equal(s.n_notes, 0);
    end();
}

/* ---- other calls ------------------------------------------------------------------ */

/* The record goes with the array, hides no chunk, and keeps no place from a new array. */
static void test_company(void **state)
{
    const uint64_t large = 60;
    zarr_group *g = NULL;
    zarr_array *b = NULL;

    (void)state;
    begin(0, 3, 0, 8);
    assert_ok(append(mine, 1, 50));
    cut_document(world.store);
    put_record(world.store, "{\"zarrc_leftovers\": 1, \"extent\": [50]}");
    assert_ok(group_create(&g, world.store, "", 3, NULL, ZARR_GROUP_IF_MISSING, &terr));
    assert_ok(consolidate_at(world.store, "", NULL, &terr));
    assert_ok(zarr_node_copy(world.store, "a", world.store, "b", NULL, &terr));
    assert_ok(zarr_array_open(&b, world.store, "b", NULL, &terr));
    assert_ok(zarr_array_resize(b, &large, NULL, &terr));
    expect(b, 10, 60);
    zarr_array_free(b);
    assert_ok(zarr_store_erase(world.store, "a/zarr.json", NULL, &terr));
    zarr_array_free(mine);
    {
        const zarr_array_spec spec = {.struct_size = sizeof spec,
                                      .flags = ZARR_SPEC_OVERWRITE,
                                      .ndim = 1,
                                      .shape = &large,
                                      .data_type = "int32"};

        assert_ok(zarr_array_create(&mine, world.store, "a", &spec, NULL, &terr));
    }
    assert_false(has_record(world.store));
    expect(mine, 0, 60);
    assert_ok(zarr_node_delete(world.store, "b", &terr));
    zarr_group_free(g);
    end();
}

/* Codecs that lose values: the same shape changes no chunk, and warns of elements
 * outside. A record clears them all the same. */
static void test_lossy(void **state)
{
    const uint64_t length = 12, chunk = 8, small = 10;
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 1,
        .shape = &length,
        .chunk_shape = &chunk,
        .data_type = "float32",
        .codecs = "[{\"name\": \"bitround\", \"configuration\": {\"keepbits\": 4}}]"};
    const zarr_shape_options keep = {.struct_size = sizeof keep,
                                     .flags = ZARR_RESIZE_KEEP_CHUNKS};
    const uint64_t shape = 12;
    float data[12];
    zarr_tensor t;

    (void)state;
    for (int by = 0; by < 2; by++) {
        begin(0, 0, 0, 8);
        assert_ok(zarr_array_create(&mine, world.store, "a", &spec, NULL, &terr));
        for (int i = 0; i < 12; i++)
            data[i] = (float)(i + 1);
        zarr_tensor_host(&t, NULL, data, sizeof data, 1, &shape);
        assert_ok(zarr_array_write(mine, NULL, &t, NULL, &terr));
        assert_ok(zarr_array_resize(mine, &small, NULL, &terr));
        assert_ok(zarr_array_resize(mine, &small, NULL, &terr));
        assert_int_equal(strlen(world.log), 0); /* outside is the fill value */
        assert_ok(zarr_array_resize(mine, &length, NULL, &terr));
        assert_ok(zarr_array_write(mine, NULL, &t, NULL, &terr));
        assert_ok(zarr_array_resize(mine, &small, &keep, &terr));
        if (by == 1)
            put_record(world.store, "{\"zarrc_leftovers\": 1, \"extent\": [12]}");
        assert_ok(zarr_array_resize(mine, &small, NULL, &terr));
        assert_int_equal(strstr(world.log, "/a: 1 chunks at the border") != NULL,
                         by == 0);
        assert_ok(zarr_array_resize(mine, &length, NULL, &terr));
        assert_ok(zarr_array_read(mine, NULL, &t, NULL, &terr));
        for (int i = 0; i < 12; i++)
            assert_true(data[i] == (i < 10 || by == 0 ? (float)(i + 1) : 0));
        end();
    }
}

static atomic_int n_looks, n_erased;

static void count_looks(const zarr_store_op *op, int done)
{
    if (done || !op->key)
        return;
    if (op->verb == ZARR_STORE_GET && strcmp(op->key, "a/zarr.json") == 0)
        atomic_fetch_add(&n_looks, 1);
    if (op->verb == ZARR_STORE_ERASE && strncmp(op->key, "a/c/", 4) == 0)
        atomic_fetch_add(&n_erased, 1);
}

/* Clearing many chunks does not read the document once for each. */
static void test_many(void **state)
{
    enum {
        MANY = 500 /* the store has room for 512 keys */
    };
    static int32_t data[MANY];
    const uint64_t length = MANY;
    const uint64_t small = 10;
    zarr_tensor t;

    (void)state;
    begin(0, 3, MANY, 1);
    for (int i = 0; i < MANY; i++)
        data[i] = i + 1;
    zarr_tensor_host(&t, NULL, data, sizeof data, 1, &length);
    assert_ok(zarr_array_write(mine, NULL, &t, NULL, &terr));
    n_looks = n_erased = 0;
    hook = count_looks;
    assert_ok(zarr_array_resize(mine, &small, NULL, &terr));
    unhook();
    assert_int_equal(n_erased, MANY - 10);
    assert_true(n_looks < MANY / 4);
    assert_ok(zarr_array_resize(mine, (const uint64_t[]){100}, NULL, &terr));
    expect(mine, 10, 100);
    end();
}

/* An append of one field shows fill values in the others. */
static void test_append_field(void **state)
{
    const uint64_t length = 5, chunk = 8, small = 3;
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 1,
        .shape = &length,
        .chunk_shape = &chunk,
        .data_type = "{\"name\":\"struct\",\"configuration\":{\"fields\":["
                     "{\"name\":\"a\",\"data_type\":\"int32\"},"
                     "{\"name\":\"b\",\"data_type\":\"int32\"}]}}"};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    int32_t data[10];
    uint64_t shape = 5;
    char text[4096] = "";
    uint64_t n = sizeof text;
    zarr_tensor t;

    (void)state;
    begin(0, 0, 0, 0);
    assert_ok(zarr_array_create(&mine, world.store, "a", &spec, NULL, &terr));
    for (int i = 0; i < 10; i++)
        data[i] = 1 + i;
    zarr_tensor_host(&t, NULL, data, sizeof data, 1, &shape);
    assert_ok(zarr_array_write(mine, NULL, &t, NULL, &terr));
    assert_ok(zarr_store_get(world.store, "a/c/0", 0, text, &n, NULL, &terr));
    assert_ok(zarr_array_resize(mine, &small, NULL, &terr));
    assert_ok(zarr_store_put(world.store, "a/c/0", text, n, NULL, &terr));
    put_record(world.store, "{\"zarrc_leftovers\": 1, \"extent\": [5]}");
    o.field = "b";
    shape = 2;
    zarr_tensor_host(&t, NULL, (int32_t[]){70, 80}, 8, 1, &shape);
    assert_ok(zarr_array_append(mine, 0, &t, NULL, &o, &terr));
    assert_false(has_record(world.store));
    shape = 5;
    zarr_tensor_host(&t, NULL, data, sizeof data, 1, &shape);
    assert_ok(zarr_array_read(mine, NULL, &t, NULL, &terr));
    for (int i = 0; i < 6; i++)
        assert_int_equal(data[i], 1 + i);
    assert_int_equal(data[6], 0);
    assert_int_equal(data[7], 70);
    assert_int_equal(data[8], 0);
    assert_int_equal(data[9], 80);
    end();
}

/* ---- loss of power ----------------------------------------------------------- */

static char order[256]; /* a letter for each change of the store, and for each flush */
static pthread_mutex_t order_mutex = PTHREAD_MUTEX_INITIALIZER;

static void note_order(char c)
{
    size_t n;

    pthread_mutex_lock(&order_mutex); /* several threads erase blocks */
    n = strlen(order);
    assert_true(n + 1 < sizeof order);
    if (n == 0 || order[n - 1] != c)
        order[n] = c;
    pthread_mutex_unlock(&order_mutex);
}

static void note_change(const zarr_store_op *op, int done)
{
    const bool is_record = strcmp(op->key, record) == 0;

    if (done || (op->verb != ZARR_STORE_PUT && op->verb != ZARR_STORE_ERASE))
        return;
    if (is_record)
        note_order(op->verb == ZARR_STORE_PUT ? 'R' : 'r');
    else
        note_order(strcmp(op->key, "a/zarr.json") == 0 ? 'D' : 'c');
}

static zarr_status note_flush(zarr_error *e)
{
    (void)e;
    note_order('F');
    return ZARR_OK;
}

static zarr_status fail_flush(zarr_error *e)
{
    snprintf(e->message, sizeof e->message, "no disk");
    e->code = ZARR_ERR_IO;
    return ZARR_ERR_IO;
}

static const char *record_order(zarr_status (*change)(void))
{
    memset(order, 0, sizeof order);
    hook = note_change;
    flush_hook = note_flush;
    assert_ok(change());
    unhook();
    return order;
}

static zarr_status append_50(void)
{
    return append(mine, 1, 50);
}

static zarr_status append_none(void)
{
    return append(mine, 1, 0);
}

static zarr_status shrink(void)
{
    const uint64_t small = 10;

    return zarr_array_resize(mine, &small, NULL, &terr);
}

static zarr_status grow(void)
{
    const uint64_t large = 60;

    return zarr_array_resize(mine, &large, NULL, &terr);
}

/* Documents reach the disk at once, chunks by a flush. So a shape that shows chunks comes
 * after their flush, and so does the end of the record that allows leftovers. */
static void test_flushed(void **state)
{
    (void)state;
    begin(0, 3, 0, 4);
    assert_string_equal(record_order(append_50), "RcFDr");
    assert_string_equal(record_order(append_none), "D");
    assert_string_equal(record_order(shrink), "RDcFr");
    assert_string_equal(record_order(grow), "D");
    put_record(world.store, "{\"zarrc_leftovers\": 1, \"extent\": [90]}");
    assert_ok(shrink());
    put_record(world.store, "{\"zarrc_leftovers\": 1, \"extent\": [90]}");
    assert_string_equal(record_order(grow), "cFrD");
    flush_hook = fail_flush;
    assert_int_equal(append(mine, 1, 50), ZARR_ERR_IO);
    unhook();
    assert_true(has_record(world.store));
    assert_ok(zarr_array_refresh(mine, NULL, NULL, &terr));
    assert_int_equal(zarr_array_shape(mine)[0], 60);
    assert_ok(append(mine, 1, 50));
    assert_false(has_record(world.store));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stopped),        cmocka_unit_test(test_records),
        cmocka_unit_test(test_without_record), cmocka_unit_test(test_keep),
        cmocka_unit_test(test_append_over),    cmocka_unit_test(test_text),
        cmocka_unit_test(test_company),        cmocka_unit_test(test_lossy),
        cmocka_unit_test(test_many),           cmocka_unit_test(test_append_field),
        cmocka_unit_test(test_flushed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
