/*
 * unit/check/test_verify.c - zarr_node_verify(): each kind of finding with its place,
 * counts, progress, cancelling, failures, and each allocation failing in turn.
 * zarr_array_summary(): cells against exact integers, options of C, and the same
 * failures; tests/python/test_summary.py has the rest.
 */
#include "check/summary_int.h"
#include "unit/array/array_test.h"
#include "sanitizers.h"

#include <math.h>
#include <stdbool.h>

enum {
    MOST = 32
};

/* A copy of the reported finding. */
struct told {
    uint32_t severity, what, kind;
    zarr_status status;
    int32_t ndim;
    char path[64], key[64], message[256];
    uint64_t chunk[2], origin[2];
};

struct ear {
    struct told item[MOST];
    int n, stop_at; /* stop after this many findings; 0: never */
    int n_progress, cancel_at;
    zarr_progress last;
    zarr_cancel *cancel;
};

static int hear(void *user, const zarr_finding *f)
{
    struct ear *e = user;
    struct told *t = &e->item[e->n++];

    assert_true(e->n <= MOST);
    assert_int_equal(f->struct_size, sizeof *f);
    *t = (struct told){f->severity, f->what, f->kind, f->status, f->ndim,
                       "",          "",      "",      {0},       {0}};
    snprintf(t->path, sizeof t->path, "%s", f->path);
    snprintf(t->key, sizeof t->key, "%s", f->key);
    snprintf(t->message, sizeof t->message, "%s", f->message);
    assert_true((f->what == ZARR_FINDING_CHUNK) == (f->block && f->origin));
    for (int d = 0; f->block && d < 2; d++) {
        t->chunk[d] = f->block[d];
        t->origin[d] = f->origin[d];
    }
    return e->stop_at && e->n >= e->stop_at;
}

static void see(void *user, const zarr_progress *now)
{
    struct ear *e = user;

    assert_int_equal(now->struct_size, sizeof *now);
    if (e->n_progress++) {
        assert_true(now->objects_done >= e->last.objects_done);
        assert_true(now->bytes_done >= e->last.bytes_done);
        assert_int_equal(now->objects_total, e->last.objects_total);
        assert_int_equal(now->bytes_total, e->last.bytes_total);
    }
    assert_true(now->objects_done <= now->objects_total);
    assert_true(now->bytes_done <= now->bytes_total);
    e->last = *now;
    if (e->cancel_at && e->n_progress >= e->cancel_at)
        zarr_cancel_set(e->cancel);
}

static zarr_verify_options options(struct ear *e)
{
    zarr_verify_options o = ZARR_VERIFY_OPTIONS_INIT;

    *e = (struct ear){.cancel = fresh_cancel()};
    o.tell = hear;
    o.progress = see;
    o.tell_user = o.progress_user = e;
    o.cancel = e->cancel;
    return o;
}

/* Creates a (v3), b (shards), v2 (format 2), g/deep (v3) and the groups / and g. They
 * have 4, 1, 4 and 1 chunk objects. */
static void fill_world(struct world *w)
{
    static const struct {
        const char *path;
        int kind;
        uint64_t rows, cols;
    } arrays[] = {{"a", 3, 4, 4}, {"b", 4, 4, 4}, {"v2", 2, 4, 4}, {"g/deep", 3, 2, 2}};

    for (size_t i = 0; i < 4; i++) {
        zarr_array *a =
            make_array(w, arrays[i].path, arrays[i].kind, arrays[i].rows, arrays[i].cols);

        fill_array(a);
        zarr_array_free(a);
    }
}

/* Truncates an object to `bytes`. */
static void truncate_object(struct world *w, const char *key, uint64_t bytes)
{
    char data[4096];
    uint64_t n = sizeof data;

    assert_ok(zarr_store_get(w->store, key, 0, data, &n, NULL, &terr));
    assert_true(bytes < n);
    assert_ok(zarr_store_put(w->store, key, data, bytes, NULL, &terr));
}

