/*
 * unit/tree/test_cancel.c - a cancel object stops each call before each operation of the
 * store: the call returns soon, nothing leaks, no lock stays, every object is old or new,
 * and the same call then does the rest. Also from a signal handler, in waits for locks,
 * and in operations that the store only ends if it is asked to.
 */
#include "unit/array/array_test.h"

#include <zarrc/plugin/store.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- a store that sets the object before its n-th operation ---------------- */

static struct {
    zarr_store *below;
    zarr_cancel *cancel;
    atomic_int left;  /* operations until the object is set; below 0: never */
    atomic_int after; /* operations that began afterwards */
} trap;

static void trap_step(void)
{
    if (trap.cancel && zarr_cancel_is_set(trap.cancel))
        atomic_fetch_add(&trap.after, 1);
    if (atomic_fetch_sub(&trap.left, 1) == 0)
        zarr_cancel_set(trap.cancel);
}

static void trap_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT;
}

static void trap_run(void *self, zarr_store_op *op, zarr_error *err)
{
    char *p = op->mem.handle ? (char *)op->mem.handle + op->mem.offset : NULL;

    (void)self;
    trap_step();
    op->done_bytes = 0;
    op->object_bytes = UINT64_MAX;
    if (op->verb == ZARR_STORE_PUT) {
        op->status = zarr_store_put(trap.below, op->key, p, op->mem.bytes, err);
    } else if (op->verb == ZARR_STORE_ERASE) {
        op->status = zarr_store_erase(trap.below, op->key, err);
    } else {
        op->done_bytes = op->verb == ZARR_STORE_GET ? op->mem.bytes : 0;
        op->status = zarr_store_get(trap.below, op->key, 0, p, &op->done_bytes,
                                    &op->object_bytes, err);
    }
}

struct trap_listing {
    zarr_store_list_fn fn;
    void *user;
};

/* Each row counts as an operation, so that listings are cut, too. */
static int trap_row(void *user, const zarr_store_item *item)
{
    struct trap_listing *l = user;

    trap_step();
    return l->fn(l->user, item);
}

static zarr_status trap_list(void *self, const char *prefix, uint32_t how,
                             zarr_store_list_fn fn, void *user, zarr_error *err)
{
    struct trap_listing l = {fn, user};

    (void)self;
    return zarr_store_list(trap.below, prefix, how, trap_row, &l, err);
}

static const zarr_store_vtable trap_vtable = {
    .struct_size = sizeof trap_vtable,
    .name = "trap",
    .caps = trap_caps,
    .run = trap_run,
    .list = trap_list,
};

/* ---- calls ------------------------------------------------------------------- */

enum {
    ROWS = 7,
    COLS = 5
};

static zarr_array *open_array(zarr_store *s, const char *path)
{
    zarr_array *a = NULL;

    assert_ok(zarr_array_open(&a, s, path, NULL, &terr));
    return a;
}

static zarr_status rows_io(zarr_store *s, const char *path, zarr_cancel *cancel, int what)
{
    static int32_t data[ROWS * COLS];
    const int64_t shape[2] = {ROWS, COLS};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_array *a = open_array(s, path);
    zarr_tensor t;
    zarr_status st;

    o.cancel = cancel;
    o.max_threads = 1;
    for (int i = 0; i < ROWS * COLS; i++)
        data[i] = 50000 + i;
    zarr_tensor_host(&t, data, sizeof data, 2, shape);
    if (what == 0)
        st = zarr_array_read(a, NULL, &t, &o, &terr);
    else if (what == 1)
        st = zarr_array_write(a, NULL, &t, &o, &terr);
    else
        st = zarr_array_append(a, 0, &t, NULL, &o, &terr);
    zarr_array_free(a);
    return st;
}

static zarr_status do_read(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return rows_io(s, "src/a", c, 0);
}

static zarr_status do_read_shards(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return rows_io(s, "src/g/s", c, 0);
}

