/*
 * unit/array/test_overtaken_write.c - another program replaces or deletes an array while
 * a call writes it. The call stops before its next wave. It removes the objects that it
 * made since the last check that passed, but no object that replaced an older value or
 * that another writer has replaced since, and says how many objects of its own remain. A
 * look at the document that fails for another reason does not stop a write.
 */
#include "unit/conditional_caps.h"
#include "hook_store.h"

enum {
    LENGTH = 16,
    CHUNK = 4,
    N_CHUNKS = LENGTH / CHUNK
};

enum chunk_place {
    IN_MEMORY,
    IN_FILES,
    IN_PLUGIN, /* a store that cannot tell whether a key was new */
    N_PLACES
};

static struct world disk; /* its folder */
static zarr_store *chunks;
static int n_looks, act_at; /* at the document */
static void (*act)(void);

/* ---- what the other program does -------------------------------------------------- */

static void replace_array(void)
{
    const char *old = zarr_array_metadata(mine), *at = strstr(old, "int32");
    char text[4096];

    assert_non_null(at);
    snprintf(text, sizeof text, "%.*suint32%s", (int)(at - old), old, at + 5);
    assert_ok(zarr_store_put(other, "a/zarr.json", text, strlen(text), NULL, &terr));
}

static void replace_and_write(void)
{
    replace_array();
    assert_ok(zarr_store_put(chunks, "a/c/1", "a rival", 7, NULL, &terr));
}

static void delete_array(void)
{
    assert_ok(zarr_store_erase(other, "a/zarr.json", NULL, &terr));
}

static void on_look(const zarr_store_op *op, int done)
{
    if (done || strcmp(op->key, "a/zarr.json") != 0 ||
        (op->verb != ZARR_STORE_GET && op->verb != ZARR_STORE_STAT))
        return;
    if (++n_looks == act_at)
        act();
}

/* ---- one trial --------------------------------------------------------------------- */

static void open_place(enum chunk_place place)
{
    zarr_array_open_options opts = {.struct_size = sizeof opts};

    begin(CAPS_CONDITIONAL, 3, LENGTH, CHUNK);
    world_begin(&disk, WORLD_LOCAL);
    if (place != IN_PLUGIN) {
        assert_ok(zarr_store_open(
            &chunks, world.ctx, place == IN_MEMORY ? "memory:" : disk.dir, NULL, &terr));
        zarr_array_free(mine);
        opts.chunk_store = chunks;
        assert_ok(zarr_array_open(&mine, world.store, "a", &opts, &terr));
    }
}

static void close_place(void)
{
    if (mine) {
        zarr_array_free(mine);
        mine = NULL;
    }
    zarr_store_free(chunks);
    chunks = NULL;
    end();
    world_close(&disk);
}

/* Writes the elements from `first`, in waves of one chunk. */
static zarr_status write_from(uint64_t first, const char *pipeline, int32_t value)
{
    const uint64_t n = LENGTH - first;
    const uint64_t shape = (uint64_t)n;
    const zarr_io_options o = {.struct_size = sizeof o,
                               .max_threads = 1,
                               .tuning = TUNING(.pipeline = pipeline, .wave_bytes = 1)};
    int32_t data[LENGTH];
    zarr_selection *sel = NULL;
    zarr_tensor t;
    zarr_status st;

    for (int i = 0; i < LENGTH; i++)
        data[i] = value;
    zarr_tensor_host(&t, NULL, data, n * sizeof *data, 1, &shape);
    assert_ok(zarr_selection_box(&sel, 1, zarr_array_shape(mine), &first, &n, &terr));
    st = zarr_array_write(mine, sel, &t, &o, &terr);
    zarr_selection_free(sel);
    return st;
}

/* The first element of a chunk; 0: it is not stored. */
static int32_t first_stored(int chunk)
{
    char key[8];
    int32_t value[CHUNK] = {0};
    uint64_t bytes = sizeof value;

    snprintf(key, sizeof key, "a/c/%d", chunk);
    if (zarr_store_get(chunks ? chunks : other, key, 0, value, &bytes, NULL, &terr) ==
        ZARR_ERR_NOT_FOUND)
        return 0;
    return value[0];
}

