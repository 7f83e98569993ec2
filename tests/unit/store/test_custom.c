/*
 * unit/store/test_custom.c - applications' stores: which tables are accepted, mistakes
 * of a store that must do no harm, memory that the store cannot access, cancelling, and
 * freeing everything inside the last completion.
 */
#include "store_test.h"

#include <unistd.h>

/* ---- registering ---- */

static int n_closed;

static void null_caps(void *self, zarr_store_caps *out)
{
    out->flags = self ? *(uint32_t *)self : 0;
}

static void null_run(void *self, zarr_store_op *op, zarr_error *err)
{
    (void)self;
    (void)err;
    op->status = ZARR_ERR_NOT_FOUND;
}

static void null_close(void *self)
{
    (void)self;
    n_closed++;
}

static zarr_status null_open(void **self, zarr_context *ctx, const char *url,
                             const zarr_store_options *opts, const zarr_cancel *cancel,
                             zarr_error *err)
{
    (void)cancel;
    (void)ctx;
    (void)opts;
    *self = &n_closed;
    return strstr(url, "bad") ? zr_fail(err, ZARR_ERR_IO, "no") : ZARR_OK;
}

static const zarr_store_vtable null_vtable = {.struct_size = sizeof null_vtable,
                                              .name = "null",
                                              .open = null_open,
                                              .caps = null_caps,
                                              .run = null_run,
                                              .close = null_close};

static zarr_status register_named(struct world *w, const char *name)
{
    zarr_store_vtable vt = null_vtable;

    vt.name = name;
    return zr_store_register(w->registry, &vt, "test", NULL);
}

static void register_stores(void **state)
{
    struct world *w = *state;
    zarr_store_vtable vt = null_vtable;
    const char *name, *origin, *detail;
    zarr_error err = {0};
    zarr_store *s = NULL;

    assert_status(register_named(w, "local"), ZARR_ERR_EXISTS);
    assert_status(register_named(w, "file"), ZARR_ERR_EXISTS);
    assert_status(register_named(w, "memory"), ZARR_ERR_EXISTS);
    assert_status(register_named(w, ""), ZARR_ERR_INVALID);
    assert_status(register_named(w, "A"), ZARR_ERR_INVALID);
    assert_status(register_named(w, "a/b"), ZARR_ERR_INVALID);
    assert_status(register_named(w, NULL), ZARR_ERR_INVALID);
    assert_status(zr_store_open(&s, w->registry, &w->env, "null://x", NULL, &err),
                  ZARR_ERR_UNSUPPORTED);
    assert_status(register_named(w, "null"), ZARR_OK);
    assert_status(register_named(w, "null"), ZARR_ERR_EXISTS);
    vt.run = NULL;
    assert_status(zr_store_register(w->registry, &vt, NULL, &err), ZARR_ERR_INVALID);
    vt = null_vtable;
    vt.struct_size = 0;
    assert_status(zr_store_register(w->registry, &vt, NULL, &err), ZARR_ERR_ABI);
    assert_status(zr_store_register(w->registry, NULL, NULL, &err), ZARR_ERR_INVALID);
    n_closed = 0;
    assert_status(zr_store_open(&s, w->registry, &w->env, "null://x", NULL, &err),
                  ZARR_OK);
    assert_string_equal(zr_store_name(s), "null");
    assert_null(get_text(s, "k"));
    zarr_store_free(s);
    assert_int_equal(n_closed, 1);
    assert_status(zr_store_open(&s, w->registry, &w->env, "null:bad", NULL, &err),
                  ZARR_ERR_IO);
    assert_int_equal(n_closed, 1); /* the store that failed to open is not closed */
    zr_store_registry_item(w->registry, zr_store_registry_count(w->registry) - 1, &name,
                           &origin, &detail);
    assert_string_equal(name, "null");
    assert_string_equal(origin, "test");
    /* An older program's struct size. */
    vt.struct_size = offsetof(zarr_store_vtable, rename);
    vt.name = "older";
    assert_status(zr_store_register(w->registry, &vt, NULL, &err), ZARR_OK);
}

