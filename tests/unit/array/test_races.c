/*
 * unit/array/test_races.c - one handle appends between two steps of another handle's
 * resize or append. Where a lock of the library excludes this order, threads try to
 * reach it.
 */
#include "unit/conditional_caps.h"
#include "hook_store.h"
#include "sanitizers.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

/* ---- a shrink, and an append to the area that it clears ---------------------- */

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
    if (zarr_array_refresh(theirs, NULL, NULL, NULL) != ZARR_OK)
        abort();
    their_status = append(theirs, 1000, 50);
}

/* Appends through another handle, which no lock excludes. */
static void test_trim_looks_again(void **state)
{
    const uint64_t small = 10;

    (void)state;
    for (uint64_t chunk = 1; chunk <= 64; chunk *= 8) {
        begin(0, 3, 0, chunk);
        assert_ok(append(mine, 1, 200));
        assert_ok(zarr_array_open(&theirs, other, "a", NULL, &terr));
        hook = append_when_published;
        assert_ok(zarr_array_resize(mine, &small, NULL, &terr));
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
    usleep(100000); /* enough time to finish if no lock held it back */
}

/* Appends through the same handle: this call waits. */
static void test_shrink_and_append_wait(void **state)
{
    const uint64_t small = 10;

    (void)state;
    begin(0, 3, 0, 1);
    assert_ok(append(mine, 1, 200));
    assert_ok(zarr_array_open(&theirs, world.store, "a", NULL, &terr));
    hook = append_when_clearing;
    assert_ok(zarr_array_resize(mine, &small, NULL, &terr));
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

/* A node that replaced the array is not cleared. */
static void test_trim_of_another_array(void **state)
{
    const uint64_t small = 10;
    int32_t data[60];

    (void)state;
    begin(0, 3, 0, 1);
    assert_ok(append(mine, 1, 200));
    hook = replace_when_published;
    assert_status(zarr_array_resize(mine, &small, NULL, &terr), ZARR_ERR_CONFLICT);
    assert_int_equal(their_status, ZARR_OK);
    read_all(theirs, data, 60);
    for (int i = 0; i < 60; i++)
        assert_int_equal(data[i], 1000 + i);
    end();
}

/* A shrink keeps a border chunk even if the remaining elements all equal the fill
 * value. */
static void test_trim_keeps_empty_chunks(void **state)
{
    const zarr_array_open_options o = {.struct_size = sizeof o,
                                       .empty_chunks = ZARR_EMPTY_CHUNKS_WRITE,
                                       .missing_chunks = ZARR_MISSING_ERROR};
    const uint64_t small = 6;
    int32_t data[8] = {1, 1, 1, 1, 0, 0, 5, 5};
    uint64_t n = 8;
    zarr_tensor t;

    (void)state;
    begin(0, 3, 8, 4);
    zarr_array_free(mine);
    assert_ok(zarr_array_open(&mine, world.store, "a", &o, &terr));
    zarr_tensor_host(&t, NULL, data, sizeof data, 1, &n);
    assert_ok(zarr_array_write(mine, NULL, &t, NULL, &terr));
    assert_ok(zarr_array_resize(mine, &small, NULL, &terr));
    read_all(mine, data, 6);
    assert_int_equal(data[4], 0);
    n = 8;
    assert_ok(zarr_array_resize(mine, &(const uint64_t){8}, NULL, &terr));
    read_all(mine, data, 8);
    assert_int_equal(data[7], 0);
    end();
}

/* ---- two appends on a store with versions and no locks ---------------------- */

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
            begin(CAPS_CONDITIONAL, 3, 0, chunk);
            assert_ok(append(mine, 500, 4));
            assert_ok(zarr_array_open(&theirs, other, "a", NULL, &terr));
            hook = order ? append_between : append_before_reserving;
            assert_ok(append(mine, 1000, 4));
            assert_int_equal(n_hooked, 1);
            assert_int_equal(their_status, ZARR_OK);
            check_appends(order);
            end();
        }
}

/* ---- each order of two calls on a store with versions and no locks ----------- */

enum call {
    SHRINK, /* to 10 elements */
    GROW,   /* to 60 */
    APPEND  /* 13 elements */
};

static enum call their_call;
/* my operation before which their call begins, and theirs before which it waits for the
 * end of mine */
static int64_t switch_at, stop_at;
static atomic_int n_theirs;
static pthread_t their_thread;
static sem_t they_wait, they_go_on;

static zarr_status make_call(zarr_array *a, enum call call)
{
    const uint64_t length = call == SHRINK ? 10 : 60;

    return call == APPEND ? append(a, 1000, 13)
                          : zarr_array_resize(a, &length, NULL, NULL);
}

static void *make_their_call(void *arg)
{
    (void)arg;
    if (zarr_array_refresh(theirs, NULL, NULL, NULL) != ZARR_OK)
        abort();
    their_status = make_call(theirs, their_call);
    sem_post(&they_wait);
    return NULL;
}

