/* fuzz/fuzz_dec_conditional.c - codecs that a header switches, inside each other too. */
#define FUZZ_FORMAT 3
#define FUZZ_DTYPES "uint8"
#define FUZZ_IF(codecs)                                                                  \
    "{\"name\":\"conditional\",\"configuration\":{\"codecs\":[" codecs "]}}"
#define FUZZ_CODECS                                                                      \
    "\"bytes\"," FUZZ_IF("\"zstd\""),                                                    \
        "\"bytes\"," FUZZ_IF("\"numcodecs.shuffle\",\"numcodecs.lz4\",\"crc32c\""),      \
        "\"bytes\"," FUZZ_IF(FUZZ_IF("\"zstd\",\"crc32c\"") "," FUZZ_IF("\"crc32c\""))
#include "fuzz_dec.h"
