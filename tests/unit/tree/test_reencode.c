/*
 * unit/tree/test_reencode.c - zarr_node_reencode(): elements and documents arrive,
 * messages name what prevents a call, interrupted calls are resumed and give the same
 * bytes, progress, cancelling, and each allocation failing in turn.
 */
#include "unit/array/array_test.h"
#include "sanitizers.h"

#include <stdbool.h>

struct ear {
    uint64_t chunk, shard; /* new edges; 0: chosen by the library, no shards */
    bool wrong;            /* create arrays of another shape */
    bool crops;            /* two rows of three elements, by crop_read() */
    zarr_store *replaced;  /* make() puts an array of one dimension at src/x; or NULL */
    int n_made, n_progress, cancel_at;
    zarr_progress last;
    zarr_cancel *cancel;
    zarr_array *victim; /* shrunk at the progress call `shrink_at`; may be NULL */
    int shrink_at;
};

static zarr_status make(void *user, zarr_array *source, zarr_store *target,
                        const char *path, zarr_error *err)
{
    static const uint64_t small[2] = {2, 3};
    struct ear *e = user;
    const uint64_t *shape = e->crops ? small : zarr_array_shape(source);
    const uint64_t chunks[2] = {e->chunk, e->chunk}, shards[2] = {e->shard, e->shard};
    const uint64_t other[2] = {shape[0] + 1, shape[1]};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *made = NULL;
    zarr_status st;

    e->n_made++;
    spec.ndim = 2;
    spec.shape = e->wrong ? other : shape;
    spec.chunk_shape = chunks;
    spec.shard_shape = e->shard ? shards : NULL;
    spec.data_type = e->crops ? "int8" : "int32";
    spec.fill_value = "-1";
    st = zarr_array_create(&made, target, path, &spec, NULL, err);
    zarr_array_free(made);
    if (e->replaced) {
        spec.ndim = 1;
        spec.flags = ZARR_SPEC_OVERWRITE;
        spec.shard_shape = NULL;
        assert_ok(zarr_array_create(&made, e->replaced, "src/x", &spec, NULL, &terr));
        zarr_array_free(made);
    }
    return st;
}

static void see(void *user, const zarr_progress *now)
{
    static const uint64_t smaller[2] = {3, 11};
    struct ear *e = user;

    if (e->victim && e->n_progress + 1 == e->shrink_at)
        assert_ok(zarr_array_resize(e->victim, smaller, NULL, &terr));
    if (e->n_progress++ && now->flags == e->last.flags) {
        assert_true(now->bytes_done >= e->last.bytes_done);
        assert_int_equal(now->bytes_total, e->last.bytes_total);
    }
    assert_true(now->bytes_done <= now->bytes_total);
    assert_true(now->bytes_skipped <= now->bytes_done);
    e->last = *now;
    if (e->cancel_at && e->n_progress >= e->cancel_at)
        zarr_cancel_set(e->cancel);
}

/* Rows 5 and 2, columns 10, 9 and 8, each as one byte. */
static zarr_status crop_read(void *user, zarr_array *source, const uint64_t *start,
                             const zarr_tensor *dst, const zarr_io_options *io,
                             zarr_error *err)
{
    int32_t all[99];
    zarr_tensor t;
    zarr_status st;

    (void)user;
    assert_int_equal(dst->ndim, 2);
    assert_int_equal(zarr_dtype_item_bytes(dst->dtype), 1);
    zarr_tensor_host(&t, NULL, all, 0, 2, zarr_array_shape(source));
    st = zarr_array_read(source, NULL, &t, io, err);
    for (uint64_t i = 0; i < dst->shape[0] && st == ZARR_OK; i++)
        for (uint64_t k = 0; k < dst->shape[1]; k++)
            ((int8_t *)dst->data)[i * dst->shape[1] + k] =
                (int8_t)all[(start[0] + i ? 32u : 65u) - start[1] - k];
    return st;
}

static zarr_reencode_options options(struct ear *e, uint64_t chunk, uint64_t shard)
{
    zarr_reencode_options o = ZARR_REENCODE_OPTIONS_INIT;

    *e = (struct ear){.chunk = chunk, .shard = shard, .cancel = fresh_cancel()};
    o.make = make;
    o.progress = see;
    o.make_user = o.progress_user = e;
    o.cancel = e->cancel;
    return o;
}