static void call_there(const zarr_store_op *op, int done)
{
    (void)op;
    if (done)
        return;
    if (is_others) {
        if (atomic_fetch_add(&n_theirs, 1) + 1 == stop_at) {
            sem_post(&they_wait);
            sem_wait(&they_go_on);
        }
    } else if (atomic_fetch_add(&n_hooked, 1) + 1 == switch_at) {
        if (pthread_create(&their_thread, NULL, make_their_call, NULL) != 0)
            abort();
        sem_wait(&they_wait);
    }
}

/* Elements are those of the two calls one after the other, in an order that the length
 * tells: 10 if the shrink was the last one, else it was the first one. Growing shows
 * nothing that was left over. */
static void check_order(enum call my_call)
{
    const int grows = my_call == GROW || their_call == GROW;
    uint64_t n;
    int32_t data[90];

    assert_ok(zarr_array_refresh(mine, NULL, NULL, &terr));
    n = zarr_array_shape(mine)[0];
    assert_true(n == 10 || n == (grows ? 60 : 23));
    assert_ok(zarr_array_resize(mine, &(const uint64_t){90}, NULL, &terr));
    read_all(mine, data, 90);
    for (uint64_t i = 0; i < 90; i++) {
        const int32_t appended = i < n && !grows ? 1000 + (int32_t)i - 10 : 0;

        assert_int_equal(data[i], i < 10 ? (int32_t)i + 1 : appended);
    }
}

/* Returns 0 if my call needs fewer operations, 1 if theirs does, else 2. */
static int call_between(uint32_t caps, uint64_t chunk, enum call my_call)
{
    int reached;

    begin(caps, 3, 0, chunk);
    assert_ok(append(mine, 1, 50));
    assert_ok(zarr_array_open(&theirs, other, "a", NULL, &terr));
    n_hooked = n_theirs = 0;
    sem_init(&they_wait, 0, 0);
    sem_init(&they_go_on, 0, 0);
    hook = call_there;
    assert_ok(make_call(mine, my_call));
    reached = n_hooked >= switch_at;
    if (reached) {
        sem_post(&they_go_on);
        pthread_join(their_thread, NULL);
        unhook();
        assert_int_equal(their_status, ZARR_OK);
        check_order(my_call);
        reached += n_theirs >= stop_at;
    }
    sem_destroy(&they_wait);
    sem_destroy(&they_go_on);
    end();
    return reached;
}

static void test_each_order(void **state)
{
    static const enum call pairs[][2] = {
        {SHRINK, APPEND}, {SHRINK, GROW}, {APPEND, SHRINK}, {GROW, SHRINK}};

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (uint64_t chunk = 16; chunk <= 64; chunk *= 4)
            for (int erases = chunk == 64; erases < 2; erases++) {
                const uint32_t caps =
                    CAPS_CONDITIONAL - (erases ? 0 : ZARR_STORE_CAP_ERASE_IF_VERSION);
                int n = 2;

                their_call = pairs[i][1];
                for (switch_at = 1; n > 0; switch_at++)
                    for (stop_at = 1 + switch_at % ZR_CASE_STEP, n = 2; n == 2;
                         stop_at += ZR_CASE_STEP)
                        n = call_between(caps, chunk, pairs[i][0]);
            }
}

/* ---- consolidating, and a change of an array with its entry ------------------- */

static void set_when_read(const zarr_store_op *op, int done)
{
    if (!done || !is_at(op, ZARR_STORE_GET, "a/zarr.json"))
        return;
    unhook();
    if (zarr_array_open(&theirs, other, "a", NULL, NULL) != ZARR_OK ||
        zarr_array_attribute_set(theirs, "k", "\"new\"", NULL, NULL) != ZARR_OK ||
        zarr_group_consolidated_update(other, "a", NULL, NULL, NULL) != ZARR_OK)
        abort();
}

/* The entry that was brought up to date meanwhile does not become old again. */
static void test_consolidate_and_update(void **state)
{
    char text[4096] = "";
    uint64_t n = sizeof text - 1;

    (void)state;
    begin(CAPS_CONDITIONAL, 3, 4, 4);
    assert_ok(consolidate_at(world.store, "", NULL, &terr));
    hook = set_when_read;
    assert_ok(consolidate_at(world.store, "", NULL, &terr));
    assert_null(hook);
    assert_ok(zarr_store_get(world.store, "zarr.json", 0, text, &n, NULL, &terr));
    assert_non_null(strstr(text, "\"new\""));
    end();
}

/* ---- two copies to one place -------------------------------------------------- */

static const char *copy_when;
static uint32_t copy_verb;

static zarr_status copy_to_d(zarr_store *s)
{
    return zarr_node_copy(s, "a", s, "d", NULL, NULL);
}

