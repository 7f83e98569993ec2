/* fuzz/fuzz_dec_delta.c - running sums over any bytes; casts and floats do not come back.
 */
#define FUZZ_LOSSY 1
#define FUZZ_CODECS                                                                      \
    "{\"id\":\"delta\",\"dtype\":\"<i4\"}",                                              \
        "{\"id\":\"delta\",\"dtype\":\">i8\",\"astype\":\"|i1\"}",                       \
        "{\"id\":\"delta\",\"dtype\":\"<f4\",\"astype\":\">f8\"}",                       \
        "{\"id\":\"delta\",\"dtype\":\"|u1\",\"astype\":\"<f4\"}",                       \
        "{\"id\":\"delta\",\"dtype\":\"<u2\",\"astype\":\"<f8\"}"
#include "fuzz_dec.h"
