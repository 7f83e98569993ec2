/* fuzz/fuzz_dec_vlen.c - text and bytes, with lengths in front or an index apart. */
#define FUZZ_INDEXED(index, data, more)                                                  \
    "{\"name\":\"zarrs.vlen\",\"configuration\":{\"index_data_type\":\"uint32\","        \
    "\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}"    \
    "}" index "],\"data_codecs\":[\"bytes\"" data "]" more "}}"
#define FUZZ_CODECS                                                                      \
    "\"vlen-utf8\"", "\"vlen-bytes\"", "\"vlen-utf8\",{\"name\":\"zstd\"}",              \
        "\"vlen-bytes\",{\"name\":\"zstd\"}", FUZZ_INDEXED("", "", ""),                  \
        FUZZ_INDEXED(",\"crc32c\"", ",\"zstd\"", ",\"index_location\":\"end\"")
#define FUZZ_DTYPES  "string", "bytes", "string", "bytes", "string", "bytes"
#define FUZZ_FORMAT  3
#define FUZZ_REFUSES false
#define FUZZ_DIMS                                                                        \
    {1, 0}, {2, 0}, {7, 0},                                                              \
    {                                                                                    \
        300, 0                                                                           \
    }
#include "fuzz_objects.h"
