/*
 * unit/tree/test_cancel_waits.c - a cancel object ends waits, also from a signal handler:
 * for the lock of a chunk or of the shape, and for operations that the store only ends if
 * it is asked to.
 */
#include "cancel_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- waits ------------------------------------------------------------------- */

static zarr_cancel *signalled;

static void on_alarm(int number)
{
    (void)number;
    zarr_cancel_set(signalled);
}

static void alarm_in_ms(int ms)
{
    const struct itimerval t = {
        .it_value = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000}};

    assert_int_equal(setitimer(ITIMER_REAL, &t, NULL), 0);
}

/* Another program holds the lock file of a chunk and never gives it back. */
static void lock_waits_end(void **state)
{
    struct sigaction action = {.sa_handler = on_alarm}, before;
    char name[128];
    struct world w;
    bool was_waiting = false;
    struct stat at;
    int fd;

    (void)state;
    signalled = fresh_cancel();
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
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
        zarr_cancel_reset(signalled);
        alarm_in_ms(ms);
        assert_status(rows_io(w.store, "src/a", signalled, 1), ZARR_ERR_CANCELLED);
        was_waiting = strstr(terr.message, "cancelled while waiting") != NULL;
    }
    assert_says("cancelled while waiting");
    zarr_cancel_reset(signalled);
    alarm_in_ms(100);
    assert_status(rows_io(w.store, "src/a", signalled, 2), ZARR_ERR_CANCELLED);
    assert_int_equal(stat(name, &at), 0); /* it is not ours */
    close(fd);
    assert_int_equal(unlink(name), 0);
    check_elements(&w);
    zarr_cancel_reset(signalled);
    assert_ok(rows_io(w.store, "src/a", signalled, 1));
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
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

/* ---- a store whose operations end only if it is asked to -------------------------- */

static struct {
    const char *what; /* a part of the keys whose operations hang */
    uint32_t verb;    /* only these; 0: all */
    int skip;         /* so many of these do not hang */
    pthread_mutex_t mutex;
    zarr_store_op *op[64];
    int n;
    void (*done)(void *arg, zarr_store_op *op, const zarr_error *err);
    void *arg;
    int n_cancelled;
    bool is_done;  /* a write that hangs was done */
    bool signals;  /* an operation that hangs sets the object itself */
    int n_endless; /* operations that nothing would have ended */
} hung = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Without a cancel object the operation fails instead, so that the test ends. */
static void fail_endless(zarr_store_op *op, zarr_error *err)
{
    hung.n_endless++;
    op->status = err->code = ZARR_ERR_IO;
    snprintf(err->message, sizeof err->message, "%s: verb %u has no cancel object",
             op->key, op->verb);
    print_message("%s\n", err->message);
}

static void hung_submit(void *self, zarr_store_op **ops, uint64_t n,
                        void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                        void *arg)
{
    for (uint64_t i = 0; i < n; i++) {
        const bool hangs = strstr(ops[i]->key, hung.what) &&
                           (hung.verb == 0 || hung.verb == ops[i]->verb) &&
                           (hung.skip == 0 || hung.skip-- == 0);
        zarr_error err = ZARR_ERROR_INIT;

        if (hangs && hung.is_done)
            trap_run(self, ops[i], &err);
        if (hangs && ops[i]->cancel) {
            pthread_mutex_lock(&hung.mutex);
            assert_true(hung.n < 64);
            hung.op[hung.n++] = ops[i];
            hung.done = done;
            hung.arg = arg;
            pthread_mutex_unlock(&hung.mutex);
            if (hung.signals)
                zarr_cancel_set(signalled);
            continue;
        }
        if (hangs)
            fail_endless(ops[i], &err);
        else
            trap_run(self, ops[i], &err);
        done(arg, ops[i], &err);
    }
}

static void hung_cancel(void *self, void *arg)
{
    zarr_error err = ZARR_ERROR_INIT;
    zarr_store_op *op[64];
    int n;

    (void)self;
    pthread_mutex_lock(&hung.mutex);
    assert_ptr_equal(hung.arg, arg);
    n = hung.n;
    memcpy(op, hung.op, sizeof op);
    hung.n = 0;
    hung.n_cancelled += n;
    pthread_mutex_unlock(&hung.mutex);
    err.code = ZARR_ERR_CANCELLED;
    for (int i = 0; i < n; i++) {
        op[i]->status = ZARR_ERR_CANCELLED;
        snprintf(err.message, sizeof err.message, "%s: cancelled", op[i]->key);
        hung.done(arg, op[i], &err);
    }
}

