/*
 * unit/tree/test_cancel.c - a cancel object stops each call before each operation of the
 * store: the call returns soon, nothing leaks, no lock stays, every object is old or new,
 * and the same call then does the rest.
 */
#include "cancel_test.h"
#include "sanitizers.h"

/* ---- calls ------------------------------------------------------------------- */

static zarr_status do_read(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return rows_io(s, "src/a", c, 0);
}

static zarr_status do_read_shards(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return rows_io(s, "src/g/s", c, 0);
}

static zarr_status do_write(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return rows_io(s, "src/a", c, 1);
}

static zarr_status do_write_shards(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return rows_io(s, "src/g/s", c, 1);
}

static zarr_status do_append(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return rows_io(s, "src/a", c, 2);
}

static zarr_status resize_to(zarr_store *s, zarr_cancel *c, uint64_t rows, uint64_t cols)
{
    zarr_shape_options o = ZARR_SHAPE_OPTIONS_INIT;
    zarr_array *a = open_array(s, "src/a");
    const uint64_t shape[2] = {rows, cols};
    zarr_status st;

    o.cancel = c;
    st = zarr_array_resize(a, shape, &o, &terr);
    zarr_array_free(a);
    return st;
}

static zarr_status do_shrink(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return resize_to(s, c, 3, 3);
}

/* The same shape: everything outside is looked for. */
static zarr_status do_tidy(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return resize_to(s, c, ROWS, COLS);
}

static int ignore_chunk(void *user, const zarr_block_info *chunk)
{
    (void)user;
    (void)chunk;
    return 0;
}

static zarr_status do_list_chunks(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_array *a = open_array(s, "src/g/s");
    zarr_status st;

    (void)again;
    o.cancel = c;
    st = zarr_array_list_blocks(a, ZARR_BLOCKS_CHUNKS, ignore_chunk, NULL, &o, &terr);
    zarr_array_free(a);
    return st;
}

static int no_fault(void *user, const zarr_verify_item *item)
{
    (void)user;
    fail_msg("%s", item->message);
    return 0;
}

static zarr_status do_array_verify(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_array *a = open_array(s, "src/g/s");
    zarr_status st;

    (void)again;
    o.cancel = c;
    o.max_threads = 1;
    st = zarr_array_verify(a, no_fault, NULL, &o, &terr);
    zarr_array_free(a);
    return st;
}

static zarr_status do_verify(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_verify_options o = ZARR_VERIFY_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    o.max_threads = 1;
    return zarr_node_verify(s, "src", NULL, &o, &terr);
}

static zarr_status do_diff(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_diff_options o = ZARR_DIFF_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    return zarr_node_diff(s, "src/a", s, "src/g/s", NULL, &o, &terr);
}

static zarr_status do_copy(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_copy_options o = ZARR_COPY_OPTIONS_INIT;

    o.cancel = c;
    o.max_threads = 1;
    o.flags = again ? ZARR_COPY_SKIP_EQUAL : 0;
    return zarr_node_copy(s, "src", s, "dst", &o, &terr);
}

static zarr_status do_move(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_copy_options o = ZARR_COPY_OPTIONS_INIT;

    o.cancel = c;
    o.max_threads = 1;
    o.flags = again ? ZARR_COPY_SKIP_EQUAL : 0;
    return zarr_node_move(s, "src", s, "dst", &o, &terr);
}

static zarr_status do_delete(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_delete_options o = ZARR_DELETE_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    return zarr_node_delete_watched(s, "src/g", &o, &terr);
}

static zarr_status do_reencode(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_reencode_options o = ZARR_REENCODE_OPTIONS_INIT;
    zarr_array_spec changes = ZARR_ARRAY_SPEC_INIT;

    changes.codecs = "[{\"name\": \"gzip\", \"configuration\": {\"level\": 1}}]";
    o.changes = &changes;
    o.cancel = c;
    o.flags = ZARR_REENCODE_VERIFY | (again ? ZARR_REENCODE_RESUME : 0u);
    o.buffer_bytes = 256;
    return zarr_node_reencode(s, "src", s, "dst", NULL, &o, &terr);
}

static zarr_status do_migrate(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_migrate_options o = ZARR_MIGRATE_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    return zarr_node_migrate(s, "old", &o, &terr);
}

static zarr_status do_consolidate(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_consolidate_options o = ZARR_CONSOLIDATE_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    return consolidate_at(s, "src", &o, &terr);
}

static int ignore_difference(void *user, const char *path, const char *what)
{
    (void)user;
    (void)path;
    (void)what;
    return 0;
}

static zarr_status do_consolidated_check(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_consolidate_options o = ZARR_CONSOLIDATE_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    return check_consolidated_at(s, "old", ignore_difference, NULL, &o, &terr);
}

static zarr_status do_consolidated_update(zarr_store *s, zarr_cancel *c, bool again)
{
    zarr_consolidate_options o = ZARR_CONSOLIDATE_OPTIONS_INIT;

    (void)again;
    o.cancel = c;
    o.flags = ZARR_CONSOLIDATED_BELOW;
    return zarr_group_consolidated_update(s, "old/v", NULL, &o, &terr);
}

static int ignore_node(void *user, const zarr_node_item *node)
{
    (void)user;
    (void)node;
    return ZARR_WALK_GO_ON;
}

static zarr_status walk(zarr_store *s, zarr_cancel *c, bool deep)
{
    zarr_list_options o = ZARR_LIST_OPTIONS_INIT;
    zarr_group *g = NULL;
    zarr_status st;

    assert_ok(zarr_group_open(&g, s, "src", NULL, &terr));
    o.cancel = c;
    st = deep ? zarr_group_walk(g, ignore_node, NULL, &o, &terr)
              : zarr_group_list(g, ignore_node, NULL, &o, &terr);
    zarr_group_free(g);
    return st;
}

