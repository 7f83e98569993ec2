/*
 * unit/check/test_error_parts.c - the facts in a zarr_error besides its text: node, key,
 * inner chunk, field, operation and the store's own code, for each kind of call that
 * fails.
 */
#include "unit/array/array_test.h"

#include <errno.h>

static char part_buffer[ZARR_ERROR_PARTS][512];

static const char *part(const zarr_error *e, uint32_t which)
{
    const size_t n = zarr_error_text(e, which, part_buffer[which], sizeof part_buffer[0]);

    assert_int_equal(n, strlen(part_buffer[which]));
    return part_buffer[which];
}

/* NULL: the error has no such part. */
static void check_parts(const zarr_error *e, const char *path, const char *key,
                        uint32_t operation)
{
    if (strcmp(part(e, ZARR_ERROR_PATH), path ? path : "") != 0 ||
        strcmp(part(e, ZARR_ERROR_KEY), key ? key : "") != 0 || e->operation != operation)
        fail_msg("\"%s\": path \"%s\", key \"%s\", operation %u", e->message,
                 part(e, ZARR_ERROR_PATH), part(e, ZARR_ERROR_KEY),
                 (unsigned)e->operation);
}

static zarr_status read_whole(zarr_array *a, const zarr_io_options *opts, zarr_error *e)
{
    static int32_t data[64];
    const uint64_t shape[2] = {6, 7};
    zarr_tensor t = ZARR_TENSOR_INIT;

    t.data = data;
    t.ndim = 2;
    t.shape = shape;
    return zarr_array_read(a, NULL, &t, opts, e);
}

static void missing_nodes(void **state)
{
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    struct world w;
    zarr_error e;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    assert_int_equal(zarr_array_open(&a, w.store, "no/such", NULL, &e),
                     ZARR_ERR_NOT_FOUND);
    check_parts(&e, "/no/such", NULL, ZARR_OPERATION_NONE);
    assert_int_equal(zarr_group_open(&g, w.store, "none", NULL, &e), ZARR_ERR_NOT_FOUND);
    check_parts(&e, "/none", NULL, ZARR_OPERATION_NONE);
    put_text(&w, "bad/zarr.json", "{");
    assert_int_equal(zarr_array_open(&a, w.store, "bad", NULL, &e), ZARR_ERR_CORRUPT);
    check_parts(&e, "/bad", NULL, ZARR_OPERATION_NONE);
    assert_int_equal(zarr_store_erase(w.store, "x/y", NULL, &e), ZARR_ERR_NOT_FOUND);
    check_parts(&e, NULL, "x/y", ZARR_OPERATION_ERASE);
    assert_int_equal(zarr_store_stat(w.store, "x/y", NULL, NULL, &e), ZARR_ERR_NOT_FOUND);
    check_parts(&e, NULL, "x/y", ZARR_OPERATION_READ);
    world_close(&w);
}

/* A chunk that is too short, and one that its codec refuses. */
static void damaged_chunks(void **state)
{
    const zarr_io_options serial = {.struct_size = sizeof serial, .max_threads = 1};
    uint64_t chunk[ZARR_MAX_RANK] = {9, 9}, inner[ZARR_MAX_RANK];
    zarr_array *a;
    struct world w;
    zarr_error e;

    (void)state;
    for (int kind = 2; kind <= 3; kind++) {
        const char *key = kind == 2 ? "g/a/1.2" : "g/a/c/1/2";

        world_open(&w, WORLD_MEMORY);
        a = make_array(&w, "g/a", kind, 6, 7);
        fill_array(a);
        put_text(&w, key, "?");
        assert_int_equal(read_whole(a, &serial, &e), ZARR_ERR_CORRUPT);
        check_parts(&e, "/g/a", key, e.operation);
        assert_int_equal(zarr_error_chunk(&e, inner), 0);
        assert_ok(zarr_array_block_of_key(a, part(&e, ZARR_ERROR_KEY), chunk, &terr));
        assert_int_equal(chunk[0], 1);
        assert_int_equal(chunk[1], 2);
        assert_int_equal(zarr_array_block_of_key(a, "g/a/zarr.json", chunk, &e),
                         ZARR_ERR_INVALID);
        assert_int_equal(zarr_array_block_of_key(a, "g/ab/c/0/0", chunk, &e),
                         ZARR_ERR_INVALID);
        assert_int_equal(
            zarr_array_block_of_key(a, kind == 2 ? "g/a/9.9" : "g/a/c/9/9", chunk, &e),
            ZARR_ERR_INVALID);
        check_parts(&e, "/g/a", NULL, ZARR_OPERATION_NONE);
        zarr_array_free(a);
        world_close(&w);
    }
}

