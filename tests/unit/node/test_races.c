/*
 * unit/node/test_races.c - what one does between two steps of another: a store
 * that calls the test right before or after an operation makes each order
 * happen. Where a lock of the library keeps the two apart, threads try it.
 */
#include "node_test.h"

#include <zarrc/plugin/store.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- a store with a hook: keys in a table, as many handles as wanted ------------- */

enum {
    N_KEYS = 512,
    VALUE_BYTES = 4096
};

static struct {
    pthread_mutex_t mutex;
    struct {
        char key[64];
        unsigned char value[VALUE_BYTES];
        uint64_t bytes, version; /* version 0: not there */
    } row[N_KEYS];
    uint64_t last;
    uint32_t caps;
    /* Called before (done 0) and after each operation, with no lock held. */
    void (*hook)(const zarr_store_op *op, int done);
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void table_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT | ZARR_STORE_CAP_LIST |
                 ZARR_STORE_CAP_FAST_GET | table.caps;
}

static int find_row(const char *key)
{
    int free_row = -1;

    for (int i = 0; i < N_KEYS; i++) {
        if (table.row[i].version && strcmp(table.row[i].key, key) == 0)
            return i;
        if (!table.row[i].version && free_row < 0)
            free_row = i;
    }
    return free_row;
}

static void do_op(zarr_store_op *op)
{
    const int i = find_row(op->key);
    unsigned char *mem = (unsigned char *)op->mem.handle + op->mem.offset;

    op->status = ZARR_OK;
    op->done_bytes = 0;
    op->object_bytes = UINT64_MAX;
    if ((op->flags & ZARR_STORE_OP_IF_VERSION) &&
        op->version.word[0] != table.row[i].version) {
        op->status = ZARR_ERR_CONFLICT;
    } else if (op->verb == ZARR_STORE_PUT) {
        snprintf(table.row[i].key, sizeof table.row[i].key, "%s", op->key);
        memcpy(table.row[i].value, mem, op->mem.bytes);
        table.row[i].bytes = op->done_bytes = op->mem.bytes;
        table.row[i].version = ++table.last;
    } else if (!table.row[i].version) {
        op->status = ZARR_ERR_NOT_FOUND;
    } else if (op->verb == ZARR_STORE_ERASE) {
        table.row[i].version = 0;
    } else {
        op->object_bytes = table.row[i].bytes;
        if (op->verb == ZARR_STORE_GET) {
            op->done_bytes =
                op->mem.bytes < op->object_bytes ? op->mem.bytes : op->object_bytes;
            memcpy(mem, table.row[i].value, op->done_bytes);
        }
    }
    op->version = (zarr_store_version){{table.row[i].version}};
}

static void table_run(void *self, zarr_store_op *op, zarr_error *err)
{
    (void)self;
    (void)err;
    if (table.hook)
        table.hook(op, 0);
    pthread_mutex_lock(&table.mutex);
    do_op(op);
    pthread_mutex_unlock(&table.mutex);
    if (table.hook)
        table.hook(op, 1);
}

static zarr_status table_list(void *self, const char *prefix, uint32_t how,
                              zarr_store_list_fn fn, void *user, zarr_error *err)
{
    const size_t n = strlen(prefix);

    (void)self;
    (void)how;
    (void)err;
    for (int i = 0; i < N_KEYS; i++) {
        const zarr_store_item item = {.key = table.row[i].key,
                                      .bytes = table.row[i].bytes};

        if (table.row[i].version &&
            (!n || (strncmp(item.key, prefix, n) == 0 && item.key[n] == '/')) &&
            fn(user, &item))
            break;
    }
    return ZARR_OK;
}

static const zarr_store_vtable table_vtable = {
    .struct_size = sizeof table_vtable,
    .name = "table",
    .caps = table_caps,
    .run = table_run,
    .list = table_list,
};

/* ---- worlds: two handles of the table ---------------------------------------------- */

static struct world world;
static zarr_store *other; /* not what world.store is, but the same keys */
static zarr_array *mine, *theirs;
static atomic_int n_hooked; /* operations may run on several threads */
static zarr_status their_status;

static zarr_array *line(zarr_store *s, int format, uint64_t length, uint64_t chunk)
{
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .zarr_format = format,
                                  .ndim = 1,
                                  .shape = &length,
                                  .chunk_shape = &chunk,
                                  .codecs = format == 3 ? "[]" : NULL,
                                  .data_type = "int32"};
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, s, "a", &spec, NULL, &terr));
    return a;
}

