/*
 * unit/array/test_create_races.c - one call creates a node between two steps of another
 * call that creates one there. Calls wait for each other where the store or the handle
 * has locks: a call whose cancel object is set shows that, because it does not wait.
 */
#include "unit/conditional_caps.h"
#include "hook_store.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

static const uint64_t length = 8;

/* Creates an array of one dimension, or a group, and frees the handle. */
static zarr_status create(zarr_store *s, const char *path, bool group, int format,
                          uint32_t flags, const char *attributes,
                          const zarr_cancel *cancel)
{
    const zarr_group_spec g = {.struct_size = sizeof g,
                               .flags = flags,
                               .zarr_format = format,
                               .attributes = attributes,
                               .cancel = cancel};
    const zarr_array_spec a = {.struct_size = sizeof a,
                               .flags = flags,
                               .zarr_format = format,
                               .ndim = 1,
                               .shape = &length,
                               .data_type = "int32",
                               .attributes = attributes,
                               .cancel = cancel};
    zarr_group *new_group = NULL;
    zarr_array *new_array = NULL;
    zarr_status st = group ? zarr_group_create(&new_group, s, path, &g, NULL, &terr)
                           : zarr_array_create(&new_array, s, path, &a, NULL, &terr);

    zarr_group_free(new_group);
    zarr_array_free(new_array);
    return st;
}

/* What the hook does: the other call. */
static struct {
    const char *key; /* it comes before this document is put, */
    int done;        /* or after */
    zarr_store *store;
    const char *path;
    bool group;
    int format;
    uint32_t flags;
    const zarr_cancel *cancel;
} rival;

static void rival_creates(const zarr_store_op *op, int done)
{
    if (done == rival.done && is_at(op, ZARR_STORE_PUT, rival.key))
        their_status = create(rival.store, rival.path, rival.group, rival.format,
                              rival.flags, "{\"by\": \"rival\"}", rival.cancel);
}

static const char *document(bool group, int format)
{
    return format == 3 ? "zarr.json" : group ? ".zgroup" : ".zarray";
}

/* Returns the number of documents at "a" that make a node. */
static int n_documents(void)
{
    return (get_text(&world, "a/zarr.json") != NULL) +
           (get_text(&world, "a/.zarray") != NULL) +
           (get_text(&world, "a/.zgroup") != NULL);
}

/* Each kind and format against each, through one handle, whose locks are its own. */
static void test_one_at_a_time(void **state)
{
    zarr_cancel *cancel = NULL;
    char key[32];

    (void)state;
    assert_ok(zarr_cancel_create(&cancel, &terr));
    zarr_cancel_set(cancel);
    for (int i = 0; i < 32; i++) {
        const bool group = i & 1, replace = i & 16;
        const int format = i & 2 ? 2 : 3;

        begin(0, 0, 0, 0);
        snprintf(key, sizeof key, "a/%s", document(group, format));
        rival.key = key;
        rival.done = 0;
        rival.store = world.store;
        rival.path = "a";
        rival.group = i & 4;
        rival.format = i & 8 ? 2 : 3;
        rival.flags = replace ? ZARR_SPEC_OVERWRITE : 0;
        rival.cancel = cancel;
        hook = rival_creates;
        assert_ok(
            create(world.store, "a", group, format, rival.flags, "{\"by\": 1}", NULL));
        assert_int_equal(n_hooked, 1);
        assert_int_equal(their_status, ZARR_ERR_CANCELLED);
        assert_int_equal(n_documents(), 1);
        end();
    }
    zarr_cancel_free(cancel);
}

/* Without locks, those that replace a node do so one after the other. */
static void test_replace_without_locks(void **state)
{
    (void)state;
    for (int i = 0; i < 32; i++) {
        const bool group = i & 1;
        const int format = i & 2 ? 2 : 3;
        char key[32];

        begin(CAPS_CONDITIONAL, 0, 0, 0);
        assert_ok(create(world.store, "a", false, 3, 0, NULL, NULL));
        snprintf(key, sizeof key, "a/%s", document(group, format));
        rival.key = key;
        rival.done = i >> 4;
        rival.store = other;
        rival.path = "a";
        rival.group = group;
        rival.format = format;
        rival.flags = ZARR_SPEC_OVERWRITE;
        rival.cancel = NULL;
        hook = rival_creates;
        assert_ok(create(world.store, "a", group, format, ZARR_SPEC_OVERWRITE,
                         "{\"by\": \"me\"}", NULL));
        assert_int_equal(their_status, ZARR_OK);
        assert_int_equal(n_documents(), 1);
        end();
    }
}

