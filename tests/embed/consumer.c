/*
 * embed/consumer.c - a program of a project that uses zarrc. It compiles as C99, C17 and
 * C++17, uses every _INIT macro (tests/embed/run_installed checks that), and writes and
 * reads an array, so that a static link needs the whole library. In C++ it
 * also includes zarrc/zarrc.hpp.
 */
#include <stdio.h>
#include <string.h>

#include <zarrc/arrow.h>
#include <zarrc/dlpack.h>
#include <zarrc/zarrc.h>
#ifdef __cplusplus
#    include <zarrc/zarrc.hpp>
#endif

enum {
    ROWS = 5,
    COLUMNS = 7
};

#define CHECK_INIT(type, init)                                                           \
    do {                                                                                 \
        type one = init;                                                                 \
        if (one.struct_size != sizeof(type)) {                                           \
            fprintf(stderr, "%s: wrong size\n", #init);                                  \
            n++;                                                                         \
        }                                                                                \
    } while (0)

/* The number of _INIT macros that give a wrong size. */
static int check_inits(void)
{
    int n = 0;

    CHECK_INIT(zarr_array_open_options, ZARR_ARRAY_OPEN_OPTIONS_INIT);
    CHECK_INIT(zarr_array_spec, ZARR_ARRAY_SPEC_INIT);
    CHECK_INIT(zarr_block_batch, ZARR_BLOCK_BATCH_INIT);
    CHECK_INIT(zarr_block_sink, ZARR_BLOCK_SINK_INIT);
    CHECK_INIT(zarr_context_options, ZARR_CONTEXT_OPTIONS_INIT);
    CHECK_INIT(zarr_copy_options, ZARR_COPY_OPTIONS_INIT);
    CHECK_INIT(zarr_delete_options, ZARR_DELETE_OPTIONS_INIT);
    CHECK_INIT(zarr_dlpack_view, ZARR_DLPACK_VIEW_INIT);
    CHECK_INIT(zarr_dtype_field, ZARR_DTYPE_FIELD_INIT);
    CHECK_INIT(zarr_group_open_options, ZARR_GROUP_OPEN_OPTIONS_INIT);
    CHECK_INIT(zarr_group_spec, ZARR_GROUP_SPEC_INIT);
    CHECK_INIT(zarr_io_options, ZARR_IO_OPTIONS_INIT);
    CHECK_INIT(zarr_tuning, ZARR_TUNING_INIT);
    CHECK_INIT(zarr_limits, ZARR_LIMITS_INIT);
    CHECK_INIT(zarr_migrate_options, ZARR_MIGRATE_OPTIONS_INIT);
    CHECK_INIT(zarr_repack_result, ZARR_REPACK_RESULT_INIT);
    CHECK_INIT(zarr_stats, ZARR_STATS_INIT);
    CHECK_INIT(zarr_store_caps, ZARR_STORE_CAPS_INIT);
    CHECK_INIT(zarr_store_counters, ZARR_STORE_COUNTERS_INIT);
    CHECK_INIT(zarr_store_options, ZARR_STORE_OPTIONS_INIT);
    CHECK_INIT(zarr_store_value, ZARR_STORE_VALUE_INIT);
    CHECK_INIT(zarr_tensor, ZARR_TENSOR_INIT);
    CHECK_INIT(zarr_vlen_column, ZARR_VLEN_COLUMN_INIT);
    CHECK_INIT(zarr_reencode_result, ZARR_REENCODE_RESULT_INIT);
    CHECK_INIT(zarr_reencode_options, ZARR_REENCODE_OPTIONS_INIT);
    CHECK_INIT(zarr_progress, ZARR_PROGRESS_INIT);
    CHECK_INIT(zarr_verify_result, ZARR_VERIFY_RESULT_INIT);
    CHECK_INIT(zarr_verify_options, ZARR_VERIFY_OPTIONS_INIT);
    CHECK_INIT(zarr_diff_result, ZARR_DIFF_RESULT_INIT);
    CHECK_INIT(zarr_diff_options, ZARR_DIFF_OPTIONS_INIT);
    CHECK_INIT(zarr_list_options, ZARR_LIST_OPTIONS_INIT);
    CHECK_INIT(zarr_open_options, ZARR_OPEN_OPTIONS_INIT);
    CHECK_INIT(zarr_consolidate_options, ZARR_CONSOLIDATE_OPTIONS_INIT);
    CHECK_INIT(zarr_shape_options, ZARR_SHAPE_OPTIONS_INIT);
    CHECK_INIT(zarr_summary_options, ZARR_SUMMARY_OPTIONS_INIT);
    return n;
}

/* An array in memory, with a codec that needs another library. */
static zarr_status round_trip(zarr_store *store, zarr_array **array, zarr_error *err)
{
    const uint64_t shape[2] = {ROWS, COLUMNS}, chunks[2] = {2, 3};
    const uint64_t extent[2] = {ROWS, COLUMNS};
    int32_t written[ROWS * COLUMNS], read[ROWS * COLUMNS];
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_tensor from, to;
    zarr_status st;
    int32_t i;

    for (i = 0; i < ROWS * COLUMNS; i++) {
        written[i] = i * i - 100;
        read[i] = 0;
    }
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk_shape = chunks;
    spec.data_type = "int32";
    spec.codecs = "[{\"name\": \"blosc\", \"configuration\": {\"cname\": \"zstd\", "
                  "\"clevel\": 5, \"shuffle\": \"shuffle\", \"typesize\": 4, "
                  "\"blocksize\": 0}}]";
    zarr_tensor_host(&from, NULL, written, sizeof written, 2, extent);
    zarr_tensor_host(&to, NULL, read, sizeof read, 2, extent);
    st = zarr_array_create(array, store, "a", &spec, NULL, err);
    if (st == ZARR_OK)
        st = zarr_array_write(*array, NULL, &from, &opts, err);
    if (st == ZARR_OK)
        st = zarr_array_read(*array, NULL, &to, &opts, err);
    if (st == ZARR_OK && memcmp(written, read, sizeof read) != 0) {
        strcpy(err->message, "what was read is not what was written");
        st = ZARR_ERR_INTERNAL;
    }
    return st;
}

int main(void)
{
    zarr_context_options context_opts = ZARR_CONTEXT_OPTIONS_INIT;
    zarr_store_options store_opts = ZARR_STORE_OPTIONS_INIT;
    zarr_error err = ZARR_ERROR_INIT;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_status st;

    if (strcmp(zarr_version(), ZARR_VERSION_STRING) != 0 || check_inits() != 0)
        return 1;
    st = zarr_context_create(&ctx, &context_opts, &err);
    if (st == ZARR_OK)
        st = zarr_store_open(&store, ctx, "memory:", &store_opts, &err);
    if (st == ZARR_OK)
        st = round_trip(store, &array, &err);
#ifdef __cplusplus
    if (st == ZARR_OK && zarr::array(zarr_array_ref(array)).n_items() != ROWS * COLUMNS)
        return 1;
#endif
    if (st != ZARR_OK)
        fprintf(stderr, "%s: %s\n", zarr_status_text(st), err.message);
    zarr_array_free(array);
    zarr_store_free(store);
    zarr_context_free(ctx);
    return st != ZARR_OK;
}
