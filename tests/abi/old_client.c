/*
 * abi/old_client.c - a program compiled when zarr_context_options was shorter, and
 * one compiled when it was longer, against the library of today. The options lie
 * flush against a page that faults, so reading one byte too far ends the test.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zarrc/zarrc.h>

enum {
    MAX_OPTIONS_BYTES = 1024
};

struct old_options {
    uint32_t struct_size, flags;
};

static unsigned char *edge; /* first byte that may not be read */

static int make_edge(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *pages =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0)
        return -1;
    edge = pages + page;
    return 0;
}

/* Opens a context with options of n_bytes whose last byte is `last`. */
static zarr_status open_with(uint32_t n_bytes, uint32_t struct_size, unsigned char last)
{
    zarr_context *ctx = NULL;
    zarr_error err;
    zarr_status st;
    unsigned char *options = edge - n_bytes;

    memset(options, 0, n_bytes);
    memcpy(options, &struct_size, sizeof struct_size);
    if (n_bytes > sizeof struct_size)
        options[n_bytes - 1] = last;
    st = zarr_context_create(&ctx, (const zarr_context_options *)(const void *)options,
                             &err);
    zarr_context_free(ctx);
    return st;
}

/* Structs that the library fills: `bytes` of them, flush against the page that faults. */
static int given_structs(uint32_t bytes)
{
    zarr_limits all = ZARR_LIMITS_INIT, part;
    zarr_tensor t;
    zarr_context *ctx = NULL;
    zarr_error err;
    void *out = edge - bytes;
    int bad = 0;

    memset(&part, 0, sizeof part);
    if (zarr_context_create(&ctx, NULL, &err) != ZARR_OK)
        return 1;
    zarr_limits_default(&all);
    zarr_limits_default_sized(out, bytes);
    memcpy(&part, out, bytes < sizeof part ? bytes : sizeof part);
    bad |= part.struct_size != bytes || part.metadata_bytes != all.metadata_bytes;
    zarr_limits_untrusted_sized(out, bytes);
    zarr_context_limits_sized(ctx, out, bytes);
    memcpy(&part, out, bytes < sizeof part ? bytes : sizeof part);
    bad |= part.struct_size != bytes || part.metadata_bytes != all.metadata_bytes;
    zarr_tensor_host_sized(out, bytes, &bad, sizeof bad, 0, NULL);
    memset(&t, 0, sizeof t);
    memcpy(&t, out, bytes < sizeof t ? bytes : sizeof t);
    bad |= t.struct_size != bytes || t.device_type != ZARR_DEVICE_CPU;
    for (size_t i = sizeof all; i < bytes; i++)
        bad |= edge[-(long)bytes + (long)i] != 0;
    zarr_context_free(ctx);
    return bad;
}

static int expect(const char *what, zarr_status got, zarr_status want)
{
    printf("%s: %s (status %d, expected %d)\n", got == want ? "ok" : "FAILED", what,
           (int)got, (int)want);
    return got != want;
}

int main(void)
{
    int n_failed = 0;
    uint32_t old = sizeof(struct old_options);
    uint32_t now = sizeof(zarr_context_options);
    uint32_t longer = now + 64;

    if (make_edge() != 0 || longer > MAX_OPTIONS_BYTES) {
        printf("cannot lay out the test\n");
        return 1;
    }
    n_failed += expect("older, shorter options", open_with(old, old, 0), ZARR_OK);
    n_failed += expect("today's options", open_with(now, now, 0), ZARR_OK);
    n_failed += expect("newer, longer options that ask for nothing new",
                       open_with(longer, longer, 0), ZARR_OK);
    n_failed += expect("newer, longer options with an unknown wish",
                       open_with(longer, longer, 1), ZARR_ERR_UNSUPPORTED);
    n_failed +=
        expect("options whose size was not set", open_with(now, 0, 0), ZARR_ERR_ABI);
    n_failed += expect("shorter structs to fill", given_structs(16), 0);
    n_failed +=
        expect("longer structs to fill", given_structs(sizeof(zarr_limits) + 64), 0);
    return n_failed != 0;
}
