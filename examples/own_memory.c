/* Introduces: zarr_memory_vtable, zarr_array_memory()
 *
 * Memory that only its own functions can use, such as a device's */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zarrc/plugin/plugin.h>
#include <zarrc/zarrc.h>

static zarr_status own_alloc(void *self, int32_t id, uint64_t bytes, zarr_memory *out,
                             zarr_error *err)
{
    (void)self, (void)err;
    *out = (zarr_memory){ZARR_DEVICE_EXT, id, malloc((size_t)bytes + 1), 0, bytes};
    return out->handle ? ZARR_OK : ZARR_ERR_NO_MEMORY;
}
static void own_free(void *self, zarr_memory *mem)
{
    (void)self;
    free(mem->handle);
}
static zarr_status own_copy(void *self, const zarr_memory *dst, const zarr_memory *src,
                            uint64_t bytes, void *stream, zarr_error *err)
{
    (void)self, (void)stream, (void)err;
    memcpy((char *)dst->handle + dst->offset, (char *)src->handle + src->offset, bytes);
    return ZARR_OK;
}

int main(void)
{
    const zarr_memory_vtable own = {
        sizeof own,      0, "own", ZARR_DEVICE_EXT, .alloc = own_alloc, .free = own_free,
        .copy = own_copy};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array_open_options opts = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    char text[] = "an array of any memory....";
    zarr_tensor dev = ZARR_TENSOR_INIT;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_memory mem = {0};
    zarr_error err = ZARR_ERROR_INIT;

    spec.ndim = 1, spec.shape = (uint64_t[]){26}, spec.data_type = "uint8";
    opts.device_type = ZARR_DEVICE_EXT, dev.ndim = 1, dev.shape = spec.shape;
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_context_register_memory(ctx, &own, NULL, "example", &err) ||
        zarr_store_open(&store, ctx, "memory:", NULL, &err) ||
        zarr_array_create(&array, store, "a", &spec, &opts, &err) ||
        (zarr_array_memory(array, &mem.device_type, &mem.device_id), /* dev names none */
         zarr_memory_alloc(&mem, ctx, mem.device_type, mem.device_id, 26, &err)) ||
        zarr_array_write_box(array, NULL, NULL, ZARR_UINT8, text, 26, &err) ||
        (dev.data = mem.handle, zarr_array_read(array, NULL, &dev, NULL, &err)) ||
        memcmp(mem.handle, text, 26) != 0)
        return fprintf(stderr, "%s\n", err.message), 1;
    zarr_memory_free(ctx, &mem), zarr_array_free(array), zarr_store_free(store);
    return zarr_context_free(ctx), 0;
}
