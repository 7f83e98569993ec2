/* fuzz/fuzz_dec_msgpack2.c - text in MessagePack's lists. */
#define FUZZ_CODECS                                                                      \
    "{\"id\":\"msgpack2\"}", "{\"id\":\"msgpack2\",\"use_bin_type\":false}",             \
        "{\"id\":\"msgpack2\"},{\"id\":\"zstd\"}"
#define FUZZ_DTYPES "string", "string", "string"
#include "fuzz_objects.h"
