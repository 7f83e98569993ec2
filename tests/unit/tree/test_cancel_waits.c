/*
 * unit/tree/test_cancel_waits.c - a cancel object ends waits, also from a signal handler:
 * for the lock of a chunk or of the shape, and for operations on chunks and documents
 * that the store only ends if it is asked to.
 */
#include "cancel_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- locks ------------------------------------------------------------------------- */

/* Another program holds the lock file of a chunk and never gives it back. */
static void lock_waits_end(void **state)
{
    char name[128];
    struct world w;
    bool was_waiting = false;
    struct stat at;
    int fd;

    (void)state;
    alarm_cancel = fresh_cancel();
    begin_alarms();
    world_open(&w, WORLD_LOCAL);
    make_trees(&w);
    snprintf(name, sizeof name, "%s/src/a/c/3/1.__lock", w.dir);
    fd = open(name, O_RDWR | O_CREAT, 0666);
    assert_true(fd >= 0);
    {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

        assert_int_equal(fcntl(fd, F_OFD_SETLK, &whole), 0);
    }
    for (int ms = 100; ms <= 6400 && !was_waiting; ms *= 4) { /* a busy machine is late */
        zarr_cancel_reset(alarm_cancel);
        alarm_in_ms(ms);
        assert_status(rows_io(w.store, "src/a", alarm_cancel, 1), ZARR_ERR_CANCELLED);
        was_waiting = strstr(terr.message, "cancelled while waiting") != NULL;
    }
    assert_says("cancelled while waiting");
    zarr_cancel_reset(alarm_cancel);
    alarm_in_ms(100);
    assert_status(rows_io(w.store, "src/a", alarm_cancel, 2), ZARR_ERR_CANCELLED);
    assert_int_equal(stat(name, &at), 0); /* it is not ours */
    close(fd);
    assert_int_equal(unlink(name), 0);
    check_elements(&w);
    zarr_cancel_reset(alarm_cancel);
    assert_ok(rows_io(w.store, "src/a", alarm_cancel, 1));
    end_alarms();
    world_close(&w);
}

struct late_writer {
    zarr_store *s;
    zarr_cancel *cancel;
    zarr_status st;
};

/* In the middle of an append of this process, so that it holds the shape's lock. */
static struct late_writer *late;

static void *write_late(void *arg)
{
    struct late_writer *x = arg;
    zarr_shape_options o = ZARR_SHAPE_OPTIONS_INIT;
    const uint64_t shape[2] = {3, 3};
    zarr_array *a = NULL;

    o.cancel = x->cancel;
    x->st = zarr_array_open(&a, x->s, "src/a", NULL, NULL);
    if (x->st == ZARR_OK)
        x->st = zarr_array_resize(a, shape, &o, NULL);
    zarr_array_free(a);
    return NULL;
}

static void during_append(void *user, const zarr_stats *so_far)
{
    pthread_t thread;

    (void)so_far;
    if (!late)
        return;
    assert_int_equal(pthread_create(&thread, NULL, write_late, late), 0);
    usleep(50000);
    zarr_cancel_set(user);
    pthread_join(thread, NULL);
    late = NULL;
}

static void shape_waits_end(void **state)
{
    static int32_t data[ROWS * COLS];
    const uint64_t shape[2] = {ROWS, COLS};

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        struct late_writer x = {.cancel = fresh_cancel()};
        struct world w;
        zarr_array *a;
        zarr_tensor t;

        world_open(&w, sort);
        make_trees(&w);
        a = open_array(w.store, "src/a");
        x.s = w.store;
        late = &x;
        o.progress = during_append;
        o.progress_user = x.cancel;
        zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
        assert_ok(zarr_array_append(a, 0, &t, NULL, &o, &terr));
        assert_null(late);
        assert_int_equal(x.st, ZARR_ERR_CANCELLED);
        assert_int_equal(zarr_array_shape(a)[0], 2 * ROWS);
        zarr_array_free(a);
        world_close(&w);
    }
}

/* ---- operations in flight ------------------------------------------------------- */

static void operations_in_flight_end(void **state)
{
    zarr_store *s = NULL;
    struct world w;

    (void)state;
    begin_alarms();
    s = open_hung(&w);
    hung_store.what = "/c/";
    for (int what = 0; what < 3; what++) {
        alarm_cancel = fresh_cancel();
        hung_store.n_cancelled = 0;
        alarm_in_ms(100);
        assert_status(rows_io(s, "src/a", alarm_cancel, what), ZARR_ERR_CANCELLED);
        assert_true(hung_store.n_cancelled > 0);
    }
    check_elements(&w);
    end_alarms();
    zarr_store_free(s);
    world_close(&w);
}

