/*
 * unit/tree/test_entry_restore.c - a call that takes a node's entries out of consolidated
 * metadata, and is cancelled or fails before it changes the node, puts them back.
 */
#include "cancel_test.h"

#include "base/base.h"

enum {
    TEXT_BYTES = 16384
};

static zarr_status delete_node(zarr_store *s, zarr_cancel *c)
{
    const zarr_delete_options o = {
        .struct_size = sizeof o, .flags = ZARR_DELETE_CONSOLIDATED, .cancel = c};

    return zarr_node_delete_watched(s, "src/g/s", &o, &terr);
}

static zarr_status move_node(zarr_store *s, zarr_cancel *c)
{
    const zarr_copy_options o = {.struct_size = sizeof o,
                                 .flags = ZARR_COPY_CONSOLIDATED,
                                 .max_threads = 1,
                                 .cancel = c};

    return zarr_node_move(s, "src/g/s", s, "moved", &o, &terr);
}

static zarr_status replace_node(zarr_store *s, zarr_cancel *c)
{
    const zarr_copy_options o = {.struct_size = sizeof o,
                                 .flags = ZARR_COPY_CONSOLIDATED | ZARR_COPY_OVERWRITE |
                                          ZARR_COPY_SKIP_EQUAL,
                                 .max_threads = 1,
                                 .cancel = c};

    return zarr_node_copy(s, "src/a", s, "src/g/s", &o, &terr);
}

static zarr_status shrink_node(zarr_store *s, zarr_cancel *c)
{
    const zarr_shape_options o = {
        .struct_size = sizeof o, .flags = ZARR_RESIZE_CONSOLIDATED, .cancel = c};
    const uint64_t shape[2] = {3, 3};
    zarr_array *a = open_array(s, "src/g/s");
    const zarr_status st = zarr_array_resize(a, shape, &o, &terr);

    zarr_array_free(a);
    return st;
}

static zarr_status migrate_node(zarr_store *s, zarr_cancel *c)
{
    const zarr_migrate_options o = {.struct_size = sizeof o,
                                    .flags =
                                        ZARR_MIGRATE_REMOVE | ZARR_MIGRATE_CONSOLIDATED,
                                    .cancel = c};

    return zarr_node_migrate(s, "old/v", &o, &terr);
}

static const struct unlisting {
    const char *name;
    zarr_status (*call)(zarr_store *s, zarr_cancel *c);
    const char *document;
    struct {
        const char *key, *entry;
    } group[2];
} calls[] = {
    {"delete",
     delete_node,
     "src/g/s/zarr.json",
     {{"src/g/zarr.json", "\"s\": {"}, {"src/zarr.json", "\"g/s\": {"}}},
    {"move",
     move_node,
     "src/g/s/zarr.json",
     {{"src/g/zarr.json", "\"s\": {"}, {"src/zarr.json", "\"g/s\": {"}}},
    {"copy",
     replace_node,
     "src/g/s/zarr.json",
     {{"src/g/zarr.json", "\"s\": {"}, {"src/zarr.json", "\"g/s\": {"}}},
    {"resize",
     shrink_node,
     "src/g/s/zarr.json",
     {{"src/g/zarr.json", "\"s\": {"}, {"src/zarr.json", "\"g/s\": {"}}},
    {"migrate", migrate_node, "old/v/.zarray", {{"old/.zmetadata", "\"v/.zarray\":"}}},
};

static void must_be_listed(struct world *w, const struct unlisting *x, int k)
{
    for (size_t i = 0; i < ZR_COUNT(x->group) && x->group[i].key; i++)
        if (!strstr(get_text(w, x->group[i].key), x->group[i].entry))
            fail_msg("%s, operation %d: %s does not list the node", x->name, k,
                     x->group[i].key);
}

static void consolidate_groups(struct world *w)
{
    assert_ok(consolidate_at(w->store, "src/g", NULL, &terr));
    assert_ok(consolidate_at(w->store, "src", NULL, &terr));
}

