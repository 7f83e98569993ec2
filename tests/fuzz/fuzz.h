/*
 * fuzz/fuzz.h - what a fuzz target defines. zr_fuzz_target() includes it into
 * every source of a target, so that libFuzzer's names have prototypes.
 */
#ifndef ZR_TESTS_FUZZ_H
#define ZR_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#endif
