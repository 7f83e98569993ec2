/* fuzz/fuzz_dec_lzma.c - the containers .xz and .lzma, and bare streams. */
#define FUZZ_CODECS                                                                      \
    "{\"id\":\"lzma\"}", "{\"id\":\"lzma\",\"format\":2}",                               \
        "{\"id\":\"lzma\",\"format\":3,\"filters\":[{\"id\":33}]}",                      \
        "{\"id\":\"lzma\",\"format\":3,\"filters\":[{\"id\":3},{\"id\":"                 \
        "4611686018427387905}]}"
#include "fuzz_dec.h"
