/*
 * tests/fakedev/plugin.c - the fake device as a plug-in, with the number of CUDA, so that
 * a binding can be tested without a GPU. Stream 1 is the default stream, as it is in
 * CUDA.
 */
#include "fakedev.h"

#include <zarrc/plugin/plugin.h>

static const zarr_memory_vtable *late;
static zarr_memory_vtable table;
static void *device, *default_stream;

static zarr_status order(void *self, void *stream, void *foreign, zarr_error *err)
{
    return late->order(self, stream, foreign == (void *)1 ? default_stream : foreign,
                       err);
}

/* What a test does with the default stream. */
ZARR_API int zarr_fakecuda_queue_copy(void *to, void *from, uint64_t bytes);
int zarr_fakecuda_queue_copy(void *to, void *from, uint64_t bytes)
{
    const zarr_memory dst = {ZARR_DEVICE_CUDA, 0, to, 0, bytes};
    const zarr_memory src = {ZARR_DEVICE_CUDA, 0, from, 0, bytes};

    return (int)late->copy(device, &dst, &src, bytes, default_stream, NULL);
}

ZARR_API int zarr_fakecuda_sync(void);
int zarr_fakecuda_sync(void)
{
    return (int)late->sync(device, default_stream, NULL);
}

ZARR_API void zarr_fakecuda_count(zarr_fakedev_counters *out,
                                  zarr_fakedev_late_counters *late_out);
void zarr_fakecuda_count(zarr_fakedev_counters *out, zarr_fakedev_late_counters *late_out)
{
    zarr_fakedev_count(device, out);
    zarr_fakedev_late_count(device, late_out);
}

static zarr_status load(const zarr_host *host, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    (void)self;
    if (!device) { /* one for the process, for all its contexts */
        late = zarr_fakedev_vtable_late();
        device = zarr_fakedev_create();
        zarr_fakedev_set_type(device, ZARR_DEVICE_CUDA);
        table = *late;
        table.name = "fakecuda";
        table.device_type = ZARR_DEVICE_CUDA;
        table.order = order;
        table.close = NULL;
        if (late->stream_open(device, 0, &default_stream, err))
            return err->code;
    }
    return host->register_memory(ctx, &table, device, err);
}

static const zarr_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi = ZARR_PLUGIN_ABI,
                                   .name = "fakecuda",
                                   .version = "1",
                                   .license = "Apache-2.0",
                                   .load = load};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