static zarr_status use_document(zarr_store *s, int which)
{
    zarr_array_open_options array = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    zarr_group_open_options group = ZARR_GROUP_OPEN_OPTIONS_INIT;
    zarr_consolidate_options how = ZARR_CONSOLIDATE_OPTIONS_INIT;
    zarr_group_spec spec = ZARR_GROUP_SPEC_INIT;
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    zarr_status st;

    array.cancel = group.cancel = spec.cancel = alarm_cancel;
    how.cancel = alarm_cancel;
    if (which == 0) {
        st = zarr_array_open(&a, s, "old/v", &array, &terr);
    } else if (which == 1) {
        st = zarr_group_open(&g, s, "old", &group, &terr);
    } else if (which == 2) {
        st = zarr_group_create(&g, s, "src/new", &spec, NULL, &terr);
    } else {
        assert_ok(zarr_group_open(&g, s, "src", NULL, &terr));
        st = zarr_group_consolidate(g, &how, &terr);
    }
    zarr_array_free(a);
    zarr_group_free(g);
    return st;
}

/* Reads and writes of documents, which have no other way to end. */
static void documents_in_flight_end(void **state)
{
    static const struct {
        const char *key;
        uint32_t verb;
        int which;
    } rows[] = {
        {"old/v/zarr.json", ZARR_STORE_GET, 0},
        {"old/v/.zarray", ZARR_STORE_GET, 0},
        {"old/v/.zattrs", ZARR_STORE_GET, 0},
        {"old/zarr.json", ZARR_STORE_GET, 1},
        {"old/.zattrs", ZARR_STORE_GET, 1},
        {"old/.zmetadata", ZARR_STORE_GET, 1},
        {"src/zarr.json", ZARR_STORE_GET, 2},
        {"src/new/zarr.json", ZARR_STORE_GET, 2},
        {"src/new/zarr.json", ZARR_STORE_PUT, 2},
        {"src/g/zarr.json", ZARR_STORE_GET, 3},
        {"src/zarr.json", ZARR_STORE_PUT, 3},
    };
    zarr_store *s = NULL;
    struct world w;

    (void)state;
    begin_alarms();
    s = open_hung(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        alarm_cancel = fresh_cancel();
        hung_store.what = rows[i].key;
        hung_store.verb = rows[i].verb;
        hung_store.n_cancelled = 0;
        alarm_in_ms(50);
        assert_status(use_document(s, rows[i].which), ZARR_ERR_CANCELLED);
        assert_true(hung_store.n_cancelled > 0);
        hung_store.what = "no such key";
        zarr_cancel_reset(alarm_cancel);
        assert_ok(use_document(s, rows[i].which)); /* which finds nothing in its way */
        if (rows[i].which == 2)
            assert_ok(zarr_node_delete(s, "src/new", &terr));
    }
    hung_store.verb = 0;
    end_alarms();
    zarr_store_free(s);
    world_close(&w);
}

/* The group is there, and still has the object that says that its claim is not over. */
static void a_cancelled_write_may_be_done(void **state)
{
    zarr_group_spec spec = ZARR_GROUP_SPEC_INIT;
    zarr_store *s = NULL;
    zarr_group *g = NULL;
    char first;
    uint64_t n = 1;
    struct world w;

    (void)state;
    begin_alarms();
    s = open_hung(&w);
    spec.flags = ZARR_GROUP_CLAIM;
    spec.cancel = alarm_cancel = fresh_cancel();
    hung_store.what = "src/new/zarr.json";
    hung_store.verb = ZARR_STORE_PUT;
    hung_store.is_done = true;
    alarm_in_ms(50);
    assert_status(zarr_group_create(&g, s, "src/new", &spec, NULL, &terr),
                  ZARR_ERR_CANCELLED);
    hung_store.what = "no such key";
    assert_ok(zarr_store_get(s, "src/new/zarr.json", 0, &first, &n, NULL, &terr));
    assert_ok(zarr_store_get(s, "src/new/.zarrc-job", 0, &first, &n, NULL, &terr));
    hung_store.verb = 0;
    hung_store.is_done = false;
    end_alarms();
    zarr_store_free(s);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock_waits_end),
        cmocka_unit_test(shape_waits_end),
        cmocka_unit_test(operations_in_flight_end),
        cmocka_unit_test(documents_in_flight_end),
        cmocka_unit_test(a_cancelled_write_may_be_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