/* self is closed exactly once, even if opening fails. */
static void self_is_moved(void **state)
{
    struct world *w = *state;
    uint32_t lies[] = {ZARR_STORE_CAP_LIST, ZARR_STORE_CAP_LOCK};
    zarr_store_options o = {.struct_size = sizeof o, .flags = 1u << 30};
    zarr_error err = {0};
    zarr_store *s = NULL;
    uint32_t none = 0;

    n_closed = 0;
    assert_status(zr_store_open_custom(&s, &w->env, &null_vtable, &none, &o, &err),
                  ZARR_ERR_INVALID);
    assert_int_equal(n_closed, 1);
    for (size_t i = 0; i < ZR_COUNT(lies); i++)
        assert_status(
            zr_store_open_custom(&s, &w->env, &null_vtable, &lies[i], NULL, &err),
            ZARR_ERR_INVALID);
    assert_int_equal(n_closed, 3);
    assert_status(zr_store_open_custom(&s, &w->env, &null_vtable, &none, NULL, &err),
                  ZARR_OK);
    assert_int_equal(zr_store_context(s) == w->env.ctx, 1);
    assert_status(put_text(s, "k", "v"), ZARR_ERR_UNSUPPORTED);
    assert_status(zarr_store_flush(s, NULL, &err), ZARR_OK);
    zarr_store_free(s);
    assert_int_equal(n_closed, 4);
}

/* ---- a store that breaks the contract ---- */

static void lying_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_LIST;
}

static void lying_run(void *self, zarr_store_op *op, zarr_error *err)
{
    (void)self;
    (void)err;
    op->status =
        zr_streq(op->key, "never") ? op->status : ZARR_OK; /* does not set the status */
    op->done_bytes = op->mem.bytes + !zr_streq(op->key, "long version");
    op->object_bytes = 1000;
    if (zr_streq(op->key, "long version"))
        op->version.bytes[0] = sizeof op->version.bytes;
}

static zarr_status lying_list(void *self, const char *prefix, uint32_t how,
                              zarr_store_list_fn fn, void *user,
                              const zarr_cancel *cancel, zarr_error *err)
{
    zarr_store_item item = {.key = "../../etc/passwd"};

    (void)cancel;
    (void)self;
    (void)how;
    (void)err;
    if (*prefix != '\0')
        item.key = "elsewhere/v";
    return fn(user, &item) != 0 ? ZARR_OK : ZARR_OK;
}

static int lying_row(void *user, const zarr_store_item *item)
{
    (void)item;
    ++*(int *)user;
    return 0;
}

static void lies_are_found(void **state)
{
    const zarr_store_vtable vt = {.struct_size = sizeof vt,
                                  .caps = lying_caps,
                                  .run = lying_run,
                                  .list = lying_list};
    struct world *w = *state;
    zarr_error err = {0};
    zarr_store *s = NULL;
    char to[4];
    zarr_store_op op = get_op("k", 0, 4, to, 4);
    int n_rows = 0;

    assert_status(zr_store_open_custom(&s, &w->env, &vt, NULL, NULL, &err), ZARR_OK);
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_INTERNAL);
    assert_int_equal(op.done_bytes, 0);
    op.key = "never";
    assert_true(zr_store_run_one(s, &op, &err) != ZARR_OK);
    op.key = "long version";
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_INTERNAL);
    assert_non_null(strstr(err.message, "a version of 64 bytes, at most 63 fit"));
    assert_status(zarr_store_list(s, "", 0, lying_row, &n_rows, NULL, &err),
                  ZARR_ERR_CORRUPT);
    assert_status(zarr_store_list(s, "a", 0, lying_row, &n_rows, NULL, &err),
                  ZARR_ERR_CORRUPT);
    assert_int_equal(n_rows, 0);
    zarr_store_free(s);
}

/* Gives at most 4 bytes at once, as a connection that breaks off. */
static void short_run(void *self, zarr_store_op *op, zarr_error *err)
{
    (void)self;
    (void)err;
    op->status = ZARR_OK;
    op->object_bytes = 10;
    if (op->verb != ZARR_STORE_GET)
        return;
    op->done_bytes = ZR_MIN(ZR_MIN(op->mem.bytes, op->length), UINT64_C(4));
    if (op->done_bytes > 0)
        memcpy(op->mem.handle, "0123456789", op->done_bytes);
}