/* Creates in src: a group with x, g/s (shards) and g/y. */
static void make_source(struct world *w)
{
    static const struct {
        const char *path;
        int kind;
    } arrays[] = {{"src/x", 3}, {"src/g/s", 4}, {"src/g/y", 3}};
    zarr_group *group = NULL;

    assert_ok(group_create(&group, w->store, "src", 3, "{\"a\": [1, 2]}", 0, &terr));
    zarr_group_free(group);
    for (size_t i = 0; i < 3; i++) {
        zarr_array *a = make_array(w, arrays[i].path, arrays[i].kind, 9, 11);

        fill_array(a);
        zarr_array_free(a);
    }
}

static void assert_equal_trees(struct world *w, const char *a, const char *b)
{
    zarr_diff_result r = ZARR_DIFF_RESULT_INIT;

    assert_ok(zarr_node_diff(w->store, a, w->store, b, &r, NULL, &terr));
    assert_int_equal(r.n_different, 0);
    assert_int_equal(r.n_elements, 3 * 99);
}

/* A checksum of all objects below `path`, which depends on their order. */
static int add_object(void *user, const zarr_store_item *item)
{
    uint64_t *sum = ((uint64_t **)user)[0];
    struct world *w = ((struct world **)user)[1];
    unsigned char data[8192];
    uint64_t bytes = sizeof data, hash = 14695981039346656037u;

    assert_ok(zarr_store_get(w->store, item->key, 0, data, &bytes, NULL, &terr));
    for (uint64_t i = 0; i < bytes; i++)
        hash = (hash ^ data[i]) * 1099511628211u;
    for (const char *k = strchr(item->key, '/'); *k; k++)
        hash = (hash ^ (unsigned char)*k) * 1099511628211u;
    *sum += hash;
    return 0;
}

static uint64_t sum_objects(struct world *w, const char *path)
{
    uint64_t sum = 0;
    void *user[2] = {&sum, w};

    assert_ok(zarr_store_list(w->store, path, ZARR_LIST_RECURSIVE, add_object, user, NULL,
                              &terr));
    return sum;
}

static void test_hierarchy(void **state)
{
    (void)state;
    for (int sort = 0; sort < N_WORLDS; sort++) {
        zarr_reencode_result r = ZARR_REENCODE_RESULT_INIT;
        struct world w;
        struct ear e;
        zarr_reencode_options o = options(&e, 3, 6);

        world_open(&w, (enum world_sort)sort);
        make_source(&w);
        o.flags = ZARR_REENCODE_VERIFY;
        assert_ok(zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr));
        assert_int_equal(r.state, ZARR_REENCODE_NEW);
        assert_int_equal(r.n_arrays, 3);
        assert_int_equal(r.n_groups, 2);
        assert_int_equal(r.bytes, 3 * 99 * 4);
        assert_int_equal(r.objects_written, 3 * 4);
        assert_int_equal(r.verified, 1);
        assert_int_equal(e.n_made, 3);
        assert_int_equal(e.last.flags, ZARR_PROGRESS_COMPARING);
        assert_int_equal(e.last.bytes_done, e.last.bytes_total);
        assert_equal_trees(&w, "src", "dst");
        assert_null(get_text(&w, "dst/.zarrc-job"));
        /* one array, unchanged */
        assert_ok(
            zarr_node_reencode(w.store, "dst/g/s", w.store, "copy", NULL, NULL, &terr));
        assert_int_equal(n_keys(&w, "copy"), n_keys(&w, "dst/g/s"));
        world_close(&w);
    }
}

