/* unit/store/store_test.c - see store_test.h. */
#include "unit/conditional_caps.h"
#include "store_test.h"
#include "unit/world_alloc.h"

#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

/* ---- world ---- */

static void world_ref(zarr_context *ctx)
{
    atomic_fetch_add(&((struct world *)(void *)ctx)->ctx_refs, 1);
}

static void world_unref(zarr_context *ctx)
{
    atomic_fetch_sub(&((struct world *)(void *)ctx)->ctx_refs, 1);
}

void world_init(struct world *w)
{
    const char *tmp = getenv("TMPDIR");
    zarr_error err;

    memset(w, 0, sizeof *w);
    w->alloc = (zarr_allocator){w, world_alloc, world_realloc, world_dealloc};
    snprintf(w->dir, sizeof w->dir, "%s/zarrc-store-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(w->dir));
    assert_status(zr_memory_registry_init(&w->memory, &w->alloc, &err), ZARR_OK);
    assert_status(zr_store_registry_create(&w->registry, &w->alloc, &err), ZARR_OK);
    assert_status(zr_store_registry_add_core(w->registry, &err), ZARR_OK);
    w->env = (struct zr_store_env){.alloc = &w->alloc,
                                   .memory = &w->memory,
                                   .ctx = (zarr_context *)(void *)w,
                                   .ctx_ref = world_ref,
                                   .ctx_unref = world_unref};
    zr_limits_default(&w->env.limits);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void world_free(struct world *w)
{
    assert_int_equal(w->ctx_refs, 0);
    zr_store_registry_free(w->registry);
    zr_memory_registry_deinit(&w->memory);
    nftw(w->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(w->n_blocks, 0);
}

int world_setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    world_init(w);
    *state = w;
    return 0;
}

int world_teardown(void **state)
{
    world_free(*state);
    free(*state);
    return 0;
}

void path_in(const struct world *w, char *out, size_t cap, const char *name)
{
    snprintf(out, cap, "%s/%s", w->dir, name);
}

/* Works without /proc, which a machine may lack: a new descriptor is the lowest free
 * one. */
int count_open_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

/* ---- the application's store: forwards to a memory store ---- */

struct custom {
    struct world *world;
    zarr_store *inner;
    uint32_t caps;
    /* event loop */
    zr_thread thread;
    zr_mutex mutex;
    zr_cond cond;
    struct waiting {
        struct waiting *next;
        zarr_store_op *op;
        zr_store_done_fn done;
        void *arg;
        bool is_cancelled;
    } * queue;
    uint32_t n_queue;
    bool is_async, is_ending;
    uint64_t seed;
};

static void custom_caps(void *self, zarr_store_caps *out)
{
    struct custom *c = self;

    out->flags = c->caps;
    out->parallel = 4;
}

static void custom_run(void *self, zarr_store_op *op, zarr_error *err)
{
    struct custom *c = self;
    zarr_store_op x = *op;

    if ((op->verb == ZARR_STORE_STAT && !(c->caps & ZARR_STORE_CAP_RANGES)) ||
        (op->verb == ZARR_STORE_GET && op->offset == ZARR_STORE_SUFFIX &&
         !(c->caps & ZARR_STORE_CAP_SUFFIX)) ||
        (op->verb == ZARR_STORE_GET && !(c->caps & ZARR_STORE_CAP_RANGES) &&
         (op->offset != 0 || op->length != ZARR_STORE_TO_END))) {
        /* Without a message: the library writes one. */
        op->status = ZARR_ERR_UNSUPPORTED;
        return;
    }
    if ((op->flags & ~(uint32_t)ZARR_STORE_OP_KIND) != 0 &&
        !(c->caps & ZARR_STORE_CAP_VERSIONS)) {
        op->status = zr_fail(err, ZARR_ERR_INTERNAL, "flags that were never declared");
        return;
    }
    zr_store_run_one(c->inner, &x, err);
    op->status = x.status;
    op->done_bytes = x.done_bytes;
    if (op->verb == ZARR_STORE_STAT ||
        (x.done_bytes == op->mem.bytes && x.object_bytes > op->offset + x.done_bytes))
        op->object_bytes = x.object_bytes; /* only if the contract asks for it */
    if (c->caps & ZARR_STORE_CAP_VERSIONS)
        op->version = x.version;
}

static void custom_free(struct custom *c)
{
    const zarr_allocator *a = &c->world->alloc;

    zarr_store_free(c->inner);
    zr_free(a, c);
}

static void custom_close(void *self)
{
    struct custom *c = self;

    if (c->is_async) {
        zr_mutex_lock(&c->mutex);
        c->is_ending = true;
        zr_cond_signal(&c->cond);
        zr_mutex_unlock(&c->mutex);
        zr_thread_join(&c->thread);
        zr_cond_deinit(&c->cond);
        zr_mutex_deinit(&c->mutex);
    }
    custom_free(c);
}

static zarr_status custom_list(void *self, const char *prefix, uint32_t how,
                               zarr_store_list_fn fn, void *user,
                               const zarr_cancel *cancel, zarr_error *err)
{
    struct custom *c = self;

    (void)cancel;
    return zr_store_list(c->inner, prefix, how, fn, user, cancel, err);
}

static uint64_t custom_random(struct custom *c)
{
    c->seed = c->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return c->seed >> 33;
}

static void custom_submit(void *self, zarr_store_op **ops, uint64_t n,
                          zr_store_done_fn done, void *arg)
{
    struct custom *c = self;

    for (uint64_t i = 0; i < n; i++) {
        struct waiting *q = calloc(1, sizeof *q);

        *q = (struct waiting){NULL, ops[i], done, arg, false};
        zr_mutex_lock(&c->mutex);
        q->next = c->queue;
        c->queue = q;
        c->n_queue++;
        zr_cond_signal(&c->cond);
        zr_mutex_unlock(&c->mutex);
    }
}

static void custom_cancel(void *self, void *arg)
{
    struct custom *c = self;

    zr_mutex_lock(&c->mutex);
    for (struct waiting *q = c->queue; q; q = q->next)
        if (q->arg == arg)
            q->is_cancelled = true;
    zr_mutex_unlock(&c->mutex);
}

static void *custom_loop(void *arg)
{
    struct custom *c = arg;
    struct waiting *q, **at;
    zarr_error err;

    for (;;) {
        zr_mutex_lock(&c->mutex);
        while (!c->queue && !c->is_ending)
            zr_cond_wait(&c->cond, &c->mutex);
        if (!c->queue) {
            zr_mutex_unlock(&c->mutex);
            return NULL;
        }
        at = &c->queue;
        for (uint64_t skip = custom_random(c) % c->n_queue; skip > 0; skip--)
            at = &(*at)->next;
        q = *at;
        *at = q->next;
        c->n_queue--;
        zr_mutex_unlock(&c->mutex);
        if (custom_random(c) % 4 == 0)
            usleep((useconds_t)(custom_random(c) % 300));
        if (q->is_cancelled)
            q->op->status = zr_fail(&err, ZARR_ERR_CANCELLED, "cancelled");
        else
            custom_run(c, q->op, &err);
        q->done(q->arg, q->op, q->op->status == ZARR_OK ? NULL : &err);
        free(q);
    }
}

static zarr_status custom_create(struct custom **out, struct world *w, uint32_t caps,
                                 zarr_error *err)
{
    struct custom *c = zr_calloc(&w->alloc, 1, sizeof *c);
    zarr_status st;

    if (!c)
        return zr_fail_memory(err, sizeof *c);
    c->world = w;
    c->caps = caps;
    c->seed = 1;
    st = zr_store_open(&c->inner, w->registry, &w->env, "memory:", NULL, err);
    if (st == ZARR_OK)
        *out = c;
    else
        custom_free(c);
    return st;
}

zarr_status open_async(zarr_store **out, struct world *w, uint32_t caps, zarr_error *err)
{
    const zarr_store_vtable vt = {.struct_size = sizeof vt,
                                  .name = "async",
                                  .caps = custom_caps,
                                  .submit = custom_submit,
                                  .cancel = custom_cancel,
                                  .list = custom_list,
                                  .close = custom_close};
    struct custom *c = NULL;
    const zarr_store_options opts = {.struct_size = sizeof opts,
                                     .lock_wait_ms = w->lock_wait_ms};
    zarr_status st = custom_create(&c, w, caps, err);

    if (!c)
        return st;
    c->is_async = true;
    zr_mutex_init(&c->mutex);
    zr_cond_init(&c->cond);
    st = zr_thread_start(&c->thread, custom_loop, c, err);
    assert_status(st, ZARR_OK);
    return zr_store_open_custom(out, &w->env, &vt, c, &opts, err);
}

zarr_status open_plain(zarr_store **out, struct world *w, uint32_t caps, zarr_error *err)
{
    zarr_store_vtable vt = {.struct_size = sizeof vt,
                            .name = "plain",
                            .caps = custom_caps,
                            .run = custom_run,
                            .close = custom_close};
    struct custom *c = NULL;
    const zarr_store_options opts = {.struct_size = sizeof opts,
                                     .lock_wait_ms = w->lock_wait_ms};
    zarr_status st = custom_create(&c, w, caps, err);

    if (!c)
        return st;
    if (caps & ZARR_STORE_CAP_LIST)
        vt.list = custom_list;
    return zr_store_open_custom(out, &w->env, &vt, c, &opts, err);
}

/* ---- opening ---- */

const char *sort_name(enum sort sort)
{
    static const char *const names[] = {"local", "local, no locks", "memory",
                                        "async", "composite",       "plain"};

    return names[sort];
}

zarr_store *open_local(struct world *w, const zarr_store_options *opts)
{
    zarr_store *s = NULL;
    zarr_error err;

    if (zr_store_open(&s, w->registry, &w->env, w->dir, opts, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    return s;
}

static zarr_status open_composite(zarr_store **out, struct world *w,
                                  const zarr_store_options *opts, zarr_error *err)
{
    zarr_store *docs = open_local(w, opts), *chunks = open_sort(w, SORT_MEMORY);
    const zarr_status st = zarr_store_open_composite(out, docs, chunks, NULL, err);

    zarr_store_free(docs);
    zarr_store_free(chunks);
    return st;
}

zarr_store *open_sort(struct world *w, enum sort sort)
{
    zarr_store_options opts = {.struct_size = sizeof opts,
                               .lock_wait_ms = w->lock_wait_ms};
    zarr_store *s = NULL;
    zarr_error err;
    zarr_status st = ZARR_OK;

    opts.durability = ZARR_DURABILITY_NONE;
    if (sort == SORT_LOCAL_NO_LOCKS)
        opts.locks = ZARR_LOCKS_NONE;
    if (sort == SORT_LOCAL || sort == SORT_LOCAL_NO_LOCKS)
        return open_local(w, &opts);
    if (sort == SORT_MEMORY)
        st = zr_store_open(&s, w->registry, &w->env, "memory:", &opts, &err);
    else if (sort == SORT_COMPOSITE)
        st = open_composite(&s, w, &opts, &err);
    else if (sort == SORT_ASYNC)
        st = open_async(&s, w,
                        ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_LIST |
                            ZARR_STORE_CAP_WRITE | CAPS_CONDITIONAL,
                        &err);
    else
        st = open_plain(&s, w, ZARR_STORE_CAP_WRITE, &err);
    if (st != ZARR_OK)
        fail_msg("%s", err.message);
    return s;
}

/* ---- reading and writing ---- */

zarr_status put_text(zarr_store *s, const char *key, const char *text)
{
    return zarr_store_put(s, key, text, strlen(text), NULL, NULL);
}

const char *get_text(zarr_store *s, const char *key)
{
    static _Thread_local char text[4096];
    uint64_t bytes = sizeof text - 1;
    zarr_error err;
    zarr_status st = zarr_store_get(s, key, 0, text, &bytes, NULL, &err);

    if (st == ZARR_ERR_NOT_FOUND)
        return NULL;
    if (st != ZARR_OK)
        fail_msg("%s: %s", key, err.message);
    text[bytes] = '\0';
    return text;
}

zarr_store_op get_op(const char *key, uint64_t offset, uint64_t length, void *to,
                     uint64_t bytes)
{
    return (zarr_store_op){.verb = ZARR_STORE_GET,
                           .key = key,
                           .offset = offset,
                           .length = length,
                           .mem = zr_mem_of_host(to, bytes)};
}
