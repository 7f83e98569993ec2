/* Introduces: zarr_dtype_v3_name(), zarr_dtype_v3_configuration(), zarr_dtype_codec(),
 * zarr_dtype_components(), zarr_dtype_component_bits(), zarr_dtype_experimental(),
 * zarr_dtype_find_order(), zarr_dtype_dlpack(), zarr_dtype_from_dlpack(),
 * zarr_dtype_compare()
 *
 * What zarrc knows about data types, without a store.
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static const char *text(const char *maybe)
{
    return maybe ? maybe : "-";
}

static zarr_status show(zarr_context *ctx, const char *name, zarr_error *err)
{
    const zarr_dtype *t = NULL, *same = NULL;
    uint32_t order;
    uint8_t code, bits;
    uint16_t lanes;

    if (zarr_dtype_find_order(&t, ctx, name, &order, err))
        return err->code;
    printf("%s %s: codec %s, %d x %d bits%s", text(zarr_dtype_v3_name(t)),
           text(zarr_dtype_v3_configuration(t)), zarr_dtype_codec(t),
           (int)zarr_dtype_components(t), (int)zarr_dtype_component_bits(t),
           zarr_dtype_experimental(t) ? ", experimental" : "");
    if (zarr_dtype_dlpack(t, &code, &bits, &lanes) ==
        0) { /* -1: DLPack has no such type */
        if (zarr_dtype_from_dlpack(&same, ctx, code, bits, lanes, err))
            return err->code;
        printf(", DLPack %d/%d: %s", code, bits, zarr_dtype_name(same));
    }
    printf("%s\n", order == ZARR_ORDER_BIG ? ", big-endian memory" : "");
    return ZARR_OK;
}

int main(void)
{
    const char *const names[] = {"int16",    ">i2",    "complex64",
                                 "bfloat16", "string", "<M8[us]"};
    const double low = -1, high = 2;
    const zarr_dtype *t = NULL;
    zarr_context *ctx = NULL;
    zarr_error err = ZARR_ERROR_INIT;
    zarr_status st = zarr_context_create(&ctx, NULL, &err);

    for (size_t i = 0; st == ZARR_OK && i < sizeof names / sizeof *names; i++)
        st = show(ctx, names[i], &err);
    if (st == ZARR_OK)
        st = zarr_dtype_find(&t, ctx, "float64", &err);
    if (st == ZARR_OK)
        printf("%d\n", zarr_dtype_compare(t, &low, &high) < 0);
    else
        fprintf(stderr, "%s\n", err.message);
    zarr_context_free(ctx);
    return st != ZARR_OK;
}