/* make_array() has no codec that can refuse bytes. */
static zarr_array *make_gzip(struct world *w, int sharded)
{
    const uint64_t shape[2] = {6, 7}, outer[2] = {4, 4}, inner[2] = {2, 2};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *a = NULL;

    spec.zarr_format = 3;
    spec.data_type = "int32";
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk_shape = inner;
    if (sharded)
        spec.shard_shape = outer;
    spec.codecs = "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}, "
                  "{\"name\": \"gzip\", \"configuration\": {\"level\": 1}}]";
    assert_ok(zarr_array_create(&a, w->store, "z", &spec, NULL, &terr));
    fill_array(a);
    return a;
}

static void part_of_decoding(void **state)
{
    uint64_t inner[ZARR_MAX_RANK] = {7, 7};
    static char shard[4096];
    uint64_t bytes = sizeof shard;
    zarr_array *a;
    struct world w;
    zarr_error e;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    a = make_gzip(&w, 0);
    put_text(&w, "z/c/0/1", "this is not gzip");
    assert_int_equal(read_whole(a, NULL, &e), ZARR_ERR_CORRUPT);
    check_parts(&e, "/z", "z/c/0/1", ZARR_OPERATION_DECODE);
    zarr_array_free(a);
    assert_ok(zarr_node_delete(w.store, "z", &terr));
    a = make_gzip(&w, 1);
    assert_ok(zarr_store_get(w.store, "z/c/0/1", 0, shard, &bytes, NULL, &terr));
    memset(shard, '?', 8); /* the first inner chunk */
    assert_ok(zarr_store_put(w.store, "z/c/0/1", shard, bytes, NULL, &terr));
    assert_int_equal(read_whole(a, NULL, &e), ZARR_ERR_CORRUPT);
    check_parts(&e, "/z", "z/c/0/1", ZARR_OPERATION_DECODE);
    assert_int_equal(zarr_error_chunk(&e, inner), 2);
    assert_int_equal(inner[0], 0);
    assert_int_equal(inner[1], 4 / 2); /* of the array, not of its shard */
    assert_string_equal(part(&e, ZARR_ERROR_CHUNK), "0,2");
    zarr_array_free(a);
    world_close(&w);
}

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define SHARD(chunk, codecs)                                                             \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" chunk           \
    ",\"codecs\":[" codecs "],\"index_codecs\":[" BYTES "]}}"

struct place {
    char key[16];
    uint64_t offset, chunk[2];
};

static int keep_place(void *user, const zarr_block_info *info)
{
    struct place **next = user, *p = (*next)++;

    assert_int_equal(info->is_chunk, 1);
    snprintf(p->key, sizeof p->key, "%s", info->key);
    p->offset = info->offset;
    memcpy(p->chunk, info->coordinates, sizeof p->chunk);
    return 0;
}

/* Each chunk in nested shards whose dimensions are swapped. */
static void nested_chunks(void **state)
{
    enum {
        ROWS = 16,
        COLS = 24,
        CHUNK = 4 * 2,
        N = ROWS * COLS / CHUNK
    };
    const uint64_t shape[2] = {ROWS, COLS}, block[2] = {8, 12};
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 2,
        .shape = shape,
        .chunk_shape = block,
        .data_type = "int8",
        .codecs = "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," SHARD(
            "[6,4]", SHARD("[2,4]", BYTES ",{\"name\":\"crc32c\"}")) "]"};
    static int8_t elements[ROWS * COLS];
    struct place places[N], *next = places;
    uint64_t chunk[ZARR_MAX_RANK], bytes;
    char value[4096];
    zarr_array *a;
    struct world w;
    zarr_tensor t;
    zarr_error e;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    assert_ok(zarr_array_create(&a, w.store, "z", &spec, NULL, &terr));
    memset(elements, 1, sizeof elements);
    zarr_tensor_host(&t, NULL, elements, sizeof elements, 2, (uint64_t[2]){ROWS, COLS});
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    assert_ok(
        zarr_array_list_blocks(a, ZARR_BLOCKS_CHUNKS, keep_place, &next, NULL, &terr));
    assert_ptr_equal(next, places + N);
    for (const struct place *p = places; p < places + N; p++) {
        bytes = sizeof value;
        assert_ok(zarr_store_get(w.store, p->key, 0, value, &bytes, NULL, &terr));
        value[p->offset] ^= 1;
        assert_ok(zarr_store_put(w.store, p->key, value, bytes, NULL, &terr));
        assert_int_equal(zarr_array_read(a, NULL, &t, NULL, &e), ZARR_ERR_CORRUPT);
        assert_int_equal(zarr_error_chunk(&e, chunk), 2);
        assert_memory_equal(chunk, p->chunk, sizeof p->chunk);
        value[p->offset] ^= 1;
        assert_ok(zarr_store_put(w.store, p->key, value, bytes, NULL, &terr));
    }
    zarr_array_free(a);
    world_close(&w);
}

