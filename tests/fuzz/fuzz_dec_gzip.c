/* fuzz/fuzz_dec_gzip.c - members of gzip. */
#define FUZZ_CODECS "{\"id\":\"gzip\"}"
#include "fuzz_dec.h"
