/* fuzz/fuzz_dec_base64.c - base64 as text. */
#define FUZZ_CODECS "{\"id\":\"base64\"}"
#include "fuzz_dec.h"