static void begin(uint32_t caps, int format, uint64_t length, uint64_t chunk)
{
    world_begin(&world, WORLD_PLAIN);
    assert_ok(world_context(&world, &terr));
    memset(table.row, 0, sizeof table.row);
    table.caps = caps;
    table.hook = NULL;
    n_hooked = 0;
    assert_ok(zarr_store_open_custom(&world.store, world.ctx, &table_vtable, NULL, NULL,
                                     &terr));
    assert_ok(
        zarr_store_open_custom(&other, world.ctx, &table_vtable, NULL, NULL, &terr));
    mine = format ? line(world.store, format, length, chunk) : NULL;
    theirs = NULL;
}

static void end(void)
{
    table.hook = NULL;
    zarr_array_free(mine);
    zarr_array_free(theirs);
    zarr_store_free(other);
    world_close(&world);
}

/* n elements first, first + 1, ... */
static zarr_status append(zarr_array *a, int32_t first, int n)
{
    int32_t data[256];
    const int64_t shape = n;
    zarr_tensor t;
    zarr_error e;

    for (int i = 0; i < n; i++)
        data[i] = first + i;
    zarr_tensor_host(&t, data, (uint64_t)n * sizeof *data, 1, &shape);
    return zarr_array_append(a, 0, &t, NULL, &e);
}

static void read_all(zarr_array *a, int32_t *data, uint64_t want)
{
    const int64_t shape = (int64_t)want;
    zarr_tensor t;

    assert_ok(zarr_array_refresh(a, NULL, &terr));
    assert_int_equal(zarr_array_shape(a)[0], want);
    zarr_tensor_host(&t, data, want * sizeof *data, 1, &shape);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
}

/* True once. */
static int is_at(const zarr_store_op *op, uint32_t verb, const char *key)
{
    int none = 0;

    return op->verb == verb && strncmp(op->key, key, strlen(key)) == 0 &&
           atomic_compare_exchange_strong(&n_hooked, &none, 1);
}

/* ---- a shrink, and an append in what it clears away -------------------------------- */

static void check_shrunk(void)
{
    int32_t data[60];

    read_all(mine, data, 60);
    for (int i = 0; i < 60; i++)
        assert_int_equal(data[i], i < 10 ? i + 1 : 1000 + i - 10);
}

static void append_when_published(const zarr_store_op *op, int done)
{
    if (!done || !is_at(op, ZARR_STORE_PUT, "a/zarr.json"))
        return;
    if (zarr_array_refresh(theirs, NULL, NULL) != ZARR_OK)
        abort();
    their_status = append(theirs, 1000, 50);
}

/* Through another handle, which no lock keeps out. */
static void test_trim_looks_again(void **state)
{
    const uint64_t small = 10;

    (void)state;
    for (uint64_t chunk = 1; chunk <= 64; chunk *= 8) {
        begin(0, 3, 0, chunk);
        assert_ok(append(mine, 1, 200));
        assert_ok(zarr_array_open(&theirs, other, "a", NULL, &terr));
        table.hook = append_when_published;
        assert_ok(zarr_array_resize(mine, &small, 0, &terr));
        assert_int_equal(n_hooked, 1);
        assert_int_equal(their_status, ZARR_OK);
        check_shrunk();
        end();
    }
}

static void *append_in_thread(void *arg)
{
    (void)arg;
    their_status = append(theirs, 1000, 50);
    return NULL;
}

static pthread_t appender;

static void append_when_clearing(const zarr_store_op *op, int done)
{
    if (done || !is_at(op, ZARR_STORE_ERASE, "a/c/"))
        return;
    if (pthread_create(&appender, NULL, append_in_thread, NULL) != 0)
        abort();
    usleep(100000); /* time enough to do it, if nothing kept it out */
}

/* Through the same handle: it waits. */
static void test_shrink_and_append_wait(void **state)
{
    const uint64_t small = 10;

    (void)state;
    begin(0, 3, 0, 1);
    assert_ok(append(mine, 1, 200));
    assert_ok(zarr_array_open(&theirs, world.store, "a", NULL, &terr));
    table.hook = append_when_clearing;
    assert_ok(zarr_array_resize(mine, &small, 0, &terr));
    assert_int_equal(n_hooked, 1);
    pthread_join(appender, NULL);
    assert_int_equal(their_status, ZARR_OK);
    check_shrunk();
    end();
}

