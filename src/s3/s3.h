/*
 * s3/s3.h - the door to S3 stores: the objects of a bucket below a prefix. S3 means AWS
 * and whatever speaks the same protocol at an endpoint. The room http reads values, as
 * from any server; this room adds where a bucket is, signatures, credentials, listings,
 * writes, and what the service's errors mean.
 *
 * NOT_FOUND means that the service said NoSuchKey. A bucket that does not exist, an
 * unknown error, or a 404 that does not say of what, is an error.
 *
 * Thread class: shared.
 */
#ifndef ZR_S3_H
#define ZR_S3_H

#include "base/base.h"
#include "store/store.h"

/* The functions of the store, without `open`. */
extern const zarr_store_vtable zr_s3_vtable;

/* A variable of the environment; NULL: it is not set. */
typedef const char *zr_s3_env(const char *name);

/* Makes the `self` for the functions. Sends no request. Reads ~/.aws. Copies env, which
 * must outlive it, as for zr_store_open(). config: the JSON object of zarr_store_options;
 * NULL: none. INVALID: the URL or an option is wrong. UNSUPPORTED: a library is missing.
 */
zarr_status zr_s3_open(void **self, const struct zr_store_env *env, const char *url,
                       const char *config, zr_s3_env *variable, zarr_error *err);

#endif
