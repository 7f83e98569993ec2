/* fuzz/fuzz_dec_crc32c.c - chunks with a checksum, behind or in front. */
#define FUZZ_CODECS "{\"id\":\"crc32c\"}", "{\"id\":\"crc32c\",\"location\":\"start\"}"
#include "fuzz_dec.h"