/* Flips bits of one byte. A negative `at` counts from the end. */
static void flip(struct world *w, const char *key, int64_t at)
{
    char data[4096];
    uint64_t n = sizeof data;

    assert_ok(zarr_store_get(w->store, key, 0, data, &n, NULL, &terr));
    data[at < 0 ? (int64_t)n + at : at] ^= 0x5a;
    assert_ok(zarr_store_put(w->store, key, data, n, NULL, &terr));
}

static const struct told *find(const struct ear *e, const char *key)
{
    static const struct told none;

    for (int i = 0; i < e->n; i++)
        if (strcmp(e->item[i].key, key) == 0)
            return &e->item[i];
    fail_msg("nothing about %s", key);
    return &none;
}

static void test_valid(void **state)
{
    (void)state;
    for (int sort = 0; sort < N_WORLDS; sort++) {
        zarr_verify_result r = ZARR_VERIFY_RESULT_INIT;
        struct world w;
        struct ear e;
        zarr_verify_options o = options(&e);

        world_open(&w, (enum world_sort)sort);
        fill_world(&w);
        assert_ok(zarr_node_verify(w.store, "", &r, &o, &terr));
        assert_int_equal(e.n, 0);
        assert_int_equal(r.n_errors + r.n_warnings, 0);
        assert_int_equal(r.n_arrays, 4);
        assert_int_equal(r.n_groups, 2);
        assert_int_equal(r.n_objects, 10);
        assert_true(r.n_bytes > 0);
        assert_int_equal(e.last.objects_done, 10);
        assert_int_equal(e.last.bytes_done, r.n_bytes);
        /* one array; a path that is not normalised; no callbacks */
        assert_ok(zarr_node_verify(w.store, "/g//deep/", &r, NULL, &terr));
        assert_int_equal(r.n_arrays, 1);
        assert_int_equal(r.n_objects, 1);
        assert_ok(zarr_node_verify(w.store, "g", NULL, NULL, &terr));
        world_close(&w);
    }
}

static void test_missing_chunks_are_legal(void **state)
{
    struct ear e;
    zarr_verify_options o = options(&e);
    zarr_verify_result r = ZARR_VERIFY_RESULT_INIT;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    fill_world(&w);
    assert_ok(zarr_store_erase(w.store, "a/c/0/1", NULL, &terr));
    /* A whole shard is damaged. */
    assert_ok(zarr_store_erase(w.store, "b/c/0/0", NULL, &terr));
    assert_ok(zarr_node_verify(w.store, "", &r, &o, &terr));
    assert_int_equal(e.n, 0);
    assert_int_equal(r.n_objects, 8);
    world_close(&w);
}

/* In a store without directories a key may be below a chunk's. It hides no chunk. */
static void test_keys_around_chunks(void **state)
{
    struct ear e;
    zarr_verify_options o = options(&e);
    zarr_verify_result r = ZARR_VERIFY_RESULT_INIT;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    fill_world(&w);
    put_text(&w, "a/c/0/0/x", "1");
    put_text(&w, "a/c/0/0/y", "1");
    put_text(&w, "a/c/0", "1");
    put_text(&w, "a/z", "1");
    assert_ok(zarr_node_verify(w.store, "", &r, &o, &terr));
    assert_int_equal(r.n_errors, 0);
    assert_int_equal(r.n_notes, 2);
    assert_non_null(strstr(find(&e, "a/z")->message, "3 objects, this one among them,"));
    assert_non_null(strstr(find(&e, "a/c/0")->message, "1 object, this one among them,"));
    world_close(&w);
}

