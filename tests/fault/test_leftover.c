/*
 * fault/test_leftover.c - a resize or an append is killed with SIGKILL before each
 * operation of the store. Afterwards the array has its old or its new shape with the
 * elements of that shape, and a grow shows only the fill value in what it adds: deleted
 * elements and elements of an append that was not finished do not come back. Other
 * processes are killed at random moments. Argument: number of these kills.
 */
#include "mortal.h"

#include "../sanitizers.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECORD "x/.zarrc-leftovers"

enum {
    FILL = -1,
    MOST = 32 /* largest length of a dimension */
};

static int n_random = 40;

/* ---- steps ----------------------------------------------------------------------- */

static int32_t cell(uint64_t row, uint64_t col)
{
    return (int32_t)(row * 1000 + col);
}

static zarr_status box_io(zarr_array *a, bool write, uint64_t rows, uint64_t cols,
                          int32_t *data, zarr_error *err)
{
    const uint64_t start[2] = {0, 0}, count[2] = {rows, cols};
    const uint64_t shape[2] = {(uint64_t)rows, (uint64_t)cols};
    zarr_selection *sel = NULL;
    zarr_tensor t;
    zarr_status st = zarr_selection_box(&sel, 2, zarr_array_shape(a), start, count, err);

    zarr_tensor_host(&t, NULL, data, rows * cols * sizeof *data, 2, shape);
    if (st == ZARR_OK)
        st = write ? zarr_array_write(a, sel, &t, NULL, err)
                   : zarr_array_read(a, sel, &t, NULL, err);
    zarr_selection_free(sel);
    return st;
}

static void fill_cells(int32_t *data, uint64_t first, uint64_t rows, uint64_t cols)
{
    for (uint64_t i = 0; i < rows * cols; i++)
        data[i] = cell(first + i / cols, i % cols);
}

static zarr_status append_rows(zarr_array *a, uint64_t n, zarr_error *err)
{
    static int32_t data[MOST * MOST];
    const uint64_t *have = zarr_array_shape(a);
    const uint64_t shape[2] = {(uint64_t)n, (uint64_t)have[1]};
    zarr_tensor t;

    fill_cells(data, have[0], n, have[1]);
    zarr_tensor_host(&t, NULL, data, n * have[1] * sizeof *data, 2, shape);
    return zarr_array_append(a, 0, &t, NULL, NULL, err);
}

struct step {
    uint64_t shape[2]; /* of a resize; {0, 0}: an append of 5 rows; {0, 1}: clearing */
};

static zarr_status run_step(zarr_store *store, const struct step *s, zarr_error *err)
{
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, store, "x", NULL, err);

    if (st == ZARR_OK && s->shape[0])
        st = zarr_array_resize(a, s->shape, NULL, err);
    else if (st == ZARR_OK && s->shape[1])
        st = zarr_array_clear_leftovers(a, NULL, NULL, err);
    else if (st == ZARR_OK)
        st = append_rows(a, 5, err);
    zarr_array_free(a);
    return st;
}

static zarr_status run_any_step(zarr_store *store, const void *step, zarr_error *err)
{
    return run_step(store, step, err);
}

/* Runs the step in a process that is killed at its k-th operation. Returns false if it
 * ended before. */
static bool run_killed(const struct step *s, int64_t k, bool late, bool lists)
{
    return mortal_killed(run_any_step, s,
                         &(struct mortal){.left = k, .late = late, .lists = lists});
}

/* ---- what is stored -------------------------------------------------------------- */

/* Elements that a read may show: inside of `all` they must be as written; inside of
 * `maybe` they may. All others are the fill value. */
struct expected {
    uint64_t all[2], maybe[2];
};

static void shape_now(zarr_store *store, uint64_t *shape)
{
    zarr_array *a = NULL;
    zarr_error err;

    world_must(zarr_array_open(&a, store, "x", NULL, &err), &err, "x");
    memcpy(shape, zarr_array_shape(a), 2 * sizeof *shape);
    zarr_array_free(a);
}