static zarr_status do_write(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return rows_io(s, "src/a", c, 1);
}

static zarr_status do_write_shards(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return rows_io(s, "src/g/s", c, 1);
}

static zarr_status do_append(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return rows_io(s, "src/a", c, 2);
}

static zarr_status resize_to(zarr_store *s, zarr_cancel *c, uint64_t rows, uint64_t cols)
{
    zarr_shape_options o = ZARR_SHAPE_OPTIONS_INIT;
    zarr_array *a = open_array(s, "src/a");
    const uint64_t shape[2] = {rows, cols};
    zarr_status st;

    o.cancel = c;
    st = zarr_array_resize(a, shape, &o, &terr);
    zarr_array_free(a);
    return st;
}

static zarr_status do_shrink(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return resize_to(s, c, 3, 3);
}

/* The same shape: everything outside is looked for. */
static zarr_status do_tidy(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return resize_to(s, c, ROWS, COLS);
}

static int ignore_chunk(void *user, const zarr_chunk_info *chunk)
{
    (void)user;
    (void)chunk;
    return 0;
}

static zarr_status do_list_chunks(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_array *a = open_array(s, "src/g/s");
    zarr_status st;

    (void)again;
    o.cancel = c;
    st = zarr_array_chunk_list(a, ZARR_CHUNKS_INNER, ignore_chunk, NULL, &o, &terr);
    zarr_array_free(a);
    return st;
}

static int no_fault(void *user, const zarr_verify_item *item)
{
    (void)user;
    fail_msg("%s", item->message);
    return 0;
}

static zarr_status do_array_verify(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_array *a = open_array(s, "src/g/s");
    zarr_status st;

    (void)again;
    o.cancel = c;
    o.max_threads = 1;
    st = zarr_array_verify(a, no_fault, NULL, &o, &terr);
    zarr_array_free(a);
    return st;
}

static zarr_status do_verify(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_verify_options o = ZARR_VERIFY_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    o.max_threads = 1;
    return zarr_node_verify(s, "src", &o, NULL, &terr);
}

static zarr_status do_diff(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_diff_options o = ZARR_DIFF_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    return zarr_node_diff(s, "src/a", s, "src/g/s", &o, NULL, &terr);
}

static zarr_status do_copy(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_copy_options o = ZARR_COPY_OPTIONS_INIT;

    o.cancel = c;
    o.max_threads = 1;
    o.flags = again ? ZARR_COPY_SKIP_EQUAL : 0;
    return zarr_node_copy(s, "src", s, "dst", &o, &terr);
}

static zarr_status do_move(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_copy_options o = ZARR_COPY_OPTIONS_INIT;

    o.cancel = c;
    o.max_threads = 1;
    o.flags = again ? ZARR_COPY_SKIP_EQUAL : 0;
    return zarr_node_move(s, "src", s, "dst", &o, &terr);
}

static zarr_status do_delete(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_delete_options o = ZARR_DELETE_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    return zarr_node_delete_watched(s, "src/g", &o, &terr);
}

static zarr_status do_reencode(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_reencode_options o = ZARR_REENCODE_OPTIONS_INIT;
    zarr_array_spec changes = ZARR_ARRAY_SPEC_INIT;

    changes.codecs = "[{\"name\": \"gzip\", \"configuration\": {\"level\": 1}}]";
    o.changes = &changes;
    o.cancel = c;
    o.flags = ZARR_REENCODE_VERIFY | (again ? ZARR_REENCODE_RESUME : 0u);
    o.buffer_bytes = 256;
    return zarr_node_reencode(s, "src", s, "dst", &o, NULL, &terr);
}

static zarr_status do_migrate(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_migrate_options o = ZARR_MIGRATE_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    return zarr_node_migrate(s, "old", &o, &terr);
}

