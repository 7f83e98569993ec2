/* fuzz/fuzz_dec_bz2.c - streams of bzip2, also several. */
#define FUZZ_CODECS "{\"id\":\"bz2\"}"
#include "fuzz_dec.h"