static void check_cells(zarr_array *a, const struct expected *e, const char *what)
{
    static int32_t data[MOST * MOST];
    const uint64_t *shape = zarr_array_shape(a);
    zarr_error err;

    world_must(box_io(a, false, shape[0], shape[1], data, &err), &err, what);
    for (uint64_t i = 0; i < shape[0] * shape[1]; i++) {
        const uint64_t row = i / shape[1], col = i % shape[1];
        const bool all = row < e->all[0] && col < e->all[1];
        const bool maybe = row < e->maybe[0] && col < e->maybe[1];

        if (data[i] != cell(row, col) ? all || data[i] != FILL : !all && !maybe)
            fail_msg("%s: element %d, %d is %d", what, (int)row, (int)col, data[i]);
    }
}

static int tell(void *user, const zarr_finding *f)
{
    if (f->severity == ZARR_SEVERITY_ERROR)
        fail_msg("%s: %s", f->key, f->message);
    ++*(int *)user;
    return 0;
}

static int n_findings(zarr_store *store)
{
    int n = 0;
    const zarr_verify_options opts = {
        .struct_size = sizeof opts, .tell = tell, .tell_user = &n};
    zarr_error err;

    world_must(zarr_node_verify(store, "", NULL, &opts, &err), &err, "verify");
    return n;
}

static bool has_record(zarr_store *store)
{
    uint64_t none = 0;

    return zarr_store_get(store, RECORD, 0, NULL, &none, NULL, NULL) == ZARR_OK;
}

/* After the kill: grows the array, and looks at every element. */
static void grow_and_check(const struct expected *e, bool lists, bool clear,
                           const char *what)
{
    const uint64_t large[2] = {MOST - 1, MOST - 3};
    struct mortal m = {.lists = lists, .counted = RECORD};
    zarr_array *a = NULL;
    struct world w;
    zarr_error err;

    mortal_open(&w, &m);
    world_must(zarr_array_open(&a, w.store, "x", NULL, &err), &err, what);
    check_cells(a, e, what);
    if (lists && has_record(w.store) && n_findings(w.store) == 0)
        fail_msg("%s: verify does not report the record", what);
    if (clear) {
        world_must(zarr_array_clear_leftovers(a, NULL, NULL, &err), &err, what);
        if (lists && n_findings(w.store) != 0)
            fail_msg("%s: verify reports what was cleared", what);
        world_must(zarr_array_resize(a, large,
                                     &(const zarr_shape_options){
                                         .struct_size = sizeof(zarr_shape_options),
                                         .flags = ZARR_RESIZE_KEEP_CHUNKS},
                                     &err),
                   &err, what);
    } else {
        world_must(zarr_array_resize(a, large, NULL, &err), &err, what);
    }
    check_cells(a, e, what);
    if (has_record(w.store))
        fail_msg("%s: the record stays", what);
    if (lists && n_findings(w.store) != 0)
        fail_msg("%s: verify reports what was cleared", what);
    zarr_array_free(a);
    world_close(&w);
}

static void make_filled(int kind)
{
    int32_t data[ROWS * COLS];
    struct mortal m = {.lists = true, .counted = RECORD};
    zarr_array *a = NULL;
    struct world w;
    zarr_error err;

    mortal_empty();
    mortal_open(&w, &m);
    world_must(world_make(&w, "x", kind, &err), &err, "x");
    fill_cells(data, 0, ROWS, COLS);
    world_must(zarr_array_open(&a, w.store, "x", NULL, &err), &err, "x");
    world_must(box_io(a, true, ROWS, COLS, data, &err), &err, "x");
    zarr_array_free(a);
    world_close(&w);
}

/* ---- every operation ------------------------------------------------------------- */

struct scene {
    const char *name;
    struct step first; /* killed after its document was written; {0, 0}: none */
    struct step killed;
    /* shape whose elements have been kept and written, if the step did not publish its
     * shape, and if it did */
    uint64_t before[2], after[2];
};

static const struct scene scenes[] = {
    {"shrink", {{0, 0}}, {{5, 7}}, {12, 10}, {5, 7}},
    {"shrink to nothing", {{0, 0}}, {{1, 1}}, {12, 10}, {1, 1}},
    {"shrink one, grow one", {{0, 0}}, {{15, 4}}, {12, 10}, {12, 4}},
    {"append", {{0, 0}}, {{0, 0}}, {12, 10}, {17, 10}},
    {"grow", {{0, 0}}, {{15, 13}}, {12, 10}, {12, 10}},
    {"grow after a shrink", {{5, 7}}, {{12, 10}}, {5, 7}, {5, 7}},
    {"append after a shrink", {{5, 7}}, {{0, 0}}, {5, 7}, {10, 7}},
    {"shrink after a shrink", {{9, 7}}, {{3, 9}}, {9, 7}, {3, 7}},
    {"the same shape after a shrink", {{5, 7}}, {{5, 7}}, {5, 7}, {5, 7}},
    {"clear after a shrink", {{5, 7}}, {{0, 1}}, {5, 7}, {5, 7}},
};

