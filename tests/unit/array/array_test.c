/* unit/array/array_test.c - helpers that make, fill and check arrays. */
#include "array_test.h"

zarr_array *make_array(struct world *w, const char *path, int kind, uint64_t rows,
                       uint64_t cols)
{
    const uint64_t shape[2] = {rows, cols}, chunk[2] = {2, 2}, shard[2] = {4, 4};
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .zarr_format = kind == 2 ? 2 : 3,
        .ndim = 2,
        .shape = shape,
        .chunk_shape = chunk,
        .shard_shape = kind == 4 ? shard : NULL,
        .data_type = "int32",
        .fill_value = "-1",
    };
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, w->store, path, &spec, NULL, &terr));
    return a;
}

static int32_t *copy_elements(zarr_array *a, zarr_tensor *t, uint64_t shape[2])
{
    const uint64_t *s = zarr_array_shape(a);
    const uint64_t bytes = s[0] * s[1] * sizeof(int32_t);
    int32_t *p = malloc(bytes + 1);

    shape[0] = s[0];
    shape[1] = s[1];
    assert_non_null(p);
    zarr_tensor_host(t, NULL, p, bytes, 2, shape);
    return p;
}

void fill_array(zarr_array *a)
{
    uint64_t shape[2];
    zarr_tensor t;
    int32_t *p = copy_elements(a, &t, shape);

    for (uint64_t i = 0; i < shape[0]; i++)
        for (uint64_t j = 0; j < shape[1]; j++)
            p[i * shape[1] + j] = (int32_t)(i * 1000 + j);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    free(p);
}

int32_t read_at(zarr_array *a, uint64_t row, uint64_t col)
{
    const uint64_t start[2] = {row, col}, count[2] = {1, 1};
    const uint64_t shape[2] = {1, 1};
    zarr_selection *sel = NULL;
    int32_t v = 0;
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, &v, sizeof v, 2, shape);
    assert_ok(zarr_selection_box(&sel, 2, zarr_array_shape(a), start, count, &terr));
    assert_ok(zarr_array_read(a, sel, &t, NULL, &terr));
    zarr_selection_free(sel);
    return v;
}

int count_wrong(zarr_array *a, uint64_t rows, uint64_t cols)
{
    uint64_t shape[2];
    zarr_tensor t;
    int32_t *p = copy_elements(a, &t, shape);
    int wrong = 0;

    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    for (uint64_t i = 0; i < shape[0]; i++)
        for (uint64_t j = 0; j < shape[1]; j++) {
            const int inside = i < rows && j < cols;

            wrong += p[i * shape[1] + j] != (inside ? (int32_t)(i * 1000 + j) : -1);
        }
    free(p);
    return wrong;
}