static void test_in_the_way(void **state)
{
    zarr_reencode_result r = ZARR_REENCODE_RESULT_INIT;
    struct ear e;
    zarr_reencode_options o = options(&e, 3, 0);
    zarr_copy_options copy = ZARR_COPY_OPTIONS_INIT;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_source(&w);
    put_text(&w, "files/notes.txt", "keep me");
    assert_status(zarr_node_reencode(w.store, "src", w.store, "files", &r, &o, &terr),
                  ZARR_ERR_EXISTS);
    assert_int_equal(r.found, ZARR_REENCODE_FOUND_FILES);
    o.flags = ZARR_REENCODE_OVERWRITE;
    assert_status(zarr_node_reencode(w.store, "src", w.store, "files", &r, &o, &terr),
                  ZARR_ERR_EXISTS);
    assert_string_equal(get_text(&w, "files/notes.txt"), "keep me");
    o.flags = 0;
    zarr_array_free(make_array(&w, "there", 3, 2, 2));
    assert_status(zarr_node_reencode(w.store, "src", w.store, "there", &r, &o, &terr),
                  ZARR_ERR_EXISTS);
    assert_int_equal(r.found, ZARR_REENCODE_FOUND_NODE);
    o.flags = ZARR_REENCODE_RESUME;
    assert_status(zarr_node_reencode(w.store, "src", w.store, "there", &r, &o, &terr),
                  ZARR_ERR_EXISTS);
    assert_int_equal(r.found, ZARR_REENCODE_FOUND_NODE);
    o = options(&e, 3, 0);
    o.flags = ZARR_REENCODE_OVERWRITE;
    assert_ok(zarr_node_reencode(w.store, "src", w.store, "there", &r, &o, &terr));
    assert_equal_trees(&w, "src", "there");
    o = options(&e, 3, 0);
    o.flags = ZARR_REENCODE_RESUME;
    assert_ok(zarr_node_reencode(w.store, "src", w.store, "there", &r, &o, &terr));
    assert_int_equal(r.state, ZARR_REENCODE_COMPLETE);
    assert_int_equal(r.objects_written, 0);
    assert_status(zarr_node_reencode(w.store, "src", w.store, "src/g/in", &r, &o, &terr),
                  ZARR_ERR_INVALID);
    assert_says("inside");
    /* found before the work, and before what is there goes */
    zarr_array_free(make_array(&w, "array", 3, 2, 2));
    put_text(&w, "array/k/zarr.json", "{");
    for (int k = 0; k < 2; k++) {
        const char *to = k ? "array/k" : "array/new";

        o.flags = ZARR_REENCODE_OVERWRITE;
        assert_status(zarr_node_reencode(w.store, "src", w.store, to, &r, &o, &terr),
                      ZARR_ERR_INVALID);
        assert_says("/array is an array");
        copy.flags = ZARR_COPY_OVERWRITE;
        assert_status(zarr_node_copy(w.store, "src", w.store, to, &copy, &terr),
                      ZARR_ERR_INVALID);
        assert_int_equal(n_keys(&w, to), k);
    }
    world_close(&w);
}

/* Cancelled at each step and resumed each time: the bytes equal those of one call. */
static void test_resume(void **state)
{
    uint64_t whole = 0;
    bool cut = true;

    (void)state;
    for (int at = 0; cut; at++) {
        zarr_reencode_result r = ZARR_REENCODE_RESULT_INIT;
        struct world w;
        struct ear e;
        zarr_reencode_options o = options(&e, 2, 4);
        zarr_status st;

        world_open(&w, WORLD_MEMORY);
        make_source(&w);
        o.buffer_bytes = 2 * 4 * 4 * 4; /* two shards */
        e.cancel_at = at;
        st = zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr);
        cut = at == 0 || st == ZARR_ERR_CANCELLED;
        if (at > 0 && cut) {
            /* There is no node before everything is copied. */
            assert_null(get_text(&w, "dst/zarr.json"));
            assert_non_null(get_text(&w, "dst/.zarrc-job"));
            o = options(&e, 2, 4);
            assert_status(
                zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr),
                ZARR_ERR_EXISTS);
            assert_int_equal(r.found, ZARR_REENCODE_FOUND_JOB);
            o = options(&e, 3, 0);
            o.flags = ZARR_REENCODE_RESUME;
            assert_status(
                zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr),
                ZARR_ERR_EXISTS);
            assert_int_equal(r.found, ZARR_REENCODE_FOUND_OTHER_JOB);
            o = options(&e, 2, 4);
            o.flags = ZARR_REENCODE_RESUME;
            assert_ok(zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr));
            assert_int_equal(r.state, ZARR_REENCODE_RESUMED);
        } else {
            assert_ok(st);
        }
        if (at == 0)
            whole = sum_objects(&w, "dst");
        assert_true(sum_objects(&w, "dst") == whole);
        assert_equal_trees(&w, "src", "dst");
        world_close(&w);
        assert_true(at < 200);
    }
}