static void test_chunks(void **state)
{
    struct ear e;
    zarr_verify_options o = options(&e);
    zarr_verify_result r = ZARR_VERIFY_RESULT_INIT;
    const struct told *t;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    fill_world(&w);
    truncate_object(&w, "a/c/1/0", 3);
    put_text(&w, "v2/0.1", "");
    truncate_object(&w, "g/deep/c/0/0", 0);
    assert_ok(zarr_node_verify(w.store, "", &r, &o, &terr));
    assert_int_equal(e.n, 3);
    assert_int_equal(r.n_errors, 3);
    assert_int_equal(r.n_warnings, 0);
    t = find(&e, "a/c/1/0");
    assert_int_equal(t->severity, ZARR_SEVERITY_ERROR);
    assert_int_equal(t->what, ZARR_FINDING_CHUNK);
    assert_int_equal(t->status, ZARR_ERR_CORRUPT);
    assert_int_equal(t->kind, ZARR_NODE_ARRAY);
    assert_string_equal(t->path, "a");
    assert_int_equal(t->ndim, 2);
    assert_int_equal(t->chunk[0], 1);
    assert_int_equal(t->chunk[1], 0);
    assert_int_equal(t->origin[0], 2);
    assert_int_equal(t->origin[1], 0);
    assert_null(strstr(t->message, "a/c/1/0"));
    assert_string_equal(find(&e, "v2/0.1")->path, "v2");
    assert_string_equal(find(&e, "g/deep/c/0/0")->path, "g/deep");
    /* metadata only; and only the checks that are asked for */
    o = options(&e);
    o.flags = ZARR_VERIFY_NO_DATA;
    assert_ok(zarr_node_verify(w.store, "", &r, &o, &terr));
    assert_int_equal(e.n, 0);
    assert_int_equal(r.n_objects, 10);
    o = options(&e);
    assert_ok(zarr_node_verify(w.store, "b", &r, &o, &terr));
    assert_int_equal(e.n, 0);
    world_close(&w);
}

/* Metadata with a level that encoders lack is read, and reported only on request. */
static void test_strict(void **state)
{
    static const char document[] =
        "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\"<i4\","
        "\"fill_value\":0,\"order\":\"C\",\"filters\":null,"
        "\"compressor\":{\"id\":\"zlib\",\"level\":99}}";
    zarr_verify_result r = ZARR_VERIFY_RESULT_INIT;
    zarr_verify_options o;
    struct world w;
    struct ear e;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    assert_ok(zarr_store_put(w.store, "odd/.zarray", document, sizeof document - 1, NULL,
                             &terr));
    o = options(&e);
    assert_ok(zarr_node_verify(w.store, "odd", &r, &o, &terr));
    assert_int_equal(e.n, 0);
    o = options(&e);
    o.flags = ZARR_VERIFY_STRICT;
    assert_ok(zarr_node_verify(w.store, "odd", &r, &o, &terr));
    assert_int_equal(e.n, 1);
    assert_int_equal(r.n_warnings, 1);
    assert_int_equal(e.item[0].what, ZARR_FINDING_STRICT);
    assert_int_equal(e.item[0].severity, ZARR_SEVERITY_WARNING);
    assert_int_equal(e.item[0].status, ZARR_ERR_INVALID);
    assert_string_equal(e.item[0].path, "odd");
    assert_non_null(strstr(e.item[0].message, "compressor: zlib: level is 99"));
    o.flags = 8;
    assert_int_equal(zarr_node_verify(w.store, "odd", &r, &o, &terr),
                     ZARR_ERR_UNSUPPORTED);
    world_close(&w);
}

static void test_shards(void **state)
{
    struct ear e;
    zarr_verify_options o = options(&e);
    const struct told *t;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    fill_world(&w);
    flip(&w, "b/c/0/0", 2); /* the first inner chunk is damaged */
    assert_ok(zarr_node_verify(w.store, "", NULL, &o, &terr));
    assert_int_equal(e.n, 1);
    t = find(&e, "b/c/0/0");
    assert_non_null(strstr(t->message, "chunk [0,0]"));
    assert_int_equal(t->origin[0] + t->origin[1], 0);
    flip(&w, "b/c/0/0", 2);
    flip(&w, "b/c/0/0", -1); /* the checksum of the index is wrong */
    o = options(&e);
    assert_ok(zarr_node_verify(w.store, "", NULL, &o, &terr));
    assert_int_equal(e.n, 1);
    assert_int_equal(find(&e, "b/c/0/0")->status, ZARR_ERR_CORRUPT);
    put_text(&w, "b/c/0/0", "short");
    o = options(&e);
    assert_ok(zarr_node_verify(w.store, "", NULL, &o, &terr));
    assert_int_equal(e.n, 1);
    world_close(&w);
}