static void replace_when_published(const zarr_store_op *op, int done)
{
    if (!done || !is_at(op, ZARR_STORE_PUT, "a/zarr.json"))
        return;
    if (zarr_node_delete(other, "a", NULL) != ZARR_OK)
        abort();
    theirs = line(other, 3, 0, 4);
    their_status = append(theirs, 1000, 60);
}

/* What stands in the array's place is not cleared. */
static void test_trim_of_another_array(void **state)
{
    const uint64_t small = 10;
    int32_t data[60];

    (void)state;
    begin(0, 3, 0, 1);
    assert_ok(append(mine, 1, 200));
    table.hook = replace_when_published;
    assert_status(zarr_array_resize(mine, &small, 0, &terr), ZARR_ERR_CONFLICT);
    assert_int_equal(their_status, ZARR_OK);
    read_all(theirs, data, 60);
    for (int i = 0; i < 60; i++)
        assert_int_equal(data[i], 1000 + i);
    end();
}

/* Chunks that are to be kept stay, when what a shrink leaves of them is all fill. */
static void test_trim_keeps_empty_chunks(void **state)
{
    const zarr_array_open_options o = {.struct_size = sizeof o,
                                       .empty_chunks = ZARR_EMPTY_CHUNKS_WRITE,
                                       .missing_chunks = ZARR_MISSING_ERROR};
    const uint64_t small = 6;
    int32_t data[8] = {1, 1, 1, 1, 0, 0, 5, 5};
    int64_t n = 8;
    zarr_tensor t;

    (void)state;
    begin(0, 3, 8, 4);
    zarr_array_free(mine);
    assert_ok(zarr_array_open(&mine, world.store, "a", &o, &terr));
    zarr_tensor_host(&t, data, sizeof data, 1, &n);
    assert_ok(zarr_array_write(mine, NULL, &t, NULL, &terr));
    assert_ok(zarr_array_resize(mine, &small, 0, &terr));
    read_all(mine, data, 6);
    assert_int_equal(data[4], 0);
    n = 8;
    assert_ok(zarr_array_resize(mine, &(const uint64_t){8}, 0, &terr));
    read_all(mine, data, 8);
    assert_int_equal(data[7], 0);
    end();
}

/* ---- two appends of a store with versions and no locks ------------------------------
 */

static void append_between(const zarr_store_op *op, int done)
{
    if (done || !is_at(op, ZARR_STORE_PUT, "a/c/"))
        return;
    their_status = append(theirs, 2000, 4);
}

static void append_before_reserving(const zarr_store_op *op, int done)
{
    if (done || !is_at(op, ZARR_STORE_PUT, "a/zarr.json"))
        return;
    their_status = append(theirs, 2000, 4);
}

static void check_appends(int mine_first)
{
    int32_t data[12];

    read_all(mine, data, 12);
    for (int i = 0; i < 12; i++) {
        const int is_mine = (i < 8) == mine_first;

        if (i < 4)
            assert_int_equal(data[i], 500 + i);
        else
            assert_int_equal(data[i], (is_mine ? 1000 : 2000) + i % 4);
    }
}

static void test_appends_by_version(void **state)
{
    (void)state;
    for (uint64_t chunk = 2; chunk <= 16; chunk *= 2)
        for (int order = 0; order < 2; order++) {
            begin(ZARR_STORE_CAP_CONDITIONAL, 3, 0, chunk);
            assert_ok(append(mine, 500, 4));
            assert_ok(zarr_array_open(&theirs, other, "a", NULL, &terr));
            table.hook = order ? append_between : append_before_reserving;
            assert_ok(append(mine, 1000, 4));
            assert_int_equal(n_hooked, 1);
            assert_int_equal(their_status, ZARR_OK);
            check_appends(order);
            end();
        }
}

/* ---- a shared handle never goes back ------------------------------------------------
 */

static void resize_between(const zarr_store_op *op, int done)
{
    if (!done || !is_at(op, ZARR_STORE_PUT, "a/.zattrs"))
        return;
    their_status = zarr_array_resize(mine, &(const uint64_t){20}, 0, NULL);
}

static void set_between(const zarr_store_op *op, int done)
{
    if (!done || !is_at(op, ZARR_STORE_PUT, "a/.zarray"))
        return;
    their_status = zarr_array_attribute_set(mine, "k", "1", NULL);
}