static void test_wrong(void **state)
{
    zarr_reencode_result r = ZARR_REENCODE_RESULT_INIT;
    struct ear e;
    zarr_reencode_options o = options(&e, 3, 0);
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_source(&w);
    e.wrong = true;
    assert_status(zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr),
                  ZARR_ERR_INVALID);
    assert_says("another shape");
    o = options(&e, 3, 0);
    o.buffer_bytes = 9 * 4 - 1;
    assert_status(zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr),
                  ZARR_ERR_LIMIT);
    assert_int_equal(r.unit_bytes, 9 * 4);
    o = options(&e, 3, 0);
    o.flags = ZARR_REENCODE_RESUME | ZARR_REENCODE_OVERWRITE;
    assert_status(zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr),
                  ZARR_ERR_INVALID);
    o.flags = 128;
    assert_status(zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr),
                  ZARR_ERR_UNSUPPORTED);
    o = options(&e, 3, 0);
    o.make = NULL;
    o.zarr_format = 2;
    assert_status(zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_status(zarr_node_reencode(w.store, "none", w.store, "dst", &r, NULL, &terr),
                  ZARR_ERR_NOT_FOUND);
    put_text(&w, "src/x/zarr.json", "{");
    o = options(&e, 3, 0);
    assert_status(zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr),
                  ZARR_ERR_CORRUPT);
    assert_int_equal(n_keys(&w, "dst"), 0); /* none of these calls wrote anything */
    /* a chunk that cannot be read: finished work is kept, and RESUME goes on */
    put_text(&w, "src/g/s/c/0/0", "no shard");
    assert_status(zarr_node_reencode(w.store, "src/g", w.store, "dst", &r, &o, &terr),
                  ZARR_ERR_CORRUPT);
    assert_says("c/0/0");
    assert_non_null(get_text(&w, "dst/.zarrc-job"));
    world_close(&w);
}

/* 2^38 chunks, one of them stored. */
static void test_sparse(void **state)
{
    const uint64_t huge = UINT64_C(1) << 18; /* a quarter of a TiB */
    zarr_reencode_result r = ZARR_REENCODE_RESULT_INIT;
    struct ear e;
    zarr_reencode_options o = options(&e, 64, 0);
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    a = make_array(&w, "a", 3, huge, huge);
    {
        const uint64_t start[2] = {huge - 2, 7}, count[2] = {1, 1};
        const uint64_t shape[2] = {1, 1};
        int32_t value = 5;
        zarr_selection *s = NULL;
        zarr_tensor t;

        assert_ok(zarr_selection_box(&s, 2, zarr_array_shape(a), start, count, &terr));
        zarr_tensor_host(&t, NULL, &value, sizeof value, 2, shape);
        assert_ok(zarr_array_write(a, s, &t, NULL, &terr));
        zarr_selection_free(s);
    }
    zarr_array_free(a);
    o.flags = ZARR_REENCODE_VERIFY;
    o.buffer_bytes = UINT64_C(1) << 20; /* less to look through around the one element */
    assert_ok(zarr_node_reencode(w.store, "a", w.store, "b", &r, &o, &terr));
    assert_int_equal(r.objects_written, 1);
    assert_int_equal(r.bytes, 4 * huge * huge);
    assert_true(r.bytes_empty > r.bytes / 2);
    assert_ok(zarr_array_open(&a, w.store, "b", NULL, &terr));
    assert_int_equal(read_at(a, huge - 2, 7), 5);
    assert_int_equal(read_at(a, 3, 7), -1);
    zarr_array_free(a);
    world_close(&w);
}

/* The k-th allocation fails: NO_MEMORY, and the same call resumes. */
/* The listing finds no chunks of removed elements, and a border chunk is cut in part:
 * neither becomes fill values of the copy. */
static void test_shrunk(void **state)
{
    static const char *const from[] = {"src/x", "src/g/s"};

    (void)state;
    for (int i = 0; i < 4; i++) {
        zarr_reencode_result r = ZARR_REENCODE_RESULT_INIT;
        struct world w;
        struct ear e;
        zarr_reencode_options o = options(&e, 5, 0);

        world_open(&w, WORLD_LOCAL);
        make_source(&w);
        e.shrink_at = 1 + i / 2;
        o.buffer_bytes = 800;
        assert_ok(zarr_array_open(&e.victim, w.store, from[i % 2], NULL, &terr));
        assert_status(
            zarr_node_reencode(w.store, from[i % 2], w.store, "dst", &r, &o, &terr),
            ZARR_ERR_CONFLICT);
        assert_says(i / 2 ? "no longer exist" : "resized it");
        zarr_array_free(e.victim);
        world_close(&w);
    }
}

