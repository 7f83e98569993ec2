/*
 * fault/test_power.c - what a local store keeps through a loss of power at any moment
 * (power.h). No object that the durability promises to keep may be cut off then. At the
 * places where the durability promises that all is on the disk, nothing may be missing.
 * An append promises so before it replaces the array's document, and a shrink before it
 * erases the record of leftovers.
 */
#include "fault.h"
#include "power.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is written ------------------------------------------------------------ */

static char root[] = "/tmp/zarrc-power-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void mark(uint32_t durability, bool flushed)
{
    if (durability == ZARR_DURABILITY_EACH ||
        (flushed && durability != ZARR_DURABILITY_NONE))
        power_mark();
}

#define MUST(call)                                                                       \
    do {                                                                                 \
        if ((call) != ZARR_OK)                                                           \
            fail_msg("%s: %s", #call, err.message);                                      \
        mark(durability, false);                                                         \
    } while (0)

static void write_array(zarr_store *store, int format, uint32_t durability)
{
    const uint64_t shape = 16, chunk = 4, less = 6;
    const uint64_t n = 16;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .zarr_format = format,
                                  .ndim = 1,
                                  .shape = &shape,
                                  .chunk_shape = &chunk,
                                  .data_type = "int32",
                                  .attributes = "{\"a\":1}"};
    int32_t data[16];
    zarr_array *a = NULL;
    zarr_tensor t;
    zarr_error err;

    for (int i = 0; i < 16; i++)
        data[i] = i + 1;
    zarr_tensor_host(&t, NULL, data, sizeof data, 1, &n);
    MUST(zarr_array_create(&a, store, format == 2 ? "g/two" : "g/three", &spec, NULL,
                           &err));
    MUST(zarr_array_write(a, NULL, &t, NULL, &err));
    data[3] = 7;
    MUST(zarr_array_write(a, NULL, &t, NULL, &err));
    MUST(zarr_array_attribute_set(a, "b", "2", NULL, &err));
    MUST(zarr_array_append(a, 0, &t, NULL, NULL, &err));
    MUST(zarr_array_resize(a, &less, NULL, &err));
    zarr_array_free(a);
}

static void write_all(uint32_t durability, uint32_t locks)
{
    zarr_store_options opts = ZARR_STORE_OPTIONS_INIT;
    zarr_store *store = NULL;
    zarr_group *g = NULL;
    struct world w;
    char path[64];
    zarr_error err;

    opts.flags = ZARR_STORE_CREATE;
    opts.durability = durability;
    opts.locks = locks;
    snprintf(path, sizeof path, "%s/deep/store", root);
    world_context(&w, 1);
    MUST(zarr_store_open(&store, w.ctx, path, &opts, &err));
    MUST(zarr_group_create(&g, store, "g", NULL, NULL, &err));
    write_array(store, 3, durability);
    write_array(store, 2, durability);
    MUST(zarr_group_consolidate(g, NULL, &err));
    zarr_group_free(g);
    MUST(zarr_node_delete(store, "g/two", &err));
    MUST(zarr_store_flush(store, NULL, &err));
    mark(durability, true);
    zarr_store_free(store);
    w.store = NULL;
    world_close(&w);
}

static void begin_tape(void)
{
    memcpy(root, "/tmp/zarrc-power-XXXXXX", sizeof root);
    assert_non_null(mkdtemp(root));
    power_begin(root);
}

static void end_tape(void)
{
    power_clear();
    assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static struct power_losses run(uint32_t durability, uint32_t locks)
{
    struct power_losses sum;

    begin_tape();
    write_all(durability, locks);
    power_stop();
    assert_true(power_entries() > 100);
    sum = power_losses();
    end_tape();
    return sum;
}

/* What each durability keeps, and what it does not: a test that finds no loss without
 * any sync would find none at all. */
static void test_durability(void **state)
{
    static const uint32_t locks[] = {ZARR_LOCKS_OS, ZARR_LOCKS_NONE};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct power_losses none = run(ZARR_DURABILITY_NONE, locks[i]),
                                  commit = run(ZARR_DURABILITY_COMMIT, locks[i]),
                                  ordered = run(ZARR_DURABILITY_ORDERED, locks[i]),
                                  each = run(ZARR_DURABILITY_EACH, locks[i]);

        assert_true(none.documents > 0 && none.chunks > 0);
        assert_int_equal(commit.documents, 0);
        assert_true(commit.chunks > 0);
        assert_int_equal(commit.promised, 0);
        assert_int_equal(ordered.documents + ordered.chunks + ordered.promised, 0);
        assert_int_equal(each.documents + each.chunks + each.promised, 0);
    }
}