/* Part of a value is no value, and its end is not the value's. */
static void short_answers(void **state)
{
    static const uint64_t ranges[][2] = {{0, ZARR_STORE_TO_END},
                                         {0, 5},
                                         {5, ZARR_STORE_TO_END},
                                         {1, 2},
                                         {ZARR_STORE_SUFFIX, 3}};
    const zarr_store_vtable vt = {
        .struct_size = sizeof vt, .caps = null_caps, .run = short_run};
    struct world *w = *state;
    uint32_t none = 0;
    zarr_error err = {0};
    zarr_store *s = NULL;
    char to[16];
    zarr_store_op op;

    assert_status(zr_store_open_custom(&s, &w->env, &vt, &none, NULL, &err), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(ranges); i++) {
        op = get_op("k", ranges[i][0], ranges[i][1], to, sizeof to);
        assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_IO);
        assert_non_null(strstr(err.message, "4 of "));
        assert_int_equal(op.done_bytes, 0);
    }
    op = get_op("k", 0, ZARR_STORE_TO_END, to, 4);
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_int_equal(op.done_bytes, 4);
    zarr_store_free(s);
}

/* Goes on although the library's function said that the listing ends. */
static zarr_status deaf_list(void *self, const char *prefix, uint32_t how,
                             zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                             zarr_error *err)
{
    static const char *const keys[] = {"a", "b", "../c", "d"};

    (void)cancel;
    (void)self;
    (void)prefix;
    (void)how;
    (void)err;
    for (size_t i = 0; i < ZR_COUNT(keys); i++)
        (void)fn(user, &(zarr_store_item){.key = keys[i]});
    return ZARR_OK;
}

static int count_to_two(void *user, const zarr_store_item *item)
{
    (void)item;
    return ++*(int *)user == 2;
}

static void an_end_is_an_end(void **state)
{
    const zarr_store_vtable vt = {.struct_size = sizeof vt,
                                  .caps = lying_caps,
                                  .run = lying_run,
                                  .list = deaf_list};
    struct world *w = *state;
    zarr_error err = {0};
    zarr_store *s = NULL;
    int n_rows = 0;

    assert_status(zr_store_open_custom(&s, &w->env, &vt, NULL, NULL, &err), ZARR_OK);
    assert_status(zarr_store_list(s, "", 0, count_to_two, &n_rows, NULL, &err), ZARR_OK);
    assert_int_equal(n_rows, 2);
    n_rows = 10;
    assert_status(zarr_store_list(s, "", 0, count_to_two, &n_rows, NULL, &err),
                  ZARR_ERR_CORRUPT);
    assert_int_equal(n_rows, 12); /* nothing after the key that is none */
    zarr_store_free(s);
}

/* ---- memory the host cannot touch ---- */

/* Handles are addresses with a bit set, so that any direct access faults. */
#define FAR_AWAY ((uintptr_t)1 << 63)

static void *device_host(const zarr_memory *m)
{
    uintptr_t p = (uintptr_t)m->handle;

    if (m->device_type == ZARR_DEVICE_EXT)
        p &= ~FAR_AWAY;
    return (char *)p + m->offset;
}

static zarr_status device_alloc(void *self, int32_t id, uint64_t bytes, zarr_memory *out,
                                zarr_error *err)
{
    (void)self;
    (void)err;
    *out = (zarr_memory){ZARR_DEVICE_EXT, id,
                         (void *)((uintptr_t)malloc(bytes) | FAR_AWAY), 0, bytes};
    return ZARR_OK;
}

static void device_free(void *self, zarr_memory *mem)
{
    (void)self;
    free((void *)((uintptr_t)mem->handle & ~FAR_AWAY));
}

static zarr_status device_copy(void *self, const zarr_memory *dst, const zarr_memory *src,
                               uint64_t bytes, void *stream, zarr_error *err)
{
    (void)self;
    (void)stream;
    (void)err;
    memcpy(device_host(dst), device_host(src), bytes);
    return ZARR_OK;
}

