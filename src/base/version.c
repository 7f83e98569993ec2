/*
 * base/version.c - which zarrc this is, at run time. The numbers live in
 * zarrc/version.h alone, where the build reads them too; a program compares
 * the version it was compiled with (the macros) with the version it runs with (these).
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
