/*
 * cuda/plugin.c - the plug-in's door. Loading it starts no driver and needs no GPU: the
 * first call that needs a device says what is missing.
 */
#include "cufile.h"
#include "device.h"
#include "kernels/text.h"
#include "nvcomp.h"

#include <stdlib.h>

static zarr_status load(const zarr_host *host, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    static const zarr_memory_vtable *const kinds[] = {&cuda_memory, &cuda_host_memory,
                                                      &cuda_managed_memory};
    const char *nvcomp = host->option_text(ctx, "nvcomp");
    const char *library = host->option_text(ctx, "cufile");
    zarr_status st;

    (void)self;
    port_host = host;
    st = driver_watch_forks(err);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && st == ZARR_OK; i++)
        st = host->register_memory(ctx, kinds[i], NULL, err);
    if (st == ZARR_OK && kernels_ptx_bytes + kernels_fatbin_bytes > 0)
        st = port_register_codecs(ctx, err);
    nvcomp_place(nvcomp ? nvcomp : secure_getenv("ZARRC_NVCOMP"));
    if (st == ZARR_OK)
        st = nvcomp_register(host, ctx, err);
    cufile_place(library ? library : secure_getenv("ZARRC_CUFILE"));
    if (st == ZARR_OK) {
        devices_hold();
        gds_hold();
    }
    return st;
}

static void unload(void *self)
{
    (void)self;
    gds_release();
    devices_release();
}

static const zarr_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi = ZARR_PLUGIN_ABI,
                                   .name = "cuda",
                                   .version = "1",
                                   .license = "MIT",
                                   .load = load,
                                   .unload = unload};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
