/* fuzz/fuzz_dec_lz4.c - blocks of LZ4 with numcodecs' prefix. */
#define FUZZ_CODECS "{\"id\":\"lz4\"}"
#include "fuzz_dec.h"
