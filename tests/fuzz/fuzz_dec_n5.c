/* fuzz/fuzz_dec_n5.c - blocks of N5, which say how large they are. */
#define FUZZ_FORMAT 3
#define FUZZ_DTYPES "uint16"
#define FUZZ_N5(behind)                                                                  \
    "{\"name\":\"n5_default\",\"configuration\":{\"codecs\":[{\"name\":\"transpose\","   \
    "\"configuration\":{\"order\":[0]}},{\"name\":\"bytes\",\"configuration\":"          \
    "{\"endian\":\"big\"}}" behind "]}}"
#define FUZZ_CODECS                                                                      \
    FUZZ_N5(""), FUZZ_N5(",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"),        \
        FUZZ_N5(",\"crc32c\"")
#include "fuzz_dec.h"
