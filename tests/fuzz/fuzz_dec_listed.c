/* fuzz/fuzz_dec_listed.c - bools and numbers in json2's and msgpack2's lists. */
#define FUZZ_CODECS                                                                      \
    "{\"id\":\"json2\"}", "{\"id\":\"json2\"}", "{\"id\":\"json2\"}",                    \
        "{\"id\":\"json2\"},{\"id\":\"zstd\"}", "{\"id\":\"msgpack2\"}",                 \
        "{\"id\":\"msgpack2\"}", "{\"id\":\"msgpack2\"}",                                \
        "{\"id\":\"msgpack2\"},{\"id\":\"zstd\"}"
#define FUZZ_DTYPES                                                                      \
    "bool", "int64", "float32", "uint64", "bool", "int16", "float64", "float16"
#include "fuzz_dec.h"
