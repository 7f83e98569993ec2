/*
 * zarrc/version.h - which zarrc this is, at compile time and at run time.
 */
#ifndef ZARRC_VERSION_H
#define ZARRC_VERSION_H

#include <zarrc/base.h>

#define ZARR_VERSION_MAJOR  0
#define ZARR_VERSION_MINOR  1
#define ZARR_VERSION_PATCH  0
#define ZARR_VERSION_STRING "0.1.0"
/** major * 1000000 + minor * 1000 + patch */
#define ZARR_VERSION_NUMBER 1000

ZARR_BEGIN_DECLS

/**
 * Version of the library that runs, as ZARR_VERSION_STRING writes it. Static text.
 * Thread class: frozen.
 */
ZARR_API const char *zarr_version(void);

/** Version of the library that runs, as ZARR_VERSION_NUMBER counts it. */
ZARR_API uint32_t zarr_version_number(void);

ZARR_END_DECLS

#endif