/* A parent is made once, and is no array. */
static void test_parents(void **state)
{
    zarr_cancel *cancel = NULL;

    (void)state;
    assert_ok(zarr_cancel_create(&cancel, &terr));
    zarr_cancel_set(cancel);
    for (int i = 0; i < 4; i++) {
        const int format = i & 1 ? 2 : 3;

        begin(0, 0, 0, 0);
        rival.key = format == 3 ? "p/zarr.json" : "p/.zgroup";
        rival.done = 0;
        rival.store = world.store;
        rival.path = "p";
        rival.group = i & 2;
        rival.format = 5 - format;
        rival.flags = 0;
        rival.cancel = cancel;
        hook = rival_creates;
        assert_ok(create(world.store, "p/a", false, format, 0, NULL, NULL));
        assert_int_equal(their_status, ZARR_ERR_CANCELLED);
        end();
    }
    begin(CAPS_CONDITIONAL, 0, 0, 0);
    rival.key = "p/zarr.json";
    rival.store = other;
    rival.group = false;
    rival.format = 3;
    rival.cancel = NULL;
    hook = rival_creates;
    assert_status(create(world.store, "p/a", false, 3, 0, NULL, NULL), ZARR_ERR_INVALID);
    assert_says("/p is an array");
    assert_int_equal(their_status, ZARR_OK);
    assert_null(get_text(&world, "p/a/zarr.json"));
    end();
    zarr_cancel_free(cancel);
}

/* ---- claims, between handles of one directory -------------------------------- */

static zarr_store *open_impatient(const struct world *w)
{
    zarr_store_options o = {.struct_size = sizeof o, .lock_wait_ms = 1};
    zarr_store *s = NULL;

    assert_ok(zarr_store_open(&s, w->ctx, w->dir, &o, &terr));
    return s;
}

/* What others may do at "a" and "" while another handle has the claim. */
static void check_claimed(zarr_store *s, const char *path)
{
    assert_status(create(s, path, false, 3, ZARR_SPEC_OVERWRITE, "{\"by\": 2}", NULL),
                  ZARR_ERR_IO);
    assert_says("lock_wait_ms");
    assert_status(create(s, path, false, 3, 0, NULL, NULL), ZARR_ERR_EXISTS);
    assert_status(zarr_node_delete(s, path, &terr), ZARR_ERR_CONFLICT);
}

static bool has_job(zarr_store *s, const char *path)
{
    char key[32];
    const int n = snprintf(key, sizeof key, "%s%s.zarrc-job", path, *path ? "/" : "");
    uint64_t bytes = 0;

    assert_true(n > 0 && (size_t)n < sizeof key);
    return zarr_store_get(s, key, 0, NULL, &bytes, NULL, NULL) != ZARR_ERR_NOT_FOUND;
}

static void test_claim(void **state)
{
    static const char *const path[] = {"", "a", "b/c"};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .flags = ZARR_SPEC_CLAIM | ZARR_SPEC_OVERWRITE,
                                  .ndim = 1,
                                  .shape = &length,
                                  .data_type = "int32"};
    const zarr_group_spec g = {.struct_size = sizeof g,
                               .flags = ZARR_GROUP_CLAIM | ZARR_GROUP_OVERWRITE};
    zarr_group *group = NULL;
    zarr_array *a = NULL;
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    for (size_t i = 0; i < 2 * sizeof path / sizeof *path; i++) {
        const char *const at = path[i / 2];
        zarr_store *s = open_impatient(&w);

        if (i & 1)
            assert_ok(zarr_group_create(&group, w.store, at, &g, NULL, &terr));
        else
            assert_ok(zarr_array_create(&a, w.store, at, &spec, NULL, &terr));
        check_claimed(s, at);
        assert_true(has_job(s, at));
        if (i & 1)
            assert_ok(zarr_group_release_claim(group, 1, NULL, &terr));
        else
            assert_ok(zarr_array_release_claim(a, 1, NULL, &terr));
        assert_false(has_job(s, at));
        assert_ok(create(s, at, false, 3, ZARR_SPEC_OVERWRITE, NULL, NULL));
        zarr_array_free(a);
        zarr_group_free(group);
        a = NULL;
        group = NULL;
        assert_ok(zarr_node_delete(s, at, &terr));
        zarr_store_free(s);
    }
    world_close(&w);
}