static void fields(void **state)
{
    const uint64_t one[1] = {1};
    const uint64_t shape[1] = {1};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_tensor t = ZARR_TENSOR_INIT;
    int8_t element = 0;
    zarr_array *a = NULL;
    struct world w;
    zarr_error e;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    spec.zarr_format = 3;
    spec.data_type = "{\"name\": \"struct\", \"configuration\": {\"fields\": [{\"name\": "
                     "\"x\", \"data_type\": \"int8\"}]}}";
    spec.ndim = 1;
    spec.shape = spec.chunk_shape = one;
    assert_ok(zarr_array_create(&a, w.store, "s", &spec, NULL, &terr));
    t.data = &element;
    t.ndim = 1;
    t.shape = shape;
    opts.field = "nope";
    assert_int_equal(zarr_array_read(a, NULL, &t, &opts, &e), ZARR_ERR_NOT_FOUND);
    check_parts(&e, "/s", NULL, ZARR_OPERATION_NONE);
    assert_string_equal(part(&e, ZARR_ERROR_FIELD), "nope");
    zarr_array_free(a);
    world_close(&w);
}

/* ---- stores that fail ---- */

static zarr_status failing_status;
static int failing_os_code, failing_tells;

static void failing_caps(void *self, zarr_store_caps *out)
{
    zarr_store_capabilities(self, out);
}

static _Atomic(zarr_request *) running; /* is cancelled by the first read of a chunk */
static atomic_int cancels;

static void failing_run(void *self, zarr_store_op *op, zarr_error *err)
{
    if (cancels && strstr(op->key, "/c/")) {
        while (!running)
            ;
        zarr_request_cancel(running);
    }
    if (failing_status == ZARR_OK || !strstr(op->key, "/c/")) {
        zarr_store_run(self, op, err);
        return;
    }
    op->status = failing_status;
    op->os_code = failing_os_code;
    if (failing_tells) {
        err->code = failing_status;
        err->os_code = failing_os_code;
        err->os_domain = ZARR_OS_HTTP;
        err->part[ZARR_ERROR_KEY] = (zarr_error_part){400, 400}; /* is not in the text */
        snprintf(err->message, sizeof err->message, "slow down");
    }
}

static zarr_status failing_list(void *self, const char *prefix, uint32_t how,
                                zarr_store_list_fn fn, void *user,
                                const zarr_cancel *cancel, zarr_error *err)
{
    (void)cancel;
    if (failing_status == ZARR_OK)
        return zarr_store_list(self, prefix, how, fn, user, NULL, err);
    return ZARR_ERR_IO; /* without a text */
}

static void failing_close(void *self)
{
    zarr_store_free(self);
}

static const zarr_store_vtable failing_vtable = {.struct_size = sizeof failing_vtable,
                                                 .name = "failing",
                                                 .caps = failing_caps,
                                                 .run = failing_run,
                                                 .list = failing_list,
                                                 .close = failing_close};

static int no_item(void *user, const zarr_store_item *item)
{
    (void)user;
    (void)item;
    return 0;
}

static void failing_stores(void **state)
{
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;
    zarr_array *a;
    zarr_store *s;
    struct world w;
    zarr_error e;

    (void)state;
    world_open(&w, WORLD_PLAIN);
    s = w.store;
    zarr_store_capabilities(s, &caps);
    assert_ok(zarr_store_open_custom(&w.store, w.ctx, &failing_vtable, s, NULL, &terr));
    a = make_array(&w, "g/a", 3, 6, 7);
    fill_array(a);
    failing_status = ZARR_ERR_IO;
    failing_os_code = 503;
    for (failing_tells = 0; failing_tells < 2; failing_tells++) {
        assert_int_equal(read_whole(a, NULL, &e), ZARR_ERR_IO);
        check_parts(&e, "/g/a", part(&e, ZARR_ERROR_KEY), ZARR_OPERATION_READ);
        assert_non_null(strstr(part(&e, ZARR_ERROR_KEY), "g/a/c/"));
        assert_int_equal(e.os_code, 503);
        assert_int_equal(e.os_domain, failing_tells ? ZARR_OS_HTTP : ZARR_OS_STORE);
        assert_int_equal(zarr_store_put(w.store, "g/a/c/0/0", "x", 1, NULL, &e),
                         ZARR_ERR_IO);
        assert_int_equal(e.operation, ZARR_OPERATION_WRITE);
        assert_int_equal(e.os_code, 503);
    }
    assert_int_equal(zarr_store_list(w.store, "g", 0, no_item, NULL, NULL, &e),
                     ZARR_ERR_IO);
    check_parts(&e, NULL, NULL, ZARR_OPERATION_LIST);
    assert_non_null(strstr(e.message, "the failing store failed"));
    failing_status = ZARR_OK;
    zarr_array_free(a);
    world_close(&w);
}