static zarr_status do_consolidate(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_consolidate_options o = ZARR_CONSOLIDATE_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    return consolidate_at(s, "src", &o, &terr);
}

static int ignore_difference(void *user, const char *path, const char *what)
{
    (void)user;
    (void)path;
    (void)what;
    return 0;
}

static zarr_status do_consolidated_check(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_consolidate_options o = ZARR_CONSOLIDATE_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    return check_consolidated_at(s, "old", ignore_difference, NULL, &o, &terr);
}

static zarr_status do_consolidated_update(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_consolidate_options o = ZARR_CONSOLIDATE_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    o.flags = ZARR_CONSOLIDATED_BELOW;
    return zarr_group_consolidated_update(s, "old/v", &o, NULL, &terr);
}

static int ignore_node(void *user, const zarr_node_item *node)
{
    (void)user;
    (void)node;
    return ZARR_WALK_GO_ON;
}

static zarr_status walk(zarr_store *s, zarr_cancel *c, bool deep)
{
    zarr_list_options o = ZARR_LIST_OPTIONS_INIT;
    zarr_group *g = NULL;
    zarr_status st;

    assert_ok(zarr_group_open(&g, s, "src", NULL, &terr));
    o.cancel = c;
    st = deep ? zarr_group_walk(g, ignore_node, NULL, &o, &terr)
              : zarr_group_list(g, ignore_node, NULL, &o, &terr);
    zarr_group_free(g);
    return st;
}

static zarr_status do_walk(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return walk(s, c, true);
}

static zarr_status do_list(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return walk(s, c, false);
}

/* ---- cancelled before each operation ----------------------------------------- */

/* src: a group with a (chunks) and g/s (shards); old: a v2 group with v. */
static void make_trees(struct world *w)
{
    static const struct {
        const char *path;
        int kind;
    } arrays[] = {{"src/a", 3}, {"src/g/s", 4}, {"old/v", 2}};
    zarr_group *g = NULL;

    assert_ok(group_create(&g, w->store, "src", 3, "{\"a\": 1}", 0, &terr));
    zarr_group_free(g);
    assert_ok(group_create(&g, w->store, "old", 2, NULL, 0, &terr));
    zarr_group_free(g);
    for (size_t i = 0; i < 3; i++) {
        zarr_array *a = make_array(w, arrays[i].path, arrays[i].kind, ROWS, COLS);

        fill_array(a);
        zarr_array_free(a);
    }
    assert_ok(consolidate_at(w->store, "old", NULL, &terr));
}

/* A checksum of all keys and values, which does not depend on their order. */
static int add_key(void *user, const zarr_store_item *item)
{
    uint64_t *sum = ((void **)user)[0], one = 1469598103934665603u;
    zarr_store *s = ((void **)user)[1];
    static unsigned char value[1 << 16];
    uint64_t n = sizeof value;

    assert_ok(zarr_store_get(s, item->key, 0, value, &n, NULL, &terr));
    assert_true(n < sizeof value);
    for (const char *p = item->key; *p; p++)
        one = (one ^ (unsigned char)*p) * 1099511628211u;
    for (uint64_t i = 0; i < n; i++)
        one = (one ^ value[i]) * 1099511628211u;
    *sum += one;
    return 0;
}

static uint64_t checksum(struct world *w)
{
    uint64_t sum = 0;
    void *user[2] = {&sum, w->store};

    assert_ok(zarr_store_list(w->store, "", ZARR_LIST_RECURSIVE, add_key, user, &terr));
    return sum;
}

