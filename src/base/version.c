/*
 * base/version.c - which zarrc this is, at run time.
 */
#include <zarrc/version.h>

const char *zarr_version(void)
{
    return ZARR_VERSION_STRING;
}

uint32_t zarr_version_number(void)
{
    return ZARR_VERSION_NUMBER;
}
