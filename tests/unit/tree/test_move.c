/*
 * unit/tree/test_move.c - what other calls do while a move copies and deletes: what
 * appears at the source stays, locks are taken in one order, and a move that fails before
 * it deletes leaves the source as it was.
 */
#include "ctx/ctx.h"
#include "store/store.h"
#include "unit/array/array_test.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOB   "{\"zarrc_job\": 1, \"command\": \"create\"}\n"
#define ATTRS "src/k2/.zattrs"

/* ---- a store in front of a local one ------------------------------------- */

static struct {
    zarr_store *below;
    const char *failing; /* the erase of this key fails, and a rename if it is "" */
    char job[512];       /* the job object of the source at that moment */
    int n_asked, n_free; /* locks of .zattrs; those with the array's document unlocked */
    bool changes;        /* .zattrs changes just before its lock is taken */
} front;

static void front_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = zr_store_caps(front.below)->flags;
}

static void front_run(void *self, zarr_store_op *op, zarr_error *err)
{
    uint64_t n = sizeof front.job - 1;

    (void)self;
    if (op->verb == ZARR_STORE_ERASE && front.failing &&
        strcmp(op->key, front.failing) == 0) {
        (void)!zarr_store_get(front.below, "src/.zarrc-job", 0, front.job, &n, NULL,
                              NULL);
        op->status = ZARR_ERR_IO;
        return;
    }
    (void)zr_store_run_one(front.below, op, err);
}

static zarr_status front_list(void *self, const char *prefix, uint32_t how,
                              zarr_store_list_fn fn, void *user,
                              const zarr_cancel *cancel, zarr_error *err)
{
    (void)cancel;
    (void)self;
    return zr_store_list(front.below, prefix, how, fn, user, cancel, err);
}

static zarr_status front_lock(void *self, const char *key, const zarr_cancel *cancel,
                              void **lock, zarr_error *err)
{
    void *rival = NULL;

    (void)self;
    if (strcmp(key, ATTRS) == 0 &&
        zarr_store_stat(front.below, "src/k2/.zarray", NULL, NULL, NULL) == ZARR_OK) {
        front.n_asked++;
        if (zr_store_lock_try(front.below, "src/k2/.zarray", NULL, &rival, NULL) ==
            ZARR_OK)
            front.n_free++;
        zr_store_unlock(front.below, rival);
        if (front.changes)
            assert_ok(zarr_store_put(front.below, ATTRS, "{\"k\": 2}", 8, NULL, &terr));
    }
    return zr_store_lock(front.below, key, cancel, lock, err);
}

static void front_unlock(void *self, void *lock)
{
    (void)self;
    zr_store_unlock(front.below, lock);
}

static zarr_status front_rename(void *self, const char *from, const char *to,
                                const zarr_cancel *cancel, zarr_error *err)
{
    (void)cancel;
    (void)self;
    (void)from;
    (void)to;
    (void)err;
    return front.failing && !*front.failing ? ZARR_ERR_IO : ZARR_ERR_UNSUPPORTED;
}

static zarr_store *open_front(struct world *w)
{
    static const zarr_store_vtable vtable = {.struct_size = sizeof vtable,
                                             .name = "front",
                                             .caps = front_caps,
                                             .run = front_run,
                                             .list = front_list,
                                             .lock = front_lock,
                                             .unlock = front_unlock,
                                             .rename = front_rename};
    zarr_store *s = NULL;

    memset(&front, 0, sizeof front);
    front.below = w->store;
    assert_ok(zarr_store_open_custom(&s, w->ctx, &vtable, NULL, NULL, &terr));
    return s;
}

static void make_source(struct world *w)
{
    zarr_array *a = NULL;
    zarr_group *g = NULL;

    assert_ok(group_create(&g, w->store, "src", 2, NULL, 0, &terr));
    zarr_group_free(g);
    a = make_array(w, "src/k2", 2, 6, 7);
    fill_array(a);
    assert_ok(zarr_array_attribute_set(a, "k", "1", NULL, &terr));
    zarr_array_free(a);
}

/* ---- a node that appears ------------------------------------------------- */

static char appears[128]; /* the folder that appears; "": none */