static const zarr_memory_vtable device_vtable = {.struct_size = sizeof device_vtable,
                                                 .name = "far",
                                                 .device_type = ZARR_DEVICE_EXT,
                                                 .alloc = device_alloc,
                                                 .free = device_free,
                                                 .copy = device_copy};

static void far_memory_on(struct world *w, zarr_store *s)
{
    zarr_error err = {0};
    zarr_memory far = {0}, back = {0};
    zarr_store_op op = {.verb = ZARR_STORE_PUT, .key = "far/v"};

    assert_status(device_alloc(NULL, 0, 10, &far, &err), ZARR_OK);
    assert_status(device_alloc(NULL, 0, 16, &back, &err), ZARR_OK);
    memcpy(device_host(&far), "0123456789", 10);
    op.mem = far;
    if (zr_store_run_one(s, &op, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    assert_string_equal(get_text(s, "far/v"), "0123456789");
    memset(device_host(&back), '#', 16);
    op =
        (zarr_store_op){.verb = ZARR_STORE_GET, .key = "far/v", .offset = 2, .length = 5};
    op.mem = back;
    op.mem.offset = 3;
    op.mem.bytes = 13;
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_int_equal(op.done_bytes, 5);
    assert_int_equal(op.mem.device_type, ZARR_DEVICE_EXT);
    assert_memory_equal(device_host(&back), "###23456########", 16);
    op.offset = ZARR_STORE_SUFFIX;
    op.length = 2;
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_memory_equal(device_host(&back), "###89456########", 16);
    device_free(NULL, &far);
    device_free(NULL, &back);
    zarr_store_free(s);
    (void)w;
}

static void far_memory(void **state)
{
    zarr_store_options o = {.struct_size = sizeof o, .device_type = ZARR_DEVICE_EXT};
    struct world *w = *state;
    zarr_error err = {0};
    zarr_store *s = NULL;

    assert_status(zr_memory_register(&w->memory, &device_vtable, NULL, "test", &err),
                  ZARR_OK);
    for (enum sort sort = 0; sort < N_SORTS; sort++) {
        s = open_sort(w, sort);
        assert_false(zr_store_device_direct(s, ZARR_DEVICE_EXT));
        assert_true(zr_store_device_direct(s, ZARR_DEVICE_CPU));
        far_memory_on(w, s);
    }
    /* values that are in such memory themselves */
    assert_status(zr_store_open(&s, w->registry, &w->env, "memory:", &o, &err), ZARR_OK);
    assert_true(zr_store_device_direct(s, ZARR_DEVICE_EXT));
    far_memory_on(w, s);
    o.device_type = 29;
    assert_status(zr_store_open(&s, w->registry, &w->env, "memory:", &o, &err),
                  ZARR_ERR_UNSUPPORTED);
}

/* ---- cancelling and freeing ---- */

enum {
    FLIGHT = 300
};

struct flight {
    zarr_store *s;
    zarr_store_op op[FLIGHT], *ptr[FLIGHT];
    char to[FLIGHT][4];
    atomic_int n_left, n_cancelled, n_ok;
    zr_mutex mutex;
    zr_cond cond;
    bool free_store, landed;
};

static void flight_done(void *arg, zarr_store_op *op, const zarr_error *err)
{
    struct flight *f = arg;
    zarr_store *s = f->s;

    (void)err;
    if (op->status == ZARR_ERR_CANCELLED)
        atomic_fetch_add(&f->n_cancelled, 1);
    else if (op->status == ZARR_OK)
        atomic_fetch_add(&f->n_ok, 1);
    memset(op, 0xa5, sizeof *op); /* must not be accessed again */
    if (atomic_fetch_sub(&f->n_left, 1) != 1)
        return;
    if (f->free_store)
        zarr_store_free(s);
    zr_mutex_lock(&f->mutex);
    f->landed = true;
    zr_cond_signal(&f->cond);
    zr_mutex_unlock(&f->mutex);
}

static struct flight *flight_start(zarr_store *s, bool suffixes, bool free_store)
{
    struct flight *f = calloc(1, sizeof *f);

    f->s = s;
    f->free_store = free_store;
    zr_mutex_init(&f->mutex);
    zr_cond_init(&f->cond);
    f->n_left = FLIGHT;
    for (int i = 0; i < FLIGHT; i++) {
        f->op[i] = get_op("v", suffixes && i % 2 ? ZARR_STORE_SUFFIX : 0, 4, f->to[i], 4);
        f->ptr[i] = &f->op[i];
    }
    zr_store_submit(s, f->ptr, FLIGHT, flight_done, f);
    return f;
}

static void flight_end(struct flight *f, bool may_cancel)
{
    zr_mutex_lock(&f->mutex);
    while (!f->landed)
        zr_cond_wait(&f->cond, &f->mutex);
    zr_mutex_unlock(&f->mutex);
    assert_int_equal(f->n_cancelled + f->n_ok, FLIGHT);
    assert_true(may_cancel || f->n_cancelled == 0);
    zr_cond_deinit(&f->cond);
    zr_mutex_deinit(&f->mutex);
    free(f);
}

static void cancel_operations(void **state)
{
    struct world *w = *state;

    for (enum sort sort = 0; sort < N_SORTS; sort++) {
        zarr_store *s = open_sort(w, sort);
        struct flight *f, *other;

        assert_status(put_text(s, "v", "value"), ZARR_OK);
        other = flight_start(s, true, false);
        f = flight_start(s, true, false);
        zr_store_cancel(s, f);
        zr_store_cancel(s, &w); /* belongs to no request */
        flight_end(f, true);
        flight_end(other, false);
        zarr_store_free(s);
    }
}

/* The store is freed in the last completion or, if that runs on the store's own event
 * loop, by another thread right after it. */
static void freeing_in_the_last(void **state)
{
    struct world *w = *state;

    for (enum sort sort = 0; sort < N_SORTS; sort++) {
        bool is_loop = sort == SORT_ASYNC;

        for (int i = 0; i < 10; i++) {
            zarr_store *s = open_sort(w, sort);

            assert_status(put_text(s, "v", "value"), ZARR_OK);
            flight_end(flight_start(s, !is_loop, !is_loop), false);
            if (is_loop)
                zarr_store_free(s);
        }
    }
}

#define T(f)                                                                             \
    {                                                                                    \
#        f, f, world_setup, world_teardown, NULL                                         \
    }

/* ---- a lock that cannot refuse to wait ---- */

static zarr_cancel *request_cancel;

/* Looks at its cancel object first, and then waits for another holder, for ever. */
static zarr_status stubborn_lock(void *self, const char *key, const zarr_cancel *cancel,
                                 void **lock, zarr_error *err)
{
    (void)self;
    (void)key;
    (void)lock;
    (void)err;
    if (zarr_cancel_is_set(cancel))
        return ZARR_ERR_CANCELLED;
    zarr_cancel_set(request_cancel);
    return zarr_cancel_is_set(cancel) ? ZARR_ERR_CANCELLED : ZARR_ERR_INTERNAL;
}

static void stubborn_unlock(void *self, void *lock)
{
    (void)self;
    (void)lock;
}

static void stubborn_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_LOCK;
}

/* Such a store is waited for, but not after the request was cancelled. */
static void trying_to_lock(void **state)
{
    struct world *w = *state;
    zarr_store_vtable vt = null_vtable;
    zarr_error err = {0};
    zarr_store *s = NULL;
    void *lock = NULL;
    uint32_t none = 0;

    vt.caps = stubborn_caps;
    vt.lock = stubborn_lock;
    vt.unlock = stubborn_unlock;
    assert_status(zarr_cancel_create(&request_cancel, &err), ZARR_OK);
    assert_status(zr_store_open_custom(&s, &w->env, &vt, &none, NULL, &err), ZARR_OK);
    assert_status(zr_store_lock_try(s, "k", request_cancel, &lock, &err),
                  ZARR_ERR_CANCELLED);
    assert_null(lock);
    zarr_cancel_reset(request_cancel);
    assert_status(zr_store_lock_try(s, "k", NULL, &lock, &err), ZARR_ERR_INTERNAL);
    zarr_store_free(s);
    zarr_cancel_free(request_cancel);
}

/* ---- a store that says OK and gives nothing ---- */

static void empty_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_LOCK | ZARR_STORE_CAP_PARTS;
}

