/* Introduces: zarr_array_read_arrow(), zarr_array_write_arrow()
 *
 * Copies the names of one array to another as a column of Arrow, which pyarrow, DuckDB
 * and others take without a copy.
 */
#include <stdio.h>
#include <string.h>

#include <zarrc/arrow.h>
#include <zarrc/zarrc.h>

static const uint8_t text[] = "LausanneRomaDelft";
static const uint64_t offsets[] = {0, 8, 12, 17};

static zarr_status copy_names(zarr_array *from, zarr_array *to, zarr_error *err)
{
    struct ArrowSchema schema = {0};
    struct ArrowArray column = {0};
    zarr_status st = zarr_array_read_arrow(from, NULL, 0, &schema, &column, NULL, err);

    if (st != ZARR_OK)
        return st;
    fprintf(stderr, "%d elements of \"%s\"\n", (int)column.length, schema.format);
    st = zarr_array_write_arrow(to, NULL, &schema, &column, NULL, err);
    column.release(&column);
    schema.release(&schema);
    return st;
}

int main(void)
{
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_vlen_column names = ZARR_VLEN_COLUMN_INIT, copy = ZARR_VLEN_COLUMN_INIT;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *a = NULL, *b = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    names.n = 3, names.offsets = offsets;
    names.bytes = text;
    spec.data_type = "string", spec.ndim = 1, spec.shape = (uint64_t[]){3};
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, "memory:", NULL, &err) ||
        zarr_array_create(&a, store, "a", &spec, NULL, &err) ||
        zarr_array_create(&b, store, "b", &spec, NULL, &err) ||
        zarr_array_write_vlen(a, NULL, &names, NULL, &err) || copy_names(a, b, &err) ||
        zarr_array_read_vlen(b, NULL, &copy, NULL, &err) ||
        memcmp(copy.bytes, text, 17) != 0)
        return fprintf(stderr, "%s\n", err.message), 1;
    zarr_vlen_column_free(&copy);
    zarr_array_free(a), zarr_array_free(b), zarr_store_free(store),
        zarr_context_free(ctx);
    return 0;
}
