/* fuzz/fuzz_dec_json2.c - text in JSON lists. */
#define FUZZ_CODECS                                                                      \
    "{\"id\":\"json2\"}", "{\"id\":\"json2\",\"ensure_ascii\":false}",                   \
        "{\"id\":\"json2\"},{\"id\":\"zstd\"}"
#define FUZZ_DTYPES "string", "string", "string"
#include "fuzz_objects.h"
