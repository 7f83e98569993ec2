/* fuzz/fuzz_dec_zstd.c - frames of zstd. */
#define FUZZ_CODECS "{\"id\":\"zstd\",\"level\":1}", "{\"id\":\"zstd\",\"checksum\":true}"
#include "fuzz_dec.h"
