/*
 * fault/test_store.c - every scenario over a store whose k-th operation goes wrong, once
 * and from there on: it fails before or after it was done, or gives less than was asked
 * for. The status is the store's or says that bytes are missing, the text names a key,
 * the store holds old or new, and what was written before can be read afterwards.
 */
#include "fault.h"

#include <errno.h>

enum how {
    HOW_EARLY, /* IO, nothing done */
    HOW_LATE,  /* IO, done all the same */
    HOW_SHORT, /* a GET that gives half of the bytes and says so */
    N_HOW
};

/* Wraps a memory store of its own, which has locks: the library's emulation of them. */
struct flaky {
    zarr_store *inner;
    struct fuse fuse;
    enum how how;
};

static void flaky_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_LIST |
                 ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT;
}

static zarr_status flaky_get(struct flaky *f, zarr_store_op *op, zarr_error *err)
{
    char *data = (char *)op->mem.handle + op->mem.offset;
    uint64_t none = 0, total = 0, at = op->offset, n = op->mem.bytes;
    zarr_status st = zarr_store_get(f->inner, op->key, 0, NULL, &none, &total, err);

    if (st != ZARR_OK)
        return st;
    op->object_bytes = total;
    if (op->verb == ZARR_STORE_STAT)
        return ZARR_OK;
    if (op->offset == ZARR_STORE_SUFFIX)
        at = total > op->length ? total - op->length : 0;
    if (n > op->length)
        n = op->length;
    st = zarr_store_get(f->inner, op->key, at, data, &n, NULL, err);
    op->done_bytes = n;
    return st;
}

static zarr_status flaky_do(struct flaky *f, zarr_store_op *op, zarr_error *err)
{
    if (op->verb == ZARR_STORE_PUT)
        return zarr_store_put(f->inner, op->key,
                              (const char *)op->mem.handle + op->mem.offset,
                              op->mem.bytes, err);
    if (op->verb == ZARR_STORE_ERASE)
        return zarr_store_erase(f->inner, op->key, err);
    return flaky_get(f, op, err);
}

static void fail_op(zarr_store_op *op, zarr_error *err)
{
    op->status = ZARR_ERR_IO;
    op->os_code = EIO;
    if (err) {
        memset(err, 0, sizeof *err);
        err->code = ZARR_ERR_IO;
        err->os_code = EIO;
        err->os_domain = ZARR_OS_ERRNO;
        snprintf(err->message, sizeof err->message, "the disk is on fire");
    }
}

static void flaky_run(void *self, zarr_store_op *op, zarr_error *err)
{
    struct flaky *f = self;
    const bool burns = fuse_burns(&f->fuse);

    if (burns && f->how == HOW_EARLY) {
        fail_op(op, err);
        return;
    }
    op->status = flaky_do(f, op, err);
    if (!burns || op->status != ZARR_OK)
        return;
    if (f->how == HOW_LATE || op->verb != ZARR_STORE_GET)
        fail_op(op, err);
    else
        op->done_bytes /= 2;
}

static zarr_status flaky_list(void *self, const char *prefix, uint32_t how,
                              zarr_store_list_fn fn, void *user, zarr_error *err)
{
    struct flaky *f = self;
    zarr_store_op op = {0};

    if (fuse_burns(&f->fuse)) {
        fail_op(&op, err);
        return ZARR_ERR_IO;
    }
    return zarr_store_list(f->inner, prefix, how, fn, user, err);
}

static void flaky_close(void *self)
{
    struct flaky *f = self;

    zarr_store_free(f->inner);
}

static void flaky_open(struct flaky *f, struct world *w, zarr_store **out)
{
    const zarr_store_vtable table = {.struct_size = sizeof table,
                                     .name = "flaky",
                                     .caps = flaky_caps,
                                     .run = flaky_run,
                                     .list = flaky_list,
                                     .close = flaky_close};
    zarr_error err;

    memset(f, 0, sizeof *f);
    if (zarr_store_open(&f->inner, w->ctx, "memory:", NULL, &err) != ZARR_OK ||
        zarr_store_open_custom(out, w->ctx, &table, f, NULL, &err) != ZARR_OK)
        fail_msg("%s", err.message);
}

/* IO as the store said; what a cut value may turn into. */
static bool is_expected(enum how how, zarr_status st)
{
    return st == ZARR_ERR_IO ||
           (how == HOW_SHORT && (st == ZARR_ERR_CORRUPT || st == ZARR_ERR_CONFLICT));
}

static bool names_something(const char *text)
{
    static const char *const words[] = {"g/",  "v2/",  "new/", "zarr.json", ".z",   "/:",
                                        "/g:", "/v2:", "v2/:", "x/",        "other"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i]))
            return true;
    return false;
}

static void run_once(const struct scenario *s, enum how how, int64_t k, bool forever,
                     bool *reached)
{
    struct world w;
    struct flaky f;
    zarr_store *store = NULL;
    zarr_error err = {0};
    zarr_status st;

    world_context(&w, 1);
    flaky_open(&f, &w, &store);
    world_fill(&w, store);
    f.how = how;
    fuse_set(&f.fuse, k, forever);
    atomic_store(&w.memory.blown, true); /* see no_fault() */
    st = s->run(&w, &err);
    *reached = fuse_off(&f.fuse);
    if (st != ZARR_OK &&
        (!is_expected(how, st) || !names_something(err.message) || !*reached))
        fail_msg("%s, how %d, k %d, %s: %s: %s", s->name, how, (int)k,
                 forever ? "for ever" : "once", zarr_status_text(st), err.message);
    world_check(&w, s, st == ZARR_OK);
    world_close(&w);
}

static void test_scenario(void **state)
{
    const struct scenario *s = *state;
    int n = 0;

    for (enum how how = 0; how < N_HOW; how++)
        for (int forever = 0; forever < 2; forever++) {
            bool reached = true;

            for (int64_t k = 1; reached; k++, n++)
                run_once(s, how, k, forever, &reached);
        }
    print_message("%s: %d runs\n", s->name, n);
}

int main(void)
{
    static struct CMUnitTest tests[64];

    for (int i = 0; i < n_scenarios; i++)
        tests[i] = (struct CMUnitTest){scenarios[i].name, test_scenario, NULL, NULL,
                                       (void *)(uintptr_t)&scenarios[i]};
    return _cmocka_run_group_tests("store", tests, (size_t)n_scenarios, NULL, NULL);
}
