/* fuzz/fuzz_dec.c - a codec without a configuration: its name is FUZZ_ID, from the
 * target. */
#define FUZZ_CODECS "{\"id\":\"" FUZZ_ID "\"}"
#include "fuzz_dec.h"