/* Leaves the store as the first step does if it is killed right after it has published
 * its shape: nothing is cleared. */
static void interrupt(const struct scene *s, int kind, bool lists)
{
    uint64_t shape[2] = {0, 0};

    for (int64_t k = 1; memcmp(shape, s->first.shape, sizeof shape) != 0; k++) {
        struct mortal m = {.lists = lists, .counted = RECORD};
        struct world w;

        make_filled(kind);
        assert_true(run_killed(&s->first, k, true, lists));
        mortal_open(&w, &m);
        shape_now(w.store, shape);
        world_close(&w);
    }
}

static void kill_everywhere(const struct scene *s, int kind, bool lists)
{
    bool killed = true;

    if (s->first.shape[0])
        interrupt(s, kind, lists);
    else
        make_filled(kind);
    mortal_keep();
    for (int64_t k = 1; killed; k += ZR_FAIL_STEP(k)) {
        struct mortal m = {.lists = lists, .counted = RECORD};
        struct expected e = {{0}, {0}};
        struct world w;
        uint64_t shape[2];
        char what[128];

        mortal_restore();
        killed = run_killed(&s->killed, k, false, lists);
        snprintf(what, sizeof what, "%s, kind %d, %s, k %d", s->name, kind,
                 lists ? "lists" : "does not list", (int)k);
        mortal_open(&w, &m);
        shape_now(w.store, shape);
        world_close(&w);
        for (int d = 0; d < 2; d++) {
            const bool was = shape[0] == s->before[0] && shape[1] == s->before[1];

            e.all[d] = e.maybe[d] = killed && was ? s->before[d] : s->after[d];
        }
        grow_and_check(&e, lists, k % 2, what);
        assert_true(killed || k > 3);
    }
}

static void test_scene(void **state)
{
    static const int kinds[] = {3, 4, 6, 8, 2, 7};
    const struct scene *s = *state;
    const size_t n = s->first.shape[0] ? 4 : sizeof kinds / sizeof *kinds;

    for (size_t i = 0; i < n; i++)
        kill_everywhere(s, kinds[i], true);
    kill_everywhere(s, 3, false);
    kill_everywhere(s, 4, false);
}

/* ---- what it costs --------------------------------------------------------------- */

static void test_cost(void **state)
{
    const uint64_t larger[2] = {20, 20}, smaller[2] = {7, 7};
    zarr_array *a = NULL;
    zarr_error err;

    (void)state;
    for (int lists = 0; lists < 2; lists++) {
        struct mortal m = {.lists = lists, .counted = RECORD};
        struct world w;

        make_filled(3);
        mortal_open(&w, &m);
        world_must(zarr_array_open(&a, w.store, "x", NULL, &err), &err, "x");
        m.n_ops = 0;
        world_must(zarr_array_resize(a, larger, NULL, &err), &err, "grow");
        assert_int_equal(m.n_counted, 1); /* looks for the record */
        assert_int_equal(m.n_ops, 3);     /* and reads and writes the document */
        m.n_counted = 0;
        world_must(append_rows(a, 2, &err), &err, "append");
        assert_int_equal(m.n_counted, 3); /* looks, writes, erases */
        m.n_counted = 0;
        world_must(zarr_array_resize(a, smaller, NULL, &err), &err, "shrink");
        assert_int_equal(m.n_counted,
                         5); /* looks twice more, without the lock and with */
        zarr_array_free(a);
        world_close(&w);
    }
}

/* ---- stores that cannot list ------------------------------------------------------- */

