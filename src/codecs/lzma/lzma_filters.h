/*
 * codecs/lzma/lzma_filters.h - the filters in a configuration of lzma.
 */
#ifndef ZR_LZMA_FILTERS_FAMILY_H
#define ZR_LZMA_FILTERS_FAMILY_H

#include "codecs/codecs_int.h"

/* The members of one entry of `filters`, with the names of Python's module lzma. */
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
    int64_t id;                      /* as in liblzma */
    int64_t member[ZR_LZMA_MEMBERS]; /* -1 if absent */
};
#define ZR_LZMA_FILTERS_MAX 4
/* Reads the filters in the order of encoding. Returns their number, which may be 0. */
uint32_t zr_spec_lzma_filters(const zarr_codec_spec *spec,
                              struct zr_lzma_filter out[ZR_LZMA_FILTERS_MAX]);

#endif
