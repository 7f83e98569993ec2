/*
 * base/system.h - a part of the door: this machine and process: processors, control
 * groups, clocks, random numbers.
 */
#ifndef ZR_BASE_SYSTEM_H
#define ZR_BASE_SYSTEM_H

#include <stdint.h>

/* ---- CPU ------------------------------------------------------------------ */

enum {
    ZR_CPU_SSE42 = 1,
    ZR_CPU_AVX2 = 2,
    ZR_CPU_PCLMUL = 4,
    ZR_CPU_SSSE3 = 8,
    ZR_CPU_FSRM = 16 /* kernels copy fast to any address */
};
/* The features of this CPU, without those named in ZARRC_DISABLE_CPU=avx2,... (or "all").
 * Set when the library is loaded, and frozen then. */
extern uint32_t zr_cpu_features;

uint32_t zr_cpu_count(void); /* CPUs that this process may use (affinity), at least 1 */
/* Where the kernel tells of control groups; tests have their own files. */
struct zr_cgroup_files {
    const char *root, *groups;
};
/* Cores (rounded up) and bytes of memory that the control groups of this process allow;
 * UINT64_MAX: there is no limit. files NULL: the kernel's. Each reads a few small files.
 */
uint64_t zr_cgroup_cores(const struct zr_cgroup_files *files);
uint64_t zr_cgroup_bytes(const struct zr_cgroup_files *files);

uint64_t zr_now_ns(void);        /* monotonic */
uint64_t zr_thread_cpu_ns(void); /* CPU time of the calling thread */
int64_t zr_wall_seconds(void);   /* since 1970 */
/* Unpredictable enough for temporary names; not for secrets. */
uint64_t zr_random_u64(void);

#endif
