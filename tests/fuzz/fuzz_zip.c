/*
 * fuzz/fuzz_zip.c - any bytes as a zip archive in a memory store: open, list, read each
 * member whole, a part of it and its end, check its form. A failure has a text. Parts
 * have the bytes that the whole value has. There are not more dead bytes than bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "zip/zip.h"

enum {
    FUZZ_MAX_BYTES = 1 << 16,
    FUZZ_MEMBERS = 64
};

static struct zr_memory_registry fuzz_memory;
static struct zr_store_registry *fuzz_registry;
static struct zr_store_env fuzz_env;
static zarr_store *fuzz_store;
static uint8_t fuzz_value[FUZZ_MAX_BYTES];

static void fuzz_check(int ok)
{
    if (!ok)
        __builtin_trap();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const zarr_allocator *const none = NULL;

    (void)argc;
    (void)argv;
    fuzz_check(zr_memory_registry_init(&fuzz_memory, none, NULL) == ZARR_OK);
    fuzz_check(zr_store_registry_create(&fuzz_registry, none, NULL) == ZARR_OK);
    fuzz_check(zr_store_registry_add_core(fuzz_registry, NULL) == ZARR_OK);
    fuzz_env = (struct zr_store_env){.memory = &fuzz_memory};
    zr_limits_default(&fuzz_env.limits);
    fuzz_env.limits.chunk_bytes = FUZZ_MAX_BYTES;
    fuzz_env.limits.listing_keys = 4096;
    fuzz_check(zr_store_open(&fuzz_store, fuzz_registry, &fuzz_env, "memory:", NULL,
                             NULL) == ZARR_OK);
    return 0;
}

/* Reads a range and compares it with the value, if that could be read. */
static void fuzz_part(zarr_store *s, const char *key, uint64_t from, uint64_t n,
                      uint64_t bytes, int has_value)
{
    uint8_t part[16];
    zarr_store_op op = {
        .verb = ZARR_STORE_GET,
        .key = key,
        .offset = from,
        .length = n,
        .mem = {.device_type = ZARR_DEVICE_CPU, .handle = part, .bytes = sizeof part}};
    zarr_error err = {0};
    const uint64_t at =
        from == ZARR_STORE_SUFFIX ? bytes - (n < bytes ? n : bytes) : from;

    if (zarr_store_run(s, &op, &err) != ZARR_OK) {
        fuzz_check(err.message[0] != '\0' && op.status != ZARR_ERR_NOT_FOUND);
        return;
    }
    fuzz_check(op.object_bytes == bytes && op.done_bytes <= sizeof part);
    if (has_value && at < bytes)
        fuzz_check(op.done_bytes <= bytes - at &&
                   memcmp(part, fuzz_value + at, (size_t)op.done_bytes) == 0);
}

static int fuzz_read(void *user, const zarr_store_item *item)
{
    zarr_store *s = user;
    static int n;
    uint64_t bytes = sizeof fuzz_value;
    zarr_error err = {0};
    const zarr_status st =
        zarr_store_get(s, item->key, 0, fuzz_value, &bytes, NULL, &err);
    const int has_value = st == ZARR_OK && bytes == item->bytes;

    fuzz_check(st == ZARR_OK || err.message[0] != '\0');
    fuzz_check(st != ZARR_OK || bytes == item->bytes || bytes == sizeof fuzz_value);
    fuzz_part(s, item->key, 3, 7, item->bytes, has_value);
    fuzz_part(s, item->key, ZARR_STORE_SUFFIX, 5, item->bytes, has_value);
    return ++n % FUZZ_MEMBERS == 0;
}

static int fuzz_ignore(void *user, const zarr_store_item *item)
{
    (void)user;
    return item->key[0] == '\0';
}

static void fuzz_found(void *user, int is_fault, const char *text)
{
    (void)user;
    (void)is_fault;
    fuzz_check(text[0] != '\0');
}

/* ---- repack: the same values, and a second one has nothing to do ---- */

struct fuzz_sum {
    zarr_store *store;
    uint64_t sum;
    int n;
};

static int fuzz_add(void *user, const zarr_store_item *item)
{
    struct fuzz_sum *f = user;
    uint8_t part[64] = {0};
    uint64_t n = sizeof part, hash = zr_map_hash(item->key, strlen(item->key));
    const zarr_status st = zarr_store_get(f->store, item->key, 1, part, &n, NULL, NULL);

    hash = hash * 31 + (uint64_t)st;
    if (st == ZARR_OK)
        hash = hash * 31 + zr_map_hash((const char *)part, (size_t)n);
    f->sum += hash * 31 + item->bytes;
    return ++f->n == FUZZ_MEMBERS;
}

static uint64_t fuzz_values(zarr_store *s)
{
    struct fuzz_sum f = {.store = s};

    fuzz_check(zarr_store_list(s, "", ZARR_LIST_RECURSIVE, fuzz_add, &f, NULL, NULL) ==
               ZARR_OK);
    return f.sum;
}

static void fuzz_repack(size_t size)
{
    zarr_repack_result result = ZARR_REPACK_RESULT_INIT;
    zarr_store *s = NULL;
    void *self = NULL;
    zarr_error err = {0};
    uint64_t before;
    zarr_status st;

    fuzz_check(zr_zip_open(&self, &fuzz_env, fuzz_store, "x.ozx",
                           &(struct zr_zip_options){.flags = 0}, &err) == ZARR_OK);
    fuzz_check(zr_store_open_custom(&s, &fuzz_env, &zr_zip_vtable, self, NULL, &err) ==
               ZARR_OK);
    before = fuzz_values(s);
    st = zarr_store_repack(s, 0, &result, NULL, &err);
    fuzz_check(st == ZARR_OK || err.message[0] != '\0');
    fuzz_check(fuzz_values(s) == before);
    if (st == ZARR_OK) {
        fuzz_check(result.bytes_before == size);
        fuzz_check(zarr_store_repack(s, 0, &result, NULL, &err) == ZARR_OK);
        fuzz_check(!result.is_needed);
    }
    zarr_store_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zarr_store_counters counters = ZARR_STORE_COUNTERS_INIT;
    zarr_error err = {0};
    zarr_store *s = NULL;
    void *self = NULL;

    fuzz_check(zarr_store_put(fuzz_store, "x.ozx", data, size, NULL, NULL) == ZARR_OK);
    if (zr_zip_open(&self, &fuzz_env, fuzz_store, "x.ozx",
                    &(struct zr_zip_options){.flags = ZARR_STORE_READ_ONLY},
                    &err) != ZARR_OK) {
        fuzz_check(err.message[0] != '\0');
        return 0;
    }
    fuzz_check(zr_store_open_custom(&s, &fuzz_env, &zr_zip_vtable, self, NULL, &err) ==
               ZARR_OK);
    fuzz_check(zarr_store_list(s, "", ZARR_LIST_DIRECTORY, fuzz_ignore, NULL, NULL,
                               &err) == ZARR_OK);
    fuzz_check(zarr_store_list(s, "", ZARR_LIST_RECURSIVE, fuzz_read, s, NULL, &err) ==
               ZARR_OK);
    fuzz_check(zr_store_check(s, fuzz_found, NULL, NULL, &err) == ZARR_OK);
    zarr_store_read_counters(s, &counters);
    fuzz_check(counters.dead_bytes <= size);
    zarr_store_free(s);
    fuzz_repack(size);
    return 0;
}