static const zarr_store_vtable hung_vtable = {
    .struct_size = sizeof hung_vtable,
    .name = "hung",
    .caps = trap_caps,
    .submit = hung_submit,
    .cancel = hung_cancel,
    .list = trap_list,
};

static zarr_store *open_hung(struct world *w)
{
    zarr_store *s = NULL;

    open_trap(w, &s, NULL, -1);
    zarr_store_free(s);
    assert_ok(zarr_store_open_custom(&s, w->ctx, &hung_vtable, NULL, NULL, &terr));
    return s;
}

static void operations_in_flight_end(void **state)
{
    struct sigaction action = {.sa_handler = on_alarm}, before;
    zarr_store *s = NULL;
    struct world w;

    (void)state;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    s = open_hung(&w);
    hung.what = "/c/";
    for (int what = 0; what < 3; what++) {
        signalled = fresh_cancel();
        hung.n_cancelled = 0;
        alarm_in_ms(100);
        assert_status(rows_io(s, "src/a", signalled, what), ZARR_ERR_CANCELLED);
        assert_true(hung.n_cancelled > 0);
    }
    check_elements(&w);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
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

    array.cancel = group.cancel = spec.cancel = signalled;
    how.cancel = signalled;
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
    struct sigaction action = {.sa_handler = on_alarm}, before;
    zarr_store *s = NULL;
    struct world w;

    (void)state;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    s = open_hung(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        signalled = fresh_cancel();
        hung.what = rows[i].key;
        hung.verb = rows[i].verb;
        hung.n_cancelled = 0;
        alarm_in_ms(50);
        assert_status(use_document(s, rows[i].which), ZARR_ERR_CANCELLED);
        assert_true(hung.n_cancelled > 0);
        hung.what = "no such key";
        zarr_cancel_reset(signalled);
        assert_ok(use_document(s, rows[i].which)); /* which finds nothing in its way */
        if (rows[i].which == 2)
            assert_ok(zarr_node_delete(s, "src/new", &terr));
    }
    hung.verb = 0;
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    zarr_store_free(s);
    world_close(&w);
}

/* The group is there, and still has the object that says that its claim is not over. */
static void a_cancelled_write_may_be_done(void **state)
{
    struct sigaction action = {.sa_handler = on_alarm}, before;
    zarr_group_spec spec = ZARR_GROUP_SPEC_INIT;
    zarr_store *s = NULL;
    zarr_group *g = NULL;
    char first;
    uint64_t n = 1;
    struct world w;

    (void)state;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    s = open_hung(&w);
    spec.flags = ZARR_GROUP_CLAIM;
    spec.cancel = signalled = fresh_cancel();
    hung.what = "src/new/zarr.json";
    hung.verb = ZARR_STORE_PUT;
    hung.is_done = true;
    alarm_in_ms(50);
    assert_status(zarr_group_create(&g, s, "src/new", &spec, NULL, &terr),
                  ZARR_ERR_CANCELLED);
    hung.what = "no such key";
    assert_ok(zarr_store_get(s, "src/new/zarr.json", 0, &first, &n, NULL, &terr));
    assert_ok(zarr_store_get(s, "src/new/.zarrc-job", 0, &first, &n, NULL, &terr));
    hung.verb = 0;
    hung.is_done = false;
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    zarr_store_free(s);
    world_close(&w);
}

/* ---- changes through handles ------------------------------------------------------- */

struct handles {
    zarr_store *s;
    zarr_array *array[2]; /* v3, v2 */
    zarr_group *group[2];
};

static void open_handles(struct handles *h, zarr_store *s)
{
    const zarr_group_open_options plain = {.struct_size = sizeof plain,
                                           .consolidated = ZARR_CONSOLIDATED_NEVER};

    h->s = s;
    h->array[0] = open_array(s, "src/a");
    h->array[1] = open_array(s, "old/v");
    assert_ok(zarr_group_open(&h->group[0], s, "src", NULL, &terr));
    assert_ok(zarr_group_open(&h->group[1], s, "old", &plain, &terr));
}

static void free_handles(struct handles *h)
{
    for (int i = 0; i < 2; i++) {
        zarr_array_free(h->array[i]);
        zarr_group_free(h->group[i]);
    }
}

