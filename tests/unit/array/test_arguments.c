/*
 * unit/array/test_arguments.c - arguments that cannot be meant: a pointer that is NULL
 * although it has a length, and numbers that are no kind of memory. Each public call that
 * takes one refuses it before it does anything.
 */
#include "array_test.h"

#include <zarrc/arrow.h>
#include <zarrc/chunks.h>
#include <zarrc/parts.h>
#include <zarrc/plan.h>
#include <zarrc/blocks.h>
#include <zarrc/vlen.h>

enum {
    ROWS = 4,
    COLS = 4,
    N = ROWS * COLS
};

static struct world w;
static zarr_array *array, *text;
static zarr_group *group;
static int32_t data[N];
static const uint64_t lengths[2] = {ROWS, COLS};
static const uint64_t shape[2] = {ROWS, COLS}, first_chunk[2] = {0, 0};

static void open_all(enum world_sort sort)
{
    const uint64_t n = 2;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = &n,
                                  .data_type = "string",
                                  .zarr_format = 3};

    world_open(&w, sort);
    assert_ok(group_create(&group, w.store, "", 3, "{\"k\":[1,2]}", 0, &terr));
    array = make_array(&w, "x", 3, ROWS, COLS);
    fill_array(array);
    assert_ok(zarr_array_attribute_set(array, "k", "[1,2]", NULL, &terr));
    assert_ok(zarr_array_create(&text, w.store, "text", &spec, NULL, &terr));
}

static void close_all(void)
{
    zarr_array_free(array);
    zarr_array_free(text);
    zarr_group_free(group);
    world_close(&w);
}

static zarr_tensor tensor(void)
{
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, sizeof data, 2, lengths);
    return t;
}

static zarr_memory nowhere(uint64_t bytes)
{
    return (zarr_memory){.device_type = ZARR_DEVICE_CPU, .bytes = bytes};
}

/* The status of an append that runs as a request, whether it failed at once or later. */
static zarr_status append_submitted(const zarr_tensor *t)
{
    zarr_request *rq = NULL;
    zarr_status st = zarr_array_append_submit(&rq, array, 0, t, NULL, NULL, &terr);

    if (st == ZARR_OK)
        st = zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr);
    zarr_request_free(rq);
    return st;
}

/* ---- NULL with a length -------------------------------------------------- */