static void empty_run(void *self, zarr_store_op *op, zarr_error *err)
{
    (void)self;
    (void)err;
    op->status = ZARR_OK;
}

static zarr_status empty_lock(void *self, const char *key, const zarr_cancel *cancel,
                              void **lock, zarr_error *err)
{
    (void)self;
    (void)key;
    (void)cancel;
    (void)lock;
    (void)err;
    return ZARR_OK;
}

static zarr_status empty_parts(void *self, const char *key, void *lock,
                               const zarr_cancel *cancel, void **parts, zarr_error *err)
{
    (void)lock;
    return empty_lock(self, key, cancel, parts, err);
}

static void empty_end(void *self, const char *key, void *parts)
{
    (void)self;
    (void)key;
    (void)parts;
}

/* A lock that is NULL would never be given back. */
static void nothing_is_given(void **state)
{
    struct world *w = *state;
    zarr_store_vtable vt = null_vtable;
    zarr_error err = {0};
    zarr_store *s = NULL;
    void *held = NULL;
    uint32_t none = 0;

    vt.caps = empty_caps;
    vt.run = empty_run;
    vt.lock = empty_lock;
    vt.unlock = stubborn_unlock;
    vt.begin_parts = empty_parts;
    vt.end_parts = empty_end;
    assert_status(zr_store_open_custom(&s, &w->env, &vt, &none, NULL, &err), ZARR_OK);
    assert_status(zr_store_lock(s, "k", NULL, &held, &err), ZARR_ERR_INTERNAL);
    assert_non_null(strstr(err.message, "lock() of the null store gave NULL"));
    assert_status(put_text(s, "k", "v"), ZARR_ERR_INTERNAL);
    assert_status(zr_store_begin_parts(s, "k", NULL, NULL, &held, &err),
                  ZARR_ERR_INTERNAL);
    assert_status(zarr_store_stat(s, "k", NULL, NULL, &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "does not tell the length"));
    zarr_store_free(s);
}

