/*
 * kernels/kernels.h - all kernels, in one source for OpenCL C 1.2, CUDA and host C. The
 * text of the kernels for OpenCL is these files in this order. docs/internals/kernels.md
 * has the shapes of work, the statuses and what a new kernel needs.
 *
 * They use no C library. Chunks are hostile: each read and each write is checked, every
 * loop ends, and damage is a status.
 */
#ifndef K_KERNELS_H
#define K_KERNELS_H

#include "target.h"
#include "types.h"
#include "copy.h"
#include "planes.h"
#include "lz.h"
#include "team.h"
#include "team_formats.h"
#include "team_decode.h"
#include "decode.h"
#include "blosc1.h"
#include "lz4_encode.h"
#include "zstd_blocks.h"
#include "zstd_streams.h"
#include "zstd_execute.h"
#include "blosc1_encode.h"
#include "stream_check.h"
#include "sums.h"
#include "filters.h"

#endif
