/* fuzz/fuzz_dec_snappy.c - blocks of Snappy. */
#define FUZZ_CODECS "{\"id\":\"snappy\"}"
#include "fuzz_dec.h"
