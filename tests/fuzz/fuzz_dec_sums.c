/* fuzz/fuzz_dec_sums.c - numcodecs' checksums at both ends. */
#define FUZZ_CODECS                                                                      \
    "{\"id\":\"crc32\"}", "{\"id\":\"adler32\"}", "{\"id\":\"fletcher32\"}",             \
        "{\"id\":\"jenkins_lookup3\"}", "{\"id\":\"crc32\",\"location\":\"end\"}",       \
        "{\"id\":\"adler32\",\"location\":\"end\"}"
#include "fuzz_dec.h"
