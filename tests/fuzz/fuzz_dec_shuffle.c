/* fuzz/fuzz_dec_shuffle.c - permutations of bytes. */
#define FUZZ_CODECS                                                                      \
    "{\"id\":\"shuffle\",\"elementsize\":1}", "{\"id\":\"shuffle\",\"elementsize\":2}",  \
        "{\"id\":\"shuffle\",\"elementsize\":4}",                                        \
        "{\"id\":\"shuffle\",\"elementsize\":8}"
#include "fuzz_dec.h"
