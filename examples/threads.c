/* Introduces: zarr_array_ref(), zarr_selection_box()
 *
 * Four threads write and read regions of one array through one handle, which each of them
 * owns. All regions are in one chunk: the library locks it for each writer. */
#include <pthread.h>
#include <stdio.h>
#include <zarrc/zarrc.h>

static const uint64_t shape[1] = {1000}, count[1] = {250};

struct part {
    pthread_t thread;
    zarr_array *array;
    uint64_t start, sum;
};

static void *work(void *arg)
{
    struct part *p = arg;
    zarr_selection *box = NULL;
    zarr_tensor tensor;
    zarr_error err = ZARR_ERROR_INIT; /* each thread has its own */
    int32_t data[250];

    for (int i = 0; i < 250; i++)
        data[i] = (int32_t)p->start + i;
    zarr_tensor_host(&tensor, "int32", data, sizeof data, 1, count);
    if (zarr_selection_box(&box, 1, shape, &p->start, count, &err) ||
        zarr_array_write(p->array, box, &tensor, NULL, &err) ||
        zarr_array_read(p->array, box, &tensor, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), NULL;
    for (int i = 0; i < 250; i++)
        p->sum += (uint64_t)data[i];
    zarr_selection_free(box), zarr_array_free(p->array);
    return NULL;
}

int main(void)
{
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    struct part part[4] = {0};
    zarr_context *ctx = NULL; /* one for all threads */
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    spec.data_type = "int32", spec.ndim = 1, spec.shape = shape;
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, "memory:", NULL, &err) ||
        zarr_array_create(&array, store, "a", &spec, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    for (int i = 0; i < 4; i++) {
        part[i].array = zarr_array_ref(array), part[i].start = 250 * (uint64_t)i;
        pthread_create(&part[i].thread, NULL, work, &part[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(part[i].thread, NULL), printf("%d\n", (int)part[i].sum);
    zarr_array_free(array), zarr_store_free(store), zarr_context_free(ctx);
    return 0;
}
