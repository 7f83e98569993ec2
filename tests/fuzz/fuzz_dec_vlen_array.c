/* fuzz/fuzz_dec_vlen_array.c - lists of numbers. */
#define FUZZ_CODECS                                                                      \
    "{\"id\":\"vlen-array\",\"dtype\":\"<i4\"}",                                         \
        "{\"id\":\"vlen-array\",\"dtype\":\">i2\"}",                                     \
        "{\"id\":\"vlen-array\",\"dtype\":\"|b1\"}",                                     \
        "{\"id\":\"vlen-array\",\"dtype\":\">c16\"},{\"id\":\"zstd\"}"
#define FUZZ_DTYPES                                                                      \
    "vlen-array[int32]", "vlen-array[int16]", "vlen-array[bool]", "vlen-array[complex128]"
#include "fuzz_objects.h"
