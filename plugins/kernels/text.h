/*
 * kernels/text.h - the kernels as text, for plug-ins that give them to a compiler or a
 * driver at run time. The build writes both.
 */
#ifndef K_TEXT_H
#define K_TEXT_H

#include <stddef.h>

/* OpenCL C 1.2. -DK_LANES=n: lanes of a stream, which must be the size of a work group
 * of k_decode(). Ends with a zero byte, which `bytes` does not count. */
extern const unsigned char kernels_opencl[];
extern const size_t kernels_opencl_bytes;

/* PTX for sm_75 and newer, with 32 lanes. Empty if the build had no clang. */
extern const unsigned char kernels_ptx[];
extern const size_t kernels_ptx_bytes;

/* The same as machine code for some devices, in the form that drivers of CUDA take. Empty
 * if the build had no nvcc. */
extern const unsigned char kernels_fatbin[];
extern const size_t kernels_fatbin_bytes;

#endif