static void test_overtaken(void **state)
{
    static const char *const pipelines[] = {"waves", "serial"};
    static const struct {
        void (*act)(void);
        int at;  /* look 1 is before the first wave, look 5 is the last */
        int old; /* whether the chunks exist before */
        zarr_status status;
        const char *says, *plugin_says;
    } trials[] = {
        {replace_array, 3, 0, ZARR_ERR_CONFLICT, "0 objects of this call remain in the",
         "1 object of this call remains in the"},
        {replace_array, 5, 0, ZARR_ERR_CONFLICT, "0 objects of this call remain in the",
         "1 object of this call remains in the"},
        {replace_array, 3, 1, ZARR_ERR_CONFLICT, "1 object of this call remains in the",
         "1 object of this call remains in the"},
        {replace_and_write, 3, 0, ZARR_ERR_CONFLICT,
         "0 objects of this call remain in the", NULL},
        {delete_array, 3, 0, ZARR_ERR_NOT_FOUND, "no longer exists",
         "1 object of this call remains there"},
        {delete_array, 3, 1, ZARR_ERR_NOT_FOUND, "1 object of this call remains there",
         "1 object of this call remains there"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        for (int k = 0; k < 2 * N_PLACES; k++) {
            const enum chunk_place place = (enum chunk_place)(k / 2);
            const int last = trials[i].at - 2; /* the chunk before that look */
            const char *says =
                place == IN_PLUGIN ? trials[i].plugin_says : trials[i].says;

            if (!says)
                continue;
            open_place(place);
            if (trials[i].old)
                assert_ok(write_from(0, NULL, 7));
            n_looks = 0;
            act_at = trials[i].at;
            act = trials[i].act;
            hook = on_look;
            assert_status(write_from(0, pipelines[k % 2], 8), trials[i].status);
            assert_says(says);
            unhook();
            for (int c = 0; c < last; c++)
                assert_int_equal(first_stored(c), 8); /* the old array's */
            if (trials[i].act == replace_and_write)
                assert_memory_equal((int32_t[]){first_stored(1)}, "a ri", 4);
            else
                assert_int_equal(first_stored(last),
                                 trials[i].old || place == IN_PLUGIN ? 8 : 0);
            for (int c = last + 1; c < N_CHUNKS; c++)
                assert_int_equal(first_stored(c), trials[i].old ? 7 : 0);
            close_place();
        }
}

/* A unit that is written in part is checked under its lock. */
static void test_under_the_lock(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        open_place(IN_FILES);
        assert_ok(write_from(0, NULL, 7));
        n_looks = 0;
        act_at = 2;
        act = replace_array;
        hook = on_look;
        assert_status(write_from(1, i ? "serial" : NULL, 8), ZARR_ERR_CONFLICT);
        assert_says("0 objects of this call remain in the new array");
        unhook();
        for (int c = 0; c < N_CHUNKS; c++)
            assert_int_equal(first_stored(c), 7);
        close_place();
    }
}

/* ---- looks that fail --------------------------------------------------------------- */

static int n_gets, n_stats, fail_at; /* looks at the document */
static zarr_status fail_with;

static zarr_status at_document(const zarr_store_op *op)
{
    if (strcmp(op->key, "a/zarr.json") != 0)
        return ZARR_OK;
    n_gets += op->verb == ZARR_STORE_GET;
    n_stats += op->verb == ZARR_STORE_STAT;
    return n_gets + n_stats == fail_at ? fail_with : ZARR_OK;
}

static zarr_status write_failing(enum chunk_place place, int at, zarr_status with,
                                 const char *pipeline)
{
    zarr_status st;

    open_place(place);
    n_gets = n_stats = 0;
    fail_at = at;
    fail_with = with;
    fault_hook = at_document;
    st = write_from(0, pipeline, 8);
    unhook();
    return st;
}

static void test_failing_looks(void **state)
{
    static const zarr_status with[] = {ZARR_ERR_IO, ZARR_ERR_CONFLICT, ZARR_ERR_LIMIT};

    (void)state;
    for (size_t k = 0; k < sizeof with / sizeof *with; k++)
        for (int at = 1; at <= N_CHUNKS + 1; at++)
            for (int p = 0; p < 2 * N_PLACES; p++) {
                const zarr_status st = write_failing((enum chunk_place)(p / 2), at,
                                                     with[k], p % 2 ? "serial" : NULL);
                const int first = at == 1, last = at == N_CHUNKS + 1;

                if (first || last)
                    assert_status(st,
                                  with[k] == ZARR_ERR_CONFLICT ? ZARR_ERR_IO : with[k]);
                else
                    assert_ok(st);
                if (last)
                    assert_says("the elements are stored, but it is not known whether");
                for (int c = 0; c < N_CHUNKS; c++)
                    assert_int_equal(first_stored(c), first ? 0 : 8);
                close_place();
            }
}

/* An array that this library cannot open has taken the place. */
static void make_unknown(void)
{
    const char *old = zarr_array_metadata(mine), *at = strstr(old, "int32");
    char text[4096];

    assert_non_null(at);
    snprintf(text, sizeof text, "%.*sr_of_another%s", (int)(at - old), old, at + 5);
    assert_ok(zarr_store_put(other, "a/zarr.json", text, strlen(text), NULL, &terr));
}

static void test_unknown_array(void **state)
{
    (void)state;
    open_place(IN_FILES);
    n_looks = 0;
    act_at = 3;
    act = make_unknown;
    hook = on_look;
    assert_status(write_from(0, NULL, 8), ZARR_ERR_CONFLICT);
    assert_says("there is another array now");
    assert_says("0 objects of this call remain in the new array");
    unhook();
    assert_int_equal(first_stored(0), 8);
    for (int c = 1; c < N_CHUNKS; c++)
        assert_int_equal(first_stored(c), 0);
    close_place();
}

/* Where the store has versions, only the first look reads the document. */
static void test_cost_of_looks(void **state)
{
    (void)state;
    assert_ok(write_failing(IN_PLUGIN, 0, ZARR_OK, NULL));
    assert_int_equal(n_gets, 1);
    assert_int_equal(n_stats, N_CHUNKS);
    close_place();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overtaken),     cmocka_unit_test(test_under_the_lock),
        cmocka_unit_test(test_failing_looks), cmocka_unit_test(test_unknown_array),
        cmocka_unit_test(test_cost_of_looks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