static void *cancel_soon(void *arg)
{
    usleep(50000); /* enough time to begin to wait */
    zarr_cancel_set(arg);
    return NULL;
}

/* A call that replaces a node waits for its writers until it is cancelled. The node stays
 * as it was. */
static void test_wait_for_writers(void **state)
{
    const zarr_store_options patient = {.struct_size = sizeof patient,
                                        .lock_wait_ms = 20000};
    const uint64_t shape = 8, chunk = 2, zero = 0;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = &shape,
                                  .chunk_shape = &chunk,
                                  .shard_shape = &shape,
                                  .data_type = "int32"};
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    for (int i = 0; i < 3; i++) { /* an array, a group, chunks in another store */
        zarr_array_open_options opts = {.struct_size = sizeof opts};
        zarr_store *chunks = NULL, *docs = NULL;
        zarr_shard_writer *writer = NULL;
        zarr_array *a = NULL, *b = NULL;
        zarr_array_spec again = spec;
        zarr_group *g = NULL;
        zarr_group_spec group = {.struct_size = sizeof group,
                                 .flags = ZARR_GROUP_OVERWRITE};
        zarr_cancel *cancel = NULL;
        pthread_t thread;

        assert_ok(zarr_cancel_create(&cancel, &terr));
        again.flags = ZARR_SPEC_OVERWRITE;
        again.cancel = group.cancel = cancel;
        assert_ok(zarr_store_open(&chunks, w.ctx, w.dir, &patient, &terr));
        assert_ok(
            zarr_store_open(&docs, w.ctx, i == 2 ? "memory:" : w.dir, &patient, &terr));
        opts.chunk_store = i == 2 ? chunks : NULL;
        assert_ok(zarr_array_create(&a, docs, "a", &spec, &opts, &terr));
        assert_ok(zarr_shard_writer_open(&writer, a, &zero, NULL, &terr));
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, cancel), 0);
        assert_status(i == 1 ? zarr_group_create(&g, docs, "", &group, NULL, &terr)
                             : zarr_array_create(&b, docs, "a", &again, &opts, &terr),
                      ZARR_ERR_CANCELLED);
        pthread_join(thread, NULL);
        assert_ok(zarr_array_recheck(a, NULL, &terr));
        zarr_shard_writer_free(writer);
        zarr_array_free(a);
        assert_ok(zarr_store_erase_prefix(chunks, "", NULL, &terr));
        zarr_store_free(docs);
        zarr_store_free(chunks);
        zarr_cancel_free(cancel);
    }
    world_close(&w);
}

/* The end of the handle ends the claim, and does not make the array complete. An array
 * that exists is opened, not claimed. */
static void test_end_of_claim(void **state)
{
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .flags = ZARR_SPEC_CLAIM,
                            .ndim = 1,
                            .shape = &length,
                            .data_type = "int32"};
    zarr_array *a = NULL;
    struct world w;
    zarr_store *s;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    s = open_impatient(&w);
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    zarr_array_free(a);
    assert_true(has_job(s, "a"));
    spec.flags |= ZARR_SPEC_IF_MISSING;
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    assert_ok(create(s, "a", false, 3, ZARR_SPEC_OVERWRITE, NULL, NULL));
    zarr_array_free(a);
    zarr_store_free(s);
    world_close(&w);
}

/* In a store without locks two calls may put the job object. The one that finds the array
 * of the other leaves it: it may be the only mark that the array is not filled. */
static void test_mark_of_the_winner(void **state)
{
    (void)state;
    begin(0, 0, 0, 0);
    rival.key = "a/.zarrc-job";
    rival.done = 0;
    rival.store = other;
    rival.path = "a";
    rival.group = false;
    rival.format = 3;
    rival.flags = ZARR_SPEC_CLAIM;
    rival.cancel = NULL;
    hook = rival_creates;
    assert_status(create(world.store, "a", false, 3, ZARR_SPEC_CLAIM, NULL, NULL),
                  ZARR_ERR_EXISTS);
    assert_ok(their_status);
    unhook();
    assert_true(has_job(other, "a"));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_replace_without_locks),
        cmocka_unit_test(test_parents),
        cmocka_unit_test(test_claim),
        cmocka_unit_test(test_wait_for_writers),
        cmocka_unit_test(test_mark_of_the_winner),
        cmocka_unit_test(test_end_of_claim),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