static void part_of_cancelling(void **state)
{
    static int32_t data[64];
    const uint64_t shape[2] = {6, 7};
    zarr_tensor t = ZARR_TENSOR_INIT;
    zarr_request *r = NULL;
    zarr_array *a;
    zarr_store *s;
    struct world w;
    zarr_error e;

    (void)state;
    world_open(&w, WORLD_PLAIN);
    s = w.store;
    assert_ok(zarr_store_open_custom(&w.store, w.ctx, &failing_vtable, s, NULL, &terr));
    a = make_array(&w, "g/a", 3, 6, 7);
    fill_array(a);
    t.data = data;
    t.ndim = 2;
    t.shape = shape;
    cancels = 1;
    assert_ok(zarr_array_read_submit(&r, a, NULL, &t, NULL, &terr));
    running = r;
    assert_int_equal(zarr_request_wait(r, ZARR_WAIT_FOREVER, NULL, &e),
                     ZARR_ERR_CANCELLED);
    /* Nothing failed: the key, if there is one, is where the request noticed it. */
    check_parts(&e, *part(&e, ZARR_ERROR_KEY) ? "/g/a" : NULL, part(&e, ZARR_ERROR_KEY),
                ZARR_OPERATION_NONE);
    cancels = 0;
    zarr_request_free(r);
    zarr_array_free(a);
    world_close(&w);
}

static void local_errors(void **state)
{
    zarr_store *s = NULL;
    struct world w;
    zarr_error e;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    put_text(&w, "file", "x");
    assert_int_equal(zarr_store_put(w.store, "file/below", "x", 1, NULL, &e),
                     ZARR_ERR_IO);
    check_parts(&e, NULL, "file/below", ZARR_OPERATION_WRITE);
    assert_int_equal(e.os_code, ENOTDIR);
    assert_int_equal(e.os_domain, ZARR_OS_ERRNO);
    assert_int_equal(zarr_store_open(&s, w.ctx, "/no/such/folder", NULL, &e),
                     ZARR_ERR_NOT_FOUND);
    check_parts(&e, NULL, NULL, ZARR_OPERATION_OPEN);
    world_close(&w);
}

/* A key that is longer than a message is cut, and is no part of it. */
static void long_keys(void **state)
{
    static char key[2001];
    struct world w;
    zarr_error e;

    (void)state;
    for (int i = 0; i < 2000; i++)
        key[i] = i % 100 == 99 ? '/' : 'k';
    key[1999] = 'k';
    world_open(&w, WORLD_MEMORY);
    assert_int_equal(zarr_store_erase(w.store, key, NULL, &e), ZARR_ERR_NOT_FOUND);
    assert_int_equal(zarr_error_text(&e, ZARR_ERROR_KEY, NULL, 0), 0);
    assert_int_equal(e.operation, ZARR_OPERATION_ERASE);
    world_close(&w);
}

static void copies_as_snprintf(void **state)
{
    const zarr_error none = ZARR_ERROR_INIT;
    zarr_error e = ZARR_ERROR_INIT;
    char text[4] = "xyz";

    (void)state;
    snprintf(e.message, sizeof e.message, "a/b/c: no such key");
    e.part[ZARR_ERROR_KEY] = (zarr_error_part){0, 5};
    assert_int_equal(zarr_error_text(&e, ZARR_ERROR_KEY, text, sizeof text), 5);
    assert_string_equal(text, "a/b");
    assert_int_equal(zarr_error_text(&e, ZARR_ERROR_KEY, NULL, 0), 5);
    assert_int_equal(zarr_error_text(&e, ZARR_ERROR_PARTS, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(zarr_error_text(&none, ZARR_ERROR_PATH, text, sizeof text), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_nodes),    cmocka_unit_test(damaged_chunks),
        cmocka_unit_test(part_of_decoding), cmocka_unit_test(nested_chunks),
        cmocka_unit_test(fields),           cmocka_unit_test(part_of_cancelling),
        cmocka_unit_test(failing_stores),   cmocka_unit_test(local_errors),
        cmocka_unit_test(long_keys),        cmocka_unit_test(copies_as_snprintf),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