/* Replaces the node that a call before left with its claim given back. */
static zarr_status release_claim(zarr_store *s, bool of_group)
{
    static const uint64_t one[] = {1};
    const zarr_group_spec group = {.struct_size = sizeof group,
                                   .flags = ZARR_GROUP_CLAIM | ZARR_GROUP_OVERWRITE};
    const zarr_array_spec array = {.struct_size = sizeof array,
                                   .flags = ZARR_SPEC_CLAIM | ZARR_SPEC_OVERWRITE,
                                   .ndim = 1,
                                   .shape = one,
                                   .chunk_shape = one,
                                   .data_type = "uint8"};
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    zarr_status st;

    if (of_group)
        assert_ok(zarr_group_create(&g, s, "new/g", &group, NULL, &terr));
    else
        assert_ok(zarr_array_create(&a, s, "new/a", &array, NULL, &terr));
    st = of_group ? zarr_group_release_claim(g, 1, signalled, &terr)
                  : zarr_array_release_claim(a, 1, signalled, &terr);
    zarr_array_free(a);
    zarr_group_free(g);
    return st;
}

/* call: set, merge or delete an attribute, or release a claim */
static zarr_status change_node(const struct handles *h, bool of_group, int format,
                               char call)
{
    zarr_array *a = h->array[format == 2];
    zarr_group *g = h->group[format == 2];

    if (call == 's')
        return of_group ? zarr_group_attribute_set(g, "k", "1", signalled, &terr)
                        : zarr_array_attribute_set(a, "k", "1", signalled, &terr);
    if (call == 'm')
        return of_group ? zarr_group_attributes_merge(g, "{}", 0, signalled, &terr)
                        : zarr_array_attributes_merge(a, "{}", 0, signalled, &terr);
    if (call == 'd')
        return of_group ? zarr_group_attribute_delete(g, "k", signalled, &terr)
                        : zarr_array_attribute_delete(a, "k", signalled, &terr);
    return release_claim(h->s, of_group);
}

static void changes_in_flight_end(void **state)
{
    static const struct {
        const char *key;
        uint32_t verb;
        bool of_group;
        int format;
        char call;
    } rows[] = {
        {"src/a/zarr.json", ZARR_STORE_GET, false, 3, 's'},
        {"src/a/zarr.json", ZARR_STORE_PUT, false, 3, 'm'},
        {"src/a/zarr.json", ZARR_STORE_GET, false, 3, 'd'},
        {"old/v/.zattrs", ZARR_STORE_GET, false, 2, 's'},
        {"old/v/.zarray", ZARR_STORE_GET, false, 2, 'm'},
        {"old/v/.zattrs", ZARR_STORE_PUT, false, 2, 'd'},
        {"src/zarr.json", ZARR_STORE_GET, true, 3, 's'},
        {"src/zarr.json", ZARR_STORE_PUT, true, 3, 'm'},
        {"src/zarr.json", ZARR_STORE_GET, true, 3, 'd'},
        {"old/.zattrs", ZARR_STORE_GET, true, 2, 's'},
        {"old/.zgroup", 0, true, 2, 'm'},
        {"old/.zattrs", ZARR_STORE_PUT, true, 2, 'd'},
        {"new/a/.zarrc-job", ZARR_STORE_ERASE, false, 3, 'r'},
        {"new/g/.zarrc-job", ZARR_STORE_ERASE, true, 3, 'r'},
    };
    zarr_store *s = NULL;
    struct handles h;
    struct world w;

    (void)state;
    s = open_hung(&w);
    hung.what = "no such key";
    open_handles(&h, s);
    hung.signals = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        zarr_status st;

        signalled = fresh_cancel();
        hung.what = rows[i].key;
        hung.verb = rows[i].verb;
        hung.n_cancelled = 0;
        st = change_node(&h, rows[i].of_group, rows[i].format, rows[i].call);
        if (st != ZARR_ERR_CANCELLED || hung.n_cancelled == 0)
            fail_msg("row %zu: %s", i, st ? terr.message : "not cancelled");
        hung.what = "no such key";
        zarr_cancel_reset(signalled);
        assert_ok(change_node(&h, rows[i].of_group, rows[i].format, rows[i].call));
    }
    hung.verb = 0;
    hung.signals = false;
    free_handles(&h);
    zarr_store_free(s);
    world_close(&w);
}

/* ---- calls for whole nodes --------------------------------------------------------- */

static zarr_status call_copy(zarr_store *s)
{
    const zarr_copy_options o = {.struct_size = sizeof o,
                                 .flags = ZARR_COPY_SKIP_EQUAL,
                                 .max_threads = 1,
                                 .cancel = signalled};

    return zarr_node_copy(s, "src", s, "new/dst", &o, &terr);
}

