/*
 * fault/test_store.c - every scenario on a store whose k-th operation goes wrong, once
 * and then with all later ones. It fails before or after it was done, returns fewer
 * bytes than asked for, or returns wrong answers. The status is the store's or reports
 * missing bytes, the message names a key, the store holds old or new contents, and
 * earlier data can be read afterwards.
 */
#include "fault.h"

#include "../sanitizers.h"

#include <errno.h>

enum how {
    HOW_EARLY, /* IO, and nothing was done */
    HOW_LATE,  /* IO, although the operation was done */
    HOW_SHORT, /* a GET that returns half of the bytes and reports that */
    /* Wrong answers. */
    HOW_GONE,  /* NOT_FOUND for a key that existed earlier in this run */
    HOW_CUT,   /* a GET that returns half of the bytes as if they were all */
    HOW_HUGE,  /* an object whose reported size is an exabyte */
    HOW_SMALL, /* an object whose reported size is smaller than the bytes returned */
    HOW_KEPT_HALF /* a PUT that reports having written half */,
    N_HOW
};

/* Wraps a memory store of its own. Locks are the library's emulation. */
struct flaky {
    zarr_store *inner;
    struct fuse fuse;
    enum how how;
    char seen[256][64]; /* keys that a GET or STAT found, for HOW_GONE */
    int n_seen;
};

static void flaky_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_LIST |
                 ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT;
}

static zarr_status flaky_do(struct flaky *f, zarr_store_op *op, zarr_error *err)
{
    if (op->verb == ZARR_STORE_PUT)
        return zarr_store_put(f->inner, op->key,
                              (const char *)op->mem.handle + op->mem.offset,
                              op->mem.bytes, NULL, err);
    if (op->verb == ZARR_STORE_ERASE)
        return zarr_store_erase(f->inner, op->key, NULL, err);
    return inner_get(f->inner, op, err);
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

/* True if a GET or STAT found this key before. Remembers the key. */
static bool seen_before(struct flaky *f, const char *key)
{
    for (int i = 0; i < f->n_seen; i++)
        if (strcmp(f->seen[i], key) == 0)
            return true;
    if (f->n_seen < 256)
        snprintf(f->seen[f->n_seen++], sizeof f->seen[0], "%s", key);
    return false;
}

static bool is_read(const zarr_store_op *op)
{
    return op->verb == ZARR_STORE_GET || op->verb == ZARR_STORE_STAT;
}

/* Reports a finished operation, possibly wrongly. */
static void tell_lie(const struct flaky *f, zarr_store_op *op)
{
    if (f->how == HOW_CUT && op->verb == ZARR_STORE_GET) {
        op->done_bytes /= 2;
        op->object_bytes = op->done_bytes;
    } else if (f->how == HOW_HUGE && is_read(op)) {
        op->object_bytes = UINT64_C(1) << 60;
    } else if (f->how == HOW_SMALL && is_read(op)) {
        op->object_bytes /= 2;
    } else if (f->how == HOW_KEPT_HALF && op->verb == ZARR_STORE_PUT) {
        op->done_bytes = op->mem.bytes / 2;
    }
}

static void run_lie(struct flaky *f, zarr_store_op *op, zarr_error *err)
{
    op->status = flaky_do(f, op, err);
    if (op->status != ZARR_OK)
        return;
    if (f->how == HOW_GONE) {
        if (is_read(op) && seen_before(f, op->key) && fuse_burns(&f->fuse))
            op->status = ZARR_ERR_NOT_FOUND;
        return;
    }
    if ((op->verb == ZARR_STORE_PUT) == (f->how == HOW_KEPT_HALF) && fuse_burns(&f->fuse))
        tell_lie(f, op);
}

static void flaky_run(void *self, zarr_store_op *op, zarr_error *err)
{
    struct flaky *f = self;
    bool burns;

    if (f->how >= HOW_GONE) {
        run_lie(f, op, err);
        return;
    }
    burns = fuse_burns(&f->fuse);
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
                              zarr_store_list_fn fn, void *user,
                              const zarr_cancel *cancel, zarr_error *err)
{
    struct flaky *f = self;
    zarr_store_op op = {0};

    (void)cancel;
    if (fuse_burns(&f->fuse)) {
        fail_op(&op, err);
        return ZARR_ERR_IO;
    }
    return zarr_store_list(f->inner, prefix, how, fn, user, NULL, err);
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

/* the store's IO error, or the result of a truncated value */
static bool is_expected(enum how how, zarr_status st)
{
    if (how >= HOW_GONE)
        return st == ZARR_ERR_CORRUPT || st == ZARR_ERR_CONFLICT || st == ZARR_ERR_IO ||
               (how == HOW_GONE && st == ZARR_ERR_NOT_FOUND) ||
               (how == HOW_HUGE && (st == ZARR_ERR_LIMIT || st == ZARR_ERR_NO_MEMORY));
    return st == ZARR_ERR_IO ||
           (how == HOW_SHORT && (st == ZARR_ERR_CORRUPT || st == ZARR_ERR_CONFLICT));
}

static bool names_something(const char *text)
{
    static const char *const words[] = {"g/", "v2/",   "new/", "zarr.json", ".z",
                                        "/:", "/g:",   "/v2:", "deep/",     "v2/:",
                                        "x/", "other", "fresh"};

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
    world_fill(&w, store, s->extra);
    f.how = how;
    f.n_seen = 0;
    fuse_set(&f.fuse, k, forever);
    atomic_store(&w.memory.blown, true); /* see no_fault() */
    st = s->run(&w, &err);
    *reached = fuse_off(&f.fuse);
    f.how = HOW_EARLY; /* correct answers again */
    if (st != ZARR_OK &&
        (!is_expected(how, st) || !names_something(err.message) || !*reached))
        fail_msg("%s, how %d, k %d, %s: %s: %s", s->name, how, (int)k,
                 forever ? "for ever" : "once", zarr_status_text(st), err.message);
    world_check(&w, s, st == ZARR_OK);
    world_close(&w);
}

/* Wrong answers that look like correct ones: a key that stays missing looks deleted, and
 * so does an attributes document missing at the second read. A truncated document is a
 * broken node, and listed as one. */
static bool could_be_true(const struct scenario *s, enum how how, bool forever)
{
    if (how == HOW_GONE)
        return forever ||
               (strncmp(s->name, "read", 4) != 0 && strncmp(s->name, "write", 5) != 0);
    return how > HOW_GONE && strcmp(s->name, "list") == 0;
}

static void test_scenario(void **state)
{
    const struct scenario *s = *state;
    int n = 0;

    for (enum how how = 0; how < N_HOW; how++)
        for (int forever = 0; forever < 2; forever++) {
            bool reached = !could_be_true(s, how, forever);

            for (int64_t k = 1; reached; k += ZR_FAIL_STEP(k), n++)
                run_once(s, how, k, forever, &reached);
        }
    print_message("%s: %d runs\n", s->name, n);
}

int main(void)
{
    static struct CMUnitTest tests[64];
    const size_t n = scenario_tests(tests, 64, test_scenario);

    return _cmocka_run_group_tests("store", tests, n, NULL, NULL);
}
