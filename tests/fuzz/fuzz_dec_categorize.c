/* fuzz/fuzz_dec_categorize.c - numbers of labels. */
#define FUZZ_LABELS                                                                      \
    "{\"id\":\"categorize\",\"dtype\":\"|O\",\"labels\":[\"a\",\"\",\"bc\",\"a\"]"
#define FUZZ_CODECS                                                                      \
    FUZZ_LABELS "}", FUZZ_LABELS ",\"astype\":\">i2\"}",                                 \
        FUZZ_LABELS ",\"astype\":\"<u8\"},{\"id\":\"zstd\"}"
#define FUZZ_DTYPES "string", "string", "string"
#include "fuzz_objects.h"