static void copy_between(const zarr_store_op *op, int done)
{
    if (!done || !is_at(op, copy_verb, copy_when))
        return;
    unhook();
    their_status = copy_to_d(other);
}

/* One of them works. Objects of both would be a node that is a copy of neither. */
static void test_two_copies(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        begin(CAPS_CONDITIONAL, 3, 0, 4);
        assert_ok(append(mine, 1, 20));
        copy_verb = late ? ZARR_STORE_PUT : ZARR_STORE_GET;
        copy_when = late ? "d/.zarrc-job" : "d/zarr.json";
        hook = copy_between;
        assert_status(copy_to_d(world.store), late ? ZARR_OK : ZARR_ERR_EXISTS);
        assert_null(hook);
        assert_int_equal(their_status, late ? ZARR_ERR_EXISTS : ZARR_OK);
        assert_ok(zarr_array_open(&theirs, other, "d", NULL, &terr));
        assert_int_equal(zarr_array_shape(theirs)[0], 20);
        assert_status(
            zarr_store_get(other, "d/.zarrc-job", 0, NULL, &(uint64_t){0}, NULL, NULL),
            ZARR_ERR_NOT_FOUND);
        end();
    }
}

/* ---- a copy of an array that grows -------------------------------------------- */

static void append_while_copying(const zarr_store_op *op, int done)
{
    if (!done || !is_at(op, ZARR_STORE_PUT, "d/c/0"))
        return;
    unhook();
    if (zarr_array_open(&theirs, other, "a", NULL, NULL) != ZARR_OK)
        abort();
    their_status = append(theirs, 1000, 10);
}

/* The new document speaks of chunks that the copy does not have. */
static void test_copy_while_growing(void **state)
{
    zarr_copy_options opts = ZARR_COPY_OPTIONS_INIT;
    zarr_array *copy = NULL;
    int32_t data[30];

    (void)state;
    begin(CAPS_CONDITIONAL, 3, 0, 4);
    assert_ok(append(mine, 1, 20));
    hook = append_while_copying;
    assert_status(copy_to_d(world.store), ZARR_ERR_CONFLICT);
    assert_null(hook);
    assert_ok(their_status);
    assert_status(zarr_array_open(&copy, other, "d", NULL, &terr), ZARR_ERR_NOT_FOUND);
    opts.flags = ZARR_COPY_SKIP_EQUAL | ZARR_COPY_OVERWRITE;
    assert_ok(zarr_node_copy(world.store, "a", world.store, "d", &opts, &terr));
    assert_ok(zarr_array_open(&copy, other, "d", NULL, &terr));
    read_all(copy, data, 30);
    for (int i = 0; i < 30; i++)
        assert_int_equal(data[i], i < 20 ? i + 1 : 1000 + i - 20);
    zarr_array_free(copy);
    end();
}

static void erase_while_copying(const zarr_store_op *op, int done)
{
    if (!done || !is_at(op, ZARR_STORE_PUT, "d/c/0"))
        return;
    unhook();
    if (zarr_store_erase(other, "a/c/4", NULL, NULL) != ZARR_OK)
        abort();
}

/* A chunk that was listed, and is erased before it is copied, is a change and no missing
 * key: the copy can be made again. */
static void test_copy_while_erasing(void **state)
{
    zarr_copy_options opts = ZARR_COPY_OPTIONS_INIT;
    zarr_array *copy = NULL;
    int32_t data[20];

    (void)state;
    begin(CAPS_CONDITIONAL, 3, 0, 4);
    assert_ok(append(mine, 1, 20));
    hook = erase_while_copying;
    opts.max_threads = 1;
    assert_status(zarr_node_copy(world.store, "a", world.store, "d", &opts, &terr),
                  ZARR_ERR_CONFLICT);
    assert_null(hook);
    assert_says("c/4: it vanished");
    opts.flags = ZARR_COPY_SKIP_EQUAL | ZARR_COPY_OVERWRITE;
    assert_ok(zarr_node_copy(world.store, "a", world.store, "d", &opts, &terr));
    assert_ok(zarr_array_open(&copy, other, "d", NULL, &terr));
    read_all(copy, data, 20);
    for (int i = 0; i < 20; i++)
        assert_int_equal(data[i], i < 16 ? i + 1 : 0);
    zarr_array_free(copy);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trim_looks_again),
        cmocka_unit_test(test_shrink_and_append_wait),
        cmocka_unit_test(test_trim_of_another_array),
        cmocka_unit_test(test_trim_keeps_empty_chunks),
        cmocka_unit_test(test_appends_by_version),
        cmocka_unit_test(test_each_order),
        cmocka_unit_test(test_consolidate_and_update),
        cmocka_unit_test(test_two_copies),
        cmocka_unit_test(test_copy_while_growing),
        cmocka_unit_test(test_copy_while_erasing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
