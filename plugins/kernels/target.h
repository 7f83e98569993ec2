/*
 * kernels/target.h - what a target gives to the kernels: OpenCL C 1.2, CUDA (by clang or
 * nvcc), or host C17, where each kernel is a plain function, the twin that tests compare
 * the others with.
 *
 * A kernel is a function of the number of a work item, K_PLACE, which the target counts
 * from 0; more items than a kernel asks for do nothing. Decoders of streams give K_LANES
 * neighbouring items to a stream. These are a warp, or with OpenCL a whole work group.
 * All run the same code on the same bytes, and share only copies. K_MEET() waits for all
 * lanes, after which each sees what the others wrote.
 */
#ifndef K_TARGET_H
#define K_TARGET_H

#if defined(__OPENCL_C_VERSION__)
#    define K_KERNEL           __kernel void
#    define K_FUNCTION         static
#    define K_GLOBAL           __global
#    define K_PLACE            get_global_id(0)
#    define K_RINT(x)          rint(x)
#    define K_WORDS            1
#    define K_SHARED           __local
#    define K_ROOM(type, name) __local type name
#    define K_POPCOUNT(x)      popcount(x)
#    define K_HIGHEST(x)       (31 - clz(x))
#    if !defined(K_LANES) || K_LANES == 1
#        define K_MEET() ((void)0)
#    else
#        define K_ATOMIC_MAX(place, x) ((void)atomic_max(place, x))
#        define K_MEET()               barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#    endif
typedef uchar k_u8;
typedef ushort k_u16;
typedef uint k_u32;
typedef ulong k_u64;
typedef long k_i64;
typedef uint4 k_quad;
#elif defined(__CUDA__) || defined(__CUDACC__)
#    define K_GLOBAL
#    define K_SHARED
#    define K_WORDS 1
#    define K_LANES 32
#    define K_TEAM  1
#    if defined(__clang__)
#        define K_KERNEL   extern "C" __attribute__((global)) void
#        define K_FUNCTION static __attribute__((device, always_inline)) inline
#        define K_PLACE                                                                  \
            ((k_u64)(k_u32)__nvvm_read_ptx_sreg_ctaid_x() *                              \
                 (k_u32)__nvvm_read_ptx_sreg_ntid_x() +                                  \
             (k_u32)__nvvm_read_ptx_sreg_tid_x())
#        define K_RINT(x)              __builtin_rint(x)
#        define K_MEET()               __nvvm_bar_warp_sync(0xFFFFFFFFU)
#        define K_ROOM(type, name)     static __attribute__((shared)) type name
#        define K_POPCOUNT(x)          ((k_u32)__builtin_popcount(x))
#        define K_HIGHEST(x)           (31 - (k_u32)__builtin_clz(x))
#        define K_ATOMIC_MAX(place, x) ((void)__nvvm_atom_max_gen_ui(place, x))
#        define K_TAKE(share, lane, x, from)                                             \
            ((k_u32)__nvvm_shfl_sync_idx_i32(0xFFFFFFFFU, (int)(x), (int)(from), 31))
#        define K_JOIN(share, lane, bits)                                                \
            __nvvm_vote_ballot_sync(0xFFFFFFFFU, (bits) != 0)