static void test_no_memory(void **state)
{
    bool reached = true;

    (void)state;
    for (int64_t k = 1; reached; k += ZR_FAIL_SAMPLES(k)) {
        zarr_reencode_result r = ZARR_REENCODE_RESULT_INIT;
        struct world w;
        struct ear e;
        zarr_reencode_options o = options(&e, 3, 6);
        zarr_status st;

        world_open(&w, WORLD_MEMORY);
        make_source(&w);
        zarr_context_trim(w.ctx);
        o.flags = ZARR_REENCODE_VERIFY;
        w.forever = k % 2 == 0;
        atomic_store(&w.fail_at, k);
        st = zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr);
        reached = atomic_load(&w.fail_at) == w.forever;
        atomic_store(&w.fail_at, 0);
        if (st != ZARR_OK) {
            assert_int_equal(st, ZARR_ERR_NO_MEMORY);
            o = options(&e, 3, 6);
            o.flags = ZARR_REENCODE_RESUME | ZARR_REENCODE_VERIFY;
            assert_ok(zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr));
        }
        assert_equal_trees(&w, "src", "dst");
        world_close(&w);
    }
}

/* Without a callback: each array is like its source, except for the members of `changes`.
 */
static void test_changes(void **state)
{
    const uint64_t chunk[2] = {2, 5}, shard[2] = {4, 10}, one[1] = {3}, rank1[1] = {7};
    zarr_array_spec changes = ZARR_ARRAY_SPEC_INIT;
    zarr_reencode_options o = ZARR_REENCODE_OPTIONS_INIT;
    zarr_reencode_result r = ZARR_REENCODE_RESULT_INIT;
    zarr_array_spec line = ZARR_ARRAY_SPEC_INIT;
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_source(&w);
    o.changes = &changes;
    o.flags = ZARR_REENCODE_VERIFY | ZARR_REENCODE_OVERWRITE;
    changes.ndim = 2;
    changes.chunk_shape = chunk;
    changes.shard_shape = shard;
    changes.codecs = "[{\"name\":\"gzip\",\"configuration\":{\"level\":2}}]";
    assert_ok(zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr));
    assert_equal_trees(&w, "src", "dst");
    assert_non_null(strstr(get_text(&w, "dst/zarr.json"), "\"a\""));
    assert_ok(zarr_array_open(&a, w.store, "dst/g/s", NULL, &terr));
    assert_memory_equal(zarr_array_chunk_shape(a), chunk, sizeof chunk);
    assert_memory_equal(zarr_array_block_shape(a), shard, sizeof shard);
    assert_non_null(strstr(zarr_array_codecs(a), "\"gzip\""));
    zarr_array_free(a);

    /* the other format, and plain chunks */
    changes = (zarr_array_spec)ZARR_ARRAY_SPEC_INIT;
    changes.flags = ZARR_SPEC_NO_SHARDS;
    changes.zarr_format = 2;
    assert_ok(zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr));
    assert_equal_trees(&w, "src", "dst");
    assert_non_null(get_text(&w, "dst/.zgroup"));
    assert_null(get_text(&w, "dst/g/zarr.json"));
    changes.flags = 0;
    assert_status(zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_says("v2 arrays have no shards");

    /* another rank keeps its chunks */
    line.ndim = 1;
    line.shape = rank1;
    line.chunk_shape = one;
    line.data_type = "int8";
    assert_ok(zarr_array_create(&a, w.store, "src/line", &line, NULL, &terr));
    zarr_array_free(a);
    changes = (zarr_array_spec)ZARR_ARRAY_SPEC_INIT;
    changes.ndim = 2;
    changes.chunk_shape = chunk;
    changes.flags = ZARR_SPEC_NO_SHARDS;
    assert_ok(zarr_node_reencode(w.store, "src", w.store, "dst", &r, &o, &terr));
    assert_ok(zarr_array_open(&a, w.store, "dst/line", NULL, &terr));
    assert_int_equal(zarr_array_block_shape(a)[0], 3);
    zarr_array_free(a);
    assert_ok(zarr_array_open(&a, w.store, "dst/x", NULL, &terr));
    assert_memory_equal(zarr_array_block_shape(a), chunk, sizeof chunk);
    zarr_array_free(a);
    world_close(&w);
}

