/* fuzz/fuzz_dec_zfp.c - bare streams of zfp in every mode, and with a header. */
#define FUZZ_FORMAT 3
#define FUZZ_DTYPES "float32"
#define FUZZ_LOSSY  1
#define FUZZ_CODECS                                                                      \
    "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"reversible\"}}",                    \
        "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"fixed_rate\",\"rate\":6}}",     \
        "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"fixed_accuracy\","              \
        "\"tolerance\":0.01}}",                                                          \
        "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"expert\",\"minbits\":100,"      \
        "\"maxbits\":400,\"maxprec\":30,\"minexp\":-10}}",                               \
        "{\"name\":\"numcodecs.zfpy\",\"configuration\":{\"mode\":4}}"
#include "fuzz_dec.h"