/* ---- an append and a shrink, which sync what they wrote --------------------- */

enum {
    ROW = 12, /* elements, of which each chunk has 4 */
    MANY = 80 /* rows: more chunks than are synced one by one */
};

struct shape_case {
    uint32_t durability, locks;
    int format;
    zarr_store *store;
    zarr_array *a;
};

static void shape_case_open(struct shape_case *c, struct world *w)
{
    const uint64_t shape[2] = {0, ROW}, chunk[2] = {1, 4};
    zarr_store_options opts = ZARR_STORE_OPTIONS_INIT;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .zarr_format = c->format,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .data_type = "int32"};
    char path[64];
    zarr_error err;

    opts.flags = ZARR_STORE_CREATE;
    opts.durability = c->durability;
    opts.locks = c->locks;
    snprintf(path, sizeof path, "%s/deep/store", root);
    world_context(w, 2);
    world_must(zarr_store_open(&c->store, w->ctx, path, &opts, &err), &err, "open");
    world_must(zarr_array_create(&c->a, c->store, "g/a", &spec, NULL, &err), &err, "g/a");
}

static void shape_case_append(const struct shape_case *c, uint64_t rows)
{
    static int32_t data[MANY * ROW];
    const uint64_t shape[2] = {rows, ROW};
    zarr_tensor t;
    zarr_error err;

    for (int i = 0; i < MANY * ROW; i++)
        data[i] = i + 1;
    zarr_tensor_host(&t, NULL, data, (size_t)rows * ROW * sizeof *data, 2, shape);
    world_must(zarr_array_append(c->a, 0, &t, NULL, NULL, &err), &err, "append");
}

/* How often the whole file system was synced from entry `begin` on. What was promised
 * there must be on the disk, and something was. */
static int whole_syncs(size_t begin)
{
    const struct power_syncs syncs = power_syncs(begin);

    assert_int_equal(syncs.lost, 0);
    assert_true(syncs.marks > 0);
    return syncs.whole;
}

/* No flush comes before the first append, so that it also finds folders whose names are
 * not on the disk, down from those above the root. */
static void shape_case_run(struct shape_case *c)
{
    const char *const document = c->format == 2 ? ".zarray" : "zarr.json";
    const uint64_t less[2] = {2, 6};
    size_t begin;
    struct world w;
    zarr_error err;

    begin_tape();
    shape_case_open(c, &w);
    for (int i = 0; i < 3; i++) {
        begin = power_entries();
        power_mark_before(document, NULL);
        shape_case_append(c, 1);
        assert_int_equal(whole_syncs(begin), 0);
    }
    begin = power_entries();
    power_mark_before(NULL, ".zarrc-leftovers");
    world_must(zarr_array_resize(c->a, less, NULL, &err), &err, "shrink");
    assert_int_equal(whole_syncs(begin), 0);
    begin = power_entries();
    power_mark_before(NULL, NULL);
    world_must(zarr_array_resize(c->a, (const uint64_t[]){2, ROW}, NULL, &err), &err,
               "grow");
    power_mark_before(document, NULL);
    shape_case_append(c, MANY);
    assert_int_equal(whole_syncs(begin), 1);
    power_mark_before(NULL, NULL);
    zarr_array_free(c->a);
    zarr_store_free(c->store);
    w.store = NULL;
    world_close(&w);
    end_tape();
}

/* An append and a shrink do not wait for what other programs wrote to the disk, unless
 * they change many chunks. What they write is on the disk in time all the same. */
static void test_alone(void **state)
{
    static const uint32_t locks[] = {ZARR_LOCKS_OS, ZARR_LOCKS_NONE},
                          durability[] = {ZARR_DURABILITY_COMMIT,
                                          ZARR_DURABILITY_ORDERED};

    (void)state;
    for (unsigned i = 0; i < 8; i++)
        shape_case_run(&(struct shape_case){.durability = durability[i & 1],
                                            .locks = locks[i >> 1 & 1],
                                            .format = i & 4 ? 2 : 3});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_durability),
                                       cmocka_unit_test(test_alone)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