static void test_nodes(void **state)
{
    struct ear e;
    zarr_verify_options o = options(&e);
    zarr_verify_result r = ZARR_VERIFY_RESULT_INIT;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    fill_world(&w);
    put_text(&w, "a/zarr.json", "{\"zarr_format\": 3");
    put_text(&w, "b/zarr.json",
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4,4],\"data_type\":"
             "\"int32\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":"
             "{\"chunk_shape\":[4,4]}},\"chunk_key_encoding\":{\"name\":\"default\"},"
             "\"fill_value\":-1,\"codecs\":[{\"name\":\"bytes\",\"configuration\":"
             "{\"endian\":\"little\"}},{\"name\":\"snake\"}]}");
    assert_ok(zarr_node_verify(w.store, "", &r, &o, &terr));
    assert_int_equal(e.n, 2);
    assert_int_equal(find(&e, "a")->what, ZARR_FINDING_NODE);
    assert_int_equal(find(&e, "a")->kind, ZARR_NODE_NONE);
    assert_int_equal(find(&e, "a")->severity, ZARR_SEVERITY_ERROR);
    assert_int_equal(find(&e, "b")->status, ZARR_ERR_UNSUPPORTED);
    assert_int_equal(find(&e, "b")->severity, ZARR_SEVERITY_WARNING);
    assert_int_equal(r.n_errors, 1);
    assert_int_equal(r.n_warnings, 1);
    /* the node itself is broken */
    o = options(&e);
    assert_ok(zarr_node_verify(w.store, "a", &r, &o, &terr));
    assert_int_equal(e.n, 1);
    assert_status(zarr_node_verify(w.store, "none", &r, &o, &terr), ZARR_ERR_NOT_FOUND);
    assert_says("/none");
    world_close(&w);
}

static void test_consolidated(void **state)
{
    struct ear e;
    zarr_verify_options o = options(&e);
    zarr_verify_result r = ZARR_VERIFY_RESULT_INIT;
    const uint64_t shape[2] = {2, 4};
    zarr_array *a = NULL;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    fill_world(&w);
    assert_ok(consolidate_at(w.store, "", NULL, &terr));
    assert_ok(zarr_node_verify(w.store, "", &r, &o, &terr));
    assert_int_equal(e.n, 0);
    assert_ok(zarr_array_open(&a, w.store, "a", NULL, &terr));
    assert_ok(zarr_array_resize(a, shape, NULL, &terr));
    zarr_array_free(a);
    o = options(&e);
    assert_ok(zarr_node_verify(w.store, "", &r, &o, &terr));
    assert_int_equal(e.n, 1);
    assert_int_equal(e.item[0].what, ZARR_FINDING_CONSOLIDATED);
    assert_int_equal(e.item[0].severity, ZARR_SEVERITY_WARNING);
    assert_string_equal(e.item[0].key, "zarr.json");
    assert_non_null(strstr(e.item[0].message, "/a"));
    assert_int_equal(r.n_warnings, 1);
    world_close(&w);
}

static void test_stop_and_cancel(void **state)
{
    struct ear e;
    zarr_verify_options o = options(&e);
    zarr_verify_result r = ZARR_VERIFY_RESULT_INIT;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    fill_world(&w);
    put_text(&w, "a/c/0/0", "");
    put_text(&w, "v2/0.1", "");
    e.stop_at = 1;
    assert_ok(zarr_node_verify(w.store, "", &r, &o, &terr));
    assert_int_equal(e.n, 1);
    assert_int_equal(r.n_errors, 1);
    o = options(&e);
    zarr_cancel_set(e.cancel);
    assert_status(zarr_node_verify(w.store, "", &r, &o, &terr), ZARR_ERR_CANCELLED);
    assert_int_equal(e.n, 0);
    o = options(&e);
    o.max_threads = 1;
    e.cancel_at = 3; /* stopped in the middle of an array */
    assert_status(zarr_node_verify(w.store, "", &r, &o, &terr), ZARR_ERR_CANCELLED);
    assert_true(e.last.objects_done > 0 && e.last.objects_done < e.last.objects_total);
    assert_int_equal(r.n_objects, 10); /* the counts up to there */
    world_close(&w);
}