/* The group of the destination differs, and is erased first. */
static zarr_status call_replace(zarr_store *s)
{
    const zarr_copy_options o = {.struct_size = sizeof o,
                                 .flags = ZARR_COPY_SKIP_EQUAL | ZARR_COPY_OVERWRITE,
                                 .max_threads = 1,
                                 .cancel = signalled};

    return zarr_node_copy(s, "src", s, "two", &o, &terr);
}

static zarr_status call_delete(zarr_store *s)
{
    const zarr_delete_options o = {.struct_size = sizeof o, .cancel = signalled};
    const zarr_status st = zarr_node_delete_watched(s, "old", &o, &terr);

    return st == ZARR_ERR_NOT_FOUND ? ZARR_OK : st;
}

static zarr_status call_reencode(zarr_store *s)
{
    const zarr_reencode_options o = {
        .struct_size = sizeof o, .flags = ZARR_REENCODE_RESUME, .cancel = signalled};

    return zarr_node_reencode(s, "src", s, "new/dst", NULL, &o, &terr);
}

static zarr_status call_migrate(zarr_store *s)
{
    const zarr_migrate_options o = {
        .struct_size = sizeof o, .flags = ZARR_MIGRATE_REMOVE, .cancel = signalled};

    return zarr_node_migrate(s, "old", &o, &terr);
}

static zarr_status call_create(zarr_store *s)
{
    static const uint64_t one[] = {1};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .flags = ZARR_SPEC_CLAIM,
                                  .ndim = 1,
                                  .shape = one,
                                  .chunk_shape = one,
                                  .data_type = "uint8",
                                  .cancel = signalled};
    const zarr_array_open_options o = {.struct_size = sizeof o, .cancel = signalled};
    zarr_array *a = NULL;
    const zarr_status st = zarr_array_create(&a, s, "new/dst", &spec, &o, &terr);

    zarr_array_free(a);
    return st;
}

static zarr_status call_verify(zarr_store *s)
{
    const zarr_verify_options o = {
        .struct_size = sizeof o, .max_threads = 1, .cancel = signalled};

    return zarr_node_verify(s, "old", NULL, &o, &terr);
}

static zarr_status call_diff(zarr_store *s)
{
    const zarr_diff_options o = {.struct_size = sizeof o, .cancel = signalled};

    return zarr_node_diff(s, "src", s, "two", NULL, &o, &terr);
}

/* Documents and job objects have a z in their names, other keys have none. */
static void every_document_operation_ends(void **state)
{
    static zarr_status (*const calls[])(zarr_store * s) = {
        call_copy,    call_replace, call_delete, call_reencode,
        call_migrate, call_create,  call_verify, call_diff};

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (int skip = 0, hangs = 1; hangs; skip++) {
            zarr_group *g = NULL;
            zarr_store *s = NULL;
            struct world w;
            zarr_status st;

            signalled = fresh_cancel();
            hung.what = "no such key";
            s = open_hung(&w);
            assert_ok(group_create(&g, s, "two", 3, NULL, 0, &terr));
            zarr_group_free(g);
            hung.what = "z";
            hung.signals = true;
            hung.skip = skip;
            hung.n_cancelled = hung.n_endless = 0;
            st = calls[i](s);
            hangs = hung.n_cancelled > 0;
            if (hung.n_endless > 0 || st != (hangs ? ZARR_ERR_CANCELLED : ZARR_OK))
                fail_msg("call %zu, operation %d: %s", i, skip, st ? terr.message : "OK");
            hung.what = "no such key";
            hung.skip = 0;
            zarr_cancel_reset(signalled);
            if (hangs && calls[i] != call_create)
                assert_ok(calls[i](s));
            zarr_store_free(s);
            world_close(&w);
        }
    hung.signals = false;
}

/* ---- calls of a store that never answers ------------------------------------------- */

/* A call that does not pass its object on fails at once. */
static zarr_status wait_for_cancel(const zarr_cancel *cancel, zarr_error *err)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    while (cancel && !zarr_cancel_is_set(cancel))
        nanosleep(&pause, NULL);
    err->code = cancel ? ZARR_ERR_CANCELLED : ZARR_ERR_IO;
    snprintf(err->message, sizeof err->message, "waited for a cancel object");
    return (zarr_status)err->code;
}

static zarr_status mute_list(void *self, const char *prefix, uint32_t how,
                             zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                             zarr_error *err)
{
    (void)self, (void)prefix, (void)how, (void)fn, (void)user;
    return wait_for_cancel(cancel, err);
}

static zarr_status mute_flush(void *self, const zarr_cancel *cancel, zarr_error *err)
{
    (void)self;
    return wait_for_cancel(cancel, err);
}

