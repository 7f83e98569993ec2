/* Introduces: zarr_array_write_vlen(), zarr_array_read_vlen(), zarr_heap_create(),
 * zarr_heap_bytes()
 *
 * Text of any length: writes four names, reads all of them as one column of offsets and
 * bytes, and two of them as a tensor, whose bytes are in a heap. Usage: text DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static const char letters[] = "LausanneRomaÅrhus";
static const uint64_t offsets[] = {0, 8, 12, 12, 18}; /* the third name is empty */

int main(int argc, char **argv)
{
    zarr_store_options create = ZARR_STORE_OPTIONS_INIT;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_vlen_column names = ZARR_VLEN_COLUMN_INIT;
    zarr_vlen_column column = ZARR_VLEN_COLUMN_INIT;
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_selection *odd = NULL;
    zarr_vlen two[2];
    zarr_tensor tensor;
    zarr_error err = ZARR_ERROR_INIT;

    names.n = 4;
    names.offsets = offsets;
    names.bytes = (const uint8_t *)letters;
    spec.data_type = "string";
    spec.ndim = 1;
    spec.shape = (uint64_t[]){4};
    create.flags = ZARR_STORE_CREATE;
    zarr_tensor_host(&tensor, "string", two, sizeof two, 1, (uint64_t[]){2});
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "example.zarr", &create,
                        &err) ||
        zarr_array_create(&array, store, "names", &spec, NULL, &err) ||
        zarr_array_write_vlen(array, NULL, &names, NULL, &err) ||
        zarr_array_read_vlen(array, NULL, &column, NULL, &err) ||
        zarr_selection_parse(&odd, 1, spec.shape, "1::2", &err) ||
        zarr_heap_create(&opts.heap, ctx, 0, &err) || /* takes the bytes of a tensor */
        zarr_array_read(array, odd, &tensor, &opts, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    for (uint64_t i = 0; i < column.n; i++) /* text has no NUL at its end */
        printf("%d: %.*s\n", (int)i, (int)(column.offsets[i + 1] - column.offsets[i]),
               (const char *)column.bytes + column.offsets[i]);
    for (int i = 0; i < 2; i++)
        printf("%.*s has %d bytes\n", (int)two[i].bytes, (const char *)two[i].data,
               (int)two[i].bytes);
    printf("the heap has %d bytes\n", (int)zarr_heap_bytes(opts.heap));
    zarr_vlen_column_free(&column);
    zarr_heap_free(opts.heap); /* frees the text of `two` */
    zarr_selection_free(odd);
    zarr_array_free(array), zarr_store_free(store);
    zarr_context_free(ctx);
    return 0;
}
