/*
 * abi/consumer/main.c - the smallest program of somebody else. It is built three
 * ways against an installed zarrc (tests/abi/consume) and says which one runs.
 */
#include <stdio.h>
#include <string.h>

#include <zarrc/zarrc.h>

int main(void)
{
    printf("zarrc %s\n", zarr_version());
    return strcmp(zarr_version(), ZARR_VERSION_STRING) != 0;
}