#        define K_BALLOT(x) __nvvm_vote_ballot_sync(0xFFFFFFFFU, (x) != 0)
#        define K_GROUP     ((k_u32)__nvvm_read_ptx_sreg_ntid_x())
#    else
#        define K_KERNEL                     extern "C" __global__ void
#        define K_FUNCTION                   static __device__ __forceinline__
#        define K_PLACE                      ((k_u64)blockIdx.x * blockDim.x + threadIdx.x)
#        define K_RINT(x)                    rint(x)
#        define K_MEET()                     __syncwarp()
#        define K_ROOM(type, name)           __shared__ type name
#        define K_POPCOUNT(x)                ((k_u32)__popc(x))
#        define K_HIGHEST(x)                 (31 - (k_u32)__clz((int)(x)))
#        define K_ATOMIC_MAX(place, x)       ((void)atomicMax(place, x))
#        define K_JOIN(share, lane, bits)    __ballot_sync(0xFFFFFFFFU, (bits) != 0)
#        define K_BALLOT(x)                  __ballot_sync(0xFFFFFFFFU, (x) != 0)
#        define K_TAKE(share, lane, x, from) __shfl_sync(0xFFFFFFFFU, x, (int)(from))
#        define K_GROUP                      ((k_u32)blockDim.x)
#    endif
typedef unsigned char k_u8;
typedef unsigned short k_u16;
typedef unsigned k_u32;
typedef unsigned long long k_u64;
typedef long long k_i64;
#    if defined(__clang__)
typedef unsigned k_quad __attribute__((ext_vector_type(4)));
#    else
typedef uint4 k_quad;
#    endif
#else
#    include <math.h>
#    include <stdint.h>
#    define K_KERNEL   static inline void
#    define K_FUNCTION static inline
#    define K_GLOBAL
#    define K_PLACE   k_place
#    define K_RINT(x) rint(x)
#    define K_SHARED
#    define K_POPCOUNT(x) ((k_u32)__builtin_popcount(x))
#    define K_HIGHEST(x)  (31 - (k_u32)__builtin_clz(x))
#    define K_WORDS       0 /* alignment and aliasing: bytes only */
#    if !defined(K_TEAM)
#        define K_ROOM(type, name) type name
#        define K_MEET()           ((void)0)
#    endif
typedef uint8_t k_u8;
typedef uint16_t k_u16;
typedef uint32_t k_u32;
typedef uint64_t k_u64;
typedef int64_t k_i64;
#    if defined(K_TEAM)
typedef struct {
    k_u32 x, y, z, w;
} __attribute__((may_alias, aligned(16))) k_quad;
#    endif
static _Thread_local k_u64 k_place;
/* Runs a kernel for n work items: K_RUN(n, k_copy_boxes(dst, src, boxes, 1, n)); */
#    define K_RUN(n, call)                                                               \
        for (k_place = 0; k_place < (n); k_place++)                                      \
        call
#endif

#if defined(__clang__) || defined(__CUDACC__) || defined(__OPENCL_C_VERSION__)
#    define K_UNROLL _Pragma("unroll")
#else
#    define K_UNROLL
#endif
#if !defined(K_LANES)
#    define K_LANES 1
#endif
/* Whether a stream that is decoded has a team of lanes. That needs K_TAKE(), K_BALLOT(),
 * the lanes of which a value is not 0, and K_GROUP, the size of a group, which must be
 * K_LANES. The tests have a team in host C, and define what it needs. */
#if !defined(K_TEAM)
#    define K_TEAM 0
#endif
#if !defined(K_ATOMIC_MAX)
#    define K_ATOMIC_MAX(place, x) (*(place) = *(place) < (x) ? (x) : *(place))
#endif
#define K_LANE   ((k_u32)(K_PLACE % K_LANES))
#define K_STREAM (K_PLACE / K_LANES) /* the number of this item's stream */

/* K_JOIN(): the bits of all lanes, of which each has only the bit of its own number, so
 * there are 32 lanes at most. K_TAKE(): the value of another lane. `share` is K_SHARED
 * memory, a number for each lane. */
#if defined(__OPENCL_C_VERSION__) && K_LANES > 1
K_FUNCTION k_u32 k_join(__local k_u32 *share, k_u32 lane, k_u32 bits)
{
    share[lane] = bits;
    barrier(CLK_LOCAL_MEM_FENCE);
    bits = 0;
    for (k_u32 k = 0; k < K_LANES; k++)
        bits |= share[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    return bits;
}
K_FUNCTION k_u32 k_take(__local k_u32 *share, k_u32 lane, k_u32 x, k_u32 from)
{
    share[lane] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    x = share[from];
    barrier(CLK_LOCAL_MEM_FENCE);
    return x;
}
#    define K_TAKE(share, lane, x, from) k_take(share, lane, x, from)
#    define K_JOIN(share, lane, bits)    k_join(share, lane, bits)
#elif K_LANES == 1
#    define K_JOIN(share, lane, bits) (bits)
#endif

#endif
