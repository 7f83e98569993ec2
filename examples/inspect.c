/* Introduces: zarr_array_explain(), zarr_explanation_text(), zarr_array_list_blocks(),
 * zarr_array_verify()
 *
 * Shows what a read would do, lists the stored blocks of an array, and checks that all of
 * them can be decoded. Usage: inspect DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static int show_chunk(void *user, const zarr_block_info *chunk)
{
    ++*(int *)user;
    printf("chunk %d is in %s\n", (int)chunk->coordinates[0], chunk->key);
    return 0; /* go on */
}

static int show_fault(void *user, const zarr_verify_item *fault)
{
    ++*(int *)user;
    printf("%s: %s\n", fault->key, zarr_status_text(fault->status));
    fprintf(stderr, "%s\n", fault->message);
    return 0;
}

int main(int argc, char **argv)
{
    zarr_store_options create = ZARR_STORE_OPTIONS_INIT;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    uint8_t data[6] = {1, 2, 0, 0, 5, 6}; /* zero is the fill value: not stored */
    char text[4000];
    zarr_explanation *plan = NULL;
    int n_chunks = 0, n_faults = 0;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_tensor tensor;
    zarr_error err = ZARR_ERROR_INIT;

    spec.data_type = "uint8", spec.ndim = 1, spec.shape = (uint64_t[]){6};
    spec.chunk_shape = (uint64_t[]){2}, create.flags = ZARR_STORE_CREATE;
    zarr_tensor_host(&tensor, "uint8", data, sizeof data, 1, (uint64_t[]){6});
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "example.zarr", &create,
                        &err) ||
        zarr_array_create(&array, store, "a", &spec, NULL, &err) ||
        zarr_array_write(array, NULL, &tensor, NULL, &err) ||
        zarr_array_explain(&plan, array, ZARR_EXPLAIN_READ, NULL, &tensor, NULL, &err) ||
        zarr_explanation_text(plan, ZARR_EXPLAIN_TEXT, text, sizeof text, NULL, &err) ||
        zarr_store_put(store, "a/c/2", "damaged", 7, NULL, &err) ||
        zarr_array_list_blocks(array, ZARR_BLOCKS_STORED, show_chunk, &n_chunks, NULL,
                               &err) ||
        zarr_array_verify(array, show_fault, &n_faults, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    fprintf(stderr, "%s\n", text);
    printf("%d of %d chunks, %d faults\n", n_chunks, (int)plan->chunks, n_faults);
    zarr_explanation_free(plan);
    zarr_array_free(array), zarr_store_free(store), zarr_context_free(ctx);
    return 0;
}
