/*
 * http/http.h - the door to HTTP(S) stores: read-only, the value of a key is what a GET
 * of its URL gives. The room net carries the requests out.
 *
 * NOT_FOUND means that the server said 404 or 410, or, with the option
 * "denied_is_missing", 403.
 *
 * Thread class: shared.
 */
#ifndef ZR_HTTP_H
#define ZR_HTTP_H

#include "base/base.h"
#include "store/store.h"

/* The functions of the store, without `open`. */
extern const zarr_store_vtable zr_http_vtable;

/* Makes the `self` for the functions. Sends no request. Copies env, which must outlive
 * it, as for zr_store_open(). config: the JSON object of zarr_store_options; NULL: none.
 * INVALID: the URL or an option is wrong. UNSUPPORTED: there is no libcurl. */
zarr_status zr_http_open(void **self, const struct zr_store_env *env, const char *url,
                         const char *config, zarr_error *err);

#endif
