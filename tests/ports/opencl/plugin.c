/*
 * ports/opencl/plugin.c - the plug-in's door. PoCL, an OpenCL of the CPU, stands for a
 * device: it has queues of its own, and memory that has no address on the host.
 */
#include "device.h"

static zarr_status load(const zarr_host *h, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    struct device *d;
    zarr_status st;

    (void)self;
    port_host = h;
    st = device_open(&d, err);
    if (st != ZARR_OK)
        return st;
    st = h->register_memory(ctx, &opencl_memory, NULL, err);
    if (st == ZARR_OK)
        st = port_register_codecs(ctx, err);
    if (st != ZARR_OK)
        device_close();
    return st;
}

static void unload(void *self)
{
    (void)self;
    device_close();
}

static const zarr_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi = ZARR_PLUGIN_ABI,
                                   .name = "opencl",
                                   .version = "1",
                                   .license = "MIT",
                                   .load = load,
                                   .unload = unload};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