static zarr_status mute_erase_prefix(void *self, const char *prefix,
                                     const zarr_cancel *cancel, zarr_error *err)
{
    (void)self, (void)prefix;
    return wait_for_cancel(cancel, err);
}

static zarr_status mute_rename(void *self, const char *from, const char *to,
                               const zarr_cancel *cancel, zarr_error *err)
{
    (void)self, (void)from, (void)to;
    zarr_cancel_set(signalled);
    return wait_for_cancel(cancel, err);
}

/* A move by a rename that the store never answers. The source is complete. */
static void a_rename_ends(void **state)
{
    zarr_copy_options o = ZARR_COPY_OPTIONS_INIT;
    zarr_store_vtable mute = hung_vtable;
    zarr_store *s = NULL, *hangs = NULL;
    struct world w;

    (void)state;
    mute.rename = mute_rename;
    s = open_hung(&w);
    hung.what = "no such key";
    assert_ok(zarr_store_open_custom(&hangs, w.ctx, &mute, NULL, NULL, &terr));
    o.cancel = signalled = fresh_cancel();
    assert_status(zarr_node_move(hangs, "src", hangs, "dst", &o, &terr),
                  ZARR_ERR_CANCELLED);
    assert_says("waited for a cancel object");
    check_elements(&w);
    zarr_store_free(hangs);
    zarr_store_free(s);
    world_close(&w);
}

static int no_row(void *user, const zarr_store_item *item)
{
    (void)user, (void)item;
    return 0;
}

static zarr_status call_store(zarr_store *s, zarr_array *a, int which,
                              const zarr_cancel *c)
{
    static const uint64_t block[2] = {0, 0};
    char text[8] = "";
    const zarr_memory mem = {.device_type = ZARR_DEVICE_CPU, .handle = text, .bytes = 8};
    uint64_t n = sizeof text;
    uint32_t kind;
    int32_t format;

    switch (which) {
    case 0:
        return zarr_store_list(s, "", 0, no_row, NULL, c, &terr);
    case 1:
        return zarr_store_flush(s, c, &terr);
    case 2:
        return zarr_store_erase_prefix(s, "src", c, &terr);
    case 3:
        return zarr_node_probe(s, "src", &kind, &format, c, &terr);
    case 4:
        return zarr_store_put(s, "k", text, n, c, &terr);
    case 5:
        return zarr_store_put_new(s, "k", text, n, c, &terr);
    case 6:
        return zarr_store_erase(s, "k", c, &terr);
    case 7:
        return zarr_store_stat(s, "k", NULL, c, &terr);
    case 8:
        return zarr_store_read(s, "k", 0, &mem, NULL, c, &terr);
    case 9:
        return zarr_store_write(s, "k", &mem, NULL, NULL, c, &terr);
    case 10:
        return zarr_array_refresh(a, NULL, c, &terr);
    case 11:
        return zarr_array_recheck(a, c, &terr);
    case 12:
        return zarr_array_block_read_encoded(a, block, text, &n, c, &terr);
    case 13:
        return zarr_array_block_write_encoded(a, block, text, n, c, &terr);
    case 14:
        return zarr_array_block_erase(a, block, c, &terr);
    case 15:
        return zarr_store_get(s, "k", 0, text, &n, c, &terr);
    default:
        return ZARR_OK;
    }
}

static void calls_of_a_store_end(void **state)
{
    struct sigaction action = {.sa_handler = on_alarm}, before;
    zarr_store_vtable mute = hung_vtable;
    zarr_store *s = NULL, *hangs = NULL;
    zarr_array *a = NULL;
    struct world w;

    (void)state;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    mute.list = mute_list;
    mute.flush = mute_flush;
    mute.erase_prefix = mute_erase_prefix;
    s = open_hung(&w);
    assert_ok(zarr_store_open_custom(&hangs, w.ctx, &mute, NULL, NULL, &terr));
    hung.what = "no such key";
    a = open_array(hangs, "src/a");
    hung.what = "";
    for (int which = 0; which < 16; which++) {
        signalled = fresh_cancel();
        alarm_in_ms(50);
        if (call_store(hangs, a, which, signalled) != ZARR_ERR_CANCELLED)
            fail_msg("call %d: %s", which, terr.message);
    }
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    zarr_array_free(a);
    zarr_store_free(hangs);
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
        cmocka_unit_test(changes_in_flight_end),
        cmocka_unit_test(every_document_operation_ends),
        cmocka_unit_test(a_rename_ends),
        cmocka_unit_test(calls_of_a_store_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
