/*
 * fuzz/standalone_driver.c - runs a fuzz target once over every file given, in builds
 * without libFuzzer. A file whose name ends in ".seeds" holds many inputs, each behind
 * its length in four bytes, little-endian: seeds.py writes it. Each input is copied into
 * a buffer of exactly its size, so that a sanitizer sees one byte too far. Exit 77 (skip)
 * when nothing was there to replay. It is not a fuzzer: nothing is mutated.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

#pragma weak LLVMFuzzerInitialize

static unsigned long n_replayed;

static int replay_input(const uint8_t *bytes, size_t n_bytes)
{
    uint8_t *copy = malloc(n_bytes ? n_bytes : 1);

    if (!copy)
        return 1;
    if (n_bytes)
        memcpy(copy, bytes, n_bytes);
    (void)LLVMFuzzerTestOneInput(copy, n_bytes);
    n_replayed++;
    free(copy);
    return 0;
}

static int replay_seeds(const uint8_t *bytes, size_t n_bytes)
{
    int rc = 0;
    size_t at = 0;

    while (rc == 0 && n_bytes - at >= 4) {
        size_t n = bytes[at] | (size_t)bytes[at + 1] << 8 | (size_t)bytes[at + 2] << 16 |
                   (size_t)bytes[at + 3] << 24;

        at += 4;
        if (n > n_bytes - at)
            break;
        rc = replay_input(bytes + at, n);
        at += n;
    }
    return rc | (at != n_bytes);
}

static int replay_file(const char *path)
{
    static const char suffix[] = ".seeds";
    const size_t length = strlen(path);
    int rc = 1;
    uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    struct stat st;
    FILE *file = fopen(path, "rb");

    if (!file || fstat(fileno(file), &st) != 0)
        goto out;
    n_bytes = (size_t)st.st_size;
    bytes = malloc(n_bytes ? n_bytes : 1);
    if (!bytes || fread(bytes, 1, n_bytes, file) != n_bytes)
        goto out;
    if (length >= sizeof suffix && strcmp(path + length + 1 - sizeof suffix, suffix) == 0)
        rc = replay_seeds(bytes, n_bytes);
    else
        rc = replay_input(bytes, n_bytes);
out:
    if (rc != 0)
        fprintf(stderr, "cannot replay %s\n", path);
    free(bytes);
    if (file)
        fclose(file);
    return rc;
}

int main(int argc, char **argv)
{
    int rc = 0;

    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        struct stat st;

        if (stat(argv[i], &st) != 0)
            printf("no such file: %s\n", argv[i]);
        else
            rc |= replay_file(argv[i]);
    }
    printf("replayed %lu inputs\n", n_replayed);
    if (rc == 0 && n_replayed == 0)
        return 77;
    return rc;
}
