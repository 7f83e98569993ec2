/* kernels/kernels.cu - the kernels as one CUDA translation unit. */
#include "kernels.h"