static void resize_after_reading(const zarr_store_op *op, int done)
{
    if (!done || !(is_at(op, ZARR_STORE_GET, "a/.zarray") ||
                   is_at(op, ZARR_STORE_GET, "a/zarr.json")))
        return;
    their_status = zarr_array_resize(mine, &(const uint64_t){20}, 0, NULL);
}

static void check_new(int with_attribute)
{
    char text[8] = "";

    assert_int_equal(n_hooked, 1);
    assert_int_equal(their_status, ZARR_OK);
    assert_int_equal(zarr_array_shape(mine)[0], 20);
    if (with_attribute) {
        assert_ok(zarr_array_attribute_get(mine, "k", text, sizeof text, NULL, &terr));
        assert_string_equal(text, "1");
    }
}

static void test_handle_of_two_documents(void **state)
{
    (void)state;
    begin(0, 2, 10, 4);
    table.hook = resize_between;
    assert_ok(zarr_array_attribute_set(mine, "k", "1", &terr));
    check_new(1);
    end();

    begin(0, 2, 10, 4);
    table.hook = set_between;
    assert_ok(zarr_array_resize(mine, &(const uint64_t){20}, 0, &terr));
    check_new(1);
    end();

    begin(0, 2, 10, 4);
    table.hook = set_between;
    assert_ok(append(mine, 1, 10));
    check_new(1);
    end();
}

static void test_refresh_between(void **state)
{
    int changed = 0;

    (void)state;
    for (int format = 2; format <= 3; format++) {
        begin(0, format, 10, 4);
        table.hook = resize_after_reading;
        assert_ok(zarr_array_refresh(mine, &changed, &terr));
        check_new(0);
        assert_int_equal(changed, 1);
        end();
    }
}

struct setting {
    zarr_array *a;
    zarr_group *g;
    const char *name;
    uint64_t length;
};

static void *set_one(void *arg)
{
    const struct setting *s = arg;
    zarr_status st = ZARR_OK;

    if (s->length)
        st = zarr_array_resize(s->a, &s->length, 0, NULL);
    else
        st = s->a ? zarr_array_attribute_set(s->a, s->name, "1", NULL)
                  : zarr_group_attribute_set(s->g, s->name, "1", NULL);
    if (st != ZARR_OK)
        abort();
    return NULL;
}

static int has(const struct setting *s, const char *name)
{
    char text[8];

    return (s->a ? zarr_array_attribute_get(s->a, name, text, sizeof text, NULL, NULL)
                 : zarr_group_attribute_get(s->g, name, text, sizeof text, NULL, NULL)) ==
           ZARR_OK;
}

/* Two threads, one change each, one handle: it has both afterwards. */
static void check_two_changes(struct setting *one, struct setting *two, int turns)
{
    for (int i = 1; i <= turns; i++) {
        pthread_t p, q;
        char a[16], b[16];

        snprintf(a, sizeof a, "a%d", i);
        snprintf(b, sizeof b, "b%d", i);
        one->name = a;
        two->name = b;
        two->length = two->length ? (uint64_t)i : 0;
        assert_int_equal(pthread_create(&p, NULL, set_one, one), 0);
        assert_int_equal(pthread_create(&q, NULL, set_one, two), 0);
        pthread_join(p, NULL);
        pthread_join(q, NULL);
        assert_true(has(one, a));
        if (two->length)
            assert_int_equal(zarr_array_shape(two->a)[0], i);
        else
            assert_true(has(two, b));
    }
}

static void test_one_handle_of_two_threads(void **state)
{
    (void)state;
    for (int format = 2; format <= 3; format++)
        for (int what = 0; what < 3; what++) {
            struct setting one = {0}, two = {0};
            zarr_group *g = NULL;
            struct world w;

            world_open(&w, WORLD_MEMORY);
            assert_ok(zarr_group_create(&g, w.store, "", format, NULL, 0, &terr));
            if (what == 0)
                one.g = two.g = g;
            else
                one.a = two.a = line(w.store, format, 10, 4);
            two.length = what == 2;
            check_two_changes(&one, &two, 150);
            zarr_array_free(one.a);
            zarr_group_free(g);
            world_close(&w);
        }
}

/* ---- attributes of new v2 nodes ------------------------------------------------------
 */