static void on_line(void *user, uint32_t level, const char *text)
{
    struct world *w = user;
    char path[256];
    FILE *f;

    (void)level;
    if (!*appears || strncmp(text, "lock src/k2/", 12) != 0)
        return;
    snprintf(path, sizeof path, "%s/%s", w->dir, appears);
    *appears = '\0';
    assert_int_equal(mkdir(path, 0777), 0);
    strncat(path, "/.zgroup", sizeof path - strlen(path) - 1);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("{\"zarr_format\": 2}", f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* The last step of the move has looked for members before a new one appears. */
static void test_new_member_stays(void **state)
{
    zarr_context_options opts = {
        .struct_size = sizeof opts, .log = on_line, .log_level = ZARR_LOG_DEBUG};
    zarr_store *memory = NULL;
    zarr_group *g = NULL;
    struct world w;

    (void)state;
    world_begin(&w, WORLD_LOCAL);
    opts.log_user = &w;
    opts.allocator = &w.alloc;
    assert_ok(zarr_context_create(&w.ctx, &opts, &terr));
    assert_ok(world_store(&w, WORLD_LOCAL, &terr));
    make_source(&w);
    assert_ok(zarr_store_open(&memory, w.ctx, "memory:", NULL, &terr));
    snprintf(appears, sizeof appears, "src/new");
    assert_status(zarr_node_move(w.store, "src", memory, "", NULL, &terr),
                  ZARR_ERR_CONFLICT);
    assert_says("src/new/.zgroup: appeared");
    assert_ok(zarr_group_open(&g, w.store, "src/new", NULL, &terr));
    zarr_group_free(g);
    assert_int_equal(n_keys(&w, "src"), 1);
    zarr_store_free(memory);
    world_close(&w);
}

/* The same in a store whose prefixes are listed. */
static void test_new_key_in_any_store(void **state)
{
    struct world w;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        put_text(&w, "a/.zarrc-job", JOB);
        put_text(&w, "a/new/zarr.json", "{}");
        assert_status(zr_store_erase_rest(w.store, "a", "a/.zarrc-job", NULL, &terr),
                      ZARR_ERR_CONFLICT);
        assert_non_null(get_text(&w, "a/new/zarr.json"));
        assert_ok(zarr_store_erase(w.store, "a/new/zarr.json", NULL, &terr));
        assert_ok(zr_store_erase_rest(w.store, "a", "a/.zarrc-job", NULL, &terr));
        assert_int_equal(n_keys(&w, ""), 0);
        world_close(&w);
    }
}

/* ---- locks --------------------------------------------------------------- */

/* A call that makes a v2 array holds the lock of its document when it asks for that of
 * its attributes. A move that has the second and asks for the first would wait for it. */
static void test_order_of_locks(void **state)
{
    zarr_store *s = NULL, *memory = NULL;
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    make_source(&w);
    s = open_front(&w);
    assert_ok(zarr_store_open(&memory, w.ctx, "memory:", NULL, &terr));
    assert_ok(zarr_node_move(s, "src", memory, "", NULL, &terr));
    assert_int_equal(n_keys(&w, "src"), 0);
    assert_true(front.n_asked > 0);
    assert_int_equal(front.n_free, 0);
    zarr_store_free(memory);
    zarr_store_free(s);
    world_close(&w);
}

/* A node with documents of both formats: a change of one keeps all of them. */
static void test_all_documents_stay(void **state)
{
    static const char *const names[] = {"src/k2/zarr.json", "src/k2/.zarray"};
    zarr_store *s = NULL, *memory = NULL;
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    make_source(&w);
    zarr_array_free(make_array(&w, "src/k3", 3, 6, 7));
    put_text(&w, "src/k2/zarr.json", get_text(&w, "src/k3/zarr.json"));
    s = open_front(&w);
    front.changes = true;
    assert_ok(zarr_store_open(&memory, w.ctx, "memory:", NULL, &terr));
    assert_status(zarr_node_move(s, "src/k2", memory, "", NULL, &terr),
                  ZARR_ERR_CONFLICT);
    assert_says("src/k2/.zattrs: changed meanwhile");
    for (size_t i = 0; i < ZR_COUNT(names); i++)
        assert_non_null(get_text(&w, names[i]));
    zarr_store_free(memory);
    zarr_store_free(s);
    world_close(&w);
}

/* ---- a source that is not deleted ---------------------------------------- */

static bool is_listed(struct world *w, const char *path)
{
    const zarr_group_open_options opts = {.struct_size = sizeof opts,
                                          .consolidated = ZARR_CONSOLIDATED_MUST};
    zarr_group *root = NULL, *g = NULL;
    zarr_status st;

    assert_ok(zarr_group_open(&root, w->store, "", &opts, &terr));
    st = zarr_group_open_group(&g, root, path, NULL, &terr);
    zarr_group_free(g);
    zarr_group_free(root);
    return st == ZARR_OK;
}

/* Consolidated metadata and the mark of a node that was never filled are as before. */
static void test_failed_move(void **state)
{
    const zarr_copy_options opts = {.struct_size = sizeof opts,
                                    .flags = ZARR_COPY_CONSOLIDATED};
    const zarr_delete_options del = {.struct_size = sizeof del,
                                     .flags = ZARR_DELETE_CONSOLIDATED};
    zarr_store *s = NULL;
    zarr_group *g = NULL;
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    assert_ok(group_create(&g, w.store, "", 2, NULL, 0, &terr));
    zarr_group_free(g);
    make_source(&w);
    put_text(&w, "src/.zarrc-job", JOB);
    assert_ok(consolidate_at(w.store, "", NULL, &terr));
    s = open_front(&w);
    front.failing = "";
    assert_status(zarr_node_move(s, "src", s, "dst", &opts, &terr), ZARR_ERR_IO);
    assert_true(is_listed(&w, "src"));
    front.failing = "src/.zgroup";
    assert_status(zarr_node_move(s, "src", s, "dst", &opts, &terr), ZARR_ERR_IO);
    assert_non_null(strstr(front.job, "\"destination\": \""));
    assert_non_null(strstr(front.job, "\"before\": \""));
    assert_string_equal(get_text(&w, "src/.zarrc-job"), JOB);
    assert_string_equal(get_text(&w, "dst/.zarrc-job"), JOB);
    assert_true(is_listed(&w, "src"));
    assert_status(zarr_node_delete_watched(s, "src", &del, &terr), ZARR_ERR_IO);
    assert_non_null(strstr(front.job, "\"before\": \""));
    assert_string_equal(get_text(&w, "src/.zarrc-job"), JOB);
    assert_true(is_listed(&w, "src"));
    /* the documents are gone already: a delete that fails again keeps its mark */
    put_text(&w, "src/.zarrc-job", "{\"zarrc_job\": 1, \"command\": \"rm\"}");
    assert_ok(zarr_store_erase(w.store, "src/.zgroup", NULL, &terr));
    assert_status(zarr_node_delete_watched(s, "src", &del, &terr), ZARR_ERR_IO);
    assert_non_null(strstr(get_text(&w, "src/.zarrc-job"), "\"rm\""));
    zarr_store_free(s);
    world_close(&w);
}

/* A kill leaves the job object of the delete beside the document of a node that was never
 * filled: a repeated move, and a copy, take along that it was not. */
static void test_mark_survives_a_kill(void **state)
{
    static const char job[] =
        "{\"zarrc_job\": 1, \"command\": \"rm\", \"before\": \"{\\\"zarrc_job\\\": 1, "
        "\\\"command\\\": \\\"create\\\"}\\n\"}\n";
    zarr_store *memory = NULL;
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    make_source(&w);
    put_text(&w, "src/.zarrc-job", job);
    assert_ok(zarr_node_copy(w.store, "src", w.store, "dst", NULL, &terr));
    assert_string_equal(get_text(&w, "dst/.zarrc-job"), JOB);
    assert_ok(zarr_store_open(&memory, w.ctx, "memory:", NULL, &terr));
    assert_ok(zarr_node_move(w.store, "src", memory, "dst", NULL, &terr));
    assert_ok(zarr_node_move(memory, "dst", w.store, "back", NULL, &terr));
    assert_string_equal(get_text(&w, "back/.zarrc-job"), JOB);
    zarr_store_free(memory);
    world_close(&w);
}

/* Leaves what a move was killed at, after the source's document was deleted. */
static void leave_rest(struct world *w, const char *destination)
{
    struct zr_str job;

    zr_str_init(&job, NULL);
    zr_str_puts(&job, "{\"zarrc_job\": 1, \"command\": \"mv\", \"destination\": ");
    zr_json_write_string(&job, destination, strlen(destination));
    zr_str_puts(&job, ", \"before\": \"{}\"}");
    put_text(w, "src/.zarrc-job", zr_str_text(&job));
    zr_str_deinit(&job);
    (void)!zarr_store_erase(w->store, "src/.zgroup", NULL, NULL);
}

/* The job object of the last step names the destination. Other stores have it: by another
 * spelling, beginning further down, and by another scheme. */
static void test_other_destination(void **state)
{
    const zarr_copy_options opts = {.struct_size = sizeof opts,
                                    .flags = ZARR_COPY_SKIP_EQUAL};
    static const char *const urls[] = {"%s/d/../d/g", "%s/d", "gds:%s/d"};
    static const char *const paths[] = {"dst", "g/dst", "g/dst"};
    char url[300], name[PATH_MAX + 16];
    struct world w;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(urls); i++) {
        zarr_store *s = NULL;

        world_open(&w, WORLD_LOCAL);
        make_source(&w);
        assert_non_null(realpath(zarr_store_url(w.store), name));
        assert_ok(zarr_node_copy(w.store, "src", w.store, "d/g/dst", NULL, &terr));
        put_text(&w, "d/g/dst/.zarrc-job", "{}");
        snprintf(url, sizeof url, urls[i], zarr_store_url(w.store));
        assert_ok(zarr_store_open(&s, w.ctx, url, NULL, &terr));
        leave_rest(&w, "/elsewhere");
        assert_status(zarr_node_move(w.store, "src", s, paths[i], &opts, &terr),
                      ZARR_ERR_NOT_FOUND);
        assert_says("a move to \"/elsewhere\", not to \"");
        strncat(name, "/d/g/dst", sizeof name - strlen(name) - 1);
        leave_rest(&w, name);
        assert_ok(zarr_node_move(w.store, "src", s, paths[i], &opts, &terr));
        assert_int_equal(n_keys(&w, "src"), 0);
        zarr_store_free(s);
        world_close(&w);
    }
}

