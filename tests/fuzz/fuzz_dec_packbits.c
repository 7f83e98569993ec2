/* fuzz/fuzz_dec_packbits.c - runs of bits. */
#define FUZZ_FORMAT 3
#define FUZZ_DTYPES "int16"
#define FUZZ_LOSSY  1 /* bits that are cut off */
#define FUZZ_CODECS                                                                      \
    "{\"name\":\"packbits\",\"configuration\":{\"first_bit\":2,\"last_bit\":12,"         \
    "\"padding_encoding\":\"first_byte\"}}",                                             \
        "{\"name\":\"packbits\",\"configuration\":{\"last_bit\":2,\"padding_encoding\":" \
        "\"last_byte\"}}",                                                               \
        "{\"name\":\"packbits\",\"configuration\":{\"first_bit\":15}}"
#include "fuzz_dec.h"
