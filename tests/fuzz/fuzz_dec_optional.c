/* fuzz/fuzz_dec_optional.c - elements that may be missing, twice; all that decodes is
 * encoded again. */
#define FUZZ_FORMAT 3
#define FUZZ_DTYPES "optional[optional[int16]]"
#define FUZZ_OPTIONAL(mask, data)                                                        \
    "{\"name\":\"optional\",\"configuration\":{\"mask_codecs\":[" mask                   \
    "],\"data_codecs\":[" data "]}}"
#define FUZZ_BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define FUZZ_CODECS                                                                      \
    FUZZ_OPTIONAL("\"packbits\"", FUZZ_OPTIONAL("\"packbits\"", FUZZ_BIG)),              \
        FUZZ_OPTIONAL("\"bytes\",\"zstd\"",                                              \
                      FUZZ_OPTIONAL("{\"name\":\"packbits\",\"configuration\":{"         \
                                    "\"padding_encoding\":\"first_byte\"}}",             \
                                    FUZZ_BIG) ",\"crc32c\""),                            \
        FUZZ_OPTIONAL("\"packbits\",\"numcodecs.lz4\"",                                  \
                      FUZZ_OPTIONAL("\"bytes\"", FUZZ_BIG ",\"zstd\""))
#include "fuzz_dec.h"