/* Each element of src/a is old or new, if src is still there. */
static void check_elements(struct world *w)
{
    int32_t data[2 * ROWS * COLS];
    zarr_array *a = NULL;
    const uint64_t *size;
    zarr_tensor t;
    int64_t shape[2];

    if (zarr_array_open(&a, w->store, "src/a", NULL, NULL) != ZARR_OK)
        return;
    size = zarr_array_shape(a);
    shape[0] = (int64_t)size[0];
    shape[1] = (int64_t)size[1];
    zarr_tensor_host(&t, data, sizeof data, 2, shape);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    for (uint64_t r = 0; r < size[0]; r++)
        for (uint64_t c = 0; c < size[1]; c++) {
            const int32_t got = data[r * size[1] + c];
            const int32_t old = (int32_t)(r * 1000 + c);
            const int32_t new = 50000 + (int32_t)((r % ROWS) * COLS + c);

            if (r < ROWS ? got != old && got != new : got != new)
                fail_msg("element %d, %d is %d", (int)r, (int)c, (int)got);
        }
    zarr_array_free(a);
}

typedef zarr_status (*cancelled_call)(zarr_store *s, zarr_cancel *c, bool again);

static void open_trap(struct world *w, zarr_store **s, zarr_cancel *c, int left)
{
    world_open(w, WORLD_MEMORY);
    make_trees(w);
    trap.below = w->store;
    trap.cancel = c;
    atomic_store(&trap.left, -1);
    atomic_store(&trap.after, 0);
    assert_ok(zarr_store_open_custom(s, w->ctx, &trap_vtable, NULL, NULL, &terr));
    atomic_store(&trap.left, left);
}

/* Returns how often the call was cancelled. most: operations after that. */
static int cancel_everywhere(const char *name, cancelled_call call, int most)
{
    uint64_t whole = 0;
    int n = 0;

    for (int k = -1; k < 1000; k++) {
        zarr_cancel *c = fresh_cancel();
        zarr_store *s = NULL;
        struct world w;
        zarr_status st;

        open_trap(&w, &s, c, k);
        st = call(s, c, false);
        if (k < 0) {
            assert_ok(st);
            whole = checksum(&w);
        } else if (st != ZARR_OK) {
            n++;
            if (st != ZARR_ERR_CANCELLED || terr.code != st)
                fail_msg("%s, operation %d: %s", name, k, terr.message);
            if (atomic_load(&trap.after) > most)
                fail_msg("%s: %d operations after it was cancelled at %d", name,
                         atomic_load(&trap.after), k);
            check_elements(&w);
            /* set before the call: nothing is done */
            atomic_store(&trap.after, 0);
            atomic_store(&trap.left, -1);
            zarr_cancel_reset(c);
            st = call(s, c, true);
            if (st != ZARR_OK)
                fail_msg("%s, after operation %d: %s", name, k, terr.message);
        }
        if (checksum(&w) != whole)
            fail_msg("%s: other bytes after operation %d", name, k);
        st = zarr_cancel_is_set(c) || k < 0 ? ZARR_OK : ZARR_ERR_NOT_FOUND;
        zarr_store_free(s);
        world_close(&w);
        if (k >= 0 && st != ZARR_OK && atomic_load(&trap.left) > 0)
            return n; /* the call had fewer operations */
    }
    fail_msg("%s does not end", name);
    return 0;
}

