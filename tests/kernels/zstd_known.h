/*
 * tests/kernels/zstd_known.h - small frames of zstd, and what the kernels say about them.
 */
#ifndef TESTS_KERNELS_ZSTD_KNOWN_H
#define TESTS_KERNELS_ZSTD_KNOWN_H

#include <stddef.h>
#include <stdint.h>

#include "runner.h"

/* A chunk in hex; the m bytes that it decodes to are all `value`. */
struct known {
    const char *hex;
    size_t m;
    int value;
    uint32_t status;
};
#define SINGLE "28b52ffd20"   /* a frame; its content size follows */
#define WINDOW "28b52ffd0000" /* a frame without its content size */
static const struct known known[] = {
    {SINGLE "00"
            "010000",
     0, 0, K_OK},
    {SINGLE "05"
            "2b0000"
            "41",
     5, 0x41, K_OK},
    {WINDOW "2b0000"
            "41",
     5, 0x41, K_OK},
    {WINDOW "280000"
            "4141414141"
            "2b0000"
            "41",
     10, 0x41, K_OK},
    {"28b52ffda001000200"
     "020010"
     "00"
     "0b0000"
     "00",
     131073, 0, K_OK},
    {WINDOW "150000"
            "0000",
     0, 0, K_OK}, /* a compressed block without content */
    {SINGLE "00"
            "150000"
            "0000",
     0, 0, K_BAD_INPUT}, /* longer than the window */
    {WINDOW "1d0000"
            "008000",
     0, 0, K_BAD_INPUT}, /* a count of 0 in two bytes */
    {WINDOW "1d0000"
            "000000",
     0, 0, K_BAD_INPUT}, /* bytes after the sections */
    {SINGLE "05"
            "2b0000",
     5, 0, K_BAD_INPUT},
    {SINGLE "05"
            "2f0000"
            "41",
     5, 0, K_BAD_INPUT}, /* a reserved kind of block */
    {"28b52ffd2805"
     "2b0000"
     "41",
     5, 0, K_BAD_HEADER}, /* a reserved bit */
    {"28b52ffd2105"
     "05"
     "2b0000"
     "41",
     5, 0, K_UNSUPPORTED}, /* a dictionary */
    {"28b52ffd2100"
     "05"
     "2b0000"
     "41",
     5, 0x41, K_OK}, /* none */
    {"28b52ffd00b0"
     "2b0000"
     "41",
     5, 0, K_UNSUPPORTED}, /* a window of 4 GiB */
    {SINGLE "05"
            "2b0000"
            "41",
     6, 0, K_TOO_SHORT},
    {SINGLE "05"
            "2b0000"
            "41",
     4, 0, K_TOO_LONG},
    {SINGLE "06"
            "2b0000"
            "41",
     6, 0, K_BAD_LENGTH},
    {SINGLE "05"
            "2b0000"
            "4100",
     5, 0, K_BAD_INPUT},
    {WINDOW "450000"
            "080002002f430bae",
     18, 0, K_BAD_OFFSET}, /* an offset of 0, which libzstd 1.5.5 takes for 1 */
    {WINDOW "550000"
            "72800104207e1f02aa00",
     7, 0, K_BAD_INPUT}, /* weights of a tree that end early; libzstd 1.5.6 takes them */
    {WINDOW "950000"
            "6848656c6c6f20576f726c64210a80000000",
     13, 0, K_BAD_INPUT}, /* bytes after a count of 0; libzstd 1.5.4 takes them */
    {"25b52ffd0000"
     "2b0000"
     "41",
     5, 0, K_BAD_HEADER},                     /* zstd 0.5 */
    {"522a4d1800000000", 0, 0, K_BAD_HEADER}, /* no frame with content */
    {"", 0, 0, K_BAD_HEADER}};

#endif