static void read_all(struct world *w, const char *path, void *data)
{
    zarr_array *a;
    zarr_tensor t;

    assert_ok(zarr_array_open(&a, w->store, path, NULL, &terr));
    zarr_tensor_host(&t, NULL, data, 0, 2, zarr_array_shape(a));
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    zarr_array_free(a);
}

/* The caller reads: a crop of another type, which only the same text resumes. */
static void test_read(void **state)
{
    zarr_reencode_result r = ZARR_REENCODE_RESULT_INIT;
    struct ear e;
    zarr_reencode_options o = options(&e, 2, 0);
    int32_t all[99];
    int8_t part[6];
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_source(&w);
    read_all(&w, "src/x", all);
    e.crops = true;
    assert_status(zarr_node_reencode(w.store, "src/x", w.store, "dst", &r, &o, &terr),
                  ZARR_ERR_INVALID);
    assert_says("another shape or data type");
    o.read = crop_read;
    o.read_text = "rows \"5\" and 2";
    e.cancel_at = 2;
    assert_status(zarr_node_reencode(w.store, "src/x", w.store, "dst", &r, &o, &terr),
                  ZARR_ERR_CANCELLED);
    e.cancel_at = e.n_progress = 0;
    o.cancel = fresh_cancel();
    o.flags = ZARR_REENCODE_RESUME | ZARR_REENCODE_VERIFY;
    o.read_text = NULL;
    assert_status(zarr_node_reencode(w.store, "src/x", w.store, "dst", &r, &o, &terr),
                  ZARR_ERR_EXISTS);
    assert_int_equal(r.found, ZARR_REENCODE_FOUND_OTHER_JOB);
    o.read_text = "rows \"5\" and 2";
    assert_ok(zarr_node_reencode(w.store, "src/x", w.store, "dst", &r, &o, &terr));
    assert_int_equal(r.bytes, 6);
    assert_int_equal(r.verified, 1);
    read_all(&w, "dst", part);
    for (int k = 0; k < 6; k++)
        assert_int_equal(part[k], (int8_t)all[(k < 3 ? 5 : 2) * 11 + 10 - k % 3]);
    o.flags = 0;
    e.replaced = w.store;
    assert_status(zarr_node_reencode(w.store, "src/x", w.store, "new", &r, &o, &terr),
                  ZARR_ERR_CONFLICT);
    assert_says("another writer");
    world_close(&w);
}

/* Elements stay what they are. */
static void test_wrong_changes(void **state)
{
    const uint64_t shape[2] = {1, 1};
    zarr_array_spec bad[6];
    struct world w;
    struct ear e;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_source(&w);
    for (size_t i = 0; i < 6; i++) {
        zarr_reencode_options o = ZARR_REENCODE_OPTIONS_INIT;

        bad[i] = (zarr_array_spec)ZARR_ARRAY_SPEC_INIT;
        o.changes = &bad[i];
        bad[0].shape = shape;
        bad[i].ndim = 2;
        if (i == 1)
            bad[i].data_type = "int8";
        if (i == 2)
            bad[i].document = "{}";
        if (i == 3)
            bad[i].flags = ZARR_SPEC_OVERWRITE;
        if (i == 4) {
            bad[i].zarr_format = 2;
            o.zarr_format = 3;
        }
        if (i == 5)
            o.make = options(&e, 2, 0).make;
        assert_status(zarr_node_reencode(w.store, "src", w.store, "dst", NULL, &o, &terr),
                      ZARR_ERR_INVALID);
        assert_says("changes");
    }
    assert_int_equal(n_keys(&w, "dst"), 0);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hierarchy),     cmocka_unit_test(test_in_the_way),
        cmocka_unit_test(test_resume),        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_sparse),        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_shrunk),        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_wrong_changes), cmocka_unit_test(test_read),
    };

    return cmocka_run_group_tests_name("reencode", tests, NULL, NULL);
}