/* A move names the destination only when it is there: links in its path lead on by then,
 * and one in its place is a folder. */
static void test_linked_destination(void **state)
{
    zarr_copy_options opts = {.struct_size = sizeof opts};
    static const char *const paths[] = {"link/dst", "link"};
    char url[300];
    struct world w;

    (void)state;
    for (int i = 0; i < 2; i++) {
        zarr_store *s = NULL;

        world_open(&w, WORLD_LOCAL);
        make_source(&w);
        put_text(&w, "d/.zgroup", "{\"zarr_format\": 2}");
        snprintf(url, sizeof url, "%s/link", zarr_store_url(w.store));
        assert_int_equal(symlink("d", url), 0);
        s = open_front(&w);
        front.failing = "src/.zarrc-job"; /* the last one */
        opts.flags = ZARR_COPY_OVERWRITE;
        assert_status(zarr_node_move(s, "src", w.store, paths[i], &opts, &terr),
                      ZARR_ERR_IO);
        assert_status(zarr_store_stat(w.store, "src/.zgroup", NULL, NULL, NULL),
                      ZARR_ERR_NOT_FOUND);
        front.failing = NULL;
        opts.flags = ZARR_COPY_SKIP_EQUAL;
        assert_ok(zarr_node_move(s, "src", w.store, paths[i], &opts, &terr));
        assert_int_equal(n_keys(&w, "src"), 0);
        zarr_store_free(s);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_member_stays),
        cmocka_unit_test(test_new_key_in_any_store),
        cmocka_unit_test(test_order_of_locks),
        cmocka_unit_test(test_all_documents_stay),
        cmocka_unit_test(test_failed_move),
        cmocka_unit_test(test_mark_survives_a_kill),
        cmocka_unit_test(test_other_destination),
        cmocka_unit_test(test_linked_destination),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
