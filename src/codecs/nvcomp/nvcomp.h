/*
 * codecs/nvcomp/nvcomp.h - the algorithms of `nvcomp_batch`, for its specification and
 * its implementation.
 */
#ifndef ZR_NVCOMP_H
#define ZR_NVCOMP_H

/* Indexes into zr_nvcomp_algorithms. */
enum zr_nvcomp_algorithm {
    ZR_NVCOMP_LZ4,
    ZR_NVCOMP_ZSTD,
    ZR_NVCOMP_DEFLATE,
    ZR_NVCOMP_SNAPPY,
    ZR_NVCOMP_GDEFLATE,
    ZR_NVCOMP_COUNT
};
/* Their names, ended by NULL. */
extern const char *const zr_nvcomp_algorithms[];

#endif
