/*
 * fuzz/standalone_driver.c - runs a fuzz target once over every file given, and
 * over every regular file directly in every directory given, in builds without
 * libFuzzer. Files are visited in name order; each is copied into a buffer of
 * exactly its size, so that a sanitizer sees one byte too far. Exit 77 (skip)
 * when nothing was there to replay. It is not a fuzzer: nothing is mutated.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

#pragma weak LLVMFuzzerInitialize

static unsigned long n_replayed;

static int replay_file(const char *path)
{
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
    (void)LLVMFuzzerTestOneInput(bytes, n_bytes);
    n_replayed++;
    rc = 0;
out:
    if (rc != 0)
        fprintf(stderr, "cannot read %s\n", path);
    free(bytes);
    if (file)
        fclose(file);
    return rc;
}

static int replay_dir(const char *dir)
{
    int rc = 0;
    struct dirent **entries = NULL;
    int n_entries = scandir(dir, &entries, NULL, alphasort);

    for (int i = 0; i < n_entries; i++) {
        char path[4096];
        struct stat st;
        int len = snprintf(path, sizeof path, "%s/%s", dir, entries[i]->d_name);

        if (len > 0 && (size_t)len < sizeof path && stat(path, &st) == 0 &&
            S_ISREG(st.st_mode))
            rc |= replay_file(path);
        free(entries[i]);
    }
    free(entries);
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
            printf("no such file or directory: %s\n", argv[i]);
        else if (S_ISDIR(st.st_mode))
            rc |= replay_dir(argv[i]);
        else
            rc |= replay_file(argv[i]);
    }
    printf("replayed %lu inputs\n", n_replayed);
    if (rc == 0 && n_replayed == 0)
        return 77;
    return rc;
}