static void test_wrong_options(void **state)
{
    zarr_verify_options o = ZARR_VERIFY_OPTIONS_INIT;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    fill_world(&w);
    o.flags = 64;
    assert_status(zarr_node_verify(w.store, "", NULL, &o, &terr), ZARR_ERR_UNSUPPORTED);
    o.flags = 0;
    o.struct_size = 4;
    assert_status(zarr_node_verify(w.store, "", NULL, &o, &terr), ZARR_ERR_ABI);
    assert_status(zarr_node_verify(w.store, "a/../b", NULL, NULL, &terr),
                  ZARR_ERR_INVALID);
    world_close(&w);
}

/* The k-th allocation fails, once and then with all later ones: NO_MEMORY, or all
 * findings. */
static void test_no_memory(void **state)
{
    (void)state;
    for (int forever = 0; forever < 2; forever++) {
        bool reached = true;

        for (int64_t k = 1; reached; k += ZR_FAIL_STEP(k)) {
            zarr_verify_result r = ZARR_VERIFY_RESULT_INIT;
            struct world w;
            struct ear e;
            zarr_verify_options o = options(&e);
            zarr_status st;

            o.max_threads = 1;
            world_open(&w, WORLD_MEMORY);
            fill_world(&w);
            put_text(&w, "v2/0.1", "");
            put_text(&w, "g/deep/zarr.json", "{");
            zarr_context_trim(w.ctx);
            w.forever = forever;
            atomic_store(&w.fail_at, k);
            st = zarr_node_verify(w.store, "", &r, &o, &terr);
            reached =
                forever ? atomic_load(&w.fail_at) == 1 : atomic_load(&w.fail_at) == 0;
            atomic_store(&w.fail_at, 0);
            if (st != ZARR_OK)
                assert_int_equal(st, ZARR_ERR_NO_MEMORY);
            else
                assert_int_equal(r.n_errors, 2);
            world_close(&w);
        }
    }
}

/* ---- summary ---------------------------------------------------------------------- */

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed ^ *seed >> 31;
}

/* Sums and extremes of n numbers, in one row and in columns, against plain loops. */
static void check_cells(const zarr_dtype *type, uint64_t seed, size_t n)
{
    static int64_t data[10000];
    struct zr_summary_cell row = {.n = 0}, column[8] = {{.n = 0}}, joined = {.n = 0};
    const zarr_summary_options o = ZARR_SUMMARY_OPTIONS_INIT;
    const struct zr_summary_block whole = {
        .src = (const uint8_t *)data, .n = n, .n_steps = 1};
    const struct zr_summary_block c = {.src = (const uint8_t *)data,
                                       .n = 8,
                                       .n_steps = n / 8,
                                       .cell_stride = 1,
                                       .step_bytes = 8 * sizeof *data};
    int64_t min = INT64_MAX, max = INT64_MIN;
    struct zr_summary_type t;
    zr_int128 sum = 0;

    for (size_t i = 0; i < n; i++) {
        data[i] = (int64_t)(draw(&seed) >> seed % 60);
        sum += data[i];
        min = ZR_MIN(min, data[i]);
        max = ZR_MAX(max, data[i]);
    }
    assert_ok(zr_summary_type_init(&t, type, &o, &terr));
    zr_summary_add(&t, &row, &whole);
    zr_summary_add(&t, column, &c);
    for (int i = 0; i < 8; i++)
        zr_summary_join(&t, &joined, &column[i]);
    assert_true(row.sum.integer == sum && joined.sum.integer == sum);
    assert_true(row.min.integer == min && joined.max.integer == max);
    assert_true(row.n == n && joined.n == n);
    assert_true(fabs(row.squares - joined.squares) <= 1e-12 * row.squares);
}

