/*
 * base/version.c - the version of zarrc at run time. The numbers are only in
 * zarrc/version.h, where the build reads them too. A program compares the version that it
 * was compiled with (the macros) with the version that it runs with (these functions).
 * Thread class: frozen.
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
