/*
 * unit/pipe/write/test_put_failures.c - chunks whose PUTs are sent together and that
 * cannot be written: memory is short when one is encoded, or the build can only read the
 * codec.
 */
#include "unit/pipe/far_store.h"
#include "sanitizers.h"

#include <stdatomic.h>

enum {
    PARTS = 8,
    EDGE = 8, /* of a chunk */
    CAPS = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE
};

/* ---- an allocator that fails twice in a row --------------------------------------- */

static atomic_int n_allocations, failing; /* failing: the first that fails; 0: none */

static bool allocation_fails(void)
{
    const int first = atomic_load(&failing);
    const int now = first ? atomic_fetch_add(&n_allocations, 1) + 1 : 0;

    return first && (now == first || now == first + 1);
}

static void *poor_alloc(void *user, size_t bytes)
{
    (void)user;
    return allocation_fails() ? NULL : malloc(bytes);
}

static void *poor_realloc(void *user, void *p, size_t bytes)
{
    (void)user;
    return allocation_fails() ? NULL : realloc(p, bytes);
}

static void poor_free(void *user, void *p)
{
    (void)user;
    free(p);
}

static const zarr_allocator poor = {NULL, poor_alloc, poor_realloc, poor_free};

/* ---- parts ------------------------------------------------------------------------ */

static int32_t given[PARTS][EDGE * EDGE];

/* Part i is the chunk i of the first row of chunks. */
static void make_parts(const zarr_array *a, zarr_io_part *part, zarr_tensor *tensor)
{
    static const uint64_t size[] = {EDGE, EDGE}; /* the tensors point to it */

    for (int i = 0; i < PARTS; i++) {
        const uint64_t start[] = {0, (uint64_t)i * EDGE}, count[] = {EDGE, EDGE};
        zarr_selection *selection = NULL;

        assert_ok(
            zarr_selection_box(&selection, 2, zarr_array_shape(a), start, count, &err));
        for (int j = 0; j < EDGE * EDGE; j++)
            given[i][j] = -(i + 1) * 1000 - j * 7919 % 64;
        zarr_tensor_host(&tensor[i], NULL, given[i], sizeof given[i], 2, size);
        part[i] = (zarr_io_part){.selection = selection, .tensor = &tensor[i]};
    }
}

/* Each chunk is the old one or the new one, and the new one if its part is OK. */
static void check_parts(const zarr_io_part *part, int k)
{
    zarr_tensor all = whole_tensor(got);
    zarr_array *a = NULL;

    assert_ok(zarr_array_open(&a, memory, "a", NULL, &err));
    assert_ok(zarr_array_read(a, NULL, &all, NULL, &err));
    zarr_array_free(a);
    for (int i = 0; i < PARTS; i++) {
        bool is_old = true, is_new = true;

        for (int j = 0; j < EDGE * EDGE; j++) {
            const int at = j / EDGE * N + i * EDGE + j % EDGE;

            is_old = is_old && got[at] == elements[at];
            is_new = is_new && got[at] == given[i][j];
        }
        if (!is_new && (!is_old || part[i].status == ZARR_OK))
            fail_msg("allocation %d fails: part %d, status %d, has another value", k, i,
                     part[i].status);
    }
}

/* Whichever allocations fail, no chunk gets the value of another one. */
static void memory_is_short(void **state)
{
    zarr_context_options options = {
        .struct_size = sizeof options, .max_threads = 1, .allocator = &poor};
    bool failed = true;

    (void)state;
    for (int k = 1; failed; k += ZR_FAIL_STEP(k)) {
        zarr_io_part part[PARTS];
        zarr_tensor tensor[PARTS];
        zarr_array *a = NULL;
        zarr_status st;

        open_stores_with(CAPS, &options);
        a = make_array(CHUNKS);
        make_parts(a, part, tensor);
        zarr_context_trim(ctx);
        atomic_store(&n_allocations, 0);
        atomic_store(&failing, k);
        st = zarr_array_write_many(a, part, PARTS, NULL, &err);
        failed = atomic_load(&n_allocations) >= k;
        atomic_store(&failing, 0);
        if (!failed)
            assert_int_equal(st, ZARR_OK);
        check_parts(part, k);
        for (int i = 0; i < PARTS; i++)
            zarr_selection_free((zarr_selection *)(uintptr_t)part[i].selection);
        zarr_array_free(a);
        close_stores();
    }
}

/* ---- a codec that can only be read ------------------------------------------------ */

static void codec_without_encoder(void **state)
{
    static const char document[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[64],\"data_type\":"
        "\"bool\","
        "\"fill_value\":true,\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{"
        "\"chunk_shape\":[16]}},\"chunk_key_encoding\":{\"name\":\"default\"},\"codecs\":"
        "["
        "{\"name\":\"bitround\",\"configuration\":{\"keepbits\":3}},{\"name\":\"bytes\"}]"
        ","
        "\"attributes\":{}}";
    static uint8_t data[64];
    const uint64_t size[] = {64};
    zarr_array *a = NULL;
    zarr_tensor t;

    (void)state;
    open_stores(CAPS);
    assert_ok(
        zarr_store_put(memory, "b/zarr.json", document, sizeof document - 1, NULL, &err));
    assert_ok(zarr_array_open(&a, far, "b", NULL, &err));
    zarr_tensor_host(&t, NULL, data, sizeof data, 1, size);
    assert_int_equal(zarr_array_write(a, NULL, &t, NULL, &err), ZARR_ERR_UNSUPPORTED);
    zarr_array_free(a);
    close_stores();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_short),
        cmocka_unit_test(codec_without_encoder),
    };

    return cmocka_run_group_tests_name("put_failures", tests, NULL, NULL);
}
