/* fuzz/fuzz_dec_blosc.c - blosc containers: header, table of blocks, inner streams. */
#define FUZZ_CODECS                                                                      \
    "{\"id\":\"blosc\",\"cname\":\"lz4\"}",                                              \
        "{\"id\":\"blosc\",\"cname\":\"zstd\",\"shuffle\":2,\"clevel\":1}",              \
        "{\"id\":\"blosc\",\"cname\":\"blosclz\",\"shuffle\":0}",                        \
        "{\"id\":\"blosc\",\"cname\":\"zlib\",\"clevel\":1}"
#include "fuzz_dec.h"
