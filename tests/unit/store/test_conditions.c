/*
 * unit/store/test_conditions.c - conditions on versions: GETs of one version on each kind
 * of store, what stores may declare, the ERASE of a missing key that the library does
 * itself, pins by conditional GETs, what the parts of a composite store can do.
 */
#include "store_test.h"
#include "unit/conditional_caps.h"
#include "unit/over_store.h"

static zarr_store *open_over(struct world *w, struct over *o, const zarr_store_vtable *vt,
                             uint32_t caps)
{
    zarr_error err = {0};
    zarr_store *s = NULL;

    memset(o, 0, sizeof *o);
    o->caps = caps | ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_LIST;
    o->below = open_sort(w, SORT_MEMORY);
    if (zr_store_open_custom(&s, &w->env, vt, o, NULL, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    return s;
}

struct counted {
    zarr_store *store; /* not NULL: erases each key that it sees */
    zarr_cancel *cancel;
    uint32_t how;
    int n, cancel_at;
};

static int count_row(void *user, const zarr_store_item *item)
{
    struct counted *c = user;

    if (++c->n == c->cancel_at)
        c->cancel->set = true;
    if (c->store && !c->cancel_at)
        assert_status(zarr_store_erase(c->store, item->key, NULL, NULL), ZARR_OK);
    return 0;
}

static int count_keys(zarr_store *s, const char *prefix, const struct counted *like)
{
    struct counted c = {.how = like ? like->how : ZARR_LIST_RECURSIVE};

    assert_status(zarr_store_list(s, prefix, c.how, count_row, &c, NULL, NULL), ZARR_OK);
    return c.n;
}

/* ---- GET if version ---- */

static zarr_status get_if(zarr_store *s, uint64_t offset, uint64_t length, char to[16],
                          const zarr_store_version *version)
{
    zarr_store_op op = get_op("k", offset, length, to, 15);
    zarr_status st;

    op.flags = ZARR_STORE_OP_IF_VERSION;
    op.version = *version;
    memset(to, 0, 16);
    st = zr_store_run_one(s, &op, NULL);
    if (st == ZARR_OK)
        assert_true(zr_store_version_equal(&op.version, version));
    return st;
}

static void read_versions(zarr_store *s)
{
    static const struct {
        uint64_t offset, length;
        const char *first, *second;
    } ranges[] = {{0, ZARR_STORE_TO_END, "0123456789", "abcde"},
                  {2, 3, "234", "cde"},
                  {ZARR_STORE_SUFFIX, 4, "6789", "bcde"}};
    zarr_store_value old = ZARR_STORE_VALUE_INIT, now = ZARR_STORE_VALUE_INIT;
    const zarr_store_version none = {{0}};
    char to[16];

    assert_status(put_text(s, "k", "0123456789"), ZARR_OK);
    assert_status(zarr_store_stat(s, "k", &old, NULL, NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(ranges); i++) {
        assert_status(get_if(s, ranges[i].offset, ranges[i].length, to, &old.version),
                      zr_store_can(s, ZARR_STORE_CAP_VERSIONS) ? ZARR_OK
                                                               : ZARR_ERR_UNSUPPORTED);
        if (!zr_store_can(s, ZARR_STORE_CAP_VERSIONS))
            continue;
        assert_string_equal(to, ranges[i].first);
        assert_status(get_if(s, ranges[i].offset, ranges[i].length, to, &none),
                      ZARR_ERR_CONFLICT);
        assert_status(put_text(s, "k", "abcde"), ZARR_OK);
        assert_status(zarr_store_stat(s, "k", &now, NULL, NULL), ZARR_OK);
        assert_status(get_if(s, ranges[i].offset, ranges[i].length, to, &old.version),
                      ZARR_ERR_CONFLICT);
        assert_status(get_if(s, ranges[i].offset, ranges[i].length, to, &now.version),
                      ZARR_OK);
        assert_string_equal(to, ranges[i].second);
        assert_status(zarr_store_erase(s, "k", NULL, NULL), ZARR_OK);
        assert_status(get_if(s, ranges[i].offset, ranges[i].length, to, &now.version),
                      ZARR_ERR_NOT_FOUND);
        assert_status(get_if(s, ranges[i].offset, ranges[i].length, to, &none),
                      ZARR_ERR_NOT_FOUND);
        assert_status(put_text(s, "k", "0123456789"), ZARR_OK);
        assert_status(zarr_store_stat(s, "k", &old, NULL, NULL), ZARR_OK);
    }
}

static void reads_of_one_version(void **state)
{
    static const uint32_t caps[] = {0, ZARR_STORE_CAP_RANGES,
                                    ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX};
    struct world *w = *state;
    zarr_store *s = NULL;

    for (enum sort sort = 0; sort < N_SORTS; sort++) {
        s = open_sort(w, sort);
        read_versions(s);
        zarr_store_free(s);
    }
    for (size_t i = 0; i < ZR_COUNT(caps); i++) {
        struct over o;

        s = open_over(w, &o, &over_runs, caps[i] | ZARR_STORE_CAP_VERSIONS);
        read_versions(s);
        zarr_store_free(s);
    }
}

/* ---- what stores declare ---- */

static void contradictions(void **state)
{
    static const uint32_t lies[] = {
        ZARR_STORE_CAP_PUT_IF_VERSION,
        ZARR_STORE_CAP_PUT_IF_VERSION | ZARR_STORE_CAP_VERSIONS,
        ZARR_STORE_CAP_PUT_IF_VERSION | ZARR_STORE_CAP_PUT_NEW,
        ZARR_STORE_CAP_ERASE_IF_VERSION};
    struct world *w = *state;
    zarr_error err = {0};
    zarr_store *s = NULL;

    for (size_t i = 0; i < ZR_COUNT(lies); i++) {
        struct over o = {.caps = lies[i]};

        assert_status(zr_store_open_custom(&s, &w->env, &over_runs, &o, NULL, &err),
                      ZARR_ERR_INVALID);
        assert_non_null(strstr(err.message, "IF_VERSION but not"));
    }
}

static void parts_of_composite(void **state)
{
    const zarr_memory mem = zr_mem_of_host((char[]){'n', 'e', 'w'}, 3);
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;
    zarr_store_value v = ZARR_STORE_VALUE_INIT;
    struct world *w = *state;
    zarr_error err = {0};
    zarr_store *chunks = open_sort(w, SORT_MEMORY), *s = NULL, *docs = NULL;
    struct over o;

    zarr_store_capabilities(chunks, &caps);
    assert_int_equal(caps.metadata_flags, caps.flags);
    assert_int_equal(caps.chunk_flags, caps.flags);
    docs = open_over(w, &o, &over_runs, ZARR_STORE_CAP_RANGES);
    assert_status(zarr_store_open_composite(&s, docs, chunks, NULL, &err), ZARR_OK);
    zarr_store_capabilities(s, &caps);
    assert_int_equal(caps.metadata_flags, o.caps);
    assert_int_equal(caps.chunk_flags, zr_store_caps(chunks)->flags);
    assert_int_equal(caps.flags & CAPS_CONDITIONAL, 0);
    /* each key has the conditions of its part */
    assert_status(put_text(s, "a/c/0", "v"), ZARR_OK);
    assert_status(put_text(s, "a/zarr.json", "v"), ZARR_OK);
    assert_status(zarr_store_stat(s, "a/c/0", &v, NULL, &err), ZARR_OK);
    assert_int_equal(v.has_version, 1);
    assert_status(zarr_store_write(s, "a/c/0", &mem, &v.version, NULL, NULL, &err),
                  ZARR_OK);
    assert_status(zarr_store_write(s, "a/c/0", &mem, &v.version, NULL, NULL, &err),
                  ZARR_ERR_CONFLICT);
    assert_status(zarr_store_write(s, "a/zarr.json", &mem, &v.version, NULL, NULL, &err),
                  ZARR_ERR_UNSUPPORTED);
    assert_status(zarr_store_stat(s, "a/zarr.json", &v, NULL, &err), ZARR_OK);
    assert_int_equal(v.has_version, 0);
    zarr_store_free(s);
    zarr_store_free(docs);
    zarr_store_free(chunks);
}

/* ---- an ERASE that erases nothing ---- */

static void erase_of_nothing(void **state)
{
    const zarr_store_vtable *const tables[] = {&over_runs, &over_submits};
    struct world *w = *state;

    for (size_t i = 0; i < ZR_COUNT(tables); i++) {
        struct over o;
        zarr_store *s = open_over(w, &o, tables[i],
                                  CAPS_CONDITIONAL & ~ZARR_STORE_CAP_ERASE_IF_VERSION);
        zarr_store_value v = ZARR_STORE_VALUE_INIT;
        zarr_store_op ops[2];

        assert_status(put_text(s, "k", "v"), ZARR_OK);
        assert_status(zarr_store_stat(s, "k", &v, NULL, NULL), ZARR_OK);
        for (int k = 0; k < 2; k++)
            ops[k] = (zarr_store_op){.verb = ZARR_STORE_ERASE,
                                     .flags = ZARR_STORE_OP_IF_VERSION,
                                     .key = k == 0 ? "no" : "k"};
        assert_status(zr_store_run(s, ops, 2, NULL), ZARR_ERR_CONFLICT);
        assert_status(ops[0].status, ZARR_ERR_NOT_FOUND);
        assert_status(ops[1].status, ZARR_ERR_CONFLICT);
        ops[1].version = v.version; /* never without the condition */
        assert_status(zr_store_run_one(s, &ops[1], NULL), ZARR_ERR_UNSUPPORTED);
        assert_int_equal(o.n_ops[ZARR_STORE_ERASE], 0);
        assert_string_equal(get_text(s, "k"), "v");
        zarr_store_free(s);
    }
}

/* ---- pins ---- */

/* The second GET of a pin is conditional. That a store does not look is found out
 * afterwards. */
static void pins_are_conditions(void **state)
{
    const zarr_store_vtable *const tables[] = {&over_runs, &over_submits};
    struct world *w = *state;

    for (size_t i = 0; i < 2 * ZR_COUNT(tables); i++) {
        struct over o;
        zarr_store *s =
            open_over(w, &o, tables[i / 2], CAPS_CONDITIONAL | ZARR_STORE_CAP_RANGES);
        struct zr_store_pin pin;
        zarr_error err = {0};
        char to[8];
        zarr_store_op op = get_op("k", 0, 2, to, sizeof to), two[2];

        assert_status(put_text(s, "k", "first"), ZARR_OK);
        assert_status(zr_store_pin_init(&pin, s, "k", &err), ZARR_OK);
        op.flags = ZR_STORE_OP_PINNED;
        op.lock = &pin;
        two[0] = op;
        assert_status(zr_store_run_one(s, &two[0], &err), ZARR_OK);
        assert_int_equal(o.n_conditional[ZARR_STORE_GET], 0);
        two[0] = two[1] = op;
        assert_status(zr_store_run(s, two, 2, &err), ZARR_OK);
        assert_int_equal(o.n_conditional[ZARR_STORE_GET], 2);
        assert_int_equal(two[0].flags, ZR_STORE_OP_PINNED);
        o.ignores = i % 2 ? 1u << ZARR_STORE_GET : 0;
        assert_status(put_text(s, "k", "other"), ZARR_OK);
        two[0] = two[1] = op;
        assert_status(zr_store_run(s, two, 2, &err), ZARR_ERR_CONFLICT);
        assert_status(two[1].status, ZARR_ERR_CONFLICT);
        zr_store_pin_deinit(&pin);
        zarr_store_free(s);
    }
}

/* A part of a composite store does ranges, whatever the other part cannot do. */
static void pins_of_composite(void **state)
{
    struct world *w = *state;
    struct over o;
    zarr_store *docs = open_over(w, &o, &over_runs, 0), *chunks = NULL, *s = NULL;
    struct zr_store_pin pin;
    zarr_error err = {0};

    chunks = open_sort(w, SORT_MEMORY);
    assert_status(zarr_store_open_composite(&s, docs, chunks, NULL, &err), ZARR_OK);
    assert_status(put_text(s, "a/c/0", "first"), ZARR_OK);
    assert_status(zr_store_pin_init(&pin, s, "a/c/0", &err), ZARR_OK);
    assert_status(put_text(s, "a/c/0", "other"), ZARR_OK);
    for (int i = 0; i < 2; i++) {
        char to[8] = "";
        zarr_store_op op =
            get_op("a/c/0", i == 0 ? 2 : ZARR_STORE_SUFFIX, 3, to, sizeof to);

        op.flags = ZR_STORE_OP_PINNED;
        op.lock = &pin;
        assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
        assert_string_equal(to, "rst");
        assert_int_equal(op.flags, ZR_STORE_OP_PINNED);
    }
    zr_store_pin_deinit(&pin);
    zarr_store_free(s);
    zarr_store_free(docs);
    zarr_store_free(chunks);
}

/* A store that tells no version of some values, as a server does with weak ETags. */
static void run_untold(void *self, zarr_store_op *op, zarr_error *err)
{
    over_do(self, op, err);
    op->version = (zarr_store_version){{0}};
}

/* Without a version of the value, its length and then its end are read. */
static void suffix_without_version(void **state)
{
    struct world *w = *state;
    zarr_store_vtable vt = over_runs;
    zarr_error err = {0};
    struct over o;
    zarr_store *s = NULL;
    char to[8] = "";
    zarr_store_op op = get_op("k", ZARR_STORE_SUFFIX, 3, to, sizeof to);

    vt.run = run_untold;
    s = open_over(w, &o, &vt, ZARR_STORE_CAP_VERSIONS | ZARR_STORE_CAP_RANGES);
    assert_status(put_text(s, "k", "12345"), ZARR_OK);
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_string_equal(to, "345");
    zarr_store_free(s);
}

/* ---- batches ---- */

/* The first STATs find out whether the store can do that. */
static void batches(void **state)
{
    struct world *w = *state;
    struct over o;
    zarr_store *s = open_over(w, &o, &over_submits, CAPS_CONDITIONAL);
    zarr_store_op ops[8];
    char key[8][16];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 8; i++) {
            snprintf(key[i], sizeof key[i], "k%d", i);
            assert_status(put_text(s, key[i], "v"), ZARR_OK);
            ops[i] = (zarr_store_op){.verb = ZARR_STORE_STAT, .key = key[i]};
        }
        atomic_store(&o.most_at_once, 0);
        assert_status(zr_store_run(s, ops, 8, NULL), ZARR_OK);
        assert_int_equal(ops[7].object_bytes, 1);
        assert_int_equal(o.most_at_once, round == 0 ? 1 : 8);
        for (int i = 0; i < 8; i++)
            ops[i].verb = ZARR_STORE_ERASE;
        atomic_store(&o.most_at_once, 0);
        assert_status(zr_store_run(s, ops, 8, NULL), ZARR_OK);
        assert_int_equal(o.most_at_once, 8);
        assert_null(get_text(s, key[7]));
    }
    zarr_store_free(s);
}

/* An allocator that lets another STAT come between, once. */
struct meddler {
    struct world *w;
    zarr_store *s;
};

static void *meddling_alloc(void *user, size_t bytes)
{
    struct meddler *m = user;
    zarr_store *const s = m->s;
    zarr_store_op op = {.verb = ZARR_STORE_STAT, .key = "k"};

    m->s = NULL;
    if (s)
        assert_status(zr_store_run_one(s, &op, NULL), ZARR_OK);
    return m->w->alloc.alloc(m->w, bytes);
}

static void *meddling_realloc(void *user, void *block, size_t bytes)
{
    struct meddler *m = user;

    return m->w->alloc.realloc(m->w, block, bytes);
}

static void meddling_free(void *user, void *block)
{
    struct meddler *m = user;

    m->w->alloc.free(m->w, block);
}

static void stat_done(void *arg, zarr_store_op *op, const zarr_error *err)
{
    ZR_UNUSED(err);
    assert_status(op->status, ZARR_OK);
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* Another thread finds out meanwhile that the store has STAT. */
static void first_stats_at_once(void **state)
{
    struct meddler m = {.w = *state};
    const zarr_allocator alloc = {&m, meddling_alloc, meddling_realloc, meddling_free};
    struct over o = {.caps = CAPS_CONDITIONAL | ZARR_STORE_CAP_WRITE};
    zarr_store_op ops[8], *ptrs[8];
    atomic_int n_done = 0;
    zarr_store *s = NULL;
    char byte;

    m.w->env.alloc = &alloc;
    o.below = open_sort(m.w, SORT_MEMORY);
    assert_status(zr_store_open_custom(&s, &m.w->env, &over_submits, &o, NULL, NULL),
                  ZARR_OK);
    assert_status(put_text(s, "k", "v"), ZARR_OK);
    for (int i = 0; i < 8; i++) {
        ops[i] = (zarr_store_op){.verb = ZARR_STORE_STAT, .key = "k"};
        ptrs[i] = &ops[i];
    }
    ops[7] = get_op("k", 0, ZARR_STORE_TO_END, &byte, 1);
    m.s = s;
    zr_store_submit(s, ptrs, 8, stat_done, &n_done);
    while (atomic_load(&n_done) < 8)
        ;
    zarr_store_free(s);
    m.w->env.alloc = &m.w->alloc;
}

enum {
    PAGED = 5000 /* more than a page */
};

/* Erasing a prefix does not list all keys first, and a stop is a stop. */
static void erase_in_pages(void **state)
{
    struct world *w = *state;
    zarr_cancel cancel = {.set = true};
    zarr_error err = {0};
    struct over o;
    zarr_store *s = open_over(w, &o, &over_runs, 0);
    char key[32];

    for (int i = 0; i < PAGED; i++) {
        snprintf(key, sizeof key, i % 2 ? "p/%d/x" : "p/%d", i);
        assert_status(put_text(s, key, "v"), ZARR_OK);
    }
    assert_status(put_text(s, "q", "stays"), ZARR_OK);
    assert_status(zr_store_erase_prefix(s, "p", &cancel, &err), ZARR_ERR_CANCELLED);
    assert_int_equal(o.n_ops[ZARR_STORE_ERASE], 0);
    assert_int_equal(o.n_lists, 0);
    assert_status(zr_store_erase_prefix(s, "p", NULL, &err), ZARR_OK);
    assert_int_equal(o.n_ops[ZARR_STORE_ERASE], PAGED);
    assert_int_equal(o.n_lists, 2);
    assert_true(o.most_listed < PAGED);
    assert_int_equal(count_keys(s, "p", NULL), 0);
    assert_string_equal(get_text(s, "q"), "stays");
    zarr_store_free(s);
}

/* A listing that shows for ever what is gone, and other keys after that. */
static zarr_status list_gone_first(void *self, const char *prefix, uint32_t how,
                                   zarr_store_list_fn fn, void *user,
                                   const zarr_cancel *cancel, zarr_error *err)
{
    zarr_store_item item = {.bytes = 1};
    char key[32];

    for (int i = 0; i < PAGED; i++) {
        snprintf(key, sizeof key, "p/gone/%d", i);
        item.key = key;
        if (fn(user, &item) != 0)
            return ZARR_OK;
    }
    return over_list(self, prefix, how, fn, user, cancel, err);
}

static void erase_after_what_is_gone(void **state)
{
    struct world *w = *state;
    zarr_store_vtable vt = over_runs;
    zarr_error err = {0};
    struct over o;
    zarr_store *s = NULL;
    char key[32];

    vt.list = list_gone_first;
    s = open_over(w, &o, &vt, 0);
    for (int i = 0; i < PAGED; i++) {
        snprintf(key, sizeof key, "p/%d", i);
        assert_status(put_text(s, key, "v"), ZARR_OK);
    }
    assert_status(zr_store_erase_prefix(s, "p", NULL, &err), ZARR_OK);
    for (int i = 0; i < PAGED; i++) {
        snprintf(key, sizeof key, "p/%d", i);
        assert_null(get_text(s, key));
    }
    zarr_store_free(s);
}

/* The rows of several pages, of both kinds; keys may go meanwhile; a cancelled listing
 * ends. */
static void listings_in_pages(void **state)
{
    static const enum sort sorts[] = {SORT_MEMORY, SORT_LOCAL, SORT_COMPOSITE,
                                      SORT_ASYNC};
    struct world *w = *state;
    char key[32];

    for (size_t k = 0; k < ZR_COUNT(sorts); k++) {
        const int n = sorts[k] == SORT_LOCAL ? 20 : PAGED;
        zarr_store *s = open_sort(w, sorts[k]);
        zarr_cancel cancel = {0};
        struct counted c = {.cancel = &cancel, .cancel_at = 10};
        zarr_error err = {0};

        for (int i = 0; i < n; i++) {
            snprintf(key, sizeof key, i % 2 ? "p/%d/x" : "p/%d", i);
            assert_status(put_text(s, key, "v"), ZARR_OK);
        }
        assert_int_equal(count_keys(s, "p", NULL), n);
        c.how = ZARR_LIST_DIRECTORY;
        assert_int_equal(count_keys(s, "p", &c), n);
        c = (struct counted){.store = s, .cancel = &cancel, .cancel_at = 10};
        assert_status(
            zr_store_list(s, "p", ZARR_LIST_RECURSIVE, count_row, &c, &cancel, &err),
            ZARR_ERR_CANCELLED);
        assert_true(c.n >= 10 && c.n <= 4096);
        c = (struct counted){.store = s};
        assert_status(
            zr_store_list(s, "p", ZARR_LIST_RECURSIVE, count_row, &c, NULL, &err),
            ZARR_OK);
        assert_int_equal(count_keys(s, "p", NULL), n - c.n);
        zarr_store_free(s);
    }
}

/* ---- waits between tries ---- */

/* The text of the last failure stays. `*cancel` is set by the first wait. */
static void waits_end(void **state)
{
    struct world *w = *state;
    zarr_store *s = NULL;
    zarr_error err = {0};
    zarr_cancel cancel = {0};
    struct zr_backoff wait;
    zarr_status st = ZARR_OK;
    int n = 0;

    w->lock_wait_ms = 5;
    s = open_sort(w, SORT_MEMORY);
    zr_backoff_init(&wait, s, "k", NULL);
    for (; st == ZARR_OK; n++) {
        zr_fail(&err, ZARR_ERR_CONFLICT, "k: changed meanwhile");
        st = zr_backoff_wait(&wait, ZARR_ERR_CONFLICT, &err);
    }
    assert_status(st, ZARR_ERR_CONFLICT);
    assert_true(n > 0);
    assert_non_null(strstr(err.message, "lock_wait_ms): k: changed meanwhile"));
    zarr_store_free(s);
    w->lock_wait_ms = 0;
    s = open_sort(w, SORT_MEMORY);
    zr_backoff_init(&wait, s, "k", &cancel);
    for (uint64_t ms = 1; ms <= 4; ms *= 2) { /* the bound of the next wait */
        assert_int_equal(wait.bound_ns, ms * 1000000);
        assert_status(zr_backoff_wait(&wait, ZARR_ERR_CONFLICT, &err), ZARR_OK);
    }
    wait.bound_ns = UINT64_C(600000000);
    assert_status(zr_backoff_wait(&wait, ZARR_ERR_CONFLICT, &err), ZARR_OK);
    assert_int_equal(wait.bound_ns, 1000000000);
    cancel.set = true;
    assert_status(zr_backoff_wait(&wait, ZARR_ERR_CONFLICT, &err), ZARR_ERR_CANCELLED);
    zarr_store_free(s);
}

static zarr_cancel stop;

static zarr_status list_and_stop(void *self, const char *prefix, uint32_t how,
                                 zarr_store_list_fn fn, void *user,
                                 const zarr_cancel *cancel, zarr_error *err)
{
    const zarr_status st = over_list(self, prefix, how, fn, user, cancel, err);

    zarr_cancel_set(&stop);
    return st;
}

/* The last key of a prefix stays if the call is cancelled before. */
static void erase_rest_can_stop(void **state)
{
    struct world *w = *state;
    zarr_store_vtable vt = over_runs;
    zarr_error err = {0};
    struct over o;
    zarr_store *s = NULL;

    vt.list = list_and_stop;
    s = open_over(w, &o, &vt, 0);
    assert_status(put_text(s, "p/.zarrc-job", "v"), ZARR_OK);
    zarr_cancel_reset(&stop);
    assert_status(zr_store_erase_rest(s, "p", "p/.zarrc-job", &stop, &err),
                  ZARR_ERR_CANCELLED);
    assert_string_equal(get_text(s, "p/.zarrc-job"), "v");
    zarr_cancel_reset(&stop);
    zarr_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_of_one_version, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(contradictions, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(parts_of_composite, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(erase_of_nothing, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(pins_are_conditions, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(pins_of_composite, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(batches, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(first_stats_at_once, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(erase_rest_can_stop, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(erase_in_pages, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(erase_after_what_is_gone, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(suffix_without_version, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(listings_in_pages, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(waits_end, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
