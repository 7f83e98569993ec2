/*
 * unit/tree/cancel_test.c - see cancel_test.h.
 */
#include "cancel_test.h"

#include <signal.h>
#include <sys/time.h>

/* ---- a store that sets the object before its n-th operation ---------------- */

struct trap trap;

static void trap_step(void)
{
    if (trap.cancel && zarr_cancel_is_set(trap.cancel))
        atomic_fetch_add(&trap.after, 1);
    if (atomic_fetch_sub(&trap.left, 1) == 0)
        zarr_cancel_set(trap.cancel);
}

void trap_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT;
}

void trap_run(void *self, zarr_store_op *op, zarr_error *err)
{
    char *p = op->mem.handle ? (char *)op->mem.handle + op->mem.offset : NULL;

    (void)self;
    trap_step();
    op->done_bytes = 0;
    op->object_bytes = UINT64_MAX;
    if (op->verb == ZARR_STORE_PUT) {
        op->status = zarr_store_put(trap.below, op->key, p, op->mem.bytes, NULL, err);
    } else if (op->verb == ZARR_STORE_ERASE) {
        op->status = zarr_store_erase(trap.below, op->key, NULL, err);
    } else {
        zarr_store_run(trap.below, op, err);
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

zarr_status trap_list(void *self, const char *prefix, uint32_t how, zarr_store_list_fn fn,
                      void *user, const zarr_cancel *cancel, zarr_error *err)
{
    struct trap_listing l = {fn, user};

    (void)cancel;
    (void)self;
    return zarr_store_list(trap.below, prefix, how, trap_row, &l, NULL, err);
}

const zarr_store_vtable trap_vtable = {
    .struct_size = sizeof trap_vtable,
    .name = "trap",
    .caps = trap_caps,
    .run = trap_run,
    .list = trap_list,
};

/* ---- arrays ------------------------------------------------------------------ */

zarr_array *open_array(zarr_store *s, const char *path)
{
    zarr_array *a = NULL;

    assert_ok(zarr_array_open(&a, s, path, NULL, &terr));
    return a;
}

zarr_status rows_io(zarr_store *s, const char *path, zarr_cancel *cancel, int what)
{
    static int32_t data[ROWS * COLS];
    const uint64_t shape[2] = {ROWS, COLS};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_array *a = open_array(s, path);
    zarr_tensor t;
    zarr_status st;

    o.cancel = cancel;
    o.max_threads = 1;
    for (int i = 0; i < ROWS * COLS; i++)
        data[i] = 50000 + i;
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    if (what == 0)
        st = zarr_array_read(a, NULL, &t, &o, &terr);
    else if (what == 1)
        st = zarr_array_write(a, NULL, &t, &o, &terr);
    else
        st = zarr_array_append(a, 0, &t, NULL, &o, &terr);
    zarr_array_free(a);
    return st;
}

/* src: a group with a (chunks) and g/s (shards); old: a v2 group with v. */
void make_trees(struct world *w)
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

/* Each element of src/a is old or new, if src is still there. */
void check_elements(struct world *w)
{
    int32_t data[2 * ROWS * COLS];
    zarr_array *a = NULL;
    const uint64_t *size;
    zarr_tensor t;
    uint64_t shape[2];

    if (zarr_array_open(&a, w->store, "src/a", NULL, NULL) != ZARR_OK)
        return;
    size = zarr_array_shape(a);
    shape[0] = (uint64_t)size[0];
    shape[1] = (uint64_t)size[1];
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
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

void open_trap(struct world *w, zarr_store **s, zarr_cancel *c, int left)
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

/* ---- a store whose operations end only if it is asked to -------------------------- */

struct hung_store hung_store = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Without a cancel object the operation fails instead, so that the test ends. */
static void fail_endless(zarr_store_op *op, zarr_error *err)
{
    hung_store.n_endless++;
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
        const bool hangs = strstr(ops[i]->key, hung_store.what) &&
                           (hung_store.verb == 0 || hung_store.verb == ops[i]->verb) &&
                           (hung_store.skip == 0 || hung_store.skip-- == 0);
        zarr_error err = ZARR_ERROR_INIT;

        if (hangs && hung_store.is_done)
            trap_run(self, ops[i], &err);
        if (hangs && ops[i]->cancel) {
            pthread_mutex_lock(&hung_store.mutex);
            assert_true(hung_store.n < 64);
            hung_store.op[hung_store.n++] = ops[i];
            hung_store.done = done;
            hung_store.arg = arg;
            pthread_mutex_unlock(&hung_store.mutex);
            if (hung_store.signals)
                zarr_cancel_set(alarm_cancel);
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
    pthread_mutex_lock(&hung_store.mutex);
    assert_ptr_equal(hung_store.arg, arg);
    n = hung_store.n;
    memcpy(op, hung_store.op, sizeof op);
    hung_store.n = 0;
    hung_store.n_cancelled += n;
    pthread_mutex_unlock(&hung_store.mutex);
    err.code = ZARR_ERR_CANCELLED;
    for (int i = 0; i < n; i++) {
        op[i]->status = ZARR_ERR_CANCELLED;
        snprintf(err.message, sizeof err.message, "%s: cancelled", op[i]->key);
        hung_store.done(arg, op[i], &err);
    }
}

const zarr_store_vtable hung_vtable = {
    .struct_size = sizeof hung_vtable,
    .name = "hung",
    .caps = trap_caps,
    .submit = hung_submit,
    .cancel = hung_cancel,
    .list = trap_list,
};

zarr_store *open_hung(struct world *w)
{
    zarr_store *s = NULL;

    open_trap(w, &s, NULL, -1);
    zarr_store_free(s);
    assert_ok(zarr_store_open_custom(&s, w->ctx, &hung_vtable, NULL, NULL, &terr));
    return s;
}

/* ---- alarms -------------------------------------------------------------------- */

zarr_cancel *alarm_cancel;
static struct sigaction before_alarms;

static void on_alarm(int number)
{
    (void)number;
    zarr_cancel_set(alarm_cancel);
}

void begin_alarms(void)
{
    const struct sigaction action = {.sa_handler = on_alarm};

    assert_int_equal(sigaction(SIGALRM, &action, &before_alarms), 0);
}

void alarm_in_ms(int ms)
{
    const struct itimerval t = {
        .it_value = {.tv_sec = ms / 1000, .tv_usec = 1000L * (ms % 1000)}};

    assert_int_equal(setitimer(ITIMER_REAL, &t, NULL), 0);
}

void end_alarms(void)
{
    assert_int_equal(sigaction(SIGALRM, &before_alarms, NULL), 0);
}
