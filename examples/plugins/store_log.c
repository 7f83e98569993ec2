/*
 * store_log.c - a store that wraps another one: "log:URL", or "log://URL", passes every
 * operation on to the store at URL and writes a line to the context's log, which
 * `zarrc -v` shows. Operations that come together go to that store together, so that a
 * web server, for example, gets its requests at the same time.
 *
 *     cc -shared -fPIC -o store_log.so store_log.c
 *     zarrc --plugin=./store_log.so -v info log:///data/x.zarr
 *
 * The option {"example-log": {"chunks": false}} omits the lines of chunks.
 */
#include <zarrc/plugin/plugin.h>

#include <string.h>

static const zarr_host *host;
static int chunks = 1; /* the option: for all contexts of the process */

struct log_store {
    zarr_context *ctx; /* borrowed: the library's store holds it */
    zarr_store *inner;
};

/* A copy of an operation, which the inner store gets. */
struct log_op {
    zarr_store_op op; /* the first member: its address is that of the struct */
    zarr_store_op *outer;
    const struct log_store *store;
    void (*done)(void *arg, zarr_store_op *op, const zarr_error *err);
};

static zarr_status store_open(void **self, zarr_context *ctx, const char *url,
                              const zarr_store_options *opts, const zarr_cancel *cancel,
                              zarr_error *err)
{
    struct log_store *s = (struct log_store *)host->alloc(ctx, sizeof *s);
    zarr_store_options inner = ZARR_STORE_OPTIONS_INIT;
    zarr_status st;

    (void)cancel;
    if (!s)
        return host->fail(err, ZARR_ERR_NO_MEMORY, "log: no memory");
    if (opts)
        inner = *opts;
    inner.kind = NULL;
    s->ctx = ctx;
    url += strlen("log:");
    url += strncmp(url, "//", 2) == 0 ? 2 : 0;
    st = host->store_open(&s->inner, ctx, url, &inner, err);
    if (st != ZARR_OK) {
        host->free(ctx, s);
        return st;
    }
    *self = s;
    return ZARR_OK;
}

/* Everything that the inner store can do: operations are passed on as they are, with
 * their memory of any kind, versions and locks. */
static void store_caps(void *self, zarr_store_caps *out)
{
    host->store_capabilities(((const struct log_store *)self)->inner, out);
}

static void write_line(const struct log_store *s, const zarr_store_op *op)
{
    static const char *const verbs[] = {"?",    "GET",  "PUT",  "ERASE",
                                        "COPY", "STAT", "PART", "APPEND"};
    static const char *const kinds[] = {"", " document", " index", " chunk"};

    if (!chunks && (op->flags & ZARR_STORE_OP_KIND) >= ZARR_STORE_OP_INDEX)
        return;
    host->log(s->ctx, ZARR_LOG_INFO, "log: %s%s %s: status %d",
              verbs[op->verb <= ZARR_STORE_APPEND ? op->verb : 0],
              kinds[(op->flags & ZARR_STORE_OP_KIND) / ZARR_STORE_OP_DOCUMENT], op->key,
              (int)op->status);
}

static void store_run(void *self, zarr_store_op *op, zarr_error *err)
{
    const struct log_store *s = (const struct log_store *)self;

    (void)host->store_run(s->inner, op, err);
    write_line(s, op);
}

static void end_op(void *arg, zarr_store_op *op, const zarr_error *err)
{
    struct log_op *copy = (struct log_op *)op;
    const struct log_op one = *copy;
    void *tag = one.outer->tag;

    write_line(one.store, op);
    *one.outer = one.op;
    one.outer->tag = tag; /* the library's own */
    host->free(one.store->ctx, copy);
    one.done(arg, one.outer, err); /* after the last one, the store may be closed */
}

/* The inner store gets the same `arg`, by which store_cancel() names the operations. */
static void
store_submit(void *self, zarr_store_op **ops, uint64_t n,
             void (*done)(void *arg, zarr_store_op *op, const zarr_error *err), void *arg)
{
    const struct log_store *s = (const struct log_store *)self;
    zarr_store_op *copies[64];

    for (uint64_t i = 0, n_copies = 0; i < n; i++) {
        struct log_op *copy = (struct log_op *)host->alloc(s->ctx, sizeof *copy);

        if (copy) {
            copy->op = *ops[i];
            copy->outer = ops[i];
            copy->store = s;
            copy->done = done;
            copies[n_copies++] = &copy->op;
        }
        if (n_copies == 64 || (n_copies > 0 && i + 1 == n)) {
            host->store_submit(s->inner, copies, n_copies, end_op, arg);
            n_copies = 0;
        }
        if (!copy) {
            ops[i]->status = ZARR_ERR_NO_MEMORY;
            done(arg, ops[i], NULL);
        }
    }
}

static void store_cancel(void *self, void *arg)
{
    host->store_cancel(((const struct log_store *)self)->inner, arg);
}

static zarr_status store_lock(void *self, const char *key, const zarr_cancel *cancel,
                              void **lock, zarr_error *err)
{
    return host->store_lock(lock, ((const struct log_store *)self)->inner, key, cancel,
                            err);
}

static void store_unlock(void *self, void *lock)
{
    host->store_unlock(((const struct log_store *)self)->inner, lock);
}

static zarr_status store_list(void *self, const char *prefix, uint32_t how,
                              zarr_store_list_fn fn, void *user,
                              const zarr_cancel *cancel, zarr_error *err)
{
    const struct log_store *s = (const struct log_store *)self;

    host->log(s->ctx, ZARR_LOG_INFO, "log: LIST %s", prefix);
    return host->store_list(s->inner, prefix, how, fn, user, cancel, err);
}

static zarr_status store_erase_prefix(void *self, const char *prefix,
                                      const zarr_cancel *cancel, zarr_error *err)
{
    const struct log_store *s = (const struct log_store *)self;

    host->log(s->ctx, ZARR_LOG_INFO, "log: ERASE all of %s", prefix);
    return host->store_erase_prefix(s->inner, prefix, cancel, err);
}

static zarr_status store_flush(void *self, const zarr_cancel *cancel, zarr_error *err)
{
    return host->store_flush(((const struct log_store *)self)->inner, cancel, err);
}

/* A copy is compared with the inner store, so that it does not overwrite itself. */
static void store_place(void *self, zarr_store_place_fn fn, void *user)
{
    host->store_tell_place(((const struct log_store *)self)->inner, fn, user);
}

static void store_count(void *self, zarr_store_counters *out)
{
    host->store_read_counters(((const struct log_store *)self)->inner, out);
}

static void store_close(void *self)
{
    struct log_store *s = (struct log_store *)self;
    zarr_context *ctx = s->ctx;

    host->store_free(s->inner);
    host->free(ctx, s);
}

static const zarr_store_vtable store = {
    .struct_size = sizeof store,
    .name = "log",
    .open = store_open,
    .caps = store_caps,
    .run = store_run,
    .submit = store_submit,
    .cancel = store_cancel,
    .list = store_list,
    .lock = store_lock,
    .unlock = store_unlock,
    .flush = store_flush,
    .erase_prefix = store_erase_prefix,
    .close = store_close,
    .place = store_place,
    .count = store_count,
};

static zarr_status load(const zarr_host *given, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    (void)self;
    host = given;
    (void)host->option_bool(ctx, "chunks", &chunks);
    return host->register_store(ctx, &store, err);
}

static const zarr_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi = ZARR_PLUGIN_ABI,
                                   .name = "example-log",
                                   .version = "1.0",
                                   .license = "Apache-2.0",
                                   .load = load};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
