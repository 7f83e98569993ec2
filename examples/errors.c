/* Introduces: zarr_error, zarr_status_text()
 *
 * What a program does when a call fails: the code decides, the message tells a person
 * why. Usage: errors DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static zarr_status tell(const char *what, zarr_status st, const zarr_error *err)
{
    printf("%s: %s\n", what, zarr_status_text(st));
    if (st != ZARR_OK) /* only a failure fills `err` */
        fprintf(stderr, "%s\n", err->message);
    return st;
}

/* Other writers may win a few times: try again. */
static zarr_status append_again(zarr_array *array, const zarr_tensor *src,
                                zarr_error *err)
{
    zarr_status st = zarr_array_append(array, 0, src, NULL, NULL, err);

    for (int i = 0; st == ZARR_ERR_CONFLICT && i < 10; i++)
        st = zarr_array_append(array, 0, src, NULL, NULL, err);
    return st;
}

int main(int argc, char **argv)
{
    zarr_store_options create = ZARR_STORE_OPTIONS_INIT;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    int8_t data[6] = {1, 2, 3};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_tensor three, six;
    zarr_error e = ZARR_ERROR_INIT;

    spec.ndim = 1, spec.shape = (uint64_t[]){3}, spec.data_type = "int8";
    create.flags = ZARR_STORE_CREATE;
    zarr_tensor_host(&three, "int8", data, 3, 1, (uint64_t[]){3});
    zarr_tensor_host(&six, "int8", data, 6, 1, (uint64_t[]){6});
    if (zarr_context_create(&ctx, NULL, &e) ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "example.zarr", &create, &e))
        return fprintf(stderr, "%s\n", e.message), 1;
    if (tell("open", zarr_array_open(&array, store, "a", NULL, &e), &e) ==
        ZARR_ERR_NOT_FOUND) /* does not exist yet: create it */
        tell("create", zarr_array_create(&array, store, "a", &spec, NULL, &e), &e);
    tell("append", append_again(array, &three, &e), &e);
    zarr_array_free(array);
    if (tell("create", zarr_array_create(&array, store, "a", &spec, NULL, &e), &e) ==
        ZARR_ERR_EXISTS) /* exists, and is not overwritten: open it */
        tell("open", zarr_array_open(&array, store, "a", NULL, &e), &e);
    tell("read", zarr_array_read(array, NULL, &three, NULL, &e), &e); /* has 6 elements */
    if (tell("damage", zarr_store_put(store, "a/c/1", "?", 1, NULL, &e), &e) == ZARR_OK)
        tell("read", zarr_array_read(array, NULL, &six, NULL, &e), &e); /* names a/c/1 */
    zarr_array_free(array), zarr_store_free(store), zarr_context_free(ctx);
    return 0;
}
