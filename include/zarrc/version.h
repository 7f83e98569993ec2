/**
 * @file
 * Which version of libzarrc this is, at compile time and at run time.
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
 * @name The version of the library
 * The macros ZARR_VERSION_STRING and ZARR_VERSION_NUMBER tell the version of the headers.
 * The functions tell the version of the library that runs, which can be newer.
 * @{
 */
/**
 * Returns the version of the library as text, such as "0.1.0".
 * @return static text
 */
ZARR_API const char *zarr_version(void);

/** Returns the version of the library as a number: major * 1000000 + minor * 1000 +
 * patch. */
ZARR_API uint32_t zarr_version_number(void);
/** @} */

ZARR_END_DECLS

#endif