static void everywhere(void **state)
{
    static const struct {
        const char *name;
        cancelled_call call;
        int least, most; /* cancelled calls; operations after the object was set */
    } calls[] = {
        {"read", do_read, 12, 2},
        {"read of shards", do_read_shards, 4, 2},
        {"write", do_write, 12, 2},
        {"write of shards", do_write_shards, 4, 2},
        {"append", do_append, 12, 2},
        {"shrink", do_shrink, 10, 3},
        {"tidy", do_tidy, 10, 3},
        {"list of chunks", do_list_chunks, 6, 3},
        {"verify of an array", do_array_verify, 6, 3},
        {"verify", do_verify, 20, 4},
        {"diff", do_diff, 10, 6},
        {"copy", do_copy, 20, 8},
        {"move", do_move, 20, 40},
        {"delete", do_delete, 6, 4},
        {"reencode", do_reencode, 40, 16},
        {"migrate", do_migrate, 6, 6},
        {"consolidate", do_consolidate, 8, 8},
        {"consolidated_check", do_consolidated_check, 3, 8},
        {"consolidated_update", do_consolidated_update, 2, 8},
        {"walk", do_walk, 6, 8},
        {"list", do_list, 3, 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const int n = cancel_everywhere(calls[i].name, calls[i].call, calls[i].most);

        if (n < calls[i].least)
            fail_msg("%s was cancelled only %d times", calls[i].name, n);
    }
}

/* An object that is set before the call: no operation begins. */
static void set_before(void **state)
{
    static const cancelled_call calls[] = {do_read,   do_write,       do_append,
                                           do_shrink, do_list_chunks, do_array_verify};
    zarr_cancel *c = fresh_cancel();
    struct world w;
    zarr_store *s = NULL;
    uint64_t before;

    (void)state;
    open_trap(&w, &s, NULL, -1);
    before = checksum(&w);
    zarr_cancel_set(c);
    assert_int_equal(zarr_cancel_is_set(c), 1);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_status(calls[i](s, c, false), ZARR_ERR_CANCELLED);
    assert_true(checksum(&w) == before);
    zarr_cancel_reset(c);
    assert_int_equal(zarr_cancel_is_set(c), 0);
    assert_ok(do_read(s, c, false));
    zarr_cancel_set(NULL);
    zarr_cancel_reset(NULL);
    zarr_cancel_free(NULL);
    assert_int_equal(zarr_cancel_is_set(NULL), 0);
    zarr_store_free(s);
    world_close(&w);
}

/* ---- waits ------------------------------------------------------------------- */

static zarr_cancel *signalled;

static void on_alarm(int number)
{
    (void)number;
    zarr_cancel_set(signalled);
}

static void alarm_in_ms(int ms)
{
    const struct itimerval t = {.it_value.tv_usec = ms * 1000};

    assert_int_equal(setitimer(ITIMER_REAL, &t, NULL), 0);
}

/* Another program holds the lock file of a chunk and never gives it back. */
static void lock_waits_end(void **state)
{
    struct sigaction action = {.sa_handler = on_alarm}, before;
    char name[128];
    struct world w;
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
    alarm_in_ms(100);
    assert_status(rows_io(w.store, "src/a", signalled, 1), ZARR_ERR_CANCELLED);
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
    const int64_t shape[2] = {ROWS, COLS};

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
        zarr_tensor_host(&t, data, sizeof data, 2, shape);
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
    pthread_mutex_t mutex;
    zarr_store_op *op[64];
    int n;
    void (*done)(void *arg, zarr_store_op *op, const zarr_error *err);
    void *arg;
    int n_cancelled;
} hung = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void hung_submit(void *self, zarr_store_op **ops, uint64_t n,
                        void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                        void *arg)
{
    for (uint64_t i = 0; i < n; i++) {
        const bool chunk = strstr(ops[i]->key, "/c/") != NULL;
        zarr_error err = ZARR_ERROR_INIT;

        if (chunk) {
            pthread_mutex_lock(&hung.mutex);
            assert_true(hung.n < 64);
            hung.op[hung.n++] = ops[i];
            hung.done = done;
            hung.arg = arg;
            pthread_mutex_unlock(&hung.mutex);
            continue;
        }
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

static void operations_in_flight_end(void **state)
{
    struct sigaction action = {.sa_handler = on_alarm}, before;
    zarr_store *s = NULL;
    struct world w;

    (void)state;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    open_trap(&w, &s, NULL, -1);
    zarr_store_free(s);
    assert_ok(zarr_store_open_custom(&s, w.ctx, &hung_vtable, NULL, NULL, &terr));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everywhere),
        cmocka_unit_test(set_before),
        cmocka_unit_test(lock_waits_end),
        cmocka_unit_test(shape_waits_end),
        cmocka_unit_test(operations_in_flight_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