static void test_cells(void **state)
{
    const zarr_dtype *type;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    assert_ok(zarr_dtype_find(&type, w.ctx, "int64", &terr));
    for (size_t n = 8; n <= 10000; n = n * 3 / 8 * 8)
        for (uint64_t seed = 0; seed < 5; seed++)
            check_cells(type, seed, n);
    world_close(&w);
}

/* Bounds of what is asked for, in the words of the message. */
static void test_summary_options(void **state)
{
    const int32_t over[] = {0, 0}, beyond[] = {2};
    const double weights[] = {1, 2, 3, -1}, ranks[] = {2};
    zarr_summary_options o[6];
    zarr_summary *s = NULL;
    zarr_array *a;
    struct world w;

    (void)state;
    for (size_t i = 0; i < 6; i++)
        o[i] = (zarr_summary_options)ZARR_SUMMARY_OPTIONS_INIT;
    o[0].over = over;
    o[0].n_over = 2;
    o[1].over = beyond;
    o[1].n_over = 1;
    o[2].weights = weights;
    o[2].n_weights = 3;
    o[3].weights = weights;
    o[3].n_weights = 4;
    o[4].quantiles = ranks;
    o[4].n_quantiles = 1;
    o[5].flags = 1;
    world_open(&w, WORLD_MEMORY);
    a = make_array(&w, "a", 3, 4, 5);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(zarr_array_summary(&s, a, NULL, &o[i], &terr), ZARR_ERR_INVALID);
    assert_null(s);
    o[3].weights_dim = 2;
    assert_int_equal(zarr_array_summary(&s, a, NULL, &o[3], &terr), ZARR_ERR_INVALID);
    zarr_summary_free(NULL);
    zarr_array_free(a);
    world_close(&w);
}

static void check_summary(zarr_array *a, const zarr_summary_options *o)
{
    zarr_summary *s = NULL;
    const zarr_status st = zarr_array_summary(&s, a, NULL, o, &terr);

    if (st != ZARR_OK) {
        assert_int_equal(st, ZARR_ERR_NO_MEMORY);
        assert_null(s);
        return;
    }
    assert_int_equal(s->n_places, 1);
    assert_int_equal(s->count[0], 6 * 7);
    assert_int_equal(((const int32_t *)s->max)[0], 5006);
    assert_true(s->mean[0] == 2503 && s->quantiles[0] == 2503);
    assert_int_equal(s->bins[0] + s->bins[1] + s->bins[2], 6 * 7);
    zarr_summary_free(s);
}

static void test_summary_no_memory(void **state)
{
    const double weights[] = {1, 1, 1, 1, 1, 1}, rank = 0.5;
    zarr_summary_options o = ZARR_SUMMARY_OPTIONS_INIT;
    int64_t k;

    (void)state;
    o.weights = weights;
    o.n_weights = 6;
    o.n_bins = 3;
    o.quantiles = &rank;
    o.n_quantiles = 1;
    for (int kind = 2; kind <= 4; kind++) {
        bool reached = true;

        for (k = 1; reached; k += ZR_FAIL_STEP(k)) {
            struct world w;
            zarr_array *a;

            world_open(&w, WORLD_MEMORY);
            a = make_array(&w, "a", kind, 6, 7);
            fill_array(a);
            zarr_context_trim(w.ctx);
            atomic_store(&w.fail_at, k);
            check_summary(a, &o);
            reached = atomic_load(&w.fail_at) == 0;
            atomic_store(&w.fail_at, 0);
            zarr_array_free(a);
            world_close(&w);
        }
        assert_true(k > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_missing_chunks_are_legal),
        cmocka_unit_test(test_keys_around_chunks),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_strict),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_consolidated),
        cmocka_unit_test(test_stop_and_cancel),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_summary_options),
        cmocka_unit_test(test_summary_no_memory),
    };

    return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
