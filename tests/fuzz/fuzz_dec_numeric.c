/* fuzz/fuzz_dec_numeric.c - numcodecs' casts and scales over any bytes; what they lose
 * does not come back. */
#define FUZZ_LOSSY 1
#define FUZZ_CODECS                                                                      \
    "{\"id\":\"fixedscaleoffset\",\"offset\":10,\"scale\":0.1,\"dtype\":\"<f8\","        \
    "\"astype\":\"|i1\"}",                                                               \
        "{\"id\":\"fixedscaleoffset\",\"offset\":0.5,\"scale\":0,\"dtype\":\">i2\","     \
        "\"astype\":\">f4\"}",                                                           \
        "{\"id\":\"fixedscaleoffset\",\"offset\":-1,\"scale\":3,\"dtype\":\"<u8\","      \
        "\"astype\":\"<f2\"}",                                                           \
        "{\"id\":\"quantize\",\"digits\":3,\"dtype\":\"<f4\",\"astype\":\"<f8\"}",       \
        "{\"id\":\"astype\",\"encode_dtype\":\"<f8\",\"decode_dtype\":\"|b1\"}",         \
        "{\"id\":\"astype\",\"encode_dtype\":\">f4\",\"decode_dtype\":\"<u8\"}",         \
        "{\"id\":\"astype\",\"encode_dtype\":\"<i8\",\"decode_dtype\":\">f2\"}"
#include "fuzz_dec.h"