/* ---- the form of a store ---- */

static zarr_status odd_check(void *self, zarr_store_check_fn fn, void *user,
                             const zarr_cancel *cancel, zarr_error *err)
{
    ZR_UNUSED(self);
    ZR_UNUSED(cancel);
    ZR_UNUSED(err);
    fn(user, 1, NULL);
    fn(user, 0, "two\nlines");
    return (zarr_status)4711;
}

static void odd_found(void *user, int is_fault, const char *text)
{
    assert_null(strchr(text, '\n'));
    *(int *)user += is_fault ? 10 : 1;
}

static void odd_findings(void **state)
{
    struct world *w = *state;
    zarr_store_vtable vt = null_vtable;
    zarr_store *s = NULL;
    zarr_error err = {0};
    uint32_t none = 0;
    int n = 0;

    assert_status(zr_store_open_custom(&s, &w->env, &vt, &none, NULL, &err), ZARR_OK);
    assert_status(zr_store_check(s, odd_found, &n, NULL, &err), ZARR_OK);
    assert_int_equal(n, 0);
    zarr_store_free(s);
    vt.check = odd_check;
    assert_status(zr_store_open_custom(&s, &w->env, &vt, &none, NULL, &err), ZARR_OK);
    assert_status(zr_store_check(s, odd_found, &n, NULL, &err), ZARR_ERR_INTERNAL);
    assert_int_equal(n, 11);
    zarr_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(register_stores),   T(self_is_moved),       T(lies_are_found),
        T(short_answers),     T(an_end_is_an_end),    T(far_memory),
        T(cancel_operations), T(freeing_in_the_last), T(trying_to_lock),
        T(nothing_is_given),  T(odd_findings),
    };

    return cmocka_run_group_tests_name("custom", tests, NULL, NULL);
}
