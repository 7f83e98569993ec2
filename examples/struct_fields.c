/* Introduces: zarr_io_options, zarr_dtype_field_find()
 *
 * Elements with fields: writes whole records, reads one field of all of them, and changes
 * that field alone. Usage: struct_fields DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

struct record { /* as the data type below: its fields have no gaps between them */
    int32_t station;
    float temperature, east, north; /* and wind */
};

int main(int argc, char **argv)
{
    zarr_store_options create = ZARR_STORE_OPTIONS_INIT;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    struct record records[3] = {{7, 11.5F, 1, 2}, {8, 12.5F, 3, 4}, {9, 13.5F, 5, 6}};
    zarr_dtype_field info = ZARR_DTYPE_FIELD_INIT;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_tensor whole, field;
    zarr_error err = ZARR_ERROR_INIT;
    float kelvin[3];

    opts.field = "temperature";
    spec.data_type = "[[\"station\", \"<i4\"],"
                     " [\"temperature\", \"<f4\"],"
                     " [\"east\", \"<f4\"],"
                     " [\"north\", \"<f4\"]]";
    spec.ndim = 1;
    spec.shape = (uint64_t[]){3};
    create.flags = ZARR_STORE_CREATE;
    zarr_tensor_host(&whole, spec.data_type, records, sizeof records, 1, (uint64_t[]){3});
    zarr_tensor_host(&field, "float32", kelvin, sizeof kelvin, 1, (uint64_t[]){3});
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "example.zarr", &create,
                        &err) ||
        zarr_array_create(&array, store, "weather", &spec, NULL, &err) ||
        zarr_dtype_field_find(zarr_array_dtype(array), "north", &info, &err) ||
        zarr_array_write(array, NULL, &whole, NULL, &err) ||
        zarr_array_read(array, NULL, &field, &opts, &err)) /* the temperatures only */
        return fprintf(stderr, "%s\n", err.message), 1;
    for (int i = 0; i < 3; i++)
        kelvin[i] += 273.15F;
    if (zarr_array_write(array, NULL, &field, &opts, &err) || /* changes no other field */
        zarr_array_read(array, NULL, &whole, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    for (int i = 0; i < 3; i++)
        printf("station %d: %.2f K, wind %g %g\n", records[i].station,
               (double)records[i].temperature, (double)records[i].east,
               (double)records[i].north);
    printf("north: %s at byte %d\n", zarr_dtype_name(info.dtype), (int)info.offset);
    zarr_array_free(array), zarr_store_free(store), zarr_context_free(ctx);
    return 0;
}