static void test_stray_attributes(void **state)
{
    struct world w;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        zarr_array *a = NULL;
        zarr_group *g = NULL;

        world_open(&w, sort);
        put_text(&w, "a/.zattrs", "{\"x\":1}");
        put_text(&w, "g/.zattrs", "{\"x\":1}");
        put_text(&w, "p/.zattrs", "{\"x\":1}");
        a = line(w.store, 2, 10, 4);
        assert_string_equal(zarr_array_attributes(a), "{}");
        assert_null(get_text(&w, "a/.zattrs"));
        zarr_array_free(a);
        assert_ok(zarr_group_create(&g, w.store, "g", 2, NULL, 0, &terr));
        assert_string_equal(zarr_group_attributes(g), "{}");
        zarr_group_free(g);
        assert_ok(zarr_group_create(&g, w.store, "p/q", 2, "{\"y\":2}", 0, &terr));
        zarr_group_free(g);
        assert_null(get_text(&w, "p/.zattrs")); /* made as a parent */
        assert_non_null(get_text(&w, "p/q/.zattrs"));
        world_close(&w);
    }
}

struct creating {
    zarr_store *store;
    const char *attributes;
    int is_group;
    zarr_status st;
};

static void *create(void *arg)
{
    struct creating *c = arg;
    const uint64_t length = 10;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .zarr_format = 2,
                                  .ndim = 1,
                                  .shape = &length,
                                  .attributes = c->attributes,
                                  .data_type = "int32"};
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    zarr_error e;

    if (c->is_group)
        c->st = zarr_group_create(&g, c->store, "n", 2, c->attributes, 0, &e);
    else
        c->st = zarr_array_create(&a, c->store, "n", &spec, NULL, &e);
    zarr_group_free(g);
    zarr_array_free(a);
    return NULL;
}

static void check_winner(struct world *w, const struct creating *one,
                         const struct creating *two)
{
    const struct creating *winner = one->st == ZARR_OK ? one : two;
    const struct creating *loser = winner == one ? two : one;
    const char *text;

    assert_int_equal(winner->st, ZARR_OK);
    assert_int_equal(loser->st, ZARR_ERR_EXISTS);
    text = get_text(w, "n/.zattrs");
    assert_non_null(text);
    assert_non_null(strstr(text, winner == one ? "one" : "two"));
}

static void test_creators_of_v2(void **state)
{
    struct creating one = {.attributes = "{\"one\":1}"},
                    two = {.attributes = "{\"two\":2}"};
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    one.store = two.store = w.store;
    for (int i = 0; i < 400; i++) {
        pthread_t p, q;

        one.is_group = two.is_group = i % 2;
        assert_int_equal(pthread_create(&p, NULL, create, &one), 0);
        assert_int_equal(pthread_create(&q, NULL, create, &two), 0);
        pthread_join(p, NULL);
        pthread_join(q, NULL);
        check_winner(&w, &one, &two);
        assert_ok(zarr_node_delete(w.store, "n", &terr));
    }
    world_close(&w);
}

static struct creating between;
static const char *between_key;

static void create_between(const zarr_store_op *op, int done)
{
    if (done || !is_at(op, ZARR_STORE_PUT, between_key))
        return;
    create(&between);
}

static void test_creators_by_version(void **state)
{
    static const char *const keys[] = {"n/.zattrs", "n/.zarray", "n/.zgroup"};

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct creating one = {.attributes = "{\"one\":1}", .is_group = i % 2};

        begin(ZARR_STORE_CAP_CONDITIONAL, 0, 0, 0);
        one.store = world.store;
        between = (struct creating){
            .store = other, .attributes = "{\"two\":2}", .is_group = i % 2};
        between_key = keys[i / 2];
        table.hook = create_between;
        create(&one);
        if (n_hooked) /* that kind of node has such a key */
            check_winner(&world, &one, &between);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trim_looks_again),
        cmocka_unit_test(test_shrink_and_append_wait),
        cmocka_unit_test(test_trim_of_another_array),
        cmocka_unit_test(test_trim_keeps_empty_chunks),
        cmocka_unit_test(test_appends_by_version),
        cmocka_unit_test(test_handle_of_two_documents),
        cmocka_unit_test(test_refresh_between),
        cmocka_unit_test(test_one_handle_of_two_threads),
        cmocka_unit_test(test_stray_attributes),
        cmocka_unit_test(test_creators_of_v2),
        cmocka_unit_test(test_creators_by_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
