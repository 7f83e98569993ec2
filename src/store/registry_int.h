/*
 * store/registry_int.h - what opening a store needs from the registry.
 */
#ifndef ZR_STORE_REGISTRY_INT_H
#define ZR_STORE_REGISTRY_INT_H

#include "store/store_int.h"

struct zr_store_row {
    struct zr_registered entry;
    zarr_store_vtable vt;
    const struct zr_store_native *native; /* NULL: registered from outside */
};

/* Finds the row for kind, or for the URL if kind is NULL. UNSUPPORTED names the unknown
 * scheme. */
zarr_status zr_store_registry_for_url(const struct zr_store_registry *r, const char *url,
                                      const char *kind, const struct zr_store_row **out,
                                      zarr_error *err);
/* True if a plug-in or the application registered a store under this name. */
bool zr_store_registry_is_foreign(const struct zr_store_registry *r, const char *name,
                                  size_t n);
/* Copies a vtable of any known size. INVALID if a required entry is missing. */
zarr_status zr_store_vtable_read(zarr_store_vtable *out, const zarr_store_vtable *vtable,
                                 zarr_error *err);

#endif
