/* fuzz/fuzz_dec_zlib.c - streams of zlib. */
#define FUZZ_CODECS "{\"id\":\"zlib\"}"
#include "fuzz_dec.h"
