/*
 * unit/tree/test_kinds.c - each operation that a store gets says what is under its key: a
 * document, the index of a shard, or a chunk. A store over a memory store records them
 * while all calls that touch stored objects run.
 */
#include "unit/array/array_test.h"

#include <stdbool.h>

enum {
    N_KINDS = 4
};

/* Operations by verb and kind. */
static atomic_uint seen[ZARR_STORE_PUT_PART + 1][N_KINDS];
static atomic_uint n_wrong;
static char wrong[256];

static const char *kind_text(uint32_t flags)
{
    static const char *const texts[N_KINDS] = {"other", "document", "index", "chunk"};

    return texts[(flags & ZARR_STORE_OP_KIND) / ZARR_STORE_OP_DOCUMENT];
}

static bool is_document(const char *key)
{
    const char *slash = strrchr(key, '/'), *name = slash ? slash + 1 : key;

    return strcmp(name, "zarr.json") == 0 || strncmp(name, ".z", 2) == 0;
}

/* Shards of make_array() end in their index: a GET of a range of it, from its end. */
static uint32_t kind_wanted(const zarr_store_op *op)
{
    if (is_document(op->key))
        return ZARR_STORE_OP_DOCUMENT;
    if (op->verb == ZARR_STORE_ERASE && !(op->flags & ZARR_STORE_OP_KIND))
        return 0; /* of zarr_store_erase_prefix(): the library does not know */
    if (op->verb == ZARR_STORE_GET && op->offset == ZARR_STORE_SUFFIX)
        return ZARR_STORE_OP_INDEX;
    return ZARR_STORE_OP_CHUNK;
}

static void kinds_caps(void *self, zarr_store_caps *out)
{
    zarr_store_capabilities(self, out);
}

static void kinds_run(void *self, zarr_store_op *op, zarr_error *err)
{
    const uint32_t kind = op->flags & ZARR_STORE_OP_KIND;

    atomic_fetch_add(&seen[op->verb][kind / ZARR_STORE_OP_DOCUMENT], 1);
    if (kind != kind_wanted(op) && atomic_fetch_add(&n_wrong, 1) == 0)
        snprintf(wrong, sizeof wrong, "verb %u of %s says %s", (unsigned)op->verb,
                 op->key, kind_text(op->flags));
    zarr_store_run(self, op, err);
}

static zarr_status kinds_list(void *self, const char *prefix, uint32_t how,
                              zarr_store_list_fn fn, void *user,
                              const zarr_cancel *cancel, zarr_error *err)
{
    (void)cancel;
    return zarr_store_list(self, prefix, how, fn, user, NULL, err);
}

static zarr_status kinds_lock(void *self, const char *key, const zarr_cancel *cancel,
                              void **lock, zarr_error *err)
{
    return zarr_store_lock(lock, self, key, cancel, err);
}

static void kinds_unlock(void *self, void *lock)
{
    zarr_store_unlock(self, lock);
}

static void kinds_close(void *self)
{
    zarr_store_free(self);
}

static const zarr_store_vtable kinds_vtable = {.struct_size = sizeof kinds_vtable,
                                               .name = "kinds",
                                               .caps = kinds_caps,
                                               .run = kinds_run,
                                               .list = kinds_list,
                                               .lock = kinds_lock,
                                               .unlock = kinds_unlock,
                                               .close = kinds_close};

/* Runs the calls on one array: v2, v3, or v3 with shards. */
static void use_array(struct world *w, int kind)
{
    zarr_verify_result found = ZARR_VERIFY_RESULT_INIT;
    const uint64_t chunk[2] = {0, 0}, small[2] = {3, 3};
    uint64_t bytes = 4096;
    static char data[4096];
    zarr_array *a = make_array(w, "g/a", kind, 10, 10);

    fill_array(a);
    assert_int_equal(count_wrong(a, 10, 10), 0);
    assert_int_equal(read_at(a, 9, 9), 9009);
    assert_ok(zarr_array_block_read_encoded(a, chunk, data, &bytes, NULL, &terr));
    assert_ok(zarr_array_block_write_encoded(a, chunk, data, bytes, NULL, &terr));
    assert_ok(zarr_array_block_erase(a, chunk, NULL, &terr));
    fill_array(a);
    assert_ok(zarr_array_attribute_set(a, "k", "1", NULL, &terr));
    assert_ok(zarr_array_resize(a, small, 0, &terr));
    zarr_array_free(a);
    assert_ok(zarr_array_open(&a, w->store, "g/a", NULL, &terr));
    assert_int_equal(count_wrong(a, 3, 3), 0);
    zarr_array_free(a);
    assert_ok(consolidate_at(w->store, "g", NULL, &terr));
    assert_ok(zarr_node_verify(w->store, "g", &found, NULL, &terr));
    assert_int_equal(found.n_errors, 0);
    assert_ok(zarr_node_copy(w->store, "g", w->store, "h", NULL, &terr));
    assert_ok(zarr_node_delete(w->store, "g", &terr));
    assert_ok(zarr_node_delete(w->store, "h", &terr));
}

static void each_key_has_its_kind(void **state)
{
    struct world w;
    zarr_group *g = NULL;
    zarr_store *below;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    below = w.store;
    w.store = NULL;
    assert_ok(zarr_store_open_custom(&w.store, w.ctx, &kinds_vtable, below, NULL, &terr));
    for (int kind = 2; kind <= 4; kind++) {
        assert_ok(group_create(&g, w.store, "g", kind == 2 ? 2 : 3, NULL, 0, &terr));
        zarr_group_free(g);
        use_array(&w, kind);
    }
    if (n_wrong > 0)
        fail_msg("%u operations have a wrong kind; the first: %s", (unsigned)n_wrong,
                 wrong);
    for (uint32_t verb = ZARR_STORE_GET; verb <= ZARR_STORE_ERASE; verb++) {
        assert_true(seen[verb][1] > 0); /* documents */
        assert_true(seen[verb][3] > 0); /* chunks */
    }
    assert_true(seen[ZARR_STORE_GET][2] > 0); /* indexes */
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_key_has_its_kind)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
