/*
 * vault_store.c - a store that needs credentials, without a network:
 * "vault://USER:PASSWORD@HOST/FOLDER?KEY" is the local folder /FOLDER, with the option
 * "token". It counts its operations as requests. A key with "denied" in it is refused,
 * one with "lost" fails, and so does a PUT or COPY of a chunk 2 below "half".
 * tests/cli/test_secrets_command.py looks for the credentials in all
 * that the program writes.
 */
#include <zarrc/plugin/plugin.h>

#include <stdatomic.h>
#include <string.h>

static const zarr_host *host;

struct vault {
    zarr_context *ctx; /* borrowed: the library's store holds it */
    zarr_store *inner;
    atomic_ullong n;
};

static zarr_status vault_open(void **self, zarr_context *ctx, const char *url,
                              const zarr_store_options *opts, const zarr_cancel *cancel,
                              zarr_error *err)
{
    struct vault *v = (struct vault *)host->alloc(ctx, sizeof *v);
    zarr_store_options inner = ZARR_STORE_OPTIONS_INIT;
    const char *folder = strchr(url + strlen("vault://"), '/');
    char path[4096];
    zarr_status st;

    (void)cancel;
    if (!v)
        return host->fail(err, ZARR_ERR_NO_MEMORY, "no memory");
    memset(v, 0, sizeof *v);
    v->ctx = ctx;
    inner.flags = opts->flags;
    if (!folder || strcspn(folder, "?") >= sizeof path) {
        st = host->fail(err, ZARR_ERR_INVALID, "no folder");
    } else if (!opts->config || !strstr(opts->config, "\"token\"")) {
        st = host->fail(err, ZARR_ERR_DENIED, "a vault store needs the option \"token\"");
    } else {
        memcpy(path, folder, strcspn(folder, "?"));
        path[strcspn(folder, "?")] = '\0';
        st = host->store_open(&v->inner, ctx, path, &inner, err);
    }
    if (st != ZARR_OK) {
        host->free(ctx, v);
        return st;
    }
    *self = v;
    return ZARR_OK;
}

static void vault_caps(void *self, zarr_store_caps *out)
{
    host->store_capabilities(((const struct vault *)self)->inner, out);
}

static void vault_run(void *self, zarr_store_op *op, zarr_error *err)
{
    struct vault *v = (struct vault *)self;

    atomic_fetch_add(&v->n, 1);
    if (strstr(op->key, "denied"))
        op->status = host->fail(err, ZARR_ERR_DENIED, "%s: no access", op->key);
    else if (strstr(op->key, "lost") ||
             ((op->verb == ZARR_STORE_PUT || op->verb == ZARR_STORE_COPY) &&
              strstr(op->key, "c/2") && strstr(op->key, "half")))
        op->status = host->fail(err, ZARR_ERR_IO, "%s: the server failed", op->key);
    else
        (void)host->store_run(v->inner, op, err);
}

static zarr_status vault_lock(void *self, const char *key, const zarr_cancel *cancel,
                              void **lock, zarr_error *err)
{
    return host->store_lock(lock, ((const struct vault *)self)->inner, key, cancel, err);
}

static void vault_unlock(void *self, void *lock)
{
    host->store_unlock(((const struct vault *)self)->inner, lock);
}

static zarr_status vault_list(void *self, const char *prefix, uint32_t how,
                              zarr_store_list_fn fn, void *user,
                              const zarr_cancel *cancel, zarr_error *err)
{
    return host->store_list(((const struct vault *)self)->inner, prefix, how, fn, user,
                            cancel, err);
}

static void vault_close(void *self)
{
    struct vault *v = (struct vault *)self;
    zarr_context *ctx = v->ctx;

    host->store_free(v->inner);
    host->free(ctx, v);
}

static void vault_count(void *self, zarr_store_counters *out)
{
    out->requests = atomic_load(&((struct vault *)self)->n);
    out->retries = 1;
    out->bytes_received = 2048;
}

static const zarr_store_vtable store = {
    .struct_size = sizeof store,
    .name = "vault",
    .open = vault_open,
    .caps = vault_caps,
    .run = vault_run,
    .list = vault_list,
    .lock = vault_lock,
    .unlock = vault_unlock,
    .close = vault_close,
    .count = vault_count,
};

static zarr_status load(const zarr_host *given, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    (void)self;
    host = given;
    return host->register_store(ctx, &store, err);
}

static const zarr_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi = ZARR_PLUGIN_ABI,
                                   .name = "test-vault",
                                   .version = "1.0",
                                   .license = "Apache-2.0",
                                   .load = load};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