static zarr_status do_walk(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return walk(s, c, true);
}

static zarr_status do_list(zarr_store *s, zarr_cancel *c, bool again)
{
    (void)again;
    return walk(s, c, false);
}

/* ---- cancelled before each operation ----------------------------------------- */

/* A checksum of all keys and values, which does not depend on their order. */
static int add_key(void *user, const zarr_store_item *item)
{
    uint64_t *sum = ((void **)user)[0], one = 1469598103934665603u;
    zarr_store *s = ((void **)user)[1];
    static unsigned char value[1 << 16];
    uint64_t n = sizeof value;

    assert_ok(zarr_store_get(s, item->key, 0, value, &n, NULL, &terr));
    assert_true(n < sizeof value);
    for (const char *p = item->key; *p; p++)
        one = (one ^ (unsigned char)*p) * 1099511628211u;
    for (uint64_t i = 0; i < n; i++)
        one = (one ^ value[i]) * 1099511628211u;
    *sum += one;
    return 0;
}

static uint64_t checksum(struct world *w)
{
    uint64_t sum = 0;
    void *user[2] = {&sum, w->store};

    assert_ok(
        zarr_store_list(w->store, "", ZARR_LIST_RECURSIVE, add_key, user, NULL, &terr));
    return sum;
}

typedef zarr_status (*cancelled_call)(zarr_store *s, zarr_cancel *c, bool again);

/* Returns how many operations it was cancelled before, those between the steps included.
 * most: operations after that. */
static int cancel_everywhere(const char *name, cancelled_call call, int most)
{
    uint64_t whole = 0;
    int n = 0;

    for (int k = -1, step = 1; k < 1000; k += step) {
        zarr_cancel *c = fresh_cancel();
        zarr_store *s = NULL;
        struct world w;
        zarr_status st;

        open_trap(&w, &s, c, k);
        st = call(s, c, false);
        if (k < 0) {
            assert_ok(st);
            whole = checksum(&w);
        } else if (st != ZARR_OK) {
            step = ZR_FAIL_STEP(k);
            n += step;
            if (st != ZARR_ERR_CANCELLED || terr.code != st)
                fail_msg("%s, operation %d: %s", name, k, terr.message);
            if (atomic_load(&trap.after) > most)
                fail_msg("%s: %d operations after it was cancelled at %d", name,
                         atomic_load(&trap.after), k);
            check_elements(&w);
            /* set before the call: nothing is done */
            atomic_store(&trap.after, 0);
            atomic_store(&trap.left, -1);
            zarr_cancel_reset(c);
            st = call(s, c, true);
            if (st != ZARR_OK)
                fail_msg("%s, after operation %d: %s", name, k, terr.message);
        }
        if (checksum(&w) != whole)
            fail_msg("%s: other bytes after operation %d", name, k);
        st = zarr_cancel_is_set(c) || k < 0 ? ZARR_OK : ZARR_ERR_NOT_FOUND;
        zarr_store_free(s);
        world_close(&w);
        if (k >= 0 && st != ZARR_OK && atomic_load(&trap.left) > 0)
            return n; /* the call had fewer operations */
    }
    fail_msg("%s does not end", name);
    return 0;
}

static void everywhere(void **state)
{
    static const struct {
        const char *name;
        cancelled_call call;
        int least, most; /* cancelled calls; operations after the object was set */
    } calls[] = {
        {"read", do_read, 12, 2},
        {"read of shards", do_read_shards, 4, 2},
        {"write", do_write, 12, 2},
        {"write of shards", do_write_shards, 4, 2},
        {"append", do_append, 12, 2},
        {"shrink", do_shrink, 10, 3},
        {"tidy", do_tidy, 10, 3},
        {"list of chunks", do_list_chunks, 6, 3},
        {"verify of an array", do_array_verify, 6, 3},
        {"verify", do_verify, 20, 4},
        {"diff", do_diff, 10, 6},
        {"copy", do_copy, 20, 8},
        {"move", do_move, 20, 40},
        {"delete", do_delete, 6, 4},
        {"reencode", do_reencode, 40, 16},
        {"migrate", do_migrate, 6, 6},
        {"consolidate", do_consolidate, 8, 8},
        {"consolidated_check", do_consolidated_check, 3, 8},
        {"consolidated_update", do_consolidated_update, 2, 8},
        {"walk", do_walk, 6, 8},
        {"list", do_list, 3, 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const int n = cancel_everywhere(calls[i].name, calls[i].call, calls[i].most);

        if (n < calls[i].least)
            fail_msg("%s was cancelled only %d times", calls[i].name, n);
    }
}

/* An object that is set before the call: no operation begins. */
static void set_before(void **state)
{
    static const cancelled_call calls[] = {do_read,   do_write,       do_append,
                                           do_shrink, do_list_chunks, do_array_verify};
    zarr_cancel *c = fresh_cancel();
    struct world w;
    zarr_store *s = NULL;
    uint64_t before;

    (void)state;
    open_trap(&w, &s, NULL, -1);
    before = checksum(&w);
    zarr_cancel_set(c);
    assert_int_equal(zarr_cancel_is_set(c), 1);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_status(calls[i](s, c, false), ZARR_ERR_CANCELLED);
    assert_true(checksum(&w) == before);
    zarr_cancel_reset(c);
    assert_int_equal(zarr_cancel_is_set(c), 0);
    assert_ok(do_read(s, c, false));
    zarr_cancel_set(NULL);
    zarr_cancel_reset(NULL);
    zarr_cancel_free(NULL);
    assert_int_equal(zarr_cancel_is_set(NULL), 0);
    zarr_store_free(s);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everywhere),
        cmocka_unit_test(set_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
