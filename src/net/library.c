/*
 * net/library.c - loads a shared library into a table of its functions.
 *
 * Thread class: plain function.
 */
#include "net/net_int.h"

#include <dlfcn.h>
#include <string.h>

zarr_status zr_net_load_library(void *table, const char *const *files,
                                const struct zr_net_symbol *symbols, size_t n,
                                const char *need, zarr_error *err)
{
    void *handle = NULL;

    for (const char *const *file = files; !handle && *file; file++)
        handle = dlopen(*file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s: cannot load %s", need, files[0]);
    for (size_t i = 0; i < n; i++) {
        void *const symbol = dlsym(handle, symbols[i].name);

        if (!symbol)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s: the loaded one lacks %s()",
                           need, symbols[i].name);
        /* C has no cast between object and function pointers */
        memcpy((char *)table + symbols[i].at, &symbol, sizeof symbol);
    }
    return ZARR_OK;
}