static void null_text(void)
{
    zarr_explanation *e = NULL;
    size_t n = 0;

    assert_status(zarr_array_attribute_get(array, "k", NULL, 9, &n, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_group_attribute_get(group, "k", NULL, 9, &n, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_array_block_key(array, first_chunk, NULL, 9, &n, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_dtype_print(zarr_array_dtype(array), data, NULL, 9, &n, &terr),
                  ZARR_ERR_INVALID);
    assert_ok(zarr_array_explain(&e, array, ZARR_EXPLAIN_READ, NULL, NULL, NULL, &terr));
    assert_status(zarr_explanation_text(e, 0, NULL, 9, &n, &terr), ZARR_ERR_INVALID);
    zarr_explanation_free(e);
    /* these two have no status to give */
    assert_int_equal(zarr_dtype_number(zarr_array_dtype(array), data, NULL, 3), 1);
    assert_status(zarr_array_attribute_get(array, "none", NULL, 0, NULL, &terr),
                  ZARR_ERR_NOT_FOUND);
    (void)zarr_error_text(&terr, ZARR_ERROR_PATH, NULL, 9);
}

static void null_bytes(void)
{
    const zarr_memory none = nowhere(4);
    zarr_memory some = {.device_type = ZARR_DEVICE_CPU, .handle = data, .bytes = 4};
    uint64_t bytes = 5;

    assert_status(zarr_store_put(w.store, "k", NULL, 1, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_store_put_new(w.store, "k", NULL, 1, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_store_write(w.store, "k", &none, NULL, NULL, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_store_write(w.store, "k", NULL, NULL, NULL, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_store_read(w.store, "x/zarr.json", 0, &none, NULL, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_store_read(w.store, "x/zarr.json", 0, NULL, NULL, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_store_get(w.store, "x/zarr.json", 0, NULL, &bytes, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_memory_copy(w.ctx, &none, &some, 4, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_memory_copy(w.ctx, &some, &none, 4, &terr), ZARR_ERR_INVALID);
    assert_status(
        zarr_array_block_write_encoded(array, first_chunk, NULL, 5, NULL, &terr),
        ZARR_ERR_INVALID);
    assert_status(
        zarr_array_block_read_encoded(array, first_chunk, NULL, &bytes, NULL, &terr),
        ZARR_ERR_INVALID);
}

static void null_tensor(void)
{
    zarr_tensor t = tensor();
    zarr_request *rq = NULL;

    t.data = NULL;
    assert_status(zarr_array_read(array, NULL, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_write(array, NULL, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_append(array, 0, &t, NULL, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_read_submit(&rq, array, NULL, &t, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_array_write_submit(&rq, array, NULL, &t, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(append_submitted(&t), ZARR_ERR_INVALID);
    t = tensor();
    t.shape = NULL;
    assert_status(zarr_array_read(array, NULL, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_append(array, 0, &t, NULL, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_read(array, NULL, NULL, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_write(array, NULL, NULL, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_append(array, 0, NULL, NULL, NULL, &terr), ZARR_ERR_INVALID);
}

static void null_parts(void)
{
    zarr_io_part part = {.tensor = NULL};
    zarr_request *rq = NULL;

    assert_status(zarr_array_read_many(array, NULL, 2, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_write_many(array, NULL, 2, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_read_many_submit(&rq, array, NULL, 2, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_array_write_many_submit(&rq, array, NULL, 2, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_array_read_many(array, &part, 1, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_write_many(array, &part, 1, NULL, &terr), ZARR_ERR_INVALID);
}

static void null_selection(void)
{
    const zarr_dim_selection list = {.kind = ZARR_DIM_LIST, .n_list = 2},
                             mask = {.kind = ZARR_DIM_MASK, .n_list = ROWS};
    const int64_t coords[2] = {0, 0};
    zarr_selection *s = NULL;

    assert_status(zarr_selection_points(&s, 2, shape, 1, NULL, 0, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_selection_points(&s, 2, NULL, 1, coords, 0, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_selection_points(&s, 2, shape, 1, coords, 1, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_selection_mask(&s, 2, shape, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_selection_mask(&s, 2, NULL, (const uint8_t *)data, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_selection_dims(&s, 2, NULL, 0, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_selection_parse(&s, 2, NULL, "0", &terr), ZARR_ERR_INVALID);
    assert_status(zarr_selection_box(&s, 2, shape, NULL, shape, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_selection_box(&s, 2, shape, shape, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_selection_box(&s, 2, NULL, shape, shape, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_selection_dims(&s, 2, shape, 1, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_selection_dims(&s, 2, NULL, 1, &list, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_selection_dims(&s, 2, shape, 1, &list, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_selection_dims(&s, 2, shape, 1, &mask, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_select_blocks(&s, array, 1, NULL, &terr), ZARR_ERR_INVALID);
    assert_null(s);
}

static void null_chunks(void)
{
    const zarr_array_spec none = {
        .struct_size = sizeof none, .ndim = 2, .data_type = "int32"};
    const zarr_memory some = {.device_type = ZARR_DEVICE_CPU, .handle = data, .bytes = 4};
    zarr_block_batch batch = {.struct_size = sizeof batch, .n_blocks = 1, .bytes = &some};
    const zarr_tensor t = tensor();
    zarr_array *made = NULL;

    assert_status(zarr_array_decode(array, NULL, &t, &batch, NULL, &terr),
                  ZARR_ERR_INVALID);
    batch.blocks = first_chunk;
    batch.bytes = NULL;
    assert_status(zarr_array_decode(array, NULL, &t, &batch, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_array_create(&made, w.store, "made", &none, NULL, &terr),
                  ZARR_ERR_INVALID);
}

static void null_variable(void)
{
    const zarr_vlen elements[2] = {{.data = "a", .bytes = 1}, {.bytes = 1}};
    const uint64_t offsets[3] = {0, 1, 2};
    zarr_vlen_column column = {.struct_size = sizeof column, .n = 2};
    const uint64_t n = 2;
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, (void *)(uintptr_t)elements, sizeof elements, 1, &n);
    assert_status(zarr_array_write(text, NULL, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_append(text, 0, &t, NULL, NULL, &terr), ZARR_ERR_INVALID);
    column.bytes = (const uint8_t *)"ab";
    assert_status(zarr_array_write_vlen(text, NULL, &column, NULL, &terr),
                  ZARR_ERR_INVALID);
    column.offsets = offsets;
    column.bytes = NULL;
    assert_status(zarr_array_write_vlen(text, NULL, &column, NULL, &terr),
                  ZARR_ERR_INVALID);
}

static void test_null(void **state)
{
    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        open_all(sort);
        null_text();
        null_bytes();
        null_tensor();
        null_parts();
        null_selection();
        null_chunks();
        null_variable();
        assert_int_equal(zarr_array_shape(array)[0], ROWS);
        assert_int_equal(count_wrong(array, ROWS, COLS), 0);
        assert_int_equal(n_keys(&w, "k"), 0);
        close_all();
    }
}

/* ---- no kind of memory --------------------------------------------------- */

static const int32_t no_kinds[] = {-7, -1, 5,     13,        31,       32,
                                   33, 64, 65536, INT32_MAX, INT32_MIN};

/* INVALID or UNSUPPORTED, and a message that has the number. */
static void check_refusal(zarr_status st, int32_t kind)
{
    char number[16];

    snprintf(number, sizeof number, "%d", (int)kind);
    if (st != ZARR_ERR_INVALID && st != ZARR_ERR_UNSUPPORTED)
        fail_msg("device type %s: %s", number, zarr_status_text(st));
    assert_says(number);
    memset(&terr, 0, sizeof terr);
}

static void tensor_of_no_kind(int32_t kind)
{
    zarr_tensor t = tensor();
    zarr_io_part part = {.tensor = &t};
    zarr_explanation *e = NULL;
    zarr_request *rq = NULL;

    t.device_type = kind;
    check_refusal(zarr_array_read(array, NULL, &t, NULL, &terr), kind);
    check_refusal(zarr_array_write(array, NULL, &t, NULL, &terr), kind);
    check_refusal(zarr_array_append(array, 0, &t, NULL, NULL, &terr), kind);
    check_refusal(zarr_array_read_submit(&rq, array, NULL, &t, NULL, &terr), kind);
    check_refusal(zarr_array_write_submit(&rq, array, NULL, &t, NULL, &terr), kind);
    check_refusal(append_submitted(&t), kind);
    check_refusal(zarr_array_read_many(array, &part, 1, NULL, &terr), kind);
    check_refusal(zarr_array_write_many(array, &part, 1, NULL, &terr), kind);
    check_refusal(zarr_array_explain(&e, array, ZARR_EXPLAIN_READ, NULL, &t, NULL, &terr),
                  kind);
}

static void bytes_of_no_kind(int32_t kind)
{
    const zarr_memory some = {.device_type = ZARR_DEVICE_CPU, .handle = data, .bytes = 4};
    zarr_memory strange = {.device_type = kind, .handle = data, .bytes = sizeof data},
                got;
    const zarr_block_batch batch = {.struct_size = sizeof batch,
                                    .n_blocks = 1,
                                    .blocks = first_chunk,
                                    .bytes = &strange};
    zarr_tensor t = tensor();

    check_refusal(zarr_memory_alloc(&got, w.ctx, kind, 0, 4, &terr), kind);
    check_refusal(zarr_memory_copy(w.ctx, &strange, &some, 4, &terr), kind);
    check_refusal(zarr_memory_copy(w.ctx, &some, &strange, 4, &terr), kind);
    check_refusal(zarr_store_write(w.store, "k", &strange, NULL, NULL, NULL, &terr),
                  kind);
    check_refusal(zarr_store_read(w.store, "x/zarr.json", 0, &strange, NULL, NULL, &terr),
                  kind);
    check_refusal(zarr_array_decode(array, NULL, &t, &batch, NULL, &terr), kind);
    strange.device_type = ZARR_DEVICE_CPU;
    t.device_type = kind;
    check_refusal(zarr_array_decode(array, NULL, &t, &batch, NULL, &terr), kind);
}

static void options_of_no_kind(int32_t kind)
{
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .device_type = kind};
    const zarr_store_options in_store = {.struct_size = sizeof in_store,
                                         .device_type = kind};
    const zarr_store_options tensors = {.struct_size = sizeof tensors,
                                        .tensor_device_type = kind};
    zarr_store *s = NULL;
    zarr_tensor t = tensor();
    zarr_array *a = NULL;

    check_refusal(zarr_store_open(&s, w.ctx, "memory://", &in_store, &terr), kind);
    if (kind < 0) {
        check_refusal(zarr_store_open(&s, w.ctx, "memory://", &tensors, &terr), kind);
        check_refusal(zarr_array_open(&a, w.store, "x", &opts, &terr), kind);
        check_refusal(zarr_array_with(&a, array, &opts, &terr), kind);
        return;
    }
    /* a plug-in may bring it, so only a tensor that is there is refused */
    assert_ok(zarr_array_with(&a, array, &opts, &terr));
    t.device_type = 0;
    check_refusal(zarr_array_read(a, NULL, &t, NULL, &terr), kind);
    check_refusal(zarr_array_write(a, NULL, &t, NULL, &terr), kind);
    zarr_array_free(a);
}

static void test_no_kind(void **state)
{
    (void)state;
    open_all(WORLD_MEMORY);
    for (size_t i = 0; i < sizeof no_kinds / sizeof *no_kinds; i++) {
        tensor_of_no_kind(no_kinds[i]);
        bytes_of_no_kind(no_kinds[i]);
        options_of_no_kind(no_kinds[i]);
    }
    assert_int_equal(zarr_array_shape(array)[0], ROWS);
    assert_int_equal(count_wrong(array, ROWS, COLS), 0);
    assert_int_equal(n_keys(&w, "k"), 0);
    close_all();
}

/* What each kind of call makes of a tensor. */
static zarr_status use_tensor(int call, const zarr_tensor *t)
{
    zarr_io_part part = {.tensor = t};
    zarr_request *rq = NULL;
    zarr_status st;

    memset(&terr, 0, sizeof terr);
    if (call == 0)
        return zarr_array_read(array, NULL, t, NULL, &terr);
    if (call == 1)
        return zarr_array_write(array, NULL, t, NULL, &terr);
    if (call == 2)
        return zarr_array_append(array, 0, t, NULL, NULL, &terr);
    if (call == 3)
        return zarr_array_read_many(array, &part, 1, NULL, &terr);
    st = call == 4 ? zarr_array_read_submit(&rq, array, NULL, t, NULL, &terr)
                   : zarr_array_write_submit(&rq, array, NULL, t, NULL, &terr);
    if (st == ZARR_OK)
        st = zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr);
    zarr_request_free(rq);
    return st;
}

/* The name of a tensor's type must be that of the array's, in any spelling. */
static void test_type_of_tensor(void **state)
{
    static const struct {
        const char *type;
        zarr_status want;
        const char *says;
    } rows[] = {
        {NULL, ZARR_OK, NULL},
        {"int32", ZARR_OK, NULL},
        {"<i4", ZARR_OK, NULL},
        {"intc", ZARR_OK, NULL},
        {"float64", ZARR_ERR_INVALID, "the tensor is float64, the array int32"},
        {"uint32", ZARR_ERR_INVALID, "the tensor is uint32, the array int32"},
        {"float32", ZARR_ERR_INVALID, "the tensor is float32, the array int32"},
        {"string", ZARR_ERR_INVALID, "the tensor is string, the array int32"},
        {"flaot64", ZARR_ERR_UNSUPPORTED, "flaot64"},
        {"", ZARR_ERR_INVALID, "tensor"},
    };
    zarr_tensor t;

    (void)state;
    for (int call = 0; call < 6; call++) {
        open_all(WORLD_MEMORY);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            zarr_tensor_host(&t, rows[i].type, data, sizeof data, 2, lengths);
            if (call == 0 || call == 3 || call == 4 || rows[i].want != ZARR_OK) {
                assert_status(use_tensor(call, &t), rows[i].want);
                if (rows[i].says)
                    assert_says(rows[i].says);
            }
        }
        t.data_type = "int32";
        t.dtype = zarr_array_dtype(array);
        assert_status(use_tensor(call, &t), ZARR_ERR_INVALID);
        assert_says("dtype and data_type");
        close_all();
    }
}

/* A byte order in the name is that of the elements, unless byte_order says another. */
static void test_order_of_tensor(void **state)
{
    int32_t big[N], little[N];
    zarr_tensor t;

    (void)state;
    open_all(WORLD_MEMORY);
    zarr_tensor_host(&t, ">i4", big, sizeof big, 2, lengths);
    assert_ok(zarr_array_read(array, NULL, &t, NULL, &terr));
    zarr_tensor_host(&t, "<i4", little, sizeof little, 2, lengths);
    assert_ok(zarr_array_read(array, NULL, &t, NULL, &terr));
    for (int i = 0; i < N; i++)
        assert_int_equal((uint32_t)big[i], __builtin_bswap32((uint32_t)little[i]));
    t.byte_order = ZARR_ORDER_BIG;
    assert_ok(zarr_array_read(array, NULL, &t, NULL, &terr));
    assert_memory_equal(big, little, sizeof big);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null), cmocka_unit_test(test_type_of_tensor),
        cmocka_unit_test(test_order_of_tensor), cmocka_unit_test(test_no_kind)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