/* There is a bound on the chunks that are tried. Beyond it nothing changes. */
static void test_huge(void **state)
{
    static const char text[] =
        "{\"zarrc_leftovers\": 1, \"extent\": [4000000000000, 10]}";
    const uint64_t huge[2] = {UINT64_C(4000000000000), 10}, small[2] = {5, 10},
                   other[2] = {20, 10};
    struct mortal m = {.lists = false};
    uint64_t shape[2];
    zarr_array *a = NULL;
    struct world w;
    zarr_error err;

    (void)state;
    make_filled(3);
    mortal_open(&w, &m);
    world_must(zarr_array_open(&a, w.store, "x", NULL, &err), &err, "x");
    world_must(zarr_array_resize(a, huge, NULL, &err), &err, "grow");
    assert_int_equal(zarr_array_resize(a, small, NULL, &err), ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "cannot list"));
    shape_now(w.store, shape);
    assert_true(shape[0] == huge[0]);
    assert_false(has_record(w.store));
    world_must(zarr_array_resize(
                   a, small,
                   &(const zarr_shape_options){.struct_size = sizeof(zarr_shape_options),
                                               .flags = ZARR_RESIZE_KEEP_CHUNKS},
                   &err),
               &err, "keep");
    world_must(zarr_store_put(w.store, RECORD, text, strlen(text), NULL, &err), &err,
               RECORD);
    assert_int_equal(zarr_array_resize(a, other, NULL, &err), ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, ".zarrc-leftovers"));
    world_must(zarr_store_put(w.store, RECORD, "{}", 2, NULL, &err), &err, RECORD);
    assert_int_equal(zarr_array_resize(a, other, NULL, &err), ZARR_ERR_UNSUPPORTED);
    shape_now(w.store, shape);
    assert_int_equal(shape[0], 5);
    assert_true(has_record(w.store));
    zarr_array_free(a);
    world_close(&w);
}

/* ---- random moments -------------------------------------------------------------- */

static void change_for_ever(void)
{
    static const uint64_t small[2] = {3, 7}, large[2] = {MOST - 8, 10};
    static int32_t data[MOST * MOST];
    struct world w;
    zarr_array *a = NULL;

    world_context(&w, 2);
    if (zarr_store_open(&w.store, w.ctx, mortal_folder, NULL, NULL) != ZARR_OK ||
        zarr_array_open(&a, w.store, "x", NULL, NULL) != ZARR_OK)
        _exit(2);
    for (;;) {
        uint64_t shape[2];

        if (zarr_array_resize(a, large, NULL, NULL) != ZARR_OK)
            _exit(3);
        memcpy(shape, zarr_array_shape(a), sizeof shape);
        fill_cells(data, 0, shape[0], shape[1]);
        if (box_io(a, true, shape[0], shape[1], data, NULL) != ZARR_OK ||
            append_rows(a, 5, NULL) != ZARR_OK ||
            zarr_array_resize(a, small, NULL, NULL) != ZARR_OK ||
            append_rows(a, 5, NULL) != ZARR_OK ||
            zarr_array_resize(a, small, NULL, NULL) != ZARR_OK)
            _exit(4);
    }
}

static void test_random(void **state)
{
    int n_records = 0;

    (void)state;
    for (int i = 0; i < n_random; i++) {
        struct mortal m = {.lists = true, .counted = RECORD};
        struct expected e = {{0}, {0}};
        struct world w;
        int status = 0;
        pid_t pid;

        make_filled(i % 2 ? 4 : 3);
        pid = fork();
        if (pid == 0)
            change_for_ever();
        assert_true(pid > 0);
        usleep((useconds_t)(3000 + i * 7919 % 30000));
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFSIGNALED(status))
            fail_msg("the process exits with %d", WEXITSTATUS(status));
        mortal_open(&w, &m);
        shape_now(w.store, e.maybe);
        n_records += has_record(w.store);
        world_close(&w);
        grow_and_check(&e, true, false, "random");
    }
    print_message("%d kills, %d records\n", n_random, n_records);
}

int main(int argc, char **argv)
{
    enum {
        N = sizeof scenes / sizeof *scenes
    };
    static struct CMUnitTest tests[N + 3];
    int rc;

    if (argc > 1)
        n_random = atoi(argv[1]);
    mortal_begin("leftover");
    for (int i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){scenes[i].name, test_scene, NULL, NULL,
                                       (void *)(uintptr_t)&scenes[i]};
    tests[N] = (struct CMUnitTest)cmocka_unit_test(test_cost);
    tests[N + 1] = (struct CMUnitTest)cmocka_unit_test(test_huge);
    tests[N + 2] = (struct CMUnitTest)cmocka_unit_test(test_random);
    rc = _cmocka_run_group_tests("leftover", tests, N + 3, NULL, NULL);
    mortal_end();
    return rc;
}
