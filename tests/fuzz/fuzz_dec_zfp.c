/* fuzz/fuzz_dec_zfp.c - bare streams of zfp in every mode, and with a header,
 * also behind filters that change it. */
#define FUZZ_FORMAT 3
#define FUZZ_DTYPES "float32"
#define FUZZ_LOSSY  1
#define ZFPY        "{\"name\":\"numcodecs.zfpy\",\"configuration\":{\"mode\":4}}"
#define FUZZ_CODECS                                                                      \
    "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"reversible\"}}",                    \
        "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"fixed_rate\",\"rate\":6}}",     \
        "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"fixed_accuracy\","              \
        "\"tolerance\":0.01}}",                                                          \
        "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"expert\",\"minbits\":100,"      \
        "\"maxbits\":400,\"maxprec\":30,\"minexp\":-10}}",                               \
        ZFPY,                                                                            \
        "{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<f4\"}}," ZFPY,    \
        "{\"name\":\"numcodecs.bitround\",\"configuration\":{\"keepbits\":10}}," ZFPY
#include "fuzz_dec.h"
