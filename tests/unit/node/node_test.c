/*
 * unit/node/node_test.c - contexts and stores for tests, and a store that is minimal.
 */
#include "node_test.h"
#include "unit/world_alloc.h"

#include <ftw.h>
#include <unistd.h>

zarr_error terr;

/* ---- a minimal store: one operation at a time on a memory store ---------- */

static void plain_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    *out =
        (zarr_store_caps){.struct_size = sizeof *out,
                          .flags = ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_WRITE |
                                   ZARR_STORE_CAP_ATOMIC_PUT | ZARR_STORE_CAP_FAST_GET};
}

static void plain_run(void *self, zarr_store_op *op, zarr_error *err)
{
    char *p = op->mem.handle;

    op->done_bytes = 0;
    op->object_bytes = UINT64_MAX;
    if (op->verb == ZARR_STORE_PUT) {
        op->status = zarr_store_put(self, op->key, p ? p + op->mem.offset : p,
                                    op->mem.bytes, NULL, err);
    } else if (op->verb == ZARR_STORE_ERASE) {
        op->status = zarr_store_erase(self, op->key, NULL, err);
    } else {
        zarr_store_run(self, op, err);
    }
}

static zarr_status plain_list(void *self, const char *prefix, uint32_t how,
                              zarr_store_list_fn fn, void *user,
                              const zarr_cancel *cancel, zarr_error *err)
{
    (void)cancel;
    return zarr_store_list(self, prefix, how, fn, user, NULL, err);
}

static void plain_close(void *self)
{
    zarr_store_free(self);
}

static const zarr_store_vtable plain_vtable = {
    .struct_size = sizeof plain_vtable,
    .name = "plain",
    .caps = plain_caps,
    .run = plain_run,
    .list = plain_list,
    .close = plain_close,
};

/* ---- worlds ------------------------------------------------------------- */

const char *world_name(enum world_sort sort)
{
    static const char *const names[] = {"memory", "local", "plain"};

    return names[sort];
}

static void world_log(void *user, uint32_t level, const char *text)
{
    struct world *w = user;
    const size_t n = strlen(w->log);

    snprintf(w->log + n, sizeof w->log - n, "%u %s\n", level, text);
}

void world_begin(struct world *w, enum world_sort sort)
{
    const char *tmp = getenv("TMPDIR");

    memset(w, 0, sizeof *w);
    w->alloc = (zarr_allocator){w, world_alloc, world_realloc, world_dealloc};
    if (sort == WORLD_LOCAL) {
        snprintf(w->dir, sizeof w->dir, "%s/zarrc-node-XXXXXX", tmp ? tmp : "/tmp");
        assert_non_null(mkdtemp(w->dir));
    }
}

zarr_status world_context(struct world *w, zarr_error *err)
{
    /* A read from afar allocates up to this; the address sanitizer marks each byte. */
    const zarr_limits limits = {.struct_size = sizeof limits,
                                .consolidated_bytes = 64 << 10};
    const zarr_context_options opts = {.struct_size = sizeof opts,
                                       .allocator = &w->alloc,
                                       .limits = &limits,
                                       .log = world_log,
                                       .log_user = w,
                                       .max_threads = 2,
                                       .memory_bytes = UINT64_C(256) << 20};

    return zarr_context_create(&w->ctx, &opts, err);
}

zarr_status world_store(struct world *w, enum world_sort sort, zarr_error *err)
{
    zarr_store *below = NULL;
    zarr_status st = zarr_store_open(&below, w->ctx,
                                     sort == WORLD_LOCAL ? w->dir : "memory:", NULL, err);

    if (st == ZARR_OK && sort == WORLD_PLAIN)
        st = zarr_store_open_custom(&below, w->ctx, &plain_vtable, below, NULL, err);
    w->store = st == ZARR_OK ? below : NULL;
    return st;
}

void world_open(struct world *w, enum world_sort sort)
{
    world_begin(w, sort);
    assert_ok(world_context(w, &terr));
    assert_ok(world_store(w, sort, &terr));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

zarr_cancel *fresh_cancel(void)
{
    static zarr_cancel *cancel;

    if (!cancel)
        assert_int_equal(zarr_cancel_create(&cancel, NULL), ZARR_OK);
    zarr_cancel_reset(cancel);
    return cancel;
}

void world_close(struct world *w)
{
    zarr_store_free(w->store);
    zarr_context_free(w->ctx);
    w->store = NULL;
    w->ctx = NULL;
    if (*w->dir)
        nftw(w->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(atomic_load(&w->n_blocks), 0);
}

void put_text(struct world *w, const char *key, const char *text)
{
    assert_ok(zarr_store_put(w->store, key, text, strlen(text), NULL, &terr));
}

const char *get_text(struct world *w, const char *key)
{
    static char text[65536];
    uint64_t bytes = sizeof text - 1;
    zarr_status st = zarr_store_get(w->store, key, 0, text, &bytes, NULL, &terr);

    if (st == ZARR_ERR_NOT_FOUND)
        return NULL;
    assert_ok(st);
    text[bytes] = '\0';
    return text;
}

static int count_key(void *user, const zarr_store_item *item)
{
    *(int *)user += !item->is_prefix;
    return 0;
}

int n_keys(struct world *w, const char *prefix)
{
    int n = 0;

    assert_ok(zarr_store_list(w->store, prefix, ZARR_LIST_RECURSIVE, count_key, &n, NULL,
                              &terr));
    return n;
}