/* Cancels a call before its k-th operation. Returns whether it got so far. */
static bool cancel_at(const struct unlisting *x, int k)
{
    zarr_cancel *c = fresh_cancel();
    char before[TEXT_BYTES];
    zarr_store *s = NULL;
    const char *now;
    struct world w;
    bool cancelled;

    open_trap(&w, &s, c, -1);
    consolidate_groups(&w);
    must_be_listed(&w, x, -1);
    snprintf(before, sizeof before, "%s", get_text(&w, x->document));
    atomic_store(&trap.left, k);
    cancelled = x->call(s, c) == ZARR_ERR_CANCELLED;
    now = get_text(&w, x->document);
    if (cancelled && now && strcmp(before, now) == 0)
        must_be_listed(&w, x, k);
    zarr_store_free(s);
    world_close(&w);
    return cancelled || atomic_load(&trap.left) < 0;
}

static void test_cancelled(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(calls); i++) {
        int k = 0;

        while (cancel_at(&calls[i], k))
            k++;
        assert_true(k > 10);
    }
}

/* The second group cannot be changed, so the first one keeps its entries. */
static void test_second_group_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(calls) - 1; i++) {
        zarr_store *s = NULL;
        struct world w;

        open_trap(&w, &s, NULL, -1);
        consolidate_groups(&w);
        put_text(&w, "src/zarr.json",
                 "{\"zarr_format\": 3, \"node_type\": \"group\", "
                 "\"consolidated_metadata\": {\"metadata\": 7}, \"was\": {\"g/s\": {}}}");
        assert_status(calls[i].call(s, NULL), ZARR_ERR_INVALID);
        assert_says("/src/zarr.json: ");
        must_be_listed(&w, &calls[i], -1);
        assert_non_null(get_text(&w, calls[i].document));
        zarr_store_free(s);
        world_close(&w);
    }
}

/* ---- the lock of a resize ---------------------------------------------------- */

static atomic_int held, n_restored, n_unlocked;

static zarr_status lock_key(void *self, const char *key, const zarr_cancel *cancel,
                            void **lock, zarr_error *err)
{
    const char *name = strrchr(key, '/');
    const bool is_of_array = name && strcmp(name, "/.zarrc-append") == 0;

    (void)self, (void)cancel, (void)err;
    atomic_fetch_add(&held, is_of_array);
    *lock = is_of_array ? (void *)&held : (void *)&trap;
    return ZARR_OK;
}

static void unlock_key(void *self, void *lock)
{
    (void)self;
    if (lock == &held)
        atomic_fetch_sub(&held, 1);
}

static void lock_caps(void *self, zarr_store_caps *out)
{
    trap_caps(self, out);
    out->flags |= ZARR_STORE_CAP_LOCK;
}

/* Counts the groups' documents that are written after the call was cancelled. */
static void lock_run(void *self, zarr_store_op *op, zarr_error *err)
{
    if (op->verb == ZARR_STORE_PUT && zarr_cancel_is_set(trap.cancel) &&
        (strcmp(op->key, "src/g/zarr.json") == 0 ||
         strcmp(op->key, "src/zarr.json") == 0)) {
        atomic_fetch_add(&n_restored, 1);
        if (atomic_load(&held) == 0)
            atomic_fetch_add(&n_unlocked, 1);
    }
    trap_run(self, op, err);
}

/* Else a restore could list the old shape, which another resize has just taken out and
 * replaced. */
static void test_resize_restores_under_its_lock(void **state)
{
    zarr_store_vtable table = trap_vtable;

    (void)state;
    table.caps = lock_caps;
    table.run = lock_run;
    table.lock = lock_key;
    table.unlock = unlock_key;
    for (int k = 0, more = 1; more; k++) {
        zarr_cancel *c = fresh_cancel();
        zarr_store *s = NULL;
        struct world w;

        open_trap(&w, &s, c, -1);
        zarr_store_free(s);
        assert_ok(zarr_store_open_custom(&s, w.ctx, &table, NULL, NULL, &terr));
        consolidate_groups(&w);
        atomic_store(&trap.left, k);
        more = shrink_node(s, c) == ZARR_ERR_CANCELLED || atomic_load(&trap.left) < 0;
        zarr_store_free(s);
        world_close(&w);
    }
    assert_true(atomic_load(&n_restored) > 0);
    assert_int_equal(atomic_load(&n_unlocked), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_second_group_fails),
        cmocka_unit_test(test_resize_restores_under_its_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
