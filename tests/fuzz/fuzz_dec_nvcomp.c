/* fuzz/fuzz_dec_nvcomp.c - the streams of nvcomp_batch. */
#define FUZZ_CODECS                                                                      \
    "{\"id\":\"nvcomp_batch\",\"algorithm\":\"deflate\"}",                               \
        "{\"id\":\"nvcomp_batch\",\"algorithm\":\"lz4\",\"options\":{\"has_header\":"    \
        "false}}",                                                                       \
        "{\"id\":\"nvcomp_batch\",\"algorithm\":\"lz4\"}",                               \
        "{\"id\":\"nvcomp_batch\",\"algorithm\":\"zstd\"}"
#include "fuzz_dec.h"
