/*
 * ports/cuda/check_driver.c - compares the plug-in's declarations of the driver API with
 * cuda.h. It is compiled where cuda.h is found, and not run.
 */
#include <cuda.h>
#define CUDA_DRIVER_OF_CUDA_H
#include "driver.h"

#define SAME_NUMBER(name, value) _Static_assert((int)(name) == (value), #name);
CUDA_DRIVER_NUMBERS(SAME_NUMBER)
#if CUDA_VERSION >= 13000
CUDA_DRIVER_NEWER_NUMBERS(SAME_NUMBER)
#endif

#define SAME_CALL(name, arguments)                                                       \
    _Static_assert(                                                                      \
        __builtin_types_compatible_p(__typeof__(&name), CUresult(*) arguments), #name);
CUDA_DRIVER_CALLS(SAME_CALL)
CUDA_DRIVER_NEWER(SAME_CALL)

_Static_assert(sizeof(CUmemPoolProps) == 88, "size");
_Static_assert(offsetof(CUmemPoolProps, location) == 8, "place");
_Static_assert(offsetof(CUmemPoolProps, maxSize) == 24, "place");
