/*
 * codecs/lzma/lzma_filters.h - the members of lzma.
 */
#ifndef ZR_LZMA_FILTERS_FAMILY_H
#define ZR_LZMA_FILTERS_FAMILY_H

#include "codecs/codecs_int.h"

/* lzma: one entry of `filters`, as Python's module lzma names its members. */
enum zr_lzma_member {
    ZR_LZMA_PRESET,
    ZR_LZMA_DICT_SIZE,
    ZR_LZMA_LC,
    ZR_LZMA_LP,
    ZR_LZMA_PB,
    ZR_LZMA_MODE,
    ZR_LZMA_NICE_LEN,
    ZR_LZMA_MF,
    ZR_LZMA_DEPTH,
    ZR_LZMA_DIST,
    ZR_LZMA_START_OFFSET,
    ZR_LZMA_MEMBERS
};
struct zr_lzma_filter {
    int64_t id;                      /* liblzma's */
    int64_t member[ZR_LZMA_MEMBERS]; /* -1: not said */
};
#define ZR_LZMA_FILTERS_MAX 4
/* How many there are, in encoding order; 0: none are said. */
uint32_t zr_spec_lzma_filters(const zarr_codec_spec *spec,
                              struct zr_lzma_filter out[ZR_LZMA_FILTERS_MAX]);

#endif
